"""The paper's estimator: Newton steps with the blocks of (30), one block per term, all terms at once.

A node term's block is an operator of two products with the map, solved by conjugate gradients that leading columns
precondition (see `metric`); the edge term's is a small matrix, solved by Cholesky (`EngineBlocks`). Plain steps with
blocks zigzag (OCR, poly-2, 500 pivots: no gap of 1e-3 after 314): the pairs of L-BFGS laid over them learn what they
leave out (72 steps to 1e-4). Every step is searched along, since (30) can underestimate the curvature.

The solver `subspace` takes one term at a time (Section 5.1): the one with the largest bound on what it can lower P by,
(sigma_j^2 / 2) |grad_j P|^2 (Corollary 10).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np

from .. import HessianBlocks, Objective, Point, Vector
from .lbfgs import Memory, step
from .metric import BlockMetric, conjugate_gradients, leading_columns
from .run import Run

FORCING = 0.2


def descend_by_subspace(objective: Objective, theta: Vector, now: Point | None, run: Run) -> None:
    """Take steps of one term each, the most promising one; see `descend`."""
    descend(objective, theta, now, run, one_term=True)


def descend(objective: Objective, theta: Vector, now: Point | None, run: Run, one_term: bool = False) -> None:
    """Take steps until the run stops them, or rounding hides all progress."""
    if now is None:
        now = run.evaluate(objective, theta)
    columns, memory = leading_columns(objective, run), Memory(objective.vectors)
    while True:
        blocks = run.blocks(objective, theta)
        metric = BlockMetric(blocks, columns)
        which: Iterable[int] = range(len(objective.blocks))
        if one_term:
            squares = objective.vectors.block_dots(now.gradient, now.gradient)
            which = [int(np.argmax(objective.sigma2 / 2 * squares))]
        newton = partial(newton_step, blocks, metric, run, which)
        evaluate = partial(run.evaluate, objective)
        reached = step(evaluate, theta, now, memory, newton, objective.vectors, run)
        if reached is None:
            return
        theta, now = reached


def newton_step(blocks: HessianBlocks, metric: BlockMetric, run: Run, which: Iterable[int], downhill: Vector) -> Vector:
    """Return Newton steps with the blocks of some terms, side by side; the other parameters stay."""
    objective, vectors = blocks.objective, blocks.objective.vectors
    out = vectors.zeros()
    for j in which:
        own, precondition = vectors.take(downhill, j), partial(metric.of_term, j)
        if objective.terms[j].clique.mapped:
            product = partial(run.block_product, blocks, j)
            found = conjugate_gradients(product, own, precondition, FORCING, vectors.of_block(j))
        else:
            found = precondition(own)  # the block itself, or the diagonal that stands in for it
        vectors.put(out, j, found)
    return out
