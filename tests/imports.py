"""The import graph of the sources, read from their text: nothing is imported to find out what imports what.

Every import counts: those within functions and under TYPE_CHECKING, and `cimport` of Cython modules. A name that a
package offers through `lazy(...)` leads to the module that defines it, and is no import of the package itself.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

# What a Cython file defines or declares at its top level: functions, classes, structs, and constants by assignment.
_CYTHON_NAME = re.compile(
    r"^(?:def|(?:cdef |cpdef )(?:inline |class |struct )*[^=\n(]*?)\s*(\w+)(?=[(:])|^(\w+) = ", re.M
)
_CYTHON_IMPORT = re.compile(r"^\s*(?:from\s+(\.*[\w.]*)\s+)?c?import\s+(\(.*?\)|[^\n]*)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Import:
    """`from package import name` in a module, or `import package` where the name is empty."""

    module: str  # that imports
    package: str  # absolute
    name: str
    line: int


@dataclass
class Source:
    """One file: a module, or the `.pyx` and `.pxd` of one."""

    path: Path
    module: str
    is_package: bool

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax of a Python file; Cython has another, and here none."""
        return ast.parse(self.text if self.path.suffix == ".py" else "", str(self.path))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes as `ast.walk` gives them, in half its time, and without those that say "load" or "store"."""
        found: list[ast.AST] = [self.tree]
        for node in found:
            for name in node._fields:
                value = getattr(node, name, None)
                if isinstance(value, list):
                    found += [each for each in value if isinstance(each, ast.AST)]
                elif isinstance(value, ast.AST) and name != "ctx":
                    found.append(value)
        return found

    @cached_property
    def imports(self) -> list[Import]:
        found = self._python_imports() if self.path.suffix == ".py" else self._cython_imports()
        return [Import(self.module, self._absolute(package), name, line) for package, name, line in found]

    def _absolute(self, package: str) -> str:
        """The full name of `..package`, seen from this module."""
        levels = len(package) - len(package.lstrip("."))
        if not levels:
            return package
        parts = self.module.split(".")
        parts = parts[: len(parts) - levels + self.is_package]
        return ".".join([*parts, *filter(None, [package.lstrip(".")])])

    def _python_imports(self) -> Iterator[tuple[str, str, int]]:
        for node in self.nodes:
            if isinstance(node, ast.ImportFrom):
                if node in self._offering:
                    continue
                package = "." * node.level + (node.module or "")
                yield from ((package, alias.name, alias.lineno) for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from ((alias.name, "", node.lineno) for alias in node.names)
            elif isinstance(node, ast.Call) and _called(node) == "import_module":
                yield from self._import_by_name(node)

    def _import_by_name(self, node: ast.Call) -> Iterator[tuple[str, str, int]]:
        """`import_module(".scoring.metrics", __name__)`; a name that is computed cannot be seen here."""
        if node.args and isinstance(node.args[0], ast.Constant):
            package, _, name = node.args[0].value.rpartition(".")
            yield (package or ".") if node.args[0].value.startswith(".") else package, name, node.lineno

    def _cython_imports(self) -> Iterator[tuple[str, str, int]]:
        for found in _CYTHON_IMPORT.finditer(self.text):
            names = [name.split(" as ")[0].strip() for name in found[2].strip("()").split("#")[0].split(",")]
            line = self.text.count("\n", 0, found.start(2)) + 1
            yield from ((found[1] or name, name if found[1] else "", line) for name in names if name)

    @cached_property
    def stub(self) -> ast.Module | None:
        """The syntax of the `.pyi` beside a file, if there is one."""
        path = self.path.with_suffix(".pyi")
        return ast.parse(path.read_text(encoding="utf-8")) if path.exists() else None

    @cached_property
    def _offering(self) -> list[ast.ImportFrom]:
        """Imports from modules of a package that uses `lazy(...)`, in its stub or under TYPE_CHECKING."""
        if not self.is_package or not any(
            isinstance(node, ast.Call) and _called(node) == "lazy" for node in self.nodes
        ):
            return []
        blocks = [self.stub] if self.stub else [node for node in self.tree.body if isinstance(node, ast.If)]
        nodes = (node for block in blocks for node in block.body)
        return [node for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 1]

    @property
    def offered(self) -> dict[str, str]:
        """Names that a package offers through `lazy(...)`, with the modules that it imports them from."""
        return {alias.name: node.module or "" for node in self._offering for alias in node.names}

    @cached_property
    def defined(self) -> set[str]:
        """Names that are bound at the top level, other than by imports."""
        if self.path.suffix != ".py":
            return {found[1] or found[2] for found in _CYTHON_NAME.finditer(self.text)}
        names = set()
        for node in self.tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names |= {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
        return names


def _called(node: ast.Call) -> str:
    """The last part of the name of a function that is called."""
    return getattr(node.func, "id", getattr(node.func, "attr", ""))


@dataclass
class Sources:
    """All files of the packages in a folder."""

    folder: Path
    files: list[Source] = field(default_factory=list)

    @classmethod
    @cache
    def under(cls, folder: Path, *packages: str) -> Sources:
        """Return the sources of packages; the same for all tests, which parse them once."""
        found = cls(folder)
        for path in sorted(each for package in packages for each in (folder / package).rglob("*.p*")):
            if path.suffix in (".py", ".pyx", ".pxd"):
                parts = path.relative_to(folder).with_suffix("").parts
                is_package = parts[-1] == "__init__"
                found.files.append(Source(path, ".".join(parts[:-1] if is_package else parts), is_package))
        return found

    @cached_property
    def modules(self) -> dict[str, Source]:
        """By full name; of a `.pyx` and its `.pxd`, the first."""
        return {source.module: source for source in reversed(self.files)}

    def declared(self, module: str) -> str:
        """What a Cython module declares for others of its kind, as text; empty where there is no `.pxd`."""
        return "".join(each.text for each in self.files if each.module == module and each.path.suffix == ".pxd")

    def where(self, module: str, line: int) -> str:
        return f"{self.modules[module].path.relative_to(self.folder.parent)}:{line}"

    def target(self, found: Import) -> str | None:
        """The module of these sources that an import leads to; None for other people's packages."""
        package = found.package
        if f"{package}.{found.name}" in self.modules:
            return f"{package}.{found.name}"
        if package not in self.modules:
            return None
        source = self.modules[package]
        inner = source.offered.get(found.name)
        if source.is_package and inner is not None:
            # A name that a package offers may itself be one that a package within it offers.
            return self.target(Import(found.module, f"{package}.{inner}", found.name, found.line))
        return package

    def imports(self) -> Iterator[tuple[Import, str]]:
        """All imports among these sources, with the module that each leads to."""
        for source in self.files:
            for found in source.imports:
                target = self.target(found)
                if target is not None and target != source.module:
                    yield found, target


def cycles(arrows: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules of which each leads to each, by Tarjan's algorithm; a module alone is none."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for after in sorted(arrows.get(node, ())):
            if after not in order:
                visit(after)
                low[node] = min(low[node], low[after])
            elif after in stack:
                low[node] = min(low[node], order[after])
        if low[node] == order[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                found.append(sorted(group))

    for node in sorted(arrows):
        if node not in order:
            visit(node)
    return found
