"""The description of columns, features, terms and training, as frozen values.

A configuration comes from YAML, from a CRF++ template (`templates`), from options of the command line
or from all of them: each is a plain dictionary in the layout of the YAML file until `parse_config` checks
it. Unknown keys are errors with a suggestion, at the line where they stand.
"""

from __future__ import annotations

import copy
import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from fnmatch import fnmatchcase
from typing import Any

import yaml

from .errors import ConfigError

STRING_TRANSFORMS = ("identity", "lower", "prefix", "suffix", "shape")
NUMBER_TRANSFORMS = ("length", "position", "frequency")
TRANSFORMS = STRING_TRANSFORMS + NUMBER_TRANSFORMS
KERNELS = ("linear", "poly", "rbf")
MAPS = ("auto", "explicit", "reduced", "full")
SELECTIONS = ("random", "greedy")
SOLVERS = ("auto", "lbfgs")
PRECISIONS = ("single", "double")
SCALES = ("auto", "standard", "none")

AUTO = "auto"
WIDEST_WINDOW = 100


@dataclass(frozen=True)
class FeatureConfig:
    """One feature: some columns, a transform, and where to look relative to a position."""

    name: str
    columns: tuple[str, ...] = ()
    type: str = AUTO  # categorical, real, attributes, conjunction; auto until the data is known
    transform: str = "identity"
    length: int | None = None  # of a prefix or suffix
    window: tuple[int, ...] | None = None  # None: the default of its type
    scale: str = AUTO
    min_count: int | None = None
    parts: tuple[tuple[str, int], ...] = ()  # of a conjunction: (feature or column, offset)


@dataclass(frozen=True)
class KernelConfig:
    type: str = "linear"
    degree: int = 2
    gamma: float | None = None  # None: by the automatic scales
    coef0: float = 1.0


@dataclass(frozen=True)
class MapConfig:
    type: str = AUTO
    size: int | None = None  # None: DEFAULT_SIZE of the basis module
    select: str = "random"


@dataclass(frozen=True)
class TermConfig:
    name: str
    type: str = "node"  # node or edge
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


@dataclass(frozen=True)
class Config:
    columns: tuple[str, ...] | None = None
    window: tuple[int, ...] | None = None
    min_count: int = 1
    features: tuple[FeatureConfig, ...] | None = None  # None: one per column
    terms: tuple[TermConfig, ...] = (TermConfig("node"), TermConfig("edge", "edge", ()))
    training: TrainingConfig = field(default_factory=TrainingConfig)

    @property
    def node_terms(self) -> tuple[TermConfig, ...]:
        return tuple(term for term in self.terms if term.type == "node")

    @property
    def edge_term(self) -> TermConfig | None:
        return next((term for term in self.terms if term.type == "edge"), None)

    def to_dict(self) -> dict[str, Any]:
        """The layout of the YAML file; `parse_config` of it gives an equal configuration."""
        out: dict[str, Any] = {}
        if self.columns is not None:
            out["columns"] = list(self.columns)
        if self.window is not None:
            out["window"] = list(self.window)
        out["min_count"] = self.min_count
        if self.features is not None:
            out["features"] = [_feature_dict(feature) for feature in self.features]
        out["terms"] = [_term_dict(term) for term in self.terms]
        out["training"] = {**asdict(self.training), "sigma2": self.training.sigma2 or AUTO}
        return out


def matching_features(patterns: tuple[str, ...], names: list[str], term: str) -> list[str]:
    """Names matched by a term's globs, in the order of `names`. A glob that matches nothing is an error."""
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise ConfigError(
                f"term '{term}': no feature is called '{pattern}'{_suggestion(pattern, names)}; "
                f"there are: {', '.join(names)}"
            )
    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]


# ----------------------------------------------------------------------------- from text


class _LocatedMapping(dict):
    """A mapping that remembers the line of each key."""

    lines: dict[str, int]


class _Loader(yaml.SafeLoader):
    pass


def _construct_mapping(loader: _Loader, node: yaml.MappingNode) -> _LocatedMapping:
    mapping = _LocatedMapping()
    mapping.lines = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        line = key_node.start_mark.line + 1
        if not isinstance(key, str):
            raise ConfigError(f"line {line}: a key must be a word, not {key!r}")
        if key in mapping:
            raise ConfigError(f"line {line}: key '{key}' is given twice")
        mapping[key] = loader.construct_object(value_node, deep=True)
        mapping.lines[key] = line
    return mapping


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _construct_mapping)


