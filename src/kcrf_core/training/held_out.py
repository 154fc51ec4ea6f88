"""Sequences, groups of them or blocks of very few long ones, held out in turn while choices are made.

Sequences differ (days, speakers, recordings), which blocks beside the training data do not show: from FEW_WHOLE on,
whole sequences are held out unless one of them has most positions. A block is a run of positions. Where it is cut off
from its neighbours, neither it nor they have a clique of a first or last label; a gap of the longer of a window and the
median run of a label beside it is neither fitted on nor judged by.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..chains import Problem
from ..errors import ConfigError, DataError
from ..scoring import DECODINGS, Yardstick, best_bonus, block_borders, median_run
from ..system import counted

LEAST_POSITIONS = 10  # to fit on or to judge by
HANDFUL = 10  # fewer units are too few to choose by without a warning
FEW_WHOLE = 5  # sequences from which on whole ones are held out
LEAST_UNITS = 20  # of a sample; where they are too long for it, it has a part of each
LEAST_TRAINED, MOST_SIZES = 8, 6  # sequences or blocks of the smallest part of a learning curve; number of its sizes

# Digits after the point of log p and of a metric that are compared; rounding errors are smaller by far.
DIGITS = 7

SEQUENCES, GROUPS, BLOCKS = "sequences", "groups", "blocks"  # kinds of units

VITERBI, POSTERIOR = DECODINGS
BONUS = "bonus"  # Viterbi decoding with the bonus for spans that fits its F1


@dataclass(frozen=True)
class Pieces:
    """Runs of positions, each within a sequence, with the number of the unit that each belongs to."""

    first: np.ndarray  # [P] int64
    last: np.ndarray  # [P] int64, one beyond
    unit: np.ndarray  # [P] int64

    @property
    def positions(self) -> int:
        return int((self.last - self.first).sum())

    def take(self, which: np.ndarray) -> Pieces:
        return Pieces(self.first[which], self.last[which], self.unit[which])

    def sampled(self, most_positions: int, rng: np.random.Generator) -> Pieces:
        """Return random units with about so many positions; of few long ones, a run of each piece."""
        if self.positions <= most_positions:
            return self
        units, of_piece = np.unique(self.unit, return_inverse=True)
        sizes = np.bincount(of_piece, self.last - self.first)
        order = rng.permutation(len(units))
        enough = int(np.searchsorted(np.cumsum(sizes[order]), most_positions)) + 1
        taken = self.take(np.isin(of_piece, order[: max(enough, LEAST_UNITS)]))
        if enough >= LEAST_UNITS:
            return taken
        lengths = taken.last - taken.first
        kept = np.clip(np.rint(lengths * (most_positions / taken.positions)).astype(np.int64), 1, lengths)
        first = taken.first + rng.integers(0, lengths - kept, endpoint=True)
        return Pieces(first, first + kept, taken.unit)


@dataclass(frozen=True)
class Split:
    """One fold: pieces to fit on and pieces held out."""

    fit: Pieces
    held: Pieces


@dataclass(frozen=True)
class HoldOut:
    """Wishes of users for what is held out."""

    groups: np.ndarray | None = None  # [S] a number for each sequence: those with the same one stay together
    folds: np.ndarray | None = None  # [S] the fold of each sequence
    block: int | None = None  # positions of a block; None: by the number of sequences

    def __post_init__(self) -> None:
        given = [name for name in ("groups", "folds", "block") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ConfigError(
                "sequences are held out by groups, by given folds, or in blocks: give one of them",
                settings=["group", "folds_file", "block"],
            )

    @property
    def free(self) -> bool:
        """True if there is no wish."""
        return self.groups is None and self.folds is None and self.block is None

    def subset(self, which: np.ndarray) -> HoldOut:
        """Return the wishes for some sequences."""
        groups, folds = (None if own is None else own[which] for own in (self.groups, self.folds))
        return HoldOut(groups, folds, self.block)


@dataclass(frozen=True)
class Splits:
    """Folds of all data or of a sample of it."""

    splits: tuple[Split, ...]
    kind: str  # of units: SEQUENCES, GROUPS or BLOCKS
    positions: int  # that are fitted on or held out
    gap: int = 0  # positions beside a block that are neither

    @property
    def units(self) -> int:
        """Number of units that are held out, in all folds together."""
        return sum(len(np.unique(split.held.unit)) for split in self.splits)

    @property
    def fitted(self) -> int:
        """Number of positions that are fitted on, in all folds together: the cost of a pass over all of them."""
        return sum(split.fit.positions for split in self.splits)

    def fits_most(self, positions: int) -> bool:
        """Return True if fits have two thirds of so many positions: transitions of smaller fits are softer."""
        return 3 * self.fitted >= 2 * len(self.splits) * positions

    def describe(self) -> str:
        held = sum(split.held.positions for split in self.splits)
        units = self.kind if self.units != 1 else self.kind.rstrip("s")
        gap = f" with gaps of {self.gap:,}" if self.kind == BLOCKS else ""
        folds = f" in {len(self.splits)} folds" if len(self.splits) > 1 else ""
        return f"{self.units:,} held-out {units}{gap}{folds}, {held:,} positions"


def make_splits(
    problem: Problem,
    *,
    seed: int,
    wishes: HoldOut | None = None,
    reach: int = 0,  # how far windows look
    folds: int = 2,
    most_positions: int | None = None,  # of the sample that is looked at; None: all
) -> Splits | None:
    """Make folds of a problem, of sequences that have weight; None where too little could be held out.

    With one fold, a third is fitted on and the rest is held out.

    >>> import numpy as np
    >>> from kcrf_core.chains import Problem
    >>> problem = Problem(np.zeros(90, np.int32), np.arange(0, 91, 3), np.ones(30), 2)
    >>> make_splits(problem, seed=0, folds=3).describe()
    '30 held-out sequences in 3 folds, 90 positions'
    >>> one = Problem(np.zeros(90, np.int32), np.array([0, 90]), np.ones(1), 2)
    >>> make_splits(one, seed=0, wishes=HoldOut(block=10)) is None  # all of it is a single run of one label
    True
    """
    wishes = wishes or HoldOut()
    lengths = np.diff(problem.offsets)
    there = np.flatnonzero((problem.weights > 0) & (lengths > 0))
    one_is_most = 2 * lengths[there].max(initial=0) > lengths[there].sum()  # the rest is too little to fit on
    few = wishes.free and (len(there) < FEW_WHOLE or one_is_most)
    blocks = blocks_of(problem, wishes.block, reach) if few or wishes.block is not None else None
    gap = 0
    if blocks is not None:
        pieces, gap, kind = blocks.pieces, blocks.gap, BLOCKS
    else:
        unit = there if wishes.groups is None else wishes.groups[there]
        pieces = Pieces(problem.offsets[there], problem.offsets[there + 1], unit)
        kind = SEQUENCES if wishes.groups is None else GROUPS
    rng = np.random.default_rng([seed, 1])
    if most_positions is not None:
        pieces = pieces.sampled(most_positions, rng)
    together = pieces.unit if wishes.folds is None else wishes.folds[pieces.unit]
    # Pieces with the same number in one fold, about as many positions in each.
    numbers, of_piece = np.unique(together, return_inverse=True)
    sizes = np.bincount(of_piece, pieces.last - pieces.first)
    parts = min(folds if folds > 1 else 3, len(numbers))
    fold = deal(np.stack([sizes, np.ones(len(numbers))], axis=1), parts, rng)[of_piece]
    splits = []
    for away in [fold == number for number in range(int(fold.max(initial=-1)) + 1)] if folds > 1 else [fold > 0]:
        held, rest = pieces.take(away), pieces.take(~away)
        rest = rest if blocks is None else apart(rest, held, gap, problem.offsets)
        if min(held.positions, rest.positions) >= LEAST_POSITIONS:
            splits.append(Split(rest, held))
    if not splits:
        return None
    return Splits(tuple(splits), kind, pieces.positions, gap)


def deal(contents: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return the fold of each unit, [G], so that folds have about equal shares of every column of `contents`, [G, A].

    Units are dealt one by one, roughly the weightiest first. With u the content of a unit, C that of all units and c_f
    what fold f has so far, each goes to the fold with the smallest sum_a c_fa u_a / C_a^2, which adds least to
    sum_f sum_a (c_fa / C_a)^2, a measure of uneven folds.
    """
    shares = contents / np.maximum(contents.sum(axis=0), 1e-300)  # u / C
    # Strictly by weight there would be one division only, whatever the seed.
    weights = (shares**2).sum(axis=1) * rng.uniform(0.5, 1.0, len(shares))
    held = np.zeros((count, shares.shape[1]))
    sizes = np.zeros(count)
    folds = np.zeros(len(shares), dtype=np.int64)
    for unit in np.argsort(-weights, kind="stable"):
        uneven = held @ shares[unit]
        least = np.flatnonzero(uneven <= uneven.min() * (1 + 1e-12))  # sums of the same terms may differ by rounding
        fold = least[np.argmin(sizes[least])]
        folds[unit] = fold
        held[fold] += shares[unit]
        sizes[fold] += 1
    return folds


