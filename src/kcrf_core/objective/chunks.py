"""Chunks: runs of whole sequences, the pieces that P is a sum over.

They are cut by the data and the configuration alone: results have the same bytes wherever chunks are worked on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ..chains import Expected, HalfKnown, Held, MappedClique, Problem, Sums, chain, draw_labellings, hold
from ..system import positions_within, sequence_chunks

# Positions in a chunk: few enough that a chunk of a reduced map stays in the second cache of one core, where its values
# are wanted twice, and that many cores have several each; enough to keep what is done once for a chunk out of the way.
FEWEST_POSITIONS, MOST_POSITIONS = 128, 2048
CHUNK_VALUES = 3 << 17

# Tasks, runs of chunks with sums of their own. A partition has as many as fit these bytes, and not fewer than keep many
# cores busy where there are the usual eight partitions.
FEWEST_TASKS, MOST_TASKS, TASK_BYTES = 4, 32, 1 << 23
LAST_TASK = 0.4  # the size of the last one relative to the mean: a late thread should be late with little


@dataclass(frozen=True)
class Chunk:
    """A run of whole sequences, without potentials."""

    rows: slice  # positions of the problem
    offsets: np.ndarray  # [s+1], from 0
    labels: np.ndarray  # [n]
    weights: np.ndarray  # [s]
    label_count: int  # Y
    cut: tuple[bool, bool]  # True if its sequences are cut off from what stood before and after them
    half_known: HalfKnown | None
    expected: Expected | None  # of sequences with soft labels

    def scored(self, scores: np.ndarray, edges: chain.Edges) -> ScoredChunk:
        return ScoredChunk(**(vars(self) | {"scores": scores, "edges": edges.cut(*self.cut)}))

    def with_expected(self, edges: chain.Edges, per_position: bool) -> Chunk:
        """Return the chunk with expected cliques of soft labels; edges are 0, or minus infinity where forbidden."""
        n, Y, edges = len(self.labels), self.label_count, edges.cut(*self.cut)
        edges = edges.plus_pairs(np.zeros((n, Y, Y))) if per_position else edges
        held = hold(self.labels, self.offsets, np.zeros((n, Y)), edges, self.weights, self.half_known)
        return self if held is None else replace(self, expected=Expected(held, held.marginals()))

    def position_weights(self) -> np.ndarray:
        return np.repeat(self.weights, np.diff(self.offsets))

    def weighted_sums(self, found: chain.Marginals | chain.Change) -> Sums:
        """Multiply what was found at positions with the weights of their sequences, in place, and sum it up."""
        node, edge = found.node, found.edge
        if (self.weights != 1).any():
            each = self.position_weights()
            node *= each.astype(node.dtype)[:, None]
            if edge.ndim == 3:
                edge *= each[:, None, None]
        filled = np.diff(self.offsets) > 0
        first, last = self.offsets[:-1][filled], self.offsets[1:][filled] - 1
        start, end = (
            node[rows[:0] if cut else rows].sum(axis=0, dtype=np.float64)
            for rows, cut in zip((first, last), self.cut, strict=True)
        )
        return Sums(edge.sum(axis=0) if edge.ndim == 3 else edge, start, end, found.triple)


@dataclass(frozen=True)
class ScoredChunk(Chunk):
    """A chunk with its potentials at some parameters."""

    scores: np.ndarray  # [n, Y]
    edges: chain.Edges

    def marginals(self) -> chain.Marginals:
        return chain.marginals(self.scores, self.edges, self.offsets, self.weights)

    def with_edges_repeated(self) -> ScoredChunk:
        """Return the chunk with edges for every row, which gives the marginals of every pair."""
        n, Y = self.scores.shape
        if self.edges.transitions.ndim == 3:
            return self
        return self.scored(self.scores, self.edges.plus_pairs(np.zeros((n, Y, Y))))

    def held(self) -> Held | None:
        if self.half_known is not None and self.half_known.soft:
            return None
        return hold(self.labels, self.offsets, self.scores, self.edges, self.weights, self.half_known)

    def subtract_observed(self, likely: chain.Marginals) -> np.ndarray:
        """Turn marginals of single positions into p - e_y, and return the scores of what is observed, [s].

        Sums over positions are left as they are, but for those of sequences that lack labels.
        """
        held, labels, rows = self.held(), self.labels, np.arange(len(self.labels))
        others = held if self.expected is None else self.expected.held
        if others is not None:
            labels = np.maximum(labels, 0)  # of sequences that lack some, nothing but `others` counts
            rows = np.delete(rows, others.rows)
        scores = chain.path_scores(self.scores, self.edges, self.offsets, labels)
        likely.node[rows, labels[rows]] -= 1
        if likely.edge.ndim == 3:
            inner = rows[positions_within(self.offsets)[rows] > 0]
            likely.edge[inner, labels[inner - 1], labels[inner]] -= 1
        if held is not None:
            found = held.marginals()
            held.subtract(likely, found)
            scores[held.sequences] = found.log_z
        if self.expected is not None:
            scores[self.expected.held.sequences] = self.expected.subtract(likely, self.scores, self.edges)
        return scores

    def errors_of(self, clique: MappedClique) -> np.ndarray:
        """Return w (p - e_y) of the cliques of each position, [n, columns]."""
        chunk = self.with_edges_repeated() if clique.per_position else self
        likely = chunk.marginals()
        chunk.subtract_observed(likely)
        return clique.gather(likely, likely.node.shape[1]) * chunk.position_weights()[:, None]

    def best_labels(self, bonuses: np.ndarray) -> np.ndarray:
        """Return labels by Viterbi decoding, with numbers of `Edges.with_bonuses`, [n]."""
        return chain.viterbi(self.scores, self.edges.with_bonuses(bonuses), self.offsets)[0]

    def predictions(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return labels by Viterbi and by posterior decoding, and probabilities of gold labels, [n] each."""
        scores, edges, offsets = self.scores, self.edges, self.offsets
        path = chain.viterbi(scores, edges, offsets)[0]
        node = chain.marginals(scores, edges, offsets).node
        posterior = chain.posterior_labels(node, scores, edges, offsets)
        return path, posterior, node[np.arange(len(node)), np.maximum(self.labels, 0)]

    def samples(self, sequence: int, number: int, seed: int) -> np.ndarray:
        """Draw labellings of a sequence from p(y | x), [number, T] int32."""
        part, edges = slice(*self.offsets[sequence : sequence + 2].tolist()), self.edges
        scores = np.ascontiguousarray(self.scores[part], dtype=np.float64)
        labels = np.empty((number, len(scores)), dtype=np.int32)
        uniform = np.random.default_rng(seed).random(labels.shape)
        draw_labellings(scores, edges.stacked()[0], edges.start, edges.end, uniform, labels)
        return labels

    def label_variances(self) -> np.ndarray:
        """Return the sum of p_t (1 - p_t) of each sequence, [s]."""
        node = self.marginals().node
        sums = np.cumsum(np.append(0.0, (node * (1 - node)).sum(axis=1, dtype=np.float64)))
        return np.diff(sums[self.offsets])

    def sequence_logs(self) -> np.ndarray:
        """Return log p(y | x) of each sequence, for the observed labels y, [s]."""
        likely = self.marginals()
        return self.subtract_observed(likely) - likely.log_z


