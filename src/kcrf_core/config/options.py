"""Options of the command line and dotted paths, laid over a raw configuration."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from ..errors import ConfigError, suggestion
from ..system import AUTO
from .config import default_terms, option_paths, term_dict
from .reader import entry_name
from .values import lexicons
from .yaml_text import LocatedMapping, load_value


def with_options(raw: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return `raw` with options of the command line put in their places (see `option_paths`)."""
    out = _unshared(raw)
    options = resolve_c2(options)
    if "order" in options:
        _set_order(out, options["order"])
    known = option_paths()
    paths = {name: known.get(name, name) for name in options if name != "order"}
    for name in sorted(paths, key=lambda name: _depth(paths[name])):
        path = paths[name]
        value = options[name]
        if name == "ignore":  # columns are added to those of the configuration and of groups
            listed = ([own] if isinstance(own, str) else own or () for own in (out.get(name), value))
            value = list(dict.fromkeys(chain.from_iterable(listed)))
        if name == "lexicon":  # they are added to those of the configuration, too
            try:
                value = {**(out.get(path) or {}), **dict(lexicons(value))}
            except ConfigError as error:
                raise ConfigError(f"'{path}' {error}", settings=["lexicon"]) from None
        set_path(out, path, value)
    return out


def _depth(path: str) -> tuple[int, bool]:
    """Return a key that sorts a section before what stands in it.

    The type of a kernel and the scale of a feature come before the settings that belong to them.
    """
    return path.count("."), not path.endswith((".type", ".scale"))


def parse_settings(entries: Sequence[str]) -> dict[str, Any]:
    """Read entries such as `terms.pssm.map.size=3000` as {"terms.pssm.map.size": 3000}, values as in YAML.

    >>> parse_settings(["training.sigma2=0.5", "features.word.window=-1..1"])
    {'training.sigma2': 0.5, 'features.word.window': '-1..1'}
    """
    found: dict[str, Any] = {}
    for entry in entries:
        path, equals, text = entry.partition("=")
        path = path.strip()
        if not equals or not path or "" in path.split("."):
            raise ConfigError(
                f"a setting is PATH=VALUE, such as training.sigma2=10 or terms.node.kernel.degree=3, not '{entry}'",
                settings=["set"],
            )
        if path in found:
            raise ConfigError(f"'{path}' is set twice: give it one value", settings=["set"])
        found[path] = load_value(text, f"the value of '{path}'")
    return found


def _unshared(value: Any) -> Any:
    """Return a copy in which shared values are values of their own, so that one can change alone."""
    if isinstance(value, dict):
        copied = type(value)((key, _unshared(item)) for key, item in value.items())
        if isinstance(value, LocatedMapping) and isinstance(copied, LocatedMapping):
            copied.lines = dict(value.lines)
        return copied
    return [_unshared(item) for item in value] if isinstance(value, list) else value


def resolve_c2(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options in which c2 is sigma2 = 1 / (2 c2)."""
    out = dict(options)
    c2 = out.pop("c2", None)
    if c2 is not None:
        if out.get("sigma2") not in (None, AUTO):
            raise ConfigError("c2 and sigma2 set the same value: give one of them", settings=["c2", "sigma2"])
        if isinstance(c2, bool) or not isinstance(c2, (int, float)) or not 0 <= c2 < math.inf:
            raise ConfigError(f"c2 must be a number, 0 or more (0 only with a c1 above 0), not {c2!r}")
        out["sigma2"] = 1.0 / (2.0 * c2) if c2 else math.inf
    return out


def _set_order(raw: dict[str, Any], order: Any) -> None:
    """Set the order: 2 is the terms with an edge2 term among them, order 1 without."""
    if order not in (1, 2):
        raise ConfigError(f"'order' must be 1 or 2, not {order}")
    terms = raw.get("terms")
    if terms is None:
        terms = [term_dict(term) for term in default_terms()]
    if not isinstance(terms, list):
        return  # parse_config has a better message for it
    others = [entry for entry in terms if not (isinstance(entry, dict) and entry.get("type") == "edge2")]
    if order == 1:
        raw["terms"] = others
    elif len(others) == len(terms):
        raw["terms"] = [*terms, {"name": "edge2", "type": "edge2"}]


def set_path(raw: dict[str, Any], path: str, value: Any) -> None:
    """Set a dotted path such as `training.sigma2` or `terms.acoustic.kernel.gamma` in a raw configuration.

    Lists are entered by number or by the name of an entry, given or default. Another type of kernel starts
    from its own defaults, and another scale of a feature has no `group`.
    """
    keys = path.split(".")
    if keys[0] == "terms" and raw.get("terms") is None:
        raw["terms"] = [term_dict(term) for term in default_terms()]
    place: Any = raw
    depth = 0
    while depth < len(keys) - 1:
        key = keys[depth]
        if isinstance(place, list):
            place, steps = _list_entry(place, keys[0], keys[depth:-1])
            depth += steps
            continue
        if not isinstance(place, dict):
            raise ConfigError(f"'{path}': there is nothing below '{'.'.join(keys[:depth])}'")
        if isinstance(place.get(key), str) and key in ("kernel", "map"):
            place[key] = {"type": place[key]}
        if place.get(key) is None:
            place[key] = {}
        place = place[key]
        depth += 1
    if not isinstance(place, dict):
        raise ConfigError(f"'{path}' does not name a value of the configuration")
    if keys[-2:] == ["kernel", "type"] and place.get("type") != value:
        place.clear()
    if keys[0] == "features" and keys[-1] == "scale" and value != "group":
        place.pop("group", None)
    place[keys[-1]] = value
    getattr(place, "lines", {}).pop(keys[-1], None)  # the line in the file says something else


def _list_entry(entries: list[Any], section: str, keys: Sequence[str]) -> tuple[Any, int]:
    """Find the entry that the first of `keys` name, and count these: names such as word.suffix3 have dots.

    `node` is the term of that name, or the only node term.
    """
    if keys[0].isdecimal():
        if int(keys[0]) >= len(entries):
            shown = f"{section}.{keys[0]}"
            raise ConfigError(f"'{shown}': there are only {len(entries)} entries (they count from 0)")
        return entries[int(keys[0])], 1
    names = [entry_name(section, entry) for entry in entries]
    for steps in range(len(keys), 0, -1):
        name = ".".join(keys[:steps])
        if name in names:
            return entries[names.index(name)], steps
    known = [name for name in names if name is not None]
    nodes = [entry for entry in entries if isinstance(entry, dict) and entry.get("type", "node") == "node"]
    if section == "terms" and keys[0] == "node" and nodes:
        if len(nodes) == 1:
            return nodes[0], 1
        raise ConfigError(
            f"there are {len(nodes)} node terms that it could apply to, and none is called node: give the path of one, "
            f"terms.{entry_name('terms', nodes[-1])}.{'.'.join([*keys[1:], '...'])}",
            settings=["set"],
        )
    raise ConfigError(f"'{section}.{keys[0]}': no entry is called '{keys[0]}'{suggestion(keys[0], known)}")
