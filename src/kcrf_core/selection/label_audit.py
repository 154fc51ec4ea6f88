"""An audit: positions, spans and sequences of data whose labels are probably wrong, and their corrections.

A worklist is a table with TABs between columns: line, text, gold, suggested, p_wrong, p_given_label, reason. Users may
delete rows and change suggested labels; the rest is applied. Only the first four columns are read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from ..corpora import PLAIN, Column, Corpus, Layout, stream_corpus
from ..errors import DataError, suggestion
from ..model import Model
from ..scoring import SpanFinder, Transitions, allowed_transitions, detect_scheme, readable_column
from ..system import Workers, counted, offsets_of
from ..training import Scored, scored_parts, train
from .cross_validation import Plan, Task, cut_parts, fold_data
from .error_number import ErrorNumber, estimate
from .evidence import Evidence, channel_of, fit_channel, gather

RANKINGS = ("wrong", "context", "marginal")
BY_FOLDS, BY_MODEL = RANKINGS[0], RANKINGS[1]  # how each ranks best
MOST_WORDS = 12  # of a span that are shown
HEADER = ("line", "text", "gold", "suggested", "p_wrong", "p_given_label", "reason")


class _Finding:
    def to_dict(self) -> dict:
        """Return plain values for JSON, without places in the corpus."""
        return {key: value for key, value in vars(self).items() if key not in ("position", "start", "end")}


@dataclass(frozen=True)
class DoubtfulPosition(_Finding):
    """A position, and the evidence against its label."""

    line: int
    sequence: int  # from 1 on
    text: str  # something to read, or empty
    gold: str
    suggested: str
    probability: float  # of the gold label, as positions are ranked
    marginal: float  # p(gold | x)
    context: float  # p(gold | x, the other labels)
    wrong: float  # probability that the label is wrong
    reason: str
    position: int  # in the corpus, from 0 on


@dataclass(frozen=True)
class DoubtfulSpan(_Finding):
    """A span of the data, and the probability of all its labels together, with labels beside it that end it."""

    line: int
    last_line: int
    sequence: int  # from 1 on
    text: str
    type: str
    probability: float  # p(span | x)
    wrong: float  # probability that it is not the span which should be there
    start: int  # in the corpus, from 0 on
    end: int  # behind its last position


@dataclass(frozen=True)
class DoubtfulSequence(_Finding):
    """A sequence, and the expected number of its wrong labels."""

    line: int
    sequence: int
    length: int
    expected: float
    wrong: float  # probability that one of its labels is
    log_probability: float  # log p(gold labels | x)


@dataclass(frozen=True, eq=False)
class Audit:
    """The result of an audit of a corpus."""

    corpus: Corpus
    labels: tuple[str, ...]
    errors: ErrorNumber | None  # None where models may have seen the labels
    evidence: Evidence
    ranking: str  # one of RANKINGS

    @property
    def held_out(self) -> bool:
        """True if models had not seen the labels that they judge."""
        return self.errors is not None

    @property
    def judged(self) -> int:
        """Positions whose label some model knows."""
        return int(np.count_nonzero(~np.isnan(self.evidence.wrong)))

    @property
    def expected(self) -> float:
        """Estimated number of wrong labels, NaN where models may have seen them."""
        return float("nan") if self.errors is None else self.errors.number

    @property
    def standard_error(self) -> float:
        """Standard error of that number, by its 95 % interval."""
        return float("nan") if self.errors is None else (self.errors.high - self.errors.low) / 3.92

    @property
    def order(self) -> np.ndarray:
        """Positions that were judged, the worst first; of equal ones the more probably wrong."""
        evidence = self.evidence
        known = np.flatnonzero(~np.isnan(evidence.wrong))
        first = -evidence.wrong if self.ranking == "wrong" else getattr(evidence, self.ranking)
        return known[np.lexsort((known, -evidence.doubt[known], -evidence.wrong[known], first[known]))]

    def positions(self, most: int | None = None) -> list[DoubtfulPosition]:
        """List positions, the worst first."""
        evidence, corpus, words = self.evidence, self.corpus, readable_column(self.corpus.columns[:-1])
        scheme = detect_scheme(self.labels)
        rules = None if scheme is None else allowed_transitions(self.labels, scheme)
        out = []
        for t in self.order[:most].tolist():
            by = 1 - evidence.wrong[t] if self.ranking == "wrong" else getattr(evidence, self.ranking)[t]
            out.append(
                DoubtfulPosition(
                    line=int(corpus.lines[t]),
                    sequence=int(np.searchsorted(corpus.offsets, t, side="right")),
                    text="" if words is None else words[t],
                    gold=corpus.columns[-1][t],
                    suggested=self.labels[int(evidence.suggested[t])],
                    probability=float(by),
                    marginal=float(evidence.marginal[t]),
                    context=float(evidence.context[t]),
                    wrong=float(evidence.wrong[t]),
                    reason=self._reason(t, rules),
                    position=t,
                )
            )
        return out

    def spans(self, most: int | None = None) -> list[DoubtfulSpan]:
        """List spans of the data, the worst first; none if labels are of no scheme."""
        if detect_scheme(self.labels) is None:
            return []
        evidence, corpus, words = self.evidence, self.corpus, readable_column(self.corpus.columns[:-1])
        finder = SpanFinder(self.labels)
        spans = finder.find(Column.of(corpus.columns[-1]).numbered(self.labels), corpus.offsets)
        # Those with a label that no model knows, and those that a cut between folds divides, were not judged.
        judged = np.flatnonzero(evidence.span_end[spans.starts] == spans.ends)
        starts, wrong = spans.starts[judged], evidence.span_wrong[spans.starts[judged]]
        first = -wrong if self.ranking == "wrong" else evidence.span[starts]
        out = []
        for r in judged[np.lexsort((starts, evidence.span[starts], -wrong, first))[:most]].tolist():
            start, end = int(spans.starts[r]), int(spans.ends[r])
            out.append(
                DoubtfulSpan(
                    line=int(corpus.lines[start]),
                    last_line=int(corpus.lines[end - 1]),
                    sequence=int(np.searchsorted(corpus.offsets, start, side="right")),
                    text="" if words is None else " ".join(words[start : min(end, start + MOST_WORDS)]),
                    type=finder.types[spans.kinds[r]],
                    probability=float(evidence.span[start]),
                    wrong=float(evidence.span_wrong[start]),
                    start=start,
                    end=end,
                )
            )
        return out

    def sequences(self, most: int | None = None) -> list[DoubtfulSequence]:
        """List sequences, those with the most expected errors first; none with a label that no model knows."""
        offsets, evidence = self.corpus.offsets, self.evidence
        lengths = np.diff(offsets)
        there = np.flatnonzero(lengths)
        first = offsets[:-1][there]
        # A sequence may have been judged in several pieces, by models of different folds.
        with np.errstate(divide="ignore"):
            right = np.log1p(-np.nan_to_num(evidence.sequence_wrong))
        expected, right, logs = (
            np.add.reduceat(values, first) if len(first) else np.zeros(0)
            for values in (np.nan_to_num(evidence.wrong), right, np.nan_to_num(evidence.log_probability))
        )
        strange = offsets_of(np.isnan(evidence.wrong))
        ranked = np.lexsort([logs, -expected])  # if none are expected, the least probable one comes first
        ranked = ranked[np.diff(strange[offsets])[there][ranked] == 0]
        return [
            DoubtfulSequence(
                line=int(self.corpus.lines[first[s]]),
                sequence=int(there[s]) + 1,
                length=int(lengths[there[s]]),
                expected=float(expected[s]),
                wrong=float(-np.expm1(right[s])),
                log_probability=float(logs[s]),
            )
            for s in ranked[:most].tolist()
        ]

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


def audit_by_folds(
    plan: Plan, ranking: str = BY_FOLDS, *, workers: Workers, done: Callable[[Task], None] = lambda task: None
) -> Audit:
    """Judge each fold of a plan by a model of the others; the plan has one setting."""
    parts: list[Scored] = []
    for fold in range(len(plan.folds)):
        task = Task(0, fold)
        data = fold_data(plan, task)
        model, _ = train(data.encoding, data.dataset, data.config, workers=workers)
        for own, part, where in cut_parts(model, data.test):
            parts += scored_parts(own, part, data.rows[where], workers)
        done(task)
    return _audited(plan.corpus, parts, True, ranking, workers)


def audit_by_model(model: Model, corpus: Corpus, ranking: str = BY_MODEL, threads: int | None = None) -> Audit:
    """Judge labels by a model, which may have learnt from them."""
    if not model.encoding.with_labels(corpus):
        inputs = "attributes" if model.encoding.attributes else counted(model.encoding.width - 1, "column")
        raise DataError(f"no labels to audit: the model has learnt from {inputs} of input and a label", corpus.source)
    with Workers(threads) as workers:
        dataset = model.encoding.encode(corpus)
        parts = scored_parts(model, dataset, np.arange(dataset.positions), workers)
        return _audited(corpus, parts, False, ranking, workers)


def _audited(corpus: Corpus, parts: Sequence[Scored], held_out: bool, ranking: str, workers: Workers) -> Audit:
    labels = tuple(sorted({*corpus.columns[-1], *(label for part in parts for label in part.labels)}))
    if not any((part.gold >= 0).any() for part in parts):
        raise DataError("the models know no label of the data: there is nothing to audit", corpus.source)
    channel = fit_channel(parts, workers) if held_out else channel_of(parts)
    errors = estimate(parts, channel, workers) if held_out else None
    evidence = gather(parts, channel, labels, corpus.positions, workers, errors)
    return Audit(corpus, labels, errors, evidence, ranking)


@dataclass(frozen=True)
class Correction:
    """A label in a line of a file, and its replacement."""

    line: int
    gold: str
    suggested: str


def worklist(positions: Iterable[DoubtfulPosition], held_out: bool = True) -> str:
    """Return the table as text; `p_wrong` is empty where models may have seen the labels."""
    rows = [HEADER]
    for each in positions:
        text, wrong = each.text.replace("\t", " ").replace("\n", " "), f"{each.wrong:.4g}" if held_out else ""
        rows.append((str(each.line), text, each.gold, each.suggested, wrong, f"{each.context:.4g}", each.reason))
    return "".join("\t".join(row) + "\n" for row in rows)


def read_worklist(text: str, path: str, known: Collection[str] | None = None) -> list[Correction]:
    """Return the changes that a worklist still has; with `known`, suggested labels must be among these."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]  # words may have other characters that end lines
    if tuple(lines[0].split("\t")[:4]) != HEADER[:4]:
        raise DataError(f"not a worklist: its first line should be {' '.join(HEADER)}, with TABs between them", path, 1)
    changes = []
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        cells = line.split("\t")
        if len(cells) < 4 or not cells[0].isdecimal() or not cells[3].strip():
            raise DataError("a row should have a line number, a text, a gold and a suggested label", path, number)
        if known is not None and cells[3] not in known:
            message = f"the data has no label {cells[3]!r}{suggestion(cells[3], known)}: allow new ones, or change it"
            raise DataError(message, path, number, settings=["new_labels"])
        changes.append(Correction(int(cells[0]), cells[2], cells[3]))
    return changes


