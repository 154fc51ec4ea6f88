# The recursion of the best labels, for others without the interpreter's lock.

from ._states cimport Block, Chain

cdef double* best_beginnings(const Chain* C, const double* scores, Py_ssize_t T, double* now) noexcept nogil

cdef Block block_into(const Chain* C, Py_ssize_t state, Py_ssize_t t, const double** column) noexcept nogil
