"""The engine of a device agrees with threads on every kind of term, on NumPy and, where it is there, on PyTorch."""

from __future__ import annotations

import gc
import os
import weakref
from dataclasses import replace
from functools import wraps
from itertools import pairwise

import numpy as np
import pytest

from device_problems import KINDS, problem_of, terms_of
from kcrf_core.chains import Edges
from kcrf_core.device import Device, DeviceChoice, device_engine, device_maps, device_vectors, open_device
from kcrf_core.device.device_vectors import DeviceVectors
from kcrf_core.errors import DeviceError
from kcrf_core.maps import PivotHead
from kcrf_core.objective import HostVectors, Objective, Partition
from kcrf_core.objective.solvers import CERTIFIED, SOLVERS, Run, initial_inverse, lbfgs
from kcrf_core.objective.solvers.initial_inverse import current_curvature as curvature
from kcrf_core.system import Backend
from kcrf_core.training import open_engine
from problems import on_threads

# `make test-gpu` sets it: torch:cpu, cuda, or both.
ENGINES = os.environ.get("KCRF_TEST_ENGINES", "numpy").split(",")


@pytest.fixture(params=ENGINES)
def device(request):
    return open_device(DeviceChoice(request.param))


def both(kind, rng, workers, device, dtype=np.float64, Y=3, forbidden=None, **more):
    problem = problem_of(rng, Y, **more)
    terms = terms_of(kind, rng, problem, workers, dtype)
    threads = on_threads(problem, terms, workers, dtype, forbidden)
    return threads, Objective.on(device.engine(problem, terms, workers, dtype, forbidden), terms)


TOLERANCE = {np.float64: 1e-10, np.float32: 1e-5}


def check(threads, other, rng, dtype, size=1.0):
    theta, vector = size * rng.normal(size=(2, threads.size))
    there, there_vector = other.vectors.from_array(theta), other.vectors.from_array(vector)
    value, gradient = threads.engine.evaluate(theta)
    found, found_gradient = other.engine.evaluate(there)
    bound = TOLERANCE[dtype]
    np.testing.assert_allclose(found, value, rtol=bound)
    weights = threads.problem.position_weights().sum()
    np.testing.assert_allclose(other.vectors.to_array(found_gradient), gradient, rtol=bound, atol=bound * weights)
    short, _ = other.engine.evaluate(other.vectors.cast(there, np.dtype(np.float32)))
    np.testing.assert_allclose(short, value, rtol=1e-4)  # parameters may come in single precision
    product = threads.engine.product(theta, vector)
    found_product = other.vectors.to_array(other.engine.product(there, there_vector))
    np.testing.assert_allclose(found_product, product, rtol=bound, atol=bound * max(np.abs(product).max(), weights))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", KINDS)
def test_p_gradient_and_products_are_those_of_threads(kind, dtype, rng, workers, device):
    check(*both(kind, rng, workers, device, dtype, 2 if kind == "two-labels" else 3), rng, dtype)


@pytest.mark.parametrize("kind", ["linear", "bag", "merged", "poly"])
def test_proofs_have_all_digits_after_passes_in_single_precision(kind, rng, workers, device):
    threads, other = both(kind, rng, workers, device, np.float32)
    theta = rng.normal(size=threads.size)
    value, gradient = threads.engine.in_double(held=False).evaluate(theta)
    found, there = other.engine.in_double(held=False).evaluate(other.vectors.from_array(theta))
    np.testing.assert_allclose(found, value, rtol=1e-10)
    np.testing.assert_allclose(other.vectors.to_array(there), gradient, rtol=1e-10, atol=1e-8)


