"""Training data that breaks its label scheme is an error with a remedy."""

from __future__ import annotations

import numpy as np
import pytest

from kcrf_core import KernelCRF
from kcrf_core.config import parse_config, with_options
from kcrf_core.corpora import Corpus
from kcrf_core.encoding import fit_encoding
from kcrf_core.errors import DataError
from kcrf_core.objective.solvers import Observer
from kcrf_core.system import Workers
from kcrf_core.training import train

GOOD = [["B-x", "I-x", "O"], ["O", "B-y", "I-y"], ["B-y", "B-x", "O", "O"]] * 4


def corpus_of(sequences):
    gold = [label for labels in sequences for label in labels]
    offsets = np.concatenate([[0], np.cumsum([len(labels) for labels in sequences])]).astype(np.int64)
    words = [f"w{i * 7 % 5}" for i in range(len(gold))]
    return Corpus("toy.conll", (words, gold), offsets, np.arange(1, len(gold) + 1))


class Notes(Observer):
    def __init__(self):
        self.texts = []

    def tell(self, event):
        self.texts.append(getattr(event, "text", ""))


def fit(sequences, scheme="iob2", dev=None, **options):
    corpus = sequences if isinstance(sequences, Corpus) else corpus_of(sequences)
    config = parse_config(with_options({}, {"sigma2": 1.0, "scheme": scheme, **options}))
    encoding, dataset = fit_encoding(config, corpus)
    notes = Notes()
    dev = None if dev is None else encoding.encode(corpus_of(dev))
    with Workers(1) as workers:
        model, report = train(encoding, dataset, config, workers=workers, observer=notes, dev=dev)
    return model, report, notes.texts


BROKEN = [*GOOD, ["O", "I-x", "B-x"], ["I-y", "I-x", "O"], ["B-x", "I-y"]]  # 4 labels in 3 sequences


def test_an_error_names_counts_and_helps():
    with pytest.raises(DataError) as caught:
        fit(BROKEN)
    message = str(caught.value)
    assert message.startswith("toy.conll: the label 'I-x' in line 42 is not allowed there by the scheme iob2 ")
    assert "(as 4 labels in 3 sequences)" in message and "when labels are predicted" in message
    with pytest.raises(DataError) as caught:
        fit([*GOOD, ["O", "I-x"]])
    assert "sequences)" not in str(caught.value)


def test_labels_of_another_form():
    sequences = [*GOOD, ["O", "LOC", "O"]]
    with pytest.raises(DataError, match=r"label 'LOC' does not belong to the scheme iob2 .*line 42"):
        fit(sequences)


def test_held_out_data_counts_such_labels_as_wrong():
    _, report, notes = fit(GOOD, dev=[["O", "I-x"], ["O", "O"]])
    assert "dev: 1 labels count as wrong, not allowed there by the scheme iob2" in notes
    assert report.dev.accuracy <= 0.75


def test_the_estimator_refuses_such_data():
    X = [[{f"w{(s + t) % 3}": 1.0} for t in range(len(labels))] for s, labels in enumerate(BROKEN)]
    with pytest.raises(ValueError, match="'I-x' in line 42 is not allowed there"):
        KernelCRF(sigma2=1, scheme="iob2").fit(X, BROKEN)
