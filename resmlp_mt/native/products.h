/* Rows times matrices whose weights are packed in 8 bits, or in full.
 *
 * Outputs come in groups of 16. In 8 bits a group holds, for each 4 inputs, 4 weights of each
 * output side by side: 64 bytes, which one instruction of AVX-512 multiplies with 4 inputs and adds
 * up. The weights have 128 added, since it takes unsigned bytes. In full a group holds 16 weights
 * for each input. Outputs are padded to whole blocks of 4 groups, inputs to eights, with what adds
 * nothing.
 *
 * A tile is as many rows and outputs as have their sums in registers.
 *
 * AVX2 and the plain kind multiply and add up in 16 bits. There the products of 4 inputs meet: of eight, those of
 * inputs 0, 1, 4 and 5, and those of the others. So the steps of a row are such that no such four
 * add up to more than 128 of them, the positive ones or the negative ones: 255 times 128 has room.
 */
#ifndef PRODUCTS_H
#define PRODUCTS_H

#include "decoder.h"
#include "numbers.h"
#include "vectors.h"

/* STEPS of a row are as large as what must not be larger: its largest number, or the largest sum of
 * four that meet. That one may be rounded up by 2. Both are NaN if a number of the row is. */
enum { STEPS = FOURS == 1 ? 127 : 126 };

/* The largest sum of four numbers that meet, the positive ones or the negative ones. */
static inline float largest_four(const float *x, int64_t n)
{
    four_ints largest = {0}; /* in bits, as in size_of_largest */
    int64_t whole = n / INPUTS * INPUTS;
    float last[INPUTS] = {0};
    memcpy(last, x + whole, (n - whole) * sizeof *x);
    for (int64_t i = 0; i < n; i += INPUTS) {
        four_ints found = add_meeting(i < whole ? x + i : last), more = found > largest;
        largest = (more & found) | (~more & largest);
    }
    float found[4];
    memcpy(found, &largest, sizeof found);
    return size_of_largest(found, 4);
}

static inline float reach_of(const float *x, int64_t n)
{
    return FOURS == 1 ? size_of_largest(x, n) : largest_four(x, n);
}

/* A row in steps, padded to eights: so many of them are as large as `reach`. Returns the step, and
 * the sum of all. If `reach` is infinite or NaN, so is the step. What is multiplied with it is NaN
 * then, as it is in full: steps themselves cannot say that a number was none. */
static inline float quantise(int8_t *to, const float *x, int64_t n, float reach, int32_t count,
                             int32_t *sum)
{
    float factor = reach > 1e-30f ? count / reach : 0.0f; /* a finite one */
    ints total = {0};
    for (int64_t i = 0; i < n; i += LANES) {
        ints value = (ints)(get(x + i, n - i, 0) * factor + ROUNDING) - (ints)all(ROUNDING);
        signed_bytes narrow = __builtin_convertvector(value, signed_bytes);
        total += value;
        if (n - i >= LANES)
            *(signed_bytes *)(to + i) = narrow;
        else
            memcpy(to + i, &narrow, n - i);
    }
    memset(to + n, 0, padded(n, INPUTS) - n);
    *sum = add_up_ints(total);
    return reach / count;
}

/* Let bytes come to the cache while something else is computed. */
static inline void fetch(const void *start, int64_t size)
{
    for (int64_t i = 0; i < size; i += 64)
        __builtin_prefetch((const char *)start + i, 0, 2);
}

/* The 4 inputs from `four` on, for each output. */
static inline bytes spread(const int8_t *four)
{
    int32_t found;
    memcpy(&found, four, sizeof found);
    return (bytes)((ints){0} + found);
}

/* The sums of some rows and a tile of outputs; `rows` is a constant where it is called. */
INLINE void multiply_bytes(int rows, const Product *product, int64_t first, const int8_t *x,
                           const float *scales, const int32_t *sums, float *to, int64_t stride,
                           int add)
{
    int64_t width = padded(product->inputs, INPUTS);
    const uint8_t *weight = product->bytes;
    ints found[ROWS][VECTORS] = {{{0}}};
    for (int64_t k = 0; k < width; k += 4 * FOURS) {
        bytes weights[VECTORS][FOURS], inputs[FOURS];
        WRITTEN_OUT
        for (int vector = 0; vector < VECTORS; vector++) {
            int64_t output = first + vector * LANES, lane = output % GROUP;
            const uint8_t *from = weight + (output - lane) * width + k * GROUP + 4 * lane;
            for (int four = 0; four < FOURS; four++)
                weights[vector][four] = *(const bytes *)(from + 4 * GROUP * four);
        }
        WRITTEN_OUT
        for (int row = 0; row < rows; row++) {
            for (int four = 0; four < FOURS; four++)
                inputs[four] = spread(x + row * width + k + 4 * four);
            WRITTEN_OUT
            for (int vector = 0; vector < VECTORS; vector++)
                found[row][vector] = add_products(found[row][vector], weights[vector], inputs);
        }
    }
    WRITTEN_OUT
    for (int vector = 0; vector < VECTORS; vector++) {
        int64_t output = first + vector * LANES;
        const floats scale = *(const floats *)(product->scale + output);
        const floats bias = *(const floats *)(product->bias + output);
        WRITTEN_OUT
        for (int row = 0; row < rows; row++) {
            floats y = __builtin_convertvector(found[row][vector] - ADDED * sums[row], floats);
            floats *place = (floats *)(to + row * stride + output);
            y = y * (scale * scales[row]) + bias;
            *place = add ? *place + y : y;
        }
    }
}

