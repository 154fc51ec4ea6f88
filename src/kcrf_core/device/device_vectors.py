"""Vectors of parameters on a device: the members of `objective.Vectors`, one array of a backend each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..objective import minimised_model
from ..system import ranges
from .backend import DOUBLE, Array, Backend


class DeviceVectors:
    """The vectors of one problem: as long as theta, with a block for each term."""

    def __init__(self, blocks: Sequence[slice], backend: Backend):
        self.blocks, self.backend = list(blocks), backend
        self.size = max((block.stop for block in blocks), default=0)

    # ------------------------------------------------------------------------- to and from arrays

    def empty(self, dtype: np.dtype | type = np.float64) -> Array:
        """A vector whose values are not set."""
        return self.backend.empty((self.size,), np.dtype(dtype))

    def zeros(self) -> Array:
        return self.backend.zeros((self.size,))

    def from_array(self, values: np.ndarray, dtype: np.dtype | type = np.float64) -> Array:
        return self.backend.array(values, np.dtype(dtype))

    def to_array(self, vector: Array) -> np.ndarray:
        """Its values; they are not to be changed."""
        return self.backend.numpy(vector)

    def cast(self, vector: Array, dtype: np.dtype) -> Array:
        return self.backend.cast(vector, np.dtype(dtype))

    # ------------------------------------------------------------------------- arithmetic

    def length(self, vector: Array) -> int:
        """How many values a vector has, which may be one of another problem."""
        return len(vector)

    def is_zero(self, vector: Array) -> bool:
        return not bool((vector != 0).any())

    def copy(self, vector: Array) -> Array:
        return self.backend.copy(vector)

    def negated(self, vector: Array) -> Array:
        return -vector

    def _double(self, vector: Array) -> Array:
        return self.backend.cast(vector, DOUBLE)

    def dot(self, a: Array, b: Array) -> float:
        return float((self._double(a) * self._double(b)).sum())

    def block_dots(self, a: Array, b: Array) -> list[float]:
        """The inner product of each block."""
        products = self._double(a) * self._double(b)
        return self._numbers([products[block].sum() for block in self.blocks])

    def _numbers(self, sums: Sequence[Array]) -> list[float]:
        """Sums as numbers, waiting for the device once."""
        return self.backend.numpy(self.backend.stack(list(sums))).tolist() if sums else []

    def stepped(self, start: Array, step: float, direction: Array) -> Array:
        """start + step * direction, in double precision."""
        return self._double(start) + step * self._double(direction)

    def add_scaled(self, target: Array, factor: float, vector: Array) -> None:
        """target += factor * vector."""
        target += self.backend.cast(factor * self._double(vector), self.backend.dtype(target))

    def product(self, a: Array, b: Array) -> Array:
        """Of each pair of entries."""
        return a * b

    def quotient(self, a: Array, b: Array) -> Array:
        """Of each pair of entries."""
        return a / b

    # ------------------------------------------------------------------------- blocks

    def of_block(self, number: int) -> DeviceVectors:
        """Vectors that are one block of these."""
        block = self.blocks[number]
        return DeviceVectors([slice(0, block.stop - block.start)], self.backend)

    def take(self, vector: Array, number: int) -> Array:
        """A block of a vector; it is not to be changed."""
        return vector[self.blocks[number]]

    def put(self, target: Array, number: int, block: Array) -> None:
        target[self.blocks[number]] = block

    def multiply_rows(
        self, target: Array, vector: Array, number: int, matrix: np.ndarray, width: int, first: int = 0
    ) -> None:
        """Put matrix [m, m] times m rows [m, width] of a vector's block into the same place of a target."""
        first += self.blocks[number].start
        part, m = slice(first, first + len(matrix) * width), len(matrix)
        rows = self._double(vector[part]).reshape(m, width)
        found = self._held(matrix) @ rows
        target[part] = self.backend.cast(found.reshape(-1), self.backend.dtype(target))

    def multiply_columns(self, target: Array, vector: Array, number: int, matrices: np.ndarray) -> None:
        """The same with a matrix [C, m, m] for each of C columns."""
        C, m, _ = matrices.shape
        first = self.blocks[number].start
        part = slice(first, first + m * C)
        leading = self.backend.permuted(self._double(vector[part]).reshape(m, C), (1, 0))
        found = (self._held(matrices) @ leading[:, :, None])[:, :, 0]
        target[part] = self.backend.cast(self.backend.permuted(found, (1, 0)).reshape(-1), self.backend.dtype(target))

    def _held(self, matrix: np.ndarray) -> Array:
        """A matrix that is multiplied with again and again; the last few stay there."""
        held = self.__dict__.setdefault("_matrices", [])
        for known, there in held:
            if known is matrix:
                return there
        held.append((matrix, self.backend.array(matrix, DOUBLE)))
        del held[: -2 * max(len(self.blocks), 1)]
        return held[-1][1]

    def widened(self, vector: Array, narrow: DeviceVectors) -> Array:
        """A vector of other, shorter blocks as one of these: their values come first, the others are zero."""
        out = self.zeros()
        for few, whole in zip(narrow.blocks, self.blocks, strict=True):
            out[whole.start : whole.start + few.stop - few.start] = vector[few]
        return out

    # ------------------------------------------------------------------------- a Gaussian prior and linearisations

    def _each_block(self, variances: np.ndarray) -> list[tuple[slice, float]]:
        return list(zip(self.blocks, np.asarray(variances, dtype=np.float64).tolist(), strict=True))

    def add_prior(self, gradient: Array, theta: Array, variances: np.ndarray) -> tuple[float, float]:
        """Add theta / sigma^2 to a gradient; sums of |theta|^2 / (2 sigma^2) and of sigma^2 |gradient|^2 / 2."""
        sums = []
        for block, sigma2 in self._each_block(variances):
            point, own = self._double(theta[block]), gradient[block]
            own += point / sigma2
            sums += [(point * point).sum(), (own * own).sum()]
        found = np.array(self._numbers(sums)).reshape(-1, 2)
        return float((found[:, 0] / variances).sum() / 2), float((found[:, 1] * variances).sum() / 2)

    def add_curvature(self, target: Array, vector: Array, variances: np.ndarray) -> None:
        """target += vector / sigma^2."""
        for block, sigma2 in self._each_block(variances):
            own = target[block]
            own += self.backend.cast(vector[block] / sigma2, self.backend.dtype(target))

    def linearised(
        self,
        theta: Array,
        gradient: Array,
        variances: np.ndarray,
        dtype: np.dtype | type,
        others: Sequence[Array],
    ) -> tuple[Array, float, list[float]]:
        """The loss at a point, from P's gradient: sigma g, <g, theta>, and products of sigma g with others and itself.

        g is the gradient without the prior's part; sigma g is kept in `dtype`.
        """
        scaled, along = self.empty(dtype), []
        for block, sigma2 in self._each_block(variances):
            point = self._double(theta[block])
            own = gradient[block] - point / sigma2
            along.append((own * point).sum())
            scaled[block] = self.backend.cast(own * float(np.sqrt(sigma2)), np.dtype(dtype))
        exact = self._double(scaled)
        sums = self._numbers([sum(along), *((exact * self._double(other)).sum() for other in (*others, scaled))])
        return scaled, sums[0], sums[1:]

    # ------------------------------------------------------------------------- an L1 penalty

    def add_sparse_prior(
        self, gradient: Array, theta: Array, variances: np.ndarray, thresholds: Array
    ) -> tuple[float, float, float, float]:
        """Add theta / sigma^2 to a loss's gradient g, with an L1 penalty of thresholds c beside the Gaussian prior.

        What both add to P, <g, theta>, and what `soft_square` says of g.
        """
        square, excess = self.soft_square(gradient, variances, thresholds)
        sums = [(gradient * theta).sum(), (thresholds * abs(theta)).sum()]
        for block, sigma2 in self._each_block(variances):
            sums.append((theta[block] * theta[block]).sum() / (2 * sigma2))
            own = gradient[block]
            own += theta[block] / sigma2
        along, *prior = self._numbers(sums)
        return float(np.sum(prior)), along, square, excess

    def soft_square(self, gradient: Array, variances: np.ndarray, thresholds: Array) -> tuple[float, float]:
        """The sum of sigma^2 soft_c(g)^2 over blocks of finite sigma^2, and the largest |g| / c of the others."""
        squares, excesses = [], []
        for block, sigma2 in self._each_block(variances):
            size, least = abs(self._double(gradient[block])), thresholds[block]
            if np.isfinite(sigma2):
                soft = self.backend.at_least(size - least, 0.0)
                squares.append((soft * soft).sum() * sigma2)
            elif len(size):
                excesses.append(self.backend.largest(size / least))
        found = self._numbers([*squares, *excesses])
        return float(np.sum(found[: len(squares)])), max(found[len(squares) :], default=0.0)

    def soft_products(
        self, gradients: Sequence[Array], shares: np.ndarray, variances: np.ndarray, thresholds: Array
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """For the combination G of K gradients: the sum of sigma^2 soft_c(G)^2, and its derivatives by the shares.

        Half of the first ones [K] and half of the second ones [K, K] come back.
        """
        backend, K = self.backend, len(gradients)
        shares = backend.array(np.asarray(shares, dtype=np.float64))
        square, first, second = 0.0, backend.zeros((K,)), backend.zeros((K, K))
        for block, sigma2 in self._each_block(variances):
            rows = backend.stack([self._double(gradient[block]) for gradient in gradients])
            total, least = shares @ rows, thresholds[block]
            beyond = backend.cast(abs(total) > least, DOUBLE)
            soft = (total - backend.sign(total) * least) * beyond * sigma2
            square = square + (soft * soft).sum() / sigma2
            first = first + rows @ soft
            second = second + sigma2 * ((rows * beyond) @ rows.T)
        return float(square), backend.numpy(first), backend.numpy(second)

    def loss_gradient(
        self, theta: Array, gradient: Array, variances: np.ndarray, dtype: np.dtype | type = np.float64
    ) -> Array:
        """A gradient without the Gaussian prior's part."""
        out = self.empty(dtype)
        for block, sigma2 in self._each_block(variances):
            out[block] = self.backend.cast(gradient[block] - theta[block] / sigma2, np.dtype(dtype))
        return out

    def steepest_square(self, theta: Array, gradient: Array, thresholds: Array) -> float:
        """The squared length of the shortest subgradient of P, from its gradient without the L1 penalty."""
        soft = self.backend.at_least(abs(gradient) - thresholds, 0.0)
        moved = gradient + self.backend.sign(theta) * thresholds
        shortest = self.backend.where(theta != 0, moved, soft)
        return float((shortest * shortest).sum())

    def _free(self, theta: Array, gradient: Array, thresholds: Array) -> Array:
        return (theta != 0) | (abs(gradient) > thresholds)

    def free_count(self, theta: Array, gradient: Array, thresholds: Array) -> int:
        """How many parameters are not zero, or have a slope beyond their threshold."""
        return int(self._free(theta, gradient, thresholds).sum())

    def pairs(self, most: int, dtype: np.dtype | type) -> DevicePairs:
        """Room for so many pairs of a step and a change of the gradient, in double precision where there is plenty."""
        plenty = 16 * most * self.size <= PAIRS_SHARE * self.backend.memory()
        return DevicePairs(self, most, DOUBLE if plenty else dtype)


class DevicePairs:
    """Steps s and changes y of the gradient, by slot, and the products with them that L-BFGS takes.

    Products of pairs kept in single precision are summed in double, a block of columns at a time.
    """

    def __init__(self, vectors: DeviceVectors, most: int, dtype: np.dtype | type):
        self._vectors, self._backend = vectors, vectors.backend
        self.most, self.dtype = most, np.dtype(dtype)
        self._steps = self._backend.zeros((most, vectors.size), self.dtype)
        self._changes = self._backend.zeros((most, vectors.size), self.dtype)

    def put(
        self, slot: int, before: Array, after: Array, gradient: Array, new_gradient: Array, rows: int
    ) -> np.ndarray:
        """Take up a step between two points; products of all steps with its change and the new gradient, [rows, 2]."""
        backend = self._backend
        self._steps[slot] = backend.cast(after - before, self.dtype)
        self._changes[slot] = backend.cast(new_gradient - gradient, self.dtype)
        both = backend.stack([self._vectors._double(self._changes[slot]), self._vectors._double(new_gradient)], 1)
        return backend.numpy(self._products(self._steps, both, rows))

    def _products(self, own: Array, vectors: Array, rows: int) -> Array:
        """Of the first rows with vectors [size, k], in double precision."""
        backend, (size, k) = self._backend, vectors.shape
        whole = size // PIECE
        total = self._vectors._double(own[:rows, whole * PIECE :]) @ vectors[whole * PIECE :]
        for some in ranges(whole, PIECES_AT_ONCE):  # many products in one go: one alone is too small for a card
            part = slice(some.start * PIECE, some.stop * PIECE)
            count = some.stop - some.start
            pieces = backend.permuted(self._vectors._double(own[:rows, part]).reshape(rows, count, PIECE), (1, 0, 2))
            total = total + (pieces @ vectors[part].reshape(count, PIECE, k)).sum(0)
        return total

    def _mixed(self, own: Array, shares: np.ndarray) -> Array:
        """Shares [rows] times rows, in double precision."""
        shares = self._backend.array(np.asarray(shares, dtype=np.float64))
        rows, size, found = len(shares), self._vectors.size, []
        for first in range(0, size, COLUMNS_AT_ONCE):
            part = slice(first, first + COLUMNS_AT_ONCE)
            found.append(shares @ self._vectors._double(own[:rows, part]))
        return self._backend.together(found) if found else self._vectors.zeros()

    def forget(self, slot: int) -> None:
        self._steps[slot] = 0.0
        self._changes[slot] = 0.0

    def stored(self, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the steps and the changes of the first slots, [rows, size] each; they are not to be changed."""
        return self._backend.numpy(self._steps[:rows]), self._backend.numpy(self._changes[:rows])

    def restore(self, steps: np.ndarray, changes: np.ndarray) -> None:
        """Put what `stored` returned into the first slots."""
        self._steps[: len(steps)] = self._backend.array(steps, self.dtype)
        self._changes[: len(changes)] = self._backend.array(changes, self.dtype)

    def step(self, slot: int) -> Array:
        return self._steps[slot]

    def change(self, slot: int) -> Array:
        return self._changes[slot]

    def along(self, vector: Array, rows: int) -> np.ndarray:
        """Products of all steps with a vector, [rows]."""
        return self._backend.numpy(self._products(self._steps, self._vectors._double(vector)[:, None], rows))[:, 0]

    def changes_along(self, vector: Array, rows: int) -> np.ndarray:
        """Products of all changes with a vector, [rows]."""
        return self._backend.numpy(self._products(self._changes, self._vectors._double(vector)[:, None], rows))[:, 0]

    def reduced(self, gradient: Array, shares: np.ndarray) -> Array:
        """Minus the gradient less its shares [rows] of changes."""
        return self._backend.cast(-(gradient + self._mixed(self._changes, shares)), self.dtype)

    def reduced_and_scaled(
        self, gradient: Array, shares: np.ndarray, scale: Array, newest: int | None
    ) -> tuple[Array, np.ndarray, float]:
        """`reduced` times a diagonal, its products with all changes [rows], and y.(scale y) of the newest change y."""
        backend, double, rows = self._backend, self._vectors._double, len(shares)
        found = -(gradient + self._mixed(self._changes, shares)) * double(scale)
        out = backend.cast(found, self.dtype)
        change = double(self._changes[newest or 0])
        bent = (change * change * double(scale)).sum() if newest is not None else backend.zeros(())
        products = self._products(self._changes, double(out)[:, None], rows)[:, 0]
        numbers = backend.numpy(backend.together([products, bent.reshape(1)]))
        return out, numbers[:-1], float(numbers[-1])

    def finish(self, target: Array, length: float, weights: np.ndarray, gradient: Array) -> float:
        """target = length target + weights [rows] times steps, in place; its product with the gradient."""
        found = length * self._vectors._double(target) + self._mixed(self._steps, weights)
        target[:] = self._backend.cast(found, self._backend.dtype(target))
        return self._vectors.dot(target, gradient)

    def minimise_model(
        self,
        theta: Array,
        gradient: Array,
        thresholds: Array,
        scale: Array,
        matrix: np.ndarray,
        slots: Sequence[int],
        most: int,
        tolerance: float,
    ) -> tuple[Array, float]:
        """What `objective.Pairs.minimise_model` does: coordinate after coordinate, so in this process."""
        backend, vectors = self._backend, self._vectors
        free = backend.nonzero(vectors._free(theta, gradient, thresholds))
        here = [backend.numpy(backend.rows(each, free)) for each in (scale, gradient, thresholds, theta)]
        pairs = [
            [backend.numpy(backend.rows(own[slot], free)) for slot in slots] for own in (self._steps, self._changes)
        ]
        step, change = minimised_model(*here, *pairs, matrix, self.dtype, most, tolerance)
        direction = vectors.zeros()
        direction[free] = backend.array(step, DOUBLE)
        return direction, change


PIECE, PIECES_AT_ONCE = 1 << 15, 1 << 7  # columns of pairs that are multiplied, and widened to double precision
COLUMNS_AT_ONCE = PIECE * PIECES_AT_ONCE
PAIRS_SHARE = 1 / 16  # of a device's memory that pairs in double precision may take
