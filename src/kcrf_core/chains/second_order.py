"""Chains of second order: which pairs exist, and log space where scaling cannot be trusted.

A pair of labels that is forbidden everywhere (minus infinity) is left out of the recursions altogether, so a label
scheme makes them cheaper. All functions take the checked arrays of `chain`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..system import positions_within
from . import _second_order, _second_order_tangent


@dataclass(frozen=True)
class _Layout:
    """Allowed pairs, and triples in one block for each middle label; see `_pairs.pxd`."""

    first: np.ndarray  # [P] int32
    second: np.ndarray  # [P] int32
    begin: np.ndarray  # [Y+1] int32
    into: np.ndarray  # [P] int32
    into_begin: np.ndarray  # [Y+1] int32
    block: np.ndarray  # [Y+1] int64
    triples: np.ndarray  # [Q] where each triple of the blocks stands in U
    transposed: np.ndarray  # [Q] the same with every block transposed

    @classmethod
    def of(cls, allowed: np.ndarray) -> _Layout:
        """From [Y, Y] booleans."""
        Y = len(allowed)
        first, second = np.nonzero(allowed)
        into = np.lexsort((first, second))
        begin, into_begin = (np.concatenate([[0], np.cumsum(allowed.sum(axis=axis))]) for axis in (1, 0))
        blocks = []
        for j in range(Y):
            before = first[into[into_begin[j] : into_begin[j + 1]]]
            after = second[begin[j] : begin[j + 1]]
            blocks.append((before[:, None] * Y + j) * Y + after)
        block = np.concatenate([[0], np.cumsum([part.size for part in blocks])])
        triples = np.concatenate([part.ravel() for part in blocks])
        transposed = np.concatenate([part.T.ravel() for part in blocks])
        return cls(
            first.astype(np.int32),
            second.astype(np.int32),
            begin.astype(np.int32),
            into.astype(np.int32),
            into_begin.astype(np.int32),
            block.astype(np.int64),
            triples,
            transposed,
        )

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.first, self.second, self.begin, self.into, self.into_begin, self.block

    def pairs(self, stacked: np.ndarray) -> np.ndarray:
        """[m, Y, Y] as [m, P]."""
        return np.ascontiguousarray(stacked[:, self.first, self.second])

    def spread_pairs(self, pairs: np.ndarray) -> np.ndarray:
        """[m, P] as [m, Y, Y], zero where nothing is allowed."""
        Y = len(self.begin) - 1
        out = np.zeros((len(pairs), Y, Y))
        out[:, self.first, self.second] = pairs
        return out

    def spread_triples(self, triples: np.ndarray) -> np.ndarray:
        """[Q] as [Y, Y, Y]."""
        Y = len(self.begin) - 1
        out = np.zeros(Y**3)
        out[self.triples] = triples
        return out.reshape(Y, Y, Y)


def _layout(stacked: np.ndarray) -> _Layout | None:
    """None where no allowed pair follows another: such sequences are short, and left to log space."""
    allowed = ~np.logical_and.reduce(np.isneginf(stacked), axis=0)
    layout = _Layout.of(allowed)
    return layout if len(layout.triples) else None


def marginals(
    scores: np.ndarray,  # [n, Y]
    stacked: np.ndarray,  # [1, Y, Y] or [n, Y, Y]
    start: np.ndarray,  # [Y]
    end: np.ndarray,  # [Y]
    triples: np.ndarray,  # [Y, Y, Y]
    offsets: np.ndarray,  # [S+1]
    weights: np.ndarray,  # [S]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Node [n, Y], edge (like `stacked`), triple [Y, Y, Y] and log Z [S]; not finite where nothing is possible."""
    Y = scores.shape[1]
    S, longest = len(offsets) - 1, _longest(offsets)
    node, log_z, done = np.empty_like(scores), np.empty(S), np.zeros(S, dtype=np.uint8)
    layout = _layout(stacked)
    if layout is None:
        edge, triple = np.zeros_like(stacked), np.zeros((Y, Y, Y))
    else:
        shift, depth, up, down = _exponentials(layout, triples)
        pairs = layout.pairs(stacked)
        pair, packed = np.zeros_like(pairs), np.zeros(len(up))
        work = np.empty(_second_order.work_size(longest, Y, len(layout.first), len(up)))
        _second_order.forward_backward(
            scores, pairs, start, end, up, down, shift, depth, *layout.arrays(), offsets, weights,
            node, pair, packed, log_z, done, work,
        )  # fmt: skip
        edge, triple = layout.spread_pairs(pair), layout.spread_triples(packed)
    for k in np.flatnonzero(done == 0):
        rows = slice(offsets[k], offsets[k + 1])
        own = stacked if len(stacked) == 1 else stacked[rows]
        found = _in_log_space(scores[rows].astype(np.float64), own, start, end, triples)
        log_z[k] = found.log_z
        _put(found, rows, weights[k], node, edge, triple)
    return node, edge, triple, log_z


