"""results.json, the table in README.md and basis.png from runs: `collect.py build/ocr-random-250 ...`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from readme import fill, table as markdown

from kcrf_core.model import Model

HERE = Path(__file__).parent
TASKS = {"ocr": "OCR small, poly-3", "adl": "activities, rbf"}
METHODS = ("random", "greedy", "gradient")
HEADER = ("method", "pivots", "P", "gain outside / P", "test error %", "passes", "work", "seconds")


def run_figures(run: str) -> dict[str, Any]:
    scores, training = (json.loads(Path(f"{run}.{part}.json").read_text()) for part in ("scores", "training"))
    task, method, size = Path(run).name.split("-")
    model = Model.load(f"{run}.npz")
    outside = training.get("outside_bound", training.get("outside_estimate"))
    return {
        "task": task,
        "method": method,
        "enough": size == "enough",
        "pivots": len(model.terms[0].pivots),
        "objective": training["objective"],
        "certified_gap": training["certified_gap"],
        "outside": outside,
        "outside_proven": "outside_bound" in training,
        "error": 1 - scores["accuracy"],
        "sequence_error": 1 - scores["sequence_accuracy"],
        "passes": training["passes"],
        "work": training["work"],
        "seconds": training["seconds"],
    }


def table(runs: list[dict[str, Any]]) -> str:
    parts = []
    for task, title in TASKS.items():
        mine = [run for run in runs if run["task"] == task]
        if not mine:
            continue
        mine.sort(key=lambda run: (run["enough"], run["pivots"], METHODS.index(run["method"])))
        rows = [
            (
                run["method"] + (", stopped by itself" if run["enough"] else ""),
                f"{run['pivots']:,}",
                f"{run['objective']:.1f}",
                ("<= " if run["outside_proven"] else "") + f"{run['outside'] / run['objective']:.2g}",
                f"{100 * run['error']:.2f}",
                str(run["passes"]),
                f"{run['work']:.0f}",
                f"{run['seconds']:.1f}",
            )
            for run in mine
        ]
        parts.append(f"**{title}**\n\n{markdown(HEADER, rows)}")
    return "\n\n".join(parts)


def figure(runs: list[dict[str, Any]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import NullFormatter, ScalarFormatter

    tasks = [task for task in TASKS if any(run["task"] == task for run in runs)]
    figure, axes = plt.subplots(2, len(tasks), figsize=(5.2 * len(tasks), 7), squeeze=False, sharex="col")
    for column, task in enumerate(tasks):
        for method, marker in zip(METHODS, "osv", strict=True):
            mine = [run for run in runs if (run["task"], run["method"], run["enough"]) == (task, method, False)]
            mine.sort(key=lambda run: run["pivots"])
            pivots = [run["pivots"] for run in mine]
            style = {"marker": marker, "label": method, "linewidth": 2.2 if method == "gradient" else 1.2}
            axes[0, column].plot(pivots, [run["objective"] for run in mine], **style)
            axes[1, column].plot(pivots, [100 * run["error"] for run in mine], **style)
        for row, name in enumerate(("P", "test error, %")):
            axis = axes[row, column]
            axis.set_xscale("log")
            axis.set_ylabel(name)
            axis.grid(alpha=0.3)
        sizes = sorted({run["pivots"] for run in runs if run["task"] == task and run["method"] == "random"})
        axes[1, column].set_xticks(sizes)
        axes[1, column].xaxis.set_major_formatter(ScalarFormatter())
        axes[1, column].xaxis.set_minor_formatter(NullFormatter())
        axes[1, column].set_xlabel("pivots")
        axes[0, column].set_title(TASKS[task])
    axes[0, 0].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main(paths: list[str]) -> None:
    runs = [run_figures(path) for path in paths]
    (HERE / "results.json").write_text(json.dumps({"schema": 2, "runs": runs}, indent=1) + "\n")
    fill(HERE / "README.md", table(runs))
    figure(runs, HERE / "basis.png")


if __name__ == "__main__":
    main(sys.argv[1:])
