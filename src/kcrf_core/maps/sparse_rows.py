"""Categorical columns and attributes as sparse rows.

scipy.sparse takes a good part of a second to import, more than it takes to tag a page: what tagging needs of it is
imported where data has attributes, and not before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..kernels import Inputs

if TYPE_CHECKING:
    import scipy.sparse


def one_hot(inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
    """Where rows end [n+1], and the columns of their ones, for categorical columns side by side."""
    present = inputs.codes >= 0
    first = np.concatenate([[0], np.cumsum(inputs.sizes)]).astype(np.int64)
    return np.concatenate([[0], np.cumsum(present.sum(axis=1))]), (inputs.codes + first[:-1])[present]


def sparse_block(inputs: Inputs) -> scipy.sparse.csr_array:
    """Categorical columns as one-hot rows, then attributes: [N, sum of sizes + A]."""
    import scipy.sparse

    indptr, indices = one_hot(inputs)
    shape = (len(inputs), int(inputs.sizes.sum()))
    ones = scipy.sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=shape)
    if inputs.bag is None:
        return ones
    return scipy.sparse.csr_array(scipy.sparse.hstack([ones, inputs.bag], format="csr"))


def scaled_rows(matrix: scipy.sparse.csr_array, scales: np.ndarray) -> scipy.sparse.csr_array:
    """Row t times scales[t]."""
    import scipy.sparse

    return scipy.sparse.csr_array(scipy.sparse.diags_array(scales) @ matrix)
