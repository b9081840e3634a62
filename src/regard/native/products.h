/* Matrix products x Wᵀ whose weights were laid out once.
 *
 * A panel holds the weights of 2 × WIDTH outputs, input by input: a step of the innermost loop reads two vectors of
 * weights and, for each row of a tile, one number of input. In eight bits a step takes four inputs at once: weights are
 * 0 to 255 (128 added), inputs -127 to 127, and the 128 comes off again at the end, times the sum of a row's inputs. */

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Weights are read once from end to end, so that memory can be asked for them well before they are needed: the
 * processor's own guesses end at every page of 4 KiB. Asking past the end does no harm. */
#define AHEAD 4096
#define ask_for(address) _mm_prefetch((const char *)(address), _MM_HINT_T0)

enum { PANEL = 2 * WIDTH, CHUNK = 18 * ROWS }; /* outputs of a panel; rows that share a pass over the weights */
enum { INPUTS_AHEAD = AHEAD / (PANEL * sizeof(float)) };

/* Memory for floats that begins with a line of the cache, so that no vector lies across two lines. */
enum { LINE = 16 };
static float *make_floats(size_t count) {
    return aligned_alloc(LINE * sizeof(float), (count + LINE) / LINE * LINE * sizeof(float));
}

static inline int rounded_up(int number, int unit) { return (number + unit - 1) / unit * unit; }

/* Rows of input in eight bits. */
typedef struct {
    const int8_t *numbers; /* (rows, inputs) */
    const float *scale;    /* (rows) of the numbers */
    const int32_t *offset; /* (rows) 128 times the sum of a row's numbers */
} Input;

/* Store the first `columns` sums of a row of a tile, with bias, and without what is below zero if `rectify`. */
static __attribute__((noinline)) void finish_part(
    Vector first, Vector second, float *to, int columns, const float *bias, int rectify) {
    float sums[PANEL];
    store(sums, first);
    store(sums + WIDTH, second);
    for (int column = 0; column < columns; column++) {
        float sum = sums[column] + (bias ? bias[column] : 0);
        to[column] = rectify && sum < 0 ? 0 : sum;
    }
}

static inline __attribute__((always_inline)) void finish_row(
    Vector first, Vector second, float *to, int columns, const float *bias, int rectify) {
    if (columns < PANEL) {
        finish_part(first, second, to, columns, bias, rectify);
        return;
    }
    if (bias) {
        first += load(bias);
        second += load(bias + WIDTH);
    }
    if (rectify) {
        first = larger(all(0), first); /* NaN stays NaN */
        second = larger(all(0), second);
    }
    store(to, first);
    store(to + WIDTH, second);
}

/* A product's tile: y (rows, PANEL) = x (rows, inputs) · panel. */
typedef struct {
    const float *x;
    ptrdiff_t stride, step; /* floats from one row to the next, and from one input to the next */
    const float *panel;
    ptrdiff_t panel_step; /* floats from one input's weights to the next's */
    int inputs;
    float *y;
    ptrdiff_t y_stride;
    int columns; /* of the panel that are wanted */
    const float *bias;
    int rectify;         /* without what is below zero */
    int add;             /* to what is in y; then all columns are wanted */
    ptrdiff_t to_next;   /* if `add`: floats from y to that of the next tile, for which memory is asked ahead */
    float *few, *packed; /* where x, (inputs, ROWS), and the panel are left for later tiles, or NULL */
} FloatTile;

