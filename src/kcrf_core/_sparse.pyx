"""Products with a sparse matrix in compressed rows, against thin dense matrices.

    multiply:   out[rows] += A[rows] W        with A the map itself:       scores (`multiply_codes`: of one-hot rows)
    gather:     out[rows] = A[rows] R         with A its transpose:        adjoint, in double precision

`values` may be empty: then every stored entry is 1, as in one-hot encodings. Each call does a range of
rows, so that threads can share a product and its result does not depend on how many there are.
"""

from ._prefetch cimport prefetch

ctypedef fused real:
    float
    double

ctypedef long long int64


def multiply(
    const int64[::1] indptr,           # [N+1]
    const int[::1] indices,            # [nnz]
    const real[::1] values,            # [nnz], or [0] for all ones
    const real[:, ::1] W,              # [D, C]
    Py_ssize_t first,
    Py_ssize_t last,
    real[:, ::1] out,                  # [last-first, C] added to
):
    cdef Py_ssize_t t, k, c, C = W.shape[1]
    cdef bint ones = values.shape[0] == 0
    cdef const real* row
    cdef real* target
    cdef real value
    if C == 0 or out.shape[0] == 0:
        return
    with nogil:
        for t in range(first, last):
            target = &out[t - first, 0]
            for k in range(indptr[t], indptr[t + 1]):
                row = &W[indices[k], 0]
                if ones:
                    for c in range(C):
                        target[c] += row[c]
                else:
                    value = values[k]
                    for c in range(C):
                        target[c] += value * row[c]


def multiply_codes(
    const int[:, ::1] codes,           # [n, F] one value for each field, negative for none
    const int64[::1] first,            # [F] the row of W of each field's code 0
    const real[:, ::1] W,              # [D, C]
    real[:, ::1] out,                  # [n, C] added to
):
    """The product of `multiply` for one-hot rows that are given by their codes."""
    cdef Py_ssize_t t, f, c, C = W.shape[1]
    cdef const real* row
    cdef real* target
    if C == 0:
        return
    with nogil:
        for t in range(codes.shape[0]):
            target = &out[t, 0]
            if t + 1 < codes.shape[0]:  # rows of W are far apart: ask for those of the next row now
                for f in range(codes.shape[1]):
                    if codes[t + 1, f] >= 0:
                        prefetch(&W[first[f] + codes[t + 1, f], 0], C * sizeof(real))
            for f in range(codes.shape[1]):
                if codes[t, f] >= 0:
                    row = &W[first[f] + codes[t, f], 0]
                    for c in range(C):
                        target[c] += row[c]


def gather(
    const int64[::1] indptr,           # [D+1]
    const int[::1] indices,            # [nnz]
    const real[::1] values,            # [nnz], or [0] for all ones
    const real[:, ::1] R,              # [N, C]
    Py_ssize_t first,
    Py_ssize_t last,
    double[:, ::1] out,                # [D, C], rows first:last written
):
    cdef Py_ssize_t f, k, c, C = R.shape[1]
    cdef bint ones = values.shape[0] == 0
    cdef const real* row
    cdef double* target
    cdef double value
    if C == 0 or out.shape[0] == 0:
        return
    with nogil:
        for f in range(first, last):
            target = &out[f, 0]
            for c in range(C):
                target[c] = 0.0
            for k in range(indptr[f], indptr[f + 1]):
                row = &R[indices[k], 0]
                if ones:
                    for c in range(C):
                        target[c] += row[c]
                else:
                    value = values[k]
                    for c in range(C):
                        target[c] += value * row[c]
