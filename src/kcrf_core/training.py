"""From encoded data and a configuration to a model with its certificate.

The steps: fix each term's kernel and map, choose sigma2 on held-out sequences where it is not given, then
minimise P until its certified relative gap is within the tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from . import basis as pivot_selection
from . import certificates
from .archives import StoredBasis, TermBasis, digest
from .config import Config, TermConfig
from .dataset import Dataset, Inputs
from .encoding import Encoding
from .errors import ConfigError, DataError
from .kernels import fit_kernel
from .maps import ExplicitMap, FeatureMap, ReducedMap
from .model import ExplicitTerm, KernelTerm, Model, Term
from .observer import Observer, Trial
from .parallel import Workers
from .posterior import Posterior, Problem
from .prior_search import choose_prior
from .solvers import DEFAULT_SOLVER, SOLVERS, Run, SolverResult

# The variance of scores where too little can be held out to choose one.
FALLBACK_VARIANCE = 1.0

# Kernel values in single precision are another kernel, by a few parts in a million: finer certificates need double.
SINGLE_TOLERANCE = 1e-5

DTYPES = {"single": np.dtype(np.float32), "double": np.dtype(np.float64)}


@dataclass(frozen=True)
class Report:
    """What a training run found, for people and for the model file."""

    result: SolverResult
    sigma2: dict[str, float]  # of each term, chosen or given
    path: tuple[Trial, ...]  # what was tried to choose it
    outside: float  # gain that may be left outside the pivots: a bound, or an estimate of it
    certify: str  # which of the two
    score_columns: int
    parameters: int

    def to_dict(self) -> dict[str, Any]:
        result = self.result
        return {
            "stop": result.reason,
            "objective": result.value,
            "lower_bound": result.lower,
            "certified_gap": result.gap if np.isfinite(result.gap) else None,
            f"outside_{'bound' if self.certify == 'exact' else 'estimate'}": self.outside,
            "passes": result.passes,
            "hessian_products": result.products,
            "sigma2": self.sigma2,
            "sigma2_path": [asdict(trial) for trial in self.path],
            "score_columns": self.score_columns,
            "parameters": self.parameters,
        }


@dataclass(frozen=True)
class _FittedTerm:
    """A node term with its map on the training data, and what the model keeps of it."""

    config: TermConfig
    features: tuple[str, ...]
    map: FeatureMap
    basis: TermBasis | None  # None: explicit


# ----------------------------------------------------------------------------- bases


def select_bases(
    encoding: Encoding, dataset: Dataset, config: Config, workers: Workers, observer: Observer
) -> StoredBasis:
    """Pivots for every node term that needs them."""
    found = []
    for term in config.node_terms:
        if _map_type(term) == "explicit":
            observer.note(f"term {term.name}: linear kernel, explicit map; it needs no pivots")
            continue
        features = tuple(encoding.term_features(term))
        inputs = encoding.inputs(dataset, features).seen()
        found.append(_select(term, features, inputs, dataset, config, workers, observer)[0])
    if not found:
        raise ConfigError("no term needs pivots: give a kernel such as --kernel poly, or a map such as --map reduced")
    return StoredBasis(encoding, config, tuple(found))


def _map_type(term: TermConfig) -> str:
    if term.map.type != "auto":
        return term.map.type
    return "explicit" if term.kernel.type == "linear" and term.map.size is None else "reduced"


def _select(
    term: TermConfig,
    features: tuple[str, ...],
    inputs: Inputs,
    dataset: Dataset,
    config: Config,
    workers: Workers,
    observer: Observer,
) -> tuple[TermBasis, np.ndarray]:
    """Pivots of one term, and the residual of every training position."""
    training = config.training
    kernel = fit_kernel(term.kernel, inputs, training.seed)
    dtype = DTYPES[training.precision]
    if _map_type(term) == "full":
        chosen = pivot_selection.full_basis(inputs, kernel, dtype)
        how = "every distinct input"
    else:
        size = term.map.size or pivot_selection.DEFAULT_SIZE
        observer.stage("choosing pivots", min(size, len(inputs)))
        rng = np.random.default_rng(training.seed)
        chosen = pivot_selection.choose_pivots(
            term.map.select, inputs, kernel, size, rng, workers, dtype, observer.pivots
        )
        how = term.map.select
    observer.note(
        f"term {term.name}: {term.kernel.type} kernel, {_map_type(term)} map, {len(chosen.rows):,} pivots ({how}), "
        f"{100 * chosen.unexplained:.2g} % of the trace unexplained"
    )
    pivots = inputs.take(chosen.rows)
    curve = chosen.curve / chosen.trace
    return TermBasis(term.name, features, kernel, pivots, dataset.lines[chosen.rows], curve), chosen.residual


# ----------------------------------------------------------------------------- training


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
) -> tuple[Model, Report]:
    """Fit a model. `interrupted` is asked after every pass; once true, the best so far is what comes back.

    `certify` says how to find what could still be gained outside the pivots: "exact" takes a pass over all pairs of
    positions, "estimate" next to nothing.
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
    fitted = _fit_terms(encoding, dataset, config, basis, workers, observer)
    maps = [term.map for term in fitted]
    solve = SOLVERS[DEFAULT_SOLVER if training.solver == "auto" else training.solver]
    if config.edge_term is None:
        observer.note("no edge term: labels are taken as independent of each other")
    if problem.label_count == 1:
        observer.note(f"all labels are '{encoding.labels[0]}': the model will say nothing else")
    elif problem.label_count == 2:
        observer.note("two labels: one score column")

    def posterior(sigma2: dict[str, float], rows: Problem = problem, on: Sequence[FeatureMap] = maps) -> Posterior:
        values = {name: fixed if fixed is not None else sigma2[name] for name, fixed in given.items()}
        edge = None if config.edge_term is None else values[config.edge_term.name]
        return Posterior(rows, on, [values[term.config.name] for term in fitted], edge, workers, dtype)

    # A term's own sigma2, else the one of the training section; None is to be chosen.
    ordered = [term.config for term in fitted] + ([config.edge_term] if config.edge_term else [])
    given = {term.name: term.sigma2 or training.sigma2 for term in ordered}
    scales = dict.fromkeys(given, 1.0) | {term.config.name: term.map.mean_diagonal() for term in fitted}
    sigma2 = {name: value or float(f"{FALLBACK_VARIANCE / scales[name]:.3g}") for name, value in given.items()}
    theta, path = np.zeros(posterior(sigma2).size), ()
    if None in given.values():
        free = {name: scales[name] for name, value in given.items() if value is None}
        chosen = choose_prior(problem, maps, free, posterior, solve, training.seed, observer, interrupted)
        if chosen is None:
            observer.note(f"score variance {FALLBACK_VARIANCE:g}: there is too little data to hold some out")
        else:
            sigma2 |= chosen.sigma2
            theta, path = chosen.theta, chosen.tried
    final = posterior(sigma2)
    observer.stage("training")
    run = Run(training.tolerance, training.max_passes, observer.passed, interrupted)
    result = solve(final, theta, run)
    report = Report(
        result=result,
        sigma2=sigma2,
        path=path,
        outside=_outside(encoding, dataset, fitted, final, result.theta, certify),
        certify=certify,
        score_columns=final.columns,
        parameters=final.size,
    )
    terms = tuple(_model_term(term, final.weights_of(result.theta, j)) for j, term in enumerate(fitted))
    info = {"config": config.to_dict(), "digest": digest(dataset), "training": report.to_dict()}
    return Model(encoding, terms, final.edges_of(result.theta), info), report


