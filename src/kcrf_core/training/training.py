"""From encoded data and a configuration to a model with its certificate.

The steps: fix each term's kernel and map, choose among terms where that is asked for, choose sigma2 on held-out
sequences where it is not given, then minimise P until its certified relative gap is within the tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..chains import Edges, Problem, first_impossible, positions_within
from ..config import GRADIENT, Config
from ..corpora import sequence_rows
from ..encoding import UNKNOWN, UNOBSERVED, Dataset, Encoding
from ..errors import ConfigError, DataError
from ..maps import FeatureMap
from ..model import Model, PruneReport, StoredBasis, digest
from ..objective import Cliques, Posterior
from ..scoring import Transitions, allowed_transitions
from ..solvers import CERTIFIED, PRUNED, SOLVERS, Run, SolverResult, moved
from ..system import Workers, hand_back
from .dev import DevReport, Watch
from .fitted_terms import DTYPES, FittedTerm, begin_growth, fit_terms, outside_gain
from .growth import Growth, grow
from .observed_features import kept_in, observed_only
from .observer import Observer, Trial
from .prior_search import choose_prior
from .repeated_sequences import collapse
from .structure import MIN_GAIN, Structure, check_choice, choose_structure
from .warm_start import WarmStart

# The variance of scores where too little can be held out to choose one.
FALLBACK_VARIANCE = 1.0

# Kernel values in single precision are another kernel, by a few parts in a million: finer certificates need double.
SINGLE_TOLERANCE = 1e-5


@dataclass(frozen=True)
class Report:
    """What a training run found, for people and for the model file.

    >>> from kcrf_core import Workers, fit_encoding, parse_config, read_corpus, train
    >>> config = parse_config({"training": {"sigma2": 1.0}})
    >>> with Workers() as workers:
    ...     _, report = train(*fit_encoding(config, read_corpus("sample_data/digits.conll")), config, workers=workers)
    >>> bool(report.result.gap <= config.training.tolerance), report.sigma2
    (True, {'node': 1.0, 'edge': 1.0})
    """

    result: SolverResult
    sigma2: dict[str, float]  # of each term, chosen or given
    path: tuple[Trial, ...]  # what was tried to choose it
    outside: float | None  # gain that may be left outside the pivots: a bound, or an estimate of it
    certify: str  # which of the two
    score_columns: int
    parameters: int
    structure: Structure | None = None  # how terms were chosen, where they were
    dev: DevReport | None = None
    growth: Growth | None = None  # how pivots were added, where they were
    pruned: PruneReport | None = None  # what was dropped, where something was to be

    def to_dict(self) -> dict[str, Any]:
        result = self.result
        out = {
            "stop": result.reason,
            "objective": result.value,
            "lower_bound": result.lower if np.isfinite(result.lower) else None,
            "certified_gap": result.gap if np.isfinite(result.gap) else None,
            f"outside_{'bound' if self.certify == 'exact' else 'estimate'}": self.outside,
            "gradient_norm": result.gradient_norm,
            "passes": result.passes,
            "hessian_products": result.products,
            "steps": result.steps,
            "work": result.work,
            "sigma2": self.sigma2,
            "sigma2_path": [asdict(trial) for trial in self.path],
            "score_columns": self.score_columns,
            "parameters": self.parameters,
        }
        optional = {"structure": self.structure, "dev": self.dev, "growth": self.growth, "pruned": self.pruned}
        return out | {key: value.to_dict() for key, value in optional.items() if value is not None}


def train(
    encoding: Encoding,
    dataset: Dataset,
    config: Config,
    *,
    basis: StoredBasis | None = None,
    workers: Workers,
    observer: Observer | None = None,
    interrupted: Callable[[], bool] | None = None,
    certify: str = "estimate",
    select_terms: bool = False,
    min_gain: float = MIN_GAIN,
    start: WarmStart | None = None,
    dev: Dataset | None = None,
    keep: str = "last",
    prune: float | None = None,
) -> tuple[Model, Report]:
    """Fit a model. `interrupted` is asked after every pass; once true, the best so far is what comes back.

    `certify` says how to find what could still be gained outside the pivots: "exact" takes a pass over all pairs of
    positions, "estimate" next to nothing. With `select_terms` the model gets only those terms of the configuration that
    are worth it; none whose gain in P is proven to be less than `min_gain` is. `dev` is scored on the way; with `keep`
    "best" the parameters that label it best come back instead of the last ones, with their own P and gap. With `prune`
    weights and pivots are dropped that change no score of a training position by more than that.

    >>> from kcrf_core import Workers, fit_encoding, parse_config, read_corpus, train
    >>> kernel = {"type": "poly", "degree": 2}
    >>> config = parse_config({"terms": [{"kernel": kernel}, {"type": "edge"}], "training": {"sigma2": 3.0}})
    >>> encoding, dataset = fit_encoding(config, read_corpus("sample_data/pitch_accent.conll").subset(range(100)))
    >>> with Workers() as workers:
    ...     model, report = train(encoding, dataset, config, workers=workers)
    >>> model.labels, report.result.reason
    (('0', '1'), 'certified')
    """
    observer = observer or Observer()
    interrupted = interrupted or (lambda: False)
    training = config.training
    if training.precision == "single" and training.tolerance < SINGLE_TOLERANCE:
        observer.note(f"a tolerance below {SINGLE_TOLERANCE:g} is beyond single precision: double is used")
        training = replace(training, precision="double")
        config = replace(config, training=training)
    dtype = DTYPES[training.precision]
    problem = _problem(encoding, dataset)
    forbidden = _forbidden(encoding, dataset, problem, config)
    if not problem.complete.all():
        _check_partial(config, select_terms, certify)
    if select_terms:
        check_choice(config)
    # Terms and sigma2 are chosen on more pivots than a growing basis begins with.
    rehearse = select_terms or any((term.sigma2 or training.sigma2) is None for term in config.terms)
    hand_back()  # what reading and encoding took
    fitted = fit_terms(encoding, dataset, config, basis, workers, observer, rehearse)
    if training.observed_features:
        fitted = observed_only(fitted, problem, observer)
    hand_back()
    solve = SOLVERS[training.solver]
    structure = None
    if select_terms:
        structure = choose_structure(
            problem, fitted, training, solve, min_gain, workers, forbidden, observer, interrupted
        )
        fitted = [term for term in fitted if term.name in structure.chosen]
        config = replace(config, terms=tuple(term for term in config.terms if term.name in structure.chosen))
    maps = [term.map for term in fitted if term.map is not None]
    if config.edge_term is None and config.edge2_term is None:
        observer.note("no edge term: labels are taken as independent of each other")
    if problem.label_count == 1:
        observer.note(f"all labels are '{encoding.labels[0]}': the model will say nothing else")
    elif problem.label_count == 2:
        observer.note("two labels: one score column")

    def posterior(
        sigma2: dict[str, float],
        rows: Problem = problem,
        on: Sequence[FeatureMap] = maps,
        used: Sequence[np.ndarray] | None = None,
    ) -> Posterior:
        """P of some rows with their maps, which may have been narrowed to the columns `used`."""
        values, each, columns, terms = given | sigma2, iter(on), iter(used or ()), []
        for term in fitted:
            own = kept = None
            if term.map is not None:
                own = next(each)
                kept = term.kept if used is None else kept_in(term, next(columns), problem.label_count)
            terms.append(Cliques(term.config.type, values[term.name], own, kept))
        return Posterior(rows, terms, workers, dtype, forbidden)

    # A term's own sigma2, else the one of the training section; None is to be chosen.
    given = {term.name: term.config.sigma2 or training.sigma2 for term in fitted}
    if start is not None:
        given |= start.known_sigma2(fitted, given, observer)
    free = {term.name: term.score_scale() for term in fitted if given[term.name] is None}
    sigma2 = {name: value for name, value in given.items() if value is not None}
    path: tuple[Trial, ...] = ()
    theta = None
    if free:
        chosen = choose_prior(problem, maps, free, posterior, solve, training.seed, observer, interrupted)
        if chosen is None:
            observer.note(f"score variance {FALLBACK_VARIANCE:g}: there is too little data to hold some out")
            sigma2 |= {name: float(f"{FALLBACK_VARIANCE / scale:.3g}") for name, scale in free.items()}
        else:
            sigma2 |= chosen.sigma2
            theta, path = chosen.theta, chosen.tried
    sigma2 = {term.name: sigma2[term.name] for term in fitted}
    grows = any(term.config.map.select == GRADIENT for term in fitted)
    rows, distinct = problem, dataset
    if not grows:  # a basis that grows looks at all positions
        rows, distinct, fitted = collapse(problem, dataset, fitted, observer)
        maps[:] = [term.map for term in fitted if term.map is not None]
    elif rehearse:
        fitted, theta = begin_growth(fitted, encoding, dataset, config, workers, observer), None
        maps[:] = [term.map for term in fitted if term.map is not None]  # the others give their memory back
    final = posterior(sigma2, rows)
    theta = np.zeros(final.size) if theta is None else theta
    if start is not None:
        theta = start.choose(encoding, fitted, final, theta, observer)
    run = Run(training.tolerance, training.max_passes, None, interrupted)
    if start is None and not final.convex:
        theta = _complete_optimum(rows, maps, partial(posterior, sigma2), solve, theta, run, observer)
    watch = None if dev is None else Watch(dev, keep, encoding, fitted, final, training.precision, observer)
    observer.stage("training")
    observe = observer.passed if watch is None else watch.passed
    run.watch(observe)
    growth = None
    if grows:

        def on_pivots(terms: Sequence[FittedTerm]) -> Posterior:
            maps[:] = [term.map for term in terms if term.map is not None]
            return posterior(sigma2)

        grown = grow(fitted, on_pivots, theta, dataset, training, solve, run, observer, watch)
        fitted, final, result, growth = grown.fitted, grown.posterior, grown.result, grown.growth
    else:
        result = solve(final, theta, run)
    hand_back()
    if watch is not None:
        result = watch.kept(result, final, training.tolerance)
    terms = tuple(fitted[j].to_model(final.weights_of(result.theta, j), training.precision) for j in final.mapped)
    model = Model(encoding, terms, final.potentials_of(result.theta))
    pruned = None
    if prune is not None:
        observer.stage("pruning")
        judge = ("training", dataset) if dev is None else ("dev", dev)
        model, result, pruned = _pruned(model, fitted, final, result, distinct, judge, prune, training.tolerance)
    outside = growth.proven(fitted) if growth is not None and result is grown.result else None
    if outside is not None:
        certify = "exact"
    elif not final.convex:
        outside = None  # nothing is proven about it
    else:
        outside = outside_gain(encoding, distinct, fitted, final, result.theta, certify)
    report = Report(
        result=result,
        sigma2=sigma2,
        path=path,
        outside=outside,
        certify=certify,
        score_columns=final.columns,
        parameters=final.size,
        structure=structure,
        dev=None if watch is None else watch.report(model),
        growth=growth,
        pruned=pruned,
    )
    info = {"config": config.to_dict(), "digest": digest(dataset), "training": report.to_dict()}
    return replace(model, info=info), report


def _check_partial(config: Config, select_terms: bool, certify: str) -> None:
    """What rests on P being convex is not for labels that are not observed."""
    if select_terms:
        raise ConfigError("terms cannot be chosen (--select-terms) where labels are not observed")
    if certify == "exact":
        raise ConfigError("--certify exact needs all labels: where some are not observed nothing is certified")
    if any(term.map.select == GRADIENT for term in config.mapped_terms):
        raise ConfigError("'select: gradient' needs all labels: choose another way to find pivots (--select)")


def _complete_optimum(
    problem: Problem,
    maps: Sequence[FeatureMap],
    posterior: Callable[[Problem, Sequence[FeatureMap]], Posterior],
    solve: Callable[[Posterior, np.ndarray, Run], SolverResult],
    theta: np.ndarray,
    run: Run,
    observer: Observer,
) -> np.ndarray:
    """Where to begin if labels are missing: the optimum of the sequences that have all of theirs, where P is convex."""
    which = np.flatnonzero(problem.complete)
    if not len(which):
        observer.note("no sequence has all its labels: training begins at zero")
        return theta
    rows = sequence_rows(problem.offsets, which)
    observer.stage("complete sequences")
    result = solve(posterior(problem.subset(which), [map_.subset(rows) for map_ in maps]), theta, run)
    what = "optimum" if result.reason == CERTIFIED else "best point found"
    observer.note(f"training begins at the {what} of {len(which):,} sequences with all labels, {result.passes} passes")
    run.go_on(len(rows) / max(problem.positions, 1))
    return result.theta


def _pruned(
    model: Model,
    fitted: Sequence[FittedTerm],
    posterior: Posterior,
    result: SolverResult,
    dataset: Dataset,
    judge: tuple[str, Dataset],
    prune: float,
    tolerance: float,
) -> tuple[Model, SolverResult, PruneReport]:
    """The model without what changes no score by more than `prune`, and the fit at what is left."""

    def accuracy(model: Model) -> float:
        gold = judge[1].labels
        right = (model.tag(judge[1], posterior.workers) == gold)[gold != UNOBSERVED]
        return float(right.mean()) if len(right) else 0.0

    theta, terms = result.theta.copy(), []
    for j, term in zip(posterior.mapped, model.terms, strict=True):
        inputs = model.encoding.inputs(dataset, term.features).seen()
        thinned = term.pruned(inputs, prune / len(model.terms), posterior.workers)
        theta[posterior.blocks[j]] = posterior.block_of(fitted[j].map_weights(thinned), j)
        terms.append(thinned.compacted())
    smaller = replace(model, terms=tuple(terms))
    report = PruneReport(
        prune=prune,
        weights=sum(term.nonzero for term in model.terms),
        weights_left=sum(term.nonzero for term in terms),
        bytes_saved=model.file_size - smaller.file_size,
        objective=result.value,
        certified_gap=result.gap if np.isfinite(result.gap) else None,
        accuracy_on=judge[0],
        accuracy=accuracy(model),
        accuracy_left=accuracy(smaller),
    )
    return smaller, moved(result, posterior, theta, tolerance, PRUNED), report


def _problem(encoding: Encoding, dataset: Dataset) -> Problem:
    if dataset.labels is None:
        raise DataError("the data has no labels to train on")
    if (dataset.labels == UNKNOWN).any():
        line = int(dataset.lines[np.flatnonzero(dataset.labels == UNKNOWN)[0]])
        raise DataError(f"the label in line {line} is unknown to the encoding")
    weights = np.ones(dataset.sequences) if dataset.weights is None else dataset.weights
    if not weights.any():
        raise DataError("all sequences have the weight 0, so there is nothing to learn from")
    return Problem(dataset.labels, dataset.offsets, weights, len(encoding.labels))


def _forbidden(encoding: Encoding, dataset: Dataset, problem: Problem, config: Config) -> Edges | None:
    """Transitions that the label scheme or the training data rule out, as minus infinity; None where none are."""
    training = config.training
    Y = problem.label_count
    allowed = Transitions(np.ones((Y, Y), dtype=bool), np.ones(Y, dtype=bool), np.ones(Y, dtype=bool))
    if training.scheme is not None:
        allowed = allowed_transitions(encoding.labels, training.scheme)
    if training.observed_transitions:
        unweighted = replace(problem, weights=np.ones_like(problem.weights))  # a pair without weight is there, too
        seen = unweighted.clique_counts(1) > 0
        allowed = Transitions(allowed.pairs & seen, allowed.first, allowed.last)
    if all(part.all() for part in (allowed.pairs, allowed.first, allowed.last)):
        return None
    labels, within = np.maximum(problem.labels, 0), positions_within(problem.offsets)
    last = np.append(within[1:] == 0, True)
    known = problem.labels >= 0
    pairs = ~allowed.pairs[np.roll(labels, 1), labels] & np.roll(known, 1)
    broken = np.where(within == 0, ~allowed.first[labels], pairs)
    broken |= last & ~allowed.last[labels]
    broken &= known
    if broken.any():
        t = int(np.flatnonzero(broken)[0])
        raise DataError(
            f"the label '{encoding.labels[labels[t]]}' in line {int(dataset.lines[t])} must not stand there "
            f"by the scheme {training.scheme} (--scheme)"
        )
    forbidden = Edges(*(np.where(part, 0.0, -np.inf) for part in (allowed.pairs, allowed.first, allowed.last)))
    t = first_impossible(problem.labels, problem.offsets, forbidden)
    if t is not None:
        raise DataError(
            f"the labels of the sequence at line {int(dataset.lines[t])} cannot all stand there, whatever the "
            "others are that are not observed (--scheme, --observed-transitions)"
        )
    return forbidden
