"""The tangent of forward-backward: the derivative of all marginals along a direction of the potentials.

Beside each message of the scaled recursions (see `_chain`) runs its derivative, so the long-range correlations of the
chain are all in it: with a feature map on both sides it is the exact product of P's Hessian with a vector. Where
scaling cannot be trusted, a sequence is done again in log space.
"""

from libc.math cimport exp, log, INFINITY, isfinite
from libc.string cimport memset

from ._scaling cimport (
    add_rows, add_scaled, exponentials, exponentiate, int64, kcrf_depth, kcrf_lossless, kcrf_outweighs, lower,
    real, trusted,
)

STATUS_OK = -1


def tangent(
    const real[:, ::1] scores,         # [n, Y] F
    const double[:, :, ::1] edges,     # [1, Y, Y] shared, or [n, Y, Y]
    const double[::1] start,           # [Y]
    const double[::1] end,             # [Y]
    const int64[::1] offsets,          # [S+1]
    const double[::1] weights,         # [S] multiply what is added to shared edge derivatives
    const real[:, ::1] d_scores,       # [n, Y] direction of F
    const double[:, :, ::1] d_edges,   # direction of the edges, shaped like them
    const double[::1] d_start,         # [Y]
    const double[::1] d_end,           # [Y]
    real[:, ::1] d_node,               # [n, Y] out: derivative of the node marginals
    double[:, :, ::1] d_edge,          # [1, Y, Y] += that of the weighted sums, or [n, Y, Y] out
    double[::1] work,                  # scratch of work_size(longest, Y)
):
    """Derivative of all marginals along a direction of the potentials."""
    cdef Py_ssize_t k, first, T, Y = scores.shape[1]
    cdef bint shared = edges.shape[0] == 1 and d_edge.shape[0] == 1
    cdef Py_ssize_t bad = -1
    cdef const double* E = &edges[0, 0, 0]
    cdef const double* dE = &d_edges[0, 0, 0]
    cdef double* out = &d_edge[0, 0, 0]
    with nogil:
        if shared:
            exponentiate(E, Y, &work[0], &work[0] + Y * Y)
            multiply_edges(&work[0], dE, Y, &work[0] + 2 * Y * Y, &work[0] + 3 * Y * Y)
        for k in range(offsets.shape[0] - 1):
            first = offsets[k]
            T = offsets[k + 1] - first
            if T == 0:
                continue
            if not shared:
                E = &edges[first, 0, 0]
                dE = &d_edges[first, 0, 0]
                out = &d_edge[first, 0, 0]
            if not scaled_tangent(
                &scores[first, 0], E, shared, &start[0], &end[0],
                &d_scores[first, 0], dE, &d_start[0], &d_end[0], T, Y, weights[k], &work[0],
                &d_node[first, 0], out,
            ):
                if not log_tangent(
                    &scores[first, 0], E, shared, &start[0], &end[0],
                    &d_scores[first, 0], dE, &d_start[0], &d_end[0], T, Y, weights[k], &work[0] + 6 * Y * Y,
                    &d_node[first, 0], out,
                ) and bad < 0:
                    bad = k
    return bad


def work_size(Py_ssize_t longest, Py_ssize_t Y):
    """Doubles of scratch that tangent needs for sequences of up to `longest` positions."""
    return 6 * Y * Y + (4 * longest + 8) * Y


cdef void multiply_edges(
    const double* E, const double* dE, Py_ssize_t Y, double* out, double* transposed
) noexcept nogil:
    """E * dE and its transpose; a forbidden transition stays forbidden whatever its direction."""
    cdef Py_ssize_t i, j
    for i in range(Y):
        for j in range(Y):
            out[i * Y + j] = E[i * Y + j] * dE[i * Y + j] if E[i * Y + j] > 0.0 else 0.0
            transposed[j * Y + i] = out[i * Y + j]


