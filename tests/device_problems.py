"""Small problems with every kind of term, for engines to agree on."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse

from kcrf_core.chains import EDGE, EDGE2, EDGE_X, NODE, TRANSITIONS, Problem
from kcrf_core.kernels import (
    CosineKernel,
    Group,
    ImageKernel,
    Inputs,
    LinearKernel,
    PolynomialKernel,
    ProductKernel,
    RBFKernel,
    SumKernel,
)
from kcrf_core.kernels.composite import Part
from kcrf_core.maps import ExplicitMap, KeptPlaces, MergedColumns, ReducedMap, RepeatedMap, sparse_block
from kcrf_core.objective import ObjectiveTerm

SQUARES = PolynomialKernel(2, 1.0, 1.0, 0.05)
CODES, REAL = Group((0, 1), (), False), Group((), (0, 1), False)
KERNELS = {
    "linear-pivots": LinearKernel(),
    "poly": SQUARES,
    "rbf": RBFKernel(0.2),
    "sum": SumKernel((Part(CODES, SQUARES), Part(REAL, RBFKernel(0.5))), (0.3, 0.7)),
    "product": ProductKernel((Part(CODES, SQUARES), Part(REAL, RBFKernel(0.5))), 0.8),
    "cosine": CosineKernel(PolynomialKernel(3, 0.5, 1.0, 1.0)),
}
KINDS = [
    *("linear", "two-labels", "merged", "kept", "bag", "repeated", "edge-x", "edge2", "edge2-x", "no-edges"),
    *KERNELS,
    *("rbf-bag", "image"),
]
PICTURE = ImageKernel(0.3, (3, 4), 1, 1.0)


def problem_of(rng, Y, sequences=80, missing=False, cut=False, allowed=None):
    lengths = rng.integers(1, 9, sequences)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    labels = rng.integers(0, Y, int(offsets[-1])).astype(np.int32)
    if allowed is not None:  # labels that may follow each other, and none at the end that may not
        for first, last in pairwise(offsets):
            for t in range(first, last):
                ways = np.flatnonzero(allowed[labels[t - 1]]) if t > first else np.arange(Y)
                labels[t] = rng.choice(ways[ways < Y - 1])
    if missing:
        labels[rng.random(len(labels)) < 0.2] = -2
    cuts = rng.random((sequences, 2)) < 0.3 if cut else None
    return Problem(labels, offsets, rng.random(sequences) + 0.5, Y, cuts)


def inputs_of(rng, N, bag=False):
    codes = np.minimum(rng.geometric(0.1, (N, 2)) - 2, 39).astype(np.int32)  # some have no value
    attributes = None
    if bag:
        attributes = scipy.sparse.random_array((N, 30), density=0.1, rng=rng, format="csr")
        attributes.sort_indices()
    return Inputs(codes, np.array([40, 40]), rng.normal(size=(N, 2)).round(2), attributes, np.zeros(N))


def pivots_map(inputs, kernel, workers, dtype, M=25):
    """Pivots that are no mixtures of others: the first of different inputs, as far as the kernel tells them apart."""
    from kcrf_core.kernels import gram

    rows = inputs.distinct()[0]
    K, kept = gram(kernel, inputs.take(rows), inputs.take(rows)), []
    for i in range(len(rows)):
        trial = [*kept, i]
        if len(kept) < M and np.linalg.eigvalsh(K[np.ix_(trial, trial)])[0] > 1e-2 * K[i, i]:
            kept = trial
    pivots = inputs.take(rows[kept])
    return ReducedMap.of(inputs, kernel, pivots, np.linspace(1, 0, len(kept) + 1), workers, dtype)


def terms_of(kind, rng, problem, workers, dtype):
    N, Y = problem.positions, problem.label_count
    inputs, edge = inputs_of(rng, N, "bag" in kind), ObjectiveTerm(EDGE, 1.0)
    columns = 0.3 * sparse_block(inputs), 0.3 * inputs.real
    if kind == "merged":
        merged = MergedColumns((np.arange(80) // 2).astype(np.int32), 40)
        return [ObjectiveTerm(NODE, 2.0, merged.map_of(inputs, dtype)), ObjectiveTerm(TRANSITIONS, 1.0)]
    if kind == "kept":
        own = MergedColumns((np.arange(80) // 2).astype(np.int32), 40).map_of(inputs, dtype)
        kept = np.sort(rng.choice(own.size * Y, own.size * Y // 3, replace=False)).astype(np.int64)
        return [ObjectiveTerm(NODE, 2.0, own, KeptPlaces(kept, own.size, NODE.columns(Y))), edge]
    if kind == "repeated":
        few = inputs.take(np.arange(N // 3))
        group = np.concatenate([np.arange(N // 3), rng.integers(0, N // 3, N - N // 3)])
        return [ObjectiveTerm(NODE, 2.0, RepeatedMap(pivots_map(few, SQUARES, workers, dtype), group, workers)), edge]
    if kind == "edge-x":
        return [
            ObjectiveTerm(NODE, 2.0, pivots_map(inputs, SQUARES, workers, dtype)),
            ObjectiveTerm(EDGE_X, 0.5, ExplicitMap(*columns, dtype)),
            edge,
        ]
    if kind == "image":
        pictures = np.maximum(rng.normal(size=(N, 12)), 0.0)
        inputs = Inputs(np.zeros((N, 0), np.int32), np.zeros(0, np.int64), pictures, None, np.zeros(N))
        return [ObjectiveTerm(NODE, 2.0, pivots_map(inputs, PICTURE, workers, dtype)), edge]
    if kind in ("edge2", "edge2-x"):
        own = [ObjectiveTerm(NODE, 2.0, ExplicitMap.of(inputs, dtype)), edge, ObjectiveTerm(EDGE2, 0.3)]
        return [*own, ObjectiveTerm(EDGE_X, 0.5, ExplicitMap(*columns, dtype))] if kind == "edge2-x" else own
    if kind in KERNELS or kind == "rbf-bag":
        kernel = KERNELS["rbf" if kind == "rbf-bag" else kind]
        return [ObjectiveTerm(NODE, 2.0, pivots_map(inputs, kernel, workers, dtype)), edge]
    node = ObjectiveTerm(NODE, 2.0, ExplicitMap.of(inputs, dtype))
    return [node] if kind == "no-edges" else [node, edge]
