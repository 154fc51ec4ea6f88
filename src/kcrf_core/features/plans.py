"""Terms of a configuration planned and fitted to training data: their kernels, pivots and maps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..chains import NODE, STATE, Problem
from ..config import GRADIENT, Config, TermConfig
from ..encoding import Dataset, Encoding
from ..errors import ConfigError, DataError
from ..maps import conjunction_count, why_not
from ..objective.solvers import Observer
from ..system import Workers
from .conjunctions import MOST_CONJUNCTIONS, ConjunctionPlan
from .fitted import DataInMemory, FitContext, FittedTerm, TermInputs, TermPlan, TrainingData
from .linear import FittedFeatures, LinearPlan
from .pivots import ChosenPlan, FullPlan, GrowingPlan, PivotPlan, StoredPlan, pivot_limits
from .term import StoredBasis


def plan_term(term: TermConfig, data: TrainingData, basis: StoredBasis | None, rehearse: bool = False) -> TermPlan:
    """Plan the map of a term that looks at the input, perhaps on pivots of a basis file.

    A basis that is to grow begins with a few pivots or, to `rehearse` with, has as many random ones as others.
    """
    inputs = data.inputs_of(tuple(data.encoding.term_features(term)))
    if term.map.select == GRADIENT and not rehearse:
        return GrowingPlan(term, inputs, pivot_limits(term, len(inputs.whole))[0])
    for stored in () if basis is None else basis.terms:
        if stored.name == term.name:
            return StoredPlan(term, inputs, len(stored.pivots), stored)
    kind = map_type(term, inputs)
    if kind == "full":
        return FullPlan(term, inputs, len(inputs.whole.distinct()[0]))
    if kind == "reduced":
        from ..maps import automatic_size

        size, enough = pivot_limits(term, len(inputs.whole))
        if term.map.select != GRADIENT:
            return ChosenPlan(term, inputs, size, enough, term.map.select)
        return ChosenPlan(term, inputs, min(size, automatic_size(len(inputs.whole))), enough, "random")
    if term.kernel.type == "linear":
        return LinearPlan(term, inputs)
    entries, reason = _conjunctions(term, inputs)
    if reason is None:
        return ConjunctionPlan(term, inputs, entries)
    raise ConfigError(f"term '{term.name}': map 'explicit' cannot hold this kernel: {reason}; 'reduced' can")


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
    entries, reason = _conjunctions(term, data)
    return "explicit" if reason is None and entries <= MOST_CONJUNCTIONS else "reduced"


def _conjunctions(term: TermConfig, data: TermInputs) -> tuple[int, str | None]:
    """Count conjunctions up to a term's degree, or return the reason why they cannot be enumerated."""
    entries = 0
    for inputs in data:
        reason = why_not(inputs, term.kernel.degree)
        if reason is not None:
            return entries, reason
        entries += conjunction_count(inputs, term.kernel.degree)
    return entries, None