INLINE void multiply_floats(int rows, const Product *product, int64_t first, const float *x,
                            int64_t width, float *to, int64_t stride, int add)
{
    int64_t inputs = product->inputs;
    const float *weight = product->floats;
    floats found[ROWS][VECTORS] = {{{0}}};
    for (int64_t k = 0; k < inputs; k++) {
        floats weights[VECTORS];
        WRITTEN_OUT
        for (int vector = 0; vector < VECTORS; vector++) {
            int64_t output = first + vector * LANES, lane = output % GROUP;
            weights[vector] =
                *(const floats *)(weight + (output - lane) * inputs + k * GROUP + lane);
        }
        WRITTEN_OUT
        for (int row = 0; row < rows; row++)
            WRITTEN_OUT
            for (int vector = 0; vector < VECTORS; vector++)
                found[row][vector] += x[row * width + k] * weights[vector];
    }
    WRITTEN_OUT
    for (int vector = 0; vector < VECTORS; vector++) {
        int64_t output = first + vector * LANES;
        const floats bias = *(const floats *)(product->bias + output);
        WRITTEN_OUT
        for (int row = 0; row < rows; row++) {
            floats *place = (floats *)(to + row * stride + output);
            *place = (add ? *place : (floats){0}) + found[row][vector] + bias;
        }
    }
}

/* Numbers in 16 bits. */
static inline void halve_all(uint16_t *to, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES) {
        halves some = halve(get(x + i, n - i, 0));
        if (n - i >= LANES)
            *(halves *)(to + i) = some;
        else
            memcpy(to + i, &some, (n - i) * sizeof *to);
    }
}

/* Some vectors of outputs, see below. `rows`, `half` and `vectors` are constants where it is
 * called: single sums would wait for each other. */
INLINE void multiply_columns(int rows, int half, int vectors, int64_t inner, const void *matrix,
                             int64_t stride, int64_t first, int64_t outputs, const float *x,
                             int64_t width, float *to)
{
    floats found[ROWS][GROUP / LANES + VECTORS] = {{{0}}};
    for (int64_t k = 0; k < inner; k++) {
        floats column[GROUP / LANES + VECTORS];
        WRITTEN_OUT
        for (int vector = 0; vector < vectors; vector++)
            column[vector] = load(half, matrix, k * stride + first + vector * LANES);
        WRITTEN_OUT
        for (int row = 0; row < rows; row++)
            WRITTEN_OUT
            for (int vector = 0; vector < vectors; vector++)
                found[row][vector] += x[row * width + k] * column[vector];
    }
    WRITTEN_OUT
    for (int row = 0; row < rows; row++)
        WRITTEN_OUT
        for (int vector = 0; vector < vectors; vector++)
            *(floats *)(to + row * outputs + first + vector * LANES) = found[row][vector];
}

/* The first outputs, in whole groups, of a matrix as it is, (inner, stride), in 16 bits or in full.
 * to: (rows, outputs). `half` is a constant where it is called. */
INLINE void multiply_matrix_of(int rows, int half, int64_t inner, const void *matrix,
                               int64_t stride, int64_t outputs, const float *x, int64_t width,
                               float *to)
{
    enum { SOME = TILE > 2 * GROUP ? TILE / 2 : GROUP };
    int64_t first = 0;
    for (; TILE > SOME && first + TILE <= outputs; first += TILE)
        multiply_columns(rows, half, VECTORS, inner, matrix, stride, first, outputs, x, width, to);
    for (; first + SOME <= outputs; first += SOME)
        multiply_columns(rows, half, SOME / LANES, inner, matrix, stride, first, outputs, x, width,
                         to);
    for (; first < outputs; first += GROUP)
        multiply_columns(rows, half, GROUP / LANES, inner, matrix, stride, first, outputs, x,
                         width, to);
}

