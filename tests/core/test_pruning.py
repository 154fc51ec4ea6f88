"""What pruning promises: no score of a training position moves by more than it may, and P is told as it is then."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_observed_features import attributes, words

from kcrf_core.chains import chain
from kcrf_core.config import parse_config, with_options
from kcrf_core.encoding import fit_encoding
from kcrf_core.features import KernelTerm
from kcrf_core.files import container_size, write_container
from kcrf_core.maps import SparseWeights, as_dense, matrix_of
from kcrf_core.model import Model
from kcrf_core.system import Workers
from kcrf_core.training import train

NODE, EDGE = {"type": "node"}, {"type": "edge"}
KINDS = {
    "linear": (words, {}),
    "observed": (words, {"observed_features": True}),
    "attributes": (attributes, {}),
    "cosine": (words, {"cosine": True}),
    "conjunctions": (words, {"terms": [{"features": ["c0"], "kernel": {"type": "poly", "degree": 2}}, EDGE]}),
    "pivots": (words, {"kernel": "rbf", "size": 30, "sigma2": 0.05}),
    "edge-x": (words, {"terms": [NODE, {"type": "edge-x", "features": ["c0"]}, EDGE]}),
    "several": (
        words,
        {"terms": [{"name": "a"}, {"name": "b", "kernel": "rbf", "map": {"size": 9}}, {"type": "edge2"}]},
    ),
    "two labels": (lambda: words(labels="ab"), {"kernel": "poly", "size": 20}),
}


def fit(kind, prune=None, dev=None, **options):
    make, more = KINDS[kind]
    config = parse_config(with_options({}, {"sigma2": 2.0, "precision": "double", **more, **options}))
    encoding, dataset = fit_encoding(config, make())
    with Workers(1) as workers:
        held = None if dev is None else encoding.encode(dev)
        return *train(encoding, dataset, config, workers=workers, prune=prune, dev=held), dataset


def nonzero(model):
    total = 0
    for term in model.terms:
        weights = term.alpha if hasattr(term, "alpha") else as_dense(matrix_of(term.weights))
        total += np.count_nonzero(weights) + len(getattr(term, "bias", ()))
    return total


def scores(model, dataset):
    node, edges = model.potentials(dataset)
    return [node, np.broadcast_to(edges.transitions, (len(node), *edges.transitions.shape[-2:]))]


@pytest.mark.each_choice
@pytest.mark.parametrize("eps", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("kind", KINDS)
def test_no_score_changes_by_more(kind, eps):
    whole, _, dataset = fit(kind)
    model, report, _ = fit(kind, eps)
    change = sum(np.abs(a - b).max() for a, b in zip(scores(whole, dataset), scores(model, dataset), strict=True))
    assert change <= eps * (1 + 1e-9) + 1e-12
    found = report.pruned
    assert found.weights == nonzero(whole) >= found.weights_left == nonzero(model)
    if eps == 0.3:  # of this much there is something to take, and not everything
        assert found.weights_left < 0.97 * found.weights and change > 0.1 * eps


@pytest.mark.parametrize("kind", KINDS)
def test_p_is_that_of_what_is_left(kind):
    """Worked out from the model that is written alone: the prior of its function, and its probabilities."""
    model, report, dataset = fit(kind, 0.3, tolerance=1e-6)
    result = report.result
    before = fit(kind, tolerance=1e-6)[1].result
    assert result.value > before.value >= result.lower
    assert result.gap > 1e-6 and result.reason == "pruned"
    if kind not in ("linear", "observed"):
        return
    weights = np.concatenate([term.weights.values if isinstance(term.weights, SparseWeights) else term.weights.ravel()
                              for term in model.terms])  # fmt: skip
    edges = model.edges
    prior = sum(np.sum(np.square(part)) for part in (weights, edges.transitions, edges.start, edges.end)) / (2 * 2.0)
    node, edges = model.potentials(dataset)
    gold = chain.path_scores(node, edges, dataset.offsets, dataset.labels)
    likelihood = float(np.sum(gold - chain.marginals(node, edges, dataset.offsets).log_z))
    np.testing.assert_allclose(result.value, prior - likelihood, rtol=1e-9)


def test_what_is_still_certified_counts_as_that():
    _, report, _ = fit("linear", 1e-6, tolerance=1e-2)
    assert report.result.reason == "certified"


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_is_smaller_by_what_is_told(kind, tmp_path):
    whole, _, _ = fit(kind)
    model, report, dataset = fit(kind, 0.3)
    for each in (whole, model):
        replace(each, info={}).save(tmp_path / "m.npz")
        assert replace(each, info={}).file_size == (tmp_path / "m.npz").stat().st_size
    assert report.pruned.bytes_saved == replace(whole, info={}).file_size - (tmp_path / "m.npz").stat().st_size
    again = Model.load(tmp_path / "m.npz")
    for a, b in zip(scores(again, dataset), scores(model, dataset), strict=True):
        np.testing.assert_array_equal(a, b)


def test_pivots_go_whole():
    whole, _, _ = fit("pivots")
    model, _, _ = fit("pivots", 0.5)
    (before,), (after,) = whole.terms, model.terms
    assert isinstance(after, KernelTerm) and len(after.lines) < len(before.lines)
    assert set(after.lines) < set(before.lines) and after.alpha.any(axis=1).all()


def test_conjunctions_without_weights_go():
    whole, _, _ = fit("conjunctions")
    model, _, _ = fit("conjunctions", 2.0)
    (before,), (after,) = whole.terms, model.terms
    assert len(after.conjunctions.keys) < len(before.conjunctions.keys)
    assert after.conjunctions.size < before.conjunctions.size
    after.conjunctions.check()


def test_everything_may_go():
    for kind in ("linear", "conjunctions", "pivots"):
        model, report, dataset = fit(kind, 1e9)
        assert report.pruned.weights_left <= 4  # one pivot stays
        assert model.marginals(dataset).shape == (dataset.positions, 4)


def test_sizes_of_containers(tmp_path):
    arrays = {"a": np.arange(1000.0), "b": np.zeros((3, 0)), "c": np.array(["x"])}
    write_container(tmp_path / "c.npz", "model", {"info": "ä" * 100}, arrays)
    assert container_size("model", {"info": "ä" * 100}, arrays) == (tmp_path / "c.npz").stat().st_size
