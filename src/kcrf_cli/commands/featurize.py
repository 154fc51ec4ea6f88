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
    from kcrf_core.corpora import Spool
    from kcrf_core.encoding import Amount, Dataset, Encoding, TermCount
    from kcrf_core.system import Workers

MOST_SHARDS = 9999
LINES_AT_ONCE = 1000  # of an export: compressing line by line is slow


@dataclass(frozen=True)
class FeaturizeArguments:
    """Arguments of `featurize`."""

    data: tuple[str, ...] = options.argument("DATA...", options.DATA, nargs=-1, required=True)
    output: str | None = options.option(
        "Dataset to write (.npz), folder of --shards, or the text of --export.",
        "FILE",
        "-o",
        "--output",
        type=options.FileToWrite(stdout=True, folder=True),
    )
    shards: int | None = options.option(
        "Write a folder of N shards in memory that does not grow with the data; in a file whose name ends in .npz, "
        "only mark where they begin. Default: one file, encoded in memory.",
        "N",
        type=click.IntRange(1, MOST_SHARDS),
    )
    configuration: options.Configuration = options.configuration("layout", "encoding", "unobserved")
    like: str | None = options.option(
        "Encode as this dataset, folder of shards, basis or model did: its vocabulary, scaling and labels.",
        "FILE",
        type=click.Path(),
    )
    export: str | None = options.option(
        "Write the encoded data as text for other programs instead of a dataset: attributes of CRFsuite, or rows of "
        "SVMlight with a header that says what the numbers mean. Goes to -o, or to stdout. Default: a dataset.",
        type=options.NamedChoice("encoding:EXPORTS"),
    )
    show: int | None = options.count("Print the features of the first N positions.")
    format: str | None = options.format()
    threads: int | None = options.threads()
    vectors: tuple[tuple[str, str], ...] = options.vectors()
    json: bool = options.json()
    quiet: bool = options.quiet()

    @property
    def in_parts(self) -> bool:
        """True if files are gone through in parts."""
        return self.shards is not None or len(self.data) > 1

    @property
    def text_on_stdout(self) -> bool:
        """True if exported text goes to stdout."""
        return self.export is not None and self.output in (None, "-")

    def check(self) -> None:
        """Refuse options that contradict each other, and files that cannot be written."""
        from ..io.files import check_writable

        output = self.output
        if self.json and self.show is not None:
            raise click.UsageError("--show and --json both write to stdout: give one of them")
        if self.text_on_stdout and (self.json or self.show is not None):
            raise click.UsageError("--export writes to stdout, like --show and --json: give it a file with -o")
        if self.export is not None and output is not None and output.endswith(".npz"):
            raise click.UsageError(f"--export writes text, and {output} is a name for a dataset: give another name")
        if output is None and self.show is None and self.export is None and not self.json:
            raise click.UsageError("nothing to do: give -o FILE, --show N, --export FORMAT or --json")
        if self.like is not None and (self.configuration.config is not None or self.configuration.typed):
            raise click.UsageError(
                "--like brings its own configuration: it goes without -c, --columns, --window and --min-count"
            )
        if self.in_parts:
            self._check_parts()
        elif output is not None and output.endswith(os.sep):
            raise click.UsageError(f"{output} is the name of a folder, as --shards writes them: give --shards N, too")
        if output is not None and not self.text_on_stdout and not (self.in_parts and not output.endswith(".npz")):
            paths = [path for _, path in self.vectors]
            check_writable(output, *self.data, self.configuration.config, self.like, *paths)

    def _check_parts(self) -> None:
        """Refuse what does not go with several files or with shards."""
        from kcrf_core.model import check_replaceable

        what, output = "--shards" if self.shards is not None else "several files", self.output
        if self.export is not None or self.show is not None:
            option = "--export" if self.export is not None else "--show"
            raise click.UsageError(f"{option} shows one file, encoded in memory: it does not go with {what}")
        if output is None or output == "-":
            raise click.UsageError(
                f"{what}: nothing is written without -o and the name of a {'folder' if self.shards else 'file'}"
            )
        if self.data.count("-") > 1:
            raise click.UsageError("standard input can be read once: name it once")
        if output.endswith(".npz"):
            return
        if self.shards is None:
            raise click.UsageError(f"{output}: give a name that ends in .npz, or --shards N for a folder of shards")
        folder = os.path.dirname(os.path.abspath(output.rstrip(os.sep)))
        if not os.path.isdir(folder):
            raise FileNotFoundError(2, "there is no such directory to write to", folder)
        check_replaceable(output)
        within = os.path.realpath(output) + os.sep
        for path in self.data:
            if path != "-" and os.path.isdir(output) and os.path.realpath(path).startswith(within):
                raise click.UsageError(f"{path} is in {output}, which would be replaced: give another name")


