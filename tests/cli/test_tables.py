"""Tables as people have them: a column that tells sequences apart, names that say CSV, headers, columns to ignore."""

from __future__ import annotations

import gzip
from dataclasses import replace

import numpy as np
import pytest

from kcrf_core.config import parse_config
from kcrf_core.corpora import Columns, Corpus, Layout, corpus_of, formats, read_corpus, tables
from kcrf_core.encoding import alternatives
from kcrf_core.errors import ConfigError
from kcrf_core.kernels import matching_features


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
    done = kcrf("train", kaggle, *options, "--plain", "--sigma2", "1", "-o", model)
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
    done = kcrf("crossval", kaggle, *options, "--sequence", "Sentence", "--folds", "2")
    assert done.code == 2 and "'sequence' names no column" in done.err
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
    assert done.code == 2 and "'sequence' names no column of input: 'Tag' is the label" in done.err
    done = kcrf("train", kaggle, "--ignore", "Sentence #,Word,POS", *options)
    assert done.code == 2 and "no column is left for features" in done.err and "(--ignore)" in done.err
    done = kcrf("train", kaggle, "--ignore", "POS,Wort", *options)
    assert done.code == 2 and "'ignore' names no column: there is no 'Wort' (did you mean 'Word'?)" in done.err


def test_columns_are_ignored_by_name(kcrf, sample_data):
    done = kcrf(
        "featurize", sample_data / "pitch_accent.conll", "--ignore", "c0", "--ignore", "c2..c3,c4", "--plain", "--json"
    )
    assert done.code == 0 and "categorical: c1 (10 values)" in done.err and "real:" not in done.err


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


def test_csv_and_its_header_are_recognised(kcrf, kaggle, tmp_path):
    model, tagged = tmp_path / "model.npz", tmp_path / "tagged.csv"
    done = kcrf("train", kaggle, "--sequence", "Sentence #", "--sigma2", "1", "-o", model)
    assert "(Sentence #, Word, POS, Tag); else give 'header: false' (--no-header)\n" in done.err
    assert "30 sequences" in done.err and "; not with 'plain' (--plain)\n" in done.err
    assert kcrf("tag", "-m", model, kaggle, "-o", tagged).code == 0
    assert kcrf("tag", "-m", model, stdin=kaggle.read_bytes()).out == tagged.read_bytes()  # the model has the layout
    assert "(75 of 75 positions)" in kcrf("evaluate", tagged).text
    done = kcrf("train", kaggle, "--sigma2", "1", "-o", model)
    assert "the first line is taken as data: give 'header'" in done.err and "76 positions" in done.err
    assert "first line" not in kcrf("train", kaggle, "--no-header", "--sigma2", "1", "-o", model).err
    done = kcrf("train", kaggle, "--separator", "tab", "-o", model)
    assert done.code == 3 and "only one column" in done.err  # options win over the name

    packed = tmp_path / "numbers.csv.gz"
    rows = "".join(f"{number},{number % 3 / 2},{'AB'[number % 2]}\n" for number in range(40))
    packed.write_bytes(gzip.compress(f",f0,label\n{rows}".encode()))
    done = kcrf("train", packed, "--sigma2", "1", "--plain", "-o", model)
    assert done.code == 0 and "real: c0, f0" in done.err and "40 positions" in done.err
    out = kcrf(
        "tag",
        "-m",
        model,
        stdin=b",f0\n3,0.5\n",
    ).text
    assert out.startswith(",f0,predicted\n3,0.5,")


@pytest.mark.parametrize(
    "name, text, header",
    [
        ("a.csv", "x,label\n1,A\n2,B\n", ("x", "label")),
        ("a.tsv", 'word\tx\tlabel\n"\t1\tA\n,\tNA\tB\n', ("word", "x", "label")),
        ("a.txt", "x label\n" + "1 A\n" * 11, ("x", "label")),
        ("a.txt", "x label\n" + "1 A\n" * 5, None),  # by chance
        ("a.csv", "x,label\na,A\nb,B\n", None),
        ("a.csv", "x,label\n1,A\nb,B\n3,A\n", None),
        ("a.csv", "NA,A\n1,A\n2,B\n", None),
        ("a.csv", ",x,label\n0,1,A\n1,2,B\n", ("c0", "x", "label")),  # as pandas writes an index
        ("a.txt", "長さ ラベル\n" + "1 A\n" * 11, ("長さ", "ラベル")),
    ],
)
def test_a_header_stands_above_numbers(tmp_path, name, text, header):
    path = tmp_path / name
    path.write_text(text)
    corpus = read_corpus(path)
    assert corpus.header == header and bool(corpus.remarks) == (
        header is not None or "x,label\na" in text or "b,B" in text
    )
    assert read_corpus(path, layout=Layout(header=False)).header is None


