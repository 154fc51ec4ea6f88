"""Sums of what partitions answer, in the one order that all sums over partitions have (`maps.partition_sums`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..maps import TOGETHER, add_rows


@dataclass(frozen=True, eq=False)
class SomeRows:
    """Some rows of an array whose other rows are zero."""

    size: int  # rows of the whole
    places: np.ndarray  # [n] int32 or int64, ascending
    values: np.ndarray  # [n, C]


AnswerBlock: TypeAlias = np.ndarray | SomeRows  # of an answer, for one term


def plus(a: Any, b: Any) -> Any:
    """Add two answers: numbers, arrays, rows, and lists and tuples of these."""
    if isinstance(a, SomeRows):
        places = np.union1d(a.places, b.places)
        values = np.zeros((len(places), a.values.shape[1]))  # sums of several are in double precision
        for summand in (a, b):
            add_rows(values, np.searchsorted(places, summand.places), summand.values)
        return SomeRows(a.size, places, values)
    if isinstance(a, list | tuple):
        return type(a)(plus(x, y) for x, y in zip(a, b, strict=True))
    return a + b


class Accumulator:
    """Running sum of answers in the order of partitions; rows are put where they belong at once."""

    def __init__(self) -> None:
        self._total: Any = None
        self._group: Any = None
        self._count = 0

    def add(self, answer: Any) -> None:
        """Add the next partition's answer to the running sum."""
        if self._count and self._count % TOGETHER == 0:
            self.add_group(self._group)
            self._group = None
        self._group = _into(self._group, answer)
        self._count += 1

    def add_group(self, answer: Any) -> None:
        """Add the sum of the next partitions that stand together."""
        self._total = _into(self._total, answer)

    @property
    def total(self) -> Any:
        if self._group is not None:
            self.add_group(self._group)
            self._group = None
        return self._total


def _into(total: Any, answer: Any) -> Any:
    """Return total + answer, in the place of total where that is an array; None is zero."""
    if isinstance(answer, list | tuple):
        totals = [None] * len(answer) if total is None else total
        return type(answer)(_into(before, more) for before, more in zip(totals, answer, strict=True))
    if isinstance(answer, SomeRows):
        if total is None:
            total = np.zeros((answer.size, answer.values.shape[1]))
        add_rows(total, answer.places, answer.values)
        return total
    if isinstance(answer, np.ndarray):
        return answer.copy() if total is None else np.add(total, answer, out=total)
    return answer if total is None else total + answer
