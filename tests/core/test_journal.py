"""A journal keeps what was finished, whatever happened to its last line."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from kcrf_core.corpora import AttributeRows, Corpus
from kcrf_core.corpora.word_vectors import WordVectors
from kcrf_core.errors import FileFormatError
from kcrf_core.selection import Journal
from kcrf_core.selection.journal import corpus_digest, digest_of


@pytest.fixture
def path(tmp_path):
    return tmp_path / "r.json.journal"


def filled(path, count):
    journal = Journal(str(path))
    for number in range(count):
        journal.add(f"key{number}", {"fold": number}, {"accuracy": 1 / (number + 3)})


def kept(path):
    """What a run that comes later finds."""
    return Journal(str(path))


def test_results_come_back_as_they_went(path):
    assert not path.exists() and not Journal(str(path)).begun and not path.exists()
    filled(path, 3)
    again = Journal(str(path))
    assert len(again) == 3 and again.damaged == 0
    assert again.get("key2") == {"accuracy": 1 / 5} and again.get("other") is None
    again.add("key3", {}, {"accuracy": 0.0})
    again = Journal(str(path))
    assert len(again) == 4
    again.remove()
    assert not path.exists()


def test_a_line_cut_anywhere_is_the_only_loss(path):
    filled(path, 2)
    whole = path.read_bytes()
    first = whole.index(b"\n", whole.index(b"\n") + 1) + 1  # where the last line begins
    for end in range(first + 1, len(whole) - 1):
        path.write_bytes(whole[:end])
        assert len(kept(path)) == 1 and kept(path).damaged == 1
    journal = Journal(str(path))
    journal.add("key1", {}, {"accuracy": 0.5})
    journal.add("key2", {}, {"accuracy": 0.25})
    again = kept(path)
    assert len(again) == 3 and again.get("key1") == {"accuracy": 0.5}


def test_an_altered_result_does_not_count(path):
    filled(path, 2)
    path.write_bytes(path.read_bytes().replace(b"0.3333", b"0.9333"))
    journal = kept(path)
    assert journal.get("key0") is None and journal.get("key1") is not None and journal.damaged == 1


@pytest.mark.parametrize("text", ["", "{}\n", "the D X\n", '{"kind": "kcrf crossval journal", "format": 99}\n', "[1]"])
def test_files_that_are_no_journals_are_left_alone(path, text):
    path.write_text(text)
    with pytest.raises(FileFormatError, match="not a journal"):
        Journal(str(path))
    assert path.read_text() == text


def test_several_runs_add_to_one_journal(path):
    first, second = Journal(str(path)), Journal(str(path))  # neither has a result yet
    first.add("key0", {}, {"accuracy": 0.5})
    second.add("key1", {}, {"accuracy": 0.25})
    first.add("key2", {}, {"accuracy": 0.75})
    assert len(kept(path)) == 3 and kept(path).damaged == 0
    first.remove()
    second.add("key3", {}, {"accuracy": 0.1})  # with a header of its own
    assert len(kept(path)) == 1 and kept(path).damaged == 0
    second.remove()
    second.remove()
    assert not path.exists()


def test_keys_that_are_no_names_do_not_count(path):
    filled(path, 1)
    entry = json.dumps({"key": ["key1"], "result": {}, "check": digest_of(["key1"], {})})
    path.write_text(path.read_text() + entry + "\n")
    assert len(kept(path)) == 1 and kept(path).damaged == 1


def test_links_keep_pointing_where_they_pointed(path):
    path.symlink_to("elsewhere")  # nothing is there yet
    filled(path, 2)
    assert path.is_symlink() and len(kept(path.parent / "elsewhere")) == 2
    Journal(str(path)).remove()
    assert path.is_symlink() and not path.exists()


def test_a_full_disk_leaves_no_journal_without_a_header(path, monkeypatch):
    def full(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        filled(path, 1)
    assert not path.exists()


def test_nothing_of_this_machine_is_in_it(path):
    filled(path, 1)
    header, entry = map(json.loads, path.read_text().splitlines())
    assert header.keys() == {"kind", "format", "version"}
    assert entry.keys() == {"key", "fold", "result", "check"}


def test_digests_tell_corpora_apart():
    def digest(columns=(["a", "b"], ["X", "Y"]), offsets=(0, 2), weights=None, **others):
        weights = None if weights is None else np.array(weights)
        return corpus_digest(Corpus("data", tuple(columns), np.array(offsets), np.array([1, 2]), weights, **others))

    def attributes(names, values=(1.0, 1.0)):
        return digest((["X"],), (0, 1), attributes=AttributeRows(np.array([0, len(names)]), names, np.array(values)))

    others = [digest((["a", "c"], ["X", "Y"])), digest(offsets=(0, 1, 2)), digest(weights=[2.0]),
              digest((["a", "b"], ["X", "X"])), digest((["X", "Y"], ["a", "b"])),
              # Quoted cells may hold line ends, and whatever else stands between cells.
              digest((["a\nb", "c"], ["X", "Y"])), digest((["a", "b\nc"], ["X", "Y"])),
              digest((['a", "b', "c"], ["X", "Y"])), digest((["a", 'b", "c'], ["X", "Y"])),
              digest((["a", "b"], ["[0, 2]", ""], ["X", "Y"])), digest((["ab", ""], ["X", "Y"])),
              digest((["\udc80", "b"], ["X", "Y"])), digest((["\ud800", "b"], ["X", "Y"])),
              # A configuration may name columns.
              digest(header=("word", "label")), digest(header=("label", "word")), digest(names=("form", "upos")),
              digest(vectors={"e": np.ones((2, 1))}), digest(vectors={"e": np.ones((2, 1)), "f": np.ones((2, 0))}),
              attributes(["a\nb"], [1.0]), attributes(["a", "b"]), attributes(["a", "b"], [1.0, 2.0])]  # fmt: skip
    assert len({digest(), *others}) == 22
    moved = Corpus("elsewhere", (["a", "b"], ["X", "Y"]), np.array([0, 2]), np.array([7, 8]))
    assert corpus_digest(moved) == digest()


def test_digests_of_word_vectors_tell_words_with_line_ends_apart():
    def digest(words, width):
        return WordVectors.of("t", words, np.zeros((len(words), width), np.int8), np.zeros(len(words), "f4")).digest

    assert digest(["a", "b"], 2) != digest(["a\nb"], 8)  # twelve bytes of numbers each
