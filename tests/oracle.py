"""Short and slow truths to test the core against: enumeration, naive kernels, textbook formulas."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from kcrf_core.scoring import SpanFinder


def labellings(T, Y):
    return itertools.product(range(Y), repeat=T)


def path_score(scores, transitions, start, end, path, triples=None):
    """Unnormalised log score of one labelling; transitions [Y, Y] or [T, Y, Y], triples [Y, Y, Y]."""
    total = start[path[0]] + end[path[-1]] + sum(scores[t, y] for t, y in enumerate(path))
    for t in range(1, len(path)):
        edge = transitions if transitions.ndim == 2 else transitions[t]
        total += edge[path[t - 1], path[t]]
    if triples is not None:
        total += sum(triples[path[t - 2], path[t - 1], path[t]] for t in range(2, len(path)))
    return total


def enumerate_chain(scores, transitions, start, end, triples=None):
    """log Z, node marginals [T, Y], edge marginals [T, Y, Y] and the best labelling, by brute force."""
    T, Y = scores.shape
    paths = list(labellings(T, Y))
    totals = np.array([path_score(scores, transitions, start, end, path, triples) for path in paths])
    top = totals.max()
    log_z = top + np.log(np.exp(totals - top).sum())
    node, edge = np.zeros((T, Y)), np.zeros((T, Y, Y))
    for path, p in zip(paths, np.exp(totals - log_z), strict=True):
        for t, y in enumerate(path):
            node[t, y] += p
            if t:
                edge[t, path[t - 1], y] += p
    return log_z, node, edge, paths[int(np.argmax(totals))]


def triple_marginals(scores, transitions, start, end, triples):
    """Marginals of three labels in a row, summed over positions, [Y, Y, Y], by brute force."""
    T, Y = scores.shape
    log_z = enumerate_chain(scores, transitions, start, end, triples)[0]
    out = np.zeros((Y, Y, Y))
    for path in labellings(T, Y):
        p = np.exp(path_score(scores, transitions, start, end, path, triples) - log_z)
        for t in range(2, T):
            out[path[t - 2], path[t - 1], path[t]] += p
    return out


def _log_sum(terms, changes, axis):
    """log sum exp over an axis, and the mean of `changes` under the shares."""
    top = terms.max(axis=axis, keepdims=True)
    shares = np.exp(terms - np.where(np.isneginf(top), 0, top))
    total = shares.sum(axis=axis, keepdims=True)
    possible = total > 0
    log = np.where(possible, top + np.log(np.where(possible, total, 1)), -np.inf)
    mean = (shares * changes).sum(axis=axis) / np.where(possible, total, 1).squeeze(axis)
    return log.squeeze(axis), mean


def log_space_chains(scores, edges, start, end, d_scores, d_edges, d_start, d_end):
    """log Z [B], marginals of nodes [B, T, Y] and edges [B, T, Y, Y], and their derivatives along a direction.

    B chains of one length, with scores [B, T, Y], edges [B, T, Y, Y] of which row 0 is not used, start and end [B, Y]:
    logarithms in extended precision, nothing is scaled and nothing underflows.
    """
    F, E, s, e, dF, dE, ds, de = (
        np.asarray(part, dtype=np.longdouble) for part in (scores, edges, start, end, d_scores, d_edges, d_start, d_end)
    )
    B, T, Y = F.shape
    forward, backward = [(s + F[:, 0], ds + dF[:, 0])], [(e, de)]
    for t in range(1, T):
        log, change = forward[-1]
        log, change = _log_sum(log[:, :, None] + E[:, t], change[:, :, None] + dE[:, t], 1)
        forward.append((log + F[:, t], change + dF[:, t]))
    for t in range(T - 1, 0, -1):
        log, change = backward[0]
        backward.insert(0, _log_sum(E[:, t] + (F[:, t] + log)[:, None], dE[:, t] + (dF[:, t] + change)[:, None], 2))
    log_z, d_log_z = _log_sum(forward[-1][0] + e, forward[-1][1] + de, 1)
    unit = np.where(np.isneginf(log_z), 0, log_z)  # also where nothing is possible, and all marginals are zero
    node, edge, d_node, d_edge = (np.zeros(shape) for shape in 2 * ((B, T, Y), (B, T, Y, Y)))
    for t in range(T):
        p = np.exp(forward[t][0] + backward[t][0] - unit[:, None])
        node[:, t], d_node[:, t] = p, p * (forward[t][1] + backward[t][1] - d_log_z[:, None])
        if t:
            before, after = forward[t - 1], (F[:, t] + backward[t][0], dF[:, t] + backward[t][1])
            p = np.exp(before[0][:, :, None] + E[:, t] + after[0][:, None] - unit[:, None, None])
            change = before[1][:, :, None] + dE[:, t] + after[1][:, None] - d_log_z[:, None, None]
            edge[:, t], d_edge[:, t] = p, p * change
    return log_z.astype(np.float64), node, edge, d_node, d_edge


def inner(inputs, i, others, j):
    """<x, x'> of two rows, value by value."""
    total = sum(int(a == b) for a, b in zip(inputs.codes[i], others.codes[j], strict=True) if a >= 0)
    total += float(inputs.real[i] @ others.real[j])
    if inputs.bag is not None:
        total += float((inputs.bag[[i]].toarray() @ others.bag[[j]].toarray().T)[0, 0])
    return total


