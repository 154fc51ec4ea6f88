"""Terms of a model, and entries of terms in files, of models and of bases (`select-basis`), checked as they are read.

A term is a sum of value_e W[row_e, :] over parts e, features or pivots, that scores positions. Arrays of a file belong
to term number 3 by names that begin with `term3.`.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .._lazy import cached_property
from ..chains import CLIQUES, NODE, MappedClique
from ..config import PRECISIONS, Config, parse_config
from ..encoding import AttributeFeature, Encoding
from ..errors import ConfigError, FileFormatError
from ..files import LARGEST, Contents, pack_sparse, read_container, write_container
from ..kernels import Inputs, Kernel, kernel_from_dict
from ..maps import ColumnOrder, Weights, unpack_weights
from ..system import Workers

if TYPE_CHECKING:
    from ..device import Device

ROWS_PER_TASK = 2048  # of inputs whose scores pruning looks at


def mapped_clique(name: str) -> MappedClique:
    """Return the cliques of a term that looks at inputs, by their name."""
    found = CLIQUES[name]
    if not isinstance(found, MappedClique):  # in a damaged file
        raise ValueError(f"terms of the type '{name}' do not look at inputs")
    return found


@dataclass(frozen=True)
class StoredTerm:
    """The entry of a term, and its arrays."""

    contents: Contents
    encoding: Encoding
    entry: dict[str, Any]
    at: str
    name: str
    features: tuple[str, ...]

    @cached_property
    def like(self) -> Inputs:
        """Inputs of no position: the shape of the term's features."""
        return self.encoding.inputs(self.encoding.empty_dataset(), self.features)

    @property
    def type(self) -> str:
        found = self.entry.get("type", NODE.name)
        if found not in CLIQUES or not CLIQUES[found].mapped:
            raise self.contents.error(f"'{self.at}' is a term of an unknown type")
        return found

    @property
    def size(self) -> int:
        """Columns of an explicit map of its features."""
        only = self.encoding.features[0]
        if len(self.encoding.features) == len(self.features) == 1 and isinstance(only, AttributeFeature):
            return len(only.vocabulary.values)  # without inputs, which need scipy
        return ColumnOrder.of(self.like).size

    @property
    def columns(self) -> int:
        return mapped_clique(self.type).columns(len(self.encoding.labels))

    @property
    def about(self) -> tuple[str, str, tuple[str, ...]]:
        return self.name, self.type, self.features

    def array(self, name: str, kind: str, ndim: int) -> np.ndarray:
        return self.contents.array(f"{self.at}.{name}", kind, ndim, LARGEST)

    @property
    def cosine(self) -> bool:
        found = self.entry.get("cosine", False)
        if not isinstance(found, bool):
            raise self.contents.error(f"'{self.at}' has a 'cosine' that is neither true nor false")
        return found

    def weights(self, rows: int, of_what: str) -> Weights:
        """Return weights [rows, columns] of `of_what`."""
        found = unpack_weights(self.contents, self.entry, f"{self.at}.weights", self.columns)
        if found.shape != (rows, self.columns):
            raise self.contents.error(f"'{self.at}.weights' does not fit its {of_what}")
        return found

    def kernel(self) -> Kernel:
        """Return the kernel; nothing is imported to find one that is not registered."""
        stored = self.entry.get("kernel")
        try:
            return kernel_from_dict(stored, self.like)
        except FileFormatError as error:
            raise FileFormatError(f"{self.contents.path}: {error}", settings=error.settings) from None
        except (ValueError, TypeError, KeyError, ConfigError):
            name = stored.get("type") if isinstance(stored, dict) else None
            raise self.contents.error(f"'{self.at}' has an unknown kernel, {name!r}") from None

    def pivots(self) -> tuple[Inputs, np.ndarray, np.ndarray | None]:
        """Return pivots [M], their lines of training data, [M], and the labels there, which older files have not."""
        codes, real = self.array("codes", "int32", 2), self.array("real", "float64", 2)
        lines = self.array("lines", "int64", 1)
        M, like = len(lines), self.like
        if codes.shape != (M, like.codes.shape[1]) or real.shape != (M, like.real.shape[1]):
            raise self.contents.error(f"the pivots of '{self.at}' do not fit its features")
        if codes.size and (codes.min() < -1 or (codes >= like.sizes).any()):
            raise self.contents.error(f"the pivots of '{self.at}' hold codes out of range")
        bag = None
        if like.bag is not None:
            bag = self.contents.sparse(f"{self.at}.bag", M, like.bag.shape[1], LARGEST)
        labels = self.array("labels", "int32", 1) if f"{self.at}.labels" in self.contents.arrays else None
        if labels is not None and (len(labels) != M or (labels >= len(self.encoding.labels)).any()):
            raise self.contents.error(f"the labels of pivots of '{self.at}' do not fit")
        return Inputs(codes, like.sizes, real, bag, np.zeros(M)), lines, labels

    def precision(self) -> str:
        """Return the precision that the term computes in."""
        found = self.entry.get("precision")
        if found not in PRECISIONS:
            raise self.contents.error(f"'{self.at}' has a 'precision' that is neither single nor double")
        return found


