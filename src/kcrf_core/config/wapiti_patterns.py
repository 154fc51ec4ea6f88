r"""Wapiti's patterns: their macros, and the regular expressions inside of them.

    u:word=%x[0,0]            the value of column 0 at the position; %X the same with A-Z made small
    u:end=%m[-1,0,"..$"]      what a regular expression matches there, nothing where it does not match
    *:cap=%t[0,0,"^\u"]       true or false
    u:first=%x[@1,0]          the first position of the sequence, @-1 the last one

Regular expressions work on bytes and know `.`, `\d` digit, `\a` letter, `\w` both, `\l` small and `\u` capital letter,
`\p` punctuation, `\s` space, each in ASCII and with its complement in capitals, `\` before any other character, `^` at
the beginning and `$` at the end, and of one character `?`, taken if it can be, and `*`, as few as will do.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from ..errors import ConfigError

MOST_STEPS = 100_000  # of one match: patterns that would go through all ways to fail are refused

_MACRO = re.compile(r"%([xtmXTM])\[\s*(@?)\s*([+-]?[0-9]{1,9})\s*,\s*([0-9]{1,9})\s*")
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
        found = _MACRO.match(text, start)
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
