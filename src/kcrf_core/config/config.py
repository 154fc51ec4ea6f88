"""The description of columns, features, terms and training, as frozen values.

Each field that a configuration may set is declared here once, with its kind, default, help and section, for YAML keys,
options and the manual. Names to choose from are read from registries when they are needed, since plug-ins may add to
them. Nothing here imports NumPy.
"""

from __future__ import annotations

import math
import os
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ..chains import CLIQUES
from ..corpora import EMPTY_LABELS, MISSING, NUMBER_TRANSFORMS, PLAIN, SPAN_LABELS, Layout
from ..errors import ConfigError
from ..kernels import KERNELS, KernelConfig, kernel_settings, kernel_types
from ..maps import METHODS
from ..objective.solvers import SOLVERS
from ..scoring import DECODINGS, METRICS, SCHEMES
from ..system import ANOTHER, AUTO, Automatic, DeclaredSetting, Number, OneOf, Whole, boolean, declared, settings_of
from . import values

STRING_TRANSFORMS = ("identity", "lower", "prefix", "suffix", "shape", "edges", "kind")
RUN_TRANSFORMS = ("start", "end")  # nearness to the ends of a run of one value, such as a word of letters
COUNTING_TRANSFORMS = ("length", "position", *RUN_TRANSFORMS, "frequency")  # numbers of any column
FEATURES = (AUTO, "categorical", "real", "conjunction", "templates", "attributes")
WIDEST = 10_000  # largest width of a transform, in positions
BAGS = ("templates", "attributes")  # types with sparse rows; a dataset has one block of them
MAPS = (AUTO, "explicit", "reduced", "full")
GRADIENT = "gradient"  # pivots are chosen during training
PRECISIONS = ("single", "double")
NEAR_COPIES = ("together", "ignore")  # treatment of near copies where sequences are held out
WHEN_IMPOSSIBLE = ("keep", "fail")  # treatment of sequences without a labelling that obeys the rules
SCALES = (AUTO, "standard", "sequence", "group", "unit", "none")
LEXICON_CASES = ("fold", "keep")
SETS, SOFT = "sets", "soft"  # kinds of labels that are half known
MISSING_VALUES = ("mean", "indicator")  # mean of the training data; indicator: also a column that marks missing values

MODEL_SECTIONS = ("kernel", "basis_tolerance", "chain", "training")  # sections of models; others concern files


def transforms() -> tuple[str, ...]:
    """List all transforms of columns."""
    return (*STRING_TRANSFORMS, *COUNTING_TRANSFORMS, *NUMBER_TRANSFORMS)


@dataclass(frozen=True)
class FeatureConfig:
    """One feature: columns, a transform, and a window of offsets."""

    name: str
    columns: tuple[str, ...] = declared(values.column_names, ())
    type: str = declared(OneOf(FEATURES), AUTO)  # auto until the data is known
    transform: str = declared(OneOf(transforms), "identity")
    length: int | None = declared(Whole(1))  # of a prefix or suffix
    window: tuple[int, ...] | None = declared(values.window)  # None: the default of its type
    scale: str = declared(OneOf(SCALES), AUTO)
    group: str | None = declared(values.text)  # the column with the names of the groups that numbers are scaled by
    min_count: int | None = declared(Whole(1))
    parts: tuple[tuple[str, int], ...] = ()  # of a conjunction: (feature or column, offset)
    templates: tuple[str, ...] = declared(values.names, ())  # lines that share weights; a categorical feature has one
    missing: str = declared(OneOf(MISSING_VALUES), "mean")  # replacement of missing numbers
    vectors: str | None = declared(values.text)  # the name of vectors beside the text
    lookup: str | None = declared(values.text)  # the name of a table in which values of the column are looked up
    width: int | None = declared(Whole(1, WIDEST))  # of a mean, or of a difference, in positions
    quantile: float | None = declared(Number(0.001, 0.5, below=True))  # of the training data below which clip cuts
    # The declared window of a fitted feature whose window is wider, because some term has a wider one.
    own_window: tuple[int, ...] | None = None
    seen: tuple[int, ...] = field(init=False, repr=False, compare=False)  # the window of a fitted feature

    def __post_init__(self) -> None:
        object.__setattr__(self, "seen", self.window or ())

    @property
    def suffix(self) -> str:
        """Text that names of a transformed column end with."""
        return "" if self.transform == "identity" else f".{self.transform}{self.length or self.width or ''}"

    @property
    def by_group(self) -> bool:
        """True if numbers are scaled by the mean and spread of their sequence or group."""
        return self.scale in ("sequence", "group")

    @property
    def transform_reach(self) -> tuple[int, int]:
        """Numbers of positions before and after a position that the transform uses."""
        if self.transform not in NUMBER_TRANSFORMS:
            return 0, 0
        transform = NUMBER_TRANSFORMS[self.transform]
        return transform.reach(self.width or transform.width or 1)


