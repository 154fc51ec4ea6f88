"""What scikit-learn expects to see of an estimator, given only where it is there."""

from __future__ import annotations

import sys
import warnings
from typing import Any


class NotFittedError(ValueError, AttributeError):
    """An estimator was asked for what only `fit` can tell it."""


def not_fitted(name: str) -> Exception:
    """The error that an estimator raises before it is fitted."""
    return _own_or(NotFittedError)(f"this {name} is not fitted yet: call fit(X, y) first")


def warn_uncertified(reason: str, gap: float, tolerance: float) -> None:
    """To whoever called `fit`."""
    category = _own_or(UserWarning, "ConvergenceWarning")
    message = f"stopped ({reason}) within {gap:.2g} of the optimum, not {tolerance:g}"
    warnings.warn(f"{message}; max_iterations or tolerance can be larger", category, stacklevel=3)


def tags() -> Any:
    """Tags of an estimator of sequences."""
    from sklearn.utils import InputTags, Tags, TargetTags  # who asks for tags has it

    return Tags(
        estimator_type=None,  # not a classifier of rows: y is a list of lists
        target_tags=TargetTags(required=True, one_d_labels=False, two_d_labels=False),
        input_tags=InputTags(two_d_array=False, three_d_array=True, dict=True),
    )


def _own_or(kind: type, name: str | None = None) -> type:
    """scikit-learn's class where it is imported: who does not have it imported cannot expect it."""
    return getattr(sys.modules.get("sklearn.exceptions"), name or kind.__name__, kind)
