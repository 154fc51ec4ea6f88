"""Small random problems that many tests share."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from kcrf_core.kernels import Inputs
from kcrf_core.objective import Engine, Objective, Partition


def random_inputs(rng, N, categorical=3, real=2, bag=0, values=4):
    """Inputs of every kind; some codes are missing."""
    codes = rng.integers(-1, values, (N, categorical)).astype(np.int32)
    sparse = None
    if bag:
        dense = rng.normal(size=(N, bag)) * (rng.random((N, bag)) < 0.4)
        sparse = scipy.sparse.csr_array(dense)
    return Inputs(codes, np.full(categorical, values, dtype=np.int64), rng.normal(size=(N, real)), sparse, np.zeros(N))


def random_offsets(rng, sequences, longest=5):
    lengths = rng.integers(1, longest + 1, sequences)
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def on_threads(problem, terms, workers, dtype=np.float64, forbidden=None):
    """P with threads of this process."""
    return Objective.on(Engine.of(Partition(problem, terms, workers, dtype, forbidden)), terms)
