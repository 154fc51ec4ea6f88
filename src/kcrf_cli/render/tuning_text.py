"""Results of a search for a configuration: leaderboards for people, comments in the file, and JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from . import figures as render

if TYPE_CHECKING:
    from kcrf_core.scoring import Yardstick
    from kcrf_core.selection import Candidate, Nested, Outcome, Tuning

MOST_LINES = 12


def figure(yardstick: Yardstick, value: float, error: float) -> str:
    """Return a value with its standard error."""
    margin = f"{error:.4f}" if yardstick.by_probability else f"{100 * error:.2f}"
    return f"{yardstick.number(value)} ± {margin}"


def duration(seconds: float) -> str:
    """Return seconds as text."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def leaderboard(
    outcomes: Sequence[Outcome],
    title: Callable[[Candidate], str],
    yardstick: Yardstick,
    chosen: Outcome | None,
    most: int = MOST_LINES,
) -> list[str]:
    """Return the best candidates of the last rounds, one line each; the chosen one has a star."""
    shown = list(outcomes[:most])
    if chosen is not None and chosen not in shown and chosen in outcomes:
        shown[-1] = chosen
    rows = [
        [
            title(outcome.candidate),
            figure(yardstick, outcome.value, outcome.error),
            f"{outcome.positions:,}",
            str(outcome.found["folds"]),
            outcome.found["decode"],
            f"{outcome.complexity:,.0f}",
            "*" if outcome is chosen else "",
        ]
        for outcome in shown
    ]
    header = ["candidate", f"{yardstick.title} ± SE", "positions", "folds", "decoder", "ns/position", ""]
    return render.table(header, rows).split("\n")


def comments(tuning: Tuning, version: str) -> list[str]:
    """Return the comment above a configuration that was found."""
    chosen, yardstick = tuning.chosen, tuning.yardstick
    out = [
        f"Found by kcrf tune {version}: {tuning.space.title(chosen.candidate)}.",
        f"{yardstick.title} {figure(yardstick, chosen.value, chosen.error)} on {chosen.found['units']:,} held-out "
        f"{chosen.found['kind']}, {chosen.positions:,} of {tuning.positions:,} positions.",
    ]
    if chosen is not tuning.best:
        out.append("It is the simplest, or the default, of those whose difference from the best is within the error.")
    out.append("The score of the best of many candidates is optimistic: expect a little less on new data.")
    out.append("SE: standard error; ns/position: estimated time of a training pass in nanoseconds.")
    return [*out, "", *leaderboard(tuning.outcomes, tuning.space.title, yardstick, chosen), ""]


def summary(tuning: Tuning) -> list[str]:
    """Return the result of a search as lines for stderr."""
    chosen, best, yardstick = tuning.chosen, tuning.best, tuning.yardstick
    lines = [
        f"chosen: {tuning.space.title(chosen.candidate)}",
        f"  held-out {yardstick.title} {figure(yardstick, chosen.value, chosen.error)}, "
        f"{render.DECODERS[chosen.found['decode']]}",
    ]
    if chosen is not best:
        other = f"{tuning.space.title(best.candidate)} ({figure(yardstick, best.value, best.error)})"
        lines.append(f"  preferred to {other}: simpler or the default, and the difference is within the error")
    return lines


def nested_lines(nested: Nested, yardstick: Yardstick) -> list[str]:
    """Return the figures of the outer folds, for people."""
    rows = [
        [str(number), figure(yardstick, fold.value, fold.error), fold.title] for number, fold in enumerate(nested.folds)
    ]
    rows.append(["all", figure(yardstick, nested.value, nested.error), ""])
    return render.table(["fold", f"{yardstick.title} ± SE", "chosen"], rows).split("\n")


def to_dict(tuning: Tuning) -> dict[str, Any]:
    """Return the results as plain values for JSON."""
    return {
        "metric": tuning.yardstick.name,
        "chosen": _outcome(tuning.chosen, tuning),
        "best": _outcome(tuning.best, tuning),
        "positions": tuning.positions,
        "rungs": list(tuning.sizes),
        "judgements": [_outcome(outcome, tuning) for outcome in tuning.history],
        "configuration": tuning.raw,
        **({} if tuning.nested is None else {"nested": tuning.nested.to_dict()}),
    }


def _outcome(outcome: Outcome, tuning: Tuning) -> dict[str, Any]:
    return {
        "candidate": dict(outcome.candidate.choices),
        "title": tuning.space.title(outcome.candidate),
        "value": tuning.yardstick.figure(outcome.value),
        "standard_error": outcome.error,
        "cost": outcome.complexity,
        **{name: getattr(outcome, name) for name in ("rung", "positions", "work", "seconds")},
        **{name: outcome.found[name] for name in ("folds", "decode", "sigma2", "log_probability")},
    }
