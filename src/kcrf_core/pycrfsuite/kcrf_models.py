"""Models of kcrf for `Tagger`, which does without these imports for models of CRFsuite."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..chains import LIMITED, chain
from ..corpora import ITEMS, corpus_of
from ..errors import ConfigError, FileFormatError, KcrfError
from ..files import read_container
from ..model import VITERBI, Inference, LabelRules, Model, runtime_image
from ..runtime import ItemRows, RuntimeModel, RuntimeTagger


def open_model(data: bytes, source: str) -> tuple[Callable[[], RuntimeTagger | ModelItems], Model]:
    """Return what labels items, the library if it has all potentials of the model, and the model."""
    model = Model.unpack(read_container(source, "model", data=data))
    if not model.encoding.attributes or model.encoding.vectors:
        raise FileFormatError(f"{source}: the model needs columns or vectors, but items have only attributes")
    try:
        if any(term.clique.axes != 1 for term in model.terms):
            raise ConfigError("potentials of transitions that depend on the input")
        return partial(RuntimeTagger, RuntimeModel(runtime_image(replace(model, rules=None)))), model
    except ConfigError:
        return partial(ModelItems, model), model


def summed_items(rows: ItemRows) -> list[dict[str, float]]:
    """Return the attributes of each item by name, their values added up."""
    items: list[dict[str, float]] = []
    for own in rows.attributes():
        items.append({})
        for name, value in own:
            text = name.decode("utf-8", "backslashreplace")
            items[-1][text] = items[-1].get(text, 0.0) + value
    return items


class ModelItems:
    """One sequence after another by any model of attributes, as `RuntimeTagger` has them."""

    def __init__(self, model: Model):
        self._model = model
        self._scores, self.edges = np.zeros((0, len(model.labels))), model.used_edges

    def set_attributes(self, xseq: Any) -> None:
        self._scores = np.zeros((0, len(self._model.labels)))
        items = summed_items(xseq if isinstance(xseq, ItemRows) else ItemRows(xseq))
        dataset = self._model.encoding.encode(corpus_of([items], ITEMS))
        self._scores, self.edges = self._model.potentials(dataset)

    def __len__(self) -> int:
        return len(self._scores)

    def scores(self) -> np.ndarray:
        return self._scores

    def _inference(self) -> Inference:
        model, offsets = self._model, np.array([0, len(self)])
        return Inference(self._scores, self.edges, offsets, None, model.decode, model.bonuses)

    def labels(self) -> np.ndarray:
        return self._inference().labels

    def label_names(self) -> list[str]:
        return [self._model.labels[number] for number in self.labels().tolist()]

    def marginals(self) -> np.ndarray:
        return self._inference().marginals.node

    def log_probability(self, labels: np.ndarray) -> float:
        offsets = np.array([0, len(self)])
        score = chain.path_scores(self._scores, self.edges, offsets, labels)[0]
        return float(score - self._inference().marginals.log_z[0])


def obeying_labels(items: RuntimeTagger | ModelItems, model: Model, rules: LabelRules) -> list[str]:
    """Return the best labels of items that obey the rules of their model."""
    if model.decode == VITERBI:
        best = items.labels()
        if rules.runs.obeyed(best, np.array([0, len(best)])).all():
            return [model.labels[number] for number in best.tolist()]
    edges = items.edges if isinstance(items, ModelItems) else model.used_edges
    found = Inference(items.scores(), edges, np.array([0, len(items)]), rules, model.decode, model.bonuses)
    assert found.status is not None
    try:
        remarks = rules.remarks(found.status, np.ones(1, dtype=np.int64), "items")
    except KcrfError as error:
        raise ValueError(str(error)) from None
    for remark in remarks:
        warnings.warn(remark, UserWarning, stacklevel=4)
    if found.status[0] > LIMITED and rules.config.when_impossible == "blank":
        return ["_"] * len(found.labels)
    return [model.labels[number] for number in found.labels.tolist()]