def read_terms(contents: Contents, encoding: Encoding) -> Iterator[StoredTerm]:
    """Yield the terms of a file, with names and features checked against the encoding."""
    for number, entry in enumerate(contents.get("terms", list)):
        at = f"term{number}"
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise contents.error(f"'{at}' is not a term")
        features = entry.get("features")
        if not isinstance(features, list) or not all(encoding.has(str(name)) for name in features):
            raise contents.error(f"'{at}' names features that the encoding does not have")
        yield StoredTerm(contents, encoding, entry, at, entry["name"], tuple(map(str, features)))


def pack_pivots(pivots: Inputs, lines: np.ndarray, labels: np.ndarray | None, at: str) -> dict[str, np.ndarray]:
    arrays = {f"{at}.codes": pivots.codes, f"{at}.real": pivots.real, f"{at}.lines": lines}
    if labels is not None:
        arrays[f"{at}.labels"] = labels
    if pivots.bag is not None:
        arrays |= pack_sparse(pivots.bag, f"{at}.bag")
    return arrays


def stored_config(contents: Contents, raw: Any) -> Config:
    try:
        return parse_config(raw, contents.path)
    except ConfigError as error:
        raise contents.error(f"its configuration cannot be read ({error})") from None


@dataclass(frozen=True)
class PartsOfRow:
    """The parts that make up the score of one position."""

    rows: np.ndarray  # [E] of the weights
    values: np.ndarray  # [E]
    name: Callable[[int], str]  # of part e


@dataclass(frozen=True)
class WeightTable:
    """Names of the parts of a term, and what each adds to a score where it is there."""

    items: int  # features, conjunctions or pivots
    name: Callable[[int], str]
    rows: Callable[[slice], np.ndarray]  # [n, C] of some of them


