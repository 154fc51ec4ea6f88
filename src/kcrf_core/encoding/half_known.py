"""Labels that are half known, as text: sets, such as `B-PER|B-ORG`, and soft labels, such as `B-PER:0.8|O:0.2`.

A set allows each of its labels. A soft label gives weights q_t(y_t) to some labels; only their ratios matter. A text
without a `|` is a set of one label, and a soft label if a number stands behind its last `:`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..chains import HALF_KNOWN
from ..config import SOFT, Config
from ..corpora import TrainingColumns
from ..errors import DataError
from .dataset import UNKNOWN, UNOBSERVED


def label_weights(text: str, kind: str | None) -> dict[str, float]:
    """Return weights of the labels in a text, all 1 for a set; an error says what is wrong with it."""
    if kind is None:
        return {text: 1.0}
    parts, found = text.split("|"), {}
    for part in parts:
        label, _, number = part.rpartition(":") if kind == SOFT else (part, "", "1")
        try:
            weight = float(number)
        except ValueError:
            if len(parts) == 1:
                return {text: 1.0}
            raise ValueError(f"'{part}' has no weight, as in B:0.8|O:0.2") from None
        if not label or label in found:
            raise ValueError(f"it has the label '{label}' twice" if label else "a label in it is empty")
        if not 0 <= weight < np.inf:
            raise ValueError(f"the weight '{number}' is not a finite number of at least 0")
        found[label] = weight
    if not any(found.values()):
        raise ValueError("all its weights are 0")
    return found


def label_counts(columns: TrainingColumns, config: Config) -> dict[str, int]:
    """Return the count of each label of training data, sorted; those of a set count once each.

    An error names the first line with a text that cannot be read.
    """
    place, counts = columns.corpus.width - 1, dict[str, int]()
    texts, numbers = columns.value_counts(place)
    for text, number in zip(texts, numbers.tolist(), strict=True):
        if text == config.unobserved:
            continue
        try:
            weights = label_weights(text, config.half_known)
            if config.unobserved in weights:
                raise ValueError(f"'{config.unobserved}' in it is the mark of labels that are not observed")
        except ValueError as error:
            setting = "soft_labels" if config.half_known == SOFT else "label_sets"
            message = f"the label '{text}' cannot be read: {error}; correct it, or leave out '{setting}'"
            raise DataError(message, *(columns.first_line(place, text) or ()), settings=[setting]) from None
        for label in weights:
            counts[label] = counts.get(label, 0) + number
    return {label: counts[label] for label in sorted(counts)}


def label_numbers(
    texts: Sequence[str], labels: Sequence[str], kind: str | None, unobserved: str | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the label [V] int32 of each text, and the weights [K, Y] of those that are half known, if there are any.

    A text with a label that is not known, or that cannot be read, is UNKNOWN.
    """
    numbers = {label: number for number, label in enumerate(labels)}
    out, rows = np.full(len(texts), UNKNOWN, np.int32), list[np.ndarray]()
    for place, text in enumerate(texts):
        try:
            weights = label_weights(text, kind)
        except ValueError:
            continue
        likely = [label for label, weight in weights.items() if weight > 0]
        if text == unobserved:
            out[place] = UNOBSERVED
        elif len(likely) == 1:
            out[place] = numbers.get(likely[0], UNKNOWN)
        elif weights.keys() <= numbers.keys():
            out[place] = HALF_KNOWN - len(rows)
            rows.append(np.zeros(len(labels)))
            rows[-1][[numbers[label] for label in likely]] = [weights[label] for label in likely]
    return out, np.array(rows) if rows else None
