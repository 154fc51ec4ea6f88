"""What must hold of reading: every byte comes back, nothing is misread or repaired silently, streams flow."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import math
import pickle
import random
import struct
import sys
import tracemalloc

import numpy as np
import pytest

import oracle
from kcrf_core.corpora import (
    FORMATS,
    MISSING,
    PLAIN,
    CodedColumn,
    Layout,
    conll,
    guess_format,
    lines as lines_module,
    read_corpus,
    stream_corpus,
)
from kcrf_core.corpora.corpus import concatenate
from kcrf_core.corpora.lines import Block, append_labels, blocks
from kcrf_core.errors import ConfigError, DataError
from kcrf_core.system import Workers


class Pieces(io.BufferedIOBase):
    """A stream that hands out the given pieces one by one, like a pipe, and counts them."""

    def __init__(self, pieces):
        self.pieces, self.taken = iter(pieces), 0

    def read1(self, size):
        piece = next(self.pieces, b"")
        self.taken += bool(piece)
        assert len(piece) <= size
        return piece


def parse(data, format="conll"):
    """The parsed blocks of `data`: bytes, or the pieces in which they arrive."""
    pieces = [data] if isinstance(data, bytes) else data
    return list(FORMATS[format].parse(blocks(Pieces(pieces), "file"), "file"))


def whole(data, format="conll"):
    return concatenate([part.corpus for part in parse(data, format) if part.corpus.positions])


def sequences(corpus):
    """The corpus as nested lists: sequence, position, column."""
    rows = list(zip(*corpus.columns, strict=True))
    return [[list(row) for row in rows[start:end]] for start, end in itertools.pairwise(corpus.offsets.tolist())]


def attributes(corpus):
    """The attributes of each position, as lists of (name, weight)."""
    entries = list(zip(corpus.attributes.names, corpus.attributes.values.tolist(), strict=True))
    return [entries[start:end] for start, end in itertools.pairwise(corpus.attributes.indptr.tolist())]


def assert_same(corpus, other):
    assert sequences(corpus) == sequences(other)
    assert corpus.lines.tolist() == other.lines.tolist()
    assert (corpus.weights is None) == (other.weights is None)
    if corpus.weights is not None:
        assert corpus.weights.tolist() == other.weights.tolist()
    assert (corpus.attributes is None) == (other.attributes is None)
    if corpus.attributes is not None:
        assert attributes(corpus) == attributes(other)


def error_of(data, format="conll"):
    with pytest.raises(DataError) as caught:
        parse(data, format)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Values, columns, sequences


@pytest.mark.parametrize("separator", ["\t", " "])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("last", ["", "\n", "\n\n", "\n\n\n"])
def test_separator_line_ends_byte_order_mark_and_last_line_do_not_change_the_corpus(separator, newline, mark, last):
    text = mark + "a b\nc d\n\ne f".replace(" ", separator) + last
    corpus = whole(text.replace("\n", newline).encode())
    assert sequences(corpus) == [[["a", "b"], ["c", "d"]], [["e", "f"]]]
    assert corpus.lines.tolist() == [1, 2, 4]
    assert corpus.lines.dtype == corpus.offsets.dtype == np.int64
    assert corpus.source == "file"


def test_blank_lines_may_lead_and_come_in_runs_and_hold_spaces():
    corpus = whole(b"\n \r\n\na b\n\n   \n\nc d\n\n\n")
    assert sequences(corpus) == [[["a", "b"]], [["c", "d"]]]
    assert corpus.lines.tolist() == [4, 8]


def test_runs_of_spaces_separate_and_those_around_a_line_do_not_count():
    assert sequences(whole(b"  a   b \nc d  \r\n")) == [[["a", "b"], ["c", "d"]]]


def test_only_ascii_spaces_and_line_feeds_separate():
    values = ["no\u00a0break", "wide\u3000space", "line\u2028end", "next\u0085line", "form\x0cfeed\x0b\x1c"]
    for separator in " \t":
        assert sequences(whole(separator.join(values).encode())) == [[values]]


def test_spaces_belong_to_the_values_of_a_tab_file_and_values_may_be_empty():
    assert sequences(whole(b"New York\tB\n\tC\n a \t\n")) == [[["New York", "B"], ["", "C"], [" a ", ""]]]


def test_spaces_alone_end_a_sequence_in_a_tab_file_too():
    assert sequences(whole(b"a\tb\n   \nc\td\n")) == [[["a", "b"]], [["c", "d"]]]


def test_the_first_data_line_of_the_file_decides_for_later_blocks():
    parts = parse([b"\n\n", b"a\tb\n\n", b"c d\te\n\n"])
    assert [part.separator for part in parts] == [None, "\t", "\t"]
    assert sequences(parts[2].corpus) == [[["c d", "e"]]]


@pytest.mark.parametrize(
    "data, message",
    [
        (b"a\tb\tc\n\nd\te\n", "file:3: 2 columns, expected 3 (tab-separated; is a value missing?)"),
        (b"a\tb\tc\nd e f\n", "file:2: 1 column, expected 3 (tab-separated, and the line has spaces and no TAB)"),
        (b"a\tb\tc\nd \n", "file:2: 1 column, expected 3 (tab-separated; is a value missing?)"),
        (b"a b c\nd\n", "file:2: 1 column, expected 3 (space-separated; is a value missing?)"),
        (b"a b\nc d e\n", "file:2: 3 columns, expected 2 (space-separated; is a value missing?)"),
        ([b"a b\n\n", b"\n", b"c d e\n"], "file:4: 3 columns, expected 2"),
        (b"a b\nc\td\n", "file:2: 1 column, expected 2 (space-separated, as the first data line has no TAB"),
        (b"a\n\nb\tc\n", "file:3: a TAB inside a value (space-separated, as the first data line"),
    ],
)
def test_uneven_rows_are_refused_with_their_line(data, message):
    assert error_of(data).startswith(message)


# Bytes


@pytest.mark.parametrize("format", ["conll", "crfsuite"])
@pytest.mark.parametrize(
    "data, message",
    [
        (b"a\tb\n\xff\tb\n", "file:2: byte 0xff is not UTF-8 (convert the file, for example with iconv)"),
        (b"a\tb\n\nc\tb\xc3\n", "file:3: byte 0xc3 is not UTF-8"),
        ([b"a\tb\n\n", b"c\td\n\n\n", b"e\tf\ng\t\x80\n\n"], "file:7: byte 0x80 is not UTF-8"),
        (b"a\tb\n\0\tb\n", "file:2: a NUL character"),
        (b"a\tb\rc\td\r\re\tf\r", "file:1: a carriage return inside a line"),
        ([b"a\tb\r\n\r\n", b"c\td\r\r\n"], "file:3: a carriage return inside a line"),
        (b"PK\x03\x04\x14\x00", "file: looks like a zip archive, as .npz files are"),
        ([b"\x1f", b"\x8b", b"\x08"], "file: looks like gzip data"),
    ],
)
def test_what_is_not_text_is_refused_with_its_line(format, data, message):
    assert error_of(data, format).startswith(message)


RAW = (
    "\ufeffDas\u00a0Haus\tB\r\n𝔊ut\tI\r\n\r\n\n  \n\t\nalt\t\r\n \r\nneu\tO\n\nlast\tO".encode(),
    b"a b\nc d\n\n\n",
    b"\n\n  \n",
    b"a b \r",
    b"a",
    b"",
)


def bytes_of(block):
    return ("\n".join(block.lines) + "\n" * block.ends_with_newline).encode()


@pytest.mark.parametrize("data", RAW)
def test_raw_lines_come_back_byte_for_byte(data):
    parts = parse(data)
    assert b"".join(bytes_of(part.block) for part in parts) == data


@pytest.mark.parametrize("data", RAW)
def test_how_the_bytes_arrive_does_not_matter(data):
    expected = parse(data)
    for cut in range(1, len(data)):
        for pieces in ([data[:cut], data[cut:]], [data[i : i + cut] for i in range(0, len(data), cut)]):
            parts = parse(pieces)
            assert b"".join(bytes_of(p.block) for p in parts) == data
            assert [p.block.first_line for p in parts] == list(
                itertools.accumulate((len(p.block.lines) for p in parts[:-1]), initial=1)
            )
            filled = [part.corpus for part in expected if part.corpus.positions]
            assert any(part.corpus.positions for part in parts) == bool(filled)
            if filled:
                assert_same(whole(pieces), concatenate(filled))


def test_lines_of_positions_point_into_their_block():
    for part in parse([b"\na b\n\n", b"\n\nc d\ne f\n", b"\n"]):
        for t, line in enumerate(part.corpus.lines.tolist()):
            assert part.block.lines[line - part.block.first_line].startswith(part.corpus.columns[0][t])


@pytest.mark.parametrize("seed", range(30))
def test_any_text_is_split_as_a_plain_reader_splits_it_and_labels_go_to_the_ends_of_lines(seed):
    rng = random.Random(seed)
    separator = rng.choice(["\t", " ", "  "])
    width = rng.randint(2 if separator == "\t" else 1, 4)
    values = ["a", "b", "Zürich", "\u3000", "\U0001f600x", "0", "aa"]
    values += ["", " ", "New York"] if separator == "\t" else []
    lines = []
    for _ in range(rng.randint(1, 60)):
        if rng.random() < 0.2:
            lines.append(rng.choice(["", " ", "   "]))
        else:
            row = separator.join(rng.choice(values) for _ in range(width))
            lines.append(row if separator == "\t" else f"{' ' * rng.randint(0, 2)}{row}{' ' * rng.randint(0, 2)}")
    mark = rng.choice(["", "\ufeff"])
    data = (mark + rng.choice(["\n", "\r\n"]).join(lines) + rng.choice(["", "\n"])).encode()
    rows, expected_separator = oracle.conll_rows(data)
    part = conll.parse_block(Block(1, data), "file", (), PLAIN, None)
    corpus = part.corpus
    assert part.separator == expected_separator
    assert [list(row) for row in zip(*corpus.columns, strict=True)] == [row for _, row, _ in rows]
    assert corpus.lines.tolist() == [number for number, _, _ in rows]
    for column in corpus.columns:
        assert column.values == list(dict.fromkeys(column))

    labels = ["B", "", "Ü-long"]
    numbers = np.array([rng.randrange(3) for _ in rows], dtype=np.int32)
    inserted, at = b"", 0
    for (_, _, end), number in zip(rows, numbers.tolist(), strict=True):
        inserted += data[at:end] + f"{part.separator}{labels[number]}".encode()
        at = end
    assert append_labels(part, labels, numbers) == inserted + data[at:]


def test_columns_that_are_joined_and_taken_apart_keep_their_values():
    column = whole([b"a\nb\n\n", b"c\nb\n\n", b"a\nd\n"]).columns[0]
    assert list(column) == ["a", "b", "c", "b", "a", "d"] and column.values == ["a", "b", "c", "d"]
    taken = column.take(np.array([5, 3, 1]))
    assert list(taken) == ["d", "b", "b"] and taken.values == ["d", "b"]
    assert column[2:4] == ["c", "b"] and column[-1] == "d" and column.count("a") == 2


# Streams


def test_a_sequence_is_delivered_before_more_is_asked_for():
    stream = Pieces([b"a b\nc", b" d\n", b"\ne f\n\ng", b" h\n \r", b"\n", b"i j"])
    parts = conll.CONLL.parse(blocks(stream, "file"), "file")
    seen = [(stream.taken, list(part.corpus.columns[0])) for part in parts]
    assert seen == [(3, ["a", "c", "e"]), (5, ["g"]), (6, ["i"])]


def test_an_endless_stream_takes_constant_memory():
    piece = b"word label\n" * 50 + b"\n"
    stream = Pieces(itertools.repeat(piece))
    parts = conll.CONLL.parse(blocks(stream, "file"), "file")
    next(parts)
    tracemalloc.start()
    try:
        for part in itertools.islice(parts, 400):
            assert part.corpus.positions == 50
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100 * len(piece)
    assert part.corpus.lines[-1] == 401 * 51 - 1


# Files


def test_files_plain_compressed_and_standard_input_read_the_same(tmp_path, monkeypatch):
    data = b"a b\n\nc d\n" * 3000
    plain, compressed = tmp_path / "x.conll", tmp_path / "x.conll.gz"
    plain.write_bytes(data)
    compressed.write_bytes(gzip.compress(data))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    expected = read_corpus(str(plain))
    assert expected.source == str(plain)
    assert_same(read_corpus(compressed), expected)
    corpus = read_corpus("-")
    assert corpus.source == "<stdin>"
    assert_same(corpus, expected)
    assert not sys.stdin.closed


@pytest.mark.parametrize("damage", [lambda data: data[:-12], lambda data: data[:40] + b"?" * 40, lambda _: b"a b"])
def test_damaged_gzip_is_named(tmp_path, damage):
    path = tmp_path / "x.conll.gz"
    path.write_bytes(damage(gzip.compress(bytes(range(65, 90)) * 50)))
    with pytest.raises(DataError, match=r"x\.conll\.gz: damaged gzip data"):
        read_corpus(path)


@pytest.mark.parametrize(
    "data, reason",
    [(b"", "the file is empty"), (b"\n \r\n", "only blank lines"), (b"\xef\xbb\xbf", "only blank")],
)
@pytest.mark.parametrize("format", FORMATS)
def test_a_file_without_data_is_refused(tmp_path, data, reason, format):
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(DataError, match=f"x: no data: {reason}"):
        read_corpus(path, format)


def test_a_missing_file_is_an_operating_system_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_corpus(tmp_path / "missing")


def test_an_unknown_format_is_a_configuration_error(tmp_path):
    with pytest.raises(ConfigError, match="conll, conllu, crfsuite"):
        next(stream_corpus(tmp_path / "x", "xml"))


@pytest.mark.parametrize(
    "path, format",
    [
        ("a.crfsuite", "crfsuite"),
        ("a.crfsuite.gz", "crfsuite"),
        ("a.conll", "conll"),
        ("a.gz", "conll"),
        ("-", "conll"),
    ],
)
def test_the_format_follows_the_name(path, format):
    assert guess_format(path) == format


def test_leading_blank_blocks_do_not_hide_the_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(lines_module, "READ_SIZE", 1000)
    path = tmp_path / "x.conll"
    path.write_bytes(b"\n" * 1000 + b"a b\n")  # the first read holds blank lines only
    assert [part.corpus.width for part in stream_corpus(path)] == [0, 2]
    corpus = read_corpus(path)
    assert sequences(corpus) == [[["a", "b"]]]
    assert corpus.lines.tolist() == [1001]


# Attribute files


def test_attributes_with_escapes_and_weights():
    rows = (
        r"B a b:2 c\:d e\:f:-.5 g\\:1e2 h:i:3 k\ ".strip(),
        r"a\:b w\d x\\\:y x\\y\\ a a:2",
        "0 ",
        "0",
        "O  z ",
    )
    data = "\n".join(rows).replace(" ", "\t").encode()
    corpus = whole(data, "crfsuite")
    assert [list(column) for column in corpus.columns] == [["B", "a\\:b", "0", "0", "O"]]
    assert attributes(corpus) == [
        [("a", 1), ("b", 2), ("c:d", 1), ("e:f", -0.5), ("g\\", 100), ("h:i", 3), ("k\\", 1)],
        [("w\\d", 1), ("x\\:y", 1), ("x\\y\\", 1), ("a", 1), ("a", 2)],
        [],
        [],
        [("z", 1)],
    ]
    assert corpus.weights is None
    assert corpus.offsets.tolist() == [0, 5]


def test_sequence_weights():
    data = b"@weight:2.5\nA\tx\nB\tx\n\nA\ty\n\n\n@weight:0\t\r\nB\tz\r\n"
    expected = whole(data, "crfsuite")
    assert [list(column) for column in expected.columns] == [["A", "B", "A", "B"]]
    assert expected.weights.tolist() == [2.5, 1, 0]
    assert expected.lines.tolist() == [2, 3, 5, 9]
    for cut in range(1, len(data)):
        assert_same(whole([data[:cut], data[cut:]], "crfsuite"), expected)
        assert_same(whole([data[i : i + cut] for i in range(0, len(data), cut)], "crfsuite"), expected)


def test_a_label_may_look_like_a_declaration_of_another_name():
    corpus = whole(b"@weights\tx\n@x:2\ty\n", "crfsuite")
    assert [list(column) for column in corpus.columns] == [["@weights", "@x:2"]]


@pytest.mark.parametrize("weight", [b"", b"x", b"nan", b"inf", b"1e999", b"1_0", b" 1", "\u0663".encode(), b"1e"])
def test_weights_that_are_no_finite_numbers_are_refused(weight):
    message = error_of(b"A\tx:1\tw:7\n\nB\ty\tz:" + weight + b"\tw\n", "crfsuite")
    assert message.startswith("file:3: the weight of attribute 'z:")
    assert r"\:" in message
    message = error_of(b"A\tx:1\n\n@weight:" + weight + b"\nA\tx\n", "crfsuite")
    assert message.startswith("file:3: @weight")
    assert "finite number >= 0" in message


@pytest.mark.parametrize(
    "data, message",
    [
        (b"A\tx\n\tx\n", "file:2: no label before the first TAB"),
        (b"A\tx\nB\t:2\n", "file:2: attribute ':2' has no name"),
        (b"A\tx\nB\tb:b\t:2\n", "file:2: the weight of attribute 'b:b'"),
        (b"A x y\nB z\n", "file:1: spaces but no TAB"),
        (b"A\tx\n@weight:2\nB\tx\n", "file:2: @weight must come before the first line"),
        (b"@weight:2\n@weight:2\nB\tx\n", "file:2: @weight must come before the first line"),
        (b"@weight:2\tx\nB\tx\n", "file:1: @weight must be on a line of its own"),
        (b"A\tx\n\n@weight:2\n\nB\tx\n", "file:3: @weight with no sequence"),
        (b"A\tx\n\n@weight:2", "file:3: @weight with no sequence"),
        (b"@weight:-1\nB\tx\n", "file:1: @weight '-1' is not a finite number >= 0"),
        (b"@weight\nB\tx\n", "file:1: @weight '' is not a finite number"),
    ],
)
def test_attribute_files_that_cannot_be_meant_are_refused(data, message):
    assert error_of(data, "crfsuite").startswith(message)


# Corpora taken apart and put together


@pytest.mark.parametrize(
    "data, format",
    [
        (b"a b\n\nc d\ne f\n\ng h\n", "conll"),
        (b"@weight:2\nA\tx\ty:3\n\nB\nA\tx\n\n@weight:3\nB\tz\n", "crfsuite"),
    ],
)
def test_subsets_and_concatenation(data, format):
    corpus = whole(data, format)
    assert corpus.sequences == 3
    assert_same(concatenate(corpus.subset([s]) for s in range(3)), corpus)
    picked = corpus.subset([2, 0])
    assert sequences(picked) == [sequences(corpus)[2], sequences(corpus)[0]]
    assert picked.lines.tolist() == [corpus.lines[3], corpus.lines[0]]
    if format == "crfsuite":
        assert attributes(picked) == [attributes(corpus)[3], attributes(corpus)[0]]
        assert picked.weights.tolist() == [3, 2]
    none = corpus.subset([])
    assert (none.sequences, none.positions, none.width) == (0, 0, corpus.width)


# ----------------------------------------------------------------------------- numbers, layouts, parts


def random_numbers(rng):
    """Texts of numbers: short and long ones, those that lie between two doubles, and those at the ends of the range."""
    for _ in range(4000):
        kind = rng.randrange(5)
        if kind == 0:
            text = repr(struct.unpack("d", struct.pack("Q", rng.getrandbits(64)))[0])
        elif kind == 1:
            text = f"{rng.gauss(0, 1):.{rng.randrange(20)}f}"
        elif kind == 2:
            text = f"{rng.getrandbits(rng.randrange(1, 70))}e{rng.randrange(-345, 312)}"
        elif kind == 3:  # half way between two doubles
            text = str(2**53 + 1 + 2 * rng.getrandbits(40)) + rng.choice(["", ".0", "e0", "000"])
        else:
            text = repr(rng.gauss(0, 1))
        if "n" not in text:
            yield text


def number_of(text):
    """The number that a column of one value has, or None."""
    numbers = CodedColumn.of([text]).numbers(())
    return None if numbers is None else float(numbers[0])


# Numbers just above the middle of two doubles.
ABOVE_THE_MIDDLE = ["92782162054650888e-36", "44175308297659335e-26", "87038393735992241e-29", "80629622038399726e-26"]


def test_numbers_are_those_of_python():
    for text in [
        *random_numbers(random.Random(0)),
        *ABOVE_THE_MIDDLE,
        "-0",
        "1.",
        "+.5",
        "1E5",
        "1e-400",
        "0e999",
        "4.9e-324",
        "0" * 400,
    ]:
        found, expected = number_of(text), float(text)
        if math.isinf(expected):
            assert found is None, text
        else:
            assert found is not None and struct.pack("d", found) == struct.pack("d", expected), text


@pytest.mark.parametrize(
    "text", ["", "-", ".", "e5", "1e", "1e+", "1.2.3", "--1", "1_0", " 1", "nan", "inf", "٣", "1e999"]
)
def test_what_is_no_number(text):
    assert number_of(text) is None


def read_in_parts(tmp_path, monkeypatch, data, sizes, layout=PLAIN, suffix="conll"):
    path = tmp_path / f"data.{suffix}"
    path.write_bytes(data)
    for size in sizes:
        monkeypatch.setattr(lines_module, "READ_SIZE", size)
        for threads in (1, 3):
            with Workers(threads) as workers:
                yield read_corpus(path, layout=layout, workers=workers)


def test_columns_do_not_depend_on_where_blocks_end_or_on_threads(tmp_path, monkeypatch):
    """A column that is numbers in some blocks and words in others is the same in all ways to read it."""
    rng = random.Random(1)
    rows = [
        f"{rng.choice(['a', 'bb', 'ccc'])}\t{rng.gauss(0, 1):.3f}\t{t if t < 150 else 'x'}\t"
        f"{rng.choice(['NA', '1.5'])}\t{t % 2}\n" + "\n" * (t % 5 == 4)
        for t in range(200)
    ]
    data = "".join(rows).encode()
    expected = whole(data)
    for corpus in read_in_parts(tmp_path, monkeypatch, data, (60, 300, 1 << 20)):
        assert_same(corpus, expected)
        for column in range(5):
            assert corpus.columns[column].values == expected.columns[column].values
            np.testing.assert_array_equal(corpus.columns[column].codes, expected.columns[column].codes)
            numbers, same = (one.columns[column].numbers(MISSING) for one in (corpus, expected))
            assert (numbers is None) == (same is None) == (column in (0, 2))
            if numbers is not None:
                np.testing.assert_array_equal(numbers, same)
        assert corpus.columns[3].numbers(()) is None  # with other marks than those that it was read with
        assert_same(pickle.loads(pickle.dumps(corpus)), expected)


def test_attributes_do_not_depend_on_where_blocks_end(tmp_path, monkeypatch):
    data = "".join(f"L{t % 3}\tw={t % 7}\tx\\:{t}:{t / 8}\ty\n" + "\n" * (t % 4 == 3) for t in range(100)).encode()
    expected = whole(data, "crfsuite")
    for corpus in read_in_parts(tmp_path, monkeypatch, data, (50, 400, 1 << 20), suffix="crfsuite"):
        assert_same(corpus, expected)
        assert corpus.attributes.names.values == list(dict.fromkeys(expected.attributes.names))


def test_a_line_of_very_many_columns(tmp_path):
    row = " ".join(str(number % 1000) for number in range(300_000))
    (tmp_path / "wide.conll").write_text(f"{row} A\n{row} B\n")
    corpus = read_corpus(tmp_path / "wide.conll")
    assert corpus.width == 300_001 and list(corpus.columns[-1]) == ["A", "B"]
    assert corpus.columns[1234].numbers(MISSING).tolist() == [234, 234]


CSV = (
    'word,note,f0,label\r\n"a, b",,1.5,X\r\nplain,"say ""hi""",2,Y\r\n\r\n"two  lines",x"y,NA,"X"\r\n'
    'ab"c"d,"q"tail, 3,Y\r\n"",",",4,X'
)


