"""Dataset files, which `featurize` writes for later commands, and folders of shards, which need not fit into memory.

Both have the encoding, so that a reader needs neither the original file nor its configuration. A folder holds:

    index.npz         vocabularies, scaling and labels, once for all shards, and a digest of each; it is written last
    shard-0001.npz    encoded sequences, without the encoding; the others follow

Missing shards are found when a folder is opened, and digests are checked when a shard is first read.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ..chains import HALF_KNOWN
from ..config import Config
from ..corpora import spread_sequences
from ..encoding import UNKNOWN, UNOBSERVED, Amount, Dataset, Encoding, join_datasets, joined_hashes, joined_labels
from ..errors import FileFormatError
from ..features import stored_config
from ..files import (
    INDEX,
    Contents,
    ScratchFolder,
    file_digest,
    is_folder,
    naming,
    pack_sparse,
    read_container,
    temporary_beside,
    write_container,
)

COUNTS = ("sequences", "positions", "unobserved", "complete")
REMEDY = "restore it, or featurize the data again"


def digest(dataset: Dataset) -> str:
    """Return the SHA-256 of encoded data, equal for equal data in equal shards under equal encodings."""
    if dataset.partitions is not None:
        return joined_digests(digest(dataset.span(*ends)) for ends in pairwise(dataset.partitions.tolist()))
    total = hashlib.sha256()
    bag = [] if dataset.bag is None else pack_sparse(dataset.bag, "bag").values()
    labels, half_known = dataset.labels, dataset.half_known
    if labels is not None and half_known is not None:  # whatever the order of the table
        half_known = half_known[HALF_KNOWN - labels[labels <= HALF_KNOWN]]
        labels = np.maximum(labels, HALF_KNOWN)
    for array in (dataset.offsets, dataset.codes, dataset.real, labels, half_known, dataset.weights, *bag):
        if array is not None:
            total.update(repr((array.dtype.str, array.shape)).encode())
            total.update(np.ascontiguousarray(array).data)  # as bytes, without a copy of them
    return total.hexdigest()


def joined_digests(parts: Iterable[str]) -> str:
    """Return the digest of data whose shards have these."""
    return hashlib.sha256("".join(parts).encode()).hexdigest()


@dataclass(frozen=True)
class StoredDataset:
    """Contents of a dataset file."""

    encoding: Encoding
    dataset: Dataset
    config: Config


def dataset_arrays(dataset: Dataset) -> dict[str, np.ndarray]:
    """Return the arrays of a file of encoded data; `unpack_arrays` is the inverse."""
    found: dict[str, np.ndarray | None] = {
        name: getattr(dataset, name) for name in ("offsets", "lines", "codes", "real", "bag_unseen")
    }
    found |= {"gold": dataset.labels, "weights": dataset.weights}
    found |= {} if dataset.bag is None else pack_sparse(dataset.bag, "bag")
    found |= {"portions": dataset.partitions, "hashes": dataset.hashes, "half_known": dataset.half_known}
    return {name: array for name, array in found.items() if array is not None}


def save_dataset(path: str | os.PathLike[str], encoding: Encoding, dataset: Dataset, config: Config) -> None:
    header, arrays = encoding.pack()
    arrays |= dataset_arrays(dataset)
    header |= {"config": config.to_stored(), "digest": digest(dataset)}
    write_container(path, "dataset", header, arrays)


def load_dataset(path: str | os.PathLike[str]) -> StoredDataset:
    return unpack_dataset(read_container(path, "dataset"))


def unpack_dataset(contents: Contents) -> StoredDataset:
    encoding = Encoding.unpack(contents)
    dataset = unpack_arrays(contents, encoding)
    return StoredDataset(encoding, dataset, stored_config(contents, contents.header.get("config")))


def unpack_arrays(contents: Contents, encoding: Encoding) -> Dataset:
    """Return the encoded data of a file, checked against its encoding."""
    like = encoding.empty_dataset()
    lines, offsets = (contents.array(name, "int64", 1) for name in ("lines", "offsets"))
    N, S = len(lines), len(offsets) - 1
    if not N or not _are_borders(offsets, N):
        raise contents.error("its sequences do not fit its positions")
    codes, real = contents.array("codes", "int32", 2), contents.array("real", "float64", 2)
    if codes.shape != (N, like.codes.shape[1]) or real.shape != (N, like.real.shape[1]):
        raise contents.error("its columns do not fit its encoding")
    sizes = encoding.inputs(like, encoding.names).sizes
    if codes.size and (codes.min() < -2 or (codes >= sizes).any()):
        raise contents.error("'codes' are out of range")
    kinds = {"gold": "int32", "weights": "float64", "portions": "int64", "hashes": "uint64"}
    found = {name: contents.array(name, kind, 1) for name, kind in kinds.items() if name in contents.arrays}
    labels, weights, partitions, hashes = map(found.get, kinds)
    least, half_known = UNKNOWN if encoding.unobserved is None else UNOBSERVED, None
    if "half_known" in contents.arrays:
        half_known = contents.array("half_known", "float64", 2)
        least = HALF_KNOWN + 1 - len(half_known)
        weighed = half_known.min(initial=0) >= 0 and half_known.any(axis=1).all()
        if half_known.shape[1] != len(encoding.labels) or not weighed or encoding.half_known is None:
            raise contents.error("'half_known' does not fit its labels")
    if labels is not None and (len(labels) != N or labels.min() < least or labels.max() >= len(encoding.labels)):
        raise contents.error("'gold' does not fit its labels")
    if weights is not None and (len(weights) != S or np.any(weights < 0)):
        raise contents.error("'weights' do not fit its sequences")
    if partitions is not None and not _are_borders(partitions, S):
        raise contents.error("'portions' do not fit its sequences")
    if hashes is not None and len(hashes) != N:
        raise contents.error("'hashes' do not fit its positions")
    bag_unseen = contents.array("bag_unseen", "float64", 1)
    if len(bag_unseen) != N or np.any(bag_unseen < 0):
        raise contents.error("'bag_unseen' does not fit its positions")
    bag = None if like.bag is None else contents.sparse("bag", N, like.bag.shape[1])
    inputs = codes, real, bag, bag_unseen
    dataset = Dataset(offsets, lines, labels, weights, *inputs, contents.path, partitions=partitions, hashes=hashes)
    return replace(dataset, half_known=half_known)


def _are_borders(values: np.ndarray, end: int) -> bool:
    """Return True if values ascend from 0 to `end`."""
    return len(values) > 1 and values[0] == 0 and values[-1] == end and bool((np.diff(values) > 0).all())


@dataclass(frozen=True)
class StoredShard:
    """A shard by its file, a plain value that another process can load."""

    path: str
    number: int  # from 1
    count: int  # of all
    sequences: int
    positions: int
    size: int  # bytes of the file
    sha256: str

    def __str__(self) -> str:
        return f"{self.path}: shard {self.number} of {self.count}"

    def check_present(self) -> None:
        """Refuse a file that is not there, or not as long as it was."""
        try:
            size = os.path.getsize(self.path)
        except FileNotFoundError:
            raise FileFormatError(f"{self} is missing: put it back, or featurize the data again") from None
        if size != self.size:
            raise FileFormatError(f"{self} is damaged: {size:,} bytes, where {self.size:,} were written; {REMEDY}")

    def load(self, encoding: Encoding, check: bool = True) -> Dataset:
        """Return its data; the digest is checked unless a caller has done so."""
        self.check_present()
        if check and file_digest(self.path) != self.sha256:
            raise FileFormatError(f"{self} is damaged: it is not what was written (its digest differs); {REMEDY}")
        dataset = unpack_arrays(read_container(self.path, "shard"), encoding)
        if (dataset.sequences, dataset.positions) != (self.sequences, self.positions):
            raise FileFormatError(f"{self} is not the one in {INDEX}; {REMEDY}")
        return dataset


@dataclass(frozen=True)
class ShardFolder:
    """A folder of shards: their common contents, and the place of each."""

    path: str
    encoding: Encoding
    config: Config
    shards: tuple[StoredShard, ...]
    amount: Amount
    labelled: bool
    digest: str  # of the index, which has those of all shards
    data_digest: str  # of the encoded data, that of one file with the same shards

    @property
    def sequences(self) -> int:
        return self.amount.sequences

    @property
    def positions(self) -> int:
        return self.amount.positions

    def datasets(self) -> Iterator[Dataset]:
        """Yield all shards, one after another."""
        for shard in self.shards:
            yield shard.load(self.encoding)

    def sample(self, most: int) -> Dataset:
        """Return sequences with about `most` positions in all, evenly spread over the data, or all of it."""
        which, first, parts = spread_sequences(self.sequences, self.positions, most), 0, []
        for shard in self.shards:
            own = which[(which >= first) & (which < first + shard.sequences)] - first
            if len(own):
                parts.append(shard.load(self.encoding).subset(own))
            first += shard.sequences
        return replace(join_datasets(parts), source=self.path)

    def outline(self) -> Dataset:
        """Return all sequences with their labels and weights, without inputs; every shard is read and checked once."""
        lengths, lines, labelled, weights, hashes = [], [], [], [], []
        for dataset in self.datasets():
            lengths.append(np.diff(dataset.offsets))
            lines.append(dataset.lines)
            labelled.append((dataset.labels if self.labelled else None, dataset.half_known))
            weights.append(np.ones(dataset.sequences) if dataset.weights is None else dataset.weights)
            hashes.append(dataset.hashes)
        N, every = self.positions, np.concatenate(weights)
        nothing = np.zeros((N, 0))
        labels, half_known = joined_labels(labelled)
        return Dataset(
            offsets=np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64),
            lines=np.concatenate(lines),
            labels=labels,
            weights=None if (every == 1).all() else every,
            codes=nothing.astype(np.int32),
            real=nothing,
            bag=None,
            bag_unseen=np.broadcast_to(0.0, N),
            source=self.path,
            missing=self.amount.missing,
            partitions=np.cumsum([0, *(shard.sequences for shard in self.shards)], dtype=np.int64),
            hashes=joined_hashes(hashes),
            half_known=half_known,
        )


# Encodings of folders that are open in this process: partitions of them are made of paths alone.
_OPEN: WeakValueDictionary[str, Encoding] = WeakValueDictionary()


def encoding_of(path: str, digest: str) -> Encoding:
    """Return the encoding of the folder at a path with this digest, read if it is not open."""
    found = _OPEN.get(digest)
    if found is not None:
        return found
    folder = load_folder(path)
    if folder.digest != digest:
        raise FileFormatError(f"{path}: the folder has changed since training began")
    return folder.encoding


def load_folder(path: str | os.PathLike[str]) -> ShardFolder:
    """Open a folder of shards; an error names the first file that is missing or of another length."""
    shown = os.fspath(path)
    is_folder(shown)  # which refuses other directories
    index = os.path.join(shown, INDEX)
    contents = read_container(index, "shards")
    try:
        stated, shards = contents.get("shards", dict), []
        entries = stated["files"]
        for number, entry in enumerate(entries, 1):
            sequences, positions, size = (_count(entry[key]) for key in ("sequences", "positions", "bytes"))
            place = os.path.join(shown, _shard_name(number))
            shards.append(StoredShard(place, number, len(entries), sequences, positions, size, str(entry["sha256"])))
        missing = tuple((str(name), _count(number)) for name, number in stated["missing"])
        sequences, positions, unobserved, complete = (_count(stated[key]) for key in COUNTS)
        amount = Amount(sequences, positions, unobserved, complete, missing)
        sums = sum(shard.sequences for shard in shards), sum(shard.positions for shard in shards)
        if not shards or (sequences, positions) != sums or complete > sequences or unobserved > positions:
            raise ValueError
        if any(max(shard.sequences, shard.positions) > shard.size for shard in shards):  # more than the file can hold
            raise ValueError
        labelled, data = bool(stated["labelled"]), str(stated["data"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise contents.error(f"its list of shards is damaged; {REMEDY}") from None
    for shard in shards:
        shard.check_present()
    encoding, config = Encoding.unpack(contents), stored_config(contents, contents.header.get("config"))
    digest = file_digest(index)
    _OPEN[digest] = encoding
    return ShardFolder(shown, encoding, config, tuple(shards), amount, labelled, digest, data)


def _shard_name(number: int) -> str:
    return f"shard-{number:04d}.npz"


def _count(value: Any) -> int:
    """Return a whole number that is not negative, checked."""
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no count")
    return value


@contextlib.contextmanager
def new_folder(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield a folder to write to that takes the place of `path` when the block ends well, and is removed otherwise.

    An earlier folder of shards is replaced; any other that has something in it is refused.
    """
    target = os.path.realpath(os.fspath(path).rstrip(os.sep) or os.sep)
    check_replaceable(target)
    place = os.path.dirname(target)
    folder = None
    try:
        with naming(os.fspath(path), place):
            folder = ScratchFolder(place, 0o777)
        temporary = folder.path
        yield temporary
        with naming(os.fspath(path), temporary):
            if os.path.isdir(target):
                before = temporary_beside(target)
                os.rename(target, before)
                os.rename(temporary, target)
                shutil.rmtree(before, ignore_errors=True)
            else:
                os.rename(temporary, target)
    except BaseException:
        if folder is not None:
            folder.remove()
        raise


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Refuse a place where something stands that is no folder of shards."""
    if os.path.isfile(path):
        raise FileFormatError(f"{path} is a file, and shards are written to a folder: give another name")
    if os.path.isdir(path):
        own = re.compile(rf"{re.escape(INDEX)}|shard-.*\.npz", re.DOTALL)
        others = [name for name in sorted(os.listdir(path)) if not own.fullmatch(name)]
        if others:
            raise FileFormatError(f"{path} exists and has other files in it ({others[0]}): give another name")
        for kept in (os.fspath(path), *(os.path.join(path, name) for name in sorted(os.listdir(path)))):
            if not os.access(kept, os.W_OK):
                raise PermissionError(errno.EACCES, "is write-protected: give another name, or unprotect it", kept)


def save_shards(folder: str, encoding: Encoding, config: Config, shards: Iterable[Dataset]) -> None:
    """Write shards to an empty folder as they come, and the index when all are there."""
    entries, amount, labelled, digests = [], Amount(), True, []
    for number, dataset in enumerate(shards, 1):
        path = os.path.join(folder, _shard_name(number))
        write_container(path, "shard", {}, dataset_arrays(dataset))
        counts = {"sequences": dataset.sequences, "positions": dataset.positions}
        entries.append(counts | {"bytes": os.path.getsize(path), "sha256": file_digest(path)})
        labelled, amount = dataset.labels is not None, amount.plus(Amount.of(dataset))
        digests.append(digest(dataset))
    stated: dict[str, Any] = {key: getattr(amount, key) for key in COUNTS}
    stated |= {"missing": list(amount.missing), "labelled": labelled, "data": joined_digests(digests), "files": entries}
    header, arrays = encoding.pack()
    header |= {"config": config.to_stored(), "shards": stated}
    write_container(os.path.join(folder, INDEX), "shards", header, arrays)


def load_encoding(path: str | os.PathLike[str]) -> tuple[Encoding, dict[str, Any]]:
    """Return the encoding in a dataset, folder of shards, basis or model, and its raw configuration."""
    if os.path.isdir(path):
        folder = load_folder(path)
        return folder.encoding, folder.config.to_dict()
    contents = read_container(path, "dataset", "basis", "model")
    info = contents.header if contents.header["kind"] != "model" else contents.get("info", dict)
    config = info.get("config", {})
    stored_config(contents, config)
    return Encoding.unpack(contents), config
