"""Data frames of pandas as sequences: rows are positions, columns keep their names.

pandas is never imported here: a frame can only be given where it is imported already. Numbers (bool, int, float) stay
numbers, with NaN where one is missing; strings and categories are words, and empty where one is missing. Times are
refused: a model of their values would know the hours of training alone.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date, time, timedelta
from typing import Any, Protocol

import numpy as np

from ..errors import suggestion
from ..system import counted, listed
from .tables import CategoryColumn, CodedColumn, NumberColumn

TIMES = (date, time, timedelta)  # a datetime is a date
ColumnNames = str | Sequence[str]


class Frame(Protocol):
    """A DataFrame of pandas."""

    @property
    def columns(self) -> Any: ...
    @property
    def index(self) -> Any: ...
    def __len__(self) -> int: ...


def is_frame(X: object) -> bool:
    """Return True for a DataFrame."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(X, getattr(pandas, "DataFrame", ()))


def named_row(row: object) -> object:
    """Return a row of a DataFrame, which is a Series, as a dictionary by column, and anything else as it is."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(row, pandas.Series) or isinstance(row.index, pandas.RangeIndex):
        return row
    return {str(name): value for name, value in row.items()}


def is_missing(value: object) -> bool:
    """Return True for None, NaN, and the NA of pandas."""
    if isinstance(value, (float, np.floating)):
        return bool(np.isnan(value))
    return value is None or value is getattr(sys.modules.get("pandas"), "NA", None)


class FrameRows(list[range]):
    """Rows of one frame, or of a list of frames: a range of rows for each sequence."""

    def __init__(self, X: Any, sequence: ColumnNames | None = None):
        self.alone = is_frame(X)
        frames = [X] if self.alone else list(X)
        for number, frame in enumerate(frames):
            names = [str(name) for name in frame.columns]
            twice = next((name for name, count in Counter(names).items() if count > 1), None)
            if twice is not None:
                raise ValueError(f"X has two columns '{twice}'")
            if set(names) != {str(name) for name in frames[0].columns}:
                raise ValueError(f"X[{number}] has other columns than X[0]: {listed(names)}")
        self.frame = frames[0] if len(frames) == 1 else sys.modules["pandas"].concat(frames, ignore_index=True)
        self._names = {str(name): name for name in self.frame.columns}
        ends = np.cumsum([0, *map(len, frames)]).tolist()
        # A tuple names several columns, or one column of several levels.
        one = isinstance(sequence, str) or not isinstance(sequence, Iterable) or str(sequence) in self._names
        self.sequence = [] if sequence is None else [str(name) for name in ([sequence] if one else sequence)]
        if self.sequence and (self.alone or set(self.sequence) <= set(self._names)):  # a listed frame is one anyway
            ends = sorted({*ends, *self._ends(self.sequence)})
        super().__init__(map(range, ends[:-1], ends[1:]))

    @property
    def names(self) -> list[str]:
        return list(self._names)

    def column(self, name: str, use: str = "X") -> Any:
        """Return a column, or a level of the index that has a name, as a Series."""
        if name in self._names:
            return self.frame[self._names[name]]
        levels = [str(level) for level in self.frame.index.names]
        if name in levels:
            return self.frame.index.get_level_values(levels.index(name)).to_series(index=self.frame.index)
        known = suggestion(name, self.names)
        raise ValueError(f"{use}: there is no column '{name}'{known} (columns: {listed(self.names)})")

    def whole_column(self, name: str, use: str) -> list[Any]:
        """Return the values of a column that has one in each row."""
        found = self.column(name, use)
        if found.isna().any():
            row = found.index[int(found.isna().to_numpy().argmax())]
            raise ValueError(f"{use}: the column '{name}' has no value in row {row!r}")
        return found.tolist()

    def of_sequences(self, given: Any, use: str) -> Any:
        """Return the value of each sequence, of a column or of values of rows that do not change within one."""
        if isinstance(given, str):
            values, name = self.whole_column(given, use), f"'{given}'"
        elif self.alone and hasattr(given, "__len__") and len(given) == len(self.frame):
            values, name = list(given), "the value"
        else:
            return given  # one for each sequence
        for rows in self:
            if len(set(values[rows.start : rows.stop])) > 1:
                raise ValueError(f"{use}: {name} changes within a sequence, at row {self.frame.index[rows.start]!r}")
        return [values[rows.start] if len(rows) else None for rows in self]

    @property
    def places(self) -> tuple[Any, list[Any]]:
        """The index of the frame, and for each row the values that name its sequence."""
        return self.frame.index, list(
            zip(*(self.whole_column(name, "sequence") for name in self.sequence), strict=True)
        )

    def continued(self, earlier: tuple[Any, list[Any]]) -> list[Any]:
        """Return names of sequences that have rows next to rows of the same name at `earlier` places, by the index."""
        (index, names), (earlier_index, earlier_names) = self.places, earlier
        both, names = earlier_index.append(index), earlier_names + names
        if not both.is_unique:  # the same rows again, or rows of another table
            return []
        try:
            order = both.argsort()
        except TypeError:  # labels of different types
            return []
        new = order >= len(earlier_names)
        pairs = ((names[order[t]], names[order[t + 1]]) for t in np.flatnonzero(new[1:] != new[:-1]))
        return list(dict.fromkeys(first for first, second in pairs if first == second))

    def split(self, values: Sequence[Any]) -> list[list[Any]]:
        """Return values of rows as a list for each sequence."""
        if len(values) != len(self.frame):
            raise ValueError(f"{counted(len(self.frame), 'row')} in X, but {len(values):,} in y")
        return [list(values[rows.start : rows.stop]) for rows in self]

    def _ends(self, names: Sequence[str]) -> list[int]:
        """Return the rows at which the values of some columns change."""
        keys = list(zip(*(self.whole_column(name, "sequence") for name in names), strict=True))
        ends = [row for row in range(1, len(keys)) if keys[row] != keys[row - 1]]
        back = len(ends) + bool(keys) - len(set(keys))
        if back:
            message = f"sequence: {counted(back, 'value')} of {listed(names)} came again after another one, and began "
            message += "a new sequence each time: sort the rows first?"
            warnings.warn(message, UserWarning, stacklevel=7)  # in the caller of `fit` or `predict`
        return ends

    def inputs(self, names: Iterable[str]) -> tuple[Sequence[str], ...]:
        """Return columns as text or numbers."""
        out: list[Sequence[str]] = []
        for name in names:
            series = self.column(name)
            numbers = _numbers(name, series)
            out.append(_text(series) if numbers is None else NumberColumn(numbers))
        return tuple(out)

    def with_index(self, values: Any, names: Any) -> Any:
        """Return values of rows, as a Series called `names` or a DataFrame with these columns, by the frame's index."""
        pandas = sys.modules["pandas"]
        if isinstance(names, str):
            return pandas.Series(values, index=self.frame.index, name=names)
        found = pandas.DataFrame(values, index=self.frame.index, columns=names)
        object.__setattr__(found, "dtype", values.dtype)  # cross_val_predict asks for it where a fold lacks a label
        return found