def select_bases(
    encoding: Encoding, dataset: Dataset, config: Config, workers: Workers, observer: Observer
) -> StoredBasis:
    """Choose pivots for every term that needs them."""
    context = FitContext(DataInMemory(encoding, dataset), config, workers, observer)
    found = []
    for term in config.mapped_terms:
        plan = plan_term(term, context.data, None)
        if plan.data.is_empty:
            observer.report(f"warning: {_no_features(config, term)}: it gets no pivots")
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

    If they `rehearse`, those whose basis is to grow are still to be planned and fitted without that.
    """
    context = FitContext(DataInMemory(encoding, dataset), config, workers, observer)
    return fit_to(context, basis, rehearse)


def fit_to(
    context: FitContext,
    basis: StoredBasis | None,
    rehearse: bool = False,
    chosen: Mapping[str, Callable[[], FittedTerm]] | None = None,
) -> list[FittedTerm]:
    """Fit terms to partitions of data; pivots may be stored, or `chosen` before for terms of these names.

    A term of whose features the data has none is left out; it is an error if no term is left that looks at the input.
    """
    config, observer, labels = context.config, context.observer, len(context.data.encoding.labels)
    fitted: list[FittedTerm] = []
    for term in config.mapped_terms:
        if chosen and term.name in chosen:
            fitted.append(chosen[term.name]())
            continue
        # One plan at a time: each holds the inputs of its term.
        plan = plan_term(term, context.data, basis, rehearse)
        if config.training.c1 and plan.has_pivots:
            raise ConfigError(
                f"term '{term.name}': 'c1' is for weights of features, and this term has pivots: leave out 'c1', "
                "or use a kernel with an explicit map (linear, or poly on columns of text)",
                settings=["c1"],
            )
        found = None if plan.data.is_empty else plan.fit(context)
        if found is not None and found.rows:
            fitted.append(found)
        else:
            observer.report(f"warning: {_no_features(config, term)}: the model is trained without it")
    if not fitted:
        raise DataError(f"{_no_features(config, *config.mapped_terms)}: the model would ignore the input")
    return fitted + [FittedTerm(term.clique, label_count=labels, config=term) for term in config.label_terms]


def _no_features(config: Config, *terms: TermConfig) -> str:
    """Explain why the maps of terms have no columns."""
    limits = {
        "min_count": max([config.min_count, *(feature.min_count or 1 for feature in config.features or ())]),
        "cut_off": max(term.map.cut_off for term in terms),
    }
    given = [f"{value:,} times ('{name}')" for name, value in limits.items() if value > 1]
    which = f"{'term' if len(terms) == 1 else 'terms'} {', '.join(term.name for term in terms)}"
    return f"no feature of {which} occurs in the data" + (" at least " + " or ".join(given) if given else "")


def observed_only(
    fitted: Sequence[FittedTerm], problem: Problem, workers: Workers, observer: Observer
) -> list[FittedTerm]:
    """Return the terms; those with explicit maps have weights for pairs that the problem has.

    Such a pair of a feature and a label, for edge-x terms of a feature and two labels, is a place in W [D, C]; other
    weights are fixed at zero, as CRFsuite does by default.
    """
    if not any(isinstance(term, FittedFeatures) for term in fitted):
        raise ConfigError(
            "'observed_features' is for explicit maps, such as that of the linear kernel, and no term has one",
            settings=["observed_features"],
        )
    terms = _by_label(fitted, problem)
    for j, term in enumerate(terms):
        if isinstance(term, FittedFeatures):
            terms[j] = term.observed(problem, workers, observer)
        elif term.basis is not None:  # pivots are inputs, not features of them
            name = term.config.name
            observer.note(f"term {name}: pivots keep all coefficients, features that are observed have none here")
    return terms


def frequent_only(fitted: Sequence[FittedTerm], problem: Problem, least: float, workers: Workers) -> list[FittedTerm]:
    """Return the terms without weights of pairs of a feature and a label whose values sum to less than `least`."""
    terms = _by_label(fitted, problem)
    for j, term in enumerate(terms):
        if not isinstance(term, FittedFeatures) or (own := term.map) is None:
            continue
        rows, columns = term.config.clique.observed_columns(problem)
        labels = np.zeros((problem.positions, term.columns))
        labels[rows, columns] = 1
        found = own.adjoint(own.adjoint_rows(labels, slice(0, len(labels)), None), labels, workers, None, None)
        assert isinstance(found, np.ndarray)
        sums = found.ravel()
        kept = np.arange(len(sums)) if term.places is None else term.places.kept
        terms[j] = term.keeping(kept[sums[kept] >= least])
    return terms


def _by_label(fitted: Sequence[FittedTerm], problem: Problem) -> list[FittedTerm]:
    """Return the terms with a column of weights for each label: a `node` term of two labels becomes a `state` term."""
    if NODE.columns(problem.label_count) == problem.label_count:
        return list(fitted)
    return [
        replace(term, clique=STATE, config=replace(term.config, type=STATE.name)) if term.clique is NODE else term
        for term in fitted
    ]