@pytest.mark.parametrize("separator, name", [(",", "a.csv"), ("\t", "a.tsv"), ("\t", "a.conll"), (" ", "a.txt")])
@pytest.mark.parametrize(
    "value",
    [
        "-",
        "--",
        "null",
        "None",
        "NULL",
        "inf",
        "-inf",
        "<3",
        "#N/A",
        "#DIV/0!",
        "<NA>",
        "n/a",
        "nan",
        "1e999",
        "n.a.",
        "low",
    ],
)
def test_a_first_row_with_a_word_among_numbers_is_data(tmp_path, separator, name, value):
    """What stands for a missing number is no name, and a label that occurs below is no name of the label."""
    path, rows = tmp_path / name, [["w", str(number), "AB"[number % 2]] for number in range(12)]
    for first in (["w", value, "A"], ["v", value, "C"]) if value != "low" else (["w", value, "A"],):
        path.write_text("".join(separator.join(row) + "\n" for row in [first, *rows]))
        corpus = read_corpus(path)
        assert corpus.header is None and corpus.positions == 13
        assert list(corpus.columns[1])[:2] == [value, "0"]


@pytest.mark.parametrize("first", ["w,x,x", "w,,label", "w,7,label", "w,x,7", "w,x,A"])
def test_a_first_row_whose_values_are_no_names_is_data(tmp_path, first):
    path = tmp_path / "a.csv"
    path.write_text(first + "\n" + "w,1,A\nv,2,B\n" * 6)
    assert read_corpus(path).header is None


@pytest.fixture
def sensors(tmp_path):
    """Readings of 24 trials with row numbers, time stamps, the trial, its subject and a number that says something."""
    lines = ["row,time,trial,subject,x,label"]
    for number in range(240):
        trial, label = number // 10, "AB"[(number // 5) % 2]
        x = number % 7 / 7 + 2 * (label == "B")
        lines.append(
            f"{number},2024-05-01 10:{number // 60:02}:{number % 60:02},t{trial},s{trial // 6},{x:.2f},{label}"
        )
        lines += [""] * (number % 10 == 9)
    path = tmp_path / "sensors.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_columns_that_identify_rows_and_sequences_are_warned_of(kcrf, sensors):
    options = ["--plain", "--json"]
    done = kcrf("featurize", sensors, *options)
    assert done.code == 0, done.err
    assert "column row only ever grows" in done.err and "column time only ever grows" in done.err
    assert "column trial has a value of its own in each sequence" in done.err and "'ignore'" in done.err
    assert "column subject has 4 values, each in one run of rows" in done.err and "column x" not in done.err
    ignored = [part for name in ("row", "time", "subject") for part in ("--ignore", name)]
    done = kcrf("featurize", sensors, *options, "--sequence", "trial", *ignored)
    assert "warning" not in done.err and "24 sequences" in done.err


@pytest.fixture
def restarting(tmp_path):
    """Readings of 12 trials on three days, whose clocks begin anew in each, or where they did not end before."""
    lines = ["trial,seconds,clock,date,count,flag,x,label"]
    for trial, start in enumerate(range(20_000, 44_000, 2_000)):
        start = 60_000 - start if trial % 2 else start
        for number in range(12):
            clock = f"{start // 3600}:{start // 60 % 60:02}:{start % 60 + number:02}"
            x, label = (number * 7 + trial) % 5, "AB"[number // 3 % 2]
            values = trial, number / 2, clock, f"2024-05-{1 + trial % 3:02}", start + number, int(number > 5), x, label
            lines.append(",".join(map(str, values)))
    path = tmp_path / "restarting.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("more", [["--plain"], []])
def test_times_that_restart_are_warned_of(kcrf, restarting, more):
    """Seconds, times of day and dates that sequences share, as they are or as ranks; a mark that is set is no time."""
    done = kcrf("featurize", restarting, "--sequence", "trial", *more, "--json")
    assert done.code == 0, done.err
    warned = [line.split()[2:6] for line in done.err.splitlines() if line.startswith("warning: column ")]
    assert warned == [
        ["seconds", "only", "grows", "within"],
        ["clock", "holds", "times", "or"],
        ["date", "holds", "times", "or"],
        ["count", "only", "grows", "within"],
    ]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (["10:00", "9:59:01.5"], True),
        (["2024-05-01T10:00:00Z", "2024-05-01 11:00:00+02:00", "NA"], True),
        (["01.05.2024", "2.5.2024"], True),
        (["2024/05/01", "05/01/2024 1:30 PM"], True),
        (["10:00", "10:99"], False),
        (["10:00", "noon"], False),
        (["1.2.3", "1.2.4"], False),
        (["3-4-1999", "4-4"], False),
        (["10:00"], False),
    ],
)
def test_texts_of_times(values, told):
    rows = values * 3
    corpus = Corpus("data", (rows, ["A"] * len(rows)), np.array([0, len(rows)]), np.arange(len(rows)))
    assert (Columns(corpus).identifier(0) is not None) == told


