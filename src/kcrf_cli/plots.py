"""Pictures, by matplotlib, which is an optional part: `pip install 'kcrf[plot]'`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from kcrf_core.storage import replacing

if TYPE_CHECKING:
    import numpy as np

FORMATS = ("png", "svg", "pdf")


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


def _figure() -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")  # no window, no global state
    return figure, figure.subplots()


def _save(figure: Any, path: str) -> None:
    suffix = os.path.splitext(path)[1].lstrip(".").lower()
    # Without the date that some formats carry, the same data gives the same bytes.
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix)
    with replacing(path) as stream:
        figure.savefig(stream, format=suffix, dpi=150, metadata=metadata)
