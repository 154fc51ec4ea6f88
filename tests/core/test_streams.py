"""Items that have to be waited for: results come in order, and all of them before more is asked for."""

from __future__ import annotations

import os

import numpy as np
import pytest

from kcrf_core.corpora import lines, read_corpus, stream_parsers
from kcrf_core.errors import DataError
from kcrf_core.system import PAUSE, Workers

CONLL = "".join(f"word{number % 7}\tx{number}\tL{number % 3}\n" + "\n" * (number % 4 == 3) for number in range(200))


@pytest.mark.parametrize("threads", [1, 3])
def test_a_pause_lets_out_all_that_is_there(threads):
    answered = []

    def items():
        yield from (1, 2, 3)
        yield PAUSE
        assert answered == [1, 4, 9, PAUSE]
        yield 4

    with Workers(threads) as workers:
        for result in workers.stream(lambda x: x * x, items()):
            answered.append(result)
    assert answered == [1, 4, 9, PAUSE, 16]


@pytest.mark.parametrize("threads", [1, 3])
def test_what_was_asked_before_a_failure_is_answered(threads):
    def items():
        yield from (1, 2)
        raise DataError("no more")

    answered = []
    with Workers(threads) as workers, pytest.raises(DataError, match="no more"):
        for result in workers.stream(lambda x: -x, workers.stream(lambda x: x, items())):
            answered.append(result)
    assert answered == [-1, -2]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_parse_the_corpus_that_one_does(tmp_path, monkeypatch, threads):
    path = tmp_path / "data.conll"
    path.write_text("\n\n" + CONLL)
    whole = read_corpus(path)
    monkeypatch.setattr(lines, "READ_SIZE", 50)
    with Workers(threads) as workers:
        found = read_corpus(path, workers=workers)
    assert [list(column) for column in found.columns] == [list(column) for column in whole.columns]
    np.testing.assert_array_equal(found.offsets, whole.offsets)
    np.testing.assert_array_equal(found.lines, whole.lines)
    assert found.file_format == whole.file_format == "conll"


def test_an_error_of_a_later_block_names_its_line(tmp_path, monkeypatch):
    path = tmp_path / "data.conll"
    path.write_text(CONLL + "\nonly\ttwo\n")
    monkeypatch.setattr(lines, "READ_SIZE", 50)
    with Workers(3) as workers, pytest.raises(DataError, match=f"{1 + CONLL.count(chr(10)) + 1}: 2 columns"):
        read_corpus(path, workers=workers)


def test_blocks_of_a_pipe_are_parsed_before_more_is_waited_for(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # so that opening does not wait for each other
    with open(path, "wb", buffering=0) as writer:
        writer.write(b"a\tA\n\n")
        parsers = stream_parsers(path, "conll")
        assert next(parsers)().corpus.sequences == 1
        assert next(parsers) is PAUSE
        writer.write(b"b\tB\n\nc\tC\n\n")
        assert next(parsers)().corpus.sequences == 2
        assert next(parsers) is PAUSE
    assert list(parsers) == []
    os.close(reader)
