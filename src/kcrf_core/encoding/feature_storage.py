"""Fitted features in a container: a header entry and arrays for each, checked when they are read back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..config import BAGS, EMBEDDINGS, FeatureConfig, feature_dict, parse_config
from ..corpora import NUMBER_TRANSFORMS, QUANTILE, Clusters, Lexicon, Lookup, WordVectors
from ..files import Contents, pack_strings
from .features import AttributeFeature, CategoricalFeature, ConjunctionFeature, Feature, RealFeature, Vocabulary
from .label_ratio import LabelRatios
from .lookup_feature import LookupFeature
from .template_feature import LineFeature, TemplateFeature, template_width


def pack_feature(feature: Feature, at: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return a header entry for a feature; put its arrays into `arrays` under names that begin with `at`."""
    entry: dict[str, Any] = {"config": feature_dict(feature.config)}
    if feature.config.own_window is not None:  # a key that versions refuse which do not know it
        entry["config"]["own_window"] = list(feature.config.own_window)
    if isinstance(feature, CategoricalFeature):
        entry |= {"kind": "categorical"} | _pack_categorical(feature, at, arrays)
    elif isinstance(feature, ConjunctionFeature):
        entry |= {"kind": "conjunction", "complete": feature.complete, "parts": []}
        for p, part in enumerate(feature.parts):
            packed = _pack_categorical(part, f"{at}.part{p}", arrays)
            entry["parts"].append({"config": feature_dict(part.config)} | packed)
        for w, stages in enumerate(feature.keys):
            for s, keys in enumerate(stages):
                arrays[f"{at}.keys{w}.{s}"] = keys
    elif isinstance(feature, RealFeature):
        entry |= {"kind": "real", "columns": list(feature.columns)}
        if feature.is_vector:
            entry["width"] = len(feature.mean)
        arrays[f"{at}.mean"], arrays[f"{at}.scale"] = feature.mean, feature.scale
        if feature.quantiles is not None:
            arrays[f"{at}.quantiles"] = feature.quantiles
        if feature.fill is not None:
            arrays[f"{at}.fill"] = feature.fill
        if feature.counts is not None:
            arrays |= pack_strings(list(feature.counts), f"{at}.counted")
            arrays[f"{at}.counts"] = np.array(list(feature.counts.values()), dtype=np.int64)
        if feature.ratios is not None:
            arrays |= pack_strings(feature.ratios.values, f"{at}.counted")
            arrays[f"{at}.counts"] = feature.ratios.counts
    else:
        entry |= {"kind": feature.config.type, "complete": feature.vocabulary.complete}
        arrays |= pack_strings(feature.vocabulary.values, f"{at}.values")
    return entry