def gram(kernel, inputs, others):
    """Kernel values by the formulas of the documentation."""
    if kernel.type == "cosine":
        K = gram(kernel.kernel, inputs, others)
        lengths = [np.sqrt(np.diagonal(gram(kernel.kernel, side, side))) for side in (inputs, others)]
        outer = np.outer(*lengths)
        return np.where(outer > 0, K / np.where(outer > 0, outer, 1), 0)
    if kernel.type in ("sum", "product"):
        values = [gram(part.kernel, inputs.columns(part.group), others.columns(part.group)) for part in kernel.parts]
        if kernel.type == "sum":
            return sum(weight * K for weight, K in zip(kernel.weights, values, strict=True))
        return kernel.scale * np.prod(values, axis=0)
    if kernel.type == "image":
        inputs, others = (replace(side, real=neighbourhoods(kernel, side.real)) for side in (inputs, others))
    K = np.empty((len(inputs), len(others)))
    for i in range(len(inputs)):
        for j in range(len(others)):
            dot = inner(inputs, i, others, j)
            if kernel.type == "linear":
                K[i, j] = dot
            elif kernel.type == "poly":
                K[i, j] = kernel.scale * (kernel.gamma * dot + kernel.coef0) ** kernel.degree
            else:
                distance = inner(inputs, i, inputs, i) + inner(others, j, others, j) - 2 * dot
                K[i, j] = np.exp(-kernel.gamma * distance)
    return K


def neighbourhoods(picture, pixels):
    """Products of pixels in reach, pooled around the points of the grid, and their roots."""
    H, W = picture.shape
    spacing = max(1, round(1.5 * picture.blur))

    def points(length):
        count = -(-(length - 1) // spacing) + 1
        return [(length - 1) / 2 + spacing * (i - (count - 1) / 2) for i in range(count)]

    def weight(distance):
        return np.exp(-(distance**2) / (2 * picture.blur**2)) if abs(distance) <= 4 * picture.blur else 0.0

    out = []
    for x in pixels.reshape(len(pixels), H, W):
        row = []
        for dy in range(picture.reach + 1):
            for dx in range(-picture.reach, picture.reach + 1):
                if dy == 0 and dx < 0:
                    continue
                for a in points(H):
                    for b in points(W):
                        total = 0.0
                        for h in range(H):
                            for w in range(W):
                                inside = 0 <= h + dy < H and 0 <= w + dx < W
                                other = 1.0 if (dy, dx) == (0, 0) else x[h + dy, w + dx] if inside else 0.0
                                total += weight(h - a) * weight(w - b) * x[h, w] * other
                        row.append(np.sign(total) * np.sqrt(abs(total)))
        out.append(row)
    return np.array(out)


def one_hot(inputs):
    """Features of the linear kernel, [N, D], in the order of the explicit map."""
    blocks = []
    for c, size in enumerate(inputs.sizes):
        block = np.zeros((len(inputs), size))
        for t, code in enumerate(inputs.codes[:, c]):
            if code >= 0:
                block[t, code] = 1
        blocks.append(block)
    if inputs.bag is not None:
        blocks.append(inputs.bag.toarray())
    return np.hstack([*blocks, inputs.real])


def objective(features, W, edges, labels, offsets, sigma2, edge_sigma2, weights=None):
    """P of a model with one node term, [N, D] features and W [D, Y], by enumeration."""
    total = (W**2).sum() / (2 * sigma2)
    total += sum((part**2).sum() for part in edges) / (2 * edge_sigma2)
    F = features @ W
    for s in range(len(offsets) - 1):
        rows = slice(offsets[s], offsets[s + 1])
        log_z, *_ = enumerate_chain(F[rows], *edges)
        gold = path_score(F[rows], *edges, labels[rows])
        total -= (1.0 if weights is None else weights[s]) * (gold - log_z)
    return total


def incomplete_cholesky(K, size):
    """Greedy pivots one at a time: the order of pivots and the residual diagonal after them."""
    N = len(K)
    d, G, pivots = np.diagonal(K).copy(), np.zeros((N, 0)), []
    for _ in range(size):
        p = int(np.argmax(d))
        column = (K[:, p] - G @ G[p]) / np.sqrt(d[p])
        G = np.column_stack([G, column])
        d = d - column**2
        d[p] = 0
        pivots.append(p)
    return pivots, np.maximum(d, 0)


def conll_rows(data):
    """Rows of a CoNLL text as a plain reader sees them: line, values and where the line ends; and the separator."""
    rows, separator, at = [], None, 0
    for number, line in enumerate(data.split(b"\n"), start=1):
        content = line.removesuffix(b"\r")
        text = content.decode().removeprefix("\ufeff") if number == 1 else content.decode()
        if text.strip(" \t"):
            if separator is None:
                separator = "\t" if "\t" in text else " "
            values = text.split("\t") if separator == "\t" else [value for value in text.split(" ") if value]
            rows.append((number, values, at + len(content)))
        at += len(line) + 1
    return rows, separator


def spans(labels):
    """Return the spans of one sequence as (start, end, type), the end exclusive."""
    alphabet = list(dict.fromkeys(labels))
    finder = SpanFinder(alphabet)
    codes = np.array([alphabet.index(label) for label in labels], dtype=np.int64)
    found = finder.find(codes, np.array([0, len(labels)]))
    kinds = [finder.types[kind] for kind in found.kinds]
    return list(zip(found.starts.tolist(), found.ends.tolist(), kinds, strict=True))
