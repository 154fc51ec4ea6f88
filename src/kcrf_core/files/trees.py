"""Trees of plain values and arrays, as JSON text and a list of arrays, for checkpoints.

A tree holds numbers, strings, lists, tuples, dictionaries, NumPy arrays and scalars, and instances of dataclasses that
the reader knows. Arrays of a device are moved by two functions. An object that stands in several places is one object
again after reading: solvers tell points apart by identity.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def pack_tree(value: Any, to_array: Callable[[Any], np.ndarray]) -> tuple[str, list[np.ndarray]]:
    """Return a tree as text and arrays; `to_array` copies an array of a device."""
    arrays: list[np.ndarray] = []
    places: dict[int, int] = {}  # by the identity of an array

    def placed(owner: Any, array: np.ndarray) -> int:
        if id(owner) not in places:
            places[id(owner)] = len(arrays)
            arrays.append(array)
        return places[id(owner)]

    def packed(node: Any) -> Any:
        if isinstance(node, np.generic):  # before floats, which np.float64 is one of: it promotes single precision
            arrays.append(np.array([node]))
            return {"scalar": len(arrays) - 1}
        if node is None or isinstance(node, bool | int | float | str):
            return node
        if isinstance(node, list):
            return [packed(each) for each in node]
        if isinstance(node, tuple):
            return {"tuple": [packed(each) for each in node]}
        if isinstance(node, dict):
            return {"dict": [[packed(key), packed(each)] for key, each in node.items()]}
        if is_dataclass(node):
            return {
                "class": type(node).__name__,
                "fields": {field.name: packed(getattr(node, field.name)) for field in fields(node) if field.init},
            }
        if isinstance(node, np.ndarray):
            return {"array": placed(node, node)}
        return {"device": placed(node, to_array(node))}

    return json.dumps(packed(value)), arrays


def unpack_tree(
    text: str, arrays: Sequence[np.ndarray], classes: Iterable[type], from_array: Callable[[np.ndarray], Any]
) -> Any:
    """Return the tree that `pack_tree` packed, with dataclasses out of `classes`."""
    known = {each.__name__: each for each in classes}
    moved: dict[int, Any] = {}

    def unpacked(node: Any) -> Any:
        if isinstance(node, list):
            return [unpacked(each) for each in node]
        if not isinstance(node, dict):
            return node
        if "class" in node:
            return known[node["class"]](**{name: unpacked(each) for name, each in node["fields"].items()})
        ((kind, content),) = node.items()
        if kind == "scalar":
            return arrays[content][0]
        if kind == "array":
            return arrays[content]
        if kind == "device":
            if content not in moved:
                moved[content] = from_array(arrays[content])
            return moved[content]
        if kind == "tuple":
            return tuple(unpacked(each) for each in content)
        return {unpacked(key): unpacked(each) for key, each in content}

    return unpacked(json.loads(text))
