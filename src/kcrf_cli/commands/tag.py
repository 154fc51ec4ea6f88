"""`kcrf tag`: label sequences with a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from .. import options

if TYPE_CHECKING:
    from kcrf_core.corpora import Format, ParsedBlock
    from kcrf_core.model import Model
    from kcrf_core.system import Workers

    from ..text.tagged import Writer


FREE = "?"
MOST_BEST = 10_000  # all labellings of a sequence are held at once

DECODING = options.group(
    click.option(
        "--decode",
        type=click.Choice(["viterbi", "posterior"]),
        default="viterbi",
        help="Labels to give: the most probable labelling as a whole, or at each position the label of the largest "
        "marginal (of labellings that are possible, where transitions are forbidden). Default: viterbi.",
    ),
    click.option(
        "--scheme",
        type=options.OneOf(options.schemes),
        help="Scheme of the labels: what it forbids is impossible. Default: what training forbade.",
    ),
    click.option(
        "--force",
        is_flag=True,
        help="Keep the labels that INPUT has, and find the others around them; probabilities are given the kept ones.",
    ),
    click.option(
        "--free",
        metavar="LABEL",
        help="With --force: what stands where the label is not known. Default: what training took for labels that are "
        f"not observed, else {FREE}.",
    ),
)

OUTPUT = options.group(
    click.option(
        "--marginals",
        type=click.Choice(["best", "all"]),
        help="Columns LABEL:p with the marginal probability, to six digits, of the predicted label or of each.",
    ),
    click.option(
        "--sequence-probability",
        is_flag=True,
        help="A column probability=P with the probability of the whole labelling of the sequence.",
    ),
    click.option(
        "--nbest",
        type=click.IntRange(min=1, max=MOST_BEST),
        metavar="K",
        help="The K best labellings of each sequence, each headed by a line '# RANK PROBABILITY'.",
    ),
    click.option(
        "--novelty",
        is_flag=True,
        help="A column novelty=R, from 0 to 1: how much of the position the pivots of the model leave unexplained.",
    ),
    click.option(
        "--explain",
        type=click.IntRange(min=1),
        metavar="K",
        help="Under each position, lines beginning with '#: ': the K pivots, features and transitions that speak most "
        "for its label against the runner-up.",
    ),
    click.option("--json-lines", is_flag=True, help="Write a JSON object for each sequence instead of its lines."),
)


def _check(values: dict[str, Any]) -> None:
    """A usage error for options that contradict each other."""
    if values["free"] == "":
        raise click.UsageError("--free needs a mark: an empty column is none")
    if values["free"] is not None and not values["force"]:
        raise click.UsageError("--free says what --force leaves open: it goes with --force only")
    if values["nbest"] is None:
        return
    if values["decode"] == "posterior":
        raise click.UsageError("--nbest ranks whole labellings: it does not go with --decode posterior")
    if values["explain"] is not None:
        raise click.UsageError("--explain tells of one labelling: it does not go with --nbest")
    if values["sequence_probability"]:
        raise click.UsageError(
            "--nbest gives the probability of each labelling already: leave --sequence-probability out"
        )


def _check_columns(values: dict[str, Any], format_: Format) -> None:
    """A usage error for what has no column in the format."""
    for name in ("marginals", "sequence_probability", "nbest", "novelty", "explain"):
        if values[name]:
            option = "--" + name.replace("_", "-")
            raise click.UsageError(f"{format_.title} has no column for what {option} tells: give --json-lines, too")


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
    type=options.FileToWrite(stdout=True),
    metavar="FILE",
    help="File to write. Default: stdout.",
)
@DECODING
@OUTPUT
@options.format
@options.threads
@options.quiet
def tag(
    data: str,
    model: str,
    output: str | None,
    format_: str | None,
    threads: int | None,
    quiet: bool,  # it says nothing in any case: the option is there because other commands have it
    **values: Any,
) -> None:
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
    from kcrf_core.corpora import FORMATS, stream_corpus
    from kcrf_core.model import Model
    from kcrf_core.system import Workers

    from ..running.files import check_writable, output_stream

    _check(values)
    if output not in (None, "-"):
        check_writable(output, data, model)
    fitted = Model.load(model)
    format_ = format_ or fitted.encoding.format
    own_form = values["json_lines"] or values["nbest"] is not None  # lines without sequences are no part of it
    with Workers(threads) as workers:
        tagger = _tagger(fitted, values, FORMATS[format_], workers)
        with output_stream(output) as stream:
            for parsed in stream_corpus(data, format_, fitted.encoding.columns):
                if parsed.corpus.positions:
                    for written in tagger(parsed):
                        stream.write(written)
                elif not own_form:
                    stream.write(parsed.block.data)
                stream.flush()


def _tagger(model: Model, values: dict[str, Any], format_: Format, workers: Workers) -> Tagger:
    """The shortest way to what was asked for."""

    def labels_only(parsed: ParsedBlock) -> Iterator[bytes]:
        best = model.tag(model.encoding.encode(parsed.corpus), workers)
        yield format_.labelled(parsed, model.labels, best)

    asked = ("scheme", "force", "marginals", "sequence_probability", "nbest", "novelty", "explain", "json_lines")
    if values["decode"] == "viterbi" and not any(values[name] for name in asked):
        return labels_only

    from kcrf_core.model import Decoder, Wishes, given_labels

    from ..text.tagged import ColumnWriter, JsonWriter, LabelWriter, NBestWriter

    if not format_.takes_columns and not values["json_lines"]:
        _check_columns(values, format_)
    marginals, force = values["marginals"], values["force"]
    free = (values["free"] or model.encoding.unobserved or FREE) if force else None
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
        if not format_.takes_columns:
            return LabelWriter(format_, parsed, model.labels)
        kind = ColumnWriter if values["nbest"] is None else NBestWriter
        return kind(format_.with_columns(parsed), model.labels, marginals)

    def everything(parsed: ParsedBlock) -> Iterator[bytes]:
        dataset = model.encoding.encode(parsed.corpus)
        if free is not None:
            dataset = replace(dataset, labels=given_labels(model, parsed.corpus, free))
        write = writer(parsed)
        for decoded in decoder.decode(dataset, parsed.corpus.source, workers):
            yield write.sequences(decoded)
        yield write.rest()

    return everything
