"""What features make of values is worked out once, and the same as if it were worked out each time."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from kcrf_core.corpora import columns
from kcrf_core.corpora.columns import SeenValues


def blocks(rng, count=40):
    return [[f"w{number}" for number in rng.permutation(200)[: rng.integers(1, 60)]] for _ in range(count)]


@pytest.mark.parametrize("most", [1 << 18, 50, 0])
def test_codes_are_those_of_the_function_whatever_room_there_is(monkeypatch, most):
    monkeypatch.setattr(columns, "MOST_VALUES", most)
    seen = SeenValues()
    encode = lambda values: np.array([int(value[1:]) * 3 for value in values], dtype=np.int32)  # noqa: E731
    for values in blocks(np.random.default_rng(0)):
        numbers = seen.numbers(values)
        assert np.array_equal(seen.codes(("triple",), values, numbers, encode), encode(values))
        assert np.array_equal(
            seen.codes(("length",), values, numbers, lambda some: encode(some) // 3), encode(values) // 3
        )
        assert numbers.max() < max(most, 1)


def test_a_value_is_worked_out_once():
    seen, asked = SeenValues(), []

    def encode(values):
        asked.extend(values)
        return np.arange(len(values), dtype=np.int32)

    for values in blocks(np.random.default_rng(1)):
        seen.codes(("some",), values, seen.numbers(values), encode)
    assert len(asked) == len(set(asked)) > 100


def test_threads_may_meet_values_at_the_same_time():
    seen = SeenValues()
    encode = lambda values: np.array([int(value[1:]) for value in values], dtype=np.int32)  # noqa: E731

    def work(values):
        return np.array_equal(seen.codes(("own",), values, seen.numbers(values), encode), encode(values))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, blocks(np.random.default_rng(2), 400)))


def test_another_process_begins_with_nothing():
    seen = SeenValues()
    seen.numbers(["a", "b"])
    assert pickle.loads(pickle.dumps(seen)).numbers(["b"]).tolist() == [0]
