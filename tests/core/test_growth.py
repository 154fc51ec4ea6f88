"""Pivots that training adds: what they may gain, what they do gain, and when it is enough."""

from __future__ import annotations

import numpy as np
import pytest
from test_training import fit, toy_corpus

from kcrf_core.chains import EDGE, NODE, Problem
from kcrf_core.config import parse_config, with_options
from kcrf_core.corpora.corpus import concatenate
from kcrf_core.encoding import fit_encoding
from kcrf_core.errors import ConfigError
from kcrf_core.features import DataInMemory, FitContext, KernelTerm, select_bases
from kcrf_core.features.plans import fit_terms
from kcrf_core.kernels import fit_kernel, gram
from kcrf_core.maps import GrowingBasis, ReducedMap, RepeatedMap
from kcrf_core.maps.pivot_choice import best_of_block, residual_products
from kcrf_core.objective import ObjectiveTerm, certificates
from kcrf_core.objective.solvers import SOLVERS, GrowthRound, Observer, Progress, Run
from kcrf_core.system import Workers
from kcrf_core.training import WarmStart, train
from listening import Recorder
from problems import on_threads
from tasks import COLUMNS, Task, draw_task

GROWING = {"kernel": "rbf", "select": "gradient", "sigma2": 2.0}
SIGMA2 = 2.0


class Small:
    """A toy problem with a basis of a few pivots, in double precision."""

    def __init__(self, rng, workers, pivots=8):
        config = parse_config(with_options({}, {"kernel": "rbf"}))
        encoding, dataset = fit_encoding(config, toy_corpus(rng, 25))
        term = config.mapped_terms[0]
        self.workers = workers
        self.inputs = encoding.inputs(dataset, tuple(encoding.term_features(term))).seen()
        self.kernel = fit_kernel(term.kernel, self.inputs, 0)
        self.problem = Problem(dataset.labels, dataset.offsets, np.ones(dataset.sequences), len(encoding.labels))
        size, dtype = len(self.inputs), np.dtype(np.float64)
        self.basis = GrowingBasis(self.inputs, self.kernel, size, rng, workers, dtype, first=pivots)
        self.rows = self.basis.basis.rows.tolist()
        self.K = gram(self.kernel, self.inputs, self.inputs)

    def fit(self, rows):
        """The optimum with some rows as pivots: P, its objective and the parameters."""
        pivots = self.inputs.take(np.asarray(rows))
        curve = np.linspace(1.0, 0.0, len(rows) + 1)
        own = ReducedMap.of(self.inputs, self.kernel, pivots, curve, self.workers, np.float64)
        objective = on_threads(self.problem, [ObjectiveTerm(NODE, SIGMA2, own), ObjectiveTerm(EDGE, 1.0)], self.workers)
        result = SOLVERS["newton"](objective, np.zeros(objective.size), Run(1e-9, 1000))
        return result.value, objective, result.theta

    def candidates(self, rows, errors):
        """r among some positions, and what they bring to the gradient, as a growing basis works them out."""
        factor = self.basis.factorised(len(self.basis))
        candidates = factor.candidates(rows)
        return candidates.left, residual_products(factor, candidates, errors)

    def residual_kernel(self, rows):
        """r = k - <Phi, Phi>, by brute force."""
        return self.K - self.K[:, rows] @ np.linalg.solve(self.K[np.ix_(rows, rows)], self.K[rows])


def test_bounds_of_candidates_are_those_of_the_formula_and_hold(rng, workers):
    small = Small(rng, workers)
    rows = small.rows
    before, objective, theta = small.fit(rows)
    errors = objective.errors(theta)
    r = small.residual_kernel(rows)
    candidates = np.setdiff1d(np.arange(len(r)), rows)[::7]
    block, gradients = small.candidates(candidates, errors)
    np.testing.assert_allclose(gradients, (r @ errors)[candidates], atol=1e-9, rtol=1e-9)
    np.testing.assert_allclose(block, r[np.ix_(candidates, candidates)], atol=1e-9, rtol=1e-9)
    bounds = SIGMA2 / 2 * np.square(gradients).sum(axis=1) / np.diagonal(block)
    for c, bound in list(zip(candidates, bounds, strict=True))[:10]:
        gain = before - small.fit([*rows, c])[0]
        assert 0 < gain <= bound + 1e-6


