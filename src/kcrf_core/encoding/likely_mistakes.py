"""Likely mistakes in the columns of training data.

Lines that mark documents are data unless a comment mark skips them, the label may stand in another column than the
last, and a column may be a copy of the label, or another program's prediction of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..corpora import Columns
from ..scoring import detect_scheme
from ..system import Remark, listed

LOOKED_AT = 10_000  # positions that are compared with the label
COPY = 0.95  # share of positions with the label in a copy of it
RARE_COPY = 0.9  # the same without the most frequent label, which columns with rare marks often have, too
DOCUMENT = "-DOCSTART-"  # begins the lines of CoNLL files where a document begins


def document_remarks(columns: Columns) -> list[Remark]:
    """Return a warning if values of the first column mark documents."""
    if columns.numbers(0) is not None or DOCUMENT not in columns.coded(0).values:
        return []
    lines = f"lines with {DOCUMENT} are taken for sequences"
    return [Remark(f"warning: {lines}: name it as 'comment' to pass over them", settings=["comment"])]


def label_remarks(columns: Columns, inputs: Mapping[str, int], label: int, unobserved: str | None) -> list[Remark]:
    """Return warnings about columns that look like the label, or like a copy of it.

    `inputs` and `label` are numbers of columns, and `unobserved` is the mark of labels that are not known.
    """
    labels, label_numbers = columns.coded(label), columns.numbers(label)
    known = [value for value in labels.values if value != unobserved]
    codes = labels.codes[:LOOKED_AT]
    observed = np.array([value != unobserved for value in labels.values], dtype=bool)[codes]
    spans, remarks = detect_scheme(known) is not None, []
    for name, column in inputs.items():
        numbers = columns.numbers(column)
        if numbers is None:
            values = columns.coded(column)
            if not spans and _are_spans(values.values):
                some = listed(sorted(values.values))
                what = f"column {name} has labels of spans ({some}), and the last column has not"
                remarks.append(Remark(f"warning: {what}: is {name} the label? It must be the last column"))
            equal = values.span(slice(LOOKED_AT)).numbered(labels.values) == codes
        elif label_numbers is not None:
            equal = numbers[:LOOKED_AT] == label_numbers[:LOOKED_AT]
        else:
            continue  # the labels are words
        if _is_copy(equal[observed], codes[observed]):
            what = f"column {name} has the label itself at nearly all positions: is it a copy or a prediction?"
            remarks.append(Remark(f"warning: {what} Leave it out by 'ignore'", settings=["ignore"]))
    return remarks


def _are_spans(values: Sequence[str]) -> bool:
    """Return True for values like B-NP, I-NP and O, which are nothing but labels of spans."""
    return "O" in values and any(value.startswith("B-") for value in values) and detect_scheme(values) is not None


def _is_copy(equal: np.ndarray, codes: np.ndarray) -> bool:
    """Return True if a column equals the labels at nearly all positions, also at those with rarer labels."""
    if not len(codes):
        return False
    rare = codes != np.bincount(codes).argmax()
    return bool(rare.any() and equal.mean() >= COPY and equal[rare].mean() >= RARE_COPY)
