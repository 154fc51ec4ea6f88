"""A model of another program in one form, `ForeignModel`, and the `Model` of ours that scores alike.

All of them are linear. The strings are attributes that stand in the data, or lines of a template make them of columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..chains import EDGE_X, NODE, STATE, TRANSITIONS, Edges
from ..config import PATTERNS, parse_config, pieces
from ..corpora import ATTRIBUTE_FORMAT, BREAKS, COLUMN_FORMAT, MOST_LABELS
from ..encoding import AttributeFeature, Encoding, TemplateFeature, Vocabulary, readable, template_width
from ..errors import ConfigError, FileFormatError, damaged
from ..features import ExplicitTerm
from ..files import LARGEST
from ..maps import SparseWeights
from ..model import Model
from ..system import counted, listed


@dataclass(frozen=True)
class ForeignModel:
    """A linear model by the names of its strings and labels."""

    program: str  # that wrote it
    labels: tuple[str, ...]
    strings: Sequence[str]  # [A]
    node: SparseWeights  # [A, Y]
    pairs: SparseWeights | None  # [A, Y^2], for (label before, label)
    transitions: np.ndarray  # [Y, Y]
    templates: tuple[str, ...] | None = None  # lines that make the strings; None where they stand in the data
    width: int = 0  # columns of input that its data has
    remarks: tuple[str, ...] = ()  # for the user

    def check(self, source: str) -> None:
        """Refuse what no model of ours can have."""
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
            raise damaged(self.program, source, f"it has {found}")

    def figures(self) -> dict[str, Any]:
        """Return its size in labels, strings and weights."""
        weights = len(self.node.values) + (0 if self.pairs is None else len(self.pairs.values))
        return {
            "program": self.program,
            "labels": len(self.labels),
            "strings": len(self.strings),
            "weights": weights,
            "transitions": int(np.count_nonzero(self.transitions)),
            "templates": 0 if self.templates is None else len(self.templates),
        }

    def summary(self) -> list[str]:
        """Return its size in words, a few lines."""
        found = self.figures()
        nouns = {"labels": "label", "strings": "attribute" if self.templates is None else "string"}
        nouns |= {"weights": "weight", "transitions": "transition"}
        lines = [f"{self.program} model: {', '.join(counted(found[key], noun) for key, noun in nouns.items())}"]
        if self.templates is not None:
            looks = counted(self.input_columns, "column")
            lines.append(f"{counted(len(self.templates), 'line')} of its template look at {looks}")
        return lines

    @property
    def input_columns(self) -> int:
        """Number of columns before the label."""
        return max(self.width, template_width(self.templates or ()), 1)

    def to_model(self, columns: Sequence[str] | None = None) -> Model:
        """Return a model of ours; `columns` are names for those of its data, the label's last."""
        Y, width, attributes = len(self.labels), self.input_columns, self.templates is None
        feature: dict[str, Any] = {"name": "attributes", "type": "attributes"}
        names: tuple[str, ...] = ("label",)
        if self.templates is None:
            if columns is not None:
                raise ConfigError(f"a {self.program} model of attributes has no columns to name", settings=["columns"])
        else:
            feature = {"name": PATTERNS, "type": "templates", "templates": list(self.templates)}
            names = (*(f"c{number}" for number in range(width)), "label") if columns is None else tuple(columns)
            if len(names) <= width or len(set(names)) < len(names) or "" in names:
                raise ConfigError(
                    f"the model uses {counted(width, 'column')}, which the label follows: give at least "
                    f"{width + 1} different names, not {listed(names)}",
                    settings=["columns"],
                )
        # The configuration that training would need for a model of this kind.
        seen = (feature["name"],)
        # A node term of two labels has one column for both, of opposite weights: theirs need not be.
        states = STATE if Y == 2 else NODE
        entries = [("node", states.name, seen), *([] if self.pairs is None else [("edge-x", EDGE_X.name, seen)])]
        terms = [{"name": name, "type": kind, "features": list(own)} for name, kind, own in entries]
        raw: dict[str, Any] = {"features": [feature], "terms": [*terms, {"name": "edge", "type": TRANSITIONS.name}]}
        config = parse_config(raw if attributes else raw | {"columns": list(names)})
        assert config.features is not None
        kind = AttributeFeature if attributes else TemplateFeature
        features = (kind(config.features[0], Vocabulary(tuple(self.strings), False)),)
        encoding = Encoding(ATTRIBUTE_FORMAT if attributes else COLUMN_FORMAT, names, self.labels, features)
        explicit = [ExplicitTerm("node", states.name, seen, self.node).compacted()]
        if self.pairs is not None:
            explicit.append(ExplicitTerm("edge-x", EDGE_X.name, seen, self.pairs))
        edges = Edges(np.ascontiguousarray(self.transitions, dtype=np.float64), np.zeros(Y), np.zeros(Y))
        return Model(encoding, tuple(explicit), edges, {"config": config.to_dict(), "imported": self.program})


