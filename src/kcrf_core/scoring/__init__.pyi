from ..system import Registry
from .calibration import (
    SMALLEST_PROBABILITY,
    WHOLES,
    Bin,
    Calibration,
    Probabilities,
    WholeProbabilities,
    calibrate,
    from_marginals,
)
from .costs import Decision, label_costs, threshold_costs
from .error_analysis import SPAN_ERRORS, ErrorAnalysis, WordFigures, found_spans
from .evaluation import Evaluation, check_label_count, evaluate
from .judgement import (
    Comparison,
    Judgement,
    JudgementOptions,
    LabelCurve,
    bin_intervals,
    calibration_of,
    f1_intervals,
    judge,
    label_curves,
    scores_shown,
)
from .labelling import (
    Labelling,
    LabelProbabilities,
    SeenWords,
    from_tagged,
    from_two_files,
    joined_labellings,
    readable_column,
    readable_place,
)
from .schemes import Scheme, detect_scheme, split_label
from .significance import FEW_SEQUENCES, Interval, block_borders, median_run, unit_offsets
from .spans import Score, SpanFinder, Spans, SpanScores, Transitions, allowed_transitions, tell_iob_apart
from .yardstick import Yardstick, choose_yardstick

SCHEMES: Registry[Scheme]
DECODINGS: tuple[str, ...]
METRICS: tuple[str, ...]

__all__ = [
    "FEW_SEQUENCES",
    "SMALLEST_PROBABILITY",
    "SPAN_ERRORS",
    "WHOLES",
    "Bin",
    "Calibration",
    "Comparison",
    "Decision",
    "ErrorAnalysis",
    "Evaluation",
    "Interval",
    "Judgement",
    "JudgementOptions",
    "LabelCurve",
    "LabelProbabilities",
    "Labelling",
    "Probabilities",
    "Scheme",
    "Score",
    "SeenWords",
    "SpanFinder",
    "SpanScores",
    "Spans",
    "Transitions",
    "WholeProbabilities",
    "WordFigures",
    "Yardstick",
    "allowed_transitions",
    "bin_intervals",
    "block_borders",
    "calibrate",
    "calibration_of",
    "check_label_count",
    "choose_yardstick",
    "detect_scheme",
    "evaluate",
    "f1_intervals",
    "found_spans",
    "from_marginals",
    "from_tagged",
    "from_two_files",
    "joined_labellings",
    "judge",
    "label_costs",
    "label_curves",
    "median_run",
    "readable_column",
    "readable_place",
    "scores_shown",
    "split_label",
    "tell_iob_apart",
    "threshold_costs",
    "unit_offsets",
]
