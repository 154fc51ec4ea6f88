"""`KernelCRF`: training and tagging of arrays and dictionaries, in the manner of scikit-learn."""

from typing import TYPE_CHECKING

from .._lazy import lazy

if TYPE_CHECKING:
    from .estimator import CRF, KernelCRF
else:
    __getattr__, __dir__, __all__ = lazy(__name__)
