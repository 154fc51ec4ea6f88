"""Generated data with kernel values, partition by partition: a worker makes its own, so that none is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kcrf_core.chains import EDGE, NODE, Problem
from kcrf_core.kernels import Inputs, PolynomialKernel
from kcrf_core.maps.heads import PivotHead
from kcrf_core.maps.reduced import KernelRows, KernelSpec, ReducedMap, pivot_triangle
from kcrf_core.objective import Engine, Objective, ObjectiveTerm, Partition, TermPlace
from kcrf_core.system import Workers

LENGTH, COLUMNS, LABELS = 25, 32, 26  # of a sequence, of inputs, and how many there are
KERNEL = PolynomialKernel(3, 0.05, 1.0, 1.0)
DTYPE = np.dtype(np.float32)


def inputs_of(number: int, positions: int) -> Inputs:
    real = np.random.default_rng([number, 1]).normal(size=(positions, COLUMNS))
    return Inputs(np.zeros((positions, 0), np.int32), np.zeros(0, np.int64), real, None, np.zeros(positions))


def labels_of(number: int, positions: int) -> np.ndarray:
    return np.random.default_rng([number, 2]).integers(0, LABELS, positions).astype(np.int32)


@dataclass(frozen=True)
class Generated:
    """So many positions in partitions of equal size."""

    positions: int
    partitions: int
    pivots: int

    @property
    def each(self) -> int:
        return self.positions // self.partitions // LENGTH * LENGTH

    def problem(self, partitions: range) -> Problem:
        sequences = self.each // LENGTH
        labels = np.concatenate([labels_of(number, self.each) for number in partitions])
        offsets = np.arange(len(partitions) * sequences + 1) * LENGTH
        borders = np.arange(len(partitions) + 1) * sequences
        return Problem(labels, offsets, np.ones(len(offsets) - 1), LABELS, None, borders)

    def pivot_inputs(self) -> Inputs:
        return inputs_of(10**6, self.pivots)

    def head(self, workers: Workers) -> PivotHead:
        curve = np.linspace(1.0, 0.0, self.pivots + 1)
        return PivotHead(pivot_triangle(KERNEL, self.pivot_inputs(), workers), curve, workers.memory)

    def specs(self) -> list[GeneratedSpec]:
        return [
            GeneratedSpec(self.positions, self.partitions, self.pivots, number) for number in range(self.partitions)
        ]

    def on_threads(self, workers: Workers) -> Objective:
        real = np.concatenate([inputs_of(number, self.each).real for number in range(self.partitions)])
        N = len(real)
        inputs = Inputs(np.zeros((N, 0), np.int32), np.zeros(0, np.int64), real, None, np.zeros(N))
        rows = KernelRows.of(inputs, KERNEL, self.pivot_inputs(), workers.memory, DTYPE)
        own = ReducedMap(rows, self.head(workers), KERNEL.diagonal(inputs))
        terms = [ObjectiveTerm(NODE, 1.0, own), ObjectiveTerm(EDGE, 1.0)]
        return Objective.on(Engine.of(Partition(self.problem(range(self.partitions)), terms, workers, DTYPE)), terms)


@dataclass(frozen=True)
class GeneratedSpec:
    """One partition."""

    positions: int
    partitions: int
    pivots: int
    number: int

    maps = ()  # workers generate theirs

    def without_maps(self) -> GeneratedSpec:
        return self

    def with_maps(self, maps: Sequence[object]) -> GeneratedSpec:
        return self

    @property
    def name(self) -> str:
        return f"shard {self.number + 1} of {self.partitions}"

    @property
    def _each(self) -> int:
        return Generated(self.positions, self.partitions, self.pivots).each

    @property
    def nbytes(self) -> int:
        return self._each * (8 * COLUMNS + 8 + 4 * LABELS)

    @property
    def table(self) -> int:
        return self._each * self.pivots * DTYPE.itemsize

    @property
    def places(self) -> tuple[TermPlace, TermPlace]:
        return TermPlace(self.pivots, self.pivots), TermPlace(0, 0)

    def load(self, workers: Workers) -> Partition:
        data = Generated(self.positions, self.partitions, self.pivots)
        inputs = inputs_of(self.number, self._each)
        core = KernelSpec(inputs, KERNEL, data.pivot_inputs(), KERNEL.diagonal(inputs), None, False, DTYPE)
        problem = data.problem(range(self.number, self.number + 1))
        terms = [ObjectiveTerm(NODE, 1.0, core.load(workers)), ObjectiveTerm(EDGE, 1.0)]
        return Partition(problem, terms, workers, DTYPE, places=self.places)
