"""Learning curves: nested training parts, the same test folds, and intervals that contain what more data brings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_folds import plan_of, random_corpus

from kcrf_core.errors import DataError
from kcrf_core.selection import Division, Task, extrapolate, learning_curve, run_plan, tasks_of


@pytest.mark.parametrize("group", [None, "c0"])
def test_training_parts_are_nested_and_halved(group):
    corpus = random_corpus(203, groups=30)
    groups = np.array([corpus.columns[0][first] for first in corpus.offsets[:-1]])
    plan = plan_of(corpus, Division(4, group=group, halved=True))
    for f, fold in enumerate(plan.folds):
        rest = np.setdiff1d(np.arange(203), fold.test)
        assert np.array_equal(fold.nested[-1], rest)
        assert [len(part) for part in fold.nested] == [len(rest) // 2**k for k in (4, 3, 2, 1, 0)]
        for k, (small, large) in enumerate(zip(fold.nested, fold.nested[1:], strict=False)):
            assert set(small) < set(large)
            assert np.array_equal(plan.parts(Task(0, f, k))[1], fold.test)
            if group is not None:  # one after another enters
                divided = {each for each in groups[small] if set(np.flatnonzero(groups == each)) - set(small)}
                assert len(divided) <= 1
    assert len(tasks_of(plan)) == 20


def test_parts_depend_on_the_seed_alone():
    corpus = random_corpus(60)
    first, again, other = (plan_of(corpus, Division(3, halved=True), seed=seed).folds[1] for seed in (1, 1, 2))
    assert all(map(np.array_equal, first.nested, again.nested))
    assert not np.array_equal(first.nested[0], other.nested[0])


def test_too_few_sequences_are_an_error():
    with pytest.raises(DataError, match="28 sequences to train on are too few: a learning curve needs 32"):
        plan_of(random_corpus(35), Division(5, halved=True))
    assert len(plan_of(random_corpus(40), Division(5, halved=True)).folds[0].nested) == 3


def test_the_largest_size_has_the_scores_of_cross_validation():
    corpus, settings = random_corpus(60), {"sigma2": 1.0, "plain": True}
    plan = plan_of(corpus, Division(3, halved=True))
    plan = replace(plan, settings=(replace(plan.settings[0], options=settings),))
    found = run_plan(plan, threads=1)
    whole = run_plan(replace(plan, folds=tuple(replace(fold, nested=()) for fold in plan.folds)), threads=1)
    results = learning_curve(plan, found, {"seed": 0})
    assert [size["units"] for size in results["sizes"]] == [10, 20, 40]
    last = results["sizes"][-1]
    assert last["folds"] == [whole[Task(0, f)]["accuracy"] for f in range(3)]
    assert last["mean"] == pytest.approx(np.mean(last["folds"]))
    assert last["positions"] == pytest.approx(corpus.positions * 2 / 3)
    for forecast in results["forecasts"]:
        assert forecast["low"] < forecast["mean"] < forecast["high"]


def straight(first, gain, sizes):
    """Scores whose transform grows by the same amount at each doubling."""
    grid = 1 / (1 + np.exp(-np.linspace(-12, 12, 100_001)))
    level = np.log(first) / 4 - np.log1p(-first)
    return np.interp(level + gain * np.arange(sizes), np.log(grid) / 4 - np.log1p(-grid), grid)


@pytest.mark.parametrize("first", [0.05, 0.6, 0.95])
def test_a_straight_curve_goes_on(first):
    truth = straight(first, 0.25, 7)
    scores = truth[:5, None] + np.array([-0.01, 0.01])  # folds differ, but not by size
    (low, middle, high), (lower, median, higher) = extrapolate(scores)
    np.testing.assert_allclose([middle, median], truth[5:], rtol=2e-3)
    assert low < middle < high and lower < median < higher


def test_noise_of_folds_widens_the_interval():
    truth, rng = straight(0.6, 0.25, 5), np.random.default_rng(0)
    noise = rng.standard_normal((5, 5))
    noise -= noise.mean(axis=1, keepdims=True)
    widths = [np.ptp(extrapolate(truth[:, None] + deviation * noise), axis=1) for deviation in (0.0, 0.01, 0.04)]
    assert (np.diff(widths, axis=0) > 0).all()


def test_scores_stay_within_their_limits():
    perfect, none = (extrapolate(np.full((4, 5), value)) for value in (1.0, 0.0))
    np.testing.assert_allclose(perfect, 1.0, atol=1e-4)
    np.testing.assert_allclose(none, 0.0, atol=2e-3)
    assert perfect.max() <= 1.0 and none.min() >= 0.0


def test_a_log_loss_falls():
    losses = 2.0 * 0.8 ** np.arange(5)[:, None] + np.array([-0.01, 0.01])
    ends = extrapolate(losses, log_loss=True)
    np.testing.assert_allclose(ends[:, 1], 2.0 * 0.8 ** np.arange(5, 7), rtol=0.01)
    assert (ends[:, 0] > ends[:, 1]).all() and (ends[:, 2] < ends[:, 1]).all() and (ends > 0).all()


@pytest.mark.parametrize("count", [200, pytest.param(3000, marks=pytest.mark.slow)])
def test_intervals_contain_the_scores_of_power_laws(count):
    """80 % of simulated curves, error = a + b n^-c with other errors for each fold and size, at four times the data."""
    rng, inside, simple = np.random.default_rng(0), 0, 0
    for _ in range(count):
        n, c = 2.0 ** np.arange(7), rng.uniform(0.15, 0.5)
        limit, share = rng.uniform(0.0, 0.15), rng.uniform(0.2, 0.6)
        means = 1 - limit - share * n**-c
        noise = 0.02 * n[:, None] ** -0.5 * rng.standard_normal((7, 5))
        scores = means[:, None] + 0.03 * rng.standard_normal(5) + noise
        low, _, high = extrapolate(scores[:5])[1]
        inside += low <= scores[6].mean() <= high
        last, error = scores[:5].mean(axis=1), scores[4].std(ddof=1) / np.sqrt(5)
        simple += abs(last[4] + 2 * (last[4] - last[3]) - scores[6].mean()) <= 2 * error
    assert inside >= 0.7 * count and inside > simple
