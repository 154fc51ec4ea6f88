"""Forward selection of the terms of a configuration that are worth having (Remark 11).

At the optimum without term j, having it lowers P by at most

    bound_j = (sigma_j^2 / 2) |grad_j P|^2,     grad_j P = Phi_j^T m,    m_t = w (p_t - e_{y_t})        Corollary 10

A small bound proves a term useless, a large one proves nothing. So a term is taken only if its bound stands out of its
null, bounds of the same term where errors m are exchanged between sequences of about the same length and shifted along
them, and if it predicts sequences held out. The tail of a null is that of a gamma distribution with the moments of the
draws (Satterthwaite's approximation). Triples of labels have no input to exchange: held-out sequences alone decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from ..chains import EDGE2, EDGE_X, Clique, Edge, Problem
from ..config import Config
from ..errors import ConfigError, DataError
from ..maps import FeatureMap
from ..objective import Objective, Vector, certificates
from ..objective.solvers import (
    ALWAYS,
    CHANCE,
    DROPPED,
    EXCLUDED,
    TAKEN,
    UNCONFIRMED,
    UNDECIDED,
    Stage,
    Structure,
    TermJudgement,
)
from ..system import positions_within, scipy_module
from .folds import floored, fold_of
from .held_out import HoldOut, Pieces, Split, whole_folds
from .task import Minimiser, TrainingTask

# A term whose gain in P is proven to be less, in nats, is left out.
MIN_GAIN = 1.0

# Probability, over all terms together, that some useless one stands out of its null.
SIGNIFICANCE = 0.02
# The first draws tell most useless terms: more than this many of them reach the bound.
FIRST_DRAWS, MOST_DRAWS, FEW_REACH = 20, 200, 1
# Spread of the logarithm of lengths within which sequences exchange their errors.
LENGTH_SPREAD = 0.2
# Columns of errors that go through a map at a time.
COLUMNS_AT_ONCE = 64

# Variances of scores that a term without a sigma2 of its own is tried with, and the one that it is judged at first.
VARIANCES = (0.1, 1.0, 10.0)
JUDGED_VARIANCE = 1.0

# Sequences are dealt into folds, of which as many are held out in turn as give enough positions.
FOLDS, ENOUGH_HELD_OUT = 5, 20_000
LEAST_SEQUENCES = 10

TOLERANCE, MAX_PASSES = 1e-3, 300


def check_choice(config: Config) -> None:
    """Refuse a configuration without at least two terms to choose from."""
    names = [term.name for term in config.terms if not isinstance(term.clique, Edge)]
    if len(names) < 2:
        raise ConfigError(
            f"no terms to select from: '{names[0]}' is the only term besides transitions; describe several under "
            "'terms:' in a configuration",
            settings=["select_terms"],
        )


def choose_structure(
    task: TrainingTask, given: Mapping[str, float | None], seed: int, minimiser: Minimiser, wishes: HoldOut
) -> Structure:
    """Choose the terms that are worth having; `given` has the sigma2 of each, None where it is to be chosen.

    Whole sequences are held out, those together that `wishes` name.
    """
    observer = minimiser.observer
    names = tuple(term.config.name for term in task.terms)
    if task.problem.label_count == 1:
        observer.report("one label only: there is nothing to choose terms by, all are kept")
        return Structure(names, tuple(TermJudgement(name, UNDECIDED) for name in names))
    selection = Selection(task, given, seed, minimiser, wishes)
    selection.run()
    chosen = tuple(name for name in names if name in selection.now.sigma2)
    structure = Structure(chosen, tuple(selection.judgements[name] for name in names))
    observer.tell(structure)
    if all(term.map is None for term in task.present(chosen)):
        raise DataError(
            "no term that uses the input is better than chance: nothing to train", settings=["select_terms"]
        )
    return structure


@dataclass(frozen=True)
class Fit:
    """A set of terms fitted to all sequences and, fold by fold, to those not held out."""

    sigma2: dict[str, float]  # of its terms
    theta: Vector
    value: float  # P
    slack: float  # the most that P is above its minimum
    fold_thetas: tuple[Vector, ...]
    held_out: np.ndarray  # [S] weighted log p(y | x) of each sequence held out in turn


class Selection:
    """The terms chosen so far, fits of them, each from the one before it, and the last judgement of every term."""

    def __init__(
        self, task: TrainingTask, given: Mapping[str, float | None], seed: int, minimiser: Minimiser, wishes: HoldOut
    ):
        self._task, self._given, self._seed = task, given, seed
        self._observer, self._minimiser = minimiser.observer, minimiser
        self._terms = {term.config.name: term for term in task.terms}
        self._folds = _folds(task.problem, seed, wishes)
        if not self._folds:
            self._observer.report("too few sequences to hold some out: terms are judged by their nulls alone")
        always = [name for name, term in self._terms.items() if isinstance(term.config.clique, Edge)]
        self._candidates = [name for name in self._terms if name not in always]
        self.judgements = {name: TermJudgement(name, ALWAYS if name in always else UNDECIDED) for name in self._terms}
        self.added: list[str] = []
        self._observer.tell(Stage("transitions alone" if always else "no term"))
        empty = np.zeros(0)
        nothing = Fit({}, empty, 0.0, 0.0, (empty,) * len(self._folds), np.zeros(len(task.problem.weights)))
        self.now = self._extended(nothing, always)

    def run(self) -> None:
        """Take terms one by one, best first, as long as one is worth it; then drop those that others made useless."""
        while self._step():
            pass
        # The last one was judged beside all others; those before it were not.
        for name in self.added[:-1]:
            self._reconsider(name)

    def _step(self) -> bool:
        """Take the best term that stands out of its null and is confirmed on held-out data; True if there is one."""
        open_ = [name for name in self._candidates if name not in self.added]
        for number, name in enumerate(open_):
            self._observer.steps("bounds of terms", number, len(open_))
            self._minimiser.check_interrupted()  # bounds are no fits
            self.judgements[name] = self._against_null(self.now, name)
        promising = [name for name in open_ if self.judgements[name].decision == UNDECIDED]
        for name in sorted(promising, key=lambda name: -(self.judgements[name].ratio or 0.0)):
            judgement, tried = self._on_held_out(self.now, self.judgements[name])
            self.judgements[name] = judgement
            if judgement.decision == TAKEN:
                self.now = tried
                self.added.append(name)
                self._observer.note(f"  + {name}: {_figures(judgement)}")
                return True
            self._observer.note(f"  not {name}: {_figures(judgement)}")
        return False

    def _reconsider(self, name: str) -> None:
        """Drop a term that would not be taken any more beside those that came after it."""
        self._observer.tell(Stage(f"without {name}"))
        sigma2 = {other: value for other, value in self.now.sigma2.items() if other != name}
        without = self._on_all(self._held_out(self.now, sigma2), self.now)
        judgement = self._against_null(without, name)
        if judgement.decision == UNDECIDED:
            held_out, error = _difference(without.held_out, self.now.held_out, self._folds)
            gain = without.value - self.now.value
            judgement = replace(judgement, gain=gain, held_out=held_out, held_out_error=error)
        if judgement.decision == UNDECIDED and judgement.is_confirmed:
            return
        self.now = without
        self.added.remove(name)
        self.judgements[name] = replace(judgement, decision=DROPPED)
        self._observer.note(f"  - {name}: {_figures(judgement)}")

    def _against_null(self, fit: Fit, name: str) -> TermJudgement:
        """Judge a term that is not there by its bound and its null; undecided where neither speaks against it."""
        sigma2 = self._sigma2(name, JUDGED_VARIANCE)
        bound, beyond, draws = self._bounds(fit, name, sigma2)
        judgement = TermJudgement(name, UNDECIDED, len(self.added), sigma2, bound)
        # Lemma 9 at a point near the optimum: what the terms that are there may still gain comes on top.
        if bound + fit.slack < MIN_GAIN and self._proven_bound(fit, name, sigma2) + fit.slack < MIN_GAIN:
            return replace(judgement, decision=EXCLUDED)
        if draws is None:
            return judgement if self._folds else replace(judgement, decision=UNCONFIRMED)
        null = list(islice(draws, FIRST_DRAWS))
        if sum(drawn >= beyond for drawn in null) <= FEW_REACH:
            null += islice(draws, MOST_DRAWS - FIRST_DRAWS)
        mean, p_value = float(np.mean(null)), tail(beyond, np.array(null))
        ratio = beyond / max(mean, 1e-300)
        judgement = replace(judgement, null=mean, ratio=ratio, p_value=p_value, draws=len(null))
        return judgement if p_value <= SIGNIFICANCE / len(self._candidates) else replace(judgement, decision=CHANCE)

    def _bounds(self, fit: Fit, name: str, sigma2: float) -> tuple[float, float, Iterator[float] | None]:
        """Return the bound of a term, that without the gain of a constant, and draws of its null, if it has one."""
        task, term = self._task, self._terms[name]
        if term.config.type == EDGE2.name:
            bound = self._triple_bound(fit, name, sigma2)
            return bound, bound, None
        assert term.map is not None
        errors = task.objective(fit.sigma2).errors(fit.theta, term.config.clique)
        bound = certificates.inside(errors, term.map, sigma2, task.workers)
        errors = centred(errors, task.problem, term.config.clique)
        beyond = certificates.inside(errors, term.map, sigma2, task.workers)
        return bound, beyond, self._exchanged_bounds(errors, term.map, sigma2)

    def _proven_bound(self, fit: Fit, name: str, sigma2: float) -> float:
        """Return the bound of a term in double precision: single is enough to compare bounds, not to prove one."""
        task, term = self._task, self._terms[name]
        if term.config.type == EDGE2.name:
            return self._triple_bound(fit, name, sigma2)  # its gradient is a sum of marginals, which are in double
        assert term.map is not None
        errors = task.objective(fit.sigma2).in_double().errors(fit.theta, term.config.clique)
        return certificates.inside(errors, term.map.in_double(held=False), sigma2, task.workers)

    def _exchanged_bounds(self, errors: np.ndarray, own: FeatureMap, sigma2: float) -> Iterator[float]:
        """Yield bounds of a term that looks at the input where sequences exchange their errors."""
        task, columns = self._task, errors.shape[1]
        rng = np.random.default_rng([self._seed, 3])
        at_once = max(COLUMNS_AT_ONCE // columns, 1)
        while True:
            rows = [exchanged(task.problem.offsets, task.problem.weights, rng) for _ in range(at_once)]
            many = np.hstack([errors[each] for each in rows], dtype=task.dtype)  # [N, draws * columns]
            gradient = certificates.gradient(many, own, task.workers)
            squares = np.square(gradient).sum(axis=0).reshape(at_once, columns).sum(axis=1)
            yield from (sigma2 / 2 * squares).tolist()

    def _triple_bound(self, fit: Fit, name: str, sigma2: float) -> float:
        """Return the bound of triples of labels."""
        wider = fit.sigma2 | {name: sigma2}
        objective = self._task.objective(wider)
        gradient = objective.evaluate(self._carried(self._task, fit.theta, fit.sigma2, wider)).gradient
        block = objective.block(gradient, [term.clique for term in objective.terms].index(EDGE2))
        return sigma2 / 2 * float(block @ block)

    def _on_held_out(self, fit: Fit, judgement: TermJudgement) -> tuple[TermJudgement, Fit]:
        """Fit a term beside those that are there, and ask the sequences that were held out."""
        name, sigma2, bound, null = judgement.term, judgement.sigma2, judgement.bound, judgement.null
        assert sigma2 is not None and bound is not None
        self._observer.tell(Stage(f"with {name}"))
        tried = self._extended(fit, [name])
        held_out, error = _difference(fit.held_out, tried.held_out, self._folds)
        scale = tried.sigma2[name] / sigma2  # bounds are proportional to sigma2
        judgement = replace(
            judgement,
            sigma2=tried.sigma2[name],
            bound=bound * scale,
            null=None if null is None else null * scale,
            gain=fit.value - tried.value,
            held_out=held_out,
            held_out_error=error,
        )
        return replace(judgement, decision=TAKEN if judgement.is_confirmed else UNCONFIRMED), tried

    def _extended(self, before: Fit, names: Sequence[str]) -> Fit:
        """Fit more terms, whose sigma2 is the best of the variances tried where none is given."""
        free = [name for name in names if self._given[name] is None]
        best: Fit | None = None
        for variance in VARIANCES if free and self._folds else (JUDGED_VARIANCE,):
            added = {name: self._sigma2(name, variance) for name in names}
            tried = self._held_out(best or before, before.sigma2 | added)
            if best is not None and tried.held_out.sum() <= best.held_out.sum():
                break
            best = tried
        assert best is not None  # one variance, at least, was tried
        return self._on_all(best, before)

    def _sigma2(self, name: str, variance: float) -> float:
        """Return the given sigma2 of a term, or the one for which its scores have this variance."""
        own = self._terms[name].map
        return self._given[name] or variance / (1.0 if own is None else own.mean_diagonal())

    def _carried(self, task: TrainingTask, theta: Vector, before: dict[str, float], after: dict[str, float]) -> Vector:
        """Return parameters of some terms of a task for others: new at zero, old ones left out."""
        old, new = task.objective(before), task.objective(after)
        known = {term.config.name: old.block(theta, j) for j, term in enumerate(task.present(before))}
        names = [term.config.name for term in task.present(after)]
        return new.vector({j: known[name] for j, name in enumerate(names) if name in known})

    def _held_out(self, before: Fit, sigma2: dict[str, float]) -> Fit:
        """Fit without each fold, from a fit without it, and find the log-probabilities that these fits give to it."""
        problem, thetas = self._task.problem, []
        held_out = np.zeros(len(problem.weights))
        task = replace(self._task, terms=self._task.present(before.sigma2 | sigma2))
        for left_out, theta in zip(self._folds, before.fold_thetas, strict=True):
            fold = fold_of(task, split_of(left_out, problem.offsets))
            begin = self._carried(fold.sample, theta, before.sigma2, sigma2)
            thetas.append(self._minimise(fold.sample.objective(sigma2), begin))
            engine = fold.held_out.objective(sigma2).engine
            log_p = engine.sequence_log_probabilities(thetas[-1])
            lengths = np.diff(problem.offsets)[left_out]
            held_out[left_out] = problem.weights[left_out] * floored(log_p, lengths)
        return Fit(sigma2, before.theta, before.value, before.slack, tuple(thetas), held_out)

    def _on_all(self, tried: Fit, before: Fit) -> Fit:
        """Fit the terms that were tried to all sequences."""
        objective = self._task.objective(tried.sigma2)
        begin = self._carried(self._task, before.theta, before.sigma2, tried.sigma2)
        theta = self._minimise(objective, begin)
        here = objective.proven(theta)
        return replace(tried, theta=theta, value=here.value, slack=here.value - here.lower)

    def _minimise(self, objective: Objective, theta: Vector) -> Vector:
        if objective.size == 0:  # no term yet, nothing to fit
            return theta
        return self._minimiser.prepare(objective, theta, TOLERANCE, MAX_PASSES).theta


def _folds(problem: Problem, seed: int, wishes: HoldOut) -> list[np.ndarray]:
    """Return sequences to hold out in turn, [S] bool each; none where there are too few to tell anything."""
    lengths = np.diff(problem.offsets)
    useful = np.flatnonzero((problem.weights > 0) & (lengths > 0))
    units, folds = whole_folds(problem.offsets, useful, wishes, FOLDS, [seed, 2])
    if units.count(useful) < LEAST_SEQUENCES:
        return []
    wanted = int(np.ceil(ENOUGH_HELD_OUT * len(folds) / lengths[useful].sum()))
    return [np.isin(np.arange(len(lengths)), fold) for fold in folds[:wanted]]


def split_of(held_out: np.ndarray, offsets: np.ndarray) -> Split:
    """Return the fold that holds out whole sequences [S] bool, and is fitted to the others."""
    filled = np.diff(offsets) > 0
    every = Pieces(offsets[:-1], offsets[1:], np.arange(len(held_out)))
    return Split(every.take(filled & ~held_out), every.take(filled & held_out))


def exchanged(offsets: np.ndarray, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return for each position the one whose errors it gets, [N]: of another sequence of about its length, shifted."""
    lengths = np.diff(offsets)
    source = np.arange(offsets[-1])
    taking_part = np.flatnonzero((lengths > 0) & (weights > 0))  # others have no errors to give, and keep theirs
    size = np.log(lengths[taking_part])
    takers, givers = (
        taking_part[np.argsort(size + LENGTH_SPREAD * rng.standard_normal(len(size)), kind="stable")] for _ in "tg"
    )
    giver = np.arange(len(lengths))
    giver[takers] = givers
    shift = np.zeros(len(lengths), dtype=np.int64)
    shift[takers] = rng.integers(0, lengths[givers])
    sequence = np.repeat(np.arange(len(lengths)), lengths)  # [N]
    from_ = giver[sequence]
    shifted = offsets[from_] + (positions_within(offsets) + shift[sequence]) % np.maximum(lengths[from_], 1)
    return np.where(np.isin(sequence, taking_part), shifted, source)


