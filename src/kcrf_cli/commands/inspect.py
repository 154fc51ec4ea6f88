"""`kcrf inspect`: what a model, basis or dataset holds."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from .. import options

if TYPE_CHECKING:
    from kcrf_core.model import Importance, Model


@dataclass(frozen=True)
class InspectArguments:
    """Arguments of `inspect`."""

    file: str = options.argument("FILE", click.Path())
    top: int = options.count(
        "Tell the N strongest features or pivots of each label. Default: 10.",
        10,
        least=0,
    )
    dump: bool = options.switch(
        "Print every weight that is not zero instead, one in a line: term, feature, label, weight, between TABs."
    )
    plot: str | None = options.written(
        "Plot the transitions of a model, or what the pivots of a basis leave (.png, .svg or .pdf; needs matplotlib). "
        "Default: no plot."
    )
    vectors: tuple[tuple[str, str], ...] = options.vectors(
        "Look at vectors that are meant for FILE, too: rows, width and numbers. An error tells where they do not fit. "
        "Default: none."
    )
    importance: str | None = options.option(
        "Tell how much a model makes of each column at each offset, by labelled data: what log p of labels loses where "
        "its values are dealt out anew; --plot draws that. Default: weights alone.",
        "DATA",
        type=click.Path(),
    )
    repetitions: int = options.count(
        "Number of times that values are dealt out for --importance. Default: 3.",
        3,
    )
    threads: int | None = options.threads()
    json: bool = options.json()


@options.command(InspectArguments)
def inspect(run: InspectArguments) -> None:
    """Show what FILE holds: a model, a basis, a dataset or a folder of shards.

    Of a model: labels, terms with their kernels and sizes, the certificate, where it comes from, transitions, and
    the features or pivots that speak most for each label and against it. A pivot is told by its line in the
    training data. With --importance also what each column is worth on labelled data.

    \b
    Example:
      kcrf train sample_data/pitch_accent.conll --sigma2 1 -o model.npz
      kcrf inspect model.npz --top 3
      kcrf inspect model.npz --dump | grep -F "c1[0]="
      kcrf inspect model.npz --top 0 --importance sample_data/pitch_accent.conll --repetitions 1
      kcrf train sample_data/pitch_accent.conll --vectors emb=sample_data/pitch_accent.npy --sigma2 1 -o emb.npz
      kcrf inspect emb.npz --top 1 --vectors emb=sample_data/pitch_accent.npy
    """
    from kcrf_core.corpora import open_vectors
    from kcrf_core.files import is_folder, read_container
    from kcrf_core.model import Model, summarise, unpack

    from ..io.files import check_writable, show, write_out
    from ..render import figures as render
    from ..render.inspection_text import text
    from ..report.plots import check_plot

    file = run.file
    if run.dump and run.json:
        raise click.UsageError("--dump and --json both want standard output: give one of them")
    check_plot(run.plot)
    if run.plot is not None:
        check_writable(run.plot, file)
    if is_folder(file):
        if run.dump or run.plot is not None or run.vectors:
            raise click.UsageError(f"{file} is a folder of shards, of which there is nothing to draw, dump or compare")
        _show_folder(file, run.json)
        return
    contents = read_container(file, "model", "basis", "dataset")
    kind = contents.header["kind"]
    if kind != "model" and run.dump:
        raise click.UsageError(f"{file} is a {kind}, which has no weights to dump")
    if kind == "dataset" and run.plot is not None:
        raise click.UsageError(f"{file} is a dataset, of which there is nothing to draw")
    stored = unpack(contents)
    opened = open_vectors(run.vectors)
    if opened:
        if run.dump:
            raise click.UsageError("--dump prints weights alone: leave out --vectors")
        stored.encoding.check_vectors({each.name: each.width for each in opened}, file)
    told = None
    if run.importance is not None:
        if not isinstance(stored, Model) or run.dump:
            raise click.UsageError("--importance is that of a model, beside what else is told of it: leave out --dump")
        told = _importance(stored, run.importance, run.vectors, run.repetitions, run.threads)
    if run.plot is not None:
        _draw(run.plot, stored, told)
    if run.dump:
        assert isinstance(stored, Model)
        _dump(stored)
        return
    found = summarise(contents, stored, run.top)
    found["given_vectors"] = [each.described() for each in opened]
    if told is not None:
        found["importance"] = [one.to_dict() for one in told]
    if run.json:
        write_out(render.as_json({"schema": 1, **found}))
    else:
        show(text(found, file, run.top))


def _show_folder(path: str, as_json: bool) -> None:
    """Show a folder of shards; all its shards are there."""
    from kcrf_core.model import load_folder

    from ..io.files import show, write_out
    from ..render import figures as render

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


def _importance(
    model: Model, data: str, vectors: Sequence[tuple[str, str]], repetitions: int, threads: int | None
) -> list[Importance]:
    """Return the importance of each feature, by labelled data; a bar shows the progress."""
    from tqdm import tqdm

    from kcrf_core.errors import FileFormatError
    from kcrf_core.files import is_archive
    from kcrf_core.model import importances, load_dataset
    from kcrf_core.system import Workers

    from ..io.files import read_data

    encoding = model.encoding
    if is_archive(data):
        archive = load_dataset(data)
        if not archive.encoding.same_as(encoding):
            raise FileFormatError(f"{data}: encoded unlike the model: featurize it with --like MODEL")
        dataset = archive.dataset
    else:
        corpus = read_data(data, encoding.format, encoding.columns, encoding.layout, threads, True, vectors)
        dataset = encoding.encode(corpus)
    unseen = sys.stderr is None or not sys.stderr.isatty()
    with Workers(threads) as workers, tqdm(desc="features", file=sys.stderr, leave=False, disable=unseen) as bar:
        return importances(model, dataset, workers, repetitions, done=lambda: bar.update())


def _draw(path: str, stored: object, importance: list[Importance] | None = None) -> None:
    from kcrf_core.features import StoredBasis
    from kcrf_core.model import Model

    from ..report import plots

    if importance is not None:
        plots.importance(path, importance)
    elif isinstance(stored, Model):
        plots.transitions(path, stored.labels, stored.edges)
    elif isinstance(stored, StoredBasis):
        plots.residual_curves(path, {term.name: term.curve for term in stored.terms})


def _dump(model: Model) -> None:
    from kcrf_core.model import dump

    from ..io.files import output_stream
    from ..render.visible import shown

    with output_stream(None) as stream:
        for cells in dump(model):
            stream.write(("\t".join(map(shown, cells)) + "\n").encode())
