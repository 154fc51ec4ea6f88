"""Plots by matplotlib, which is an optional dependency: `pip install 'kcrf[plot]'`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from kcrf_core.files import replacing
from kcrf_core.system import counted

from ..render.visible import shortened
from .svg import compact, gathered, replaced

if TYPE_CHECKING:
    from kcrf_core.chains import Edges
    from kcrf_core.model import Importance
    from kcrf_core.scoring import Interval, Judgement, Labelling
    from kcrf_core.selection import Audit, Tuning

# Labels up to which transitions have their numbers in them, and their names beside them.
MOST_NUMBERS, MOST_TICKS = 30, 120
MOST_FEATURES = 40  # of a plot of importance
FEW_LABELS = 12  # up to which numbers have two digits after the point


def residual_curves(path: str, curves: Mapping[str, np.ndarray]) -> None:
    """Draw the unexplained part of the trace against the number of pivots, a line for each term."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    figure, axes = _figure()
    for name, curve in curves.items():
        axes.plot(np.arange(1, len(curve)), 100 * curve[1:], label=_plain(name))
    axes.set_title("Kernel that the pivots do not explain", fontsize=10)
    axes.set(xscale="log", yscale="log", xlabel="number of pivots", ylabel="unexplained part of the trace, %")
    for axis in (axes.xaxis, axes.yaxis):
        low, high = (np.log10(max(limit, 1e-300)) for limit in axis.get_view_interval())
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high - low < 2.5 else (1.0,)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.grid(True, which="both", alpha=0.3)
    if len(curves) > 1:
        axes.legend()
    _save(figure, path)


def transitions(path: str, labels: Sequence[str], edges: Edges) -> None:
    """Draw weights of pairs of labels, and of first and last labels, as shades; forbidden pairs are hatched."""
    from matplotlib.patches import Rectangle

    Y = len(labels)
    table = np.full((Y + 1, Y + 1), np.nan)  # rows: start, then the label before; columns: the label after, then end
    table[0, :Y], table[1:, :Y], table[1:, Y] = edges.start, edges.transitions, edges.end
    forbidden = np.isinf(table)
    finite = np.where(np.isfinite(table), table, np.nan)
    most = max(float(np.nanmax(np.abs(finite), initial=0.0)), 1e-12)
    side = max(4.0, 1.6 + 0.32 * (Y + 1))
    figure, axes = _figure(min(side + 1.0, 41.0), min(side, 40.0))
    image = axes.imshow(finite, cmap="RdBu_r", vmin=-most, vmax=most)
    for row, column in zip(*np.nonzero(forbidden), strict=True):
        place = column - 0.5, row - 0.5
        axes.add_patch(Rectangle(place, 1, 1, facecolor="0.93", edgecolor="0.6", hatch="////", lw=0))
    if Y <= MOST_NUMBERS:
        for row, column in zip(*np.nonzero(np.isfinite(table)), strict=True):
            value = table[row, column]
            colour = "white" if abs(value) > 0.6 * most else "black"
            number = f"{value:.2f}" if Y <= FEW_LABELS else f"{round(value, 1) + 0.0:.1f}"  # no -0.0
            size = 7 if Y <= FEW_LABELS else 5.5
            axes.text(column, row, number, ha="center", va="center", fontsize=size, color=colour)
    if Y <= MOST_TICKS:
        names = [_plain(shortened(label)) for label in labels]
        upright = max(map(len, names)) > 4
        axes.set_xticks(range(Y + 1), [*names, "(end)"], rotation=90 if upright else 0, fontsize=8)
        axes.set_yticks(range(Y + 1), ["(start)", *names], fontsize=8)
    axes.set_title("Transition weights", fontsize=10)
    axes.set(xlabel="label", ylabel="label before")
    axes.set_xticks(np.arange(-0.5, Y + 1), minor=True)
    axes.set_yticks(np.arange(-0.5, Y + 1), minor=True)
    axes.grid(True, which="minor", color="0.85", lw=0.4)
    axes.tick_params(which="minor", length=0)
    about = ", hatched: forbidden" if forbidden.any() else ""
    figure.colorbar(image, label=f"weight (log score){about}", shrink=0.8)
    _save(figure, path)


def _plain(text: str) -> str:
    """Return text without formulas of matplotlib and characters that cannot be drawn."""
    return replaced(text).replace("$", "\\$")


