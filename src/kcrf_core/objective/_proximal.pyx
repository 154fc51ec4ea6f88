"""Coordinate descent on a quadratic model of P with its L1 penalty, for proximal quasi-Newton steps.

    q(x) = <g, x - theta> + (x - theta)^T B (x - theta) / 2 + sum_j c_j |x_j|,    B = diag(b) - W M W^T

W [n, m] has a few columns, made of steps and changes of the gradient (see `solvers.proximal`). With u = W^T (x - theta)
at hand, the model's slope in one coordinate takes a product of m numbers, and so does a change of u. Coordinates are
gone through in their order, one after another, so that results do not depend on the number of threads.
"""

from ..system.types cimport real

cdef int FULL_EVERY = 5  # all coordinates are gone through once in so many sweeps, in between those that are not zero
cdef double LEAST_CURVATURE = 1e-8  # as a part of b: rounding may leave less of it


cdef inline double product(const real* a, const double* b, Py_ssize_t m) noexcept nogil:
    # Four sums side by side; m is a multiple of four.
    cdef double first = 0, second = 0, third = 0, fourth = 0
    cdef Py_ssize_t k
    for k in range(0, m, 4):
        first += a[k] * b[k]
        second += a[k + 1] * b[k + 1]
        third += a[k + 2] * b[k + 2]
        fourth += a[k + 3] * b[k + 3]
    return (first + second) + (third + fourth)


def minimise(
    const real[:, ::1] rows,           # [n, m] W; m is a multiple of four
    const real[:, ::1] multiplied,         # [n, m] W M
    const double[::1] scale,           # [n] b
    const double[::1] slope,           # [n] g
    const double[::1] thresholds,      # [n] c
    const double[::1] theta,           # [n]
    double[::1] point,                 # [n] x, theta to begin with
    double[::1] along,                 # [m] u, zero to begin with
    double[::1] curvature,             # [n] room
    int[::1] live,                     # [n] room
    int most,
    double tolerance,
):
    """Put a minimiser into `point`; return its sweeps, `most` of them or until one gains little against the first."""
    cdef Py_ssize_t n = scale.shape[0], m = along.shape[0], i, j, k, count = 0
    cdef int sweep
    cdef bint full
    cdef double bent, gradient, aim, limit, new, change, gained, first = 0
    if n == 0:
        return 0
    with nogil:
        for j in range(n):
            bent = scale[j]
            for k in range(m):
                bent -= <double>rows[j, k] * multiplied[j, k]
            curvature[j] = max(bent, LEAST_CURVATURE * scale[j])
        for sweep in range(most):
            full = sweep % FULL_EVERY == 0
            if full:
                count = n
            gained = 0
            for i in range(count):
                j = i if full else live[i]
                bent = curvature[j]
                gradient = slope[j] + scale[j] * (point[j] - theta[j]) - product(&multiplied[j, 0], &along[0], m)
                aim, limit = point[j] - gradient / bent, thresholds[j] / bent
                new = aim - limit if aim > limit else (aim + limit if aim < -limit else 0.0)
                change = new - point[j]
                if change != 0:
                    point[j] = new
                    for k in range(m):
                        along[k] += rows[j, k] * change
                    gained += bent * change * change
            if full:
                count = 0
                for j in range(n):
                    if point[j] != 0:
                        live[count] = <int>j
                        count += 1
            if sweep == 0:
                first = gained
            # Of a sweep over some coordinates little says nothing about the others.
            if gained <= tolerance * first and (full or sweep + 1 == most):
                break
            if not full and gained <= tolerance * first:
                count = 0  # nothing is left to gain among these
    return sweep + 1
