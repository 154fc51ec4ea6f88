"""Read a corpus in any text format, whole or block by block."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext

from . import conll, crfsuite
from .compression import without_suffix
from .corpus import Corpus, concatenate
from .errors import ConfigError, DataError
from .lines import ParsedBlock, blocks, display_name, open_input

PARSERS = {"conll": conll.parse_blocks, "crfsuite": crfsuite.parse_blocks}

FORMATS = tuple(PARSERS)


def guess_format(path: str | os.PathLike[str]) -> str:
    """The format that the name of a file suggests."""
    name = without_suffix(os.fspath(path))
    return "crfsuite" if name.endswith(".crfsuite") else "conll"


def stream_corpus(path: str | os.PathLike[str], format: str | None = None) -> Iterator[ParsedBlock]:
    """The blocks of a file, each as soon as it is there; together they hold all of its lines."""
    format = guess_format(path) if format is None else format
    if format not in PARSERS:
        raise ConfigError(f"unknown format {format!r} (there are {', '.join(FORMATS)})")
    name = display_name(path)
    stream = open_input(path)
    with nullcontext() if os.fspath(path) == "-" else stream:
        yield from PARSERS[format](blocks(stream, name), name)


def read_corpus(path: str | os.PathLike[str], format: str | None = None) -> Corpus:
    """The sequences of a whole file; there is at least one."""
    parts = []
    lines = 0
    for parsed in stream_corpus(path, format):
        lines += parsed.block.line_count
        if parsed.corpus.positions:
            parts.append(parsed.corpus)
    if not parts:
        reason = "only blank lines" if lines else "the file is empty"
        raise DataError(f"no data: {reason}", display_name(path))
    return concatenate(parts)
