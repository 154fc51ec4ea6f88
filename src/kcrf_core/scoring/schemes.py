"""Label schemes such as that of `B-NP`, `I-NP` and `O`, see "Spans" in docs/method.md.

A label is a letter, the place of a position in its span, and, after the first hyphen, a type; bare letters have the
empty type. Spans are those of conlleval, which gives a meaning to malformed sequences, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..system import MOST_LISTED
from . import SCHEMES

if TYPE_CHECKING:
    import numpy as np

_LETTERS = frozenset("BIOESLU")
OPENING = frozenset("BSU")  # a span begins here whatever came before
CLOSING = frozenset("ESLU")  # a span ends here whatever comes next
WHOLE = frozenset("SU")  # a span of one position
OUTSIDE = "O"

MOST_ODD = 0.01  # share of labels that may be of another form than those of a scheme
MANY_ODD = 0.5  # share up to which others are worth a warning

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


def odd_labels(counts: Mapping[str, int], most: float = MOST_ODD) -> tuple[str, ...]:
    """Return the labels that are not of the scheme of nearly all others; none without a scheme.

    `counts` says how often each label occurs, `most` is the largest share of odd labels; a single
    one is always few.

    >>> from kcrf_core.scoring import odd_labels
    >>> odd_labels({"B-PER": 60, "I-PER": 39, "O": 900, "0": 1})
    ('0',)
    >>> odd_labels({"noun": 60, "verb": 39, "O": 900})
    ()
    """
    if detect_scheme(counts) is not None:
        return ()
    total, best = sum(counts.values()), dict[str, int]()
    for letters in dict.fromkeys(scheme.letters for scheme in SCHEMES.values()):
        odd, spans, of_form = dict[str, int](), 0, 0
        for label, count in counts.items():
            part = split_label(label)
            if part is None or part[0] not in letters:
                odd[label] = count
                of_form += 0 if part is None else count
            elif part[0] != OUTSIDE:
                spans += count
        number = sum(odd.values())
        # Where O is most of the data, labels of classes without a scheme are few, too, but those of
        # spans are fewer.
        few = number <= max(most * total, 1) and number < spans and of_form <= most * spans
        if few and detect_scheme(counts.keys() - odd) and (not best or number < sum(best.values())):
            best = odd
    return tuple(best)


def labels_of_spans(labels: Sequence[str], odd: Collection[str]) -> tuple[str, ...]:
    """Return labels as spans are counted by them: with O in the place of odd ones."""
    return tuple(OUTSIDE if label in odd else label for label in labels)


def odd_remark(
    scheme: str,
    odd: Sequence[str],
    counts: Mapping[str, int],
    line: Callable[[str], int | None],
    what: str = "labels",
) -> str:
    """Return a remark on odd labels; `line` returns the first line of a label, if that is known."""
    number, total = sum(counts[label] for label in odd), sum(counts.values())
    verb, them = ("is", "it is") if number == 1 else ("are", "they are")
    counted_as = f"{them} counted as O for spans: {labels_with_lines(odd, counts, line)}"
    return f"{number:,} of {total:,} {what} {verb} not of the scheme {scheme}, and {counted_as}"


def lost_spans_remark(
    counts: Mapping[str, int],
    line: Callable[[str], int | None],
    what: str = "labels",
) -> str | None:
    """Return a remark on labels of which many are those of a scheme, but not enough."""
    many = odd_labels(counts, MANY_ODD)
    if not many or odd_labels(counts):
        return None
    spans = next(label for label in counts if label not in many and label != OUTSIDE)
    number, total = sum(counts[label] for label in many), sum(counts.values())
    return (
        f"{what} such as '{spans}' are those of spans, but {number:,} of {total:,} are not, so that "
        f"no spans are scored: {labels_with_lines(many, counts, line)}"
    )


def labels_with_lines(
    labels: Sequence[str],
    counts: Mapping[str, int],
    line: Callable[[str], int | None],
) -> str:
    """Return labels with the number of each and its first line; of many the first.

    >>> from kcrf_core.scoring import labels_with_lines
    >>> labels_with_lines(["0", "x"], {"0": 1, "x": 3}, {"0": 302, "x": 17}.get)
    "'0' in line 302, 'x' (3, first in line 17)"
    """
    shown = []
    for label in labels[:MOST_LISTED]:
        number, first = counts[label], line(label)
        if number == 1:
            shown.append(f"'{label}'" if first is None else f"'{label}' in line {first}")
        else:
            place = "" if first is None else f", first in line {first}"
            shown.append(f"'{label}' ({number:,}{place})")
    more = len(labels) - len(shown)
    return ", ".join(shown) + (f", and {more:,} more" if more else "")
