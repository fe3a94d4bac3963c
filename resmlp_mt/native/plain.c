/* For all other processors. */
#define KIND plain
#include "kind.h"
