"""Label schemes such as that of `B-NP`, `I-NP` and `O`, see "Spans" in docs/method.md.

A label is a letter, the place of a position in its span, and, after the first hyphen, a type; bare letters have the
empty type. Spans are those of conlleval, which gives a meaning to malformed sequences, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

_LETTERS = frozenset("BIOESLU")
OPENING = frozenset("BSU")  # a span begins here whatever came before
CLOSING = frozenset("ESLU")  # a span ends here whatever comes next
WHOLE = frozenset("SU")  # a span of one position

LabelPart = tuple[str, str]  # letter and type of a label


@dataclass(frozen=True)
class Ends:
    """Properties of the labels at the ends of n spans, all [n] bool."""

    opening: np.ndarray  # the first label opens a span
    closing: np.ndarray  # the last label closes one
    whole: np.ndarray  # the first label is a span of one position
    single: np.ndarray  # it has one position
    follows: np.ndarray  # the position before is of the same type


@dataclass(frozen=True)
class Scheme:
    letters: str
    follows: Callable[[LabelPart, LabelPart], bool]  # True if a label may follow another one
    well_formed: Callable[[Ends], np.ndarray]  # [n] bool, spans that are written as the scheme demands
    closed: bool = False  # a sequence may not end inside a span


def _same_type(before: LabelPart, after: LabelPart) -> bool:
    return before[1] == after[1] and before[0] != "O"


def _follows_closed(before: LabelPart, after: LabelPart) -> bool:
    # The next label continues a span that is open, and no other.
    inside = before[0] in ("B", "I")
    return (inside and _same_type(before, after)) if after[0] in "IEL" else not inside


def _well_formed_closed(ends: Ends) -> np.ndarray:
    # Between its ends a span can have nothing but I.
    return (ends.single & ends.whole) | (~ends.single & ends.opening & ends.closing)


# In IOB1, B only separates a span from one of the same type; in IOB2, I only continues one.
IOB1 = Scheme("BIO", lambda last, next_: next_[0] != "B" or _same_type(last, next_), lambda e: e.opening == e.follows)
IOB2 = Scheme("BIO", lambda last, next_: next_[0] != "I" or _same_type(last, next_), lambda e: e.opening)
IOBES = Scheme("BIOES", _follows_closed, _well_formed_closed, closed=True)
BILOU = Scheme("BILOU", _follows_closed, _well_formed_closed, closed=True)


def split_label(label: str) -> tuple[str, str] | None:
    """Return letter and type of a label, or None if it is not of this form. `B-NP-SBJ` has the type `NP-SBJ`."""
    letter, _, kind = label.partition("-")
    return (letter, kind) if letter in _LETTERS else None


def detect_scheme(labels: Iterable[str]) -> str | None:
    """Return the scheme these labels are written in, or None if they are no span labels.

    Only the set of labels counts, the more of the task's labels the better. `iob1` and `iob2` differ in the order of
    labels, so their names are a guess (see `tell_iob_apart`): a type with I but never with B cannot be IOB2.
    """
    found = [split_label(label) for label in set(labels)]
    parts = [part for part in found if part is not None]
    if not parts or len(parts) < len(found):
        return None
    letters = {letter for letter, _ in parts}
    typed = {letter for letter, kind in parts if kind and letter != "O"}
    if typed:
        # Labels that happen to look like E-1 and S-2 are not yet a scheme.
        if not letters & set("BIO"):
            return None
    # Bare letters may as well be letters of an alphabet or names of classes: take only whole schemes.
    elif not any(letters - {"O"} == set(whole) for whole in ("BI", "BIES", "BILU")) and letters != {"I", "O"}:
        return None
    if letters & set("ES"):
        return None if letters & set("LU") else "iobes"
    if letters & set("LU"):
        return "bilou"
    continued = {kind for letter, kind in parts if letter == "I"}
    begun = {kind for letter, kind in parts if letter == "B"}
    return "iob2" if continued <= begun else "iob1"
