"""From a dataset to the problem that training solves, or to the reason why it cannot be solved.

Labels that a label scheme or `forbid` does not allow where they stand are an error, or (`scheme_violations`) their
sequences are left out (drop), or they are taken as not observed (free), with more of their sequence where nothing else
could stand there.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..chains import Edges, HalfKnown, Problem, chain, first_impossible
from ..config import GRADIENT, SOFT, UNSEEN, Config, RulesConfig, TrainingConfig
from ..encoding import UNKNOWN, UNOBSERVED, Dataset, Encoding
from ..errors import ConfigError, DataError, NumericError
from ..model import LabelRules
from ..scoring import Transitions, allowed_transitions
from ..system import AUTO, counted, offsets_of, positions_within, sequence_rows

SPARSE_SOLVERS = (AUTO, "proximal")  # those that minimise P with an L1 penalty
DROP, FREE = HANDLED = ("drop", "free")  # ways to train on data that breaks its label scheme


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
        message = "terms cannot be selected if some labels are not observed or half known"
        raise ConfigError(message, settings=["select_terms"])
    if convex:
        return
    if certify == "exact":
        message = "an exact certificate needs all labels, and some are not observed"
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
                settings=["c1"],
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
    allowed = allowed_by(encoding, problem, training, training.scheme_violations in HANDLED)
    if all(part.all() for part in (allowed.pairs, allowed.first, allowed.last)):
        return None
    forbidden = Edges.zeros(problem.label_count).permitted(allowed)
    found = first_impossible(problem, forbidden)
    if found is not None:
        first, last = (int(dataset.lines[t]) for t in found)
        raise DataError(
            f"the observed labels of the sequence at line {first} cannot follow each other, whatever the unobserved "
            "ones are: here no label is left",
            dataset.source,
            last,
            settings=["scheme", "forbid", "observed_transitions"],
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
    listed = LabelRules.of(RulesConfig(forbid=training.forbid), encoding.labels, seen_transitions(problem))
    if listed is not None and listed.transitions is not None:
        allowed &= listed.transitions
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


def _other_scheme(training: TrainingConfig) -> str:
    return ": is it another scheme?" if training.forbid == () else ""


@dataclass(frozen=True)
class Violations:
    """Labels of the training data that a scheme forbids, and how they were handled."""

    handled: str  # drop or free
    labels: int  # how many stand where they must not
    sequences: int  # how many have such a label
    freed: int  # labels that are taken as not observed
    first_label: str
    first_line: int
    kept: np.ndarray | None = None  # numbers of the sequences that are left; None: all

    def to_dict(self) -> dict[str, Any]:
        return {
            "handled": self.handled,
            "labels": self.labels,
            "sequences": self.sequences,
            "freed": self.freed,
            "first": {"label": self.first_label, "line": self.first_line},
        }

    @property
    def count(self) -> str:
        return f"{counted(self.labels, 'label')} in {counted(self.sequences, 'sequence')}"

    def text(self, training: TrainingConfig) -> str:
        """Return one line that reports what was done."""
        if self.handled == DROP:
            done = "this sequence is" if self.sequences == 1 else f"these {self.sequences:,} sequences are"
            done += " left out"
        else:
            done = f"{counted(self.freed, 'label is', 'labels are')} taken as not observed"
        first = f"first '{self.first_label}' in line {self.first_line}"
        return f"{rule_name(training).removeprefix('the ')}: {self.count} must not stand there, {first}: {done}"


def kept_to_scheme(
    encoding: Encoding, dataset: Dataset, training: TrainingConfig
) -> tuple[Dataset, Problem, Violations | None]:
    """Make training data keep to its label scheme in the configured way; an error where none is configured."""
    problem = problem_of(encoding, dataset)
    if training.scheme is None and not training.forbid:
        return dataset, problem, None
    name = rule_name(training)
    handled = training.scheme_violations
    broken = np.flatnonzero(_broken(problem, encoding, training))
    if not len(broken):
        return dataset, problem, None
    sequences = np.unique(np.searchsorted(problem.offsets, broken, side="right") - 1)
    label, line = encoding.labels[problem.labels[broken[0]]], int(dataset.lines[broken[0]])
    found = Violations(handled or "error", len(broken), len(sequences), 0, label, line)
    if handled == DROP:
        rest = np.setdiff1d(np.arange(dataset.sequences), sequences)
        if not len(rest):
            raise DataError(f"no sequence follows {name}{_other_scheme(training)}", dataset.source)
        dataset, found = dataset.subset(rest), replace(found, kept=rest)
    elif handled == FREE and encoding.half_known == SOFT:
        message = "'soft_labels' does not go with 'scheme_violations: free', which takes labels as not observed"
        raise ConfigError(message, settings=["scheme_violations", "soft_labels"])
    elif handled == FREE:
        labels = problem.labels.copy()
        labels[broken] = UNOBSERVED
        labels = _fillable(replace(problem, labels=labels), sequences, encoding, training)
        found = replace(found, freed=int(np.count_nonzero(labels != problem.labels)))
        dataset = replace(dataset, labels=labels)
    else:
        more = f" (as {found.count})" if found.labels > 1 else ""
        reason = f"the label '{label}' in line {line} is not allowed there by {name}"
        try:
            if training.scheme is not None:
                allowed_transitions([label], training.scheme)
        except DataError as error:
            reason = f"{error.message}, and occurs in line {line}"
        raise DataError(
            f"{reason}{more}: correct the data, or let training leave out such "
            "sequences ('scheme_violations: drop') or take such labels as not observed (free)",
            dataset.source,
            settings=["scheme_violations"],
        )
    return dataset, problem_of(encoding, dataset), found


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


def _fillable(problem: Problem, sequences: np.ndarray, encoding: Encoding, training: TrainingConfig) -> np.ndarray:
    """Return labels [N], as few more as possible of them not observed, such that the scheme allows some labelling."""
    rows = sequence_rows(problem.offsets, sequences)
    offsets = offsets_of(np.diff(problem.offsets)[sequences])
    cuts = np.zeros((len(sequences), 2), dtype=bool) if problem.cut is None else problem.cut[sequences]
    while True:
        # With fewer labels observed, fewer transitions may be.
        edges = Edges.zeros(problem.label_count).permitted(allowed_by(encoding, problem, training, True))
        labels = problem.labels.copy()
        own = labels[rows]
        observed = own >= 0
        scores = np.zeros((len(own), problem.label_count))
        scores[observed, own[observed]] = 1.0
        try:
            best = np.empty(len(own), dtype=np.int32)
            for cut in itertools.product((False, True), repeat=2):
                alike = np.flatnonzero((cuts == cut).all(axis=1))
                some = sequence_rows(offsets, alike)
                ends = offsets_of(np.diff(offsets)[alike])
                best[some] = chain.viterbi(scores[some], edges.cut(*cut), ends)[0]
        except NumericError:
            raise DataError(
                f"{rule_name(training)} allows no labelling of some sequences{_other_scheme(training)}"
            ) from None
        labels[rows] = np.where(observed & (best != own), UNOBSERVED, own)
        if np.array_equal(labels, problem.labels):
            return labels
        problem = replace(problem, labels=labels)
