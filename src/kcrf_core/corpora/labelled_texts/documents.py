"""Labelled texts become columns: readers of XML, JSON and others give documents, a rule makes tokens of them.

A `Document` is a text with spans, or with the labels of its tokens, and becomes a sequence. Its tokens are matches of
an expression, by default runs of other characters than white space. A span takes every token that it touches, and of
spans that overlap the longest counts. A token that several spans touch is cut where the next of them begins.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from ...errors import DataError
from ...system import PAUSE, Pause, Remark, counted
from .. import lines
from ..layout import IOB2, NAMES, TOKEN_RULES, UNLABELLED, Layout
from ..lines import Block

OUTSIDE = "O"  # the label of tokens outside of all spans
LARGEST_DOCUMENT = 1 << 26  # bytes: a file of another kind must not fill the memory before an error

# Characters that would end a value or a row of columns; U+FFFD takes their place there.
_BREAKS = re.compile(r"[\0\t\r\n]")
_MARKUP = re.compile(r'\s*(<\?xml|<\w[^<>]*>\s*(<|$)|\[?\s*\{\s*"|[\[{]\s*$)')  # a first line of XML or JSON

Chunks = Iterable[bytes | Pause]


class Span(NamedTuple):
    """Characters begin:end of a text with the name of their label."""

    begin: int
    end: int
    label: str


@dataclass(frozen=True)
class Document:
    """A text that becomes a sequence."""

    text: str
    line: int  # of the file, where it begins
    spans: Sequence[Span] | None = None  # None: it is not labelled, or has labels of tokens
    places: Sequence[tuple[int, int]] | None = None  # characters of each token; None: a rule makes tokens
    labels: Sequence[str] | None = None  # of the tokens in `places`
    span_labels: str = IOB2  # unless a layout has it
    keys: Mapping[str, Any] = field(default_factory=dict)  # of its object in JSON, without those of text and labels
    empty: bool = False  # it has a list of labels without any, and does not say whether an annotator has seen it


EMPTY_LIST = "empty list"  # key of texts that are read as labelled and may not be
BY_RULE = "by rule"  # key of spans that reach into tokens which a rule made

# What readers find and do not use, or use by a rule; each with its singular and plural behind a number.
_FINDINGS = {
    "cut": ("span reaches into a token and takes all of it", "spans reach into a token and take all of it"),
    "shared": ("token is cut between two spans", "tokens are cut between two spans"),
    "nested": ("span inside another one is left out", "spans inside others are left out"),
    "overlapping": ("span that overlaps a longer one is left out", "spans that overlap longer ones are left out"),
    "empty": ("span without a token is left out", "spans without a token are left out"),
    EMPTY_LIST: (
        f"text with an empty list of labels is labelled, all {OUTSIDE}",
        f"texts with empty lists of labels are labelled, all {OUTSIDE}",
    ),
    "no tokens": ("text has no token by the rule for them", "texts have no token by the rule for them"),
    "outside": (f"token outside of all parts gets {OUTSIDE}", f"tokens outside of all parts get {OUTSIDE}"),
    "markup": ("element inside a part is ignored", "elements inside parts are ignored"),
    "pieces": ("discontinuous span is cut into its pieces", "discontinuous spans are cut into their pieces"),
    "lines": ("span is cut at line ends", "spans are cut at line ends"),
    "labels": ("span keeps the first of several labels", "spans keep the first of several labels"),
    "either": (
        "text whose spans fit offsets in characters and in UTF-16 is read in characters",
        "texts whose spans fit offsets in characters and in UTF-16 are read in characters",
    ),
    "prefixed": (
        "span has a label with B- or I-, before which another one is put",
        "spans have labels with B- or I-, before which another one is put",
    ),
    "bare": ("region without a label is left out", "regions without a label are left out"),
    "others": ("relation, attribute or note is ignored", "relations, attributes and notes are ignored"),
    "annotations": ("further annotation of a text is ignored", "further annotations of texts are ignored"),
    "files": ("file of another kind is not read", "files of other kinds are not read"),
    "as text": ("file begins as XML or JSON, and its markup is labelled: leave out 'text'",) * 2,
    "rejected": ("text that was rejected or skipped is left out", "texts that were rejected or skipped are left out"),
}


class Findings(Counter[str]):
    """Counts of what was left out or resolved by a rule, by the keys above."""

    def remarks(self, name: str, layout: Layout) -> tuple[str, ...]:
        """Return one line that lists the counts of a file, if there are any."""
        found = [counted(self[key], *words) for key, words in _FINDINGS.items() if self[key]]
        white_space = layout.tokens in (None, "whitespace")
        about = {
            "tokens words": white_space and self[BY_RULE],  # which takes punctuation apart
            "tokens": self["no tokens"] or (not white_space and self[BY_RULE]),
            "empty_labels": self[EMPTY_LIST],
            "text": self["as text"],
        }
        settings = [setting for setting, count in about.items() if count]
        return (Remark(f"warning: {name}: {'; '.join(found)}", settings),) if found else ()


@dataclass(frozen=True)
class DocumentReader:
    """A kind of file: how its documents are read, and the columns of their tokens."""

    read: Callable[[Chunks, str, Findings], Iterator[Document | Pause]]  # of chunks of bytes, and the name in messages
    row: Callable[[str], str] | None = None  # values of a token, with TABs between them; None: the token itself
    columns: tuple[str, ...] | None = ("word", "label")  # None: some are numbers, and columns have no names
    words: frozenset[int] = frozenset()  # columns of words among those without names
    labelled: bool = True  # else labels are left out
    label_keys: tuple[str, ...] = ()  # of JSON, those that labels are looked for in


@dataclass(frozen=True)
class DocumentBlock(Block):
    """A block of rows that documents became, with the text of each and the places of its tokens."""

    documents: tuple[tuple[str, Sequence[tuple[int, int]]], ...] = ()
    labelled: bool = False  # all of its documents have labels; else none of them has any
    span_labels: str | None = None  # the kind of labels of the first spans of the file; None: no spans
    keys: tuple[Mapping[str, Any], ...] = ()  # of each document


@cache
def token_expression(rule: str | None) -> re.Pattern[str]:
    """Return the expression that tokens match: that of a rule, or the one that is given."""
    if rule == "words":  # marks that follow letters belong to words, and so `\\w` is not enough
        every = (chr(code) for code in range(sys.maxunicode + 1))
        apart = "".join(re.escape(mark) for mark in every if unicodedata.category(mark)[0] in "PS")
        return re.compile(rf"[^\s{apart}]+|\S")
    return re.compile(TOKEN_RULES.get(rule or "whitespace", rule or ""))


def tokens(text: str, rule: str | None) -> list[tuple[int, int]]:
    """Return the places of the tokens of a text."""
    return [found.span() for found in token_expression(rule).finditer(text) if found.group().strip()]


def joined(words: Sequence[str], mark: str) -> tuple[str, list[tuple[int, int]]]:
    """Return a text of words with a mark of one character between them, and their places."""
    ends = list(accumulate(words, lambda end, word: end + 1 + len(word), initial=-1))[1:]
    return mark.join(words), [(end - len(word), end) for end, word in zip(ends, words, strict=True)]


def labelled_tokens(
    document: Document, layout: Layout, findings: Findings
) -> tuple[Sequence[tuple[int, int]], Sequence[str] | None]:
    """Return the places of tokens and their labels, None if the document has none."""
    places = tokens(document.text, layout.tokens) if document.places is None else document.places
    if document.labels is not None or document.spans is None:
        return places, document.labels
    spans, pieces = _chosen(document.spans, findings), list[tuple[int, int]]()
    owners = list[int]()  # of each piece, the number of its span, -1 without one
    cut, first = set[int](), 0
    for begin, end in places:
        while first < len(spans) and spans[first].end <= begin:
            first += 1
        last = first  # spans first:last touch the token
        while last < len(spans) and spans[last].begin < end:
            last += 1
        if last == first or (last == first + 1 and spans[first].begin <= begin and end <= spans[first].end):
            pieces.append((begin, end))
            owners.append(first if first < last else -1)
            continue
        borders = [*pairwise([begin, *(span.begin for span in spans[first + 1 : last]), end])]
        pieces += borders
        owners += range(first, last)
        findings["shared"] += last - first - 1
        cut.update(n for n, (a, b) in enumerate(borders, first) if a < spans[n].begin or spans[n].end < b)
    findings["cut"] += len(cut)
    findings[BY_RULE] += len(cut) if document.places is None else 0
    findings["empty"] += len(spans) - len(set(owners) - {-1})
    names = [OUTSIDE if owner < 0 else spans[owner].label for owner in owners]
    if (layout.span_labels or document.span_labels) == NAMES:
        findings["outside"] += owners.count(-1)
        return pieces, names
    findings["prefixed"] += sum(span.label.startswith(("B-", "I-")) for span in spans)
    before = [-1, *owners]
    marks = ("" if owner < 0 else "I-" if owner == last else "B-" for last, owner in zip(before, owners, strict=False))
    return pieces, [mark + name for mark, name in zip(marks, names, strict=True)]


def _chosen(spans: Sequence[Span], findings: Findings) -> list[Span]:
    """Return spans in order that do not overlap: of those that do, the longest, and of equal ones the first."""
    if all(one.end <= other.begin for one, other in pairwise(spans)):
        return list(spans)
    kept: list[Span] = []
    for span in sorted(spans, key=lambda span: span.begin - span.end):  # stable
        at = bisect_right(kept, span.begin, key=lambda one: one.begin)
        near = kept[max(at - 1, 0) : at + 1]
        if any(one.begin <= span.begin and span.end <= one.end for one in near):
            findings["nested"] += 1
        elif any(one.begin < span.end and span.begin < one.end for one in near):
            findings["overlapping"] += 1
        else:
            insort(kept, span)
    return kept


def document_blocks(
    reader: DocumentReader, chunks: Chunks, name: str, layout: Layout
) -> Iterator[DocumentBlock | Pause]:
    """Yield rows of documents, in blocks as large as those of other files; the last one may have remarks alone.

    Documents with labels and those without are never in the same block.
    """
    rows, held, size = list[str](), list[Document](), 0
    first_line, with_labels, findings, known = 1, False, Findings(), set[str]()  # labels that were checked
    kind = None

    def block(remarks: tuple[str, ...] = ()) -> DocumentBlock:
        nonlocal first_line, size
        data = "".join(rows).encode()
        texts, keys = tuple((one.text, one.places or ()) for one in held), tuple(one.keys for one in held)
        out = DocumentBlock(first_line, data, None, remarks, texts, with_labels, kind, keys)
        first_line, size = first_line + len(rows), 0
        rows.clear()
        held.clear()
        return out

    for document in reader.read(chunks, name, findings):
        if document is PAUSE:
            if rows:
                yield block()
            yield PAUSE
            continue
        if not reader.labelled or (document.empty and layout.empty_labels == UNLABELLED):
            document = replace(document, spans=None, labels=None, empty=False)
        findings[EMPTY_LIST] += document.empty and bool(document.text.strip())
        if not all(span.label.strip() for span in document.spans or ()):
            raise DataError("a span with an empty label", name, document.line)
        places, labels = labelled_tokens(document, layout, findings)
        findings["no tokens"] += not places and bool(document.text.strip())
        if places and with_labels != (labels is not None):
            if any(one.places for one in held):
                yield block()
            with_labels = labels is not None
        if document.spans is not None:
            kind = kind or layout.span_labels or document.span_labels
        text, row = document.text, reader.row or _word
        for label in set(labels or ()) - known:
            if not label.strip() or _BREAKS.search(label):
                raise DataError(f"a label without a name, or with a TAB or line end: {label!r}", name, document.line)
            known.add(label)
        ends = ("\n" for _ in places) if labels is None else (f"\t{label}\n" for label in labels)
        rows += [row(text[begin:end]) + label for (begin, end), label in zip(places, ends, strict=True)]
        rows.append("\n")
        size += len(text)
        held.append(replace(document, places=places))
        if size >= lines.READ_SIZE:
            yield block()
    if rows or findings.total():
        yield block(findings.remarks(name, layout))


def _word(token: str) -> str:
    return _BREAKS.sub("\ufffd", token)


def text_lines(chunks: Chunks, name: str) -> Iterator[tuple[int, str] | Pause]:
    """Yield the lines of a file with their numbers from 1, without line ends and byte order mark."""
    for block in lines.blocks_and_pauses(chunks, name, sequence_per_line=True):
        if block is PAUSE:
            yield PAUSE
        else:
            yield from enumerate(lines.checked(block, name, lone_returns=True).content(), block.first_line)


def read_text(chunks: Chunks, name: str, findings: Findings) -> Iterator[Document | Pause]:
    """Yield each line of a text as a document without labels."""
    for item in text_lines(chunks, name):
        findings["as text"] += item is not PAUSE and item[0] == 1 and bool(_MARKUP.match(item[1]))
        yield PAUSE if item is PAUSE else Document(item[1], item[0])


TEXT = DocumentReader(read_text)
