"""The contents of a dataset, basis or model file as plain values, which `inspect` prints and turns into JSON."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..config import layout_dict
from ..encoding import UNKNOWN, UNOBSERVED, AttributeFeature, CategoricalFeature, Feature, RealFeature
from ..features import StoredBasis, Term, TermBasis, unpack_basis
from ..files import Contents
from ..kernels import kernel_to_dict
from ..scoring import METRICS
from .archives import StoredDataset, unpack_dataset
from .inspection import term_weights
from .model import Model

Stored = Model | StoredBasis | StoredDataset


def unpack(contents: Contents) -> Stored:
    """A file of any kind."""
    return _KINDS[contents.header["kind"]].unpack(contents)


def summarise(contents: Contents, stored: Stored, top: int) -> dict[str, Any]:
    """All but the weights themselves, of which the `top` strongest of each label are there."""
    header, encoding = contents.header, stored.encoding
    out = {
        "kind": header["kind"],
        "format": header["format"],
        "version": header["version"],
        "bytes": os.path.getsize(contents.path),
        "data_format": encoding.format,
        "columns": list(encoding.columns),
        "labels": list(encoding.labels),
        "features": [_feature(feature) for feature in encoding.features],
    }
    if layout := layout_dict(encoding.layout):
        out["layout"] = layout
    kind = _KINDS[header["kind"]]
    about = kind.about(contents, stored)
    provenance = {key: about[key] for key in ("digest", "training", "config", "imported") if key in about}
    return out | kind.own(stored, top) | provenance


def _feature(feature: Feature) -> dict[str, Any]:
    config = feature.config
    out: dict[str, Any] = {"name": config.name, "type": config.type, "window": list(config.seen)}
    if config.vectors is not None:
        out |= {"vectors": config.vectors}
    if isinstance(feature, RealFeature):
        return out | {"values": len(feature.mean)}
    if isinstance(feature, CategoricalFeature | AttributeFeature):
        return out | {"values": len(feature.vocabulary.values)}
    return out | {"values": sum(feature.field_sizes)}


# ----------------------------------------------------------------------------- models


def _model(model: Model, top: int) -> dict[str, Any]:
    edges = model.edges
    out: dict[str, Any] = {
        "decode": model.decode,
        "order": model.order,
        "terms": [_term(model, term, top) for term in model.terms],
    }
    if model.calibration is not None:
        offsets = dict(zip(model.labels, model.calibration.offsets.tolist(), strict=True))
        out["calibration"] = {"sharpness": model.calibration.sharpness, "offsets": offsets}
    out["start"], out["end"] = _finite(edges.start), _finite(edges.end)
    out["transitions"] = _finite(edges.transitions)
    if edges.triples is not None:
        out["triples"] = {"weights": edges.triples.size, "top": strongest_edges(model.labels, edges.triples, top)}
    return out


def _term(model: Model, term: Term, top: int) -> dict[str, Any]:
    weights = term_weights(model, term)
    out: dict[str, Any] = {"name": term.name, "type": term.type, "features": list(term.features)}
    out |= term.described()
    out |= _size(model, term)
    if top:
        # Of pairs of labels there are too many to show each.
        strongest = weights.strongest(top, together=term.clique.axes > 1)
        out["top"] = [
            {"labels": _labels(model, term, column), "items": [{"name": name, "weight": w} for name, w in found]}
            for column, found in strongest.items()
        ]
    return out


def trained_by(model: Model) -> str | None:
    """The metric that was asked for when a model was trained; None where none was."""
    config = model.info.get("config")
    training = config.get("training") if isinstance(config, dict) else None
    metric = training.get("metric") if isinstance(training, dict) else None
    return metric if isinstance(metric, str) and metric in METRICS else None


def term_sizes(model: Model) -> list[dict[str, Any]]:
    """Names and types of the terms that look at the input, with how many pivots or features and weights they have."""
    return [{"name": term.name, "type": term.type} | _size(model, term) for term in model.terms]


def _size(model: Model, term: Term) -> dict[str, int]:
    items = term_weights(model, term).items
    return {"pivots" if term.has_pivots else "dimensions": items, "weights": term.weight_count}


def _labels(model: Model, term: Term, column: int) -> list[str]:
    """The labels that a column of weights is about."""
    return [model.labels[y] for y in term.labels_of_column(column, len(model.labels))]


def _finite(table: np.ndarray) -> list[Any]:
    """A table as lists; None is forbidden."""
    if table.ndim > 1:
        return [_finite(row) for row in table]
    return [value if np.isfinite(value) else None for value in table.tolist()]


def strongest_edges(labels: Sequence[str], table: ArrayLike, count: int) -> list[dict[str, Any]]:
    """Return the largest weights of a table of label pairs or triples by size, the largest first; None counts as 0."""
    weights = np.nan_to_num(np.array(table, dtype=np.float64))
    order = np.argsort(-np.abs(weights), axis=None, kind="stable")[:count]
    places = np.stack(np.unravel_index(order, weights.shape), axis=1)
    found = [{"labels": [labels[y] for y in place], "weight": float(weights[tuple(place)])} for place in places]
    return sorted(found, key=lambda each: -each["weight"])


# ----------------------------------------------------------------------------- bases and datasets


def _basis_term(term: TermBasis, top: int) -> dict[str, Any]:
    return {
        "name": term.name,
        "features": list(term.features),
        "kernel": kernel_to_dict(term.kernel),
        "pivots": len(term.lines),
        "unexplained": float(term.curve[-1]),
        "first_pivots": [
            {"line": int(line), "unexplained": float(left)}
            for line, left in zip(term.lines[:top], term.curve[1:], strict=False)
        ],
    }


def _basis(stored: StoredBasis, top: int) -> dict[str, Any]:
    return {"terms": [_basis_term(term, top) for term in stored.terms]}


def _dataset(stored: StoredDataset, top: int) -> dict[str, Any]:
    encoding, dataset = stored.encoding, stored.dataset
    out: dict[str, Any] = {"sequences": dataset.sequences, "positions": dataset.positions, "gold": None}
    if dataset.labels is not None:
        counts = np.bincount(dataset.labels[dataset.labels >= 0], minlength=len(encoding.labels))
        out["gold"] = dict(zip(encoding.labels, counts.tolist(), strict=True))
        out["unknown_gold"] = int((dataset.labels == UNKNOWN).sum())
        out["unobserved"] = int((dataset.labels == UNOBSERVED).sum())
    return out


@dataclass(frozen=True)
class _Kind:
    """How files of one kind are read and summarised."""

    unpack: Callable[[Contents], Stored]
    own: Callable[[Any, int], dict[str, Any]]  # what this kind alone has
    about: Callable[[Contents, Any], dict[str, Any]] = lambda contents, stored: contents.header  # how it was made


_KINDS = {
    "model": _Kind(Model.unpack, _model, lambda contents, model: model.info),
    "basis": _Kind(unpack_basis, _basis),
    "dataset": _Kind(unpack_dataset, _dataset),
}
