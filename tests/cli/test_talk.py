"""Messages of commands on stderr: a few lines, progress on a terminal, details if asked for, nothing if quiet."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from types import SimpleNamespace

import pytest

from kcrf_cli.render.figures import calibration_text

pty, fcntl, termios = (pytest.importorskip(name, reason="POSIX terminals") for name in ("pty", "fcntl", "termios"))


def on_a_terminal(arguments, **environment):
    """Exit code, stdout, and what a terminal got on stderr."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 100, 0, 0))  # without a width there is no bar
    running = subprocess.Popen(
        [sys.executable, "-m", "kcrf_cli", *map(str, arguments)], stdout=subprocess.PIPE, stderr=theirs,
        env={**os.environ, **environment},
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux: nobody has the other end any more
            break
        if not part:
            break
        seen += part
    os.close(ours)
    out = running.communicate()[0]
    return running.returncode, out, seen.decode()


@pytest.fixture(params=["train", pytest.param("crossval", marks=pytest.mark.slow)])
def command(request, first_accents, tmp_path):
    data = first_accents(30)
    if request.param == "train":
        return ["train", data, "--plain", "--sigma2", "1", "-o", tmp_path / "m.npz"]
    return ["crossval", data, "--folds", "2", "--sigma2", "1", "-o", tmp_path / "r.json"]


def test_a_line_of_progress_is_for_terminals_alone(kcrf, command):
    code, _, seen = on_a_terminal(command, NO_COLOR="1")
    assert code == 0 and ("\rfinal fit" in seen or " of 2 (fold " in seen)
    assert "\x1b[3" not in seen and "\x1b[1m" not in seen  # no colours
    assert re.search(r"\r +\r", seen)  # removed in the end
    done = kcrf(*command)
    assert done.code == 0 and "\r" not in done.err and "pass " not in done.err and "trainings:" not in done.err


def test_training_prints_seven_lines(kcrf, first_accents, tmp_path):
    data, model = first_accents(60), tmp_path / "a model.npz"
    done = kcrf("train", data, "--plain", "-o", model)
    forms = [
        r"data: 60 sequences, [\d,]+ positions, 2 labels \(0, 1\)",
        r"features: categorical: c0 \(\d+ values\), c1 \(\d+ values\); real: c2, c3, c4",
        r"model: node \(linear kernel, [\d,]+ features\), edge; [\d,]+ parameters in 1 score column",
        r"sigma2: node [\d.]+, edge [\d.]+; (Viterbi|posterior .*); accuracy [\d.]+ on 60 held-out sequences in .*",
        r"whole held-out sequences right [\d.]+ % by Viterbi and [\d.]+ % by posterior decoding",
        r"certified: within 0\.000\d+ of the optimum \(tolerance 0\.001\); \d+ passes, .*",
        re.escape(f"wrote '{model}'; next: kcrf tag -m '{model}' FILE, or kcrf evaluate -m '{model}' TEST"),
    ]
    lines = done.err.splitlines()
    assert len(lines) == len(forms)
    for line, form in zip(lines, forms, strict=True):
        assert re.fullmatch(form, line), line
    details = kcrf("train", data, "--plain", "-v", "-o", model).err.splitlines()
    assert set(lines[:4]) | set(lines[6:]) <= set(details)  # time and memory differ
    for part in (
        "choosing sigma2 on",
        "held-out log p(label)",
        "\nP ",
        " training: pass ",
    ):
        assert part in "\n".join(details), part


def test_a_basis_is_summed_up_once(kcrf, first_accents, tmp_path):
    command = ("select-basis", first_accents(30), "--kernel", "rbf", "--size", "5", "-o", tmp_path / "basis.npz")
    short, long = (kcrf(*command, *more).err.splitlines() for more in ((), ("-v",)))
    assert [line.split(":")[0] for line in short] == [
        "data",
        "features",
        "term node",
        f"wrote {tmp_path}/basis.npz; next",
    ]
    assert "rbf kernel, 5 pivots, " in short[2]
    assert len([line for line in long if line.startswith("term node: ")]) == 1


@pytest.mark.parametrize(
    ("before", "after", "kept", "text"),
    [
        (0.2594, 0.1657, True, "calibrated: {}; scores times 0.9"),
        (0.1657, 0.2594, False, "calibration skipped: it would raise {}"),
        (0.2, 0.19, False, "calibration skipped: it would lower {}, which is within the error"),
    ],
)
def test_a_calibration_in_words(before, after, kept, text):
    found = SimpleNamespace(log_loss_before=before, log_loss=after, standard_error=0.02, kept=kept, sharpness=0.9)
    assert calibration_text(found) == text.format(f"held-out log-loss from {before:.4f} to {after:.4f} (+- 0.0200)")


def test_features_by_the_data_take_the_place_of_columns(kcrf, first_accents, tmp_path):
    command = ("featurize", first_accents(30), "-o", tmp_path / "data.npz")
    short, long = (kcrf(*command, *more).err.splitlines() for more in ((), ("-v",)))
    assert [line.split(":")[0] for line in short[:2]] == ["data", "features"] and "added automatically" in short[1]
    assert short[-1] == f"wrote {tmp_path}/data.npz; next: kcrf train {tmp_path}/data.npz -o model.npz"
    assert set(short) < set(long) and len(short) == 4
    assert next(line for line in long if line not in short).startswith("features: categorical: c0 (")


def test_quiet_says_nothing_even_to_a_terminal(command):
    code, _, seen = on_a_terminal([*command, "--quiet"])
    assert code == 0 and seen == ""


def test_verbose_says_it_in_lines(kcrf, command):
    done = kcrf(*command, "-v")
    lines = done.err.splitlines()
    if command[0] == "train":
        passes = [line for line in lines if ": pass " in line]
        assert len(passes) >= 5 and all(", gap " in line and "certified" not in line for line in passes)
        assert passes[0].startswith("  training: pass 1, P ")
    else:
        assert sorted(line for line in lines if "done: " in line) == ["  done: fold 0", "  done: fold 1"]
    _, _, seen = on_a_terminal([*command, "-v"])
    assert "\r\x1b[K" not in seen and "trainings: 1" not in seen


def test_points_that_the_proof_checks_are_named(kcrf, sample_data, tmp_path):
    """P rises at the end because earlier points are evaluated again, and these lines say so."""
    done = kcrf("train", sample_data / "addresses.conll", "--sigma2", "1", "-v", "-o", tmp_path / "m.npz")
    passes = [line for line in done.err.splitlines() if line.startswith("  training: pass ")]
    checked = [line.endswith(", a point checked again") for line in passes]
    assert any(checked) and checked == sorted(checked), passes
    values = [float(line.split(", P ")[1].split(",")[0]) for line in passes]
    for value, again in zip(values, checked, strict=True):
        assert not again or any(abs(value - old) < 1e-4 * old for old in values[: checked.index(True)])


def test_quiet_and_verbose_contradict_each_other(kcrf, command):
    for flags in (["-q", "-v"], ["-v", "-q"]):
        done = kcrf(*command, *flags)
        assert done.code == 2 and "contradict each other" in done.err


def test_one_is_not_many(kcrf, tmp_path):
    data, model = tmp_path / "one.conll", tmp_path / "one.npz"
    data.write_text("a\tx\n")
    said = [kcrf("train", data, "-o", model).err, kcrf("inspect", model).text, kcrf("featurize", data, "--json").err]
    said += [kcrf("evaluate", "-m", model, data).text, kcrf("train", data, "--dev", data, "-o", model).err]
    said += [kcrf("select-basis", data, "--kernel", "rbf", "-o", tmp_path / "b.npz").err]
    assert said[0].startswith("data: 1 sequence, 1 position, 1 label (x)\n") and "1 pivot, " in said[-1]
    for text in said:
        assert not re.search(r"\b1 (?!pass\b)[a-z-]+( [a-z-]+)?s\b(?! right| of )", text), text


def test_lines_of_trials_line_up(kcrf, first_accents, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("terms: [{name: b, features: [c1]}, {name: a-rather-long-name, features: [c0]}, {type: edge}]\n")
    done = kcrf("train", first_accents(30), "-c", config, "-v", "-o", tmp_path / "m.npz")
    trials = [line for line in done.err.splitlines() if "held-out log p" in line]
    assert all(re.match(r"  sigma2: b \S+, a-rather-long-name \S+, edge \S+ +held-out", line) for line in trials)
    assert len({line.index("held-out log p") for line in trials}) == 1
    assert "score variance" not in done.err and re.search("\nsigma2: b [0-9.]+, a-rather-long-name", done.err)


def test_tag_and_evaluate_are_quiet_where_that_is_asked_for(kcrf, tmp_path):
    data, model = tmp_path / "data.conll", tmp_path / "m.npz"
    data.write_text("a\tx\nb\t?\n\nb\ty\na\tx\n\n" * 5)
    assert kcrf("train", data, "--unobserved", "?", "--sigma2", "1", "-q", "-o", model).code == 0
    loud, quiet = (kcrf("evaluate", "-m", model, data, *flags) for flags in ((), ("--quiet",)))
    assert "5 gold labels are not observed" in loud.err
    assert (quiet.code, quiet.err, quiet.out) == (0, "", loud.out)
    assert kcrf("tag", "-m", model, data, "-q") == kcrf("tag", "-m", model, data)
