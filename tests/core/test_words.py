"""Words that a reader of the field knows: docstrings begin plainly, and retired phrases do not return."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".pyx", ".pxd"))
PROSE = [*(ROOT / "docs").glob("*.md"), *(ROOT / "man").glob("*.md"), ROOT / "README.md", ROOT / "SECURITY.md"]

# A first line is an imperative ("Return the marginals.") or a noun phrase with its subject ("Parameters of a term.").
OPENINGS = re.compile(r"(?:What|Whether|How|Those|The same|Who|Whose|Whom|Which|That|Where|When|As|Of|Likewise|And)\b")


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each docstring of a Python or Cython file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found = ast.get_docstring(node)
                if found is not None:
                    yield getattr(node, "lineno", 1), found
    else:
        for match in re.finditer(r'(?:\A|^([^\n]*:)\n)\s*"""(.*?)"""', text, re.DOTALL | re.MULTILINE):
            if "extern" not in (match[1] or ""):  # C code stands in such quotes, too
                yield text.count("\n", 0, match.start(2)) + 1, match[2].strip()


def plain(text: str) -> str | None:
    """Return what is wrong with a docstring, or nothing."""
    first, _, rest = text.partition("\n")
    if OPENINGS.match(first):
        return "begins with a riddle"
    if not first.endswith("."):
        return "does not end its first line with a full stop"
    if rest and not rest.startswith("\n"):
        return "needs a blank line after its first line"
    return None


def test_docstrings_begin_with_a_verb_or_a_noun():
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {problem}: {text.partition(chr(10))[0]}"
        for path in SOURCES
        for line, text in docstrings(path)
        if (problem := plain(text)) is not None
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Return the marginals [N, Y].", None),
        ("What a label costs.", "begins with a riddle"),
        ("Return the marginals", "does not end its first line with a full stop"),
        ("Return the marginals.\nMore.", "needs a blank line after its first line"),
    ],
)
def test_docstrings_are_checked(text, problem):
    assert plain(text) == problem


def retired(text: str) -> list[tuple[int, str]]:
    """Return the line and the words of each retired phrase in a text."""
    lines = (ROOT / "tests" / "retired_phrases.txt").read_text(encoding="utf-8").splitlines()
    phrases = re.compile("|".join(line for line in lines if line and not line.startswith("#")))
    return [(text.count("\n", 0, match.start()) + 1, match[0]) for match in phrases.finditer(text)]


def test_retired_phrases_do_not_return():
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {words}"
        for path in (*SOURCES, *PROSE)
        for line, words in retired(path.read_text(encoding="utf-8"))
    ]
    assert not wrong, "\n".join(wrong)
    assert retired("nothing\nNobody said it") == [(2, "Nobody")]


def test_the_method_names_files_that_exist():
    named = re.findall(r"`([\w/]+\.pyx?)`", (ROOT / "docs" / "method.md").read_text(encoding="utf-8"))
    assert named and [name for name in named if not (ROOT / "src" / "kcrf_core" / name).exists()] == []
