"""`kcrf tune`, `train` and `evaluate` on one set after another: `run.py --data DATA --kcrf KCRF --out OUT [SET ...]`.

Each set has training and test parts; the search sees the training part alone, for `--budget` seconds, and the test part
is looked at once. What is done is not done again: OUT/SET.json has the figures of a set, of each of its parts if it has
several. The script needs nothing but Python and `kcrf`.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

SEED = 0


@dataclass(frozen=True)
class Part:
    """Sequences to train on and to test on, as texts, and what the search is told."""

    name: str
    training: list[str]
    test: list[str]
    options: tuple[str, ...] = ()
    suffix: str = "conll"


def sequences(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").strip("\n").split("\n\n")


def whole(training: str, test: str) -> Callable[[Path], Iterator[Part]]:
    def parts(data: Path) -> Iterator[Part]:
        yield Part("all", sequences(data / training), sequences(data / test))

    return parts


def ocr_small(data: Path) -> Iterator[Part]:
    folds = (data / "ocr/folds.txt").read_text().split()
    words = sequences(data / "ocr/all.conll")
    training = [word for word, fold in zip(words, folds, strict=True) if fold == "0"]
    test = [word for word, fold in zip(words, folds, strict=True) if fold != "0"]
    yield Part("all", training, test, ("--shape", "16x8"))


def ocr_words(data: Path) -> Iterator[Part]:
    """A fifth of the distinct words is for the test alone; the first column says which word it is."""
    words = sequences(data / "ocr/all.conll")
    spelled = ["".join(line.split()[-1] for line in word.split("\n")) for word in words]
    distinct = sorted(set(spelled))
    held_out = set(random.Random(SEED).sample(distinct, round(0.2 * len(distinct))))
    named = [
        "\n".join(f"{name}\t" + "\t".join(line.split()) for line in word.split("\n"))
        for name, word in zip(spelled, words, strict=True)
    ]
    training = [word for name, word in zip(spelled, named, strict=True) if name not in held_out]
    test = [word for name, word in zip(spelled, named, strict=True) if name in held_out]
    yield Part("all", training, test, ("--shape", "16x8", "--group", "c0"))


def activity(data: Path) -> Iterator[Part]:
    """The five folds of whole trials that `experiments/activity` has."""
    from kcrf_core.corpora import read_corpus
    from kcrf_core.selection import Division, Task, make_plan, make_settings

    path = data / "batteryless_adl/all.conll"
    trials = sequences(path)
    division = Division(5, stratify=True, seed=SEED)
    plan = make_plan(read_corpus(str(path)), {}, "", make_settings({}, {"seed": SEED}), division)
    for fold in range(len(plan.folds)):
        training, test = ([trials[number] for number in part] for part in plan.parts(Task(0, fold)))
        yield Part(f"fold{fold}", training, test)


def gpstruct(task: str) -> Callable[[Path], Iterator[Part]]:
    def parts(data: Path) -> Iterator[Part]:
        for split in range(1, 6):
            training, test = (
                sequences(data / f"gpstruct/{task}/split{split}.{which}.crfsuite") for which in ("train", "test")
            )
            yield Part(f"split{split}", training, test, ("--metric", "accuracy"), "crfsuite")

    return parts


TASKS = ("basenp", "chunking", "segmentation", "japanesene")
SETS: dict[str, Callable[[Path], Iterator[Part]]] = {
    "conll2000": whole("conll2000/train.conll", "conll2000/test.conll"),
    "wnut17": whole("wnut17/train.conll", "wnut17/test.conll"),
    "ocr_small": ocr_small,
    "ocr_words": ocr_words,
    "activity": activity,
    "prosody": whole("helsinki_prosody/dev.2class.conll", "helsinki_prosody/test.2class.conll"),
    **{f"gpstruct_{task}": gpstruct(task) for task in TASKS},
}
# What a set is judged by in the literature, and the part of the budget that each search gets.
BY_F1 = ("conll2000", "wnut17")
SHARES = {f"gpstruct_{task}": 0.1 for task in TASKS}


def judged(part: Part, folder: Path, kcrf: list[str], budget: float, threads: str | None) -> dict[str, object]:
    """Tune, train and evaluate one part."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {which: folder / f"{which}.{part.suffix}" for which in ("training", "test")}
    for which, path in paths.items():
        path.write_text("\n\n".join(getattr(part, which)) + "\n", encoding="utf-8")
    config, model = folder / "config.yaml", folder / "model.npz"
    own = () if threads is None else ("--threads", threads)
    began = time.perf_counter()
    call(
        [*kcrf, "tune", paths["training"], "-o", config, "--budget", f"{budget:g}s", *part.options, *own, "-v"], folder
    )
    tuned = time.perf_counter()
    call([*kcrf, "train", paths["training"], "-c", config, "-o", model, *own], folder)
    trained = time.perf_counter()
    done = call([*kcrf, "evaluate", "-m", model, paths["test"], "--json", *own], folder)
    found = json.loads(done)
    return {
        "part": part.name,
        "accuracy": found["accuracy"],
        "f1": (found.get("spans") or {}).get("f1"),
        "chosen": config.read_text(encoding="utf-8").split("\n")[0].partition(": ")[2],
        "held_out": config.read_text(encoding="utf-8").split("\n")[1].lstrip("# "),
        "tune_seconds": round(tuned - began, 1),
        "train_seconds": round(trained - tuned, 1),
    }


