"""Sequences that a program holds in memory, as a corpus.

X has one entry for each sequence, of T positions: `COLUMNS`, an array [T, D] of numbers or T rows of values, or T
`ITEMS`, dictionaries or lists of attributes as python-crfsuite takes them and docs/python.md lists them. y has as many
labels for each. Sequences without a position carry nothing and are left out of the corpus.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from ..runtime import ItemRows
from ..system import counted, offsets_of
from .corpus import AttributeRows, Corpus, ones
from .frames import FrameRows
from .tables import CodedColumn, NameCells, NumberColumn, Strings, coded

COLLECTIONS = (list, tuple, set, frozenset)


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


class _Items:
    """Items of sequences, one sequence after another, and the name of the last one."""

    def __init__(self, X: Sequence[Sequence[Any]]):
        self._sequences, self.last = X, ""

    def __iter__(self) -> Iterator[Any]:
        for s, sequence in enumerate(self._sequences):
            for t, item in enumerate(sequence):
                self.last = f"X[{s}][{t}]"
                yield item


def attribute_rows(X: Sequence[Sequence[Any]], vectors: dict[str, np.ndarray] | None = None) -> AttributeRows:
    """Return the attributes of all positions; an error names the position as `X[0][0]`.

    Vectors [N, width] are put into `vectors` by their names.
    """
    arrays: dict[str, list[tuple[int, np.ndarray]]] = {}
    items = _Items(X)
    try:
        rows = ItemRows(items, arrays)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{items.last}: {error}") from None
    offsets = offsets_of(np.array([len(sequence) for sequence in X], dtype=np.int64))
    for name, own in arrays.items():
        found = _vectors(name, own, offsets)
        if vectors is not None:
            vectors[name] = found
    text, starts, lengths, values, indptr = rows.cells()
    return AttributeRows(indptr, NameCells(text, starts, lengths), values)


@dataclass(frozen=True)
class StoredItems:
    """Attributes of the T positions of a sequence in an `ItemStore`."""

    counts: np.ndarray  # [T] int32 of attributes
    codes: np.ndarray  # [nnz] int32, numbers of their names in the store
    values: np.ndarray | None  # [nnz] bool or float64; None: all ones


class ItemStore:
    """Names of attributes, each once, of sequences that come one after another."""

    def __init__(self) -> None:
        self._names = Strings()

    def add(self, items: ItemRows) -> StoredItems:
        """Return the attributes of a sequence by numbers of their names."""
        text, starts, lengths, values, indptr = items.cells()
        if not np.isfinite(values).all():
            bad = int(np.isfinite(values).argmin())
            name = text[starts[bad] : starts[bad] + lengths[bad]].tobytes()
            position = int(np.searchsorted(indptr, bad, side="right")) - 1
            shown = name.decode("utf-8", "backslashreplace")
            message = f"the value of attribute {shown!r} is not finite (leave out what is missing)"
            raise ValueError(f"position {position:,}: {message}")
        names = coded(text, starts, lengths)
        codes = self._names.add(names)[names.codes]
        counts, is_one = np.diff(indptr).astype(np.int32), values == 1
        if (values == is_one).all():
            return StoredItems(counts, codes, None if is_one.all() else is_one)
        return StoredItems(counts, codes, values)

    def rows(self, sequences: Sequence[StoredItems]) -> AttributeRows:
        """Return the attributes of sequences, position after position."""
        nothing = np.zeros(0, np.int32)
        counts = np.concatenate([nothing, *(items.counts for items in sequences)])
        codes = np.concatenate([nothing, *(items.codes for items in sequences)])
        values = ones(len(codes))
        if any(items.values is not None for items in sequences):
            parts = [ones(len(items.codes)) if items.values is None else items.values for items in sequences]
            values = np.concatenate(parts, dtype=np.float64)
        return AttributeRows(offsets_of(counts), self._named(codes), values)

    def _named(self, codes: np.ndarray) -> CodedColumn:
        """Return a column of names; bytes that are not UTF-8 are written as escapes."""
        column = self._names.column(codes)
        text = column.blob.tobytes()
        if text.isascii():
            return column
        encoded = (text[begin:end] for begin, end in pairwise([0, *column.ends.tolist()]))
        names = CodedColumn.of([name.decode("utf-8", "backslashreplace") for name in encoded])
        return CodedColumn(names.values, names.codes[codes])


def _vectors(name: str, own: list[tuple[int, np.ndarray]], offsets: np.ndarray) -> np.ndarray:
    """Return the vectors of all positions of sequences, [N, width] of floating point numbers."""
    places, count = np.array([place for place, _ in own]), int(offsets[-1])
    missing = np.flatnonzero(places != np.arange(len(places)))
    bad, message = -1, ""
    if places[0]:
        bad, message = places[0], f"it has a vector {name!r}, which those before it have not: give zeros there"
    elif len(missing) or len(own) < count:
        bad = missing[0] if len(missing) else len(own)
        message = f"it has no vector {name!r}, which others have: give zeros where there is none"
    for place, value in own if bad < 0 else ():
        if value.ndim != 1 or not value.size or value.dtype.kind not in "buif":
            kind = f"the array {name!r} of {value.dtype} has the shape {value.shape}"
            bad, message = place, f"{kind}; a vector is a row of numbers"
        elif value.shape != own[0][1].shape:
            sizes = f"{value.size:,} numbers, and {own[0][1].size:,} at {_position_name(0, offsets)}"
            bad, message = place, f"the vector {name!r} has {sizes}"
        if bad >= 0:
            break
    if bad < 0:
        found = np.array([value for _, value in own])
        if found.dtype.kind != "f" or found.dtype.itemsize > 8:
            found = found.astype(np.float64)
        finite = np.isfinite(found).all(axis=1)
        if finite.all():
            return found
        bad, message = int(finite.argmin()), f"the vector {name!r} contains NaN or infinity"
    raise ValueError(f"{_position_name(bad, offsets)}: {message}")


def _position_name(position: int, offsets: np.ndarray) -> str:
    """Return the name of a position among all, `X[0][0]` for the first."""
    s = int(np.searchsorted(offsets, position, side="right")) - 1
    return f"X[{s}][{position - offsets[s]}]"


COLUMNS, ITEMS = "columns", "items"

BREAKS = re.compile(r"[\t\n\r\0]")  # no label that is read from a file can have them


Result = TypeVar("Result")


class SequenceResults(list[Result]):
    """Results of sequences, one for each. NumPy makes a row of objects of it, where it would try to make a table."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        out = np.empty(len(self), dtype=object)
        for number, result in enumerate(self):
            out[number] = result
        return out


