"""A journal of finished work: results under keys that say what they are results of, one line of JSON for each.

A line is on the disk before its result counts as kept. Lines that are cut off, by a crash or a full disk, or altered
are left out, so that their work is done again; results under keys that nobody asks for are left alone.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from ._version import __version__
from .corpus import Corpus
from .errors import FileFormatError
from .storage import replacing

KIND = "kcrf crossval journal"
FORMAT = 1


class Journal:
    """Results kept in a file, which is there from the first of them on."""

    def __init__(self, path: str):
        self.path = path
        self.damaged = 0  # lines that cannot be read
        self._found: dict[str, dict[str, Any]] = {}
        self.begun = os.path.exists(path)  # there is a file
        self._open_line = False  # the file ends in the middle of a line
        if self.begun:
            self._read()

    def __len__(self) -> int:
        return len(self._found)

    def get(self, key: str) -> dict[str, Any] | None:
        return self._found.get(key)

    def add(self, key: str, about: dict[str, Any], result: dict[str, Any]) -> None:
        """Keep a result; `about` is for people who look into the file."""
        if not self.begun:
            header = json.dumps({"kind": KIND, "format": FORMAT, "version": __version__}) + "\n"
            with replacing(self.path) as stream:
                stream.write(header.encode())
            self.begun = True
        entry = {"key": key, **about, "result": result, "check": digest_of(key, result)}
        line = "\n" * self._open_line + json.dumps(entry, ensure_ascii=False) + "\n"
        try:
            with open(self.path, "ab") as stream:
                self._open_line = True
                stream.write(line.encode())
                stream.flush()
                os.fsync(stream.fileno())
                self._open_line = False
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.path) from None
        self._found[key] = result

    def remove(self) -> None:
        if self.begun:
            os.unlink(self.path)
            self.begun, self._found = False, {}

    def _read(self) -> None:
        with open(self.path, "rb") as stream:
            lines = stream.read().split(b"\n")
        try:
            header = json.loads(lines[0])
            if header["kind"] != KIND or header["format"] != FORMAT:
                raise ValueError
        except (ValueError, KeyError, TypeError, RecursionError):
            raise FileFormatError(
                f"{self.path}: not a journal that this version of kcrf crossval writes: remove it, or name another"
            ) from None
        self._open_line = lines[-1] != b""
        for line in lines[1:]:
            if not line:
                continue
            try:
                entry = json.loads(line)
                key, result = entry["key"], entry["result"]
                if entry["check"] != digest_of(key, result):
                    raise ValueError
            except (ValueError, KeyError, TypeError, RecursionError):
                self.damaged += 1
            else:
                self._found[key] = result


def digest_of(*values: Any) -> str:
    """SHA-256 of plain values."""
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()


def corpus_digest(corpus: Corpus) -> str:
    """SHA-256 of what a corpus says, wherever it was read from."""
    total = hashlib.sha256()

    def add(text: str) -> None:
        encoded = text.encode("utf-8", "surrogateescape")
        total.update(f"{len(encoded)} ".encode())
        total.update(encoded)

    for column in corpus.columns:
        add("\n".join(column))  # no value holds a line end
    for array in (corpus.offsets, corpus.weights):
        add("" if array is None else repr(array.tolist()))
    if corpus.attributes is not None:
        add("\n".join(corpus.attributes.names))
        add(repr(corpus.attributes.indptr.tolist()))
        add(repr(corpus.attributes.values.tolist()))
    return total.hexdigest()
