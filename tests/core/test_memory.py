"""A memory budget decides what is held and what is computed again, and never the result."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from kcrf_core.chains import EDGE, NODE, Problem
from kcrf_core.kernels import Inputs, Pivots, PolynomialKernel
from kcrf_core.kernels.plain import LinearKernel, RBFKernel
from kcrf_core.maps import ReducedMap, pivot_choice as basis
from kcrf_core.maps.reduced import KernelRows
from kcrf_core.objective import ObjectiveTerm
from kcrf_core.system import Budget, Workers, size_text
from kcrf_core.system.memory import free_memory
from problems import on_threads, random_inputs

KERNELS = [LinearKernel(), PolynomialKernel(3, 0.1, 1.0, 0.5), RBFKernel(0.05)]


def with_attributes(rng: np.random.Generator, inputs: Inputs) -> Inputs:
    bag = scipy.sparse.random_array((len(inputs), 40), density=0.1, rng=rng, format="csr")
    bag.sort_indices()
    return Inputs(inputs.codes, inputs.sizes, inputs.real, bag, inputs.unseen)


def test_budget_grants_what_is_left_and_takes_it_back():
    class Owner:
        pass

    budget, first, second = Budget(100), Owner(), Owner()
    assert budget.reserve(first, 70, 10) == 70
    assert budget.reserve(second, 70, 8) == 24
    del first
    gc.collect()
    assert budget.reserve(Owner(), 70, 10) == 70


def test_free_memory_is_a_sane_number():
    assert 1 << 20 < free_memory() < 1 << 50
    assert Budget().total < free_memory()


LIMITED = """
import re, resource, sys
import numpy
from kcrf_core.errors import NoRoomError
from kcrf_core.system import scipy_module

taken = int(re.search(r"VmSize:\\s+(\\d+)", open("/proc/self/status").read())[1]) << 10
hard = resource.getrlimit(resource.RLIMIT_AS)[1]
resource.setrlimit(resource.RLIMIT_AS, (taken + (int(sys.argv[1]) << 20), hard))
try:
    scipy_module("linalg")
    print("loaded")
except NoRoomError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc, and a limit of address space that is heeded")
@pytest.mark.parametrize(("room", "said"), [(20, "too little address space"), (60, "too little"), (400, "loaded")])
def test_scipy_is_not_loaded_where_its_blas_would_wait_for_memory(room, said):
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", LIMITED, str(room)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and said in done.stdout, done


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 bytes"), (999, "999 bytes"), (1536, "1.5 KiB"), (1 << 32, "4 GiB"), (1023e6, "976 MiB")]
)
def test_sizes_for_people(count, text):
    assert size_text(count) == text


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("pivots", [7, 100, 1100])
@pytest.mark.parametrize("attributes", [False, True])
def test_rows_have_the_same_bits_in_any_company(rng, kernel, dtype, pivots, attributes):
    inputs = random_inputs(rng, 1500, 3, 37)
    if attributes:
        inputs = with_attributes(rng, inputs)
    prepared = Pivots(inputs.take(np.arange(pivots)), kernel, dtype)
    whole = prepared.gram(inputs)
    order = rng.permutation(1500)
    np.testing.assert_array_equal(prepared.gram(inputs.take(order)), whole[order])
    for rows in (slice(3, 4), slice(60, 71), slice(100, 1163)):
        np.testing.assert_array_equal(prepared.gram(inputs.take(rows)), whole[rows])


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_rows_are_the_same_however_many_are_held(rng, share):
    inputs = random_inputs(rng, 3000, 2, 5)
    pivots = inputs.take(np.arange(0, 3000, 10))
    row = len(pivots) * 4
    rows = KernelRows.of(inputs, KERNELS[1], pivots, Budget(int(share * 3000) * row), np.float32)
    expected = Pivots(pivots, KERNELS[1], np.float32).gram(inputs)
    for _ in range(2):  # computed, and held or computed again
        for part in (slice(0, 3000), slice(2990, 3000), slice(5, 2900)):
            found = [values.copy() for _, values in rows.pieces(part)]
            np.testing.assert_array_equal(np.concatenate(found), expected[part])
    chosen = np.arange(1, 3000, 3)
    picked = rows.subset(chosen)
    np.testing.assert_array_equal(np.concatenate([v for _, v in picked.pieces(slice(0, 1000))]), expected[chosen])


@pytest.mark.each_choice
@pytest.mark.parametrize("method", list(basis.METHODS))
@pytest.mark.parametrize("share", [0.0, 0.25])
def test_pivots_are_the_same_in_little_memory(rng, method, share):
    inputs = random_inputs(rng, 9000, 2, 6)
    found = []
    for total in (None, int(share * 9000 * 120 * 4)):
        with Workers(2, total) as workers:
            make = np.random.default_rng(3)
            found.append(basis.choose_pivots(method, inputs, KERNELS[2], 120, make, workers, residual=0.01))
    for part in ("rows", "residual", "curve"):
        np.testing.assert_array_equal(getattr(found[0], part), getattr(found[1], part))


