"""Labelling by `kcrf next` and at random: `measure.py DATA SETS RUN ... --jobs N`, each RUN a name SET-ARM-SEED.

DATA is a folder with conll2000, wnut17 and ocr, SETS one with a folder for each of the others, of train.conll and
test.conll. A run begins with START random sequences and labels a quarter more of them at each step, by their gold
labels. ARM is `random`, or strategy and cost of `kcrf next` as `entropy.position`; with `.alone` behind it, sequences
are chosen by their scores alone. `SET-full-0` is the score of all data; runs end when two scores in a row reach 99 % of
it. `build/RUN.json` has positions labelled, scores and processor times of the steps.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy.sparse

from kcrf_core import metrics
from kcrf_core.config import Config
from kcrf_core.corpora import Corpus, read_corpus
from kcrf_core.encoding import configured, fit_encoding
from kcrf_core.model import Model
from kcrf_core.scoring import detect_scheme
from kcrf_core.selection import Pool, PoolJudge
from kcrf_core.system import Workers
from kcrf_core.training import WarmStart, train

START, STEP = 100, 1.25
FULL, ENOUGH = "full", 0.99
TOLERANCE = 0.01  # of fits, both arms
SIGMA2 = {"wnut17": 5.0, "ocr": 10.0}  # else 1
OWN = ("conll2000", "wnut17", "ocr")  # sets in DATA


@dataclass(frozen=True)
class Set:
    """A set with the default configuration of `kcrf train`, compared with no other, and a fixed prior variance."""

    pool: Corpus
    test: Corpus
    config: Config

    @classmethod
    def of(cls, name: str, data: Path, sets: Path) -> Set:
        folder = data / name if name in OWN else next(sets.glob(f"*/{name}"), sets / name)
        chosen = {"sigma2": SIGMA2.get(name, 1.0), "tolerance": TOLERANCE, "decode": "viterbi"}
        if name == "ocr":  # train on folds 1 to 9, test on fold 0
            folds = np.array((folder / "folds.txt").read_text().split(), dtype=int)
            both = read_corpus(folder / "all.conll")
            pool, test = both.subset(np.flatnonzero(folds)), both.subset(np.flatnonzero(folds == 0))
            chosen["kernel"] = "linear"
        else:
            pool, test = read_corpus(folder / "train.conll"), read_corpus(folder / "test.conll")
        return cls(pool, test, configured({}, chosen, pool, "options")[0])

    def fit(self, which: np.ndarray, before: Model | None, workers: Workers) -> Model:
        encoding, dataset = fit_encoding(self.config, self.pool.subset(which))
        start = None if before is None else WarmStart(before, "the model of the step before")
        return train(encoding, dataset, self.config, workers=workers, start=start)[0]

    def score(self, model: Model, workers: Workers) -> float:
        """Return F1 of spans where labels follow a scheme, else accuracy."""
        gold, found = list(self.test.columns[-1]), model.tag_corpus(self.test, workers)
        cuts = self.test.offsets[1:-1]
        pairs = [[list(part) for part in np.split(np.array(labels), cuts)] for labels in (gold, found)]
        if detect_scheme(sorted(set(gold))) is None:
            return float(metrics.flat_accuracy_score(*pairs))
        return float(metrics.span_f1_score(*pairs))


def chosen(one: Set, model: Model, left: np.ndarray, count: int, arm: str) -> np.ndarray:
    """Return the sequences that `kcrf next` chooses among those left."""
    strategy, cost, *alone = arm.split(".")
    rest = one.pool.subset(left)
    rest = replace(rest, columns=tuple(rest.columns)[:-1])
    pool, before = Pool(count), 0
    for part in PoolJudge(model, strategy, cost).parts(rest):
        if alone:
            part = replace(part, values=scipy.sparse.csr_array(part.values.shape))
        pool.add(part, lambda s, first=before: first + s)
        before += len(part.scores)
    picked = [candidate.content for candidate, _ in pool.chosen()]
    if len(picked) < count:  # the others are copies of each other, or of labelled ones
        more = np.setdiff1d(np.arange(len(left)), picked)[: count - len(picked)]
        picked += more.tolist()
    return left[np.array(picked, dtype=np.int64)]


def measure(name: str, arm: str, seed: int, data: Path, sets: Path, out: Path) -> dict[str, object]:
    one, steps = Set.of(name, data, sets), list[dict[str, float]]()
    lengths = np.diff(one.pool.offsets)
    order = np.random.default_rng(seed).permutation(one.pool.sequences)
    target = np.inf
    if arm == FULL:
        taken, left = np.arange(one.pool.sequences), order[:0]
    else:
        target = ENOUGH * json.loads((out / f"{name}-{FULL}-0.json").read_text())["steps"][0]["score"]
        taken, left = order[:START], order[START:]
    model: Model | None = None
    with Workers(1) as workers:
        while True:
            began = time.process_time()
            model = one.fit(np.sort(taken), model, workers)
            score = one.score(model, workers)
            fitted = time.process_time()
            steps.append({"sequences": len(taken), "positions": int(lengths[taken].sum()), "score": score})
            if not len(left) or (len(steps) > 1 and min(each["score"] for each in steps[-2:]) >= target):
                break
            count = min(round(len(taken) * (STEP - 1)), len(left))
            next_ = left[:count]
            if arm != "random":
                next_ = chosen(one, model, left, count, arm)
            taken, left = np.concatenate([taken, next_]), left[~np.isin(left, next_)]
            steps[-1] |= {"fit_s": fitted - began, "choice_s": time.process_time() - fitted}
    return {"set": name, "arm": arm, "seed": seed, "pool": int(lengths.sum()), "steps": steps}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("sets", type=Path)
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "build")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    waiting = [run for run in given.runs if not (given.out / f"{run}.json").exists()]
    if given.runs[1:]:
        full = dict.fromkeys(f"{run.split('-')[0]}-{FULL}-0" for run in given.runs)
        for group in ([run for run in full if not (given.out / f"{run}.json").exists()], waiting):
            beside(group, given)
    elif waiting:
        name, _, rest = given.runs[0].partition("-")
        arm, _, seed = rest.rpartition("-")
        result = measure(name, arm, int(seed), given.data, given.sets, given.out)
        (given.out / f"{given.runs[0]}.json").write_text(json.dumps(result) + "\n")


def beside(runs: list[str], given: argparse.Namespace) -> None:
    """Do runs in processes of one thread each, so many at the same time."""
    running: list[subprocess.Popen[bytes]] = []
    for run in runs:
        while len(running) >= given.jobs:
            time.sleep(0.05)
            running = [process for process in running if process.poll() is None]
        command = [sys.executable, __file__, given.data, given.sets, run, "--out", given.out]
        running.append(subprocess.Popen(list(map(str, command))))
    for process in running:
        process.wait()


if __name__ == "__main__":
    main()
