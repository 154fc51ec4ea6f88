"""Words that a reader of the field knows: docstrings begin plainly, and retired phrases do not return."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from imports import Source, Sources

ROOT = Path(__file__).resolve().parents[2]
PROSE = [*(ROOT / "docs").glob("*.md"), *(ROOT / "man").glob("*.md"), ROOT / "README.md", ROOT / "SECURITY.md"]

# A first line is an imperative ("Return the marginals.") or a noun phrase with its subject ("Parameters of a term.").
OPENINGS = re.compile(r"(?:What|Whether|How|Those|The same|Who|Whose|Whom|Which|That|Where|When|As|Of|Likewise|And)\b")


@pytest.fixture(scope="module")
def sources() -> Sources:
    return Sources.under(ROOT / "src", "kcrf_core", "kcrf_cli")


def docstrings(source: Source) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each docstring of a Python or Cython file."""
    text = source.text
    if source.path.suffix == ".py":
        for node in source.nodes:
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


def test_docstrings_begin_with_a_verb_or_a_noun(sources):
    wrong = [
        f"{source.path.relative_to(ROOT)}:{line}: {problem}: {text.partition(chr(10))[0]}"
        for source in sources.files
        for line, text in docstrings(source)
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
    found = []
    for phrase in (line for line in lines if line and not line.startswith("#")):
        # A first letter is found much faster than a boundary, for which each letter is tried.
        starts = [match.start() for match in re.finditer(phrase.removeprefix(r"\b"), text)]
        matches = filter(None, (re.compile(phrase).match(text, start) for start in starts))
        found += [(text.count("\n", 0, match.start()) + 1, match[0]) for match in matches]
    return found


def test_retired_phrases_do_not_return(sources):
    texts = {source.path: source.text for source in sources.files}
    texts |= {path: path.read_text(encoding="utf-8") for path in PROSE}
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {words}" for path, text in texts.items() for line, words in retired(text)
    ]
    assert not wrong, "\n".join(wrong)
    assert retired("nothing\nNobody said it") == [(2, "Nobody")]
    assert retired("by defaults, no faults") == [(1, "faults")]


def test_the_method_names_files_that_exist():
    named = re.findall(r"`([\w/]+\.pyx?)`", (ROOT / "docs" / "method.md").read_text(encoding="utf-8"))
    folders = ROOT / "src" / "kcrf_core", ROOT
    missing = [name for name in named if not any((folder / name).exists() for folder in folders)]
    assert named and missing == []


def named_code(page: str) -> list[tuple[str, str]]:
    """Return the pairs of a file and a name in it, from rows of tables and paragraphs that begin with `Code:`."""
    found, file = [], ""
    for passage in re.findall(r"^\|[^\n]*$|^Code: .*?(?=\n\n|\Z)", page, re.DOTALL | re.MULTILINE):
        for token in re.findall(r"`([^`]+)`", passage):
            if re.fullmatch(r"[\w/]+\.pyx?", token):
                file = token
            elif re.fullmatch(r"[A-Za-z_][\w.]*", token):
                found.append((file, token))
    return found


def defined_names(path: Path) -> set[str]:
    """Return functions, classes, constants and methods (as `Class.method`) that a Python or Cython file defines."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if path.suffix == ".pyx":
        return set(re.findall(r"^(?:def|cp?def [\w* ]*?|(?:cdef )?class) ?(\w+)[(:]", text, re.MULTILINE))
    names = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def test_the_page_of_the_paper_names_code_that_exists():
    page = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    named = named_code(page)
    assert page.count("\n## ") == page.count("\nCode: ") and len(named) >= 40
    core = ROOT / "src" / "kcrf_core"
    assert [(file, name) for file, name in named if name not in defined_names(core / file)] == []


def test_code_of_a_page_is_found(tmp_path):
    page = "`no.py`, `other`\n\nCode: `a/one.py`, `f` or `K.g`;\n`--size 3` of `two.pyx`, `h`.\n\n"
    page += "| x | `a/one.py`, `C` |\n"
    assert named_code(page) == [("a/one.py", "f"), ("a/one.py", "K.g"), ("two.pyx", "h"), ("a/one.py", "C")]
    (tmp_path / "one.py").write_text("C = 1\ndef f(): pass\nclass K:\n    def g(self): pass\n")
    (tmp_path / "two.pyx").write_text(
        "cdef bint h(int x) noexcept:\n    return x\ndef i(\n): pass\ncdef class J:\n    pass\n"
    )
    assert defined_names(tmp_path / "one.py") == {"C", "f", "K", "K.g"}
    assert defined_names(tmp_path / "two.pyx") == {"h", "i", "J"}
    assert defined_names(tmp_path / "renamed.py") == set()
