"""Output of `kcrf tag`: columns beside the input's own, n-best blocks, or JSON lines.

Behind the input's columns stand novelty=R, probability=P, review=yes or review=no, set=LABEL|... and LABEL:p ..., if
asked for, then the predicted label.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from kcrf_core.corpora import BYTE_ORDER_MARK, PREDICTED, Corpus, Format, ParsedBlock, names_beside

from .visible import shown

if TYPE_CHECKING:
    from kcrf_core.model import Decoded, Explanation

NO_LABELS = np.zeros(0, dtype=np.int32)
MARK = BYTE_ORDER_MARK.encode()
SET_SEPARATOR, EVERY = "|", "*"  # in a set of labels, and for a set of too many
EXPLAINED = "#: "  # words begin with `#` and `# ` stands in files separated by spaces


class Writer(ABC):
    """Writes one block, some sequences after others."""

    @abstractmethod
    def sequences(self, decoded: Decoded) -> bytes:
        """Return the next sequences with their labels."""

    def rest(self) -> bytes:
        """Return the end of the block, after the last sequence."""
        return b""


class ColumnWriter(Writer):
    """Repeats lines with more columns and perhaps lines under them; only lines that wait for their labels are kept."""

    def __init__(
        self, labels: Sequence[str], marginals: str | None, more: Sequence[str], parsed: ParsedBlock | None = None
    ):
        """Take the labels, and names of columns before those of `marginals`, which files with a header get."""
        self._labels, self._marginals, self._more = labels, marginals, more
        self._waiting: deque[tuple[bytes, bytes]] = deque()  # a line to where columns are added, and what follows it
        self._free = b""  # what waits for no label
        if parsed is not None:
            self.add(parsed)

    def add(self, parsed: ParsedBlock) -> None:
        """Take more lines; separator and layout are those of all."""
        data, ends, header = parsed.block.data, parsed.row_ends.tolist(), parsed.header_end
        self._parsed = parsed
        # Lines that are no positions stand behind the one before them.
        bounds = [*(data.rfind(b"\n", 0, end) + 1 for end in ends), len(data)]
        first = bounds[0]
        if self._waiting:
            line, rest = self._waiting.pop()
            self._waiting.append((line, rest + data[:first]))
        else:
            self._free += data[:first] if header is None else data[:header] + self._names() + data[header:first]
        for (start, after), end in zip(pairwise(bounds), ends, strict=True):
            self._waiting.append((data[start:end], data[end:after]))

    def _names(self) -> bytes:
        """Return the names of the columns behind those of the input."""
        names = [*self._more]
        if self._marginals is not None:
            names += ["marginal"] if self._marginals == "best" else [f"p({label})" for label in self._labels]
        parsed = self._parsed
        names = names_beside([*names, PREDICTED], parsed.corpus.header or ())
        return "".join(f"{parsed.separator}{parsed.layout.written(name)}" for name in names).encode()

    def _ending(self, rest: bytes) -> bytes:
        """Return the line ending before `rest`; the last line of a file may lack it and takes that of the others."""
        returns = rest.startswith(b"\r") if rest else b"\r\n" in self._parsed.block.data
        return b"\r\n" if returns else b"\n"

    def sequences(self, decoded: Decoded) -> bytes:
        columns = _Columns(decoded, self._labels, self._marginals, self._parsed)
        out = [self.rest()]
        for t, label in enumerate(decoded.labels.tolist()):
            line, rest = self._waiting.popleft()
            out += [line, columns.at(t, label).encode()]
            if decoded.explanations is not None and (explanation := decoded.explanations[t]) is not None:
                for why in _explained(explanation, self._labels):
                    out += [self._ending(rest), f"{EXPLAINED}{shown(why)}".encode()]
            out.append(rest)
        return b"".join(out)

    def rest(self) -> bytes:
        """Return lines that wait for no label."""
        out, self._free = self._free, b""
        return out


class NBestWriter(ColumnWriter):
    """Repeats the lines of each sequence for each labelling, under a line with its rank and probability."""

    def sequences(self, decoded: Decoded) -> bytes:
        columns = _Columns(decoded, self._labels, self._marginals, self._parsed)
        out: list[bytes] = []
        for s, best in enumerate(decoded.nbest or ()):
            positions = range(int(decoded.offsets[s]), int(decoded.offsets[s + 1]))
            lines, rests = zip(*(self._waiting.popleft() for _ in positions), strict=True)
            ending = self._ending(rests[0])
            for rank, (path, log_probability) in enumerate(zip(best.labels.tolist(), best.scores, strict=True), 1):
                out.append(f"# {rank} {_probability(log_probability)}".encode() + ending)
                for t, line, label in zip(positions, lines, path, strict=True):
                    out += [line.removeprefix(MARK), columns.at(t, label).encode(), ending]
                out.append(ending)
        return b"".join(out)

    def rest(self) -> bytes:
        return b""


class LabelWriter(Writer):
    """Repeats the lines of a block with the labels where their format has a place for them."""

    def __init__(self, format_: Format, parsed: ParsedBlock, labels: Sequence[str]):
        self._format, self._parsed, self._labels = format_, parsed, labels
        self._found: list[np.ndarray] = []

    def sequences(self, decoded: Decoded) -> bytes:
        self._found.append(decoded.labels)
        return b""

    def rest(self) -> bytes:
        return self._format.labelled(self._parsed, self._labels, np.concatenate([NO_LABELS, *self._found]))


class JsonWriter(Writer):
    """Writes a JSON object on one line for each sequence."""

    def __init__(
        self, corpus: Corpus, labels: Sequence[str], marginals: str | None, with_labels: bool, free: str | None
    ):
        self._corpus, self._labels, self._marginals = corpus, labels, marginals
        self._with_labels, self._free = with_labels, free
        self._position = 0

    def sequences(self, decoded: Decoded) -> bytes:
        out = []
        for s in range(len(decoded.offsets) - 1):
            rows = slice(int(decoded.offsets[s]), int(decoded.offsets[s + 1]))
            found = self._input(rows) | self._found(decoded, s, rows)
            out.append(json.dumps(found, ensure_ascii=False, allow_nan=False) + "\n")
        self._position += int(decoded.offsets[-1])
        return "".join(out).encode()

    def _input(self, rows: slice) -> dict[str, Any]:
        corpus = self._corpus
        own = slice(self._position + rows.start, self._position + rows.stop)
        if corpus.attributes is not None:
            tokens = corpus.attributes.texts(own.start, own.stop)
        else:
            columns = corpus.columns[:-1] if self._with_labels else corpus.columns
            tokens = [list(row) for row in zip(*(column[own] for column in columns), strict=True)]
        out: dict[str, Any] = {"schema": 1, "line": int(corpus.lines[own.start]), "tokens": tokens}
        if self._with_labels:
            had = list(corpus.columns[-1][own])
            if self._free is None:
                out["gold"] = had
            else:
                out["given"] = [None if label == self._free else label for label in had]
        return out

    def _found(self, decoded: Decoded, s: int, rows: slice) -> dict[str, Any]:
        names, numbers = self._labels, decoded.labels[rows].tolist()
        out: dict[str, Any] = {"labels": [names[number] for number in numbers]}
        if decoded.log_probabilities is not None:
            out |= _json_probability(decoded.log_probabilities[s])
        if decoded.marginals is not None:
            values = np.round(decoded.marginals[rows], 6).tolist()
            if self._marginals == "best":
                out["marginals"] = [row[number] for row, number in zip(values, numbers, strict=True)]
            else:
                out["marginals"] = [dict(zip(names, row, strict=True)) for row in values]
        if decoded.novelty is not None:
            out["novelty"] = np.round(decoded.novelty[rows], 6).tolist()
        if decoded.review is not None:
            out["review"] = decoded.review[rows].tolist()
        if decoded.sets is not None:
            out["sets"] = [_set(row, names) for row in decoded.sets[rows]]
        if decoded.nbest is not None:
            best = decoded.nbest[s]
            out["nbest"] = [
                {"labels": [names[number] for number in path]} | _json_probability(log_probability)
                for path, log_probability in zip(best.labels.tolist(), best.scores, strict=True)
            ]
        if decoded.explanations is not None:
            found = decoded.explanations[rows]
            out["explanation"] = [None if one is None else _json_explanation(one, names) for one in found]
        return out


class _Columns:
    """Columns behind those of the input."""

    def __init__(self, decoded: Decoded, labels: Sequence[str], marginals: str | None, parsed: ParsedBlock):
        self._labels, self._marginals, self._separator = labels, marginals, parsed.separator
        self._decoded, self._layout = decoded, parsed.layout
        self._written = [self._layout.written(label) for label in labels]
        # Of whole sequences, at each of their positions.
        written = [""] * (len(decoded.offsets) - 1)
        if decoded.log_probabilities is not None:
            written = [f"{self._separator}probability={_probability(value)}" for value in decoded.log_probabilities]
        lengths = np.diff(decoded.offsets).tolist()
        self._wholes = [one for one, length in zip(written, lengths, strict=True) for _ in range(length)]

    def at(self, t: int, label: int) -> str:
        decoded, separator, out = self._decoded, self._separator, ""
        if decoded.novelty is not None:
            out += f"{separator}novelty={decoded.novelty[t]:.6f}"
        out += self._wholes[t]
        if decoded.review is not None:
            out += f"{separator}review={'yes' if decoded.review[t] else 'no'}"
        if decoded.sets is not None:
            names = SET_SEPARATOR.join(_set(decoded.sets[t], self._labels))
            out += f"{separator}{self._layout.written(f'set={names}')}"
        if decoded.marginals is not None:
            if self._marginals == "best":
                values = [(self._labels[label], float(decoded.marginals[t, label]))]
            else:
                values = list(zip(self._labels, decoded.marginals[t].tolist(), strict=True))
            out += "".join(f"{separator}{self._layout.written(f'{name}:{p:.6f}')}" for name, p in values)
        return f"{out}{separator}{self._written[label]}"


def _set(row: np.ndarray, labels: Sequence[str]) -> list[str]:
    """Return the names of the labels of a set."""
    return [labels[number] for number in np.flatnonzero(row).tolist()] or [EVERY]


def _probability(log_probability: float) -> str:
    return f"{np.exp(log_probability):.6g}"


def _json_probability(log_probability: float) -> dict[str, float]:
    return {"probability": float(_probability(log_probability)), "log_probability": round(float(log_probability), 6)}


def _explained(one: Explanation[int], labels: Sequence[str]) -> list[str]:
    """Return an explanation as lines: the whole difference of two labels, its largest parts, the sum of the others."""
    if one.against is None:
        return [f"{labels[one.label]}: no other label is possible here"]
    out = [f"{labels[one.label]} against {labels[one.against]} {one.difference:+.4f}"]
    out += [f"  {part.value:+.4f} {part.term}: {part.what}" for part in one.contributions]
    out.append(f"  {one.others:+.4f} all others")
    if len(one.terms) > 2:  # the last are transitions
        out.append("  by term: " + ", ".join(f"{name} {value:+.4f}" for name, value in one.terms))
    for pivot in one.similar:
        label = "" if pivot.label is None else f", labelled {labels[pivot.label]}"
        where = f"line {pivot.line} of the training data ({100 * pivot.similarity:.0f} %{label})"
        out.append(f"  like {where}: {pivot.text}")
    return out


def _json_explanation(one: Explanation[int], labels: Sequence[str]) -> dict[str, Any]:
    if one.against is None:
        return {"label": labels[one.label], "against": None}
    parts = [asdict(replace(part, value=round(part.value, 6))) for part in one.contributions]
    similar = [
        asdict(replace(pivot, similarity=round(pivot.similarity, 6), value=round(pivot.value, 6)))
        | {"label": None if pivot.label is None else labels[pivot.label]}
        for pivot in one.similar
    ]
    return {
        "label": labels[one.label],
        "against": labels[one.against],
        "difference": round(one.difference, 6),
        "contributions": parts,
        "others": round(one.others, 6),
        "terms": {name: round(value, 6) for name, value in one.terms},
        **({"similar": similar} if similar else {}),
    }
