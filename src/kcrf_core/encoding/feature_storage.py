"""Fitted features in a container: a header entry and arrays for each, checked when they are read back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..config import BAGS, CLUSTERS, EMBEDDINGS, FeatureConfig, feature_dict, parse_config
from ..corpora import NUMBER_TRANSFORMS, QUANTILE, Clusters, Lexicon, Lookup, WordVectors
from ..files import Contents, pack_strings
from ..system import AUTO
from .features import AttributeFeature, CategoricalFeature, ConjunctionFeature, Feature, RealFeature, Vocabulary
from .group_scaling import GroupScaling
from .lookup_feature import LookupFeature
from .template_feature import LineFeature, TemplateFeature, template_width


def pack_feature(feature: Feature, at: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return a header entry for a feature; put its arrays into `arrays` under names that begin with `at`."""
    entry: dict[str, Any] = {"config": feature_dict(feature.config)}
    if feature.config.own_window is not None:
        entry["config"]["own_window"] = list(feature.config.own_window)
    if isinstance(feature, ConjunctionFeature):
        parts = [pack_feature(part, f"{at}.part{p}", arrays) for p, part in enumerate(feature.parts)]
        for w, stages in enumerate(feature.keys):
            arrays |= {f"{at}.keys{w}.{s}": keys for s, keys in enumerate(stages)}
        return entry | {"complete": feature.complete, "parts": parts}
    if isinstance(feature, RealFeature):
        named = {name: getattr(feature, name) for name in ("mean", "scale", "quantiles", "fill")}
        arrays |= {f"{at}.{name}": array for name, array in named.items() if array is not None}
        if feature.counts is not None:
            arrays |= pack_strings(list(feature.counts), f"{at}.counted")
            arrays[f"{at}.counts"] = np.array(list(feature.counts.values()), dtype=np.int64)
        if feature.by_group is not None:
            arrays |= {f"{at}.group_{name}": getattr(feature.by_group, name) for name in ("mean", "spread")}
            entry["group"] = feature.by_group.column
        return entry | {"columns": list(feature.columns), "width": len(feature.mean)}
    arrays |= pack_strings(feature.vocabulary.values, f"{at}.values")
    column = {"column": feature.column} if isinstance(feature, CategoricalFeature) else {}
    return entry | column | {"complete": feature.vocabulary.complete}


def _unpack_vocabulary(contents: Contents, entry: dict[str, Any], at: str) -> Vocabulary:
    def read() -> Vocabulary:
        values = tuple(contents.strings(f"{at}.values"))
        if len(set(values)) < len(values):
            raise contents.error(f"'{at}' has a value twice")
        return Vocabulary(values, bool(entry["complete"]))

    # Conjunctions repeat the vocabularies of their parts: what is equal is one, and looks up its values once.
    return contents.once(f"{at}.values", bool(entry["complete"]), read)


