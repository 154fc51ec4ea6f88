"""Costs of missing labels: what is chosen by them, against enumeration, and that probabilities stay as they are."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from tests.models import SPANS, random_corpus, random_model
from tests.oracle import labellings, path_score

from kcrf_core import KernelCRF
from kcrf_core.chains import Edges
from kcrf_core.errors import ConfigError
from kcrf_core.model import Decoder, Wishes
from kcrf_core.scoring import Decision, SpanFinder, evaluate, span_bonuses
from kcrf_core.scoring.costs import label_costs
from kcrf_core.selection import Division, make_plan, make_settings, out_of_fold, run_plan


def test_types_mean_all_letters_and_labels_go_before_them():
    iobes = ["B-PER", "E-PER", "I-PER", "O", "S-LOC", "S-PER"]
    assert label_costs(iobes, {"PER": 5, "S-PER": 2}).tolist() == [5, 5, 5, 1, 1, 2]
    assert label_costs(iobes, {"S-PER": 2, "PER": 5}).tolist() == [5, 5, 5, 1, 1, 2]
    assert label_costs(iobes, {"O": 0.5}).tolist() == [1, 1, 1, 0.5, 1, 1]
    # What only looks like a type is none where labels make no scheme.
    with pytest.raises(ConfigError, match="'2', which is no label"):
        label_costs(["E-1", "S-2"], {"2": 3})


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), True, "3", None])
def test_costs_are_finite_numbers_above_zero(value):
    with pytest.raises(ConfigError, match=r"the cost of 'a' is .*, not a finite number above 0"):
        label_costs(["a", "b"], {"a": value})


def test_an_unknown_label_is_told_with_a_guess():
    with pytest.raises(ConfigError, match=r"a cost for 'evnt', which is no label \(did you mean 'event'\?\)"):
        label_costs(["event", "none"], {"evnt": 3})


def test_viterbi_has_no_costs():
    with pytest.raises(ConfigError, match="viterbi finds the most probable labelling as a whole"):
        Decision("viterbi", {"a": 2})
    assert Decision(cost={"a": 2}).decoder("viterbi") == "posterior"  # whatever a model stores


def test_the_largest_cost_times_probability_is_chosen():
    rng = np.random.default_rng(0)
    model, corpus = random_model(rng)
    dataset = model.encoding.encode(corpus)
    costs = np.array([1.0, 4.0, 0.5])
    plain = Decoder(model, Wishes("posterior", marginals=True)).decode_part(dataset, "test")
    found = Decoder(model, Wishes("posterior", marginals=True, costs=costs)).decode_part(dataset, "test")
    assert np.array_equal(found.marginals, plain.marginals)
    assert np.array_equal(found.labels, (plain.marginals * costs).argmax(axis=1))
    assert (found.labels != plain.labels).any()


def test_the_cost_of_one_of_two_labels_is_a_threshold():
    rng = np.random.default_rng(1)
    model, corpus = random_model(rng, labels=("event", "none"))
    dataset = model.encoding.encode(corpus)
    costs = Decision("posterior", {"event": 4}).costs(model.labels)
    found = Decoder(model, Wishes("posterior", marginals=True, costs=costs)).decode_part(dataset, "test")
    assert np.array_equal(found.labels == 0, found.marginals[:, 0] >= 0.2)
    assert 0 < (found.labels == 0).sum() != (found.marginals[:, 0] >= 0.5).sum()


def short_spans(order, labels=SPANS):
    """Return a model of spans, and sequences that are short enough to enumerate their labellings."""
    rng = np.random.default_rng(order)
    model, _ = random_model(rng, labels=labels, order=order)
    corpus = random_corpus(rng, labels, sequences=12, longest=4)
    return model, corpus, model.encoding.encode(corpus)


@pytest.mark.parametrize("order", [1, 2])
def test_under_a_scheme_it_is_the_best_path_of_these(order):
    model, corpus, dataset = short_spans(order)
    costs = label_costs(SPANS, {"X": 6})
    wishes = Wishes("posterior", scheme="iob2", marginals=True)
    found = Decoder(model, replace(wishes, costs=costs)).decode_part(dataset, "test")
    plain = Decoder(model, wishes).decode_part(dataset, "test")
    assert np.array_equal(found.marginals, plain.marginals)
    assert (found.labels != plain.labels).any()
    follows = np.array([[b[0] != "I" or (a != "O" and a[2:] == b[2:]) for b in SPANS] for a in SPANS])
    allowed = Edges(np.where(follows, 0, -np.inf), np.where([a[0] != "I" for a in SPANS], 0, -np.inf), np.zeros(5))
    for first, last in zip(corpus.offsets[:-1], corpus.offsets[1:], strict=True):
        values = (found.marginals * costs)[first:last]
        paths = list(labellings(last - first, len(SPANS)))
        sums = [path_score(values, allowed.transitions, allowed.start, allowed.end, path) for path in paths]
        assert tuple(found.labels[first:last]) == paths[int(np.argmax(sums))]


ALPHABETS = {
    "iob": SPANS,  # IOB1 and IOB2, and mixtures of them
    "io": ("I-X", "I-Y", "O"),
    "iobes": ("B-X", "E-X", "I-X", "O", "S-X"),
    "bilou": ("B-X", "I-X", "L-X", "O", "U-X"),
}


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_each_span_that_is_scored_adds_its_bonus(order, alphabet):
    labels = ALPHABETS[alphabet]
    model, corpus, dataset = short_spans(order, labels)
    found = replace(model, span_bonus=1.5)
    best, plain = found.tag(dataset), model.tag(dataset)
    assert (best != plain).any()
    assert np.array_equal(found.marginals(dataset), model.marginals(dataset))
    assert np.array_equal(Decoder(found, Wishes()).decode_part(dataset, "test").labels, best)
    assert np.array_equal(found.deciding(Decision("viterbi")).tag(dataset), plain)
    assert np.array_equal(model.deciding(Decision(span_bonus=1.5)).tag(dataset), best)
    scores, edges = model.potentials(dataset)
    finder = SpanFinder(labels)
    for first, last in zip(corpus.offsets[:-1], corpus.offsets[1:], strict=True):
        paths = list(labellings(last - first, len(labels)))
        parts = (edges.transitions, edges.start, edges.end)
        sums = [
            path_score(scores[first:last], *parts, path, edges.triples)
            + 1.5 * len(finder.find(np.array(path), np.array([0, len(path)])).starts)
            for path in paths
        ]
        assert tuple(best[first:last]) == paths[int(np.argmax(sums))]


def written(spans, scheme):
    """The labels of spans (type, length), of type "" for one position outside; letters as the scheme has them."""
    out, before = [], ""
    for kind, length in spans:
        if not kind:
            out.append("O")
        elif scheme == "iob1":
            out += [f"{'B' if before == kind else 'I'}-{kind}", *[f"I-{kind}"] * (length - 1)]
        elif scheme == "iob2":
            out += [f"B-{kind}", *[f"I-{kind}"] * (length - 1)]
        else:
            single, last = ("S", "E") if scheme == "iobes" else ("U", "L")
            letters = single if length == 1 else "B" + "I" * (length - 2) + last
            out += [f"{letter}-{kind}" for letter in letters]
        before = kind
    return out


def test_a_labelling_gets_the_same_bonus_in_every_scheme():
    segmentations = [
        spans
        for count in range(1, 5)
        for spans in product([("", 1), ("X", 1), ("X", 2), ("Y", 1), ("Y", 3)], repeat=count)
        if sum(length for _, length in spans) <= 5
    ]
    assert len(segmentations) > 300
    for scheme, letters in (("iob1", "BI"), ("iob2", "BI"), ("iobes", "BIES"), ("bilou", "BILU")):
        labels = ["O", *(f"{letter}-{kind}" for letter in letters for kind in "XY")]
        edges = Edges.zeros(len(labels)).with_bonuses(span_bonuses(labels, 0.75))
        for spans in segmentations:
            path = [labels.index(label) for label in written(spans, scheme)]
            found = path_score(np.zeros((len(path), len(labels))), edges.transitions, edges.start, edges.end, path)
            assert found == 0.75 * sum(kind != "" for kind, _ in spans), (scheme, spans)


def test_a_bonus_is_for_labels_of_spans():
    with pytest.raises(ConfigError, match="'span_bonus' is for labels of spans"):
        span_bonuses(("a", "b"), 1.0)


def test_a_bonus_is_for_viterbi():
    assert Decision(span_bonus=0.0).decoder("posterior") == "viterbi"
    for other in ({"decode": "posterior"}, {"cost": {"X": 2}}):
        with pytest.raises(ConfigError, match="'span_bonus'"):
            Decision(span_bonus=1.0, **other)


def tiny():
    rng = np.random.default_rng(3)
    y = [["event" if rng.random() < 0.2 else "none" for _ in range(12)] for _ in range(20)]
    X = [[[float(label == "event") + rng.normal()] for label in labels] for labels in y]
    return X, y


def test_the_estimator_weighs_decisions_and_not_probabilities():
    X, y = tiny()
    plain, costly = KernelCRF(sigma2=1).fit(X, y), KernelCRF(sigma2=1, cost={"event": 10}).fit(X, y)
    before, after = plain.predict_proba(X), costly.predict_proba(X)
    assert all(map(np.array_equal, before, after))
    events = [[label == "event" for label in labels] for labels in costly.predict(X)]
    assert events == [(10 * p[:, 0] > p[:, 1]).tolist() for p in after]
    assert sum(map(sum, events)) > sum(label == "event" for labels in plain.predict(X) for label in labels)
    numbers = [[int(label == "event") for label in labels] for labels in y]
    assert KernelCRF(sigma2=1, cost={1: np.float64(10)}).fit(X, numbers).predict(X) == [
        [int(event) for event in row] for row in events
    ]


def test_the_estimator_explains_what_it_does_not_take():
    X, y = tiny()
    with pytest.raises(ConfigError, match="a cost for 'evnt'"):
        KernelCRF(cost={"evnt": 2}).fit(X, y)
    with pytest.raises(ConfigError, match="a dictionary from labels to numbers is needed"):
        KernelCRF(cost=20).fit(X, y)


def test_folds_are_decided_by_costs():
    rng = np.random.default_rng(0)
    corpus = random_corpus(rng, ("event", "none", "other"), sequences=20)
    settings = make_settings({}, {"sigma2": 1.0})

    def results(*decision):
        plan = make_plan(corpus, {"plain": True}, "test", settings, Division(2), *decision)
        labelling, _ = out_of_fold(plan, run_plan(plan), 0)
        scores = evaluate(labelling.gold, labelling.predicted, labelling.offsets)
        return next(score for score in scores.labels if score.name == "event").recall

    assert results() < 0.9 < results(Decision("posterior", {"event": 50}))
    with pytest.raises(ConfigError, match="a cost for 'x'"):
        results(Decision("posterior", {"x": 50}))
