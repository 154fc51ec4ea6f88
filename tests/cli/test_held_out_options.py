"""What is held out, as it is typed: groups, files of folds, blocks."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest


@pytest.fixture
def spoken(sample_data, tmp_path):
    """Three dozen sequences of the accent data, the first column saying who spoke."""
    sequences = (sample_data / "pitch_accent.conll").read_text().strip().split("\n\n")[:36]
    path = tmp_path / "spoken.conll"
    named = ["\n".join(f"speaker{s % 12}\t{line}" for line in text.split("\n")) for s, text in enumerate(sequences)]
    path.write_text("\n\n".join(named) + "\n")
    return path


@pytest.fixture
def long(sample_data, tmp_path):
    """The same data as two long sequences."""
    sequences = (sample_data / "pitch_accent.conll").read_text().strip().split("\n\n")[:50]
    path = tmp_path / "long.conll"
    path.write_text("\n\n".join("\n".join(sequences[part::2]) for part in (0, 1)) + "\n")
    return path


def trained(kcrf, path, tmp_path, *more):
    done = kcrf("train", path, "-o", tmp_path / "m.npz", "--json", "--threads", "1", *more)
    assert done.code == 0, done.err
    return json.loads(done.text), done.err


def test_groups_are_held_out_together_and_are_no_feature(kcrf, spoken, tmp_path):
    figures, told = trained(kcrf, spoken, tmp_path, "--group", "c0")
    assert figures["held_out"]["held_out"] == "groups" and figures["held_out"]["units"] == 12
    assert "12 held-out groups" in told
    shown = kcrf("inspect", tmp_path / "m.npz", "--json")
    assert "speaker" not in shown.text


def test_folds_of_a_file(kcrf, spoken, tmp_path):
    folds = tmp_path / "folds.txt"
    folds.write_text("".join(f"{s % 2}\n" for s in range(36)))
    figures, _ = trained(kcrf, spoken, tmp_path, "--folds-file", folds)
    assert figures["held_out"]["folds"] == 2 and figures["held_out"]["units"] == 36
    folds.write_text("0\n1\n")
    done = kcrf("train", spoken, "-o", tmp_path / "m.npz", "--folds-file", folds)
    assert done.code != 0 and "2 folds, but" in done.err


@pytest.mark.slow
def test_few_long_sequences_and_blocks_that_are_asked_for(kcrf, long, spoken, tmp_path):
    figures, told = trained(kcrf, long, tmp_path)
    assert figures["held_out"]["held_out"] == "blocks" and figures["held_out"]["units"] > 10
    assert "held-out blocks with gaps of" in told
    figures, _ = trained(kcrf, spoken, tmp_path, "--block", "50")
    assert figures["held_out"]["held_out"] == "blocks"


def test_only_one_of_them(kcrf, spoken, tmp_path):
    done = kcrf("train", spoken, "-o", tmp_path / "m.npz", "--group", "c0", "--block", "20")
    assert done.code == 2 and "--group and --block both define what is held out together" in done.err


def test_cross_validation_in_blocks_says_so_and_goes_on(kcrf, long, tmp_path):
    results = tmp_path / "r.json"
    more = ("--folds", "3", "--sigma2", "1", "--threads", "1", "--journal", tmp_path / "j")
    done = kcrf("crossval", long, "-o", results, *more)
    assert done.code == 0, done.err
    found = json.loads(results.read_text())
    assert found["divided_by"] == "block" and found["blocks"] > 10 and found["gap"] >= 2
    folds = found["settings"][0]["folds"]
    assert sum(fold["positions"] for fold in folds) == found["positions"]
    assert '"blocks"' in (tmp_path / "j").read_text()
    again = kcrf("crossval", long, "-o", results, *more)
    assert "3 of 3 trainings are taken from" in again.err
    # Blocks of another length are other folds.
    other = kcrf("crossval", long, "-o", results, "--block", "40", *more)
    assert other.code == 0 and "taken from" not in other.err


def test_intervals_over_blocks(kcrf, long, tmp_path):
    trained(kcrf, long, tmp_path, "--sigma2", "1")
    done = kcrf("evaluate", "-m", tmp_path / "m.npz", long, "--bootstrap", "100")
    (blocks,) = set(re.findall(r"over ([0-9]+ blocks)", done.text))
    page = tmp_path / "page.html"
    both = ("-m", tmp_path / "m.npz", "--compare", tmp_path / "m.npz")
    done = kcrf("evaluate", *both, long, "--metric", "macro-f1", "--html", page)
    shown = done.text + page.read_text()
    assert done.code == 0 and shown.count(f"over {blocks}") >= 6 and "over sequences" not in shown


def test_groups_are_resampled_and_left_out_one_at_a_time(kcrf, tmp_path):
    """Labels of three subjects are random, those of others are not: intervals over subjects are wider."""
    generator, text = np.random.default_rng(0), "subject,word,label\n"
    for subject in range(6):
        for _ in range(8):
            for word in generator.integers(2, size=4).tolist():
                text += f"S{subject},w{word},{'AB'[generator.integers(2) if subject < 3 else word]}\n"
            text += "\n"
    data, model, out = tmp_path / "d.csv", tmp_path / "m.npz", tmp_path / "out.csv"
    data.write_text(text)
    by = ("--group", "subject")
    done = kcrf("crossval", data, *by, "--header", "--sigma2", "1", "--metric", "accuracy", "--predictions", out)
    assert done.code == 0 and "one fold for each of the 6 groups (--folds K for fewer)" in done.err
    assert all(f"\nS{subject} " in done.text for subject in range(6)) and "standard error over 6 groups" in done.text
    assert kcrf("train", data, "-o", model, *by, "--header", "--sigma2", "1", "-q").code == 0
    widths = []
    for given in (("-m", model, data), (out, "--header")):
        for group in ((), by):
            found = json.loads(kcrf("evaluate", *given, *group, "--bootstrap", "200", "--json", "-q").out)
            assert found.get("groups") == (6 if group else None)
            interval = found["intervals"]["figures"]["accuracy"]
            widths.append(interval["high"] - interval["low"])
    assert widths[1] > widths[0] and widths[3] > widths[2]
    done = kcrf("evaluate", out, "--header", "--group", "subjects")
    assert done.code == 2 and "did you mean 'subject'" in done.err
    done = kcrf("evaluate", out, *by, "--block", "3")
    assert done.code == 2 and "--group and --block both define what is resampled" in done.err
    few = kcrf("crossval", data, *by, "--header", "--folds", "2", "--sigma2", "1")
    assert few.code == 0 and "one fold for each" not in few.err


def test_a_calibration_keeps_to_groups(kcrf, tmp_path):
    """Each group has a word of its own, with labels of its own."""
    generator = np.random.default_rng(1)
    text = ""
    for subject in range(10):
        favourite = generator.random()
        for _ in range(6):
            for _ in range(4):
                text += f"w{subject} g{subject} {'AB'[int(generator.random() < favourite)]}\n"
            text += "\n"
    (tmp_path / "data.conll").write_text(text)
    options = ("--plain", "--window", "0..0", "--sigma2", "3", "--calibrate", "--json", "-q", "-o", tmp_path / "m.npz")
    found = [
        json.loads(kcrf("train", tmp_path / "data.conll", *more, *options).out)["calibration"]["log_loss_before"]
        for more in ((), ("--group", "c1"))
    ]
    assert found[1] > found[0] + 0.05


@pytest.mark.slow
def test_near_copies_are_held_out_together(kcrf, sample_data, tmp_path):
    sequences = (sample_data / "pitch_accent.conll").read_text().strip().split("\n\n")[:40]
    sequences[0] = "\n".join(sequences[0].split("\n")[:4])  # too short to be a copy
    path = tmp_path / "twice.conll"
    path.write_text("\n\n".join([*sequences, *sequences[:10]]) + "\n")
    line = "near copies: 18 of 50 sequences resemble others, and are held out in 9 groups (--near-copies)"
    assert kcrf("featurize", path, "-o", tmp_path / "data.npz").code == 0
    for data in (path, tmp_path / "data.npz"):
        figures, told = trained(kcrf, data, tmp_path)
        assert told.count(line) == 1 and figures["held_out"]["units"] == 41
    figures, told = trained(kcrf, path, tmp_path, "--near-copies", "ignore")
    assert "near copies" not in told and figures["held_out"]["units"] == 50
    done = kcrf("crossval", path, "--sigma2", "1", "--folds", "2", "--threads", "1")
    assert done.code == 0 and done.err.count(line) == 1
    one = ("--folds", "25", "--only-fold", "0", "--journal", tmp_path / "journal")
    done = kcrf("crossval", path, "--sigma2", "1", *one, "--threads", "1")
    assert done.code == 0 and "16 sequences in 8 groups are too many to be kept together" in done.err
