"""Observers of a training run: messages and progress on stderr, a log of JSON lines, Ctrl-C and SIGTERM."""

from __future__ import annotations

import contextlib
import math
import signal
import time
from collections.abc import Callable
from dataclasses import asdict
from types import FrameType
from typing import IO, Any

from kcrf_core.files import naming
from kcrf_core.objective.solvers import (
    Event,
    GrowthRound,
    Note,
    Observer,
    Progress,
    Stage,
    Structure,
    Trial,
    variances_text,
)

from ..render import figures as render
from .files import write_out
from .progress import ProgressLine, fit_share, say

SCHEMA = 1  # of a log
WIDEST_VARIANCE = 0.000158  # of those in three digits


class ProgressMessages(Observer):
    """Results and warnings on stderr; details and passes, too, if `verbose`, else a line of progress."""

    def __init__(self, quiet: bool, verbose: bool = False, clock: Callable[[], float] = time.monotonic):
        self._quiet, self._verbose = quiet, verbose
        self._line = ProgressLine(quiet or verbose, clock)
        self._stage, self._first_gap = Stage("training"), math.inf

    def tell(self, event: Event) -> None:
        match event:
            case Note():
                if not self._quiet and (self._verbose or not event.detail):
                    self.close()
                    say(event.text)
            case Stage():
                if event.name != self._stage.name:
                    self._first_gap = math.inf
                self._stage = event
                self._line.show(event.name, event.step, event.share)
            case Progress():
                self._passed(event)
            case Trial():
                widest = variances_text(dict.fromkeys(event.sigma2, WIDEST_VARIANCE))
                self.note(f"  sigma2: {variances_text(event.sigma2):<{len(widest)}}  {event.text}")
            case GrowthRound():
                self.note("  " + render.growth_text(event))
            case Structure():
                for line in render.structure_text(event).split("\n"):
                    self.report(line)

    def _passed(self, event: Progress) -> None:
        """Show a pass. Of a stage whose steps are not counted, the gap says how much of the way to its end is done."""
        stage, share = self._stage, self._stage.share
        gap = f"{event.gap:.2g}" if event.gap < 10 else "-"
        state = f"pass {event.passes}, P {event.value:.6g}, gap {gap}" + ", a point checked again" * event.proof
        if self._verbose:
            say(f"  {', '.join(filter(None, [stage.name, stage.step]))}: {state}")
        elif share is None:
            self._first_gap = event.gap if math.isinf(self._first_gap) else max(self._first_gap, event.gap)
            self._line.show(stage.name, state, fit_share(self._first_gap, event.gap, event.tolerance))
        else:
            self._line.show(stage.name, f"{stage.step}, pass {event.passes}", share)

    def close(self) -> None:
        """Remove the line of progress."""
        self._line.close()


class RunLog(Observer):
    """Events as JSON lines of a file or of stdout (`-`), each written out at once; nothing where there is no path.

    An interrupted or killed run leaves whole lines, and `tail -f` follows a running one. A log that cannot be written
    must not cost the model: its error waits until the model is safe.
    """

    def __init__(self, path: str | None):
        self._began, self._path = time.perf_counter(), path
        self._stage, self._lines, self._ended = "", 0, False
        self.error: OSError | None = None
        self._stream: IO[bytes] | None = None
        if path not in (None, "-"):
            self._stream = open(path, "wb")  # noqa: SIM115, __exit__ closes it

    def tell(self, event: Event) -> None:
        match event:
            case Stage():
                self._stage = f"{event.name}, {event.step}" if event.step else event.name
            case Progress():
                lower, gap = (value if math.isfinite(value) else None for value in (event.lower, event.gap))
                figures = {"objective": event.value, "lower_bound": lower, "gap": gap}
                work = {"hessian_products": event.products, "work": event.work}
                self.write("pass", {"stage": self._stage, "pass": event.passes, **figures, **work})
            case Structure():
                self.write("structure", event.to_dict())
            case Note():
                self.write("note", {"text": event.text})
            case Trial() | GrowthRound():
                self.write("trial" if isinstance(event, Trial) else "growth", asdict(event))

    def write(self, event: str, values: dict[str, Any]) -> None:
        """Write one line; `start` is the first event of a run, `end` the last, once the model is written."""
        self._ended = event == "end"
        if self._path is None or self.error is not None:
            return
        first = {} if self._lines else {"schema": SCHEMA}
        seconds = round(time.perf_counter() - self._began, 6)
        line = render.as_json({"event": event, **first, "seconds": seconds, **values}, indent=None)
        self._lines += 1
        try:
            if self._stream is None:
                write_out(line)
            else:
                with naming(self._path):
                    self._stream.write((line + "\n").encode())
                    self._stream.flush()
        except OSError as error:
            self.error = error

    def __enter__(self) -> RunLog:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is not None and not self._ended:
            self.write("end", {"stop": "failed", "error": str(error) or type(error).__name__})
        if self._stream is not None:
            # What could not be written is still in the buffer, and would fail again here.
            with contextlib.suppress(OSError):
                self._stream.close()


class StopRequest:
    """Ctrl-C asks for an end of work that has something to keep, with a message; the second gives up."""

    signals: tuple[signal.Signals, ...] = (signal.SIGINT,)

    def __init__(self, message: str = ""):
        self._message = message
        self._signal: int | None = None  # the signal that asked for an end
        self._before: dict[int, Any] = {}  # handlers of others, by signal

    def asked(self) -> bool:
        """Return True once the run is to end with what it has."""
        return self._signal is not None

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._signal is not None:
            raise KeyboardInterrupt
        self._signal = number
        say(self._message)

    def __enter__(self) -> Any:
        with contextlib.suppress(ValueError):  # not in the main thread, which alone gets signals
            for number in self.signals:
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


class Interruption(StopRequest, Observer):
    """Passes events on to other observers, and follows by them what Ctrl-C and SIGTERM mean.

    Until the first pass of the final fit is over, they end the command at once: no parameters are worth a file, least
    of all one that takes the place of an older model. From then on the first asks for an end, and a note is printed
    with the next event, or when the run asks; the second gives up.
    """

    signals = (signal.SIGINT, signal.SIGTERM)

    def __init__(self, *observers: Observer):
        super().__init__()
        self._observers = observers
        self._final = self._started = self._noted = False

    def tell(self, event: Event) -> None:
        for observer in self._observers:
            observer.tell(event)
        self._final = self._final or (isinstance(event, Stage) and event.final)
        self._started = self._started or (self._final and isinstance(event, Progress))
        self.asked()

    def asked(self) -> bool:
        if self._signal is not None and not self._noted:
            self._noted = True
            name = "Ctrl-C" if self._signal == signal.SIGINT else "SIGTERM"
            self.report(f"{name}: stopping here and writing the model; a second one gives up")
        return self._signal is not None

    def leave(self) -> None:
        """Raise what the signal that asked for an end raises in other commands."""
        if self._signal == signal.SIGTERM:
            self._before[self._signal](self._signal, None)
        raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._started and self._signal is None:
            self._signal = number
        elif number == signal.SIGTERM:
            self._before[number](number, frame)
        else:
            raise KeyboardInterrupt(*[] if self._started else ["interrupted before there was a model to write"])
