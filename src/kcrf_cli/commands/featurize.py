"""`kcrf featurize`: encode a data file once, for training again and again."""

from __future__ import annotations

from dataclasses import asdict
from itertools import islice
from typing import Any

import click

from .. import options

LINES_AT_ONCE = 1000  # of an export: compressing line by line is slow


@click.command(short_help="Encode data into an .npz file.")
@options.data
@click.option(
    "-o",
    "--output",
    type=options.FileToWrite(stdout=True),
    metavar="FILE",
    help="Dataset to write (.npz), or the text of --export.",
)
@options.config
@click.option(
    "--like",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Encode as this dataset, basis or model did: its vocabulary, scaling and labels.",
)
@click.option(
    "--export",
    "export_",
    type=options.OneOf(options.exports),
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
    data: str,
    output: str | None,
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

    \b
    Example:
      kcrf featurize sample_data/pitch_accent.conll -o accent.npz
      kcrf featurize sample_data/pitch_accent.conll --show 2
      kcrf featurize sample_data/pitch_accent.conll --vectors emb=sample_data/pitch_accent.npy --show 1
      kcrf featurize sample_data/pitch_accent.conll --window 0..0 --export crfsuite -o accent.crfsuite
    """
    from kcrf_core.config import parse_config
    from kcrf_core.encoding import configured, described, export, fit_encoding, term_counts
    from kcrf_core.model import load_encoding, save_dataset
    from kcrf_core.system import counted

    from ..running.files import check_writable, load_config, output_stream, read_data, say, write_out
    from ..text import figures as render
    from ..text.visible import shown

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
    if output is not None and not text_on_stdout:
        check_writable(output, data, config, like, *(path for _, path in vectors))
    said = None
    if like is not None:
        encoding, raw = load_encoding(like)
        settings = parse_config(raw, like)
        corpus = read_data(data, format_, encoding.columns, encoding.layout, threads, quiet, vectors)
        dataset = encoding.encode(corpus, weighed=True)
    else:
        given, source = load_config(config), config or "options"
        settings = described(given, chosen, source)  # its mistakes come before any reading
        corpus = read_data(data, format_, settings.columns, settings.layout, threads, quiet, vectors)
        settings, said = configured(given, chosen, corpus, source, terms=False)
        encoding, dataset = fit_encoding(settings, corpus)
    if show is not None:
        for t in range(min(show, dataset.positions)):
            gold = [] if dataset.labels is None else [corpus.columns[-1][t]]
            write_out("\t".join(map(shown, [*gold, *encoding.describe(dataset, t)])))
    if export_ is not None:
        gold = None if dataset.labels is None else corpus.columns[-1]
        with output_stream(output) as stream:
            lines = export(encoding, dataset, export_, gold)
            while part := "".join(islice(lines, LINES_AT_ONCE)):
                stream.write(part.encode())
    elif output is not None:
        save_dataset(output, encoding, dataset, settings)
    figures = {
        "schema": 1,
        "sequences": dataset.sequences,
        "positions": dataset.positions,
        "labels": len(encoding.labels),
        "categorical_columns": dataset.codes.shape[1],
        "real_columns": dataset.real.shape[1],
        "attributes": 0 if dataset.bag is None else dataset.bag.shape[1],
        "terms": [asdict(count) for count in term_counts(encoding, dataset, settings)],
    }
    if as_json:
        write_out(render.as_json(figures))
    if not quiet:
        for remark in [*encoding.remarks(dataset)[1:2], *filter(None, [said]), *encoding.remarks(dataset)[2:]]:
            say(remark)
        if export_ is not None and any(term.type == "edge-x" for term in settings.terms):
            say(
                "features of edge-x terms are written like others: as text they belong to positions, not to transitions"
            )
        say(
            ", ".join(counted(figures[f"{noun}s"], noun) for noun in ("sequence", "position", "label"))
            + f"; {figures['categorical_columns']} categorical and "
            f"{counted(figures['real_columns'], 'real column')} after windows"
            + (f", {counted(figures['attributes'], 'attribute')}" if figures["attributes"] else "")
        )
        for term in figures["terms"]:
            if term["type"] != "edge":
                distinct, weights = counted(term["values"], "distinct value"), counted(term["weights"], "weight")
                say(f"term {term['name']}: {distinct}, {weights} if linear")
