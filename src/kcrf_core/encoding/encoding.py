"""From a corpus and a configuration to numbers: vocabularies, scaling, windows.

An encoding is fitted once, on training data. Columns become integer codes, on their distinct values; a window is the
same codes shifted, with symbols of its own beyond the ends of a sequence. No string is built per feature and position.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._lazy import cached_property
from ..config import (
    BAGS,
    LOOKUPS,
    RUN_TRANSFORMS,
    SETS,
    SOFT,
    Config,
    FeatureConfig,
    TermConfig,
    layout_dict,
    parse_config,
)
from ..corpora import (
    BREAKS,
    FORMATS,
    MOST_LABELS,
    NUMBER_TRANSFORMS,
    PLAIN,
    AttributeRows,
    Clusters,
    CodedColumn,
    Columns,
    Corpus,
    Layout,
    Lookup,
    Spool,
    TrainingColumns,
    WordVectors,
    column_place,
    column_weights,
)
from ..errors import ConfigError, DataError, FileFormatError, suggestion
from ..files import Contents, pack_strings
from ..kernels import Group, Inputs, matching_features
from ..runtime import OF_CHARACTERS, VERSION
from ..scoring import labels_of_spans, odd_labels
from ..system import AUTO, NotRegistered, Remark, Workers, counted, listed
from .dataset import Amount, Dataset, join_datasets
from .feature_storage import pack_feature, pack_table, unpack_feature, unpack_table
from .features import (
    SCALED,
    AttributeFeature,
    CategoricalFeature,
    ConjunctionFeature,
    Feature,
    RealFeature,
    View,
    Vocabulary,
    attribute_values,
    fit_categorical,
    fit_conjunction,
    fit_real,
    real_block,
    view_called,
    window_text,
)
from .group_scaling import GroupScaling, Totals
from .half_known import label_counts, label_numbers
from .hashing import column_hashes
from .likely_slips import column_warnings, label_warnings
from .lookup_feature import LookupFeature, find_table, fit_lookup, table_keys
from .names import ATTRIBUTE, REAL, FeatureNames, ValueText, field_name, real_names, vector_texts
from .template_feature import LineFeature, TemplateFeature, template_counts, template_macros, template_width

MANY_LABELS = 200


@dataclass(frozen=True)
class Encoding:
    """Everything needed to turn a corpus into the numbers that a model was trained on.

    >>> from kcrf_core import fit_encoding, parse_config, read_corpus
    >>> corpus = read_corpus("sample_data/pitch_accent.conll")
    >>> encoding, dataset = fit_encoding(parse_config({}), corpus)
    >>> encoding.labels, encoding.names
    (('0', '1'), ['c0', 'c1', 'c2', 'c3', 'c4'])
    >>> encoding.encode(corpus.subset([0, 1])).sequences
    2
    """

    format: str  # one of FORMATS
    columns: tuple[str, ...]  # names, the label's last
    labels: tuple[str, ...]
    features: tuple[Feature, ...]
    unobserved: str | None = None  # what stands for labels that are not observed
    half_known: str | None = None  # labels are SETS or SOFT
    weight: str | None = None  # the column that says what sequences weigh
    layout: Layout = PLAIN  # of files of columns
    odd_labels: tuple[str, ...] = ()  # not of the scheme of nearly all others: O for spans
    warnings: tuple[str, ...] = ()  # what looked like a slip in the training data; not stored

    @property
    def width(self) -> int:
        """Number of columns of a file with labels."""
        return len(self.columns)

    @property
    def names(self) -> list[str]:
        return [feature.config.name for feature in self.features]

    @cached_property
    def span_labels(self) -> tuple[str, ...]:
        """Labels as spans are counted by them: O in the place of odd ones."""
        return labels_of_spans(self.labels, self.odd_labels)

    @cached_property
    def attributes(self) -> bool:
        """True if positions have attributes in the place of columns."""
        return FORMATS[self.format].attributes

    @cached_property
    def vectors(self) -> dict[str, int]:
        """Widths of the vectors that stand beside the data, by name."""
        real = [feature for feature in self.features if isinstance(feature, RealFeature)]
        return {f.config.vectors: len(f.mean) for f in real if f.config.vectors is not None}

    @property
    def tables(self) -> dict[str, Lookup]:
        """Tables of the lookups, by name."""
        out: dict[str, Lookup] = {}
        for feature in self.features:
            for one in feature.parts if isinstance(feature, ConjunctionFeature) else (feature,):
                table = one.table if isinstance(one, RealFeature | LookupFeature) else None
                if one.config.lookup is not None and table is not None:
                    out[one.config.lookup] = table
        return out

    def check_vectors(self, given: Mapping[str, int], source: str) -> None:
        """Refuse data whose vectors, by name and width, are not those that this was fitted to."""
        own = self.vectors
        wrong = next((name for name in {**own, **given} if own.get(name) != given.get(name)), None)
        if wrong is None:
            return
        if wrong not in own:
            known = f"only with '{listed(list(own))}'" if own else "without vectors"
            message = f"the model was trained {known}, and has no use for vectors '{wrong}': leave them out"
        elif wrong not in given:
            numbers = f"{own[wrong]:,} numbers for each position"
            other = suggestion(wrong, given)
            message = f"the model was trained with vectors '{wrong}', {numbers}, and none are given{other}"
        else:
            there = f"{counted(given[wrong], 'number')} for each position"
            message = f"vectors '{wrong}' have {there}, and the model was trained with {own[wrong]:,}"
        raise DataError(message, source, settings=["vectors"])

    def with_labels(self, corpus: Corpus) -> bool:
        """Return True if the corpus has gold labels; raise an error where its columns do not fit."""
        if (corpus.attributes is not None) != self.attributes:
            raise DataError(f"not in the format of the training data, {self.format}", corpus.source)
        return self.places(corpus)[-1] >= 0

    @cached_property
    def used(self) -> set[str]:
        """Names of the columns that features look at, and of those that name groups to scale numbers by."""
        return self.inputs_of_features | {one.config.group for one in self.features if one.config.group is not None}

    @cached_property
    def inputs_of_features(self) -> set[str]:
        """Names of the columns whose values features are made of."""
        out: set[str] = set()
        for feature in self.features:
            places = [macro.column for macro in template_macros(feature.config.templates)]
            if isinstance(feature, ConjunctionFeature):
                places = [part.column for part in feature.parts if part.column >= 0]
            elif isinstance(feature, RealFeature):
                places = list(feature.columns)
            elif isinstance(feature, CategoricalFeature) and not places and feature.column >= 0:
                places = [feature.column]
            out.update(self.columns[place] for place in places)
            out.update(feature.config.columns)
        return out

    def places(self, corpus: Corpus) -> list[int]:
        """Return the place of each column in a corpus; -1 for columns that it may lack: the label, and unused ones."""
        own, width, used = self.columns, corpus.width, [name for name in self.columns[:-1] if name in self.used]
        known: Sequence[int] = range(width)  # places in the corpus of the columns that are among these
        if corpus.header is not None:
            beside = self._sequence_beside
            known = [place for place, name in enumerate(corpus.header) if name != beside]
            header = tuple(corpus.header[place] for place in known)
            there = [name for name in own[:-1] if name in self.used or name in header]
            labelled = header == (*there, own[-1]) and known[-1] == width - 1  # the label is last
            if not labelled and header != tuple(there):
                expected = own if beside is None else (beside, *own)
                message = f"the first line should be the header of the training data ({_few(expected)})"
                without = f"with or without the label{'' if len(used) == len(own) - 1 else ' and unused columns'}"
                raise DataError(f"{message}, {without}, not {_few(corpus.header)}", corpus.source)
            if beside is not None and beside not in corpus.header:
                remedy = "write it beside the others, with the same value in all rows of a sequence"
                message = f"there is no column '{beside}', which tells sequences apart: {remedy}"
                raise DataError(message, corpus.source)
        elif width in (self.width, self.width - 1):
            there = list(own[:-1])
        elif width in (len(used), len(used) + 1):
            there = used
        else:
            widths = f"expected {self.width} with labels or {self.width - 1} without"
            raise DataError(
                f"{counted(width, 'column')}, {widths} ({_few(own)})",
                corpus.source,
                int(corpus.lines[0]) if corpus.positions else None,
            )
        places = dict(zip(there, known, strict=False))
        return [*(places.get(name, -1) for name in own[:-1]), known[-1] if len(there) < len(known) else -1]

    @property
    def _sequence_beside(self) -> str | None:
        """The column that tells sequences apart, where it is none of these columns, as with a data frame."""
        return None if self.layout.sequence in self.columns else self.layout.sequence

    def input_names(self, corpus: Corpus) -> list[str]:
        """Return the names of the columns of a corpus in its order, without the label's."""
        places = self.places(corpus)
        if corpus.header is not None:
            return list(corpus.header if places[-1] < 0 else corpus.header[:-1])
        return [name for name, place in zip(self.columns[:-1], places[:-1], strict=True) if place >= 0]

    @cached_property
    def numeric(self) -> set[int]:
        """Places of the columns that features read as numbers."""
        real = [one for one in self.features if isinstance(one, RealFeature) and one.table is None]
        readers = ("identity", *NUMBER_TRANSFORMS)
        return {place for feature in real if feature.config.transform in readers for place in feature.columns}

    def position_hashes(self, columns: Columns) -> np.ndarray:
        """Return the hash of the inputs of each position, [N] uint64, by columns in the order of this encoding."""
        places = [(at, name, at in self.numeric) for at, name in enumerate(self.columns[:-1]) if name in self.used]
        return column_hashes(columns, places, self.vectors)

    def encode(
        self, corpus: Corpus, columns: Columns | None = None, weighed: bool = False, hashed: bool = False
    ) -> Dataset:
        """Encode a corpus, with or without labels.

        `weighed` if it is training data: the column of weights is read, and inputs are hashed; `hashed`: the latter.
        """
        given = {name: array.shape[1] for name, array in corpus.vectors.items() if not name.startswith(SCALED)}
        self.check_vectors(given, corpus.source)
        with_labels, places = self.with_labels(corpus), self.places(corpus)
        columns = columns if columns is not None and self._in_order(places) else self._columns(corpus)
        corpus = columns.corpus
        labels, half_known, weights = None, None, corpus.weights
        if with_labels:
            if weighed and self.weight is not None and places[self.columns.index(self.weight)] >= 0:
                weights = column_weights(columns, self.columns.index(self.weight), self.weight)
            values, inverse = columns.distinct(self.width - 1)
            labels, half_known = label_numbers(values, self.labels, self.half_known, self.unobserved)
            labels = labels[inverse]
        N = corpus.positions
        codes: list[np.ndarray] = []
        bag, bag_unseen = None, np.zeros(N)
        for feature in self.features:
            if isinstance(feature, AttributeFeature):
                bag, bag_unseen = feature.block(columns)
            elif not isinstance(feature, RealFeature):
                codes.extend(feature.fields(columns))
        real, missing = real_block([one for one in self.features if isinstance(one, RealFeature)], columns)
        return Dataset(
            offsets=corpus.offsets,
            lines=corpus.lines,
            labels=labels,
            weights=weights,
            codes=np.stack(codes, axis=1) if codes else np.zeros((N, 0), np.int32),
            real=real,
            bag=bag,
            bag_unseen=bag_unseen,
            source=corpus.source,
            missing=missing,
            hashes=self.position_hashes(columns) if weighed or hashed else None,
            half_known=half_known,
        )

    def _columns(self, corpus: Corpus) -> Columns:
        """Return the columns of a corpus in the order of training; those that it may lack are empty."""
        places = self.places(corpus)
        if not self._in_order(places):
            lacking = CodedColumn([""], np.zeros(corpus.positions, np.int32))
            kept = places if places[-1] >= 0 else places[:-1]
            corpus = replace(corpus, columns=tuple(lacking if at < 0 else corpus.columns[at] for at in kept))
        return Columns(corpus, self.layout.missing)

    @staticmethod
    def _in_order(places: Sequence[int]) -> bool:
        """Return True if columns of input at these places, with or without a label, are all that there are."""
        return all(place == number for number, place in enumerate(places[:-1]))

    @cached_property
    def _scaled_by_group(self) -> list[tuple[RealFeature, GroupScaling]]:
        """Features of numbers that are scaled by sequence or group."""
        real = [feature for feature in self.features if isinstance(feature, RealFeature)]
        return [(feature, feature.by_group) for feature in real if feature.by_group is not None]

    @cached_property
    def needs_groups(self) -> bool:
        """True if numbers are scaled by groups, which may be spread over the data."""
        return any(scaling.column >= 0 for _, scaling in self._scaled_by_group)

    def group_totals(self, parts: Iterable[Corpus]) -> dict[str, Totals]:
        """Return the totals of groups, by features, of data that comes in parts."""
        out: dict[str, Totals] = {feature.config.name: {} for feature, own in self._scaled_by_group if own.column >= 0}
        for part in parts:
            columns = self._columns(part)
            for feature, scaling in self._scaled_by_group:
                if scaling.column >= 0:
                    raw = columns.real_rows(feature.columns, feature.config.columns)
                    scaling.totals(columns, raw, out[feature.config.name])
        return out

    def scaled_by_group(self, corpus: Corpus, totals: Mapping[str, Totals] | None = None) -> Corpus:
        """Return a corpus whose parts can be encoded one by one: with numbers scaled by groups, unless it has them.

        Groups have these `totals`, or those of the corpus itself.
        """
        if not self.needs_groups or not corpus.positions or any(name.startswith(SCALED) for name in corpus.vectors):
            return corpus
        totals = self.group_totals([corpus]) if totals is None else totals
        return self._with_scaled(corpus, lambda name, own, *rows: own.scaled(*rows, totals.get(name)))

    def scaled_online(self, corpus: Corpus, known: dict[str, Totals], continues: bool) -> Corpus:
        """Return a corpus with numbers scaled by what is `known` of their groups so far, which they are added to.

        The first sequence goes on with the last one before it if it `continues`.
        """
        if not self._scaled_by_group or not corpus.positions:
            return corpus
        known = {feature.config.name: known.setdefault(feature.config.name, {}) for feature, _ in self._scaled_by_group}
        return self._with_scaled(corpus, lambda name, own, *rows: own.scaled_online(*rows, known[name], continues))

    def _with_scaled(self, corpus: Corpus, scaled: Callable[..., np.ndarray]) -> Corpus:
        columns, vectors = self._columns(corpus), dict(corpus.vectors)
        for feature, own in self._scaled_by_group:
            raw = columns.real_rows(feature.columns, feature.config.columns)
            vectors[feature.scaled_name] = scaled(feature.config.name, own, columns, raw)
        return replace(corpus, vectors=vectors)

    def encoded_shards(self, spool: Spool, workers: Workers) -> Iterator[Dataset]:
        """Yield the shards of data on disk one after another; threads encode their parts."""

        def encoded(run: tuple[int, int]) -> Dataset:
            part = spool.part(run)
            return self.encode(part.corpus, part, weighed=True)

        for runs in spool.runs:
            yield join_datasets(list(workers.map(encoded, runs)))

    def views(self, names: Iterable[str]) -> list[View]:
        """Return the features and offsets of the given names, in the order of the features."""
        found = [view for name in names if (view := view_called(name, self._by_name)) is not None]
        places = {name: place for place, name in enumerate(self._by_name)}
        return sorted(found, key=lambda view: (places[view.feature.config.name], view.places))

    def has(self, name: str) -> bool:
        """Return True if there is a feature of that name, with the offsets that it names."""
        return view_called(name, self._by_name) is not None

    @cached_property
    def _by_name(self) -> dict[str, Feature]:
        return {feature.config.name: feature for feature in self.features}

    def inputs(self, dataset: Dataset, names: Sequence[str], zeros: bool = False) -> Inputs:
        """Return the blocks of the named features; `zeros`: with attributes of value zero."""
        bag = dataset.bag if zeros else dataset.nonzero_bag
        every = Inputs(dataset.codes, self._field_sizes, dataset.real, bag, dataset.bag_unseen)
        return every.columns(self._columns_of(tuple(names)))

    @cached_property
    def _field_sizes(self) -> np.ndarray:
        """The number of values of each column of codes, [C]."""
        discrete = (one for one in self.features if not isinstance(one, RealFeature | AttributeFeature))
        return np.array([size for feature in discrete for size in feature.field_sizes], dtype=np.int64)

    def _columns_of(self, names: tuple[str, ...]) -> Group:
        """Return the columns of the named features; of many features they take long to collect."""
        if names not in self._collected:
            whole, codes, real, bag = self.groups(self.names), list[int](), list[int](), False
            for view in self.views(names):
                group = whole[view.feature.config.name]
                codes += [group.codes[one] for one in view.columns if group.codes]
                real += [group.real[one] for one in view.columns if group.real]
                bag = bag or group.bag
            self._collected[names] = Group(tuple(codes), tuple(real), bag)
        return self._collected[names]

    @cached_property
    def _collected(self) -> dict[tuple[str, ...], Group]:
        return {}

    def groups(self, names: Sequence[str]) -> dict[str, Group]:
        """Return the columns of each of the named features in the inputs of all of them, by the features' own names."""
        out: dict[str, Group] = {}
        next_code = next_real = 0
        for view in self.views(names):
            count = len(view.columns)
            if isinstance(view.feature, AttributeFeature):
                group = Group(bag=True)
            elif isinstance(view.feature, RealFeature):
                group = Group(real=tuple(range(next_real, next_real + count)))
            else:
                group = Group(codes=tuple(range(next_code, next_code + count)))
            next_code += len(group.codes)
            next_real += len(group.real)
            out[view.feature.config.name] = group
        return out

    def outside(self, dataset: Dataset) -> int:
        """Return the number of positions with a number outside the range of the training data.

        Of ranks these are the numbers beyond all of it, of others those more than FAR standard deviations away.
        """
        found, begin = np.zeros(dataset.positions, dtype=bool), 0
        for feature in self.features:
            if isinstance(feature, RealFeature):
                window, r = feature.config.window or (0,), len(feature.mean)
                if 0 in window and not feature.is_vector:
                    first = begin + window.index(0) * r
                    values, low, high = dataset.real[:, first : first + r], np.full(r, -FAR), np.full(r, FAR)
                    if feature.config.transform == "rank":
                        low, high = ((end - feature.mean) / feature.scale for end in (0.0, 1.0))
                    found |= ((values <= low) | (values >= high)).any(axis=1)
                begin += len(window) * r
        return int(found.sum())

    def reach(self, names: Iterable[str]) -> tuple[int, int]:
        """Return how many positions behind and ahead the windows of the named features reach."""
        seen = [0]
        for view in self.views(names):
            config = view.feature.config
            if config.templates:
                seen += [macro.row for macro in template_macros(config.templates) if not macro.absolute]
            elif isinstance(view.feature, ConjunctionFeature):
                for part, (_, offset) in zip(view.feature.parts, config.parts, strict=True):
                    seen += [offset + shift + side for shift in view.offsets for side in (-part.around, part.around)]
            elif isinstance(view.feature, CategoricalFeature):
                around = view.feature.around
                seen += [shift + side for shift in view.offsets for side in (-around, around)]
            else:
                behind, ahead = config.transform_reach
                seen += [offset + shift for shift in (-behind, ahead) for offset in view.offsets]
        return -min(seen), max(seen)

    def features_of_whole_sequences(self, names: Iterable[str]) -> list[str]:
        """Return those of the named features that depend on the length of their sequence."""
        configs = [view.feature.config for view in self.views(names)]
        macros = {config.name: template_macros(config.templates) for config in configs}
        ends = {name for name, own in macros.items() if any(macro.absolute for macro in own)}
        of_ends = ("position", *RUN_TRANSFORMS)
        return [config.name for config in configs if config.transform in of_ends or config.name in ends]

    def remarks(self, data: Dataset | Amount, made: str | None = None) -> list[str]:
        """Return lines about training data: its size, its features or those `made` of them, and likely mistakes."""
        amount = data if isinstance(data, Amount) else Amount.of(data)
        counts = {"sequence": amount.sequences, "position": amount.positions, "label": len(self.labels)}
        sizes = ", ".join(counted(number, noun) for noun, number in counts.items())
        out = [f"data: {sizes} ({self._label_list(data)})"]
        out += filter(None, [made or self.kinds()])
        if amount.unobserved:
            kinds = {None: [], SETS: ["sets"], SOFT: ["soft"]}[self.half_known]
            kinds += [] if self.unobserved is None else [f"not observed ('{self.unobserved}')"]
            hidden = f"{counted(amount.unobserved, 'label is', 'labels are')} {' or '.join(kinds)}"
            rest = "all of theirs" if self.half_known is None else "one label at every position"
            out.append(f"{hidden}; {counted(amount.complete, 'sequence has', 'sequences have')} {rest}")
        elif self.half_known is not None:
            out.append("warning: no label has a '|': all are ordinary labels")
        elif self.unobserved is not None:
            out.append(f"warning: no label is '{self.unobserved}', which stands for labels that are not observed")
        if amount.sequences == 1 and amount.positions > 100:
            missing = "are blank lines missing, does a column tell them apart ('sequence'), or is it one .ttx of many?"
            out.append(Remark(f"warning: all is one sequence; {missing}", settings=["sequence"]))
        if (Y := len(self.labels)) > MANY_LABELS:
            out.append(f"warning: {Y:,} labels: is the last column the label? Time grows by their square")
        if any(" " in label for label in self.labels):
            out.append("warning: some labels have spaces inside; is the file separated by TABs and spaces alike?")
        annotated = [name for name in self.columns[:-1] if name.lower() in FORMATS[self.format].label_columns]
        if annotated:
            out.append(f"data to be tagged must have {', '.join(annotated)} as well, made without the label")
        return [*out, *self.warnings, *missing_remarks(amount.missing)]

    def _label_list(self, data: Dataset | Amount) -> str:
        """Return the labels in a line; of too many the first, and the rarest ones if known."""
        every = ", ".join(self.labels)
        if len(every) <= LONGEST_LIST:
            return every
        if isinstance(data, Amount) or data.labels is None:
            return f"{', '.join(self.labels[:MOST_NAMED])}, ..."
        numbers = np.bincount(data.labels[data.labels >= 0], minlength=len(self.labels))
        rarest = [y for y in np.argsort(numbers, kind="stable").tolist() if y >= MOST_NAMED]
        shown = [f"{self.labels[y]} ({numbers[y]:,})" for y in reversed(rarest[:MOST_RARE])]
        return ", ".join([*self.labels[:MOST_NAMED], "...", *shown])

    def kinds(self) -> str:
        """Return a line with the real and the categorical features, and their number of values."""
        real, words, said = [], [], []
        as_they_are = {
            feature.config.columns
            for feature in self.features
            if isinstance(feature, CategoricalFeature) and feature.config.transform == "identity"
        }
        for feature in self.features:
            name = feature.config.name
            if isinstance(feature, RealFeature):
                width = len(feature.mean) if feature.is_vector else len(feature.columns) or 1
                real.append(name if width == 1 else f"{name} ({width:,} columns)")
            elif isinstance(feature, CategoricalFeature):
                if feature.config.transform != "identity" and feature.config.columns in as_they_are:
                    continue  # a part of what is named already
                words.append(f"{name} ({counted(len(feature.vocabulary.values), 'value')})")
            elif isinstance(feature, AttributeFeature):
                said.append(f"{counted(len(feature.vocabulary.values), 'attribute')}")
        for title, names in (("categorical", words), ("real", real)):
            if names:
                count = f" of {len(names):,}" if len(names) > MOST_NAMED else ""
                said.append(f"{title}{count}: {_few(names)}")
        return f"features: {'; '.join(said)}" if said else ""

    def empty_dataset(self) -> Dataset:
        """Return a dataset of no position, for its shapes."""
        offsets, nothing = np.zeros(1, np.int64), np.zeros(0, np.int64)
        attributes = AttributeRows(offsets, [], np.zeros(0)) if self.attributes else None
        columns: tuple[list[str], ...] = tuple([] for _ in self.columns)
        vectors = {name: np.zeros((0, width)) for name, width in self.vectors.items()}
        return self.encode(Corpus("no data", columns, offsets, nothing, None, attributes, vectors=vectors))

    def term_features(self, term: TermConfig) -> list[str]:
        """Names of the features that a term looks at, with offsets where it does not look at all of the window."""
        out = []
        for name in matching_features(term.features, self.names, term.name):
            config, wanted = self._by_name[name].config, term.window
            if wanted is None or config.type in BAGS:
                wanted = config.own_window or config.seen
            if lacking := [offset for offset in wanted if offset not in config.seen]:
                raise ConfigError(
                    f"term '{term.name}' looks at '{name}' at {window_text(lacking)}, and the data was encoded for "
                    f"{window_text(config.seen)}: encode it again with this term in the configuration"
                )
            out.append(View.of(self._by_name[name], wanted).name)
        return out

    def describe(self, dataset: Dataset, t: int) -> list[str]:
        """Return the values of position t, feature by feature: `word[-1]=the`, `f0[0]=0.52`, `attribute:2`."""
        out: list[str] = []
        groups = self.groups(self.names)
        for feature in self.features:
            at = groups[feature.config.name]
            if isinstance(feature, AttributeFeature):
                bag = dataset.own_bag
                row = slice(bag.indptr[t], bag.indptr[t + 1])
                for code, value in zip(bag.indices[row].tolist(), bag.data[row].tolist(), strict=True):
                    name = feature.vocabulary.values[code]
                    out.append(name if value == 1 else ATTRIBUTE.format(name, value))
            elif isinstance(feature, RealFeature):
                names, numbers = real_names(feature), dataset.real[t, list(at.real)].tolist()
                out += vector_texts(feature, numbers) if feature.is_vector else map(REAL.format, names, numbers)
            else:
                codes = dataset.codes[t, list(at.codes)].tolist()
                out += [field_name(feature, w, None, code) for w, code in enumerate(codes)]
        return out

    def feature_names(self, names: Sequence[str], text: ValueText = None) -> FeatureNames:
        """Return the names of the columns of some features."""
        return FeatureNames(self.views(names), text)

    def same_as(self, other: Encoding) -> bool:
        """Return True if both give the same numbers for the same corpus."""
        (header, arrays), (others, other_arrays) = self.pack(), other.pack()
        return (
            header == others
            and arrays.keys() == other_arrays.keys()
            and all(np.array_equal(array, other_arrays[name]) for name, array in arrays.items())
        )

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return header entries and arrays; `unpack` makes an equal encoding of them."""
        header: dict[str, Any] = {"format": self.format, "columns": list(self.columns), "features": []}
        header |= FORMATS.origin(self.format)
        if self.unobserved is not None:
            header["unobserved"] = self.unobserved
        if self.half_known is not None:
            header["half_known"] = self.half_known
        if self.weight is not None:
            header["weight"] = self.weight
        if self.odd_labels:
            header["odd_labels"] = list(self.odd_labels)
        if layout := layout_dict(self.layout):
            header["layout"] = layout
        parts = [f for one in self.features for f in (one.parts if isinstance(one, ConjunctionFeature) else (one,))]
        if any(feature.config.transform in OF_CHARACTERS for feature in parts):
            header["unicode"] = VERSION
        arrays = pack_strings(self.labels, "labels")
        for number, feature in enumerate(self.features):
            header["features"].append(pack_feature(feature, f"feature{number}", arrays))
        if self.tables:
            header["lookups"] = {name: pack_table(one, f"lookup.{name}", arrays) for name, one in self.tables.items()}
        return {"encoding": header}, arrays

    @classmethod
    def unpack(cls, contents: Contents) -> Encoding:
        header = contents.get("encoding", dict)
        try:
            format = FORMATS.stored(header.get("format"), header.get("plugin"))
            columns = tuple(header["columns"])
            if format.columns:
                format.column_places(columns)
            if not columns or not all(isinstance(name, str) for name in columns):
                raise contents.error("the encoding has no names of columns")
            lookups = header.get("lookups", {}).items()
            tables = {name: unpack_table(contents, entry, name, f"lookup.{name}") for name, entry in lookups}
            features = tuple(
                unpack_feature(contents, entry, f"feature{number}", len(columns), tables)
                for number, entry in enumerate(header["features"])
            )
            unobserved, half_known, weight = map(header.get, ("unobserved", "half_known", "weight"))
            layout = parse_config({"header": False, **header.get("layout", {})}).layout
            format.check_layout(layout)
            labels = tuple(contents.strings("labels"))
            about = unobserved, half_known, weight, layout, tuple(header.get("odd_labels", ()))
            encoding = cls(format.name, columns, labels, features, *about)
        except NotRegistered as error:
            raise FileFormatError(f"{contents.path}: {error}", settings=error.settings) from None
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, ConfigError) as error:
            raise contents.error(f"the encoding cannot be read ({error!r})") from None
        if not (unobserved is None or (isinstance(unobserved, str) and unobserved not in encoding.labels)):
            raise contents.error("'unobserved' is no name, or that of a label")
        if half_known not in (None, SETS, SOFT):
            raise contents.error("'half_known' is of no kind that is known")
        if weight is not None and weight not in columns[:-1]:
            raise contents.error("'weight' is no column")
        if not set(encoding.odd_labels) < set(labels):
            raise contents.error("'odd_labels' are not among the labels")
        if any(map(BREAKS.search, (*encoding.labels, unobserved or ""))):
            raise contents.error("a label has a TAB or a line end inside")
        for what, names in (("label", encoding.labels), ("feature", encoding.names)):
            if not names or "" in names or len(set(names)) < len(names):
                raise contents.error(f"the encoding has no {what}, or one twice")
        for feature in features:
            vectors = feature.config.vectors
            if vectors is None:
                continue
            if not isinstance(feature, RealFeature) or len(feature.mean) != encoding.vectors[vectors]:
                raise contents.error(f"'{feature.config.name}' has vectors of another width")
        bags = [feature.config.type for feature in features if isinstance(feature, AttributeFeature)]
        kinds = {one.config.type for one in features if one.config.vectors is None and one.config.lookup is None}
        fitting = kinds <= {"attributes"} if encoding.attributes else "attributes" not in kinds
        if len(bags) > 1 or not fitting or (encoding.attributes and len(columns) > 1):
            raise contents.error("the encoding has features that do not go with its format")
        return encoding


MOST_NAMED = 8
LONGEST_LIST = 300  # characters of a list of all labels
MOST_RARE = 4  # at the end of a shorter list


def _few(names: Sequence[str]) -> str:
    """Return names in a line; of many the first."""
    return ", ".join(names[:MOST_NAMED]) + (", ..." if len(names) > MOST_NAMED else "")


def missing_remarks(missing: Sequence[tuple[str, int]]) -> list[str]:
    """Return a line with the features that have missing values, if there are any."""
    if not missing:
        return []
    shown = _few([f"{number:,} of {name}" for name, number in missing])
    return [f"{counted(sum(number for _, number in missing), 'missing value')} taken for the training mean: {shown}"]


def outside_remarks(outside: int, positions: int) -> tuple[str, ...]:
    """Return a line about numbers outside the range of the training data, if a good part of the positions has some."""
    if outside <= OUTSIDE_SHARE * positions:
        return ()
    share = f"{100 * outside / positions:.0f} % of the positions have numbers outside the range of the training data"
    return (f"warning: {share}: labels there are guesses",)


# Standard deviations from the mean of the training data that numbers rarely have, and the share of positions with such
# numbers that is worth a warning.
FAR, OUTSIDE_SHARE = 5.0, 0.1
CATEGORICAL_WINDOW = (-2, -1, 0, 1, 2)
REAL_WINDOW = (0,)
EMBEDDINGS_WINDOW = (-1, 0, 1)


def fit_encoding(
    config: Config,
    corpus: Corpus,
    odd: Collection[str] | None = None,
) -> tuple[Encoding, Dataset]:
    """Fit vocabularies and scaling to training data, and encode it.

    `odd` are the labels that are not of the scheme of nearly all others, in the data that the
    corpus is a part of; None: those of the corpus.

    >>> from kcrf_core import fit_encoding, parse_config, read_corpus
    >>> config = parse_config({"columns": ["word", "class", "duration", "f0", "energy", "label"]})
    >>> encoding, dataset = fit_encoding(config, read_corpus("sample_data/pitch_accent.conll"))
    >>> encoding.describe(dataset, 0)[2:4]
    ['word[0]=but', 'word[1]=it']
    """
    columns = Columns(corpus, config.missing, fitting=True)
    encoding = fit_to(config, columns, odd)
    return encoding, encoding.encode(corpus, columns, weighed=True)


def input_hashes(config: Config, corpus: Corpus) -> np.ndarray:
    """Return the hash of the inputs of each position, [N] uint64, in columns that a configuration looks at."""
    columns = Columns(corpus, config.missing, fitting=True)
    return fit_to(config, columns).position_hashes(columns)


def fit_to(
    config: Config,
    columns: TrainingColumns,
    odd: Collection[str] | None = None,
) -> Encoding:
    """Fit vocabularies and scaling to training data that may come in parts; see `fit_encoding`."""
    corpus = columns.corpus
    names = column_names(config, corpus)
    left_out = left_out_columns(config, names)
    counts = label_counts(columns, config)
    labels = tuple(counts)
    if not labels:
        raise DataError(f"all labels are '{config.unobserved}': there are no labels to train on", corpus.source)
    if "" in labels:
        raise DataError("an empty label", *(columns.first_line(corpus.width - 1, "") or ()))
    broken = next(filter(BREAKS.search, labels), None)
    if broken is not None:  # in the quotes of CSV
        message = "a label with a TAB or a line end inside: is the last column the label?"
        raise DataError(message, *(columns.first_line(corpus.width - 1, broken) or ()))
    if labels == (FORMATS[corpus.format].no_value,):
        raise DataError(f"no labels to train on: column '{names[-1]}' is {labels[0]} throughout", corpus.source)
    if len(labels) > MOST_LABELS:
        raise DataError(
            f"{len(labels):,} distinct labels in the last column (limit {MOST_LABELS:,}): is it the label? For CSV "
            "give the separator",
            corpus.source,
            settings=["separator"],
        )
    settings = config.features
    if settings is None:
        settings = tuple(FeatureConfig(name, (name,)) for name in names[:-1] if name not in left_out)
        if corpus.attributes is not None:
            settings = (FeatureConfig("attributes", (), "attributes", window=(0,)),)
        for name in corpus.vectors:
            if any(name == feature.name for feature in settings):
                message = f"vectors '{name}' have the name of a column: give them another"
                raise ConfigError(message, settings=["vectors"])
        settings += tuple(FeatureConfig(name, (), "real", vectors=name) for name in corpus.vectors)
    fitter = _Fitter(config, names, columns, _term_offsets(config, settings))
    for feature in settings:
        fitter.fitted[feature.name] = fitter.fit(feature)
    odd = odd_labels(counts) if odd is None else tuple(label for label in labels if label in odd)
    encoding = Encoding(
        format=corpus.format,
        columns=names,
        labels=labels,
        features=tuple(fitter.fitted.values()),
        unobserved=config.unobserved,
        half_known=config.half_known,
        weight=config.weight,
        layout=replace(
            config.layout,
            separator=(corpus.layout or config.layout).separator,
            span_labels=(corpus.layout or config.layout).span_labels,
            header=corpus.header is not None,
        ),
        odd_labels=odd,
    )
    slips = (
        *label_warnings(columns, counts, odd),
        *column_warnings(columns, counts, names, encoding.used),
    )
    encoding = replace(encoding, warnings=(*slips, *columns.warnings))
    idle = [name for name in corpus.vectors if name not in encoding.vectors]
    if idle:
        raise ConfigError(
            f"no feature is made of the vectors '{idle[0]}': add {{vectors: {idle[0]}}} to 'features', or leave them "
            "out",
            settings=["vectors"],
        )
    for name in table_keys(config):
        if name not in encoding.tables:
            what = f"the {name}" if name in LOOKUPS else f"the lexicon '{name}'"
            raise ConfigError(
                f"no feature looks anything up in {what}: add {{column: NAME, lookup: {name}}} to 'features', or leave "
                "it out",
                settings=(name if name in LOOKUPS else "lexicon",),
            )
    for term in config.mapped_terms:
        encoding.term_features(term)  # a glob that matches nothing is refused before work starts
    return encoding


def left_out_columns(config: Config, names: Sequence[str]) -> set[str]:
    """Return the columns that are no features unless the configuration says so; each must be there."""
    named = [("weight", config.weight), ("sequence", config.sequence), *(("ignore", name) for name in config.ignore)]
    for key, name in named:
        if name == names[-1]:
            raise ConfigError(f"'{key}' names no column of input: '{name}' is the label", settings=(key,))
    return {names[column_place(key, name, names[:-1])] for key, name in named if name is not None}


def column_names(config: Config, corpus: Corpus) -> tuple[str, ...]:
    """Return names of the columns, the label's last: the format's, the configuration's, or c0, c1, ..., label."""
    if corpus.names is not None:
        return corpus.names
    if corpus.unlabelled:
        raise DataError(corpus.unlabelled, corpus.source)
    if corpus.attributes is None and corpus.width < (1 if corpus.vectors else 2):
        found = next((mark for mark in ",;|" if mark in corpus.columns[0][0]), None)
        csv = f"; if the file is CSV, give the separator '{found}'" if found else ""
        raise DataError(
            f"only one column; training data needs at least one column of input, and the label as the last one{csv}",
            corpus.source,
            int(corpus.lines[0]),
            settings=["separator"] if found else (),
        )
    if config.columns is None and corpus.header is not None:
        if "label" in corpus.header[:-1]:
            message = "the header has 'label' before the last column, which is the label"
            raise DataError(message, corpus.source)
        return corpus.header
    if config.columns is not None:
        if "label" in config.columns[:-1]:
            raise ConfigError("'columns' has 'label' before the last column, which is the label")
        if len(config.columns) != corpus.width:
            raise ConfigError(
                f"'columns' names {counted(len(config.columns), 'column')} ({listed(config.columns)}), "
                f"{corpus.source} has {corpus.width}, the label included"
            )
        return config.columns
    return (*(f"c{number}" for number in range(corpus.width - 1)), "label")


