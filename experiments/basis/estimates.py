"""The estimated gain outside the pivots beside the gain itself, the second table of README.md: `estimates.py FOLDER`.

The gain is P with so many pivots, less P with every distinct input as a pivot (`--map full`), both certified to 0.0001
with the same kernel and sigma2; the bound is that of `--certify exact`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from readme import fill, table as markdown

HERE = Path(__file__).resolve().parent
SAMPLES = HERE.parents[1] / "sample_data"
HEADER = ("data", "kernel", "pivots", "P", "estimate", "gain", "estimate / gain", "bound")
RBF, POLY = ("rbf", "--kernel", "rbf"), ("poly-2", "--kernel", "poly", "--degree", "2")
# Name, file, its first lines that are used, kernel and sigma2, numbers of pivots.
TASKS: list[tuple[str, Path | str, int, tuple[str, ...], float, tuple[int, ...]]] = [
    ("digits", SAMPLES / "digits.conll", 10_000, RBF, 3.0, (40, 160, 640)),
    ("pitch accents", SAMPLES / "pitch_accent.conll", 3_000, RBF, 1.0, (50, 200, 800)),
    ("addresses", SAMPLES / "addresses.conll", 10_000, RBF, 10.0, (30, 120, 480)),
    ("handwriting", "ocr/all.conll", 3_000, RBF, 10.0, (100, 400, 1600)),
    ("activities", "batteryless_adl/all.conll", 4_000, RBF, 1.0, (30, 120, 480)),
    ("chunks", "conll2000/train.conll", 3_000, POLY, 1.0, (100, 400, 1600)),
    ("prosody", "helsinki_prosody/dev.2class.conll", 3_000, POLY, 0.3, (100, 400, 1600)),
]


def training(*arguments: str | Path | float) -> dict[str, Any]:
    command = [sys.executable, "-m", "kcrf_cli", "train", *map(str, arguments), "--json", "-q", "--tolerance", "1e-4"]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, metavar="FOLDER")
    found, rows = parser.parse_args(), []
    with tempfile.TemporaryDirectory() as folder:
        part, model = Path(folder) / "part.conll", Path(folder) / "model.npz"
        for name, path, lines, (kernel, *chosen), sigma2, sizes in TASKS:
            source = found.data / path
            if not source.exists():
                print(f"{name}: skipped, there is no {source}", file=sys.stderr)
                continue
            text = source.read_text("utf-8").splitlines(keepends=True)[:lines]
            while len(text) == lines and text.pop().strip():  # the last sequence, if it is cut off
                pass
            part.write_text("".join(text), "utf-8")
            common = (part, "--plain", "--decode", "viterbi", "--sigma2", sigma2, *chosen, "-o", model)
            least = training(*common, "--map", "full")["objective"]
            for size in sizes:
                options = (*common, "--map", "reduced", "--size", size)
                done, exact = training(*options), training(*options, "--certify", "exact")
                value, estimate = done["objective"], done["outside_estimate"]
                gain, figures = value - least, (value, estimate, value - least)
                ratio, bound = f"{estimate / gain:.2f}", f"{exact['outside_bound']:.4g}"
                rows.append((name, kernel, f"{size:,}", *(f"{one:.4g}" for one in figures), ratio, bound))
                print(*rows[-1], file=sys.stderr, flush=True)
    fill(HERE / "README.md", markdown(HEADER, rows, 2), name="estimates")


if __name__ == "__main__":
    main()
