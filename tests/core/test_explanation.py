"""Explanations add up, and name what they count."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import models
from kcrf_core import KernelCRF
from kcrf_core.chains import chain
from kcrf_core.corpora import ITEMS, corpus_of
from kcrf_core.encoding import UNKNOWN, UNOBSERVED
from kcrf_core.errors import DataError
from kcrf_core.model import Decoder, Wishes
from kcrf_core.model.explanation import Explainer
from kcrf_core.system import Workers

MANY = 10_000


def explain(model, dataset, count, **wishes):
    with Workers(1) as workers:
        (found,) = Decoder(model, Wishes(explain=count, **wishes)).decode(dataset, "data", workers)
    return found


def exchanged(model, dataset, labels, t, label):
    """What the score of all loses when position t gets another label."""
    scores, edges = model.potentials(dataset)
    other = labels.copy()
    other[t] = label
    before, after = (chain.path_scores(scores, edges, dataset.offsets, path).sum() for path in (labels, other))
    return before - after


@pytest.mark.each_choice
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("labels", [("A", "B"), ("A", "B", "C", "D")])
@pytest.mark.parametrize("kinds", [*((kind,) for kind in models.KINDS), models.KINDS])
def test_contributions_add_up_to_the_difference(order, labels, kinds):
    model, corpus = models.random_model(np.random.default_rng(4), kinds, labels, order)
    dataset = model.encoding.encode(corpus)
    for count in (1, 3, MANY):
        found = explain(model, dataset, count)
        for t, one in enumerate(found.explanations):
            assert one.label == found.labels[t] != one.against
            differences = [exchanged(model, dataset, found.labels, t, z) for z in range(len(labels))]
            if dataset.labels[t] == one.label:
                expected = min(value for z, value in enumerate(differences) if z != one.label)
            else:  # a wrong label is explained against the gold one
                assert one.against == dataset.labels[t]
                expected = differences[one.against]
            np.testing.assert_allclose(one.difference, expected, rtol=1e-8, atol=1e-10)
            values = [part.value for part in one.contributions]
            for sign in (1, -1):
                sizes = [abs(value) for value in values if sign * value > 0]
                assert len(sizes) <= count and sizes == sorted(sizes, reverse=True)
            assert values == sorted(values, key=lambda value: value < 0) and 0 not in values
            np.testing.assert_allclose(sum(values) + one.others, one.difference, rtol=1e-8, atol=1e-10)
            if count == MANY:
                assert abs(one.others) <= 1e-10 + 1e-8 * abs(one.difference)  # nothing is left


def test_only_errors_are_explained():
    model, corpus = models.random_model(np.random.default_rng(4), models.KINDS, ("A", "B", "C"))
    dataset = model.encoding.encode(corpus)
    every, some = explain(model, dataset, 2), explain(model, dataset, 2, explain_errors=True)
    wrong = (every.labels != dataset.labels).tolist()
    assert any(wrong) and not all(wrong)
    expected = [one if error else None for one, error in zip(every.explanations, wrong, strict=True)]
    assert some.explanations == expected
    hidden = replace(dataset, labels=np.where(wrong, UNOBSERVED, dataset.labels).astype(np.int32))
    assert set(explain(model, hidden, 2, explain_errors=True).explanations) == {None}
    unknown = explain(model, replace(dataset, labels=np.full_like(dataset.labels, UNKNOWN)), 2, explain_errors=True)
    without = explain(model, replace(dataset, labels=None), 2)
    assert unknown.explanations == without.explanations  # against the runner-up
    with pytest.raises(DataError, match="no gold labels to tell errors by"):
        explain(model, replace(dataset, labels=None), 2, explain_errors=True)


def test_names():
    model, corpus = models.random_model(np.random.default_rng(8), models.KINDS, order=2)
    dataset = model.encoding.encode(corpus)
    found = explain(model, dataset, MANY)
    for t, one in enumerate(found.explanations):
        described = set(model.encoding.describe(dataset, t))
        named = {term.name: [part for part in one.contributions if part.term == term.name] for term in model.terms}
        by_kind = dict(zip(models.KINDS, named.values(), strict=True))
        assert {part.what for part in by_kind["explicit"] + by_kind["cosine"]} <= described
        for part in by_kind["conjunctions"]:
            assert part.what == "constant" or set(part.what.split(" & ")) <= described
        after = set() if t + 1 == dataset.positions else set(model.encoding.describe(dataset, t + 1))
        for part in by_kind["kernel"] + by_kind["edge-x kernel"]:
            what = part.what.removeprefix("next: ")
            assert what == "jointly" or what in (after if part.what.startswith("next: ") else described)
        assert {pivot.term for pivot in one.similar} <= {term.name for term in model.terms if term.has_pivots}
        np.testing.assert_allclose(sum(value for _, value in one.terms), one.difference, rtol=1e-8, atol=1e-10)
        for part in by_kind["edge-x"]:
            assert part.what in described or part.what.removeprefix("next: ") in after


def test_a_feature_says_what_its_absence_takes_away():
    """By kernel values with the group left out, one by one."""
    model, corpus = models.random_model(np.random.default_rng(9), ("kernel",))
    dataset, (term,) = model.encoding.encode(corpus), model.terms
    inputs = model.encoding.inputs(dataset, term.features)

    def difference(codes, real, one):
        same = (codes == term.pivots.codes) & (codes >= 0)
        lengths = (codes != -1).sum() + real @ real + term.pivots.squared_norms()
        distances = lengths - 2 * (same.sum(axis=1) + term.pivots.real @ real)
        return np.exp(-term.kernel.gamma * distances) @ (term.alpha[:, one.label] - term.alpha[:, one.against])

    for t, one in enumerate(explain(model, dataset, MANY).explanations):
        codes, real = inputs.codes[t], inputs.real[t]
        whole = difference(codes, real, one)
        expected = []
        for c in range(len(codes)):
            expected.append(whole - difference(np.where(np.arange(len(codes)) == c, -1, codes), real, one))
        for r in range(len(real)):
            expected.append(whole - difference(codes, np.where(np.arange(len(real)) == r, 0.0, real), one))
        expected.append(whole - sum(expected))  # jointly
        positive = sorted((value for value in expected if value > 1e-12), reverse=True)
        values = [part.value for part in one.contributions if part.term == term.name and part.value > 1e-12]
        np.testing.assert_allclose(values, positive, rtol=1e-6, atol=1e-9)


def test_similar_pivots():
    model, corpus = models.random_model(np.random.default_rng(9), ("kernel",))
    dataset, (term,) = model.encoding.encode(corpus), model.terms
    for t, one in enumerate(explain(model, dataset, 2).explanations):
        assert 1 <= len(one.similar) <= 2
        assert one.similar[0].similarity == max(pivot.similarity for pivot in one.similar) <= 1 + 1e-9
        if corpus.lines[t] in term.lines:
            assert one.similar[0].similarity == pytest.approx(1, rel=1e-6)
            assert set(one.similar[0].text.split(", ")) <= set(model.encoding.describe(dataset, t))


def test_where_nothing_else_is_possible():
    model, corpus = models.random_model(np.random.default_rng(10), labels=models.SPANS)
    dataset = model.encoding.encode(corpus)
    found = explain(model, dataset, 3, force=True)  # all labels are given
    assert np.array_equal(found.labels, dataset.labels)
    assert {one.against for one in found.explanations} == {None}
    # Runners-up keep to the scheme, too.
    found = explain(model, dataset, 3, scheme="iob2")
    for t, one in enumerate(found.explanations):
        first = t in dataset.offsets
        assert one.against is None or not (first and model.labels[one.against].startswith("I"))


def test_one_label_has_no_runner_up():
    model, corpus = models.random_model(np.random.default_rng(12), labels=("A",))
    dataset = model.encoding.encode(corpus)
    scores, edges = model.potentials(dataset)
    found = Explainer(model).explain(dataset, scores, edges, np.zeros(dataset.positions, dtype=np.int32), 2)
    assert {one.against for one in found} == {None}


def test_each_attribute_speaks_for_itself():
    """By the model's own scores of the same position without it; those that training never saw are one more."""
    rng = np.random.default_rng(3)
    X = [
        [{"word": str(rng.integers(6)), "size": float(rng.integers(1, 4)), "odd": bool(rng.integers(2))}]
        for _ in range(40)
    ]
    y = [["a" if int(one["word"]) % 2 == one["odd"] else "b"] for (one,) in X]
    crf = KernelCRF(kernel="rbf", size=12, sigma2=3).fit(X, y)

    def difference(one, why):
        scores, _ = crf.model_.potentials(crf.model_.encoding.encode(corpus_of([[one]], ITEMS)))
        numbers = [crf.model_.labels.index(label) for label in (why.label, why.against)]
        return scores[0, numbers[0]] - scores[0, numbers[1]]

    for position in (X[0][0], X[1][0], {"word": "0", "new": 2.0}):
        ((why,),) = crf.explain([[position]], n=MANY)
        without = {name: {key: value for key, value in position.items() if key != name} for name in position}
        whole = difference(position, why)
        lost = {name: whole - difference(rest, why) for name, rest in without.items() if position[name]}
        found = {part.what.partition(":")[0]: part.value for part in why.contributions if part.term != "edge"}
        known = {
            "attributes that training has not seen" if name == "new" else name: value for name, value in lost.items()
        }
        known["jointly"] = whole - sum(lost.values())
        expected = {name: value for name, value in known.items() if value > 1e-9}
        assert expected.keys() == {name for name, value in found.items() if value > 1e-9}
        for name, value in expected.items():
            assert found[name] == pytest.approx(value, rel=1e-6, abs=1e-9)
        assert all("word:" in like.text for like in why.similar)