def call(command: list[object], folder: Path) -> str:
    with (folder / "log.txt").open("a") as log:
        done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=log, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit code {done.returncode}, see {folder / 'log.txt'}")
    return done.stdout


def line(name: str, results: list[dict[str, object]]) -> str:
    measure = "f1" if name in BY_F1 else "accuracy"
    mean = 100 * sum(one[measure] for one in results) / len(results)
    seconds = (sum(one[key] for one in results) / len(results) for key in ("tune_seconds", "train_seconds"))
    tune_seconds, train_seconds = seconds
    shown = f"F1 {mean:.2f}" if measure == "f1" else f"accuracy {mean:.2f}, error {100 - mean:.2f}"
    chosen = " / ".join(dict.fromkeys(str(one["chosen"]) for one in results))
    return f"| {name} | {shown} | {tune_seconds:.0f} | {train_seconds:.0f} | {chosen} |"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--kcrf", default="kcrf", help="the command, perhaps with words before it")
    options.add_argument("--out", type=Path, default=Path("build"))
    options.add_argument("--budget", type=float, default=600.0, help="seconds of each search")
    options.add_argument("--threads", default=None)
    options.add_argument("--readme", type=Path, default=None, help="where to put the table, beside printing it")
    options.add_argument("--parts", type=int, default=None, help="only so many parts of a set")
    options.add_argument("sets", nargs="*", choices=[[], *SETS], default=list(SETS))
    given = options.parse_args()
    rows = []
    for name in given.sets:
        path = given.out / f"{name}.json"
        if not path.exists():
            results = []
            for part in list(SETS[name](given.data))[: given.parts]:
                budget = given.budget * SHARES.get(name, 1.0)
                results.append(judged(part, given.out / name / part.name, given.kcrf.split(), budget, given.threads))
                print(f"{name} {results[-1]}", flush=True)
            path.write_text(json.dumps(results, indent=1) + "\n")
        rows.append(line(name, json.loads(path.read_text())))
        print(rows[-1], flush=True)
    header = "| set | test | tune s | train s | chosen |\n| --- | --- | ---: | ---: | --- |"
    if given.readme is None:
        print("\n".join(["", header, *rows]))
    else:
        from readme import fill

        fill(given.readme, "\n".join([header, *rows]), SEED)


if __name__ == "__main__":
    main()
