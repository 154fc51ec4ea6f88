"""Gold and predicted labels of the same positions, and reading them out of a tagged file, or of two files.

A tagged file has the predicted label last. Before it there may be columns `LABEL:p`, either one for each label or one
with the predicted label, before these columns `novelty=R` and `probability=P` of `tag`, and before all the gold label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..corpora import Corpus
from ..errors import DataError
from .calibration import Probabilities, from_marginals

# Printed probabilities are rounded: to this many times the number of labels they must add up to 1.
_ROUNDING = 0.002

# Columns that tell something else of positions.
_REMARKS = ("novelty=", "probability=")


@dataclass(frozen=True, eq=False)
class Labelling:
    """N positions, their gold labels and what one system says."""

    source: str  # the name to show in messages
    gold: Sequence[str]
    predicted: Sequence[str]
    offsets: np.ndarray  # [S+1], sequence s is positions offsets[s]:offsets[s+1]
    lines: np.ndarray  # [N] line numbers in the source
    words: Sequence[str] | None = None  # something to show for each position
    probabilities: Probabilities | None = None
    known_labels: tuple[str, ...] | None = None  # those of the model
    left_out: int = 0  # positions whose gold label is not observed: they are none of the N

    @cached_property
    def right(self) -> np.ndarray:
        """[N] bool."""
        return np.fromiter(map(str.__eq__, self.gold, self.predicted), dtype=bool, count=len(self.gold))


def from_tagged(corpus: Corpus) -> Labelling:
    """Gold and predicted labels, and probabilities where they are written down."""
    columns = list(corpus.columns)
    predicted = columns.pop() if columns else ()
    written: list[tuple[Sequence[str], np.ndarray]] = []
    while columns and (found := _label_probabilities(columns[-1], predicted)) is not None:
        written.append(found)
        columns.pop()
    while columns and any(all(value.startswith(remark) for value in columns[-1]) for remark in _REMARKS):
        columns.pop()
    if not columns:
        raise DataError(
            "one column only; expected gold and predicted labels as the last two (or give a model with -m)",
            corpus.source,
            int(corpus.lines[0]),
        )
    gold = columns.pop()
    if not set(gold) & set(predicted):
        raise DataError(
            "the last two columns have no value in common; is the file tagged? (or give a model with -m)",
            corpus.source,
        )
    return Labelling(
        source=corpus.source,
        gold=gold,
        predicted=predicted,
        offsets=corpus.offsets,
        lines=corpus.lines,
        words=readable_column(columns),
        probabilities=_collect(written, gold, predicted),
    )


def from_two_files(gold: Corpus, predicted: Corpus) -> Labelling:
    """Gold and predicted labels from the label columns of two files with the same positions."""
    if not np.array_equal(gold.offsets, predicted.offsets):
        shorter = min(gold.sequences, predicted.sequences)
        unequal = np.flatnonzero(gold.offsets[1 : shorter + 1] != predicted.offsets[1 : shorter + 1])
        if not len(unequal):
            counts = f"{predicted.sequences:,} sequences, {gold.source} has {gold.sequences:,}"
            raise DataError(f"not the same data: {counts}", predicted.source)
        lengths = [int(np.diff(corpus.offsets)[unequal[0]]) for corpus in (predicted, gold)]
        line = int(predicted.lines[predicted.offsets[unequal[0]]])
        message = f"a sequence of {lengths[0]:,} positions where {gold.source} has one of {lengths[1]:,}"
        raise DataError(message, predicted.source, line)
    if min(gold.width, predicted.width) > 1:
        for t, words in enumerate(zip(predicted.columns[0], gold.columns[0], strict=True)):
            if words[0] != words[1]:
                message = f"'{words[0]}' where {gold.source} has '{words[1]}': not the same data"
                raise DataError(message, predicted.source, int(predicted.lines[t]))
    return Labelling(
        source=predicted.source,
        gold=gold.columns[-1],
        predicted=predicted.columns[-1],
        offsets=gold.offsets,
        lines=predicted.lines,
        words=readable_column(gold.columns[:-1]),
    )


def _label_probabilities(column: Sequence[str], predicted: Sequence[str]) -> tuple[Sequence[str], np.ndarray] | None:
    """The labels [1 or N] and the probabilities [N] of a column with `LABEL:p` of one label throughout or of the
    predicted ones; None if it is no such column.
    """
    label, colon, _ = column[0].rpartition(":")
    if not colon:
        return None
    prefix = f"{label}:"
    if all(value.startswith(prefix) for value in column):
        labels, numbers = (label,), [value[len(prefix) :] for value in column]
    elif all(value.startswith(f"{label}:") for value, label in zip(column, predicted, strict=True)):
        labels = predicted
        numbers = [value[len(label) + 1 :] for value, label in zip(column, predicted, strict=True)]
    else:
        return None
    try:
        values = np.fromiter(map(float, numbers), dtype=np.float64, count=len(numbers))
    except ValueError:
        return None
    return (labels, values) if ((values >= 0) & (values <= 1)).all() else None


def _collect(
    written: list[tuple[Sequence[str], np.ndarray]], gold: Sequence[str], predicted: Sequence[str]
) -> Probabilities | None:
    """What columns of probabilities tell; None if they lack that of a predicted label."""
    single = {labels[0]: values for labels, values in written if len(labels) == 1}
    if single.keys() >= set(predicted):
        marginals = np.stack(list(single.values()), axis=1)  # [N, Y]
        found = from_marginals(marginals, list(single), gold, predicted)
        whole = np.abs(marginals.sum(axis=1) - 1).max() <= _ROUNDING * len(single)
        # With one label for all there is nothing to tell "the predicted one" from "each one" by.
        return found if whole and len(single) > 1 else Probabilities(found.predicted, None, None)
    for labels, values in written:
        if len(labels) > 1:
            return Probabilities(values, None, None)
    return None


def readable_column(columns: Sequence[Sequence[str]]) -> Sequence[str] | None:
    """The first column that is not made of numbers."""
    for column in columns:
        if not all(map(_is_number, column[:1000])):
            return column
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
