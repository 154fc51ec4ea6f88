"""Minima of <g, d> + d.B d / 2 + sum_j c_j |x_j + d_j|: of coordinates one by one, and of all for B = l I - W M W^T."""

from ..system.types cimport int64, real

cdef extern from "_sparse_steps.h" nogil:
    ctypedef struct kcrf_sparse_model:
        const void* rows
        const void* shares
        void* products
        Py_ssize_t stride, n, m
        const double* start
        const double* slope
        const double* thresholds
        double length
        double* point
        double* sums

    void kcrf_minimum(const kcrf_sparse_model* model, bint single)


cdef inline double soft(double value, double threshold) noexcept nogil:
    return value - threshold if value > threshold else value + threshold if value < -threshold else 0.0


def sweep(
    const float[:, ::1] matrix,       # [d, d] B
    double[::1] point,                 # [d] x + d, in place
    double[::1] slopes,                # [d] g + B d, in place
    const double[::1] thresholds,      # [d] c
):
    """Minimise over one coordinate after another."""
    cdef Py_ssize_t d = point.shape[0], i, j
    cdef double aim, curvature, least, step
    with nogil:
        for i in range(d):
            curvature = matrix[i, i]
            aim, least = point[i] - slopes[i] / curvature, thresholds[i] / curvature
            aim = soft(aim, least)
            step = aim - point[i]
            if step != 0:
                point[i] = aim
                for j in range(d):
                    slopes[j] += step * matrix[i, j]


def model_minimum(
    real[:, :] rows,                   # [n, m] W
    real[::1] shares,                  # [m] z
    const double[::1] start,           # [n] x
    const double[::1] slope,           # [n] g
    const double[::1] thresholds,      # [n] c
    double length,                     # l
    double[::1] point,                 # [n] out: v(z) = soft(x - (g - W z) / l, c / l)
    real[::1] products,                # [m] W^T (v(z) - x) is added to it
):
    """Put v(z) and its products; return <g, d> and |d|^2 of the step d = v(z) - x, and what it adds to the penalty."""
    cdef kcrf_sparse_model model = kcrf_sparse_model(NULL, NULL, NULL, 0, 0, 0, NULL, NULL, NULL, 0, NULL, NULL)
    cdef double[3] sums = [0.0, 0.0, 0.0]
    model.n, model.m, model.length, model.sums = rows.shape[0], rows.shape[1], length, sums
    if model.n == 0:
        return 0.0, 0.0, 0.0
    if model.m:
        if rows.strides[1] != sizeof(real):
            raise ValueError("values of a row must lie closely in memory")
        model.rows, model.stride = &rows[0, 0], rows.strides[0] // <Py_ssize_t>sizeof(real)
        model.shares, model.products = &shares[0], &products[0]
    model.point = &point[0]
    model.start, model.slope, model.thresholds = &start[0], &slope[0], &thresholds[0]
    with nogil:
        kcrf_minimum(&model, real is float)
    return sums[0], sums[1], sums[2]


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
