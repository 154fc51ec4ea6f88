"""Features: what one entry of the configuration becomes once it is fitted to training data.

categorical    a column through a string transform, a field of integer codes for each offset of its window
conjunction    several categorical features taken together
real           numeric columns, or a number made of a column, scaled
attributes     the sparse rows of CRFsuite files; `template_feature` makes such rows of columns
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from .._lazy import cached_property
from ..config import RUN_TRANSFORMS, FeatureConfig
from ..corpora import (
    NUMBER_TRANSFORMS,
    QUANTILE,
    AttributeRows,
    CodedColumn,
    Columns,
    Corpus,
    Encode,
    Moments,
    TrainingColumns,
    WordVectors,
    position_weights,
    quantiles,
)
from ..errors import DataError
from ..kernels import NOTHING, UNSEEN
from ..maps import NO_PAIR, empty_slots, fill_slots, number_pairs
from ..runtime import OF_CHARACTERS, by_characters
from ..system import offsets_of, positions_within, shifted_real
from .group_scaling import GroupScaling

if TYPE_CHECKING:
    import scipy.sparse

# What stays below this can be squared and summed in single precision.
LARGEST = 1e18
SCALED = "\0scaled "  # what names of vectors begin with that hold columns scaled by group


def transformed(values: Sequence[str], config: FeatureConfig) -> Sequence[str]:
    """Apply the string transform of a feature to values.

    Shapes have X, x and d for runs of capital letters, small letters and digits, and others as they are:
    `McDonald's-9` is `XxXx'x-d`. The edges of `(Bern:` are `(x:`, and its kind is `capital`.
    """
    length = config.length or 0
    if config.transform == "identity":
        return values
    if config.transform in OF_CHARACTERS:
        return by_characters(values, config.transform)
    prefix = config.transform == "prefix"
    return [value[:length] if prefix else value[-length:] for value in values]


def shifted(codes: np.ndarray, size: int, offset: int, reach: int, offsets: np.ndarray) -> np.ndarray:
    """Return codes [N] of the positions `offset` away, with boundary symbols beyond the ends.

    Symbols follow the vocabulary: size..size+reach-1 for 1, 2, ... positions before the first one, and
    the next `reach` for those after the last.
    """
    if offset == 0:
        return codes
    N = len(codes)
    out = np.empty_like(codes)
    if offset < 0:
        out[-offset:] = codes[: max(N + offset, 0)]
    else:
        out[: max(N - offset, 0)] = codes[offset:]
    for distance in range(1, abs(offset) + 1):
        # Positions whose neighbour at `offset` lies `distance` beyond the end of their sequence.
        if offset < 0:
            beyond = offsets[:-1] + (-offset - distance)
            inside = beyond < offsets[1:]
            symbol = size + distance - 1
        else:
            beyond = offsets[1:] - 1 - (offset - distance)
            inside = beyond >= offsets[:-1]
            symbol = size + reach + distance - 1
        out[beyond[inside]] = symbol
    return out


@dataclass(frozen=True)
class Vocabulary:
    """Distinct strings and their codes."""

    values: tuple[str, ...]
    complete: bool  # False where rare values were left out: an unknown one may be such a one

    @cached_property
    def index(self) -> dict[str, int]:
        return {value: code for code, value in enumerate(self.values)}

    @classmethod
    def fit(cls, values: Sequence[str], counts: np.ndarray, min_count: int, distinct: bool = False) -> Vocabulary:
        """Make a vocabulary of values with their counts, which may be repeated unless they are `distinct`."""
        if distinct:
            frequent = np.flatnonzero(counts >= min_count)
            if len(frequent) == len(values):
                return cls(tuple(values), True)
            return cls(tuple(values[number] for number in frequent.tolist()), False)
        totals: dict[str, int] = {}
        for value, count in zip(values, counts.tolist(), strict=True):
            totals[value] = totals.get(value, 0) + count
        kept = tuple(value for value, count in totals.items() if count >= min_count)
        return cls(kept, len(kept) == len(totals))

    def encode(self, values: Sequence[str]) -> np.ndarray:
        if len(values) == len(self.values) and tuple(values) == self.values:  # those that it was made of
            return np.arange(len(values), dtype=np.int32)
        unknown = repeat(UNSEEN if self.complete else NOTHING)
        return np.fromiter(map(self.index.get, values, unknown), np.int32, len(values))


@dataclass(frozen=True)
class CategoricalFeature:
    """One column through a string transform: one field of codes for each offset of the window."""

    config: FeatureConfig
    column: int
    vocabulary: Vocabulary

    @cached_property
    def reach(self) -> int:
        return max(abs(offset) for offset in self.config.seen)

    @property
    def around(self) -> int:
        """Number of positions to each side that the value of a position depends on."""
        return 0

    @property
    def field_sizes(self) -> list[int]:
        return [len(self.vocabulary.values) + 2 * self.reach] * len(self.config.seen)

    def base(self, columns: Columns) -> np.ndarray:
        """Return the codes of the positions themselves, [N] int32."""
        return columns.codes(self.column, (self.config.transform, self.config.length), self.vocabulary, self.encode)

    def encode(self, values: Sequence[str]) -> np.ndarray:
        """Return the codes of some values of the column, [n] int32."""
        return self.vocabulary.encode(transformed(values, self.config))

    def fields(self, columns: Columns) -> list[np.ndarray]:
        base, size, offsets = self.base(columns), len(self.vocabulary.values), columns.corpus.offsets
        return [shifted(base, size, offset, self.reach, offsets) for offset in self.config.seen]

    def value(self, w: int, code: int) -> str:
        """Return the value of a code in the field of the w-th offset; all fields have the same codes."""
        return boundary_or(code, self.vocabulary.values, self.reach)


def boundary_or(code: int, values: Sequence[str], reach: int) -> str:
    """Return the value of a code, boundary symbols written as CRF++ writes them."""
    if code < len(values):
        return values[code]
    beyond = code - len(values)
    return f"_B-{beyond + 1}" if beyond < reach else f"_B+{beyond - reach + 1}"


def fit_categorical(config: FeatureConfig, column: int, columns: TrainingColumns, min_count: int) -> CategoricalFeature:
    values, counts = columns.value_counts(column)
    vocabulary = Vocabulary.fit(transformed(values, config), counts, min_count, config.transform == "identity")
    return CategoricalFeature(config, column, vocabulary)


class _PairTable:
    """Distinct pairs of codes (a, b), b below a base, numbered by their places among the sorted keys a * base + b."""

    def __init__(self, keys: np.ndarray, base: int):
        self.keys, self._base = keys, base  # [Q] int64, ascending
        self._slots = empty_slots(len(keys))
        fill_slots(keys, len(keys), self._slots)

    def numbers(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the numbers [n] int32 of pairs of int32 codes; negative for pairs that are not in the table."""
        found = np.empty(len(first), dtype=np.int32)
        number_pairs(first, second, self._base, self.keys, self._slots, -1, found)
        return found


