/* Functions of many numbers, which compilers turn into vector instructions. */
#ifndef NUMBERS_H
#define NUMBERS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* The loop after it may add up in any order. */
#define PRAGMA(x) _Pragma(#x)
#define SUM(x) PRAGMA(omp simd reduction(+ : x))
/* The loop after it may compute many numbers at once: none needs another's result. */
#define SIDE_BY_SIDE PRAGMA(omp simd)

/* exp(x) to 2e-7 of itself, for x up to 88, by a polynomial between powers of 2. Below -80 it is
 * exp(-80): shares of a softmax are then no denormal numbers, which are slow. */
static inline float exp_of(float x)
{
    x = x < -80.0f ? -80.0f : x;
    float power = rintf(x * 1.44269504f);
    float rest = x - power * 0.693359375f + power * 2.12194440e-4f;
    float y = 1.9875691500e-4f;
    y = y * rest + 1.3981999507e-3f;
    y = y * rest + 8.3334519073e-3f;
    y = y * rest + 4.1665795894e-2f;
    y = y * rest + 1.6666665459e-1f;
    y = y * rest + 5.0000001201e-1f;
    y = y * rest * rest + rest + 1.0f;
    int32_t bits = ((int32_t)power + 127) << 23;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return y * scale;
}

/* exp(x) to 7e-6 of itself, for x up to 88; 1 for 0. Below -87 it is exp(-87). */
static inline float exp_near(float x)
{
    x = (x < -87.0f ? -87.0f : x) * 1.44269504f;
    float power = rintf(x), rest = x - power;
    float y = 9.582852180e-3f;
    y = y * rest + 5.590642461e-2f;
    y = y * rest + 2.402409863e-1f;
    y = y * rest + 6.931241934e-1f;
    y = y * rest + 1.0f;
    int32_t bits;
    memcpy(&bits, &y, sizeof bits);
    bits += (int32_t)power << 23;
    memcpy(&y, &bits, sizeof bits);
    return y;
}

/* GELU, x Phi(x), with erf to 1.5e-7: formula 7.1.26 of Abramowitz and Stegun's handbook. */
static inline float gelu_of(float x)
{
    float size = fabsf(x) * 0.707106781f;
    float t = 1.0f / (1.0f + 0.3275911f * size);
    float y = 1.061405429f;
    y = y * t - 1.453152027f;
    y = y * t + 1.421413741f;
    y = y * t - 0.284496736f;
    y = y * t + 0.254829592f;
    float tail = 0.5f * y * t * exp_of(-size * size); /* the smaller of Phi(x) and Phi(-x) */
    return x * (x < 0.0f ? tail : 1.0f - tail);
}

/* GELU to 2e-4 between -8 and 8, for what is rounded to 8 bits next: Phi by a polynomial, which is
 * nearly 0 and 1 from 4 on. */
static inline float gelu_near(float x)
{
    float size = x < -4.0f ? -4.0f : x > 4.0f ? 4.0f : x, square = size * size;
    float y = 2.258788499e-8f;
    y = y * square - 1.588809117e-6f;
    y = y * square + 4.776349449e-5f;
    y = y * square - 8.121832773e-4f;
    y = y * square + 8.763668299e-3f;
    y = y * square - 6.455435572e-2f;
    y = y * square + 3.978702191e-1f;
    return x * (0.5f + size * y);
}

static inline float sigmoid_of(float x)
{
    return 1.0f / (1.0f + exp_of(x < -87.0f ? 87.0f : -x));
}

static inline float sum_of(const float *x, int64_t n)
{
    float sum = 0;
    SUM(sum)
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

static inline float largest_of(const float *x, int64_t n)
{
    float largest = -INFINITY;
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < n; i++)
        largest = x[i] > largest ? x[i] : largest;
    return largest;
}

/* NaN if one of them is. */
static inline float size_of_largest(const float *x, int64_t n)
{
    int32_t largest = 0; /* in bits: without the sign those of NaN are above all others */
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= INT32_MAX;
        largest = bits > largest ? bits : largest;
    }
    float size;
    memcpy(&size, &largest, sizeof size);
    return size;
}

/* log(sum(exp(x))), of which the largest is known. */
static inline float log_sum_exp(const float *x, int64_t n, float largest)
{
    float sum = 0;
    SUM(sum)
    for (int64_t i = 0; i < n; i++)
        sum += exp_near(x[i] - largest);
    return largest + logf(sum);
}

/* x becomes softmax(x). */
static inline void softmax(float *x, int64_t n)
{
    float largest = largest_of(x, n), sum = 0;
    SUM(sum)
    for (int64_t i = 0; i < n; i++) {
        x[i] = exp_of(x[i] - largest);
        sum += x[i];
    }
    for (int64_t i = 0; i < n; i++)
        x[i] /= sum;
}

/* (x - mean) / sqrt(variance + epsilon); x itself where epsilon is negative: an Aff. */
static inline void normalise(float *to, const float *x, int64_t n, float epsilon)
{
    if (epsilon < 0) {
        memcpy(to, x, n * sizeof *x);
        return;
    }
    float mean = sum_of(x, n) / n, square = 0;
    SUM(square)
    for (int64_t i = 0; i < n; i++) {
        to[i] = x[i] - mean;
        square += to[i] * to[i];
    }
    float factor = 1.0f / sqrtf(square / n + epsilon);
    for (int64_t i = 0; i < n; i++)
        to[i] *= factor;
}

#endif
