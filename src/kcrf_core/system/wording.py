"""Numbers of things and of bytes, as people read them, and remarks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MOST_LISTED = 8  # names in a message

UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


class Remark(str):
    """A message for users that lists the settings that it is about, as errors do; a plain string otherwise."""

    settings: tuple[str, ...]

    def __new__(cls, text: str, settings: Iterable[str] = ()) -> Remark:
        out = super().__new__(cls, text)
        out.settings = tuple(settings)
        return out


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun; `many` is the plural if that is more than an s at the end.

    >>> counted(1, "label is", "labels are"), counted(0, "label is", "labels are")
    ('1 label is', '0 labels are')
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def listed(names: Sequence[str]) -> str:
    """Join names for a message; of many, those in the middle are left out.

    >>> listed(["word", "label"]), listed([f"v{number}" for number in range(300)])
    ('word, label', 'v0, v1, v2, v3, v4, v5, v6, ..., v299 (300 in all)')
    """
    if len(names) <= MOST_LISTED:
        return ", ".join(names)
    return f"{', '.join(names[: MOST_LISTED - 1])}, ..., {names[-1]} ({len(names):,} in all)"


def size_text(count: float) -> str:
    """Return a size as people read it: 1.5 GiB."""
    number = 0
    while count >= 1000 and number < len(UNITS) - 1:
        count, number = count / 1024, number + 1
    return f"{count:.3g} {UNITS[number]}"
