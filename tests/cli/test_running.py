"""Training that is watched, logged, warm-started and interrupted."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import get_args

import numpy as np
import pytest

from kcrf_cli.io.events import Interruption, RunLog
from kcrf_core.objective.solvers import (
    Event,
    GrowthRound,
    Note,
    Observer,
    Progress,
    Stage,
    Structure,
    TermJudgement,
    Trial,
)
from listening import Recorder

DATA = "the D X\ncat N Y\n\na D X\ndog N Y\n\nthe D X\n"


@pytest.fixture
def parts(sample_data, tmp_path):
    """Two thirds of the accent data to train on, and a third to score by."""
    sequences = (sample_data / "pitch_accent.conll").read_text().strip().split("\n\n")
    training, dev = tmp_path / "train.conll", tmp_path / "dev.conll"
    training.write_text("\n\n".join(sequences[:100]) + "\n")
    dev.write_text("\n\n".join(sequences[100:150]) + "\n")
    return training, dev


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.conll"
    path.write_text(DATA)
    return path


def _refuse(constant):
    raise ValueError(f"{constant} is no JSON")


def events(path):
    """The objects of a log, whose lines must all be whole."""
    text = path.read_text() if hasattr(path, "read_text") else path
    assert text.endswith("\n")
    found = [json.loads(line, parse_constant=_refuse) for line in text.splitlines()]
    assert found[0]["schema"] == 1 and all("schema" not in event for event in found[1:])
    assert found[-1]["event"] == "end"
    assert [event["seconds"] for event in found] == sorted(event["seconds"] for event in found)
    return found


def of_kind(found, kind):
    return [event for event in found if event["event"] == kind]


# ----------------------------------------------------------------------------- --init


def test_a_warm_start_says_so_and_saves_passes(kcrf, parts, tmp_path):
    training, _ = parts
    first = kcrf("train", training, "--sigma2", 1, "--json", "-o", tmp_path / "a.npz")
    again = kcrf("train", training, "--sigma2", 1, "--json", "--init", tmp_path / "a.npz", "-o", tmp_path / "b.npz")
    assert first.code == again.code == 0
    assert "starting from" in again.err and "2 of 2 labels" in again.err and "held-out" not in again.err
    before, after = json.loads(first.out), json.loads(again.out)
    assert after["sigma2"] == before["sigma2"] and after["passes"] < before["passes"] / 2
    np.testing.assert_allclose(after["objective"], before["objective"], rtol=1e-3)
    anew = kcrf("train", training, "--sigma2", "auto", "--init", tmp_path / "a.npz", "-o", tmp_path / "c.npz")
    assert re.search(r"^sigma2: .*held-out", anew.err, re.MULTILINE)


def test_a_new_model_may_take_the_place_of_its_start(kcrf, small, tmp_path):
    model = tmp_path / "m.npz"
    assert kcrf("train", small, "--sigma2", "1", "-q", "-o", model).code == 0
    assert kcrf("train", small, "--init", model, "-q", "-o", model).code == 0
    assert kcrf("tag", "-m", model, small).code == 0


def test_encoded_data_can_start_from_a_model_of_other_data(kcrf, parts, tmp_path):
    training, dev = parts
    assert kcrf("train", dev, "--plain", "--sigma2", "1", "-q", "-o", tmp_path / "a.npz").code == 0
    assert kcrf("featurize", training, "--plain", "-q", "-o", tmp_path / "data.npz").code == 0
    for data in (training, tmp_path / "data.npz"):
        plain = ("--plain",) if data == training else ()
        done = kcrf("train", data, *plain, "--init", tmp_path / "a.npz", "-o", tmp_path / f"{data.suffix}.npz")
        assert done.code == 0 and "starting from" in done.err
    assert (tmp_path / ".conll.npz").read_bytes() == (tmp_path / ".npz.npz").read_bytes()


def test_starts_that_are_none(kcrf, small, tmp_path):
    junk = tmp_path / "junk.npz"
    junk.write_bytes(b"this is not a model")
    target = ("-o", tmp_path / "m.npz")
    done = kcrf("train", small, "--init", junk, *target)
    assert done.code == 4 and "not a kcrf file" in done.err and done.err.count("\n") == 1
    assert kcrf("featurize", small, "-q", "-o", tmp_path / "d.npz").code == 0
    done = kcrf("train", small, "--init", tmp_path / "d.npz", *target)
    assert done.code == 4 and "expected a model" in done.err
    assert kcrf("train", small, "--init", tmp_path / "none.npz", *target).code == 1
    other = tmp_path / "other.conll"
    other.write_text("the X\ncat Y\n")
    assert kcrf("train", other, "--sigma2", "1", "-q", "-o", tmp_path / "other.npz").code == 0
    done = kcrf("train", small, "--init", tmp_path / "other.npz", *target)
    assert done.code == 2 and "other columns: c0, label there, c0, c1, label here" in done.err
    assert not (tmp_path / "m.npz").exists()


# ----------------------------------------------------------------------------- --dev


def test_dev_figures_are_what_evaluate_finds(kcrf, parts, tmp_path):
    training, dev = parts
    model = tmp_path / "m.npz"
    done = kcrf("train", training, "--sigma2", "10", "--dev", dev, "--json", "-o", model)
    assert done.code == 0
    found = json.loads(kcrf("evaluate", "-m", model, dev, "--json").out)
    assert json.loads(done.out)["dev"]["accuracy"] == found["accuracy"]
    assert "dev: accuracy" in done.err


def test_encoded_dev_data(kcrf, parts, tmp_path):
    training, dev = parts
    data, like, unlike = (tmp_path / f"{name}.npz" for name in ("data", "like", "unlike"))
    assert kcrf("featurize", training, "-q", "-o", data).code == 0
    assert kcrf("featurize", dev, "--like", data, "-q", "-o", like).code == 0
    assert kcrf("featurize", dev, "-q", "-o", unlike).code == 0
    options = ("--sigma2", "1", "--json", "-q", "-o", tmp_path / "m.npz")
    text, encoded = (json.loads(kcrf("train", data, "--dev", path, *options).out) for path in (dev, like))
    assert text["dev"] == encoded["dev"]
    done = kcrf("train", data, "--dev", unlike, *options)
    assert done.code == 4 and "--like" in done.err


def test_unknown_dev_labels_are_told(kcrf, small, tmp_path):
    dev = tmp_path / "dev.conll"
    dev.write_text("the D X\ncat N NEW\n")
    done = kcrf("train", small, "--sigma2", "1", "--dev", dev, "--json", "-o", tmp_path / "m.npz")
    assert done.code == 0 and "1 label not in DATA, counted wrong" in done.err
    assert json.loads(done.out)["dev"]["unknown_gold"] == 1


def test_dev_mistakes(kcrf, small, tmp_path):
    target = ("--sigma2", "1", "-o", tmp_path / "m.npz")
    bare = tmp_path / "bare.conll"
    bare.write_text("the D\n")
    done = kcrf("train", small, "--dev", bare, *target)
    assert done.code == 3 and "no labels" in done.err and "bare.conll" in done.err
    bare.write_text("the D NEW\ncat N NEWER\n")
    for options in ((), ("--metric", "log-loss")):
        done = kcrf("train", small, "--dev", bare, *options, *target)
        assert done.code == 3 and "bare.conll: no position has a known label" in done.err
    assert kcrf("train", small, "--dev", tmp_path / "none.conll", *target).code == 1
    assert kcrf("train", "-", "--dev", "-", *target).code == 2
    assert not (tmp_path / "m.npz").exists()


# ----------------------------------------------------------------------------- --log


def test_a_log_tells_everything(kcrf, parts, tmp_path):
    training, dev = parts
    log = tmp_path / "run.jsonl"
    done = kcrf("train", training, "--dev", dev, "--log", log, "--json", "-q", "--seed", "3", "-o", tmp_path / "m.npz")
    assert done.code == 0
    found, figures = events(log), json.loads(done.out)
    start, end = found[0], found[-1]
    assert start["event"] == "start" and start["seed"] == 3 and start["sequences"] == 100
    assert start["dev_sequences"] == 50 and start["labels"] == ["0", "1"] and start["version"]
    assert start["configuration"]["training"]["max_passes"] == 1000
    passes = [event for event in of_kind(found, "pass") if event["stage"] == "training"]
    assert [event["pass"] for event in passes] == list(range(1, figures["passes"] + 1))
    assert {"objective", "lower_bound", "gap", "hessian_products"} <= passes[-1].keys()
    keys = ("term", "score_variance", "sigma2", "log_probability", "metric", "figures")
    assert [{key: event[key] for key in keys} for event in of_kind(found, "trial")] == figures["sigma2_path"]
    assert {key: value for key, value in end.items() if key != "event"} == {
        key: value for key, value in figures.items() if key != "schema"
    }


def test_a_log_on_stdout(kcrf, small, tmp_path):
    options = (small, "--sigma2", "1", "-q", "-o", tmp_path / "m.npz", "--log", "-")
    found = events(kcrf("train", *options).text)
    assert found[-1]["stop"] == "certified"
    assert kcrf("train", *options, "--json").code == 2


def test_logs_that_cannot_be_written_are_refused_first(kcrf, small, tmp_path):
    model = tmp_path / "m.npz"
    options = (small, "--sigma2", "1", "-q", "-o", model, "--log")
    assert kcrf("train", *options, tmp_path / "no" / "such.jsonl").code == 1
    for path in (small, model, tmp_path):
        assert kcrf("train", *options, path).code == 2
    assert small.read_text() == DATA and not model.exists()


def test_a_run_that_fails_says_so_in_its_log(kcrf, small, tmp_path):
    log = tmp_path / "run.jsonl"
    small.write_text("the D X\nragged\n")
    assert kcrf("train", small, "-o", tmp_path / "m.npz", "--log", log).code == 3
    [end] = events(log)
    assert end["stop"] == "failed" and "small.conll:2" in end["error"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_log_on_a_full_disk_costs_the_exit_code_but_not_the_model(kcrf, small, tmp_path):
    model = tmp_path / "m.npz"
    done = kcrf("train", small, "--sigma2", "1", "-q", "-o", model, "--log", "/dev/full")
    assert done.code == 1 and done.err == "kcrf: /dev/full: No space left on device\n"
    assert kcrf("tag", "-m", model, small).code == 0


def test_observers_and_the_log_hear_every_event(tmp_path):
    told = [
        Note("two labels"),
        Stage("training", final=True),
        Progress(7, 20.0, 0.5, 10.0, 2, 9.0),
        Trial("all", 0.1, {"node": 0.2}, -0.7, "accuracy", {"viterbi": 0.6}),
        GrowthRound({"node": 10}, 20.0, None, 3.0, None, 7),
        Structure(("node",), (TermJudgement("node", "taken"),)),
    ]
    assert {type(event) for event in told} == set(get_args(Event))
    heard, path = (Recorder(), Recorder()), tmp_path / "run.jsonl"
    with RunLog(str(path)) as log:
        for event in told:
            Interruption(*heard).tell(event)
            Interruption(Observer(), log).tell(event)
        log.write("end", {})
    assert heard[0].events == heard[1].events == told
    lines = events(path)
    # A stage is named in the lines of its passes.
    assert [line["event"] for line in lines] == ["note", "pass", "trial", "growth", "structure", "end"]
    assert lines[0]["text"] == "two labels" and lines[1]["stage"] == "training"
    assert lines[1]["pass"] == lines[3]["passes"] == 7
    assert lines[2]["sigma2"] == {"node": 0.2} and lines[4]["chosen"] == ["node"]


# ----------------------------------------------------------------------------- pivots that training adds


def test_a_growing_basis_is_told_logged_and_reported(kcrf, parts, tmp_path):
    training, _ = parts
    model, log = tmp_path / "m.npz", tmp_path / "run.jsonl"
    options = ["--kernel", "rbf", "--select", "gradient", "--size", "400", "--basis-tolerance", "0.2", "--sigma2", "1"]
    done = kcrf("train", training, *options, "--json", "--log", log, "-v", "-o", model)
    figures = json.loads(done.out)
    rounds = figures["growth"]["rounds"]
    assert figures["growth"]["stop"] == "tolerance" and figures["growth"]["basis_tolerance"] == 0.2
    assert figures["outside_bound"] == rounds[-1]["bound"] <= 0.2 * figures["objective"]
    logged = [event for event in events(log) if event["event"] == "growth"]
    assert [event["objective"] for event in logged if event["bound"] is None] == [each["objective"] for each in rounds]
    assert logged[-1]["bound"] == rounds[-1]["bound"]
    assert "grows by gradient from 50 random pivots to 400 at most" in done.err
    for each in rounds:
        assert (
            f"  node {each['pivots']['node']:,} pivots: P {each['objective']:.6g}, gain outside them (estimate)"
            in done.err
        )
    assert f"gain outside them (at most) {rounds[-1]['bound']:.4g}" in done.err
    assert "gain still possible outside the pivots (at most)" in done.err
    assert f"\nnode {rounds[-1]['pivots']['node']:,} pivots: more would gain no more than 0.2 of P\n" in done.err
    assert kcrf("tag", "-m", model, training).code == 0


def test_a_basis_that_training_grows_cannot_be_chosen_before(kcrf, parts, tmp_path):
    basis = tmp_path / "b.npz"
    done = kcrf("select-basis", parts[0], "--kernel", "rbf", "--select", "gradient", "-q", "-o", basis)
    assert done.code == 2 and not basis.exists()
    assert done.err == (
        "kcrf: term 'node': 'gradient' chooses pivots while a model is trained: name another way to choose them before "
        "(--select)\n"
    )
    done = kcrf("train", parts[0], "--kernel", "rbf", "--basis-tolerance", "0.1", "-o", tmp_path / "m.npz")
    assert done.code == 2 and "'basis_tolerance' is for 'select: gradient', not for 'random'" in done.err


def test_json_counts_what_was_trained_on(kcrf, parts, tmp_path):
    options = ("--kernel", "rbf", "--plain", "--size", "20", "--sigma2", "1", "-q", "--json", "-o", tmp_path / "m.npz")
    found = json.loads(kcrf("train", parts[0], *options).out)
    counts = json.loads(kcrf("featurize", parts[0], "--json").out)
    assert {key: found[key] for key in ("sequences", "positions", "labels")} == {
        key: counts[key] for key in ("sequences", "positions", "labels")
    }
    assert found["terms"] == [{"name": "node", "type": "node", "pivots": 20, "weights": 20}]
    found = json.loads(kcrf("train", parts[0], "--sigma2", "1", "-q", "--json", "-o", tmp_path / "m.npz").out)
    assert found["terms"][0]["dimensions"] == found["terms"][0]["weights"] > 100


# ----------------------------------------------------------------------------- Ctrl-C


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.slow  # interrupts are tried every day in test_commands.py and in tests/core
@pytest.mark.parametrize("stage", ["training", "growing"])
def test_an_interrupted_run_leaves_a_model_and_a_whole_log(kcrf, sample_data, parts, tmp_path, stage):
    """With a warm start, scores and a log: all of them end well."""
    training, dev = parts
    early, model, log = tmp_path / "early.npz", tmp_path / "m.npz", tmp_path / "run.jsonl"
    assert kcrf("train", dev, "--sigma2", "1", "-q", "-o", early).code == 0
    options = ["--kernel", "rbf", "--map", "full", "--sigma2", "1000", "--tolerance", "1e-9", "--init", early]
    if stage == "growing":
        options = ["--kernel", "rbf", "--select", "gradient", "--size", "1500", "--sigma2", "1000", "--init", early]
    running = subprocess.Popen(
        [sys.executable, "-m", "kcrf_cli", "train", str(training), *map(str, options), "--dev", str(dev),
         "--log", str(log), "-o", str(model)],
        stderr=subprocess.PIPE,
    )  # fmt: skip
    with running:
        event = {"training": "pass", "growing": "growth"}[stage]
        wanted = f'"event": "{event}"'
        while not log.exists() or wanted not in log.read_text():
            assert running.poll() is None
            time.sleep(0.02)
        running.send_signal(signal.SIGINT)
        running.stderr.read()
        assert running.wait() == 130
    end = events(log)[-1]
    assert end["stop"] == "interrupted"
    found = json.loads(kcrf("evaluate", "-m", model, dev, "--json").out)
    assert found["accuracy"] == end["dev"]["accuracy"]
    assert end["certified_gap"] is None or end["certified_gap"] > 1e-9
    if stage == "growing":
        assert end["growth"]["stop"] == "interrupted"
        rounds = [one["pivots"]["node"] for one in end["growth"]["rounds"]]
        assert 100 < rounds[0] <= rounds[-1] < 1500
