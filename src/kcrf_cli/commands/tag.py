"""`kcrf tag`: label sequences with a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Generic, TypeVar

import click

from .. import options

if TYPE_CHECKING:
    from kcrf_core.corpora import Format, NamedVectors, ParsedBlock
    from kcrf_core.encoding import Dataset
    from kcrf_core.model import AttributeSequences, Model, Wishes
    from kcrf_core.system import Pause, Workers

    from ..render.tagged import Writer

Encoded = TypeVar("Encoded", "Dataset", "AttributeSequences")
Made = TypeVar("Made")


FREE = "?"
MOST_BEST = 10_000  # all labellings of a sequence are held at once

DECODING = options.group(
    options.decision,
    click.option(
        "--lag",
        type=click.IntRange(min=0),
        metavar="K",
        help="Give each label when K more lines have been read, in memory that does not grow, as sequences that do not "
        "end need it; posterior decoding by what is known then, without what tells of whole labellings (--nbest, "
        "--sequence-probability, --explain, --json-lines) and without --vectors. Default: label whole sequences.",
    ),
    click.option(
        "--scheme",
        type=options.NamedChoice(options.schemes),
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
        help="Under each position, lines beginning with '#: ': the K features, conjunctions and transitions that speak "
        "most for its label against the runner-up, and of a model with pivots the training positions most like it.",
    ),
    click.option("--json-lines", is_flag=True, help="Write a JSON object for each sequence instead of its lines."),
)


def _check(values: dict[str, Any]) -> None:
    """A usage error for options that contradict each other."""
    if values["free"] == "":
        raise click.UsageError("--free needs a mark: an empty column is none")
    if values["free"] is not None and not values["force"]:
        raise click.UsageError("--free says what --force leaves open: it goes with --force only")
    if values["lag"] is not None:
        _check_lag(values)
    if values["nbest"] is None:
        return
    for option in ("cost", "threshold"):
        if values[option]:
            raise click.UsageError(f"--nbest ranks whole labellings: it does not go with --{option}")
    if values["decode"] == "posterior":
        raise click.UsageError("--nbest ranks whole labellings: it does not go with --decode posterior")
    if values["explain"] is not None:
        raise click.UsageError("--explain tells of one labelling: it does not go with --nbest")
    if values["sequence_probability"]:
        raise click.UsageError(
            "--nbest gives the probability of each labelling already: leave --sequence-probability out"
        )


def _check_lag(values: dict[str, Any]) -> None:
    if values["decode"] == "viterbi":
        raise click.UsageError("--lag decides label by label, as they are due: it does not go with --decode viterbi")
    for name, what in (
        ("nbest", "ranks whole labellings"),
        ("sequence_probability", "tells of whole labellings"),
        ("explain", "tells of whole labellings"),
        ("json_lines", "writes whole sequences"),
        ("vectors", "is a file of all positions"),
    ):
        if values.get(name):
            option = "--" + name.replace("_", "-")
            raise click.UsageError(f"{option} {what}: it does not go with --lag, which lets go of labels before that")


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
@options.vectors
@options.format
@options.threads
@options.device
@options.quiet
def tag(
    data: str,
    model: str,
    output: str | None,
    vectors: tuple[tuple[str, str], ...],
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
    is always last and `kcrf evaluate` reads them all. A folder of shards (see `featurize`) has no text any more: it
    gives the line that each position has in its source, its label if it has one, and the predicted one.

    With --lag a sequence need not end: each label leaves when K more lines have been read. With --engine cuda the
    scores of pivots come from a card.

    \b
    Example:
      kcrf train sample_data/digits.conll -o model.npz
      kcrf tag -m model.npz sample_data/digits.conll | kcrf evaluate -
      kcrf tag -m model.npz sample_data/digits.conll --marginals all | kcrf evaluate -
      kcrf tag -m model.npz sample_data/digits.conll --nbest 3 --json-lines
      kcrf tag -m model.npz sample_data/digits.conll --decode posterior
      kcrf tag -m model.npz sample_data/digits.conll --cost 7=5
      kcrf tag -m model.npz --lag 3 < sample_data/digits.conll
      kcrf train sample_data/pitch_accent.conll --vectors emb=sample_data/pitch_accent.npy --sigma2 1 -o emb.npz
      kcrf tag -m emb.npz sample_data/pitch_accent.conll --vectors emb=sample_data/pitch_accent.npy
    """
    from kcrf_core.corpora import COLUMN_FORMAT, FORMATS, display_name, open_vectors, stream_parsers
    from kcrf_core.encoding import missing_remarks
    from kcrf_core.files import is_folder
    from kcrf_core.model import Model
    from kcrf_core.system import PAUSE, Workers

    from ..io.files import check_writable, output_stream, say

    _check(values | {"vectors": vectors})
    if output not in (None, "-"):
        check_writable(output, data, model, *(path for _, path in vectors))
    fitted = Model.load(model)
    if is_folder(data):
        _check_folder(data, values | {"vectors": vectors, "format": format_})
        format_ = COLUMN_FORMAT
    opened = open_vectors(vectors)
    if not is_folder(data):
        fitted.encoding.check_vectors({each.name: each.width for each in opened}, display_name(data))
    format_ = format_ or fitted.encoding.format
    decision = options.decision_of(values["decode"], values["cost"], values["threshold"])
    values["costs"] = decision.costs(fitted.labels)
    if values["lag"] is not None:
        values["decode"] = "posterior"
    elif values["nbest"] is not None:
        values["decode"] = "viterbi"
    else:
        values["decode"] = decision.decoder(fitted.decode)
        by_model = decision.decode is None and values["costs"] is None
        if by_model and values["decode"] == "posterior" and not quiet:
            say("posterior decoding, as the model stores it")
    engine = values.pop("engine")
    if engine is not None:
        fitted = _on_device(fitted, engine, threads, quiet)
    if values["lag"] is not None:
        with Workers(1), output_stream(output) as stream:
            _tag_with_lag(fitted, data, format_, values, quiet, stream)
        return
    own_form = values["json_lines"] or values["nbest"] is not None  # lines without sequences are no part of it
    missing: Counter[str] = Counter()
    with Workers(threads) as workers:
        tagger = _tagger(fitted, values, FORMATS[format_])
        if is_folder(data):
            shards = _shard_blocks(data, model, fitted)
            tagger = replace(tagger, encoded=_shard_dataset)
        with output_stream(output) as stream:
            parsers: Iterator[Callable[[], ParsedBlock] | Pause]
            if is_folder(data):
                parsers = shards
            else:
                parsers = stream_parsers(data, format_, fitted.encoding.columns, fitted.encoding.layout)
            if opened:
                parsers = _with_vectors(parsers, opened, display_name(data), workers)
            for written in _tagged(parsers, tagger, own_form, workers, missing):
                if written is PAUSE:
                    stream.flush()
                else:
                    stream.write(written)
    if not quiet:
        for remark in missing_remarks(list(missing.items())):
            say(remark)


