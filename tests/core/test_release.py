"""Files that a release has to agree on: version, changelog, citation, and the names of extras."""

from __future__ import annotations

import ast
import re
import runpy
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from kcrf_core import __version__

ROOT = Path(__file__).parents[2]
PAGES = [path for name in ("README.md", "docs/*.md", "man/*.md", "experiments/*/*.md") for path in ROOT.glob(name)]


def test_the_changelog_begins_with_this_version():
    versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert versions[0] == __version__ and versions[-1] == "0.1.0"


def test_the_citation_names_this_version():
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == __version__


def test_messages_name_packages_and_pages_name_extras():
    """Messages and manual pages are read outside of a checkout, where `.[plot]` is nothing."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extras = project.split("[project.optional-dependencies]\n")[1].split("\n[")[0]
    known = dict(re.findall(r'^(\w+) = \["([\w-]+)', extras, re.MULTILINE))
    text = {path: path.read_text(encoding="utf-8") for path in [*PAGES, *ROOT.glob("src/**/*.py")]}
    commands = [(path, name) for path in text for name in re.findall(r"pip install '?([\w.\[\]-]+)", text[path])]
    assert len(commands) > 10
    for path, name in commands:
        outside = path.parent.name == "man" or "src" in path.relative_to(ROOT).parts
        assert name in known.values() if outside else name in (".", "-e", *(f".[{extra}]" for extra in known)), path


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("target", ["demo", "test"])
def test_make_says_that_it_compiles_and_how_long(target):
    done = subprocess.run(["make", "-nB", target], cwd=ROOT, capture_output=True, text=True, check=True)
    before, _, _ = done.stdout.partition("pip install --quiet --no-compile --editable .")
    assert re.search("^echo 'Compiling .* about a minute", before, re.MULTILINE)


def test_workflows_test_every_python_that_the_metadata_names():
    jobs = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8"))["jobs"]
    named = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert jobs["test"]["strategy"]["matrix"]["python"] == named
    assert set(jobs["windows"]["strategy"]["matrix"]["python"]) <= set(named)


@pytest.fixture(scope="module")
def figures():
    return SimpleNamespace(**runpy.run_path(str(ROOT / "experiments/figures.py")))


def test_pages_have_the_figures_of_the_experiments(figures):
    assert figures.write(ROOT, check=True) == []
    assert list(figures.older(ROOT, "0.0.0")) == []  # every table states a version


def copied_pages(folder: Path) -> Path:
    """Copy the pages that have figures."""
    for path in [ROOT / "README.md", ROOT / "docs/figures.md", *ROOT.glob("experiments/*/README.md")]:
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    return folder


def test_figures_of_another_machine_reach_the_pages(figures, tmp_path, capsys):
    here, there = (copied_pages(tmp_path / name) for name in ("here", "there"))
    page = there / "experiments/ocr/README.md"
    assert figures.cell(there, "ocr", "small|linear|1", "order") == "1"
    measured = re.sub(
        r"(\| small \| linear \| 1 \|  \|) [\d.]+", r"\1 77.77", page.read_text(encoding="utf-8"), count=1
    )
    page.write_text(measured, encoding="utf-8")
    (page.parent / "pivots.png").write_bytes(b"plot")
    figures.take(here, there)
    assert capsys.readouterr().out == "experiments/ocr/README.md: table\n"
    assert (here / "experiments/ocr/pivots.png").read_bytes() == b"plot"
    assert figures.write(here, check=True) == ["docs/figures.md: accuracy", "README.md"]
    figures.write(here)
    assert "OCR letter error 77.8 % with a linear CRF" in (here / "README.md").read_text(encoding="utf-8")
    assert "letter error 77.77 %" in (here / "docs/figures.md").read_text(encoding="utf-8")


def test_figures_that_are_older_than_a_release_are_listed(figures, tmp_path):
    page = tmp_path / "experiments/ocr/README.md"
    page.parent.mkdir(parents=True)
    origins = {"old": "(2025-01-01, kcrf 0.9.1, commit 1234abcd)", "new": "(kcrf 0.10.0)", "none": "| 1 |"}
    text = (f"<!-- {name} -->\n\n| a |\n\n{said}\n\n<!-- end of {name} -->\n" for name, said in origins.items())
    page.write_text("".join(text), encoding="utf-8")
    lines = [f"experiments/ocr/README.md: {line}" for line in ("old: kcrf 0.9.1", "none: no version stated")]
    assert list(figures.older(tmp_path, "0.10.0")) == lines
    assert figures.last_release("## 0.10.0 (unreleased)\n\n## 0.9.1 (2025-01-01)\n") == "0.9.1"


def test_rates_of_processors_stand_side_by_side(figures, tmp_path):
    page = tmp_path / "experiments/speed/README.md"
    page.parent.mkdir(parents=True)
    programs = "| program | processor | F1 | tokens/s | test part |\n| --- | --- | ---: | ---: | ---: |\n"
    programs += "| a | x86_64 | 90 | 3 | 2 |\n| a | aarch64 | 90 | 2 | 1 |\n| b | aarch64 | 80 | 5 | 4 |"
    clock = "| what | processor | by the clock |\n| --- | --- | --- |\n| a, first line | x86_64 | 1 ms |"
    page.write_text(f"<!-- taggers -->\n\n{programs}\n\n{clock}\n\n(kcrf 1.0.0)\n\n<!-- end of taggers -->\n")
    head = "| tokens/s | x86_64 | x86_64, start included | aarch64 | aarch64, start included |"
    rows = ["| --- | ---: | ---: | ---: | ---: |", "| a | 3 | 2 | 2 | 1 |", "| b |  |  | 5 | 4 |"]
    assert figures.taggers(tmp_path) == "\n".join([head, *rows]) + f"\n\n{clock}"


@pytest.mark.slow
def test_experiments_import_names_that_there_are():
    """They are run before a release, seldom enough for names to change in between."""
    found = [
        (path, node.module, name.name)
        for path in ROOT.glob("experiments/*/*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("kcrf_core")
        for name in node.names
    ]
    there = [hasattr(import_module(module), name) or find_spec(f"{module}.{name}") for _, module, name in found]
    assert [each for each, is_there in zip(found, there, strict=True) if not is_there] == []


@pytest.mark.parametrize("urls", ["", '[project.urls]\nSource = "https://project.example/tree/main/"\n'])
def test_no_link_of_the_package_page_leads_nowhere(urls):
    """A package index shows README.md without the files beside it."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    page = runpy.run_path(str(ROOT / "setup.py"))["package_page"](readme, urls)
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert all(link.startswith("https://project.example/tree/main/") for link in links)
    assert len(links) == (len(re.findall(r"\]\(", readme)) if urls else 0)
    entry = r"^- \[Tutorial\]\(\S+/docs/tutorial.md\):" if urls else r"^- Tutorial \(`docs/tutorial.md`\):"
    assert re.search(entry, page, re.MULTILINE)
    assert urls or re.search(r"^CONTRIBUTING.md says", page, re.MULTILINE)


