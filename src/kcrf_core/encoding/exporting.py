r"""Encoded data as attributes of CRFsuite: label<TAB>word[0]=the<TAB>f0[0]:-0.52, a blank line after each sequence.

Attributes are the columns of the linear kernel's explicit map (`maps.ColumnOrder`). Values that were dropped or never
seen in training, and numbers that are zero, are left out; attributes of value zero are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from ..corpora import WEIGHT, escaped
from ..errors import ConfigError
from ..kernels import Inputs
from ..maps import ColumnOrder, sparse_block
from ..system import listed
from .dataset import Dataset
from .encoding import Encoding
from .features import CategoricalFeature, boundary_or
from .names import FeatureNames, FieldFeature

NO_LABEL = "_"

ROWS_AT_ONCE = 4096

_LIKE_A_BOUNDARY = re.compile(r"\\*_B[+-]\d+")


def export(encoding: Encoding, dataset: Dataset, gold: Sequence[str] | None) -> Iterator[str]:
    """Yield the lines of a text file; `gold` [N] are the labels as they stand in the data."""
    if encoding.vectors:
        names = listed([f"'{name}'" for name in encoding.vectors])
        raise ConfigError(
            f"vectors {names} cannot be exported as text: leave them out, and the features that are made of them",
            settings=["vectors"],
        )
    inputs = encoding.inputs(dataset, encoding.names, zeros=True)
    written, rows = (
        {column: escaped(name) for column, name in exported_columns(encoding, inputs).items()},
        _rows(inputs),
    )
    for s in range(dataset.sequences):
        if dataset.weights is not None:
            yield f"{WEIGHT}:{_number(float(dataset.weights[s]))}\n"
        for t in range(int(dataset.offsets[s]), int(dataset.offsets[s + 1])):
            label = NO_LABEL if gold is None else gold[t]
            if label.startswith(f"{WEIGHT}:"):
                raise ConfigError(f"the label '{label}' would be read as the weight of a sequence")
            fields = [
                written[column] if value == "1" else f"{written[column]}:{value}"
                for column, value in zip(*next(rows), strict=True)
            ]
            # With a TAB behind it a label with spaces is not taken for columns separated by them.
            yield "\t".join([label, *(fields or ([""] if " " in label else []))]) + "\n"
        yield "\n"


def exported_columns(encoding: Encoding, inputs: Inputs) -> dict[int, str]:
    """Return names of the columns that are not empty in these inputs, and of all real ones, by their numbers."""
    order, text = ColumnOrder.of(inputs), literal_names(encoding, encoding.names)
    used = [*np.unique(sparse_block(inputs).indices).tolist(), *range(order.first_real, order.size)]
    names = {column: text[column] for column in used}
    seen: set[str] = set()
    for name in names.values():
        if name in seen:
            raise ConfigError(f"two features would be written as '{name}': give one of them another 'name'")
        if any(character in name for character in "\t\n\r"):
            raise ConfigError(
                f"{name!r} has a TAB or a line end, which the file cannot hold: replace it in the data, or in the "
                "'name' of the feature"
            )
        seen.add(name)
    return names


def literal_names(encoding: Encoding, features: Sequence[str]) -> FeatureNames:
    """Return names of the columns of some features, as exported data has them."""
    return encoding.feature_names(features, _literal_value)


def _literal_value(feature: FieldFeature, w: int, code: int) -> str:
    """Return a value that no other one can be mistaken for; parts of a conjunction stand between slashes."""
    if isinstance(feature, CategoricalFeature):
        return _literal(code, feature.vocabulary.values, feature.reach)
    codes = zip(feature.parts, feature.part_codes(w, code), strict=True)
    texts = [_literal(one, part.vocabulary.values, feature.reach) for part, one in codes]
    return "/".join(text.replace("\\", "\\\\").replace("/", "\\/") for text in texts)


def _literal(code: int, values: Sequence[str], reach: int) -> str:
    """Return the value of a code; a value of the data that looks like a boundary symbol gets a backslash."""
    value = boundary_or(code, values, reach)
    return f"\\{value}" if code < len(values) and _LIKE_A_BOUNDARY.fullmatch(value) else value


def _rows(inputs: Inputs) -> Iterator[tuple[list[int], list[str]]]:
    """Yield columns, ascending, and values of each position, without numbers that are zero."""
    first_real = ColumnOrder.of(inputs).first_real
    for start in range(0, len(inputs), ROWS_AT_ONCE):
        part = inputs.take(slice(start, start + ROWS_AT_ONCE))
        block = sparse_block(part)
        block.sort_indices()
        columns, values = block.indices.tolist(), [_number(value) for value in block.data.tolist()]
        for t, (begin, end) in enumerate(pairwise(block.indptr.tolist())):
            present = np.flatnonzero(part.real[t]).tolist() if part.real.shape[1] else []
            numbers = [_number(float(part.real[t, r])) for r in present]
            yield columns[begin:end] + [first_real + r for r in present], values[begin:end] + numbers


def _number(value: float) -> str:
    if value == 1:
        return "1"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
