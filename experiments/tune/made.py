"""Made sets, most with labels that a linear model of the columns cannot have; every fourth sequence is for the test."""

from __future__ import annotations

import numpy as np

Sequences = list[list[tuple[str, ...]]]  # rows of columns, the label last
EVERY = 4


def parted(sequences: Sequences) -> tuple[Sequences, Sequences]:
    return (
        [rows for number, rows in enumerate(sequences) if number % EVERY != EVERY - 1],
        sequences[EVERY - 1 :: EVERY],
    )


def walk(rng: np.random.Generator, length: int, labels: int, stay: float) -> np.ndarray:
    """Labels that mostly stay as they are."""
    out = rng.integers(0, labels, length)
    for t in range(1, length):
        if rng.random() < stay:
            out[t] = out[t - 1]
    return out


def rings(rng: np.random.Generator) -> tuple[Sequences, Sequences]:
    """Two numbers whose distance from zero tells the label, beside two that tell nothing."""
    sequences = []
    for _ in range(80):
        y = walk(rng, 60, 3, 0.8)
        radius, angle = 1 + y + 0.5 * rng.normal(size=60), rng.uniform(0, 2 * np.pi, 60)
        columns = [radius * np.cos(angle), radius * np.sin(angle), *rng.normal(size=(2, 60))]
        sequences.append([(*(f"{column[t]:.3f}" for column in columns), f"state{y[t]}") for t in range(60)])
    return parted(sequences)


def remainders(rng: np.random.Generator) -> tuple[Sequences, Sequences]:
    """Two digits whose sum, divided by three, leaves the label, nine times out of ten."""
    sequences = []
    for _ in range(120):
        digits = rng.integers(0, 6, (25, 2))
        noise = np.where(rng.random(25) < 0.1, rng.integers(0, 3, 25), 0)
        y = (digits.sum(axis=1) + noise) % 3
        sequences.append([(f"a{a}", f"b{b}", f"rest{label}") for (a, b), label in zip(digits, y, strict=True)])
    return parted(sequences)


def emitted(rng: np.random.Generator) -> tuple[Sequences, Sequences]:
    """A hidden Markov chain: nothing is better than a linear model."""
    labels, words = 5, 60
    emit = rng.dirichlet(np.full(words, 0.15), labels)
    step = rng.dirichlet(np.full(labels, 0.5), labels)
    sequences = []
    for _ in range(150):
        y = [rng.integers(labels)]
        while len(y) < 20:
            y.append(rng.choice(labels, p=step[y[-1]]))
        sequences.append([(f"w{rng.choice(words, p=emit[label])}", f"tag{label}") for label in y])
    return parted(sequences)


def two_back(rng: np.random.Generator) -> tuple[Sequences, Sequences]:
    """Labels that depend on the two before them, and words that tell a little."""
    labels = 4
    step = rng.dirichlet(np.full(labels, 0.15), (labels, labels))
    sequences = []
    for _ in range(150):
        y = list(rng.integers(0, labels, 2))
        while len(y) < 20:
            y.append(rng.choice(labels, p=step[y[-2], y[-1]]))
        seen = [label if rng.random() < 0.6 else rng.integers(labels) for label in y]
        sequences.append([(f"s{a}", f"tag{label}") for a, label in zip(seen, y, strict=True)])
    return parted(sequences)
