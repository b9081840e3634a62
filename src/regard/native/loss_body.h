/* The loss of regard/model/loss.py and that of regard/model/consistency.py, with their gradients: cross-entropy over a
 * vocabulary with label smoothing (§5.4), of one pass over some tokens or of two passes that shall agree.
 *
 * Logits are held transposed, (vocabulary, tokens): a vector holds one output of WIDTH tokens, so that maxima and sums
 * need no steps across a vector, and all three matrix products read the output layer's weights where they lie. A chunk
 * of tokens is gone over twice, in blocks of the vocabulary that stay in the cache:
 *
 *   1. logits = weight · hiddenᵀ; for each token, sums of e^(logit - m), where m is its largest logit of the block, and
 *      with one pass these powers in place of the logits;
 *   2. the gradient for the logits, in their place, which goes into two products at once.
 *
 * Some rows of weight may stand for others that are not there (training/output_sample.py): each counts as so many that
 * have its logit. They are blocks of their own, so that this is a factor of a block's sums.
 *
 * Whatever a token's chunk is, its numbers are the same to the last bit, and so is the sum of all gradients. */

#include "mapping.h"

enum { BLOCK = 240 }; /* rows of weight that are worked on at a time, with their logits in the second cache */

/* A chunk of tokens. A row of its buffers has `room` for them: rounded up to a panel, and a vector more, so that rows do
 * not collide in the cache. With two passes the tokens of the second lie behind those of the first, `half` columns on. */
typedef struct {
    int tokens;
    int room;
    int half;               /* columns of a pass, if there are two; otherwise 0 */
    const float *hidden;    /* (tokens, d_model) */
    const int64_t *targets; /* (tokens) */
    const float *factors;   /* (tokens) or NULL */
    float *hidden_grad;     /* (tokens, d_model), or NULL */
    float *transposed;      /* hidden as the first product reads it, in panels of tokens */
    float *panels;          /* hidden as the last product reads it, in panels of d_model */
    float *most;            /* (blocks, room) each block's largest logits */
    float *share;           /* (blocks, room) its sum of e^(logit - most) */
    float *dot;             /* (blocks, room) with two passes: its sum of e^(logit - most) · (logit - other pass's logit) */
    float *log_sum;         /* (room) log Σ e^logit */
    float *divergence;      /* (room) with two passes: from this to the other */
    float *target;          /* (room) the targets' logits */
    float *logits;          /* (vocabulary, room), then the gradient; one block if no gradient is wanted */
    float *packed;          /* for the product that makes hidden_grad */
} Chunk;

/* A block of rows of weight: drawn ones, or such as stand for themselves alone. */
typedef struct {
    int number;
    int first, rows;
    float count; /* of rows that each stands for */
} Block;

static inline int blocks_of(int rows) { return (rows + BLOCK - 1) / BLOCK; }
static inline int count_blocks(const Loss *loss) {
    return blocks_of(loss->drawn) + blocks_of(loss->vocabulary - loss->drawn);
}

static Block open_block(const Loss *loss, int number) {
    int certain = blocks_of(loss->drawn), is_drawn = number >= certain;
    int first = is_drawn ? loss->drawn + (number - certain) * BLOCK : number * BLOCK;
    int left = (is_drawn ? loss->vocabulary : loss->drawn) - first;
    return (Block){number, first, left < BLOCK ? left : BLOCK, is_drawn ? loss->stands_for : 1};
}

static inline int is_learning(const Loss *loss) { return loss->hidden_grad || loss->weight_grad; }

/* The logits of a block, and the largest of each token. */
static void predict_block(const Loss *loss, const Chunk *chunk, const Block *block, float *most, float *logits) {
    int width = loss->d_model, rows = block->rows;
    ptrdiff_t room = chunk->room;
    const float *weight = loss->weight + (ptrdiff_t)block->first * width;
    for (int token = 0; token < chunk->tokens; token += PANEL) {
        const float *panel = chunk->transposed + (ptrdiff_t)token * width;
        multiply_panel((FloatTile){weight, width, 1, panel, PANEL, width, logits + token, room, PANEL, NULL, 0, 0}, rows);
        for (int place = token; place < token + PANEL && place < chunk->tokens; place++) {
            int64_t row = chunk->targets[place] - block->first;
            if (row >= 0 && row < rows) chunk->target[place] = logits[row * room + place];
        }
        for (int place = token; place < token + PANEL; place += WIDTH) {
            Vector largest = all(-INFINITY);
            for (int row = 0; row < rows; row++) largest = larger(load(logits + row * room + place), largest);
            store(most + place, largest);
        }
    }
}

