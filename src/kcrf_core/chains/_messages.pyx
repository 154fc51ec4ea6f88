"""Forward-backward on chains of both orders and its tangent, for chunks of whole sequences.

    log p(y) = s[y_1] + sum_t F[t, y_t] + sum_{t>=2} E_t[y_{t-1}, y_t] + sum_{t>=3} U[y_{t-2}, y_{t-1}, y_t]
               + e[y_T] - log Z                                                                    (25)-(27)

A chain of second order is one of first order over pairs of labels (`_states.pxd`): potentials of pairs stand beside the
scores of its states, those of triples its transitions. A sequence of one position has no pair; its states are labels.

The recursions run on exponentials that are scaled at every position, which costs no logarithm per state. Scaling is
exact until a scale gets too small, or all of them together; then an underflow might matter (see `_recursions.h`) and
the sequence is done again in log space. Minus infinity is a legal potential (a forbidden transition).

Beside each message runs its derivative along a direction, with all long-range correlations of the chain: with a feature
map on both sides it is the exact product of P's Hessian with a vector.
"""

from libc.math cimport exp, log, INFINITY, isfinite
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from ._states cimport (
    add_outer, add_scaled, back_through, Block, block_of, blocks, Chain, chain_of_labels, dot, dots,
    exponentials_of_table, first_of, int64, kcrf_depth, kcrf_exponentials, kcrf_lossless, kcrf_outweighs, label_of,
    largest, lower, source, States, through, total_of, trusted,
)


cdef class StatePotentials:
    """Potentials between the states of chains, or a direction of them.

    `table` has a row for each position, as potentials `apart` have, or one for all. Chains of second order have
    potentials of `pairs` and a `layout`.
    """

    def __init__(
        self,
        const double[::1] start,                 # [Y]
        const double[::1] end,                   # [Y]
        const double[:, ::1] table,              # [m, Q] of transitions: E, or U block by block
        bint apart,
        const double[:, ::1] pairs,              # [m, P] E
        layout,                                  # `pairs.PairStates`
    ):
        cdef const int[::1] first, second, begin, into, into_begin
        cdef const int64[::1] block
        cdef Chain* C = &self.chain
        C[0] = chain_of_labels(&start[0], &end[0], start.shape[0])
        C.states.Q, C.table = table.shape[1], &table[0, 0] if table.shape[0] else NULL
        C.table_apart = apart and layout is None
        self._held = start, end, table, pairs, layout
        if layout is None:
            return
        first, second, begin, block = layout.first, layout.second, layout.begin, layout.block
        into, into_begin = layout.into, layout.into_begin
        C.states.P, C.pairs_apart, C.pairs = first.shape[0], apart, &pairs[0, 0] if pairs.shape[0] else NULL
        C.states.first, C.states.second, C.states.into = &first[0], &second[0], &into[0]
        C.states.begin, C.states.into_begin, C.states.block = &begin[0], &into_begin[0], &block[0]

    cdef Chain of(self, Py_ssize_t at, Py_ssize_t T) noexcept nogil:
        """Return the chain of T positions from `at` on."""
        cdef Chain C = self.chain
        if T == 1 and C.pairs != NULL:
            return chain_of_labels(C.start, C.end, C.states.Y)
        if C.pairs_apart:
            C.pairs += at * C.states.P
        if C.table_apart:
            C.table += at * C.states.Q
        return C


cdef struct Room:
    # Scratch of the scaled recursions. Exponentials have their largest entry divided out, its logarithm is the shift.
    double* up                   # [Q] exp of transitions
    double* down                 # [Q] the same with each block transposed
    double* d_up                 # [Q] both times the direction of transitions
    double* d_down
    double* sums                 # [Q] of alpha g / Z
    double* changes              # [Q] of its derivative, transitions held
    double* pair_sums            # [P]
    double* edge                 # [P] exp of potentials of pairs
    double* g                    # [P] local times beta
    double* h                    # [P] g times d log g
    double* back                 # [P] beta
    double* r                    # [P] beta times d log beta
    double* left                 # [P] the derivative of alpha, brought to the scale of marginals
    double* ends                 # [Y]
    double* psi                  # [Y]
    double* factors              # [Y]
    double* alpha                # [T, P] forward, each row sums to 1
    double* local                # [T, P] exp of what a position adds to its states
    double* v                    # [T, P] alpha times d log alpha
    double* d_local              # [T, P] the direction of what a position adds
    double table_shift, edge_shift


