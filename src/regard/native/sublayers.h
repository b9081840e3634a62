/* The parts of a training step: dropout and residual blocks, attention and feed-forward networks of a group of sentences,
 * each forward and back. learning_body.h puts them together. */

#include "drawing.h"

/* ---- a group of sentences ---------------------------------------------------------------------------------------- */

/* What a row's dropout is drawn by. */
typedef struct {
    uint64_t seed;
    int64_t number;
} RowDraws;

/* One side of a group: rows of all its sentences; two passes are one more set of sentences behind the first. */
typedef struct {
    int rows;
    int once;              /* rows of one pass */
    const int32_t *tokens; /* (once) */
    int *starts, *lengths; /* (sentences) */
    RowDraws *draws;       /* (rows) */
} Side;

typedef struct {
    int sentences; /* both passes' */
    Side source, target;
    const Draws *draws; /* (sentences of one pass) */
    const float *factors; /* (sentences) what the loss of each counts; NULL: all count 1 */
    const int64_t *following;
} Group;

/* What a layer keeps for the way back. What comes out of a norm is not kept, but computed again from what went in. */
typedef struct {
    float *projected;                       /* (rows, queries, keys and values) */
    float *mixed;                           /* (rows, H·d_v) */
    float *self_centred, *self_factor;      /* (rows, d_model), (rows) */
    float *query, *key_value, *cross_mixed; /* (rows, H·d_k), (source rows, keys and values), (rows, H·d_v) */
    float *cross_centred, *cross_factor;
    float *inner; /* (rows, d_ff), each with inner_room */
    float *centred, *factor;
} Kept;

/* A thread at work. */
typedef struct {
    const Trained *model;
    const Lesson *lesson;
    float *gradient; /* of all weights, as they lie; NULL: not wanted */
    float *output_gradient;
    double *sums;
    float *memory;               /* of all that follows; NULL: it is only counted */
    size_t used;                 /* floats of it */
    Group group;
    Kept *encoder, *decoder;     /* by layers */
    float *source, *target;      /* (rows, d_model) what the first layers read */
    float *encoded, *decoded;    /* (rows, d_model) what layers pass on, and at last what the stacks say */
    float *between, *behind;     /* (rows, d_model) what comes out of norms within a layer */
    float *packed, *room, *loss; /* for products, for attention and for the loss */
    float *factors;              /* (target rows, and PANEL more) what each counts */
    float *change, *wide, *wider; /* (rows, d_model), (rows, projected), (rows, inner_room) for any use */
    int16_t *bits;
} Worker;

static inline int projected_width(const Trained *m) { return m->heads * (2 * m->d_k + m->d_v); }
static inline int mixed_width(const Trained *m) { return m->heads * m->d_v; }

/* Floats from one row of a feed-forward network's inner layer to the next. Rows that lie a multiple of 4 KiB apart would
 * drive each other out of the first cache. */
static inline int inner_room(const Trained *m) { return m->d_ff % 1024 ? m->d_ff : m->d_ff + LINE; }

static float *take(Worker *w, size_t count) {
    float *taken = w->memory ? w->memory + w->used : NULL;
    w->used += (count + LINE - 1) / LINE * LINE;
    return taken;
}

/* The gradient of a weight lies where the weight lies. */
static inline float *gradient_of(const Worker *w, const float *weight) {
    return w->gradient + (weight - w->model->weights);
}

/* ---- dropout and residual blocks --------------------------------------------------------------------------------- */

/* Each place where numbers are dropped has a number: the two inputs, then two in each encoder layer, three in each
 * decoder layer; behind these the words of the two inputs, and the inside of each layer's feed-forward network. */
static inline int encoder_site(int layer, int block) { return 2 + 2 * layer + block; }
static inline int decoder_site(const Trained *m, int layer, int block) {
    return 2 + 2 * m->encoder_layers + 3 * layer + block;
}
static inline int word_site(const Trained *m, int side) { return decoder_site(m, m->decoder_layers, side); }
static inline int inner_site(const Trained *m, int layer) { return word_site(m, 2) + layer; }

/* Draw a row's random bits; NULL if nothing is dropped. They do not depend on the group that the row is in. */
static const int16_t *draw_some(
    const Worker *w, const Dropping *dropping, const Side *side, int site, int row, int width) {
    if (!dropping->drops) return NULL;
    draw_row(side->draws[row].seed, site, side->draws[row].number, width, w->bits);
    return w->bits;
}

static const int16_t *draw(const Worker *w, const Side *side, int site, int row) {
    return draw_some(w, &w->lesson->dropping, side, site, row, w->model->d_model);
}

