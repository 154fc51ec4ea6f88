"""An audit: positions of data whose labels are doubtful, and their corrections.

A worklist is a table with a header and TABs between columns; values with quotes stand in quotes, as in CSV. Users write
y into the column `accept` of rows that are right, and may change suggested labels, delete rows and sort them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..corpora import PLAIN, CodedColumn, Corpus, DocumentBlock, Layout, stream_corpus
from ..errors import DataError, suggestion
from ..model import Model
from ..scoring import Transitions, count_labels, labels_of_spans, odd_labels, readable_column
from ..system import Workers, counted, listed
from ..training import Scored, scored_parts, train
from .cross_validation import Plan, Task, cut_parts, fold_data
from .evidence import (
    IMPROBABLE,
    Channel,
    Evidence,
    errors_of_single_labels,
    gather,
    label_counts,
    learn_channel,
    span_rules,
)
from .planted_regression import PlantedRegression

HEADER = ("line", "text", "gold", "suggested", "accept", "doubt", "p_label", "reason")
NEEDED = ("line", "text", "gold", "suggested", "accept")  # columns that are read
YES, NO = ("y", "yes"), ("", "n", "no")


@dataclass(frozen=True)
class DoubtfulPosition:
    """A position, and the evidence against its label."""

    line: int
    sequence: int  # from 1 on
    text: str  # something to read, or empty
    gold: str
    suggested: str
    marginal: float  # p(gold | x)
    context: float  # p(gold | x, the other labels)
    doubt: float  # log-odds that the label is wrong, if errors are as they are supposed
    reason: str
    position: int  # in the corpus, from 0 on

    def to_dict(self) -> dict:
        """Return plain values for JSON, without the place in the corpus."""
        return {key: value for key, value in vars(self).items() if key != "position"}


@dataclass(frozen=True, eq=False)
class Audit:
    """The result of an audit of a corpus."""

    corpus: Corpus
    labels: tuple[str, ...]
    evidence: Evidence
    held_out: bool  # models had not seen the labels that they judge

    @property
    def judged(self) -> int:
        """Positions whose label some model knows."""
        return int(np.count_nonzero(~np.isnan(self.evidence.doubt)))

    @property
    def _codes(self) -> np.ndarray:
        """Numbers of the labels of the data [N]."""
        return CodedColumn.of(self.corpus.columns[-1]).numbered(self.labels)

    @property
    def improbable(self) -> np.ndarray:
        """True [N] for labels that models find improbable, given the input."""
        return self.evidence.marginal < IMPROBABLE

    @property
    def doubtful(self) -> int:
        """Number of improbable labels."""
        return int(np.count_nonzero(self.improbable))

    @property
    def places(self) -> int:
        """Number of runs of improbable labels: labels of one span are one place."""
        improbable = self.improbable
        begins = np.zeros(len(improbable) + 1, dtype=bool)
        begins[self.corpus.offsets] = True
        return int(np.count_nonzero(improbable & (begins[:-1] | ~np.append(False, improbable[:-1]))))

    @property
    def order(self) -> np.ndarray:
        """Positions that were judged, the worst first; of equal ones the more doubtful."""
        evidence = self.evidence
        known = np.flatnonzero(~np.isnan(evidence.doubt))
        # A model that may have learnt from the labels ranks them best by p(gold | x, the other labels).
        first = -evidence.doubt if self.held_out else evidence.context
        return known[np.lexsort((known, evidence.marginal[known], -evidence.doubt[known], first[known]))]

    def positions(self, most: int | None = None) -> list[DoubtfulPosition]:
        """List positions, the worst first."""
        evidence, corpus, words = self.evidence, self.corpus, readable_column(self.corpus.columns[:-1])
        odd = odd_labels(count_labels(corpus.columns[-1]))
        rules = span_rules(labels_of_spans(self.labels, odd), self._codes, corpus.offsets)
        out = []
        for t in self.order[:most].tolist():
            out.append(
                DoubtfulPosition(
                    line=int(corpus.lines[t]),
                    sequence=int(np.searchsorted(corpus.offsets, t, side="right")),
                    text="" if words is None else words[t],
                    gold=corpus.columns[-1][t],
                    suggested=self.labels[int(evidence.suggested[t])],
                    marginal=float(evidence.marginal[t]),
                    context=float(evidence.context[t]),
                    doubt=float(evidence.doubt[t]),
                    reason=self._reason(t, rules),
                    position=t,
                )
            )
        return out

    def _reason(self, t: int, rules: Transitions | None) -> str:
        """Explain in a few words why a label is doubtful."""
        evidence, offsets, labels = self.evidence, self.corpus.offsets, self.corpus.columns[-1]
        gold, suggested = labels[t], self.labels[int(evidence.suggested[t])]
        s = int(np.searchsorted(offsets, t, side="right")) - 1
        before, after = (labels[i] if offsets[s] <= i < offsets[s + 1] else None for i in (t - 1, t + 1))
        if rules is not None:
            own = self.labels.index(gold)
            if not (rules.first[own] if before is None else rules.pairs[self.labels.index(before), own]):
                return f"{gold} cannot follow {'the beginning' if before is None else before} in its scheme"
        if evidence.support[t] >= 0.5:
            return f"its features say {suggested}"
        if evidence.context[t] < 0.1 * evidence.marginal[t]:
            beside = " and ".join(label for label in (before, after) if label is not None)
            return f"labels beside it ({beside}) do not go with {gold}"
        if evidence.marginal[t] >= evidence.support[t]:
            return f"{gold} is more probable than {suggested}, and not certain"
        return f"{suggested} is more probable, and others may be"


def audit_by_folds(plan: Plan, *, workers: Workers, done: Callable[[Task], None] = lambda task: None) -> Audit:
    """Judge each fold of a plan by a model of the others; the plan has one setting."""
    parts: list[Scored] = []
    for fold in range(len(plan.folds)):
        task = Task(0, fold)
        data = fold_data(plan, task)
        model, _ = train(data.encoding, data.dataset, data.config, workers=workers)
        for own, part, where in cut_parts(model, data.test):
            parts += scored_parts(own, part, data.rows[where], workers)
        done(task)
    return _audited(plan.corpus, parts, True, workers)


def audit_by_model(model: Model, corpus: Corpus, threads: int | None = None) -> Audit:
    """Judge labels by a model, which may have learnt from them."""
    if not model.encoding.with_labels(corpus):
        inputs = "attributes" if model.encoding.attributes else counted(model.encoding.width - 1, "column")
        raise DataError(f"no labels to audit: the model has learnt from {inputs} of input and a label", corpus.source)
    with Workers(threads) as workers:
        dataset = model.encoding.encode(corpus)
        parts = scored_parts(model, dataset, np.arange(dataset.positions), workers)
        return _audited(corpus, parts, False, workers)


def _audited(corpus: Corpus, parts: Sequence[Scored], held_out: bool, workers: Workers) -> Audit:
    labels = tuple(sorted({*corpus.columns[-1], *(label for part in parts for label in part.labels)}))
    if not any((part.gold >= 0).any() for part in parts):
        raise DataError("the models know no label of the data: there is nothing to audit", corpus.source)
    odd = odd_labels(count_labels(corpus.columns[-1]))
    if errors_of_single_labels(parts, workers, odd):
        channel, judge = learn_channel(parts, workers), None
    else:
        channel = Channel.by_kind(*label_counts(parts), odd)
        judge = PlantedRegression.fit(parts, channel, workers)
    evidence = gather(parts, channel, labels, corpus.positions, workers, judge)
    return Audit(corpus, labels, evidence, held_out)


@dataclass(frozen=True)
class Correction:
    """A label in a line of a file, and its replacement."""

    line: int
    gold: str
    suggested: str
    text: str = ""  # a value of that line, or empty


def _one_line(text: str) -> str:
    """Return a text without characters that end cells and lines."""
    return " ".join(text.replace("\0", " ").split())


def worklist(positions: Iterable[DoubtfulPosition]) -> str:
    """Return the table as text."""
    out = io.StringIO()
    writer = csv.writer(out, dialect="excel-tab", lineterminator="\n")
    writer.writerow(HEADER)
    for each in positions:
        cells = (each.line, _one_line(each.text), each.gold, each.suggested, "", f"{each.doubt:.4g}")
        writer.writerow((*cells, f"{each.marginal:.4g}", each.reason))
    return out.getvalue()


def read_worklist(text: str, path: str, known: Collection[str] | None = None) -> list[Correction]:
    """Return the changes that are accepted; with `known`, suggested labels must be among these."""
    reader = csv.reader(io.StringIO(text, newline=""), dialect="excel-tab", strict=True)
    changes: list[Correction] = []
    try:
        header = next(reader, [])
        missing = [name for name in NEEDED if name not in header]
        if missing:
            raise DataError(f"not a worklist: its first line has no column {listed(missing)}", path, 1)
        for cells in reader:
            if not any(cells):
                continue
            row = dict(zip(header, cells, strict=False))
            accept = row.get("accept", "").strip().casefold()
            if accept not in (*YES, *NO):
                message = f"'accept' is {row['accept']!r}: write y to make this correction, or nothing"
                raise DataError(message, path, reader.line_num)
            if accept in YES:
                changes.append(_accepted(row, path, reader.line_num, known))
    except csv.Error as error:
        raise DataError(f"not a worklist: {error}", path, reader.line_num) from None
    if not changes:
        raise DataError("no row is accepted: write y into the column 'accept' of rows to correct", path)
    return list(dict.fromkeys(changes))


def _accepted(row: dict[str, str], path: str, number: int, known: Collection[str] | None) -> Correction:
    if not row["line"].isdecimal() or not row.get("suggested", "").strip():
        raise DataError("a row should have a line number, a text, a gold and a suggested label", path, number)
    suggested = row["suggested"]
    if known is not None and suggested not in known:
        message = f"the data has no label {suggested!r}{suggestion(suggested, known)}: allow new ones, or change it"
        raise DataError(message, path, number, settings=["new_labels"])
    return Correction(int(row["line"]), row["gold"], suggested, _one_line(row["text"]))


def corrected(
    path: str, changes: Sequence[Correction], format_: str, columns: Sequence[str] | None = None, layout: Layout = PLAIN
) -> bytes:
    """Return the bytes of a file with changes of labels; `columns` of CoNLL-U end with the label's."""
    by_line: dict[int, Correction] = {}
    for change in changes:
        if by_line.setdefault(change.line, change) != change:
            raise DataError("the worklist has two corrections of this line: keep one", path, change.line)
    out: list[bytes] = []
    for parsed in stream_corpus(path, format_, columns, layout):
        if isinstance(parsed.block, DocumentBlock) and not parsed.block.labelled:
            continue
        data, corpus, done = parsed.block.data, parsed.corpus, 0
        changed = np.flatnonzero(np.isin(corpus.lines, list(by_line))).tolist()
        begins, ends = parsed.label_places() if changed else ((), ())
        for t in changed:
            change = by_line.pop(int(corpus.lines[t]))
            if corpus.columns[-1][t] != change.gold:
                raise DataError(f"the label is not {change.gold!r}: is the worklist of other data?", path, change.line)
            values = [_one_line(column[t]) for column in corpus.columns[:-1]]
            # Spreadsheets rewrite numbers and dates, and pandas leaves words such as NA empty.
            if any(map(str.isalpha, change.text)) and change.text not in values:
                message = f"the text is not {change.text!r}: is the worklist of other data?"
                raise DataError(message, path, change.line)
            if parsed.separator == " " and " " in change.suggested:
                raise DataError(
                    f"the label {change.suggested!r} has a space, which separates columns here", path, change.line
                )
            quoted = parsed.layout.quoted and data[begins[t] : begins[t] + 1] == b'"'
            out += data[done : begins[t]], parsed.layout.written(change.suggested, quoted).encode()
            done = ends[t]
        out.append(data[done:])
    if by_line:
        raise DataError("there is no label in this line: is the worklist of other data?", path, min(by_line))
    return b"".join(out)