def pack_table(table: Lookup, at: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return a header entry for a table; put its arrays into `arrays`."""
    if isinstance(table, Lexicon):
        arrays |= pack_strings(["\n".join(table.entries)], f"{at}.entries")  # as one text, which is shorter
        return {"file": table.source, "fold": table.fold}
    if isinstance(table, Clusters):
        arrays |= pack_strings(["\n".join(table.words), "\n".join(table.paths)], f"{at}.words")
        arrays[f"{at}.paths"] = table.path_numbers
        return {"file": table.source}
    arrays |= pack_strings(table.words, f"{at}.words")
    arrays |= {f"{at}.rows": table.rows, f"{at}.scales": table.scales}
    return {"file": table.source, "digest": table.digest}


def unpack_table(contents: Contents, entry: dict[str, Any], name: str, at: str) -> Lookup:
    """Return the table of a lookup, whose name says of what kind it is."""
    source = str(entry["file"])
    if name == CLUSTERS:
        own, paths = (text.split("\n") for text in contents.strings(f"{at}.words"))
        clusters = Clusters(source, own, paths, contents.array(f"{at}.paths", "int32", 1))
        numbers = clusters.path_numbers
        if len(numbers) != len(own) or numbers.min() < 0 or numbers.max() >= len(paths):
            raise contents.error(f"'{at}' has words and paths that do not fit")
        return clusters
    if name == EMBEDDINGS:
        words = contents.strings(f"{at}.words")
        rows, scales = contents.array(f"{at}.rows", "int8", 2), contents.array(f"{at}.scales", "float32", 1)
        vectors = WordVectors(source, words, rows, scales, str(entry["digest"]))
        if not len(rows) == len(scales) == len(words) == len(vectors.index):
            raise contents.error(f"'{at}' has words and rows that do not fit")
        return vectors
    lexicon = Lexicon(source, contents.strings(f"{at}.entries")[0].split("\n"), bool(entry["fold"]))
    if not all(word for one in lexicon.entries for word in one.split(" ")):
        raise contents.error(f"'{at}' has an entry without words")
    return lexicon


def unpack_feature(
    contents: Contents, entry: dict[str, Any], at: str, width: int, tables: dict[str, Lookup]
) -> Feature:
    """Return the feature of a header entry, for data with so many columns."""
    described = dict(entry["config"])
    own = described.pop("own_window", None)
    config = (parse_config({"features": [described]}).features or ())[0]
    kind, where = config.type, entry["columns"] if config.type == "real" else [entry.get("column", 0)]
    of_attributes = config.lookup is not None and width == 1
    known = range(-1, 0) if of_attributes else range(width - 1) if kind in ("categorical", "real") else range(1)
    count = len(where) if kind != "real" else 0 if of_attributes else len(config.columns)
    if config.window is None or kind == AUTO:
        raise contents.error(f"'{at}' has no window or no type")
    if len(where) != count or any(not isinstance(column, int) or column not in known for column in where):
        raise contents.error(f"'{at}' names columns that are not there")
    if (needed := template_width(config.templates)) > width - 1:
        raise contents.error(f"'{at}' looks at column {needed - 1}")
    if own is not None:
        if not set(own) < set(config.window):
            raise contents.error(f"'{at}' has a window of its own that it does not hold")
        config = replace(config, own_window=tuple(own))
    table = None if config.lookup is None else tables[config.lookup]
    if kind == "real":
        if not isinstance(table, WordVectors | None):
            raise contents.error(f"'{at}' does not fit its table")
        found = _unpack_real(contents, config, tuple(where), at, table, entry.get("width"))
        if not config.by_group:
            return found
        mean, spread = (contents.array(f"{at}.group_{name}", "float64", 1) for name in ("mean", "spread"))
        column = entry["group"]
        fitting = column == -1 if config.group is None else isinstance(column, int) and column in range(width - 1)
        if not (fitting and len(mean) == len(spread) == count and np.isfinite(mean).all() and (spread > 0).all()):
            raise contents.error(f"'{at}' has a group or units that do not fit")
        return replace(found, by_group=GroupScaling(mean, spread, column))
    if kind == "conjunction":
        parts = [unpack_feature(contents, one, f"{at}.part{p}", width, tables) for p, one in enumerate(entry["parts"])]
        keys = tuple(
            tuple(contents.array(f"{at}.keys{w}.{s}", "int64", 1) for s in range(len(parts) - 1))
            for w in range(len(config.seen))
        )
        categorical = tuple(part for part in parts if isinstance(part, CategoricalFeature))
        if not 2 <= len(config.parts) == len(parts) == len(categorical):
            raise contents.error(f"'{at}' has parts that do not fit")
        if any(np.any(np.diff(stage) <= 0) for stages in keys for stage in stages):
            raise contents.error(f"'{at}' has keys out of order")
        return ConjunctionFeature(config, categorical, keys, bool(entry["complete"]))
    vocabulary = _unpack_vocabulary(contents, entry, at)
    if kind in BAGS:
        return (AttributeFeature if kind == "attributes" else TemplateFeature)(config, vocabulary)
    if table is None:
        return (LineFeature if config.templates else CategoricalFeature)(config, where[0], vocabulary)
    if isinstance(table, WordVectors) or (isinstance(table, Lexicon) and len(vocabulary.values) != 3):
        raise contents.error(f"'{at}' does not fit its table")
    return LookupFeature(config, where[0], vocabulary, table)


def _unpack_real(
    contents: Contents, config: FeatureConfig, where: tuple[int, ...], at: str, table: WordVectors | None, width: Any
) -> RealFeature:
    """Return a feature of numbers; `width` is that of vectors beside the data."""
    arrays = {name: contents.array(f"{at}.{name}", "float64", 1) for name in ("mean", "scale")}
    arrays |= {"fill": contents.array(f"{at}.fill", "float64", 1)} if f"{at}.fill" in contents.arrays else {}
    transform = NUMBER_TRANSFORMS.get(config.transform)
    of_each = config.transform == "identity" if transform is None else not transform.joins
    counts, quantiles, expected = None, None, len(where) if of_each else 1
    if transform is not None and transform.levels is not None:
        quantiles = contents.array(f"{at}.quantiles", "float64", 2)
        levels = len(transform.levels(config.quantile or QUANTILE))
        if quantiles.shape != (levels, len(where)) or not (np.diff(quantiles, axis=0) >= 0).all():
            raise contents.error(f"'{at}' has quantiles that do not fit")
    if config.transform == "frequency":
        values, numbers = contents.strings(f"{at}.counted"), contents.array(f"{at}.counts", "int64", 1)
        if not len(numbers) == len(values) == len(set(values)) or numbers.min(initial=0) < 0:
            raise contents.error(f"'{at}' has counts that do not fit")
        counts = dict(zip(values, numbers.tolist(), strict=True))
    expected *= 2 if config.missing == "indicator" else 1
    if config.vectors is not None or table is not None:
        expected = width if table is None else table.width + 1
    fitting = all(len(array) == expected for array in arrays.values())
    if not expected or not fitting or np.any(arrays["scale"] <= 0):
        raise contents.error(f"'{at}' has scales that do not fit")
    mean, scale, fill = arrays["mean"], arrays["scale"], arrays.get("fill")
    return RealFeature(config, where, mean, scale, counts, fill, quantiles, table)
