"""The best labellings of one sequence, on chains of both orders; see `nbest` for the method.

What is found and what may be found next stand in one list of at most `number` entries, sorted by score: entry r says
that labelling r agrees with an earlier one, its parent, behind a place, has a certain label there, and the best
beginning before it. Only entries that no labelling has been made of yet can be moved or fall off the end.
"""

from libc.math cimport INFINITY
from libc.string cimport memcpy, memmove

ctypedef long long int64

cdef enum:
    PARENT = 0       # -1: none, the entry is a way to end
    PLACE = 1
    LABEL = 2
    LAST = 3         # the last label, where there is no parent
    WIDTH = 4


cdef struct List:
    double* scores   # [number] descending
    int64* entries   # [number, WIDTH]
    Py_ssize_t size
    Py_ssize_t number


cdef inline void offer(
    List* best, double score, Py_ssize_t parent, Py_ssize_t place, Py_ssize_t label, Py_ssize_t last
) noexcept nogil:
    """Put an entry behind all that are as good, unless there are enough of them or it is impossible."""
    cdef Py_ssize_t low = 0, high = best.size, middle
    cdef int64* entry
    if not score > -INFINITY or (best.size == best.number and score <= best.scores[best.size - 1]):
        return
    while low < high:
        middle = (low + high) // 2
        if best.scores[middle] < score:
            high = middle
        else:
            low = middle + 1
    if best.size < best.number:
        best.size += 1
    memmove(best.scores + low + 1, best.scores + low, (best.size - 1 - low) * sizeof(double))
    entry = best.entries + low * WIDTH
    memmove(entry + WIDTH, entry, (best.size - 1 - low) * WIDTH * sizeof(int64))
    best.scores[low] = score
    entry[PARENT], entry[PLACE], entry[LABEL], entry[LAST] = parent, place, label, last


cdef inline void begin_labelling(const List* best, Py_ssize_t rank, Py_ssize_t T, int* labels) noexcept nogil:
    """What an entry says of its labelling, row `rank` of labels [number, T]."""
    cdef const int64* entry = best.entries + rank * WIDTH
    cdef Py_ssize_t after = entry[PLACE] + 1
    cdef int* path = labels + rank * T
    if entry[PARENT] < 0:
        path[T - 1] = <int>entry[LAST]
    else:
        memcpy(path + after, labels + entry[PARENT] * T + after, (T - after) * sizeof(int))
    path[after - 1] = <int>entry[LABEL]


def first_order(
    const double[:, ::1] scores,       # [T, Y], T at least 1
    const double[:, :, ::1] edges,     # [1, Y, Y] or [T, Y, Y]
    const double[::1] start,           # [Y]
    const double[::1] end,             # [Y]
    int[:, ::1] labels,                # [number, T] out
    double[::1] totals,                # [number] out: their scores, descending
    int64[:, ::1] entries,             # scratch [number, 4]
    double[::1] forward,               # scratch [T * Y]
    int[::1] back,                     # scratch [T * Y]
):
    """How many labellings were found."""
    cdef Py_ssize_t T = scores.shape[0], Y = scores.shape[1], t, i, j, place, rank = 0
    cdef bint shared = edges.shape[0] == 1
    cdef List best
    cdef double* now = &forward[0]
    cdef const double* E
    cdef int* path
    cdef double value, behind
    best.scores, best.entries, best.size, best.number = &totals[0], &entries[0, 0], 0, labels.shape[0]
    with nogil:
        for j in range(Y):
            now[j] = start[j] + scores[0, j]
        for t in range(1, T):
            E = &edges[0 if shared else t, 0, 0]
            max_plus(now, 1, E, Y, Y, now + Y, &back[t * Y])
            now += Y
            for j in range(Y):
                now[j] += scores[t, j]
        for j in range(Y):
            offer(&best, now[j] + end[j], -1, T - 1, j, j)
        while rank < best.size:
            begin_labelling(&best, rank, T, &labels[0, 0])
            path = &labels[rank, 0]
            place = best.entries[rank * WIDTH + PLACE]
            for t in range(place, 0, -1):
                path[t - 1] = back[t * Y + path[t]]
            behind = end[path[T - 1]]
            for t in range(T - 2, -1, -1):
                E = &edges[0 if shared else t + 1, 0, 0]
                behind += scores[t + 1, path[t + 1]]
                if t < place:
                    for i in range(Y):
                        if i != path[t]:
                            # What follows is no better than this one: rounding must not say so.
                            value = forward[t * Y + i] + E[i * Y + path[t + 1]] + behind
                            offer(&best, min(value, best.scores[rank]), rank, t, i, -1)
                behind += E[path[t] * Y + path[t + 1]]
            rank += 1
    return rank