static inline __attribute__((always_inline)) void sum_tile(
    int rows, ptrdiff_t stride, ptrdiff_t step, const FloatTile *t, int picks, int packs) {
    Vector sums[ROWS][2];
    const float *x = t->x, *weights = t->panel;
    float *few = t->few, *packed = t->packed;
    ptrdiff_t ahead = INPUTS_AHEAD * (packs ? t->panel_step : PANEL);
#pragma GCC unroll 16
    for (int row = 0; row < rows; row++) {
        const float *y = t->y + row * t->y_stride;
        sums[row][0] = t->add ? load(y) : all(0);
        sums[row][1] = t->add ? load(y + WIDTH) : all(0);
        y += t->add ? t->to_next : 0; /* what the next tile will add to, or where this one's sums will go */
        ask_for(y);
        ask_for(y + WIDTH);
    }
    for (int input = 0; input < t->inputs; input++, weights += t->panel_step) {
        Vector first = load(weights), second = load(weights + WIDTH);
        ask_for(weights + ahead);
        ask_for(weights + ahead + WIDTH);
        if (packs) {
            store(packed, first);
            store(packed + WIDTH, second);
            packed += PANEL;
        }
        if (picks) {
            ask_for(x + (input + INPUTS_AHEAD) * step);
            ask_for(x + (input + INPUTS_AHEAD) * step + rows - 1);
            memcpy(few, x + input * step, rows * sizeof(float));
            few += ROWS;
        }
#pragma GCC unroll 16
        for (int row = 0; row < rows; row++) {
            Vector number = all(x[row * stride + input * step]);
            sums[row][0] = multiply_add(number, first, sums[row][0]);
            sums[row][1] = multiply_add(number, second, sums[row][1]);
        }
    }
#pragma GCC unroll 16
    for (int row = 0; row < rows; row++)
        finish_row(sums[row][0], sums[row][1], t->y + row * t->y_stride, t->columns, t->bias, t->rectify);
}

/* One function for each number of rows, so that it is a constant and its sums stay in registers; and in each a loop for
 * inputs that lie side by side, and one for rows that do. */
#define EACH_NUMBER_OF_ROWS(define)                                                                                  \
    define(1) define(2) define(3) define(4) define(5) define(6) MORE_ROWS(define)
#if ROWS == 12
#define MORE_ROWS(define) define(7) define(8) define(9) define(10) define(11) define(12)
#else
#define MORE_ROWS(define)
#endif
#define FLOAT_TILE(rows)                                                                                             \
    static __attribute__((noinline)) void float_tile_##rows(const FloatTile *tile) {                                 \
        if (tile->step == 1)                                                                                         \
            sum_tile(rows, tile->stride, 1, tile, 0, 0);                                                             \
        else if (tile->stride == 1)                                                                                  \
            sum_tile(rows, 1, tile->step, tile, 0, 0);                                                               \
        else                                                                                                         \
            sum_tile(rows, tile->stride, tile->step, tile, 0, 0);                                                    \
    }
EACH_NUMBER_OF_ROWS(FLOAT_TILE)
#define NAME_OF(rows) float_tile_##rows,
static void (*const float_tiles[])(const FloatTile *) = {NULL, EACH_NUMBER_OF_ROWS(NAME_OF)};
#undef NAME_OF

/* A tile of ROWS rows that leaves behind what it reads: reading numbers that lie far apart takes no time of its own while
 * others are multiplied. x lies side by side by inputs or by rows; only the latter is left behind. */
static __attribute__((noinline)) void leaving_tile(const FloatTile *tile) {
    if (tile->step == 1)
        sum_tile(ROWS, tile->stride, 1, tile, 0, 1);
    else if (!tile->few)
        sum_tile(ROWS, 1, tile->step, tile, 0, 1);
    else if (!tile->packed)
        sum_tile(ROWS, 1, tile->step, tile, 1, 0);
    else
        sum_tile(ROWS, 1, tile->step, tile, 1, 1);
}

/* Compute all rows of one panel's outputs, tile by tile. */
static void multiply_panel(FloatTile tile, int rows) {
    const float *x = tile.x;
    float *y = tile.y;
    tile.to_next = ROWS * tile.y_stride;
    for (int row = 0; row < rows; row += ROWS) {
        tile.x = x + row * tile.stride;
        tile.y = y + row * tile.y_stride;
        float_tiles[rows - row < ROWS ? rows - row : ROWS](&tile);
    }
}

