/* What training computes many times a step on short rows: the end of a residual block, and attention, each with its
 * gradients. regard/model has the formulas; native/functions.py joins the two. All widths are multiples of 16. */

/* ---- the end of a residual block: LayerNorm(x + Dropout(change)) ------------------------------------------------- */

/* Dropout's factor of WIDTH elements: 0 where the random bits are below the bound, else `scale`. */
static inline Vector factors(const int16_t *bits, int bound, float scale) {
#if WIDTH == 16
    __mmask16 kept = _mm256_cmpge_epi16_mask(_mm256_loadu_si256((const __m256i *)bits), _mm256_set1_epi16(bound));
    return _mm512_maskz_mov_ps(kept, all(scale));
#else
    __m128i dropped = _mm_cmplt_epi16(_mm_loadu_si128((const __m128i *)bits), _mm_set1_epi16(bound));
    return _mm256_andnot_ps(_mm256_castsi256_ps(_mm256_cvtepi16_epi32(dropped)), all(scale));
#endif
}

/* A row of y = LayerNorm(x + Dropout(change)); `centred`, a row too, and `factor` are for the way back: the sum less its
 * mean, over its deviation. `bits` are the row's, NULL without dropout. */
static inline void join_row(
    const Residual *block, const int16_t *bits, const float *x, const float *change, float *centred, float *factor,
    float *y) {
    int width = block->width;
    Vector total = all(0), squares = all(0);
    for (int at = 0; at < width; at += WIDTH) {
        Vector added = load(change + at);
        if (bits) added *= factors(bits + at, block->bound, block->scale);
        Vector sum = load(x + at) + added;
        store(centred + at, sum);
        total += sum;
    }
    Vector mean = all(add_up(total) / width);
    for (int at = 0; at < width; at += WIDTH) {
        Vector difference = load(centred + at) - mean;
        squares = multiply_add(difference, difference, squares);
    }
    *factor = 1 / sqrtf(add_up(squares) / width + block->epsilon);
    Vector unit = all(*factor);
    for (int at = 0; at < width; at += WIDTH) {
        Vector number = (load(centred + at) - mean) * unit;
        store(centred + at, number);
        store(y + at, multiply_add(number, load(block->weight + at), load(block->bias + at)));
    }
}

/* The way back of a row: the gradients of x and of change, and, added up, of weight and bias. */
static inline void part_row(
    const Residual *block, const int16_t *bits, const float *y_gradient, const float *centred, float factor,
    float *x_gradient, float *change_gradient, float *weight_gradient, float *bias_gradient) {
    int width = block->width;
    Vector sum = all(0), product = all(0);
    for (int at = 0; at < width; at += WIDTH) {
        Vector gradient = load(y_gradient + at), number = load(centred + at);
        store(weight_gradient + at, multiply_add(gradient, number, load(weight_gradient + at)));
        store(bias_gradient + at, load(bias_gradient + at) + gradient);
        gradient *= load(block->weight + at);
        sum += gradient;
        product = multiply_add(gradient, number, product);
    }
    Vector mean = all(add_up(sum) / width), slope = all(add_up(product) / width), unit = all(factor);
    for (int at = 0; at < width; at += WIDTH) {
        Vector gradient = load(y_gradient + at) * load(block->weight + at);
        gradient = (gradient - mean - load(centred + at) * slope) * unit;
        store(x_gradient + at, gradient);
        if (bits) gradient *= factors(bits + at, block->bound, block->scale);
        store(change_gradient + at, gradient);
    }
}

/* All rows, with random bits that were drawn before. */
void NAME(join)(const Residual *block, const float *x, const float *change, float *centred, float *factor, float *y) {
    for (ptrdiff_t row = 0, start = 0; row < block->rows; row++, start += block->width)
        join_row(block, block->bits ? block->bits + start : NULL, x + start, change + start, centred + start,
                 factor + row, y + start);
}

