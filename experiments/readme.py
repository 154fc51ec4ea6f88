"""What the README files of experiments have in common: tables that a run fills in, and what they were taken with.

A table stands between `<!-- NAME -->` and `<!-- end of NAME -->`. The Makefiles put this folder on PYTHONPATH.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("kcrf", "numpy", "scipy")


def table(header: Sequence[str], rows: Iterable[Sequence[str]], text_columns: int = 1) -> str:
    """Markdown; columns after the first few are numbers."""
    ruler = ["---" if number < text_columns else "---:" for number in range(len(header))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, ruler, *rows))


def fill(
    readme: Path,
    text: str,
    seed: int = 0,
    peers: Sequence[str] = (),
    name: str = "table",
    taken_with: str | None = None,
) -> None:
    """Put a table and what it was taken with (default: this machine) in its place, and show it."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, rest = readme.read_text(encoding="utf-8").split(begin)
    _, after = rest.split(end)
    text = f"{text}\n\n({taken_with or provenance(seed, peers)})"
    readme.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")
    print(text)


def provenance(seed: int, peers: Sequence[str] = ()) -> str:
    """Versions, seed and machine."""
    versions = [f"{package} {version(package)}" for package in (*PACKAGES, *peers)]
    return f"{', '.join(versions)}, Python {platform.python_version()}; seed {seed}; {machine()}"


def machine() -> str:
    """The kind of machine, without its name."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as stream:
            model = next((line.split(":")[1].strip() for line in stream if line.startswith("model name")), model)
    except OSError:
        pass
    return f"{len(os.sched_getaffinity(0))} cores of {model}, {platform.system()}"