def _distinct_pairs(first: np.ndarray, second: np.ndarray, base: int) -> tuple[np.ndarray, np.ndarray]:
    """Return sorted keys of the distinct pairs, and the number of each pair [n], -1 if one of its codes is negative."""
    keys, numbers = np.empty(len(first), dtype=np.int64), np.empty(len(first), dtype=np.int32)
    count = number_pairs(first, second, base, keys, empty_slots(len(first)), 0, numbers)
    order = np.argsort(keys[:count])
    place = np.full(count + 1, NO_PAIR, dtype=np.int32)  # the last one is for those that have no number
    place[order] = np.arange(count, dtype=np.int32)
    return keys[:count][order], place[numbers]


@dataclass(frozen=True)
class ConjunctionFeature:
    """Several categorical features taken together, one field for each offset of the window.

    Tuples of codes are numbered stage by stage: the first two parts, then that and the third, and so on.
    `keys[w][s]` are the sorted 64-bit keys that stage s met in training at the w-th offset.
    """

    config: FeatureConfig
    parts: tuple[CategoricalFeature, ...]
    keys: tuple[tuple[np.ndarray, ...], ...]
    complete: bool

    @property
    def field_sizes(self) -> list[int]:
        return [len(stages[-1]) for stages in self.keys]

    @cached_property
    def reach(self) -> int:
        """Largest distance at which a part is seen."""
        return max(abs(offset + shift) for _, offset in self.config.parts for shift in self.config.seen)

    @cached_property
    def sizes(self) -> list[int]:
        """Number of codes of each part but the first."""
        return [len(part.vocabulary.values) + 2 * self.reach for part in self.parts[1:]]

    def fields(self, columns: Columns) -> list[np.ndarray]:
        return [self.numbered(self.seen_codes(w, columns), w) for w in range(len(self.config.seen))]

    def seen_codes(self, w: int, columns: Columns) -> list[np.ndarray]:
        """Return the codes of every part seen from each position at the w-th offset, [N] int32 each."""
        shift, offsets = self.config.seen[w], columns.corpus.offsets
        return [
            shifted(part.base(columns), len(part.vocabulary.values), offset + shift, self.reach, offsets)
            for part, (_, offset) in zip(self.parts, self.config.parts, strict=True)
        ]

    @cached_property
    def _tables(self) -> tuple[tuple[_PairTable, ...], ...]:
        """The pairs of each stage, for each offset."""
        return tuple(tuple(map(_PairTable, stages, self.sizes)) for stages in self.keys)

    def numbered(self, codes: Sequence[np.ndarray], w: int) -> np.ndarray:
        """Return codes [n] of tuples whose parts have the given codes, [n] each, in the field of the w-th offset."""
        combined = codes[0]
        for part_codes, table in zip(codes[1:], self._tables[w], strict=True):
            combined = table.numbers(combined, part_codes)
        return np.where(combined < 0, np.int32(UNSEEN if self.complete else NOTHING), combined)

    def part_codes(self, w: int, code: Any) -> list[Any]:
        """Return the codes of the parts of a tuple, or of tuples [n], by its code in the field of the w-th offset."""
        codes: list[Any] = []
        for size, keys in zip(reversed(self.sizes), reversed(self.keys[w]), strict=True):
            code, last = divmod(keys[code], size)
            codes.append(last)
        return [code, *reversed(codes)]

    def part_values(self, w: int, code: int) -> list[str]:
        """Return the values of the parts of a tuple."""
        pairs = zip(self.parts, self.part_codes(w, code), strict=True)
        return [boundary_or(one, part.vocabulary.values, self.reach) for part, one in pairs]

    def value(self, w: int, code: int) -> str:
        """Return the values of the parts of a tuple, between slashes."""
        return "/".join(self.part_values(w, code))


