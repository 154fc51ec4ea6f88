"""The step of Viterbi."""

cdef extern from "_max_plus.h" nogil:
    # now[j] = max over i < n of before[i] + E[i, j], for j < width
    void kcrf_max_plus(const double* before, const double* E, Py_ssize_t n, Py_ssize_t width, double* now)
