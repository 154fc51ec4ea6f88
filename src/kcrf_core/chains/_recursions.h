/* Forward-backward of one sequence with shared edge potentials, by recursions on scaled exponentials.

   `_messages.pyx` has recursions for chains of all kinds. These are kept beside them for speed: sequences of 20 random
   positions took 0.17 instead of 0.48 ms for 4,000 positions with 2 labels, 0.91 instead of 1.6 ms with 9, 2.4 instead
   of 5.1 ms with 23, 7.4 instead of 15.7 ms with 50 (processor time on one ARM core, 128 bits).

   Sums are taken in one order at every width of vectors. Messages are rescaled only when their sums leave [LEAST_KEPT, MOST_KEPT].

   Why scaling can be trusted. All terms are positive, so only underflows can be errors that matter. An entry loses at
   most Y 7e-308 beside a sum of 1 in the row that it is made of, and Y 7e-278 where that sum is MOST_KEPT.
   - What the forward messages lost at t and the backward ones did not shows in their product at t, as Y 7e-278 times
     the sum of the backward message, 1e30 at most, and 1 / LEAST_TRUSTED where the row was rescaled: less than 1e-40
     of a product of LEAST_PRODUCT. The same holds for what the backward messages alone lost.
   - What both lost, forward at t and backward at some s >= t, is in no product. With the largest potentials divided
     out, the Y^T paths have at most 1 each, so that all this is at most T^2 Y^(T + 4) (4.5e-278)^2. kcrf_outweighs
     says that Z, divided in the same way, is 1e30 times as much.
   - Where it is not, which long sequences bring about by themselves, kcrf_lossless looks at the forward messages:
     where they have lost nothing, there is nothing that both lost. nothing_small asks the same of all rows at once. */

#ifndef KCRF_RECURSIONS_H
#define KCRF_RECURSIONS_H

#include "_dispatch.h"

#define LEAST_KEPT 1e-30
#define MOST_KEPT 1e30
#define LEAST_TRUSTED 1e-80
#define LEAST_PRODUCT 1e-120
#define LEAST_LOG_Z -1160.0 /* log(1e30 (4.5e-278)^2 T^2) for any T below 10^10 */
#define LEAST_LOG_TERM -600.0 /* far from underflow, also after a division by the sum of a row */
#define LEAST_TERM 1e-260 /* the same */

/* What all sequences of a chunk share; exponentials have their largest entry divided out, its logarithm is the shift. */
struct kcrf_shared {
    ptrdiff_t stride;                              /* P, a multiple of 8 */
    const double *forward, *backward;              /* [Y, P] exp(E), and its transpose */
    const double *start, *end;                     /* [P] exp(s), exp(e) */
    double edge_shift, start_shift, end_shift;
    double edge_depth, start_depth;                /* of E and s, see kcrf_depth */
    double log_labels;                             /* log(Y) */
    int forbidden;                                 /* E has minus infinity */
    double *sums;                                  /* [P, P] += weight times sums of p(y_{t-1}, y_t | x) / exp(E) */
};

/* True if underflows of two messages that met cannot change log Z, the largest potentials divided out. */
static inline int kcrf_outweighs(double log_z, ptrdiff_t T, double log_labels)
{
    return log_z >= LEAST_LOG_Z + (double)(T + 4) * log_labels;
}

static FORCE_INLINE double kcrf_depth_of(const void *values, const int single, ptrdiff_t count)
{
    double least = INFINITY, most = -INFINITY;
    for (ptrdiff_t j = 0; j < count; j++) {
        double value = single ? ((const float *)values)[j] : ((const double *)values)[j];
        double finite = value > -INFINITY ? value : INFINITY;
        least = finite < least ? finite : least;
        most = value > most ? value : most;
    }
    return most >= least ? most - least : 0.0;
}

/* Difference of the largest and the smallest finite value, if none is infinity or NaN. */
static NEVER_INLINE double kcrf_depth(const void *values, int single, ptrdiff_t count)
{
    return single ? kcrf_depth_of(values, 1, count) : kcrf_depth_of(values, 0, count);
}

/* True if no entry of the forward messages can have underflowed on its way: zeros are impossible states.
   `messages` [T, stride] hold `states` entries each, row 0 is not looked at; E has `entries` potentials for each step
   where these are `apart`, else `edge_depth` is theirs; `deeper` is the depth of what steps from the second on add. */
static NEVER_INLINE int kcrf_lossless(
    const void *scores, int single, ptrdiff_t T, ptrdiff_t Y, const double *messages, ptrdiff_t states,
    ptrdiff_t stride, double start_depth, const double *E, ptrdiff_t entries, int apart, double edge_depth,
    double deeper)
{
    double low = -start_depth; /* a lower bound of the logarithms of what the terms of a row are */
    for (ptrdiff_t t = 0; t < T; t++) {
        if (t > 1) {
            double least = 1.0;
            for (ptrdiff_t j = 0; j < states; j++) {
                double value = messages[(t - 1) * stride + j];
                value = value > 0.0 ? value : 1.0;
                least = value < least ? value : least;
            }
            low = (least >= 1e-100 ? -231.0 : log(least)) - deeper;
        }
        if (t > 0)
            low -= apart ? kcrf_depth(E + t * entries, 0, entries) : edge_depth;
        low -= single ? kcrf_depth((const float *)scores + t * Y, 1, Y)
                      : kcrf_depth((const double *)scores + t * Y, 0, Y);
        if (!(low >= LEAST_LOG_TERM))
            return 0;
    }
    return 1;
}

#define BODY "_recursions_body.h"
#define TYPED 0
#include "_each_width.h"

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

/* now[j] = max over i < n of before[i] + E[i, j], for j < width; minus infinity where n is 0. */
static inline void kcrf_max_plus(const double *before, const double *E, ptrdiff_t n, ptrdiff_t width, double *now)
{
    KCRF_DISPATCH(kcrf_max_plus, before, E, n, width, now);
}

static inline ptrdiff_t kcrf_stride(ptrdiff_t Y) { return (Y + 7) / 8 * 8; }

static inline ptrdiff_t kcrf_rows(ptrdiff_t T, ptrdiff_t Y)
{
    return Y == 2 ? 4 * (T + 8) : (2 * T + 1) * kcrf_stride(Y);
}

#endif
