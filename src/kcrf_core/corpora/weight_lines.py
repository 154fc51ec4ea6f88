"""A line at the head of a sequence says how much the sequence weighs in training.

That is `# weight=2.5` in files of columns and `@weight:2.5` among attributes.
"""

from __future__ import annotations

import re

import numpy as np

from ..errors import DataError
from .lines import Block

_NUMBER = re.compile(r"[0-9.eE+-]+\Z")


class WeightLines:
    """Form of the lines that weigh sequences in one format."""

    def __init__(self, mark: str, pattern: bytes, before: str = "", spaces: str = ""):
        self.mark = mark  # in messages
        self.example = f"{mark}{before}2.5"
        self.spaces = spaces  # that may stand around the number
        # The line, in it the number, and behind that nothing but TABs.
        self.pattern = re.compile(rb"^(?:\xef\xbb\xbf)?(%b)" % pattern, re.MULTILINE)


def parse_weight(text: str, mark: str, example: str, name: str, line: int) -> float:
    """Return a finite number that is not negative."""
    try:
        weight = float(text) if _NUMBER.match(text) else np.nan
    except ValueError:
        weight = np.nan
    if not 0 <= weight < np.inf:
        raise DataError(f"{mark} {text!r} is not a finite number >= 0 (write it like {example})", name, line)
    return weight


def sequence_weights(
    weights: dict[int, tuple[int, float]], numbers: np.ndarray, offsets: np.ndarray, form: WeightLines, name: str
) -> np.ndarray | None:
    """Return weights [S] of sequences, from those that stand above their first lines; None where there are none.

    `weights` are, by the line of each, the line that its sequence should begin with and what it weighs.
    """
    if not weights:
        return None
    out = np.ones(len(offsets) - 1)
    sequence_at = {line: s for s, line in enumerate(numbers[offsets[:-1]].tolist())}
    for line, (below, weight) in weights.items():
        if below not in sequence_at:
            raise DataError(f"{form.mark} with no sequence below it (remove the line)", name, line)
        out[sequence_at[below]] = weight
    return out


def taken_weights(
    block: Block, form: WeightLines, name: str, comments: tuple[str, ...] = (), header: int | None = None
) -> tuple[bytes, dict[int, tuple[int, float]]]:
    """Return the bytes of a block with lines of weights made blank, byte for byte as long as before, and the weights.

    These come by line number, with the line that a sequence should begin with: the next that is no comment.
    `header` is the place of the line with the names of columns, if that is there: a sequence may begin below it.
    """
    data, marks = block.data, tuple(comment.encode() for comment in comments)
    weights: dict[int, tuple[int, float]] = {}
    out, counted, line = bytearray(data), 0, block.first_line
    for found in form.pattern.finditer(data):
        line += data.count(b"\n", counted, found.start())
        counted = found.start()
        above, below, end = line, line + 1, found.start()
        while end > 0:
            begin = data.rfind(b"\n", 0, end - 1) + 1
            if begin == header:
                break
            before = data[begin:end]
            above -= 1
            if above in weights or not (marks and before.startswith(marks)):
                if before.strip(b" \t\r\n\xef\xbb\xbf") or above in weights:
                    raise DataError(
                        f"{form.mark} must come before the first line of a sequence, and only once", name, line
                    )
                break
            end -= len(before)
        if found.group(3).strip(b"\t"):
            raise DataError(f"{form.mark} must be on a line of its own", name, line)
        text = (found.group(2) or b"").decode("utf-8").strip(form.spaces)
        weight = parse_weight(text, form.mark, form.example, name, line)
        out[found.start(1) : found.end(1)] = b" " * (found.end(1) - found.start(1))
        start = data.find(b"\n", found.end()) + 1
        while marks and 0 < start < len(data) and data.startswith(marks, start) and not form.pattern.match(data, start):
            start, below = data.find(b"\n", start) + 1, below + 1
        weights[line] = below, weight
    return bytes(out), weights
