"""`kcrf crossval`: cross-validation, over a grid of settings if wanted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from kcrf_core.errors import ConfigError
from kcrf_core.files import is_encoded
from kcrf_core.system import counted

from .. import options
from ..io import files
from ..render import figures as render

if TYPE_CHECKING:
    import numpy as np

    from kcrf_core.corpora import Corpus
    from kcrf_core.scoring import Judgement
    from kcrf_core.selection import Found, Journal, Plan, Task


MOST_LEFT_OUT = 20  # groups that are left out one at a time by default


@dataclass(frozen=True, kw_only=True)
class FoldArguments:
    """Arguments of commands that train models of folds and score them."""

    data: str
    output: str | None = options.output(
        "Results to write, as JSON; - for stdout. Default: none.", required=False, stdout=True
    )
    journal: str | None = options.written(
        "File that keeps finished fits, so that the same command continues an interrupted run. Default: the output "
        "file with .journal appended; it is removed when the output is written."
    )
    configuration: options.Configuration = options.group(options.Configuration, *options.MODEL_SECTIONS)
    format: str | None
    folds: int | None
    held_out: options.HeldOutOptions
    stratify: bool = options.VALIDATION.switch(
        "Give all folds about the same share of every label. Default: random folds of equal size.",
    )
    jobs: int = options.COMPUTATION.count(
        "Number of models that are trained at the same time; they share the cores. Default: 1.", 1
    )
    weighing: options.Weighing
    vectors: tuple[tuple[str, str], ...]
    engine: options.EngineOptions
    json: bool
    quiet: bool
    verbose: bool = options.verbose("every training that is done")

    def __post_init__(self) -> None:
        """Refuse options that contradict each other, and files that cannot be written."""
        engine = self.engine.choice() is not None
        options.refuse(
            (engine and self.jobs > 1, "--engine runs one training at a time: leave out --jobs"),
            (self.json and self.output == "-", "--json and -o - both write to stdout: give one of them"),
        )
        inputs = (self.data, self.configuration.config, self.held_out.folds_file, *(path for _, path in self.vectors))
        outputs = (getattr(self, name, None) for name in ("output", "journal", "predictions", "plot"))
        files.check_outputs(outputs, *inputs)
        if is_encoded(self.data):
            about = "is encoded already, with a vocabulary and scaling that have seen the test folds: give text"
            raise click.UsageError(f"{self.data} {about}")
        beside = (self.folds, self.held_out.group, self.stratify) != (None, None, False)
        twice = self.held_out.folds_file is not None and beside
        options.refuse((twice, "--folds-file gives the folds: leave out --folds, --group and --stratify"))


@dataclass(frozen=True, kw_only=True)
class CrossvalArguments(FoldArguments):
    predictions: str | None = options.written(
        "Write DATA with out-of-fold labels and probabilities. They are those of the best setting, for kcrf evaluate. "
        "Default: none.",
        common=True,
    )
    grid: tuple[str, ...] = options.VALIDATION.option(
        "Values to try for an option (degree=1,2,3) or a path of the configuration (training.sigma2=1,10). Repeated, "
        "options make a grid. Default: none.",
        "KEY=V,V,...",
        multiple=True,
        common=True,
    )
    only_fold: tuple[int, ...] = options.VALIDATION.option(
        "Number of a fold, from 0: train it alone for --journal and print no scores. Other folds can be trained at the "
        "same time elsewhere, with journals of their own; joined by cat, these give all scores. Can be repeated. "
        "Default: all folds.",
        "K",
        type=click.IntRange(min=0),
        multiple=True,
    )
    details: bool = options.OUTPUT.switch(
        "Print the confusion matrix and the reliability curve of all folds together, too. Default: scores by label.",
    )


@options.command(CrossvalArguments)
def crossval(run: CrossvalArguments) -> None:
    """Cross-validate on K folds of whole sequences of DATA.

    Each fold is labelled by a model whose weights, vocabulary, pivots and sigma2 come from the other folds alone. The
    scores of each fold, or of each setting of a grid, go to stdout.

    After them come the scores of each label over all folds. The output file has the scores of every fold and setting.
    The same command continues an interrupted run.

    \b
    Example:
      kcrf crossval sample_data/pitch_accent.conll --folds 2 --sigma2 1 --predictions folds.tsv
      kcrf evaluate folds.tsv --details
      kcrf crossval sample_data/pitch_accent.conll --folds 2 --grid degree=1,2 --kernel poly --size 100 \\
          --sigma2 1 -o results.json
      kcrf crossval sample_data/pitch_accent.conll --folds 3 --metric macro-f1 --grid decode=viterbi,posterior \\
          --sigma2 1
    """
    import numpy as np

    from kcrf_core.corpora import named_layout
    from kcrf_core.scoring import JudgementOptions, judge
    from kcrf_core.selection import out_of_fold, parse_grid, summarise, tasks_of

    from ..render import crossval_text

    output, tell, points = run.output, files.unless(run.quiet), parse_grid(run.grid)
    options.refuse((run.only_fold and not run.journal, "--only-fold keeps its results in a --journal: give a FILE"))
    plan, corpus, groups, about = make_folds(run, points)
    if run.only_fold:
        unknown = [k for k in run.only_fold if k >= len(plan.folds)]
        options.refuse((bool(unknown), f"there is no fold {max(run.only_fold)}: there are 0 to {len(plan.folds) - 1}"))
        plan = replace(plan, folds=tuple(plan.folds[k] for k in sorted({*run.only_fold})))
    with ExitStack() as last, trained(run, plan) as found:
        if run.only_fold:
            tell(f"{counted(len(tasks_of(plan)), 'training is', 'trainings are')} in {run.journal}")
            return
        results = summarise(plan, found, {**about, "grid": points})
        labelling, fold_names = out_of_fold(plan, found, results["best"])
        config = plan.config(0)
        metric = config.training.metric
        wanted = JudgementOptions(scheme=plan.scheme, metric=None if metric == "auto" else metric)
        of_positions = None if groups is None else np.repeat(groups, np.diff(corpus.offsets))
        pooled = judge(replace(labelling, groups=of_positions), None, wanted)
        results["pooled"] = pooled.to_dict()
        if pooled.trained_on is not None:
            tell(pooled.trained_on.text("the training data of their fold, too"))
        last.callback(_print, run, results, pooled)  # even if a file cannot be written
        if run.predictions is not None:
            written = named_layout(run.data, named_layout(run.predictions, config.layout))
            files.write_out(crossval_text.predictions(corpus, written, labelling, fold_names), run.predictions)
        if output not in (None, "-"):
            files.write_out(render.as_json(results), output)


def make_folds(
    run: FoldArguments, points: dict[str, list[Any]], halved: bool = False
) -> tuple[Plan, Corpus, np.ndarray | None, dict[str, Any]]:
    """Return the plan for a grid, the data as it was read, groups [S] of sequences, and entries for the results."""
    from kcrf_core.encoding import column_names, described
    from kcrf_core.scoring import Decision
    from kcrf_core.selection import Division, base_seed, make_plan, make_settings
    from kcrf_core.training import groups_of

    folds_file, group = run.held_out.folds_file, run.held_out.group
    chosen, source, tell = run.configuration.chosen, run.configuration.source, files.unless(run.quiet)
    settings, raw = make_settings(points, chosen), files.load_config(run.configuration)
    configs = [described(raw, setting.options, source) for setting in settings]  # mistakes come before any reading
    decoders = {each.training.decode for each in configs}
    decision = run.weighing.decision("viterbi" if "viterbi" in decoders else None)
    if any(each.unobserved is not None or each.half_known for each in configs):
        hint = "leave out 'unobserved', 'label_sets' and 'soft_labels'"
        raise ConfigError(f"{source}: folds can only be judged by labels that are observed: {hint}")
    layout = configs[0].columns, configs[0].layout
    corpus = files.read_data(run.data, run.format, *layout, run.engine.threads, run.quiet, run.vectors)
    numbers = files.fold_numbers(folds_file, corpus)
    seed, folds, groups = base_seed(raw, chosen), run.folds or options.DEFAULT_FOLDS, None
    if group is not None:
        groups = groups_of(corpus, group, column_names(configs[0], corpus))
        if run.folds is None and 2 <= (number := len(set(groups.tolist()))) <= MOST_LEFT_OUT:
            folds = number
            tell(f"one fold for each of the {number} groups (--folds K for fewer)")
    division = Division(folds, group, numbers, run.stratify, seed, run.held_out.block, halved)
    weighed = Decision(None, decision.cost)  # a model says how it decodes
    plan = make_plan(corpus, raw, source, settings, division, weighed, tell)
    by_sequence = "file" if folds_file is not None else "group" if group is not None else "sequence"
    about = {
        "divided_by": by_sequence if plan.blocks is None else "block",
        "stratified": run.stratify,
        "seed": seed,
        "options": run.configuration.typed | ({"cost": dict(decision.cost)} if decision.cost else {}),
    }
    return plan, corpus, groups, about


@contextmanager
def trained(run: FoldArguments, plan: Plan) -> Iterator[Found]:
    """Yield the results of all trainings, as `run_plan` does; the journal is kept until they are written."""
    from kcrf_core.selection import run_plan, tasks_of
    from kcrf_core.training import open_engine

    from ..io.progress import progress

    tell, engine = files.unless(run.quiet), run.engine
    with (
        _kept(plan, run.journal, run.output, run.quiet) as kept,
        open_engine(engine.choice(), threads=engine.threads, memory=engine.memory, tell=tell) as workers,
        progress(run.quiet or run.verbose, "trainings", len(tasks_of(plan))) as moved,
    ):

        def done(task: Task) -> None:
            if run.verbose:
                tell(f"  done: {plan.describe(task)}")
            moved(1, plan.describe(task))

        yield run_plan(plan, run.jobs, engine.threads, engine.memory, kept, done, workers)


def _print(run: CrossvalArguments, results: dict[str, Any], pooled: Judgement) -> None:
    """Print the results in the form that was asked for."""
    from ..render import crossval_text

    if run.json or run.output == "-":
        files.write_out(render.as_json(results))
    else:
        files.show(crossval_text.text(results, pooled, run.details))


@contextmanager
def _kept(plan: Plan, path: str | None, output: str | None, quiet: bool) -> Iterator[Journal | None]:
    """Open the journal of a run: one that was asked for, or one beside the output, which is removed at the end."""
    from kcrf_core.selection import Journal, finished, tasks_of

    tell, temporary = files.unless(quiet), path is None
    if path is None:
        if output in (None, "-") or (os.path.exists(output) and not os.path.isfile(output)):  # a device or a pipe
            yield None
            return
        path = f"{output}.journal"
        files.check_writable(path)
    journal, total = Journal(path), counted(len(tasks_of(plan)), "training is", "trainings are")
    if journal.begun and not quiet:
        known = finished(plan, journal)
        others = len(journal) - known
        if known:
            tell(f"{known:,} of {total} taken from {path}, where they were finished before")
        if others:
            tell(f"{others:,} more in {path} are of other data, other settings or another version: they are not used")
        if journal.damaged:
            tell(f"{counted(journal.damaged, 'line')} of {path} cannot be read: their fits are repeated")

    def found() -> str | None:
        known = finished(plan, journal)
        return f"{known:,} of {total}" if known else None

    with files.kept_journal(journal, temporary, found, quiet):
        yield journal
