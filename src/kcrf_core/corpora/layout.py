"""How a file of columns is laid out: what separates values, what lines that are no rows begin with, names in its first
line, and what stands for missing values.
"""

from __future__ import annotations

from dataclasses import dataclass

# What people write where a measurement is missing, unless they say otherwise.
MISSING = ("NA", "?", "_", "nan", "NaN", "NAN", "")


@dataclass(frozen=True)
class Layout:
    """What a user says of files of columns. Models keep it, and read new data in the same way."""

    separator: str | None = None  # one character; None: TABs if the first data line has one, else runs of spaces
    header: bool = False  # the first line that is a row has names
    comment: tuple[str, ...] = ()  # lines that begin so are passed over
    missing: tuple[str, ...] = MISSING  # what stands for numbers that are missing

    @property
    def quoted(self) -> bool:
        """Whether values may stand in quotes, as in CSV. TABs and spaces separate words, and quotes are such words."""
        return self.separator not in (None, "\t", " ")

    def written(self, value: str, quotes: bool = False) -> str:
        """A value as it is written, in quotes where it needs them or where they are asked for."""
        separates = self.separator is not None and self.separator in value
        if quotes or (self.quoted and (separates or '"' in value or value.startswith(" "))):
            return '"' + value.replace('"', '""') + '"'
        return value

    @property
    def of_its_own(self) -> bool:
        """Whether something is said of lines, which only files of columns can have different."""
        return self.separator is not None or self.header or bool(self.comment)


PLAIN = Layout()
