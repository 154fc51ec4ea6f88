/* Products of sparse rows with thin dense matrices, for vectors of the machine's width. No values means ones. */

#ifndef KCRF_THIN_PRODUCTS_H
#define KCRF_THIN_PRODUCTS_H

#include "_dispatch.h"

#define REAL float
#define LANES NARROW_LANES
#define TARGET NARROW_TARGET
#define NAME(x) kcrf_##x##_float_narrow
#include "_thin_products_body.h"

#define REAL double
#define LANES NARROW_LANES
#define TARGET NARROW_TARGET
#define NAME(x) kcrf_##x##_double_narrow
#include "_thin_products_body.h"

#if KCRF_WIDE
#define REAL float
#define LANES 4
#define TARGET AVX2_TARGET
#define NAME(x) kcrf_##x##_float_avx2
#include "_thin_products_body.h"

#define REAL double
#define LANES 4
#define TARGET AVX2_TARGET
#define NAME(x) kcrf_##x##_double_avx2
#include "_thin_products_body.h"

#define REAL float
#define LANES 8
#define TARGET AVX512_TARGET
#define NAME(x) kcrf_##x##_float_avx512
#include "_thin_products_body.h"

#define REAL double
#define LANES 8
#define TARGET AVX512_TARGET
#define NAME(x) kcrf_##x##_double_avx512
#include "_thin_products_body.h"
#endif

/* out [last - first, C] += A[first:last] W. */
static inline void kcrf_multiply(
    const long long *indptr, const int *indices, const void *values, const void *W, ptrdiff_t C, ptrdiff_t first,
    ptrdiff_t last, void *out, int single)
{
    if (single)
        KCRF_DISPATCH(kcrf_multiply_float, indptr, indices, values, W, C, first, last, out);
    else
        KCRF_DISPATCH(kcrf_multiply_double, indptr, indices, values, W, C, first, last, out);
}

/* out [last - first, C] = A[first:last] R, in double precision. */
static inline void kcrf_gather(
    const long long *indptr, const int *indices, const void *values, const void *R, ptrdiff_t C, ptrdiff_t first,
    ptrdiff_t last, double *out, int single)
{
    if (single)
        KCRF_DISPATCH(kcrf_gather_float, indptr, indices, values, R, C, first, last, out);
    else
        KCRF_DISPATCH(kcrf_gather_double, indptr, indices, values, R, C, first, last, out);
}

#endif
