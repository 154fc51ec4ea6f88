"""Data as spreadsheets and laboratories have it: CSV, headers, comments, gaps; models remember how it was laid out."""

from __future__ import annotations

import csv
import io
import random
import subprocess
import sys

import numpy as np
import pytest


@pytest.fixture
def notes(tmp_path):
    """A CSV file with a header, quotes, and numbers of which some are missing."""
    rng = random.Random(0)
    lines = ["word,f0,label"]
    for number in range(240):
        f0 = rng.gauss(0, 1)
        word = rng.choice(["a", '"b, c"', '"say ""hi"""', '"two  lines"'])
        lines.append(f"{word},{'-999' if number % 10 == 7 else round(f0, 3)},{'up, high' if f0 > 0 else 'down'}")
        lines[-1] = lines[-1].replace("up, high", '"up, high"')
        if number % 6 == 5:
            lines.append("")
    path = tmp_path / "notes.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def rows_of(text):
    return [row for row in csv.reader(io.StringIO(text, newline="")) if row]


def test_a_model_remembers_the_layout_of_its_data(kcrf, notes, tmp_path):
    model = tmp_path / "model.npz"
    options = ["--separator", ",", "--header", "--missing", "NA,-999", "--sigma2", "1"]
    done = kcrf("train", notes, *options, "-v", "-o", model)
    assert done.code == 0, done.err
    assert "categorical: word (4 values); real: f0" in done.err
    assert "24 missing values taken for the training mean: 24 of f0" in done.err

    tagged = kcrf("tag", "-m", model, notes)
    assert tagged.code == 0 and "24 missing values" in tagged.err
    rows, before = rows_of(tagged.text), rows_of(notes.read_text())
    assert rows[0] == ["word", "f0", "label", "predicted"]
    assert [row[:-1] for row in rows] == before
    assert {row[-1] for row in rows[1:]} == {"up, high", "down"}
    assert tagged.text.count("\n") == notes.read_text().count("\n")
    assert kcrf("tag", "-m", model, notes, "-q").err == ""

    every = rows_of(kcrf("tag", "-m", model, notes, "--marginals", "all").text)
    assert every[0][3:] == ["p(down)", "p(up, high)", "predicted"] and every[1][4].startswith("up, high:")
    header = kcrf("tag", "-m", model, "--marginals", "best", "--sequence-probability", stdin=b"word,f0,label\n")
    assert header.text == "word,f0,label,probability,marginal,predicted\n"

    by_model = kcrf("evaluate", "-m", model, notes)
    assert by_model.code == 0 and "24 missing values" in by_model.err
    (tmp_path / "tagged.csv").write_text(tagged.text)
    by_file = kcrf("evaluate", tmp_path / "tagged.csv", "--separator", ",", "--header")
    accuracy = [line for line in by_model.text.split("\n") if line.startswith("accuracy")]
    assert accuracy and accuracy == [line for line in by_file.text.split("\n") if line.startswith("accuracy")]

    bare = tmp_path / "bare.csv"
    bare.write_text('word,f0\na,0.5\n\n"b, c",-999\n')
    assert rows_of(kcrf("tag", "-m", model, bare).text)[0] == ["word", "f0", "predicted"]
    other = tmp_path / "other.csv"
    other.write_text("f0,word\n0.5,a\n")
    refused = kcrf("tag", "-m", model, other)
    assert refused.code == 3 and "header of the training data (word, f0, label)" in refused.err


def test_layouts_stand_in_configurations_too(kcrf, notes, tmp_path):
    config = tmp_path / "notes.yaml"
    config.write_text('separator: ","\nheader: true\nmissing: [-999]\ntraining: {sigma2: 1}\n')
    by_file, by_options = tmp_path / "file.npz", tmp_path / "options.npz"
    assert kcrf("train", notes, "-c", config, "-o", by_file, "-q").code == 0
    options = ["--separator", "comma", "--header", "--missing", "-999", "--sigma2", "1"]
    assert kcrf("train", notes, *options, "-o", by_options, "-q").code == 0
    assert by_file.read_bytes() == by_options.read_bytes()
    encoded = tmp_path / "data.npz"
    assert kcrf("featurize", notes, "-c", config, "-o", encoded, "-q").code == 0
    assert kcrf("train", encoded, "--sigma2", "1", "-o", by_options, "-q").code == 0
    contradiction = kcrf("train", encoded, "--separator", "tab", "-o", by_options)
    assert contradiction.code == 2 and "other separator" in contradiction.err


@pytest.mark.parametrize("threads", [1, 4])
def test_an_indicator_is_a_feature_of_the_model(kcrf, notes, tmp_path, threads):
    model = tmp_path / "model.npz"
    options = ["--separator", ",", "--header", "--missing", "-999", "--missing-indicator", "--sigma2", "1"]
    assert kcrf("train", notes, *options, "--threads", threads, "-o", model, "-q").code == 0
    shown = kcrf("featurize", notes, "--like", model, "--show", "8", "-q").text.split("\n")
    assert "f0.missing[0]=0" in shown[0] and "f0.missing[0]=1" in shown[7]


