"""`kcrf featurize`: encode a data file once, for training again and again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from .. import options

if TYPE_CHECKING:
    from kcrf_core.corpora import Layout, Spool
    from kcrf_core.encoding import Amount, Dataset, Encoding, TermCount
    from kcrf_core.system import Workers

MOST_SHARDS = 9999
LINES_AT_ONCE = 1000  # of an export: compressing line by line is slow


@click.command(short_help="Encode data into an .npz file.")
@click.argument("data", type=click.Path(allow_dash=True), metavar="DATA...", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    type=options.FileToWrite(stdout=True, folder=True),
    metavar="FILE",
    help="Dataset to write (.npz), folder of --shards, or the text of --export.",
)
@click.option(
    "--shards",
    type=click.IntRange(1, MOST_SHARDS),
    metavar="N",
    help="Write a folder of N shards in memory that does not grow with the data; in a file whose name ends in .npz, "
    "only mark where they begin. Default: one file, encoded in memory.",
)
@options.config
@click.option(
    "--like",
    type=click.Path(),
    metavar="FILE",
    help="Encode as this dataset, folder of shards, basis or model did: its vocabulary, scaling and labels.",
)
@click.option(
    "--export",
    "export_",
    type=options.NamedChoice(options.exports),
    help="Write the encoded data as text for other programs instead of a dataset: attributes of CRFsuite, or rows of "
    "SVMlight with a header that says what the numbers mean. Goes to -o, or to stdout. Default: a dataset.",
)
@click.option("--show", type=click.IntRange(min=1), metavar="N", help="Print the features of the first N positions.")
@options.format
@options.encoding
@options.weight
@options.unobserved
@options.threads
@options.vectors
@options.json
@options.quiet
def featurize(
    data: tuple[str, ...],
    output: str | None,
    shards: int | None,
    config: str | None,
    like: str | None,
    export_: str | None,
    show: int | None,
    format_: str | None,
    threads: int | None,
    vectors: tuple[tuple[str, str], ...],
    as_json: bool,
    quiet: bool,
    **values: Any,
) -> None:
    """Encode DATA, so that later commands need not read and encode it again.

    The file holds the numbers, the vocabulary and the scaling; `select-basis`, `train` and `evaluate -m` take it
    in place of text. With --show, the features of the first positions are printed, to check a configuration.

    With --shards data of any size, in any number of files, becomes a folder of shards, which those commands and `tag`
    take in place of a file, reading one shard after another. A damaged or missing shard is named, and a run that is
    interrupted leaves no folder behind.

    \b
    Example:
      kcrf featurize sample_data/pitch_accent.conll -o accent.npz
      kcrf featurize sample_data/pitch_accent.conll --show 2
      kcrf featurize sample_data/pitch_accent.conll --vectors emb=sample_data/pitch_accent.npy --show 1
      kcrf featurize sample_data/pitch_accent.conll --window 0..0 --export crfsuite -o accent.crfsuite
      kcrf featurize sample_data/pitch_accent.conll sample_data/pitch_accent.conll -o accent.shards/ --shards 8
    """
    from kcrf_core.config import parse_config
    from kcrf_core.encoding import Amount, configured, described, export, fit_encoding, term_counts
    from kcrf_core.model import load_encoding, save_dataset

    from ..io.files import check_writable, load_config, output_stream, read_data, write_out
    from ..render.visible import shown

    if as_json and show is not None:
        raise click.UsageError("--show and --json both write to stdout: give one of them")
    text_on_stdout = export_ is not None and output in (None, "-")
    if text_on_stdout and (as_json or show is not None):
        raise click.UsageError("--export writes to stdout, like --show and --json: give it a file with -o")
    if export_ is not None and output is not None and output.endswith(".npz"):
        raise click.UsageError(f"--export writes text, and {output} is a name for a dataset: give another name")
    if output is None and show is None and export_ is None and not as_json:
        raise click.UsageError("nothing to do: give -o FILE, --show N, --export FORMAT or --json")
    chosen = options.given(values, options.ENCODING_OPTIONS)
    if like is not None and (config is not None or chosen):
        raise click.UsageError(
            "--like brings its own configuration: it goes without -c, --columns, --window and --min-count"
        )
    parts = shards is not None or len(data) > 1
    if parts:
        _check_parts(data, output, shards, export_, show)
    elif output is not None and output.endswith(os.sep):
        raise click.UsageError(f"{output} is the name of a folder, as --shards writes them: give --shards N, too")
    if output is not None and not text_on_stdout and not (parts and not output.endswith(".npz")):
        check_writable(output, *data, config, like, *(path for _, path in vectors))
    if parts:
        assert output is not None
        parted = PartedRun(data, output, shards, format_, threads, vectors, quiet)
        _say(*parted.featurized(config, like, chosen), quiet, as_json)
        return
    (path,) = data
    said = None
    if like is not None:
        encoding, raw = load_encoding(like)
        settings = parse_config(raw, like)
        corpus = read_data(path, format_, encoding.columns, encoding.layout, threads, quiet, vectors)
        dataset = encoding.encode(corpus, weighed=True)
    else:
        given, source = load_config(config), config or "options"
        settings = described(given, chosen, source)  # its mistakes come before any reading
        corpus = read_data(path, format_, settings.columns, settings.layout, threads, quiet, vectors)
        settings, said = configured(given, chosen, corpus, source, terms=False)
        encoding, dataset = fit_encoding(settings, corpus)
    if show is not None:
        for t in range(min(show, dataset.positions)):
            own = [] if dataset.labels is None else [corpus.columns[-1][t]]
            write_out("\t".join(map(shown, [*own, *encoding.describe(dataset, t)])))
    if export_ is not None:
        gold = None if dataset.labels is None else corpus.columns[-1]
        with output_stream(output) as stream:
            lines = export(encoding, dataset, export_, gold)
            while part := "".join(islice(lines, LINES_AT_ONCE)):
                stream.write(part.encode())
    elif output is not None:
        save_dataset(output, encoding, dataset, settings)
    counts = term_counts(encoding, dataset, settings)
    _say(encoding, Amount.of(dataset), counts, said, quiet, as_json)
    if not quiet:
        from ..io.files import say

        if export_ is not None and any(term.type == "edge-x" for term in settings.terms):
            say(
                "features of edge-x terms are written like others: as text they belong to positions, not to transitions"
            )


def _check_parts(
    data: Sequence[str], output: str | None, shards: int | None, export_: str | None, show: int | None
) -> None:
    """A usage error for what does not go with several files or with shards."""
    from kcrf_core.model import check_replaceable

    what = "--shards" if shards is not None else "several files"
    if export_ is not None or show is not None:
        option = "--export" if export_ is not None else "--show"
        raise click.UsageError(f"{option} shows one file, encoded in memory: it does not go with {what}")
    if output in (None, "-"):
        raise click.UsageError(
            f"{what}: nothing is written without -o and the name of a {'folder' if shards else 'file'}"
        )
    if data.count("-") > 1:
        raise click.UsageError("standard input can be read once: name it once")
    if output.endswith(".npz"):
        return
    if shards is None:
        raise click.UsageError(f"{output}: give a name that ends in .npz, or --shards N for a folder of shards")
    folder = os.path.dirname(os.path.abspath(output.rstrip(os.sep)))
    if not os.path.isdir(folder):
        raise FileNotFoundError(2, "there is no such directory to write to", folder)
    check_replaceable(output)
    for path in data:
        if (
            path != "-"
            and os.path.isdir(output)
            and os.path.realpath(path).startswith(os.path.realpath(output) + os.sep)
        ):
            raise click.UsageError(f"{path} is in {output}, which would be replaced: give another name")


@dataclass(frozen=True)
class PartedRun:
    """What is to be made of files that are gone through in parts."""

    data: tuple[str, ...]
    output: str
    shards: int | None
    format: str | None
    threads: int | None
    vectors: Sequence[tuple[str, str]]
    quiet: bool

    def featurized(
        self, config: str | None, like: str | None, chosen: dict[str, Any]
    ) -> tuple[Encoding, Amount, list[TermCount], str | None]:
        """Read, fit, encode and write; what there is to tell of it."""
        from kcrf_core.config import parse_config
        from kcrf_core.corpora import Spool
        from kcrf_core.encoding import (
            SUGGESTING_POSITIONS,
            Amount,
            SpooledColumns,
            TermCounter,
            configured,
            described,
            encoded_shards,
            fit_spooled,
            join_datasets,
        )
        from kcrf_core.model import load_encoding, new_folder, save_dataset, save_shards
        from kcrf_core.system import Workers, hand_back

        from ..io.files import load_config, say

        known, said, amount = None, None, Amount()
        names: tuple[str, ...] | None
        if like is not None:
            known, raw = load_encoding(like)
            settings, names, layout = parse_config(raw, like), known.columns, known.layout
        else:
            given, source = load_config(config), config or "options"
            settings = described(given, chosen, source)  # its mistakes come before any reading
            names, layout = settings.columns, settings.layout
        single = self.output.endswith(".npz")
        place = nullcontext(os.path.dirname(os.path.abspath(self.output))) if single else new_folder(self.output)
        with place as folder, Spool(folder, self.vectors, layout) as spool, Workers(self.threads) as workers:
            self._read(spool, names, layout, workers)
            hand_back()
            if known is not None:
                encoding, columns = known, SpooledColumns(spool, layout.missing, self.shards or 1, fitting=False)
                encoding.check_vectors(
                    {name: rows.shape[1] for name, rows in columns.corpus.vectors.items()}, spool.source
                )
            else:
                columns = SpooledColumns(spool, layout.missing, self.shards or 1)
                some = columns.sample(SUGGESTING_POSITIONS)
                settings, said = configured(given, chosen, some, source, terms=False)
                if said is not None and some.positions < spool.positions:
                    said += f", by {some.positions:,} of {spool.positions:,} positions"
                del some
                encoding, columns = fit_spooled(settings, spool, self.shards or 1)
            hand_back()
            counter = TermCounter(encoding, settings)
            amount = Amount()

            def shards() -> Iterator[Dataset]:
                nonlocal amount
                for dataset in self._watched(encoded_shards(encoding, columns, workers), len(columns.borders) - 1):
                    counter.add(dataset)
                    amount = amount.plus(Amount.of(dataset))
                    yield dataset

            if single:
                dataset = join_datasets(list(shards()))
                if self.shards is not None:
                    dataset = replace(dataset, portions=columns.borders)
                save_dataset(self.output, encoding, dataset, settings)
            else:
                save_shards(folder, encoding, settings, shards())
                if self.shards is not None and len(columns.borders) - 1 < self.shards and not self.quiet:
                    say(f"{len(columns.borders) - 1:,} shards: there are no more sequences to begin one with")
        return encoding, amount, counter.counts(), said

    def _read(self, spool: Spool, names: Sequence[str] | None, layout: Layout, workers: Workers) -> None:
        from kcrf_core.corpora import spool_corpus
        from kcrf_core.files import compression_of

        plain = all(path != "-" and os.path.isfile(path) and compression_of(path) is None for path in self.data)
        size = sum(map(os.path.getsize, self.data)) if plain else None
        with self._bar("reading", size, unit="B", unit_scale=True) as progress:
            spool_corpus(self.data, spool, self.format, names, workers, layout, progress)

    def _watched(self, shards: Iterable[Dataset], count: int) -> Iterator[Dataset]:
        with self._bar("encoding", count, unit=" shards") as progress:
            for dataset in shards:
                yield dataset
                if progress is not None:
                    progress(1)

    @contextmanager
    def _bar(self, name: str, total: int | None, **looks: Any) -> Iterator[Callable[[int], object] | None]:
        """Someone to tell of progress, where someone can watch it."""
        if self.quiet or sys.stderr is None or not sys.stderr.isatty():
            yield None
            return
        from tqdm import tqdm

        with tqdm(total=total, desc=name, delay=1, leave=False, file=sys.stderr, **looks) as bar:
            yield bar.update


def _say(
    encoding: Encoding, amount: Amount, counts: Sequence[TermCount], said: str | None, quiet: bool, as_json: bool
) -> None:
    """Figures on stdout, where they are asked for, and what a person should hear."""
    from kcrf_core.chains import CLIQUES
    from kcrf_core.system import counted

    from ..io.files import say, write_out
    from ..render import figures as render

    like = encoding.empty_dataset()
    figures = {
        "schema": 1,
        "sequences": amount.sequences,
        "positions": amount.positions,
        "labels": len(encoding.labels),
        "categorical_columns": like.codes.shape[1],
        "real_columns": like.real.shape[1],
        "attributes": 0 if like.bag is None else like.bag.shape[1],
        "terms": [asdict(count) for count in counts],
    }
    if as_json:
        write_out(render.as_json(figures))
    if quiet:
        return
    remarks = encoding.remarks(amount)
    for remark in [*remarks[1:2], *filter(None, [said]), *remarks[2:]]:
        say(remark)
    say(
        ", ".join(counted(figures[f"{noun}s"], noun) for noun in ("sequence", "position", "label"))
        + f"; {figures['categorical_columns']} categorical and "
        f"{counted(figures['real_columns'], 'real column')} after windows"
        + (f", {counted(figures['attributes'], 'attribute')}" if figures["attributes"] else "")
    )
    for term in figures["terms"]:
        if CLIQUES[term["type"]].mapped:
            distinct, weights = counted(term["values"], "distinct value"), counted(term["weights"], "weight")
            say(f"term {term['name']}: {distinct}, {weights} if linear")
