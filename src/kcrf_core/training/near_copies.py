"""Near copies: sequences that would leak from one fold to another.

Two sequences are near copies if the sets of n-grams of their input values have a Jaccard similarity of at least 0.8.
Positions are compared by their hashes (`encoding.hashing`), so that real numbers must be equal. Sequences of
fewer than n positions have no n-grams and are near no other: equal queries of one word or names of four letters are not
copies of each other. n is 5, or 10, 20, 40, ... where shorter n-grams do not tell sequences apart, as in DNA.

Pairs are found by prefix filtering (Bayardo et al., 2007). With n-grams in one order, the rarest first, two sets x and
y with |x & y| >= 0.8 |x | y| share one of the first floor(|x| / 5) + 1 of x and of as many of y. Those that do are
compared exactly, neighbours in the list of each n-gram first; then only pairs in different components are left. Their
number is limited, so that time grows as N log N.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..config import NEAR_COPIES
from ..encoding import GOLDEN, SHORTEST, mixed
from ..scoring import FEW_SEQUENCES
from ..system import Remark, counted, piece_rows, sequence_rows
from .held_out import HoldOut

TOGETHER, _ = NEAR_COPIES
FOLDS = 5  # that training makes at most
COMMON = 0.25  # of the sequences: an n-gram that more of them have does not tell them apart
PAIRS = 5  # in different components, for each n-gram of a prefix, to be compared
ROWS_AT_ONCE = 1 << 21  # n-grams of pairs that are compared


@dataclass(frozen=True)
class _Grams:
    """Sets of n-grams of sequences, without those that one sequence has alone."""

    sizes: np.ndarray  # [S] of the whole sets
    keys: np.ndarray  # [E] int64, sequence * G + n-gram, ascending; the rarest n-grams have the smallest numbers
    offsets: np.ndarray  # [S+1] of the keys of each sequence
    count: int  # G
    telling: bool  # at least half of the sequences have an n-gram that is not common

    @classmethod
    def of(cls, hashes: np.ndarray, sequence: np.ndarray, S: int) -> _Grams:
        """Make sets of n-grams, by the hash and the sequence of each, [M]."""
        order = np.argsort(hashes, kind="stable")
        hashes, sequence = hashes[order], sequence[order]  # sequences of an n-gram ascend
        new = np.append(True, hashes[1:] != hashes[:-1])[: len(hashes)]
        kept = new | np.append(True, sequence[1:] != sequence[:-1])[: len(hashes)]
        number, sequence = (np.cumsum(new) - 1)[kept], sequence[kept]
        frequency = np.bincount(number)  # of n-grams, in sequences
        sizes = np.bincount(sequence, minlength=S)
        order, G = np.argsort(frequency, kind="stable"), len(frequency)
        rank = np.empty(G, np.int64)
        rank[order] = np.arange(G)
        shared = frequency[number] > 1
        keys = np.sort(sequence[shared] * G + rank[number[shared]])
        offsets = np.searchsorted(keys, np.arange(S + 1) * G)
        without = np.flatnonzero(sizes == np.diff(offsets))  # an n-gram of their own
        rarest = frequency[order[keys[offsets[without[sizes[without] > 0]]] % G]]
        telling = 2 * np.count_nonzero(rarest > COMMON * S) <= np.count_nonzero(sizes)
        return cls(sizes, keys, offsets, G, bool(telling))

    def prefixes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return n-grams and sequences of all prefixes, n-grams ascending; n-grams of one sequence are the rarest."""
        shared = np.diff(self.offsets)
        alone = self.sizes - shared
        wanted = np.clip(self.sizes // 5 + 1 - alone, 0, shared)
        sequence, gram = np.divmod(self.keys[piece_rows(self.offsets[:-1], self.offsets[:-1] + wanted)], self.count)
        order = np.argsort(gram, kind="stable")
        return gram[order], sequence[order]

    def near(self, pairs: np.ndarray) -> np.ndarray:
        """Return those of some pairs [P, 2] that are near copies."""
        shared, total = np.diff(self.offsets), self.sizes[pairs].sum(axis=1)
        pairs = pairs[9 * shared[pairs].min(axis=1) >= 4 * total]  # all that they may have in common
        out = []
        rows = np.cumsum(shared[pairs[:, 0]])
        for part in np.split(pairs, np.searchsorted(rows, np.arange(ROWS_AT_ONCE, rows.max(initial=0), ROWS_AT_ONCE))):
            a, b = part.T
            pair = np.repeat(np.arange(len(part)), shared[a])
            wanted = self.keys[sequence_rows(self.offsets, a)] + ((b - a) * self.count)[pair]
            at = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
            common = np.bincount(pair[self.keys[at] == wanted], minlength=len(part))
            # |x & y| >= 0.8 |x | y|
            out.append(part[9 * common >= 4 * (self.sizes[a] + self.sizes[b])])
        return np.concatenate(out)


def near_copies(hashes: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the number of the first sequence of each sequence's group of near copies, [S]; its own without any.

    >>> near_copies(np.array(list(b"abcdefabcdefab"), np.uint64), np.array([0, 6, 12, 13, 14])).tolist()
    [0, 0, 2, 3]
    """
    S, n = len(offsets) - 1, SHORTEST
    sequence = np.repeat(np.arange(S), np.diff(offsets))
    grams = hashes
    for step in range(1, n):
        grams = _joined(grams[:-1], hashes[step:])
    shortest = None
    while n <= len(hashes):
        whole = sequence[: len(sequence) - n + 1] == sequence[n - 1 :]
        sets = _Grams.of(grams[whole], sequence[: len(whole)][whole], S)
        shortest = shortest or sets
        if 2 * np.count_nonzero(sets.sizes) < np.count_nonzero(shortest.sizes):
            break
        if sets.telling:
            group, complete = _groups(sets, S)
            if complete:
                return group
        grams, n = _joined(grams[:-n], grams[n:]), 2 * n
    return np.arange(S) if shortest is None else _groups(shortest, S)[0]


def _joined(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return hashes of n-grams by those of two parts of each."""
    return mixed(left * GOLDEN + right)


def _groups(sets: _Grams, S: int) -> tuple[np.ndarray, bool]:
    """Return the first sequence of the component of each, [S], and False if there were too many pairs to compare."""
    gram, sequence = sets.prefixes()
    beside = np.flatnonzero(gram[1:] == gram[:-1])
    group = np.arange(S)
    group = _connected(group, sets.near(_distinct(sequence[beside], sequence[beside + 1], S)))
    order = np.lexsort((group[sequence], gram))
    gram, sequence = gram[order], sequence[order]
    own = gram * S + group[sequence]
    behind = np.searchsorted(gram, gram, side="right") - (last := np.searchsorted(own, own, side="right"))
    if behind.sum() > PAIRS * len(gram):
        return group, False
    first = np.repeat(np.arange(len(gram)), behind)
    second = piece_rows(last, last + behind)
    return _connected(group, sets.near(_distinct(sequence[first], sequence[second], S))), True


def _distinct(a: np.ndarray, b: np.ndarray, S: int) -> np.ndarray:
    """Return each pair once, [P, 2]."""
    return np.stack(np.divmod(np.unique(np.minimum(a, b) * S + np.maximum(a, b)), S), axis=1)


def _connected(group: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return the smallest number in the component of each sequence, [S], where pairs [P, 2] connect groups."""
    while len(pairs):
        a, b = group[pairs.T]
        pairs, least = pairs[a != b], np.minimum(a, b)
        group = group.copy()
        np.minimum.at(group, np.maximum(a, b), least)
        while not np.array_equal(group, group[group]):
            group = group[group]
    return group


def kept_together(
    hold_out: HoldOut,
    hashes: np.ndarray | None,  # [N] of inputs
    offsets: np.ndarray,
    wanted: str,  # one of NEAR_COPIES
    folds: int = FOLDS,
    tell: Callable[[str], None] = lambda text: None,
) -> HoldOut:
    """Return what is held out with near copies as groups, unless users have groups, folds or blocks of their own.

    A group with more than 1 / (2 folds) of the positions would leave folds of unequal size: it is not kept together.
    Few sequences may be cut into blocks, and have no groups. Data that was encoded by earlier versions has no hashes.
    """
    S = len(offsets) - 1
    if wanted != TOGETHER or hashes is None or not hold_out.free or S < FEW_SEQUENCES:
        return hold_out
    group = near_copies(hashes, offsets)
    counts, positions = np.bincount(group, minlength=S), np.bincount(group, np.diff(offsets), minlength=S)
    large = (counts > 1) & (2 * folds * positions > offsets[-1])
    if large.any():
        share = 100 * positions[large].max() / offsets[-1]
        them = f"{counted(int(counts[large].sum()), 'sequence')} in {counted(int(large.sum()), 'group')}"
        tell(
            f"near copies: {them} are too many to be kept together: a group has {share:.0f} % of the positions, more "
            f"than {50 / folds:.3g} %"
        )
        group = np.where(large[group], np.arange(S), group)
    counts = np.bincount(group, minlength=S)
    copies, groups = int(counts[counts > 1].sum()), int((counts > 1).sum())
    if not copies:
        return hold_out
    text = f"near copies: {copies:,} of {S:,} sequences resemble others, and are held out in {counted(groups, 'group')}"
    tell(Remark(text, settings=["near_copies"]))
    return replace(hold_out, groups=group)
