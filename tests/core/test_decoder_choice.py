"""The decoder that a model stores."""

import numpy as np
import pytest

from kcrf_core.scoring import choose_yardstick
from kcrf_core.training import choose_decoder

ACCURACY = choose_yardstick(["a", "b"])


def counts(right, of=10):
    """Of sequences of ten positions each."""
    return np.column_stack([right, np.full(len(right), of)]).astype(float)


def test_posterior_decoding_is_stored_where_it_is_clearly_better(rng):
    path = rng.integers(4, 8, size=50)
    better = choose_decoder(ACCURACY, {"viterbi": counts(path), "posterior": counts(path + 1)}, "held-out")
    assert (better.decode, better.units, better.data) == ("posterior", 50, "held-out")
    assert better.difference == pytest.approx(0.1, rel=1e-12)
    assert better.to_dict()["posterior"] == pytest.approx(path.mean() / 10 + 0.1, rel=1e-12)


def test_viterbi_is_stored_where_chance_would_do(rng):
    path = rng.integers(4, 8, size=50)
    other = path.copy()
    other[0] += 1  # one position of 500, by one standard error
    found = choose_decoder(ACCURACY, {"viterbi": counts(path), "posterior": counts(other)}, "dev")
    assert found.decode == "viterbi" and 0 < found.difference <= found.error
    worse = choose_decoder(ACCURACY, {"viterbi": counts(path), "posterior": counts(path - 1)}, "dev")
    assert worse.decode == "viterbi" and worse.difference < 0


def test_a_bonus_only_must_not_be_worse():
    path = counts([4, 5, 6, 7])
    for right, bonus in (([4, 5, 6, 8], 1.5), ([4, 5, 6, 7], 0.0), ([9, 5, 5, 0], 0.0)):
        found = choose_decoder(ACCURACY, {"viterbi": path, "posterior": path, "bonus": counts(right)}, "dev", 1.5)
        assert (found.decode, found.span_bonus) == ("viterbi", bonus)
        assert found.counted_as == ("bonus" if bonus else "viterbi")
        assert found.to_dict().get("span_bonus", 0) == bonus


def test_a_single_unit_decides_nothing():
    found = choose_decoder(ACCURACY, {"viterbi": counts([1]), "posterior": counts([9])}, "dev")
    assert found.decode == "viterbi" and found.to_dict()["standard_error"] is None
