"""Features that stand in the same rows share a column, and nothing else changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

from kcrf_core.config import parse_config, with_options
from kcrf_core.corpora import AttributeRows, Corpus
from kcrf_core.encoding import fit_encoding
from kcrf_core.maps import explicit as module, sparse_block
from kcrf_core.model import Model
from kcrf_core.objective import vectors
from kcrf_core.objective.solvers import CERTIFIED, bundle, lbfgs
from kcrf_core.system import Workers
from kcrf_core.training import WarmStart, train
from listening import Recorder
from problems import random_inputs


def rare_words(seed=0, sequences=60):
    """Many words are seen once, so that their windows stand in the same rows; and a real column."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 8, sequences)
    N = int(lengths.sum())
    words = [f"w{rng.integers(0, 8)}" if rng.random() < 0.6 else f"rare{t}" for t in range(N)]
    numbers = [f"{value:.3f}" for value in rng.normal(size=N)]
    gold = ["abc"[(len(word) + (float(number) > 0)) % 3] for word, number in zip(words, numbers, strict=True)]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Corpus("rare", (words, numbers, gold), offsets, np.arange(1, N + 1))


def as_attributes(corpus, seed=0):
    """The words of a corpus as attributes, each with some that come with it, many of them in a row."""
    names, ends = [], [0]
    for word in corpus.columns[0]:
        names += [f"{word}/{k}" for k in range(70 if word == "w0" else 3)] + [word[0]]
        ends.append(len(names))
    rows = AttributeRows(np.array(ends), names, np.ones(len(names)))
    return replace(corpus, columns=corpus.columns[-1:], attributes=rows)


def fit(corpus, start=None, **options):
    config = parse_config(with_options({}, options))
    encoding, dataset = fit_encoding(config, corpus)
    recorder = Recorder()
    with Workers(1) as workers:
        model, report = train(encoding, dataset, config, workers=workers, observer=recorder, start=start)
    return model, report, recorder.notes


@pytest.fixture
def merging(monkeypatch):
    """Merge however few features there are."""

    def switch(on):
        monkeypatch.setattr(module, "FEWEST_FEATURES", 0 if on else 10**9)

    return switch


