"""Sequences that a column tells apart: wherever blocks end, in quotes, and with values that are written once."""

from __future__ import annotations

import random

import numpy as np
import pytest

from kcrf_core.corpora import Layout, Spool, arriving_lines, lines as lines_module, read_corpus, stream_corpus
from kcrf_core.errors import ConfigError
from kcrf_core.system import Workers

CSV = Layout(separator=",", header=True, sequence="doc")


def beginnings(rows):
    """The rows that sequences begin with, by the definition; None is a blank line."""
    found, above, count, starts = [], None, 0, True
    for row in rows:
        if row is None:
            above, starts = None, True
            continue
        if starts or row[1] not in ("", above):
            found.append(count)
        above, starts, count = row[1] or above, False, count + 1
    return [*found, count]


def table(seed, quotes, ending="\n"):
    rng = random.Random(seed)
    rows, doc = [], "d0"
    for number in range(rng.randrange(1, 70)):
        if rng.random() < 0.1:
            rows.append(None)
        if rng.random() < 0.3:
            doc = rng.choice(["d0", "d1", 'a "b" c', "e,f"] if quotes else ["d0", "d1", "d2"])
        rows.append((f"w{number}", rng.choice([doc, doc, ""]), rng.choice("AB")))
    lines = ["word,doc,label"]
    for row in rows:
        if row is None:
            lines.append(rng.choice(["", " ", ",,", "\t"]))
        else:
            written = [Layout(separator=",").written(value, quotes and rng.random() < 0.3) for value in row]
            lines.append(",".join(written))
    return rows, ending.join(lines) + rng.choice(["", ending])


@pytest.mark.parametrize("quotes", [False, True])
def test_sequences_do_not_depend_on_where_blocks_end(tmp_path, monkeypatch, quotes):
    path = tmp_path / "table.csv"
    for seed in range(6):
        rows, text = table(seed, quotes, "\n" if quotes or seed % 2 else "\r\n")
        path.write_bytes(text.encode())
        for size in (11, 1 << 20):
            monkeypatch.setattr(lines_module, "READ_SIZE", size)
            corpus = read_corpus(path, layout=CSV)
            assert corpus.offsets.tolist() == beginnings(rows), (seed, size)
            assert list(corpus.columns[0]) == [row[0] for row in rows if row is not None]
            lengths, ended = [], True
            for arrival in arriving_lines(path, "conll", None, CSV):
                own = np.diff(arrival.parsed.corpus.offsets).tolist()
                if not own:
                    ended |= arrival.ends_before
                    continue
                if not ended and not arrival.ends_before:
                    lengths[-1] += own.pop(0)
                lengths, ended = lengths + own, arrival.ends_after
            assert np.cumsum([0, *lengths]).tolist() == beginnings(rows), (seed, size)


def test_blocks_end_where_sequences_do(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    path.write_text("word,doc,label\n" + "".join(f"w,{number // 7},A\n" for number in range(7000)))
    monkeypatch.setattr(lines_module, "READ_SIZE", 1000)
    parts = list(stream_corpus(path, layout=CSV))
    assert len(parts) > 50 and sum(part.corpus.positions for part in parts) == 7000
    assert all(set(np.diff(part.corpus.offsets)) == {7} for part in parts)
    assert b"".join(part.block.data for part in parts) == path.read_bytes()
    with Workers(2) as workers:
        assert read_corpus(path, workers=workers, layout=CSV).sequences == 1000


def test_values_that_return_are_counted(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("word,doc,label\na,1,A\nb,2,A\nc,1,A\n\nd,1,A\ne,,A\nf,2,B\n")
    corpus = read_corpus(path, layout=CSV)
    assert corpus.offsets.tolist() == [0, 1, 2, 3, 5, 6]
    assert len(corpus.remarks) == 1 and corpus.remarks[0].startswith("warning: 2 sequences begin with a value of 'doc'")
    with Spool(tmp_path, layout=CSV) as spool:
        spool.read([path])
        assert tuple(spool.remarks) == corpus.remarks and spool.offsets.tolist() == corpus.offsets.tolist()
    path.write_text("word,doc,label\na,1,A\n\nb,1,A\nc,2,A\n")
    assert not read_corpus(path, layout=CSV).remarks


def test_columns_are_named_by_header_settings_or_number(tmp_path):
    path = tmp_path / "table.tsv"
    path.write_text("a\t1\tA\nb\t1\tA\nc\t2\tA\n")
    assert read_corpus(path, layout=Layout(sequence="c1")).sequences == 2
    assert read_corpus(path, columns=["word", "doc", "label"], layout=Layout(sequence="doc")).sequences == 2
    with pytest.raises(ConfigError, match="'sequence' names no column: there is no 'dok'"):
        read_corpus(path, layout=Layout(sequence="dok"))
    with pytest.raises(ConfigError, match="'sequence' is for files of columns"):
        read_corpus(path, "conllu", layout=Layout(sequence="misc"))


@pytest.mark.parametrize("separator, blank", [(None, "\t"), (None, " \t "), (",", ",,"), (";", " ; ;")])
def test_a_line_of_separators_ends_a_sequence(tmp_path, separator, blank):
    path = tmp_path / "table.txt"
    between = separator or "\t"
    rows = [between.join(row) for row in (("a", "x", "A"), ("b", "y", "B"))]
    path.write_text(f"{blank}\n{rows[0]}\n{blank}\n{rows[1]}\n{blank}")
    corpus = read_corpus(path, layout=Layout(separator=separator))
    assert corpus.offsets.tolist() == [0, 1, 2] and corpus.lines.tolist() == [2, 4]
    (tmp_path / "attributes.crfsuite").write_text("A\tx\n\t\nB\ty\n")
    assert read_corpus(tmp_path / "attributes.crfsuite").sequences == 2
