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
 * AVX2 multiplies and adds up in 16 bits. There the products of 4 inputs meet: of eight, those of
 * inputs 0, 1, 4 and 5, and those of the others. So the steps of a row are such that no such four
 * add up to more than 128 of them, the positive ones or the negative ones: 255 times 128 has room.
 */
#ifndef PRODUCTS_H
#define PRODUCTS_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <immintrin.h>

#include "decoder.h"
#include "numbers.h"

#ifdef WITH_AVX512
#define LANES 16  /* of a vector */
#define VECTORS 4 /* of a tile: with so many rows their sums fill the registers */
#define FOURS 1   /* of inputs in 8 bits, that are multiplied at once */
#else
#define LANES 8
#define VECTORS 2
#define FOURS 2
#endif
#define TILE (VECTORS * LANES)

/* The loop after it is written out, so that the sums of a tile stay in registers. */
#define WRITTEN_OUT PRAGMA(GCC unroll 8)

typedef float floats __attribute__((vector_size(4 * LANES), aligned(4)));
typedef int32_t ints __attribute__((vector_size(4 * LANES), aligned(4)));
typedef uint8_t bytes __attribute__((vector_size(4 * LANES), aligned(1)));

/* STEPS of a row are as large as what must not be larger: its largest number, or the largest sum of
 * four that meet. That one may be rounded up by 2. Both are NaN if a number of the row is. */
#ifdef WITH_AVX512
#define STEPS 127
#define reach_of size_of_largest
#else
#define STEPS 126
static inline float reach_of(const float *x, int64_t n)
{
    __m128i largest = _mm_setzero_si128(); /* in bits, as in size_of_largest */
    int64_t whole = n / INPUTS * INPUTS;
    float last[INPUTS] = {0};
    memcpy(last, x + whole, (n - whole) * sizeof *x);
    for (int64_t i = 0; i < n; i += INPUTS) {
        floats eight = *(const floats *)(i < whole ? x + i : last), none = {0};
        /* Where one of two numbers is NaN, this instruction takes the second. */
        floats twos =
            (floats)_mm256_hadd_ps(_mm256_max_ps(none, eight), _mm256_max_ps(none, -eight));
        __m128 fours = _mm256_castps256_ps128(twos) + _mm256_extractf128_ps(twos, 1);
        __m128i bits = _mm_and_si128(_mm_castps_si128(fours), _mm_set1_epi32(INT32_MAX));
        largest = _mm_max_epi32(largest, bits);
    }
    __m128 found = _mm_castsi128_ps(largest);
    return size_of_largest((const float *)&found, 4);
}
#endif

/* A row in steps, padded to eights: so many of them are as large as `reach`. Returns the step, and
 * the sum of all. If `reach` is infinite or NaN, so is the step. What is multiplied with it is NaN
 * then, as it is in full: steps themselves cannot say that a number was none. */
static inline float quantise(int8_t *to, const float *x, int64_t n, float reach, int32_t steps,
                             int32_t *sum)
{
    float factor = reach > 1e-30f ? steps / reach : 0.0f; /* a finite one */
    int32_t total = 0;
    SUM(total)
    for (int64_t i = 0; i < n; i++) {
        int32_t value = (int32_t)rintf(x[i] * factor);
        total += value;
        to[i] = (int8_t)value;
    }
    for (int64_t i = n; i < padded(n, INPUTS); i++)
        to[i] = 0;
    *sum = total;
    return reach / steps;
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
    int32_t all;
    memcpy(&all, four, sizeof all);
    return (bytes)((ints){0} + all);
}

/* sum + weights of each output times inputs, FOURS of both. */
static inline ints add_products(ints sum, const bytes *weights, const bytes *inputs)
{
#ifdef WITH_AVX512
    return (ints)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)*weights, (__m512i)*inputs);
#else
    __m256i fours =
        _mm256_add_epi16(_mm256_maddubs_epi16((__m256i)weights[0], (__m256i)inputs[0]),
                         _mm256_maddubs_epi16((__m256i)weights[1], (__m256i)inputs[1]));
    return sum + (ints)_mm256_madd_epi16(fours, _mm256_set1_epi16(1));