def load_yaml(text: str, source: str) -> dict[str, Any]:
    """A configuration dictionary out of YAML text; keys remember their lines."""
    try:
        # _Loader is a SafeLoader: only plain data can come out of it.
        loaded = yaml.load(text, _Loader)
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}".replace(f"{source}: line ", f"{source}:")) from None
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(f"{source}{line}: not valid YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ConfigError(f"{source}: not valid YAML: {str(error).splitlines()[0]}") from None
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise ConfigError(f"{source}: expected keys such as 'features:' and 'terms:', found {_kind(loaded)}")
    return loaded


# ----------------------------------------------------------------------------- overriding


def with_options(raw: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """`raw` with options of the command line put in their places (see `OPTION_PATHS`)."""
    out = copy.deepcopy(dict(raw))
    for name, value in options.items():
        set_path(out, OPTION_PATHS.get(name, name), value)
    return out


# Options that are short names for a place in the configuration. `node` stands for the only node term.
OPTION_PATHS = {
    "kernel": "terms.node.kernel.type",
    "degree": "terms.node.kernel.degree",
    "gamma": "terms.node.kernel.gamma",
    "coef0": "terms.node.kernel.coef0",
    "map": "terms.node.map.type",
    "size": "terms.node.map.size",
    "select": "terms.node.map.select",
    "sigma2": "training.sigma2",
    "solver": "training.solver",
    "tolerance": "training.tolerance",
    "max_passes": "training.max_passes",
    "seed": "training.seed",
    "precision": "training.precision",
}


def set_path(raw: dict[str, Any], path: str, value: Any) -> None:
    """Set a dotted path such as `training.sigma2` or `terms.acoustic.kernel.gamma` in a raw configuration.

    Lists are entered by number or by the `name` of an entry.
    """
    keys = path.split(".")
    if keys[0] == "terms" and "terms" not in raw:
        raw["terms"] = [_term_dict(term) for term in Config().terms]
    place: Any = raw
    for depth, key in enumerate(keys[:-1]):
        shown = ".".join(keys[: depth + 1])
        if isinstance(place, list):
            place = _list_entry(place, key, shown)
        elif isinstance(place, dict):
            if isinstance(place.get(key), str) and key in ("kernel", "map"):
                place[key] = {"type": place[key]}
            place = place.setdefault(key, {})
        else:
            raise ConfigError(f"'{path}': there is nothing below '{'.'.join(keys[:depth])}'")
    if not isinstance(place, dict):
        raise ConfigError(f"'{path}' does not name a value of the configuration")
    place[keys[-1]] = value


def _list_entry(entries: list[Any], key: str, shown: str) -> Any:
    if key.isdigit():
        if int(key) >= len(entries):
            raise ConfigError(f"'{shown}': there are only {len(entries)} entries (they count from 0)")
        return entries[int(key)]
    named = [entry for entry in entries if isinstance(entry, dict) and entry.get("name") == key]
    if not named and key == "node":
        named = [entry for entry in entries if isinstance(entry, dict) and entry.get("type", "node") == "node"]
        if len(named) > 1:
            names = ", ".join(str(entry.get("name", "?")) for entry in named)
            raise ConfigError(
                f"there are {len(named)} node terms ({names}): set the option in the configuration file, "
                f"or by a path such as terms.{named[0].get('name', '0')}.kernel.degree"
            )
    if not named:
        known = [str(entry["name"]) for entry in entries if isinstance(entry, dict) and "name" in entry]
        raise ConfigError(f"'{shown}': no entry is called '{key}'{_suggestion(key, known)}")
    return named[0]


# ----------------------------------------------------------------------------- checking


class _Section:
    """One mapping of the configuration, read key by key; `finish` refuses what was not asked for."""

    def __init__(self, raw: Any, what: str, source: str, line: int | None = None):
        if not isinstance(raw, dict):
            where = source if line is None else f"{source}:{line}"
            raise ConfigError(f"{where}: {what} must be a mapping of keys to values, not {_kind(raw)}")
        self.raw, self.what, self.source = raw, what, source
        self._known: list[str] = []

    def error(self, key: str, message: str) -> ConfigError:
        line = self.line(key)
        where = self.source if line is None else f"{self.source}:{line}"
        return ConfigError(f"{where}: {self.what}: {message}")

    def line(self, key: str) -> int | None:
        return getattr(self.raw, "lines", {}).get(key)

    def get(self, key: str, convert: Callable[[Any], Any], default: Any = None) -> Any:
        self._known.append(key)
        if key not in self.raw:
            return default
        try:
            return convert(self.raw[key])
        except ConfigError as error:
            raise self.error(key, f"'{key}' {error}") from None

    def subsection(self, key: str, what: str) -> _Section | None:
        self._known.append(key)
        if self.raw.get(key) is None:
            return None
        value = self.raw[key]
        if isinstance(value, str):  # `kernel: poly` is short for `kernel: {type: poly}`
            value = {"type": value}
        return _Section(value, what, self.source, self.line(key))

    def entries(self, key: str, what: str) -> list[_Section] | None:
        self._known.append(key)
        if self.raw.get(key) is None:
            return None
        value = self.raw[key]
        if not isinstance(value, list):
            raise self.error(key, f"'{key}' must be a list, not {_kind(value)}")
        return [
            _Section(entry, f"{what} {number}", self.source, self.line(key))
            for number, entry in enumerate(value)
        ]

    def finish(self) -> None:
        for key in self.raw:
            if key not in self._known:
                raise self.error(key, f"unknown key '{key}'{_suggestion(key, self._known)}")


def parse_config(raw: Mapping[str, Any], source: str = "configuration") -> Config:
    """Check a raw configuration and return it as values."""
    section = _Section(raw, "the configuration", source)
    columns = section.get("columns", _names)
    if columns is not None and len(set(columns)) < len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise section.error("columns", f"'columns' has '{twice}' twice")
    window = section.get("window", _window)
    min_count = section.get("min_count", _integer(1), 1)
    raw_features = section.entries("features", "feature")
    raw_terms = section.entries("terms", "term")
    raw_training = section.subsection("training", "training")
    section.finish()

    features = None
    if raw_features is not None:
        features = tuple(_parse_feature(entry) for entry in raw_features)
        if not features:
            raise section.error("features", "'features' is empty; leave it out for one feature per column")
        _refuse_twins(section, "features", [feature.name for feature in features])
    terms = Config.terms
    if raw_terms is not None:
        terms = tuple(_parse_term(entry) for entry in raw_terms)
        _refuse_twins(section, "terms", [term.name for term in terms])
        if not any(term.type == "node" for term in terms):
            raise section.error("terms", "'terms' has no node term, so nothing would look at the input")
        if sum(term.type == "edge" for term in terms) > 1:
            raise section.error("terms", "'terms' has more than one edge term")
    training = TrainingConfig() if raw_training is None else _parse_training(raw_training)
    return Config(columns, window, min_count, features, terms, training)


def _parse_feature(section: _Section) -> FeatureConfig:
    column = section.get("column", _text)
    columns = section.get("columns", _names)
    conjunction = section.get("conjunction", _names)
    kind = section.get("type", _choice("auto", "categorical", "real", "attributes", "conjunction"), AUTO)
    transform = section.get("transform", _choice(*TRANSFORMS), "identity")
    length = section.get("length", _integer(1))
    window = section.get("window", _window)
    scale = section.get("scale", _choice(*SCALES), AUTO)
    min_count = section.get("min_count", _integer(1))
    name = section.get("name", _text)
    section.finish()

    given = [key for key in ("column", "columns", "conjunction") if section.raw.get(key) is not None]
    if kind == "attributes":
        if given:
            raise section.error(given[0], f"attributes have no '{given[0]}': they stand in the data by name")
        return FeatureConfig(name or "attributes", (), kind, min_count=min_count, window=(0,))
    if len(given) != 1:
        raise section.error("name", "give one of 'column', 'columns' and 'conjunction'")
    if conjunction is not None:
        if kind not in (AUTO, "conjunction") or transform != "identity":
            raise section.error("conjunction", "a conjunction takes no 'type' and no 'transform'")
        parts = tuple(_conjunction_part(section, part) for part in conjunction)
        return FeatureConfig(
            name or "/".join(conjunction), (), "conjunction", window=window, min_count=min_count, parts=parts
        )
    sources = (column,) if column is not None else columns
    if transform in ("prefix", "suffix"):
        if length is None:
            raise section.error("transform", f"'{transform}' needs a 'length' (of characters)")
    elif length is not None:
        raise section.error("length", "'length' is for the transforms prefix and suffix")
    if transform in NUMBER_TRANSFORMS:
        if kind == "categorical":
            raise section.error("type", f"'{transform}' gives a number, so its type is real")
        kind = "real"
    elif transform != "identity":
        if kind == "real":
            raise section.error("type", f"'{transform}' gives a string, so its type is categorical")
        kind = "categorical"
    if len(sources) > 1 and kind != "real":
        raise section.error("columns", "several columns make one feature only with 'type: real'")
    default = "+".join(sources) + ("" if transform == "identity" else f".{transform}{length or ''}")
    return FeatureConfig(name or default, sources, kind, transform, length, window, scale, min_count)


def _conjunction_part(section: _Section, part: str) -> tuple[str, int]:
    """`word` or `word[-1]` as (name, offset)."""
    name, bracket, rest = part.partition("[")
    if not bracket:
        return part, 0
    try:
        if not rest.endswith("]"):
            raise ValueError
        offset = int(rest[:-1])
    except ValueError:
        raise section.error("conjunction", f"'{part}' should be a name or a name with an offset, as word[-1]")
    if abs(offset) > WIDEST_WINDOW:
        raise section.error("conjunction", f"'{part}' looks further than {WIDEST_WINDOW} positions")
    return name, offset


def _parse_term(section: _Section) -> TermConfig:
    kind = section.get("type", _choice("node", "edge"), "node")
    name = section.get("name", _text, kind)
    patterns = section.get("features", _names)
    raw_kernel = section.subsection("kernel", f"kernel of term '{name}'")
    raw_map = section.subsection("map", f"map of term '{name}'")
    sigma2 = section.get("sigma2", _positive)
    section.finish()
    if kind == "edge":
        for key in ("features", "kernel", "map"):
            if section.raw.get(key) is not None:
                raise section.error(key, f"an edge term looks at labels alone and has no '{key}'")
        return TermConfig(name, "edge", (), sigma2=sigma2)
    kernel = KernelConfig() if raw_kernel is None else _parse_kernel(raw_kernel)
    map_config = MapConfig() if raw_map is None else _parse_map(raw_map)
    if map_config.type == "explicit" and kernel.type != "linear":
        raise section.error("map", f"map 'explicit' is for the linear kernel; '{kernel.type}' takes 'reduced'")
    return TermConfig(name, "node", patterns or ("*",), kernel, map_config, sigma2)


def _parse_kernel(section: _Section) -> KernelConfig:
    kind = section.get("type", _choice(*KERNELS), "linear")
    degree = section.get("degree", _integer(1, 10))
    gamma = section.get("gamma", _automatic(_positive))
    coef0 = section.get("coef0", _not_negative)
    section.finish()
    belongs = {"degree": ("poly",), "coef0": ("poly",), "gamma": ("poly", "rbf")}
    for key, kinds in belongs.items():
        if section.raw.get(key) is not None and kind not in kinds:
            raise section.error(key, f"'{key}' does not belong to the kernel '{kind}'")
    default = KernelConfig()
    return KernelConfig(
        kind, default.degree if degree is None else degree, gamma, default.coef0 if coef0 is None else coef0
    )


def _parse_map(section: _Section) -> MapConfig:
    kind = section.get("type", _choice(*MAPS), AUTO)
    size = section.get("size", _automatic(_integer(1)))
    select = section.get("select", _choice(*SELECTIONS), MapConfig().select)
    section.finish()
    if size is not None and kind in ("explicit", "full"):
        raise section.error("size", f"'size' does not belong to the map '{kind}'")
    return MapConfig(kind, size, select)


def _parse_training(section: _Section) -> TrainingConfig:
    default = TrainingConfig()
    training = TrainingConfig(
        sigma2=section.get("sigma2", _automatic(_positive)),
        solver=section.get("solver", _choice(*SOLVERS), default.solver),
        tolerance=section.get("tolerance", _positive, default.tolerance),
        max_passes=section.get("max_passes", _integer(1), default.max_passes),
        seed=section.get("seed", _integer(0), default.seed),
        precision=section.get("precision", _choice(*PRECISIONS), default.precision),
    )
    section.finish()
    return training


def _refuse_twins(section: _Section, key: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise section.error(key, f"two {key} are called '{name}': give one of them another 'name'")


# ----------------------------------------------------------------------------- values


def _text(value: Any) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value:
        raise ConfigError(f"must be a word, not {_kind(value)}")
    return value


def _names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, (list, tuple)) or not value:
        raise ConfigError(f"must be a list of names, not {_kind(value)}")
    return tuple(_text(item) for item in value)


def _number(value: Any) -> float:
    # YAML 1.1 reads 1e-3 (no dot) as a string: take it for the number that is meant.
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise ConfigError(f"must be a number, not '{value}'") from None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigError(f"must be a number, not {_kind(value)}")
    if not math.isfinite(value):
        raise ConfigError(f"must be a finite number, not {value}")
    return float(value)


def _positive(value: Any) -> float:
    number = _number(value)
    if number <= 0:
        raise ConfigError(f"must be greater than 0, not {value}")
    return number


def _not_negative(value: Any) -> float:
    number = _number(value)
    if number < 0:
        raise ConfigError(f"must be at least 0, not {value}")
    return number


def _integer(least: int, most: int | None = None) -> Callable[[Any], int]:
    def convert(value: Any) -> int:
        number = _number(value)
        if number != int(number):
            raise ConfigError(f"must be a whole number, not {value}")
        if number < least or (most is not None and number > most):
            limits = f"at least {least}" if most is None else f"from {least} to {most}"
            raise ConfigError(f"must be {limits}, not {value}")
        return int(number)

    return convert


def _automatic(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None or value == AUTO else convert(value)


def _choice(*choices: str) -> Callable[[Any], str]:
    def convert(value: Any) -> str:
        if value not in choices:
            shown = value if isinstance(value, str) else repr(value)
            raise ConfigError(
                f"must be one of {', '.join(choices)}, not '{shown}'{_suggestion(shown, choices)}"
            )
        return value

    return convert


def _window(value: Any) -> tuple[int, ...]:
    """`[-1, 0, 1]` or `-1..1`."""
    if isinstance(value, str) and ".." in value:
        first, _, last = value.partition("..")
        try:
            value = list(range(int(first), int(last) + 1))
        except ValueError:
            raise ConfigError(f"must be like -2..2, not '{value}'") from None
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        value = [value]
    if not isinstance(value, (list, tuple)) or not value:
        raise ConfigError("must be a list of offsets such as [-1, 0, 1], or a range such as -2..2")
    offsets = tuple(sorted(_integer(-WIDEST_WINDOW, WIDEST_WINDOW)(item) for item in value))
    if len(set(offsets)) < len(offsets):
        raise ConfigError("names an offset twice")
    return offsets


def _kind(value: Any) -> str:
    names = {dict: "a mapping", list: "a list", str: f"'{value}'", type(None): "nothing"}
    return names.get(type(value), repr(value))


def _suggestion(word: str, known: Any) -> str:
    close = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean '{close[0]}'?)" if close else ""


# ----------------------------------------------------------------------------- back to plain data


def _feature_dict(feature: FeatureConfig) -> dict[str, Any]:
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


def _term_dict(term: TermConfig) -> dict[str, Any]:
    out: dict[str, Any] = {"name": term.name, "type": term.type}
    if term.type == "node":
        out["features"] = list(term.features)
        kernel: dict[str, Any] = {"type": term.kernel.type}
        if term.kernel.type == "poly":
            kernel["degree"] = term.kernel.degree
            kernel["coef0"] = term.kernel.coef0
        if term.kernel.type in ("poly", "rbf") and term.kernel.gamma is not None:
            kernel["gamma"] = term.kernel.gamma
        out["kernel"] = kernel
        out["map"] = {key: value for key, value in asdict(term.map).items() if value is not None}
    if term.sigma2 is not None:
        out["sigma2"] = term.sigma2
    return out
