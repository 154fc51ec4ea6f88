"""Warnings about training data: labels seen once, the label in another column, copies of it among the inputs."""

from __future__ import annotations

import numpy as np
import pytest

from kcrf_core import fit_encoding, parse_config, read_corpus
from kcrf_core.corpora import Corpus, Spool
from kcrf_core.encoding import fit_to


def corpus(*columns, length=5):
    N = len(columns[0])
    columns = tuple(tuple(map(str, column)) for column in columns)
    return Corpus("made", columns, np.append(np.arange(0, N, length), N), np.arange(1, N + 1))


def warnings(*columns, config=None, **how):
    return [str(text) for text in fit_encoding(parse_config(config or {}), corpus(*columns, **how))[0].warnings]


@pytest.fixture
def words(rng):
    return rng.choice(["the", "a", "cat", "dog", "sat", "ran"], 400)


@pytest.fixture
def classes(rng):
    return rng.choice(["x", "y", "z"], 400, p=[0.6, 0.3, 0.1])


@pytest.fixture
def spans():
    return ["B-A", "I-A", "O", "O", "B-B"] * 80


# ----------------------------------------------------------------------------- rare labels


def test_labels_seen_once_are_named_with_their_line(words, classes):
    assert warnings(words, classes) == []
    classes = list(classes)
    classes[70], classes[300] = "Z", "yy"
    [warning] = warnings(words, classes)
    assert warning.startswith("warning: 2 labels are seen only once") and "'Z' in line 71, 'yy' in line 301" in warning


def test_of_very_many_labels_seen_once_some_are_named(words):
    labels = ["x"] * 388 + [f"l{number:02}" for number in range(12)]
    [warning] = warnings(words, labels)
    assert "12 labels are seen only once" in warning and warning.endswith("'l07' in line 396, and 4 more")


def test_a_few_positions_have_no_rare_labels():
    assert warnings(["a", "b", "c", "d"], ["x", "y", "x", "z"]) == []


def test_the_list_of_labels_is_whole_or_ends_with_the_rarest(words):
    labels = [f"label-{number % 60:02}" for number in range(380)] + ["label-59"] * 18 + ["rare", "rarer"]
    encoding, dataset = fit_encoding(parse_config({}), corpus(words, labels))
    line = encoding.remarks(dataset)[0]
    assert line.endswith("label-07, ..., label-21 (6), label-20 (6), rarer (1), rare (1))")
    encoding, dataset = fit_encoding(parse_config({}), corpus(words, [f"l{number % 30}" for number in range(400)]))
    assert all(f"l{number}" in encoding.remarks(dataset)[0] for number in range(30))


# ----------------------------------------------------------------------------- the label is in another column


def test_labels_of_spans_in_the_first_column_are_told(words, classes, spans):
    [warning] = warnings(spans, words, classes)
    assert "the first one (c0) has labels of spans" in warning
    assert "first one (named)" in warnings(spans, classes, config={"columns": ["named", "label"]})[0]


def test_spans_in_other_columns_or_beside_spans_are_no_slip(rng, words, classes, spans):
    assert warnings(words, spans, classes) == []  # chunks as an input
    assert warnings(rng.permutation(spans), spans) == []
    assert warnings(classes, spans) == []
    assert warnings(["I", "O", "O", "I", "O"] * 80, classes) == []  # in and out
    assert warnings(list("BUSIO") * 80, classes) == []


def test_documents_in_the_first_column_are_told_whatever_the_features(words, spans):
    words = ["-DOCSTART-", *words[1:]]
    for config in ({}, {"min_count": 3}, {"features": [{"column": "c0", "transform": "shape"}]}):
        [warning] = warnings(words, spans, config=config)
        assert warning.startswith("warning: lines with -DOCSTART- are taken for sequences")


# ----------------------------------------------------------------------------- copies of the label


@pytest.mark.parametrize("form", ["text", "codes", "numbers"])
def test_a_copy_of_the_label_is_told_with_its_share(words, spans, form):
    labels = sorted(set(spans))
    numbers = np.array([labels.index(label) for label in spans])
    numbers[[10, 201, 302]] = [2, 1, 0]
    copy = {
        "text": [labels[y] for y in numbers],
        "codes": [f"k{y}" for y in numbers],
        "numbers": numbers + 0.5,
    }[form]
    [warning] = warnings(words, copy, spans)
    assert warning.startswith("warning: column c1 tells the label at 99.25 % of the positions")
    assert warnings(words, copy, spans, config={"ignore": ["c1"]}) == []


def test_good_inputs_are_no_copies(rng, words, spans):
    kinds = [label[2:] or "O" for label in spans]  # half of the label
    assert warnings(kinds, spans) == []
    guesses = [label if rng.random() < 0.95 else "O" for label in spans]  # of a good system
    assert warnings(words, guesses, spans) == []
    # A constant agrees with nearly all labels of data that is nearly all O, and so does a rare mark.
    rare = (["O"] * 99 + ["x"]) * 4
    assert warnings(words, ["no"] * 400, rare) == []
    assert warnings(words, (["no"] * 199 + ["yes"]) * 2, rare) == []
    assert warnings(rng.normal(size=400), spans) == []


def test_a_long_file_is_compared_as_a_whole(rng):
    labels = np.array(["x", "y", "z"])[rng.integers(0, 3, 9000)]
    copy = labels.copy()
    copy[:100] = "x"
    share = 100 * np.mean(copy == labels)
    assert f"tells the label at {share:.4g} %" in warnings(copy, labels)[0]
    copy[:600] = "x"
    assert warnings(copy, labels) == []


def test_data_in_parts_is_told_of_as_data_in_memory(tmp_path, words, spans):
    path, labels = tmp_path / "data.conll", list(spans)
    labels[7] = "0"
    rows = [f"{word} {label} {label}\n" for word, label in zip(["-DOCSTART-", *words[1:]], labels, strict=True)]
    path.write_text("\n".join("".join(rows[begin : begin + 5]) for begin in range(0, 400, 5)))
    expected = fit_encoding(parse_config({}), read_corpus(path))[0].warnings
    assert len(expected) == 3
    with Spool(tmp_path) as spool:
        spool.read([path])
        encoding = fit_to(parse_config({}), spool)
    assert encoding.warnings == expected and encoding.odd_labels == ("0",)


def test_sample_data_has_no_slips(sample_data):
    for name in ("pitch_accent.conll", "digits.conll", "addresses.conll", "sentences.conllu"):
        assert fit_encoding(parse_config({}), read_corpus(sample_data / name))[0].warnings == ()