@pytest.mark.parametrize("missing", [False, True])  # with missing labels, threads do forward-backward
@pytest.mark.parametrize("kind", ["linear", "edge-x", "edge2", "edge2-x"])
def test_missing_labels_cut_sequences_and_forbidden_transitions(kind, missing, rng, workers, device):
    none = np.where(rng.random((4, 4)) < 0.2, -np.inf, 0.0)
    np.fill_diagonal(none, 0.0)
    forbidden = Edges(none, np.zeros(4), np.array([0.0, 0.0, 0.0, -np.inf]))
    more = {"missing": missing, "cut": True, "allowed": none == 0, "Y": 4}
    check(*both(kind, rng, workers, device, forbidden=forbidden, **more), rng, np.float64)


def test_passes_that_cannot_be_trusted_are_done_again(rng, workers, device, monkeypatch):
    """Scores so far apart that scaled messages lose what matters: a forbidden label that outweighs all others."""
    none = np.zeros((3, 3))
    none[:, 2] = none[2, :] = -np.inf
    forbidden = Edges(none, np.array([0.0, 0.0, -np.inf]), np.zeros(3))
    threads, other = both("linear", rng, workers, device, forbidden=forbidden, allowed=none == 0)
    again = []
    monkeypatch.setattr(Partition, "evaluate", _counted(Partition.evaluate, again))
    monkeypatch.setattr(Partition, "product", _counted(Partition.product, again))
    check(threads, other, rng, np.float64, size=2000.0)
    assert [partition is other.engine.handles[0] for partition, *_ in again].count(True) == 3


def _counted(work, calls):
    @wraps(work)
    def counted(*given):
        calls.append(given)
        return work(*given)

    return counted


@pytest.mark.parametrize("name", list(SOLVERS))
def test_every_solver_ends_at_a_certificate(name, rng, workers, device):
    threads, other = both("poly", rng, workers, device, np.float32)
    found = SOLVERS[name](other, other.vectors.zeros(), Run(1e-3, 500))
    expected = SOLVERS[name](threads, threads.vectors.zeros(), Run(1e-3, 500))
    assert found.reason == expected.reason == CERTIFIED
    assert found.lower <= expected.value and expected.lower <= found.value
    assert not isinstance(found.theta, np.ndarray) or device.backend.name == "numpy"


@pytest.mark.parametrize("kind", ["linear", "kept", "merged"])
def test_the_diagonal_is_renewed_as_on_threads(kind, rng, workers, device, monkeypatch):
    monkeypatch.setattr(lbfgs, "FIRST_RENEWAL", 4)
    threads, other = (
        Objective(each.engine, 100.0 * each.sigma2) for each in both(kind, rng, workers, device, np.float32)
    )
    passes = []
    for objective in (threads, other):
        points = []
        run = Run(1e-3, 500)
        monkeypatch.setattr(
            initial_inverse, "current_curvature", lambda *given, own=points: own.append(given) or curvature(*given)
        )
        found = SOLVERS["lbfgs"](objective, objective.vectors.zeros(), run)
        assert found.reason == CERTIFIED
        assert len(points) >= 2
        passes.append(found.passes)
    assert abs(passes[0] - passes[1]) <= 2


def test_an_l1_penalty_finds_the_same_optimum(rng, workers, device):
    problem = problem_of(rng, 3)
    terms = [replace(term, threshold=0.5) for term in terms_of("linear", rng, problem, workers, np.float64)]
    threads = on_threads(problem, terms, workers)
    other = Objective.on(device.engine(problem, terms, workers), terms)
    found, expected = (SOLVERS["proximal"](each, each.vectors.zeros(), Run(1e-4, 500)) for each in (other, threads))
    assert found.reason == CERTIFIED
    np.testing.assert_allclose(found.value, expected.value, rtol=2e-4)
    assert other.nonzero(found.theta) < other.size / 2


