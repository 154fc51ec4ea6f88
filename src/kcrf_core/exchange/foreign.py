"""What a model of another program says, whichever program it was, and a `Model` of ours that says the same.

All of them are linear: weights of strings for each label, of strings for pairs of neighbouring labels, and of pairs of
labels alone. The strings are attributes that stand in the data, or become of columns by lines of a template.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..chains import EDGE_X, NODE, TRANSITIONS, Edges
from ..config import PATTERNS, FeatureConfig, parse_config
from ..corpora import ATTRIBUTE_FORMAT, BREAKS, COLUMN_FORMAT, MOST_LABELS
from ..encoding import AttributeFeature, Encoding, TemplateFeature, Vocabulary, readable, template_width
from ..errors import ConfigError, FileFormatError
from ..features import ExplicitTerm
from ..files import LARGEST
from ..maps import SparseWeights
from ..model import Model
from ..system import counted, listed

ATTRIBUTES = "attributes"


@dataclass(frozen=True)
class ForeignModel:
    """A linear model by the names of its strings and labels."""

    program: str  # whose it is
    labels: tuple[str, ...]
    strings: Sequence[str]  # [A]
    node: SparseWeights  # [A, Y]
    pairs: SparseWeights | None  # [A, Y^2], for (label before, label)
    transitions: np.ndarray  # [Y, Y]
    templates: tuple[str, ...] | None = None  # lines that make the strings; None where they stand in the data
    width: int = 0  # columns of input that its data has
    remarks: tuple[str, ...] = field(default=())  # what a user should hear

    def check(self, source: str) -> None:
        """An error where there is something in it that no model of ours can have."""
        found = None
        if not 1 <= len(self.labels) <= MOST_LABELS:
            found = f"{len(self.labels):,} labels"
        elif "" in self.labels or len(set(self.labels)) < len(self.labels) or any(map(BREAKS.search, self.labels)):
            found = "a label that is empty, there twice, or broken by a TAB or a line end"
        elif len(set(self.strings)) < len(self.strings):
            found = "a feature twice"
        else:
            for values in (self.transitions, self.node.values, *(() if self.pairs is None else (self.pairs.values,))):
                if values.size and not np.abs(values).max() <= LARGEST:
                    found = "weights that are not finite or too large"
        if found is not None:
            raise FileFormatError(f"{source}: a damaged {self.program} model: it has {found}")

    def figures(self) -> dict[str, Any]:
        """How large it is."""
        weights = len(self.node.values) + (0 if self.pairs is None else len(self.pairs.values))
        return {
            "program": self.program,
            "labels": len(self.labels),
            "strings": len(self.strings),
            "weights": weights,
            "transitions": int(np.count_nonzero(self.transitions)),
            "templates": 0 if self.templates is None else len(self.templates),
        }

    def said(self) -> list[str]:
        """The same in words."""
        found = self.figures()
        what = "attribute" if self.templates is None else "string"
        counts = {"label": found["labels"], what: found["strings"], "weight": found["weights"]}
        said = ", ".join(counted(number, noun) for noun, number in counts.items())
        lines = [f"{self.program} model: {said}, {counted(found['transitions'], 'transition')}"]
        if self.templates is not None:
            looks = counted(max(self.width, template_width(self.templates), 1), "column")
            lines.append(f"{counted(len(self.templates), 'line')} of its template look at {looks}")
        return lines

    def to_model(self, columns: Sequence[str] | None = None) -> Model:
        """A model of ours; `columns` are names for those of its data, the label's last."""
        Y = len(self.labels)
        feature, names = self._feature(columns)
        attributes = self.templates is None
        encoding = Encoding(ATTRIBUTE_FORMAT if attributes else COLUMN_FORMAT, names, self.labels, (feature,))
        node = self.node if Y != 2 else NODE.from_labels(self.node.dense(), Y)
        terms = [ExplicitTerm("node", NODE.name, (feature.config.name,), node).compacted()]
        if self.pairs is not None:
            terms.append(ExplicitTerm("edge-x", EDGE_X.name, (feature.config.name,), self.pairs))
        edges = Edges(np.ascontiguousarray(self.transitions, dtype=np.float64), np.zeros(Y), np.zeros(Y))
        return Model(encoding, tuple(terms), edges, {"config": self._configuration(names), "imported": self.program})

    def _feature(self, columns: Sequence[str] | None) -> tuple[AttributeFeature, tuple[str, ...]]:
        vocabulary = Vocabulary(tuple(self.strings), False)
        if self.templates is None:
            if columns is not None:
                raise ConfigError(f"a {self.program} model of attributes has no columns to name", settings=["columns"])
            return AttributeFeature(FeatureConfig(ATTRIBUTES, (), ATTRIBUTES, window=(0,)), vocabulary), ("label",)
        config = FeatureConfig(PATTERNS, (), "templates", window=(0,), templates=self.templates)
        feature = TemplateFeature(config, vocabulary)
        width = max(self.width, feature.width, 1)
        names = (*(f"c{number}" for number in range(width)), "label") if columns is None else tuple(columns)
        if len(names) <= width or len(set(names)) < len(names) or "" in names:
            raise ConfigError(
                f"the model looks at {counted(width, 'column')} and the label comes last: give names for at least "
                f"{width + 1}, each another, not {listed(names)}",
                settings=["columns"],
            )
        return feature, names

    def _configuration(self, names: Sequence[str]) -> dict[str, Any]:
        """What training would be told to get a model of this kind."""
        name, kind = (ATTRIBUTES, ATTRIBUTES) if self.templates is None else (PATTERNS, "templates")
        feature: dict[str, Any] = {"name": name, "type": kind}
        if self.templates is not None:
            feature["templates"] = list(self.templates)
        terms = [{"name": "node", "type": NODE.name, "features": [name]}]
        if self.pairs is not None:
            terms.append({"name": "edge-x", "type": EDGE_X.name, "features": [name]})
        terms.append({"name": "edge", "type": TRANSITIONS.name})
        raw: dict[str, Any] = {"features": [feature], "terms": terms}
        if self.templates is not None:
            raw["columns"] = list(names)
        return parse_config(raw).to_dict()


