"""Models as files of the C library `kcrf_runtime`; its `internal.h` describes them.

Features become families of codes. The codes of a family are numbers of its values, then of positions beyond the ends
of a sequence, which have one numbering in the whole file. A field of a term is a family at some distance; the rows of
weights of all distances of a feature stand together, code by code, so that they are near each other in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby

import numpy as np

from ..chains import EDGE_X
from ..config import Macro, is_wapiti_line, pieces
from ..corpora import COLUMN_FORMAT, Clusters, Lexicon, WordVectors
from ..encoding import (
    AttributeFeature,
    CategoricalFeature,
    ConjunctionFeature,
    Feature,
    LineFeature,
    LookupFeature,
    RealFeature,
    TemplateFeature,
    vector_rows,
)
from ..features import ConjunctionTerm, ExplicitTerm, Term
from ..maps import SparseWeights, as_dense, matrix_of, squared_weights, without_zeros
from ..runtime import OF_CHARACTERS, QUANTIZED, TRANSFORMS, RuntimeModel, RuntimeTagger, unicode_table
from ..system import counted, ranges
from .model import VITERBI, Model
from .runtime_sections import (
    BAG,
    CONJUNCTION,
    IN_HALVES,
    LEXICON,
    NONE,
    NONE64,
    NUMBER,
    OF_CONJUNCTIONS,
    OF_PAIRS,
    VALUE,
    Family,
    Image,
    RuntimeLimitError,
    unsupported,
)

FROM_ENDS, WAPITI, LAST_OF_LINE = 1, 2, 4
MOST_COLUMNS = 1 << 16  # of weights: labels, or pairs of labels
MOST_WORDS = 100_000  # of an entry of a lexicon
LINEAR = "or train with a linear kernel"  # instead
FEWEST_LED = 3  # families of a column whose codes stand beside those of its values
WORDS_AT_ONCE = 4096


def runtime_image(model: Model, quantize: str = "none") -> bytes:
    """Return the file of a model, which the library opens; raise an error that names what it does not support."""
    try:
        image = _ModelImage(model, QUANTIZED[quantize]).file()
    except UnicodeEncodeError as error:
        raise unsupported(f"the name {error.object!r} is not Unicode text") from None
    try:
        RuntimeTagger(RuntimeModel(image))
    except (ValueError, MemoryError) as error:
        raise RuntimeLimitError(f"the runtime does not open the model in its form ({error})") from None
    return image


def _cluster_codes(feature: LookupFeature, known: set[str], values: Sequence[str]) -> np.ndarray:
    """Return codes of values; words of clusters that training did not have get the one behind all others."""
    codes = feature.encode(values)
    strange = np.array([value in known for value in values], dtype=bool) & (codes < 0)
    return np.where(strange, len(feature.vocabulary.values), codes)


def _word_scores(feature: RealFeature, weights: np.ndarray) -> np.ndarray:
    """Return scores [(V+1) W, C] of vectors of V words, and of none, by weights [W, r, C] of W offsets."""
    assert feature.table is not None
    W, r, C = weights.shape
    numbers, side_by_side = np.append(np.arange(len(feature.table.words)), -1), weights.swapaxes(0, 1).reshape(r, W * C)
    parts = (vector_rows(feature, numbers[part]) for part in ranges(len(numbers), WORDS_AT_ONCE))
    return np.concatenate([(part - feature.mean) / feature.scale @ side_by_side for part in parts]).reshape(-1, C)


class _ModelImage(Image):
    """The file of a model."""

    def __init__(self, model: Model, value_bytes: int):
        super().__init__(value_bytes)
        self.model, self.encoding = model, model.encoding
        self.families: dict[object, Family] = {}
        self.conjoined: dict[str, list[np.ndarray]] = {}  # numbers of the tuples of a conjunction, by its offsets
        if model.rules is not None:
            raise unsupported("the model has rules of labels", "or train without them")
        self._check_features()
        self.reach = max([0, *map(self._reach, self.encoding.features)])
        for feature in self.encoding.features:
            self._add_feature(feature)
        last = self.encoding.width  # those of no column
        ordered = sorted(
            self.families.values(),
            key=lambda one: (one.column if one.kind in (VALUE, NUMBER) else last, not one.values),
        )
        for number, family in enumerate(ordered):
            family.number = number
        for _, own in groupby(ordered, lambda one: one.column if one.kind in (VALUE, NUMBER) else last):
            self._lead(list(own))
        for family in ordered:
            self.add_family(family)
        for term in model.terms:
            self._add_term(term)

    def _check_features(self) -> None:
        for feature in self.encoding.features:
            config, name = feature.config, f"feature '{feature.config.name}'"
            parts = feature.parts if isinstance(feature, ConjunctionFeature) else (feature,)
            if self.encoding.attributes and not isinstance(feature, AttributeFeature):
                raise unsupported(f"{name} is made of attributes by name")
            numbers = feature if isinstance(feature, RealFeature) and feature.table is None else None
            if numbers is not None and (numbers.is_vector or numbers.indicates or not numbers.plain):
                scaled = config.by_group or config.transform == "identity"
                how = f"'scale: {config.scale}'" if scaled else f"'{config.transform}'"
                how = "an indicator of missing values" if numbers.indicates else how
                how = "vectors beside the text" if numbers.is_vector else how
                raise unsupported(f"{name} is made of numbers by {how}")
            for line in config.templates:
                for macro in pieces(line):
                    if isinstance(macro, Macro) and (macro.command != "x" or macro.lower):
                        raise unsupported(f"{name} has an expression or lower case in '{line}'")
            for part in parts:
                if isinstance(part, LineFeature):
                    raise unsupported(f"{name} takes the strings of a line of a template for categories")
                if isinstance(part, CategoricalFeature) and part.config.transform not in TRANSFORMS:
                    raise unsupported(f"{name} uses the transform '{part.config.transform}'")

    def _reach(self, feature: Feature) -> int:
        if isinstance(feature, AttributeFeature):
            return 0
        offsets = [*feature.config.seen, *(offset for _, offset in feature.config.parts)]
        seen = 0 if isinstance(feature, RealFeature) else feature.reach
        return max(seen, *map(abs, offsets))

    def _add_feature(self, feature: Feature) -> None:
        if isinstance(feature, ConjunctionFeature):
            self._conjunction(feature)
        elif isinstance(feature, CategoricalFeature):
            self._categorical(feature)
        elif isinstance(feature, RealFeature) and feature.table is not None:
            self.families[feature.config.name] = self._embeddings(feature.table, feature.columns[0])
        elif isinstance(feature, RealFeature):
            for place, column in enumerate(feature.columns):
                self._number(feature, place, column)
        else:
            values = feature.vocabulary.values
            found = Family(BAG, len(values), table=self._table(values, np.arange(len(values))))
            if isinstance(feature, TemplateFeature):
                found.parts = [part for line in feature.config.templates for part in self._line(line)]
            self.families[feature.config.name] = found

    def _lead(self, families: list[Family]) -> None:
        """Store the codes of all families of a column for each value of the first, if that is worth it."""
        first, others = families[0], families[1:]
        for family in others if len(first.values) and len(families) >= FEWEST_LED else families:
            family.values = ()
        if first.values:
            codes = [np.full(len(first.values), -1) if f.encode is None else f.encode(first.values) for f in families]
            every = np.stack(codes, axis=1).astype(np.int64) & NONE
            first.numbers = self.add("codes", every.astype(np.uint32).ravel())

    def _number(self, feature: RealFeature, place: int, column: int) -> None:
        fill = 0.0 if feature.fill is None else feature.fill[place]
        missing = self.encoding.layout.missing
        self.families[feature.config.name, place] = Family(
            NUMBER,
            1,
            column,
            table=self._table(missing, np.zeros(len(missing))),
            numbers=self._numbers(np.array([feature.mean[place], feature.scale[place], fill])),
        )

    def _embeddings(self, table: WordVectors, column: int) -> Family:
        """Return the family of the words of a table, and of one more: all that it has not."""
        words = len(table.words)
        found = Family(VALUE, words + 1, column, TRANSFORMS.index("variants"), missing=words)
        found.table = self._table(table.words, np.arange(words))
        found.encode = lambda values: np.where((rows := table.numbers(values)) < 0, words, rows)
        return found

    def _categorical(self, feature: CategoricalFeature) -> Family:
        """Return the family of a feature, which several features may share."""
        config, values = feature.config, feature.vocabulary.values
        key = (type(feature), feature.column, config.transform, config.length, config.lookup, config.templates, values)
        if key in self.families:
            return self.families[key]
        found = Family(VALUE, len(values), feature.column)
        if isinstance(feature, LookupFeature) and isinstance(feature.table, Clusters):
            # Words whose cluster training did not have get a code of their own, without weights.
            words, (missing,) = feature.table.words, feature.encode([""])
            found.encode = partial(_cluster_codes, feature, set(words))
            found.table = self._table(words, found.encode(words))
            found.codes, found.missing = len(values) + 1, int(missing) & NONE
        elif isinstance(feature, LookupFeature):
            assert isinstance(feature.table, Lexicon)
            self._lexicon(found, feature.table)
        else:
            found.transform, found.length = TRANSFORMS.index(config.transform), config.length or 0
            found.encode = feature.encode
            if config.transform == "identity":
                found.values = values
            found.table = self._table(values, np.arange(len(values)))
        self.families[key] = found
        return found

    def _lexicon(self, found: Family, table: Lexicon) -> None:
        """Make a family of the words of a lexicon, and the tree of its entries."""
        if table.longest > MOST_WORDS:
            raise RuntimeLimitError(f"an entry of the lexicon {table.source} has {counted(table.longest, 'word')}")
        key = id(table), found.column
        if key not in self.families:
            folded = TRANSFORMS.index("stripped" if table.fold else "identity")
            words = Family(VALUE, len(table.index), found.column, folded)
            words.encode = table.numbers
            words.table = self._table(table.index, np.arange(len(table.index)))
            self.families[key] = words
        words = self.families[key]
        found.kind, found.column, found.table = LEXICON, NONE, self._table((), np.zeros(0))
        for keys, whole, longer in table.levels:
            level = self._pairs(keys, np.arange(len(keys)), whole + 2 * longer)
            found.parts.append((words, 0, *level, len(table.index), 0))

    def _line(self, line: str) -> list[tuple[int | Family, ...]]:
        """Return the parts of a template line."""
        out: list[list[int]] = []
        for piece in pieces(line):
            if isinstance(piece, Macro):
                flags = FROM_ENDS * piece.absolute + WAPITI * is_wapiti_line(line)
                out.append([piece.column, piece.row, 0, 0, 0, flags])
            else:
                text = piece.encode("utf-8", "surrogatepass")
                out.append([NONE, 0, self.add("text", text), len(text), 0, 0])
        out[-1][5] |= LAST_OF_LINE
        return [tuple(part) for part in out]

    def _conjunction(self, feature: ConjunctionFeature) -> None:
        """Number the tuples of all offsets together, and make tables of their beginnings of 2, 3, ... parts."""
        families = [self._categorical(part) for part in feature.parts]
        tuples = []
        for w in range(len(feature.config.seen)):
            codes = feature.part_codes(w, np.arange(len(feature.keys[w][-1])))
            old = [len(part.vocabulary.values) for part in feature.parts]
            new = (
                self._codes(family.codes, own, size, feature.reach)
                for family, own, size in zip(families, codes, old, strict=True)
            )
            tuples.append(np.stack(list(new), axis=1).reshape(-1, len(families)))
        found = np.concatenate(tuples).astype(np.int64)
        offsets = [offset for _, offset in feature.config.parts]
        family, numbers = Family(CONJUNCTION, 0, parts=[(families[0], offsets[0], 0, 0, 0, 0)]), found[:, 0]
        for k in range(1, len(families)):
            size = families[k].codes + 2 * self.reach
            keys, numbers = np.unique(numbers * size + found[:, k], return_inverse=True)
            family.codes = len(keys)
            family.parts.append((families[k], offsets[k], *self._pairs(keys, np.arange(len(keys))), size, 0))
        family.parts[0] = (*family.parts[0][:2], *family.parts[1][2:])  # any table: it is not looked at
        self.families[feature.config.name] = family
        ends = np.cumsum([len(own) for own in tuples])[:-1]
        self.conjoined[feature.config.name] = np.split(numbers, ends)

    def _codes(self, own: int, codes: np.ndarray, size: int, reach: int) -> np.ndarray:
        """Return codes of this file for those of a feature with `size` values and its own symbols beyond the ends."""
        side, distance = np.divmod(codes - size, max(reach, 1))
        return np.where(codes < size, codes, own + side * self.reach + distance)

    def _add_term(self, term: Term) -> None:
        Y, plugin = len(self.model.labels), term.described()["kernel"].get("plugin")
        setting = "kernel" if term.name == "node" else "config"  # which may make its kernel linear
        if plugin is not None:
            what = f"term '{term.name}' has a kernel of the plug-in '{plugin['name']}'"
            raise unsupported(what, LINEAR, settings=[setting])
        if not isinstance(term, ExplicitTerm | ConjunctionTerm):
            features = [view.feature for view in self.encoding.views(term.features)]
            if any(isinstance(one, RealFeature) and one.table is not None for one in features):
                raise unsupported(f"term '{term.name}' has pivots of embeddings", "or use a linear term of them")
            raise unsupported(f"term '{term.name}' has pivots", LINEAR, settings=[setting])
        if term.cosine:
            raise unsupported(f"term '{term.name}' has a cosine kernel", "or train without it", settings=["cosine"])
        width = term.clique.columns(Y)
        if width > MOST_COLUMNS:
            raise unsupported(f"term '{term.name}' has weights for {width:,} pairs of labels")
        kind = (
            OF_PAIRS * (term.clique is EDGE_X)
            + IN_HALVES * (width < Y)
            + OF_CONJUNCTIONS * isinstance(term, ConjunctionTerm)
        )
        if Y == 2 and len({one.clique.columns(Y) for one in self.model.terms if one.clique.axes == 1}) > 1:
            raise unsupported("the model has terms of the types node and state")
        first_field = self.sizes["fields"]
        source, ids, counts, products = self._add_fields(term)
        weights, extra = without_zeros(term.weights), [0, 0, 0, 0, 0]
        for more in map(SparseWeights.of, products):
            ends = np.concatenate([weights.ends, weights.ends[-1] + more.ends[1:]])
            columns, values = (np.concatenate([getattr(w, n) for w in (weights, more)]) for n in ("columns", "values"))
            weights = SparseWeights(width, ends, columns, values)
        if isinstance(term, ConjunctionTerm):
            base, keys = self._renumbered(term, ids, counts)
            first, bits = self._pairs(keys, term.conjunctions.columns)
            squares = squared_weights(term.conjunctions.kernel)
            extra = [len(squares) - 1, first, bits, base, self._numbers(squares)]
            source = np.arange(weights.shape[0])
        first_start = self.add_rows((weights.width, weights.ends, weights.columns, weights.values), source)
        degree, first, bits, base, at = extra
        row = [kind, width, first_field, self.sizes["fields"] - first_field, degree, first, bits, 0]
        self.add_term(row, [first_start, len(source), base, at])

    def _add_fields(
        self, term: ExplicitTerm | ConjunctionTerm
    ) -> tuple[np.ndarray, list[np.ndarray], list[int], list[np.ndarray]]:
        """Add the fields of a term.

        Return the row of its weights for each row of the file, -1 for none; the codes in the file of each field's
        values; the number of codes of each field; and rows that stand behind those of its weights: the scores that
        the vector of a word gives, so that vectors themselves are not needed.
        """
        products: list[np.ndarray] = []
        sources: list[np.ndarray] = []
        ids: list[np.ndarray] = []
        counts: list[int] = []
        views = self.encoding.views(term.features)
        rows, at, feature_at = 0, 0, 0
        blocks = [[v for v in views if not isinstance(v.feature, RealFeature | AttributeFeature)]]
        blocks += [[v for v in views if isinstance(v.feature, kind)] for kind in (AttributeFeature, RealFeature)]
        for view in (view for block in blocks for view in block):
            feature, W = view.feature, len(view.places)
            if isinstance(feature, RealFeature) and feature.table is not None:
                family, r = self.families[feature.config.name], len(feature.mean)
                weights = as_dense(matrix_of(term.weights)[at : at + W * r]).reshape(W, r, -1)
                first = term.weights.shape[0] + sum(map(len, products))
                products.append(_word_scores(feature, weights))
                source = np.full((family.codes + 2 * self.reach, W), -1)
                source[: family.codes] = np.arange(first, first + family.codes * W).reshape(-1, W)
                for w, offset in enumerate(view.offsets):
                    self.add("fields", np.array([[family.number, offset & NONE, rows + w, W, 0, 0]], "<u4"))
                sources.append(source.ravel())
                rows, at = rows + source.size, at + W * r
                continue
            if isinstance(feature, RealFeature):
                r = len(feature.columns)
                for place, offset in enumerate(view.offsets):
                    for column in range(r):
                        family = self.families[feature.config.name, column]
                        self.add(
                            "fields",
                            np.array([[family.number, offset & NONE, rows + place * r + column, 1, 0, 0]], "<u4"),
                        )
                sources.append(np.arange(at, at + W * r))
                rows, at = rows + W * r, at + W * r
                continue
            if isinstance(feature, AttributeFeature):
                W, total, family = 1, len(feature.vocabulary.values), self.families[feature.config.name]
                codes, offsets = [np.arange(total)], [0]
            elif isinstance(feature, ConjunctionFeature):
                family, offsets = self.families[feature.config.name], list(view.offsets)
                codes, total = [self.conjoined[feature.config.name][w] for w in view.places], family.codes
            else:
                family, offsets = self._categorical(feature), list(view.offsets)
                total, size = family.codes + 2 * self.reach, feature.field_sizes[0]
                codes = [self._codes(family.codes, np.arange(size), len(feature.vocabulary.values), feature.reach)] * W
            source = np.full((total, W), -1)
            for w, (own, offset) in enumerate(zip(codes, offsets, strict=True)):
                source[own, w] = np.arange(at, at + len(own))
                self.add("fields", np.array([[family.number, offset & NONE, rows + w, W, feature_at, 0]], "<u4"))
                ids.append(own + feature_at)
                counts.append(len(own))
                at, feature_at = at + len(own), feature_at + total
            sources.append(source.ravel())
            rows += total * W
        return np.concatenate([np.zeros(0, np.int64), *sources]), ids, counts, products

    def _renumbered(self, term: ConjunctionTerm, ids: list[np.ndarray], counts: list[int]) -> tuple[int, np.ndarray]:
        """Return the base of keys of conjunctions in the file, and these keys."""
        found = term.conjunctions
        features = np.concatenate([np.zeros(1, np.int64), *(own + 1 for own in ids)])  # by old number plus one
        base = int(features.max(initial=0)) + self.reach * 2 + 2
        if base**found.kernel.degree > NONE64:
            raise unsupported(f"term '{term.name}' has too many features to number their conjunctions")
        digits, rest = [], found.keys
        for _ in range(found.kernel.degree):
            rest, digit = np.divmod(rest, found.base)
            digits.append(features[digit].astype(np.uint64))
        keys = np.zeros(len(found.keys), np.uint64)
        for digit in reversed(digits):
            keys = keys * np.uint64(base) + digit
        return base, keys

    def file(self) -> bytes:
        """Return the bytes of the file."""
        model, encoding, layout = self.model, self.encoding, self.encoding.layout
        families = self.families.values()
        if {TRANSFORMS[family.transform] for family in families} & set(OF_CHARACTERS):
            self.add("unicode", np.frombuffer(unicode_table(), np.uint8))
        apart = any(term.clique is EDGE_X for term in model.terms)
        quoted = layout.quoted or layout.sequence is not None
        plain = len(model.terms) == 1 and model.order == 1 and model.calibration is None and not apart
        return self.packed(
            self.meta(
                model.labels,
                model.used_edges,
                encoding.columns[:-1],
                layout.comment,
                model.edges.transitions if apart else None,
                model.calibration,
                model.bonuses,
                attributes=encoding.attributes,
                reach=self.reach,
                edges_apart=apart,
                posterior=model.decode != VITERBI,
                sorted_bag=not (encoding.attributes and plain),
                separator=ord(layout.separator) if layout.separator else 0,
                header=bool(layout.header),
                format=1 if encoding.attributes else 2 * (quoted or encoding.format != COLUMN_FORMAT),
                bag_family=next((one.number for one in families if one.kind == BAG), NONE),
            )
        )
