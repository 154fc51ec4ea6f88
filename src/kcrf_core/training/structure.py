"""Which terms of a configuration are worth having (Remark 11), by forward selection.

At the optimum without term j, having it lowers P by at most

    bound_j = (sigma_j^2 / 2) |grad_j P|^2,     grad_j P = Phi_j^T m,    m_t = w (p_t - e_{y_t})        Corollary 10

A small bound proves a term useless, a large one proves nothing: noise has a large one, too. So a term is
taken only if its bound stands out of its null, the bounds of the same term where nothing ties its inputs to the
errors m (see `structure_null`), and if it predicts sequences that it was not fitted to.

Fits of sets of terms, to all sequences and to all but those held out, each started from the fit before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from ..chains import CLIQUES, EDGE, EDGE2, Problem, chain
from ..config import Config, TrainingConfig
from ..errors import ConfigError, DataError
from ..objective import Cliques, Posterior, certificates
from ..solvers import Run, SolverResult
from ..system import Workers
from .fitted_terms import DTYPES, FittedTerm
from .observer import Observer
from .structure_null import centred, drawn_labels, exchanged, tail

# Variances of scores that a term without a sigma2 of its own is tried with, and the one that it is judged at first.
VARIANCES = (0.1, 1.0, 10.0)
JUDGED_VARIANCE = 1.0

# Sequences are dealt into folds, of which as many are held out in turn as give enough positions.
FOLDS, ENOUGH_HELD_OUT = 5, 20_000
LEAST_SEQUENCES = 10

TOLERANCE, MAX_PASSES = 1e-3, 300


@dataclass(frozen=True)
class Fit:
    """A set of terms fitted to all sequences and, fold by fold, to those not held out."""

    sigma2: dict[str, float]  # of its terms
    theta: np.ndarray
    value: float  # P
    slack: float  # what P may be above its minimum
    fold_thetas: tuple[np.ndarray, ...]
    held_out: np.ndarray  # [S] weighted log p(y | x) of each sequence held out in turn


class Fits:
    """Fits of any set of terms, each from the one before it."""

    def __init__(
        self,
        problem: Problem,
        fitted: Sequence[FittedTerm],
        training: TrainingConfig,
        solve: Callable[[Posterior, np.ndarray, Run], SolverResult],
        workers: Workers,
        forbidden: chain.Edges | None,
        observer: Observer,
        interrupted: Callable[[], bool],
    ):
        self.problem, self.fitted, self.workers = problem, tuple(fitted), workers
        self._solve, self._forbidden, self.dtype = solve, forbidden, DTYPES[training.precision]
        self._observer, self._interrupted = observer, interrupted
        self.given = {term.name: term.config.sigma2 or training.sigma2 for term in fitted}
        self.folds = _folds(problem, training.seed)
        if not self.folds:
            observer.note("too few sequences to hold some out: terms are judged by chance alone")

    def term(self, name: str) -> FittedTerm:
        return next(term for term in self.fitted if term.name == name)

    def judged_sigma2(self, name: str) -> float:
        """The given one, or one that no data has been asked about yet."""
        return self.given[name] or JUDGED_VARIANCE / self.term(name).score_scale()

    def posterior(self, sigma2: dict[str, float], problem: Problem | None = None) -> Posterior:
        terms = [
            Cliques(CLIQUES[term.config.type], sigma2[term.name], term.map, term.kept) for term in self._present(sigma2)
        ]
        return Posterior.on_threads(problem or self.problem, terms, self.workers, self.dtype, self._forbidden)

    def carried(self, theta: np.ndarray, before: dict[str, float], after: dict[str, float]) -> np.ndarray:
        """Parameters of one set of terms for another: new terms at zero, old ones left out."""
        old, new = self.posterior(before), self.posterior(after)
        blocks = {term.name: block for term, block in zip(self._present(before), old.blocks, strict=True)}
        out = np.zeros(new.size)
        for term, block in zip(self._present(after), new.blocks, strict=True):
            if term.name in blocks:
                out[block] = theta[blocks[term.name]]
        return out

    def extended(self, before: Fit, names: Sequence[str]) -> Fit:
        """With more terms, whose sigma2 is the best of the variances tried where none is given."""
        free = [name for name in names if self.given[name] is None]
        best: Fit | None = None
        for variance in VARIANCES if free and self.folds else (JUDGED_VARIANCE,):
            added = {name: self.given[name] or variance / self.term(name).score_scale() for name in names}
            tried = self._held_out(best or before, before.sigma2 | added)
            if best is not None and tried.held_out.sum() <= best.held_out.sum():
                break
            best = tried
            if self._interrupted():
                break
        return self._on_all(best, before)

    def without(self, before: Fit, name: str) -> Fit:
        sigma2 = {other: value for other, value in before.sigma2.items() if other != name}
        return self._on_all(self._held_out(before, sigma2), before)

    def _present(self, sigma2: dict[str, float]) -> list[FittedTerm]:
        return [term for term in self.fitted if term.name in sigma2]

    def _held_out(self, before: Fit, sigma2: dict[str, float]) -> Fit:
        """Fits without each fold, and what they say about it. They start from fits that have not seen it either."""
        thetas, held_out = [], np.zeros(len(self.problem.weights))
        for fold, theta in zip(self.folds, before.fold_thetas, strict=True):
            rest = replace(self.problem, weights=np.where(fold, 0.0, self.problem.weights))
            thetas.append(self._minimise(sigma2, self.carried(theta, before.sigma2, sigma2), rest))
            found = self.posterior(sigma2).engine.sequence_log_probabilities(thetas[-1])
            held_out[fold] = (self.problem.weights * found)[fold]
        return Fit(sigma2, before.theta, before.value, before.slack, tuple(thetas), held_out)

    def _on_all(self, tried: Fit, before: Fit) -> Fit:
        theta = self.carried(before.theta, before.sigma2, tried.sigma2)
        theta = self._minimise(tried.sigma2, theta, self.problem)
        here = self.posterior(tried.sigma2).evaluate(theta, np.float64)
        return replace(tried, theta=theta, value=here.value, slack=here.value - here.lower)

    def _minimise(self, sigma2: dict[str, float], theta: np.ndarray, problem: Problem) -> np.ndarray:
        posterior = self.posterior(sigma2, problem)
        if posterior.size == 0:  # no term yet, nothing to fit
            return theta
        run = Run(TOLERANCE, MAX_PASSES, self._observer.passed, self._interrupted)
        return self._solve(posterior, theta, run).theta

    def nothing(self) -> Fit:
        """No term at all."""
        empty = np.zeros(0)
        return Fit({}, empty, 0.0, 0.0, (empty,) * len(self.folds), np.zeros(len(self.problem.weights)))


def _folds(problem: Problem, seed: int) -> list[np.ndarray]:
    """Sequences to hold out in turn, [S] bool each; none where there are too few to tell anything."""
    lengths = np.diff(problem.offsets)
    useful = np.flatnonzero((problem.weights > 0) & (lengths > 0))
    if len(useful) < LEAST_SEQUENCES:
        return []
    place = np.full(len(lengths), -1)
    place[np.random.default_rng([seed, 2]).permutation(useful)] = np.arange(len(useful)) % FOLDS
    wanted = int(np.ceil(ENOUGH_HELD_OUT * FOLDS / lengths[useful].sum()))
    return [place == fold for fold in range(min(wanted, FOLDS))]


MIN_GAIN = 1.0  # of P, in nats

# The chance, over all terms together, that some useless one stands out of its null.
SIGNIFICANCE = 0.02
# The first draws tell most useless terms: more than this many of them reach the bound.
FIRST_DRAWS, MOST_DRAWS, FEW_REACH = 20, 200, 1
# Columns of errors that go through a map at a time.
COLUMNS_AT_ONCE = 64

TAKEN, EXCLUDED, CHANCE, UNCONFIRMED = "taken", "cannot gain", "like chance", "no held-out gain"
DROPPED, ALWAYS, UNDECIDED = "dropped again", "always there", "undecided"


@dataclass(frozen=True)
class Judgement:
    """One term, judged against the terms that were there before it."""

    term: str
    decision: str  # one of the constants above
    step: int = 0  # how many steps had been made before
    sigma2: float | None = None  # for which the figures hold
    bound: float | None = None  # on the gain in P
    null: float | None = None  # mean bound of the draws
    ratio: float | None = None  # of bound to null, both without what a constant would gain
    p_value: float | None = None  # how often chance alone gives such a bound
    draws: int = 0  # of the null
    gain: float | None = None  # what it did lower P by
    held_out: float | None = None  # gain in log-likelihood of held-out sequences
    held_out_error: float | None = None  # its standard error

    @property
    def is_confirmed(self) -> bool:
        """Whether held-out sequences speak for the term; where none could be held out, nothing speaks against it."""
        return self.held_out is None or self.held_out > max(self.held_out_error, 0.0)


@dataclass(frozen=True)
class Structure:
    """The terms that were chosen, and why."""

    chosen: tuple[str, ...]  # in the order of the model
    judgements: tuple[Judgement, ...]  # of every term of the configuration

    def to_dict(self) -> dict[str, Any]:
        return {"chosen": list(self.chosen), "terms": [asdict(judgement) for judgement in self.judgements]}


def check_choice(config: Config) -> None:
    """An error where there are not at least two terms to choose from."""
    names = [term.name for term in config.terms if term.type != EDGE.name]
    if len(names) < 2:
        raise ConfigError(
            f"there is nothing to choose from (--select-terms): '{names[0]}' is the only term but transitions; "
            "describe several under 'terms:' in a configuration"
        )


def choose_structure(
    problem: Problem,
    fitted: Sequence[FittedTerm],
    training: TrainingConfig,
    solve: Callable[[Posterior, np.ndarray, Run], SolverResult],
    min_gain: float,
    workers: Workers,
    forbidden: chain.Edges | None,
    observer: Observer,
    interrupted: Callable[[], bool],
) -> Structure:
    """Terms one by one, best first, as long as one is worth it; then those go that others have made useless."""
    names = tuple(term.name for term in fitted)
    if problem.label_count == 1:
        observer.note("one label only: there is nothing to choose terms by, all are kept")
        return _all_of(names)
    fits = Fits(problem, fitted, training, solve, workers, forbidden, observer, interrupted)
    selection = _Selection(fits, training.seed, min_gain, observer, interrupted)
    selection.run()
    chosen = tuple(name for name in names if name in selection.now.sigma2)
    if interrupted() and not selection.added:
        observer.note("interrupted before any term was chosen: all are kept")
        return _all_of(names)
    structure = Structure(chosen, tuple(selection.judgements[name] for name in names))
    observer.selected(structure)
    if all(fits.term(name).map is None for name in chosen):
        raise DataError("no term that looks at the input does better than chance (--select-terms): nothing to train")
    return structure


def _all_of(names: tuple[str, ...]) -> Structure:
    return Structure(names, tuple(Judgement(name, UNDECIDED) for name in names))


class _Selection:
    """The terms chosen so far, and the last judgement of every term."""

    def __init__(self, fits: Fits, seed: int, min_gain: float, observer: Observer, interrupted: Callable[[], bool]):
        self._fits, self._seed, self._min_gain = fits, seed, min_gain
        self._observer, self._interrupted = observer, interrupted
        self._candidates = [term.name for term in fits.fitted if term.config.type != EDGE.name]
        always = [term.name for term in fits.fitted if term.config.type == EDGE.name]
        self.judgements = {term.name: Judgement(term.name, UNDECIDED) for term in fits.fitted}
        self.judgements |= {name: Judgement(name, ALWAYS) for name in always}
        self.added: list[str] = []
        observer.stage("transitions alone" if always else "no term")
        self.now = fits.extended(fits.nothing(), always)

    def run(self) -> None:
        while not self._interrupted() and self._step():
            pass
        # The last one was judged beside all others; those before it were not.
        for name in self.added[:-1]:
            if self._interrupted():
                return
            self._reconsider(name)

    def _step(self) -> bool:
        """Take the best term that chance does not explain and held-out sequences confirm; whether there is one."""
        open_ = [name for name in self._candidates if name not in self.added]
        self._observer.stage("bounds of terms", len(open_))
        for name in open_:
            self.judgements[name] = self._against_chance(self.now, name)
            if self._interrupted():
                return False
        promising = [name for name in open_ if self.judgements[name].decision == UNDECIDED]
        for name in sorted(promising, key=lambda name: -self.judgements[name].ratio):
            judgement, tried = self._on_held_out(self.now, self.judgements[name])
            self.judgements[name] = judgement
            if judgement.decision == TAKEN:
                self.now = tried
                self.added.append(name)
                self._observer.note(f"  + {name}: {_figures(judgement)}")
                return True
            if self._interrupted():
                return False
            self._observer.note(f"  not {name}: {_figures(judgement)}")
        return False

    def _reconsider(self, name: str) -> None:
        """Drop a term that would not be taken any more beside those that came after it."""
        self._observer.stage(f"without {name}")
        without = self._fits.without(self.now, name)
        judgement = self._against_chance(without, name)
        if judgement.decision == UNDECIDED:
            held_out, error = _difference(without.held_out, self.now.held_out, self._fits.folds)
            judgement = replace(judgement, gain=without.value - self.now.value)
            judgement = replace(judgement, held_out=held_out, held_out_error=error)
        if self._interrupted() or (judgement.decision == UNDECIDED and judgement.is_confirmed):
            return
        self.now = without
        self.added.remove(name)
        self.judgements[name] = replace(judgement, decision=DROPPED)
        self._observer.note(f"  - {name}: {_figures(judgement)}")

    def _against_chance(self, fit: Fit, name: str) -> Judgement:
        """The bound of a term that is not there, and its null; undecided where neither speaks against it."""
        sigma2 = self._fits.judged_sigma2(name)
        bound, beyond, draws = self._bounds(fit, name, sigma2)
        judgement = Judgement(name, UNDECIDED, len(self.added), sigma2, bound)
        # Lemma 9 at a point near the optimum: what the terms that are there may still gain comes on top.
        if bound + fit.slack < self._min_gain:
            return replace(judgement, decision=EXCLUDED)
        null = list(islice(draws, FIRST_DRAWS))
        if sum(drawn >= beyond for drawn in null) <= FEW_REACH:
            null += islice(draws, MOST_DRAWS - FIRST_DRAWS)
        mean, p_value = float(np.mean(null)), tail(beyond, np.array(null))
        ratio = beyond / max(mean, 1e-300)
        judgement = replace(judgement, null=mean, ratio=ratio, p_value=p_value, draws=len(null))
        return judgement if p_value <= SIGNIFICANCE / len(self._candidates) else replace(judgement, decision=CHANCE)

    def _bounds(self, fit: Fit, name: str, sigma2: float) -> tuple[float, float, Iterator[float]]:
        """The bound of a term, the same without what a constant would gain, and its null, drawn when asked for."""
        fits, term = self._fits, self._fits.term(name)
        if term.config.type == EDGE2.name:
            return self._triple_bounds(fit, name, sigma2)
        errors = fits.posterior(fit.sigma2).errors(fit.theta, CLIQUES[term.config.type])
        bound = certificates.inside(errors, term.map, sigma2, fits.workers)
        errors = centred(errors, fits.problem, CLIQUES[term.config.type])
        beyond = certificates.inside(errors, term.map, sigma2, fits.workers)
        return bound, beyond, self._exchanged_bounds(errors, term, sigma2)

    def _exchanged_bounds(self, errors: np.ndarray, term: FittedTerm, sigma2: float) -> Iterator[float]:
        problem, columns = self._fits.problem, errors.shape[1]
        rng = np.random.default_rng([self._seed, 3])
        at_once = max(COLUMNS_AT_ONCE // columns, 1)
        while True:
            rows = [exchanged(problem.offsets, problem.weights, rng) for _ in range(at_once)]
            many = np.hstack([errors[each] for each in rows], dtype=self._fits.dtype)  # [N, draws * columns]
            gradient = certificates.gradient(many, term.map, self._fits.workers)
            squares = np.square(gradient).sum(axis=0).reshape(at_once, columns).sum(axis=1)
            yield from (sigma2 / 2 * squares).tolist()

    def _triple_bounds(self, fit: Fit, name: str, sigma2: float) -> tuple[float, float, Iterator[float]]:
        fits = self._fits
        wider = fit.sigma2 | {name: sigma2}
        posterior = fits.posterior(wider)
        block = posterior.blocks[[term.clique for term in posterior.terms].index(EDGE2)]
        gradient = posterior.evaluate(fits.carried(fit.theta, fit.sigma2, wider)).gradient[block]
        expected = gradient + fits.problem.clique_counts(2).ravel()
        present = fits.posterior(fit.sigma2)
        rng = np.random.default_rng([self._seed, 3])

        def draws() -> Iterator[float]:
            while True:
                for labels in drawn_labels(present, fit.theta, rng, FIRST_DRAWS):
                    change = expected - replace(fits.problem, labels=labels).clique_counts(2).ravel()
                    yield sigma2 / 2 * float(change @ change)

        bound = sigma2 / 2 * float(gradient @ gradient)
        return bound, bound, draws()

    def _on_held_out(self, fit: Fit, judgement: Judgement) -> tuple[Judgement, Fit]:
        """Fit a term beside those that are there, and ask the sequences that were held out."""
        name = judgement.term
        self._observer.stage(f"with {name}")
        tried = self._fits.extended(fit, [name])
        held_out, error = _difference(fit.held_out, tried.held_out, self._fits.folds)
        scale = tried.sigma2[name] / judgement.sigma2  # bounds are proportional to sigma2
        judgement = replace(
            judgement,
            sigma2=tried.sigma2[name],
            bound=judgement.bound * scale,
            null=judgement.null * scale,
            gain=fit.value - tried.value,
            held_out=held_out,
            held_out_error=error,
        )
        if self._interrupted():
            return judgement, tried
        return replace(judgement, decision=TAKEN if judgement.is_confirmed else UNCONFIRMED), tried


def _difference(
    before: np.ndarray, after: np.ndarray, folds: Sequence[np.ndarray]
) -> tuple[float | None, float | None]:
    """Gain in log-likelihood of the sequences held out, and its standard error; None where none were."""
    if not folds:
        return None, None
    each = (after - before)[np.any(folds, axis=0)]
    return float(each.sum()), float(np.sqrt(len(each)) * each.std(ddof=1))


def _figures(judgement: Judgement) -> str:
    parts = [f"{judgement.ratio:.3g} times its null"] if judgement.ratio is not None else []
    if judgement.held_out is not None:
        parts.append(f"held-out gain {judgement.held_out:.4g} +- {judgement.held_out_error:.2g}")
    return ", ".join(parts)
