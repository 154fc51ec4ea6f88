"""Passes over all chunks without the interpreter's lock: scores, forward-backward, sums that the gradient is made of.

For first-order chains with shared edges, all labels observed, and maps that have products in C (`maps.native`). Chunks
go in tasks, runs of them that have sums of their own, and those are added up in the order of tasks. Which chunks a task
has depends on the data alone, so sums are the same for any number of threads.
"""

from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

import numpy as np

from ..chains._chain cimport chunk_errors, work_size
from ..maps.native cimport Products, kcrf_padded, map_products
from ..system.team cimport Team
from ..system.types cimport int64, real

cdef enum:
    MOST_PRODUCTS = 64

MOST_MAPS = MOST_PRODUCTS  # products of maps that a pass can have

cdef double HALF = 0.5 ** 0.5   # of two labels one column has the scores, see `chains.problem`

cdef struct pass_state:
    map_products maps[MOST_PRODUCTS]
    double* sums_of[MOST_PRODUCTS]  # [tasks, M, P] of maps that have sums
    Py_ssize_t map_count, Y, C, P, size, small_size
    const int64* tasks          # [tasks + 1] chunks
    const int64* chunks         # [chunks + 1] sequences
    const int64* offsets        # [S + 1] positions
    const int* labels
    const double* weights
    const double* edges
    const double* start
    const double* end
    const double* none          # [Y] zeros: potentials of first and last labels where sequences are cut
    const unsigned char* cut    # [chunks, 2]
    char* errors                # [N, C]
    double* small               # [tasks, small_size] of pairs [Y, Y], of first and last labels [2, Y], of logarithms
    int64* bad                  # [tasks] the first sequence without a finite log Z, -1 for none
    char** scratch              # [members] of scratch_size bytes, NULL for those that had nothing to do yet
    Py_ssize_t scratch_size, scores_size, padded_size, sums_size  # bytes of its parts
    bint no_memory


cdef size_t lines(size_t bytes) noexcept nogil:
    """Round up to whole cache lines."""
    return (bytes + 63) & ~<size_t>63


cdef class Scratch:
    """Memory for each member of a team, from when it first works: a long sequence is work for one alone."""

    cdef char** parts
    cdef Py_ssize_t members, size

    def __cinit__(self, Py_ssize_t members, Py_ssize_t size):
        self.members, self.size = members, size
        self.parts = <char**>calloc(members, sizeof(char*))
        if self.parts == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.parts != NULL:
            for i in range(self.members):
                free(self.parts[i])
        free(self.parts)


