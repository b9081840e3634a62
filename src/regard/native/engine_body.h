/* The Transformer's forward pass, as search needs it: sentences of any lengths side by side without padding, hypotheses
 * that share what they have in common, and the likeliest tokens instead of all logits.
 *
 * The model itself is regard/model; this computes the same, and tests hold the two together. All widths are multiples of
 * 16. A working buffer's rows are as long as it is wide, rounded up to a panel. */

#include <math.h>
#include <stdlib.h>

#include "engine.h"
#include "products.h"

enum {
    GROUP = 8 * PANEL, /* logits of a row that are computed before they are looked at */
    PARTS = 16,        /* into which a vocabulary is cut */
    END = 3,           /* tokens.py */
    FIRST_TEXT = 3,    /* the tokens before are never text */
    WORTH_SHARING = 1 << 21, /* multiplications for which other threads are woken */
};

/* ---- linear maps and norms --------------------------------------------------------------------------------------- */

/* y (rows, outputs) = x Wᵀ + b; x has rows of `stride` floats. Threads, if there are several, share the outputs. */
static int apply(
    const Linear *linear, const float *x, ptrdiff_t stride, int rows, float *y, ptrdiff_t y_stride, int rectify) {
    int panels = (linear->outputs + PANEL - 1) / PANEL;
    int8_t *numbers = linear->scale ? malloc((size_t)CHUNK * linear->inputs) : NULL;
    if (linear->scale && !numbers) return 0;
    for (int start = 0; start < rows; start += CHUNK) {
        int count = rows - start < CHUNK ? rows - start : CHUNK;
        int parts = (double)count * linear->inputs * linear->outputs < WORTH_SHARING ? 1 : regard_threads;
        const float *from = x + start * stride;
        float *to = y + start * y_stride;
        float scale[CHUNK];
        int32_t offset[CHUNK];
        round_rows(linear, from, stride, count, numbers, scale, offset);
        Input input = {numbers, scale, offset};
#pragma omp parallel for num_threads(parts) if (parts > 1) schedule(static)
        for (int part = 0; part < parts; part++) {
            int first = panels * part / parts * PANEL, end = panels * (part + 1) / parts * PANEL;
            end = end < linear->outputs ? end : linear->outputs;
            multiply_some(linear, from, stride, &input, count, first, end, to + first, y_stride, rectify);
        }
    }
    free(numbers);
    return 1;
}

/* to = LayerNorm(x + change), a row; `change` may be NULL. The sum goes to `sum`, unless that is NULL. */
static void normalise(
    const float *x, const float *change, const Norm *norm, int width, float epsilon, float *sum, float *to) {
    Vector total = all(0);
    for (int at = 0; at < width; at += WIDTH) {
        Vector both = load(x + at);
        if (change) both += load(change + at);
        if (sum) store(sum + at, both);
        store(to + at, both);
        total += both;
    }
    Vector mean = all(add_up(total) / width), squares = all(0);
    for (int at = 0; at < width; at += WIDTH) {
        Vector centred = load(to + at) - mean;
        squares = multiply_add(centred, centred, squares);
    }
    Vector factor = all(1 / sqrtf(add_up(squares) / width + epsilon));
    for (int at = 0; at < width; at += WIDTH)
        store(to + at, multiply_add((load(to + at) - mean) * factor, load(norm->weight + at), load(norm->bias + at)));
}

/* Close a residual block and open the next one: x and what the next sub-layer reads, `input`.
 *
 * Post-norm: x = LayerNorm(x + change), and the next sub-layer reads x itself. Pre-norm: x = x + change, and the next
 * sub-layer reads LayerNorm(x) by its own norm. */
static void join(
    const Stack *stack, float *x, const float *change, int rows, const Norm *own, const Norm *next, float *input) {
    int width = stack->d_model, stride = rounded_up(width, PANEL);
    for (int row = 0; row < rows; row++, x += stride, change += stride, input += stride) {
        if (stack->pre_norm)
            normalise(x, change, next, width, stack->epsilon, x, input);
        else
            normalise(x, change, own, width, stack->epsilon, NULL, x);
    }
}

/* ---- attention --------------------------------------------------------------------------------------------------- */

