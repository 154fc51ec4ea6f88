"""Texts with a label for each line (.ttx, AnyStyle's finder), and texts with annotations beside them (.ann, brat).

Both have one file for each text. In a .ttx file a line is a position, and the file a sequence:
`title         | How Does Politics`. A line without a label has that of the line above. Columns of a line are its first
two words, the last one, and numbers: indentation, words, shares of digits, capitals and punctuation.

Of brat's files each line of the text is a sequence; spans that cross line ends are cut there.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise

from ...errors import DataError
from ...system import PAUSE, Pause
from .. import lines
from ..lines import BYTE_ORDER_MARK, opened
from .documents import Chunks, Document, DocumentReader, Findings, Span, joined, text_lines

TTX_LINE = re.compile(r"(?=([\w-]*) *\|)[^|]{14,}\| ?(.*)")
# Python refuses to read numbers of thousands of digits.
ANN_LINE = re.compile(r"T\d+\t(\S+) (\d{1,18} \d{1,18}(?:;\d{1,18} \d{1,18})*)\t(.*)")
ANN, TXT = ".ann", ".txt"
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


def begins_as_brat(path: str) -> bool:
    """Return True if a file begins with an annotation of brat, or is empty."""
    with opened(path) as stream:
        first = stream.read1(lines.READ_SIZE).decode(errors="replace").partition("\n")[0]
    return not first or bool(ANN_LINE.fullmatch(first)) or _is_other(first)


def beside(stem: str, ending: str) -> str:
    """Return the name of a file of brat, compressed if it is there only so."""
    packed = f"{stem}{ending}.gz"
    return packed if os.path.exists(packed) and not os.path.exists(stem + ending) else stem + ending


def _is_other(line: str) -> bool:
    return line.startswith(_OTHERS) and "\t" in line


def read_brat(stem: str, findings: Findings) -> Iterator[Document]:
    """Yield the lines of a text with the spans of the annotations beside it; without these they have no labels."""
    path, text_path = beside(stem, ANN), beside(stem, TXT)
    if not os.path.exists(text_path):
        raise DataError(f"there is no {text_path}, the text that belongs to it", path)
    annotations = _decoded(path) if os.path.exists(path) else None
    empty = annotations is not None and not annotations.removeprefix(BYTE_ORDER_MARK).strip()
    # Offsets count line ends, and a byte order mark as a character.
    text = _decoded(text_path)
    text = f" {text[1:]}" if text.startswith(BYTE_ORDER_MARK) else text
    starts = [0, *(found.end() for found in re.finditer("\n", text)), len(text) + 1]
    spans: list[list[Span]] = [[] for _ in starts[1:]]  # of each line
    for number, line in enumerate((annotations or "").removeprefix(BYTE_ORDER_MARK).split("\n"), 1):
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
            message = f"the text is {said!r}, and at {places} of {text_path} there is {there!r}"
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
            own = None if annotations is None else spans[number]
            yield Document(text[start : after - 1].removesuffix("\r"), number + 1, own, empty=empty)


def _decoded(path: str) -> str:
    with opened(path) as stream:
        data = b"".join(chunk for chunk in lines.chunks_and_pauses(stream) if chunk is not PAUSE)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError("no UTF-8 text (convert the file, for example with iconv)", path, line) from None


TTX_LINES = DocumentReader(read_ttx, line_values, None, words=frozenset(range(3)))