def fit_conjunction(
    config: FeatureConfig, parts: tuple[CategoricalFeature, ...], columns: TrainingColumns, min_count: int
) -> ConjunctionFeature:
    """Number the tuples of the data, in a pass for each stage; what is numbered at once is one part of the data."""
    complete, offsets = all(part.vocabulary.complete for part in parts), range(len(config.seen))
    keys: list[list[np.ndarray]] = [[] for _ in offsets]
    feature, whole = ConjunctionFeature(config, parts, (), complete), isinstance(columns, Columns)
    carried: dict[int, tuple[np.ndarray, list[np.ndarray]]] = {}  # where all is one part: not worked out again
    for stage, size in enumerate(feature.sizes):
        tables = [list(map(_PairTable, own, feature.sizes)) for own in keys]
        found: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in offsets]  # keys of parts, and their counts
        for own in columns.parts:
            for w in offsets:
                if w in carried:
                    combined, codes = carried[w]
                else:
                    codes = feature.seen_codes(w, own)
                    gone = np.any([part_codes < 0 for part_codes in codes], axis=0)
                    combined = np.where(gone, np.int32(NOTHING), codes[0])
                    for part_codes, table in zip(codes[1:], tables[w], strict=False):
                        combined = table.numbers(combined, part_codes)
                seen, combined = _distinct_pairs(combined, codes[stage + 1], size)
                found[w].append((seen, np.bincount(combined[combined >= 0], minlength=len(seen))))
                # Merged now and then, so that all keys are not gone through for a few.
                if sum(len(new) for new, _ in found[w][1:]) > len(found[w][0][0]):
                    found[w] = [_merged_keys(found[w])]
                if whole:
                    carried[w] = combined, codes
        for w in offsets:
            seen, counts = _merged_keys(found[w])
            if stage == len(feature.sizes) - 1:
                complete &= bool((counts >= min_count).all())
                seen = seen[counts >= min_count]
            keys[w].append(seen)
    return replace(feature, keys=tuple(map(tuple, keys)), complete=complete)


