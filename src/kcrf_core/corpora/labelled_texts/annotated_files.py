"""Texts with a label for each line (.ttx, AnyStyle's finder), and texts with annotations beside them (.ann, brat).

Both have one file for each text, and a folder stands for all of its files. In a .ttx file a line is a position, and the
file a sequence: `title         | How Does Politics`. A line without a label has that of the line above. Columns of a
line are its first two words, the last one, and numbers: indentation, words, shares of digits, capitals and punctuation.

Of brat's files each line of the text is a sequence; spans that cross line ends are cut there.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from ...errors import DataError
from ...files import TEXT_ENDINGS
from ...system import PAUSE, Pause
from ..lines import BYTE_ORDER_MARK
from .documents import Chunks, Document, DocumentReader, Findings, Span, joined, text_lines

TTX_LINE = re.compile(r"(?=([\w-]*) *\|)[^|]{14,}\| ?(.*)")
ANN_LINE = re.compile(r"T\d+\t(\S+) (\d+ \d+(?:;\d+ \d+)*)\t(.*)")
ANN = ".ann"
_OTHERS = tuple("REAMN#*")  # relations, equivalences, events, attributes, modifications, normalisations, notes
_SPACE = re.compile(r"\s+")


def read_ttx(chunks: Chunks, name: str, findings: Findings) -> Iterator[Document | Pause]:
    """Yield the lines of a file as one document."""
    texts, labels = list[str](), list[str]()
    for item in text_lines(chunks, name):
        if item is PAUSE:
            yield PAUSE
            continue
        line, text = item
        found = TTX_LINE.fullmatch(text)
        if found is None or not (found.group(1) or labels):
            raise DataError("expected a label, '|' and the text of a line", name, line)
        texts.append(found.group(2))
        labels.append(found.group(1) or labels[-1])
    whole, places = joined(texts, "\n")
    yield Document(whole, 1, None, places, labels)


def line_values(line: str) -> str:
    """Return the values of a line, with TABs between them."""
    text = line.strip()
    words, size = text.split(), max(len(text), 1)
    first, second, last = (words[0], words[1] if len(words) > 1 else "", words[-1]) if words else ("", "", "")
    counts = (
        sum(map(str.isdigit, text)),
        sum(map(str.isupper, text)),
        sum(not character.isalnum() and not character.isspace() for character in text),
    )
    shares = "\t".join(f"{count / size:.2f}" for count in counts)
    return f"{first}\t{second}\t{last}\t{len(line) - len(line.lstrip())}\t{len(words)}\t{shares}"


def annotated_reader(path: str | os.PathLike[str]) -> DocumentReader | None:
    """Return a reader of a folder, of a .ann file, or of the one beside a text; None for other files."""
    path, paths = os.fspath(path), list[str]()
    stem, ending = os.path.splitext(path)
    if os.path.isdir(path):
        names = sorted(os.listdir(path))
        kinds = [[os.path.join(path, name) for name in names if name.endswith(kind)] for kind in TEXT_ENDINGS]
        paths = next(filter(None, kinds), [])
    elif ending == ANN or (ending == ".txt" and os.path.isfile(stem + ANN) and _begins_as_brat(stem + ANN)):
        paths = [stem + ANN]

    def read(_chunks: Chunks, _name: str, findings: Findings) -> Iterator[Document | Pause]:
        return _of_each(paths, findings)

    if not paths:
        return None
    return DocumentReader(read) if paths[0].endswith(ANN) else replace(TTX_LINES, read=read)


def _of_each(paths: Sequence[str], findings: Findings) -> Iterator[Document | Pause]:
    for path in paths:
        if path.endswith(ANN):
            yield from _read_brat(path, findings)
        else:
            with open(path, "rb") as stream:
                yield from read_ttx([stream.read()], path, findings)


def _begins_as_brat(path: str) -> bool:
    with open(path, encoding="utf-8", errors="replace") as stream:
        first = stream.readline()
    return not first or bool(ANN_LINE.fullmatch(first.rstrip("\n"))) or _is_other(first)


def _is_other(line: str) -> bool:
    return line.startswith(_OTHERS) and "\t" in line


def _read_brat(path: str, findings: Findings) -> Iterator[Document]:
    """Yield the lines of a text with the spans of the annotations beside it."""
    beside = os.path.splitext(path)[0] + ".txt"
    if not os.path.exists(beside):
        raise DataError(f"there is no {beside}, the text that belongs to it", path)
    # Offsets count line ends, and a byte order mark as a character.
    text = _decoded(beside)
    text = f" {text[1:]}" if text.startswith(BYTE_ORDER_MARK) else text
    starts = [0, *(found.end() for found in re.finditer("\n", text)), len(text) + 1]
    spans: list[list[Span]] = [[] for _ in starts[1:]]  # of each line
    for number, line in enumerate(_decoded(path).removeprefix(BYTE_ORDER_MARK).split("\n"), 1):
        line = line.removesuffix("\r")
        if not line.strip() or _is_other(line):
            findings["others"] += bool(line.strip())
            continue
        found = ANN_LINE.fullmatch(line)
        if found is None:
            raise DataError("expected an annotation: T1, TAB, a name, offsets, TAB and the text", path, number)
        label, places, said = found.groups()
        pieces = [tuple(map(int, place.split())) for place in places.split(";")]
        if not all(0 <= begin < end <= len(text) for begin, end in pieces):
            raise DataError(f"offsets {places} in a text of {len(text):,} characters", path, number)
        there = " ".join(text[begin:end] for begin, end in pieces)
        if _SPACE.sub("", there) != _SPACE.sub("", said):
            message = f"the text is {said!r}, and at {places} of {beside} there is {there!r}"
            raise DataError(f"{message}: was the text changed?", path, number)
        findings["pieces"] += len(pieces) > 1
        crosses = False
        for begin, end in pieces:
            at = bisect_right(starts, begin) - 1
            while begin < end:
                border = min(end, starts[at + 1] - 1)
                if begin < border:
                    spans[at].append(Span(begin - starts[at], border - starts[at], label))
                crosses |= end > starts[at + 1]
                begin, at = starts[at + 1], at + 1
        findings["lines"] += crosses
    for number, (start, after) in enumerate(pairwise(starts)):
        if start < len(text):  # behind the last line end there is no line
            yield Document(text[start : after - 1].removesuffix("\r"), number + 1, spans[number])


def _decoded(path: str) -> str:
    with open(path, "rb") as stream:
        data = stream.read()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError("no UTF-8 text (convert the file, for example with iconv)", path, line) from None


TTX_LINES = DocumentReader(read_ttx, line_values, None)
