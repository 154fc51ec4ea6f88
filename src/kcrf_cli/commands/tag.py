"""`kcrf tag`: label sequences with a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from .. import options

if TYPE_CHECKING:
    from kcrf_core.corpora import Format, ParsedBlock
    from kcrf_core.encoding import Dataset
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
    quiet: bool,
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
    from kcrf_core.corpora import FORMATS, stream_parsers
    from kcrf_core.encoding import missing_remarks
    from kcrf_core.model import Model
    from kcrf_core.system import PAUSE, Workers

    from ..running.files import check_writable, output_stream, say

    _check(values)
    if output not in (None, "-"):
        check_writable(output, data, model)
    fitted = Model.load(model)
    format_ = format_ or fitted.encoding.format
    own_form = values["json_lines"] or values["nbest"] is not None  # lines without sequences are no part of it
    missing: Counter[str] = Counter()
    with Workers(threads) as workers:
        tagger = _tagger(fitted, values, FORMATS[format_])
        with output_stream(output) as stream:
            parsers = stream_parsers(data, format_, fitted.encoding.columns, fitted.encoding.layout)
            for written in _tagged(parsers, tagger, own_form, workers, missing):
                if written is PAUSE:
                    stream.flush()
                else:
                    stream.write(written)
    if not quiet:
        for remark in missing_remarks(list(missing.items())):
            say(remark)


def _tagged(
    parsers: Iterator[Callable[[], ParsedBlock]],
    tagger: Tagger,
    own_form: bool,
    workers: Workers,
    missing: Counter[str],
) -> Iterator[bytes]:
    """What to write, in the order of the input, and a PAUSE where all that is there has been written.

    Threads encode blocks, label parts of blocks that are encoded and put labels into blocks; this one reads and writes.
    """
    from kcrf_core.system import PAUSE

    def prepared(parse: Callable[[], ParsedBlock]) -> tuple[ParsedBlock, Dataset | None]:
        parsed = parse()
        return parsed, tagger.encoded(parsed) if parsed.corpus.positions else None

    def parts(blocks: Iterator[tuple[ParsedBlock, Dataset | None]]) -> Iterator[_Part]:
        for block in blocks:
            if block is PAUSE:
                yield PAUSE
            elif block[1] is None:
                yield _Part(*block, (0, 0), True)
            else:
                chunks = tagger.chunks(block[1])
                for chunk in chunks:
                    yield _Part(*block, chunk, chunk is chunks[-1])

    def labelled(part: _Part) -> tuple[_Part, Any]:
        return part, None if part.dataset is None else tagger.labelled(part.parsed, part.dataset.span(*part.sequences))

    def written(items: Iterator[tuple[_Part, Any]]) -> Iterator[Callable[[], bytes]]:
        write = None
        for item in items:
            if item is PAUSE:
                yield PAUSE
                continue
            part, found = item
            if part.dataset is None:
                if not own_form:
                    header = part.parsed.header_end is not None
                    yield tagger.writer(part.parsed).rest if header else partial(bytes, part.parsed.block.data)
                continue
            if write is None:
                write = tagger.writer(part.parsed)
            yield partial(bytes, write.sequences(found))
            if part.last:
                missing.update(dict(part.dataset.missing))
                yield write.rest
                write = None

    # Of encoded blocks there are fewer ahead than of parts: they take memory, and less time than labelling.
    encoded = workers.stream(prepared, parsers, 1 + workers.threads // 2)
    labels = workers.stream(labelled, parts(encoded))
    yield from workers.stream(lambda make: make(), written(labels))


@dataclass(frozen=True)
class _Part:
    """Some sequences of a block, or a block without any."""

    parsed: ParsedBlock
    dataset: Dataset | None  # of the whole block
    sequences: tuple[int, int]  # first and last
    last: bool  # of its block


@dataclass(frozen=True)
class Tagger:
    """How blocks become what is written."""

    encoded: Callable[[ParsedBlock], Dataset]
    chunks: Callable[[Dataset], list[tuple[int, int]]]  # sequences to label at a time
    labelled: Callable[[ParsedBlock, Dataset], Any]  # what is found out about some sequences of a block
    writer: Callable[[ParsedBlock], Writer]  # makes bytes of it


def _tagger(model: Model, values: dict[str, Any], format_: Format) -> Tagger:
    """The shortest way to what was asked for."""
    from kcrf_core.model import Decoded

    from ..text.tagged import LabelWriter

    def encoded(parsed: ParsedBlock) -> Dataset:
        return model.encoding.encode(parsed.corpus)

    asked = ("scheme", "force", "marginals", "sequence_probability", "nbest", "novelty", "explain", "json_lines")
    if values["decode"] == "viterbi" and not any(values[name] for name in asked):
        return Tagger(
            encoded,
            model.chunks,
            lambda parsed, part: Decoded(part.offsets, model.best_labels(part)),
            lambda parsed: LabelWriter(format_, parsed, model.labels),
        )

    from kcrf_core.model import Decoder, Wishes, given_labels

    from ..text.tagged import ColumnWriter, JsonWriter, NBestWriter

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

    def constrained(parsed: ParsedBlock) -> Dataset:
        dataset = encoded(parsed)
        return dataset if free is None else replace(dataset, labels=given_labels(model, parsed.corpus, free))

    return Tagger(
        constrained, decoder.chunks, lambda parsed, part: decoder.decode_part(part, parsed.corpus.source), writer
    )