def centred(errors: np.ndarray, problem: Problem, clique: Clique) -> np.ndarray:
    """Return errors [N, C] less their mean.

    Transitions have that effect, too; without them, any term would gain from the frequencies of labels, whatever its
    inputs, and the null would hide all else.
    """
    weights = problem.position_weights()
    if clique is EDGE_X:
        weights = np.where(positions_within(problem.offsets) > 0, weights, 0.0)  # no pair ends at a first position
    return errors - np.outer(weights, errors.sum(axis=0) / max(weights.sum(), 1e-300))


def tail(bound: float, null: np.ndarray) -> float:
    """Return the probability of a bound at least so large, by the gamma distribution with the null's moments."""
    mean, variance = null.mean(), null.var(ddof=1)
    if variance <= (1e-9 * mean) ** 2:  # nothing changes when errors are exchanged
        return float(bound <= mean * (1 + 1e-9))
    special = scipy_module("special")  # takes memory that other trainings need not have
    return float(special.gammaincc(mean**2 / variance, bound * mean / variance))


def _difference(
    before: np.ndarray, after: np.ndarray, folds: Sequence[np.ndarray]
) -> tuple[float | None, float | None]:
    """Return the gain in log-likelihood of the sequences held out, and its standard error; None where none were."""
    if not folds:
        return None, None
    each = (after - before)[np.any(folds, axis=0)]
    return float(each.sum()), float(np.sqrt(len(each)) * each.std(ddof=1))


def _figures(judgement: TermJudgement) -> str:
    parts = [f"{judgement.ratio:.3g} times its null"] if judgement.ratio is not None else []
    if judgement.held_out is not None:
        parts.append(f"held-out gain {judgement.held_out:.4g} +- {judgement.held_out_error:.2g}")
    return ", ".join(parts)
