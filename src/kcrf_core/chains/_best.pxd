# The best labels of one sequence, and their recursion, for others without the interpreter's lock.

from ._states cimport Block, Chain

cdef double best_labels(
    const double* scores, const double* edges, const double* start, const double* end, Py_ssize_t T, Py_ssize_t Y,
    int* path, double* work,
) noexcept nogil

cdef double* best_beginnings(const Chain* C, const double* scores, Py_ssize_t T, double* now) noexcept nogil

cdef Block block_into(const Chain* C, Py_ssize_t state, Py_ssize_t t, const double** column) noexcept nogil
