"""`kcrf inspect`: show the contents of a model, basis or dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from kcrf_core.files import is_archive, is_folder

from .. import options
from ..io import files
from ..render.visible import shown

if TYPE_CHECKING:
    from kcrf_core.model import Importance, Model


@dataclass(frozen=True, kw_only=True)
class InspectArguments:
    file: str = options.argument("FILE", click.Path())
    top: int = options.count("Print the N strongest features or pivots of each label. Default: 10.", 10, 0, common=True)
    dump: bool = options.switch(
        "Print every non-zero weight instead, one per line, separated by tabs: term, feature, label, weight.",
        common=True,
    )
    vectors: tuple[tuple[str, str], ...] = options.vectors(
        "Check that names and widths of vectors fit FILE. Default: none."
    )
    importance: str | None = options.option(
        "Permutation importance on labelled text: the drop in log-likelihood when the values of a column are shuffled. "
        "Default: only weights are shown.",
        "DATA",
        type=click.Path(),
        common=True,
    )
    repetitions: int = options.count("Number of shuffles for --importance. Default: 3.", 3)
    threads: int | None
    json: bool = options.switch("Print the contents as JSON on stdout.", common=True)


@options.command(InspectArguments)
def inspect(run: InspectArguments) -> None:
    """Show the contents of FILE: a model, a basis, a dataset or a folder of shards.

    For a model: labels, terms with their kernels and sizes, the certificate, the training data, transitions, and the
    features or pivots with the largest weights for each label. A pivot is identified by its line in the training data.
    --importance adds the permutation importance of each column on labelled data.

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
    from kcrf_core.files import read_container
    from kcrf_core.model import Model, dump, summarise, unpack

    from ..render.inspection_text import text

    file = run.file
    options.refuse((run.dump and run.json, "--dump and --json both write to stdout: give one of them"))
    if is_folder(file):
        for name, given in {"dump": run.dump, "vectors": run.vectors, "importance": run.importance}.items():
            options.refuse((given, f"{file} is a folder of shards, which does not go with --{name}"))
        _show_folder(file, run.json)
        return
    contents = read_container(file, "model", "basis", "dataset")
    kind = contents.header["kind"]
    options.refuse((kind != "model" and run.dump, f"{file} is a {kind}, which has no weights to dump"))
    stored, importance = unpack(contents), None
    opened = open_vectors(run.vectors)
    if opened:
        options.refuse((run.dump, "--dump prints weights alone: leave out --vectors"))
        stored.encoding.check_vectors({each.name: each.width for each in opened}, file)
    if run.importance is not None:
        if not isinstance(stored, Model) or run.dump:
            raise click.UsageError("--importance needs a model, and does not go with --dump")
        importance = _importance(stored, run, run.importance)
    if run.dump:
        assert isinstance(stored, Model)
        with files.output_stream(None) as stream:
            for cells in dump(stored):
                stream.write(("\t".join(map(shown, cells)) + "\n").encode())
        return
    found = summarise(contents, stored, run.top)
    if importance is not None:
        found["importance"] = [one.to_dict() for one in importance]
    if run.json:
        files.write_json(found)
    else:
        files.show(text(found, file, run.top))


def _show_folder(path: str, as_json: bool) -> None:
    """Show a folder of shards; all its shards are there."""
    from kcrf_core.model import load_folder

    folder = load_folder(path)
    sizes = [shard.positions for shard in folder.shards]
    if as_json:
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
        files.write_json(figures)
        return
    lines = [
        f"{path}: a folder of {len(sizes):,} shards with {min(sizes):,} to {max(sizes):,} positions",
        *folder.encoding.remarks(folder.amount),
        f"digest of the data {folder.data_digest}",
    ]
    files.show("\n".join(lines))


def _importance(model: Model, run: InspectArguments, data: str) -> list[Importance]:
    """Return the importance of each column, by labelled data; a bar shows the progress."""
    from kcrf_core.model import importances
    from kcrf_core.system import Workers

    from ..io.progress import progress

    encoding = model.encoding
    options.refuse((is_archive(data), f"{data} is encoded, and has no columns to shuffle: give the text"))
    layout = encoding.columns, encoding.layout
    corpus = files.read_data(data, encoding.format, *layout, run.threads, True, run.vectors)
    with Workers(run.threads) as workers, progress(False, "columns") as moved:
        return importances(model, corpus, workers, run.repetitions, done=moved)
