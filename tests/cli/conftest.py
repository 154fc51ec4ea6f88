"""Calling commands: inside this process as a shell would see them, and in a shell."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest

from kcrf_cli.main import main

PROGRAM = Path(__file__).parents[1] / "remembered.py"


@dataclass
class Done:
    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()


@pytest.fixture
def kcrf(capsysbinary, monkeypatch):
    """`kcrf("tag", "-m", path, stdin=b"...")` gives exit code, stdout and stderr."""
    sigterm = signal.getsignal(signal.SIGTERM)

    def call(*arguments, stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = 0
        try:
            main([str(argument) for argument in arguments], prog_name="kcrf")
        except SystemExit as error:
            code = error.code or 0
        captured = capsysbinary.readouterr()
        return Done(code, captured.out, captured.err.decode())

    yield call
    signal.signal(signal.SIGTERM, sigterm)


def without_others():
    """Leave out the comparison of default features with others, which takes seconds."""
    return patch("kcrf_core.training.screening.alternatives", lambda *about: {})


@pytest.fixture(autouse=True)
def default_features(request):
    """Take default features but where others are tested."""
    with nullcontext() if request.path.name.startswith("test_compared") else without_others():
        yield


@pytest.fixture
def first_accents(sample_data, tmp_path):
    """`first_accents(60)` is a file with the first sequences of the pitch accent data; 150 make three shards."""

    def write(count: int) -> Path:
        path = tmp_path / f"first{count}.conll"
        sequences = (sample_data / "pitch_accent.conll").read_text().strip().split("\n\n")
        path.write_text("\n\n".join(sequences[:count]) + "\n")
        return path

    return write


@pytest.fixture(scope="session")
def trained_once(tmp_path_factory, sample_data):
    """A small linear model of the pitch accent data, as bytes."""
    path, printed = tmp_path_factory.mktemp("trained") / "model.npz", io.StringIO()
    arguments = ["train", str(sample_data / "pitch_accent.conll"), "-o", str(path), "--sigma2", "1", "-q"]
    sigterm = signal.getsignal(signal.SIGTERM)
    with redirect_stdout(printed), redirect_stderr(printed), pytest.raises(SystemExit) as done, without_others():
        main(arguments, prog_name="kcrf")
    signal.signal(signal.SIGTERM, sigterm)
    assert not done.value.code and printed.getvalue() == ""
    return path.read_bytes()


@pytest.fixture
def trained(trained_once, tmp_path):
    """A copy of that model, for one test."""
    path = tmp_path / "model.npz"
    path.write_bytes(trained_once)
    return path


@pytest.fixture(scope="session")
def remembered(tmp_path_factory):
    """A folder of this test session, which all of its processes share."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "remembered"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def server(remembered):
    """The address at which commands are asked for, see `remembered.py`; BLAS has no threads that a fork would lose."""
    with tempfile.TemporaryDirectory(prefix="kcrf-") as folder:  # names of sockets must be short
        address = os.path.join(folder, "socket")
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        process = subprocess.Popen(
            [sys.executable, PROGRAM, remembered, address],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with process:
            assert process.stdout.readline() == b"ready\n"
            yield address
            process.stdin.close()


@pytest.fixture
def shell(tmp_path, sample_data, server):
    """Run command lines in a fresh directory that has sample_data, with `kcrf` and this `python` on the path."""
    (tmp_path / "sample_data").symlink_to(sample_data)
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "kcrf"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{PROGRAM}" "{server}" -- "$@"\n')
    script.chmod(0o755)
    # A link would leave the virtual environment, as Python looks for its pyvenv.cfg beside the link.
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    # A `make` within `make test` would talk of being one.
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    environment = {**own, "PATH": f"{folder}{os.pathsep}{own['PATH']}"}

    def run(line: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", line], cwd=tmp_path, env=environment, capture_output=True, text=True
        )

    return run