def _pack_categorical(feature: CategoricalFeature, at: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    arrays.update(pack_strings(feature.vocabulary.values, f"{at}.values"))
    return {"column": feature.column, "complete": feature.vocabulary.complete}


def _unpack_categorical(
    contents: Contents, entry: dict[str, Any], config: FeatureConfig, at: str, width: int, tables: dict[str, Lookup]
) -> CategoricalFeature:
    column = entry["column"]
    of_attributes = config.lookup is not None and width == 1
    if not isinstance(column, int) or not (column == -1 if of_attributes else 0 <= column < width - 1):
        raise contents.error(f"'{at}' names column {column!r}")
    if config.window is None or config.type != "categorical":
        raise contents.error(f"'{at}' has no window or is not categorical")
    vocabulary = _unpack_vocabulary(contents, entry, at)
    if config.lookup is not None:
        table = tables[config.lookup]
        if isinstance(table, WordVectors) or (isinstance(table, Lexicon) and len(vocabulary.values) != 3):
            raise contents.error(f"'{at}' does not fit its table")
        return LookupFeature(config, column, vocabulary, table)
    kind = LineFeature if config.templates else CategoricalFeature
    return kind(config, column, vocabulary)


def _unpack_vocabulary(contents: Contents, entry: dict[str, Any], at: str) -> Vocabulary:
    def read() -> Vocabulary:
        values = tuple(contents.strings(f"{at}.values"))
        if len(set(values)) < len(values):
            raise contents.error(f"'{at}' has a value twice")
        return Vocabulary(values, bool(entry["complete"]))

    # Conjunctions repeat the vocabularies of their parts: what is equal is one, and looks up its values once.
    return contents.once(f"{at}.values", bool(entry["complete"]), read)


def _unpack_config(contents: Contents, described: dict[str, Any], at: str, width: int) -> FeatureConfig:
    config = (parse_config({"features": [described]}).features or ())[0]
    if (needed := template_width(config.templates)) > width - 1:
        raise contents.error(f"'{at}' looks at column {needed - 1}")
    return config


def pack_table(table: Lookup, at: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return a header entry for a table; put its arrays into `arrays`."""
    if isinstance(table, Lexicon):
        arrays |= pack_strings(["\n".join(table.entries)], f"{at}.entries")  # as one text, which is shorter
        return {"kind": "lexicon", "file": table.source, "fold": table.fold}
    if isinstance(table, Clusters):
        arrays |= pack_strings(["\n".join(table.words), "\n".join(table.paths)], f"{at}.words")
        arrays[f"{at}.paths"] = table.path_numbers
        return {"kind": "clusters", "file": table.source}
    arrays |= pack_strings(table.words, f"{at}.words")
    arrays |= {f"{at}.rows": table.rows, f"{at}.scales": table.scales}
    return {"file": table.source, "digest": table.digest}


def unpack_table(contents: Contents, entry: dict[str, Any], at: str) -> Lookup:
    kind, source = entry.get("kind", EMBEDDINGS), str(entry["file"])
    if kind == "lexicon":
        lexicon = Lexicon(source, contents.strings(f"{at}.entries")[0].split("\n"), bool(entry["fold"]))
        if not all(word for one in lexicon.entries for word in one.split(" ")):
            raise contents.error(f"'{at}' has an entry without words")
        return lexicon
    if kind == "clusters":
        own, paths = (text.split("\n") for text in contents.strings(f"{at}.words"))
        clusters = Clusters(source, own, paths, contents.array(f"{at}.paths", "int32", 1))
        numbers = clusters.path_numbers
        if len(numbers) != len(own) or numbers.min() < 0 or numbers.max() >= len(paths):
            raise contents.error(f"'{at}' has words and paths that do not fit")
        return clusters
    if kind != EMBEDDINGS:
        raise contents.error(f"'{at}' is a table of an unknown kind")
    words = contents.strings(f"{at}.words")
    rows, scales = contents.array(f"{at}.rows", "int8", 2), contents.array(f"{at}.scales", "float32", 1)
    out = WordVectors(source, words, rows, scales, str(entry["digest"]))
    if not len(rows) == len(scales) == len(words) == len(out.index):
        raise contents.error(f"'{at}' has words and rows that do not fit")
    return out


def unpack_feature(
    contents: Contents, entry: dict[str, Any], at: str, width: int, tables: dict[str, Lookup]
) -> Feature:
    described = dict(entry["config"])
    own = described.pop("own_window", None)
    config = _unpack_config(contents, described, at, width)
    kind = entry["kind"]
    if config.window is None or config.type != kind:
        raise contents.error(f"'{at}' has no window or is not what it says")
    if own is not None:
        if not set(own) < set(config.window):
            raise contents.error(f"'{at}' has a window of its own that it does not hold")
        config = replace(config, own_window=tuple(own))
    if kind == "categorical":
        return _unpack_categorical(contents, entry, config, at, width, tables)
    if kind in BAGS:
        bag = AttributeFeature if kind == "attributes" else TemplateFeature
        return bag(config, _unpack_vocabulary(contents, entry, at))
    if kind == "real":
        mean, scale = contents.array(f"{at}.mean", "float64", 1), contents.array(f"{at}.scale", "float64", 1)
        where, table = tuple(entry["columns"]), None if config.lookup is None else tables[config.lookup]
        transform = NUMBER_TRANSFORMS.get(config.transform)
        of_each = config.transform == "identity" if transform is None else not transform.joins
        counts, ratios, quantiles, expected = None, None, None, len(where) if of_each else 1
        if transform is not None and transform.levels is not None:
            quantiles = contents.array(f"{at}.quantiles", "float64", 2)
            levels = len(transform.levels(config.quantile or QUANTILE))
            if quantiles.shape != (levels, len(where)) or not (np.diff(quantiles, axis=0) >= 0).all():
                raise contents.error(f"'{at}' has quantiles that do not fit")
        if config.transform in ("label-ratio", "frequency"):
            values, dimensions = tuple(contents.strings(f"{at}.counted")), 2 if config.transform == "label-ratio" else 1
            numbers = contents.array(f"{at}.counts", "int64", dimensions)
            twice = dimensions == 2 and len(set(values)) < len(values)
            if len(numbers) != len(values) or twice or numbers.min(initial=0) < 0:
                raise contents.error(f"'{at}' has counts that do not fit")
            if dimensions == 1:
                counts = dict(zip(values, numbers.tolist(), strict=True))
            else:
                ratios, expected = LabelRatios(values, numbers), numbers.shape[1] if numbers.shape[1] > 2 else 1
        expected *= 2 if config.missing == "indicator" else 1
        if config.vectors is not None or table is not None:
            expected = table.width + 1 if isinstance(table, WordVectors) else entry["width"]
        if table is not None and not isinstance(table, WordVectors):
            raise contents.error(f"'{at}' does not fit its table")
        fill = contents.array(f"{at}.fill", "float64", 1) if f"{at}.fill" in contents.arrays else None
        bad_column = any(not isinstance(c, int) or not 0 <= c < width - 1 for c in where)
        if (
            bad_column
            or len(where) != (0 if table is not None and width == 1 else len(config.columns))
            or not len(mean) == len(scale) == expected
            or not expected
            or np.any(scale <= 0)
            or (fill is not None and len(fill) != expected)
        ):
            raise contents.error(f"'{at}' has columns or scales that do not fit")
        return RealFeature(config, where, mean, scale, counts, ratios, fill, quantiles, table)
    if kind != "conjunction" or len(config.parts) < 2 or len(entry["parts"]) != len(config.parts):
        raise contents.error(f"'{at}' is a feature of an unknown kind")
    parts = []
    for p, part in enumerate(entry["parts"]):
        part_config = _unpack_config(contents, part["config"], f"{at}.part{p}", width)
        parts.append(_unpack_categorical(contents, part, part_config, f"{at}.part{p}", width, tables))
    keys = tuple(
        tuple(contents.array(f"{at}.keys{w}.{s}", "int64", 1) for s in range(len(parts) - 1))
        for w in range(len(config.seen))
    )
    if any(np.any(np.diff(stage) <= 0) for stages in keys for stage in stages):
        raise contents.error(f"'{at}' has keys out of order")
    return ConjunctionFeature(config, tuple(parts), keys, bool(entry["complete"]))
