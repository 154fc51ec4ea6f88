"""Same bits at every width of vectors: for engines and numbers of threads at one width, and for AVX2 and AVX-512.

Each environment is a process of its own: KCRF_VECTORS limits our loops, OPENBLAS_CORETYPE those of OpenBLAS and
NPY_DISABLE_CPU_FEATURES those of NumPy.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from kcrf_core.errors import ConfigError
from kcrf_core.system import VECTOR_WIDTHS, Workers, vector_width

TESTS = Path(__file__).parents[1]
WIDTHS = VECTOR_WIDTHS[: VECTOR_WIDTHS.index(vector_width()) + 1]
CORES = {"baseline": "Nehalem", "avx2": "Haswell", "avx512": "SkylakeX"} if platform.machine() == "x86_64" else {}
SAME_BITS = ("composed_engine", "native_passes", "same_bits", "shard_training", "kept_places", "repeated_maps")


def numpy_features() -> str:
    """Return the instructions that NumPy would use here beyond its baseline."""
    umath = np._core._multiarray_umath if hasattr(np, "_core") else np.core._multiarray_umath
    return " ".join(name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name))


def environment(width: str, plain: bool) -> dict[str, str]:
    """Variables of a process whose loops are at most that wide; in a plain one those of BLAS and NumPy, too."""
    outer = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    found = {**outer, "KCRF_VECTORS": width}
    if plain:
        found["OPENBLAS_CORETYPE"] = CORES.get(width, "ARMV8")
        found["NPY_DISABLE_CPU_FEATURES"] = numpy_features()
    return found


@cache
def reports_of(*cases: tuple[str, bool]) -> dict[tuple[str, bool], dict]:
    """Digests of one process per environment, all started at once."""
    started = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore::ImportWarning", TESTS / "bits.py", *["loops"] * plain],
            env=environment(width, plain),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for width, plain in cases
    ]
    found = {}
    for case, process in zip(cases, started, strict=True):
        out, said = process.communicate()
        assert process.returncode == 0, f"{case}: {said}"
        found[case] = json.loads(out)
    return found


@pytest.fixture
def reports():
    return reports_of(*product(WIDTHS, (False, True)))


@pytest.mark.slow
def test_threads_and_engines_agree_at_every_width(reports):
    assert {case: found["width"] for case, found in reports.items()} == {case: case[0] for case in reports}


@pytest.mark.slow
def test_our_loops_do_not_depend_on_blas_and_numpy(reports):
    for width in WIDTHS:
        assert reports[width, False]["loops"] == reports[width, True]["loops"]


@pytest.mark.skipif(vector_width() != "avx512", reason="needs a processor with AVX-512")
def test_avx2_and_avx512_give_the_same_bits():
    two, one = reports_of(("avx2", True), ("avx512", True)).values()
    assert two["loops"] == one["loops"]


@pytest.mark.slow
@pytest.mark.parametrize(("width", "plain"), [(width, width != "avx2") for width in WIDTHS[:-1] or WIDTHS])
def test_whole_modules_of_same_bits(width, plain):
    modules = [str(TESTS / "core" / f"test_{name}.py") for name in SAME_BITS]
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-p", "no:cacheprovider", "-q", "-x", *modules]
    done = subprocess.run(command, env=environment(width, plain), capture_output=True, text=True, cwd=TESTS.parent)
    assert done.returncode == 0, done.stdout[-3000:]


def test_an_unknown_width_is_refused(monkeypatch):
    monkeypatch.setenv("KCRF_VECTORS", "avx1024")
    with pytest.raises(ConfigError, match="KCRF_VECTORS is 'avx1024', and must be baseline, avx2, avx512 or not set"):
        Workers(1)