@dataclass(frozen=True)
class Units:
    """Sequences, or groups of sequences that no fold may divide."""

    of_sequence: np.ndarray  # [S] int64, the unit of each sequence
    what: str  # in the plural, for messages
    contents: np.ndarray | None  # [S, A] amounts that each sequence has; None where only their number counts

    def dealt(self, which: np.ndarray, count: int, seed: Sequence[int]) -> list[np.ndarray]:
        """Deal the sequences numbered `which` into `count` folds, each in ascending order."""
        rng = np.random.default_rng(list(seed))
        if self.contents is None:
            return [which[np.sort(part)] for part in np.array_split(rng.permutation(len(which)), count)]
        units, unit = np.unique(self.of_sequence[which], return_inverse=True)
        totals = np.zeros((len(units), self.contents.shape[1]))
        np.add.at(totals, unit, self.contents[which])
        fold_of = deal(totals, count, rng)[unit]
        return [which[fold_of == fold] for fold in range(count)]

    def halved(self, which: np.ndarray, seed: Sequence[int]) -> tuple[np.ndarray, ...]:
        """Return parts of the sequences numbered `which`, each half of the next; the last one has all of them.

        Units enter one after another, in random order, and the last one of a part perhaps not as a whole.
        """
        units, unit = np.unique(self.of_sequence[which], return_inverse=True)
        order = which[np.argsort(np.random.default_rng(list(seed)).permutation(len(units))[unit], kind="stable")]
        sizes = [len(which) >> halvings for halvings in range(MOST_SIZES)]
        return tuple(np.sort(order[:size]) for size in reversed(sizes) if size >= LEAST_TRAINED or size == len(which))

    def count(self, which: np.ndarray) -> int:
        return len(np.unique(self.of_sequence[which]))

    def check(self, which: np.ndarray, folds: int, source: str | None, what: str) -> None:
        """Refuse to deal the sequences numbered `which` into more folds than they have units."""
        found = self.count(which)
        if found < folds:
            raise DataError(f"{counted(found, self.what.removesuffix('s'))} cannot make {folds} {what}", source)


