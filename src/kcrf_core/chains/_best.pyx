"""The best labellings of sequences, on chains of both orders: Viterbi, and n-best lists by Lawler's partition.

All labellings but the best differ from it in a last place, d: they agree with it behind d and not at d. The best of
those with each d and each other label at d are candidates for the second rank, and when one of them is taken, those
that agree with it behind a place before its own d are candidates for the next. Every labelling belongs to one
candidate, hence none comes twice. With the best scores of all beginnings from one forward pass, all candidates of a
labelling cost T Y: time T Y^2 (second order: T Y^3) in all, and T Y for each labelling.

Labellings and candidates stand in one list of at most `number` entries, sorted by score: entry r says that labelling r
agrees with an earlier one, its parent, behind a place, has a certain state there, and the best beginning before it.
Only entries that no labelling has been made of yet can be moved or fall off the end.
"""

from libc.math cimport INFINITY, NAN
from libc.string cimport memcpy, memmove

from ._messages cimport StatePotentials
from ._states cimport (
    Block, block_of, blocks, Chain, first_of, int64, kcrf_max_plus, label_of, source, States,
)

cdef enum:
    PARENT = 0       # -1: none, the entry is a way to end
    PLACE = 1
    STATE = 2
    WIDTH = 3


cdef double* best_beginnings(const Chain* C, const double* scores, Py_ssize_t T, double* now) noexcept nogil:
    """Put the best score of a path up to each position that ends in each state, [T, P]; return the last row.

    NaN hides from comparisons: the last row is all NaN where any score is. Row 0 is for first-order chains alone.
    """
    cdef const States* L = &C.states
    cdef Py_ssize_t t, p, j, a, P = L.P, begin = C.pairs != NULL
    cdef const double* table
    cdef const double* row
    cdef const double* pairs
    cdef double* gathered = now + T * P  # [Y], of pairs alone
    cdef bint strange = False
    cdef Block B
    now += begin * P
    for t in range(begin, T):
        table = C.table + (t * L.Q if C.table_apart else 0)
        if t == begin:
            for p in range(P):
                j = first_of(L, p)
                now[p] = C.start[j] + scores[j] if begin else C.start[j]
        else:
            for j in range(blocks(L)):
                B = block_of(L, j)
                for a in range(0 if B.into == NULL else B.height):
                    gathered[a] = now[B.into[a]]
                kcrf_max_plus(
                    now if B.into == NULL else gathered, table + B.at, B.height, B.width, now + P + B.after
                )
            now += P
        row, pairs = scores + t * L.Y, C.pairs + (t * P if C.pairs_apart else 0)
        for p in range(P):
            now[p] += pairs[p] + row[L.second[p]] if begin else row[p]
            strange |= now[p] != now[p]
    for p in range(P if strange else 0):
        now[p] = NAN
    return now


cdef Block block_into(const Chain* C, Py_ssize_t state, Py_ssize_t t, const double** column) noexcept nogil:
    """Return the block of transitions into a state at t, and put the state's column of it."""
    cdef const States* L = &C.states
    cdef Block B = block_of(L, 0 if L.first == NULL else L.first[state])
    column[0] = C.table + (t * L.Q if C.table_apart else 0) + B.at + (state - B.after)
    return B


cdef Py_ssize_t best_before(const Chain* C, const double* now, Py_ssize_t state, Py_ssize_t t) noexcept nogil:
    """Return the state at t - 1 of the best path to a state at t; of equals, the smaller label."""
    cdef const double* column
    cdef Block B = block_into(C, state, t, &column)
    cdef Py_ssize_t a, best = source(&B, 0) if B.height else 0
    cdef double value, top = -INFINITY
    for a in range(B.height):
        value = now[source(&B, a)] + column[a * B.width]
        if value > top:
            top = value
            best = source(&B, a)
    return best


cdef double best_path(const Chain* C, const double* scores, Py_ssize_t T, int* path, double* work) noexcept nogil:
    """Put the best labels of T > 0 positions and return their score, NaN where any score is; see `viterbi`."""
    cdef const States* L = &C.states
    cdef Py_ssize_t t, p, begin = C.pairs != NULL, state = 0
    cdef double* now = best_beginnings(C, scores, T, work)
    cdef double value, top = -INFINITY
    for p in range(L.P):
        value = now[p] + C.end[label_of(L, p)]
        # Pairs come in the order of their first label: of equals, the smaller last label, then the first.
        if value > top or (value == top and label_of(L, p) < label_of(L, state)) or value != value:
            top = value
            state = p
    for t in range(T - 1, begin, -1):
        path[t] = <int>label_of(L, state)
        now -= L.P
        state = best_before(C, now, state, t)
    path[begin] = <int>label_of(L, state)
    path[0] = <int>first_of(L, state)
    return top


