"""CRF++ feature templates and Wapiti's patterns, read into the dictionary that a YAML configuration would have given.

In CRF++ a feature is the string that a line becomes, its name included, so lines whose strings can be the same share
weights. Lines that cannot meet another one are features of their own, compared part by part; the others make one
feature of the type `templates`, which compares strings. The u lines of Wapiti make one such feature; each b line that
looks at the input is a categorical feature of its strings. Both languages stand in docs/formats.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ..errors import ConfigError
from .config import FeatureConfig
from .values import WIDEST_WINDOW

# No key of a YAML configuration begins with U, B or *.
_TEMPLATE_LINE = re.compile(r"[UB*]|[ub]$|[ub][^\s:]*:.*%[xmtXMT]\[")
_MACRO = re.compile(r"%x\[\s*(-?[0-9]{1,9})\s*,\s*([0-9]{1,9})\s*\]")
PATTERNS = "templates"  # the feature that all u lines of Wapiti's patterns make

_WAPITI = re.compile(r"%[mtXMT]\[|%x\[\s*@")
MOST_STEPS = 100_000  # of one match: patterns that would go through all ways to fail are refused

_WAPITI_MACRO = re.compile(r"%([xtmXTM])\[\s*(@?)\s*([+-]?[0-9]{1,9})\s*,\s*([0-9]{1,9})\s*")
_ARGUMENT = re.compile(r',"((?:\\.|[^"\\])*)"')
_ELEMENT = re.compile(rb"(\\.|[^*?])([*?]?)", re.DOTALL)
_CLASSES = {
    b"d": rb"0-9",
    b"a": rb"A-Za-z",
    b"w": rb"A-Za-z0-9",
    b"l": rb"a-z",
    b"u": rb"A-Z",
    b"p": rb"!-/:-@\[-`{-~",
    b"s": rb" \t\n\r\f\v",
}


class Macro(NamedTuple):
    """A place of the input in a line of a template or pattern, and what is done with the value there."""

    row: int  # relative to the position, or absolute: from 1 at the beginning, from -1 at the end
    column: int
    command: str = "x"  # x the value, m the match of an expression, t true if there is one
    lower: bool = False
    absolute: bool = False
    expression: str = ""

    @property
    def plain(self) -> bool:
        """True if it stands for the value as it is, so many positions away."""
        return self.command == "x" and not self.lower and not self.absolute


def is_wapiti_line(text: str) -> bool:
    """Return True if a line is in Wapiti's language, which makes the first letter a small one."""
    return text[:1] in ("u", "b", "*")


def wapiti_pieces(text: str) -> list[str | Macro]:
    """Split a line into literal text and macros."""
    out: list[str | Macro] = []
    end = 0
    while (start := text.find("%", end)) >= 0:
        found = _WAPITI_MACRO.match(text, start)
        if found is None:
            raise ConfigError(
                f"cannot read '{text}' (macros of Wapiti look like %x[-1,0], %t[0,0,\"^\\u\"] and %X[@1,0])"
            )
        command, at = found[1].lower(), found.end()
        expression = ""
        if command != "x":
            argument = _ARGUMENT.match(text, at)
            if argument is None:
                raise ConfigError(f"'%{found[1]}[...]' in '{text}' needs a regular expression: %{found[1]}[0,0,\"^.\"]")
            expression, at = argument[1], argument.end()
            matcher(expression)
        if text[at : at + 1] != "]":
            raise ConfigError(f"a ']' is missing in '{text}'")
        out += [text[end:start]] * (start > end)
        out.append(Macro(int(found[3]), int(found[4]), command, found[1] != command, bool(found[2]), expression))
        end = at + 1
    return out + [text[end:]] * (end < len(text))


Match = Callable[[bytes], tuple[int, int] | None]


@lru_cache(maxsize=1024)
def matcher(expression: str) -> Match:
    """Return a function from a value to the start of its first match and its length as Wapiti counts it."""
    text = expression.encode("utf-8", "surrogatepass")
    anchored = text.startswith(b"^")
    body = text[1:] if anchored else text
    at_end = body.endswith(b"$") and not re.search(rb"(?<!\\)(?:\\\\)*\\\$$", body)
    body = body[:-1] if at_end else body
    elements: list[tuple[bytes, bytes]] = []
    place = 0
    while place < len(body):
        found = _ELEMENT.match(body, place)
        if found is None:
            raise ConfigError(
                f'the regular expression "{expression}" has a * or ? with nothing before it (\\* is a star)'
            )
        elements.append((_single(found[1]), found[2]))
        place = found.end()
    # Where a failed attempt has taken an optional character, what it went on to try stays in Wapiti's count of the
    # length, unless that was optional characters alone.
    marks = [mark for _, mark in elements]
    first = marks.index(b"?") if b"?" in marks else len(marks)
    if any(mark != b"?" for mark in marks[first:]):
        return _Stepwise(elements, anchored, at_end, expression)
    lazy = {b"": b"", b"?": b"?", b"*": b"*?"}
    pattern = re.compile(b"".join(one + lazy[mark] for one, mark in elements) + (rb"\Z" if at_end else b""), re.DOTALL)
    if marks.count(b"*") > 2:
        return _Stepwise(elements, anchored, at_end, expression)  # which counts its steps
    search = pattern.match if anchored else pattern.search

    def match(value: bytes) -> tuple[int, int] | None:
        found = search(value)
        return None if found is None else (found.start(), found.end() - found.start())

    return match


