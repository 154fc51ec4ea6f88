"""Forward-backward, its tangent and Viterbi on second-order chains, for chunks of whole sequences.

    log p(y) = s[y_1] + sum_t F[t, y_t] + sum_{t>=2} E_t[y_{t-1}, y_t] + sum_{t>=3} U[y_{t-2}, y_{t-1}, y_t]
               + e[y_T] - log Z

The state at t is the pair (y_{t-1}, y_t). Only pairs that are allowed exist: they are numbered by their first label,
then by their second. Triples stand in blocks, one for each middle label: a matrix from the pairs that end in it to
the pairs that begin with it, so that every inner loop is a product with a dense matrix, whatever is forbidden.

Messages are scaled as in `_chain`, with their derivatives beside them as in `_tangent`. Sequences whose scales cannot
be trusted are marked, for the caller to do again in log space.
"""

from libc.math cimport log, INFINITY, isfinite
from libc.string cimport memcpy, memset

from ._scaling cimport add_rows, add_scaled, exponentials, int64, real, trusted


cdef struct Layout:
    Py_ssize_t Y, P
    const int* first             # [P] first label of each pair
    const int* second            # [P] second label
    const int* begin             # [Y+1] pairs begin[j]:begin[j+1] have the first label j
    const int* into              # [P] pairs ordered by their second label
    const int* into_begin        # [Y+1] into[into_begin[j]:into_begin[j+1]] have the second label j
    const int64* block           # [Y+1] where the triples with middle label j begin


cdef Layout layout_of(
    const int[::1] first, const int[::1] second, const int[::1] begin, const int[::1] into, const int[::1] into_begin,
    const int64[::1] block,
) noexcept:
    cdef Layout L
    L.Y = begin.shape[0] - 1
    L.P = first.shape[0]
    L.first = &first[0]
    L.second = &second[0]
    L.begin = &begin[0]
    L.into = &into[0]
    L.into_begin = &into_begin[0]
    L.block = &block[0]
    return L


cdef void through(
    Layout* L, const double* triples, const double* before, double* factors, double* after
) noexcept nogil:
    """after[(j, k)] += sum_i before[(i, j)] triples[i, j, k]."""
    cdef Py_ssize_t j, a, count
    cdef const int* into
    for j in range(L.Y):
        into = L.into + L.into_begin[j]
        count = L.into_begin[j + 1] - L.into_begin[j]
        for a in range(count):
            factors[a] = before[into[a]]
        add_rows(after + L.begin[j], triples + L.block[j], factors, count, L.begin[j + 1] - L.begin[j])


cdef void back_through(
    Layout* L, const double* transposed, const double* after, double* sums, double* before
) noexcept nogil:
    """before[(i, j)] += sum_k triples[i, j, k] after[(j, k)], for blocks that stand transposed."""
    cdef Py_ssize_t j, a, count
    cdef const int* into
    for j in range(L.Y):
        into = L.into + L.into_begin[j]
        count = L.into_begin[j + 1] - L.into_begin[j]
        memset(sums, 0, count * sizeof(double))
        add_rows(sums, transposed + L.block[j], after + L.begin[j], L.begin[j + 1] - L.begin[j], count)
        for a in range(count):
            before[into[a]] += sums[a]


cdef void add_outer(Layout* L, const double* before, const double* after, double factor, double* out) noexcept nogil:
    """out[i, j, k] += factor before[(i, j)] after[(j, k)]."""
    cdef Py_ssize_t j, a, width
    cdef const int* into
    for j in range(L.Y):
        into = L.into + L.into_begin[j]
        width = L.begin[j + 1] - L.begin[j]
        for a in range(L.into_begin[j + 1] - L.into_begin[j]):
            add_scaled(out + L.block[j] + a * width, after + L.begin[j], factor * before[into[a]], width)


