/* The minimum of a quadratic model with an L1 penalty, for vectors of the machine's width: `WorkingSet.minimise`. */

#ifndef KCRF_SPARSE_STEPS_H
#define KCRF_SPARSE_STEPS_H

#include "_dispatch.h"

/* v(z) = soft(start - (slope - W z) / length, thresholds / length) for rows of W [n, m] that are `stride` values apart,
   and products [m] += W^T d of the step d = v(z) - start. sums [3] are <slope, d>, |d|^2 and what d adds to the penalty. */
typedef struct {
    const void *rows, *shares; /* W and z */
    void *products;
    ptrdiff_t stride, n, m;
    const double *start, *slope, *thresholds;
    double length, *point, *sums;
} kcrf_sparse_model;

#define BODY "_sparse_steps_body.h"
#define TYPED 1
#include "_each_width.h"

static inline void kcrf_minimum(const kcrf_sparse_model *model, int single)
{
    KCRF_DISPATCH_TYPED(kcrf_minimum, single, model);
}

#endif
