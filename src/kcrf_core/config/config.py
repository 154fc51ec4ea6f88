"""The description of columns, features, terms and training, as frozen values.

`config_reader` makes them from YAML files, templates and options; `to_dict` gives the YAML layout back.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from fnmatch import fnmatchcase
from typing import Any

from ..errors import ConfigError, suggestion

STRING_TRANSFORMS = ("identity", "lower", "prefix", "suffix", "shape")
NUMBER_TRANSFORMS = ("length", "position", "frequency", "label-ratio")
TRANSFORMS = STRING_TRANSFORMS + NUMBER_TRANSFORMS
FEATURES = ("auto", "categorical", "real", "conjunction", "templates", "attributes")
BAGS = ("templates", "attributes")  # those that are sparse rows, of which there is one block
PLAIN_KERNELS = ("linear", "poly", "rbf", "image")
COMPOSITE_KERNELS = ("sum", "product")
KERNELS = PLAIN_KERNELS + COMPOSITE_KERNELS
EXPLICIT_KERNELS = ("linear", "poly")  # those that an explicit map may hold
MAPS = ("auto", "explicit", "reduced", "full")
GRADIENT = "gradient"  # pivots that are chosen while training goes on
SELECTIONS = ("random", "greedy", "uniform", "kmeans", GRADIENT)
TERMS = ("node", "edge-x", "edge", "edge2")
MAPPED_TERMS = ("node", "edge-x")  # those that look at the input
SOLVERS = ("auto", "lbfgs", "newton", "block-jacobi", "subspace")
SCHEMES = ("iob1", "iob2", "iobes", "bilou")
PRECISIONS = ("single", "double")
SCALES = ("auto", "standard", "none")

AUTO = "auto"
WIDEST_WINDOW = 100
LARGEST_SIDE = 10_000  # of a picture, in pixels
LARGEST_REACH = 8  # of the pixels of a product
LARGEST_BLUR = 100.0  # in pixels
DEEPEST_KERNEL = 4  # sums of products of ...


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
    templates: tuple[str, ...] = ()  # lines of a CRF++ template whose strings share weights


@dataclass(frozen=True)
class KernelConfig:
    type: str = "linear"
    degree: int = 2
    gamma: float | None = None  # None: by the automatic scales
    coef0: float = 1.0
    cosine: bool = False  # divided by the roots of its diagonal
    shape: tuple[int, int] | None = None  # of an image: rows and columns of pixels
    reach: int = 2  # of an image: how far apart the pixels of a product stand
    blur: float = 1.5  # of an image: over how many pixels products are pooled
    parts: tuple[KernelConfig, ...] = ()  # of a sum or product
    features: tuple[str, ...] = ("*",)  # of a part: those that it looks at, among those of what it is part of
    weight: float = 1.0  # of a part of a sum

    @property
    def title(self) -> str:
        """What to call it in messages."""
        name = f"{self.type} of {', '.join(part.title for part in self.parts)}" if self.parts else self.type
        return f"cosine {name}" if self.cosine else name


@dataclass(frozen=True)
class MapConfig:
    type: str = AUTO
    size: int | None = None  # None: by the number of positions, see the basis module
    select: str = "random"
    residual: float = 0.0  # part of the trace that pivots may leave, where that takes fewer of them
    basis_tolerance: float | None = None  # select gradient: part of P; None: BASIS_TOLERANCE of the growth module
    cut_off: int = 1  # explicit poly: conjunctions in fewer training positions are left out


@dataclass(frozen=True)
class TermConfig:
    name: str
    type: str = "node"  # one of TERMS
    features: tuple[str, ...] = ("*",)
    kernel: KernelConfig = KernelConfig()
    map: MapConfig = MapConfig()
    sigma2: float | None = None  # None: the one of the training section


@dataclass(frozen=True)
class TrainingConfig:
    sigma2: float | None = None  # None: chosen on held-out sequences
    solver: str = AUTO
    tolerance: float = 1e-3
    max_passes: int = 1000
    seed: int = 0
    precision: str = "single"
    scheme: str | None = None  # of labels: what it forbids has probability zero
    observed_transitions: bool = False  # the same for pairs of labels that the training data lacks
    observed_features: bool = (
        False  # weights for pairs of features and labels that the training data has, and no others
    )


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
    terms: tuple[TermConfig, ...] = (TermConfig("node"), TermConfig("edge", "edge", ()))
    training: TrainingConfig = field(default_factory=TrainingConfig)
    unobserved: str | None = None  # what stands in the place of labels that are not observed
    weight: str | None = None  # the column that says what sequences weigh

    @property
    def mapped_terms(self) -> tuple[TermConfig, ...]:
        """Terms that look at the input."""
        return tuple(term for term in self.terms if term.type in MAPPED_TERMS)

    @property
    def edge_term(self) -> TermConfig | None:
        return next((term for term in self.terms if term.type == "edge"), None)

    @property
    def edge2_term(self) -> TermConfig | None:
        return next((term for term in self.terms if term.type == "edge2"), None)

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
        if self.features is not None:
            out["features"] = [feature_dict(feature) for feature in self.features]
        out["terms"] = [term_dict(term) for term in self.terms]
        training = {**asdict(self.training), "sigma2": self.training.sigma2 or AUTO}
        out["training"] = {key: value for key, value in training.items() if value is not None}
        return out


def matching_features(patterns: tuple[str, ...], names: list[str], term: str) -> list[str]:
    """Names matched by a term's globs, in the order of `names`. A glob that matches nothing is an error."""

    def fits(name: str, pattern: str) -> bool:
        return name == pattern or fnmatchcase(name, pattern)  # names such as word[-1]/pos look like globs

    for pattern in patterns:
        if not any(fits(name, pattern) for name in names):
            raise ConfigError(
                f"term '{term}': no feature is called '{pattern}'{suggestion(pattern, names)}; "
                f"there are: {', '.join(names)}"
            )
    return [name for name in names if any(fits(name, pattern) for pattern in patterns)]