@dataclass(frozen=True)
class MapConfig:
    """The feature map of a term."""

    type: str = declared(
        OneOf(MAPS),
        AUTO,
        "Feature map: explicit features (linear; poly on binary features), pivots (reduced), or every "
        "distinct input as a pivot (full). Default: auto, explicit if it is exact and `size` is not given, else "
        "reduced.",
        option="map",
    )
    size: int | None = declared(
        Automatic(Whole(1)),
        None,  # see `maps.automatic_size`
        "Number of pivots (inducing points). Default: chosen automatically, at most 2,000.",
        metavar="M",
        common=True,
    )
    select: str = declared(
        OneOf(lambda: (*METHODS, GRADIENT)),
        "random",
        "Choice of pivots: at random with the unexplained part of the kernel as probability (random), greedily the "
        "least explained position, or during training those that lower the objective most (gradient). Default: random.",
    )
    residual: float = declared(
        values.fraction,
        0.0,
        "Stop choosing pivots when at most this part of the kernel's trace is unexplained. Default: 0.",
        metavar="R",
    )
    basis_tolerance: float | None = declared(
        values.not_negative,
        None,  # BASIS_TOLERANCE of the growth module
        "With `select` gradient: stop adding pivots when their possible gain is proven to be at most this part of the "
        "objective. Default: 0.01.",
        metavar="B",
        section="basis_tolerance",
    )
    cut_off: int = declared(
        Whole(1),
        1,
        "Ignore conjunctions that occur at fewer than N training positions (explicit poly). Default: 1.",
        metavar="N",
    )


@dataclass(frozen=True)
class TermConfig:
    """A set of tied cliques with one kernel and one prior variance."""

    name: str
    type: str = declared(OneOf(CLIQUES), "node")
    features: tuple[str, ...] = declared(values.names, ("*",))
    kernel: KernelConfig = field(default_factory=KernelConfig)
    map: MapConfig = MapConfig()
    sigma2: float | None = declared(values.variance)  # None: the one of the training section
    shared: bool = declared(boolean, False)  # a sigma2 that is chosen is that of the first term
    window: tuple[int, ...] | None = declared(values.window)  # replaces the windows of its features, unless None
    clique: Any = field(init=False, repr=False, compare=False)  # the type of its cliques, a `chains.Clique`

    def __post_init__(self) -> None:
        object.__setattr__(self, "clique", CLIQUES[self.type])


