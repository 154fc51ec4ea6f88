"""A plain linear model, no configuration, and `kcrf tune`: `compare.py --data FOLDER --out OUT [SET ...]`.

All three are judged by the same test part. What is done is not done again: OUT/SET.json has the figures of a set.
The script needs nothing but Python and `kcrf`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path

SETS = ("addresses", "persons", "companies", "newspapers", "rings", "remainders", "emitted", "two_back")


def call(command: list[object], log: Path) -> str:
    with log.open("a") as stream:
        done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=stream, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit code {done.returncode}, see {log}")
    return done.stdout


def compared(name: str, data: Path, out: Path, kcrf: list[str], budget: float, own: list[str]) -> dict[str, object]:
    """Figures of the three, and how they differ on the test part."""
    training, test, log = data / f"{name}.train.conll", data / f"{name}.test.conll", out / f"{name}.log"
    models = {kind: out / f"{name}.{kind}.npz" for kind in ("plain", "default", "tuned")}
    config = out / f"{name}.yaml"
    call([*kcrf, "train", training, "--plain", "-o", models["plain"], *own], log)
    call([*kcrf, "train", training, "-o", models["default"], *own], log)
    call([*kcrf, "tune", training, "-o", config, "--budget", f"{budget:g}s", "-v", *own], log)
    call([*kcrf, "train", training, "-c", config, "-o", models["tuned"], *own], log)
    found: dict[str, object] = {"chosen": config.read_text(encoding="utf-8").split("\n")[0].partition(": ")[2]}
    for kind, model in models.items():
        scores = json.loads(call([*kcrf, "evaluate", "-m", model, test, "--json", *own], log))
        found["metric"] = "f1" if scores.get("spans") else "accuracy"
        found[kind] = 100 * (scores["spans"]["f1"] if scores.get("spans") else scores["accuracy"])
    for kind in ("plain", "default"):
        command = [*kcrf, "evaluate", "-m", models["tuned"], "--compare", models[kind], test, "--json", *own]
        found[f"{kind} compared"] = json.loads(call(command, log))["comparison"]["figures"][str(found["metric"])]
    return found


def row(name: str, found: dict[str, object]) -> list[str]:
    metric = str(found["metric"])
    figures = [f"{found[kind]:.2f}" for kind in ("plain", "default", "tuned")]
    chances = [f"{found[f'{kind} compared']['p_value']:.3f}" for kind in ("plain", "default")]
    return [name, "F1" if metric == "f1" else metric, str(found["chosen"]).rstrip("."), *figures, *chances]


HEADER = [
    "set",
    "figure",
    "chosen",
    "plain linear",
    "no configuration",
    "tune",
    "p, tune and plain",
    "p, tune and none",
]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--kcrf", default="kcrf", help="the command, perhaps with words before it")
    options.add_argument("--out", type=Path, default=Path("build"))
    options.add_argument("--budget", type=float, default=120.0, help="seconds of each search")
    options.add_argument("--threads", default=None)
    options.add_argument("--readme", type=Path, default=None, help="where to put the table")
    options.add_argument("sets", nargs="*", choices=[[], *SETS], default=list(SETS))
    given = options.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    own = [] if given.threads is None else ["--threads", given.threads]
    rows = []
    for name in given.sets:
        path = given.out / f"{name}.json"
        if not path.exists():
            found = compared(name, given.data, given.out, given.kcrf.split(), given.budget, own)
            path.write_text(json.dumps(found, indent=1) + "\n")
        rows.append(row(name, json.loads(path.read_text())))
        print(" | ".join(rows[-1]), flush=True)
    if given.readme is not None:
        from readme import fill, table

        fill(given.readme, table(HEADER, rows, 3))


if __name__ == "__main__":
    main()
