"""All data as one partition on a device: P and its gradient never leave it.

A pass is one function of theta on arrays whose shapes the data alone decides, without a look at any value on the way,
so that a GPU can record and replay it. The Hessian, predictions and passes whose messages cannot be trusted are
computed as by any `Partition`, on maps whose products are taken on the device (`LentMap`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast
from weakref import WeakMethod

import numpy as np

from ..chains import EDGE_X, NODE, STATE, Clique, Edges, Problem, Sums
from ..objective import Engine, ObjectiveTerm, Partition, Vectors, inverse_power_parts
from ..system import DOUBLE, Array, Workers, positions_within, size_text
from .device_maps import ArrayPlace, LentMap, map_on, row_sums
from .device_vectors import DeviceVectors
from .packed_chains import ChainPotentials, Chains, Passed
from .packed_pairs import PairChains

HALF = float(np.sqrt(0.5))

MOST_STEPS = 4096  # positions of a sequence, one after another
# Arrays like the marginals of labels, or of pairs of labels, that a pass holds at a time.
SINGLE_ARRAYS, PAIR_ARRAYS = 24, 12


def _loosely(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that does not keep its object alive, so that kernel values do not outlive their engine."""
    held = WeakMethod(method)
    return lambda *given: cast(Any, held())(*given)


