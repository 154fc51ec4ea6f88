"""Progress of a search for a configuration."""

from __future__ import annotations

from collections.abc import Callable

from kcrf_core.scoring import Yardstick
from kcrf_core.selection import Candidate, Listener, Outcome, Search

from ..render import tuning_text as text
from .progress import ProgressLine, say


class SearchMessages(Listener):
    """Prints the progress of some searches on stderr: every judgement if `verbose`, else a line of progress."""

    def __init__(self, quiet: bool, verbose: bool, budget: float | None, searches: int = 1, trains: bool = False):
        self._quiet, self._verbose, self._budget, self._trains = quiet, verbose, budget, trains
        self._begun, self._searches, self._line = 0, searches, ProgressLine(quiet or verbose)
        self._where = ""

    def begin(self, search: Search, title: Callable[[Candidate], str], yardstick: Yardstick) -> None:
        self._search, self._title, self._yardstick = search, title, yardstick
        self._begun += 1
        if self._budget is not None:
            limit = f"time limit {text.duration(self._budget)}, training included"
            self.note(f"{limit}: the result depends on the speed of the machine")

    def outer(self, fold: int, folds: int) -> None:
        self.note(f"outer fold {fold + 1} of {folds}: a search without it")

    def rung(self, number: int, positions: int, candidates: int) -> None:
        of = len(self._search.sizes)
        self._where = f"round {number + 1} of {of}, {positions:,} positions"
        if self._verbose:
            self.note(f"{self._where}: {candidates:,} candidates at first")

    def judging(self, candidate: Candidate, rung: int) -> None:
        leader, yardstick = self._search.leader, self._yardstick
        best = ""
        if leader is not None:
            best = f", best {yardstick.title} {text.figure(yardstick, leader.value, leader.error)}"
        self._show(f"{self._where}{best}; trying {self._title(candidate)}")

    def end(self) -> None:
        if self._begun == self._searches:
            self._show("all candidates tried")

    def _show(self, state: str) -> None:
        """Show the share of all searches that is done, and the time that they still take."""
        search = self._search
        share, left = search.share_done, search.seconds_left(self._trains)
        if left is not None and share < 1:
            left += (self._searches - self._begun) * left / (1 - share)
        done = (self._begun - 1 + share) / self._searches
        self._line.show("search", f"{100 * done:.0f} % done, {state}", done, left)

    def judged(self, outcome: Outcome) -> None:
        search, yardstick = self._search, self._yardstick
        if self._verbose:
            figure = text.figure(yardstick, outcome.value, outcome.error)
            mark = " *" if outcome is search.leader else ""
            self.note(
                f"  {100 * search.share_done:3.0f} %  {yardstick.title} {figure}  {outcome.positions:,} positions x "
                f"{outcome.found['folds']} folds, {text.duration(outcome.seconds)}: "
                f"{self._title(outcome.candidate)}{mark}"
            )

    def note(self, line: str) -> None:
        if not self._quiet:
            self.close()
            say(line)

    def close(self) -> None:
        """Remove the line of progress."""
        self._line.close()
