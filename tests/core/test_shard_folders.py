"""What must hold of shards: the encoding of all data at once, whole folders or none, and damage that is named.

Parts and blocks are made tiny here, so that every border is met.
"""

from __future__ import annotations

import gzip
import os

import numpy as np
import pytest

from kcrf_core.config import load_template, parse_config
from kcrf_core.corpora import Layout, Spool, lines, read_corpus, spool, with_vectors
from kcrf_core.encoding import fit_encoding, fit_to, join_datasets
from kcrf_core.errors import DataError, FileFormatError
from kcrf_core.files import read_container, write_container
from kcrf_core.model import load_folder, new_folder, save_shards
from kcrf_core.system import Workers

TEMPLATE = "U0:%x[-1,0]\nU1:%x[0,0]/%x[1,1]\nB\n"
TUPLES = {
    "features": [
        {"column": "c0", "window": [-1, 0]},
        {"column": "c0", "transform": "suffix", "length": 1},
        {"conjunction": ["c0", "c1[1]", "c1[-1]"], "window": [0, 1]},
        {"column": "c2", "window": [0, 1]},
        {"column": "c2", "name": "code", "type": "categorical"},
        {"column": "c0", "transform": "frequency"},
        {"column": "c0", "transform": "position"},
    ]
}


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(spool, "PART_POSITIONS", 7)
    monkeypatch.setattr(spool, "COPIED_AT_ONCE", 5)
    monkeypatch.setattr(lines, "READ_SIZE", 90)


def text_of(sequences=40, seed=0, late_word=False, missing=False):
    random = np.random.default_rng(seed)
    rows = []
    for s in range(sequences):
        for _ in range(random.integers(1, 6)):
            word = "".join(random.choice(list("abcdé"), random.integers(1, 4)))
            number = f"{random.normal():.3f}"
            if late_word and s == sequences - 2:
                number = "none"
            if missing and random.random() < 0.2:
                number = "?"
            rows.append(f"{word}\t{random.choice(['N', 'V'])}\t{number}\t{random.choice(['A', 'B', 'C'])}")
        rows.append("")
    return "\n".join(rows) + "\n"


def spooled_dataset(config, paths, folder, shards, vectors=(), format=None):
    with Spool(folder, vectors, config.layout, shards) as own, Workers(2) as workers:
        own.read(paths, format, config.columns, workers)
        encoding = fit_to(config, own)
        parts = list(encoding.encoded_shards(own, workers))
    return encoding, parts