class Classes(list[LabelValue]):
    """Labels of an estimator, with the shape of an array, as scikit-learn expects it."""

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)


# Labels are text in a model: their types, and how those of a type are found again. A bool is an int, and comes first.
LABEL_TYPES: dict[str, tuple[Any, Callable[[str], LabelValue]]] = {
    "text": (str, str),
    "boolean": ((bool, np.bool_), "True".__eq__),
    "integer": ((int, np.integer), int),
    "whole": ((float, np.floating), float),
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
            return list(map(LABEL_TYPES[self.type][1], names))
        except ValueError:  # a file that says so of labels that are no numbers
            return list(names)


def _label_type(label: object) -> str:
    for name, (kinds, _) in LABEL_TYPES.items():
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
    message = f"sample_weight must hold a number for each of the {len(X):,} sequences"
    try:
        out = np.asarray(weights)
    except ValueError:  # lists of different lengths
        out = np.empty(0, dtype=object)
    if out.dtype.kind not in "buif":  # in sklearn-crfsuite, X_dev has this place
        raise ValueError(f"{message}; X_dev and y_dev are given by name: X_dev=..., y_dev=...")
    if out.shape != (len(X),):
        raise ValueError(message)
    if not (np.isfinite(out).all() and (out >= 0).all() and out.any()):
        raise ValueError("sample_weight must be finite and not negative, and not all zeros")
    return out.astype(np.float64)


def check_sequences(X: Any) -> list[Any]:
    """Return X as a list of sequences that have a length."""
    if isinstance(X, FrameRows):
        return X
    if isinstance(X, (str, Mapping)) or hasattr(X, "toarray") or not isinstance(X, Iterable):
        kind = "sparse matrix" if hasattr(X, "toarray") else type(X).__name__
        raise TypeError(f"X must be a list of sequences, not a {kind}")
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.size and isinstance(X[0, 0], (str, float, int, np.number)):
        raise ValueError(
            "X is one array of rows, which does not tell where sequences begin. Reshape your data: a list of arrays, "
            "one for each sequence ([X] for one alone), or a DataFrame with a column 'sequence'; in a pipeline, "
            "set_output(transform='pandas') keeps data frames"
        )
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
    named = isinstance(first, COLLECTIONS) and all(isinstance(name, (str, bytes)) for name in first)
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
    lengths = [len(sequence) for sequence in X]
    labels = None if y is None else list(map(str, chain.from_iterable(y)))
    attributes, vectors = None, dict[str, np.ndarray]()
    if form == ITEMS:
        attributes = attribute_rows(X, vectors)
    elif not columns:
        columns = _columns(X, width)
    return Corpus(
        source="X",
        columns=columns if labels is None else (*columns, labels),
        offsets=np.array([0, *accumulate(length for length in lengths if length)], dtype=np.int64),
        lines=np.arange(1, sum(lengths) + 1),
        weights=None if weights is None else weights[np.array(lengths, dtype=bool)],
        attributes=attributes,
        vectors=vectors,
    )


def _columns(X: Sequence[Sequence[Any]], width: int | None) -> tuple[Sequence[str], ...]:
    blocks = []
    for number, sequence in enumerate(X):
        if not len(sequence):
            continue
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
    first = sequence[0] if len(sequence) else None
    words = isinstance(first, (list, tuple)) and any(isinstance(value, str) for value in first)
    try:
        block = np.asarray(sequence, dtype=object if words else None)
        if words and block.ndim == 1:
            raise ValueError
        if block.dtype.kind in "US":
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