def settings(path: str, results: Mapping[str, Any]) -> None:
    """Draw the mean of the metric of each setting, with the deviation over folds; other keys of the grid make lines."""
    measure = results["judged_by"]
    scale = 1 if measure == "log_loss" else 100
    grid = results["grid"]
    # Along the axis goes the first key with several numbers, else the one with most values.
    several = [key for key, values in grid.items() if len(values) > 1 and _numeric(values)]
    across = next(iter(several), None) or max(grid, key=lambda key: len(grid[key]), default=None)
    lines: dict[str, list[tuple[Any, float, float]]] = {}
    for entry in results["settings"]:
        others = ", ".join(f"{key}={value}" for key, value in entry["setting"].items() if key != across)
        spread = entry[measure]
        point = (entry["setting"].get(across, "all"), scale * spread["mean"], scale * spread["deviation"])
        lines.setdefault(others, []).append(point)
    values = grid.get(across, ["all"])
    numeric = _numeric(values) and len(values) > 1
    logarithmic = numeric and min(values) > 0 and max(values) >= 30 * min(values)
    figure, axes = _figure()
    for number, (name, points) in enumerate(lines.items()):
        if numeric:
            points = sorted(points)
            places = np.array([float(point[0]) for point in points])
        else:
            places = np.arange(len(points), dtype=float)
        _, means, deviations = zip(*points, strict=True)
        apart = 0.15 * (number / max(len(lines) - 1, 1) - 0.5) if len(lines) > 1 else 0.0
        # Moved by a part of the smallest step, bars of several lines do not hide each other.
        places = np.log(places) if logarithmic else places
        places = places + apart * np.diff(places).min(initial=1.0 if len(places) < 2 else np.inf)
        places = np.exp(places) if logarithmic else places
        style = "o-" if len(points) > 1 and numeric else "o"
        axes.errorbar(
            places, means, yerr=deviations, fmt=style, capsize=3, markersize=5, label=name or "settings", lw=1.2
        )
    if numeric:
        if logarithmic:
            axes.set_xscale("log")
        axes.set_xticks(sorted(values), [f"{value:g}" for value in sorted(values)])
        axes.minorticks_off()
    else:
        names = [str(value) for value in values]
        tilted = max(map(len, names)) * len(names) > 60
        axes.set_xticks(range(len(names)), names, rotation=30 if tilted else 0, ha="right" if tilted else "center")
        axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_title(f"Mean over {counted(results['folds'], 'fold')}; bars: standard deviation over folds", fontsize=10)
    axes.set(xlabel=across or "", ylabel=_measure_title(measure))
    if "nested" in results:
        judged = results["nested"][measure]
        mean, deviation = scale * judged["mean"], scale * judged["deviation"]
        axes.axhline(mean, color="0.3", lw=1, ls="--", label="chosen, outer folds")
        axes.axhspan(mean - deviation, mean + deviation, color="0.3", alpha=0.1, lw=0)
    axes.grid(True, axis="y", alpha=0.3)
    if len(lines) > 1 or "nested" in results:
        figure.legend(loc="outside upper center", ncols=3, fontsize=8)
    _save(figure, path)


def folds(path: str, results: Mapping[str, Any]) -> None:
    """Draw the metric of one setting on each fold, and its mean with the standard deviation over folds."""
    measure, (entry,) = results["judged_by"], results["settings"]
    scale = 1 if measure == "log_loss" else 100
    names = [_plain(shortened(str(fold["fold"]))) for fold in entry["folds"]]
    values = [scale * fold[measure] for fold in entry["folds"]]
    mean, deviation = (scale * entry[measure][key] for key in ("mean", "deviation"))
    figure, axes = _figure(min(max(6.0, 1.0 + 0.22 * len(names)), 40.0))
    axes.axhspan(mean - deviation, mean + deviation, color=BLUE, alpha=0.12, lw=0)
    axes.axhline(mean, color=BLUE, lw=1, ls="--")
    axes.plot(range(len(values)), values, "o", ms=5, color=BLUE)
    upright = sum(map(len, names)) > 60
    axes.set_xticks(range(len(names)), names, rotation=90 if upright else 0, fontsize=MIDDLE)
    axes.set_xlim(-0.6, len(names) - 0.4)
    unit = "" if measure == "log_loss" else " %"
    digits = 4 if measure == "log_loss" else 2
    axes.set_title(f"Mean {mean:.{digits}f}{unit}, standard deviation over folds {deviation:.{digits}f} (band)")
    axes.set(xlabel="group" if results["divided_by"] == "group" else "fold", ylabel=_measure_title(measure))
    axes.grid(True, axis="y", alpha=0.3)
    _save(figure, path)


