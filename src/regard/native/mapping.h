/* Linear maps of rows with weights that change from step to step: y = x Wᵀ + b forward, and their two products back.
 *
 * W is (outputs, inputs), as torch has it. Each product packs what it reads again and again into panels just before it
 * needs them, a strip of W at a time; that pays from some ten rows on. Widths are multiples of a panel. Rows of x and of
 * its gradient lie `x_stride` floats apart, those of y and of its gradient `y_stride`. */

enum { STRIP = 8 * PANEL }; /* columns of x that are packed at a time for a weight's gradient */

/* Floats that the packed part of a product takes at most. */
static size_t packed_size(int rows, int widest) {
    size_t strip = (size_t)PANEL * widest, columns = (size_t)rows * (STRIP + ROWS);
    return strip > columns ? strip : columns;
}

/* y (rows, outputs) = x (rows, inputs) · Wᵀ + bias, without what is below zero if `rectify`. */
static void map_rows(
    const float *x, ptrdiff_t x_stride, int rows, int inputs, const float *weight, int outputs, const float *bias,
    int rectify, float *y, ptrdiff_t y_stride, float *packed) {
    for (int column = 0; column < outputs; column += PANEL) {
        lay_out_keys(weight + (ptrdiff_t)column * inputs, inputs, PANEL, inputs, packed);
        FloatTile tile = {x,        x_stride, 1, packed, PANEL, inputs, y + column,
                          y_stride, PANEL,    bias ? bias + column : NULL, rectify, 0};
        multiply_panel(tile, rows);
    }
}

/* x_gradient (rows, inputs) = y_gradient (rows, outputs) · W, or that much more if `add`. */
static void map_back(
    const float *y_gradient, ptrdiff_t y_stride, int rows, int outputs, const float *weight, int inputs, int add,
    float *x_gradient, ptrdiff_t x_stride, float *packed) {
    for (int column = 0; column < inputs; column += PANEL) {
        lay_out_values(weight + column, inputs, outputs, PANEL, packed);
        FloatTile tile = {y_gradient, y_stride, 1,    packed, PANEL, outputs, x_gradient + column,
                          x_stride,   PANEL,    NULL, 0,      add};
        multiply_panel(tile, rows);
    }
}

/* few (rows, ROWS) = the first `count` columns of `from`, whose rows are `stride` floats apart. */
static void pick_columns(const float *from, ptrdiff_t stride, int rows, int count, float *few) {
    if (count == ROWS) /* a number that the compiler knows */
        for (int row = 0; row < rows; row++) memcpy(few + row * ROWS, from + row * stride, ROWS * sizeof(float));
    else
        for (int row = 0; row < rows; row++) memcpy(few + row * ROWS, from + row * stride, count * sizeof(float));
}

/* weight_gradient (outputs, inputs) += y_gradientᵀ (outputs, rows) · x (rows, inputs). */
static void learn_weight(
    const float *y_gradient, ptrdiff_t y_stride, int rows, int outputs, const float *x, ptrdiff_t x_stride, int inputs,
    float *weight_gradient, float *packed) {
    float *few = packed + (ptrdiff_t)rows * STRIP; /* (rows, ROWS) of y_gradient, side by side for a tile */
    for (int start = 0; start < inputs; start += STRIP) {
        int end = inputs - start < STRIP ? inputs : start + STRIP;
        lay_out_values(x + start, x_stride, rows, end - start, packed);
        for (int output = 0; output < outputs; output += ROWS) {
            int count = outputs - output < ROWS ? outputs - output : ROWS;
            pick_columns(y_gradient + output, y_stride, rows, count, few);
            for (int column = start; column < end; column += PANEL) {
                FloatTile tile = {few, 1, ROWS, packed + (ptrdiff_t)(column - start) * rows, PANEL, rows,
                                  weight_gradient + (ptrdiff_t)output * inputs + column, inputs, PANEL, NULL, 0, 1};
                multiply_panel(tile, count);
            }
        }
    }
}

/* bias_gradient (width) += the sum over rows of y_gradient (rows, width). */
static void learn_bias(const float *y_gradient, ptrdiff_t stride, int rows, int width, float *bias_gradient) {
    for (int row = 0; row < rows; row++)
        for (int at = 0; at < width; at += WIDTH)
            store(bias_gradient + at, load(bias_gradient + at) + load(y_gradient + row * stride + at));
}
