"""Double arrays: a trie in two rows of numbers, as CRF++ keeps its strings.

A node with the base b has its child by the byte c at unit b + c + 1, whose `check` is b and whose `base` is the
child's; the end of a string is at unit b itself, with the negative of its number less one in the place of a base. Unit
0 has the base of the root.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

import numpy as np

cdef enum:
    PADDING = 257  # units behind the last one that a look-up may ask for


cdef struct Node:
    int64_t left, right  # keys
    int64_t depth  # bytes that they share
    int64_t unit  # where its base goes


cdef void* resized(void* memory, size_t size) except NULL:
    """Return memory of another size with the same beginning."""
    cdef void* found = realloc(memory, size)
    if found == NULL:
        raise MemoryError
    return found


cdef class _Units:
    cdef int32_t* base
    cdef uint32_t* check
    cdef uint8_t* used  # whether a node has this base
    cdef int64_t room, size

    def __dealloc__(self):
        free(self.base)
        free(self.check)
        free(self.used)

    cdef int reach(self, int64_t unit) except -1:
        cdef int64_t room
        if unit < self.room:
            return 0
        room = 2 * unit + 1024
        self.base = <int32_t*>resized(self.base, room * sizeof(int32_t))
        self.check = <uint32_t*>resized(self.check, room * sizeof(uint32_t))
        self.used = <uint8_t*>resized(self.used, room)
        memset(self.base + self.room, 0, (room - self.room) * sizeof(int32_t))
        memset(self.check + self.room, 0, (room - self.room) * sizeof(uint32_t))
        memset(self.used + self.room, 0, room - self.room)
        self.room = room
        return 0


def build(const uint8_t[::1] text, const int64_t[::1] ends, const int32_t[::1] values):
    """Units [n, 2] of sorted, distinct keys that stand end to end in a text, with numbers that are not negative."""
    cdef _Units units = _Units()
    cdef int64_t K = values.shape[0], top, room = 1024, key, place, first, code, last, begin, next_free = 1, taken, j
    cdef int64_t[257] codes, lefts
    cdef int64_t children
    cdef Node node
    cdef Node* stack = <Node*>resized(NULL, room * sizeof(Node))
    cdef uint32_t[:, ::1] rows
    cdef bint started
    try:
        units.reach(PADDING)
        stack[0].left, stack[0].right, stack[0].depth, stack[0].unit = 0, K, 0, 0
        top = 1 if K else 0
        while top:
            top -= 1
            node = stack[top]
            children, last = 0, -1
            for key in range(node.left, node.right):
                first = ends[key - 1] if key else 0
                code = 0 if ends[key] - first == node.depth else text[first + node.depth] + 1
                if code != last:
                    codes[children], lefts[children] = code, key
                    children += 1
                    last = code
            # The first place where all children find room; what is nearly full is not looked through again.
            place = next_free if next_free > codes[0] + 1 else codes[0] + 1
            taken, started = 0, False
            place -= 1
            while True:
                place += 1
                begin = place - codes[0]
                units.reach(begin + PADDING)
                if units.check[place]:
                    taken += 1
                    continue
                if not started:
                    next_free, started = place, True
                if units.used[begin]:
                    continue
                for j in range(1, children):
                    if units.check[begin + codes[j]]:
                        break
                else:
                    break
            if 20 * taken >= 19 * (place - next_free + 1):
                next_free = place
            if begin > (1 << 31) - 1024:
                raise OverflowError("too many strings for a double array")
            units.used[begin] = 1
            units.base[node.unit] = <int32_t>begin
            if begin + codes[children - 1] >= units.size:
                units.size = begin + codes[children - 1] + 1
            for j in range(children):
                units.check[begin + codes[j]] = <uint32_t>begin
            if top + children > room:
                room = 2 * (top + children)
                stack = <Node*>resized(stack, room * sizeof(Node))
            for j in range(children - 1, -1, -1):
                if codes[j] == 0:
                    units.base[begin] = -values[lefts[j]] - 1
                    continue
                stack[top].left = lefts[j]
                stack[top].right = lefts[j + 1] if j + 1 < children else node.right
                stack[top].depth = node.depth + 1
                stack[top].unit = begin + codes[j]
                top += 1
        out = np.zeros((units.size + PADDING, 2), dtype=np.uint32)
        rows = out
        for j in range(units.size):
            rows[j, 0] = <uint32_t>units.base[j]
            rows[j, 1] = units.check[j]
    finally:
        free(stack)
    return out