@options.command(FeaturizeArguments)
def featurize(run: FeaturizeArguments) -> None:
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

    from ..io.files import load_config, output_stream, read_data, say, write_out
    from ..render.visible import shown

    run.check()
    if run.in_parts:
        assert run.output is not None
        _say(run, *PartedRun(run, run.output).featurized())
        return
    (path,) = run.data
    said, beside = None, (run.threads, run.quiet, run.vectors)
    if run.like is not None:
        encoding, raw = load_encoding(run.like)
        settings = parse_config(raw, run.like)
        corpus = read_data(path, run.format, encoding.columns, encoding.layout, *beside)
        dataset = encoding.encode(corpus, weighed=True)
    else:
        given, source = load_config(run.configuration.config), run.configuration.source
        chosen = run.configuration.chosen
        settings = described(given, chosen, source)  # its mistakes come before any reading
        corpus = read_data(path, run.format, settings.columns, settings.layout, *beside)
        settings, said = configured(given, chosen, corpus, source, terms=False)
        encoding, dataset = fit_encoding(settings, corpus)
    if run.show is not None:
        for t in range(min(run.show, dataset.positions)):
            own = [] if dataset.labels is None else [corpus.columns[-1][t]]
            write_out("\t".join(map(shown, [*own, *encoding.describe(dataset, t)])))
    if run.export is not None:
        gold = None if dataset.labels is None else corpus.columns[-1]
        with output_stream(run.output) as stream:
            lines = export(encoding, dataset, run.export, gold)
            while part := "".join(islice(lines, LINES_AT_ONCE)):
                stream.write(part.encode())
    elif run.output is not None:
        save_dataset(run.output, encoding, dataset, settings)
    counts = term_counts(encoding, dataset, settings)
    _say(run, encoding, Amount.of(dataset), counts, said)
    if not run.quiet and run.export is not None and any(term.type == "edge-x" for term in settings.terms):
        say("features of edge-x terms are written like others: as text they belong to positions, not to transitions")


@dataclass(frozen=True)
class PartedRun:
    """Files that are gone through in parts, and the dataset or folder of shards that they become."""

    run: FeaturizeArguments
    output: str

    def featurized(self) -> tuple[Encoding, Amount, list[TermCount], str | None]:
        """Read, fit, encode and write; return what there is to tell of it."""
        from kcrf_core.config import parse_config
        from kcrf_core.corpora import SUGGESTING_POSITIONS, Spool
        from kcrf_core.encoding import Amount, TermCounter, configured, described, fit_to, join_datasets
        from kcrf_core.model import load_encoding, new_folder, save_dataset, save_shards
        from kcrf_core.system import Workers, hand_back

        from ..io.files import load_config, say

        run = self.run
        known, said, amount = None, None, Amount()
        names: tuple[str, ...] | None
        if run.like is not None:
            known, raw = load_encoding(run.like)
            settings, names, layout = parse_config(raw, run.like), known.columns, known.layout
        else:
            given, source = load_config(run.configuration.config), run.configuration.source
            chosen = run.configuration.chosen
            settings = described(given, chosen, source)  # its mistakes come before any reading
            names, layout = settings.columns, settings.layout
        single = self.output.endswith(".npz")
        place = nullcontext(os.path.dirname(os.path.abspath(self.output))) if single else new_folder(self.output)
        with (
            place as folder,
            Spool(folder, run.vectors, layout, run.shards or 1, fitting=known is None) as spool,
            Workers(run.threads) as workers,
        ):
            self._read(spool, names, workers)
            hand_back()
            if known is not None:
                encoding = known
                encoding.check_vectors(
                    {name: rows.shape[1] for name, rows in spool.corpus.vectors.items()}, spool.source
                )
            else:
                some = spool.sample(SUGGESTING_POSITIONS)
                settings, said = configured(given, chosen, some, source, terms=False)
                if said is not None and some.positions < spool.positions:
                    said += f", by {some.positions:,} of {spool.positions:,} positions"
                del some
                encoding = fit_to(settings, spool)
            hand_back()
            counter = TermCounter(encoding, settings)
            amount = Amount()

            def shards() -> Iterator[Dataset]:
                nonlocal amount
                for dataset in self._watched(encoding.encoded_shards(spool, workers), len(spool.borders) - 1):
                    counter.add(dataset)
                    amount = amount.plus(Amount.of(dataset))
                    yield dataset

            if single:
                dataset = join_datasets(list(shards()))
                if run.shards is not None:
                    dataset = replace(dataset, partitions=spool.borders)
                save_dataset(self.output, encoding, dataset, settings)
            else:
                save_shards(folder, encoding, settings, shards())
                if run.shards is not None and len(spool.borders) - 1 < run.shards and not run.quiet:
                    say(f"{len(spool.borders) - 1:,} shards: there are no more sequences to begin one with")
        return encoding, amount, counter.counts(), said

    def _read(self, spool: Spool, names: Sequence[str] | None, workers: Workers) -> None:
        from kcrf_core.files import compression_of

        plain = all(path != "-" and os.path.isfile(path) and compression_of(path) is None for path in self.run.data)
        size = sum(map(os.path.getsize, self.run.data)) if plain else None
        with self._bar("reading", size, unit="B", unit_scale=True) as progress:
            spool.read(self.run.data, self.run.format, names, workers, progress)

    def _watched(self, shards: Iterable[Dataset], count: int) -> Iterator[Dataset]:
        with self._bar("encoding", count, unit=" shards") as progress:
            for dataset in shards:
                yield dataset
                if progress is not None:
                    progress(1)

    @contextmanager
    def _bar(self, name: str, total: int | None, **looks: Any) -> Iterator[Callable[[int], object] | None]:
        """Show a bar where someone can watch it, and yield a function that moves it."""
        if self.run.quiet or sys.stderr is None or not sys.stderr.isatty():
            yield None
            return
        from tqdm import tqdm

        with tqdm(total=total, desc=name, delay=1, leave=False, file=sys.stderr, **looks) as bar:
            yield bar.update


def _say(
    run: FeaturizeArguments, encoding: Encoding, amount: Amount, counts: Sequence[TermCount], said: str | None
) -> None:
    """Print figures on stdout, where they are asked for, and messages."""
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
    if run.json:
        write_out(render.as_json(figures))
    if run.quiet:
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
