"""Maps of shards: the data that they are made of, and the files that explicit maps are kept in between passes.

An explicit map of a shard is made once and written to a file of scratch space, by rows and by columns, with the columns
alone that the shard has; a pass reads it back, which takes a fraction of the time of making it. Kernel values are made
again of the shard's inputs where they do not fit memory.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, Any, cast

import numpy as np

from ..encoding import Dataset
from ..features import FittedTerm, MakeMap, TermInputs, TrainingData
from ..files import ScratchFolder
from ..kernels import Inputs, Kernel
from ..maps import (
    CompressedRows,
    ExplicitHead,
    ExplicitMap,
    ExplicitSpec,
    FeatureMap,
    KernelSpec,
    RepeatedMap,
    RepeatedSpec,
    new_token,
)
from ..model import ShardFolder, StoredShard, encoding_of
from ..objective import MapSpec
from ..objective.solvers import Observer
from ..system import Workers, sequence_rows


@dataclass(frozen=True, eq=False)
class ShardPart:
    """The sequences of a shard that are trained on: a plain value, to be loaded anywhere by its path."""

    shard: StoredShard
    folder: str
    digest: str
    sequences: np.ndarray | None = None  # those that are, by their numbers in the shard; None: all

    def dataset(self) -> Dataset:
        found = self.shard.load(encoding_of(self.folder, self.digest), check=False)
        return found if self.sequences is None else found.subset(self.sequences)

    def inputs(self, features: Sequence[str]) -> Inputs:
        """Return the inputs of some features at its positions."""
        return encoding_of(self.folder, self.digest).inputs(self.dataset(), features).seen()

    def rows(self, sequences: np.ndarray | None) -> np.ndarray | None:
        """Return the positions of some of the sequences; None for all."""
        return None if sequences is None else sequence_rows(self.dataset().offsets, sequences)


@dataclass(frozen=True, eq=False)
class ShardedData(TrainingData):
    """Shards of a folder as they are trained on; those of which nothing is left are not there."""

    parts: tuple[ShardPart, ...]
    kept: tuple[np.ndarray | None, ...]  # sequences of each part that have rows in its maps; None: all
    scratch: Scratch | None = None  # where maps are written

    @classmethod
    def of(cls, folder: ShardFolder, sequences: np.ndarray | None = None) -> ShardedData:
        """Take some sequences of a folder, by their numbers in ascending order, or all."""
        ends = np.cumsum([0, *(shard.sequences for shard in folder.shards)])
        parts = []
        for number, shard in enumerate(folder.shards):
            own = None
            if sequences is not None:
                first, last = np.searchsorted(sequences, ends[number : number + 2])
                own = sequences[first:last] - ends[number]
                if not len(own):
                    continue
                own = None if len(own) == shard.sequences else own
            there = replace(shard, path=os.path.abspath(shard.path))  # for processes in another folder
            parts.append(ShardPart(there, os.path.abspath(folder.path), folder.digest, own))
        return cls(folder.encoding, tuple(parts), (None,) * len(parts))

    def inputs_of(self, features: tuple[str, ...]) -> ShardInputs:
        return ShardInputs(features, self.encoding.inputs(self.encoding.empty_dataset(), features), self)

    def with_pivots(self, term: FittedTerm, dtype: np.dtype, observer: Observer) -> FittedTerm:
        """Return a term whose pivots were chosen on a sample, with kernel values of all parts."""
        data, basis, sizes = self.inputs_of(term.features), term.basis, []
        assert basis is not None

        def visit(inputs: Inputs) -> None:
            sizes.append((len(inputs), inputs.nbytes // max(len(inputs), 1)))

        shared = data.scanned(term.config.name, observer, visit)
        values = tuple(
            ShardKernel(part, term.features, basis.kernel, basis.pivots, dtype, *size, shared, part.rows(own))
            for part, size, own in zip(self.parts, sizes, self.kept, strict=True)
        )
        return replace(term, partitions=values)


class ShardInputs(TermInputs):
    """Inputs of a term, shard by shard."""

    in_memory = False
    where_shared = " in its shard"

    def __init__(self, features: tuple[str, ...], like: Inputs, data: ShardedData):
        super().__init__(features, like)
        self._data = data

    def __iter__(self) -> Iterator[Inputs]:
        for part in self._data.parts:
            yield part.inputs(self.features)

    def fitted_to(self) -> Inputs:
        norms, first = [], None
        for inputs in self:
            first = inputs if first is None else first
            norms.append(inputs.squared_norms())
        assert first is not None
        return _Lengths(first.codes, first.sizes, first.real, first.bag, first.unseen, np.concatenate(norms))

    def mapped(self, make: MakeMap, shared: bool, workers: Workers) -> tuple[FeatureMap, tuple[MapSpec, ...]]:
        """Make the map of each part once, and write it to scratch space."""
        scratch, written, squares, positions, whole = self._data.scratch, [], 0.0, 0, True
        assert scratch is not None
        for part, sequences in zip(self._data.parts, self._data.kept, strict=True):
            inputs = part.inputs(self.features)
            made: Any = self.map_of_partition(inputs, make, shared, workers)
            squares, positions = squares + made.mean_diagonal() * len(inputs), positions + len(inputs)
            rows = part.rows(sequences)
            if rows is None:
                rows = np.arange(len(inputs))
            else:
                whole = whole and shared and _has_all(made.group[rows], made.group)
            written.append(scratch.keep(made.spec(rows)))
        own = DistantMap(made.head, squares / max(positions, 1))
        # Training asks nothing of it but what it has: rows are asked for in parts.
        return cast("FeatureMap", own if whole else own.without_counts()), tuple(written)


def _has_all(some: np.ndarray, group: np.ndarray) -> bool:
    """True if some positions have all groups."""
    return len(np.unique(some)) == int(group.max(initial=-1)) + 1


@dataclass(frozen=True)
class _Lengths(Inputs):
    """Some inputs, with the squared lengths of many more."""

    norms: np.ndarray

    def squared_norms(self) -> np.ndarray:
        return self.norms


class DistantMap:
    """An explicit map whose rows are in shards: its head, and the mean of k(x, x)."""

    nested = beyond_single = False

    def __init__(self, head: ExplicitHead, scale: float):
        self.head, self._scale = head, scale
        self.size, self.real_size, self.dense_size = head.size, head.real_size, head.real_size

    def mean_diagonal(self) -> float:
        return self._scale

    def without_counts(self) -> DistantMap:
        """Return the map of some of the rows, scaled as a map in memory of which rows were taken away."""
        return DistantMap(replace(self.head, counts=None), self._scale)


class Scratch:
    """A folder for files that are gone with it; beside the data, where large files have room, if that can be."""

    def __init__(self, beside: str):
        place = os.path.dirname(os.path.abspath(beside))
        self._place = place if os.access(place, os.W_OK) else tempfile.gettempdir()
        self._folder = ScratchFolder(self._place)
        self.path = self._folder.path
        self._count = 0

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, *exception: object) -> None:
        self._folder.remove()

    def keep(self, spec: ExplicitSpec | RepeatedSpec) -> WrittenMap:
        """Write what a map is made of, for passes to come."""
        group = spec.group if isinstance(spec, RepeatedSpec) else None
        own = spec.distinct if isinstance(spec, RepeatedSpec) else spec
        by_columns = own.rows.by_columns()
        arrays = [own.rows.indptr, own.rows.indices, own.rows.values, own.dense]
        arrays += [by_columns.indptr, by_columns.indices, by_columns.values]
        arrays += [each for each in (own.rest, group) if each is not None]
        self._count += 1
        path = os.path.join(self.path, f"map-{self._count:06d}")
        try:
            with open(path, "wb") as stream:
                for array in arrays:
                    _write(stream, np.ascontiguousarray(array))
        except OSError as error:
            why = f"{error.strerror}, where scratch files of training go: make room, or put the shards on another disk"
            raise OSError(error.errno, why, self._place) from None
        return WrittenMap(path, own.columns, spec.nbytes, own.rows.width, own.rest is not None, group is not None)


def _write(stream: IO[bytes], array: np.ndarray) -> None:
    """Write an array as `numpy.save` does, with the reason of a failure, which `numpy.save` loses in C's streams."""
    np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(array))
    stream.write(array.reshape(-1).view(np.uint8).data)


