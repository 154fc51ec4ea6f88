"""Rules on runs of labels, against enumeration."""

import dataclasses
import itertools

import numpy as np
import pytest

from kcrf_core.chains import EXACT, IMPOSSIBLE, LIMITED, Edges, RunRules, chain
from kcrf_core.chains.rules import NONE_FOUND
from kcrf_core.config import RulesConfig
from kcrf_core.errors import ConfigError
from kcrf_core.model import LabelRules

MOST = 1_000_000  # nodes


def random_case(rng):
    """Return potentials of one sequence and rules of all kinds for them."""
    Y, T = int(rng.integers(2, 5)), int(rng.integers(1, 6))
    counters = int(rng.integers(1, Y + 1))
    group = rng.integers(-1, counters, Y).astype(np.int32)
    apart = (group[:, None] != group) | (rng.random((Y, Y)) < 0.3)
    most = rng.choice([-1, -1, 0, 1, 1, 2], counters).astype(np.int32)
    rules = RunRules(group, apart, most, rng.random(counters) < 0.3)
    transitions = rng.normal(size=(T, Y, Y) if rng.random() < 0.3 else (Y, Y))
    transitions[..., rng.random((Y, Y)) < 0.15] = -np.inf
    triples = rng.normal(size=(Y, Y, Y)) if rng.random() < 0.5 else None
    return 2 * rng.normal(size=(T, Y)), Edges(transitions, *rng.normal(size=(2, Y)), triples), rules


def obeys(path, rules):
    counts = [0] * len(rules.most)
    for t, label in enumerate(path):
        if rules.group[label] >= 0 and (t == 0 or rules.apart[path[t - 1], label]):
            counts[rules.group[label]] += 1
    limits = zip(counts, rules.most, rules.required, strict=True)
    return all((most < 0 or count <= most) and (count or not required) for count, most, required in limits)


@pytest.mark.parametrize("chains", [60, pytest.param(500, marks=pytest.mark.slow)])
def test_rules_are_those_of_enumeration(chains):
    rng = np.random.default_rng(38)
    seen = set()
    for _ in range(chains):
        scores, edges, rules = random_case(rng)
        (T, Y), offsets = scores.shape, np.array([0, len(scores)])
        paths = np.array(list(itertools.product(range(Y), repeat=T)), dtype=np.int32)
        ends, tiled = np.arange(len(paths) + 1) * T, np.tile(scores, (len(paths), 1))
        every = chain.path_scores(tiled, edges.rows(np.tile(np.arange(T), len(paths))), ends, paths.ravel())
        good = np.array([obeys(path, rules) for path in paths])
        assert np.array_equal(rules.obeyed(paths.ravel(), ends), good)
        if np.isneginf(every).all():
            continue
        own = np.where(good, every, -np.inf)
        expected = np.sort(own[np.isfinite(own)])[::-1][:5]
        (found,), (status,) = rules.best_labellings(scores, edges, offsets, np.array([0]), 5, MOST)
        np.testing.assert_allclose(found.scores, expected, rtol=1e-12, atol=1e-12)
        numbers = [int(np.flatnonzero((paths == path).all(axis=1))[0]) for path in found.labels]
        np.testing.assert_allclose(own[numbers], found.scores, rtol=1e-12, atol=1e-12)
        assert len(set(numbers)) == len(numbers)
        seen.add((edges.triples is None, int(status)))
        if not len(expected):
            assert status == IMPOSSIBLE
            continue
        assert status == EXACT
    assert seen == set(itertools.product((True, False), (EXACT, IMPOSSIBLE)))


def once_all(Y):
    return RunRules(
        np.arange(Y, dtype=np.int32), ~np.eye(Y, dtype=bool), np.ones(Y, dtype=np.int32), np.zeros(Y, dtype=bool)
    )


def test_more_counters_than_a_word_has_bits_and_the_node_limit():
    Y, T, rules = 70, 8, once_all(70)
    scores = np.random.default_rng(1).normal(size=(T, Y))
    scores[:, 69] += 3.0  # every other position, if others were not in between
    scores[1::2, 69] -= 8.0
    offsets, edges, one = np.array([0, T]), Edges.zeros(Y), np.array([0])
    assert not rules.obeyed(chain.viterbi(scores, edges, offsets)[0], offsets).any()
    (exact,), (status,) = rules.best_labellings(scores, edges, offsets, one, 1, MOST)
    assert status == EXACT and rules.obeyed(exact.labels[0], offsets).all()
    (some,), (status,) = rules.best_labellings(scores, edges, offsets, one, 1, 1500)
    assert status == LIMITED and rules.obeyed(some.labels[0], offsets).all()
    assert some.scores[0] <= exact.scores[0]
    np.testing.assert_allclose(chain.path_scores(scores, edges, offsets, some.labels[0]), some.scores, rtol=1e-12)
    (none,), (status,) = rules.best_labellings(scores, edges, offsets, one, 1, Y)
    assert status == NONE_FOUND and not len(none.labels)


