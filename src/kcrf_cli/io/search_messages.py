"""Progress of a search for a configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kcrf_core.scoring import Yardstick
from kcrf_core.selection import Candidate, Listener, Outcome, Search

from ..render import tuning_text as text
from .progress import ProgressLine, say


class SearchMessages(Listener):
    """Prints the progress of a search on stderr: every judgement if `verbose`, else a line of progress."""

    def __init__(self, quiet: bool, verbose: bool, budget: float | None):
        self._quiet, self._verbose, self._budget = quiet, verbose, budget
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
        leader, yardstick, best = self._search.leader, self._yardstick, ""
        if leader is not None:
            best = f", best {yardstick.title} {text.figure(yardstick, leader.value, leader.error)}"
        # A search may try all candidates with a part of its work: only the end of a time is known.
        share = None if self._budget is None else self._search.share_spent
        self._line.show("search", f"{self._spent} spent, {self._where}{best}; trying {self._title(candidate)}", share)

    @property
    def _spent(self) -> str:
        unit = "work" if self._budget is None else "time"
        return f"{100 * self._search.share_spent:.0f} % of the {unit}"

    def judged(self, outcome: Outcome) -> None:
        yardstick = self._yardstick
        if self._verbose:
            figure = text.figure(yardstick, outcome.value, outcome.error)
            mark = " *" if outcome is self._search.leader else ""
            self.note(
                f"  {self._spent}  {yardstick.title} {figure}  {outcome.positions:,} positions x "
                f"{outcome.found['folds']} folds, {text.duration(outcome.seconds)}: "
                f"{self._title(outcome.candidate)}{mark}"
            )

    def left_out(self, candidates: Sequence[Candidate], rung: int) -> None:
        unit = "work" if self._budget is None else "time"
        names = "; ".join(map(self._title, candidates))
        self.note(f"round {rung + 1}: too little {unit} is left to judge {names}")

    def note(self, line: str) -> None:
        if not self._quiet:
            self.close()
            say(line)

    def close(self) -> None:
        """Remove the line of progress."""
        self._line.close()
