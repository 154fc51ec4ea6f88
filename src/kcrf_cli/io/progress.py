"""Messages on stderr, and the progress of long work: a line that a terminal shows, else one every 30 seconds at most.

The remaining time follows from the share of the work that is done, by the rate of the last half of the steps.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import IO, TYPE_CHECKING

from ..options import with_flags
from ..render.visible import shown

if TYPE_CHECKING:
    from tqdm import tqdm

REDRAWN, PRINTED = 0.1, 30.0  # least seconds between two states, on a terminal and elsewhere
SOONEST = 2.0  # seconds of work before its end is estimated
AT_ONCE = 0.1  # what is done in so many seconds was done before, such as trainings in a journal


def say(text: str) -> None:
    """Print a line on stderr, remarks with their options; failure to write there does not stop the work."""
    if sys.stderr is None:
        return
    try:
        print(shown(with_flags(text, getattr(text, "settings", ()))), file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def discard(stream: IO[str] | None) -> None:
    """Drop the buffer of a broken stream: Python would fail again when it flushes at exit."""
    if stream is not None:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def on_terminal() -> bool:
    """Return True if stderr is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


class Remaining:
    """Estimate of the time that work will still take, from the share of it that is done now and then."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._seen: list[tuple[float, float]] = []  # time and share

    def seconds(self, share: float) -> float | None:
        """Take up the share that is done; return how long the rest will take, None while that is unknown."""
        now, seen = self._clock(), self._seen
        if not seen or share < seen[-1][1]:
            self._began = now  # the work begins, or begins anew
        if now - self._began < AT_ONCE:
            seen[:] = [(now, share)]
        elif share > seen[-1][1]:
            seen.append((now, share))
        (earlier, before), (last, done) = seen[(len(seen) - 1) // 2], seen[-1]
        if now - self._began < SOONEST or done <= before or done >= 1:
            return None
        left = (last - earlier) * (1 - done) / (done - before) - (now - last)
        # A step that takes longer than those before it says how slow work has become.
        return left if left > 0 else (now - earlier) * (1 - done) / (done - before)

    def text(self, share: float | None) -> str:
        """Return the estimate in words, after a comma; nothing while it is unknown."""
        left = None if share is None else self.seconds(share)
        if left is None:
            return ""
        if left < 90:
            return f", about {max(round(left), 1)} s left"
        return f", about {round(left / 60)} min left" if left < 5400 else f", about {left / 3600:.1f} h left"


class ProgressLine:
    """The state of long work and its remaining time, on stderr; nothing if `quiet`."""

    def __init__(self, quiet: bool, clock: Callable[[], float] = time.monotonic, delay: float = 0.0):
        self._quiet, self._clock, self._drawn = quiet, clock, on_terminal()
        self._name, self._remaining = "", Remaining(clock)
        self._due = clock() + (delay if self._drawn else PRINTED)
        self._bar: tqdm | None = None  # while a line stands on the terminal
        self._shown = False  # a state, so that the end is shown, too

    def show(self, name: str, state: str, share: float | None = None) -> None:
        """Show how far the work of this name is, and how many seconds are left, by the share that is done."""
        if self._quiet:
            return
        if name != self._name:
            self._name, self._remaining = name, Remaining(self._clock)
        about = self._remaining.text(share)
        if self._clock() < self._due and not (share == 1 and self._shown):
            return
        self._shown = True
        self._due = self._clock() + (REDRAWN if self._drawn else PRINTED)
        text = f"{name}{about}: {state}" if state else name + about
        if not self._drawn:
            say(text)
        else:
            self._draw(shown(text), share)

    def _draw(self, text: str, share: float | None) -> None:
        from tqdm import tqdm

        with contextlib.suppress(OSError):
            if self._bar is None:
                tqdm.monitor_interval = 0  # no thread that redraws
                looks = {"leave": False, "nrows": 24, "bar_format": "{desc}", "desc": text}
                self._bar = tqdm(total=1.0, file=sys.stderr, **looks)
            self._bar.ncols = shutil.get_terminal_size().columns - 1
            self._bar.bar_format = "{desc}" if share is None else "{desc} |{bar:20}|"
            self._bar.n = share or 0.0
            self._bar.set_description_str(text)

    def close(self) -> None:
        """Remove the line."""
        if self._bar is not None:
            with contextlib.suppress(OSError):
                self._bar.close()
            self._bar = None


@contextlib.contextmanager
def progress(
    quiet: bool, name: str, total: int | None = None, paths: Sequence[str] = ()
) -> Iterator[Callable[..., None]]:
    """Show the progress of counted work, or of the bytes of files; yield a function of a count and a text beside it."""
    from kcrf_core.files import is_compressed
    from kcrf_core.system import size_text

    if paths:  # bytes read, against their number where all files are plain ones
        plain = all(path != "-" and os.path.isfile(path) and not is_compressed(path) for path in paths)
        total = sum(map(os.path.getsize, paths)) if plain else None
    line, done, text = ProgressLine(quiet, delay=1.0 if paths else 0.0), 0, size_text if paths else "{:,}".format

    def move(count: int = 1, about: str = "") -> None:
        nonlocal done
        done += count
        of = f" of {text(total)}" if total else ""
        line.show(name, f"{text(done)}{of}{about and f' ({about})'}", done / total if total else None)

    with contextlib.closing(line):
        move(0)
        yield move


def fit_share(first: float, gap: float, tolerance: float) -> float | None:
    """Return the share of a fit that is done: the gap falls from the first one to the tolerance by a steady factor."""
    if not tolerance < gap <= first < math.inf or tolerance <= 0:
        return None
    return math.log(first / gap) / math.log(first / tolerance)
