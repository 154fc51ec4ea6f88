"""Default features for the columns of a corpus, as an ordinary configuration.

words        many values, made of letters: as they are and in lower case, prefixes, suffixes, shape
tags         few values: as they are, and each with its neighbour
numbers      a window where neighbours correlate, as far as their number allows; a few whole numbers as categories, too;
             an rbf kernel over them unless there are words, for which windows and heavy tails are of ranks
lookups      of words: lexicons and clusters at the position and its neighbours, embeddings at the position
constant     within a sequence (a speaker, a document): at the position alone
others       as they are

Windows and affixes were chosen on held-out training data: see `experiments/defaults`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..config import CLUSTERS, EMBEDDINGS, Config, FeatureConfig, option_paths, parse_config, part_text, with_options
from ..corpora import CategoryColumn, Clusters, Columns, Corpus, Lookup
from ..errors import ConfigError, KcrfError
from ..kernels import KernelConfig
from ..system import Remark, listed, positions_within
from .encoding import CATEGORICAL_WINDOW, EMBEDDINGS_WINDOW, Encoding, column_names, left_out_columns
from .features import RealFeature, transformed, window_text
from .half_known import label_counts
from .lookup_feature import find_table, table_keys

# A column of words has this many values, or this many of which this share occurs once.
MANY_VALUES = 200
SOME_VALUES = 30
ONCE = 0.4
LETTERS = 0.5  # share of positions whose values have letters
CHARACTERS = 0.9  # share of positions whose values have one character, in a text of characters

AFFIXES = (1, 2, 3, 4)
PREFIXES = (4, 6, 10, 20)  # of paths of clusters
PARTS_OF_WORDS = {"lower": "lower case", "prefix": "prefixes", "suffix": "suffixes", "shape": "shapes"}
NEAR = (-1, 0, 1)
# Conjunctions of neighbours, and their windows: the offset is that of the first one.
TUPLES = {2: (-2, -1, 0, 1), 3: (-2, -1, 0)}
TIMES = 5  # least mean number of occurrences of a conjunction

# Number of labels from which features have weights only for labels that they occur with: about as
# good as weights for all labels, with a tenth of the parameters (`experiments/observed`).
SEVERAL_LABELS = 4

# Whole numbers that may be categories: at most so many values, positions per value at least, columns at most.
MOST_CODES = 12
POSITIONS_PER_CODE = 20
MOST_CODED_COLUMNS = 16

CORRELATED = 0.3  # least correlation of a number and the one before it, for a window
POSITIONS_PER_COLUMN = 10  # at least
HEAVY_TAILS = 30.0  # kurtosis, which is 3 of normal numbers, from which on ranks take the place of numbers
MOST_NUMBERS = 50_000_000  # in windows of all positions

# The kernel of numbers: labels are rarely linear in numbers, and outliers far from the training data
# must not dominate the score. More pivots take longer, and gained nothing (`experiments/defaults`).
NUMBER_KERNEL = "rbf"
NUMBER_PIVOTS = 500
MOST_KERNEL_POSITIONS = 200_000  # above this, kernel values take more than 400 MB, and a pass takes seconds
# Terms over embeddings of the word and of its neighbours. Fewer pivots were worse, twice as many took twice as many
# passes (`experiments/defaults`).
EMBEDDINGS_PIVOTS = 1000
AROUND = "around"
SPELLING = (".prefix1", ".suffix2", ".shape")
AGREEMENT = {"type": "poly", "degree": 1}
# Settings of explicit weights, which do not apply to pivots.
LINEAR_WISHES = ("c1", "observed_features")
KERNEL_PATHS = tuple(f"terms.{term}.{part}" for term in ("node", "0") for part in ("kernel", "map.type", "map.cut_off"))


@dataclass(frozen=True)
class Defaults:
    """A configuration with default features."""

    raw: dict[str, Any]
    parts: tuple[str, ...] = ()  # descriptions of features added to the columns
    numbers: tuple[str, ...] = ()  # default features of columns of numbers, where those have a kernel by default
    all_numbers: bool = False  # True if these are all features
    columns: tuple[str, ...] = ()  # of numbers
    words: tuple[str, ...] = ()  # columns of words that are not mostly characters
    tags: tuple[str, ...] = ()  # other columns of categories that change within sequences

    @property
    def said(self) -> str | None:
        """Line about default features; None if there are none."""
        made = f"features: columns; added automatically: {'; '.join(self.parts)}; not with 'plain'"
        return Remark(made, settings=["plain"]) if self.parts else None


def with_defaults(
    raw: Mapping[str, Any], corpus: Corpus, source: str = "configuration", terms: bool = True, is_open: bool = False
) -> Defaults:
    """Add default features for the columns of a corpus to a raw configuration without features, and `terms` for them.

    If the kernel is open, numbers get one; those with a window or heavy tails become ranks for it.

    >>> from kcrf_core import read_corpus
    >>> found = with_defaults({"columns": ["word", "class", "duration", "f0", "energy", "label"]},
    ...                       read_corpus("sample_data/pitch_accent.conll"))
    >>> found.raw["features"][:2], len(found.raw["features"])
    ([{'column': 'word'}, {'column': 'word', 'transform': 'prefix', 'length': 1, 'window': [0]}], 16)
    """
    config = parse_config(raw, source)
    looking = bool(table_keys(config))
    if config.features is not None or (corpus.attributes is not None and not looking):
        return Defaults(dict(raw))
    if corpus.attributes is not None:
        vectors = ({"vectors": name} for name in corpus.vectors)
        out = {
            **raw,
            "features": [{"type": "attributes"}, *vectors, *lookups(config, corpus.tables)],
            "suggested": True,
        }
        return Defaults(with_terms(out, 0, (), source) if terms else out)
    maker = _Maker(config, corpus)
    if config.plain:
        plain = [*({"column": name} for name in maker.places), *({"vectors": name} for name in corpus.vectors)]
        if not config.ignore and not looking:
            return Defaults(dict(raw))
        out = {**raw, "features": [*plain, *maker.lookups()], "suggested": looking}
        return Defaults(with_terms(out, 0, (), source) if terms else out)
    out = {**raw, "features": maker.features(is_open)}
    out["suggested"] = raw.get("terms") is None or bool(maker.words)  # else terms are all that they will be
    parts, (numbers, all_numbers) = maker.made(), maker.kernel()
    if terms and is_open and numbers:
        over = "all numbers" if all_numbers else "numbers, beside linear weights of all features"
        parts += (f"an {NUMBER_KERNEL} kernel over {over}",)
        out["terms"] = number_terms(() if all_numbers else numbers)
    elif terms:
        labels = len(label_counts(maker.columns, config))
        out = with_terms(out, labels, maker.numbers | set(corpus.vectors), source)
    real = tuple(name for name in maker.places if name in maker.numbers)
    words = tuple(name for name in maker.words if name not in maker.varied)
    return Defaults(out, parts, numbers, all_numbers, real, words, tuple(maker.varied))


def configured(
    raw: Mapping[str, Any], options: Mapping[str, Any], corpus: Corpus, source: str, terms: bool = True
) -> tuple[Config, str | None]:
    """Return the configuration for a corpus, with options and defaults, and a line about the defaults.

    If the configuration has no features, paths into features refer to the default ones. Without `terms`, default
    terms are left to training on the encoded data.
    """
    early, late = _split(raw, options)
    is_open = kernel_is_open(raw, options, corpus.positions)
    if terms and is_open:
        known = option_paths()
        of_terms = [name for name in early if name == "order" or known.get(name, name).startswith("terms.")]
        others = {name: value for name, value in early.items() if name not in of_terms}
        found = with_defaults(with_options(raw, others), corpus, source, is_open=True)
        if found.numbers:
            laid_over = {name: value for name, value in options.items() if name not in others}
            return parse_config(with_options(found.raw, laid_over), source), found.said
    found = with_defaults(with_options(raw, early), corpus, source, terms, is_open)
    return parse_config(with_options(found.raw, late) if late else found.raw, source), found.said


def number_terms(beside_others: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the default terms of data that is all numbers, or of data with these features of numbers among others."""
    kernel: dict[str, Any] = {"name": "node", "kernel": {"type": NUMBER_KERNEL}, "map": {"size": NUMBER_PIVOTS}}
    edge = {"name": "edge", "type": "edge"}
    return [{"name": "linear"}, {**kernel, "features": list(beside_others)}, edge] if beside_others else [kernel, edge]


