"""Labellings that obey rules on runs of labels: the best of them by best-first search, with a proof.

A search goes from the end of a sequence to its beginning. A node is a state at position t, the counts of runs in t..T-1
and the score of what is behind t; with the best score of all beginnings that end in the state, from Viterbi, its bound
is the score of the best labelling that a node can become without rules. Bounds of complete labellings are their scores,
so the first that is taken is the best (A*: Hart, Nilsson and Raphael, 1968), and the next are an n-best list. Of nodes
with the same position, state and counts only as many are continued as labellings are wanted.

A search begins without counters. Those that its result breaks are added, and it is repeated: few of many counters
matter for a sequence, and fewer nodes differ. (With all counters from the start, a search took 4 to 6 times as long on
sequences of 12 tokens with 30 labels, each of which may form one run.)

Counts stand in words of 64 bits. A run is counted at its last position, so that its label is refused at once.
After `limit` nodes a search with all counters takes nodes nearest to the beginning first, which soon gives a labelling.
"""

from libc.math cimport INFINITY
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

from ..system.types cimport int64, uint64
from ._best cimport best_beginnings, block_into
from ._messages cimport StatePotentials
from ._states cimport Block, Chain, first_of, label_of, source, States

EXACT, LIMITED, IMPOSSIBLE, NONE_FOUND = range(4)

cdef enum:
    FOUND_BEST = 0
    FOUND_SOME = 1
    PROVED_NONE = 2
    FOUND_NONE = 3


cdef struct Fields:
    Py_ssize_t Y, G, words
    const int* group             # [Y] counter of each label, or -1
    const unsigned char* ends    # [Y, Y] a run of the first label ends before the second one
    const int* word              # [G] place of each counter
    const int* shift             # [G]
    const uint64* field          # [G]
    const int* cap               # [G] the largest count
    const unsigned char* bounded    # [G] more than that is forbidden, else not distinguished
    const unsigned char* required   # [G] counters that must not be zero
    bint demanding               # any is required
    unsigned char* active        # [G] counters that are heeded
    const unsigned char* pairs   # [Y, Y] allowed transitions
    const unsigned char* first   # [Y]
    const unsigned char* last    # [Y]


cdef class Counters:
    """Counters of runs and allowed transitions for the functions below."""

    cdef Fields fields
    cdef tuple _held
    cdef unsigned char[::1] _all

    def __init__(
        self, const int[::1] group, const unsigned char[:, ::1] ends, const int[::1] word, const int[::1] shift,
        const uint64[::1] field, const int[::1] cap, const unsigned char[::1] bounded,
        const unsigned char[::1] required, Py_ssize_t words, const unsigned char[:, ::1] pairs,
        const unsigned char[::1] first, const unsigned char[::1] last,
    ):
        cdef Fields* F = &self.fields
        self._held = group, ends, word, shift, field, cap, bounded, required, pairs, first, last
        F.Y, F.G, F.words = group.shape[0], cap.shape[0], words
        F.group, F.ends, F.word, F.shift, F.field = &group[0], &ends[0, 0], &word[0], &shift[0], &field[0]
        F.cap, F.bounded, F.required = &cap[0], &bounded[0], &required[0]
        F.pairs, F.first, F.last = &pairs[0, 0], &first[0], &last[0]
        F.demanding = any(required)
        self._all = bytearray(b"\1" * F.G)
        F.active = &self._all[0]


cdef inline bint count(const Fields* F, uint64* mask, Py_ssize_t label) noexcept nogil:
    """Count one more run of a label; return False if there must not be another one."""
    cdef int g = F.group[label]
    cdef uint64* word
    cdef int number
    if g < 0 or not F.active[g]:
        return True
    word = mask + F.word[g]
    number = <int>((word[0] >> F.shift[g]) & F.field[g])
    if number < F.cap[g]:
        word[0] += (<uint64>1) << F.shift[g]
        return True
    return not F.bounded[g]


cdef inline Py_ssize_t lacking(const Fields* F, const uint64* mask) noexcept nogil:
    """Return the number of required counters that are zero."""
    cdef Py_ssize_t g, number = 0
    for g in range(F.G if F.demanding else 0):
        if F.required[g] and F.active[g] and ((mask[F.word[g]] >> F.shift[g]) & F.field[g]) == 0:
            number += 1
    return number


