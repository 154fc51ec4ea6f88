"""Kinds of labelled texts, recognised by the first bytes of a file, and folders of them."""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterator
from dataclasses import replace
from itertools import chain

from ...errors import DataError
from ...files import text_ending
from ...system import PAUSE, Pause
from ..lines import chunks_and_pauses, mark_length, opened
from .annotated_files import ANN, ANN_LINE, TTX_LINE, TTX_LINES, TXT, begins_as_brat, beside, read_brat
from .documents import Chunks, Document, DocumentReader, Findings
from .json_files import JSON_ARRAY, JSON_LINES
from .xml_files import XML

ENOUGH = 4096  # bytes that decide, where a line is longer

_XML = re.compile(rb"<(\?xml|!DOCTYPE|!--|[A-Za-z_][^<>\t]*>\s*<[A-Za-z_/!])")
_LINES = re.compile(rb'\{\s*"[^"]*"\s*:')
_ARRAY = re.compile(rb'\[\s*(\{\s*"[^"]*"\s*:|\]\s*\Z)')
# Beginnings of them, in a file whose first bytes alone have come.
_OPEN = re.compile(rb'<[^<>\t\n]*(>\s*)?|(\[\s*)?(\{\s*("[^"]*("\s*)?)?)?|\[\s*\]\s*')
_BY_NAME = (".xml", ".json", ".jsonl")  # endings of files that are no columns


def named_as_text(name: str) -> bool:
    """Return True if the name of a file says that it is XML or JSON."""
    return text_ending(name) in _BY_NAME


def recognised(begin: bytes, complete: bool, name: str) -> tuple[bool, DocumentReader | None]:
    """Return True with the reader of a file that begins so, None for columns; False if more bytes are needed."""
    begin = begin[mark_length(begin) :].lstrip()
    if b"\n" not in begin and len(begin) < ENOUGH and not complete:
        return False, None  # a line that is not whole
    if begin[:1] in (b"<", b"{", b"["):
        for expression, reader in ((_XML, XML), (_LINES, JSON_LINES), (_ARRAY, JSON_ARRAY)):
            if expression.match(begin):
                return True, reader
        if not complete and len(begin) < ENOUGH and _OPEN.fullmatch(begin):
            return False, None
    if named_as_text(name) and begin:
        raise DataError("neither XML with sequences nor JSON with objects, though its name says so", name)
    line = begin.partition(b"\n")[0].removesuffix(b"\r").decode(errors="replace")
    if ANN_LINE.fullmatch(line):
        raise DataError("annotations of brat without the text beside them: give FILE.ann, beside FILE.txt", name)
    found = TTX_LINE.fullmatch(line)
    return True, TTX_LINES if found and found.group(1) else None


def kind_of(chunks: Chunks, name: str) -> Generator[Pause, None, tuple[DocumentReader | None, Chunks]]:
    """Read until the kind of a file is known; return its reader, None for columns, and all of its chunks."""
    chunks, begin, decided, kind = iter(chunks), b"", False, None
    while not decided:
        chunk = next(chunks, b"")
        if chunk is PAUSE:
            yield PAUSE
            continue
        begin += chunk
        decided, kind = recognised(begin, not chunk, name)
    return kind, chain([begin] if begin else [], chunks)


def reader_of_files(path: str | os.PathLike[str]) -> DocumentReader | None:
    """Return a reader of a folder of texts, or of a text and annotations of brat beside it; None for other files."""
    path = os.fspath(path)
    if os.path.isdir(path):
        return _folder_reader(path)
    stem, ending = os.path.splitext(path.removesuffix(".gz"))
    annotations = beside(stem, ANN)
    if ending == ANN or (ending == TXT and os.path.isfile(annotations) and begins_as_brat(annotations)):
        return DocumentReader(lambda _chunks, _name, findings: read_brat(stem, findings))
    return None


def _folder_reader(path: str) -> DocumentReader | None:
    """Return a reader of the files of a folder, which are of one kind, in the order of their names."""
    names = sorted(name for name in os.listdir(path) if not name.startswith(".") and not name.endswith(".conf"))
    kinds = {text_ending(name) for name in names} - {""}
    if len(kinds) > 1 and kinds != {".json", ".jsonl"}:
        raise DataError(f"files of several kinds ({', '.join(sorted(kinds))}): give a folder for each kind", path)
    taken = [os.path.join(path, name) for name in names if text_ending(name)]
    if ANN in kinds:
        taken = [os.path.join(path, name) for name in names if name.removesuffix(".gz").endswith((ANN, TXT))]

    def read(_chunks: Chunks, _name: str, findings: Findings) -> Iterator[Document | Pause]:
        findings["files"] += len(names) - len(taken)
        if ANN in kinds:
            for stem in dict.fromkeys(os.path.splitext(file.removesuffix(".gz"))[0] for file in taken):
                yield from read_brat(stem, findings)
            return
        for file in taken:
            with opened(file) as stream:
                kind, chunks = yield from kind_of(chunks_and_pauses(stream), file)
                kind = TTX_LINES if ".ttx" in kinds else kind
                if kind is not None:  # else the file is empty
                    yield from kind.read(chunks, file, findings)

    like = {".ttx": TTX_LINES, ".xml": XML, ANN: XML}.get(min(kinds, default=""), JSON_LINES)
    return replace(like, read=read) if kinds else None
