"""Cross-validation: folds of whole sequences, a grid of settings, results as plain data.

Vocabularies, scaling, pivots and sigma2 are fitted anew on the training part of each fold, so that nothing of
the test part leaks into them. Labels that a training part lacks are counted wrong and reported. Nested, the training
part of each outer fold is divided again: inner folds choose the setting, the outer fold judges the choice.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from .._version import __version__
from ..chains import Problem, pieces_of
from ..config import Config
from ..corpora import CodedColumn, Corpus
from ..encoding import Dataset, Encoding, column_names, configured, described, fit_encoding
from ..errors import ConfigError, DataError, KcrfError
from ..model import Model, decided_labels
from ..scoring import (
    FEW_SEQUENCES,
    SMALLEST_PROBABILITY,
    Decision,
    Score,
    Yardstick,
    choose_yardstick,
    detect_scheme,
    evaluate,
)
from ..system import Budget, Whole, Workers, available_threads, piece_rows, sequence_rows
from ..training import (
    Blocks,
    OpenEngine,
    Pieces,
    Units,
    apart,
    blocks_of,
    groups_of,
    size_contents,
    train,
    without_column,
)
from .grid import Setting
from .journal import Journal, corpus_digest, digest_of
from .processes import Processes, TaskFailed

AS_STORED = Decision()


@dataclass(frozen=True)
class Division:
    """How sequences become folds."""

    count: int = 5
    group: str | None = None  # column whose values stay together
    numbers: np.ndarray | None = None  # [S], the fold of each sequence, where it is given
    stratify: bool = False
    inner: int | None = None  # number of inner folds, for nested selection
    seed: int = 0
    block: int | None = None  # positions of a block; None: whole sequences, and blocks of a few long ones


@dataclass(frozen=True)
class Fold:
    name: int
    test: np.ndarray  # numbers of sequences, or of blocks
    inner: tuple[np.ndarray, ...] = ()  # test parts of the inner folds


@dataclass(frozen=True)
class Plan:
    """Everything that decides the results."""

    corpus: Corpus
    raw: Mapping[str, Any]  # configuration
    source: str  # where it came from, for messages
    settings: tuple[Setting, ...]
    folds: tuple[Fold, ...]
    decision: Decision = AS_STORED
    blocks: Blocks | None = None  # what is divided; None: whole sequences

    @property
    def units(self) -> int:
        """How many sequences or blocks there are."""
        return self.corpus.sequences if self.blocks is None else len(self.blocks.pieces.first)

    @cached_property
    def costs(self) -> dict[str, float]:
        """Of missing each label of the corpus; empty where all are equal."""
        labels = sorted(set(self.corpus.columns[-1]))
        costs = self.decision.costs(labels)
        return {} if costs is None else dict(zip(labels, costs.tolist(), strict=True))

    @property
    def told_labels(self) -> list[str]:
        """Labels whose own figures are told: those that have a cost or a threshold."""
        return [
            label
            for label, cost in self.costs.items()
            if cost != 1 and (label in self.decision.threshold or self.decision.cost)
        ]

    @property
    def nested(self) -> bool:
        return bool(self.folds[0].inner)

    @property
    def scheme(self) -> str | None:
        """By all labels of the corpus: a fold may lack those that show it."""
        return detect_scheme(set(self.corpus.columns[-1]))

    @cached_property
    def yardstick(self) -> Yardstick:
        """The figure that settings are compared by."""
        asked = {self.config(setting).training.metric for setting in range(len(self.settings))}
        if len(asked) > 1:
            raise ConfigError(
                f"settings can be compared by one metric only, not by {', '.join(sorted(asked))}", settings=["metric"]
            )
        return choose_yardstick(sorted(set(self.corpus.columns[-1])), asked.pop())

    @property
    def judged_by(self) -> str:
        """The name of that figure in results."""
        return self.yardstick.name.replace("-", "_")

    def value(self, figure: float) -> float:
        """Of a figure as results have it, larger being better."""
        return self.yardstick.figure(figure)

    def config(self, setting: int) -> Config:
        """As far as it can be told before a fold has its data."""
        return described(self.raw, self.settings[setting].options, self.source)

    def config_for(self, setting: int, training_part: Corpus) -> Config:
        """The same with features that the training part of a fold suggests."""
        return configured(self.raw, self.settings[setting].options, training_part, self.source)[0]

    def parts(self, task: Task) -> tuple[np.ndarray, np.ndarray]:
        """Sequences or blocks to train on and to judge by."""
        fold = self.folds[task.fold]
        rest = np.setdiff1d(np.arange(self.units), fold.test)
        if task.inner is None:
            return rest, fold.test
        test = fold.inner[task.inner]
        return np.setdiff1d(rest, test), test

    def place(self, task: Task) -> dict[str, Any]:
        """Where a task stands, as it is shown and stored."""
        inner = {} if task.inner is None else {"inner_fold": task.inner}
        if self.blocks is not None:
            inner["blocks"] = self.units
        return {"setting": self.settings[task.setting].typed, "fold": self.folds[task.fold].name, **inner}

    def describe(self, task: Task) -> str:
        inner = "" if task.inner is None else f", inner fold {task.inner}"
        setting = "" if len(self.settings) == 1 else f", {self.settings[task.setting].name}"
        return f"fold {self.folds[task.fold].name}{inner}{setting}"


@dataclass(frozen=True)
class Task:
    setting: int
    fold: int
    inner: int | None = None


# ----------------------------------------------------------------------------- planning


def make_plan(
    corpus: Corpus,
    raw: Mapping[str, Any],
    source: str,
    settings: tuple[Setting, ...],
    division: Division,
    decision: Decision = AS_STORED,
) -> Plan:
    """Check every setting of the grid and divide the sequences into folds, the same ones for all settings."""
    configs = [described(raw, setting.options, source) for setting in settings]
    names = column_names(configs[0], corpus)
    blocks = _blocks(corpus, division, lambda: [configured(raw, one.options, corpus, source)[0] for one in settings])
    divided = corpus if blocks is None else _pieces(corpus, blocks.pieces)
    units = _units(divided, division, names)
    if division.group is not None:
        raw = without_column(raw, configs[0], names, division.group, corpus.vectors)
    everything, seed = np.arange(divided.sequences), division.seed
    if division.numbers is not None:
        named = [(int(number), np.flatnonzero(division.numbers == number)) for number in np.unique(division.numbers)]
    else:
        units.check(everything, division.count, corpus.source, "folds")
        named = list(enumerate(units.dealt(everything, division.count, [seed, 2])))
    folds = tuple(Fold(name, test) for name, test in named)
    if division.inner is not None:
        folds = tuple(_divided(fold, units, divided, division.inner, [seed, 3, f]) for f, fold in enumerate(folds))
    plan = Plan(corpus, raw, source, settings, folds, decision, blocks)
    _ = plan.costs, plan.yardstick  # a cost of no label should be heard of before work starts
    for setting in range(len(settings)):
        plan.config(setting)
    return plan


def base_seed(raw: Mapping[str, Any], options: Mapping[str, Any]) -> int:
    """The seed that divides into folds: of the options or the configuration, whatever a grid says."""
    training = raw.get("training")
    given = options.get("seed", training.get("seed", 0) if isinstance(training, dict) else 0)
    return Whole(0)(given)


def _blocks(corpus: Corpus, division: Division, configs: Callable[[], Sequence[Config]]) -> Blocks | None:
    """Blocks of the sequences, where they are asked for or sequences are few and long."""
    few = corpus.sequences < FEW_SEQUENCES and division.group is None and division.numbers is None
    if division.block is None and not few:
        return None
    reach = 0
    for config in configs():
        encoding = fit_encoding(config, corpus)[0]
        reach = max(reach, *encoding.reach([feature.config.name for feature in encoding.features]))
    codes = np.unique(np.array(corpus.columns[-1]), return_inverse=True)[1]
    problem = Problem(codes, corpus.offsets, np.ones(corpus.sequences), int(codes.max(initial=0)) + 1)
    return blocks_of(problem, division.block, reach)


def _pieces(corpus: Corpus, pieces: Pieces) -> Corpus:
    """Pieces of a corpus, each a sequence."""
    sequence = pieces_of(corpus.offsets, pieces.first, pieces.last, None)[2]
    return corpus.pieces(pieces.first, pieces.last, sequence)


def _units(corpus: Corpus, division: Division, names: Sequence[str]) -> Units:
    contents = label_contents(corpus) if division.stratify else None
    if division.group is not None:
        groups = groups_of(corpus, division.group, names)
        return Units(groups, "groups", size_contents(corpus.offsets) if contents is None else contents)
    if division.numbers is not None:  # its folds may stand for speakers or documents: inner folds keep them whole
        return Units(division.numbers, "folds", size_contents(corpus.offsets))
    what = "sequences" if division.block is None else "blocks"
    return Units(np.arange(corpus.sequences), what, contents)


def _divided(fold: Fold, units: Units, corpus: Corpus, count: int, seed: list[int]) -> Fold:
    """A fold whose training part is divided into inner ones."""
    rest = np.setdiff1d(np.arange(corpus.sequences), fold.test)
    units.check(rest, count, corpus.source, f"inner folds without fold {fold.name}")
    return replace(fold, inner=tuple(units.dealt(rest, count, seed)))


def label_contents(corpus: Corpus) -> np.ndarray:
    """Return the counts of each label in each sequence, and a one for the sequence itself: [S, Y + 1]."""
    column = CodedColumn.of(corpus.columns[-1])
    labels = sorted(set(column.values))
    sequence = np.repeat(np.arange(corpus.sequences), np.diff(corpus.offsets))
    counts = np.ones((corpus.sequences, len(labels) + 1))
    counts[:, :-1] = 0
    np.add.at(counts, (sequence, column.numbered(labels)), 1)
    return counts


# ----------------------------------------------------------------------------- one training


def run_task(
    plan: Plan,
    task: Task,
    threads: int | None = None,
    memory: int | None = None,
    engine: OpenEngine | None = None,
) -> dict[str, Any]:
    """Train on the training part of a fold and judge by its test part."""
    began = time.perf_counter()
    with (engine or OpenEngine(memory)).workers(threads) as workers:
        data = fold_data(plan, task)
        test, test_part = data.test, data.test_part
        model, report = train(data.encoding, data.dataset, data.config, workers=workers)
        costs = np.array([plan.costs[label] for label in model.labels]) if plan.costs else None
        best = _over_cuts(model, test, lambda own, part: decided_labels(own, part, plan.decision, costs, workers))
        more = {"log_loss": _log_loss(model, test, workers)} if plan.judged_by == "log_loss" else {}
        tagged = CodedColumn(list(model.labels), best)
    gold, told = test_part.columns[-1], plan.told_labels
    scores = evaluate(gold, tagged, test_part.offsets, scheme=plan.scheme, known_labels=model.labels)
    if plan.judged_by == "macro_f1":
        more["macro_f1"] = scores.macro_f1 if scores.spans is None else scores.spans.macro_f1
    return {
        "sequences": scores.sequences,
        "positions": scores.positions,
        "accuracy": scores.accuracy,
        "sequence_accuracy": scores.sequence_accuracy,
        "f1": None if scores.spans is None else scores.spans.total.f1,
        **more,
        "decode": plan.decision.decoder(model.decode),
        **({"labels": {score.name: score.to_dict() for score in scores.labels if score.name in told}} if told else {}),
        "unknown_gold": scores.unknown_gold,
        "unknown_labels": sorted(set(gold) - set(model.labels)),
        "training": report.to_dict(),
        "seconds": round(time.perf_counter() - began, 3),
    }


@dataclass(frozen=True)
class FoldData:
    """What one training of a fold sees."""

    config: Config  # with features that the training part suggests
    encoding: Encoding  # fitted to the training part
    dataset: Dataset  # the training part
    test: Dataset
    test_part: Corpus  # the same before encoding


def task_rows(plan: Plan, task: Task) -> np.ndarray:
    """Where positions of the test part stand in the corpus."""
    test = plan.parts(task)[1]
    if plan.blocks is None:
        return sequence_rows(plan.corpus.offsets, test)
    held = plan.blocks.pieces.take(test)
    return piece_rows(held.first, held.last)


def fold_data(plan: Plan, task: Task) -> FoldData:
    """Training and test part of a task, encoded as the training part suggests."""
    rest, test = plan.parts(task)
    corpus, blocks = plan.corpus, plan.blocks
    if blocks is None:
        training_part, test_part = corpus.subset(rest), corpus.subset(test)
        config = plan.config_for(task.setting, training_part)
        encoding, dataset = fit_encoding(config, training_part)
        return FoldData(config, encoding, dataset, encoding.encode(test_part), test_part)
    held = blocks.pieces.take(test)
    fit = apart(blocks.pieces.take(rest), held, blocks.gap, corpus.offsets)
    if not len(fit.first):
        raise DataError(
            f"blocks of {int(np.diff(corpus.offsets).max())} positions at most, {blocks.gap} of them left out beside "
            "each that is held out, leave nothing to train on: take longer ones",
            corpus.source,
            settings=["block"],
        )
    training_part = _pieces(corpus, fit)
    config = plan.config_for(task.setting, training_part)
    encoding, dataset = fit_encoding(config, training_part)
    # Windows look across cuts; only what knows the labels of the training part must have seen no others.
    everything = encoding.encode(corpus, weighed=True)
    parts = []
    for pieces in (fit, held):
        _, cut, sequence = pieces_of(corpus.offsets, pieces.first, pieces.last, None)
        parts.append(everything.pieces(pieces.first, pieces.last, sequence, cut))
    to_fit, to_test = parts
    if encoding.features_of_labels:
        to_fit = replace(dataset, cut=to_fit.cut)
    return FoldData(config, encoding, to_fit, to_test, _pieces(corpus, held))


def _over_cuts(model: Model, dataset: Dataset, found: Callable[[Model, Dataset], np.ndarray]) -> np.ndarray:
    """What is found at each position, [N], by the model without potentials of ends where sequences are cut."""
    parts, rows = zip(*((found(own, part), where) for own, part, where in cut_parts(model, dataset)), strict=True)
    return np.concatenate(parts)[np.argsort(np.concatenate(rows))]


def cut_parts(model: Model, dataset: Dataset) -> Iterator[tuple[Model, Dataset, np.ndarray]]:
    """Sequences that are cut off in the same way, the model for them, and where their positions stand."""
    if dataset.cut is None:
        yield model, dataset, np.arange(dataset.positions)
        return
    for cut in itertools.product((False, True), repeat=2):
        alike = np.flatnonzero((dataset.cut == cut).all(axis=1))
        if len(alike):
            own = replace(model, edges=model.edges.cut(*cut))
            yield own, dataset.subset(alike), sequence_rows(dataset.offsets, alike)


def _log_loss(model: Model, test: Dataset, workers: Workers) -> float:
    """Of the labels that the model knows; 0 where there is none."""

    def of_gold(own: Model, part: Dataset) -> np.ndarray:
        return own.marginals(part, workers)[np.arange(part.positions), np.maximum(part.known_labels, 0)]

    probability = _over_cuts(model, test, of_gold)[test.known_labels >= 0]
    return -float(np.log(np.maximum(probability, SMALLEST_PROBABILITY)).mean()) if len(probability) else 0.0


def task_key(plan: Plan, data: str, task: Task) -> str:
    """What the result of a task depends on, in short; `data` is the digest of the corpus."""
    parts = [part.tolist() for part in plan.parts(task)]
    costs = [plan.costs] if plan.costs else []
    if plan.blocks is not None:
        pieces = plan.blocks.pieces
        parts.append([pieces.first.tolist(), pieces.last.tolist(), plan.blocks.gap])
    options = plan.settings[task.setting].options  # which may lead into features that the data will tell
    return digest_of(__version__, data, plan.config(task.setting).to_dict(), options, plan.scheme, parts, *costs)


# ----------------------------------------------------------------------------- running

Found = dict[Task, dict[str, Any]]


def run_plan(
    plan: Plan,
    jobs: int = 1,
    threads: int | None = None,
    memory: int | None = None,
    journal: Journal | None = None,
    done: Callable[[Task], None] | None = None,
    engine: OpenEngine | None = None,
) -> tuple[Found, tuple[int, ...]]:
    """Results of all trainings, and for nested selection the setting chosen in each fold.

    Trainings run on `jobs` processes, which share `memory` bytes; results do not depend on how many. With an `engine`,
    a cluster or a device, there is one after another, each on all of it. Those that the journal has are taken from it,
    and it gets the others as soon as they are there.
    """
    data = corpus_digest(plan.corpus) if journal is not None else ""
    if engine is not None and engine.helps and jobs > 1:
        raise ConfigError("a cluster or a device has one training at a time: leave out 'jobs'", settings=["jobs"])
    with ExitStack() as stack:
        compute = _computer(plan, jobs, threads, memory, stack, engine)

        def finish(tasks: Sequence[Task]) -> Found:
            keys: dict[Task, str] = {}
            found: Found = {}
            if journal is not None:
                keys = {task: task_key(plan, data, task) for task in tasks}
                found = {task: result for task, key in keys.items() if (result := journal.get(key)) is not None}
            for task in found:
                if done is not None:
                    done(task)
            for task, result in compute([task for task in tasks if task not in found]):
                found[task] = result
                if journal is not None:
                    journal.add(keys[task], plan.place(task), result)
                if done is not None:
                    done(task)
            return found

        found = finish(_first_tasks(plan))
        if not plan.nested:
            return found, ()
        chosen = tuple(_choose(plan, found, f) for f in range(len(plan.folds)))
        return found | finish([Task(s, f) for f, s in enumerate(chosen)]), chosen


def _choose(plan: Plan, found: Found, fold: int) -> int:
    """The setting with the best mean over the inner folds of an outer one; the first of equals."""
    means = [
        np.mean([plan.value(found[Task(s, fold, i)][plan.judged_by]) for i in range(len(plan.folds[fold].inner))])
        for s in range(len(plan.settings))
    ]
    return int(np.argmax(means))


def finished(plan: Plan, journal: Journal) -> int:
    """How many trainings of the plan the journal has."""
    data = corpus_digest(plan.corpus)
    outer = [Task(s, f) for s in range(len(plan.settings)) for f in range(len(plan.folds))]
    tasks = {*_first_tasks(plan), *outer}
    return sum(journal.get(task_key(plan, data, task)) is not None for task in tasks)


def _first_tasks(plan: Plan) -> list[Task]:
    """Every setting on every fold; for nested selection the inner folds, by which the rest is decided."""
    settings, folds = range(len(plan.settings)), list(enumerate(plan.folds))
    if not plan.nested:
        return [Task(s, f) for s in settings for f, _ in folds]
    return [Task(s, f, i) for f, fold in folds for s in settings for i in range(len(fold.inner))]


def task_count(plan: Plan) -> int:
    if not plan.nested:
        return len(plan.settings) * len(plan.folds)
    return len(plan.settings) * sum(len(fold.inner) for fold in plan.folds) + len(plan.folds)


def _computer(
    plan: Plan,
    jobs: int,
    threads: int | None,
    memory: int | None,
    stack: ExitStack,
    engine: OpenEngine | None,
) -> Callable[[Sequence[Task]], Iterator[tuple[Task, dict[str, Any]]]]:
    """What turns tasks into results, in this process or in others."""

    def here(tasks: Sequence[Task]) -> Iterator[tuple[Task, dict[str, Any]]]:
        for task in tasks:
            try:
                result = run_task(plan, task, threads, memory, engine)
            except (KcrfError, MemoryError) as error:
                raise _named(plan, task, error) from None
            yield task, result

    def elsewhere(tasks: Sequence[Task]) -> Iterator[tuple[Task, dict[str, Any]]]:
        try:
            yield from processes.results(tasks)
        except TaskFailed as failure:
            raise _named(plan, failure.task, failure.error) from None

    if jobs == 1:
        return here
    # Each process has its own threads: together no more than there are cores, unless the user wants it so.
    threads = threads or max(1, available_threads() // jobs)
    share = Budget(memory).total // jobs
    processes = stack.enter_context(Processes(jobs, _worker, plan, threads, share))
    return elsewhere


def _worker(plan: Plan, threads: int, memory: int) -> Callable[[Task], dict[str, Any]]:
    return partial(run_task, plan, threads=threads, memory=memory)


def _named(plan: Plan, task: Task, error: Exception) -> Exception:
    """The same error, with the fold and the setting where it happened."""
    where = plan.describe(task)
    if isinstance(error, DataError):
        return DataError(f"{error.message} ({where})", error.path, error.line, settings=error.settings)
    if isinstance(error, MemoryError):
        return KcrfError(f"{where}: out of memory: try fewer jobs, fewer pivots or less data", settings=["jobs"])
    if isinstance(error, KcrfError):
        return type(error)(f"{where}: {error}", settings=error.settings)
    return error


SCHEMA = 2
MEASURES = ("accuracy", "sequence_accuracy", "f1", "macro_f1", "log_loss")
COUNTS = ("sequences", "positions", "unknown_gold")


def summarise(plan: Plan, found: Found, chosen: Sequence[int], about: Mapping[str, Any]) -> dict[str, Any]:
    """Results by setting and, for nested selection, by the outer fold that judged the choice.

    `about` says how it came about and stands at the head.
    """
    settings = []
    for s, setting in enumerate(plan.settings):
        inner = [range(len(fold.inner)) if plan.nested else [None] for fold in plan.folds]
        tasks = [Task(s, f, i) for f, numbers in enumerate(inner) for i in numbers]
        settings.append({"setting": setting.typed, **_figures(plan, found, tasks)})
    judged_by = plan.judged_by
    results: dict[str, Any] = {
        "schema": SCHEMA,
        **about,
        "folds": len(plan.folds),
        "sequences": plan.corpus.sequences,
        "positions": plan.corpus.positions,
        **({} if plan.blocks is None else {"blocks": plan.units, "gap": plan.blocks.gap}),
        "metric": plan.yardstick.name,
        "judged_by": judged_by,
        "best": max(range(len(settings)), key=lambda s: plan.value(settings[s][judged_by]["mean"])),
        "settings": settings,
    }
    if plan.nested:
        outer = _figures(plan, found, [Task(s, f) for f, s in enumerate(chosen)])
        for fold, s in zip(outer["folds"], chosen, strict=True):
            fold["chosen"] = s
        results["nested"] = {"inner_folds": len(plan.folds[0].inner), **outer}
    return results


def _figures(plan: Plan, found: Found, tasks: Iterable[Task]) -> dict[str, Any]:
    folds = []
    for task in tasks:
        place = {key: value for key, value in plan.place(task).items() if key != "setting"}
        folds.append({**place, **found[task]})
    out: dict[str, Any] = {}
    for measure in MEASURES:
        values = [value for fold in folds if (value := fold.get(measure)) is not None]
        if len(values) == len(folds):
            deviation = statistics.stdev(values) if len(values) > 1 else 0.0
            out[measure] = {"mean": statistics.fmean(values), "deviation": deviation}
    if plan.told_labels:
        out["labels"] = {label: _pooled(label, folds) for label in plan.told_labels}
    return {**out, "unknown_gold": sum(fold["unknown_gold"] for fold in folds), "folds": folds}


def _pooled(label: str, folds: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Figures of one label over all positions of some folds."""
    each = [fold["labels"][label] for fold in folds if label in fold["labels"]]
    return Score(label, *(sum(one[count] for one in each) for count in ("gold", "predicted", "correct"))).to_dict()


