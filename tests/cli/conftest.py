"""Calling commands: inside this process as a shell would see them, and in a shell."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

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


@pytest.fixture
def trained(kcrf, tmp_path, sample_data):
    """A small linear model of the pitch accent data."""
    path = tmp_path / "model.npz"
    done = kcrf("train", sample_data / "pitch_accent.conll", "-o", path, "--sigma2", "1", "-q")
    assert done == Done(0, b"", "")
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
    (folder / "python").symlink_to(sys.executable)
    # A `make` within `make test` would talk of being one.
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    environment = {**own, "PATH": f"{folder}{os.pathsep}{own['PATH']}"}

    def run(line: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", line], cwd=tmp_path, env=environment, capture_output=True, text=True
        )

    return run
