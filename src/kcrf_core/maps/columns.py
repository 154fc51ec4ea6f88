"""The columns of an explicit map: their order, rows of them, and products of rows with weights.

Every code of every categorical field has a column, field after field; then come attributes, then real columns.
`ColumnOrder` alone knows this order: maps, stored weights, names of features and exported files all ask it.

scipy.sparse takes a good part of a second to import, longer than it takes to tag a page. Tagging therefore imports it
only where data has attributes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..kernels import Inputs
from ..system import offsets_of, row_products
from . import native
from .sparse_weights import SparseWeights, Weights

if TYPE_CHECKING:
    import scipy.sparse


@dataclass(frozen=True, eq=False)
class ColumnOrder:
    """Places of the columns of inputs in an explicit map."""

    fields: np.ndarray  # [C+1] int64, the first column of each field, and the end of the last one
    first_attribute: int
    first_real: int
    size: int  # D, all columns

    @classmethod
    def of(cls, inputs: Inputs) -> ColumnOrder:
        """Return the order of the columns of such inputs."""
        fields = offsets_of(inputs.sizes)
        first_real = int(fields[-1]) + (0 if inputs.bag is None else inputs.bag.shape[1])
        return cls(fields, int(fields[-1]), first_real, first_real + inputs.real.shape[1])


def one_hot(inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of rows [n+1] int64 and the columns of their ones, int32, of categorical columns side by side."""
    known, first = inputs.codes >= 0, ColumnOrder.of(inputs).fields[:-1].astype(np.int32)
    return offsets_of(known.sum(axis=1)), (inputs.codes + first)[known]


def all_ones(inputs: Inputs) -> tuple[np.ndarray, np.ndarray] | None:
    """Return `one_hot` of categorical columns and attributes; None where values are not 0 or 1."""
    if inputs.bag is None:
        return one_hot(inputs)
    values = inputs.bag.data
    if ((values != 1) & (values != 0)).any():
        return None
    rows = sparse_block(inputs)
    kept, ends, _ = zeros_apart(rows)
    return ends, rows.indices[kept].astype(np.int32)  # copies


def zero_entries(inputs: Inputs) -> tuple[np.ndarray, np.ndarray] | None:
    """Return ends of rows [n+1] int64 and columns int32 of attributes of value zero; None: none is."""
    return None if inputs.bag is None else zeros_apart(sparse_block(inputs))[2]


def zeros_apart(
    matrix: scipy.sparse.csr_array,
) -> tuple[np.ndarray | slice, np.ndarray, tuple[np.ndarray, np.ndarray] | None]:
    """Return which stored entries are not zero, and the ends of their rows [n+1] int64.

    Behind them stand the ends and columns of entries that are zero, or None where there are none.
    """
    zero = np.flatnonzero(matrix.data == 0)
    if not len(zero):
        return slice(None), matrix.indptr.astype(np.int64), None
    before = np.searchsorted(zero, matrix.indptr).astype(np.int64)
    return matrix.data != 0, matrix.indptr - before, (before, matrix.indices[zero].astype(np.int32))


def sparse_block(inputs: Inputs) -> scipy.sparse.csr_array:
    """Return categorical columns as one-hot rows, then attributes: [N, sum of sizes + A].

    Where there are attributes alone, they are those of the inputs and no copy.
    """
    import scipy.sparse

    if inputs.bag is not None and not inputs.codes.shape[1]:
        return inputs.bag
    indptr, indices = one_hot(inputs)
    shape = (len(inputs), ColumnOrder.of(inputs).first_attribute)
    ones = scipy.sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=shape)
    if inputs.bag is None:
        return ones
    return scipy.sparse.csr_array(scipy.sparse.hstack([ones, inputs.bag], format="csr"))


def scaled_rows(matrix: scipy.sparse.csr_array, scales: np.ndarray) -> scipy.sparse.csr_array:
    """Return a matrix with row t times scales[t]."""
    import scipy.sparse

    return scipy.sparse.csr_array(scipy.sparse.diags_array(scales) @ matrix)


def present_columns(inputs: Inputs, t: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns of row t, all real ones among them, and its values there."""
    order, codes = ColumnOrder.of(inputs), inputs.codes[t]
    known = codes >= 0
    columns, values = [order.fields[:-1][known] + codes[known]], [np.ones(np.count_nonzero(known))]
    if inputs.bag is not None:
        entries = slice(inputs.bag.indptr[t], inputs.bag.indptr[t + 1])
        columns.append(order.first_attribute + inputs.bag.indices[entries])
        values.append(inputs.bag.data[entries])
    columns.append(np.arange(order.first_real, order.size))
    return np.concatenate(columns), np.concatenate([*values, inputs.real[t]])


def largest_values(inputs: Inputs) -> np.ndarray:
    """Return the largest absolute value that any row may have in each column, [D]: 1 for codes."""
    codes = np.ones(ColumnOrder.of(inputs).first_attribute)
    attributes = np.zeros(0) if inputs.bag is None else abs(inputs.bag).max(axis=0).toarray().ravel()
    real = np.abs(inputs.real).max(axis=0, initial=0.0)
    return np.concatenate([codes, attributes, real])


def add_products(inputs: Inputs, weights: Weights, out: np.ndarray) -> None:
    """Add X W to out [n, C] for the rows X [n, D] of inputs and weights W [D, C]."""
    order, bag, real = ColumnOrder.of(inputs), inputs.bag, inputs.real
    blocks = [(0, *one_hot(inputs), np.empty(0, out.dtype))]  # the first row of W, and compressed rows
    if bag is not None:
        entries = bag.indptr.astype(np.int64), bag.indices.astype(np.int32, copy=False), np.ascontiguousarray(bag.data)
        blocks.append((order.first_attribute, *entries))
    for first, indptr, indices, values in blocks:
        if isinstance(weights, SparseWeights):
            weights.add_rows(indptr, indices, values, first, out)
        else:
            products = native.sparse(indptr, indices, values, weights[first:].ravel(), weights.shape[1])
            native.all_scores(native.ALONE, products, len(out), out, False)
    if isinstance(weights, SparseWeights):
        n, R = real.shape
        columns = np.tile(np.arange(R, dtype=np.int32), n)
        weights.add_rows(np.arange(n + 1) * R, columns, real.ravel(), order.first_real, out)
    elif real.shape[1]:
        out += row_products(real, weights[order.first_real :])
