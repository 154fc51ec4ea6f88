"""Gold and predicted labels of the same positions, read from one tagged file or from two files.

The columns of a tagged file end with: the gold label; `novelty=R`, `probability=P`, `review=yes` or `review=no` and
`set=LABEL|...`, if `tag` wrote them, or `fold=NAME`, if `crossval` did; `LABEL:p`, either one column for each label or
one for the predicted label, if they wrote these; the predicted label.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from .._lazy import cached_property
from ..corpora import MISSING, CodedColumn, Corpus, joined_columns
from ..errors import DataError
from ..system import counted, offsets_of
from .calibration import Probabilities, from_marginals
from .schemes import lost_spans_remark, odd_labels, odd_remark
from .spans import SpanMatches, match_spans

# Printed probabilities are rounded: their sum may be off 1 by this much times the number of labels.
_ROUNDING = 0.002

# Columns are doubted to be gold and predicted labels if there are so many positions, and both figures are below these.
_LEAST_DOUBTED, _LEAST_OVERLAP, _LEAST_KAPPA = 50, 1 / 3, 0.1

_FEW_VALUES = 20  # of a column of categories beside readings

# Beginnings of values of the other columns of `tag` and `crossval`.
_REMARKS = ("novelty=", "probability=", "review=", "set=", "fold=")


@dataclass(frozen=True, eq=False)
class SeenWords:
    """Words that the training data of a model has."""

    values: np.ndarray  # [N] bool
    complete: bool  # False where rare words do not count as seen


@dataclass(frozen=True, eq=False)
class Labelling:
    """Gold labels of N positions, and the labels that one system predicts."""

    source: str  # the name to show in messages
    gold: Sequence[str]
    predicted: Sequence[str]
    offsets: np.ndarray  # [S+1], sequence s is positions offsets[s]:offsets[s+1]
    lines: np.ndarray  # [N] line numbers in the source
    words: Sequence[str] | None = None  # something to show for each position
    seen: SeenWords | None = None  # those of `words`, where a model with such a column gave the labels
    probabilities: Probabilities | None = None
    known_labels: tuple[str, ...] | None = None  # those of the model
    known_odd: tuple[str, ...] = ()  # known not to be of the scheme of nearly all others
    left_out: int = 0  # positions whose gold label is not observed, and which are not among the N
    missing: tuple[tuple[str, int], ...] = ()  # features with missing values and how many they have
    decode: str | None = None  # the decoder that a model gave the labels by; None where they were read
    span_bonus: float = 0.0  # of that decoder
    remarks: tuple[str, ...] = ()  # remarks for the user on the file that they were read from, and on sequences
    groups: np.ndarray | None = None  # [N] numbers of groups of sequences, such as speakers, if they are given
    trained_on: np.ndarray | None = None  # [N] bool, positions of sequences that the model was trained on, if known

    @cached_property
    def right(self) -> np.ndarray:
        """Positions whose predicted label is the gold label, [N] bool."""
        gold = CodedColumn.of(self.gold)
        return gold.codes == CodedColumn.of(self.predicted).numbered(gold.values)

    @cached_property
    def label_counts(self) -> dict[str, int]:
        """The count of each label, gold and predicted; 0 of others that the model knows."""
        counts = dict.fromkeys(self.known_labels or (), 0)
        for labels in (self.gold, self.predicted):
            for label, count in count_labels(labels).items():
                counts[label] = counts.get(label, 0) + count
        return counts

    @cached_property
    def odd_labels(self) -> tuple[str, ...]:
        """Labels that are not of the scheme of nearly all others, and O for spans.

        A label that the model knows is odd only if it was in the training data.
        """
        counts = self.label_counts
        known = tuple(label for label in dict.fromkeys(self.known_odd) if label in counts)
        more = odd_labels({label: count for label, count in counts.items() if label not in known})
        return known if set(more) & set(self.known_labels or ()) else known + more

    def odd_remarks(self, scheme: str | None) -> list[str]:
        """Return warnings about gold and predicted labels that are of no scheme."""
        out = []
        for what, labels in (("gold", self.gold), ("predicted", self.predicted)):
            column, counts = CodedColumn.of(labels), count_labels(labels)

            def line(label: str, column: CodedColumn = column) -> int:
                return int(self.lines[(column.codes == column.values.index(label)).argmax()])

            odd = [label for label in self.odd_labels if label in counts]
            if scheme is None:
                lost = lost_spans_remark(counts, line, f"{what} labels")
                out += [] if lost is None else [f"warning: {self.source}: {lost}"]
            elif odd:
                remark = odd_remark(scheme, odd, counts, line, f"{what} labels")
                out.append(f"warning: {self.source}: {remark}")
        return out

    @cached_property
    def spans(self) -> SpanMatches:
        """Gold and predicted spans, where labels are those of a scheme."""
        gold, predicted = CodedColumn.of(self.gold), CodedColumn.of(self.predicted)
        return match_spans(gold, predicted, self.offsets, self.odd_labels)


def count_labels(labels: Sequence[str]) -> dict[str, int]:
    """Return how often each label occurs."""
    column = CodedColumn.of(labels)
    counts = np.bincount(column.codes, minlength=len(column.values)).tolist()
    return {label: count for label, count in zip(column.values, counts, strict=True) if count}


def from_tagged(corpus: Corpus) -> Labelling:
    """Read gold and predicted labels from a tagged corpus, and probabilities where it has them."""
    columns = list(corpus.columns)
    predicted = columns.pop() if columns else ()
    written: list[tuple[Sequence[str], np.ndarray]] = []
    while columns and (found := _label_probabilities(columns[-1], predicted)) is not None:
        written.append(found)
        columns.pop()
    while columns and any(all(value.startswith(remark) for value in columns[-1]) for remark in _REMARKS):
        columns.pop()
    if not columns:
        message = "one column only; expected gold and predicted labels as the last two (or give a model with -m)"
        raise DataError(message, corpus.source, int(corpus.lines[0]))
    gold = columns.pop()
    if not set(gold) & set(predicted):
        message = "the last two columns have no value in common; is the file tagged? (or give a model with -m)"
        raise DataError(message, corpus.source)
    probabilities, lacking = _collect(written, gold, predicted, corpus)
    remarks = [_doubt(gold, predicted, corpus.source), lacking]
    return Labelling(
        source=corpus.source,
        gold=gold,
        predicted=predicted,
        offsets=corpus.offsets,
        lines=corpus.lines,
        words=readable_column(columns),
        probabilities=probabilities,
        remarks=tuple(remark for remark in remarks if remark is not None),
    )


def _doubt(gold: Sequence[str], predicted: Sequence[str], source: str) -> str | None:
    """Return a warning where two columns can hardly be gold and predicted labels of the same positions.

    They then agree no better than by chance (Cohen's kappa), and their distributions hardly overlap. The latter are
    alike even of poor systems, unless they predict one label throughout. A few positions tell nothing.
    """
    columns = [CodedColumn.of(labels) for labels in (gold, predicted)]
    N, labels = len(gold), sorted(columns[0].present | columns[1].present)
    if N < _LEAST_DOUBTED or len(columns[1].present) < 2:
        return None
    codes = [each.numbered(labels) for each in columns]
    shares = [np.bincount(each, minlength=len(labels)) / N for each in codes]
    agree, chance = float(np.mean(codes[0] == codes[1])), float(shares[0] @ shares[1])
    if np.minimum(*shares).sum() >= _LEAST_OVERLAP or agree - chance >= _LEAST_KAPPA * (1 - chance):
        return None
    return (
        f"warning: {source}: the last two columns are taken for gold and predicted labels, but agree no better than by "
        f"chance ({100 * agree:.2f} % of the positions); is the file tagged? (or give a model with -m)"
    )


def from_two_files(gold: Corpus, predicted: Corpus) -> Labelling:
    """Take gold and predicted labels from the label columns of two corpora with the same positions."""
    for corpus in (one for one in (gold, predicted) if one.unlabelled):
        raise DataError(corpus.unlabelled, corpus.source)
    if gold.left_out and predicted.sequences == gold.sequences + gold.left_out:
        first, lines = predicted.lines[predicted.offsets[:-1]], gold.lines[gold.offsets[:-1]]
        predicted = predicted.subset(np.flatnonzero(np.isin(first, lines)))
    if not np.array_equal(gold.offsets, predicted.offsets):
        shorter = min(gold.sequences, predicted.sequences)
        unequal = np.flatnonzero(gold.offsets[1 : shorter + 1] != predicted.offsets[1 : shorter + 1])
        if not len(unequal):
            counts = f"{counted(predicted.sequences, 'sequence')}, {gold.source} has {gold.sequences:,}"
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


def joined_labellings(parts: Sequence[Labelling]) -> Labelling:
    """Concatenate labellings of several parts of the same data by one system."""
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    missing = sum((Counter(dict(part.missing)) for part in parts), Counter[str]())
    given = [part.probabilities for part in parts if part.probabilities is not None]
    known = [part.trained_on for part in parts if part.trained_on is not None]
    return replace(
        parts[0],
        gold=joined_columns([CodedColumn.of(part.gold).packed() for part in parts]),
        predicted=joined_columns([CodedColumn.of(part.predicted).packed() for part in parts]),
        offsets=offsets_of(lengths),
        lines=np.concatenate([part.lines for part in parts]),
        words=None,
        seen=None,
        probabilities=Probabilities.joined(given) if len(given) == len(parts) else None,
        trained_on=np.concatenate(known) if len(known) == len(parts) else None,
        left_out=sum(part.left_out for part in parts),
        missing=tuple(missing.items()),
        remarks=tuple(remark for part in parts for remark in part.remarks),
    )


def _label_probabilities(column: Sequence[str], predicted: Sequence[str]) -> tuple[Sequence[str], np.ndarray] | None:
    """Split a column of `LABEL:p` into its labels [1 or N] and probabilities [N]; None if it is another column.

    Its label is the same at all positions, or it is the predicted one.
    """
    label, colon, _ = column[0].rpartition(":")
    if not colon:
        return None
    prefix = f"{label}:"
    if all(value.startswith(prefix) for value in column):
        labels: Sequence[str] = (label,)
        numbers = [value[len(prefix) :] for value in column]
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
    written: list[tuple[Sequence[str], np.ndarray]], gold: Sequence[str], predicted: Sequence[str], corpus: Corpus
) -> tuple[Probabilities | None, str | None]:
    """Combine the columns of probabilities; None where some are missing, and why."""
    single = {labels[0]: values for labels, values in written if len(labels) == 1}
    if single.keys() >= set(predicted):
        marginals = np.stack(list(single.values()), axis=1)  # [N, Y]
        found = from_marginals(marginals, list(single), gold, predicted)
        # A single label may be the predicted one or the only one there is: nothing in the file says which.
        if len(single) == 1:
            return Probabilities(found.predicted, None, None), None
        sums = marginals.sum(axis=1)
        wrong = np.abs(sums - 1) > _ROUNDING * len(single)
        if not wrong.any():
            return found, None
        t = int(wrong.argmax())
        remark = f"probabilities add up to {sums[t]:.4g}, not to 1 as those of all labels: no log-loss and Brier score"
        return Probabilities(found.predicted, None, None), f"{corpus.source}:{corpus.lines[t]}: {remark}"
    for labels, values in written:
        if len(labels) > 1:
            return Probabilities(values, None, None), None
    if not written:
        return None, None
    t = next(t for t, label in enumerate(predicted) if label not in single)
    remark = f"'{predicted[t]}' is predicted, and no column has its probability: no calibration"
    return None, f"{corpus.source}:{corpus.lines[t]}: {remark}"


def readable_column(columns: Sequence[Sequence[str]]) -> Sequence[str] | None:
    """Return the first column that has words, if there is one."""
    place = readable_place(columns)
    return None if place is None else columns[place]


def readable_place(columns: Sequence[Sequence[str]]) -> int | None:
    """Find the first column that has words.

    Most values of other columns are numbers, missing or times, which begin with a digit; or they stay the same for
    several positions, as the name of a subject does; or they are few categories beside readings, as antennas are.
    """
    parts = [column[:1000] for column in columns]
    numbers = [2 * sum(map(_like_number, part)) > len(part) for part in parts]
    readings = any(like and len(set(part)) > _FEW_VALUES for like, part in zip(numbers, parts, strict=True))
    for place, part in enumerate(parts):
        changes = sum(a != b for a, b in pairwise(part))
        known = len(part) < _LEAST_DOUBTED or (
            2 * changes >= len(part) and not (readings and len(set(part)) <= _FEW_VALUES)
        )
        if not numbers[place] and known:
            return place
    return None


def _like_number(value: str) -> bool:
    """Return True for numbers, missing values and values that begin with a digit."""
    if value in MISSING or value[0].isdigit():
        return True
    try:
        float(value)
    except ValueError:
        return False
    return True
