/* The likeliest tokens, found while the logits are in the processor's cache: all of them never exist at once. */

enum {
    GROUP = 8 * PANEL, /* logits of a row that are computed before they are looked at */
    PARTS = 16,        /* into which a vocabulary is cut */
    END = 3,           /* tokens.py */
    FIRST_TEXT = 3,    /* the tokens before are never text */
};

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