def test_data_to_tag_may_lack_columns_that_the_model_does_not_use(kcrf, sensors, tmp_path):
    model, rows = tmp_path / "model.npz", [line.split(",") for line in sensors.read_text().splitlines()]

    def tagged(separator, columns, rows=rows):
        text = "\n".join(separator.join(row[column] for column in columns if row != [""]) for row in rows) + "\n"
        done = kcrf("tag", "-m", model, stdin=text.encode())
        return done.err if done.code else [line.rpartition(separator)[2] for line in done.text.splitlines()]

    options = ["--sequence", "trial", "--ignore", "row,time", "--group", "subject", "--sigma2", "1", "--plain"]
    assert kcrf("train", sensors, *options, "-q", "-o", model).code == 0
    labels = tagged(",", range(6))
    assert {*labels} == {"predicted", "A", "B", ""}
    for columns in ((4,), (4, 5), (1, 3, 4), (0, 2, 4, 5)):
        assert tagged(",", columns) == labels
    for columns in ((0, 1, 5), (5, 4)):
        assert "with or without the label and unused columns" in tagged(",", columns)

    plain = tmp_path / "plain.conll"  # without a header, all unused columns are lacking or none
    plain.write_text("".join("\t".join(row) + "\n" for row in rows[1:]))
    options = [
        "--sequence",
        "c2",
        "--ignore",
        "c0,c1,c3",
        "--no-header",
        "--separator",
        "tab",
        "--sigma2",
        "1",
        "--plain",
    ]
    assert kcrf("train", plain, *options, "-q", "-o", model).code == 0
    assert tagged("\t", (4,), rows[1:]) == tagged("\t", (4, 5), rows[1:]) == labels[1:]
    assert "3 columns, expected 6" in tagged("\t", (3, 4, 5), rows[1:])


def test_a_table_without_the_column_of_sequences_is_told_of(kcrf, sensors, tmp_path):
    model, bare = tmp_path / "model.npz", tmp_path / "bare.csv"
    options = ["--sequence", "trial", "--ignore", "row,time,subject", "--sigma2", "1", "--plain"]
    assert kcrf("train", sensors, *options, "-q", "-o", model).code == 0
    assert "no column" not in kcrf("tag", "-m", model, sensors).err
    bare.write_text("x,label\n1.5,A\n0.5,B\n")
    warning = f"warning: {bare}: there is no column 'trial', so blank lines alone end sequences\n"
    for command in (["tag"], ["tag", "--lag", "1"], ["evaluate"]):
        assert warning in kcrf(*command, "-m", model, bare).err
        assert "no column" not in kcrf(*command, "-m", model, bare, "-q").err


