"""Results of cross-validation as text: a table for people, one separated by TABs for programs."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kcrf_core.system import counted

from . import figures as render
from .visible import shown

TITLES = {
    "accuracy": "accuracy %",
    "sequence_accuracy": "sequences %",
    "f1": "F1",
    "macro_f1": "macro F1",
    "log_loss": "log-loss",
}
LABEL_TITLES = {"precision": "precision", "recall": "recall", "f1": "F1"}


def table(results: dict[str, Any]) -> str:
    """Return a line for each setting; with nested selection a line for each outer fold and one for all of them."""
    from kcrf_core.selection import Setting

    measures = [measure for measure in TITLES if measure in results["settings"][0]]
    names = [Setting(entry["setting"], {}).name for entry in results["settings"]]
    titles = [TITLES[measure] for measure in measures]
    nested = results.get("nested")
    if nested is None:
        rows = []
        for number, (name, entry) in enumerate(zip(names, results["settings"], strict=True)):
            mark = "*" if number == results["best"] and len(names) > 1 else ""
            rows.append([name, *_spreads(entry, measures), _decoder(entry), _worst_gap(entry["folds"]), mark])
        text = render.table(["setting", *titles, "decoder", "certified gap", ""], rows)
        unknown, judged = results["settings"][0], list(zip(names, results["settings"], strict=True))
    else:
        rows = [
            [
                str(fold["fold"]),
                *(_figure(m, fold[m]) for m in measures),
                _decoder({"folds": [fold]}),
                _worst_gap([fold]),
                names[fold["chosen"]],
            ]
            for fold in nested["folds"]
        ]
        rows.append(["all", *_spreads(nested, measures), _decoder(nested), _worst_gap(nested["folds"]), ""])
        text = render.table(["fold", *titles, "decoder", "certified gap", "chosen"], rows)
        unknown, judged = nested, [("chosen", nested)]
    for title, entry in judged:
        for label, score in entry.get("labels", {}).items():
            which = "" if len(judged) == 1 else f", {title}"
            three = ", ".join(f"{name} {render.percent(score[key])}" for key, name in LABEL_TITLES.items())
            text += f"\n{shown(label)}{which}: {three} (all folds together)"
    if len(results["settings"]) > 1:
        text += f"\njudged by {TITLES[results['judged_by']].removesuffix(' %')}"
    if unknown["unknown_gold"]:
        labels = sorted({label for fold in unknown["folds"] for label in fold["unknown_labels"]})
        few = ", ".join(map(shown, labels[:8])) + (", ..." if len(labels) > 8 else "")
        count = f"{counted(unknown['unknown_gold'], 'gold label')} ({few})"
        text += f"\n{count} were missing from their training folds and counted wrong"
    return text


def _spreads(entry: dict[str, Any], measures: list[str]) -> list[str]:
    return [f"{_figure(m, entry[m]['mean'])} ± {_figure(m, entry[m]['deviation'])}" for m in measures]


def _figure(measure: str, value: float) -> str:
    return f"{value:.4f}" if measure == "log_loss" else render.percent(value)


def _decoder(entry: dict[str, Any]) -> str:
    """Return the decoder of all folds, or the number of folds of each."""
    used = Counter(fold["decode"] for fold in entry["folds"])
    return ", ".join(name if len(used) == 1 else f"{name} {used[name]}" for name in sorted(used, reverse=True))


def _worst_gap(folds: list[dict[str, Any]]) -> str:
    gaps = [fold["training"]["certified_gap"] for fold in folds]
    return "unknown" if None in gaps else render.gap_text(max(gaps))


def as_tsv(results: dict[str, Any]) -> str:
    """Return a header, then lines for every fold of every setting, for their mean and for their deviation."""
    from kcrf_core.selection import rows
    from kcrf_core.selection import shown as typed

    header, lines = rows(results)
    return "\n".join("\t".join(typed(cell) for cell in line) for line in [header, *lines])
