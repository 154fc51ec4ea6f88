"""The task of a fit: labelled sequences and the terms to fit to them. Prior variances make P of it.

Training looks at many different P: of all sequences or of some, of all terms or of some, on all columns of their maps
or on a few. All of them are built by `TrainingTask.objective`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..chains import Edges, Problem
from ..device import device_of
from ..encoding import Encoding
from ..errors import Interrupted
from ..features import FittedTerm, MappedTerm, kept_in
from ..model import Model
from ..objective import ComposedEngine, Engine, Objective, ObjectiveTerm, ThreadEngine, Vector, executor_of
from ..objective.solvers import INTERRUPTED, Observer, Run, SolverResult
from ..system import Workers, sequence_rows
from .held_out import Pieces


@dataclass(frozen=True)
class TrainingTask:
    """Labelled sequences, and terms whose maps have a row for each of their positions."""

    problem: Problem
    terms: tuple[FittedTerm, ...]
    workers: Workers
    dtype: np.dtype
    forbidden: Edges | None = None  # transitions that are ruled out, as minus infinity
    c1: float = 0.0  # of an L1 penalty
    # With an executor or a device: engines of terms by their names, whose data it has.
    engines: dict[tuple[str, ...], Engine] = field(default_factory=dict, init=False, compare=False, repr=False)

    def objective(self, sigma2: Mapping[str, float]) -> Objective:
        """Return P of those terms that have a prior variance here."""
        Y, present = self.problem.label_count, self.present(sigma2)
        terms = [
            ObjectiveTerm(term.config.clique, sigma2[term.name], term.map, term.kept, term.threshold(self.c1, Y))
            for term in present
        ]
        names = tuple(term.name for term in present)
        engine = self.engines.get(names)
        if engine is None:
            engine = self._engine(terms, present)
            if engine.lasting:  # other prior variances are no other data
                self.engines[names] = engine
        return Objective.on(engine, terms)

    def _engine(self, terms: Sequence[ObjectiveTerm], present: Sequence[FittedTerm]) -> Engine:
        """Return an engine for terms, by threads or by what helps them."""
        about = self.workers, self.dtype, self.forbidden
        device, executor = device_of(self.workers), executor_of(self.workers)
        if device is not None:
            return device.engine(self.problem, terms, *about)
        if executor is not None:
            return ComposedEngine.of(self.problem, terms, executor, *about)
        return ThreadEngine(self.problem, terms, *about)

    def present(self, names: Collection[str]) -> tuple[FittedTerm, ...]:
        """The terms of these names, in the order of the task."""
        return tuple(term for term in self.terms if term.name in names)

    def term(self, name: str) -> FittedTerm:
        return next(term for term in self.terms if term.name == name)

    def subset(self, sequences: np.ndarray) -> TrainingTask:
        """The sequences of these numbers."""
        rows = sequence_rows(self.problem.offsets, sequences)
        terms = (term if term.map is None else replace(term, map=term.map.subset(rows)) for term in self.terms)
        return replace(self, problem=self.problem.subset(sequences), terms=tuple(terms))

    def pieces(self, pieces: Pieces) -> TrainingTask:
        """These pieces of sequences."""
        rows = pieces.rows
        terms = (term if term.map is None else replace(term, map=term.map.subset(rows)) for term in self.terms)
        return replace(self, problem=self.problem.pieces(pieces.first, pieces.last), terms=tuple(terms))

    def weighted(self, weights: np.ndarray) -> TrainingTask:
        """The same sequences with other weights [S]."""
        return replace(self, problem=replace(self.problem, weights=weights))

    def used_columns(self) -> list[np.ndarray | None]:
        """The columns of each map that are not zero throughout, in ascending order; None for a term without a map."""
        return [None if term.map is None else term.map.used_columns() for term in self.terms]

    def narrow(self, columns: Sequence[np.ndarray | None]) -> TrainingTask:
        """Each map with these columns alone."""
        terms = []
        for term, own in zip(self.terms, columns, strict=True):
            if own is not None and term.map is not None:
                kept = kept_in(term, own, self.problem.label_count)
                roots = None if term.roots is None else term.roots[own]
                term = replace(term, map=term.map.narrow(own), kept=kept, roots=roots)
            terms.append(term)
        return replace(self, terms=tuple(terms))


@dataclass(frozen=True)
class Solution:
    """The end of a fit: its task, P of it, and the parameters that were found."""

    task: TrainingTask
    objective: Objective
    result: SolverResult

    def model(self, encoding: Encoding, precision: str) -> Model:
        """The model that these parameters make."""
        objective, theta = self.objective, self.result.theta
        mapped = [(j, term) for j, term in enumerate(self.task.terms) if isinstance(term, MappedTerm)]
        terms = tuple(term.to_model(objective.stored_weights(theta, j), precision) for j, term in mapped)
        return Model(encoding, terms, objective.engine.potentials(theta))


NOTHING_YET = "interrupted before the final fit: there is no model yet"

Solver = Callable[[Objective, Vector, Run], SolverResult]


@dataclass(frozen=True)
class Minimiser:
    """How P is minimised: by which solver, who hears of it, and who may end it early."""

    solve: Solver
    observer: Observer
    interrupted: Callable[[], bool]

    def minimise(self, objective: Objective, theta: Vector, tolerance: float, max_passes: int) -> Vector:
        """Parameters within the tolerance of the optimum, or as near as so many passes come."""
        return self.fitted(objective, theta, tolerance, max_passes).theta

    def fitted(self, objective: Objective, theta: Vector, tolerance: float, max_passes: int) -> SolverResult:
        """The same with what it took.

        Fits of this kind prepare for the final one: nothing they find is worth keeping after an interruption.
        """
        run = Run(tolerance, max_passes, self.observer.tell, self.interrupted, proves=False)
        result = self.solve(objective, theta, run)
        if result.reason == INTERRUPTED:
            raise Interrupted(NOTHING_YET)
        return result

    def check_interrupted(self) -> None:
        """Give up, if that was asked for before the final fit."""
        if self.interrupted():
            raise Interrupted(NOTHING_YET)
