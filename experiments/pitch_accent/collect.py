"""The table of README.md and figure.png, from build/TASK-METHOD.json: `collect.py README.md TASK ...`.

Tasks that are not named keep what the table says of them.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path

from readme import fill, table as markdown

METHODS = {"pri": "Pri", "1": "degree 1", "2": "degree 2", "3": "degree 3"}
TITLES = {
    "accent": "sample data (synthetic pitch accents)",
    "swbd": "Switchboard, from text alone",
    "ocr": "OCR words, a letter and its neighbours",
    "joint": "OCR words, five letters as one",
    "letters": "OCR words, one letter",
}
HEADER = ("", "accuracy %", "above Pri", "whole sequences %", "certified gap", "seconds")


def load(task: str) -> dict[str, dict]:
    found = {method: json.loads(Path(f"build/{task}-{method}.json").read_text()) for method in METHODS}
    assert len({entry["sequences"] for entry in found.values()}) == 1
    return found


def figures(results: dict) -> dict:
    (entry,) = results["settings"]
    return entry


def above(results: dict, reference: dict) -> tuple[float, float]:
    """Mean difference over the same folds, in points, and its standard error."""
    pairs = zip(figures(results)["folds"], figures(reference)["folds"], strict=True)
    differences = [100 * (one["accuracy"] - other["accuracy"]) for one, other in pairs]
    return statistics.fmean(differences), statistics.stdev(differences) / len(differences) ** 0.5


def best_search(task: str) -> dict:
    """Pri with the sigma2 that suits these folds best, in the form of a run with one setting."""
    results = json.loads(Path(f"build/{task}-search.json").read_text())
    return {**results, "settings": [results["settings"][results["best"]]]}


def table(task: str, found: dict[str, dict]) -> str:
    any_, best = found["pri"], best_search(task)
    title = (
        f"**{TITLES[task]}**: {any_['sequences']} sequences, {any_['positions']:,} positions, "
        f"sigma2 {any_['options']['sigma2']:g}"
    )
    names = METHODS | {"best": f"Pri, best sigma2 ({figures(best)['setting']['sigma2']:g})"}
    rows = []
    for method, name in names.items():
        results = {**found, "best": best}[method]
        entry = figures(results)
        difference, error = above(results, found["pri"])
        rows.append(
            [
                name,
                _spread(entry["accuracy"]),
                "" if method == "pri" else f"{difference:+.2f} ± {error:.2f}",
                _spread(entry["sequence_accuracy"]),
                f"{max(fold['training']['certified_gap'] for fold in entry['folds']):.1e}",
                f"{sum(fold['seconds'] for fold in entry['folds']):.0f}",
            ]
        )
    return f"{title}\n\n{markdown(HEADER, rows)}"


def _spread(measure: dict) -> str:
    return f"{100 * measure['mean']:.2f} ± {100 * measure['deviation']:.2f}"


def figure(path: str, tasks: dict[str, dict[str, dict]]) -> None:
    from matplotlib.figure import Figure

    shown = Figure(figsize=(2.6 * len(tasks), 3.4), layout="constrained")
    axes = shown.subplots(1, len(tasks), squeeze=False)[0]
    for axis, (task, found) in zip(axes, tasks.items(), strict=True):
        spreads = [figures(found[method])["accuracy"] for method in METHODS]
        means, deviations = ([100 * spread[key] for spread in spreads] for key in ("mean", "deviation"))
        axis.errorbar(range(len(METHODS)), means, yerr=deviations, fmt="o", capsize=3)
        axis.set_xticks(range(len(METHODS)), ["Pri", "1", "2", "3"])
        axis.set_xlim(-0.5, len(METHODS) - 0.5)
        axis.set_title(TITLES[task].replace(", ", ",\n").replace(" (", "\n("), fontsize=9)
        axis.set_xlabel("degree")
        axis.grid(True, axis="y", alpha=0.3)
    axes[0].set_ylabel("accuracy, %")
    shown.savefig(path, dpi=110)


def main(readme: str, *tasks: str) -> None:
    found = {task: load(task) for task in tasks}
    for task, results in found.items():
        fill(Path(readme), table(task, results), results["pri"]["seed"], name=task)
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        print("no figure: matplotlib is not installed (pip install '.[plot]')")
        return
    figure("figure.png", found)


if __name__ == "__main__":
    main(*sys.argv[1:])
