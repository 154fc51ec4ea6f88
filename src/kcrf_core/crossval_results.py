"""What cross-validation found, as plain data: means and deviations over folds, and every fold."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .crossval import Found, Plan, Task

SCHEMA = 2
MEASURES = ("accuracy", "sequence_accuracy", "f1")


def summarise(plan: Plan, found: Found, chosen: Sequence[int], about: Mapping[str, Any]) -> dict[str, Any]:
    """Results by setting and, for nested selection, by the outer fold that judged the choice.

    `about` says how it came about and stands at the head.
    """
    settings = []
    for s, setting in enumerate(plan.settings):
        inner = [range(len(fold.inner)) if plan.nested else [None] for fold in plan.folds]
        tasks = [Task(s, f, i) for f, numbers in enumerate(inner) for i in numbers]
        settings.append({"setting": setting.typed, **_figures(plan, found, tasks)})
    judged_by = plan.judged_by
    results: dict[str, Any] = {
        "schema": SCHEMA,
        **about,
        "folds": len(plan.folds),
        "sequences": plan.corpus.sequences,
        "positions": plan.corpus.positions,
        "judged_by": judged_by,
        "best": max(range(len(settings)), key=lambda s: settings[s][judged_by]["mean"]),
        "settings": settings,
    }
    if plan.nested:
        outer = _figures(plan, found, [Task(s, f) for f, s in enumerate(chosen)])
        for fold, s in zip(outer["folds"], chosen, strict=True):
            fold["chosen"] = s
        results["nested"] = {"inner_folds": len(plan.folds[0].inner), **outer}
    return results


def _figures(plan: Plan, found: Found, tasks: Iterable[Task]) -> dict[str, Any]:
    folds = []
    for task in tasks:
        place = {key: value for key, value in plan.place(task).items() if key != "setting"}
        folds.append({**place, **found[task]})
    out: dict[str, Any] = {}
    for measure in MEASURES:
        values = [fold[measure] for fold in folds]
        if None not in values:
            deviation = statistics.stdev(values) if len(values) > 1 else 0.0
            out[measure] = {"mean": statistics.fmean(values), "deviation": deviation}
    return {**out, "unknown_gold": sum(fold["unknown_gold"] for fold in folds), "folds": folds}


def rows(results: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Header and rows of a flat table: each setting's folds, then their mean and deviation.

    With nested selection the outer folds come last, each with the setting that was chosen for it.
    """
    keys = list(results["grid"])
    measures = [measure for measure in MEASURES if measure in results["settings"][0]]
    nested = "nested" in results
    header = [*keys, "fold", *(["inner_fold"] * nested), *measures, "sequences", "positions", "unknown_gold",
              "certified_gap", "seconds"]  # fmt: skip
    out: list[list[Any]] = []

    def add(entry: Mapping[str, Any], setting_of: Any, inner: str) -> None:
        for fold in entry["folds"]:
            place = [fold["fold"], *([fold.get("inner_fold", inner)] * nested)]
            figures = [fold[measure] for measure in measures]
            rest = [fold[key] for key in ("sequences", "positions", "unknown_gold")]
            gap = fold["training"]["certified_gap"]
            out.append([*setting_of(fold), *place, *figures, *rest, "" if gap is None else gap, fold["seconds"]])
        for which in ("mean", "deviation"):
            figures = [entry[measure][which] for measure in measures]
            shared = setting_of(None)
            out.append([*shared, which, *([inner] * nested), *figures, *[""] * 5])

    for entry in results["settings"]:
        add(entry, lambda fold, entry=entry: [entry["setting"][key] for key in keys], "all")
    if nested:

        def chosen(fold: Mapping[str, Any] | None) -> list[Any]:
            if fold is None:
                return ["chosen"] * len(keys)
            return [results["settings"][fold["chosen"]]["setting"][key] for key in keys]

        add(results["nested"], chosen, "outer")
    return header, out
