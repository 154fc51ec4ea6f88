"""Weights for pairs of features and labels that training data has: their optimum, certified, and small files."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from kcrf_core.chains import Problem
from kcrf_core.config import parse_config, with_options
from kcrf_core.corpora import AttributeRows, Corpus
from kcrf_core.device import DeviceChoice, open_device
from kcrf_core.encoding import fit_encoding
from kcrf_core.errors import ConfigError, FileFormatError
from kcrf_core.features import FeatureTerm, fit_terms, observed_only
from kcrf_core.files import read_container, write_container
from kcrf_core.maps import SparseWeights, as_dense, explicit as merged_columns, matrix_of
from kcrf_core.model import Model, dump, state_weights
from kcrf_core.objective import ObjectiveTerm
from kcrf_core.objective.solvers import Observer
from kcrf_core.system import Workers
from kcrf_core.training import WarmStart, train
from problems import on_threads

SIGMA2 = 2.0


def words(seed=0, sequences=12, labels="abcd"):
    """Words that were seen with some labels only, and a real column."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, sequences)
    N = int(lengths.sum())
    numbers = rng.integers(0, 9, N)
    gold = [labels[(number + int(rng.integers(0, 2))) % len(labels)] for number in numbers]
    values = [f"{value:.3f}" for value in rng.normal(size=N)]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Corpus("words", ([f"w{number}" for number in numbers], values, gold), offsets, np.arange(1, N + 1))


def attributes(seed=0):
    """The same words as attributes, with weights of either sign."""
    corpus, rng = words(seed), np.random.default_rng(seed)
    N = corpus.positions
    names = [name for word in corpus.columns[0] for name in (word, "all")]
    rows = AttributeRows(np.arange(N + 1) * 2, names, rng.normal(size=2 * N))
    return replace(corpus, columns=(corpus.columns[-1],), attributes=rows)


def truth_values(seed=0):
    """The same words with truth values: two that are true at the same positions, and false at others."""
    corpus, rng = words(seed), np.random.default_rng(seed)
    items = []
    for word in corpus.columns[0]:
        even = float(int(word[1:]) % 2 == 0)
        item = {word: 1.0, "even": even, "first": float(word == "w0")}
        items.append(item | ({"too": even} if even or rng.random() < 0.3 else {}))
    ends = np.cumsum([0, *map(len, items)])
    names, values = zip(*(pair for item in items for pair in item.items()), strict=True)
    rows = AttributeRows(ends, list(names), np.array(values))
    return replace(corpus, columns=(corpus.columns[-1],), attributes=rows)


TIGHT = {"gtol": 1e-8, "ftol": 1e-15, "maxcor": 50, "maxiter": 10_000, "maxfun": 20_000}

KINDS = {
    "linear": (words, {}),
    "attributes": (attributes, {}),
    "truth values": (truth_values, {}),
    "cosine": (words, {"cosine": True}),
    "conjunctions": (words, {"terms": [{"features": ["c0"], "kernel": {"type": "poly", "degree": 2}}]}),
    "edge-x": (words, {"terms": [{"type": "node"}, {"type": "edge-x", "features": ["c0"]}, {"type": "edge"}]}),
    "order 2": (words, {"order": 2}),
    "two labels": (lambda: words(labels="ab"), {}),
    "two labels, pivots beside": (
        lambda: words(labels="ab"),
        {"terms": [{"features": ["c0"]}, {"name": "near", "features": ["c1"], "kernel": "rbf", "map": {"size": 5}}]},
    ),
}


def prepared(kind, **options):
    make, more = KINDS[kind]
    given = {"sigma2": SIGMA2, "observed_features": True, "precision": "double", **more, **options}
    config = parse_config(with_options({}, given))
    return *fit_encoding(config, make()), config


def fit(kind, **options):
    encoding, dataset, config = prepared(kind, **options)
    with Workers(1) as workers:
        return *train(encoding, dataset, config, workers=workers), dataset


