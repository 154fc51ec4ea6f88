"""Grids of settings: `degree=1,2,3` and the like, every combination of them.

A setting is kept as it was typed, for reports, and as options with their configuration keys, for use.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from ..config import load_value, option_paths
from ..errors import ConfigError, suggestion

# Short names of options that stand for others.
ALIASES = {"method": "select", "c2": "sigma2"}

# Options and sections that are keys of the configuration themselves.
PLAIN_KEYS = ("order", "window", "min_count", "unobserved", "weight", "columns", "features", "terms", "training")


@dataclass(frozen=True)
class Setting:
    """One point of a grid."""

    typed: dict[str, Any]  # keys and values as given
    options: dict[str, Any]  # what they mean, for `with_options`

    @property
    def name(self) -> str:
        return " ".join(f"{key}={shown(value)}" for key, value in self.typed.items()) or "all"


def shown(value: Any) -> str:
    """A value as one would type it."""
    if isinstance(value, bool) or value is None:
        return yaml.safe_dump(value).split("\n")[0]
    if isinstance(value, (list, dict)):
        return yaml.safe_dump(value, default_flow_style=True, width=math.inf).strip()
    return str(value)


def _error(message: str) -> ConfigError:
    return ConfigError(message, settings=["grid"])


def parse_grid(entries: Sequence[str]) -> dict[str, list[Any]]:
    """Entries such as `degree=1,2,3` as {"degree": [1, 2, 3]}, the keys as typed."""
    grid: dict[str, list[Any]] = {}
    places: dict[str, str] = {}
    for entry in entries:
        key, equals, text = entry.partition("=")
        key = key.strip()
        if not equals or not key or not text.strip():
            raise _error(f"the grid takes KEY=VALUE,VALUE,... such as degree=1,2,3, not '{entry}'")
        place = path_of(key)
        if place in places:
            same = "" if places[place] == key else f" (as '{places[place]}')"
            raise _error(f"the grid names '{key}' twice{same}")
        places[place] = key
        grid[key] = _values(entry, text)
    return grid


def _values(entry: str, text: str) -> list[Any]:
    try:
        found = None if text.rstrip().endswith(",") else load_value(f"[{text}]", "the grid")
    except ConfigError:
        found = None
    if not isinstance(found, list) or None in found:
        raise _error(f"cannot read the values of the grid in '{entry}'")
    values = [_number(value) for value in found]
    for number, value in enumerate(values):
        if value in values[:number]:
            raise _error(f"the grid has the value {shown(value)} twice in '{entry}'")
    return values


def _number(value: Any) -> Any:
    """Numbers that are not written as Python would write them, such as 1e-3 and 1.50, are still text."""
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            return value
        return number if math.isfinite(number) else value
    return value


def path_of(key: str) -> str:
    """The place in the configuration that a key means; an error with a suggestion for one that means nothing."""
    if "." in key:
        return key
    name = key.replace("-", "_")
    name = ALIASES.get(name, name)
    paths = option_paths()
    known = [*paths, *PLAIN_KEYS]
    if name not in known:
        typed = [option.replace("_", "-") for option in (*known, *ALIASES)]
        raise _error(f"there is no option or key '{key}' for a grid{suggestion(key, typed)}")
    return paths.get(name, name)


def make_settings(grid: Mapping[str, Sequence[Any]], options: Mapping[str, Any]) -> tuple[Setting, ...]:
    """Every combination of the grid's values, laid over options, none of which it may set again."""
    # Options may be about more than a grid can vary, such as how the text is read.
    paths = option_paths()
    taken = {paths.get(ALIASES.get(name, name), name): name for name in options}
    for key in grid:
        if path_of(key) in taken:
            raise _error(f"the grid sets '{key}', and so does an option: give one of them")
    return tuple(
        Setting(dict(zip(grid, values, strict=True)), {**options, **_meant(grid, values)})
        for values in itertools.product(*grid.values())
    )


def _meant(grid: Mapping[str, Sequence[Any]], values: Sequence[Any]) -> dict[str, Any]:
    out = {}
    for key, value in zip(grid, values, strict=True):
        name = key if "." in key else key.replace("-", "_")
        if name == "c2":  # CRFsuite's name for 1 / (2 sigma2)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
                raise _error(f"of the grid, 'c2' must be a number, 0 or more, not {shown(value)}")
            value = 1.0 / (2.0 * value) if value else math.inf
        out[ALIASES.get(name, name)] = value
    return out