@pytest.mark.parametrize("kind", ["linear", "kept", "poly", "repeated", "edge-x", "edge2"])
def test_whatever_else_is_asked_has_the_answers_of_threads(kind, rng, workers, device):
    threads, other = both(kind, rng, workers, device)
    theta = rng.normal(size=threads.size)
    there = other.vectors.from_array(theta)
    one, two = threads.engine, other.engine
    for question in ("sequence_log_probabilities",):
        np.testing.assert_allclose(getattr(two, question)(there), getattr(one, question)(theta), rtol=1e-10)
    for clique in {term.clique for term in one.terms if term.clique.mapped}:
        np.testing.assert_allclose(two.errors(there, clique), one.errors(theta, clique), atol=1e-10)
    first, second = one.predictions(theta), two.predictions(there)
    assert all((first.labels[name] == second.labels[name]).all() for name in first.labels)
    blocks, others = one.blocks(theta, False, 0.0), two.blocks(there, False, 0.0)
    for j, term in enumerate(one.terms):
        if term.clique.mapped:
            own = rng.normal(size=term.size)
            expected = blocks.product(j, own)
            np.testing.assert_allclose(
                device.backend.numpy(others.product(j, device.backend.array(own))), expected, atol=1e-9
            )
            np.testing.assert_allclose(two.column_squares(j), one.column_squares(j), rtol=1e-10)
            if not term.nested:
                np.testing.assert_allclose(others.diagonal(j), blocks.diagonal(j), atol=1e-9)
        else:
            np.testing.assert_allclose(others.small[j], blocks.small[j], atol=1e-9)
        if term.nested:
            np.testing.assert_allclose(two.leading_gram(j, 5, 50), one.leading_gram(j, 5, 50), rtol=1e-8)
            few, narrow = one.narrowed({j: 5}), two.narrowed({j: 5})
            point = rng.normal(size=few.vectors.size)
            value, _ = narrow.evaluate(narrow.vectors.from_array(point))
            np.testing.assert_allclose(value, few.evaluate(point)[0], rtol=1e-10)
    for expected, found in zip(one.rounding(theta), two.rounding(there), strict=True):
        np.testing.assert_allclose([found.loss, found.prior], [expected.loss, expected.prior], rtol=1e-9)
        # |L^-1| is taken from L^-1 itself: LAPACK's estimate may be less, but never more.
        assert found.factor >= expected.factor * (1 - 1e-9)
        assert expected.gradient * (1 - 1e-9) <= found.gradient <= 3 * expected.gradient


@pytest.mark.parametrize("kind", ["poly", "repeated"])
def test_rounding_errors_of_pivots_are_bounded_on_the_device(kind, rng, workers, device, monkeypatch):
    """Solvers ask for these bounds again and again, and a system of 20,000 pivots takes this process a second."""
    _, other = both(kind, rng, workers, device)

    def refused(*given):
        raise AssertionError("a system of pivots is solved by this process")

    monkeypatch.setattr(PivotHead, "dual", refused)
    monkeypatch.setattr(PivotHead, "inverse_norm", property(refused))
    found = other.engine.rounding(other.vectors.from_array(rng.normal(size=other.size)))
    assert any(each.prior > 0 for each in found)


@pytest.mark.parametrize("kind", ["rbf", "edge-x"])
def test_many_rows_are_multiplied_in_pieces(kind, rng, workers, device, monkeypatch):
    monkeypatch.setattr(device_maps, "ROWS_AT_ONCE", 50)
    monkeypatch.setattr(device_maps, "PIECES_AT_ONCE", 2)
    check(*both(kind, rng, workers, device, np.float32), rng, np.float32)


