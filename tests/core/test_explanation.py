"""Explanations add up, and name what they count."""

from __future__ import annotations

import numpy as np
import pytest

import models
from kcrf_core.chains import chain
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
            differences = [exchanged(model, dataset, found.labels, t, z) for z in range(len(labels)) if z != one.label]
            np.testing.assert_allclose(one.difference, min(differences), rtol=1e-8, atol=1e-10)
            values = [part.value for part in one.contributions]
            assert len(values) <= count and values == sorted(values, reverse=True) and min(values, default=1) > 0
            np.testing.assert_allclose(sum(values) + one.others, one.difference, rtol=1e-8, atol=1e-10)
            if count == MANY:
                assert one.others <= 1e-10  # all that is left speaks against it


def test_names():
    model, corpus = models.random_model(np.random.default_rng(8), models.KINDS, order=2)
    dataset = model.encoding.encode(corpus)
    found = explain(model, dataset, MANY)
    for t, one in enumerate(found.explanations):
        described = set(model.encoding.describe(dataset, t))
        named = {term.name: [part for part in one.contributions if part.term == term.name] for term in model.terms}
        by_kind = dict(zip(models.KINDS, named.values(), strict=True))
        assert {part.what for part in by_kind["explicit"] + by_kind["cosine"]} <= described
        assert {part.what for part in by_kind["affine"]} <= described | {"constant"}
        for part in by_kind["conjunctions"]:
            assert part.what == "constant" or set(part.what.split(" & ")) <= described
        for part in by_kind["kernel"] + by_kind["edge-x kernel"]:
            assert part.line in corpus.lines.tolist() and part.what in ("pivot", "next: pivot")
        after = set() if t + 1 == dataset.positions else set(model.encoding.describe(dataset, t + 1))
        for part in by_kind["edge-x"]:
            assert part.what in described or part.what.removeprefix("next: ") in after


def test_a_pivot_speaks_by_its_kernel_value():
    model, corpus = models.random_model(np.random.default_rng(9), ("kernel",))
    dataset, (term,) = model.encoding.encode(corpus), model.terms
    inputs = model.encoding.inputs(dataset, term.features)
    for t, one in enumerate(explain(model, dataset, MANY).explanations):
        for part in one.contributions:
            if part.line is None:
                continue
            m = term.lines.tolist().index(part.line)
            distance = inputs.take([t]).squared_norms() + term.pivots.take([m]).squared_norms()
            same = (inputs.codes[t] == term.pivots.codes[m]) & (inputs.codes[t] >= 0)
            distance -= 2 * (same.sum() + inputs.real[t] @ term.pivots.real[m])
            weight = term.alpha[m, one.label] - term.alpha[m, one.against]
            np.testing.assert_allclose(part.value, np.exp(-term.kernel.gamma * distance[0]) * weight, rtol=1e-8)


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
