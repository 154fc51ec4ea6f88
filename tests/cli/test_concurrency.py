"""Commands that run at the same time on the same files: all of one result or all of another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from kcrf_core.files import replacing

POSIX = pytest.mark.skipif(os.name == "nt", reason="open files cannot be replaced there")


def command(*arguments):
    return [sys.executable, "-m", "kcrf_cli", *map(str, arguments)]


def start(*arguments):
    return subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.fixture
def data(first_accents):
    return first_accents(20)


@pytest.fixture
def two_models(kcrf, data, tmp_path):
    """Models that label differently: one hardly looks at the words."""
    paths = tmp_path / "a.npz", tmp_path / "b.npz"
    for path, sigma2 in zip(paths, ("1", "1e-6"), strict=True):
        assert kcrf("train", data, "--sigma2", sigma2, "-q", "-o", path).code == 0
    return paths


@pytest.mark.slow
@POSIX
def test_trainings_into_one_output_leave_the_model_of_one(two_models, data, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    output = shared / "model.npz"
    running = [start("train", data, "--sigma2", sigma2, "-q", "-o", output) for sigma2 in ("1", "1e-6") * 2]
    for each in running:
        assert each.communicate() == (b"", b"") and each.returncode == 0
    assert output.read_bytes() in [path.read_bytes() for path in two_models]
    assert list(shared.iterdir()) == [output]


@POSIX
@pytest.mark.parametrize("count", [2, pytest.param(12, marks=pytest.mark.slow)])
def test_taggers_of_a_model_that_is_replaced_use_one_or_the_other(kcrf, two_models, data, tmp_path, count):
    shared = tmp_path / "shared.npz"
    contents = [path.read_bytes() for path in two_models]
    right = [kcrf("tag", "-m", path, data).out for path in two_models]
    assert right[0] != right[1]
    shared.write_bytes(contents[0])
    done = threading.Event()

    def replace_it():
        turn = 0
        while not done.is_set():
            turn += 1
            with replacing(shared) as stream:
                stream.write(contents[turn % 2])

    with ThreadPoolExecutor(5) as pool:
        writer = pool.submit(replace_it)
        try:
            tagged = list(
                pool.map(
                    lambda _: subprocess.run(command("tag", "-m", shared, data), capture_output=True), range(count)
                )
            )
        finally:
            done.set()
        writer.result()
    assert all(each.returncode == 0 and each.stderr == b"" and each.stdout in right for each in tagged)


def test_two_runs_of_crossval_may_have_one_output(data, tmp_path):
    output = tmp_path / "r.json"
    options = ("crossval", data, "--folds", "2", "--sigma2", "1", "-q", "-o", output)
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda _: subprocess.run(command(*options), capture_output=True), range(2)))
    assert [each.returncode for each in done] == [0, 0], done
    assert json.loads(output.read_text())["folds"] == 2 and not (tmp_path / "r.json.journal").exists()
