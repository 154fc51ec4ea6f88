"""The columns of an explicit map: their order, rows of them, and products of rows with weights.

Every code of every categorical field has a column, field after field; then come attributes, then real columns.
`ColumnOrder` alone knows this order: maps, stored weights, names of features and exported files all ask it.

scipy.sparse takes a good part of a second to import, longer than it takes to tag a page. Tagging therefore imports it
only where data has attributes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..kernels import Inputs
from ..system import offsets_of
from .sparse_weights import Weights, multiplier

if TYPE_CHECKING:
    import scipy.sparse


@dataclass(frozen=True, eq=False)
class ColumnOrder:
    """Where the columns of inputs of some shape stand in an explicit map."""

    sizes: np.ndarray  # [C] int64, codes of each field
    attributes: int  # A
    real: int  # R

    @classmethod
    def of(cls, inputs: Inputs) -> ColumnOrder:
        return cls(inputs.sizes, 0 if inputs.bag is None else inputs.bag.shape[1], inputs.real.shape[1])

    @cached_property
    def fields(self) -> np.ndarray:
        """The first column of each field, and behind them the end of the last one, [C+1] int64."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    @property
    def first_attribute(self) -> int:
        return int(self.fields[-1])

    @property
    def first_real(self) -> int:
        return self.first_attribute + self.attributes

    @property
    def size(self) -> int:
        """D, all columns."""
        return self.first_real + self.real

    def side_by_side(self, codes: np.ndarray, attributes: np.ndarray, real: np.ndarray) -> np.ndarray:
        """[D] values of columns out of those of codes, of attributes and of real columns."""
        return np.concatenate([codes, attributes, real])


def one_hot(inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of rows [n+1] int64 and the columns of their ones, int32, of categorical columns side by side."""
    known, first = inputs.codes >= 0, ColumnOrder.of(inputs).fields[:-1].astype(np.int32)
    return offsets_of(known.sum(axis=1)), (inputs.codes + first)[known]


def sparse_block(inputs: Inputs) -> scipy.sparse.csr_array:
    """Categorical columns as one-hot rows, then attributes: [N, sum of sizes + A]."""
    import scipy.sparse

    indptr, indices = one_hot(inputs)
    shape = (len(inputs), ColumnOrder.of(inputs).first_attribute)
    ones = scipy.sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=shape)
    if inputs.bag is None:
        return ones
    return scipy.sparse.csr_array(scipy.sparse.hstack([ones, inputs.bag], format="csr"))


def scaled_rows(matrix: scipy.sparse.csr_array, scales: np.ndarray) -> scipy.sparse.csr_array:
    """Row t times scales[t]."""
    import scipy.sparse

    return scipy.sparse.csr_array(scipy.sparse.diags_array(scales) @ matrix)


def present_columns(inputs: Inputs, t: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns of row t, all real ones among them, and its values there."""
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
    """The largest value by size that any row may have in each column, [D]: 1 for codes."""
    order = ColumnOrder.of(inputs)
    attributes = np.zeros(0) if inputs.bag is None else abs(inputs.bag).max(axis=0).toarray().ravel()
    real = np.abs(inputs.real).max(axis=0, initial=0.0)
    return order.side_by_side(np.ones(order.first_attribute), attributes, real)


def add_products(inputs: Inputs, weights: Weights, out: np.ndarray) -> None:
    """out [n, C] += X W for the rows X [n, D] of inputs and weights W [D, C]."""
    order, factor = ColumnOrder.of(inputs), multiplier(weights)
    factor.add_codes(np.ascontiguousarray(inputs.codes), order.fields[:-1], out)
    if inputs.bag is not None:
        factor.add_rows(inputs.bag.indptr, inputs.bag.indices, inputs.bag.data, order.first_attribute, out)
    if order.real:
        factor.add_dense(inputs.real, order.first_real, out)