cdef Py_ssize_t scaled_room(Py_ssize_t T, Py_ssize_t Y, Py_ssize_t P, Py_ssize_t Q) noexcept nogil:
    """Return the doubles of scratch that `scaled_messages` takes."""
    return 6 * Q + (4 * T + 7) * max(P, Y) + 3 * Y


cdef Room rooms(double* work, Py_ssize_t T, Py_ssize_t Y, Py_ssize_t P, Py_ssize_t Q) noexcept nogil:
    cdef Room R
    P = max(P, Y)
    R.up, R.down, R.d_up, R.d_down = work, work + Q, work + 2 * Q, work + 3 * Q
    R.sums, R.changes, R.pair_sums = work + 4 * Q, work + 5 * Q, work + 6 * Q
    R.edge = R.pair_sums + P
    R.g, R.h, R.back, R.r, R.left = R.edge + P, R.edge + 2 * P, R.edge + 3 * P, R.edge + 4 * P, R.edge + 5 * P
    R.ends = R.left + P
    R.psi, R.factors = R.ends + Y, R.ends + 2 * Y
    R.alpha = R.ends + 3 * Y
    R.local, R.v, R.d_local = R.alpha + T * P, R.alpha + 2 * T * P, R.alpha + 3 * T * P
    R.table_shift = R.edge_shift = 0.0
    return R


cdef void exponentiate(const Chain* C, const Chain* D, Py_ssize_t t, bint back, Room* R) noexcept nogil:
    """Take exponentials of the transitions into position t, transposed, too, on the way `back`.

    A forbidden transition stays forbidden whatever its direction.
    """
    cdef const States* L = &C.states
    cdef const double* moves = NULL
    cdef Py_ssize_t j, a, b, q
    cdef Block B
    R.table_shift = exponentials_of_table(C.table + (t * L.Q if C.table_apart else 0), L.Q, R.up)
    if D != NULL:
        moves = D.table + (t * L.Q if C.table_apart else 0)
        for q in range(L.Q):
            R.d_up[q] = R.up[q] * moves[q] if R.up[q] > 0.0 else 0.0
    for j in range(blocks(L) if back and L.Q else 0):
        B = block_of(L, j)
        for a in range(B.height):
            for b in range(B.width):
                R.down[B.at + b * B.height + a] = R.up[B.at + a * B.width + b]
                if D != NULL:
                    R.d_down[B.at + b * B.height + a] = R.d_up[B.at + a * B.width + b]


cdef void add_transitions(const Room* R, bint tangent, double weight, Py_ssize_t Q, double* out) noexcept nogil:
    """Turn sums of messages into those of marginals, times exp of transitions, or their derivatives."""
    cdef Py_ssize_t q
    for q in range(Q):
        if tangent:
            out[q] += weight * (R.changes[q] * R.up[q] + R.sums[q] * R.d_up[q])
        else:
            out[q] += weight * (R.sums[q] * R.up[q])


cdef void put_pairs(
    const Chain* C, const double* states, Py_ssize_t t, double weight, double* node, double* pair
) noexcept nogil:
    """Put values of pairs at t: sums over labels [T, Y], and pairs [1, P] += weighted sums or [T, P]."""
    cdef const States* L = &C.states
    cdef Py_ssize_t p
    memset(node + t * L.Y, 0, L.Y * sizeof(double))
    for p in range(L.P):
        node[t * L.Y + L.second[p]] += states[p]
    if t == 1:
        memset(node, 0, L.Y * sizeof(double))
        for p in range(L.P):
            node[L.first[p]] += states[p]
    if C.pairs_apart:
        memcpy(pair + t * L.P, states, L.P * sizeof(double))
    else:
        add_scaled(pair, states, weight, L.P)


