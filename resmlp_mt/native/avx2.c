/* For x86 with AVX2, which nearly all have. */
#if defined(__x86_64__)
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c")
#endif
#define STEP step_avx2
#include "step.h"
#define SEARCH search_avx2
#include "search.h"
#define CLASSIFY classify_avx2
#include "classify.h"
#define ENCODE encode_avx2
#include "encode.h"
#ifdef __clang__
#pragma clang attribute pop
#endif
#endif
