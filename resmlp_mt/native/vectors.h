/* Vectors of numbers, as wide as the kind of processor has them, and what each kind does in a way of
 * its own. All else is written with these, so that no compiler has to find vectors in loops.
 *
 * A file says its kind before: WITH_AVX512, WITH_AVXVNNI, WITH_AVX2, WITH_I8MM, WITH_DOTPROD, or none
 * for the plain one, which has no instructions by name.
 */
#ifndef VECTORS_H
#define VECTORS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "decoder.h"

/* LANES of a vector; VECTORS of a tile, which with ROWS rows has its sums in registers; FOURS of
 * inputs in 8 bits that are multiplied at once; ADDED to weights in 8 bits before that. */
#if defined(WITH_AVX512)
enum { LANES = 16, VECTORS = 4, FOURS = 1, ADDED = 128 };
#elif defined(WITH_AVXVNNI)
enum { LANES = 8, VECTORS = 2, FOURS = 1, ADDED = 128 };
#elif defined(WITH_AVX2)
enum { LANES = 8, VECTORS = 2, FOURS = 2, ADDED = 128 };
#elif defined(WITH_I8MM)
enum { LANES = 4, VECTORS = 4, FOURS = 1, ADDED = 128 };
#elif defined(WITH_DOTPROD)
enum { LANES = 4, VECTORS = 4, FOURS = 1, ADDED = 0 };
#else
enum { LANES = 4, VECTORS = 2, FOURS = 2, ADDED = 128 };
#endif
#define TILE (VECTORS * LANES)

#if defined(WITH_AVX512)
#include <immintrin.h>
#define X86(name) _mm512_##name
#define X86_FLOATS __m512
#define X86_INTS __m512i
#elif defined(WITH_AVX2) || defined(WITH_AVXVNNI)
#include <immintrin.h>
#define X86(name) _mm256_##name
#define X86_FLOATS __m256
#define X86_INTS __m256i
#elif defined(WITH_I8MM) || defined(WITH_DOTPROD)
#include <arm_neon.h>
#define NEON
#endif

typedef float floats __attribute__((vector_size(4 * LANES), aligned(4)));
typedef int32_t ints __attribute__((vector_size(4 * LANES), aligned(4)));
typedef uint32_t bits __attribute__((vector_size(4 * LANES), aligned(4)));
typedef uint8_t bytes __attribute__((vector_size(4 * LANES), aligned(1)));
typedef uint16_t halves __attribute__((vector_size(2 * LANES), aligned(2)));
typedef int8_t signed_bytes __attribute__((vector_size(LANES), aligned(1)));
typedef int16_t shorts __attribute__((vector_size(4 * LANES)));
typedef float four_floats __attribute__((vector_size(16), aligned(4)));
typedef int32_t four_ints __attribute__((vector_size(16), aligned(4)));
typedef uint64_t two __attribute__((vector_size(16)));

#define INLINE static inline __attribute__((always_inline))
/* The loop after it is written out, so that the sums of a tile stay in registers. */
#ifdef __clang__
#define WRITTEN_OUT PRAGMA(clang loop unroll(full))
#else
#define WRITTEN_OUT PRAGMA(GCC unroll 8)
#endif

INLINE floats all(float x) { return (floats){0} + x; }
INLINE floats pick(ints which, floats a, floats b)
{
    return (floats)((which & (ints)a) | (~which & (ints)b));
}

/* Where one of two numbers is NaN, these are the second. */
INLINE floats larger(floats a, floats b)
{
#ifdef X86
    return (floats)X86(max_ps)((X86_FLOATS)a, (X86_FLOATS)b);
#else
    return pick(a > b, a, b);
#endif
}

INLINE floats smaller(floats a, floats b)
{
#ifdef X86
    return (floats)X86(min_ps)((X86_FLOATS)a, (X86_FLOATS)b);
#else
    return pick(a < b, a, b);
#endif
}

INLINE ints larger_ints(ints a, ints b)
{
#ifdef X86
    return (ints)X86(max_epi32)((X86_INTS)a, (X86_INTS)b);
#else
    return (ints)pick(a > b, (floats)a, (floats)b);
#endif
}

