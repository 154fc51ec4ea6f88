"""Forward-backward over all sequences at once, on arrays of a backend.

Sequences are packed: sorted by length, the longest first, step s works on the first n_s of them, those that are longer
than s. So nothing is padded, shapes depend on the data alone, and there are as many steps as the longest sequence has
positions. Both directions go in one array [2, n_s, Y]: at step s the forward messages are those of position s, the
backward ones those of the s-th position from the end.

Messages are exponentials, scaled to sum to one at every step, in double precision whatever scores are in. With E and X
the exponentials of edges and scores, less their largest,

    f_t = (f_{t-1} E) X_t / c_t        b_t = E r_{t+1},    r_t = b_t X_t / c'_t        p_t = f_t b_t / z_t

What underflows is below 1e-308 of a message, and takes part in p_t with less than 1e-308 / z_t: if every scale and
every z is above `LEAST`, nothing is lost (`Passed.trusted`). Other passes are done again on the CPU, in log space.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..chains import Edges
from ..system import DOUBLE, Array, Backend, offsets_of, positions_within

LEAST = 1e-250
NEVER = 1e-300  # smallest scale, so that nothing is divided by zero before it is found out


@dataclass(frozen=True)
class ChainPotentials:
    """Potentials of packed sequences, in double precision."""

    scores: Array  # [N, Y]
    edges: Edges  # of arrays of the backend; transitions [Y, Y] or [N, Y, Y]


@dataclass(frozen=True)
class Passed:
    """Results of a pass at each position. Pairs of first positions, where there are none, are zero or weigh nothing."""

    node: Array  # [N, Y] p(y_t | x)
    edge: Array  # [Y, Y] weighted sum over positions, or [N, Y, Y]
    triple: Array | None  # [Y, Y, Y] weighted sum
    log_z: Array  # [N] contributions to log Z of the sequences, without shifts of potentials
    shift: Array  # [N] those shifts
    trusted: Array  # [N] bool


class Chains:
    """Sequences of one problem, or some of them, as chains of first order on a device."""

    def __init__(self, offsets: np.ndarray, cut: np.ndarray | None, weights: np.ndarray, Y: int, backend: Backend):
        self.backend, self.Y, self.size, lengths = backend, Y, int(offsets[-1]), np.diff(offsets)
        order = np.argsort(-lengths, kind="stable")
        order = order[lengths[order] > 0]
        first, lengths_there = offsets[:-1][order], lengths[order]
        last = first + lengths_there - 1
        # Sequences that are longer than each step.
        counts = np.searchsorted(-lengths_there, -np.arange(int(lengths_there.max(initial=0))), side="left")
        ends = offsets_of(counts)
        self.steps = [slice(*each) for each in pairwise(ends.tolist())]  # packed places of each step
        step, sequence = np.repeat(np.arange(len(counts)), counts), positions_within(ends)
        packed = first[sequence] + step, last[sequence] - step
        # Positions by packed places, forward and backward, and packed places by positions.
        self.positions = [backend.array(each.astype(np.int64)) for each in packed]
        self.places = [backend.array(np.argsort(each)) for each in packed]
        self.weights = backend.array(np.repeat(weights, lengths), DOUBLE)  # [N]
        inner, is_last = np.ones(self.size), np.zeros(self.size)
        inner[first], is_last[last] = 0.0, 1.0
        self.inner, self.last = backend.array(inner), backend.array(is_last)  # [N] 1 or 0
        self.pair_weights = self.weights * self.inner
        open_ends = np.ones((2, len(order), 1), dtype=bool) if cut is None else ~cut[order].T[:, :, None]
        self.open = backend.array(open_ends)  # [2, sequences, 1] true if first and last labels have potentials

    def _ends(self, edges: Edges) -> tuple[Array, Array]:
        """Return exp of s and e less their largest, [2, sequences, Y], and the largest of both [2]."""
        both = self.backend.xp.stack([edges.start, edges.end])  # [2, Y]
        largest = self.backend.xp.amax(both, 1)
        values = self.backend.xp.exp(both - largest[:, None])[:, None, :]
        return self.backend.xp.where(self.open, values, 1.0), largest

    def _exponentials(self, potentials: ChainPotentials) -> tuple[Array, Array, Array, Array]:
        """Return exp of scores [N, Y] and edges, less their largest, and those: [N] and scalar, or [N]."""
        backend, scores, pairs = self.backend, potentials.scores, potentials.edges.transitions
        largest = backend.xp.amax(scores, 1)
        X = backend.xp.exp(scores - largest[:, None])
        if len(pairs.shape) == 2:
            top = backend.xp.amax(pairs)
            return X, largest, backend.xp.exp(pairs - top), top
        top = backend.xp.amax(backend.xp.amax(pairs, 2), 1)
        return X, largest, backend.xp.exp(pairs - top[:, None, None]), top

    def _both_ways(self, values: Array) -> Array:
        """Put values of positions in packed order, forward and backward, [2, N, ...]."""
        return self.backend.xp.stack([self.backend.rows(values, each) for each in self.positions])

    def _edges_both_ways(self, E: Array) -> Array:
        """Return the edges that step into each packed place, both ways: [2, Y, Y] of shared ones, or [2, N, Y, Y].

        Going backward a step into position t takes the edges that lead from t to t + 1, transposed.
        """
        backend = self.backend
        if len(E.shape) == 2:
            return backend.xp.stack([E, backend.permuted(E, (1, 0))])
        after = backend.xp.concatenate([E[1:], E[:1]])
        turned = backend.permuted(after, (0, 2, 1))
        forward, backward = self.positions
        return backend.xp.stack([backend.rows(E, forward), backend.rows(turned, backward)])

    def _stepped(self, state: Array, E: Array, part: slice) -> Array:
        """Multiply states [2, n, Y] by the edges that lead into a step."""
        if len(E.shape) == 3:
            return state @ E
        return (state[:, :, None, :] @ E[:, part])[:, :, 0, :]

    def _in_order(self, packed: Array, way: int) -> Array:
        """Put values of packed places in the order of positions."""
        return self.backend.rows(packed[way], self.places[way])

    def at_ends(self, values: Array) -> Array:
        """Put values [2, sequences] of first and last labels at their positions and add both up, [N]."""
        backend = self.backend
        values = backend.xp.where(self.open[:, :, 0], values, 0.0)  # of first packed places
        both = backend.xp.concatenate([values, backend.zeros((2, self.size - values.shape[1]))], 1)
        return self._in_order(both, 0) + self._in_order(both, 1)

    def passed(self, potentials: ChainPotentials) -> Passed:
        """Return marginals, and the contributions of positions to log Z."""
        backend = self.backend
        X, shift, E, edge_shift = self._exponentials(potentials)
        ends, end_shifts = self._ends(potentials.edges)
        own, into = self._both_ways(X), self._edges_both_ways(E)
        before, after, scales = [], [], []
        state = None
        for part in self.steps:
            came = ends if state is None else self._stepped(state[:, : part.stop - part.start], into, part)
            state = came * own[:, part]
            scale = backend.xp.clip(state.sum(2), NEVER, None)
            state = state / scale[:, :, None]
            before.append(came[1])
            after.append(state[0])
            scales.append(scale)
        left = backend.rows(backend.xp.concatenate(after), self.places[0])  # [N, Y] f
        back = backend.rows(backend.xp.concatenate(before), self.places[1])  # [N, Y] b
        packed = backend.xp.concatenate(scales, 1)
        scale, back_scale = self._in_order(packed, 0), self._in_order(packed, 1)
        pushed = back * X / back_scale[:, None]  # [N, Y] r
        node = left * back
        z = node.sum(1)
        pair_z = z * scale / back_scale  # (f_{t-1} E) r_t
        trusted = (scale > LEAST) & (back_scale > LEAST)
        trusted = trusted & (z > LEAST) & ((pair_z > LEAST) | (self.inner == 0))
        z, pair_z = backend.xp.clip(z, NEVER, None), backend.xp.clip(pair_z, NEVER, None)
        log_z = backend.xp.log(scale) + self.last * backend.xp.log(z)
        # First and last positions take potentials of ends, others those of the edges before them.
        shifts = shift + self.inner * edge_shift + self.at_ends(end_shifts[:, None])
        earlier = backend.xp.concatenate([left[-1:], left[:-1]])  # f of the position before; of the first one any
        if len(E.shape) == 3:
            edge = earlier[:, :, None] * E * pushed[:, None, :] * (self.inner / pair_z)[:, None, None]
        else:
            edge = E * (earlier.T @ (pushed * (self.pair_weights / pair_z)[:, None]))
        return Passed(node / z[:, None], edge, None, log_z, shifts, trusted)
