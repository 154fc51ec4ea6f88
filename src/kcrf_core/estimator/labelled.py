"""Arguments of `fit` and its like: sequences with labels, groups and weights, from lists or from data frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..corpora import ColumnNames, FrameRows, check_sequences, is_frame


@dataclass(frozen=True)
class LabelledInput:
    """Sequences with their labels, and a group and a weight for each where they are given."""

    X: list[Any]
    y: Any
    groups: Any = None
    sample_weight: Any = None
    columns: list[str] | None = None  # names of columns of data frames, that of the labels last
    scaled_by: Sequence[str] = ()  # those among them that name groups to scale numbers by
    taken: frozenset[str] = frozenset()  # columns of data frames for sequences, groups and the like, no inputs


def has_frames(X: Any) -> bool:
    """Return True for a data frame, or a list of them."""
    several = isinstance(X, (list, tuple)) and len(X) > 0 and all(map(is_frame, X))
    return several or is_frame(X)


def as_table(X: Any, sequence: ColumnNames | None) -> Any:
    """Return data frames as a `FrameRows`, and anything else as it is."""
    return FrameRows(X, sequence) if has_frames(X) else X


def labelled(
    X: Any,
    y: Any,
    sample_weight: Any = None,
    groups: Any = None,
    sequence: ColumnNames | None = None,
    label: str | None = None,
    unobserved: Any = None,
    scaled_by: Sequence[str] | None = (),
) -> LabelledInput:
    """Return sequences, labels and the like as lists, from columns of a data frame where they are named.

    Numbers are scaled by groups that the columns `scaled_by` name, None for that of `groups`.
    """
    table, group = as_table(X, sequence), groups if isinstance(groups, str) else getattr(groups, "name", None)
    if scaled_by is None:
        if group is None or not isinstance(table, FrameRows):
            raise ValueError("scale='group' needs a DataFrame, and groups, which names a column of it: 'subject'")
        scaled_by = [str(group)]
    if not isinstance(table, FrameRows):
        named = {"sequence": sequence, "label": None if y is not None else label}
        named |= {"groups": groups, "sample_weight": sample_weight}
        texts = (name for name, value in named.items() if isinstance(value, str))
        wrong = "sequence" if sequence is not None else next(texts, None)
        if wrong is not None and hasattr(X, "__iter__") and not isinstance(X, (str, dict)):
            remedy = "; in a pipeline, set_output(transform='pandas') keeps it one" if hasattr(X, "ndim") else ""
            raise ValueError(f"{wrong}={named[wrong]!r} is a column of a DataFrame, and X is none{remedy}")
        return LabelledInput(check_sequences(X), y, groups, sample_weight)
    # A Series with the name of a column is this column, or made of it.
    series = [getattr(values, "name", None) for values in (y, groups, sample_weight)]
    label = series[0] if label is None else str(label)
    taken = [*table.sequence, *(str(name) for name in series if name is not None)]
    if y is None:
        if label is None:
            raise ValueError("label: name the column of labels, or give y")
        if unobserved is not None:
            found = table.column(label, "label")
            y = table.split(found.astype(object).where(found.notna(), unobserved).tolist())
        else:
            y = table.split(table.whole_column(label, "label"))
    elif table.alone:
        first = next(iter(y), None)
        if isinstance(first, str) or not hasattr(first, "__len__"):  # a label for each row
            y = table.split(list(y))
    taken += [name for name in (label, groups, sample_weight) if isinstance(name, str)]
    groups, sample_weight = table.of_sequences(groups, "groups"), table.of_sequences(sample_weight, "sample_weight")
    inputs = [name for name in table.names if name not in taken or (name in scaled_by and name != label)]
    no_inputs = frozenset(taken).difference(inputs)
    if not inputs:
        raise ValueError("X has no column but those of sequences, labels, groups and weights")
    columns = [*inputs, "label" if label is None else str(label)]
    return LabelledInput(table, y, groups, sample_weight, columns, scaled_by, no_inputs)
