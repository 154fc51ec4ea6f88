"""Cross-validation: folds of whole sequences, a grid of settings, results as plain data.

Vocabularies, scaling, pivots and sigma2 are fitted anew on the training part of each fold, so that nothing of
the test part leaks into them. Labels that a training part lacks are counted wrong and reported.
"""

from __future__ import annotations

import itertools
import multiprocessing
import signal
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

import numpy as np

from .config_options import with_options
from .config_reader import parse_config
from .corpus import Corpus
from .encoding import fit_encoding
from .errors import ConfigError, DataError, KcrfError
from .evaluation import evaluate
from .parallel import Workers, available_threads
from .schemes import detect_scheme
from .training import train

SCHEMA = 1


@dataclass(frozen=True)
class Plan:
    """Everything that decides the results."""

    corpus: Corpus
    raw: Mapping[str, Any]  # configuration
    source: str  # where it came from, for messages
    settings: tuple[dict[str, Any], ...]  # options laid over it, one for each point of the grid
    folds: tuple[np.ndarray, ...]  # sequences of each test part


@dataclass(frozen=True)
class Task:
    setting: int
    fold: int


def make_plan(
    corpus: Corpus,
    raw: Mapping[str, Any],
    source: str,
    options: Mapping[str, Any],
    grid: Mapping[str, Sequence[Any]],
    fold_count: int,
) -> Plan:
    """Check every setting of the grid and deal the sequences into folds, the same ones for all settings."""
    if corpus.sequences < fold_count:
        raise DataError(f"{corpus.sequences} sequences cannot make {fold_count} folds", corpus.source)
    settings = tuple(
        {**options, **dict(zip(grid, values, strict=True))} for values in itertools.product(*grid.values())
    )
    for setting in settings:
        parse_config(with_options(raw, setting), source)
    seed = parse_config(with_options(raw, options), source).training.seed
    order = np.random.default_rng([seed, 2]).permutation(corpus.sequences)
    folds = tuple(np.sort(part) for part in np.array_split(order, fold_count))
    return Plan(corpus, raw, source, settings, folds)


def run_task(plan: Plan, task: Task, threads: int | None) -> dict[str, Any]:
    """Train on all folds but one and judge on that one."""
    began = time.perf_counter()
    test = plan.folds[task.fold]
    rest = np.setdiff1d(np.arange(plan.corpus.sequences), test)
    training_part, test_part = plan.corpus.subset(rest), plan.corpus.subset(test)
    config = parse_config(with_options(plan.raw, plan.settings[task.setting]), plan.source)
    encoding, dataset = fit_encoding(config, training_part)
    with Workers(threads) as workers:
        model, report = train(encoding, dataset, config, workers=workers)
        tagged = model.tag_corpus(test_part)
    # By all labels of the corpus: a fold may lack those that show the scheme.
    scheme = detect_scheme(set(plan.corpus.columns[-1]))
    scores = evaluate(test_part.columns[-1], tagged, test_part.offsets, scheme=scheme)
    known = set(model.labels)
    return {
        "fold": task.fold,
        "sequences": scores.sequences,
        "positions": scores.positions,
        "accuracy": scores.accuracy,
        "sequence_accuracy": scores.sequence_accuracy,
        "f1": None if scores.spans is None else scores.spans.total.f1,
        "unknown_gold": sum(label not in known for label in test_part.columns[-1]),
        "training": report.to_dict(),
        "seconds": round(time.perf_counter() - began, 3),
    }


# ----------------------------------------------------------------------------- running


def run_plan(
    plan: Plan, jobs: int = 1, threads: int | None = None, done: Callable[[Task], None] | None = None
) -> dict[str, Any]:
    """All folds of all settings, on `jobs` processes; results do not depend on how many."""
    tasks = [Task(s, f) for s in range(len(plan.settings)) for f in range(len(plan.folds))]
    found: dict[Task, dict[str, Any]] = {}
    for task, result in _results(plan, tasks, jobs, threads):
        found[task] = result
        if done is not None:
            done(task)
    return summarise(plan, found)


def _results(
    plan: Plan, tasks: Sequence[Task], jobs: int, threads: int | None
) -> Iterator[tuple[Task, dict[str, Any]]]:
    jobs = min(jobs, len(tasks))
    if jobs == 1:
        for task in tasks:
            yield task, run_task(plan, task, threads)
        return
    threads = threads or max(1, available_threads() // jobs)
    # Spawned, not forked: a fork of a process with BLAS threads may hang.
    pool = ProcessPoolExecutor(
        jobs, multiprocessing.get_context("spawn"), initializer=_start_worker, initargs=(plan, threads)
    )
    try:
        futures = {pool.submit(_work, task): task for task in tasks}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool:
        raise KcrfError("a worker process died, perhaps for lack of memory: try fewer --jobs") from None
    finally:
        workers = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:  # nothing to do for them any more, or too late
            worker.terminate()
        for worker in workers:
            worker.join()


_worker_state: tuple[Plan, int] | None = None


def _start_worker(plan: Plan, threads: int) -> None:
    global _worker_state
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends us
    _worker_state = (plan, threads)


def _work(task: Task) -> dict[str, Any]:
    plan, threads = _worker_state
    return run_task(plan, task, threads)


# ----------------------------------------------------------------------------- results


def summarise(plan: Plan, found: Mapping[Task, dict[str, Any]]) -> dict[str, Any]:
    """Results by setting, with mean and standard deviation over folds."""
    settings = []
    for s, setting in enumerate(plan.settings):
        folds = [found[Task(s, f)] for f in range(len(plan.folds))]
        entry: dict[str, Any] = {"setting": setting}
        for measure in ("accuracy", "sequence_accuracy", "f1"):
            values = [fold[measure] for fold in folds]
            if None not in values:
                entry[measure] = {
                    "mean": statistics.fmean(values),
                    "deviation": statistics.stdev(values) if len(values) > 1 else 0.0,
                }
        entry["folds"] = folds
        settings.append(entry)
    judged_by = "f1" if all("f1" in entry for entry in settings) else "accuracy"
    best = max(range(len(settings)), key=lambda s: settings[s][judged_by]["mean"])
    return {
        "schema": SCHEMA,
        "folds": len(plan.folds),
        "sequences": plan.corpus.sequences,
        "positions": plan.corpus.positions,
        "judged_by": judged_by,
        "best": best,
        "settings": settings,
    }


def parse_grid(entries: Sequence[str]) -> dict[str, list[Any]]:
    """`degree=1,2,3` and the like, as {"degree": [1, 2, 3]}."""
    import yaml

    grid: dict[str, list[Any]] = {}
    for entry in entries:
        key, equals, values = entry.partition("=")
        key = key.strip().replace("-", "_")
        key = {"method": "select"}.get(key, key)
        if not equals or not key or not values.strip():
            raise ConfigError(f"--grid takes KEY=VALUE,VALUE,... such as degree=1,2,3, not '{entry}'")
        if key in grid:
            raise ConfigError(f"--grid names '{key}' twice")
        try:
            grid[key] = [yaml.safe_load(value) for value in values.split(",")]
            if key == "c2":  # CRFsuite's name for the same
                grid["sigma2"] = [1.0 / (2.0 * float(value)) for value in grid.pop("c2")]
        except (yaml.YAMLError, ValueError, TypeError, ZeroDivisionError):
            raise ConfigError(f"--grid cannot read the values of '{entry}'") from None
    return grid