def size_contents(offsets: np.ndarray) -> np.ndarray:
    """Return the positions of each sequence, and a one for the sequence itself: [S, 2]."""
    return np.stack([np.diff(offsets).astype(np.float64), np.ones(len(offsets) - 1)], axis=1)


def whole_folds(
    offsets: np.ndarray, which: np.ndarray, wishes: HoldOut, count: int, seed: Sequence[int]
) -> tuple[Units, list[np.ndarray]]:
    """Divide the whole sequences numbered `which` into `count` folds, or those of `wishes`; return the units, too."""
    sequences, groups = np.arange(len(offsets) - 1), wishes.groups
    if wishes.folds is not None:
        own = wishes.folds[which]
        return Units(sequences, SEQUENCES, None), [which[own == fold] for fold in np.unique(own)]
    if groups is None:
        units = Units(sequences, SEQUENCES, None)
    else:
        units = Units(np.unique(groups, return_inverse=True)[1], GROUPS, size_contents(offsets))
    return units, units.dealt(which, count, seed)


@dataclass(frozen=True)
class Blocks:
    """Sequences in blocks, and the distance between positions fitted on and positions held out."""

    pieces: Pieces  # each a unit of its own
    gap: int


def blocks_of(problem: Problem, block: int | None, reach: int) -> Blocks | None:
    """Cut sequences with weight into blocks, of about `block` positions if that is given; None if they stay whole."""
    sequences = np.flatnonzero((problem.weights > 0) & (np.diff(problem.offsets) > 0))
    gap = max(reach, median_run(problem.labels, problem.offsets))
    borders = block_borders(problem.offsets, sequences, block, gap)
    if borders is None:
        return None
    first, last = borders
    return Blocks(Pieces(first, last, np.arange(len(first), dtype=np.int64)), gap)


def apart(rest: Pieces, held: Pieces, gap: int, offsets: np.ndarray) -> Pieces:
    """Return what is left of blocks to fit on at a distance from those that are held out, adjoining blocks joined."""
    rest = rest.take(np.argsort(rest.first))
    sequence = np.searchsorted(offsets, rest.first, side="right") - 1
    joined = np.flatnonzero((rest.last[:-1] == rest.first[1:]) & (sequence[:-1] == sequence[1:]))
    begin, end = np.delete(np.arange(len(rest.first)), joined + 1), np.delete(np.arange(len(rest.first)), joined)
    first, last, unit, sequence = rest.first[begin], rest.last[end], rest.unit[begin], sequence[begin]
    # As if sequences stood further apart than a gap, so that those of other sequences are never near.
    shift = sequence * (gap + 1)
    away = (np.searchsorted(offsets, held.first, side="right") - 1) * (gap + 1)
    begins, ends = np.sort(held.first + away), np.sort(held.last + away)
    before = np.append(-gap - 1, ends)[np.searchsorted(ends, first + shift, side="right")]
    after = np.append(begins, offsets[-1] + shift.max(initial=0) + gap + 1)[
        np.searchsorted(begins, last + shift, side="left")
    ]
    first = np.maximum(first, before + gap - shift)
    last = np.minimum(last, after - gap - shift)
    kept = last > first
    return Pieces(first[kept], last[kept], unit[kept])


