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
from dataclasses import dataclass
from typing import Any

from ..errors import ConfigError
from .config import FeatureConfig
from .values import WIDEST_WINDOW
from .wapiti_patterns import Macro, is_wapiti_line, wapiti_pieces

# No key of a YAML configuration begins with U, B or *.
_TEMPLATE_LINE = re.compile(r"[UB*]|[ub]$|[ub][^\s:]*:.*%[xmtXMT]\[")
_MACRO = re.compile(r"%x\[\s*(-?[0-9]{1,9})\s*,\s*([0-9]{1,9})\s*\]")
PATTERNS = "templates"  # the feature that all u lines of Wapiti's patterns make

_NAME = re.compile(r"[^:%\s]*")
_WAPITI = re.compile(r"%[mtXMT]\[|%x\[\s*@")


@dataclass(frozen=True)
class _Line:
    number: int
    text: str

    @property
    def name(self) -> str:
        found = _NAME.match(self.text)
        assert found is not None  # it matches nothing at all, too
        return found.group()

    @property
    def macros(self) -> list[Macro]:
        return [piece for piece in pieces(self.text) if not isinstance(piece, str)]

    @property
    def beginning(self) -> str:
        """Text before the first macro."""
        return _MACRO.split(self.text, maxsplit=1)[0]


def looks_like_template(text: str) -> bool:
    """Return True if the first line that is no comment is that of a template."""
    for line in text.split("\n"):
        line = line.strip()
        if line and not line.startswith("#"):
            return bool(_TEMPLATE_LINE.match(line))
    return False


def pieces(text: str) -> list[str | Macro]:
    """A template line as literal text and macros, in turn."""
    if is_wapiti_line(text):
        own = wapiti_pieces(text)
        _check_rows(own)
        return own
    if "%" in _MACRO.sub("", text):
        raise ConfigError(f"cannot read '{text}' (macros look like %x[-1,0])")
    out: list[str | Macro] = []
    end = 0
    for found in _MACRO.finditer(text):
        out += [text[end : found.start()]] * (found.start() > end)
        out.append(Macro(int(found[1]), int(found[2])))
        end = found.end()
    _check_rows(out)
    return out + [text[end:]] * (end < len(text))


def _check_rows(found: Sequence[str | Macro]) -> None:
    for macro in found:
        if isinstance(macro, Macro) and abs(macro.row) > WIDEST_WINDOW:
            raise ConfigError(f"%{macro.command}[{macro.row},...] looks further than {WIDEST_WINDOW} positions")


def load_template(text: str, source: str) -> dict[str, Any]:
    """A configuration dictionary out of a CRF++ template or Wapiti's patterns."""
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
        line = _Line(number, content)
        try:
            _check_kind(content)
            looks = bool(line.macros)
        except ConfigError as error:
            raise ConfigError(f"{source}:{number}: {error}") from None
        if content[0] == "U":
            unigrams.append(line)
        elif looks:
            bigrams.append(line)
        else:
            edge = True  # several such lines say the same
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


def wapiti_lines(text: str) -> list[tuple[int, str]]:
    """List patterns of a file with their line numbers, as Wapiti keeps them: no comments, the first letter small."""
    found = [(number, line.partition("#")[0].rstrip()) for number, line in enumerate(text.split("\n"), start=1)]
    return [(number, line[0].lower() + line[1:]) for number, line in found if line]


def _load_patterns(text: str, source: str) -> dict[str, Any]:
    unigrams: list[str] = []
    bigrams: list[str] = []
    edge = any_looks = False
    for number, line in wapiti_lines(text):
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


def _check_kind(text: str) -> None:
    if text[0] not in "UB":
        raise ConfigError(f"a template line starts with U or B, not '{text[0]}'")


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
    macros = line.macros
    if len(macros) == 1:
        column, window = f"c{macros[0].column}", (macros[0].row,)
        return (feature.columns, feature.window, feature.transform) == ((column,), window, "identity")
    return feature.parts == tuple((f"c{one.column}", one.row) for one in macros) and feature.window == (0,)
