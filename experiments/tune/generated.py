"""Tasks whose truth is known: labels follow from a transform of columns, which a told model gets in its configuration.

`TASKS[name](rng)` returns sequences of rows and the configuration of the told model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Rows = list[tuple[str, ...]]
Task = tuple[list[Rows], dict[str, Any]]

SEQUENCES, LENGTH = 80, 60
EDGE = {"type": "edge"}


def states(rng: np.random.Generator, stay: float) -> np.ndarray:
    """Return labels 0 and 1 that mostly stay as they are, [LENGTH]."""
    return (np.cumsum(rng.random(LENGTH) > stay) + rng.integers(2)) % 2


def numbers(columns: np.ndarray, labels: np.ndarray) -> Rows:
    """Return rows of numbers [LENGTH, r] and their labels."""
    return [(*(f"{number:.4g}" for number in row), f"y{y}") for row, y in zip(columns, labels, strict=True)]


def told(*features: dict[str, Any], kernel: str = "linear") -> dict[str, Any]:
    return {"features": list(features), "terms": [{"name": "node", "kernel": kernel}, EDGE]}


def speed(rng: np.random.Generator) -> Task:
    """Three coordinates; the label is whether they change fast or slowly."""
    sequences = []
    for _ in range(SEQUENCES):
        y = states(rng, 0.9)
        steps = rng.normal(size=(LENGTH, 3)) * np.where(y, 1.0, 0.6)[:, None]
        sequences.append(numbers(100 * rng.normal(size=3) + steps.cumsum(axis=0), y))
    return sequences, told({"columns": ["c0", "c1", "c2"], "name": "v", "transform": "speed", "window": "-2..2"})


def logarithm(rng: np.random.Generator) -> Task:
    """Counts over orders of magnitude; the label shifts their logarithm."""
    sequences = []
    for _ in range(SEQUENCES):
        y = states(rng, 0.8)
        sequences.append(numbers(np.floor(np.exp(3 + 1.5 * y + rng.normal(size=LENGTH)))[:, None], y))
    return sequences, told({"column": "c0", "transform": "log1p", "window": [0]})


def slow_mean(rng: np.random.Generator) -> Task:
    """Noise around a level that stays for a long time, and a label that is not a chain: the level of its own moment."""
    sequences = []
    for _ in range(SEQUENCES):
        noise = rng.normal(size=LENGTH + 14)
        level = np.convolve(noise, np.full(15, 1 / 15), "valid")
        sequences.append(numbers(noise[7:-7, None], (level > 0).astype(int)))
    return sequences, told({"column": "c0", "transform": "mean", "width": 15, "window": "-1..1"})


def deviation(rng: np.random.Generator) -> Task:
    """Noise whose standard deviation depends on the label."""
    sequences = []
    for _ in range(SEQUENCES):
        y = states(rng, 0.97)
        sequences.append(numbers(rng.normal(size=(LENGTH, 1)) * np.where(y, 1.0, 1.5)[:, None], y))
    return sequences, told({"column": "c0", "transform": "std", "width": 15, "window": [0]})


def wide_pattern(rng: np.random.Generator) -> Task:
    """The label depends on numbers that lie 10 and 16 positions away."""
    sequences = []
    for _ in range(SEQUENCES):
        x = rng.normal(size=LENGTH + 32)
        sign = x[16 - 16 : -32] + x[16 + 10 : LENGTH + 26] + 0.3 * rng.normal(size=LENGTH)
        sequences.append(numbers(x[16:-16, None], (sign > 0).astype(int)))
    return sequences, told({"column": "c0", "window": "-20..20/2"})


def letters(rng: np.random.Generator) -> Task:
    """Letters; the label says whether one of some n-grams of four begins at the position or the one before."""
    alphabet, chosen = list("abcd"), {tuple(gram) for gram in rng.integers(0, 4, (80, 4)).tolist()}
    sequences = []
    for _ in range(SEQUENCES):
        x = rng.integers(0, 4, LENGTH)
        y = [int(tuple(x[t : t + 4].tolist()) in chosen) for t in range(LENGTH)]
        sequences.append([(alphabet[code], f"y{label}") for code, label in zip(x, y, strict=True)])
    grams = [{"conjunction": ["c0", *(f"c0[{k}]" for k in range(1, n))], "window": "-3..3"} for n in (2, 3, 4)]
    return sequences, told({"column": "c0"}, *grams)


def place(rng: np.random.Generator) -> Task:
    """Letters of words, each beside its word; the label is that of the last letter but for some noise."""
    sequences = []
    for _ in range(SEQUENCES):
        rows: Rows = []
        while len(rows) < LENGTH:
            word = "".join(rng.choice(list("abcdefgh"), rng.integers(2, 8)))
            rows += [(letter, word, f"y{int(k == len(word) - 1)}") for k, letter in enumerate(word)]
        sequences.append(rows)
    ends = [{"column": "c1", "transform": kind, "window": [0]} for kind in ("start", "end")]
    return sequences, told({"column": "c0"}, *ends)


TASKS: dict[str, Callable[[np.random.Generator], Task]] = {
    one.__name__: one for one in (speed, logarithm, slow_mean, deviation, wide_pattern, letters, place)
}
