"""Loops over sparse matrices in compressed rows.

`values` may be empty: then every stored entry is 1, as in one-hot encodings. `native` has the products of passes.
"""

from libc.stdlib cimport free, malloc, qsort

import numpy as np

from ..system.types cimport int64, real


def multiply_few(
    const int64[::1] indptr,           # [n+1]
    const int[::1] indices,            # [nnz] rows of W, from `first` on
    const double[::1] values,          # [nnz], or [0] for all ones
    Py_ssize_t first,
    const int64[::1] ends,             # [D+1] where the weights of each row of W begin and end
    const int[::1] columns,            # [K]
    const double[::1] weights,         # [K]
    double[:, ::1] out,                # [n, C] added to
):
    """Add A W for compressed rows A and a W of which few values are not zero to out."""
    cdef Py_ssize_t t, i, k, row
    cdef bint ones = values.shape[0] == 0
    cdef double value
    with nogil:
        for t in range(out.shape[0]):
            for i in range(indptr[t], indptr[t + 1]):
                row = first + indices[i]
                value = 1.0 if ones else values[i]
                for k in range(ends[row], ends[row + 1]):
                    out[t, columns[k]] += value * weights[k]


cdef extern from "_thin_products.h" nogil:
    enum:
        PARTITIONS_TOGETHER
        NEXT_PARTITION
        NEXT_GROUP
    int ROW_OF(int index)

ROWS = NEXT_GROUP - 1  # bits of an index that are a row, the others being marks


def mark_partitions(
    const int64[::1] indptr,           # [D+1]
    int[::1] indices,                  # [nnz] rows, ascending within each D; marked already, or not
    const int64[::1] borders,          # [partitions + 1] rows
):
    """Mark indices that are in another partition than those before them, for adjoints that sum by partitions."""
    cdef Py_ssize_t f, partition, before
    cdef int64 k
    cdef int row
    cdef unsigned int mark
    with nogil:
        for f in range(indptr.shape[0] - 1):
            partition = 0
            for k in range(indptr[f], indptr[f + 1]):
                row, before, mark = ROW_OF(indices[k]), partition, 0
                while partition + 2 < borders.shape[0] and row >= borders[partition + 1]:
                    partition += 1
                if k > indptr[f] and partition != before:
                    mark = NEXT_PARTITION
                    if partition / PARTITIONS_TOGETHER != before / PARTITIONS_TOGETHER:
                        mark |= NEXT_GROUP
                indices[k] = <int>(<unsigned int>row | mark)


def add_rows(
    double[:, ::1] total,              # [D, C] added to
    const int64[::1] places,           # [n] rows of it, none of them twice
    const real[:, ::1] values,         # [n, C]
):
    cdef Py_ssize_t i, c, C = values.shape[1]
    cdef double* target
    if places.shape[0] != values.shape[0] or total.shape[1] != C:
        raise ValueError("rows do not fit their places")
    if places.shape[0] == 0 or C == 0:
        return
    if np.min(places) < 0 or np.max(places) >= total.shape[0]:
        raise ValueError("places out of range")
    with nogil:
        for i in range(places.shape[0]):
            target = &total[places[i], 0]
            for c in range(C):
                target[c] += values[i, c]


cdef enum:
    INSERTED = 64  # entries of a row that are sorted by insertion


cdef int ascending(const void *a, const void *b) noexcept nogil:
    return (<const int *>a)[0] - (<const int *>b)[0]  # neither is below zero


def merge(
    int64[::1] indptr,                 # [n+1] of rows of features, in the end of rows of columns
    int[::1] indices,                  # [nnz] features, in the end columns, ascending in every row
    const int[::1] column,             # [D] the column that each feature belongs to
    const int64[::1] sizes,            # [G] features of each column
):
    """Turn features into columns, each once in a row; return True if every row had all features of its columns."""
    cdef Py_ssize_t t
    cdef int64 begin = 0, end, k, place, filled = 0
    cdef int value, seen
    cdef bint whole = True
    with nogil:
        for t in range(indptr.shape[0] - 1):
            end = indptr[t + 1]
            for k in range(begin, end):
                value = column[indices[k]]
                place = k
                while end - begin <= INSERTED and place > begin and indices[place - 1] > value:
                    indices[place] = indices[place - 1]
                    place -= 1
                indices[place] = value
            if end - begin > INSERTED:
                qsort(&indices[begin], end - begin, sizeof(int), ascending)
            k = begin
            while k < end:
                value = indices[k]
                seen = 0
                while k < end and indices[k] == value:
                    seen += 1
                    k += 1
                if seen != sizes[value]:
                    whole = False
                indices[filled] = value
                filled += 1
            begin = end
            indptr[t + 1] = filled
    return whole