def _merged_keys(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct keys of several parts, ascending, and the count of each."""
    if len(parts) == 1:
        return parts[0]
    keys, place = np.unique(np.concatenate([own for own, _ in parts]), return_inverse=True)
    counts = np.zeros(len(keys), dtype=np.int64)
    np.add.at(counts, place.ravel(), np.concatenate([own for _, own in parts]))
    return keys, counts


@dataclass(frozen=True)
class RealFeature:
    """Numeric columns, or a number made of a column, shifted and scaled: r columns for each offset."""

    config: FeatureConfig
    columns: tuple[int, ...]
    mean: np.ndarray  # [r]
    scale: np.ndarray  # [r]
    counts: dict[str, int] | None = None  # of the transform `frequency`: how often training had a value
    fill: np.ndarray | None = None  # [r] scaled values in the place of missing ones; None for zeros, the mean
    quantiles: np.ndarray | None = None  # [L, r] of the columns in the training data, for a transform that needs them
    table: WordVectors | None = None  # of a lookup: its numbers, and one that is 1 for values that it has not
    by_group: GroupScaling | None = None  # of the columns, before the transform

    @property
    def plain(self) -> bool:
        """True if it is made of columns as they are."""
        numbers = self.config.scale != "unit" and self.by_group is None
        return self.config.transform == "identity" and not self.is_vector and numbers

    @property
    def scaled_name(self) -> str:
        """The name, which no user can give, of vectors that hold its columns scaled by group."""
        return f"{SCALED}{self.config.name}"

    @property
    def is_vector(self) -> bool:
        """True if its numbers have no meaning one by one."""
        return self.config.vectors is not None or self.table is not None

    @property
    def indicates(self) -> bool:
        """True if the second half of its columns shows where values are missing."""
        return self.config.missing == "indicator"


def real_block(features: Sequence[RealFeature], columns: Columns) -> tuple[np.ndarray, tuple[tuple[str, int], ...]]:
    """Return columns of features, [N, R], each offset by offset, and the number of missing values of those with any.

    Neighbours with as many columns and the same window are worked out together: there may be hundreds of them.
    """
    offsets, N = columns.corpus.offsets, columns.corpus.positions
    blocks: list[np.ndarray] = []
    missing: list[tuple[str, int]] = []

    def alike(one: RealFeature) -> tuple:
        return len(one.mean), one.config.window, one.plain, one.indicates

    for (r, window, *_), run in groupby(features, alike):
        group = list(run)
        values, F, W = _scaled(group, columns, missing), len(group), len(window)
        if window != (0,):
            block = np.empty((N, F, W, r))
            for w, offset in enumerate(window):
                block[:, :, w] = shifted_real(values, offset, offsets).reshape(N, F, r)
            values = block.reshape(N, F * W * r)
        blocks.append(values)
    whole = blocks[0] if len(blocks) == 1 else np.hstack([np.empty((N, 0)), *blocks])
    return whole, tuple(missing)


def _scaled(features: Sequence[RealFeature], columns: Columns, missing: list[tuple[str, int]]) -> np.ndarray:
    """Return values of features of one kind at the positions themselves, [N, sum of r]; count missing ones."""
    if features[0].plain:
        where = [column for feature in features for column in feature.columns]
        raw = columns.real_rows(where, [name for feature in features for name in feature.config.columns])
    else:
        parts = [_raw_real(feature, columns) for feature in features]
        raw = parts[0] if len(parts) == 1 else np.hstack(parts)  # rows of vectors may be large
    lacking = np.isnan(raw)
    (N, width), F = raw.shape, len(features)
    if features[0].indicates:
        raw = np.concatenate([one.reshape(N, F, width // F) for one in (raw, lacking)], axis=2).reshape(N, 2 * width)
    mean, scale = (np.concatenate([getattr(one, name) for one in features]) for name in ("mean", "scale"))
    with np.errstate(over="ignore"):
        values = np.subtract(raw, mean, out=raw)  # which is not shared
        values /= scale
    if lacking.any():
        fill = np.concatenate([np.zeros(len(one.mean)) if one.fill is None else one.fill for one in features])
        np.copyto(values, fill, where=np.isnan(values))
        counts = lacking.reshape(N, F, width // F).sum(axis=(0, 2)).tolist()
        missing += [(one.config.name, count) for one, count in zip(features, counts, strict=True) if count]
    if not _small(values):
        for number, feature in enumerate(features):
            r = len(feature.mean)
            small = (np.abs(values[:, number * r : (number + 1) * r]) < LARGEST).all(axis=1)
            if not small.all():
                message = f"a value of '{feature.config.name}' is too large to compute with"
                raise DataError(message, columns.corpus.source, int(columns.corpus.lines[np.argmin(small)]))
    return values


def _small(values: np.ndarray) -> bool:
    return not values.size or bool(values.min() > -LARGEST and values.max() < LARGEST)


def _raw_real(feature: RealFeature, columns: Columns) -> np.ndarray:
    """Return unscaled numbers, [N, r]."""
    config, where = feature.config, feature.columns
    if feature.table is not None:
        table, column = feature.table, where[0] if where else -1
        rows = looked_up_codes(config, column, columns, table, table.numbers, -1)
        distinct, found = np.unique(rows, return_inverse=True)  # each row is computed once
        return vector_rows(feature, distinct)[found.ravel()]
    if config.vectors is not None:
        # In one order, whatever that of the file: sums over rows are rounded by it.
        return _rows(columns.corpus.vectors[config.vectors].astype(np.float64, order="C"), config)
    if config.transform == "identity":
        return _rows(_numbers(feature, columns), config)
    if config.transform in NUMBER_TRANSFORMS:
        transform, offsets = NUMBER_TRANSFORMS[config.transform], columns.corpus.offsets
        width = config.width or transform.width or 1
        return transform.function(_numbers(feature, columns), offsets, width, feature.quantiles)
    if config.transform == "position":
        t, lengths = positions_within(columns.corpus.offsets), np.diff(columns.corpus.offsets)
        return (t / np.maximum(np.repeat(lengths, lengths) - 1, 1))[:, None]
    values, inverse = columns.distinct(where[0])
    if config.transform in RUN_TRANSFORMS:
        return 1 / (1 + _within_runs(inverse, columns.corpus.offsets, config.transform == "end"))[:, None]
    if config.transform == "length":
        numbers = np.array([len(value) for value in values], dtype=np.float64)
    else:
        assert feature.counts is not None
        numbers = np.log1p([feature.counts.get(value, 0) for value in values])
    return numbers[inverse][:, None]


def _numbers(feature: RealFeature, columns: Columns) -> np.ndarray:
    """Return the columns of a feature as numbers, [N, r], scaled by group if it is."""
    known = columns.corpus.vectors.get(feature.scaled_name)
    if known is not None:
        return np.array(known)
    raw = columns.real_rows(feature.columns, feature.config.columns)
    return raw if feature.by_group is None else feature.by_group.scaled(columns, raw)


def vector_rows(feature: RealFeature, numbers: np.ndarray) -> np.ndarray:
    """Return unscaled numbers [n, r] of rows of a feature's table, -1 for words that it has not."""
    assert feature.table is not None
    return np.hstack([_rows(feature.table.vectors(numbers), feature.config), (numbers < 0)[:, None]])


def _within_runs(codes: np.ndarray, offsets: np.ndarray, backwards: bool) -> np.ndarray:
    """Return the number of positions since a run of equal codes began in its sequence, or until it ends, [N]."""
    N = len(codes)
    changes = np.flatnonzero(codes[1:] != codes[:-1]) + 1
    begins = np.union1d(offsets[offsets < N], changes)
    lengths = np.diff(np.append(begins, N))
    since = np.arange(N) - np.repeat(begins, lengths)
    return np.repeat(lengths, lengths) - 1 - since if backwards else since


def looked_up_codes(
    config: FeatureConfig, column: int, columns: Columns, owner: object, encode: Encode, none: int
) -> np.ndarray:
    """Return what `encode` makes of the value of each position, [N] int32, in a feature with a lookup.

    It is the value of the column, or of the first attribute that is `column=value`; `none` where there is none.
    """
    rows = columns.corpus.attributes
    if rows is None:
        return columns.codes(column, ("lookup", config.length), owner, encode)
    names = CodedColumn.of(rows.names)
    values, other = attribute_values(names.values, config.columns[0]), np.iinfo(np.int32).min
    numbers = np.full(len(names.values), other, dtype=np.int32)
    numbers[list(values)] = encode(list(values.values()))
    own = numbers[names.codes]  # [nnz]
    there = np.flatnonzero(own > other)[::-1]  # the first one of a position is put last
    out = np.full(columns.corpus.positions, none, dtype=np.int32)
    out[np.searchsorted(rows.indptr, there, side="right") - 1] = own[there]
    return out


def attribute_values(names: Sequence[str], key: str) -> dict[int, str]:
    """Return the values of those attributes that are `key=value` or `key:value`, by their place in `names`."""
    begins, size = (f"{key}=", f"{key}:"), len(key) + 1
    return {place: name[size:] for place, name in enumerate(names) if name.startswith(begins)}


def _rows(numbers: np.ndarray, config: FeatureConfig) -> np.ndarray:
    """Scale rows to length 1 in place under `scale: unit`; rows of zeros stay."""
    if config.scale != "unit":
        return numbers
    largest = np.fmax.reduce(np.abs(numbers), axis=1)
    numbers /= np.where(largest > 0, largest, 1.0)[:, None]  # squares of it may be too large, or nothing
    lengths = np.sqrt(np.nansum(numbers**2, axis=1))
    numbers /= np.where(lengths > 0, lengths, 1.0)[:, None]
    return numbers


def real_columns(config: FeatureConfig, count: int) -> list[str]:
    """Return the names of the `count` numbers of a real feature."""
    if config.vectors is not None:
        return [f"{config.name}.{number}" for number in range(count)]
    if config.lookup is not None:
        return [*(f"{config.name}.{number}" for number in range(count - 1)), f"{config.name}.unknown"]
    return [column + config.suffix for column in config.columns] if count > 1 else [config.name]


def fit_real(
    config: FeatureConfig,
    where: tuple[int, ...],
    columns: TrainingColumns,
    table: WordVectors | None = None,
    group: int = -1,  # the column of the names of groups
    weight: int = -1,  # the column of the weights of sequences
) -> RealFeature:
    """Fit a feature of numbers.

    Means and spreads are weighted, so that a weight of 2 is that of a sequence that comes twice. Quantiles, of `rank`
    and `clip`, are not.
    """
    counts = None
    if config.transform == "frequency":
        values, found = columns.value_counts(where[0])
        counts = dict(zip(values, found.tolist(), strict=True))
    unscaled = RealFeature(config, where, np.empty(0), np.empty(0), counts, table=table)
    if config.by_group:
        standard = replace(config, transform="identity", scale="standard", missing="mean")
        every = fit_real(standard, where, columns, weight=weight)
        parts = ((part, part.real_rows(where, config.columns)) for part in columns.parts)
        unscaled = replace(unscaled, by_group=GroupScaling.fit(every.mean, every.scale, group, parts))
    if config.transform in NUMBER_TRANSFORMS and (levels := NUMBER_TRANSFORMS[config.transform].levels) is not None:
        known = (_numbers(unscaled, part) for part in columns.parts)
        unscaled = replace(unscaled, quantiles=quantiles(known, levels(config.quantile or QUANTILE)))
    moments: Moments | None = None
    for part in columns.parts:
        raw = _raw_real(unscaled, part)
        own = Moments.of(raw, position_weights(part, weight, "weight"))
        for r in np.flatnonzero(~(np.isfinite(own.mean) & np.isfinite(own.deviation))):
            line, name = int(part.corpus.lines[np.nanargmax(np.abs(raw[:, r]))]), real_columns(config, raw.shape[1])[r]
            raise DataError(f"a value of '{name}' is too large to be scaled", part.corpus.source, line)
        moments = own if moments is None else moments.plus(own)
    assert moments is not None
    for r in np.flatnonzero(moments.count == 0):
        what = f"column '{config.columns[r]}'" if config.transform == "identity" else f"feature '{config.name}'"
        message = f"{what} has no numbers, only missing ones (leave it out)"
        raise DataError(message, columns.corpus.source, settings=["missing"])
    mean, scale = moments.mean, moments.deviation
    if table is not None:
        about = f"embeddings of {table.source}: {len(table.words):,} words, {table.width:,} numbers each"
        columns.warnings.append(f"{about}; {1 - mean[-1]:.1%} of positions have a vector")
        if mean[-1] == 1:
            there = f"no value of '{config.columns[0]}' is a word of {table.source}"
            raise DataError(f"{there}: is it the right column?", columns.corpus.source, settings=["lookup_column"])
    # A column of zeros and ones is a yes or no: its units are already those of a categorical value.
    plain = moments.binary if config.scale == "auto" else np.full(len(mean), config.scale in ("none", "unit"))
    # Vectors have no missing values.
    fill = np.where(plain, mean, 0.0) if plain.any() and not unscaled.is_vector else None
    mean = np.where(plain, 0.0, mean)
    # What varies by no more than rounding is constant. Its mean is rounded too, hence the division.
    size = np.abs(mean)
    scale = np.where(plain, 1.0, np.where(scale <= 1e-12 * size, np.maximum(size, 1.0), scale))
    if config.missing == "indicator":
        zeros = np.zeros_like(mean)
        mean, scale = np.concatenate([mean, zeros]), np.concatenate([scale, np.ones_like(scale)])
        fill = None if fill is None else np.concatenate([fill, zeros])
    return replace(unscaled, mean=mean, scale=scale, fill=fill)


@dataclass(frozen=True)
class AttributeFeature:
    """The attributes of CRFsuite files, as sparse rows."""

    config: FeatureConfig
    vocabulary: Vocabulary

    def rows(self, columns: Columns) -> AttributeRows:
        """Return names and values as they stand in the data."""
        assert columns.corpus.attributes is not None
        return columns.corpus.attributes

    def block(self, columns: Columns) -> tuple[scipy.sparse.csr_array, np.ndarray]:
        """Return rows [N, A], and the squared length of unseen attributes [N]."""
        rows = self.rows(columns)
        names = CodedColumn.of(rows.names)
        known = self.vocabulary.encode(names.values)  # [distinct]
        strange = np.where(known == UNSEEN, np.cumsum(known == UNSEEN, dtype=np.int32) - 1, NOTHING).astype(np.int32)
        bag = _added_up(rows, names.codes, known, len(self.vocabulary.values), columns.corpus)
        if not (known == UNSEEN).any():
            return bag, np.zeros(columns.corpus.positions)
        unseen = _added_up(rows, names.codes, strange, int(strange.max()) + 1, columns.corpus)
        return bag, unseen.multiply(unseen).sum(axis=1)


def _added_up(
    rows: AttributeRows, codes: np.ndarray, numbers: np.ndarray, size: int, corpus: Corpus
) -> scipy.sparse.csr_array:
    """Return the attributes whose numbers are not negative, those that stand twice at a position added up.

    `codes` [nnz] are indices of each into the `numbers`.
    """
    import scipy.sparse

    columns, values, indptr = numbers[codes], rows.values, rows.indptr.copy()  # which are added up in place
    known = columns >= 0
    if not known.all():
        indptr = offsets_of(known)[indptr]
        columns, values = columns[known], values[known]
    shape = (corpus.positions, size)
    small = np.int32 if len(columns) < np.iinfo(np.int32).max else np.int64  # columns get the type of ends, too
    out = scipy.sparse.csr_array((np.array(values), columns, indptr.astype(small)), shape=shape)
    out.sum_duplicates()
    if not _small(out.data):
        t = int(np.searchsorted(out.indptr, np.argmin(np.abs(out.data) < LARGEST), side="right")) - 1
        message = "the weight of an attribute is too large to compute with"
        raise DataError(message, corpus.source, int(corpus.lines[t]))
    if (out.data == 1).all():
        out.data = np.broadcast_to(1.0, out.data.shape)  # one number in memory
    return out


Feature = CategoricalFeature | ConjunctionFeature | RealFeature | AttributeFeature


_PART = re.compile(r"(.+)\[([^\[\]]+)\]", re.DOTALL)


def window_text(offsets: Sequence[int]) -> str:
    """Return `-1..1`, `0`, or `-2,0,2` where offsets between them are left out, `-4..4/2` where these are many.

    >>> window_text([-1, 0, 1]), window_text([0]), window_text([-2, 0, 2]), window_text([-4, -2, 0, 2, 4])
    ('-1..1', '0', '-2,0,2', '-4..4/2')
    """
    for step in {1, offsets[1] - offsets[0] if len(offsets) > 3 else 1}:
        if len(offsets) > 1 and list(offsets) == list(range(offsets[0], offsets[-1] + 1, step)):
            return f"{offsets[0]}..{offsets[-1]}" + (f"/{step}" if step > 1 else "")
    return ",".join(map(str, offsets))


@dataclass(frozen=True)
class View:
    """Some offsets of a feature, by their places in its window."""

    feature: Feature
    places: tuple[int, ...]

    @property
    def offsets(self) -> tuple[int, ...]:
        return tuple(self.feature.config.seen[place] for place in self.places)

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """Columns of the feature that belong to it; none of attributes, which stand apart."""
        if isinstance(self.feature, AttributeFeature):
            return ()
        width = len(self.feature.mean) if isinstance(self.feature, RealFeature) else 1
        return tuple(place * width + column for place in self.places for column in range(width))

    @property
    def name(self) -> str:
        name = self.feature.config.name
        return name if len(self.places) == len(self.feature.config.seen) else f"{name}[{window_text(self.offsets)}]"

    @classmethod
    def of(cls, feature: Feature, offsets: Sequence[int] | None = None) -> View:
        """Return a view of the given offsets of a feature's window, which has them; None for all."""
        window = feature.config.seen
        return cls(feature, tuple(range(len(window)) if offsets is None else map(window.index, offsets)))


def view_called(name: str, features: dict[str, Feature]) -> View | None:
    """Return the view of that name; None where there is no such feature or offset."""
    if name in features:
        return View.of(features[name])
    found = _PART.fullmatch(name)
    if found is None or found[1] not in features:
        return None
    feature = features[found[1]]
    span, _, step = found[2].partition("/")
    first, dots, last = span.partition("..")
    try:
        ends = range(int(first), int(last) + 1, int(step or 1)) if dots else map(int, span.split(","))
        offsets = list(ends)
        view = View.of(feature, offsets)
    except ValueError:  # no number, or none of the window
        return None
    return view if view.places and name == view.name else None