def second_order(
    const double[:, ::1] scores,       # [T, Y], T at least 2
    const double[:, :, ::1] edges,     # [1, Y, Y] or [T, Y, Y]
    const double[::1] start,           # [Y]
    const double[::1] end,             # [Y]
    const double[:, :, ::1] triples,   # [Y, Y, Y]
    int[:, ::1] labels,                # [number, T] out
    double[::1] totals,                # [number] out
    int64[:, ::1] entries,             # scratch [number, 4]
    double[::1] forward,               # scratch [T * Y^2]
    int[::1] back,                     # scratch [T * Y^2]
):
    """The same where states are pairs of labels; those at t end with the label of t, and there are none at 0."""
    cdef Py_ssize_t T = scores.shape[0], Y = scores.shape[1], P = Y * Y, t, i, j, k, place, rank = 0
    cdef bint shared = edges.shape[0] == 1
    cdef List best
    cdef double* now = &forward[0] + P
    cdef const double* E
    cdef const double* U = &triples[0, 0, 0]
    cdef int* path
    cdef double value, own, behind
    best.scores, best.entries, best.size, best.number = &totals[0], &entries[0, 0], 0, labels.shape[0]
    with nogil:
        for t in range(1, T):
            E = &edges[0 if shared else t, 0, 0]
            if t == 1:
                for i in range(Y):
                    for j in range(Y):
                        now[i * Y + j] = start[i] + scores[0, i]
            else:
                # For each label in the middle, over the one before it; U is [before, middle, after].
                for j in range(Y):
                    max_plus(now + j, Y, U + j * Y, P, Y, now + P + j * Y, &back[t * P + j * Y])
                now += P
            for j in range(Y):
                for k in range(Y):
                    now[j * Y + k] += E[j * Y + k] + scores[t, k]
        # Of equals Viterbi takes the smaller last label, then the smaller one before it.
        for j in range(Y):
            for i in range(Y):
                offer(&best, now[i * Y + j] + end[j], -1, T - 2, i, j)
        while rank < best.size:
            begin_labelling(&best, rank, T, &labels[0, 0])
            path = &labels[rank, 0]
            place = best.entries[rank * WIDTH + PLACE]
            for t in range(place, 0, -1):
                path[t - 1] = back[(t + 1) * P + path[t] * Y + path[t + 1]]
            behind = end[path[T - 1]]
            for t in range(T - 3, -1, -1):
                j, k = path[t + 1], path[t + 2]
                own = edges[0 if shared else t + 2, j, k] + scores[t + 2, k] + behind
                if t < place:
                    for i in range(Y):
                        if i != path[t]:
                            value = forward[(t + 1) * P + i * Y + j] + U[(i * Y + j) * Y + k] + own
                            offer(&best, min(value, best.scores[rank]), rank, t, i, -1)
                behind = own + U[(path[t] * Y + j) * Y + k]
            rank += 1
    return rank


cdef inline void max_plus(
    const double* values, Py_ssize_t apart, const double* matrix, Py_ssize_t stride, Py_ssize_t Y,
    double* out, int* argument,
) noexcept nogil:
    """out[j] = max_i values[i] + matrix[i, j], and the smallest i that gives it; strides of `values` and of rows."""
    cdef Py_ssize_t i, j
    cdef double value
    for j in range(Y):
        out[j] = -INFINITY
        argument[j] = 0
    for i in range(Y):
        for j in range(Y):
            value = values[i * apart] + matrix[i * stride + j]
            if value > out[j]:
                out[j] = value
                argument[j] = <int>i
