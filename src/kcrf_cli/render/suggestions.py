"""Sequences to label next, with suggested labels, as `kcrf next` writes them.

They are lines in the format of the pool, or texts for labelling tools, which `kcrf_core.corpora` reads. Offsets count
characters. The score of a span is the smallest marginal probability of its labels.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import click
import numpy as np

from kcrf_core._version import __version__
from kcrf_core.corpora import (
    CodedColumn,
    Corpus,
    DocumentBlock,
    Format,
    ParsedBlock,
    column_place,
    joined,
)
from kcrf_core.errors import DataError
from kcrf_core.model import Model
from kcrf_core.scoring import OUTSIDE, SpanFinder, detect_scheme, readable_place, split_label
from kcrf_core.selection import Judged, Pool, PoolJudge
from kcrf_core.system import counted

from .labelled_text import found_parts, reading_rules

COLUMNS = "columns"
FREE = "?"  # the mark of missing labels, unless the training data has one


@dataclass(frozen=True)
class Suggestion:
    """A text to label."""

    text: str
    spans: Sequence[tuple[int, int, str, float]] | None = None  # begin, end, label, score; None without a model
    probability: float | None = None  # of all labels together
    rules: Mapping[str, object] = field(default_factory=dict)  # for reading it


def _labelstudio(found: Suggestion, why: str) -> dict[str, Any]:
    tags, spans = {"from_name": "label", "to_name": "text", "type": "labels"}, found.spans or ()
    values = ({"start": a, "end": b, "text": found.text[a:b], "labels": [label]} for a, b, label, _ in spans)
    result = [
        {"id": f"s{number}", **tags, "score": span[3], "value": value}
        for number, (span, value) in enumerate(zip(spans, values, strict=True), 1)
    ]
    prediction = {"model_version": f"kcrf {__version__}", "score": found.probability, "result": result}
    more = {} if found.spans is None else {"predictions": [prediction]}
    return {"data": {"text": found.text, "why": why, **found.rules}, **more}


def _doccano(found: Suggestion, why: str) -> dict[str, Any]:
    label = {} if found.spans is None else {"label": [span[:3] for span in found.spans], "score": found.probability}
    return {"text": found.text, **label, **found.rules, "why": why}


def _prodigy(found: Suggestion, why: str) -> dict[str, Any]:
    keys, spans = ("start", "end", "label", "score"), found.spans
    label = {} if spans is None else {"spans": [dict(zip(keys, span, strict=True)) for span in spans]}
    return {"text": found.text, **label, **found.rules, "meta": {"score": found.probability, "why": why}}


# Writers of objects on lines of their own, or in an array.
TOOLS: dict[str, tuple[Callable[[Suggestion, str], dict[str, Any]], str, str, str]] = {
    "labelstudio": (_labelstudio, "[\n", ",\n", "\n]\n"),
    "doccano": (_doccano, "", "\n", "\n"),
    "prodigy": (_prodigy, "", "\n", "\n"),
}


def brat_files(found: Sequence[Suggestion], source: str) -> tuple[str, str]:
    """Return a text with a line for each of those given, and its annotations, with scores as notes."""
    text, out, number = "", list[str](), 0
    for one in found:
        line = re.sub("[\r\n]", " ", one.text) + "\n"
        for begin, end, label, score in one.spans or ():
            number += 1
            if any(map(str.isspace, label)):
                raise DataError(f"brat has no labels with white space: {label!r}", source)
            out.append(f"T{number}\t{label} {len(text) + begin} {len(text) + end}\t{line[begin:end]}\n")
            out.append(f"#{number}\tAnnotatorNotes T{number}\t{score:g}\n")
        text += line
    return text, "".join(out)


class Batch:
    """Sequences to label, chosen among those of all blocks of a pool."""

    def __init__(
        self,
        model: Model | None,
        format_: Format,
        count: int,
        strategy: str,
        cost: str,
        group: str | None,
        to: str | None,
    ):
        free = self._free = format_.no_value or (model and model.encoding.unobserved) or FREE
        if model is not None and free in model.labels:
            raise click.UsageError(f"'{free}', the mark of missing labels, is a label of the model")
        self._judge, self._pool = PoolJudge(model, strategy, cost, free), Pool(count)
        self.unknown = Counter[str]()  # labels of the pool that the model does not know
        self._model, self._format, self._group, self._score = model, format_, group, f"{strategy} {{:.3g}} per {cost}"
        self._header, self.to = b"", to
        self._word: int | None = None  # place of the column of words
        self._sequences = self.closed = 0  # that were added, and those among them that are left out

    def judged(self, parse: Callable[[], ParsedBlock]) -> tuple[ParsedBlock, list[Judged]]:
        """Parse a block, and score its sequences if labels may be missing."""
        parsed = parse()
        labelled = isinstance(parsed.block, DocumentBlock) and parsed.block.labelled
        return parsed, [] if labelled else self._judge.parts(parsed.corpus)

    def add(self, parsed: ParsedBlock, judged: list[Judged]) -> tuple[str, ...]:
        """Take the sequences of a block; return remarks about them."""
        corpus, s, groups = parsed.corpus, 0, None
        if self._group is not None:
            names = corpus.header or corpus.names or [f"c{c}" for c in range(corpus.width)]
            if self._model is not None:
                names = self._model.encoding.input_names(corpus)
            values = corpus.columns[column_place("group", self._group, names)]
            groups = [values[begin] for begin in corpus.offsets[:-1].tolist()]
        content: Any = self._contents(parsed, judged) if judged else None
        for part in judged:
            self._pool.add(part, partial(content, s, part), groups and groups[s:])
            s += len(part.scores)
        self.closed += corpus.sequences - sum(int(part.open.sum()) for part in judged)
        self._sequences += corpus.sequences
        return *parsed.corpus.remarks, *(one for part in judged if part.found for one in part.found.remarks)

    def _contents(self, parsed: ParsedBlock, judged: list[Judged]) -> Callable[[int, Judged, int], tuple[str, Any]]:
        """Return a function of a part's first sequence, the part and a place in it: why, and lines or a suggestion."""
        block, corpus, model = parsed.block, parsed.corpus, self._model
        texts = [one for one in block.documents if one[1]] if isinstance(block, DocumentBlock) else None
        self.to = self.to or (COLUMNS if texts is None else "prodigy")
        labelled = model is not None and model.encoding.with_labels(corpus)
        if self._word is None and corpus.attributes is None:
            self._word = readable_place(corpus.columns[:-1] if labelled else corpus.columns)
        words: Any = None if self._word is None else corpus.columns[self._word]
        if self.to != COLUMNS and words is None:
            raise click.UsageError(f"--to {self.to} is for words, and {corpus.source} has no column of them")
        names, data, lines = model.labels if model else (), block.data, list[bytes]()
        spans = model.encoding.span_labels if model else ()
        others, unknown = self._unknown_labels(corpus, names, labelled)
        names = *names, *others
        if detect_scheme(spans):
            spans = *spans, *(label if split_label(label) else OUTSIDE for label in others)
        finder = SpanFinder(spans) if detect_scheme(spans) else None
        header = -1 if parsed.header_end is None else data.count(b"\n", 0, parsed.header_end)
        if self.to == COLUMNS:
            if model is not None:
                numbers = np.concatenate([part.found.labels for part in judged if part.found])
                numbers = np.where(unknown < 0, numbers, unknown).astype(np.int32)
                data = self._format.labelled(parsed, names, numbers, labelled)
            lines = data[block.begin :].split(b"\n")
            self._header = lines[header] + b"\n" if header >= 0 else self._header

        def content(before: int, part: Judged, own: int) -> tuple[str, Any]:
            s = before + own
            first, last = corpus.offsets[s : s + 2].tolist()
            why = f"line {corpus.lines[first]}" if texts is None else f"text {self._sequences + s + 1}"
            why += f": {counted(last - first, 'position')}"
            found: Any = part.found
            if found is not None:
                rows = slice(*found.offsets[own : own + 2].tolist())
                node, labels = found.marginals[rows], found.labels[rows]
                sure = node[np.arange(len(node)), labels]
                t = int(sure.argmin())
                best = ", ".join(f"{names[y]} {node[t, y]:.2f}" for y in np.argsort(-node[t], kind="stable")[:2])
                place = f"position {t + 1}" if words is None else f"'{words[first + t]}'"
                why += f", {self._score.format(part.scores[own])}; least certain: {place}, {best}"
            if self.to == COLUMNS:
                begin = corpus.lines[first - 1] - block.first_line + 1 if first else header + 1
                taken = lines[begin : corpus.lines[last - 1] - block.first_line + 1]
                while not taken[0].strip(parsed.layout.blanks + b"\r"):
                    taken = taken[1:]
                return why, b"\n".join([*taken, b"" if parsed.layout.sequence else b"\n"])
            text, places = texts[s] if texts else joined(words[first:last], " ")
            rules = reading_rules(text, places, model is not None and finder is None)
            if found is None:
                return why, Suggestion(text, rules=rules)
            labels = np.where(unknown[first:last] < 0, labels, unknown[first:last])
            parts = [
                (places[a][0], places[b - 1][1], label, round(float(sure[a:b].min()), 6))
                for a, b, label in found_parts(names, finder, labels)
            ]
            probability = round(float(np.exp(found.log_probabilities[own])), 6)
            return why, Suggestion(text, parts, probability, rules)

        return content

    def _unknown_labels(
        self, corpus: Corpus, names: Sequence[str], labelled: bool
    ) -> tuple[tuple[str, ...], np.ndarray]:
        """Return labels that are not among the model's, and their numbers behind those, [N].

        The number is -1 at other positions.
        """
        if not labelled:
            return (), np.full(corpus.positions, -1)
        given = CodedColumn.of(corpus.columns[-1])
        others = tuple(sorted(given.present.difference(names, [self._free])))
        numbers = given.numbered(others)
        self.unknown.update({label: int((numbers == k).sum()) for k, label in enumerate(others)})
        return others, np.where(numbers < 0, -1, numbers + len(names))

    def chosen(self) -> list[tuple[str, Any]]:
        """Return why sequences were chosen, and their lines or suggestions."""
        found = [(*one.content, left) for one, left in self._pool.chosen()]
        new = (f"; {100 * left:.0f} % unlike those above" if number else "" for number, (*_, left) in enumerate(found))
        return [(why + more, content) for (why, content, _), more in zip(found, new, strict=True)]

    def written(self, chosen: list[tuple[str, Any]]) -> bytes:
        """Return the file of all of them, but for brat's."""
        if self.to == COLUMNS:
            return self._header + b"".join(lines for _, lines in chosen)
        values, begin, between, end = TOOLS[self.to or ""]
        objects = (json.dumps(values(one, why), ensure_ascii=False) for why, one in chosen)
        return f"{begin}{between.join(objects)}{end}".encode()
