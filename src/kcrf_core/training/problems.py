"""From a dataset to the problem that training solves, or to the reason why it cannot be solved."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..chains import Edges, Problem, first_impossible
from ..config import GRADIENT, Config, TrainingConfig
from ..encoding import UNKNOWN, Dataset, Encoding
from ..errors import ConfigError, DataError
from ..scoring import Transitions, allowed_transitions
from ..system import AUTO

SPARSE_SOLVERS = (AUTO, "proximal")  # those that know of an L1 penalty
HANDLED = ("drop", "free")  # ways to train on data that breaks its label scheme


def problem_of(encoding: Encoding, dataset: Dataset) -> Problem:
    """The labels of a dataset with the weights of its sequences; an error where they tell nothing."""
    if dataset.labels is None:
        raise DataError("the data has no labels to train on")
    if (dataset.labels == UNKNOWN).any():
        line = int(dataset.lines[np.flatnonzero(dataset.labels == UNKNOWN)[0]])
        raise DataError(f"the label in line {line} is unknown to the encoding")
    weights = np.ones(dataset.sequences) if dataset.weights is None else dataset.weights
    if not weights.any():
        raise DataError("all sequences have the weight 0, so there is nothing to learn from")
    return Problem(dataset.labels, dataset.offsets, weights, len(encoding.labels), dataset.cut, dataset.partitions)


def check_partial(config: Config, select_terms: bool, certify: str) -> None:
    """An error where some labels are not observed and something is asked for that rests on P being convex."""
    if select_terms:
        raise ConfigError("terms cannot be chosen where labels are not observed", settings=["select_terms"])
    if certify == "exact":
        raise ConfigError(
            "an exact certificate needs all labels: where some are not observed nothing is certified",
            settings=["certify"],
        )
    if any(term.map.select == GRADIENT for term in config.mapped_terms):
        raise ConfigError("'select: gradient' needs all labels: choose another way to find pivots", settings=["select"])


def check_sparse(config: Config, complete: bool, select_terms: bool) -> None:
    """An error where an L1 penalty is asked for with what it does not go with, or nothing penalises weights."""
    training = config.training
    if not training.c1:
        endless = [term.name for term in config.terms if term.sigma2 == math.inf]
        if endless:
            raise ConfigError(
                f"term '{endless[0]}': an infinite 'sigma2' needs an L1 penalty: give a 'c1' above 0 or a finite value",
                settings=["c1"],
            )
        return
    if select_terms:
        raise ConfigError("terms cannot be chosen with an L1 penalty: leave 'c1' out", settings=["select_terms", "c1"])
    if not complete:
        raise ConfigError("'c1' needs all labels: where some are not observed leave it out", settings=["c1"])
    if training.solver not in SPARSE_SOLVERS:
        known = " and ".join(f"'{name}'" for name in SPARSE_SOLVERS)
        raise ConfigError(
            f"the solver '{training.solver}' minimises smooth functions: with 'c1' there are {known}",
            settings=["solver", "c1"],
        )


def forbidden_transitions(
    encoding: Encoding, dataset: Dataset, problem: Problem, training: TrainingConfig
) -> Edges | None:
    """Transitions that the label scheme or the training data rule out, as minus infinity; None where none are.

    The data has none that the scheme rules out (see `violations`); it is an error if labels that are not observed can
    be none.
    """
    allowed = allowed_by(encoding, problem, training, training.scheme_violations in HANDLED)
    if all(part.all() for part in (allowed.pairs, allowed.first, allowed.last)):
        return None
    forbidden = forbidding(allowed)
    t = first_impossible(problem, forbidden)
    if t is not None:
        raise DataError(
            f"the labels of the sequence at line {int(dataset.lines[t])} cannot all stand there, whatever the "
            "others are that are not observed",
            settings=["scheme", "observed_transitions"],
        )
    return forbidden


def forbidding(allowed: Transitions) -> Edges:
    """Minus infinity for what is not allowed, and zero for what is."""
    return Edges(*(np.where(part, 0.0, -np.inf) for part in (allowed.pairs, allowed.first, allowed.last)))


def allowed_by(encoding: Encoding, problem: Problem, training: TrainingConfig, others: bool) -> Transitions:
    """The transitions that the label scheme and the training data allow, as far as they are asked.

    Labels of another form than the scheme's are an error, or, where `others` may be there, not allowed anywhere.
    """
    Y = problem.label_count
    allowed = Transitions(np.ones((Y, Y), dtype=bool), np.ones(Y, dtype=bool), np.ones(Y, dtype=bool))
    if training.scheme is not None:
        allowed = allowed_transitions(encoding.labels, training.scheme, others)
    if training.observed_transitions:
        unweighted = replace(problem, weights=np.ones_like(problem.weights))  # a pair without weight is there, too
        seen = unweighted.clique_counts(1) > 0
        allowed = Transitions(allowed.pairs & seen, allowed.first, allowed.last)
    return allowed
