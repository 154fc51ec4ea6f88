"""An L1 penalty: the optimum by brute force, bounds, what merged columns do to it, models, and what refuses it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import minimize
from tests.models import find_conjunctions

from kcrf_core.chains import EDGE, NODE, Problem, chain
from kcrf_core.config import parse_config
from kcrf_core.corpora import read_corpus
from kcrf_core.encoding import fit_encoding
from kcrf_core.errors import ConfigError
from kcrf_core.estimator import KernelCRF
from kcrf_core.kernels import PolynomialKernel
from kcrf_core.maps import ExplicitMap, KeptPlaces, RepeatedMap, SparseWeights
from kcrf_core.model import Model
from kcrf_core.objective import HessianBlocks, Mixture, Objective, ObjectiveTerm, SparseDual
from kcrf_core.objective.solvers import CERTIFIED, PASSES, SOLVERS, Run, proximal
from kcrf_core.objective.solvers.bundle import POINTS, Bundle
from kcrf_core.system import Workers
from kcrf_core.training import WarmStart, train
from problems import on_threads, random_inputs, random_offsets
from toy_engine import ToyEngine, ToyVector, numbers


def random_problem(rng, Y, sequences=6, longest=4):
    offsets = random_offsets(rng, sequences, longest)
    return Problem(rng.integers(0, Y, offsets[-1]).astype(np.int32), offsets, rng.random(sequences) + 0.5, Y)


def sparse_objective(rng, workers, Y=3, sigma2=(5.0, 2.0), c=0.3, dtype=np.float64):
    problem = random_problem(rng, Y)
    feature_map = ExplicitMap.of(random_inputs(rng, problem.positions, 2, 2), dtype)
    terms = [
        ObjectiveTerm(NODE, sigma2[0], feature_map, threshold=c * (0.5 + rng.random(feature_map.size))),
        ObjectiveTerm(EDGE, sigma2[1], threshold=c),
    ]
    return on_threads(problem, terms, workers, dtype)


def by_halves(objective):
    """The optimum of P by bounded L-BFGS on positive and negative parts of weights, which P is smooth in."""
    D, c = objective.size, np.concatenate([objective.thresholds] * 2)
    precision = np.repeat(1 / objective.sigma2, [block.stop - block.start for block in objective.blocks])

    def value(halves):
        theta = halves[:D] - halves[D:]
        log_likelihood, slope = objective.engine.evaluate(theta)
        slope += precision * theta
        return precision @ theta**2 / 2 - log_likelihood + c @ halves, np.concatenate([slope, -slope]) + c

    options = {"maxiter": 20_000, "maxfun": 20_000, "ftol": 1e-16, "gtol": 1e-10, "maxcor": 30}
    return minimize(value, np.zeros(2 * D), jac=True, method="L-BFGS-B", bounds=[(0, None)] * (2 * D), options=options)


@pytest.mark.each_choice
@pytest.mark.parametrize("Y", [2, 3])
@pytest.mark.parametrize("sigma2", [(5.0, 2.0), (np.inf, np.inf), (np.inf, 1.0)])
def test_the_optimum_is_that_of_brute_force(rng, workers, Y, sigma2):
    objective = sparse_objective(rng, workers, Y, sigma2)
    expected = by_halves(objective)
    # Without a variance the bound is off by the slope, and P only by its square: it shows no more than half the digits.
    tolerance = 1e-8 if np.isfinite(sigma2).all() else 1e-6
    found = SOLVERS["auto"](objective, np.zeros(objective.size), Run(tolerance, 20_000))
    assert found.reason == CERTIFIED
    np.testing.assert_allclose(found.value, expected.fun, rtol=1e-6)
    assert found.value - 1.1 * tolerance * found.value <= found.lower <= expected.fun * (1 + 1e-12)
    assert 0 < np.count_nonzero(found.theta == 0) < objective.size


@pytest.mark.parametrize("sigma2", [[2.0, 0.7], pytest.param([np.inf, np.inf], marks=pytest.mark.slow)])
def test_the_toy_engine_finds_the_same(rng, workers, sigma2):
    Y, offsets = 3, np.array([0, 4, 5, 7, 10])
    problem = Problem(rng.integers(0, Y, 10).astype(np.int32), offsets, rng.random(4) + 0.5, Y)
    Phi = rng.normal(size=(10, 4))
    feature_map = ExplicitMap(scipy.sparse.csr_array((10, 0)), Phi, np.float64)
    terms = [ObjectiveTerm(NODE, sigma2[0], feature_map, threshold=0.2), ObjectiveTerm(EDGE, sigma2[1], threshold=0.2)]
    threads = on_threads(problem, terms, workers)
    toy = Objective(ToyEngine(problem, [Phi]), sigma2, ToyVector(threads.thresholds))
    run, expected = Run(1e-6, 5000), SOLVERS["auto"](threads, np.zeros(threads.size), Run(1e-6, 5000))
    found = SOLVERS["proximal"](toy, toy.vectors.zeros(), run)
    assert found.reason == expected.reason == CERTIFIED
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-6)
    if np.isfinite(sigma2).all():  # else some other parameters are as good
        np.testing.assert_allclose(numbers(found.theta), expected.theta, atol=5e-3)


@pytest.mark.parametrize("Y", [2, 3])
def test_the_diagonal_is_that_of_the_hessian(rng, workers, Y):
    """With sequences of one position, where nothing is left out: also where some places alone have parameters."""
    problem = Problem(rng.integers(0, Y, 7).astype(np.int32), np.arange(8), rng.random(7) + 0.5, Y)
    ones, real = (rng.random((7, 5)) < 0.5) * np.sqrt([1, 2, 3, 1, 1]), rng.normal(size=(7, 2))
    maps = [
        ExplicitMap(scipy.sparse.csr_array(sparse), real, np.float64) for sparse in (ones, ones * rng.random((7, 5)))
    ]
    maps.append(RepeatedMap(maps[1].subset(np.arange(4)), np.array([0, 1, 2, 3, 1, 0, 1]), workers))
    columns = 1 if Y == 2 else Y
    kept = KeptPlaces(np.flatnonzero(rng.random(7 * columns) < 0.6), 7, columns)
    for feature_map, places in product(maps, (None, kept)):
        terms = [ObjectiveTerm(NODE, 2.0, feature_map, places, 0.1), ObjectiveTerm(EDGE, 3.0, threshold=0.1)]
        objective = on_threads(problem, terms, workers)
        theta = rng.normal(size=objective.size)
        exact = [objective.hessian_product(theta, unit)[k] for k, unit in enumerate(np.eye(objective.size))]
        own = objective.blocks[0]
        found = objective.hessian_blocks(theta, diagonals=True).diagonal()
        np.testing.assert_allclose(found[own], exact[own], rtol=1e-10)


def test_looks_at_the_curvature_on_the_way_lead_to_the_same_optimum(rng, workers, monkeypatch):
    objective = sparse_objective(rng, workers, 3, (np.inf, np.inf))
    monkeypatch.setattr(proximal, "FIRST_RENEWAL", 3)
    looks, diagonal = [], HessianBlocks.diagonal
    monkeypatch.setattr(HessianBlocks, "diagonal", lambda *arguments: looks.append(diagonal(*arguments)) or looks[-1])
    found = SOLVERS["auto"](objective, np.zeros(objective.size), Run(1e-6, 20_000))
    assert found.reason == CERTIFIED and len(looks) >= 3 and (looks[0] != looks[1]).any()
    np.testing.assert_allclose(found.value, by_halves(objective).fun, rtol=1e-6)


@pytest.fixture
def mostly_alone(monkeypatch):
    """Steps with the working set alone from the first one on, however large it is."""
    monkeypatch.setattr(proximal, "FIRST_RENEWAL", 1)
    monkeypatch.setattr(proximal, "SMALL", 1.0)
    monkeypatch.setattr(proximal, "STEPS_ALONE", 4)


@pytest.mark.parametrize("sigma2", [(5.0, 2.0), (np.inf, 1.0)])
def test_steps_with_the_working_set_alone_lead_to_the_same_optimum(rng, workers, monkeypatch, mostly_alone, sigma2):
    objective = sparse_objective(rng, workers, 3, sigma2)
    sizes, evaluate = [], Run.evaluate_part
    watched = lambda run, part, *own: sizes.append(part.size) or evaluate(run, part, *own)  # noqa: E731
    monkeypatch.setattr(Run, "evaluate_part", watched)
    found = SOLVERS["auto"](objective, np.zeros(objective.size), Run(1e-6, 20_000))
    assert found.reason == CERTIFIED and len(sizes) > 6 and min(sizes) < objective.size
    np.testing.assert_allclose(found.value, by_halves(objective).fun, rtol=1e-6)


def test_a_run_that_ends_between_passes_over_all_parameters_keeps_its_last_step(rng, workers, mostly_alone):
    objective, seen = sparse_objective(rng, workers), []
    for passes in range(3, 12):
        seen.clear()
        run = Run(1e-9, passes, lambda progress: seen.append(progress.value))
        found = SOLVERS["auto"](objective, np.zeros(objective.size), run)
        assert found.reason == PASSES and len(seen) >= passes
        np.testing.assert_allclose(found.value, min(seen), rtol=1e-12)


def test_a_step_whose_gain_rounding_hides_is_taken_by_the_slope(rng, workers):
    """P is made to rise a little from pass to pass; in double precision this would end the steps."""
    objective = sparse_objective(rng, workers, dtype=np.float32)
    theta, run = np.zeros(objective.size), Run(1e-9, 100)
    model, now = proximal.QuadraticModel(objective, theta), objective.evaluate(theta)
    for _ in range(8):
        theta, now = proximal.step(objective, theta, now, model, run, objective.evaluate)
    before = objective.gradient_length(theta, now)

    def rising(share):
        return lambda theta: replace(objective.evaluate(theta), value=now.value * (1 + share))

    for _ in range(8):
        theta, now = proximal.step(objective, theta, now, model, run, rising(5e-7))
    assert objective.gradient_length(theta, now) < before / 3
    assert proximal.step(objective, theta, now, model, run, rising(2e-6)) is None


@pytest.mark.parametrize("repetitions", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_bounds_are_never_above_the_optimum(rng, workers, repetitions):
    for sigma2 in [(5.0, 2.0), (50.0, 50.0), (np.inf, np.inf), (np.inf, 3.0)] * repetitions:
        objective = sparse_objective(rng, workers, int(rng.integers(2, 4)), sigma2)
        best = SOLVERS["auto"](objective, np.zeros(objective.size), Run(1e-6, 20_000))
        tight = 0
        for scale in (1.0, 0.3, 0.1, 0.1, 0.03, 0.01, 0.003, 0.001):
            theta = best.theta + scale * rng.normal(size=objective.size)
            found = objective.evaluate(theta)
            assert found.lower <= best.value * (1 + 1e-12)
            proven = objective.proven(theta)
            assert proven.lower <= best.value
            # What mixing brings is not less than nothing, and rounding takes next to nothing off.
            assert proven.lower >= max(found.lower, 0) * (1 - 1e-9) - 1e-9
            assert (
                proven.lower <= found.dual.bound(mixture=objective.mixture([theta], [1.0])) <= best.value * (1 + 1e-12)
            )
            tight += proven.lower > 0.9 * best.value
        assert tight


@pytest.mark.parametrize("sigma2", [(5.0, 2.0), (50.0, 50.0), (np.inf, 3.0)])
def test_bounds_of_several_points_by_slopes_at_some_places_are_no_better_than_by_all(rng, workers, sigma2):
    objective = sparse_objective(rng, workers, 3, sigma2, c=0.1)
    best = SOLVERS["auto"](objective, np.zeros(objective.size), Run(1e-6, 20_000))
    thetas = [best.theta + 0.02 * rng.normal(size=objective.size) for _ in range(POINTS)]
    points = [objective.evaluate(theta) for theta in thetas]
    beyond = np.unique(np.concatenate([point.dual.places for point in points]))
    assert len(beyond) > 10
    bounds = []
    for near in (None, beyond, beyond[::2], beyond[:0]):
        bundle = Bundle(near)
        for theta, point in zip(thetas, points, strict=True):
            bound = bundle.add(objective, theta, point)
        bounds.append(bound.proven(objective))
    assert bounds[0] > max(point.lower for point in points) and bounds[0] <= best.value
    np.testing.assert_allclose(bounds[1], bounds[0], rtol=1e-9)
    assert max(bounds[2:]) < bounds[0] and min(bounds[2:]) > 0


def test_values_of_the_working_set_are_those_of_the_whole_vectors(rng, workers, monkeypatch):
    """They are looked up once, and change with steps, with parameters that join, and with those that leave."""
    monkeypatch.setattr(proximal, "FEWEST_NEW", 5)
    problem = random_problem(rng, 3, 30, 8)
    feature_map = ExplicitMap.of(random_inputs(rng, problem.positions, 4, 2), np.float64)
    terms = [ObjectiveTerm(NODE, 5.0, feature_map, threshold=0.3), ObjectiveTerm(EDGE, 2.0, threshold=0.3)]
    objective = on_threads(problem, terms, workers)
    theta = objective.vectors.from_array(np.where(rng.random(objective.size) < 0.1, 0.3, 0.0))
    run, given = Run(1e-9, 60, proves=False), []
    minimise = proximal.QuadraticModel.minimise
    monkeypatch.setattr(proximal.QuadraticModel, "minimise", lambda *own: given.append(own) or minimise(*own))
    model, now, sizes = proximal.QuadraticModel(objective, theta), run.evaluate(objective, theta), []
    for _ in range(25):
        before, of_whole = len(model), (theta, now.gradient, objective.thresholds)
        start, _, _ = model.step(theta, now)
        assert len(model) <= before + 5  # a few join at once, by the size of the problem
        for values, vector in zip(given[-1][1:4], of_whole, strict=True):
            np.testing.assert_array_equal(values, vector[model.columns])
        np.testing.assert_array_equal(start, theta[model.columns])
        reached = proximal.step(objective, theta, now, model, run)
        if reached is None:
            break
        theta, now = reached
        sizes.append(len(model))
    assert any(later > earlier for earlier, later in pairwise(sizes))
    assert any(later < earlier for earlier, later in pairwise(sizes))


def test_steps_begin_with_a_higher_power_of_the_curvature_than_without_a_penalty(rng, workers):
    objective = sparse_objective(rng, workers)
    theta = objective.vectors.zeros()
    model, now = proximal.QuadraticModel(objective, theta), objective.evaluate(theta)
    _, direction, _ = model.step(theta, now)
    slope, least = now.gradient[model.columns], objective.thresholds[model.columns]
    curvature = objective.initial_curvature()[model.columns] ** 0.65
    length = np.sqrt((slope**2 / curvature).sum())
    np.testing.assert_allclose(direction, -np.sign(slope) * (abs(slope) - least) / (length * curvature), rtol=1e-10)


def test_the_bound_is_the_best_of_all_shares(rng):
    for beyond, infinite in product((0, 1, 300), (False, True)):
        thresholds, variances = rng.uniform(0.1, 1, beyond), rng.uniform(0.1, 50, beyond)
        if infinite:
            variances[:1] = np.inf
        dual = SparseDual(20.0, np.arange(beyond), thresholds * (1 + rng.exponential(3, beyond)), thresholds, variances)
        gold = Mixture(rng.uniform(0.5, 2, 4), np.array([0.3, 0.7]), np.log(rng.uniform(0.01, 0.9, (2, 4))))
        for mixture in (None, gold):
            most = 0.0
            for share in np.linspace(1e-5, 1, 5_001):
                excess = np.maximum(share * dual.sizes - thresholds, 0.0)
                lost = np.where(excess > 1e-12, variances, 0.0) @ excess**2 / 2
                most = max(most, share * 20.0 + (mixture.gain(share) if mixture else 0.0) - lost)
            np.testing.assert_allclose(dual.bound(mixture=mixture), most, rtol=2e-4)
            assert dual.bound(mixture=mixture) >= most * (1 - 1e-7)


def test_points_have_the_penalty_in_p_and_not_in_the_gradient(rng, workers):
    objective = sparse_objective(rng, workers)
    smooth, theta = Objective(objective.engine, objective.sigma2), rng.normal(size=objective.size)
    found, without = objective.evaluate(theta), smooth.evaluate(theta)
    np.testing.assert_allclose(found.value, without.value + objective.thresholds @ abs(theta), rtol=1e-12)
    np.testing.assert_allclose(found.gradient, without.gradient, rtol=1e-12)
    np.testing.assert_allclose(objective.prior(theta) - objective.log_likelihood(theta), found.value, rtol=1e-10)
    slopes = found.gradient + np.sign(theta) * objective.thresholds
    np.testing.assert_allclose(objective.gradient_length(theta, found), np.linalg.norm(slopes), rtol=1e-10)
    at_zero = objective.evaluate(np.zeros(objective.size))
    soft = np.maximum(abs(at_zero.gradient) - objective.thresholds, 0)
    np.testing.assert_allclose(
        objective.gradient_length(np.zeros(objective.size), at_zero), np.linalg.norm(soft), rtol=1e-10
    )


# ----------------------------------------------------------------------------- training

WORDS = ["the", "a", "cat", "dog", "sees", "hears", "big", "small", "red"]


def text_corpus(rng, sequences=60, labels="NVX"):
    """Words that tell their labels, most of the time, and a tail of words seen once, which share columns."""
    rows, lengths = [], rng.integers(2, 7, sequences)
    for t in range(int(lengths.sum())):
        word = int(rng.integers(len(WORDS)))
        label = labels[word % len(labels)] if rng.random() < 0.9 else labels[int(rng.integers(len(labels)))]
        rows.append((WORDS[word], f"rare{t}" if rng.random() < 0.2 else "often", label))
    ends, at = np.cumsum(lengths), 0
    sentences = []
    for end in ends.tolist():
        sentences.append(rows[at:end])
        at = end
    return "\n\n".join("\n".join(" ".join(row) for row in sentence) for sentence in sentences) + "\n"


def trained(tmp_path, text, raw, threads=1, **more):
    path = tmp_path / "data.conll"
    path.write_text(text)
    config = parse_config(raw)
    encoding, dataset = fit_encoding(config, read_corpus(path))
    with Workers(threads) as workers:
        return train(encoding, dataset, config, workers=workers, **more)


def configuration(c1, sigma2, degree=1, tolerance=1e-6, **training):
    kernel = {"type": "linear"} if degree == 1 else {"type": "poly", "degree": degree}
    term = {"name": "node", "kernel": kernel, "map": "explicit"}
    fit = {"c1": c1, "sigma2": sigma2, "tolerance": tolerance, "precision": "double", **training}
    return {"terms": [term, {"type": "edge"}], "window": [-1, 0, 1], "training": fit}


def penalised(model, c1, sigma2):
    """What the prior adds to P for the weights of single features, as CRFsuite counts them."""
    total = 0.0
    for term in model.terms:
        weights = term.weights.dense() if isinstance(term.weights, SparseWeights) else term.weights
        each = term.by_labels(weights, len(model.labels))
        total += c1 * abs(each).sum() + (each**2).sum() / (2 * sigma2)
    for part in (model.edges.transitions, model.edges.start, model.edges.end):
        total += c1 * abs(part).sum() + (part**2).sum() / (2 * sigma2)
    return total


@pytest.mark.parametrize("labels", ["NV", "NVX"])
@pytest.mark.parametrize("observed", [False, True])
def test_features_that_share_a_column_have_the_penalty_of_single_ones(rng, tmp_path, monkeypatch, labels, observed):
    text, raw = text_corpus(rng, labels=labels), configuration(0.3, 4.0, observed_features=observed)
    monkeypatch.setattr("kcrf_core.maps.explicit.FEWEST_FEATURES", 2)
    merged, report = trained(tmp_path, text, raw)
    monkeypatch.setattr("kcrf_core.maps.explicit.FEWEST_FEATURES", 10**9)
    single, alone = trained(tmp_path, text, raw)
    assert report.parameters < alone.parameters
    np.testing.assert_allclose(report.result.value, alone.result.value, rtol=2e-6)
    for model, found in ((merged, report), (single, alone)):
        path = tmp_path / "data.conll"
        dataset = model.encoding.encode(read_corpus(path))
        scores, edges = model.potentials(dataset)
        loss = chain.marginals(scores, edges, dataset.offsets, np.ones(dataset.sequences)).log_z.sum()
        loss -= chain.path_scores(scores, edges, dataset.offsets, dataset.labels).sum()
        np.testing.assert_allclose(loss + penalised(model, 0.3, 4.0), found.result.value, rtol=1e-8)


def test_conjunctions_of_different_weights_share_no_column(rng, tmp_path):
    """With a penalty columns are merged within a degree alone, and its optimum is that of single conjunctions."""
    inputs = random_inputs(rng, 30, categorical=4, real=0, values=12)
    kernel = PolynomialKernel(2, 0.7, 0.5, 1.0)
    by_degree, phi = find_conjunctions(inputs, kernel, by_degree=True)
    merged, _ = find_conjunctions(inputs, kernel)
    single, apart = find_conjunctions(inputs, kernel, merge=False)
    assert merged.size < by_degree.size < single.size
    squares = by_degree.squares_of(np.arange(len(by_degree.keys)))
    for column in range(by_degree.size):
        assert len(set(squares[by_degree.columns == column])) == 1
    problem = Problem(rng.integers(0, 3, 30).astype(np.int32), np.array([0, 10, 20, 30]), np.ones(3), 3)
    roots = np.sqrt(np.bincount(by_degree.columns))
    values = []
    with Workers(1) as workers:
        for columns, threshold in ((phi, 0.3 * roots), (apart, 0.3)):
            feature_map = ExplicitMap(columns, np.zeros((30, 0)), np.float64)
            terms = [
                ObjectiveTerm(NODE, 3.0, feature_map, threshold=threshold),
                ObjectiveTerm(EDGE, 3.0, threshold=0.3),
            ]
            objective = on_threads(problem, terms, workers)
            values.append(SOLVERS["auto"](objective, np.zeros(objective.size), Run(1e-8, 5000)).value)
    np.testing.assert_allclose(values[0], values[1], rtol=3e-8)
    model, report = trained(tmp_path, text_corpus(rng), configuration(0.3, 4.0, degree=2))
    assert report.result.reason == CERTIFIED
    assert model.terms[0].nonzero < model.terms[0].conjunctions.size * 3


@pytest.mark.parametrize(
    ("sigma2", "sequences"),
    [(4.0, 120), ("inf", 30), *(pytest.param(kind, 120, marks=pytest.mark.slow) for kind in ("inf", "auto"))],
)
def test_models_are_small_and_the_same_for_any_number_of_threads(rng, tmp_path, sigma2, sequences):
    text, found = text_corpus(rng, sequences), []
    raw = configuration(0.5, sigma2, tolerance=1e-2, precision="single")
    for threads in (1, 2):
        model, report = trained(tmp_path, text, raw, threads)
        model.save(tmp_path / f"{threads}.npz")
        found.append((tmp_path / f"{threads}.npz").read_bytes())
    assert found[0] == found[1]
    assert report.result.reason == CERTIFIED and report.result.gap <= 1e-2
    [term] = model.terms
    assert isinstance(term.weights, SparseWeights) and term.weights.bytes < term.weights.dense().nbytes
    assert report.nonzero < report.parameters / 2
    told = report.to_dict()
    assert told["c1"] == 0.5 and told["nonzero_parameters"] == report.nonzero
    stored = Model.load(tmp_path / "1.npz")
    assert stored.info["config"]["training"]["c1"] == 0.5
    assert stored.info["training"]["sigma2"] == told["sigma2"]
    assert parse_config(stored.info["config"]).training.sigma2 == {"inf": np.inf, "auto": None}.get(sigma2, sigma2)


@pytest.mark.parametrize(
    "penalties", [(1.0, 3.0, 1000.0), pytest.param((0.1, 0.5, 3.0, 1000.0), marks=pytest.mark.slow)]
)
def test_larger_penalties_leave_fewer_weights_and_a_large_one_none(rng, tmp_path, penalties):
    text, left = text_corpus(rng), []
    for c1 in penalties:
        _, report = trained(tmp_path, text, configuration(c1, "inf", tolerance=1e-2))
        assert report.result.reason == CERTIFIED
        left.append(report.nonzero)
    assert left == sorted(set(left), reverse=True) and left[-1] == 0


def test_a_model_with_a_penalty_is_a_start_for_another(rng, tmp_path):
    text, raw = text_corpus(rng), configuration(0.3, 4.0, tolerance=1e-4)
    model, first = trained(tmp_path, text, raw)
    _, again = trained(tmp_path, text, raw, start=WarmStart(model, "earlier"))
    assert again.result.passes < first.result.passes
    np.testing.assert_allclose(again.result.value, first.result.value, rtol=1e-4)


def test_weights_can_be_pruned_further(rng, tmp_path):
    for degree in (1, 2):
        model, report = trained(tmp_path, text_corpus(rng), configuration(0.1, 4.0, degree), prune=0.2)
        assert report.pruned.weights_left < report.pruned.weights
        assert model.terms[0].nonzero == report.pruned.weights_left


def test_what_the_penalty_does_not_go_with_is_refused(rng, tmp_path):
    text = text_corpus(rng, 20)
    pivots = configuration(0.3, 4.0)
    pivots["terms"][0] |= {"kernel": {"type": "rbf"}, "map": "reduced"}
    growing = configuration(0.3, 4.0)
    endless = configuration(0.0, 1.0)
    endless["terms"][1]["sigma2"] = "inf"
    growing["terms"][0] |= {"kernel": {"type": "rbf"}, "map": {"type": "reduced", "select": "gradient"}}
    for raw, more, message in (
        (pivots, {}, "this term has pivots: leave out 'c1'"),
        (growing, {}, "this term has pivots: leave out 'c1'"),
        (configuration(0.3, 4.0), {"select_terms": True}, "terms cannot be selected"),
        (configuration(0.3, 4.0, solver="newton"), {}, "the solver 'newton' minimises smooth functions"),
        (configuration(0.0, "inf"), {}, "give a 'c1' above 0"),
        (endless, {}, "term 'edge': an infinite 'sigma2' needs an L1 penalty: give a 'c1' above 0"),
        (configuration(0.3, 4.0) | {"unobserved": "?"}, {}, "'c1' needs all labels"),
    ):
        with pytest.raises(ConfigError, match=message):
            trained(tmp_path, text.replace(" N\n", " ?\n", 1) if "unobserved" in raw else text, raw, **more)
    for wrong in (-1, float("nan"), float("inf"), "some", True):
        with pytest.raises(ConfigError, match="'c1' must be"):
            parse_config({"training": {"c1": wrong}})


def attributes_of(text):
    sentences = [[line.split() for line in part.split("\n") if line] for part in text.strip().split("\n\n")]
    X = [[{"word": row[0], "other": row[1]} for row in rows] for rows in sentences]
    return X, [[row[2] for row in rows] for rows in sentences]


@pytest.mark.slow
def test_a_randomized_search_over_c1_and_c2_runs(rng):
    from scipy.stats import expon
    from sklearn.model_selection import RandomizedSearchCV

    X, y = attributes_of(text_corpus(rng, 30))
    crf = KernelCRF(algorithm="lbfgs", max_iterations=100, all_possible_transitions=True)
    space = {"c1": expon(scale=0.5), "c2": expon(scale=0.05)}
    search = RandomizedSearchCV(crf, space, cv=3, n_iter=3, random_state=0, error_score="raise").fit(X, y)
    assert set(search.best_params_) == {"c1", "c2"} and search.best_score_ > 0.7
    assert search.best_estimator_.model_.info["config"]["training"]["c1"] == search.best_params_["c1"]


def test_estimators_take_c1_without_a_variance(rng, tmp_path):
    X, y = attributes_of(text_corpus(rng, 30))
    dense, sparse = KernelCRF(c2=0.1).fit(X, y), KernelCRF(c1=1.0, c2=0, tolerance=0.01).fit(X, y)
    assert sparse.model_.terms[0].nonzero < dense.model_.terms[0].nonzero / 2
    sparse.save(tmp_path / "sparse.npz")
    loaded = KernelCRF.load(tmp_path / "sparse.npz")
    assert loaded.config["training"]["c1"] == 1.0 and loaded.config["training"]["sigma2"] in (np.inf, "inf")
    assert loaded.predict(X) == sparse.predict(X)
    with pytest.raises(ConfigError, match="give a 'c1' above 0"):
        KernelCRF(c2=0).fit(X, y)
