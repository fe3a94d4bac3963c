/* Rows times matrices whose weights are packed in 8 bits, or in full.
 *
 * Outputs come in groups of 16. In 8 bits a group holds, for each 4 inputs, 4 weights of each output
 * side by side: 64 bytes, which one instruction multiplies with 4 inputs and adds up. The weights
 * have 128 added, since it takes unsigned bytes. In full a group holds 16 weights for each input.
 * Outputs are padded to whole blocks of 4 groups, inputs to fours, with what adds nothing.
 */
#ifndef PRODUCTS_H
#define PRODUCTS_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#ifdef __AVX512VNNI__
#include <immintrin.h>
#endif

#include "decoder.h"
#include "numbers.h"

#define LANES 16
#define GROUPS 4 /* of a block: with 6 rows their sums fill the registers */
#define ROWS 6
#define BLOCK (LANES * GROUPS)

typedef float floats __attribute__((vector_size(4 * LANES), aligned(4)));
typedef int32_t ints __attribute__((vector_size(4 * LANES), aligned(4)));

static inline int64_t padded(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/* A row in signed bytes, padded to fours; returns the scale, and the sum of the bytes. */
static inline float quantise(int8_t *to, const float *x, int64_t n, int32_t *sum)
{
    float largest = 0;
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < n; i++)
        largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    float factor = largest > 0 ? 127.0f / largest : 0.0f;
    int32_t total = 0;
    SUM(total)
    for (int64_t i = 0; i < n; i++) {
        int32_t value = (int32_t)rintf(x[i] * factor);
        total += value;
        to[i] = (int8_t)value;
    }
    for (int64_t i = n; i < padded(n, 4); i++)
        to[i] = 0;
    *sum = total;
    return largest / 127.0f;
}

/* sum + 4 weights of each output times 4 inputs. */
static inline ints add_products(ints sum, const uint8_t *weight, int32_t four)
{
#ifdef __AVX512VNNI__
    __m512i weights = _mm512_loadu_si512(weight);
    return (ints)_mm512_dpbusd_epi32((__m512i)sum, weights, _mm512_set1_epi32(four));
#else
    int8_t x[4];
    memcpy(x, &four, 4);
    for (int i = 0; i < LANES; i++)
        sum[i] += weight[4 * i] * x[0] + weight[4 * i + 1] * x[1] + weight[4 * i + 2] * x[2] +
                  weight[4 * i + 3] * x[3];
    return sum;
#endif
}

/* The sums of some rows and a block of outputs; `rows` is a constant where it is called. */
static inline __attribute__((always_inline)) void multiply_bytes(
    int rows, const Product *product, int64_t block, const int8_t *x, const float *scales,
    const int32_t *sums, float *to, int64_t stride, int add)
{
    int64_t fours = padded(product->inputs, 4) / 4, width = 4 * fours;
    const uint8_t *weight = product->bytes + block * BLOCK * width;
    ints found[ROWS][GROUPS];
    memset(found, 0, sizeof found);
    for (int64_t k = 0; k < fours; k++)
        for (int row = 0; row < rows; row++) {
            int32_t four;
            memcpy(&four, x + row * width + 4 * k, 4);
            for (int group = 0; group < GROUPS; group++)
                found[row][group] = add_products(
                    found[row][group], weight + (group * fours + k) * 4 * LANES, four);
        }
    for (int group = 0; group < GROUPS; group++) {
        int64_t first = block * BLOCK + group * LANES;
        const floats scale = *(const floats *)(product->scale + first);
        const floats bias = *(const floats *)(product->bias + first);
        for (int row = 0; row < rows; row++) {
            floats y = __builtin_convertvector(found[row][group] - 128 * sums[row], floats);
            floats *place = (floats *)(to + row * stride + first);
            y = y * (scale * scales[row]) + bias;
            *place = add ? *place + y : y;
        }
    }
}

