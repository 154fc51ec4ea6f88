"""What the README files of experiments have in common: tables that a run fills in, and what they were taken with.

A table stands between `<!-- NAME -->` and `<!-- end of NAME -->`, and the line in parentheses below it names the date,
the version, the commit and the processor. `common.mk` puts this folder on PYTHONPATH.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from importlib.metadata import packages_distributions, version
from pathlib import Path

PACKAGES = ("numpy", "scipy")
BLOCK = re.compile(r"(?s)<!-- (?!end of )(?P<name>\S+) -->\n\n(?P<body>.*?)\n\n<!-- end of (?P=name) -->")


def table(header: Sequence[str], rows: Iterable[Sequence[str]], text_columns: int = 1) -> str:
    """Markdown; columns after the first few are numbers."""
    ruler = ["---" if number < text_columns else "---:" for number in range(len(header))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, ruler, *rows))


def blocks(readme: Path) -> dict[str, str]:
    """Return what stands between the markers of a page, by name."""
    return {found["name"]: found["body"] for found in BLOCK.finditer(readme.read_text(encoding="utf-8"))}


def put(readme: Path, name: str, body: str) -> None:
    """Replace what stands between the markers of a name."""
    text, found = readme.read_text(encoding="utf-8"), blocks(readme).get(name)
    if found is None:
        raise SystemExit(f"{readme}: there is no <!-- {name} --> ... <!-- end of {name} -->")
    old, new = (f"<!-- {name} -->\n\n{each}\n\n<!-- end of {name} -->" for each in (found, body))
    readme.write_text(text.replace(old, new), encoding="utf-8")


def fill(
    readme: Path,
    text: str,
    seed: int = 0,
    peers: Sequence[str] = (),
    name: str = "table",
    taken_with: str | None = None,
) -> None:
    """Put a table and what it was taken with (default: this machine) in its place, and show it."""
    text = f"{text}\n\n({taken_with or provenance(seed, peers)})"
    put(readme, name, text)
    print(text)


def provenance(seed: int, peers: Sequence[str] = ()) -> str:
    """Date, version, commit and machine, then packages and seed."""
    installed = {one for names in packages_distributions().values() for one in names}
    packages = ", ".join(f"{package} {version(package)}" for package in (*PACKAGES, *peers) if package in installed)
    return f"{code()}; {machine()}; Python {platform.python_version()}, {packages}; seed {seed}"


def origins(parts: Iterable[tuple[str, str]]) -> str:
    """Say what parts of a table, pairs of a name and its origin, were taken with; name them where origins differ."""
    groups: dict[str, dict[str, None]] = {}
    for name, origin in parts:
        groups.setdefault(origin, {})[name] = None
    return ". ".join(f"{', '.join(own)}: {of}" if len(groups) > 1 else of for of, own in groups.items())


def code() -> str:
    """Today's date, and version and commit of kcrf; KCRF_COMMIT names the commit where there is no git."""
    from kcrf_core import __version__

    today = datetime.now(timezone.utc).date()
    return f"{today}, kcrf {__version__}, commit {os.environ.get('KCRF_COMMIT') or commit()}"


def commit() -> str:
    """Return the commit of this checkout, and whether its code has changed since."""
    root = Path(__file__).parents[1]

    def git(*arguments: str) -> str:
        command = ["git", "-C", root, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "--short=8", "HEAD") + " with changes" * bool(git("status", "--porcelain", "--", "src"))
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def machine() -> str:
    """The kind of machine, without its name."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as stream:
            model = next((line.split(":")[1].strip() for line in stream if line.startswith("model name")), model)
    except OSError:
        pass
    cores = len(os.sched_getaffinity(0))
    every = os.cpu_count() or cores
    return f"{cores} {f'of {every} ' if every > cores else ''}cores of {model}, {platform.system()}"
