"""Held-out data that is scored while training goes on, and the parameters that do best on it.

How often it is scored depends on the sizes of the data and on P alone, never on the clock, so that what is kept is
the same in every run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ..chains import Problem
from ..encoding import UNKNOWN, UNOBSERVED, Dataset, Encoding
from ..features import MappedTerm
from ..model import Model
from ..objective import Objective, Vector
from ..objective.solvers import BEST, DevProgress, DevScore, Observer, Progress, moved
from ..scoring import DECODINGS, SMALLEST_PROBABILITY, Yardstick, choose_yardstick
from ..system import Workers
from .decoder_choice import DecoderChoice, choose_decoder
from .held_out import blocks_of
from .task import Solution, TrainingTask

# Work on held-out data is at most this part of all work, counted in positions.
LARGEST_SHARE = 1 / 3


@dataclass(frozen=True)
class DevReport:
    """How well the parameters that were kept label the held-out data."""

    score: DevScore
    positions: int
    unknown_gold: int  # positions whose label the training data lacks
    keep: str  # last or best
    best: DevScore  # of all scores that were taken
    best_pass: int  # after which pass it was

    def to_dict(self) -> dict[str, Any]:
        return {
            **asdict(self.score),
            "positions": self.positions,
            "unknown_gold": self.unknown_gold,
            "keep": self.keep,
            "best": {**asdict(self.best), "pass": self.best_pass},
        }


class DevData:
    """Labelled held-out data, and scores of labellings of it."""

    def __init__(self, dataset: Dataset, yardstick: Yardstick):
        self.dataset = dataset
        Y = len(yardstick.labels)
        labels = dataset.known_labels.astype(np.int64)
        self._gold = np.where(labels == UNOBSERVED, -1, np.where(labels == UNKNOWN, Y, labels))  # [N]
        self._metric, self._by_label = yardstick.name, yardstick.of_labels
        names = ["accuracy", "log-loss", *(["f1"] if yardstick.spans else []), yardstick.name]
        self._yardsticks = {name: choose_yardstick(yardstick.labels, name) for name in names}
        self._blocks = self._blocks_of(Y)

    def _blocks_of(self, Y: int) -> np.ndarray:
        """Offsets of units whose spread tells how sure a comparison is: sequences, or blocks of a few long ones."""
        blocks = blocks_of(self.problem(Y), None, 0)
        return np.unique(self.dataset.offsets) if blocks is None else np.append(blocks.pieces.first, len(self._gold))

    @property
    def unknown(self) -> int:
        """Positions whose label the model does not know."""
        return int(np.count_nonzero(self.dataset.labels == UNKNOWN))

    def problem(self, label_count: int) -> Problem:
        # What stands for an unknown label is never looked at.
        labels = np.maximum(self.dataset.known_labels, 0)
        return Problem(labels, self.dataset.offsets, np.ones(self.dataset.sequences), label_count)

    def score(self, decode: str, best: np.ndarray, probability: np.ndarray) -> DevScore:
        """Score the best labels [N] by a decoder and the probabilities [N] that gold labels have."""
        logs = np.log(np.maximum(probability.astype(np.float64), SMALLEST_PROBABILITY))
        values = {
            name: each.value(each.counts(self._gold, best, logs, self.dataset.offsets))
            for name, each in self._yardsticks.items()
        }
        return DevScore(
            values["accuracy"], values["log-loss"], values.get("f1"), values.get("macro-f1"), self._metric, decode
        )

    def unit_counts(self, best: np.ndarray) -> np.ndarray:
        """Counts by which decoders are compared, of each unit."""
        return self._by_label.counts(self._gold, best, None, self._blocks)

    def choose(self, counts: Mapping[str, np.ndarray]) -> DecoderChoice:
        """The decoder by the counts of `unit_counts`."""
        return choose_decoder(self._by_label, counts, "dev")

    def score_model(self, model: Model, workers: Workers) -> DevScore:
        """Score a finished model, exactly as it will label."""

        def of_gold(part: Dataset, best: np.ndarray, marginals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return best, marginals[np.arange(len(best)), np.maximum(part.known_labels, 0)]

        best, probability = zip(*model.tag_with_marginals(self.dataset, of_gold, workers), strict=True)
        return self.score(model.decode, np.concatenate(best), np.concatenate(probability))


@dataclass(frozen=True)
class Look:
    """Some parameters, and how well they label the held-out data by one decoder."""

    score: DevScore
    theta: Vector
    passes: int
    counts: np.ndarray  # of each unit


class Watch:
    """Scores held-out data whenever P has come down and enough passes have gone by.

    Where the decoder is open, each decoder has its own best parameters, and the choice is made in the end.
    """

    def __init__(
        self,
        dataset: Dataset,
        keep: str,
        encoding: Encoding,
        task: TrainingTask,  # of training
        sigma2: Mapping[str, float],
        yardstick: Yardstick,
        decoder: DecoderChoice | None,  # None: it is open
        observer: Observer,
    ):
        self._data, self._encoding, self._sigma2 = DevData(dataset, yardstick), encoding, sigma2
        self._objective = self._of_data(task)
        self._keep, self._observer, self._decoder = keep, observer, decoder
        # One score takes about a pass over the held-out data.
        cost = dataset.positions / task.problem.positions
        self._interval = max(1, math.ceil(cost * (1 / LARGEST_SHARE - 1)))
        self._last: float | None = None
        self._seen: Vector | None = None  # where the last score was taken
        self._now: dict[str, Look] = {}  # the last scores, by decoder
        self._best: dict[str, Look] = {}  # the best ones

    def _of_data(self, task: TrainingTask) -> Objective:
        """P of the held-out data, with the terms of training."""
        dataset, terms = self._data.dataset, []
        for term in task.terms:
            if isinstance(term, MappedTerm) and term.map is not None:
                inputs = self._encoding.inputs(dataset, term.features)
                term = replace(term, map=term.map_of(inputs, task.workers, task.dtype))
            terms.append(term)
        problem = self._data.problem(task.problem.label_count)
        return replace(task, problem=problem, terms=tuple(terms)).objective(self._sigma2)

    def state(self) -> dict[str, Any]:
        """Return the scores so far."""
        return {"last": self._last, "seen": self._seen, "now": self._now, "best": self._best}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""
        self._last, self._seen = state["last"], state["seen"]
        self._now, self._best = dict(state["now"]), dict(state["best"])

    def widen(self, task: TrainingTask, share: float) -> None:
        """Go on with more columns of the maps, of which the old ones are the first and `share` is their part."""
        before, self._objective = self._objective, self._of_data(task)
        self._seen = None
        for name, look in self._best.items():
            self._best[name] = replace(look, theta=self._objective.vectors.widened(look.theta, before.vectors))
        if self._last is not None:
            self._last *= share  # as the run counts its work

    def passed(self, progress: Progress) -> None:
        """Score the point of one more pass, if it is time; one of another size belongs to a part of the problem."""
        self._observer.tell(progress)
        theta, work = progress.theta, progress.work
        if theta is None or theta is self._seen or self._objective.vectors.length(theta) != self._objective.size:
            return
        if self._last is None or work - self._last >= self._interval:
            self._last, self._seen = work, theta
            self._look(theta, progress.passes)

    def _look(self, theta: Vector, passes: int) -> None:
        """Score these parameters, and keep them for the decoders that they are the best so far for."""
        found = self._objective.engine.predictions(theta)
        better = set()
        for name in DECODINGS if self._decoder is None else [self._decoder.decode]:
            labels = found.labels[name]
            score = self._data.score(name, labels, found.gold)
            self._now[name] = Look(score, theta, passes, self._data.unit_counts(labels))
            if score.better_than(self._best[name].score if name in self._best else None):
                self._best[name] = self._now[name]
                better.add(name)
        decode = self._chosen(self._now).decode
        self._observer.tell(DevProgress(passes, self._now[decode].score, decode in better))

    def _chosen(self, looks: Mapping[str, Look]) -> DecoderChoice:
        """The decoder: the one that was decided on before, else the one that these scores speak for."""
        return self._decoder or self._data.choose({name: look.counts for name, look in looks.items()})

    def kept(self, solution: Solution, tolerance: float) -> tuple[Solution, DecoderChoice]:
        """The solution, or with `keep` "best" the best parameters on the way to it; and the decoder for them.

        Those come with their own P, against the best lower bound of all: they count as certified only where it
        proves that they are.
        """
        result = solution.result
        if result.theta is not self._seen:
            self._look(result.theta, result.passes)
        if self._keep != "best":
            return solution, self._chosen(self._now)
        decoder = self._chosen(self._best)
        theta = self._best[decoder.decode].theta
        if theta is not result.theta:
            solution = replace(solution, result=moved(result, solution.objective, theta, tolerance, BEST))
        return solution, decoder

    def report(self, model: Model, workers: Workers) -> DevReport:
        """Score the model that is made of the parameters kept."""
        best, data = self._best[model.decode], self._data
        final = data.score_model(model, workers)
        return DevReport(final, data.dataset.positions, data.unknown, self._keep, best.score, best.passes)
