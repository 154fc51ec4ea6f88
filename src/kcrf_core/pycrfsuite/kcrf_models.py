"""Models of kcrf for `Tagger`, which does without these imports for models of CRFsuite."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from ..errors import ConfigError, FileFormatError, KcrfError
from ..files import read_container
from ..model import VITERBI, Inference, LabelRules, Model, runtime_image
from ..runtime import RuntimeModel, RuntimeTagger


def open_model(data: bytes, source: str) -> tuple[RuntimeModel, Model]:
    """Return a model in the form of the library, and the model itself."""
    model = Model.unpack(read_container(source, "model", data=data))
    if not model.encoding.attributes or model.encoding.vectors:
        raise FileFormatError(f"{source}: the model needs columns or vectors, but items have only attributes")
    try:
        if any(term.clique.axes != 1 for term in model.terms):
            raise ConfigError("the model has a term of the type edge-x")
        return RuntimeModel(runtime_image(replace(model, rules=None))), model
    except ConfigError as error:
        raise FileFormatError(f"{source}: {error} (KernelCRF.load opens any model)") from None


def obeying_labels(items: RuntimeTagger, model: Model, rules: LabelRules) -> list[str]:
    """Return the best labels of items that obey the rules of their model."""
    if model.decode == VITERBI:
        best = items.labels()
        if rules.runs.obeyed(best, np.array([0, len(best)])).all():
            return [model.labels[number] for number in best.tolist()]
    found = Inference(items.scores(), model.used_edges, np.array([0, len(items)]), rules, model.decode, model.bonuses)
    assert found.status is not None
    try:
        remarks = rules.remarks(found.status, np.ones(1, dtype=np.int64), "items")
    except KcrfError as error:
        raise ValueError(str(error)) from None
    for remark in remarks:
        warnings.warn(remark, UserWarning, stacklevel=4)
    return [model.labels[number] for number in found.labels.tolist()]