cdef void put_moves(const Chain* D, const double* d_scores, Py_ssize_t t, double* out) noexcept nogil:
    """Put the direction of what position t adds to pairs, [P], where there is one."""
    cdef Py_ssize_t p
    for p in range(D.states.P if D != NULL else 0):
        out[p] = D.pairs[(t * D.states.P if D.pairs_apart else 0) + p]
        out[p] += d_scores[t * D.states.Y + D.states.second[p]]


cdef bint scaled_messages(
    const Chain* C, const Chain* D, const double* scores, const double* d_scores, Py_ssize_t T, double weight,
    Room* R, const Found* out,
) noexcept nogil:
    """Go through one sequence, with derivatives where D is a direction; False where scaling cannot be trusted.

    Beside each message m stands m times the derivative of log m, less its mean under the marginals: that stays bounded
    however long the sequence is, and no small number is ever divided by.
    """
    cdef const States* L = &C.states
    cdef Py_ssize_t Y = L.Y, P = L.P, Q = L.Q, t, p, j, begin = C.pairs != NULL  # the first position with a state
    cdef double* row
    cdef double* d_row
    cdef double* own
    cdef const double* moves = d_scores        # [T, P] the direction of what positions add
    cdef double top, total, scale, value, z, mean = 0.0, product = 1.0, scales = 0.0

    z = kcrf_exponentials(C.start, False, Y, R.ends)
    for t in range(T):
        row = R.local + t * P
        z += kcrf_exponentials(scores + t * Y, False, Y, R.psi if begin else row)
        if begin and C.pairs_apart and t:
            R.edge_shift = kcrf_exponentials(C.pairs + t * P, False, P, R.edge)
        if not isfinite(z + R.edge_shift):
            return False
        if begin and t == 0:
            for j in range(Y):
                R.ends[j] *= R.psi[j]
        elif begin:
            z += R.edge_shift
            put_moves(D, d_scores, t, R.d_local + t * P)
            for p in range(P):
                row[p] = R.edge[p] * R.psi[L.second[p]]
                if D != NULL and row[p] == 0.0:
                    R.d_local[t * P + p] = 0.0  # forbidden, whatever its direction
    if D != NULL and begin:
        moves = R.d_local

    for t in range(begin, T):
        row, d_row = R.alpha + t * P, R.v + t * P
        if t == begin:
            for p in range(P):
                j = first_of(L, p)
                row[p] = R.ends[j]
                if D != NULL:
                    value = D.start[j] + d_scores[j] if begin else D.start[j]
                    d_row[p] = row[p] * value if row[p] > 0.0 else 0.0
        else:
            if C.table_apart:
                exponentiate(C, D, t, False, R)
            z += R.table_shift
            memset(row, 0, P * sizeof(double))
            through(L, R.up, row - P, R.factors, row)
            if D != NULL:
                memset(d_row, 0, P * sizeof(double))
                through(L, R.up, d_row - P, R.factors, d_row)
                through(L, R.d_up, row - P, R.factors, d_row)
        for p in range(P):
            row[p] *= R.local[t * P + p]
        total = mean = 0.0
        for p in range(P):
            total += row[p]
            if D != NULL:
                d_row[p] = d_row[p] * R.local[t * P + p] + row[p] * moves[t * P + p]
                mean += d_row[p]
        if not trusted(total):
            return False
        product *= total
        if product < 1e-150 or product > 1e150:
            scales += log(product)
            product = 1.0
        scale = 1.0 / total
        mean *= scale
        for p in range(P):
            if D != NULL:
                d_row[p] = (d_row[p] - mean * row[p]) * scale
            row[p] *= scale

    top = kcrf_exponentials(C.end, False, Y, R.psi)
    for p in range(P):
        R.back[p] = R.psi[label_of(L, p)]
        if D != NULL:
            R.r[p] = R.back[p] * D.end[label_of(L, p)] if R.back[p] > 0.0 else 0.0
    row, d_row = R.alpha + (T - 1) * P, R.v + (T - 1) * P
    total = dot(row, R.back, P)
    if not isfinite(top) or not trusted(total):
        return False
    scales += log(product) + log(total)
    out.log_z[0] = z + top + scales
    if not kcrf_outweighs(scales, T, log(<double>Y)) and not kcrf_lossless(
        scores, False, T, Y, R.alpha, P, P, kcrf_depth(C.start, False, Y), C.pairs if begin else C.table,
        P if begin else Q, C.pairs_apart or C.table_apart,
        kcrf_depth(C.pairs if begin else C.table, False, P if begin else Q),
        kcrf_depth(C.table, False, Q) if begin else 0.0,
    ):
        return False
    memset(R.sums, 0, Q * sizeof(double))
    memset(R.pair_sums, 0, P * sizeof(double))
    if D != NULL:
        memset(R.changes, 0, Q * sizeof(double))
        mean = dots(d_row, R.back, row, R.r, P) / total
    t = T - 1
    while True:
        # back and r hold beta_t and its derivative, total is <alpha_t, beta_t>, mean its share that changes.
        row, d_row, scale = R.alpha + t * P, R.v + t * P, 1.0 / total
        own = R.g if begin else out.node + t * Y
        if D == NULL:
            for p in range(P):
                own[p] = row[p] * R.back[p] * scale
        else:
            for p in range(P):
                own[p] = scale * (d_row[p] * R.back[p] + row[p] * (R.r[p] - mean * R.back[p]))
        if begin:
            put_pairs(C, own, t, 1.0, out.node, out.pair if C.pairs_apart else R.pair_sums)
        if t == begin:
            break
        top = 1.0 / largest(R.back, P)
        for p in range(P):
            value = R.local[t * P + p] * top
            R.g[p] = value * R.back[p]
            if D != NULL:
                R.h[p] = value * (R.r[p] - mean * R.back[p]) + R.g[p] * moves[t * P + p]
        if C.table_apart:
            exponentiate(C, D, t, True, R)
            memset(R.sums, 0, Q * sizeof(double))
            if D != NULL:
                memset(R.changes, 0, Q * sizeof(double))
        memset(R.back, 0, P * sizeof(double))
        back_through(L, R.down, R.g, R.factors, R.back)
        row, d_row = row - P, d_row - P
        total = dot(row, R.back, P)
        if not trusted(total):
            return False
        scale = 1.0 / total
        add_outer(L, row, R.g, scale, R.sums)
        if D != NULL:
            memset(R.r, 0, P * sizeof(double))
            back_through(L, R.down, R.h, R.factors, R.r)
            back_through(L, R.d_down, R.g, R.factors, R.r)
            # The marginal of a transition is alpha exp(table) g; its derivative has one part for each factor.
            mean = scale * dots(d_row, R.back, row, R.r, P)
            for p in range(P):
                R.left[p] = scale * (d_row[p] - mean * row[p])
            add_outer(L, R.left, R.g, 1.0, R.changes)
            add_outer(L, row, R.h, scale, R.changes)
        if C.table_apart:
            add_transitions(R, D != NULL, 1.0, Q, out.transition + t * Q)
        t -= 1
    if not C.table_apart:
        add_transitions(R, D != NULL, weight, Q, out.transition)
    if begin and not C.pairs_apart:
        add_scaled(out.pair, R.pair_sums, weight, P)
    return True


