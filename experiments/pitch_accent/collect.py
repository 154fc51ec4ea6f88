"""The table of README.md from build/: `collect.py README.md DEGREE ...`."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path

from readme import fill, table

HEADER = ("", "accuracy %", "above explicit features", "whole sequences %", "certified gap", "seconds")


def setting(name: str) -> dict:
    """Return the figures of a run, or of the best setting of a grid."""
    results = json.loads(Path(f"build/{name}.json").read_text())
    return results["settings"][results["best"] if len(results["settings"]) > 1 else 0]


def above(found: dict, reference: dict) -> tuple[float, float]:
    """Return the mean difference over the same folds, in points, and its standard error."""
    pairs = zip(found["folds"], reference["folds"], strict=True)
    differences = [100 * (one["accuracy"] - other["accuracy"]) for one, other in pairs]
    return statistics.fmean(differences), statistics.stdev(differences) / len(differences) ** 0.5


def spread(measure: dict) -> str:
    return f"{100 * measure['mean']:.2f} ± {100 * measure['deviation']:.2f}"


def main(readme: str, *degrees: str) -> None:
    explicit, best = setting("explicit"), setting("search")
    found = {"explicit features": explicit, **{f"degree {degree}": setting(degree) for degree in degrees}}
    found[f"explicit features, best sigma2 ({best['setting']['sigma2']:g})"] = best
    rows = [
        [
            name,
            spread(entry["accuracy"]),
            "" if entry is explicit else "{:+.2f} ± {:.2f}".format(*above(entry, explicit)),
            spread(entry["sequence_accuracy"]),
            f"{max(fold['training']['certified_gap'] for fold in entry['folds']):.1e}",
            f"{sum(fold['seconds'] for fold in entry['folds']):.0f}",
        ]
        for name, entry in found.items()
    ]
    fill(Path(readme), table(HEADER, rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
