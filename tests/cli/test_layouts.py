"""Data as spreadsheets and laboratories have it: CSV, headers, comments, gaps; models remember how it was laid out."""

from __future__ import annotations

import csv
import io
import random

import pytest


@pytest.fixture
def notes(tmp_path):
    """A CSV file with a header, quotes, a blank line inside of quotes, and numbers of which some are missing."""
    rng = random.Random(0)
    lines = ["word,f0,label"]
    for number in range(240):
        f0 = rng.gauss(0, 1)
        word = rng.choice(["a", '"b, c"', '"say ""hi"""', '"two\n\nlines"'])
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
    done = kcrf("train", notes, *options, "-o", model)
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
        ("f0 label\n" + "1.5 X\n2.5 Y\n" * 10, ["--header"]),
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
