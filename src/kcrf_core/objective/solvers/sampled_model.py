"""A model of P with a whole matrix, for the few parameters that are left with an L1 penalty.

The Hessian of -log p(y | x) is the covariance of the features' sums under p(y | x), so labellings drawn from that
estimate it, all correlations along the chain included: with several for each parameter no curvature is off by a large
factor, and steps correct the matrix B by BFGS. The model

    <g, d> + d.B d / 2 + sum_j c_j |theta_j + d_j|

has its minimum where the parameters of a set F have signs s, (B d)_F = -(g + c s)_F, and the others are zero. The set
is found by block pivoting (Portugal, Judice and Vicente 1994): those in F whose sign is wrong leave it, those outside
whose slope is beyond c join. Sweeps of coordinate descent come first, and again where that goes round in circles.
"""

from __future__ import annotations

import numpy as np

from ...system import ranges, solve_factorised
from .. import Objective, Point, Vector, sweep
from .bordered import BLOCK, BorderedInverse, factors_of, rows_of

# Labellings that are drawn for each parameter. With d parameters and n labellings curvatures are off by up to
# (1 - sqrt(d / n))^2 and (1 + sqrt(d / n))^2. Passes by 4, 8 and 16 of them: 48, 30 and 25 (120 documents of header).
SAMPLES = 16
# The minimum of a model goes where its curvatures are too small: they are multiplied by this.
LONGER = 1.25
# What is added to the diagonal, as a part of it, so that rounding leaves the matrix positive. It is this part of c or
# more: where expected counts differ from those seen by c, as they do at the minimum, variances are hardly smaller.
# Steps until P was within 1e-6 of the optimum, with all of c and half of it: 48 and 36 (header). Steps in all with
# ridges of 1e-3, 3e-4 and 1e-4: 12, 9 and 10 (30 documents of header), and 18, 14 and 12 that take longer (60).
RIDGE, LEAST_VARIANCE = 3e-4, 0.5
# A model takes about this many multiplications for d parameters, n of them not zero, and a pass so many for each
# position and Y^2 + `PER_POSITION`, in their time. Labellings of one sequence differ in about half of the d or fewer.
PER_CUBE, PER_SOLVED_CUBE, PER_PAIR, PER_POSITION = SAMPLES / 4, 20, 80, 300
# Values of the matrix, at most: so many times those of a vector like theta, or so many where that is less.
MOST_VECTORS, FEWEST_VALUES = 6, 1 << 24
# Parameters that are zero, with slopes below this part of c, leave once what stays is so small a part of all.
NEAR, WORTH_LEAVING = 0.8, 0.9
# Exchanges, at most, and how many may leave no fewer wrong parameters before sweeps of coordinate descent come again.
# They end with a small part of all parameters wrong. Exchanges in the first steps of three models, with 5 and with 20
# sweeps: 20, 19, 3 and 5, 4, 2 (120 documents of header and a ridge of 1e-3); later steps take two either way.
MOST_EXCHANGES, PATIENCE, SWEEPS, FIRST_SWEEPS = 20, 2, 5, 20
FEW = 5e-3
# Where so many parameters or fewer have joined or left since the last equations, few will from now on: `bordered`.
SETTLED, COLUMNS_TOGETHER = 128, 1024
HIDDEN = 1e-9  # rounding of slopes, as a part of c


def affordable(objective: Objective, members: int, nonzero: int, passes: int) -> bool:
    """Return True if a model costs no more than the passes so far, in time and in memory."""
    operations = PER_CUBE * members**3 + PER_SOLVED_CUBE * nonzero**3
    problem = objective.problem
    of_pass = PER_PAIR * problem.positions * (problem.label_count**2 + PER_POSITION)
    return 0 < operations <= passes * of_pass and members**2 <= max(MOST_VECTORS * objective.size, FEWEST_VALUES)