def transposed(
    const int64[::1] indptr,           # [N+1]
    const int[::1] indices,            # [nnz] below D
    const double[::1] values,          # [nnz], or [0] for all ones
    int64[::1] ends,                   # [D+1] out: the same by columns
    int[::1] rows,                     # [nnz] out, ascending in every column
    double[::1] sorted_values,         # [nnz] out, or [0]
):
    cdef Py_ssize_t t, f
    cdef int64 k, place
    with nogil:
        ends[:] = 0
        for k in range(indices.shape[0]):
            ends[indices[k] + 1] += 1
        for f in range(1, ends.shape[0]):
            ends[f] += ends[f - 1]
        for t in range(indptr.shape[0] - 1):  # ends[f] is where the next one of a column belongs
            for k in range(indptr[t], indptr[t + 1]):
                place = ends[indices[k]]
                ends[indices[k]] = place + 1
                rows[place] = <int>t
                if values.shape[0]:
                    sorted_values[place] = values[k]
        for f in range(ends.shape[0] - 1, 0, -1):
            ends[f] = ends[f - 1]
        ends[0] = 0


def seen_places(
    const int64[::1] indptr,           # [D+1]
    const int[::1] indices,            # [nnz] rows that each feature is in
    const int64[::1] ends,             # [N+1] where the columns of each row begin and end
    const int[::1] columns,            # [n] below `width`
    Py_ssize_t width,
    int64[::1] found,                  # [K] out, or [0] where their number alone is wanted
):
    """Find places feature * width + column for which some row has both; return their number."""
    cdef Py_ssize_t f
    cdef int64 k, j, count = 0
    cdef bint fill = found.shape[0] > 0
    cdef int* last = <int*>malloc((width + 1) * sizeof(int))  # the feature that each column was seen with last
    if last == NULL:
        raise MemoryError
    with nogil:
        for k in range(width):
            last[k] = -1
        for f in range(indptr.shape[0] - 1):
            for k in range(indptr[f], indptr[f + 1]):
                for j in range(ends[indices[k]], ends[indices[k] + 1]):
                    if last[columns[j]] != f:
                        last[columns[j]] = <int>f
                        if fill:
                            found[count] = f * width + columns[j]
                        count += 1
    free(last)
    return count


def add_label_sums(
    const int64[::1] indptr,           # [T+1] of the rows of one sequence
    const int[::1] indices,            # [nnz]
    const double[::1] values,          # [nnz], or [0] for all ones
    const int64[::1] ends,             # [D+1] where the parameters of each feature begin and end
    const int[::1] columns,            # [K] of parameters, below C
    const int[::1] numbers,            # [K] where the sum of each goes in `out`; -1: nowhere
    const double[:, ::1] factors,      # [Y, C] of each label in each column: C is Y, or 1
    const int[:, ::1] labels,          # [S, T]
    float[:, ::1] out,                 # [S, d] added to
):
    """Add the sums of features over the positions with a parameter's label, less those of the first labelling."""
    cdef Py_ssize_t Y = factors.shape[0], C = factors.shape[1], S = labels.shape[0], t, s, y, n, others
    cdef int64 i, k, row
    cdef double value
    cdef int place
    cdef int[::1] places = np.full(Y, -1, dtype=np.int32)  # of each label's parameter of one feature
    cdef Py_ssize_t[::1] differ = np.empty(S, dtype=np.intp)  # labellings that have another label than the first one
    with nogil:
        for t in range(labels.shape[1]):
            others = 0
            for s in range(1, S):
                if labels[s, t] != labels[0, t]:
                    differ[others] = s
                    others += 1
            if not others:
                continue
            for i in range(indptr[t], indptr[t + 1]):
                row = indices[i]
                if ends[row + 1] == ends[row]:
                    continue
                value = values[i] if values.shape[0] else 1.0
                for k in range(ends[row], ends[row + 1]):
                    for y in range(columns[k] if C == Y else 0, columns[k] + 1 if C == Y else Y):
                        places[y] = numbers[k]
                for n in range(others):
                    y = labels[differ[n], t]
                    place = places[y]
                    if place >= 0:
                        out[differ[n], place] += <float>(value * factors[y, y if C == Y else 0])
                y = labels[0, t]
                place = places[y]
                if place >= 0:
                    for n in range(others):
                        out[differ[n], place] -= <float>(value * factors[y, y if C == Y else 0])
                for k in range(ends[row], ends[row + 1]):
                    for y in range(columns[k] if C == Y else 0, columns[k] + 1 if C == Y else Y):
                        places[y] = -1