cdef bint scaled_tangent(
    const real* scores, const double* E, bint shared, const double* start, const double* end,
    const real* d_scores, const double* dE, const double* d_start, const double* d_end,
    Py_ssize_t T, Py_ssize_t Y, double weight, double* work, real* d_node, double* d_edge,
) noexcept nogil:
    """The scaled recursions with their derivatives beside them; False where scaling cannot be trusted.

    Beside each message m stands m times the derivative of log m, less its mean under the marginals: that
    stays bounded however long the sequence is, and no small number is ever divided by.
    """
    cdef double* forward_edges = work                      # [Y, Y] exp(E)
    cdef double* backward_edges = work + Y * Y             # [Y, Y] its transpose
    cdef double* forward_change = work + 2 * Y * Y         # [Y, Y] exp(E) dE
    cdef double* backward_change = work + 3 * Y * Y        # [Y, Y] its transpose
    cdef double* sums = work + 4 * Y * Y                   # [Y, Y] of alpha g / Z
    cdef double* changes = work + 5 * Y * Y                # [Y, Y] of its derivative, edges held
    cdef double* alpha = work + 6 * Y * Y                  # [T, Y]
    cdef double* psi = alpha + T * Y                       # [T, Y]
    cdef double* v = psi + T * Y                           # [T, Y] alpha times d log alpha
    cdef double* g = v + T * Y                             # [Y] psi beta
    cdef double* h = g + Y                                 # [Y] psi beta times d log(psi beta)
    cdef double* back = h + Y                              # [Y] beta
    cdef double* r = back + Y                              # [Y] beta times d log beta
    cdef double* left = r + Y                              # [Y] alpha / Z
    cdef Py_ssize_t t, i, j
    cdef double top, total, scale, mean, a, product = 1.0, scales = 0.0

    for t in range(T):
        top = exponentials(&scores[t * Y], Y, &psi[t * Y])
        if not isfinite(top):
            return False
        if t == 0:
            top = exponentials(start, Y, alpha)
            if not isfinite(top):
                return False
            for j in range(Y):
                alpha[j] *= psi[j]
                v[j] = alpha[j] * (d_start[j] + d_scores[j]) if alpha[j] > 0.0 else 0.0
        else:
            if not shared:
                exponentiate(E + t * Y * Y, Y, forward_edges, backward_edges)
                multiply_edges(forward_edges, dE + t * Y * Y, Y, forward_change, backward_change)
            memset(&alpha[t * Y], 0, Y * sizeof(double))
            memset(&v[t * Y], 0, Y * sizeof(double))
            add_rows(&alpha[t * Y], forward_edges, &alpha[(t - 1) * Y], Y, Y)
            add_rows(&v[t * Y], forward_edges, &v[(t - 1) * Y], Y, Y)
            add_rows(&v[t * Y], forward_change, &alpha[(t - 1) * Y], Y, Y)
            for j in range(Y):
                alpha[t * Y + j] *= psi[t * Y + j]
                v[t * Y + j] = v[t * Y + j] * psi[t * Y + j] + alpha[t * Y + j] * d_scores[t * Y + j]
        total = 0.0
        mean = 0.0
        for j in range(Y):
            total += alpha[t * Y + j]
            mean += v[t * Y + j]
        if not trusted(total):
            return False
        product *= total
        if product < 1e-150 or product > 1e150:
            scales += log(product)
            product = 1.0
        scale = 1.0 / total
        mean *= scale
        for j in range(Y):
            v[t * Y + j] = (v[t * Y + j] - mean * alpha[t * Y + j]) * scale
            alpha[t * Y + j] *= scale

    top = exponentials(end, Y, back)
    if not isfinite(top):
        return False
    for j in range(Y):
        r[j] = back[j] * d_end[j] if back[j] > 0.0 else 0.0
    if shared:
        memset(sums, 0, Y * Y * sizeof(double))
        memset(changes, 0, Y * Y * sizeof(double))
    t = T - 1
    while True:
        # back and r hold beta at t and its derivative; both are brought to <alpha, beta> = 1, mean change 0.
        total = 0.0
        for j in range(Y):
            total += alpha[t * Y + j] * back[j]
        if not trusted(total):
            return False
        if t == T - 1 and not kcrf_outweighs(
            scales + log(product) + log(total), T, log(<double>Y)
        ) and not kcrf_lossless(
            scores, real is float, T, Y, alpha, Y, Y, kcrf_depth(start, False, Y), E, Y * Y, not shared,
            kcrf_depth(E, False, Y * Y), 0.0,
        ):
            return False
        scale = 1.0 / total
        mean = 0.0
        for j in range(Y):
            mean += v[t * Y + j] * back[j] + alpha[t * Y + j] * r[j]
        mean *= scale
        for j in range(Y):
            d_node[t * Y + j] = <real>(
                scale * (v[t * Y + j] * back[j] + alpha[t * Y + j] * (r[j] - mean * back[j]))
            )
        if t == 0:
            break
        top = 0.0
        for j in range(Y):
            if back[j] > top:
                top = back[j]
        top = 1.0 / top
        for j in range(Y):
            back[j] *= top
            r[j] = r[j] * top - mean * back[j]
            g[j] = psi[t * Y + j] * back[j]
            h[j] = psi[t * Y + j] * r[j] + g[j] * d_scores[t * Y + j] if g[j] > 0.0 else 0.0
        if not shared:
            exponentiate(E + t * Y * Y, Y, forward_edges, backward_edges)
            multiply_edges(forward_edges, dE + t * Y * Y, Y, forward_change, backward_change)
        memset(back, 0, Y * sizeof(double))
        memset(r, 0, Y * sizeof(double))
        add_rows(back, backward_edges, g, Y, Y)
        add_rows(r, backward_edges, h, Y, Y)
        add_rows(r, backward_change, g, Y, Y)
        total = 0.0
        mean = 0.0
        for i in range(Y):
            total += alpha[(t - 1) * Y + i] * back[i]
            mean += v[(t - 1) * Y + i] * back[i] + alpha[(t - 1) * Y + i] * r[i]
        if not trusted(total):
            return False
        scale = 1.0 / total
        mean *= scale
        # The pair marginal is left_i exp(E_ij) g_j; its derivative has one part for each factor.
        for i in range(Y):
            left[i] = scale * alpha[(t - 1) * Y + i]
            a = scale * v[(t - 1) * Y + i] - mean * left[i]
            if shared:
                add_scaled(&sums[i * Y], g, left[i], Y)
                add_scaled(&changes[i * Y], g, a, Y)
                add_scaled(&changes[i * Y], h, left[i], Y)
            else:
                for j in range(Y):
                    d_edge[(t * Y + i) * Y + j] = (
                        (a * g[j] + left[i] * h[j]) * forward_edges[i * Y + j]
                        + left[i] * g[j] * forward_change[i * Y + j]
                    )
        t -= 1
    if shared:
        for i in range(Y * Y):
            d_edge[i] += weight * (changes[i] * forward_edges[i] + sums[i] * forward_change[i])
    else:
        memset(d_edge, 0, Y * Y * sizeof(double))
    return True


