"""The contents of a dataset, basis or model file as plain values, and weights by the names of features and labels.

A weight is shown as what it adds to the score of a label, or of two labels in a row, where its feature is present. A
pivot is named by its line of the training data and shown with its coefficient.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..config import layout_dict
from ..corpora import LabelValue
from ..encoding import (
    UNKNOWN,
    UNOBSERVED,
    AttributeFeature,
    CategoricalFeature,
    LookupFeature,
    RealFeature,
    plain_names,
)
from ..features import FeatureTerm, StoredBasis, Term, WeightTable, unpack_basis
from ..files import Contents
from ..maps import as_dense, matrix_of
from ..scoring import METRICS
from .dataset_files import StoredDataset, unpack_dataset
from .model import Model

Stored = Model | StoredBasis | StoredDataset

# Weights that are held at a time: bounds memory for models of any size.
VALUES_AT_ONCE = 1 << 18


@dataclass(frozen=True)
class TermWeights(WeightTable):
    """The weights of one term as a table of items and labels, or pairs of labels."""

    columns: int

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield runs of rows with the number of the first."""
        step = max(VALUES_AT_ONCE // max(self.columns, 1), 1)
        for first in range(0, self.items, step):
            yield first, self.rows(slice(first, min(first + step, self.items)))

    def strongest(self, count: int, together: bool = False) -> dict[int, list[tuple[str, float]]]:
        """Return names and weights by column, the largest by size of each column, or of all columns `together`.

        Columns that have none are left out; weights are in descending order.
        """
        best: dict[int, list[tuple[float, int, int, float]]] = {}  # size, item, column, weight, the largest first
        limits = np.zeros(1 if together else self.columns)  # what a weight has to exceed
        for first, weights in self.blocks():
            sizes = np.abs(weights)
            above = sizes > limits
            for place in [0] if together else np.flatnonzero(above.any(axis=0)).tolist():
                rows, columns = np.nonzero(above) if together else (np.flatnonzero(above[:, place]), place)
                found = sizes[rows, columns]
                kept = np.argsort(-found, kind="stable")[:count]
                rows, columns = rows[kept], np.broadcast_to(columns, len(found))[kept]
                entries = zip(found[kept], rows, columns, weights[rows, columns], strict=True)
                ranked = best.setdefault(place, [])
                ranked += [(float(size), first + int(row), int(y), float(weight)) for size, row, y, weight in entries]
                ranked.sort(key=lambda each: (-each[0], *each[1:3]))
                del ranked[count:]
                if len(ranked) == count:
                    limits[place] = ranked[-1][0]
        named: dict[int, list[tuple[str, float]]] = {}
        for place in sorted(best):
            for _, item, column, weight in best[place]:
                named.setdefault(column, []).append((self.name(item), weight))
        return {column: sorted(each, key=lambda pair: -pair[1]) for column, each in named.items()}


def term_weights(model: Model, term: Term) -> TermWeights:
    """Return the weights of a term with a column for each label, or pair of labels."""
    Y, table = len(model.labels), term.table(model.encoding)
    columns = Y**term.clique.axes
    return TermWeights(table.items, table.name, lambda part: term.by_labels(table.rows(part), Y), columns)


def dump(model: Model) -> Iterator[list[str]]:
    """Yield every weight that is not zero, as the cells of a line: the term, its item, labels, the weight."""
    labels = list(model.labels)
    for term in model.terms:
        weights = term_weights(model, term)
        places = [term.labels_of_column(column, len(labels)) for column in range(weights.columns)]
        names = [[labels[y] for y in place] for place in places]
        for first, block in weights.blocks():
            name, last = "", -1
            for row, column in zip(*(axis.tolist() for axis in np.nonzero(block)), strict=True):
                if row != last:
                    name, last = weights.name(first + row), row
                yield [term.name, name, *names[column], f"{block[row, column]:.6g}"]
    edges = model.edges
    tables = {"start": edges.start, "end": edges.end, "transition": edges.transitions, "triple": edges.triples}
    for kind, table in tables.items():
        if table is not None:
            for cell in zip(*(axis.tolist() for axis in np.nonzero(table)), strict=True):
                yield [kind, *(labels[y] for y in cell), f"{table[cell]:.6g}"]


def state_weights(model: Model, labels: Sequence[LabelValue]) -> dict[tuple[str, LabelValue], float]:
    """Return the weights, but zeros, of the only term of a linear model, with `labels` in the place of its own."""
    if len(model.terms) != 1:
        raise AttributeError("weights of features exist only if the model has one term")
    term = model.terms[0]
    if not isinstance(term, FeatureTerm) or not term.is_linear or term.clique.axes > 1:
        raise AttributeError("weights of features exist only if the kernel is linear")
    weights = term.by_labels(as_dense(matrix_of(term.weights)), len(model.labels))
    names = plain_names(model.encoding.features)
    return {(names[row], labels[y]): float(weights[row, y]) for row, y in np.argwhere(weights).tolist()}


def unpack(contents: Contents) -> Stored:
    """Return the contents of a file of any kind."""
    return _KINDS[contents.header["kind"]][0](contents)


def summarise(contents: Contents, stored: Stored, top: int) -> dict[str, Any]:
    """Return all but the weights themselves, of which the `top` strongest of each label are there."""
    header, encoding = contents.header, stored.encoding
    out: dict[str, Any] = {
        "kind": header["kind"],
        "format": header["format"],
        "version": header["version"],
        "bytes": os.path.getsize(contents.path),
        "data_format": encoding.format,
        "columns": list(encoding.columns),
        "labels": list(encoding.labels),
        "features": [],
    }
    for feature in encoding.features:
        config = feature.config
        entry: dict[str, Any] = {"name": config.name, "type": config.type, "window": list(config.seen)}
        entry |= {"vectors": config.vectors} if config.vectors is not None else {}
        entry |= {"scaled_by": config.group or "sequence"} if config.by_group else {}
        if isinstance(feature, RealFeature):
            entry["values"] = len(feature.mean)
        elif isinstance(feature, CategoricalFeature | AttributeFeature):
            entry["values"] = len(feature.vocabulary.values)
        else:
            entry["values"] = sum(feature.field_sizes)
        if isinstance(feature, RealFeature | LookupFeature) and feature.table is not None:
            entry["lookup"] = {"name": config.lookup, **feature.table.about}
        out["features"].append(entry)
    if layout := layout_dict(encoding.layout):
        out["layout"] = layout
    about = stored.info if isinstance(stored, Model) else header
    kept = "digest", "data", "options", "training", "config", "imported", "plugin"
    provenance: dict[str, Any] = {key: about[key] for key in kept if key in about}
    if isinstance(stored, Model) and "version" in about:
        provenance["trained_by"] = about["version"]
    return out | _KINDS[header["kind"]][1](stored, top) | provenance


def _model(model: Model, top: int) -> dict[str, Any]:
    edges = model.edges
    bonus = {"span_bonus": model.span_bonus} if model.span_bonus else {}
    out: dict[str, Any] = {"decode": model.decode, **bonus, "order": model.order, "terms": []}
    for term in model.terms:
        entry: dict[str, Any] = {"name": term.name, "type": term.type, "features": list(term.features)}
        out["terms"].append(entry)
        entry |= term.described() | _size(model, term)
        if top:
            # Of pairs of labels there are too many to show each.
            strongest = term_weights(model, term).strongest(top, together=term.clique.axes > 1)
            entry["top"] = []
            for column, found in strongest.items():
                labels = [model.labels[y] for y in term.labels_of_column(column, len(model.labels))]
                entry["top"].append({"labels": labels, "items": [{"name": name, "weight": w} for name, w in found]})
    if model.calibration is not None:
        offsets = dict(zip(model.labels, model.calibration.offsets.tolist(), strict=True))
        out["calibration"] = {"sharpness": model.calibration.sharpness, "offsets": offsets}
    if model.guarantees:
        out["guarantees"] = {use: dict(vars(one)) for use, one in model.guarantees.items()}
    out["start"], out["end"] = _finite(edges.start), _finite(edges.end)
    out["transitions"] = _finite(edges.transitions)
    if edges.triples is not None:
        out["triples"] = {"weights": edges.triples.size, "top": strongest_edges(model.labels, edges.triples, top)}
    return out


def trained_by(model: Model) -> str | None:
    """Return the metric that was asked for when a model was trained; None where none was."""
    config = model.info.get("config")
    training = config.get("training") if isinstance(config, dict) else None
    metric = training.get("metric") if isinstance(training, dict) else None
    return metric if isinstance(metric, str) and metric in METRICS else None


def term_sizes(model: Model) -> list[dict[str, Any]]:
    """Return names, types and sizes of the terms that look at the input."""
    return [{"name": term.name, "type": term.type} | _size(model, term) for term in model.terms]


def _size(model: Model, term: Term) -> dict[str, int]:
    items = term.table(model.encoding).items
    return {"pivots" if term.has_pivots else "dimensions": items, "weights": term.weight_count}


def _finite(table: np.ndarray) -> list[Any]:
    """Return a table as lists, None for what is forbidden."""
    out = table.astype(object)
    out[~np.isfinite(table)] = None
    return out.tolist()


def strongest_edges(labels: Sequence[str], table: ArrayLike, count: int) -> list[dict[str, Any]]:
    """Return the largest weights of a table of label pairs or triples by size, the largest first; None counts as 0."""
    weights = np.nan_to_num(np.array(table, dtype=np.float64))
    order = np.argsort(-np.abs(weights), axis=None, kind="stable")[:count]
    places = np.stack(np.unravel_index(order, weights.shape), axis=1)
    found = [{"labels": [labels[y] for y in place], "weight": float(weights[tuple(place)])} for place in places]
    return sorted(found, key=lambda each: -each["weight"])


def _basis(stored: StoredBasis, top: int) -> dict[str, Any]:
    terms = []
    for term in stored.terms:
        pairs = zip(term.lines[:top], term.curve[1:], strict=False)
        about = {"name": term.name, "features": list(term.features), "kernel": term.kernel.to_dict()}
        figures = {"pivots": len(term.lines), "unexplained": float(term.curve[-1])}
        pivots = [{"line": int(line), "unexplained": float(left)} for line, left in pairs]
        terms.append(about | figures | {"first_pivots": pivots})
    return {"terms": terms}


def _dataset(stored: StoredDataset, top: int) -> dict[str, Any]:
    encoding, dataset = stored.encoding, stored.dataset
    out: dict[str, Any] = {"sequences": dataset.sequences, "positions": dataset.positions, "gold": None}
    if dataset.labels is not None:
        counts = np.bincount(dataset.labels[dataset.labels >= 0], minlength=len(encoding.labels))
        out["gold"] = dict(zip(encoding.labels, counts.tolist(), strict=True))
        out["unknown_gold"] = int((dataset.labels == UNKNOWN).sum())
        out["unobserved"] = int((dataset.labels <= UNOBSERVED).sum())
    return out


# By the kind of a file: a reader of its contents, and a summary of what this kind alone has.
_KINDS: dict[str, tuple[Callable[[Contents], Stored], Callable[[Any, int], dict[str, Any]]]] = {
    "model": (Model.unpack, _model),
    "basis": (unpack_basis, _basis),
    "dataset": (unpack_dataset, _dataset),
}
