"""Grids of settings such as `degree=1,2,3`: every combination of them, as typed and as options."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..config import dump_yaml, load_value, option_paths, resolve_c2
from ..errors import ConfigError, suggestion

# Names of options that stand for others.
ALIASES = {"c2": "sigma2"}

# Options and sections that are keys of the configuration themselves.
PLAIN_KEYS = (
    *("order", "window", "min_count", "unobserved", "label_sets", "soft_labels", "weight", "columns", "features"),
    *("terms", "training"),
)


@dataclass(frozen=True)
class Setting:
    """One point of a grid."""

    typed: dict[str, Any]  # keys and values as given
    options: dict[str, Any]  # their meaning, for `with_options`

    @property
    def name(self) -> str:
        return " ".join(f"{key}={shown(value)}" for key, value in self.typed.items()) or "all"


def shown(value: Any) -> str:
    """Return a value as one would type it."""
    if isinstance(value, bool) or value is None:
        return dump_yaml(value).split("\n")[0]
    if isinstance(value, (list, dict)):
        return dump_yaml(value, default_flow_style=True, width=math.inf).strip()
    return str(value)


def _error(message: str) -> ConfigError:
    return ConfigError(message, settings=["grid"])


def parse_grid(entries: Sequence[str]) -> dict[str, list[Any]]:
    """Read entries such as `degree=1,2,3` as {"degree": [1, 2, 3]}, the keys as typed."""
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
    values = []
    for value in found:
        # Numbers that are not written as Python would write them, such as 1e-3 and 1.50, are still text.
        with contextlib.suppress(ValueError):
            value = number if isinstance(value, str) and math.isfinite(number := float(value)) else value
        values.append(value)
    for number, value in enumerate(values):
        if value in values[:number]:
            raise _error(f"the grid has the value {shown(value)} twice in '{entry}'")
    return values


def path_of(key: str) -> str:
    """Return the place of a key in the configuration; an unknown key is an error with a suggestion."""
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
    """Return every combination of the grid's values, together with options, none of which it may set again."""
    # Options may be about more than a grid can vary, such as the layout of files.
    paths = option_paths()
    taken = {paths.get(ALIASES.get(name, name), name): name for name in options}
    for key in grid:
        if path_of(key) in taken:
            raise _error(f"the grid sets '{key}', and so does an option: give one of them")
    names = {key: key if "." in key else key.replace("-", "_") for key in grid}
    out = []
    for values in itertools.product(*grid.values()):
        typed = dict(zip(grid, values, strict=True))
        # `with_options` knows c2, but not as another name of sigma2.
        meant = {name if name == "c2" else ALIASES.get(name, name): typed[key] for key, name in names.items()}
        out.append(Setting(typed, {**options, **resolve_c2(meant)}))
    return tuple(out)