def _on_device(model: Model, engine: str, threads: int | None, quiet: bool) -> Model:
    """The model with its pivots on a device; what threads do all the same is said."""
    from kcrf_core.device import DeviceChoice, open_device
    from kcrf_core.system import counted

    from ..io.files import say, unless

    moved, here = model.on_device(open_device(DeviceChoice(engine), None, unless(quiet), threads))
    if here and not quiet:
        say(f"engine {engine}: threads score {counted(len(here), 'term')} without pivots ({', '.join(here)})")
    return moved


def _tag_with_lag(
    model: Model, data: str, format_: str, values: dict[str, Any], quiet: bool, stream: IO[bytes]
) -> None:
    """Write each line with its label as soon as that is due."""
    from kcrf_core.corpora import FORMATS, arriving_lines
    from kcrf_core.encoding import missing_remarks
    from kcrf_core.model import LagDecoder, given_labels
    from kcrf_core.system import counted

    from ..io.files import say
    from ..render.tagged import LagWriter

    free = _free_mark(model, values)
    given = None if free is None else lambda corpus: given_labels(model, corpus, free)
    decoder = LagDecoder(model, values["lag"], _wishes(values), given)
    if decoder.lag < decoder.ahead and not quiet:
        say(
            f"windows look {counted(decoder.ahead, 'line')} ahead: with --lag {decoder.lag} they are cut as at the end "
            f"of a sequence, and --lag {decoder.ahead} lets them see all"
        )
    writer = LagWriter(model.labels, values["marginals"], values["novelty"])
    lines = FORMATS[format_]
    for arrival in arriving_lines(data, format_, model.encoding.columns, model.encoding.layout):
        if arrival.ends_before and decoder.waiting:
            stream.write(writer.labelled(decoder.end()))
        writer.add(lines.with_columns(arrival.parsed))
        if arrival.parsed.corpus.positions:
            found = decoder.feed(arrival.parsed.corpus, arrival.ends_after)
            stream.write(writer.labelled(found))
        stream.write(writer.free())
        stream.flush()
    if decoder.waiting:
        stream.write(writer.labelled(decoder.end()))
    stream.write(writer.free())
    if not quiet:
        for remark in missing_remarks(list(decoder.missing.items())):
            say(remark)


