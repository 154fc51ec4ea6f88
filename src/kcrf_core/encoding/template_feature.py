"""Lines of a CRF++ template or of Wapiti's patterns as features: the strings that they become.

`U:%x[-1,0]` and `U:%x[1,0]` together count how often a word is a neighbour: a string has one weight for each label,
whichever line it comes from, and counts twice where two lines give it. A line alone may be a categorical feature.

Wapiti's expressions match bytes, so that its strings may hold half a character: such bytes are written as `\\xc3`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..config import BAGS, FeatureConfig, Macro, is_wapiti_line, matcher, pieces
from ..corpora import AttributeRows, CodedColumn, Columns, TrainingColumns, in_order, ones
from .features import AttributeFeature, CategoricalFeature, boundary_or, shifted

PLACES = "1234#"  # that Wapiti tells apart beyond an end of a sequence
FURTHEST = len(PLACES) - 1


@dataclass(frozen=True)
class TemplateFeature(AttributeFeature):
    """Lines whose strings are attributes; the vocabulary has those of the training data."""

    def rows(self, columns: Columns) -> AttributeRows:
        return expanded(self.config.templates, columns)


@dataclass(frozen=True)
class LineFeature(CategoricalFeature):
    """One line, whose strings are the values of a field."""

    def base(self, columns: Columns) -> np.ndarray:
        def work() -> np.ndarray:
            values, inverse = line_strings(self.config.templates[0], columns)
            return self.vocabulary.encode(values)[inverse]

        return columns.once(("line", self.config.templates[0]), self.vocabulary, work)


def template_macros(templates: Sequence[str]) -> list[Macro]:
    return [piece for line in templates for piece in pieces(line) if not isinstance(piece, str)]


def template_width(templates: Sequence[str]) -> int:
    """Return the number of columns that data must have, the label's not counted."""
    return max((macro.column + 1 for macro in template_macros(templates)), default=0)


def expanded(templates: Sequence[str], columns: Columns) -> AttributeRows:
    """Return the strings of every position, line by line."""
    N = columns.corpus.positions
    numbers: dict[str, int] = {}
    found = np.empty((N, len(templates)), dtype=np.int32)
    for place, line in enumerate(templates):
        texts, codes = line_strings(line, columns)
        known = np.array([numbers.setdefault(text, len(numbers)) for text in texts], dtype=np.int32)
        found[:, place] = known[codes]
    order, codes = in_order(found.ravel(), len(numbers))
    values = list(numbers)
    return AttributeRows(
        indptr=np.arange(N + 1, dtype=np.int64) * len(templates),
        names=CodedColumn([values[number] for number in order.tolist()], codes),
        values=ones(len(codes)),
    )


def template_counts(config: FeatureConfig, columns: TrainingColumns) -> tuple[Sequence[str], np.ndarray]:
    """Return all strings of the lines of a feature, and the count of each."""
    totals: Counter[str] = Counter()
    for part in columns.parts:
        if config.type in BAGS:
            column = CodedColumn.of(expanded(config.templates, part).names)
        else:
            column = CodedColumn(*line_strings(config.templates[0], part))
        counts = np.bincount(column.codes, minlength=len(column.values))
        for value, count in zip(column.values, counts.tolist(), strict=True):
            totals[value] += count
    return list(totals), np.array(list(totals.values()), dtype=np.int64)


def line_strings(line: str, columns: Columns) -> tuple[list[str], np.ndarray]:
    """Return the strings that one line becomes, and the number of that at each position, [N]."""
    parts = pieces(line)
    macros = [part for part in parts if not isinstance(part, str)]
    if not macros:
        return [line], np.zeros(columns.corpus.positions, dtype=np.int32)
    seen = [_seen(macro, columns, is_wapiti_line(line)) for macro in macros]
    numbers = seen[0][1].astype(np.int64)
    for texts, codes in seen[1:]:
        numbers = np.unique(numbers * len(texts) + codes, return_inverse=True)[1].ravel()
    _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    found = [[texts[code] for code in codes[first].tolist()] for texts, codes in seen]
    fixed = iter(found)
    rows = zip(*([part] * len(first) if isinstance(part, str) else next(fixed) for part in parts), strict=True)
    if not is_wapiti_line(line):
        return list(map("".join, rows)), inverse.ravel()
    plain = all(macro.command == "x" and not macro.lower for macro in macros)
    return list(map("".join if plain else _joined, rows)), inverse.ravel()


def _seen(macro: Macro, columns: Columns, wapiti: bool) -> tuple[list[str] | list[bytes], np.ndarray]:
    """Return distinct values of a macro, and the number of that at each position, [N]."""
    values, codes = columns.distinct(macro.column)
    offsets = columns.corpus.offsets
    reach = abs(macro.row) + 1
    if macro.absolute:
        codes = _from_the_ends(codes, len(values), macro.row, reach, offsets)
    else:
        codes = shifted(codes, len(values), macro.row, reach, offsets)
    if not wapiti:
        return [*values, *(boundary_or(len(values) + beyond, values, reach) for beyond in range(2 * reach))], codes
    # Wapiti tells few of the places beyond the ends apart.
    outside = np.flatnonzero(codes >= len(values))
    side, distance = np.divmod(codes[outside] - len(values), reach)
    codes = codes.copy()
    codes[outside] = len(values) + side * len(PLACES) + np.minimum(distance, FURTHEST)
    texts = [*values, *(f"_x{side}{place}" for side in "-+" for place in PLACES)]
    if macro.command == "x" and not macro.lower:
        return texts, codes
    results, numbers = columns.once((*macro[1:4], macro.expression), values, lambda: _commanded(texts, macro))
    return results, numbers[codes]


def _from_the_ends(codes: np.ndarray, size: int, row: int, reach: int, offsets: np.ndarray) -> np.ndarray:
    """Return codes [N] of one position of their sequence: the row-th, from 1 on, or from -1 at its end backwards."""
    lengths = np.diff(offsets)
    place = np.full(len(lengths), row - 1) if row >= 0 else lengths + row
    inside = np.clip(place, 0, lengths - 1)
    before, after = size - place - 1, size + reach + place - lengths
    return np.repeat(
        np.where(place < 0, before, np.where(place >= lengths, after, codes[offsets[:-1] + inside])), lengths
    )


def _commanded(texts: Sequence[str], macro: Macro) -> tuple[list[bytes], np.ndarray]:
    """Return the distinct results of a macro for values, and the number of the result of each value."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    if macro.command != "x":
        match = matcher(macro.expression)
        spans = map(match, encoded)
        if macro.command == "t":
            encoded = [b"false" if span is None else b"true" for span in spans]
        else:
            # A length beyond the end takes in the zero byte behind the value, at which Wapiti's string ends.
            pairs = zip(encoded, spans, strict=True)
            encoded = [b"" if span is None else (text + b"\0")[span[0] : sum(span)] for text, span in pairs]
    if macro.lower:
        encoded = [text.lower() for text in encoded]
    numbers: dict[bytes, int] = {}
    codes = [numbers.setdefault(text, len(numbers)) for text in encoded]
    return list(numbers), np.array(codes, dtype=np.int32)


def _joined(parts: Sequence[str | bytes]) -> str:
    """Return the string of a line, up to the first zero byte."""
    whole = b"".join(part.encode() if isinstance(part, str) else part for part in parts)
    return readable(whole.partition(b"\0")[0])


def readable(text: bytes) -> str:
    """Return bytes as text, those that are no UTF-8 by their numbers."""
    return text.decode("utf-8", "backslashreplace")
