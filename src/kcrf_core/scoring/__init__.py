"""Evaluation of labels: schemes of spans, F1 and accuracy, calibration of probabilities, intervals and p-values.

Labels are text; the package knows nothing of models.
"""

from typing import TYPE_CHECKING

from .._lazy import lazy
from ..system import Registry

SCHEMES: "Registry[Scheme]" = Registry(
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

if TYPE_CHECKING:
    from .calibration import SMALLEST_PROBABILITY, Calibration, Probabilities, calibrate
    from .costs import Decision, best_bonus, span_bonuses
    from .error_analysis import SPAN_ERRORS, ErrorAnalysis
    from .evaluation import Evaluation, check_label_count, evaluate
    from .guarantees import (
        AMONG_UNMARKED,
        COVERAGE,
        POSITION,
        RISK,
        SPAN,
        Guarantee,
        Items,
        confidences,
        find_guarantee,
    )
    from .judgement import Comparison, Judgement, JudgementOptions, judge, scores_shown
    from .labelling import (
        Labelling,
        SeenWords,
        count_labels,
        from_tagged,
        from_two_files,
        joined_labellings,
        readable_column,
        readable_place,
    )
    from .schemes import (
        OUTSIDE,
        Scheme,
        detect_scheme,
        labels_of_spans,
        labels_with_lines,
        lost_spans_remark,
        odd_labels,
        odd_remark,
        split_label,
    )
    from .significance import FEW_SEQUENCES, Interval, block_borders, median_run
    from .spans import Score, SpanFinder, Spans, Transitions, allowed_transitions, tell_iob_apart
    from .yardstick import Yardstick, choose_yardstick
else:
    __getattr__, __dir__, __all__ = lazy(__name__)
