"""The description of columns, features, terms and training, as frozen values.

`reader` makes them from YAML files, templates and options; `to_dict` gives the YAML layout back. What may be chosen is
read from the registries of earlier rooms when it is asked for, since plug-ins may add to them.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ..chains import CLIQUES
from ..corpora import MISSING, Layout
from ..kernels import KernelConfig
from ..maps import METHODS
from ..system import AUTO

STRING_TRANSFORMS = ("identity", "lower", "prefix", "suffix", "shape")
NUMBER_TRANSFORMS = ("length", "position", "frequency", "label-ratio")
TRANSFORMS = STRING_TRANSFORMS + NUMBER_TRANSFORMS
FEATURES = (AUTO, "categorical", "real", "conjunction", "templates", "attributes")
BAGS = ("templates", "attributes")  # those that are sparse rows, of which there is one block
MAPS = (AUTO, "explicit", "reduced", "full")
GRADIENT = "gradient"  # pivots that are chosen while training goes on
PRECISIONS = ("single", "double")
SCHEME_VIOLATIONS = ("error", "drop", "free")  # what becomes of training data that breaks its label scheme
SCALES = (AUTO, "standard", "unit", "none")
MISSING_VALUES = ("mean", "indicator")  # of the training data; indicator: and one more column says where

WIDEST_WINDOW = 100


def selections() -> tuple[str, ...]:
    """Ways to choose pivots: before training, or while it goes on."""
    return (*METHODS, GRADIENT)


@dataclass(frozen=True)
class FeatureConfig:
    """One feature: some columns, a transform, and where to look relative to a position."""

    name: str
    columns: tuple[str, ...] = ()
    type: str = AUTO  # one of FEATURES; auto until the data is known
    transform: str = "identity"
    length: int | None = None  # of a prefix or suffix
    window: tuple[int, ...] | None = None  # None: the default of its type
    scale: str = AUTO
    min_count: int | None = None
    parts: tuple[tuple[str, int], ...] = ()  # of a conjunction: (feature or column, offset)
    templates: tuple[str, ...] = ()  # lines of a template whose strings share weights; one, if it is categorical
    missing: str = "mean"  # one of MISSING_VALUES: what numbers that are missing become
    vectors: str | None = None  # the name of vectors that stand beside the text
    # Of a fitted feature whose window is wider than it says, since terms look further: what it says.
    own_window: tuple[int, ...] | None = None

    @property
    def seen(self) -> tuple[int, ...]:
        """The window, of a feature in which no default is left open."""
        if self.window is None:  # in a damaged file
            raise ValueError(f"the feature '{self.name}' has no window")
        return self.window


@dataclass(frozen=True)
class MapConfig:
    type: str = AUTO
    size: int | None = None  # None: by the number of positions, see `maps.automatic_size`
    select: str = "random"
    residual: float = 0.0  # part of the trace that pivots may leave, where that takes fewer of them
    basis_tolerance: float | None = None  # select gradient: part of P; None: BASIS_TOLERANCE of the growth module
    cut_off: int = 1  # explicit poly: conjunctions in fewer training positions are left out


@dataclass(frozen=True)
class TermConfig:
    name: str
    type: str = "node"  # one of CLIQUES
    features: tuple[str, ...] = ("*",)
    kernel: KernelConfig = field(default_factory=KernelConfig)
    map: MapConfig = MapConfig()
    sigma2: float | None = None  # None: the one of the training section
    window: tuple[int, ...] | None = None  # in the place of the windows of its features; None: those

    @property
    def clique(self) -> Any:
        """The type of its cliques, a `chains.Clique`."""
        return CLIQUES[self.type]


@dataclass(frozen=True)
class TrainingConfig:
    sigma2: float | None = None  # None: chosen on held-out sequences
    c1: float | None = None  # of an L1 penalty, c1 times the sum of |weights|; None: there is none
    solver: str = AUTO
    tolerance: float = 1e-3
    max_passes: int = 1000
    seed: int = 0
    precision: str = "single"
    scheme: str | None = None  # of labels: what it forbids has probability zero
    scheme_violations: str | None = None  # one of SCHEME_VIOLATIONS; None: error
    decode: str = AUTO  # how the model gives labels, one of DECODINGS; auto: by held-out data, else viterbi
    metric: str = AUTO  # what choices go by, one of METRICS; auto: by the labels
    observed_transitions: bool = False  # the same for pairs of labels that the training data lacks
    observed_features: bool = (
        False  # weights for pairs of features and labels that the training data has, and no others
    )


def default_terms() -> tuple[TermConfig, ...]:
    return TermConfig("node"), TermConfig("edge", "edge", ())


@dataclass(frozen=True)
class Config:
    """Columns, features, terms and training: all that a YAML file may say.

    >>> from kcrf_core import Config
    >>> [term.name for term in Config().terms]
    ['node', 'edge']
    """

    columns: tuple[str, ...] | None = None
    window: tuple[int, ...] | None = None
    min_count: int = 1
    features: tuple[FeatureConfig, ...] | None = None  # None: one per column
    terms: tuple[TermConfig, ...] = field(default_factory=default_terms)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    unobserved: str | None = None  # what stands in the place of labels that are not observed
    weight: str | None = None  # the column that says what sequences weigh
    separator: str | None = None  # between values of a file of columns; None: TABs or spaces, as the file has them
    header: bool = False  # the first line has the names of columns
    comment: tuple[str, ...] = ()  # lines that begin so are passed over
    missing: tuple[str, ...] = MISSING  # what stands for numbers that are missing
    missing_indicator: bool = False  # columns that say where, for all real features
    ignore: tuple[str, ...] = ()  # columns that are no features unless they are named
    plain: bool = False  # columns are features as they are; else defaults are made by what they look like
    suggested: bool = False  # the features were made so, and terms may still be

    @property
    def layout(self) -> Layout:
        """How files of columns are read."""
        return Layout(self.separator, self.header, self.comment, self.missing)

    @property
    def mapped_terms(self) -> tuple[TermConfig, ...]:
        """Terms that look at the input."""
        return tuple(term for term in self.terms if term.clique.mapped)

    @property
    def label_terms(self) -> tuple[TermConfig, ...]:
        """Terms that look at labels alone, in the order of their types."""
        types = list(CLIQUES)
        own = [term for term in self.terms if not term.clique.mapped]
        return tuple(sorted(own, key=lambda term: types.index(term.type)))

    @property
    def order(self) -> int:
        """How many labels back a label looks."""
        return 2 if any(term.clique.second_order for term in self.terms) else 1

    def to_dict(self) -> dict[str, Any]:
        """The layout of the YAML file; `parse_config` of it gives an equal configuration."""
        out: dict[str, Any] = {}
        if self.columns is not None:
            out["columns"] = list(self.columns)
        if self.window is not None:
            out["window"] = list(self.window)
        out["min_count"] = self.min_count
        if self.unobserved is not None:
            out["unobserved"] = self.unobserved
        if self.weight is not None:
            out["weight"] = self.weight
        out |= layout_dict(self.layout)
        if self.missing_indicator:
            out["missing_indicator"] = True
        if self.ignore:
            out["ignore"] = list(self.ignore)
        if self.plain:
            out["plain"] = True
        if self.suggested:
            out["suggested"] = True
        if self.features is not None:
            out["features"] = [feature_dict(feature) for feature in self.features]
        out["terms"] = [term_dict(term) for term in self.terms]
        training = {**asdict(self.training), "sigma2": variance_text(self.training.sigma2) or AUTO}
        out["training"] = {key: value for key, value in training.items() if value is not None}
        return out


def variance_text(sigma2: float | None) -> float | str | None:
    """A prior variance as files hold it, which know no infinite numbers."""
    return "inf" if sigma2 == math.inf else sigma2


def layout_dict(layout: Layout) -> dict[str, Any]:
    """What is said of files of columns, as far as it is not what goes without saying."""
    said = {
        item.name: getattr(layout, item.name) for item in fields(Layout) if getattr(layout, item.name) != item.default
    }
    return {name: list(value) if isinstance(value, tuple) else value for name, value in said.items()}


def feature_dict(feature: FeatureConfig) -> dict[str, Any]:
    out: dict[str, Any] = {"name": feature.name}
    if feature.parts:
        out["conjunction"] = [name if offset == 0 else f"{name}[{offset}]" for name, offset in feature.parts]
    elif feature.columns:
        out["columns"] = list(feature.columns)
    for item in fields(FeatureConfig):
        value = getattr(feature, item.name)
        if item.name in ("name", "columns", "parts", "own_window") or value == item.default:
            continue
        if item.name == "type" and feature.parts:
            continue
        out[item.name] = list(value) if isinstance(value, tuple) else value
    return out


def term_dict(term: TermConfig) -> dict[str, Any]:
    out: dict[str, Any] = {"name": term.name, "type": term.type}
    if term.clique.mapped:
        out["features"] = list(term.features)
        if term.window is not None:
            out["window"] = list(term.window)
        out["kernel"] = term.kernel.to_dict()
        out["map"] = {key: value for key, value in asdict(term.map).items() if value is not None}
    if term.sigma2 is not None:
        out["sigma2"] = variance_text(term.sigma2)
    return out