@dataclass(frozen=True, eq=False)
class WrittenMap:
    """The spec of an explicit map that is read from a file."""

    path: str
    columns: np.ndarray  # [D'] int32, those of the whole map that it has, ascending
    nbytes: int
    width: int  # of its sparse part
    has_rest: bool
    repeated: bool
    token: str = field(default_factory=new_token)

    table = 0

    def subset(self, rows: np.ndarray, scratch: Scratch, workers: Workers) -> tuple[WrittenMap, bool]:
        """Write the map of some rows; return it, and True if all of its distinct rows are still there."""
        made: Any = self.load(workers)
        kept = scratch.keep(made.spec(rows))
        whole = self.repeated and _has_all(made.group[rows], made.group)
        return replace(kept, columns=self.columns[kept.columns]), whole

    def load(self, workers: Workers) -> FeatureMap:
        with open(self.path, "rb") as stream:

            def array() -> Any:
                return np.lib.format.read_array(stream, allow_pickle=False)

            nothing = np.empty(0)
            rows = CompressedRows(self.width, array(), array(), array(), nothing)
            dense = array()
            by_columns = CompressedRows(len(rows.indptr) - 1, array(), array(), array(), nothing)
            rest = array() if self.has_rest else None
            own = ExplicitMap(rows, dense, dense.dtype, rest=rest, by_columns=by_columns)
            return RepeatedMap(own, array(), workers) if self.repeated else own


@dataclass(frozen=True, eq=False)
class ShardKernel:
    """The spec of kernel values of a shard with pivots."""

    part: ShardPart
    features: tuple[str, ...]
    kernel: Kernel
    pivots: Inputs
    dtype: np.dtype
    positions: int
    width: int  # bytes of the inputs of a position
    shared: bool  # True if each distinct input is computed once
    rows: np.ndarray | None = None  # of those positions that the part has, these alone; None: all
    token: str = field(default_factory=new_token)

    columns = None  # all of them

    def subset(self, rows: np.ndarray, scratch: Scratch, workers: Workers) -> tuple[ShardKernel, bool]:
        """Return kernel values of some rows."""
        rows = rows if self.rows is None else self.rows[rows]
        return replace(self, rows=rows, positions=len(rows), token=new_token()), True

    @property
    def nbytes(self) -> int:
        return self.positions * (self.width + 8) + self.pivots.nbytes

    @property
    def table(self) -> int:
        return self.positions * len(self.pivots) * self.dtype.itemsize

    def load(self, workers: Workers) -> FeatureMap:
        inputs, group = self.part.inputs(self.features), None
        if self.shared:
            rows, group = inputs.distinct()
            if self.rows is not None:
                chosen, group = np.unique(group[self.rows], return_inverse=True)
                rows, group = rows[chosen], group.ravel()
            inputs = inputs.take(rows)
        elif self.rows is not None:
            inputs = inputs.take(self.rows)
        diagonal = self.kernel.diagonal(inputs)
        own = KernelSpec(inputs, self.kernel, self.pivots, diagonal, None, False, self.dtype).load(workers)
        return own if group is None else RepeatedMap(own, group, workers)
