"""What models say of the labels that data has.

For the gold label g_t of a position, by a model that may have seen it or not:

    marginal    p(g_t | x)                the label by the input alone
    context     p(g_t | x, g_s, s != t)   by the input and by the other labels as they stand, of which neighbours count
    wrong       p(y_t != g_t | x, g)      by the channel of `channel`, through which all labels came

Two wrong labels beside each other support one another in `context` and not in `marginal`; a label that only its
neighbours contradict is found by `context`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..chains import chain
from ..crossval import Scored
from ..model import scores_in_place
from ..system import Workers
from .channel import Channel


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of all N positions; NaN where no model knows the label."""

    marginal: np.ndarray  # [N] p(gold | x)
    context: np.ndarray  # [N] p(gold | x, the other labels)
    wrong: np.ndarray  # [N] probability that it is wrong
    suggested: np.ndarray  # [N] number of the label that should stand there, among those of the corpus
    support: np.ndarray  # [N] p(suggested | x)
    log_probability: np.ndarray  # [N] each position's part of log p(gold | x) of its sequence


def gather(
    parts: Sequence[Scored], channel: Channel, labels: Sequence[str], positions: int, workers: Workers
) -> Evidence:
    """The evidence of all parts, which share no position, on a corpus with these labels."""
    out = Evidence(*(np.full(positions, np.nan) for _ in range(3)), np.zeros(positions, dtype=np.int64),
                   *(np.full(positions, np.nan) for _ in range(2)))  # fmt: skip
    numbers = {label: y for y, label in enumerate(labels)}
    for part, found in zip(parts, workers.map(lambda part: _of_part(part, channel), parts), strict=True):
        known = part.gold >= 0
        rows = part.rows[known]
        marginal, context, wrong, suggested, support, logs = found
        for target, values in ((out.marginal, marginal), (out.context, context), (out.wrong, wrong),
                               (out.support, support), (out.log_probability, logs)):  # fmt: skip
            target[rows] = values[known]
        out.suggested[rows] = np.array([numbers[label] for label in part.labels])[suggested[known]]
    return out


def _of_part(part: Scored, channel: Channel) -> tuple[np.ndarray, ...]:
    node = chain.marginals(part.scores, part.edges, part.offsets)
    rows = np.arange(len(part.gold))
    # A label that the model does not know cannot speak for its neighbours: what the model would say stands in for it.
    gold = np.where(part.gold >= 0, part.gold, node.node.argmax(axis=1))
    beside = scores_in_place(part.scores, part.edges, part.offsets, gold)
    beside -= beside.max(axis=1, keepdims=True)
    np.exp(beside, out=beside)
    context = beside[rows, gold] / beside.sum(axis=1)
    after = channel.posterior(part).node
    wrong = 1 - after[rows, gold]
    after[rows, gold] = -1
    suggested = after.argmax(axis=1)
    lengths = np.diff(part.offsets)
    logs = (chain.path_scores(part.scores, part.edges, part.offsets, gold) - node.log_z) / np.maximum(lengths, 1)
    return node.node[rows, gold], context, wrong, suggested, node.node[rows, suggested], np.repeat(logs, lengths)