def _single(element: bytes) -> bytes:
    """Return one character or class as Python's `re` writes it."""
    if element == b".":
        return element
    if element[:1] == b"\\" and len(element) > 1:
        own = _CLASSES.get(element[1:].lower())
        if own is not None:
            return b"[^" + own + b"]" if element[1:].isupper() else b"[" + own + b"]"
        element = element[1:]
    return re.escape(element)


class _Stepwise:
    """A match element by element, which counts the length as Wapiti does, failed attempts included."""

    def __init__(self, elements: list[tuple[bytes, bytes]], anchored: bool, at_end: bool, expression: str):
        self._elements = [(re.compile(one, re.DOTALL), mark) for one, mark in elements]
        self._anchored, self._at_end, self._expression = anchored, at_end, expression
        self._steps = self._length = 0

    def __call__(self, value: bytes) -> tuple[int, int] | None:
        self._steps = 0
        for start in range(1 if self._anchored else len(value) + 1):
            self._length = 0
            if self._matches(0, value, start):
                return start, self._length
        return None

    def _matches(self, number: int, value: bytes, place: int) -> bool:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise ConfigError(f'the regular expression "{self._expression}" takes too long on a value of the data')
        if number == len(self._elements):
            return not self._at_end or place == len(value)
        one, mark = self._elements[number]
        if mark == b"*":
            while True:
                before = self._length
                if self._matches(number + 1, value, place):
                    return True
                self._length = before + 1
                if one.match(value, place) is None:
                    return False
                place += 1
        if mark == b"?":
            if one.match(value, place) is not None:
                self._length += 1
                if self._matches(number + 1, value, place + 1):
                    return True
                self._length -= 1
            return self._matches(number + 1, value, place)
        self._length += 1
        return one.match(value, place) is not None and self._matches(number + 1, value, place + 1)


class _Line:
    """A line of a CRF++ template with its macros."""

    def __init__(self, number: int, text: str):
        self.number, self.text = number, text
        self.name = re.split(r"[:%\s]", text, maxsplit=1)[0]
        self.macros = [piece for piece in pieces(text) if not isinstance(piece, str)]
        self.beginning = _MACRO.split(text, maxsplit=1)[0]  # text before the first macro


def looks_like_template(text: str) -> bool:
    """Return True if the first line that is no comment is that of a template."""
    for line in text.split("\n"):
        line = line.strip()
        if line and not line.startswith("#"):
            return bool(_TEMPLATE_LINE.match(line))
    return False


def pieces(text: str) -> list[str | Macro]:
    """Split a template line into literal text and macros."""
    out: list[str | Macro]
    if is_wapiti_line(text):
        out = wapiti_pieces(text)
    elif "%" in _MACRO.sub("", text):
        raise ConfigError(f"cannot read '{text}' (macros look like %x[-1,0])")
    else:
        cells = _MACRO.split(text)  # text, row, column, text, ...
        out = [cells[0]]
        for row, column, literal in zip(cells[1::3], cells[2::3], cells[3::3], strict=True):
            out += [Macro(int(row), int(column)), literal]
        out = [piece for piece in out if piece != ""]
    for macro in out:
        if isinstance(macro, Macro) and abs(macro.row) > WIDEST_WINDOW:
            raise ConfigError(f"%{macro.command}[{macro.row},...] looks further than {WIDEST_WINDOW} positions")
    return out


