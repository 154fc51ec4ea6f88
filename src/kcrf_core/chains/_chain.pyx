"""Forward-backward on chains of first order whose positions share their edge potentials, for chunks of whole sequences.

    log p(y) = s[y_1] + sum_t F[t, y_t] + sum_{t>=2} E[y_{t-1}, y_t] + e[y_T] - log Z        (25)-(27)

These are the chains of almost all models, and passes over them run without the interpreter's lock. The recursions of
`_recursions.h` are for vectors of the machine's width; where scaling cannot be trusted a sequence is done again in log
space (`_messages.pyx`).

Entries take preallocated outputs, release the GIL, and return STATUS_OK or the number of the first
sequence that has no finite log Z.
"""

from libc.math cimport log, INFINITY
from libc.string cimport memset

from ..system.types cimport int64, real
from ._messages cimport Found, log_messages, log_room
from ._states cimport (
    Chain, chain_of_labels, exponentials_of_table, kcrf_depth, kcrf_exponentials, kcrf_rows, kcrf_sequence,
    kcrf_shared, kcrf_stride,
)

STATUS_OK = -1


def forward_backward(
    const real[:, ::1] scores,         # [n, Y] F
    const double[:, ::1] edges,        # [Y, Y] E
    const double[::1] start,           # [Y] s
    const double[::1] end,             # [Y] e
    const int64[::1] offsets,          # [S+1], sequence k is rows offsets[k]:offsets[k+1]
    const double[::1] weights,         # [S] multiply what is added to edge marginals
    real[:, ::1] node,                 # [n, Y] out: p(y_t | x)
    double[:, ::1] edge,               # [Y, Y] += weighted sums of p(y_{t-1}, y_t | x)
    double[::1] log_z,                 # [S] out
    double[::1] work,                  # scratch of work_size(longest, Y)
):
    cdef Py_ssize_t bad, S = offsets.shape[0] - 1, Y = scores.shape[1]
    if S <= 0 or scores.shape[0] == 0:
        log_z[:] = 0.0
        return STATUS_OK
    with nogil:
        bad = chunk_marginals(
            &scores[0, 0], &edges[0, 0], &start[0], &end[0], &offsets[0], S, Y, &weights[0], &node[0, 0], &edge[0, 0],
            &log_z[0], &work[0],
        )
    return bad


cdef Py_ssize_t chunk_errors(
    const real* scores, const double* edges, const double* start, const double* end, const int64* offsets,
    Py_ssize_t S, Py_ssize_t Y, const int* labels, const double* weights, real* node, double* sums, double* work,
) noexcept nogil:
    """Put what a chunk adds to the gradient: forward-backward, less what is observed.

    Scores, labels and errors are those from the first sequence on; `work` has work_size(longest, Y) + 2 S values.
    `node` [n, Y] gets the weight times p(y_t | x), less 1 for the label that is observed. Sums are those of
    p(y_{t-1}, y_t | x), weighted, nothing subtracted, [Y, Y], of `node` over first and over last positions, [2, Y], and
    of the weighted log-likelihood.
    """
    cdef Py_ssize_t k, t, j, first, last
    cdef double* logs = work
    cdef double* ends = sums + Y * Y
    cdef Py_ssize_t bad
    cdef real weight
    memset(sums, 0, (Y * Y + 2 * Y + 1) * sizeof(double))
    path_scores_of(scores, edges, start, end, offsets, S, Y, labels, logs)
    bad = chunk_marginals(
        scores, edges, start, end, offsets, S, Y, weights, node, sums, logs + S, work + 2 * S,
    )
    for k in range(S):
        first = offsets[k] - offsets[0]
        last = offsets[k + 1] - offsets[0] - 1
        if last < first:
            continue
        weight = <real>weights[k]
        for t in range(first, last + 1):
            node[t * Y + labels[t]] -= 1
            if weight != 1:
                for j in range(Y):
                    node[t * Y + j] *= weight
        for j in range(Y):
            ends[j] += node[first * Y + j]
            ends[Y + j] += node[last * Y + j]
        ends[2 * Y] += weights[k] * (logs[k] - logs[S + k])
    return bad


