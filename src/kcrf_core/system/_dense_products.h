/* Products of dense rows with thin matrices, for vectors of the machine's width: of kernel values with weights, and of
   their transpose with errors.

   Thin matrices are padded to whole vectors. A block of rows, or of columns, is worked on at a time, with all its sums
   in registers; each sum goes through its values in their order, whatever block it is in. */

#ifndef KCRF_DENSE_PRODUCTS_H
#define KCRF_DENSE_PRODUCTS_H

#include "_dispatch.h"

#define VECTORS 4           /* of a thin matrix's columns at a time */
#define MOST_ROWS 8         /* at a time */
#define PANEL_BYTES 32768   /* of a thin matrix, to stay in the first cache */
#define ROWS_PER_SUM 128    /* rows whose products are summed up in the values' own precision */
#define PACKED_COLUMNS 40   /* of such rows, that are laid together: rows are pages apart where they come from */

#define BODY "_dense_products_body.h"
#define TYPED 1
#include "_each_width.h"

/* Columns that C of them are padded to. */
static inline ptrdiff_t kcrf_padded(ptrdiff_t C, int single)
{
    return KCRF_DISPATCH_TYPED(kcrf_padded, single, C);
}

/* out [n, C] = A [n, M] B [M, P], for rows of A that are `stride` values apart, and C columns that are padded to P. */
static inline void kcrf_dense_rows(
    const void *A, ptrdiff_t stride, ptrdiff_t n, ptrdiff_t M, const void *B, ptrdiff_t P, void *out, ptrdiff_t C,
    int single)
{
    KCRF_DISPATCH_TYPED(kcrf_dense_rows, single, A, stride, n, M, B, P, out, C);
}

/* sums [M, P] += A [n, M]^T B [n, P], in double precision. */
static inline void kcrf_dense_columns(
    const void *A, ptrdiff_t stride, ptrdiff_t n, ptrdiff_t M, const void *B, ptrdiff_t P, double *sums, int single)
{
    KCRF_DISPATCH_TYPED(kcrf_dense_columns, single, A, stride, n, M, B, P, sums);
}

#endif