LIBRARIES = ("chains/_recursions", "maps/_thin_products", "objective/_long_vectors", "system/_dense_products")


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_loops_are_plain_c_for_compilers_without_the_extensions_of_gcc(tmp_path):
    """MSVC is such a compiler: it has neither vector types nor attributes, and no arrays of variable length."""
    core = ROOT / "src/kcrf_core"
    source = "".join(f"#include <{name}.h>\n" for name in ("math", "stdint", "stdlib", "string"))
    source += "#undef __GNUC__\n#undef __clang__\n#define __forceinline inline\n#define __declspec(x)\n"
    source += "".join(f'#include "{core / name}.h"\n' for name in LIBRARIES)
    (tmp_path / "all.c").write_text(source, encoding="utf-8")
    call = ["cc", "-std=c11", "-pedantic-errors", "-Werror=vla", "-fsyntax-only", tmp_path / "all.c"]
    folders = [f"-I{header.parent}" for header in core.glob("*/*.h")]
    found = subprocess.run([*call, *folders], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


def test_the_site_has_every_page_and_every_public_name():
    pages = runpy.run_path(str(ROOT / "site/pages.py"))
    for name in pages["public_names"]():
        assert re.search(rf"^::: kcrf_core\.(scoring\.)?{name}$", pages["reference"](), re.MULTILINE)
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert all(f" docs/{path.name}\n" in navigation for path in ROOT.glob("docs/*.md"))
    assert "font: false" in navigation  # nor anything else of another host


def test_equations_of_the_site_keep_their_numbers():
    """Lines of equations wrap on the site, and their numbers are apart from them."""
    with_equations = runpy.run_path(str(ROOT / "site/pages.py"))["with_equations"]
    text = "So\n\n    P = <a, b> + c      (15)\n        + d   (21), (28)\n    f = 1\n\n- end\n  of list\n"
    cells = ("P = &lt;a, b&gt; + c", "(15)"), ("    + d", "(21), (28)"), ("f = 1", "")
    shown = "\n".join(f"<code>{formula}</code><span>{number}</span>" for formula, number in cells)
    assert with_equations(text) == f'So\n\n<div class="equations">{shown}</div>\n\n- end\n  of list\n'
    page = (ROOT / "docs/method.md").read_text(encoding="utf-8")
    numbers = re.findall(r"</code><span>(.+?)</span>", with_equations(page))
    assert numbers == ["(4), (25)-(27)", "(15)", "(21), (28)", "Lemma 9", "Corollary 10"]
    # A block within an item of a list would end the list on the site.
    assert not re.search(r"^ {2,3}\S.*\n\n {4,}", page, re.MULTILINE)


def test_options_of_the_site_are_not_broken_at_hyphens():
    on_page_content = runpy.run_path(str(ROOT / "site/hooks.py"))["on_page_content"]
    page = "<code>train --c2 1 -o a-b</code> <pre><code>--c2</code></pre> <code>2..-1</code>"
    shown = "<code>train {} 1 {} a-b</code> <pre><code>--c2</code></pre> <code>2..-1</code>"
    options = ('<span class="option">--c2</span>', '<span class="option">-o</span>')
    assert on_page_content(page, page=None) == shown.format(*options)


def test_docstrings_become_markdown(monkeypatch):
    monkeypatch.setitem(sys.modules, "griffe", SimpleNamespace(Extension=object, Object=object))
    as_markdown = runpy.run_path(str(ROOT / "site/docstrings.py"))["as_markdown"]
    assert as_markdown("Fit.\n\nsize : number\n    of pivots") == "Fit.\n\n- **size**: number of pivots"
    assert as_markdown("Add.\n\n>>> 1 + 1\n2\n\nMore.") == "Add.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore."
