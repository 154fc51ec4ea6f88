# What others do without the interpreter's lock: errors of some sequences, for passes over all (see `chunk_errors` in
# `_chain.pyx`), and the best labels of one.

from ._scaling cimport int64

cdef Py_ssize_t room_for(Py_ssize_t longest, Py_ssize_t Y) noexcept nogil

cdef Py_ssize_t errors_of_floats(
    const float* scores, const double* edges, const double* start, const double* end, const int64* offsets,
    Py_ssize_t S, Py_ssize_t Y, const int* labels, const double* weights, float* node, double* sums, double* work,
) noexcept nogil

cdef Py_ssize_t errors_of_doubles(
    const double* scores, const double* edges, const double* start, const double* end, const int64* offsets,
    Py_ssize_t S, Py_ssize_t Y, const int* labels, const double* weights, double* node, double* sums, double* work,
) noexcept nogil

cdef double best_path_of_doubles(
    const double* scores, const double* edges, const double* start, const double* end, Py_ssize_t T, Py_ssize_t Y,
    int* path, double* work,
) noexcept nogil