cdef bint obeys(
    const Fields* F, const int* path, Py_ssize_t T, uint64* mask, unsigned char* broken
) noexcept nogil:
    """Return True if labels obey; mark counters that they break unless `broken` is NULL."""
    cdef Py_ssize_t t, g
    cdef bint good = True
    memset(mask, 0, F.words * sizeof(uint64))
    for t in range(T):
        if (t + 1 == T or F.ends[path[t] * F.Y + path[t + 1]]) and not count(F, mask, path[t]):
            good = False
            if broken != NULL:
                broken[F.group[path[t]]] = 1
    if lacking(F, mask):
        good = False
        for g in range(F.G if broken != NULL else 0):
            if F.required[g] and ((mask[F.word[g]] >> F.shift[g]) & F.field[g]) == 0:
                broken[g] = 1
    return good


cdef bint permitted(const Fields* F, const int* path, Py_ssize_t T) noexcept nogil:
    """Return True if all transitions are allowed."""
    cdef Py_ssize_t t
    if T == 0:
        return True
    for t in range(1, T):
        if not F.pairs[path[t - 1] * F.Y + path[t]]:
            return False
    return F.first[path[0]] and F.last[path[T - 1]]


def obeyed(Counters counters not None, const int[::1] labels, const int64[::1] offsets, unsigned char[::1] out):
    """Put 1 for each sequence whose labels obey."""
    cdef const Fields* F = &counters.fields
    cdef const int* path
    cdef Py_ssize_t k, T
    cdef uint64* mask = <uint64*>malloc(F.words * sizeof(uint64))
    if mask == NULL:
        raise MemoryError
    with nogil:
        for k in range(offsets.shape[0] - 1):
            T = offsets[k + 1] - offsets[k]
            path = &labels[0] + offsets[k]
            out[k] = permitted(F, path, T) and obeys(F, path, T, mask, NULL)
    free(mask)


cdef struct Node:
    double tail                  # score of what is behind the position, with the transition to it
    int64 parent                 # the node of the next position, -1 at the end
    int state
    int t


cdef struct Entry:
    double bound
    int64 node


cdef struct Slot:
    int64 node                   # one with this position, state and counts, plus 1; 0: the slot is free
    int64 taken


cdef struct Search:
    const Fields* fields
    Py_ssize_t size, room        # nodes, those there is memory for
    Py_ssize_t open              # entries of the heap
    Py_ssize_t slots, used       # of the hash table, a power of two
    Node* nodes                  # [room]
    uint64* masks                # [room, words]
    Entry* heap                  # [room]
    Slot* table                  # [slots]
    bint hurried                 # positions nearest to the beginning come first
    bint failed                  # no memory


cdef inline bint before(const Search* S, const Entry* one, const Entry* other) noexcept nogil:
    if S.hurried and S.nodes[one.node].t != S.nodes[other.node].t:
        return S.nodes[one.node].t < S.nodes[other.node].t
    return one.bound > other.bound or (one.bound == other.bound and one.node < other.node)


cdef void rise(Search* S, Py_ssize_t at) noexcept nogil:
    cdef Entry own = S.heap[at]
    cdef Py_ssize_t above
    while at > 0:
        above = (at - 1) // 2
        if not before(S, &own, S.heap + above):
            break
        S.heap[at] = S.heap[above]
        at = above
    S.heap[at] = own


cdef void sink(Search* S, Py_ssize_t at) noexcept nogil:
    cdef Entry own = S.heap[at]
    cdef Py_ssize_t below
    while True:
        below = 2 * at + 1
        if below >= S.open:
            break
        if below + 1 < S.open and before(S, S.heap + below + 1, S.heap + below):
            below += 1
        if not before(S, S.heap + below, &own):
            break
        S.heap[at] = S.heap[below]
        at = below
    S.heap[at] = own


cdef Py_ssize_t pop(Search* S) noexcept nogil:
    cdef Py_ssize_t node = S.heap[0].node
    S.open -= 1
    if S.open:
        S.heap[0] = S.heap[S.open]
        sink(S, 0)
    return node


cdef bint grow(Search* S) noexcept nogil:
    """Make room for twice as many nodes."""
    cdef Py_ssize_t room = max(2 * S.room, 1024)
    cdef void* nodes = realloc(S.nodes, room * sizeof(Node))
    if nodes != NULL:
        S.nodes = <Node*>nodes
    cdef void* masks = realloc(S.masks, room * S.fields.words * sizeof(uint64))
    if masks != NULL:
        S.masks = <uint64*>masks
    cdef void* heap = realloc(S.heap, room * sizeof(Entry))
    if heap != NULL:
        S.heap = <Entry*>heap
    if nodes == NULL or masks == NULL or heap == NULL:
        S.failed = True
        return False
    S.room = room
    return True


