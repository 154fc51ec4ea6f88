"""Pictures, by matplotlib, which is an optional part: `pip install 'kcrf[plot]'`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from kcrf_core.system import counted, replacing

if TYPE_CHECKING:
    import numpy as np

    from kcrf_core.chains import Edges
    from kcrf_core.tuning import Tuning

FORMATS = ("png", "svg", "pdf")

# Labels up to which transitions have their numbers in them, and their names beside them.
MOST_NUMBERS, MOST_TICKS = 12, 120


def check_plot(path: str | None) -> None:
    """Refuse a picture that cannot be drawn, before the work is done."""
    if path is None:
        return
    suffix = os.path.splitext(path)[1].lstrip(".").lower()
    if suffix not in FORMATS:
        raise click.UsageError(f"--plot {path}: the name must end in one of .{', .'.join(FORMATS)}")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise click.UsageError("--plot needs matplotlib: pip install 'kcrf[plot]'") from None


def residual_curves(path: str, curves: Mapping[str, np.ndarray]) -> None:
    """Unexplained part of the trace against the number of pivots, a line for each term."""
    import numpy as np

    figure, axes = _figure()
    for name, curve in curves.items():
        axes.plot(np.arange(1, len(curve)), 100 * curve[1:], label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("pivots")
    axes.set_ylabel("trace unexplained, %")
    axes.grid(True, which="both", alpha=0.3)
    if len(curves) > 1:
        axes.legend()
    _save(figure, path)


def transitions(path: str, labels: Sequence[str], edges: Edges) -> None:
    """Weights of pairs of labels as shades, with those of first and last labels; what is forbidden is hatched."""
    import numpy as np

    from .svg import shortened

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
        axes.add_patch(_patch(column, row))
    if Y <= MOST_NUMBERS:
        for row, column in zip(*np.nonzero(np.isfinite(table)), strict=True):
            value = table[row, column]
            dark = abs(value) > 0.6 * most
            colour = "white" if dark else "black"
            axes.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=7, color=colour)
    if Y <= MOST_TICKS:
        names = [_plain(shortened(label)) for label in labels]
        upright = max(map(len, names)) > 4
        axes.set_xticks(range(Y + 1), [*names, "(end)"], rotation=90 if upright else 0, fontsize=8)
        axes.set_yticks(range(Y + 1), ["(start)", *names], fontsize=8)
    axes.set_xlabel("label")
    axes.set_ylabel("label before")
    axes.set_xticks(np.arange(-0.5, Y + 1), minor=True)
    axes.set_yticks(np.arange(-0.5, Y + 1), minor=True)
    axes.grid(True, which="minor", color="0.85", lw=0.4)
    axes.tick_params(which="minor", length=0)
    figure.colorbar(image, label="weight", shrink=0.8)
    _save(figure, path)


def _patch(column: int, row: int) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor="0.93", edgecolor="0.6", hatch="////", lw=0)


def _plain(text: str) -> str:
    """Text that matplotlib takes for nothing but text: no formulas, no characters that cannot be drawn."""
    from .svg import replaced

    return replaced(text).replace("$", "\\$")


def settings(path: str, results: Mapping[str, Any]) -> None:
    """The mean of what counts of each setting, with the deviation over folds; other keys of the grid make lines."""
    import numpy as np

    measure = results["judged_by"]
    scale = 1 if measure == "log_loss" else 100
    grid = results["grid"]
    across = _across(grid)
    lines: dict[str, list[tuple[Any, float, float]]] = {}
    for entry in results["settings"]:
        others = ", ".join(f"{key}={value}" for key, value in entry["setting"].items() if key != across)
        spread = entry[measure]
        point = (entry["setting"].get(across, "all"), scale * spread["mean"], scale * spread["deviation"])
        lines.setdefault(others, []).append(point)
    values = grid.get(across, ["all"])
    numeric = _numeric(values) and len(values) > 1
    figure, axes = _figure()
    for number, (name, points) in enumerate(lines.items()):
        if numeric:
            points = sorted(points)
            places = np.array([float(point[0]) for point in points])
        else:
            places = np.arange(len(points), dtype=float)
        _, means, deviations = zip(*points, strict=True)
        apart = 0.15 * (number / max(len(lines) - 1, 1) - 0.5) if len(lines) > 1 else 0.0
        places = _beside(places, apart, numeric and _wide(values))
        style = "o-" if len(points) > 1 and numeric else "o"
        axes.errorbar(
            places, means, yerr=deviations, fmt=style, capsize=3, markersize=5, label=name or "settings", lw=1.2
        )
    if numeric:
        if _wide(values):
            axes.set_xscale("log")
        axes.set_xticks(sorted(values), [f"{value:g}" for value in sorted(values)])
        axes.minorticks_off()
    else:
        names = [str(value) for value in values]
        tilted = max(map(len, names)) * len(names) > 60
        axes.set_xticks(range(len(names)), names, rotation=30 if tilted else 0, ha="right" if tilted else "center")
        axes.set_xlim(-0.5, len(names) - 0.5)
    if across is not None:
        axes.set_xlabel(across)
    names = {"f1": "span F1", "macro_f1": "macro F1", "log_loss": "log-loss"}
    axes.set_ylabel(names.get(measure, "accuracy, %"))
    if "nested" in results:
        judged = results["nested"][measure]
        mean, deviation = scale * judged["mean"], scale * judged["deviation"]
        axes.axhline(mean, color="0.3", lw=1, ls="--", label="chosen, outer folds")
        axes.axhspan(mean - deviation, mean + deviation, color="0.3", alpha=0.1, lw=0)
    axes.grid(True, axis="y", alpha=0.3)
    if len(lines) > 1 or "nested" in results:
        figure.legend(loc="outside upper center", ncols=3, fontsize=8)
    _save(figure, path)


def _across(grid: Mapping[str, list[Any]]) -> str | None:
    """The key along the axis: the first with several numbers, else the one with most values."""
    numeric = [key for key, values in grid.items() if len(values) > 1 and _numeric(values)]
    return next(iter(numeric), None) or max(grid, key=lambda key: len(grid[key]), default=None)


def _numeric(values: list[Any]) -> bool:
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)


def _wide(values: list[Any]) -> bool:
    """Whether numbers want a logarithmic axis."""
    return min(values) > 0 and max(values) >= 30 * min(values)


def search(path: str, tuning: Tuning) -> None:
    """Figures of all judgements against the work spent, a colour for each rung, and the best so far as a line."""
    import numpy as np

    yardstick = tuning.yardstick
    unit = 1.0 if yardstick.by_probability else 100.0
    spent = (
        np.cumsum([outcome.work for outcome in tuning.history]) / sum(outcome.work for outcome in tuning.history) * 100
    )
    figure, axes = _figure(7, 4.5)
    for rung, positions in enumerate(tuning.sizes):
        own = [number for number, outcome in enumerate(tuning.history) if outcome.rung == rung]
        if not own:
            continue
        values = [unit * yardstick.figure(tuning.history[number].value) for number in own]
        errors = [unit * tuning.history[number].error for number in own]
        colour = f"C{rung}"
        axes.errorbar(
            spent[own], values, yerr=errors, fmt="o", ms=4, capsize=2, lw=0.8, alpha=0.6, color=colour,
            label=f"{positions:,} positions, {counted(tuning.history[own[0]].found['folds'], 'fold')}",
        )  # fmt: skip
        best = np.minimum.accumulate(values) if yardstick.by_probability else np.maximum.accumulate(values)
        axes.step(spent[own], best, where="post", color=colour, lw=1.5)
    number = tuning.history.index(tuning.chosen)
    axes.plot(
        spent[number], unit * yardstick.figure(tuning.chosen.value), "*", ms=14, color="black", zorder=5, label="chosen"
    )
    axes.set_xlabel("work spent, %")
    axes.set_ylabel(yardstick.title + ("" if yardstick.by_probability else ", %"))
    axes.grid(True, alpha=0.3)
    axes.legend(loc="best", fontsize=8)
    _save(figure, path)


def _beside(places: np.ndarray, shift: float, logarithmic: bool) -> np.ndarray:
    """Places moved by a part of the smallest step, so that the bars of several lines do not hide each other."""
    import numpy as np

    if logarithmic:
        return np.exp(_beside(np.log(places), shift, False))
    return places + shift * np.diff(places).min(initial=1.0 if len(places) < 2 else np.inf)


def _figure(width: float = 6, height: float = 4) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")  # no window, no global state
    return figure, figure.subplots()


def _save(figure: Any, path: str) -> None:
    from matplotlib import rc_context

    suffix = os.path.splitext(path)[1].lstrip(".").lower()
    # Without the date that some formats carry, and with ids that are not drawn, the same data gives the same bytes.
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix)
    with replacing(path) as stream, rc_context({"svg.hashsalt": "kcrf"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a box stands for a character that no font has
        figure.savefig(stream, format=suffix, dpi=150, metadata=metadata)
