"""Positions as dictionaries of attributes, in the manner of python-crfsuite, as the rows of an attribute file.

What stands at a position is a dictionary, or a list, tuple or set of names:

    {"bias": 1.0}                  attribute bias, value 1
    {"upper": True}                attribute upper, value 1; False is value 0, which is no attribute at all
    {"word": "cat"}                attribute word:cat, value 1
    {"tags": ["a", "b"]}           attributes tags:a and tags:b, value 1 each; a tuple or a set likewise
    {"next": {"word": "sat"}}      attribute next:word:sat; what is inside is named by the same rules
    ["bias", "word=cat"]           attributes of value 1

Values of an attribute that comes twice at one position are added up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .corpus import AttributeRows

SEPARATOR = ":"
COLLECTIONS = (list, tuple, set, frozenset)
NUMBERS = (int, float, np.number, np.bool_)  # bool is an int


def attribute_rows(items: Iterable[Any]) -> AttributeRows:
    """The attributes of all positions; an error names the position by its number, from 0."""
    names: list[str] = []
    values: list[float] = []
    ends = [0]
    for item in items:
        try:
            if isinstance(item, Mapping):
                _expand(item, "", names, values)
            else:
                _expand_names(item, "", names, values)
        except (TypeError, ValueError) as error:
            raise type(error)(f"position {len(ends) - 1:,} of all: {error}") from None
        ends.append(len(names))
    return AttributeRows(np.array(ends, dtype=np.int64), names, np.array(values, dtype=np.float64))


def _expand(item: Mapping[str, Any], prefix: str, names: list[str], values: list[float]) -> None:
    for key, value in item.items():
        if not isinstance(key, str):
            raise TypeError(f"the name of an attribute must be a string, not {key!r}")
        name = prefix + key
        if isinstance(value, str):
            names.append(name + SEPARATOR + value)
            values.append(1.0)
        elif isinstance(value, NUMBERS):
            number = float(value)
            if not math.isfinite(number):
                raise ValueError(f"the value of attribute {name!r} is not finite (nan or infinity)")
            if not name:
                raise ValueError("an attribute without a name")
            if number:
                names.append(name)
                values.append(number)
        elif isinstance(value, Mapping):
            _expand(value, name + SEPARATOR, names, values)
        elif isinstance(value, COLLECTIONS):
            _expand_names(value, name + SEPARATOR, names, values)
        else:
            raise TypeError(
                f"the value of attribute {name!r} is of type {type(value).__name__}; "
                "it may be a string, a number, a truth value, a list of strings or a dictionary of these"
            )


def _expand_names(item: Any, prefix: str, names: list[str], values: list[float]) -> None:
    if not isinstance(item, COLLECTIONS) or not all(isinstance(name, str) for name in item):
        shown = repr(item) if len(repr(item)) < 60 else type(item).__name__
        raise TypeError(f"expected a dictionary of attributes or a list of their names, not {shown}")
    # Sets have no order of their own, and that of attributes must not depend on the run.
    for name in sorted(item) if isinstance(item, (set, frozenset)) else item:
        if not prefix and not name:
            raise ValueError("an attribute without a name")
        names.append(prefix + name)
        values.append(1.0)