def _measure_title(measure: str) -> str:
    return {"f1": "span F1, %", "macro_f1": "macro F1, %", "log_loss": "log-loss, nats"}.get(measure, "accuracy, %")


def _numeric(values: list[Any]) -> bool:
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)


def search(path: str, tuning: Tuning) -> None:
    """Draw all judgements against the work spent, a colour for each rung, and the best so far as a line."""
    yardstick = tuning.yardstick
    unit = 1.0 if yardstick.by_probability else 100.0
    spent = np.cumsum([outcome.work for outcome in tuning.history])
    spent = 100 * spent / spent[-1]
    figure, axes = _figure(7, 4.5)
    for rung, positions in enumerate(tuning.sizes):
        own = [number for number, outcome in enumerate(tuning.history) if outcome.rung == rung]
        if not own:
            continue
        values = [unit * yardstick.figure(tuning.history[number].value) for number in own]
        errors = [unit * tuning.history[number].error for number in own]
        colour = f"C{rung}"
        name = f"{positions:,} positions, {counted(tuning.history[own[0]].found['folds'], 'fold')}"
        look = {"fmt": "o", "ms": 4, "capsize": 2, "lw": 0.8, "alpha": 0.6, "color": colour, "label": name}
        axes.errorbar(spent[own], values, yerr=errors, **look)
        best = np.minimum.accumulate(values) if yardstick.by_probability else np.maximum.accumulate(values)
        axes.step(spent[own], best, where="post", color=colour, lw=1.5)
    number = tuning.history.index(tuning.chosen)
    value = unit * yardstick.figure(tuning.chosen.value)
    axes.plot(spent[number], value, "*", ms=14, color="black", zorder=5, label="chosen")
    axes.set_title("Configurations tried; bars: one standard error, lines: the best so far", fontsize=10)
    axes.set(xlabel="work spent, %", ylabel=yardstick.title + ("" if yardstick.by_probability else ", %"))
    axes.grid(True, alpha=0.3)
    axes.legend(loc="best", fontsize=8)
    _save(figure, path)


def importance(path: str, found: Sequence[Importance]) -> None:
    """Draw the permutation importance of columns or features, with standard errors, the most important first."""
    shown = list(found)[:MOST_FEATURES]
    figure, axes = _figure(6, min(max(1.2 + 0.24 * len(shown), 2.0), 12.0))
    places = range(len(shown))
    errors = [one.error if one.error < float("inf") else 0.0 for one in shown]
    axes.barh(places, [one.loss for one in shown], xerr=errors, height=0.65, color=BLUE, alpha=0.5, capsize=2)
    axes.set_yticks(list(places), [_plain(one.name) for one in shown], fontsize=8)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    some = f" ({len(shown)} of {len(found)})" if len(shown) < len(found) else ""
    axes.set_title(f"Permutation importance{some}; bars: one standard error over sequences", fontsize=10)
    axes.set_xlabel("drop in log p(label) when the values are shuffled, in nats", fontsize=9)
    axes.axvline(0, color="0.4", lw=0.8)
    axes.grid(True, axis="x", alpha=0.3)
    _save(figure, path)


def doubtful(path: str, audit: Audit) -> None:
    """Draw the expected number of wrong labels among the most doubtful ones against the number that is checked."""
    wrong = audit.evidence.wrong[audit.order]
    found = np.cumsum(wrong)
    most = min(len(wrong), max(int(3 * audit.expected), 50))
    looked = np.arange(1, most + 1)
    figure, axes = _figure()
    axes.plot(looked, looked, color="0.6", lw=0.8, ls="--", label="if all of them were wrong")
    axes.plot(looked, found[:most], color=BLUE, label="expected to be wrong")
    axes.axhline(audit.expected, color=ORANGE, lw=0.9, ls=":", label=f"in all data: about {audit.expected:,.0f}")
    axes.set_title(f"Wrong labels among the most doubtful of {counted(audit.judged, 'position')}", fontsize=10)
    axes.set(xlabel="positions looked at, the most doubtful first", ylabel="wrong labels among them")
    axes.set(xlim=(0, most), ylim=(0, 1.25 * audit.expected + 1))
    axes.grid(True, alpha=0.3)
    axes.legend(loc="lower right", fontsize=8)
    _save(figure, path)


COLUMN, HEIGHT = 3.4, 2.9  # inches, the first the width of a column of a paper with two
MOST_CURVES = 8
MOST_ROWS = 30  # of F1 by label
SHEET_LABELS = 15  # of the confusion on a sheet with other plots
MOST_COUNTS = 20  # labels up to which the confusion has its counts
TINY, SMALL, MIDDLE = 5.5, 7, 8  # points
BLUE, ORANGE = "#2f6db5", "#c8551b"


