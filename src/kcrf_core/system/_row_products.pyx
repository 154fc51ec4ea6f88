"""Rows times a matrix, each row's sums in one order whatever rows it stands among."""

cdef extern from "_dense_products.h" nogil:
    int kcrf_vectors
    Py_ssize_t kcrf_padded(Py_ssize_t C, bint single)
    void kcrf_dense_rows(
        const void* A, Py_ssize_t stride, Py_ssize_t n, Py_ssize_t M, const void* B, Py_ssize_t P, void* out,
        Py_ssize_t C, bint single,
    )

from .types cimport real


VECTOR_WIDTHS = ("baseline", "avx2", "avx512")


def vector_width():
    """Return the width of vectors in use: the widest of this processor, up to the limit KCRF_VECTORS."""
    return VECTOR_WIDTHS[kcrf_vectors]


def padded_width(Py_ssize_t C, bint single):
    """Return the number of columns that C of them are padded to."""
    return kcrf_padded(C, single)


def multiply(const real[:, ::1] rows, const real[:, ::1] columns, real[:, ::1] out):
    """Put rows [n, K] times columns [K, P], C of them padded to P, into out [n, C]."""
    cdef Py_ssize_t n = rows.shape[0], K = rows.shape[1], C = out.shape[1], P = columns.shape[1]
    cdef bint single = real is float
    if columns.shape[0] != K or out.shape[0] != n or P != kcrf_padded(C, single):
        raise ValueError("shapes of a product do not fit")
    if n == 0 or C == 0:
        return
    if K == 0:
        out[:, :] = 0
        return
    with nogil:
        kcrf_dense_rows(&rows[0, 0], K, n, K, &columns[0, 0], P, &out[0, 0], C, single)
