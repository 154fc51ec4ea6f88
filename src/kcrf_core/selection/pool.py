"""Sequences to label next: those of a pool that a model is least certain of, and that differ from each other.

    score     s = H(y | x), the entropy of all labels of a sequence, or -log max_y p(y | x), in nats; or s / T
    vector    x: the sum over T positions of the gradient of -log p(y* | x), y* the label of the largest marginal:
              input values (column and value) times p - 1 for the likeliest label, p for the second one, and the
              logarithm of how rare the value is with the label among the candidates; |x| = 1
    choice    next is the largest s_i d_i, where d_i is the squared length of x_i outside the span of those chosen
              before: pivoted Cholesky decomposition of the matrix of sqrt(s_i s_j) <x_i, x_j>

Without a model all scores are 1, and so are p - 1 and p. Memory is that of the candidates, the sequences of the largest
scores. Vectors of gradients: Ash et al., Deep batch active learning by diverse, uncertain gradient lower bounds, 2020.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse

from ..corpora import CodedColumn, Corpus
from ..encoding import mixed, sequence_hashes, text_hashes
from ..model import VITERBI, Decoded, Decoder, Model, Wishes
from ..system import offsets_of, sequence_chunks
from . import COSTS, STRATEGIES

ENTROPY, POSITION = STRATEGIES[0], COSTS[0]
LEAST_KEPT, KEPT_FOR_EACH = 1000, 20  # candidates, in all and for each sequence to choose
POSITIONS_AT_ONCE = 1 << 12  # that are scored together
BUCKETS = 20  # bits of the hash of an input value and a label
LEAST_WEIGHT = 0.01  # of a label in vectors: nearly certain positions take no memory
MOST_AT_ONCE = 500  # chosen sequences that further ones differ from: memory for each candidate
NOTHING_NEW = 1e-6  # of d: the rest is made of what was chosen


@dataclass(frozen=True, eq=False)
class Judged:
    """Sequences of a corpus with their scores."""

    scores: np.ndarray  # [S]
    open: np.ndarray  # [S] bool, True where labels are missing and the model was not trained on it
    values: scipy.sparse.csr_array  # [S, 2^BUCKETS] weighted counts of input values with labels
    keys: np.ndarray  # [S] uint64, equal for equal sequences
    found: Decoded | None = None  # labels, marginals and probabilities; None without a model

    def values_of(self, s: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the buckets of the values of a sequence, and their counts."""
        own = slice(self.values.indptr[s], self.values.indptr[s + 1])
        return self.values.indices[own].copy(), self.values.data[own].copy()


class PoolJudge:
    """Scores of sequences, by a model if there is one. Labels are missing that are `free`.

    Labels that the model does not know are not missing, and decide nothing.
    """

    def __init__(self, model: Model | None, strategy: str = ENTROPY, cost: str = POSITION, free: str = "?"):
        self._model, self._strategy, self._cost, self._free = model, strategy, cost, free
        if model is not None:
            rules = model.rules and replace(model.rules, when_impossible="keep")
            wishes = Wishes(VITERBI, force=True, marginals=True, probability=True, entropy=strategy == ENTROPY)
            self._decoder = Decoder(model, replace(wishes, rules=rules))

    def parts(self, corpus: Corpus) -> list[Judged]:
        """Score the sequences of a corpus, some at a time."""
        corpus = corpus if self._model is None else self._model.encoding.scaled_by_group(corpus)
        return [self.judged(corpus.span(*span)) for span in sequence_chunks(corpus.offsets, POSITIONS_AT_ONCE)]

    def judged(self, corpus: Corpus) -> Judged:
        """Score the sequences of a corpus; labels that it has are kept."""
        model, inputs, every = self._model, corpus.columns, np.ones(corpus.sequences, dtype=bool)
        if model is None:
            ones = np.ones((corpus.positions, 1))
            values, hashes = _input_values(corpus, inputs, ones.astype(np.int64), ones)
            return Judged(np.ones(corpus.sequences), every, values, sequence_hashes(hashes, corpus.offsets))
        labels = None
        if model.encoding.with_labels(corpus):
            given, inputs = CodedColumn.of(corpus.columns[-1]), corpus.columns[:-1]
            labels = given.numbered(model.labels).astype(np.int32)
            free = given.numbered([self._free]) == 0
            every = np.logical_or.reduceat(free, corpus.offsets[:-1])
        dataset = replace(model.encoding.encode(corpus, hashed=True), labels=labels)
        rules, rows = self._decoder.rules, slice(0, corpus.positions)
        allowed = None if rules is None else rules.allowed_rows(corpus, model.encoding, rows)
        found = self._decoder.decode_part(dataset, corpus.source, allowed)
        assert found.marginals is not None and found.log_probabilities is not None and dataset.hashes is not None
        scores = -found.log_probabilities if found.entropies is None else found.entropies
        if self._cost == POSITION:
            scores = scores / np.diff(corpus.offsets)
        likeliest = np.argsort(-found.marginals, axis=1, kind="stable")[:, :2]
        gradient = np.take_along_axis(found.marginals, likeliest, axis=1).astype(np.float64)
        gradient[:, 0] -= 1.0
        values, _ = _input_values(corpus, inputs, likeliest, gradient)
        keys = sequence_hashes(dataset.hashes, corpus.offsets)
        if model.trained_on is not None:  # short sequences, too: a second copy of them teaches little
            every = every & ~np.isin(keys, model.trained_on)
        return Judged(scores, every, values, keys, found)


