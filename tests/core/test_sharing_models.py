"""A model is a value: it cannot be changed, goes through a pickle, and serves several threads at once."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from test_training import fit, toy_corpus

from kcrf_core.model import Model

SETTINGS = {
    "linear": {},
    "conjunctions": {"kernel": "poly", "degree": 2, "map": "explicit"},
    "pivots": {"kernel": "rbf", "size": 20},
    "single precision": {"kernel": "rbf", "size": 20, "precision": "single"},
    "second order": {"order": 2},
}
WORDS = {"features": [{"column": "c0"}]}
setting = pytest.mark.parametrize("options", SETTINGS.values(), ids=SETTINGS)


def trained(rng, options):
    raw = WORDS if options.get("map") == "explicit" else {}
    model, _ = fit(toy_corpus(rng), options | {"sigma2": 1.0}, raw)
    return model, model.encoding.encode(toy_corpus(rng, 60))


@setting
def test_a_pickle_gives_the_same_labels(rng, options):
    model, data = trained(rng, options)
    before = pickle.dumps(model)
    marginals = model.marginals(data)
    for again in (pickle.loads(before), pickle.loads(pickle.dumps(model))):  # never used, and used
        np.testing.assert_array_equal(again.marginals(data), marginals)
        np.testing.assert_array_equal(again.tag(data), model.tag(data))


@setting
def test_many_threads_find_what_one_finds(rng, options):
    model, data = trained(rng, options)
    model = pickle.loads(pickle.dumps(model))  # nothing is prepared yet: that happens in all threads at once
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: (model.tag(data), model.marginals(data)), range(40)))
    for labels, marginals in found:
        np.testing.assert_array_equal(labels, found[0][0])
        np.testing.assert_array_equal(marginals, found[0][1])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).tag(data), found[0][0])


def arrays_of(model):
    for term in model.terms:
        for value in vars(term).values():
            if isinstance(value, np.ndarray):
                yield value
    yield from (model.edges.transitions, model.edges.start, model.edges.end)


@setting
def test_a_model_cannot_be_changed(rng, options, tmp_path):
    model, _ = trained(rng, options)
    model.save(tmp_path / "m.npz")
    for each in (model, Model.load(tmp_path / "m.npz"), pickle.loads(pickle.dumps(model))):
        with pytest.raises(FrozenInstanceError):
            each.edges = None
        for array in arrays_of(each):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
