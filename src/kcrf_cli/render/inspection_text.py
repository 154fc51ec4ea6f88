"""Contents of a model, basis or dataset as text for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kcrf_core.encoding import window_text
from kcrf_core.model import strongest_edges
from kcrf_core.system import counted, size_text

from .figures import DECODERS, UNKNOWN_GAP, certificate_text, decoder_text, guarantee_text, percent, table
from .visible import shown

WIDEST_TABLE = 12  # labels whose transitions fit a terminal; of more the strongest are listed
MOST_NAMES = 25  # in a list


def text(found: dict[str, Any], path: str, top: int) -> str:
    """Return a summary of a file, as `summarise` finds it, with the strongest weights of a model."""
    parts = [_head(found, path)]
    if found["kind"] == "dataset":
        counts = [(shown(label), count) for label, count in (found["gold"] or {}).items()]
        others = ("(unknown)", found.get("unknown_gold")), ("(not observed)", found.get("unobserved"))
        counts += [(name, count) for name, count in others if count]
        rows = [[name, f"{n:,}", f"{100 * n / max(found['positions'], 1):.2f}"] for name, n in counts]
        parts.append("no labels" if found["gold"] is None else table(("label", "positions", "%"), rows))
    if found["kind"] == "basis":
        for term in found["terms"]:
            rows = [[str(pivot["line"]), f"{100 * pivot['unexplained']:.3g}"] for pivot in term["first_pivots"]]
            if rows:
                parts.append(f"{shown(term['name'])}: first pivots\n" + table(("line", "% unexplained"), rows))
    if found["kind"] == "model":
        if any(value != 0 for row in [*found["transitions"], found["start"], found["end"]] for value in row):
            parts.append(_transitions(found, top))
        if found.get("triples", {}).get("top"):
            parts.append(_strongest("strongest triples of labels", found["triples"]["top"]))
        parts += [_top(term, found["labels"]) for term in found["terms"] if term.get("top")]
        if "importance" in found:
            parts.append(_importance(found["importance"]))
    return "\n\n".join(part for part in parts if part)


def _importance(found: list[dict[str, Any]]) -> str:
    """Return a table of permutation importance."""
    rows = []
    for one in found:
        margin = "" if one["standard_error"] is None else f" +- {one['standard_error']:.4f}"
        rows.append([one["column"], f"{one['loss']:.4f}{margin}", f"{100 * one['accuracy']:.2f}"])
    what = "the values of a column are shuffled, +- standard error over sequences"
    return f"permutation importance: drop when {what}\n" + table(("column", "log p", "accuracy, points"), rows)


def _head(found: dict[str, Any], path: str) -> str:
    lines = [
        f"{shown(path)}: {found['kind']}, format {found['format']}, written by kcrf {shown(str(found['version']))}, "
        f"{size_text(found['bytes'])}",
        f"columns ({len(found['columns']):,}, {found['data_format']}): {_some(found['columns'])}",
        f"labels ({len(found['labels']):,}): {_some(found['labels'])}",
    ]
    if "layout" in found:
        layout = ", ".join(f"{key} {_plain(value)}" for key, value in found["layout"].items())
        lines.append(f"files: {shown(layout)}")
    if found["kind"] == "dataset":
        lines.append(f"{counted(found['sequences'], 'sequence')}, {counted(found['positions'], 'position')}")
    lines += _features(found["features"])
    lines += [f"term {_term(term)}" for term in found.get("terms", [])]
    if found["kind"] == "model":
        forbidden = sum(value is None for row in found["transitions"] for value in row)
        rule = f", {forbidden:,} of them forbidden" if forbidden else ""
        lines.append(f"transitions: {len(found['labels']) ** 2:,}{rule}; order {found['order']}")
        decoder = decoder_text(found["decode"], found.get("span_bonus", 0.0))
        lines.append(f"decoder: {decoder}{_compared(found.get('training'))}")
        if "calibration" in found:
            sharpness = found["calibration"]["sharpness"]
            lines.append(f"calibrated: scores times {sharpness:.4g}, with an offset for each label")
        lines += [f"guarantee: {guarantee_text(one)}" for one in found.get("guarantees", {}).values()]
        lines += _training(found.get("training"))
    config = found.get("config")
    training = config.get("training") if isinstance(config, dict) else None
    if isinstance(found.get("imported"), str):
        lines.append(f"imported from {shown(found['imported'])}")
    elif isinstance(training, dict):
        settings = ", ".join(f"{key} {_plain(value)}" for key, value in training.items())
        lines.append(f"configured: {shown(settings)}")
    options = found.get("options")
    if isinstance(options, dict) and options:
        lines.append(f"options: {shown(', '.join(f'{key} {_plain(value)}' for key, value in options.items()))}")
    if found.get("trained_by", found["version"]) != found["version"]:
        lines.append(f"trained by kcrf {shown(str(found['trained_by']))}")
    if isinstance(found.get("digest"), str):
        size = ""
        match found.get("data"):
            case {"sequences": int(sequences), "positions": int(positions)}:
                size = f"{counted(sequences, 'sequence')}, {counted(positions, 'position')}, "
        lines.append(f"data: {size}SHA-256 {shown(found['digest'])}")
    return "\n".join(lines)


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(f"'{item}'" for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)


def _some(names: Sequence[str]) -> str:
    few = ", ".join(map(shown, names[:MOST_NAMES]))
    return few + (", ..." if len(names) > MOST_NAMES else "")


def _features(features: Sequence[dict[str, Any]]) -> list[str]:
    """Return a line for each feature, or for all that are alike."""
    alike: dict[str, list[str]] = {}
    for feature in features:
        kind, noun = feature["type"], "column" if feature["type"] == "real" else "value"
        if "vectors" in feature:
            kind, noun = f"vectors '{shown(feature['vectors'])}'", "number"
        about = f"{kind}, {counted(feature['values'], noun)}, window {window_text(feature['window'])}"
        about += f", scaled by {shown(feature['scaled_by'])}" if "scaled_by" in feature else ""
        if "lookup" in feature:
            table = feature["lookup"]
            if "entries" in table:
                size = f"{counted(table['entries'], 'entry', 'entries')} of up to {counted(table['longest'], 'word')}"
                about += f"; lexicon of {shown(table['file'])}, {size}, case: {table['case']}"
            else:
                made = "clusters" if "paths" in table else "embeddings"
                about += f"; {made} of {shown(table['file'])}, {counted(table['words'], 'word')} stored"
            about += f", digest {table['digest'][:12]}"
        alike.setdefault(about, []).append(feature["name"])
    return [
        f"feature {shown(names[0])}: {kind}" if len(names) == 1 else f"{len(names):,} features {_some(names)}: {kind}"
        for kind, names in alike.items()
    ]


def _term(term: dict[str, Any]) -> str:
    parts = [f"{shown(term['name'])}: {_kernel(term['kernel'])} kernel on {_some(term['features'])}"]
    if "pivots" in term:
        parts.append(counted(term["pivots"], "pivot"))
    if "dimensions" in term:
        parts.append(counted(term["dimensions"], "feature"))
    if "weights" in term:
        parts.append(f"{term['weights']:,} {'coefficients' if 'pivots' in term else 'weights'}")
    if "unexplained" in term:
        parts.append(f"{100 * term['unexplained']:.2g} % of the trace unexplained")
    if term.get("type") == "edge-x":
        parts.append("of two labels in a row")
    return "; ".join(parts)


def _kernel(kernel: dict[str, Any]) -> str:
    if kernel["type"] == "cosine":
        return f"cosine {_kernel(kernel['kernel'])}"
    if "parts" in kernel:
        return f"{kernel['type']} of {', '.join(_kernel(part['kernel']) for part in kernel['parts'])}"
    numbers = {key: value for key, value in kernel.items() if isinstance(value, int | float) and key != "scale"}
    values = ", ".join(f"{key} {value:.4g}" for key, value in numbers.items())
    name = kernel["type"] + (f" of the plug-in {shown(kernel['plugin']['name'])}" if "plugin" in kernel else "")
    return f"{name} ({values})" if values else name


def _compared(training: Any) -> str:
    """Return the figures that the decoder was chosen by, if the file has them in a readable form."""
    match training.get("decoder") if isinstance(training, dict) else None:
        case {"data": str(data), "metric": str(metric), **figures}:
            names = {**DECODERS, "bonus": "Viterbi with a bonus"}
            values = {name: figures.get(key) for key, name in names.items()}
            parts = [f"{percent(value)} by {name}" for name, value in values.items() if isinstance(value, float)]
            if len(parts) >= len(DECODERS):
                return f" ({shown(f'{data} {metric}')} {', '.join(parts)})"
    return ""


def _training(training: Any) -> list[str]:
    """Return the certificate, if the file has a readable one."""
    if not isinstance(training, dict):
        return []

    def number(key: str) -> float | None:
        value = training.get(key)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    value, lower, gap, passes = map(number, ("objective", "lower_bound", "certified_gap", "passes"))
    lines = []
    if value is not None:
        if lower is not None and gap is not None and gap < UNKNOWN_GAP:
            lines.append(f"certificate: {certificate_text(value, lower, gap)}")
        else:
            lines.append(f"no certificate: P {value:.6f}, without a lower bound")
        if "stop" in training and passes is not None:
            lines[-1] += f" ({shown(str(training['stop']))}, {counted(int(passes), 'pass', 'passes')})"
    for key, kind in (("outside_bound", "at most"), ("outside_estimate", "estimate")):
        if number(key):
            lines.append(f"gain still possible outside the pivots ({kind}): {number(key):.4g}")
    sigma2 = training.get("sigma2")
    if isinstance(sigma2, dict):
        lines.append(f"sigma2: {', '.join(f'{shown(str(name))} {_plain(value)}' for name, value in sigma2.items())}")
    return lines


def _cell(value: float | None) -> str:
    return "forbidden" if value is None else f"{value:.3f}"


def _transitions(found: dict[str, Any], top: int) -> str:
    """Return the weights of all pairs of labels, or the strongest of many."""
    labels = [shown(label) for label in found["labels"]]
    if len(labels) > WIDEST_TABLE:
        strongest = strongest_edges(labels, found["transitions"], max(top, 1))
        entries = [entry for entry in strongest if entry["weight"]]
        return _strongest("strongest transitions (all of them: --dump, --plot)", entries)
    rows = [["(start)", *map(_cell, found["start"]), ""]]
    for label, row, last in zip(labels, found["transitions"], found["end"], strict=True):
        rows.append([label, *map(_cell, row), _cell(last)])
    return table(["from \\ to", *labels, "(end)"], rows)


def _strongest(title: str, entries: Sequence[dict[str, Any]]) -> str:
    lines = [f"{entry['weight']:10.3f}  {' -> '.join(map(shown, entry['labels']))}" for entry in entries]
    return "\n".join([title, *lines])


def _top(term: dict[str, Any], labels: Sequence[str]) -> str:
    """Return the strongest weights of each label, or pair of labels.

    Two labels have one list: a weight for one of them is as much against the other.
    """
    name, entries = shown(term["name"]), term["top"]
    mirrored = len(labels) == 2 and term["type"] == "node"
    if mirrored:
        entries = [entry for entry in entries if entry["labels"] == [labels[1]]] or entries[:1]
    blocks = []
    for entry in entries:
        against = [label for label in labels if mirrored and [label] != entry["labels"]]
        about = [" -> ".join(map(shown, entry["labels"])), *map(shown, against)]
        lines = [f"{name}, {' against '.join(about)}"]
        lines += [f"{item['weight']:10.3f}  {shown(item['name'])}" for item in entry["items"]]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
