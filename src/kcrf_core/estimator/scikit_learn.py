"""Parts of an estimator that only scikit-learn asks for, made where it is installed."""

from __future__ import annotations

import sys
from typing import Any


class NotFittedError(ValueError, AttributeError):
    """Error of an estimator that is used before `fit`."""


def own_or(kind: type, name: str | None = None) -> type:
    """Return scikit-learn's class where it is imported, as callers without it cannot expect it."""
    return getattr(sys.modules.get("sklearn.exceptions"), name or kind.__name__, kind)


class Protocol:
    """A method that only scikit-learn calls, so that it may import it."""

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,  # not a classifier of rows: y is a list of lists
            target_tags=TargetTags(required=True, one_d_labels=False, two_d_labels=False),
            input_tags=InputTags(two_d_array=False, three_d_array=True, dict=True, allow_nan=True),
        )
