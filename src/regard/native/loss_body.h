/* The loss of regard/model/loss.py with its gradients: cross-entropy over a vocabulary, and what §5.4 adds by sums.
 *
 * Logits are held transposed, (vocabulary, tokens): a vector holds one output of WIDTH tokens, so that maxima and sums
 * need no steps across a vector, and all three matrix products read the output layer's weights where they lie. A chunk
 * of tokens is gone over twice, in blocks of the vocabulary that stay in the cache:
 *
 *   1. logits = weight · hiddenᵀ, replaced by e^(logit - m), where m is a token's largest logit of the block;
 *   2. times e^m / Σ e^logit, minus 1 - ε at the target, they are the gradient, which goes into two products at once.
 *
 * Whatever a token's chunk is, its numbers are the same to the last bit, and so is the sum of all gradients. */

enum { BLOCK = 240 }; /* rows of weight that are worked on at a time, with their logits in the second cache */

/* A chunk of tokens. A row of its buffers has `room` for them: rounded up to a panel, and a vector more, so that rows do
 * not collide in the cache. */
typedef struct {
    int tokens;
    int room;
    const float *hidden;    /* (tokens, d_model) */
    const int64_t *targets; /* (tokens) */
    float *hidden_grad;     /* (tokens, d_model), or NULL */
    float *transposed;      /* hidden as the first product reads it, in panels of tokens */
    float *panels;          /* hidden as the last product reads it, in panels of d_model */
    float *most;            /* (blocks, room) each block's largest logits */
    float *share;           /* (blocks, room) its sum of e^(logit - most); then e^most / Σ e^logit */
    float *target;          /* (room) the targets' logits */
    float *logits;          /* (BLOCK, room) of one block */
    float *powers;          /* (vocabulary, room) e^(logit - most), then the gradient; one block if none is wanted */
} Chunk;

/* Find a block's largest logits of a vector of tokens. */
static void find_largest(const float *logits, ptrdiff_t room, int rows, float *most) {
    Vector largest = all(-INFINITY);
    for (int row = 0; row < rows; row++) largest = larger(load(logits + row * room), largest);
    store(most, largest);
}

/* powers = e^(logits - most), and their sums; NaN where a logit is NaN or infinite. */
static void exponentiate(const Chunk *chunk, int rows, const float *most, float *sum, float *powers) {
    const float *logits = chunk->logits;
    memset(sum, 0, chunk->room * sizeof(float));
    for (int row = 0; row < rows; row++, logits += chunk->room, powers += chunk->room)
        for (int place = 0; place < chunk->tokens; place += WIDTH) {
            Vector power = exponential(load(logits + place) - load(most + place));
            store(powers + place, power);
            store(sum + place, load(sum + place) + power);
        }
}

/* The first pass over a block, rows `first` to `first + rows` of weight. */
static void predict_block(
    const Loss *loss, const Chunk *chunk, int first, int rows, float *most, float *sum, float *powers) {
    int width = loss->d_model, room = chunk->room;
    const float *weight = loss->weight + (ptrdiff_t)first * width;
    for (int token = 0; token < chunk->tokens; token += PANEL) {
        const float *panel = chunk->transposed + (ptrdiff_t)token * width;
        float *logits = chunk->logits + token;
        multiply_panel((FloatTile){weight, width, 1, panel, PANEL, width, logits, room, PANEL, NULL, 0, 0}, rows);
        for (int place = 0; place < PANEL && token + place < chunk->tokens; place++) {
            int64_t row = chunk->targets[token + place] - first;
            if (row >= 0 && row < rows) chunk->target[token + place] = logits[row * room + place];
        }
        for (int place = 0; place < PANEL; place += WIDTH)
            find_largest(logits + place, room, rows, most + token + place);
    }
    exponentiate(chunk, rows, most, sum, powers);
}

/* Join what the blocks know of each token; add up losses. */
static void conclude_chunk(const Loss *loss, const Chunk *chunk, int blocks) {
    int room = chunk->room;
    for (int place = 0; place < chunk->tokens; place += WIDTH) {
        Vector most = all(-INFINITY), total = all(0);
        for (int block = 0; block < blocks; block++) most = larger(load(chunk->most + block * room + place), most);
        for (int block = 0; block < blocks; block++) {
            Vector share = exponential(load(chunk->most + block * room + place) - most);
            total = multiply_add(load(chunk->share + block * room + place), share, total);
            store(chunk->share + block * room + place, share);
        }
        for (int block = 0; block < blocks; block++)
            store(chunk->share + block * room + place, load(chunk->share + block * room + place) / total);
        float mosts[WIDTH], totals[WIDTH];
        store(mosts, most);
        store(totals, total);
        for (int at = 0; at < WIDTH && place + at < chunk->tokens; at++) {
            double log_sum = mosts[at] + log(totals[at]);
            loss->sums[0] += log_sum - chunk->target[place + at];
            loss->sums[1] += log_sum;
        }
    }
}

