"""Probabilities: hand-worked figures, sums by definition, and systems that are calibrated by construction."""

import json

import numpy as np
import pytest

from kcrf_core.scoring.calibration import Bin, Probabilities, calibrate, from_marginals


def test_figures_worked_by_hand():
    marginals = np.array([[0.75, 0.25], [0.75, 0.25], [0.5, 0.5], [0.0, 1.0]])
    gold, predicted = list("abba"), list("aaab")
    probabilities = from_marginals(marginals, "ab", gold, predicted)
    assert probabilities.predicted.tolist() == [0.75, 0.75, 0.5, 1.0]
    assert probabilities.gold.tolist() == [0.75, 0.25, 0.5, 0.0]
    found = calibrate(probabilities, np.array([True, False, False, False]), bins=4)
    # One certain error: it is taken for a probability of 1e-30.
    assert found.log_loss == pytest.approx(-(np.log([0.75, 0.25, 0.5]).sum() + np.log(1e-30)) / 4, rel=1e-12)
    assert found.impossible == 1 and found.left_out == 0
    assert found.brier == pytest.approx((2 * 0.25**2 + 2 * 0.75**2 + 2 * 0.5**2 + 2) / 4, rel=1e-12)
    assert found.bins == (Bin(0.5, 0.75, 1, 0.5, 0.0), Bin(0.75, 1.0, 3, 2.5 / 3, 1 / 3))
    assert found.calibration_error == pytest.approx((0.5 + 1.5) / 4, rel=1e-12)


def test_against_the_definitions(rng):
    N, Y, bins = 400, 5, 7
    marginals = rng.dirichlet(np.ones(Y), size=N)
    labels = [f"L{y}" for y in range(Y)]
    gold = [labels[y] for y in rng.integers(Y, size=N)]
    predicted = [labels[y] for y in rng.integers(Y, size=N)]  # not always the most probable one: a path is decoded
    right = np.array([g == p for g, p in zip(gold, predicted, strict=True)])
    found = calibrate(from_marginals(marginals, labels, gold, predicted), right, bins)

    log_loss = brier = 0.0
    members = {}
    for t in range(N):
        chosen, truth = labels.index(predicted[t]), labels.index(gold[t])
        log_loss -= np.log(marginals[t, truth]) / N
        brier += sum((marginals[t, y] - (y == truth)) ** 2 for y in range(Y)) / N
        members.setdefault(int(marginals[t, chosen] * bins), []).append((marginals[t, chosen], right[t]))
    error = sum(len(pairs) / N * abs(np.mean([p - r for p, r in pairs])) for pairs in members.values())
    assert found.log_loss == pytest.approx(log_loss, rel=1e-12)
    assert found.brier == pytest.approx(brier, rel=1e-12)
    assert found.calibration_error == pytest.approx(error, rel=1e-10)
    assert sum(b.positions for b in found.bins) == N
    assert all(b.low <= b.confidence <= b.high for b in found.bins)


def test_honest_probabilities_have_a_small_error_and_boasting_ones_a_large_one(rng):
    confidence = rng.uniform(0.5, 1.0, size=50_000)
    right = rng.random(50_000) < confidence
    assert calibrate(Probabilities(confidence, None, None), right).calibration_error < 0.01
    boasting = calibrate(Probabilities(np.full(50_000, 0.99), None, None), right)
    assert boasting.calibration_error == pytest.approx(0.99 - right.mean(), rel=1e-9)
    assert boasting.log_loss is None and boasting.brier is None


def test_unknown_gold_labels():
    probabilities = from_marginals(np.array([[0.5, 0.5], [0.25, 0.75]]), "ab", ["a", "new"], ["a", "b"])
    found = calibrate(probabilities, np.array([True, False]))
    assert found.left_out == 1
    assert found.log_loss == pytest.approx(np.log(2), rel=1e-12)
    # What should have had all of the probability had none of it.
    assert found.brier == pytest.approx((0.5 + (0.25**2 + 0.75**2 + 1)) / 2, rel=1e-12)
    nothing = calibrate(from_marginals(np.array([[0.5, 0.5]]), "ab", ["new"], ["a"]), np.array([False]))
    assert nothing.log_loss is None and nothing.left_out == 1


def test_confidences_at_the_borders_of_bins():
    found = calibrate(Probabilities(np.array([0.0, 0.1, 1.0]), None, None), np.array([False, True, True]), bins=10)
    assert [(b.low, b.positions) for b in found.bins] == [(0.0, 1), (0.1, 1), (0.9, 1)]
    assert json.loads(json.dumps(found.to_dict()))["bins"][0]["positions"] == 1
