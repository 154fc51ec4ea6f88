"""Results of `audit` as text for people and as values for programs."""

from __future__ import annotations

from typing import Any

from kcrf_core.selection import Audit, DoubtfulPosition
from kcrf_core.system import counted

from .figures import table
from .visible import shortened

LONGEST = 24  # characters of a text in the table
MOST_KINDS = 6  # of errors in a line


def text(found: Audit, top: int) -> str:
    """Return the worst positions, spans and sequences, and the estimated number of wrong labels."""
    parts = []
    if top:
        rows = [
            [
                str(one.line),
                shortened(one.text, LONGEST),
                one.gold,
                one.suggested,
                f"{shown_probability(found, one):.2g}",
                *([f"{one.wrong:.2f}"] if found.held_out else []),
                one.reason,
            ]
            for one in found.positions(top)
        ]
        wrong = ("p(wrong)",) if found.held_out else ()
        header = ("line", "text", "gold", "suggested", "p(gold)", *wrong, "reason")
        parts.append(table(header, rows, words=(1, 2, 3, len(header) - 1)))
        few = max(top // 4, 1)
        rows = [
            [_lines(one.line, one.last_line), shortened(one.text, LONGEST), one.type, f"{one.probability:.2g}"]
            for one in found.spans(few)
        ]
        if rows:
            parts.append(table(("lines", "text", "span", "p(span)"), rows, words=(1, 2)))
        if found.corpus.sequences > 1:
            ends = found.corpus.lines[found.corpus.offsets[1:] - 1].tolist()
            rows = [
                [_lines(one.line, ends[one.sequence - 1]), f"{one.length:,}", f"{one.expected:.1f}"]
                for one in found.sequences(few)
            ]
            parts.append(table(("lines", "labels", "of them wrong"), rows))
    parts.append("\n".join(summary(found)))
    return "\n\n".join(parts)


def shown_probability(found: Audit, one: DoubtfulPosition) -> float:
    """Return the probability of the gold label that is shown."""
    return one.marginal if found.ranking == "marginal" else one.context


def _lines(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def summary(found: Audit) -> list[str]:
    """Return the number of labels judged, of those that are wrong by estimate, and of those not judged."""
    how = "by models that had not seen them" if found.held_out else "by a model that may have learnt from them"
    lines = [f"{counted(found.judged, 'label')} judged {how}"]
    errors = found.errors
    if errors is None:
        lines.append("the number of wrong labels cannot be estimated from labels that were learnt: leave out -m")
    elif not errors.identified:
        lines.append(
            f"Number of wrong labels not identified ({errors.low:,.0f} to {errors.high:,.0f}): errors look like the "
            "models' uncertainty. Check the top of the list."
        )
    elif errors.number < 0.5:
        lines.append(
            "No errors estimated: disagreements are within the models' uncertainty. Check the top of the list anyway."
        )
    else:
        share = f"{100 * errors.number / max(found.judged, 1):.2g} %"
        interval = f"95 % interval {errors.low:,.0f} to {errors.high:,.0f}"
        lines.append(f"about {errors.number:,.0f} are wrong ({share}; {interval})")
        kinds = sorted((item for item in errors.by_kind.items() if item[1] >= 0.5), key=lambda item: -item[1])
        if kinds:
            lines.append("by kind: " + ", ".join(f"{name} {number:,.0f}" for name, number in kinds[:MOST_KINDS]))
    left_out = found.corpus.positions - found.judged
    if left_out:
        lines.append(f"{counted(left_out, 'label')} not judged: no model of the other folds knows such a label")
    return lines


def values(found: Audit, most: int) -> dict[str, Any]:
    """Return plain values for JSON."""
    errors = found.errors
    return {
        "schema": 2,
        "source": found.corpus.source,
        "judged_by": "model" if errors is None else "folds",
        "ranked_by": found.ranking,
        "judged": found.judged,
        "not_judged": found.corpus.positions - found.judged,
        "expected_errors": None if errors is None else errors.number,
        "identified": None if errors is None else errors.identified,
        "interval": None if errors is None else [errors.low, errors.high],
        "standard_error": None if errors is None else found.standard_error,
        "error_rate": None if errors is None else errors.number / max(found.judged, 1),
        "errors_by_kind": None if errors is None else errors.by_kind,
        "positions": [one.to_dict() for one in found.positions(most)],
        "spans": [one.to_dict() for one in found.spans(most)],
        "sequences": [one.to_dict() for one in found.sequences(most)],
    }
