"""Things of one kind by name: kernels, solvers, formats, schemes.

A thing is loaded when it is first looked up, so that a list of names costs no import of NumPy. Plug-ins add things at
run time with `register`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar

from ..errors import ConfigError, FileFormatError, suggestion

Thing = TypeVar("Thing")

_NAME = re.compile(r"[a-zA-Z0-9][\w.+-]*")  # it stands on command lines, in YAML and in headers of files


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

    def register(self, name: str, thing: Thing) -> None:
        """Add a thing under a name that nothing has yet."""
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ConfigError(f"{name!r} cannot be the name of a {self.what}: use letters, digits and hyphens")
        if name in self:
            raise ConfigError(f"there is a {self.what} '{name}' already")
        self._registered[name] = thing

    def unregister(self, name: str) -> None:
        """Remove what `register` added."""
        if name not in self._registered:
            raise ConfigError(f"no {self.what} '{name}' was registered")
        del self._registered[name]

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

    def stored(self, name: Any) -> Thing:
        """Return the thing that a file names; nothing outside of this package is imported for it."""
        if isinstance(name, str) and name not in self:
            raise NotRegistered(
                f"the {self.what} '{name}' is not registered here (import the module that registers it first)"
            )
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
