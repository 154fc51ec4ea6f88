"""Plots by matplotlib, which the extra `plot` installs."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from kcrf_core.files import replacing
from kcrf_core.scoring import scores_shown

from ..render.evaluation_text import MOST_LABELS, OTHERS, gathered
from ..render.visible import replaced, shortened

if TYPE_CHECKING:
    from kcrf_core.scoring import Judgement, Labelling

FEW_LABELS = 12  # up to which a confusion matrix fits a column
COLUMN, HEIGHT = 3.4, 2.9  # inches, the first the width of a column of a paper with two
MOST_ROWS = 30  # of F1 by label
TINY, SMALL, MIDDLE = 5.5, 7, 8  # points
COLOURS = "#2f6db5", "#c8551b"
LINES, MARKS = ("-", "--"), "os"  # of two systems, which differ without colour
# Sizes of all plots, ids that are not drawn at random, and TrueType fonts in PDF: publishers refuse Type 3.
matplotlib.rcParams.update({"font.size": MIDDLE, "axes.titlesize": 9, "axes.labelsize": MIDDLE, "axes.linewidth": 0.6,
                            "svg.hashsalt": "kcrf", "pdf.fonttype": 42})  # fmt: skip


def learning_curve(path: str, results: Mapping[str, Any]) -> None:
    """Draw scores against the amount of training data, with those to expect of more."""
    figure, axes = _figure()
    factor, unit = (1, "") if results["judged_by"] == "log_loss" else (100, ", %")
    sizes, forecasts, level = results["sizes"], results["forecasts"], f"{100 * results['level']:.0f} % interval"
    amounts, means = [size["units"] for size in sizes], [factor * size["mean"] for size in sizes]
    ahead = [amounts[-1] * times for times in (1, *(one["times"] for one in forecasts))]
    low, middle, high = ([means[-1], *(factor * one[key] for one in forecasts)] for key in ("low", "mean", "high"))
    for number, scores in enumerate(zip(*(size["folds"] for size in sizes), strict=True)):
        axes.plot(amounts, np.multiply(factor, scores), color="0.75", lw=0.7, label=None if number else "folds")
    axes.plot(amounts, means, f"{MARKS[0]}-", color=COLOURS[0], ms=4, label="mean over folds")
    axes.fill_between(ahead, low, high, color=COLOURS[1], alpha=0.2, lw=0, label=level)
    axes.plot(ahead, middle, f"{MARKS[1]}--", color=COLOURS[1], ms=4, markevery=slice(1, None), label="to expect")
    axes.set_xscale("log", base=2)
    axes.set_xticks(amounts + ahead[1:], [f"{amount:,.0f}" for amount in amounts + ahead[1:]], minor=False)
    axes.set(title="Learning curve", xlabel=f"{results['unit']} to train on", ylabel=f"{results['metric']}{unit}")
    axes.grid(True, alpha=0.3, lw=0.5)
    axes.legend(edgecolor="none", framealpha=0.6)
    save(figure, path)


def _plain(text: str) -> str:
    """Return text without formulas of matplotlib and characters that cannot be drawn."""
    return replaced(text).replace("$", "\\$")


class System(NamedTuple):
    """An evaluation to draw; a second one stands beside it, with its name."""

    name: str
    found: Judgement
    labelling: Labelling


def evaluation(path: str, kind: str, systems: Sequence[System]) -> None:
    """Draw one plot of one or two systems, as wide as a column of a paper, or all there are on a sheet of two columns.

    F1 and reliability of two systems share a plot; each has a confusion matrix, which with many labels is as wide as
    the sheet, so that its counts can be read.
    """
    kinds = kinds_of(systems[0]) if kind == "all" else [kind]
    Y = min(max(len(one.found.scores.labels) for one in systems), MOST_LABELS)
    small: list[Callable[[Any], None]] = []
    wide: list[Callable[[Any], None]] = []
    for each in kinds:
        own = [one for one in systems if each in kinds_of(one)]
        if each == "confusion":
            drawers = [partial(_confusion, system=one, named=len(systems) > 1) for one in own]
            (wide if Y > FEW_LABELS else small).extend(drawers)
        else:
            small.append(partial(_f1_by_label if each == "f1" else _reliability, systems=own))
    width = 2 * COLUMN + 0.2 if wide or kind == "all" or len(small) > 1 else COLUMN
    heights = [HEIGHT] * ((len(small) + 1) // 2) + [_matrix_side(Y) + 1.4 for _ in wide]
    if kind == "f1":
        heights = [min(max(1.1 + 0.16 * len(systems) * len(scores_shown(systems[0].found)), 1.8), 6.0)]
    figure = _sheet(width, sum(heights))
    grid = figure.add_gridspec(len(heights), 4, height_ratios=heights)
    for number, draw in enumerate(small):
        first = 2 * (number % 2)
        if number == len(small) - 1 and first == 0:  # alone in its row: all of it, or the middle
            place = grid[number // 2, 1:3] if kind == "all" else grid[number // 2, :]
        else:
            place = grid[number // 2, first : first + 2]
        draw(figure.add_subplot(place))
    for number, draw in enumerate(wide, start=len(heights) - len(wide)):
        draw(figure.add_subplot(grid[number, :]))
    save(figure, path)


def kinds_of(system: System) -> list[str]:
    """Return the kinds of plots that the labels and their probabilities are enough for."""
    return ["f1", "confusion", *["reliability"] * (system.labelling.probabilities is not None)]


def _f1_by_label(axes: Any, systems: Sequence[System]) -> None:
    found = systems[0].found
    gold = {score.name: score.gold for one in systems for score in scores_shown(one.found)}
    names = sorted(gold, key=lambda name: (-gold[name], name))
    shown = names[:MOST_ROWS]
    places, high = np.arange(len(shown)), 0.62 / len(systems)
    for number, (one, colour) in enumerate(zip(systems, COLOURS, strict=False)):
        scores = {score.name: 100 * score.f1 for score in scores_shown(one.found)}
        values, at = [scores.get(name, 0.0) for name in shown], places + high * (number - (len(systems) - 1) / 2)
        axes.barh(at, values, height=high, color=colour, alpha=0.35, lw=0, label=_plain(shortened(one.name)))
        axes.plot(values, at, MARKS[number], ms=3, color=colour, clip_on=False)
    size = SMALL if len(shown) <= 15 else TINY
    axes.set_yticks(places, [f"{_plain(shortened(name or 'spans'))} ({gold[name]:,})" for name in shown], fontsize=size)
    what, unit = ("label", "positions") if found.spans is None else ("span type", "spans")
    some = f", the {len(shown)} most frequent of {len(names)}" if len(shown) < len(names) else ""
    apart = max(0.0, (4 - len(shown)) / 2)
    axes.set(xlim=(0, 100), ylim=(len(shown) - 0.4 + apart, -0.6 - apart))
    axes.set(title=f"F1 by {what}{some}", xlabel=f"F1, %\nin brackets: number of gold {unit}", ylabel=what)
    axes.grid(True, axis="x", alpha=0.3, lw=0.5)
    if len(systems) > 1:
        axes.legend(fontsize=TINY, edgecolor="none", framealpha=0.6)


def _confusion(axes: Any, system: System, named: bool) -> None:
    """Draw counts; the colour is the share of the gold label, of errors in orange with a scale of their own."""
    scores = system.found.scores
    names, counts = gathered([score.name for score in scores.labels], scores.confusion)
    Y = len(names)
    shares = 100 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    right, none = np.eye(Y, dtype=bool), counts == 0
    mixed = right & (names[-1] == OTHERS) & (np.arange(Y) == Y - 1)  # right and wrong ones together
    # Rare errors can be seen beside frequent ones by the root.
    errors = axes.imshow(np.ma.masked_array(shares, right | none), cmap="Oranges", norm=PowerNorm(0.5, 0, 100))
    for cells, colours in ((right & ~mixed, "Blues"), (mixed, "Greys")):
        # Light colours, as counts are black.
        axes.imshow(np.ma.masked_array(shares, ~cells | none), cmap=colours, vmin=0, vmax=200)
    side = 72 * _matrix_side(Y) / Y
    for row, column in zip(*np.nonzero(counts), strict=True):
        dark = not right[row, column] and shares[row, column] > 50
        number = format(int(counts[row, column]), "," if Y <= FEW_LABELS else "d")
        size = min(MIDDLE, 0.5 * side, 1.5 * side / len(number))
        axes.text(column, row, number, ha="center", va="center", fontsize=size, color="white" if dark else "black")
    size = SMALL if Y <= 20 else TINY
    shown = [_plain(shortened(name)) for name in names]
    upright = max(map(len, shown)) * 0.6 * size > 1.2 * side
    axes.set_xticks(range(Y), shown, rotation=90 if upright else 0, fontsize=size)
    axes.set_yticks(range(Y), shown, fontsize=size)
    axes.tick_params(length=2)
    axes.set_xticks(np.arange(-0.5, Y), minor=True)
    axes.set_yticks(np.arange(-0.5, Y), minor=True)
    axes.grid(True, which="minor", color="0.9", lw=0.4)
    axes.tick_params(which="minor", length=0)
    title = f"Confusion matrix\n{_plain(shortened(system.name))}" if named else "Confusion matrix"
    axes.set(title=title, xlabel="predicted (blue: correct, orange: errors)", ylabel="gold")
    bar = axes.figure.colorbar(errors, ax=axes, shrink=0.8, ticks=[0, 1, 5, 20, 50, 100])
    bar.set_label("errors: share of gold label, %\n(square-root scale)", fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)


def _matrix_side(Y: int) -> float:
    """Return the side of a confusion matrix of Y labels, in inches."""
    return min(0.22 * Y, 5.1) if Y > FEW_LABELS else 1.9


def _reliability(axes: Any, systems: Sequence[System]) -> None:
    axes.plot([0, 1], [0, 1], color="0.55", lw=0.8, ls="--", label="perfect calibration")
    for number, (one, colour) in enumerate(zip(systems, COLOURS, strict=False)):
        assert one.found.calibration is not None
        bins = one.found.calibration.bins
        sure, right = (np.array([getattr(each, name) for each in bins]) for name in ("confidence", "accuracy"))
        counts = np.array([each.positions for each in bins])
        error = f"expected calibration error {one.found.calibration.calibration_error:.4f}"
        name = f"{_plain(shortened(one.name))}: {error}" if len(systems) > 1 else error
        axes.plot(sure, right, f"{MARKS[number]}{LINES[number]}", ms=2, lw=0.8, color=colour, label=name)
        look = {"marker": MARKS[number], "color": colour, "alpha": 0.5, "lw": 0, "zorder": 3, "clip_on": False}
        axes.scatter(sure, right, s=8 + 90 * counts / counts.max(), **look)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", title="Reliability diagram")
    note = "area of dots: number of positions"
    axes.set(xlabel=f"mean probability of the predicted label\n({note})", ylabel="accuracy")
    axes.grid(True, alpha=0.3, lw=0.5)
    axes.legend(loc="lower right", fontsize=TINY, edgecolor="none", framealpha=0.6)


def _figure(width: float = 6, height: float = 4) -> tuple[Any, Any]:
    """Return a figure without a window or global state, and its axes."""
    figure = _sheet(width, height)
    return figure, figure.subplots()


def _sheet(width: float, height: float) -> Figure:
    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Any, path: str) -> None:
    """Write a figure, as its suffix says."""
    suffix = os.path.splitext(path)[1].lstrip(".").lower()
    # Without the date that some formats carry, the same data gives the same bytes.
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix)
    with replacing(path) as stream, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a box stands for a character that no font has
        figure.savefig(stream, format=suffix, dpi=150 if figure.get_figwidth() > COLUMN else 300, metadata=metadata)
