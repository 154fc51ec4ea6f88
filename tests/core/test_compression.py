"""What must hold of compressed text: it reads as the text does, and damage is told, not passed over."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import tracemalloc

import pytest

from kcrf_core.corpora import guess_format, read_corpus, stream_corpus
from kcrf_core.errors import DataError
from kcrf_core.files import CompressedText, compressing

COMPRESS = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}


def texts():
    rng = random.Random(0)
    return [b"", b"a", b"a b\n\n" * 70_000, rng.randbytes(300_000), bytes(1_000_000)]


def read(data, size=-1):
    with CompressedText(io.BytesIO(data), "data") as stream:
        return b"".join(iter(lambda: stream.read1(size), b""))


@pytest.mark.parametrize("size", [1_000, 1 << 20])
def test_what_was_compressed_comes_out(size):
    for text in texts():
        assert read(gzip.compress(text), size) == text


def test_what_is_written_can_be_read_by_others_and_is_the_same_each_time():
    for text in texts():
        written = []
        for _ in range(2):
            out = io.BytesIO()
            with compressing(out) as stream:
                stream.write(text)
            written.append(out.getvalue())
        assert written[0] == written[1] and gzip.decompress(written[0]) == text


def test_several_streams_are_one_text():
    parts = [gzip.compress(text) for text in texts()]
    assert read(b"".join(parts), 5_000) == b"".join(texts())
    assert read(parts[1] + bytes(512)) == b"a"  # padding


@pytest.mark.parametrize("text", [b"a b\n" * 10, random.Random(1).randbytes(200_000)], ids=["short", "long"])
def test_every_truncation_is_an_error(text):
    data = gzip.compress(text)
    for length in {1, 2, 5, len(data) // 2, len(data) - 9, len(data) - 5, len(data) - 1}:
        with pytest.raises(DataError, match="data: damaged gzip data: "):
            read(data[:length])


@pytest.mark.parametrize("garbage", [b"x", b"garbage that is long enough to be looked at", b"\0\0\0x"])
def test_bytes_behind_the_end_are_an_error(garbage):
    with pytest.raises(DataError, match="data: damaged gzip data: "):
        read(gzip.compress(b"a b\n") + garbage)


def test_one_wrong_bit_never_gives_another_text():
    text, rng = b"ein Satz und noch einer\n" * 200, random.Random(2)
    data = gzip.compress(text)
    for _ in range(200):
        damaged = bytearray(data)
        damaged[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        try:
            assert read(bytes(damaged)) == text  # a bit of a header that says nothing
        except DataError as error:
            assert "\n" not in str(error)


def test_small_files_of_much_text_take_no_memory(tmp_path):
    path = tmp_path / "bomb.conll.gz"
    path.write_bytes(gzip.compress(b"a b\n\n" * 12_000_000))  # 60 million bytes
    assert path.stat().st_size < 300_000
    tracemalloc.start()
    try:
        with path.open("rb") as packed:
            stream = CompressedText(packed, "x")
            count = sum(len(stream.read1(1 << 20)) for _ in range(30))
        next(stream_corpus(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count > 10_000_000
    assert peak < 60_000_000  # what a block of a mebibyte takes to parse


def test_names_say_what_a_file_is():
    assert guess_format("a.crfsuite.gz") == "crfsuite"
    assert guess_format("a.crfsuite.gz.conll") == guess_format("a.conll") != "crfsuite"


@pytest.mark.parametrize("kind", COMPRESS)
def test_compressed_data_under_another_name(tmp_path, kind):
    path = tmp_path / "x.conll"
    path.write_bytes(COMPRESS[kind](b"a b\n"))
    with pytest.raises(DataError, match=f"looks like {kind} data"):
        read_corpus(path)


def test_an_empty_file_is_no_data(tmp_path):
    path = tmp_path / "x.gz"
    path.write_bytes(b"")
    with pytest.raises(DataError, match="no data: the file is empty"):
        read_corpus(path)
