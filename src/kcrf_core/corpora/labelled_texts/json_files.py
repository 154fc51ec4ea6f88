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
from typing import Any, NamedTuple, TypeAlias

from ...errors import DataError
from ...system import PAUSE, Pause, counted
from ..layout import IOB2, SPAN_LABELS
from .documents import Chunks, Document, DocumentReader, Findings, Span, joined, text_lines

SCHEME = "span_labels"  # key of objects that `kcrf tag` writes
_SPANS = ("spans", "label", "labels", "entities")
_TOKEN_LABELS = ("labels", "tags", "ner_tags", "label")
_BEGIN, _END, _NAME = ("start", "start_offset", "begin"), ("end", "end_offset"), ("label", "labels", "type")
_LABELS = tuple(dict.fromkeys((*_SPANS, *_TOKEN_LABELS, "annotations")))
_USED = {*_LABELS, SCHEME, "text", "tokens", "data", "predictions", "answer"}
_META = ("meta", "metadata")  # keys of objects in which doccano keeps what it does not use
_READING_RULES = ("tokens", SCHEME)  # keys of _META that are read as if they were those of the object
LARGEST_ARRAY = 1 << 30  # bytes
_FORMS = "expected an object on each line, or an array"
_SEPARATED = "expected objects in the array, with a comma between them"
_CUT_OFF = "the array does not end: is the file cut off?"
_DECODER, _SPACE = json.JSONDecoder(), re.compile(r"[ \t\n\r]*")
_Placed: TypeAlias = tuple[int, Any]  # the line of a value, and the value
_INVISIBLE = re.compile(r"(\s|\\n)+")  # Label Studio writes \n for line ends in the texts of spans


def _documents(objects: Iterator[_Placed | Pause], name: str, findings: Findings) -> Iterator[Document | Pause]:
    """Yield the texts of values that are given with their lines."""
    for item in objects:
        if item is PAUSE:
            yield PAUSE
            continue
        line, value = item
        document = _Object(value, name, line, findings).document()
        if document is not None:
            yield replace(document, keys=_other_keys(value, document.text))


def _values_of_lines(chunks: Chunks, name: str) -> Iterator[_Placed | Pause]:
    """Yield the values of a file with one on each line, and their lines."""
    for item in text_lines(chunks, name):
        if item is PAUSE:
            yield PAUSE
            continue
        line, text = item
        if text.strip():
            value, end = _decoded(text, _behind_space(text, 0), name, line)
            if text[end:].strip():
                raise DataError(f"no JSON: text behind an object ({_FORMS})", name, line)
            yield line, value


def _values_of_array(chunks: Chunks, name: str) -> Iterator[_Placed | Pause]:
    """Yield the objects of a file that is one array, and their lines. The file is read whole."""
    data = bytearray()
    for chunk in chunks:
        if chunk is PAUSE:
            yield PAUSE
            continue
        data += chunk
        if len(data) > LARGEST_ARRAY:
            size = f"{LARGEST_ARRAY >> 20:,} MiB"
            raise DataError(f"an array of more than {size}, which is read whole: write an object on each line", name)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError("no UTF-8 text (convert the file, for example with iconv)", name, line) from None
    del data
    end = text.index("[") + 1  # of what has been read
    line, expected = 1 + text.count("\n", 0, end), "{]"
    mark = "["
    while mark != "]":
        start = _behind_space(text, end)
        line += text.count("\n", end, start)
        mark = text[start : start + 1]
        if not mark or mark not in expected:
            raise DataError(_SEPARATED if mark else _CUT_OFF, name, line)
        if mark == "{":
            value, end = _decoded(text, start, name, line, in_array=True)
            yield line, value
            line, expected = line + text.count("\n", start, end), ",]"
        else:
            end, expected = start + 1, "{"
    start = _behind_space(text, end)
    if start < len(text):
        raise DataError("text behind the array", name, line + text.count("\n", end, start))


def _behind_space(text: str, start: int) -> int:
    """Return the first index from this one on that is no white space of JSON."""
    space = _SPACE.match(text, start)
    assert space is not None  # it may be empty
    return space.end()


def _decoded(text: str, start: int, name: str, line: int, in_array: bool = False) -> tuple[Any, int]:
    """Return the value that begins at an index of a text, in this line of the file, and where it ends."""
    try:
        value, end = _DECODER.raw_decode(text, start)
        json.dumps(value, ensure_ascii=False).encode()  # half of a pair of surrogates is no text
    except RecursionError:
        raise DataError("nested too deeply", name, line) from None
    except json.JSONDecodeError as error:
        unfinished = not text[error.pos :].strip() or error.msg.startswith("Unterminated string")
        message = _CUT_OFF if in_array and unfinished else f"no JSON: {error.msg} ({_FORMS})"
        raise DataError(message, name, line + text.count("\n", start, error.pos)) from None
    except ValueError as error:  # a number of thousands of digits, or text that is none
        raise DataError(f"JSON that cannot be read: {error}", name, line) from None
    return value, end


def _other_keys(value: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return the keys of an object that are neither of its text nor of its labels, nor rules to read them by."""
    task = value["data"] if isinstance(value.get("data"), dict) else {}  # of Label Studio
    keys = {key: item for key, item in {**value, **task}.items() if key not in _USED and item != text}
    for name in _META:
        if isinstance(keys.get(name), dict):
            keys[name] = {key: item for key, item in keys[name].items() if key not in _READING_RULES}
    return keys


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
        # doccano has `"label": []` also for texts that no annotator has seen. Prodigy gives its answer, and
        # `spans` are of Prodigy or `kcrf tag`, which write labelled texts alone.
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
                covered = text[region.begin : region.end]
                message = f"a span has the text {region.text!r}, and at {begin} to {end} there is {covered!r}"
                raise self._error(message)
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
    characters = {unit: index for index, unit in enumerate(units)}
    return [
        region._replace(begin=characters.get(region.begin, -1), end=characters.get(region.end, -1))
        for region in regions
    ]


JSON_LINES = DocumentReader(
    lambda chunks, name, findings: _documents(_values_of_lines(chunks, name), name, findings), label_keys=_LABELS
)
JSON_ARRAY = replace(
    JSON_LINES, read=lambda chunks, name, findings: _documents(_values_of_array(chunks, name), name, findings)
)
