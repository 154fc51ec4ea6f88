"""Tables as people have them: a column that tells sequences apart, names that say CSV, headers, columns to ignore."""

from __future__ import annotations

import pytest


@pytest.fixture
def kaggle(tmp_path):
    """Sentences whose number stands in their first row, with a header, as in a well-known corpus of named entities."""
    lines = ["Sentence #,Word,POS,Tag"]
    for number in range(30):
        lines += [f"Sentence: {number + 1},in,IN,O", ',"Iran, too",NNP,B-gpe' if number % 3 else ",Paris,NNP,B-geo"]
        lines += [",said,VBD,O"] * (number % 2)
    path = tmp_path / "kaggle.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_column_tells_sequences_apart_in_all_commands(kcrf, kaggle, tmp_path):
    model, options = tmp_path / "model.npz", ["--separator", ",", "--header", "--sequence", "Sentence #"]
    done = kcrf("train", kaggle, *options, "--sigma2", "1", "-o", model)
    assert done.code == 0 and "30 sequences, 75 positions" in done.err, done.err
    assert "categorical: Word (4 values), POS (3 values)" in done.err and "warning" not in done.err

    tagged = kcrf("tag", "-m", model, kaggle)
    before = kaggle.read_text().splitlines()
    assert [line.rpartition(",")[0] for line in tagged.text.splitlines()] == before
    assert kcrf("tag", "-m", model, "--lag", "2", "-q", stdin=kaggle.read_bytes()).out.count(b"\n") == len(before)
    assert "(30 of 30)" in kcrf("evaluate", "-m", model, kaggle).text
    assert "(30 of 30)" in kcrf("evaluate", "-", *options, stdin=tagged.out).text
    assert "sequence Sentence #" in kcrf("inspect", model).text

    folder = tmp_path / "shards"
    done = kcrf("featurize", kaggle, *options, "--shards", "3", "-o", folder)
    assert done.code == 0 and "30 sequences" in done.err
    done = kcrf("crossval", kaggle, *options, "--sigma2", "1", "--folds", "2", "--jobs", "1", "--json")
    assert done.code == 0, done.err
    config = tmp_path / "table.yaml"
    config.write_text('separator: ","\nheader: true\nsequence: "Sentence #"\nignore: POS\n')
    done = kcrf("train", kaggle, "-c", config, "--sigma2", "1", "-o", model)
    assert "30 sequences" in done.err and "POS" not in done.err
    dumped = kcrf("train", kaggle, *options, "--dump-config").text
    assert "sequence: 'Sentence #'" in dumped


def test_a_sequence_column_that_cannot_be_meant(kcrf, kaggle, tmp_path):
    options = ["--separator", ",", "--header", "-o", tmp_path / "model.npz"]
    done = kcrf("train", kaggle, "--sequence", "Sentence", *options)
    assert done.code == 2 and "did you mean 'Sentence #'?" in done.err and "--sequence" in done.err
    done = kcrf("train", kaggle, "--sequence", "Tag", *options)
    assert done.code == 2 and "'sequence' names no column" in done.err
    done = kcrf("train", kaggle, "--ignore", "POS,Wort", *options)
    assert done.code == 2 and "'ignore' names no column: there is no 'Wort' (did you mean 'Word'?)" in done.err


def test_columns_are_ignored_by_name(kcrf, sample_data, tmp_path):
    done = kcrf("featurize", sample_data / "pitch_accent.conll", "--ignore", "c0", "--ignore", "c2..c3,c4", "--json")
    assert done.code == 0 and "categorical: c1 (10 values)" in done.err and "real" not in done.err.split("\n")[0]


def test_lines_of_tabs_end_sequences_and_come_back(kcrf, first_accents, tmp_path):
    path, model = first_accents(20), tmp_path / "model.npz"
    data = path.read_bytes().replace(b"\n\n", b"\n\t\n")
    path.write_bytes(data)
    done = kcrf("train", path, "--sigma2", "1", "-o", model)
    assert done.code == 0 and "20 sequences" in done.err
    lines = kcrf("tag", "-m", model, path).out.split(b"\n")
    assert [line if line == b"\t" else line.rpartition(b"\t")[0] for line in lines] == data.split(b"\n")
    lagging = kcrf("tag", "-m", model, path, "--lag", "2", "-q").out
    assert lagging.count(b"\n\t\n") == 19