@pytest.mark.each_choice
@pytest.mark.parametrize("share", [0.0, 0.25])
@pytest.mark.parametrize("labels", [2, 5])
def test_p_and_gradient_are_the_same_in_little_memory(rng, share, labels):
    """Sequences of 40 positions, and one of 5,000 that is worked on piece by piece."""
    inputs = random_inputs(rng, 9000, 2, 6)
    pivots = inputs.take(np.arange(0, 9000, 30))
    offsets = np.concatenate([np.arange(0, 4001, 40), [9000]])
    problem = Problem(rng.integers(0, labels, 9000).astype(np.int32), offsets, np.ones(len(offsets) - 1), labels)
    curve = np.linspace(1, 0.1, 301)
    found = []
    for total in (None, int(share * 9000 * 300 * 4)):
        with Workers(2, total) as workers:
            phi = ReducedMap.of(inputs, KERNELS[2], pivots, curve, workers, np.float32)
            objective = on_threads(
                problem, [ObjectiveTerm(NODE, 2.0, phi), ObjectiveTerm(EDGE, 1.0)], workers, np.float32
            )
            theta = np.random.default_rng(0).normal(0, 0.1, objective.size)
            for own in (objective, objective.in_double(held=True), objective.in_double()):
                now = own.evaluate(theta)
                found.append((now.value, now.gradient, own.hessian_product(theta, theta)))
            few = phi.leading(50)
            part = on_threads(problem, [ObjectiveTerm(NODE, 2.0, few), ObjectiveTerm(EDGE, 1.0)], workers, np.float32)
            found.append((part.evaluate(theta[: part.size]).value, phi.residual(workers), few.features(workers)))
    half = len(found) // 2
    for ample, little in zip(found[:half], found[half:], strict=True):
        assert ample[0] == little[0]
        np.testing.assert_array_equal(ample[1], little[1])
        np.testing.assert_array_equal(ample[2], little[2])


def test_threads_never_see_rows_half_computed(rng):
    """Threads that ask for the same rows at the same time fill the same blocks."""
    inputs = random_inputs(rng, 2000, 0, 20)
    pivots = inputs.take(np.arange(1500))
    expected = Pivots(pivots, KERNELS[2], np.float32).gram(inputs)
    for _ in range(5):
        rows = KernelRows.of(inputs, KERNELS[2], pivots, Budget(1 << 30), np.float32)

        def same(first: int, rows: KernelRows = rows) -> bool:
            (found,) = (values for _, values in rows.pieces(slice(first, first + 300)))
            return np.array_equal(found, expected[first : first + 300])

        with Workers(4) as workers:
            assert all(workers.map(same, np.repeat(np.arange(0, 1700, 50), 4).tolist()))


GiB = 1 << 30
# What a kernel tells of control groups, and the bytes that they leave.
GROUPS = {
    "version 2": (
        {
            "/proc/self/cgroup": "0::/a/b",
            "/sys/fs/cgroup/a/b/memory.max": 8 * GiB,
            "/sys/fs/cgroup/a/b/memory.current": GiB,
        },
        7 * GiB,
    ),
    "a limit further up": (
        {
            "/proc/self/cgroup": "0::/a/b",
            "/sys/fs/cgroup/a/b/memory.max": "max",
            "/sys/fs/cgroup/a/b/memory.current": GiB,
            "/sys/fs/cgroup/a/memory.max": 4 * GiB,
            "/sys/fs/cgroup/a/memory.current": 2 * GiB,
        },
        2 * GiB,
    ),
    "version 1": (
        {
            "/proc/self/cgroup": "9:name=systemd:/x\n4:cpu,memory:/jobs/7\n0::/",
            "/sys/fs/cgroup/memory/jobs/7/memory.limit_in_bytes": 3 * GiB,
            "/sys/fs/cgroup/memory/jobs/7/memory.usage_in_bytes": GiB,
        },
        2 * GiB,
    ),
    "version 1, names of the machine": (
        {
            "/proc/self/cgroup": "4:memory:/docker/0123",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes": 5 * GiB,
            "/sys/fs/cgroup/memory/memory.usage_in_bytes": 2 * GiB,
            "/sys/fs/cgroup/memory/memory.stat": f"cache 5\ntotal_inactive_file {GiB}",
        },
        4 * GiB,
    ),
    "files that can be forgotten": (
        {
            "/proc/self/cgroup": "0::/",
            "/sys/fs/cgroup/memory.max": 4 * GiB,
            "/sys/fs/cgroup/memory.current": 4 * GiB,
            "/sys/fs/cgroup/memory.stat": f"anon 7\ninactive_file {3 * GiB}",
        },
        3 * GiB,
    ),
    "no group": ({}, 50 * GiB),
}


@pytest.mark.parametrize("name", GROUPS)
def test_limits_of_control_groups_are_kept(monkeypatch, name):
    files, left = GROUPS[name]
    files = {"/proc/meminfo": f"MemAvailable: {50 * GiB // 1024} kB", **files}

    def read(path, encoding):
        if str(path) not in files:
            raise FileNotFoundError(path)
        return f"{files[str(path)]}\n"

    monkeypatch.setattr(Path, "read_text", read)
    assert free_memory() == left
