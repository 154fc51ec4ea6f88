"""Numbers scaled by sequence or group: against loops over positions, in parts, as they arrive, with missing values."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.test_encoding import corpus_of, error_of, fit
from tests.core.test_lagging import MARGINALS, fed

from kcrf_core import KernelCRF
from kcrf_core.config import parse_config
from kcrf_core.encoding import Encoding, fit_encoding
from kcrf_core.encoding.group_scaling import PRIOR
from kcrf_core.errors import ConfigError, DataError
from kcrf_core.files import read_container, write_container
from kcrf_core.model import LagDecoder, from_model
from kcrf_core.training import train

COLUMNS = ["subject", "x", "y", "label"]
FEATURE = {"name": "xy", "columns": ["x", "y"], "type": "real", "window": [0]}
SCALES = [{"scale": "sequence"}, {"scale": "group", "group": "subject"}]


def recordings(rng, sequences=12, length=9, lacking=0.1):
    """Sequences of four subjects in turn, each with its own level and spread, far from zero."""
    level, spread = 1e4 + 30 * rng.normal(size=(4, 2)), np.exp(rng.normal(size=(4, 2)))
    out = []
    for s in range(sequences):
        values = level[s % 4] + spread[s % 4] * rng.normal(size=(length, 2))
        values[rng.random(values.shape) < lacking] = np.nan
        shown = [["NA" if np.isnan(x) else repr(float(x)) for x in row] for row in values]
        out.append([[f"s{s % 4}", *row, "ab"[t // 3 % 2]] for t, row in enumerate(shown)])
    return out


def numbers(rows):
    return np.array([[np.nan if x == "NA" else float(x) for x in row[1:3]] for part in rows for row in part])


def groups(rows, scale):
    """The group of each position."""
    return np.array([s if scale == "sequence" else int(row[0][1:]) for s, part in enumerate(rows) for row in part])


def standard(values, mean, spread):
    return np.where(np.isnan(values), 0.0, (values - mean) / spread)


def expected(rows, scale):
    values, of, out = numbers(rows), groups(rows, scale), np.empty((sum(map(len, rows)), 2))
    for group in np.unique(of):
        own = values[of == group]
        out[of == group] = (own - np.nanmean(own, axis=0)) / np.nanstd(own, axis=0)
    return out


def expected_online(rows, scale, training):
    """Scaled by running means and variances that begin with PRIOR positions like those of training."""
    known, within = numbers(training), groups(training, scale)
    inside = np.concatenate([known[within == g] - np.nanmean(known[within == g], axis=0) for g in np.unique(within)])
    begin, variance = np.nanmean(known, axis=0), np.nanmean(inside**2, axis=0)
    values, of, out = numbers(rows), groups(rows, scale), np.empty((sum(map(len, rows)), 2))
    for t in range(len(values)):
        for r in range(2):
            seen = values[: t + 1, r][of[: t + 1] == of[t]]
            seen = seen[~np.isnan(seen)]
            n, squares = len(seen), len(seen) * seen.var() if len(seen) else 0.0
            mean = (PRIOR * begin[r] + seen.sum()) / (PRIOR + n)
            out[t, r] = (values[t, r] - mean) / np.sqrt((PRIOR * variance[r] + squares) / (PRIOR + n))
    return out


def encoding_of(rows, own, **more):
    return fit(rows, columns=COLUMNS, features=[{**FEATURE, **own, **more}])


@pytest.mark.parametrize("own", SCALES)
def test_numbers_are_scaled_by_all_of_their_group(rng, own):
    training, new = recordings(rng), recordings(rng, 8, 5)
    encoding, dataset = encoding_of(training, own)
    raw = expected(training, own["scale"])
    mean, spread = np.nanmean(raw, axis=0), np.nanstd(raw, axis=0)
    np.testing.assert_allclose(dataset.real, standard(raw, mean, spread), rtol=1e-7, atol=1e-7)
    found = encoding.encode(corpus_of(new))
    np.testing.assert_allclose(found.real, standard(expected(new, own["scale"]), mean, spread), rtol=1e-7, atol=1e-7)
    assert dict(found.missing) == {"xy": int(np.isnan(numbers(new)).sum())}


@pytest.mark.parametrize("own", SCALES)
def test_numbers_as_they_arrive_are_scaled_by_what_has_been_read(rng, own):
    training, new = recordings(rng), recordings(rng, 8, 5)
    encoding, _ = encoding_of(training, own)
    corpus, known = corpus_of(new), {}
    found = encoding.encode(encoding.scaled_online(corpus, known, False)).real
    (feature,) = encoding.features
    raw = expected_online(new, own["scale"], training)
    np.testing.assert_allclose(found, standard(raw, feature.mean, feature.scale), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("own", SCALES)
@pytest.mark.parametrize("lag", [0, 1, 3])
def test_labels_do_not_depend_on_how_many_positions_arrive_at_once(rng, own, lag, workers):
    config = parse_config(
        {"columns": COLUMNS, "features": [{**FEATURE, **own, "window": [-1, 0, 1]}], "training": {"sigma2": 1}}
    )
    encoding, dataset = fit_encoding(config, corpus_of(recordings(rng)))
    model, _ = train(encoding, dataset, config, workers=workers)
    corpus = corpus_of(recordings(rng, 8, 5))
    whole = LagDecoder(model, lag, MARGINALS).feed(corpus, True)
    labels, node = fed(LagDecoder(model, lag, MARGINALS), corpus, rng)
    np.testing.assert_array_equal(labels, whole.labels)
    np.testing.assert_allclose(node, whole.marginals, rtol=1e-12)


def test_parts_of_groups_get_the_bits_of_all_of_them(rng):
    """Blocks of a file, whatever their size, and spans of a corpus."""
    encoding, _ = encoding_of(recordings(rng), SCALES[1])
    corpus = corpus_of(recordings(rng, 40, 7))
    whole = encoding.encode(corpus).real
    for size in (1, 3, 11):
        parts = [corpus.span(first, min(first + size, 40)) for first in range(0, 40, size)]
        totals = encoding.group_totals(parts)
        found = np.concatenate([encoding.encode(encoding.scaled_by_group(part, totals)).real for part in parts])
        np.testing.assert_array_equal(found, whole)
        assert not np.allclose(np.concatenate([encoding.encode(part).real for part in parts]), whole)
    scaled = encoding.scaled_by_group(corpus)
    np.testing.assert_array_equal(encoding.encode(scaled.span(5, 9)).real, whole[35:63])


def test_evaluation_goes_by_whole_groups(rng, workers, monkeypatch):
    config = parse_config({"columns": COLUMNS, "features": [{**FEATURE, **SCALES[1]}], "training": {"sigma2": 1}})
    encoding, dataset = fit_encoding(config, corpus_of(recordings(rng)))
    model, _ = train(encoding, dataset, config, workers=workers)
    corpus = corpus_of(recordings(rng, 20, 4))
    whole = from_model(model, corpus, workers).probabilities.gold
    monkeypatch.setattr("kcrf_core.model.model_labelling.ENCODED_AT_ONCE", 1)
    np.testing.assert_array_equal(from_model(model, corpus, workers).probabilities.gold, whole)


@pytest.mark.parametrize("own", SCALES)
def test_one_row_no_spread_and_nothing_known(rng, own):
    """A group of one row is at its mean; one without spread has that of training; one without numbers is missing."""
    encoding, _ = encoding_of(recordings(rng, lacking=0), own)
    (feature,) = encoding.features
    zero = -feature.mean / feature.scale
    new = [[["one", "123", "4", "a"]], [["flat", "7", "1e4", "a"]] * 3, [["none", "NA", "NA", "a"]] * 2]
    found = encoding.encode(corpus_of(new)).real
    np.testing.assert_allclose(found[:4], np.tile(zero, (4, 1)), atol=1e-9)
    np.testing.assert_array_equal(found[4:], 0.0)


def test_a_transform_sees_scaled_numbers(rng):
    rows = recordings(rng, lacking=0)
    _, dataset = encoding_of(rows, SCALES[1], transform="difference")
    values = expected(rows, "group").reshape(12, 9, 2)
    change = np.diff(values, axis=1, prepend=values[:, :1]).reshape(-1, 2)
    np.testing.assert_allclose(dataset.real, (change - change.mean(axis=0)) / change.std(axis=0), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("own", SCALES)
def test_a_stored_encoding_is_the_same(rng, own, tmp_path):
    rows = recordings(rng)
    encoding, dataset = encoding_of(rows, own, missing="indicator")
    header, arrays = encoding.pack()
    write_container(tmp_path / "encoding.npz", "kcrf-model", header, arrays)
    again = Encoding.unpack(read_container(tmp_path / "encoding.npz", "kcrf-model"))
    assert again.same_as(encoding)
    np.testing.assert_array_equal(again.encode(corpus_of(rows)).real, dataset.real)


@pytest.mark.parametrize(
    ("feature", "message"),
    [
        ({"column": "x", "scale": "group"}, "'scale: group' goes with a 'group'"),
        ({"column": "x", "group": "subject"}, "'scale: group' goes with a 'group'"),
        ({"column": "x", "scale": "sequence", "group": "subject"}, "'scale: group' goes with a 'group'"),
        ({"column": "x", "transform": "length", "scale": "sequence"}, "is for columns of numbers"),
        ({"vectors": "emb", "scale": "sequence"}, "is for columns of numbers"),
        ({"column": "x", "lookup": "embeddings", "scale": "sequence"}, "is for columns of numbers"),
        ({"column": "x", "scale": "group", "group": "person"}, "there is no column 'person'"),
        ({"column": "x", "scale": "group", "group": "label"}, "which is the label"),
        ({"column": "subject", "scale": "sequence"}, "is not made of numbers"),
    ],
)
def test_mistakes_of_a_configuration(rng, feature, message):
    assert message in error_of(ConfigError, fit, recordings(rng), columns=COLUMNS, features=[feature])


def test_data_that_cannot_be_scaled(rng):
    encoding, _ = encoding_of(recordings(rng), SCALES[1])
    nameless = [[["s1", "1", "2", "a"], ["NA", "3", "4", "a"]]]
    assert error_of(DataError, encoding.encode, corpus_of(nameless)) == (
        "data:2: column 1 has no value, and names the group that numbers are scaled by"
    )
    large = [[["s1", "1", "2", "a"], ["s1", "1e200", "4", "a"]]]
    assert "data:2: a number is too large" in error_of(DataError, encoding.encode, corpus_of(large))
    assert "3 columns" not in error_of(DataError, encoding.encode, corpus_of([[["1", "2"]]]))


def frame_of(rows):
    pandas = pytest.importorskip("pandas")
    every = [(s, row[0], *map(float, row[1:3]), row[3]) for s, part in enumerate(rows) for row in part]
    return pandas.DataFrame(every, columns=["trial", *COLUMNS])


def test_data_frames(rng):
    rows = recordings(rng, lacking=0)
    frame = frame_of(rows)
    crf = KernelCRF(scale="group", groups="subject", sequence="trial", label="label", window=[0], sigma2=1).fit(frame)
    mapped = crf.model_.encoding
    assert [(one.config.columns, one.config.group) for one in mapped.features] == [(("x", "y"), "subject")]
    raw = encoding_of(rows, SCALES[1])[1].real
    again = mapped.encode(corpus_of(rows)).real
    np.testing.assert_allclose(again, raw, rtol=1e-9, atol=1e-9)
    moved = frame.copy()
    moved["x"] += 100 * frame.subject.str[1:].astype(int)  # a level of each subject changes nothing
    np.testing.assert_allclose(crf.predict_proba(moved), crf.predict_proba(frame), atol=1e-5)
    named = KernelCRF(scale="group", window=[0], sigma2=1)
    same = named.fit(frame, sequence="trial", label="label", groups="subject", X_dev=frame)
    assert same.predict(frame).equals(crf.predict(frame))
    online = list(crf.predict_online(frame[frame.trial == 0].drop(columns="label")))
    assert online == crf.set_params(lag=0).predict(frame[frame.trial == 0]).tolist()
    with pytest.raises(ValueError, match="no column 'subject'"):
        crf.predict(frame.drop(columns="subject"))
    with pytest.raises(ValueError, match="scale='group' needs a DataFrame"):
        KernelCRF(scale="group").fit([[[0.0], [1.0]]], [["a", "b"]])
    with pytest.raises(ConfigError, match="leave scale='group' out"):
        KernelCRF(scale="group", groups="subject", label="label").tune(frame)
    assert (
        len(KernelCRF(scale="sequence", sigma2=1).fit([[[0.0], [1.0]]] * 2, [["a", "b"]] * 2).predict([[[3.0]]])) == 1
    )


@pytest.mark.parametrize("subject", [str, int])
def test_whole_numbers_and_truth_values_are_scaled_by_groups(rng, subject):
    """Whatever their names are, groups make no words of the other columns."""
    frame = frame_of(recordings(rng, lacking=0))
    frame["subject"] = frame.subject.str[1:].astype(int).astype(subject)
    frame["x"] = (10 * frame.x).round().astype(int)
    frame["y"] = frame.y > frame.groupby("subject").y.transform("median")
    columns = {"sequence": "trial", "label": "label", "groups": "subject"}
    crf = KernelCRF(scale="group", window=[0], sigma2=1).fit(frame, **columns)
    (feature,) = crf.model_.encoding.features
    assert feature.config.columns == ("x", "y") and feature.config.group == "subject"
    as_floats = KernelCRF(scale="group", window=[0], sigma2=1).fit(frame.astype({"x": float, "y": float}), **columns)
    assert crf.predict_proba(frame).equals(as_floats.predict_proba(frame))
    moved = frame.assign(x=frame.x + 1000 * (1 + frame.subject.astype(int)))  # a level of each subject
    np.testing.assert_allclose(crf.predict_proba(moved), crf.predict_proba(frame), rtol=0, atol=1e-5)


def test_held_out_data_has_groups_where_they_are_needed(rng):
    """A Series names its column, as a text does; without scaling by groups, X_dev needs none."""
    frame = frame_of(recordings(rng, lacking=0))
    columns, alone = {"sequence": "trial", "label": "label"}, {"window": [0], "sigma2": 1}
    found = KernelCRF(scale="group", **alone).fit(frame, **columns, groups=frame.subject, X_dev=frame)
    named = KernelCRF(scale="group", **alone).fit(frame, **columns, groups="subject", X_dev=frame)
    assert found.predict(frame).equals(named.predict(frame))
    KernelCRF(**alone).fit(frame, **columns, groups="subject", X_dev=frame.drop(columns="subject"))
