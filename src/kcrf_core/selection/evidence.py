"""What models say of the labels that data has.

For the gold label g_t of a position, by a model that may have seen it or not:

    marginal    p(g_t | x)                the label by the input alone
    context     p(g_t | x, g_s, s != t)   by the input and by the other labels as they stand, of which neighbours count
    wrong       p(y_t != g_t | x, g)      by the channel of `channel`, through which all labels came

Of a span the probability is that of all its labels together, with labels beside it that end it; of a sequence that of
all its labels.

Two wrong labels beside each other support one another in `context` and not in `marginal`; a label that only its
neighbours contradict is found by `context`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from ..chains import Edges, chain, run_probabilities
from ..model import scores_in_place
from ..scoring import SpanFinder, detect_scheme
from ..system import Workers
from ..training import Scored
from .channel import Channel


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of all N positions; NaN where no model knows the label."""

    marginal: np.ndarray  # [N] p(gold | x)
    context: np.ndarray  # [N] p(gold | x, the other labels)
    wrong: np.ndarray  # [N] probability that it is wrong
    suggested: np.ndarray  # [N] number of the label that should stand there, among those of the corpus
    support: np.ndarray  # [N] p(suggested | x)
    # [N] at the first position of each span and NaN elsewhere: p(span | x), and the probability that it is wrong.
    span: np.ndarray
    span_wrong: np.ndarray
    span_end: np.ndarray  # [N] where a span ends that begins here, -1 elsewhere
    # [N] at the first position of each sequence and NaN elsewhere: log p(labels | x), and that one of them is wrong.
    log_probability: np.ndarray
    sequence_wrong: np.ndarray


def gather(
    parts: Sequence[Scored], channel: Channel, labels: Sequence[str], positions: int, workers: Workers
) -> Evidence:
    """The evidence of all parts, which share no position, on a corpus with these labels."""
    out = Evidence(
        **{each.name: np.full(positions, np.nan) for each in fields(Evidence)}
        | {"suggested": np.zeros(positions, dtype=np.int64), "span_end": np.full(positions, -1)}
    )
    numbers = {label: y for y, label in enumerate(labels)}
    spans = detect_scheme(labels) is not None
    for part, found in zip(parts, workers.map(lambda part: _of_part(part, channel, spans), parts), strict=True):
        for name, (where, values) in found.items():
            getattr(out, name)[part.rows[where]] = values
        known = part.rows[part.gold >= 0]
        out.suggested[known] = np.array([numbers[label] for label in part.labels])[out.suggested[known]]
        begin = part.rows[found["span_end"][0]]
        out.span_end[begin] = part.rows[out.span_end[begin] - 1] + 1
    return out


_Found = dict[str, tuple[np.ndarray, np.ndarray]]  # where in the part, and what


def _of_part(part: Scored, channel: Channel, spans: bool) -> _Found:
    node = chain.marginals(part.scores, part.edges, part.offsets)
    rows, known = np.arange(len(part.gold)), np.flatnonzero(part.gold >= 0)
    # A label that the model does not know cannot speak for its neighbours: what the model would say stands in for it.
    gold = np.where(part.gold >= 0, part.gold, node.node.argmax(axis=1)).astype(np.int32)
    beside = scores_in_place(part.scores, part.edges, part.offsets, gold)
    beside -= beside.max(axis=1, keepdims=True)
    np.exp(beside, out=beside)
    true = channel.potentials(part)
    after = chain.marginals(*true, part.offsets)
    others = after.node.copy()
    others[rows, gold] = -1
    suggested = others.argmax(axis=1)
    positions = {
        "marginal": node.node[rows, gold],
        "context": beside[rows, gold] / beside.sum(axis=1),
        "wrong": 1 - after.node[rows, gold],
        "suggested": suggested,
        "support": node.node[rows, suggested],
    }
    # A sequence with a label that the model does not know cannot be judged as a whole.
    strange = np.concatenate([[0], np.cumsum(part.gold < 0)])[part.offsets]
    whole = np.flatnonzero((np.diff(part.offsets) > 0) & (np.diff(strange) == 0))
    first = part.offsets[whole]
    logs = (chain.path_scores(part.scores, part.edges, part.offsets, gold) - node.log_z)[whole]
    right = np.exp(chain.path_scores(*true, part.offsets, gold) - after.log_z)[whole]
    return {
        **{name: (known, values[known]) for name, values in positions.items()},
        "log_probability": (first, np.minimum(logs, 0.0)),
        "sequence_wrong": (first, np.clip(1 - right, 0.0, 1.0)),
        **_of_spans(part, gold, true, spans),
    }


def _of_spans(part: Scored, gold: np.ndarray, true: tuple[np.ndarray, Edges], spans: bool) -> _Found:
    """Spans whose labels the model knows; those that a cut between folds divides end there."""
    finder = SpanFinder(part.labels) if spans else None
    if finder is None:
        nothing = np.zeros(0, dtype=np.int64)
        return dict.fromkeys(("span", "span_wrong", "span_end"), (nothing, nothing))
    found = finder.find(gold, part.offsets)
    unknown = np.concatenate([[0], np.cumsum(part.gold < 0)])
    kept = unknown[found.ends] == unknown[found.starts]
    starts, ends = found.starts[kept], found.ends[kept]
    seen, after = (
        run_probabilities(scores, edges, part.offsets, gold, starts, ends, finder.apart)
        for scores, edges in ((part.scores, part.edges), true)
    )
    return {"span": (starts, seen), "span_wrong": (starts, 1 - after), "span_end": (starts, ends)}