/* Replace a block's logits of WIDTH tokens by e^(logit - most) and sum these up; NaN where a logit is NaN or infinite.
 * Returns the logits' sum. */
static Vector sum_powers(float *logits, ptrdiff_t room, int rows, const float *most, float *share) {
    Vector largest = load(most), sum = all(0), total = all(0);
    for (int row = 0; row < rows; row++) {
        Vector logit = load(logits + row * room), power = exponential(logit - largest);
        store(logits + row * room, power);
        sum += power;
        total += logit;
    }
    store(share, sum);
    return total;
}

/* The same for WIDTH tokens of both passes, and what tells how far they disagree. */
static Vector compare_powers(const float *logits, const Chunk *chunk, int rows, const float *most, float *share, float *dot) {
    ptrdiff_t room = chunk->room, half = chunk->half;
    Vector largest = load(most), other_largest = load(most + half), total = all(0);
    Vector sum = all(0), other_sum = all(0), product = all(0), other_product = all(0);
    for (int row = 0; row < rows; row++) {
        Vector logit = load(logits + row * room), other = load(logits + row * room + half);
        Vector power = exponential(logit - largest), other_power = exponential(other - other_largest);
        sum += power;
        other_sum += other_power;
        product = multiply_add(power, logit - other, product);
        other_product = multiply_add(other_power, other - logit, other_product);
        total += logit + other;
    }
    store(share, sum);
    store(share + half, other_sum);
    store(dot, product);
    store(dot + half, other_product);
    return total;
}

/* The first pass over a block. Logits of columns without a token are zeros. */
static void weigh_block(const Loss *loss, const Chunk *chunk, const Block *block, float *logits) {
    ptrdiff_t row = (ptrdiff_t)block->number * chunk->room;
    float *most = chunk->most + row, *share = chunk->share + row, *dot = chunk->dot + row;
    predict_block(loss, chunk, block, most, logits);
    Vector total = all(0);
    int end = chunk->half ? chunk->half : chunk->tokens;
    for (int place = 0; place < end; place += WIDTH) {
        Vector sum = chunk->half
                         ? compare_powers(logits + place, chunk, block->rows, most + place, share + place, dot + place)
                         : sum_powers(logits + place, chunk->room, block->rows, most + place, share + place);
        if (chunk->factors) sum *= load(chunk->factors + place);
        total += sum;
    }
    loss->sums[2] += block->count * add_up(total);
    for (int place = 0; block->count != 1 && place < chunk->tokens; place++) most[place] += logf(block->count);
}

/* Join what the blocks know of a token: log Σ e^logit; `dot` becomes the mean of this pass's less the other's logit. */
static float conclude_token(const Chunk *chunk, int blocks, int place, double *dot) {
    ptrdiff_t room = chunk->room;
    float most = -INFINITY;
    double total = 0, product = 0;
    for (int block = 0; block < blocks; block++) {
        float own = chunk->most[block * room + place];
        most = own > most ? own : most;
    }
    for (int block = 0; block < blocks; block++) {
        double factor = exp((double)chunk->most[block * room + place] - most);
        total += factor * chunk->share[block * room + place];
        if (chunk->half) product += factor * chunk->dot[block * room + place];
    }
    *dot = product / total;
    return (float)(most + log(total));
}

/* All tokens; add up losses and divergences. */
static void conclude_chunk(const Loss *loss, const Chunk *chunk, int blocks) {
    double dot;
    for (int place = chunk->tokens; place < chunk->room; place++) chunk->log_sum[place] = 0;
    for (int place = 0; place < chunk->tokens; place++) {
        chunk->log_sum[place] = conclude_token(chunk, blocks, place, &dot);
        chunk->divergence[place] = dot;
        if (chunk->targets[place] < 0) continue; /* no token */
        double factor = chunk->factors ? chunk->factors[place] : 1;
        loss->sums[0] += factor * ((double)chunk->log_sum[place] - chunk->target[place]);
        loss->sums[1] += factor * chunk->log_sum[place];
    }
    for (int place = 0; place < chunk->half; place++) {
        double apart = (double)chunk->log_sum[place] - chunk->log_sum[place + chunk->half];
        chunk->divergence[place] -= apart;
        chunk->divergence[place + chunk->half] += apart;
        if (chunk->targets[place] < 0) continue;
        loss->sums[3] += (double)chunk->divergence[place] + chunk->divergence[place + chunk->half];
    }
}

/* The gradient of a block's logits, but for the targets: p - ε/V, where p = e^(logit - most) · e^(most - log_sum). The
 * latter factor takes the place of the block's share, which has been told. Of a drawn row both count often: in `most`
 * that is done already. */
