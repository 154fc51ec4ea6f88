"""`--engine` with a device: the same model within its certificate, the same labels, and clear words where it is not."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from kcrf_core.features import load_basis
from kcrf_core.objective.solvers import SOLVERS
from kcrf_core.system import Backend

CHOICES = ("--sigma2", "1", "--kernel", "rbf", "--size", "80", "--threads", "1")


@pytest.fixture
def data(sample_data, tmp_path):
    path = tmp_path / "digits.conll"
    path.write_text("\n\n".join((sample_data / "digits.conll").read_text().split("\n\n")[:40]) + "\n")
    return path


def test_a_model_is_within_the_gap_and_gives_the_same_labels(kcrf, data, tmp_path):
    found = {}
    for engine in (None, "numpy"):
        path = tmp_path / f"{engine}.npz"
        more = () if engine is None else ("--engine", engine)
        done = kcrf("train", data, *CHOICES, *more, "-o", path, "--json")
        assert done.code == 0, done.err
        found[engine] = json.loads(done.out)
        assert (f"engine {engine}: " in done.err) == (engine is not None)
    one, other = found[None], found["numpy"]
    assert one["stop"] == other["stop"] == "certified"
    assert other["lower_bound"] <= one["objective"] and one["lower_bound"] <= other["objective"]
    here = kcrf("tag", "-m", tmp_path / "None.npz", data, "-q")
    there = kcrf("tag", "-m", tmp_path / "None.npz", data, "--engine", "numpy")
    assert here.code == there.code == 0 and here.out == there.out
    assert "engine numpy: numpy, ready" in there.err


@pytest.mark.slow
def test_training_by_threads_imports_nothing_of_a_device(data, tmp_path):
    code = (
        f"import sys\nfrom kcrf_cli.main import main\n"
        f"try:\n    main(['train', {str(data)!r}, '--sigma2', '1', '-q', '-o', {str(tmp_path / 'm.npz')!r}])\n"
        "except SystemExit: pass\n"
        "sys.exit(any(name in sys.modules for name in ('kcrf_core.device.device', 'torch')))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0 and (tmp_path / "m.npz").exists()


def test_bases_and_cross_validation_go_there_too(kcrf, data, tmp_path):
    bases = []
    for more in ((), ("--engine", "numpy")):
        path = tmp_path / f"{len(more)}.npz"
        assert kcrf("select-basis", data, "--kernel", "rbf", "--size", "30", *more, "-o", path).code == 0
        bases.append(load_basis(path).terms[0].lines.tolist())
    assert bases[0] == bases[1]
    done = kcrf("crossval", data, *CHOICES, "--folds", "2", "--engine", "numpy")
    assert done.code == 0, done.err
    done = kcrf(
        "train",
        data,
        "--sigma2",
        "1",
        "--basis",
        path,
        "--engine",
        "numpy",
        "--certify",
        "exact",
        "-o",
        tmp_path / "m.npz",
    )
    assert done.code == 0, done.err


def test_terms_that_threads_score_are_named(kcrf, data, tmp_path):
    data.write_text("\n\n".join(data.read_text().split("\n\n")[:10]) + "\n")
    linear = tmp_path / "linear.npz"
    assert kcrf("train", data, "--kernel", "linear", "--sigma2", "1", "--engine", "numpy", "-o", linear).code == 0
    done = kcrf("tag", "-m", linear, data, "--engine", "numpy")
    assert done.code == 0 and "threads score 1 term without pivots (node)" in done.err


@pytest.mark.parametrize(
    "more",
    [
        *(("--solver", solver) for solver in SOLVERS if solver != "proximal"),
        ("--c1", "0.5"),
        ("--c1", "0.5", "--max-passes", "60", "--order", "2"),
    ],
    ids=" ".join,
)
def test_all_ways_to_train(more, kcrf, data, tmp_path):
    path = tmp_path / "m.npz"
    done = kcrf("train", data, "--kernel", "linear", "--sigma2", "1", *more, "--engine", "numpy", "-o", path, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["stop"] == "certified"


def test_pytorch_that_is_not_there(kcrf, data, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for engine in ("cuda", "torch:cpu"):
        done = kcrf("train", data, *CHOICES, "--engine", engine, "-o", tmp_path / "m.npz", "-q")
        assert done.code == 2
        assert f"the engine '{engine}' needs PyTorch, which is not installed: pip install torch" in done.err
        assert done.err.count("\n") <= 3


@pytest.mark.parametrize("error", ["ImportError", "OSError", "RuntimeError", "AttributeError"])
def test_pytorch_that_cannot_be_imported(kcrf, data, tmp_path, monkeypatch, error):
    """As on clusters where a library of CUDA is missing, or another version of it is found first."""
    reason = "libcudnn.so.9: cannot open shared object file: No such file or directory"
    (tmp_path / "torch.py").write_text(f"raise {error}('{reason}\\n  and more')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    for command in (("train", *CHOICES, "-o", tmp_path / "m.npz"), ("crossval", *CHOICES)):
        done = kcrf(command[0], data, *command[1:], "--engine", "torch:cpu", "-q")
        assert done.code == 1 and f"cannot be imported ({reason} and more): install the one for" in done.err
        assert done.err.count("\n") == 1 and "Traceback" not in done.err


@pytest.mark.parametrize("engine", ["cuda:x", "torch", "cudaa", "torch:cuda"])
def test_engines_that_nobody_knows(kcrf, data, tmp_path, engine):
    done = kcrf("train", data, *CHOICES, "--engine", engine, "-o", tmp_path / "m.npz")
    assert done.code == 2 and "unknown engine" in done.err


def test_options_that_do_not_go_with_it(kcrf, data, tmp_path):
    done = kcrf("train", data, "--engine", "numpy", "--engine-timeout", "3", "-o", tmp_path / "m.npz")
    assert done.code == 2 and "--engine-timeout is for a cluster: numpy is none" in done.err
    done = kcrf("crossval", data, "--engine", "numpy", "--jobs", "2")
    assert done.code == 2 and "leave out --jobs" in done.err


class TooSmall(Backend):
    """A GPU without room."""

    def empty(self, *given):
        raise RuntimeError("out of memory")

    def is_out_of_memory(self, error):
        return True


def test_too_little_memory(kcrf, data, tmp_path, monkeypatch):
    monkeypatch.setattr("kcrf_core.system.backend.Backend", TooSmall)
    done = kcrf("train", data, *CHOICES, "--engine", "numpy", "-o", tmp_path / "m.npz", "-q")
    assert done.code == 1 and "too little memory" in done.err and "--memory" in done.err
    assert "Traceback" not in done.err


def test_the_estimator_takes_it_too(data):
    from kcrf_core import KernelCRF

    sequences = [block.split("\n") for block in data.read_text().strip().split("\n\n")]
    X = [[[float(value) for value in line.split()[:-1]] for line in lines] for lines in sequences]
    y = [[line.split()[-1] for line in lines] for lines in sequences]
    found = [
        KernelCRF(kernel="rbf", size=40, sigma2=1.0, engine=engine).fit(X, y).predict(X) for engine in (None, "numpy")
    ]
    assert found[0] == found[1]
