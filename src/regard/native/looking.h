/* Attention: queries that look at a source laid out for them, and hypotheses that look back at their own past. */

/* Lay out keys (length, width) such that `multiply` gives a query's products with all of them. */
static void lay_out_keys(const float *keys, ptrdiff_t stride, int length, int width, float *panels) {
    for (int start = 0; start < length; start += PANEL, panels += PANEL * width)
        for (int part = 0; part < PANEL; part += WIDTH) {
            const float *from = keys + (start + part) * stride;
            int count = length - start - part;
            for (int at = 0; at < width; at += WIDTH) {
                Vector square[WIDTH];
#pragma GCC unroll 16
                for (int row = 0; row < WIDTH; row++) square[row] = row < count ? load(from + row * stride + at) : all(0);
                turn(square);
#pragma GCC unroll 16
                for (int row = 0; row < WIDTH; row++) store(panels + (at + row) * PANEL + part, square[row]);
            }
        }
}

/* Lay out values (length, width) such that `multiply` mixes them by a query's weights. */
static void lay_out_values(const float *values, ptrdiff_t stride, int length, int width, float *panels) {
    for (int start = 0; start < width; start += PANEL)
        for (int place = 0; place < length; place++, panels += PANEL)
            for (int part = 0; part < PANEL; part += WIDTH)
                store(panels + part, start + part < width ? load(values + place * stride + start + part) : all(0));
}

/* Floats that one head's keys and values of a source take. */
static ptrdiff_t head_size(const Stack *stack, int length) {
    return (ptrdiff_t)rounded_up(length, PANEL) * stack->d_k + (ptrdiff_t)rounded_up(stack->d_v, PANEL) * length;
}

/* The vector at a place in a row of `length` numbers; behind the last of them it is `other`. */
static inline Vector row_part(Vector v, int at, int length, Vector other) {
    return length - at < WIDTH ? first_of(v, length - at, other) : v;
}

/* Turn a row of scores into weights, softmax(scores · scale). */
static void soften(float *scores, int length, float scale) {
    Vector most = all(-INFINITY), factor = all(scale), total = all(0);
    for (int at = 0; at < length; at += WIDTH)
        most = larger(row_part(load(scores + at), at, length, all(-INFINITY)), most);
    most = all(largest_of(most));
    for (int at = 0; at < length; at += WIDTH) {
        Vector weight = row_part(exponential((load(scores + at) - most) * factor), at, length, all(0));
        store(scores + at, weight);
        total += weight;
    }
    Vector share = all(1 / add_up(total));
    for (int at = 0; at < length; at += WIDTH) store(scores + at, load(scores + at) * share);
}

/* Let queries (rows, H·d_k) look at one source, whose heads are laid out one after the other. */
static void look(
    const Stack *stack, const float *queries, ptrdiff_t stride, int rows, const float *source, int length, float *mixed,
    ptrdiff_t mixed_stride, float *scores) {
    int room = rounded_up(length, PANEL);
    float scale = 1 / sqrtf(stack->d_k);
    for (int head = 0; head < stack->heads; head++, source += head_size(stack, length)) {
        const float *values = source + (ptrdiff_t)room * stack->d_k;
        multiply(queries + head * stack->d_k, stride, rows, source, stack->d_k, room, scores, room, NULL, 0);
        for (int row = 0; row < rows; row++) soften(scores + (ptrdiff_t)row * room, length, scale);
        multiply(scores, room, rows, values, length, stack->d_v, mixed + head * stack->d_v, mixed_stride, NULL, 0);
    }
}

/* Lay out all heads of a source, whose keys and values lie side by side in rows. */
static void lay_out(const Stack *stack, const float *keys_values, ptrdiff_t stride, int length, float *to) {
    const float *values = keys_values + stack->heads * stack->d_k;
    for (int head = 0; head < stack->heads; head++) {
        lay_out_keys(keys_values + head * stack->d_k, stride, length, stack->d_k, to);
        to += (ptrdiff_t)rounded_up(length, PANEL) * stack->d_k;
        lay_out_values(values + head * stack->d_v, stride, length, stack->d_v, to);
        to += (ptrdiff_t)rounded_up(stack->d_v, PANEL) * length;
    }
}

/* Let a hypothesis look back at the positions before it, wherever their keys and values lie, and at itself. */
static void look_back(
    const Stack *stack, const float *query, float *const *seen, int count, float *mixed, float *scores) {
    float scale = 1 / sqrtf(stack->d_k);
    int values = stack->heads * stack->d_k;
    for (int head = 0; head < stack->heads; head++) {
        const float *q = query + head * stack->d_k;
        for (int place = 0; place < count; place++) {
            const float *key = seen[place] + head * stack->d_k;
            Vector sum = load(q) * load(key);
            for (int at = WIDTH; at < stack->d_k; at += WIDTH) sum = multiply_add(load(q + at), load(key + at), sum);
            scores[place] = add_up(sum);
        }
        soften(scores, count, scale);
        for (int at = 0; at < stack->d_v; at += WIDTH) {
            Vector sum = all(0);
            for (int place = 0; place < count; place++)
                sum = multiply_add(all(scores[place]), load(seen[place] + values + head * stack->d_v + at), sum);
            store(mixed + head * stack->d_v + at, sum);
        }
    }
}
