"""Sequences to label next: scores, vectors and the choice among candidates."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from kcrf_core.config import RulesConfig, parse_config
from kcrf_core.corpora import Corpus
from kcrf_core.encoding import fit_encoding
from kcrf_core.model import Decoded
from kcrf_core.selection import Pool, PoolJudge, pool
from kcrf_core.system import Workers
from kcrf_core.training import train


def corpus(*texts: str, labels: str = "") -> Corpus:
    words = [text.split() for text in texts]
    offsets = np.cumsum([0, *map(len, words)])
    columns = ([word for own in words for word in own],) + ((labels.split(),) if labels else ())
    return Corpus("pool", columns, offsets, np.arange(1, offsets[-1] + 1))


def batch(count: int, scores, texts, groups=None) -> list[int]:
    """Places of the sequences chosen, in order."""
    judged, found = PoolJudge(None).judged(corpus(*texts)), Pool(count)
    order = replace(judged, scores=np.array(scores), found=cast(Decoded, ()))  # by a model: the first of equal scores
    found.add(order, lambda s: s, groups)
    return [one.content for one, _ in found.chosen()]


def fitted(texts: Corpus):
    config = parse_config({"training": {"sigma2": 1.0, "decode": "viterbi"}})
    encoding, dataset = fit_encoding(config, texts)
    with Workers(1) as workers:
        return train(encoding, dataset, config, workers=workers)[0]


@pytest.fixture(scope="module")
def model():
    return fitted(corpus("a b", "b a", "a a", "c b a", labels="x y y x x x z y x"))


def test_of_copies_one_is_chosen_and_of_like_ones_the_less_like_next():
    same = "h i j k l m n o p q"
    texts = [f"{same} r s", f"{same} r s", f"{same} r t", "u v w x"]
    assert batch(3, [4.0, 4.0, 3.9, 2.0], texts) == [0, 3, 2]
    assert batch(4, [4.0, 4.0, 3.9, 2.0], texts) == [0, 3, 2]  # no fourth that differs


def test_scores_decide_where_nothing_is_shared():
    texts = ["a a", "b b", "c c", "d d"]
    assert batch(4, [1.0, 3.0, 2.0, 3.0], texts) == [1, 3, 2, 0]


def test_what_is_made_of_those_chosen_comes_when_nothing_else_is_left():
    texts = ["a b", "b a", "a a b b"]
    assert batch(3, [1.0, 2.0, 3.0], texts) == [2, 1, 0]


def test_groups_take_turns():
    texts = [chr(97 + s) for s in range(6)]
    assert batch(5, [9.0, 8.0, 7.0, 3.0, 2.0, 1.0], texts, "AAABBC") == [0, 3, 5, 1, 4]


def test_the_best_are_kept_of_more_than_memory_holds(monkeypatch):
    monkeypatch.setattr(pool, "LEAST_KEPT", 4)
    monkeypatch.setattr(pool, "KEPT_FOR_EACH", 2)
    rng = np.random.default_rng(0)
    scores, texts = rng.random(200).tolist(), [f"w{s}" for s in range(200)]
    best = np.argsort(scores)[::-1].tolist()
    assert batch(3, scores, texts) == best[:3]
    groups = ["few" if s in best[-3:] else "many" for s in range(200)]
    assert batch(3, scores, texts, groups) == [best[0], best[-3], best[1]]
    # A group that comes late, and has low scores.
    assert batch(2, [*np.linspace(9, 8, 199), 1.0], texts, ["first"] * 199 + ["late"]) == [0, 199]


def test_certain_sequences_and_many_are_chosen_too(monkeypatch):
    texts = ["a b", "b a", "a a b b", "c"]
    assert batch(4, [0.0] * 4, texts) == [0, 3, 1, 2]
    monkeypatch.setattr(pool, "MOST_AT_ONCE", 2)
    assert batch(4, [4.0, 3.0, 2.0, 1.0], texts) == [0, 3, 1, 2]


def test_judged_by_entropy_or_probability_per_cost(model):
    texts = corpus("a b", "c c c c", "d")
    entropies = PoolJudge(model, cost="sequence").judged(texts)
    found = model.infer(model.encoding.encode(texts))
    most = np.add.reduceat(-(found.marginals.node * np.log(found.marginals.node)).sum(axis=1), texts.offsets[:-1])
    assert (entropies.scores > 0).all()
    assert (entropies.scores <= most + 1e-9).all()
    np.testing.assert_allclose(PoolJudge(model).judged(texts).scores, entropies.scores / [2, 4, 1], rtol=1e-12)
    confidence = PoolJudge(model, "least-confidence", "sequence").judged(texts)
    np.testing.assert_allclose(confidence.scores, -confidence.found.log_probabilities, rtol=1e-12)


def test_labels_that_are_known_are_kept_and_need_no_labelling(model):
    judged = PoolJudge(model, cost="sequence").judged(corpus("b b", "c c", "a a", labels="? ? z ? x x"))
    assert judged.open.tolist() == [True, True, False]
    assert judged.scores[2] == pytest.approx(0, abs=1e-6)
    assert model.labels[judged.found.labels[2]] == "z"
    free = PoolJudge(model, cost="sequence").judged(corpus("c c")).scores
    assert judged.scores[1] < free[0]


def test_sequences_of_the_training_data_are_left_out():
    model = fitted(corpus("a b c d e", "e d c b a", labels="x y x y x y x y x y"))
    assert PoolJudge(model).judged(corpus("a b c d e", "a b c d f")).open.tolist() == [False, True]
    short = fitted(corpus("a b", "b c", labels="x y x y"))
    assert PoolJudge(short).judged(corpus("b c", "b a")).open.tolist() == [False, True]


def test_vectors_are_gradients_of_the_likeliest_labels(model):
    texts = corpus("a new", "new a")
    judged = PoolJudge(model).judged(texts)
    two = np.sort(judged.found.marginals, axis=1)[:, :-3:-1]
    expected = np.concatenate([two[:, 0] - 1, two[:, 1]])
    for s, rows in enumerate(([0, 1, 4, 5], [2, 3, 6, 7])):
        np.testing.assert_allclose(np.sort(judged.values_of(s)[1]), np.sort(expected[rows]), rtol=1e-5)


def test_values_are_alike_with_the_same_labels_alone(model):
    judged = PoolJudge(model).judged(corpus("q b", "q a", "q"))
    first = judged.found.marginals[[0, 2, 4]]
    assert [row[:2] for row in np.argsort(-first, axis=1).tolist()] == [[0, 2], [1, 0], [0, 1]]
    one, other, alone = (dict(zip(*(part.tolist() for part in judged.values_of(s)), strict=True)) for s in range(3))
    (shared,) = one.keys() & other.keys()  # "q" with label 0
    assert one[shared] < 0 < other[shared]
    assert len(other.keys() & alone.keys()) == 2


def test_rules_that_cannot_be_obeyed_leave_suggestions(model):
    rules = RulesConfig(require=("x", "y", "z"), when_impossible="fail")
    judged = PoolJudge(replace(model, rules=rules)).judged(corpus("c", "b c a"))
    assert judged.found.labels.max() < len(model.labels)
    assert {model.labels[number] for number in judged.found.labels[1:]} == {"x", "y", "z"}
