"""Vectors of parameters, and what solvers do with them: here NumPy arrays that threads go through in slices.

Solvers know vectors only by what `Vectors` does with them, so that another engine can keep them elsewhere. Slices
depend on the data alone and sums over them are taken in their order, so that results are the same for any number of
threads. A slice never crosses the border of a block, the parameters of one term.

An operation is one call of `_long_vectors`, in which each thread has a run of slices and goes through all that the
operation reads at once: where vectors are long, what counts is how often they come from memory.

Long vectors are used again once nothing refers to them (`Buffers`): the system hands out fresh memory page by page, and
for millions of parameters that costs more than what is done with them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import numpy as np

from ..maps import product
from ..system import Workers, ranges
from . import _long_vectors, _proximal
from ._long_vectors import Rows, Slices, Values

LEAST_BYTES = 1 << 20  # smaller arrays come from memory that the process has already

SHORTEST_SLICE, LONGEST_SLICE = 1 << 10, 1 << 15  # values
SLICES = 64  # wanted: they share out evenly among up to 16 threads
VALUES_PER_TASK = 1 << 15  # of all vectors together: with fewer it takes longer to hand a task over than to do it


def _references(buffers: list[np.ndarray], number: int) -> int:
    return sys.getrefcount(buffers[number])


def _references_when_unused() -> int:
    """The count of an array that only its list refers to: interpreters differ. Zero where nothing can be counted."""
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    return _references([np.empty(0)], 0) if gil and hasattr(sys, "getrefcount") else 0


UNUSED = _references_when_unused()


class Buffers:
    """A store of arrays. Every view of an array refers to it, so none is handed out while a part of it is in use."""

    def __init__(self) -> None:
        self._arrays: list[np.ndarray] = []

    def empty(self, shape: tuple[int, ...] | int, dtype: np.dtype | type = np.float64) -> np.ndarray:
        """Like np.empty."""
        size, dtype = int(np.prod(shape)), np.dtype(dtype)
        if size * dtype.itemsize < LEAST_BYTES or not UNUSED:
            return np.empty(shape, dtype=dtype)
        for number in range(len(self._arrays)):
            fits = self._arrays[number].size == size and self._arrays[number].dtype == dtype
            if fits and _references(self._arrays, number) <= UNUSED:
                return self._arrays[number].reshape(shape)
        fresh = np.empty(size, dtype=dtype)
        self._arrays.append(fresh)
        return fresh.reshape(shape)

    def forget_unused(self) -> None:
        """Let go of arrays that nobody uses now."""
        if UNUSED:
            numbers = range(len(self._arrays))
            self._arrays = [self._arrays[number] for number in numbers if _references(self._arrays, number) > UNUSED]


def slice_bounds(blocks: Sequence[slice]) -> tuple[np.ndarray, np.ndarray]:
    """Where slices of some blocks, one after another, begin and end [S + 1], and the block of each [S]."""
    size = max((block.stop for block in blocks), default=0)
    length = min(max(-(-size // (SLICES * SHORTEST_SLICE)) * SHORTEST_SLICE, SHORTEST_SLICE), LONGEST_SLICE)
    parts = [
        (block.start + part.stop, number)
        for number, block in enumerate(blocks)
        for part in ranges(block.stop - block.start, length)
    ]
    ends, numbers = zip(*parts, strict=True) if parts else ((), ())
    return np.array([0, *ends], dtype=np.int64), np.array(numbers, dtype=np.int64)


class Vectors:
    """The vectors of one problem: as long as theta, with a block for each term."""

    def __init__(self, blocks: Sequence[slice], workers: Workers):
        self.blocks = list(blocks)
        self._workers, self.buffers = workers, Buffers()
        self.size = max((block.stop for block in blocks), default=0)
        self._bounds, self._block_of = slice_bounds(self.blocks)
        self._slices = len(self._block_of)
        self._tasks: dict[int, np.ndarray] = {}

    def _runs(self, count: int) -> np.ndarray:
        """Slices in so many runs, or fewer, that are about as long as each other: where they begin and end."""
        if count not in self._tasks:
            self._tasks[count] = np.unique(np.searchsorted(self._bounds, np.linspace(0, self.size, count + 1)))
        return self._tasks[count]

    def _over_slices(self, operation: Callable[..., None], vectors: int, *arguments: object) -> None:
        """An operation of `_long_vectors` that goes through so many vectors, on threads."""
        if not self._slices:
            return
        team = self._workers.team
        runs = self._runs(min(team.threads, 1 + vectors * self.size // VALUES_PER_TASK))
        operation(Slices(team, self._bounds), runs, *arguments)

    def _values(self, vector: np.ndarray) -> Values:
        return Values(np.ascontiguousarray(vector), self.size)

    def _written(self, vector: np.ndarray) -> Values:
        return Values(vector, self.size, True)

    def _sums(self, *shape: int) -> np.ndarray:
        """Room for sums over each slice."""
        return np.empty((self._slices, *shape))

    # ------------------------------------------------------------------------- to and from arrays

    def empty(self, dtype: np.dtype | type = np.float64) -> np.ndarray:
        """A vector whose values are not set."""
        return self.buffers.empty(self.size, dtype)

    def zeros(self) -> np.ndarray:
        return np.zeros(self.size)

    def from_array(self, values: np.ndarray, dtype: np.dtype | type = np.float64) -> np.ndarray:
        return values.astype(dtype, copy=False)

    def to_array(self, vector: np.ndarray) -> np.ndarray:
        """Its values; they are not to be changed."""
        return vector

    def cast(self, vector: np.ndarray, dtype: np.dtype) -> np.ndarray:
        if vector.dtype == dtype:
            return vector
        return self._copied(vector, dtype)

    def _copied(self, vector: np.ndarray, dtype: np.dtype) -> np.ndarray:
        out = self.empty(dtype)
        self._over_slices(_long_vectors.copied, 2, self._values(vector), self._written(out))
        return out

    # ------------------------------------------------------------------------- arithmetic

    def length(self, vector: np.ndarray) -> int:
        """How many values a vector has, which may be one of another problem."""
        return len(vector)

    def is_zero(self, vector: np.ndarray) -> bool:
        return not vector.any()

    def copy(self, vector: np.ndarray) -> np.ndarray:
        return self._copied(vector, vector.dtype)

    def negated(self, vector: np.ndarray) -> np.ndarray:
        return -vector

    def dot(self, a: np.ndarray, b: np.ndarray) -> float:
        return float(self._products(a, b).sum())

    def block_dots(self, a: np.ndarray, b: np.ndarray) -> list[float]:
        """The inner product of each block."""
        products = self._products(a, b)
        return [float(products[self._block_of == number].sum()) for number in range(len(self.blocks))]

    def _products(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Inner products over each slice."""
        sums = self._sums(1)
        self._over_slices(_long_vectors.dots, 2, self._values(a), self._values(b), sums)
        return sums

    def stepped(self, start: np.ndarray, step: float, direction: np.ndarray) -> np.ndarray:
        """start + step * direction, in double precision."""
        out = self.empty()
        self._add(start, step, direction, out)
        return out

    def add_scaled(self, target: np.ndarray, factor: float, vector: np.ndarray) -> None:
        """target += factor * vector."""
        self._add(target, factor, vector, target)

    def _add(self, start: np.ndarray, factor: float, vector: np.ndarray, out: np.ndarray) -> None:
        self._over_slices(
            _long_vectors.stepped, 3, self._values(start), factor, self._values(vector), self._written(out)
        )

    def product(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Of each pair of entries."""
        return self._combined(a, b, False)

    def quotient(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Of each pair of entries."""
        return self._combined(a, b, True)

    def _combined(self, a: np.ndarray, b: np.ndarray, divide: bool) -> np.ndarray:
        out = self.empty(np.result_type(a, b))
        self._over_slices(_long_vectors.combined, 3, self._values(a), self._values(b), divide, self._written(out))
        return out

    # ------------------------------------------------------------------------- blocks

    def of_block(self, number: int) -> Vectors:
        """Vectors that are one block of these."""
        block = self.blocks[number]
        return Vectors([slice(0, block.stop - block.start)], self._workers)

    def take(self, vector: np.ndarray, number: int) -> np.ndarray:
        """A block of a vector; it is not to be changed."""
        return vector[self.blocks[number]]

    def put(self, target: np.ndarray, number: int, block: np.ndarray) -> None:
        target[self.blocks[number]] = block

    def multiply_rows(
        self, target: np.ndarray, vector: np.ndarray, number: int, matrix: np.ndarray, width: int, first: int = 0
    ) -> None:
        """Put matrix [m, m] times m rows [m, width] of a vector's block into the same place of a target.

        `first` says where in the block they begin.
        """
        first += self.blocks[number].start
        part = slice(first, first + len(matrix) * width)
        rows = np.ascontiguousarray(vector[part].reshape(len(matrix), width), dtype=np.float64)
        out = np.empty(rows.shape)
        product(self._workers.team, matrix, rows, out)
        target[part] = out.ravel()

    def multiply_columns(self, target: np.ndarray, vector: np.ndarray, number: int, matrices: np.ndarray) -> None:
        """The same with a matrix [C, m, m] for each of C columns."""
        C, m, _ = matrices.shape
        first = self.blocks[number].start
        part = slice(first, first + m * C)
        leading = vector[part].reshape(m, C)
        target[part] = np.matmul(matrices, leading.T[:, :, None])[:, :, 0].T.ravel()

    def widened(self, vector: np.ndarray, narrow: Vectors) -> np.ndarray:
        """A vector of other, shorter blocks as one of these: their values come first, the others are zero."""
        out = np.zeros(self.size)
        for few, whole in zip(narrow.blocks, self.blocks, strict=True):
            out[whole.start : whole.start + few.stop - few.start] = vector[few]
        return out

    # ------------------------------------------------------------------------- a Gaussian prior and linearisations

    def add_prior(self, gradient: np.ndarray, theta: np.ndarray, variances: np.ndarray) -> tuple[float, float]:
        """Add theta / sigma^2 to a gradient; sums of |theta|^2 / (2 sigma^2) and of sigma^2 |gradient|^2 / 2."""
        precisions, sums = self._precisions(variances), self._sums(2)
        self._over_slices(_long_vectors.add_prior, 3, self._written(gradient), self._values(theta), precisions, sums)
        return float(precisions @ sums[:, 0] / 2), float((sums[:, 1] / precisions).sum() / 2)

    def _precisions(self, variances: np.ndarray) -> np.ndarray:
        """1 / sigma^2 of each slice."""
        return 1.0 / np.asarray(variances, dtype=np.float64)[self._block_of]

    def add_curvature(self, target: np.ndarray, vector: np.ndarray, variances: np.ndarray) -> None:
        """target += vector / sigma^2."""
        precisions = self._precisions(variances)
        self._over_slices(_long_vectors.add_curvature, 3, self._written(target), self._values(vector), precisions)

    def linearised(
        self,
        theta: np.ndarray,
        gradient: np.ndarray,
        variances: np.ndarray,
        dtype: np.dtype | type,
        others: Sequence[np.ndarray],
    ) -> tuple[np.ndarray, float, list[float]]:
        """The loss at a point, from P's gradient: sigma g, <g, theta>, and products of sigma g with others and itself.

        g is the gradient without the prior's part; sigma g is kept in `dtype`.
        """
        scaled, known = self.empty(dtype), Rows([self._values(other) for other in others])
        sums = self._sums(known.count + 2)
        self._over_slices(
            _long_vectors.linearised,
            known.count + 3,
            self._values(theta),
            self._values(gradient),
            self._precisions(variances),
            known,
            self._written(scaled),
            sums,
        )
        constant, *products = sums.sum(axis=0).tolist()
        return scaled, constant, products

    # ------------------------------------------------------------------------- an L1 penalty

    def add_sparse_prior(
        self, gradient: np.ndarray, theta: np.ndarray, variances: np.ndarray, thresholds: np.ndarray
    ) -> tuple[float, float, float, float]:
        """Add theta / sigma^2 to a loss's gradient g, with an L1 penalty of thresholds c beside the Gaussian prior.

        What both add to P, <g, theta>, and what `soft_square` says of g.
        """
        precisions, limited = self._precisions(variances), self._limited(variances)

        def work(part: slice, number: int) -> tuple[float, ...]:
            own, point, least = gradient[part], theta[part], thresholds[part]
            size = np.abs(own)
            found = (
                float((point * point).sum()) * precisions[number] / 2 + float((least * np.abs(point)).sum()),
                float((own * point).sum()),
                *_softened(size, least, limited[number]),
            )
            own += precisions[number] * point
            return found

        prior, along, square, excess = self._each_slice(work, 4)
        return float(prior.sum()), float(along.sum()), float(square.sum()), float(excess.max(initial=0.0))

    def soft_square(self, gradient: np.ndarray, variances: np.ndarray, thresholds: np.ndarray) -> tuple[float, float]:
        """The sum of sigma^2 soft_c(g)^2 over blocks of finite sigma^2, and the largest |g| / c of the others."""
        limited = self._limited(variances)
        square, excess = self._each_slice(
            lambda part, number: _softened(np.abs(gradient[part]), thresholds[part], limited[number]), 2
        )
        return float(square.sum()), float(excess.max(initial=0.0))

    def soft_products(
        self, gradients: Sequence[np.ndarray], shares: np.ndarray, variances: np.ndarray, thresholds: np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """For the combination G of K gradients: the sum of sigma^2 soft_c(G)^2, and its derivatives by the shares.

        Half of the first ones [K] and half of the second ones [K, K] come back.
        """
        K, limited = len(gradients), np.asarray(variances, dtype=np.float64)[self._block_of]

        def work(part: slice, number: int) -> tuple[float, ...]:
            rows = np.stack([gradient[part] for gradient in gradients]).astype(np.float64)
            total = shares @ rows
            beyond = np.flatnonzero(np.abs(total) > thresholds[part])
            rows, total = np.ascontiguousarray(rows[:, beyond]), total[beyond]
            soft = limited[number] * (total - np.copysign(thresholds[part][beyond], total))
            gram = limited[number] * (rows @ rows.T)
            return float((soft * soft).sum()) / limited[number], *(rows @ soft), *gram.ravel()

        square, *products = self._each_slice(work, 1 + K + K * K)
        sums = np.array([own.sum() for own in products])
        return float(square.sum()), sums[:K], sums[K:].reshape(K, K)

    def loss_gradient(
        self, theta: np.ndarray, gradient: np.ndarray, variances: np.ndarray, dtype: np.dtype | type = np.float64
    ) -> np.ndarray:
        """A gradient without the Gaussian prior's part."""
        out, precisions = self.empty(dtype), self._precisions(variances)

        def work(part: slice, number: int) -> tuple[()]:
            out[part] = gradient[part] - precisions[number] * theta[part]
            return ()

        self._each_slice(work, 0)
        return out

    def steepest_square(self, theta: np.ndarray, gradient: np.ndarray, thresholds: np.ndarray) -> float:
        """The squared length of the shortest subgradient of P, from its gradient without the L1 penalty."""

        def work(part: slice, number: int) -> tuple[float]:
            own, point, least = gradient[part], theta[part], thresholds[part]
            soft = np.maximum(np.abs(own) - least, 0.0)
            shortest = np.where(point != 0, own + np.copysign(least, point), soft)
            return (float((shortest * shortest).sum()),)

        return float(self._each_slice(work, 1)[0].sum())

    def free_count(self, theta: np.ndarray, gradient: np.ndarray, thresholds: np.ndarray) -> int:
        """How many parameters are not zero, or have a slope beyond their threshold."""

        def work(part: slice, number: int) -> tuple[float]:
            return (float(np.count_nonzero((theta[part] != 0) | (np.abs(gradient[part]) > thresholds[part]))),)

        return int(self._each_slice(work, 1)[0].sum())

    def _limited(self, variances: np.ndarray) -> np.ndarray:
        """sigma^2 of each slice, zero where it is infinite."""
        each = np.asarray(variances, dtype=np.float64)[self._block_of]
        return np.where(np.isfinite(each), each, 0.0)

    def _each_slice(self, work: Callable[[slice, int], tuple[float, ...]], width: int) -> np.ndarray:
        """What `work` finds in each slice, which it is given with its number, on threads; [width, S]."""
        bounds = self._bounds.tolist()
        found = self._workers.map(lambda k: work(slice(bounds[k], bounds[k + 1]), k), range(self._slices))
        return np.array(list(found), dtype=np.float64).reshape(self._slices, width).T

    def pairs(self, most: int, dtype: np.dtype | type) -> Pairs:
        """Room for so many pairs of a step and a change of the gradient."""
        return Pairs(self, most, dtype)


def _softened(size: np.ndarray, thresholds: np.ndarray, variance: float) -> tuple[float, float]:
    """sigma^2 soft_c(g)^2 summed and zero; where sigma^2 is infinite, which zero stands for, zero and max |g| / c."""
    if not variance:
        return 0.0, float((size / thresholds).max(initial=0.0))
    soft = np.maximum(size - thresholds, 0.0)
    return variance * float((soft * soft).sum()), 0.0


class Pairs:
    """Steps s and changes y of the gradient, by slot, and the products with them that L-BFGS takes.

    `rows` is how many slots to go through; slots out of use among them hold zeros.
    """

    def __init__(self, vectors: Vectors, most: int, dtype: np.dtype | type):
        self._vectors, self.most, self.dtype = vectors, most, np.dtype(dtype)
        # The threads that first write a step touch its memory first.
        self._steps = np.empty((most, vectors.size), dtype=dtype)
        self._changes = np.empty((most, vectors.size), dtype=dtype)
        self._step_rows, self._change_rows = (
            Rows([vectors._written(row) for row in rows]) for rows in (self._steps, self._changes)
        )

    def put(
        self,
        slot: int,
        before: np.ndarray,
        after: np.ndarray,
        gradient: np.ndarray,
        new_gradient: np.ndarray,
        rows: int,
    ) -> np.ndarray:
        """Take up a step between two points; products of all steps with its change and the new gradient, [rows, 2]."""
        given = [self._vectors._values(vector) for vector in (before, after, gradient, new_gradient)]
        sums = self._vectors._sums(rows, 2)
        self._vectors._over_slices(
            _long_vectors.put_pair, rows + 6, self._step_rows, self._change_rows, rows, slot, *given, sums
        )
        return sums.sum(axis=0)

    def forget(self, slot: int) -> None:
        self._steps[slot] = self._changes[slot] = 0.0

    def stored(self, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the steps and the changes of the first slots, [rows, size] each; they are not to be changed."""
        return self._steps[:rows], self._changes[:rows]

    def restore(self, steps: np.ndarray, changes: np.ndarray) -> None:
        """Put what `stored` returned into the first slots."""
        self._steps[: len(steps)], self._changes[: len(changes)] = steps, changes

    def step(self, slot: int) -> np.ndarray:
        return self._steps[slot]

    def change(self, slot: int) -> np.ndarray:
        return self._changes[slot]

    def along(self, vector: np.ndarray, rows: int) -> np.ndarray:
        """Products of all steps with a vector, [rows]."""
        return self._products(self._step_rows, vector, rows)

    def changes_along(self, vector: np.ndarray, rows: int) -> np.ndarray:
        """Products of all changes with a vector, [rows]."""
        return self._products(self._change_rows, vector, rows)

    def _products(self, own: Rows, vector: np.ndarray, rows: int) -> np.ndarray:
        sums = self._vectors._sums(rows)
        self._vectors._over_slices(_long_vectors.products, rows + 1, own, rows, self._vectors._values(vector), sums)
        return sums.sum(axis=0)

    def reduced(self, gradient: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Minus the gradient less its shares [rows] of changes."""
        return self._reduced(gradient, shares, None, None, None)

    def reduced_and_scaled(
        self, gradient: np.ndarray, shares: np.ndarray, scale: np.ndarray, newest: int | None
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """`reduced` times a diagonal, its products with all changes [rows], and y.(scale y) of the newest change y."""
        sums = self._vectors._sums(len(shares) + 1)
        out = self._reduced(gradient, shares, self._vectors._values(scale), newest, sums)
        found = sums.sum(axis=0)
        return out, found[:-1], float(found[-1])

    def _reduced(
        self,
        gradient: np.ndarray,
        shares: np.ndarray,
        scale: Values | None,
        newest: int | None,
        sums: np.ndarray | None,
    ) -> np.ndarray:
        out = self._vectors.empty(self.dtype)
        self._vectors._over_slices(
            _long_vectors.reduced,
            len(shares) + 3,
            self._change_rows,
            shares,
            self._vectors._values(gradient),
            scale,
            -1 if newest is None else newest,
            self._vectors._written(out),
            sums,
        )
        return out

    def finish(self, target: np.ndarray, length: float, weights: np.ndarray, gradient: np.ndarray) -> float:
        """target = length target + weights [rows] times steps, in place; its product with the gradient."""
        sums = self._vectors._sums(1)
        self._vectors._over_slices(
            _long_vectors.finished,
            len(weights) + 3,
            self._step_rows,
            weights,
            length,
            self._vectors._written(target),
            self._vectors._values(gradient),
            sums,
        )
        return float(sums.sum())

    def minimise_model(
        self,
        theta: np.ndarray,
        gradient: np.ndarray,
        thresholds: np.ndarray,
        scale: np.ndarray,
        matrix: np.ndarray,
        slots: Sequence[int],
        most: int,
        tolerance: float,
    ) -> tuple[np.ndarray, float]:
        """The step d from theta to where a model of P with an L1 penalty is about the smallest; see `_proximal`.

        Its curvature is diag(b) - W M W^T, where W [n, 2 k] has b times the steps of these slots, then their changes,
        and M is a matrix [2 k, 2 k]. Parameters that are zero and whose slope is within their threshold stay. It comes
        with <g, d> and what d adds to the penalty.
        """
        free = np.flatnonzero((theta != 0) | (np.abs(gradient) > thresholds))
        here = (values[free] for values in (scale, gradient, thresholds, theta))
        pairs = ([own[slot][free] for slot in slots] for own in (self._steps, self._changes))
        step, change = minimised_model(*here, *pairs, matrix, self.dtype, most, tolerance)
        direction = np.zeros(self._vectors.size)
        direction[free] = step
        return direction, change


def minimised_model(
    scale: np.ndarray,  # [n] b of those parameters that may move
    slope: np.ndarray,
    thresholds: np.ndarray,
    start: np.ndarray,
    steps: Sequence[np.ndarray],  # k of them, [n] each
    changes: Sequence[np.ndarray],
    matrix: np.ndarray,
    dtype: np.dtype,
    most: int,
    tolerance: float,
) -> tuple[np.ndarray, float]:
    """What `Pairs.minimise_model` finds for parameters that may move: the step, and what it adds to the model."""
    width = len(matrix)
    rows = np.zeros((len(start), max(width + 3 & ~3, 4)), dtype=dtype)
    for place, (step, change) in enumerate(zip(steps, changes, strict=True)):
        rows[:, place] = step * scale
        rows[:, place + len(steps)] = change
    wide = np.zeros((rows.shape[1], rows.shape[1]), dtype=dtype)
    wide[:width, :width] = matrix
    point = start.copy()
    _proximal.minimise(
        rows,
        rows @ wide,
        scale,
        slope,
        thresholds,
        start,
        point,
        np.zeros(rows.shape[1]),
        np.empty(len(start)),
        np.empty(len(start), dtype=np.int32),
        most,
        tolerance,
    )
    moved = point - start
    return moved, float((slope * moved).sum() + (thresholds * (np.abs(point) - np.abs(start))).sum())
