"""What is certified is true of the kernel that was named: bounds against parameters that a reference reaches."""

from __future__ import annotations

import pytest

from certificates import Fit, configured, corpus_of, outcome
from kcrf_core.encoding import fit_encoding
from kcrf_core.objective.solvers import Progress
from kcrf_core.system import Workers
from kcrf_core.training import train
from listening import Recorder

STEPS = 300  # of the reference, which works in software where extended precision is no machine type

# Smooth kernels, weak priors: single precision made bounds that were above the optimum.
HARD = [
    Fit("reduced", 1e8, 0.05, 1.0, 1e-3, "single", 3, 1),
    pytest.param(Fit("reduced", 1e6, 0.05, 1.0, 1e-5, "single", 3, 6), marks=pytest.mark.slow),
    pytest.param(Fit("full", 1e6, 0.3, 30.0, 1e-3, "single", 3, 6), marks=pytest.mark.slow),
    Fit("growing", 1e7, 0.1, 1.0, 1e-3, "single", 2, 6),
    Fit("explicit", 1e8, 1.0, 300.0, 1e-4, "single", 3, 6),
]


def trained(fit, **more):
    config, listener = configured(fit), Recorder()
    encoding, dataset = fit_encoding(config, corpus_of(fit))
    with Workers(1) as workers:
        model, report = train(encoding, dataset, config, workers=workers, observer=listener, **more)
    return model, report, listener


@pytest.mark.parametrize("fit", HARD, ids=lambda fit: f"{fit.map}, {fit.precision}, sigma2 {fit.sigma2:g}")
def test_no_bound_is_above_a_p_that_is_reached(fit):
    found = outcome(fit, STEPS)
    assert found.reason == "certified" and (found.value - found.lower) <= fit.tolerance * found.lower
    assert found.lower <= found.reached <= found.value + 1e-9


@pytest.mark.parametrize("seed", [1000, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1001, 1002))])
def test_random_fits(seed):
    """A few of those that `python tests/certificates.py 500` goes through."""
    found = outcome(Fit.draw(seed), STEPS)
    assert found.lower <= found.reached


@pytest.mark.parametrize("precision", ["single", "double"])
def test_a_full_map_has_every_input_that_double_precision_tells_apart(precision):
    """Few distinct inputs: what is left out is said, and the certificate holds for the whole space."""
    fit = Fit("full", 1e3, 0.05, 1.0, 1e-3, precision, 3, 5)
    model, report, listener = trained(fit)
    inputs = model.encoding.inputs(fit_encoding(configured(fit), corpus_of(fit))[1], model.terms[0].features)
    distinct, pivots = len(inputs.distinct()[0]), len(model.terms[0].pivots)
    [said] = [text for text in listener.notes if "full map" in text]
    assert pivots < distinct and f"{pivots} pivots (of {distinct} distinct inputs" in said
    if precision == "single":
        assert any("double is used" in text for text in listener.notes)
        assert model.info["config"]["training"]["precision"] == "double"
    assert report.result.reason == "certified"


@pytest.mark.parametrize("passes", [10, 14, 18])
def test_an_early_stop_keeps_what_was_learned(passes):
    """In single precision: the gap at the end is the best one on the way, not that of the last point alone."""
    fit = Fit("reduced", 10.0, 1.0, 1.0, 1e-4, "single", 3, 3, passes)
    _, report, listener = trained(fit)
    seemed = min(progress.gap for progress in listener.of(Progress))
    assert report.result.reason == "passes" and report.result.gap < 1.02 * seemed + 1e-5


def test_the_gain_outside_is_a_bound_away_from_the_optimum():
    """The fit is loose: what is still to gain inside the span counts, too."""
    fit = Fit("reduced", 30.0, 2.0, 1.0, 0.5, "single", 3, 3)
    _, report, _ = trained(fit, certify="exact")
    whole = outcome(Fit("full", 30.0, 2.0, 1.0, 1e-6, "double", 3, 3), STEPS)
    assert report.certify == "exact" and report.result.gap > 0.01
    assert report.result.value - report.outside <= whole.reached
