"""A configuration as YAML text that people read: a line for each feature and term, with comments above."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import yaml

_NUMBERED = re.compile(r"(.*?)(0|[1-9][0-9]*)")


def configuration_text(raw: Mapping[str, Any], comments: Sequence[str] = ()) -> str:
    """YAML text that reads as this raw configuration."""
    lines = [f"# {comment}".rstrip() for comment in comments]
    for key, value in raw.items():
        if isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value):
            lines += [f"{key}:", *(f"  - {_flow(_shortened(entry))}" for entry in value)]
        else:
            lines.append(f"{key}: {_flow(value)}")
    return "\n".join(lines) + "\n"


def _flow(value: Any) -> str:
    """A value in one line."""
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=math.inf)
    return text.removesuffix("\n").removesuffix("\n...")


def _shortened(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with ranges such as v1..v300 in the place of long lists of columns."""
    columns = entry.get("columns")
    return {**entry, "columns": ranges(columns)} if isinstance(columns, list) else dict(entry)


def ranges(names: Sequence[str]) -> list[str]:
    """Names in which runs such as v1, v2, v3 are written as v1..v3.

    >>> ranges(["c0", "c1", "c2", "word", "c7"])
    ['c0..c2', 'word', 'c7']
    """

    def run_of(numbered: tuple[int, str]) -> tuple[str, int]:
        place, name = numbered
        found = _NUMBERED.fullmatch(name)
        return (name, -1) if found is None else (found[1], int(found[2]) - place)

    out: list[str] = []
    for (stem, shift), group in groupby(enumerate(names), run_of):
        run = [name for _, name in group]
        whole = len(run) > 2 and shift >= 0 - len(names) and ".." not in stem
        out += [f"{run[0]}..{run[-1]}"] if whole else run
    return out
