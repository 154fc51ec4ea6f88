"""Markdown pages as people use them: console sessions with what they print, and files to save.

The rule by which a page and a program are compared (`differences`). A page is wrong where it would mislead a reader,
not where another processor, compiler, BLAS or number of threads rounds otherwise:

- Words, labels and the number of lines agree exactly, and so do data that `tag` repeats and integers, which are counts
  of data or settings. White space does not matter.
- Counts of what a model predicted agree to 2 % or 5; passes to a factor of two; pivots that training adds to 5 %.
- P and its bounds agree to 0.2 %, since both are certified to 0.1 % of the optimum; certified gaps to 0.001.
- Percentages (precision, recall, F1, accuracy, intervals, errors of calibration) agree to 0.7 of a point, those of
  whole sequences, of which there are few, to 3 points.
- Probabilities, weights, scores and their sums agree to 2 % or 0.005. Pages that show them train with a tight tolerance
  (`--tolerance 1e-6`), as two models within 0.1 % of the optimum may differ in them by much more.
- Sizes of files agree to 20 %.
- Log-loss and Brier scores agree to 1 %, p-values to a factor of two or 0.001, and gains, nulls and bounds of terms
  to 10 %.
- Time and memory are free, and so are lines of progress and the star at the best of several settings. What a search
  for sigma2 found agrees to one step (a factor of 10 ** 0.5), and P after it to 2 %. Pages set sigma2 unless the search
  is what they show.

`tests/cli/test_docs.py` has a page that is wrong for each of these, and is found to be.
"""

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

# How far a figure may be from the one that a page shows, as (part of it, amount), by its line; `#` is the figure.
_ANY, _EXACT = (float("inf"), 0.0), (0.0, 0.0)
_PERCENTAGES, _OTHERS = (0.0, 0.7), (0.02, 0.005)
_DECISION = r"(selected|dropped|like noise|always kept)$"
_TOLERANCES = [
    (re.compile(r"# s\b|# [KMG]i?B\b|takes # times"), _ANY),  # time and memory
    (re.compile(r"# passes"), (0.5, 0.0)),
    (re.compile(r"# bytes for"), (0.2, 0.0)),
    (re.compile(r"^# of [\d,]+ labels of"), (0.02, 5.0)),
    (re.compile(r"labels of .* \(# %\) differ"), _PERCENTAGES),
    (re.compile(r"\([\d,]+ of #|\(tolerance #\)"), _EXACT),
    (re.compile(r"\(# of|right in .*#|^\S+( [\d.]+){4} #$"), (0.02, 5.0)),  # counts of what was predicted
    (re.compile(r"sequences right .*(?<!\+)(?<!-)#|± [\d.]+ #|± [\d.]+ [\d.]+ ± #"), (0.0, 3.0)),
    (re.compile(r"within # of the optimum|relative gap #| (viterbi|posterior) #$"), (0.0, 0.001)),
    (re.compile(r"^\w+ # pivots: "), (0.05, 0.0)),
    (re.compile(r"^\w+ [\d,]+ pivots: P #"), (0.01, 0.0)),  # before the last fit nothing is certified
    (re.compile(r"^P .*#"), (0.002, 0.0)),
    (re.compile(r"gain .*#"), (0.1, 0.01)),
    (re.compile(r"% .* [-+]\d+\.\d+ #( [-+]|$)"), (0.5, 0.001)),  # p of two models that are compared
    (re.compile(rf"\d\.\d\d # .*{_DECISION}"), (0.5, 0.001)),  # p of a term
    (re.compile(rf"#.*{_DECISION}"), (0.1, 0.1)),
    (re.compile(r"# % of the trace|mean length #"), (0.05, 0.0)),
    (re.compile(r"log-loss #|Brier score #"), (0.01, 0.0)),
]
_SEARCHED = [(re.compile(r"^sigma2: .*#.*;"), (0.7, 0.0)), (re.compile(r"^P .*#"), (0.02, 0.0))]  # after a search
_SEARCHED_LINE = re.compile(r"sigma2: .* held-out ")


def _tolerance(line: str, found: re.Match, searched: bool) -> tuple[float, float]:
    decimals = len(found[0].partition(".")[2])
    if "\t" in line:  # a line of data; what a model adds to it has more digits
        return _OTHERS if decimals > 2 else _EXACT
    context = " ".join(f"{line[: found.start()]}#{line[found.end() :]}".split())
    for pattern, tolerance in (*(_SEARCHED if searched else ()), *_TOLERANCES):
        if pattern.search(context):
            return tolerance
    if decimals == 2:
        return _PERCENTAGES
    return _OTHERS if decimals or "e" in found[0] else _EXACT


def _alike(line: str, shown: re.Match, said: re.Match, searched: bool) -> bool:
    a, b = (float(each[0].replace(",", "")) for each in (shown, said))
    part, amount = _tolerance(line, shown, searched)
    return abs(a - b) <= max(part * max(abs(a), abs(b)), amount) or a == b


_PROGRESS = re.compile(
    r"^(trainings|folds|training|sigma2 search|search|choosing pivots|\w+ shards)(, about \S+ (s|min|h) left)?: "
    r"(\d|pass |setting |round ).*\n",
    re.MULTILINE,
)


def without_progress(text: str) -> str:
    """Output without the lines that long work prints every 30 seconds, on a slow machine."""
    return _PROGRESS.sub("", text)


def _lines(text: str) -> list[str]:
    """Lines that are not blank, without progress and the star of the best setting."""
    lines = (line.removesuffix(" *").strip(" ") for line in without_progress(text).split("\n"))
    return [line for line in lines if line]


def _words(line: str) -> str:
    return " ".join(_FIGURE.sub("#", line).split())


def differences(shown: str, said: str) -> list[str]:
    """Lines in which a page and a program differ by the rule above."""
    pages, programs = _lines(shown), _lines(said)
    wrong, searched = [], any(map(_SEARCHED_LINE.match, pages))
    for line, other in zip(pages, programs, strict=False):
        figures, others = list(_FIGURE.finditer(line)), list(_FIGURE.finditer(other))
        same_words = _words(line) == _words(other)
        if not same_words or not all(_alike(line, a, b, searched) for a, b in zip(figures, others, strict=True)):
            wrong += [f"- {line}", f"+ {other}"]
    common = min(len(pages), len(programs))
    return wrong + [f"- {line}" for line in pages[common:]] + [f"+ {line}" for line in programs[common:]]