static void differentiate(const Loss *loss, const Chunk *chunk, const Block *block, float *powers) {
    const float *most = chunk->most + (ptrdiff_t)block->number * chunk->room;
    float *share = chunk->share + (ptrdiff_t)block->number * chunk->room;
    Vector uniform = all(loss->uniform * block->count);
    for (int place = 0; place < chunk->tokens; place += WIDTH)
        store(share + place, exponential(load(most + place) - load(chunk->log_sum + place)));
    for (int row = 0; row < block->rows; row++, powers += chunk->room)
        for (int place = 0; place < chunk->tokens; place += WIDTH)
            store(powers + place, load(powers + place) * load(share + place) - uniform);
}

/* The same for two passes: ½ (p - ε/V) + c (p (log p - log r - KL(p‖r)) + p - r), and likewise with p and r exchanged. */
static void differentiate_both(const Loss *loss, const Chunk *chunk, const Block *block, float *logits) {
    Vector log_count = all(logf(block->count)), uniform = all(loss->uniform * block->count / 2);
    Vector c = all(loss->consistency), middle = all(0.5f + loss->consistency);
    int half = chunk->half;
    for (int row = 0; row < block->rows; row++, logits += chunk->room)
        for (int place = 0; place < half; place += WIDTH) {
            Vector log_p = load(logits + place) + log_count - load(chunk->log_sum + place);
            Vector log_r = load(logits + half + place) + log_count - load(chunk->log_sum + half + place);
            Vector p = exponential(log_p), r = exponential(log_r), difference = log_p - log_r;
            Vector from_p = difference - load(chunk->divergence + place);
            Vector from_r = -difference - load(chunk->divergence + half + place);
            store(logits + place, p * multiply_add(c, from_p, middle) - c * r - uniform);
            store(logits + half + place, r * multiply_add(c, from_r, middle) - c * p - uniform);
        }
}

/* Multiply each token's gradient for a block's logits by what the token counts. */
static void scale_tokens(const Chunk *chunk, int rows, float *gradient) {
    for (int row = 0; row < rows; row++, gradient += chunk->room)
        for (int place = 0; place < chunk->tokens; place += WIDTH)
            store(gradient + place, load(gradient + place) * load(chunk->factors + place));
}

/* weight_grad (rows, width) += gradient · hidden, a block's. */
static void add_to_weight(const Chunk *chunk, const float *gradient, int rows, float *weight_grad, int width) {
    for (int column = 0; column < width; column += PANEL) {
        FloatTile tile = {gradient, chunk->room, 1, chunk->panels + (ptrdiff_t)column * chunk->tokens,
                          PANEL, chunk->tokens, weight_grad + column, width, PANEL, NULL, 0, 1};
        multiply_panel(tile, rows);
    }
}

/* The second pass over a block. */
static void learn_block(const Loss *loss, const Chunk *chunk, const Block *block, float *gradient) {
    int rows = block->rows;
    ptrdiff_t place_of_block = (ptrdiff_t)block->first * loss->d_model;
    if (chunk->half)
        differentiate_both(loss, chunk, block, gradient);
    else
        differentiate(loss, chunk, block, gradient);
    for (int place = 0; place < chunk->tokens; place++) {
        int64_t row = chunk->targets[place] - block->first;
        if (row >= 0 && row < rows) gradient[row * chunk->room + place] -= chunk->half ? loss->kept / 2 : loss->kept;
    }
    if (chunk->factors) scale_tokens(chunk, rows, gradient);
    if (chunk->hidden_grad)
        add_product_of_columns(gradient, chunk->room, chunk->tokens, loss->weight + place_of_block, loss->d_model,
                               loss->d_model, rows, chunk->hidden_grad, chunk->packed);
    if (loss->weight_grad) add_to_weight(chunk, gradient, rows, loss->weight_grad + place_of_block, loss->d_model);
}

/* Both passes over a chunk. */
static void learn_chunk(const Loss *loss, const Chunk *chunk) {
    int learning = is_learning(loss), blocks = count_blocks(loss);
    ptrdiff_t room = chunk->room;
    lay_out_keys(chunk->hidden, loss->d_model, chunk->tokens, loss->d_model, chunk->transposed);
    lay_out_values(chunk->hidden, loss->d_model, chunk->tokens, loss->d_model, chunk->panels);
    for (int place = 0; place < chunk->tokens; place++) chunk->target[place] = NAN; /* of a target that is no token */
    for (int number = 0; number < blocks; number++) {
        Block block = open_block(loss, number);
        weigh_block(loss, chunk, &block, chunk->logits + (learning ? block.first * room : 0));
    }
    conclude_chunk(loss, chunk, blocks);
    for (int number = 0; learning && number < blocks; number++) {
        Block block = open_block(loss, number);
        learn_block(loss, chunk, &block, chunk->logits + block.first * room);
    }
}