void NAME(part)(
    const Residual *block, const float *y_gradient, const float *centred, const float *factor, float *x_gradient,
    float *change_gradient, float *weight_gradient, float *bias_gradient) {
    for (ptrdiff_t row = 0, start = 0; row < block->rows; row++, start += block->width)
        part_row(block, block->bits ? block->bits + start : NULL, y_gradient + start, centred + start, factor[row],
                 x_gradient + start, change_gradient + start, weight_gradient, bias_gradient);
}

/* ---- attention --------------------------------------------------------------------------------------------------- */

/* One head of one sentence at work. */
typedef struct {
    int length;    /* keys up to the last one that may be looked at */
    int room;      /* of a row of scores */
    int has_holes; /* a key before the last one may not be looked at */
    const uint8_t *allowed;
    const float *query, *key, *value;
    float *weights; /* (queries, room) */
} Head;

static Head find_head(const Attention *a, int sentence, int head, float *weights) {
    const uint8_t *allowed = a->allowed ? a->allowed + (ptrdiff_t)sentence * a->keys : NULL;
    int length = a->keys, holes = 0;
    if (allowed) {
        while (length > 0 && !allowed[length - 1]) length--;
        for (int key = 0; key < length; key++) holes |= !allowed[key];
    }
#define START(rows) (rows).start + sentence * (rows).sentence + head * (rows).head
    return (Head){length, rounded_up(length, PANEL), holes, allowed, START(a->query), START(a->key), START(a->value),
                  weights};
#undef START
}

/* Where a head's rows begin in what is written, (batch, positions, heads, width). */
static inline float *place(float *start, const Attention *a, int sentence, int head, int positions, int width) {
    return start + ((ptrdiff_t)sentence * positions * a->heads + head) * width;
}

/* softmax(Q Kᵀ / √d_k); `panels` is for the keys. */
static void weigh(const Attention *a, const Head *head, float *panels) {
    float scale = 1 / sqrtf(a->d_k);
    lay_out_keys(head->key, a->key.position, head->length, a->d_k, panels);
    multiply(head->query, a->query.position, a->queries, panels, a->d_k, head->room, head->weights, head->room, NULL, 0);
    for (int query = 0; query < a->queries; query++) {
        float *own = head->weights + (ptrdiff_t)query * head->room;
        int seen = a->causal && query + 1 < head->length ? query + 1 : head->length;
        if (head->has_holes) {
            for (int key = 0; key < seen; key++) own[key] = head->allowed[key] ? own[key] : -INFINITY;
            while (seen > 0 && !head->allowed[seen - 1]) seen--; /* a query that may look at nothing gets zeros */
        }
        soften(own, seen, scale);
        memset(own + seen, 0, (head->room - seen) * sizeof(float));
    }
}

/* Working memory of attention: two (queries, keys) of numbers and a layout of a head's rows. */
typedef struct {
    float *weights, *more, *panels;
} Room;

static size_t room_size(int queries, int keys, int d_k, int d_v) {
    int longest = queries > keys ? queries : keys, widest = d_k > d_v ? d_k : d_v;
    return 2 * (size_t)queries * rounded_up(keys, PANEL) + (size_t)rounded_up(longest, PANEL) * rounded_up(widest, PANEL);
}

static Room cut_room(float *memory, int queries, int keys) {
    size_t scores = (size_t)queries * rounded_up(keys, PANEL);
    return (Room){memory, memory + scores, memory + 2 * scores};
}

/* mixed (queries, d_v) = softmax(Q Kᵀ / √d_k) V of one head; rows of `mixed` are `stride` floats apart. */
static void attend_head(const Attention *a, const Head *head, const Room *room, float *mixed, ptrdiff_t stride) {
    weigh(a, head, room->panels);
    lay_out_values(head->value, a->value.position, head->length, a->d_v, room->panels);
    multiply(head->weights, head->room, a->queries, room->panels, head->length, a->d_v, mixed, stride, NULL, 0);
}

/* Where a head's gradients go: rows and how far they are apart. */
typedef struct {
    float *query, *key, *value;
    ptrdiff_t query_stride, key_stride, value_stride;
} HeadGradients;

