"""Configurations from plain dictionaries in the layout of the YAML file.

They come from YAML (`yaml_text`), a CRF++ template (`templates`) and options (`options`). Unknown keys are errors with
a suggestion, at the line where they stand.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ..chains import CLIQUES, Edge
from ..corpora import NUMBER_TRANSFORMS
from ..errors import ConfigError, suggestion
from ..kernels import DEEPEST_KERNEL, KERNELS, Kernel, KernelConfig, kernel_settings, kernel_types
from ..system import ANOTHER, AUTO, OneOf, boolean, described, listed, settings_of
from . import values
from .config import (
    BAGS,
    COUNTING_TRANSFORMS,
    GRADIENT,
    Config,
    FeatureConfig,
    MapConfig,
    RulesConfig,
    TermConfig,
    TrainingConfig,
)
from .templates import pieces


class _Section:
    """One mapping of the configuration, read key by key; `finish` refuses keys that were not read."""

    def __init__(self, raw: Any, what: str, source: str, line: int | None = None):
        if not isinstance(raw, dict):
            where = source if line is None else f"{source}:{line}"
            raise ConfigError(f"{where}: {what} must be a mapping of keys to values, not {described(raw)}")
        self.raw, self.what, self.source = raw, what, source
        self._lines: Mapping[str, int] = getattr(raw, "lines", {})
        self._begin = min(self._lines.values(), default=line)
        self._known: list[str] = []

    def error(self, key: str, message: str) -> ConfigError:
        line = self._lines.get(key) or self._begin
        where = self.source if line is None else f"{self.source}:{line}"
        return ConfigError(f"{where}: {self.what}: {message}")

    def refuse(self, wrong: bool, key: str, message: str) -> None:
        if wrong:
            raise self.error(key, message)

    def get(self, key: str, convert: Callable[[Any], Any], default: Any = None) -> Any:
        self._known.append(key)
        if key not in self.raw:
            return default
        try:
            return convert(self.raw[key])
        except ConfigError as error:
            raise self.error(key, f"'{key}' {error}") from None

    def declared(self, kind: Any) -> dict[str, Any]:
        """Read the settings that a dataclass declares."""
        return {key: self.get(key, one.kind, one.default) for key, one in settings_of(kind).items()}

    def subsection(self, key: str, what: str) -> _Section | None:
        self._known.append(key)
        value = self.raw.get(key)
        if isinstance(value, str) and key in ("kernel", "map"):  # `kernel: poly` is short for {type: poly}
            value = {"type": value}
        return None if value is None else _Section(value, what, self.source, self._lines.get(key))

    def entries(self, key: str, what: str) -> list[_Section] | None:
        self._known.append(key)
        value = self.raw.get(key)
        if value is None:
            return None
        if not isinstance(value, list):
            raise self.error(key, f"'{key}' must be a list, not {described(value)}")
        line = self._lines.get(key)
        return [_Section(entry, f"{what} {number}", self.source, line) for number, entry in enumerate(value)]

    def finish(self) -> None:
        for key in self.raw:
            if key not in self._known:
                raise self.error(key, f"unknown key '{key}'{suggestion(key, self._known)}")


def parse_config(raw: Mapping[str, object], source: str = "configuration") -> Config:
    """Check a raw configuration in the layout of the YAML file and return it as values.

    >>> from kcrf_core import parse_config
    >>> config = parse_config({"terms": [{"kernel": {"type": "poly", "degree": 3}}, {"type": "edge"}]})
    >>> config.terms[0].kernel.degree
    3
    >>> parse_config({"trainign": {}})
    Traceback (most recent call last):
    kcrf_core.errors.ConfigError: configuration: the configuration: unknown key 'trainign' (did you mean 'training'?)
    """
    section = _Section(raw, "the configuration", source)
    found = section.declared(Config)
    if found["columns"] is not None and len(set(found["columns"])) < len(found["columns"]):
        twice = Counter(found["columns"]).most_common(1)[0][0]
        raise section.error("columns", f"'columns' has '{twice}' twice")
    others = found["label_sets"] or found["unobserved"] is not None
    alone = "'soft_labels' goes neither with 'label_sets' nor with 'unobserved': give weights to all labels in question"
    section.refuse(found["soft_labels"] and others, "soft_labels", alone)
    raw_features = section.entries("features", "feature")
    raw_terms = section.entries("terms", "term")
    raw_training = section.subsection("training", "training")
    raw_rules = section.subsection("rules", "rules")
    section.finish()

    if raw_features is not None:
        features = found["features"] = tuple(_parse_feature(entry) for entry in raw_features)
        section.refuse(not features, "features", "'features' is empty; leave it out for one feature per column")
        _refuse_twins(section, "features", [feature.name for feature in features])
        if sum(feature.type in BAGS for feature in features) > 1:
            raise section.error("features", "'features' has more than one of the type attributes or templates")
    if raw_terms is not None:
        terms = found["terms"] = tuple(_parse_term(entry) for entry in raw_terms)
        _refuse_twins(section, "terms", [term.name for term in terms])
        if not any(term.clique.mapped for term in terms):
            raise section.error(
                "terms", "'terms' has no node term and no edge-x term, so the model would ignore the input"
            )
        for kind in [term.type for term in terms if not term.clique.mapped]:
            if sum(term.type == kind for term in terms) > 1:
                raise section.error("terms", f"'terms' has more than one {kind} term")
        if sum(isinstance(term.clique, Edge) for term in terms) > 1:
            raise section.error(
                "terms",
                "'terms' has an edge term and a transitions term, which score the same transitions: give one of them",
            )
    rules = RulesConfig()
    if raw_rules is not None:
        rules = found["rules"] = RulesConfig(**raw_rules.declared(RulesConfig))
        raw_rules.finish()
    if raw_training is not None or rules.forbid:
        found["training"] = _parse_training(raw_training or _Section({}, "training", source), rules.forbid)
    return Config(**found)


def _parse_feature(section: _Section) -> FeatureConfig:
    column = section.get("column", values.text)
    conjunction = section.get("conjunction", values.names)
    found = section.declared(FeatureConfig)
    templates, vectors, min_count, lookup = (found[key] for key in ("templates", "vectors", "min_count", "lookup"))
    kind, transform, length, window = found["type"], found["transform"], found["length"], found["window"]
    name = section.get("name", values.text)
    section.finish()

    of_numbers = transform in NUMBER_TRANSFORMS
    narrowest = NUMBER_TRANSFORMS[transform].narrowest if of_numbers else None
    if narrowest is None:
        takers = listed([one for one, other in NUMBER_TRANSFORMS.items() if other.narrowest is not None])
        section.refuse(found["width"] is not None, "width", f"'width' is for the transforms {takers}")
    elif (found["width"] or NUMBER_TRANSFORMS[transform].width or 0) < narrowest:
        raise section.error("width", f"'{transform}' needs a 'width' of at least {narrowest} positions")
    wrong = found["quantile"] is not None and transform != "clip"
    section.refuse(wrong, "quantile", "'quantile' is for the transform clip")
    wrong = (found["group"] is not None) != (found["scale"] == "group")
    section.refuse(wrong, "group", "'scale: group' goes with a 'group', the column of the names of groups")
    by_group, numbers = found["scale"] in ("sequence", "group"), of_numbers or transform == "identity"
    wrong = by_group and not (numbers and vectors is None and lookup is None)
    section.refuse(wrong, "scale", f"'scale: {found['scale']}' is for columns of numbers")
    origins = ("column", "columns", "conjunction", "templates", "vectors")
    given = [key for key in origins if section.raw.get(key) is not None]
    if kind == "attributes":
        if given:
            raise section.error(given[0], f"attributes take no '{given[0]}': the data names them")
        if window not in (None, (0,)):
            raise section.error("window", "attributes take no 'window': each belongs to its position")
        _refuse_keys(section, "attributes", "transform", "length", "scale", "missing")
        return FeatureConfig(name or "attributes", (), kind, min_count=min_count, window=(0,))
    section.refuse(
        lookup is not None and not {"column", "columns"} & set(given), "lookup", "'lookup' goes with a 'column'"
    )
    section.refuse(len(given) != 1, "name", "give one of 'column', 'columns', 'conjunction', 'templates' and 'vectors'")
    if vectors is not None:
        section.refuse(kind not in (AUTO, "real"), "type", "vectors are numbers, so their type is real")
        _refuse_keys(section, "a feature of vectors", "transform", "length", "min_count", "missing")
        return FeatureConfig(name or vectors, (), "real", window=window, scale=found["scale"], vectors=vectors)
    if templates:
        if kind not in (AUTO, "templates", "categorical"):
            raise section.error("templates", "'templates' goes with the type templates, or categorical for one line")
        if kind == "categorical" and len(templates) != 1:
            message = "a categorical feature is made of one line: give each a feature of its own"
            raise section.error("templates", message)
        if window not in (None, (0,)):
            raise section.error("window", "templates take no 'window': their macros have offsets")
        _refuse_keys(section, "templates", "transform", "length", "scale", "missing")
        for line in templates:
            try:
                pieces(line)
            except ConfigError as error:
                raise section.error("templates", str(error)) from None
        kind = "templates" if kind == AUTO else kind
        return FeatureConfig(name or "templates", (), kind, min_count=min_count, window=(0,), templates=templates)
    section.refuse(kind == "templates", "type", "the type templates goes with the key 'templates', which lists lines")
    if conjunction is not None:
        if kind not in (AUTO, "conjunction") or transform != "identity":
            raise section.error("conjunction", "a conjunction takes no 'type' and no 'transform'")
        _refuse_keys(section, "a conjunction", "length", "scale", "missing")
        parts = tuple(_conjunction_part(section, part) for part in conjunction)
        name = name or "/".join(conjunction)
        return FeatureConfig(name, (), "conjunction", window=window, min_count=min_count, parts=parts)
    if kind == "conjunction":
        raise section.error("type", "the type conjunction goes with the key 'conjunction', which lists its parts")
    sources = (column,) if column is not None else found["columns"]
    if transform in ("prefix", "suffix"):
        if length is None:
            raise section.error("transform", f"'{transform}' needs a 'length' (of characters)")
    elif length is not None and lookup is None:
        raise section.error("length", "'length' is for the transforms prefix and suffix, and for clusters")
    if of_numbers or transform in COUNTING_TRANSFORMS:
        section.refuse(kind == "categorical", "type", f"'{transform}' gives a number, so its type is real")
        kind = "real"
    elif transform != "identity":
        section.refuse(kind == "real", "type", f"'{transform}' gives a string, so its type is categorical")
        kind = "categorical"
    if len(sources) > 1 and (kind != "real" or not (of_numbers or transform == "identity")):
        message = "several columns make one feature only with 'type: real', or with a transform of numbers"
        raise section.error("columns", message)
    if kind == "categorical":
        _refuse_keys(section, "a categorical feature", "scale", "missing")
    if transform != "identity":
        _refuse_keys(section, f"the transform '{transform}'", "missing")
    if found["scale"] == "unit" and transform != "identity":
        raise section.error("scale", f"'scale: unit' is for vectors and columns of numbers, not for '{transform}'")
    if lookup is not None:
        section.refuse(len(sources) != 1, "lookup", "'lookup' goes with one 'column', whose values are looked up")
        _refuse_keys(section, "a lookup", "transform", "missing")
        name = name or f"{sources[0]}.{lookup}{length or ''}"
        return FeatureConfig(name, **{**found, "columns": sources, "type": kind})
    written = sources if column is not None else values.names(section.raw["columns"])  # v1..v300 is a good name
    feature = FeatureConfig(name or "", **{**found, "columns": sources, "type": kind})
    return feature if name else replace(feature, name="+".join(written) + feature.suffix)


def _refuse_keys(section: _Section, what: str, *keys: str) -> None:
    for key in keys:
        section.refuse(section.raw.get(key) not in (None, AUTO, "identity"), key, f"{what} takes no '{key}'")


def _conjunction_part(section: _Section, part: str) -> tuple[str, int]:
    """Return `word` or `word[-1]` as (name, offset)."""
    name, offset = values.conjunction_part(part)
    if abs(offset) > values.WIDEST_WINDOW:
        raise section.error("conjunction", f"'{part}' looks further than {values.WIDEST_WINDOW} positions")
    return name, offset


def _parse_term(section: _Section) -> TermConfig:
    found = section.declared(TermConfig)
    kind = found["type"]
    name = section.get("name", values.text, kind)
    raw_kernel = section.subsection("kernel", f"kernel of term '{name}'")
    raw_map = section.subsection("map", f"map of term '{name}'")
    section.finish()
    if not CLIQUES[kind].mapped:
        for key in ("features", "window", "kernel", "map"):
            if section.raw.get(key) is not None:
                raise section.error(key, f"an {kind} term does not use the input and takes no '{key}'")
        return TermConfig(name, kind, (), sigma2=found["sigma2"], shared=found["shared"])
    kernel = KernelConfig() if raw_kernel is None else _parse_kernel(raw_kernel)
    map_config = MapConfig() if raw_map is None else _parse_map(raw_map)
    if map_config.type == "explicit" and not kernel.kernel.explicit:
        known = " and ".join(name for name, kind in KERNELS.items() if kind.explicit)
        raise section.error("map", f"map 'explicit' is for {known}; '{kernel.type}' takes 'reduced'")
    return TermConfig(name, kernel=kernel, map=map_config, **found)


def _parse_kernel(section: _Section, within: type[Kernel] | None = None, depth: int = 1) -> KernelConfig:
    """Read the kernel of a term, or a part of a composite kernel of the class `within`."""
    kind = section.get("type", OneOf(kernel_types, ANOTHER), KernelConfig.type)
    kernel = KERNELS[kind]
    declared = kernel.settings()
    found = {
        key: section.get(key, declared.get(key, other).kind, declared.get(key, other).default)
        for key, other in kernel_settings().items()
    }
    cosine = section.get("cosine", boolean, KernelConfig.cosine)
    features, weight = KernelConfig.features, KernelConfig.weight
    if within is not None:
        features = section.get("features", values.names, features)
    elif section.raw.get("features") is not None:
        raise section.error(
            "features", "'features' belongs to the term; only the parts of a sum or product of kernels have their own"
        )
    if within is not None and within.weighs_parts:
        weight = section.get("weight", values.positive, weight)
    elif section.raw.get("weight") is not None:
        raise section.error("weight", "'weight' is for the parts of a sum")
    parts = section.entries("parts", f"{section.what}: part")
    section.finish()
    for key in [*found, "parts"]:
        belongs = kernel.composite if key == "parts" else key in declared
        if section.raw.get(key) is not None and not belongs:
            raise section.error(key, f"'{key}' does not belong to the kernel '{kind}'")
    for key, one in declared.items():
        if one.needed is not None and found[key] is None:
            raise section.error("type", f"the kernel '{kind}' needs the '{key}' {one.needed}")
    inner: tuple[KernelConfig, ...] = ()
    if kernel.composite:
        if parts is None or len(parts) < 2:
            raise section.error("parts", f"the kernel '{kind}' needs at least two 'parts'")
        section.refuse(depth == DEEPEST_KERNEL, "parts", f"kernels are nested more than {DEEPEST_KERNEL} deep")
        inner = tuple(_parse_kernel(part, kernel, depth + 1) for part in parts)
    return KernelConfig(kind, {key: found[key] for key in declared}, cosine, inner, features, weight)


def _parse_map(section: _Section) -> MapConfig:
    found = MapConfig(**section.declared(MapConfig))
    section.finish()
    kind = found.type
    if found.size is not None and kind in ("explicit", "full"):
        raise section.error("size", f"'size' does not belong to the map '{kind}'")
    if found.cut_off > 1 and kind in ("reduced", "full"):
        raise section.error("cut_off", f"'cut_off' does not belong to the map '{kind}'")
    if found.select == GRADIENT and kind in ("explicit", "full"):
        raise section.error("select", f"'select: gradient' does not belong to the map '{kind}'")
    if found.basis_tolerance is not None and found.select != GRADIENT:
        raise section.error("basis_tolerance", f"'basis_tolerance' is for 'select: gradient', not for '{found.select}'")
    return found


def _parse_training(section: _Section, forbid: tuple[str, ...]) -> TrainingConfig:
    found = section.declared(TrainingConfig)
    section.finish()
    training = TrainingConfig(**{**found, "c1": found["c1"] or None}, forbid=forbid)  # a penalty of 0 is none
    if training.sigma2 == math.inf and training.c1 is None:
        raise section.error(
            "sigma2", "an infinite 'sigma2' ('c2' 0) needs an L1 penalty: give a 'c1' above 0, or a finite value"
        )
    return training


def _refuse_twins(section: _Section, key: str, names: list[str]) -> None:
    for name, count in Counter(names).items():
        section.refuse(count > 1, key, f"two {key} are called '{name}': give one of them another 'name'")


def entry_name(section: str, entry: Any) -> str | None:
    """Return the name of a raw feature or term, given or by default; None where it has none."""
    if not isinstance(entry, dict):
        return None
    if entry.get("name") is not None:
        return str(entry["name"])
    try:
        return (_parse_term if section == "terms" else _parse_feature)(_Section(entry, section, section)).name
    except ConfigError:
        return None
