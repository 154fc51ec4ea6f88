"""What `audit` found, as text for people and as values for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kcrf_core.system import counted

from .figures import table

if TYPE_CHECKING:
    from kcrf_core.selection import Audit, DoubtfulPosition

LONGEST = 24  # characters of a text in the table


def text(found: Audit, top: int) -> str:
    """The worst positions, spans and sequences, and how many labels are wrong."""
    parts = []
    if top:
        rows = [
            [
                str(one.line),
                _short(one.text),
                one.gold,
                one.suggested,
                f"{shown_probability(found, one):.2g}",
                *([f"{one.wrong:.2f}"] if found.held_out else []),
                one.reason,
            ]
            for one in found.positions(top)
        ]
        wrong = ("wrong",) if found.held_out else ()
        header = ("line", "text", "gold", "suggested", "p(gold)", *wrong, "reason")
        parts.append(table(header, rows, words=(1, 2, 3, len(header) - 1)))
        few = max(top // 4, 1)
        rows = [
            [_lines(one.line, one.last_line), _short(one.text), one.type, f"{one.probability:.2g}"]
            for one in found.spans(few)
        ]
        if rows:
            parts.append(table(("lines", "text", "span", "p(span)"), rows, words=(1, 2)))
        if found.corpus.sequences > 1:
            rows = [
                [_lines(one.line, _last_line(found, one.sequence)), f"{one.length:,}", f"{one.expected:.1f}"]
                for one in found.sequences(few)
            ]
            parts.append(table(("lines", "labels", "of them wrong"), rows))
    parts.append("\n".join(summary(found)))
    return "\n\n".join(parts)


def shown_probability(found: Audit, one: DoubtfulPosition) -> float:
    """What is shown of the gold label beside the probability that it is wrong."""
    return one.marginal if found.ranking == "marginal" else one.context


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _lines(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _last_line(found: Audit, sequence: int) -> int:
    return int(found.corpus.lines[found.corpus.offsets[sequence] - 1])


def summary(found: Audit) -> list[str]:
    how = "by models that had not seen them" if found.held_out else "by a model that may have learnt from them"
    lines = [f"{counted(found.judged, 'label')} judged {how}"]
    if found.held_out and found.expected < 0.5:
        lines.append("none of them need be wrong: they differ from what models say no more than models doubt")
    elif found.held_out:
        share = 100 * found.expected / max(found.judged, 1)
        lines.append(
            f"about {found.expected:,.0f} are wrong ({share:.2g} %; +- {found.standard_error:,.0f} standard error)"
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
        "expected_errors": found.expected if found.held_out else None,
        "standard_error": found.standard_error if found.held_out else None,
        "error_rate": channel.rate if found.held_out else None,
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
