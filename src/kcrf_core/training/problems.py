"""From a dataset to the problem that training solves, or to the reason why it cannot be solved."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..chains import Edges, HalfKnown, Problem, impossible_sequences
from ..config import GRADIENT, SOFT, UNSEEN, Config, RulesConfig, TrainingConfig
from ..encoding import UNKNOWN, Dataset, Encoding
from ..errors import ConfigError, DataError
from ..model import LabelRules
from ..scoring import Transitions, allowed_transitions
from ..system import AUTO, counted, positions_within

SPARSE_SOLVERS = (AUTO, "proximal")  # those that minimise P with an L1 penalty


def problem_of(encoding: Encoding, dataset: Dataset) -> Problem:
    """Return the labels of a dataset with the weights of its sequences; an error where there is nothing to learn."""
    if dataset.labels is None:
        raise DataError("the data has no labels to train on")
    if (dataset.labels == UNKNOWN).any():
        line = int(dataset.lines[np.flatnonzero(dataset.labels == UNKNOWN)[0]])
        raise DataError(f"the label in line {line} is not in the encoding")
    weights = np.ones(dataset.sequences) if dataset.weights is None else dataset.weights
    if not weights.any():
        raise DataError("all sequences have the weight 0, so there is nothing to learn from")
    soft = encoding.half_known == SOFT
    half_known = None if dataset.half_known is None else HalfKnown(dataset.half_known, soft)
    about = len(encoding.labels), dataset.cut, dataset.partitions
    return Problem(dataset.labels, dataset.offsets, weights, *about, half_known=half_known)


def check_partial(config: Config, convex: bool, select_terms: bool, certify: str) -> None:
    """Refuse settings that rest on a convex P or on the labels of single sequences, where some are not observed."""
    if select_terms:
        message = "terms cannot be selected if some labels are not observed or half known: leave 'select_terms' out"
        raise ConfigError(message, settings=["select_terms"])
    if convex:
        return
    if certify == "exact":
        message = "an exact certificate needs all labels, and some are not observed: leave 'certify' out"
        raise ConfigError(message, settings=["certify"])
    if any(term.map.select == GRADIENT for term in config.mapped_terms):
        raise ConfigError(
            "'select: gradient' needs all labels, and some are not observed: choose another value", settings=["select"]
        )


def check_sparse(config: Config, complete: bool, select_terms: bool) -> None:
    """Refuse settings that an L1 penalty does not go with, and weights without any penalty."""
    training = config.training
    if not training.c1:
        endless = [term.name for term in config.terms if term.sigma2 == math.inf]
        if endless:
            raise ConfigError(
                f"term '{endless[0]}': an infinite 'sigma2' needs an L1 penalty: give a 'c1' above 0 or a finite value",
                settings=["c1", "sigma2"],
            )
        return
    if select_terms:
        raise ConfigError(
            "terms cannot be selected with an L1 penalty: leave 'c1' out", settings=["select_terms", "c1"]
        )
    if not complete:
        message = "'c1' needs all labels, and some are not observed or half known: leave it out"
        raise ConfigError(message, settings=["c1"])
    if training.solver not in SPARSE_SOLVERS:
        known = " and ".join(f"'{name}'" for name in SPARSE_SOLVERS)
        raise ConfigError(
            f"the solver '{training.solver}' minimises smooth functions: with 'c1' there are {known}",
            settings=["solver", "c1"],
        )


def forbidden_transitions(
    encoding: Encoding, dataset: Dataset, problem: Problem, training: TrainingConfig
) -> Edges | None:
    """Return minus infinity for transitions that the label scheme or the training data rule out; None without any."""
    allowed = allowed_by(encoding, problem, training, False)
    if all(part.all() for part in (allowed.pairs, allowed.first, allowed.last)):
        return None
    forbidden = Edges.zeros(problem.label_count).permitted(allowed)
    found = next(impossible_sequences(problem, forbidden), None)
    if found is not None:
        first, last = (int(dataset.lines[t]) for t in found)
        raise DataError(
            f"the observed labels of the sequence at line {first} cannot follow each other, whatever the unobserved "
            "ones are: here no label is left; correct the data, or train without the rule",
            dataset.source,
            last,
            settings=[name for name in ("scheme", "forbid", "observed_transitions") if getattr(training, name)],
        )
    return forbidden


def allowed_by(encoding: Encoding, problem: Problem, training: TrainingConfig, others: bool) -> Transitions:
    """Return the transitions that the configured label scheme and the training data allow.

    Labels of another form than the scheme's are an error, or, where `others` may be there, not allowed anywhere.
    """
    allowed = Transitions.every(problem.label_count)
    if training.scheme is not None:
        allowed = allowed_transitions(encoding.labels, training.scheme, others)
    if training.observed_transitions:
        allowed = replace(allowed, pairs=allowed.pairs & seen_transitions(problem).pairs)
    listed = tuple(rule for rule in training.forbid if rule != UNSEEN)
    rules = LabelRules.of(RulesConfig(forbid=listed), encoding.labels, odd=encoding.odd_labels)
    if rules is not None and rules.transitions is not None:
        allowed &= rules.transitions
    if UNSEEN in training.forbid:
        allowed &= seen_transitions(problem)
    return allowed


def seen_transitions(problem: Problem) -> Transitions:
    """Return the transitions that the training data has."""
    Y, offsets = problem.label_count, problem.offsets
    unweighted = replace(problem, weights=np.ones_like(problem.weights))  # a pair without weight is there, too
    cut = np.zeros((len(offsets) - 1, 2), dtype=bool) if problem.cut is None else problem.cut
    some = np.diff(offsets) > 0
    ends = [problem.labels[at[some & ~cut[:, k]]] for k, at in enumerate((offsets[:-1], offsets[1:] - 1))]
    first, last = (np.bincount(own[own >= 0], minlength=Y) > 0 for own in ends)
    return Transitions(unweighted.clique_counts(1) > 0, first, last)


def rule_name(training: TrainingConfig) -> str:
    """Return the rules that training data has to follow, for messages."""
    names = [f"the scheme {training.scheme}"] * (training.scheme is not None) + ["'forbid'"] * bool(training.forbid)
    return " and ".join(names)


def check_scheme(encoding: Encoding, dataset: Dataset, problem: Problem, training: TrainingConfig) -> None:
    """Refuse training data with labels that its label scheme or `forbid` does not allow where they stand."""
    if training.scheme is None and not training.forbid:
        return
    broken = np.flatnonzero(_broken(problem, encoding, training))
    if not len(broken):
        return
    label, line = encoding.labels[problem.labels[broken[0]]], int(dataset.lines[broken[0]])
    sequences = len(np.unique(np.searchsorted(problem.offsets, broken, side="right")))
    more = f" (as {len(broken):,} labels in {counted(sequences, 'sequence')})" if len(broken) > 1 else ""
    reason = f"the label '{label}' in line {line} is not allowed there by {rule_name(training)}"
    try:
        if training.scheme is not None:
            allowed_transitions([label], training.scheme)
    except DataError as error:
        reason = f"{error.message}, and occurs in line {line}"
    raise DataError(
        f"{reason}{more}: correct the data, or train without it, and give it when labels are predicted",
        dataset.source,
        settings=["scheme"] * (training.scheme is not None) + ["forbid"] * bool(training.forbid),
    )


def forbidden_count(encoding: Encoding, dataset: Dataset, training: TrainingConfig) -> int:
    """Count the labels of a dataset that the scheme forbids where they stand."""
    if (training.scheme is None and not training.forbid) or dataset.labels is None:
        return 0
    problem = Problem(dataset.labels, dataset.offsets, np.ones(dataset.sequences), len(encoding.labels))
    return int(np.count_nonzero(_broken(problem, encoding, training)))


def _broken(problem: Problem, encoding: Encoding, training: TrainingConfig) -> np.ndarray:
    """Find positions whose label, beside an observed neighbour or at an end, the scheme does not allow, [N] bool."""
    listed = tuple(rule for rule in training.forbid if rule != UNSEEN)  # training data has all transitions that it has
    allowed = allowed_by(encoding, problem, replace(training, observed_transitions=False, forbid=listed), True)
    labels, within = np.maximum(problem.labels, 0), positions_within(problem.offsets)
    nowhere = ~(allowed.first | allowed.last | allowed.pairs.any(axis=0) | allowed.pairs.any(axis=1))
    stray = (problem.labels >= 0) & nowhere[labels]  # of another form, which says nothing about its neighbours
    known = (problem.labels >= 0) & ~stray
    last = np.append(within[1:] == 0, True)
    pairs = ~allowed.pairs[np.roll(labels, 1), labels] & np.roll(known, 1)
    first = ~allowed.first[labels]
    if problem.cut is not None:  # anything may stand beside a cut
        cut = np.repeat(problem.cut, np.diff(problem.offsets), axis=0)
        first, last = first & ~cut[:, 0], last & ~cut[:, 1]
    broken = np.where(within == 0, first, pairs)
    broken |= last & ~allowed.last[labels]
    return (broken & known) | stray
