"""Layout of files of columns, declared without NumPy, which help does not wait for."""

from __future__ import annotations

from dataclasses import dataclass

# Texts for a missing measurement, unless a layout names others.
MISSING = ("NA", "?", "_", "nan", "NaN", "NAN", "")


@dataclass(frozen=True)
class Layout:
    """Settings for files of columns. Models keep it, and read new data in the same way."""

    separator: str | None = None  # one character; None: TABs if the first data line has one, else runs of spaces
    header: bool = False  # the first line that is a row has names
    comment: tuple[str, ...] = ()  # beginnings of lines that are skipped
    missing: tuple[str, ...] = MISSING  # what stands for numbers that are missing

    @property
    def quoted(self) -> bool:
        """True if values may stand in quotes, as in CSV. TABs and spaces separate words, and quotes are such words."""
        return self.separator not in (None, "\t", " ")

    def written(self, value: str, quotes: bool = False) -> str:
        """Return a value as it is written, in quotes where it needs them or `quotes` is set."""
        separates = self.separator is not None and self.separator in value
        if quotes or (self.quoted and (separates or '"' in value or value.startswith(" "))):
            return '"' + value.replace('"', '""') + '"'
        return value


PLAIN = Layout()
