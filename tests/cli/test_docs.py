"""The pages in docs/ and the README: sessions run as shown, options and commands exist, links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from console import code_blocks, settled, shape, steps
from kcrf_cli.main import main

ROOT = Path(__file__).resolve().parents[2]
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [ROOT / "README.md", *DOCS]

# Pages that are linked to and come with what they are about.

OPTION = re.compile(r"(?<![\w^-])(?:--[A-Za-z][\w-]*|-[A-Za-z](?![\w-]))")
# Where one command ends and another may begin.
SEPARATOR = re.compile(r"\n|\||&|;|\$ |\$\(")


def options_of(command: click.Command) -> set[str]:
    context = click.Context(command, info_name=command.name, **main.context_settings)
    return {name for each in command.get_params(context) for name in (*each.opts, *each.secondary_opts)}


OPTIONS = {name: options_of(command) for name, command in main.commands.items()}
EVERY_OPTION = set().union(options_of(main), *OPTIONS.values())


def page_id(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def mistakes(words: str) -> list[str]:
    """What a call of `kcrf`, or a part of one, has that the program does not know; nothing for other programs."""
    first, *rest = words.split() or [""]
    if first == "kcrf" and rest and not rest[0].startswith("-"):
        first = rest[0]
        if re.fullmatch(r"[a-z][a-z-]*", first) and first not in OPTIONS:
            return [f"kcrf {first}"]
    elif first != "kcrf" and first not in OPTIONS and not first.startswith("-"):
        return []
    return [name for name in OPTION.findall(words) if name not in OPTIONS.get(first, EVERY_OPTION)]


def prose(path: Path) -> str:
    """A page without fenced blocks and comments, and without the first column of tables.

    What other programs call their options stands in first columns.
    """
    text = re.sub(r"^```.*?^```$|<!--.*?-->", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"^\|[^|\n]*\|", "|", text, flags=re.MULTILINE)


def links(path: Path) -> list[str]:
    """What a page links to within the project, without anchors."""
    found = re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8"))
    return [link.partition("#")[0] for link in found if "://" not in link and not link.startswith("#")]


def anchors(path: Path) -> set[str]:
    """Headings as GitHub and others make anchors of them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [path for path in DOCS if "$ kcrf" in path.read_text(encoding="utf-8")], ids=page_id)
def test_sessions(shell, tmp_path, page):
    """A page from top to bottom, in one directory: files are saved, commands say what the page shows."""
    for kind, what, text in steps(page):
        if kind == "file":
            (tmp_path / what).write_text(text, encoding="utf-8")
            continue
        done = shell(f"exec 2>&1; {what}")
        assert done.returncode == 0, (what, done.stdout)
        assert shape(settled(done.stdout)) == shape(settled(text)), what


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_commands_and_options_exist(page):
    blocks, text = (block for _, block in code_blocks(page)), prose(page)
    calls = [call.strip() for block in blocks for call in SEPARATOR.split(block.replace("\\\n", " "))]
    calls = [call for call in calls if call.startswith("kcrf ")] + re.findall(r"`([^`]+)`", text)
    found = [f"{wrong} in '{call}'" for call in calls for wrong in mistakes(call.partition(" # ")[0])]
    found += [name for name in OPTION.findall(re.sub(r"`[^`]+`", "", text)) if name not in EVERY_OPTION]
    assert not found


def test_mistakes_are_found():
    assert mistakes("kcrf train data.conll --kernel poly -o model.npz") == []
    assert mistakes("kcrf train data.conll --folds 3") == ["--folds"]
    assert mistakes("kcrf learn data.conll") == ["kcrf learn"]
    assert mistakes("train --sgima2 1") == ["--sgima2"]
    assert mistakes("--sgima2") == ["--sgima2"]
    assert mistakes("crf_learn -f 3 --freq") == []


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_to_files(page):
    missing = {(page.parent / link).resolve() for link in links(page) if not (page.parent / link).exists()}
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_anchors_are_headings(page):
    for link, anchor in re.findall(r"\]\(([^)\s#]*)#([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in link:
            assert anchor in anchors(page.parent / link if link else page), f"{link}#{anchor}"


def test_every_page_is_in_the_readme():
    assert {f"docs/{path.name}" for path in DOCS} <= set(links(ROOT / "README.md"))
