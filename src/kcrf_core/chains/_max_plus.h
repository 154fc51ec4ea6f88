/* The step of Viterbi, for vectors of the machine's width. */

#ifndef KCRF_MAX_PLUS_H
#define KCRF_MAX_PLUS_H

#include "_dispatch.h"

#define BODY "_max_plus_body.h"
#define TYPED 0
#include "_each_width.h"

static inline void kcrf_max_plus(const double *before, const double *E, ptrdiff_t n, ptrdiff_t width, double *now)
{
    KCRF_DISPATCH(kcrf_max_plus, before, E, n, width, now);
}

#endif
