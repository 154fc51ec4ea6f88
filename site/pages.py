"""Gather the pages of the site in build/pages, and list their external links in build/external-links.txt.

Pages keep their places in the repository, so that links between them work on the site as they do in a checkout. The
reference has a section for each public name of `kcrf_core/__init__.pyi`, which mkdocstrings fills with docstrings. The
docstring of `KernelCRF` is complete only when kcrf is imported, and is written to a file for site/docstrings.py.
"""

from __future__ import annotations

import re
import shutil
import textwrap
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "build" / "pages"
SHOWN = (
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "sample_data/README.md", "sample_data/*.py",
    "docs/*.md", "docs/*.svg", "docs/cluster/*", "examples/*", "experiments/*/README.md",
    "experiments/*/*.png", "site/*.css", "src/kcrf_runtime/*.h",
)  # fmt: skip
# Headings of the reference; other public names come last.
GROUPS = {
    "Estimator": ["KernelCRF"],
    "Steps of the commands": [
        "read_corpus", "with_vectors", "parse_config", "fit_encoding", "train", "evaluate", "Corpus", "Config",
        "Encoding", "Model", "Report", "Evaluation", "Workers",
    ],
    "Scores": ["metrics"],
    "Errors": ["KcrfError", "ConfigError", "DataError", "FileFormatError", "NumericError", "Interrupted"],
}  # fmt: skip


def public_names() -> list[str]:
    """Return the names in `__all__` of kcrf_core that have a section of their own."""
    import kcrf_core

    return [name for name in kcrf_core.__all__ if name not in ("CRF", "__version__")]  # CRF is KernelCRF


def reference() -> str:
    """Return the page of the reference, in the syntax of mkdocstrings."""
    listed = {name for group in GROUPS.values() for name in group}
    groups = {**GROUPS, "Others": [name for name in public_names() if name not in listed]}
    lines = ["# Reference", "", "Public names of `kcrf_core`. [kcrf from Python](python.md) shows how they are used."]
    for heading, names in groups.items():
        if names:
            lines += ["", f"## {heading}"]
        for name in names:
            module = name == "metrics"
            lines += ["", f"::: kcrf_core.{'scoring.' if module else ''}{name}"]
    return "\n".join(lines) + "\n"


def with_equations(text: str) -> str:
    """Return a page whose indented blocks are equations: their lines wrap, and numbers stand at the right."""

    def block(match: re.Match) -> str:
        cells = []
        for line in textwrap.dedent(match[1]).splitlines():
            parts = re.fullmatch(r"(.*?)(?: {3,}(\(\d[-\d(), ]*|(?:Lemma|Corollary) \d+))?", line)
            assert parts is not None
            cells += [f"<code>{escape(parts[1])}</code><span>{parts[2] or ''}</span>"]
        return "\n\n" + '<div class="equations">' + "\n".join(cells) + "</div>\n"

    return re.sub(r"\n\n((?: {4,}\S.*\n)+)(?=\n)", block, text)


def main() -> None:
    from kcrf_core import KernelCRF

    shutil.rmtree(PAGES, ignore_errors=True)
    external = set()
    for pattern in SHOWN:
        for source in sorted(ROOT.glob(pattern)):
            target = PAGES / source.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            if source.suffix == ".md":
                external |= set(re.findall(r"\]\((https?://[^)\s]+)\)", source.read_text(encoding="utf-8")))
    for page in (PAGES / "docs/method.md", PAGES / "docs/tour.md"):
        page.write_text(with_equations(page.read_text(encoding="utf-8")), encoding="utf-8")
    (PAGES / "docs/reference.md").write_text(reference(), encoding="utf-8")
    (ROOT / "build/KernelCRF.txt").write_text(KernelCRF.__doc__ or "", encoding="utf-8")
    (ROOT / "build/external-links.txt").write_text("".join(f"{link}\n" for link in sorted(external)), encoding="utf-8")
    print(f"{len(external)} external links, not followed, are listed in build/external-links.txt")


if __name__ == "__main__":
    main()
