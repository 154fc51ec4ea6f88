"""Progress of a search: the leaderboard, drawn again and again on a terminal, else a line now and then."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from kcrf_core.selection import Listener

from ..render import tuning_text as text
from ..render.visible import shown
from .progress import ProgressLine, Remaining, on_terminal, say

if TYPE_CHECKING:
    from kcrf_core.scoring import Yardstick
    from kcrf_core.selection import Candidate, Outcome, Search

LINES = 8  # of the table on a terminal


class Leaderboard(Listener):
    """Prints the progress of a search on stderr: a table on a terminal, else lines; nothing if `quiet`.

    Lines are those of all judgements if `verbose`, else one every 30 seconds. There may be several `searches`.
    """

    def __init__(self, quiet: bool, verbose: bool, budget: float | None, searches: int = 1):
        self._quiet, self._verbose, self._budget = quiet, verbose, budget
        self._drawn = not quiet and not verbose and on_terminal()
        self._begun, self._searches = 0, searches
        self._line, self._remaining = ProgressLine(quiet or verbose), Remaining()
        self._height = 0  # lines of the table that stands there
        self._table: list[str] = []
        self._where = ""

    def begin(self, search: Search, title: Callable[[Candidate], str], yardstick: Yardstick) -> None:
        self._search, self._title, self._yardstick, self._table = search, title, yardstick, []
        self._begun += 1
        if self._budget is not None:
            self.note(f"searching for {text.duration(self._budget)}: by the clock, another run may find something else")

    def outer(self, fold: int, folds: int) -> None:
        self.note(f"outer fold {fold + 1} of {folds}: a search without it")

    def rung(self, number: int, positions: int, candidates: int) -> None:
        of = len(self._search.sizes)
        self._where = f"rung {number + 1} of {of}, {positions:,} positions"
        if self._verbose:
            self.note(f"{self._where}: {candidates:,} candidates to begin with")

    def judging(self, candidate: Candidate, rung: int) -> None:
        spent = f"{self._where}, {100 * self._search.share_spent:.0f} % spent"
        share, judged = (self._begun - 1 + self._search.share_spent) / self._searches, self._title(candidate)
        if not self._drawn:
            self._line.show("search", f"{spent}, judging {judged}", share)
        else:  # in the place of the last table
            state = f"{spent}{self._remaining.text(share)}; judging {judged}"
            width = shutil.get_terminal_size().columns - 1
            lines = [shown(line)[:width] for line in [*self._table, state]]
            self.close()
            sys.stderr.write("\n".join(lines) + "\n")
            sys.stderr.flush()
            self._height = len(lines)

    def judged(self, outcome: Outcome) -> None:
        search, yardstick = self._search, self._yardstick
        self._table = text.leaderboard(search.outcomes, self._title, yardstick, search.leader, LINES)
        if self._verbose:
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
