"""Weights and pivots that change next to nothing, dropped after training.

With a budget eps, a term loses those weights whose influence |w| max_t |x_t| is no more than a threshold, the largest
that was found for which

    sum over dropped weights of |x_tf w_fy| <= eps        at every training position t, for every label y

so that no score of a training position changes by more than eps, whichever way the changes go. Pivots go as a whole,
the one with the least max_y |alpha_y| sqrt(k(b, b)) first, while the sum over those dropped of |k(x_t, b) alpha_y| is
no more than eps. Several terms share eps evenly. Transitions stay as they are.

What is left is another point of the same P: its value is taken there, against the same lower bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from math import comb
from typing import Any

import numpy as np

from ..kernels import Inputs, Pivots, inverse_roots
from ..maps import SparseWeights
from ..system import Workers, ranges
from .model import AffineTerm, ConjunctionTerm, ExplicitTerm, KernelTerm, Term

ROWS_PER_TASK = 2048
HALVINGS = 10  # of the range, on a logarithmic scale, that the threshold is looked for in


@dataclass(frozen=True)
class PruneReport:
    """What pruning took, and what that changed."""

    prune: float  # eps
    weights: int  # numbers before, and after
    weights_left: int
    bytes_saved: int  # of the file
    objective: float  # P before
    certified_gap: float | None
    accuracy_on: str  # dev or training
    accuracy: float  # before, and after
    accuracy_left: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def pruned_term(term: Term, inputs: Inputs, budget: float, workers: Workers) -> Term:
    """The same with zeros in the place of what goes; `compact` makes it small."""
    if isinstance(term, KernelTerm):
        alpha = term.alpha.copy()
        alpha[_needless_pivots(term, inputs, budget, workers)] = 0.0
        return replace(term, alpha=alpha)
    weights = term.weights if isinstance(term.weights, SparseWeights) else SparseWeights.of(term.weights)
    sizes = np.abs(weights.values)
    influence = sizes * np.repeat(_reach(term, inputs), np.diff(weights.ends))
    positive = replace(inputs, real=np.abs(inputs.real), bag=None if inputs.bag is None else abs(inputs.bag))
    chunks = ranges(len(inputs), ROWS_PER_TASK)

    def fits(limit: float) -> bool:
        """Whether all weights with no more influence than this may go."""
        gone = weights.where(influence <= limit)
        trial = _like(term, replace(gone, values=np.abs(gone.values)))

        def worst(rows: slice) -> float:
            change = np.zeros((rows.stop - rows.start, weights.width))
            trial.add_scores(positive.take(rows), change)
            return float(change.max(initial=0.0))

        return all(change <= budget for change in workers.map(worst, chunks))

    limit = _largest(fits, budget / max(_most_active(term, inputs), 1), budget)
    return replace(term, weights=weights.where(influence > limit))


def _like(term: ExplicitTerm | ConjunctionTerm, weights: SparseWeights) -> ExplicitTerm | ConjunctionTerm:
    """A term with these weights and nothing else that adds to scores."""
    if isinstance(term, ConjunctionTerm):
        return replace(term, weights=weights)
    return ExplicitTerm(term.name, term.type, term.features, weights, term.cosine)


def _largest(fits: Callable[[float], bool], low: float, high: float) -> float:
    """Nearly the largest limit that fits, of which `low` is known to and none above `high` does."""
    if high <= 0 or fits(high):
        return high
    for _ in range(HALVINGS):
        middle = float(np.sqrt(low * high))
        if fits(middle):
            low = middle
        else:
            high = middle
    return low


def _reach(term: ExplicitTerm | ConjunctionTerm, inputs: Inputs) -> np.ndarray:
    """By how much a weight of each feature can change a score of these positions at most, [D]."""
    if isinstance(term, ConjunctionTerm):
        reach = np.square(term.conjunctions.norms)  # all of a column in one row
        lengths = term.conjunctions.kernel.diagonal(inputs) if term.cosine else None
    else:
        parts = [np.ones(int(inputs.sizes.sum()))]
        if inputs.bag is not None:
            parts.append(abs(inputs.bag).max(axis=0).toarray().ravel())
        parts.append(np.abs(inputs.real).max(axis=0, initial=0.0))
        reach = np.concatenate(parts)
        lengths = inputs.squared_norms() if term.cosine else None
    return reach if lengths is None else reach * inverse_roots(lengths).max(initial=0.0)


def _most_active(term: ExplicitTerm | ConjunctionTerm, inputs: Inputs) -> int:
    """No position has more features, or conjunctions of them."""
    bag = 0 if inputs.bag is None else int(np.diff(inputs.bag.indptr).max(initial=0))
    features = inputs.codes.shape[1] + bag + inputs.real.shape[1]
    if not isinstance(term, ConjunctionTerm):
        return features
    return sum(comb(features, j) for j in range(term.conjunctions.kernel.degree + 1))


def _needless_pivots(term: KernelTerm, inputs: Inputs, budget: float, workers: Workers) -> np.ndarray:
    """Numbers of pivots that may go."""
    sizes = np.abs(term.alpha).max(axis=1, initial=0.0)
    order = np.argsort(sizes * np.sqrt(np.maximum(term.kernel.diagonal(term.pivots), 0.0)), kind="stable")
    pivots = Pivots(term.pivots.take(order), term.kernel)

    shares = np.abs(term.alpha[order])

    def fitting(rows: slice) -> int:
        """How many of the first pivots may go, for these positions."""
        K = np.abs(pivots.gram(inputs.take(rows)))
        few, many = 0, len(order)
        while few < many:
            middle = (few + many + 1) // 2
            if (K[:, :middle] @ shares[:middle]).max(initial=0.0) <= budget:
                few = middle
            else:
                many = middle - 1
        return few

    found = workers.map(fitting, ranges(len(inputs), ROWS_PER_TASK))
    return order[: min([len(order) - 1, *found])]  # one has to stay


def compact(term: Term) -> Term:
    """The same scores in the smaller form."""
    if isinstance(term, KernelTerm):
        left = np.flatnonzero(term.alpha.any(axis=1))
        left = left if len(left) else np.arange(1)
        return replace(term, pivots=term.pivots.take(left), lines=term.lines[left], alpha=term.alpha[left])
    if isinstance(term, ConjunctionTerm):
        term = _without_empty_columns(term)
    dense = term.weights.dense()
    return term if term.weights.bytes < dense.nbytes else replace(term, weights=dense)


def _without_empty_columns(term: ConjunctionTerm) -> ConjunctionTerm:
    found, counts = term.conjunctions, np.diff(term.weights.ends)
    used = counts > 0
    kept = used[found.columns]
    number = np.cumsum(used) - 1
    smaller = replace(
        found, keys=found.keys[kept], columns=number[found.columns[kept]].astype(np.int32), norms=found.norms[used]
    )
    ends = np.concatenate([[0], np.cumsum(counts[used], dtype=np.int64)])
    return replace(term, conjunctions=smaller, weights=replace(term.weights, ends=ends))


def numbers(terms: Sequence[Term]) -> int:
    """Weights and coefficients of all terms that are not zero, in whatever form they are held."""
    return sum(map(_own_numbers, terms))


def _own_numbers(term: Term) -> int:
    if isinstance(term, KernelTerm):
        return int(np.count_nonzero(term.alpha))
    values = term.weights.values if isinstance(term.weights, SparseWeights) else term.weights
    return int(np.count_nonzero(values)) + (len(term.bias) if isinstance(term, AffineTerm) else 0)
