"""Evaluation of labels: schemes of spans, F1 and accuracy, calibration of probabilities, intervals and p-values.

Labels are text; the package knows nothing of models.
"""

from .._lazy import lazy
from ..system import Registry

SCHEMES = Registry(
    "label scheme",
    __name__,
    {"iob1": "schemes:IOB1", "iob2": "schemes:IOB2", "iobes": "schemes:IOBES", "bilou": "schemes:BILOU"},
)

# Decoders: the most probable labelling as a whole, or the most probable label at each position.
DECODINGS = ("viterbi", "posterior")

# Figures for choices, see `yardstick`.
METRICS = ("f1", "macro-f1", "accuracy", "log-loss")

# What a guarantee concerns.
ITEMS = ("position", "span")

__getattr__, __dir__, __all__ = lazy(__name__)
