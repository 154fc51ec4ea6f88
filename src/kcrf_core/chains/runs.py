"""The probability that a run of positions has given labels, and that the labels beside it do not go on with it.

For positions a..b-1 of a chain of first order with labels g, where L and R are the labels allowed before and behind,

    p(run | x) = p(y_{a-1} in L, y_a = g_a) prod_t p(y_t = g_t | y_{t-1} = g_{t-1}) p(y_b in R | y_{b-1} = g_{b-1}),

which marginals of pairs give. In a chain of second order it is a ratio of partition functions, that of the labellings
with the run being computed for each run: time grows with the length of the sequence times its runs.
"""

from __future__ import annotations

import numpy as np

from ..system import sequence_chunks
from . import chain
from .chain import Edges

PAIRS_AT_ONCE = 1 << 21  # marginals of pairs of labels that are held
IMPOSSIBLE = -700.0  # a score as good as minus infinity, with which something stays possible


def run_probabilities(
    scores: np.ndarray,
    edges: Edges,
    offsets: np.ndarray,
    labels: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    apart: np.ndarray,
) -> np.ndarray:
    """Return the probability [R] that each run starts[r]:ends[r] within a sequence has its labels, of all `labels` [n].

    `apart` [Y, Y] is true for pairs of neighbouring labels between which a run may end.
    """
    out, Y = np.empty(len(starts)), scores.shape[1]
    for first, last in sequence_chunks(offsets, max(PAIRS_AT_ONCE // Y**2, 1)):
        rows = slice(int(offsets[first]), int(offsets[last]))
        own = slice(*np.searchsorted(starts, [rows.start, rows.stop]).tolist())
        if own.start == own.stop:
            continue
        potentials = scores[rows], edges.rows(rows), offsets[first : last + 1] - rows.start
        runs = np.stack([starts[own], ends[own]]) - rows.start  # [2, runs]
        out[own] = (_by_pairs if edges.triples is None else _by_partitions)(*potentials, labels[rows], runs, apart)
    return np.clip(out, 0.0, 1.0)


def _by_pairs(
    scores: np.ndarray, edges: Edges, offsets: np.ndarray, labels: np.ndarray, runs: np.ndarray, apart: np.ndarray
) -> np.ndarray:
    (n, Y), (starts, ends) = scores.shape, runs
    pairs = Edges(np.broadcast_to(edges.stacked(), (n, Y, Y)), edges.start, edges.end)
    found = chain.marginals(scores, pairs, offsets)
    of_label = found.node[np.arange(n), labels]  # [n]
    with np.errstate(divide="ignore", invalid="ignore"):
        # log p(y_t | y_{t-1}); a label of no probability makes it NaN, and the run impossible.
        steps = np.log(found.edge[np.arange(n), np.roll(labels, 1), labels]) - np.log(np.roll(of_label, 1))
        sums = np.array([steps[a + 1 : b].sum() for a, b in runs.T.tolist()])
        enter = (found.edge[starts, :, labels[starts]] * apart[:, labels[starts]].T).sum(axis=1)
        enter = np.where(np.isin(starts, offsets), of_label[starts], enter)
        inside = np.flatnonzero(np.isin(ends, offsets, invert=True))
        leave, last = np.ones(len(starts)), ends[inside] - 1
        leave[inside] = (found.edge[last + 1, labels[last]] * apart[labels[last]]).sum(axis=1) / of_label[last]
        return np.nan_to_num(enter * np.exp(sums) * leave)


def _by_partitions(
    scores: np.ndarray, edges: Edges, offsets: np.ndarray, labels: np.ndarray, runs: np.ndarray, apart: np.ndarray
) -> np.ndarray:
    everything = chain.marginals(scores, edges, offsets).log_z
    out = np.empty(runs.shape[1])
    sequences = np.searchsorted(offsets, runs[0], side="right") - 1
    for r, (s, (a, b)) in enumerate(zip(sequences.tolist(), runs.T.tolist(), strict=True)):
        rows = slice(int(offsets[s]), int(offsets[s + 1]))
        some = scores[rows].copy()
        others = np.arange(scores.shape[1]) != labels[a:b, None]
        some[a - rows.start : b - rows.start] += np.where(others, IMPOSSIBLE, 0.0)
        if a > rows.start:
            some[a - rows.start - 1] += np.where(apart[:, labels[a]], 0.0, IMPOSSIBLE)
        if b < rows.stop:
            some[b - rows.start] += np.where(apart[labels[b - 1]], 0.0, IMPOSSIBLE)
        left = chain.marginals(some, edges.rows(rows), np.array([0, len(some)])).log_z
        out[r] = np.exp(left[0] - everything[s])
    return out