def rows(results: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Header and rows of a flat table: each setting's folds, then their mean and deviation.

    With nested selection the outer folds come last, each with the setting that was chosen for it.
    """
    keys = list(results["grid"])
    measures = [measure for measure in MEASURES if measure in results["settings"][0]]
    typed = [[entry["setting"][key] for key in keys] for entry in results["settings"]]
    nested = results.get("nested")
    inner = [] if nested is None else ["inner_fold"]
    out: list[list[Any]] = []
    for values, entry in zip(typed, results["settings"], strict=True):
        firsts = [[*values, fold["fold"], *(fold[key] for key in inner)] for fold in entry["folds"]]
        out += _lines(entry, measures, firsts, values, ["all" for _ in inner])
    if nested is not None:
        firsts = [[*typed[fold["chosen"]], fold["fold"], "outer"] for fold in nested["folds"]]
        out += _lines(nested, measures, firsts, ["chosen" for _ in keys], ["outer"])
    return [*keys, "fold", *inner, *measures, *COUNTS, "certified_gap", "seconds"], out


def _lines(
    entry: Mapping[str, Any], measures: Sequence[str], firsts: list[list[Any]], values: list[Any], inner: list[str]
) -> list[list[Any]]:
    """A line for each fold, which begins as `firsts` says, one for the mean and one for the deviation."""
    out = []
    for first, fold in zip(firsts, entry["folds"], strict=True):
        gap = fold["training"]["certified_gap"]
        figures = [fold[key] for key in (*measures, *COUNTS)]
        out.append([*first, *figures, "" if gap is None else gap, fold["seconds"]])
    for which in ("mean", "deviation"):
        figures = [entry[measure][which] for measure in measures]
        out.append([*values, which, *inner, *figures, *[""] * (len(COUNTS) + 2)])
    return out
