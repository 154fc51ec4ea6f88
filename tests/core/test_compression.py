"""What must hold of compressed text: it reads as the text does, and damage is told, not passed over."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import tracemalloc
import zlib

import pytest

from kcrf_core.corpora import guess_format, read_corpus, stream_corpus
from kcrf_core.errors import DataError
from kcrf_core.files import COMPRESSIONS, packing, unpacked

COMPRESS = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}
DECOMPRESS = {"gzip": gzip.decompress, "bzip2": bz2.decompress, "xz": lzma.decompress}
KINDS = list(COMPRESS)


def texts():
    rng = random.Random(0)
    return [b"", b"a", b"a b\n\n" * 70_000, rng.randbytes(300_000), bytes(1_000_000)]


def read(data, kind, size=-1):
    with unpacked(io.BytesIO(data), kind, "data") as stream:
        return b"".join(iter(lambda: stream.read1(size), b""))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1_000, 1 << 20])
def test_what_was_compressed_comes_out(kind, size):
    for text in texts():
        assert read(COMPRESS[kind](text), kind, size) == text


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_can_be_read_by_others_and_is_the_same_each_time(kind):
    for text in texts():
        written = []
        for _ in range(2):
            out = io.BytesIO()
            with packing(out, kind) as stream:
                stream.write(text)
            written.append(out.getvalue())
        assert written[0] == written[1] and DECOMPRESS[kind](written[0]) == text


@pytest.mark.parametrize("kind", KINDS)
def test_several_streams_are_one_text(kind):
    parts = [COMPRESS[kind](text) for text in texts()]
    assert read(b"".join(parts), kind, 5_000) == b"".join(texts())
    assert read(parts[1] + bytes(512), kind) == b"a"  # padding


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", [b"a b\n" * 10, random.Random(1).randbytes(200_000)], ids=["short", "long"])
def test_every_truncation_is_an_error(kind, text):
    data = COMPRESS[kind](text)
    for length in {1, 2, 5, len(data) // 2, len(data) - 9, len(data) - 5, len(data) - 1}:
        with pytest.raises(DataError, match=f"data: damaged {kind} data: "):
            read(data[:length], kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("garbage", [b"x", b"garbage that is long enough to be looked at", b"\0\0\0x"])
def test_bytes_behind_the_end_are_an_error(kind, garbage):
    with pytest.raises(DataError, match=f"data: damaged {kind} data: "):
        read(COMPRESS[kind](b"a b\n") + garbage, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_one_wrong_bit_never_gives_another_text(kind):
    text, rng = b"ein Satz und noch einer\n" * 200, random.Random(2)
    data = COMPRESS[kind](text)
    for _ in range(200):
        damaged = bytearray(data)
        damaged[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        try:
            assert read(bytes(damaged), kind) == text  # a bit of a header that says nothing
        except DataError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize(
    "suffix, kind",
    [pytest.param(*pair, marks=[] if pair[0] == ".gz" else [pytest.mark.slow]) for pair in COMPRESSIONS.items()],
)
def test_small_files_of_much_text_take_no_memory(tmp_path, suffix, kind):
    path = tmp_path / f"bomb.conll{suffix}"
    # 60 million bytes; bzip2 takes long to pack anything but runs, so that short sequences only come first there.
    text = b"a b\n\n" * 12_000_000 if kind != "bzip2" else b"a b\n\n" * 400_000 + (b"a b" + b"\n" * 97) * 580_000
    path.write_bytes(COMPRESS[kind](text))
    assert path.stat().st_size < 300_000
    tracemalloc.start()
    try:
        count = sum(len(stream.read1(1 << 20)) for stream in [unpacked(path.open("rb"), kind, "x")] for _ in range(30))
        next(stream_corpus(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count > 10_000_000
    assert peak < 60_000_000  # what a block of a mebibyte takes to parse


def test_xz_that_asks_for_two_gigabytes():
    """An encoder for it would take twenty: the size stands in one byte of the header of a block."""
    data = bytearray(lzma.compress(b"a b\n"))
    header = data[12 : 12 + 4 * (data[12] + 1)]
    header[header.index(b"\x21\x01") + 2] = 38
    header[-4:] = zlib.crc32(header[:-4]).to_bytes(4, "little")
    data[12 : 12 + len(header)] = header
    with pytest.raises(DataError, match="data: needs more than 256 MiB"):
        read(bytes(data), "xz")


@pytest.mark.parametrize("suffix, kind", COMPRESSIONS.items())
def test_names_say_what_a_file_is(suffix, kind):
    assert COMPRESSIONS[suffix] == kind
    assert guess_format(f"a.crfsuite{suffix}") == "crfsuite"
    assert guess_format(f"a.crfsuite{suffix}.conll") == guess_format("a.conll") != "crfsuite"


@pytest.mark.parametrize("kind", KINDS)
def test_compressed_data_under_another_name(tmp_path, kind):
    path = tmp_path / "x.conll"
    path.write_bytes(COMPRESS[kind](b"a b\n"))
    with pytest.raises(DataError, match=f"looks like {kind} data"):
        read_corpus(path)


@pytest.mark.parametrize("suffix", COMPRESSIONS)
def test_an_empty_file_is_no_data(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    path.write_bytes(b"")
    with pytest.raises(DataError, match="no data: the file is empty"):
        read_corpus(path)
