"""Record what held-out data and a test part say about sigma2: grid.py TRAIN TEST OUT [--template FILE] [--metric M].

All terms of `kcrf train` move together on the grid of the search, from where it begins. OUT, a pickle, has for each
step the counts of single held-out sequences, as the search sees them, with several seeds and also with fits to two
thirds, and of test sequences, with fits to all training data.
"""

from __future__ import annotations

import argparse
import pickle
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from kcrf_core import Workers, read_corpus, train
from kcrf_core.config.templates import load_template
from kcrf_core.encoding import UNKNOWN
from kcrf_core.objective.solvers import ALL_TERMS
from kcrf_core.scoring import DECODINGS, SMALLEST_PROBABILITY, choose_yardstick
from kcrf_core.training import WarmStart, make_splits, prepare
from kcrf_core.training.prior_search import GRID_FACTOR, _beginnings, _Search, operations, plan_splits
from kcrf_core.training.training import TrainingRun, TrainOptions

SCALES = (0.4, 0.55, 0.75, 1.3)


def whole(gold: np.ndarray, labels: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return 1 for each sequence without a wrong label, [S]."""
    return (np.add.reduceat((gold != labels).astype(int), offsets[:-1]) == 0).astype(int)


def tempered_logs(search, key, sigma2: dict[str, float], scale: float) -> np.ndarray:
    """Return counts of log p with all scores multiplied by a number."""
    logs = []
    for fold in search._folds:
        held, problem = fold.held.objective(sigma2), fold.held.problem
        theta = held.vector({j: scale * block for j, block in enumerate(fold.fits[key])})
        gold = np.log(np.maximum(held.engine.predictions(theta).gold.astype(np.float64), SMALLEST_PROBABILITY))
        own = search._log_loss.counts(problem.labels, None, gold, problem.offsets, problem.weights)
        logs.append(fold.by_unit(own))
    return np.concatenate(logs)


def searched(run: TrainingRun, task, splits, steps: list[int]) -> dict:
    """Look at all steps as the search does, on some splits."""
    names = [term.config.name for term in task.terms]
    scales = {term.config.name: term.mean_diagonal for term in task.terms}
    about = None, {}, lambda: False, run._problem.positions
    search = _Search(task, splits, run._yardstick, {}, scales, run._minimiser, *about)
    search._usual = len(steps)
    found = {}
    for step in steps:
        before = search._work
        key = (step,) * len(names)
        looked = search._looked(key, ALL_TERMS)
        search._found[key] = looked
        tempered = {scale: tempered_logs(search, key, looked.trial.sigma2, scale) for scale in SCALES}
        found[step] = {"logs": looked.logs, "counts": looked.counts, "sequences": looked.sequences,
                       "tempered": tempered, "sigma2": looked.trial.sigma2, "work": search._work - before}  # fmt: skip
    return {"fit": splits.splits[0].fit.positions, "kind": splits.kind, "folds": len(splits.splits),
            "units": splits.units, "passes": {key[0]: value for key, value in search._passes.items()},
            "steps": found}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("out", type=Path)
    parser.add_argument("--template")
    parser.add_argument("--metric", default="auto")
    parser.add_argument("--parts", nargs="*", default=["search0", "search1", "search2", "thirds0", "test"],
                        help="search and thirds, of which two are fitted on, with a seed; test")  # fmt: skip
    parser.add_argument("--low", type=int, default=-3)
    parser.add_argument("--high", type=int, default=4)
    asked = parser.parse_args()
    began = time.process_time()
    raw = (
        load_template(Path(asked.template).read_text(encoding="utf-8"), asked.template, True)
        if asked.template
        else None
    )
    options = {} if asked.metric == "auto" else {"metric": asked.metric}
    steps = sorted(range(asked.low, asked.high + 1), key=lambda step: (step < 0, abs(step)))
    with Workers(1) as workers:
        prepared = prepare(asked.train, raw, options, workers=workers)
        encoding, dataset, config = prepared.encoding, prepared.dataset, prepared.config
        out = {"compared": str(prepared.compared), "labels": len(encoding.labels), "positions": dataset.positions,
               "sequences": dataset.sequences}  # fmt: skip
        run = TrainingRun(encoding, dataset, config, workers, TrainOptions())
        task = run.fit_terms()
        out["metric"], out["terms"] = run._yardstick.name, [term.config.name for term in task.terms]
        out["parameters"] = [0 if term.map is None else term.map.size for term in task.terms]
        out["operations"] = operations(task)
        free, reach = len(task.terms), max(encoding.reach([n for term in task.terms for n in term.features]))
        start = _beginnings(task, {term.config.name: term.mean_diagonal for term in task.terms})
        out["sigma2"] = {step: {n: float(f"{v * GRID_FACTOR**step:.3g}") for n, v in start.items()} for step in steps}
        for part in asked.parts:
            kind, seed = part[:6], int(part[6:] or 0)
            if kind == "search":
                splits = plan_splits(task, free, run.hold_out, seed, reach)
            elif kind == "thirds":
                if len(plan_splits(task, free, run.hold_out, seed, reach).splits) > 1:
                    continue
                splits = make_splits(run._problem, seed=seed, wishes=run.hold_out, reach=reach, folds=3)
                splits = replace(splits, splits=splits.splits[:1])
            else:
                continue
            out[part] = searched(run, task, splits, steps)
            print(asked.out, part, time.process_time() - began, flush=True)
        test = encoding.encode(read_corpus(asked.test, None, config.columns, layout=config.layout))
        gold = np.where(test.labels == UNKNOWN, len(encoding.labels), test.labels)
        yardstick = choose_yardstick(encoding.labels, "accuracy")
        start, out["test"] = None, {}
        for step in sorted(steps) if "test" in asked.parts else []:
            sigma2 = out["sigma2"][step]
            terms = tuple(replace(term, sigma2=sigma2[term.name]) for term in config.terms)
            own = replace(config, terms=terms, training=replace(config.training, tolerance=0.003))
            model, report = train(encoding, dataset, own, workers=workers, start=start)
            start = WarmStart(model)
            labels = {decode: replace(model, decode=decode).tag(test, workers) for decode in DECODINGS}
            out["test"][step] = {
                "passes": report.result.passes,
                "counts": {name: yardstick.counts(gold, own, None, test.offsets) for name, own in labels.items()},
                "whole": {name: whole(gold, own, test.offsets) for name, own in labels.items()},
            }
            print(asked.out, "test", step, report.result.passes, time.process_time() - began, flush=True)
    out["seconds"] = time.process_time() - began
    asked.out.write_bytes(pickle.dumps(out))


if __name__ == "__main__":
    main()