cdef Py_ssize_t chunk_marginals(
    const real* scores, const double* edges, const double* start, const double* end, const int64* offsets,
    Py_ssize_t S, Py_ssize_t Y, const double* weights, real* node, double* edge, double* log_z, double* work,
) noexcept nogil:
    """Do the work of `forward_backward`."""
    cdef Py_ssize_t k, first, T, i, j, P = kcrf_stride(Y), bad = -1
    cdef kcrf_shared common
    cdef double* aligned = <double*>((<size_t>work + 63) & ~<size_t>63)  # where a cache line begins
    cdef double* rows = prepare(edges, start, end, Y, aligned, &common)
    for k in range(S):
        first = offsets[k] - offsets[0]
        T = offsets[k + 1] - offsets[k]
        if T == 0:
            log_z[k] = 0.0
        elif not kcrf_sequence(
            scores + first * Y, real is float, T, Y, weights[k], &common, rows, node + first * Y, log_z + k
        ) and not in_log_space(
            scores + first * Y, edges, start, end, T, Y, weights[k], rows, node + first * Y, edge, log_z + k
        ) and bad < 0:
            bad = k
    for i in range(Y):  # sums of messages times exp(E) are those of marginals
        for j in range(Y):
            edge[i * Y + j] += common.sums[i * P + j] * common.forward[i * P + j]
    return bad


cdef bint in_log_space(
    const real* scores, const double* edges, const double* start, const double* end, Py_ssize_t T, Py_ssize_t Y,
    double weight, double* work, real* node, double* edge, double* log_z,
) noexcept nogil:
    """Go through one sequence in log space; False where no path is left."""
    cdef Chain C = chain_of_labels(start, end, Y)
    cdef Found out
    cdef Py_ssize_t i
    cdef double* wide = work + T * Y  # [T, Y] scores in double precision
    C.states.Q, C.table = Y * Y, edges
    out.node, out.pair, out.transition, out.log_z = work, NULL, edge, log_z
    for i in range(T * Y):
        wide[i] = scores[i]
    if not log_messages(&C, NULL, wide, NULL, T, weight, wide + T * Y, &out):
        return False
    for i in range(T * Y):
        node[i] = <real>out.node[i]
    return True


cpdef Py_ssize_t work_size(Py_ssize_t longest, Py_ssize_t Y) noexcept nogil:
    """Return the doubles of scratch that forward_backward needs for sequences of up to `longest` positions."""
    cdef Py_ssize_t P = kcrf_stride(Y)
    return 8 + (3 * P + 2) * P + max(kcrf_rows(longest, Y), 2 * longest * Y + log_room(longest, Y, Y * Y, False))


cdef double* prepare(
    const double* edges, const double* start, const double* end, Py_ssize_t Y, double* scratch, kcrf_shared* common
) noexcept nogil:
    """Put what all sequences share at the beginning of the scratch; return where the rest of it begins."""
    cdef Py_ssize_t i, j, P = kcrf_stride(Y)
    cdef double* forward = scratch                # [P, P] exp(E - shift)
    cdef double* backward = forward + P * P       # [P, P] its transpose
    cdef double* sums = backward + P * P          # [P, P]
    cdef double* first = sums + P * P             # [P]
    cdef double* last = first + P                 # [P]
    memset(scratch, 0, (3 * P + 2) * P * sizeof(double))
    # Laid out closely where the sums will stand, then spread.
    common.edge_shift = exponentials_of_table(edges, Y * Y, sums)
    for i in range(Y):
        for j in range(Y):
            forward[i * P + j] = sums[i * Y + j]
            backward[j * P + i] = sums[i * Y + j]
    memset(sums, 0, P * P * sizeof(double))
    common.start_shift = kcrf_exponentials(start, False, Y, first)
    common.end_shift = kcrf_exponentials(end, False, Y, last)
    common.edge_depth = kcrf_depth(edges, False, Y * Y)
    common.start_depth = kcrf_depth(start, False, Y)
    common.log_labels = log(<double>Y)
    common.forbidden = False
    for i in range(Y * Y):
        common.forbidden |= edges[i] == -INFINITY
    common.stride, common.forward, common.backward, common.sums = P, forward, backward, sums
    common.start, common.end = first, last
    return last + P


cdef void path_scores_of(
    const real* scores, const double* edges, const double* start, const double* end, const int64* offsets, Py_ssize_t S,
    Py_ssize_t Y, const int* labels, double* out,
) noexcept nogil:
    """Put the unnormalised log scores [S] of the given labels."""
    cdef Py_ssize_t k, t, first, last
    cdef double total
    for k in range(S):
        first = offsets[k] - offsets[0]
        last = offsets[k + 1] - offsets[0] - 1
        if last < first:
            out[k] = 0.0
            continue
        total = start[labels[first]] + end[labels[last]] + scores[first * Y + labels[first]]
        for t in range(first + 1, last + 1):
            total += scores[t * Y + labels[t]]
            total += edges[labels[t - 1] * Y + labels[t]]
        out[k] = total
