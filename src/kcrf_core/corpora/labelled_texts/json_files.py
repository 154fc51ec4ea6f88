"""JSON of labelling tools: an object for each text, on a line of its own or in an array.

Offsets of a text count characters, or units of UTF-16, as JavaScript does: one of the two for all spans of the text.
Where spans have their texts beside them, the counting that fits more of these is taken, else characters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from ...errors import DataError
from ...system import PAUSE, Pause, counted
from ..layout import IOB2, SPAN_LABELS
from ..lines import BYTE_ORDER_MARK
from .documents import LARGEST_DOCUMENT, Chunks, Document, DocumentReader, Findings, Span, joined, text_lines

SCHEME = "span_labels"  # key of objects that `kcrf tag` writes
_SPANS = ("spans", "label", "labels", "entities")
_TOKEN_LABELS = ("labels", "tags", "ner_tags", "label")
_BEGIN, _END, _NAME = ("start", "start_offset", "begin"), ("end", "end_offset"), ("label", "labels", "type")
_LABELS = tuple(dict.fromkeys((*_SPANS, *_TOKEN_LABELS, "annotations")))
_USED = {*_LABELS, SCHEME, "text", "tokens", "data", "predictions", "answer"}
_META = ("meta", "metadata")  # keys of objects in which doccano keeps what it does not use
_READING_RULES = ("tokens", SCHEME)  # keys of _META that are read as if they were those of the object
_DEEPEST = 100
_MARK = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|["{}\[\]]', re.DOTALL)  # a whole string, or one that goes on
_INVISIBLE = re.compile(r"(\s|\\n)+")  # Label Studio writes \n for line ends in the texts of spans


def _documents(objects: Iterator[tuple[int, str] | Pause], name: str, findings: Findings) -> Iterator[Document | Pause]:
    """Yield the texts of objects that are given with their lines."""
    for item in objects:
        if item is PAUSE:
            yield PAUSE
            continue
        line, text = item
        if not text.strip():
            continue
        try:
            value = json.loads(text)
            json.dumps(value, ensure_ascii=False).encode()  # half of a pair of surrogates is no text
        except RecursionError:
            raise DataError(f"nested too deeply (limit {_DEEPEST})", name, line) from None
        except json.JSONDecodeError as error:
            where, hint = line + text.count("\n", 0, error.pos), "expected an object on each line, or an array"
            raise DataError(f"no JSON: {error.msg} ({hint})", name, where) from None
        except ValueError as error:  # a number of thousands of digits, or text that is none
            raise DataError(f"JSON that cannot be read: {error}", name, line) from None
        document = _Object(value, name, line, findings).document()
        if document is not None:
            yield replace(document, keys=_other_keys(value, document.text))


def _other_keys(value: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return the keys of an object that are neither of its text nor of its labels, nor rules to read them by."""
    task = value["data"] if isinstance(value.get("data"), dict) else {}  # of Label Studio
    keys = {key: item for key, item in {**value, **task}.items() if key not in _USED and item != text}
    for name in _META:
        if isinstance(keys.get(name), dict):
            keys[name] = {key: item for key, item in keys[name].items() if key not in _READING_RULES}
    return keys


def _elements(chunks: Chunks, name: str) -> Iterator[tuple[int, str] | Pause]:
    """Yield the objects of one array as they are complete; there is nothing behind it."""
    held, at, level, start, line = bytearray(), 0, 0, -1, 1  # of the bytes held, those before `at` are known
    ended, expected = False, b"["  # bytes before the next element

    def error(message: str) -> DataError:
        return DataError(message, name, line + held.count(b"\n", 0, at))

    for chunk in chunks:
        if chunk is PAUSE:
            yield PAUSE
            continue
        held += chunk
        while (found := _MARK.search(held, at)) is not None:
            mark = found.group()
            if mark == b'"':
                at = found.start()  # it may go on in the next chunk
                break
            at = found.end()
            if ended:
                raise error("text behind the array")
            if level == 1:
                before = held[: found.start()].removeprefix(BYTE_ORDER_MARK.encode()).strip()
                wanted = b"" if mark == b"]" and expected == b"," else expected
                if mark[:1] in b'"}' or before != wanted:
                    raise error("expected objects in the array, with a comma between them")
            if mark[:1] == b'"':
                continue
            if mark in b"{[":
                level += 1
                start = found.start() if level == 2 else start
                if level > _DEEPEST:
                    raise error(f"nested too deeply (limit {_DEEPEST})")
            else:
                level -= 1
                ended = level == 0
                if level == 1:
                    line += held.count(b"\n", 0, start)
                    try:
                        yield line, held[start:at].decode()
                    except UnicodeDecodeError:
                        raise error("no UTF-8 text (convert the file, for example with iconv)") from None
                    line += held.count(b"\n", start, at)
                    del held[:at]
                    at, start, expected = 0, -1, b","
                elif ended:
                    line += held.count(b"\n", 0, at)
                    del held[:at]
                    at = 0
        else:
            at = len(held)
        if len(held) > LARGEST_DOCUMENT:
            raise error("an object of more than 64 MiB")
    if not ended:
        raise error("the array does not end: is the file cut off?")
    if held.strip():
        at = len(held.rstrip())
        raise error("text behind the array")


