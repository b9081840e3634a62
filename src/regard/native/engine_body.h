/* The Transformer's forward pass, as search needs it: sentences of any lengths side by side without padding, hypotheses
 * that share what they have in common, and the likeliest tokens instead of all logits.
 *
 * The model itself is regard/model; this computes the same, and tests hold the two together. All widths are multiples of
 * 16. A working buffer's rows are as long as it is wide, rounded up to a panel. */

#include "linear.h"
#include "looking.h"
#include "likeliest.h"

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
