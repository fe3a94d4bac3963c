/* For ARM with products of signed bytes. */
#if defined(__aarch64__)
#define WITH_DOTPROD
#define KIND dotprod
#define TARGET "arch=armv8.2-a+dotprod"
#include "kind.h"
#endif
