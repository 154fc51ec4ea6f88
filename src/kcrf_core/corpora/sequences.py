"""Sequences that a program holds in memory, as a corpus.

X has one entry for each sequence, of T positions: `COLUMNS`, an array [T, D] of numbers or T rows of values, or T
`ITEMS`, dictionaries or lists of attributes as python-crfsuite takes them and docs/python.md lists them. y has as many
labels for each. Sequences without a position carry nothing and are left out of the corpus.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol, TypeAlias

import numpy as np

from ..system import counted
from .corpus import AttributeRows, Corpus
from .frames import FrameRows
from .tables import NumberColumn

SEPARATOR = ":"
COLLECTIONS = (list, tuple, set, frozenset)
NUMBERS = (int, float, np.number, np.bool_)  # bool is an int


class ArrayLike(Protocol):
    """Anything that NumPy makes an array of, such as an array or a data frame."""

    def __array__(self) -> np.ndarray: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[object]: ...


LabelValue: TypeAlias = str | float  # a whole number is a float to type checkers, and so is a bool
Position: TypeAlias = Mapping[str, object] | Collection[str] | Sequence[float] | ArrayLike
InputSequence: TypeAlias = Sequence[Position] | ArrayLike
InputSequences: TypeAlias = Iterable[InputSequence]  # X
SequenceWeights: TypeAlias = Sequence[float] | ArrayLike
LabelSequences: TypeAlias = Iterable[Sequence[LabelValue] | Sequence[np.integer] | ArrayLike]  # y


def attribute_rows(items: Iterable[Any], arrays: dict[str, list[np.ndarray]] | None = None) -> AttributeRows:
    """Return the attributes of all positions; an error names the position by its number, from 0.

    Vectors are put into `arrays` by their names, one for each position.
    """
    names: list[str] = []
    values: list[float] = []
    ends = [0]
    for item in items:
        try:
            if isinstance(item, Mapping):
                _expand(item, "", names, values, arrays)
            else:
                _expand_names(item, "", names, values)
            for name, own in (arrays or {}).items():
                if not isinstance(item, Mapping) or name not in item:
                    raise ValueError(f"it has no vector {name!r}, which others have: give zeros where there is none")
                if len(own) < len(ends):
                    raise ValueError(f"it has a vector {name!r}, which those before it have not: give zeros there")
                if own[-1].shape != own[0].shape:
                    sizes = f"{own[-1].size:,} numbers, and {own[0].size:,} at position 0"
                    raise ValueError(f"the vector {name!r} has {sizes}")
        except (TypeError, ValueError) as error:
            raise type(error)(f"position {len(ends) - 1:,} of all: {error}") from None
        ends.append(len(names))
    return AttributeRows(np.array(ends, dtype=np.int64), names, np.array(values, dtype=np.float64))


def _expand(
    item: Mapping[str, Any],
    prefix: str,
    names: list[str],
    values: list[float],
    arrays: dict[str, list[np.ndarray]] | None = None,
) -> None:
    """Append the attributes of an item to lists, and put its vectors into `arrays`, where it may have them."""
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
                raise ValueError(f"the value of attribute {name!r} is not finite (leave out what is missing)")
            if not name:
                raise ValueError("an attribute without a name")
            if number:
                names.append(name)
                values.append(number)
        elif isinstance(value, Mapping):
            _expand(value, name + SEPARATOR, names, values)
        elif isinstance(value, COLLECTIONS):
            _expand_names(value, name + SEPARATOR, names, values)
        elif arrays is not None and isinstance(value, np.ndarray):
            if value.ndim != 1 or not value.size or value.dtype.kind not in "buif":
                raise ValueError(
                    f"the array {name!r} of {value.dtype} has the shape {value.shape}; a vector is a row of numbers"
                )
            arrays.setdefault(name, []).append(value)
        else:
            raise TypeError(
                f"the value of attribute {name!r} is of type {type(value).__name__}; "
                "it may be a string, a number, a truth value, a list of strings, a dictionary of these or an array"
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


COLUMNS, ITEMS = "columns", "items"

BREAKS = re.compile(r"[\t\n\r\0]")  # no label that is read from a file can have them


class LabelLists(list[list[LabelValue]]):
    """Labels of sequences, a list for each. NumPy takes it for a row of lists, where it would try to make a table."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        out = np.empty(len(self), dtype=object)
        for number, labels in enumerate(self):
            out[number] = labels
        return out


