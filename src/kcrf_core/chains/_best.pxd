# The best labels of one sequence, for others without the interpreter's lock.

cdef double best_labels(
    const double* scores, const double* edges, const double* start, const double* end, Py_ssize_t T, Py_ssize_t Y,
    int* path, double* work,
) noexcept nogil
