"""Scorers for searches of scikit-learn, `GridSearchCV(crf, grid, scoring=scorers.flat_accuracy)`.

They have the names of those in `sklearn_crfsuite.scorers`, and need no scikit-learn. Other figures of `metrics` become
scorers with `sklearn.metrics.make_scorer`.

>>> from kcrf_core import KernelCRF, scorers
>>> X, y = [[{"word": "the"}, {"word": "cat"}], [{"word": "cats"}]], [["D", "N"], ["N"]]
>>> scorers.flat_accuracy(KernelCRF(c2=0.1).fit(X, y), X, y)
1.0
"""

from __future__ import annotations

from typing import Any

from .metrics import Labels, flat_accuracy_score, sequence_accuracy_score


def flat_accuracy(estimator: Any, X: Any, y: Labels) -> float:
    """Compute the share of positions that an estimator gives the right label."""
    return flat_accuracy_score(y, estimator.predict(X))


def sequence_accuracy(estimator: Any, X: Any, y: Labels) -> float:
    """Compute the share of sequences without a wrong label."""
    return sequence_accuracy_score(y, estimator.predict(X))
