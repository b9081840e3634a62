/* Linear maps over rows of a working buffer, and layer norms. */

#include <math.h>
#include <stdlib.h>

#include "engine.h"
#include "products.h"

enum { WORTH_SHARING = 1 << 21 }; /* multiplications for which other threads are woken */

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
