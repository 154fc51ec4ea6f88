"""The tables of README.md from build/*.json: `collect.py README.md`."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

from readme import fill, table

BUILD, PEERS = Path("build"), Path("peers.json")
TEXTS = {
    "conll2000": "CoNLL-2000",
    "japanese": "CRF++ JapaneseNE",
    "chunking": "CRF++ chunking",
    "wnut17": "wnut17",
    "prosody": "Helsinki prosody, 2 classes",
}
GPSTRUCT = ("basenp", "chunking", "segmentation", "japanesene")


def loaded(name: str) -> dict[str, Any] | None:
    path = BUILD / name
    return json.loads(path.read_text()) if path.exists() else None


def figure(found: dict[str, Any]) -> float:
    """F1 of spans where labels are spans, else accuracy, in %."""
    return 100 * (found["accuracy"] if found.get("spans") is None else found["spans"]["f1"])


def pair(name: str, of: Any = figure) -> list[float | None]:
    """The figures of kcrf and of its peer, as far as they are there; earlier ones of peers are in peers.json."""
    found = [loaded(f"{name}.{whose}.json") for whose in ("kcrf", "peer")]
    return [None if one is None else of(one) for one in found]


def mean(pairs: list[list[float | None]]) -> list[float | None]:
    return [None if None in values else statistics.fmean(values) for values in zip(*pairs, strict=True)]


def error(found: dict[str, Any]) -> float:
    return 100 * (1 - found["accuracy"])


def quality() -> list[list[str]]:
    rows = []
    for name, title in TEXTS.items():
        spans = (loaded(f"{name}.kcrf.json") or {}).get("spans") is not None
        rows.append((title, "F1" if spans else "accuracy %", pair(name)))
    activity = mean([pair(f"activity{fold}") for fold in range(5)])
    rows.append(("batteryless_adl, mean of five folds", "accuracy %", activity))
    tasks = [mean([pair(f"gpstruct.{task}.{split}", error) for split in range(1, 6)]) for task in GPSTRUCT]
    rows += [(f"GPstruct {task}, five splits", "error %", found) for task, found in zip(GPSTRUCT, tasks, strict=True)]
    rows.append(("GPstruct, mean of the four", "error %", mean(tasks)))
    peers = json.loads(PEERS.read_text())
    peers |= {title: round(peer, 2) for title, _, (_, peer) in rows if peer is not None}
    PEERS.write_text(json.dumps(peers, indent=1) + "\n")
    return [[title, what, f"{own:.2f}", f"{peers[title]:.2f}"] for title, what, (own, _) in rows if own is not None]


def vectors() -> list[list[str]]:
    rows = []
    for name in TEXTS:
        if (found := loaded(f"{name}.vectors.json")) is not None:
            interval = found["intervals"]["figures"]["f1"]
            low, high = (f"{100 * interval[end]:.1f}" for end in ("low", "high"))
            rows.append([TEXTS[name], f"{figure(found):.2f}", f"{low} to {high}"])
    return rows


TABLES = {
    "table": (quality, 2, ("", "figure", "kcrf, no configuration", "python-crfsuite, tuned c2")),
    "vectors": (vectors, 1, ("with `--embeddings`", "F1", "95 % interval")),
}


def main(readme: str) -> None:
    """Fill the tables that something was computed for."""
    for name, (rows, text_columns, header) in TABLES.items():
        if found := rows():
            fill(Path(readme), table(header, found, text_columns), name=name)


if __name__ == "__main__":
    main(*sys.argv[1:])