cdef inline double total_of(const double* values, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t p
    cdef double total = 0.0
    for p in range(count):
        total += values[p]
    return total


cdef inline double dot(const double* a, const double* b, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t p
    cdef double total = 0.0
    for p in range(count):
        total += a[p] * b[p]
    return total


cdef inline void scale_by(double* values, double factor, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t p
    for p in range(count):
        values[p] *= factor


# ----------------------------------------------------------------------------- forward-backward


def forward_backward(
    const real[:, ::1] scores,         # [n, Y] F
    const double[:, ::1] pairs,        # [1, P] shared E, or [n, P]: row t leads from t-1 to t
    const double[::1] start,           # [Y] s
    const double[::1] end,             # [Y] e
    const double[::1] triples,         # [Q] exp(U - shift), block by block
    const double[::1] transposed,      # [Q] the same, each block transposed
    double shift,
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
    cdef double edge_shift = 0.0
    cdef const double* per_position = NULL
    with nogil:
        if shared:
            edge_shift = exponentials(&pairs[0, 0], L.P, edge)
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
                &L, &scores[at, 0], per_position, &start[0], &end[0], &triples[0], &transposed[0], shift, T,
                weights[k], edge, edge_shift, sums, rest, &node[at, 0], &pair[0 if shared else at, 0], &log_z[k],
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
    const double* triples, const double* transposed, double shift, Py_ssize_t T, double weight,
    double* edge, double edge_shift, double* sums, double* rest, real* node, double* pair, double* log_z,
) noexcept nogil:
    """One sequence by scaled recursions; False where a scale became too small to be trusted."""
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
    cdef double top, total, z = 0.0

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
    z += log(total)
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
        z += log(total)
        scale_by(row, 1.0 / total, P)

    top = exponentials(end, Y, factors)
    if not isfinite(top):
        return False
    for p in range(P):
        back[p] = factors[L.second[p]]
    total = dot(alpha + (T - 1) * P, back, P)
    if not trusted(total):
        return False
    log_z[0] = z + top + log(total)
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


# ----------------------------------------------------------------------------- tangent


def tangent(
    const real[:, ::1] scores,         # [n, Y] F
    const double[:, ::1] pairs,        # [1, P] or [n, P] E
    const double[::1] start,           # [Y]
    const double[::1] end,             # [Y]
    const double[::1] triples,         # [Q] exp(U - shift)
    const double[::1] transposed,      # [Q]
    const real[:, ::1] d_scores,       # [n, Y] direction of F
    const double[:, ::1] d_pairs,      # direction of E, shaped like it
    const double[::1] d_start,         # [Y]
    const double[::1] d_end,           # [Y]
    const double[::1] d_triples,       # [Q] exp(U - shift) times the direction of U
    const double[::1] d_transposed,    # [Q]
    const int[::1] first,              # the layout
    const int[::1] second,
    const int[::1] begin,
    const int[::1] into,
    const int[::1] into_begin,
    const int64[::1] block,
    const int64[::1] offsets,          # [S+1]
    const double[::1] weights,         # [S]
    real[:, ::1] d_node,               # [n, Y] out
    double[:, ::1] d_pair,             # [1, P] += that of the weighted sums, or [n, P] out
    double[::1] d_triple,              # [Q] out, zero before
    unsigned char[::1] done,           # [S] out
    double[::1] work,                  # scratch of tangent_work_size(longest, Y, P, Q)
):
    """Derivative of all marginals along a direction of the potentials."""
    cdef Layout L = layout_of(first, second, begin, into, into_begin, block)
    cdef bint shared = pairs.shape[0] == 1 and d_pair.shape[0] == 1
    cdef Py_ssize_t k, q, at, T, Q = triples.shape[0]
    cdef double* sums = &work[0]               # [Q] of alpha g / Z, all sequences
    cdef double* own_sums = sums + Q           # [Q] of one sequence
    cdef double* changes = own_sums + Q        # [Q] of its derivative, potentials of triples held
    cdef double* edge = changes + Q            # [P]
    cdef double* rest = edge + L.P
    cdef const double* E = &pairs[0, 0]
    cdef const double* dE = &d_pairs[0, 0]
    with nogil:
        memset(sums, 0, Q * sizeof(double))
        if shared:
            exponentials(E, L.P, edge)
        for k in range(offsets.shape[0] - 1):
            at = offsets[k]
            T = offsets[k + 1] - at
            done[k] = 1
            if T == 0:
                continue
            if not shared:
                E = &pairs[at, 0]
                dE = &d_pairs[at, 0]
            memset(own_sums, 0, 2 * Q * sizeof(double))
            done[k] = scaled_tangent(
                &L, &scores[at, 0], E, shared, &start[0], &end[0], &triples[0], &transposed[0],
                &d_scores[at, 0], dE, &d_start[0], &d_end[0], &d_triples[0], &d_transposed[0], T, weights[k],
                edge, own_sums, changes, rest, &d_node[at, 0], &d_pair[0 if shared else at, 0],
            )
            if done[k]:
                add_scaled(sums, own_sums, weights[k], Q)
                add_scaled(&d_triple[0], changes, weights[k], Q)
        for q in range(Q):
            d_triple[q] = d_triple[q] * triples[q] + sums[q] * d_triples[q]


def tangent_work_size(Py_ssize_t longest, Py_ssize_t Y, Py_ssize_t P, Py_ssize_t Q):
    """Doubles of scratch that tangent needs for sequences of up to `longest` positions."""
    return 3 * Q + (2 * longest + 8) * P + (longest + 4) * Y


cdef bint scaled_tangent(
    Layout* L, const real* scores, const double* E, bint shared, const double* start, const double* end,
    const double* triples, const double* transposed,
    const real* d_scores, const double* dE, const double* d_start, const double* d_end,
    const double* d_triples, const double* d_transposed, Py_ssize_t T, double weight,
    double* edge, double* sums, double* changes, double* rest, real* d_node, double* d_pair,
) noexcept nogil:
    """The scaled recursions with their derivatives beside them; False where a scale is too small.

    Beside each message m stands m times the derivative of log m, less its mean under the marginals.
    """
    cdef Py_ssize_t Y = L.Y, P = L.P, t, p, j
    cdef double* alpha = rest                  # [T, P]
    cdef double* v = alpha + T * P             # [T, P] alpha times d log alpha
    cdef double* psi = v + T * P               # [T, Y]
    cdef double* singles = psi + T * Y         # [Y] forward at the first position
    cdef double* d_singles = singles + Y       # [Y] the same times d log
    cdef double* factors = d_singles + Y       # [Y]
    cdef double* g = factors + Y               # [P] exp(E_t + F_t) beta_t
    cdef double* h = g + P                     # [P] g times d log g
    cdef double* back = h + P                  # [P] beta_t
    cdef double* r = back + P                  # [P] beta times d log beta
    cdef double* left = r + P                  # [P] alpha_{t-1}'s derivative, brought to the scale of marginals
    cdef double* pair_sums = left + P          # [P]
    cdef double* row
    cdef double* d_row
    cdef const double* change
    cdef double top, total, mean, value, scale

    for t in range(T):
        top = exponentials(&scores[t * Y], Y, &psi[t * Y])
        if not isfinite(top):
            return False
    top = exponentials(start, Y, singles)
    if not isfinite(top):
        return False
    for j in range(Y):
        singles[j] *= psi[j]
        d_singles[j] = singles[j] * (d_start[j] + d_scores[j]) if singles[j] > 0.0 else 0.0
    if T == 1:
        top = exponentials(end, Y, factors)
        if not isfinite(top):
            return False
        total = dot(singles, factors, Y)
        if not trusted(total):
            return False
        mean = 0.0
        for j in range(Y):
            value = singles[j] * factors[j]
            d_singles[j] = d_singles[j] * factors[j] + (value * d_end[j] if value > 0.0 else 0.0)
            singles[j] = value
            mean += d_singles[j]
        mean /= total
        for j in range(Y):
            d_node[j] = <real>((d_singles[j] - mean * singles[j]) / total)
        if not shared:
            memset(d_pair, 0, P * sizeof(double))
        return True
    total = total_of(singles, Y)
    if not trusted(total):
        return False
    for t in range(1, T):
        change = dE if shared else dE + t * P
        if not shared:
            top = exponentials(E + t * P, P, edge)
            if not isfinite(top):
                return False
        row = alpha + t * P
        d_row = v + t * P
        if t == 1:
            for p in range(P):
                row[p] = singles[L.first[p]]
                d_row[p] = d_singles[L.first[p]]
        else:
            memset(row, 0, P * sizeof(double))
            memset(d_row, 0, P * sizeof(double))
            through(L, triples, row - P, factors, row)
            through(L, triples, d_row - P, factors, d_row)
            through(L, d_triples, row - P, factors, d_row)
        for p in range(P):
            value = edge[p] * psi[t * Y + L.second[p]]
            row[p] *= value
            d_row[p] *= value
            if value > 0.0:
                d_row[p] += row[p] * (change[p] + d_scores[t * Y + L.second[p]])
        total = total_of(row, P)
        if not trusted(total):
            return False
        scale = 1.0 / total
        mean = total_of(d_row, P) * scale
        for p in range(P):
            d_row[p] = (d_row[p] - mean * row[p]) * scale
            row[p] *= scale

    top = exponentials(end, Y, factors)
    if not isfinite(top):
        return False
    for p in range(P):
        back[p] = factors[L.second[p]]
        r[p] = back[p] * d_end[L.second[p]] if back[p] > 0.0 else 0.0
    memset(pair_sums, 0, P * sizeof(double))
    t = T - 1
    while True:
        # back and r hold beta_t and its derivative; both are brought to <alpha, beta> = 1, mean change 0.
        row = alpha + t * P
        d_row = v + t * P
        total = dot(row, back, P)
        if not trusted(total):
            return False
        scale = 1.0 / total
        mean = scale * (dot(d_row, back, P) + dot(row, r, P))
        for p in range(P):
            g[p] = scale * (d_row[p] * back[p] + row[p] * (r[p] - mean * back[p]))
            pair_sums[p] += g[p]
        if not shared:
            memcpy(d_pair + t * P, g, P * sizeof(double))
        memset(factors, 0, Y * sizeof(double))
        for p in range(P):
            factors[L.second[p]] += g[p]
        for j in range(Y):
            d_node[t * Y + j] = <real>factors[j]
        if t == 1:
            break
        change = dE if shared else dE + t * P
        if not shared:
            exponentials(E + t * P, P, edge)
        top = 0.0
        for p in range(P):
            if back[p] > top:
                top = back[p]
        top = 1.0 / top
        for p in range(P):
            value = edge[p] * psi[t * Y + L.second[p]] * top
            g[p] = value * back[p]
            h[p] = 0.0
            if value > 0.0:
                h[p] = value * (r[p] - mean * back[p]) + g[p] * (change[p] + d_scores[t * Y + L.second[p]])
        memset(back, 0, P * sizeof(double))
        memset(r, 0, P * sizeof(double))
        back_through(L, transposed, g, factors, back)
        back_through(L, transposed, h, factors, r)
        back_through(L, d_transposed, g, factors, r)
        row = alpha + (t - 1) * P
        d_row = v + (t - 1) * P
        total = dot(row, back, P)
        if not trusted(total):
            return False
        scale = 1.0 / total
        mean = scale * (dot(d_row, back, P) + dot(row, r, P))
        # A triple's marginal is alpha_{t-1} exp(U) g; its derivative has one part for each factor.
        for p in range(P):
            left[p] = scale * (d_row[p] - mean * row[p])
        add_outer(L, row, g, scale, sums)
        add_outer(L, left, g, 1.0, changes)
        add_outer(L, row, h, scale, changes)
        t -= 1
    memset(factors, 0, Y * sizeof(double))
    for p in range(P):
        factors[L.first[p]] += g[p]
    for j in range(Y):
        d_node[j] = <real>factors[j]
    if shared:
        add_scaled(d_pair, pair_sums, weight, P)
    else:
        memset(d_pair, 0, P * sizeof(double))
    return True


# ----------------------------------------------------------------------------- Viterbi


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
    int[::1] pointers,                 # scratch of longest * P: the pair before
    double[::1] work,                  # scratch of 2 * P
):
    cdef Layout L = layout_of(first, second, begin, into, into_begin, block)
    cdef bint shared = pairs.shape[0] == 1
    cdef Py_ssize_t Y = L.Y, P = L.P, k, t, p, j, a, b, at, T, width, source
    cdef double* now = &work[0]
    cdef double* before = &work[0] + P
    cdef double* swap
    cdef double* target
    cdef const double* E
    cdef const double* U
    cdef int* pointer
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
            for t in range(1, T):
                swap = before
                before = now
                now = swap
                if t == 1:
                    for p in range(P):
                        now[p] = start[L.first[p]] + scores[at, L.first[p]]
                else:
                    for j in range(Y):
                        width = L.begin[j + 1] - L.begin[j]
                        target = now + L.begin[j]
                        pointer = &pointers[t * P] + L.begin[j]
                        for b in range(width):
                            target[b] = -INFINITY
                            pointer[b] = 0
                        U = &triples[0] + L.block[j]
                        for a in range(L.into_begin[j + 1] - L.into_begin[j]):
                            source = L.into[L.into_begin[j] + a]
                            top = before[source]
                            for b in range(width):
                                value = top + U[a * width + b]
                                if value > target[b]:
                                    target[b] = value
                                    pointer[b] = <int>source
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
            t = T - 1
            while True:
                path[at + t] = L.second[source]
                if t == 1:
                    path[at] = L.first[source]
                    break
                source = pointers[t * P + source]
                t -= 1
