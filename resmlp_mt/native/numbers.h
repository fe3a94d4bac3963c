/* Functions of many numbers. */
#ifndef NUMBERS_H
#define NUMBERS_H

#include "vectors.h"

/* The sum of it and a number below 2^22 has no room for a fraction: it is rounded to even. */
#define ROUNDING 12582912.0f

/* exp(x) to 2e-7 of itself, for x up to 88, by a polynomial between powers of 2. Below -80 it is
 * exp(-80): shares of a softmax are then no denormal numbers, which are slow. */
INLINE floats exp_of(floats x)
{
    x = larger(all(-80.0f), x);
    floats rounded = x * 1.44269504f + ROUNDING, power = rounded - ROUNDING;
    floats rest = x - power * 0.693359375f + power * 2.12194440e-4f;
    floats y = all(1.9875691500e-4f);
    y = y * rest + 1.3981999507e-3f;
    y = y * rest + 8.3334519073e-3f;
    y = y * rest + 4.1665795894e-2f;
    y = y * rest + 1.6666665459e-1f;
    y = y * rest + 5.0000001201e-1f;
    y = y * rest * rest + rest + 1.0f;
    return y * (floats)(((bits)rounded + 127) << 23);
}

/* exp(x) to 7e-6 of itself, for x up to 88; 1 for 0. Below -87 it is exp(-87). */
INLINE floats exp_near(floats x)
{
    x = larger(all(-87.0f), x) * 1.44269504f;
    floats rounded = x + ROUNDING, rest = x - (rounded - ROUNDING);
    floats y = all(9.582852180e-3f);
    y = y * rest + 5.590642461e-2f;
    y = y * rest + 2.402409863e-1f;
    y = y * rest + 6.931241934e-1f;
    y = y * rest + 1.0f;
    return (floats)((bits)y + ((bits)rounded << 23));
}

/* GELU, x Phi(x), with erf to 1.5e-7: formula 7.1.26 of Abramowitz and Stegun's handbook. */
INLINE floats gelu_of(floats x)
{
    floats size = larger(-x, x) * 0.707106781f;
    floats t = 1.0f / (1.0f + 0.3275911f * size);
    floats y = all(1.061405429f);
    y = y * t - 1.453152027f;
    y = y * t + 1.421413741f;
    y = y * t - 0.284496736f;
    y = y * t + 0.254829592f;
    floats tail = 0.5f * y * t * exp_of(-size * size); /* the smaller of Phi(x) and Phi(-x) */
    return x * pick(x < 0.0f, tail, 1.0f - tail);
}

/* GELU to 2e-4 between -8 and 8, for what is rounded to 8 bits next: Phi by a polynomial, which is
 * nearly 0 and 1 from 4 on. */
INLINE floats gelu_near(floats x)
{
    floats size = larger(all(-4.0f), smaller(all(4.0f), x)), square = size * size;
    floats y = all(2.258788499e-8f);
    y = y * square - 1.588809117e-6f;
    y = y * square + 4.776349449e-5f;
    y = y * square - 8.121832773e-4f;
    y = y * square + 8.763668299e-3f;
    y = y * square - 6.455435572e-2f;
    y = y * square + 3.978702191e-1f;
    return x * (0.5f + size * y);
}

INLINE floats sigmoid_of(floats x)
{
    return 1.0f / (1.0f + exp_of(smaller(all(87.0f), -x)));
}

static inline float sum_of(const float *x, int64_t n)
{
    floats sum = {0};
    for (int64_t i = 0; i < n; i += LANES)
        sum += get(x + i, n - i, 0);
    return add_up(sum);
}

static inline float largest_of(const float *x, int64_t n)
{
    floats found = all(-INFINITY);
    for (int64_t i = 0; i < n; i += LANES)
        found = larger(get(x + i, n - i, -INFINITY), found);
    return largest_lane(found);
}

/* NaN if one of them is. */
static inline float size_of_largest(const float *x, int64_t n)
{
    ints found = {0}; /* in bits: without the sign those of NaN are above all others */
    for (int64_t i = 0; i < n; i += LANES)
        found = larger_ints(found, (ints)get(x + i, n - i, 0) & INT32_MAX);
    int32_t largest = largest_lane_of_ints(found);
    float size;
    memcpy(&size, &largest, sizeof size);
    return size;
}

/* sum(exp(x - largest)) of whole vectors. */
static inline float sum_exp(const float *x, int64_t n, float largest)
{
    floats sum = {0};
    for (int64_t i = 0; i < n; i += LANES)
        sum += exp_near(*(const floats *)(x + i) - largest);
    return add_up(sum);
}

/* x becomes softmax(x). */
static inline void softmax(float *x, int64_t n)
{
    float largest = largest_of(x, n);
    floats sum = {0};
    for (int64_t i = 0; i < n; i += LANES) {
        floats y = exp_of(get(x + i, n - i, -INFINITY) - largest);
        sum += y;
        put(x + i, y, n - i);
    }
    float share = 1.0f / add_up(sum);
    for (int64_t i = 0; i < n; i += LANES)
        put(x + i, get(x + i, n - i, 0) * share, n - i);
}

/* (x - mean) / sqrt(variance + epsilon); x itself where epsilon is negative: an Aff. */
static inline void normalise(float *to, const float *x, int64_t n, float epsilon)
{
    if (epsilon < 0) {
        memcpy(to, x, n * sizeof *x);
        return;
    }
    float mean = sum_of(x, n) / n;
    floats square = {0};
    for (int64_t i = 0; i < n; i += LANES) {
        floats y = get(x + i, n - i, mean) - mean;
        square += y * y;
    }
    float factor = 1.0f / sqrtf(add_up(square) / n + epsilon);
    for (int64_t i = 0; i < n; i += LANES)
        put(to + i, (get(x + i, n - i, 0) - mean) * factor, n - i);
}

#endif
