"""Sets of sequences for `compare.py`, each in training and test parts, and the call of a command."""

from __future__ import annotations

import random
import subprocess
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
BY_F1 = ("conll2000", "wnut17", "newspapers")  # what a set is judged by in the literature, else accuracy


def call(command: list[object], folder: Path) -> str:
    with (folder / "log.txt").open("a") as log:
        done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=log, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit code {done.returncode}, see {folder / 'log.txt'}")
    return done.stdout
