/* For ARM with products of unsigned and signed bytes. */
#if defined(__aarch64__)
#define WITH_I8MM
#define KIND i8mm
#define TARGET "arch=armv8.2-a+dotprod+i8mm"
#include "kind.h"
#endif
