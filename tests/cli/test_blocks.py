"""Labels and figures do not depend on how input arrives, how it is cut into blocks and how many threads work."""

from __future__ import annotations

import json
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest

from kcrf_core.corpora import lines

EVERYTHING = ("--marginals", "all", "--sequence-probability", "--novelty", "--json-lines")


def write_conll(path, rows, lengths):
    """A file of rows of columns, in sequences of these lengths."""
    ends = np.cumsum([0, *lengths]).tolist()
    path.write_text("".join("\n".join(rows[a:b]) + "\n\n" for a, b in pairwise(ends)))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("blocks")


@pytest.fixture
def accents(kcrf, folder):
    """Two labels, twenty real columns and large weights: what BLAS rounds otherwise shows in six digits."""
    data, model = folder / "data.conll", folder / "model.npz"
    if model.exists():  # trained for another test
        return model, data
    rng = np.random.default_rng(1)
    lengths = rng.integers(1, 12, 150)
    values = rng.normal(size=(lengths.sum(), 20))
    labels = np.where(values[:, 0] * values[:, 1] + values[:, 2] + rng.normal(size=len(values)) / 2 > 0, "a", "b")
    rows = [" ".join([*(f"{value:.3f}" for value in row), label]) for row, label in zip(values, labels, strict=True)]
    write_conll(data, rows, lengths)
    options = ("--kernel", "rbf", "--gamma", 0.01, "--size", 300, "--sigma2", 1e8, "--max-passes", 40, "-q")
    assert kcrf("train", data, "-o", model, *options, "--tolerance", 0.01).code == 0
    return model, data


@pytest.mark.parametrize(
    "options",
    [
        (),
        pytest.param(("--marginals", "all"), marks=pytest.mark.slow),
        pytest.param(EVERYTHING, marks=pytest.mark.slow),
    ],
    ids=["labels", "columns", "everything"],
)
def test_tag_writes_the_same_bytes_however_fast_a_pipe_delivers(kcrf, accents, monkeypatch, options):
    model, data = accents
    text = data.read_bytes()
    at_once = kcrf("tag", "-m", model, "--threads", 1, *options, stdin=text)
    assert at_once.code == 0 and at_once.out
    for size, threads in ((150, 1), (7777, 2), (150, 16)):  # bytes that arrive at a time
        monkeypatch.setattr(lines, "READ_SIZE", size)
        assert kcrf("tag", "-m", model, "--threads", threads, *options, stdin=text).out == at_once.out


@pytest.fixture
def pairs(kcrf, tmp_path):
    """A model whose transitions look at the input, with many labels, and data for it."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 10, 2000)
    words, chance = rng.integers(0, 40, lengths.sum()), rng.integers(0, 3, lengths.sum())
    rows = [f"w{word} y{label:02}" for word, label in zip(words, (words + chance) % 40, strict=True)]
    data, model = write_conll(tmp_path / "pairs.conll", rows, lengths), tmp_path / "pairs.npz"
    few = write_conll(tmp_path / "few.conll", rows, lengths[:100])
    config = tmp_path / "pairs.yaml"
    config.write_text("terms: [{name: pairs, type: edge-x}]\ntraining: {max_passes: 2, sigma2: 1}\n")
    assert kcrf("train", few, "-c", config, "-o", model, "-q").code == 0
    return model, data, len(words) * 40**2 * 8


def test_evaluate_does_not_hold_all_pairs_of_labels_at_once(kcrf, pairs):
    model, data, every_pair = pairs
    kcrf("evaluate", "-m", model, data, "--threads", 2)  # what is imported is not counted
    tracemalloc.start()
    try:
        assert kcrf("evaluate", "-m", model, data, "--threads", 2).code == 0
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < every_pair


def test_evaluate_says_the_same_for_any_number_of_threads(kcrf, pairs):
    model, data, _ = pairs
    found = [kcrf("evaluate", "-m", model, data, "--json", "--threads", threads).out for threads in (1, 2, 3)]
    assert found[0] == found[1] == found[2]
    assert json.loads(found[0])["positions"] > 2000


def test_evaluate_finds_the_labels_and_probabilities_that_tag_writes(kcrf, accents):
    model, data = accents
    tagged = kcrf("tag", "-m", model, data, "--marginals", "all").out
    mine = json.loads(kcrf("evaluate", "-m", model, data, "--json").out)
    theirs = json.loads(kcrf("evaluate", "-", "--json", stdin=tagged).out)
    assert mine["accuracy"] == theirs["accuracy"]
    np.testing.assert_allclose(mine["calibration"]["log_loss"], theirs["calibration"]["log_loss"], rtol=1e-4)