def changes_of(positions: Iterable[DoubtfulPosition], least: float) -> list[Correction]:
    """Return corrections of positions that are wrong with at least this probability."""
    return [Correction(each.line, each.gold, each.suggested) for each in positions if each.wrong >= least]


def corrected(
    path: str, changes: Sequence[Correction], format_: str, columns: Sequence[str] | None = None, layout: Layout = PLAIN
) -> tuple[bytes, bytes]:
    """Return the bytes of a file without and with changes of labels; `columns` of CoNLL-U end with the label's."""
    by_line: dict[int, Correction] = {}
    for change in changes:
        if by_line.setdefault(change.line, change) != change:
            raise DataError("the worklist has two corrections of this line: keep one", path, change.line)
    before: list[bytes] = []
    after: list[bytes] = []
    for parsed in stream_corpus(path, format_, columns, layout):
        data, corpus, done = parsed.block.data, parsed.corpus, 0
        here = np.flatnonzero(np.isin(corpus.lines, list(by_line))).tolist()
        begins, ends = parsed.label_places() if here else ((), ())
        for t in here:
            change = by_line.pop(int(corpus.lines[t]))
            if corpus.columns[-1][t] != change.gold:
                raise DataError(f"the label is not {change.gold!r}: is the worklist of other data?", path, change.line)
            if parsed.separator == " " and " " in change.suggested:
                raise DataError(
                    f"the label {change.suggested!r} has a space, which separates columns here", path, change.line
                )
            quoted = parsed.layout.quoted and data[begins[t] : begins[t] + 1] == b'"'
            after += data[done : begins[t]], parsed.layout.written(change.suggested, quoted).encode()
            done = ends[t]
        before.append(data)
        after.append(data[done:])
    if by_line:
        raise DataError("there is no label in this line: is the worklist of other data?", path, min(by_line))
    return b"".join(before), b"".join(after)


