"""Results of cross-validation as text: a table for people, and the data with predictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from kcrf_core.corpora import PREDICTED, Corpus, Layout, names_beside
from kcrf_core.scoring import Judgement, Labelling
from kcrf_core.selection import Setting
from kcrf_core.system import counted

from . import evaluation_text, figures as render
from .visible import shown

TITLES = {
    "accuracy": "accuracy %",
    "sequence_accuracy": "sequences %",
    "f1": "F1",
    "macro_f1": "macro F1",
    "log_loss": "log-loss",
}


def text(results: dict[str, Any], pooled: Judgement, details: bool) -> str:
    """Return a line for each fold or setting, then the scores of all folds together, of the best setting."""
    which = "All folds together"
    if len(results["settings"]) > 1:
        which += f", by the best setting ({_name(results['settings'][results['best']])})"
    return "\n\n".join([table(results), f"{which}:", evaluation_text.text(pooled, details)])


def _name(entry: dict[str, Any]) -> str:
    return Setting(entry["setting"], {}).name


def table(results: dict[str, Any]) -> str:
    """Return a line for each setting of a grid; of one setting, for each fold and for all."""
    measures = [measure for measure in TITLES if measure in results["settings"][0]]
    names = [_name(entry) for entry in results["settings"]]
    titles = [TITLES[measure] for measure in measures]
    unknown = results["settings"][0]
    if len(names) > 1:
        rows = []
        for number, (name, entry) in enumerate(zip(names, results["settings"], strict=True)):
            mark = "*" if number == results["best"] else ""
            rows.append([name, *_spreads(entry, measures), _decoder(entry), _worst_gap(entry["folds"]), mark])
        text = render.table(["setting", *titles, "decoder", "certified gap", ""], rows)
    else:
        rows = [
            [
                str(fold["fold"]),
                f"{fold['sequences']:,}",
                f"{fold['positions']:,}",
                *(_figure(m, fold[m]) for m in measures),
                _decoder({"folds": [fold]}),
                _worst_gap([fold]),
            ]
            for fold in unknown["folds"]
        ]
        sizes = [f"{sum(fold[key] for fold in unknown['folds']):,}" for key in ("sequences", "positions")]
        last = [*_spreads(unknown, measures), _decoder(unknown), _worst_gap(unknown["folds"])]
        kind = "group" if results["divided_by"] == "group" else "fold"
        header = [kind, "sequences", "positions", *titles, "decoder", "certified gap"]
        text = render.table(header, [*rows, ["all", *sizes, *last]])
    if len(results["settings"]) > 1:
        text += f"\njudged by {TITLES[results['judged_by']].removesuffix(' %')}"
    if unknown["unknown_gold"]:
        labels = sorted({label for fold in unknown["folds"] for label in fold["unknown_labels"]})
        few = ", ".join(map(shown, labels[:8])) + (", ..." if len(labels) > 8 else "")
        count = f"{counted(unknown['unknown_gold'], 'gold label')} ({few})"
        text += f"\n{count} were missing from their training folds and counted wrong"
    return text


def curve(results: dict[str, Any]) -> str:
    """Return a line for each size of a learning curve, and a line for each amount of data to expect a score of."""
    measure, sizes, rows, lines = results["judged_by"], results["sizes"], [], []
    factor, digits = (1, 4) if measure == "log_loss" else (100, 2)
    for number, size in enumerate(sizes):
        part = f"1/{2 ** (len(sizes) - 1 - number)}" if size is not sizes[-1] else "all"
        gain = f"{factor * (size['mean'] - sizes[number - 1]['mean']):+.{digits}f}" if number else ""
        spread = f"{_figure(measure, size['mean'])} ± {_figure(measure, size['deviation'])}"
        rows.append([part, f"{size['units']:,.0f}", f"{size['positions']:,.0f}", spread, gain])
    for one in results["forecasts"]:
        gains = [factor * (one[key] - sizes[-1]["mean"]) for key in ("mean", "low", "high")]
        shown_digits = 1 if digits == 2 and gains[2] - gains[1] >= 0.5 else digits
        gain, low, high = (f"{round(value, shown_digits) + 0.0:+.{shown_digits}f}" for value in gains)  # no -0.0
        times, title = {2: "twice", 4: "four times"}[one["times"]], TITLES[measure].replace(" %", " points")
        lines.append(f"{times} the data: about {gain} {title} ({low.lstrip('+')} to {high.lstrip('+')})")
    lines.append(f"in brackets: {100 * results['level']:.0f} % intervals, for the same test folds")
    return "\n".join([render.table(["part", results["unit"], "positions", TITLES[measure], "gain"], rows), *lines])


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


def predictions(corpus: Corpus, layout: Layout, found: Labelling, folds: Sequence[int | str]) -> str:
    """Return the columns of the data, the fold, probabilities and the predicted label of each position.

    Separators are those of the data, TABs where they are not given. Sequences end with an empty line.
    """
    assert found.probabilities is not None
    separator = layout.separator or "\t"
    columns = list(corpus.columns)
    if corpus.attributes is not None:
        columns.insert(0, [" ".join(names) for names in corpus.attributes.texts(0, corpus.positions)])
    both = zip(found.predicted, found.probabilities.predicted.tolist(), strict=True)
    columns += [f"fold={name}" for name in folds], [f"{label}:{p:.6f}" for label, p in both], found.predicted
    rows = zip(*columns, strict=True)
    lines = [separator.join(map(layout.written, row)) for row in rows]
    if corpus.header is not None:
        names = [*corpus.header, *names_beside(["fold", "marginal", PREDICTED], corpus.header)]
        lines[0] = separator.join(map(layout.written, names)) + "\n" + lines[0]
    for end in set(corpus.offsets[1:-1].tolist()) - {0}:
        lines[end - 1] += "\n"
    return "\n".join(lines)
