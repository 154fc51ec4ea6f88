"""`kcrf featurize`: encode a data file once, for training again and again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from kcrf_core.system import counted

from .. import options
from ..io import files
from ..render.visible import shown

if TYPE_CHECKING:
    from kcrf_core.config import Config
    from kcrf_core.encoding import Amount, Dataset, Encoding

MOST_SHARDS = 9999
LINES_AT_ONCE = 1000  # of an export: compressing line by line is slow


@dataclass(frozen=True, kw_only=True)
class FeaturizeArguments:
    data: tuple[str, ...] = options.argument("DATA...", options.DATA_FILE, nargs=-1, required=True)
    output: str | None = options.option(
        "Output: a dataset (.npz), a folder with --shards, or text with --export.",
        "FILE",
        "-o",
        "--output",
        type=options.FileToWrite(allow_dash=True),
        common=True,
    )
    shards: int | None = options.option(
        "Write a folder of N shards, in constant memory. If the output is an .npz file, it only marks where shards "
        "begin. Default: one file, encoded in memory.",
        "N",
        type=click.IntRange(1, MOST_SHARDS),
        common=True,
    )
    configuration: options.Configuration = options.group(options.Configuration, "layout", "encoding", "unobserved")
    like: str | None = options.FEATURES.option(
        "Encode with the vocabulary, scaling and labels of this dataset, folder of shards, basis or model.",
        "FILE",
        type=click.Path(),
        common=True,
    )
    export: str | None = options.option(
        "Write text for other programs instead of a dataset: attributes for CRFsuite. The text goes to -o or to "
        "stdout. Default: a dataset.",
        type=click.Choice(["crfsuite"]),
        common=True,
    )
    show: int | None = options.count("Print the features of the first N positions.", common=True)
    format: str | None
    threads: int | None
    vectors: tuple[tuple[str, str], ...]
    json: bool
    quiet: bool
    verbose: bool = options.verbose("kinds of columns")

    @property
    def in_parts(self) -> bool:
        """True if files are gone through in parts."""
        return self.shards is not None or len(self.data) > 1

    def __post_init__(self) -> None:
        """Refuse options that contradict each other, and files that cannot be written."""
        output, export, show = self.output, self.export is not None, self.show is not None
        printed = export and output in (None, "-")
        single = output is not None and output.endswith(".npz")
        nothing = output is None and not (show or export or self.json)
        configured = self.configuration.config is not None or self.configuration.typed
        options.refuse(
            (self.json and show, "--show and --json both write to stdout: give one of them"),
            (
                printed and (self.json or show),
                "--export writes to stdout, like --show and --json: give it a file with -o",
            ),
            (export and single, f"--export writes text, and {output} is a name for a dataset: give another name"),
            (nothing, "nothing to do: give -o FILE, --show N, --export FORMAT or --json"),
            (self.like and configured, "--like has a configuration: leave out -c, --columns, --window and --min-count"),
        )
        if self.in_parts:
            self._check_parts(output)
        elif output is not None and output.endswith(os.sep):
            raise click.UsageError(f"{output} is the name of a folder, as --shards writes them: give --shards N, too")
        if output is not None and not printed and (single or not self.in_parts):
            paths = [path for _, path in self.vectors]
            files.check_writable(output, *self.data, self.configuration.config, self.like, *paths)

    def _check_parts(self, output: str | None) -> None:
        """Refuse what does not go with several files or with shards."""
        from kcrf_core.model import check_replaceable

        kind = "--shards" if self.shards is not None else "several files"
        if self.export is not None or self.show is not None:
            option = "--export" if self.export is not None else "--show"
            raise click.UsageError(f"{option} shows one file, encoded in memory: it does not go with {kind}")
        if output is None or output == "-":
            place = "folder" if self.shards else "file"
            raise click.UsageError(f"{kind}: nothing is written without -o and the name of a {place}")
        options.refuse((self.data.count("-") > 1, "standard input can be read only once: name it once"))
        if output.endswith(".npz"):
            return
        named = f"{output}: give a name that ends in .npz, or --shards N for a folder of shards"
        options.refuse((self.shards is None, named))
        folder = os.path.dirname(os.path.abspath(output.rstrip(os.sep)))
        if not os.path.isdir(folder):
            raise FileNotFoundError(2, "there is no such directory to write to", folder)
        check_replaceable(output)
        within = os.path.realpath(output) + os.sep
        for path in self.data:
            inside = path != "-" and os.path.isdir(output) and os.path.realpath(path).startswith(within)
            options.refuse((inside, f"{path} is in {output}, which would be replaced: give another name"))


@options.command(FeaturizeArguments)
def featurize(run: FeaturizeArguments) -> None:
    """Encode DATA, so that later commands need not read and encode it again.

    The output has the encoded data, the vocabulary and the scaling; `select-basis`, `train` and `evaluate -m` take it
    in place of text. --show prints the features of the first positions, to check a configuration.

    With --shards, data of any size, in any number of files, becomes a folder of shards. These commands take it in
    place of a file and read one shard after another. Errors name a damaged or missing shard. An interrupted run
    leaves no folder behind.

    \b
    Example:
      kcrf featurize sample_data/pitch_accent.conll -o accent.npz
      kcrf featurize sample_data/pitch_accent.conll --show 2
      kcrf featurize sample_data/pitch_accent.conll --vectors emb=sample_data/pitch_accent.npy --show 1
      kcrf featurize sample_data/pitch_accent.conll --window 0..0 --export crfsuite -o accent.crfsuite
      kcrf featurize sample_data/pitch_accent.conll sample_data/pitch_accent.conll -o accent.shards/ --shards 8
    """
    from kcrf_core.config import parse_config
    from kcrf_core.encoding import Amount, configured, described, export, fit_encoding
    from kcrf_core.model import load_encoding, save_dataset

    chosen, source, given, known, remark = run.configuration.chosen, run.configuration.source, {}, None, None
    if run.like is not None:
        known, raw = load_encoding(run.like)
        settings = parse_config(raw, run.like)
    else:
        given = files.load_config(run.configuration)
        settings = described(given, chosen, source)  # its mistakes come before any reading
    if run.in_parts:
        grouped = next((one.name for one in settings.features or () if one.group is not None), None)
        options.refuse((grouped is not None, f"feature '{grouped}' has 'scale: group', and --shards divides groups"))
        _report(run, *_featurized_in_parts(run, known, given, settings))
        return
    form = (settings.columns, settings.layout) if known is None else (known.columns, known.layout)
    corpus = files.read_data(run.data[0], run.format, *form, run.threads, run.quiet, run.vectors)
    if known is not None:
        encoding, dataset = known, known.encode(corpus, weighed=True)
    else:
        settings, remark = configured(given, chosen, corpus, source, terms=False)
        encoding, dataset = fit_encoding(settings, corpus)
    if run.show is not None:
        for t in range(min(run.show, dataset.positions)):
            own = [] if dataset.labels is None else [corpus.columns[-1][t]]
            files.write_out("\t".join(map(shown, [*own, *encoding.describe(dataset, t)])))
    if run.export is not None:
        gold = None if dataset.labels is None else corpus.columns[-1]
        with files.output_stream(run.output) as stream:
            lines = export(encoding, dataset, gold)
            while part := "".join(islice(lines, LINES_AT_ONCE)):
                stream.write(part.encode())
    elif run.output is not None:
        save_dataset(run.output, encoding, dataset, settings)
    _report(run, encoding, Amount.of(dataset), remark)
    if run.export is not None and any(term.type == "edge-x" for term in settings.terms):
        files.unless(run.quiet)(
            "features of edge-x terms are written like others: as text they belong to positions, not transitions"
        )


def _featurized_in_parts(
    run: FeaturizeArguments, known: Encoding | None, given: dict[str, Any], settings: Config
) -> tuple[Encoding, Amount, str | None]:
    """Read, fit, encode and write files in parts, as one dataset or a folder of shards; return figures of it."""
    from kcrf_core.corpora import SUGGESTING_POSITIONS, Spool
    from kcrf_core.encoding import Amount, configured, fit_to, join_datasets
    from kcrf_core.model import new_folder, save_dataset, save_shards
    from kcrf_core.system import Workers, hand_back

    from ..io.progress import progress

    output, remark, amount = str(run.output), None, Amount()
    names, layout = (settings.columns, settings.layout) if known is None else (known.columns, known.layout)
    single = output.endswith(".npz")
    place = nullcontext(os.path.dirname(os.path.abspath(output))) if single else new_folder(output)
    with (
        place as folder,
        Spool(folder, run.vectors, layout, run.shards or 1, fitting=known is None) as spool,
        Workers(run.threads) as workers,
    ):
        with progress(run.quiet, "reading", paths=run.data) as moved:
            spool.read(run.data, run.format, names, workers, moved)
        for each in spool.remarks:
            files.unless(run.quiet)(each)
        hand_back()
        if known is not None:
            encoding = known
            widths = {name: rows.shape[1] for name, rows in spool.corpus.vectors.items()}
            encoding.check_vectors(widths, spool.source)
        else:
            some = spool.sample(SUGGESTING_POSITIONS)
            settings, remark = configured(given, run.configuration.chosen, some, run.configuration.source, terms=False)
            if remark is not None and some.positions < spool.positions:
                remark += f", by {some.positions:,} of {spool.positions:,} positions"
            del some
            encoding = fit_to(settings, spool)
        hand_back()
        shard_count = len(spool.borders) - 1

        def shards() -> Iterator[Dataset]:
            nonlocal amount
            with progress(run.quiet, "encoding shards", shard_count) as moved:
                for dataset in encoding.encoded_shards(spool, workers):
                    amount = amount.plus(Amount.of(dataset))
                    yield dataset
                    moved()

        if single:
            dataset = join_datasets(list(shards()))
            if run.shards is not None:
                dataset = replace(dataset, partitions=spool.borders)
            save_dataset(output, encoding, dataset, settings)
        else:
            save_shards(folder, encoding, settings, shards())
            if run.shards is not None and shard_count < run.shards:
                files.unless(run.quiet)(f"{shard_count:,} shards: there are no more sequences to begin one with")
    return encoding, amount, remark


def _report(run: FeaturizeArguments, encoding: Encoding, amount: Amount, remark: str | None) -> None:
    """Print figures on stdout, where they are asked for, and messages."""
    from ..render.figures import written_text

    like = encoding.empty_dataset()
    figures = {
        "sequences": amount.sequences,
        "positions": amount.positions,
        "labels": len(encoding.labels),
        "categorical_columns": like.codes.shape[1],
        "real_columns": like.real.shape[1],
        "attributes": 0 if like.bag is None else like.bag.shape[1],
    }
    if run.json:
        files.write_json(figures)
    tell = files.unless(run.quiet)
    for line in (*encoding.remarks(amount, remark), *([encoding.kinds()] if run.verbose and remark else [])):
        tell(line)
    encoded = f"{figures['categorical_columns']} categorical and {counted(figures['real_columns'], 'real column')}"
    if figures["attributes"]:
        encoded += f", {counted(figures['attributes'], 'attribute')}"
    tell(f"encoded, with windows: {encoded}")
    if run.output not in (None, "-") and run.export is None:
        tell(written_text(run.output, "kcrf train {} -o model.npz"))
