/* For x86 with AVX-512 and its products of bytes (VNNI). */
#if defined(__x86_64__)
#define WITH_AVX512
#define KIND avx512
#define TARGET "avx512f,avx512bw,avx512vl,avx512dq,avx512cd,avx512vnni,avx2,fma,f16c"
#include "kind.h"
#endif
