"""`kcrf audit`: which labels of data are probably wrong."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from .. import options

if TYPE_CHECKING:
    from kcrf_core.corpora import Layout
    from kcrf_core.selection import Audit, Correction

RANKINGS = ("wrong", "context", "marginal")

# Positions that JSON and the worklist have: some more than are expected to be wrong, and never so few that nobody could
# see for himself.
LEAST_LISTED, TIMES_EXPECTED, SHARE_LISTED = 1000, 3, 0.05


@click.command(cls=options.Command, short_help="Find labels that are probably wrong.")
@options.data
@click.option(
    "-m",
    "--model",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Judge by this model, which may have learnt from DATA. Default: models of folds, none of which has seen the "
    "labels that it judges.",
)
@click.option(
    "-o",
    "--output",
    type=options.FileToWrite(stdout=True),
    metavar="FILE",
    help="Worklist to write: line, text, gold, suggested, probability, reason, between TABs, the worst first; - for "
    "stdout. Default: none.",
)
@click.option(
    "--rank",
    type=click.Choice(RANKINGS),
    help="Rank by the probability that the label is wrong, by p(gold label | input, other labels), or by p(gold label "
    "| input). Default: wrong; with -m context.",
)
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=20,
    metavar="N",
    help="Positions to print, and a quarter as many spans and sequences. Default: 20.",
)
@click.option(
    "--most",
    type=click.IntRange(min=1),
    metavar="N",
    help="Positions in the worklist, in --json and in the page. Default: three times those expected to be wrong, 1000 "
    "at least (200 in the page).",
)
@click.option(
    "--html", type=options.FileToWrite(), metavar="FILE", help="Write a page with the text around them. Default: none."
)
@click.option(
    "--plot",
    type=options.FileToWrite(),
    metavar="FILE",
    help="Picture (.png, .svg, .pdf) of how many wrong labels to expect among the first ones. Default: none.",
)
@click.option(
    "--apply",
    type=options.FileToWrite(),
    metavar="FILE",
    help="Write DATA with corrected labels to this new file, and what differs to FILE.diff. Default: no corrections.",
)
@click.option(
    "--accept",
    type=click.Path(dir_okay=False),
    metavar="WORKLIST",
    help="With --apply: take the corrections that are left in a worklist, after a person has gone through it. Default: "
    "those that --least says.",
)
@click.option(
    "--least",
    type=click.FloatRange(0, 1),
    metavar="P",
    help="With --apply: correct labels that are wrong with this probability at least. Default: 0.9.",
)
@options.config
@options.format
@options.folds
@options.models_of_folds
@options.json
@options.quiet
def audit(
    data: str,
    model: str | None,
    output: str | None,
    rank: str | None,
    top: int,
    most: int | None,
    html: str | None,
    plot: str | None,
    apply: str | None,
    accept: str | None,
    least: float | None,
    config: str | None,
    format_: str | None,
    folds: int | None,
    group: str | None,
    folds_file: str | None,
    block: int | None,
    vectors: tuple[tuple[str, str], ...],
    threads: int | None,
    memory: int | None,
    as_json: bool,
    quiet: bool,
    **values: Any,
) -> None:
    """Find labels of DATA that are probably wrong, the worst first, and say how many there are.

    Each fold of whole sequences is judged by a model of the others: a label is doubtful where it is improbable, given
    the input and the labels beside it. How many are wrong is estimated by the largest likelihood, in which a model's
    own doubts are no errors. Spans and sequences are judged as a whole, too. Nothing is changed: --apply writes another
    file, and what differs.

    \b
    Example:
      kcrf audit sample_data/pitch_accent.conll --sigma2 0.1 --folds 2 -o worklist.tsv
      kcrf audit sample_data/pitch_accent.conll --accept worklist.tsv --apply corrected.conll
      kcrf train sample_data/sentences.conllu --sigma2 1 -o words.npz
      kcrf audit sample_data/sentences.conllu -m words.npz --html doubtful.html --top 5
    """
    from kcrf_core.selection import changes_of, worklist

    from ..io.files import check_writable, output_stream, show, write_out
    from ..render import audit_text
    from ..render import figures as render
    from ..report import plots

    _check(data, model, output, plot, apply, accept, least, as_json)
    plots.check_plot(plot)
    inputs = (data, model, config, folds_file, accept, *(path for _, path in vectors))
    for path in (output, html, plot, apply, None if apply is None else f"{apply}.diff"):
        if path not in (None, "-"):
            check_writable(path, *inputs)
    if accept is not None and apply is not None:
        _apply_worklist(data, model, accept, apply, format_, values, config, quiet)
        return
    if model is not None:
        _refuse_training(values, config, folds, group, folds_file, block, memory)
        found, layout, columns = _by_model(data, model, format_, vectors, rank or "context", threads, quiet)
    else:
        found, layout, columns = _by_folds(
            data, config, format_, folds, group, folds_file, block, vectors, rank or "wrong", threads, memory, quiet,
            values,
        )  # fmt: skip
    times = int(TIMES_EXPECTED * found.expected) if found.held_out else 0
    listed = most or max(LEAST_LISTED, times, int(SHARE_LISTED * found.judged))
    if output is not None:
        with output_stream(output) as stream:
            stream.write(worklist(found.positions(listed)).encode())
    if html is not None:
        from ..report.audit_page import page
        from ..report.html import origin_of

        with output_stream(html) as stream:
            stream.write(page(found, most or 200, origin_of(options.typed_command(), data)).encode())
    if plot is not None:
        plots.doubtful(plot, found)
    if apply is not None:
        changes = changes_of(found.positions(), 0.9 if least is None else least)
        _write(data, changes, apply, found.corpus.format, columns, layout, quiet)
    if as_json:
        write_out(render.as_json(audit_text.values(found, listed)))
    elif output != "-":
        show(audit_text.text(found, top))


def _check(
    data: str,
    model: str | None,
    output: str | None,
    plot: str | None,
    apply: str | None,
    accept: str | None,
    least: float | None,
    as_json: bool,
) -> None:
    if plot is not None and model is not None:
        raise click.UsageError("--plot draws how many labels are wrong, which only folds can tell: leave out -m")
    if as_json and output == "-":
        raise click.UsageError("--json and -o - both want standard output: give one of them")
    if apply is None and (accept is not None or least is not None):
        option = "--accept" if accept is not None else "--least"
        raise click.UsageError(f"{option} says what to correct: give --apply FILE, the file to write, too")
    if accept is not None and least is not None:
        raise click.UsageError("--accept and --least both say what to correct: give one of them")
    if apply is not None and model is not None and accept is None:
        raise click.UsageError("folds or a person say what to correct: leave out -m, or give --accept WORKLIST")
    if apply is not None and data == "-":
        raise click.UsageError("--apply needs DATA as a file: it is read twice")


def _refuse_training(values: dict[str, Any], *others: Any) -> None:
    given = [name for name, value in values.items() if value not in (None, (), False)]
    if given or any(value is not None for value in others):
        which = f" (--{given[0].replace('_', '-')})" if given else ""
        raise click.UsageError(f"-m judges without any training: leave out folds, -c and options of training{which}")


def _by_model(
    data: str,
    path: str,
    format_: str | None,
    vectors: Sequence[tuple[str, str]],
    rank: str,
    threads: int | None,
    quiet: bool,
) -> tuple[Audit, Layout, Sequence[str]]:
    from kcrf_core.corpora import display_name, open_vectors
    from kcrf_core.files import is_encoded
    from kcrf_core.model import Model
    from kcrf_core.selection import audit_by_model

    from ..io.files import read_data

    if is_encoded(data):
        raise click.UsageError(f"{data} is encoded already, and has no text to show: give the text")
    model = Model.load(path)
    encoding = model.encoding
    encoding.check_vectors({each.name: each.width for each in open_vectors(vectors)}, display_name(data))
    corpus = read_data(data, format_ or encoding.format, encoding.columns, encoding.layout, threads, quiet, vectors)
    return audit_by_model(model, corpus, rank, threads), encoding.layout, encoding.columns


def _by_folds(
    data: str,
    config: str | None,
    format_: str | None,
    folds: int | None,
    group: str | None,
    folds_file: str | None,
    block: int | None,
    vectors: Sequence[tuple[str, str]],
    rank: str,
    threads: int | None,
    memory: int | None,
    quiet: bool,
    values: dict[str, Any],
) -> tuple[Audit, Layout, Sequence[str]]:
    from tqdm import tqdm

    from kcrf_core.encoding import column_names, described
    from kcrf_core.errors import ConfigError
    from kcrf_core.files import is_encoded
    from kcrf_core.selection import Division, audit_by_folds, base_seed, make_plan, make_settings
    from kcrf_core.training import open_engine

    from ..io.files import fold_numbers, load_config, read_data, unless

    engine = options.engine_of(values)
    if is_encoded(data):
        raise click.UsageError(f"{data} is encoded already, with a vocabulary that has seen all folds: give the text")
    options.check_held_out(group, folds_file, block)
    if folds_file is not None and folds is not None:
        raise click.UsageError("--folds-file says what the folds are: leave out --folds")
    options.resolve_c2(values)
    chosen = options.described_by(values)
    raw, source = load_config(config), config or "options"
    first = described(raw, chosen, source)  # its mistakes come before any reading
    if first.unobserved is not None:
        raise ConfigError(f"{source}: folds can only judge labels that are observed: leave out 'unobserved'")
    corpus = read_data(data, format_, first.columns, first.layout, threads, quiet, vectors)
    numbers = None if folds_file is None else fold_numbers(folds_file, corpus)
    division = Division(folds or options.DEFAULT_FOLDS, group, numbers, seed=base_seed(raw, chosen), block=block)
    plan = make_plan(corpus, raw, source, make_settings({}, chosen), division)
    unseen = quiet or sys.stderr is None or not sys.stderr.isatty()
    with (
        open_engine(engine, threads=threads, memory=memory, tell=unless(quiet)) as opened,
        opened.workers(threads) as workers,
        tqdm(total=len(plan.folds), desc="folds", file=sys.stderr, leave=False, disable=unseen) as bar,
    ):
        found = audit_by_folds(plan, rank, workers=workers, done=lambda task: bar.update())
    return found, first.layout, column_names(first, corpus)


def _apply_worklist(
    data: str,
    model: str | None,
    accept: str,
    apply: str,
    format_: str | None,
    values: dict[str, Any],
    config: str | None,
    quiet: bool,
) -> None:
    """Corrections that a person has left in a worklist: a model says at most how DATA is laid out."""
    from kcrf_core.corpora import guess_format
    from kcrf_core.encoding import described
    from kcrf_core.errors import DataError
    from kcrf_core.model import Model
    from kcrf_core.selection import read_worklist

    from ..io.files import load_config

    if model is not None:
        _refuse_training(values, config)
        columns: tuple[str, ...] | None
        encoding = Model.load(model).encoding
        format_, columns, layout = format_ or encoding.format, encoding.columns, encoding.layout
    else:
        chosen = options.given(values, options.ENCODING_OPTIONS)
        settings = described(load_config(config), chosen, config or "options")
        columns, layout = settings.columns, settings.layout
    try:
        with open(accept, encoding="utf-8-sig", newline="\n") as stream:
            changes = read_worklist(stream.read(), accept)
    except UnicodeDecodeError:
        raise DataError("no worklist: not UTF-8 text", accept) from None
    _write(data, changes, apply, format_ or guess_format(data), columns, layout, quiet)


def _write(
    data: str,
    changes: Sequence[Correction],
    path: str,
    format_: str,
    columns: Sequence[str] | None,
    layout: Layout,
    quiet: bool,
) -> None:
    """Write the corrected file, and beside it what differs."""
    from kcrf_core.selection import corrected, differences
    from kcrf_core.system import counted

    from ..io.files import output_stream, say

    before, after = corrected(data, changes, format_, columns, layout)
    with output_stream(path) as stream:
        stream.write(after)
    with output_stream(f"{path}.diff") as stream:
        stream.write(differences(before, after, (data, path)))
    if not quiet:
        different = sum(change.gold != change.suggested for change in changes)
        say(f"{counted(different, 'label')} corrected in {path}; {path}.diff says which, {data} is as it was")
