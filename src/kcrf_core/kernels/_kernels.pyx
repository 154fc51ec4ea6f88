"""The loops of Gram blocks that BLAS has no call for.

Inner products of categorical rows are counts of equal codes; a negative code equals nothing. Codes
are handed over as narrow integers and pivots column by column, so that the compiler compares eight of
them at a time; for a value that few pivots have, the list of those pivots is shorter than that.
"""

from libc.string cimport memset

ctypedef fused real:
    float
    double

ctypedef fused code:
    short
    int

ctypedef long long int64

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
    """block <- (gamma * block + coef0) ** degree, in place."""
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