cdef uint64* fresh(Search* S, const uint64* mask) noexcept nogil:
    """Return the counts of the node that comes next, a copy; NULL without memory."""
    cdef Py_ssize_t from_own = -1
    if S.size == S.room:
        if mask != NULL:
            from_own = mask - S.masks  # they move
        if not grow(S):
            return NULL
        if mask != NULL:
            mask = S.masks + from_own
    cdef uint64* own = S.masks + S.size * S.fields.words
    if mask == NULL:
        memset(own, 0, S.fields.words * sizeof(uint64))
    else:
        memcpy(own, mask, S.fields.words * sizeof(uint64))
    return own


cdef inline void push(
    Search* S, double bound, double tail, Py_ssize_t parent, Py_ssize_t state, Py_ssize_t t
) noexcept nogil:
    """Keep the node whose counts are already in their place."""
    cdef Node* node = S.nodes + S.size
    node.tail, node.parent, node.state, node.t = tail, parent, <int>state, <int>t
    S.heap[S.open].bound, S.heap[S.open].node = bound, S.size
    S.size += 1
    S.open += 1
    rise(S, S.open - 1)


cdef Slot* slot_of(const Search* S, Slot* table, Py_ssize_t slots, Py_ssize_t node) noexcept nogil:
    """Return the slot of nodes like this one, perhaps a free one."""
    cdef const Node* own = S.nodes + node
    cdef const Node* other
    cdef Py_ssize_t words = S.fields.words, w
    cdef const uint64* mask = S.masks + node * words
    cdef uint64 key = (<uint64>own.state << 32) ^ <uint64>own.t
    for w in range(words):
        key = (key ^ mask[w]) * <uint64>0x9E3779B97F4A7C15
        key ^= key >> 29
    cdef Py_ssize_t at = <Py_ssize_t>(key & <uint64>(slots - 1))
    while table[at].node:
        other = S.nodes + table[at].node - 1
        if other.state == own.state and other.t == own.t:
            if memcmp(S.masks + (table[at].node - 1) * words, mask, words * sizeof(uint64)) == 0:
                break
        at = (at + 1) & (slots - 1)
    return table + at


cdef bint take(Search* S, Py_ssize_t node, Py_ssize_t number) noexcept nogil:
    """Return True unless `number` nodes like this one were taken before."""
    cdef Slot* slot
    cdef Slot* table
    cdef Py_ssize_t k, slots
    if 2 * S.used >= S.slots:
        slots = max(2 * S.slots, 256)
        table = <Slot*>calloc(slots, sizeof(Slot))
        if table == NULL:
            S.failed = True
            return False
        for k in range(S.slots):
            if S.table[k].node:
                slot_of(S, table, slots, S.table[k].node - 1)[0] = S.table[k]
        free(S.table)
        S.table, S.slots = table, slots
    slot = slot_of(S, S.table, S.slots, node)
    if not slot.node:
        slot.node, slot.taken = node + 1, 0
        S.used += 1
    slot.taken += 1
    return slot.taken <= number