/* A chunk of one pass: the tokens as they lie. */
static void learn_tokens(const Loss *loss, Chunk *chunk, int start, int tokens) {
    ptrdiff_t at = (ptrdiff_t)start * loss->d_model;
    chunk->tokens = tokens;
    chunk->hidden = loss->hidden + at;
    chunk->targets = loss->targets + start;
    chunk->factors = loss->factors ? loss->factors + start : NULL;
    chunk->hidden_grad = loss->hidden_grad ? loss->hidden_grad + at : NULL;
    learn_chunk(loss, chunk);
}

/* A chunk of two passes: `both` has the rows of the one, filled up to whole panels, then those of the other. */
static void learn_pairs(const Loss *loss, Chunk *chunk, int start, int tokens, float *both, int64_t *targets) {
    ptrdiff_t width = loss->d_model, other = loss->tokens;
    int half = chunk->half = rounded_up(tokens, PANEL);
    float *gradient = both + 2 * half * width;
    memset(both, 0, 4 * half * width * sizeof(float));
    for (int place = 0; place < 2 * half; place++) targets[place] = -1;
    for (int number = 0; number < 2; number++) {
        memcpy(both + number * half * width, loss->hidden + (number * other + start) * width, tokens * width * sizeof(float));
        memcpy(targets + number * half, loss->targets + start, tokens * sizeof(int64_t));
    }
    chunk->tokens = 2 * half;
    chunk->hidden = both;
    chunk->targets = targets;
    chunk->hidden_grad = loss->hidden_grad ? gradient : NULL;
    learn_chunk(loss, chunk);
    for (int number = 0; loss->hidden_grad && number < 2; number++)
        memcpy(loss->hidden_grad + (number * other + start) * width, gradient + number * half * width,
               tokens * width * sizeof(float));
}

/* Tokens of a chunk, both passes', in whole panels. */
static inline int padded_tokens(const Loss *loss) { return rounded_up(loss->chunk, PANEL) * loss->passes; }

/* Floats that a chunk takes. */
static size_t loss_size(const Loss *loss) {
    size_t padded = padded_tokens(loss), width = loss->d_model, room = padded + WIDTH;
    size_t blocks = count_blocks(loss), rows = is_learning(loss) ? loss->vocabulary : BLOCK;
    size_t both = loss->passes == 2 ? 2 * padded * width + 2 * padded : 0; /* and targets of twice a float's size */
    return 2 * padded * width + (3 * blocks + 3 + rows) * room + packed_columns(BLOCK) + both;
}

/* Add up the losses of all tokens and their gradients; `work` has room for loss_size floats. */
static void add_loss(const Loss *loss, float *work) {
    ptrdiff_t padded = padded_tokens(loss), width = loss->d_model, room = padded + WIDTH;
    ptrdiff_t blocks = count_blocks(loss), rows = is_learning(loss) ? loss->vocabulary : BLOCK;
    float *most = work + 2 * padded * width, *share = most + blocks * room, *dot = share + blocks * room;
    float *log_sum = dot + blocks * room, *logits = log_sum + 3 * room;
    float *packed = logits + rows * room, *both = packed + packed_columns(BLOCK);
    Chunk chunk = {.room = room, .transposed = work, .panels = work + padded * width, .most = most, .share = share,
                   .dot = dot, .log_sum = log_sum, .divergence = log_sum + room, .target = log_sum + 2 * room,
                   .logits = logits, .packed = packed};
    unsigned control = _mm_getcsr();
    _mm_setcsr(control | 0x8040); /* what is too small for a normal number is zero: the processor is slow with it */
    for (int start = 0; start < loss->tokens; start += loss->chunk) {
        int tokens = loss->tokens - start < loss->chunk ? loss->tokens - start : loss->chunk;
        if (loss->passes == 2)
            learn_pairs(loss, &chunk, start, tokens, both, (int64_t *)(both + 2 * padded * width));
        else
            learn_tokens(loss, &chunk, start, tokens);
    }
    _mm_setcsr(control);
}

/* The same in memory of its own. Returns 0 for want of it. */
int NAME(loss)(const Loss *loss) {
    float *work = make_floats(loss_size(loss));
    if (!work) return 0;
    add_loss(loss, work);
    free(work);
    return 1;
}
