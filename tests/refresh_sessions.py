"""Run the console sessions of pages again, and write what commands print now where it differs from the page.

    python tests/refresh_sessions.py README.md docs/tutorial.md ...

A page runs from top to bottom in a fresh folder with `sample_data`, as in `tests/cli/test_docs.py`. Output that agrees
by the rule of `console.differences` stays as it is. Read the changes before they are committed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from console import differences, steps, without_progress

ROOT = Path(__file__).resolve().parents[1]
NOT_RUN = re.compile(r"make (demo|test)|\. ")  # the installation in the README


def refresh(page: Path) -> list[str]:
    """Return the commands whose output was replaced."""
    text, changed, here = page.read_text(encoding="utf-8"), [], 0
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "sample_data").symlink_to(ROOT / "sample_data")
        for kind, what, shown in steps(page):
            if kind == "file":
                (Path(folder) / what).write_text(shown, encoding="utf-8")
                continue
            if NOT_RUN.match(what):
                continue
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", f"exec 2>&1; {what}"],
                cwd=folder,
                env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
                capture_output=True,
                text=True,
            )
            here, printed = text.index(shown, here) if shown else here, without_progress(done.stdout)
            if differences(shown, printed):
                if not shown:
                    raise SystemExit(f"{page}: {what} printed nothing and does now:\n{printed}")
                text = text[:here] + printed + text[here + len(shown) :]
                here += len(printed)
                changed.append(what)
            elif shown:
                here += len(shown)
    page.write_text(text, encoding="utf-8")
    return changed


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for command in refresh(Path(name)):
            print(f"{name}: {command}")