def _numbers(name: str, series: Any) -> np.ndarray | None:
    """Return a column as numbers, NaN where one is missing; None for words."""
    dtype = getattr(series.dtype, "categories", series).dtype
    kind = dtype.kind
    if kind == "O" and dtype is series.dtype:
        values = series[series.notna()].tolist()
        if any(isinstance(value, TIMES) or hasattr(value, "ordinal") for value in values):
            kind = "M"
        elif values and all(isinstance(value, int | float | np.number) for value in values):
            kind = "f"
        strange = next((one for one in values if not isinstance(one, str | int | float | np.generic)), None)
        if strange is not None and kind != "M":
            raise ValueError(
                f"the column '{name}' holds values of type {type(strange).__name__}: strings or numbers are needed"
            )
    if kind in "Mm":
        raise ValueError(
            f"the column '{name}' holds times ({dtype}): sort by it, then drop it, or put the seconds between rows in "
            "its place"
        )
    if kind not in "biuf" or dtype is not series.dtype:
        if kind == "c":
            raise ValueError(f"Complex data not supported: the column '{name}'")
        return None
    found = series.to_numpy(dtype=np.float64, na_value=np.nan)
    if np.isinf(found).any():
        raise ValueError(f"the column '{name}' contains infinity; NaN stands for values that are missing")
    return found


def _text(series: Any) -> Sequence[str]:
    """Return a column as text, empty where a value is missing."""
    if hasattr(series.dtype, "categories"):
        names = [*map(str, series.dtype.categories.tolist()), ""]  # whole numbers stay so beside missing values
        return CategoryColumn(**vars(CodedColumn.of([names[code] for code in series.cat.codes.tolist()])))
    there = series.notna().tolist()
    return [str(value) if known else "" for value, known in zip(series.tolist(), there, strict=True)]