cdef inline double log_sum(const double* terms, const double* moves, Py_ssize_t count, double* mean) noexcept nogil:
    """Return log sum exp(terms), and put the mean of their moves under the terms' shares. NaN and infinity stay."""
    cdef Py_ssize_t i
    cdef double value, total = 0.0, top = largest(terms, count)
    mean[0] = 0.0
    if top == -INFINITY:
        return top + total_of(terms, count)
    for i in range(count):
        value = exp(terms[i] - top)
        total += value
        if moves != NULL and value > 0.0:
            mean[0] += value * moves[i]
    mean[0] /= total
    return top + log(total)


cdef inline void to_shares(double* terms, const double* moves, Py_ssize_t count) noexcept nogil:
    """Turn logarithms into shares of their sum, or into the derivatives of the shares.

    A derivative is a share times the change of its logarithm less their mean change. Shares are exact where large
    potentials leave log Z with an error of its own.
    """
    cdef Py_ssize_t i
    cdef double mean, total
    lower(terms, count)
    total = log_sum(terms, moves, count, &mean)
    for i in range(count):
        terms[i] = exp(terms[i] - total)
        if moves != NULL:
            terms[i] = terms[i] * (moves[i] - mean) if terms[i] > 0.0 else 0.0


cdef inline Py_ssize_t lay_out(
    const Block* B, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t column, Py_ssize_t columns,
    const double* before, const double* table, const double* local, const double* after, double* terms,
) noexcept nogil:
    """Put sums of messages before and behind the transitions in some rows and columns of a block; return their number.

    Messages may be far larger than potentials: these are added up first.
    """
    cdef Py_ssize_t a, b, count = 0
    for a in range(row, row + rows):
        for b in range(column, column + columns):
            terms[count] = table[B.at + a * B.width + b]
            if after != NULL:
                terms[count] += local[B.after + b]
            if before != NULL:
                terms[count] += before[source(B, a)]
            if after != NULL:
                terms[count] += after[B.after + b]
            count += 1
    return count


