"""A line at the head of a sequence says how much the sequence weighs in training.

That is `# weight=2.5` in files of columns and `@weight:2.5` among attributes.
"""

from __future__ import annotations

import re

import numpy as np

from ..errors import DataError

_COMMENT = re.compile(rb"^(?:\xef\xbb\xbf)?(# ?weight=([^\r\n]*))", re.MULTILINE)
_NUMBER = re.compile(r"[0-9.eE+-]+\Z")


def parse_weight(text: str, mark: str, example: str, name: str, line: int) -> float:
    """A finite number that is not negative."""
    try:
        weight = float(text) if _NUMBER.match(text) else np.nan
    except ValueError:
        weight = np.nan
    if not 0 <= weight < np.inf:
        raise DataError(f"{mark} {text!r} is not a finite number >= 0 (write it like {example})", name, line)
    return weight


def sequence_weights(
    weights: dict[int, float], numbers: np.ndarray, offsets: np.ndarray, mark: str, name: str
) -> np.ndarray | None:
    """Weights [S] of sequences, from those that stand in the line above their first; None where there are none."""
    if not weights:
        return None
    out = np.ones(len(offsets) - 1)
    sequence_at = {line: s for s, line in enumerate(numbers[offsets[:-1]].tolist())}
    for line, weight in weights.items():
        if line + 1 not in sequence_at:
            raise DataError(f"{mark} with no sequence below it (remove the line)", name, line)
        out[sequence_at[line + 1]] = weight
    return out


def take_comments(data: bytes, name: str, first_line: int) -> tuple[bytes, dict[int, float]]:
    """Text with `# weight=` lines made blank, byte for byte as long as before, and their values by line number."""
    weights: dict[int, float] = {}
    out, counted, line = bytearray(data), 0, first_line
    for found in _COMMENT.finditer(data):
        line += data.count(b"\n", counted, found.start())
        counted = found.start()
        above = data[data.rfind(b"\n", 0, max(found.start() - 1, 0)) + 1 : found.start()]
        if above.strip(b" \r\n\xef\xbb\xbf"):
            raise DataError("# weight= stands only at the head of a sequence, and once", name, line)
        text = found.group(2).decode("utf-8").strip(" ")
        weights[line] = parse_weight(text, "# weight=", "# weight=2.5", name, line)
        out[found.start(1) : found.end()] = b" " * (found.end() - found.start(1))
    return bytes(out), weights
