/* Operations of solvers on long vectors, tile by tile, for vectors of the machine's width.

   Every operation goes through some slices of its vectors, first to last of bounds, and puts sums over each slice into
   a row of its own; the caller adds those up in the order of slices, so that sums do not depend on the threads.
   Values are in single or double precision; so is arithmetic with pairs, all other is in double precision. Pairs may
   also be kept as the upper halves of single numbers: eight bits of a value, and its exponent. */

#ifndef KCRF_LONG_VECTORS_H
#define KCRF_LONG_VECTORS_H

#include <stdint.h>

#include "_dispatch.h"

#define TILE 512 /* values: a tile of a dozen vectors stays in the first cache, and one of sixty in the second */

typedef struct {
    void *values;
    int bytes; /* of a value: 8, 4, or 2 for the upper half of a single number */
} kcrf_values;

/* Slices first to last: number k goes from bounds[k] to bounds[k + 1]. */
typedef struct {
    const long long *bounds;
    ptrdiff_t first, last;
} kcrf_slices;

/* The vectors and numbers of an operation: each uses what it needs. */
typedef struct kcrf_operation kcrf_operation;

typedef void (*kcrf_work_on)(const kcrf_operation *self, kcrf_slices some);

struct kcrf_operation {
    kcrf_work_on work;
    const long long *bounds, *runs; /* of slices, and of the runs of slices that are tasks */
    kcrf_values a, b, c, d, e;
    const kcrf_values *rows;
    ptrdiff_t count, number;
    double factor;
    const double *factors;
    double *sums;
};

#define BODY "_long_vectors_body.h"
#define TYPED 0
#include "_each_width.h"

#endif