/* The same where a panel lies apart in other weights: the first tile leaves it in `packed` for the others. Inputs of x
 * lie side by side. */
static void pack_and_multiply_panel(FloatTile tile, int rows, float *packed) {
    if (rows > ROWS) {
        tile.to_next = ROWS * tile.y_stride;
        tile.packed = packed;
        leaving_tile(&tile);
        tile.packed = NULL;
        tile.panel = packed;
        tile.panel_step = PANEL;
        tile.x += ROWS * tile.stride;
        tile.y += ROWS * tile.y_stride;
        rows -= ROWS;
    }
    multiply_panel(tile, rows);
}

/* y (rows, outputs) = x (rows, inputs) · panels; a row's inputs lie `step` floats apart. */
static void multiply_apart(
    const float *x, ptrdiff_t stride, ptrdiff_t step, int rows, const float *panels, int inputs, int outputs, float *y,
    ptrdiff_t y_stride, const float *bias, int rectify) {
    for (int column = 0; column < outputs; column += PANEL) {
        int columns = outputs - column < PANEL ? outputs - column : PANEL;
        FloatTile tile = {x,        stride,  step,    panels + (ptrdiff_t)column * inputs, PANEL, inputs, y + column,
                          y_stride, columns, bias ? bias + column : NULL, rectify, 0};
        multiply_panel(tile, rows);
    }
}

static void multiply(
    const float *x, ptrdiff_t stride, int rows, const float *panels, int inputs, int outputs, float *y,
    ptrdiff_t y_stride, const float *bias, int rectify) {
    multiply_apart(x, stride, 1, rows, panels, inputs, outputs, y, y_stride, bias, rectify);
}

/* y (rows, outputs) = xᵀ (rows, inputs) · panels, where x is (inputs, rows). */
static void multiply_transposed(
    const float *x, ptrdiff_t stride, int rows, const float *panels, int inputs, int outputs, float *y,
    ptrdiff_t y_stride) {
    multiply_apart(x, 1, stride, rows, panels, inputs, outputs, y, y_stride, NULL, 0);
}

#if WIDTH == 16
/* The same in eight bits. */
typedef struct {
    const int8_t *x;
    const float *x_scale;
    const int32_t *offset;
    ptrdiff_t stride;
    const uint8_t *panel;
    int inputs;
    const float *scale;
    float *y;
    ptrdiff_t y_stride;
    int columns;
    const float *bias;
    int rectify;
} NumberTile;

static inline __attribute__((always_inline)) void sum_numbers(int rows, const NumberTile *t) {
    __m512i sums[ROWS][2];
    const int8_t *x = t->x;
    ptrdiff_t stride = t->stride;
#pragma GCC unroll 16
    for (int row = 0; row < rows; row++) sums[row][0] = sums[row][1] = _mm512_setzero_si512();
    for (int input = 0; input < t->inputs; input += 4) {
        const uint8_t *weights = t->panel + (ptrdiff_t)input * PANEL;
        __m512i first = _mm512_loadu_si512(weights), second = _mm512_loadu_si512(weights + 64);
        ask_for(weights + AHEAD);
        ask_for(weights + AHEAD + 64);
#pragma GCC unroll 16
        for (int row = 0; row < rows; row++) {
            int32_t four;
            memcpy(&four, x + row * stride + input, 4);
            __m512i numbers = _mm512_set1_epi32(four);
            sums[row][0] = _mm512_dpbusd_epi32(sums[row][0], first, numbers);
            sums[row][1] = _mm512_dpbusd_epi32(sums[row][1], second, numbers);
        }
    }
#pragma GCC unroll 16
    for (int row = 0; row < rows; row++) {
        __m512i added = _mm512_set1_epi32(t->offset[row]);
        Vector first = _mm512_cvtepi32_ps(_mm512_sub_epi32(sums[row][0], added));
        Vector second = _mm512_cvtepi32_ps(_mm512_sub_epi32(sums[row][1], added));
        Vector factor = all(t->x_scale[row]);
        finish_row(first * factor * load(t->scale), second * factor * load(t->scale + WIDTH),
                   t->y + row * t->y_stride, t->columns, t->bias, t->rectify);
    }
}

