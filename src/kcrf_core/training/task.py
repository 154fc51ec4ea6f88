"""The task of a fit: labelled sequences and the terms to fit to them. Prior variances make P of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..chains import Edges, Problem
from ..errors import Interrupted
from ..features import FittedTerm
from ..objective import Engine, Objective, Partition, Vector
from ..objective.solvers import INTERRUPTED, Observer, Run, SolverResult
from ..system import Workers, piece_rows, sequence_rows
from .held_out import Pieces
from .restriction import Restriction


@dataclass(frozen=True)
class TrainingTask:
    """Labelled sequences, and terms whose maps have a row for each of their positions."""

    problem: Problem
    terms: tuple[FittedTerm, ...]
    workers: Workers
    dtype: np.dtype
    forbidden: Edges | None = None  # transitions that are ruled out, as minus infinity
    c1: float = 0.0  # of an L1 penalty
    restriction: Restriction | None = None  # to what its own data has; None: no folds are made of it
    # With an executor or a device: engines of terms by their names, whose data it has.
    engines: dict[tuple[str, ...], Engine] = field(default_factory=dict, init=False, compare=False, repr=False)

    def objective(self, sigma2: Mapping[str, float]) -> Objective:
        """Return P of those terms that have a prior variance here."""
        present, terms, Y = self.present(sigma2), [], self.problem.label_count
        for term in present:
            threshold: float | np.ndarray = self.c1
            if self.c1 and term.clique.mapped:
                # Scores of two labels are plus and minus the one column over root 2 (see `chains.problem`), and both
                # labels' weights have the penalty. k features of one column have its weight over root k each.
                each = self.c1 * 2**0.5 if Y == 2 and term.columns == 1 else self.c1
                threshold = each if term.roots is None else each * term.roots
            terms.append(replace(term, sigma2=sigma2[term.config.name], threshold=threshold))
        names = tuple(term.config.name for term in present)
        engine = self.engines.get(names)
        if engine is None:
            engine = self._engine(terms)
            if engine.lasting:  # other prior variances are no other data
                self.engines[names] = engine
        return Objective.on(engine, terms)

    def _engine(self, terms: Sequence[FittedTerm]) -> Engine:
        """Return an engine for terms: threads, with a device or an executor where the workers have one."""
        about = self.workers, self.dtype, self.forbidden
        if self.workers.device is not None:
            return self.workers.device.engine(self.problem, terms, *about)
        if self.workers.executor is not None:
            return Engine.over(self.problem, terms, self.workers.executor, *about)
        return Engine.of(Partition(self.problem, terms, *about))

    def present(self, names: Collection[str]) -> tuple[FittedTerm, ...]:
        """Return the terms of these names, in the order of the task."""
        return tuple(term for term in self.terms if term.config.name in names)

    def subset(self, sequences: np.ndarray) -> TrainingTask:
        """Return the task of the sequences of these numbers."""
        rows = sequence_rows(self.problem.offsets, sequences)
        terms = (term if term.map is None else replace(term, map=term.map.subset(rows)) for term in self.terms)
        return replace(self, problem=self.problem.subset(sequences), terms=tuple(terms))

    def pieces(self, pieces: Pieces) -> TrainingTask:
        """Return the task of these pieces of sequences."""
        rows = piece_rows(pieces.first, pieces.last)
        terms = (term if term.map is None else replace(term, map=term.map.subset(rows)) for term in self.terms)
        return replace(self, problem=self.problem.pieces(pieces.first, pieces.last), terms=tuple(terms))

    def in_double(self) -> TrainingTask:
        """Return the task in double precision, with the values of its maps held."""
        terms = (term if term.map is None else replace(term, map=term.map.in_double(held=True)) for term in self.terms)
        return replace(self, terms=tuple(terms), dtype=np.dtype(np.float64))

    def narrow(self, columns: Sequence[np.ndarray | None]) -> TrainingTask:
        """Return the task on these columns of each map, ascending; None for a term without a map.

        All weights of its maps have parameters.
        """
        terms = []
        for term, own in zip(self.terms, columns, strict=True):
            if own is not None and term.map is not None:
                roots = None if term.roots is None else term.roots[own]
                term = replace(term, map=term.map.narrow(own), roots=roots)
            terms.append(term)
        return replace(self, terms=tuple(terms))


@dataclass(frozen=True)
class Solution:
    """The end of a fit: its task, P of it, and the parameters that were found."""

    task: TrainingTask
    objective: Objective
    result: SolverResult


NOTHING_YET = "interrupted before the final fit: there is no model yet"


@dataclass(frozen=True)
class Minimiser:
    """A solver, the observer of its events, and a function that ends it early."""

    solve: Callable[[Objective, Vector, Run], SolverResult]
    observer: Observer
    interrupted: Callable[[], bool]

    def prepare(self, objective: Objective, theta: Vector | None, tolerance: float, max_passes: int) -> SolverResult:
        """Minimise P within the tolerance, or as well as so many passes can, in preparation of the final fit.

        It begins at zero without a theta. Nothing that it finds is worth keeping after an interruption.
        """
        theta = objective.vectors.zeros() if theta is None else theta
        run = Run(tolerance, max_passes, self.observer.tell, self.interrupted, proves=False)
        result = self.solve(objective, theta, run)
        if result.reason == INTERRUPTED:
            raise Interrupted(NOTHING_YET)
        return result

    def check_interrupted(self) -> None:
        """Raise `Interrupted` if that was asked for before the final fit."""
        if self.interrupted():
            raise Interrupted(NOTHING_YET)