cdef void log_step(
    const States* L, const double* table, const double* moves, const double* before, const double* u_before,
    double* terms, double* changes, double* out, double* u,
) noexcept nogil:
    """out[(j, k)] = log sum_i exp(before[(i, j)] + table[i, j, k]), with its derivative u where there are moves."""
    cdef Py_ssize_t j, b, count
    cdef double mean
    cdef Block B
    for j in range(blocks(L)):
        B = block_of(L, j)
        for b in range(B.width):
            count = lay_out(&B, 0, B.height, b, 1, before, table, NULL, NULL, terms)
            if moves != NULL:
                lay_out(&B, 0, B.height, b, 1, u_before, moves, NULL, NULL, changes)
            out[B.after + b] = log_sum(terms, changes if moves != NULL else NULL, count, &mean)
            if moves != NULL:
                u[B.after + b] = mean


cdef Py_ssize_t log_room(Py_ssize_t T, Py_ssize_t P, Py_ssize_t Q, bint tangent) noexcept nogil:
    """Return the doubles of scratch that `log_messages` takes."""
    return (2 if tangent else 1) * (3 * T * P + max(P, Q))


cdef bint log_messages(
    const Chain* C, const Chain* D, const double* scores, const double* d_scores, Py_ssize_t T, double weight,
    double* work, const Found* out,
) noexcept nogil:
    """Go through one sequence in log space, for potentials that scaling cannot take; False where no path is left."""
    cdef const States* L = &C.states
    cdef Py_ssize_t Y = L.Y, P = L.P, Q = L.Q, t, p, j, a, count, after, begin = C.pairs != NULL, size = T * P
    cdef double* forward = work                # [T, P] log alpha, less the largest of each row
    cdef double* backward = forward + size     # [T, P] log beta, likewise
    cdef double* local = backward + size       # [T, P] what a position adds to its states
    cdef double* terms = local + size          # [max(P, Q)]
    cdef double* u = NULL                      # [T, P] derivatives of all of them
    cdef double* w = NULL
    cdef double* d_local = NULL
    cdef double* moves = NULL
    cdef const double* table = C.table
    cdef const double* d_table = NULL
    cdef double z, mean
    cdef Block B
    if D != NULL:
        u = terms + max(P, Q)
        w, d_local, moves, d_table = u + size, u + 2 * size, u + 3 * size, D.table
    for t in range(begin, T):
        for p in range(P):
            local[t * P + p] = scores[t * Y + label_of(L, p)]
            if begin:
                local[t * P + p] += C.pairs[(t * P if C.pairs_apart else 0) + p]
            elif D != NULL:
                d_local[t * P + p] = d_scores[t * Y + p]
        if begin:
            put_moves(D, d_scores, t, d_local + t * P)
    for p in range(P):
        j = first_of(L, p)
        local[begin * P + p] += C.start[j] + scores[j] if begin else C.start[j]
        if D != NULL:
            d_local[begin * P + p] += D.start[j] + d_scores[j] if begin else D.start[j]

    z = 0.0
    for t in range(begin, T):
        if t == begin:
            memset(forward + t * P, 0, P * sizeof(double))
            if D != NULL:
                memset(u + t * P, 0, P * sizeof(double))
        else:
            if C.table_apart:
                table = C.table + t * Q
                d_table = NULL if D == NULL else D.table + t * Q
            log_step(
                L, table, d_table, forward + (t - 1) * P, NULL if D == NULL else u + (t - 1) * P, terms, moves,
                forward + t * P, NULL if D == NULL else u + t * P,
            )
        for p in range(t * P, (t + 1) * P):
            forward[p] += local[p]
            if D != NULL:
                u[p] += d_local[p]
        z += lower(forward + t * P, P)
    for p in range(P):
        terms[p] = forward[(T - 1) * P + p] + C.end[label_of(L, p)]
    out.log_z[0] = z + log_sum(terms, NULL, P, &mean)
    if not isfinite(out.log_z[0]):
        return False

    for t in range(T - 1, begin - 1, -1):
        if C.table_apart and t + 1 < T:
            table = C.table + (t + 1) * Q
            d_table = NULL if D == NULL else D.table + (t + 1) * Q
        if t == T - 1:
            for p in range(P):
                backward[t * P + p] = C.end[label_of(L, p)]
                if D != NULL:
                    w[t * P + p] = D.end[label_of(L, p)]
        else:
            after = (t + 1) * P
            for j in range(blocks(L)):
                B = block_of(L, j)
                for a in range(B.height):
                    count = lay_out(&B, a, 1, 0, B.width, NULL, table, local + after, backward + after, terms)
                    if D != NULL:
                        lay_out(&B, a, 1, 0, B.width, NULL, d_table, d_local + after, w + after, moves)
                    backward[t * P + source(&B, a)] = log_sum(terms, moves, count, &mean)
                    if D != NULL:
                        w[t * P + source(&B, a)] = mean
            for j in range(blocks(L)):
                B = block_of(L, j)
                count = B.height
                lay_out(&B, 0, count, 0, B.width, forward + t * P, table, local + after, backward + after, terms + B.at)
                if D != NULL:
                    lay_out(&B, 0, count, 0, B.width, u + t * P, d_table, d_local + after, w + after, moves + B.at)
            to_shares(terms, moves, Q)
            if C.table_apart:
                memcpy(out.transition + (t + 1) * Q, terms, Q * sizeof(double))
            else:
                add_scaled(out.transition, terms, weight, Q)
        lower(backward + t * P, P)
        for p in range(P):
            terms[p] = forward[t * P + p] + backward[t * P + p]
            if D != NULL:
                moves[p] = u[t * P + p] + w[t * P + p]
        to_shares(terms, moves, P)
        if begin:
            put_pairs(C, terms, t, weight, out.node, out.pair)
        else:
            memcpy(out.node + t * Y, terms, P * sizeof(double))
    return True


