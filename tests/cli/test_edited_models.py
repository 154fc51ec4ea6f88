"""Models that someone has edited: refused in one line with exit code 4 when they are loaded, by every command."""

from __future__ import annotations

import io
import json
import os
import threading
import warnings
import zipfile

import numpy as np
import pytest

from kcrf_core.files import write_container
from kcrf_core.model import Model

FILE = 4
WORDS = "".join(f"w{i * 7 % 5} {i * 3 % 4 + 0.5} {'ABC'[i % 3]}\n" + "\n" * (i % 6 == 5) for i in range(60))
KINDS = {
    "linear": [],
    "sparse": ["--observed-features"],
    "poly": ["--kernel", "poly", "--size", "5"],
    "rbf": ["--kernel", "rbf", "--size", "5"],
    "double": ["--kernel", "rbf", "--size", "5", "--precision", "double"],
    "conjunctions": ["--kernel", "poly", "--columns", "word,n,label", "--order", "2"],
}


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.conll"
    path.write_text(WORDS)
    return path


@pytest.fixture
def trained(kcrf, data, tmp_path):
    def train(kind="linear"):
        path = tmp_path / f"{kind}.npz"
        assert kcrf("train", data, *KINDS[kind], "--sigma2", 1, "-q", "-o", path).code == 0
        return path

    return train


def parts(path):
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return json.loads(arrays.pop("header").tobytes()), arrays


def rewritten(path, change):
    """The same file after `change(header, arrays)`, with checksums that fit."""
    header, arrays = parts(path)
    change(header, arrays)
    header.pop("arrays")
    write_container(path, "model", header, arrays)


def refused(kcrf, path, data, words=""):
    for command in (
        ["tag", "-m", path, data],
        ["tag", "-m", path, data, "--json-lines", "--marginals", "all"],
        ["evaluate", "-m", path, data],
        ["inspect", path],
        ["inspect", path, "--json"],
        ["train", data, "--init", path, "-o", path.with_name("new.npz")],
    ):
        done = kcrf(*command)
        assert (done.code, done.out) == (FILE, b""), (command[0], done.err)
        assert done.err.startswith("kcrf: ") and done.err.count("\n") == 1 and words in done.err


@pytest.mark.parametrize("text", ["x\nforged\tB", "a\tb", "a\rb", "a\0b"])
def test_labels_that_forge_rows(kcrf, trained, data, text):
    path = trained()

    def change(header, arrays):
        labels = [text.encode(), b"B", b"C"]
        arrays["labels.text"] = np.frombuffer(b"".join(labels), np.uint8)
        arrays["labels.ends"] = np.cumsum([len(label) for label in labels])

    rewritten(path, change)
    refused(kcrf, path, data, "label")


def repr_start(value):
    return repr(value)[:8]


def weights_of(arrays):
    names = ("weights", "values", "alpha", "bias", "transitions", "start", "end", "triples", "norms")
    return [name for name in arrays if name.endswith(names) and arrays[name].dtype.kind == "f"]


@pytest.mark.each_choice
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [1e300, -1e300, 1e101])
def test_weights_that_no_training_finds(kcrf, trained, data, kind, value):
    path = trained(kind)
    plain = path.read_bytes()
    names = weights_of(parts(path)[1])
    assert len(names) >= 4
    for name in names:
        path.write_bytes(plain)
        rewritten(path, lambda header, arrays, name=name: arrays[name].flat.__setitem__(0, value))
        refused(kcrf, path, data, name)


@pytest.mark.parametrize("kind", ["poly", "rbf"])
@pytest.mark.parametrize("value", [1e30, 1e90])
def test_pivots_and_coefficients_beyond_single_precision(kcrf, trained, data, kind, value):
    path = trained(kind)
    plain = path.read_bytes()
    rewritten(path, lambda header, arrays: arrays["term0.real"].flat.__setitem__(0, value))
    refused(kcrf, path, data, "pivots")
    path.write_bytes(plain)
    rewritten(path, lambda header, arrays: arrays["term0.alpha"].flat.__setitem__(0, 1e39))
    refused(kcrf, path, data, "coefficients")


@pytest.mark.parametrize("kind", ["poly", "rbf", "double"])
@pytest.mark.parametrize("gamma", [1e308, 1e101, 0, -1])
def test_gamma_that_nobody_can_set(kcrf, trained, data, kind, gamma):
    path = trained(kind)
    rewritten(path, lambda header, arrays: header["terms"][0]["kernel"].update(gamma=gamma))
    refused(kcrf, path, data, "kernel")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), "1e999", 10**400], ids=repr_start)
def test_headers_with_numbers_that_are_none(kcrf, trained, data, value):
    path = trained()
    header, arrays = parts(path)
    header["info"]["training"]["objective"] = value
    text = json.dumps(header).replace('"1e999"', "1e999")
    np.savez(path, header=np.frombuffer(text.encode(), np.uint8), **arrays)
    refused(kcrf, path, data)


