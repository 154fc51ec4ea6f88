"""Progress of a search for a configuration."""

from __future__ import annotations

from collections.abc import Callable

from kcrf_core.scoring import Yardstick
from kcrf_core.selection import Candidate, Listener, Outcome, Search

from ..render import tuning_text as text
from .progress import ProgressLine, say


class SearchMessages(Listener):
    """Prints the progress of a search on stderr: every judgement if `verbose`, else a line of progress."""

    def __init__(self, quiet: bool, verbose: bool, budget: float | None, trains: bool = False):
        self._quiet, self._verbose, self._budget, self._trains = quiet, verbose, budget, trains
        self._line, self._where = ProgressLine(quiet or verbose), ""

    def begin(self, search: Search, title: Callable[[Candidate], str], yardstick: Yardstick) -> None:
        self._search, self._title, self._yardstick = search, title, yardstick
        if self._budget is not None:
            limit = f"time limit {text.duration(self._budget)}, training included"
            self.note(f"{limit}: the result depends on the speed of the machine")

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
        self._show("all candidates tried")

    def _show(self, state: str) -> None:
        """Show the share of the search that is done, and the time that it still takes."""
        share, left = self._search.share_done, self._search.seconds_left(self._trains)
        self._line.show("search", f"{100 * share:.0f} % done, {state}", share, left)

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
