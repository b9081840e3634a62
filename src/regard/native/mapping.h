/* Linear maps of rows with weights that change from step to step: y = x Wᵀ + b forward, and their two products back.
 *
 * W is (outputs, inputs), as torch has it. What a product reads again and again is packed when it is first needed; that
 * pays from some ten rows on. Widths are multiples of a panel. Rows of x and of its gradient lie `x_stride` floats apart,
 * those of y and of its gradient `y_stride`. */

enum { STRIP = 16 * PANEL };  /* columns that are packed at a time for a product of columns */
enum { WEIGHTS = 1 << 16 };   /* that are packed at a time on the way forward, or a panel's: a part of the second cache */

/* Floats that the packed part of a product of columns takes at most, and that of any product here. */
static inline size_t packed_columns(int rows) { return (size_t)rows * (STRIP + ROWS); }
static size_t packed_size(int rows, int widest) {
    size_t panel = (size_t)PANEL * widest, columns = packed_columns(rows);
    size_t weights = panel > WEIGHTS ? panel : WEIGHTS;
    return weights > columns ? weights : columns;
}

/* Outputs whose weights are packed at a time on the way forward: whole panels, for which a tile's rows are read once. */
static inline int packed_outputs(int inputs) {
    int panels = WEIGHTS / (PANEL * inputs);
    return panels > 1 ? panels * PANEL : PANEL;
}

/* y (rows, outputs) = x (rows, inputs) · Wᵀ + bias, without what is below zero if `rectify`. */
static void map_rows(
    const float *x, ptrdiff_t x_stride, int rows, int inputs, const float *weight, int outputs, const float *bias,
    int rectify, float *y, ptrdiff_t y_stride, float *packed) {
    int some = packed_outputs(inputs);
    for (int start = 0; start < outputs; start += some) {
        int end = outputs - start < some ? outputs : start + some;
        lay_out_keys(weight + (ptrdiff_t)start * inputs, inputs, end - start, inputs, packed);
        for (int row = 0; row < rows; row += ROWS)
            for (int column = start; column < end; column += PANEL) {
                FloatTile tile = {x + row * x_stride,
                                  x_stride,
                                  1,
                                  packed + (ptrdiff_t)(column - start) * inputs,
                                  PANEL,
                                  inputs,
                                  y + row * y_stride + column,
                                  y_stride,
                                  PANEL,
                                  bias ? bias + column : NULL,
                                  rectify};
                float_tiles[rows - row < ROWS ? rows - row : ROWS](&tile);
            }
    }
}

/* x_gradient (rows, inputs) = y_gradient (rows, outputs) · W, or that much more if `add`. */
static void map_back(
    const float *y_gradient, ptrdiff_t y_stride, int rows, int outputs, const float *weight, int inputs, int add,
    float *x_gradient, ptrdiff_t x_stride, float *packed) {
    for (int column = 0; column < inputs; column += PANEL) {
        FloatTile tile = {y_gradient, y_stride, 1,    weight + column, inputs, outputs, x_gradient + column,
                          x_stride,   PANEL,    NULL, 0,               add};
        pack_and_multiply_panel(tile, rows, packed);
    }
}

/* y (outputs, columns) += aᵀ (outputs, rows) · b (rows, columns): a weight's gradient, if `a` is the gradient of what came
 * out and `b` what went in. Rows of them lie so many floats apart.
 *
 * The first tile that reads a part of them leaves it packed: `few`, (rows, ROWS) of a, and a panel, (rows, PANEL) of b. */
static void add_product_of_columns(
    const float *a, ptrdiff_t a_stride, int outputs, const float *b, ptrdiff_t b_stride, int columns, int rows, float *y,
    float *packed) {
    float *few = packed + (ptrdiff_t)rows * STRIP;
    for (int start = 0; start < columns; start += STRIP) {
        int end = columns - start < STRIP ? columns : start + STRIP;
        for (int output = 0; output < outputs; output += ROWS) {
            int count = outputs - output < ROWS ? outputs - output : ROWS, is_whole = count == ROWS;
            for (int column = start; column < end; column += PANEL) {
                int reads_a = column == start || !is_whole, reads_b = output == 0; /* where they lie */
                float *panel = packed + (ptrdiff_t)(column - start) * rows;
                FloatTile tile = {.x = reads_a ? a + output : few,
                                  .stride = 1,
                                  .step = reads_a ? a_stride : ROWS,
                                  .panel = reads_b ? b + column : panel,
                                  .panel_step = reads_b ? b_stride : PANEL,
                                  .inputs = rows,
                                  .y = y + (ptrdiff_t)output * columns + column,
                                  .y_stride = columns,
                                  .columns = PANEL,
                                  .add = 1,
                                  .to_next = PANEL,
                                  .few = reads_a ? few : NULL,
                                  .packed = reads_b ? panel : NULL};
                if (is_whole && (reads_a || reads_b))
                    leaving_tile(&tile);
                else
                    float_tiles[count](&tile);
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