@pytest.mark.parametrize("key", ["version", "magic", "encoding", "terms"])
def test_half_a_surrogate_pair(kcrf, trained, data, key):
    path = trained()
    header, arrays = parts(path)
    if key == "encoding":
        header["encoding"]["columns"][0] = "\ud800"
    elif key == "terms":
        header["terms"][0]["name"] = "\udfff"
    else:
        header[key] = "\ud800"
    np.savez(path, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)
    refused(kcrf, path, data)


def zipped(members, comment=b""):
    """The members as a zip file, (name, bytes) each."""
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w") as archive:
        warnings.simplefilter("ignore")
        for name, content in members:
            archive.writestr(name, content)
        archive.comment = comment
    return stream.getvalue()


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return [(member.filename, archive.read(member)) for member in archive.infolist()]


def test_archives_that_hold_more_than_they_say(kcrf, trained, data):
    path = trained()
    plain, members = path.read_bytes(), members_of(path)
    path.write_bytes(zipped(members))
    assert kcrf("inspect", path).code == 0  # the same content in another zip file is the same model
    at = next(number for number, (name, _) in enumerate(members) if name == "transitions.npy")
    other = ("transitions.npy", members[at][1][:-8] + b"\0" * 8)
    hidden = plain.index(b"PK\x01\x02")
    cases = {
        "twice": zipped([*members, other]),
        "after the array": zipped([(name, content + b"more") for name, content in members]),
        "has bytes besides": plain + b"more",
        "bytes besides its": zipped(members, comment=b"more"),
        "": plain[:hidden] + b"more" + plain[hidden:],
        "not a kcrf file": b"more" + plain,
    }
    cases["suffix"] = zipped([*members, ("transitions", other[1])])
    for words, content in cases.items():
        path.write_bytes(content)
        refused(kcrf, path, data, "" if words == "suffix" else words)


def test_a_model_that_was_written_to_a_pipe_is_read(trained, tmp_path):
    model, pipe, path = Model.load(trained()), tmp_path / "pipe", tmp_path / "piped.npz"
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: path.write_bytes(pipe.read_bytes()))
    reader.start()
    model.save(pipe)
    reader.join()
    assert Model.load(path).labels == model.labels


def test_data_that_no_score_can_be_worked_out_for(kcrf, data, tmp_path):
    path, far = tmp_path / "m.npz", tmp_path / "far.conll"
    options = ["--kernel", "poly", "--degree", "10", "--size", "5", "--sigma2", "1", "--precision", "single"]
    assert kcrf("train", data, *options, "-q", "-o", path).code == 0
    far.write_text("w1 0.5 A\n\nw2 0.5 A\nw1 1e9 A\n")
    for options in ([], ["--json-lines", "--marginals", "all"], ["--nbest", 2], ["--decode", "posterior"]):
        done = kcrf("tag", "-m", path, far, *options)
        assert b"nan" not in done.out.lower() and b"inf" not in done.out.lower()
        assert done.code == 5 and done.err.count("\n") == 1, done.err
        assert "sequence at line 3" in done.err and "line 4" in done.err


@pytest.mark.parametrize("scale", [1e-3, 1e3])
@pytest.mark.parametrize("kind", [["--kernel", "rbf"], ["--kernel", "poly"], []])
def test_extreme_but_honest_models_are_read(kcrf, tmp_path, scale, kind):
    numbers = [(scale * (i * 7 % 11), scale * (i * 3 % 7), "AB"[i % 2], "\n" * (i % 6 == 5)) for i in range(90)]
    rows = [f"{first:g} {second:g} {label}\n{end}" for first, second, label, end in numbers]
    path, model, config = tmp_path / "d.conll", tmp_path / "m.npz", tmp_path / "c.yaml"
    path.write_text("".join(rows))
    config.write_text("features: [{column: c0, scale: none}, {column: c1, scale: none}]\n")
    assert kcrf("train", path, "-c", config, *kind, "--sigma2", "1e8", "--max-passes", 50, "-o", model).code == 0
    assert kcrf("tag", "-m", model, path).code == 0


@pytest.mark.parametrize(
    "change",
    [{"threshold": -0.5}, {"threshold": True}, {"level": "a"}, {"kind": ["risk"]}, {"of": "word"}, {"more": 1}],
)
def test_thresholds_that_are_none(kcrf, trained, data, change):
    path, fine = trained(), {"kind": "risk", "of": "position", "level": 0.1, "threshold": 0.5, "sequences": 20}
    rewritten(path, lambda header, arrays: header.update(guarantees={"review": fine}))
    assert kcrf("tag", "-m", path, data, "--review").code == 0
    rewritten(path, lambda header, arrays: header.update(guarantees={"review": fine | change}))
    refused(kcrf, path, data, "'guarantees' has no thresholds")