cdef class Passes:
    """Passes over the chunks of one problem."""

    cdef const int64[::1] tasks, chunks, offsets
    cdef const int[::1] labels
    cdef const double[::1] weights
    cdef const unsigned char[:, ::1] cut
    cdef Py_ssize_t Y, most_rows, most_sequences, longest
    cdef dict _room

    def __init__(
        self,
        const int64[::1] tasks not None,       # [tasks + 1] chunks
        const int64[::1] chunks not None,      # [chunks + 1] sequences
        const int64[::1] offsets not None,     # [S + 1]
        const int[::1] labels not None,        # [N]
        const double[::1] weights not None,    # [S]
        const unsigned char[:, ::1] cut not None,  # [chunks, 2] 1 where sequences of a chunk are cut
        Py_ssize_t label_count,
    ):
        self.tasks, self.chunks, self.offsets, self.labels, self.weights = tasks, chunks, offsets, labels, weights
        if cut.shape[0] != chunks.shape[0] - 1 or cut.shape[1] != 2:
            raise ValueError("cuts do not fit the chunks")
        self.cut, self.Y, self._room = cut, label_count, {}
        counts, lengths = np.asarray(chunks), np.asarray(offsets)
        self.most_sequences = int(np.diff(counts).max(initial=0))
        self.most_rows = int(np.diff(lengths[counts]).max(initial=0))
        self.longest = int(np.diff(lengths).max(initial=0))

    def _rooms(self, name, shape, dtype):
        """Return an array that every pass fills again: fresh memory would be handed out page by page each time."""
        found = self._room.pop(name, None)  # no other pass may have it meanwhile
        return found if found is not None and found.shape == shape else np.empty(shape, dtype)

    def evaluate(
        self,
        Team team not None,
        list maps not None,                    # Products
        const double[:, ::1] edges not None,   # [Y, Y]
        const double[::1] start not None,      # [Y]
        const double[::1] end not None,        # [Y]
        real[:, ::1] errors,                   # [N, C] out
    ):
        """Compute errors of all positions; return sums of each task, and sums of each map.

        Those of tasks [tasks, Y * Y + 2 Y + 1] are of pairs, of first and of last labels, and the log-likelihood. Those
        of maps are parts [tasks, M, P], to be added up; they are there until the next pass. The last result is the
        number of the first sequence that has no finite log Z, -1 where all have one.
        """
        cdef pass_state state
        cdef Py_ssize_t i, members = team.threads, count = self.tasks.shape[0] - 1, Y = self.Y, C = errors.shape[1]
        cdef double[:, :, ::1] part
        cdef bint single = real is float
        if not maps or len(maps) > MOST_PRODUCTS or errors.shape[0] != self.labels.shape[0]:
            raise ValueError("a pass does not fit its problem")
        if not edges.shape[0] == edges.shape[1] == start.shape[0] == end.shape[0] == Y:
            raise ValueError("a pass does not fit its problem")
        state.Y, state.C, state.P, state.size = Y, C, kcrf_padded(C, single), sizeof(real)
        state.map_count, state.small_size = len(maps), Y * Y + 2 * Y + 1
        sums = []
        for i in range(state.map_count):
            state.maps[i] = (<Products?>maps[i]).parts
            if state.maps[i].C != C or state.maps[i].single != single:
                raise ValueError("products do not fit the errors")
            if state.maps[i].adjoint == NULL or state.maps[i].M == 0:
                sums.append(None)
                continue
            sums.append(self._rooms(("sums", i), (count, state.maps[i].M, state.P), np.float64))
            part = sums[i]
            state.sums_of[i] = &part[0, 0, 0]
        small_sums, bad_numbers = np.empty((count, state.small_size)), np.empty(count, dtype=np.int64)
        cdef double[:, ::1] small = small_sums
        cdef double[::1] none = np.zeros(Y)
        cdef int64[::1] bad = bad_numbers
        state.scores_size = lines(self.most_rows * Y * state.size)
        state.padded_size = lines(self.most_rows * state.P * state.size)
        state.sums_size = lines(state.small_size * sizeof(double))
        state.scratch_size = (
            2 * state.scores_size + state.padded_size + state.sums_size
            + lines((2 * self.most_sequences + work_size(self.longest, Y)) * sizeof(double))
        )
        cdef Scratch scratch = self._room.pop("scratch", None)  # no other pass may have it meanwhile
        if scratch is None or scratch.members != members or scratch.size != state.scratch_size:
            scratch = Scratch(members, state.scratch_size)
        state.scratch, state.no_memory = scratch.parts, False
        if count:
            state.tasks, state.chunks, state.offsets = &self.tasks[0], &self.chunks[0], &self.offsets[0]
            state.labels, state.weights = &self.labels[0], &self.weights[0]
            state.edges, state.start, state.end, state.none = &edges[0, 0], &start[0], &end[0], &none[0]
            state.cut = &self.cut[0, 0]
            state.errors, state.small, state.bad = <char*>&errors[0, 0], &small[0, 0], &bad[0]
            with nogil:
                team.share(task, &state, count)
        self._room["scratch"] = scratch
        if state.no_memory:
            raise MemoryError
        for i in range(state.map_count):
            if sums[i] is not None:
                self._room["sums", i] = sums[i]
        found = bad_numbers[bad_numbers >= 0]
        return small_sums, sums, int(found[0]) if len(found) else -1


