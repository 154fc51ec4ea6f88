"""Sources of partitions: picklable descriptions that open them anywhere, always alike.

A source of rows describes the rows of one term's map: arrays, a file, or inputs whose kernel values are computed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..chains import Clique, Edges, MappedClique, Problem
from ..maps import KeptPlaces, Partitions
from ..system import Workers
from .partition import Partition, TermPlace
from .terms import ObjectiveTerm, Source


@dataclass(frozen=True, eq=False)
class PartitionSource:
    """A picklable description of a partition: labels, and rows of maps."""

    name: str  # in messages
    problem: Problem
    cliques: tuple[Clique, ...]  # of each term
    rows: tuple[Source | None, ...]  # likewise; None: the term looks at labels alone
    kept: tuple[np.ndarray | None, ...]  # likewise, [K'] places that have parameters in the rows of W; None: all
    places: tuple[TermPlace, ...]  # likewise, among those of the whole
    dtype: np.dtype
    forbidden: Edges | None = None

    @property
    def maps(self) -> list[Source]:
        return [source for source in self.rows if source is not None]

    def without_maps(self) -> PartitionSource:
        """Return the source without those of its maps, which may be sent once for many partitions."""
        return replace(self, rows=())

    def with_maps(self, maps: Sequence[Source]) -> PartitionSource:
        """Inverse of `without_maps`."""
        coming = iter(maps)
        return replace(self, rows=tuple(next(coming) if clique.mapped else None for clique in self.cliques))

    @property
    def nbytes(self) -> int:
        """Bytes that have to be in memory at once: maps, errors of positions, and some arrays of weights."""
        problem, total = self.problem, sum(source.nbytes for source in self.maps)
        for clique, source, kept in zip(self.cliques, self.rows, self.kept, strict=True):
            if source is not None:
                assert isinstance(clique, MappedClique)
                columns = clique.columns(problem.label_count)
                rows = 0 if source.columns is None else len(source.columns)
                weights = rows * columns if kept is None else 2 * len(kept)
                total += columns * problem.positions * self.dtype.itemsize + weights * (2 * 8 + self.dtype.itemsize)
        return total + problem.labels.nbytes + problem.offsets.nbytes + problem.weights.nbytes

    @property
    def table(self) -> int:
        return sum(source.table for source in self.maps)

    def load(self, workers: Workers) -> Partition:
        """Return the partition, with memory and threads of these workers."""
        terms = []
        for clique, source, kept in zip(self.cliques, self.rows, self.kept, strict=True):
            term = ObjectiveTerm(clique, map=None if source is None else source.load(workers))
            term = term.for_labels(self.problem.label_count)
            terms.append(term if kept is None else term.with_kept(kept))
        return Partition(self.problem, terms, workers, self.dtype, self.forbidden, self.places)


def partition_sources(
    problem: Problem,
    terms: Sequence[ObjectiveTerm],
    dtype: np.dtype,
    forbidden: Edges | None,
    names: Sequence[str] | None,
) -> list[PartitionSource]:
    """Return sources of all partitions of a problem, from those of each term's map or from maps that are here."""
    partitions = Partitions(problem.offsets[problem.borders].astype(np.int64))
    cliques, maps, parts = tuple(term.clique for term in terms), [_sources_of(term, partitions) for term in terms], []
    for number in range(len(partitions)):
        rows = tuple(None if sources is None else sources[number] for sources in maps)
        columns = [None if source is None else source.columns for source in rows]
        found = list(map(placed, terms, columns))
        kept, places = tuple(in_rows for in_rows, _ in found), tuple(place for _, place in found)
        name = f"shard {number + 1} of {len(partitions)}" if names is None else names[number]
        about = kept, places, np.dtype(dtype), forbidden
        parts.append(PartitionSource(name, problem.partition(number), cliques, rows, *about))
    return parts


def placed(term: ObjectiveTerm, columns: np.ndarray | None) -> tuple[np.ndarray | None, TermPlace]:
    """Return a term's places in W of a partition that has these columns of its map (None: all), and where they are."""
    in_rows, numbers = (None, None) if term.places is None else _kept_in(term.places, columns)
    return in_rows, TermPlace(term.rows, term.rows if term.places is None else term.size, columns, numbers)


def _kept_in(places: KeptPlaces, columns: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return places of W, of those columns of the map, that have parameters, and their numbers among all of these."""
    columns = np.arange(places.rows) if columns is None else columns.astype(np.int64)
    counts = places.ends[columns + 1] - places.ends[columns]
    numbers = np.repeat(places.ends[columns] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    kept = np.repeat(np.arange(len(columns)) * places.width, counts) + places.kept[numbers] % places.width
    return kept.astype(np.int64), numbers


def _sources_of(term: ObjectiveTerm, partitions: Partitions) -> Sequence[Source] | None:
    """Return sources of the rows of a term's map; those of a map that is here once: many problems share it."""
    if term.distant is not None:
        return term.distant.sources
    if (feature_map := term.map) is None:
        return None
    key, made = partitions.borders.tobytes(), feature_map.__dict__.setdefault("_partition_sources", {})
    if key not in made:
        made.clear()
        made[key] = [feature_map.spec(np.arange(part.start, part.stop)) for part in partitions.slices]
    return made[key]
