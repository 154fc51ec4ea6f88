"""Folders of shards on the command line: what takes them, what refuses them, and runs that are interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from kcrf_core.model import load_folder

posix = pytest.mark.skipif(os.name == "nt", reason="POSIX")


@pytest.fixture
def data(sample_data, tmp_path):
    path = tmp_path / "small.conll"
    path.write_text("\n\n".join((sample_data / "pitch_accent.conll").read_text().split("\n\n")[:120]) + "\n")
    return path


@pytest.fixture
def shards(kcrf, data, tmp_path):
    folder = tmp_path / "small.shards"
    assert kcrf("featurize", data, "-o", f"{folder}/", "--shards", 4, "-q").code == 0
    return folder


def test_from_text_to_figures(kcrf, data, shards, tmp_path):
    one, model, other = tmp_path / "one.npz", tmp_path / "model.npz", tmp_path / "other.npz"
    assert kcrf("featurize", data, "-o", one, "--shards", 4, "-q").code == 0
    trained = kcrf("train", shards, "--sigma2", 1, "--memory", 1, "-v", "-o", model)
    assert trained.code == 0 and "4 shards" in trained.err
    assert kcrf("train", one, "--sigma2", 1, "-o", other, "-q").code == 0
    assert model.read_bytes() == other.read_bytes()
    whole = json.loads(kcrf("evaluate", "-m", model, shards, "--json").text)
    text = json.loads(kcrf("evaluate", "-m", model, data, "--json").text.replace(str(data), str(shards)))
    assert whole == text | dict.fromkeys(("seen_words", "unseen_words", "wrong_words"))  # shards have no words
    done = kcrf("tag", "-m", model, shards)
    assert done.code == 2 and "no text to write labels beside" in done.err


@pytest.mark.slow
def test_sigma2_is_chosen_on_a_sample_which_is_told(kcrf, shards, tmp_path):
    done = kcrf("train", shards, "--tolerance", 0.1, "-o", tmp_path / "model.npz")
    assert done.code == 0
    (said,) = [line for line in done.err.splitlines() if "chosen on 120 sequences from all over the data" in line]
    assert said.split(", ")[-1].endswith("positions")


def test_bases_and_their_use(kcrf, shards, tmp_path):
    basis, model = tmp_path / "basis.npz", tmp_path / "model.npz"
    done = kcrf("select-basis", shards, "--kernel", "rbf", "--size", 8, "-o", basis)
    assert done.code == 0 and "pivots are chosen among" in done.err
    done = kcrf("train", shards, "--basis", basis, "--sigma2", 1, "--max-passes", 5, "-o", model, "-q")
    assert done.code == 0, done.err


def test_a_folder_tells_what_it_holds(kcrf, shards):
    done = kcrf("inspect", shards)
    assert done.code == 0 and "a folder of 4 shards" in done.text and "120 sequences" in done.text
    found = json.loads(kcrf("inspect", shards, "--json").text)
    sizes = [shard.positions for shard in load_folder(shards).shards]
    assert found["shards"] == len(sizes) == 4 and found["positions"] == sum(sizes)
    assert (found["fewest_positions"], found["most_positions"]) == (min(sizes), max(sizes))
    assert kcrf("inspect", shards, "--dump").code == 2


def test_several_files_without_shards_are_one_dataset(kcrf, data, tmp_path):
    one, two = tmp_path / "one.npz", tmp_path / "two.npz"
    (tmp_path / "twice.conll").write_text(data.read_text() + "\n" + data.read_text())
    assert kcrf("featurize", data, data, "-o", two, "--plain", "--columns", "a,b,c,d,e,label", "-q").code == 0
    assert (
        kcrf("featurize", tmp_path / "twice.conll", "-o", one, "--plain", "--columns", "a,b,c,d,e,label", "-q").code
        == 0
    )
    for command in (["inspect", one], ["inspect", two]):
        assert "240" in kcrf(*command).text


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["crossval"], "have seen the test folds"),
        (["tune", "-o", "x.yaml"], "have seen what is held out"),
        (["evaluate"], "give a model with -m"),
    ],
)
def test_who_refuses_shards_and_why(kcrf, shards, command, reason):
    done = kcrf(command[0], shards, *command[1:])
    assert done.code == 2 and reason in done.err.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["DATA", "-o", "x/", "--shards", "2", "--show", "1"], 2, "--show shows one file"),
        (["DATA", "--shards", "2"], 2, "nothing to do: give -o FILE"),
        (["DATA", "DATA", "-o", "x"], 2, "a name that ends in .npz, or --shards N"),
        (["DATA", "-o", "x/"], 2, "give --shards N"),
        (["-", "-", "-o", "x/", "--shards", "2"], 2, "name it once"),
        (["DATA", "-o", "none/x/", "--shards", "2"], 1, "no such directory"),
        (["DATA", "-o", "DATA", "--shards", "2"], 4, "is a file"),
    ],
)
def test_slips(kcrf, data, tmp_path, monkeypatch, arguments, code, reason):
    monkeypatch.chdir(tmp_path)
    done = kcrf("featurize", *[data if word == "DATA" else word for word in arguments])
    assert done.code == code and reason in done.err.replace("\n", " "), done.err
    assert {path.name for path in tmp_path.iterdir()} == {"small.conll"}


def test_a_damaged_shard_is_named(kcrf, shards, tmp_path):
    (shards / "shard-0002.npz").unlink()
    done = kcrf("train", shards, "--sigma2", 1, "-o", tmp_path / "model.npz")
    assert done.code == 4 and "shard-0002.npz: shard 2 of 4 is missing" in done.err


@posix
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_no_folder(data, tmp_path, stop):
    command = [sys.executable, "-m", "kcrf_cli", "featurize", "-", "-o", "new.shards/", "--shards", "4"]
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    # Shells let background processes ignore Ctrl-C, and what they start with them.
    child = subprocess.Popen(command, **pipes, cwd=tmp_path, preexec_fn=partial(signal.signal, stop, signal.SIG_DFL))
    child.stdin.write(data.read_bytes())
    child.stdin.flush()
    while {path.name for path in tmp_path.iterdir()} == {"small.conll"}:  # it has not begun
        assert child.poll() is None
        time.sleep(0.05)
    child.send_signal(stop)
    child.communicate()
    assert child.returncode != 0
    assert {path.name for path in tmp_path.iterdir()} == {"small.conll"}