/* The gradient of scores, in place of that of weights: weight · (gradient - Σ weight · gradient) / √d_k. */
static void unsoften(const float *weights, float *gradient, int length, float scale) {
    Vector sum = all(0);
    for (int at = 0; at < length; at += WIDTH) sum = multiply_add(load(weights + at), load(gradient + at), sum);
    Vector mean = all(add_up(sum)), factor = all(scale);
    for (int at = 0; at < length; at += WIDTH)
        store(gradient + at, load(weights + at) * (load(gradient + at) - mean) * factor);
}

/* The way back of one head. Weights are computed again. */
static void attend_head_back(
    const Attention *a, const Head *head, const Room *room, const float *mixed_gradient, ptrdiff_t stride,
    const HeadGradients *to) {
    float *weights = head->weights, *more = room->more, *panels = room->panels;
    float scale = 1 / sqrtf(a->d_k);
    weigh(a, head, panels);
    lay_out_values(mixed_gradient, stride, a->queries, a->d_v, panels);
    multiply_transposed(weights, head->room, head->length, panels, a->queries, a->d_v, to->value, to->value_stride);
    lay_out_keys(head->value, a->value.position, head->length, a->d_v, panels);
    multiply(mixed_gradient, stride, a->queries, panels, a->d_v, head->room, more, head->room, NULL, 0);
    for (int row = 0; row < a->queries; row++)
        unsoften(weights + (ptrdiff_t)row * head->room, more + (ptrdiff_t)row * head->room, head->room, scale);
    lay_out_values(head->key, a->key.position, head->length, a->d_k, panels);
    multiply(more, head->room, a->queries, panels, head->length, a->d_k, to->query, to->query_stride, NULL, 0);
    lay_out_values(head->query, a->query.position, a->queries, a->d_k, panels);
    multiply_transposed(more, head->room, head->length, panels, a->queries, a->d_k, to->key, to->key_stride);
    for (int rest = head->length; rest < a->keys; rest++) {
        memset(to->key + rest * to->key_stride, 0, a->d_k * sizeof(float));
        memset(to->value + rest * to->value_stride, 0, a->d_v * sizeof(float));
    }
}

/* mixed (batch, queries, heads, d_v) for all sentences and heads. Returns 0 for want of memory. */
int NAME(attend)(const Attention *a, float *mixed) {
    float *memory = malloc(room_size(a->queries, a->keys, a->d_k, a->d_v) * sizeof(float));
    if (!memory) return 0;
    Room room = cut_room(memory, a->queries, a->keys);
    for (int sentence = 0; sentence < a->batch; sentence++)
        for (int number = 0; number < a->heads; number++) {
            Head head = find_head(a, sentence, number, room.weights);
            attend_head(a, &head, &room, place(mixed, a, sentence, number, a->queries, a->d_v),
                        (ptrdiff_t)a->heads * a->d_v);
        }
    free(memory);
    return 1;
}

/* The way back: gradients of queries, keys and values, (batch, positions, heads, width). */
int NAME(attend_back)(
    const Attention *a, const float *mixed_gradient, float *query_gradient, float *key_gradient,
    float *value_gradient) {
    float *memory = malloc(room_size(a->queries, a->keys, a->d_k, a->d_v) * sizeof(float));
    if (!memory) return 0;
    Room room = cut_room(memory, a->queries, a->keys);
    ptrdiff_t width = (ptrdiff_t)a->heads * a->d_k, value_width = (ptrdiff_t)a->heads * a->d_v;
    for (int sentence = 0; sentence < a->batch; sentence++)
        for (int number = 0; number < a->heads; number++) {
            Head head = find_head(a, sentence, number, room.weights);
            HeadGradients to = {place(query_gradient, a, sentence, number, a->queries, a->d_k),
                                place(key_gradient, a, sentence, number, a->keys, a->d_k),
                                place(value_gradient, a, sentence, number, a->keys, a->d_v), width, width, value_width};
            attend_head_back(a, &head, &room, place((float *)mixed_gradient, a, sentence, number, a->queries, a->d_v),
                             value_width, &to);
        }
    free(memory);
    return 1;
}
