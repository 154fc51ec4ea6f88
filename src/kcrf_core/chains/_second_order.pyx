"""Forward-backward and Viterbi on second-order chains, for chunks of whole sequences.

    log p(y) = s[y_1] + sum_t F[t, y_t] + sum_{t>=2} E_t[y_{t-1}, y_t] + sum_{t>=3} U[y_{t-2}, y_{t-1}, y_t]
               + e[y_T] - log Z

The state at t is the pair (y_{t-1}, y_t), of which only those that are allowed exist (see `_pairs.pxd`). Messages are
scaled as in `_chain`. Sequences whose scales cannot be trusted are marked, for the caller to do again in log space.
"""

from libc.math cimport log, INFINITY, isfinite
from libc.string cimport memcpy, memset

from ._max_plus cimport kcrf_max_plus
from ._pairs cimport add_outer, back_through, dot, Layout, layout_of, scale_by, through, total_of
from ._scaling cimport add_scaled, exponentials, int64, kcrf_depth, kcrf_lossless, kcrf_outweighs, real, trusted


def forward_backward(
    const real[:, ::1] scores,         # [n, Y] F
    const double[:, ::1] pairs,        # [1, P] shared E, or [n, P]: row t leads from t-1 to t
    const double[::1] start,           # [Y] s
    const double[::1] end,             # [Y] e
    const double[::1] triples,         # [Q] exp(U - shift), block by block
    const double[::1] transposed,      # [Q] the same, each block transposed
    double shift,
    double depth,                      # how far the smallest finite U lies below the largest
    const int[::1] first,              # the layout, see there
    const int[::1] second,
    const int[::1] begin,
    const int[::1] into,
    const int[::1] into_begin,
    const int64[::1] block,
    const int64[::1] offsets,          # [S+1]
    const double[::1] weights,         # [S] multiply what is added to sums
    real[:, ::1] node,                 # [n, Y] out: p(y_t | x)
    double[:, ::1] pair,               # [1, P] += weighted sums of p(y_{t-1}, y_t | x), or [n, P] out
    double[::1] triple,                # [Q] out, zero before: weighted sums of p(y_{t-2}, y_{t-1}, y_t | x)
    double[::1] log_z,                 # [S] out
    unsigned char[::1] done,           # [S] out: 0 where scaling cannot be trusted
    double[::1] work,                  # scratch of work_size(longest, Y, P, Q)
):
    cdef Layout L = layout_of(first, second, begin, into, into_begin, block)
    cdef bint shared = pairs.shape[0] == 1 and pair.shape[0] == 1
    cdef Py_ssize_t k, q, at, T, Q = triples.shape[0]
    cdef double* sums = &work[0]               # [Q] of one sequence
    cdef double* edge = &work[0] + Q           # [P] exp(E - its maximum)
    cdef double* rest = edge + L.P
    cdef double edge_shift = 0.0, edge_depth = 0.0
    cdef const double* per_position = NULL
    with nogil:
        if shared:
            edge_shift = exponentials(&pairs[0, 0], L.P, edge)
            edge_depth = kcrf_depth(&pairs[0, 0], False, L.P)
        for k in range(offsets.shape[0] - 1):
            at = offsets[k]
            T = offsets[k + 1] - at
            log_z[k] = 0.0
            done[k] = 1
            if T == 0:
                continue
            if not shared:
                per_position = &pairs[at, 0]
            memset(sums, 0, Q * sizeof(double))
            done[k] = scaled_sequence(
                &L, &scores[at, 0], per_position, &start[0], &end[0], &triples[0], &transposed[0], shift, depth, T,
                weights[k], edge, edge_shift, edge_depth, sums, rest, &node[at, 0],
                &pair[0 if shared else at, 0], &log_z[k],
            )
            if done[k]:
                for q in range(Q):
                    triple[q] += weights[k] * sums[q]
        # So far the potentials of the triples themselves are not in it.
        for q in range(Q):
            triple[q] *= triples[q]


