"""`train --checkpoint`: runs that are killed, terminated and refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX signals")

EVERY = ("--checkpoint-every", "0.001s")


@pytest.fixture
def data(sample_data, tmp_path):
    path = tmp_path / "data.conll"
    path.write_text("\n\n".join((sample_data / "pitch_accent.conll").read_text().split("\n\n")[:40]) + "\n")
    return path


def stopped(number, wanted, *arguments):
    """Run a command and send it a signal when a line begins with what is wanted; its exit code and stderr."""
    running = subprocess.Popen(
        [sys.executable, "-m", "kcrf_cli", *map(str, arguments)], stderr=subprocess.PIPE, text=True
    )
    with running:
        seen = ""
        for line in running.stderr:
            seen += line
            if line.startswith(wanted):
                break
        running.send_signal(number)
        seen += running.stderr.read()
        return running.wait(), seen


# Options, and lines at which the process is killed.
RUNS = {
    "search": (
        ["--plain"],
        [*(f"  sigma2 search, setting {number} of about " for number in (2, 3)), "  training: pass 4"],
    ),
    "terms": (
        ["-c", "terms.yaml", "--sigma2", "10", "--tolerance", "1e-5"],
        ["  training: pass 3", "  training: pass 20"],
    ),
}


def check_same_optimum(one, other):
    """Neither bound is above an objective that was reached, and both runs chose the same sigma2."""
    assert one["sigma2"] == other["sigma2"] and one["stop"] == other["stop"] == "certified"
    assert max(one["lower_bound"], other["lower_bound"]) <= min(one["objective"], other["objective"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["search", "terms"])
def test_a_killed_run_reaches_the_same_optimum(kcrf, data, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "terms.yaml").write_text(
        "terms: [{name: a, kernel: rbf, map: {size: 60}, features: [c2, c3]}, {name: b, features: [c0, c1]}, "
        "{type: edge}]\n"
    )
    options, moments = RUNS[name]
    whole = json.loads(kcrf("train", data, *options, "-q", "--json", "-o", "whole.npz").out)
    command = ("train", data, *options, "-o", "model.npz", "--checkpoint", "run.ck", *EVERY)
    for moment in moments:
        code, _ = stopped(signal.SIGKILL, moment, *command, "-v")
        assert code == -signal.SIGKILL
        assert (tmp_path / "run.ck").exists() and not (tmp_path / "model.npz").exists()
    done = kcrf(*command, "--json")
    assert done.code == 0 and "going on from run.ck" in done.err
    check_same_optimum(whole, json.loads(done.out))
    assert not (tmp_path / "run.ck").exists()


def test_a_terminated_run_leaves_a_model_and_goes_on(kcrf, data, tmp_path):
    """The checkpoint is that of the moment, however seldom it is written."""
    model, kept = tmp_path / "m.npz", tmp_path / "run.ck"
    options = ("--plain", "--sigma2", "10", "--tolerance", "1e-7", "-o", model)
    report = json.loads(kcrf("train", data, *options, "-q", "--json").out)
    whole = model.read_bytes()
    code, seen = stopped(signal.SIGTERM, "  training: pass 6", "train", data, *options, "--checkpoint", kept, "-v")
    assert code == 143 and seen.endswith("kcrf: terminated\n"), seen
    assert model.read_bytes() != whole and kcrf("evaluate", "-m", model, data).code == 0
    done = kcrf("train", data, *options, "--checkpoint", kept, "--json")
    assert done.code == 0 and "passes of the next one" in done.err
    check_same_optimum(report, json.loads(done.out))
    assert not kept.exists()


@pytest.mark.slow
def test_shards_go_on_too(kcrf, data, tmp_path):
    folder, kept = tmp_path / "data.shards", tmp_path / "run.ck"
    assert kcrf("featurize", data, "-o", folder, "--shards", "3", "--plain", "-q").code == 0
    whole = json.loads(kcrf("train", folder, "-q", "--json", "-o", tmp_path / "whole.npz").out)
    command = ("train", folder, "-o", tmp_path / "m.npz", "--checkpoint", kept, *EVERY)
    for moment in ("  sigma2 search, setting 2 ", "  training: pass 5"):
        assert stopped(signal.SIGKILL, moment, *command, "-v")[0] == -signal.SIGKILL
        assert kept.exists()
    check_same_optimum(whole, json.loads(kcrf(*command, "--json").out))


@pytest.mark.slow
def test_other_data_and_options_are_refused(kcrf, data, tmp_path):
    kept, model = tmp_path / "run.ck", tmp_path / "m.npz"
    command = ["train", data, "--plain", "-o", model, "--checkpoint", kept]
    assert stopped(signal.SIGTERM, "  training: pass 3", *command, "--sigma2", "3", "-v")[0] == 143
    for more, words in (
        (["--sigma2", "4"], "training.sigma2 is 4.0 here and 3.0 there"),
        (["--sigma2", "3", "--calibrate"], "calibrate is True here and False there"),
        (["--sigma2", "3", "--window", "0..0"], "window"),
    ):
        done = kcrf(*command, *more)
        assert done.code == 2 and words in done.err.splitlines()[-1], done.err
        assert "run.ck is the checkpoint of another run" in done.err.splitlines()[-1]
    lines = data.read_text().splitlines()
    data.write_text("\n".join(lines[:200]) + "\n")
    assert "data differs" in kcrf(*command, "--sigma2", "3").err
    kept.write_bytes(kept.read_bytes()[:-50])
    assert kcrf(*command, "--sigma2", "3").code == 4
    assert kcrf(*command[:4], "-o", kept, "--checkpoint", kept).code == 2
    assert kcrf(*command[:-2], "--checkpoint-every", "5s").code == 2
