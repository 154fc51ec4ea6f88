"""Partitions: runs of rows whose sums are taken by themselves, wherever each of them is.

A sum over rows of a map is taken within each partition, in the order of rows; then over `TOGETHER` partitions after
each other, and then over those. This tree is the same whether one process goes through all rows or each partition is
somewhere else, and so are the bits of what is summed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add
from typing import TypeVar

import numpy as np

from .._lazy import cached_property
from . import _sparse
from .native import TOGETHER

Summand = TypeVar("Summand")


@dataclass(frozen=True, eq=False)
class Partitions:
    """Borders of partitions of rows."""

    borders: np.ndarray  # [partitions + 1] int64, from 0 to the number of rows

    @classmethod
    def one(cls, rows: int) -> Partitions:
        """Return one partition of all rows."""
        return cls(np.array([0, rows], dtype=np.int64))

    def __len__(self) -> int:
        return len(self.borders) - 1

    @cached_property
    def slices(self) -> list[slice]:
        return [slice(first, last) for first, last in pairwise(self.borders.tolist())]

    def within(self, rows: np.ndarray) -> Partitions:
        """Return the partitions of some of the rows, given in ascending order."""
        return Partitions(np.searchsorted(rows, self.borders).astype(np.int64))

    def of_groups(self, group: np.ndarray) -> Partitions:
        """Return partitions of distinct rows, where those of a partition come after those of partitions before it.

        `group` [N] has the distinct row of each row.
        """
        ends = [int(group[:border].max(initial=-1)) + 1 for border in self.borders.tolist()]
        return Partitions(np.maximum.accumulate(np.array(ends, dtype=np.int64)))


def tree_sum(parts: Sequence[Summand], plus: Callable[[Summand, Summand], Summand] = add) -> Summand:
    """Sum the answers of partitions, in the one order that all sums over partitions have."""
    groups = [reduce(plus, parts[first : first + TOGETHER]) for first in range(0, len(parts), TOGETHER)]
    return reduce(plus, groups)


def summed_by(partitions: Partitions | None, rows: int, work: Callable[[slice], Summand]) -> Summand:
    """Sum what `work` returns for the rows of each partition; None is one partition of so many rows."""
    return tree_sum([work(part) for part in (partitions or Partitions.one(rows)).slices])


def add_rows(total: np.ndarray, places: np.ndarray, values: np.ndarray) -> None:
    """Add values [n, C] to total [D, C] float64 at places [n], in place, no place twice."""
    _sparse.add_rows(total, np.ascontiguousarray(places, dtype=np.int64), np.ascontiguousarray(values))
