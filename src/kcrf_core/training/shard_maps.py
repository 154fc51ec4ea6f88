"""Maps of shards: where their data is, and the files that explicit maps are kept in between passes.

An explicit map of a shard is made once and written to a file of scratch space, by rows and by columns, with the columns
alone that the shard has; a pass reads it back, which takes a fraction of the time of making it. Kernel values are made
again of the shard's inputs, as far as memory does not hold them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, Any

import numpy as np

from ..encoding import Dataset
from ..files import ScratchFolder
from ..kernels import Inputs, Kernel
from ..maps import CompressedRows, ExplicitRecipe, FeatureMap, KernelRecipe, RepeatedMap, RepeatedRecipe, new_token
from ..model import ShardFolder, StoredShard, encoding_of
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
        """What some features have at its positions."""
        return encoding_of(self.folder, self.digest).inputs(self.dataset(), features).seen()


@dataclass(frozen=True, eq=False)
class ShardedData:
    """Shards of a folder as they are trained on; those of which nothing is left are not there."""

    folder: ShardFolder
    parts: tuple[ShardPart, ...]

    @classmethod
    def of(cls, folder: ShardFolder, sequences: np.ndarray | None = None) -> ShardedData:
        """Some sequences of a folder, by their numbers in ascending order, or all."""
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
            there = replace(shard, path=os.path.abspath(shard.path))  # for who is in another folder
            parts.append(ShardPart(there, os.path.abspath(folder.path), folder.digest, own))
        return cls(folder, tuple(parts))

    def inputs(self, features: Sequence[str]) -> Iterator[Inputs]:
        """Inputs of all parts, one after another."""
        for part in self.parts:
            yield part.inputs(features)


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

    def keep(self, recipe: ExplicitRecipe | RepeatedRecipe) -> WrittenMap:
        """Write what a map is made of, for passes to come."""
        group = recipe.group if isinstance(recipe, RepeatedRecipe) else None
        own = recipe.distinct if isinstance(recipe, RepeatedRecipe) else recipe
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
            told = f"{error.strerror}, where scratch files of training go: make room, or put the shards on another disk"
            raise OSError(error.errno, told, self._place) from None
        return WrittenMap(path, own.columns, recipe.nbytes, own.rows.width, own.rest is not None, group is not None)


def _write(stream: IO[bytes], array: np.ndarray) -> None:
    """Write an array as `numpy.save` does, which does not say why it fails: C's streams, that it goes by, lose that."""
    np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(array))
    stream.write(array.reshape(-1).view(np.uint8))


@dataclass(frozen=True, eq=False)
class WrittenMap:
    """The recipe of an explicit map that is read from a file."""

    path: str
    columns: np.ndarray  # [D'] int32, those of the whole map that it has, ascending
    nbytes: int
    width: int  # of its sparse part
    has_rest: bool
    repeated: bool
    token: str = field(default_factory=new_token)

    table = 0

    def subset(self, rows: np.ndarray, scratch: Scratch, workers: Workers) -> tuple[WrittenMap, bool]:
        """The same of some rows, written anew, and whether all distinct rows that it has are still there."""
        made = self.load(workers)
        kept = scratch.keep(made.recipe(rows))
        whole = self.repeated and len(np.unique(made.group[rows])) == int(made.group.max()) + 1
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
            own = ExplicitRecipe(rows, dense, rest, self.columns).made(by_columns)
            return RepeatedMap(own, array(), workers) if self.repeated else own


@dataclass(frozen=True, eq=False)
class ShardKernel:
    """The recipe of kernel values of a shard with pivots."""

    part: ShardPart
    features: tuple[str, ...]
    kernel: Kernel
    pivots: Inputs
    dtype: np.dtype
    positions: int
    width: int  # bytes of the inputs of a position
    shared: bool  # whether each distinct input is computed once
    rows: np.ndarray | None = None  # of those positions that the part has, these alone; None: all
    token: str = field(default_factory=new_token)

    columns = None  # all of them

    def subset(self, rows: np.ndarray, scratch: Scratch, workers: Workers) -> tuple[ShardKernel, bool]:
        """The same of some rows."""
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
        own = KernelRecipe(inputs, self.kernel, self.pivots, diagonal, None, False, self.dtype).load(workers)
        return own if group is None else RepeatedMap(own, group, workers)


def rows_of(offsets: np.ndarray, sequences: np.ndarray | None) -> np.ndarray | None:
    """Positions of some sequences; None for all."""
    return None if sequences is None else sequence_rows(offsets, sequences)
