"""Features of values that are looked up in a lexicon or in clusters, and the tables that a configuration names."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..config import CLUSTERS, EMBEDDINGS, Config, FeatureConfig
from ..corpora import (
    NONE,
    Clusters,
    Columns,
    Corpus,
    Lexicon,
    Lookup,
    TrainingColumns,
    load_clusters,
    load_lexicon,
    load_word_vectors,
)
from ..errors import ConfigError
from ..system import counted
from .features import CategoricalFeature, Vocabulary, attribute_values, looked_up_codes


@dataclass(frozen=True)
class LookupFeature(CategoricalFeature):
    """Values of a column, or of an attribute, that are looked up: B-city, I-city or none, or the prefix of a path."""

    table: Lexicon | Clusters

    @property
    def around(self) -> int:
        return self.table.longest - 1 if isinstance(self.table, Lexicon) else 0

    def base(self, columns: Columns) -> np.ndarray:
        table = self.table
        if not isinstance(table, Lexicon):
            none = int(self.encode([""])[0])
            return looked_up_codes(self.config, self.column, columns, self.vocabulary, self.encode, none)

        def work() -> np.ndarray:
            words = looked_up_codes(self.config, self.column, columns, table, table.numbers, -1)
            return table.places(words, columns.corpus.offsets)

        return columns.once(("lexicon", self.column, self.config.columns), table, work)

    def encode(self, values: Sequence[str]) -> np.ndarray:
        assert isinstance(self.table, Clusters)  # entries of lexicons have several words
        return self.vocabulary.encode(self.table.prefixes(values, self.config.length))


def fit_lookup(
    config: FeatureConfig, column: int, columns: TrainingColumns, table: Lexicon | Clusters, min_count: int
) -> LookupFeature:
    """Return a feature with the values that a table can give, or with those of clusters that training has."""
    name = config.lookup
    if isinstance(table, Lexicon):
        feature = LookupFeature(config, column, Vocabulary((NONE, f"B-{name}", f"I-{name}"), True), table)
        share = sum(np.count_nonzero(feature.base(part)) for part in columns.parts) / columns.positions
        what = f"lexicon {name} of {table.source}: {counted(len(table.entries), 'entry', 'entries')}"
        within = "of positions are within one"
    else:
        if columns.corpus.attributes is None:
            values, counts = columns.value_counts(column)
        else:
            names, every = columns.attribute_counts()
            found = attribute_values(names, config.columns[0])
            values, counts = list(found.values()), every[list(found)]
        prefixes = table.prefixes(values, config.length)
        vocabulary = Vocabulary.fit([*prefixes, NONE], np.append(counts, min_count), min_count)
        feature = LookupFeature(config, column, vocabulary, table)
        share = sum(counts[place] for place, prefix in enumerate(prefixes) if prefix != NONE) / columns.positions
        what, within = f"{name} of {table.source}: {counted(len(table.words), 'word')}", "of positions have one"
    about = f"{what}; {share:.1%} {within}"
    if not share:
        about = f"warning: {about}: is '{config.columns[0]}' the right column?"
    if about not in columns.warnings:  # of prefixes of several lengths
        columns.warnings.append(about)
    return feature


def table_keys(config: Config) -> dict[str, Hashable]:
    """Return the lookups that a configuration names, each with what its table is made of."""
    out: dict[str, Hashable] = {} if config.embeddings is None else {EMBEDDINGS: config.embeddings}
    out |= {name: (entries, config.lexicon_case != "keep") for name, entries in config.lexicons}
    return out if config.clusters is None else {**out, CLUSTERS: (config.clusters,)}


def find_table(config: Config, name: str, tables: Mapping[Hashable, Lookup]) -> Lookup:
    """Return the table of a lookup: that which is there already (`Corpus.tables`), or that of its file."""
    key = table_keys(config)[name]
    if key in tables:
        return tables[key]
    if name == EMBEDDINGS:
        assert config.embeddings is not None
        return load_word_vectors(config.embeddings)
    if name == CLUSTERS:
        assert config.clusters is not None
        return load_clusters(config.clusters)
    fold, given = config.lexicon_case != "keep", dict(config.lexicons)[name]
    if isinstance(given, str):
        return load_lexicon(given, fold)
    out = Lexicon.of("a list", given, fold)
    if not out.entries:
        raise ConfigError(f"lexicon '{name}' has no entries", settings=["lexicon"])
    return out


def with_tables(corpus: Corpus, config: Config) -> Corpus:
    """Return a corpus with the tables that a configuration names: for folds, and for other processes."""
    tables = {key: find_table(config, name, corpus.tables) for name, key in table_keys(config).items()}
    return replace(corpus, tables={**corpus.tables, **tables})