def make_chunks(problem: Problem, widest: int) -> list[Chunk]:
    """Cut a problem into chunks, for maps with at most `widest` values of a row that are held densely.

    All sequences of a chunk are cut in the same way.
    """
    size = min(max(CHUNK_VALUES // max(widest, 1), FEWEST_POSITIONS), MOST_POSITIONS)
    chunks, borders = [], problem.borders
    if problem.cut is not None and len(problem.weights):
        changes = np.flatnonzero((problem.cut[1:] != problem.cut[:-1]).any(axis=1)) + 1
        borders = np.union1d(borders, changes)
    for begin, stop in pairwise(borders.tolist()):
        cut = (False, False) if problem.cut is None else tuple(problem.cut[begin].tolist())
        for first, last in sequence_chunks(problem.offsets[begin : stop + 1], size):
            offsets = problem.offsets[begin + first : begin + last + 1]
            rows = slice(int(offsets[0]), int(offsets[-1]))
            weights = problem.weights[begin + first : begin + last]
            about = problem.labels[rows], weights, problem.label_count, cut, problem.half_known, None
            chunks.append(Chunk(rows, offsets - offsets[0], *about))
    return chunks


def make_tasks(chunks: list[Chunk], sum_bytes: int, borders: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return borders of tasks among the chunks, [tasks + 1], and of partitions among the tasks, [partitions + 1].

    Each has sums of so many bytes. They get smaller towards the end of a partition, whose borders are positions.
    """
    tasks, partitions = [0], [0]
    ends = np.array([0, *(chunk.rows.stop for chunk in chunks)])
    for first, last in pairwise(np.searchsorted(ends, borders).tolist()):
        count = min(max(TASK_BYTES // max(sum_bytes, 1), FEWEST_TASKS), MOST_TASKS, max(last - first, 1))
        at = np.linspace(0, 1, count + 1)
        shares = at * (2 - LAST_TASK - (1 - LAST_TASK) * at)  # of the partition's positions, up to each border
        own = ends[first : last + 1] - ends[first]
        found = np.searchsorted(own, shares * own[-1] * (1 - 1e-12)).clip(0, last - first)
        tasks += [first + place for place in np.unique(found).tolist() if first + place > tasks[-1]]
        partitions.append(len(tasks) - 1)
    return np.array(tasks, dtype=np.int64), np.array(partitions, dtype=np.int64)