INLINE float add_up(floats x)
{
    four_floats parts[LANES / 4], sum;
    memcpy(parts, &x, sizeof x);
    sum = parts[0];
    for (int part = 1; part < LANES / 4; part++)
        sum += parts[part];
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

INLINE four_ints larger_of_four(four_ints a, four_ints b)
{
    four_ints which = a > b;
    return (which & a) | (~which & b);
}

/* Halves are folded onto each other: lane by lane each would wait for the one before. */
INLINE int32_t largest_lane_of_ints(ints x)
{
    four_ints parts[LANES / 4], found;
    memcpy(parts, &x, sizeof x);
    found = parts[0];
    for (int part = 1; part < LANES / 4; part++)
        found = larger_of_four(parts[part], found);
    int32_t even = found[0] > found[2] ? found[0] : found[2];
    int32_t odd = found[1] > found[3] ? found[1] : found[3];
    return even > odd ? even : odd;
}

INLINE float largest_lane(floats x)
{
    four_floats parts[LANES / 4], found;
    memcpy(parts, &x, sizeof x);
    found = parts[0];
    for (int part = 1; part < LANES / 4; part++) {
        four_ints which = parts[part] > found;
        found = (four_floats)((which & (four_ints)parts[part]) | (~which & (four_ints)found));
    }
    float even = found[0] > found[2] ? found[0] : found[2];
    float odd = found[1] > found[3] ? found[1] : found[3];
    return even > odd ? even : odd;
}

INLINE int32_t add_up_ints(ints x)
{
    four_ints parts[LANES / 4], sum;
    memcpy(parts, &x, sizeof x);
    sum = parts[0];
    for (int part = 1; part < LANES / 4; part++)
        sum += parts[part];
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

/* The first numbers, where fewer than LANES are left of n; `fill` takes the place of others. */
INLINE floats get(const float *x, int64_t n, float fill)
{
    if (n >= LANES)
        return *(const floats *)x;
    floats some = all(fill);
    memcpy(&some, x, n * sizeof *x);
    return some;
}

INLINE void put(float *to, floats x, int64_t n)
{
    if (n >= LANES)
        *(floats *)to = x;
    else
        memcpy(to, &x, n * sizeof *to);
}

/* Numbers in 16 bits, in full, and back. */
INLINE floats widen(halves x)
{
#if defined(WITH_AVX512)
    return (floats)_mm512_cvtph_ps((__m256i)x);
#elif defined(X86)
    return (floats)_mm256_cvtph_ps((__m128i)x);
#elif defined(NEON)
    return (floats)vcvt_f32_f16((float16x4_t)x);
#else
    bits all_bits = __builtin_convertvector(x, bits), size = (all_bits & 0x7fff) << 13;
    floats scaled = (floats)size * 0x1p112f; /* exponents differ by so much */
    bits infinite = (bits)(size >= (bits){0} + (0x7c00u << 13));
    return (floats)((bits)scaled | (infinite & 0x7f800000u) | (all_bits >> 15 << 31));
#endif
}

INLINE halves halve(floats x)
{
#if defined(WITH_AVX512)
    return (halves)_mm512_cvtps_ph((__m512)x, 0);
#elif defined(X86)
    return (halves)_mm256_cvtps_ph((__m256)x, 0);
#elif defined(NEON)
    return (halves)vcvt_f16_f32((float32x4_t)x);
#else
    bits sign = (bits)x >> 31 << 15, size = (bits)x & 0x7fffffffu, none = {0};
    bits normal = (size + (size >> 13 & 1) + (0xfffu - (112u << 23))) >> 13;
    bits small = (bits)((floats)size + 0.5f) - 0x3f000000u; /* below what is normal in 16 bits */
    bits large = 0x7c00u + ((bits)(size > none + 0x7f800000u) & 0x200u); /* infinite, or NaN */
    bits is_small = (bits)(size < none + (113u << 23));
    bits is_large = (bits)(size >= none + (143u << 23));
    bits found = (is_small & small) | (is_large & large) | (~(is_small | is_large) & normal);
    return __builtin_convertvector(found | sign, halves);
#endif
}

/* A vector of numbers in 16 bits, or in full. */
INLINE floats load(int half, const void *numbers, int64_t i)
{
    if (half)
        return widen(*(const halves *)((const uint16_t *)numbers + i));
    return *(const floats *)((const float *)numbers + i);
}

/* The same, where fewer than LANES may be left of n. */
INLINE floats get_of(int half, const void *numbers, int64_t i, int64_t n)
{
    if (n - i >= LANES)
        return load(half, numbers, i);
    if (!half)
        return get((const float *)numbers + i, n - i, 0);
    halves some = {0};
    memcpy(&some, (const uint16_t *)numbers + i, (n - i) * sizeof(uint16_t));
    return widen(some);
}

/* Which of LANES numbers reach a bar: a bit for each. */
INLINE uint32_t find_reaching(const float *x, float bar)
{
#if defined(WITH_AVX512)
    return _mm512_cmp_ps_mask(_mm512_loadu_ps(x), _mm512_set1_ps(bar), _CMP_GE_OQ);
#elif defined(X86)
    return _mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(x), _mm256_set1_ps(bar), _CMP_GE_OQ));
#else
    uint32_t found = 0;
    for (int lane = 0; lane < LANES; lane++)
        found |= (uint32_t)(x[lane] >= bar) << lane;
    return found;
#endif
}

