"""Labelled parts of texts, as `kcrf tag --to` writes them: XML as AnyStyle has it, or JSON lines with spans.

`kcrf_core.corpora` reads JSON with the same tokens and labels, and XML where tokens follow from its text.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from kcrf_core.corpora import IOB2, NAMES, OUTSIDE, PART, DocumentBlock, tokens
from kcrf_core.model import Decoded
from kcrf_core.scoring import SpanFinder, detect_scheme

from .tagged import Writer

_NAME = re.compile(r"(?!(?i:xml)|part$)[A-Za-z_][A-Za-z0-9_.-]*")
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

REVIEW = "review"  # key of the tokens to review
Places = Sequence[tuple[int, int]]  # of tokens
Part = tuple[int, int, str]  # begin and end of a part, and its label


def found_parts(labels: Sequence[str], finder: SpanFinder | None, numbers: np.ndarray) -> Iterator[Part]:
    """Yield the positions of each part of a sequence, given by the numbers of its labels; None: they have no scheme."""
    if finder is not None:
        found = finder.find(numbers, np.array([0, len(numbers)]))
        names = [finder.types[kind] for kind in found.kinds]
        yield from zip(found.starts.tolist(), found.ends.tolist(), names, strict=True)
        return
    end = 0
    for number, run in groupby(numbers.tolist()):
        begin, end = end, end + len(list(run))
        if labels[number] != OUTSIDE:
            yield begin, end, labels[number]


def reading_rules(text: str, places: Sequence[tuple[int, int]], names: bool) -> dict[str, object]:
    """Return values by which `kcrf` reads the same tokens and labels, where its rules would give others."""
    out: dict[str, object] = {"span_labels": NAMES} if names else {}
    if list(places) != tokens(text, None):
        out["tokens"] = [{"text": text[a:b], "start": a, "end": b, "id": t} for t, (a, b) in enumerate(places)]
    return out


class PartWriter(Writer):
    """Writes the texts of a block with their labelled parts; those without tokens, too, so that each line has one."""

    def __init__(self, labels: Sequence[str], block: DocumentBlock):
        self._labels, self._waiting = labels, zip(block.documents, block.keys, strict=True)
        self.keys: Mapping[str, Any] = {}  # of the object in JSON that the text of `written` comes from
        self._finder = SpanFinder(labels) if detect_scheme(labels) else None

    def sequences(self, decoded: Decoded) -> bytes:
        out: list[str] = []
        for first, last in pairwise(decoded.offsets.tolist()):
            text, places = next(self._with_tokens(out))
            found = found_parts(self._labels, self._finder, decoded.labels[first:last])
            parts = [(places[a][0], places[b - 1][1], name) for a, b, name in found]
            marked = None if decoded.review is None else np.flatnonzero(decoded.review[first:last]).tolist()
            out.append(self.written(text, places, parts, None if marked is None else [places[t] for t in marked]))
        return "".join(out).encode()

    def _with_tokens(self, out: list[str]) -> Iterator[tuple[str, Places]]:
        """Yield the texts that have tokens, and write those before them."""
        for (text, places), keys in self._waiting:
            self.keys = keys
            if places:
                yield text, places
            else:
                out.append(self.written(text, places, []))

    def rest(self) -> bytes:
        out: list[str] = []
        list(self._with_tokens(out))
        return "".join(out).encode()

    @abstractmethod
    def written(self, text: str, places: Places, parts: Sequence[Part], review: Places | None = None) -> str:
        """Return a text with its parts, and the tokens to review where they are asked for."""


class JsonPartWriter(PartWriter):
    """Writes an object on one line for each text, with keys such as `id` of the object that it comes from."""

    def written(self, text: str, places: Places, parts: Sequence[Part], review: Places | None = None) -> str:
        spans = [{"start": begin, "end": end, "label": label} for begin, end, label in parts]
        out = {"text": text, "spans": spans, **reading_rules(text, places, self._finder is None)}
        if review is not None:
            out[REVIEW] = [{"start": begin, "end": end} for begin, end in review]
        out |= {key: value for key, value in self.keys.items() if key not in out and not _is_marks(key, value)}
        return json.dumps(out, ensure_ascii=False) + "\n"


def _is_marks(key: str, value: object) -> bool:
    """Return True for tokens to review of an earlier labelling: they say nothing about this one."""
    return key == REVIEW and isinstance(value, list) and all(isinstance(mark, dict) for mark in value)


class XmlPartWriter(PartWriter):
    """Writes an element for each text, in which parts are elements."""

    @classmethod
    def frame(cls, labels: Sequence[str]) -> tuple[bytes, bytes]:
        """Return what stands before and behind all texts."""
        attribute = f' span-labels="{IOB2}"' if detect_scheme(labels) else ""
        return f'<?xml version="1.0" encoding="UTF-8"?>\n<dataset{attribute}>\n'.encode(), b"</dataset>\n"

    def written(self, text: str, places: Places, parts: Sequence[Part], review: Places | None = None) -> str:
        text, at, out = _NOT_IN_XML.sub(lambda found: " " if found.group().isspace() else "\ufffd", text), 0, []
        for begin, end, label in parts:
            named = _NAME.fullmatch(label)
            start, stop = (label, label) if named else (f"{PART} label={quoteattr(label)}", PART)
            out += [escape(text[at:begin]), f"<{start}>", escape(text[begin:end]), f"</{stop}>"]
            at = end
        return f"  <sequence>{''.join(out)}{escape(text[at:])}</sequence>\n"
