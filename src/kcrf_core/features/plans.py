"""Terms of a configuration planned and fitted to training data: their kernels, pivots and maps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from ..chains import Clique
from ..config import GRADIENT, MAPS, Config, TermConfig
from ..encoding import Dataset, Encoding
from ..errors import ConfigError, DataError
from ..kernels import Inputs
from ..maps import conjunction_count, why_not
from ..objective import Objective, Vector
from ..objective.solvers import Observer
from ..system import Workers
from .bases import StoredBasis, TermBasis
from .conjunctions import MOST_CONJUNCTIONS, ConjunctionPlan
from .fitted import FitContext, FittedTerm, TermPlan
from .linear import AffinePlan, LinearPlan
from .partitions import DataInMemory, TermInputs, TrainingData
from .pivots import PivotPlan, StoredPlan, full_plan, growing_plan, reduced_plan


def explicit_plan(term: TermConfig, data: TermInputs) -> TermPlan:
    """Plan the explicit map of a term; an error where its kernel has none on these inputs."""
    if term.kernel.type == "linear":
        return LinearPlan(term, data)
    entries, reason, degree = 0, None, term.kernel.degree
    for inputs in data:
        reason = why_not(inputs, degree)
        if reason is not None:
            break
        entries += conjunction_count(inputs, degree)
    if reason is None:
        return ConjunctionPlan(term, data, entries)
    if degree == 1 and not term.kernel.cosine:
        return AffinePlan(term, data)
    raise ConfigError(f"term '{term.name}': map 'explicit' cannot hold this kernel: {reason}; 'reduced' can")


# By the word for a map in the configuration.
PLANS = dict(zip(MAPS[1:], (explicit_plan, reduced_plan, full_plan), strict=True))


def plan_term(term: TermConfig, data: TrainingData, stored: TermBasis | None, rehearse: bool = False) -> TermPlan:
    """Plan the map of a term that looks at the input, perhaps on pivots that are stored already.

    A basis that is to grow begins with a few pivots or, to `rehearse` with, has as many random ones as others.
    """
    inputs = data.inputs_of(tuple(data.encoding.term_features(term)))
    if term.map.select == GRADIENT and not rehearse:
        return growing_plan(term, inputs)
    if stored is not None:
        return StoredPlan(term, inputs, len(stored.pivots), stored)
    return PLANS[map_type(term, inputs)](term, inputs)


def map_type(term: TermConfig, data: TermInputs) -> str:
    """Return the map of a term; `auto` is explicit where that is exact, unless pivots were asked for.

    How much memory there is must not decide it, or the result would depend on that.
    """
    if term.map.type != "auto":
        return term.map.type
    pivots = term.map.size is not None or term.map.select == GRADIENT
    if pivots or not term.kernel.kernel.explicit:
        return "reduced"
    if term.kernel.type == "linear":
        return "explicit"
    degree, entries = term.kernel.degree, 0
    if degree == 1 and not term.kernel.cosine:
        return "explicit"
    for inputs in data:
        if why_not(inputs, degree) is not None:
            return "reduced"
        entries += conjunction_count(inputs, degree)
        if entries > MOST_CONJUNCTIONS:
            return "reduced"
    return "explicit"


def stored_bases(basis: StoredBasis | None) -> dict[str, TermBasis]:
    """The pivots of a basis file by the names of terms."""
    return {} if basis is None else {term.name: term for term in basis.terms}


def select_bases(
    encoding: Encoding, dataset: Dataset, config: Config, workers: Workers, observer: Observer
) -> StoredBasis:
    """Pivots for every term that needs them."""
    context = FitContext(DataInMemory(encoding, dataset), config, workers, observer)
    found = []
    for term in config.mapped_terms:
        plan = plan_term(term, context.data, None)
        if plan.inputs.is_empty:
            observer.note(f"warning: {_no_features(config, term)}: it gets no pivots")
        elif isinstance(plan, PivotPlan):
            found.append(plan.chosen(context)[0])
        else:
            observer.note(f"term {term.name}: {term.kernel.title} kernel, explicit map; it needs no pivots")
    if not found:
        raise ConfigError(
            "no term needs pivots: give a kernel such as poly, or a map such as reduced", settings=["kernel", "map"]
        )
    return StoredBasis(encoding, config, tuple(found))


def fit_terms(
    encoding: Encoding,
    dataset: Dataset,
    config: Config,
    basis: StoredBasis | None,
    workers: Workers,
    observer: Observer,
    rehearse: bool = False,
) -> list[FittedTerm]:
    """Fit terms to data in memory; those with maps first, in the order of the configuration, then those over labels.

    If they `rehearse`, `begin_growth` is still to be called for those whose basis is to grow.
    """
    context = FitContext(DataInMemory(encoding, dataset), config, workers, observer)
    return fit_to(context, stored_bases(basis), rehearse)


def fit_to(
    context: FitContext,
    stored: Mapping[str, TermBasis],
    rehearse: bool = False,
    chosen: Mapping[str, Callable[[], FittedTerm]] | None = None,
) -> list[FittedTerm]:
    """Fit terms to partitions of data; pivots may be stored, or `chosen` before for terms of these names.

    A term of whose features the data has none is left out; it is an error if no term is left that looks at the input.
    """
    config, observer = context.config, context.observer
    fitted: list[FittedTerm] = []
    for term in config.mapped_terms:
        if chosen and term.name in chosen:
            fitted.append(chosen[term.name]())
            continue
        # One plan at a time: each holds the inputs of its term.
        plan = plan_term(term, context.data, stored.get(term.name), rehearse)
        if config.training.c1 and plan.has_pivots:
            raise ConfigError(
                f"term '{term.name}': 'c1' makes weights of features sparse, and this term has pivots; leave 'c1' out, "
                "or take a kernel with an explicit map (linear, or poly on columns of text)",
                settings=["c1"],
            )
        found = None if plan.data.is_empty else plan.fit(context)
        if found is not None and found.map.size:
            fitted.append(found)
        else:
            observer.note(f"warning: {_no_features(config, term)}: the model is trained without it")
    if not fitted:
        raise DataError(f"{_no_features(config, *config.mapped_terms)}: nothing would look at the input")
    return fitted + [FittedTerm(term, (), None) for term in config.label_terms]


def _no_features(config: Config, *terms: TermConfig) -> str:
    """Why the maps of terms have no columns."""
    limits = {
        "min_count": max([config.min_count, *(feature.min_count or 1 for feature in config.features or ())]),
        "cut_off": max(term.map.cut_off for term in terms),
    }
    given = [f"{value:,} times ('{name}')" for name, value in limits.items() if value > 1]
    return f"no feature of {_names(terms)} occurs in the data" + (" at least " + " or ".join(given) if given else "")


def _names(terms: Sequence[TermConfig]) -> str:
    return f"{'term' if len(terms) == 1 else 'terms'} {', '.join(term.name for term in terms)}"


def begin_growth(
    fitted: Sequence[FittedTerm],
    encoding: Encoding,
    dataset: Dataset,
    config: Config,
    workers: Workers,
    observer: Observer,
) -> list[FittedTerm]:
    """Return the terms; those whose basis is to grow have their first pivots."""
    context = FitContext(DataInMemory(encoding, dataset), config, workers, observer)
    return [term.begun_growth(context) for term in fitted]


def outside_gain(
    encoding: Encoding,
    dataset: Dataset,
    fitted: Sequence[FittedTerm],
    objective: Objective,
    theta: Vector,
    certify: str,
    workers: Workers,
) -> float:
    """Bound or estimate what leaving the span of the maps could still gain, summed over terms."""
    found: dict[Clique, np.ndarray] = {}

    def errors(clique: Clique) -> np.ndarray:
        if clique not in found:
            found[clique] = objective.errors(theta, clique)
        return found[clique]

    def inputs(term: FittedTerm) -> Inputs:
        return encoding.inputs(dataset, term.features).seen()

    total = 0.0
    for term, sigma2 in zip(fitted, objective.sigma2, strict=True):
        errors_of, inputs_of = partial(errors, term.config.clique), partial(inputs, term)
        total += term.outside_gain(errors_of, inputs_of, sigma2, certify, workers)
    return total
