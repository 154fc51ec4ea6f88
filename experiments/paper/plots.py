"""The table of README.md and three plots, from the results in build: `plots.py`."""

from __future__ import annotations

import json
import math
import statistics
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, ScalarFormatter
from PIL import Image
from readme import fill, table

HERE = Path(__file__).parent
BUILD = HERE / "build"
COLOURS = {"auto": "#7a3b9d", "lbfgs": "#2f6db5", "newton": "#c8551b", "block-jacobi": "#2b8a3e", "subspace": "#8a6d1b"}
CHOICES = {"random": ("o", "#2f6db5"), "greedy": ("s", "#2b8a3e"), "gradient": ("v", "#c8551b")}
DEGREES = {"explicit": "linear,\nexplicit features", "1": "1", "2": "2", "3": "3"}


class Passes(NamedTuple):
    """P, its lower bound and the work so far, after each pass of a run; the best values up to there."""

    numbers: list[int]
    values: list[float]
    bounds: list[float]
    work: list[float]


def read_log(path: Path) -> tuple[Passes, dict[str, Any]]:
    """Return the passes of `kcrf train --log`, and its last event, which has the certificate."""
    passes, value, bound = Passes([], [], [], []), math.inf, -math.inf
    events = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for event in (each for each in events if each["event"] == "pass"):
        value = min(value, event["objective"])
        bound = max(bound, -math.inf if event["lower_bound"] is None else event["lower_bound"])
        for series, number in zip(passes, (event["pass"], value, bound, event["work"]), strict=True):
            series.append(number)
    return passes, events[-1]


def save(figure: Figure, name: str) -> None:
    """Write a plot with a palette of 64 colours, which makes a small file."""
    written = BytesIO()
    figure.savefig(written, dpi=100)
    Image.open(written).convert("RGB").quantize(64).save(HERE / name, optimize=True)


def plot_solvers(runs: dict[str, tuple[Passes, dict[str, Any]]]) -> None:
    figure = Figure(figsize=(9.5, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    least = min(end["objective"] for _, end in runs.values())
    for name, (passes, _) in runs.items():
        left.plot(passes.numbers, passes.values, color=COLOURS[name], lw=1.4, label=name)
        left.plot(passes.numbers, passes.bounds, color=COLOURS[name], lw=1.2, ls="--")
        pairs = zip(passes.values, passes.bounds, strict=True)
        gaps = [value / bound - 1 if bound > 0 else math.nan for value, bound in pairs]
        right.plot(passes.work, gaps, color=COLOURS[name], lw=1.4, label=name)
    left.axhline(least, color="0.6", lw=0.6)
    left.set(xlabel="passes over the data", ylabel="P (solid) and its lower bound (dashed)", xscale="log")
    left.set_ylim(0, 3 * least)
    right.set(xlabel="work, in passes: passes and Hessian products", ylabel="(P - bound) / bound", yscale="log")
    right.set(xscale="log")
    for axes, ticks in ((left, (1, 2, 5, 10, 20, 50)), (right, (5, 10, 20, 50, 100))):
        axes.set_xticks(ticks)
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(alpha=0.3)
    right.legend(frameon=False)
    save(figure, "solvers.png")


def plot_pivots(found: dict[str, dict[str, Any]]) -> None:
    figure = Figure(figsize=(5.6, 3.6), layout="constrained")
    axes = figure.subplots()
    sizes: list[int] = []
    for name, results in found.items():
        marker, colour = CHOICES[name]
        sizes = [entry["setting"]["size"] for entry in results["settings"]]
        errors = [100 * (1 - entry["accuracy"]["mean"]) for entry in results["settings"]]
        axes.plot(sizes, errors, marker=marker, color=colour, lw=1.4, label=name)
    axes.set(xscale="log", yscale="log", xlabel="pivots", ylabel="error, % (five folds)")
    axes.set_xticks(sizes)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(ScalarFormatter())
        axis.set_minor_formatter(NullFormatter())
    axes.set_yticks([2, 3, 5, 10, 20, 30, 60])
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, title="--select")
    save(figure, "pivots.png")


def plot_degrees(found: dict[str, dict[str, Any]]) -> None:
    figure = Figure(figsize=(5.6, 3.6), layout="constrained")
    axes = figure.subplots()
    folds = [accuracies(results) for results in found.values()]
    places = range(len(found))
    for number, fold in enumerate(zip(*folds, strict=True)):
        axes.plot(places, fold, color="0.7", lw=0.8, label="each of five folds" if number == 0 else None)
    means = [statistics.fmean(of) for of in folds]
    axes.plot(places, means, color="#c8551b", marker="o", lw=1.8, label="mean")
    axes.set_xticks(places, [DEGREES[name] for name in found])
    axes.set(xlabel="degree of the polynomial kernel", ylabel="accuracy, %")
    axes.grid(alpha=0.3, axis="y")
    axes.legend(frameon=False, loc="upper left")
    save(figure, "degrees.png")


def accuracies(results: dict[str, Any]) -> list[float]:
    (entry,) = results["settings"]
    return [100 * fold["accuracy"] for fold in entry["folds"]]


def solver_table(runs: dict[str, tuple[Passes, dict[str, Any]]]) -> str:
    keys = ("objective", "lower_bound", "certified_gap", "gradient_norm", "passes", "hessian_products", "work")
    forms = (".4f", ".4f", ".1e", ".2g", "d", "d", ".0f")
    header = ("solver", "P", "at least", "gap", "norm of the gradient", "passes", "Hessian products", "work")
    rows = []
    for name, (_, end) in runs.items():
        rows.append((name, *(f"{end[key]:{form}}" for key, form in zip(keys, forms, strict=True))))
    return table(header, rows)


def pivot_table(found: dict[str, dict[str, Any]]) -> str:
    first = next(iter(found.values()))
    header = ("error %, by pivots", *(f"{entry['setting']['size']}" for entry in first["settings"]))
    rows = [
        (name, *(f"{100 * (1 - entry['accuracy']['mean']):.2f}" for entry in results["settings"]))
        for name, results in found.items()
    ]
    return table(header, rows)


def degree_table(found: dict[str, dict[str, Any]]) -> str:
    rows, explicit = [], accuracies(found["explicit"])
    for name, results in found.items():
        own = accuracies(results)
        above = [one - other for one, other in zip(own, explicit, strict=True)]
        error = statistics.stdev(above) / math.sqrt(len(above))
        difference = "" if name == "explicit" else f"{statistics.fmean(above):+.2f} ± {error:.2f}"
        mean = f"{statistics.fmean(own):.2f} ± {statistics.stdev(own):.2f}"
        rows.append((DEGREES[name].replace("\n", " "), mean, difference))
    return table(("degree", "accuracy %", "above explicit features"), rows)


def main() -> None:
    runs = {name: read_log(BUILD / f"{name}.jsonl") for name in COLOURS}
    pivots = {name: json.loads((BUILD / f"pivots-{name}.json").read_text(encoding="utf-8")) for name in CHOICES}
    degrees = {name: json.loads((BUILD / f"degree-{name}.json").read_text(encoding="utf-8")) for name in DEGREES}
    for name, text in (
        ("solvers", solver_table(runs)),
        ("pivots", pivot_table(pivots)),
        ("degrees", degree_table(degrees)),
    ):
        fill(HERE / "README.md", text, name=name)
    plot_solvers(runs)
    plot_pivots(pivots)
    plot_degrees(degrees)


if __name__ == "__main__":
    main()