def _free_mark(model: Model, values: dict[str, Any]) -> str | None:
    """With --force, what stands where the label is not known."""
    if not values["force"]:
        return None
    free = values["free"] or model.encoding.unobserved or FREE
    if free in model.labels:
        raise click.UsageError(f"'{free}' is a label of the model: name another mark of free positions with --free")
    return free


def _wishes(values: dict[str, Any]) -> Wishes:
    from kcrf_core.model import Wishes

    return Wishes(
        decode=values["decode"],
        scheme=values["scheme"],
        force=values["force"],
        marginals=values["marginals"] is not None,
        probability=values["sequence_probability"],
        nbest=values["nbest"],
        novelty=values["novelty"],
        explain=values["explain"],
        costs=values["costs"],
    )


def _check_folder(data: str, values: dict[str, Any]) -> None:
    """A usage error for what needs the text that a folder of shards was made of."""
    from kcrf_core.files import refuse_vectors

    refuse_vectors(data, values["vectors"])
    for name in ("lag", "json_lines", "force", "format"):
        if values[name]:
            option = "--" + name.replace("_", "-")
            raise click.UsageError(f"{data} is encoded, and {option} needs the text itself: give that")


def _shard_dataset(parsed: ParsedBlock) -> Dataset:
    """The encoded sequences that a block of a shard stands for."""
    from ..render.shard_blocks import ShardBlock

    assert isinstance(parsed, ShardBlock) and parsed.dataset is not None
    return parsed.dataset


def _shard_blocks(path: str, name: str, model: Model) -> Iterator[Callable[[], ParsedBlock] | Pause]:
    """Encoded sequences as blocks of lines; errors about the folder come before anything is written."""
    from kcrf_core.errors import FileFormatError
    from kcrf_core.model import load_folder

    from ..render.shard_blocks import shard_blocks

    folder = load_folder(path)
    if not folder.encoding.same_as(model.encoding):
        raise FileFormatError(f"{path}: encoded unlike {name}: featurize it with --like {name}")
    return shard_blocks(folder)