def sampled_matrix(part: Objective, theta: Vector, columns: np.ndarray) -> np.ndarray | None:
    """Estimate the Hessian in some parameters, and make it a little larger; None where that cannot be."""
    matrix = part.sampled_hessian(theta, columns, SAMPLES * len(columns)) if len(columns) else None
    if matrix is not None:
        matrix *= LONGER
        diagonal = np.diag_indices_from(matrix)
        least = LEAST_VARIANCE * part.vectors.values_at(part.thresholds, columns)
        matrix[diagonal] = (1 + RIDGE) * np.maximum(matrix[diagonal], least)
    return matrix


class SampledModel:
    """A quadratic model of P without its penalty, with a matrix."""

    def __init__(self, part: Objective, columns: np.ndarray, matrix: np.ndarray):
        self.columns, self._vectors, self._workers = columns, part.vectors, part.engine.workers
        self.matrix, self._samples = matrix, SAMPLES * len(columns)
        self._least = part.vectors.values_at(part.thresholds, columns)
        self._start, self._slope = np.empty(0), np.empty(0)
        self._inverse: BorderedInverse | None = None
        self._free = np.empty(0, dtype=bool)  # of the last equations

    def go_on(self, before: SampledModel, kept: np.ndarray, own: np.ndarray) -> None:
        """Take up the matrix of an earlier model, with all that it has learned: its `kept` parameters are `own` here.

        Among these it becomes the mean of both, by the labellings drawn for each; the others keep their regression on
        them.
        """
        matrix, others = self.matrix, np.setdiff1d(np.arange(len(self.columns)), own)
        cross = matrix[np.ix_(own, others)]
        triangle = factors_of(matrix, own, np.float32, self._workers)
        regression = solve_factorised(triangle, cross.T, self._workers).T if len(others) else cross
        self._samples += before._samples
        weight, joint = np.float32(before._samples / self._samples), np.empty_like(cross)

        def join(rows: slice) -> None:
            mean = matrix[np.ix_(own[rows], own)]
            mean += weight * (before.matrix[np.ix_(kept[rows], kept)] - mean)
            matrix[np.ix_(own[rows], own)], joint[rows] = mean, mean @ regression

        self._workers.run(join, ranges(len(own), BLOCK))
        matrix[np.ix_(others, others)] += regression.T @ joint - cross.T @ regression
        matrix[np.ix_(own, others)], matrix[np.ix_(others, own)] = joint, joint.T

    def _times(self, vector: np.ndarray) -> np.ndarray:
        out, vector = np.empty(len(vector)), vector.astype(np.float32)

        def multiply(rows: slice) -> None:
            out[rows] = self.matrix[rows] @ vector

        self._workers.run(multiply, ranges(len(out), BLOCK))
        return out

    def step(self, theta: Vector, now: Point) -> tuple[np.ndarray, np.ndarray, float]:
        """Return parameters of the model, a step of theirs to its minimum, and its change of P."""
        start, slope = (self._vectors.values_at(vector, self.columns) for vector in (theta, now.gradient))
        kept = np.flatnonzero((start != 0) | (np.abs(slope) > NEAR * self._least))
        if len(kept) < WORTH_LEAVING * len(start):
            self.matrix, self._inverse = rows_of(self.matrix, kept, np.float32, self._workers), None
            start, slope, self._least, self.columns = (own[kept] for own in (start, slope, self._least, self.columns))
        sweeps = SWEEPS if len(self._start) else FIRST_SWEEPS
        least, self._start, self._slope = self._least, start, slope
        before, best = float(least @ np.abs(start)), (np.inf, np.zeros(len(start)), slope, 0.0)

        def swept(point: np.ndarray, slopes: np.ndarray) -> np.ndarray:
            """Return signs after sweeps from a point."""
            point, slopes = point.copy(), slopes.copy()
            self._sweep(point, slopes, sweeps)
            tried(point - start, slopes, point)
            return np.sign(point)

        def tried(step: np.ndarray, slopes: np.ndarray, point: np.ndarray) -> bool:
            """Return True if a step is the best so far."""
            nonlocal best
            along = float(slope @ step + least @ np.abs(point)) - before
            value = along + float((slopes - slope) @ step) / 2
            better = value < best[0]
            best = (value, step, slopes, along) if better else best
            return better

        signs, self._free = swept(start, slope), start != 0
        fewest, patience = len(start) + 1, PATIENCE
        for _ in range(MOST_EXCHANGES):
            free = signs != 0
            step = self._solved(start, slope + least * signs, free)
            slopes, point = slope + self._times(step), np.where(free, start + step, 0.0)
            better = tried(step, slopes, point)
            wrong = np.where(free, point * signs < 0, np.abs(slopes) > (1 + HIDDEN) * least)
            count = int(np.count_nonzero(wrong))
            if not count or (count <= FEW * len(start) and better):
                break
            if count < fewest:
                fewest, patience = count, PATIENCE
            else:
                patience -= 1
            signs = np.where(wrong, np.where(free, 0.0, -np.sign(slopes)), signs)
            if not patience:  # exchanges may go round in circles; sweeps never do
                signs = swept(start + best[1], best[2])
                fewest, patience = len(start) + 1, PATIENCE
        return start, best[1], best[3]

    def _sweep(self, point: np.ndarray, slopes: np.ndarray, sweeps: int) -> None:
        """Minimise over one coordinate after another, in place; slopes of others follow after each block of them."""
        for _ in range(sweeps):
            for block in ranges(len(point), BLOCK):
                before, rows = point[block].copy(), self.matrix[block]
                sweep(np.ascontiguousarray(rows[:, block]), point[block], slopes[block].copy(), self._least[block])
                moved = (point[block] - before).astype(np.float32)

                def follow(part: slice, rows: np.ndarray = rows, moved: np.ndarray = moved) -> None:
                    slopes[part] += moved @ rows[:, part]

                if moved.any():
                    self._workers.run(follow, ranges(len(slopes), COLUMNS_TOGETHER))

    def _solved(self, start: np.ndarray, slope: np.ndarray, free: np.ndarray) -> np.ndarray:
        """Return the step that brings the others to zero and takes the slope off those that are free."""
        step = np.where(free, 0.0, -start)
        slope = slope + self._times(step) if step.any() else slope
        found = None if self._inverse is None else self._inverse.times(free, -slope)
        if found is None and np.count_nonzero(free != self._free) <= SETTLED:
            self._inverse = BorderedInverse(self.matrix, free, self._workers)
            found = self._inverse.times(free, -slope)
        elif found is None:
            own, found, self._inverse = np.flatnonzero(free), np.zeros(len(free)), None
            triangle = factors_of(self.matrix, own, np.float32, self._workers)
            found[own] = solve_factorised(triangle, -slope[None, own], self._workers)[0]
        self._free = free
        return step + found

    def slope(self, step: np.ndarray, new: Point) -> float:
        """Return the slope of P along a step at the point it leads to."""
        return slope_along(self._start, step, self._vectors.values_at(new.gradient, self.columns), self._least)

    def remember(self, step: np.ndarray, new: Point) -> None:
        """Correct the matrix by what the gradient has changed along a step."""
        change, bent = self._vectors.values_at(new.gradient, self.columns) - self._slope, self._times(step)
        curved, modelled = float(step @ change), float(step @ bent)
        if not curved > 0:
            return

        both = np.stack([change, bent]).astype(np.float32)
        scales = np.array([[1 / curved], [-1 / modelled]], dtype=np.float32)

        def correct(rows: slice) -> None:
            self.matrix[rows] += (both[:, rows] * scales).T @ both

        self._workers.run(correct, ranges(len(step), BLOCK))
        if self._inverse is not None:
            self._inverse.correct(both, scales[:, 0])


def slope_along(start: np.ndarray, step: np.ndarray, gradient: np.ndarray, thresholds: np.ndarray) -> float:
    """Return the slope of P with its penalty along a step, at its end."""
    point = start + step
    signs = np.sign(np.where(point != 0, point, start))
    return float((gradient + thresholds * signs) @ step)
