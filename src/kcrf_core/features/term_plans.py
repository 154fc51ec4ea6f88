"""Terms of a configuration planned and fitted to training data: their kernels, pivots and maps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ..chains import Clique
from ..config import GRADIENT, MAPS, Config, TermConfig
from ..encoding import Dataset, Encoding
from ..errors import ConfigError, DataError
from ..kernels import Inputs
from ..maps import conjunction_count, why_not
from ..objective import Posterior, Vector
from ..solvers import Observer
from ..system import Workers
from .bases import StoredBasis, TermBasis
from .explicit_terms import MOST_CONJUNCTIONS, explicit_plan
from .pivot_terms import StoredPlan, full_plan, growing_plan, reduced_plan
from .terms import DTYPES, FitContext, FittedLabels, FittedTerm, TermPlan

__all__ = ["DTYPES", "FittedTerm", "begin_growth", "fit_terms", "outside_gain", "plan_term", "select_bases"]

# By the word for a map in the configuration.
PLANS = dict(zip(MAPS[1:], (explicit_plan, reduced_plan, full_plan), strict=True))


def plan_term(
    term: TermConfig, encoding: Encoding, dataset: Dataset, stored: TermBasis | None, rehearse: bool = False
) -> TermPlan:
    """How a term that looks at the input is fitted, perhaps on pivots that are stored already.

    A basis that is to grow begins with a few pivots or, to `rehearse` with, has as many random ones as others.
    """
    features = tuple(encoding.term_features(term))
    inputs = encoding.inputs(dataset, features).seen()
    if term.map.select == GRADIENT and not rehearse:
        return growing_plan(term, features, inputs)
    if stored is not None:
        return StoredPlan(term, features, inputs, len(stored.pivots), stored)
    return PLANS[map_type(term, inputs)](term, features, inputs)


def map_type(term: TermConfig, inputs: Inputs) -> str:
    """The map of a term; `auto` is explicit where that is exact, unless pivots were asked for.

    How much memory there is must not decide it, or the result would depend on that.
    """
    if term.map.type != "auto":
        return term.map.type
    pivots = term.map.size is not None or term.map.select == GRADIENT
    if pivots or not term.kernel.kernel.explicit:
        return "reduced"
    if term.kernel.type == "linear":
        return "explicit"
    degree = term.kernel.degree
    if degree == 1 and not term.kernel.cosine:
        return "explicit"
    fits = why_not(inputs, degree) is None and conjunction_count(inputs, degree) <= MOST_CONJUNCTIONS
    return "explicit" if fits else "reduced"


def stored_bases(basis: StoredBasis | None) -> dict[str, TermBasis]:
    """The pivots of a basis file by the names of terms."""
    return {} if basis is None else {term.name: term for term in basis.terms}


def select_bases(
    encoding: Encoding, dataset: Dataset, config: Config, workers: Workers, observer: Observer
) -> StoredBasis:
    """Pivots for every term that needs them."""
    context = FitContext(encoding, dataset, config, workers, observer)
    found = []
    for term in config.mapped_terms:
        plan = plan_term(term, encoding, dataset, None)
        if plan.inputs.is_empty:
            observer.note(f"warning: {_no_features(config, term)}: it gets no pivots")
        elif plan.has_pivots:
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
    """Terms with maps first, in the order of the configuration, then those over labels alone.

    A term of whose features the data has none is left out; it is an error if no term is left that looks at the input.
    If they `rehearse`, `begin_growth` is still to be called for those whose basis is to grow.
    """
    context = FitContext(encoding, dataset, config, workers, observer)
    stored = stored_bases(basis)
    fitted: list[FittedTerm] = []
    for term in config.mapped_terms:
        # One plan at a time: each holds the inputs of its term.
        plan = plan_term(term, encoding, dataset, stored.get(term.name), rehearse)
        if config.training.c1 and plan.has_pivots:
            raise ConfigError(
                f"term '{term.name}': 'c1' makes weights of features sparse, and this term has pivots; leave 'c1' out, "
                "or take a kernel with an explicit map (linear, or poly on columns of text)",
                settings=["c1"],
            )
        found = None if plan.inputs.is_empty else plan.fit(context)
        if found is not None and found.map.size:
            fitted.append(found)
        else:
            observer.note(f"warning: {_no_features(config, term)}: the model is trained without it")
    if not fitted:
        raise DataError(f"{_no_features(config, *config.mapped_terms)}: nothing would look at the input")
    return fitted + [FittedLabels(term) for term in config.label_terms]


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
    """The same terms; those whose basis is to grow have their first pivots."""
    context = FitContext(encoding, dataset, config, workers, observer)
    return [term.begun_growth(context) for term in fitted]


def outside_gain(
    encoding: Encoding,
    dataset: Dataset,
    fitted: Sequence[FittedTerm],
    posterior: Posterior,
    theta: Vector,
    certify: str,
    workers: Workers,
) -> float:
    """What leaving the span of the maps could still gain, summed over terms."""
    found: dict[Clique, np.ndarray] = {}

    def errors(clique: Clique) -> np.ndarray:
        if clique not in found:
            found[clique] = posterior.errors(theta, clique)
        return found[clique]

    def inputs(term: FittedTerm) -> Inputs:
        return encoding.inputs(dataset, term.features).seen()

    total = 0.0
    for term, sigma2 in zip(fitted, posterior.sigma2, strict=True):
        errors_of, inputs_of = partial(errors, term.config.clique), partial(inputs, term)
        total += term.outside_gain(errors_of, inputs_of, sigma2, certify, workers)
    return total
