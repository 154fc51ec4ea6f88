"""Numbers of things in words for people."""

from __future__ import annotations


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 sequence`, `1,200 sequences`; `many` is given where it is more than an s at the end.

    >>> counted(1, "label is", "labels are"), counted(0, "label is", "labels are")
    ('1 label is', '0 labels are')
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
