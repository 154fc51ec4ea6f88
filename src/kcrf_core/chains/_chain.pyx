"""Forward-backward, Viterbi and path scores on chains, for chunks of whole sequences.

For one sequence of length T with node scores F and edge potentials E_t (shared: E_t = E for all t),

    log p(y) = s[y_1] + sum_t F[t, y_t] + sum_{t>=2} E_t[y_{t-1}, y_t] + e[y_T] - log Z        (25)-(27)

The recursions run on exponentials that are scaled at every position, which costs no logarithm per
label. Scaling is exact until a scale gets too small, or all of them together; then what underflowed might
have mattered (`_recursions.h` says when) and the sequence is done again in log space. Minus infinity is a
legal potential (a forbidden transition).

Entries take preallocated outputs, release the GIL, and return STATUS_OK or the number of the first
sequence that has no finite log Z.
"""

from libc.math cimport exp, log, INFINITY, NAN, isfinite
from libc.string cimport memset

from ._max_plus cimport kcrf_max_plus
from ._scaling cimport (
    add_rows, exponentials, exponentiate, int64, kcrf_depth, kcrf_lossless, kcrf_outweighs, kcrf_rows, kcrf_sequence,
    kcrf_shared, kcrf_stride, lower, real, trusted,
)

STATUS_OK = -1


def forward_backward(
    const real[:, ::1] scores,         # [n, Y] F
    const double[:, :, ::1] edges,     # [1, Y, Y] shared, or [n, Y, Y]: row t leads from t-1 to t
    const double[::1] start,           # [Y] s
    const double[::1] end,             # [Y] e
    const int64[::1] offsets,          # [S+1], sequence k is rows offsets[k]:offsets[k+1]
    const double[::1] weights,         # [S] multiply what is added to shared edge marginals
    real[:, ::1] node,                 # [n, Y] out: p(y_t | x)
    double[:, :, ::1] edge,            # [1, Y, Y] += weighted sums of p(y_{t-1}, y_t | x), or [n, Y, Y] out
    double[::1] log_z,                 # [S] out
    double[::1] work,                  # scratch of work_size(longest, Y)
):
    cdef Py_ssize_t bad, S = offsets.shape[0] - 1, Y = scores.shape[1]
    cdef bint shared = edges.shape[0] == 1 and edge.shape[0] == 1
    if S <= 0 or scores.shape[0] == 0:
        log_z[:] = 0.0
        return STATUS_OK
    with nogil:
        bad = chunk_marginals(
            &scores[0, 0], &edges[0, 0, 0], shared, &start[0], &end[0], &offsets[0], S, Y, &weights[0], &node[0, 0],
            &edge[0, 0, 0], &log_z[0], &work[0],
        )
    return bad


def errors(
    const real[:, ::1] scores,         # [n, Y] F
    const double[:, :, ::1] edges,     # [1, Y, Y] shared
    const double[::1] start,           # [Y] s
    const double[::1] end,             # [Y] e
    const int64[::1] offsets,          # [S+1]
    const int[::1] labels,             # [n] all of them observed
    const double[::1] weights,         # [S]
    real[:, ::1] node,                 # [n, Y] out: weight times p(y_t | x) less 1 for the label that is observed
    double[::1] sums,                  # [Y^2 + 2 Y + 1] out: see `chunk_errors`
    double[::1] work,                  # scratch of work_size(longest, Y) + 2 S
):
    """What a chunk adds to the gradient, in one go: forward-backward, less what is observed."""
    cdef Py_ssize_t bad, S = offsets.shape[0] - 1, Y = scores.shape[1]
    if S <= 0 or scores.shape[0] == 0:
        sums[:] = 0.0
        return STATUS_OK
    with nogil:
        bad = chunk_errors(
            &scores[0, 0], &edges[0, 0, 0], &start[0], &end[0], &offsets[0], S, Y, &labels[0], &weights[0],
            &node[0, 0], &sums[0], &work[0],
        )
    return bad