def recursions(
    StatePotentials potentials not None,
    StatePotentials direction,         # None for marginals
    const double[:, ::1] scores,       # [n, Y] F
    const double[:, ::1] d_scores,     # [n, Y] direction of F, or None
    const int64[::1] offsets,          # [S+1], sequence k is rows offsets[k]:offsets[k+1]
    const double[::1] weights,         # [S] multiply what is added to sums
    double[:, ::1] node,               # [n, Y] out: p(y_t | x)
    double[:, ::1] pair,               # [1, P] += weighted sums of p(y_{t-1}, y_t | x), or [n, P] out; None in order 1
    double[:, ::1] transition,         # [1, Q] += weighted sums of transitions, or [n, Q] out, zero before
    double[::1] log_z,                 # [S] out
):
    """Find marginals, or derivatives along a direction instead; log Z is not finite where nothing is possible."""
    cdef const Chain* whole = &potentials.chain
    cdef const States* L = &whole.states
    cdef Py_ssize_t k, at, T, own, longest = 0
    cdef Chain C, D
    cdef const Chain* along = NULL
    cdef const double* d_rows = NULL
    cdef Found out
    cdef Room R
    cdef double* work
    log_z[:] = 0.0
    if scores.shape[0] == 0:
        return
    for k in range(offsets.shape[0] - 1):
        longest = max(longest, offsets[k + 1] - offsets[k])
    own = scaled_room(longest, L.Y, L.P, L.Q)
    work = <double*>malloc((own + log_room(longest, max(L.P, L.Y), L.Q, direction is not None)) * sizeof(double))
    if work == NULL:
        raise MemoryError
    if direction is not None:
        along = &direction.chain
    with nogil:
        R = rooms(work, longest, L.Y, L.P, L.Q)
        if not whole.table_apart:
            exponentiate(whole, along, 0, True, &R)
        if whole.pairs != NULL and not whole.pairs_apart:
            R.edge_shift = kcrf_exponentials(whole.pairs, False, L.P, R.edge)
        for k in range(offsets.shape[0] - 1):
            at = offsets[k]
            T = offsets[k + 1] - at
            if T == 0:
                continue
            C = potentials.of(at, T)
            if direction is not None:
                D = direction.of(at, T)
                along, d_rows = &D, &d_scores[at, 0]
            out.node, out.log_z = &node[at, 0], &log_z[k]
            out.pair = &pair[at if C.pairs_apart else 0, 0] if C.pairs != NULL else NULL
            out.transition = &transition[at if C.table_apart else 0, 0]
            if not scaled_messages(&C, along, &scores[at, 0], d_rows, T, weights[k], &R, &out):
                log_messages(&C, along, &scores[at, 0], d_rows, T, weights[k], work + own, &out)
    free(work)