@dataclass(frozen=True)
class Term(ABC):
    """Some features, and weights over labels or pairs of labels."""

    kind: ClassVar[str]  # the word for it in files
    has_pivots: ClassVar[bool] = False  # inputs of training data, instead of features of them
    likes_many_rows: ClassVar[bool] = False  # True if it pays to score many positions at a time
    is_quick: ClassVar[bool] = False  # True if scores are sums of few weights

    name: str
    type: str  # node or edge-x
    features: tuple[str, ...]

    @property
    def clique(self) -> MappedClique:
        return mapped_clique(self.type)

    def by_labels(self, weights: np.ndarray, Y: int) -> np.ndarray:
        """Return weights [n, C] with a column for each label, [n, Y], or for each pair of labels, [n, Y^2]."""
        return self.clique.by_labels(weights, Y).reshape(len(weights), Y**self.clique.axes)

    def labels_of_column(self, column: int, Y: int) -> tuple[int, ...]:
        """Return the labels that a column of such weights is about."""
        return tuple(int(label) for label in np.unravel_index(column, (Y,) * self.clique.axes))

    @abstractmethod
    def add_scores(self, inputs: Inputs, out: np.ndarray) -> None:
        """Add the scores of inputs to out [n, C]."""

    @abstractmethod
    def pack(self, at: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return its own entries of a file's header, and its arrays by names that begin with `at`."""

    @classmethod
    @abstractmethod
    def unpack(cls, stored: StoredTerm) -> Term:
        """Invert `pack`."""

    @abstractmethod
    def described(self) -> dict[str, Any]:
        """Return its map and its kernel, to be printed."""

    @property
    @abstractmethod
    def weight_count(self) -> int:
        """Number of values that a file holds for it, its features or pivots apart."""

    @property
    @abstractmethod
    def nonzero(self) -> int:
        """Number of weights and coefficients that are not zero."""

    @property
    def is_linear(self) -> bool:
        """True if it has one weight for each feature, and nothing else that adds to scores."""
        return False

    def on_device(self, device: Device) -> Term | None:
        """Return the term with scores from a device; None where the device cannot give them."""
        return None

    @abstractmethod
    def table(self, encoding: Encoding) -> WeightTable: ...

    @property
    @abstractmethod
    def part_weights(self) -> np.ndarray:
        """Weights of its parts, [D, C] float64."""

    @abstractmethod
    def pruned(self, inputs: Inputs, budget: float, workers: Workers) -> Term:
        """Return the term with zeros for weights that change no score of the inputs by more than the budget."""

    @abstractmethod
    def compacted(self) -> Term:
        """Return a term of the same scores, without room for what is zero."""


@dataclass(frozen=True)
class TermBasis:
    """The pivots of one node term."""

    name: str
    features: tuple[str, ...]
    kernel: Kernel
    pivots: Inputs  # [M]
    lines: np.ndarray  # [M] int64, where they stand in the training data
    curve: np.ndarray  # [M+1] float64, unexplained part of the trace with the first 0..M of them
    labels: np.ndarray | None = None  # [M] int32, numbers of their labels in the training data


@dataclass(frozen=True)
class StoredBasis:
    """Pivots of terms, with the encoding that they are under."""

    encoding: Encoding
    config: Config
    terms: tuple[TermBasis, ...]

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the header and the arrays of a file."""
        header, arrays = self.encoding.pack()
        header |= {"config": self.config.to_stored(), "terms": []}
        for number, term in enumerate(self.terms):
            at = f"term{number}"
            header["terms"].append(
                {"name": term.name, "features": list(term.features), "kernel": term.kernel.to_dict()}
            )
            arrays |= pack_pivots(term.pivots, term.lines, term.labels, at) | {f"{at}.curve": term.curve}
        return header, arrays


def save_basis(path: str | os.PathLike[str], basis: StoredBasis, data_digest: str) -> None:
    header, arrays = basis.pack()
    write_container(path, "basis", {**header, "digest": data_digest}, arrays)


def load_basis(path: str | os.PathLike[str]) -> StoredBasis:
    return unpack_basis(read_container(path, "basis"))


def unpack_basis(contents: Contents) -> StoredBasis:
    encoding = Encoding.unpack(contents)
    terms = []
    for stored in read_terms(contents, encoding):
        kernel, (pivots, lines, labels) = stored.kernel(), stored.pivots()
        curve = stored.array("curve", "float64", 1)
        if len(curve) != len(lines) + 1:
            raise contents.error(f"'{stored.at}.curve' does not fit its pivots")
        terms.append(TermBasis(stored.name, stored.features, kernel, pivots, lines, curve, labels))
    if not terms:
        raise contents.error("it has no pivots")
    return StoredBasis(encoding, stored_config(contents, contents.header.get("config")), tuple(terms))
