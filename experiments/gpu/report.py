"""results.json, the tables of README.md and pivots.png, from what was measured last of each row."""

from __future__ import annotations

import json
import re
from pathlib import Path

from measure import GROUPS
from readme import fill, origins, table

ROW = re.compile(r"OCR large, poly-3, ([\d,]+) pivots")
README, RESULTS, BUILD = Path("README.md"), Path("results.json"), Path("build")


def measured(name: str) -> list[dict]:
    path = BUILD / name
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    last = {(found["row"], found["engine"]): found for found in map(json.loads, lines)}
    return list(last.values())


def main() -> None:
    order = [row for rows in GROUPS.values() for row in rows]
    commands = sorted(measured("measured.jsonl"), key=lambda found: (order.index(found["row"]), found["engine"]))
    passes = measured("passes.jsonl")
    if not commands and not passes:
        raise SystemExit("nothing was measured yet: make letters chunks passes")
    RESULTS.write_text(json.dumps({"commands": commands, "passes": passes}, indent=1) + "\n", encoding="utf-8")
    if commands:
        header = ["what", "engine", "seconds", "start", "solving", "passes", "gap", "error %", "F1", "same bytes"]
        rows = [
            [
                *(found["row"], found["engine"], f"{found['seconds'] - found['start']:.1f}", f"{found['start']:.1f}"),
                *(f"{found['solving']:.2f}", f"{found['passes']}", f"{found['gap']:.1e}"),
                *(f"{100 - 100 * found['accuracy']:.2f}", f"{100 * found['f1']:.2f}" if "f1" in found else ""),
                {True: "yes", False: "no"}.get(found.get("same_bytes"), ""),
            ]
            for found in commands
        ]
        fill(README, table(header, rows, 2), name="commands", taken_with=taken(commands))
        plotted(commands)
    if passes:
        rows = [[each["row"], each["engine"], f"{each['pass']:.4f}", f"{each['share']:.2f}"] for each in passes]
        header = ["what", "engine", "seconds per pass", "share"]
        fill(README, table(header, rows, 2), name="passes", taken_with=taken(passes))


def taken(rows: list[dict]) -> str:
    return origins((found["engine"], found["taken_with"]) for found in rows)


def plotted(commands: list[dict]) -> None:
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter, NullFormatter

    figure, axes = plt.subplots(figsize=(6, 4))
    letters = [(int(size[1].replace(",", "")), found) for found in commands if (size := ROW.fullmatch(found["row"]))]
    for colour, engine in enumerate(dict.fromkeys(found["engine"] for _, found in letters)):
        sizes, own = zip(*(each for each in letters if each[1]["engine"] == engine), strict=True)
        whole, solving = [found["seconds"] - found["start"] for found in own], [found["solving"] for found in own]
        axes.loglog(sizes, whole, "o-", color=f"C{colour}", label=f"{engine}, file to model")
        axes.loglog(sizes, solving, "o--", color=f"C{colour}", label=f"{engine}, solving")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.set_xticks(sorted({size for size, _ in letters}))
    axes.set_yticks([0.5, 1, 2, 5, 10, 20, 50])
    axes.set_xlabel("pivots")
    axes.set_ylabel("seconds, without the start of PyTorch")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig("pivots.png", dpi=120)


if __name__ == "__main__":
    main()