@dataclass(frozen=True)
class RulesConfig:
    """Rules that labellings obey."""

    once: tuple[str, ...] = declared(
        values.names,
        (),
        "Labels, or types of spans, that form at most one run in a sequence, as City,State; all for all of them. Can "
        "be repeated. Default: none.",
        metavar="LABELS",
        text=values.comma_separated_names,
    )
    require: tuple[str, ...] = declared(
        values.names,
        (),
        "Labels, or types of spans, that every sequence has. Can be repeated. Default: none.",
        metavar="LABELS",
        text=values.comma_separated_names,
    )
    at_most: tuple[str, ...] = declared(
        values.numbered,
        (),
        "The label, or type of spans, forms at most N runs in a sequence. Can be repeated. Default: any number.",
        metavar="LABEL=N",
        text=values.numbered,
    )
    forbid: tuple[str, ...] = declared(
        values.names,
        (),
        "Forbid a transition, as 'A>B'; '^>B': no sequence begins with B; 'A>$': none ends with A; unseen: all that "
        "the training data lacks. In training it has probability zero. Can be repeated. Default: none.",
        metavar="'A>B'",
    )
    allowed: str | None = declared(
        values.text,
        help="Column with the labels that a position may have, as City|State; an empty cell (or _) allows all. "
        "Default: none.",
        metavar="COLUMN",
    )
    allowed_separator: str = declared(
        values.text, "|", "Separator of labels in the column of `allowed`. Default: |.", metavar="TEXT"
    )
    when_impossible: str = declared(
        OneOf(WHEN_IMPOSSIBLE),
        "keep",
        "If no labelling of a sequence obeys the rules: keep the labels without rules, or fail. Transitions that "
        "training made impossible are then rules, too. Default: keep, with a warning; an error for transitions of "
        "training.",
    )

    @property
    def rules(self) -> bool:
        """True if there is any rule."""
        return any((self.once, self.require, self.at_most, self.forbid, self.allowed))

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that are not the default, as YAML has them."""
        return _given(self)


@dataclass(frozen=True)
class TrainingConfig:
    """The prior, the chain, the solver and the decoder."""

    sigma2: float | None = declared(
        values.variance,
        help="Prior variance (regularisation strength 1/sigma2). It is that of the weights, or of the scores if the "
        "kernel is not linear; a configuration can give each term its own. Default: auto, chosen on held-out data.",
        heading="Model",
        common=True,
    )
    c1: float | None = declared(
        values.not_negative,
        help="L1 penalty on the weights, as in CRFsuite; most weights become zero (explicit maps; with or without "
        "`c2`). Default: 0.",
        metavar="C",
        heading="Model",
    )
    solver: str = declared(
        OneOf(SOLVERS, ANOTHER),
        AUTO,
        "Solver; all reach the same optimum. Default: auto, L-BFGS that starts with a part of the pivots; proximal "
        "with `c1`.",
    )
    tolerance: float | None = declared(
        values.tolerance,
        None,
        "Stop when the certified relative gap to the optimum is at most T, which is at least 1e-12. Default: 0.001, or "
        "0.003 nats per 1,000 positions, if that is more (weak priors).",
        metavar="T",
    )
    max_passes: int = declared(
        Whole(1), 1000, "Stop after this many passes over the data, certified or not. Default: 1000.", metavar="N"
    )
    seed: int = declared(Whole(0), 0, "Random seed. Default: 0.", metavar="N", common=True)
    precision: str = declared(OneOf(PRECISIONS), "single", "Precision of feature maps and scores. Default: single.")
    scheme: str | None = declared(
        OneOf(SCHEMES),
        help="Scheme of the labels; transitions that it forbids have probability zero. Default: none.",
        section="chain",
    )
    decode: str = declared(
        OneOf((AUTO, *DECODINGS)),
        AUTO,
        "Decoder of the model: the most probable labelling as a whole (viterbi), or the label of the largest marginal "
        "at each position (posterior). Default: auto; for accuracy, posterior unless viterbi is better on held-out "
        "data by more than a standard error, for F1 the other way round.",
        heading="Decoding",
    )
    span_bonus: float | None = declared(
        Number(automatic=True),
        help="What each span adds to the score of a labelling in Viterbi decoding: more spans are found, and more of "
        "them are wrong; 0 gives the most probable labelling. Default: auto, log(2 / F1 - 1) of the held-out F1 if "
        "that is better there, else 0.",
        metavar="B",
        heading="Decoding",
    )
    metric: str = declared(
        OneOf((AUTO, *METRICS)),
        AUTO,
        "Metric to choose by: F1 of spans (f1), the unweighted mean of F1 over types of spans or over labels, "
        "accuracy, or log-loss of labels. Default: auto, f1 if the labels follow a scheme (B-X, I-X, O), else "
        "accuracy.",
        heading="Validation",
    )
    near_copies: str = declared(
        OneOf(NEAR_COPIES),
        "together",
        "Hold out near copies of a sequence (Jaccard similarity of n-grams of 5 input values at least 0.8) together, "
        "or ignore that they are; `group`, `folds_file` and `block` come first. Default: together.",
        heading="Validation",
    )
    observed_transitions: bool = declared(
        boolean,
        False,
        "Give probability zero to transitions that do not occur in the training data. Default: all are possible.",
        section="chain",
    )
    observed_features: bool = declared(
        boolean,
        False,
        "Weights only for pairs of feature and label that occur in the training data, as in CRFsuite; the model is "
        "much smaller (explicit maps). Default: automatic, for words and at least four labels.",
        heading="Model",
    )
    omit_hashes: bool = declared(
        boolean,
        False,
        "Store no hashes of the training sequences in the model; the commands evaluate, guarantee and next then cannot "
        "tell which sequences it was trained on. Default: hashes of 64 bits are stored.",
        heading="Model",
    )
    forbid: tuple[str, ...] = ()  # those of the rules


def default_terms() -> tuple[TermConfig, ...]:
    """Return the terms of a configuration without terms."""
    return TermConfig("node"), TermConfig("edge", "edge", ())


@dataclass(frozen=True)
class Config:
    """Columns, features, terms and training: the contents of a YAML file.

    >>> from kcrf_core import Config
    >>> [term.name for term in Config().terms]
    ['node', 'edge']
    """

    columns: tuple[str, ...] | None = declared(
        values.column_names,
        help="Column names, label last. They are separated by commas, as word,class,label. For a CoNLL-U file, they "
        "are the columns to use; without this option form,upos. Default: c0,c1,...,label.",
        metavar="NAMES",
        heading="Data",
        common=True,
        text=values.comma_separated_names,
    )
    window: tuple[int, ...] | None = declared(
        values.window,
        help="Offsets at which columns are features, as -1..1, unless the configuration has a window. Default: -2..2 "
        "for words, tags and numbers that correlate with their neighbours, 0 for other numbers.",
        metavar="A..B",
        text=values.window_range,
    )
    min_count: int = declared(
        Whole(1),
        1,
        "Ignore values, conjunctions and attributes that occur fewer than N times in the training data. Default: 1.",
        metavar="N",
    )
    unobserved: str | None = declared(
        values.text,
        help="Label, such as ?, of positions whose label is not observed; training sums over all possible labels. "
        "Default: all labels are observed.",
        metavar="LABEL",
        section="unobserved",
    )
    label_sets: bool = declared(
        boolean,
        False,
        "A label such as B-PER|B-ORG is a set of possible labels, which training sums over. Default: it is one label.",
        section="unobserved",
    )
    soft_labels: bool = declared(
        boolean,
        False,
        "Labels with weights, as B-PER:0.8|O:0.2; training minimises the expected loss. Default: it is one label.",
        section="unobserved",
    )
    weight: str | None = declared(
        values.text,
        help="Column with the weight of the sequence, the same in all its rows; it is not a feature. Default: all "
        "weights are 1.",
        metavar="COLUMN",
        heading="Data",
    )
    separator: str | None = declared(
        values.separator,
        help="Separator of columns, such as ',' in CSV files. The words tab and space name those characters; quotes in "
        "CSV are as spreadsheets write them. It is detected as the comma in *.csv files, the tab if the first line has "
        "one, else the space. Default: detected.",
        metavar="CHARACTER",
        section="layout",
        common=True,
    )
    header: bool | None = declared(
        boolean,
        None,
        "The first line names the columns. It is detected by a word above a column of numbers. Default: detected.",
        section="layout",
        common=True,
    )
    sequence: str | None = declared(
        values.text,
        help="Column that identifies sequences, such as a sentence number. Consecutive rows with the same value are a "
        "sequence; an empty value repeats the one above, and blank lines still end sequences. Default: none.",
        metavar="COLUMN",
        section="layout",
        common=True,
    )
    comment: tuple[str, ...] = declared(
        values.names,
        (),
        "Skip lines that begin with one of these marks, as '#' or '#,-DOCSTART-'. Default: all lines are data.",
        metavar="MARKS",
        section="layout",
        text=values.comma_separated,
    )
    tokens: str | None = declared(
        values.token_rule,
        help="Tokens of texts (XML, JSON, brat, `text`): whitespace, words (runs of letters and digits, and each other "
        "mark), characters, or a regular expression that they match. Default: whitespace.",
        metavar="RULE",
        section="layout",
    )
    span_labels: str | None = declared(
        OneOf(SPAN_LABELS),
        help="Labels of the tokens of a span: its name at each of them (names), or B- at the first and I- at others "
        "(iob2). Default: names for parts in XML, iob2 for others.",
        section="layout",
    )
    empty_labels: str | None = declared(
        OneOf(EMPTY_LABELS),
        help="Texts whose list of labels is empty (doccano, empty files of brat): labelled, and nothing is in them, or "
        "unlabelled, so that they are not used. Default: labelled.",
        section="layout",
    )
    missing: tuple[str, ...] = declared(
        values.marks,
        MISSING,
        "Marks of missing numbers, as 'NA,-999' or '?,undefined'; they become the training mean. Default: NA, ?, _, "
        "nan and an empty value.",
        metavar="MARKS",
        heading="Data",
        text=values.comma_separated,
    )
    missing_indicator: bool = declared(
        boolean, False, "Add a feature for each column of numbers that is 1 where its value is missing. Default: none."
    )
    embeddings: str | None = declared(
        values.text,
        help="Word vectors of GloVe, word2vec or fastText: text, compressed or not. A word is looked up as it is, in "
        "lower case, and with digits as 0. Default: none.",
        metavar="FILE",
    )
    lexicons: tuple[tuple[str, str | tuple[str, ...]], ...] = declared(
        values.lexicons,
        (),
        "Lexicon, as city=cities.txt: a file with an entry of one or several words on each line, also .gz. Words of "
        "its longest entries in a sequence have the feature B-city or I-city, others none. Can be repeated. Default: "
        "none.",
        metavar="NAME=FILE",
        option="lexicon",
        text=values.named_file,
    )
    lexicon_case: str | None = declared(
        OneOf(LEXICON_CASES),
        help="Compare words with those of lexicons in lower case, and where there is none, without punctuation around "
        "them, so that (paris), is Paris, or keep them as they are. "
        "Default: fold.",
    )
    clusters: str | None = declared(
        values.text,
        help="Clusters of words, as Brown clustering gives them: a file of path, word and count, or of word and path, "
        "also .gz. Prefixes of paths of 4, 6, 10 and 20 bits are features. Default: none.",
        metavar="FILE",
    )
    lookup_column: str | None = declared(
        values.text,
        help="Column with the words of `embeddings`, `lexicon` and `clusters`; of attributes the name before = or :. "
        "Default: the first column of words.",
        metavar="COLUMN",
    )
    ignore: tuple[str, ...] = declared(
        values.column_names,
        (),
        "Columns that are not features, such as row numbers, as id,time. Can be repeated. Default: none.",
        metavar="NAMES",
        heading="Data",
        text=values.comma_separated_names,
    )
    plain: bool = declared(
        boolean,
        False,
        "Use columns as they are. Default: words also get prefixes, suffixes, shape and lower case, tags their "
        "neighbours; `dump_config` shows them.",
    )
    suggested: bool = declared(boolean, False)  # features were derived from the columns, and terms may still be
    features: tuple[FeatureConfig, ...] | None = None  # None: one per column
    terms: tuple[TermConfig, ...] = field(default_factory=default_terms)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    rules: RulesConfig = RulesConfig()
    layout: Layout = field(init=False, repr=False, compare=False)  # of files of columns
    mapped_terms: tuple[TermConfig, ...] = field(init=False, repr=False, compare=False)  # those that look at the input
    label_terms: tuple[TermConfig, ...] = field(init=False, repr=False, compare=False)  # the others, by type
    order: int = field(init=False, repr=False, compare=False)  # number of preceding labels that a label depends on
    half_known: str | None = field(init=False, repr=False, compare=False)  # labels are SETS or SOFT

    def __post_init__(self) -> None:
        types = {name: number for number, name in enumerate(CLIQUES)}
        labels = [term for term in self.terms if not term.clique.mapped]
        derived = {
            "layout": Layout(**{item.name: getattr(self, item.name) for item in fields(Layout)}),
            "mapped_terms": tuple(term for term in self.terms if term.clique.mapped),
            "label_terms": tuple(sorted(labels, key=lambda term: types[term.type])),
            "order": 2 if any(term.clique.second_order for term in self.terms) else 1,
            "half_known": SOFT if self.soft_labels else SETS if self.label_sets else None,
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def to_dict(self) -> dict[str, Any]:
        """Return the layout of the YAML file; `parse_config` of it gives an equal configuration."""
        out = _given(self, "min_count")
        if self.lexicons:
            out["lexicons"] = {name: one if isinstance(one, str) else list(one) for name, one in self.lexicons}
        if self.features is not None:
            out["features"] = [feature_dict(feature) for feature in self.features]
        out["terms"] = [term_dict(term) for term in self.terms]
        training = {**asdict(self.training), "sigma2": variance_text(self.training.sigma2) or AUTO}
        out["training"] = {key: training[key] for key in settings_of(TrainingConfig) if training[key] is not None}
        rules = self.rules.to_dict()
        if rules:
            out["rules"] = rules
        return out

    def to_stored(self) -> dict[str, Any]:
        """Return the layout of the YAML file without places of files, which models and datasets must not depend on."""
        out = self.to_dict()
        out |= {key: os.path.basename(out[key]) for key in values.LOOKUPS if key in out}
        if self.lexicons:
            files = out["lexicons"].items()
            out["lexicons"] = {name: os.path.basename(one) if isinstance(one, str) else one for name, one in files}
        return out


def variance_text(sigma2: float | None) -> float | str | None:
    """Return a prior variance as files store it, without infinite numbers."""
    return "inf" if sigma2 == math.inf else sigma2


def layout_dict(layout: Layout) -> dict[str, Any]:
    """Return the settings of files of columns that are not the default."""
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in vars(layout).items()  # stored models have no header without it
        if value != getattr(PLAIN, key) and value is not False
    }


def _given(config: Any, *always: str) -> dict[str, Any]:
    """Return the declared settings of a dataclass that are not the default, as YAML has them."""
    out = {}
    for name, one in settings_of(config).items():
        value = getattr(config, name)
        if value != one.default or name in always:
            out[name] = list(value) if isinstance(value, tuple) else value
    return out


def feature_dict(feature: FeatureConfig) -> dict[str, Any]:
    """Return the layout of a feature in the YAML file."""
    given = _given(feature)
    if not feature.parts:
        return {"name": feature.name, **given}
    given.pop("type", None)
    parts = [values.part_text(name, offset) for name, offset in feature.parts]
    return {"name": feature.name, "conjunction": parts, **given}


def term_dict(term: TermConfig) -> dict[str, Any]:
    """Return the layout of a term in the YAML file."""
    out: dict[str, Any] = {"name": term.name, "type": term.type}
    if term.clique.mapped:
        out["features"] = list(term.features)
        if term.window is not None:
            out["window"] = list(term.window)
        out["kernel"] = term.kernel.to_dict()
        out["map"] = {key: value for key, value in asdict(term.map).items() if value is not None}
    given = {"sigma2": variance_text(term.sigma2), "shared": term.shared or None}
    return out | {key: value for key, value in given.items() if value is not None}


def plain_kernels() -> list[str]:
    """List the kernels that need no parts, which only a configuration can list."""
    return [name for name in kernel_types() if not KERNELS[name].composite]


# Settings that are no field in `config`: those that all kernels have, and short names for several fields.
KERNEL = DeclaredSetting(
    OneOf(plain_kernels, ANOTHER),
    KernelConfig.type,
    "Kernel on the inputs. A configuration can have sums and products of kernels. Default: linear; rbf over numbers "
    "if no column has words.",
    option="kernel",
    common=True,
)
COSINE = DeclaredSetting(
    boolean, KernelConfig.cosine, "Normalise the kernel, k(x,x')/sqrt(k(x,x)k(x',x')). Default: not normalised."
)
ORDER = DeclaredSetting(
    Whole(1, 2),
    1,
    "Order of the chain: the number of preceding labels that a label depends on directly, 1 or 2. Default: 1.",
    "N",
)
C2 = DeclaredSetting(
    values.not_negative,
    None,
    "L2 penalty as in CRFsuite, another way to give `sigma2` = 1/(2 C); 0 for none, only with `c1`. Default: that of "
    "`sigma2`.",
    "C",
    heading="Model",
)


HEADINGS = {  # section of the help for each section of settings
    **dict.fromkeys(("layout", "unobserved"), "Data"),
    "encoding": "Features",
    **dict.fromkeys(("kernel", "basis_tolerance", "chain"), "Model"),
    "training": "Optimisation",
    "rules": "Decoding",
}


@dataclass(frozen=True)
class DeclaredOption:
    """A declared setting under its name as an option."""

    name: str
    section: str
    setting: DeclaredSetting
    path: str  # its place in the configuration; empty where it stands for several
    heading: str  # the section of the help that lists it


def declared_options(*wanted: str) -> dict[str, DeclaredOption]:
    """Return options by name: those of the wanted sections, and single ones by name; all of them without any.

    Kernels are imported only where their section is wanted.
    """
    of_kernels = kernel_settings() if not wanted or "kernel" in wanted else {}
    places = (
        ({"type": KERNEL, **of_kernels, "cosine": COSINE}, "terms.node.kernel.{}", "kernel"),
        (settings_of(MapConfig), "terms.node.map.{}", "kernel"),
        (settings_of(Config), "{}", "encoding"),
        ({"order": ORDER}, "", "chain"),
        (settings_of(TrainingConfig), "training.{}", "training"),
        ({"c2": C2}, "", "training"),
        (settings_of(RulesConfig), "rules.{}", "rules"),
    )
    found = [
        DeclaredOption(
            *(one.option or name, one.section or section, one, path.format(name)),
            one.heading or HEADINGS[one.section or section],
        )
        for settings, path, section in places
        for name, one in settings.items()
        if one.help
    ]
    names = [one.name for one in found]
    for name in of_kernels:
        if names.count(name) > 1:
            raise ConfigError(f"a kernel declares '{name}', which is another setting already")
    return {one.name: one for one in found if not wanted or one.section in wanted or one.name in wanted}


def option_paths() -> dict[str, str]:
    """Return the place in the configuration of each option that is a short name for one."""
    return {name: one.path for name, one in declared_options().items() if one.path not in ("", name)}