static inline __attribute__((always_inline)) void multiply_floats(
    int rows, const Product *product, int64_t block, const float *x, int64_t width, float *to,
    int64_t stride, int add)
{
    const float *weight = product->floats + block * BLOCK * product->inputs;
    floats found[ROWS][GROUPS];
    memset(found, 0, sizeof found);
    for (int64_t k = 0; k < product->inputs; k++)
        for (int row = 0; row < rows; row++)
            for (int group = 0; group < GROUPS; group++)
                found[row][group] +=
                    x[row * width + k] *
                    *(const floats *)(weight + (group * product->inputs + k) * LANES);
    for (int group = 0; group < GROUPS; group++) {
        int64_t first = block * BLOCK + group * LANES;
        const floats bias = *(const floats *)(product->bias + first);
        for (int row = 0; row < rows; row++) {
            floats *place = (floats *)(to + row * stride + first);
            *place = (add ? *place : (floats){0}) + found[row][group] + bias;
        }
    }
}

/* A matrix as it is, (inner, stride), whose stride is whole lanes. to: (rows, stride). */
static inline __attribute__((always_inline)) void multiply_matrix(
    int rows, int64_t inner, const float *matrix, int64_t stride, const float *x, int64_t width,
    float *to)
{
    for (int64_t first = 0; first < stride; first += LANES) {
        floats found[ROWS];
        memset(found, 0, sizeof found);
        for (int64_t k = 0; k < inner; k++)
            for (int row = 0; row < rows; row++)
                found[row] += x[row * width + k] * *(const floats *)(matrix + k * stride + first);
        for (int row = 0; row < rows; row++)
            *(floats *)(to + row * stride + first) = found[row];
    }
}

/* Each number of rows with registers of its own. */
#define WITH_ROWS(n, call) \
    switch (n) { \
    case 1: { enum { R = 1 }; call; break; } \
    case 2: { enum { R = 2 }; call; break; } \
    case 3: { enum { R = 3 }; call; break; } \
    case 4: { enum { R = 4 }; call; break; } \
    case 5: { enum { R = 5 }; call; break; } \
    default: { enum { R = 6 }; call; } \
    }

/* to = product(x), or to += product(x). x: (rows, inputs). to: (rows, stride), stride whole blocks.
 * `bytes`, `scales` and `sums` are room for the rows in 8 bits. */
static void multiply(const Product *product, int64_t rows, const float *x, float *to, int64_t stride,
                     int add, Room *room)
{
    int64_t width = padded(product->inputs, 4), blocks = padded(product->outputs, BLOCK) / BLOCK;
    if (product->bytes)
        for (int64_t row = 0; row < rows; row++)
            room->scales[row] = quantise(room->bytes + row * width, x + row * product->inputs,
                                         product->inputs, room->sums + row);
    /* The weights of a block stay in the cache for all rows. */
    for (int64_t block = 0; block < blocks; block++)
        for (int64_t row = 0; row < rows; row += ROWS) {
            int64_t some = rows - row < ROWS ? rows - row : ROWS;
            float *place = to + row * stride;
            if (product->bytes) {
                WITH_ROWS(some, multiply_bytes(R, product, block, room->bytes + row * width,
                                               room->scales + row, room->sums + row, place, stride,
                                               add))
            } else {
                WITH_ROWS(some, multiply_floats(R, product, block, x + row * product->inputs,
                                                product->inputs, place, stride, add))
            }
        }
}

/* A weight of input i and output o, as it was before packing. */
static inline float weight_of(const Product *product, int64_t output, int64_t i)
{
    int64_t group = output / LANES, lane = output % LANES;
    if (product->floats)
        return product->floats[(group * product->inputs + i) * LANES + lane];
    int64_t fours = padded(product->inputs, 4) / 4;
    uint8_t byte = product->bytes[((group * fours + i / 4) * LANES + lane) * 4 + i % 4];
    return ((int32_t)byte - 128) * product->scale[output];
}

#endif
