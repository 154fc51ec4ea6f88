"""`kcrf tag`: label sequences with a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from . import options, tag_options

if TYPE_CHECKING:
    from kcrf_core.lines import ParsedBlock
    from kcrf_core.model import Model
    from kcrf_core.parallel import Workers

    from .tag_text import Writer

# The bytes to write for a block that has positions.
Tagger = Callable[["ParsedBlock"], "Iterator[bytes]"]


@click.command(short_help="Label sequences with a model.")
@click.argument("data", type=click.Path(allow_dash=True), metavar="[INPUT]", default="-")
@click.option(
    "-m", "--model", required=True, type=click.Path(dir_okay=False), metavar="FILE", help="Model to label with."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="File to write. Default: stdout.",
)
@tag_options.decoding
@tag_options.output
@options.format
@options.threads
def tag(data: str, model: str, output: str | None, format_: str | None, threads: int | None, **values: Any) -> None:
    """Label the sequences of INPUT (default: stdin), which may or may not carry gold labels.

    Every line is repeated as it is, with the predicted label as one more column. Sequences are labelled as they
    arrive, so `tag` can stand in a pipe and takes the same memory for any length of input. CoNLL-U files get the
    label in its own column, in place of what stood there; attribute files give two columns, the label they had and
    the predicted one. Probabilities, where they are asked for, stand between the two labels, so that the predicted one
    is always last and `kcrf evaluate` reads them all.

    \b
    Example:
      kcrf train sample_data/digits.conll -o model.npz
      kcrf tag -m model.npz sample_data/digits.conll | kcrf evaluate -
      kcrf tag -m model.npz sample_data/digits.conll --marginals all | kcrf evaluate -
      kcrf tag -m model.npz sample_data/digits.conll --nbest 3 --json-lines
    """
    from kcrf_core.formats import stream_corpus
    from kcrf_core.model import Model
    from kcrf_core.parallel import Workers

    from .files import check_writable, output_stream

    tag_options.check(values)
    if output not in (None, "-"):
        check_writable(output, data, model)
    fitted = Model.load(model)
    format_ = format_ or fitted.encoding.format
    own_form = values["json_lines"] or values["nbest"] is not None  # lines without sequences are no part of it
    with Workers(threads) as workers:
        tagger = _tagger(fitted, values, format_, workers)
        with output_stream(output) as stream:
            for parsed in stream_corpus(data, format_, fitted.encoding.columns):
                if parsed.corpus.positions:
                    for written in tagger(parsed):
                        stream.write(written)
                elif not own_form:
                    stream.write(parsed.block.data)
                stream.flush()


def _tagger(model: Model, values: dict[str, Any], format_: str, workers: Workers) -> Tagger:
    """The shortest way to what was asked for."""
    from kcrf_core.conll import append_labels
    from kcrf_core.conllu import put_labels
    from kcrf_core.crfsuite import label_column

    def lines(parsed: ParsedBlock) -> ParsedBlock:
        return label_column(parsed) if format_ == "crfsuite" else parsed

    def labels_only(parsed: ParsedBlock) -> Iterator[bytes]:
        best = model.tag(model.encoding.encode(parsed.corpus), workers)
        yield (put_labels if format_ == "conllu" else append_labels)(lines(parsed), model.labels, best)

    asked = ("scheme", "force", "marginals", "sequence_probability", "nbest", "novelty", "explain", "json_lines")
    if values["decode"] == "viterbi" and not any(values[name] for name in asked):
        return labels_only

    from kcrf_core.decoding import Decoder, Wishes, given_labels

    from .tag_text import ColumnWriter, ConlluWriter, JsonWriter, NBestWriter

    if format_ == "conllu" and not values["json_lines"]:
        tag_options.check_conllu(values)
    marginals, force = values["marginals"], values["force"]
    free = (values["free"] or model.encoding.unobserved or tag_options.FREE) if force else None
    if free in model.labels:
        raise click.UsageError(f"'{free}' is a label of the model: name another mark of free positions with --free")
    decoder = Decoder(
        model,
        Wishes(
            decode=values["decode"],
            scheme=values["scheme"],
            force=force,
            marginals=marginals is not None,
            probability=values["sequence_probability"],
            nbest=values["nbest"],
            novelty=values["novelty"],
            explain=values["explain"],
        ),
    )

    def writer(parsed: ParsedBlock) -> Writer:
        if values["json_lines"]:
            with_labels = model.encoding.with_labels(parsed.corpus)
            return JsonWriter(parsed.corpus, model.labels, marginals, with_labels, free)
        if format_ == "conllu":
            return ConlluWriter(parsed, model.labels)
        kind = ColumnWriter if values["nbest"] is None else NBestWriter
        return kind(lines(parsed), model.labels, marginals)

    def everything(parsed: ParsedBlock) -> Iterator[bytes]:
        dataset = model.encoding.encode(parsed.corpus)
        if free is not None:
            dataset = replace(dataset, labels=given_labels(model, parsed.corpus, free))
        write = writer(parsed)
        for decoded in decoder.decode(dataset, parsed.corpus.source, workers):
            yield write.sequences(decoded)
        yield write.rest()

    return everything
