"""Events of a training run, and the observer that receives them.

A listener overrides `Observer.tell` and acts by the type of the event, best with `functools.singledispatchmethod`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from .run import Progress

ALL_TERMS = "all"

TAKEN, EXCLUDED, CHANCE, UNCONFIRMED = "selected", "cannot gain", "like noise", "no held-out gain"
DROPPED, ALWAYS, UNDECIDED = "dropped", "always kept", "undecided"


@dataclass(frozen=True)
class Note:
    """A line for people."""

    text: str
    detail: bool = True  # False where all users should see it, not only those who ask for details


@dataclass(frozen=True)
class Stage:
    """A stage of work has begun, or has come further."""

    name: str
    step: str = ""  # in words: "setting 3 of about 12"
    share: float | None = None  # of the stage that is done, where that is known
    final: bool = False  # True if all choices are made: after the next pass an interruption leaves a model


def variances_text(sigma2: Mapping[str, float]) -> str:
    """Return the prior variance of each term, as messages have it."""
    return ", ".join(f"{name} {value:g}" for name, value in sigma2.items()) or "as given"


@dataclass(frozen=True)
class Trial:
    """One setting was tried in the search for sigma2."""

    term: str  # the term whose sigma2 was moved, or ALL_TERMS
    score_variance: float  # sigma2 times the mean of k(x, x), of that term
    sigma2: dict[str, float]  # of all terms whose sigma2 is searched for
    log_probability: float  # held-out mean of log p(y_t | x)
    metric: str  # one of METRICS: what the figures are
    figures: dict[str, float]  # of held-out data, by decoder

    @property
    def text(self) -> str:
        """Held-out figures in words."""
        parts = [f"{100 * figure:.2f} by {name}" for name, figure in self.figures.items()]
        return f"held-out log p(label) {self.log_probability:.4f}, {self.metric} {', '.join(parts)}"


@dataclass(frozen=True)
class GrowthRound:
    """A fit on the pivots that were there has ended; more pivots may follow."""

    pivots: dict[str, int]  # of each term that grows
    objective: float  # P
    certified_gap: float | None  # to its optimum with these pivots; None where it is unknown
    estimate: float  # of the gain outside them
    bound: float | None  # on it, where all pairs of positions were asked
    passes: int  # so far


@dataclass(frozen=True)
class TermJudgement:
    """One term, judged against the terms that were there before it."""

    term: str
    decision: str  # one of the constants above, from TAKEN to UNDECIDED
    step: int = 0  # how many terms had been taken before
    sigma2: float | None = None  # for which the figures hold
    bound: float | None = None  # on the gain in P
    null: float | None = None  # mean bound of the draws
    ratio: float | None = None  # of bound to null, both without what a constant would gain
    p_value: float | None = None  # of the bound under the null
    draws: int = 0  # of the null
    gain: float | None = None  # by how much the term did lower P
    held_out: float | None = None  # gain in log-likelihood of held-out sequences
    held_out_error: float | None = None  # its standard error

    @property
    def is_confirmed(self) -> bool:
        """True if held-out sequences speak for the term, or none could be held out."""
        if self.held_out is None or self.held_out_error is None:
            return True
        errors = 2 if self.null is None else 1  # without a null, held-out data alone decides
        return self.held_out > max(errors * self.held_out_error, 0.0)


@dataclass(frozen=True)
class Structure:
    """Terms were chosen: which ones, and why."""

    chosen: tuple[str, ...]  # in the order of the model
    judgements: tuple[TermJudgement, ...]  # of every term of the configuration

    def to_dict(self) -> dict[str, Any]:
        return {"chosen": list(self.chosen), "terms": [asdict(judgement) for judgement in self.judgements]}


# Everything that `tell` may get. `Progress` is one more pass of a solver over the data.
Event: TypeAlias = Note | Stage | Progress | Trial | GrowthRound | Structure


class Observer:
    """A listener to a training run; this one ignores all events.

    >>> from kcrf_core.objective.solvers import Note, Observer
    >>> class Notes(Observer):
    ...     def tell(self, event):
    ...         if isinstance(event, Note):
    ...             print(event.text)
    >>> Notes().note("two labels: one score column")
    two labels: one score column
    """

    def tell(self, event: Event) -> None:
        """Receive an event."""

    def note(self, text: str) -> None:
        """Report a detail."""
        self.tell(Note(text))

    def report(self, text: str) -> None:
        """Report a result or a warning that all users should see."""
        self.tell(Note(text, detail=False))

    def steps(self, name: str, done: int, total: int) -> None:
        """Report how many steps of a stage are done."""
        self.tell(Stage(name, f"{done:,} of {total:,}", done / max(total, 1)))
