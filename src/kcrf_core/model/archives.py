"""Dataset files, which `featurize` writes for later commands.

They carry the encoding, so that a reader needs neither the original file nor its configuration.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..config import Config
from ..encoding import UNKNOWN, UNOBSERVED, Dataset, Encoding
from ..features import stored_config
from ..files import Contents, pack_sparse, read_container, write_container


def digest(dataset: Dataset) -> str:
    """SHA-256 of encoded data: equal for equal data under equal encodings, in the same shards where it has some."""
    if dataset.partitions is not None:
        return joined_digests(digest(dataset.span(*ends)) for ends in pairwise(dataset.partitions.tolist()))
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
    if dataset.partitions is not None:
        arrays["portions"] = dataset.partitions
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
    partitions = None
    if "portions" in contents.arrays:
        partitions = contents.array("portions", "int64", 1)
        fits = len(partitions) >= 2 and partitions[0] == 0 and partitions[-1] == len(offsets) - 1
        if not fits or np.any(np.diff(partitions) <= 0):
            raise contents.error("'portions' do not fit its sequences")
    return Dataset(offsets, lines, labels, weights, codes, real, bag, bag_unseen, contents.path, partitions=partitions)