def load_template(text: str, source: str, wapiti: bool = False) -> dict[str, Any]:
    """Return the configuration dictionary of a CRF++ template or of Wapiti's patterns.

    Lines in capitals alone are read by both programs: as Wapiti does if `wapiti`, and without weights of first and
    last labels, which it lacks.
    """
    lines = [line.strip() for line in text.split("\n")]
    transitions = "transitions" if wapiti else "edge"
    wapiti = wapiti or any(is_wapiti_line(line) or (line[:1] != "#" and _WAPITI.search(line)) for line in lines)
    unigrams: list[_Line] = []
    bigrams: list[_Line] = []
    edge = False
    for number, content in enumerate(text.split("\n"), start=1):
        content = content.partition("#")[0].rstrip() if wapiti else content.strip()
        if not content or content.startswith("#"):
            continue
        kind = content[0].lower()
        try:
            if (kind not in "ub*") if wapiti else (content[0] not in "UB"):
                known = "u, b or *" if wapiti else "U or B"
                raise ConfigError(f"a line of a template starts with {known}, not '{content[0]}'")
            line = _Line(number, kind + content[1:] if wapiti else content)  # Wapiti keeps it so
        except ConfigError as error:
            raise ConfigError(f"{source}:{number}: {error}") from None
        if kind != "b":
            unigrams.append(line)
        if kind != "u" and line.macros:
            bigrams.append(line)
        edge |= kind != "u" and not line.macros  # several such lines mean the same
    if not any(line.macros for line in unigrams + bigrams):
        raise ConfigError(f"{source}: no line has a macro such as %x[0,0], so the model would ignore the input")
    nodes, edges = (_wapiti_features if wapiti else _crfpp_features)(unigrams, bigrams, source)
    terms: list[dict[str, Any]] = []
    for name, features in (("node", nodes), ("edge-x", edges)):
        if features:
            term: dict[str, Any] = {"name": name, "type": name}
            if nodes and edges:  # which share sigma2, since these programs have one penalty for all weights
                term |= {"features": [one["name"] for one in features]} | ({} if name == "node" else {"shared": True})
            terms.append(term)
    if edge:
        terms.append({"name": "edge", "type": transitions})
    return {"features": nodes + edges, "terms": terms}


_Features = list[dict[str, Any]]


def _crfpp_features(unigrams: Sequence[_Line], bigrams: Sequence[_Line], source: str) -> tuple[_Features, _Features]:
    """Return features of node and of edge-x terms: lines that may become the same string share one."""
    meeting = _meeting(bigrams)
    if meeting:
        numbers = ", ".join(str(line.number) for line in meeting)
        raise ConfigError(
            f"{source}:{meeting[-1].number}: B lines that may become the same string ({numbers}) would share weights, "
            "which is not supported: give each a name of its own"
        )
    together = {line.number for line in _meeting(unigrams)}
    shared = [line.text for line in unigrams if line.number in together or not line.macros]
    nodes = [_feature(line) for line in unigrams if line.number not in together and line.macros]
    if shared:
        names = {feature["name"] for feature in nodes}
        name = next(name for n in range(len(names) + 1) if (name := f"U{'+' * (n + 1)}") not in names)
        nodes.append({"name": name, "type": "templates", "templates": shared})
    return nodes, [_feature(line) for line in bigrams]


def _wapiti_features(unigrams: Sequence[_Line], bigrams: Sequence[_Line], source: str) -> tuple[_Features, _Features]:
    """Return features of node and of edge-x terms: all u lines are one, each b line is another."""
    nodes = [{"name": PATTERNS, "type": "templates", "templates": [line.text for line in unigrams]}] if unigrams else []
    pairs = enumerate(line.text for line in bigrams)
    return nodes, [{"name": f"pairs{n}", "type": "categorical", "templates": [line]} for n, line in pairs]


def _meeting(lines: Sequence[_Line]) -> list[_Line]:
    """List lines that might become the same string as another one, or would have the same name here."""
    names = Counter(line.name for line in lines)
    found = {line.number for line in lines if names[line.name] > 1}
    first: _Line | None = None
    for line in sorted(lines, key=lambda line: line.beginning):  # what begins with a text comes right after it
        if first is not None and line.beginning.startswith(first.beginning):
            found |= {first.number, line.number}
        else:
            first = line
    return [line for line in lines if line.number in found]


def _feature(line: _Line) -> dict[str, Any]:
    macros = line.macros
    if len(macros) == 1:
        return {"name": line.name, "column": f"c{macros[0].column}", "type": "categorical", "window": [macros[0].row]}
    return {"name": line.name, "conjunction": [f"c{one.column}[{one.row}]" for one in macros], "window": [0]}


def same_line(text: str, feature: FeatureConfig) -> bool:
    """Return True if a feature is what this line of a template becomes."""
    line = _Line(0, text)
    if is_wapiti_line(text) or line.name != feature.name or not line.macros:
        return False
    macros = [(f"c{one.column}", one.row) for one in line.macros]
    if len(macros) == 1:
        return (feature.columns, feature.window, feature.transform) == (*zip(*macros, strict=True), "identity")
    return feature.parts == tuple(macros) and feature.window == (0,)
