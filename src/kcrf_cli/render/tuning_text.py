"""Results of a search for a configuration: leaderboards for people, comments in the file, and JSON."""

from __future__ import annotations

from typing import Any

from kcrf_core.scoring import Yardstick
from kcrf_core.selection import Candidate, Outcome, Tuning

from . import figures as render

MOST_LINES = 12
LONGER = 1.5  # ratio of training times that is worth a word


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


def leaderboard(tuning: Tuning) -> list[str]:
    """Return the best candidates by their last scores, one table for each amount of data, the default in each.

    The chosen one has a star.
    """
    yardstick, title, default = tuning.yardstick, tuning.space.title, tuning.space.start
    last: dict[Candidate, Outcome] = {}
    for outcome in tuning.outcomes:  # those of later rounds first
        if outcome.rung <= tuning.chosen.rung:
            last.setdefault(outcome.candidate, outcome)
    shown = list(dict.fromkeys([tuning.chosen.candidate, default, *last]))[:MOST_LINES]
    out: list[str] = []
    for rung in sorted({outcome.rung for outcome in last.values()}, reverse=True):
        level = [one for one in tuning.outcomes if one.rung == rung and one.candidate in shown]
        level = [one for one in level if one.candidate == default or last[one.candidate].rung == rung]
        if out and {one.candidate for one in level} == {default}:
            continue  # which others have no figure beside
        header = ["candidate", f"{yardstick.title} ± SE", "decoder", "training", ""]
        rows = [
            [
                title(outcome.candidate),
                figure(yardstick, outcome.value, outcome.error),
                outcome.found["decode"],
                duration(tuning.training_time(outcome)),
                "*" if outcome is tuning.chosen else "",
            ]
            for outcome in level
        ]
        about = f"on {level[0].positions:,} positions, {level[0].found['folds']} folds:"
        out += [*([""] if out else []), about, *render.table(header, rows).split("\n")]
    return out


def comments(tuning: Tuning, version: str) -> list[str]:
    """Return the comment above a configuration that was found."""
    chosen, yardstick = tuning.chosen, tuning.yardstick
    out = [
        f"Found by kcrf tune {version}: {tuning.space.title(chosen.candidate)}.",
        f"{yardstick.title} {figure(yardstick, chosen.value, chosen.error)} on {chosen.found['units']:,} held-out "
        f"{chosen.found['kind']}, {chosen.positions:,} of {tuning.positions:,} positions.",
    ]
    out += [f"{line[0].upper()}{line[1:]}." for line in reasons(tuning)]
    out.append("The score of the best of many candidates is optimistic: expect a little less on new data.")
    time = "time on this machine" if tuning.timed else "processor time"
    out.append(f"SE: standard error; training: estimated {time} of training on all data.")
    return [*out, "", *leaderboard(tuning), ""]


def reasons(tuning: Tuning) -> list[str]:
    """Return the comparison of the chosen candidate with the default and with the best one."""
    chosen, best, usual = tuning.chosen, tuning.best, tuning.usual
    out = []
    if usual is None:
        out.append("the default configuration was not scored on this subset")
    elif chosen is usual:
        out.append("it is the default configuration")
    else:
        out.append(f"better than the default configuration by {_apart(tuning, chosen, usual)}")
    if chosen is not best:
        other = tuning.space.title(best.candidate)
        takes, instead = (duration(tuning.training_time(one)) for one in (best, chosen))
        why = f"not clear among {sum(one.rung == best.rung for one in tuning.outcomes)} candidates"
        if best.training > LONGER * chosen.training:
            why += f", as its training takes about {takes} instead of {instead}"
        why = f"but its training takes about {takes}, too long for the rest of the budget" if tuning.too_long else why
        out.append(f"preferred to {other}, which is better by {_apart(tuning, best, chosen)}: {why}")
    return out


def _apart(tuning: Tuning, better: Outcome, worse: Outcome) -> str:
    """Return a paired difference with its standard error."""
    difference, error = tuning.yardstick.difference(better.found["counts"], worse.found["counts"])
    if tuning.yardstick.by_probability:
        return f"{difference:.4f} ± {error:.4f}"
    return f"{100 * difference:.2f} ± {100 * error:.2f} points"


def summary(tuning: Tuning) -> list[str]:
    """Return the result of a search as lines for stderr."""
    chosen, yardstick = tuning.chosen, tuning.yardstick
    lines = [
        f"chosen: {tuning.space.title(chosen.candidate)}",
        f"  held-out {yardstick.title} {figure(yardstick, chosen.value, chosen.error)}, "
        f"{render.decoder_text(chosen.found['decode'], chosen.found['span_bonus'])}",
    ]
    return [*lines, *(f"  {line}" for line in reasons(tuning))]


def to_dict(tuning: Tuning) -> dict[str, Any]:
    """Return the results as plain values for JSON."""
    return {
        "metric": tuning.yardstick.name,
        "chosen": _outcome(tuning.chosen, tuning),
        "best": _outcome(tuning.best, tuning),
        "default": None if tuning.usual is None else _outcome(tuning.usual, tuning),
        "positions": tuning.positions,
        "rounds": list(tuning.sizes),
        "judgements": [_outcome(outcome, tuning) for outcome in tuning.history],
        "configuration": tuning.raw,
    }


def _outcome(outcome: Outcome, tuning: Tuning) -> dict[str, Any]:
    return {
        "candidate": dict(outcome.candidate.choices),
        "title": tuning.space.title(outcome.candidate),
        "value": tuning.yardstick.figure(outcome.value),
        "standard_error": outcome.error,
        "training_seconds": tuning.training_time(outcome),
        "round": outcome.rung + 1,
        **{name: getattr(outcome, name) for name in ("positions", "work", "seconds")},
        **{name: outcome.found[name] for name in ("folds", "decode", "span_bonus", "sigma2", "log_probability")},
    }