INLINE void multiply_matrix(int rows, int64_t half, int64_t inner, const void *matrix,
                            int64_t stride, int64_t outputs, const float *x, int64_t width,
                            float *to)
{
    if (half)
        multiply_matrix_of(rows, 1, inner, matrix, stride, outputs, x, width, to);
    else
        multiply_matrix_of(rows, 0, inner, matrix, stride, outputs, x, width, to);
}

/* Each number of rows with registers of its own. */
#define CASE(n, call) case n: { enum { R = n }; call; break; }
#define WITH_ROWS(n, call) \
    switch (n) { \
    CASE(1, call) CASE(2, call) CASE(3, call) CASE(4, call) CASE(5, call) \
    default: { enum { R = ROWS }; call; } \
    }

/* Rows as a product in 8 bits takes them. x: (rows, from), of which the inputs are the first. */
static void quantise_rows(const Product *product, int64_t rows, const float *x, int64_t from,
                          Room *room)
{
    int64_t inputs = product->inputs, width = padded(inputs, INPUTS);
    for (int64_t row = 0; row < rows && product->bytes; row++, x += from)
        room->scales[row] = quantise(room->inputs + row * width, x, inputs, reach_of(x, inputs),
                                     STEPS, room->sums + row);
}

/* to = outputs `start` to `end` - 1 of a product, or to += these: whole blocks. quantise_rows has
 * been called. to: (rows, stride). */
static void multiply_outputs(const Product *product, int64_t start, int64_t end, int64_t rows,
                             const float *x, int64_t from, float *to, int64_t stride, int add,
                             Room *room)
{
    int64_t width = padded(product->inputs, INPUTS);
    const int8_t *inputs = room->inputs;
    to -= start;
    /* The weights of a tile stay in the cache for all rows. In 8 bits there is room for the next
     * ones, of which a share comes with every few rows. */
    int64_t size = TILE * width, share = size * ROWS / (rows + ROWS) + 1;
    for (int64_t first = start; first < end; first += TILE)
        for (int64_t row = 0; row < rows; row += ROWS) {
            if (product->bytes && first + TILE < padded(product->outputs, BLOCK))
                fetch(product->bytes + (first + TILE) * width + row / ROWS * share, share);
            float *place = to + row * stride;
            if (product->bytes) {
                WITH_ROWS(rows - row, multiply_bytes(R, product, first, inputs + row * width,
                                                     room->scales + row, room->sums + row, place,
                                                     stride, add))
            } else {
                WITH_ROWS(rows - row, multiply_floats(R, product, first, x + row * from, from,
                                                      place, stride, add))
            }
        }
}

/* All outputs, from the rows as they are. */
static void multiply(const Product *product, int64_t rows, const float *x, int64_t from, float *to,
                     int64_t stride, int add, Room *room)
{
    quantise_rows(product, rows, x, from, room);
    multiply_outputs(product, 0, padded(product->outputs, BLOCK), rows, x, from, to, stride, add,
                     room);
}

/* One output of a product in 8 bits, from its weights as they were before packing. */
static inline float multiply_bytes_row(const Product *product, int64_t output,
                                       const int8_t *weights, const int8_t *x, float step,
                                       int32_t sum)
{
    ints found = {0};
    int32_t total = -ADDED * sum;
    int64_t k = 0, size = sizeof found;
    for (; k + size <= product->inputs; k += size)
        found = add_in_order(found, *(const bytes *)(weights + k) ^ 128, *(const bytes *)(x + k));
    for (; k < product->inputs; k++)
        total += (weights[k] + ADDED) * x[k];
    total += add_up_ints(found);
    return total * (product->scale[output] * step) + product->bias[output];
}

/* The same in full. */
static inline float multiply_floats_row(const Product *product, int64_t output,
                                        const float *weights, const float *x)
{
    floats total = {0};
    int64_t n = product->inputs;
    for (int64_t i = 0; i < n; i += LANES)
        total += get(weights + i, n - i, 0) * get(x + i, n - i, 0);
    return add_up(total) + product->bias[output];
}

/* The weights of an output, as they were before packing. */
static inline void unpack(const Product *product, int64_t output, float *to)
{
    int64_t group = output / GROUP, lane = output % GROUP, inputs = product->inputs;
    int64_t fours = padded(inputs, INPUTS) / 4;
    if (product->floats) {
        const float *from = product->floats + group * inputs * GROUP + lane;
        for (int64_t i = 0; i < inputs; i++)
            to[i] = from[i * GROUP];
        return;
    }
    const uint8_t *from = product->bytes + (group * fours * GROUP + lane) * 4;
    for (int64_t i = 0; i < inputs; i++)
        to[i] = ((int32_t)from[i / 4 * 4 * GROUP + i % 4] - 128) * product->scale[output];
}

#endif