@dataclass(frozen=True)
class DecoderChoice:
    """The decoder of a model, and what speaks for it."""

    decode: str
    data: str | None = None  # what it was chosen on: "held-out" or "dev"; None where it was given, or nothing was there
    yardstick: Yardstick | None = None
    values: dict[str, float] | None = None  # of the yardstick, by decoder
    difference: float = 0.0  # to Viterbi, of the choice or, if it is Viterbi itself, of posterior decoding
    error: float = 0.0  # the standard error of that
    units: int = 0  # sequences or blocks that it was judged by
    span_bonus: float = 0.0
    whole: dict[str, float] | None = None  # shares of whole sequences labelled right, by decoder

    @property
    def counted_as(self) -> str:
        """The name of its counts among those of all decoders."""
        return BONUS if self.values is not None and BONUS in self.values and self.span_bonus else self.decode

    def to_dict(self) -> dict[str, Any]:
        about = {"decode": self.decode, **({"span_bonus": self.span_bonus} if self.span_bonus else {})}
        if self.values is None or self.yardstick is None:
            return about
        return {
            **about,
            "data": self.data,
            "metric": self.yardstick.name,
            **self.values,
            "difference": self.difference,
            "standard_error": self.error if math.isfinite(self.error) else None,
            "units": self.units,
            **({} if self.whole is None else {"whole_sequences": self.whole}),
        }


def try_bonus(yardstick: Yardstick, counts: dict[str, np.ndarray], counted: Callable[[float], np.ndarray]) -> float:
    """Add counts of Viterbi decoding with the bonus for spans that fits the F1 reached with it, and return the bonus.

    `counted` returns the counts with a bonus. Where the yardstick is not F1 of spans, there is none.
    """
    bonus = 0.0
    if yardstick.name == "f1":
        plain = reached = yardstick.value(counts[VITERBI])
        for _ in range(2):
            bonus = best_bonus(max(plain, reached))
            counts[BONUS] = counted(bonus)
            reached = yardstick.value(counts[BONUS])
    return bonus


def right_sequences(gold: np.ndarray, labels: np.ndarray, offsets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weight of sequences without a wrong label, and that of all, [2]; negative gold labels are unknown."""
    wrong = np.unique(np.searchsorted(offsets, np.flatnonzero((labels != gold) & (gold >= 0)), side="right") - 1)
    return np.array([weights.sum() - weights[wrong].sum(), weights.sum()])


def default_decoder(yardstick: Yardstick) -> str:
    """Return the decoder where no data decides: posterior decoding has the best expected accuracy."""
    return POSTERIOR if yardstick.of_labels.name == "accuracy" else VITERBI


def choose_decoder(
    yardstick: Yardstick,
    counts: Mapping[str, np.ndarray],
    data: str,
    span_bonus: float = 0.0,
    sequences: Mapping[str, np.ndarray] | None = None,  # of `right_sequences`, by decoder
    decisive: bool = True,  # False if models were fitted to too little for a decision against the default
) -> DecoderChoice:
    """Choose the decoder by counts of a yardstick on the same units, one for each decoder.

    The default decoder is kept unless the other is better by more than one standard error. A `span_bonus`, if there
    are counts with one, was not chosen by these data but follows from F1, so that it only must not be worse by as much.
    A yardstick that looks at probabilities cannot tell decoders apart: counts are those of `Yardstick.of_labels`.
    """
    usual, whole = default_decoder(yardstick), None
    if sequences is not None:
        whole = {name: float(right / total) for name, (right, total) in sequences.items() if total}
    values = {name: yardstick.value(own) for name, own in counts.items()}
    gains = {name: yardstick.difference(own, counts[usual]) for name, own in counts.items() if name != usual}
    better = [
        name for name, (gain, error) in gains.items() if round(gain + (error if name == BONUS else -error), DIGITS) > 0
    ]
    best = max(better if decisive or usual == VITERBI else [], key=lambda name: values[name], default=usual)
    difference, error = yardstick.difference(counts[POSTERIOR if best == VITERBI else best], counts[VITERBI])
    decode, bonus = (VITERBI, span_bonus) if best == BONUS else (best, 0.0)
    return DecoderChoice(decode, data, yardstick, values, difference, error, len(counts[VITERBI]), bonus, whole)
