"""Scaling of numbers by the mean and spread of their sequence, or of their group, such as a subject.

Numbers are counted in units of training, u = (x - mean) / spread, with the mean of all training data and the spread
within its groups. A group with n known numbers u, their sum a and the sum b of their squares has

    mean      a / (n + K)
    variance  (b - a a / n + K) / (n + K)

where K is 0 if all of the group is known, as in training; a group without spread then has that of training. Online, a
position is scaled by what has been read of its group, itself included, and K positions like those of training.
Sums go over runs of positions within sequences, then over runs, so that they do not depend on blocks of a file.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..corpora import Columns
from ..errors import DataError

PRIOR = 30  # K online, in positions
CONSTANT = 1e-6  # spread, in units of training, that may be rounding
LARGEST = 1e18  # number in units of training: sums of squares stay finite

Totals = dict[Hashable, np.ndarray]  # of groups: numbers, their sums and those of their squares, [3, r]


@dataclass(frozen=True)
class GroupScaling:
    """Units of training for columns of numbers, and the column of groups."""

    mean: np.ndarray  # [r]
    spread: np.ndarray  # [r] within groups
    column: int = -1  # with the names of groups; -1: each sequence is a group

    @classmethod
    def fit(
        cls, mean: np.ndarray, scale: np.ndarray, column: int, parts: Iterable[tuple[Columns, np.ndarray]]
    ) -> GroupScaling:
        """Find the spread within groups of numbers [n, r], in parts of training data with this mean and scale."""
        every, count, within = cls(mean, scale, column), np.zeros(len(mean)), np.zeros(len(mean))
        for columns, raw in parts:
            for n, a, b in every.totals(columns, raw).values():
                count += n
                within += np.maximum(b - a * a / np.maximum(n, 1), 0.0)
        spread = np.sqrt(within / np.maximum(count, 1))
        return cls(mean, np.where(spread > CONSTANT, spread, 1.0) * scale, column)

    def totals(self, columns: Columns, raw: np.ndarray, known: Totals | None = None) -> Totals:
        """Return the totals of groups of numbers [N, r], added to those that are `known`."""
        totals = {} if known is None else known
        if not len(raw):
            return totals
        names, codes = self._groups(columns)
        runs = np.union1d(columns.corpus.offsets[:-1], np.flatnonzero(codes[1:] != codes[:-1]) + 1)
        runs = runs[runs < len(raw)]
        sums = np.add.reduceat(_entries(self._units(columns, raw)), runs, axis=0)
        for code, own in zip(codes[runs].tolist(), sums, strict=True):
            totals[names[code]] = totals.get(names[code], 0.0) + own
        return totals

    def scaled(self, columns: Columns, raw: np.ndarray, totals: Totals | None = None) -> np.ndarray:
        """Return numbers [N, r] by mean and spread of their groups, with `totals` or of the numbers themselves."""
        if not len(raw):
            return raw
        totals = self.totals(columns, raw) if totals is None else totals
        names, codes = self._groups(columns)
        nothing = np.zeros((3, raw.shape[1]))
        n, a, b = np.stack([totals.get(name, nothing) for name in names], axis=1)  # [G, r] each
        mean = a / np.maximum(n, 1)
        variance = b / np.maximum(n, 1) - mean * mean
        deviation = np.sqrt(np.where(variance > CONSTANT**2 * (1 + mean * mean), variance, 1.0))
        return (self._units(columns, raw) - mean[codes]) / deviation[codes]

    def scaled_online(self, columns: Columns, raw: np.ndarray, known: Totals, continues: bool) -> np.ndarray:
        """Return numbers [N, r] by what is known of their groups before each, and put them into what is `known`.

        The first sequence goes on with the last one before it if it `continues`.
        """
        names, codes = self._groups(columns)
        if self.column < 0:  # the sequence that is open has the number -1
            earlier: Totals = {0: known[-1]} if continues and -1 in known else {}
            known.clear()
            known |= earlier
        units, order = self._units(columns, raw), np.argsort(codes, kind="stable")
        entries, out = _entries(units), np.empty_like(units)
        for rows in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
            name = names[codes[rows[0]]]
            begin = known.get(name, np.zeros(entries.shape[1:]))
            seen = np.cumsum(np.concatenate([begin[None], entries[rows]]), axis=0)[1:]
            known[name] = seen[-1]
            n, a, b = np.moveaxis(seen, 1, 0)  # [rows, r] each
            variance = (np.maximum(b - a * a / np.maximum(n, 1), 0.0) + PRIOR) / (n + PRIOR)
            out[rows] = (units[rows] - a / (n + PRIOR)) / np.sqrt(variance)
        if self.column < 0:
            known[-1] = known[len(names) - 1]
        return out

    def _groups(self, columns: Columns) -> tuple[Sequence[Hashable], np.ndarray]:
        """Return names of groups, and for each position the number of its group [N]."""
        corpus = columns.corpus
        if self.column < 0:
            return range(corpus.sequences), np.repeat(np.arange(corpus.sequences), np.diff(corpus.offsets))
        names, codes = columns.distinct(self.column)
        lacking = np.isin(codes, [code for code, name in enumerate(names) if name in ("", *columns.missing)])
        if lacking.any():
            message = f"column {self.column + 1} has no value, and names the group that numbers are scaled by"
            raise DataError(message, corpus.source, int(corpus.lines[lacking.argmax()]))
        return names, codes

    def _units(self, columns: Columns, raw: np.ndarray) -> np.ndarray:
        """Return numbers in units of training."""
        with np.errstate(over="ignore"):
            units = (raw - self.mean) / self.spread
        large = (np.abs(units) >= LARGEST).any(axis=1)
        if large.any():
            line = int(columns.corpus.lines[large.argmax()])
            raise DataError("a number is too large to be scaled by its group", columns.corpus.source, line)
        return units


def _entries(units: np.ndarray) -> np.ndarray:
    """Return for each number whether it is known, itself and its square, zeros if it is not: [N, 3, r]."""
    lacking = np.isnan(units)
    numbers = np.where(lacking, 0.0, units)
    return np.stack([~lacking, numbers, numbers * numbers], axis=1)