def _with_vectors(
    parsers: Iterator[Callable[[], ParsedBlock] | Pause], vectors: Sequence[NamedVectors], source: str, workers: Workers
) -> Iterator[Callable[[], ParsedBlock] | Pause]:
    """As `parsers`, with rows of vectors at the positions of each block: they are counted from block to block."""
    from kcrf_core.corpora import VectorStream
    from kcrf_core.system import PAUSE

    stream = VectorStream(vectors)
    blocks = workers.stream(_called, parsers, 1 + workers.threads // 2)
    for parsed in blocks:
        if parsed is PAUSE:
            yield PAUSE
            continue
        corpus = stream.attached(parsed.corpus)
        if corpus is None:
            # How many positions there are can be told where nobody has to be waited for.
            for rest in blocks:
                if rest is PAUSE:
                    stream.check_count(source, complete=False)
                    continue
                stream.skip(rest.corpus.positions)
            break
        yield partial(_same, replace(parsed, corpus=corpus))
    stream.check_count(source)


def _called(make: Callable[[], Made]) -> Made:
    return make()


def _same(parsed: ParsedBlock) -> ParsedBlock:
    return parsed


def _tagged(
    parsers: Iterator[Callable[[], ParsedBlock] | Pause],
    tagger: TagRun[Encoded],
    own_form: bool,
    workers: Workers,
    missing: Counter[str],
) -> Iterator[bytes | Pause]:
    """What to write, in the order of the input, and a PAUSE where all that is there has been written.

    Threads encode blocks, label parts of blocks that are encoded and put labels into blocks; this one reads and writes.
    """
    from kcrf_core.system import PAUSE

    def prepared(parse: Callable[[], ParsedBlock]) -> tuple[ParsedBlock, Encoded | None]:
        parsed = parse()
        return parsed, tagger.encoded(parsed) if parsed.corpus.positions else None

    def parts(blocks: Iterator[tuple[ParsedBlock, Encoded | None] | Pause]) -> Iterator[_Part[Encoded] | Pause]:
        for block in blocks:
            if block is PAUSE:
                yield PAUSE
            elif block[1] is None:
                yield _Part(*block, (0, 0), True)
            else:
                chunks = tagger.chunks(block[1])
                for chunk in chunks:
                    yield _Part(*block, chunk, chunk is chunks[-1])

    def labelled(part: _Part[Encoded]) -> tuple[_Part[Encoded], Any]:
        return part, None if part.dataset is None else tagger.labelled(part.parsed, part.dataset.span(*part.sequences))

    def written(items: Iterator[tuple[_Part[Encoded], Any] | Pause]) -> Iterator[Callable[[], bytes] | Pause]:
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
    yield from workers.stream(_called, written(labels))


@dataclass(frozen=True)
class _Part(Generic[Encoded]):
    """Some sequences of a block, or a block without any."""

    parsed: ParsedBlock
    dataset: Encoded | None  # of the whole block
    sequences: tuple[int, int]  # first and last
    last: bool  # of its block


@dataclass(frozen=True)
class TagRun(Generic[Encoded]):
    """How blocks become what is written."""

    encoded: Callable[[ParsedBlock], Encoded]
    chunks: Callable[[Encoded], list[tuple[int, int]]]  # sequences to label at a time
    labelled: Callable[[ParsedBlock, Encoded], Any]  # what is found out about some sequences of a block
    writer: Callable[[ParsedBlock], Writer]  # makes bytes of it


def _lean(model: Model, format_: Format) -> TagRun[AttributeSequences] | None:
    """Labels of attribute files straight from their bytes, where the model and its decoder allow it."""
    if not format_.attributes or model.decode != "viterbi":
        return None
    from kcrf_core.model import AttributeLabeller, Decoded

    from ..render.tagged import LabelWriter

    labeller = AttributeLabeller.of(model)
    if labeller is None:
        return None
    return TagRun(
        lambda parsed: labeller.prepared(parsed.corpus),
        lambda block: block.chunks(),
        lambda parsed, part: Decoded(part.offsets, labeller.best_labels(part)),
        lambda parsed: LabelWriter(format_, parsed, model.labels),
    )


def _tagger(model: Model, values: dict[str, Any], format_: Format) -> TagRun[Any]:
    """The shortest way to what was asked for."""
    from kcrf_core.model import Decoded

    from ..render.tagged import LabelWriter

    def encoded(parsed: ParsedBlock) -> Dataset:
        return model.encoding.encode(parsed.corpus)

    asked = ("scheme", "force", "marginals", "sequence_probability", "nbest", "novelty", "explain", "json_lines")
    if values["costs"] is None and not any(values[name] for name in asked):
        model = replace(model, decode=values["decode"])
        lean = _lean(model, format_)
        if lean is not None:
            return lean
        return TagRun(
            encoded,
            model.chunks,
            lambda parsed, part: Decoded(part.offsets, model.best_labels(part)),
            lambda parsed: LabelWriter(format_, parsed, model.labels),
        )

    from kcrf_core.model import Decoder, given_labels

    from ..render.tagged import ColumnWriter, JsonWriter, NBestWriter

    if not format_.takes_columns and not values["json_lines"]:
        _check_columns(values, format_)
    marginals, free = values["marginals"], _free_mark(model, values)
    decoder = Decoder(model, _wishes(values))

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

    return TagRun(
        constrained, decoder.chunks, lambda parsed, part: decoder.decode_part(part, parsed.corpus.source), writer
    )
