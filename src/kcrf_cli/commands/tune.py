"""`kcrf tune`: search for the configuration that does best on held-out data."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

import click

from .. import options

if TYPE_CHECKING:
    from kcrf_core.selection import Journal

DEFAULT_OUTER_FOLDS = 3


def image_shape(text: str) -> tuple[int, int]:
    """Read rows and columns of an image."""
    found = re.fullmatch(r"(\d+)x(\d+)", text.strip().lower())
    if found is None:
        raise ValueError(f"'{text}' is not rows and columns of pixels, as 16x8")
    return int(found[1]), int(found[2])


@dataclass(frozen=True)
class TuneArguments:
    """Arguments of `tune`."""

    data: str = options.data()
    output: str = options.output()
    configuration: options.Configuration = options.configuration("layout", "encoding", "unobserved", "seed")
    format: str | None = options.format()
    effort: str | None = options.option(
        "Amount of work, counted so that the result is the same every time: about ten seconds, ten minutes or two "
        "hours of two cores. Default: normal.",
        type=options.NamedChoice("selection:EFFORTS"),
    )
    budget: float | None = options.option(
        "Time to search, as 90s, 10m or 2h, in the place of an effort: another machine, or a busy one, may come to "
        "another result.",
        "TIME",
        type=options.OfKind(options.duration),
    )
    shape: tuple[int, int] | None = options.option(
        "The columns of numbers are pixels of images with so many rows and columns, as 16x8. Default: they are no "
        "images.",
        "RxC",
        type=options.OfKind(image_shape),
    )
    metric: str | None = options.metric()
    dev: str | None = options.option(
        "Labelled data to judge candidates by; nothing is learnt from it. Default: parts of DATA are held out.",
        "DEV",
        type=options.DATA,
    )
    dev_vectors: tuple[tuple[str, str], ...] = options.dev_vectors()
    held_out: options.HeldOutOptions = options.group(options.HeldOutOptions)
    nested: int | None = options.option(
        "Judge the whole procedure: search again without each of K outer folds, and judge what is found by the fold; "
        "all searches share the effort. Default: no outer folds; K is 3.",
        "[K]",
        is_flag=False,
        flag_value=DEFAULT_OUTER_FOLDS,
        type=click.IntRange(min=2),
    )
    vectors: tuple[tuple[str, str], ...] = options.vectors()
    plot: str | None = options.written(
        "Plot (.png, .svg, .pdf) of the figures of all candidates against the work spent. Default: none."
    )
    journal: str | None = options.written(
        "Where judgements are kept, so that a search that was stopped goes on from there. Default: the output with "
        ".journal at its end, until the output is written."
    )
    engine: options.EngineOptions = options.group(options.EngineOptions)
    json: bool = options.json()
    quiet: bool = options.quiet()
    verbose: bool = options.verbose("judgement")

    @property
    def journal_path(self) -> str:
        """File of the journal, given or by default."""
        return f"{self.output}.journal" if self.journal is None else self.journal

    def check(self) -> None:
        """Refuse options that contradict each other, and files that cannot be written."""
        from kcrf_core.files import is_archive, is_folder

        from ..io.files import check_writable
        from ..report import plots

        if self.effort is not None and self.budget is not None:
            raise click.UsageError("--effort counts work and --budget counts time: give one of them")
        if self.dev_vectors and self.dev is None:
            raise click.UsageError("--dev-vectors stand beside the data of --dev: give that, too")
        if self.dev is not None and astuple(self.held_out) != (None, None, None):
            raise click.UsageError(
                "--dev is what candidates are judged by: leave out --group, --folds-file and --block"
            )
        self.held_out.check()
        if self.data == self.dev == "-":
            raise click.UsageError("DATA and --dev cannot both be read from stdin")
        vectors = [path for _, path in (*self.vectors, *self.dev_vectors)]
        written = [path for path in (self.output, self.plot, self.journal_path) if path is not None]
        for path in written:
            config, folds = self.configuration.config, self.held_out.folds_file
            check_writable(path, self.data, config, self.dev, folds, *vectors)
        if len({os.path.realpath(path) for path in written}) < len(written):
            raise click.UsageError("two outputs have the same name: give each its own")
        plots.check_plot(self.plot)
        for path in filter(None, (self.data, self.dev)):
            if is_archive(path):
                raise click.UsageError(f"{path} is encoded already: features cannot be chosen any more; give text")
            if is_folder(path):
                raise click.UsageError(
                    f"{path} is encoded already, with a vocabulary and scaling that have seen what is held out, and "
                    "its features cannot be chosen any more: give text, of which a part is enough to choose by"
                )


@options.command(TuneArguments)
def tune(run: TuneArguments) -> None:
    """Find a configuration for the labelled sequences of DATA.

    Features, windows, kernels, numbers of pivots, what labels know of their neighbours, decoders and prior variances
    are tried on parts of the data, the better ones on larger parts, and judged by what is held out. The best, or the
    simplest of those that cannot be told apart from it, is written as YAML, with a leaderboard above it, for
    `kcrf train -c`. What a configuration file says of features and terms is kept, and the rest is searched for. Ctrl-C
    ends the search with the best so far; the same command goes on with a search that was ended otherwise.

    \b
    Example:
      kcrf tune sample_data/pitch_accent.conll --budget 5s -o config.yaml
      kcrf train sample_data/pitch_accent.conll -c config.yaml -o model.npz
      kcrf tune sample_data/digits.conll --shape 8x8 --budget 5s -o digits.yaml --plot digits.png
    """
    from kcrf_core._version import __version__
    from kcrf_core.config import configuration_text, parse_config, with_options
    from kcrf_core.encoding import column_names
    from kcrf_core.selection import tune as search
    from kcrf_core.training import HoldOut, groups_of, open_engine

    from ..io.files import fold_numbers, load_config, output_stream, read_data, say, unless, write_out
    from ..io.interruption import StopRequest
    from ..io.leaderboard import Leaderboard
    from ..render import figures as render
    from ..render import tuning_text
    from ..report import plots

    engine, threads = run.engine.choice(), run.engine.threads
    run.check()
    source, group, folds_file = run.configuration.source, run.held_out.group, run.held_out.folds_file
    raw = with_options(load_config(run.configuration.config), run.configuration.chosen)
    parsed = parse_config(raw, source)  # its mistakes come before any reading
    layout = parsed.columns, parsed.layout, threads, run.quiet
    corpus = read_data(run.data, run.format, *layout, run.vectors)
    judges = None
    if run.dev is not None:
        judges = read_data(run.dev, run.format or corpus.format, *layout, run.dev_vectors)
    groups = None if group is None else groups_of(corpus, group, column_names(parsed, corpus))
    hold_out = HoldOut(groups, None if folds_file is None else fold_numbers(folds_file, corpus), run.held_out.block)
    with (
        open_engine(engine, threads=threads, memory=run.engine.memory, tell=unless(run.quiet)) as opened,
        opened.workers(threads) as workers,
        _kept(run.journal_path, run.journal is None, run.quiet) as kept,
        StopRequest("ending the search here and writing the best so far; Ctrl-C again to give up") as stop,
        Leaderboard(run.quiet, run.verbose, run.budget) as board,
    ):
        found = search(
            corpus,
            raw,
            source,
            shape=run.shape,
            metric=run.metric,
            effort=run.effort or "normal",
            budget=run.budget,
            hold_out=hold_out,
            left_out=[] if group is None else [group],
            dev=judges,
            nested=run.nested,
            workers=workers,
            journal=kept,
            listener=board,
            stopped=stop.asked,
        )
        board.close()
        text = configuration_text(found.raw, tuning_text.comments(found, __version__))
        with output_stream(run.output) as stream:
            stream.write(text.encode())
        if run.plot is not None:
            plots.search(run.plot, found)
    if run.json:
        write_out(render.as_json({"schema": 1, **tuning_text.to_dict(found)}))
    elif found.nested is not None:
        write_out("\n".join(tuning_text.nested_lines(found.nested, found.yardstick)))
    if not run.quiet:
        for line in tuning_text.summary(found):
            say(line)
        say(f"wrote {run.output}; kcrf train {run.data} -c {run.output} -o model.npz makes a model of it")
    if found.interrupted:
        raise KeyboardInterrupt


@contextmanager
def _kept(path: str, temporary: bool, quiet: bool) -> Iterator[Journal]:
    """Open the journal of a search. One that was not asked for goes when all is done, and stays where it ends early."""
    from kcrf_core.selection import Journal

    from ..io.files import say

    kept = Journal(path, "tune")
    if kept.begun and not quiet:
        say(f"{len(kept):,} judgements in {path}: those of this data and these settings are not done again")
    try:
        yield kept
    except BaseException:
        if kept.begun and not quiet:
            say(f"{len(kept):,} judgements kept in {path}: the same command goes on from there")
        raise
    else:
        if temporary:
            kept.remove()
    finally:
        kept.close()
