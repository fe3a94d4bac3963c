/* For x86 with the products of bytes of AVX-512, but not with its vectors. */
#if defined(__x86_64__)
#define WITH_AVXVNNI
#define KIND avxvnni
#define TARGET "avxvnni,avx2,fma,f16c"
#include "kind.h"
#endif