/* Whether a row of an input, 0 or 1, has no embedding. */
static int loses_word(const Worker *w, const Side *side, int which, int row) {
    const Dropping *dropping = &w->lesson->word_dropping;
    const int16_t *bits = draw_some(w, dropping, side, word_site(w->model, which), row, 4);
    return bits && bits[0] < dropping->bound;
}

static Residual residual(const Worker *w, const Norm *norm) {
    return (Residual){.width = w->model->d_model, .bound = w->lesson->dropping.bound, .scale = w->lesson->dropping.scale,
                      .epsilon = w->model->epsilon, .weight = norm->weight, .bias = norm->bias};
}

/* y = LayerNorm(x + Dropout(change)). */
static void join_rows(
    const Worker *w, const Side *side, int site, const Norm *norm, const float *x, float *centred, float *factor,
    float *y) {
    Residual block = residual(w, norm);
    for (ptrdiff_t row = 0, at = 0; row < side->rows; row++, at += block.width)
        join_row(&block, draw(w, side, site, row), x + at, w->change + at, centred + at, factor + row, y + at);
}

/* y once more. */
static const float *join_again(const Worker *w, const Norm *norm, const float *centred, int rows) {
    int width = w->model->d_model;
    for (ptrdiff_t start = 0; start < (ptrdiff_t)rows * width; start += width)
        for (int at = 0; at < width; at += WIDTH)
            store(w->between + start + at,
                  multiply_add(load(centred + start + at), load(norm->weight + at), load(norm->bias + at)));
    return w->between;
}

/* The way back, in place: `gradient` becomes that of x, and w->change that of what was added. */
static void part_rows(
    const Worker *w, const Side *side, int site, const Norm *norm, const float *centred, const float *factor,
    float *gradient) {
    Residual block = residual(w, norm);
    float *weight = gradient_of(w, norm->weight), *bias = gradient_of(w, norm->bias);
    for (ptrdiff_t row = 0, at = 0; row < side->rows; row++, at += block.width)
        part_row(&block, draw(w, side, site, row), gradient + at, centred + at, factor[row], gradient + at,
                 w->change + at, weight, bias);
}

/* x = Dropout(embedding · scale + position), for one of the two inputs, 0 or 1. */
static void embed(const Worker *w, const Side *side, int which, const float *embedding, float *x) {
    const Trained *m = w->model;
    const Dropping *dropping = &w->lesson->dropping;
    for (int sentence = 0; sentence < w->group.sentences; sentence++)
        for (int place = 0; place < side->lengths[sentence]; place++) {
            int row = side->starts[sentence] + place;
            const float *from = embedding + (ptrdiff_t)side->tokens[row % side->once] * m->d_model;
            const float *position = m->position + (ptrdiff_t)place * m->d_model;
            Vector scale = all(loses_word(w, side, which, row) ? 0 : m->scale);
            const int16_t *bits = draw(w, side, which, row);
            for (int at = 0; at < m->d_model; at += WIDTH) {
                Vector number = multiply_add(load(from + at), scale, load(position + at));
                if (bits) number *= factors(bits + at, dropping->bound, dropping->scale);
                store(x + (ptrdiff_t)row * m->d_model + at, number);
            }
        }
}

static void embed_back(const Worker *w, const Side *side, int which, const float *embedding, const float *gradient) {
    const Trained *m = w->model;
    const Dropping *dropping = &w->lesson->dropping;
    float *learned = gradient_of(w, embedding);
    Vector scale = all(m->scale);
    for (int row = 0; row < side->rows; row++, gradient += m->d_model) {
        if (loses_word(w, side, which, row)) continue;
        float *to = learned + (ptrdiff_t)side->tokens[row % side->once] * m->d_model;
        const int16_t *bits = draw(w, side, which, row);
        for (int at = 0; at < m->d_model; at += WIDTH) {
            Vector number = load(gradient + at) * scale;
            if (bits) number *= factors(bits + at, dropping->bound, dropping->scale);
            store(to + at, load(to + at) + number);
        }
    }
}

/* ---- attention --------------------------------------------------------------------------------------------------- */

/* Rows of queries, keys and values, each `stride` floats apart, heads side by side in them. */
typedef struct {
    const float *query, *key, *value;
    int query_stride, key_stride;
} Looking;

typedef struct {
    float *query, *key, *value;
} LookingBack;

static Attention attention_of(const Trained *m, const Looking *l, const Side *from, const Side *to, int sentence, int causal) {
    ptrdiff_t query = (ptrdiff_t)from->starts[sentence] * l->query_stride;
    ptrdiff_t key = (ptrdiff_t)to->starts[sentence] * l->key_stride;
    return (Attention){
        1, m->heads, from->lengths[sentence], to->lengths[sentence], m->d_k, m->d_v, causal, NULL,
        {l->query + query, 0, m->d_k, l->query_stride}, {l->key + key, 0, m->d_k, l->key_stride},
        {l->value + key, 0, m->d_v, l->key_stride},
    };
}

