"""`kcrf tag`: label sequences with a model."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import click

from kcrf_core.errors import DataError
from kcrf_core.files import is_folder
from kcrf_core.system import counted

from .. import options
from ..io import files

if TYPE_CHECKING:
    from kcrf_core.corpora import Format, NamedVectors, ParsedBlock
    from kcrf_core.encoding import Dataset, Encoding
    from kcrf_core.model import CorpusPart, Decoded, Model, Wishes
    from kcrf_core.system import Pause, Workers

    from ..render.tagged import Writer

    Parsers: TypeAlias = Iterator[Callable[[], ParsedBlock] | Pause]

FREE = "?"
MOST_WARNINGS = 20  # about single sequences
MOST_BEST = 10_000  # all labellings of a sequence are held at once


@dataclass(frozen=True, kw_only=True)
class TagArguments:
    data: str = options.argument("[INPUT]", options.DATA_FILE, default="-")
    model: str = options.DATA.model("Model to label with.", required=True)
    output: str | None = options.output("File to write. Default: stdout.", required=False, stdout=True)
    text: bool
    tokens: str | None
    empty_labels: str | None
    decode: str | None
    span_bonus: float | None
    weighing: options.Weighing
    rules: options.RuleOptions
    lag: int | None = options.DECODING.option(
        "Print each label after K more lines have been read, in constant memory: for streams that do not end. Labels "
        "come from posterior decoding of the lines read so far. Not with --nbest, --sequence-probability, --explain, "
        "--json-lines or --vectors. Default: label whole sequences.",
        "K",
        type=click.IntRange(min=0),
    )
    scheme: str | None = options.DECODING.option(
        "Scheme of the labels; transitions that it forbids are impossible. Default: that of the model.",
        type=options.NamedChoice("scoring:SCHEMES"),
    )
    force: bool = options.DECODING.switch(
        "Keep the labels that INPUT has in its last column, and predict the missing ones; probabilities are "
        "conditional on the kept labels.",
    )
    free: str | None = options.DECODING.option(
        "With --force: the mark of a missing label. Default: the mark of labels that were not observed in training, "
        f"else {FREE}.",
        "LABEL",
    )
    marginals: str | None = options.option(
        "Add columns LABEL:p with the marginal probability of the predicted label (best) or of every label (all).",
        type=click.Choice(["best", "all"]),
        common=True,
    )
    sequence_probability: bool = options.switch(
        "Add a column probability=P with the probability of the whole labelling of the sequence."
    )
    nbest: int | None = options.option(
        "Print the K most probable labellings of each sequence, each after a line '# RANK PROBABILITY'.",
        "K",
        type=click.IntRange(min=1, max=MOST_BEST),
        common=True,
    )
    novelty: bool = options.switch(
        "Add a column novelty=R, from 0 to 1: the part of the position that the model's pivots leave unexplained."
    )
    review: bool = options.switch(
        "Add a column review=yes or review=no: positions to review, by the threshold that `kcrf guarantee` stored."
    )
    sets: bool = options.switch(
        "Add a column set=LABEL|LABEL with the labels that are possible, by the threshold that `kcrf guarantee` stored."
    )
    max_set: int = options.count("With --sets: write * for sets of more than N labels. Default: 5.", 5)
    explain: int | None = options.option(
        "Under each position print the K features, conjunctions and transitions that speak most for its label, and K "
        "that speak against it, compared with the gold label, or with the second-best label where it is right; for a "
        "model with pivots also the most similar training positions. Lines begin with '#: '.",
        "K",
        type=click.IntRange(min=1),
        common=True,
    )
    explain_errors: bool = options.switch("With --explain: only positions whose label is not the gold label.")
    to: str = options.option(
        "Form of the output for texts (--text, XML, JSON, brat): a token and its label on each line (columns), or "
        "labelled parts of each text as XML (xml) or as a JSON object with spans (json). Default: columns.",
        type=click.Choice(["columns", "xml", "json"]),
        default="columns",
        common=True,
    )
    json_lines: bool = options.switch("Write a JSON object for each sequence instead of its lines.", common=True)
    vectors: tuple[tuple[str, str], ...]
    format: str | None
    threads: int | None
    engine: str | None = options.COMPUTATION.option(
        "Compute scores of pivots on a GPU with PyTorch (pip install torch): cuda, or cuda:1 for the second GPU; "
        "torch:cpu runs the same code without a GPU. Labels are the same, except for ties. Default: threads of this "
        "process.",
        "ENGINE",
    )
    quiet: bool

    def given(self, *names: str) -> Iterator[str]:
        """List those of the options that were given, as flags."""
        return (options.flag(name) for name in names if getattr(self, name))

    def __post_init__(self) -> None:
        """Refuse options that contradict each other."""
        options.refuse(
            (self.free == "", "--free needs a mark that is not empty"),
            (
                self.explain_errors and (self.explain is None or self.force),
                "--explain-errors explains labels that are not the gold labels: give --explain K, and no --force",
            ),
            (
                self.free is not None and not self.force,
                "--free is the mark of missing labels for --force: give --force, too",
            ),
        )
        if self.review or self.sets:
            others = [*self.given("force", "nbest", "decode", "scheme", "tokens"), *map(options.flag, self.rules.typed)]
            others += ["--span-bonus"] * (self.span_bonus is not None) + ["--lag"] * (self.lag is not None)
            for option in others + ["--cost"] * bool(self.weighing.cost) + ["--no-rules"] * self.rules.no_rules:
                message = f"labels would not be those of `kcrf guarantee`: leave out {option}, or --review and --sets"
                raise click.UsageError(message)
        for option in self.given("lag", "force", "format") if self.text else ():
            raise click.UsageError(f"{option} is for files of columns: it does not go with --text")
        more = self.given(
            *("marginals", "sequence_probability", "nbest", "novelty", "explain", "json_lines", "lag", "sets"),
            *(["review"] if self.to == "xml" else []),
        )
        for option in more if self.to != "columns" else ():
            raise click.UsageError(f"--to {self.to} writes labelled parts alone: it does not go with {option}")
        if self.lag is not None:
            viterbi = "--lag uses posterior decoding: it does not go with --decode viterbi"
            options.refuse((self.decode == "viterbi", viterbi))
            options.refuse((self.span_bonus is not None, viterbi.replace("decode viterbi", "span-bonus")))
            own = ("nbest", "sequence_probability", "explain", "json_lines", "vectors")
            for option in self.given(*own):
                reason = "which gives labels before their sequence is complete"
                raise click.UsageError(f"{option} needs whole sequences: it does not go with --lag, {reason}")
        if self.nbest is None:
            return
        ranks = "--nbest ranks whole labellings: it does not go with"
        options.refuse(
            (self.weighing.cost, f"{ranks} --cost"),
            (self.span_bonus is not None, f"{ranks} --span-bonus"),
            (self.decode == "posterior", f"{ranks} --decode posterior"),
            (self.explain is not None, "--explain is about one labelling: it does not go with --nbest"),
            (self.sequence_probability, "--nbest gives probabilities already: leave out --sequence-probability"),
        )

    @property
    def more_columns(self) -> list[str]:
        """Names of columns before those of --marginals."""
        given = {"novelty": self.novelty, "probability": self.sequence_probability}
        given |= {"review": self.review, "set": self.sets}
        return [name for name, wanted in given.items() if wanted]

    def wishes(self, model: Model) -> Wishes:
        """Return what is to be found out about each sequence."""
        from kcrf_core.model import Wishes
        from kcrf_core.scoring import Decision

        decision = self.weighing.decision(self.decode, self.span_bonus)
        costs = decision.costs(model.labels, model.encoding.odd_labels)
        decode = "posterior" if self.lag is not None else "viterbi"
        if self.lag is None and self.nbest is None:
            decode = decision.decoder(model.decode)
            if decision == Decision() and model.span_bonus:
                from ..render.figures import decoder_text

                decoder = decoder_text(model.decode, model.span_bonus)
                files.unless(self.quiet)(f"decoder: {decoder} (stored in the model)")
        return Wishes(
            decode=decode,
            scheme=self.scheme,
            force=self.force,
            marginals=self.marginals is not None,
            probability=self.sequence_probability,
            nbest=self.nbest,
            novelty=self.novelty,
            explain=self.explain,
            explain_errors=self.explain_errors,
            costs=costs,
            rules=self.rules.of(model),
            review=self.review,
            sets=self.max_set if self.sets else None,
        )

    def free_mark(self, model: Model) -> str | None:
        """Return, with --force, the mark of positions whose label is not known."""
        if not self.force:
            return None
        free = self.free or model.encoding.unobserved or FREE
        if free in model.labels:
            raise click.UsageError(f"'{free}' is a label of the model: name another mark of missing labels with --free")
        return free


@options.command(TagArguments)
def tag(run: TagArguments) -> None:
    """Label the sequences of INPUT (default: stdin), with or without a column of gold labels.

    Every line is copied, with the predicted label as a new last column. Sequences are labelled as they arrive, so `tag`
    works in a pipe and needs the same memory for input of any length.

    In CoNLL-U files the predicted label replaces the value of its column. For attribute files the output has two
    columns, the label in the file and the predicted one. Probabilities stand before the predicted label, which is
    always last, so `kcrf evaluate` reads all of these.

    Lines of text are labelled with --text; --to writes labelled parts of them, and of XML, JSON and brat's files.

    With --lag, sequences need not end: each label is printed after K more lines have been read. With --engine cuda, a
    GPU computes the scores of pivots.

    \b
    Example:
      kcrf train sample_data/digits.conll -o model.npz
      kcrf tag -m model.npz sample_data/digits.conll | kcrf evaluate -
      kcrf tag -m model.npz sample_data/digits.conll --marginals all | kcrf evaluate -
      kcrf tag -m model.npz sample_data/digits.conll --nbest 3 --json-lines
      kcrf tag -m model.npz sample_data/digits.conll --decode posterior
      kcrf tag -m model.npz sample_data/digits.conll --cost 7=5
      kcrf tag -m model.npz sample_data/digits.conll --at-most 7=1 --forbid '1>2' --sequence-probability
      kcrf tag -m model.npz --lag 3 < sample_data/digits.conll
      kcrf train sample_data/pitch_accent.conll --vectors emb=sample_data/pitch_accent.npy --sigma2 1 -o emb.npz
      kcrf tag -m emb.npz sample_data/pitch_accent.conll --vectors emb=sample_data/pitch_accent.npy
      kcrf train sample_data/addresses.conll --sigma2 1 -o address.npz
      kcrf tag -m address.npz --text --to xml <<< '221 Baker St'
    """
    from kcrf_core.corpora import COLUMN_FORMAT, FORMATS, display_name, open_vectors, stream_parsers
    from kcrf_core.encoding import missing_remarks
    from kcrf_core.model import Model
    from kcrf_core.system import PAUSE, Workers

    data, tell = run.data, files.unless(run.quiet)
    options.refuse((is_folder(data), f"{data} is encoded, and has no text to write labels beside: give the text"))
    files.check_outputs([run.output], data, run.model, *(path for _, path in run.vectors))
    fitted = run.rules.softened(Model.load(run.model))
    opened = open_vectors(run.vectors)
    fitted.encoding.check_vectors({each.name: each.width for each in opened}, display_name(data))
    format_ = COLUMN_FORMAT if run.text else run.format or fitted.encoding.format
    layout = options.with_reading(fitted.encoding.layout, tokens=run.tokens, empty_labels=run.empty_labels)
    wishes = run.wishes(fitted)
    if run.lag is None and run.nbest is None:
        fitted = fitted.deciding(run.weighing.decision(run.decode, run.span_bonus))
    if run.engine is not None:
        from kcrf_core.device import DeviceChoice, open_device

        fitted, here = fitted.on_device(open_device(DeviceChoice(run.engine), None, tell, run.threads))
        if here:
            terms = f"{counted(len(here), 'term')} without pivots ({', '.join(here)})"
            tell(f"engine {run.engine}: threads score {terms}")
    missing: Counter[str] = Counter()
    warned = _RuleWarnings(tell)
    if run.lag is not None:
        with Workers(1), files.output_stream(run.output) as stream:
            missing.update(_tag_with_lag(run, fitted, wishes, FORMATS[format_], stream))
    else:
        with Workers(run.threads) as workers:
            steps = _steps(run, fitted, wishes, FORMATS[format_], tell)
            with files.output_stream(run.output) as stream:
                form = (fitted.encoding.columns, layout, run.text, run.to == "columns" or run.force)
                parsers = parsers_by_group(
                    partial(stream_parsers, data, format_, *form), fitted.encoding, data, workers
                )
                if opened:
                    parsers = parsers_with_vectors(parsers, opened, display_name(data), workers)
                stream.write(steps.frame[0])
                try:
                    for written in _tagged(parsers, steps, workers, missing, warned):
                        if written is PAUSE:
                            stream.flush()
                        else:
                            stream.write(written)
                except DataError as error:
                    if run.text or len(fitted.encoding.columns) > 2 or ", expected " not in error.message:
                        raise
                    message = f"{error.message}; give --text if it is text without columns"
                    raise DataError(message, error.path, error.line, settings=error.settings) from None
                stream.write(steps.frame[1])
    for remark in missing_remarks(list(missing.items())):
        tell(remark)
    warned.finish()


def _tag_with_lag(
    run: TagArguments, model: Model, wishes: Wishes, format_: Format, stream: IO[bytes]
) -> dict[str, int]:
    """Write each line with its label as soon as that is due; return the counts of missing values."""
    from kcrf_core.corpora import arriving_lines
    from kcrf_core.model import LagDecoder, given_labels

    from ..render.tagged import ColumnWriter

    free = run.free_mark(model)
    given = None if free is None else lambda corpus: given_labels(model, corpus, free)
    decoder = LagDecoder(model, run.lag or 0, wishes, given)
    if decoder.lag < decoder.ahead:
        files.unless(run.quiet)(
            f"windows look {counted(decoder.ahead, 'line')} ahead: with --lag {decoder.lag} they are cut as at the end "
            f"of a sequence, and --lag {decoder.ahead} lets them see all"
        )
    writer = ColumnWriter(model.labels, run.marginals, run.more_columns)
    for arrival in arriving_lines(run.data, format_.name, model.encoding.columns, model.encoding.layout):
        for remark in arrival.parsed.corpus.remarks:
            files.unless(run.quiet)(remark)
        if arrival.ends_before and decoder.waiting:
            stream.write(writer.sequences(decoder.end()))
        writer.add(format_.with_columns(arrival.parsed))
        if arrival.parsed.corpus.positions:
            stream.write(writer.sequences(decoder.feed(arrival.parsed.corpus, arrival.ends_after)))
        stream.write(writer.rest())
        stream.flush()
    if decoder.waiting:
        stream.write(writer.sequences(decoder.end()))
    stream.write(writer.rest())
    return dict(decoder.missing)


def parsers_by_group(parsers: Callable[[], Parsers], encoding: Encoding, path: str, workers: Workers) -> Parsers:
    """Return parsers of blocks with numbers scaled by their groups, which a first pass over the file goes through."""
    from kcrf_core.system import PAUSE

    if not encoding.needs_groups:
        return parsers()
    if not os.path.isfile(path):
        raise click.UsageError(
            "the model has 'scale: group', and all of a group must be read before its first label: give a file, which "
            "is read twice (tag --lag labels a stream by what it has read of a group)"
        )
    blocks = (one.corpus for one in workers.stream(_called, parsers()) if one is not PAUSE and one.corpus.positions)
    totals = encoding.group_totals(blocks)

    def scaled(parse: Callable[[], ParsedBlock]) -> ParsedBlock:
        parsed = parse()
        return replace(parsed, corpus=encoding.scaled_by_group(parsed.corpus, totals))

    return (PAUSE if parse is PAUSE else partial(scaled, parse) for parse in parsers())


def parsers_with_vectors(parsers: Parsers, vectors: Sequence[NamedVectors], source: str, workers: Workers) -> Parsers:
    """Yield as `parsers` does, with rows of vectors at the positions of each block, counted from block to block."""
    from kcrf_core.system import PAUSE

    position, blocks = 0, workers.stream(_called, parsers, 1 + workers.threads // 2)

    def check(complete: bool = True) -> None:
        for own in vectors:
            own.check_rows(position, source, complete)

    for parsed in blocks:
        if parsed is PAUSE:
            yield PAUSE
            continue
        corpus, begin, position = parsed.corpus, position, position + parsed.corpus.positions
        if any(own.rows < position for own in vectors):
            # The number of positions is known where the input is complete without waiting.
            for rest in blocks:
                if rest is PAUSE:
                    check(complete=False)
                else:
                    position += rest.corpus.positions
            break
        rows = {own.name: own.take(begin, position, corpus) for own in vectors}
        yield partial(replace, parsed, corpus=replace(corpus, vectors={**corpus.vectors, **rows}))
    check()


def _called(make: Callable[[], Any]) -> Any:
    return make()


class _RuleWarnings:
    """Warnings about sequences: the first about rules, and how many there are, and numbers that are new."""

    def __init__(self, tell: Callable[[str], None]):
        self.tell, self._count, self._impossible, self._outside, self._looked_at = tell, 0, 0, 0, 0

    def add(self, found: Decoded) -> None:
        if found.outside is not None:
            self._outside, self._looked_at = self._outside + found.outside, self._looked_at + len(found.labels)
        for remark in found.remarks[: max(MOST_WARNINGS - self._count, 0)]:
            self.tell(f"warning: {remark}")
        self._count += len(found.remarks)
        self._impossible += found.impossible

    def finish(self) -> None:
        from kcrf_core.encoding import outside_remarks

        if self._count > MOST_WARNINGS:
            self.tell(f"warning: {self._count - MOST_WARNINGS:,} more such warnings")
        for remark in outside_remarks(self._outside, self._looked_at):
            self.tell(remark)
        if self._impossible:
            self.tell(f"no labelling that obeys the rules was found for {counted(self._impossible, 'sequence')}")


@dataclass(frozen=True)
class _Steps:
    """Steps from blocks to what is written."""

    encoded: Callable[[ParsedBlock], Any]  # a dataset, or a part of a corpus
    chunks: Callable[[Any], list[tuple[int, int]]]  # sequences to label at a time
    labelled: Callable[[ParsedBlock, Any], Any]  # findings about some sequences of a block
    writer: Callable[[ParsedBlock], Writer]  # makes bytes of it
    own_form: bool = False  # lines without sequences are no part of the output
    every_text: bool = False  # the writer writes texts without tokens, too
    frame: tuple[bytes, bytes] = (b"", b"")  # before and behind all that is written


def _tagged(
    parsers: Parsers, steps: _Steps, workers: Workers, missing: Counter[str], warned: _RuleWarnings
) -> Iterator[bytes | Pause]:
    """Yield what to write, in the order of the input, and a PAUSE where all that is there has been written.

    Threads encode blocks, label parts of blocks that are encoded and put labels into blocks; this one reads and writes.
    """
    from kcrf_core.system import PAUSE

    def prepared(parse: Callable[[], ParsedBlock]) -> tuple[ParsedBlock, Any]:
        parsed = parse()
        return parsed, steps.encoded(parsed) if parsed.corpus.positions else None

    def parts(blocks: Iterator[tuple[ParsedBlock, Any] | Pause]) -> Iterator[tuple[Any, ...] | Pause]:
        for block in blocks:
            if block is PAUSE:
                yield PAUSE
                continue
            chunks = [(0, 0)] if block[1] is None else steps.chunks(block[1])
            for chunk in chunks:
                yield *block, chunk, chunk is chunks[-1]

    def labelled(part: tuple[Any, ...]) -> tuple[Any, ...]:
        parsed, dataset, chunk, last = part
        return parsed, dataset, last, None if dataset is None else steps.labelled(parsed, dataset.span(*chunk))

    def written(items: Iterator[tuple[Any, ...] | Pause]) -> Iterator[Callable[[], bytes] | Pause]:
        write = None
        for item in items:
            if item is PAUSE:
                yield PAUSE
                continue
            parsed, dataset, last, found = item
            for remark in parsed.corpus.remarks if last else ():
                warned.tell(remark)
            if dataset is None:
                if not steps.own_form:
                    header = parsed.header_end is not None or steps.every_text
                    yield steps.writer(parsed).rest if header else partial(bytes, parsed.block.data)
                continue
            if write is None:
                write = steps.writer(parsed)
            warned.add(found)
            yield partial(bytes, write.sequences(found))
            if last:
                missing.update(dict(dataset.missing))
                yield write.rest
                write = None

    # Of encoded blocks there are fewer ahead than of parts: they take memory, and less time than labelling.
    encoded = workers.stream(prepared, parsers, 1 + workers.threads // 2)
    labels = workers.stream(labelled, parts(encoded))
    yield from workers.stream(_called, written(labels))


def _steps(run: TagArguments, model: Model, wishes: Wishes, format_: Format, tell: Callable[[str], None]) -> _Steps:
    """Return the way to what was asked for."""
    from kcrf_core.corpora import DocumentBlock
    from kcrf_core.model import CorpusPart, Decoder, given_labels

    from ..render.tagged import SET_SEPARATOR, ColumnWriter, JsonWriter, LabelWriter, NBestWriter

    labels, marginals, free = model.labels, run.marginals, run.free_mark(model)
    decoder = Decoder(model, wishes, tell)
    rules = decoder.rules
    columns = ("marginals", "sequence_probability", "nbest", "novelty", "explain", "review", "sets")
    more = [*run.given(*columns)]
    if more and not format_.takes_columns and not run.json_lines:
        raise click.UsageError(f"{format_.title} has no column for {more[0]}: give --json-lines, too")
    if run.sets and not run.json_lines and any(SET_SEPARATOR in label for label in labels):
        raise click.UsageError(f"labels of the model contain {SET_SEPARATOR}: give --json-lines for --sets")
    frame = b"", b""
    if run.to != "columns":
        from ..render.labelled_text import JsonPartWriter, XmlPartWriter

        part_writer = XmlPartWriter if run.to == "xml" else JsonPartWriter
        frame = XmlPartWriter.frame(model.encoding.span_labels) if run.to == "xml" else frame

    def writer(parsed: ParsedBlock) -> Writer:
        if run.to != "columns":
            if not isinstance(parsed.block, DocumentBlock):
                raise click.UsageError(f"--to {run.to} is for texts, and {run.data} has columns: is it --text?")
            if parsed.corpus.width > 2:  # .ttx
                raise click.UsageError(f"--to {run.to} is for texts of words, and positions of {run.data} are lines")
            return part_writer(model.encoding.span_labels, parsed.block)
        if run.json_lines:
            return JsonWriter(parsed.corpus, labels, marginals, model.encoding.with_labels(parsed.corpus), free)
        if not more:
            return LabelWriter(format_, parsed, labels)
        columns_of = ColumnWriter if run.nbest is None else NBestWriter
        return columns_of(labels, marginals, run.more_columns, format_.with_columns(parsed))

    def prepared(parsed: ParsedBlock) -> Dataset | CorpusPart:
        if free is None:
            return decoder.prepared(parsed.corpus)
        return replace(model.encoding.encode(parsed.corpus), labels=given_labels(model, parsed.corpus, free))

    def decoded(parsed: ParsedBlock, part: Any) -> Decoded:
        allowed = None
        if rules is not None:
            of_text = isinstance(part, CorpusPart)
            first = int(part.corpus.offsets[part.first] if of_text else parsed.corpus.lines.searchsorted(part.lines[0]))
            rows = slice(first, first + int(part.offsets[-1]))
            allowed = rules.allowed_rows(parsed.corpus, model.encoding, rows)
        return decoder.decode_part(part, parsed.corpus.source, allowed)

    own_form = run.json_lines or run.nbest is not None
    return _Steps(prepared, decoder.chunks, decoded, writer, own_form, run.to != "columns", frame)
