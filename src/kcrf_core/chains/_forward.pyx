"""Forward messages in log space, for sequences that are not at their end yet.

    a_t[k] = log sum_j exp(a_{t-1}[j] + E_t[j, k]) + F[t, k]                                         (first order)
    a_t[j, k] = log sum_i exp(a_{t-1}[i, j] + U[i, j, k]) + E_t[j, k] + F[t, k]                      (second order)

each less its largest entry: however long the sequence is, they stay where they are. Minus infinity is what cannot be.
Each row takes the logarithms once, so log space costs little beside what is done with the messages.
"""

from libc.math cimport exp, log, INFINITY


def forward(
    const double[:, ::1] scores,         # [n, Y] F
    const double[:, :, ::1] edges,       # [1, Y, Y] shared, or [n, Y, Y]: row t leads from t-1 to t
    const double[::1] before,            # [Y] the message of the position before the first row
    double[:, ::1] out,                  # [n, Y]
):
    cdef Py_ssize_t t, n = scores.shape[0], Y = scores.shape[1]
    cdef Py_ssize_t step = 0 if edges.shape[0] == 1 else 1
    with nogil:
        for t in range(n):
            sums_over_first(&before[0] if t == 0 else &out[t - 1, 0], &edges[t * step, 0, 0], Y, Y, Y, 1, &out[t, 0])
            add(&out[t, 0], &scores[t, 0], Y)
            lower(&out[t, 0], Y)


def forward_pairs(
    const double[:, ::1] scores,         # [n, Y] F
    const double[:, :, ::1] edges,       # [1, Y, Y] or [n, Y, Y]
    const double[:, :, ::1] triples,     # [Y, Y, Y] U
    const double[:, ::1] before,         # [Y, Y] the message of the position before the first row
    double[:, :, ::1] out,               # [n, Y, Y]
):
    cdef Py_ssize_t t, j, n = scores.shape[0], Y = scores.shape[1]
    cdef Py_ssize_t step = 0 if edges.shape[0] == 1 else 1
    cdef const double* message
    with nogil:
        for t in range(n):
            message = &before[0, 0] if t == 0 else &out[t - 1, 0, 0]
            for j in range(Y):
                sums_over_first(message + j, &triples[0, j, 0], Y, Y, Y * Y, Y, &out[t, j, 0])
                add(&out[t, j, 0], &edges[t * step, j, 0], Y)
                add(&out[t, j, 0], &scores[t, 0], Y)
            lower(&out[t, 0, 0], Y * Y)


cdef void sums_over_first(
    const double* message, const double* table, Py_ssize_t rows, Py_ssize_t Y, Py_ssize_t row, Py_ssize_t stride,
    double* out,
) noexcept nogil:
    """out[k] = log sum_i exp(message[i * stride] + table[i * row + k])."""
    cdef Py_ssize_t i, k
    cdef double largest, total, value
    for k in range(Y):
        largest = -INFINITY
        for i in range(rows):
            value = message[i * stride] + table[i * row + k]
            if value > largest:
                largest = value
        if largest == -INFINITY:
            out[k] = largest
            continue
        total = 0.0
        for i in range(rows):
            total += exp(message[i * stride] + table[i * row + k] - largest)
        out[k] = largest + log(total)


cdef inline void add(double* out, const double* values, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(count):
        out[k] += values[k]


cdef inline void lower(double* out, Py_ssize_t count) noexcept nogil:
    """Take the largest entry off all of them, where there is a finite one."""
    cdef Py_ssize_t k
    cdef double largest = -INFINITY
    for k in range(count):
        if out[k] > largest:
            largest = out[k]
    if largest == -INFINITY:
        return
    for k in range(count):
        out[k] -= largest
