"""Put what was measured together: results.json, the table of README.md, peers.png, ratios.png and growth.png.

Groups that were not measured again keep the figures they had.
"""

from __future__ import annotations

import json

import matplotlib
from measure import BUILD, HERE
from readme import fill, origins, table as markdown

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator

GROUPS = ("objective", "encoding", "linear", "sizes", "tagging", "startup", "kernel", "efficiency", "growth")
AXES = {
    "positions": "positions (CoNLL-2000, 22 labels, linear)",
    "columns": "pivots (OCR, 26 labels, poly-3)",
    "labels": "labels (generated, 20,000 positions)",
}
# Rows of the figure in the project's README: what was measured, and beside which peer.
PEERS = {
    "encoding, CoNLL file to dataset": "read and encode text vs. python-crfsuite",
    "linear training until P is within 0.1 %, 2 threads": "train a linear CRF, 2 threads vs. CRFsuite",
    "linear training until P is within 0.1 %, 1 thread": "train a linear CRF, 1 thread vs. CRFsuite",
    "tagging, linear model": "tag text vs. python-crfsuite",
    "kernel training, OCR poly-3, against SVC": "train a kernel CRF vs. SVC",
    "kernel tagging, OCR, against SVC": "tag with a kernel CRF vs. SVC",
}


def collected() -> dict:
    kept = HERE / "results.json"
    results = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    for group in GROUPS:
        found = BUILD / f"{group}.json"
        if found.exists():
            results[group] = json.loads(found.read_text(encoding="utf-8"))
    kept.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return results


def taken_with(results: dict) -> str:
    """Say what groups were taken with; older results have the machine alone."""
    found = ((group, results[group]) for group in GROUPS if group in results)
    return origins((group, own.get("taken_with") or f"kcrf 0.1.0; {own['machine']}") for group, own in found)


def number(value: float) -> str:
    if value == 0 or 1e-3 <= abs(value) < 1000:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1e}"


def table(results: dict) -> str:
    rows = []
    for group in GROUPS:
        for row in results.get(group, {}).get("rows", ()):
            bar = f"{'at most' if row['most'] else 'at least'} {number(row['bar'])}"
            figures = (f"{number(row[key])} {row['unit']}".strip() for key in ("ours", "peer"))
            met = "yes" if row["met"] else "**no**"
            rows.append([row["what"], *figures, number(row["ratio"]), bar, met, row["note"]])
    return markdown(("what", "kcrf", "peer or limit", "ratio", "bar", "met", ""), rows)


def draw_ratios(results: dict) -> None:
    rows = [row for group in GROUPS if group != "objective" for row in results.get(group, {}).get("rows", ())]
    # How many times better than the bar: to the right of 1 it is met.
    margins = [row["bar"] / row["ratio"] if row["most"] else row["ratio"] / row["bar"] for row in rows]
    figure, axes = plt.subplots(figsize=(8, 0.35 * len(rows) + 1), layout="constrained")
    colours = ["tab:blue" if row["met"] else "tab:red" for row in rows]
    bars = axes.barh(range(len(rows)), [margin - 1 for margin in margins], left=1, color=colours)
    axes.bar_label(bars, [f"{margin:.2f}" for margin in margins], padding=3, fontsize=8)
    axes.margins(x=0.15)
    axes.set_yticks(range(len(rows)), [row["what"] for row in rows], fontsize=8)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.invert_yaxis()
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel("times better than the bar")
    figure.savefig(HERE / "ratios.png", dpi=110, metadata={"Software": None})


def draw_peers(results: dict) -> None:
    """Plot the time of peers relative to kcrf, for the README."""
    rows = {row["what"]: row for found in results.values() for row in found.get("rows", ())}
    ratios = [rows[what]["ratio"] for what in PEERS]
    times = [1 / ratio if rows[what]["unit"] == "s" else ratio for what, ratio in zip(PEERS, ratios, strict=True)]
    figure, axes = plt.subplots(figsize=(7, 2.4), layout="constrained")
    bars = axes.barh(list(PEERS.values()), times, color="tab:blue")
    axes.bar_label(bars, [f"{time:.0f}" for time in times], padding=3, fontsize=9)
    axes.set_xscale("log")
    axes.set_xlim(1, 300)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("time of the peer / time of kcrf (logarithmic scale)")
    figure.savefig(HERE / "peers.png", dpi=130, metadata={"Software": None})


def draw_growth(curves: dict) -> None:
    figure, panels = plt.subplots(1, len(curves), figsize=(4 * len(curves), 3.2), layout="constrained", squeeze=False)
    for axes, (by, points) in zip(panels[0], curves.items(), strict=True):
        axes.loglog([one[by] for one in points], [1000 * one["seconds"] for one in points], marker="o")
        axes.set_xticks([one[by] for one in points], [f"{one[by]:,}" for one in points], rotation=30)
        axes.set_xticks([], minor=True)
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        axes.yaxis.set_minor_formatter("{x:g}")
        axes.set_xlabel(AXES[by])
        axes.set_ylabel("ms per pass, two threads")
        axes.grid(True, which="both", alpha=0.3)
    figure.savefig(HERE / "growth.png", dpi=110, metadata={"Software": None})


def main() -> None:
    results = collected()
    fill(HERE / "README.md", table(results), taken_with=taken_with(results))
    if any(found["rows"] for found in results.values()):
        draw_ratios(results)
        draw_peers(results)
    if "growth" in results:
        draw_growth(results["growth"]["details"])


if __name__ == "__main__":
    main()
