"""The paper's estimator: Newton steps with the blocks of (30), one block per term, all terms at once.

A node term's block is Phi^T [(diag p - p p^T)(Phi v)] + v / sigma^2 with positions independent and labels coupled: an
operator of two products with the map and no forward-backward, solved by conjugate gradients. The edge term's block is a
small matrix, solved by Cholesky (`ThreadBlocks`). To factorise a node term's block too would take D (C + 1) / 8 passes
for the matrix alone, where conjugate gradients, preconditioned by leading columns (see `metric`), take about five
products. With two labels and few columns that preconditioner is the factorised block.

The blocks leave out what positions and terms have to do with each other, so plain steps with them zigzag: on OCR
(poly-2, 500 pivots) 314 of them did not reach a gap of 1e-3. The pairs of L-BFGS laid over them learn just that: 72
steps to 1e-4. Every step is searched along, since (30) can underestimate the curvature.

The solver `subspace` takes one term at a time (Section 5.1), the one that promises most next. With the other terms
held, term j can lower P by at most (sigma_j^2 / 2) |grad_j P|^2 (Corollary 10). The term with the largest such bound
gets the step; then the bounds are taken anew. Without pairs pitch accent (linear) took 479 steps, not 29.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NoReturn

import numpy as np

from .. import HessianBlocks, Objective, Point, Vector
from .lbfgs import Memory, step
from .metric import BlockMetric, LeadingColumns, conjugate_gradients
from .run import Run

FORCING = 0.2


def descend(objective: Objective, theta: Vector, now: Point | None, run: Run) -> NoReturn:
    """Take steps until the run raises `Stop` or `Restart`."""
    descend_by_blocks(objective, theta, now, run, lambda now: range(len(objective.blocks)))


def descend_by_subspace(objective: Objective, theta: Vector, now: Point | None, run: Run) -> NoReturn:
    """Take steps of one term each until the run raises `Stop` or `Restart`."""

    def most_promising(now: Point) -> list[int]:
        squares = objective.vectors.block_dots(now.gradient, now.gradient)
        return [int(np.argmax(objective.sigma2 / 2 * squares))]

    descend_by_blocks(objective, theta, now, run, most_promising)


def descend_by_blocks(
    objective: Objective, theta: Vector, now: Point | None, run: Run, choose: Callable[[Point], Iterable[int]]
) -> NoReturn:
    """Take Newton steps with the blocks of the terms that are chosen at each point."""
    if now is None and run.resumed is None:
        now = run.evaluate(objective, theta)
    columns, memory = LeadingColumns(objective, run), Memory(objective.vectors)
    if run.resumed is not None:
        theta, now = run.resumed["theta"], run.resumed["now"]
        columns.restore(run.resumed["columns"])
        memory.restore(run.resumed["memory"])
    assert now is not None
    while True:
        run.between_steps(objective, theta=theta, now=now, columns=columns, memory=memory)
        blocks = run.blocks(objective, theta)
        metric = BlockMetric(blocks, columns, run)
        newton = partial(newton_step, blocks, metric, run, list(choose(now)))
        evaluate = partial(run.evaluate, objective)
        found = step(evaluate, theta, now, memory, newton, objective.vectors, run)
        if found is None:
            run.raise_precision(objective)
        theta, now = found


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
