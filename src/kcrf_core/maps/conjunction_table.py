"""Polynomial kernels on binary features, exactly, by conjunctions.

For binary features x_i^2 = x_i, so (gamma <x, x'> + coef0)^d is an inner product over conjunctions of at most d
features, where one of j distinct features has the weight w_j,

    w_j^2 = sum_{k=j..d} C(d, k) gamma^k coef0^(d-k) j! S(k, j)        S: Stirling numbers of the second kind

Conjunctions that are in the same training rows are collinear, above all those seen once: they are merged into one
column with n_G^2 = sum w_j^2, Phi[x, G] = sum of w_j^2 / n_G over those of G that are in x. The optimum stays the same,
and on text two columns of three go away.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import comb, factorial
from typing import TYPE_CHECKING

import numpy as np

from .._lazy import cached_property
from ..kernels import Inputs, PolynomialKernel
from ..system import Workers, offsets_of, ranges
from . import _conjunctions
from .columns import ColumnOrder, one_hot, sparse_block
from .compressed import NOTHING as NO_VALUES, CompressedRows
from .sparse_weights import SparseWeights, Weights

if TYPE_CHECKING:
    import scipy.sparse

LARGEST_DEGREE = 3
_FIRST_SLOTS = 1 << 16
ENTRIES_PER_TASK = 1 << 18
NO_PAIR = -1  # in the place of the number of a key, in slots of hash tables
FEWEST_TO_SHARE = 1 << 20  # conjunctions of rows: fewer are numbered sooner than threads' numbers are brought together


def empty_slots(keys: int, least: int = 2) -> np.ndarray:
    """Return slots of a hash table with open addressing for that many keys, at most half of them full."""
    return np.full(max(least, 1 << (2 * keys).bit_length()), NO_PAIR, dtype=np.int32)


def squared_weights(kernel: PolynomialKernel) -> np.ndarray:
    """Return w_j^2 of conjunctions of j = 0..degree features, [degree+1]."""
    d = kernel.degree
    terms = [comb(d, k) * kernel.gamma**k * kernel.coef0 ** (d - k) for k in range(d + 1)]
    return kernel.scale * np.array(
        [sum(terms[k] * factorial(j) * _stirling(k, j) for k in range(j, d + 1)) for j in range(d + 1)]
    )


def _stirling(k: int, j: int) -> int:
    """Count the ways to put k things into j sets, none of them empty."""
    return sum((-1) ** (j - i) * comb(j, i) * i**k for i in range(j + 1)) // factorial(j)


def why_not(inputs: Inputs, degree: int) -> str | None:
    """Return the reason why the polynomial kernel has no explicit map on these inputs; None if it has one."""
    if degree > LARGEST_DEGREE:
        return f"conjunctions are enumerated up to degree {LARGEST_DEGREE}"
    if inputs.real.shape[1]:
        return "there are real columns"
    if inputs.bag is not None and not (inputs.bag.data == 1).all():
        return "there are attributes with weights other than 1"
    if (feature_base(inputs) ** degree).bit_length() > 63:
        return "there are too many features to number their conjunctions"
    return None


def feature_base(inputs: Inputs) -> int:
    """Return a base that has every feature of such inputs, plus one, as a digit."""
    return ColumnOrder.of(inputs).first_real + 1


def _features(inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
    """Return indptr and ascending indices of the features of each row."""
    if inputs.bag is None:
        indptr, indices = one_hot(inputs)
    else:
        rows = sparse_block(inputs)
        rows.sort_indices()
        indptr, indices = rows.indptr, rows.indices
    return indptr.astype(np.int64, copy=False), indices.astype(np.int32, copy=False)


def conjunction_count(inputs: Inputs, degree: int) -> int:
    """Count the conjunctions of rows, each once for every row."""
    return int(_row_ends(_features(inputs)[0], degree)[-1])


def _row_ends(indptr: np.ndarray, degree: int) -> np.ndarray:
    """Return the ends of the conjunctions of each row, [n+1], for rows of features."""
    n = np.diff(indptr)
    by_size = [np.ones_like(n), n, n * (n - 1) // 2, n * (n - 1) * (n - 2) // 6]
    return offsets_of(sum(by_size[: degree + 1]))


@dataclass(frozen=True)
class Conjunctions:
    """Conjunctions seen in training, and the column of each."""

    kernel: PolynomialKernel
    base: int
    keys: np.ndarray  # [Q] int64
    columns: np.ndarray  # [Q] int32
    norms: np.ndarray  # [D] n_G of each column

    @property
    def size(self) -> int:
        return len(self.norms)

    @cached_property
    def _slots(self) -> np.ndarray:
        slots = empty_slots(len(self.keys), _FIRST_SLOTS)
        if len(self.keys) and _conjunctions.fill_slots(self.keys, len(self.keys), slots) >= 0:
            raise ValueError("a conjunction is there twice")
        return slots

    def check(self) -> None:
        """Raise a ValueError if a table from a file cannot be one."""
        if len(self.columns) != len(self.keys):
            raise ValueError("columns do not fit the conjunctions")
        if not len(self.keys):
            return
        if self.keys.min() < 0 or int(self.keys.max()) >= self.base**self.kernel.degree:
            raise ValueError("conjunctions out of range")
        if self.columns.min() < 0 or self.columns.max() >= self.size:
            raise ValueError("columns out of range")
        _ = self._slots

    def squares_of(self, numbers: np.ndarray | slice) -> np.ndarray:
        """Return squared weights of the numbered conjunctions, [E]."""
        return squared_weights(self.kernel)[_sizes(self.keys[numbers], self.base)]

    def rows(self, inputs: Inputs) -> scipy.sparse.csr_array:
        """Return Phi [n, D] of any inputs; conjunctions that training did not have are left out."""
        import scipy.sparse

        ends, numbers = self.known(inputs)
        columns = self.columns[numbers]
        values = self.squares_of(numbers) / self.norms[columns]
        phi = scipy.sparse.csr_array((values, columns, ends), shape=(len(ends) - 1, self.size))
        phi.sum_duplicates()
        return phi

    def training_rows(self, inputs: Inputs) -> CompressedRows:
        """Return Phi [n, D] of training rows: an entry is the factor of its column.

        All of a column is in such a row or nothing of it, so that the first one stands for it.
        """
        ends, numbers = self.known(inputs)
        first = np.zeros(len(self.keys), dtype=bool)
        first[np.unique(self.columns, return_index=True)[1]] = True
        there = first[numbers]
        indptr = offsets_of(there)[ends]
        return self.as_rows(indptr, self.columns[numbers[there]])

    def as_rows(self, indptr: np.ndarray, indices: np.ndarray) -> CompressedRows:
        """Return rows [n, D] whose entries are the factors of their columns."""
        scale = NO_VALUES if (self.norms == 1).all() else self.norms
        return CompressedRows(self.size, indptr, indices, NO_VALUES, scale)

    def known(self, inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
        """Return ends of rows [n+1], and numbers [E] of the conjunctions of each row that training had."""
        indptr, indices = _features(inputs)
        ends = _row_ends(indptr, self.kernel.degree)
        numbers = np.empty(ends[-1], dtype=np.int32)
        degree, base = self.kernel.degree, self.base
        _conjunctions.number_rows(indptr, indices, degree, base, 0, self.keys, self._slots, -1, ends, numbers)
        known = numbers >= 0
        return offsets_of(known)[ends], numbers[known]

    def features(self, number: int) -> list[int]:
        """Return the features that a conjunction is made of, in ascending order."""
        key, out = int(self.keys[number]), []
        while key:
            key, digit = divmod(key, self.base)
            out.append(digit - 1)
        return out[::-1]

    def add_scores(self, inputs: Inputs, weights: Weights, out: np.ndarray) -> None:
        """Add Phi W to out for weights W [D, C] divided by the columns' norms."""
        if isinstance(weights, SparseWeights):
            row_ends, numbers = self.known(inputs)
            weights.add_rows(row_ends, self.columns[numbers], self.squares_of(numbers), 0, out)
            return
        indptr, indices = _features(inputs)
        degree = self.kernel.degree
        squares = squared_weights(self.kernel).astype(out.dtype)
        _conjunctions.add_scores(
            indptr, indices, degree, self.base, self.keys, self._slots, self.columns, squares, weights, out
        )


