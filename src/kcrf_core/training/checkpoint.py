"""A file from which training goes on.

All that is between the fits of a run follows from data, settings and results of fits. So a checkpoint holds these
results in their order; a stage such as the search for sigma2 stands for its fits. A fit of such a stage that was
stopped begins again. The final fit goes on from its best parameters so far: it reaches the same certified optimum as a
run that was never stopped, by other steps.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from .._version import __version__
from ..errors import ConfigError, FileFormatError
from ..files import content_digest, pack_tree, read_container, unpack_tree, write_container
from ..objective import Objective, Vector
from ..objective.solvers import INTERRUPTED, Observer, Run, SolverResult, Structure, TermJudgement, Trial
from ..scoring import Yardstick
from ..system import Workers, counted
from .held_out import DecoderChoice, Pieces, Split, Splits
from .prior_search import HeldOut, Prior

KIND = "checkpoint"
EVERY = 300.0  # seconds between two of them

Found = TypeVar("Found")
Solver = Callable[[Objective, Vector, Run], SolverResult]


@dataclass(frozen=True)
class FinishedFit:
    """The end of a fit."""

    result: SolverResult
    counters: dict[str, Any]  # of its run


@dataclass(frozen=True)
class PartialFit:
    """The best parameters of a fit under way."""

    theta: Vector
    counters: dict[str, Any]  # of its run


@dataclass(frozen=True)
class FinishedStage:
    """The findings of a stage, in the place of its fits."""

    found: Any


CLASSES = (
    *(FinishedFit, PartialFit, FinishedStage, SolverResult, Prior, HeldOut, Splits, Split, Pieces, Yardstick),
    *(DecoderChoice, Trial, Structure, TermJudgement),
)


class Checkpoint:
    """The fits of a run so far, kept in a file every few minutes.

    >>> import os, tempfile
    >>> from kcrf_core import Workers, fit_encoding, parse_config, read_corpus, train
    >>> from kcrf_core.training import Checkpoint
    >>> config = parse_config({"training": {"sigma2": 1.0}})
    >>> encoding, dataset = fit_encoding(config, read_corpus("sample_data/digits.conll").subset(range(20)))
    >>> with tempfile.TemporaryDirectory() as folder, Workers() as workers:
    ...     kept = Checkpoint(os.path.join(folder, "run.checkpoint"), every=0.01)
    ...     _ = train(encoding, dataset, config, workers=workers, checkpoint=kept)
    ...     there = os.path.exists(kept.path)
    ...     kept.remove()
    ...     there, os.path.exists(kept.path)
    (True, False)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        every: float = EVERY,  # seconds
        options: Mapping[str, Any] | None = None,  # of the caller, which have to be the same, too
    ):
        self.path, self._every, self._options = os.fspath(path), every, dict(options or {})
        self._about: dict[str, Any] | None = None  # what the run is one of; None until it has begun
        self._written = time.monotonic()
        self._before: deque[FinishedFit | FinishedStage] = deque()  # out of the file, still to be gone through
        self._partial: PartialFit | None = None  # the fit after those
        self._stages = 0  # stages under way, whose fits are kept as a whole or not at all
        self._records: list[FinishedFit | FinishedStage] = []
        self._backend: Any = None  # of the device; vectors without one are arrays
        self._observer = Observer()

    def begin(self, about: dict[str, Any], workers: Workers, observer: Observer) -> None:
        """Read the file, where there is one of this run; an error where it is one of another."""
        if self._about is not None:
            return  # runs within the run, such as those of folds, go on with the same file
        about = {"version": __version__, **about, **self._options}
        self._about = json.loads(json.dumps(about))  # lists for tuples, as in the file
        device, self._observer = workers.device, observer
        self._backend = None if device is None else device.backend
        if not os.path.exists(self.path):
            return
        contents = read_container(self.path, KIND)
        difference = _difference(contents.get("run", dict), self._about)
        if difference is not None:
            raise ConfigError(
                f"{self.path} is the checkpoint of another run: {difference}; remove it, or name another",
                settings=["checkpoint"],
            )
        if contents.get("digest", str) != content_digest({}, contents.arrays):
            raise contents.error("its content is not the one that was written")
        tree = contents.arrays.pop("tree").tobytes().decode("utf-8")
        arrays = [contents.arrays[str(number)] for number in range(len(contents.arrays))]
        found = unpack_tree(tree, arrays, CLASSES, lambda values: self._backend.array(values, values.dtype))
        records, self._partial = found["records"], found["partial"]
        self._before.extend(records)
        there = ["choices that were made"] if any(isinstance(record, FinishedStage) for record in records) else []
        there.append(counted(sum(isinstance(record, FinishedFit) for record in records), "finished fit"))
        if self._partial is not None:
            there.append(f"{counted(self._partial.counters['passes'], 'pass', 'passes')} of the next one")
        observer.report(f"going on from {self.path}: {', '.join(there)}")

    def solver(self, solve: Solver) -> Solver:
        """Return a solver whose fits are kept, and taken from the file where they are there."""

        def kept(objective: Objective, theta: Vector, run: Run) -> SolverResult:
            if self._before:
                record = self._before.popleft()
                if not isinstance(record, FinishedFit):
                    raise FileFormatError(f"{self.path}: damaged or altered: its fits are not those of this run")
                run.restore_counters(record.counters)
            else:
                if self._partial is not None:
                    theta = self._partial.theta
                    run.restore_counters(self._partial.counters)
                    self._partial = None
                run.keeper = None if self._stages else self
                result = solve(objective, theta, run)
                if result.reason == INTERRUPTED:
                    if self._stages:  # else the run has kept the best parameters
                        self.write(None)
                    return result
                record = FinishedFit(result, run.counters())
            self._records.append(record)
            if self.due():
                self.write(None)
            return record.result

        return kept

    def stage(self, work: Callable[[], Found]) -> Found:
        """Return the findings of a stage, which stand for its fits from then on."""
        first = self._before[0] if self._before else None
        if isinstance(first, FinishedStage):
            self._records.append(self._before.popleft())
            return first.found
        begun = len(self._records)
        self._stages += 1
        try:
            found = work()
        finally:
            self._stages -= 1
        self._records[begun:] = [FinishedStage(found)]
        return found

    def due(self) -> bool:
        """Return True if the last file is old enough, and none of its fits is still to be gone through."""
        return not self._before and self._partial is None and time.monotonic() - self._written >= self._every

    def keep(self, theta: Vector, counters: dict[str, Any]) -> None:
        """Write the fits so far, and the best parameters of the one under way."""
        self.write(PartialFit(theta, counters))

    def write(self, partial: PartialFit | None) -> None:
        """Write the fits so far; the run goes on where that cannot be."""
        text, packed = pack_tree({"records": self._records, "partial": partial}, lambda own: self._backend.numpy(own))
        arrays = {str(number): array for number, array in enumerate(packed)}
        arrays["tree"] = np.frombuffer(text.encode("utf-8"), dtype=np.uint8)
        try:
            write_container(self.path, KIND, {"run": self._about, "digest": content_digest({}, arrays)}, arrays)
        except OSError as error:
            self._observer.report(f"warning: the checkpoint {self.path} was not written: {error.strerror or error}")
        self._written = time.monotonic()

    def remove(self) -> None:
        """Remove the file, once the run's model is safe."""
        if os.path.exists(self.path):
            os.unlink(os.path.realpath(self.path))  # a link is the user's


def _difference(there: Any, here: Any, name: str = "") -> str | None:
    """Return the first setting that differs, with its values; None where none does."""
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        for key in dict.fromkeys([*here, *there]):
            found = _difference(there.get(key), here.get(key), f"{name}.{key}" if name else key)
            if found is not None:
                return found
        return None
    if isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        pairs = zip(there, here, strict=True)
        each = (_difference(*pair, f"{name}.{number + 1}") for number, pair in enumerate(pairs))
        return next((found for found in each if found is not None), None)
    if there == here:
        return None
    if all(value is None or isinstance(value, bool | int | float | str) for value in (there, here)):
        both = [str(value) for value in (there, here)]
        if max(map(len, both)) <= 40:
            return f"{name} is {both[1]} here and {both[0]} there"
    return f"{name} differs"