def work_size(Py_ssize_t longest, Py_ssize_t Y, Py_ssize_t P, Py_ssize_t Q):
    """Doubles of scratch that both recursions need for sequences of up to `longest` positions."""
    return 3 * Q + (2 * longest + 8) * P + (longest + 6) * Y


cdef bint scaled_sequence(
    Layout* L, const real* scores, const double* per_position, const double* start, const double* end,
    const double* triples, const double* transposed, double shift, double depth, Py_ssize_t T, double weight,
    double* edge, double edge_shift, double edge_depth, double* sums, double* rest, real* node, double* pair,
    double* log_z,
) noexcept nogil:
    """One sequence by scaled recursions; False where scaling cannot be trusted."""
    cdef Py_ssize_t Y = L.Y, P = L.P, t, p, j
    cdef bint shared = per_position == NULL
    cdef double* alpha = rest                  # [T, P] forward, each row sums to 1; row 0 is not used
    cdef double* psi = alpha + T * P           # [T, Y] exp(F - its maximum)
    cdef double* singles = psi + T * Y         # [Y] forward at the first position
    cdef double* factors = singles + Y         # [Y]
    cdef double* g = factors + Y               # [P] exp(E_t + F_t) beta_t
    cdef double* back = g + P                  # [P] beta_t
    cdef double* pair_sums = back + P          # [P]
    cdef double* row
    cdef double top, total, size, z = 0.0, scales = 0.0

    for t in range(T):
        top = exponentials(&scores[t * Y], Y, &psi[t * Y])
        if not isfinite(top):
            return False
        z += top
    top = exponentials(start, Y, singles)
    if not isfinite(top):
        return False
    z += top
    for j in range(Y):
        singles[j] *= psi[j]
    if T == 1:
        top = exponentials(end, Y, factors)
        if not isfinite(top):
            return False
        total = dot(singles, factors, Y)
        if not trusted(total):
            return False
        log_z[0] = z + top + log(total)
        for j in range(Y):
            node[j] = <real>(singles[j] * factors[j] / total)
        if not shared:
            memset(pair, 0, P * sizeof(double))
        return True
    total = total_of(singles, Y)
    if not trusted(total):
        return False
    size = log(total)
    z += size
    scales += size
    scale_by(singles, 1.0 / total, Y)
    for t in range(1, T):
        if not shared:
            edge_shift = exponentials(per_position + t * P, P, edge)
        if not isfinite(edge_shift):
            return False
        z += edge_shift
        row = alpha + t * P
        if t == 1:
            for p in range(P):
                row[p] = singles[L.first[p]]
        else:
            z += shift
            memset(row, 0, P * sizeof(double))
            through(L, triples, row - P, factors, row)
        for p in range(P):
            row[p] *= edge[p] * psi[t * Y + L.second[p]]
        total = total_of(row, P)
        if not trusted(total):
            return False
        size = log(total)
        z += size
        scales += size
        scale_by(row, 1.0 / total, P)

    top = exponentials(end, Y, factors)
    if not isfinite(top):
        return False
    for p in range(P):
        back[p] = factors[L.second[p]]
    total = dot(alpha + (T - 1) * P, back, P)
    if not trusted(total):
        return False
    size = log(total)
    log_z[0] = z + top + size
    if not kcrf_outweighs(scales + size, T, log(<double>Y)) and not kcrf_lossless(
        scores, real is float, T, Y, alpha, P, P, kcrf_depth(start, False, Y), per_position, P, not shared,
        edge_depth, depth,
    ):
        return False
    memset(pair_sums, 0, P * sizeof(double))
    t = T - 1
    while True:
        # back holds beta_t, total = <alpha_t, beta_t>; g takes the marginals of pairs first.
        row = alpha + t * P
        for p in range(P):
            g[p] = row[p] * back[p] / total
            pair_sums[p] += g[p]
        if not shared:
            memcpy(pair + t * P, g, P * sizeof(double))
        memset(factors, 0, Y * sizeof(double))
        for p in range(P):
            factors[L.second[p]] += g[p]
        for j in range(Y):
            node[t * Y + j] = <real>factors[j]
        if t == 1:
            break
        top = 0.0
        for p in range(P):
            if back[p] > top:
                top = back[p]
        if not shared:
            exponentials(per_position + t * P, P, edge)
        for p in range(P):
            g[p] = edge[p] * psi[t * Y + L.second[p]] * (back[p] / top)
        memset(back, 0, P * sizeof(double))
        back_through(L, transposed, g, factors, back)
        row = alpha + (t - 1) * P
        total = dot(row, back, P)
        if not trusted(total):
            return False
        add_outer(L, row, g, 1.0 / total, sums)
        t -= 1
    memset(factors, 0, Y * sizeof(double))
    for p in range(P):
        factors[L.first[p]] += g[p]
    for j in range(Y):
        node[j] = <real>factors[j]
    if shared:
        add_scaled(pair, pair_sums, weight, P)
    else:
        memset(pair, 0, P * sizeof(double))
    return True