def _term_offsets(config: Config, features: Sequence[FeatureConfig]) -> dict[str, set[int]]:
    """Return the offsets that terms with windows of their own use, by the names of features."""
    names, bags = [feature.name for feature in features], {one.name for one in features if one.type in BAGS}
    out: dict[str, set[int]] = {}
    for term in config.mapped_terms:
        if term.window is None:
            continue
        matching = matching_features(term.features, names, term.name)
        if bags.issuperset(matching):
            raise ConfigError(
                f"term '{term.name}' has a 'window', but its features ({listed(matching)}) cannot be shifted: "
                "leave it out"
            )
        for name in matching:
            out.setdefault(name, set()).update(term.window)
    return out


class _Fitter:
    """Fits features one by one; conjunctions refer to those before them or to columns.

    Windows also hold the offsets that terms use, `seen`.
    """

    def __init__(self, config: Config, names: Sequence[str], columns: TrainingColumns, seen: Mapping[str, set[int]]):
        self.config, self.names, self.columns, self.seen = config, names, columns, seen
        self.places = {name: place for place, name in enumerate(names[:-1])}
        self.weight = -1 if config.weight is None else column_place("weight", config.weight, names[:-1])
        self.fitted: dict[str, Feature] = {}
        self.plain: dict[str, CategoricalFeature] = {}

    def fit(self, feature: FeatureConfig) -> Feature:
        corpus = self.columns.corpus
        if feature.vectors is not None:
            if feature.vectors not in corpus.vectors:
                known = f"; there are: {listed(list(corpus.vectors))}" if corpus.vectors else ""
                message = f"needs vectors '{feature.vectors}', which are not given{known}"
                raise ConfigError(f"feature '{feature.name}' {message}", settings=["vectors"])
            widened = self._widened(feature, self.config.window or REAL_WINDOW)
            return fit_real(widened, (), self.columns, weight=self.weight)
        if feature.lookup is not None:
            return self._lookup(feature)
        if (feature.type == "attributes") != (corpus.attributes is not None):
            needed = "attributes" if feature.type == "attributes" else "columns"
            raise ConfigError(f"feature '{feature.name}' needs {needed}, which {corpus.source} does not have")
        min_count = feature.min_count or self.config.min_count
        if feature.templates:
            for number in range(template_width(feature.templates)):
                self._column(feature, f"c{number}")
            strings = Vocabulary.fit(*template_counts(feature, self.columns), min_count, distinct=True)
            return LineFeature(feature, 0, strings) if feature.type not in BAGS else TemplateFeature(feature, strings)
        if feature.type == "attributes":
            return AttributeFeature(feature, Vocabulary.fit(*self.columns.attribute_counts(), min_count, distinct=True))
        if feature.type == "conjunction":
            feature = self._widened(feature, (0,))
            parts = tuple(self._part(feature, name) for name, _ in feature.parts)
            if len(parts) < 2:
                raise ConfigError(f"feature '{feature.name}': a conjunction needs at least two parts")
            return fit_conjunction(feature, parts, self.columns, min_count)
        where = tuple(self._column(feature, name) for name in feature.columns)
        type_ = feature.type
        if type_ == AUTO or feature.transform == "rank":
            self._warn_of_identifier(feature, where[0])
        if type_ == AUTO:
            real = corpus.names is None and self.columns.looks_real(where[0], feature.columns[0])
            type_ = "real" if real else "categorical"
        default = REAL_WINDOW if type_ == "real" else CATEGORICAL_WINDOW
        feature = self._widened(replace(feature, type=type_), self.config.window or default)
        if type_ == "real":
            if feature.transform == "identity" and self.config.missing_indicator:
                feature = replace(feature, missing="indicator")
            group = -1 if feature.group is None else self._column(feature, feature.group)
            return fit_real(feature, where, self.columns, group=group, weight=self.weight)
        if feature.scale != AUTO:
            raise ConfigError(f"feature '{feature.name}' is not made of numbers and takes no 'scale'")
        return fit_categorical(feature, where[0], self.columns, min_count)

    def _warn_of_identifier(self, feature: FeatureConfig, place: int) -> None:
        """Warn of a column that is a feature as it is, or by its ranks, and says where in the data a row stands."""
        (column, *others) = feature.columns
        as_it_is = feature.name == column or feature.transform == "rank"
        if others or not as_it_is or self.columns.corpus.names is not None:
            return
        found = self.columns.identifier(place)
        if found is not None:
            remedy = "leave it out ('ignore'), or name it as 'sequence' or 'group'"
            about = f"warning: column {column} {found}, and says little about new data: {remedy}"
            self.columns.warnings.append(Remark(about, settings=["ignore", "sequence", "group"]))

    def _lookup(self, feature: FeatureConfig) -> Feature:
        """Fit a feature of values that are looked up in a table."""
        config, (name,), known = self.config, feature.columns, table_keys(self.config)
        if feature.lookup not in known:
            there = f"there is {listed([repr(one) for one in known])}" if known else "none is given"
            message = f"feature '{feature.name}' looks '{name}' up in '{feature.lookup}', and {there}"
            raise ConfigError(message, settings=[feature.lookup if feature.lookup in LOOKUPS else "lexicon"])
        table = find_table(config, feature.lookup, self.columns.corpus.tables)
        real = isinstance(table, WordVectors)
        if feature.type not in (AUTO, "real" if real else "categorical"):
            kind = "embeddings are numbers, so their type is real" if real else "its type is categorical"
            raise ConfigError(f"feature '{feature.name}': {kind}")
        if feature.length is not None and not isinstance(table, Clusters):
            raise ConfigError(f"feature '{feature.name}': 'length' is for clusters, the number of bits of a path")
        column = -1
        if self.columns.corpus.attributes is None:
            column = self._column(feature, name)
        elif not attribute_values(self.columns.attribute_counts()[0], name):
            message = f"feature '{feature.name}': no attribute is '{name}=...' or '{name}:...'"
            raise ConfigError(message, settings=["lookup_column"])
        if not isinstance(table, WordVectors):
            if feature.scale != AUTO:
                raise ConfigError(f"feature '{feature.name}' is not made of numbers and takes no 'scale'")
            feature = self._widened(replace(feature, type="categorical"), config.window or CATEGORICAL_WINDOW)
            return fit_lookup(feature, column, self.columns, table, feature.min_count or config.min_count)
        feature = self._widened(replace(feature, type="real"), config.window or EMBEDDINGS_WINDOW)
        where = () if column < 0 else (column,)
        return fit_real(feature, where, self.columns, table, weight=self.weight)

    def _widened(self, feature: FeatureConfig, default: tuple[int, ...]) -> FeatureConfig:
        """Return a feature with its window, or the default one, and the offsets that terms use beyond it."""
        own = feature.window or default
        window = tuple(sorted(self.seen.get(feature.name, set()).union(own)))
        return replace(feature, window=window, own_window=None if window == own else own)

    def _part(self, feature: FeatureConfig, name: str) -> CategoricalFeature:
        known = self.fitted.get(name)
        if isinstance(known, CategoricalFeature):
            return known
        # A column of numbers is taken by its values, as 0/1 columns in pairs and triples are.
        if known is not None and not (
            isinstance(known, RealFeature) and known.plain and known.config.columns == (name,)
        ):
            raise ConfigError(f"feature '{feature.name}': '{name}' is not categorical and cannot be conjoined")
        if name not in self.plain:
            column = self._column(feature, name)
            config = FeatureConfig(name, (name,), "categorical", window=(0,))
            self.plain[name] = fit_categorical(config, column, self.columns, 1)
        return self.plain[name]

    def _column(self, feature: FeatureConfig, name: str) -> int:
        if name in self.places:
            return self.places[name]
        # Templates count columns, whatever they are called.
        if name.startswith("c") and name[1:].isdecimal() and int(name[1:]) < len(self.places):
            return int(name[1:])
        if name == self.names[-1]:
            raise ConfigError(f"feature '{feature.name}' looks at '{name}', which is the label")
        raise ConfigError(
            f"feature '{feature.name}': there is no column '{name}' in {self.columns.corpus.source} "
            f"(columns: {listed(self.names[:-1])})"
        )