def test_columns_are_those_of_the_data_where_some_are_lacking(kcrf, sensors, tmp_path):
    """Of a column that rules or groups name: it need not stand where it stood in training."""
    model, part = tmp_path / "model.npz", tmp_path / "part.csv"
    options = ["--ignore", "row,time,trial", "--group", "subject", "--sigma2", "1", "--plain"]
    assert kcrf("train", sensors, *options, "-q", "-o", model).code == 0
    rows = [line.split(",") for line in sensors.read_text().splitlines()]
    header, *data = [[row[3], *row[4:]] if len(row) > 1 else [""] for row in rows]  # subject, x, label
    part.write_text("\n".join(",".join(row) for row in [header, *data]) + "\n")
    whole = kcrf("evaluate", "-m", model, sensors, "--group", "subject", "--bootstrap", "20", "--json")
    found = kcrf("evaluate", "-m", model, part, "--group", "subject", "--bootstrap", "20", "--json")
    assert found.code == 0 and found.text == whole.text.replace(str(sensors), str(part))
    allowed = [[row[0].replace("s", "A"), *row[1:]] if len(row) > 1 else row for row in data]
    text = "\n".join(",".join(row) for row in [header, *(["A" if row[0] else "", *row[1:]] for row in allowed)])
    done = kcrf("tag", "-m", model, "--allowed", "subject", stdin=text.encode())
    assert done.code == 0, done.err
    assert {line.rpartition(",")[2] for line in done.text.splitlines()} == {"predicted", "A", ""}


def test_tables_without_data_and_columns_without_values(kcrf, tmp_path):
    data, model = tmp_path / "data.csv", tmp_path / "model.npz"
    data.write_text("x,y,label\n")
    done = kcrf("train", data, "-o", model)
    assert "the first line is taken as data: give 'header' if it names the columns (--header)\n" in done.err
    assert kcrf("train", data, "--header", "-o", model).code == 3
    data.write_text("a,b,label\n" + "".join(f"{number % 7},NA,{'AB'[number % 2]}\n" for number in range(30)))
    done = kcrf("train", data, "--sigma2", "1", "-o", model)
    assert "warning: column b has no values: all are missing; leave it out by 'ignore' (--ignore)\n" in done.err


class Counting(str):
    """A name that counts how often it is compared with others."""

    compared = 0

    def __eq__(self, other):
        Counting.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.fixture
def many_names():
    Counting.compared = 0
    return [Counting(f"c{number}") for number in range(1000)]


def test_names_of_many_features_are_compared_once(many_names):
    """Twins are looked for, and a term may list all features, in time that grows as the number of names does."""
    raw = {"features": [{"column": "x", "name": name} for name in many_names]}
    raw["terms"] = [{"features": list(many_names)}]
    with pytest.raises(ConfigError, match="two features are called 'c7'"):
        parse_config({**raw, "features": [*raw["features"], {"column": "y", "name": "c7"}]})
    assert len(parse_config(raw).features) == 1000
    assert matching_features(tuple(many_names), many_names, "node") == many_names
    assert matching_features(("c1?", "c7", "c[89]9"), many_names, "node") == [
        *map("c{}".format, [7, *range(10, 20), 89, 99])
    ]
    assert Counting.compared < 20 * len(many_names)


def test_other_configurations_of_many_numbers_are_made_in_one_go(rng, many_names):
    corpus = corpus_of([rng.normal(size=(9, len(many_names)))] * 3, "columns", [list("abcabcabc")] * 3)
    corpus = replace(corpus, header=(*many_names, "label"))
    assert "linear" in alternatives({}, {}, corpus, "test")
    assert 0 < Counting.compared < 50 * len(many_names)


def test_texts_of_many_columns_are_found_by_one_sum(tmp_path, monkeypatch):
    """Each column is a part of all text, whose bounds are not summed up again for each."""
    path, summed = tmp_path / "wide.tsv", []
    path.write_text("\n".join("\t".join(map(str, [*range(row, row + 300), "A"])) for row in range(3)) + "\n")
    corpus = read_corpus(path)
    (texts,) = corpus.columns.texts
    original = tables.offsets_of
    monkeypatch.setattr(tables, "offsets_of", lambda lengths: summed.append(len(lengths)) or original(lengths))
    for column in range(300):
        text, lengths = texts.of(column)
        assert bytes(text).decode() == f"{column}{column + 1}{column + 2}" and len(lengths) == 3
    assert sum(summed) == 300


def test_a_file_of_very_many_columns_is_told_of(kcrf, tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "MANY_COLUMNS", 30)
    path = tmp_path / "wide.tsv"
    path.write_text("\n".join("\t".join(["1"] * 30 + [label]) for label in "AB") + "\n")
    done = kcrf("featurize", path, "--plain", "-o", tmp_path / "data.npz")
    assert f"warning: {path}: 31 columns, each of which is looked at by itself" in done.err
    assert "('vectors') (--vectors)\n" in done.err
    monkeypatch.setattr(formats, "MANY_COLUMNS", 31)
    assert "looked at" not in kcrf("featurize", path, "--plain", "-o", tmp_path / "data.npz").err
