/* What solvers do with long vectors, tile by tile, for vectors of the machine's width.

   Every operation goes through some slices of its vectors, first to last of bounds, and puts sums over each slice into
   a row of its own; the caller adds those up in the order of slices, so that sums do not depend on who took which.
   Values are in single or double precision; so is arithmetic with pairs, all other is in double precision. */

#ifndef KCRF_LONG_VECTORS_H
#define KCRF_LONG_VECTORS_H

#include "_dispatch.h"

#define TILE 512 /* values: a tile of a dozen vectors stays in the first cache, and one of sixty in the second */

typedef struct {
    void *values;
    int single; /* else double precision */
} kcrf_values;

/* Slices first to last: number k goes from bounds[k] to bounds[k + 1]. */
typedef struct {
    const long long *bounds;
    ptrdiff_t first, last;
} kcrf_slices;

#define BODY "_long_vectors_body.h"
#define TYPED 0
#include "_each_width.h"

/* out = start + step direction. */
static inline void kcrf_stepped(
    kcrf_slices some, kcrf_values start, double step, kcrf_values direction, kcrf_values out)
{
    KCRF_DISPATCH(kcrf_stepped, some, start, step, direction, out);
}

/* out = vector. */
static inline void kcrf_copied(kcrf_slices some, kcrf_values vector, kcrf_values out)
{
    KCRF_DISPATCH(kcrf_copied, some, vector, out);
}

/* out = a b, or a / b. */
static inline void kcrf_combined(kcrf_slices some, kcrf_values a, kcrf_values b, int divide, kcrf_values out)
{
    KCRF_DISPATCH(kcrf_combined, some, a, b, divide, out);
}

/* Sums [slices] of a b. */
static inline void kcrf_dots(kcrf_slices some, kcrf_values a, kcrf_values b, double *sums)
{
    KCRF_DISPATCH(kcrf_dots, some, a, b, sums);
}

/* Inner products of rows of one type with a vector, sums [slices, count]. */
static inline void kcrf_products(
    kcrf_slices some, const kcrf_values *rows, ptrdiff_t count, kcrf_values vector, double *sums)
{
    KCRF_DISPATCH(kcrf_products, some, rows, count, vector, sums);
}

/* target += precisions[slice] vector. */
static inline void kcrf_add_curvature(
    kcrf_slices some, kcrf_values target, kcrf_values vector, const double *precisions)
{
    KCRF_DISPATCH(kcrf_add_curvature, some, target, vector, precisions);
}

/* gradient += precisions[slice] theta; sums [slices, 2] of theta^2 and of the new gradient^2. */
static inline void kcrf_add_prior(
    kcrf_slices some, kcrf_values gradient, kcrf_values theta, const double *precisions, double *sums)
{
    KCRF_DISPATCH(kcrf_add_prior, some, gradient, theta, precisions, sums);
}

/* out = g / sqrt(precision) for g = gradient - precision theta; sums [slices, count + 2] of g theta, and of out times
   each of `count` others and itself. */
static inline void kcrf_linearised(
    kcrf_slices some, kcrf_values theta, kcrf_values gradient, const double *precisions, const kcrf_values *others,
    ptrdiff_t count, kcrf_values out, double *sums)
{
    KCRF_DISPATCH(kcrf_linearised, some, theta, gradient, precisions, others, count, out, sums);
}

/* steps[slot] = after - before, change = new_gradient - gradient; sums [slices, count, 2] of each step times that
   change and times the new gradient. */
static inline void kcrf_put_pair(
    kcrf_slices some, const kcrf_values *steps, ptrdiff_t count, ptrdiff_t slot, kcrf_values change, kcrf_values before,
    kcrf_values after, kcrf_values gradient, kcrf_values new_gradient, double *sums)
{
    KCRF_DISPATCH(kcrf_put_pair, some, steps, count, slot, change, before, after, gradient, new_gradient, sums);
}

/* out = -(gradient + sum_i shares[i] changes[i]) scale, no scale where its values are NULL. Where `sums` is not NULL,
   sums [slices, count + 1] of each change times out, and of changes[newest]^2 scale, zero where newest is negative. */
static inline void kcrf_reduced(
    kcrf_slices some, const kcrf_values *changes, ptrdiff_t count, const double *shares, kcrf_values gradient,
    kcrf_values scale, ptrdiff_t newest, kcrf_values out, double *sums)
{
    KCRF_DISPATCH(kcrf_reduced, some, changes, count, shares, gradient, scale, newest, out, sums);
}

/* target = length target + sum_i weights[i] steps[i]; sums [slices] of target times the gradient. */
static inline void kcrf_finished(
    kcrf_slices some, const kcrf_values *steps, ptrdiff_t count, const double *weights, double length,
    kcrf_values target, kcrf_values gradient, double *sums)
{
    KCRF_DISPATCH(kcrf_finished, some, steps, count, weights, length, target, gradient, sums);
}

#endif
