"""Plot and table of what measure.py wrote: plot.py RESULTS PLOT [README NAME [PLOT OF HEADER WITH L2 ALONE]].

The smallest P so far of both programs against seconds from the start of the program, and the lower bound that kcrf
certified, where it is above half of its P.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import NullFormatter

sys.path.append(str(Path(__file__).parent.parent))
import readme

NAMES = {
    "kcrf-l1": "kcrf", "kcrf-l2": "kcrf", "wapiti-l1": "Wapiti, l-bfgs", "wapiti-rprop": "Wapiti, rprop",
    "wapiti-l2": "Wapiti, l-bfgs",
}  # fmt: skip
TITLES = {"l1": "L1, rho1 0.5, rho2 0.0001", "l2": "L2, rho2 1"}
COLOURS = {"kcrf": "C0", "Wapiti, l-bfgs": "C1", "Wapiti, rprop": "C2"}
MODELS = ("header", "segmentation")


def draw(
    found: dict[str, dict[str, Any]],
    path: Path,
    models: Sequence[str] = MODELS,
    penalties: Sequence[str] = tuple(TITLES),
) -> None:
    models = [model for model in models if any(run["model"] == model for run in found.values())]
    size = (4.5 * len(penalties), 3.4 * len(models))
    figure, axes = plt.subplots(len(models), len(penalties), figsize=size, squeeze=False)
    for row, model in enumerate(models):
        for column, penalty in enumerate(penalties):
            runs = [run for run in found.values() if (run["model"], run["penalty"]) == (model, penalty)]
            axis = axes[row][column]
            axis.set_title(f"{model}: {TITLES[penalty]}", fontsize=10)
            for run in runs:
                best, name = float("inf"), NAMES[run["run"]]
                points = [(at, best := min(best, value)) for at, value in run["points"]]
                mark = "." if len(points) < 20 else ""
                axis.plot(*zip(*points, strict=True), marker=mark, label=name, color=COLOURS[name])
                bound = run.get("lower_bound") or 0.0
                if bound > 0.5 * best:
                    axis.axhline(bound, color="grey", linestyle=":", label="lower bound, certified")
            axis.set_xlim(left=0)
            axis.set_yscale("log")
            axis.yaxis.set_minor_formatter(NullFormatter())
            axis.grid(alpha=0.3, which="both")
            axis.legend(fontsize=8)
            axis.set_xlabel("seconds, loading included", fontsize=8)
            axis.set_ylabel("P", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def table(found: dict[str, dict[str, Any]]) -> str:
    header = ("model", "penalty", "program", "stopped", "seconds", "iterations or passes", "last P", "P of its file",
              "accuracy", "F1 of fields", "peak memory, MB", "model file, MB")  # fmt: skip
    rows = []
    for run in sorted(found.values(), key=lambda run: (run["model"], run["penalty"], run["run"])):
        stored = run.get("stored_objective")
        rows.append(
            (
                run["model"],
                run["penalty"].upper(),
                NAMES[run["run"]],
                "by the limit" if run["interrupted"] else "by itself",
                f"{run['seconds']:,.0f}",
                str(len(run["points"])),
                f"{run['points'][-1][1]:,.1f}" if run["points"] else "",
                "" if stored is None else f"{stored:,.1f}",
                f"{100 * run['accuracy']:.2f} %",
                f"{100 * run['f1']:.2f}",
                f"{run['memory'] / 1e6:,.0f}",
                f"{run['bytes'] / 1e6:,.1f}",
            )
        )
    return readme.table(header, rows, 4)


def main() -> None:
    results, path = Path(sys.argv[1]), Path(sys.argv[2])
    found = {one.stem: json.loads(one.read_text()) for one in sorted(results.glob("*-*.json"))}
    if not found:
        sys.exit(f"{results}: no results")
    draw(found, path)
    text = table(found)
    if len(sys.argv) <= 3:
        print(text)
    else:
        first = next(iter(found.values()))
        corpus = json.loads((results / "corpus.json").read_text())
        sizes = "; ".join(
            f"{model}: {own['train']['documents']} and {own['test']['documents']} documents, "
            f"{own['train']['positions']:,} and {own['test']['positions']:,} positions, {own['train']['labels']} labels"
            for model, own in corpus.items()
        )
        named = (
            f"![P against seconds]({path.name})\n\n{text}\n\n{first['threads']} threads. {sizes}; training and test."
        )
        origin = readme.origins((run["run"], run["taken_with"]) for run in found.values())
        readme.fill(Path(sys.argv[3]), named, name=sys.argv[4], taken_with=origin)
    if len(sys.argv) > 5:
        draw(found, Path(sys.argv[5]), MODELS[:1], ("l2",))


if __name__ == "__main__":
    main()
