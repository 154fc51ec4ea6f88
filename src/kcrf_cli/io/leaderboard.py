"""Progress of a search: the leaderboard, drawn again and again on a terminal, else a line for each judgement."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from kcrf_core.selection import Listener

from ..render import tuning_text as text
from ..render.visible import shown
from .files import say

if TYPE_CHECKING:
    from kcrf_core.scoring import Yardstick
    from kcrf_core.selection import Candidate, Outcome, Search

LINES = 8  # of the table on a terminal


class Leaderboard(Listener):
    """Prints the progress of a search on stderr: a table on a terminal, else lines; nothing if `quiet`."""

    def __init__(self, quiet: bool, verbose: bool, budget: float | None):
        self._quiet, self._budget = quiet, budget
        self._drawn = not quiet and not verbose and sys.stderr is not None and sys.stderr.isatty()
        self._height = 0  # lines of the table that stands there
        self._table: list[str] = []
        self._where = ""

    def begin(self, search: Search, title: Callable[[Candidate], str], yardstick: Yardstick) -> None:
        self._search, self._title, self._yardstick, self._table = search, title, yardstick, []
        if self._budget is not None:
            self.note(f"searching for {text.duration(self._budget)}: by the clock, another run may find something else")

    def outer(self, fold: int, folds: int) -> None:
        self.note(f"outer fold {fold + 1} of {folds}: a search without it")

    def rung(self, number: int, positions: int, candidates: int) -> None:
        of = len(self._search.sizes)
        self._where = f"rung {number + 1} of {of}, {positions:,} positions"
        if not self._drawn:
            self.note(f"{self._where}: {candidates:,} candidates to begin with")

    def judging(self, candidate: Candidate, rung: int) -> None:
        if self._drawn:  # in the place of the last table
            state = f"{self._where}, {100 * self._search.share_spent:.0f} % spent; judging {self._title(candidate)}"
            width = shutil.get_terminal_size().columns - 1
            lines = [shown(line)[:width] for line in [*self._table, state]]
            self.close()
            sys.stderr.write("\n".join(lines) + "\n")
            sys.stderr.flush()
            self._height = len(lines)

    def judged(self, outcome: Outcome) -> None:
        search, yardstick = self._search, self._yardstick
        self._table = text.leaderboard(search.outcomes, self._title, yardstick, search.leader, LINES)
        if not self._drawn:
            figure = text.figure(yardstick, outcome.value, outcome.error)
            mark = " *" if outcome is search.leader else ""
            self.note(
                f"  {100 * search.share_spent:3.0f} %  {yardstick.title} {figure}  {outcome.positions:,} positions x "
                f"{outcome.found['folds']}, {text.duration(outcome.seconds)}: {self._title(outcome.candidate)}{mark}"
            )

    def note(self, line: str) -> None:
        if not self._quiet:
            self.close()
            say(line)

    def close(self) -> None:
        """Remove the table."""
        if self._height:
            sys.stderr.write(f"\x1b[{self._height}F\x1b[J")
            sys.stderr.flush()
            self._height = 0