def test_the_best_come_first_and_are_judged_beside_each_other(rng, workers):
    small = Small(rng, workers)
    rows = list(small.rows)
    before, objective, theta = small.fit(rows)
    errors = objective.errors(theta)
    candidates = np.setdiff1d(small.inputs.distinct()[0], rows)
    block, gradients = small.candidates(candidates, errors)
    places, triangle = best_of_block(block, gradients, 5, 1e-9)
    left = list(range(len(candidates)))
    total = 0.0
    for place in places:
        # By brute force, with a factorisation from scratch for each pivot.
        r = small.residual_kernel(rows)
        bounds = np.square(r[candidates] @ errors).sum(axis=1) / np.maximum(np.diagonal(r)[candidates], 1e-9)
        best = max(left, key=lambda k: bounds[k])
        assert best == place
        total += SIGMA2 / 2 * bounds[best]
        left.remove(best)
        rows.append(candidates[best])
    chosen = candidates[places]
    np.testing.assert_allclose(triangle @ triangle.T, block[np.ix_(places, places)], atol=1e-10)
    # What all of them together may gain is the part of the gradient that they reach.
    reached = np.linalg.solve(block[np.ix_(places, places)], gradients[places])
    assert total == pytest.approx(SIGMA2 / 2 * float(np.sum(reached * gradients[places])), rel=1e-6)
    assert 0 < before - small.fit([*small.rows, *chosen])[0] <= total


def test_twins_are_not_taken_twice(rng):
    """Two candidates that are the same count once, however large their bounds."""
    x = rng.normal(size=(6, 3))
    x[1] = x[0]
    gradients = rng.normal(size=(6, 2))
    gradients[:2] = 100 * gradients[0]
    places, _ = best_of_block(x @ x.T, gradients, 6, 1e-9)
    assert len({0, 1} & set(places)) == 1 and len(places) == 3


def test_pivots_are_added_until_nothing_is_left(rng, workers):
    small = Small(rng, workers, 2)
    errors = rng.normal(size=(len(small.inputs), 3))
    sizes = [len(small.basis)]
    while small.basis.has_room():
        before = small.basis.basis
        added = small.basis.add(errors, len(small.basis))
        sizes.append(sizes[-1] + added)
        now = small.basis.basis
        # What was there stays as it was, and what is left is known.
        np.testing.assert_array_equal(now.rows[: len(before.rows)], before.rows)
        np.testing.assert_allclose(now.curve[: len(before.curve)], before.curve, rtol=1e-9)
        np.testing.assert_allclose(now.residual, np.diagonal(small.residual_kernel(now.rows)), atol=1e-6)
    assert sizes == sorted(sizes) and len(set(sizes)) > 3 and sizes[-1] == len(small.basis)
    assert len(set(now.rows.tolist())) == len(now.rows)
    np.testing.assert_allclose(small.residual_kernel(now.rows), 0, atol=1e-6)


# ----------------------------------------------------------------------------- training


class Rounds(Recorder):
    @property
    def rounds(self):
        return self.of(GrowthRound)


def test_growth_ends_at_the_optimum_of_all_inputs(rng):
    corpus = toy_corpus(rng, 60)
    exact = {"tolerance": 1e-6, "precision": "double"}
    _, full = fit(corpus, {"kernel": "rbf", "sigma2": 2.0, "map": "full", **exact})
    model, grown = fit(corpus, {**GROWING, **exact, "basis_tolerance": 1e-6})
    assert grown.growth.stop in ("tolerance", "residual")
    assert grown.result.value == pytest.approx(full.result.value, rel=3e-6)
    term = model.terms[0]
    assert isinstance(term, KernelTerm) and len(term.pivots) == grown.growth.rounds[-1].pivots["node"]


@pytest.mark.parametrize("precision", ["single", "double"])
def test_it_stops_where_the_bound_is_small_enough(rng, precision):
    corpus = toy_corpus(rng, 60)
    observer = Rounds()
    options = {**GROWING, "basis_tolerance": 0.05, "precision": precision}
    _, report = fit(corpus, options, observer=observer)
    growth, last = report.growth, report.growth.rounds[-1]
    assert growth.stop == "tolerance" and report.result.reason == "certified" and report.result.gap <= 1e-3
    assert report.certify == "exact" and report.outside == last.bound <= 0.05 * report.result.value
    # The bound holds for the optimum with every input as a pivot, and more pivots would have been allowed.
    _, full = fit(corpus, {"kernel": "rbf", "sigma2": 2.0, "map": "full", "tolerance": 1e-5})
    assert report.result.value - last.bound <= full.result.value < report.result.value
    assert last.pivots["node"] < full.parameters // 3
    values = [state.objective for state in growth.rounds]
    assert values == sorted(values, reverse=True)
    assert observer.rounds[-1] == last
    assert report.to_dict()["outside_bound"] == last.bound
    assert report.to_dict()["growth"]["rounds"][-1]["pivots"] == last.pivots


