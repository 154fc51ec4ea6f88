"""Parts of an estimator that only scikit-learn asks for, made where it is installed."""

from __future__ import annotations

import sys
from copy import deepcopy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self

# Arguments besides X and y.
METADATA = {
    "fit": ("sample_weight", "sequence", "label", "groups", "folds", "X_dev", "y_dev", "init"),
    "score": ("sample_weight",),
}


class NotFittedError(ValueError, AttributeError):
    """Error of an estimator that is used before `fit`."""


def own_or(kind: type, name: str | None = None) -> type:
    """Return scikit-learn's class where it is imported, as callers without it cannot expect it."""
    return getattr(sys.modules.get("sklearn.exceptions"), name or kind.__name__, kind)


class Protocol:
    """Methods that only scikit-learn calls, so that they may import it."""

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,  # not a classifier of rows: y is a list of lists
            target_tags=TargetTags(required=True, one_d_labels=False, two_d_labels=False),
            input_tags=InputTags(two_d_array=False, three_d_array=True, dict=True, allow_nan=True),
        )

    def get_metadata_routing(self) -> Any:
        """Return the arguments besides X and y that methods take, where metadata routing is enabled."""
        from sklearn.utils.metadata_routing import MetadataRequest

        if "_metadata_request" in vars(self):
            return deepcopy(self._metadata_request)
        found = MetadataRequest(owner=type(self).__name__)
        for method, names in METADATA.items():
            for name in names:
                getattr(found, method).add_request(param=name, alias=None)
        return found

    def set_fit_request(self, **requests: bool | str | None) -> Self:
        """Ask for arguments of `fit`, as `sample_weight=True`, to be passed on, where metadata routing is enabled."""
        return self._request("fit", requests)

    def set_score_request(self, **requests: bool | str | None) -> Self:
        """Ask for `sample_weight` of `score` to be passed on, where metadata routing is enabled."""
        return self._request("score", requests)

    def _request(self, method: str, requests: dict[str, bool | str | None]) -> Self:
        found = self.get_metadata_routing()
        for name, alias in requests.items():
            if name not in METADATA[method]:
                raise TypeError(f"{method} takes no {name!r}; there is {', '.join(METADATA[method])}")
            getattr(found, method).add_request(param=name, alias=alias)
        self._metadata_request = found  # under this name clones get it, too
        return self
