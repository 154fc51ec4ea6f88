"""A `Format` object describes each text format; functions read any of them, whole, by blocks or as lines arrive."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from ..errors import ConfigError, DataError, suggestion
from ..files import is_compressed
from ..system import PAUSE, Pause, Remark, Workers, counted, listed
from . import FORMATS
from .corpus import COLUMN_FORMAT, Corpus, CorpusBuilder, packed
from .labelled_texts.documents import TEXT, DocumentBlock, DocumentReader, document_blocks
from .labelled_texts.recognition import kind_of, named_as_text, reader_of_files
from .layout import PLAIN, Layout
from .lines import (
    Block,
    Cut,
    ParsedBlock,
    append_labels,
    blocks_and_pauses,
    checked,
    chunks_and_pauses,
    display_name,
    opened,
    put_texts,
)

MANY_COLUMNS = 20_000  # from which on a minute may pass before there is a word about the data
SEPARATORS_BY_NAME = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True)
class Format:
    """A text format: how blocks of its files are parsed, and how labels are written into them.

    `parse_block(block, name, columns, layout, known)` parses a block of the file that messages call `name`. `columns`
    are those to take where the format has names for them, and `known` is a block of the file that came before and has
    positions or a header, None as long as there is none.
    """

    name: str  # in the registry, in options and in headers of models
    title: str  # in messages
    parse_block: Callable[[Block, str, tuple[str, ...], Layout, ParsedBlock | None], ParsedBlock]
    suffixes: tuple[str, ...] = ()  # names of files that end so are taken for it
    attributes: bool = False  # positions have attributes in the place of columns
    columns: tuple[str, ...] = ()  # names that the format itself has for its columns, all of them
    default_columns: tuple[str, ...] = ()  # those that are taken unless others are named, the label's last
    plain_columns: tuple[str, ...] = ()  # those that any text has before it is annotated
    no_value: str | None = None  # what stands in a column that is empty
    sequence_per_line: bool = False  # else a blank line ends a sequence
    has_layouts: bool = False  # what separates values, comments and the like can be said
    # Makes the function that cuts a file into blocks where a column tells sequences apart, by layout and columns.
    cut: Callable[[Layout, tuple[str, ...]], Cut] | None = None
    # Lines that more columns can stand behind: of attribute files, those with the labels alone.
    with_columns: Callable[[ParsedBlock], ParsedBlock] = lambda parsed: parsed
    # Puts labels, `numbers` [N] of `labels`, where the format has a place for them. Without it they are one more
    # column, and probabilities and the like can be columns, too.
    put_labels: Callable[[ParsedBlock, Sequence[str], np.ndarray], bytes] | None = None
    label_columns: tuple[str, ...] = field(init=False)  # named columns that can be a label

    def __post_init__(self) -> None:
        own = tuple(name for name in self.columns if name not in self.plain_columns)
        object.__setattr__(self, "label_columns", own)

    @property
    def takes_columns(self) -> bool:
        """True if lines can have more columns behind their own."""
        return self.put_labels is None

    def parse(
        self, parts: Iterable[Block], name: str, columns: Sequence[str] | None = None, layout: Layout = PLAIN
    ) -> Iterator[ParsedBlock]:
        """Parse the consecutive blocks of one file; `columns` are those to take where the format has names for them."""
        return (parse() for parse in self.parsers(parts, name, columns, layout) if parse is not PAUSE)

    def parsers(
        self, parts: Iterable[Block | Pause], name: str, columns: Sequence[str] | None = None, layout: Layout = PLAIN
    ) -> Iterator[Callable[[], ParsedBlock] | Pause]:
        """Yield functions that may parse blocks at the same time, with a `PAUSE` where more has to be waited for."""
        self.check_layout(layout)
        known, chosen = None, tuple(columns or self.default_columns)
        for block in parts:
            if block is PAUSE:
                yield PAUSE
            elif known is None:
                parsed = self._parsed(block, name, chosen, layout, None)
                if parsed.corpus.positions or parsed.corpus.header is not None:
                    known = parsed  # others of the file are parsed like it
                yield partial(replace, parsed)
            else:
                yield partial(self._parsed, block, name, chosen, layout, known)

    def _parsed(
        self, block: Block, name: str, columns: tuple[str, ...], layout: Layout, known: ParsedBlock | None
    ) -> ParsedBlock:
        parsed = self.parse_block(checked(block, name), name, columns, layout, known)
        return replace(parsed, corpus=replace(parsed.corpus, file_format=self.name))

    def check_layout(self, layout: Layout) -> None:
        """Refuse a layout for a format that has none."""
        keys = ("separator", "header", "comment", "sequence", "tokens", "span_labels", "empty_labels")
        settings = [key for key in keys if getattr(layout, key)]
        if settings and not self.has_layouts:
            message = f"'{settings[0]}' is for files of columns, and {self.title} has its own rules: leave it out"
            raise ConfigError(message, settings=settings)

    def labelled(self, parsed: ParsedBlock, labels: Sequence[str], numbers: np.ndarray, instead: bool = False) -> bytes:
        """Return the bytes of a block with labels, `numbers` [N] int32 of them, perhaps `instead` of its own."""
        if self.put_labels is not None:
            return self.put_labels(parsed, labels, numbers)
        if instead:
            return put_texts(parsed, [*map(parsed.layout.written, labels)], numbers, *parsed.label_places())
        return append_labels(self.with_columns(parsed), labels, numbers)

    def column_places(self, names: Sequence[str]) -> list[int]:
        """Return the places of the columns of these names; capitals do not matter."""
        for name in names:
            if name.lower() not in self.columns:
                hint = suggestion(name.lower(), self.columns)
                shown = ", ".join(self.columns)
                raise ConfigError(f"{self.title} has no column '{name}'{hint}; there are: {shown}")
        places = [self.columns.index(name.lower()) for name in names]
        if len(set(places)) < len(places):
            raise ConfigError(f"a column of {self.title} is named twice: {listed(names)}")
        if len(places) < 2:
            example = ",".join(self.default_columns)
            raise ConfigError(f"'{names[0]}' is only one column: name at least two, the label last, as {example}")
        return places


def guess_format(path: str | os.PathLike[str]) -> str:
    """Return the format that the name of a file suggests."""
    name = _unpacked_name(path)
    return next((own.name for own in FORMATS.values() if name.endswith(tuple(own.suffixes))), COLUMN_FORMAT)


def named_layout(path: str | os.PathLike[str], layout: Layout) -> Layout:
    """Return the layout with the separator that the name of a file suggests, unless it has one."""
    separator = SEPARATORS_BY_NAME.get(os.path.splitext(_unpacked_name(path))[1].lower())
    return replace(layout, separator=separator) if layout.separator is None and separator else layout


def _unpacked_name(path: str | os.PathLike[str]) -> str:
    """Return the name of a file without the ending of its compression."""
    return os.path.splitext(path)[0] if is_compressed(path) else os.fspath(path)


def stream_corpus(
    path: str | os.PathLike[str],
    format: str | None = None,
    columns: Sequence[str] | None = None,
    layout: Layout = PLAIN,
) -> Iterator[ParsedBlock]:
    """Yield the blocks of a file, each as soon as it is there; together they hold all of its lines.

    `columns` are those to take where the format has names for them, the label's last.
    """
    return (parse() for parse in stream_parsers(path, format, columns, layout) if parse is not PAUSE)


def stream_parsers(
    path: str | os.PathLike[str],
    format: str | None = None,
    columns: Sequence[str] | None = None,
    layout: Layout = PLAIN,
    text: bool = False,
    labelled: bool = True,
) -> Iterator[Callable[[], ParsedBlock] | Pause]:
    """Yield functions that parse the blocks of a file, for any thread; see `Format.parsers`.

    With `text`, each line is a sequence without labels. Else, where columns are expected and no separator, header or
    column of sequences is given, or the name says so, a file that begins as XML, JSON or another labelled text becomes
    columns, the label's only if it is to be `labelled`.
    """
    chosen, name = FORMATS[guess_format(path) if format is None else format], display_name(path)
    layout = named_layout(path, layout) if chosen.has_layouts else layout
    any_kind = not text and _may_be_texts(chosen, layout, name)
    kind = TEXT if text else None
    if any_kind and (kind := reader_of_files(path)) is not None:
        yield from document_parsers((), replace(kind, labelled=labelled), name, columns, layout)
        return
    with opened(path) as stream:
        chunks: Iterable[bytes | Pause] = chunks_and_pauses(stream)
        cut = None
        if any_kind:
            kind, chunks = yield from kind_of(chunks, name)
        if kind is not None:
            yield from document_parsers(chunks, replace(kind, labelled=labelled), name, columns, layout)
            return
        if chosen.cut is not None and layout.sequence is not None:
            cut = chosen.cut(layout, tuple(columns or ()))
        parts = blocks_and_pauses(chunks, name, chosen.sequence_per_line, layout, cut)
        yield from chosen.parsers(parts, name, columns, layout)


def _may_be_texts(format_: Format, layout: Layout, name: str) -> bool:
    """Return True if the first bytes of a file decide whether it has columns or is XML, JSON or the like."""
    as_columns = layout.separator or layout.header or layout.sequence
    return format_.name == COLUMN_FORMAT and (not as_columns or named_as_text(name))


def document_parsers(
    chunks: Iterable[bytes | Pause], reader: DocumentReader, name: str, columns: Sequence[str] | None, layout: Layout
) -> Iterator[Callable[[], ParsedBlock] | Pause]:
    """Yield functions that parse the rows of documents; those with labels have a column more than others."""

    def parsed(parse: Callable[[], ParsedBlock] | Pause) -> ParsedBlock:
        assert parse is not PAUSE
        out = parse()
        names = reader.columns if columns is None and out.corpus.width == 2 else None
        block, own, unlabelled = out.block, layout, ""
        assert isinstance(block, DocumentBlock)
        if block.span_labels:
            own = replace(layout, span_labels=block.span_labels)
        if not block.labelled and reader.label_keys:
            others = listed([*next(iter(block.keys), ())]) or "none"
            unlabelled = f"no labels under the keys {listed(reader.label_keys)}; other keys of the first text: {others}"
        corpus = replace(
            out.corpus,
            names=names,
            categorical=reader.words,
            layout=own,
            remarks=block.remarks,
            unlabelled=unlabelled,
        )
        return replace(out, corpus=corpus)

    rows, next_block = replace(layout, separator="\t", header=False, comment=(), sequence=None), list[Block]()
    parsers = [
        FORMATS[COLUMN_FORMAT].parsers(iter(next_block.pop, None), name, columns, rows) for _ in (False, True)
    ]  # without labels, and with them
    for block in document_blocks(reader, chunks, name, layout):
        if block is PAUSE:
            yield PAUSE
        else:
            next_block.append(block)
            yield partial(parsed, next(parsers[block.labelled]))


_Packed: TypeAlias = tuple[Corpus, int, list[str], bool]  # a part, its bytes, its values of a column, has it labels


def _labelled_texts(parts: Iterable[_Packed]) -> Iterator[_Packed]:
    """Yield parts with labels, or all of them if none has any; of others, empty parts that count their texts."""
    waiting, found = list[_Packed](), False
    for part in parts:
        if part[0].positions and not part[3]:
            waiting.append(part)
        else:
            found |= bool(part[0].positions)
            yield part
        if found:
            for corpus, size, *_ in waiting:
                yield replace(corpus.span(0, 0), left_out=corpus.sequences), size, [], True
            waiting.clear()
    yield from waiting


def packed_parts(
    path: str | os.PathLike[str],
    format: str | None = None,
    columns: Sequence[str] | None = None,
    workers: Workers | None = None,
    layout: Layout = PLAIN,
    progress: Callable[[int], object] | None = None,
    remarks: list[str] | None = None,
) -> Iterator[Corpus]:
    """Yield the sequences of each block of a file, without its bytes; raise an error if there are none at all.

    Texts without labels are left out of a file that has others with labels. In the end, `remarks` for users
    about the file are added to those that are given.
    """

    def packed_part(parse: Callable[[], ParsedBlock]) -> _Packed:
        parsed = parse()
        corpus = packed(parsed.corpus, layout.missing)
        if remarks is not None:
            remarks.extend(corpus.remarks)
        labelled = not isinstance(parsed.block, DocumentBlock) or parsed.block.labelled
        return corpus, len(parsed.block.data), parsed.sequence_values, labelled

    parsers = (parse for parse in stream_parsers(path, format, columns, layout) if parse is not PAUSE)
    # More ahead than there are threads would only take memory.
    parts = map(packed_part, parsers) if workers is None else workers.stream(packed_part, parsers, workers.threads)
    read = positions = returns = left_out = width = 0
    last, seen, notes = "", set[str](), list[str]()
    for corpus, size, values, _ in _labelled_texts(parts):
        for value in values:
            returns += value != last and value in seen
            seen.add(value)
            last = value
        notes.extend(corpus.remarks)
        read, positions, left_out = read + size, positions + corpus.positions, left_out + corpus.left_out
        width = max(width, corpus.width)
        yield corpus
        if progress is not None:
            progress(size)
    if not positions:
        reason = "only blank lines, comments or a header line" if read else "the file is empty"
        if notes and not read:  # its texts are left out
            reason = notes[-1].partition(f"{display_name(path)}: ")[2]
        raise DataError(f"no data: {reason}", display_name(path))
    if width > MANY_COLUMNS and remarks is not None:
        many = f"{width:,} columns, each of which is looked at by itself, which takes long"
        remedy = "is the separator right? Numbers that belong together can be vectors beside the text ('vectors')"
        remarks.append(Remark(f"warning: {display_name(path)}: {many}; {remedy}", settings=["vectors"]))
    if left_out and remarks is not None:
        without = counted(left_out, "text without labels is left out", "texts without labels are left out")
        remarks.append(f"warning: {display_name(path)}: {without}")
    if returns and remarks is not None:
        begin = counted(returns, "sequence begins", "sequences begin")
        returned = f"{begin} with a value of '{layout.sequence}' that an earlier sequence has, with others between them"
        remarks.append(f"warning: {returned}: are its rows sorted?")


def read_corpus(
    path: str | os.PathLike[str],
    format: str | None = None,
    columns: Sequence[str] | None = None,
    workers: Workers | None = None,
    layout: Layout = PLAIN,
    progress: Callable[[int], object] | None = None,
) -> Corpus:
    """Read the sequences of a whole file; there is at least one. The format follows from its name unless it is given.

    With `workers` their threads parse, if the format lets them. `progress` is called with bytes that have been read.

    >>> from kcrf_core import read_corpus
    >>> corpus = read_corpus("sample_data/pitch_accent.conll")
    >>> corpus.sequences, corpus.positions, corpus.width
    (500, 5652, 6)
    """
    builder, remarks = CorpusBuilder(), list[str]()
    for part in packed_parts(path, format, columns, workers, layout, progress, remarks):
        builder.add(part)
    return replace(builder.corpus(), remarks=tuple(remarks))


@dataclass(frozen=True)
class Arrival:
    """Consecutive lines, parsed, with the ends of sequences before and after their positions."""

    parsed: ParsedBlock
    ends_before: bool  # a sequence ends before its first position, or anywhere if it has none
    ends_after: bool  # a blank line stands after its last position


def arriving_lines(
    path: str | os.PathLike[str], format: str, columns: Sequence[str] | None = None, layout: Layout = PLAIN
) -> Iterator[Arrival]:
    """Yield the lines of a file, as many at a time as there are; a sequence may go on in what comes next."""
    chosen = FORMATS[format]
    if chosen.sequence_per_line or not chosen.takes_columns:
        raise ConfigError(f"{chosen.title} is read in whole sequences, so it cannot be labelled line by line")
    name, layout = display_name(path), named_layout(path, layout)
    any_kind = _may_be_texts(chosen, layout, name)
    if any_kind and reader_of_files(path) is not None:
        raise _whole_texts(name)
    with opened(path) as stream:
        chunks: Iterator[bytes | Pause] = chunks_and_pauses(stream)
        chunks = _chunks_of_columns(chunks, name) if any_kind else chunks
        value: str | None = None  # of the column that tells sequences apart, in the sequence that goes on, if one does
        lines_or_pauses = blocks_and_pauses(chunks, name, sequence_per_line=True)
        parts = (replace(block, before=value) for block in lines_or_pauses if block is not PAUSE)
        for parsed in chosen.parse(parts, name, columns, layout):
            block, corpus, lines = parsed.block, parsed.corpus, parsed.corpus.lines
            if not len(lines):
                ends = _has_blank(block, 0, block.line_count, layout)
                value = None if ends else value
                yield Arrival(parsed, ends, False)
                continue
            before = _has_blank(block, 0, int(lines[0]) - block.first_line, layout)
            after = _has_blank(block, int(lines[-1]) + 1 - block.first_line, block.line_count, layout)
            if parsed.sequence_place is not None:
                first, *_ = own = list(corpus.columns[parsed.sequence_place])
                before |= value is not None and first not in ("", value)
                above = value if value is not None and corpus.sequences == 1 and not before else ""
                value = next(filter(None, reversed(own[int(corpus.offsets[-2]) :])), above)
                value = None if after else value
            yield Arrival(parsed, before, after)


def _whole_texts(name: str) -> ConfigError:
    """Return the error for texts where single lines of columns are expected."""
    message = f"{name} has texts, which are read whole, so it cannot be labelled line by line"
    return ConfigError(f"{message}: leave out the lag", settings=["lag"])


def _chunks_of_columns(chunks: Iterable[bytes | Pause], name: str) -> Iterator[bytes | Pause]:
    """Yield the chunks of a file; raise an error if they are those of XML, JSON or another labelled text."""
    kind, chunks = yield from kind_of(chunks, name)
    if kind is not None:
        raise _whole_texts(name)
    yield from chunks


def _has_blank(block: Block, first: int, last: int, layout: Layout) -> bool:
    """Return True if one of the lines first:last of a block, counted from 0, is blank."""
    blanks = layout.blanks.decode()
    return first < last and any(not line.strip(blanks) for line in block.content()[first:last])