def test_the_bound_is_that_of_the_model_written(rng, workers):
    corpus = toy_corpus(rng, 40)
    config = parse_config(with_options({}, {**GROWING, "basis_tolerance": 0.05}))
    encoding, dataset = fit_encoding(config, corpus)
    model, report = fit(corpus, {**GROWING, "basis_tolerance": 0.05})
    term = model.terms[0]
    inputs = encoding.inputs(dataset, term.features).seen()
    own = ReducedMap.of(inputs, term.kernel, term.pivots, np.zeros(len(term.pivots) + 1), workers, np.float64)
    objective = on_threads(
        Problem(dataset.labels, dataset.offsets, np.ones(dataset.sequences), len(encoding.labels)),
        [ObjectiveTerm(NODE, 2.0, own), ObjectiveTerm(EDGE, 2.0)],
        workers,
    )
    edges = model.edges
    theta = np.concatenate(
        [(own.head.triangle.T @ term.alpha).ravel(), edges.transitions.ravel(), edges.start, edges.end]
    )
    errors = objective.errors(theta)
    exact = certificates.bound(errors, own, inputs, term.kernel, 2.0, workers)
    here = objective.proven(theta)
    assert report.outside == pytest.approx(exact + here.value - here.lower, rel=1e-3)


def test_it_stops_at_its_size_with_a_tight_fit(rng):
    corpus = toy_corpus(rng, 60)
    _, report = fit(corpus, {**GROWING, "size": 60, "basis_tolerance": 0.0})
    rounds = report.growth.rounds
    assert report.growth.stop == "size" and report.result.reason == "certified" and report.result.gap <= 1e-3
    assert [state.pivots["node"] for state in rounds] == [7, 15, 30, 60]
    assert report.certify == "estimate" and report.outside == pytest.approx(rounds[-1].estimate)
    # Fits before the last are loose, and cheaper; nothing is proven about them.
    assert rounds[0].certified_gap is None
    assert report.result.work < report.result.passes == rounds[-1].passes
    _, random = fit(corpus, {**GROWING, "size": 60, "select": "random"})
    assert report.result.value < random.result.value


def test_a_tolerance_that_is_met_at_once_adds_nothing(rng):
    _, report = fit(toy_corpus(rng, 60), {**GROWING, "size": 400, "basis_tolerance": 100.0})
    assert len({state.pivots["node"] for state in report.growth.rounds}) == 1
    assert report.growth.stop == "tolerance" and report.result.gap <= 1e-3


def test_it_stops_where_the_trace_is_explained(rng):
    _, report = fit(toy_corpus(rng, 60), {**GROWING, "size": 400, "residual": 0.1, "basis_tolerance": 0.0})
    assert report.growth.stop == "residual" and report.growth.rounds[-1].pivots["node"] < 200


TERMS = [
    {"name": "words", "features": ["c0"], "kernel": "poly", "map": {"type": "reduced", "select": "gradient"}},
    {"name": "all", "kernel": "rbf", "map": {"select": "gradient", "size": 100, "basis_tolerance": 0.02}},
    {"name": "fixed", "kernel": {"type": "rbf", "gamma": 2.0}, "map": {"size": 20}},
    {"type": "edge-x", "kernel": "rbf", "map": {"select": "gradient", "size": 60}},
    {"type": "edge"},
]


def test_several_terms_grow_together(rng):
    corpus = toy_corpus(rng, 60)
    model, report = fit(corpus, {"sigma2": 1.0}, {"terms": TERMS})
    first, last = report.growth.rounds[0].pivots, report.growth.rounds[-1].pivots
    assert set(last) == {"words", "all", "edge-x"}
    assert last["all"] > first["all"] and last["edge-x"] > first["edge-x"]
    assert report.growth.tolerance == 0.01  # the finest of those that hold
    assert report.result.gap <= 1e-3 and report.certify == "estimate"
    assert {term.name: len(term.pivots) for term in model.terms if term.name in last} == last