def test_kernel_values_without_room_are_computed_in_every_pass(rng, workers, device):
    """With room for some rows, and for none."""
    problem = problem_of(rng, 3)
    terms = terms_of("rbf", rng, problem, workers, np.float32)
    theta, found = None, []
    for memory in (None, 50_000, 0):
        place = Device(device.backend, memory)
        other = Objective.on(place.engine(problem, terms, workers, np.float32), terms)
        if theta is None:
            theta = rng.normal(size=other.size)
        found.append(other.engine.evaluate(other.vectors.from_array(theta)))
    for value, gradient in found[1:]:
        np.testing.assert_allclose(value, found[0][0], rtol=1e-6)
        np.testing.assert_allclose(*(device.backend.numpy(each) for each in (gradient, found[0][1])), atol=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_products_of_short_and_long_rows(weighted, rng, device):
    """Rows of 700 entries and of none, of ones and of other values; and the same bits every time."""
    lengths = np.concatenate([[700, 0, 3, 256, 257, 0], rng.integers(0, 20, 50), [513]])
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    columns = rng.integers(0, 40, ends[-1]).astype(np.int32)
    values = rng.normal(size=ends[-1]) if weighted else np.ones(ends[-1])
    right = rng.normal(size=(40, 5))
    expected = np.array([values[a:b] @ right[columns[a:b]] for a, b in pairwise(ends)])
    matrix = device.backend.sparse(ends, columns, values, 40, np.dtype(np.float64))
    found = [device.backend.numpy(device.backend.sparse_product(matrix, device.backend.array(right))) for _ in range(3)]
    np.testing.assert_allclose(found[0], expected, atol=1e-12)
    assert all((each == found[0]).all() for each in found)


@pytest.mark.parametrize("kind", ["linear", "kept", "poly", "repeated", "edge-x", "edge2"])
def test_passes_give_the_same_bits_every_time(kind, rng, workers, device):
    _, other = both(kind, rng, workers, device, np.float32)
    theta = other.vectors.from_array(rng.normal(size=other.size))
    again = device.engine(other.problem, other.engine.handles[0].terms, workers, np.float32)
    for _ in range(4):  # the third is recorded on a GPU
        found = [engine.evaluate(theta) for engine in (other.engine, again)]
        assert found[0][0] == found[1][0]
        assert (other.vectors.to_array(found[0][1]) == other.vectors.to_array(found[1][1])).all()


@pytest.mark.skipif("cuda" not in ENGINES, reason="memory of a GPU")
def test_large_arrays_come_from_a_gpu_in_pieces(rng):
    backend, values = open_device(DeviceChoice("cuda")).backend, rng.normal(size=(3, 5_000_001))
    assert (backend.numpy(backend.array(values)) == values).all()
    assert (backend.numpy(backend.array(values).T) == values.T).all()


def test_long_sequences_are_left_to_threads(rng, workers, device, monkeypatch):
    monkeypatch.setattr(device_engine, "MOST_STEPS", 4)
    told = []
    threads, other = both("edge2", rng, workers, Device(device.backend, None, told.append))
    check(threads, other, rng, np.float64)
    assert len(told) == 1 and "threads do forward-backward" in told[0]


def test_powers_of_matrices_are_those_of_threads(rng, workers, device):
    threads, other = both("poly", rng, workers, device)
    root = rng.normal(size=(30, 30))
    given = root @ root.T, 0.1, 0.4
    np.testing.assert_allclose(other.engine.inverse_power(*given), threads.engine.inverse_power(*given), rtol=1e-8)


def test_vectors_do_what_those_of_threads_do(rng, workers, device):
    blocks = [slice(0, 6), slice(6, 6 + 2000)]
    here, there = HostVectors(blocks, workers), DeviceVectors(blocks, device.backend)
    variances, thresholds = np.array([2.0, 0.5]), np.abs(rng.normal(size=here.size)) + 0.1
    a, b, c = rng.normal(size=(3, here.size))
    a[::3] = 0.0

    def give(values):
        return there.from_array(values.copy())

    def close(found, expected):
        if not isinstance(found, float | int | list | np.ndarray):
            found = there.to_array(found)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)

    for name in ("dot", "block_dots", "product", "quotient"):
        close(getattr(there, name)(give(a), give(b)), getattr(here, name)(a, b))
    close(there.stepped(give(a), 0.3, give(b)), here.stepped(a, 0.3, b))
    for name, extra in (("add_prior", ()), ("add_sparse_prior", (thresholds,))):
        mine, theirs = b.copy(), give(b)
        own = [give(each) for each in extra]
        close(
            np.atleast_1d(getattr(there, name)(theirs, give(a), variances, *own)),
            np.atleast_1d(getattr(here, name)(mine, a, variances, *extra)),
        )
        close(theirs, mine)
    scaled, constant, products = there.linearised(give(a), give(b), variances, np.float64, [give(c)])
    expected = here.linearised(a, b, variances, np.float64, [c])
    close(scaled, expected[0])
    close([constant, *products], [expected[1], *expected[2]])
    close(there.steepest_square(give(a), give(b), give(thresholds)), here.steepest_square(a, b, thresholds))
    places = here.beyond(b, thresholds)
    assert (there.beyond(give(b), give(thresholds)) == places).all()
    assert (there.values_at(give(a), places) == here.values_at(a, places)).all()
    close(there.with_values(give(a), places, b[places]), here.with_values(a, places, b[places]))
    matrix, mine, theirs = rng.normal(size=(100, 100)), a.copy(), give(a)
    here.multiply_rows(mine, b, 1, matrix, 4, 8)
    there.multiply_rows(theirs, give(b), 1, matrix, 4, 8)
    close(theirs, mine)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [500, 40_000])  # less than a piece, and more than one