@pytest.mark.parametrize("newline", ["\r\n", "\n"])
def test_csv_is_read_as_python_reads_it(tmp_path, monkeypatch, newline):
    text = CSV.replace("\r\n", newline)
    names, *rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    layout = Layout(separator=",", header=True)
    for corpus in read_in_parts(tmp_path, monkeypatch, text.encode(), (7, 40, 1 << 20), layout):
        assert list(corpus.header) == names
        assert [list(row) for row in zip(*corpus.columns, strict=True)] == rows
        assert corpus.offsets.tolist() == [0, 2, 5] and corpus.lines.tolist() == [2, 3, 5, 6, 7]


def test_quotes_are_words_where_tabs_separate():
    assert sequences(whole(b'"\tB\n"a\tI\n')) == [[['"', "B"], ['"a', "I"]]]


@pytest.mark.parametrize(
    "data, layout, message",
    [
        (b'a,X\n"b,Y\nc,X\n', Layout(","), "file:2: a quote that is not closed"),
        (b'a,X\n"b\nc",Y\n', Layout(","), "file:2: a quote that is not closed in its line"),
        (b'a,X\n\n"' + b"b" * 140_000 + b"\n", Layout(","), "file:3: a quote"),
        (b"a,b,X\nc,d\n", Layout(","), "file:2: 2 columns, expected 3 (comma-separated; is a value missing?)"),
        (b"a,,c1\n", Layout(",", header=True), "file:1: the header line has 'c1' twice"),
        (b"a,a,X\n", Layout(",", header=True), "file:1: the header line has 'a' twice"),
        (b"a b,1 X\nc,2 Y\n", PLAIN, "file:2: 2 columns, expected 3 (is ',' the separator, as in CSV?)"),
        (b'ab,1,X\n"c, d",2,Y\n', PLAIN, "file:2: 2 columns, expected 1 (is ',' the separator, as in CSV?)"),
        (b"a b X\n# some words in a line\n", PLAIN, "file:2: 6 columns, expected 3 (the line begins with '#': is it a"),
        (b"-DOCSTART- O\n\na b X\n", PLAIN, "file:3: 3 columns, expected 2 (the first line begins with '-DOCSTART-'"),
    ],
)
def test_errors_of_layouts_name_what_is_the_matter(data, layout, message):
    with pytest.raises(DataError) as caught:
        list(FORMATS["conll"].parse(blocks(Pieces([data]), "file", layout=layout), "file", layout=layout))
    assert str(caught.value).startswith(message)