def evaluation(path: str, kind: str, found: Judgement, labelling: Labelling) -> None:
    """Draw one plot of an evaluation, as wide as a column of a paper, or all there are on a sheet of two columns."""
    from matplotlib import rc_context

    from kcrf_core.scoring import scores_shown

    drawers: dict[str, Callable[..., None]] = {
        "f1": _f1_by_label,
        "confusion": _confusion,
        "reliability": _reliability,
        "precision-recall": partial(_curves, roc=False),
        "roc": partial(_curves, roc=True),
    }
    kinds = kinds_of(labelling) if kind == "all" else [kind]
    with rc_context({"font.size": MIDDLE, "axes.titlesize": 9, "axes.labelsize": SMALL, "axes.linewidth": 0.6}):
        if kind == "all":
            rows = (len(kinds) + 1) // 2
            figure, places = _figure(2 * COLUMN + 0.2, rows * HEIGHT, rows, 2)
            for axes in places.ravel()[len(kinds) :]:
                axes.set_visible(False)
        else:
            height = min(max(0.9 + 0.16 * len(scores_shown(found)), 1.6), 6.0) if kind == "f1" else HEIGHT
            figure, places = _figure(COLUMN, height)
        for axes, each in zip(np.ravel(places), kinds, strict=False):
            drawers[each](axes, found, labelling, SHEET_LABELS if kind == "all" else MOST_ROWS)
        _save(figure, path)


def kinds_of(labelling: Labelling) -> list[str]:
    """Return the kinds of plots that the labels and their probabilities are enough for."""
    kinds = ["f1", "confusion"]
    kinds += ["reliability"] * (labelling.probabilities is not None)
    return kinds + ["precision-recall", "roc"] * (labelling.marginals is not None)


def _bars_text(found: Judgement) -> str:
    return f"{100 * found.options.confidence:g} % intervals by bootstrap"


def _errors(values: Sequence[float], intervals: Sequence[Interval]) -> np.ndarray:
    """Return lengths of error bars in per cent, [2, n]."""
    low, high = ([100 * getattr(each, side) for each in intervals] for side in ("low", "high"))
    return np.maximum([np.subtract(values, low), np.subtract(high, values)], 0.0)


def _f1_by_label(axes: Any, found: Judgement, labelling: Labelling, most: int) -> None:
    from kcrf_core.scoring import f1_intervals, scores_shown

    every = sorted(scores_shown(found), key=lambda score: (-score.gold, score.name))
    shown, intervals = every[:most], f1_intervals(found, labelling)
    values, places = [100 * score.f1 for score in shown], range(len(shown))
    bars = _errors(values, [intervals[score.name] for score in shown]) if intervals else None
    axes.barh(places, values, height=0.62, color=BLUE, alpha=0.35, lw=0)
    axes.errorbar(values, places, xerr=bars, fmt="o", ms=3, lw=0.9, capsize=1.5, color=BLUE)
    size = MIDDLE if len(shown) <= 12 else SMALL if len(shown) <= 20 else TINY
    names = [f"{_plain(shortened(score.name or 'spans'))} ({score.gold:,})" for score in shown]
    axes.set_yticks(list(places), names, fontsize=size)
    what = "label" if found.spans is None else "type of span"
    some = f", the {len(shown)} most frequent of {len(every)}" if len(shown) < len(every) else ""
    bars_text = f" ({_bars_text(found)})" if intervals else ""
    axes.set(xlim=(0, 102), ylim=(len(shown) - 0.4, -0.6))
    axes.set(title=f"F1 by {what}{some}", xlabel=f"F1, %{bars_text}", ylabel="(number of gold ones)")
    axes.grid(True, axis="x", alpha=0.3, lw=0.5)


