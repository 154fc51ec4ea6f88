"""The decoder that a model stores."""

import numpy as np
import pytest

from kcrf_core.chains import Problem
from kcrf_core.scoring import choose_yardstick
from kcrf_core.training import make_splits
from kcrf_core.training.held_out import choose_decoder, right_sequences

ACCURACY = choose_yardstick(["a", "b"])


def counts(right, of=10):
    """Of sequences of ten positions each."""
    return np.column_stack([right, np.full(len(right), of)]).astype(float)


def test_posterior_decoding_is_stored_unless_viterbi_is_clearly_more_accurate(rng):
    path = rng.integers(4, 8, size=50)
    better = choose_decoder(ACCURACY, {"viterbi": counts(path), "posterior": counts(path + 1)}, "held-out")
    assert (better.decode, better.units, better.data) == ("posterior", 50, "held-out")
    assert better.difference == pytest.approx(0.1, rel=1e-12)
    assert better.to_dict()["posterior"] == pytest.approx(path.mean() / 10 + 0.1, rel=1e-12)
    other = path.copy()
    other[:2] += [-2, 1]  # one position of 500, by less than a standard error
    found = choose_decoder(ACCURACY, {"viterbi": counts(path), "posterior": counts(other)}, "dev")
    assert found.decode == "posterior" and 0 < -found.difference < found.error
    worse = {"viterbi": counts(path), "posterior": counts(path - 1)}
    assert choose_decoder(ACCURACY, worse, "dev").decode == "viterbi"
    soft = choose_decoder(ACCURACY, worse, "held-out", decisive=False)  # by fits on a small part of the data
    assert soft.decode == "posterior" and soft.difference == pytest.approx(-0.1, rel=1e-12)
    assert choose_decoder(choose_yardstick(["a", "b"], "log-loss"), worse, "dev").decode == "viterbi"


@pytest.mark.parametrize("name", ["f1", "macro-f1"])
def test_viterbi_is_stored_for_f1_unless_posterior_decoding_is_clearly_better(rng, name):
    f1, path = choose_yardstick(["B-X", "I-X", "O"], name), rng.integers(4, 8, size=50)
    other = path.copy()
    other[0] += 1
    for posterior, decode in ((path + 1, "posterior"), (other, "viterbi"), (path - 1, "viterbi")):
        found = choose_decoder(f1, {"viterbi": counts(path), "posterior": counts(posterior)}, "dev", decisive=False)
        assert found.decode == decode


def test_fits_on_two_thirds_are_needed_to_decide_against_posterior_decoding():
    problem = Problem(np.zeros(360, np.int32), np.arange(0, 361, 4), np.ones(90), 2)
    for folds, most, enough in ((1, None, False), (2, None, False), (3, None, True), (5, None, True), (5, 100, False)):
        splits = make_splits(problem, seed=0, folds=folds, most_positions=most)
        assert splits.fits_most(problem.positions) == enough


def test_whole_sequences_right():
    gold, offsets = np.array([0, 1, 1, 0, -1, 0]), np.array([0, 2, 4, 6])
    assert right_sequences(gold, np.array([0, 1, 1, 1, 1, 0]), offsets, np.array([1.0, 2.0, 4.0])).tolist() == [5, 7]
    sequences = {"viterbi": np.array([3.0, 4.0]), "posterior": np.array([2.0, 4.0])}
    same = {name: counts([5, 6]) for name in sequences}
    found = choose_decoder(ACCURACY, same, "dev", sequences=sequences).to_dict()
    assert found["whole_sequences"] == {"viterbi": 0.75, "posterior": 0.5}


def test_a_bonus_only_must_not_be_worse_by_a_standard_error():
    path, f1 = counts([4, 5, 6, 7]), choose_yardstick(["B-X", "O"])
    for right, bonus in (([4, 5, 6, 8], 1.5), ([4, 5, 6, 7], 0.0), ([5, 5, 6, 5], 1.5), ([3, 4, 5, 6], 0.0)):
        found = choose_decoder(f1, {"viterbi": path, "posterior": path, "bonus": counts(right)}, "dev", 1.5)
        assert (found.decode, found.span_bonus) == ("viterbi", bonus)
        assert found.counted_as == ("bonus" if bonus else "viterbi")
        assert found.to_dict().get("span_bonus", 0) == bonus


def test_a_single_unit_decides_nothing():
    found = choose_decoder(ACCURACY, {"viterbi": counts([9]), "posterior": counts([1])}, "dev")
    assert found.decode == "posterior" and found.to_dict()["standard_error"] is None
