"""The log of a training run: one JSON object per line, each written out at once.

An interrupted or killed run leaves whole lines, and `tail -f` follows a running one. A log that cannot be written must
not cost the model: its error waits until the model is safe.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from dataclasses import asdict
from functools import singledispatchmethod
from typing import IO, Any

import click

from kcrf_core.files import naming
from kcrf_core.objective.solvers import (
    DevProgress,
    Event,
    GrowthRound,
    Note,
    Observer,
    Progress,
    Stage,
    Structure,
    Trial,
    WorkersThere,
)

from ..render.figures import as_json
from .files import check_writable, write_out

SCHEMA = 1


class RunLog(Observer):
    """Events as lines of a file or of stdout (`-`); nothing where there is no path."""

    def __init__(self, path: str | None):
        self._began = time.perf_counter()
        self._stage = ""
        self._lines = 0
        self._ended = False
        self._error: OSError | None = None
        self._path = path
        self._stream: IO[bytes] | None = None
        if path not in (None, "-"):
            self._stream = open(path, "wb")  # noqa: SIM115, __exit__ closes it

    def start(self, values: dict[str, Any]) -> None:
        """What the run is about to do."""
        self._write("start", values)

    def end(self, figures: dict[str, Any]) -> None:
        """The last event, once the model is written."""
        self._ended = True
        self._write("end", figures)

    def check(self) -> None:
        """Raise what went wrong with the log, if anything did."""
        if self._error is not None:
            raise self._error

    @singledispatchmethod
    def tell(self, event: Event) -> None:
        """Write an event; those without a method below have no line."""

    @tell.register
    def _note(self, note: Note) -> None:
        self._write("note", asdict(note))

    @tell.register
    def _stage_begins(self, stage: Stage) -> None:
        self._stage = stage.name

    @tell.register
    def _passed(self, progress: Progress) -> None:
        self._write(
            "pass",
            {
                "stage": self._stage,
                "pass": progress.passes,
                "objective": progress.value,
                "lower_bound": _finite(progress.lower),
                "gap": _finite(progress.gap),
                "hessian_products": progress.products,
                "work": progress.work,
            },
        )

    @tell.register
    def _manned(self, there: WorkersThere) -> None:
        self._write("workers", {"count": there.count})

    @tell.register
    def _tried(self, trial: Trial) -> None:
        self._write("trial", asdict(trial))

    @tell.register
    def _scored(self, progress: DevProgress) -> None:
        self._write("dev", {"pass": progress.passes, **asdict(progress.score), "best": progress.best})

    @tell.register
    def _grew(self, state: GrowthRound) -> None:
        self._write("growth", asdict(state))

    @tell.register
    def _selected(self, structure: Structure) -> None:
        self._write("structure", structure.to_dict())

    def _write(self, event: str, values: dict[str, Any]) -> None:
        if self._path is None or self._error is not None:
            return
        first = {} if self._lines else {"schema": SCHEMA}
        seconds = round(time.perf_counter() - self._began, 6)
        line = as_json({"event": event, **first, "seconds": seconds, **values}, indent=None)
        self._lines += 1
        try:
            if self._stream is None:
                write_out(line)
            else:
                with naming(self._path):
                    self._stream.write((line + "\n").encode())
                    self._stream.flush()
        except OSError as error:
            self._error = error

    def __enter__(self) -> RunLog:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is not None and not self._ended:
            self._write("end", {"stop": "failed", "error": str(error) or type(error).__name__})
        if self._stream is not None:
            # What could not be written is still in the buffer, and would fail again here.
            with contextlib.suppress(OSError):
                self._stream.close()


def _finite(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None


class Both(Observer):
    """Tells two listeners everything."""

    def __init__(self, first: Observer, second: Observer):
        self._each = (first, second)

    def tell(self, event: Event) -> None:
        for one in self._each:
            one.tell(event)


def check_log(path: str | None, output: str | None, as_json: bool, *inputs: str | None) -> None:
    """Refuse a log that cannot be written, or that is another file of this run, before the work is done."""
    if path is None:
        return
    if path == "-":
        if as_json:
            raise click.UsageError("--log - and --json both write to stdout: the last line of the log says the same")
        return
    check_writable(path, *inputs)
    if output is not None and os.path.realpath(path) == os.path.realpath(output):
        raise click.UsageError(f"{path} is also the output: give the log another name")
