"""Items of one sequence, their attributes named once for several uses."""

from __future__ import annotations

from ..model import ItemRows


class ItemSequence(ItemRows):
    """The attributes of a sequence of items.

    >>> from kcrf_core.pycrfsuite import ItemSequence
    >>> ItemSequence([["foo"], {"bar": {"baz": 1}, "word": "cat", "upper": True}]).items()
    [{'foo': 1.0}, {'bar:baz': 1.0, 'word:cat': 1.0, 'upper': 1.0}]
    """

    def items(self) -> list[dict[str, float]]:
        """A dictionary from names to values for each item."""
        return [{name.decode("utf-8"): value for name, value in item} for item in self.attributes()]

    def __repr__(self) -> str:
        return f"<ItemSequence of size {len(self)}>"
