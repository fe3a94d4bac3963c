/* For x86 with AVX-512 and its products of bytes (VNNI). */
#if defined(__x86_64__)
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("arch=x86-64-v4,avx512vnni"))), \
                             apply_to = function)
#else
#pragma GCC target("arch=x86-64-v4,avx512vnni,prefer-vector-width=512")
#endif
#define WITH_AVX512
#define STEP step_avx512
#include "step.h"
#define SEARCH search_avx512
#include "search.h"
#define CLASSIFY classify_avx512
#include "classify.h"
#define ENCODE encode_avx512
#include "encode.h"
#ifdef __clang__
#pragma clang attribute pop
#endif
#endif
