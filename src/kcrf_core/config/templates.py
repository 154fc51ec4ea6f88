"""CRF++ feature templates and Wapiti's patterns, read into the dictionary that a YAML configuration would have given.

    U05:%x[-1,0]/%x[0,0]      a conjunction of column 0 one position before and at the position
    B                         transitions between labels: an edge term
    B01:%x[0,1]               transitions that look at the input: a feature of an edge-x term

In CRF++ a feature is the string that a line becomes, its name included, so lines whose strings can be the same share
weights. Lines that cannot meet another one are features of their own, compared part by part; the others make one
feature of the type `templates`, which compares strings. Values are compared as strings, so every column is categorical.
Without a `B` line that has no macro there is no edge term, as in CRF++.

Lines of Wapiti begin with u, b or *, which is both, and know more macros (`wapiti_patterns`). Their u lines make one
feature of the type `templates`; each b line that looks at the input is a categorical feature of its strings.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..errors import ConfigError
from .config import FeatureConfig
from .values import WIDEST_WINDOW
from .wapiti_patterns import Macro, is_wapiti_line, wapiti_pieces

# No key of a YAML configuration begins with U, B or *.
_TEMPLATE_LINE = re.compile(r"[UB*]|[ub]$|[ub][^\s:]*:.*%[xmtXMT]\[")
_MACRO = re.compile(r"%x\[\s*(-?[0-9]{1,9})\s*,\s*([0-9]{1,9})\s*\]")
PATTERNS = "templates"  # the feature that all u lines of Wapiti's patterns make

_WAPITI = re.compile(r"%[mtXMT]\[|%x\[\s*@")


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


def load_template(text: str, source: str) -> dict[str, Any]:
    """Return the configuration dictionary of a CRF++ template or of Wapiti's patterns."""
    lines = [line.strip() for line in text.split("\n")]
    if any(is_wapiti_line(line) or (line[:1] != "#" and _WAPITI.search(line)) for line in lines):
        return _load_patterns(text, source)
    unigrams: list[_Line] = []
    bigrams: list[_Line] = []
    edge = False
    for number, content in enumerate(text.split("\n"), start=1):
        content = content.strip()
        if not content or content.startswith("#"):
            continue
        try:
            if content[0] not in "UB":
                raise ConfigError(f"a template line starts with U or B, not '{content[0]}'")
            line = _Line(number, content)
        except ConfigError as error:
            raise ConfigError(f"{source}:{number}: {error}") from None
        if content[0] == "U":
            unigrams.append(line)
        elif line.macros:
            bigrams.append(line)
        else:
            edge = True  # several such lines mean the same
    if not any(line.macros for line in unigrams + bigrams):
        raise ConfigError(f"{source}: the template has no macro such as %x[0,0], so nothing would look at the input")
    meeting = _meeting(bigrams)
    if meeting:
        numbers = ", ".join(str(line.number) for line in meeting)
        raise ConfigError(
            f"{source}:{meeting[-1].number}: B lines that may become the same string ({numbers}) would share weights, "
            "which is not supported: give each a name of its own"
        )
    nodes, edges = _unigram_features(unigrams), [_feature(line) for line in bigrams]
    terms: list[dict[str, Any]] = []
    for kind, features in (("node", nodes), ("edge-x", edges)):
        if features:
            term = {"name": kind, "type": kind}
            terms.append(term if not (nodes and edges) else term | {"features": [one["name"] for one in features]})
    if edge:
        terms.append({"name": "edge", "type": "edge"})
    return {"features": nodes + edges, "terms": terms}


def _load_patterns(text: str, source: str) -> dict[str, Any]:
    unigrams: list[str] = []
    bigrams: list[str] = []
    edge = any_looks = False
    for number, content in enumerate(text.split("\n"), start=1):
        line = content.partition("#")[0].rstrip()
        if not line:
            continue
        line = line[0].lower() + line[1:]  # as Wapiti keeps it
        try:
            if not is_wapiti_line(line):
                raise ConfigError(f"a pattern starts with u, b or *, not '{line[0]}'")
            looks = any(isinstance(piece, Macro) for piece in pieces(line))
        except ConfigError as error:
            raise ConfigError(f"{source}:{number}: {error}") from None
        any_looks |= looks
        if line[0] != "b":
            unigrams.append(line)
        if line[0] != "u" and looks:
            bigrams.append(line)
        edge |= line[0] != "u" and not looks
    features: list[dict[str, Any]] = []
    terms: list[dict[str, Any]] = []
    if unigrams:
        features.append({"name": PATTERNS, "type": "templates", "templates": unigrams})
        terms.append({"name": "node", "type": "node", "features": [PATTERNS]})
    if bigrams:
        own = {f"pairs{number}": line for number, line in enumerate(bigrams)}
        features += [{"name": name, "type": "categorical", "templates": [line]} for name, line in own.items()]
        terms.append({"name": "edge-x", "type": "edge-x", "features": list(own)})
    if not any_looks:
        raise ConfigError(f"{source}: no pattern looks at the input: there is none such as u:%x[0,0]")
    if edge:
        terms.append({"name": "edge", "type": "edge"})
    return {"features": features, "terms": terms}


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


def _unigram_features(lines: Sequence[_Line]) -> list[dict[str, Any]]:
    meeting = {line.number for line in _meeting(lines)}
    shared = [line for line in lines if line.number in meeting or not line.macros]
    features = [_feature(line) for line in lines if line.number not in meeting and line.macros]
    if shared:
        names = {feature["name"] for feature in features}
        name = next(name for n in range(len(names) + 1) if (name := f"U{'+' * (n + 1)}") not in names)
        features.append({"name": name, "type": "templates", "templates": [line.text for line in shared]})
    return features


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
