"""What must hold of CoNLL-U: words are positions, all else stays where it is, and nobody sees the label."""

from __future__ import annotations

import importlib.util
import io

import numpy as np
import pytest

from kcrf_core.config import parse_config
from kcrf_core.corpora import guess_format, read_corpus
from kcrf_core.corpora.conllu import CONLLU, put_labels
from kcrf_core.corpora.corpus import concatenate
from kcrf_core.corpora.lines import blocks
from kcrf_core.encoding import fit_encoding
from kcrf_core.errors import ConfigError, DataError
from kcrf_core.model import Model
from kcrf_core.training import train

TEXT = """\
# newdoc
# text = Vámonos al mar
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tVamos\tir\tVERB\tv\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\tp\t_\t1\tobj\t_\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
3\ta\ta\tADP\ts\t_\t5\tcase\t_\t_
# in the middle, where none should be
4\tel\tel\tDET\td\t_\t5\tdet\t_\t_
4.1\tgran\tgrande\tADJ\ta\t_\t_\t_\t5:amod\t_
5\tmar\tmar\tNOUN\tn\t_\t1\tobl\t_\tx=y z


# text = 1 2
1\t1\t1\tNUM\tz\t_\t0\troot\t_\t_
2\t2\t2\tNUM\tz\t_\t1\tflat\t_\t_
"""


def parsed(text, columns=("form", "upos")):
    return list(CONLLU.parse(blocks(io.BytesIO(text.encode()), "data"), "data", columns))


def corpus_of(text, columns=("form", "upos")):
    return concatenate(part.corpus for part in parsed(text, columns))


def test_words_are_positions():
    corpus = corpus_of(TEXT, ("FORM", "Lemma", "xpos"))
    assert [list(column) for column in corpus.columns] == [
        ["Vamos", "nos", "a", "el", "mar", "1", "2"],
        ["ir", "nosotros", "a", "el", "mar", "1", "2"],
        ["v", "p", "s", "d", "n", "z", "z"],
    ]
    assert corpus.offsets.tolist() == [0, 5, 7]
    assert corpus.lines.tolist() == [4, 5, 7, 9, 11, 15, 16]
    assert corpus.names == ("FORM", "Lemma", "xpos") and corpus.format == "conllu"
    assert corpus.subset([1]).names == corpus.names


def test_a_sentence_without_words_is_none():
    empty = "0.1\tgran\tgrande\tADJ\ta\t_\t_\t_\t5:amod\t_\n\n"
    assert corpus_of(f"{empty}{TEXT}\n{empty}{TEXT}{empty}").offsets.tolist() == [0, 5, 7, 12, 14]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("column, place", [("upos", 3), ("misc", 9)])
@pytest.mark.parametrize("start, end", [("", ""), ("\ufeff", ""), ("", "cut")])
def test_a_label_takes_its_place_and_no_other_byte_changes(ending, column, place, start, end):
    text = (start + TEXT).replace("\n", ending)
    text = text.removesuffix(ending) if end else text
    out = b"".join(
        put_labels(part, ["A", "Bé"], np.arange(part.corpus.positions, dtype=np.int32) % 2)
        for part in parsed(text, ("form", column))
    ).decode()
    before, after = text.split(ending), out.split(ending)
    assert len(before) == len(after)
    found = []
    for old, new in zip(before, after, strict=True):
        if old.removeprefix("\ufeff").split("\t")[0].isdecimal():
            rows = old.split("\t"), new.split("\t")
            found.append(rows[1].pop(place))
            assert rows[0].pop(place) and rows[0] == rows[1]
        else:
            assert old == new
    assert found == ["A", "Bé", "A", "Bé", "A", "A", "Bé"] or found == ["A", "Bé"] * 3 + ["A"]