def suggested_number_terms(encoding: Encoding) -> list[dict[str, Any]] | None:
    """Return the default terms of features that data suggested; None where these have no kernel."""
    configs = [feature.config for feature in encoding.features]
    columns = {name for one in encoding.features if isinstance(one, RealFeature) for name in one.config.columns}
    numbers = [one.name for one in configs if columns.issuperset(one.columns) and not one.parts]
    if len(numbers) == len(configs):
        return number_terms()
    plain = all(one.lookup is None and one.vectors is None and one.transform not in PARTS_OF_WORDS for one in configs)
    return number_terms(numbers) if numbers and plain else None


def kernel_is_open(raw: Mapping[str, Any], options: Mapping[str, Any], positions: int) -> bool:
    """Return True if neither configuration nor options choose a kernel, and the data is small enough for one."""
    training = raw.get("training") or {}
    asked = any(training.get(wish) or options.get(wish) or options.get(f"training.{wish}") for wish in LINEAR_WISHES)
    named = any(name in ("kernel", "map", "cut_off") or name.startswith(KERNEL_PATHS) for name in options)
    return raw.get("terms") is None and not named and not asked and positions <= MOST_KERNEL_POSITIONS


def described(raw: Mapping[str, Any], options: Mapping[str, Any], source: str) -> Config:
    """Return the configuration before there is data: features, and a kernel, may still be added."""
    early = _split(raw, options)[0]
    try:
        return parse_config(with_options(raw, early), source)
    except ConfigError as error:
        if not kernel_is_open(raw, options, 0):
            raise
        with suppress(ConfigError):
            return parse_config(with_options({**raw, "terms": number_terms()}, early), source)
        raise error


