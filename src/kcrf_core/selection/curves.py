"""Learning curves: scores against the amount of training data, and scores to expect of more of it.

With p_k the mean score over folds after k doublings, t_k = log(p_k) / 4 - log(1 - p_k) grows by similar gains d_k at
each doubling (for a log-loss L, t_k = -log L_k). A local linear trend (Harvey 1989) is fitted to it and continued:
t_k = l_k + e_k, l_k = l_k-1 + d_k, d_k = d_k-1 + z_k. The variance of e_k is that of scores around the sum of an effect
of their fold and one of their size, and halves with each doubling. The deviation of z_k is DRIFT of the last gains.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

import numpy as np

from .cross_validation import Found, Plan, Task

LEVEL = 0.8  # of intervals
DRIFT, SMALLEST_GAIN = 0.3, 0.02
FIRST_GAIN = 0.1, 0.2  # mean and deviation of the first gain before the data are seen
SMALLEST = 0.01  # score; a hundredth of it is the smallest error


def extrapolate(scores: np.ndarray, doublings: int = 2, log_loss: bool = False) -> np.ndarray:
    """Return lower end, median and upper end of the score after each further doubling, [doublings, 3].

    `scores` are [K, F], by size, the smallest first, and by fold. The interval is for the mean over the same folds.

    >>> import numpy as np
    >>> scores = np.array([[70.0, 72.0, 69.0], [76.0, 77.5, 76.0], [81.0, 82.0, 80.0], [84.0, 85.0, 84.5]]) / 100
    >>> np.round(100 * extrapolate(scores), 1).tolist()
    [[86.2, 87.4, 88.5], [87.6, 89.8, 91.6]]
    """
    K, F = scores.shape
    exact = scores.mean(axis=1)
    deviations = scores - exact[:, None] - scores.mean(axis=0) + scores.mean()
    odds = np.exp(np.linspace(-20.0, 20.0, 8001))
    grid = 1 / odds if log_loss else odds / (1 + odds)  # scores, from bad to good
    means = np.clip(exact, SMALLEST, None if log_loss else 1 - SMALLEST / 100)
    observed, straight = (-np.log(x) if log_loss else np.log(x) / 4 - np.log1p(-x) for x in (means, grid))
    slope = 1 / means if log_loss else 1 / (4 * means) + 1 / (1 - means)  # |dt / dp|
    noise = 2.0 ** np.arange(K - 1, -1 - doublings, -1)  # [K + doublings] variances, relative to that of size K
    spread = (deviations * slope[:, None]) ** 2 / noise[:K, None]
    noise *= max(spread.sum() / (F * (K - 1) * (F - 1)), 1e-12)
    size = K - 1 + doublings
    gains = np.tril(np.ones((size, size)))  # a gain is the sum of the first one and of drifts,
    levels = np.vstack([np.zeros(size), gains @ gains])  # and a level is the sum of gains
    drift = DRIFT * max(np.abs(np.diff(observed)[-2:]).mean(), SMALLEST_GAIN)
    variances = np.array([FIRST_GAIN[1], *[drift] * (size - 1)]) ** 2
    covariance = (levels * variances) @ levels.T + 25.0 + np.diag(noise)  # the first level may be anywhere
    expected = FIRST_GAIN[0] * levels[:, 0] + observed[0]
    weights = np.linalg.solve(covariance[:K, :K], covariance[:K, K:])  # [K, doublings]
    middle = expected[K:] + (observed - expected[:K]) @ weights
    error = np.sqrt(np.diagonal(covariance[K:, K:] - covariance[K:, :K] @ weights))
    ends = middle[:, None] + error[:, None] * statistics.NormalDist().inv_cdf((1 + LEVEL) / 2) * np.array([-1, 0, 1])
    found = np.interp(ends, straight, grid) + exact[-1] - means[-1]
    return np.clip(found, 0.0, None if log_loss else 1.0)


def learning_curve(plan: Plan, found: Found, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return scores by size and those to expect of more data, as plain data; the entries of `about` come first."""
    sizes: list[dict[str, Any]] = []
    for k in range(len(plan.folds[0].nested)):
        tasks = [Task(0, f, k) for f in range(len(plan.folds))]
        scores, parts = [found[task][plan.judged_by] for task in tasks], [plan.parts(task)[0] for task in tasks]
        units, positions = np.mean([[len(part), len(plan.rows(part))] for part in parts], axis=0).tolist()
        summary = {"mean": statistics.fmean(scores), "deviation": statistics.stdev(scores)}
        sizes.append({"units": units, "positions": positions, **summary, "folds": scores})
    scores_by_size = np.array([size["folds"] for size in sizes])
    ends = extrapolate(scores_by_size, log_loss=plan.judged_by == "log_loss").tolist()
    return {
        "schema": 1,
        **about,
        "folds": len(plan.folds),
        "sequences": plan.corpus.sequences,
        "positions": plan.corpus.positions,
        "metric": plan.yardstick.name,
        "judged_by": plan.judged_by,
        "unit": "sequences" if plan.blocks is None else "blocks",
        "sizes": sizes,
        "level": LEVEL,
        "forecasts": [{"times": 2 << k, "low": min(e), "mean": e[1], "high": max(e)} for k, e in enumerate(ends)],
    }
