"""Text for people, in which nothing can act on a terminal: the one place that all of it goes through.

Characters that act on one are written by number, as are halves of surrogate pairs: bytes of file names, not of UTF-8.
"""

from __future__ import annotations

import re

LONGEST_LABEL = 14  # characters, in plots

_C0, _C1 = range(0x20), range(0x7F, 0xA0)  # controls, with DEL
_LINES = range(0x2028, 0x202A)  # separators of lines and paragraphs
_DIRECTIONS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))  # embeddings, overrides and isolates of directions
_SURROGATES = range(0xD800, 0xE000)

_NARROW = {code: f"\\x{code:02x}" for code in (*_C0, *_C1)}
_WIDE = {code: f"\\u{code:04x}" for code in (*_LINES, *_DIRECTIONS, *_SURROGATES)}
_VISIBLE = _NARROW | _WIDE
_BUT_LINE_ENDS = {code: shown for code, shown in _VISIBLE.items() if code != ord("\n")}
_IN_JSON = {code: f"\\u{code:04x}" for code in _C1} | _WIDE  # what JSON itself may leave as it is

_NOT_IN_DOCUMENTS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def shown(text: str) -> str:
    """Return one line, or a part of one, without characters that act on a terminal."""
    return text if text.isprintable() else text.translate(_VISIBLE)  # most is, and looking is far quicker


def shortened(text: str, longest: int = LONGEST_LABEL) -> str:
    """Return a text of at most so many characters."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def replaced(text: str) -> str:
    """Return text without characters that no document may contain."""
    return _NOT_IN_DOCUMENTS.sub("\ufffd", text)


def shown_lines(text: str) -> str:
    """Return several lines; values in them must have gone through `shown` if they could have line ends of their own."""
    return text.translate(_BUT_LINE_ENDS)


def shown_json(text: str) -> str:
    """Return JSON with the same values and without these characters in them."""
    return text.translate(_IN_JSON)
