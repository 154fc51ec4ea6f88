"""Does `kcrf tune` lose to no configuration? `compare.py --out OUT --jobs 8 --budget 75 [SET ...]`.

Each set is trained without a configuration, by `kcrf tune -m` with a budget that includes training, and, if its truth
is known (`generated.py`), with a configuration that was told. The test part is looked at once for each. P-values are
those of paired tests (`kcrf evaluate --compare`), corrected for the number of sets by Holm's method. What is done is
not done again: OUT/SET.json has the figures of a set. `--jobs` sets are computed at the same time, the largest first.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from generated import TASKS
from made import EVERY, emitted, remainders, rings, two_back
from parts import BY_F1, SEED, SETS, Part, call, sequences
from readme import fill, table

ROOT = Path(__file__).parents[2]
SAMPLES = {"pitch_accent": (), "digits": ("--shape", "8x8"), "addresses": (), "sentences": ()}
MADE = {each.__name__: each for each in (rings, remainders, emitted, two_back)}


def parted(every: list[str], options: tuple[str, ...] = (), suffix: str = "conll") -> Part:
    training = [one for number, one in enumerate(every) if number % EVERY != EVERY - 1]
    return Part("all", training, every[EVERY - 1 :: EVERY], options, suffix)


def texts(rows: list[Any]) -> list[str]:
    return ["\n".join("\t".join(row) for row in each) for each in rows]


def sample(name: str, data: Path) -> Part:
    (path,) = (ROOT / "sample_data").glob(f"{name}.conll*")
    return parted(sequences(path), SAMPLES[name], path.suffix[1:])


def made(name: str, data: Path) -> Part:
    training, test = MADE[name](np.random.default_rng(SEED))
    return Part("all", texts(training), texts(test))


def generated(name: str, data: Path) -> Part:
    every = texts(TASKS[name](np.random.default_rng(SEED))[0])
    return Part("all", every[::2], every[1::2])


def first(parts: Callable[[Path], Iterator[Part]], data: Path) -> Part:
    return next(parts(data))


def accents(data: Path) -> Part:
    """The first of ten folds by conversation."""
    folds = (data / "swbd_accent/folds.txt").read_text().split()
    (path,) = (data / "swbd_accent").glob("*.conll")
    both = list(zip(sequences(path), folds, strict=True))
    zero = min(folds)
    return Part("all", [one for one, fold in both if fold != zero], [one for one, fold in both if fold == zero])


# The largest first, so that no long one is left at the end; of several parts, the first.
EVERYTHING: dict[str, Callable[[Path], Part]] = {
    **{name: partial(first, parts) for name, parts in SETS.items()},
    "accents": accents,
    **{name: partial(sample, name) for name in SAMPLES},
    **{name: partial(made, name) for name in MADE},
    **{name: partial(generated, name) for name in TASKS},
}


def compared(name: str, given: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of a set, from its file if there is one."""
    path = given.out / f"{name}.json"
    if path.exists():
        return json.loads(path.read_text())
    folder = given.out / name
    folder.mkdir(parents=True, exist_ok=True)
    part = EVERYTHING[name](given.data)
    training, test = (folder / f"{which}.{part.suffix}" for which in ("training", "test"))
    for which, every in ((training, part.training), (test, part.test)):
        which.write_text("\n\n".join(every) + "\n", encoding="utf-8")
    own, kcrf = ("--threads", str(given.threads)), given.kcrf.split()
    models = {kind: folder / f"{kind}.npz" for kind in ("default", "tuned")}
    grouped = part.options[part.options.index("--group") :] if "--group" in part.options else ()
    call([*kcrf, "train", training, "-o", models["default"], *grouped, *own], folder)
    limit = ("--budget", given.budget)
    tuning = [training, "-o", folder / "tuned.yaml", "-m", models["tuned"], *limit, "-v", "--json", *part.options, *own]
    found = json.loads(call([*kcrf, "tune", *tuning], folder))
    if name in TASKS:
        models["told"] = folder / "told.npz"
        told = folder / "told.yaml"
        told.write_text(json.dumps(TASKS[name](np.random.default_rng(SEED))[1]), encoding="utf-8")
        call([*kcrf, "train", training, "-c", told, "-o", models["told"], *own], folder)
    out: dict[str, Any] = {"chosen": found["chosen"]["title"]}
    out["default kept"] = found["default"] is not None and found["chosen"]["candidate"] == found["default"]["candidate"]
    out["metric"] = metric = "f1" if name in BY_F1 else "accuracy"
    out["estimate"], out["training"] = found["chosen"]["training_seconds"], found["training"]["seconds"]
    for kind, model in models.items():
        scores = json.loads(call([*kcrf, "evaluate", "-m", model, test, "--json", *own], folder))
        out[kind] = 100 * (scores["spans"]["f1"] if metric == "f1" else scores["accuracy"])
    both = [*kcrf, "evaluate", "-m", models["tuned"], "--compare", models["default"], test, "--json", *own]
    out["p"] = json.loads(call(both, folder))["comparison"]["figures"][metric]["p_value"]
    path.write_text(json.dumps(out, indent=1) + "\n")
    return out


