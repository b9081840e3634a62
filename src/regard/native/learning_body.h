/* Training: the loss of some sentences and its gradients for all weights, the whole way forward and back in one call.
 *
 * The model itself is regard/model; this computes the same for the paper's (norms behind residual sums, ReLU, no biases
 * in attention), and tests hold the two together. Sentences lie one after the other without padding. Each thread takes
 * groups of sentences of its own and adds to gradients of its own, so that threads wait for each other only at the end.
 * training/lesson.py says which thread has a sentence: that depends on the sentences and the number of threads alone. */

#include "sublayers.h"

/* ---- the model, forward and back --------------------------------------------------------------------------------- */

/* What a layer has read, once more: the first layer `first`, others what the norm of the layer before said. */
static const float *read_again(
    const Worker *w, const TrainedLayer *layers, const Kept *kept, int number, const float *first, int rows) {
    if (!number) return first;
    return join_again(w, &layers[number - 1].feed_forward_norm, kept[number - 1].centred, rows);
}

static void read_source(const Worker *w) {
    const Trained *m = w->model;
    const Side *side = &w->group.source;
    const float *x = w->source;
    embed(w, side, 0, m->source_embedding, w->source);
    for (int number = 0; number < m->encoder_layers; number++) {
        const TrainedLayer *layer = m->encoder + number;
        const Kept *kept = w->encoder + number;
        attend_to_own(w, layer, side, 0, x, kept);
        join_rows(w, side, encoder_site(number, 0), &layer->self_norm, x, kept->self_centred, kept->self_factor,
                  w->between);
        think_about(w, layer, side, inner_site(m, number), w->between, kept);
        join_rows(w, side, encoder_site(number, 1), &layer->feed_forward_norm, w->between, kept->centred, kept->factor,
                  w->encoded);
        x = w->encoded;
    }
}

static void read_source_back(const Worker *w, float *gradient) {
    const Trained *m = w->model;
    const Side *side = &w->group.source;
    for (int number = m->encoder_layers - 1; number >= 0; number--) {
        const TrainedLayer *layer = m->encoder + number;
        const Kept *kept = w->encoder + number;
        part_rows(w, side, encoder_site(number, 1), &layer->feed_forward_norm, kept->centred, kept->factor, gradient);
        const float *x = join_again(w, &layer->self_norm, kept->self_centred, side->rows);
        think_back(w, layer, side->rows, x, kept, gradient);
        part_rows(w, side, encoder_site(number, 0), &layer->self_norm, kept->self_centred, kept->self_factor, gradient);
        x = read_again(w, m->encoder, w->encoder, number, w->source, side->rows);
        attend_to_own_back(w, layer, side, 0, x, kept, gradient);
    }
    embed_back(w, side, 0, m->source_embedding, gradient);
}

static void read_target(const Worker *w) {
    const Trained *m = w->model;
    const Side *side = &w->group.target;
    const float *x = w->target;
    embed(w, side, 1, m->target_embedding, w->target);
    for (int number = 0; number < m->decoder_layers; number++) {
        const TrainedLayer *layer = m->decoder + number;
        const Kept *kept = w->decoder + number;
        attend_to_own(w, layer, side, 1, x, kept);
        join_rows(w, side, decoder_site(m, number, 0), &layer->self_norm, x, kept->self_centred, kept->self_factor,
                  w->between);
        attend_to_source(w, layer, w->between, w->encoded, kept);
        join_rows(w, side, decoder_site(m, number, 1), &layer->cross_norm, w->between, kept->cross_centred,
                  kept->cross_factor, w->behind);
        think_about(w, layer, side, inner_site(m, m->encoder_layers + number), w->behind, kept);
        join_rows(w, side, decoder_site(m, number, 2), &layer->feed_forward_norm, w->behind, kept->centred, kept->factor,
                  w->decoded);
        x = w->decoded;
    }
}

