"""Ctrl-C while a model is trained: what there is to keep is kept, and nothing else is written."""

from __future__ import annotations

import contextlib
import signal
from types import FrameType
from typing import Any

from kcrf_core.fitting import Event, FinalFit, Observer
from kcrf_core.solvers import Progress

from .files import say


class Interruption(Observer):
    """Hands events on to another listener, and follows by them what Ctrl-C means.

    Until the first pass of the final fit is over, it gives up at once: no parameters are worth a file, least of all
    one that takes the place of an older model. From then on the first asks for an end, and a note says so when the run
    notices; the second gives up.
    """

    def __init__(self, observer: Observer):
        self._observer = observer
        self._final = self._started = self._asked = self._told = False
        self._before: Any = None

    def tell(self, event: Event) -> None:
        self._observer.tell(event)
        self._final = self._final or isinstance(event, FinalFit)
        self._started = self._started or (self._final and isinstance(event, Progress))

    def asked(self) -> bool:
        """Whether the run is to end with what it has."""
        if self._asked and not self._told:
            self._told = True
            self._observer.note("stopping here and writing the model; Ctrl-C again to give up")
        return self._asked

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if not self._started:
            raise KeyboardInterrupt("interrupted before there was a model to write")
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True

    def __enter__(self) -> Interruption:
        try:
            self._before = signal.signal(signal.SIGINT, self._handle)
        except ValueError:  # not in the main thread: nobody can interrupt
            self._before = None
        return self

    def __exit__(self, *exception: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)


class StopRequest:
    """Ctrl-C asks work that has something to keep for an end, and says so; the second gives up."""

    def __init__(self, word: str):
        self._word, self._asked, self._before = word, False, None

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
