/* Products of sparse rows with thin dense matrices, for vectors of the machine's width. No values means ones. */

#ifndef KCRF_THIN_PRODUCTS_H
#define KCRF_THIN_PRODUCTS_H

#include "_dispatch.h"

/* Rows are cut into partitions. Sums are taken within a partition first, in double precision, and then rounded to the
   precision of the values, as they are sent from one machine to another; then over PARTITIONS_TOGETHER partitions, then
   over those. Indices are rows; one has NEXT_PARTITION set where it is in another partition than the one before it, and
   NEXT_GROUP, too, where that is in the next group of partitions. */
#define PARTITIONS_TOGETHER 16
#define NEXT_PARTITION (1u << 31)
#define NEXT_GROUP (1u << 30)
#define ROW_OF(index) ((int)((unsigned)(index) & (NEXT_GROUP - 1)))

#if defined(__aarch64__) /* vectors of sums that there are registers for, beside a few for what is added */
#define MOST_GATHERED 12
#else
#define MOST_GATHERED 8
#endif

#define KEPT_AT_ONCE 64 /* columns up to which whole rows are summed up before they are added to what is there */

#define BODY "_thin_products_body.h"
#define TYPED 1
#include "_each_width.h"

/* out [last - first, C] += A[first:last] W. */
static inline void kcrf_multiply(
    const long long *indptr, const int *indices, const void *values, const void *W, ptrdiff_t C, ptrdiff_t first,
    ptrdiff_t last, void *out, int single)
{
    KCRF_DISPATCH_TYPED(kcrf_multiply, single, indptr, indices, values, W, C, first, last, out);
}

/* out [last - first, C] = A[first:last] R, in double precision, by partitions. */
static inline void kcrf_gather(
    const long long *indptr, const int *indices, const void *values, const void *R, ptrdiff_t C, ptrdiff_t first,
    ptrdiff_t last, double *out, int single)
{
    KCRF_DISPATCH_TYPED(kcrf_gather, single, indptr, indices, values, R, C, first, last, out);
}

/* The product of `kcrf_multiply` with a W of which only some places are held; see `NAME(multiply_kept)`. */
static inline void kcrf_multiply_kept(
    const long long *indptr, const int *indices, const void *values, const long long *starts, const void *W,
    ptrdiff_t C, ptrdiff_t first, ptrdiff_t last, void *out, int single)
{
    KCRF_DISPATCH_TYPED(kcrf_multiply_kept, single, indptr, indices, values, starts, W, C, first, last, out);
}

/* The sums of `kcrf_gather` at places kept[ends[first]:ends[last]] alone, put into `out` [K] there. */
static inline void kcrf_gather_kept(
    const long long *indptr, const int *indices, const void *values, const void *R, ptrdiff_t C, const long long *kept,
    const long long *ends, const double *scale, ptrdiff_t first, ptrdiff_t last, double *room, double *out, int single)
{
    KCRF_DISPATCH_TYPED(
        kcrf_gather_kept, single, indptr, indices, values, R, C, kept, ends, scale, first, last, room, out);
}

#endif