def tangent(
    scores: np.ndarray,
    stacked: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    triples: np.ndarray,
    offsets: np.ndarray,
    weights: np.ndarray,
    d_scores: np.ndarray,  # directions, shaped like the potentials
    d_stacked: np.ndarray,
    d_start: np.ndarray,
    d_end: np.ndarray,
    d_triples: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Derivatives of node, edge and triple marginals, and an array [S] that is not finite where nothing is possible."""
    Y = scores.shape[1]
    S, longest = len(offsets) - 1, _longest(offsets)
    d_node, log_z, done = np.empty_like(scores), np.zeros(S), np.zeros(S, dtype=np.uint8)
    layout = _layout(stacked)
    if layout is None:
        d_edge, d_triple = np.zeros_like(stacked), np.zeros((Y, Y, Y))
    else:
        _, depth, up, down = _exponentials(layout, triples)
        pairs, d_pairs = layout.pairs(stacked), layout.pairs(d_stacked)
        flat = d_triples.ravel()
        d_up, d_down = up * flat[layout.triples], down * flat[layout.transposed]
        d_pair, packed = np.zeros_like(pairs), np.zeros(len(up))
        work = np.empty(_second_order_tangent.work_size(longest, Y, len(layout.first), len(up)))
        _second_order_tangent.tangent(
            scores, pairs, start, end, up, down, depth, d_scores, d_pairs, d_start, d_end, d_up, d_down,
            *layout.arrays(), offsets, weights, d_node, d_pair, packed, done, work,
        )  # fmt: skip
        d_edge, d_triple = layout.spread_pairs(d_pair), layout.spread_triples(packed)
    for k in np.flatnonzero(done == 0):
        rows = slice(offsets[k], offsets[k + 1])
        own, d_own = (array if len(array) == 1 else array[rows] for array in (stacked, d_stacked))
        found = _in_log_space(scores[rows].astype(np.float64), own, start, end, triples)
        log_z[k] = found.log_z
        if not np.isfinite(found.log_z):
            continue
        change = _log_tangent(found, triples, d_scores[rows], d_own, d_start, d_end, d_triples)
        _put(change, rows, weights[k], d_node, d_edge, d_triple)
    return d_node, d_edge, d_triple, log_z


def _put(
    found: _LogMessages, rows: slice, weight: float, node: np.ndarray, edge: np.ndarray, triple: np.ndarray
) -> None:
    """What one sequence has, marginals or their derivatives, into the arrays of all."""
    node[rows] = found.node
    triple += weight * found.triple
    if len(edge) == 1:
        edge[0] += weight * found.edge.sum(axis=0)
    else:
        edge[rows] = found.edge


def viterbi(
    scores: np.ndarray,
    stacked: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    triples: np.ndarray,
    offsets: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The best labels [n] int32 and their unnormalised log scores [S]."""
    layout = _layout(stacked) or _Layout.of(np.ones(stacked.shape[1:], dtype=bool))
    path, best = np.zeros(len(scores), dtype=np.int32), np.empty(len(offsets) - 1)
    P = len(layout.first)
    _second_order.viterbi(
        scores,
        layout.pairs(stacked),
        start,
        end,
        np.ascontiguousarray(triples, dtype=np.float64).ravel()[layout.triples],
        *layout.arrays(),
        offsets,
        path,
        best,
        np.empty(_longest(offsets) * P + len(layout.begin) - 1),
    )
    return path, best


def path_scores(triples: np.ndarray, offsets: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """What the triples of the given labels add to the score of each sequence, [S]."""
    last = np.flatnonzero(positions_within(offsets) >= 2)
    found = triples[labels[last - 2], labels[last - 1], labels[last]]
    sequence = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))[last]
    return np.bincount(sequence, found, minlength=len(offsets) - 1)


def _longest(offsets: np.ndarray) -> int:
    return int(np.diff(offsets).max(initial=0))


def _exponentials(layout: _Layout, triples: np.ndarray) -> tuple[float, float, np.ndarray, np.ndarray]:
    """The largest entry of U, how far below it the smallest finite one lies, and exp(U - largest) block by block.

    Blocks come upright and transposed.
    """
    flat = np.ascontiguousarray(triples, dtype=np.float64).ravel()
    chosen = flat[layout.triples]
    shift = float(chosen.max(initial=-np.inf))
    if not np.isfinite(shift):
        shift = 0.0
    depth = shift - float(chosen.min(initial=shift, where=np.isfinite(chosen)))
    return shift, depth, np.exp(chosen - shift), np.exp(flat[layout.transposed] - shift)


# ----------------------------------------------------------------------------- log space


@dataclass(frozen=True)
class _LogMessages:
    """One sequence in log space. From t = 1 on states are pairs; row 0 of pair arrays is not used."""

    forward: np.ndarray  # [T, Y, Y]
    backward: np.ndarray  # [T, Y, Y]
    local: np.ndarray  # [T, Y, Y] what position t adds: edges, scores, and at t = 1 all that comes before
    node: np.ndarray  # [T, Y] marginals
    edge: np.ndarray  # [T, Y, Y]
    triple: np.ndarray  # [Y, Y, Y] summed over positions
    log_z: float


