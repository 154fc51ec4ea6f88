"""Warnings about columns of training data: marks of documents, labels of spans elsewhere, copies of the label."""

from __future__ import annotations

import random

import pytest

from kcrf_core.config import parse_config
from kcrf_core.corpora import Columns, read_corpus
from kcrf_core.encoding import data_remarks, fit_encoding

LABELS = ["O"] * 12 + ["B-PER", "I-PER", "B-LOC"]


@pytest.fixture
def remarks(tmp_path):
    """Return the warnings about rows of 200 sequences, made by a function of a random generator and a label."""

    def found(row, labels=LABELS, first="", **raw):
        rng, lines = random.Random(0), [first]
        for _ in range(200):
            lines += ["\t".join(map(str, row(rng, rng.choice(labels)))) for _ in range(6)]
            lines.append("")
        path = tmp_path / "data.conll"
        path.write_text("\n".join(lines) + "\n")
        corpus, config = read_corpus(path), parse_config(raw)
        warnings = data_remarks(config, Columns(corpus))
        assert set(warnings) <= set(fit_encoding(config, corpus)[0].warnings)
        return warnings

    return found


def word(rng):
    return f"w{rng.randrange(300)}"


def mostly(rng, label, share, labels=LABELS):
    return label if rng.random() < share else rng.choice(labels)


def test_usual_data_has_none(remarks):
    assert not remarks(lambda rng, label: (word(rng), rng.choice("NV"), label))
    # A lexicon, chunks, and numbers beside labels that are numbers.
    assert not remarks(lambda rng, label: (word(rng), label if rng.random() < 0.7 else "O", label))
    assert not remarks(lambda rng, label: (word(rng), rng.choice(["B-NP", "I-NP", "O"]), label))
    assert not remarks(lambda rng, label: (word(rng), rng.choice("01"), rng.random(), label), labels="01")
    assert not remarks(lambda rng, label: (word(rng), "X", label), labels="X")


@pytest.mark.parametrize("raw", [{}, {"min_count": 5}, {"ignore": ["c0"]}])
def test_marks_of_documents_are_named_whatever_the_features_are(remarks, raw):
    (warning,) = remarks(lambda rng, label: (word(rng), "N", label), first="-DOCSTART-\t-X-\tO\n", **raw)
    assert "lines with -DOCSTART- are taken for sequences" in warning
    assert warning.settings == ("comment",)


def test_labels_of_spans_in_another_column(remarks):
    (warning,) = remarks(lambda rng, label: (label, word(rng), rng.choice("NV")))
    assert "column c0 has labels of spans (B-LOC, B-PER, I-PER, O), and the last column has not: is c0 the" in warning


def test_columns_that_nearly_equal_the_label(remarks):
    def row(rng, label):
        return word(rng), mostly(rng, label, 0.98), label

    (warning,) = remarks(row)
    assert "column c1 has the label itself at nearly all positions" in warning
    assert warning.settings == ("ignore",)
    assert not remarks(row, ignore=["c1"])
    # Labels that are not observed say nothing.
    (warning,) = remarks(lambda rng, label: (*row(rng, label)[:2], mostly(rng, label, 0.5, "?")), unobserved="?")
    assert "column c1" in warning
    (warning,) = remarks(lambda rng, label: (rng.random(), f"{label}.0", label), labels="011")
    assert "column c1" in warning
