"""Kinds of input files, recognised without NumPy, which help does not wait for."""

from __future__ import annotations

import os
from collections.abc import Collection

from ..errors import ConfigError, FileFormatError

INDEX = "index.npz"  # of a folder of shards
TEXT_ENDINGS = (".ann", ".ttx", ".xml", ".json", ".jsonl")  # of labelled texts, of which a folder is a corpus


def text_ending(name: str) -> str:
    """Return the ending of a name that tells a labelled text, which may be compressed; an empty string without one."""
    ending = os.path.splitext(name.lower().removesuffix(".gz"))[1]
    return ending if ending in TEXT_ENDINGS else ""


def is_archive(path: str) -> bool:
    """Return True if a path names one of our `.npz` files rather than text."""
    if path == "-" or (os.path.exists(path) and not os.path.isfile(path)):
        return False  # bytes read from a pipe are gone
    with open(path, "rb") as stream:
        return stream.read(4) == b"PK\x03\x04"


def is_folder(path: str) -> bool:
    """Return True if a path names a folder of shards, False if it has texts; another directory is an error."""
    if path == "-" or not os.path.isdir(path):
        return False
    if not os.path.exists(os.path.join(path, INDEX)):
        if any(map(text_ending, os.listdir(path))):
            return False
        raise FileFormatError(
            f"{path}: a directory without {INDEX}, so it is no complete folder of shards, and without labelled texts "
            f"({', '.join(TEXT_ENDINGS)}): give a file, or featurize the data again"
        )
    return True


def is_encoded(path: str) -> bool:
    """Return True if a path names data that is encoded already."""
    return is_folder(path) or is_archive(path)


def refuse_vectors(path: str, vectors: Collection[object]) -> None:
    """Raise an error if vectors are given beside data that is encoded already."""
    if vectors:
        raise ConfigError(
            f"{path} is encoded already, and holds its vectors: leave out 'vectors'", settings=["vectors"]
        )
