"""Forward-backward of second order over all sequences at once, in the order and with the scales of `packed_chains`.

From position 1 on a state is a pair of labels. With U the exponentials of triples, messages P and Q that have taken up
their position, and B that have not,

    P_t(j, k) = sum_i P_{t-1}(i, j) U(i, j, k) E_t(j, k) X_t(k) / c_t
    B_{t-1}(i, j) = sum_k U(i, j, k) Q_t(j, k),    Q_t(j, k) = E_t(j, k) X_t(k) B_t(j, k) / c'_t

which are products of matrices, one for each middle label.

This is kept beside `packed_chains` for speed: chains of first order over pairs, with these products as their steps,
took about twice as long for a pass and for a tangent with 9 and with 26 labels, as they hold more arrays of pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

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

    def _pair_messages(self, potentials: ChainPotentials) -> _PairMessages:
        backend, steps = self.backend, self.steps
        X, shift, E, edge_shift = self._exponentials(potentials)
        ends, end_shifts = self._ends(potentials.edges)
        top = backend.xp.amax(potentials.edges.triples)
        U, X = backend.xp.exp(potentials.edges.triples - top), self._packed(X)
        E = E if len(E.shape) == 2 else self._packed(E)
        local = [None if t == 0 else self._step_edges(E, part) * X[part][:, None, :] for t, part in enumerate(steps)]
        forward: list[Array] = []
        summed: list[Array] = []
        scales: list[Array] = []
        for t, part in enumerate(steps):
            n = part.stop - part.start
            if t == 0:
                came, state = None, ends[0] * X[part]
            elif t == 1:
                came, state = None, forward[0][:n][:, :, None] * local[t]
            else:
                came = self._sum_before(forward[t - 1][:n], U)
                state = came * local[t]
            scale = backend.xp.clip(_sums(state), NEVER, None)
            forward.append(state / _each(scale, state))
            summed.append(came)
            scales.append(scale)
        backward: list[Array] = [None] * len(steps)
        pushed: list[Array] = [None] * len(steps)
        back_scales: list[Array] = [None] * len(steps)
        for t in range(len(steps) - 1, -1, -1):
            n = steps[t].stop - steps[t].start
            there = steps[t + 1].stop - steps[t + 1].start if t + 1 < len(steps) else 0
            last = ends[1, there:n]
            last = last if t == 0 else last[:, None, :] + backend.zeros((n - there, self.Y, self.Y))
            parts = [] if not there else [pushed[1].sum(2) if t == 0 else self._sum_after(pushed[t + 1], U)]
            backward[t] = backend.xp.concatenate([*parts, last])
            if t:
                state = local[t] * backward[t]
                back_scales[t] = backend.xp.clip(_sums(state), NEVER, None)
                pushed[t] = state / back_scales[t][:, None, None]
        z = [backend.xp.clip(_sums(a * b), NEVER, None) for a, b in zip(forward, backward, strict=True)]
        triple_z = [
            None if came is None else backend.xp.clip(_sums(came * after), NEVER, None)
            for came, after in zip(summed, pushed, strict=True)
        ]
        trusted = [(own > LEAST) & (scale > LEAST) for own, scale in zip(z, scales, strict=True)]
        for t, (own, scale) in enumerate(zip(triple_z, back_scales, strict=True)):
            trusted[t] = trusted[t] if scale is None else trusted[t] & (scale > LEAST)
            trusted[t] = trusted[t] if own is None else trusted[t] & (own > LEAST)
        log_z = self._of_steps([backend.xp.log(scale) for scale in scales])
        log_z = log_z + self.last * backend.xp.log(self._of_steps(z))
        shifts = shift + self.inner * edge_shift + self.third * top + self.at_ends(end_shifts[:, None])
        return _PairMessages(
            U, local, forward, backward, pushed, summed, scales, back_scales, z, triple_z, log_z, shifts,
            self._of_steps(trusted),
        )  # fmt: skip

    def _of_steps(self, parts: list[Array]) -> Array:
        """Put values of steps in the order of positions."""
        return self.backend.rows(self.backend.xp.concatenate(parts), self.places[0])

    def passed(self, potentials: ChainPotentials) -> Passed:
        found = self._pair_messages(potentials)
        pairs = [a * b / _each(z, a) for a, b, z in zip(found.forward, found.backward, found.z, strict=True)]
        triple, weights = self.backend.zeros((self.Y,) * 3), self._packed(self.weights)
        for t, part in enumerate(self.steps):
            if t >= 2:
                n = part.stop - part.start
                share = weights[part] / found.triple_z[t]
                triple = triple + self._sum_triples(found.forward[t - 1][:n] * share[:, None, None], found.pushed[t])
        return self._found(pairs, triple * found.U, found, potentials)

    def _found(self, pairs: list[Array], triple: Array, found: _PairMessages, potentials: ChainPotentials) -> Passed:
        """Return the results of a pass, from pairs of each step; step 0 has single labels."""
        backend, weights = self.backend, self._packed(self.weights)
        node = self._of_steps([own if t == 0 else own.sum(1) for t, own in enumerate(pairs)])
        if len(potentials.edges.transitions.shape) == 3:
            none = backend.zeros((pairs[0].shape[0], self.Y, self.Y))
            edge = self._of_steps([none, *pairs[1:]])
        else:
            edge = backend.zeros((self.Y, self.Y))
            for part, own in list(zip(self.steps, pairs, strict=True))[1:]:
                edge = edge + (own * weights[part][:, None, None]).sum(0)
        return Passed(node, edge, triple, found.log_z, found.shift, found.trusted)

    def tangent(self, potentials: ChainPotentials, direction: ChainPotentials) -> Passed:
        backend, found, steps = self.backend, self._pair_messages(potentials), self.steps
        d_scores, d_edges = self._packed(direction.scores), direction.edges
        d_pairs = d_edges.transitions
        d_pairs = d_pairs if len(d_pairs.shape) == 2 else self._packed(d_pairs)
        bent = found.U * d_edges.triples
        both = backend.xp.stack([d_edges.start, d_edges.end])[:, None, :]
        d_ends = backend.xp.where(self.open, both, 0.0)  # [2, sequences, Y]
        ends = self._ends(potentials.edges)[0]
        local = [
            None if t == 0 else self._step_edges(d_pairs, part) + d_scores[part][:, None, :]
            for t, part in enumerate(steps)
        ]
        forward: list[Array] = []  # tangents
        summed: list[Array] = []
        for t, part in enumerate(steps):
            n = part.stop - part.start
            came = None
            if t == 0:
                state = found.forward[0] * (d_ends[0] + d_scores[part])
            elif t == 1:
                state = forward[0][:n][:, :, None] * found.local[t] / found.scales[t][:, None, None]
            else:
                came = self._sum_before(forward[t - 1][:n], found.U)
                came = came + self._sum_before(found.forward[t - 1][:n], bent)
                state = came * found.local[t] / found.scales[t][:, None, None]
            forward.append(state if t == 0 else state + found.forward[t] * local[t])
            summed.append(came)
        backward: list[Array] = [None] * len(steps)
        pushed: list[Array] = [None] * len(steps)
        for t in range(len(steps) - 1, -1, -1):
            n = steps[t].stop - steps[t].start
            there = steps[t + 1].stop - steps[t + 1].start if t + 1 < len(steps) else 0
            last = ends[1, there:n] * d_ends[1, there:n]
            last = last if t == 0 else last[:, None, :] + backend.zeros((n - there, self.Y, self.Y))
            parts = []
            if there and t == 0:
                parts = [pushed[1].sum(2)]
            elif there:
                parts = [self._sum_after(pushed[t + 1], found.U) + self._sum_after(found.pushed[t + 1], bent)]
            backward[t] = backend.xp.concatenate([*parts, last])
            if t:
                came = found.local[t] * backward[t] / found.back_scales[t][:, None, None]
                pushed[t] = came + found.pushed[t] * local[t]
        pairs, triple = [], backend.zeros((self.Y,) * 3)
        weights = self._packed(self.weights)
        for t, part in enumerate(steps):
            n = part.stop - part.start
            change, z = forward[t] * found.backward[t] + found.forward[t] * backward[t], _each(found.z[t], forward[t])
            change, own = change / z, found.forward[t] * found.backward[t] / z
            pairs.append(change - own * _each(_sums(change), own))
            if t < 2:
                continue
            mean = _sums(summed[t] * found.pushed[t] + found.summed[t] * pushed[t]) / found.triple_z[t]
            share = (weights[part] / found.triple_z[t])[:, None, None]
            before, d_before = found.forward[t - 1][:n] * share, forward[t - 1][:n] * share
            triple = triple + bent * self._sum_triples(before, found.pushed[t])
            inner = self._sum_triples(d_before, found.pushed[t])
            inner = inner + self._sum_triples(before, pushed[t] - found.pushed[t] * mean[:, None, None])
            triple = triple + found.U * inner
        return self._found(pairs, triple, found, potentials)


def _sums(values: Array) -> Array:
    """Return sums over all labels of each sequence, [n]."""
    return values.sum(1) if len(values.shape) == 2 else values.sum(2).sum(1)


def _each(numbers: Array, values: Array) -> Array:
    """Return numbers [n] shaped to go with values [n, Y] or [n, Y, Y]."""
    return numbers[:, None] if len(values.shape) == 2 else numbers[:, None, None]


@dataclass(frozen=True)
class _PairMessages:
    """Messages of a second-order pass, a list item for each step; those of step 0 are of single labels."""

    U: Array  # [Y, Y, Y]
    local: list[Array]  # [n, Y, Y] E X
    forward: list[Array]  # P
    backward: list[Array]  # B
    pushed: list[Array]  # Q
    summed: list[Array]  # [n, Y, Y] sum_i P U, from step 2 on
    scales: list[Array]  # [n] c
    back_scales: list[Array]  # [n] c', from step 1 on
    z: list[Array]  # [n]
    triple_z: list[Array]  # [n] from step 2 on
    log_z: Array  # [N]
    shift: Array  # [N]
    trusted: Array  # [N] bool
