"""Label schemes: what stands behind `B-NP`, `I-NP`, `O` and their relatives.

A label is a letter and, after the first hyphen, a type; bare letters have the empty type. The letters say
where a position stands in its span:

    iob1    I inside; B only where a span begins right after another of its type; O outside
    iob2    B begins every span, I continues it
    iobes   B begins, I continues, E ends; S is a whole span of one position
    bilou   the same with L for E and U for S

Spans are those of conlleval, the scorer of the CoNLL shared tasks (E. Tjong Kim Sang, version of
2004-01-26), which gives a meaning to malformed sequences too: cut a sequence between two neighbours when

    exactly one of them is O, or
    their types differ, or
    the second is B (S, U), or
    the first is E (L, S, U);

the pieces that are not O are its spans. So I after O, or I of a new type, begins a span as if it were B. One
rule serves all schemes: on IOB1 and IOB2 it is conlleval's own. On IOBES conlleval itself is of no use (it
does not know S, and runs E and a following B of the same type together); there the rule is seqeval's.

Read strictly, only those of these spans count that are written as the scheme demands:

    iob1    begun by B if the position before is of the same type, else by I
    iob2    begun by B
    iobes   S alone, or B, then any number of I, then E
    bilou   U alone, or B, then any number of I, then L
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import DataError

SCHEME_LETTERS = {"iob1": "BIO", "iob2": "BIO", "iobes": "BIOES", "bilou": "BILOU"}

_LETTERS = frozenset("BIOESLU")
_OPENING = frozenset("BSU")  # a span begins here whatever came before
_CLOSING = frozenset("ESLU")  # a span ends here whatever comes next
_WHOLE = frozenset("SU")  # a span of one position


def split_label(label: str) -> tuple[str, str] | None:
    """Letter and type of a label, or None if it is not of this form. `B-NP-SBJ` has the type `NP-SBJ`."""
    letter, _, kind = label.partition("-")
    return (letter, kind) if letter in _LETTERS else None


def detect_scheme(labels: Iterable[str]) -> str | None:
    """The scheme these labels are written in, or None if they are no span labels.

    Only the set of labels counts, the more of the task's labels the better. `iob1` and `iob2` differ in
    how labels follow each other, so their names are a guess (see `tell_iob_apart`; unless strictly, they are scored
    alike): a type that occurs with I but never with B cannot be IOB2.
    """
    parts = [split_label(label) for label in set(labels)]
    if not parts or None in parts:
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


def tell_iob_apart(scheme: str | None, alphabet: Sequence[str], codes: np.ndarray, offsets: np.ndarray) -> str | None:
    """A detected scheme, with `iob1` and `iob2` told apart by how well each explains a labelling [N]."""
    if scheme not in ("iob1", "iob2"):
        return scheme
    finder = SpanFinder(alphabet)
    other = "iob1" if scheme == "iob2" else "iob2"
    explained = {name: len(finder.find(codes, offsets, name)[0]) for name in (scheme, other)}
    return max(explained, key=explained.__getitem__)  # the first of two that are equal


@dataclass(frozen=True)
class Transitions:
    """Which labels may follow each other, begin and end a sequence."""

    pairs: np.ndarray  # [Y, Y] bool
    first: np.ndarray  # [Y] bool
    last: np.ndarray  # [Y] bool


def allowed_transitions(labels: Sequence[str], scheme: str) -> Transitions:
    """What a well-formed sequence of the scheme can be made of."""
    letters = SCHEME_LETTERS[scheme]
    parts = [split_label(label) for label in labels]
    for label, part in zip(labels, parts, strict=True):
        if part is None or part[0] not in letters:
            raise DataError(f"label '{label}' does not belong to the scheme {scheme} ({', '.join(letters)})")
    outside = ("O", "")

    def follows(before: tuple[str, str], after: tuple[str, str]) -> bool:
        same = before[1] == after[1] and before[0] != "O"
        if scheme == "iob1":  # B only separates a span from one of the same type
            return after[0] != "B" or same
        # Inside a span, what comes next continues it; outside, what comes next does not.
        open_span = before[0] == "B" or before[0] == "I"
        continues = after[0] in "IEL"
        if scheme == "iob2":  # a span may end anywhere
            return not continues or (open_span and same)
        return (open_span and same) if continues else not open_span

    pairs = np.array([[follows(before, after) for after in parts] for before in parts], dtype=bool)
    first = np.array([follows(outside, after) for after in parts], dtype=bool)
    last = np.ones(len(parts), dtype=bool)
    if scheme in ("iobes", "bilou"):
        last = np.array([follows(before, outside) for before in parts], dtype=bool)
    return Transitions(pairs, first, last)


def spans(labels: Sequence[str]) -> list[tuple[int, int, str]]:
    """The spans of one sequence, in order: (start, end, type), the end exclusive."""
    alphabet = list(dict.fromkeys(labels))
    code = {label: y for y, label in enumerate(alphabet)}
    codes = np.fromiter((code[label] for label in labels), dtype=np.int64, count=len(labels))
    finder = SpanFinder(alphabet)
    starts, ends, kinds = finder.find(codes, np.array([0, len(labels)]))
    return [
        (start, end, finder.types[kind])
        for start, end, kind in zip(starts.tolist(), ends.tolist(), kinds.tolist(), strict=True)
    ]


class SpanFinder:
    """Finds spans in many sequences at once, over labels given as numbers.

    `alphabet[y]` is the label with number y; `types` are the types of its labels, sorted.
    """

    def __init__(self, alphabet: Sequence[str]):
        parts = []
        for label in alphabet:
            part = split_label(label)
            if part is None:
                raise DataError(f"label {label!r} is not of the form B-TYPE, I-TYPE, O (or E, S, L, U)")
            parts.append(part)
        # The type of O, bare or not, names no span.
        self.types = sorted({kind for letter, kind in parts if letter != "O"})
        number = {kind: k for k, kind in enumerate(self.types)}
        # [Y] each, by label
        self._kind = np.array([-1 if letter == "O" else number[kind] for letter, kind in parts], dtype=np.int64)
        self._opening = np.array([letter in _OPENING for letter, _ in parts], dtype=bool)
        self._closing = np.array([letter in _CLOSING for letter, _ in parts], dtype=bool)
        self._whole = np.array([letter in _WHOLE for letter, _ in parts], dtype=bool)

    def find(
        self, codes: np.ndarray, offsets: np.ndarray, strict: str | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Starts, ends (exclusive) and types (indices into `types`) of all spans, in order.

        `codes` are the labels of N positions, sequence s is positions offsets[s]:offsets[s+1]. With `strict`, the name
        of a scheme, only spans that it would write like this.
        """
        N = len(codes)
        kind = self._kind[codes]  # [N], -1 outside
        boundary = np.zeros(N + 1, dtype=bool)  # [N+1], boundary[t] lies before position t
        boundary[offsets] = True
        # O is a type of its own here (-1), so that the cut beside it needs no case.
        boundary[1:N] |= kind[1:] != kind[:-1]
        boundary[1:N] |= self._opening[codes[1:]] | self._closing[codes[:-1]]
        inside = kind >= 0
        starts = np.flatnonzero(inside & boundary[:-1])
        ends = np.flatnonzero(inside & boundary[1:]) + 1
        if strict is not None:
            follows = np.zeros(N, dtype=bool)  # [N]; the position before has the same type
            follows[1:] = kind[1:] == kind[:-1]
            follows[offsets[:-1]] = False
            good = self._well_formed(strict, codes[starts], codes[ends - 1], ends - starts, follows[starts])
            starts, ends = starts[good], ends[good]
        return starts, ends, kind[starts]

    def _well_formed(
        self, scheme: str, first: np.ndarray, last: np.ndarray, lengths: np.ndarray, follows: np.ndarray
    ) -> np.ndarray:
        """Which spans are written as the scheme demands, given the labels at their ends and whether they follow one
        of the same type. Between its ends a span can have nothing but I.
        """
        if scheme == "iob1":
            return self._opening[first] == follows
        if scheme == "iob2":
            return self._opening[first]
        return np.where(lengths == 1, self._whole[first], self._opening[first] & self._closing[last])