@np.errstate(invalid="ignore")
def _in_log_space(
    scores: np.ndarray, stacked: np.ndarray, start: np.ndarray, end: np.ndarray, triples: np.ndarray
) -> _LogMessages:
    T, Y = scores.shape
    edge, triple = np.zeros((T, Y, Y)), np.zeros((Y, Y, Y))
    local = np.broadcast_to(stacked, (T, Y, Y)) + scores[:, None, :]
    if T == 1:
        total = start + scores[0] + end
        log_z = float(np.logaddexp.reduce(total, axis=None))
        empty = np.zeros((1, Y, Y))
        return _LogMessages(empty, empty, local, _probabilities(total - log_z)[None], edge, triple, log_z)
    local[1] += (start + scores[0])[:, None]
    forward, backward = np.full((T, Y, Y), -np.inf), np.full((T, Y, Y), -np.inf)
    forward[1] = local[1]
    for t in range(2, T):
        forward[t] = np.logaddexp.reduce(forward[t - 1][:, :, None] + triples, axis=0) + local[t]
    backward[-1] = end[None, :]
    for t in range(T - 2, 0, -1):
        backward[t] = np.logaddexp.reduce(triples + (local[t + 1] + backward[t + 1])[None], axis=2)
    log_z = float(np.logaddexp.reduce(forward[-1] + backward[-1], axis=None))
    for t in range(1, T):
        edge[t] = _probabilities(forward[t] + backward[t] - log_z)
        if t > 1:
            before = forward[t - 1][:, :, None] + triples
            triple += _probabilities(before + (local[t] + backward[t])[None] - log_z)
    node = np.concatenate([edge[1].sum(axis=1)[None], edge[1:].sum(axis=1)])
    return _LogMessages(forward, backward, local, node, edge, triple, log_z)


@np.errstate(invalid="ignore")
def _log_tangent(
    found: _LogMessages,
    triples: np.ndarray,
    d_scores: np.ndarray,
    d_stacked: np.ndarray,
    d_start: np.ndarray,
    d_end: np.ndarray,
    d_triples: np.ndarray,
) -> _LogMessages:
    """Derivatives in place of marginals, in the same layout."""
    T, Y = d_scores.shape
    d_scores = d_scores.astype(np.float64)
    node, edge, triple = np.zeros((T, Y)), np.zeros((T, Y, Y)), np.zeros((Y, Y, Y))
    if T == 1:
        direction = d_start + d_scores[0] + d_end
        node[0] = found.node[0] * (direction - found.node[0] @ direction)
    else:
        d_local = np.broadcast_to(d_stacked, (T, Y, Y)) + d_scores[:, None, :]
        d_local[1] += (d_start + d_scores[0])[:, None]
        u, w = np.zeros((T, Y, Y)), np.zeros((T, Y, Y))
        u[1] = d_local[1]
        for t in range(2, T):
            before = found.forward[t - 1][:, :, None] + triples
            share = _exp_or_zero(before - np.logaddexp.reduce(before, axis=0)[None])
            u[t] = (share * (u[t - 1][:, :, None] + d_triples)).sum(axis=0) + d_local[t]
        w[-1] = d_end[None, :]
        for t in range(T - 2, 0, -1):
            after = triples + (found.local[t + 1] + found.backward[t + 1])[None]
            share = _exp_or_zero(after - np.logaddexp.reduce(after, axis=2)[:, :, None])
            w[t] = (share * (d_triples + (d_local[t + 1] + w[t + 1])[None])).sum(axis=2)
        mean = float((found.edge[-1] * (u[-1] + w[-1])).sum())
        for t in range(1, T):
            edge[t] = found.edge[t] * (u[t] + w[t] - mean)
            if t > 1:
                p = _exp_or_zero(
                    found.forward[t - 1][:, :, None]
                    + triples
                    + (found.local[t] + found.backward[t])[None]
                    - found.log_z
                )
                triple += p * (u[t - 1][:, :, None] + d_triples + (d_local[t] + w[t])[None] - mean)
        node = np.concatenate([edge[1].sum(axis=1)[None], edge[1:].sum(axis=1)])
    return _LogMessages(found.forward, found.backward, found.local, node, edge, triple, found.log_z)


def _probabilities(logs: np.ndarray) -> np.ndarray:
    """Of all that is possible at one position, where large potentials leave log Z with an error of its own."""
    found = _exp_or_zero(logs)
    total = found.sum()
    return found / total if total > 0 else found


def _exp_or_zero(values: np.ndarray) -> np.ndarray:
    """exp, and zero where minus infinity less minus infinity has left nothing to compare."""
    return np.exp(np.where(np.isnan(values), -np.inf, values))
