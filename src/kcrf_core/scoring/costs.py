"""Costs of missing a label, and a bonus for spans: other labels than the most probable ones.

Costs: labels are chosen by the largest cost times probability.

Where missing a label costs c(y), and all wrong labels in its place are equally wrong, the label y with the largest
c(y) p(y | x) loses least on average. Probabilities stay as they are. For two labels this is a threshold, y where

    p(y | x) >= 1 / (1 + c),    c the cost of y; that of the other one is 1.

Bonus: Viterbi decoding of scores to which each span adds a number b finds spans whose probability is at least
1 / (1 + exp(b)), if they are either there or not. F1 is largest where this is F / 2, half of the F1 that is reached
(Lipton, Elkan, Naryanaswamy 2014): b = log(2 / F - 1).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import ConfigError, suggestion
from . import DECODINGS
from .schemes import detect_scheme, labels_of_spans, split_label
from .spans import SpanFinder

# A smaller F1 than this is too uncertain to say how many more spans there are.
LEAST_F1 = 0.1


@dataclass(frozen=True)
class Decision:
    """The rule that chooses labels by the probabilities of a model; by default the model's own."""

    decode: str | None = None  # one of DECODINGS; None: the model's, or what costs take
    cost: Mapping[str, float] = field(default_factory=dict)  # of missing a label, or the labels of a type
    span_bonus: float | None = None  # of each span, with Viterbi decoding; None: the model's, or 0 with `decode`

    def __post_init__(self) -> None:
        if self.decode not in (None, *DECODINGS):
            raise ConfigError(f"'decode' is {self.decode!r}, not one of {', '.join(DECODINGS)}", settings=["decode"])
        if self.cost and self.decode == "viterbi":
            raise ConfigError(
                "a cost weighs the marginal of each label, but viterbi finds the most probable labelling "
                "as a whole: leave out 'decode', or set it to posterior",
                settings=["decode"],
            )
        if self.cost and self.span_bonus is not None:
            message = "a cost is for posterior decoding, 'span_bonus' for viterbi: give one of them"
            raise ConfigError(message, settings=["span_bonus"])
        if self.decode == "posterior" and self.span_bonus is not None:
            raise ConfigError("'span_bonus' is for viterbi, not for posterior decoding", settings=["span_bonus"])

    def decoder(self, stored: str) -> str:
        """Return the decoder to use with a model that stores this one: costs weigh label by label."""
        if self.decode is None and self.span_bonus is not None:
            return "viterbi"
        return self.decode or ("posterior" if self.cost else stored)

    def costs(self, labels: Sequence[str], odd: Collection[str] = ()) -> np.ndarray | None:
        """Return the costs [Y] of missing each label, or None if all are equal.

        Odd labels are no labels of spans.
        """
        return label_costs(labels, self.cost, odd) if self.cost else None


def label_costs(
    labels: Sequence[str],
    cost: Mapping[str, float],
    odd: Collection[str] = (),
) -> np.ndarray:
    """Return costs [Y] of missing each label, 1 unless given: by a label, or by a type of spans.

    Odd labels are no labels of spans.

    >>> from kcrf_core.scoring.costs import label_costs
    >>> label_costs(["B-PER", "I-PER", "O"], {"PER": 5, "I-PER": 2})
    array([5., 2., 1.])
    """
    out = np.ones(len(labels))
    kinds: list[str | None] = [None] * len(labels)
    if detect_scheme(spans := labels_of_spans(labels, odd)) is not None:
        kinds = [part[1] or None for part in map(split_label, spans) if part is not None]
    alone = [name for name in cost if name in labels]
    for name in [*(name for name in cost if name not in labels), *alone]:  # a label goes before its type
        value = cost[name]
        if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 < value < np.inf:
            raise ConfigError(f"the cost of '{name}' is {value!r}, not a finite number above 0", settings=["cost"])
        meant = [label == name if name in alone else kind == name for label, kind in zip(labels, kinds, strict=True)]
        if not any(meant):
            known = [*dict.fromkeys(kind for kind in kinds if kind), *labels]
            shown = ", ".join(known[:20]) + (", ..." if len(known) > 20 else "")
            message = f"a cost for '{name}', which is no label{suggestion(name, known)}; there are: {shown}"
            raise ConfigError(message, settings=["cost"])
        out[meant] = value
    return out


def span_bonuses(labels: Sequence[str], bonus: float) -> np.ndarray:
    """Return what each label adds to the score of a labelling behind each label and, in the last row, as the first.

    That is the bonus if a span begins there, as `SpanFinder` finds spans in any scheme, else 0; [Y + 1, Y].

    >>> from kcrf_core.scoring import span_bonuses
    >>> span_bonuses(["B-PER", "I-PER", "O"], 0.5)
    array([[0.5, 0. , 0. ],
           [0.5, 0. , 0. ],
           [0.5, 0.5, 0. ],
           [0.5, 0.5, 0. ]])
    """
    if detect_scheme(labels) is None:
        message = "'span_bonus' is for labels of spans, such as B-PER, I-PER and O"
        raise ConfigError(message, settings=["span_bonus"])
    finder = SpanFinder(labels)
    begins = np.vstack([finder.apart, np.ones(len(labels), dtype=bool)]) & (finder.kinds >= 0)
    return np.where(begins, bonus, 0.0)


def best_bonus(f1: float) -> float:
    """Return the bonus for spans with which F1 is largest, where it is this without one; two digits.

    >>> from kcrf_core.scoring import best_bonus
    >>> best_bonus(0.5), best_bonus(0.95)
    (1.1, 0.1)
    """
    return round(math.log(2.0 / max(f1, LEAST_F1) - 1.0), 2)
