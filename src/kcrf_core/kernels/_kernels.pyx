"""Loops of Gram blocks that BLAS has no call for, and of image kernels.

Inner products of categorical rows are counts of equal codes; a negative code equals nothing. Codes are narrow integers
and pivots come column by column, so that the compiler compares eight of them at a time; for a value that few pivots
have, the list of those pivots is shorter than that.
"""

from libc.math cimport fabs, sqrt
from libc.string cimport memset

from ..system.types cimport int64, real

ctypedef fused code:
    short
    int

# Comparisons that cost as much as one step through a list.
cdef Py_ssize_t LIST_COST = 8


def add_matches(
    const int[:, ::1] rows,            # [n, C] codes
    const code[::1] numbers,           # numbers of codes among the pivots, column after column; -1 for none
    const int64[::1] first_number,     # [C] where the numbers of column c begin
    const code[:, ::1] pivots,         # [C, M] numbered values
    const int64[::1] first_list,       # [C] number of the list of column c and value 0
    const int64[::1] list_ends,        # [lists+1] the pivots that have a value in a column ...
    const int[::1] listed,             # [C * M] ... one list after the other
    code[::1] counts,                  # scratch [M]
    bint overwrite,                    # whether out is written instead of added to
    real[:, ::1] out,                  # [n, M]
):
    cdef Py_ssize_t i, c, j, k, M = pivots.shape[1], C = pivots.shape[0]
    cdef int64 begin, end
    cdef code wanted
    cdef const code* column
    cdef code* count
    cdef real* target
    if M == 0 or rows.shape[0] == 0:
        return
    count = &counts[0]
    with nogil:
        for i in range(rows.shape[0]):
            memset(count, 0, M * sizeof(code))
            for c in range(C):
                if rows[i, c] < 0:
                    continue
                wanted = numbers[first_number[c] + rows[i, c]]
                if wanted < 0:
                    continue
                begin = list_ends[first_list[c] + wanted]
                end = list_ends[first_list[c] + wanted + 1]
                if (end - begin) * LIST_COST <= M:
                    for k in range(begin, end):
                        count[listed[k]] += 1
                else:
                    column = &pivots[c, 0]
                    for j in range(M):
                        count[j] += column[j] == wanted
            target = &out[i, 0]
            if overwrite:
                for j in range(M):
                    target[j] = count[j]
            else:
                for j in range(M):
                    target[j] += count[j]


def add_sparse_products(
    const int64[::1] indptr,           # [n+1] rows, from the row range wanted
    const int[::1] indices,            # [nnz]
    const double[::1] values,          # [nnz]
    const int64[::1] pivot_indptr,     # [A+1] pivots by attribute (the transpose)
    const int[::1] pivot_indices,
    const double[::1] pivot_values,
    Py_ssize_t first,
    real[:, ::1] out,                  # [n, M] added to, row i is row first+i
):
    cdef Py_ssize_t i, k, p
    cdef double value
    with nogil:
        for i in range(out.shape[0]):
            for k in range(indptr[first + i], indptr[first + i + 1]):
                value = values[k]
                for p in range(pivot_indptr[indices[k]], pivot_indptr[indices[k] + 1]):
                    out[i, pivot_indices[p]] += <real>(value * pivot_values[p])


def polynomial(real[:, ::1] block, double gamma, double coef0, int degree):
    """Put (gamma * block + coef0) ** degree into the block."""
    cdef Py_ssize_t i, j, M = block.shape[1]
    cdef int _k
    cdef real a = <real>gamma, b = <real>coef0, x, power
    cdef real* row
    if M == 0:
        return
    with nogil:
        for i in range(block.shape[0]):
            row = &block[i, 0]
            if degree == 1:
                for j in range(M):
                    row[j] = a * row[j] + b
            elif degree == 2:
                for j in range(M):
                    x = a * row[j] + b
                    row[j] = x * x
            elif degree == 3:
                for j in range(M):
                    x = a * row[j] + b
                    row[j] = x * x * x
            else:
                for j in range(M):
                    x = a * row[j] + b
                    power = x
                    for _k in range(degree - 1):
                        power *= x
                    row[j] = power


def neighbourhoods(
    const double[:, ::1] images,       # [n, H * W] row by row
    const int[:, ::1] offsets,         # [K, 2] (down, right) of the other pixel; (0, 0) for the pixel itself
    const double[:, ::1] down,         # [H, A] weights of a row in the pools
    const double[:, ::1] across,       # [W, B] weights of a column
    double[::1] line,                  # scratch [B]
    double[:, ::1] out,                # [n, K * A * B]
):
    """Put the pooled products of pixels into out, image by image: an image's values do not depend on the others."""
    cdef Py_ssize_t H = down.shape[0], A = down.shape[1], W = across.shape[0], B = across.shape[1]
    cdef Py_ssize_t i, k, h, w, a, b, dy, dx, first, last
    cdef double value
    cdef const double* image
    cdef const double* other
    cdef const double* row_weights
    cdef const double* column_weights
    cdef double* pools
    cdef double* target
    cdef double* sums = &line[0]
    cdef bint empty, alone
    with nogil:
        for i in range(images.shape[0]):
            target = &out[i, 0]
            memset(target, 0, out.shape[1] * sizeof(double))
            for k in range(offsets.shape[0]):
                dy, dx = offsets[k, 0], offsets[k, 1]
                alone = dy == 0 and dx == 0
                first, last = max(0, -dx), min(W, W - dx)
                for h in range(max(0, -dy), min(H, H - dy)):
                    image = &images[i, h * W]
                    other = &images[i, 0] + (h + dy) * W + dx
                    empty = True
                    for w in range(first, last):
                        value = image[w] if alone else image[w] * other[w]
                        if value == 0:
                            continue
                        column_weights = &across[w, 0]
                        if empty:
                            empty = False
                            for b in range(B):
                                sums[b] = value * column_weights[b]
                        else:
                            for b in range(B):
                                sums[b] += value * column_weights[b]
                    if empty:
                        continue
                    row_weights = &down[h, 0]
                    pools = target
                    for a in range(A):
                        value = row_weights[a]
                        if value != 0:
                            for b in range(B):
                                pools[b] += value * sums[b]
                        pools += B
                target += A * B
            # Sums vary by their roots: a kernel on roots lets long strokes not drown short ones.
            target = &out[i, 0]
            for k in range(out.shape[1]):
                value = sqrt(fabs(target[k]))
                target[k] = value if target[k] >= 0 else -value