def test_settings_of_errors_are_those_that_help():
    with pytest.raises(DataError) as caught:
        parse(b"a b X\n# some words in a line\n")
    assert caught.value.settings == ("comment",)
    with pytest.raises(ConfigError, match="'header' is for files of columns") as refused:
        list(FORMATS["conllu"].parse([], "file", layout=Layout(header=True)))
    assert refused.value.settings == ("header",)


def test_comments_are_passed_over_and_end_nothing(tmp_path, monkeypatch):
    data = b"# one\na X\n# two\nb Y\n-DOCSTART- -X-\n\n# three\n\n# four\n# five\nc X\n"
    for corpus in read_in_parts(tmp_path, monkeypatch, data, (9, 1 << 20), Layout(comment=("#", "-DOCSTART-"))):
        assert sequences(corpus) == [[["a", "X"], ["b", "Y"]], [["c", "X"]]]
        assert corpus.lines.tolist() == [2, 4, 11]


def test_progress_counts_the_bytes_of_a_file(tmp_path, monkeypatch):
    path, seen = tmp_path / "data.conll", []
    path.write_bytes(b"a X\n\n" * 100)
    monkeypatch.setattr(lines_module, "READ_SIZE", 70)
    read_corpus(path, progress=seen.append)
    assert sum(seen) == 500 and len(seen) > 3


@pytest.mark.parametrize(("first", "last"), [(0, 0), (0, 1), (3, 9), (490, 500)])
def test_a_span_of_a_corpus_is_the_same_as_a_subset(sample_data, first, last):
    """Numbers, words and numbers that are taken for words; in one part and in several."""
    whole = read_corpus(sample_data / "pitch_accent.conll")
    span, subset = whole.span(first, last), whole.subset(range(first, last))
    assert [list(column) for column in span.columns] == [list(column) for column in subset.columns]
    assert [len(column) for column in span.columns] == [subset.positions] * whole.width
    for name in ("offsets", "lines"):
        assert getattr(span, name).tolist() == getattr(subset, name).tolist()
    for place in (2, 3, 4):
        numbers = [float(value) for value in subset.columns[place]]
        assert span.columns[place].numbers(("NA",)).tolist() == numbers
    assert first == last or span.columns[0].numbers(("NA",)) is None
