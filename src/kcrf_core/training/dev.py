"""Held-out data that is scored while training goes on, and the parameters that do best on it.

Passes between scores depend on the sizes of the data and on P alone, so that every run keeps the same parameters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..chains import Problem
from ..encoding import UNKNOWN, UNOBSERVED, Dataset, Encoding
from ..features import MappedTerm
from ..model import Model
from ..objective import Objective, Vector
from ..objective.solvers import BEST, DevProgress, DevScore, Observer, Progress, Tolerance, moved
from ..scoring import DECODINGS, SMALLEST_PROBABILITY, Yardstick, choose_yardstick, span_bonuses
from ..system import Workers, without_empty
from .held_out import VITERBI, DecoderChoice, blocks_of, choose_decoder, try_bonus
from .task import Solution, TrainingTask

# Work on held-out data is at most this share of all work, counted in positions.
LARGEST_SHARE = 1 / 3


@dataclass(frozen=True)
class DevReport:
    """Scores on held-out data of the parameters that were kept."""

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


@dataclass(frozen=True)
class Look:
    """Some parameters, and how well they label the held-out data by one decoder."""

    score: DevScore
    theta: Vector
    passes: int
    counts: np.ndarray  # of each unit


class Watch:
    """Scores labelled held-out data whenever P has come down and enough passes have gone by.

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
        self._dataset, self._encoding, self._sigma2 = dataset, encoding, sigma2
        self._keep, self._observer, self._decoder = keep, observer, decoder
        given = 0.0 if decoder is None else decoder.span_bonus
        self._bonuses = span_bonuses(yardstick.labels, given) if given else None
        Y, labels = len(yardstick.labels), dataset.known_labels
        self._gold = np.where(labels == UNOBSERVED, -1, np.where(labels == UNKNOWN, Y, labels.astype(np.int64)))  # [N]
        self._metric, self._by_label = yardstick.name, yardstick.of_labels
        names = ["accuracy", "log-loss", *(["f1"] if yardstick.spans else []), yardstick.name]
        self._yardsticks = {name: choose_yardstick(yardstick.labels, name) for name in names}
        # What stands for an unknown label is never looked at.
        self._problem = Problem(np.maximum(labels, 0), dataset.offsets, np.ones(dataset.sequences), Y)
        # Offsets of units whose spread tells how sure a comparison is: sequences, or blocks of a few long ones.
        blocks = blocks_of(self._problem, None, 0)
        self._blocks = without_empty(dataset.offsets) if blocks is None else np.append(blocks.pieces.first, len(labels))
        self._objective = self._of_data(task)
        # One score takes about a pass over the held-out data.
        cost = dataset.positions / task.problem.positions
        self._interval = max(1, math.ceil(cost * (1 / LARGEST_SHARE - 1)))
        self._last: float | None = None
        self._seen: Vector | None = None  # where the last score was taken
        self._now: dict[str, Look] = {}  # the last scores, by decoder
        self._best: dict[str, Look] = {}  # the best ones

    def _of_data(self, task: TrainingTask) -> Objective:
        """Return P of the held-out data, with the terms of training."""
        terms = []
        for term in task.terms:
            if isinstance(term, MappedTerm):
                inputs = self._encoding.inputs(self._dataset, term.features)
                term = replace(term, map=term.map_of(inputs, task.workers, task.dtype))
            terms.append(term)
        return replace(task, problem=self._problem, terms=tuple(terms)).objective(self._sigma2)

    def _score(self, decode: str, best: np.ndarray, probability: np.ndarray) -> DevScore:
        """Score the best labels [N] by a decoder and the probabilities [N] that gold labels have."""
        logs = np.log(np.maximum(probability.astype(np.float64), SMALLEST_PROBABILITY))
        values = {
            name: each.value(each.counts(self._gold, best, logs, self._dataset.offsets))
            for name, each in self._yardsticks.items()
        }
        return DevScore(
            values["accuracy"], values["log-loss"], values.get("f1"), values.get("macro-f1"), self._metric, decode
        )

    def state(self) -> dict[str, Any]:
        """Return the scores so far."""
        return {"last": self._last, "seen": self._seen, "now": self._now, "best": self._best}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""
        self._last, self._seen = state["last"], state["seen"]
        self._now, self._best = dict(state["now"]), dict(state["best"])

    def widen(self, task: TrainingTask, share: float) -> None:
        """Go on with more columns of the maps, of which the old ones are the first and a `share`."""
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
        if self._bonuses is not None:
            found.labels[VITERBI] = self._objective.engine.best_labels(theta, self._bonuses)
        better = set()
        for name in DECODINGS if self._decoder is None else [self._decoder.decode]:
            labels = found.labels[name]
            score = self._score(name, labels, found.gold)
            counts = self._by_label.counts(self._gold, labels, None, self._blocks)
            self._now[name] = Look(score, theta, passes, counts)
            if score.better_than(self._best[name].score if name in self._best else None):
                self._best[name] = self._now[name]
                better.add(name)
        decode = self._chosen(self._now).decode
        self._observer.tell(DevProgress(passes, self._now[decode].score, decode in better))

    def _chosen(self, looks: Mapping[str, Look], finally_: bool = False) -> DecoderChoice:
        """Return the decoder that was decided on before, else the better one by these scores.

        In the end, a bonus for spans is tried, too.
        """
        if self._decoder is not None:
            return self._decoder
        counts, bonus = {name: look.counts for name, look in looks.items()}, 0.0
        if finally_:
            labelled = partial(self._objective.engine.best_labels, looks[VITERBI].theta)
            bonus = try_bonus(
                self._by_label, counts, lambda own: self._by_label.counts(self._gold, labelled(own), None, self._blocks)
            )
        return choose_decoder(self._by_label, counts, "dev", bonus)

    def kept(self, solution: Solution, tolerance: Tolerance) -> tuple[Solution, DecoderChoice]:
        """Return the solution, or with `keep` "best" the best parameters on the way to it; and the decoder for them."""
        result = solution.result
        if result.theta is not self._seen:
            self._look(result.theta, result.passes)
        if self._keep != "best":
            return solution, self._chosen(self._now, finally_=True)
        decoder = self._chosen(self._best, finally_=True)
        theta = self._best[decoder.decode].theta
        if theta is not result.theta:
            solution = replace(solution, result=moved(result, solution.objective, theta, tolerance, BEST))
        return solution, decoder

    def report(self, model: Model, workers: Workers) -> DevReport:
        """Score the model that is made of the parameters kept, exactly as it will label."""

        def of_gold(part: Dataset) -> tuple[np.ndarray, np.ndarray]:
            found = model.infer(part)
            return found.labels, found.marginals.node[np.arange(part.positions), np.maximum(part.known_labels, 0)]

        labels, probability = zip(*model.over_parts(self._dataset, of_gold, workers), strict=True)
        final = self._score(model.decode, np.concatenate(labels), np.concatenate(probability))
        unknown = int(np.count_nonzero(self._dataset.labels == UNKNOWN))
        best = self._best[model.decode]
        return DevReport(final, self._dataset.positions, unknown, self._keep, best.score, best.passes)