def test_no_input_that_comes_again_is_a_pivot_twice(rng):
    corpus = concatenate([toy_corpus(rng, 40)] * 4)
    observer = Rounds()
    model, report = fit(corpus, {**GROWING, "size": 80, "basis_tolerance": 0.0}, observer=observer)
    assert any("each computed once" in note for note in observer.notes)
    pivots = model.terms[0].pivots
    assert len(pivots) == len(pivots.distinct()[0]) == 80 and report.result.gap <= 1e-3


@pytest.mark.parametrize(
    "more",
    [
        {"order": 2},
        {"kernel": "poly", "degree": 3},
        *(pytest.param(more, marks=pytest.mark.slow) for more in ({}, {"sigma2": "auto", "basis_tolerance": 0.0})),
    ],
)
def test_the_same_bytes_for_any_number_of_threads_and_any_memory(rng, tmp_path, more):
    corpus = toy_corpus(rng, 80)
    config = parse_config(with_options({}, {**GROWING, "size": 120, **more}))
    encoding, dataset = fit_encoding(config, corpus)
    saved = []
    for threads, memory in ((1, None), (2, None), (2, 300_000)):
        with Workers(threads, memory) as workers:
            model, _ = train(encoding, dataset, config, workers=workers)
        model.save(tmp_path / "model.npz")
        saved.append((tmp_path / "model.npz").read_bytes())
    assert saved[0] == saved[1] == saved[2]
    assert len(model.terms[0].pivots) > 15


def test_another_seed_is_another_basis(rng):
    corpus = toy_corpus(rng, 60)
    found = [fit(corpus, {**GROWING, "size": 60, "seed": seed})[0].terms[0].lines for seed in (0, 0, 1)]
    assert (found[0] == found[1]).all() and (found[0] != found[2]).any()


@pytest.mark.slow
def test_sigma2_is_chosen_with_more_pivots_than_growth_begins_with(rng):
    corpus = toy_corpus(rng, 60)
    observer = Rounds()
    options = {**GROWING, "size": 80, "sigma2": "auto"}
    _, report = fit(corpus, options, observer=observer)
    _, random = fit(corpus, {**options, "select": "random"})
    assert report.sigma2 == random.sigma2  # the search sees the same pivots
    assert observer.rounds[0].pivots == {"node": 10}
    assert any("grows by gradient from 10 random pivots to 80 at most" in n for n in observer.notes)


@pytest.mark.parametrize("solver", ["lbfgs", "newton", "block-jacobi", "subspace"])
def test_every_solver_can_grow_a_basis(rng, solver):
    corpus = toy_corpus(rng, 40)
    _, report = fit(corpus, {**GROWING, "size": 60, "solver": solver, "basis_tolerance": 0.0})
    assert report.result.gap <= 1e-3 and report.growth.rounds[-1].pivots["node"] == 60


# ----------------------------------------------------------------------------- stopped before


@pytest.mark.parametrize("after", [1, 12, 30])
def test_an_interrupt_leaves_the_pivots_that_are_there(rng, tmp_path, after):
    corpus = toy_corpus(rng, 60)
    recorder = Recorder()
    options = {**GROWING, "size": 240, "basis_tolerance": 0.0, "sigma2": 100.0, "precision": "double"}
    model, report = fit(corpus, options, observer=recorder, interrupted=lambda: len(recorder.of(Progress)) >= after)
    assert report.result.reason == report.growth.stop == "interrupted"
    assert len(model.terms[0].pivots) == report.growth.rounds[-1].pivots["node"] < 240
    assert report.result.value == min(progress.value for progress in recorder.of(Progress))
    assert report.result.lower <= report.result.value
    assert len(model.tag_corpus(corpus)) == corpus.positions
    model.save(tmp_path / "model.npz")


def test_passes_are_counted_over_all_fits(rng):
    corpus = toy_corpus(rng, 60)
    options = {**GROWING, "size": 240, "basis_tolerance": 0.0, "sigma2": 100.0}
    _, report = fit(corpus, {**options, "max_passes": 40})
    assert report.result.reason == report.growth.stop == "passes"
    assert 40 <= report.result.passes <= 42 and len(report.growth.rounds) > 1
    passes = [state.passes for state in report.growth.rounds]
    assert passes == sorted(passes)


