"""`kcrf crossval`: cross-validation, over a grid of settings if wanted."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from .. import options

if TYPE_CHECKING:
    from kcrf_core.scoring import Decision
    from kcrf_core.selection import Journal, Plan, Task

folds_options = options.group(
    options.folds,
    click.option(
        "--stratify",
        is_flag=True,
        help="Give all folds about the same share of every label. Default: folds of equal size, by chance.",
    ),
)

grid_options = options.group(
    click.option(
        "--grid",
        multiple=True,
        metavar="KEY=V,V,...",
        help="Values to try for an option (degree=1,2,3) or for a dotted path of the configuration "
        "(training.sigma2=1,10); several make a grid. Default: one setting.",
    ),
    click.option(
        "--nested",
        is_flag=True,
        help="Choose among the settings anew for each fold, by inner folds of its training part, and judge the choice "
        "by the fold. Default: judge every setting.",
    ),
    click.option(
        "--inner-folds",
        type=click.IntRange(min=2),
        metavar="K",
        help="Number of inner folds; --nested is understood. Default: as many as --folds, 5 with --folds-file.",
    ),
)

output_options = options.group(
    click.option(
        "-o",
        "--output",
        type=options.FileToWrite(stdout=True),
        metavar="FILE",
        help="Results to write, as JSON; - for stdout. Default: none.",
    ),
    click.option(
        "--tsv",
        type=options.FileToWrite(stdout=True),
        metavar="FILE",
        help="Results as a table separated by TABs, a line for each fold; - for stdout. Default: none.",
    ),
    click.option(
        "--plot",
        type=options.FileToWrite(),
        metavar="FILE",
        help="Picture (.png, .svg, .pdf) of F1 or accuracy against setting, with deviations over folds. Default: none.",
    ),
    click.option(
        "--journal",
        type=options.FileToWrite(),
        metavar="FILE",
        help="Where finished trainings are kept, so that a run that was stopped goes on from there. Default: the "
        "output with .journal at its end, until the output is written.",
    ),
)


@click.command(cls=options.Command, short_help="Cross-validate, over a grid if wanted.")
@options.data
@output_options
@options.config
@options.format
@folds_options
@grid_options
@click.option("--jobs", type=click.IntRange(min=1), default=1, metavar="N", help="Trainings at a time. Default: 1.")
@options.weighing
@options.models_of_folds
@options.json
@options.quiet
@options.verbose("training that is done")
def crossval(
    data: str,
    output: str | None,
    tsv: str | None,
    plot: str | None,
    journal: str | None,
    config: str | None,
    format_: str | None,
    folds: int | None,
    group: str | None,
    folds_file: str | None,
    block: int | None,
    stratify: bool,
    grid: tuple[str, ...],
    nested: bool,
    inner_folds: int | None,
    jobs: int,
    cost: tuple[tuple[str, float], ...],
    threshold: tuple[str, float] | None,
    vectors: tuple[tuple[str, str], ...],
    threads: int | None,
    memory: int | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    **values: Any,
) -> None:
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
    from kcrf_core.files import is_encoded
    from kcrf_core.scoring import Decision
    from kcrf_core.selection import Division, base_seed, make_plan, make_settings, parse_grid, run_plan, summarise
    from kcrf_core.training import open_engine

    from ..io.files import fold_numbers, load_config, output_stream, read_data, show, unless, write_out
    from ..render import crossval_text
    from ..render import figures as render
    from ..report import plots

    engine = options.engine_of(values)
    if engine is not None and jobs > 1:
        raise click.UsageError("--engine has one training at a time, on all of it: leave out --jobs")
    if as_json + (output == "-") + (tsv == "-") > 1:
        raise click.UsageError("only one of --json, -o - and --tsv - can go to stdout")
    _check_files((data, config, folds_file, *(path for _, path in vectors)), output, tsv, plot, journal)
    plots.check_plot(plot)
    if is_encoded(data):
        raise click.UsageError(
            f"{data} is encoded already, with a vocabulary and scaling that have seen the test folds: give text"
        )
    typed = options.described_by(values, "c2")
    options.resolve_c2(values)
    chosen = options.described_by(values)
    options.check_held_out(group, folds_file, block)
    if folds_file is not None and (folds, group, stratify) != (None, None, False):
        raise click.UsageError("--folds-file says what the folds are: leave out --folds, --group and --stratify")
    points = parse_grid(grid)
    if inner_folds is not None or nested:
        inner_folds = inner_folds or folds or options.DEFAULT_FOLDS
        if not points:
            raise click.UsageError("--nested chooses among settings, and there is only one: give a --grid")
    settings = make_settings(points, chosen)
    raw = load_config(config)
    source = config or "options"
    # Mistakes there come before any reading.
    configs = [described(raw, setting.options, source) for setting in settings]
    decoders = {each.training.decode for each in configs}
    decision = options.decision_of("viterbi" if "viterbi" in decoders else None, cost, threshold)
    if any(each.unobserved is not None for each in configs):
        raise ConfigError(f"{source}: folds can only be judged by labels that are observed: leave out 'unobserved'")
    corpus = read_data(data, format_, configs[0].columns, configs[0].layout, threads, quiet, vectors)
    numbers = None if folds_file is None else fold_numbers(folds_file, corpus)
    seed = base_seed(raw, chosen)
    division = Division(folds or options.DEFAULT_FOLDS, group, numbers, stratify, inner_folds, seed, block)
    weighed = Decision(None, decision.cost, decision.threshold)  # a model says how it decodes
    plan = make_plan(corpus, raw, source, settings, division, weighed)
    with (
        _kept(plan, journal, output, quiet) as kept,
        open_engine(engine, threads=threads, memory=memory, tell=unless(quiet)) as opened,
        _Bar(plan, quiet, verbose) as bar,
    ):
        found, picked = run_plan(plan, jobs, threads, opened.memory, kept, bar.done, opened)
        about = {
            "divided_by": _divided_by(plan, folds_file, group),
            "stratified": stratify,
            "seed": seed,
            "options": typed | _told(decision),
            "grid": points,
        }
        results = summarise(plan, found, picked, about)
        for path, text in ((output, render.as_json(results)), (tsv, crossval_text.as_tsv(results))):
            if path not in (None, "-"):
                with output_stream(path) as stream:
                    stream.write((text + "\n").encode())
        if plot is not None:
            plots.settings(plot, results)
    if tsv == "-":
        write_out(crossval_text.as_tsv(results))
    elif as_json or output == "-":
        write_out(render.as_json(results))
    else:
        show(crossval_text.table(results))


def _divided_by(plan: Plan, folds_file: str | None, group: str | None) -> str:
    if plan.blocks is not None:
        return "block"
    return "file" if folds_file is not None else "group" if group is not None else "sequence"


def _told(decision: Decision) -> dict[str, Any]:
    """How labels were weighed, where they were."""
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
    """The journal of a run. One that was not asked for goes when all is done; whatever ends a run early leaves it."""
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