def test_a_long_sequence_needs_few_nodes_for_one_label():
    T, Y = 2000, 3
    rules = dataclasses.replace(once_all(Y), group=np.array([0, -1, -1], dtype=np.int32))
    rules = dataclasses.replace(rules, most=rules.most[:1], required=rules.required[:1])
    scores = np.random.default_rng(2).normal(size=(T, Y))
    offsets, edges = np.array([0, T]), Edges.zeros(Y)
    (found,), (status,) = rules.best_labellings(scores, edges, offsets, np.array([0]), 1, MOST)
    # The run that gains most over the better one of the other two labels: the largest sum of a window.
    gains = scores[:, 0] - scores[:, 1:].max(axis=1)
    sums = np.append(0.0, np.cumsum(gains))
    best = scores[:, 1:].max(axis=1).sum() + (sums - np.minimum.accumulate(sums)).max()
    assert status == EXACT
    np.testing.assert_allclose(found.scores[0], best, rtol=1e-12)


@pytest.mark.parametrize("chains", [25, pytest.param(500, marks=pytest.mark.slow)])
def test_rules_by_name_are_those_of_enumeration(chains):
    """All kinds of rules at once, of labels and types of spans, against lists of all labellings."""
    rng, done = np.random.default_rng(39), 0
    for _ in range(chains):
        labels = ["O", "B-X", "I-X", "B-Y"] if rng.random() < 0.5 else ["a", "b", "c"]
        spans, Y, T = len(labels) == 4, len(labels), int(rng.integers(1, 5))
        names = ["X", "Y"] if spans else labels
        forbid = [f"{a}>{b}" for a in [*labels, "^"] for b in [*labels, "$"] if (a, b) != ("^", "$")]
        config = RulesConfig(
            once=("all",) if rng.random() < 0.3 else (),
            require=tuple(name for name in names if rng.random() < 0.2),
            at_most=(f"{names[-1]}=2",) if rng.random() < 0.3 else (),
            forbid=tuple(rule for rule in forbid if rng.random() < 0.15),
            allowed="may" if rng.random() < 0.5 else None,
        )
        try:
            rules = LabelRules.of(config, labels)
        except ConfigError:  # rules that contradict each other
            continue
        if rules is None:
            continue
        scores, triples = 2 * rng.normal(size=(T, Y)), rng.normal(size=(Y, Y, Y)) if rng.random() < 0.5 else None
        transitions = rng.normal(size=(T, Y, Y) if rng.random() < 0.3 else (Y, Y))
        edges, offsets = Edges(transitions, *rng.normal(size=(2, Y)), triples), np.array([0, T])
        listed = rng.random((T, Y)) < 0.8 if config.allowed else None
        paths = np.array(list(itertools.product(range(Y), repeat=T)), dtype=np.int32)
        tiled, ends = np.tile(scores, (len(paths), 1)), np.arange(len(paths) + 1) * T
        every = chain.path_scores(tiled, edges.rows(np.tile(np.arange(T), len(paths))), ends, paths.ravel())
        good = np.array([obeys_by_name([labels[y] for y in path], config, names, spans) for path in paths])
        if listed is not None:
            good &= listed[np.arange(T), paths].all(axis=1)
        own = np.where(good, every, -np.inf)
        best, (status,) = rules.best(scores, edges, offsets, listed)
        assert status == (EXACT if good.any() else IMPOSSIBLE)
        assert np.array_equal(best, paths[np.argmax(own if good.any() else every)])
        if not good.any():
            continue
        done += 1
        (found,), _ = rules.nbest(scores, edges, offsets, listed, 4)
        np.testing.assert_allclose(found.scores, np.sort(own[good])[::-1][:4], rtol=1e-9)
        # Numbers of runs bind labels, not marginals.
        local = RulesConfig(forbid=config.forbid)
        possible = np.array([obeys_by_name([labels[y] for y in path], local, names, spans) for path in paths])
        if listed is not None:
            possible &= listed[np.arange(T), paths].all(axis=1)
        left = np.where(possible, every, -np.inf)
        weights = np.exp(left - np.logaddexp.reduce(left))
        marginals = np.array([[weights[paths[:, t] == y].sum() for y in range(Y)] for t in range(T)])
        np.testing.assert_allclose(rules.marginals(scores, edges, offsets, listed)[0], marginals, rtol=1e-9, atol=1e-12)
        labelled, _ = rules.posterior(scores, edges, offsets, listed, None)
        gains = np.where(good, marginals[np.arange(T), paths].sum(axis=1), -np.inf)
        assert np.array_equal(labelled, paths[np.argmax(gains)])
    assert done > chains / 3


def obeys_by_name(path, config, names, spans):
    """Return True if labels obey, by the words of the rules."""

    def runs(name):
        own = [label.endswith(f"-{name}") if spans else label == name for label in path]
        begins = [not before or (spans and label[0] == "B") for before, label in zip([False, *own], path, strict=False)]
        return sum(one and begin for one, begin in zip(own, begins, strict=True))

    most = dict.fromkeys(names, 1) if config.once else {}
    most |= {item.split("=")[0]: int(item.split("=")[1]) for item in config.at_most}
    steps = {f"{a}>{b}" for a, b in itertools.pairwise(["^", *path, "$"])}
    counts = {name: runs(name) for name in names}
    return (
        all(counts[name] <= limit for name, limit in most.items())
        and all(counts[name] for name in config.require)
        and not steps & set(config.forbid)
    )
