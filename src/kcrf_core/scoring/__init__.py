"""How good labels are: schemes of spans, F1 and accuracy, calibration of probabilities, intervals and p-values.

It takes labels as text and knows nothing of the models that gave them.
"""

from .._lazy import lazy
from ..system import Registry

SCHEMES = Registry(
    "label scheme",
    __name__,
    {"iob1": "schemes:IOB1", "iob2": "schemes:IOB2", "iobes": "schemes:IOBES", "bilou": "schemes:BILOU"},
)

# How labels are chosen by what a model says of them: the best path as a whole, or the best label at each position.
DECODINGS = ("viterbi", "posterior")

# Figures that choices may go by, see `yardstick`.
METRICS = ("f1", "macro-f1", "accuracy", "log-loss")

__getattr__, __dir__, __all__ = lazy(__name__)
