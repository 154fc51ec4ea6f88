"""An encoding fitted to training data: vocabularies, scaling and windows, feature by feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .columns import Columns
from .config import AUTO, BAGS, Config, FeatureConfig
from .conllu import NO_VALUE
from .corpus import Corpus
from .dataset import Dataset
from .encoding import Encoding
from .errors import ConfigError, DataError
from .features import (
    AttributeFeature,
    CategoricalFeature,
    Feature,
    Vocabulary,
    fit_categorical,
    fit_conjunction,
    fit_real,
)
from .template_feature import TemplateFeature, expanded, template_width

CATEGORICAL_WINDOW = (-2, -1, 0, 1, 2)
REAL_WINDOW = (0,)

# Potentials of all pairs of labels are held several times over: these take some gigabytes.
MOST_LABELS = 5_000


def fit_encoding(config: Config, corpus: Corpus) -> tuple[Encoding, Dataset]:
    """Vocabularies and scaling from training data, and that data encoded.

    >>> from kcrf_core import fit_encoding, parse_config, read_corpus
    >>> config = parse_config({"columns": ["word", "class", "duration", "f0", "energy", "label"]})
    >>> encoding, dataset = fit_encoding(config, read_corpus("sample_data/pitch_accent.conll"))
    >>> encoding.describe(dataset, 0)[2:4]
    ['word[0]=but', 'word[1]=it']
    """
    columns = Columns(corpus)
    names = column_names(config, corpus)
    if config.weight is not None and config.weight not in names[:-1]:
        raise ConfigError(f"'weight' names no column: there is no '{config.weight}' (columns: {', '.join(names[:-1])})")
    labels = tuple(sorted(set(columns.distinct(corpus.width - 1)[0]) - {config.unobserved}))
    if not labels:
        raise DataError(f"all labels are '{config.unobserved}': there is none to learn", corpus.source)
    if "" in labels:
        t = corpus.columns[-1].index("")
        raise DataError("an empty label", corpus.source, int(corpus.lines[t]))
    if corpus.names is not None and labels == (NO_VALUE,):
        raise DataError(f"no labels to train on: column '{names[-1]}' is {NO_VALUE} throughout", corpus.source)
    if len(labels) > MOST_LABELS:
        raise DataError(
            f"{len(labels):,} distinct labels, where {MOST_LABELS:,} are the most that pairs of can be held; "
            "is the last column the label?",
            corpus.source,
        )
    settings = config.features
    if settings is None:
        settings = _default_features(corpus, [name for name in names[:-1] if name != config.weight])
    fitter = _Fitter(config, names, columns)
    features = tuple(fitter.fit(feature) for feature in settings)
    encoding = Encoding(corpus.format, names, labels, features, config.unobserved, config.weight)
    if config.unobserved is not None and encoding.features_of_labels:
        raise ConfigError(f"'{encoding.features_of_labels[0]}' (label-ratio) needs all labels: leave out 'unobserved'")
    for term in config.mapped_terms:
        encoding.term_features(term)  # a glob that matches nothing should be heard of before work starts
    return encoding, encoding.encode(corpus, columns, weighed=True)


def column_names(config: Config, corpus: Corpus) -> tuple[str, ...]:
    """Names of the columns, the label's last: the format's, the configuration's, or c0, c1, ..., label."""
    if corpus.names is not None:
        return corpus.names
    if corpus.attributes is None and corpus.width < 2:
        raise DataError(
            "only one column; training data needs at least one of input and the label last",
            corpus.source,
            int(corpus.lines[0]),
        )
    if config.columns is not None:
        if "label" in config.columns[:-1]:
            raise ConfigError("'columns' calls a column 'label' that is not the last, where the label stands")
        if len(config.columns) != corpus.width:
            raise ConfigError(
                f"'columns' names {len(config.columns)} columns ({', '.join(config.columns)}), "
                f"{corpus.source} has {corpus.width}, the label included"
            )
        return config.columns
    return (*(f"c{number}" for number in range(corpus.width - 1)), "label")


def _default_features(corpus: Corpus, names: Sequence[str]) -> tuple[FeatureConfig, ...]:
    if corpus.attributes is not None:
        return (FeatureConfig("attributes", (), "attributes", window=(0,)),)
    return tuple(FeatureConfig(name, (name,)) for name in names)


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
        if feature.type in BAGS:
            if feature.type == "templates":
                for number in range(template_width(feature.templates)):
                    self._column(feature, f"c{number}")
            rows = corpus.attributes if feature.type == "attributes" else expanded(feature.templates, self.columns)
            vocabulary = Vocabulary.fit(rows.names, np.ones(len(rows.names), dtype=np.int64), min_count)
            kind = AttributeFeature if feature.type == "attributes" else TemplateFeature
            fitted: Feature = kind(feature, vocabulary)
        elif feature.type == "conjunction":
            feature = replace(feature, window=feature.window or (0,))
            parts = tuple(self._part(feature, name) for name, _ in feature.parts)
            if len(parts) < 2:
                raise ConfigError(f"feature '{feature.name}': a conjunction needs at least two parts")
            fitted = fit_conjunction(feature, parts, self.columns, min_count)
        else:
            where = tuple(self._column(feature, name) for name in feature.columns)
            kind = feature.type
            if kind == AUTO and corpus.names is not None:
                kind = "categorical"
            elif kind == AUTO:
                kind = "real" if self.columns.looks_real(where[0], feature.columns[0]) else "categorical"
            default = REAL_WINDOW if kind == "real" else CATEGORICAL_WINDOW
            window = feature.window or self.config.window or default
            feature = replace(feature, type=kind, window=window)
            if kind == "categorical" and feature.scale != AUTO:
                raise ConfigError(f"feature '{feature.name}' is not made of numbers and takes no 'scale'")
            if kind == "real":
                fitted = fit_real(feature, where, self.columns, self.config.training.seed)
            else:
                fitted = fit_categorical(feature, where[0], self.columns, min_count)
        self.fitted[feature.name] = fitted
        return fitted

    def _part(self, feature: FeatureConfig, name: str) -> CategoricalFeature:
        known = self.fitted.get(name)
        if isinstance(known, CategoricalFeature):
            return known
        if known is not None:
            raise ConfigError(f"feature '{feature.name}': '{name}' is not categorical and cannot be conjoined")
        if name not in self.plain:
            column = self._column(feature, name)
            config = FeatureConfig(name, (name,), "categorical", window=(0,))
            self.plain[name] = fit_categorical(config, column, self.columns, 1)
        return self.plain[name]

    def _column(self, feature: FeatureConfig, name: str) -> int:
        inputs = list(self.names[:-1])
        if name in inputs:
            return inputs.index(name)
        # Templates count columns, whatever they are called.
        if name.startswith("c") and name[1:].isdecimal() and int(name[1:]) < len(inputs):
            return int(name[1:])
        if name == self.names[-1]:
            raise ConfigError(f"feature '{feature.name}' looks at '{name}', which is the label")
        raise ConfigError(
            f"feature '{feature.name}': there is no column '{name}' in {self.columns.corpus.source} "
            f"(columns: {', '.join(inputs)})"
        )
