"""An engine written from scratch, to hold the seam of `objective.engine` against: it enumerates labellings.

Its vectors are no arrays. Nothing but `ToyVectors` can look inside them, so a solver that does arithmetic of its own
on a vector fails. P is that of node terms over given features and of transitions, by brute force over all labellings.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace

import numpy as np

from kcrf_core.chains import EDGE, NODE, Problem
from kcrf_core.maps import Rounding
from kcrf_core.objective import DistantRows, ObjectiveTerm
from kcrf_core.system import Workers
from oracle import labellings


class ToyVector:
    """Numbers in a tuple; it can be neither indexed nor added to."""

    __slots__ = ("_numbers",)
    __array_ufunc__ = None  # NumPy refuses to calculate with it

    def __init__(self, numbers):
        self._numbers = tuple(float(number) for number in numbers)

    def __array__(self, *arguments, **more):
        raise TypeError("only ToyVectors may look inside a vector")


def numbers(vector):
    return np.array(vector._numbers)


class ToyVectors:
    """Every operation of `Vectors`, by its formula."""

    def __init__(self, sizes):
        ends = np.cumsum(sizes)
        self.blocks = [slice(int(end - size), int(end)) for size, end in zip(sizes, ends, strict=True)]
        self.size = int(sum(sizes))

    def zeros(self):
        return ToyVector([0.0] * self.size)

    def from_array(self, values, dtype=float):
        return ToyVector(values)

    def to_array(self, vector):
        return numbers(vector)

    def cast(self, vector, dtype):
        return vector

    def length(self, vector):
        return len(vector._numbers)

    def is_zero(self, vector):
        return not any(vector._numbers)

    def copy(self, vector):
        return ToyVector(vector._numbers)

    def negated(self, vector):
        return ToyVector(-number for number in vector._numbers)

    def dot(self, a, b):
        return sum(x * y for x, y in zip(a._numbers, b._numbers, strict=True))

    def block_dots(self, a, b):
        return [self.dot(self.take(a, j), self.take(b, j)) for j in range(len(self.blocks))]

    def stepped(self, start, step, direction):
        return ToyVector(x + step * d for x, d in zip(start._numbers, direction._numbers, strict=True))

    def add_scaled(self, target, factor, vector):
        target._numbers = self.stepped(target, factor, vector)._numbers

    def product(self, a, b):
        return ToyVector(x * y for x, y in zip(a._numbers, b._numbers, strict=True))

    def quotient(self, a, b):
        return ToyVector(x / y for x, y in zip(a._numbers, b._numbers, strict=True))

    def of_block(self, number):
        block = self.blocks[number]
        return ToyVectors([block.stop - block.start])

    def take(self, vector, number):
        return ToyVector(vector._numbers[self.blocks[number]])

    def put(self, target, number, block):
        block_, values = self.blocks[number], list(target._numbers)
        values[block_] = block._numbers
        target._numbers = tuple(values)

    def _replace(self, target, first, values):
        changed = list(target._numbers)
        changed[first : first + len(values)] = values
        target._numbers = tuple(changed)

    def multiply_rows(self, target, vector, number, matrix, width, first=0):
        first += self.blocks[number].start
        rows = numbers(vector)[first : first + len(matrix) * width].reshape(len(matrix), width)
        self._replace(target, first, (matrix @ rows).ravel())

    def widened(self, vector, narrow):
        out = self.zeros()
        for few, whole in zip(narrow.blocks, self.blocks, strict=True):
            self._replace(out, whole.start, vector._numbers[few])
        return out

    def _each_variance(self, variances):
        return np.repeat(variances, [block.stop - block.start for block in self.blocks])

    def add_prior(self, gradient, theta, variances):
        each, own = self._each_variance(variances), numbers(theta)
        slope = numbers(gradient) + own / each
        gradient._numbers = tuple(slope)
        return float((own**2 / (2 * each)).sum()), float((each / 2 * slope**2).sum())

    def add_curvature(self, target, vector, variances):
        target._numbers = tuple(numbers(target) + numbers(vector) / self._each_variance(variances))

    def linearised(self, theta, gradient, variances, dtype, others):
        each = self._each_variance(variances)
        loss = numbers(gradient) - numbers(theta) / each
        scaled = ToyVector(np.sqrt(each) * loss)
        return scaled, float(loss @ numbers(theta)), [self.dot(scaled, other) for other in (*others, scaled)]

    def add_sparse_prior(self, gradient, theta, variances, thresholds):
        each, own, c = self._each_variance(variances), numbers(theta), numbers(thresholds)
        gradient._numbers = tuple(numbers(gradient) + own / each)
        return float((own**2 / (2 * each)).sum() + c @ abs(own))

    def loss_gradient(self, theta, gradient, variances):
        return ToyVector(numbers(gradient) - numbers(theta) / self._each_variance(variances))

    def beyond(self, gradient, thresholds):
        return np.flatnonzero(abs(numbers(gradient)) > numbers(thresholds))

    def values_at(self, vector, places):
        return numbers(vector)[places]

    def with_values(self, vector, places, values):
        changed = numbers(vector).copy()
        changed[places] = values
        return ToyVector(changed)

    def steepest_square(self, theta, gradient, thresholds):
        own, g, c = numbers(theta), numbers(gradient), numbers(thresholds)
        shortest = np.where(own == 0, np.maximum(abs(g) - c, 0), g + c * np.sign(own))
        return float(shortest @ shortest)

    def pairs(self, most, dtype):
        return ToyPairs(self, most)


class ToyPairs:
    """Every operation of `Pairs`."""

    def __init__(self, vectors, most):
        self._vectors, self.most = vectors, most
        self._steps, self._changes = ([vectors.zeros() for _ in range(most)] for _ in "sy")

    def put(self, slot, before, after, gradient, new_gradient, rows):
        stepped = self._vectors.stepped
        self._steps[slot], self._changes[slot] = stepped(after, -1.0, before), stepped(new_gradient, -1.0, gradient)
        return np.stack([self.along(self._changes[slot], rows), self.along(new_gradient, rows)], axis=1)

    def forget(self, slot):
        self._steps[slot] = self._changes[slot] = self._vectors.zeros()

    def stored(self, rows):
        return self._steps[:rows], self._changes[:rows]

    def restore(self, steps, changes):
        self._steps[: len(steps)], self._changes[: len(changes)] = steps, changes

    def step(self, slot):
        return self._steps[slot]

    def change(self, slot):
        return self._changes[slot]

    def along(self, vector, rows):
        return np.array([self._vectors.dot(step, vector) for step in self._steps[:rows]])

    def changes_along(self, vector, rows):
        return np.array([self._vectors.dot(change, vector) for change in self._changes[:rows]])

    def reduced(self, gradient, shares):
        out = gradient
        for share, change in zip(shares, self._changes, strict=False):
            out = self._vectors.stepped(out, share, change)
        return self._vectors.negated(out)

    def reduced_and_scaled(self, gradient, shares, scale, newest):
        out = self._vectors.product(self.reduced(gradient, shares), scale)
        curvature = 0.0
        if newest is not None:
            change = self._changes[newest]
            curvature = self._vectors.dot(change, self._vectors.product(change, scale))
        return out, self.changes_along(out, len(shares)), curvature

    def finish(self, target, length, weights, gradient):
        out = self._vectors.product(target, ToyVector([length] * self._vectors.size))
        for weight, step in zip(weights, self._steps, strict=False):
            out = self._vectors.stepped(out, weight, step)
        target._numbers = out._numbers
        return self._vectors.dot(out, gradient)


@dataclass
class ToyBlocks:
    """Blocks of (30), from marginals that were enumerated."""

    engine: ToyEngine
    node: np.ndarray  # [N, Y]
    pairs: np.ndarray  # [N, Y^2], zero at first positions
    diagonals: bool
    operations: int = 0

    @property
    def variance_share(self):
        Y = self.engine.problem.label_count
        return float((self.node * (1 - self.node)).mean()) * Y / (1 - 1 / Y)

    @property
    def small(self):
        problem = self.engine.problem
        firsts, lasts = problem.offsets[:-1], problem.offsets[1:] - 1
        parts = [
            sum(
                weight * (np.diag(p) - (not self.diagonals) * np.outer(p, p))
                for weight, p in zip(weights, rows, strict=True)
            )
            for weights, rows in (
                (problem.position_weights(), self.pairs),
                (problem.weights, self.node[firsts]),
                (problem.weights, self.node[lasts]),
            )
        ]
        size = sum(map(len, parts))
        matrix, at = np.zeros((size, size)), 0
        for part in parts:
            matrix[at : at + len(part), at : at + len(part)] = part
            at += len(part)
        return {len(self.engine.features): np.diag(matrix).copy() if self.diagonals else matrix}

    def share(self, term):
        return 1.0

    def product(self, term, block):
        Phi, weights = self.engine.features[term], self.engine.problem.position_weights()
        u = Phi @ numbers(block).reshape(Phi.shape[1], -1)
        change = np.stack([w * (p * v - p * (p @ v)) for w, p, v in zip(weights, self.node, u, strict=True)])
        return ToyVector((Phi.T @ change).ravel())

    def diagonal(self, term):
        Phi, weights = self.engine.features[term], self.engine.problem.position_weights()
        return ((weights[:, None] * Phi**2).T @ (self.node * (1 - self.node))).ravel()


class ToyEngine:
    """Node terms over given features [N, D] each, and transitions; more than two labels.

    Columns of features are nested ones, or `real` ones.
    """

    dtype, forbidden, workers = np.dtype(np.float64), None, Workers(1)

    def __init__(self, problem: Problem, features: list[np.ndarray], real: bool = False):
        self.problem, self.features, self._real = problem, features, real
        Y = problem.label_count
        widths = [Phi.shape[1] for Phi in features]
        heads = [SimpleNamespace(size=D, nested=not real, real_size=D if real else 0) for D in widths]
        mapped = [ObjectiveTerm(NODE, distant=DistantRows(head, 1.0, ()), label_count=Y) for head in heads]
        self.terms = (*mapped, ObjectiveTerm(EDGE, label_count=Y))
        self.mapped, self.labelled = dict.fromkeys(range(len(mapped)), NODE), {len(mapped): EDGE}
        self.vectors = ToyVectors([term.size for term in self.terms])
        # Of every sequence: what each labelling counts of each parameter [labellings, size], and which one is gold.
        self._sequences = []
        for first, last in zip(problem.offsets[:-1], problem.offsets[1:], strict=True):
            paths = list(labellings(last - first, Y))
            counts = np.stack([self._counts(range(first, last), path) for path in paths])
            self._sequences.append((paths, counts, paths.index(tuple(problem.labels[first:last].tolist()))))

    def _counts(self, positions, path):
        Y = self.problem.label_count
        parts = [np.zeros((Phi.shape[1], Y)) for Phi in self.features]
        edge, start, end = np.zeros((Y, Y)), np.zeros(Y), np.zeros(Y)
        for t, y in zip(positions, path, strict=True):
            for Phi, part in zip(self.features, parts, strict=True):
                part[:, y] += Phi[t]
        for y, z in pairwise(path):
            edge[y, z] += 1
        start[path[0]] += 1
        end[path[-1]] += 1
        return np.concatenate([*(part.ravel() for part in parts), edge.ravel(), start, end])

    def _probabilities(self, theta):
        """Of every labelling of every sequence, with log Z."""
        for paths, counts, gold in self._sequences:
            totals = counts @ numbers(theta)
            log_z = totals.max() + np.log(np.exp(totals - totals.max()).sum())
            yield paths, counts, gold, np.exp(totals - log_z), totals[gold] - log_z

    def sequence_log_probabilities(self, theta):
        return np.array([log_p for *_, log_p in self._probabilities(theta)])

    def evaluate_all(self, thetas):
        return map(self.evaluate, thetas)

    def in_double(self, held):
        return self

    def rounding(self, theta):
        return [Rounding() for _ in self.terms]

    def evaluate(self, theta):
        value, gradient = 0.0, np.zeros(self.vectors.size)
        for weight, (_, counts, gold, p, log_p) in zip(self.problem.weights, self._probabilities(theta), strict=True):
            value += weight * log_p
            gradient += weight * (p @ counts - counts[gold])
        return value, ToyVector(gradient)

    def product(self, theta, vector):
        out = np.zeros(self.vectors.size)
        for weight, (_, counts, _, p, _) in zip(self.problem.weights, self._probabilities(theta), strict=True):
            along = counts @ numbers(vector)
            out += weight * ((p * along) @ counts - (p @ along) * (p @ counts))
        return ToyVector(out)

    def blocks(self, theta, diagonals=False, negligible=0.0):
        N, Y = self.problem.positions, self.problem.label_count
        node, pairs = np.zeros((N, Y)), np.zeros((N, Y, Y))
        for first, (paths, _, _, p, _) in zip(self.problem.offsets[:-1], self._probabilities(theta), strict=True):
            for path, chance in zip(paths, p, strict=True):
                for t, y in enumerate(path):
                    node[first + t, y] += chance
                    if t:
                        pairs[first + t, path[t - 1], y] += chance
        return ToyBlocks(self, node, pairs.reshape(N, -1), diagonals)

    def column_squares(self, term):
        return self.problem.position_weights() @ self.features[term] ** 2

    def leading_gram(self, term, m, most):
        Phi = self.features[term][:, :m]
        return (Phi * self.problem.position_weights()[:, None]).T @ Phi

    def inverse_power(self, matrix, shift, power):
        squares, vectors = np.linalg.eigh(matrix)
        return (vectors * (np.maximum(squares, 0) + shift) ** -power) @ vectors.T

    def real_grams(self, theta, most):
        blocks = self.blocks(theta)
        q = self.problem.position_weights() * (blocks.node * (1 - blocks.node)).mean(axis=1)
        return {j: (self.features[j] * q[:, None]).T @ self.features[j] for j in most}, blocks.variance_share

    def narrowed(self, sizes):
        return ToyEngine(self.problem, [Phi[:, : sizes.get(j, Phi.shape[1])] for j, Phi in enumerate(self.features)])
