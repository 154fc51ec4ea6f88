/* Forward-backward of one sequence with shared edge potentials, by recursions on scaled exponentials.

   With wider vectors sums are taken in another order: results may differ in the last bits from machine to machine, never
   from thread to thread. Messages are rescaled only when their sums leave [LEAST_KEPT, MOST_KEPT]. What underflows beside a trusted sum is below 1e-308 and cannot be seen next to it. */

#ifndef KCRF_RECURSIONS_H
#define KCRF_RECURSIONS_H

#include "_dispatch.h"

#define LEAST_KEPT 1e-30
#define MOST_KEPT 1e30
#define LEAST_TRUSTED 1e-130
#define LEAST_PRODUCT 1e-160

/* What all sequences of a chunk share; exponentials have their largest entry divided out, its logarithm is the shift. */
struct kcrf_shared {
    ptrdiff_t stride;                              /* P, a multiple of 8 */
    const double *forward, *backward;              /* [Y, P] exp(E), and its transpose */
    const double *start, *end;                     /* [P] exp(s), exp(e) */
    double edge_shift, start_shift, end_shift;
    double *sums;                                  /* [P, P] += weight times sums of p(y_{t-1}, y_t | x) / exp(E) */
};

#define LANES NARROW_LANES
#define TARGET NARROW_TARGET
#define NAME(x) kcrf_##x##_narrow
#include "_recursions_body.h"

#if KCRF_WIDE
#define LANES 4
#define TARGET AVX2_TARGET
#define NAME(x) kcrf_##x##_avx2
#include "_recursions_body.h"

#define LANES 8
#define TARGET AVX512_TARGET
#define NAME(x) kcrf_##x##_avx512
#include "_recursions_body.h"
#endif

/* `rows` is scratch of kcrf_rows(T, Y) doubles. Zero where scaling cannot be trusted. */
static inline int kcrf_sequence(
    const void *scores, int single, ptrdiff_t T, ptrdiff_t Y, double weight, const struct kcrf_shared *shared,
    double *rows, void *node, double *log_z)
{
    return KCRF_DISPATCH(kcrf_sequence_any, scores, single, T, Y, weight, shared, rows, node, log_z);
}

/* out [Y] = exp(values - shift); returns the shift, which is the largest value: where it is not finite, out is not set. */
static inline double kcrf_exponentials(const void *values, int single, ptrdiff_t Y, double *out)
{
    return KCRF_DISPATCH(kcrf_exponentials_any, values, single, Y, out);
}

static inline ptrdiff_t kcrf_stride(ptrdiff_t Y) { return (Y + 7) / 8 * 8; }

static inline ptrdiff_t kcrf_rows(ptrdiff_t T, ptrdiff_t Y)
{
    return Y == 2 ? 4 * (T + 8) : (2 * T + 1) * kcrf_stride(Y);
}

#endif
