"""What kcrf does inside a process, where a command would measure more than is meant. One line of JSON each.

kcrf_jobs.py encode CONFIG TRAIN
kcrf_jobs.py objective CONFIG TRAIN MODEL SIGMA2     P at the weights of a CRFsuite model, in double precision
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

from kcrf_core.chains import EDGE, NODE, Problem
from kcrf_core.config import load_yaml, parse_config
from kcrf_core.corpora import read_corpus
from kcrf_core.encoding import CategoricalFeature, Dataset, Encoding, fit_encoding
from kcrf_core.maps import ExplicitMap
from kcrf_core.objective import Engine, Objective, ObjectiveTerm, Partition
from kcrf_core.system import Workers


def prepared(config_path: str, data: str) -> tuple[Encoding, Dataset]:
    config = parse_config(load_yaml(Path(config_path).read_text(encoding="utf-8"), config_path), config_path)
    return fit_encoding(config, read_corpus(data))


def encode(config_path: str, data: str) -> None:
    began = time.perf_counter()
    _, dataset = prepared(config_path, data)
    print(json.dumps({"seconds": time.perf_counter() - began, "positions": dataset.positions}))


def attribute_names(encoding: Encoding, dataset: Dataset) -> list[dict[int, str]]:
    """For each field the attribute that `attributes.py` writes for each code; read off the data itself."""
    columns = {}
    for feature in encoding.features:
        if isinstance(feature, CategoricalFeature) and feature.config.name in ("word", "pos"):
            columns[feature.config.name] = feature
    letters = {"word": "w", "pos": "pos"}
    windows = [(name, offset) for name in ("word", "pos") for offset in (-2, -1, 0, 1, 2)]
    place = {}  # (name, offset): its field
    at = 0
    fields = []  # the parts of each field
    for feature in encoding.features:
        for offset in feature.config.window:
            if isinstance(feature, CategoricalFeature):
                place[feature.config.name, offset] = at
                fields.append([(feature.config.name, offset)])
            else:
                fields.append([(name, offset + shift) for name, shift in feature.config.parts])
            at += 1
    texts = {
        where: [columns[where[0]].value(0, code) for code in range(columns[where[0]].field_sizes[0])]
        for where in windows
    }
    out = []
    for number, parts in enumerate(fields):
        codes, first = np.unique(dataset.codes[:, number], return_index=True)
        head = "|".join(f"{letters[name]}[{offset}]" for name, offset in parts)
        names = {}
        for code, t in zip(codes.tolist(), first.tolist(), strict=True):
            values = [texts[part][dataset.codes[t, place[part]]] for part in parts]
            names[code] = f"{head}={'|'.join(values)}"
        out.append(names)
    return out


def objective(config_path: str, data: str, model: str, sigma2: str) -> None:
    import pycrfsuite
    from attributes import FIRST, LAST

    encoding, dataset = prepared(config_path, data)
    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    found = tagger.info()
    labels, Y = encoding.labels, len(encoding.labels)
    with Workers(1) as workers:
        inputs = encoding.inputs(dataset, encoding.names)
        features = ExplicitMap.of(inputs, np.float64)
        problem = Problem(dataset.labels, dataset.offsets, np.ones(dataset.sequences), Y)
        terms = [ObjectiveTerm(NODE, float(sigma2), features), ObjectiveTerm(EDGE, float(sigma2))]
        objective = Objective.on(Engine.of(Partition(problem, terms, workers, np.float64)), terms)
        weights = np.zeros((features.size, Y))
        first = 0
        used = 0
        for names, size in zip(attribute_names(encoding, dataset), inputs.sizes, strict=True):
            for code, name in names.items():
                for y, label in enumerate(labels):
                    value = found.state_features.get((name, label))
                    if value is not None:
                        weights[first + code, y] = value
                        used += 1
            first += int(size)
        edges = np.zeros((Y + 2, Y))
        for a, before in enumerate(labels):
            for b, label in enumerate(labels):
                edges[a, b] = found.transitions.get((before, label), 0.0)
        for row, name in ((Y, FIRST), (Y + 1, LAST)):
            for y, label in enumerate(labels):
                edges[row, y] = found.state_features.get((name, label), 0.0)
        value = objective.evaluate(np.concatenate([weights.ravel(), edges.ravel()])).value
    ends = sum(name in (FIRST, LAST) for name, _ in found.state_features)
    missing = len(found.state_features) - ends - used
    print(json.dumps({"objective": value, "weights": used, "weights_without_place": missing}))


if __name__ == "__main__":
    {"encode": encode, "objective": objective}[sys.argv[1]](*sys.argv[2:])
