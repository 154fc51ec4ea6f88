"""Models of other programs, recognised by the contents of their files, as models of ours."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..config import is_wapiti_line, load_template
from ..encoding import TemplateFeature
from ..errors import ConfigError, FileFormatError
from ..model import Model
from .crfpp_models import looks_like_crfpp, read_crfpp
from .crfsuite_models import MAGIC, read_crfsuite
from .foreign import ForeignModel, decoded, sparse_rows
from .wapiti_models import read_wapiti

WAPITI = b"#mdl#"  # the first bytes of its models
# The first bytes of other files, and the message for each.
OTHERS = {
    b"PK\x03\x04": "an .npz or zip file: a model of kcrf needs no import",
    b"\xac\xed\x00\x05": "a Java object, as MALLET and Stanford NER write them, which only Java can read",
    b"\x80": "a Python pickle: from sklearn-crfsuite take the model inside, crf.modelfile.name, which can be imported",
    b"version:": "a CRF++ model as text: convert it first (crf_learn -C TEXT MODEL)",
    b"\x1f\x8b": "compressed: unpack it first (gunzip)",
    b"BZh": "compressed: unpack it first (bunzip2)",
    b"\xfd7zXZ": "compressed: unpack it first (unxz)",
}


def import_model(
    path: str | os.PathLike[str], columns: Sequence[str] | None = None, encoding: str = "utf-8"
) -> tuple[Model, ForeignModel]:
    """Return a model of CRFsuite, CRF++ or Wapiti as one of ours, and as it was.

    `columns` are names for those of its data, the label's last, where it works on columns.
    """
    foreign = load_foreign(path, encoding)
    return foreign.to_model(columns), foreign


def load_foreign(path: str | os.PathLike[str], encoding: str = "utf-8") -> ForeignModel:
    """Return the model of CRFsuite, CRF++ or Wapiti in a file."""
    with open(path, "rb") as stream:
        data = stream.read()
    foreign = read_foreign(data, os.fspath(path), encoding)
    foreign.check(os.fspath(path))
    return foreign


def load_start(path: str | os.PathLike[str]) -> Model | ForeignModel:
    """Return a model to start training from: one of ours, or one of any program that is imported."""
    with open(path, "rb") as stream:
        head = stream.read(100)
    return load_foreign(path) if head.startswith((MAGIC, WAPITI)) or looks_like_crfpp(head) else Model.load(path)


def read_foreign(data: bytes, source: str, encoding: str = "utf-8") -> ForeignModel:
    """Return the model in the bytes of a file of any program."""
    try:
        "".encode(encoding)
    except LookupError:
        raise ConfigError(f"there is no encoding '{encoding}'", settings=["encoding"]) from None
    if data.startswith(MAGIC):
        found = read_crfsuite(data, source)
        names, unread = decoded(found.attributes, encoding)
        rows = np.repeat(np.arange(len(names)), np.diff(found.ends))
        node = sparse_rows(rows, found.columns, found.values, (len(names), len(found.labels)))
        remarks = (f"{unread:,} attributes are not {encoding}, and match nothing",) if unread else ()
        return ForeignModel("CRFsuite", found.labels, names, node, None, found.transitions, remarks=remarks)
    if data.startswith(WAPITI):
        return read_wapiti(data, source, encoding)
    for beginning, what in OTHERS.items():
        if data.startswith(beginning):
            raise FileFormatError(f"{source}: {what}")
    if looks_like_crfpp(data):
        return read_crfpp(data, source, encoding)
    raise FileFormatError(f"{source}: not a model of CRFsuite, CRF++ or Wapiti")


def training_configuration(model: Model | ForeignModel) -> dict[str, Any] | None:
    """Return the configuration that continues from a model of another program, its template; None for one of ours."""
    if isinstance(model, ForeignModel):
        return {} if model.templates is None else _template_configuration(model.templates)
    if "imported" not in model.info:
        return None
    feature = model.encoding.features[0]
    if not isinstance(feature, TemplateFeature):
        return {}
    return _template_configuration(feature.config.templates) | {"columns": list(model.encoding.columns)}


def _template_configuration(lines: Sequence[str]) -> dict[str, Any]:
    wapiti = is_wapiti_line(lines[0])
    return load_template("\n".join([*lines, "b" if wapiti else "B"]), "its template", wapiti)
