"""Folds of a training task, in which nothing of the held-out part decides on what it is judged by.

Values and conjunctions that occur often enough have columns, pairs of a feature and a label that
occur have weights (`observed_features`), and transitions that do not occur may be forbidden. All of
that comes from the training part of a fold, as if the held-out part had never been seen: masks over
the map of all data. What the training part lacks, a label or a transition that must have been seen,
has probability zero in the held-out part. There log p counts as log SMALLEST_PROBABILITY, whatever
the candidate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..chains import Edges, Problem, impossible_sequences
from ..encoding import UNOBSERVED, Dataset
from ..features import FittedTerm, MappedTerm
from ..objective.solvers import Observer
from ..scoring import SMALLEST_PROBABILITY
from ..system import offsets_of, piece_rows
from .held_out import Pieces, Split
from .restriction import Restriction
from .task import TrainingTask

# Score in the place of minus infinity where a held-out sequence has no labelling but for what the
# training part lacks.
NEVER = -1e9


@dataclass(frozen=True, eq=False)
class TaskFold:
    """Training part and held-out part of a task, with the same columns, weights and labels."""

    sample: TrainingTask
    held_out: TrainingTask
    # Of each map of the whole task, ascending; None for terms without a map.
    columns: list[np.ndarray | None]


def fold_of(task: TrainingTask, split: Split) -> TaskFold:
    """Return the parts of a fold, as its training part alone decides on both."""
    restriction, fit, forbidden = task.restriction, split.fit, None
    assert restriction is not None
    allowed = restriction.transitions(task.problem.pieces(fit.first, fit.last))
    if not all(part.all() for part in (allowed.pairs, allowed.first, allowed.last)):
        forbidden = Edges.zeros(task.problem.label_count).permitted(allowed)
        fit = _possible(fit, task.problem, forbidden)
    sample, held_out = _parts(task, restriction, fit, split.held)
    columns = [None if term.map is None else term.map.used_columns(term.least_rows) for term in sample.terms]
    sample, held_out = sample.narrow(columns), held_out.narrow(columns)
    if any(term.places is not None for term in task.terms):
        sample = replace(sample, terms=restriction.terms(sample.terms, sample.problem, task.workers, Observer()))
        pairs = zip(held_out.terms, sample.terms, strict=True)
        terms = tuple(replace(term, places=fitted.places) for term, fitted in pairs)
        held_out = replace(held_out, terms=terms)
    # Labels that are half known have no say in what is held out.
    held_out = replace(held_out, problem=replace(held_out.problem, half_known=None))
    if forbidden is not None:
        sample = replace(sample, forbidden=forbidden)
        held_out = replace(held_out, forbidden=_for_every_length(forbidden, held_out.problem))
    return TaskFold(sample, held_out, columns)


def floored(log_p: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return log p of held-out sequences [S] with these lengths, that of impossible ones by the floor."""
    return np.where(log_p < NEVER / 2, lengths * math.log(SMALLEST_PROBABILITY), log_p)


def _parts(
    task: TrainingTask, restriction: Restriction, fit: Pieces, held_out: Pieces
) -> tuple[TrainingTask, TrainingTask]:
    """Return the tasks of two parts, without values that the first has too rarely."""
    rare = restriction.rare_values(piece_rows(fit.first, fit.last))
    terms = [replace(term, places=None) for term in task.terms]
    if rare is not None:  # explicit maps are made anew; pivots look at all inputs
        terms = [replace(term, map=None) if _is_explicit(term) else term for term in terms]
    free = replace(task, terms=tuple(terms), forbidden=None)
    parts = []
    for pieces in (fit, held_out):
        part = free.pieces(pieces)
        if rare is not None:
            dataset = rare.left_out_of(_dataset_of(restriction.dataset, pieces))
            part = replace(part, terms=tuple(_on(dataset, term, task, restriction) for term in part.terms))
        parts.append(part)
    return parts[0], parts[1]


def _dataset_of(dataset: Dataset, pieces: Pieces) -> Dataset:
    sequences = np.searchsorted(dataset.offsets, pieces.first, side="right") - 1
    return dataset.pieces(pieces.first, pieces.last, sequences, None)


def _on(dataset: Dataset, term: FittedTerm, task: TrainingTask, restriction: Restriction) -> FittedTerm:
    """Return a term with an explicit map of a dataset, if it has such a map."""
    if not _is_explicit(term):
        return term
    assert isinstance(term, MappedTerm)
    inputs = restriction.encoding.inputs(dataset, term.features).seen()
    return replace(term, map=term.map_of(inputs, task.workers, task.dtype))


def _is_explicit(term: FittedTerm) -> bool:
    return isinstance(term, MappedTerm) and term.basis is None


def _possible(pieces: Pieces, problem: Problem, forbidden: Edges) -> Pieces:
    """Return the pieces of a training part whose labels are allowed, as some are not observed."""
    impossible = impossible_sequences(problem.pieces(pieces.first, pieces.last), forbidden)
    begins = offsets_of(pieces.last - pieces.first)[:-1]
    return pieces.take(np.flatnonzero(~np.isin(begins, [first for first, _ in impossible])))


def _for_every_length(forbidden: Edges, problem: Problem) -> Edges:
    """Return forbidden transitions, as finite scores if they leave some sequence no labelling."""
    parts = (forbidden.transitions, forbidden.start, forbidden.end)
    pairs, first, last = map(np.isfinite, parts)
    if (pairs.diagonal() & first & last).any():  # a label can stand at all positions
        return forbidden
    cut = np.zeros((len(problem.weights), 2), dtype=bool) if problem.cut is None else problem.cut
    kinds = np.unique(np.column_stack([np.diff(problem.offsets), cut]), axis=0)
    hidden = np.full(kinds[:, 0].sum(), UNOBSERVED, dtype=np.int32)
    about = np.ones(len(kinds)), problem.label_count, kinds[:, 1:].astype(bool)
    examples = Problem(hidden, offsets_of(kinds[:, 0]), *about)
    if next(impossible_sequences(examples, forbidden), None) is None:
        return forbidden
    return Edges(*(np.maximum(scores, NEVER) for scores in parts))