class DevicePartition(Partition):
    """All data of a problem on a device, with the maps of its terms; vectors are arrays there."""

    def __init__(
        self,
        problem: Problem,
        terms: Sequence[ObjectiveTerm],
        workers: Workers,
        device: ArrayPlace,
        dtype: np.dtype | type = np.float64,
        forbidden: Edges | None = None,
    ):
        lent = [
            term if term.map is None else replace(term, map=LentMap(term.map, np.dtype(dtype), device))
            for term in terms
        ]
        super().__init__(problem, lent, workers, dtype, forbidden)
        self.device, self.backend = device, device.backend
        self.vectors: Vectors = DeviceVectors(self.host.blocks, self.backend)
        self._exact: Partition | None = None  # the same in double precision, with no kernel values held
        self._maps = {j: map_on(device, self._lent(j).here, self.dtype) for j in self.mapped}
        kept = {j: self.terms[j].places for j in self.mapped}
        self._kept = {j: self.backend.array(places.kept) for j, places in kept.items() if places is not None}
        self._chains_there = self._fits_there()
        if self._chains_there:
            self._set_up_chains()
        recorded = self.backend.repeated if all(own.stays for own in self._maps.values()) else (lambda work: work)
        self._evaluated = recorded(_loosely(self._evaluate))

    def _lent(self, term: int) -> LentMap:
        own = self.maps[term]
        assert isinstance(own, LentMap)
        return own

    def _fits_there(self) -> bool:
        """Return True if forward-backward is done on the device; report it if threads do it."""
        problem, Y = self.problem, self.problem.label_count
        longest = int(np.diff(problem.offsets).max(initial=0))
        if longest > MOST_STEPS:
            self.device.say(
                f"threads do forward-backward, for a sequence has {longest:,} positions, and a device has to take them "
                f"one after another (it does so for up to {MOST_STEPS:,})"
            )
            return False
        if not problem.complete.all():
            self.device.say("threads do forward-backward, for some labels are not known")
            return False
        pairs = self.second_order or self.per_position
        needed = 8 * problem.positions * (PAIR_ARRAYS * Y * Y if pairs else SINGLE_ARRAYS * Y)
        if needed > self.backend.free_memory():
            self.device.say(f"threads do forward-backward, which would take {size_text(needed)} of its memory")
            return False
        return problem.positions > 0

    def _set_up_chains(self) -> None:
        """Lay the labels of the problem out on the device."""
        problem, backend, Y = self.problem, self.backend, self.problem.label_count
        kind = PairChains if self.second_order else Chains
        self._chains = kind(problem.offsets, problem.cut, problem.weights, Y, backend)
        self._none = backend.zeros((Y, Y)), backend.zeros((Y,))
        self._forbidden = None
        if self.forbidden is not None:
            parts = (self.forbidden.transitions, self.forbidden.start, self.forbidden.end)
            self._forbidden = Edges(*(backend.array(part, DOUBLE) for part in parts))
        labels = problem.labels.astype(np.int64)
        self._gold = backend.array(np.eye(Y)[labels])  # [N, Y]
        # By order, places of pairs, or triples, of observed labels among all, and 1 or 0 by position, [N] each.
        self._gold_places: dict[int, tuple[Array, Array]] = {}
        for order in (1, 2) if self.second_order else (1,):
            there = positions_within(problem.offsets) >= order
            place = np.zeros(len(labels), dtype=np.int64)
            for back in range(order, -1, -1):
                place = place * Y + np.roll(labels, back)
            place = np.where(there, place, 0)
            if order == 1 and self.per_position:
                place = np.arange(len(labels)) * Y * Y + place
            self._gold_places[order] = backend.array(place), backend.array(there.astype(np.float64))
        observed = Sums.observed(problem, self.per_position, self.second_order)
        triples = observed.triple
        self._observed_there = backend.array(observed.edge), None if triples is None else backend.array(triples)
        self._ends = []
        for end, rows in enumerate((problem.offsets[:-1], problem.offsets[1:] - 1)):
            self._ends.append(backend.array(rows[problem.with_end(end)].astype(np.int64)))

    def _weights(self, vector: Array, j: int) -> Array:
        """Return W [D, columns] of a term with a map."""
        term, block = self.terms[j], self.vectors.take(vector, j)
        if term.places is not None:
            laid = self.backend.zeros((term.rows * term.columns,))
            laid[self._kept[j]] = block
            block = laid
        return block.reshape(term.rows, term.columns)

    def _chain_potentials(self, theta: Array) -> ChainPotentials:
        backend, Y = self.backend, self.problem.label_count
        edges = Edges(self._none[0], self._none[1], self._none[1])
        for j, label_clique in self.labelled.items():
            edges = label_clique.edges(self.vectors.take(theta, j), edges, Y)
        if self._forbidden is not None:
            edges = edges.plus(self._forbidden)
        columns: dict[Clique, Array] = {}
        for j in self.mapped:
            own, clique = self._maps[j], self.terms[j].clique
            found = own.scores(own.ready(self._weights(theta, j)))
            columns[clique] = columns[clique] + found if clique in columns else found
        scores = None
        for clique in (NODE, STATE):
            if clique in columns:
                own = backend.cast(columns[clique], DOUBLE)
                if clique.columns(Y) < Y:
                    own = backend.xp.concatenate([own * HALF, own * -HALF], 1)
                scores = own if scores is None else scores + own
        if EDGE_X in columns:
            edges = edges.plus_pairs(backend.cast(columns[EDGE_X], DOUBLE).reshape(-1, Y, Y))
        if scores is None:
            scores = backend.zeros((self.problem.positions, Y))
        return ChainPotentials(scores, edges)

    def _evaluate(self, theta: Array) -> tuple[Array, Array]:
        """Return the log-likelihood with 1 if it can be trusted, [2], and the gradient of its negative."""
        backend, chains = self.backend, self._chains
        potentials = self._chain_potentials(theta)
        found = chains.passed(potentials)
        trusted = found.trusted.all()
        # The contribution of each position to the score of the observed labels, [N].
        gold, edges = (potentials.scores * self._gold).sum(1), potentials.edges
        for order, values in ((1, edges.transitions), (2, edges.triples)):
            if order in self._gold_places and values is not None:
                place, there = self._gold_places[order]
                chosen = backend.rows(values.reshape(-1), place)
                gold = gold + backend.xp.where(there > 0, chosen, 0.0)
        ends = []
        for way, part in enumerate((edges.start, edges.end)):
            own = backend.rows(self._gold, chains.positions[way][: len(chains.open[0])])
            ends.append(backend.xp.where(own > 0, part[None, :], 0.0).sum(1))
        each = gold + chains.at_ends(backend.xp.stack(ends)) - found.log_z - found.shift
        likelihood = (chains.weights * each).sum()
        errors = replace(found, node=(found.node - self._gold) * chains.weights[:, None])
        gradient = self._collected(errors)
        return backend.xp.stack([likelihood, backend.cast(trusted, DOUBLE)]), gradient

    def _collected(self, found: Passed) -> Array:
        """Return the vector of weighted errors of positions, and of sums less observed counts."""
        backend, Y = self.backend, self.problem.label_count
        edge, triple = found.edge, found.triple
        pairs: Array = None
        if self.per_position:
            place, there = self._gold_places[1]
            flat = backend.zeros((len(edge) * Y * Y,))
            flat[place] = there * self._chains.weights
            weighted = edge * self._chains.weights[:, None, None] - flat.reshape(-1, Y, Y)
            pairs, edge = weighted.reshape(-1, Y * Y), weighted.sum(0)
        else:
            edge = edge - self._observed_there[0]
        if triple is not None:
            triple = triple - self._observed_there[1]
        parts = []
        for j, term in enumerate(self.terms):
            if term.clique.mapped:
                errors = pairs if term.clique is EDGE_X else found.node
                if term.columns < Y:
                    errors = (errors[:, :1] - errors[:, 1:]) * HALF
                block = self._maps[j].adjoint(errors).reshape(-1)
                parts.append(backend.rows(block, self._kept[j]) if j in self._kept else block)
            elif term.clique.second_order and triple is not None:
                parts.append(triple.reshape(-1))
            else:
                ends = [backend.rows(found.node, rows).sum(0) for rows in self._ends]
                parts.append(backend.xp.concatenate([edge.reshape(-1), *ends])[: term.size])
        return backend.xp.concatenate(parts)

    def evaluate(self, thetas: Sequence[Array]) -> tuple[np.ndarray, list[Array]]:
        values, gradients = zip(*map(self._evaluate_one, thetas), strict=True)
        return np.array(values), list(gradients)

    def _evaluate_one(self, theta: Array) -> tuple[float, Array]:
        if self._chains_there:
            figures, gradient = self._evaluated(self.backend.cast(theta, DOUBLE))
            likelihood, trusted = self.backend.numpy(figures).tolist()
            if trusted and np.isfinite(likelihood):
                return likelihood, gradient * 1
        [value], [gradient] = super().evaluate([theta])  # in log space
        return value, gradient

    def _remade(self, terms: Sequence[ObjectiveTerm], dtype: np.dtype | type) -> DevicePartition:
        return DevicePartition(self.problem, terms, self.workers, self.device, dtype, self.forbidden)

    def in_double(self, held: bool) -> Partition:
        if held or self.dtype == DOUBLE:
            return super().in_double(held)
        if self._exact is None:
            self._exact = super().in_double(held)
        return self._exact

    def sampled_gram(self, term: int, inverse: np.ndarray, rows: np.ndarray) -> np.ndarray:
        phi = self._lent(term).leading(len(inverse)).subset(rows).features_there(inverse)
        weights = self.backend.array(self.problem.position_weights()[rows], DOUBLE)[:, None]
        return self.backend.numpy(row_sums(phi, self.backend.cast(phi, DOUBLE) * weights, self.backend))


class DeviceEngine(Engine):
    """An engine whose one partition is on a device."""

    lasting = True

    def inverse_power(self, matrix: np.ndarray, shift: float, power: float) -> np.ndarray:
        m, backend = len(matrix), self.handles[0].backend
        if m == 0:
            return np.zeros((0, 0))
        parts, above, scale = inverse_power_parts(float(np.abs(matrix).sum(axis=1).max()), shift, power)
        there, unit = backend.array(matrix, DOUBLE), backend.array(np.eye(m))
        total = unit * above
        for more, factor in parts:
            total = total + backend.xp.linalg.inv(there + unit * more) * factor
        found = backend.numpy(total) * scale
        return (found + found.T) / 2
