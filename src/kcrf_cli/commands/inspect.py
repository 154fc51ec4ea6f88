"""`kcrf inspect`: what a model, basis or dataset holds."""

from __future__ import annotations

import click

from .. import options


@click.command(short_help="Show what a model holds.")
@click.argument("file", type=click.Path(), metavar="FILE")
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=10,
    metavar="N",
    help="Tell the N strongest features or pivots of each label. Default: 10.",
)
@click.option(
    "--dump",
    is_flag=True,
    help="Print every weight that is not zero instead, one in a line: term, feature, label, weight, between TABs.",
)
@click.option(
    "--plot",
    type=options.FileToWrite(),
    metavar="FILE",
    help="Draw the transitions of a model, or what the pivots of a basis leave (.png, .svg or .pdf; needs matplotlib). "
    "Default: no picture.",
)
@click.option(
    "--vectors",
    type=options.NamedPath(),
    multiple=True,
    metavar="NAME=FILE",
    help="Look at vectors that are meant for FILE, too: rows, width and numbers. An error tells where they do not fit. "
    "Default: none.",
)
@options.json
def inspect(
    file: str, top: int, dump: bool, plot: str | None, vectors: tuple[tuple[str, str], ...], as_json: bool
) -> None:
    """Show what FILE holds: a model, a basis, a dataset or a folder of shards.

    Of a model: labels, terms with their kernels and sizes, the certificate, where it comes from, transitions, and
    the features or pivots that speak most for each label and against it. A pivot is told by its line in the
    training data.

    \b
    Example:
      kcrf train sample_data/pitch_accent.conll --sigma2 1 -o model.npz
      kcrf inspect model.npz --top 3
      kcrf inspect model.npz --dump | grep -F "c1[0]="
      kcrf train sample_data/pitch_accent.conll --vectors emb=sample_data/pitch_accent.npy --sigma2 1 -o emb.npz
      kcrf inspect emb.npz --top 1 --vectors emb=sample_data/pitch_accent.npy
    """
    from kcrf_core.corpora import open_vectors
    from kcrf_core.model import summarise, unpack
    from kcrf_core.system import read_container

    from ..report.plots import check_plot
    from ..running.files import check_writable, is_folder, show, write_out
    from ..text import figures as render
    from ..text.inspection import text

    if dump and as_json:
        raise click.UsageError("--dump and --json both want standard output: give one of them")
    check_plot(plot)
    if plot is not None:
        check_writable(plot, file)
    if is_folder(file):
        if dump or plot is not None or vectors:
            raise click.UsageError(f"{file} is a folder of shards, of which there is nothing to draw, dump or compare")
        _show_folder(file, as_json)
        return
    contents = read_container(file, "model", "basis", "dataset")
    kind = contents.header["kind"]
    if kind != "model" and dump:
        raise click.UsageError(f"{file} is a {kind}, which has no weights to dump")
    if kind == "dataset" and plot is not None:
        raise click.UsageError(f"{file} is a dataset, of which there is nothing to draw")
    stored = unpack(contents)
    opened = open_vectors(vectors)
    if opened:
        if dump:
            raise click.UsageError("--dump prints weights alone: leave out --vectors")
        stored.encoding.check_vectors({each.name: each.width for each in opened}, file)
    if plot is not None:
        _draw(plot, stored)
    if dump:
        _dump(stored)
        return
    found = summarise(contents, stored, top)
    found["given_vectors"] = [each.described() for each in opened]
    if as_json:
        write_out(render.as_json({"schema": 1, **found}))
    else:
        show(text(found, file, top))


def _show_folder(path: str, as_json: bool) -> None:
    """What a folder of shards says of itself; all its shards are there."""
    from kcrf_core.model import load_folder

    from ..running.files import show, write_out
    from ..text import figures as render

    folder = load_folder(path)
    sizes = [shard.positions for shard in folder.shards]
    figures = {
        "kind": "shards",
        "shards": len(sizes),
        "sequences": folder.sequences,
        "positions": folder.positions,
        "fewest_positions": min(sizes),
        "most_positions": max(sizes),
        "labels": list(folder.encoding.labels),
        "labelled": folder.labelled,
        "bytes": sum(shard.size for shard in folder.shards),
        "digest": folder.data_digest,
    }
    if as_json:
        write_out(render.as_json({"schema": 1, **figures}))
        return
    lines = [
        f"{path}: a folder of {len(sizes):,} shards with {min(sizes):,} to {max(sizes):,} positions",
        *folder.encoding.remarks(folder.amount),
        f"digest of the data {folder.data_digest}",
    ]
    show("\n".join(lines))


def _draw(path: str, stored: object) -> None:
    from kcrf_core.model import Model

    from ..report import plots

    if isinstance(stored, Model):
        plots.transitions(path, stored.labels, stored.edges)
    else:
        plots.residual_curves(path, {term.name: term.curve for term in stored.terms})


def _dump(model: object) -> None:
    from kcrf_core.model import dump

    from ..running.files import output_stream
    from ..text.visible import shown

    with output_stream(None) as stream:
        for cells in dump(model):
            stream.write(("\t".join(map(shown, cells)) + "\n").encode())