@pytest.mark.parametrize(
    "text, flags",
    [
        ("a,b,X\nc,d,Y\n", ["--separator"]),
        ("a b X\n# a comment of some words\nc d Y\n", ["--comment"]),
        ("-DOCSTART- O\n\na b X\nc d Y\n", ["--comment"]),
        ("".join(f"{t / 4 if t else 'odd'} X\n" * (1 + (t == 1)) for t in (*range(1, 40), 0)), ["--missing"]),
    ],
)
def test_errors_name_the_option_that_helps(kcrf, tmp_path, text, flags):
    data = tmp_path / "data.conll"
    data.write_text(text)
    done = kcrf("train", data, "-o", tmp_path / "model.npz")
    assert done.code == 3 and done.err.count("\n") == 1
    assert done.err.rstrip().endswith(f"({', '.join(flags)})"), done.err


@pytest.mark.parametrize("window, offers", [("3", ("-3..3", "3..3")), ("-2", ("-2..2", "-2..-2"))])
def test_a_window_that_is_one_number_is_refused_with_what_it_may_mean(kcrf, tmp_path, window, offers):
    done = kcrf("train", "data.conll", f"--window={window}", "-o", tmp_path / "model.npz")
    assert done.code == 2 and all(f" {offer} " in done.err for offer in offers)


def test_gaps_of_new_data_are_counted_where_training_had_none(kcrf, tmp_path):
    data, new, model = tmp_path / "data.conll", tmp_path / "new.conll", tmp_path / "model.npz"
    data.write_text("".join(f"{t % 7 / 2} {'XY'[t % 7 > 3]}\n" + "\n" * (t % 5 == 4) for t in range(60)))
    new.write_text("1.5\nnan\n\nNA\n")
    assert kcrf("train", data, "--sigma2", "1", "-o", model, "-q").code == 0
    done = kcrf("tag", "-m", model, new)
    assert done.code == 0 and done.err == "2 missing values taken for the training mean: 2 of c0\n"
    odd = tmp_path / "odd.conll"
    odd.write_text("1.5\nnothing\n")
    refused = kcrf("tag", "-m", model, odd)
    assert refused.code == 3 and "'nothing'" in refused.err and "NA, ?, _, nan" in refused.err


