"""Double arrays: a trie in two rows of numbers, as CRF++ keeps its strings.

A node with the base b has its child by the byte c at unit b + c + 1, whose `check` is b and whose `base` is the
child's; the end of a string is at unit b itself, with the negative of its number less one in the place of a base. Unit
0 has the base of the root.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

import numpy as np

cdef enum:
    PADDING = 257  # units behind the last one that a look-up may ask for


def build(const uint8_t[::1] text, const int64_t[::1] ends, const int32_t[::1] values):
    """Units [n, 2] of sorted, distinct keys that stand end to end in a text, with numbers that are not negative."""
    cdef int64_t K = values.shape[0], key, place, first, code, last, begin, next_free = 1, taken, size = 0, j
    cdef int64_t left, right, depth, unit, children
    cdef int64_t[257] codes, lefts
    cdef bint started
    out, known = np.zeros((4 * PADDING, 2), np.uint32), np.zeros(4 * PADDING, np.uint8)
    cdef uint32_t[:, ::1] rows = out  # base and check
    cdef uint8_t[::1] used = known  # whether a node has this base
    nodes = [(0, K, 0, 0)] if K else []  # their keys, left:right, the bytes that these share, and where the base goes
    while nodes:
        left, right, depth, unit = nodes.pop()
        children, last = 0, -1
        for key in range(left, right):
            first = ends[key - 1] if key else 0
            code = 0 if ends[key] - first == depth else text[first + depth] + 1
            if code != last:
                codes[children], lefts[children] = code, key
                children += 1
                last = code
        # The first place where all children find room; what is nearly full is not looked through again.
        place = max(next_free, codes[0] + 1) - 1
        taken, started = 0, False
        while True:
            place += 1
            begin = place - codes[0]
            if begin + 2 * PADDING >= used.shape[0]:
                out, known = (np.concatenate([each, np.zeros_like(each)]) for each in (out, known))
                rows, used = out, known
            if rows[place, 1]:
                taken += 1
                continue
            if not started:
                next_free, started = place, True
            if used[begin]:
                continue
            for j in range(1, children):
                if rows[begin + codes[j], 1]:
                    break
            else:
                break
        if 20 * taken >= 19 * (place - next_free + 1):
            next_free = place
        if begin > (1 << 31) - 1024:
            raise OverflowError("too many strings for a double array")
        used[begin], rows[unit, 0] = True, <uint32_t>begin
        size = max(size, begin + codes[children - 1] + 1)
        for j in range(children):
            rows[begin + codes[j], 1] = <uint32_t>begin
        for j in range(children - 1, -1, -1):
            if codes[j] == 0:
                rows[begin, 0] = <uint32_t>(-values[lefts[j]] - 1)
            else:
                nodes.append((lefts[j], lefts[j + 1] if j + 1 < children else right, depth + 1, begin + codes[j]))
    return out[: size + PADDING]
