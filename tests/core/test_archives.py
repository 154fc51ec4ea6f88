"""What must hold of files we write: they come back as they went, the same bytes each time, whole or not at all.

And of files that are not what they should be: a FileFormatError of one line, whatever the damage.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import stat
import threading
import zipfile

import numpy as np
import pytest

from kcrf_core.config import parse_config
from kcrf_core.corpora import FORMATS
from kcrf_core.corpora.corpus import concatenate
from kcrf_core.corpora.lines import blocks
from kcrf_core.encoding import fit_encoding
from kcrf_core.errors import FileFormatError
from kcrf_core.features import StoredBasis, load_basis, save_basis
from kcrf_core.features.term import TermBasis
from kcrf_core.files import pack_strings, read_container, replacing, write_container
from kcrf_core.kernels.plain import LinearKernel
from kcrf_core.model import digest, load_dataset, load_encoding, save_dataset

COLUMNS = "Das\tART\t1.5\tO\nHaus\tN\t-2\tB\n\nein\tART\t0.25\tO\nHaus\tN\t1e3\tB\nhat\tV\t7\tI\n"
ATTRIBUTES = "X\ta\tb:2\nY\ta\tc:-0.5\n\n@weight:2.5\nX\tb\n"

FEATURES = [
    {"column": "word", "window": [-1, 0]},
    {"column": "word", "transform": "suffix", "length": 2},
    {"conjunction": ["word", "pos[1]", "pos"], "window": [0, 1]},
    {"column": "f0", "window": [0, 1]},
    {"column": "word", "transform": "frequency"},
]

KINDS = {
    "columns": (COLUMNS, "conll", {"columns": ["word", "pos", "f0", "tag"], "features": FEATURES}),
    "default": (COLUMNS, "conll", {}),
    "rare": (COLUMNS, "conll", {"min_count": 100}),
    "attributes": (ATTRIBUTES, "crfsuite", {"terms": [{"kernel": "poly"}]}),
}


def corpus_of(text, format):
    parsed = FORMATS[format].parse(blocks(io.BytesIO(text.encode()), "data"), "data")
    return concatenate(part.corpus for part in parsed)


def fitted(kind="columns"):
    text, format, raw = KINDS[kind]
    config = parse_config(raw)
    return *fit_encoding(config, corpus_of(text, format)), config


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data.npz"


@pytest.fixture(params=["columns", "attributes"])
def saved(request, path):
    save_dataset(path, *fitted(request.param))
    return path


def refusal(call, *args):
    with pytest.raises(FileFormatError) as caught:
        call(*args)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def assert_same_dataset(a, b):
    for name in ("offsets", "lines", "labels", "weights", "codes", "real", "bag_unseen"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert (a.bag is None) == (b.bag is None)
    if a.bag is not None:
        np.testing.assert_array_equal(a.bag.toarray(), b.bag.toarray())
        assert a.bag.indices.dtype == b.bag.indices.dtype  # what compiled loops expect
    assert digest(a) == digest(b)


# There and back


@pytest.mark.parametrize("kind", KINDS)
def test_datasets_come_back(kind, path):
    encoding, dataset, config = fitted(kind)
    save_dataset(path, encoding, dataset, config)
    stored = load_dataset(path)
    assert stored.config == config and stored.encoding.same_as(encoding)
    assert_same_dataset(stored.dataset, dataset)
    again, raw = load_encoding(path)
    assert again.same_as(encoding) and parse_config(raw) == config


@pytest.mark.parametrize("text", ["Das\tX\t1\nneu\tART\t2\n", "neu\tX\t1\tO\nDas\tX\t1\tfremd\n"])
def test_new_data_comes_back(text, path):
    encoding, _, config = fitted()
    dataset = encoding.encode(corpus_of(text, "conll"))
    save_dataset(path, encoding, dataset, config)
    assert_same_dataset(load_dataset(path).dataset, dataset)


def test_bases_come_back(path):
    for kind in ("columns", "attributes"):
        encoding, dataset, config = fitted(kind)
        pivots = encoding.inputs(dataset, encoding.names).take(np.array([2, 0]))
        term = TermBasis("node", tuple(encoding.names), LinearKernel(), pivots, dataset.lines[[2, 0]], np.ones(3))
        save_basis(path, StoredBasis(encoding, config, (term,)), digest(dataset))
        stored = load_basis(path)
        (again,) = stored.terms
        assert stored.encoding.same_as(encoding) and stored.config == config
        assert (again.name, again.features, again.kernel) == (term.name, term.features, term.kernel)
        np.testing.assert_array_equal(again.pivots.codes, pivots.codes)
        np.testing.assert_array_equal(again.pivots.real, pivots.real)
        np.testing.assert_array_equal(again.lines, term.lines)
        assert load_encoding(path)[0].same_as(encoding)
        assert "a kcrf basis file, expected a dataset" in refusal(load_dataset, path)


@pytest.mark.parametrize("kind", KINDS)
def test_equal_content_gives_equal_bytes(kind, tmp_path):
    written = []
    for name in ("one.npz", "two", "three.npz"):  # no name or place gets in, and no suffix is added
        save_dataset(tmp_path / name, *fitted(kind))
        written.append((tmp_path / name).read_bytes())
    stored = load_dataset(tmp_path / "two")
    save_dataset(tmp_path / "again.npz", stored.encoding, stored.dataset, stored.config)
    written.append((tmp_path / "again.npz").read_bytes())
    assert len(set(written)) == 1
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["again.npz", "one.npz", "three.npz", "two"]


def test_digest_tells_data_apart():
    encoding, dataset, _ = fitted()
    assert digest(dataset) == digest(encoding.encode(corpus_of(COLUMNS, "conll")))
    for other in (COLUMNS.replace("1.5", "1.6"), COLUMNS.replace("ein", "Das"), COLUMNS.replace("\tI", "\tO")):
        assert digest(encoding.encode(corpus_of(other, "conll"))) != digest(dataset)
    merged = corpus_of(COLUMNS.replace("\n\n", "\n"), "conll")
    assert digest(encoding.encode(merged)) != digest(dataset)


def test_nothing_but_content_is_in_the_header(saved):
    header = read_container(saved, "dataset").header
    assert set(header) == {"magic", "kind", "format", "version", "encoding", "config", "digest"}
    assert str(saved.parent) not in json.dumps(header)


@pytest.mark.parametrize("strings", [[], [""], ["", "a", ""], ["ä\0", "日本", "\0", "a" * 1000], ["x\ny", "\t"]])
def test_strings_come_back(strings, path):
    write_container(path, "dataset", {}, pack_strings(strings, "s"))
    assert read_container(path, "dataset").strings("s") == strings


def test_arrays_are_little_endian(path):
    write_container(path, "dataset", {}, {"a": np.arange(3, dtype=">i4"), "b": np.ones((2, 3), order="F")[:, ::2]})
    contents = read_container(path, "dataset")
    assert contents.array("a", "int32", 1).tolist() == [0, 1, 2]
    assert contents.array("b", "float64", 2).tolist() == [[1, 1], [1, 1]]


# Damage


def test_cut_short_anywhere(saved):
    data = saved.read_bytes()
    cuts = {0, 1, 3, 4, 5, len(data) - 1, len(data) - 22, *random.Random(0).sample(range(len(data)), 60)}
    for cut in sorted(cuts):
        saved.write_bytes(data[:cut])
        refusal(load_dataset, saved)


def test_flipped_bits_anywhere(saved):
    """Either the damage is seen, or it is in a place that says nothing, such as the date of a member."""
    data = saved.read_bytes()
    before = load_dataset(saved)
    end = len(data) - 100  # no checksum covers the directory at the end
    places = random.Random(0).sample(range(end), 120) + list(range(end, len(data)))
    seen = 0
    for number, place in enumerate(places):
        damaged = bytearray(data)
        damaged[place] ^= 1 << number % 8
        saved.write_bytes(damaged)
        try:
            after = load_dataset(saved)
        except FileFormatError as error:
            assert "\n" not in str(error)
            seen += 1
        else:
            assert_same_dataset(after.dataset, before.dataset)
            assert after.encoding.same_as(before.encoding) and after.config == before.config
    assert seen > len(places) / 2


@pytest.mark.parametrize("bit", range(8))
def test_flipped_bits_of_the_directory(bit, path):
    """Flags, methods and offsets, where one bit can make zipfile say almost anything."""
    write_container(path, "dataset", {"a": 1}, {"x": np.arange(3)})
    data = path.read_bytes()
    for place in range(data.index(b"PK\x01\x02"), len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1 << bit
        path.write_bytes(damaged)
        with contextlib.suppress(FileFormatError):
            assert read_container(path, "dataset").arrays["x"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, 93, 255])
def test_wrong_compression_method(method, path):
    write_container(path, "dataset", {}, {"x": np.arange(3)})
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 10] = method
    path.write_bytes(data)
    refusal(read_container, path, "dataset")


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def zipped(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def npy(header):
    """A member with a header of its own."""
    text = header.encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


JUNK = {
    "empty": b"",
    "text": b"word\tpos\tlabel\n",
    "PK": b"PK",
    "zip magic": b"PK\x03\x04",
    "zip magic and noise": b"PK\x03\x04" + bytes(range(256)) * 4,
    "empty zip": zipped(),
    "end of a zip": b"PK\x05\x06" + bytes(18),
    "other zip": zipped(**{"readme.txt": b"hello"}),
    "header is text": zipped(header=b"hello"),
    "npy": b"\x93NUMPY\x01\x00v\x00",
    "gzip": b"\x1f\x8b\x08\x00",
    "other npz": npz(a=np.arange(3)),
    "pickle": npz(header=np.array([{"a": 1}], dtype=object)),
    "header of numbers": npz(header=np.arange(3)),
    "header of zero dimensions": npz(header=np.array(7)),
    "header not JSON": npz(header=np.frombuffer(b"{", np.uint8)),
    "header a list": npz(header=np.frombuffer(b"[1]", np.uint8)),
    "header deep": npz(header=np.frombuffer(b"[" * 100000, np.uint8)),
    "header of other magic": npz(header=np.frombuffer(b'{"magic": "crf"}', np.uint8)),
    "header without kind": npz(header=np.frombuffer(b'{"magic": "kcrf"}', np.uint8)),
    "header not UTF-8": npz(header=np.frombuffer(b'{"magic": "\xff"}', np.uint8)),
    "shape too large": zipped(
        **{"x.npy": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,)}\n")}
    ),
    "shape negative": zipped(**{"x.npy": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-5,)}\n")}),
    "shape of words": zipped(**{"x.npy": npy("{'descr': '<f8', 'fortran_order': False, 'shape': ('a',)}\n")}),
    "member header not Python": zipped(**{"x.npy": npy("{'descr': (((\n")}),
    "member header unhashable": zipped(**{"x.npy": npy("{[]: 1}\n")}),
    "member type unknown": zipped(**{"x.npy": npy("{'descr': 'nonsense', 'fortran_order': False, 'shape': (1,)}\n")}),
}


@pytest.mark.parametrize("data", JUNK.values(), ids=JUNK)
def test_files_that_are_not_ours(data, path):
    path.write_bytes(data)
    for load in (load_dataset, load_basis, load_encoding):
        assert refusal(load, path).startswith(f"{path}: ")


def test_other_kinds_and_formats(path):
    write_container(path, "model", {}, {})
    assert refusal(load_dataset, path) == f"{path}: a kcrf model file, expected a dataset"
    assert "expected a dataset or a basis" in refusal(read_container, path, "dataset", "basis")
    write_container(path, "dataset", {"format": 99, "version": "9.1"}, {})
    message = refusal(load_dataset, path)
    assert "format 99" in message and "kcrf 9.1" in message and message.endswith("upgrade kcrf")
    write_container(path, "dataset", {"format": 0}, {})
    assert "upgrade" not in refusal(load_dataset, path)


def test_earlier_formats_are_refused_with_what_to_do(saved):
    contents = read_container(saved, "dataset")
    write_container(saved, "dataset", contents.header | {"format": 3, "version": "0.0.9"}, contents.arrays)
    assert "format 3, written by kcrf 0.0.9" in refusal(load_dataset, saved)


def test_a_file_that_is_not_there_is_no_matter_of_format(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_dataset(tmp_path / "nothing.npz")
    with pytest.raises(IsADirectoryError):
        load_dataset(tmp_path)


def alter(path, change):
    """Rewrite a container with `change(header, arrays)`, as valid as any."""
    contents = read_container(path, "dataset", "basis")
    header, arrays = contents.header, contents.arrays
    change(header, arrays)
    write_container(path, header["kind"], header, arrays)


OPTIONAL = {"gold", "weights", "hashes"}  # a dataset without them is another dataset, not a damaged one


def test_every_array_is_needed_and_checked(saved):
    data = saved.read_bytes()
    for name in read_container(saved, "dataset").arrays:
        for how in ("missing", "another type", "longer"):
            saved.write_bytes(data)

            def change(header, arrays, name=name, how=how):
                array = arrays.pop(name)
                if how == "another type":
                    arrays[name] = array.astype(np.float32)
                elif how == "longer" and name.endswith(".values.ends"):
                    arrays[name] = array + 1  # one more would be a vocabulary with the empty string in it
                elif how == "longer":
                    arrays[name] = np.concatenate([array, array[-1:] if len(array) else np.ones(1, array.dtype)])

            alter(saved, change)
            if how == "missing" and name in OPTIONAL:
                load_dataset(saved)
            else:
                assert "damaged or altered" in refusal(load_dataset, saved), (name, how)


def first(name, value):
    def change(header, arrays):
        arrays[name] = arrays[name].copy()
        arrays[name].reshape(-1)[0] = value

    return change


def replaced(name, value):
    def change(header, arrays):
        arrays[name] = value

    return change


def value_twice(header, arrays):
    arrays |= pack_strings(["Das", "Das", "ein", "hat"], "feature0.values")


ALTERED_ARRAYS = {
    "code too large": first("codes", 1000),
    "code too small": first("codes", -3),
    "gold too large": first("gold", 3),
    "gold too small": first("gold", -2),
    "nan": first("real", np.nan),
    "infinity": first("real", np.inf),
    "offsets from 1": first("offsets", 1),
    "no offsets": replaced("offsets", np.zeros(0, np.int64)),
    "no sequence": replaced("offsets", np.zeros(1, np.int64)),
    "an empty sequence": replaced("offsets", np.array([0, 2, 2, 5])),
    "sequences backwards": replaced("offsets", np.array([0, 4, 2, 5])),
    "no lines": replaced("lines", np.zeros(0, np.int64)),
    "unseen below zero": first("bag_unseen", -1.0),
    "wrong number of weights": replaced("weights", np.ones(3)),
    "weight below zero": replaced("weights", np.array([1.0, -1.0])),
    "text not UTF-8": first("labels.text", 0xFF),
    "strings backwards": first("labels.ends", 3),
    "strings from before": first("labels.ends", -1),
    "no ends": replaced("labels.ends", np.zeros(0, np.int64)),
    "a label twice": first("labels.text", ord("I")),
    "keys out of order": first("feature2.keys0.0", 10**6),
    "scale of zero": first("feature3.scale", 0.0),
    "scale below zero": first("feature3.scale", -1.0),
    "count below zero": first("feature4.counts", -5),
    "a value twice": value_twice,
}


@pytest.mark.parametrize("change", ALTERED_ARRAYS.values(), ids=ALTERED_ARRAYS)
def test_arrays_that_do_not_fit(change, path):
    save_dataset(path, *fitted())
    alter(path, change)
    assert "damaged or altered" in refusal(load_dataset, path)


def at(header, *keys):
    for key in keys:
        header = header[key]
    return header


JUNK_VALUES = [None, True, 3, -1, 1.5, "x", [], [1], [None], {}, {"a": 1}, [[]], 10**400]


def test_headers_that_do_not_fit(saved):
    """Whatever stands in the place of any value, there is an answer: the dataset, or a refusal."""
    data = saved.read_bytes()
    contents = read_container(saved, "dataset")

    def places(value, where=()):
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, item in items:
            yield (*where, key)
            yield from places(item, (*where, key))

    rng = random.Random(1)
    everywhere = [where for where in places(contents.header) if where[0] in ("encoding", "config")]
    everywhere = rng.sample(everywhere, min(len(everywhere), 30))
    refused = 0
    for where in everywhere:
        for junk in [*rng.sample(JUNK_VALUES, 2), "missing"]:
            header = json.loads(json.dumps(contents.header))
            place = at(header, *where[:-1])
            if junk == "missing":
                del place[where[-1]]
            else:
                place[where[-1]] = junk
            buffer = io.BytesIO()
            text = np.frombuffer(json.dumps(header | {"arrays": sorted(contents.arrays)}).encode(), np.uint8)
            np.savez(buffer, header=text, **contents.arrays)
            saved.write_bytes(buffer.getvalue())
            try:
                load_dataset(saved)
            except FileFormatError as error:
                assert "\n" not in str(error)
                refused += 1
                with contextlib.suppress(FileFormatError):
                    load_encoding(saved)
    assert refused > len(everywhere)  # of three times as many
    saved.write_bytes(data)
    load_dataset(saved)


def renamed(header, arrays):
    header["encoding"]["features"][1]["config"]["name"] = header["encoding"]["features"][0]["config"]["name"]


def with_attributes(header, arrays):
    header["encoding"]["features"][0] |= {"config": {"name": "a", "type": "attributes"}}


ALTERED_HEADERS = {
    "no columns": lambda header, arrays: header["encoding"].update(columns=[]),
    "no features": lambda header, arrays: header["encoding"].update(features=[]),
    "other format": lambda header, arrays: header["encoding"].update(format="crfsuite"),
    "no format": lambda header, arrays: header["encoding"].update(format=["conll"]),
    "two of a name": renamed,
    "attributes in columns": with_attributes,
    "column of the label": lambda header, arrays: header["encoding"]["features"][0].update(column=3),
    "negative column": lambda header, arrays: header["encoding"]["features"][0].update(column=-1),
    "other type": lambda header, arrays: at(header, "encoding", "features", 3, "config").update(type="categorical"),
    "other transform": lambda header, arrays: at(header, "encoding", "features", 4, "config").update(transform="lower"),
    "other window": lambda header, arrays: at(header, "encoding", "features", 0, "config").update(window=[0]),
    "part missing": lambda header, arrays: header["encoding"]["features"][2]["parts"].pop(),
    "no window": lambda header, arrays: at(header, "encoding", "features", 2, "parts", 0, "config").pop("window"),
    "bad configuration": lambda header, arrays: header["config"]["training"].update(seed=-1),
    "no configuration": lambda header, arrays: header.pop("config"),
}


@pytest.mark.parametrize("change", ALTERED_HEADERS.values(), ids=ALTERED_HEADERS)
def test_headers_that_contradict_the_rest(change, path):
    save_dataset(path, *fitted())
    alter(path, change)
    assert "damaged or altered" in refusal(load_dataset, path)


def test_a_format_that_nobody_registered(path):
    save_dataset(path, *fitted())
    alter(path, lambda header, arrays: header["encoding"].update(format="xml"))
    assert refusal(load_dataset, path).startswith(f"{path}: the format 'xml' is not registered here")


# Files written whole or not at all


def names_in(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_replacing_writes_when_all_went_well(tmp_path):
    target = tmp_path / "out"
    for content in (b"one", b"two"):
        with replacing(target) as stream:
            stream.write(content)
            if content == b"two":
                assert target.read_bytes() == b"one"  # until the end
            else:
                assert not target.exists()
        assert target.read_bytes() == content
    assert names_in(tmp_path) == ["out"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("existing", [True, False])
def test_replacing_leaves_the_target_alone_on_failure(error, existing, tmp_path):
    target = tmp_path / "out"
    if existing:
        target.write_bytes(b"before")
        os.utime(target, (1, 1))
        os.chmod(target, 0o640)
    with pytest.raises(error), replacing(target) as stream:
        stream.write(b"half")
        raise error
    assert names_in(tmp_path) == (["out"] if existing else [])
    if existing:
        assert target.read_bytes() == b"before"
        assert target.stat().st_mtime == 1 and stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_container_that_cannot_be_written_leaves_nothing(path):
    with pytest.raises(ValueError):
        write_container(path, "dataset", {"a": float("nan")}, {})
    assert names_in(path.parent) == []


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002, 0o000])
def test_replacing_gives_permissions_by_umask(mask, tmp_path):
    before = os.umask(mask)
    try:
        with replacing(tmp_path / "out") as stream:
            stream.write(b"x")
        (tmp_path / "plain").write_bytes(b"x")
        assert os.umask(mask) == mask  # and leaves it as it was
    finally:
        os.umask(before)
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("out", "plain")}
    assert modes == {0o666 & ~mask}


@pytest.mark.parametrize("existing", [True, False])
def test_replacing_keeps_links(existing, tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "target", tmp_path / "link"
    if existing:
        target.write_bytes(b"before")
    link.symlink_to("there/target")
    with replacing(link) as stream:
        stream.write(b"after")
    assert link.is_symlink() and os.readlink(link) == "there/target"
    assert target.read_bytes() == b"after" and not target.is_symlink()
    assert names_in(tmp_path) == ["link", "there"] and names_in(tmp_path / "there") == ["target"]


def test_replacing_writes_into_what_is_no_file(tmp_path):
    with replacing(os.devnull) as stream:
        stream.write(b"x")
    assert not os.path.isfile(os.devnull)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    with replacing(pipe) as stream:
        stream.write(b"through")
    reader.join(10)
    assert got == [b"through"] and stat.S_ISFIFO(pipe.stat().st_mode)


def test_replacing_names_what_was_asked_for(tmp_path):
    target = tmp_path / "nowhere" / "out"
    with pytest.raises(FileNotFoundError) as caught, replacing(target):
        pass
    assert caught.value.filename == str(target)
    with pytest.raises(IsADirectoryError), replacing(tmp_path):
        pass
    assert names_in(tmp_path) == []


def test_replacing_in_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with replacing("out") as stream:
        stream.write(b"x")
    assert names_in(tmp_path) == ["out"]
