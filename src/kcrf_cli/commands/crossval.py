"""`kcrf crossval`: cross-validation, over a grid of settings if wanted."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from .. import options

if TYPE_CHECKING:
    from kcrf_core.scoring import Decision
    from kcrf_core.selection import Journal, Plan, Task


@dataclass(frozen=True)
class CrossvalArguments:
    """Arguments of `crossval`."""

    data: str = options.data()
    output: str | None = options.output_or_stdout("Results to write, as JSON; - for stdout. Default: none.")
    tsv: str | None = options.written(
        "Results as a table separated by TABs, a line for each fold; - for stdout. Default: none.", stdout=True
    )
    plot: str | None = options.written(
        "Plot (.png, .svg, .pdf) of F1 or accuracy against setting, with deviations over folds. Default: none."
    )
    journal: str | None = options.written(
        "Where finished trainings are kept, so that a run that was stopped goes on from there. Default: the output "
        "with .journal at its end, until the output is written."
    )
    configuration: options.Configuration = options.configuration(*options.MODEL_SECTIONS)
    format: str | None = options.format()
    folds: int | None = options.folds()
    held_out: options.HeldOutOptions = options.group(options.HeldOutOptions)
    stratify: bool = options.switch(
        "Give all folds about the same share of every label. Default: folds of equal size, by chance."
    )
    grid: tuple[str, ...] = options.option(
        "Values to try for an option (degree=1,2,3) or for a dotted path of the configuration (training.sigma2=1,10); "
        "several make a grid. Default: one setting.",
        "KEY=V,V,...",
        multiple=True,
    )
    nested: bool = options.switch(
        "Choose among the settings anew for each fold, by inner folds of its training part, and judge the choice by "
        "the fold. Default: judge every setting."
    )
    inner_folds: int | None = options.option(
        "Number of inner folds; --nested is understood. Default: as many as --folds, 5 with --folds-file.",
        "K",
        type=click.IntRange(min=2),
    )
    jobs: int = options.count("Trainings at a time. Default: 1.", 1)
    weighing: options.Weighing = options.group(options.Weighing)
    vectors: tuple[tuple[str, str], ...] = options.vectors()
    engine: options.EngineOptions = options.group(options.EngineOptions)
    json: bool = options.json()
    quiet: bool = options.quiet()
    verbose: bool = options.verbose("training that is done")

    def check(self) -> None:
        """Refuse options that contradict each other, and files that cannot be written."""
        from kcrf_core.files import is_encoded

        from ..report import plots

        if self.engine.choice() is not None and self.jobs > 1:
            raise click.UsageError("--engine has one training at a time, on all of it: leave out --jobs")
        if self.json + (self.output == "-") + (self.tsv == "-") > 1:
            raise click.UsageError("only one of --json, -o - and --tsv - can go to stdout")
        files = (self.data, self.configuration.config, self.held_out.folds_file, *(path for _, path in self.vectors))
        _check_files(files, self.output, self.tsv, self.plot, self.journal)
        plots.check_plot(self.plot)
        if is_encoded(self.data):
            raise click.UsageError(
                f"{self.data} is encoded already, with a vocabulary and scaling that have seen the test folds: "
                "give text"
            )
        self.held_out.check()
        beside = (self.folds, self.held_out.group, self.stratify) != (None, None, False)
        if self.held_out.folds_file is not None and beside:
            raise click.UsageError("--folds-file says what the folds are: leave out --folds, --group and --stratify")


@options.command(CrossvalArguments)
def crossval(run: CrossvalArguments) -> None:
    """Train and judge on K folds of whole sequences of DATA.

    Each fold is judged by a model trained on the others, its vocabulary, pivots and sigma2 included. A table of
    means and deviations goes to stdout, every fold's figures to the output file. What was finished before a run was
    stopped is not done again.

    \b
    Example:
      kcrf crossval sample_data/pitch_accent.conll --folds 2 --grid degree=1,2 --kernel poly --size 100 \\
          --sigma2 1 -o results.json
      kcrf crossval sample_data/pitch_accent.conll --folds 3 --metric macro-f1 --grid decode=viterbi,posterior \\
          --sigma2 1
    """
    from kcrf_core.encoding import described
    from kcrf_core.errors import ConfigError
    from kcrf_core.scoring import Decision
    from kcrf_core.selection import Division, base_seed, make_plan, make_settings, parse_grid, run_plan, summarise
    from kcrf_core.training import open_engine

    from ..io.files import fold_numbers, load_config, output_stream, read_data, show, unless, write_out
    from ..render import crossval_text
    from ..render import figures as render
    from ..report import plots

    run.check()
    output, tsv, folds_file, group = run.output, run.tsv, run.held_out.folds_file, run.held_out.group
    threads, chosen, source = run.engine.threads, run.configuration.chosen, run.configuration.source
    points = parse_grid(run.grid)
    inner_folds = run.inner_folds
    if inner_folds is not None or run.nested:
        inner_folds = inner_folds or run.folds or options.DEFAULT_FOLDS
        if not points:
            raise click.UsageError("--nested chooses among settings, and there is only one: give a --grid")
    settings = make_settings(points, chosen)
    raw = load_config(run.configuration.config)
    # Mistakes there come before any reading.
    configs = [described(raw, setting.options, source) for setting in settings]
    decoders = {each.training.decode for each in configs}
    decision = run.weighing.decision("viterbi" if "viterbi" in decoders else None)
    if any(each.unobserved is not None for each in configs):
        raise ConfigError(f"{source}: folds can only be judged by labels that are observed: leave out 'unobserved'")
    corpus = read_data(run.data, run.format, configs[0].columns, configs[0].layout, threads, run.quiet, run.vectors)
    numbers = None if folds_file is None else fold_numbers(folds_file, corpus)
    seed = base_seed(raw, chosen)
    folds, block = run.folds or options.DEFAULT_FOLDS, run.held_out.block
    division = Division(folds, group, numbers, run.stratify, inner_folds, seed, block)
    weighed = Decision(None, decision.cost, decision.threshold)  # a model says how it decodes
    plan = make_plan(corpus, raw, source, settings, division, weighed)
    with (
        _kept(plan, run.journal, output, run.quiet) as kept,
        open_engine(run.engine.choice(), threads=threads, memory=run.engine.memory, tell=unless(run.quiet)) as opened,
        _Bar(plan, run.quiet, run.verbose) as bar,
    ):
        found, picked = run_plan(plan, run.jobs, threads, opened.memory, kept, bar.done, opened)
        about = {
            "divided_by": _divided_by(plan, folds_file, group),
            "stratified": run.stratify,
            "seed": seed,
            "options": run.configuration.typed | _told(decision),
            "grid": points,
        }
        results = summarise(plan, found, picked, about)
        for path, text in ((output, render.as_json(results)), (tsv, crossval_text.as_tsv(results))):
            if path not in (None, "-"):
                with output_stream(path) as stream:
                    stream.write((text + "\n").encode())
        if run.plot is not None:
            plots.settings(run.plot, results)
    if tsv == "-":
        write_out(crossval_text.as_tsv(results))
    elif run.json or output == "-":
        write_out(render.as_json(results))
    else:
        show(crossval_text.table(results))


def _divided_by(plan: Plan, folds_file: str | None, group: str | None) -> str:
    if plan.blocks is not None:
        return "block"
    return "file" if folds_file is not None else "group" if group is not None else "sequence"


def _told(decision: Decision) -> dict[str, Any]:
    """Return the costs of labels, where there are any."""
    told = {"cost": dict(decision.cost), "threshold": dict(decision.threshold)}
    return {name: value for name, value in told.items() if value}


def _check_files(
    inputs: Sequence[str | None],
    output: str | None,
    tsv: str | None,
    plot: str | None,
    journal: str | None,
) -> None:
    """Refuse outputs that cannot be written, that are inputs, or that are one another."""
    from ..io.files import check_writable

    written = [path for path in (output, tsv, plot, journal) if path not in (None, "-")]
    for path in written:
        check_writable(path, *inputs)
    places = [os.path.realpath(path) for path in written]
    if len(set(places)) < len(places):
        raise click.UsageError("two outputs have the same name: give each its own")


@contextmanager
def _kept(plan: Plan, journal: str | None, output: str | None, quiet: bool) -> Iterator[Journal | None]:
    """Open the journal of a run. One that was not asked for goes when all is done, and stays where a run ends early."""
    from kcrf_core.selection import Journal, finished, task_count
    from kcrf_core.system import counted

    from ..io.files import check_writable, say

    stream = output in (None, "-") or (os.path.exists(output) and not os.path.isfile(output))  # a device or a pipe
    if journal is None and stream:
        yield None
        return
    path = f"{output}.journal" if journal is None else journal
    check_writable(path)
    kept = Journal(path)
    total = task_count(plan)
    of_all = counted(total, "training is", "trainings are")
    if kept.begun and not quiet:
        known = finished(plan, kept)
        if known:
            say(f"{known:,} of {of_all} taken from {path}, where they were finished before")
        others = len(kept) - known
        if others:
            say(f"{others:,} more in {path} are of other data, other settings or another version: they are not used")
        if kept.damaged:
            say(f"{counted(kept.damaged, 'line')} of {path} cannot be read: what they were about is done again")
    try:
        yield kept
    except BaseException:
        known = finished(plan, kept)
        if known and not quiet:
            say(f"{known:,} of {of_all} kept in {path}: the same command goes on from there")
        raise
    else:
        if journal is None:
            kept.remove()
    finally:
        kept.close()


class _Bar:
    """Trainings done: a line for each if `verbose`, else a bar where someone can watch."""

    def __init__(self, plan: Plan, quiet: bool, verbose: bool):
        from tqdm import tqdm

        from kcrf_core.selection import task_count

        unseen = quiet or verbose or sys.stderr is None or not sys.stderr.isatty()
        self._plan, self._verbose = plan, verbose
        self._bar = tqdm(total=task_count(plan), desc="trainings", file=sys.stderr, leave=False, disable=unseen)

    def done(self, task: Task) -> None:
        from ..render.visible import shown

        if self._verbose:
            from ..io.files import say

            say(f"  done: {self._plan.describe(task)}")
        self._bar.set_postfix_str(shown(self._plan.describe(task)), refresh=False)
        self._bar.update()

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.close()
