"""Things of one kind by name (kernels, solvers, formats, schemes), and plug-ins that add to them with `register`.

A thing is loaded when it is first looked up, so that a list of names costs no import of NumPy. Plug-ins are loaded
where a user names them. A file has the name and the digest of a plug-in that it needs, and loads nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, Generic, TypeVar

from ..errors import ConfigError, FileFormatError, KcrfError, suggestion

Thing = TypeVar("Thing")

_NAME = re.compile(r"[a-zA-Z0-9][\w.+-]*")  # it stands on command lines, in YAML and in headers of files
ENTRY_POINTS = "kcrf.plugins"  # group of entry points of packages
ANOTHER = "a plug-in can add one"  # behind a list of choices
PLUGINS: dict[str, Plugin] = {}  # that are loaded, by name
_registries: list[Registry[Any]] = []
_refusal = partial(ConfigError, settings=["plugin"])


class NotRegistered(FileFormatError, ValueError):
    """A file names something that is not registered here."""


class Registry(Mapping[str, Thing], Generic[Thing]):
    """Things by name, in the order in which choices are listed.

    `homes` says where those of a package are, as `module:attribute`. They cannot be replaced or removed.

    >>> from kcrf_core.system import Registry
    >>> animals = Registry("animal")
    >>> animals.register("cat", "meow")
    >>> list(animals), "dog" in animals
    (['cat'], False)
    >>> animals["cut"]
    Traceback (most recent call last):
    kcrf_core.errors.ConfigError: unknown animal 'cut' (did you mean 'cat'?)
    """

    def __init__(self, what: str, package: str = "", homes: Mapping[str, str] | None = None):
        self.what = what
        self._package, self._homes = package, dict(homes or {})
        self._loaded: dict[str, Thing] = {}
        self._registered: dict[str, Thing] = {}
        self._packages: dict[str, str] = {}  # of the modules that registered things
        _registries.append(self)

    def register(self, name: str, thing: Thing) -> None:
        """Add a thing under a name that nothing has yet."""
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ConfigError(f"{name!r} cannot be the name of a {self.what}: use letters, digits and hyphens")
        if name in self:
            raise ConfigError(f"there is a {self.what} '{name}' already")
        own = getattr(thing, "type", getattr(thing, "name", name))  # which files have
        if own != name:
            raise ConfigError(f"the {self.what} '{name}' is called '{own}' in its class: use one name for both")
        self._registered[name] = thing
        self._packages[name] = _package(sys._getframe(1).f_globals.get("__name__", ""))

    def unregister(self, name: str) -> None:
        """Remove what `register` added."""
        if name not in self._registered:
            raise ConfigError(f"no {self.what} '{name}' was registered")
        del self._registered[name], self._packages[name]

    def registered_by(self, package: str) -> list[str]:
        """List what modules of a package have registered."""
        return [name for name, own in self._packages.items() if own == package]

    def origin(self, name: str) -> dict[str, Any]:
        """Return the entry `plugin` of a file that names a thing of a plug-in; no entry for other things."""
        found = [one for one in PLUGINS.values() if _package(one.module) == self._packages.get(name)]
        return {"plugin": {"name": found[0].name, "digest": found[0].digest}} if found else {}

    def __getitem__(self, name: str) -> Thing:
        if name not in self:
            hint = suggestion(str(name), self) or f" (there are {', '.join(self)})"
            raise ConfigError(f"unknown {self.what} {name!r}{hint}")
        if name in self._registered:
            return self._registered[name]
        if name not in self._loaded:
            module, _, attribute = self._homes[name].partition(":")
            self._loaded[name] = getattr(import_module(f"{self._package}.{module}"), attribute)
        return self._loaded[name]

    def stored(self, name: Any, plugin: Any = None) -> Thing:
        """Return the thing that a file names, with its entry `plugin`; nothing is loaded or imported for it."""
        if plugin is not None:
            sound = isinstance(plugin, dict) and plugin.keys() == {"name", "digest"} and name not in self._homes
            if not sound or not all(isinstance(own, str) and _NAME.fullmatch(own) for own in plugin.values()):
                raise ValueError("not a plug-in")
        if isinstance(name, str) and name not in self:
            which = "the plug-in that has it" if plugin is None else f"its plug-in, '{plugin['name']}'"
            message = f"the {self.what} '{name}' is not registered here: load {which}"
            raise NotRegistered(message, settings=["plugin"])
        here = None if plugin is None else self.origin(name).get("plugin")
        if here is not None and here["digest"] != plugin["digest"]:
            message = f"the plug-in '{here['name']}' is not as it was when the {self.what} '{name}' was stored"
            warnings.warn(message, UserWarning, stacklevel=2)
        return self[name]

    def get(self, name: str, default: Any = None) -> Any:
        # That of Mapping waits for a KeyError.
        try:
            return self[name]
        except ConfigError:
            return default

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._homes or name in self._registered)

    def __iter__(self) -> Iterator[str]:
        return iter([*self._homes, *self._registered])

    def __len__(self) -> int:
        return len(self._homes) + len(self._registered)


def _package(module: str) -> str:
    return module.partition(".")[0]


@dataclass(frozen=True)
class Plugin:
    """A plug-in that is loaded. Where it is unpickled it is loaded, too: on a worker, before its tasks."""

    name: str  # of the file, the entry point or the module
    module: str
    path: str  # of the file
    digest: str  # SHA-256 of the file
    text: bytes | None  # of a file that is no installed module

    def __reduce__(self) -> tuple[Any, ...]:
        return load_plugin, (self.name, None) if self.text is None else (self.path, self.text)

    def unload(self) -> None:
        """Remove what it has registered."""
        for registry in _registries:
            for name in registry.registered_by(_package(self.module)):
                registry.unregister(name)
        if self.text is not None:
            sys.modules.pop(self.module, None)
        PLUGINS.pop(self.name, None)


def load_plugin(plugin: str | os.PathLike[str], text: bytes | None = None) -> Plugin:
    """Load a plug-in that registers kernels, solvers or the like: a file, an entry point or a module.

    The name of a file ends in .py or has a folder; `text` is its content, if it is not to be read. Entry points are
    those of the group kcrf.plugins. What is loaded already is not loaded again, unless the file has changed.

    >>> from pathlib import Path
    >>> from kcrf_core import load_plugin
    >>> lines = ["from kcrf_core.objective.solvers import SOLVERS", "SOLVERS.register('mine', lambda *given: None)"]
    >>> _ = Path("mine.py").write_text("\\n".join(lines))
    >>> plugin = load_plugin("mine.py")  # now `solver` may be "mine"
    >>> plugin.unload()
    """
    given = os.fspath(plugin)
    is_file = text is not None or given.endswith(".py") or os.path.dirname(given) != ""
    found = _found_file(given, text) if is_file else _found_module(given)
    before = PLUGINS.get(found.name)
    if before is not None:
        if before.digest == found.digest or not is_file:
            return before
        if text is None and before.path != found.path:
            raise _refusal(f"{given}: another plug-in of this name is loaded, {before.path}: rename one of them")
        before.unload()
    try:
        if found.text is None:
            import_module(found.module)
        else:
            module = sys.modules[found.module] = ModuleType(found.module)
            module.__file__ = found.path
            exec(compile(found.text, found.path, "exec", dont_inherit=True), vars(module))
        if not any(registry.registered_by(_package(found.module)) for registry in _registries):
            raise ConfigError('it registers nothing: a plug-in has lines such as KERNELS.register("name", Class)')
    except (Exception, SystemExit) as error:
        found.unload()
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == found.path]
        reason = str(error) if isinstance(error, KcrfError) else f"{type(error).__name__}: {error}"
        raise _refusal(f"{':'.join([given, *map(str, lines[-1:])])}: {reason}") from None
    PLUGINS[found.name] = found
    return found


def _found_file(given: str, text: bytes | None) -> Plugin:
    name, path = os.path.basename(given), os.path.abspath(given)
    if not _NAME.fullmatch(name):
        raise _refusal(f"{given}: the name of a plug-in has letters, digits and hyphens: rename the file")
    text = _content(path) if text is None else text
    module = f"kcrf_plugin_{name.removesuffix('.py').replace('.', '_')}"
    return Plugin(name, module, path, hashlib.sha256(text).hexdigest(), text)


def _found_module(name: str) -> Plugin:
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    known = {entry.name: entry.module for entry in entry_points(group=ENTRY_POINTS)}
    module = known.get(name, name)
    try:
        spec = find_spec(module)
    except Exception as error:
        raise _refusal(f"{name}: {type(error).__name__}: {error}") from None
    if spec is None:
        raise _refusal(f"no plug-in '{name}' is installed ({', '.join(known) or 'none'} is); a file ends in .py")
    path = spec.origin if spec.has_location and spec.origin else ""
    return Plugin(name, module, path, hashlib.sha256(_content(path) if path else b"").hexdigest(), None)


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError as error:
        raise _refusal(f"{path}: {error.strerror}") from None
