# Potentials of chains of both orders for other Cython modules, and log space without the interpreter's lock.

from ._states cimport Chain


cdef class StatePotentials:
    cdef Chain chain
    cdef tuple _held

    cdef Chain of(self, Py_ssize_t at, Py_ssize_t T) noexcept nogil


cdef struct Found:
    # What a sequence adds: marginals, or their derivatives along a direction.
    double* node                 # [T, Y] out
    double* pair                 # [1, P] += weighted sums over positions or [T, P] out, in chains of second order
    double* transition           # [1, Q] += weighted sums over positions, or [T, Q] out
    double* log_z                # [1] out


cdef Py_ssize_t log_room(Py_ssize_t T, Py_ssize_t P, Py_ssize_t Q, bint tangent) noexcept nogil

cdef bint log_messages(
    const Chain* C, const Chain* D, const double* scores, const double* d_scores, Py_ssize_t T, double weight,
    double* work, const Found* out,
) noexcept nogil
