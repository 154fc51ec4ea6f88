"""CoNLL-U files through every command."""

from __future__ import annotations

import json

import pytest

from kcrf_core.model import Model


@pytest.fixture
def sentences(sample_data):
    return sample_data / "sentences.conllu"


@pytest.fixture
def tagger(kcrf, tmp_path, sentences):
    path = tmp_path / "tagger.npz"
    assert kcrf("train", sentences, "-o", path, "--sigma2", "1", "-q").code == 0
    return path


def accuracy(done):
    assert done.code == 0, done.err
    return json.loads(done.text)["accuracy"]


def words(data: bytes) -> list[list[bytes]]:
    rows = [line.split(b"\t") for line in data.split(b"\n")]
    return [row for row in rows if row[0].isdigit()]


def test_tag_changes_the_label_and_nothing_else(kcrf, tagger, sentences):
    blank = sentences.read_bytes()
    for label in {row[3] for row in words(blank)}:
        blank = blank.replace(b"\t" + label + b"\t", b"\t_\t")
    done = kcrf("tag", "-m", tagger, stdin=blank)
    assert done.code == 0
    before, after = blank.split(b"\n"), done.out.split(b"\n")
    for old, new in zip(before, after, strict=True):
        if old[:1].isdigit() and old.split(b"\t")[0].isdigit():
            assert new.split(b"\t")[3] != b"_"
            assert old.split(b"\t")[:3] + old.split(b"\t")[4:] == new.split(b"\t")[:3] + new.split(b"\t")[4:]
        else:
            assert old == new
    assert words(done.out) == words(kcrf("tag", "-m", tagger, sentences).out)


def test_evaluate_by_model_and_by_two_files(kcrf, tagger, sentences, tmp_path):
    by_model = accuracy(kcrf("evaluate", "-m", tagger, sentences, "--json"))
    tagged = kcrf("tag", "-m", tagger, sentences)
    out = tmp_path / "tagged.conllu"
    out.write_bytes(tagged.out)
    assert accuracy(kcrf("evaluate", "--gold", sentences, out, "--json")) == by_model
    assert accuracy(kcrf("evaluate", "--gold", sentences, "-", "--json", stdin=tagged.out)) == by_model
    assert accuracy(kcrf("evaluate", "--gold", sentences, out, "--label", "xpos", "--json")) == 1.0
    compared = kcrf("evaluate", "--gold", sentences, out, "--compare", sentences, "--json")
    assert compared.code == 0 and "compar" in compared.text
    wrong = tagged.out.replace(b"\tVERB\t", b"\tNOUN\t")
    assert accuracy(kcrf("evaluate", "--gold", sentences, "-", "--json", stdin=wrong)) < by_model


def test_two_files_of_other_formats(kcrf, tmp_path):
    gold, predicted = tmp_path / "gold.conll", tmp_path / "predicted.conll"
    gold.write_text("a X\nb Y\n\nc X\n")
    predicted.write_text("a 1 X\nb 2 X\n\nc 3 X\n")
    assert accuracy(kcrf("evaluate", "--gold", gold, predicted, "--json")) == pytest.approx(2 / 3)


def test_other_columns(kcrf, sentences, tmp_path):
    model = tmp_path / "m.npz"
    assert kcrf("train", sentences, "--columns", "LEMMA,form,xpos", "--sigma2", "1", "-q", "-o", model).code == 0
    done = kcrf("tag", "-m", model, sentences)
    assert [row[3] for row in words(done.out)] == [row[3] for row in words(sentences.read_bytes())]
    assert accuracy(kcrf("evaluate", "-m", model, sentences, "--json")) > 0.95
    config = tmp_path / "c.yaml"
    config.write_text("columns: [form, xpos]\nfeatures: [{column: form, transform: suffix, length: 2}]\n")
    assert kcrf("train", sentences, "-c", config, "--sigma2", "1", "-q", "-o", model).code == 0


def test_every_command_takes_them(kcrf, sentences, tmp_path):
    data, basis, model = (tmp_path / name for name in ("d.npz", "b.npz", "m.npz"))
    shown = kcrf("featurize", sentences, "--show", "1", "-o", data, "-q")
    assert shown.text == "DET\tform[-2]=_B-2\tform[-1]=_B-1\tform[0]=her\tform[1]=light\tform[2]=house\n"
    assert kcrf("select-basis", data, "--kernel", "poly", "--size", "20", "-o", basis, "-q").code == 0
    options = ("--sigma2", "1", "-q", "-o", model)
    assert kcrf("train", sentences, "--basis", basis, "--dev", sentences, *options).code == 0
    assert kcrf("train", data, *options).code == 0
    assert kcrf("evaluate", "-m", model, data, "--json").code == 0
    done = kcrf("crossval", sentences, "--folds", "2", "--sigma2", "1", "--columns", "form,xpos", "--json")
    assert done.code == 0, done.err


def test_the_same_words_in_columns_make_the_same_model(kcrf, tagger, sentences, tmp_path):
    plain, config, model = tmp_path / "plain.conll", tmp_path / "c.yaml", tmp_path / "m.npz"
    parts = [words(part.encode()) for part in sentences.read_text().split("\n\n") if part]
    plain.write_bytes(b"\n\n".join(b"\n".join(row[1] + b"\t" + row[3] for row in part) for part in parts) + b"\n")
    config.write_text("columns: [form, upos]\nfeatures: [{column: form, type: categorical}]\n")
    assert kcrf("train", plain, "-c", config, "--sigma2", "1", "-q", "-o", model).code == 0
    one, other = Model.load(tagger), Model.load(model)
    assert one.labels == other.labels
    assert (one.terms[0].weights == other.terms[0].weights).all()


