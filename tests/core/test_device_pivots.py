"""Pivots chosen on a device, and bounds outside of them, are those that threads find."""

from __future__ import annotations

import os

import numpy as np
import pytest

from device_problems import KERNELS, PICTURE, inputs_of
from kcrf_core.device import Device, DeviceChoice, device_maps, open_device
from kcrf_core.kernels import Inputs, gram
from kcrf_core.maps import GrowingBasis, ReducedMap, choose_pivots, full_basis, pivot_triangle
from kcrf_core.objective import certificates
from kcrf_core.system import Workers

ENGINES = os.environ.get("KCRF_TEST_ENGINES", "numpy").split(",")


@pytest.fixture(params=ENGINES)
def both(request):
    """Workers without a device, and with one."""
    with Workers(2) as threads, Workers(2, device=open_device(DeviceChoice(request.param))) as device:
        yield threads, device


def pictures_of(rng, N):
    real = np.maximum(rng.normal(size=(N, 12)), 0.0)
    return Inputs(np.zeros((N, 0), np.int32), np.zeros(0, np.int64), real, None, np.zeros(N))


@pytest.mark.parametrize("kind", [*KERNELS, "image", "rbf-bag"])
def test_kernel_values_are_those_of_this_process(kind, rng, both):
    inputs = pictures_of(rng, 60) if kind == "image" else inputs_of(rng, 60, kind == "rbf-bag")
    kernel = PICTURE if kind == "image" else KERNELS["rbf" if kind == "rbf-bag" else kind]
    pivots, alpha = inputs.take(np.arange(0, 60, 3)), rng.normal(size=(20, 4))
    scorer = both[1].device.scorer(pivots, kernel, alpha, np.float64)
    np.testing.assert_allclose(scorer.scores(inputs), gram(kernel, inputs, pivots) @ alpha, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("method", ["random", "greedy"])
@pytest.mark.parametrize("enough", [0.0, 0.3])
def test_the_same_pivots_are_chosen(method, enough, rng, both):
    inputs = inputs_of(rng, 300)
    one, other = (
        choose_pivots(
            method, inputs, KERNELS["rbf"], 60, np.random.default_rng(1), workers, np.float64, residual=enough
        )
        for workers in both
    )
    assert one.rows.tolist() == other.rows.tolist()
    np.testing.assert_allclose(other.residual, one.residual, atol=1e-9)
    np.testing.assert_allclose(other.curve, one.curve, rtol=1e-9)


def test_rows_without_room_are_worked_out_again(rng, both):
    inputs, found = inputs_of(rng, 300), []
    for memory in (None, 0):
        with Workers(1, device=Device(both[1].device.backend, memory)) as workers:
            rng = np.random.default_rng(1)
            found.append(choose_pivots("random", inputs, KERNELS["rbf"], 40, rng, workers, np.float64))
    assert found[0].rows.tolist() == found[1].rows.tolist()
    np.testing.assert_allclose(found[1].residual, found[0].residual, atol=1e-9)


def test_a_growing_basis_takes_the_same_pivots(rng, both):
    inputs, errors = inputs_of(rng, 200), rng.normal(size=(200, 3))
    grown = []
    for workers in both:
        basis = GrowingBasis(inputs, KERNELS["rbf"], 60, np.random.default_rng(1), workers, np.dtype(np.float64))
        basis.add(errors, 20)
        grown.append(basis.basis)
    assert grown[0].rows.tolist() == grown[1].rows.tolist()


def test_triangles_residuals_and_bounds(rng, both):
    inputs, kernel = inputs_of(rng, 150), KERNELS["rbf"]
    rows = full_basis(inputs, kernel).rows[:30]
    pivots, errors = inputs.take(rows), rng.normal(size=(150, 3))
    triangles = [pivot_triangle(kernel, pivots, workers) for workers in both]
    np.testing.assert_allclose(triangles[1], triangles[0], atol=1e-10)
    bounds, residuals = [], []
    for workers in both:
        own = ReducedMap.of(inputs, kernel, pivots, np.linspace(1, 0, 31), workers, np.float64)
        residuals.append(own.residual(workers))
        bounds.append(certificates.bound(errors, own, inputs, kernel, 2.0, workers))
    np.testing.assert_allclose(residuals[1], residuals[0], atol=1e-10)
    np.testing.assert_allclose(bounds[1], bounds[0], rtol=1e-8)


def test_sums_over_many_rows_are_taken_in_pieces(rng, both, monkeypatch):
    """In single precision, with rows that fill pieces and some that are left over."""
    monkeypatch.setattr(device_maps, "ROWS_AT_ONCE", 16)
    monkeypatch.setattr(device_maps, "PIECES_AT_ONCE", 3)
    backend, (values, R) = both[1].device.backend, (rng.normal(size=(150, width)) for width in (7, 2))
    found = device_maps.row_sums(backend.array(values, np.dtype(np.float32)), backend.array(R), backend)
    np.testing.assert_allclose(backend.numpy(found), values.T @ R, rtol=1e-5, atol=1e-5)
