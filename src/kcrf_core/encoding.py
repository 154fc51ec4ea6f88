"""From a corpus and a configuration to numbers: vocabularies, scaling, windows.

An encoding is fitted once, on training data, and used as it is for new data. Columns become integer
codes once, on their distinct values; a window is the same codes shifted, with symbols of its own beyond
the ends of a sequence. No string is ever built per feature and position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from .config import Config, FeatureConfig, TermConfig, matching_features, parse_config
from .corpus import AttributeRows, Corpus
from .dataset import NOTHING, UNSEEN, Dataset, Inputs
from .errors import ConfigError, DataError
from .storage import Contents, pack_strings

CATEGORICAL_WINDOW = (-2, -1, 0, 1, 2)
REAL_WINDOW = (0,)

# A column of numbers with a few words in it is far more often a mistake than a vocabulary.
MOSTLY_NUMBERS = 0.95

_NUMBER_CHARACTERS = frozenset("0123456789+-.eE")


# ----------------------------------------------------------------------------- columns of one corpus


class Columns:
    """Columns of a corpus by their distinct values, each worked out once."""

    def __init__(self, corpus: Corpus):
        self.corpus = corpus
        self._distinct: dict[int, tuple[list[str], np.ndarray]] = {}
        self._numbers: dict[int, np.ndarray | None] = {}

    def distinct(self, column: int) -> tuple[list[str], np.ndarray]:
        """Distinct values in order of appearance, and for each position the number of its value [N]."""
        if column not in self._distinct:
            values = self.corpus.columns[column]
            numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
            inverse = np.fromiter(map(numbers.__getitem__, values), np.int32, len(values))
            self._distinct[column] = (list(numbers), inverse)
        return self._distinct[column]

    def numbers(self, column: int) -> np.ndarray | None:
        """The column as finite numbers [N], or None where it is not one."""
        if column not in self._numbers:
            self._numbers[column] = _finite_numbers(self.corpus.columns[column])
        return self._numbers[column]

    def real(self, column: int, name: str) -> np.ndarray:
        """The column as numbers; an error names the first line that is none."""
        numbers = self.numbers(column)
        if numbers is None:
            t, value = next(self._words(column))
            raise DataError(
                f"'{value}' in column {column + 1} ({name}) is not a finite number; correct it, "
                "or declare the column with 'type: categorical'",
                self.corpus.source,
                int(self.corpus.lines[t]),
            )
        return numbers

    def looks_real(self, column: int, name: str) -> bool:
        """Whether a column without a declared type holds numbers."""
        if self.numbers(column) is not None:
            return True
        words = sum(1 for _ in self._words(column))
        if words <= (1 - MOSTLY_NUMBERS) * self.corpus.positions:
            self.real(column, name)  # raises, with the line
        return False

    def _words(self, column: int) -> Iterator[tuple[int, str]]:
        values, inverse = self.distinct(column)
        bad = np.array([_finite_numbers([value]) is None for value in values])
        return ((int(t), values[inverse[t]]) for t in np.flatnonzero(bad[inverse]))


def _finite_numbers(values: Sequence[str]) -> np.ndarray | None:
    # The set of characters keeps out what float() would take: nan, inf, 1_000, digits of other scripts.
    if not _NUMBER_CHARACTERS.issuperset("".join(values)):
        return None
    try:
        numbers = np.fromiter(map(float, values), np.float64, len(values))
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None


# ----------------------------------------------------------------------------- transforms


def _shape(value: str) -> str:
    """Capital, small, digit and other as X x d and themselves, runs shortened: `McDonald's-9` is `XxXx'x-d`."""
    out: list[str] = []
    for character in value:
        kind = "X" if character.isupper() else "x" if character.isalpha() else "d" if character.isdigit() else character
        if not out or out[-1] != kind:
            out.append(kind)
    return "".join(out)


def _string_transform(transform: str, length: int | None) -> Callable[[str], str]:
    return {
        "identity": lambda value: value,
        "lower": str.lower,
        "prefix": lambda value: value[:length],
        "suffix": lambda value: value[-length:],
        "shape": _shape,
    }[transform]


def shifted(codes: np.ndarray, size: int, offset: int, reach: int, offsets: np.ndarray) -> np.ndarray:
    """Codes [N] seen `offset` positions away, with boundary symbols beyond the ends.

    Symbols follow the vocabulary: size..size+reach-1 for 1, 2, ... positions before the first one, and
    the next `reach` for those after the last.
    """
    if offset == 0:
        return codes
    N = len(codes)
    out = np.empty_like(codes)
    if offset < 0:
        out[-offset:] = codes[: N + offset] if -offset < N else codes[:0]
    else:
        out[: N - offset] = codes[offset:] if offset < N else codes[:0]
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


def shifted_real(values: np.ndarray, offset: int, offsets: np.ndarray) -> np.ndarray:
    """Rows [N, r] seen `offset` positions away; zero, the mean of a standardised column, beyond the ends."""
    if offset == 0:
        return values
    N = len(values)
    out = np.zeros_like(values)
    t = np.arange(N)
    sequence = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    source = t + offset
    inside = (source >= offsets[:-1][sequence]) & (source < offsets[1:][sequence])
    out[inside] = values[source[inside]]
    return out


# ----------------------------------------------------------------------------- fitted features


@dataclass(frozen=True)
class Vocabulary:
    """Distinct strings and their codes."""

    values: tuple[str, ...]
    complete: bool  # False where rare values were left out: an unknown one may be such a one

    @cached_property
    def index(self) -> dict[str, int]:
        return {value: code for code, value in enumerate(self.values)}

    @property
    def missing(self) -> int:
        return UNSEEN if self.complete else NOTHING

    @classmethod
    def fit(cls, values: Sequence[str], counts: np.ndarray, min_count: int) -> Vocabulary:
        """From possibly repeated values with their counts."""
        totals: dict[str, int] = {}
        for value, count in zip(values, counts.tolist(), strict=True):
            totals[value] = totals.get(value, 0) + count
        kept = tuple(value for value, count in totals.items() if count >= min_count)
        return cls(kept, len(kept) == len(totals))

    def encode(self, values: Sequence[str]) -> np.ndarray:
        get, missing = self.index.get, self.missing
        return np.fromiter((get(value, missing) for value in values), np.int32, len(values))


@dataclass(frozen=True)
class CategoricalFeature:
    """One column through a string transform: one field of codes for each offset of the window."""

    config: FeatureConfig
    column: int
    vocabulary: Vocabulary

    @property
    def reach(self) -> int:
        return max(abs(offset) for offset in self.config.window)

    @property
    def field_sizes(self) -> list[int]:
        return [len(self.vocabulary.values) + 2 * self.reach] * len(self.config.window)

    def base(self, columns: Columns) -> np.ndarray:
        """Codes of the positions themselves, [N] int32."""
        values, inverse = columns.distinct(self.column)
        transform = _string_transform(self.config.transform, self.config.length)
        return self.vocabulary.encode([transform(value) for value in values])[inverse]

    def fields(self, columns: Columns) -> list[np.ndarray]:
        base, size = self.base(columns), len(self.vocabulary.values)
        offsets = columns.corpus.offsets
        return [shifted(base, size, offset, self.reach, offsets) for offset in self.config.window]

    def value(self, code: int) -> str:
        return boundary_or(code, self.vocabulary.values, self.reach)


def boundary_or(code: int, values: Sequence[str], reach: int) -> str:
    """The value of a code, boundary symbols written as CRF++ writes them."""
    if code < len(values):
        return values[code]
    beyond = code - len(values)
    return f"_B-{beyond + 1}" if beyond < reach else f"_B+{beyond - reach + 1}"


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

    def fields(self, columns: Columns) -> list[np.ndarray]:
        missing = UNSEEN if self.complete else NOTHING
        out = []
        for offset, stages in zip(self.config.window, self.keys, strict=True):
            codes, gone = _part_codes(self.config, self.parts, offset, columns)
            combined = codes[0].astype(np.int64)
            for (part, part_codes), keys in zip(zip(self.parts[1:], codes[1:], strict=True), stages, strict=True):
                wanted = combined * _part_size(part, self.config) + part_codes
                place = np.searchsorted(keys, wanted)
                place[place == len(keys)] = 0
                found = (keys[place] == wanted) if len(keys) else np.zeros(len(wanted), bool)
                gone |= ~found
                combined = place
            out.append(np.where(gone, missing, combined).astype(np.int32))
        return out


def _part_reach(config: FeatureConfig) -> int:
    return max(abs(offset + shift) for _, offset in config.parts for shift in config.window)


def _part_size(part: CategoricalFeature, config: FeatureConfig) -> int:
    return len(part.vocabulary.values) + 2 * _part_reach(config)


def _part_codes(
    config: FeatureConfig, parts: Sequence[CategoricalFeature], shift: int, columns: Columns
) -> tuple[list[np.ndarray], np.ndarray]:
    """Codes of every part seen from each position, and where one of them has no value."""
    reach, offsets = _part_reach(config), columns.corpus.offsets
    codes = [
        shifted(part.base(columns), len(part.vocabulary.values), offset + shift, reach, offsets)
        for part, (_, offset) in zip(parts, config.parts, strict=True)
    ]
    gone = np.zeros(len(codes[0]), dtype=bool)
    for part_codes in codes:
        gone |= part_codes < 0
    return codes, gone


def _fit_conjunction(
    config: FeatureConfig, parts: tuple[CategoricalFeature, ...], columns: Columns, min_count: int
) -> ConjunctionFeature:
    keys, complete = [], all(part.vocabulary.complete for part in parts)
    for shift in config.window:
        codes, gone = _part_codes(config, parts, shift, columns)
        combined, stages = codes[0].astype(np.int64), []
        for part, part_codes in zip(parts[1:], codes[1:], strict=True):
            wanted = combined * _part_size(part, config) + part_codes
            last = len(stages) == len(parts) - 2
            seen, counts = np.unique(wanted[~gone], return_counts=True)
            if last and min_count > 1:
                complete &= bool((counts >= min_count).all())
                seen = seen[counts >= min_count]
            stages.append(seen)
            if not last:
                combined = np.minimum(np.searchsorted(seen, wanted), max(len(seen) - 1, 0))
        keys.append(tuple(stages))
    return ConjunctionFeature(config, parts, tuple(keys), complete)


@dataclass(frozen=True)
class RealFeature:
    """Numeric columns, or a number made of a column, shifted and scaled: r columns for each offset."""

    config: FeatureConfig
    columns: tuple[int, ...]
    mean: np.ndarray  # [r]
    scale: np.ndarray  # [r]
    counts: dict[str, int] | None = None  # of the transform `frequency`: how often training had a value

    def block(self, columns: Columns) -> np.ndarray:
        """[N, r * offsets], offset by offset."""
        raw = _raw_real(self.config, self.columns, columns, self.counts)
        with np.errstate(over="ignore"):
            values = (raw - self.mean) / self.scale
        if not np.isfinite(values).all():
            t = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
            raise DataError(
                f"a value of '{self.config.name}' is too large to be scaled",
                columns.corpus.source,
                int(columns.corpus.lines[t]),
            )
        return np.hstack([shifted_real(values, o, columns.corpus.offsets) for o in self.config.window])


def _raw_real(
    config: FeatureConfig, where: Sequence[int], columns: Columns, counts: dict[str, int] | None
) -> np.ndarray:
    """Unscaled numbers, [N, r]."""
    if config.transform == "identity":
        return np.stack(
            [columns.real(c, name) for c, name in zip(where, config.columns, strict=True)], axis=1
        )
    if config.transform == "position":
        offsets = columns.corpus.offsets
        lengths = np.diff(offsets)
        t = np.arange(columns.corpus.positions) - np.repeat(offsets[:-1], lengths)
        return (t / np.maximum(np.repeat(lengths, lengths) - 1, 1))[:, None]
    values, inverse = columns.distinct(where[0])
    if config.transform == "length":
        numbers = np.array([len(value) for value in values], dtype=np.float64)
    else:
        numbers = np.log1p([counts.get(value, 0) for value in values])
    return numbers[inverse][:, None]


def _fit_real(config: FeatureConfig, where: tuple[int, ...], columns: Columns) -> RealFeature:
    counts = None
    if config.transform == "frequency":
        values, inverse = columns.distinct(where[0])
        counts = dict(zip(values, np.bincount(inverse, minlength=len(values)).tolist(), strict=True))
    raw = _raw_real(config, where, columns, counts)
    with np.errstate(over="ignore", invalid="ignore"):
        mean, scale = raw.mean(axis=0), raw.std(axis=0)
    for r, name in enumerate(config.columns if len(config.columns) == raw.shape[1] else [config.name]):
        if not np.isfinite(mean[r]) or not np.isfinite(scale[r]):
            raise DataError(f"column '{name}' has values too large to be scaled", columns.corpus.source)
    if config.scale == "none":
        plain = np.ones(raw.shape[1], dtype=bool)
    elif config.scale == "auto":
        # A column of zeros and ones is a yes or no: its units are already those of a categorical value.
        plain = ((raw == 0) | (raw == 1)).all(axis=0)
    else:
        plain = np.zeros(raw.shape[1], dtype=bool)
    mean = np.where(plain, 0.0, mean)
    constant = scale <= 1e-12 * np.maximum(np.abs(mean), 1e-300)
    return RealFeature(config, where, mean, np.where(plain | constant, 1.0, scale), counts)


@dataclass(frozen=True)
class AttributeFeature:
    """The attributes of CRFsuite files, as sparse rows."""

    config: FeatureConfig
    vocabulary: Vocabulary

    def block(self, columns: Columns) -> tuple[scipy.sparse.csr_array, np.ndarray]:
        """Rows [N, A], and the squared length of what is unseen [N]."""
        rows = columns.corpus.attributes
        codes = self.vocabulary.encode(rows.names)
        N, position = columns.corpus.positions, np.repeat(np.arange(columns.corpus.positions), np.diff(rows.indptr))
        known = codes >= 0
        bag = scipy.sparse.csr_array(
            (rows.values[known], (position[known], codes[known])), shape=(N, len(self.vocabulary.values))
        )
        bag.sum_duplicates()
        unseen = np.bincount(position[codes == UNSEEN], rows.values[codes == UNSEEN] ** 2, minlength=N)
        return bag, unseen


Feature = CategoricalFeature | ConjunctionFeature | RealFeature | AttributeFeature


# ----------------------------------------------------------------------------- the encoding


@dataclass(frozen=True)
class Encoding:
    """Everything needed to turn a corpus into the numbers that a model was trained on."""

    format: str  # conll or crfsuite
    columns: tuple[str, ...]  # names, the label's last
    labels: tuple[str, ...]
    features: tuple[Feature, ...]

    @property
    def width(self) -> int:
        """Columns of a file with labels."""
        return len(self.columns)

    @property
    def names(self) -> list[str]:
        return [feature.config.name for feature in self.features]

    def with_labels(self, corpus: Corpus) -> bool:
        """Whether the corpus carries gold labels; an error where its columns do not fit."""
        if (corpus.attributes is not None) != (self.format == "crfsuite"):
            raise DataError(f"not in the format of the training data, {self.format}", corpus.source)
        if corpus.width == self.width:
            return True
        if corpus.width == self.width - 1:
            return False
        raise DataError(
            f"{corpus.width} columns, expected {self.width} with labels or {self.width - 1} without",
            corpus.source,
            int(corpus.lines[0]) if corpus.positions else None,
        )

    def encode(self, corpus: Corpus, columns: Columns | None = None) -> Dataset:
        columns = columns or Columns(corpus)
        labels = None
        if self.with_labels(corpus):
            values, inverse = columns.distinct(self.width - 1)
            numbers = {label: number for number, label in enumerate(self.labels)}
            labels = np.array([numbers.get(value, -1) for value in values], np.int32)[inverse]
        N = corpus.positions
        codes: list[np.ndarray] = []
        real: list[np.ndarray] = []
        bag, bag_unseen = None, np.zeros(N)
        for feature in self.features:
            if isinstance(feature, RealFeature):
                real.append(feature.block(columns))
            elif isinstance(feature, AttributeFeature):
                bag, bag_unseen = feature.block(columns)
            else:
                codes.extend(feature.fields(columns))
        return Dataset(
            offsets=corpus.offsets,
            lines=corpus.lines,
            labels=labels,
            weights=corpus.weights,
            codes=np.stack(codes, axis=1) if codes else np.zeros((N, 0), np.int32),
            real=np.hstack(real) if real else np.zeros((N, 0)),
            bag=bag,
            bag_unseen=bag_unseen,
        )

    def inputs(self, dataset: Dataset, names: Sequence[str]) -> Inputs:
        """The blocks of the named features."""
        code_columns: list[int] = []
        real_columns: list[int] = []
        sizes: list[int] = []
        with_bag = False
        next_code = next_real = 0
        for feature in self.features:
            wanted = feature.config.name in names
            if isinstance(feature, RealFeature):
                count = len(feature.mean) * len(feature.config.window)
                real_columns.extend(range(next_real, next_real + count) if wanted else ())
                next_real += count
            elif isinstance(feature, AttributeFeature):
                with_bag |= wanted
            else:
                count = len(feature.field_sizes)
                if wanted:
                    code_columns.extend(range(next_code, next_code + count))
                    sizes.extend(feature.field_sizes)
                next_code += count
        codes = dataset.codes[:, code_columns]
        unseen = (codes == UNSEEN).sum(axis=1).astype(np.float64)
        return Inputs(
            codes=np.maximum(codes, NOTHING),
            sizes=np.array(sizes, dtype=np.int64),
            real=np.ascontiguousarray(dataset.real[:, real_columns]),
            bag=dataset.bag if with_bag else None,
            unseen=unseen + dataset.bag_unseen if with_bag else unseen,
        )

    def empty_dataset(self) -> Dataset:
        """A dataset of no position, for its shapes."""
        source = "no data"
        nothing = np.zeros(0, dtype=np.int64)
        attributes = None
        if self.format == "crfsuite":
            attributes = AttributeRows(np.zeros(1, dtype=np.int64), [], np.zeros(0))
        columns: tuple[list[str], ...] = tuple([] for _ in self.columns)
        return self.encode(Corpus(source, columns, np.zeros(1, np.int64), nothing, None, attributes))

    def term_features(self, term: TermConfig) -> list[str]:
        return matching_features(term.features, self.names, term.name)

    def describe(self, dataset: Dataset, t: int) -> list[str]:
        """What position t looks like, feature by feature: `word[-1]=the`, `f0[0]=0.52`, `attribute:2`."""
        out: list[str] = []
        next_code = next_real = 0
        for feature in self.features:
            name = feature.config.name
            if isinstance(feature, AttributeFeature):
                row = slice(dataset.bag.indptr[t], dataset.bag.indptr[t + 1])
                pairs = zip(dataset.bag.indices[row].tolist(), dataset.bag.data[row].tolist(), strict=True)
                for code, value in pairs:
                    out.append(feature.vocabulary.values[code] + ("" if value == 1 else f":{value:g}"))
                continue
            for offset in feature.config.window:
                place = f"{name}[{offset}]"
                if isinstance(feature, RealFeature):
                    for r in range(len(feature.mean)):
                        label = place if len(feature.mean) == 1 else f"{feature.config.columns[r]}[{offset}]"
                        out.append(f"{label}={dataset.real[t, next_real]:.4g}")
                        next_real += 1
                    continue
                code = int(dataset.codes[t, next_code])
                next_code += 1
                if code == UNSEEN:
                    out.append(f"{place}=<unseen>")
                elif code == NOTHING:
                    out.append(f"{place}=<rare>")
                elif isinstance(feature, CategoricalFeature):
                    out.append(f"{place}={feature.value(code)}")
                else:
                    out.append(f"{place}=#{code}")
        return out

    # ------------------------------------------------------------------------- storage

    def same_as(self, other: Encoding) -> bool:
        """Whether both give the same numbers for the same corpus."""
        (header, arrays), (others, other_arrays) = self.pack(), other.pack()
        return (
            header == others
            and arrays.keys() == other_arrays.keys()
            and all(np.array_equal(array, other_arrays[name]) for name, array in arrays.items())
        )

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Header entries and arrays; `unpack` makes an equal encoding of them."""
        header: dict[str, Any] = {"format": self.format, "columns": list(self.columns), "features": []}
        arrays = pack_strings(self.labels, "labels")
        config = Config(features=tuple(feature.config for feature in self.features)).to_dict()
        for number, (feature, settings) in enumerate(zip(self.features, config["features"], strict=True)):
            at = f"feature{number}"
            entry: dict[str, Any] = {"config": settings}
            if isinstance(feature, CategoricalFeature):
                entry |= {"kind": "categorical"} | _pack_categorical(feature, at, arrays)
            elif isinstance(feature, ConjunctionFeature):
                entry |= {"kind": "conjunction", "complete": feature.complete, "parts": []}
                for p, part in enumerate(feature.parts):
                    part_config = Config(features=(part.config,)).to_dict()["features"][0]
                    packed = _pack_categorical(part, f"{at}.part{p}", arrays)
                    entry["parts"].append({"config": part_config} | packed)
                for w, stages in enumerate(feature.keys):
                    for s, keys in enumerate(stages):
                        arrays[f"{at}.keys{w}.{s}"] = keys
            elif isinstance(feature, RealFeature):
                entry |= {"kind": "real", "columns": list(feature.columns), "counted": feature.counts is not None}
                arrays[f"{at}.mean"], arrays[f"{at}.scale"] = feature.mean, feature.scale
                if feature.counts is not None:
                    arrays |= pack_strings(list(feature.counts), f"{at}.counted")
                    arrays[f"{at}.counts"] = np.array(list(feature.counts.values()), dtype=np.int64)
            else:
                entry |= {"kind": "attributes", "complete": feature.vocabulary.complete}
                arrays |= pack_strings(feature.vocabulary.values, f"{at}.values")
            header["features"].append(entry)
        return {"encoding": header}, arrays

    @classmethod
    def unpack(cls, contents: Contents) -> Encoding:
        header = contents.get("encoding", dict)
        try:
            columns = tuple(header["columns"])
            features = tuple(
                _unpack_feature(contents, entry, f"feature{number}", len(columns))
                for number, entry in enumerate(header["features"])
            )
            encoding = cls(header["format"], columns, tuple(contents.strings("labels")), features)
        except (KeyError, TypeError, IndexError, AttributeError, ConfigError) as error:
            raise contents.error(f"the encoding cannot be read ({error!r})") from None
        if not encoding.labels or encoding.format not in ("conll", "crfsuite"):
            raise contents.error("the encoding has no labels or an unknown format")
        return encoding