def _input_values(
    corpus: Corpus, columns: Sequence[Sequence[str]], labels: np.ndarray, weights: np.ndarray
) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """Return values of inputs with labels [N, K] of their positions, weighted [N, K], and a hash of each position."""
    N, sequence = corpus.positions, np.repeat(np.arange(corpus.sequences), np.diff(corpus.offsets))
    positions, counts = np.tile(np.arange(N), len(columns)), np.ones(N * len(columns))
    if corpus.attributes is not None:
        columns, counts = [corpus.attributes.names], corpus.attributes.values
        positions = np.repeat(np.arange(N), np.diff(corpus.attributes.indptr))
    texts = (text_hashes(CodedColumn.of(column)) for column in columns)
    hashes = np.concatenate([np.zeros(0, np.uint64), *(mixed(own + np.uint64(c)) for c, own in enumerate(texts, 1))])
    sums = np.zeros(N, np.uint64)
    np.add.at(sums, positions, hashes)
    at, which = np.nonzero((np.abs(weights) >= LEAST_WEIGHT)[positions])
    rows = positions[at]
    pairs = mixed(hashes[at] + labels[rows, which].astype(np.uint64)) >> np.uint64(64 - BUCKETS)
    entries = (weights[rows, which] * counts[at]).astype(np.float32)
    values = scipy.sparse.coo_array(
        (entries, (sequence[rows], pairs.astype(np.int32))), (corpus.sequences, 1 << BUCKETS)
    )
    return values.tocsr(), mixed(sums)


@dataclass(frozen=True, eq=False)
class PoolSequence:
    """A sequence that may be chosen."""

    score: float
    order: int  # the smallest of equal scores comes first
    key: int
    group: str | None
    values: tuple[np.ndarray, np.ndarray]  # as `Judged.values_of` returns them
    content: Any  # what is to be written of it


class Pool:
    """The best candidates among the sequences of a pool, which are added in order."""

    def __init__(self, count: int):
        self._count, self._most = count, max(KEPT_FOR_EACH * count, LEAST_KEPT)
        self._kept, self._keys, self._lowest, self._added = list[PoolSequence](), set[int](), -np.inf, 0

    def add(self, judged: Judged, content: Callable[[int], Any], groups: Sequence[str] | None = None) -> None:
        """Take the sequences that differ from candidates and have large scores; `groups` begins with theirs."""
        for s, (score, key) in enumerate(zip(judged.scores.tolist(), judged.keys.tolist(), strict=True)):
            if judged.open[s] and score > self._lowest and key not in self._keys:
                order, group = key if judged.found is None else self._added, None if groups is None else groups[s]
                self._kept.append(PoolSequence(score, order, key, group, judged.values_of(s), content(s)))
                self._keys.add(key)
                if len(self._kept) >= 2 * self._most:
                    self._drop()
            self._added += 1

    def _drop(self) -> None:
        """Drop the last of groups that have the most, if there are too many."""
        self._kept.sort(key=lambda one: (-one.score, one.order))
        ranks, before = list[int](), Counter[str | None]()
        for one in self._kept:
            ranks.append(before[one.group])
            before[one.group] += 1
        best = np.argsort(ranks, kind="stable")[: self._most]
        if None in before and len(best) == self._most and self._kept[best[-1]].score < self._kept[0].score:
            self._lowest = self._kept[best[-1]].score
        self._kept = [self._kept[place] for place in best]
        self._keys = {one.key for one in self._kept}

    def chosen(self) -> list[tuple[PoolSequence, float]]:
        """Return the sequences to label, and of each the part d of it that those before it do not have.

        No group gets one more before all others that have candidates have as many.
        """
        self._drop()
        kept, count = self._kept, min(self._count, len(self._kept))
        scores, free, left = np.array([one.score for one in kept]), np.ones(len(kept), bool), np.ones(len(kept))
        groups = CodedColumn.of([one.group or "" for one in kept]).codes
        vectors, taken = _unit_vectors(kept), np.zeros(len(kept), dtype=np.int64)  # taken: of each group
        factor, filled = np.zeros((len(kept), min(count, MOST_AT_ONCE)), dtype=np.float32), 0
        out = list[tuple[PoolSequence, float]]()
        while len(out) < count:
            allowed = free & (taken[groups] == taken[groups[free]].min())
            if filled == MOST_AT_ONCE or left[allowed].max() < NOTHING_NEW:
                left[:], filled = 1.0, 0
            best = int(np.argmax(np.where(allowed & (left >= NOTHING_NEW), scores * left, -1.0)))
            out.append((kept[best], float(left[best])))
            free[best] = False
            taken[groups[best]] += 1
            column = vectors @ vectors[[best]].toarray()[0] - factor[:, :filled] @ factor[best, :filled]
            factor[:, filled] = column / np.sqrt(left[best])
            left = np.maximum(left - np.square(factor[:, filled], dtype=np.float64), 0.0)
            filled += 1
        return out


def _unit_vectors(kept: Sequence[PoolSequence]) -> scipy.sparse.csr_array:
    """Return vectors of length 1, [C, V], in which rare values count more."""
    buckets, values = (np.concatenate([np.zeros(0, np.int32), *(one.values[k] for one in kept)]) for k in (0, 1))
    found = np.bincount(buckets, minlength=1 << BUCKETS)
    columns, counts = (np.cumsum(found > 0) - 1)[buckets], found[found > 0]
    values = values * np.log((len(kept) + 1) / counts)[columns]
    lengths = np.array([len(one.values[0]) for one in kept], dtype=np.int64)
    rows = np.repeat(np.arange(len(kept)), lengths)
    norms = np.sqrt(np.bincount(rows, values**2, minlength=len(kept)))
    values /= np.where(norms > 0, norms, 1.0)[rows]
    return scipy.sparse.csr_array((values, columns, offsets_of(lengths)), shape=(len(kept), len(counts)))
