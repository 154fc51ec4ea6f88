"""Parts of blocks of parameters for partitions: rows that several partitions need are sent once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..objective import Deal, dealt_here

# Parameters: with fewer it takes longer to send shared rows apart than to send them several times.
WORTH_DEALING = 1 << 20


@dataclass(frozen=True, eq=False)
class RowPlan:
    """Rows of a partition's block that other partitions share, and where they stand among all shared rows."""

    shared: np.ndarray  # [n] bool
    taken: np.ndarray  # [shared ones] int32


@dataclass(frozen=True, eq=False)
class DealtBlock:
    """A block of parameters whose shared rows are sent once for all partitions."""

    plan: Any  # a RowPlan, or the handle of one
    shared: Any  # rows that several partitions have, or their handle
    private: np.ndarray  # rows that this partition alone has

    def laid_out(self) -> np.ndarray:
        out = np.empty((len(self.plan.shared), *self.private.shape[1:]), dtype=self.private.dtype)
        out[self.plan.shared] = self.shared[self.plan.taken]
        out[~self.plan.shared] = self.private
        return out


def dealt(rows: Sequence[np.ndarray | None], size: int, hold: Callable[[list[Any]], list[Any]]) -> Deal:
    """Return a function that sends shared rows of large blocks apart, as values for which `hold` returns handles."""
    copied, chosen = dealt_here(rows), [some for some in rows if some is not None]
    if len(chosen) < max(len(rows), 2):
        return copied
    counts = np.zeros(size, dtype=np.int32)
    for some in chosen:
        counts[some] += 1
    several = counts > 1
    shared, number = np.flatnonzero(several), np.cumsum(several, dtype=np.int32) - 1
    plans: list[Any] = []  # handles, from the first large block on

    def deal(block: np.ndarray) -> Iterator[Any]:
        if block.size < WORTH_DEALING:
            yield from copied(block)
            return
        if not plans:
            plans.extend(hold([RowPlan(several[some], number[some][several[some]]) for some in chosen]))
        together = hold([block[shared]])[0]
        for plan, some in zip(plans, chosen, strict=True):
            yield DealtBlock(plan, together, block[some[~several[some]]])

    return deal
