"""Ctrl-C and SIGTERM while a model is trained: parameters worth a file are written, and nothing else is."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable
from types import FrameType
from typing import Any

from kcrf_core.objective.solvers import Event, FinalFit, Observer, Progress

from .files import say

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption(Observer):
    """Hands events on to another listener, and follows by them what Ctrl-C and SIGTERM mean.

    Until the first pass of the final fit is over, they end the command at once: no parameters are worth a file, least
    of all one that takes the place of an older model. From then on the first asks for an end, and a note says so when
    the run notices; the second gives up.
    """

    def __init__(self, observer: Observer):
        self._observer = observer
        self._final = self._started = self._told = False
        self._asked: int | None = None  # the signal that asked for an end
        self._before: dict[int, Any] = {}  # handlers of others, by signal

    def tell(self, event: Event) -> None:
        self._observer.tell(event)
        self._final = self._final or isinstance(event, FinalFit)
        self._started = self._started or (self._final and isinstance(event, Progress))

    def asked(self) -> bool:
        """Return True once the run is to end with what it has."""
        if self._asked is not None and not self._told:
            self._told = True
            name = "Ctrl-C" if self._asked == signal.SIGINT else "SIGTERM"
            self._observer.note(f"{name}: stopping here and writing the model; a second one gives up")
        return self._asked is not None

    def leave(self) -> None:
        """Raise what the signal that asked for an end raises in other commands."""
        if self._asked == signal.SIGTERM:
            self._before[self._asked](self._asked, None)
        raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._started and self._asked is None:
            self._asked = number
        elif number == signal.SIGTERM:
            self._before[number](number, frame)
        else:
            raise KeyboardInterrupt(*[] if self._started else ["interrupted before there was a model to write"])

    def __enter__(self) -> Interruption:
        with contextlib.suppress(ValueError):  # not in the main thread, which alone gets signals
            for number in SIGNALS:
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


class StopRequest:
    """Ctrl-C asks work that has something to keep for an end, and says so; the second gives up."""

    def __init__(self, word: str):
        self._word, self._asked = word, False
        self._before: Callable[[int, FrameType | None], object] | int | None = None

    def asked(self) -> bool:
        return self._asked

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True
        say(self._word)

    def __enter__(self) -> StopRequest:
        with contextlib.suppress(ValueError):  # not in the main thread: nobody can interrupt
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
