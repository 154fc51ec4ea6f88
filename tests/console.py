"""Markdown pages as people use them: console sessions with what they print, and files to save."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

# A block whose first line is a comment that names a file is to be saved under that name.
_FILE_NAME = re.compile(r"# ([\w.-]+)\n")


def code_blocks(path: Path) -> list[tuple[str, str]]:
    """Language and text of each fenced block."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def session(block: str) -> list[tuple[str, str]]:
    """Command lines of a console block, continued ones joined, each with its output."""
    parts = re.split(r"^\$ ", re.sub(r"\\\n\s*", "", block), flags=re.MULTILINE)[1:]
    return [tuple(part.partition("\n")[::2]) for part in parts]


def sessions(path: Path) -> list[list[tuple[str, str]]]:
    """All console blocks of a page."""
    return [session(block) for language, block in code_blocks(path) if language == "console"]


def steps(path: Path) -> Iterator[tuple[str, str, str]]:
    """A page from top to bottom: ("file", name, text) to save and ("command", line, output) to type."""
    for language, block in code_blocks(path):
        named = _FILE_NAME.match(block)
        if language == "console":
            yield from (("command", *each) for each in session(block))
        elif named is not None:
            yield "file", named[1], block


def shape(text: str) -> str:
    """Text without its figures and its spacing: BLAS libraries differ in the last digits."""
    return re.sub(r"\s+", " ", re.sub(r"[\d.,e-]*\d", "#", text)).strip()


def settled(text: str) -> str:
    """Text without what may differ elsewhere: steps of the search for sigma2, and which setting was best."""
    return re.sub(r"^ *(score variance|sigma2 of \w+) [\d.]+ .*\n|^.*\*$\n?", "", text, flags=re.MULTILINE)