class _Object:
    """One object of a file."""

    def __init__(self, value: Any, name: str, line: int, findings: Findings):
        self._value, self._name, self._line, self._findings = value, name, line, findings

    def _error(self, message: str) -> DataError:
        return DataError(message, self._name, self._line)

    def document(self) -> Document | None:
        """Return its text with its labels, None if it is left out."""
        value = self._value
        if not isinstance(value, dict):
            raise self._error("expected an object with a text or tokens")
        if value.get("answer", "accept") != "accept":
            self._findings["rejected"] += 1
            return None
        if isinstance(value.get("data"), dict):
            return self._task(value)
        text, tokens = value.get("text", value.get("data")), value.get("tokens")
        labels = self._first(_TOKEN_LABELS, (str, int))
        of_tokens = text is None or (
            isinstance(labels, list) and bool(labels) and all(isinstance(label, (str, int)) for label in labels)
        )
        if of_tokens and isinstance(tokens, list) and all(isinstance(token, str) for token in tokens):
            return self._tokens(tokens, labels)
        if not isinstance(text, str):
            raise self._error("an object has neither a text ('text') nor tokens ('tokens', a list of words)")
        items = self._first(_SPANS, (list, dict))
        spans = None if items is None else self._spans(text, self._list(items))
        # doccano has `"label": []` also where nobody has looked at the text. Prodigy gives its answer, and `spans` are of
        # Prodigy or `kcrf tag`, which write labelled texts alone.
        checked = "answer" in value or isinstance(value.get("spans"), list)
        return replace(self._document(text, spans, value), empty=spans == [] and not checked)

    def _document(self, text: str, spans: Sequence[Span] | None, value: Mapping[str, Any]) -> Document:
        """Return a text with its spans, and the tokens and the kind of labels that an object may have."""
        meta = next((value[name] for name in _META if name in value), None)
        value = {**meta, **value} if isinstance(meta, dict) else value
        tokens, places = value.get("tokens"), None
        if isinstance(tokens, list) and tokens and isinstance(tokens[0], dict):
            places = [(token.begin, token.end) for token in self._regions(text, tokens)]
            places = [place for place in places if text[slice(*place)].strip()]  # spaCy has tokens of white space
            if any(one[1] > other[0] for one, other in pairwise(places)):
                raise self._error("tokens overlap, or are not in the order of the text")
        elif isinstance(tokens, list) and tokens and isinstance(tokens[0], str):
            places = self._places_of(text, tokens)
        scheme = value.get(SCHEME)
        return Document(text, self._line, spans, places, span_labels=scheme if scheme in SPAN_LABELS else IOB2)

    def _places_of(self, text: str, tokens: Sequence[Any]) -> list[tuple[int, int]]:
        """Return the places of words in a text, which has nothing else but white space."""
        places, end = list[tuple[int, int]](), 0
        for word in filter(None, (str(token).strip() for token in tokens)):
            begin = text.find(word, end)
            if begin < 0 or text[end:begin].strip():
                raise self._error(
                    f"the token {word!r} is not what follows in the text: {text[end : end + 20].strip()!r}"
                )
            end = begin + len(word)
            places.append((begin, end))
        if text[end:].strip():
            raise self._error(f"the text goes on behind its tokens: {text[end : end + 20].strip()!r}")
        return places

    def _first(self, keys: Sequence[str], kinds: tuple[type, ...]) -> Any:
        """Return the first list that begins with an item of these kinds, else the first list, else another value."""
        found = [self._value[key] for key in keys if self._value.get(key) is not None]
        lists = [one for one in found if isinstance(one, list)]
        return next((one for one in lists if one and isinstance(one[0], kinds)), next(iter(lists + found), None))

    def _list(self, items: Any) -> list[Any]:
        if not isinstance(items, list):
            raise self._error("labels of a text are not a list of spans: is it a task without spans?")
        return items

    def _tokens(self, tokens: Sequence[str], labels: Any) -> Document:
        """Return tokens with a label each, with spaces between them."""
        if labels is not None:
            if not isinstance(labels, list) or not all(isinstance(label, (str, int)) for label in labels):
                raise self._error("labels of tokens are not a list of names")
            if len(labels) != len(tokens):
                raise self._error(f"{counted(len(labels), 'label')} for {counted(len(tokens), 'token')}")
            labels = [str(label) for label in labels]
        if not all(token.strip() for token in tokens):
            raise self._error("a token without characters")
        text, places = joined(tokens, " ")
        return Document(text, self._line, None, places, labels)

    def _task(self, value: Mapping[str, Any]) -> Document | None:
        """Return the text of a task of Label Studio, with the spans of its first annotation."""
        data = value["data"]
        texts = [data["text"]] if "text" in data else [one for one in data.values() if isinstance(one, str)]
        if len(texts) != 1 or not isinstance(texts[0], str):
            raise self._error("a task has no 'text' in its 'data', and not exactly one other text")
        annotations = self._list(value.get("annotations", []))
        made = [one for one in annotations if isinstance(one, dict) and not one.get("was_cancelled")]
        if not made:
            self._findings["rejected"] += bool(annotations)
            return None if annotations else self._document(texts[0], None, data)
        self._findings["annotations"] += len(made) - 1
        labelled = []
        for item in self._list(made[0].get("result", [])):
            region = item.get("value") if isinstance(item, dict) else None
            if not isinstance(region, dict) or "start" not in region:
                self._findings["others"] += 1
                continue
            if any(key.endswith("labels") and value for key, value in region.items()):
                labelled.append(region)
            else:
                self._findings["bare"] += 1
        return self._document(texts[0], self._spans(texts[0], labelled), data)

    def _spans(self, text: str, items: Sequence[Any]) -> list[Span]:
        spans = []
        for region in self._regions(text, items):
            label = region.label
            if isinstance(label, list) and label:
                self._findings["labels"] += len(label) > 1
                label = label[0]
            if not isinstance(label, str):
                raise self._error("a span without a label")
            spans.append(Span(region.begin, region.end, label))
        return spans

    def _regions(self, text: str, items: Sequence[Any]) -> list[_Region]:
        """Return the spans or tokens of a text with their places in characters."""
        given = [self._region(item) for item in items]
        regions, units = given, _from_utf_16(text, given)
        if units != given:
            fit, units_fit = _fit(text, given), _fit(text, units)
            if units_fit > fit:
                regions = units
            elif units_fit == fit and units_fit[0] == len(given):
                self._findings["either"] += 1
        for region, as_given in zip(regions, given, strict=True):
            begin, end = as_given.begin, as_given.end
            if not 0 <= region.begin < region.end <= len(text):
                raise self._error(f"a span from {begin} to {end} in a text of {counted(len(text), 'character')}")
            if not region.fits(text):
                found = text[region.begin : region.end]
                raise self._error(f"a span has the text {region.text!r}, and at {begin} to {end} there is {found!r}")
        return regions

    def _region(self, item: Any) -> _Region:
        """Return a span or token as it is given."""
        text = item.get("text") if isinstance(item, dict) else None
        if isinstance(item, dict):
            # Labels may be in `hypertextlabels` and the like, and regions of HTML have XPaths beside offsets.
            names = [*_NAME, *(key for key in item if key.endswith("labels"))]
            offsets = item.get("globalOffsets")
            item = {**item, **offsets} if isinstance(offsets, dict) else item
            item = [next((item[key] for key in keys if key in item), None) for keys in (_BEGIN, _END, names)]
        begin, end, label = item if isinstance(item, list) and len(item) == 3 else (None, None, None)
        if type(begin) is not int or type(end) is not int:
            raise self._error("a span is [begin, end, label], or an object with start, end and label")
        return _Region(begin, end, label, text if isinstance(text, str) else None)