def feature_dict(feature: FeatureConfig) -> dict[str, Any]:
    out: dict[str, Any] = {"name": feature.name}
    if feature.parts:
        out["conjunction"] = [name if offset == 0 else f"{name}[{offset}]" for name, offset in feature.parts]
    elif feature.columns:
        out["columns"] = list(feature.columns)
    for item in fields(FeatureConfig):
        value = getattr(feature, item.name)
        if item.name in ("name", "columns", "parts") or value == item.default:
            continue
        if item.name == "type" and feature.parts:
            continue
        out[item.name] = list(value) if isinstance(value, tuple) else value
    return out


def term_dict(term: TermConfig) -> dict[str, Any]:
    out: dict[str, Any] = {"name": term.name, "type": term.type}
    if term.type in MAPPED_TERMS:
        out["features"] = list(term.features)
        out["kernel"] = kernel_dict(term.kernel)
        out["map"] = {key: value for key, value in asdict(term.map).items() if value is not None}
    if term.sigma2 is not None:
        out["sigma2"] = term.sigma2
    return out


# Keys of a kernel that not every type has.
KERNEL_KEYS = {
    "degree": ("poly",),
    "coef0": ("poly",),
    "gamma": ("poly", "rbf", "image"),
    "shape": ("image",),
    "reach": ("image",),
    "blur": ("image",),
    "parts": COMPOSITE_KERNELS,
}


def kernel_dict(kernel: KernelConfig, within: str | None = None) -> dict[str, Any]:
    """Of a term, or of a part of the composite kernel of the type `within`."""
    out: dict[str, Any] = {"type": kernel.type}
    for key, types in KERNEL_KEYS.items():
        value = getattr(kernel, key)
        if kernel.type in types and value is not None:
            out[key] = list(value) if isinstance(value, tuple) else value
    if kernel.parts:
        out["parts"] = [kernel_dict(part, kernel.type) for part in kernel.parts]
    if kernel.cosine:
        out["cosine"] = True
    if within is not None:
        out["features"] = list(kernel.features)
    if within == "sum":
        out["weight"] = kernel.weight
    return out
