"""Entries of terms in files, checked as they are read: shared by the terms of models and those of bases.

The header has an entry for each term, and arrays belong to term number 3 by names that begin with `term3.`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..chains import CLIQUES, NODE, MappedClique
from ..config import PRECISIONS, Config, parse_config
from ..encoding import AttributeFeature, Encoding
from ..errors import ConfigError, FileFormatError
from ..files import LARGEST, Contents, pack_sparse
from ..kernels import Inputs, Kernel, kernel_from_dict
from ..maps import ColumnOrder, Weights, unpack_weights

# The first format in which terms have their precision.
PRECISION_WITH_TERM = 4


def mapped_clique(name: str) -> MappedClique:
    """The cliques of a term that looks at inputs, by their name."""
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
        return empty_inputs(self.encoding, self.features)

    @property
    def type(self) -> str:
        found = self.entry.get("type", NODE.name)
        if found not in CLIQUES or not CLIQUES[found].mapped:
            raise self.error(f"'{self.at}' is a term of an unknown type")
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
        """Columns of its weights."""
        return mapped_clique(self.type).columns(len(self.encoding.labels))

    @property
    def about(self) -> tuple[str, str, tuple[str, ...]]:
        return self.name, self.type, self.features

    def error(self, message: str) -> FileFormatError:
        return self.contents.error(message)

    def array(self, name: str, kind: str, ndim: int) -> np.ndarray:
        return self.contents.array(f"{self.at}.{name}", kind, ndim, LARGEST)

    @property
    def cosine(self) -> bool:
        found = self.entry.get("cosine", False)
        if not isinstance(found, bool):
            raise self.error(f"'{self.at}' has a 'cosine' that is neither true nor false")
        return found

    def weights(self, rows: int, of_what: str) -> Weights:
        """Weights [rows, columns] of `of_what`."""
        found = unpack_weights(self.contents, self.entry, f"{self.at}.weights", self.columns)
        if found.shape != (rows, self.columns):
            raise self.error(f"'{self.at}.weights' does not fit its {of_what}")
        return found

    def kernel(self) -> Kernel:
        """The kernel; nothing is imported to find one that nobody has registered."""
        stored = self.entry.get("kernel")
        try:
            return kernel_from_dict(stored, self.like)
        except FileFormatError as error:
            raise FileFormatError(f"{self.contents.path}: {error}") from None
        except (ValueError, TypeError, KeyError, ConfigError):
            name = stored.get("type") if isinstance(stored, dict) else None
            raise self.error(f"'{self.at}' has an unknown kernel, {name!r}") from None

    def pivots(self) -> tuple[Inputs, np.ndarray]:
        """Pivots [M] and their lines of training data, [M]."""
        codes, real = self.array("codes", "int32", 2), self.array("real", "float64", 2)
        lines = self.array("lines", "int64", 1)
        M, like = len(lines), self.like
        if codes.shape != (M, like.codes.shape[1]) or real.shape != (M, like.real.shape[1]):
            raise self.error(f"the pivots of '{self.at}' do not fit its features")
        if codes.size and (codes.min() < -1 or (codes >= like.sizes).any()):
            raise self.error(f"the pivots of '{self.at}' hold codes out of range")
        bag = None
        if like.bag is not None:
            bag = self.contents.sparse(f"{self.at}.bag", M, like.bag.shape[1], LARGEST)
        return Inputs(codes, like.sizes, real, bag, np.zeros(M)), lines

    def precision(self) -> str:
        """The precision that the term computes in.

        Up to format 3 models had it in the configuration of their training, if at all; double where it is not there.
        """
        if self.contents.header["format"] >= PRECISION_WITH_TERM:
            found = self.entry.get("precision")
            if found not in PRECISIONS:
                raise self.error(f"'{self.at}' has a 'precision' that is neither single nor double")
            return found
        info: Any = self.contents.get("info", dict)
        for key in ("config", "training", "precision"):
            info = info.get(key) if isinstance(info, dict) else None
        return "single" if info == "single" else "double"


def read_terms(contents: Contents, encoding: Encoding) -> Iterator[StoredTerm]:
    """The terms of a file, with names and features checked against the encoding."""
    for number, entry in enumerate(contents.get("terms", list)):
        at = f"term{number}"
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise contents.error(f"'{at}' is not a term")
        features = entry.get("features")
        if not isinstance(features, list) or not all(encoding.has(str(name)) for name in features):
            raise contents.error(f"'{at}' names features that the encoding does not have")
        yield StoredTerm(contents, encoding, entry, at, entry["name"], tuple(map(str, features)))


def empty_inputs(encoding: Encoding, features: Sequence[str]) -> Inputs:
    """Inputs of no position: the shape of the named features."""
    return encoding.inputs(encoding.empty_dataset(), features)


def pack_pivots(pivots: Inputs, lines: np.ndarray, at: str) -> dict[str, np.ndarray]:
    arrays = {f"{at}.codes": pivots.codes, f"{at}.real": pivots.real, f"{at}.lines": lines}
    if pivots.bag is not None:
        arrays |= pack_sparse(pivots.bag, f"{at}.bag")
    return arrays


def stored_config(contents: Contents, raw: Any) -> Config:
    try:
        return parse_config(raw, contents.path)
    except ConfigError as error:
        raise contents.error(f"its configuration cannot be read ({error})") from None
