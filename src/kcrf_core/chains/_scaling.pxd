# What the scaled recursions of chains share, of first and of second order, inlined into each.

from libc.math cimport exp, INFINITY, isfinite

cdef extern from "_recursions.h" nogil:
    struct kcrf_shared:
        Py_ssize_t stride
        const double* forward
        const double* backward
        const double* start
        const double* end
        double edge_shift
        double start_shift
        double end_shift
        double edge_depth
        double start_depth
        double log_labels
        bint forbidden
        double* sums

    bint kcrf_sequence(
        const void* scores, bint single, Py_ssize_t T, Py_ssize_t Y, double weight, const kcrf_shared* shared,
        double* rows, void* node, double* log_z,
    )
    bint kcrf_outweighs(double log_z, Py_ssize_t T, double log_labels)
    double kcrf_depth(const void* values, bint single, Py_ssize_t count)
    bint kcrf_lossless(
        const void* scores, bint single, Py_ssize_t T, Py_ssize_t Y, const double* messages, Py_ssize_t states,
        Py_ssize_t stride, double start_depth, const double* E, Py_ssize_t entries, bint apart, double edge_depth,
        double deeper,
    )
    double kcrf_exponentials(const void* values, bint single, Py_ssize_t Y, double* out)
    Py_ssize_t kcrf_stride(Py_ssize_t Y)
    Py_ssize_t kcrf_rows(Py_ssize_t T, Py_ssize_t Y)

ctypedef fused real:
    float
    double

ctypedef long long int64


cdef inline bint trusted(double scale) noexcept nogil:
    """Whether what underflowed beside this scale cannot be seen: terms lost are below 1e-307. NaN is not trusted.

    What messages of both directions have lost is another matter, see `_recursions.h`.
    """
    return scale >= 1e-100


cdef inline double exponentials(const real* values, Py_ssize_t Y, double* out) noexcept nogil:
    """exp(values - shift); returns the shift, which is the largest value. Without a finite one, out is untouched."""
    return kcrf_exponentials(values, real is float, Y, out)


cdef inline double exponentiate(const double* edges, Py_ssize_t Y, double* out, double* transposed) noexcept nogil:
    """exp(edges - shift) and its transpose; returns the shift, which is the largest entry."""
    cdef Py_ssize_t i, j
    cdef double shift = exponentials(edges, Y * Y, out)
    if not isfinite(shift):
        shift = 0.0
        for i in range(Y * Y):
            out[i] = exp(edges[i])
    for i in range(Y):
        for j in range(Y):
            transposed[j * Y + i] = out[i * Y + j]
    return shift


cdef inline double largest(const double* values, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t j
    cdef double top = -INFINITY
    for j in range(count):
        if values[j] > top:
            top = values[j]
    return top


cdef inline double lower(double* values, Py_ssize_t count) noexcept nogil:
    """Bring the largest logarithm to 0, where rounding is finest, and return what it was; 0 where none is finite."""
    cdef Py_ssize_t j
    cdef double top = largest(values, count)
    if not isfinite(top):
        return 0.0
    for j in range(count):
        values[j] -= top
    return top


cdef inline void add_scaled(double* target, const double* source, double factor, Py_ssize_t Y) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(Y):
        target[j] += factor * source[j]


cdef inline void add_rows(
    double* target, const double* rows, const double* factors, Py_ssize_t count, Py_ssize_t width
) noexcept nogil:
    """target += factors @ rows [count, width]; four rows at a time, so that target is loaded a quarter as often."""
    cdef Py_ssize_t i = 0, j
    cdef const double* row
    while i + 4 <= count:
        row = rows + i * width
        for j in range(width):
            target[j] += (
                factors[i] * row[j] + factors[i + 1] * row[width + j]
                + factors[i + 2] * row[2 * width + j] + factors[i + 3] * row[3 * width + j]
            )
        i += 4
    while i < count:
        add_scaled(target, rows + i * width, factors[i], width)
        i += 1