# ----------------------------------------------------------------------------- with everything else


def test_a_grown_model_is_a_start_and_can_start_from_one(rng):
    corpus = toy_corpus(rng, 60)
    options = {**GROWING, "size": 100}
    model, cold = fit(corpus, options)
    observer = Rounds()
    _, warm = fit(corpus, options, start=WarmStart(model), observer=observer)
    assert any(note.startswith("starting from") for note in observer.notes)
    assert warm.result.gap <= 1e-3
    assert warm.growth.rounds[0].objective < cold.growth.rounds[0].objective  # in as many passes at most
    assert warm.growth.rounds[0].passes <= cold.growth.rounds[0].passes
    _, again = fit(corpus, {**options, "select": "random"}, start=WarmStart(model))
    assert again.result.gap <= 1e-3


def test_terms_can_be_chosen_before_they_grow():
    map_ = {"select": "gradient", "size": 80}
    terms = [
        {"name": "useful", "features": ["strong", "weak"], "kernel": "rbf", "map": map_},
        {"name": "noise", "features": ["few"], "kernel": "rbf", "map": map_},
        {"type": "edge"},
    ]
    raw = {"columns": COLUMNS, "window": [0], "terms": terms}
    model, report = fit(draw_task(0, Task()), {"sigma2": 1.0}, raw, select_terms=True)
    assert report.structure.chosen == ("useful", "edge")
    assert set(report.growth.rounds[-1].pivots) == {"useful"} and len(model.terms) == 1


def test_one_label_needs_no_pivots(rng):
    _, report = fit(toy_corpus(rng, 30, "a"), {**GROWING, "size": 80})
    assert report.growth.stop == "tolerance" and report.growth.rounds[-1].pivots == {"node": 10}


# ----------------------------------------------------------------------------- configuration


def test_selecting_a_basis_alone_is_refused(rng, workers):
    config = parse_config(with_options({}, {"kernel": "rbf", "select": "gradient"}))
    encoding, dataset = fit_encoding(config, toy_corpus(rng))
    with pytest.raises(ConfigError, match="'gradient' chooses pivots while a model is trained: name another"):
        select_bases(encoding, dataset, config, workers, Observer())


def test_gradient_means_a_reduced_map(rng):
    """Where an automatic map would be explicit."""
    model, report = fit(toy_corpus(rng), {"kernel": "poly", "select": "gradient", "size": 40, "sigma2": 1.0})
    assert isinstance(model.terms[0], KernelTerm) and report.growth is not None


@pytest.mark.parametrize(
    ("map_", "message"),
    [
        ({"select": "random", "basis_tolerance": 0.1}, "'basis_tolerance' is for 'select: gradient', not for 'random'"),
        ({"type": "full", "select": "gradient"}, "'select: gradient' does not belong to the map 'full'"),
        ({"type": "explicit", "select": "gradient"}, "'select: gradient' does not belong to the map 'explicit'"),
        ({"select": "gradient", "basis_tolerance": -1}, "must be at least 0"),
    ],
)
def test_mistakes_are_told(map_, message):
    with pytest.raises(ConfigError, match=message):
        parse_config({"terms": [{"kernel": "linear", "map": map_}]})


def test_the_configuration_of_a_grown_model_is_read_again(rng):
    raw = {"terms": [{"kernel": "rbf", "map": {"select": "gradient", "size": 30, "basis_tolerance": 0.2}}]}
    config = parse_config(raw)
    assert parse_config(config.to_dict()) == config
    assert config.terms[0].map.basis_tolerance == 0.2


def test_repeated_maps_grow(rng, workers):
    corpus = concatenate([toy_corpus(rng, 20)] * 4)
    config = parse_config(with_options({}, {**GROWING, "size": 40}))
    encoding, dataset = fit_encoding(config, corpus)
    term = fit_terms(encoding, dataset, config, None, workers, Observer())[0]
    errors = rng.normal(size=(dataset.positions, 3))
    added = term.growing.add(errors, 20)
    grown = term.grown(FitContext(DataInMemory(encoding, dataset), config, workers, Observer()))
    assert added and isinstance(grown.map, RepeatedMap) and grown.map.size == term.map.size + added
    few, many = (each.map.features(workers) for each in (term, grown))
    np.testing.assert_allclose(many[:, : few.shape[1]], few, atol=1e-5)