cdef void task(void* given, Py_ssize_t item, Py_ssize_t member) noexcept nogil:
    """Work on the chunks of a task, one after another."""
    cdef pass_state* state = <pass_state*>given
    cdef Py_ssize_t i, chunk
    cdef char* room
    for i in range(state.map_count):
        if state.maps[i].adjoint != NULL and state.maps[i].M:
            memset(
                state.sums_of[i] + item * state.maps[i].M * state.P, 0, state.maps[i].M * state.P * sizeof(double)
            )
    memset(state.small + item * state.small_size, 0, state.small_size * sizeof(double))
    state.bad[item] = -1
    if state.scratch[member] == NULL:
        state.scratch[member] = <char*>malloc(state.scratch_size + 64)
        if state.scratch[member] == NULL:
            state.no_memory = True
            return
    room = <char*>lines(<size_t>state.scratch[member])
    for chunk in range(state.tasks[item], state.tasks[item + 1]):
        if state.maps[0].single:
            of_chunk[float](state, item, chunk, room, 0)
        else:
            of_chunk[double](state, item, chunk, room, 0)


cdef void of_chunk(pass_state* state, Py_ssize_t item, Py_ssize_t chunk, char* room, real zero) noexcept nogil:
    cdef Py_ssize_t first = state.chunks[chunk], S = state.chunks[chunk + 1] - first
    cdef Py_ssize_t begin = state.offsets[first], n = state.offsets[first + S] - begin
    cdef Py_ssize_t i, t, bad, Y = state.Y, C = state.C
    cdef real* scores = <real*>room
    cdef real* node = <real*>(room + state.scores_size)
    cdef char* padded = room + 2 * state.scores_size
    cdef double* own = <double*>(padded + state.padded_size)  # sums of this chunk
    cdef double* work = <double*>(padded + state.padded_size + state.sums_size)
    cdef real* errors = <real*>state.errors + begin * C
    cdef double* sums = state.small + item * state.small_size
    cdef real half = <real>HALF
    cdef const double* start = state.none if state.cut[2 * chunk] else state.start
    cdef const double* end = state.none if state.cut[2 * chunk + 1] else state.end
    if n == 0:
        return
    for i in range(state.map_count):
        state.maps[i].scores(&state.maps[i], begin, begin + n, scores, i == 0, padded)
    if C != Y:  # one column for two labels
        for t in range(n - 1, -1, -1):
            scores[2 * t] = <real>(scores[t] * HALF)
            scores[2 * t + 1] = -scores[2 * t]
    else:
        node = errors
    bad = chunk_errors(
        scores, state.edges, start, end, state.offsets + first, S, Y, state.labels + begin, state.weights + first, node,
        own, work,
    )
    if bad >= 0 and state.bad[item] < 0:
        state.bad[item] = first + bad
    if state.cut[2 * chunk]:
        memset(own + Y * Y, 0, Y * sizeof(double))
    if state.cut[2 * chunk + 1]:
        memset(own + Y * Y + Y, 0, Y * sizeof(double))
    for i in range(state.small_size):
        sums[i] += own[i]
    if C != Y:
        for t in range(n):
            errors[t] = (node[2 * t] - node[2 * t + 1]) * half
    for i in range(state.map_count):
        if state.maps[i].adjoint != NULL and state.maps[i].M:
            for t in range(n):
                memcpy(padded + t * state.P * sizeof(real), errors + t * C, C * sizeof(real))
                memset(padded + (t * state.P + C) * sizeof(real), 0, (state.P - C) * sizeof(real))
            break
    for i in range(state.map_count):
        if state.maps[i].adjoint != NULL and state.maps[i].M:
            state.maps[i].adjoint(
                &state.maps[i], begin, begin + n, padded, state.sums_of[i] + item * state.maps[i].M * state.P
            )
