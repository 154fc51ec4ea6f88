"""The null of a term: draws of its bound in which nothing ties its inputs to the errors, as if it were useless.

For a term that looks at the input each sequence gets the errors of another of about its length, turned
by a random number of positions. That keeps how errors go together along a sequence, which a free permutation of
positions would destroy: inputs that change slowly along a sequence, or not at all, would then look useful. The turn
unties the errors from the place in the sequence, which an exchange of whole sequences would leave as it is. For triples
of labels, labels are drawn from the present model.

Why not the ratio of bound to null alone: with one real column and two labels it is a chi-square variable of one
degree of freedom, above 2 by chance in 16 of 100 cases, while a column of hundreds of values that is really of use
may stay below 1.5. How often the null reaches the bound means the same for both. A bound is a quadratic form, so its
tail is taken from a gamma distribution with the mean and the variance of the draws (Satterthwaite's approximation).
"""

from __future__ import annotations

import numpy as np

from ..chains import EDGE_X, Clique, Problem
from ..objective import Objective
from ..system import positions_within

# Spread of the logarithm of lengths within which sequences exchange their errors.
LENGTH_SPREAD = 0.2


def exchanged(offsets: np.ndarray, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """For each position the one whose errors it gets, [N]: of another sequence of about the same length, turned.

    Sequences without weight have no errors to give, and keep theirs.
    """
    lengths = np.diff(offsets)
    source = np.arange(offsets[-1])
    taking_part = np.flatnonzero((lengths > 0) & (weights > 0))
    size = np.log(lengths[taking_part])
    takers, givers = (
        taking_part[np.argsort(size + LENGTH_SPREAD * rng.standard_normal(len(size)), kind="stable")] for _ in "tg"
    )
    giver = np.arange(len(lengths))
    giver[takers] = givers
    turn = np.zeros(len(lengths), dtype=np.int64)
    turn[takers] = rng.integers(0, lengths[givers])
    sequence = np.repeat(np.arange(len(lengths)), lengths)  # [N]
    from_ = giver[sequence]
    turned = offsets[from_] + (positions_within(offsets) + turn[sequence]) % np.maximum(lengths[from_], 1)
    return np.where(np.isin(sequence, taking_part), turned, source)


def centred(errors: np.ndarray, problem: Problem, clique: Clique) -> np.ndarray:
    """Errors [N, C] less their mean. Transitions see to that themselves; without them, any term would gain from the
    frequencies of labels, whatever its inputs, and the null would hide all else."""
    weights = problem.position_weights()
    if clique is EDGE_X:
        weights = np.where(positions_within(problem.offsets) > 0, weights, 0.0)  # no pair ends at a first position
    return errors - np.outer(weights, errors.sum(axis=0) / max(weights.sum(), 1e-300))


def drawn_labels(objective: Objective, theta: np.ndarray, rng: np.random.Generator, draws: int) -> np.ndarray:
    """Labels drawn from a first-order model, [draws, N]."""
    chance = rng.random((draws, objective.problem.positions))

    return objective.engine.drawn_labels(theta, chance)


def tail(bound: float, null: np.ndarray) -> float:
    """Chance of a bound at least so large, by the gamma distribution with the mean and variance of the null."""
    mean, variance = null.mean(), null.var(ddof=1)
    if variance <= (1e-9 * mean) ** 2:  # nothing changes when errors are exchanged
        return float(bound <= mean * (1 + 1e-9))
    from scipy.special import gammaincc  # which takes memory that other trainings need not have

    return float(gammaincc(mean**2 / variance, bound * mean / variance))