@pytest.mark.parametrize("lag", [0, 2, 100])
def test_lines_that_arrive_are_laid_out_as_those_of_training(kcrf, notes, tmp_path, lag):
    """With a lag, too, there are separators, quotes, a header, and missing values counted once."""
    model = tmp_path / "model.npz"
    options = ["--separator", ",", "--header", "--missing", "NA,-999", "--comment", "%", "--sigma2", "1", "-q"]
    assert kcrf("train", notes, *options, "--window", "-1..1", "-o", model).code == 0
    noted = notes.read_text().replace("word,f0", "% first\nword,f0", 1).replace("\n\n\n", "\n\n% between\n\n")
    lagged = kcrf("tag", "-m", model, "--lag", lag, "--marginals", "best", stdin=noted.encode())
    assert lagged.code == 0, lagged.err
    assert "24 missing values taken for the training mean: 24 of f0" in lagged.err
    whole = kcrf("tag", "-m", model, "--decode", "posterior", "--marginals", "best", stdin=noted.encode())
    assert lagged.text.startswith("% first\nword,f0,label,marginal,predicted\n")
    if lag == 100:
        assert lagged.text == whole.text
    rows, before = rows_of(lagged.text), rows_of(noted)
    assert [row[:3] for row in rows] == before and {len(row) for row in rows} == {1, 5}
    assert kcrf("tag", "-m", model, "--lag", lag, "-q", stdin=noted.encode()).err == ""

    # Every line on its own.
    command = [sys.executable, "-m", "kcrf_cli", "tag", "-m", model, "--lag", str(lag), "--marginals", "best", "-q"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        for line in noted.encode().splitlines(keepends=True):
            running.stdin.write(line)
            running.stdin.flush()
        running.stdin.close()
        assert running.stdout.read() == lagged.out


def test_vectors_stand_beside_files_with_a_header(kcrf, notes, tmp_path):
    """A row of vectors for each row of numbers, none for names, comments and blank lines."""
    rows = rows_of(notes.read_text())[1:]
    labels = np.array([row[-1] == "down" for row in rows])
    np.save(tmp_path / "emb.npy", np.random.default_rng(0).normal(size=(len(rows), 3)) + 3 * labels[:, None])
    given = ["--vectors", f"emb={tmp_path / 'emb.npy'}"]
    model = tmp_path / "model.npz"
    options = ["--separator", ",", "--header", "--missing", "-999", "--sigma2", "1"]
    done = kcrf("train", notes, *given, *options, "-o", model)
    assert done.code == 0, done.err
    assert "24 missing values taken for the training mean: 24 of f0" in done.err
    tagged = kcrf("tag", "-m", model, notes, *given)
    assert tagged.code == 0 and "24 of f0" in tagged.err
    found = rows_of(tagged.text)
    assert found[0] == ["word", "f0", "label", "predicted"] and [row[:3] for row in found[1:]] == rows
    assert np.mean([row[2] == row[3] for row in found[1:]]) > 0.95
    judged = kcrf("evaluate", "-m", model, notes, *given)
    assert judged.code == 0 and "24 missing values" in judged.err
    indicated = kcrf("train", notes, *given, *options, "--missing-indicator", "-o", tmp_path / "gaps.npz")
    assert indicated.code == 0, indicated.err
    assert "f0.missing" in kcrf("inspect", tmp_path / "gaps.npz", "--top", 50).text

    np.save(tmp_path / "short.npy", np.zeros((len(rows) - 1, 3)))
    refused = kcrf("tag", "-m", model, notes, "--vectors", f"emb={tmp_path / 'short.npy'}", "-q")
    assert refused.code == 3 and "239 rows of vectors 'emb'" in refused.err and "has 240 positions" in refused.err


def test_columns_of_a_header_are_named_by_ranges_and_patterns(kcrf, tmp_path):
    rng = random.Random(0)
    lines = ["word,v1,v2,v3,w1,label"]
    for number in range(60):
        values = [rng.gauss(0, 1) for _ in range(4)]
        gap = "NA" if number % 20 == 3 else f"{values[1]:.3f}"
        lines.append(f"a,{values[0]:.3f},{gap},{values[2]:.3f},{values[3]:.3f},{'x' if values[0] > 0 else 'y'}")
    data = tmp_path / "data.csv"
    data.write_text("\n".join(lines) + "\n")
    described = {}
    for name, columns in (("range", "v1..v3"), ("list", "v1, v2, v3")):
        config = tmp_path / f"{name}.yaml"
        config.write_text(
            f"separator: ','\nheader: true\nfeatures:\n  - {{name: v, columns: [{columns}], type: real, scale: unit, "
            "missing: indicator}\ntraining: {sigma2: 1}\n"
        )
        done = kcrf("featurize", data, "-c", config, "--show", 5)
        assert done.code == 0, done.err
        described[name] = done.text
    assert described["range"] == described["list"]
    assert "v2.missing[0]=1" in described["list"]


def test_crossval_takes_what_is_said_of_the_text(kcrf, notes):
    """Options that no grid can vary are options all the same."""
    options = ["--separator", ",", "--header", "--comment", "//", "--missing", "NA,-999", "--missing-indicator"]
    done = kcrf("crossval", notes, *options, "--folds", "2", "--sigma2", "1", "-q")
    assert done.code == 0 and "accuracy" in done.text, done.err


def test_labels_that_no_model_can_hold_are_refused(kcrf, tmp_path):
    (tmp_path / "data.csv").write_text("cat,V\ndog,N\tX\n")
    done = kcrf("train", tmp_path / "data.csv", "--separator", ",", "--sigma2", "1", "-q", "-o", tmp_path / "m.npz")
    assert done.code == 3 and "data.csv:2: a label with a TAB or a line end inside" in done.err
    assert not (tmp_path / "m.npz").exists()


@pytest.mark.parametrize("header", ["", '"w, x",l\n'])
def test_a_byte_order_mark_before_a_quote(kcrf, tmp_path, header):
    """It is no part of the first value, whether the file is read whole or line by line."""
    text = f'\ufeff{header}"a, b",X\nc,Y\n'.encode()
    (tmp_path / "data.csv").write_bytes(text)
    options = ("--separator", ",", *(["--header"] if header else []), "--sigma2", "1", "--plain", "-q")
    done = kcrf("train", tmp_path / "data.csv", *options, "-o", tmp_path / "m.npz")
    assert (done.code, done.err) == (0, "")
    tagged = text.replace(b",l\n", b",l,predicted\n").replace(b",X\n", b",X,X\n").replace(b",Y\n", b",Y,Y\n")
    assert kcrf("tag", "-m", tmp_path / "m.npz", "-q", stdin=text).out == tagged
    assert kcrf("tag", "-m", tmp_path / "m.npz", "-q", "--lag", "0", stdin=text).out == tagged


def test_names_of_columns_alone_are_no_data(kcrf, tmp_path):
    (tmp_path / "data.csv").write_text("word,label\n\n")
    options = ("--separator", ",", "--header", "-o")
    for command in (("train", "--sigma2", "1", *options, "m.npz"), ("featurize", *options, "d/", "--shards", "2")):
        done = kcrf(command[0], tmp_path / "data.csv", *command[1:])
        assert done.code == 3 and done.err.endswith("data.csv: no data: only blank lines, comments or a header line\n")
