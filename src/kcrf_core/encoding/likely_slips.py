"""Warnings about likely slips in training data: mistyped labels, columns in another order.

A slip changes what is learnt without an error: a typed label is a class of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from ..config import Config
from ..corpora import Columns, TrainingColumns
from ..scoring import (
    OUTSIDE,
    detect_scheme,
    labels_with_lines,
    lost_spans_remark,
    odd_labels,
    odd_remark,
)
from ..system import Remark, counted
from .half_known import label_counts

POSITIONS_PER_LABEL = 10  # on average, from which on a label that is seen once is worth a warning
DOCUMENT = "-DOCSTART-"  # what stands in CoNLL files where a document begins

# A column is compared with the label at so many positions, and at all of them if these agree; a few
# positions tell nothing.
SAMPLED, FEWEST_COMPARED = 2000, 50
MOST_COMPARED = 1000  # columns
# Share of positions at which a copy of the label agrees with it, and how far that is from chance.
COPIED, BEYOND_CHANCE = 0.99, 0.95


def slip_warnings(
    columns: TrainingColumns,
    config: Config,
    names: Sequence[str],
    left_out: Collection[str],
) -> list[str]:
    """Return all warnings about data with named columns, of which some are no features."""
    counts = label_counts(columns, config)
    inputs = set(names[:-1]).difference(left_out)
    of_columns = column_warnings(columns, counts, names, inputs)
    return [*label_warnings(columns, counts, odd_labels(counts)), *of_columns]


def label_warnings(
    columns: TrainingColumns,
    counts: Mapping[str, int],
    odd: Sequence[str],
) -> list[str]:
    """Return warnings about labels, given the count of each; odd ones are of no scheme."""
    total, out = sum(counts.values()), list[str]()

    def line(label: str) -> int | None:
        place = columns.first_line(columns.corpus.width - 1, label)
        return None if place is None else place[1]

    if odd:
        scheme = detect_scheme(counts.keys() - odd) or ""
        out.append(f"warning: {odd_remark(scheme, odd, counts, line)}")
    elif (lost := lost_spans_remark(counts, line)) is not None:
        out.append(f"warning: {lost}")
    once = [label for label in counts if counts[label] == 1 and label not in odd]
    if once and total >= POSITIONS_PER_LABEL * len(counts):
        seen = f"{counted(len(once), 'label is', 'labels are')} seen only once"
        shown = labels_with_lines(once, counts, line)
        out.append(f"warning: {seen}, as slips and rare labels are: {shown}")
    return out


def column_warnings(
    columns: TrainingColumns, counts: Mapping[str, int], names: Sequence[str], used: Collection[str]
) -> list[str]:
    """Return warnings about columns beside labels, given the count of each label.

    Features look at the `used` columns.
    """
    corpus, out = columns.corpus, list[str]()
    if corpus.attributes is not None or corpus.names is not None or corpus.width < 2:
        return out
    first: dict[str, int] = {}  # counts of words in the first column
    if columns.has_numbers(0) is None:
        values, numbers = columns.value_counts(0)
        first = dict(zip(values, numbers.tolist(), strict=True))
    if DOCUMENT in first:
        taken = f"lines with {DOCUMENT} are taken for sequences"
        remedy = "name it as 'comment' to pass over them"
        out.append(Remark(f"warning: {taken}: {remedy}", settings=["comment"]))
    if not _plain_spans(counts) and _plain_spans(first):
        out.append(
            f"warning: the last column is taken for the label, and the first one ({names[0]}) has "
            "labels of spans: is that the label? It must be the last column"
        )
    if len(used) <= MOST_COMPARED and columns.positions >= FEWEST_COMPARED:
        part = next(iter(columns.parts))
        for column, name in enumerate(names[:-1]):
            share = _copied_share(part, column) if name in used else None
            if share is not None:
                out.append(
                    Remark(
                        f"warning: column {name} tells the label at {100 * share:.4g} % of the "
                        "positions, one value for each label: leave it out by 'ignore' if it is "
                        "made of the labels",
                        settings=["ignore"],
                    )
                )
    return out


def _plain_spans(counts: Mapping[str, int]) -> bool:
    """Return True for labels of spans, among them O and some that begin with B."""
    scheme = detect_scheme(counts.keys() - odd_labels(counts))
    return scheme is not None and OUTSIDE in counts and any(label[:1] == "B" for label in counts)


def _copied_share(part: Columns, column: int) -> float | None:
    """Return the share of positions at which a column has the value that stands for their label.

    None unless nearly all have it, and not by chance. Each value stands for the label that it has
    most often, and only one of a label's values stands for it.
    """
    numbers = part.numbers(column)
    values = part.coded(column).codes if numbers is None else numbers
    labels = part.coded(part.corpus.width - 1).codes
    sample = np.unique(np.linspace(0, len(labels) - 1, SAMPLED).astype(np.int64))
    if len(labels) > SAMPLED and not _agreement(values[sample], labels[sample])[1] >= BEYOND_CHANCE:
        return None
    share, beyond = _agreement(values, labels)
    return share if share >= COPIED and beyond >= BEYOND_CHANCE else None


def _agreement(values: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Return the share of positions whose value stands for their label, beside chance.

    The second number is 0 for the share of the commonest label, and 1 for all positions.
    """
    names, codes = np.unique(values, return_inverse=True)
    Y = int(labels.max()) + 1
    if not 1 < len(names) <= 2 * Y:
        return 0.0, 0.0
    table = np.bincount(codes.ravel() * Y + labels, minlength=len(names) * Y).reshape(len(names), Y)
    label_of, value_of = table.argmax(axis=1), table.argmax(axis=0)
    mutual = np.flatnonzero(value_of[label_of] == np.arange(len(names)))
    common = table.sum(axis=0).max() / len(labels)
    share = float(table[mutual, label_of[mutual]].sum() / len(labels))
    return share, (share - common) / (1 - common) if common < 1 else 0.0
