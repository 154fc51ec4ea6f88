"""Kinds of labelled texts, recognised by the first bytes of a file."""

from __future__ import annotations

import re

from ...errors import DataError
from ..lines import mark_length
from .annotated_files import ANN_LINE, TTX_LINE, TTX_LINES
from .documents import DocumentReader
from .json_files import JSON_ARRAY, JSON_LINES
from .xml_files import XML

ENOUGH = 4096  # bytes that decide, where a line is longer

_XML = re.compile(rb"<(\?xml|!DOCTYPE|!--|[A-Za-z_][^<>\t]*>\s*<[A-Za-z_/!])")
_LINES = re.compile(rb'\{\s*"[^"]*"\s*:')
_ARRAY = re.compile(rb'\[\s*(\{\s*"[^"]*"\s*:|\]\s*\Z)')
# Beginnings of them, in a file whose first bytes alone have come.
_OPEN = re.compile(rb'<[^<>\t\n]*(>\s*)?|(\[\s*)?(\{\s*("[^"]*("\s*)?)?)?|\[\s*\]\s*')
# Files that are no columns, by their names.
SUFFIXES = (".xml", ".json", ".jsonl")


def named_as_text(name: str) -> bool:
    """Return True if the name of a file says that it is XML or JSON."""
    return name.lower().removesuffix(".gz").endswith(SUFFIXES)


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