cdef Py_ssize_t find(
    Search* S, const Chain* C, const double* scores, Py_ssize_t T, const double* forward, Py_ssize_t number,
    Py_ssize_t limit, int* paths, Py_ssize_t stride, double* totals, unsigned char* status,
) noexcept nogil:
    """Put the best labellings that obey, of T > 0 positions; return how many were found."""
    cdef const States* L = &C.states
    cdef const Fields* F = S.fields
    cdef Py_ssize_t P = L.P, p, q, a, t, label, node, found = 0, begin = C.pairs != NULL
    cdef const double* column
    cdef uint64* mask
    cdef double tail, bound, behind
    cdef Block B
    S.size = S.open = S.used = 0
    if S.slots > 4096:  # of a long search
        free(S.table)
        S.table, S.slots = NULL, 0
    elif S.slots:
        memset(S.table, 0, S.slots * sizeof(Slot))
    for p in range(P):
        bound = forward[(T - 1) * P + p] + C.end[label_of(L, p)]
        if bound > -INFINITY:
            mask = fresh(S, NULL)
            if mask == NULL:
                return 0
            if not count(F, mask, label_of(L, p)):
                continue
            if T - 1 == begin and begin and F.ends[first_of(L, p) * L.Y + label_of(L, p)]:
                if not count(F, mask, first_of(L, p)):
                    continue
            if lacking(F, mask) <= (T - 1 if T - 1 > begin else 0):
                push(S, bound, C.end[label_of(L, p)], -1, p, T - 1)
    while S.open and not S.failed:
        if S.size >= limit:
            break
        bound = S.heap[0].bound
        node = pop(S)
        t, p, tail = S.nodes[node].t, S.nodes[node].state, S.nodes[node].tail
        if t == begin:
            # Complete: what is before it has the best score already, which is the only way to begin.
            paths[found * stride] = <int>first_of(L, p)
            totals[found] = bound
            while node >= 0:
                paths[found * stride + S.nodes[node].t] = <int>label_of(L, S.nodes[node].state)
                node = S.nodes[node].parent
            found += 1
            if found == number or S.hurried:
                break
            continue
        if not take(S, node, number):
            continue
        label = label_of(L, p)
        behind = tail + scores[t * L.Y + label]
        if begin:
            behind += C.pairs[(t * P if C.pairs_apart else 0) + p]
        B = block_into(C, p, t, &column)
        for a in range(B.height):
            q = source(&B, a)
            tail = behind + column[a * B.width]
            bound = forward[(t - 1) * P + q] + tail
            if not bound > -INFINITY:
                continue
            mask = fresh(S, S.masks + node * F.words)
            if mask == NULL:
                return found
            if F.ends[label_of(L, q) * L.Y + label] and not count(F, mask, label_of(L, q)):
                continue
            if t - 1 == begin and begin and F.ends[first_of(L, q) * L.Y + label_of(L, q)]:
                if not count(F, mask, first_of(L, q)):
                    continue
            if lacking(F, mask) <= (t - 1 if t - 1 > begin else 0):
                push(S, bound, tail, node, q, t - 1)
    if S.hurried or (S.open and found < number):
        status[0] = FOUND_SOME if found else FOUND_NONE
    else:
        status[0] = FOUND_BEST if found else PROVED_NONE
    return found


cdef Py_ssize_t find_obeying(
    Search* S, const Fields* every, const Chain* C, const double* scores, Py_ssize_t T, const double* forward,
    Py_ssize_t number, Py_ssize_t limit, int* paths, Py_ssize_t stride, double* totals, unsigned char* status,
    uint64* mask,
) noexcept nogil:
    """Search with more and more counters until no labelling that was found breaks any; see `find`."""
    cdef Py_ssize_t found, r, left = limit
    cdef unsigned char* active = S.fields.active
    cdef bint good = False
    S.hurried = False
    memset(active, 0, every.G)
    while not S.failed:
        found = find(S, C, scores, T, forward, number, left, paths, stride, totals, status)
        good = True
        for r in range(found):
            good &= obeys(every, paths + r * stride, T, mask, active)
        if S.hurried or status[0] == PROVED_NONE or (good and status[0] == FOUND_BEST):
            return found
        left -= S.size
        if left <= 0 or status[0] != FOUND_BEST:
            if good and found:
                return found
            S.hurried, left = True, limit
            memset(active, 1, every.G)
    return 0


def search(
    StatePotentials potentials not None,
    Counters counters not None,
    const double[:, ::1] scores,       # [n, Y]
    const int64[::1] offsets,          # [S+1]
    const int64[::1] wanted,           # [s] sequences to search
    Py_ssize_t number,                 # labellings of each
    Py_ssize_t limit,                  # nodes of each search
    int[:, ::1] paths,                 # [number, n] out
    double[:, ::1] totals,             # [s, number] out: their scores, descending
    int64[::1] found,                  # [s] out: how many there are
    unsigned char[::1] status,         # [s] out: EXACT, LIMITED, IMPOSSIBLE or NONE_FOUND
    double[::1] work,                  # scratch of longest * P + Y
):
    cdef Py_ssize_t k, at, T
    cdef Chain C
    cdef Search S
    cdef Fields own = counters.fields
    cdef uint64* mask = <uint64*>malloc(own.words * sizeof(uint64))
    own.active = <unsigned char*>malloc(own.G)
    memset(&S, 0, sizeof(Search))
    S.fields = &own
    S.failed = mask == NULL or own.active == NULL
    with nogil:
        for k in range(0 if S.failed else wanted.shape[0]):
            at = offsets[wanted[k]]
            T = offsets[wanted[k] + 1] - at
            C = potentials.of(at, T)
            best_beginnings(&C, &scores[at, 0], T, &work[0])
            found[k] = find_obeying(
                &S, &counters.fields, &C, &scores[at, 0], T, &work[0], number, limit, &paths[0, at], paths.shape[1],
                &totals[k, 0], &status[k], mask,
            )
            if S.failed:
                break
        free(mask)
        free(own.active)
        free(S.nodes)
        free(S.masks)
        free(S.heap)
        free(S.table)
    if S.failed:
        raise MemoryError
