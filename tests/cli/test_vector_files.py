"""Vectors beside the text, in every command that takes them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from kcrf_core.features import load_basis
from kcrf_core.model import load_dataset

YAML = """
features:
  - {column: c0}
  - {vectors: emb, scale: unit, window: [-1, 0]}
terms:
  - {name: words, features: [c0], kernel: linear}
  - {name: near, features: [emb], kernel: {type: rbf}, map: {size: 20}}
  - {type: edge}
training: {sigma2: 1}
"""


@pytest.fixture
def files(tmp_path, sample_data):
    """Eighty sequences to train on and forty others, each with vectors of five numbers, and a configuration."""
    sequences = (sample_data / "pitch_accent.conll").read_text().strip().split("\n\n")
    rng = np.random.default_rng(0)
    for name, part, dtype in (("train", sequences[:80], np.float32), ("test", sequences[80:120], np.float16)):
        (tmp_path / f"{name}.conll").write_text("\n\n".join(part) + "\n")
        labels = [line.split("\t")[-1] == "1" for text in part for line in text.split("\n")]
        rows = rng.normal(size=(len(labels), 5)) + np.outer(labels, [1.5, 0, 0, 0, -1])
        np.save(tmp_path / f"{name}.npy", rows.astype(dtype))
    (tmp_path / "config.yaml").write_text(YAML)
    return tmp_path


def vectors(files, name, option="--vectors"):
    return option, f"emb={files / name}.npy"


def one_line(done, code, *words):
    assert done.code == code, done.err
    assert done.err.count("\n") == 1 or done.err.startswith("Usage: "), done.err
    for word in words:
        assert word in done.err, done.err


@pytest.fixture
def model(kcrf, files):
    path = files / "vectors.npz"
    done = kcrf("train", files / "train.conll", *vectors(files, "train"), "-c", files / "config.yaml", "-q", "-o", path)
    assert done.code == 0, done.err
    return path


def test_all_ways_to_a_model_are_one(kcrf, files, model):
    """Text and vectors, an encoded dataset, and a basis with text and vectors: the same weights."""
    config, own = ("-c", files / "config.yaml"), vectors(files, "train")
    assert kcrf("featurize", files / "train.conll", *own, *config, "-q", "-o", files / "data.npz").code == 0
    assert load_dataset(files / "data.npz").encoding.vectors == {"emb": 5}
    assert kcrf("train", files / "data.npz", "-q", "-o", files / "again.npz").code == 0
    assert (files / "again.npz").read_bytes() == model.read_bytes()
    for data, more in ((files / "train.conll", own), (files / "data.npz", ())):
        assert kcrf("select-basis", data, *more, *(config if more else ()), "-q", "-o", files / "basis.npz").code == 0
    basis = load_basis(files / "basis.npz")
    assert basis.terms[0].pivots.real.shape == (20, 10)
    done = kcrf("train", files / "train.conll", *own, "--basis", files / "basis.npz", "-q", "-o", files / "third.npz")
    assert done.code == 0, done.err
    tagged = [
        kcrf("tag", "-m", files / name, files / "test.conll", *vectors(files, "test")).out
        for name in ("vectors.npz", "third.npz")
    ]
    assert tagged[0] == tagged[1] and tagged[0]


def test_vectors_beside_the_text_stay_in_python(kcrf, files, model):
    given = ("-c", files / "config.yaml", "-o", files / "again.npz")
    done = kcrf("train", files / "train.conll", *vectors(files, "train"), *given)
    assert "are not in the text: the model labels in Python only" in done.err
    done = kcrf("export", model, "-o", files / "m.kcrf")
    assert done.code == 2 and "is made of numbers by vectors beside the text" in done.err


def test_vectors_are_looked_at(kcrf, files, model):
    """They carry most of what the labels are made of here, so they must help a lot."""
    arguments = (files / "test.conll", "--json")
    with_them = json.loads(kcrf("evaluate", "-m", model, *arguments, *vectors(files, "test")).out)
    config = ("--columns", "c0,a,b,c,d,label", "--kernel", "linear", "--sigma2", "1", "-q", "-o", files / "plain.npz")
    assert kcrf("train", files / "train.conll", *config).code == 0
    without = json.loads(kcrf("evaluate", "-m", files / "plain.npz", *arguments).out)
    assert with_them["accuracy"] > without["accuracy"] + 0.03
    compared = kcrf(
        *("evaluate", "-m", model, "--compare", files / "plain.npz", *arguments),
        *vectors(files, "test"),
    )
    assert compared.code == 0, compared.err
    other = json.loads(compared.out)
    assert other["accuracy"] == with_them["accuracy"] and str(without["accuracy"])[:8] in compared.text


def test_tagging_counts_rows_from_block_to_block(kcrf, files, model, monkeypatch):
    """Small blocks and several threads give what one block gives; several files are one."""
    whole = kcrf("tag", "-m", model, files / "test.conll", *vectors(files, "test"), "--threads", 1)
    assert whole.code == 0 and whole.out
    monkeypatch.setattr("kcrf_core.corpora.lines.READ_SIZE", 300)
    rows = np.load(files / "test.npy")
    np.save(files / "a.npy", rows[:100])
    np.save(files / "b.npy", rows[100:])
    several = ("--vectors", f"emb={files / 'a.npy'}", "--vectors", f"emb={files / 'b.npy'}")
    for threads in (1, 3):
        done = kcrf("tag", "-m", model, *several, "--threads", threads, stdin=(files / "test.conll").read_bytes())
        assert done.out == whole.out, done.err


@pytest.mark.parametrize("change", [-3, 4])
def test_counts_that_differ_are_both_told(kcrf, files, model, change):
    """By every command that reads text, before or after it has tagged; nothing is written."""
    rows = np.load(files / "test.npy")
    count = len(rows)
    wrong = rows[:change] if change < 0 else np.concatenate([rows, rows[:change]])
    np.save(files / "test.npy", wrong)
    numbers = (f"test.npy: {len(wrong)} rows of vectors 'emb'", f"has {count} positions")
    out = files / "out"
    for command in (
        ("tag", "-m", model, "-o", out),
        ("evaluate", "-m", model),
        ("featurize", "--like", model, "-o", out),
        ("train", "-o", out),
        ("select-basis", "--kernel", "rbf", "-o", out),
        ("crossval", "-o", out),
    ):
        done = kcrf(command[0], files / "test.conll", *command[1:], *vectors(files, "test"))
        one_line(done, 3, *numbers)
        assert not out.exists()


def test_rows_run_out_on_a_pipe_that_stays_open(files, model):
    """The error does not wait for the end of what is piped in."""
    np.save(files / "test.npy", np.load(files / "test.npy")[:2])
    command = [sys.executable, "-m", "kcrf_cli", "tag", "-m", str(model), *vectors(files, "test")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        timer = threading.Timer(60, process.kill)
        timer.start()
        sequence = (files / "test.conll").read_bytes().split(b"\n\n")[0] + b"\n\n"
        os.write(process.stdin.fileno(), sequence)
        errors = process.stderr.read().decode()
        timer.cancel()
    assert process.returncode == 3 and "2 rows" in errors and "at least" in errors


def test_numbers_that_are_none_are_told(kcrf, files, model):
    rows = np.load(files / "test.npy")
    rows[7, 2] = np.inf
    np.save(files / "test.npy", rows)
    done = kcrf("tag", "-m", model, files / "test.conll", *vectors(files, "test"))
    one_line(done, 3, "test.npy: row 7 (from 0", "test.conll:", "float16 holds no number above 65504")


def test_what_is_missing_or_too_much(kcrf, files, model, trained):
    text, own = files / "test.conll", vectors(files, "test")
    one_line(kcrf("tag", "-m", model, text), 3, "vectors 'emb', 5 numbers", "none are given", "(--vectors)")
    one_line(kcrf("tag", "-m", trained, text, *own), 3, "without vectors", "no use for vectors 'emb'", "(--vectors)")
    one_line(kcrf("evaluate", "-m", model, text), 3, "none are given")
    one_line(kcrf("evaluate", "-m", trained, text, *own), 3, "no use for vectors 'emb'")
    one_line(kcrf("evaluate", text, *own), 2, "give -m, too")
    one_line(kcrf("inspect", trained, *own), 3, "no use for vectors 'emb'")
    one_line(kcrf("inspect", model, "--dump", *own), 2, "leave out --vectors")
    one_line(kcrf("tag", "-m", model, text, "--vectors", "test.npy"), 2, "'test.npy' is not NAME=FILE")
    one_line(kcrf("tag", "-m", model, text, "--vectors", f"emb={files / 'none.npy'}"), 1, "none.npy: No such file")
    np.save(files / "narrow.npy", np.load(files / "test.npy")[:, :4])
    one_line(kcrf("tag", "-m", model, text, *vectors(files, "narrow")), 3, "4 numbers for each position", "with 5")
    config = ("-c", files / "config.yaml", "-o", files / "out.npz")
    one_line(kcrf("train", text, *config), 2, "needs vectors 'emb', which are not given", "(--vectors)")
    more = (*own, "--vectors", f"more={files / 'test.npy'}")
    one_line(kcrf("train", text, *config, *more), 2, "no feature is made of the vectors 'more'")
    one_line(kcrf("train", text, *own, "-o", files / "test.npy"), 2, "is also an input")
    assert kcrf("featurize", text, *own, "-q", "-o", files / "data.npz").code == 0
    one_line(kcrf("train", files / "data.npz", *own, "-o", files / "out.npz"), 2, "holds its vectors")
    one_line(kcrf("featurize", text, *own, "--export", "crfsuite"), 2, "vectors 'emb' cannot be exported")
    assert not (files / "out.npz").exists()


def test_held_out_data_has_vectors_of_its_own(kcrf, files):
    common = ("train", files / "train.conll", *vectors(files, "train"), "--sigma2", "1", "-o", files / "m.npz")
    dev = ("--dev", files / "test.conll")
    done = kcrf(*common, *dev, *vectors(files, "test", "--dev-vectors"), "--json")
    assert done.code == 0, done.err
    judged = json.loads(
        kcrf("evaluate", "-m", files / "m.npz", files / "test.conll", *vectors(files, "test"), "--json").out
    )
    assert json.loads(done.out)["dev"]["accuracy"] == judged["accuracy"]
    one_line(kcrf(*common, *dev, "-q"), 2, "test.conll needs vectors 'emb', too: give --dev-vectors emb=FILE")
    one_line(kcrf(*common, *vectors(files, "test", "--dev-vectors")), 2, "give that, too")
    done = kcrf(*common, *dev, *vectors(files, "train", "--dev-vectors"), "-q")
    one_line(done, 3, "train.npy", "rows of vectors 'emb'", "test.conll has")


@pytest.mark.slow
def test_cross_validation_divides_rows_with_their_sequences(kcrf, files):
    """On one process and on two; and rows that belong to other sequences make it worse."""
    common = ("crossval", files / "train.conll", "--folds", 2, "--sigma2", "1", "--json", "-q")
    first = json.loads(kcrf(*common, *vectors(files, "train")).out)["settings"][0]["accuracy"]["mean"]
    second = json.loads(kcrf(*common, *vectors(files, "train"), "--jobs", 2).out)["settings"][0]["accuracy"]["mean"]
    assert first == second
    np.save(files / "train.npy", np.load(files / "train.npy")[::-1])
    assert json.loads(kcrf(*common, *vectors(files, "train")).out)["settings"][0]["accuracy"]["mean"] < first
    grouped = kcrf(*common, *vectors(files, "train"), "--group", "c0")
    assert "within a sequence" in grouped.err


def test_inspection_knows_names_and_widths(kcrf, files, model):
    text = kcrf("inspect", model, "--top", 1, *vectors(files, "test")).text
    assert "feature emb: vectors 'emb', 5 numbers, window -1..0" in text
    found = json.loads(kcrf("inspect", model, "--json", *vectors(files, "test")).out)
    assert found["features"][1]["vectors"] == "emb" and found["features"][1]["values"] == 5


def test_columns_by_range(kcrf, files):
    """v1..v3 names columns, and takes them into a feature; what is dumped is the same run."""
    features = "features: [{column: word}, {columns: [v1..v3], type: real, window: [-1, 0]}]\n"
    (files / "ranges.yaml").write_text(f"columns: [word, class, v1..v3, label]\n{features}training: {{sigma2: 1}}\n")
    (files / "names.yaml").write_text(
        "columns: [word, class, v1, v2, v3, label]\nfeatures: [{column: word}, {columns: [v1, v2, v3], type: real, "
        "window: [-1, 0], name: v1..v3}]\ntraining: {sigma2: 1}\n"
    )
    written = []
    for name in ("ranges", "names"):
        common = ("train", files / "train.conll", "-q", "-c")
        assert kcrf(*common, files / f"{name}.yaml", "-o", files / "m.npz").code == 0
        written.append(kcrf("tag", "-m", files / "m.npz", files / "test.conll", "--marginals", "all").out)
    assert written[0] == written[1]
    done = kcrf("featurize", files / "train.conll", "--columns", "word,class,v8..v10,label", "--plain", "--show", 1)
    assert "v10[0]=" in done.text and "v9[0]=" in done.text
    done = kcrf("featurize", files / "train.conll", "--columns", "word,class,v1..v300,label", "--show", 1)
    one_line(done, 2, "names 303 columns (word, class, v1, v2, v3, v4, v5, ..., label (303 in all))", "has 6")


@pytest.mark.parametrize("format_", ["conllu", "crfsuite"])
def test_other_formats_have_a_row_for_each_position(kcrf, files, sample_data, format_):
    """Words of CoNLL-U, comments and multiword tokens apart, and positions with attributes."""
    data = sample_data / "sentences.conllu"
    if format_ == "crfsuite":
        data = files / "small.crfsuite"
        data.write_text("A\tw=a\tn:2\nB\tw=b\n\nB\tw=b\tn:0.5\nA\tw=a\n")
    count = load_positions(kcrf, data, files)
    np.save(files / "own.npy", np.random.default_rng(1).normal(size=(count, 2)).astype(np.float32))
    own, out = vectors(files, "own"), files / "m.npz"
    assert kcrf("train", data, *own, "--sigma2", "1", "-q", "-o", out).code == 0
    tagged = kcrf("tag", "-m", out, data, *own)
    assert tagged.code == 0 and tagged.out, tagged.err
    assert kcrf("evaluate", "-m", out, data, *own, "-q").code == 0
    np.save(files / "own.npy", np.zeros((count + 1, 2)))
    one_line(kcrf("evaluate", "-m", out, data, *own), 3, f"{count + 1:,} rows", f"{count:,} positions")


def load_positions(kcrf, data, files):
    assert kcrf("featurize", data, "-q", "-o", files / "plain.npz").code == 0
    return load_dataset(files / "plain.npz").dataset.positions
