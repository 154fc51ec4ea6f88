"""Labels that are not of the scheme of nearly all others: spans are scored without them, wherever choices are made."""

from __future__ import annotations

import numpy as np
import pytest

from kcrf_core import KernelCRF, Model, evaluate, fit_encoding, parse_config, train
from kcrf_core.corpora import Corpus
from kcrf_core.model.decoding import scheme_of
from kcrf_core.scoring import Decision, Labelling, count_labels, labels_of_spans, odd_labels
from kcrf_core.selection import (
    Division,
    audit_by_folds,
    make_plan,
    make_settings,
    run_plan,
    tune,
    tuning as tuning_module,
)

SPANS = {"B-A": 60, "I-A": 39, "O": 900}


def corpus(rng, sequences=40, slips=()):
    """Names of two words, the second one always inside a span, with '0' for O at some positions."""
    words, labels, lengths = [], [], []
    for _ in range(sequences):
        before = len(words)
        for _ in range(rng.integers(2, 5)):
            name = rng.random() < 0.4
            words += ["mr", f"n{rng.integers(9)}"] if name else [f"w{rng.integers(9)}"]
            labels += ["B-A", "I-A"] if name else ["O"]
        lengths.append(len(words) - before)
    outside = [t for t, label in enumerate(labels) if label == "O"]
    for number in slips:
        labels[outside[number]] = "0"
    offsets = np.cumsum([0, *lengths])
    return Corpus("made", (tuple(words), tuple(labels)), offsets, np.arange(1, len(words) + 1))


# ----------------------------------------------------------------------------- which labels are odd


@pytest.mark.parametrize(
    ("more", "odd"),
    [
        ({}, ()),
        ({"0": 1}, ("0",)),
        ({"i-A": 1}, ("i-A",)),
        ({"0": 9, "b-A": 1}, ("0", "b-A")),
        ({"0": 12}, ()),  # more than a hundredth
        ({"B-A": 600, "L-A": 1, "E-A": 1}, ("L-A",)),  # letters of two schemes: as few as can be
        ({"E-A": 40, "S-A": 20, "L-A": 1}, ("L-A",)),
        ({"E-A": 40, "S-A": 20}, ()),  # a scheme of its own
    ],
)
def test_few_labels_of_another_form_are_odd(more, odd):
    assert odd_labels(SPANS | more) == odd


