"""Forward-backward of second order over all sequences at once, in the order and with the scales of `packed_chains`.

From position 1 on a state is a pair of labels. With U the exponentials of triples, messages P and Q that have taken up
their position, and B that have not,

    P_t(j, k) = sum_i P_{t-1}(i, j) U(i, j, k) E_t(j, k) X_t(k) / c_t
    B_{t-1}(i, j) = sum_k U(i, j, k) Q_t(j, k),    Q_t(j, k) = E_t(j, k) X_t(k) B_t(j, k) / c'_t

which are products of matrices, one for each middle label.

This is kept beside `packed_chains` for speed: chains of first order over pairs, with these products as their steps,
took about twice as long for a pass with 9 and with 26 labels, as they hold more arrays of pairs.
"""

from __future__ import annotations

import numpy as np

from ..system import Array, Backend, positions_within
from .packed_chains import LEAST, NEVER, ChainPotentials, Chains, Passed


class PairChains(Chains):
    """Sequences as chains of second order."""

    def __init__(self, offsets: np.ndarray, cut: np.ndarray | None, weights: np.ndarray, Y: int, backend: Backend):
        super().__init__(offsets, cut, weights, Y, backend)
        self.third = backend.array((positions_within(offsets) >= 2).astype(np.float64))  # [N] 1 at ends of triples

    def _sum_before(self, state: Array, U: Array) -> Array:
        """Return sum_i state(i, j) U(i, j, k) of each sequence, [n, Y, Y]."""
        found = self.backend.permuted(state, (2, 0, 1)) @ self.backend.permuted(U, (1, 0, 2))  # [j, n, k]
        return self.backend.permuted(found, (1, 0, 2))

    def _sum_after(self, state: Array, U: Array) -> Array:
        """Return sum_k U(i, j, k) state(j, k) of each sequence, [n, Y, Y]."""
        found = self.backend.permuted(state, (1, 0, 2)) @ self.backend.permuted(U, (1, 2, 0))  # [j, n, i]
        return self.backend.permuted(found, (1, 2, 0))

    def _sum_triples(self, before: Array, after: Array) -> Array:
        """Return sum_n before(i, j) after(j, k), [Y, Y, Y]."""
        found = self.backend.permuted(before, (2, 1, 0)) @ self.backend.permuted(after, (1, 0, 2))  # [j, i, k]
        return self.backend.permuted(found, (1, 0, 2))

    def _step_edges(self, E: Array, part: slice) -> Array:
        """Return edges into the positions of a step: [Y, Y], or [n, Y, Y] of edges in packed order."""
        return E if len(E.shape) == 2 else E[part]

    def _packed(self, values: Array) -> Array:
        return self.backend.rows(values, self.positions[0])

    def passed(self, potentials: ChainPotentials) -> Passed:
        backend, steps, Y = self.backend, self.steps, self.Y
        X, shift, E, edge_shift = self._exponentials(potentials)
        ends, end_shifts = self._ends(potentials.edges)
        top = backend.xp.amax(potentials.edges.triples)
        U, X = backend.xp.exp(potentials.edges.triples - top), self._packed(X)
        E = E if len(E.shape) == 2 else self._packed(E)
        local = [None if t == 0 else self._step_edges(E, part) * X[part][:, None, :] for t, part in enumerate(steps)]
        counts = [part.stop - part.start for part in steps]
        # Lists have an item for each step; those of step 0 are of single labels.
        forward: list[Array] = []  # P
        summed: list[Array] = []  # [n, Y, Y] sum_i P U, from step 2 on
        scales: list[Array] = []  # [n] c
        for t, part in enumerate(steps):
            if t == 0:
                came, state = None, ends[0] * X[part]
            elif t == 1:
                came, state = None, forward[0][: counts[t]][:, :, None] * local[t]
            else:
                came = self._sum_before(forward[t - 1][: counts[t]], U)
                state = came * local[t]
            scale = backend.xp.clip(_sums(state), NEVER, None)
            forward.append(state / _each(scale, state))
            summed.append(came)
            scales.append(scale)
        backward: list[Array] = [None] * len(steps)  # B
        pushed: list[Array] = [None] * len(steps)  # Q
        back_scales: list[Array] = [None] * len(steps)  # [n] c', from step 1 on
        for t in range(len(steps) - 1, -1, -1):
            longer = counts[t + 1] if t + 1 < len(steps) else 0
            last = ends[1, longer : counts[t]]
            last = last if t == 0 else last[:, None, :] + backend.zeros((counts[t] - longer, Y, Y))
            parts = [] if not longer else [pushed[1].sum(2) if t == 0 else self._sum_after(pushed[t + 1], U)]
            backward[t] = backend.xp.concatenate([*parts, last])
            if t:
                state = local[t] * backward[t]
                back_scales[t] = backend.xp.clip(_sums(state), NEVER, None)
                pushed[t] = state / back_scales[t][:, None, None]
        weights, triple = self._packed(self.weights), backend.zeros((Y, Y, Y))
        pairs: list[Array] = []  # p(y_{t-1}, y_t | x)
        log_zs: list[Array] = []
        trusted: list[Array] = []
        for t, part in enumerate(steps):
            joint = forward[t] * backward[t]
            z = backend.xp.clip(_sums(joint), NEVER, None)
            pairs.append(joint / _each(z, joint))
            log_zs.append(backend.xp.log(z))
            trusted.append((z > LEAST) & (scales[t] > LEAST))
            if t:
                trusted[t] = trusted[t] & (back_scales[t] > LEAST)
            if t >= 2:
                triple_z = backend.xp.clip(_sums(summed[t] * pushed[t]), NEVER, None)
                trusted[t] = trusted[t] & (triple_z > LEAST)
                share = (weights[part] / triple_z)[:, None, None]
                triple = triple + self._sum_triples(forward[t - 1][: counts[t]] * share, pushed[t])
        node = self._of_steps([own if t == 0 else own.sum(1) for t, own in enumerate(pairs)])
        if len(potentials.edges.transitions.shape) == 3:
            edge = self._of_steps([backend.zeros((counts[0], Y, Y)), *pairs[1:]])
        else:
            edge = backend.zeros((Y, Y))
            for part, own in list(zip(steps, pairs, strict=True))[1:]:
                edge = edge + (own * weights[part][:, None, None]).sum(0)
        log_z = self._of_steps([backend.xp.log(scale) for scale in scales]) + self.last * self._of_steps(log_zs)
        shifts = shift + self.inner * edge_shift + self.third * top + self.at_ends(end_shifts[:, None])
        return Passed(node, edge, triple * U, log_z, shifts, self._of_steps(trusted))

    def _of_steps(self, parts: list[Array]) -> Array:
        """Put values of steps in the order of positions."""
        return self.backend.rows(self.backend.xp.concatenate(parts), self.places[0])


def _sums(values: Array) -> Array:
    """Return sums over all labels of each sequence, [n]."""
    return values.sum(1) if len(values.shape) == 2 else values.sum(2).sum(1)


def _each(numbers: Array, values: Array) -> Array:
    """Return numbers [n] shaped to go with values [n, Y] or [n, Y, Y]."""
    return numbers[:, None] if len(values.shape) == 2 else numbers[:, None, None]
