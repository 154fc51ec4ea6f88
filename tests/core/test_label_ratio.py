"""The transform label-ratio: right on new data, blind to a training position's own label."""

from __future__ import annotations

import numpy as np
import pytest

from kcrf_core.config import parse_config
from kcrf_core.corpora import Corpus
from kcrf_core.encoding import fit_encoding
from kcrf_core.encoding.label_ratio import PARTS
from kcrf_core.errors import ConfigError
from kcrf_core.model import load_dataset, load_encoding, save_dataset

RATIO = {"column": "c0", "transform": "label-ratio", "scale": "none", "window": [0]}


def corpus_of(sequences):
    rows = [row for sequence in sequences for row in sequence]
    offsets = np.cumsum([0, *map(len, sequences)])
    return Corpus("data", tuple(map(list, zip(*rows, strict=True))), offsets, np.arange(1, len(rows) + 1))


def fit(sequences, seed=0, **feature):
    raw = {"features": [{**RATIO, **feature}], "training": {"seed": seed}}
    return fit_encoding(parse_config(raw), corpus_of(sequences))


def random_sequences(rng, count, labels="XY", words=6):
    return [
        [[f"w{rng.integers(words)}", str(rng.choice(list(labels)))] for _ in range(rng.integers(1, 6))]
        for _ in range(count)
    ]


def test_new_data_gets_smoothed_shares_of_all_training_data():
    encoding, _ = fit([[["a", "X"], ["a", "Y"]], [["a", "Y"], ["b", "X"]]])
    new = encoding.encode(corpus_of([[["a"], ["b"], ["new"]]]))
    shares = np.array([(2 + 0.5) / 4, 0.5 / 2, 0.5])  # of Y, whose share is 1/2
    np.testing.assert_allclose(new.real[:, 0], shares, rtol=1e-15)


def test_more_labels_make_a_column_each():
    encoding, dataset = fit(random_sequences(np.random.default_rng(0), 30, "XYZ"))
    assert dataset.real.shape[1] == 3
    np.testing.assert_allclose(dataset.real.sum(axis=1), 1, rtol=1e-14)
    new = encoding.encode(corpus_of([[["w0"]]]))
    np.testing.assert_allclose(new.real.sum(), 1, rtol=1e-14)
    assert [part.split("=")[0] for part in encoding.describe(dataset, 0)] == [
        "c0.label-ratio[0]/X",
        "c0.label-ratio[0]/Y",
        "c0.label-ratio[0]/Z",
    ]


@pytest.mark.parametrize("labels", ["XY", "XYZ"])
def test_no_position_sees_the_labels_of_its_own_sequence(labels):
    """Whatever the labels of a sequence are changed to, its own ratios stay; those of others do not all stay."""
    rng = np.random.default_rng(1)
    sequences = [[["w0", label] for label in labels], *random_sequences(rng, 25, labels)]
    _, before = fit(sequences)
    seen = 0
    for s in range(len(sequences)):
        changed = [list(sequence) for sequence in sequences]
        changed[s] = [[word, labels[-1] if label != labels[-1] else labels[0]] for word, label in sequences[s]]
        if {row[1] for sequence in changed for row in sequence} != set(labels):
            continue
        _, after = fit(changed)
        own = slice(before.offsets[s], before.offsets[s + 1])
        assert np.array_equal(after.real[own], before.real[own])
        seen += not np.array_equal(after.real, before.real)
    assert seen > len(sequences) / 2


def test_parts_are_drawn_by_the_seed():
    sequences = random_sequences(np.random.default_rng(2), 40)
    (_, a), (_, b), (_, c) = (fit(sequences, seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(a.real, b.real) and not np.array_equal(a.real, c.real)


@pytest.mark.parametrize("count", [1, 2, PARTS - 1])
def test_few_sequences(count):
    sequences = random_sequences(np.random.default_rng(3), count)
    _, dataset = fit(sequences)
    assert np.isfinite(dataset.real).all()
    if count == 1:
        assert np.ptp(dataset.real) == 0  # nothing else to learn from


def test_values_without_a_tie_to_labels_look_alike_in_training_and_after():
    """Labels drawn by chance: in sample, ratios of rare words would give them away."""
    rng = np.random.default_rng(4)
    sequences = random_sequences(rng, 400, words=2000)
    encoding, dataset = fit(sequences)
    y = dataset.labels.astype(float)
    in_sample = encoding.encode(corpus_of(sequences)).real[:, 0]
    assert np.corrcoef(in_sample, y)[0, 1] > 0.5
    assert abs(np.corrcoef(dataset.real[:, 0], y)[0, 1]) < 0.1


def test_it_is_stored_and_scaled(tmp_path):
    sequences = random_sequences(np.random.default_rng(5), 30)
    encoding, dataset = fit(sequences, scale="standard", window=[-1, 0, 1])
    np.testing.assert_allclose(dataset.real[:, 1].mean(), 0, rtol=0, atol=1e-12)
    config = parse_config({"features": [{**RATIO, "window": [-1, 0, 1]}]})
    save_dataset(tmp_path / "d.npz", encoding, dataset, config)
    again, _ = load_encoding(tmp_path / "d.npz")
    assert again.same_as(encoding)
    assert np.array_equal(load_dataset(tmp_path / "d.npz").dataset.real, dataset.real)
    new = corpus_of([[["w1"], ["unknown"]]])
    assert np.array_equal(again.encode(new).real, encoding.encode(new).real)


def test_it_is_a_number():
    with pytest.raises(ConfigError, match="gives a number"):
        parse_config({"features": [{**RATIO, "type": "categorical"}]})
