"""What `KernelCRF(verbose=True)` tells, through Python's logging."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from .observer import Observer, Trial
from .solvers import Progress

LOGGER = logging.getLogger("kcrf_core")


class LoggingObserver(Observer):
    """Notes and trials, and with `passes` every pass."""

    def __init__(self, passes: bool):
        self._passes = passes

    def note(self, text: str) -> None:
        LOGGER.info(text)

    def tried(self, trial: Trial) -> None:
        figures = f"held-out log p(label) {trial.log_probability:.4f}, accuracy {100 * trial.accuracy:.2f} %"
        LOGGER.info("score variance %g of %s: %s", trial.score_variance, trial.term, figures)

    def passed(self, progress: Progress) -> None:
        if self._passes:
            LOGGER.info("pass %d: P %.6f, gap %.2g", progress.passes, progress.value, progress.gap)


@contextmanager
def talking(verbose: bool | int) -> Iterator[Observer]:
    """An observer that logs where it is asked to; on stderr where nobody has set up logging."""
    if not verbose:
        yield Observer()
        return
    level = LOGGER.level
    own = None if LOGGER.hasHandlers() else logging.StreamHandler()
    if own is not None:
        LOGGER.addHandler(own)
    if not LOGGER.isEnabledFor(logging.INFO):
        LOGGER.setLevel(logging.INFO)
    try:
        yield LoggingObserver(int(verbose) > 1)
    finally:
        LOGGER.setLevel(level)
        if own is not None:
            LOGGER.removeHandler(own)