cdef Py_ssize_t chunk_errors(
    const real* scores, const double* edges, const double* start, const double* end, const int64* offsets,
    Py_ssize_t S, Py_ssize_t Y, const int* labels, const double* weights, real* node, double* sums, double* work,
) noexcept nogil:
    """See `errors`. Scores, labels and errors begin with the first sequence's, wherever offsets say that is.

    Sums are those of p(y_{t-1}, y_t | x), weighted, nothing subtracted, [Y, Y], of `node` over first and over last
    positions, [2, Y], and of the weighted log-likelihood.
    """
    cdef Py_ssize_t k, t, j, first, last
    cdef double* logs = work
    cdef double* ends = sums + Y * Y
    cdef Py_ssize_t bad
    cdef real weight
    memset(sums, 0, (Y * Y + 2 * Y + 1) * sizeof(double))
    path_scores_of(scores, edges, True, start, end, offsets, S, Y, labels, logs)
    bad = chunk_marginals(
        scores, edges, True, start, end, offsets, S, Y, weights, node, sums, logs + S, work + 2 * S,
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


cdef Py_ssize_t errors_of_floats(
    const float* scores, const double* edges, const double* start, const double* end, const int64* offsets,
    Py_ssize_t S, Py_ssize_t Y, const int* labels, const double* weights, float* node, double* sums, double* work,
) noexcept nogil:
    return chunk_errors(scores, edges, start, end, offsets, S, Y, labels, weights, node, sums, work)


cdef Py_ssize_t errors_of_doubles(
    const double* scores, const double* edges, const double* start, const double* end, const int64* offsets,
    Py_ssize_t S, Py_ssize_t Y, const int* labels, const double* weights, double* node, double* sums, double* work,
) noexcept nogil:
    return chunk_errors(scores, edges, start, end, offsets, S, Y, labels, weights, node, sums, work)


cdef Py_ssize_t chunk_marginals(
    const real* scores, const double* edges, bint shared, const double* start, const double* end,
    const int64* offsets, Py_ssize_t S, Py_ssize_t Y, const double* weights, real* node, double* edge, double* log_z,
    double* work,
) noexcept nogil:
    """See `forward_backward`."""
    cdef Py_ssize_t k, first, T
    cdef Py_ssize_t bad = -1
    cdef bint done
    cdef double* scratch = aligned(work)
    cdef double* rows = scratch
    cdef double* edge_out = edge
    cdef const double* edges_in = edges
    cdef kcrf_shared common
    if shared:
        rows = prepare(edges, start, end, Y, scratch, &common)
    for k in range(S):
        first = offsets[k] - offsets[0]
        T = offsets[k + 1] - offsets[k]
        if T == 0:
            log_z[k] = 0.0
            continue
        if shared:
            done = kcrf_sequence(
                scores + first * Y, real is float, T, Y, weights[k], &common, rows, node + first * Y, log_z + k
            )
        else:
            edges_in = edges + first * Y * Y
            edge_out = edge + first * Y * Y
            done = scaled_sequence(
                scores + first * Y, edges_in, start, end, T, Y, rows, node + first * Y, edge_out, log_z + k,
            )
        if not done:
            log_sequence(
                scores + first * Y, edges_in, shared, start, end, T, Y, weights[k], rows, node + first * Y, edge_out,
                log_z + k,
            )
            if not isfinite(log_z[k]) and bad < 0:
                bad = k
    if shared:
        add_edge_sums(&common, Y, edge)
    return bad


def work_size(Py_ssize_t longest, Py_ssize_t Y):
    """Doubles of scratch that forward_backward needs for sequences of up to `longest` positions."""
    return room_for(longest, Y)


cdef Py_ssize_t room_for(Py_ssize_t longest, Py_ssize_t Y) noexcept nogil:
    cdef Py_ssize_t P = kcrf_stride(Y)
    cdef Py_ssize_t shared = (3 * P + 2) * P + kcrf_rows(longest, Y)
    cdef Py_ssize_t per_position = 2 * Y * Y + (2 * longest + 4) * Y
    return 8 + max(shared, per_position, 2 * longest * Y)


cdef inline double* aligned(double* work) noexcept nogil:
    """The first address from here on at which a cache line begins."""
    return <double*>((<size_t>work + 63) & ~<size_t>63)


cdef double* prepare(
    const double* edges, const double* start, const double* end, Py_ssize_t Y, double* scratch, kcrf_shared* common
) noexcept nogil:
    """What all sequences share, at the beginning of the scratch; returns where the rest of it begins."""
    cdef Py_ssize_t i, j, P = kcrf_stride(Y)
    cdef double* forward = scratch                # [P, P] exp(E - shift)
    cdef double* backward = forward + P * P       # [P, P] its transpose
    cdef double* sums = backward + P * P          # [P, P]
    cdef double* first = sums + P * P             # [P]
    cdef double* last = first + P                 # [P]
    memset(scratch, 0, (3 * P + 2) * P * sizeof(double))
    # Laid out closely where the sums will stand, then spread.
    common.edge_shift = exponentiate(edges, Y, sums, backward)
    memset(backward, 0, P * P * sizeof(double))
    for i in range(Y):
        for j in range(Y):
            forward[i * P + j] = sums[i * Y + j]
            backward[j * P + i] = sums[i * Y + j]
    memset(sums, 0, P * P * sizeof(double))
    common.start_shift = exponentials(start, Y, first)
    common.end_shift = exponentials(end, Y, last)
    common.edge_depth = kcrf_depth(edges, False, Y * Y)
    common.start_depth = kcrf_depth(start, False, Y)
    common.log_labels = log(<double>Y)
    common.forbidden = False
    for i in range(Y * Y):
        common.forbidden |= edges[i] == -INFINITY
    common.stride, common.forward, common.backward, common.sums = P, forward, backward, sums
    common.start, common.end = first, last
    return last + P


cdef void add_edge_sums(const kcrf_shared* common, Py_ssize_t Y, double* edge) noexcept nogil:
    """Turn sums of messages into those of marginals: times exp(E)."""
    cdef Py_ssize_t i, j, P = common.stride
    for i in range(Y):
        for j in range(Y):
            edge[i * Y + j] += common.sums[i * P + j] * common.forward[i * P + j]


cdef bint scaled_sequence(
    const real* scores, const double* edges, const double* start, const double* end,
    Py_ssize_t T, Py_ssize_t Y, double* work, real* node, double* edge, double* log_z,
) noexcept nogil:
    """One sequence with edges for every position; False where scaling cannot be trusted."""
    cdef Py_ssize_t t, i, j
    cdef double* forward_edges = work                   # [Y, Y] exp(E - its maximum)
    cdef double* backward_edges = work + Y * Y          # [Y, Y] its transpose
    cdef double* alpha = backward_edges + Y * Y         # [T, Y] forward, each row sums to 1
    cdef double* psi = alpha + T * Y                    # [T, Y] exp(F - its maximum)
    cdef double* beta = psi + T * Y                     # [Y] backward at t, its maximum 1
    cdef double* g = beta + Y                           # [Y] psi_t * beta_t
    cdef double* back = g + Y                           # [Y] backward at t-1
    cdef double top, total, scale, product, a, z, scales = 0.0

    # Forward. The logarithm of the product of scales is taken only when the product gets small or large.
    z = 0.0
    product = 1.0
    for t in range(T):
        top = exponentials(&scores[t * Y], Y, &psi[t * Y])
        if not isfinite(top):
            return False
        z += top
        if t == 0:
            top = exponentials(start, Y, alpha)
            if not isfinite(top):
                return False
            z += top
            for j in range(Y):
                alpha[j] *= psi[j]
        else:
            z += exponentiate(edges + t * Y * Y, Y, forward_edges, backward_edges)
            memset(&alpha[t * Y], 0, Y * sizeof(double))
            add_rows(&alpha[t * Y], forward_edges, &alpha[(t - 1) * Y], Y, Y)
            for j in range(Y):
                alpha[t * Y + j] *= psi[t * Y + j]
        total = 0.0
        for j in range(Y):
            total += alpha[t * Y + j]
        if not trusted(total):
            return False
        scale = 1.0 / total
        for j in range(Y):
            alpha[t * Y + j] *= scale
        product *= total
        if product < 1e-150 or product > 1e150:
            z += log(product)
            scales += log(product)
            product = 1.0
    z += log(product)
    scales += log(product)

    # Backward, marginals on the way.
    top = exponentials(end, Y, back)
    if not isfinite(top):
        return False
    total = 0.0
    for j in range(Y):
        total += alpha[(T - 1) * Y + j] * back[j]
    if not trusted(total):
        return False
    log_z[0] = z + top + log(total)
    if not kcrf_outweighs(scales + log(total), T, log(<double>Y)) and not kcrf_lossless(
        scores, real is float, T, Y, alpha, Y, Y, kcrf_depth(start, False, Y), edges, Y * Y, True, 0.0, 0.0
    ):
        return False
    t = T - 1
    while True:
        # back holds the unscaled backward vector at t, total = <alpha_t, back>.
        scale = 1.0 / total
        for j in range(Y):
            node[t * Y + j] = <real>(alpha[t * Y + j] * back[j] * scale)
        if t == 0:
            break
        top = 0.0
        for j in range(Y):
            if back[j] > top:
                top = back[j]
        for j in range(Y):
            beta[j] = back[j] / top
            g[j] = psi[t * Y + j] * beta[j]
        exponentiate(edges + t * Y * Y, Y, forward_edges, backward_edges)
        memset(back, 0, Y * sizeof(double))
        add_rows(back, backward_edges, g, Y, Y)
        total = 0.0
        for i in range(Y):
            total += alpha[(t - 1) * Y + i] * back[i]
        if not trusted(total):
            return False
        scale = 1.0 / total
        for i in range(Y):
            a = alpha[(t - 1) * Y + i] * scale
            for j in range(Y):
                edge[(t * Y + i) * Y + j] = a * g[j] * forward_edges[i * Y + j]
        t -= 1
    memset(edge, 0, Y * Y * sizeof(double))
    return True


cdef void log_sequence(
    const real* scores, const double* edges, bint shared, const double* start, const double* end,
    Py_ssize_t T, Py_ssize_t Y, double weight, double* rows, real* node, double* edge, double* log_z,
) noexcept nogil:
    """One sequence in log space: slow, and right for any potentials that leave a path."""
    cdef Py_ssize_t t, i, j, at
    cdef double* forward = rows                   # [T, Y] less the largest of each row
    cdef double* backward = rows + T * Y          # [T, Y] likewise
    cdef double top, total, share, z
    cdef const double* E
    for j in range(Y):
        forward[j] = start[j] + scores[j]
        backward[(T - 1) * Y + j] = end[j]
    z = lower(forward, Y)
    for t in range(1, T):
        E = edges if shared else edges + t * Y * Y
        for j in range(Y):
            top = -INFINITY
            for i in range(Y):
                if forward[(t - 1) * Y + i] + E[i * Y + j] > top:
                    top = forward[(t - 1) * Y + i] + E[i * Y + j]
            total = 0.0
            if top > -INFINITY:
                for i in range(Y):
                    total += exp(forward[(t - 1) * Y + i] + E[i * Y + j] - top)
            forward[t * Y + j] = top + log(total) + scores[t * Y + j] if total > 0.0 else -INFINITY
        z += lower(forward + t * Y, Y)
    top = -INFINITY
    for j in range(Y):
        if forward[(T - 1) * Y + j] + end[j] > top:
            top = forward[(T - 1) * Y + j] + end[j]
    total = 0.0
    for j in range(Y):
        # NaN among the scores hides from every comparison above but not from this sum.
        total += exp(forward[(T - 1) * Y + j] + end[j] - top)
    log_z[0] = z + (top + log(total))
    lower(backward + (T - 1) * Y, Y)
    for t in range(T - 2, -1, -1):
        E = edges if shared else edges + (t + 1) * Y * Y
        at = (t + 1) * Y
        for i in range(Y):
            top = -INFINITY
            for j in range(Y):
                if E[i * Y + j] + scores[at + j] + backward[at + j] > top:
                    top = E[i * Y + j] + scores[at + j] + backward[at + j]
            total = 0.0
            if top > -INFINITY:
                for j in range(Y):
                    total += exp(E[i * Y + j] + scores[at + j] + backward[at + j] - top)
            backward[t * Y + i] = top + log(total) if total > 0.0 else -INFINITY
        lower(backward + t * Y, Y)
    # Marginals are shares of what is possible at a position: large potentials leave log Z with an error of its own.
    for t in range(T):
        top = -INFINITY
        for j in range(Y):
            if forward[t * Y + j] + backward[t * Y + j] > top:
                top = forward[t * Y + j] + backward[t * Y + j]
        total = 0.0
        for j in range(Y):
            total += exp(forward[t * Y + j] + backward[t * Y + j] - top)
        for j in range(Y):
            node[t * Y + j] = <real>(exp(forward[t * Y + j] + backward[t * Y + j] - top) / total)
    if not shared:
        memset(edge, 0, Y * Y * sizeof(double))
    for t in range(1, T):
        E = edges if shared else edges + t * Y * Y
        at = t * Y
        top = -INFINITY
        for i in range(Y):
            for j in range(Y):
                if forward[at - Y + i] + E[i * Y + j] + scores[at + j] + backward[at + j] > top:
                    top = forward[at - Y + i] + E[i * Y + j] + scores[at + j] + backward[at + j]
        total = 0.0
        for i in range(Y):
            for j in range(Y):
                total += exp(forward[at - Y + i] + E[i * Y + j] + scores[at + j] + backward[at + j] - top)
        for i in range(Y):
            for j in range(Y):
                share = exp(forward[at - Y + i] + E[i * Y + j] + scores[at + j] + backward[at + j] - top) / total
                if shared:
                    edge[i * Y + j] += weight * share
                else:
                    edge[(at + i) * Y + j] = share


def viterbi(
    const real[:, ::1] scores,         # [n, Y]
    const double[:, :, ::1] edges,     # [1, Y, Y] or [n, Y, Y]
    const double[::1] start,           # [Y]
    const double[::1] end,             # [Y]
    const int64[::1] offsets,          # [S+1]
    int[::1] path,                     # [n] out: the best labels; of equals, the smaller label
    double[::1] best,                  # [S] out: their unnormalised log score
    double[::1] work,                  # scratch of longest * Y
):
    cdef Py_ssize_t k, first, T, Y = scores.shape[1]
    cdef bint shared = edges.shape[0] == 1
    cdef Py_ssize_t bad = -1
    with nogil:
        for k in range(offsets.shape[0] - 1):
            first = offsets[k]
            T = offsets[k + 1] - first
            best[k] = 0.0
            if T == 0:
                continue
            best[k] = best_path(
                &scores[first, 0], &edges[0 if shared else first, 0, 0], shared, &start[0], &end[0], T, Y, &path[first],
                &work[0],
            )
            if not isfinite(best[k]) and bad < 0:
                bad = k
    return bad


cdef double best_path(
    const real* scores, const double* edges, bint shared, const double* start, const double* end, Py_ssize_t T,
    Py_ssize_t Y, int* path, double* work,
) noexcept nogil:
    """See `viterbi`, for one sequence of T > 0 positions; the best score, NaN where any score is none."""
    cdef Py_ssize_t t, i, j, label = 0, previous
    cdef double value, best, top = -INFINITY
    cdef double* now = work  # [Y] the best score of a path so far that ends in each label
    cdef const double* E = edges
    cdef bint strange = False  # NaN hides from comparisons
    for j in range(Y):
        now[j] = start[j] + scores[j]
        strange |= now[j] != now[j]
    for t in range(1, T):
        if not shared:
            E = edges + t * Y * Y
        kcrf_max_plus(now, E, Y, Y, now + Y)
        now += Y
        for j in range(Y):
            now[j] += scores[t * Y + j]
            strange |= now[j] != now[j]
    for j in range(Y):
        if now[j] + end[j] > top:
            top = now[j] + end[j]
            label = j
    best = NAN if strange else top
    path[T - 1] = <int>label
    for t in range(T - 1, 0, -1):
        if not shared:
            E = edges + t * Y * Y
        now -= Y
        previous = 0
        top = now[0] + E[label]
        for i in range(1, Y):
            value = now[i] + E[i * Y + label]
            if value > top:
                top = value
                previous = i
        label = previous
        path[t - 1] = <int>label
    return best


cdef double best_path_of_doubles(
    const double* scores, const double* edges, const double* start, const double* end, Py_ssize_t T, Py_ssize_t Y,
    int* path, double* work,
) noexcept nogil:
    return best_path(scores, edges, True, start, end, T, Y, path, work)


def path_scores(
    const real[:, ::1] scores,         # [n, Y]
    const double[:, :, ::1] edges,     # [1, Y, Y] or [n, Y, Y]
    const double[::1] start,           # [Y]
    const double[::1] end,             # [Y]
    const int64[::1] offsets,          # [S+1]
    const int[::1] labels,             # [n]
    double[::1] out,                   # [S] out: unnormalised log score of the given labels
):
    cdef Py_ssize_t S = offsets.shape[0] - 1
    if S <= 0 or scores.shape[0] == 0:
        out[:] = 0.0
        return
    with nogil:
        path_scores_of(
            &scores[0, 0], &edges[0, 0, 0], edges.shape[0] == 1, &start[0], &end[0], &offsets[0], S, scores.shape[1],
            &labels[0], &out[0],
        )


cdef void path_scores_of(
    const real* scores, const double* edges, bint shared, const double* start, const double* end,
    const int64* offsets, Py_ssize_t S, Py_ssize_t Y, const int* labels, double* out,
) noexcept nogil:
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
            total += edges[((0 if shared else t) * Y + labels[t - 1]) * Y + labels[t]]
        out[k] = total