/* Lay out keys (length, width) such that `multiply` gives a query's products with all of them. */
static void lay_out_keys(const float *keys, ptrdiff_t stride, int length, int width, float *panels) {
    for (int start = 0; start < length; start += PANEL, panels += PANEL * width)
        for (int part = 0; part < PANEL; part += WIDTH) {
            int count = length - start - part;
            const float *from = keys + (start + part) * stride;
            for (int at = 0; at < width; at++)
                store(panels + at * PANEL + part, count > 0 ? pick(from + at, stride, count) : all(0));
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

/* Turn a row of scores into weights, softmax(scores · scale). */
static void soften(float *scores, int length, float scale) {
    int end = rounded_up(length, WIDTH);
    for (int at = length; at < end; at++) scores[at] = -INFINITY;
    Vector most = all(-INFINITY), factor = all(scale), total = all(0);
    for (int at = 0; at < end; at += WIDTH) most = larger(load(scores + at), most);
    most = all(largest_of(most));
    for (int at = 0; at < end; at += WIDTH) {
        Vector weight = exponential((load(scores + at) - most) * factor);
        store(scores + at, weight);
        total += weight;
    }
    for (int at = length; at < end; at++) scores[at] = 0;
    Vector share = all(1 / add_up(total));
    for (int at = 0; at < end; at += WIDTH) store(scores + at, load(scores + at) * share);
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

/* ---- layers ------------------------------------------------------------------------------------------------------ */

/* Working memory of a pass over some rows: one block, cut up. */
typedef struct {
    float *x;         /* (rows, d_model) the residual stream */
    float *input;     /* (rows, d_model) what a sub-layer reads: x itself in post-norm */
    float *change;    /* (rows, d_model) what a sub-layer adds */
    float *projected; /* (rows, queries, keys and values) */
    float *mixed;     /* (rows, H·d_v) */
    float *inner;     /* (rows, d_ff) */
    float *scores;    /* of attention */
    int width, projected_width, mixed_width, inner_width;
} Work;

static int make_work(Work *work, const Stack *stack, int rows, size_t scores) {
    work->width = rounded_up(stack->d_model, PANEL);
    work->projected_width = rounded_up(stack->heads * (2 * stack->d_k + stack->d_v), PANEL);
    work->mixed_width = rounded_up(stack->heads * stack->d_v, PANEL);
    work->inner_width = rounded_up(stack->d_ff, PANEL);
    size_t row = 2 * work->width + (stack->pre_norm ? work->width : 0) + work->projected_width + work->mixed_width +
                 work->inner_width;
    float *block = malloc((row * rows + scores) * sizeof(float));
    if (!block) return 0;
    work->x = block;
    work->change = work->x + (size_t)rows * work->width;
    work->projected = work->change + (size_t)rows * work->width;
    work->mixed = work->projected + (size_t)rows * work->projected_width;
    work->inner = work->mixed + (size_t)rows * work->mixed_width;
    work->scores = work->inner + (size_t)rows * work->inner_width;
    work->input = stack->pre_norm ? work->scores + scores : work->x;
    return 1;
}

/* Embed a token at a position: what the first layer reads. */
static void enter(const Stack *stack, int token, int position, float *x) {
    int place = position < stack->positions ? position : stack->positions - 1;
    const float *embedding = stack->embedding + (ptrdiff_t)token * stack->d_model;
    const float *at_place = stack->position + (ptrdiff_t)place * stack->d_model;
    for (int at = 0; at < stack->d_model; at += WIDTH)
        store(x + at, multiply_add(load(embedding + at), all(stack->scale), load(at_place + at)));
}

/* Open the first block: pre-norm normalises what was embedded. */
static void begin(const Stack *stack, const Work *work, int rows) {
    if (!stack->pre_norm) return;
    for (int row = 0; row < rows; row++)
        normalise(work->x + (ptrdiff_t)row * work->width, NULL, &stack->layer[0].self_norm, stack->d_model,
                  stack->epsilon, NULL, work->input + (ptrdiff_t)row * work->width);
}

/* The feed-forward sub-layer; `next` is the norm of the block after it, or the stack's last. */
static int think(const Stack *stack, const Layer *layer, const Work *work, int rows, const Norm *next) {
    int done = apply(&layer->inner, work->input, work->width, rows, work->inner, work->inner_width, 1) &&
               apply(&layer->outer, work->inner, work->inner_width, rows, work->change, work->width, 0);
    join(stack, work->x, work->change, rows, &layer->feed_forward_norm, next, work->input);
    return done;
}

static const Norm *next_norm(const Stack *stack, int layer) {
    return layer + 1 < stack->layers ? &stack->layer[layer + 1].self_norm : &stack->last_norm;
}

/* Read sentences, one after the other in `tokens`: hidden (all tokens, d_model). Returns 0 for want of memory. */
int NAME(encode)(const Stack *stack, int sentences, const int32_t *lengths, const int32_t *tokens, float *hidden) {
    int rows = 0, longest = 0;
    for (int sentence = 0; sentence < sentences; sentence++) {
        rows += lengths[sentence];
        longest = lengths[sentence] > longest ? lengths[sentence] : longest;
    }
    size_t room = (size_t)longest * rounded_up(longest, PANEL), heads = stack->heads * head_size(stack, longest);
    Work work;
    if (!make_work(&work, stack, rows, room + heads)) return 0;
    int done = 1;
    float *source = work.scores + room;
    for (int sentence = 0, row = 0; sentence < sentences; sentence++)
        for (int place = 0; place < lengths[sentence]; place++, row++)
            enter(stack, tokens[row], place, work.x + (ptrdiff_t)row * work.width);
    begin(stack, &work, rows);
    for (int number = 0; number < stack->layers; number++) {
        const Layer *layer = stack->layer + number;
        done &= apply(&layer->query_key_value, work.input, work.width, rows, work.projected, work.projected_width, 0);
        for (int sentence = 0, row = 0; sentence < sentences; row += lengths[sentence++]) {
            const float *queries = work.projected + (ptrdiff_t)row * work.projected_width;
            lay_out(stack, queries + stack->heads * stack->d_k, work.projected_width, lengths[sentence], source);
            look(stack, queries, work.projected_width, lengths[sentence], source, lengths[sentence],
                 work.mixed + (ptrdiff_t)row * work.mixed_width, work.mixed_width, work.scores);
        }
        done &= apply(&layer->self_output, work.mixed, work.mixed_width, rows, work.change, work.width, 0);
        join(stack, work.x, work.change, rows, &layer->self_norm, &layer->feed_forward_norm, work.input);
        done &= think(stack, layer, &work, rows, next_norm(stack, number));
    }
    for (int row = 0; row < rows; row++)
        memcpy(hidden + (ptrdiff_t)row * stack->d_model, work.input + (ptrdiff_t)row * work.width,
               stack->d_model * sizeof(float));
    free(work.x);
    return done;
}

/* Lay out the sources' keys and values for every layer of the decoder: memory (layers, the sum of sizes), where a
 * sentence's size is `regard_memory_size`. */
int NAME(remember)(
    const Stack *stack, int sentences, const int32_t *lengths, const float *hidden, const int64_t *starts,
    float *memory, int64_t memory_size) {
    int rows = 0, width = rounded_up(stack->heads * (stack->d_k + stack->d_v), PANEL);
    for (int sentence = 0; sentence < sentences; sentence++) rows += lengths[sentence];
    float *projected = malloc((size_t)rows * width * sizeof(float));
    if (!projected) return 0;
    int done = 1;
    for (int number = 0; number < stack->layers; number++) {
        done &= apply(&stack->layer[number].cross_key_value, hidden, stack->d_model, rows, projected, width, 0);
        for (int sentence = 0, row = 0; sentence < sentences; row += lengths[sentence++])
            lay_out(stack, projected + (ptrdiff_t)row * width, width, lengths[sentence],
                    memory + number * memory_size + starts[sentence]);
    }
    free(projected);
    return done;
}

int64_t NAME(memory_size)(const Stack *stack, int length) { return stack->heads * head_size(stack, length); }

/* ---- the likeliest tokens ---------------------------------------------------------------------------------------- */

/* What is known of a row's distribution after some of its logits. */
typedef struct {
    float most, sum; /* the largest logit, and the sum of e^(logit - most) */
    float end;       /* the end token's logit */
    float *scores;   /* (count) the best logits, best first, */
    int32_t *best;   /* and their tokens */
} Known;

static void insert(Known *known, int count, float logit, int token) {
    int place = count - 1;
    for (; place > 0 && known->scores[place - 1] < logit; place--) {
        known->scores[place] = known->scores[place - 1];
        known->best[place] = known->best[place - 1];
    }
    known->scores[place] = logit;
    known->best[place] = token;
}

/* Take note of some logits, (width) from output `first` on; their number is a multiple of WIDTH. */
static void take_note(Known *known, const float *logits, int width, int first, int count) {
    Vector most = all(-INFINITY);
    for (int at = 0; at < width; at += WIDTH) most = larger(load(logits + at), most);
    float largest = largest_of(most);
    if (largest > known->most) {
        known->sum *= expf(known->most - largest);
        known->most = largest;
    }
    Vector sum = all(0), centre = all(known->most);
    for (int at = 0; at < width; at += WIDTH) sum += exponential(load(logits + at) - centre);
    known->sum += add_up(sum);
    if (!(largest > known->scores[count - 1])) return;
    for (int at = 0; at < width; at += WIDTH)
        for (unsigned found = any_above(load(logits + at), all(known->scores[count - 1])); found; found &= found - 1) {
            int place = at + __builtin_ctz(found);
            if (logits[place] > known->scores[count - 1] && first + place >= FIRST_TEXT)
                insert(known, count, logits[place], first + place);
        }
}

/* Compute some rows' logits from output `begin` to `end`, a group at a time, and keep what is wanted of them. */
static void note_logits(
    const Linear *output, const Step *step, const float *x, ptrdiff_t stride, const Input *input, int first, int rows,
    int begin, int end, Known *known, float *logits) {
    for (int start = begin; start < end; start += GROUP) {
        int width = end - start < GROUP ? end - start : GROUP, room = rounded_up(width, WIDTH);
        multiply_some(output, x, stride, input, rows, start, start + width, logits, GROUP, 0);
        for (int row = 0; row < rows; row++) {
            float *own = logits + row * GROUP;
            int sentence = (first + row) / step->beams;
            const uint8_t *allowed =
                step->allowed ? step->allowed + (ptrdiff_t)step->sentence[sentence] * output->outputs + start : NULL;
            for (int at = 0; allowed && at < width; at++)
                if (!allowed[at]) own[at] = -INFINITY;
            for (int at = width; at < room; at++) own[at] = -INFINITY;
            if (start == 0) known[row].end = own[END];
            take_note(known + row, own, room, start, step->count);
        }
    }
}

/* Add what is known of other logits of a row. */
static void add_known(Known *known, const Known *other, int count) {
    if (other->most > known->most) {
        known->sum = known->sum * expf(known->most - other->most) + other->sum;
        known->most = other->most;
    } else /* without a largest logit so far, the sum is 0, or NaN */
        known->sum += other->sum * (known->most > -INFINITY ? expf(other->most - known->most) : 1);
    known->end = other->end > known->end ? other->end : known->end;
    for (int rank = 0; rank < count && other->scores[rank] > known->scores[count - 1]; rank++)
        insert(known, count, other->scores[rank], other->best[rank]);
}

/* Turn what is known of a row into log-probabilities; at the limit only the end token may follow. */
static void conclude(const Known *known, int count, int at_limit) {
    float log_sum = known->most + logf(known->sum);
    if (at_limit) {
        for (int place = 0; place < count; place++) known->scores[place] = -INFINITY;
        known->scores[0] = known->end;
        known->best[0] = END;
    }
    for (int place = 0; place < count; place++) known->scores[place] -= log_sum;
}

static void know_nothing(Known *known, int rows, int count, float *scores, int32_t *best) {
    for (int row = 0; row < rows; row++, scores += count, best += count) {
        known[row] = (Known){-INFINITY, 0, -INFINITY, scores, best};
        for (int rank = 0; rank < count; rank++) scores[rank] = -INFINITY, best[rank] = END;
    }
}

/* Find the likeliest tokens of some rows, of which `first` is the first. The vocabulary is cut into parts, always the
 * same ones, so that a result does not depend on how many threads share them. Returns 0 for want of memory. */
static int predict(const Linear *output, const Step *step, const float *x, ptrdiff_t stride, int first, int rows) {
    int groups = (output->outputs + GROUP - 1) / GROUP, parts = groups < PARTS ? groups : PARTS, count = step->count;
    size_t best = (size_t)parts * rows * count, logits = (size_t)rows * GROUP;
    size_t numbers = output->scale ? ((size_t)rows * output->inputs + 3) / 4 : 0;
    Known *known = malloc((size_t)parts * rows * sizeof(Known) + (2 * best + parts * logits + numbers) * sizeof(float));
    if (!known) return 0;
    float *scores = (float *)(known + (size_t)parts * rows), *buffers = scores + 2 * best;
    float scale[CHUNK];
    int32_t offset[CHUNK], *tokens = (int32_t *)(scores + best);
    Input input = {(int8_t *)(buffers + parts * logits), scale, offset};
    round_rows(output, x, stride, rows, (int8_t *)input.numbers, scale, offset);
    int threads = (double)rows * output->inputs * output->outputs < WORTH_SHARING ? 1 : regard_threads;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int part = 0; part < parts; part++) {
        int begin = groups * part / parts * GROUP, end = groups * (part + 1) / parts * GROUP;
        ptrdiff_t own = (ptrdiff_t)part * rows;
        know_nothing(known + own, rows, count, scores + own * count, tokens + own * count);
        note_logits(output, step, x, stride, &input, first, rows, begin,
                    end < output->outputs ? end : output->outputs, known + own, buffers + part * logits);
    }
    for (int row = 0; row < rows; row++) {
        ptrdiff_t place = (ptrdiff_t)(first + row) * count;
        Known whole;
        know_nothing(&whole, 1, count, step->scores + place, step->best + place);
        for (int part = 0; part < parts; part++) add_known(&whole, known + (ptrdiff_t)part * rows + row, count);
        conclude(&whole, count, step->at_limit[(first + row) / step->beams]);
    }
    free(known);
    return 1;
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

/* Attention over what a hypothesis has written so far, for all rows of a layer. */
static void look_at_past(const Stack *stack, const Step *step, int layer, const Work *work, float **seen) {
    int rows = step->sentences * step->beams, width = stack->heads * (stack->d_k + stack->d_v);
    float *own = step->kept[step->past] + (ptrdiff_t)layer * rows * width;
    for (int row = 0; row < rows; row++) {
        const float *query = work->projected + (ptrdiff_t)row * work->projected_width;
        memcpy(own + (ptrdiff_t)row * width, query + stack->heads * stack->d_k, width * sizeof(float));
        for (int past = 0; past < step->past; past++)
            seen[past] = step->kept[past] + ((ptrdiff_t)layer * step->kept_rows[past] +
                                             step->ancestors[(ptrdiff_t)past * rows + row]) * width;
        seen[step->past] = own + (ptrdiff_t)row * width;
        look_back(stack, query, seen, step->past + 1, work->mixed + (ptrdiff_t)row * work->mixed_width, work->scores);
    }
}

/* Attention over the sources, sentence by sentence: its hypotheses look at the same keys. */
static void look_at_source(const Stack *stack, const Step *step, int layer, const Work *work) {
    for (int sentence = 0; sentence < step->sentences; sentence++) {
        int number = step->sentence[sentence];
        ptrdiff_t row = (ptrdiff_t)sentence * step->beams;
        look(stack, work->projected + row * work->projected_width, work->projected_width, step->beams,
             step->memory + layer * step->memory_size + step->starts[number], step->lengths[number],
             work->mixed + row * work->mixed_width, work->mixed_width, work->scores);
    }
}

/* Read the newest token of every hypothesis and say which are the likeliest to follow. Returns 0 for want of memory. */
int NAME(step)(const Stack *stack, const Linear *output, const Step *step) {
    int rows = step->sentences * step->beams, longest = step->past + 1;
    for (int sentence = 0; sentence < step->sentences; sentence++) {
        int length = step->lengths[step->sentence[sentence]];
        longest = length > longest ? length : longest;
    }
    size_t scores = (size_t)rounded_up(longest, PANEL) * (step->beams > ROWS ? step->beams : ROWS);
    Work work;
    if (!make_work(&work, stack, rows, scores + (step->past + 1) * 2)) return 0;
    int done = 1;
    float **seen = (float **)(work.scores + scores);
    for (int row = 0; row < rows; row++) enter(stack, step->tokens[row], step->past, work.x + (ptrdiff_t)row * work.width);
    begin(stack, &work, rows);
    for (int number = 0; number < stack->layers; number++) {
        const Layer *layer = stack->layer + number;
        done &= apply(&layer->query_key_value, work.input, work.width, rows, work.projected, work.projected_width, 0);
        look_at_past(stack, step, number, &work, seen);
        done &= apply(&layer->self_output, work.mixed, work.mixed_width, rows, work.change, work.width, 0);
        join(stack, work.x, work.change, rows, &layer->self_norm, &layer->cross_norm, work.input);
        done &= apply(&layer->cross_query, work.input, work.width, rows, work.projected, work.projected_width, 0);
        look_at_source(stack, step, number, &work);
        done &= apply(&layer->cross_output, work.mixed, work.mixed_width, rows, work.change, work.width, 0);
        join(stack, work.x, work.change, rows, &layer->cross_norm, &layer->feed_forward_norm, work.input);
        done &= think(stack, layer, &work, rows, next_norm(stack, number));
    }
    for (int start = 0; start < rows && done; start += CHUNK)
        done = predict(output, step, work.input + (ptrdiff_t)start * work.width, work.width, start,
                       rows - start < CHUNK ? rows - start : CHUNK);
    free(work.x);
    return done;
}