/* mixed (rows, H·d_v): each sentence's rows of `from` look at its rows of `to`. */
static void look_around(
    const Worker *w, const Looking *l, const Side *from, const Side *to, int causal, float *mixed) {
    const Trained *m = w->model;
    for (int sentence = 0; sentence < w->group.sentences; sentence++) {
        Attention a = attention_of(m, l, from, to, sentence, causal);
        Room room = cut_room(w->room, a.queries, a.keys);
        for (int number = 0; number < m->heads; number++) {
            Head head = find_head(&a, 0, number, room.weights);
            attend_head(&a, &head, &room, mixed + (ptrdiff_t)from->starts[sentence] * mixed_width(m) + number * m->d_v,
                        mixed_width(m));
        }
    }
}

/* The way back; gradients lie as the queries, keys and values do. */
static void look_around_back(
    const Worker *w, const Looking *l, const Side *from, const Side *to, int causal, const float *mixed_gradient,
    const LookingBack *back) {
    const Trained *m = w->model;
    for (int sentence = 0; sentence < w->group.sentences; sentence++) {
        Attention a = attention_of(m, l, from, to, sentence, causal);
        Room room = cut_room(w->room, a.queries, a.keys);
        ptrdiff_t query = (ptrdiff_t)from->starts[sentence] * l->query_stride;
        ptrdiff_t key = (ptrdiff_t)to->starts[sentence] * l->key_stride;
        const float *mixed = mixed_gradient + (ptrdiff_t)from->starts[sentence] * mixed_width(m);
        for (int number = 0; number < m->heads; number++) {
            Head head = find_head(&a, 0, number, room.weights);
            HeadGradients gradients = {back->query + query + number * m->d_k, back->key + key + number * m->d_k,
                                       back->value + key + number * m->d_v, l->query_stride, l->key_stride,
                                       l->key_stride};
            attend_head_back(&a, &head, &room, mixed + number * m->d_v, mixed_width(m), &gradients);
        }
    }
}

static Looking look_at_own(const Trained *m, const float *projected) {
    int keys = m->heads * m->d_k;
    return (Looking){projected, projected + keys, projected + 2 * keys, projected_width(m), projected_width(m)};
}

static Looking look_at_other(const Trained *m, const float *query, const float *key_value) {
    int keys = m->heads * m->d_k;
    return (Looking){query, key_value, key_value + keys, keys, keys + mixed_width(m)};
}

/* ---- sub-layers, forward and back -------------------------------------------------------------------------------- */

/* The forward functions leave in w->change what the sub-layer adds. Back, w->change has the gradient of that, and
 * `gradient` is increased by what the sub-layer's input gets. */

static void map(const Worker *w, const float *x, int rows, int inputs, const float *weight, int outputs, float *y) {
    map_rows(x, inputs, rows, inputs, weight, outputs, NULL, 0, y, outputs, w->packed);
}

/* The two products back of a linear map, but for its bias. */
static void unmap_rows(
    const Worker *w, const float *y_gradient, ptrdiff_t y_stride, int rows, int outputs, const float *x,
    ptrdiff_t x_stride, const float *weight, int inputs, int add, float *x_gradient) {
    add_product_of_columns(y_gradient, y_stride, outputs, x, x_stride, inputs, rows, gradient_of(w, weight), w->packed);
    map_back(y_gradient, y_stride, rows, outputs, weight, inputs, add, x_gradient, x_stride, w->packed);
}

static void unmap(
    const Worker *w, const float *y_gradient, int rows, int outputs, const float *x, const float *weight, int inputs,
    int add, float *x_gradient) {
    unmap_rows(w, y_gradient, outputs, rows, outputs, x, inputs, weight, inputs, add, x_gradient);
}

static void attend_to_own(
    const Worker *w, const TrainedLayer *layer, const Side *side, int causal, const float *x, const Kept *kept) {
    const Trained *m = w->model;
    map(w, x, side->rows, m->d_model, layer->query_key_value, projected_width(m), kept->projected);
    Looking looking = look_at_own(m, kept->projected);
    look_around(w, &looking, side, side, causal, kept->mixed);
    map(w, kept->mixed, side->rows, mixed_width(m), layer->self_output, m->d_model, w->change);
}

