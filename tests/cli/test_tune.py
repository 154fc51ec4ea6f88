"""`kcrf tune` as it is typed, stopped, gone on with, and typed wrongly."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from functools import partial
from types import SimpleNamespace

import pytest

from kcrf_cli.options import duration
from kcrf_cli.render.tuning_text import leaderboard
from kcrf_core.config import load_yaml, parse_config
from kcrf_core.scoring import choose_yardstick
from kcrf_core.selection import Candidate, Outcome, tuning as tuning_module
from kcrf_core.selection.search import Search

POSIX = pytest.mark.skipif(os.name == "nt", reason="POSIX signals")


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setitem(tuning_module.EFFORTS, "small", 1.5e9)


@pytest.fixture
def small(sample_data, tmp_path):
    """Sixty sequences of the accent data, the first column saying who spoke."""
    sequences = (sample_data / "pitch_accent.conll").read_text().strip().split("\n\n")[:60]
    path = tmp_path / "small.conll"
    named = ["\n".join(f"speaker{s % 7}\t{line}" for line in text.split("\n")) for s, text in enumerate(sequences)]
    path.write_text("\n\n".join(named) + "\n")
    return path


@pytest.fixture
def known(tmp_path):
    """A configuration with a prior variance, so that candidates are judged in no time."""
    path = tmp_path / "known.yaml"
    path.write_text("training: {sigma2: 3}\n")
    return path


@pytest.fixture
def text(small):
    """The same without its numbers, on which a search takes a second."""
    sequences = [[line.split("\t") for line in text.split("\n")] for text in small.read_text().strip().split("\n\n")]
    path = small.with_name("text.conll")
    rows = ("\n".join("\t".join([*row[:3], row[-1]]) for row in rows) for rows in sequences)
    path.write_text("\n\n".join(rows) + "\n")
    return path


def test_what_is_found_can_be_trained(kcrf, text, known, tmp_path):
    found, model, other = tmp_path / "found.yaml", tmp_path / "model.npz", tmp_path / "other.npz"
    done = kcrf("tune", text, "-c", known, "--effort", "small", "-o", found, "-m", other)
    assert done.code == 0
    assert "chosen: " in done.err and "certified" in done.err
    assert "default configuration" in done.err
    assert not done.out
    written = found.read_text()
    comments = [line for line in written.split("\n") if line.startswith("#")]
    assert any("accuracy ± SE" in line and "training" in line for line in comments)
    assert sum(line.endswith("*") for line in comments) == 1
    assert "rung" not in done.err + written
    assert kcrf("train", text, "-c", found, "-o", model, "-q").code == 0
    assert model.read_bytes() == other.read_bytes()
    assert not (tmp_path / "found.yaml.journal").exists()


def made_up(scores, chosen):
    """A search with these outcomes: names of candidates by round, the best first; the default is a candidate, too."""
    candidates = {name: Candidate((("name", name),)) for names in scores for name in names}
    found = {"folds": 2, "decode": "viterbi"}
    outcomes = [
        Outcome(candidates[name], rung, 10 * (rung + 1), 0.9 - place / 100, 0.1, 1e9, 1, 1.0, 1.0, found)
        for rung, names in reversed(list(enumerate(scores)))
        for place, name in enumerate(names)
    ]
    one = next(outcome for outcome in outcomes if outcome.candidate == candidates[chosen])
    space = SimpleNamespace(title=lambda candidate: candidate["name"], start=candidates["default"])
    about = {"outcomes": outcomes, "chosen": one, "space": space, "training_time": lambda _: 1.0}
    return SimpleNamespace(yardstick=choose_yardstick(["0", "1"]), **about)


def tables_of(lines):
    """The rows of each table, split into words, by the positions that its heading names."""
    out = {}
    for line in filter(None, lines):
        if line.startswith("on "):
            rows = out.setdefault(int(line.split()[1]), [])
        elif not line.startswith("candidate"):
            rows.append(line.split())
    return out


def test_the_leaderboard_names_each_candidate_once_beside_the_default():
    """Its last score, of up to twelve; the default and the chosen one are always there."""
    names = ["a", "b", "chosen", *"defghijklmnop", "default"]
    tables = tables_of(leaderboard(made_up([names, ["a", "chosen", "default"]], "chosen")))
    assert [row[0] for row in tables[20]] == ["a", "chosen", "default"]
    assert [row[0] for row in tables[10]] == ["b", *"defghijk", "default"]
    assert [row[0] for rows in tables.values() for row in rows if row[-1] == "*"] == ["chosen"]


def test_a_column_of_the_leaderboard_has_figures_of_one_amount_of_data():
    """Each table names its amount, which is no column, and has the default; one with the default alone is left out."""
    for scores in ([["a", "default", "b"], ["default", "a"]], [["default", "a"]], [["a", "default"], ["default"]]):
        lines = leaderboard(made_up(scores, "a"))
        assert "positions" not in "".join(line for line in lines if line.startswith("candidate"))
        tables = tables_of(lines)
        for rung, names in enumerate(scores):
            rows = tables.get(10 * (rung + 1), [])
            values = {name: f"{100 * (0.9 - place / 100):.2f}" for place, name in enumerate(names)}
            assert not rows or (len(rows) > 1 and "default" in [row[0] for row in rows])
            assert [row[1] for row in rows] == [values[row[0]] for row in rows]
    assert set(tables) == {10}  # nothing was compared on the larger amount


@pytest.mark.slow
def test_a_configuration_that_is_better_has_what_was_found(kcrf, known, tmp_path, monkeypatch):
    """Two digits tell the label together: nothing that is linear can."""
    monkeypatch.setitem(tuning_module.EFFORTS, "small", 3e9)
    rng, path, found = random.Random(0), tmp_path / "digits.conll", tmp_path / "found.yaml"
    sequences = [[(rng.randrange(4), rng.randrange(4)) for _ in range(10)] for _ in range(40)]
    path.write_text("\n\n".join("\n".join(f"a{a}\tb{b}\t{(a + b) % 2}" for a, b in each) for each in sequences) + "\n")
    done = kcrf("tune", path, "-c", known, "--effort", "small", "-o", found)
    assert "better than the default configuration by" in done.err
    config = parse_config(load_yaml(found.read_text(), "found"))
    assert all(term.sigma2 for term in config.terms)
    assert config.training.decode in ("viterbi", "posterior")


@pytest.mark.slow
def test_the_column_of_groups_is_no_feature(kcrf, text, known, tmp_path):
    found = tmp_path / "found.yaml"
    assert kcrf("tune", text, "-c", known, "--effort", "small", "--group", "c0", "-o", found, "-q").code == 0
    raw = load_yaml(found.read_text(), "found")
    assert not any("c0" in json.dumps(feature) for feature in raw["features"])


@pytest.mark.slow
def test_findings_as_json(kcrf, text, known, tmp_path):
    found = tmp_path / "found.yaml"
    done = kcrf("tune", text, "-c", known, "--effort", "small", "-o", found, "--json", "-q")
    results = json.loads(done.out)
    assert results["schema"] == 1
    assert results["chosen"]["value"] == pytest.approx(results["best"]["value"], abs=0.1)
    assert len(results["judgements"]) > 1
    assert parse_config(results["configuration"]) == parse_config(load_yaml(found.read_text(), "found"))


def test_a_budget_says_that_it_counts_time(kcrf, text, known, tmp_path, monkeypatch):
    ticks = itertools.count(0.0, 0.001)  # of a clock that a look at it sets forward, and nothing else
    monkeypatch.setattr(time, "perf_counter", lambda: next(ticks))
    monkeypatch.setattr(tuning_module, "Search", partial(Search, clock=time.perf_counter))
    done = kcrf("tune", text, "-c", known, "--budget", "1s", "-o", tmp_path / "found.yaml")
    assert done.code == 0
    assert "time limit 1.0 s, training included: the result depends on the speed of the machine" in done.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--effort", "small", "--budget", "10s"], "--effort counts work and --budget counts time"),
        (["--budget", "soon"], "'soon' is not a time such as 90s, 10m or 1.5h"),
        (["--shape", "square"], "must be rows and columns such as [16, 8] or 16x8, not 'square'"),
        (["--shape", "3x3"], "images of 3x3 pixels need 9 columns of numbers, and there are 3"),
        (["--dev", "DATA", "--group", "c0"], "--dev is the held-out data"),
        (["--dev-vectors", "a=b"], "--dev-vectors stand beside the data of --dev"),
        (["--group", "c9"], "there is no column 'c9' to group by"),
        (["--metric", "f1"], "use macro-f1"),
        (["--journal", "OUTPUT"], "two outputs have the same name"),
        (["-o", "tuned.npz"], "-o is the configuration to write and -m the model"),
        (["-m", "tuned.yml"], "-o is the configuration to write and -m the model"),
    ],
)
def test_mistakes_are_told(kcrf, small, tmp_path, options, said):
    output = tmp_path / "found.yaml"
    named = [{"DATA": str(small), "OUTPUT": str(output)}.get(option, option) for option in options]
    done = kcrf("tune", small, "-o", output, *named)
    assert done.code == 2
    assert said in done.err
    assert not output.exists()


def test_dev_data_with_unknown_labels_only_is_refused(kcrf, text, tmp_path):
    (tmp_path / "other.conll").write_text(re.sub(r"\t[01]$", "\tNEW", text.read_text(), flags=re.MULTILINE))
    done = kcrf("tune", text, "--dev", tmp_path / "other.conll", "-o", tmp_path / "found.yaml")
    assert done.code == 3 and "other.conll: no position has a known label" in done.err and "(--dev)" in done.err


@pytest.mark.parametrize(
    ("written", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("2 min", 120), ("1.5h", 5400)]
)
def test_times_are_read_as_people_write_them(written, seconds):
    assert duration(written) == seconds


def test_encoded_data_is_refused(kcrf, small, tmp_path):
    kcrf("featurize", small, "-o", tmp_path / "data.npz", "-q")
    done = kcrf("tune", tmp_path / "data.npz", "-o", tmp_path / "found.yaml")
    assert done.code == 2
    assert "encoded already" in done.err


@pytest.mark.slow
@POSIX
def test_an_interruption_leaves_the_best_so_far_and_a_journal_to_go_on_from(sample_data, tmp_path):
    found = tmp_path / "found.yaml"
    command = [sys.executable, "-m", "kcrf_cli", "tune", str(sample_data / "pitch_accent.conll"), "-o", str(found)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    journal = tmp_path / "found.yaml.journal"
    while not (journal.exists() and journal.read_text().count("\n") > 2):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said = process.communicate()[1]
    assert process.returncode == 130
    assert "writing the best so far" in said
    assert parse_config(load_yaml(found.read_text(), "found")).terms