def _confusion(axes: Any, found: Judgement, labelling: Labelling, most: int) -> None:
    names, counts = gathered([score.name for score in found.scores.labels], found.scores.confusion, most)
    Y = len(names)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = axes.imshow(100 * shares, cmap="Blues", vmin=0, vmax=100)
    numbers = MIDDLE if Y <= 5 else TINY if Y <= 10 else 4.5
    if Y <= MOST_COUNTS:
        for row, column in zip(*np.nonzero(counts), strict=True):
            colour = "white" if shares[row, column] > 0.55 else "black"
            number = compact(int(counts[row, column]))
            axes.text(column, row, number, ha="center", va="center", fontsize=numbers, color=colour)
    size = SMALL if Y <= 8 else TINY if Y <= 20 else 4.5
    shown = [_plain(shortened(name)) for name in names]
    upright = max(map(len, shown)) * Y > 30
    axes.set_xticks(range(Y), shown, rotation=90 if upright else 0, fontsize=size)
    axes.set_yticks(range(Y), shown, fontsize=size)
    axes.tick_params(length=2)
    axes.set(title="Confusion of labels", xlabel="predicted", ylabel="gold")
    bar = axes.figure.colorbar(image, ax=axes, shrink=0.8)
    bar.set_label("share of gold label, %", fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)


def _reliability(axes: Any, found: Judgement, labelling: Labelling, most: int) -> None:
    from kcrf_core.scoring import bin_intervals

    assert found.calibration is not None
    bins, intervals = found.calibration.bins, bin_intervals(found, labelling)
    sure, right = (np.array([100 * getattr(one, name) for one in bins]) for name in ("confidence", "accuracy"))
    counts = np.array([one.positions for one in bins])
    axes.plot([0, 100], [0, 100], color="0.55", lw=0.8, ls="--", label="perfect calibration")
    if intervals:
        axes.errorbar(sure, right, yerr=_errors(right.tolist(), intervals), fmt="none", lw=0.9, capsize=2, color=BLUE)
    axes.plot(sure, right, lw=0.8, color=BLUE, alpha=0.6)
    axes.scatter(sure, right, s=8 + 110 * counts / counts.max(), color=BLUE, alpha=0.75, lw=0, zorder=3)
    lowest = min([*right, *sure, *(100 * each.low for each in intervals)])
    axes.set(xlim=(min(100 * bins[0].low, 95), 101), ylim=(max(-2, lowest - 5), 104))
    note = f"(dots by number of positions{f'; {_bars_text(found)}' if intervals else ''})"
    axes.set(
        title=f"Reliability (expected error {100 * found.calibration.calibration_error:.2f} %)",
        xlabel=f"mean probability of the predicted label, %\n{note}",
        ylabel="accuracy, %",
    )
    axes.grid(True, alpha=0.3, lw=0.5)
    axes.legend(loc="best", fontsize=SMALL, frameon=False)


def _curves(axes: Any, found: Judgement, labelling: Labelling, most: int, roc: bool) -> None:
    """Draw ROC or precision-recall curves of the most frequent labels; the legend has the areas below them."""
    from kcrf_core.scoring import label_curves

    assert labelling.marginals is not None
    if roc:
        axes.plot([0, 100], [0, 100], color="0.7", lw=0.8, ls="--")
    curves = label_curves(labelling.marginals, labelling.gold, MOST_CURVES)
    for curve in curves:
        x, y = (curve.false_alarms, curve.recall) if roc else (curve.recall, curve.precision)
        x, y = 100 * np.append(0.0, x), 100 * np.append(0.0 if roc else y[0], y)
        name = f"{_plain(shortened(curve.label))} {100 * (curve.area if roc else curve.average_precision):.1f}"
        axes.plot(x, y, lw=1, label=name, drawstyle="default" if roc else "steps-pre")
    title, xlabel, ylabel = "Precision and recall by label", "recall, %", "precision, %"
    if roc:
        title, xlabel, ylabel = "ROC by label", "false positive rate, %", "true positive rate (recall), %"
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel, xlim=(-1, 101), ylim=(-1, 103))
    axes.grid(True, alpha=0.3, lw=0.5)
    meaning, corner = ("AUC, %", "lower right") if roc else ("average precision, %", "lower left")
    some = "" if len(curves) < MOST_CURVES else ", most frequent labels"
    axes.legend(loc=corner, fontsize=TINY, title=meaning + some, title_fontsize=TINY, ncols=1 + (len(curves) > 4))


def _figure(width: float = 6, height: float = 4, rows: int = 1, columns: int = 1) -> tuple[Any, Any]:
    """Return a figure without a window or global state, and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns)


def _save(figure: Any, path: str) -> None:
    from matplotlib import rc_context

    suffix = os.path.splitext(path)[1].lstrip(".").lower()
    # Without the date that some formats carry, and with ids that are not drawn, the same data gives the same bytes.
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix)
    with replacing(path) as stream, rc_context({"svg.hashsalt": "kcrf"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a box stands for a character that no font has
        figure.savefig(stream, format=suffix, dpi=150 if figure.get_figwidth() > COLUMN else 300, metadata=metadata)
