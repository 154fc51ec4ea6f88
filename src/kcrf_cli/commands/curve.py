"""`kcrf curve`: scores against the amount of training data, and those to expect of more."""

from __future__ import annotations

from dataclasses import dataclass

from .. import options
from ..io import files
from ..render import figures as render
from .crossval import FoldArguments, make_folds, trained


@dataclass(frozen=True, kw_only=True)
class CurveArguments(FoldArguments):
    plot: str | None = options.plot(
        "Plot the curve and what is to be expected (.pdf, .svg or .png; needs matplotlib). Default: none.", common=True
    )


@options.command(CurveArguments)
def curve(run: CurveArguments) -> None:
    """Score models that are trained on more and more of DATA, and extrapolate.

    The training part of each fold is halved again and again; models of all sizes label the same test folds. Features,
    sigma2 and the decoder are chosen anew for each model. The scores to expect of two and four times the data have
    80 % intervals.

    \b
    Example:
      kcrf curve sample_data/pitch_accent.conll --folds 2 --plain --sigma2 1 --plot curve.png
    """
    from kcrf_core.selection import learning_curve

    from ..render import crossval_text

    plan, _, _, about = make_folds(run, {}, halved=True)
    with trained(run, plan) as found:
        results = learning_curve(plan, found, about)
        files.show(render.as_json(results) if run.json or run.output == "-" else crossval_text.curve(results))
        if run.output not in (None, "-"):
            files.write_out(render.as_json(results), run.output)
        if run.plot is not None:
            from ..report import plots

            plots.learning_curve(run.plot, results)