static void attend_to_own_back(
    const Worker *w, const TrainedLayer *layer, const Side *side, int causal, const float *x, const Kept *kept,
    float *gradient) {
    const Trained *m = w->model;
    int keys = m->heads * m->d_k;
    float *mixed = w->wider, *projected = w->wide; /* their gradients */
    unmap(w, w->change, side->rows, m->d_model, kept->mixed, layer->self_output, mixed_width(m), 0, mixed);
    Looking looking = look_at_own(m, kept->projected);
    LookingBack back = {projected, projected + keys, projected + 2 * keys};
    look_around_back(w, &looking, side, side, causal, mixed, &back);
    unmap(w, projected, side->rows, projected_width(m), x, layer->query_key_value, m->d_model, 1, gradient);
}

static void attend_to_source(
    const Worker *w, const TrainedLayer *layer, const float *x, const float *memory, const Kept *kept) {
    const Trained *m = w->model;
    const Side *source = &w->group.source, *target = &w->group.target;
    int keys = m->heads * m->d_k;
    map(w, x, target->rows, m->d_model, layer->cross_query, keys, kept->query);
    map(w, memory, source->rows, m->d_model, layer->cross_key_value, keys + mixed_width(m), kept->key_value);
    Looking looking = look_at_other(m, kept->query, kept->key_value);
    look_around(w, &looking, target, source, 0, kept->cross_mixed);
    map(w, kept->cross_mixed, target->rows, mixed_width(m), layer->cross_output, m->d_model, w->change);
}

static void attend_to_source_back(
    const Worker *w, const TrainedLayer *layer, const float *x, const float *memory, const Kept *kept,
    float *gradient, float *memory_gradient) {
    const Trained *m = w->model;
    const Side *source = &w->group.source, *target = &w->group.target;
    int keys = m->heads * m->d_k, both = keys + mixed_width(m);
    float *mixed = w->wider, *query = w->wider + (ptrdiff_t)target->rows * mixed_width(m), *key_value = w->wide;
    unmap(w, w->change, target->rows, m->d_model, kept->cross_mixed, layer->cross_output, mixed_width(m), 0, mixed);
    Looking looking = look_at_other(m, kept->query, kept->key_value);
    LookingBack back = {query, key_value, key_value + keys};
    look_around_back(w, &looking, target, source, 0, mixed, &back);
    unmap(w, query, target->rows, keys, x, layer->cross_query, m->d_model, 1, gradient);
    unmap(w, key_value, source->rows, both, memory, layer->cross_key_value, m->d_model, 1, memory_gradient);
}

/* Drop some of the inside of a feed-forward network. */
static void drop_inner(const Worker *w, const Side *side, int site, float *inner) {
    const Dropping *dropping = &w->lesson->inner_dropping;
    int width = w->model->d_ff, room = inner_room(w->model);
    for (int row = 0; row < side->rows; row++, inner += room) {
        const int16_t *bits = draw_some(w, dropping, side, site, row, width);
        for (int at = 0; bits && at < width; at += WIDTH)
            store(inner + at, load(inner + at) * factors(bits + at, dropping->bound, dropping->scale));
    }
}

/* w->change = FFN(x); `layer_site` is where its inside is dropped. */
static void think_about(
    const Worker *w, const TrainedLayer *layer, const Side *side, int layer_site, const float *x, const Kept *kept) {
    const Trained *m = w->model;
    int width = m->d_model, room = inner_room(m), rows = side->rows;
    map_rows(x, width, rows, width, layer->inner, m->d_ff, layer->inner_bias, 1, kept->inner, room, w->packed);
    drop_inner(w, side, layer_site, kept->inner);
    map_rows(kept->inner, room, rows, m->d_ff, layer->outer, width, layer->outer_bias, 0, w->change, width, w->packed);
}

static void think_back(
    const Worker *w, const TrainedLayer *layer, int rows, const float *x, const Kept *kept, float *gradient) {
    const Trained *m = w->model;
    int width = m->d_model, room = inner_room(m);
    float *inner = w->wider; /* its gradient */
    Vector scale = all(w->lesson->inner_dropping.scale);
    learn_bias(w->change, width, rows, width, gradient_of(w, layer->outer_bias));
    unmap_rows(w, w->change, width, rows, width, kept->inner, room, layer->outer, m->d_ff, 0, inner);
    for (int row = 0; row < rows; row++)
        for (ptrdiff_t at = (ptrdiff_t)row * room; at < (ptrdiff_t)row * room + m->d_ff; at += WIDTH)
            store(inner + at, where_positive(load(kept->inner + at), load(inner + at)) * scale);
    learn_bias(inner, room, rows, m->d_ff, gradient_of(w, layer->inner_bias));
    unmap_rows(w, inner, room, rows, m->d_ff, x, width, layer->inner, width, 1, gradient);
}
