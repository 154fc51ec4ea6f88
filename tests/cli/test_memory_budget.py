"""`--memory` and `--dry-run`: less memory, the same bytes, and a word beforehand."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from kcrf_core.chains import Problem
from kcrf_core.config import parse_config, with_options
from kcrf_core.corpora import Corpus
from kcrf_core.device import DeviceChoice, open_device
from kcrf_core.encoding import fit_encoding
from kcrf_core.features import fit_terms
from kcrf_core.objective import ObjectiveTerm
from kcrf_core.objective.solvers import Note, Observer
from kcrf_core.system import Workers, size_text
from kcrf_core.training import footprint


def write_readings(path, positions):
    """Ten real columns and three labels in sequences of 20."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(positions, 10)).round(3)
    labels = (x[:, 0] * x[:, 1] > 0).astype(int) + (x[:, 2] > 1)
    lines = ["\t".join(map(str, [*row, label])) for row, label in zip(x.tolist(), labels.tolist(), strict=True)]
    path.write_text("\n".join(line + "\n" * (t % 20 == 19) for t, line in enumerate(lines)) + "\n")


@pytest.mark.parametrize(("positions", "pivots"), [(1_500, 100), pytest.param(15_000, 800, marks=pytest.mark.slow)])
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


@pytest.mark.parametrize("command", ["train", "select-basis"])
def test_dry_run_estimates_and_does_nothing(kcrf, tmp_path, sample_data, command):
    call = [command, sample_data / "digits.conll", "--kernel", "rbf", "--size", 150, "--memory", "1M", "--dry-run"]
    done = kcrf(*call)
    assert done.code == 0 and done.err == ""
    assert done.text.startswith("memory: about ") and "150 pivots" in done.text
    done = kcrf(*call, "--json", "-o", tmp_path / "out.npz")
    found = json.loads(done.out)
    assert found["table"] == 1797 * 150 * 4 and found["held"] < found["table"] < found["total"]
    assert found["budget"] == 2**20
    assert not (tmp_path / "out.npz").exists()


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


def test_nothing_is_forecast_where_nobody_sees_it(kcrf, tmp_path, sample_data, monkeypatch):
    """Working it out goes through the data; a log has it, though."""
    calls = []
    monkeypatch.setattr("kcrf_cli.io.files.memory_note", lambda *args: calls.append(args) or Note("memory: some"))
    data, model, log = sample_data / "digits.conll", tmp_path / "model.npz", tmp_path / "log"
    options = ["--kernel", "rbf", "--size", 20]
    assert kcrf("train", data, *options, "--sigma2", 1, "-q", "-o", model).code == 0
    assert kcrf("select-basis", data, *options, "-q", "-o", model).code == 0
    assert not calls
    assert kcrf("train", data, *options, "--sigma2", 1, "-q", "--log", log, "-o", model).code == 0
    assert len(calls) == 1 and "memory: some" in log.read_text()
    assert "memory: some" in kcrf("select-basis", data, *options, "-v", "-o", model).err and len(calls) == 2


def test_a_forecast_says_what_training_would_say(kcrf, sample_data):
    """The plan of a fit that cannot be made is an error before any work."""
    call = ["train", sample_data / "pitch_accent.conll", "--kernel", "poly", "--degree", 2, "--map", "explicit"]
    done = kcrf(*call, "--dry-run")
    assert done.code == 2 and done.out == b"" and "there are real columns" in done.err


def write_conll(path, columns, labels, length):
    rows = ["\t".join(map(str, row)) for row in zip(*columns, labels, strict=True)]
    path.write_text("\n".join(line + "\n" * (t % length == length - 1) for t, line in enumerate(rows)) + "\n")


def forecast_cases():
    """Data and options whose memory goes into different things."""
    rng = np.random.default_rng(0)
    words = [f"w{k}" for k in rng.zipf(1.3, 30_000) % 20_000]
    yield "vectors of a linear model", [words], rng.integers(0, 12, 30_000), ["--sigma2", "1"]
    letters = [list("ACDEFGHIKLMNPQRSTVWY")[k] for k in rng.integers(0, 20, 6_000)]
    poly = ["--kernel", "poly", "--degree", "3", "--window", "-7..7", "--sigma2", "1"]
    yield "conjunctions", [letters], rng.integers(0, 3, 6_000), poly
    numbers = rng.normal(size=(100, 12_000)).round(2)
    yield "numbers", list(numbers), rng.integers(0, 3, 12_000), ["--sigma2", "1"]
    pivots = ["--kernel", "rbf", "--size", "1500", "--sigma2", "1", "--tolerance", "0.1"]
    yield "a table", list(numbers[:10]), rng.integers(0, 3, 12_000), pivots


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case[0], marks=pytest.mark.slow) for case in forecast_cases()],
)
def test_a_forecast_is_near_the_peak(tmp_path, case):
    _, columns, labels, options = case
    write_conll(tmp_path / "data.conll", columns, labels, 40)
    check_forecast(tmp_path, "data.conll", *options)


