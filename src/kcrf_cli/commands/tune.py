"""`kcrf tune`: search for the configuration that does best on held-out data."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from .. import options

if TYPE_CHECKING:
    from kcrf_core.selection import Journal

DEFAULT_OUTER_FOLDS = 3


def efforts() -> Iterator[str]:
    from kcrf_core.selection import EFFORTS

    return iter(EFFORTS)


class Pixels(click.ParamType):
    """Rows and columns of a picture."""

    name = "rxc"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = value if isinstance(value, tuple) else re.fullmatch(r"(\d+)x(\d+)", value.strip().lower())
        if found is None:
            self.fail(f"'{value}' is not rows and columns of pixels, as 16x8", param, ctx)
        return value if isinstance(value, tuple) else (int(found[1]), int(found[2]))


effort_options = options.group(
    click.option(
        "--effort",
        type=options.NamedChoice(efforts),
        help="How much work to do, counted so that the result is the same every time: about ten seconds, ten minutes "
        "or two hours of two cores. Default: normal.",
    ),
    click.option(
        "--budget",
        type=options.Duration(),
        metavar="TIME",
        help="How long to search, as 90s, 10m or 2h, in the place of an effort: another machine, or a busy one, may "
        "come to another result.",
    ),
)

dev_options = options.group(
    click.option(
        "--dev",
        type=click.Path(allow_dash=True),
        metavar="DEV",
        help="Labelled data to judge candidates by; nothing is learnt from it. Default: parts of DATA are held out.",
    ),
    click.option(
        "--dev-vectors",
        type=options.NamedPath(),
        multiple=True,
        metavar="NAME=FILE",
        help="Vectors beside DEV, as --vectors has them beside DATA. Default: none.",
    ),
)


@click.command(cls=options.Command, short_help="Find a configuration.")
@options.data
@options.output
@options.config
@options.format
@effort_options
@click.option(
    "--shape",
    type=Pixels(),
    metavar="RxC",
    help="The columns of numbers are pixels of pictures with so many rows and columns, as 16x8. Default: they are no "
    "pictures.",
)
@options.metric
@dev_options
@options.held_out
@click.option(
    "--nested",
    is_flag=False,
    flag_value=DEFAULT_OUTER_FOLDS,
    type=click.IntRange(min=2),
    metavar="[K]",
    help="Judge the whole procedure: search again without each of K outer folds, and judge what is found by the fold; "
    "all searches share the effort. Default: no outer folds; K is 3.",
)
@options.encoding
@options.weight
@options.unobserved
@options.vectors
@options.seed
@click.option(
    "--plot",
    type=options.FileToWrite(),
    metavar="FILE",
    help="Picture (.png, .svg, .pdf) of the figures of all candidates against the work spent. Default: none.",
)
@click.option(
    "--journal",
    type=options.FileToWrite(),
    metavar="FILE",
    help="Where judgements are kept, so that a search that was stopped goes on from there. Default: the output with "
    ".journal at its end, until the output is written.",
)
@options.threads
@options.memory
@options.engine
@options.json
@options.quiet
@options.verbose("judgement")
def tune(
    data: str,
    output: str,
    config: str | None,
    format_: str | None,
    effort: str | None,
    budget: float | None,
    shape: tuple[int, int] | None,
    metric: str | None,
    dev: str | None,
    dev_vectors: tuple[tuple[str, str], ...],
    group: str | None,
    folds_file: str | None,
    block: int | None,
    nested: int | None,
    vectors: tuple[tuple[str, str], ...],
    plot: str | None,
    journal: str | None,
    threads: int | None,
    memory: int | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    **values: Any,
) -> None:
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
    from kcrf_core.files import is_archive, is_folder
    from kcrf_core.selection import tune as search
    from kcrf_core.training import HoldOut, groups_of, open_engine

    from ..io.files import check_writable, fold_numbers, load_config, output_stream, read_data, say, unless, write_out
    from ..io.interruption import StopRequest
    from ..io.leaderboard import Leaderboard
    from ..render import figures as render
    from ..render import tuning_text
    from ..report import plots

    engine = options.engine_of(values)
    if effort is not None and budget is not None:
        raise click.UsageError("--effort counts work and --budget counts time: give one of them")
    if dev_vectors and dev is None:
        raise click.UsageError("--dev-vectors stand beside the data of --dev: give that, too")
    if dev is not None and (group, folds_file, block) != (None, None, None):
        raise click.UsageError("--dev is what candidates are judged by: leave out --group, --folds-file and --block")
    options.check_held_out(group, folds_file, block)
    if data == dev == "-":
        raise click.UsageError("DATA and --dev cannot both be read from stdin")
    inputs = (data, config, dev, folds_file, *(path for _, path in (*vectors, *dev_vectors)))
    journal_path = f"{output}.journal" if journal is None else journal
    written = [path for path in (output, plot, journal_path) if path is not None]
    for path in written:
        check_writable(path, *inputs)
    if len({os.path.realpath(path) for path in written}) < len(written):
        raise click.UsageError("two outputs have the same name: give each its own")
    plots.check_plot(plot)
    for path in filter(None, (data, dev)):
        if is_archive(path):
            raise click.UsageError(f"{path} is encoded already: features cannot be chosen any more; give text")
        if is_folder(path):
            raise click.UsageError(
                f"{path} is encoded already, with a vocabulary and scaling that have seen what is held out, and its "
                "features cannot be chosen any more: give text, of which a part is enough to choose by"
            )
    chosen = options.given(values, options.ENCODING_OPTIONS, ("seed",))
    raw = with_options(load_config(config), chosen)
    source = config or "options"
    parsed = parse_config(raw, source)  # its mistakes come before any reading
    corpus = read_data(data, format_, parsed.columns, parsed.layout, threads, quiet, vectors)
    judges = None if dev is None else read_data(dev, format_ or corpus.format, parsed.columns, parsed.layout, threads,
                                                quiet, dev_vectors)  # fmt: skip
    groups = None if group is None else groups_of(corpus, group, column_names(parsed, corpus))
    hold_out = HoldOut(groups, None if folds_file is None else fold_numbers(folds_file, corpus), block)
    with (
        open_engine(engine, threads=threads, memory=memory, tell=unless(quiet)) as opened,
        opened.workers(threads) as workers,
        _kept(journal_path, journal is None, quiet) as kept,
        StopRequest("ending the search here and writing the best so far; Ctrl-C again to give up") as stop,
        Leaderboard(quiet, verbose, budget) as board,
    ):
        found = search(
            corpus,
            raw,
            source,
            shape=shape,
            metric=metric,
            effort=effort or "normal",
            budget=budget,
            hold_out=hold_out,
            left_out=[] if group is None else [group],
            dev=judges,
            nested=nested,
            workers=workers,
            journal=kept,
            listener=board,
            stopped=stop.asked,
        )
        board.close()
        text = configuration_text(found.raw, tuning_text.comments(found, __version__))
        with output_stream(output) as stream:
            stream.write(text.encode())
        if plot is not None:
            plots.search(plot, found)
    if as_json:
        write_out(render.as_json({"schema": 1, **tuning_text.to_dict(found)}))
    elif found.nested is not None:
        write_out("\n".join(tuning_text.nested_lines(found.nested, found.yardstick)))
    if not quiet:
        for line in tuning_text.summary(found):
            say(line)
        say(f"wrote {output}; kcrf train {data} -c {output} -o model.npz makes a model of it")
    if found.interrupted:
        raise KeyboardInterrupt


@contextmanager
def _kept(path: str, temporary: bool, quiet: bool) -> Iterator[Journal]:
    """The journal of a search. One that was not asked for goes when all is done; whatever ends it early leaves it."""
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
