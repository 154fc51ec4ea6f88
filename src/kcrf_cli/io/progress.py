"""What a command says on stderr while work goes on: notes in lines, and a bar where someone can watch it."""

from __future__ import annotations

import sys
from functools import singledispatchmethod
from typing import Any

from kcrf_core.objective.solvers import (
    ALL_TERMS,
    DevProgress,
    Event,
    GrowthRound,
    Note,
    Observer,
    PivotsChosen,
    Progress,
    Stage,
    Structure,
    Trial,
    WorkersThere,
)
from kcrf_core.system import counted

from ..render import figures as render
from ..render.visible import shown
from .files import say


class Talk(Observer):
    """Notes as lines on stderr; passes as lines too if `verbose`, else by a bar where stderr is a terminal."""

    def __init__(self, quiet: bool, verbose: bool = False):
        self._quiet, self._verbose = quiet, verbose
        self._watched = not quiet and not verbose and sys.stderr is not None and sys.stderr.isatty()
        self._bar: Any = None
        self._name = ""
        self._dev = ""
        self._workers = ""

    @singledispatchmethod
    def tell(self, event: Event) -> None:
        """Show an event; those without a method below are not shown."""

    @tell.register
    def _note(self, note: Note) -> None:
        self.close()
        if not self._quiet:
            say(note.text)

    @tell.register
    def _stage(self, stage: Stage) -> None:
        self.close()
        self._name = stage.name
        if self._watched:
            from tqdm import tqdm

            layout = None if stage.total else "{desc}: {n_fmt} passes [{elapsed}]{postfix}"
            self._bar = tqdm(total=stage.total, desc=shown(stage.name), file=sys.stderr, leave=False, bar_format=layout)

    @tell.register
    def _pivots(self, chosen: PivotsChosen) -> None:
        if self._bar is not None:
            self._bar.update(chosen.done - self._bar.n)

    @tell.register
    def _passed(self, progress: Progress) -> None:
        gap = f"{progress.gap:.2g}" if progress.gap < 10 else "-"
        state = f"P {progress.value:.6g}, gap {gap}{self._dev}{self._workers}"
        if self._verbose:
            say(f"  {self._name}: pass {progress.passes}, {state}")
        if self._bar is not None:
            self._bar.set_postfix_str(state, refresh=False)
            self._bar.update(progress.passes - self._bar.n)

    @tell.register
    def _manned(self, there: WorkersThere) -> None:
        self._workers = f", {counted(there.count, 'worker')}"

    @tell.register
    def _scored(self, progress: DevProgress) -> None:
        self._dev = f", dev {render.metric_text(progress.score)}"

    @tell.register
    def _tried(self, trial: Trial) -> None:
        every, own = "score variance", {name: f"sigma2 of {name}" for name in trial.sigma2}
        width = max(map(len, (every, *own.values())))  # for any trial of the search, so that figures line up
        if trial.term == ALL_TERMS:
            what, value = every, trial.score_variance
        else:
            what, value = own[trial.term], trial.sigma2[trial.term]
        self.note(f"  {what:<{width}} {value:<8g} {trial.text}")

    @tell.register
    def _grew(self, state: GrowthRound) -> None:
        self.note("  " + render.growth_text(state))

    @tell.register
    def _selected(self, structure: Structure) -> None:
        for line in render.structure_text(structure).split("\n"):
            self.note(line)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
