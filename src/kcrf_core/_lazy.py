"""Public names of a package, and modules, that are imported when they are first used, and properties computed then.

Importing a package costs nothing then, and `kcrf tag` does not wait for what only `kcrf train` needs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from os.path import exists
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:
    import functools

    class cached_property(functools.cached_property):
        """A property that is computed once, without the lock of Python before 3.12.

        That lock is one for all objects of a class. Two threads that compute two properties, each of which needs the
        other one of a further object, would wait for each other.
        """

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            return vars(instance).setdefault(self.attrname, self.func(instance))


def lazy(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package, for the names that it imports for type checkers.

    They stand in `__init__.pyi` where there is one, else below `if TYPE_CHECKING:`.
    """
    path = str(sys.modules[package].__file__)
    with open(f"{path}i" if exists(f"{path}i") else path, encoding="utf-8") as source:
        statements = f"\n{source.read()}".replace("\n    from .", "\nfrom .").split("\nfrom .")[1:]
    homes: dict[str, str] = {}  # the module of each name
    for statement in statements:
        module, _, names = statement.partition(" import ")
        if module.startswith("."):
            continue  # of another package
        listed = names[1 : names.index(")")] if names.startswith("(") else names.partition("\n")[0]
        homes |= {name.split()[0]: module for name in listed.split(",") if name.strip()}  # `name as name`

    def __getattr__(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return __getattr__, lambda: sorted(homes), sorted(homes)


class _Deferred(ModuleType):
    """Stands for a module until something of it is asked for; from then on it has all names of the module."""

    def __getattr__(self, name: str) -> Any:
        module = import_module(self.__name__)
        self.__dict__.update(vars(module))
        return getattr(module, name)


def deferred(module: str) -> Any:
    """A module of another project that is imported when something of it is first asked for.

    It is for files that declare settings, which `--help` reads, beside the arithmetic that they are for.
    """
    return _Deferred(module)
