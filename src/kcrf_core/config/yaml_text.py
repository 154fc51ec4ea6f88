"""YAML text as plain dictionaries whose keys remember their lines, and configurations as YAML that people read.

Words and numbers are read as people write them, not as YAML 1.1 does, to which 1:30 is 90, 010 is 8 and `no` is false:
a number is one that would be written back in the same way, and all else but true, false, null and ~ stays text. So a
column may be called 1e5, 1.50, 010 or no; kinds of numbers accept the first three, as they do on a command line.

Aliases are refused: they can say in a line what no memory holds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import yaml

from ..errors import ConfigError
from ..system import described

MOST_CHARACTERS = 1 << 20
DEEPEST = 50


class LocatedMapping(dict):
    """A mapping that remembers the line of each key."""

    lines: dict[str, int]


class _Dumper(yaml.SafeDumper):
    """A safe dumper that knows located mappings, and writes a value out wherever it stands."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(LocatedMapping, _Dumper.represent_dict)


class _Loader(yaml.SafeLoader):
    """A safe loader: a tag that asks for anything but plain data is an error."""

    # None of YAML 1.1; ours stand below. PyYAML has it as an attribute of the class, its stubs of objects.
    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}  # type: ignore[misc]
    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose a node, unless it is nested too deeply: the time of PyYAML grows with the square of the depth."""
        line = self.peek_event().start_mark.line + 1
        if self.depth > DEEPEST:
            raise ConfigError(f"line {line}: more than {DEEPEST} levels of lists and mappings")
        if self.check_event(yaml.AliasEvent):
            raise ConfigError(f"line {line}: an alias (*name), which is not supported: write its value out")
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


_NULL, _TRUTH, _WHOLE, _DECIMAL = (f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float"))
_Loader.add_implicit_resolver(_NULL, re.compile(r"(~|null|Null|NULL|)\Z"), ["~", "n", "N", ""])
_Loader.add_implicit_resolver(_TRUTH, re.compile(r"(true|True|TRUE|false|False|FALSE)\Z"), list("tTfF"))
_Loader.add_implicit_resolver(_WHOLE, re.compile(r"(0|-?[1-9][0-9]*)\Z"), list("-0123456789"))
_Loader.add_implicit_resolver(_DECIMAL, re.compile(r"-?(0|[1-9][0-9]*)\.[0-9]+\Z"), list("-0123456789"))


def _construct_decimal(loader: _Loader, node: yaml.ScalarNode) -> float | str:
    text = loader.construct_scalar(node)
    return number if repr(number := float(text)) == text else text


def _construct_whole(loader: _Loader, node: yaml.ScalarNode) -> int:
    return int(loader.construct_scalar(node))


def _construct_mapping(loader: _Loader, node: yaml.MappingNode) -> LocatedMapping:
    mapping = LocatedMapping()
    mapping.lines = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        line = key_node.start_mark.line + 1
        if not isinstance(key, str):
            raise ConfigError(f"line {line}: a key must be a word, not {described(key)}")
        if key in mapping:
            raise ConfigError(f"line {line}: key '{key}' is given twice")
        mapping[key] = loader.construct_object(value_node, deep=True)
        mapping.lines[key] = line
    return mapping


_Loader.add_constructor(_WHOLE, _construct_whole)
_Loader.add_constructor(_DECIMAL, _construct_decimal)
_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _construct_mapping)


def load_yaml(text: str, source: str) -> dict[str, Any]:
    """Read a configuration dictionary from YAML text."""
    loaded = load_value(text, source)
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise ConfigError(f"{source}: expected keys such as 'features:' and 'terms:', found {described(loaded)}")
    return loaded


def load_value(text: str, source: str) -> Any:
    """Read any value from YAML text; None if it is empty."""
    if len(text) > MOST_CHARACTERS:
        raise ConfigError(f"{source}: {len(text):,} characters are too many for a configuration; is it another file?")
    try:
        loader = _Loader(text)
        try:
            return loader.get_single_data()
        finally:
            loader.dispose()
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}".replace(f"{source}: line ", f"{source}:")) from None
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(f"{source}{line}: not valid YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError) as error:
        # The last three are what PyYAML makes of tags that do not fit their values, such as !!int "".
        reason = str(error).splitlines()[0] if isinstance(error, (yaml.YAMLError, ValueError)) else repr(error)
        raise ConfigError(f"{source}: not valid YAML: {reason}") from None


def dump_yaml(value: Any, **options: Any) -> str:
    """Return a value as YAML text, with options of PyYAML."""
    return yaml.dump(value, None, _Dumper, **options)


def configuration_text(raw: Mapping[str, Any], comments: Sequence[str] = ()) -> str:
    """Return a raw configuration as YAML text below lines of comments."""
    text = dump_yaml(raw, default_flow_style=None, sort_keys=False, allow_unicode=True, width=120)
    return "".join(f"# {comment}".rstrip() + "\n" for comment in comments) + text