@pytest.mark.parametrize(
    "counts",
    [
        {"noun": 60, "verb": 39, "O": 1},
        {"PER": 3, "LOC": 2, "O": 990},  # O is nearly all of the data, and no span is there
        {"PER": 3, "LOC": 2, "B-DATE": 1, "O": 990},
        dict.fromkeys("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 10),
        {"B": 250, "M": 250, "E": 250, "S": 250},
        {"0": 500, "1": 500},
    ],
)
def test_labels_without_a_scheme_have_no_odd_ones(counts):
    assert odd_labels(counts) == ()


def test_a_single_slip_in_little_data_is_odd():
    assert odd_labels({"B-A": 3, "I-A": 2, "O": 10, "o": 1}) == ("o",)
    assert odd_labels({"B-A": 1, "o": 1}) == ()  # as many as there are labels of spans


def test_a_label_that_a_model_knows_is_odd_only_by_its_training_data():
    gold, predicted = ["B-A", "I-A", "O", "O"], ["B-A", "I-A", "O", "X"]
    assert evaluate(gold, predicted, [0, 4]).odd_labels == ("X",)
    assert evaluate(gold, predicted, [0, 4], known_labels=["B-A", "I-A", "O", "X"]).scheme is None
    found = evaluate(gold, predicted, [0, 4], known_labels=["B-A", "I-A", "O", "X"], odd_labels=["X"])
    assert found.scheme == "iob2" and found.spans.total.f1 == 1.0


# ----------------------------------------------------------------------------- figures


@pytest.mark.parametrize("side", ["gold", "predicted", "both"])
@pytest.mark.parametrize("scheme", ["auto", "iob2"])
def test_odd_labels_are_outside_spans_and_wrong_as_labels(rng, side, scheme):
    gold = ["B-A", "I-A", "O", "B-A", "O", "I-A"] * 30
    predicted = [label if rng.random() < 0.8 else "O" for label in gold]
    sides = {"gold": list(gold), "predicted": list(predicted)}
    for name in sides if side == "both" else [side]:
        sides[name][8] = "0"
    offsets = np.arange(0, 181, 6)
    found, clean = evaluate(*sides.values(), offsets, scheme), evaluate(gold, predicted, offsets)
    assert found.odd_labels == ("0",) and found.scheme == clean.scheme == "iob2"
    assert found.spans == clean.spans and found.strict_spans == clean.strict_spans
    assert np.array_equal(found.unit_counts[:, 4:], clean.unit_counts[:, 4:])
    right = np.count_nonzero(np.array(sides["gold"]) == np.array(sides["predicted"]))
    assert found.correct == right


def test_warnings_about_odd_labels_name_line_and_count():
    gold = ["B-A", "I-A", "O", "O"] * 100
    predicted = list(gold)
    gold[6] = predicted[11] = predicted[15] = "0"
    labelling = Labelling("some.conll", gold, predicted, np.array([0, 400]), np.arange(2, 402))
    assert labelling.odd_remarks("iob2") == [
        "warning: some.conll: 1 of 400 gold labels is not of the scheme iob2, and it is counted as O for spans: "
        "'0' in line 8",
        "warning: some.conll: 2 of 400 predicted labels are not of the scheme iob2, and they are counted as O for "
        "spans: '0' (2, first in line 13)",
    ]


# ----------------------------------------------------------------------------- training and choices


@pytest.fixture
def with_slip(rng):
    return corpus(rng, slips=[20])


@pytest.fixture
def clean(with_slip):
    words, labels = with_slip.columns
    fixed = tuple("O" if label == "0" else label for label in labels)
    return Corpus("made", (words, fixed), with_slip.offsets, with_slip.lines)


def test_one_slip_changes_neither_metric_nor_decoder(with_slip, clean, workers):
    reports = [train(*fit_encoding(parse_config({}), data), parse_config({}), workers=workers)[1]
               for data in (with_slip, clean)]  # fmt: skip
    assert [report.metric for report in reports] == ["f1", "f1"]
    assert reports[0].decoder.decode == reports[1].decoder.decode == "viterbi"


def test_many_slips_leave_accuracy_and_are_told(rng):
    encoding, _ = fit_encoding(parse_config({}), corpus(rng, slips=range(0, 30, 2)))
    assert encoding.odd_labels == ()
    [warning] = [text for text in encoding.warnings if "spans" in text]
    assert "labels such as 'B-A' are those of spans, but 15 of " in warning and "'0' (15, first in line" in warning


def test_models_keep_odd_labels_and_everything_that_spans_need(with_slip, workers, tmp_path):
    config = parse_config({"training": {"sigma2": 1.0}})
    model, _ = train(*fit_encoding(config, with_slip), config, workers=workers)
    model.save(tmp_path / "model.npz")
    model = Model.load(tmp_path / "model.npz")
    assert model.labels == ("0", "B-A", "I-A", "O") and model.encoding.odd_labels == ("0",)
    assert model.encoding.span_labels == ("O", "B-A", "I-A", "O")
    # A bonus, costs by type and a scheme are for labels of spans.
    assert model.deciding(Decision(span_bonus=0.5)).bonuses.shape == (5, 4)
    assert Decision(cost={"A": 3.0}).costs(model.labels, model.encoding.odd_labels).tolist() == [
        1,
        3,
        3,
        1,
    ]
    allowed = scheme_of(model, "iob2")
    assert allowed.pairs.tolist() == [
        [True, True, False, True],
        *[[True] * 4] * 2,
        [True, True, False, True],
    ]


def test_labels_of_one_form_leave_no_trace_in_model_files(clean, workers):
    encoding, _ = fit_encoding(parse_config({}), clean)
    assert "odd_labels" not in encoding.pack()[0]["encoding"]


def test_folds_without_the_slip_are_scored_by_spans_too(with_slip, workers):
    settings = make_settings({}, {"sigma2": 1.0, "plain": True})
    plan = make_plan(with_slip, {}, "options", settings, Division(4))
    assert (plan.scheme, plan.odd_labels, plan.yardstick.name) == ("iob2", ("0",), "f1")
    results = run_plan(plan, workers=workers)
    assert all(result["f1"] is not None for result in results.values())


def test_a_search_on_small_parts_keeps_the_metric_of_all_data(rng, workers, monkeypatch):
    monkeypatch.setitem(tuning_module.EFFORTS, "small", 1e8)
    # A small part may have more slips than a hundredth.
    found = tune(
        corpus(rng, 150, slips=[3, 9, 14]),
        {"training": {"sigma2": 1.0}},
        effort="small",
        workers=workers,
    )
    assert found.yardstick.name == "f1"


def test_an_audit_looks_for_wrong_spans_beside_odd_labels(rng, workers):
    data = corpus(rng, 60, slips=[5, 40])
    plan = make_plan(data, {}, "options", make_settings({}, {"sigma2": 1.0, "plain": True}), Division(4))
    found = audit_by_folds(plan, workers=workers)
    worst = found.positions(2)
    assert {one.gold for one in worst} == {"0"} and {one.suggested for one in worst} == {"O"}


def test_python_warns_of_odd_labels():
    X, y = [[["a"], ["b"], ["c"]]] * 40, [["B-A", "I-A", "O"]] * 39 + [["B-A", "I-A", "0"]]
    with pytest.warns(UserWarning, match="1 of 120 labels is not of the scheme iob2"):
        model = KernelCRF(sigma2=1.0).fit(X, y)
    assert model.set_params(metric="f1").score(X, y) == 1.0


def test_odd_labels_are_o_for_spans():
    assert labels_of_spans(["0", "B-A", "O"], ["0"]) == ("O", "B-A", "O")
    assert count_labels(["O", "B-A", "O"]) == {"O": 2, "B-A": 1}
