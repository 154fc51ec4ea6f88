"""Tables of the extrapolation beside a simple rule: `report.py build/NAME-SEED-FIRST.json ...`.

The interval score of an 80 % interval (Winkler 1972) is its width, and ten times the distance of a truth outside of it.
"""

from __future__ import annotations

import json
import sys
from itertools import groupby
from pathlib import Path

import numpy as np
from measure import DESIGN, SHOWN
from readme import fill, table

from kcrf_core.selection import extrapolate

LEVEL = 0.8


def simple(scores: np.ndarray, doublings: int) -> np.ndarray:
    """Return the slope of the last doubling, plus or minus twice the standard error over folds, [doublings, 3]."""
    means, error = scores.mean(axis=1), scores[-1].std(ddof=1) / np.sqrt(scores.shape[1])
    middle = means[-1] + np.arange(1, doublings + 1) * (means[-1] - means[-2])
    return np.stack([middle - 2 * error, middle, middle + 2 * error], axis=1)


def interval_score(low: float, high: float, truth: float) -> float:
    return high - low + 2 / (1 - LEVEL) * (max(low - truth, 0.0) + max(truth - high, 0.0))


def judged(result: dict) -> dict:
    """Return, in points, what both rules expect of twice and four times a quarter, and what was reached."""
    scores = 100 * np.array(result["scores"])
    known, reached = scores[:-2], scores[-2:].mean(axis=1)
    rules = {"kcrf": 100 * extrapolate(known / 100), "slope": simple(known, 2)}
    out = {"before": known[-1].mean(), "reached": reached}
    for name, ends in rules.items():
        out[name] = ends
        out[f"{name} inside"] = [
            bool(low <= truth <= high) for (low, _, high), truth in zip(ends, reached, strict=True)
        ]
        scored = [interval_score(low, high, truth) for (low, _, high), truth in zip(ends, reached, strict=True)]
        out[f"{name} score"] = scored
    return out


def gains(ends: np.ndarray, before: float, inside: bool) -> str:
    low, middle, high = ends - before
    return f"{middle:+.1f} ({low:.1f} to {high:.1f})" + ("" if inside else ", outside")


def shown(results: list[dict]) -> str:
    """Return a row for each set: a quarter of it, and the score at four times as much."""
    rows, every = [], []
    for result in results:
        found = judged(result)
        every.append(found)
        before = found["before"]
        cells = [result["name"], result["metric"], f"{result['sizes'][-3]:,}", f"{before:.1f}"]
        cells.append(f"{found['reached'][1] - before:+.1f}")
        for name in ("kcrf", "slope"):
            cells += [gains(found[name][1], before, found[f"{name} inside"][1]), f"{found[f'{name} score'][1]:.1f}"]
        rows.append(cells)
    count = len(every)

    def summary(name: str, ahead: int) -> tuple[str, float]:
        inside = sum(found[f"{name} inside"][ahead] for found in every)
        return f"{inside} of {count} inside", float(np.mean([found[f"{name} score"][ahead] for found in every]))

    last, (inside, score), (slope_inside, slope_score) = (
        ["all", "", "", "", ""],
        summary("kcrf", 1),
        summary("slope", 1),
    )
    rows.append([*last, inside, f"{score:.2f}", slope_inside, f"{slope_score:.2f}"])
    header = ["set", "figure", "sequences", "score", "gain, four times the data", "expected (80 % interval)"]
    text = table([*header, "interval score", "slope of the last doubling", "its interval score"], rows, 2)
    (inside, score), (slope_inside, slope_score) = summary("kcrf", 0), summary("slope", 0)
    return f"{text}\n\nTwice the data: {inside}, interval score {score:.2f}; slope: {slope_inside}, {slope_score:.2f}."


def design(results: list[dict]) -> str:
    """Return a row for each set, over its seeds and quarters."""
    rows, names = [], ("kcrf", "slope")
    every: dict[str, list[list[float]]] = {name: [] for name in names}
    for set_name, group in groupby(results, key=lambda result: result["name"]):
        found = [judged(result) for result in group]
        cells = [set_name, f"{len(found)}", f"{np.mean([one['reached'][1] - one['before'] for one in found]):+.1f}"]
        for name in names:
            inside = [one[f"{name} inside"][1] for one in found]
            score = float(np.mean([one[f"{name} score"][1] for one in found]))
            every[name].append([float(np.mean(inside)), score])
            cells += [f"{sum(inside)}", f"{score:.1f}"]
        rows.append(cells)
    means = [np.mean(every[name], axis=0) for name in names]
    last = [cell for share, score in means for cell in (f"{100 * share:.0f} %", f"{score:.2f}")]
    header = [
        "set",
        "quarters",
        "mean gain, four times the data",
        "inside",
        "interval score",
        "slope: inside",
        "its score",
    ]
    return table(header, [*rows, ["all sets alike", "", "", *last]])


def main() -> None:
    results = [json.loads(Path(path).read_text(encoding="utf-8")) for path in sys.argv[1:]]
    readme = Path(__file__).parent / "README.md"
    for name, sets, text in (("design", DESIGN, design), ("table", SHOWN, shown)):
        own = sorted((one for one in results if one["name"] in sets), key=lambda one: [*sets].index(one["name"]))
        if own:
            fill(readme, text(own), name=name)


if __name__ == "__main__":
    main()