def holm(values: list[float]) -> list[float]:
    """Return p-values corrected for their number by Holm's method."""
    order = np.argsort(values)
    steps = np.maximum.accumulate([(len(values) - rank) * values[k] for rank, k in enumerate(order)])
    out = np.empty(len(values))
    out[order] = np.minimum(steps, 1.0)
    return out.tolist()


HEADER = ("set", "chosen", "figure", "default", "tuned", "difference", "p", "p (Holm)", "told", "training s (estimate)")


def rows(results: dict[str, dict[str, Any]]) -> list[list[str]]:
    corrected = holm([one["p"] for one in results.values()])
    return [
        [
            name,
            "default" if one["default kept"] else one["chosen"],
            "F1" if one["metric"] == "f1" else one["metric"],
            *(f"{one[kind]:.2f}" for kind in ("default", "tuned")),
            f"{one['tuned'] - one['default']:+.2f}",
            f"{one['p']:.3f}",
            f"{p:.3f}",
            f"{one['told']:.2f}" if "told" in one else "",
            f"{one['training']:.1f} ({one['estimate']:.1f})",
        ]
        for (name, one), p in zip(results.items(), corrected, strict=True)
    ]


def summary(results: dict[str, dict[str, Any]]) -> str:
    differences = [one["tuned"] - one["default"] for one in results.values()]
    corrected = holm([one["p"] for one in results.values()])
    worse = [name for name, d, p in zip(results, differences, corrected, strict=True) if d < 0 and p < 0.05]
    told = {name: one["tuned"] - one["told"] for name, one in results.items() if "told" in one}
    lines = [f"{len(results)} sets: mean difference {np.mean(differences):+.2f} points; significantly worse: "
             f"{', '.join(worse) or 'none'}."]  # fmt: skip
    if told:
        least = min(told, key=lambda name: told[name])
        lines.append(f"Against the told models the least difference is {told[least]:+.2f} points ({least}).")
    return " ".join(lines)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--data", type=Path, default=ROOT / "../shared/data", help="folder of data sets")
    options.add_argument("--kcrf", default="kcrf", help="the command, perhaps with words before it")
    options.add_argument("--out", type=Path, default=Path("build/compare"))
    options.add_argument("--budget", type=float, default=75.0, help="seconds of each search, training included")
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--jobs", type=int, default=1, help="sets at the same time")
    options.add_argument("--readme", type=Path, default=None, help="where to put the table, beside printing it")
    options.add_argument("--report", action="store_true", help="of sets that have been computed; compute none")
    options.add_argument("sets", nargs="*", metavar="SET", help=f"default: {', '.join(EVERYTHING)}")
    given = options.parse_args()
    given.sets = given.sets or list(EVERYTHING)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    given.out.mkdir(parents=True, exist_ok=True)
    if given.report:
        given.sets = [name for name in given.sets if (given.out / f"{name}.json").exists()]
    results, failed = {}, {}
    with ThreadPoolExecutor(given.jobs) as pool:
        running = {name: pool.submit(compared, name, given) for name in given.sets}
        for name, future in running.items():
            try:
                results[name] = future.result()
                print(name, results[name], flush=True)
            except (OSError, SystemExit, ValueError) as error:  # data that is not there; the others go on
                failed[name] = error
                print(f"{name}: {error}", file=sys.stderr, flush=True)
    if not results:
        raise SystemExit("no set could be compared")
    text = f"{table(HEADER, rows(results), 3)}\n\n{summary(results)}"
    threads = f"{given.threads} thread{'s' * (given.threads > 1)}"
    about = f"{given.budget:g} seconds, training included, and {threads} for each set, {given.jobs} at the same time."
    if given.readme is None:
        print(f"\n{text} {about}")
    else:
        fill(given.readme, f"{text} {about}", SEED, name="comparison")
    if failed:
        raise SystemExit(f"left out: {', '.join(failed)}")


if __name__ == "__main__":
    main()
