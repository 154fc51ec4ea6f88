"""Numbers of things and of bytes, as people read them."""

from __future__ import annotations

UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 sequence`, `1,200 sequences`; `many` is given where it is more than an s at the end.

    >>> counted(1, "label is", "labels are"), counted(0, "label is", "labels are")
    ('1 label is', '0 labels are')
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def size_text(count: float) -> str:
    """Bytes for people: 1.5 GiB."""
    number = 0
    while count >= 1000 and number < len(UNITS) - 1:
        count, number = count / 1024, number + 1
    return f"{count:.3g} {UNITS[number]}"