@pytest.mark.slow
def test_a_forecast_of_shards_is_near_the_peak(tmp_path):
    """Shards have features of their own, and weights are those of features and labels that were seen together."""
    rng = np.random.default_rng(0)
    words = [f"w{k}" for k in rng.zipf(1.3, 30_000) % 20_000]
    write_conll(tmp_path / "data.conll", [words], rng.integers(0, 12, 30_000), 40)
    featurize = [sys.executable, "-m", "kcrf_cli", "featurize", "data.conll", "-o", "data.shards", "--shards", "8"]
    subprocess.run(featurize, cwd=tmp_path, check=True, capture_output=True)
    check_forecast(tmp_path, "data.shards", "--sigma2", "1", "--observed-features")


def check_forecast(folder, data, *options):
    """In a process of its own: the interpreter is a part of both."""
    command = [sys.executable, "-m", "kcrf_cli", "train", data, *options, "--max-passes", "30", "--json"]
    command += ["--threads", "2"]
    said = json.loads(subprocess.run([*command, "--dry-run"], cwd=folder, capture_output=True, check=True).stdout)
    done = subprocess.run([*command, "-o", "model.npz"], cwd=folder, capture_output=True)
    assert done.returncode in (0, 3), done.stderr
    peak = json.loads(done.stdout)["peak_memory"]
    assert abs(said["total"] / peak - 1) < 0.25, (said, peak)


def test_a_forecast_says_what_a_device_has_to_hold(kcrf, tmp_path):
    readings, positions, pivots = tmp_path / "readings.conll", 15_000, 800
    write_readings(readings, positions)
    table = positions * pivots * 4
    call = ["train", readings, "--kernel", "rbf", "--size", pivots, "--engine", "numpy", "--dry-run"]
    lines = kcrf(*call).text.splitlines()
    assert lines[-1].startswith("on numpy: about ") and f"kernel values {size_text(table)}, other maps" in lines[-1]
    assert kcrf(*call[:-3], "--dry-run").text.splitlines()[0] != lines[0]  # which is without kernel values
    little = kcrf(*call, "--memory", table // 2).text.splitlines()[-1]
    assert f" of {size_text(table)}, the others computed again" in little
    assert kcrf("select-basis", *call[1:]).text.splitlines()[-1].startswith("on numpy: about ")


@pytest.mark.parametrize(
    ("labels", "options"),
    [
        (3, {}),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in ((12, {}), (6, {"order": 2}), (6, {"solver": "newton"}))
        ),
    ],
)
def test_arrays_of_a_device_are_as_many_as_forecast(labels, options):
    rng = np.random.default_rng(0)
    N, length = 8_000, 20
    columns = ([f"w{k}" for k in rng.integers(0, 50, N)], [f"y{k}" for k in rng.integers(0, labels, N)])
    corpus = Corpus("words", columns, np.arange(0, N + 1, length, dtype=np.int64), np.arange(1, N + 1))
    config = parse_config(with_options({}, {"sigma2": 1.0, **options}))
    encoding, dataset = fit_encoding(config, corpus)
    with Workers(1, device=open_device(DeviceChoice("numpy"))) as workers:
        said = footprint(encoding, dataset, config, None, workers.memory, 1)
        problem = Problem(dataset.labels, dataset.offsets, np.ones(dataset.sequences), labels)

        def work(fitted):
            terms = [ObjectiveTerm(term.config.clique, 1.0, term.map, term.kept) for term in fitted]
            engine = workers.device.engine(problem, terms, workers, np.float32)
            theta = engine.vectors.from_array(np.full(engine.vectors.size, 0.01))
            engine.evaluate(theta)
            if "solver" in options:
                engine.product(theta, theta)

        both = [fit_terms(encoding, dataset, config, None, workers, Observer()) for _ in range(2)]
        work(both[0])  # modules are imported
        tracemalloc.start()
        try:
            work(both[1])
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert abs((said.device - said.solver) / peak - 1) < 0.25, (said, peak)


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
