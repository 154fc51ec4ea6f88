"""Models of ours as files that CRFsuite, CRF++ and Wapiti read, where their formats have a place for all of it.

None of them has scores of first and last labels. What stands at the first position of every sequence and nowhere else
takes them: the symbol beyond the end that a window sees there, or the attribute BOS. Templates get a line for it.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ..config import Macro, is_wapiti_line, pieces
from ..encoding import (
    AttributeFeature,
    CategoricalFeature,
    ConjunctionFeature,
    Feature,
    LineFeature,
    LookupFeature,
    RealFeature,
    TemplateFeature,
    literal_names,
)
from ..errors import ConfigError
from ..features import ExplicitTerm
from ..maps import ColumnOrder, SparseWeights, as_dense, matrix_of, without_zeros
from ..model import Model, packed_names, runtime_image
from ..scoring import DECODINGS
from . import PROGRAMS
from .crfpp_models import write_crfpp
from .crfsuite_models import CrfsuiteModel, write_crfsuite
from .foreign import sparse_rows
from .wapiti_models import wapiti_bytes, write_wapiti

# Names of attributes that by convention stand at first and at last positions, and nowhere else.
FIRST = ("__BOS__", "BOS", "<BOS>", "<s>")
LAST = ("__EOS__", "EOS", "<EOS>", "</s>")

CRFPP_REACH, WAPITI_REACH = 8, 4  # how far their templates look
SYMBOLS = {"crf++": "_B", "wapiti": "_x"}  # that begin what stands beyond the ends of a sequence
SEPARATORS = "/|~^;,_\x01\x02\x03"


def export_model(model: Model, program: str, quantize: str = "float32") -> tuple[bytes, list[str]]:
    """Return the file for one of `PROGRAMS`, with weights for kcrf-tag in the form `quantize`, and remarks."""
    dropped = ["thresholds of `kcrf guarantee` are left out: they are for `kcrf tag`"] * bool(model.guarantees)
    if program == "runtime":
        return runtime_image(model, quantize), dropped
    ways = {"posterior decoding": model.decode != DECODINGS[0], "a bonus for spans": model.span_bonus}
    lost = " and ".join(way for way, used in {**ways, "rules": model.rules}.items() if used)
    remarks = dropped + [
        f"{PROGRAMS[program]} decodes by Viterbi, without {lost}: some labels will differ from those of kcrf tag"
    ] * bool(lost)
    if program == "crfsuite":
        found, more = crfsuite_of(model)
        return write_crfsuite(found), [*remarks, *more]
    writer = _Templates(model, program)
    return (writer.wapiti() if program == "wapiti" else writer.crfpp()), remarks


def program_of(path: str | os.PathLike[str]) -> str | None:
    """Return the program that a file is meant for, by its name."""
    ending = os.path.splitext(os.fspath(path))[1].lower()
    by_ending = {".crfpp": "crf++", ".wap": "wapiti", ".kcrf": "runtime"}
    return by_ending.get(ending, ending[1:] if ending[1:] in PROGRAMS else None)


def _checked(model: Model, program: str) -> list[ExplicitTerm]:
    """Return the terms of a model; refuse what no format of theirs has a place for."""
    name = PROGRAMS[program]
    found = []
    if model.calibration is not None:
        raise ConfigError(
            f"{name} cannot store a calibration of probabilities: train a model without it", settings=["calibrate"]
        )
    if model.order > 1:
        raise ConfigError(f"{name} has no chains of second order: train a model of order 1", settings=["order"])
    if not all(np.isfinite(part).all() for part in (model.edges.transitions, model.edges.start, model.edges.end)):
        raise ConfigError(
            f"{name} cannot forbid transitions: train without 'scheme' and 'observed_transitions'",
            settings=["scheme", "observed_transitions"],
        )
    for term in model.terms:
        if type(term) is not ExplicitTerm or not term.is_linear:
            setting = "kernel" if term.name == "node" else "config"  # which may make it linear
            raise ConfigError(
                f"term '{term.name}' has a kernel, and {name} has none: train with a linear one", settings=[setting]
            )
        if term.clique.axes != 1 and program == "crfsuite":
            raise ConfigError(
                f"term '{term.name}' makes transitions depend on the input, which {name} cannot do: leave it out, or "
                "write the model for CRF++ or Wapiti",
                settings=["to"],
            )
        found.append(term)
    return found


def _dense_weights(term: ExplicitTerm, Y: int) -> np.ndarray:
    """Return weights for each label, [D, Y], or pair of labels, [D, Y^2]."""
    return term.by_labels(as_dense(matrix_of(term.weights)), Y)


def _weights_of_labels(term: ExplicitTerm, Y: int) -> SparseWeights:
    """Return weights for each label, those alone that are not zero."""
    return without_zeros(term.weights if term.clique.columns(Y) == Y else _dense_weights(term, Y))


def crfsuite_of(model: Model) -> tuple[CrfsuiteModel, list[str]]:
    """Return a model of ours as CRFsuite has it, and remarks for the user."""
    Y = len(model.labels)
    rows: dict[str, int] = {}
    none = np.zeros(0, np.int64)
    parts = [(none, none, np.zeros(0))]  # rows, labels and values of weights
    for term in _checked(model, "crfsuite"):
        names, weights = literal_names(model.encoding, term.features), _weights_of_labels(term, Y)
        numbers = np.array([rows.setdefault(names[k], len(rows)) for k in range(len(names))], dtype=np.int64)
        if len(np.unique(numbers)) < len(numbers):
            raise ConfigError("two features would have the same name in CRFsuite: give one of them another 'name'")
        parts.append((np.repeat(numbers, np.diff(weights.ends)), weights.columns, weights.values))
    remarks = []
    for scores, which, by_convention in ((model.edges.start, "first", FIRST), (model.edges.end, "last", LAST)):
        if np.ptp(scores):  # the same for all labels changes nothing
            name = _boundary(model, which == "first", rows, by_convention)
            parts.append((np.full(Y, rows.setdefault(name, len(rows))), np.arange(Y), scores))
            remarks.append(
                f"scores of {which} labels are part of '{name}', which must stand at {which} positions alone"
            )
    numbers, columns, values = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    summed = sparse_rows(numbers, columns, values, (len(rows), Y))
    used = np.flatnonzero(np.diff(summed.ends) > 0)
    summed = summed.take(used)
    attributes = [name.encode() for name in rows]
    attributes = [attributes[k] for k in used.tolist()]
    bad = next((name for name in attributes if b"\0" in name), None)
    if bad is not None:
        raise ConfigError(f"the attribute {bad!r} has a zero byte, which CRFsuite cannot hold")
    edges = np.ascontiguousarray(model.edges.transitions)
    arrays = *packed_names(attributes), summed.ends, summed.columns, summed.values, edges, edges != 0
    return CrfsuiteModel(model.labels, *arrays), remarks


def _boundary(model: Model, first: bool, rows: dict[str, int], by_convention: Sequence[str]) -> str:
    """Return the attribute that stands at the first, or last, position of every sequence and nowhere else."""
    for feature in model.encoding.features:
        if type(feature) is not CategoricalFeature:
            continue
        for offset in feature.config.seen:
            if offset and (offset < 0) == first:
                return f"{feature.config.name}[{offset}]=_B{offset:+d}"  # in data, whether or not a term has it
    for name in by_convention:
        if name in rows:
            return name
    which = "first" if first else "last"
    raise ConfigError(
        f"CRFsuite has no weights for {which} labels, and no attribute occurs at {which} positions only: give the data "
        f"such an attribute, {by_convention[1]}, or train with a term of the type transitions instead of edge"
    )


class _Templates:
    """Lines and strings for CRF++ or Wapiti."""

    def __init__(self, model: Model, program: str):
        self.model, self.name = model, PROGRAMS[program]
        self.wants_wapiti, self.symbol = program == "wapiti", SYMBOLS[program]
        self.most = WAPITI_REACH if self.wants_wapiti else CRFPP_REACH
        self.lines: Counter[str] = Counter()  # a string counts once for each line that gives it
        self.node: dict[str, np.ndarray] = {}  # weights [Y] of strings
        self.pairs: dict[str, np.ndarray] = {}  # weights [Y^2]
        self._own_lines = [line for feature in model.encoding.features for line in feature.config.templates]
        if model.encoding.attributes:
            raise ConfigError(
                f"the model works on attributes, and {self.name} on columns: write it for CRFsuite", settings=["to"]
            )
        Y = len(model.labels)
        for term in _checked(model, program):
            self._add_term(term, _dense_weights(term, Y))
        for scores, letter, row, symbol in ((model.edges.start, "first", -1, "-1"), (model.edges.end, "last", 1, "+1")):
            if np.ptp(scores):
                name = self._prefix("u", letter)
                self.lines[f"{name}%x[{row},0]"] = 1
                self.node[f"{name}{self.symbol}{symbol}"] = scores
        if model.edges.transitions.any():
            stars = (line for line in self._own_lines if line[0] == "*" and "%" not in line)
            constant = next(stars, self._prefix("b", "").rstrip(":"))
            times = self.lines[constant] = max(self.lines[constant], 1)
            self.pairs[constant] = model.edges.transitions.reshape(Y * Y) / times
        twice = [line for line, times in self.lines.items() if times > 1 and line[0] == "*" and "%" in line]
        if twice:
            raise ConfigError(f"the template has the line '{twice[0]}' twice, with weights of pairs: leave one out")

    def _prefix(self, kind: str, name: str) -> str:
        """Return the beginning of a new line, which no other line has."""
        taken = [
            found[0][1:] for line in (*self._own_lines, *self.lines) if isinstance((found := pieces(line))[0], str)
        ]
        number = ""
        while any(
            f"{name}{number}:".startswith(text) or text.startswith(f"{name}{number}:") for text in filter(None, taken)
        ):
            number = str(int(number or 0) + 1)
        return f"{kind if self.wants_wapiti else kind.upper()}{name}{number}:"

    def _add_term(self, term: ExplicitTerm, weights: np.ndarray) -> None:
        target = self.node if term.clique.axes == 1 else self.pairs
        used = np.asarray(weights.any(axis=1))
        order = ColumnOrder.of(self.model.encoding.inputs(self.model.encoding.empty_dataset(), term.features))
        field = 0
        for view in self.model.encoding.views(term.features):
            feature, places = view.feature, view.places
            parts = feature.parts if isinstance(feature, ConjunctionFeature) else (feature,)
            if any(isinstance(part, LookupFeature) for part in parts):
                raise ConfigError(
                    f"'{feature.config.name}' is looked up in a table, which {self.name} has no place for: write the "
                    "model for CRFsuite, or leave it out",
                    settings=["to"],
                )
            if isinstance(feature, RealFeature):
                raise ConfigError(
                    f"'{feature.config.name}' is made of numbers, and {self.name} compares strings: write the model "
                    "for CRFsuite, or leave it out",
                    settings=["to"],
                )
            if isinstance(feature, AttributeFeature):
                firsts = [order.first_attribute]
            else:
                firsts = order.fields[field : field + len(places)].tolist()
                field += len(places)
            found = self._lines_of(feature, places, term.clique.axes == 1)
            for first, (lines, strings) in zip(firsts, found, strict=True):
                self.lines |= Counter(lines)  # the larger number: labels and pairs of labels share * lines
                for code, string in enumerate(strings):
                    if used[first + code]:
                        row = weights[first + code]
                        target[string] = target[string] + row if string in target else row

    def _lines_of(
        self, feature: Feature, places: Sequence[int], node: bool
    ) -> Iterator[tuple[Iterable[str], list[str]]]:
        """Yield a line for each place in a feature's window, or all lines of its bag at once, with their strings."""
        if isinstance(feature, TemplateFeature | LineFeature):
            lines = feature.config.templates
            if any(is_wapiti_line(line) != self.wants_wapiti for line in lines):
                other = PROGRAMS["crf++" if self.wants_wapiti else "wapiti"]
                again = ", or train with its template as Wapiti reads it" if self.wants_wapiti else ""
                settings = ["to", "wapiti"] if self.wants_wapiti else ["to"]
                raise ConfigError(
                    f"the template is one of {other}: write the model for {other}{again}", settings=settings
                )
            yield lines, list(feature.vocabulary.values)
            return
        if isinstance(feature, ConjunctionFeature):
            parts = [(part, offset) for part, (_, offset) in zip(feature.parts, feature.config.parts, strict=True)]
            values = (value for part in feature.parts for value in part.vocabulary.values)
            free = sorted(set(SEPARATORS).difference("_xB+-", *values), key=SEPARATORS.index)
            if not free:
                name = feature.config.name
                raise ConfigError(f"values of '{name}' contain every character that could separate them")
            separator, several, reach = free[0], False, feature.reach
        else:
            assert isinstance(feature, CategoricalFeature)
            parts, separator, several, reach = [(feature, 0)], "", len(feature.config.seen) > 1, feature.reach
        # Without characters that mean something in a template.
        title = re.sub(r"[%:\s#]", "_", re.sub(r"^[UBub]", "", feature.config.name))
        for w in places:
            name = self._prefix("u" if node else "b", title + (f".{w}" if w or several else ""))
            macros = []
            for part, back in parts:
                config, offset = part.config, back + feature.config.seen[w]
                if config.transform != "identity":
                    raise ConfigError(
                        f"'{config.name}' uses the transform '{config.transform}', which {self.name} lacks: "
                        "train with columns as they are, or add its values to the data as a column",
                        settings=["plain"],
                    )
                if abs(offset) > self.most:
                    raise ConfigError(
                        f"'{config.name}' looks {abs(offset)} positions away, and {self.name} at most {self.most}: "
                        "train with a smaller window",
                        settings=["window"],
                    )
                macros.append(f"%x[{offset},{part.column}]")
            strings = []
            for code in range(feature.field_sizes[w]):
                codes = feature.part_codes(w, code) if isinstance(feature, ConjunctionFeature) else (code,)
                pairs = zip(parts, codes, strict=True)
                texts = [self._value(part.vocabulary.values, own, reach) for (part, _), own in pairs]
                strings.append(name + separator.join(texts))
            yield [name + separator.join(macros)], strings

    def _value(self, values: Sequence[str], code: int, reach: int) -> str:
        if code < len(values):
            if re.fullmatch(rf"{self.symbol}[+-][1-8]", values[code]):
                raise ConfigError(
                    f"{self.name} takes the value {values[code]!r} for the end of a sequence: replace it in the data"
                )
            return values[code]
        beyond = code - len(values)
        return self.symbol + (f"-{beyond + 1}" if beyond < reach else f"+{beyond - reach + 1}")

    def _width(self) -> int:
        macros = [piece for line in self.lines for piece in pieces(line) if isinstance(piece, Macro)]
        return max((one.column + 1 for one in macros), default=1)

    def crfpp(self) -> bytes:
        for string in (*self.node, *self.pairs):
            if re.search(r"[ \t\n\0]", string):  # other white space is a part of values there, too
                raise ConfigError(f"the string {string!r} has a space, which CRF++ takes for the end of a column")
        strings = [*self.node, *self.pairs]
        weights = [*self.node.values(), *self.pairs.values()]
        lines = sorted(self.lines.elements(), key=lambda line: line[0] != "U")  # U lines first, as CRF++ does
        return write_crfpp(self.model.labels, lines, strings, weights, self._width())

    def wapiti(self) -> bytes:
        Y = len(self.model.labels)
        strings, weights = [], []
        for string in dict.fromkeys((*self.node, *self.pairs)):
            parts = []
            if string[0] != "b":
                parts.append(self.node.get(string, np.zeros(Y)))
            if string[0] != "u":
                parts.append(self.pairs.get(string, np.zeros(Y * Y)))
            strings.append(wapiti_bytes(string))
            weights.append(np.concatenate(parts))
        return write_wapiti(self.model.labels, list(self.lines.elements()), strings, weights, self._width() - 1)
