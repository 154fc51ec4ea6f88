"""An audit: positions, spans and sequences of data whose labels are probably wrong, the worst first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from ..corpora import CodedColumn, Corpus
from ..errors import DataError
from ..model import Model
from ..scoring import SpanFinder, Transitions, allowed_transitions, detect_scheme, readable_column
from ..system import Workers, counted
from ..training import Scored, scored_parts, train
from .channel import Channel, fit_channel
from .cross_validation import Plan, Task, cut_parts, fold_data
from .evidence import Evidence, gather

RANKINGS = ("wrong", "context", "marginal")
BY_FOLDS, BY_MODEL = RANKINGS[0], RANKINGS[1]  # how each ranks best
SUPPOSED_RATE = 0.02  # of errors, where labels have been learnt and so cannot tell it
MOST_WORDS = 12  # of a span that are shown


@dataclass(frozen=True)
class DoubtfulPosition:
    """A position, and what speaks against its label."""

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

    def to_dict(self) -> dict:
        return {key: value for key, value in asdict(self).items() if key != "position"}


@dataclass(frozen=True)
class DoubtfulSpan:
    """A span of the data, and how probable all its labels are together, with labels beside it that end it."""

    line: int
    last_line: int
    sequence: int  # from 1 on
    text: str
    type: str
    probability: float  # p(span | x)
    wrong: float  # probability that it is not the span which should be there
    start: int  # in the corpus, from 0 on
    end: int  # behind its last position

    def to_dict(self) -> dict:
        return {key: value for key, value in asdict(self).items() if key not in ("start", "end")}


@dataclass(frozen=True)
class DoubtfulSequence:
    """A sequence, and how many of its labels are wrong by expectation."""

    line: int
    sequence: int
    length: int
    expected: float
    wrong: float  # probability that one of its labels is
    log_probability: float  # log p(gold labels | x)

    def to_dict(self) -> dict:
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Audit:
    """What was found in a corpus."""

    corpus: Corpus
    labels: tuple[str, ...]
    held_out: bool  # whether models had not seen the labels that they judge
    channel: Channel
    evidence: Evidence
    ranking: str  # one of RANKINGS

    @property
    def judged(self) -> int:
        """Positions whose label some model knows."""
        return int(np.count_nonzero(~np.isnan(self.evidence.wrong)))

    @property
    def expected(self) -> float:
        """How many labels are wrong: the largest likelihood."""
        return self.channel.rate * self.judged

    @property
    def standard_error(self) -> float:
        """Of that number."""
        return self.channel.rate_error * self.judged

    @property
    def order(self) -> np.ndarray:
        """Positions that were judged, the worst first; of equal ones the more probably wrong."""
        evidence = self.evidence
        known = np.flatnonzero(~np.isnan(evidence.wrong))
        first = -evidence.wrong if self.ranking == "wrong" else getattr(evidence, self.ranking)
        return known[np.lexsort((known, -evidence.wrong[known], first[known]))]

    def positions(self, most: int | None = None) -> list[DoubtfulPosition]:
        """Positions, the worst first."""
        return [self._position(t) for t in self.order[:most].tolist()]

    def spans(self, most: int | None = None) -> list[DoubtfulSpan]:
        """Spans of the data, the worst first; none where labels are of no scheme."""
        if detect_scheme(self.labels) is None:
            return []
        evidence, corpus, words = self.evidence, self.corpus, readable_column(self.corpus.columns[:-1])
        finder = SpanFinder(self.labels)
        spans = finder.find(self._gold, corpus.offsets)
        # Those with a label that no model knows, and those that a cut between folds divides, were not judged.
        judged = np.flatnonzero(evidence.span_end[spans.starts] == spans.ends)
        starts, wrong = spans.starts[judged], evidence.span_wrong[spans.starts[judged]]
        first = -wrong if self.ranking == "wrong" else evidence.span[starts]
        out = []
        for r in judged[np.lexsort((starts, -wrong, first))[:most]].tolist():
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
        """Sequences, those with the most errors by expectation first; none with a label that no model knows."""
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
        strange = np.concatenate([[0], np.cumsum(np.isnan(evidence.wrong))])
        ranked = np.argsort(-expected, kind="stable")
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

    @property
    def _gold(self) -> np.ndarray:
        """Numbers of gold labels, [N]."""
        return CodedColumn.of(self.corpus.columns[-1]).numbered(self.labels)

    def _position(self, t: int) -> DoubtfulPosition:
        evidence, corpus = self.evidence, self.corpus
        gold, suggested = corpus.columns[-1][t], self.labels[int(evidence.suggested[t])]
        words = readable_column(corpus.columns[:-1])
        by = 1 - evidence.wrong[t] if self.ranking == "wrong" else getattr(evidence, self.ranking)[t]
        return DoubtfulPosition(
            line=int(corpus.lines[t]),
            sequence=int(np.searchsorted(corpus.offsets, t, side="right")),
            text="" if words is None else words[t],
            gold=gold,
            suggested=suggested,
            probability=float(by),
            marginal=float(evidence.marginal[t]),
            context=float(evidence.context[t]),
            wrong=float(evidence.wrong[t]),
            reason=self._reason(t, gold, suggested),
            position=t,
        )

    def _reason(self, t: int, gold: str, suggested: str) -> str:
        """What speaks against the label, in a few words."""
        before = self._beside(t, -1)
        rules = _rules(self.labels)
        if rules is not None:
            own, last = self.labels.index(gold), None if before is None else self.labels.index(before)
            if not (rules.first[own] if last is None else rules.pairs[last, own]):
                return f"{gold} cannot follow {'the beginning' if before is None else before} in its scheme"
        if self.evidence.support[t] >= 0.5:
            return f"its features say {suggested}"
        if self.evidence.context[t] < 0.1 * self.evidence.marginal[t]:
            beside = " and ".join(label for label in (before, self._beside(t, 1)) if label is not None)
            return f"labels beside it ({beside}) do not go with {gold}"
        if self.evidence.marginal[t] >= self.evidence.support[t]:
            return f"{gold} is more probable than {suggested}, and not certain"
        return f"{suggested} is more probable, and others may be"

    def _beside(self, t: int, step: int) -> str | None:
        s = int(np.searchsorted(self.corpus.offsets, t, side="right")) - 1
        inside = self.corpus.offsets[s] <= t + step < self.corpus.offsets[s + 1]
        return self.corpus.columns[-1][t + step] if inside else None


def _rules(labels: Sequence[str]) -> Transitions | None:
    scheme = detect_scheme(labels)
    return None if scheme is None else allowed_transitions(labels, scheme)


def audit_by_folds(
    plan: Plan,
    ranking: str = BY_FOLDS,
    *,
    workers: Workers,
    done: Callable[[Task], None] | None = None,
) -> Audit:
    """Judge each fold of a plan by a model of the others; the plan has one setting."""
    parts: list[Scored] = []
    for fold in range(len(plan.folds)):
        task = Task(0, fold)
        data = fold_data(plan, task)
        model, _ = train(data.encoding, data.dataset, data.config, workers=workers)
        for own, part, where in cut_parts(model, data.test):
            parts += scored_parts(own, part, data.rows[where], workers)
        if done is not None:
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
        raise DataError("no label of the data is known to a model: there is nothing to audit", corpus.source)
    channel = fit_channel(parts, workers) if held_out else Channel(SUPPOSED_RATE)
    evidence = gather(parts, channel, labels, corpus.positions, workers)
    return Audit(corpus, labels, held_out, channel, evidence, ranking)