cdef bint log_tangent(
    const real* scores, const double* E, bint shared, const double* start, const double* end,
    const real* d_scores, const double* dE, const double* d_start, const double* d_end,
    Py_ssize_t T, Py_ssize_t Y, double weight, double* rows, real* d_node, double* d_edge,
) noexcept nogil:
    """The same in log space, for potentials that scaling cannot take; False where no path is left."""
    cdef double* forward = rows                   # [T, Y] log alpha, less the largest of each row
    cdef double* u = rows + T * Y                 # [T, Y] its derivative
    cdef double* backward = rows + 2 * T * Y      # [T, Y] log beta, likewise
    cdef double* w = rows + 3 * T * Y             # [T, Y] its derivative
    cdef Py_ssize_t t, i, j, at
    cdef const double* edge
    cdef const double* change
    cdef double top, total, mean, value
    for j in range(Y):
        forward[j] = start[j] + scores[j]
        u[j] = d_start[j] + d_scores[j]
        backward[(T - 1) * Y + j] = end[j]
        w[(T - 1) * Y + j] = d_end[j]
    lower(forward, Y)
    lower(backward + (T - 1) * Y, Y)
    for t in range(1, T):
        edge = E if shared else E + t * Y * Y
        change = dE if shared else dE + t * Y * Y
        at = (t - 1) * Y
        for j in range(Y):
            top = -INFINITY
            for i in range(Y):
                if forward[at + i] + edge[i * Y + j] > top:
                    top = forward[at + i] + edge[i * Y + j]
            total = 0.0
            mean = 0.0
            if top > -INFINITY:
                for i in range(Y):
                    value = exp(forward[at + i] + edge[i * Y + j] - top)
                    if value > 0.0:
                        total += value
                        mean += value * (u[at + i] + change[i * Y + j])
            forward[t * Y + j] = top + log(total) + scores[t * Y + j] if total > 0.0 else -INFINITY
            u[t * Y + j] = mean / total + d_scores[t * Y + j] if total > 0.0 else 0.0
        lower(forward + t * Y, Y)
    for t in range(T - 2, -1, -1):
        edge = E if shared else E + (t + 1) * Y * Y
        change = dE if shared else dE + (t + 1) * Y * Y
        at = (t + 1) * Y
        for i in range(Y):
            top = -INFINITY
            for j in range(Y):
                if edge[i * Y + j] + scores[at + j] + backward[at + j] > top:
                    top = edge[i * Y + j] + scores[at + j] + backward[at + j]
            total = 0.0
            mean = 0.0
            if top > -INFINITY:
                for j in range(Y):
                    value = exp(edge[i * Y + j] + scores[at + j] + backward[at + j] - top)
                    if value > 0.0:
                        total += value
                        mean += value * (w[at + j] + change[i * Y + j] + d_scores[at + j])
            backward[t * Y + i] = top + log(total) if total > 0.0 else -INFINITY
            w[t * Y + i] = mean / total if total > 0.0 else 0.0
        lower(backward + t * Y, Y)
    # The derivative of a share is the share times what its own logarithm moves more than that of all of them.
    for t in range(T):
        top = -INFINITY
        for j in range(Y):
            if forward[t * Y + j] + backward[t * Y + j] > top:
                top = forward[t * Y + j] + backward[t * Y + j]
        total = 0.0
        mean = 0.0
        for j in range(Y):
            value = exp(forward[t * Y + j] + backward[t * Y + j] - top)
            total += value
            if value > 0.0:
                mean += value * (u[t * Y + j] + w[t * Y + j])
        # Also where the scores have NaN, which hides from comparisons but not from this sum.
        if not isfinite(top + total):
            return False
        mean /= total
        for j in range(Y):
            value = exp(forward[t * Y + j] + backward[t * Y + j] - top) / total
            d_node[t * Y + j] = <real>(value * (u[t * Y + j] + w[t * Y + j] - mean)) if value > 0.0 else <real>0.0
    if not shared:
        memset(d_edge, 0, Y * Y * sizeof(double))
    for t in range(1, T):
        edge = E if shared else E + t * Y * Y
        change = dE if shared else dE + t * Y * Y
        at = t * Y
        top = -INFINITY
        for i in range(Y):
            for j in range(Y):
                if forward[at - Y + i] + edge[i * Y + j] + scores[at + j] + backward[at + j] > top:
                    top = forward[at - Y + i] + edge[i * Y + j] + scores[at + j] + backward[at + j]
        total = 0.0
        mean = 0.0
        for i in range(Y):
            for j in range(Y):
                value = exp(forward[at - Y + i] + edge[i * Y + j] + scores[at + j] + backward[at + j] - top)
                total += value
                if value > 0.0:
                    mean += value * (u[at - Y + i] + change[i * Y + j] + d_scores[at + j] + w[at + j])
        mean /= total
        for i in range(Y):
            for j in range(Y):
                value = exp(forward[at - Y + i] + edge[i * Y + j] + scores[at + j] + backward[at + j] - top) / total
                if value > 0.0:
                    value *= u[at - Y + i] + change[i * Y + j] + d_scores[at + j] + w[at + j] - mean
                if shared:
                    d_edge[i * Y + j] += weight * value
                else:
                    d_edge[(at + i) * Y + j] = value
    return True
