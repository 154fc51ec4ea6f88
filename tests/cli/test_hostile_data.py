"""Data that nobody means well with: each has an outcome, a model or a refusal of one line with the right exit code."""

from __future__ import annotations

import json

import numpy as np
import pytest

from kcrf_core import Model

FINE, CONFIG, DATA = 0, 2, 3


def rows(count, row, every=5):
    """`row` of each number, in sequences of `every`."""
    return "".join(f"{row(i)}\n" + "\n" * (i % every == every - 1) for i in range(count))


def label(i):
    return "AB"[i % 3 == 0]


PLAIN = rows(50, lambda i: f"w{i % 7}\t{i % 4}\t{label(i)}")

CASES = {
    "nothing": (b"", DATA, "no data"),
    "blank lines": (b"\n\n  \n\n", DATA, "no data"),
    "one column": (rows(20, label), DATA, "only one column"),
    "one token": (b"x A\n", FINE, "all labels are 'A'"),
    "one label": (rows(50, lambda i: f"w{i % 3}\tA"), FINE, "all labels are 'A'"),
    "a label seen once": (rows(50, lambda i: f"w{i % 3}\t{'B' if i == 20 else 'A'}"), FINE, ""),
    "one sequence": (rows(50, lambda i: f"w{i % 3}\t{label(i)}", every=1000), FINE, ""),
    "a column of one value": (rows(50, lambda i: f"x\t{label(i)}"), FINE, ""),
    "a constant real column": (rows(50, lambda i: f"1.5\t{label(i)}"), FINE, ""),
    "a value of 1e300": (rows(50, lambda i: f"{'1e300' if i == 7 else i}\t{label(i)}"), DATA, "too large"),
    "all values of 1e300": (rows(50, lambda i: f"{i % 5}e300\t{label(i)}"), DATA, "too large"),
    "steps beyond numbers": (rows(50, lambda i: f"{'-' * (i % 2)}1e308\t{label(i)}"), DATA, "too large"),
    "infinite values": (rows(50, lambda i: f"{'inf' if i == 7 else i}\t{label(i)}"), DATA, "not a finite number"),
    "tiny values": (rows(50, lambda i: f"{i}e-310\t{label(i)}"), FINE, ""),
    "not UTF-8": (PLAIN.encode() + b"\xff\xfe x\n", DATA, "not UTF-8"),
    "UTF-16": (PLAIN.encode("utf-16"), DATA, "UTF-8|NUL"),
    "a NUL": (PLAIN.encode() + b"a\0b\t1\tA\n", DATA, "NUL"),
    "a byte order mark": (b"\xef\xbb\xbf" + PLAIN.encode(), FINE, ""),
    "lines ended by CR LF": (PLAIN.replace("\n", "\r\n"), FINE, ""),
    "lines ended by CR": (PLAIN.replace("\n", "\r"), DATA, "carriage return"),
    "no newline at the end": (PLAIN.rstrip("\n"), FINE, ""),
    "columns that change their number": (PLAIN + "a\tb\n", DATA, "column"),
    "a column that changes its type": (rows(50, lambda i: f"{i if i < 40 else 'abc'}\t{label(i)}"), FINE, ""),
    "labels with spaces": (rows(50, lambda i: f"w\t{i % 4}\t{'A B' if i % 3 else 'C'}"), FINE, "spaces inside"),
    "labels with colons": (rows(50, lambda i: f"w{i % 4}\t{'A:1' if i % 3 else ':'}"), FINE, ""),
    "an empty label": (rows(50, lambda i: f"w{i % 4}\t{'' if i == 9 else label(i)}"), DATA, "empty label"),
    "50,000 labels": (rows(50_000, lambda i: f"w{i % 9}\tL{i}"), DATA, "50,000 distinct labels"),
    "a very long value": (rows(50, lambda i: f"{'x' * 100_000}{i % 3}\t{label(i)}"), FINE, ""),
    "values like options": (rows(50, lambda i: f"--help{i % 3}\t-{label(i)}"), FINE, ""),
}


@pytest.mark.parametrize("name", list(CASES))
def test_every_file_has_its_outcome(kcrf, tmp_path, name):
    data, code, words = CASES[name]
    path, model = tmp_path / "data.conll", tmp_path / "m.npz"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    done = kcrf("train", path, "--sigma2", 1, "-o", model)
    text = done.err
    assert done.code == code, text
    assert "Traceback" not in text
    if words:
        assert any(word in text for word in words.split("|")), text
    if done.code:
        assert not model.exists() and text.count("\n") <= 3
        return
    tagged = kcrf("tag", "-m", model, path)
    assert tagged.code == 0 and tagged.out.count(b"\n") >= path.read_bytes().count(b"\n")


