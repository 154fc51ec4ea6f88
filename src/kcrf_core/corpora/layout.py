"""Layout of files of columns, declared without NumPy, which help does not wait for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import ConfigError, suggestion
from ..system import listed

# Expressions of the rules for tokens; that of words is made of the table of characters where it is needed.
TOKEN_RULES = {"whitespace": r"\S+", "words": "", "characters": r"\S"}

# Labels of tokens in a span: the name of the span at each of them, or B- and I- before it.
NAMES, IOB2 = SPAN_LABELS = ("names", "iob2")

# Texts whose list of labels is empty: they are labelled and nothing is in them, or not labelled.
UNLABELLED = "unlabelled"
EMPTY_LABELS = ("labelled", UNLABELLED)

# Texts for a missing measurement, unless a layout names others.
MISSING = ("NA", "?", "_", "nan", "NaN", "NAN", "")


@dataclass(frozen=True)
class Layout:
    """Settings for files of columns. Models keep it, and read new data in the same way."""

    separator: str | None = None  # one character; None: TABs if the first data line has one, else runs of spaces
    header: bool | None = None  # the first line that is a row has names; None: if it looks so
    comment: tuple[str, ...] = ()  # beginnings of lines that are skipped
    missing: tuple[str, ...] = MISSING  # what stands for numbers that are missing
    sequence: str | None = None  # column with the same value, or none, in consecutive rows of a sequence
    tokens: str | None = None  # rule or expression for the tokens of texts; None: `whitespace`
    span_labels: str | None = None  # one of SPAN_LABELS, for spans of texts; None: as the kind of file has them
    empty_labels: str | None = None  # one of EMPTY_LABELS, for texts whose list of labels is empty; None: labelled

    @property
    def quoted(self) -> bool:
        """True if values may stand in quotes, as in CSV. TABs and spaces separate words, and quotes are such words."""
        return self.separator not in (None, "\t", " ")

    @property
    def blanks(self) -> bytes:
        """Characters of lines that end a sequence: such a line has no others."""
        return b" \t" + (self.separator or "").encode()

    def written(self, value: str, quotes: bool = False) -> str:
        """Return a value as it is written, in quotes where it needs them or `quotes` is set."""
        separates = self.separator is not None and self.separator in value
        if quotes or (self.quoted and (separates or '"' in value or value.startswith(" "))):
            return '"' + value.replace('"', '""') + '"'
        return value


PLAIN = Layout()


def column_place(key: str, name: str, names: Sequence[str]) -> int:
    """Return the place of the column that the setting `key` names among those of input."""
    if name in names:
        return names.index(name)
    there = f"there is no '{name}'{suggestion(name, names)} (columns: {listed(names)})"
    raise ConfigError(f"'{key}' names no column: {there}", settings=(key,))
