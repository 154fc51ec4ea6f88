"""Lines of a CRF++ template as one feature: sparse rows of the strings that they become.

`U:%x[-1,0]` and `U:%x[1,0]` together count how often a word is a neighbour: a string has one weight for each label,
whichever line it comes from, and counts twice where two lines give it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..config import pieces
from ..corpora import AttributeRows, CodedColumn, in_order, ones
from .columns import Columns
from .features import AttributeFeature, boundary_or, shifted


@dataclass(frozen=True)
class TemplateFeature(AttributeFeature):
    """The vocabulary has the strings of the training data."""

    def rows(self, columns: Columns) -> AttributeRows:
        return expanded(self.config.templates, columns)

    @property
    def width(self) -> int:
        """Columns that the data must have, the label's not counted."""
        return template_width(self.config.templates)

    @property
    def rows_seen(self) -> list[int]:
        """Offsets of the positions that its lines look at."""
        return [piece[0] for line in self.config.templates for piece in pieces(line) if not isinstance(piece, str)]


def template_width(templates: Sequence[str]) -> int:
    macros = [piece for line in templates for piece in pieces(line) if not isinstance(piece, str)]
    return max((column + 1 for _, column in macros), default=0)


def expanded(templates: Sequence[str], columns: Columns) -> AttributeRows:
    """The strings of every position, line by line."""
    N = columns.corpus.positions
    numbers: dict[str, int] = {}
    found = np.empty((N, len(templates)), dtype=np.int32)
    for place, line in enumerate(templates):
        texts, codes = _strings(line, columns)
        known = np.array([numbers.setdefault(text, len(numbers)) for text in texts], dtype=np.int32)
        found[:, place] = known[codes]
    order, codes = in_order(found.ravel(), len(numbers))
    values = list(numbers)
    return AttributeRows(
        indptr=np.arange(N + 1, dtype=np.int64) * len(templates),
        names=CodedColumn([values[number] for number in order.tolist()], codes),
        values=ones(len(codes)),
    )


def _strings(line: str, columns: Columns) -> tuple[list[str], np.ndarray]:
    """The strings that one line becomes, and which of them at each position, [N]."""
    parts = pieces(line)
    macros = [part for part in parts if not isinstance(part, str)]
    if not macros:
        return [line], np.zeros(columns.corpus.positions, dtype=np.int32)
    reach = max(abs(row) for row, _ in macros)
    values = [columns.distinct(column)[0] for _, column in macros]
    codes = [
        shifted(columns.distinct(column)[1], len(known), row, reach, columns.corpus.offsets)
        for (row, column), known in zip(macros, values, strict=True)
    ]
    numbers = codes[0].astype(np.int64)
    for known, part in zip(values[1:], codes[1:], strict=True):
        numbers = np.unique(numbers * (len(known) + 2 * reach) + part, return_inverse=True)[1].ravel()
    _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    texts = []
    for t in first.tolist():
        seen = iter([boundary_or(int(part[t]), known, reach) for known, part in zip(values, codes, strict=True)])
        texts.append("".join(part if isinstance(part, str) else next(seen) for part in parts))
    return texts, inverse.ravel()