#endif
}

/* The sums of some rows and a tile of outputs; `rows` is a constant where it is called. */
static inline __attribute__((always_inline)) void multiply_bytes(
    int rows, const Product *product, int64_t first, const int8_t *x, const float *scales,
    const int32_t *sums, float *to, int64_t stride, int add)
{
    int64_t width = padded(product->inputs, INPUTS);
    const uint8_t *weight = product->bytes + first * width;
    ints found[ROWS][VECTORS];
    WRITTEN_OUT
    for (int row = 0; row < rows; row++)
        WRITTEN_OUT
        for (int vector = 0; vector < VECTORS; vector++)
            found[row][vector] = (ints){0};
    for (int64_t k = 0; k < width; k += 4 * FOURS) {
        bytes weights[VECTORS][FOURS], inputs[FOURS];
        for (int vector = 0; vector < VECTORS; vector++) {
            int64_t lane = vector * LANES, group = lane / GROUP * GROUP;
            const uint8_t *from = weight + group * width + k * GROUP + 4 * (lane - group);
            for (int four = 0; four < FOURS; four++)
                weights[vector][four] = *(const bytes *)(from + 4 * GROUP * four);
        }
        for (int row = 0; row < rows; row++) {
            for (int four = 0; four < FOURS; four++)
                inputs[four] = spread(x + row * width + k + 4 * four);
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
            floats y = __builtin_convertvector(found[row][vector] - 128 * sums[row], floats);
            floats *place = (floats *)(to + row * stride + output);
            y = y * (scale * scales[row]) + bias;
            *place = add ? *place + y : y;
        }
    }
}

static inline __attribute__((always_inline)) void multiply_floats(
    int rows, const Product *product, int64_t first, const float *x, int64_t width, float *to,
    int64_t stride, int add)
{
    int64_t inputs = product->inputs;
    const float *weight = product->floats + first * inputs;
    floats found[ROWS][VECTORS];
    WRITTEN_OUT
    for (int row = 0; row < rows; row++)
        WRITTEN_OUT
        for (int vector = 0; vector < VECTORS; vector++)
            found[row][vector] = (floats){0};
    for (int64_t k = 0; k < inputs; k++) {
        floats weights[VECTORS];
        for (int vector = 0; vector < VECTORS; vector++) {
            int64_t lane = vector * LANES, group = lane / GROUP * GROUP;
            weights[vector] =
                *(const floats *)(weight + group * inputs + k * GROUP + lane - group);
        }
        for (int row = 0; row < rows; row++)
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

/* A vector of numbers in 16 bits, or in full. */
static inline __attribute__((always_inline)) floats load(int half, const void *numbers, int64_t i)
{
    if (!half)
        return *(const floats *)((const float *)numbers + i);
    const void *place = (const uint16_t *)numbers + i;
#ifdef WITH_AVX512
    return (floats)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)place));
#else
    return (floats)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)place));
#endif
}

/* Which of LANES numbers reach a bar: a bit for each. */
static inline uint32_t find_reaching(const float *x, float bar)
{
#ifdef WITH_AVX512
    return _mm512_cmp_ps_mask(_mm512_loadu_ps(x), _mm512_set1_ps(bar), _CMP_GE_OQ);
#else
    return _mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(x), _mm256_set1_ps(bar), _CMP_GE_OQ));
#endif
}

/* Numbers in 16 bits. */
static inline void halve(uint16_t *to, const float *x, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), 0));
    for (; i < n; i++)
        to[i] = _cvtss_sh(x[i], 0);
}

/* to += x factor, of numbers in 16 bits or in full. */
static inline __attribute__((always_inline)) void add_scaled(float *to, int half, const void *x,
                                                             const float *factor, int64_t n)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        *(floats *)(to + i) += load(half, x, i) * *(const floats *)(factor + i);
    for (; i < n; i++)
        to[i] += (half ? _cvtsh_ss(((const uint16_t *)x)[i]) : ((const float *)x)[i]) * factor[i];
}