def posteriors(kind, workers):
    """P over all weights, over those that were observed, and where the parameters of that stand in those of this."""
    encoding, dataset, config = prepared(kind)
    problem = Problem(dataset.labels, dataset.offsets, np.ones(dataset.sequences), len(encoding.labels))
    fitted = fit_terms(encoding, dataset, config, None, workers, Observer())
    fitted = observed_only(fitted, problem, workers, Observer())
    whole = on_threads(problem, [ObjectiveTerm(t.config.clique, SIGMA2, t.map) for t in fitted], workers)
    part = on_threads(problem, [replace(term, sigma2=SIGMA2) for term in fitted], workers)
    places = [
        np.arange(block.start, block.stop) if term.places is None else block.start + term.places.kept
        for term, block in zip(part.terms, whole.blocks, strict=True)
    ]
    return whole, part, np.concatenate(places)


@pytest.mark.parametrize("kind", KINDS)
def test_the_optimum_over_what_was_observed_is_certified(kind):
    """Against a minimum of P over all weights with the others held at zero, by another program."""
    _, report, _ = fit(kind, tolerance=1e-6)
    with Workers(1) as workers:
        whole, part, places = posteriors(kind, workers)
        free = np.zeros(whole.size)

        def value(point):
            free[places] = point
            found = whole.evaluate(free)
            return found.value, found.gradient[places]

        brute = minimize(value, np.zeros(len(places)), jac=True, method="L-BFGS-B", options=TIGHT).fun
        # From anywhere else the bound holds as well, if it is worth less.
        theta = np.random.default_rng(1).normal(size=part.size)
        here = part.evaluate(theta)
        unrestricted = minimize(
            lambda point: (lambda found: (found.value, found.gradient))(whole.evaluate(point)),
            np.zeros(whole.size), jac=True, method="L-BFGS-B", options=TIGHT,
        ).fun  # fmt: skip
    result = report.result
    assert result.reason == "certified" and report.parameters == part.size == len(places)
    assert result.lower <= brute * (1 + 1e-9) and brute <= result.value * (1 + 1e-9)
    np.testing.assert_allclose(result.value, brute, rtol=2e-6)
    assert here.lower < brute < here.value
    assert part.size < whole.size and unrestricted < brute * (1 - 1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_are_those_of_what_is_left(kind):
    with Workers(1) as workers:
        whole, part, places = posteriors(kind, workers)
        rng = np.random.default_rng(0)
        theta, direction = rng.normal(size=(2, part.size))
        wide, wide_direction = np.zeros((2, whole.size))
        wide[places], wide_direction[places] = theta, direction
        found, expected = part.evaluate(theta), whole.evaluate(wide)
        np.testing.assert_allclose(found.value, expected.value, rtol=1e-12)
        np.testing.assert_allclose(found.gradient, expected.gradient[places], rtol=1e-9, atol=1e-12)
        product = whole.hessian_product(wide, wide_direction)[places]
        np.testing.assert_allclose(part.hessian_product(theta, direction), product, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(part.initial_curvature(), whole.initial_curvature()[places], rtol=1e-12)


@pytest.mark.parametrize("solver", ["lbfgs", "newton", "block-jacobi", "subspace"])
@pytest.mark.parametrize("kind", ["linear", "edge-x"])
def test_every_solver_finds_it(kind, solver):
    expected = fit(kind, tolerance=1e-6)[1].result.value
    _, report, _ = fit(kind, solver=solver, tolerance=1e-6)
    assert report.result.reason == "certified"
    np.testing.assert_allclose(report.result.value, expected, rtol=2e-6)


@pytest.mark.parametrize("kind", ["linear", "two labels", "two labels, pivots beside"])
def test_a_device_finds_it(kind):
    expected = fit(kind, tolerance=1e-6)[1].result.value
    encoding, dataset, config = prepared(kind, tolerance=1e-6)
    with Workers(1, device=open_device(DeviceChoice("numpy"))) as workers:
        _, report = train(encoding, dataset, config, workers=workers)
    assert report.result.reason == "certified"
    np.testing.assert_allclose(report.result.value, expected, rtol=2e-6)


def test_no_other_pair_has_a_weight():
    model, _, dataset = fit("linear")
    encoding = model.encoding
    weights = as_dense(matrix_of(model.terms[0].weights))  # word fields first, then the number
    codes, sizes = dataset.codes, encoding.inputs(dataset, encoding.names).sizes
    seen = np.zeros_like(weights, dtype=bool)
    for field, first in enumerate(np.concatenate([[0], np.cumsum(sizes)[:-1]])):
        seen[codes[:, field] + first, dataset.labels] = True
    seen[sizes.sum() :] = True
    assert not weights[~seen].any()
    assert np.count_nonzero(weights[seen]) > 0.9 * seen.sum()


@pytest.mark.parametrize("kind", KINDS)
def test_models_come_back_and_score_like_dense_ones(kind, tmp_path):
    model, _, dataset = fit(kind)
    model.save(tmp_path / "m.npz")
    again = Model.load(tmp_path / "m.npz")
    explicit = [isinstance(term, FeatureTerm) for term in model.terms]
    assert any(isinstance(t.weights, SparseWeights) for t, so in zip(again.terms, explicit, strict=True) if so)
    dense = tuple(
        replace(t, weights=np.ascontiguousarray(as_dense(matrix_of(t.weights)))) if so else t
        for t, so in zip(model.terms, explicit, strict=True)
    )
    expected, expected_edges = replace(model, terms=dense).potentials(dataset)
    for each in (model, again):
        scores, edges = each.potentials(dataset)
        np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(edges.transitions, expected_edges.transitions, rtol=1e-12, atol=1e-14)
    again.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "m.npz").read_bytes()


def test_files_are_smaller_by_the_weights_that_are_not_there(tmp_path):
    corpus = words(sequences=300, labels="abcdefghijklmnop")
    sizes = []
    for observed in (False, True):
        config = parse_config(with_options({}, {"sigma2": 1.0, "observed_features": observed}))
        encoding, dataset = fit_encoding(config, corpus)
        with Workers(1) as workers:
            train(encoding, dataset, config, workers=workers)[0].save(tmp_path / "m.npz")
        names = [name for name in read_container(tmp_path / "m.npz", "model").arrays if "term0" in name]
        sizes.append(sum(read_container(tmp_path / "m.npz", "model").arrays[name].nbytes for name in names))
        assert os.path.getsize(tmp_path / "m.npz") > sizes[-1]
    assert sizes[1] < 0.8 * sizes[0]


@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize("kind", ["linear", "truth values"])
def test_features_that_share_columns_share_their_labels(monkeypatch, kind, observed):
    """Features in the same rows have the same labels: merged or not, it is the same optimum."""
    values = []
    for fewest in (0, 10**9):
        monkeypatch.setattr(merged_columns, "FEWEST_FEATURES", fewest)
        monkeypatch.setattr(merged_columns, "WORTH_MERGING", 1.0)
        model, report, dataset = fit(kind, tolerance=1e-6, observed_features=observed)
        values.append((report.result.value, model.marginals(dataset)))
    np.testing.assert_allclose(values[0][0], values[1][0], rtol=1e-6)
    np.testing.assert_allclose(values[0][1], values[1][1], atol=1e-2)


def test_a_label_seen_with_a_value_of_zero_has_a_weight():
    """Pairs are those of attributes and labels at the same positions, whatever the value."""
    encoding, dataset, config = prepared("truth values")
    corpus, names = truth_values(), encoding.features[0].vocabulary.values
    rows, gold = corpus.attributes, [encoding.labels.index(label) for label in corpus.columns[-1]]
    expected = set()
    for t, label in enumerate(gold):
        entries = range(rows.indptr[t], rows.indptr[t + 1])
        expected |= {names.index(rows.names[e]) * len(encoding.labels) + label for e in entries}
    problem = Problem(dataset.labels, dataset.offsets, np.ones(dataset.sequences), len(encoding.labels))
    with Workers(1) as workers:
        term = observed_only(fit_terms(encoding, dataset, config, None, workers, Observer()), problem, workers,
                             Observer())[0]  # fmt: skip
        assert set(term.places.kept.tolist()) == expected
        half = term.map.subset(np.arange(dataset.positions // 2))
        columns = np.array(gold[: dataset.positions // 2])
        places = half.seen_with(np.arange(len(columns)), columns, len(encoding.labels))
    assert len(places) < len(expected) and set(places.tolist()) < expected
    assert any(place // len(encoding.labels) == names.index("first") for place in places.tolist())


def test_sigma2_is_chosen_over_the_same_weights():
    corpus = words(sequences=80)
    config = parse_config(with_options({}, {"observed_features": True}))
    encoding, dataset = fit_encoding(config, corpus)
    with Workers(1) as workers:
        _, report = train(encoding, dataset, config, workers=workers)
    assert report.path and report.result.reason == "certified"


def test_starting_from_a_model_with_observed_features():
    model, report, dataset = fit("linear", tolerance=1e-6)
    encoding, dataset, config = prepared("linear", tolerance=1e-6)
    with Workers(1) as workers:
        _, again = train(encoding, dataset, config, workers=workers, start=WarmStart(model))
    assert again.result.passes <= 2 < report.result.passes
    encoding, dataset, config = prepared("linear", tolerance=1e-6, observed_features=False)
    with Workers(1) as workers:
        _, wider = train(encoding, dataset, config, workers=workers, start=WarmStart(model))
    assert wider.result.value < again.result.value


def test_weights_by_name():
    """What Python asks for by feature and label is what a dump says."""
    model, _, _ = fit("attributes")
    weights = state_weights(model, model.labels)
    told = {tuple(cells[1:3]): float(cells[3]) for cells in dump(model) if cells[0] == "node"}
    assert all(weights[key] == pytest.approx(value, rel=1e-5) for key, value in told.items())
    assert weights.keys() == told.keys()


def test_pivots_have_no_features_to_observe():
    with pytest.raises(ConfigError, match="explicit maps"):
        fit("linear", kernel="rbf", size=5)


DAMAGE = {
    "counts too many": ("counts", lambda a: a + 1, "do not fit"),
    "counts of another type": ("counts", lambda a: a.astype(np.int64), "expected"),
    "a row more": ("counts", lambda a: np.append(a, a.dtype.type(0)), "does not fit its features"),
    "columns out of range": ("columns", lambda a: a + 200, "out of range"),
    "columns twice": ("columns", np.zeros_like, "out of order"),
    "columns missing": ("columns", lambda a: a[:-1], "do not fit"),
    "values missing": ("values", lambda a: a[:-1], "do not fit"),
    "values not finite": ("values", lambda a: np.where(np.arange(len(a)) == 3, np.nan, a), "not finite"),
}


@pytest.mark.parametrize("name, change, message", DAMAGE.values(), ids=DAMAGE)
def test_damaged_weights_are_refused(name, change, message, tmp_path):
    fit("linear")[0].save(tmp_path / "m.npz")
    contents = read_container(tmp_path / "m.npz", "model")
    key = f"term0.weights.{name}"
    contents.arrays[key] = change(contents.arrays[key])
    write_container(tmp_path / "m.npz", "model", contents.header, contents.arrays)
    with pytest.raises(FileFormatError, match=message):
        Model.load(tmp_path / "m.npz")


def test_weights_of_an_unknown_kind_are_refused(tmp_path):
    fit("linear")[0].save(tmp_path / "m.npz")
    contents = read_container(tmp_path / "m.npz", "model")
    contents.header["terms"][0]["weights"] = "packed"
    write_container(tmp_path / "m.npz", "model", contents.header, contents.arrays)
    with pytest.raises(FileFormatError, match="unknown kind"):
        Model.load(tmp_path / "m.npz")


@pytest.mark.parametrize("kind", ["linear", "edge-x", "two labels"])
def test_labels_that_are_missing_were_not_seen(kind):
    """Positions without a label have no pair, neither with a label nor with two."""
    encoding, dataset, config = prepared(kind)
    labels = dataset.labels.copy()
    labels[::3] = -2
    problem = Problem(labels, dataset.offsets, np.ones(dataset.sequences), len(encoding.labels))
    with Workers(1) as workers:
        fitted = fit_terms(encoding, dataset, config, None, workers, Observer())
        found = observed_only(fitted, problem, workers, Observer())
    whole = Problem(dataset.labels, dataset.offsets, np.ones(dataset.sequences), len(encoding.labels))
    with Workers(1) as workers:
        every = observed_only(fitted, whole, workers, Observer())
    for few, all_of_them in zip(found, every, strict=True):
        if few.places is not None:
            assert set(few.places.kept) < set(all_of_them.places.kept)
