/* For x86 with AVX2, which nearly all have. */
#if defined(__x86_64__)
#define WITH_AVX2
#define KIND avx2
#define TARGET "avx2,fma,f16c"
#include "kind.h"
#endif
