"""What training tells while it runs, to whoever wants to listen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..solvers import Progress

if TYPE_CHECKING:
    from .dev import DevProgress
    from .growth import GrowthRound
    from .structure import Structure


@dataclass(frozen=True)
class Trial:
    """One setting tried in the search for sigma2."""

    term: str  # which term was moved, or all
    score_variance: float  # sigma2 times the mean of k(x, x), of that term
    sigma2: dict[str, float]  # of all terms whose sigma2 is searched for
    log_probability: float  # held-out mean of log p(y_t | x)
    accuracy: float  # held-out


class Observer:
    """What training tells while it runs; this one listens to nothing."""

    def note(self, text: str) -> None:
        """A decision, in words."""

    def stage(self, name: str, total: int | None = None) -> None:
        """A new stage of work begins."""

    def pivots(self, done: int, total: int) -> None:
        """Pivots chosen so far."""

    def passed(self, progress: Progress) -> None:
        """One more pass over the data."""

    def tried(self, trial: Trial) -> None:
        """One setting of sigma2, with held-out figures per position."""

    def grew(self, state: GrowthRound) -> None:
        """A fit on the pivots that are there ended; more may follow."""

    def scored(self, progress: DevProgress) -> None:
        """Held-out data was scored on the way."""

    def selected(self, structure: Structure) -> None:
        """Terms were chosen."""
