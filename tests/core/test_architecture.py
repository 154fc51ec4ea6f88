"""The house keeps its shape: which room may import from which, what rooms show of themselves, and one place per choice.

Each check names the file and the line of what breaks a rule. Rules are those of docs/architecture.md.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest

from imports import Import, Source, Sources, cycles
from kcrf_cli.main import main

ROOT = Path(__file__).resolve().parents[2]
CORE, COMMANDS = "kcrf_core", "kcrf_cli"

# Each room imports from rooms before it. The root's few modules come first.
ROOMS = (
    *(
        "runtime",
        "system",
        "files",
        "corpora",
        "scoring",
        "kernels",
        "maps",
        "chains",
        "objective",
        "device",
        "objective.solvers",
        "cluster",
    ),
    *("config", "encoding", "features", "model", "exchange", "training", "selection", "estimator"),
    "pycrfsuite",
)
FOUNDATION = ("_version", "_lazy", "errors")
MOST_IN_THE_ROOT = 5  # with __init__

# Floors of the command layer: what stands on one may import from those before it.
FLOORS = [{"options"}, {"render"}, {"report"}, {"io"}, {"commands"}, {"main"}, {"__main__"}]

# Inner modules that other rooms use under their own name: `chain.marginals`, `certificates.estimate`.
NAMESPACES = {"chains.chain", "objective.certificates", "scoring.metrics"}

FOREIGN_TO_THE_CORE = (COMMANDS, "click", "tqdm")

# Choices of which a literal may hold no two words outside the file of their registry.
REGISTRIES = ("KERNELS", "SOLVERS", "SCHEMES", "FORMATS", "CLIQUES")
# Choices that may be listed, all of them or all but one, in one file only.
LISTS = (
    *("MAPS", "METHODS", "COUNTING_TRANSFORMS", "NUMBER_TRANSFORMS"),
    *("FEATURES", "PRECISIONS", "SCALES"),
)


@pytest.fixture(scope="module")
def sources() -> Sources:
    return Sources.under(ROOT / "src", CORE, COMMANDS)


@pytest.fixture(scope="module")
def tests() -> Sources:
    return Sources.under(ROOT, "tests")


def second(module: str) -> str:
    """The room of a module of the core, or the floor of one of the command layer; empty for the package itself."""
    parts = module.split(".")
    inner = ".".join(parts[1:3])
    return inner if inner in ROOMS else ".".join(parts[1:2])


def package_of(module: str) -> str:
    return module.split(".")[0]


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def level(module: str) -> int:
    """How late a module comes; what it imports must not come later. The front door, `__init__`, is the last."""
    name = second(module)
    if package_of(module) == CORE:
        return 0 if name in FOUNDATION else 1 + (ROOMS.index(name) if name in ROOMS else len(ROOMS))
    floor = [number for number, names in enumerate(FLOORS) if name in names]
    return 100 + (floor[0] if name else -1)


def private_definitions(source: Source) -> set[str]:
    """Private names that a file gives to modules, classes and objects."""
    found = {name for name in source.defined if is_private(name)}
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and is_private(node.name):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and is_private(node.attr) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and is_private(node.target.id):
            found.add(node.target.id)
    return found


def private_uses(source: Source) -> Iterator[tuple[str, int]]:
    """Private names that a file asks others for, by `other._name` or by `setattr(other, "_name", ...)`."""
    own = private_definitions(source)
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
            yield node.attr, node.lineno
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("setattr", "delattr"):
            words = [each.value for each in node.args[:2] if isinstance(each, ast.Constant)]
            last = [str(word).rpartition(".")[2] for word in words]
            yield from ((name, node.lineno) for name in last if is_private(name))


def test_every_module_stands_in_a_room(sources):
    known = {*FOUNDATION, *ROOMS, "", *set().union(*FLOORS)}
    assert {second(module) for module in sources.modules} == known
    assert all((ROOT / "src" / CORE / room.replace(".", "/") / "__init__.py").exists() for room in ROOMS)


def test_few_modules_stand_in_the_root():
    here = sorted(path.name for path in (ROOT / "src" / CORE).iterdir() if path.suffix in (".py", ".pyx"))
    assert len(here) <= MOST_IN_THE_ROOT, here


def test_arrows_point_to_earlier_rooms(sources):
    wrong = [
        f"{sources.where(found.module, found.line)}: {found.module} imports {target}, which comes later"
        for found, target in sources.imports()
        if level(target) > level(found.module)
    ]
    assert not wrong, "\n".join(wrong)


def test_no_modules_import_each_other(sources):
    arrows, lines = defaultdict(set), {}
    for found, target in sources.imports():
        arrows[found.module].add(target)
        lines.setdefault((found.module, target), sources.where(found.module, found.line))
    wrong = [
        "\n  ".join(["a cycle:", *(f"{lines[a, b]}: {a} imports {b}" for a in group for b in group if (a, b) in lines)])
        for group in cycles(arrows)
    ]
    assert not wrong, "\n".join(wrong)


def test_rooms_are_entered_by_their_door(sources):
    """Another room's names are imported from its `__init__`; namespaces are listed above, each for a use.

    Cython modules have doors of their own: what a room's `.pxd` files declare.
    """
    wrong, used = [], set()
    for found, target in sources.imports():
        room = f"{CORE}.{second(target)}"
        if package_of(target) != CORE or second(target) not in ROOMS or second(found.module) == second(target):
            continue
        if target == f"{found.package}.{found.name}" and target.removeprefix(f"{CORE}.") in NAMESPACES:
            used.add(target.removeprefix(f"{CORE}."))
            continue
        if package_of(found.module) == CORE and not second(found.module) and found.package == CORE:
            continue  # the front door's table of names
        is_cython = sources.modules[found.module].path.suffix != ".py"
        if is_cython and re.search(rf"\b{found.name}\b", sources.declared(found.package)):
            continue
        offered = sources.modules[room].offered.keys() | sources.modules[room].defined
        if found.package != room or found.name not in offered or is_private(found.name):
            what = f"{found.package}.{found.name}".removesuffix(".")
            wrong.append(f"{sources.where(found.module, found.line)}: {what} is not offered by {room}")
    assert not wrong, "\n".join(wrong)
    assert used == NAMESPACES, f"nobody uses {sorted(NAMESPACES - used)}"


def test_rooms_offer_what_their_modules_define(sources):
    """A name in a table leads to a module that defines it, and it is not private."""
    wrong = []
    for source in sources.files:
        for name, inner in source.offered.items():
            homes = [each for each in sources.files if each.module == f"{source.module}.{inner}"]
            known = {one for home in homes for one in home.offered.keys() | home.defined}
            if is_private(name) or (name not in known and f"{source.module}.{inner}.{name}" not in sources.modules):
                wrong.append(f"{sources.where(source.module, 1)}: {name} of {inner}")
    assert not wrong, "\n".join(wrong)


def test_private_names_stay_in_their_rooms(sources):
    homes = defaultdict(set)
    for source in sources.files:
        for name in private_definitions(source):
            homes[name].add((package_of(source.module), second(source.module)))
    wrong = [
        f"{sources.where(source.module, line)}: {name} is private to {sorted(second for _, second in homes[name])}"
        for source in sources.files
        for name, line in private_uses(source)
        if homes[name] and (package_of(source.module), second(source.module)) not in homes[name]
    ]
    assert not wrong, "\n".join(wrong)


def test_the_core_knows_no_command_line(sources):
    """It imports neither the command layer nor what belongs to a terminal, prints nothing and never exits."""
    wrong = []
    for source in sources.files:
        if package_of(source.module) != CORE:
            continue
        for found in source.imports:
            if package_of(found.package) in FOREIGN_TO_THE_CORE:
                wrong.append(f"{sources.where(source.module, found.line)}: imports {found.package}")
        for node in source.nodes:
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("print", "exit", "sys.exit"):
                wrong.append(f"{sources.where(source.module, node.lineno)}: calls {ast.unparse(node.func)}")
    assert not wrong, "\n".join(wrong)


def test_kept_properties_have_no_lock(sources):
    """That of functools has one for all objects of a class before Python 3.12; commands have one thread."""
    locked = [
        file.path.name for file in sources.files if re.search(r"from functools import .*cached_property", file.text)
    ]
    assert locked == ["options.py", "_lazy.py"]


def test_tests_reach_for_no_private_names(sources, tests):
    private = set().union(*map(private_definitions, sources.files))
    wrong = []
    for source in tests.files:
        if not re.search(r"(?<!\w)_(?!_)\w", source.text):
            continue  # most files name nothing private, and need not be parsed
        place = source.path.relative_to(ROOT)
        for found in source.imports:
            words = f"{found.package}.{found.name}".split(".")
            if words[0] in (CORE, COMMANDS) and any(map(is_private, words)):
                wrong.append(f"{place}:{found.line}: {'.'.join(words)}")
        wrong += [f"{place}:{line}: {name}" for name, line in private_uses(source) if name in private]
    assert not wrong, "\n".join(wrong)


def test_no_two_public_classes_share_a_name(sources):
    """Neither classes of any two modules, nor names with a capital that rooms offer, aliases of types among them."""
    places = defaultdict(set)
    for source in sources.files:
        for node in source.tree.body:
            if isinstance(node, ast.ClassDef) and not is_private(node.name):
                places[node.name].add(sources.where(source.module, node.lineno))
        if source.module.count(".") == 1:
            for name, inner in source.offered.items():
                is_class = name in class_names(sources.modules[f"{source.module}.{inner}"])
                if re.match(r"[A-Z]\w*[a-z]", name) and not is_class:
                    places[name].add(sources.where(source.module, 1))
    wrong = [f"{name}: {', '.join(sorted(where))}" for name, where in sorted(places.items()) if len(where) > 1]
    assert not wrong, "\n".join(wrong)


def class_names(source: Source) -> set[str]:
    return {node.name for node in source.tree.body if isinstance(node, ast.ClassDef)}


def choices(sources: Sources, name: str) -> list[str]:
    """The words of a choice, from the first module of the core that defines it."""
    defining = [module for module, source in sources.modules.items() if name in source.defined]
    assert defining, f"no module defines {name}"
    return list(getattr(import_module(min(defining, key=level)), name))


def literals(source: Source) -> Iterator[tuple[set[str], int]]:
    """Words of each tuple, list, set and dictionary that is written out; tables of lazy names are of modules."""
    tables = [node for node in source.nodes if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "lazy"]
    skipped = {each for table in tables for each in ast.walk(table)}
    for node in source.nodes:
        if node not in skipped and isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
            items = node.keys if isinstance(node, ast.Dict) else node.elts
            words = {each.value for each in items if isinstance(each, ast.Constant) and isinstance(each.value, str)}
            yield words, node.lineno


@pytest.fixture(scope="module")
def every_literal(sources) -> list[tuple[str, str, set[str]]]:
    """File, place and words of each literal of the project."""
    return [
        (str(source.path), sources.where(source.module, line), words)
        for source in sources.files
        for words, line in literals(source)
    ]


def spelled(every_literal: list[tuple[str, str, set[str]]], words: Iterable[str], enough: int) -> dict[str, list[str]]:
    """Files that have a literal with that many of the words, with the places."""
    found = defaultdict(list)
    for path, place, literal in every_literal:
        if len(literal.intersection(words)) >= enough:
            found[path].append(f"{place}: {sorted(literal & set(words))}")
    return found


@pytest.mark.parametrize("name", [*REGISTRIES, *LISTS])
def test_choices_are_listed_once(sources, every_literal, name):
    words = choices(sources, name)
    assert len(words) >= 2 and all(isinstance(word, str) for word in words)
    if name in REGISTRIES:  # words that mean something elsewhere, too, are no sign of a list
        words = [word for word in words if word not in ("auto", "none")]
        found = spelled(every_literal, words, 2)
    else:
        found = spelled(every_literal, words, max(2, len(words) - 1))
    assert len(found) <= 1, "\n".join(place for places in found.values() for place in places)


def test_the_graph_is_read_as_python_reads_it(tmp_path):
    """Imports of all kinds are seen, and names that a package offers lead to the modules that define them."""
    files = {
        "house/__init__.py": "",
        "house/low/__init__.py": (
            "from typing import TYPE_CHECKING\nfrom .._lazy import lazy\n"
            "if TYPE_CHECKING:\n    from .inner import Name\nelse:\n    __getattr__, _, _ = lazy(__name__)\n"
        ),
        "house/low/inner.py": "Name = 1\n",
        "house/low/_fast.pyx": (
            "from libc.math cimport exp\nfrom ._part cimport (\n    one, two,\n)\nfrom ..high import late\n"
        ),
        "house/low/_part.pxd": "",
        "house/high/__init__.py": "",
        "house/high/late.py": (
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..low import (\n        Name,\n    )\n"
            "def later():\n    from . import other\n    import house.low.inner\n"
        ),
        "house/high/other.py": "from .late import later\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = Sources.under(tmp_path, "house")
    seen = {(each.module, target, each.line) for each, target in found.imports()}
    assert {(a.removeprefix("house."), b.removeprefix("house."), line) for a, b, line in seen} == {
        ("low._fast", "low._part", 2),
        ("low._fast", "high.late", 5),
        ("high.late", "low.inner", 4),
        ("high.late", "high.other", 7),
        ("high.late", "low.inner", 8),
        ("high.other", "high.late", 1),
    }
    arrows = defaultdict(set)
    for each, target in found.imports():
        arrows[each.module].add(target)
    assert cycles(arrows) == [["house.high.late", "house.high.other"]]
    assert found.target(Import("house.high.late", "os", "path", 1)) is None


def test_the_core_names_settings_and_not_flags(sources):
    """Whoever calls it from Python has no flags; the command layer adds them to what an error is about."""
    wrong = []
    for source in (source for source in sources.files if package_of(source.module) == CORE):
        alone = {id(node.value) for node in source.nodes if isinstance(node, ast.Expr)}  # docstrings
        for node in source.nodes:
            said = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone
            if said and re.search(r"--[a-z]", node.value):
                wrong.append(f"{sources.where(source.module, node.lineno)}: {node.value}")
    assert not wrong


def test_every_setting_that_an_error_is_about_is_an_option(sources):
    options = {
        name.removeprefix("--").replace("-", "_")
        for command in main.commands.values()
        for parameter in command.get_params(click.Context(command, **main.context_settings))
        for name in (parameter.name, *parameter.secondary_opts)  # such as --no-header
    }
    named = {
        name.value
        for source in sources.files
        for node in source.nodes
        if isinstance(node, ast.keyword) and node.arg == "settings" and isinstance(node.value, ast.List)
        for name in node.value.elts
        if isinstance(name, ast.Constant)
    }
    assert len(named) > 8 and named <= options
