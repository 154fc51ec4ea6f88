"""Neighbourhoods of pictures: the products of pixels, pooled. One picture after the other, so that what a picture
gives does not depend on which others it is asked for with."""

from libc.math cimport fabs, sqrt
from libc.string cimport memset


def neighbourhoods(
    const double[:, ::1] pictures,     # [n, H * W] row by row
    const int[:, ::1] offsets,         # [K, 2] (down, right) of the other pixel; (0, 0) for the pixel itself
    const double[:, ::1] down,         # [H, A] weights of a row in the pools
    const double[:, ::1] across,       # [W, B] weights of a column
    double[::1] line,                  # scratch [B]
    double[:, ::1] out,                # [n, K * A * B]
):
    cdef Py_ssize_t H = down.shape[0], A = down.shape[1], W = across.shape[0], B = across.shape[1]
    cdef Py_ssize_t i, k, h, w, a, b, dy, dx, first, last
    cdef double value, weight
    cdef const double* picture
    cdef const double* other
    cdef double* target
    cdef double* sums = &line[0]
    cdef bint empty
    with nogil:
        for i in range(pictures.shape[0]):
            picture = &pictures[i, 0]
            target = &out[i, 0]
            memset(target, 0, out.shape[1] * sizeof(double))
            for k in range(offsets.shape[0]):
                dy, dx = offsets[k, 0], offsets[k, 1]
                first, last = max(0, -dx), min(W, W - dx)
                for h in range(max(0, -dy), min(H, H - dy)):
                    memset(sums, 0, B * sizeof(double))
                    empty = True
                    other = picture + (h + dy) * W + dx
                    for w in range(first, last):
                        value = picture[h * W + w]
                        if value == 0:
                            continue
                        if dy != 0 or dx != 0:
                            value = value * other[w]
                            if value == 0:
                                continue
                        empty = False
                        for b in range(B):
                            sums[b] += value * across[w, b]
                    if empty:
                        continue
                    for a in range(A):
                        weight = down[h, a]
                        if weight != 0:
                            for b in range(B):
                                target[a * B + b] += weight * sums[b]
                target += A * B
            # Counts of what is there vary by their roots: a kernel on roots weighs rare and frequent alike.
            target = &out[i, 0]
            for k in range(out.shape[1]):
                value = sqrt(fabs(target[k]))
                target[k] = value if target[k] >= 0 else -value