def viterbi(
    StatePotentials potentials not None,
    const double[:, ::1] scores,       # [n, Y]
    const int64[::1] offsets,          # [S+1]
    int[::1] path,                     # [n] out: the best labels; of equals, the smaller label
    double[::1] best,                  # [S] out: their unnormalised log score, not finite where none is allowed
    double[::1] work,                  # scratch of longest * P + Y
):
    cdef Py_ssize_t k, at, T
    cdef Chain C
    with nogil:
        for k in range(offsets.shape[0] - 1):
            at = offsets[k]
            T = offsets[k + 1] - at
            best[k] = 0.0
            if T > 0:
                C = potentials.of(at, T)
                best[k] = best_path(&C, &scores[at, 0], T, &path[at], &work[0])


cdef struct List:
    double* scores   # [number] descending
    int64* entries   # [number, WIDTH]
    Py_ssize_t size
    Py_ssize_t number


cdef inline void offer(
    List* best, double score, Py_ssize_t parent, Py_ssize_t place, Py_ssize_t state
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
    entry[PARENT], entry[PLACE], entry[STATE] = parent, place, state


def best_lists(
    StatePotentials potentials not None,
    const double[:, ::1] scores,       # [n, Y]
    Py_ssize_t at,                     # where the sequence begins
    Py_ssize_t T,                      # its positions, one at least
    int[:, ::1] labels,                # [number, T] out
    double[::1] totals,                # [number] out: their scores, descending
    int64[:, ::1] entries,             # scratch [number, 3]
    double[::1] forward,               # scratch [T * P + Y]
):
    """Find the best labellings of one sequence, with states in the place of labels; return their number."""
    cdef Chain C = potentials.of(at, T)
    cdef const States* L = &C.states
    cdef Py_ssize_t P = L.P, t, p, a, begin = C.pairs != NULL, rank = 0
    cdef List best
    cdef const double* F = &scores[at, 0]
    cdef const double* now
    cdef const double* column
    cdef int64* entry
    cdef int* path
    cdef double behind, score
    cdef Block B
    best.scores, best.entries, best.size, best.number = &totals[0], &entries[0, 0], 0, labels.shape[0]
    with nogil:
        now = best_beginnings(&C, F, T, &forward[0])
        for a in range(P):
            # Of equals Viterbi takes the smaller last label, then the smaller one before it.
            p = a if L.into == NULL else L.into[a]
            offer(&best, now[p] + C.end[label_of(L, p)], -1, T - 1, p)
        while rank < best.size:
            entry, path = best.entries + rank * WIDTH, &labels[rank, 0]
            t = entry[PLACE]
            if entry[PARENT] >= 0:
                memcpy(path + t + 1, &labels[entry[PARENT], t + 1], (T - t - 1) * sizeof(int))
            path[t] = <int>entry[STATE]
            for t in range(entry[PLACE], begin, -1):
                path[t - 1] = <int>best_before(&C, &forward[(t - 1) * P], path[t], t)
            behind = C.end[label_of(L, path[T - 1])]
            for t in range(T - 1, begin, -1):
                # All that differ first in the state before t, seen from the end.
                B = block_into(&C, path[t], t, &column)
                score = F[t * L.Y + label_of(L, path[t])]  # of the state at t, without transitions
                behind += score if C.pairs == NULL else C.pairs[(t * P if C.pairs_apart else 0) + path[t]] + score
                for a in range(B.height):
                    p = source(&B, a)
                    if p == path[t - 1]:
                        now = column + a * B.width
                    elif t - 1 < entry[PLACE]:
                        # What follows is no better than this one: rounding must not say so.
                        offer(
                            &best, min(forward[(t - 1) * P + p] + column[a * B.width] + behind, best.scores[rank]),
                            rank, t - 1, p,
                        )
                behind += now[0]
            rank += 1
    return rank
