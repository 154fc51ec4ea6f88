"""CRF++ feature templates, read into the dictionary that a YAML configuration would have given.

    U05:%x[-1,0]/%x[0,0]      a conjunction of column 0 one position before and at the position
    B                         transitions between labels: an edge term

Each `U` line is one feature; values are compared as strings, so every column is categorical. Without a
`B` line there is no edge term, as in CRF++. The text between macros has no say in which rows share a value.
"""

from __future__ import annotations

import re
from typing import Any

from .config import WIDEST_WINDOW
from .errors import ConfigError

_MACRO = re.compile(r"%x\[\s*(-?\d+)\s*,\s*(\d+)\s*\]")
_NAME = re.compile(r"[^:%\s]*")
_TEMPLATE_LINE = re.compile(r"^(U[^:\s]*:.*%x\[|U[^:\s]*$|B[^:\s]*(:|$))")


def looks_like_template(text: str) -> bool:
    """Whether the first line that says anything is a template's."""
    for line in text.split("\n"):
        line = line.strip()
        if line and not line.startswith("#"):
            return bool(_TEMPLATE_LINE.match(line))
    return False


def load_template(text: str, source: str) -> dict[str, Any]:
    """A configuration dictionary out of a CRF++ template."""
    features: list[dict[str, Any]] = []
    names: dict[str, int] = {}
    edge = False
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.strip()
        where = f"{source}:{number}"
        if not line or line.startswith("#"):
            continue
        name = _NAME.match(line).group()
        body = line[len(name) :]
        if line[0] not in "UB":
            raise ConfigError(f"{where}: a template line starts with U or B, not '{line[0]}'")
        parts = [(int(row), int(column)) for row, column in _MACRO.findall(body)]
        if "%" in _MACRO.sub("", body):
            raise ConfigError(f"{where}: cannot read '{line}' (macros look like %x[-1,0])")
        if line[0] == "B":
            if parts:
                raise ConfigError(f"{where}: bigram templates that look at the input are not supported yet")
            edge = True
            continue
        if not parts:
            raise ConfigError(f"{where}: '{line}' has no macro such as %x[0,0], so it would say nothing")
        for row, _column in parts:
            if abs(row) > WIDEST_WINDOW:
                raise ConfigError(f"{where}: %x[{row},...] looks further than {WIDEST_WINDOW} positions")
        if name in names:
            raise ConfigError(
                f"{where}: '{name}' stands in line {names[name]} too; lines that share a name share weights "
                "in CRF++, which is not supported: give it a name of its own"
            )
        names[name] = number
        if len(parts) == 1:
            row, column = parts[0]
            features.append({"name": name, "column": f"c{column}", "type": "categorical", "window": [row]})
        else:
            features.append(
                {"name": name, "conjunction": [f"c{column}[{row}]" for row, column in parts], "window": [0]}
            )
    if not features:
        raise ConfigError(f"{source}: the template has no U line, so nothing would look at the input")
    terms: list[dict[str, Any]] = [{"name": "node", "type": "node"}]
    if edge:
        terms.append({"name": "edge", "type": "edge"})
    return {"features": features, "terms": terms}