@pytest.mark.slow
def test_one_sequence_of_100_000_positions(kcrf, tmp_path):
    path, model = tmp_path / "data.conll", tmp_path / "m.npz"
    path.write_text(rows(100_000, lambda i: f"w{i % 50}\t{label(i)}", every=10**9))
    for order in (1, 2):
        assert kcrf("train", path, "--sigma2", 1, "--order", order, "--max-passes", 5, "-q", "-o", model).code == 0
        tagged = kcrf("tag", "-m", model, path)
        assert tagged.code == 0 and tagged.out.count(b"\n") == 100_000


@pytest.mark.parametrize("count", [10_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_a_million_sequences(kcrf, tmp_path, count):
    path, model = tmp_path / "data.conll", tmp_path / "m.npz"
    path.write_text(rows(count, lambda i: f"w{i * 7919 % 50_021}\t{label(i)}", every=1))
    assert kcrf("train", path, "--sigma2", 1, "--max-passes", 2, "-q", "-o", model).code == 0
    assert kcrf("tag", "-m", model, path).out.count(b"\n") == 2 * count


@pytest.mark.slow
def test_a_thousand_labels(kcrf, tmp_path):
    path, model = tmp_path / "data.conll", tmp_path / "m.npz"
    # Few of them follow each other: each transition takes as many steps as there are pairs of labels.
    path.write_text(rows(960, lambda i: f"w{i}\tL{i}", every=1) + rows(40, lambda i: f"w{960 + i}\tL{960 + i}"))
    done = kcrf("train", path, "--sigma2", 1, "--max-passes", 1, "-o", model)
    assert done.code == 0 and "1,000 labels" in done.err
    assert kcrf("tag", "-m", model, path).code == 0


def test_too_many_gold_labels_are_refused_before_the_work(kcrf, tmp_path, monkeypatch):
    path, model, many = tmp_path / "data.conll", tmp_path / "m.npz", tmp_path / "many.conll"
    path.write_text(PLAIN)
    assert kcrf("train", path, "--sigma2", 1, "-q", "-o", model).code == 0
    many.write_text(rows(5_001, lambda i: "\t".join(["w", "0", f"L{i}"])))
    monkeypatch.setattr(Model, "potentials", lambda *arguments: pytest.fail("the data is being labelled"))
    done = kcrf("evaluate", "-m", model, many)
    assert done.code == DATA and "many.conll: 5001 different labels in 5001 positions, more than 5000" in done.err


def test_the_same_column_twice(kcrf, tmp_path):
    path, config = tmp_path / "data.conll", tmp_path / "c.yaml"
    path.write_text(PLAIN)
    config.write_text("columns: [a, a, label]\n")
    done = kcrf("train", path, "-c", config, "-o", tmp_path / "m.npz")
    assert done.code == CONFIG and "twice" in done.err


def test_standard_input_twice(kcrf, tmp_path):
    done = kcrf("evaluate", "-", "--compare", "-", stdin=b"x A A\n")
    assert done.code == CONFIG and "Traceback" not in done.err
    done = kcrf("train", "-", "--dev", "-", "-o", tmp_path / "m.npz", stdin=b"x A\n")
    assert done.code == CONFIG and "Traceback" not in done.err


@pytest.mark.parametrize("sigma2", ["1e-6", "1e6"])
@pytest.mark.parametrize("kernel", [[], ["--kernel", "poly", "--degree", "2"], ["--kernel", "rbf", "--gamma", "1e-9"]])
def test_extreme_priors_give_finite_results(kcrf, tmp_path, sigma2, kernel):
    """Nearly singular kernel matrices, too: most rows are alike."""
    path, model = tmp_path / "data.conll", tmp_path / "m.npz"
    path.write_text(PLAIN)
    done = kcrf("train", path, "--sigma2", sigma2, *kernel, "--max-passes", 200, "--json", "-o", model)
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert np.isfinite(found["objective"]) and found["certified_gap"] < 0.1
    scores = json.loads(kcrf("evaluate", "-m", model, path, "--json").out)
    assert np.isfinite(scores["calibration"]["log_loss"])