def viterbi(
    const real[:, ::1] scores,         # [n, Y]
    const double[:, ::1] pairs,        # [1, P] or [n, P]
    const double[::1] start,           # [Y]
    const double[::1] end,             # [Y]
    const double[::1] triples,         # [Q] U, block by block
    const int[::1] first,              # the layout
    const int[::1] second,
    const int[::1] begin,
    const int[::1] into,
    const int[::1] into_begin,
    const int64[::1] block,
    const int64[::1] offsets,          # [S+1]
    int[::1] path,                     # [n] out: the best labels; of equals, the smaller label
    double[::1] best,                  # [S] out: their unnormalised log score, minus infinity where none is allowed
    double[::1] work,                  # scratch of longest * P + Y
):
    cdef Layout L = layout_of(first, second, begin, into, into_begin, block)
    cdef bint shared = pairs.shape[0] == 1
    cdef Py_ssize_t Y = L.Y, P = L.P, k, t, p, j, a, n, at, T, width, source, previous
    cdef double* gathered = &work[0]
    cdef double* now  # [P] the best score of a path so far that ends in each pair
    cdef const double* E
    cdef const double* U
    cdef const int* into_j
    cdef double value, top
    cdef int label
    with nogil:
        for k in range(offsets.shape[0] - 1):
            at = offsets[k]
            T = offsets[k + 1] - at
            best[k] = 0.0
            if T == 0:
                continue
            if T == 1:
                top = -INFINITY
                label = 0
                for j in range(Y):
                    value = start[j] + scores[at, j] + end[j]
                    if value > top:
                        top = value
                        label = <int>j
                path[at] = label
                best[k] = top
                continue
            now = gathered + Y
            for p in range(P):
                now[p] = start[L.first[p]] + scores[at, L.first[p]]
            for t in range(1, T):
                if t > 1:
                    for j in range(Y):
                        into_j = L.into + L.into_begin[j]
                        n = L.into_begin[j + 1] - L.into_begin[j]
                        for a in range(n):
                            gathered[a] = now[into_j[a]]
                        width = L.begin[j + 1] - L.begin[j]
                        kcrf_max_plus(gathered, &triples[0] + L.block[j], n, width, now + P + L.begin[j])
                    now += P
                E = &pairs[0, 0] if shared else &pairs[at + t, 0]
                for p in range(P):
                    now[p] += E[p] + scores[at + t, L.second[p]]
            top = -INFINITY
            source = 0
            for p in range(P):
                value = now[p] + end[L.second[p]]
                # Pairs come in the order of their first label: of equals, the smaller last label, then the first.
                if value > top or (value == top and L.second[p] < L.second[source]):
                    top = value
                    source = p
            best[k] = top
            for t in range(T - 1, 1, -1):
                path[at + t] = L.second[source]
                now -= P
                j = L.first[source]
                into_j = L.into + L.into_begin[j]
                width = L.begin[j + 1] - L.begin[j]
                U = &triples[0] + L.block[j] + (source - L.begin[j])
                top = -INFINITY
                previous = 0
                for a in range(L.into_begin[j + 1] - L.into_begin[j]):
                    value = now[into_j[a]] + U[a * width]
                    if value > top:
                        top = value
                        previous = into_j[a]
                source = previous
            path[at + 1] = L.second[source]
            path[at] = L.first[source]
