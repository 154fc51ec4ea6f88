"""Curvature of P over a working set of parameters, and the minimum of a quadratic model of P with an L1 penalty there.

With an L1 penalty most parameters are zero and stay so. The working set has those that are not zero, or whose slope is
beyond their threshold, or lately was. Steps s and changes y of the gradient are kept for it alone: y of a parameter
that joins later is taken for zero, which leaves s.y as it was, s being zero there. With v = sqrt(b) theta for an
initial diagonal b, the curvature of limited-memory BFGS (Byrd, Nocedal and Schnabel 1994) is, with a length l,

    B = l I - W M W^T,    W = [l S, Y],    M^-1 = [l S^T S, L; L^T, -D],    S = sqrt(b) s,  Y = y / sqrt(b)

where L is what is below the diagonal of S^T Y, and D the diagonal. The model has its minimum where

    v(z) = soft(start - (slope - W z) / l, c / l)    and    M^-1 z = W^T (v(z) - start)

2 k equations for k pairs, piecewise linear: with A, where v(z) is not zero, Newton's matrix is M^-1 - W_A^T W_A / l.
Two to four of its steps find the minimum. From step to step A hardly changes, and the sums over A change with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from ...system import Workers, linear_algebra, ranges
from .. import model_minimum

T = TypeVar("T")

# Pairs that are kept: as many as this number of values allows, between these limits; more where those are few values.
FEWEST_PAIRS, MANY_PAIRS, PAIR_VALUES = 10, 40, 1 << 22
MOST_PAIRS, FEW_VALUES = 100, 1 << 20
# Parameters that a thread goes through at once, and the most tasks of this kind.
SLICE, SLICES = 1 << 11, 64
# Newton's steps, at most, and when to stop: where one gained no more than this part of what all did.
MOST_STEPS, ENOUGH = 20, 1e-2
# Parameters that are zero and within their threshold leave once they are this part of the working set.
STALE_SHARE = 0.1
# Room for parameters that join, as a part of the working set.
SPARE = 1 / 16


def _slices(size: int) -> list[slice]:
    return ranges(size, max(SLICE, -(-size // SLICES)))


def _most_pairs(size: int) -> int:
    """Return how many pairs are kept of so many parameters."""
    many = np.clip(PAIR_VALUES // max(size, 1), FEWEST_PAIRS, MANY_PAIRS)
    return int(max(many, min(FEW_VALUES // max(size, 1), MOST_PAIRS)))


class WorkingSet:
    """Parameters that may leave zero, with the last pairs of a step and a change of the gradient."""

    def __init__(self, size: int, dtype: type, workers: Workers):
        self._workers, self._member = workers, np.zeros(size, dtype=bool)
        self.columns = np.empty(0, dtype=np.int64)  # [w] places in theta
        self._root = np.empty(0)  # [w] sqrt(b)
        # [w and more, 2 K] s and y of each slot, scaled
        self._room: np.ndarray = np.empty((0, 2 * MOST_PAIRS), dtype=dtype)
        self._order: list[int] = []  # slots of pairs, the oldest first
        self._gram = np.zeros((0, 0))  # [2 K, 2 K] products of the columns of `_room`
        self.active = np.empty(0, dtype=bool)  # [w] A
        self.active_gram = np.zeros((0, 0))  # [2 K, 2 K] over A alone
        self.length = 0.0  # l; zero: nothing is known yet

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def pairs(self) -> int:
        return len(self._order)

    @property
    def rows(self) -> np.ndarray:
        return self._room[: len(self), : 2 * self._slots]

    @property
    def _slots(self) -> int:
        """Number of slots up to the last one that is taken."""
        return max(self._order, default=-1) + 1

    def _over_slices(self, work: Callable[[slice], T]) -> list[T]:
        return self._workers.listed(work, _slices(len(self)))

    def join(self, columns: np.ndarray, curvature: np.ndarray) -> None:
        """Take up parameters at these places of theta that are no members yet, with their b; they are zero so far."""
        new = ~self._member[columns]
        columns, curvature = columns[new], curvature[new]
        if not len(columns):
            return
        before, after = len(self), len(self) + len(columns)
        self._member[columns] = True
        self.columns = np.concatenate([self.columns, columns])
        self._root = np.concatenate([self._root, np.sqrt(curvature)])
        self.active = np.concatenate([self.active, np.zeros(len(columns), dtype=bool)])
        if after > len(self._room):
            self._make_room(np.arange(before), after)
        self._room[before:after] = 0.0

    def _make_room(self, places: np.ndarray, size: int) -> None:
        """Move some rows to a room for so many parameters, with more slots where there is memory for them."""
        rows = self._room
        most = max(min(_most_pairs(size), 2 * self._slots + 2), self._slots)
        self._room = room = np.empty((size + int(SPARE * size), 2 * most), dtype=rows.dtype)
        some = slice(0, 2 * self._slots)
        self._workers.run(lambda part: np.copyto(room[part, some], rows[places[part], some]), _slices(len(places)))
        grams = self._gram, self.active_gram
        self._gram, self.active_gram = np.zeros((2, 2 * most, 2 * most))
        self._gram[some, some], self.active_gram[some, some] = (gram[some, some] for gram in grams)

    def leave(self, stale: np.ndarray) -> np.ndarray | None:
        """Drop parameters [w] that are zero and want to stay so, once they are many; return places of the others."""
        if np.count_nonzero(stale) <= STALE_SHARE * len(self):
            return None
        self._member[self.columns[stale]] = False
        kept = np.flatnonzero(~stale)
        self.columns, self._root, self.active = self.columns[kept], self._root[kept], self.active[kept]
        self._make_room(kept, len(self))
        self._count_again()
        return kept

    def rescale(self, curvature: np.ndarray) -> None:
        """Take another b [w], and keep the pairs."""
        ratio, self._root = np.sqrt(curvature) / self._root, np.sqrt(curvature)
        self.rows[:, 0::2] *= ratio[:, None]
        self.rows[:, 1::2] /= ratio[:, None]
        self._count_again()

    def _count_again(self) -> None:
        """Compute all sums anew, and forget pairs along which P seems not to curve upwards any longer."""
        k = 2 * self._slots
        rows = self.rows
        self._gram[:k, :k] = sum(self._over_slices(lambda part: rows[part].T @ rows[part]), np.zeros((k, k)))
        self.active[:], self.active_gram[:] = False, 0.0
        self._order = [slot for slot in self._order if self._gram[2 * slot, 2 * slot + 1] > 0]
        self._take_length()

    def _take_length(self) -> None:
        self.length = 0.0
        if self._order:
            step, change = 2 * self._order[-1], 2 * self._order[-1] + 1
            self.length = self._gram[change, change] / self._gram[step, change]

    def forget_pairs(self) -> None:
        self._order.clear()
        self.length = 0.0

    def add(self, step: np.ndarray, change: np.ndarray) -> None:
        """Remember a step [w] and the change of the gradient along it, in the place of the oldest if slots are full."""
        pair, root, active = np.empty((len(self), 2), dtype=self._room.dtype), self._root, self.active

        def scale(part: slice) -> float:
            own = pair[part]
            own[:, 0], own[:, 1] = step[part] * root[part], change[part] / root[part]
            return float(own[:, 0] @ own[:, 1])

        if not np.sum(self._over_slices(scale)) > 0:
            return  # rounding hides that P curves upwards along it
        full = 2 * len(self._order) == self._room.shape[1]
        if full and len(self._order) < _most_pairs(len(self)):
            self._make_room(np.arange(len(self)), len(self))
            full = False
        slot = self._order.pop(0) if full else min(set(range(len(self._order) + 1)).difference(self._order))
        self._order.append(slot)
        where, k, rows = slice(2 * slot, 2 * slot + 2), 2 * self._slots, self.rows

        def multiply(part: slice) -> np.ndarray:
            rows[part, where] = pair[part]
            return rows[part].T @ np.concatenate([pair[part], pair[part] * active[part, None]], axis=1)

        products = sum(self._over_slices(multiply), np.zeros((k, 4)))
        for gram, own in ((self._gram, products[:, :2]), (self.active_gram, products[:, 2:])):
            gram[:k, where], gram[where, :k] = own, own.T
        self._take_length()

    def minimise(
        self, theta: np.ndarray, slope: np.ndarray, thresholds: np.ndarray, length: float
    ) -> tuple[np.ndarray, float]:
        """Return the minimiser of the model around theta [w], and <g, d> with what the step d adds to the penalty."""
        columns = np.array([2 * slot + y for y in (0, 1) for slot in self._order], dtype=np.int64)
        k, rows = self.pairs, self.rows
        factors = np.repeat([length, 1.0], k)  # W is the columns of the pairs times these
        inverse = self._inverse_middle(length)
        factorised = linear_algebra.lu_factor(inverse) if k else None
        start, slope, thresholds = theta * self._root, slope / self._root, thresholds / self._root
        shares, best = np.zeros(2 * k), (np.inf, np.zeros(2 * k), theta, 0.0)
        point = np.empty(len(self))
        for _ in range(MOST_STEPS):
            spread = np.zeros(rows.shape[1], dtype=rows.dtype)
            spread[columns] = factors * shares

            def work(part: slice, spread: np.ndarray = spread) -> np.ndarray:
                """Put v(z) of a slice; return its sums: <slope, d>, |d|^2, the penalty, and products with the pairs."""
                products = np.zeros_like(spread)
                about = start[part], slope[part], thresholds[part], length, point[part]
                return np.concatenate([model_minimum(rows[part], spread, *about, products), products])

            along, square, penalty, *products = sum(self._over_slices(work), np.zeros(3 + rows.shape[1]))
            met = factors * np.array(products)[columns]
            bent = met @ linear_algebra.lu_solve(factorised, met) if k else 0.0
            value = along + penalty + length / 2 * square - bent / 2
            gain = best[0] - value
            if gain > 0:
                best = value, shares, point / self._root, along + penalty
            if not k or abs(gain) <= ENOUGH * abs(value):
                break
            if gain < 0:
                shares = (shares + best[1]) / 2
                continue
            self._activate(point != 0)
            curved = self.active_gram[np.ix_(columns, columns)] * np.outer(factors, factors) / length
            shares = shares + np.linalg.solve(inverse - curved, met - inverse @ shares)
        return best[2], best[3]

    def _inverse_middle(self, length: float) -> np.ndarray:
        """Return M^-1 [2 k, 2 k]."""
        steps = 2 * np.array(self._order, dtype=np.int64)
        crossed = self._gram[np.ix_(steps, steps + 1)]
        lower = np.tril(crossed, -1)
        return np.block([[length * self._gram[np.ix_(steps, steps)], lower], [lower.T, -np.diag(np.diag(crossed))]])

    def _activate(self, active: np.ndarray) -> None:
        """Change the sums over A to those over another set of parameters."""
        changed, k = np.flatnonzero(active != self.active), 2 * self._slots
        if 2 * len(changed) > np.count_nonzero(active):
            self.active_gram[:] = 0.0
            changed = np.flatnonzero(active)
        rows = self.rows

        def multiply(part: slice) -> np.ndarray:
            own = rows[changed[part]]
            return own.T @ (np.where(active[changed[part]], 1, -1).astype(own.dtype)[:, None] * own)

        self.active_gram[:k, :k] += sum(self._workers.listed(multiply, _slices(len(changed))), np.zeros((k, k)))
        self.active = active