class _Region(NamedTuple):
    """A span or token of an object: its offsets, its label, and the text beside it, None without one."""

    begin: int
    end: int
    label: Any
    text: str | None

    def fits(self, text: str, exactly: bool = False) -> bool:
        """Return True if the text beside it, if there is one, is that at its place, perhaps but for white space."""
        if self.text is None or not 0 <= self.begin < self.end <= len(text):
            return self.text is None
        covered = text[self.begin : self.end]
        if exactly:
            return covered in (self.text, self.text.replace("\\n", "\n"))
        return _INVISIBLE.sub("", covered) == _INVISIBLE.sub("", self.text)


def _fit(text: str, regions: Sequence[_Region]) -> tuple[int, int]:
    """Return how many regions fit the texts beside them, and how many of these exactly."""
    return sum(region.fits(text) for region in regions), sum(region.fits(text, exactly=True) for region in regions)


def _from_utf_16(text: str, regions: list[_Region]) -> list[_Region]:
    """Return regions whose offsets are units of UTF-16 with offsets in characters, -1 within a character.

    Regions without texts beside them are returned as they are.
    """
    if len(text.encode("utf-16-le")) == 2 * len(text) or all(region.text is None for region in regions):
        return regions
    units = accumulate((1 + (character > "\uffff") for character in text), initial=0)
    characters = {unit: place for place, unit in enumerate(units)}
    return [
        region._replace(begin=characters.get(region.begin, -1), end=characters.get(region.end, -1))
        for region in regions
    ]


JSON_LINES = DocumentReader(
    lambda chunks, name, findings: _documents(text_lines(chunks, name), name, findings), label_keys=_LABELS
)
JSON_ARRAY = replace(
    JSON_LINES, read=lambda chunks, name, findings: _documents(_elements(chunks, name), name, findings)
)
