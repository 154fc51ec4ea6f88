"""Seconds per pass over generated data on a device: `passes.py ENGINE [POSITIONS PIVOTS]`.

One million positions of 128 real columns, 10,000 pivots and 26 labels, rbf, single precision: with K kept there, as a
share of the bandwidth that a copy reaches, and with 8 GiB for it, K being computed again, as a share of
the speed of a plain product in single precision. Both yardsticks are measured in the same run.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
from measure import origin

from kcrf_core.chains import EDGE, NODE, Problem
from kcrf_core.device import DeviceChoice, open_device
from kcrf_core.kernels import Inputs, RBFKernel
from kcrf_core.maps import ReducedMap
from kcrf_core.objective import Objective, ObjectiveTerm
from kcrf_core.system import Workers

REAL, LABELS, LENGTH, REPEAT = 128, 26, 20, 10
SINGLE = np.dtype(np.float32)


def main(engine: str, positions: int = 1_000_000, pivots: int = 10_000) -> None:
    rng = np.random.default_rng(0)
    inputs = Inputs(
        np.zeros((positions, 0), np.int32),
        np.zeros(0, np.int64),
        rng.normal(size=(positions, REAL)),
        None,
        np.zeros(positions),
    )
    offsets = np.append(np.arange(0, positions, LENGTH), positions).astype(np.int64)
    labels = rng.integers(0, LABELS, positions).astype(np.int32)
    problem = Problem(labels, offsets, np.ones(len(offsets) - 1), LABELS)
    rows = {}
    for name, memory in (("K kept", None), ("K computed again, 8 GiB", 8 << 30)):
        device = open_device(DeviceChoice(engine), memory)
        with Workers(device=device) as workers:
            kernel, some = RBFKernel(1 / (2 * REAL)), inputs.take(slice(pivots))
            curve = np.linspace(1, 0, pivots + 1)
            own = ReducedMap.of(inputs, kernel, some, curve, workers, SINGLE)
            terms = [ObjectiveTerm(NODE, 1.0, own), ObjectiveTerm(EDGE, 1.0)]
            objective = Objective.on(device.engine(problem, terms, workers, SINGLE), terms)
            theta = objective.vectors.from_array(0.01 * rng.normal(size=objective.size))
            rows[name] = timed(device, lambda p=objective, at=theta: p.engine.evaluate(at))
            del objective, own, terms
        if memory is None:
            copied = copy_speed(device)
            moved = 2 * positions * pivots * SINGLE.itemsize  # K is read for scores and for the gradient
            share = {"bandwidth": copied, "share": moved / rows[name] / copied}
        else:
            peak = product_speed(device)
            work = 2 * positions * pivots * (2 * REAL + 2 * 2 * LABELS)
            share = {"peak": peak, "share": work / rows[name] / peak}
        figures = {
            "row": f"{positions:,} x {pivots:,} x {LABELS}: {name}",
            "engine": engine,
            "pass": rows[name],
            **share,
            "taken_with": origin(engine),
        }
        with Path("build/passes.jsonl").open("a", encoding="utf-8") as stream:
            print(json.dumps(figures), file=stream)
        print(figures)


def timed(device, work) -> float:
    for _ in range(4):  # the third is recorded
        work()
    found = []
    for _ in range(REPEAT):
        device.backend.wait()
        began = time.perf_counter()
        work()
        device.backend.wait()
        found.append(time.perf_counter() - began)
    return float(np.median(found))


def copy_speed(device) -> float:
    """Bytes per second that are read and written by a copy."""
    values = device.backend.array(np.random.default_rng(1).random(1 << 28, dtype=SINGLE))
    return 2 * values.shape[0] * SINGLE.itemsize / timed(device, lambda: values + 0)


def product_speed(device) -> float:
    """Operations per second of a product in single precision."""
    values = device.backend.array(np.random.default_rng(1).random((8192, 8192), dtype=SINGLE))
    return 2 * 8192**3 / timed(device, lambda: values @ values)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
