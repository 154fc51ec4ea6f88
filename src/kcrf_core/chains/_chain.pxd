# Errors of some sequences, for passes over all without the interpreter's lock.

from ..system.types cimport int64, real

cpdef Py_ssize_t work_size(Py_ssize_t longest, Py_ssize_t Y) noexcept nogil

cdef Py_ssize_t chunk_errors(
    const real* scores, const double* edges, const double* start, const double* end, const int64* offsets,
    Py_ssize_t S, Py_ssize_t Y, const int* labels, const double* weights, real* node, double* sums, double* work,
) noexcept nogil