/* sum + weights times inputs, which lie in fours. Where FOURS is 2, four products meet in 16 bits:
 * those of the first two of both fours, and of the last two. */
INLINE ints add_products(ints sum, const bytes *weights, const bytes *inputs)
{
#if defined(WITH_AVX512)
    return (ints)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)*weights, (__m512i)*inputs);
#elif defined(WITH_AVXVNNI)
    return (ints)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)*weights, (__m256i)*inputs);
#elif defined(WITH_I8MM)
    return (ints)vusdotq_s32((int32x4_t)sum, (uint8x16_t)*weights, (int8x16_t)*inputs);
#elif defined(WITH_DOTPROD)
    return (ints)vdotq_s32((int32x4_t)sum, (int8x16_t)(*weights ^ 128), (int8x16_t)*inputs);
#elif defined(WITH_AVX2)
    __m256i fours =
        _mm256_add_epi16(_mm256_maddubs_epi16((__m256i)weights[0], (__m256i)inputs[0]),
                         _mm256_maddubs_epi16((__m256i)weights[1], (__m256i)inputs[1]));
    return sum + (ints)_mm256_madd_epi16(fours, _mm256_set1_epi16(1));
#else
    shorts fours = {0};
    for (int i = 0; i < FOURS; i++) {
        shorts weight = (shorts)weights[i], input = (shorts)inputs[i];
        fours += (weight & 255) * (input << 8 >> 8) + (weight >> 8 & 255) * (input >> 8);
    }
    return sum + ((ints)fours << 16 >> 16) + ((ints)fours >> 16);
#endif
}

/* The same of two vectors that lie in one order. Two products meet in 16 bits. */
INLINE ints add_in_order(ints sum, bytes weights, bytes inputs)
{
    bytes both[2][2] = {{weights}, {inputs}};
    return add_products(sum, both[0], both[1]);
}

/* Of eight numbers the sums of those whose products meet, of the positive ones and the negative ones,
 * in bits without a sign. NaN if one of them is: where one of two is, max_ps takes the second. */
INLINE four_ints add_meeting(const float *eight)
{
#ifdef WITH_AVX2
    __m256 x = _mm256_loadu_ps(eight), none = {0};
    __m256 twos = _mm256_hadd_ps(_mm256_max_ps(none, x), _mm256_max_ps(none, -x));
    return (four_ints)(_mm256_castps256_ps128(twos) + _mm256_extractf128_ps(twos, 1)) & INT32_MAX;
#else
    four_floats sums[2] = {{0}};
    for (int k = 0; k < INPUTS; k += 4) {
        four_ints some = (four_ints)*(const four_floats *)(eight + k);
        sums[0] += (four_floats)(some & ~(some >> 31));
        sums[1] += (four_floats)(some & (some >> 31) & INT32_MAX);
    }
    two first = (two)sums[0], second = (two)sums[1]; /* the halves of each change places */
    four_ints up = (four_ints)(sums[0] + (four_floats)(first << 32 | first >> 32));
    four_ints down = (four_ints)(sums[1] + (four_floats)(second << 32 | second >> 32));
    four_ints more = up > down;
    return (more & up) | (~more & down);
#endif
}

/* Let other threads have the processor for a moment. */
INLINE void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
