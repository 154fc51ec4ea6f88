"""The list of bugs that `make planted-bugs` plants is true of the sources, and leaves no package and no command out."""

from __future__ import annotations

import pytest

from kcrf_cli.main import main
from planted_bugs import BUGS, ROOT

SOURCES = ROOT / "src"


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.path)
def test_bugs_can_be_planted(bug):
    assert (SOURCES / bug.path).read_text(encoding="utf-8").count(bug.old) == 1 and bug.new != bug.old
    assert all((ROOT / "tests" / name.partition("::")[0]).exists() for name in bug.tests.split())


def test_every_package_and_every_command_has_one():
    planted = {bug.path for bug in BUGS}
    packages = [path.parent.relative_to(SOURCES).as_posix() for path in SOURCES.glob("kcrf_*/*/__init__.py")]
    assert not [name for name in packages if not any(path.startswith(f"{name}/") for path in planted)]
    modules = {name: name.replace("-", "_") + "_" * (name == "import") for name in main.commands}
    assert not [name for name, module in modules.items() if f"kcrf_cli/commands/{module}.py" not in planted]
    library = {path.relative_to(SOURCES).as_posix() for path in SOURCES.glob("kcrf_runtime/*.c")}
    assert library - planted == {"kcrf_runtime/tag.c"}  # the program around the library
    assert sum(path.endswith(".pyx") for path in planted) >= 4
