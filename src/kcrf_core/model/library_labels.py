"""Labels by the C library `kcrf_runtime`, which takes less time than the model itself and must be prepared for it."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..corpora import Cells, Corpus, NameCells
from ..encoding import RealFeature
from ..errors import ConfigError
from ..features import ConjunctionTerm, ExplicitTerm
from ..maps import held_values
from ..runtime import ItemRows, RuntimeModel, RuntimeTagger
from ..system import renew_after_fork
from .model import Model

WEIGHTS_A_POSITION = 4  # that are put into the library's form in the time that it gains at a position
POSITIONS_A_CALL = 1000  # that the time of a call of the model itself is worth


@dataclass(frozen=True)
class CorpusPart:
    """Sequences `first` to `last` of a file's block, which the library labels straight from the text."""

    corpus: Corpus
    first: int
    last: int
    missing: tuple[tuple[str, int], ...] = ()  # values that are counted for numbers alone

    @property
    def offsets(self) -> np.ndarray:
        """Offsets [S+1] from 0."""
        offsets = self.corpus.offsets[self.first : self.last + 1]
        return offsets - offsets[0]

    def span(self, first: int, last: int) -> CorpusPart:
        return replace(self, first=self.first + first, last=self.first + last)


class LibraryLabels:
    """Labels by the library, for a model that it supports; the model itself gives the same ones."""

    def __init__(self, model: Model, note: Callable[[str], None] = warnings.warn):
        self.model, self._note, self._positions = model, note, 0
        self._idle: list[RuntimeTagger] = []  # taggers that no thread uses now
        weights = sum(held_values(term.weights).size for term in model.terms if isinstance(term, ExplicitTerm))
        of_kernels = any(isinstance(term, ConjunctionTerm) for term in model.terms)  # the model itself is quicker
        self.pays = math.inf if of_kernels else weights / WEIGHTS_A_POSITION  # positions
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Have a new lock, in a process that was forked while another thread had it."""
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[LibraryLabels], tuple[Model]]:
        return LibraryLabels, (self.model,)

    def ready(self, positions: int) -> RuntimeModel | None:
        """Return the model in the library's form to label so many positions; None: the model itself is to do it.

        The form, 0.1 s for 200,000 features, is made once the library would have gained the time that this takes.
        """
        with self._lock:
            self._positions += positions
            if self._positions < self.pays:
                self._positions += POSITIONS_A_CALL
                return None
            if "_made" not in vars(self):
                self._made = self._make()
            return self._made

    def _make(self) -> RuntimeModel | None:
        if any(isinstance(feature, RealFeature) for feature in self.model.encoding.features):
            return None  # whose errors name columns, and whose columns may be numbers already
        from .runtime_files import runtime_image  # few positions need neither
        from .runtime_sections import RuntimeLimitError

        try:
            return RuntimeModel(runtime_image(self.model))
        except RuntimeLimitError as error:
            self._note(f"{error.what}: the model itself labels, with the same result in more time")
        except ConfigError:  # a kind of model that it does not support
            pass
        return None

    def of(self, X: Sequence[Sequence[Any]]) -> np.ndarray | None:
        """Return numbers of the best labels of rows of texts, or of items, [N] int32; None: ask the model itself."""
        made = self.ready(sum(map(len, X)))
        if made is None:
            return None
        tagger = self._idle.pop() if self._idle else RuntimeTagger(made)
        path, at = np.empty(sum(map(len, X)), np.int32), 0
        arrays: dict[str, list[tuple[int, np.ndarray]]] = {}  # of items: the library has none
        try:
            for rows in X:
                if self.model.encoding.attributes:
                    tagger.set_attributes(ItemRows(rows, arrays))
                else:
                    tagger.set_columns(rows)
                path[at : at + len(tagger)] = tagger.labels()
                at += len(tagger)
        except (TypeError, ValueError, OverflowError):  # the model has its own errors
            return None
        finally:
            self._idle.append(tagger)
        return None if arrays else path

    def of_part(self, part: CorpusPart) -> np.ndarray | None:
        """Return numbers of the best labels of a block's sequences, [n] int32; None: ask the model itself."""
        corpus, made = part.corpus, self._made
        assert made is not None
        offsets = np.ascontiguousarray(corpus.offsets[part.first : part.last + 1])
        path = np.empty(int(offsets[-1] - offsets[0]), np.int32)
        if corpus.attributes is not None:
            names, rows = corpus.attributes.names, corpus.attributes
            if not isinstance(names, NameCells):
                return None  # they are texts already, as formats of plug-ins may have them
            cells = names.data, names.starts, names.lengths
            good = made.label_attributes(*cells, rows.values, rows.indptr, offsets, path)
        else:
            if not isinstance(corpus.columns, Cells):
                return None
            places = np.array(self.model.encoding.places(corpus)[:-1], np.int64)
            cells = corpus.columns.data, corpus.columns.starts, corpus.columns.lengths
            good = made.label_cells(*cells, places, offsets, path)
        return path if good else None