@pytest.mark.parametrize(
    "old, new, line, message",
    [
        ("2\tnos", "nos", 5, "9 columns, expected 10"),
        ("\tir\t", " ir ", 4, "8 columns, expected 10"),
        ("2\tnos", "3\tnos", 5, "'3' where the ID of word 2 was expected"),
        ("1\t1\t1", "0\t1\t1", 15, "'0' where the ID of word 1"),
        ("\n\n\n# text", "\n# text", 13, "'1' where the ID of word 6 was expected (is a blank line"),
        ("4.1\t", "4.x\t", 10, "'4.x' where the ID"),
        ("2\tnos", "\u0662\tnos", 5, "'\u0662' where the ID"),
        ("2\tnos", "9" * 5000 + "\tnos", 5, "where the ID"),
        ("2\tnos", "\tnos", 5, "'' where the ID"),
    ],
)
def test_mistakes_are_named_with_their_line(old, new, line, message):
    with pytest.raises(DataError) as caught:
        parsed(TEXT.replace(old, new, 1))
    assert str(caught.value).startswith(f"data:{line}: ") and message in str(caught.value)


@pytest.mark.parametrize(
    "columns, message",
    [
        (("form", "pos"), r"no column 'pos' \(did you mean 'xpos'\?\); there are: id, form"),
        (("form", "FORM"), "named twice"),
        (("upos",), "'upos' is only one column"),
    ],
)
def test_columns_that_cannot_be_meant(columns, message):
    with pytest.raises(ConfigError, match=message):
        parsed(TEXT, columns)


def test_files_without_words_and_without_labels(tmp_path):
    path = tmp_path / "x.conllu"
    path.write_text("# nothing\n\n# at all\n")
    with pytest.raises(DataError, match="no data: only blank lines, comments or a header line"):
        read_corpus(path)
    with pytest.raises(DataError, match="no labels to train on: column 'deps' is _ throughout"):
        fit_encoding(parse_config({}), corpus_of(TEXT.replace("5:amod", "_"), ("form", "deps")))


@pytest.mark.parametrize("path", ["a.conllu", "a.conllu.gz"])
def test_the_format_follows_the_name(path):
    assert guess_format(path) == "conllu"


def test_the_only_default_feature_is_the_word():
    encoding, dataset = fit_encoding(parse_config({}), corpus_of(TEXT))
    assert encoding.columns == ("form", "upos") and encoding.names == ["form"] and encoding.format == "conllu"
    assert set(encoding.labels) == {"VERB", "PRON", "ADP", "DET", "NOUN", "NUM"}
    relabelled = corpus_of(TEXT.replace("VERB", "X").replace("NOUN", "VERB").replace("\tir\t", "\tX\t"))
    assert (encoding.encode(relabelled).codes == dataset.codes).all()


def test_columns_are_strings_even_where_all_are_numbers():
    text = "".join(f"{i}\t{i}\t_\t{'XY'[i % 2]}" + "\t_" * 6 + "\n" for i in range(1, 30))
    encoding, dataset = fit_encoding(parse_config({}), corpus_of(text))
    assert dataset.real.shape[1] == 0 and encoding.describe(dataset, 0)[2] == "form[0]=1"


def test_the_sample_is_what_its_script_writes(sample_data):
    path = sample_data / "make_sentences.py"
    spec = importlib.util.spec_from_file_location("make_sentences", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.make_corpus() == (sample_data / "sentences.conllu").read_text("utf-8")


def test_models_know_their_columns(tmp_path, workers):
    config = parse_config({"columns": ["LEMMA", "Form", "xpos"], "training": {"sigma2": 10.0}})
    encoding, dataset = fit_encoding(config, corpus_of((TEXT + "\n") * 3, config.columns))
    model, _ = train(encoding, dataset, config, workers=workers)
    model.save(tmp_path / "m.npz")
    again = Model.load(tmp_path / "m.npz").encoding
    assert (again.format, again.columns) == ("conllu", ("LEMMA", "Form", "xpos"))


def test_template_columns_count_those_that_were_chosen():
    from kcrf_core.config import load_template

    config = parse_config(load_template("U0:%x[0,0]\nU1:%x[-1,1]/%x[0,1]\nU:%x[1,0]\nU:%x[0,1]\nB", "t"))
    encoding, dataset = fit_encoding(config, corpus_of(TEXT, ("form", "lemma", "upos")))
    assert encoding.describe(dataset, 1)[0] == "U0[0]=nos"
    assert set(encoding.describe(dataset, 1)[2:]) == {"U:a", "U:nosotros"}
