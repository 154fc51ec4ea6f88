"""Training data on disk, fitted and encoded part by part.

A part is a run of whole sequences of one file and one shard. What a feature makes of a value is worked out once for all
distinct values of a column, and read from a table in every part.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import overload

import numpy as np

from ..config import Config
from ..corpora import Corpus, SharedColumn, Spool, SpooledRows
from ..system import Workers, offsets_of, sequence_chunks
from .columns import Columns, TrainingColumns
from .dataset import Dataset
from .encoding import Encoding, fit_to

PART_POSITIONS = 1 << 16
# Positions that features are suggested by, where a configuration names none: as much as memory bears easily.
SUGGESTING_POSITIONS = 400_000

Tables = dict[tuple[Hashable, ...], np.ndarray]


class _PartColumns(Columns):
    """Columns of some sequences of a spool; tables of codes belong to all of its parts."""

    def __init__(
        self,
        corpus: Corpus,
        missing: tuple[str, ...],
        fitting: bool,
        tables: Tables,
        lock: threading.Lock,
        spool: Spool,
    ):
        super().__init__(corpus, missing, fitting)
        self._tables, self._lock, self._spool = tables, lock, spool
        self._shared: dict[int, SharedColumn] = {}

    def codes(
        self, column: int, key: tuple[Hashable, ...], encode: Callable[[list[str]], np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        if column not in self._shared:
            assert isinstance(self.corpus.columns, SpooledRows)
            self._shared[column] = self.corpus.columns.shared(column)
        whole, shared = (column, *key), self._shared[column]
        with self._lock:
            if whole not in self._tables:
                self._tables[whole] = encode(self._spool.distinct(column).values)
        return self._tables[whole][shared.used], shared.codes


class SpooledColumns(TrainingColumns):
    """Columns of a spooled corpus that is to be cut into some shards: see `TrainingColumns`."""

    def __init__(self, spool: Spool, missing: tuple[str, ...], shards: int, fitting: bool = True):
        self._spool, self._missing, self._fitting = spool, missing, fitting
        self.corpus = spool.like
        self.warnings: list[str] = []
        self.borders = shard_borders(spool.offsets, shards)
        self._tables: Tables = {}
        self._lock = threading.Lock()

    @property
    def runs(self) -> list[list[tuple[int, int]]]:
        """The parts of each shard, as numbers of their first and last sequences."""
        files = self._spool.file_borders
        out = []
        for first, last in pairwise(self.borders.tolist()):
            cuts = [first, *(border for border in files if first < border < last), last]
            own = []
            for begin, end in pairwise(cuts):
                chunks = sequence_chunks(self._spool.offsets[begin : end + 1], PART_POSITIONS)
                own += [(begin + a, begin + b) for a, b in chunks]
            out.append(own)
        return out

    @property
    def parts(self) -> Sequence[Columns]:
        return _Parts(self, [run for shard in self.runs for run in shard])

    def part(self, run: tuple[int, int]) -> Columns:
        corpus = self._spool.part(*run)
        return _PartColumns(corpus, self._missing, self._fitting, self._tables, self._lock, self._spool)

    @property
    def positions(self) -> int:
        return self._spool.positions

    def value_counts(self, column: int) -> tuple[list[str], np.ndarray]:
        return self._spool.distinct(column).values, self._spool.counts(column)

    def attribute_counts(self) -> tuple[Sequence[str], np.ndarray]:
        return self._spool.attribute_counts

    def has_numbers(self, column: int) -> bool | None:
        return self._spool.has_numbers(column) if self._spool.is_numeric(column) else None

    def kinds(self, column: int) -> np.ndarray:
        return self._spool.distinct(column).distinct_numbers(self._missing)[1]

    def sample(self, most: int) -> Corpus:
        """Sequences with about so many positions in all, evenly spread over the data, or all of it."""
        which = spread_sequences(self._spool.sequences, self._spool.positions, most)
        parts = []
        for run in (run for shard in self.runs for run in shard):
            own = which[(which >= run[0]) & (which < run[1])] - run[0]
            if len(own):
                corpus = self._spool.part(*run)
                parts.append(replace(corpus, columns=tuple(corpus.columns)).subset(own))
        return _joined(parts, self._spool.source)


class _Parts(Sequence[Columns]):
    """The parts of a spool, each read when it is gone through."""

    def __init__(self, columns: SpooledColumns, runs: Sequence[tuple[int, int]]):
        self._columns, self._runs = columns, runs

    def __len__(self) -> int:
        return len(self._runs)

    @overload
    def __getitem__(self, number: int) -> Columns: ...
    @overload
    def __getitem__(self, number: slice) -> list[Columns]: ...
    def __getitem__(self, number: int | slice) -> Columns | list[Columns]:
        if isinstance(number, slice):
            return [self._columns.part(run) for run in self._runs[number]]
        return self._columns.part(self._runs[number])


def shard_borders(offsets: np.ndarray, shards: int) -> np.ndarray:
    """Numbers of the sequences that shards begin with, and behind them that of all: shards of about the same size.

    There are fewer shards where there are fewer sequences.
    """
    aims = np.linspace(0, offsets[-1], shards + 1)
    borders = np.searchsorted(offsets, aims)
    nearer = np.maximum(borders - 1, 0)
    borders = np.where(aims - offsets[nearer] <= offsets[borders] - aims, nearer, borders)
    borders[0], borders[-1] = 0, len(offsets) - 1
    return np.unique(borders)


def spread_sequences(sequences: int, positions: int, most: int) -> np.ndarray:
    """Numbers of sequences with about so many positions in all, evenly spread; all of them where they are no more."""
    if positions <= most:
        return np.arange(sequences)
    wanted = max(int(sequences * most / positions), 1)
    return np.unique(np.linspace(0, sequences - 1, wanted).astype(np.int64))


def _joined(parts: Sequence[Corpus], source: str) -> Corpus:
    """One corpus out of parts of several files."""
    from ..corpora import concatenate

    return replace(concatenate(parts), source=source)


def fit_spooled(config: Config, spool: Spool, shards: int) -> tuple[Encoding, SpooledColumns]:
    """Vocabularies and scaling from data on disk."""
    columns = SpooledColumns(spool, config.missing, shards)
    return fit_to(config, columns), columns


def encoded_shards(encoding: Encoding, columns: SpooledColumns, workers: Workers) -> Iterator[Dataset]:
    """The shards one after another; threads encode their parts."""

    def encoded(run: tuple[int, int]) -> Dataset:
        part = columns.part(run)
        return encoding.encode(part.corpus, part, weighed=True)

    for runs in columns.runs:
        yield join_datasets(list(workers.map(encoded, runs)))


def join_datasets(parts: Sequence[Dataset]) -> Dataset:
    """One dataset out of consecutive ones of the same encoding."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    weights = bag = None
    if any(part.weights is not None for part in parts):
        weights = np.concatenate([np.ones(p.sequences) if p.weights is None else p.weights for p in parts])
    if first.bag is not None:
        import scipy.sparse

        bag = scipy.sparse.csr_array(scipy.sparse.vstack([part.bag for part in parts], format="csr"))
    missing: dict[str, int] = {}
    for part in parts:
        for name, number in part.missing:
            missing[name] = missing.get(name, 0) + number
    cuts = [np.zeros((p.sequences, 2), dtype=bool) if p.cut is None else p.cut for p in parts]
    return Dataset(
        offsets=offsets_of(lengths),
        lines=np.concatenate([part.lines for part in parts]),
        labels=None if first.labels is None else np.concatenate([part.labels for part in parts]),
        weights=weights,
        codes=np.concatenate([part.codes for part in parts]),
        real=np.concatenate([part.real for part in parts]),
        bag=bag,
        bag_unseen=np.concatenate([part.bag_unseen for part in parts]),
        source=first.source,
        missing=tuple(missing.items()),
        cut=None if all(part.cut is None for part in parts) else np.concatenate(cuts),
    )
