"""Dataset and basis files, which `featurize` and `select-basis` write for later commands.

Both carry the encoding, so that a reader needs neither the original file nor its configuration.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..config import Config, parse_config
from ..encoding import UNKNOWN, UNOBSERVED, Dataset, Encoding
from ..errors import ConfigError
from ..files import Contents, content_digest, pack_sparse, read_container, write_container
from ..kernels import Inputs, Kernel, kernel_to_dict
from .stored_terms import pack_pivots, stored_terms


def digest(dataset: Dataset) -> str:
    """SHA-256 of encoded data: equal for equal data under equal encodings, in the same shards where it has some."""
    if dataset.portions is not None:
        return joined_digests(digest(dataset.span(*ends)) for ends in pairwise(dataset.portions.tolist()))
    total = hashlib.sha256()
    arrays = [dataset.offsets, dataset.codes, dataset.real]
    arrays += [] if dataset.labels is None else [dataset.labels]
    arrays += [] if dataset.weights is None else [dataset.weights]
    if dataset.bag is not None:
        arrays += pack_sparse(dataset.bag, "bag").values()
    for array in arrays:
        total.update(repr((array.dtype.str, array.shape)).encode())
        total.update(np.ascontiguousarray(array).data)  # as bytes, without a copy of them
    return total.hexdigest()


def joined_digests(parts: Iterable[str]) -> str:
    """The digest of data whose shards have these."""
    return hashlib.sha256("".join(parts).encode()).hexdigest()


# ----------------------------------------------------------------------------- datasets


@dataclass(frozen=True)
class StoredDataset:
    encoding: Encoding
    dataset: Dataset
    config: Config


def dataset_arrays(dataset: Dataset) -> dict[str, np.ndarray]:
    """The arrays that a file has of encoded data; `unpack_arrays` makes the same of them."""
    arrays = {
        "offsets": dataset.offsets,
        "lines": dataset.lines,
        "codes": dataset.codes,
        "real": dataset.real,
        "bag_unseen": dataset.bag_unseen,
    }
    if dataset.labels is not None:
        arrays["gold"] = dataset.labels
    if dataset.weights is not None:
        arrays["weights"] = dataset.weights
    if dataset.bag is not None:
        arrays |= pack_sparse(dataset.bag, "bag")
    if dataset.portions is not None:
        arrays["portions"] = dataset.portions
    return arrays


def save_dataset(path: str | os.PathLike[str], encoding: Encoding, dataset: Dataset, config: Config) -> None:
    header, arrays = encoding.pack()
    arrays |= dataset_arrays(dataset)
    header |= {"config": config.to_dict(), "digest": digest(dataset)}
    write_container(path, "dataset", header, arrays)


def load_dataset(path: str | os.PathLike[str]) -> StoredDataset:
    return unpack_dataset(read_container(path, "dataset"))


def unpack_dataset(contents: Contents) -> StoredDataset:
    encoding = Encoding.unpack(contents)
    dataset = unpack_arrays(contents, encoding)
    return StoredDataset(encoding, dataset, stored_config(contents, contents.header.get("config")))


def unpack_arrays(contents: Contents, encoding: Encoding) -> Dataset:
    """Encoded data of a file, under its encoding."""
    like = encoding.empty_dataset()
    lines = contents.array("lines", "int64", 1)
    N = len(lines)
    offsets = contents.array("offsets", "int64", 1)
    if not N or len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != N or np.any(np.diff(offsets) <= 0):
        raise contents.error("its sequences do not fit its positions")
    codes, real = contents.array("codes", "int32", 2), contents.array("real", "float64", 2)
    if codes.shape != (N, like.codes.shape[1]) or real.shape != (N, like.real.shape[1]):
        raise contents.error("its columns do not fit its encoding")
    sizes = encoding.inputs(like, encoding.names).sizes
    if codes.size and (codes.min() < -2 or (codes >= sizes).any()):
        raise contents.error("'codes' are out of range")
    labels = None
    if "gold" in contents.arrays:
        labels = contents.array("gold", "int32", 1)
        least = UNKNOWN if encoding.unobserved is None else UNOBSERVED
        if len(labels) != N or not least <= labels.min() <= labels.max() < len(encoding.labels):
            raise contents.error("'gold' does not fit its labels")
    weights = None
    if "weights" in contents.arrays:
        weights = contents.array("weights", "float64", 1)
        if len(weights) != len(offsets) - 1 or np.any(weights < 0):
            raise contents.error("'weights' do not fit its sequences")
    bag_unseen = contents.array("bag_unseen", "float64", 1)
    if len(bag_unseen) != N or np.any(bag_unseen < 0):
        raise contents.error("'bag_unseen' does not fit its positions")
    bag = None if like.bag is None else contents.sparse("bag", N, like.bag.shape[1])
    portions = None
    if "portions" in contents.arrays:
        portions = contents.array("portions", "int64", 1)
        if len(portions) < 2 or portions[0] != 0 or portions[-1] != len(offsets) - 1 or np.any(np.diff(portions) <= 0):
            raise contents.error("'portions' do not fit its sequences")
    return Dataset(offsets, lines, labels, weights, codes, real, bag, bag_unseen, contents.path, portions=portions)


# ----------------------------------------------------------------------------- bases


@dataclass(frozen=True)
class TermBasis:
    """The pivots of one node term."""

    name: str
    features: tuple[str, ...]
    kernel: Kernel
    pivots: Inputs  # [M]
    lines: np.ndarray  # [M] int64, where they stand in the training data
    curve: np.ndarray  # [M+1] float64, unexplained part of the trace with the first 0..M of them


@dataclass(frozen=True)
class StoredBasis:
    encoding: Encoding
    config: Config
    terms: tuple[TermBasis, ...]


def save_basis(path: str | os.PathLike[str], basis: StoredBasis, data_digest: str) -> None:
    header, arrays = _pack_basis(basis)
    write_container(path, "basis", {**header, "digest": data_digest}, arrays)


def basis_digest(basis: StoredBasis) -> str:
    """SHA-256 of a basis."""
    return content_digest(*_pack_basis(basis))


def _pack_basis(basis: StoredBasis) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    header, arrays = basis.encoding.pack()
    header |= {"config": basis.config.to_dict(), "terms": []}
    for number, term in enumerate(basis.terms):
        at = f"term{number}"
        header["terms"].append(
            {"name": term.name, "features": list(term.features), "kernel": kernel_to_dict(term.kernel)}
        )
        arrays |= pack_pivots(term.pivots, term.lines, at)
        arrays[f"{at}.curve"] = term.curve
    return header, arrays


def load_basis(path: str | os.PathLike[str]) -> StoredBasis:
    return unpack_basis(read_container(path, "basis"))


def unpack_basis(contents: Contents) -> StoredBasis:
    encoding = Encoding.unpack(contents)
    terms = []
    for stored in stored_terms(contents, encoding):
        kernel, (pivots, lines) = stored.kernel(), stored.pivots()
        curve = stored.array("curve", "float64", 1)
        if len(curve) != len(lines) + 1:
            raise contents.error(f"'{stored.at}.curve' does not fit its pivots")
        terms.append(TermBasis(stored.name, stored.features, kernel, pivots, lines, curve))
    if not terms:
        raise contents.error("it has no pivots")
    return StoredBasis(encoding, stored_config(contents, contents.header.get("config")), tuple(terms))


def stored_config(contents: Contents, raw: Any) -> Config:
    try:
        return parse_config(raw, contents.path)
    except ConfigError as error:
        raise contents.error(f"its configuration cannot be read ({error})") from None
