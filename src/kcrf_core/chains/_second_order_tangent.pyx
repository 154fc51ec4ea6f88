"""The tangent of forward-backward on second-order chains, beside `_second_order` as `_tangent` stands beside `_chain`.

Beside each scaled message runs its derivative. Sequences whose scales cannot be trusted are marked, for the caller to
do again in log space.
"""

from libc.math cimport isfinite, log
from libc.string cimport memcpy, memset

from ._pairs cimport add_outer, back_through, dot, Layout, layout_of, through, total_of
from ._scaling cimport add_scaled, exponentials, int64, kcrf_depth, kcrf_lossless, kcrf_outweighs, real, trusted


def tangent(
    const real[:, ::1] scores,         # [n, Y] F
    const double[:, ::1] pairs,        # [1, P] or [n, P] E
    const double[::1] start,           # [Y]
    const double[::1] end,             # [Y]
    const double[::1] triples,         # [Q] exp(U - shift)
    const double[::1] transposed,      # [Q]
    double depth,                      # how far the smallest finite U lies below the largest
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
    double[::1] work,                  # scratch of work_size(longest, Y, P, Q)
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
                &L, &scores[at, 0], E, shared, &start[0], &end[0], &triples[0], &transposed[0], depth,
                &d_scores[at, 0], dE, &d_start[0], &d_end[0], &d_triples[0], &d_transposed[0], T, weights[k],
                edge, own_sums, changes, rest, &d_node[at, 0], &d_pair[0 if shared else at, 0],
            )
            if done[k]:
                add_scaled(sums, own_sums, weights[k], Q)
                add_scaled(&d_triple[0], changes, weights[k], Q)
        for q in range(Q):
            d_triple[q] = d_triple[q] * triples[q] + sums[q] * d_triples[q]


def work_size(Py_ssize_t longest, Py_ssize_t Y, Py_ssize_t P, Py_ssize_t Q):
    """Doubles of scratch that tangent needs for sequences of up to `longest` positions."""
    return 3 * Q + (2 * longest + 8) * P + (longest + 4) * Y


cdef bint scaled_tangent(
    Layout* L, const real* scores, const double* E, bint shared, const double* start, const double* end,
    const double* triples, const double* transposed, double depth,
    const real* d_scores, const double* dE, const double* d_start, const double* d_end,
    const double* d_triples, const double* d_transposed, Py_ssize_t T, double weight,
    double* edge, double* sums, double* changes, double* rest, real* d_node, double* d_pair,
) noexcept nogil:
    """The scaled recursions with their derivatives beside them; False where scaling cannot be trusted.

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
    cdef double top, total, mean, value, scale, product = 1.0, scales = 0.0

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
        product *= total
        if product < 1e-150 or product > 1e150:
            scales += log(product)
            product = 1.0
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
        if t == T - 1 and not kcrf_outweighs(
            scales + log(product) + log(total), T, log(<double>Y)
        ) and not kcrf_lossless(
            scores, real is float, T, Y, alpha, P, P, kcrf_depth(start, False, Y), E, P, not shared,
            kcrf_depth(E, False, P), depth,
        ):
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