def _problem(encoding: Encoding, dataset: Dataset) -> Problem:
    if dataset.labels is None:
        raise DataError("the data has no labels to train on")
    if (dataset.labels < 0).any():
        line = int(dataset.lines[np.flatnonzero(dataset.labels < 0)[0]])
        raise DataError(f"the label in line {line} is unknown to the encoding")
    weights = np.ones(dataset.sequences) if dataset.weights is None else dataset.weights
    return Problem(dataset.labels, dataset.offsets, weights, len(encoding.labels))


def _fit_terms(
    encoding: Encoding,
    dataset: Dataset,
    config: Config,
    basis: StoredBasis | None,
    workers: Workers,
    observer: Observer,
) -> list[_FittedTerm]:
    dtype = DTYPES[config.training.precision]
    stored = {} if basis is None else {term.name: term for term in basis.terms}
    fitted = []
    for term in config.node_terms:
        features = tuple(encoding.term_features(term))
        inputs = encoding.inputs(dataset, features).seen()
        if _map_type(term) == "explicit":
            explicit = ExplicitMap.of(inputs, dtype)
            observer.note(f"term {term.name}: linear kernel, explicit map, {explicit.size:,} features")
            fitted.append(_FittedTerm(term, features, explicit, None))
            continue
        residual = None
        if term.name in stored:
            chosen = stored[term.name]
            observer.note(
                f"term {term.name}: {chosen.kernel.type} kernel, {len(chosen.pivots):,} pivots of the basis file"
            )
        else:
            chosen, residual = _select(term, features, inputs, dataset, config, workers, observer)
        reduced = ReducedMap.of(inputs, chosen.kernel, chosen.pivots, chosen.curve, workers, dtype, residual)
        fitted.append(_FittedTerm(term, features, reduced, chosen))
    return fitted


def _outside(
    encoding: Encoding,
    dataset: Dataset,
    fitted: Sequence[_FittedTerm],
    posterior: Posterior,
    theta: np.ndarray,
    certify: str,
) -> float:
    """What leaving the span of the pivots could still gain, summed over reduced terms."""
    if all(term.basis is None for term in fitted):
        return 0.0
    errors = posterior.errors(theta)
    total = 0.0
    for term, sigma2 in zip(fitted, posterior.sigma2, strict=False):
        if term.basis is None:
            continue
        if certify == "exact":
            inputs = encoding.inputs(dataset, term.features).seen()
            kernel = term.basis.kernel
            total += certificates.bound(errors, term.map, inputs, kernel, float(sigma2), posterior.workers)
        else:
            total += certificates.estimate(errors, term.map, float(sigma2), posterior.workers)
    return total


def _model_term(term: _FittedTerm, weights: np.ndarray) -> Term:
    if term.basis is None:
        return ExplicitTerm(term.config.name, term.features, np.ascontiguousarray(weights))
    return KernelTerm(
        term.config.name,
        term.features,
        term.basis.kernel,
        term.basis.pivots,
        term.basis.lines,
        np.ascontiguousarray(term.map.dual(weights)),
    )