static void read_target_back(const Worker *w, float *gradient, float *memory_gradient) {
    const Trained *m = w->model;
    const Side *side = &w->group.target;
    for (int number = m->decoder_layers - 1; number >= 0; number--) {
        const TrainedLayer *layer = m->decoder + number;
        const Kept *kept = w->decoder + number;
        part_rows(w, side, decoder_site(m, number, 2), &layer->feed_forward_norm, kept->centred, kept->factor, gradient);
        const float *x = join_again(w, &layer->cross_norm, kept->cross_centred, side->rows);
        think_back(w, layer, side->rows, x, kept, gradient);
        part_rows(w, side, decoder_site(m, number, 1), &layer->cross_norm, kept->cross_centred, kept->cross_factor,
                  gradient);
        x = join_again(w, &layer->self_norm, kept->self_centred, side->rows);
        attend_to_source_back(w, layer, x, w->encoded, kept, gradient, memory_gradient);
        part_rows(w, side, decoder_site(m, number, 0), &layer->self_norm, kept->self_centred, kept->self_factor,
                  gradient);
        x = read_again(w, m->decoder, w->decoder, number, w->target, side->rows);
        attend_to_own_back(w, layer, side, 1, x, kept, gradient);
    }
    embed_back(w, side, 1, m->target_embedding, gradient);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void keep_layer(Worker *w, Kept *kept, int rows, int source_rows) {
    const Trained *m = w->model;
    size_t narrow = (size_t)rows * m->d_model;
    kept->projected = take(w, (size_t)rows * projected_width(m));
    kept->mixed = take(w, (size_t)rows * mixed_width(m));
    kept->self_centred = take(w, narrow);
    kept->self_factor = take(w, rows);
    if (source_rows) { /* a decoder's */
        kept->query = take(w, (size_t)rows * m->heads * m->d_k);
        kept->key_value = take(w, (size_t)source_rows * (m->heads * m->d_k + mixed_width(m)));
        kept->cross_mixed = take(w, (size_t)rows * mixed_width(m));
        kept->cross_centred = take(w, narrow);
        kept->cross_factor = take(w, rows);
    }
    kept->inner = take(w, (size_t)rows * inner_room(m));
    kept->centred = take(w, narrow);
    kept->factor = take(w, rows);
}

/* The loss of the worker's group, but for its hidden states and their gradient. */
static Loss open_loss(const Worker *w) {
    const Trained *m = w->model;
    const Lesson *lesson = w->lesson;
    return (Loss){.tokens = w->group.target.once,
                  .d_model = m->d_model,
                  .vocabulary = lesson->outputs,
                  .drawn = lesson->drawn,
                  .stands_for = lesson->stands_for,
                  .chunk = lesson->chunk,
                  .passes = lesson->passes,
                  .kept = 1 - lesson->smoothing,
                  .uniform = lesson->smoothing / m->vocabulary,
                  .consistency = lesson->consistency,
                  .targets = w->group.following,
                  .factors = lesson->factors ? w->factors : NULL,
                  .weight = m->output,
                  .weight_grad = w->output_gradient,
                  .sums = w->sums};
}

/* Cut up the worker's memory for its group; `longest` is its longest sentence. Returns the gradients of hidden states,
 * (target rows, d_model), and behind them those of the encoder's output. */
static float *cut_memory(Worker *w, int longest) {
    const Trained *m = w->model;
    int source = w->group.source.rows, target = w->group.target.rows, most = source > target ? source : target;
    int projected = projected_width(m), mixed = mixed_width(m), keys = m->heads * m->d_k;
    int inner = inner_room(m), widest = inner > mixed + keys ? inner : mixed + keys;
    int broadest = widest > projected ? widest : projected;
    broadest = broadest > m->d_model ? broadest : m->d_model;
    w->used = 0;
    w->source = take(w, (size_t)source * m->d_model);
    w->target = take(w, (size_t)target * m->d_model);
    w->encoded = take(w, (size_t)source * m->d_model);
    w->decoded = take(w, (size_t)target * m->d_model);
    for (int number = 0; number < m->encoder_layers; number++) keep_layer(w, w->encoder + number, source, 0);
    for (int number = 0; number < m->decoder_layers; number++) keep_layer(w, w->decoder + number, target, source);
    w->bits = (int16_t *)take(w, m->d_ff > m->d_model ? m->d_ff : m->d_model);
    w->group.source.draws = (RowDraws *)take(w, (size_t)source * sizeof(RowDraws) / sizeof(float));
    w->group.target.draws = (RowDraws *)take(w, (size_t)target * sizeof(RowDraws) / sizeof(float));
    w->factors = take(w, (size_t)target + PANEL);
    float *gradients = take(w, (size_t)(source + target) * m->d_model);
    /* What follows is used within layers, or by the loss between the way forward and the way back: one place for both. */
    size_t start = w->used;
    Loss loss = open_loss(w);
    w->loss = take(w, loss_size(&loss));
    size_t end = w->used;
    w->used = start;
    w->between = take(w, (size_t)most * m->d_model);
    w->behind = take(w, (size_t)target * m->d_model);
    w->change = take(w, (size_t)most * m->d_model);
    w->wide = take(w, (size_t)most * projected);
    w->wider = take(w, (size_t)most * widest);
    w->packed = take(w, packed_size(most, broadest));
    w->room = take(w, room_size(longest, longest, m->d_k, m->d_v));
    w->used = w->used > end ? w->used : end;
    return gradients;
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

/* A range of a lesson's sentences, who learns from it, and where its tokens begin. */
typedef struct {
    int first, end, thread;
    int64_t source, target;
} Range;

/* Cut a thread's part of a lesson into ranges of about as many target tokens each, with no more than lesson->rows at a time
 * where sentences allow it. Returns how many; the part then begins where it ended. */
static int cut_part(const Lesson *lesson, Range *part, Range *ranges) {
    int64_t targets = 0, done = 0;
    for (int sentence = part->first; sentence < part->end; sentence++) targets += lesson->target_lengths[sentence];
    int64_t wanted = (targets * lesson->passes + lesson->rows - 1) / lesson->rows;
    int count = 0;
    for (; part->first < part->end; part->first++) {
        if (done * wanted >= targets * count) ranges[count++] = *part;
        ranges[count - 1].end = part->first + 1;
        done += lesson->target_lengths[part->first];
        part->source += lesson->source_lengths[part->first];
        part->target += lesson->target_lengths[part->first];
    }
    return count;
}

/* Cut every thread's part of a lesson. Returns how many ranges that makes. */
static int cut_lesson(const Lesson *lesson, Range *ranges) {
    int count = 0;
    Range part = {0};
    for (; part.thread < lesson->threads; part.thread++) {
        part.end = lesson->ends[part.thread];
        count += cut_part(lesson, &part, ranges + count);
    }
    return count;
}

/* Describe one side of a range; returns its longest sentence. */
static int open_side(Side *side, const Lesson *lesson, const Range *range, const int32_t *lengths, const int32_t *tokens) {
    int row = 0, count = range->end - range->first, longest = 0;
    for (int sentence = 0; sentence < count * lesson->passes; sentence++) {
        side->lengths[sentence] = lengths[range->first + sentence % count];
        side->starts[sentence] = row;
        row += side->lengths[sentence];
        longest = side->lengths[sentence] > longest ? side->lengths[sentence] : longest;
    }
    side->rows = row;
    side->once = row / lesson->passes;
    side->tokens = tokens;
    return longest;
}

/* Describe a range as the worker's group; returns its longest sentence. */
static int open_group(Worker *w, const Range *range) {
    const Lesson *lesson = w->lesson;
    Group *group = &w->group;
    group->sentences = (range->end - range->first) * lesson->passes;
    group->draws = lesson->draws + range->first;
    group->factors = lesson->factors ? lesson->factors + range->first : NULL;
    group->following = lesson->following + range->target;
    int source = open_side(&group->source, lesson, range, lesson->source_lengths, lesson->source + range->source);
    int target = open_side(&group->target, lesson, range, lesson->target_lengths, lesson->target + range->target);
    return source > target ? source : target;
}

/* Say what each row of a side, 0 or 1, draws its dropout by. */
static void number_rows(const Group *group, int which, int passes) {
    const Side *side = which ? &group->target : &group->source;
    int count = group->sentences / passes;
    for (int sentence = 0; sentence < group->sentences; sentence++) {
        const Draws *draws = group->draws + sentence % count;
        RowDraws *rows = side->draws + side->starts[sentence];
        for (int place = 0; place < side->lengths[sentence]; place++)
            rows[place] = (RowDraws){draws->seed, draws->first[which][sentence / count] + place};
    }
}

/* Say what each token of the group's targets counts. */
static void weigh_rows(const Worker *w) {
    const Side *side = &w->group.target;
    memset(w->factors, 0, ((size_t)side->rows + PANEL) * sizeof(float));
    for (int sentence = 0; sentence < w->group.sentences; sentence++)
        for (int place = 0; place < side->lengths[sentence]; place++)
            w->factors[side->starts[sentence] + place] = w->group.factors[sentence];
}

/* Forward and back for the worker's group. */
static void learn_group(Worker *w, int longest) {
    const Trained *m = w->model;
    const Side *source = &w->group.source, *target = &w->group.target;
    float *gradient = cut_memory(w, longest), *memory_gradient = gradient + (ptrdiff_t)target->rows * m->d_model;
    for (int which = 0; which < 2; which++) number_rows(&w->group, which, w->lesson->passes);
    if (w->group.factors) weigh_rows(w);
    read_source(w);
    read_target(w);
    Loss loss = open_loss(w);
    loss.hidden = w->decoded;
    if (w->gradient) {
        memset(gradient, 0, (size_t)(source->rows + target->rows) * m->d_model * sizeof(float));
        loss.hidden_grad = gradient;
    }
    add_loss(&loss, w->loss);
    if (!w->gradient) return;
    read_target_back(w, gradient, memory_gradient);
    read_source_back(w, memory_gradient);
}

/* One thread's share of a lesson: the ranges that are its own. Returns the floats of memory that it takes; without memory
 * they are only counted. Returns 0 for want of a little more. */
static size_t learn_share(
    const Trained *model, const Lesson *lesson, const Range *ranges, int count, int thread, float *memory) {
    Worker w = {.model = model, .lesson = lesson, .gradient = lesson->gradients ? lesson->gradients[thread] : NULL,
                .sums = lesson->sums + 4 * thread, .memory = memory};
    if (w.gradient)
        w.output_gradient = lesson->output_gradients ? lesson->output_gradients[thread] : gradient_of(&w, model->output);
    size_t most = 1;
    int layers = model->encoder_layers + model->decoder_layers;
    int *numbers = malloc(4 * (size_t)lesson->sentences * lesson->passes * sizeof(int));
    Kept *kept = calloc(layers, sizeof(Kept));
    if (!numbers || !kept) {
        most = 0;
        goto end;
    }
    w.encoder = kept;
    w.decoder = kept + model->encoder_layers;
    int **places[] = {&w.group.source.starts, &w.group.source.lengths, &w.group.target.starts, &w.group.target.lengths};
    for (int number = 0; number < 4; number++)
        *places[number] = numbers + (size_t)number * lesson->sentences * lesson->passes;
    for (int number = 0; number < count; number++) {
        if (ranges[number].thread != thread) continue;
        int longest = open_group(&w, ranges + number);
        if (memory)
            learn_group(&w, longest);
        else
            cut_memory(&w, longest);
        most = w.used > most ? w.used : most;
    }
end:
    free(kept);
    free(numbers);
    return most;
}

/* Every thread's share of a lesson. Returns the most that a share takes, or 0. */
static int64_t learn_shares(
    const Trained *model, const Lesson *lesson, const Range *ranges, int count, float *const *memory) {
    int threads = lesson->threads;
    int64_t most = 0, least = 1;
#pragma omp parallel for num_threads(threads) if (memory && threads > 1) schedule(static, 1)                             \
    reduction(max : most) reduction(min : least)
    for (int thread = 0; thread < threads; thread++) {
        int64_t taken = learn_share(model, lesson, ranges, count, thread, memory ? memory[thread] : NULL);
        most = taken > most ? taken : most;
        least = taken < least ? taken : least;
    }
    return least ? most : 0;
}

/* Add up the loss of a lesson and its gradients.
 *
 * memory (threads) points to room for as many floats each as this returns if memory is NULL; then nothing is learned.
 * Returns 0 for want of a little more. */
int64_t NAME(learn)(const Trained *model, const Lesson *lesson, float *const *memory) {
    Range *ranges = malloc(((size_t)lesson->sentences + 1) * sizeof(Range));
    if (!ranges) return 0;
    int count = cut_lesson(lesson, ranges);
    int64_t taken = learn_shares(model, lesson, ranges, count, memory);
    free(ranges);
    return taken;
}
