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


# Figures in a text. Digits within words, such as F1 and iob2, are words.
_FIGURE = re.compile(r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])")

# How far a figure may be from the one that a page shows, as (part of it, amount), by what its line says about it; `#`
# is the figure. Counts of what is in the data or was asked for are exact. Everything else is held to what an x86 and an
# ARM machine, each with its BLAS library, differ by: training stops within 0.001 of the optimum, pivots are drawn by
# rounded residuals, and a label or two go the other way.
_ANY = (float("inf"), 0.0)
_TOLERANCES = [
    (re.compile(r"# s\b|# [KMG]i?B\b"), _ANY),  # time and memory
    (re.compile(r"# passes"), (0.5, 0.0)),
    (re.compile(r"within # of the optimum|relative gap #"), (0.0, 0.001)),
    (re.compile(r"sigma2: .*#"), (0.7, 0.0)),  # one step of the search
    (re.compile(r"^ *\w+ # pivots: "), (0.02, 0.0)),  # chosen while training goes on
    (re.compile(r"gain .*#"), (0.1, 0.0)),
]
_PREDICTED = re.compile(r"\(# of|right in|^\S+( [\d.]+){4} #$"), (0.02, 3.0)  # counts of what was predicted
_OTHERS = 0.01


def _least(figure: str) -> float:
    """What a figure that is no count may always differ by: percentages have two decimals, bounds and such one."""
    decimals = len(figure.partition(".")[2])
    if decimals == 2:
        return 1.0 if abs(float(figure)) >= 1 else 0.02
    return 0.5 if decimals == 1 else 0.002


def _tolerance(line: str, found: re.Match) -> tuple[float, float]:
    context = f"{line[: found.start()]}#{line[found.end() :]}"
    for pattern, tolerance in _TOLERANCES:
        if pattern.search(context):
            return tolerance
    if re.search(r"[.e]", found[0]):
        return _OTHERS, _least(found[0].replace(",", ""))
    pattern, tolerance = _PREDICTED
    return tolerance if pattern.search(context) else (0.0, 0.0)


def _alike(line: str, shown: re.Match, said: re.Match) -> bool:
    a, b = (float(each[0].replace(",", "")) for each in (shown, said))
    part, amount = _tolerance(line, shown)
    return abs(a - b) <= max(part * max(abs(a), abs(b)), amount) or a == b


def _lines(text: str) -> list[str]:
    """Lines with single spaces, without the steps of a search for sigma2 and the mark of the best setting."""
    text = re.sub(r"^ *(score variance|sigma2 of \S+) +[\d.]+ .*\n", "", text, flags=re.MULTILINE)
    lines = [" ".join(line.split()) for line in text.split("\n")]
    return [line.removesuffix(" *") for line in lines if line]


def differences(shown: str, said: str) -> list[str]:
    """Lines in which a page and a program differ: by words, or by figures beyond what machines differ by."""
    pages, programs = _lines(shown), _lines(said)
    wrong = []
    for line, other in zip(pages, programs, strict=False):
        figures, others = list(_FIGURE.finditer(line)), list(_FIGURE.finditer(other))
        same_words = _FIGURE.sub("#", line) == _FIGURE.sub("#", other)
        if not same_words or not all(_alike(line, a, b) for a, b in zip(figures, others, strict=True)):
            wrong += [f"- {line}", f"+ {other}"]
    common = min(len(pages), len(programs))
    return wrong + [f"- {line}" for line in pages[common:]] + [f"+ {line}" for line in programs[common:]]