# ----------------------------------------------------------------------------- labels

# Labels are text in a model: how those of other types are found again.
LABEL_TYPES: dict[str, Callable[[str], LabelValue]] = {
    "text": str,
    "integer": int,
    "whole": float,
    "boolean": "True".__eq__,
}
# In this order: a bool is an int.
LABEL_KINDS: dict[str, Any] = {
    "text": str,
    "boolean": (bool, np.bool_),
    "integer": (int, np.integer),
    "whole": (float, np.floating),
}


@dataclass(frozen=True)
class LabelNames:
    """Labels as a program has them, and as the text that stands in a model."""

    type: str = "text"  # one of LABEL_TYPES

    @classmethod
    def of(cls, y: Iterable[Iterable[object]]) -> LabelNames:
        """Find the type of the labels of training data; all must be of one type."""
        found = {_label_type(label) for label in set(chain.from_iterable(y))}
        if len(found) > 1:
            raise ValueError(f"labels must be of one type, but some are {' and some '.join(sorted(found))}")
        return cls(found.pop() if found else "text")

    def values(self, names: Sequence[str]) -> list[LabelValue]:
        try:
            return [LABEL_TYPES[self.type](name) for name in names]
        except ValueError:  # a file that says so of labels that are no numbers
            return list(names)


def _label_type(label: object) -> str:
    for name, kinds in LABEL_KINDS.items():
        if isinstance(label, kinds) and (name != "whole" or float(label).is_integer()):
            return name
    shown = f"{label!r} of type {type(label).__name__}"
    raise ValueError(f"Unknown label type: {shown}; labels must be strings or whole numbers")


def check_labels(y: Any, X: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Return y as lists, one label for each position of X."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None: a list of labels for each sequence")
    if isinstance(y, (str, Mapping)) or not isinstance(y, Iterable):
        raise TypeError("y must hold a list of labels for each sequence")
    out = list(y)
    if len(out) != len(X):
        raise ValueError(f"{counted(len(X), 'sequence')} in X, but {len(out):,} in y")
    for number, (labels, sequence) in enumerate(zip(out, X, strict=True)):
        if isinstance(labels, str) or not hasattr(labels, "__len__") or getattr(labels, "ndim", 1) != 1:
            raise ValueError(f"y[{number}] must be a list of labels, one for each position, not {labels!r}")
        out[number] = list(labels)
        if len(out[number]) != len(sequence):
            raise ValueError(
                f"X[{number}] has {counted(len(sequence), 'position')}, but y[{number}] "
                f"{counted(len(out[number]), 'label')}"
            )
        broken = next((label for label in out[number] if isinstance(label, str) and BREAKS.search(label)), None)
        if broken is not None:  # a line of columns could not hold it
            raise ValueError(f"y[{number}] has the label {broken!r}: labels have no TABs and no line ends")
    return out


def check_weights(weights: Any, X: Sequence[Any]) -> np.ndarray:
    """Return one finite weight >= 0 for each sequence, [S]."""
    out = np.asarray(weights)
    if out.dtype.kind not in "buif" or out.shape != (len(X),):
        raise ValueError(f"sample_weight must hold a number for each of the {len(X):,} sequences")
    if not (np.isfinite(out).all() and (out >= 0).all() and out.any()):
        raise ValueError("sample_weight must be finite and not negative, and not all zeros")
    return out.astype(np.float64)


# ----------------------------------------------------------------------------- positions


def check_sequences(X: Any) -> list[Any]:
    """Return X as a list of sequences that have a length."""
    if isinstance(X, FrameRows):
        return X
    if isinstance(X, (str, Mapping)) or hasattr(X, "toarray") or not isinstance(X, Iterable):
        kind = "sparse matrix" if hasattr(X, "toarray") else type(X).__name__
        raise TypeError(f"X must be a list of sequences, not a {kind}")
    out = list(X)
    for number, sequence in enumerate(out):
        if hasattr(sequence, "toarray"):
            raise TypeError(f"X[{number}] is a sparse matrix; give a dense array, or dictionaries of attributes")
        if not isinstance(sequence, (list, tuple)):
            if (
                isinstance(sequence, (str, Mapping))
                or not hasattr(sequence, "__array__")
                or np.asarray(sequence).ndim == 0
            ):
                raise ValueError(
                    f"X[{number}] must be a sequence of positions, not a {type(sequence).__name__}. Reshape your "
                    "data: one sequence alone is [X]"
                )
            out[number] = np.asarray(sequence)
    return out


