"""Coordinate descent for <g, d> + d.B d / 2 + sum_j c_j |x_j + d_j| with a symmetric matrix B."""


def sweep(
    const float[:, ::1] matrix,       # [d, d] B
    double[::1] point,                 # [d] x + d, in place
    double[::1] slopes,                # [d] g + B d, in place
    const double[::1] thresholds,      # [d] c
    Py_ssize_t sweeps,
):
    """Minimise over one coordinate after another, and go through all of them so many times."""
    cdef Py_ssize_t d = point.shape[0], i, j, sweep
    cdef double aim, curvature, least, step
    with nogil:
        for sweep in range(sweeps):
            for i in range(d):
                curvature = matrix[i, i]
                aim, least = point[i] - slopes[i] / curvature, thresholds[i] / curvature
                aim = aim - least if aim > least else aim + least if aim < -least else 0.0
                step = aim - point[i]
                if step != 0:
                    point[i] = aim
                    for j in range(d):
                        slopes[j] += step * matrix[i, j]
