"""Tagging tasks whose useful terms are known: labels are drawn, exactly, from a conditional random field.

    p(y | x) proportional to exp(sum_t F[t, y_t] + sum_t T[y_{t-1}, y_t])

Two columns enter F, `strong` and `weak`; `few` (20 values), `many` (1,000 values) and `real` are noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kcrf_core.corpora import Corpus

USEFUL = {"strong", "weak"}
COLUMNS = ["strong", "weak", "few", "many", "real", "label"]


@dataclass(frozen=True)
class Task:
    """What a task is made of."""

    sequences: int = 300
    longest: int = 14  # lengths are from 6 to this
    labels: int = 3
    strong: float = 1.5  # standard deviation of what each column adds to a score
    weak: float = 0.6
    weak_values: int = 4
    transitions: float = 1.0


def draw_labels(scores, transitions, rng):
    """Labels of one sequence, [T]: backward messages, then forward draws."""
    T, Y = scores.shape
    after = np.zeros((T, Y))
    for t in range(T - 2, -1, -1):
        after[t] = np.logaddexp.reduce(transitions + scores[t + 1] + after[t + 1], axis=1)
    labels = np.empty(T, dtype=int)
    for t in range(T):
        logits = scores[t] + after[t] + (transitions[labels[t - 1]] if t else 0)
        chances = np.exp(logits - logits.max())
        labels[t] = np.searchsorted(np.cumsum(chances / chances.sum()), rng.random())
    return np.minimum(labels, Y - 1)


def draw_task(seed, task):
    """A corpus with the columns above. `strong` is a real column, `weak` a categorical one."""
    rng = np.random.default_rng([seed, 2004])
    Y = task.labels
    of_strong = task.strong * _centred(rng.normal(size=Y))
    of_weak = rng.normal(size=(task.weak_values, Y))
    of_weak -= of_weak.mean(axis=0)  # what all values have in common says nothing either
    of_weak -= of_weak.mean(axis=1, keepdims=True)
    of_weak *= task.weak / of_weak.std()
    transitions = task.transitions * _centred(rng.normal(size=(Y, Y)))
    lengths = rng.integers(6, task.longest + 1, task.sequences)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    N = int(offsets[-1])
    strong, weak = rng.normal(size=N), rng.integers(0, task.weak_values, N)
    scores = strong[:, None] * of_strong + of_weak[weak]  # [N, Y]
    labels = np.concatenate(
        [draw_labels(scores[first:last], transitions, rng) for first, last in pairwise(offsets.tolist())]
    )
    columns = (
        [f"{value:.4f}" for value in strong],
        [f"w{value}" for value in weak],
        [f"f{value}" for value in rng.integers(0, 20, N)],
        [f"m{value}" for value in rng.integers(0, 1000, N)],
        [f"{value:.4f}" for value in rng.normal(size=N)],
        [f"L{label}" for label in labels],
    )
    lines = np.arange(1, N + 1) + np.repeat(np.arange(task.sequences), lengths)
    return Corpus("task", columns, offsets, lines)


def _centred(values):
    """Over labels, each row with standard deviation 1: what the labels have in common says nothing."""
    values = values - values.mean(axis=-1, keepdims=True)
    return values / values.std(axis=-1, keepdims=True)


def task_config(names=COLUMNS[:-1], **training):
    """A linear term for each column, without windows, and transitions."""
    return {
        "columns": COLUMNS,
        "features": [{"column": name, "window": [0]} for name in COLUMNS[:-1]],
        "terms": [{"name": name, "features": [name]} for name in names] + [{"type": "edge"}],
        "training": training,
    }