def form_of(X: Sequence[Sequence[Any]]) -> str:
    """Return `COLUMNS` or `ITEMS`, which sequences are made of; their first position decides."""
    if isinstance(X, FrameRows) and len(X.frame):
        return COLUMNS
    first = next((sequence[0] for sequence in X if len(sequence)), None)
    if first is None:
        raise ValueError("there is no position in X")
    named = isinstance(first, COLLECTIONS) and all(isinstance(name, str) for name in first)
    return ITEMS if isinstance(first, Mapping) or named else COLUMNS


def corpus_of(
    X: Sequence[Sequence[Any]],
    form: str,
    y: Sequence[Sequence[Any]] | None = None,
    weights: np.ndarray | None = None,
    width: int | None = None,
    columns: tuple[Sequence[str], ...] = (),
) -> Corpus:
    """Make a corpus of sequences that passed the checks above. `width` is the number of columns that a model knows.

    `columns` are those of a `FrameRows`.
    """
    lengths = np.array([len(sequence) for sequence in X], dtype=np.int64)
    there = lengths > 0
    X = [sequence for sequence in X if len(sequence)]
    labels = None if y is None else list(map(str, chain.from_iterable(y)))
    N = int(lengths.sum())
    attributes, vectors = None, dict[str, np.ndarray]()
    if form == ITEMS:
        arrays: dict[str, list[np.ndarray]] = {}
        attributes = attribute_rows(chain.from_iterable(X), arrays)
        for name, rows in arrays.items():
            vectors[name] = np.array(rows)  # [N, width]
            if vectors[name].dtype.kind != "f" or vectors[name].dtype.itemsize > 8:
                vectors[name] = vectors[name].astype(np.float64)
            finite = np.isfinite(vectors[name]).all(axis=1)
            if not finite.all():
                message = f"the vector {name!r} contains NaN or infinity"
                raise ValueError(f"position {int(finite.argmin()):,} of all: {message}")
    elif not columns:
        columns = _columns(X, width)
    return Corpus(
        source="X",
        columns=columns if labels is None else (*columns, labels),
        offsets=np.concatenate([[0], np.cumsum(lengths[there])]).astype(np.int64),
        lines=np.arange(1, N + 1),
        weights=None if weights is None else weights[there],
        attributes=attributes,
        vectors=vectors,
    )


def _columns(X: Sequence[Sequence[Any]], width: int | None) -> tuple[Sequence[str], ...]:
    blocks = []
    for number, sequence in enumerate(X):
        block = _table(sequence, number)
        width = block.shape[1] if width is None else width
        if block.shape[1] != width:
            raise ValueError(
                f"X has {block.shape[1]} features, but KernelCRF is expecting {width} features as input: X[{number}]"
            )
        if not width:
            raise ValueError(f"0 feature(s) (shape={block.shape}) while a minimum of 1 is required.")
        blocks.append(block)
    if not blocks:
        return ([],) * (width or 0)
    table = np.concatenate(blocks)  # [N, D]
    if table.dtype.kind != "f":
        return tuple(list(map(str, column)) for column in table.T.tolist())
    return tuple(map(NumberColumn, np.ascontiguousarray(table.T)))


def _table(sequence: Sequence[Any], number: int) -> np.ndarray:
    """Return a sequence as an array [T, D] of numbers, NaN where one is missing, or of objects where some are none."""
    try:
        block = np.asarray(sequence)
        if block.dtype.kind in "OUS":
            block = np.asarray(sequence, dtype=object)
    except ValueError:
        raise ValueError(f"X[{number}]: its rows are of different lengths") from None
    if block.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: X[{number}]")
    if block.ndim != 2:
        raise ValueError(
            f"X[{number}] has {block.ndim} dimension{'s' * (block.ndim != 1)}, expected 2: positions and features. "
            "Reshape your data: one sequence alone is [X]"
        )
    if block.dtype.kind not in "buifO":
        raise ValueError(f"X[{number}] is an array of {block.dtype}, not of numbers")
    if block.dtype.kind == "O" and not any(isinstance(value, str) for value in block.flat):
        with suppress(TypeError, ValueError):
            block = block.astype(np.float64)
    if block.dtype.kind != "O":
        block = block.astype(np.float64)
        if np.isinf(block).any():
            raise ValueError(f"X[{number}] contains infinity; NaN stands for values that are missing")
    return block
