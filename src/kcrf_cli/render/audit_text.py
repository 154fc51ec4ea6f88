"""Results of `audit` as text for people and as values for programs."""

from __future__ import annotations

from typing import Any

from kcrf_core.selection import IMPROBABLE, Audit, DoubtfulPosition
from kcrf_core.system import counted

from .figures import table
from .visible import shortened

LONGEST = 24  # characters of a text in the table


def text(found: Audit, top: int) -> str:
    """Return the worst positions, and the number of doubtful labels."""
    parts = []
    if top:
        rows = [
            [
                str(one.line),
                shortened(one.text, LONGEST),
                one.gold,
                one.suggested,
                f"{shown_probability(found, one):.2g}",
                f"{one.doubt:.1f}",
                one.reason,
            ]
            for one in found.positions(top)
        ]
        header = ("line", "text", "gold", "suggested", "p(gold)", "doubt", "reason")
        parts.append(table(header, rows, words=(1, 2, 3, len(header) - 1)))
    parts.append("\n".join(summary(found)))
    return "\n\n".join(parts)


def shown_probability(found: Audit, one: DoubtfulPosition) -> float:
    """Return the probability of the gold label that is shown."""
    return one.marginal if found.held_out else one.context


def summary(found: Audit) -> list[str]:
    """Return the number of labels judged, of those that are doubtful, and of those not judged."""
    how = "by models that had not seen them" if found.held_out else "by a model that may have learnt from them"
    places = "" if found.places == found.doubtful else f" in {counted(found.places, 'place')}"
    number = f"{counted(found.doubtful, 'label')}{places}"
    lines = [
        f"{counted(found.judged, 'label')} judged {how}",
        f"{number} below p(gold | input) = {IMPROBABLE}: check them; not all need be wrong",
    ]
    left_out = found.corpus.positions - found.judged
    if left_out:
        lines.append(f"{counted(left_out, 'label')} not judged: no model of the other folds knows such a label")
    return lines


def values(found: Audit, most: int) -> dict[str, Any]:
    """Return plain values for JSON."""
    return {
        "schema": 3,
        "source": found.corpus.source,
        "judged_by": "folds" if found.held_out else "model",
        "judged": found.judged,
        "not_judged": found.corpus.positions - found.judged,
        "doubtful": found.doubtful,
        "places": found.places,
        "positions": [one.to_dict() for one in found.positions(most)],
    }