def test_a_model_of_conllu_tags_plain_text(kcrf, tagger):
    done = kcrf("tag", "-m", tagger, "--format", "conll", stdin=b"she\nsaw\nher\nwalk\n.\n")
    assert done.code == 0 and done.text.split("\n")[1] == "saw\tVERB".replace("\t", " ")


@pytest.mark.parametrize(
    "arguments, code, message",
    [
        (("evaluate", "DATA"), 2, "give --gold or -m"),
        (("evaluate", "DATA", "--label", "upos"), 2, "give that, too"),
        (("evaluate", "-m", "MODEL", "--gold", "DATA", "DATA"), 2, "leave out --gold"),
        (("evaluate", "--gold", "-", "-"), 2, "can be read only once"),
        (("evaluate", "--gold", "DATA", "SHORT"), 3, "2 sequences"),
        (("evaluate", "--gold", "DATA", "OTHER"), 3, "not the same data"),
        (("evaluate", "--gold", "SHORT", "CUT"), 3, "a sequence of"),
        (
            ("evaluate", "--gold", "DATA", "DATA", "--format", "conll", "--label", "upos"),
            2,
            "names a column of CoNLL-U",
        ),
        (("evaluate", "-m", "MODEL", "BLANK"), 3, "no gold labels: column 'upos' is _"),
        (("train", "BLANK", "-o", "OUT"), 3, "no labels to train on"),
        (("train", "DATA", "--columns", "form,pos", "-o", "OUT"), 2, "CoNLL-U has no column 'pos'"),
        (("train", "DATA", "--columns", "form,,upos", "-o", "OUT"), 2, "empty name"),
        (("train", "DATA", "--columns", "form", "-o", "OUT"), 2, "is only one column"),
    ],
)
def test_refusals(kcrf, tagger, sentences, tmp_path, arguments, code, message):
    text = sentences.read_text()
    short = "\n\n".join(text.split("\n\n")[:2]) + "\n\n"
    files = {
        "SHORT": short,
        "OTHER": text.replace("\tlight\t", "\tlite\t"),
        "CUT": "".join(short.splitlines(keepends=True)[:4]) + "\n" + short.partition("\n\n")[2],
        "BLANK": "1\ta" + "\t_" * 8 + "\n\n",
    }
    places = {"DATA": sentences, "MODEL": tagger, "OUT": tmp_path / "out.npz"}
    for name, content in files.items():
        places[name] = tmp_path / f"{name}.conllu"
        places[name].write_text(content)
    done = kcrf(*(places.get(argument, argument) for argument in arguments))
    assert done.code == code and message in done.err, done.err
    assert "Traceback" not in done.err


def test_options_of_tag(kcrf, sample_data, tmp_path):
    """Other ways to decode write the same columns; what has none goes into JSON."""
    data, model = sample_data / "sentences.conllu", tmp_path / "m.npz"
    assert kcrf("train", data, "--sigma2", 1, "-q", "-o", model).code == 0
    plain = kcrf("tag", "-m", model, data)
    posterior = kcrf("tag", "-m", model, data, "--decode", "posterior")
    assert posterior.code == 0 and posterior.out.count(b"\n") == plain.out.count(b"\n")
    assert {len(line.split("\t")) for line in posterior.text.splitlines() if line and line[0] != "#"} == {10}
    done = kcrf("tag", "-m", model, data, "--marginals", "best")
    assert done.code == 2 and "--json-lines" in done.err
    assert kcrf("tag", "-m", model, data, "--marginals", "best", "--json-lines").code == 0


LINE = "1\ta\ta\tX\tx" + "\t_" * 5 + "\n"

HOSTILE = {
    "nothing": (b"", "no data: the file is empty"),
    "only comments": (b"# a\n\n# b\n", "no data: only blank lines, comments or a header line"),
    "only a range": (b"1-2\ta" + b"\t_" * 8 + b"\n\n", "no data"),
    "not UTF-8": (LINE.encode() + b"# \xff\n", ":2: byte 0xff is not UTF-8"),
    "UTF-16": (LINE.encode("utf-16"), "UTF-8"),
    "a NUL": (b"# \0\n" + LINE.encode(), ":1: a NUL"),
    "lines ended by CR": (LINE.replace("\n", "\r").encode() * 2, "carriage return"),
    "CoNLL text": (b"a\tb\tX\n", "3 columns, expected 10"),
    "spaces": (LINE.replace("\t", " ").encode(), "1 column, expected 10"),
    "eleven columns": (LINE.replace("\n", "\tO\n").encode(), "11 columns, expected 10"),
    "no blank lines": (LINE.encode() * 3, ":2: '1' where the ID of word 2 was expected (is a blank line"),
    "an ID of a million digits": (b"1" * 1_000_000 + LINE.encode(), "where the ID of word 1"),
    "an empty label": (LINE.replace("\tX\t", "\t\t").encode(), ":1: an empty label"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_in_one_line(kcrf, tmp_path, name):
    data, message = HOSTILE[name]
    path = tmp_path / "x.conllu"
    path.write_bytes(data)
    done = kcrf("train", path, "-o", tmp_path / "m.npz", "-q")
    assert (done.code, done.err.count("\n")) == (3, 1) and message in done.err


def test_odd_but_right_files(kcrf, tmp_path):
    text = (
        "\ufeff# a\r\n"
        + LINE.replace("\n", "\r\n")
        + "\r\n\r\n"
        + LINE.replace("\tX\t", "\tY Z\t").replace("\ta\t", "\t\t")
    )
    path, model = tmp_path / "x.conllu", tmp_path / "m.npz"
    path.write_text(text.rstrip("\n"), newline="")
    assert kcrf("train", path, "-o", model, "-q", "--sigma2", "1").code == 0
    assert kcrf("tag", "-m", model, path).text == text.rstrip("\n")
