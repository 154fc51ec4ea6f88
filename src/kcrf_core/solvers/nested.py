"""The default: L-BFGS that begins on the first columns of the maps.

The columns of a reduced map are nested: the first m of them are the map of the first m pivots, L being triangular. So
the first steps are taken on a part of the columns, where a pass costs that part, and their pairs are carried over with
zeros for the other columns, which brings far more than the point alone. Other maps have no such order: there it is
`lbfgs`.

OCR, poly-3, 1,500 pivots, gap of 1e-3, work in passes: 127 for L-BFGS without any scaling, 74 for `lbfgs`, 63 for this;
pitch accent, poly-2, gap of 1e-4: 59, 36 and 21. Blocks of the Hessian on the leading columns as a first guess (see
`metric`) were no better than the diagonal of `lbfgs`: 62 and 21.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NoReturn

import numpy as np

from ..maps import has_nested_columns
from ..objective import Evaluation, Posterior
from . import lbfgs
from .first_guess import scaling
from .run import Run

PART, PART_STEPS = 5, 25  # begin on a fifth of the columns
FEWEST_COLUMNS = 40  # where a fifth is less, passes cost next to nothing anyway


def descend(posterior: Posterior, theta: np.ndarray, now: Evaluation | None, run: Run) -> NoReturn:
    """Step after step, until the run raises `Stop` or `Restart`."""
    memory = None
    if now is None and not theta.any():
        theta, memory = _begin_on_part(posterior, run)
    lbfgs.descend(posterior, theta, now, run, memory)


def _begin_on_part(posterior: Posterior, run: Run) -> tuple[np.ndarray, lbfgs.Memory]:
    """A point and the pairs that led to it, from a few steps on the first columns of every reduced map."""
    part = narrowed(posterior)
    if part is None:
        return np.zeros(posterior.size), lbfgs.memory_for(posterior, run)

    def evaluate(point: np.ndarray) -> Evaluation:
        return run.evaluate_part(part, point, posterior, widened(point, part, posterior))

    theta, memory = np.zeros(part.size), lbfgs.memory_for(part, run)
    now, metric = evaluate(theta), scaling(part, run, posterior)
    for _ in range(PART_STEPS):
        found = lbfgs.step(evaluate, theta, now, memory, metric, part.slices, run)
        if found is None:
            break
        theta, now = found
    wider = partial(widened, part=part, posterior=posterior)
    return wider(theta), memory.widened(wider, posterior.slices, run.kept_dtype(posterior))


def widened(vector: np.ndarray, part: Posterior, posterior: Posterior) -> np.ndarray:
    """A vector over the first columns of every map as one over all of them, with zeros for the others."""
    # Weights are kept row by row: those of the first columns come first in their block.
    out = np.zeros(posterior.size)
    for few, all_of_it in zip(part.blocks, posterior.blocks, strict=True):
        out[all_of_it.start : all_of_it.start + few.stop - few.start] = vector[few]
    return out


def narrowed(posterior: Posterior) -> Posterior | None:
    """P on the first columns of every reduced map; None where they are too few to bother."""
    terms, smaller = [], False
    for term in posterior.terms:
        if has_nested_columns(term.map) and term.map.size >= PART * FEWEST_COLUMNS:
            term, smaller = replace(term, map=term.map.leading(term.map.size // PART)), True
        terms.append(term)
    if not smaller:
        return None
    return Posterior(posterior.problem, terms, posterior.workers, posterior.dtype, posterior.forbidden)