def test_pairs_do_what_those_of_threads_do(size, dtype, rng, workers, device, monkeypatch):
    monkeypatch.setattr(device_vectors, "PAIRS_SHARE", 0.0)  # of a device that has no room for double precision
    blocks = [slice(0, size)]
    here, there = (
        vectors.pairs(4, dtype) for vectors in (HostVectors(blocks, workers), DeviceVectors(blocks, device.backend))
    )
    bound, give = 1e-10 if dtype == np.float64 else 1e-4, device.backend.array
    gradient, scale = rng.normal(size=size), rng.random(size) + 0.5
    assert there.along(give(gradient), 0).shape == there.changes_along(give(gradient), 0).shape == (0,)  # no pair yet
    for slot in range(3):
        given = rng.normal(size=(4, size))
        found, expected = there.put(slot, *map(give, given), slot + 1), here.put(slot, *given, slot + 1)
        np.testing.assert_allclose(found, expected, rtol=bound, atol=bound)
    shares = rng.normal(size=3)
    out, products, bent = there.reduced_and_scaled(give(gradient), shares, give(scale), 2)
    mine, expected, own = here.reduced_and_scaled(gradient, shares, scale, 2)
    np.testing.assert_allclose(device.backend.numpy(out), mine, rtol=bound, atol=bound)
    np.testing.assert_allclose([*products, bent], [*expected, own], rtol=bound, atol=bound * 100)
    for name in ("along", "changes_along"):
        np.testing.assert_allclose(
            getattr(there, name)(give(gradient), 3), getattr(here, name)(gradient, 3), atol=bound * 100
        )
    close = there.finish(out, 0.7, shares, give(gradient)), here.finish(mine, 0.7, shares, gradient)
    np.testing.assert_allclose(*close, rtol=bound * 10)
    np.testing.assert_allclose(device.backend.numpy(out), mine, rtol=bound, atol=bound * 10)


def test_an_engine_goes_when_nobody_has_it(rng, workers, device):
    """Its kernel values with it, and not when the collector of cycles comes by."""
    problem = problem_of(rng, 3)
    engine = device.engine(problem, terms_of("pivots", rng, problem, workers, np.float64), workers, np.float64)
    engine.evaluate(engine.vectors.zeros())
    gone = weakref.ref(engine)
    gc.disable()
    try:
        del engine
        assert gone() is None
    finally:
        gc.enable()


def test_memory_that_is_short_anywhere_in_a_training_is_told_with_a_remedy(monkeypatch):
    monkeypatch.setattr(Backend, "is_out_of_memory", lambda self, error: "full" in str(error))
    with pytest.raises(DeviceError, match="too little memory on numpy"), open_engine("numpy"):
        raise RuntimeError("it is full")
    with pytest.raises(RuntimeError, match="another"), open_engine("numpy"):
        raise RuntimeError("another mistake")