def _sizes(keys: np.ndarray, base: int) -> np.ndarray:
    """Return the number of features of conjunctions [Q], the digits of their keys."""
    return np.searchsorted([1, base, base**2], keys, side="right")


class ConjunctionCounter:
    """The conjunctions of rows that come in parts, numbered in the order in which they first come.

    They are the same, and in the same order, for any number of threads and of parts.
    """

    def __init__(self, kernel: PolynomialKernel, base: int, workers: Workers):
        self._kernel, self._base, self._workers = kernel, base, workers
        self._rows = self.count = 0
        self._slots = np.empty(0, dtype=np.int32)
        self._keys = np.empty(0, dtype=np.int64)
        self._hashes, self._counts = np.zeros((0, 2), dtype=np.uint64), np.zeros(0, dtype=np.int64)
        self._last = np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32)

    def add(self, inputs: Inputs) -> None:
        """Add rows. Threads number the conjunctions of some rows each, then all are numbered again in order."""
        indptr, indices = _features(inputs)
        degree, base, workers = self._kernel.degree, self._base, self._workers
        ends = _row_ends(indptr, degree)
        numbers = np.empty(ends[-1], dtype=np.int32)
        tasks = 1 if len(numbers) < FEWEST_TO_SHARE else workers.threads
        cuts = np.unique(np.searchsorted(ends, np.linspace(0, ends[-1], tasks + 1)))
        parts = [slice(first, last + 1) for first, last in pairwise(cuts.tolist())]
        found = workers.map(lambda rows: _numbered(indptr[rows], indices, degree, base, ends[rows], numbers), parts)
        tables = list(map(self._table, list(found)))

        def renumber(numbered: tuple[slice, np.ndarray | None]) -> None:
            rows, table = numbered
            if table is not None:
                own = numbers[ends[rows.start] : ends[rows.stop - 1]]
                np.take(table, own, out=own, mode="clip")  # any other mode makes a copy first

        workers.run(renumber, zip(parts, tables, strict=True))
        self._make_room(self.count)
        _conjunctions.add_supports(ends, numbers, self._hashes, self._counts, self._rows)
        self._rows += len(indptr) - 1
        self._last = ends, numbers

    def _table(self, keys: np.ndarray) -> np.ndarray | None:
        """Put keys into the table; return their numbers there, None where they are the first."""
        if not self.count:
            self._keys, self.count = keys, len(keys)
            return None
        self._make_room(self.count + len(keys))
        if len(self._slots) < 2 * len(self._keys):
            self._slots = empty_slots(len(self._keys))
            _conjunctions.fill_slots(self._keys, self.count, self._slots)
        table = np.empty(len(keys), dtype=np.int32)
        self.count = _conjunctions.number_keys(keys, self._keys, self._slots, self.count, table)
        return table

    def _make_room(self, needed: int) -> None:
        for name in ("_keys", "_hashes", "_counts"):
            own = getattr(self, name)
            if needed > len(own):
                more = np.zeros((max(needed, len(own) * 3 // 2), *own.shape[1:]), dtype=own.dtype)
                more[: len(own)] = own
                setattr(self, name, more)

    def conjunctions(
        self, cut_off: int, by_degree: bool = False, merge: bool = True, rows: bool = False
    ) -> tuple[Conjunctions, CompressedRows | None]:
        """Return conjunctions in at least `cut_off` rows and, for `rows`, Phi of the rows that were added last.

        With `by_degree`, those of different numbers of features, and so of different weights, have columns of their
        own. The counts are released.
        """
        self._slots = np.empty(0, dtype=np.int32)
        keys, hashes, counts = self._keys[: self.count], self._hashes[: self.count], self._counts[: self.count]
        self._keys, self._hashes, self._counts = keys[:0].copy(), hashes[:0].copy(), counts[:0].copy()
        sizes = _sizes(keys, self._base)
        squares = squared_weights(self._kernel)[sizes]
        # Without coef0 the smaller conjunctions weigh nothing.
        kept = np.flatnonzero((counts >= cut_off) & (squares > 0)).astype(np.int32)  # [K]
        first = np.arange(len(kept), dtype=np.int32)  # the one that stands for all with the same rows
        if merge:
            alike = hashes[kept]
            if by_degree:
                alike[:, 0] += sizes[kept].astype(np.uint64) << np.uint64(62)
            _conjunctions.first_alike(alike, empty_slots(len(kept)), first)
        leaders = np.flatnonzero(first == np.arange(len(kept)))  # [D]
        column_of = np.full(len(keys), -1, dtype=np.int32)  # of those that stand for a column
        column_of[kept[leaders]] = np.arange(len(leaders), dtype=np.int32)
        columns = column_of[kept[first]]  # [K]
        norms = np.sqrt(np.bincount(columns, squares[kept], minlength=len(leaders)))
        found = Conjunctions(self._kernel, self._base, keys[kept], columns, norms)
        if not rows:
            return found, None
        ends, numbers = self._last
        return found, found.as_rows(*_entries(numbers, ends, column_of, self._workers))


def _entries(
    numbers: np.ndarray, ends: np.ndarray, column_of: np.ndarray, workers: Workers
) -> tuple[np.ndarray, np.ndarray]:
    """Return ends of rows [N+1], and columns [nnz] of conjunctions that have one."""
    parts = ranges(len(numbers), ENTRIES_PER_TASK)
    found = list(workers.map(lambda part: np.count_nonzero(column_of[numbers[part]] >= 0), parts))
    starts = offsets_of(np.array(found))
    row_ends = np.full(len(ends), starts[-1])
    entries = np.empty(starts[-1], dtype=np.int32)

    def task(numbered: tuple[int, slice]) -> None:
        number, part = numbered
        columns = column_of[numbers[part]]
        present = columns >= 0
        entries[starts[number] : starts[number + 1]] = columns[present]
        rows = slice(*np.searchsorted(ends, [part.start, part.stop]))  # those that end here
        before = offsets_of(present)
        row_ends[rows] = starts[number] + before[ends[rows] - part.start]

    workers.run(task, enumerate(parts))
    return row_ends, entries


def _numbered(
    indptr: np.ndarray, indices: np.ndarray, degree: int, base: int, ends: np.ndarray, numbers: np.ndarray
) -> np.ndarray:
    """Return keys of the distinct conjunctions of some rows [Q]; their numbers go where the rows end."""
    slots = empty_slots(0, _FIRST_SLOTS)
    keys = np.empty(len(slots) // 2, dtype=np.int64)
    row = count = 0
    longest = int(np.diff(ends).max(initial=0))
    while True:
        row, count = _conjunctions.number_rows(indptr, indices, degree, base, row, keys, slots, count, ends, numbers)
        if row == len(indptr) - 1:
            return keys[:count].copy()
        slots = empty_slots(2 * len(keys) + longest)
        keys = np.concatenate([keys[:count], np.empty(len(slots) // 2 - count, dtype=np.int64)])
        _conjunctions.fill_slots(keys, count, slots)


def shared_conjunctions(
    source: Conjunctions, target: Conjunctions, columns: np.ndarray
) -> tuple[scipy.sparse.csr_array, int]:
    """Return the scores of W / n of the target's columns in those of the source, [D, D'], and the number in both.

    `columns` [F] are the source's features there, or -1. A conjunction of j features in a column G there scores
    w_j^2 W_G / n_G, and what the members of a column here score is its share of Phi W times its norm.
    """
    import scipy.sparse

    digits, rest = np.empty((len(source.keys), LARGEST_DEGREE), dtype=np.int64), source.keys  # features plus one
    for place in reversed(range(LARGEST_DEGREE)):
        rest, digits[:, place] = np.divmod(rest, source.base)
    features = np.concatenate([[0], np.where(columns >= 0, columns + 1, -1)])[digits]  # [Q, 3], 0 for none
    sizes = (features > 0).sum(axis=1)
    known = (features >= 0).all(axis=1) & (sizes <= target.kernel.degree)
    features.sort(axis=1)
    wanted = np.zeros(len(features), dtype=np.int64)
    for digit in features.T:
        wanted = wanted * target.base + digit
    order = np.argsort(target.keys)
    found = np.minimum(np.searchsorted(target.keys, wanted, sorter=order), max(len(order) - 1, 0))
    found = order[found] if len(order) else found
    known &= target.keys[found] == wanted if len(order) else False
    squares = squared_weights(target.kernel)[np.minimum(sizes, target.kernel.degree)]
    rows = source.columns[known]
    shares = squares[known] / source.norms[rows]
    shape = (source.size, target.size)
    return scipy.sparse.csr_array((shares, (rows, target.columns[found[known]])), shape=shape), int(known.sum())
