/* All that is compiled once for each kind of processor. The file that includes it says KIND, which
 * names end with, and TARGET, what compilers call that processor; the plain kind has none. */
#define PRAGMA_OF(x) _Pragma(#x)
#define PRAGMA(x) PRAGMA_OF(x)
#define NAME_OF(name, kind) name##_##kind
#define NAME(name, kind) NAME_OF(name, kind)
#ifdef TARGET
#ifdef __clang__
PRAGMA(clang attribute push(__attribute__((target(TARGET))), apply_to = function))
#else
PRAGMA(GCC target(TARGET))
#endif
#endif
#include "step.h"
#define SEARCH NAME(search, KIND)
#include "search.h"
#define CLASSIFY NAME(classify, KIND)
#include "classify.h"
#define ENCODE NAME(encode, KIND)
#include "encode.h"
#if defined(TARGET) && defined(__clang__)
PRAGMA(clang attribute pop)
#endif
