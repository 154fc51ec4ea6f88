"""Cross-validation: folds of whole sequences, a grid of settings, results as plain data.

Vocabularies, scaling, pivots and sigma2 are fitted anew on the training part of each fold, so that nothing of
the test part leaks into them. Labels that a training part lacks are counted wrong and reported.
"""

from __future__ import annotations

import itertools
import statistics
import time
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from .._version import __version__
from ..chains import Problem, pieces_of
from ..config import Config
from ..corpora import CodedColumn, Columns, Corpus
from ..encoding import (
    UNKNOWN,
    Dataset,
    Encoding,
    column_names,
    configured,
    described,
    fit_encoding,
    found_among,
    input_hashes,
    left_out_columns,
    sequence_hashes,
    slip_warnings,
    with_tables,
)
from ..errors import ConfigError, DataError, KcrfError
from ..model import Model
from ..scoring import (
    SMALLEST_PROBABILITY,
    Decision,
    Labelling,
    Probabilities,
    Yardstick,
    choose_yardstick,
    count_labels,
    detect_scheme,
    evaluate,
    labels_of_spans,
    odd_labels,
    readable_column,
)
from ..system import PLUGINS, Budget, Whole, Workers, available_threads, offsets_of, piece_rows, sequence_rows
from ..training import (
    FEW_WHOLE,
    LEAST_TRAINED,
    Blocks,
    HoldOut,
    Units,
    apart,
    blocks_of,
    choose_configuration,
    groups_of,
    kept_together,
    size_contents,
    train,
    without_column,
)
from .grid import Setting
from .journal import Journal, corpus_digest, digest_of
from .processes import process_pool, submit

SCHEMA = 3
AS_STORED = Decision()
MOST_GROUPS = 3  # of a fold whose name has all of them


@dataclass(frozen=True)
class Division:
    """Rules that divide sequences into folds."""

    count: int = 5
    group: str | None = None  # column whose values stay together
    numbers: np.ndarray | None = None  # [S], the fold of each sequence, where it is given
    stratify: bool = False
    seed: int = 0
    block: int | None = None  # positions of a block; None: whole sequences, and blocks of a few long ones
    halved: bool = False  # training parts are halved again and again, for a learning curve


@dataclass(frozen=True)
class Fold:
    name: int | str  # a number, or the names of its groups
    test: np.ndarray  # numbers of sequences, or of blocks
    groups: tuple[str, ...] = ()  # in the order of the data, where groups are kept together
    nested: tuple[np.ndarray, ...] = ()  # training parts of a learning curve, each within the next, the last one whole


