"""Feature maps: operators Phi with Phi Phi^T = K, or nearly; and the choice of pivots, which reduced maps stand on."""

from .._lazy import lazy
from ..system import Registry

# Ways to choose pivots: functions of a factorisation and a random generator, which append pivots until it is full.
METHODS = Registry(
    "method to choose pivots",
    __name__,
    {
        "random": "pivot_choice:random_pivots",
        "greedy": "pivot_choice:greedy_pivots",
    },
)

__getattr__, __dir__, __all__ = lazy(__name__)
