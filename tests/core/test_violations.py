"""Training data that breaks its label scheme: an error with a remedy, sequences left out, or labels not observed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from kcrf_core import KernelCRF
from kcrf_core.config import parse_config, with_options
from kcrf_core.corpora import Corpus
from kcrf_core.encoding import fit_encoding
from kcrf_core.errors import ConfigError, DataError
from kcrf_core.objective.solvers import Observer
from kcrf_core.scoring import allowed_transitions
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


@pytest.mark.parametrize("options", [{}, {"scheme_violations": "error"}])
def test_an_error_names_counts_and_helps(options):
    with pytest.raises(DataError) as caught:
        fit(BROKEN, **options)
    message = str(caught.value)
    assert message.startswith("toy.conll: the label 'I-x' in line 42 is not allowed there by the scheme iob2 ")
    assert "(as 4 labels in 3 sequences)" in message and "drop" in message and "free" in message
    with pytest.raises(DataError) as caught:
        fit([*GOOD, ["O", "I-x"]])
    assert "sequences)" not in str(caught.value)


def test_sequences_that_break_the_scheme_are_left_out():
    model, report, notes = fit(BROKEN, scheme_violations="drop")
    alone, expected, _ = fit(GOOD)
    assert report.result.value == expected.result.value and report.result.reason == "certified"
    assert model.labels == alone.labels
    np.testing.assert_array_equal(model.edges.transitions, alone.edges.transitions)
    assert any("4 labels in 3 sequences" in note and "'I-x' in line 42" in note for note in notes)
    found = report.to_dict()["scheme_violations"]
    assert (found["handled"], found["labels"], found["sequences"], found["freed"]) == ("drop", 4, 3, 0)
    assert "scheme_violations" not in expected.to_dict()


def test_labels_that_break_the_scheme_are_not_observed():
    _, report, notes = fit(BROKEN, scheme_violations="free")
    hidden = [*GOOD, ["O", "?", "B-x"], ["?", "?", "O"], ["B-x", "?"]]
    _, expected, _ = fit(hidden, unobserved="?")
    np.testing.assert_allclose(report.result.value, expected.result.value, rtol=1e-12)
    assert report.result.reason == expected.result.reason == "stationary"
    assert report.to_dict()["scheme_violations"]["freed"] == 4
    assert any("4 labels are taken as not observed" in note for note in notes)


def test_more_labels_are_freed_where_nothing_else_could_stand_there():
    # Nothing can stand before I-z but B-z, which there is not, and I-z.
    _, report, _ = fit([*GOOD, ["O", "I-z", "I-z", "O"]], scheme_violations="free")
    assert report.violations.labels == 1 and report.violations.freed == 2
    # Of iobes B must be closed: B O breaks at O, and there is no way on from B but E.
    good = [["B-x", "E-x", "O"], ["S-x", "O"]] * 4
    _, report, _ = fit([*good, ["O", "B-x", "O", "O"], ["O", "B-x"]], "iobes", scheme_violations="free")
    assert report.violations.labels == 2 and report.violations.freed == 2


def test_observed_transitions_leave_a_way_too():
    good = [["B-x", "I-x", "O"], ["O", "O"]] * 4  # B-x never comes after O
    options = {"scheme_violations": "free", "observed_transitions": True}
    _, report, _ = fit([*good, ["O", "I-x", "I-x"], ["O", "I-x"]], **options)
    assert report.violations.freed > 2 and report.result.reason == "stationary"


@pytest.mark.parametrize("handled", ["drop", "free"])
def test_labels_of_another_form(handled):
    sequences = [*GOOD, ["O", "LOC", "O"]]
    with pytest.raises(DataError, match=r"label 'LOC' does not belong to the scheme iob2 .*line 42"):
        fit(sequences)
    model, report, _ = fit(sequences, scheme_violations=handled)
    assert report.violations.labels == 1
    assert "LOC" not in model.tag_corpus(corpus_of(sequences))


def test_nothing_is_left():
    with pytest.raises(DataError, match="no sequence follows the scheme iob2"):
        fit([["I-x", "O"], ["I-x"]], scheme_violations="drop")
    with pytest.raises(DataError, match="is it another"):
        fit([["x", "y"], ["x"]], scheme_violations="free")


def test_held_out_data_counts_such_labels_as_wrong():
    _, report, notes = fit(GOOD, dev=[["O", "I-x"], ["O", "O"]])
    assert "dev: 1 labels count as wrong, not allowed there by the scheme iob2" in notes
    assert report.dev.accuracy <= 0.75


def test_a_scheme_must_be_there():
    with pytest.raises(ConfigError, match="goes with a 'scheme'"):
        parse_config({"training": {"scheme_violations": "drop"}})
    with pytest.raises(ConfigError, match="must be one of error, drop, free"):
        parse_config({"training": {"scheme": "iob2", "scheme_violations": "ignore"}})
    config = parse_config({"training": {"scheme": "iob2", "scheme_violations": "free"}})
    assert parse_config(config.to_dict()) == config
    assert "scheme_violations" not in parse_config({}).to_dict()["training"]


def test_the_estimator_takes_it(tmp_path):
    X = [[{f"w{(s + t) % 3}": 1.0} for t in range(len(labels))] for s, labels in enumerate(BROKEN)]
    with pytest.raises(ValueError, match="'I-x' in line 42 is not allowed there"):
        KernelCRF(sigma2=1, scheme="iob2").fit(X, BROKEN)
    crf = KernelCRF(sigma2=1, scheme="iob2", scheme_violations="drop").fit(X, BROKEN)
    assert crf.report_["scheme_violations"]["sequences"] == 3
    crf.save(tmp_path / "m.npz")
    assert KernelCRF.load(tmp_path / "m.npz").config["training"]["scheme_violations"] == "drop"


@pytest.mark.parametrize("scheme", ["iob1", "iob2", "iobes", "bilou"])
def test_random_labels_become_fit_to_train_on(scheme, rng):
    letters = {"iobes": "BIES", "bilou": "BILU"}.get(scheme, "BI")
    labels = ["O", *(f"{letter}-{kind}" for letter in letters for kind in "xy")]
    for _ in range(5):
        sequences = [[labels[y] for y in rng.integers(0, len(labels), T)] for T in rng.integers(1, 7, 12)]
        every = sorted({label for one in sequences for label in one})
        allowed = allowed_transitions(every, scheme)
        model, report, _ = fit(sequences, scheme, scheme_violations="free", max_passes=30)
        assert np.isfinite(report.result.value)
        numbers = [every.index(label) for label in model.tag_corpus(corpus_of(sequences))]
        offsets = corpus_of(sequences).offsets
        for first, last in pairwise(offsets.tolist()):
            assert allowed.first[numbers[first]] and allowed.last[numbers[last - 1]]
            assert all(allowed.pairs[numbers[t - 1], numbers[t]] for t in range(first + 1, last))