def test_merged_rows_have_the_inner_products_of_single_features():
    rng = np.random.default_rng(1)
    one_hot = sparse_block(random_inputs(rng, 12, categorical=6, real=0, values=9))
    merged = module.MergedColumns(*_merged(one_hot))
    assert merged.size < one_hot.shape[1]
    phi = merged.rows(one_hot)
    np.testing.assert_allclose((phi @ phi.T).toarray(), (one_hot @ one_hot.T).toarray(), rtol=1e-12)
    weights = rng.normal(size=(merged.size, 3))
    np.testing.assert_allclose(one_hot @ merged.spread(weights), phi @ weights, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(merged.gathered(merged.spread(weights)), weights, rtol=1e-12)


def _merged(one_hot):
    """Columns numbered by their rows, the plain way."""
    supports = {}
    columns = [supports.setdefault(tuple(column), len(supports)) for column in one_hot.toarray().T]
    return np.array(columns, dtype=np.int32), len(supports)


@pytest.mark.parametrize("values", [4, 9, 30])
def test_columns_are_merged_where_their_rows_are_the_same(merging, values):
    merging(True)
    inputs = random_inputs(np.random.default_rng(values), 12, categorical=6, real=0, values=values)
    one_hot = sparse_block(inputs)
    columns, size = _merged(one_hot)
    supports = module.ColumnSupports(inputs)
    supports.add(inputs.take(slice(0, 5)))
    supports.add(inputs.take(slice(5, 12)))
    found = supports.merged()
    if size > module.WORTH_MERGING * one_hot.shape[1]:
        assert found is None
    else:
        assert found.size == size
        np.testing.assert_array_equal(found.column, columns)


@pytest.mark.parametrize("later", [False, True], ids=["all", "some"])
def test_attributes_are_merged_only_where_all_of_them_are_ones(merging, later):
    merging(True)
    rng = np.random.default_rng(3)
    inputs = random_inputs(rng, 12, categorical=2, real=1, bag=90)
    attributes = np.where(np.arange(90) % 3 < 2, 1.0, inputs.bag.toarray() != 0)
    inputs = replace(inputs, bag=scipy.sparse.csr_array(attributes))
    columns, size = _merged(sparse_block(inputs))
    supports = module.ColumnSupports(inputs)
    supports.add(inputs.take(slice(0, 5)))
    rest = inputs.take(slice(5, 12))
    if later:
        rest.bag.data[-1] = 0.5
    supports.add(rest)
    found = supports.merged()
    if later:
        assert found is None
        return
    np.testing.assert_array_equal(found.column, columns)
    before = inputs.bag.indices.copy()
    compressed = found.compressed(inputs)
    np.testing.assert_array_equal(inputs.bag.indices, before)  # rows are merged in place, those of the data are not
    np.testing.assert_allclose(compressed.matrix().toarray(), found.rows(sparse_block(inputs)).toarray(), rtol=1e-12)
    assert not len(compressed.values) and (np.diff(compressed.indptr) < 64).all() and size < 64
    inputs.bag.data[::2] = 0.5  # values of other data
    np.testing.assert_allclose(
        found.compressed(inputs).matrix().toarray(), found.rows(sparse_block(inputs)).toarray(), rtol=1e-12
    )


@pytest.mark.parametrize("corpus", [rare_words(), as_attributes(rare_words())], ids=["columns", "attributes"])
@pytest.mark.parametrize("sigma2", [2.0, "auto"])
def test_the_model_is_the_one_without_merging(merging, sigma2, corpus):
    options = {} if sigma2 == "auto" else {"sigma2": sigma2}
    results = {}
    for on in (False, True):
        merging(on)
        results[on] = fit(corpus, precision="double", tolerance=1e-6, **options)
    (model, report, _), (plain, plain_report, _) = results[True], results[False]
    assert report.parameters < 0.8 * plain_report.parameters
    if sigma2 == "auto":  # the search fits roughly, so that what is level with its neighbour may fall either way
        ratios = [report.sigma2[name] / plain_report.sigma2[name] for name in report.sigma2]
        assert all(0.3 < ratio < 3.3 for ratio in ratios)
        if report.sigma2 != plain_report.sigma2:
            return
    assert report.sigma2 == plain_report.sigma2
    assert report.result.passes <= plain_report.result.passes + 2
    np.testing.assert_allclose(report.result.value, plain_report.result.value, rtol=2e-6)
    np.testing.assert_allclose(model.terms[0].weights, plain.terms[0].weights, rtol=0, atol=1e-2)


@pytest.mark.parametrize("corpus", [rare_words(), as_attributes(rare_words())], ids=["columns", "attributes"])
def test_a_model_starts_training_on_merged_columns(merging, corpus):
    merging(False)
    earlier, report, _ = fit(corpus, sigma2=2.0)
    merging(True)
    _, again, notes = fit(corpus, WarmStart(earlier, "model.npz"), sigma2=2.0)
    assert again.result.passes < report.result.passes / 2
    features = len(earlier.terms[0].weights)
    assert any(f"with {features:,} of {features:,} features" in note for note in notes)


@pytest.mark.parametrize("corpus", [rare_words(), as_attributes(rare_words())], ids=["columns", "attributes"])
def test_a_model_of_merged_columns_is_an_ordinary_one(merging, tmp_path, corpus):
    merging(True)
    model, _, notes = fit(corpus, sigma2=2.0)
    assert any("features in" in note for note in notes)
    model.save(tmp_path / "model.npz")
    merging(False)
    loaded = Model.load(tmp_path / "model.npz")
    assert loaded.tag_corpus(corpus) == model.tag_corpus(corpus)


@pytest.mark.parametrize("corpus", [rare_words(), as_attributes(rare_words())], ids=["columns", "attributes"])
@pytest.mark.parametrize("on", [False, True])
def test_long_vectors_in_few_bytes_have_the_same_optimum(merging, on, corpus, monkeypatch):
    """Points in single precision, pairs and slopes as halves: what is proven at the end is as good."""
    merging(on)
    plain = fit(corpus, sigma2=2.0, tolerance=1e-6, precision="double")[1].result
    monkeypatch.setattr(bundle, "LONG", 0)
    monkeypatch.setattr(vectors, "LONGEST_WHOLE", 0)
    monkeypatch.setattr(lbfgs, "FIRST_RENEWAL", 5)
    _, report, _ = fit(corpus, sigma2=2.0, tolerance=1e-3, precision="single")
    found = report.result
    assert found.reason == CERTIFIED and found.theta.dtype == np.float64
    assert plain.lower <= found.value <= plain.value * (1 + 1e-3)
    assert found.lower <= plain.value


def test_attributes_that_are_all_one_take_no_memory_for_values():
    config, corpus = parse_config({}), as_attributes(rare_words())
    _, dataset = fit_encoding(config, corpus)
    assert dataset.bag.indices.dtype == np.int32
    assert dataset.bag.data.strides == (0,) and (dataset.bag.data == 1).all()
    corpus.attributes.values[3] = 0.5
    _, dataset = fit_encoding(config, corpus)
    assert dataset.bag.data.strides == (8,) and 0.5 in dataset.bag.data
