"""Products with a sparse matrix in compressed rows, against thin dense matrices.

    multiply:   out[rows] += A[rows] W        with A the map itself:       scores (`multiply_codes`: of one-hot rows)
                                              W itself in compressed rows: `multiply_few`, `multiply_codes_few`
    gather:     out[rows] = A[rows] R         with A its transpose:        adjoint, in double precision
    deal:       rows of a matrix by their numbers;    accumulate:    a sum in double precision

`values` may be empty: then every stored entry is 1, as in one-hot encodings. Each call does a range of
rows, so that threads can share a product and its result does not depend on how many there are.
"""

from libc.string cimport memcpy

from ._prefetch cimport prefetch

cdef extern from "_thin_products.h" nogil:
    void kcrf_multiply(
        const long long* indptr, const int* indices, const void* values, const void* W, Py_ssize_t C,
        Py_ssize_t first, Py_ssize_t last, void* out, bint single,
    )
    void kcrf_gather(
        const long long* indptr, const int* indices, const void* values, const void* R, Py_ssize_t C,
        Py_ssize_t first, Py_ssize_t last, double* out, bint single,
    )

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
    cdef const real* entries = &values[0] if values.shape[0] else NULL
    if W.shape[1] == 0 or last <= first or indptr[first] == indptr[last]:
        return
    with nogil:
        kcrf_multiply(
            <const long long*>&indptr[0], &indices[0], entries, &W[0, 0], W.shape[1], first, last, &out[0, 0],
            real is float,
        )


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
    """The product of `multiply` for all rows, with a W of which few values are not zero."""
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


def multiply_codes_few(
    const int[:, ::1] codes,           # [n, F] one value for each field, negative for none
    const int64[::1] first,            # [F] the row of W of each field's code 0
    const int64[::1] ends,             # [D+1]
    const int[::1] columns,            # [K]
    const double[::1] weights,         # [K]
    double[:, ::1] out,                # [n, C] added to
):
    """The same for one-hot rows that are given by their codes."""
    cdef Py_ssize_t t, f, k, row
    with nogil:
        for t in range(codes.shape[0]):
            for f in range(codes.shape[1]):
                if codes[t, f] >= 0:
                    row = first[f] + codes[t, f]
                    for k in range(ends[row], ends[row + 1]):
                        out[t, columns[k]] += weights[k]


def deal(
    const real[:, ::1] source,         # [U, C]
    const int[::1] group,              # [N] a row of the source for each row
    Py_ssize_t first,
    Py_ssize_t last,
    real[:, ::1] out,                  # [last-first, C]
    bint fresh,                        # written, else added to
):
    """Rows first:last of source[group]."""
    cdef Py_ssize_t t, c, C = source.shape[1]
    cdef const real* row
    cdef real* target
    if C == 0:
        return
    with nogil:
        for t in range(first, last):
            if t + 4 < last:
                prefetch(&source[group[t + 4], 0], C * sizeof(real))
            row = &source[group[t], 0]
            target = &out[t - first, 0]
            if fresh:
                memcpy(target, row, C * sizeof(real))
            else:
                for c in range(C):
                    target[c] += row[c]


def accumulate(
    double[::1] total,                 # [n] added to
    const real[::1] part,              # [n]
):
    cdef Py_ssize_t i
    with nogil:
        for i in range(total.shape[0]):
            total[i] += part[i]


def gather(
    const int64[::1] indptr,           # [D+1]
    const int[::1] indices,            # [nnz]
    const real[::1] values,            # [nnz], or [0] for all ones
    const real[:, ::1] R,              # [N, C]
    Py_ssize_t first,
    Py_ssize_t last,
    double[:, ::1] out,                # [D, C], rows first:last written
):
    cdef const real* entries = &values[0] if values.shape[0] else NULL
    if R.shape[1] == 0 or last <= first:
        return
    if indptr[first] == indptr[last]:  # nothing may be stored at all
        out[first:last, :] = 0.0
        return
    with nogil:
        kcrf_gather(
            <const long long*>&indptr[0], &indices[0], entries, &R[0, 0], R.shape[1], first, last, &out[first, 0],
            real is float,
        )
