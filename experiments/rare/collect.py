"""results.json, the tables of README.md and rare.png: `collect.py TASK-WEIGHT-PART-COST ...`, each a file in build/."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from readme import fill, table

HERE = Path(__file__).parent
TASKS = {"events": ("event", "events, generated"), "walking": ("ambulating", "walking, wearable sensor")}
LOSS = 20  # what missing the label costs in the last column
THREE = ("precision", "recall", "f1")


def figures(run: str) -> dict[str, Any]:
    task, weight, part, cost = run.split("-")
    found = json.loads(Path(f"build/{run}.json").read_text())
    (score,) = (one for one in found["labels"] if one["label"] == TASKS[task][0])
    missed = score["gold"] - score["correct"]
    wrong = found["positions"] - found["correct"]
    return {
        "task": task,
        "weight": int(weight),
        "part": part,
        "cost": None if cost == "viterbi" else float(cost),
        **{name: score[name] for name in (*THREE, "gold")},
        "positions": found["positions"],
        "loss": 1000 * (wrong + (LOSS - 1) * missed) / found["positions"],
        "log_loss": found["calibration"]["log_loss"],
        "accuracy": found["accuracy"],
    }


def percent(run: dict[str, Any], *names: str) -> list[str]:
    return [f"{100 * run[name]:.1f}" for name in names]


def cost_text(cost: float | None) -> str:
    return "viterbi" if cost is None else f"{cost:g}"


def by_cost(runs: list[dict[str, Any]], task: str) -> str:
    mine = [run for run in runs if (run["task"], run["weight"], run["part"]) == (task, 1, "test")]
    rows = [[cost_text(run["cost"]), *percent(run, *THREE, "accuracy"), f"{run['loss']:.1f}"] for run in mine]
    header = ("cost", "precision", "recall", "F1", "accuracy", f"loss at {LOSS}")
    rare = 100 * mine[0]["gold"] / mine[0]["positions"]
    return f"**{TASKS[task][1]}**, {rare:.2f} % of {mine[0]['positions']:,} positions\n\n{table(header, rows)}"


def chosen(runs: list[dict[str, Any]], tasks: list[str]) -> str:
    """The cost of the best F1 on the development part, and what it gives on the test part."""
    rows = []
    for task in tasks:
        for weight in sorted({run["weight"] for run in runs}):
            dev, test = (
                {r["cost"]: r for r in runs if (r["task"], r["weight"], r["part"]) == (task, weight, part)}
                for part in ("dev", "test")
            )
            best = max(dev, key=lambda cost: dev[cost]["f1"])  # of costs, or Viterbi
            top = max(run["f1"] for run in test.values())
            rows.append(
                [
                    TASKS[task][1],
                    str(weight),
                    *percent(test[1.0], "recall", "f1"),
                    cost_text(best),
                    *percent(test[best], "recall", "f1"),
                    f"{100 * top:.1f}",
                    f"{test[1.0]['log_loss']:.4f}",
                ]
            )
    header = ("task", "weight", "recall at 1", "F1 at 1", "chosen", "recall", "F1", "best F1 there is", "log-loss")
    return table(header, rows)


def by_loss(runs: list[dict[str, Any]], tasks: list[str]) -> str:
    """What is lost where missing costs `LOSS`: without costs, with that one, with the one that is best on dev."""
    rows = []
    for task in tasks:
        dev, test = (
            {r["cost"]: r for r in runs if (r["task"], r["weight"], r["part"]) == (task, 1, part)}
            for part in ("dev", "test")
        )
        best = min(dev, key=lambda cost: dev[cost]["loss"])
        losses = [test[cost]["loss"] for cost in (None, 1.0, float(LOSS), best)]
        losses.append(min(run["loss"] for run in test.values()))
        figures = [f"{loss:.1f}" for loss in losses]
        rows.append([TASKS[task][1], *figures[:3], cost_text(best), *figures[3:]])
    header = ("task", "viterbi", "cost 1", f"cost {LOSS}", "chosen", "its loss", "least there is")
    return table(header, rows)


def figure(runs: list[dict[str, Any]], tasks: list[str], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(tasks), figsize=(5.2 * len(tasks), 4), squeeze=False, sharey=True)
    for axis, task in zip(axes[0], tasks, strict=True):
        for part, line in (("test", "-"), ("dev", ":")):
            mine = [run for run in runs if (run["task"], run["weight"], run["part"]) == (task, 1, part)]
            mine = [run for run in mine if run["cost"] is not None]
            costs = [run["cost"] for run in mine]
            for name, colour, marker in zip(THREE, ("tab:blue", "tab:orange", "black"), "sov", strict=True):
                if part == "dev" and name != "f1":
                    continue
                title = {"f1": "F1"}.get(name, name) + (", held-out part" if part == "dev" else "")
                values = [100 * run[name] for run in mine]
                axis.plot(costs, values, line, color=colour, marker=marker, markersize=4, label=title)
        axis.set_xscale("log")
        axis.set_xticks(costs, [f"{cost:g}" for cost in costs])
        axis.minorticks_off()
        axis.set_xlabel("cost of missing the label")
        axis.set_title(TASKS[task][1])
        axis.set_ylim(0, 100)
        axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel("%")
    axes[0, 0].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main(names: list[str]) -> None:
    runs = [figures(name) for name in names]
    tasks = [task for task in TASKS if any(run["task"] == task for run in runs)]
    (HERE / "results.json").write_text(json.dumps({"schema": 1, "runs": runs}, indent=1) + "\n")
    fill(HERE / "README.md", "\n\n".join(by_cost(runs, task) for task in tasks))
    fill(HERE / "README.md", chosen(runs, tasks), name="choice")
    fill(HERE / "README.md", by_loss(runs, tasks), name="losses")
    figure(runs, tasks, HERE / "rare.png")


if __name__ == "__main__":
    main(sys.argv[1:])
