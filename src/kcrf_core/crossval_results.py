"""What cross-validation found, as plain data: means and deviations over folds, and every fold."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .crossval import Found, Plan, Task

SCHEMA = 2
MEASURES = ("accuracy", "sequence_accuracy", "f1")
COUNTS = ("sequences", "positions", "unknown_gold")


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
    typed = [[entry["setting"][key] for key in keys] for entry in results["settings"]]
    nested = results.get("nested")
    inner = [] if nested is None else ["inner_fold"]
    out: list[list[Any]] = []
    for values, entry in zip(typed, results["settings"], strict=True):
        firsts = [[*values, fold["fold"], *(fold[key] for key in inner)] for fold in entry["folds"]]
        out += _lines(entry, measures, firsts, values, ["all" for _ in inner])
    if nested is not None:
        firsts = [[*typed[fold["chosen"]], fold["fold"], "outer"] for fold in nested["folds"]]
        out += _lines(nested, measures, firsts, ["chosen" for _ in keys], ["outer"])
    return [*keys, "fold", *inner, *measures, *COUNTS, "certified_gap", "seconds"], out


def _lines(
    entry: Mapping[str, Any], measures: Sequence[str], firsts: list[list[Any]], values: list[Any], inner: list[str]
) -> list[list[Any]]:
    """A line for each fold, which begins as `firsts` says, one for the mean and one for the deviation."""
    out = []
    for first, fold in zip(firsts, entry["folds"], strict=True):
        gap = fold["training"]["certified_gap"]
        figures = [fold[key] for key in (*measures, *COUNTS)]
        out.append([*first, *figures, "" if gap is None else gap, fold["seconds"]])
    for which in ("mean", "deviation"):
        figures = [entry[measure][which] for measure in measures]
        out.append([*values, which, *inner, *figures, *[""] * (len(COUNTS) + 2)])
    return out
