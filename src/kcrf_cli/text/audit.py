"""What `audit` found, as text for people and as values for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kcrf_core.system import counted

from .figures import table

if TYPE_CHECKING:
    from kcrf_core.audit import Audit

LONGEST = 24  # characters of a text in the table


def text(found: Audit, top: int) -> str:
    """The worst positions, the worst sequences, and how many labels are wrong."""
    parts = []
    if top:
        rows = [
            [
                str(one.line),
                one.text if len(one.text) <= LONGEST else f"{one.text[: LONGEST - 1]}…",
                one.gold,
                one.suggested,
                f"{one.probability:.2g}",
                one.reason,
            ]
            for one in found.positions(top)
        ]
        parts.append(table(("line", "text", "gold", "suggested", "p(gold)", "reason"), rows))
    parts.append("\n".join(summary(found)))
    return "\n\n".join(parts)


def summary(found: Audit) -> list[str]:
    how = "by models that had not seen them" if found.held_out else "by a model that may have learnt from them"
    lines = [f"{counted(found.judged, 'label')} judged {how}"]
    if found.held_out:
        share = 100 * found.expected / max(found.judged, 1)
        lines.append(
            f"about {found.expected:,.0f} are wrong ({share:.2g} %; +- {found.standard_error:.0f} as to which)"
        )
    else:
        lines.append("how many are wrong cannot be told from labels that were learnt: without -m, folds judge")
    left_out = found.corpus.positions - found.judged
    if left_out:
        lines.append(f"{counted(left_out, 'label')} not judged: no model that had not seen it knows such a label")
    return lines


def values(found: Audit, most: int) -> dict[str, Any]:
    """Plain values for JSON."""
    channel = found.channel
    return {
        "schema": 1,
        "source": found.corpus.source,
        "judged_by": "folds" if found.held_out else "model",
        "ranked_by": found.ranking,
        "judged": found.judged,
        "not_judged": found.corpus.positions - found.judged,
        "expected_errors": found.expected,
        "standard_error": found.standard_error,
        "error_rate": found.expected / max(found.judged, 1),
        "channel": {
            "rate": channel.rate,
            "sharpness": channel.sharpness,
            "edge_sharpness": channel.edge_sharpness,
            "by_frequency": channel.by_frequency,
        },
        "positions": [one.to_dict() for one in found.positions(most)],
        "spans": [one.to_dict() for one in found.spans(most)],
        "sequences": [one.to_dict() for one in found.sequences(most)],
    }