#define NUMBER_TILE(rows)                                                                                            \
    static __attribute__((noinline)) void number_tile_##rows(const NumberTile *tile) { sum_numbers(rows, tile); }
EACH_NUMBER_OF_ROWS(NUMBER_TILE)
#define NAME_OF(rows) number_tile_##rows,
static void (*const number_tiles[])(const NumberTile *) = {NULL, EACH_NUMBER_OF_ROWS(NAME_OF)};
#undef NAME_OF

/* Round a row to whole numbers from -127 to 127 times its scale. */
static void round_row(const float *x, int inputs, int8_t *numbers, float *scale, int32_t *offset) {
    Vector most = all(0), nothing = all(0);
    for (int at = 0; at < inputs; at += WIDTH) {
        most = larger(_mm512_abs_ps(load(x + at)), most);
        nothing = multiply_add(load(x + at), all(0), nothing); /* NaN if one of them is, which `larger` would hide */
    }
    float largest = largest_of(most);
    largest = largest < 1e-30f ? 1e-30f : largest;
    Vector factor = all(127 / largest);
    __m512i sum = _mm512_setzero_si512();
    for (int at = 0; at < inputs; at += WIDTH) {
        __m512i whole = _mm512_cvtps_epi32(load(x + at) * factor);
        sum = _mm512_add_epi32(sum, whole);
        _mm_storeu_si128((__m128i *)(numbers + at), _mm512_cvtsepi32_epi8(whole));
    }
    *scale = largest / 127 + add_up(nothing);
    *offset = 128 * _mm512_reduce_add_epi32(sum);
}

static void multiply_numbers(
    const Input *x, int rows, const Linear *linear, int from, int to, float *y, ptrdiff_t y_stride, int rectify) {
    int inputs = linear->inputs;
    for (int column = from; column < to; column += PANEL) {
        const uint8_t *panel = (const uint8_t *)linear->panels + (ptrdiff_t)column * inputs;
        int columns = linear->outputs - column < PANEL ? linear->outputs - column : PANEL;
        for (int row = 0; row < rows; row += ROWS) {
            NumberTile tile = {
                x->numbers + (ptrdiff_t)row * inputs, x->scale + row, x->offset + row, inputs, panel, inputs,
                linear->scale + column, y + row * y_stride + column - from, y_stride, columns,
                linear->bias ? linear->bias + column : NULL, rectify,
            };
            number_tiles[rows - row < ROWS ? rows - row : ROWS](&tile);
        }
    }
}
#endif

/* Round rows to eight bits, if that is what the weights are in. */
static void round_rows(
    const Linear *linear, const float *x, ptrdiff_t stride, int rows, int8_t *numbers, float *scale, int32_t *offset) {
#if WIDTH == 16
    for (int row = 0; linear->scale && row < rows; row++)
        round_row(x + row * stride, linear->inputs, numbers + (ptrdiff_t)row * linear->inputs, scale + row, offset + row);
#else
    (void)linear, (void)x, (void)stride, (void)rows, (void)numbers, (void)scale, (void)offset;
#endif
}

/* y = x Wᵀ + b for the outputs from `first`, which begins a panel, to `end`, in whatever type the weights are. */
static void multiply_some(
    const Linear *linear, const float *x, ptrdiff_t stride, const Input *input, int rows, int first, int end, float *y,
    ptrdiff_t y_stride, int rectify) {
#if WIDTH == 16
    if (linear->scale) {
        multiply_numbers(input, rows, linear, first, end, y, y_stride, rectify);
        return;
    }
#endif
    (void)input;
    multiply(x, stride, rows, (const float *)linear->panels + (ptrdiff_t)first * linear->inputs, linear->inputs,
             end - first, y, y_stride, linear->bias ? linear->bias + first : NULL, rectify);
}
