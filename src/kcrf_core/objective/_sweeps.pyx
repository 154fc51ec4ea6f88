"""Coordinate descent for <g, d> + d.B d / 2 + sum_j c_j |x_j + d_j| with a symmetric matrix B."""

from ..system.types cimport int64


def sweep(
    const float[:, ::1] matrix,       # [d, d] B
    double[::1] point,                 # [d] x + d, in place
    double[::1] slopes,                # [d] g + B d, in place
    const double[::1] thresholds,      # [d] c
    Py_ssize_t sweeps,
):
    """Minimise over one coordinate after another, and go through all of them so many times."""
    cdef Py_ssize_t d = point.shape[0], i, j, _
    cdef double aim, curvature, least, step
    with nogil:
        for _ in range(sweeps):
            for i in range(d):
                curvature = matrix[i, i]
                aim, least = point[i] - slopes[i] / curvature, thresholds[i] / curvature
                aim = aim - least if aim > least else aim + least if aim < -least else 0.0
                step = aim - point[i]
                if step != 0:
                    point[i] = aim
                    for j in range(d):
                        slopes[j] += step * matrix[i, j]


def add_products(
    const float[:, ::1] products,     # [k, n]
    const int64[::1] rows,             # [k]
    const int64[::1] columns,          # [n]
    float[:, ::1] out,                 # [d, d] added to
):
    """Add products to some rows and columns of a matrix."""
    cdef Py_ssize_t i, j
    with nogil:
        for i in range(rows.shape[0]):
            for j in range(columns.shape[0]):
                out[rows[i], columns[j]] += products[i, j]