def _pack_categorical(feature: CategoricalFeature, at: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    arrays.update(pack_strings(feature.vocabulary.values, f"{at}.values"))
    return {"column": feature.column, "complete": feature.vocabulary.complete}


def _unpack_categorical(
    contents: Contents, entry: dict[str, Any], config: FeatureConfig, at: str, width: int
) -> CategoricalFeature:
    column = entry["column"]
    if not isinstance(column, int) or not 0 <= column < width - 1:
        raise contents.error(f"'{at}' names column {column!r}")
    if config.window is None or config.transform not in ("identity", "lower", "prefix", "suffix", "shape"):
        raise contents.error(f"'{at}' has no window or an unknown transform")
    return CategoricalFeature(config, column, Vocabulary(tuple(contents.strings(f"{at}.values")), bool(entry["complete"])))


def _unpack_feature(contents: Contents, entry: dict[str, Any], at: str, width: int) -> Feature:
    config = parse_config({"features": [entry["config"]]}).features[0]
    kind = entry["kind"]
    if kind == "categorical":
        return _unpack_categorical(contents, entry, config, at, width)
    if kind == "attributes":
        return AttributeFeature(config, Vocabulary(tuple(contents.strings(f"{at}.values")), bool(entry["complete"])))
    if config.window is None:
        raise contents.error(f"'{at}' has no window")
    if kind == "real":
        mean, scale = contents.array(f"{at}.mean", "float64", 1), contents.array(f"{at}.scale", "float64", 1)
        where = tuple(entry["columns"])
        expected = len(where) if config.transform == "identity" else 1
        bad_column = any(not isinstance(c, int) or not 0 <= c < width - 1 for c in where)
        if bad_column or len(where) != len(config.columns) or not len(mean) == len(scale) == expected or np.any(scale <= 0):
            raise contents.error(f"'{at}' has columns or scales that do not fit")
        counts = None
        if config.transform == "frequency":
            numbers = contents.array(f"{at}.counts", "int64", 1).tolist()
            counts = dict(zip(contents.strings(f"{at}.counted"), numbers, strict=False))
        return RealFeature(config, where, mean, scale, counts)
    if kind != "conjunction" or len(config.parts) < 2 or len(entry["parts"]) != len(config.parts):
        raise contents.error(f"'{at}' is a feature of an unknown kind")
    parts = []
    for p, part in enumerate(entry["parts"]):
        part_config = parse_config({"features": [part["config"]]}).features[0]
        parts.append(_unpack_categorical(contents, part, part_config, f"{at}.part{p}", width))
    keys = tuple(
        tuple(contents.array(f"{at}.keys{w}.{s}", "int64", 1) for s in range(len(parts) - 1))
        for w in range(len(config.window))
    )
    return ConjunctionFeature(config, tuple(parts), keys, bool(entry["complete"]))


# ----------------------------------------------------------------------------- fitting


def fit_encoding(config: Config, corpus: Corpus) -> tuple[Encoding, Dataset]:
    """Vocabularies and scaling from training data, and that data encoded."""
    columns = Columns(corpus)
    names = _column_names(config, corpus)
    labels = tuple(sorted(columns.distinct(corpus.width - 1)[0]))
    if "" in labels:
        t = corpus.columns[-1].index("")
        raise DataError("an empty label", corpus.source, int(corpus.lines[t]))
    settings = config.features
    if settings is None:
        settings = _default_features(corpus, names)
    fitter = _Fitter(config, names, columns)
    features = tuple(fitter.fit(feature) for feature in settings)
    encoding = Encoding("conll" if corpus.attributes is None else "crfsuite", names, labels, features)
    for term in config.node_terms:
        encoding.term_features(term)  # a glob that matches nothing should be heard of before work starts
    return encoding, encoding.encode(corpus, columns)


def _column_names(config: Config, corpus: Corpus) -> tuple[str, ...]:
    if config.columns is not None:
        if len(config.columns) != corpus.width:
            raise ConfigError(
                f"'columns' names {len(config.columns)} columns ({', '.join(config.columns)}), "
                f"{corpus.source} has {corpus.width}, the label included"
            )
        return config.columns
    if corpus.attributes is None and corpus.width < 2:
        raise DataError(
            "only one column; training data needs at least one of input and the label last",
            corpus.source,
            int(corpus.lines[0]),
        )
    return (*(f"c{number}" for number in range(corpus.width - 1)), "label")


def _default_features(corpus: Corpus, names: Sequence[str]) -> tuple[FeatureConfig, ...]:
    if corpus.attributes is not None:
        return (FeatureConfig("attributes", (), "attributes", window=(0,)),)
    return tuple(FeatureConfig(name, (name,)) for name in names[:-1])


class _Fitter:
    """Fits features one by one; conjunctions refer to those before them or to columns."""

    def __init__(self, config: Config, names: Sequence[str], columns: Columns):
        self.config, self.names, self.columns = config, names, columns
        self.fitted: dict[str, Feature] = {}
        self.plain: dict[str, CategoricalFeature] = {}

    def fit(self, feature: FeatureConfig) -> Feature:
        corpus = self.columns.corpus
        if (feature.type == "attributes") != (corpus.attributes is not None):
            needed = "an attribute file" if feature.type == "attributes" else "columns"
            raise ConfigError(f"feature '{feature.name}' needs {needed}, and {corpus.source} is not of that kind")
        min_count = feature.min_count or self.config.min_count
        if feature.type == "attributes":
            rows = corpus.attributes
            counts = np.ones(len(rows.names), dtype=np.int64)
            fitted: Feature = AttributeFeature(feature, Vocabulary.fit(rows.names, counts, min_count))
        elif feature.type == "conjunction":
            feature = replace(feature, window=feature.window or (0,))
            parts = tuple(self._part(feature, name) for name, _ in feature.parts)
            if len(parts) < 2:
                raise ConfigError(f"feature '{feature.name}': a conjunction needs at least two parts")
            fitted = _fit_conjunction(feature, parts, self.columns, min_count)
        else:
            where = tuple(self._column(feature, name) for name in feature.columns)
            kind = feature.type
            if kind == "auto":
                kind = "real" if self.columns.looks_real(where[0], feature.columns[0]) else "categorical"
            default = REAL_WINDOW if kind == "real" else CATEGORICAL_WINDOW
            window = feature.window or self.config.window or default
            feature = replace(feature, type=kind, window=window)
            if kind == "real":
                fitted = _fit_real(feature, where, self.columns)
            else:
                fitted = self._categorical(feature, where[0], min_count)
        self.fitted[feature.name] = fitted
        return fitted

    def _categorical(self, feature: FeatureConfig, column: int, min_count: int) -> CategoricalFeature:
        values, inverse = self.columns.distinct(column)
        transform = _string_transform(feature.transform, feature.length)
        counts = np.bincount(inverse, minlength=len(values))
        return CategoricalFeature(
            feature, column, Vocabulary.fit([transform(value) for value in values], counts, min_count)
        )

    def _part(self, feature: FeatureConfig, name: str) -> CategoricalFeature:
        known = self.fitted.get(name)
        if isinstance(known, CategoricalFeature):
            return known
        if known is not None:
            raise ConfigError(f"feature '{feature.name}': '{name}' is not categorical and cannot be conjoined")
        if name not in self.plain:
            column = self._column(feature, name)
            config = FeatureConfig(name, (name,), "categorical", window=(0,))
            self.plain[name] = self._categorical(config, column, 1)
        return self.plain[name]

    def _column(self, feature: FeatureConfig, name: str) -> int:
        inputs = list(self.names[:-1])
        if name in inputs:
            return inputs.index(name)
        if name == self.names[-1]:
            raise ConfigError(f"feature '{feature.name}' looks at '{name}', which is the label")
        raise ConfigError(
            f"feature '{feature.name}': there is no column '{name}' in {self.columns.corpus.source} "
            f"(columns: {', '.join(inputs)})"
        )
