"""A journal of finished work: results under keys of all that they depend on, one line of JSON for each.

A line is on the disk before its result counts as kept. Lines that are cut off, by a crash or a full disk, or altered
are ignored, so that their work is done again; results under other keys stay. Journals can be concatenated.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from typing import IO, Any

from .._version import __version__
from ..corpora import Corpus
from ..errors import FileFormatError
from ..files import content_digest, naming

FORMAT = 1


class Journal:
    """Results kept in a file, which exists from the first of them on; several runs may add to it."""

    def __init__(self, path: str, command: str = "crossval"):
        self.path = path
        self._command = f"kcrf {command}"  # the command that makes the results
        self._header = {"kind": f"{self._command} journal", "format": FORMAT}
        self.begun = False  # there is a file
        self.damaged = 0  # lines that cannot be read
        self._found: dict[str, dict[str, Any]] = {}
        self._open_line = False  # the file ends in the middle of a line
        with contextlib.suppress(FileNotFoundError), open(path, "rb") as stream:
            self._read(stream.read())
            self.begun = True

    def __len__(self) -> int:
        return len(self._found)

    def get(self, key: str) -> dict[str, Any] | None:
        return self._found.get(key)

    def add(self, key: str, about: dict[str, Any], result: dict[str, Any]) -> None:
        """Keep a result; `about` is for readers of the file."""
        entry = {"key": key, **about, "result": result, "check": digest_of(key, result)}
        line = "\n" * self._open_line + json.dumps(entry, ensure_ascii=False) + "\n"
        with naming(self.path), open(self.path, "ab", buffering=0) as stream:
            self.begun = self._open_line = True
            empty = not os.fstat(stream.fileno()).st_size
            try:
                _write(stream, (json.dumps({**self._header, "version": __version__}) + "\n") * empty + line)
            except BaseException:  # such as a full disk
                if empty:
                    self.remove()
                raise
            self._open_line = False
        self._found[key] = result

    def remove(self) -> None:
        if self.begun:
            with contextlib.suppress(FileNotFoundError):  # another run may have done so
                os.unlink(os.path.realpath(self.path))  # a link is the user's
            self.begun, self._open_line, self._found = False, False, {}

    def _read(self, data: bytes) -> None:
        lines = data.split(b"\n")
        try:
            header = json.loads(lines[0])
            if {key: header[key] for key in self._header} != self._header:
                raise ValueError
        except (ValueError, KeyError, TypeError, RecursionError):
            raise FileFormatError(
                f"{self.path}: not a journal that this version of {self._command} writes: remove it, or name another"
            ) from None
        self._open_line = lines[-1] != b""
        for line in lines[1:]:
            if not line:
                continue
            try:
                entry = json.loads(line)
                if self._header.items() <= entry.items():  # of another journal, that was appended
                    continue
                key, result = entry["key"], entry["result"]
                if not isinstance(key, str) or entry["check"] != digest_of(key, result):
                    raise ValueError
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                self.damaged += 1
            else:
                self._found[key] = result


def _write(stream: IO[bytes], text: str) -> None:
    """Write all of a text to the disk."""
    rest = memoryview(text.encode())
    while rest:
        rest = rest[stream.write(rest) :]
    os.fsync(stream.fileno())


def digest_of(*values: Any) -> str:
    """Return the SHA-256 of plain values."""
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()


def corpus_digest(corpus: Corpus) -> str:
    """Return the SHA-256 of the contents of a corpus and of the names of its columns, whatever its source."""
    found = corpus.attributes
    texts = {
        "columns": [digest_of(list(column)) for column in corpus.columns],
        "names": [corpus.header, corpus.names],
        "attributes": None if found is None else digest_of(list(found.names)),
        "tables": [table.digest for table in corpus.tables.values()],
    }
    arrays = {f"vectors {name}": array for name, array in corpus.vectors.items()} | {"offsets": corpus.offsets}
    if corpus.weights is not None:
        arrays["weights"] = corpus.weights
    if found is not None:
        arrays |= {"indptr": found.indptr, "values": found.values}
    return content_digest(texts, arrays)
