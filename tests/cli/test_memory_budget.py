"""`--memory`: less memory, the same bytes."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

import numpy as np
import pytest


def write_readings(path, positions):
    """Ten real columns and three labels in sequences of 20."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(positions, 10)).round(3)
    labels = (x[:, 0] * x[:, 1] > 0).astype(int) + (x[:, 2] > 1)
    lines = ["\t".join(map(str, [*row, label])) for row, label in zip(x.tolist(), labels.tolist(), strict=True)]
    path.write_text("\n".join(line + "\n" * (t % 20 == 19) for t, line in enumerate(lines)) + "\n")


@pytest.mark.slow
@pytest.mark.parametrize(("positions", "pivots"), [(1_500, 100), (15_000, 800)])
def test_less_memory_gives_the_same_bytes(tmp_path, positions, pivots):
    """And, where kernel values are most of it, a lower peak."""
    readings, table, peaks = tmp_path / "readings.conll", positions * pivots * 4, []
    write_readings(readings, positions)
    for name, memory in (("ample", "2G"), ("little", str(table // 4))):
        options = f"--kernel rbf --size {pivots} --sigma2 1 --tolerance 0.05 --memory {memory} --threads 2 --json"
        command = [sys.executable, "-m", "kcrf_cli", "train", str(readings), "-o", str(tmp_path / name)]
        done = subprocess.run([*command, *options.split()], capture_output=True, text=True, check=True)
        peaks.append(json.loads(done.stdout)["peak_memory"])
        assert ("computed again" in done.stderr) == (name == "little")
    assert (tmp_path / "ample").read_bytes() == (tmp_path / "little").read_bytes()
    assert peaks[1] < table // 4 + 300 * 2**20
    assert positions < 15_000 or peaks[1] < peaks[0] - table // 2


@pytest.mark.parametrize(
    ("options", "sequences", "size", "little"),
    [
        (["--solver", "auto", "--sigma2", "1"], 40, 30, "25K"),
        *(
            pytest.param(options, 198, 150, "600K", marks=pytest.mark.slow)
            for options in (["--solver", "auto"], ["--solver", "block-jacobi", "--tolerance", "0.01"])
        ),
    ],
)
def test_training_is_the_same_in_little_memory(kcrf, tmp_path, sample_data, options, sequences, size, little):
    """A search for sigma2 works on samples, whose kernel values are held or not as well."""
    data = tmp_path / "digits.conll"
    data.write_text("\n\n".join((sample_data / "digits.conll").read_text().split("\n\n")[:sequences]) + "\n")
    for name, memory in (("ample", "2G"), ("little", little)):
        arguments = ["--kernel", "rbf", "--size", size, "--memory", memory, "-q", "-o", tmp_path / name]
        done = kcrf("train", data, *arguments, *options)
        assert done.code == 0, done.err
    assert (tmp_path / "ample").read_bytes() == (tmp_path / "little").read_bytes()


def test_output_is_needed_otherwise(kcrf, sample_data):
    done = kcrf("train", sample_data / "digits.conll")
    assert done.code == 2 and "-o" in done.err


@pytest.mark.parametrize("text", ["4X", "0", "-1G", "", "1e400T", "9999999999T", "many"])
def test_sizes_that_are_none(kcrf, tmp_path, sample_data, text):
    done = kcrf("train", sample_data / "digits.conll", "--memory", text, "-o", tmp_path / "model.npz")
    assert done.code == 2 and "--memory" in done.err and "500M" in done.err


@pytest.mark.parametrize(
    ("data", "options", "word"),
    [
        ("pitch_accent.conll", ["-c", "pairs.yaml", "--kernel", "poly", "--map", "explicit"], "conjunctions"),
        ("digits.conll", ["--kernel", "rbf", "--map", "full"], "inputs"),
        ("digits.conll", ["--kernel", "rbf", "--size", "1500"], "pivots"),
    ],
)
def test_what_cannot_fit_is_refused_at_once(kcrf, tmp_path, sample_data, monkeypatch, data, options, word):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.yaml").write_text("features: [{column: c0}, {column: c1}]\n")
    done = kcrf("train", sample_data / data, *options, "--memory", "1M", "-o", "model.npz")
    last = done.err.splitlines()[-1]
    assert done.code == 2 and last.startswith("kcrf: ") and word in last
    assert not (tmp_path / "model.npz").exists()


@pytest.mark.slow  # without a look at memory, one of as many lines is in test_hostile_data.py
def test_a_sequence_of_very_many_lines(tmp_path):
    """A million lines with ten numbers and five labels in one sequence may take 2 GiB, a tenth of them a tenth."""
    N, Y = 100_000, 5
    rng = np.random.default_rng(0)
    labels = np.cumsum(rng.random(N) < 0.01) % Y
    x = (rng.normal(size=(Y, 10))[labels] + rng.normal(size=(N, 10))).round(4)
    data, model = tmp_path / "long.conll", tmp_path / "model.npz"
    rows = zip(x.tolist(), labels.tolist(), strict=True)
    data.write_text("".join("\t".join(map(str, [*row, f"L{label}"])) + "\n" for row, label in rows))
    script = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
    )
    for call in (
        ["train", data, "--kernel", "linear", "-o", model, "--sigma2", "1", "--tolerance", "0.1"],
        ["tag", "-m", model, data, "--marginals", "all", "-o", tmp_path / "tagged.conll"],
        ["evaluate", "-m", model, data, "--html", tmp_path / "page.html"],
        ["evaluate", tmp_path / "tagged.conll"],
    ):
        command = [sys.executable, "-c", script, sys.executable, "-m", "kcrf_cli", *map(str, call)]
        peak = 1024 * int(subprocess.run(command, capture_output=True, check=True).stdout)
        assert peak < 100 * 2**20 + 2**31 // 10, call[0]


@pytest.mark.skipif(sys.platform != "linux", reason="a limit of address space that is heeded")
@pytest.mark.parametrize("options", [(), ("--c1", "1")])
def test_little_address_space_ends_with_one_line(first_accents, tmp_path, options):
    """Wherever it ends; a small part of these limits left OpenBLAS waiting for ever."""
    model, codes = tmp_path / "model.npz", []
    command = [
        sys.executable,
        "-m",
        "kcrf_cli",
        "train",
        str(first_accents(20)),
        "--plain",
        "--sigma2",
        "1",
        "-q",
    ]
    for limit in (60, 200, 240):
        line = f"ulimit -v {limit << 10}; exec {shlex.join([*command, *options, '-o', str(model)])}"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
        codes.append(done.returncode)
        assert done.returncode == 0 or (done.returncode == 1 and "Traceback" not in done.stderr), done
    assert codes[0] == 1
