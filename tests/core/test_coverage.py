"""How often intervals hold the true figure, and how often p-values are small where systems are equally good.

python tests/core/test_coverage.py 3000      prints the table of "Figures and their errors" in docs/method.md
"""

from __future__ import annotations

import sys

import numpy as np
import pytest

from kcrf_core.scoring.significance import (
    FEWEST_LENGTHS,
    bootstrap,
    differences,
    figures,
    unit_offsets,
)

ACCURACY, ERRORS = 0.85, 0.2


def runs(rng, length, mean, share):
    """A series of bits, ones in runs of this mean length, with this share of ones."""
    out, t = np.zeros(length, dtype=bool), 0
    state, leave = rng.random() < share, (share / (1 - share) / mean, 1 / mean)
    while t < length:
        end = t + rng.geometric(leave[int(state)])
        out[t:end], t, state = state, end, not state
    return out


def counts_of(right, offsets):
    """Counts of units as `Evaluation.unit_counts` has them, [U, 4]."""
    lengths, correct = np.diff(offsets), np.add.reduceat(right, offsets[:-1], dtype=np.int64)
    return np.stack([lengths, correct, np.ones_like(lengths), correct == lengths], axis=1)


def short_sequences(rng, sequences):
    """Counts of two systems that find some sequences harder than others, and both of them equally hard."""
    lengths = rng.integers(5, 41, sequences)
    share = np.repeat(rng.beta(10 * ACCURACY, 10 * (1 - ACCURACY), sequences), lengths)
    offsets = np.append(0, np.cumsum(lengths))
    return [counts_of(rng.random(len(share)) < share, offsets) for _ in range(2)]


def long_sequences(rng, length, mean):
    """Counts of two systems on blocks of two sequences, with errors in runs, and True where blocks are called short."""
    offsets = np.array([0, length, 2 * length])
    labels = np.concatenate([runs(rng, length, 10, 0.5) for _ in range(2)]).astype(np.int64)
    right = [~np.concatenate([runs(rng, length, mean, ERRORS) for _ in range(2)]) for _ in range(2)]
    units, correlated = unit_offsets(labels, offsets, None, [right[0], right[0].astype(int) - right[1]])
    doubtful = 2 * length / (len(units) - 1) < FEWEST_LENGTHS * correlated
    return [counts_of(one, units) for one in right], doubtful


def measured(trials, drawn, truth, seed=0):
    """Shares of intervals that hold the truth, of p-values of at most 0.05, and of warnings."""
    rng, held, small, doubts = np.random.default_rng(seed), 0, 0, 0
    for trial in range(trials):
        found = drawn(rng)
        (first, second), doubt = found if isinstance(found, tuple) else (found, False)
        interval = bootstrap(first, figures, 400, 0.95, trial)["accuracy"]
        held += interval.low <= truth <= interval.high
        small += differences(first, second, 400, 0, 0.95, trial)[0].p_value <= 0.05
        doubts += doubt
    return held / trials, small / trials, doubts / trials


CASES = {
    **{f"{S} sequences": (lambda rng, S=S: short_sequences(rng, S), ACCURACY) for S in (5, 10, 20, 30, 50, 100)},
    **{
        f"two of {T:,}, runs of {mean}": (
            lambda rng, T=T, mean=mean: long_sequences(rng, T, mean),
            1 - ERRORS,
        )
        for T, mean in (
            (500, 5),
            (500, 20),
            (1000, 20),
            (2000, 20),
            (2000, 50),
            (5000, 20),
            (500, 50),
        )
    },
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "least", "most"),
    [
        ("10 sequences", 0.9, 0.06),
        ("20 sequences", 0.9, 0.06),
        ("100 sequences", 0.92, 0.06),
        ("two of 1,000, runs of 20", 0.88, 0.07),
        ("two of 2,000, runs of 20", 0.9, 0.07),
        ("two of 5,000, runs of 20", 0.9, 0.07),
    ],
)
def test_intervals_and_p_values_are_about_as_sure_as_they_say(case, least, most):
    covered, small, _ = measured(600, *CASES[case])
    assert covered >= least and small <= most


if __name__ == "__main__":
    for name, drawn in CASES.items():
        print(
            f"{name:>24}",
            "  ".join(f"{share:.3f}" for share in measured(int(sys.argv[1]), *drawn)),
            flush=True,
        )
