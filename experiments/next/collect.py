"""The tables and the plot of README.md: `collect.py [FOLDER [EARLIER]]`, results of measure.py, default build.

EARLIER has results of the rule before this one.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from readme import fill, table

RANDOM, CHOSEN = "random", "entropy.position"
SHARES = (0.95, 0.99)
LIMITS = {0.95: 0.60, 0.99: 0.75}  # of the issue: tokens by choice over tokens at random
SHOWN = ("conll2000", "wnut17", "ocr", "phonemes", "ingredients")
OTHERS = {
    "Other sets, opened after these:": ("welsh", "coptic", "telugu", "thai", "logs", "languages"),
    "Sets that options were chosen on:": ("chat", "spanish"),
}
WHEN = ("before", "now")
HERE = Path(__file__).parent
TOKENS = [f"{share:.0%} {what}" for share in SHARES for what in ("random", "next", "ratio")]
HEADER = ("set", "seeds", "pool", "score", *TOKENS, "mean difference")
Curve = list[tuple[float, float]]  # log of positions labelled, and score


def curve(run: dict) -> Curve:
    return [(math.log(step["positions"]), step["score"]) for step in run["steps"]]


def reached(points: Curve, target: float) -> float:
    """Positions at which a curve reaches a score first, between two steps by a line over their logarithm."""
    before = points[0]
    for point in points:
        if point[1] >= target:
            share = 1.0 if point[1] == before[1] else (target - before[1]) / (point[1] - before[1])
            return math.exp(before[0] + max(share, 0.0) * (point[0] - before[0]))
        before = point
    return math.exp(points[-1][0])  # all data


def difference(one: Curve, other: Curve) -> float:
    """Mean difference of two curves over the logarithm of positions, as far as both go."""
    grid = np.linspace(max(one[0][0], other[0][0]), min(one[-1][0], other[-1][0]), 200)
    values = [np.interp(grid, *np.array(points).T) for points in (one, other)]
    return float((values[0] - values[1]).mean())


def with_error(values: Sequence[float]) -> tuple[float, float]:
    return float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(
        values
    ) > 1 else math.nan


def row(name: str, runs: dict, full: dict) -> tuple[list[str], dict[float, float], bool]:
    """Cells of a set, its ratios, and whether choosing is worse than random beyond its error."""
    seeds = sorted(seed for own, arm, seed in runs if (own, arm) == (name, CHOSEN) and (name, RANDOM, seed) in runs)
    pairs = [[curve(runs[name, arm, seed]) for arm in (RANDOM, CHOSEN)] for seed in seeds]
    best = full["steps"][0]["score"]
    cells, ratios = [name, str(len(seeds)), f"{full['pool']:,}", f"{100 * best:.1f}"], dict[float, float]()
    for share in SHARES:
        tokens = np.array([[reached(points, share * best) for points in pair] for pair in pairs])
        mean, error = with_error(np.log(tokens[:, 1] / tokens[:, 0]).tolist())
        ratios[share] = math.exp(mean)
        means = [f"{value:,.0f}" for value in np.exp(np.log(tokens).mean(axis=0))]
        cells += [*means, f"{ratios[share]:.2f} ± {ratios[share] * error:.2f}"]
    mean, error = with_error([100 * difference(chosen, random) for random, chosen in pairs])
    return [*cells, f"{mean:+.2f} ± {error:.2f}"], ratios, mean < -error


def plot(path: Path, runs: dict, full: dict) -> None:
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    figure = Figure(figsize=(11, 2.6), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(SHOWN)), SHOWN, strict=True):
        for arm, colour in ((RANDOM, "#c8551b"), (CHOSEN, "#2f6db5")):
            own = [np.array(curve(run)).T for (of, by, _), run in sorted(runs.items()) if (of, by) == (name, arm)]
            for seed, (tokens, scores) in enumerate(own):
                label = ("random" if arm == RANDOM else "kcrf next") if seed == 0 else None
                axes.plot(np.exp(tokens), 100 * scores, color=colour, lw=0.8, alpha=0.8, label=label)
        for share in SHARES:
            axes.axhline(100 * share * full[name]["steps"][0]["score"], color="0.6", lw=0.6, ls="--")
        axes.set(xscale="log", title=name, xlabel="positions labelled")
        axes.xaxis.set_minor_formatter(NullFormatter())
    figure.axes[0].set_ylabel("F1 or accuracy, %")
    figure.axes[0].legend(frameon=False)
    figure.savefig(path, dpi=110)


def results(folder: Path) -> tuple[dict, dict]:
    """Runs by set, arm and seed, and those of all data by set."""
    found = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    full = {run["set"]: run for run in found if run["arm"] == "full"}
    return {(run["set"], run["arm"], run["seed"]): run for run in found if run["arm"] != "full"}, full


def main(folder: Path, earlier: Path | None = None) -> None:
    runs, full = results(folder)
    here = [name for name in SHOWN if (name, CHOSEN, 0) in runs]
    rows = [row(name, runs, full[name]) for name in here]
    lines = [table(HEADER, [cells for cells, _, _ in rows])]
    counts = (
        f"{sum(ratios[share] <= limit for _, ratios, _ in rows)} of {len(rows)} sets at {share:.0%} (up to {limit:.2f})"
        for share, limit in LIMITS.items()
    )
    worse = [cells[0] for cells, _, beyond in rows if beyond]
    lines.append(f"Ratios as small as was aimed at: {' and '.join(counts)}.")
    lines[-1] += f" Worse than random beyond the error: {', '.join(worse) or 'none'}."
    for title, names in OTHERS.items():
        if there := [row(name, runs, full[name])[0] for name in names if (name, CHOSEN, 0) in runs]:
            lines += [title, table(HEADER, there)]
    if earlier is not None:
        before, all_data = results(earlier)
        names = [name for name, arm, seed in before if (arm, seed) == (CHOSEN, 0) and (name, arm, seed) in runs]
        pairs = [(row(name, before, all_data[name])[0], row(name, runs, full[name])[0]) for name in names]
        header = ["set", *(f"{what}, {when}" for what in ("95% ratio", "99% ratio", "difference") for when in WHEN)]
        cells = [[old[0], *(one[k] for k in (6, 9, 10) for one in (old, new))] for old, new in pairs]
        lines += ["The rule before this one and this one:", table(header, cells)]
    fill(HERE / "README.md", "\n\n".join(lines), taken_with=os.environ.get("TAKEN_WITH"))
    plot(HERE / "curves.png", runs, full)


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:] or [HERE / "build"]))
