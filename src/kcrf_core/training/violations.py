"""Labels of training data that a label scheme forbids where they stand: an error, or left out of training.

drop    sequences that have such a label are left out
free    such labels are taken as not observed, and more of their sequence where nothing else could stand there
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..chains import Problem, chain
from ..config import TrainingConfig
from ..encoding import UNOBSERVED, Dataset, Encoding
from ..errors import DataError, NumericError
from ..scoring import allowed_transitions
from ..system import counted, offsets_of, positions_within, sequence_rows
from .problems import HANDLED, allowed_by, forbidding, problem_of

DROP, FREE = HANDLED


@dataclass(frozen=True)
class Violations:
    """What a scheme forbids in the training data, and what became of it."""

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

    def text(self, scheme: str | None) -> str:
        """What was done, in a line."""
        where = f"scheme {scheme}: {self.count}"
        first = f"first '{self.first_label}' in line {self.first_line}"
        if self.handled == DROP:
            these = "this sequence is" if self.sequences == 1 else f"these {self.sequences:,} sequences are"
            return f"{where} must not stand there, {first}: {these} left out"
        freed = counted(self.freed, "label is", "labels are")
        return f"{where} must not stand there, {first}: {freed} taken as not observed"


def kept_to_scheme(
    encoding: Encoding, dataset: Dataset, training: TrainingConfig
) -> tuple[Dataset, Problem, Violations | None]:
    """Training data that keeps to its label scheme, as the configuration says how; an error where it says no way."""
    problem = problem_of(encoding, dataset)
    if training.scheme is None:
        return dataset, problem, None
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
            raise DataError(f"no sequence keeps to the scheme {training.scheme}: is it another?", dataset.source)
        dataset, found = dataset.subset(rest), replace(found, kept=rest)
    elif handled == FREE:
        labels = problem.labels.copy()
        labels[broken] = UNOBSERVED
        labels = _fillable(replace(problem, labels=labels), sequences, encoding, training)
        found = replace(found, freed=int(np.count_nonzero(labels != problem.labels)))
        dataset = replace(dataset, labels=labels)
    else:
        more = f" (as {found.count})" if found.labels > 1 else ""
        raise DataError(
            f"{_reason(training.scheme, label, line)}{more}: correct the data, or let training leave out such "
            "sequences ('scheme_violations: drop') or take such labels as not observed (free)",
            dataset.source,
            settings=["scheme_violations"],
        )
    return dataset, problem_of(encoding, dataset), found


def forbidden_count(encoding: Encoding, dataset: Dataset, training: TrainingConfig) -> int:
    """How many labels of a dataset the scheme forbids where they stand."""
    if training.scheme is None or dataset.labels is None:
        return 0
    problem = Problem(dataset.labels, dataset.offsets, np.ones(dataset.sequences), len(encoding.labels))
    return int(np.count_nonzero(_broken(problem, encoding, training)))


def _reason(scheme: str, label: str, line: int) -> str:
    """Say what is wrong with the first label that breaks the scheme."""
    try:
        allowed_transitions([label], scheme)
    except DataError as error:
        return f"{error.message}, and stands in line {line}"
    return f"the label '{label}' in line {line} must not stand there by the scheme {scheme}"


def _broken(problem: Problem, encoding: Encoding, training: TrainingConfig) -> np.ndarray:
    """Positions whose label, beside an observed neighbour or at an end, the scheme does not allow, [N] bool."""
    allowed = allowed_by(encoding, problem, replace(training, observed_transitions=False), True)
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
    """Labels [N] of which as few more as can be are not observed, so that something can stand in all those places.

    The best labelling where each label that is observed and is not kept costs 1 says which they are.
    """
    rows = sequence_rows(problem.offsets, sequences)
    offsets = offsets_of(np.diff(problem.offsets)[sequences])
    cuts = np.zeros((len(sequences), 2), dtype=bool) if problem.cut is None else problem.cut[sequences]
    while True:
        # With fewer labels observed, fewer transitions may be.
        allowed = allowed_by(encoding, problem, training, True)
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
                best[some] = chain.viterbi(scores[some], forbidding(allowed).cut(*cut), ends)[0]
        except NumericError:
            raise DataError(
                f"the scheme {training.scheme} leaves no labelling of some sequences: is it another?"
            ) from None
        labels[rows] = np.where(observed & (best != own), UNOBSERVED, own)
        if np.array_equal(labels, problem.labels):
            return labels
        problem = replace(problem, labels=labels)