def assert_same(found, expected, encoding, other):
    for name in ("offsets", "labels", "codes", "lines"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_allclose(found.real, expected.real, rtol=1e-10, atol=1e-12)
    if expected.bag is not None:
        assert (found.bag != expected.bag).nnz == 0
    assert encoding.labels == other.labels
    (header, arrays), (headers, others) = encoding.pack(), other.pack()
    assert header == headers and arrays.keys() == others.keys()
    for name, array in arrays.items():
        np.testing.assert_allclose(array, others[name], rtol=1e-10, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("shards", [1, 5])
@pytest.mark.parametrize(
    ("config", "text"),
    [
        pytest.param({}, text_of(), id="plain"),
        pytest.param({"min_count": 3}, text_of(), id="rare"),
        pytest.param(TUPLES, text_of(), id="tuples"),
        pytest.param({**TUPLES, "min_count": 2}, text_of(60), id="rare tuples"),
        pytest.param({"missing_indicator": True}, text_of(missing=True), id="missing"),
        pytest.param({"features": [{"column": "c2", "type": "categorical"}]}, text_of(late_word=True), id="late word"),
        pytest.param(load_template(TEMPLATE, "template"), text_of(), id="template"),
    ],
)
def test_parts_are_encoded_as_the_whole(tmp_path, config, text, shards):
    path = tmp_path / "data.conll"
    path.write_text(text)
    config = parse_config(config)
    expected_encoding, expected = fit_encoding(config, read_corpus(path))
    encoding, parts = spooled_dataset(config, [path], tmp_path, shards)
    assert len(parts) == shards
    assert_same(join_datasets(parts), expected, encoding, expected_encoding)


def test_attributes_with_weights_and_sequence_weights(tmp_path):
    path = tmp_path / "data.crfsuite"
    path.write_text("X\ta\tb\nY\ta\tc\n\n@weight:2.5\nX\tb\n\n" * 9 + "Y\tb:2\tb\td:-0.5\n")
    config = parse_config({})
    expected_encoding, expected = fit_encoding(config, read_corpus(path))
    encoding, parts = spooled_dataset(config, [path], tmp_path, 4)
    found = join_datasets(parts)
    assert_same(found, expected, encoding, expected_encoding)
    np.testing.assert_array_equal(found.weights, expected.weights)


def test_vectors_are_copied_along(tmp_path):
    path = tmp_path / "data.conll"
    path.write_text(text_of())
    corpus = read_corpus(path)
    rows = np.random.default_rng(0).normal(size=(corpus.positions, 3)).astype(np.float32)
    np.save(tmp_path / "rows.npy", rows)
    config = parse_config({"features": [{"column": "c0"}, {"vectors": "emb", "window": [-1, 0]}]})
    expected_encoding, expected = fit_encoding(config, with_vectors(corpus, {"emb": rows}))
    encoding, parts = spooled_dataset(config, [path], tmp_path, 3, [("emb", tmp_path / "rows.npy")])
    assert_same(join_datasets(parts), expected, encoding, expected_encoding)
    np.save(tmp_path / "short.npy", rows[:-1])
    with pytest.raises(DataError, match="a row is needed for each"):
        spooled_dataset(config, [path], tmp_path, 3, [("emb", tmp_path / "short.npy")])


def test_several_files_compressed_or_not_are_one(tmp_path):
    first, second = text_of(20, 1), text_of(20, 2)
    (tmp_path / "all.conll").write_text(first + second)
    (tmp_path / "b.conll").write_text(second)
    with gzip.open(tmp_path / "a.conll.gz", "wb") as stream:
        stream.write(first.encode())
    config = parse_config(TUPLES)
    expected_encoding, expected = spooled_dataset(config, [tmp_path / "all.conll"], tmp_path, 3)
    encoding, parts = spooled_dataset(config, [tmp_path / "a.conll.gz", tmp_path / "b.conll"], tmp_path, 3)
    found, whole = join_datasets(parts), join_datasets(expected)
    assert encoding.labels == expected_encoding.labels
    np.testing.assert_array_equal(found.codes, whole.codes)
    # Lines are those of each file.
    assert found.lines[-1] == whole.lines[-1] - first.count("\n")


def test_files_that_do_not_go_together_are_named(tmp_path):
    (tmp_path / "a.conll").write_text(text_of(3))
    (tmp_path / "b.conll").write_text("x\tA\n")
    with pytest.raises(DataError, match=r"b\.conll:1: 2 columns, and .*a\.conll has 4"):
        spooled_dataset(parse_config({}), [tmp_path / "a.conll", tmp_path / "b.conll"], tmp_path, 3)
    (tmp_path / "c.conll").write_text("\n\n")
    with pytest.raises(DataError, match=r"c\.conll: no data: only blank lines"):
        spooled_dataset(parse_config({}), [tmp_path / "a.conll", tmp_path / "c.conll"], tmp_path, 3)


def test_errors_name_the_file_and_the_line(tmp_path):
    (tmp_path / "a.conll").write_text(text_of(30))
    (tmp_path / "b.conll").write_text("x\tN\t1\tA\nx\tN\tbad\tA\n")
    with pytest.raises(DataError, match=r"b\.conll:2: 'bad' in column 3"):
        spooled_dataset(parse_config({}), [tmp_path / "a.conll", tmp_path / "b.conll"], tmp_path, 3)
    (tmp_path / "b.conll").write_text("x\tN\t1\tA\n\nx\tN\t1\t\n")
    with pytest.raises(DataError, match=r"b\.conll:3: an empty label"):
        spooled_dataset(parse_config({}), [tmp_path / "a.conll", tmp_path / "b.conll"], tmp_path, 3)


def test_shards_are_as_even_as_sequences_allow():
    offsets = np.concatenate([[0], np.cumsum([1] * 10 + [100] + [1] * 10)])
    assert spool.shard_borders(offsets, 4).tolist() == [0, 10, 11, 21]  # the long one is a shard of its own
    assert np.diff(offsets[spool.shard_borders(offsets, 1)]).tolist() == [120]
    even = np.arange(0, 1001, 5)
    assert np.diff(even[spool.shard_borders(even, 8)]).tolist() == [125] * 8
    assert len(spool.shard_borders(np.arange(4), 64)) == 4  # three sequences


def test_a_sample_is_spread_over_all(tmp_path):
    path = tmp_path / "data.conll"
    path.write_text(text_of(200))
    with Spool(tmp_path, layout=Layout(missing=("?",)), shards=4) as own:
        own.read([path])
        everything, some = own.sample(10_000), own.sample(100)
    assert everything.positions == read_corpus(path).positions
    assert 50 <= some.positions <= 150
    assert some.lines[-1] > 0.9 * everything.lines[-1]
    assert list(everything.columns[0]) == list(read_corpus(path).columns[0])


# ----------------------------------------------------------------------------- folders


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "data.conll"
    path.write_text(text_of())
    config = parse_config(TUPLES)
    encoding, parts = spooled_dataset(config, [path], tmp_path, 4)
    with new_folder(tmp_path / "data.shards") as place:
        save_shards(place, encoding, config, parts)
    return tmp_path / "data.shards", encoding, parts


def test_a_folder_comes_back_as_it_went(folder):
    path, encoding, parts = folder
    found = load_folder(path)
    assert found.encoding.same_as(encoding) and found.labelled
    assert (found.sequences, len(found.shards)) == (40, 4)
    whole, expected = join_datasets(list(found.datasets())), join_datasets(parts)
    np.testing.assert_array_equal(whole.codes, expected.codes)
    np.testing.assert_array_equal(whole.real, expected.real)
    assert {name.name for name in path.parent.iterdir()} == {"data.conll", "data.shards"}


def test_a_missing_shard_is_named(folder):
    (folder[0] / "shard-0003.npz").unlink()
    with pytest.raises(FileFormatError, match=r"shard-0003\.npz: shard 3 of 4 is missing"):
        load_folder(folder[0])


def test_a_shard_cut_short_is_named(folder):
    shard = folder[0] / "shard-0002.npz"
    shard.write_bytes(shard.read_bytes()[:-5])
    with pytest.raises(FileFormatError, match=r"shard-0002\.npz: shard 2 of 4 is damaged: .* bytes"):
        load_folder(folder[0])


def test_a_changed_bit_is_named(folder):
    shard = folder[0] / "shard-0002.npz"
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(bytes(data))
    opened = load_folder(folder[0])
    with pytest.raises(FileFormatError, match=r"shard-0002\.npz: shard 2 of 4 is damaged: .*digest"):
        list(opened.datasets())


def test_shards_of_another_folder_are_refused(folder):
    first, second = folder[0] / "shard-0001.npz", folder[0] / "shard-0002.npz"
    data = first.read_bytes(), second.read_bytes()
    first.write_bytes(data[1])
    second.write_bytes(data[0])
    with pytest.raises(FileFormatError, match="shard 1 of 4 is damaged"):
        list(load_folder(folder[0]).datasets())


def changed(folder, change):
    """Write the index of a folder again with other entries."""
    index = folder[0] / "index.npz"
    contents = read_container(index, "shards")
    change(contents.header)
    header = {key: value for key, value in contents.header.items() if key not in ("magic", "kind", "format", "version")}
    write_container(index, "shards", header, contents.arrays)


BEYOND_MEMORY = 2**62


@pytest.mark.parametrize(
    "change",
    [
        *({"positions": value} for value in (BEYOND_MEMORY, 1e300, -5, 0, 1, True, None, "7", [3])),
        *({"sequences": value} for value in (BEYOND_MEMORY, 40.0, -40, 39)),
        {"unobserved": -1},
        {"unobserved": BEYOND_MEMORY},
        {"complete": 41},
        {"missing": [["c0", -3]]},
        {"missing": [["c0", 1e300]]},
        {"files": None},
        {"files": []},
        {"shard": {"bytes": -1}},
        {"shard": {"positions": BEYOND_MEMORY}, "positions": BEYOND_MEMORY},
        {"shard": {"sequences": BEYOND_MEMORY}, "sequences": BEYOND_MEMORY},
    ],
    ids=repr,
)
def test_an_index_with_other_counts_is_refused(folder, change):
    """Totals are those of the shards; where a shard has another number, the totals are made to agree."""

    def apply(header):
        stated, own = header["shards"], dict(change)
        entry = own.pop("shard", {})
        for key in entry.keys() & {"positions", "sequences"}:
            own[key] = stated[key] - stated["files"][1][key] + entry[key]
        stated["files"][1].update(entry)
        stated.update(own)

    changed(folder, apply)
    with pytest.raises(FileFormatError, match=r"index\.npz: .*its list of shards is damaged"):
        load_folder(folder[0])


def test_an_index_without_shards_is_refused(folder):
    changed(folder, lambda header: header.pop("shards"))
    with pytest.raises(FileFormatError, match="shards"):
        load_folder(folder[0])


def test_junk_in_place_of_an_index_is_refused(folder):
    index = folder[0] / "index.npz"
    data = bytearray(index.read_bytes())
    data[len(data) // 2] ^= 1
    for junk in (b"", b"[]", b"\xff", bytes(data), bytes(data[:-9])):
        index.write_bytes(junk)
        with pytest.raises(FileFormatError, match=r"index\.npz: "):
            load_folder(folder[0])
    index.unlink()
    with pytest.raises(FileFormatError, match="no complete folder of shards"):
        load_folder(folder[0])


def test_a_failure_leaves_nothing_and_what_was_there(folder, tmp_path):
    path, encoding, parts = folder
    before = sorted(os.listdir(path))

    def broken():
        yield parts[0]
        raise KeyboardInterrupt

    for target in (path, tmp_path / "new.shards"):
        with pytest.raises(KeyboardInterrupt), new_folder(target) as place:
            save_shards(place, encoding, parse_config(TUPLES), broken())
    assert sorted(os.listdir(tmp_path)) == ["data.conll", "data.shards"]
    assert sorted(os.listdir(path)) == before
    assert load_folder(path).sequences == 40


def test_other_folders_are_not_replaced(folder, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(FileFormatError, match=r"letter\.txt"), new_folder(tmp_path / "mine"):
        raise AssertionError
    with new_folder(folder[0]) as place:
        save_shards(place, folder[1], parse_config(TUPLES), folder[2][:1])
    assert len(load_folder(folder[0]).shards) == 1