def _split(raw: Mapping[str, Any], options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options without, and those with, paths into default features."""
    if raw.get("features") is not None or raw.get("plain"):
        return dict(options), {}
    of_lookups = tuple(f"terms.{name}." for name in (EMBEDDINGS, AROUND))
    late = {path: value for path, value in options.items() if path.startswith(("features.", *of_lookups))}
    return {path: value for path, value in options.items() if path not in late}, late


class _Maker:
    """Features for the columns of a corpus, as entries of a raw configuration."""

    def __init__(self, config: Config, corpus: Corpus):
        self.config, self.corpus = config, corpus
        names = column_names(config, corpus)
        left_out = left_out_columns(config, names)
        self.places = {name: place for place, name in enumerate(names[:-1]) if name not in left_out}
        self.columns = Columns(corpus, config.missing, fitting=True)
        self.words: list[str] = []
        self.parts: set[str] = set()  # transforms of words
        self.tags: list[str] = []
        self.varied: list[str] = []  # categories that are no words and change within sequences
        self.codes: list[str] = []
        self.wide: dict[str, tuple[int, ...]] = {}  # windows of columns of numbers, if they have one
        self.numbers: set[str] = set()
        self.ranked: list[str] = []
        self.made_of_numbers: tuple[str, ...] = ()
        # Pixels are not changed.
        self.pixels = any(term.kernel.type == "image" for term in config.mapped_terms)

    def features(self, ranks: bool) -> list[dict[str, Any]]:
        numbers = {name: place for name, place in self.places.items() if self._is_real(name, place)}
        self.numbers = set(numbers)
        self._find_windows(numbers)
        codes = self.codes = self._find_codes(numbers)
        out: list[dict[str, Any]] = []
        for name, place in self.places.items():
            if name in numbers:
                out.append({"column": name} | self._wide(name))
                if name in codes:
                    as_code = f"{name}.code"
                    out.append({"name": as_code, "column": name, "type": "categorical"} | self._wide(name))
            else:
                out += self._categorical(name, place)
        out = [feature for feature in out if own_name(feature) not in self.places]
        if ranks and not self.words and not table_keys(self.config):
            free = [name for name in numbers if name not in codes and f"{name}.rank" not in self.places]
            self.ranked = [name for name in free if self._wants_ranks(name, numbers[name])]
            out = [one | ({"transform": "rank"} if one.get("column") in self.ranked else {}) for one in out]
        self.made_of_numbers = tuple(
            one.get("name") or own_name(one) or one["column"] for one in out if one.get("column") in numbers
        )
        out += [*({"vectors": name} | self._wide(name) for name in self.corpus.vectors), *self.lookups()]
        if not out:
            message = "no column is left for features: all are ignored, or tell sequences or weights apart"
            raise ConfigError(message, settings=["ignore"])
        return out

    def lookups(self) -> list[dict[str, Any]]:
        """Return what is looked up of the column of words, if there is anything."""
        first = [*self.words, *(name for name in self.places if name not in self.numbers), *self.places]
        return lookups(self.config, self.corpus.tables, next(iter(first), None))

    def made(self) -> tuple[str, ...]:
        """Describe the features that are added to the columns."""
        parts = []
        if self.words:
            kinds = [words for transform, words in PARTS_OF_WORDS.items() if transform in self.parts]
            shown = " and ".join(filter(None, [", ".join(kinds[:-1]), kinds[-1]]))
            parts.append(f"{listed(self.words)} as words, with {shown}")
        if self.tags:
            parts.append(f"{listed(self.tags)} with {'its' if len(self.tags) == 1 else 'their'} neighbours in pairs")
        if self.codes:
            parts.append(f"{listed(self.codes)} as numbers and also as categories")
        for window in dict.fromkeys(self.wide.values()):
            names = [name for name, own in self.wide.items() if own == window]
            parts.append(f"{listed(names)} at {window_text(window)}")
        if self.ranked:
            parts.append(f"{listed(self.ranked)} as ranks")
        return tuple(parts)

    def kernel(self) -> tuple[tuple[str, ...], bool]:
        """Return the features of numbers that get a kernel, if they do, and True if there are no others."""
        alone = self.numbers == set(self.places)
        mixed = not (self.words or self.corpus.vectors or table_keys(self.config))
        return (self.made_of_numbers, alone) if self.numbers and (alone or mixed) else ((), False)

    def _is_real(self, name: str, place: int) -> bool:
        if self.corpus.names is not None:
            return False
        try:
            return self.columns.looks_real(place, name)
        except KcrfError:  # a value that is not a number, which encoding will report
            return True

    def _wants_ranks(self, name: str, place: int) -> bool:
        """Return True for readings that resemble their neighbours and for heavy tails, but for a yes or no."""
        values = self.columns.numbers(place)
        known = np.zeros(0) if values is None else values[~np.isnan(values)]
        if self.pixels or self.config.window is not None or len(np.unique(known)) < 3:
            return False
        with np.errstate(over="ignore", invalid="ignore"):
            centred = known - known.mean()
            kurtosis = np.mean(centred**4) / np.mean(centred**2) ** 2
        return name in self.wide or bool(kurtosis > HEAVY_TAILS)

    def _find_codes(self, numbers: Mapping[str, int]) -> list[str]:
        """Return columns of a few whole numbers, which may be categories: an antenna, a room."""
        found: list[str] = []
        for name, place in numbers.items():
            values, positions = self.columns.numbers(place), self.corpus.positions
            if values is None:
                continue
            some = np.unique(values[: 100 * MOST_CODES])  # this excludes most columns of numbers quickly
            if len(some) <= MOST_CODES:
                some = np.unique(values[~np.isnan(values)])
                whole = bool((some == np.rint(some)).all())
                if whole and 2 < len(some) <= MOST_CODES and positions >= POSITIONS_PER_CODE * len(some):
                    found.append(name)
        return found if len(found) <= MOST_CODED_COLUMNS and not self.pixels else []

    def _wide(self, name: str) -> dict[str, Any]:
        return {"window": list(self.wide[name])} if name in self.wide else {}

    def _find_windows(self, numbers: Mapping[str, int]) -> None:
        """Choose windows for numbers that correlate with their neighbours, as wide as the data allows."""
        if self.config.window is not None or self.pixels:
            return
        widths = dict.fromkeys(numbers, 1) | {name: rows.shape[1] for name, rows in self.corpus.vectors.items()}
        most = _most_columns(self.corpus.positions)
        if len(NEAR) * min(widths.values(), default=0) > most:
            return
        resembling = []
        for name in widths:
            found = self.corpus.vectors[name] if name in self.corpus.vectors else self.columns.numbers(numbers[name])
            if found is not None and _correlation(found.reshape(len(found), -1), self.corpus) >= CORRELATED:
                resembling.append(name)
        alone = sum(width for name, width in widths.items() if name not in resembling)
        together = sum(widths[name] for name in resembling)
        for window in (CATEGORICAL_WINDOW, NEAR):
            if resembling and alone + together * len(window) <= most:
                self.wide = dict.fromkeys(resembling, window)
                return

    def _categorical(self, name: str, place: int) -> list[dict[str, Any]]:
        (values, codes), later = self.columns.distinct(place), _later(self.corpus)
        declared = {"type": "categorical"} if isinstance(self.corpus.columns[place], CategoryColumn) else {}
        if len(later) and (codes[later] == codes[later - 1]).all():  # constant within each sequence
            return [{"column": name, "window": [0]} | declared]
        V, counts = len(values), np.bincount(codes, minlength=len(values))

        def share(test: Callable[[str], bool]) -> float:
            """Return the share of positions whose values pass a test."""
            passed = np.fromiter(map(test, values), bool, V)
            return float(counts[passed].sum() / max(counts.sum(), 1))

        out: list[dict[str, Any]] = [{"column": name} | declared]
        many = V >= MANY_VALUES or (V >= SOME_VALUES and np.count_nonzero(counts == 1) >= ONCE * V)
        words = many and share(lambda value: any(map(str.isalpha, value))) >= LETTERS
        if words and (derived := self._word_features(name, values)):
            self.words.append(name)
            self.parts.update(feature["transform"] for feature in derived)
            out += derived
        characters = share(lambda value: len(value) == 1) >= CHARACTERS
        if characters or not words:
            self.varied.append(name)
        if (1 < V < MANY_VALUES and not words) or characters:
            together = self._together(name, codes, V)
            if together:
                self.tags.append(name)
            out += together
        return out

    def _word_features(self, name: str, values: Sequence[str]) -> list[dict[str, Any]]:
        """Return lower case, affixes and shape of words, each if it adds to the words and the transforms before it."""

        def distinct(**transform: Any) -> int:
            return len(set(transformed(values, FeatureConfig(name, **transform))))

        out: list[dict[str, Any]] = []
        near, V = {"window": _within(NEAR, self.config)}, len(values)
        if distinct(transform="lower") < V:
            out.append({"column": name, "transform": "lower"} | near)
        for transform in ("prefix", "suffix"):
            before = 1
            for length in AFFIXES:
                found = distinct(transform=transform, length=length)
                if before < found < V:  # it has more values than those before, and fewer than the words
                    out.append({"column": name, "transform": transform, "length": length, "window": [0]})
                before = found
        if 1 < distinct(transform="shape") < V:
            out.append({"column": name, "transform": "shape"} | near)
        return out

    def _together(self, name: str, codes: np.ndarray, V: int) -> list[dict[str, Any]]:
        """Return conjunctions of two and three neighbouring values, as long as they recur."""
        allowed = self.config.window or CATEGORICAL_WINDOW
        out: list[dict[str, Any]] = []
        tuples = codes.astype(np.int64)
        for length, places in TUPLES.items():
            if len(tuples) < length:
                break
            tuples = np.unique(tuples[:-1] * V + codes[length - 1 :], return_inverse=True)[1].ravel()
            if len(tuples) < TIMES * (int(tuples.max(initial=0)) + 1):
                break
            window = [first for first in places if all(first + step in allowed for step in range(length))]
            parts = [part_text(name, step) for step in range(length)]
            if window:
                out.append({"conjunction": parts, "window": window})
        return out


def lookups(config: Config, tables: Mapping[Hashable, Lookup], column: str | None = None) -> list[dict[str, Any]]:
    """Return the features that are looked up, in a column unless the configuration names another one."""
    out: list[dict[str, Any]] = []
    near = {"window": _within(NEAR, config)}
    for name in table_keys(config):
        feature = {"column": config.lookup_column or column, "lookup": name}
        if feature["column"] is None:
            message = "which attribute is a word? Give its name before the = or : as 'lookup_column'"
            raise ConfigError(message, settings=["lookup_column"])
        if name == EMBEDDINGS:
            out.append(feature)
        elif name == CLUSTERS:
            table = find_table(config, name, tables)
            assert isinstance(table, Clusters)
            shorter = (0, *PREFIXES)  # a prefix of all bits is enough
            lengths = [one for one, before in zip(PREFIXES, shorter, strict=False) if before < table.longest]
            out += [{**feature, "length": length, **near} for length in lengths]
        else:
            out.append({**feature, **near})
    return out


def own_name(feature: Mapping[str, Any]) -> str | None:
    """Return the name of a feature that is made of a column; None for the column itself and for tuples."""
    if "transform" in feature:
        return f"{feature['column']}.{feature['transform']}{feature.get('length', '')}"
    return feature.get("name")


def window_of_numbers(numbers: np.ndarray, corpus: Corpus) -> tuple[int, ...] | None:
    """Return the window of a feature of numbers [N, r] that correlate with their neighbours, else None."""
    if _correlation(numbers, corpus) < CORRELATED:
        return None
    fitting = [w for w in (CATEGORICAL_WINDOW, NEAR) if len(w) * numbers.shape[1] <= _most_columns(len(numbers))]
    return fitting[0] if fitting else None


def _most_columns(N: int) -> int:
    """Return the largest number of columns of numbers for N positions, by their number and by memory."""
    return min(N // POSITIONS_PER_COLUMN, MOST_NUMBERS // max(N, 1))


def _later(corpus: Corpus) -> np.ndarray:
    """Return the positions that are not the first of their sequence."""
    return np.flatnonzero(positions_within(corpus.offsets))


def _correlation(numbers: np.ndarray, corpus: Corpus) -> float:
    """Return the mean over columns of numbers [N, r] of their correlation with those one position before."""
    rows = _later(corpus)
    with np.errstate(over="ignore", invalid="ignore"):
        there = np.isfinite(numbers)
        known = np.where(there, numbers, 0.0)
        mean = known.sum(axis=0) / np.maximum(there.sum(axis=0), 1)
        centred = np.where(there, known - mean, 0.0)
        variance = np.mean(centred**2, axis=0)
        shared = np.mean(centred[rows] * centred[rows - 1], axis=0) if len(rows) else np.zeros(numbers.shape[1])
        found = np.divide(shared, variance, out=np.zeros_like(shared), where=variance > 0)
    return float(np.nan_to_num(found).mean())


def with_terms(raw: Mapping[str, Any], label_count: int, numbers: Collection[str], source: str) -> dict[str, Any]:
    """Add terms and training for words to a raw configuration with default features.

    `numbers` are the names of real features. If a kernel is given, a linear term has all features, and the kernel has
    the plain columns nearby. With several labels and no kernel, features have weights only for labels that they occur
    with. Embeddings have their own terms.
    """
    return _with_lookup_term(_with_word_terms(raw, label_count, numbers, source), source)


def _with_lookup_term(raw: dict[str, Any], source: str) -> dict[str, Any]:
    """Move embeddings from terms of all features to terms of their own.

    One has a kernel on the position alone, so that each distinct word is computed once; another one is linear, on the
    neighbours. What a vector says depends on how the word is written (`apple`, `Apple`), so the kernel of vectors is
    multiplied by one plus the part of the spelling that agrees. With an L1 penalty, there is one linear term.
    """
    config = parse_config(raw, source)
    features = config.features or ()
    looked_up = [feature.name for feature in features if feature.lookup == EMBEDDINGS]
    column = next((feature.columns[:1] for feature in features if feature.lookup == EMBEDDINGS), None)
    others = [feature.name for feature in features if feature.lookup != EMBEDDINGS]
    everything = [term.name for term in config.mapped_terms if term.features == ("*",)]
    if not config.suggested or not looked_up or not others or not everything:
        return raw
    terms = config.to_dict()["terms"]
    last = max(place for place, term in enumerate(terms) if "features" in term)
    terms = [{**term, "features": others} if term["name"] in everything else term for term in terms]
    own: list[dict[str, Any]] = [{"name": EMBEDDINGS, "features": looked_up}]
    if config.training.c1 is None:
        window = config.window or EMBEDDINGS_WINDOW
        if around := [offset for offset in window if offset]:
            own.append({"name": AROUND, "features": looked_up, "window": around})
        if 0 in window:
            spelling = [f.name for f in features if f.columns[:1] == column and f.suffix in SPELLING]
            own[0] |= {"window": [0], "kernel": {"type": NUMBER_KERNEL}, "map": {"size": EMBEDDINGS_PIVOTS}}
            if spelling:
                parts = [{"type": NUMBER_KERNEL, "features": looked_up}, {**AGREEMENT, "features": spelling}]
                own[0] |= {"features": [*looked_up, *spelling], "kernel": {"type": "product", "parts": parts}}
        else:
            del own[0]
    return {**raw, "terms": [*terms[: last + 1], *own, *terms[last + 1 :]]}


def _with_word_terms(raw: Mapping[str, Any], label_count: int, numbers: Collection[str], source: str) -> dict[str, Any]:
    config = parse_config(raw, source)
    out = dict(raw)
    words = {f.columns[0] for f in config.features or () if f.transform in PARTS_OF_WORDS}
    if not config.suggested or not words:
        return out
    if all(term.kernel.type == KernelConfig.type and not term.kernel.cosine for term in config.mapped_terms):
        if label_count >= SEVERAL_LABELS and config.unobserved is None:
            out["training"] = {"observed_features": True, **(raw.get("training") or {})}
        return out
    (first, *others) = config.mapped_terms
    if others or first.type != "node" or first.features != ("*",) or first.kernel.parts or first.window is not None:
        return out  # the terms of the user have their own features
    # Features that represent the columns in a kernel: lower case and shape of words, no constant columns.
    lowered = {f.columns[0] for f in config.features or () if f.transform == "lower"}
    plain: dict[str, Any] = {"features": []}
    for feature in config.features or ():
        whole = feature.transform == "identity" and not (feature.parts or feature.lookup) and feature.window != (0,)
        if feature.transform in ("lower", "shape") or (whole and not lowered & set(feature.columns[:1])):
            plain["features"].append(feature.name)
    if not numbers:
        plain["window"] = _within(NEAR, config)
    out["terms"] = []
    for term in config.to_dict()["terms"]:
        if term["name"] == first.name:
            out["terms"].append({"name": "linear" if first.name != "linear" else "all"})
            term = {**term, **plain}
        out["terms"].append(term)
    return out


def _within(window: Sequence[int], config: Config) -> list[int]:
    """Return the offsets of a window that the configuration allows."""
    return [offset for offset in window if config.window is None or offset in config.window] or [0]
