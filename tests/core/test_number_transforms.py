"""Transforms of numbers: against loops over positions, at the borders of sequences, with missing values, in streams."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from tests.core.test_encoding import corpus_of, error_of, fit
from tests.core.test_lagging import fed

from kcrf_core.config import parse_config
from kcrf_core.corpora import NUMBER_TRANSFORMS, Columns, quantiles
from kcrf_core.encoding import Encoding, fit_encoding, fit_to
from kcrf_core.errors import ConfigError, DataError
from kcrf_core.files import read_container, write_container
from kcrf_core.model import LagDecoder, Wishes
from kcrf_core.training import train

OFFSETS = np.array([0, 1, 8, 30])


def rows(rng, lacking=0.2):
    """Numbers [30, 2] far from zero, some of them missing."""
    values = 1e4 + rng.normal(size=(30, 2))
    values[rng.random(values.shape) < lacking] = np.nan
    return values


def sequences(values, offsets=OFFSETS):
    """Sequences of rows of a file with a label."""
    shown = [["NA" if np.isnan(x) else repr(float(x)) for x in row] for row in values]
    return [[[*shown[t], "ab"[t % 2]] for t in range(a, b)] for a, b in pairwise(offsets)]


def expected(name, values, width):
    """What a transform gives, position by position."""
    out = []
    for first, last in pairwise(OFFSETS):
        for t in range(first, last):
            before = values[t] - values[max(t - width, first)]
            seen = values[max(t - width // 2, first) : min(t + (width - 1) // 2 + 1, last)]
            with np.errstate(invalid="ignore"):
                known = [column[~np.isnan(column)] for column in seen.T]
            out.append(
                {
                    "difference": before,
                    "speed": [np.sqrt(np.sum(before**2))],
                    "mean": [one.mean() if len(one) else np.nan for one in known],
                    "std": [one.std() if len(one) else np.nan for one in known],
                }[name]
            )
    return np.array(out)


@pytest.mark.parametrize("width", [1, 2, 3, 7, 16, 60])
@pytest.mark.parametrize("name", ["difference", "speed", "mean", "std"])
def test_a_transform_over_a_width_is_the_loop_over_positions(rng, name, width):
    values = rows(rng)
    found = NUMBER_TRANSFORMS[name].function(values.copy(), OFFSETS, width, None)
    np.testing.assert_allclose(found, expected(name, values, width), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [name for name, one in NUMBER_TRANSFORMS.items() if one.narrowest is not None])
def test_a_position_depends_on_what_is_within_reach_alone_to_the_last_bit(rng, name):
    transform, width, values = NUMBER_TRANSFORMS[name], 5, rows(rng, 0.0)
    behind, ahead = transform.reach(width)
    whole = transform.function(values, OFFSETS, width, None)
    t = 18
    part = values[t - behind : t + ahead + 1]
    np.testing.assert_array_equal(transform.function(part, np.array([0, len(part)]), width, None)[behind], whole[t])


def test_logarithms_keep_the_sign():
    found = NUMBER_TRANSFORMS["log1p"].function(np.array([[0.0], [9.0], [-9.0], [np.nan]]), np.array([0, 4]), 1, None)
    np.testing.assert_allclose(found.ravel(), [0, np.log(10), -np.log(10), np.nan], rtol=1e-15)


def test_ranks_count_half_of_what_is_equal(rng):
    table = quantiles([np.array([[0.0]] * 50 + [[1.0]] * 50)], np.linspace(0, 1, 257))
    found = NUMBER_TRANSFORMS["rank"].function(np.array([[-5.0], [0.0], [1.0], [7.0], [np.nan]]), OFFSETS, 1, table)
    np.testing.assert_allclose(found.ravel(), [0, 0.25, 0.75, 1, np.nan], atol=0.01)
    numbers = rng.normal(size=(20_000, 1))
    ranks = NUMBER_TRANSFORMS["rank"].function(numbers, OFFSETS, 1, quantiles([numbers], np.linspace(0, 1, 257)))
    true = np.empty(len(numbers))
    true[np.argsort(numbers.ravel())] = np.arange(len(numbers)) / len(numbers)
    np.testing.assert_allclose(ranks.ravel(), true, atol=0.005)


def test_quantiles_of_parts_are_those_of_all(rng):
    parts = [rng.normal(loc, size=(9000, 2)) for loc in (-1, 0, 3)]
    parts[1][::3, 1] = np.nan
    levels = np.array([0.01, 0.5, 0.99])
    whole = np.nanquantile(np.concatenate(parts), levels, axis=0)
    np.testing.assert_allclose(quantiles(parts, levels), whole, atol=0.02)


FEATURES = [
    {"columns": ["c0", "c1"], "transform": "speed"},
    {"column": "c0", "transform": "difference", "width": 3, "window": "-4..4/2"},
    {"columns": ["c0", "c1"], "transform": "clip", "quantile": 0.1},
    {"column": "c1", "transform": "rank"},
    {"column": "c1", "transform": "log1p"},
    {"column": "c0", "transform": "mean", "width": 15},
    {"name": "trailing", "column": "c0", "transform": "std", "width": 5, "window": [-2]},
]


def test_a_configuration_has_them_and_a_file_keeps_what_was_fitted(rng, tmp_path):
    values = rows(rng, 0.05)
    values[12] = 1e9
    encoding, dataset = fit(sequences(values), features=FEATURES)
    assert encoding.names == [
        *("c0+c1.speed", "c0.difference3", "c0+c1.clip", "c1.rank", "c1.log1p", "c0.mean15", "trailing")
    ]
    assert dataset.real.shape == (30, 1 + 5 + 2 + 1 + 1 + 1 + 1)
    names = encoding.feature_names(encoding.names)
    assert [names[k] for k in (0, 1, 6, 7)] == ["c0+c1.speed[0]", "c0.difference3[-4]", "c0.clip[0]", "c1.clip[0]"]
    clipped = encoding.features[2]
    assert (dataset.real[:, 6:8] * clipped.scale + clipped.mean < 2e4).all()  # without the outlier
    ranks = dataset.real[:, 8] * encoding.features[3].scale + encoding.features[3].mean
    assert ranks.min() >= 0 and ranks.max() <= 1
    header, arrays = encoding.pack()
    write_container(tmp_path / "e.npz", "dataset", header, arrays)
    again = Encoding.unpack(read_container(tmp_path / "e.npz", "dataset"))
    assert again.same_as(encoding)
    new = corpus_of(sequences(rows(rng) + 0.5))
    np.testing.assert_array_equal(again.encode(new).real, encoding.encode(new).real)
    arrays["feature2.quantiles"] = arrays["feature2.quantiles"][::-1]
    write_container(tmp_path / "e.npz", "dataset", header, arrays)
    with pytest.raises(Exception, match="quantiles that do not fit"):
        Encoding.unpack(read_container(tmp_path / "e.npz", "dataset"))


def test_reach_counts_the_window_and_the_width(rng):
    encoding, _ = fit(sequences(rows(rng)), features=FEATURES)
    assert encoding.reach(["c0+c1.speed"]) == (1, 0)
    assert encoding.reach(["c0.difference3"]) == (7, 4)
    assert encoding.reach(["c0.mean15"]) == (7, 7)
    assert encoding.reach(["trailing"]) == (4, 0)


@pytest.mark.parametrize("lag", [1, 7, 9])
def test_a_stream_gives_the_labels_of_whole_sequences_after_what_is_ahead(rng, workers, lag):
    """Without transitions a label depends on its features alone; with too short a lag these see less."""
    corpus = corpus_of(sequences(rows(rng)))
    config = parse_config({"features": FEATURES, "terms": [{"type": "node"}], "training": {"sigma2": 1}})
    model, _ = train(*fit_encoding(config, corpus), config, workers=workers)
    decoder = LagDecoder(model, lag, Wishes(decode="posterior", marginals=True))
    assert (decoder.behind, decoder.ahead) == (7, 7)
    whole = model.marginals(model.encoding.encode(corpus), workers)
    same = np.allclose(fed(decoder, corpus, rng)[1], whole, rtol=1e-6, atol=1e-9)
    assert same == (lag >= 7)


def test_fitting_to_parts_is_fitting_to_all(rng):
    class InParts(Columns):
        @property
        def parts(self):
            halves = [self.corpus.subset([0, 1]), self.corpus.subset([2])]
            return [Columns(half, self.missing, True) for half in halves]

    config, corpus = parse_config({"features": FEATURES}), corpus_of(sequences(rows(rng)))
    whole, _ = fit_encoding(config, corpus)
    parts = fit_to(config, InParts(corpus, config.missing, True))
    np.testing.assert_allclose(parts.encode(corpus).real, whole.encode(corpus).real, atol=1e-6)


def test_columns_of_zeros_and_ones_are_features_and_pairs_at_once():
    data = [[[a, b, "xy"[a & b]] for a in (0, 1) for b in (0, 1)]] * 3
    encoding, dataset = fit(data, features=[{"column": "c0"}, {"column": "c1"}, {"conjunction": ["c0", "c1"]}])
    assert dataset.real.shape[1] == 2 and len(np.unique(dataset.codes)) == 4
    assert encoding.describe(dataset, 3)[-1] == "c0/c1[0]=1/1"


@pytest.mark.parametrize(
    ("feature", "message"),
    [
        ({"column": "c0", "transform": "mean"}, "'mean' needs a 'width' of at least 2 positions"),
        ({"column": "c0", "transform": "std", "width": 1}, "'std' needs a 'width' of at least 2 positions"),
        ({"column": "c0", "transform": "log1p", "width": 5}, "'width' is for the transforms difference, speed, mean"),
        ({"column": "c0", "transform": "rank", "quantile": 0.1}, "'quantile' is for the transform clip"),
        ({"column": "c0", "transform": "clip", "quantile": 0.6}, "must be at least 0.001 and below 0.5, not 0.6"),
        ({"column": "c0", "transform": "speed", "type": "categorical"}, "'speed' gives a number, so its type is real"),
        (
            {"columns": ["c0", "c1"], "transform": "lower"},
            "several columns make one feature only with",
        ),
        ({"column": "c0", "window": "-20..20/3"}, "has the step 3, which does not lead from -20 to 20"),
        ({"column": "c0", "window": "-20..20/x"}, "must be like -2..2, or -20..20/2 in steps of 2"),
    ],
)
def test_slips_are_named(feature, message):
    assert message in error_of(ConfigError, parse_config, {"features": [feature]})


def test_words_and_columns_without_numbers_are_refused():
    words = [[["a", 1, "x"], ["b", 2, "y"]]]
    message = error_of(DataError, fit, words, features=[{"column": "c0", "transform": "difference"}])
    assert "'a' in column 1 (c0) is not a finite number" in message
    gaps = [[["NA", 1, "x"], [2, 2, "y"], ["NA", 3, "x"], [4, 4, "y"]]]
    message = error_of(DataError, fit, gaps, features=[{"name": "d", "column": "c0", "transform": "difference"}])
    assert "feature 'd' has no numbers, only missing ones" in message


def test_nearness_to_the_ends_of_a_run():
    corpus = corpus_of("\n\n".join("\n".join(f"{value}\tx" for value in each) for each in ("aab", "bbba")) + "\n")
    features = [{"column": "c0", "transform": kind, "scale": "none"} for kind in ("start", "end")]
    _, dataset = fit_encoding(parse_config({"features": features}), corpus)
    start, end = [1, 1 / 2, 1, 1, 1 / 2, 1 / 3, 1], [1 / 2, 1, 1, 1 / 3, 1 / 2, 1, 1]
    np.testing.assert_allclose(dataset.real, np.transpose([start, end]), rtol=1e-6)