@dataclass(frozen=True)
class StringWeights:
    """Weights of A strings that are not zero, K in all, as templates make them."""

    string: np.ndarray  # [K]
    place: np.ndarray  # [K] a label, or a pair of them
    value: np.ndarray  # [K]
    of_pair: np.ndarray  # [K] bool
    times: np.ndarray  # [A] how many lines without a macro give the string: it is everywhere
    pairs_alone: np.ndarray  # [A] bool: the string has weights of pairs and no others

    def model(self, program: str, labels: Sequence[str], texts: Sequence[str], **more: Any) -> ForeignModel:
        """Return a model in which weights of pairs for strings that are everywhere are transitions."""
        Y, times = len(labels), self.times[self.string]
        always = self.of_pair & (times > 0)
        transitions = np.zeros(Y * Y)
        np.add.at(transitions, self.place[always], self.value[always] * times[always])
        kept = ~(self.pairs_alone & (self.times > 0))
        number = np.cumsum(kept) - 1
        A = int(np.count_nonzero(kept))

        def rows(which: np.ndarray, columns: int) -> SparseWeights:
            return sparse_rows(number[self.string[which]], self.place[which], self.value[which], (A, columns))

        strings = [text for text, own in zip(texts, kept.tolist(), strict=True) if own]
        pair = self.of_pair & ~always
        pairs = rows(pair, Y * Y) if pair.any() else None
        node = rows(~self.of_pair, Y)
        return ForeignModel(program, tuple(labels), strings, node, pairs, transitions.reshape(Y, Y), **more)


def sparse_rows(rows: np.ndarray, columns: np.ndarray, values: np.ndarray, shape: tuple[int, int]) -> SparseWeights:
    """Weights out of (row, column, value), those of one place added up, zeros left out."""
    import scipy.sparse

    matrix = scipy.sparse.coo_array((values, (rows, columns)), shape=shape).tocsr()
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return SparseWeights(shape[1], matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data)


def decoded(strings: Sequence[bytes], encoding: str) -> tuple[list[str], int]:
    """Strings as text, and how many of them are not in the encoding: their bytes are told by number."""
    texts: list[str] = []
    bad = 0
    for string in strings:
        try:
            texts.append(string.decode(encoding))
        except UnicodeDecodeError:
            texts.append(readable(string))
            bad += 1
    return texts, bad