/* hidden_grad (tokens, width) += gradientᵀ · weight, with a block's weights as they lie. */
static void add_to_hidden(const Chunk *chunk, const float *gradient, int rows, const float *weight, int width) {
    for (int column = 0; column < width; column += PANEL) {
        FloatTile tile = {gradient, 1,     chunk->room, weight + column, width, rows, chunk->hidden_grad + column,
                          width,    PANEL, NULL,        0,               1};
        multiply_panel(tile, chunk->tokens);
    }
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
static void learn_block(
    const Loss *loss, const Chunk *chunk, int first, int rows, const float *share, float *gradient) {
    int room = chunk->room;
    ptrdiff_t place_of_block = (ptrdiff_t)first * loss->d_model;
    for (int row = 0; row < rows; row++)
        for (int place = 0; place < chunk->tokens; place += WIDTH) {
            float *power = gradient + (ptrdiff_t)row * room + place;
            store(power, load(power) * load(share + place));
        }
    for (int place = 0; place < chunk->tokens; place++) {
        int64_t row = chunk->targets[place] - first;
        if (row >= 0 && row < rows) gradient[row * room + place] -= loss->kept;
    }
    if (chunk->hidden_grad) add_to_hidden(chunk, gradient, rows, loss->weight + place_of_block, loss->d_model);
    if (loss->weight_grad) add_to_weight(chunk, gradient, rows, loss->weight_grad + place_of_block, loss->d_model);
}

/* Both passes over a chunk. */
static void learn_chunk(const Loss *loss, const Chunk *chunk) {
    int learning = loss->hidden_grad || loss->weight_grad, blocks = 0;
    ptrdiff_t room = chunk->room;
    lay_out_keys(chunk->hidden, loss->d_model, chunk->tokens, loss->d_model, chunk->transposed);
    lay_out_values(chunk->hidden, loss->d_model, chunk->tokens, loss->d_model, chunk->panels);
    for (int place = 0; place < chunk->tokens; place++) chunk->target[place] = NAN; /* of a target that is no token */
    for (int first = 0; first < loss->vocabulary; first += BLOCK, blocks++) {
        int rows = loss->vocabulary - first < BLOCK ? loss->vocabulary - first : BLOCK;
        predict_block(loss, chunk, first, rows, chunk->most + blocks * room, chunk->share + blocks * room,
                      chunk->powers + (learning ? first * room : 0));
    }
    conclude_chunk(loss, chunk, blocks);
    for (int block = 0; learning && block < blocks; block++) {
        int first = block * BLOCK, rows = loss->vocabulary - first < BLOCK ? loss->vocabulary - first : BLOCK;
        learn_block(loss, chunk, first, rows, chunk->share + block * room, chunk->powers + first * room);
    }
}

/* Add up the losses of all tokens and their gradients. Returns 0 for want of memory. */
int NAME(loss)(const Loss *loss) {
    ptrdiff_t width = loss->d_model, padded = rounded_up(loss->chunk, PANEL), room = padded + WIDTH;
    ptrdiff_t blocks = (loss->vocabulary + BLOCK - 1) / BLOCK;
    ptrdiff_t rows = loss->hidden_grad || loss->weight_grad ? loss->vocabulary : BLOCK;
    float *work = malloc((2 * padded * width + (2 * blocks + 1 + BLOCK + rows) * room) * sizeof(float));
    if (!work) return 0;
    float *most = work + 2 * padded * width, *share = most + blocks * room, *target = share + blocks * room;
    float *logits = target + room, *powers = logits + BLOCK * room;
    unsigned control = _mm_getcsr();
    _mm_setcsr(control | 0x8040); /* what is too small for a normal number is zero: the processor is slow with it */
    for (int start = 0; start < loss->tokens; start += loss->chunk) {
        int tokens = loss->tokens - start < loss->chunk ? loss->tokens - start : loss->chunk;
        Chunk chunk = {tokens, room, loss->hidden + start * width, loss->targets + start,
                       loss->hidden_grad ? loss->hidden_grad + start * width : NULL,
                       work, work + padded * width, most, share, target, logits, powers};
        learn_chunk(loss, &chunk);
    }
    _mm_setcsr(control);
    free(work);
    return 1;
}