@dataclass(frozen=True)
class Plan:
    """All that decides the results of a cross-validation."""

    corpus: Corpus
    raw: Mapping[str, Any]  # configuration
    source: str  # where it came from, for messages
    settings: tuple[Setting, ...]
    folds: tuple[Fold, ...]
    decision: Decision = AS_STORED
    blocks: Blocks | None = None  # the units that are divided; None: whole sequences
    hashes: np.ndarray | None = None  # [N] of inputs; None for blocks
    units: int = field(init=False)  # number of sequences or blocks
    labels: tuple[str, ...] = field(init=False)  # of the corpus, sorted
    costs: dict[str, float] = field(init=False)  # of missing each label of the corpus; empty if all are equal
    odd_labels: tuple[str, ...] = field(init=False)  # not of the scheme of nearly all others
    scheme: str | None = field(init=False)  # by all labels of the corpus: a fold may lack those that show it
    yardstick: Yardstick = field(init=False)  # settings are compared by it
    judged_by: str = field(init=False)  # name of the yardstick's figure in results

    def __post_init__(self) -> None:
        counts = count_labels(self.corpus.columns[-1])
        labels, odd = sorted(counts), odd_labels(counts)
        costs = self.decision.costs(labels, odd)
        metrics = {self.config(setting).training.metric for setting in range(len(self.settings))}
        if len(metrics) > 1:
            raise ConfigError(
                f"settings can be compared by one metric only, not by {', '.join(sorted(metrics))}", settings=["metric"]
            )
        yardstick = choose_yardstick(labels_of_spans(labels, odd), metrics.pop())
        derived = {
            "units": self.corpus.sequences if self.blocks is None else len(self.blocks.pieces.first),
            "labels": tuple(labels),
            "costs": {} if costs is None else dict(zip(labels, costs.tolist(), strict=True)),
            "odd_labels": odd,
            "scheme": detect_scheme(counts.keys() - odd),
            "yardstick": yardstick,
            "judged_by": yardstick.name.replace("-", "_"),
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def config(self, setting: int, training_part: Corpus | None = None, workers: Workers | None = None) -> Config:
        """Return the configuration of a setting, with features that the training part of a fold suggests, if given.

        With `workers`, the default features are compared with others.
        """
        options = self.settings[setting].options
        if training_part is None:
            return described(self.raw, options, self.source)
        return choose_configuration(self.raw, options, training_part, self.source, workers)[0]

    def parts(self, task: Task) -> tuple[np.ndarray, np.ndarray]:
        """Return the sequences or blocks to train on and to judge by."""
        fold = self.folds[task.fold]
        if task.size is not None:
            return fold.nested[task.size], fold.test
        return np.setdiff1d(np.arange(self.units), fold.test), fold.test

    def place(self, task: Task) -> dict[str, Any]:
        """Return the setting and the fold of a task, as they are shown and stored."""
        fold, blocks = self.folds[task.fold], {} if self.blocks is None else {"blocks": self.units}
        groups = {"groups": list(fold.groups)} if fold.groups else {}
        return {"setting": self.settings[task.setting].typed, "fold": fold.name, **groups, **blocks}

    def rows(self, test: np.ndarray) -> np.ndarray:
        """Return the places of sequences or blocks in the corpus."""
        if self.blocks is None:
            return sequence_rows(self.corpus.offsets, test)
        held = self.blocks.pieces.take(test)
        return piece_rows(held.first, held.last)

    def trained_on(self, task: Task) -> np.ndarray:
        """Return True for the test positions of a task whose sequence is in its training part, too, [n] bool."""
        rest, test = self.parts(task)
        if self.hashes is None:
            return np.zeros(len(self.rows(test)), dtype=bool)
        every = sequence_hashes(self.hashes, self.corpus.offsets)
        lengths = np.diff(self.corpus.offsets)[test]
        known = found_among(self.hashes[self.rows(test)], offsets_of(lengths), every[rest])
        return np.repeat(known, lengths)

    def describe(self, task: Task) -> str:
        setting = "" if len(self.settings) == 1 else f", {self.settings[task.setting].name}"
        fold = self.folds[task.fold]
        size = "" if task.size is None else f", trained on {len(fold.nested[task.size]):,}"
        return f"fold {fold.name}{setting}{size}"


@dataclass(frozen=True)
class Task:
    setting: int
    fold: int
    size: int | None = None  # number of a nested training part, for a learning curve


def make_plan(
    corpus: Corpus,
    raw: Mapping[str, Any],
    source: str,
    settings: tuple[Setting, ...],
    division: Division,
    decision: Decision = AS_STORED,
    tell: Callable[[str], None] = lambda text: None,  # remarks for users
) -> Plan:
    """Check every setting of the grid and divide the sequences into folds, the same ones for all settings."""
    configs = [described(raw, setting.options, source) for setting in settings]
    for config in configs:
        corpus = with_tables(corpus, config)
    names = column_names(configs[0], corpus)
    left_out = left_out_columns(configs[0], names) | {division.group or ""}
    for warning in slip_warnings(Columns(corpus, configs[0].missing), configs[0], names, left_out):
        tell(warning)
    blocks = None
    few = corpus.sequences < max(FEW_WHOLE, division.count) and division.group is None and division.numbers is None
    if few or division.block is not None:
        reach = 0
        for one in settings:
            encoding = fit_encoding(configured(raw, one.options, corpus, source)[0], corpus)[0]
            reach = max(reach, *encoding.reach([feature.config.name for feature in encoding.features]))
        codes = np.unique(np.array(corpus.columns[-1]), return_inverse=True)[1]
        problem = Problem(codes, corpus.offsets, np.ones(corpus.sequences), int(codes.max(initial=0)) + 1)
        blocks = blocks_of(problem, division.block, reach)
    divided = corpus if blocks is None else _pieces(corpus, blocks.pieces.first, blocks.pieces.last)
    groups: Sequence[str] = ()
    wishes = HoldOut(folds=division.numbers)
    if division.group is not None:
        wishes = HoldOut(groups_of(divided, division.group, names))
        column = divided.columns[list(names).index(division.group)]
        groups = [column[first] for first in divided.offsets[:-1].tolist()]
        raw = without_column(raw, configs[0], names, division.group, corpus.vectors)
    hashes = None
    if blocks is None:
        hashes = input_hashes(configured(raw, settings[0].options, corpus, source)[0], corpus)
        wanted = configs[0].training.near_copies
        wishes = kept_together(wishes, hashes, corpus.offsets, wanted, division.count, tell)
    units = _units(divided, division, wishes)
    everything, seed = np.arange(divided.sequences), division.seed
    if division.numbers is not None:
        named = [(int(number), np.flatnonzero(division.numbers == number)) for number in np.unique(division.numbers)]
    else:
        units.check(everything, division.count, corpus.source, "folds")
        named = list(enumerate(units.dealt(everything, division.count, [seed, 2])))
    folds = []
    for f, (name, test) in enumerate(named):
        own = tuple(dict.fromkeys(groups[s] for s in test.tolist())) if groups else ()
        nested = units.halved(np.setdiff1d(everything, test), [seed, 4, f]) if division.halved else ()
        folds.append(Fold(_group_name(own) if own else name, test, own, nested))
    if division.halved:
        if (common := min(len(fold.nested) for fold in folds)) < 3:
            given = f"{len(folds[0].nested[-1]):,} {'sequences' if blocks is None else 'blocks'} to train on"
            raise DataError(f"{given} are too few: a learning curve needs {4 * LEAST_TRAINED}", corpus.source)
        folds = [replace(fold, nested=fold.nested[-common:]) for fold in folds]
    if groups:
        folds.sort(key=lambda fold: int(fold.test[0]))
    return Plan(corpus, raw, source, settings, tuple(folds), decision, blocks, hashes)


def _group_name(groups: Sequence[str]) -> str:
    """Return the name of a fold: S03, S03+S07, or S03+12_more.

    >>> _group_name(["a", "b", "c", "d"])
    'a+3_more'
    """
    return "+".join(groups) if len(groups) <= MOST_GROUPS else f"{groups[0]}+{len(groups) - 1}_more"


def base_seed(raw: Mapping[str, Any], options: Mapping[str, Any]) -> int:
    """Return the random seed of the folds: that of the options or the configuration, not of a grid."""
    training = raw.get("training")
    given = options.get("seed", training.get("seed", 0) if isinstance(training, dict) else 0)
    return Whole(0)(given)


def _pieces(corpus: Corpus, first: np.ndarray, last: np.ndarray) -> Corpus:
    """Return a corpus with pieces of sequences as its sequences."""
    return corpus.pieces(first, last, pieces_of(corpus.offsets, first, last, None)[2])


def _units(corpus: Corpus, division: Division, wishes: HoldOut) -> Units:
    """Return the units that no fold may divide."""
    contents = None
    if division.stratify:  # [S, Y + 1], counts of each label in each sequence, and a one for the sequence itself
        column = CodedColumn.of(corpus.columns[-1])
        labels = sorted(set(column.values))
        sequence = np.repeat(np.arange(corpus.sequences), np.diff(corpus.offsets))
        contents = np.zeros((corpus.sequences, len(labels) + 1))
        contents[:, -1] = 1
        np.add.at(contents, (sequence, column.numbered(labels)), 1)
    if wishes.groups is not None:
        return Units(wishes.groups, "groups", size_contents(corpus.offsets) if contents is None else contents)
    if division.numbers is not None:  # its folds may stand for speakers or documents, which parts of them keep whole
        return Units(division.numbers, "folds", size_contents(corpus.offsets))
    what = "sequences" if division.block is None else "blocks"
    return Units(np.arange(corpus.sequences), what, contents)


def run_task(
    plan: Plan, task: Task, threads: int | None = None, memory: int | None = None, workers: Workers | None = None
) -> dict[str, Any]:
    """Train on the training part of a fold and judge by its test part, on new threads unless there are some."""
    began = time.perf_counter()
    with Workers(threads, memory) if workers is None else nullcontext(workers) as workers:
        data = fold_data(plan, task, workers)
        test, test_part = data.test, data.test_part
        model, report = train(data.encoding, data.dataset, data.config, workers=workers)
        costs = np.array([plan.costs[label] for label in model.labels]) if plan.costs else None
        model = model.deciding(plan.decision)
        found = _inferred(model, test, costs, workers)
    best, marginals = found[:, 0].astype(np.int64), found[:, 1:]
    probabilities = Probabilities.of(marginals, test.known_labels, best)
    tagged, more = CodedColumn(list(model.labels), best), {}
    gold = test_part.columns[-1]
    scores = evaluate(
        gold,
        tagged,
        test_part.offsets,
        scheme=plan.scheme,
        known_labels=model.labels,
        odd_labels=plan.odd_labels,
    )
    if plan.judged_by == "log_loss":
        more["log_loss"] = _log_loss(probabilities, test)
    if plan.judged_by == "macro_f1":
        more["macro_f1"] = scores.macro_f1 if scores.spans is None else scores.spans.macro_f1
    return {
        "sequences": scores.sequences,
        "positions": scores.positions,
        "accuracy": scores.accuracy,
        "sequence_accuracy": scores.sequence_accuracy,
        "f1": None if scores.spans is None else scores.spans.total.f1,
        **more,
        "decode": model.decode,
        "unknown_gold": scores.unknown_gold,
        "unknown_labels": sorted(set(gold) - set(model.labels)),
        "training": report.to_dict(),
        "seconds": round(time.perf_counter() - began, 3),
        "predictions": _packed_predictions(plan, tagged, probabilities),
    }


def _log_loss(probabilities: Probabilities, test: Dataset) -> float:
    """Return the log-loss of a test part; labels that training lacks count as impossible."""
    assert probabilities.gold is not None
    gold = np.where(test.known_labels == UNKNOWN, 0.0, probabilities.gold)
    gold = gold[~np.isnan(gold)]
    return float(-np.log(np.maximum(gold, SMALLEST_PROBABILITY)).mean()) if len(gold) else 0.0


def _inferred(model: Model, dataset: Dataset, costs: np.ndarray | None, workers: Workers) -> np.ndarray:
    """Return the number of the label at each position, and its marginals: [N, 1 + Y]."""
    parts, rows = [np.empty((0, 1 + len(model.labels)))], []
    for own, part, where in cut_parts(model, dataset):
        for found in own.over_parts(part, partial(own.infer, costs=costs), workers):
            parts.append(np.column_stack([found.labels, found.marginals.node]))
        rows.append(where)
    return np.concatenate(parts)[np.argsort(np.concatenate(rows))]


def _packed_predictions(plan: Plan, tagged: CodedColumn, probabilities: Probabilities) -> dict[str, str]:
    """Return labels and probabilities of a test part as text for a journal."""
    assert probabilities.gold is not None and probabilities.squares is not None
    three = np.column_stack([probabilities.predicted, probabilities.gold, probabilities.squares])
    arrays = {"labels": tagged.numbered(plan.labels).astype("<i4"), "probabilities": three.astype("<f4")}
    return {name: b64encode(zlib.compress(array.tobytes())).decode() for name, array in arrays.items()}


def out_of_fold(plan: Plan, found: Found, setting: int) -> tuple[Labelling, list[int | str]]:
    """Return labels that models of a setting gave to the test part of each fold, and folds of positions."""
    N, corpus = plan.corpus.positions, plan.corpus
    labels, three = np.zeros(N, dtype=np.int32), np.zeros((N, 3), dtype=np.float32)
    folds, known = np.zeros(N, dtype=np.int64), np.zeros(N, dtype=bool)
    tasks = [Task(setting, f) for f in range(len(plan.folds))]
    for f, task in enumerate(tasks):
        rows, packed = plan.rows(plan.folds[f].test), found[task]["predictions"]
        known[rows] = plan.trained_on(task)
        unpacked = {name: zlib.decompress(b64decode(text)) for name, text in packed.items()}
        labels[rows], folds[rows] = np.frombuffer(unpacked["labels"], "<i4"), f
        three[rows] = np.frombuffer(unpacked["probabilities"], "<f4").reshape(-1, 3)
    decoders = {found[task]["decode"] for task in tasks}
    labelling = Labelling(
        source=corpus.source,
        gold=corpus.columns[-1],
        predicted=CodedColumn(list(plan.labels), labels),
        offsets=corpus.offsets,
        lines=corpus.lines,
        known_odd=plan.odd_labels,
        words=readable_column(corpus.columns[:-1]),
        probabilities=Probabilities(*three.T.astype(np.float64)),
        decode=decoders.pop() if len(decoders) == 1 else None,
        trained_on=None if plan.hashes is None else known,
    )
    return labelling, [plan.folds[f].name for f in folds.tolist()]


@dataclass(frozen=True)
class FoldData:
    """Data of one training of a fold."""

    config: Config  # with features that the training part suggests
    encoding: Encoding  # fitted to the training part
    dataset: Dataset  # the training part
    test: Dataset
    test_part: Corpus  # the test part before encoding
    rows: np.ndarray  # places of its positions in the corpus


def fold_data(plan: Plan, task: Task, workers: Workers | None = None) -> FoldData:
    """Return the training and the test part of a task, encoded as the training part suggests; see `Plan.config`."""
    rest, test = plan.parts(task)
    corpus, blocks = plan.corpus, plan.blocks
    if blocks is None:
        training_part, test_part = corpus.subset(rest), corpus.subset(test)
        config = plan.config(task.setting, training_part, workers)
        encoding, dataset = fit_encoding(config, training_part, plan.odd_labels)
        return FoldData(config, encoding, dataset, encoding.encode(test_part), test_part, plan.rows(test))
    held = blocks.pieces.take(test)
    fit = apart(blocks.pieces.take(rest), held, blocks.gap, corpus.offsets)
    if not len(fit.first):
        raise DataError(
            f"blocks of at most {int(np.diff(corpus.offsets).max())} positions, with gaps of {blocks.gap} beside "
            "those that are held out, leave nothing to train on: use longer blocks",
            corpus.source,
            settings=["block"],
        )
    training_part = _pieces(corpus, fit.first, fit.last)
    config = plan.config(task.setting, training_part, workers)
    encoding, _ = fit_encoding(config, training_part, plan.odd_labels)
    everything = encoding.encode(corpus, weighed=True)  # windows look across cuts
    parts = []
    for pieces in (fit, held):
        _, cut, sequence = pieces_of(corpus.offsets, pieces.first, pieces.last, None)
        parts.append(everything.pieces(pieces.first, pieces.last, sequence, cut))
    to_fit, to_test = parts
    test_part = _pieces(corpus, held.first, held.last)
    return FoldData(config, encoding, to_fit, to_test, test_part, plan.rows(test))


def cut_parts(model: Model, dataset: Dataset) -> Iterator[tuple[Model, Dataset, np.ndarray]]:
    """Yield sequences that are cut off in the same way, with the model for them, and the places of their positions."""
    if dataset.cut is None:
        yield model, dataset, np.arange(dataset.positions)
        return
    for cut in itertools.product((False, True), repeat=2):
        alike = np.flatnonzero((dataset.cut == cut).all(axis=1))
        if len(alike):
            own = replace(model, edges=model.edges.cut(*cut))
            yield own, dataset.subset(alike), sequence_rows(dataset.offsets, alike)


def task_key(plan: Plan, data: str, task: Task) -> str:
    """Return the digest of all that the result of a task depends on; `data` is that of the corpus."""
    parts = [part.tolist() for part in plan.parts(task)]
    costs: list[Any] = [plan.costs] if plan.costs else []
    if plan.blocks is not None:
        pieces = plan.blocks.pieces
        parts.append([pieces.first.tolist(), pieces.last.tolist(), plan.blocks.gap])
    options = plan.settings[task.setting].options  # which may be about features that only the data determines
    versions = __version__, SCHEMA, *(plugin.digest for plugin in PLUGINS.values())
    return digest_of(*versions, data, plan.config(task.setting).to_dict(), options, plan.scheme, parts, *costs)


Found = dict[Task, dict[str, Any]]


def run_plan(
    plan: Plan,
    jobs: int = 1,
    threads: int | None = None,
    memory: int | None = None,
    journal: Journal | None = None,
    done: Callable[[Task], None] = lambda task: None,
    workers: Workers | None = None,
) -> Found:
    """Return results of all trainings.

    Trainings run on `jobs` processes, which share `memory` bytes; results do not depend on how many. With `workers`
    that a cluster or a device helps, there is one after another, each on all of it. Those that the journal has are
    taken from it, and it gets the others as soon as they are finished.
    """
    data = corpus_digest(plan.corpus) if journal is not None else ""
    helped = workers if workers is not None and (workers.device or workers.executor) else None
    if jobs > 1:
        if helped is not None:
            raise ConfigError("a cluster or a device runs one training at a time: leave out 'jobs'", settings=["jobs"])
        # Each process has its own threads: together no more than there are cores, unless the user wants it so.
        threads = threads or max(1, available_threads() // jobs)
        memory = Budget(memory).total // jobs
    work = partial(run_task, plan, threads=threads, memory=memory)

    def trainings(pool: ProcessPoolExecutor | None, tasks: Sequence[Task]) -> Iterator[tuple[Task, Callable]]:
        """Yield tasks with functions that return their results, or raise their errors, on a pool as they finish."""
        if pool is None:
            yield from ((task, partial(work, task, workers=helped)) for task in tasks)
        else:
            futures = submit(pool, tasks)
            yield from ((futures[future], future.result) for future in as_completed(futures))

    tasks, keys, found = tasks_of(plan), dict[Task, str](), Found()
    if journal is not None:
        keys = {task: task_key(plan, data, task) for task in tasks}
        found = {task: result for task, key in keys.items() if (result := journal.get(key)) is not None}
    for task in found:
        done(task)
    with process_pool(jobs, work) if jobs > 1 else nullcontext() as pool:
        for task, outcome in trainings(pool, [task for task in tasks if task not in found]):
            try:
                found[task] = outcome()
            except (KcrfError, MemoryError) as error:
                raise _placed(error, plan.describe(task)) from None
            except BrokenProcessPool:
                message = "a process was killed, perhaps for lack of memory: try fewer jobs at a time"
                raise KcrfError(message, settings=["jobs"]) from None
            if journal is not None:
                journal.add(keys[task], plan.place(task), found[task])
            done(task)
    return found


def _placed(error: KcrfError | MemoryError, where: str) -> KcrfError:
    """Return an error of a training with its fold and setting."""
    if isinstance(error, DataError):
        return DataError(f"{error.message} ({where})", error.path, error.line, settings=error.settings)
    if isinstance(error, MemoryError):
        return KcrfError(f"{where}: out of memory: try fewer jobs, fewer pivots or less data", settings=["jobs"])
    return type(error)(f"{where}: {error}", settings=error.settings)


def finished(plan: Plan, journal: Journal) -> int:
    """Count the trainings of the plan that the journal has."""
    data = corpus_digest(plan.corpus)
    return sum(journal.get(task_key(plan, data, task)) is not None for task in tasks_of(plan))


def tasks_of(plan: Plan) -> list[Task]:
    """List every setting on every fold, of a learning curve with every size."""
    settings, folds = range(len(plan.settings)), range(len(plan.folds))
    sizes = range(len(plan.folds[0].nested)) or [None]
    return [Task(s, f, size) for s in settings for size in sizes for f in folds]


MEASURES = ("accuracy", "sequence_accuracy", "f1", "macro_f1", "log_loss")


def summarise(plan: Plan, found: Found, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return results by setting; the entries of `about` come first."""
    settings = []
    for s, setting in enumerate(plan.settings):
        tasks = [task for task in tasks_of(plan) if task.setting == s]
        settings.append({"setting": setting.typed, **_figures(plan, found, tasks)})
    judged_by = plan.judged_by
    return {
        "schema": SCHEMA,
        **about,
        "folds": len(plan.folds),
        "sequences": plan.corpus.sequences,
        "positions": plan.corpus.positions,
        **({} if plan.blocks is None else {"blocks": plan.units, "gap": plan.blocks.gap}),
        "metric": plan.yardstick.name,
        "judged_by": judged_by,
        "best": max(range(len(settings)), key=lambda s: plan.yardstick.figure(settings[s][judged_by]["mean"])),
        "settings": settings,
    }


def _figures(plan: Plan, found: Found, tasks: Iterable[Task]) -> dict[str, Any]:
    folds = []
    for task in tasks:
        place = {key: value for key, value in plan.place(task).items() if key != "setting"}
        folds.append({**place, **{key: value for key, value in found[task].items() if key != "predictions"}})
    out: dict[str, Any] = {}
    for measure in MEASURES:
        values = [value for fold in folds if (value := fold.get(measure)) is not None]
        if len(values) == len(folds):
            deviation = statistics.stdev(values) if len(values) > 1 else 0.0
            out[measure] = {"mean": statistics.fmean(values), "deviation": deviation}
    return {**out, "unknown_gold": sum(fold["unknown_gold"] for fold in folds), "folds": folds}
