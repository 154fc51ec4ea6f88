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

/* out [last - first, C] += A[first:last] W; `_kept` of a W of which only some places are held. */
#define kcrf_multiply(single, ...) KCRF_DISPATCH_TYPED(kcrf_multiply, single, __VA_ARGS__)
#define kcrf_multiply_kept(single, ...) KCRF_DISPATCH_TYPED(kcrf_multiply_kept, single, __VA_ARGS__)

/* out [last - first, C] = A[first:last] R, in double precision, by partitions; `_kept` at places alone that are kept. */
#define kcrf_gather(single, ...) KCRF_DISPATCH_TYPED(kcrf_gather, single, __VA_ARGS__)
#define kcrf_gather_kept(single, ...) KCRF_DISPATCH_TYPED(kcrf_gather_kept, single, __VA_ARGS__)

#endif