def forward(
    StatePotentials potentials not None,
    const double[:, ::1] scores,       # [n, Y] F
    const double[::1] before,          # [P] the message of the position before the first row
    double[:, ::1] out,                # [n, P]
):
    """Put forward messages in log space, for sequences that are not at their end yet.

    a_t[k] = log sum_j exp(a_{t-1}[j] + table_t[j, k]) + local_t[k] over states, each less its largest entry: they stay
    in range however long the sequence is. Minus infinity is impossible. Each row takes logarithms once, so log space
    costs little beside what is done with the messages.
    """
    cdef const Chain* C = &potentials.chain
    cdef const States* L = &C.states
    cdef Py_ssize_t t, p
    cdef double* terms = <double*>malloc(L.P * sizeof(double))
    if terms == NULL:
        raise MemoryError
    with nogil:
        for t in range(scores.shape[0]):
            log_step(
                L, C.table + (t * L.Q if C.table_apart else 0), NULL, &before[0] if t == 0 else &out[t - 1, 0], NULL,
                terms, NULL, &out[t, 0], NULL,
            )
            for p in range(L.P):
                if C.pairs != NULL:
                    out[t, p] += C.pairs[(t * L.P if C.pairs_apart else 0) + p]
                out[t, p] += scores[t, label_of(L, p)]
            lower(&out[t, 0], L.P)
    free(terms)
