from ..system import Registry
from .calibration import (
    SMALLEST_PROBABILITY as SMALLEST_PROBABILITY,
    Calibration as Calibration,
    Probabilities as Probabilities,
    calibrate as calibrate,
)
from .costs import Decision as Decision, best_bonus as best_bonus, span_bonuses as span_bonuses
from .error_analysis import SPAN_ERRORS as SPAN_ERRORS, ErrorAnalysis as ErrorAnalysis
from .evaluation import Evaluation as Evaluation, check_label_count as check_label_count, evaluate as evaluate
from .guarantees import (
    AMONG_UNMARKED as AMONG_UNMARKED,
    COVERAGE as COVERAGE,
    POSITION as POSITION,
    RISK as RISK,
    SPAN as SPAN,
    Guarantee as Guarantee,
    Items as Items,
    confidences as confidences,
    find_guarantee as find_guarantee,
)
from .judgement import (
    Comparison as Comparison,
    Judgement as Judgement,
    JudgementOptions as JudgementOptions,
    judge as judge,
    scores_shown as scores_shown,
)
from .labelling import (
    Labelling as Labelling,
    SeenWords as SeenWords,
    from_tagged as from_tagged,
    from_two_files as from_two_files,
    joined_labellings as joined_labellings,
    readable_column as readable_column,
    readable_place as readable_place,
)
from .schemes import Scheme as Scheme, detect_scheme as detect_scheme, split_label as split_label
from .significance import (
    FEW_SEQUENCES as FEW_SEQUENCES,
    Interval as Interval,
    block_borders as block_borders,
    median_run as median_run,
)
from .spans import (
    Score as Score,
    SpanFinder as SpanFinder,
    Spans as Spans,
    Transitions as Transitions,
    allowed_transitions as allowed_transitions,
    tell_iob_apart as tell_iob_apart,
)
from .yardstick import Yardstick as Yardstick, choose_yardstick as choose_yardstick

SCHEMES: Registry[Scheme]
DECODINGS: tuple[str, ...]
METRICS: tuple[str, ...]
ITEMS: tuple[str, str]