def differences(before: bytes, after: bytes, names: tuple[str, str], context: int = 2) -> bytes:
    """Return a unified diff of two texts with the same number of lines."""
    old, new = _lines(before), _lines(after)
    changed = [number for number, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1]]
    hunks: list[list[int]] = []
    for number in changed:
        if hunks and number - hunks[-1][-1] <= 2 * context + 1:
            hunks[-1].append(number)
        else:
            hunks.append([number])
    # A TAB ends names that have spaces.
    out = [b"%s %s%s\n" % (mark, os.fsencode(name), b"\t" * (" " in name))
           for mark, name in zip((b"---", b"+++"), names, strict=True)] if hunks else []  # fmt: skip
    for hunk in hunks:
        first, last = max(hunk[0] - context, 0), min(hunk[-1] + context + 1, len(old))
        out.append(b"@@ -%d,%d +%d,%d @@\n" % (first + 1, last - first, first + 1, last - first))
        for same, run in groupby(range(first, last), lambda number: old[number] == new[number]):
            lines = list(run)
            if same:
                out += [b" " + old[number] for number in lines]
            else:
                out += [b"-" + old[number] for number in lines] + [b"+" + new[number] for number in lines]
    return b"".join(out)


def _lines(text: bytes) -> list[bytes]:
    """Return lines with their ends, as a diff has them."""
    lines = [line + b"\n" for line in text.split(b"\n")]
    if text.endswith(b"\n") or not text:
        return lines[:-1]
    return [*lines[:-1], lines[-1] + b"\\ No newline at end of file\n"]