@dataclass(frozen=True)
class StringWeights:
    """Weights of A strings that are not zero, K in all, as templates make them."""

    string: np.ndarray  # [K]
    place: np.ndarray  # [K] a label, or a pair of them
    value: np.ndarray  # [K]
    of_pair: np.ndarray  # [K] bool
    pairs_alone: np.ndarray  # [A] bool: the string has weights of pairs and no others


def template_model(
    program: str,
    source: str,
    encoding: str,
    labels: Sequence[bytes],
    lines: Sequence[bytes],
    strings: Sequence[bytes],
    texts: Sequence[str],
    weights: StringWeights,
    **more: Any,
) -> ForeignModel:
    """Return a model whose strings, shown as `texts`, come from lines of a template.

    Lines without a macro give the same string everywhere: its weights of pairs are transitions.
    """
    (label_texts, bad_labels), (line_texts, bad_lines) = (decoded(each, encoding) for each in (labels, lines))
    if bad_labels or bad_lines:
        raise FileFormatError(
            f"{source}: labels or templates that are not {encoding}: give their encoding", settings=["encoding"]
        )
    try:
        fixed = [line for line in line_texts if all(isinstance(piece, str) for piece in pieces(line))]
    except ConfigError as error:
        raise damaged(program, source, str(error)) from None
    constant = Counter(line.encode(encoding) for line in fixed)
    times = np.array([constant[string] for string in strings], dtype=np.float64)  # [A] lines that give it everywhere
    Y, own_times = len(labels), times[weights.string]
    always = weights.of_pair & (own_times > 0)
    transitions = np.zeros(Y * Y)
    np.add.at(transitions, weights.place[always], weights.value[always] * own_times[always])
    kept = ~(weights.pairs_alone & (times > 0))
    number = np.cumsum(kept) - 1

    def rows(which: np.ndarray, columns: int) -> SparseWeights:
        shape = int(np.count_nonzero(kept)), columns
        return sparse_rows(number[weights.string[which]], weights.place[which], weights.value[which], shape)

    pair = weights.of_pair & ~always
    return ForeignModel(
        program,
        tuple(label_texts),
        [text for text, own in zip(texts, kept.tolist(), strict=True) if own],
        rows(~weights.of_pair, Y),
        rows(pair, Y * Y) if pair.any() else None,
        transitions.reshape(Y, Y),
        tuple(line for line in line_texts if line[:1] not in ("b", "B") or line not in fixed) if lines else None,
        **more,
    )


def sparse_rows(rows: np.ndarray, columns: np.ndarray, values: np.ndarray, shape: tuple[int, int]) -> SparseWeights:
    """Return weights from (row, column, value), those of one place added up, zeros left out."""
    import scipy.sparse

    matrix = scipy.sparse.coo_array((values, (rows, columns)), shape=shape).tocsr()
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return SparseWeights(shape[1], matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data)


def decoded(strings: Sequence[bytes], encoding: str) -> tuple[list[str], int]:
    """Return strings as text, and the number of those that are not in the encoding, shown by their bytes."""
    texts: list[str] = []
    bad = 0
    for string in strings:
        try:
            texts.append(string.decode(encoding))
        except UnicodeDecodeError:
            texts.append(readable(string))
            bad += 1
    return texts, bad
