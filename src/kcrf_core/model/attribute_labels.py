"""Labels of attribute files straight from their bytes, for linear models of first order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..corpora import CodedColumn, Corpus, NameCells
from ..encoding import AttributeFeature, Dataset
from ..features import ExplicitTerm
from ..maps import as_dense, matrix_of, without_zeros
from ..system import sequence_chunks
from ._attribute_scores import LabelScorer
from .model import Model

ROWS_AT_ONCE = 8192


def label_scorer(model: Model) -> LabelScorer | None:
    """Return the model in a form that takes attributes by their names; None where it is of another kind."""
    encoding = model.encoding
    if model.calibration is not None or model.order > 1 or len(model.terms) != 1:
        return None
    if not encoding.attributes or encoding.vectors or encoding.tables:
        return None
    term = model.terms[0]
    if type(term) is not ExplicitTerm or not term.is_linear or term.clique.axes != 1:
        return None
    feature = encoding.features[0]
    assert isinstance(feature, AttributeFeature)
    Y, names = len(model.labels), [name.encode() for name in feature.vocabulary.values]
    weights = term.weights
    if term.clique.columns(Y) != Y:
        weights = term.by_labels(as_dense(matrix_of(weights)), Y)
    weights, edges = without_zeros(weights), model.edges
    arrays = *packed_names(names), weights.ends, weights.columns, weights.values
    return LabelScorer(model.labels, *arrays, np.ascontiguousarray(edges.transitions), edges.start, edges.end)


def packed_names(names: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return names as one text, and their places in it and lengths."""
    lengths = np.fromiter(map(len, names), np.int64, len(names))
    return np.frombuffer(b"".join(names), np.uint8), np.cumsum(lengths) - lengths, lengths


@dataclass(frozen=True)
class AttributeSequences:
    """Sequences `first` to `last` of a corpus, to be labelled straight from its bytes."""

    corpus: Corpus
    first: int
    last: int
    missing: tuple[tuple[str, int], ...] = ()  # values, of which attributes have none

    @property
    def offsets(self) -> np.ndarray:
        """Offsets [S+1] from 0."""
        offsets = self.corpus.offsets[self.first : self.last + 1]
        return offsets - offsets[0]

    def span(self, first: int, last: int) -> AttributeSequences:
        return AttributeSequences(self.corpus, self.first + first, self.first + last)

    def chunks(self) -> list[tuple[int, int]]:
        return sequence_chunks(self.offsets, ROWS_AT_ONCE)


@dataclass(frozen=True)
class AttributeLabeller:
    """Labeller of blocks of attribute files."""

    _model: Model
    _scorer: LabelScorer

    @classmethod
    def of(cls, model: Model) -> AttributeLabeller | None:
        """Return one for this model, or None if it has no scorer."""
        scorer = label_scorer(model)
        return None if scorer is None else cls(model, scorer)

    def prepared(self, corpus: Corpus) -> AttributeSequences:
        """Return a corpus to label, checked against the model."""
        self._model.encoding.with_labels(corpus)
        self._model.encoding.check_vectors(
            {name: array.shape[1] for name, array in corpus.vectors.items()}, corpus.source
        )
        return AttributeSequences(corpus, 0, corpus.sequences)

    def best_labels(self, block: AttributeSequences) -> np.ndarray:
        """Return numbers of the best labels, [n] int32."""
        rows, offsets = block.corpus.attributes, block.corpus.offsets[block.first : block.last + 1]
        assert rows is not None
        names = rows.names
        if not isinstance(names, NameCells):
            packed = CodedColumn.of(names).packed()
            cells = packed.cells
            names = NameCells(packed.blob, cells.starts[0][packed.codes], cells.lengths[0][packed.codes])
        n, room = int(offsets[-1] - offsets[0]), int(np.diff(offsets).max(initial=0)) * len(self._model.labels)
        path = np.empty(n, dtype=np.int32)
        text = names.data if len(names.data) else np.zeros(1, np.uint8)
        arrays = text, names.starts, names.lengths, rows.values, rows.indptr, np.ascontiguousarray(offsets)
        bad = self._scorer.label_rows(*arrays, np.empty(max(room, 1)), np.empty(max(room, 1)), path)
        if bad >= 0:  # for an error that gives the place and the reason
            return self._model.best_labels(self.encoded(block, np.array([bad])))
        return path

    def encoded(self, block: AttributeSequences, which: np.ndarray) -> Dataset:
        """Return the sequences numbered `which` as other decoders take them."""
        return self._model.encoding.encode(block.corpus.subset(block.first + which))
