"""Files that a release has to agree on: version, changelog, citation, and the names of extras."""

from __future__ import annotations

import re
from importlib.metadata import requires
from pathlib import Path

import pytest
import yaml

from kcrf_core import __version__, errors
from kcrf_core.errors import install_extra

ROOT = Path(__file__).parents[2]
PAGES = [path for name in ("README.md", "docs/*.md", "man/*.md", "experiments/*/*.md") for path in ROOT.glob(name)]


def test_the_changelog_begins_with_this_version():
    versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert versions == [__version__, "0.1.0"]


def test_the_citation_names_this_version():
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == __version__


@pytest.mark.parametrize("released, command", [(False, "pip install '.[plot]'"), (True, "pip install 'kcrf[plot]'")])
def test_one_constant_says_where_extras_come_from(monkeypatch, released, command):
    monkeypatch.setattr(errors, "RELEASED", released)
    assert install_extra("plot") == command


def test_pages_install_extras_as_messages_do():
    known = {extra for line in requires("kcrf") or [] for extra in re.findall(r'extra == "(\w+)"', line)}
    commands = [
        (path.name, command, extra)
        for path in PAGES
        for command, extra in re.findall(r"(pip install '[^']*\[(\w+)\]')", path.read_text(encoding="utf-8"))
    ]
    assert len(commands) > 5
    for page, command, extra in commands:
        assert command == install_extra(extra) and extra in known, (page, command)
