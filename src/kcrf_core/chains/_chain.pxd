# Errors of some sequences, for passes over all without the interpreter's lock (see `chunk_errors` in `_chain.pyx`).

from ._states cimport int64

cpdef Py_ssize_t work_size(Py_ssize_t longest, Py_ssize_t Y) noexcept nogil

cdef Py_ssize_t errors_of(
    const void* scores, bint single, const double* edges, const double* start, const double* end, const int64* offsets,
    Py_ssize_t S, Py_ssize_t Y, const int* labels, const double* weights, void* node, double* sums, double* work,
) noexcept nogil