/* The first outputs, in whole groups, of a matrix as it is, (inner, stride), in 16 bits or in full.
 * to: (rows, outputs). `half` is a constant where it is called. */
static inline __attribute__((always_inline)) void multiply_matrix_of(
    int rows, int half, int64_t inner, const void *matrix, int64_t stride, int64_t outputs,
    const float *x, int64_t width, float *to)
{
    for (int64_t first = 0; first < outputs; first += GROUP) {
        floats found[ROWS][GROUP / LANES];
        memset(found, 0, sizeof found);
        for (int64_t k = 0; k < inner; k++) {
            floats column[GROUP / LANES];
            for (int vector = 0; vector < GROUP / LANES; vector++)
                column[vector] = load(half, matrix, k * stride + first + vector * LANES);
            for (int row = 0; row < rows; row++)
                for (int vector = 0; vector < GROUP / LANES; vector++)
                    found[row][vector] += x[row * width + k] * column[vector];
        }
        for (int row = 0; row < rows; row++)
            for (int vector = 0; vector < GROUP / LANES; vector++)
                *(floats *)(to + row * outputs + first + vector * LANES) = found[row][vector];
    }
}

static inline __attribute__((always_inline)) void multiply_matrix(
    int rows, int64_t half, int64_t inner, const void *matrix, int64_t stride, int64_t outputs,
    const float *x, int64_t width, float *to)
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

/* to = product(x), or to += product(x). x: (rows, from), of which the inputs are the first. to:
 * (rows, stride), stride whole blocks. */
static void multiply(const Product *product, int64_t rows, const float *x, int64_t from, float *to,
                     int64_t stride, int add, Room *room)
{
    int64_t width = padded(product->inputs, INPUTS), outputs = padded(product->outputs, BLOCK);
    int8_t *inputs = room->inputs;
    if (product->bytes)
        for (int64_t row = 0; row < rows; row++)
            room->scales[row] = quantise(inputs + row * width, x + row * from, product->inputs,
                                         reach_of(x + row * from, product->inputs), STEPS,
                                         room->sums + row);
    /* The weights of a tile stay in the cache for all rows. In 8 bits there is room for the next
     * ones, of which a share comes with every few rows. */
    int64_t size = TILE * width, share = size * ROWS / (rows + ROWS) + 1;
    for (int64_t first = 0; first < outputs; first += TILE)
        for (int64_t row = 0; row < rows; row += ROWS) {
            if (product->bytes && first + TILE < outputs)
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

/* sum + products of weights and inputs that lie in one order. Two of these meet in 16 bits. */
static inline ints add_in_order(ints sum, bytes weights, bytes inputs)
{
#ifdef WITH_AVX512
    return (ints)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)weights, (__m512i)inputs);
#else
    __m256i twos = _mm256_maddubs_epi16((__m256i)weights, (__m256i)inputs);
    return sum + (ints)_mm256_madd_epi16(twos, _mm256_set1_epi16(1));
#endif
}

/* One output of a product in 8 bits, from its weights as they were before packing. */
static inline float multiply_bytes_row(const Product *product, int64_t output,
                                       const int8_t *weights, const int8_t *x, float step,
                                       int32_t sum)
{
    ints found = {0};
    int32_t total = -128 * sum;
    int64_t k = 0, size = sizeof found;
    for (; k + size <= product->inputs; k += size)
        found = add_in_order(found, *(const bytes *)(weights + k) ^ 128, *(const bytes *)(x + k));
    for (; k < product->inputs; k++)
        total += (weights[k] + 128) * x[k];
    for (int lane = 0; lane < LANES; lane++)
        total += found[lane];
    return total * (product->scale[output] * step) + product->bias[output];
}

/* The same in full. */
static inline float multiply_floats_row(const Product *product, int64_t output,
                                        const float *weights, const float *x)
{
    float total = 0;
    SUM(total)
    for (int64_t i = 0; i < product->inputs; i++)
        total += weights[i] * x[i];
    return total + product->bias[output];
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
