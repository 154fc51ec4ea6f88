"""What sequences weigh: lines and columns say the same, and a weight of two is the sequence twice."""

from __future__ import annotations

from dataclasses import astuple, replace

import numpy as np
import pytest
from test_training import fit, toy_corpus

from kcrf_core.config import parse_config
from kcrf_core.corpora import Corpus, Moments
from kcrf_core.encoding import fit_encoding
from kcrf_core.errors import ConfigError, DataError
from kcrf_core.model import load_dataset, save_dataset

TIGHT = {"sigma2": 1.0, "tolerance": 1e-7, "precision": "double"}
NAMES = {"columns": ["word", "number", "importance", "label"], "weight": "importance"}


def with_column(corpus, weights):
    column = [f"{weight:g}" for weight in np.repeat(weights, np.diff(corpus.offsets))]
    return replace(corpus, columns=(*corpus.columns[:-1], column, corpus.columns[-1]))


def test_a_weight_of_two_is_the_sequence_twice(rng):
    corpus = toy_corpus(rng, 30)
    weights = rng.integers(0, 4, corpus.sequences)
    weights[:3] = (1, 2, 3)  # the same words and labels are there in both
    times = np.repeat(np.arange(corpus.sequences), np.maximum(weights, 1))
    twice = replace(corpus.subset(times), weights=np.repeat(np.minimum(weights, 1.0), np.maximum(weights, 1)))
    by_line, by_column, repeated = (
        fit(replace(corpus, weights=weights.astype(float)), TIGHT)[1].result.value,
        fit(with_column(corpus, weights), TIGHT, NAMES)[1].result.value,
        fit(twice, TIGHT)[1].result.value,
    )
    np.testing.assert_allclose(by_line, by_column, rtol=1e-6, atol=0)
    np.testing.assert_allclose(by_line, repeated, rtol=1e-6, atol=0)


@pytest.mark.parametrize("scale", ["auto", "sequence"])
def test_numbers_are_scaled_by_sequences_as_often_as_they_weigh(rng, scale):
    """A weight of 0 is none of the data, one of 2 the sequence twice, with missing numbers and in parts."""
    corpus = toy_corpus(rng, 30)
    numbers = [value if t % 7 else "NA" for t, value in enumerate(corpus.columns[1])]
    corpus = replace(corpus, columns=(corpus.columns[0], numbers, corpus.columns[2]))
    weights = rng.integers(0, 4, corpus.sequences)
    feature = {"column": "c1", "type": "real", "scale": scale}
    config = parse_config({"features": [feature]})
    (weighted,) = fit_encoding(config, replace(corpus, weights=weights.astype(float)))[0].features
    (repeated,) = fit_encoding(config, corpus.subset(np.repeat(np.arange(30), weights)))[0].features
    np.testing.assert_allclose(weighted.mean, repeated.mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(weighted.scale, repeated.scale, rtol=1e-12, atol=0)
    raw, of_rows = rng.normal(size=(50, 2)), rng.integers(0, 3, 50).astype(float)
    raw[::9] = np.nan
    whole, parts = Moments.of(raw, of_rows), Moments.of(raw[:20], of_rows[:20]).plus(Moments.of(raw[20:], of_rows[20:]))
    repeats = Moments.of(np.repeat(raw, of_rows.astype(int), axis=0))
    for found in (whole, parts):
        for one, other in zip(astuple(found), astuple(repeats), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_numbers_are_scaled_by_weighted_means():
    """Columns of zeros and ones in sequences that count are left alone; missing numbers do not count."""
    rng = np.random.default_rng(0)
    numbers, weights = rng.normal(3.0, 2.0, (12, 3)), np.array([2.0, 0.0, 0.5, 1.0])
    numbers[:, 2] = numbers[:, 2] > 3.0
    numbers[3:6, 2] = 7.0  # of the sequence of weight 0
    numbers[1, 1] = np.nan
    columns = [["?" if np.isnan(number) else repr(float(number)) for number in column] for column in numbers.T]
    corpus = Corpus("numbers", (*columns, ["a", "b", "a"] * 4), np.arange(0, 13, 3), np.arange(1, 13))
    encoding, _ = fit_encoding(parse_config({}), replace(corpus, weights=weights))
    count = np.repeat(weights, 3)
    for r, feature in enumerate(encoding.features):
        known = ~np.isnan(numbers[:, r])
        mean = np.average(numbers[known, r], weights=count[known])
        deviation = np.sqrt(np.average((numbers[known, r] - mean) ** 2, weights=count[known]))
        expected = (0.0, 1.0) if r == 2 else (mean, deviation)
        np.testing.assert_allclose((feature.mean[0], feature.scale[0]), expected, rtol=1e-12)
    plain, _ = fit_encoding(parse_config({}), corpus)
    ones, _ = fit_encoding(parse_config({}), replace(corpus, weights=np.ones(4)))
    assert plain.same_as(ones)


def test_a_column_of_weights_is_no_feature_and_is_kept(rng, tmp_path):
    corpus = with_column(toy_corpus(rng, 10), np.arange(10) / 2)
    config = parse_config(NAMES)
    encoding, dataset = fit_encoding(config, corpus)
    assert encoding.names == ["word", "number"] and dataset.weights.tolist() == (np.arange(10) / 2).tolist()
    save_dataset(tmp_path / "d.npz", encoding, dataset, config)
    stored = load_dataset(tmp_path / "d.npz")
    assert stored.encoding.weight == "importance" and stored.config == config
    np.testing.assert_array_equal(stored.encoding.encode(corpus, weighed=True).weights, dataset.weights)
    nothing = replace(corpus, columns=(*corpus.columns[:2], ["_"] * corpus.positions, corpus.columns[3]))
    assert stored.encoding.encode(nothing).weights is None  # of new data nobody wants to know


def test_weights_that_cannot_be_meant(rng):
    corpus = with_column(toy_corpus(rng, 10), np.ones(10))
    with pytest.raises(ConfigError, match="names no column"):
        fit(corpus, TIGHT, {"weight": "importance"})
    with pytest.raises(DataError, match="both by lines and by the column"):
        fit(replace(corpus, weights=np.ones(10)), TIGHT, NAMES)
    long = next(k for k in range(10) if corpus.offsets[k + 1] - corpus.offsets[k] > 1)
    for value, words in (("2", "changes inside a sequence"), ("-1", "changes inside a sequence")):
        column = list(corpus.columns[2])
        column[corpus.offsets[long] + 1] = value
        with pytest.raises(DataError, match=words):
            fit(replace(corpus, columns=(*corpus.columns[:2], column, corpus.columns[3])), TIGHT, NAMES)
    for value in ("-1", "nan", "many"):
        column = list(corpus.columns[2])
        column[corpus.offsets[long] : corpus.offsets[long + 1]] = [value] * int(np.diff(corpus.offsets)[long])
        with pytest.raises(DataError, match="not a finite number") as error:
            fit(replace(corpus, columns=(*corpus.columns[:2], column, corpus.columns[3])), TIGHT, NAMES)
        assert error.value.line == corpus.lines[corpus.offsets[long]]
