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

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "blocks": ["FEW_SEQUENCES", "block_borders", "median_run", "unit_offsets"],
        "calibration": [
            "Bin",
            "Calibration",
            "Probabilities",
            "SMALLEST_PROBABILITY",
            "WHOLES",
            "WholeProbabilities",
            "calibrate",
            "from_marginals",
        ],
        "costs": ["Decision", "label_costs", "threshold_costs"],
        "curves": ["LabelCurve", "bin_intervals", "f1_intervals", "label_curves", "scores_shown"],
        "evaluation": ["Evaluation", "check_label_count", "evaluate"],
        "judgement": ["Comparison", "Judgement", "JudgementOptions", "calibration_of", "judge"],
        "labelling": [
            "LabelProbabilities",
            "Labelling",
            "from_tagged",
            "from_two_files",
            "joined_labellings",
            "readable_column",
        ],
        "schemes": ["Scheme", "detect_scheme"],
        "scores": ["Score", "SpanScores", "span_scores"],
        "significance": ["Interval"],
        "spans": ["SpanFinder", "Transitions", "allowed_transitions"],
        "yardstick": ["Yardstick", "choose_yardstick"],
    },
)
