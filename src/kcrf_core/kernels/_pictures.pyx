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
    cdef double value
    cdef const double* picture
    cdef const double* other
    cdef const double* row_weights
    cdef const double* column_weights
    cdef double* pools
    cdef double* target
    cdef double* sums = &line[0]
    cdef bint empty, alone
    with nogil:
        for i in range(pictures.shape[0]):
            target = &out[i, 0]
            memset(target, 0, out.shape[1] * sizeof(double))
            for k in range(offsets.shape[0]):
                dy, dx = offsets[k, 0], offsets[k, 1]
                alone = dy == 0 and dx == 0
                first, last = max(0, -dx), min(W, W - dx)
                for h in range(max(0, -dy), min(H, H - dy)):
                    picture = &pictures[i, h * W]
                    other = &pictures[i, 0] + (h + dy) * W + dx
                    empty = True
                    for w in range(first, last):
                        value = picture[w] if alone else picture[w] * other[w]
                        if value == 0:
                            continue
                        column_weights = &across[w, 0]
                        if empty:
                            empty = False
                            for b in range(B):
                                sums[b] = value * column_weights[b]
                        else:
                            for b in range(B):
                                sums[b] += value * column_weights[b]
                    if empty:
                        continue
                    row_weights = &down[h, 0]
                    pools = target
                    for a in range(A):
                        value = row_weights[a]
                        if value != 0:
                            for b in range(B):
                                pools[b] += value * sums[b]
                        pools += B
                target += A * B
            # Sums vary by their roots: a kernel on roots lets long strokes not drown short ones.
            target = &out[i, 0]
            for k in range(out.shape[1]):
                value = sqrt(fabs(target[k]))
                target[k] = value if target[k] >= 0 else -value
