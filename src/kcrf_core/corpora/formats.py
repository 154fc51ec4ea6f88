"""Read a corpus in any text format, whole or block by block."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import nullcontext

from ..errors import ConfigError, DataError
from ..system import without_suffix
from . import conll, conllu, crfsuite
from .corpus import Corpus, concatenate
from .lines import ParsedBlock, blocks, display_name, open_input

PARSERS = {"conll": conll.parse_blocks, "conllu": conllu.parse_blocks, "crfsuite": crfsuite.parse_blocks}

FORMATS = tuple(PARSERS)


def guess_format(path: str | os.PathLike[str]) -> str:
    """The format that the name of a file suggests."""
    name = without_suffix(os.fspath(path))
    return next((format for format in ("crfsuite", "conllu") if name.endswith(f".{format}")), "conll")


def stream_corpus(
    path: str | os.PathLike[str], format: str | None = None, columns: Sequence[str] | None = None
) -> Iterator[ParsedBlock]:
    """The blocks of a file, each as soon as it is there; together they hold all of its lines.

    `columns` are those to take of a CoNLL-U file, the label's last. Other files have those that they have.
    """
    format = guess_format(path) if format is None else format
    if format not in PARSERS:
        raise ConfigError(f"unknown format {format!r} (there are {', '.join(FORMATS)})")
    name = display_name(path)
    stream = open_input(path)
    with nullcontext() if os.fspath(path) == "-" else stream:
        chosen = (columns,) if format == "conllu" and columns is not None else ()
        yield from PARSERS[format](blocks(stream, name), name, *chosen)


def read_corpus(
    path: str | os.PathLike[str], format: str | None = None, columns: Sequence[str] | None = None
) -> Corpus:
    """The sequences of a whole file; there is at least one. The format is told by the name unless it is given.

    >>> from kcrf_core import read_corpus
    >>> corpus = read_corpus("sample_data/pitch_accent.conll")
    >>> corpus.sequences, corpus.positions, corpus.width
    (500, 5652, 6)
    """
    parts = []
    lines = said = 0
    for parsed in stream_corpus(path, format, columns):
        lines += parsed.block.line_count
        said += bool(parsed.block.data.removeprefix(b"\xef\xbb\xbf").strip(b" \r\n"))
        if parsed.corpus.positions:
            parts.append(parsed.corpus)
    if not parts:
        reason = "only comments" if said else "only blank lines" if lines else "the file is empty"
        raise DataError(f"no data: {reason}", display_name(path))
    return concatenate(parts)
