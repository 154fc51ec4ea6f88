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
from ..errors import ConfigError, FileFormatError
from ..files import content_digest, naming

FORMAT = 1


class Journal:
    """Results kept in a file, which exists from the first of them on and belongs to one run at a time."""

    def __init__(self, path: str, command: str = "crossval"):
        self.path = path
        self._command = f"kcrf {command}"  # the command that makes the results
        self._header = {"kind": f"{self._command} journal", "format": FORMAT}
        self.damaged = 0  # lines that cannot be read
        self._found: dict[str, dict[str, Any]] = {}
        self._open_line = False  # the file ends in the middle of a line
        self._stream: IO[bytes] | None = None
        with contextlib.suppress(FileNotFoundError):
            self._stream = self._locked(open(path, "r+b", buffering=0))  # noqa: SIM115, kept
        if self._stream is not None:
            try:
                self._read(self._stream)
            except BaseException:
                self.close()
                raise

    @property
    def begun(self) -> bool:
        """True if there is a file."""
        return self._stream is not None

    def close(self) -> None:
        """Release the file for other runs."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def __len__(self) -> int:
        return len(self._found)

    def get(self, key: str) -> dict[str, Any] | None:
        return self._found.get(key)

    def add(self, key: str, about: dict[str, Any], result: dict[str, Any]) -> None:
        """Keep a result; `about` is for readers of the file."""
        entry = {"key": key, **about, "result": result, "check": digest_of(key, result)}
        with naming(self.path):
            self._stream = self._stream or self._begin()
            line = "\n" * self._open_line + json.dumps(entry, ensure_ascii=False) + "\n"
            self._open_line = True
            self._stream.seek(0, os.SEEK_END)
            _write(self._stream, line)
            self._open_line = False
        self._found[key] = result

    def remove(self) -> None:
        if self.begun:
            os.unlink(os.path.realpath(self.path))  # a link is the user's
            self.close()
            self._found = {}

    def _begin(self) -> IO[bytes]:
        """Create the file with its header, unless another run has begun one meanwhile."""
        stream = self._locked(open(self.path, "a+b", buffering=0))  # noqa: SIM115, kept
        if os.fstat(stream.fileno()).st_size:
            stream.close()
            raise self._in_use()
        try:
            _write(stream, json.dumps({**self._header, "version": __version__}) + "\n")
        except BaseException:  # such as a full disk
            os.unlink(os.path.realpath(self.path))
            stream.close()
            raise
        return stream

    def _locked(self, stream: IO[bytes]) -> IO[bytes]:
        """Lock an open file and return it."""
        if not _lock(stream):
            stream.close()
            raise self._in_use()
        return stream

    def _in_use(self) -> ConfigError:
        return ConfigError(
            f"{self.path}: another run of {self._command} is using this journal: name another file",
            settings=["journal"],
        )

    def _read(self, stream: IO[bytes]) -> None:
        lines = stream.read().split(b"\n")
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


def _lock(stream: IO[bytes]) -> bool:
    """Lock a file; False if another process holds it. Systems without locks always give True."""
    try:
        import fcntl
    except ImportError:  # Windows
        return True
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # a file system without locks
    return True


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
