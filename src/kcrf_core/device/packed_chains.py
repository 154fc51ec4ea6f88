"""Forward-backward over all sequences at once, on arrays of a backend.

Sequences are packed: sorted by length, the longest first, step s works on the first n_s of them, those that are longer
than s. So nothing is padded, shapes depend on the data alone, and there are as many steps as the longest sequence has
positions. Both directions go in one array [2, n_s, Y]: at step s the forward messages are those of position s, the
backward ones those of the s-th position from the end.

Messages are exponentials, scaled to sum to one at every step, in double precision whatever scores are in. With E and X
the exponentials of edges and scores, less their largest,

    f_t = (f_{t-1} E) X_t / c_t        b_t = E r_{t+1},    r_t = b_t X_t / c'_t        p_t = f_t b_t / z_t

and the tangents of all of them are linear in those of the potentials, with scales as they are. What underflows is below
1e-308 of a message, and takes part in p_t with less than 1e-308 / z_t: where every scale and every z is above `LEAST`
nothing is lost. `Passed.trusted` says so; others are done again on the CPU, which goes through logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..chains import Edges
from ..system import DOUBLE, Array, Backend

LEAST = 1e-250
NEVER = 1e-300  # what scales are raised to, so that nothing is divided by zero before it is found out


class Packing:
    """Where each position stands in packed order, forward and backward."""

    def __init__(self, offsets: np.ndarray, backend: Backend):
        lengths = np.diff(offsets)
        order = np.argsort(-lengths, kind="stable")
        order = order[lengths[order] > 0]
        sorted_lengths, starts = lengths[order], offsets[:-1][order]
        longest = int(sorted_lengths.max(initial=0))
        # How many sequences are longer than each step.
        self.counts = [int(count) for count in np.searchsorted(-sorted_lengths, -np.arange(longest), side="left")]
        self.ends = np.concatenate([[0], np.cumsum(self.counts)]).astype(np.int64).tolist()
        forward, backward = [], []
        for step, count in enumerate(self.counts):
            forward.append(starts[:count] + step)
            backward.append(starts[:count] + sorted_lengths[:count] - 1 - step)
        N = int(offsets[-1])
        packed = [np.concatenate([*each, []]).astype(np.int64) for each in (forward, backward)]
        # Positions by packed places, and the other way round.
        self.positions = [backend.array(each) for each in packed]
        places = [np.empty(N, dtype=np.int64) for _ in packed]
        for place, own in zip(places, packed, strict=True):
            place[own] = np.arange(N)
        self.places = [backend.array(each) for each in places]
        self.order, self.size = order, N

    def steps(self) -> list[slice]:
        """Packed places of each step."""
        return [slice(first, first + count) for first, count in zip(self.ends, self.counts, strict=False)]


@dataclass(frozen=True)
class ChainPotentials:
    """ChainPotentials of packed sequences, in double precision."""

    scores: Array  # [N, Y]
    edges: Edges  # of arrays of the backend; transitions [Y, Y] or [N, Y, Y]


@dataclass(frozen=True)
class Passed:
    """What a pass finds of each position. Pairs of first positions, where there are none, are zero or weigh nothing."""

    node: Array  # [N, Y] p(y_t | x)
    edge: Array  # [Y, Y] weighted sum over positions, or [N, Y, Y]
    triple: Array | None  # [Y, Y, Y] weighted sum
    log_z: Array  # [N] what each position adds to log Z of its sequence, but for shifts of potentials
    shift: Array  # [N] those shifts
    trusted: Array  # [N] bool


class Chains:
    """Sequences of one problem, or some of them, as chains of first order on a device."""

    def __init__(self, offsets: np.ndarray, cut: np.ndarray | None, weights: np.ndarray, Y: int, backend: Backend):
        self.backend, self.Y, self.packing = backend, Y, Packing(offsets, backend)
        lengths = np.diff(offsets)
        filled = lengths > 0
        first, last = offsets[:-1][filled], offsets[1:][filled] - 1
        N = int(offsets[-1])
        each = np.repeat(weights, lengths)
        self.weights = backend.array(each, DOUBLE)  # [N]
        inner, is_last = np.ones(N), np.zeros(N)
        inner[first], is_last[last] = 0.0, 1.0
        self.inner, self.last = backend.array(inner), backend.array(is_last)  # [N] 1 or 0
        self.pair_weights = self.weights * self.inner
        order = self.packing.order
        open_ends = np.ones((2, len(order), 1), dtype=bool) if cut is None else ~cut[order].T[:, :, None]
        self.open = backend.array(open_ends)  # [2, sequences, 1] whether first and last labels have potentials

    # ------------------------------------------------------------------------- potentials, exponentiated

    def _ends(self, edges: Edges) -> tuple[Array, Array]:
        """exp of s and e less their largest, [2, sequences, Y], and the largest of both [2]."""
        both = self.backend.xp.stack([edges.start, edges.end])  # [2, Y]
        largest = self.backend.xp.amax(both, 1)
        values = self.backend.xp.exp(both - largest[:, None])[:, None, :]
        return self.backend.xp.where(self.open, values, 1.0), largest

    def _exponentials(self, potentials: ChainPotentials) -> tuple[Array, Array, Array, Array]:
        """exp of scores [N, Y] and edges, less their largest, and those: [N] and scalar, or [N]."""
        backend, scores, pairs = self.backend, potentials.scores, potentials.edges.transitions
        largest = backend.xp.amax(scores, 1)
        X = backend.xp.exp(scores - largest[:, None])
        if len(pairs.shape) == 2:
            top = backend.xp.amax(pairs)
            return X, largest, backend.xp.exp(pairs - top), top
        top = backend.xp.amax(backend.xp.amax(pairs, 2), 1)
        return X, largest, backend.xp.exp(pairs - top[:, None, None]), top

    def _both_ways(self, values: Array) -> Array:
        """Values of positions in packed order, forward and backward, [2, N, ...]."""
        return self.backend.xp.stack([self.backend.rows(values, each) for each in self.packing.positions])

    def _edges_both_ways(self, E: Array) -> Array:
        """Edges that step into each packed place, both ways: [2, Y, Y] of shared ones, or [2, N, Y, Y].

        Going backward a step into position t takes the edges that lead from t to t + 1, transposed.
        """
        backend = self.backend
        if len(E.shape) == 2:
            return backend.xp.stack([E, backend.permuted(E, (1, 0))])
        after = backend.xp.concatenate([E[1:], E[:1]])
        turned = backend.permuted(after, (0, 2, 1))
        forward, backward = self.packing.positions
        return backend.xp.stack([backend.rows(E, forward), backend.rows(turned, backward)])

    def _stepped(self, state: Array, E: Array, part: slice) -> Array:
        """[2, n, Y] times the edges that lead into a step."""
        if len(E.shape) == 3:
            return state @ E
        return (state[:, :, None, :] @ E[:, part])[:, :, 0, :]

    def _in_order(self, packed: Array, way: int) -> Array:
        """Values of packed places by positions."""
        return self.backend.rows(packed[way], self.packing.places[way])

    # ------------------------------------------------------------------------- passes

    def _messages(self, potentials: ChainPotentials) -> _Messages:
        backend = self.backend
        X, shift, E, edge_shift = self._exponentials(potentials)
        ends, end_shifts = self._ends(potentials.edges)
        own, into = self._both_ways(X), self._edges_both_ways(E)
        before, after, scales = [], [], []
        state = None
        for part in self.packing.steps():
            came = ends if state is None else self._stepped(state[:, : part.stop - part.start], into, part)
            state = came * own[:, part]
            scale = backend.xp.clip(state.sum(2), NEVER, None)
            state = state / scale[:, :, None]
            before.append(came[1])
            after.append(state[0])
            scales.append(scale)
        scales = backend.xp.concatenate(scales, 1)
        left = backend.rows(backend.xp.concatenate(after), self.packing.places[0])  # f
        back = backend.rows(backend.xp.concatenate(before), self.packing.places[1])  # b
        scale, back_scale = self._in_order(scales, 0), self._in_order(scales, 1)
        pushed = back * X / back_scale[:, None]  # r
        found = left * back
        z = found.sum(1)
        pair_z = z * scale / back_scale  # (f_{t-1} E) r_t
        trusted = (scale > LEAST) & (back_scale > LEAST)
        trusted = trusted & (z > LEAST) & ((pair_z > LEAST) | (self.inner == 0))
        z, pair_z = backend.xp.clip(z, NEVER, None), backend.xp.clip(pair_z, NEVER, None)
        log_z = backend.xp.log(scale) + self.last * backend.xp.log(z)
        # First and last positions take potentials of ends, others those of the edges before them.
        shifts = shift + self.inner * edge_shift
        shifts = shifts + self._end_shifts(end_shifts)
        return _Messages(
            E, own, into, scales, left, back, pushed, found / z[:, None], z, pair_z, log_z, shifts, trusted
        )

    def _end_shifts(self, largest: Array) -> Array:
        """Of first and last positions, [N]."""
        backend = self.backend
        count = self.packing.counts[0] if self.packing.counts else 0
        at_ends = backend.xp.where(self.open[:, :, 0], largest[:, None], 0.0)  # [2, sequences], of first packed places
        rest = backend.zeros((2, self.packing.size - count))
        both = backend.xp.concatenate([at_ends, rest], 1)
        return self._in_order(both, 0) + self._in_order(both, 1)

    def passed(self, potentials: ChainPotentials) -> Passed:
        """Marginals, and what log Z is made of."""
        found = self._messages(potentials)
        if len(found.E.shape) == 3:
            edge = self._pairs(found)
        else:
            edge = found.E * (self._before(found.left).T @ (found.pushed * (self.pair_weights / found.pair_z)[:, None]))
        return Passed(found.node, edge, None, found.log_z, found.shift, found.trusted)

    def _before(self, values: Array) -> Array:
        """Of the position before each; of the first position any."""
        return self.backend.xp.concatenate([values[-1:], values[:-1]])

    def _pairs(self, found: _Messages) -> Array:
        """p(y_{t-1}, y_t | x) of every position, zero at first ones, [N, Y, Y]."""
        joint = self._before(found.left)[:, :, None] * found.E * found.pushed[:, None, :]
        return joint * (self.inner / found.pair_z)[:, None, None]

    def tangent(self, potentials: ChainPotentials, direction: ChainPotentials) -> Passed:
        """Derivatives of marginals along a direction, in the place of marginals."""
        backend, found = self.backend, self._messages(potentials)
        d_scores, d_edges = direction.scores, direction.edges
        shared = len(found.E.shape) == 2
        bent = found.E * d_edges.transitions
        into, bent_into = found.into, self._edges_both_ways(bent)
        d_own = self._both_ways(d_scores)
        ends = self._ends(potentials.edges)[0]
        d_ends = ends * backend.xp.where(self.open, backend.xp.stack([d_edges.start, d_edges.end])[:, None, :], 0.0)
        forward, backward = self.packing.positions
        states = backend.xp.stack([backend.rows(found.left, forward), backend.rows(found.pushed, backward)])  # packed
        d_came, d_left = [], []
        state: Array = None
        d_state: Array = None
        for part in self.packing.steps():
            n = part.stop - part.start
            if d_state is None:
                came = d_ends
            else:
                came = self._stepped(d_state[:, :n], into, part) + self._stepped(state[:, :n], bent_into, part)
            state = states[:, part]
            d_state = came * found.own[:, part] / found.scales[:, part][:, :, None] + state * d_own[:, part]
            d_came.append(came)
            d_left.append(d_state)
        packed = backend.xp.concatenate(d_came, 1), backend.xp.concatenate(d_left, 1)
        d_left, d_pushed = self._in_order(packed[1], 0), self._in_order(packed[1], 1)
        d_back = self._in_order(packed[0], 1)
        change = (d_left * found.back + found.left * d_back) / found.z[:, None]
        node = change - found.node * change.sum(1)[:, None]
        before, d_before = self._before(found.left), self._before(d_left)
        if shared:
            # The mean of all that changes, at each pair.
            mean = ((d_before @ found.E + before @ bent) * found.pushed + (before @ found.E) * d_pushed).sum(1)
            mean = (mean / found.pair_z)[:, None]
            weights = (self.pair_weights / found.pair_z)[:, None]
            ahead, d_ahead = found.pushed * weights, d_pushed * weights
            edge = found.E * (d_before.T @ ahead + before.T @ (d_ahead - ahead * mean)) + bent * (before.T @ ahead)
        else:
            joint = d_before[:, :, None] * found.E * found.pushed[:, None, :]
            joint = joint + before[:, :, None] * (bent * found.pushed[:, None, :] + found.E * d_pushed[:, None, :])
            joint = joint * (self.inner / found.pair_z)[:, None, None]
            edge = joint - self._pairs(found) * joint.sum(2).sum(1)[:, None, None]
        return Passed(node, edge, None, found.log_z, found.shift, found.trusted)


@dataclass(frozen=True)
class _Messages:
    """Messages of a first-order pass, by positions but for those that are packed."""

    E: Array  # [Y, Y] or [N, Y, Y] exp of edges
    own: Array  # [2, N, Y] X, packed
    into: Array  # [2, Y, Y] or [2, N, Y, Y] E, packed
    scales: Array  # [2, N] packed
    left: Array  # [N, Y] f
    back: Array  # [N, Y] b
    pushed: Array  # [N, Y] r
    node: Array  # [N, Y]
    z: Array  # [N]
    pair_z: Array  # [N]
    log_z: Array  # [N]
    shift: Array  # [N]
    trusted: Array  # [N] bool
