"""Labellings drawn at random from p(y | x): a forward recursion, then labels from the last one to the first."""

from libc.math cimport exp, INFINITY

import numpy as np


def draw_labellings(
    const double[:, ::1] scores,       # [T, Y] F of one sequence
    const double[:, ::1] edges,        # [Y, Y] E
    const double[::1] start,           # [Y] s
    const double[::1] end,             # [Y] e
    const double[:, ::1] uniform,      # [S, T] random numbers from [0, 1)
    int[:, ::1] labels,                # [S, T] out
):
    """Draw labellings of a sequence, in place."""
    cdef Py_ssize_t T = scores.shape[0], Y = scores.shape[1], S = labels.shape[0], t, y, z, s
    cdef double total, top, aim
    factors, reached = np.exp(edges - np.max(edges)), np.empty((T, Y))
    cdef double[:, ::1] into = factors  # [Y, Y] from each label to the next
    cdef double[:, ::1] onto = np.ascontiguousarray(factors.T)
    cdef double[::1] first = np.exp(start - np.max(start)), last = np.exp(end - np.max(end)), summed = np.empty(Y)
    cdef double[:, ::1] forward = reached  # [T, Y] of each label, over all beginnings; the largest is about 1
    cdef const double* factor
    with nogil:
        for t in range(T):
            top, total = -INFINITY, 0.0
            for y in range(Y):
                top = max(top, scores[t, y])
                forward[t, y] = 0.0 if t else first[y]
            if t:
                for z in range(Y):
                    for y in range(Y):
                        forward[t, y] += forward[t - 1, z] * into[z, y]
            for y in range(Y):
                forward[t, y] *= exp(scores[t, y] - top)
                total += forward[t, y]
            for y in range(Y):
                forward[t, y] = forward[t, y] / total if total > 0 else 1.0
        for s in range(S):
            factor = &last[0]
            for t in range(T - 1, -1, -1):
                total = 0.0
                for y in range(Y):
                    total += forward[t, y] * factor[y]
                    summed[y] = total
                aim, y = uniform[s, t] * total, 0
                while y < Y - 1 and summed[y] <= aim:
                    y += 1
                labels[s, t] = <int>y
                factor = &onto[y, 0]


def count_cliques(const int[:, ::1] labels, Py_ssize_t Y, bint first, bint last):
    """Count pairs of labels in each labelling [S, T], and where asked first and last ones: [S, Y^2 + 2 Y] float32."""
    cdef Py_ssize_t T = labels.shape[1], t, s
    found = np.zeros((labels.shape[0], Y * Y + 2 * Y), dtype=np.float32)
    cdef float[:, ::1] counts = found
    with nogil:
        for s in range(labels.shape[0]):
            for t in range(1, T):
                counts[s, labels[s, t - 1] * Y + labels[s, t]] += 1
            if first:
                counts[s, Y * Y + labels[s, 0]] += 1
            if last:
                counts[s, Y * Y + Y + labels[s, T - 1]] += 1
    return found
