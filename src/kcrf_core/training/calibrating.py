"""Calibration fitted to scores of positions that a model has not learnt from, fold by fold.

Sharpness s and offsets o of `model.ScoreCalibration` have the largest log p(y | x) over these scores, less o^2/2 for
each offset. They are kept if the mean of -log p(y_t | x), by calibrations of the other folds, falls by more than one
standard error of the difference, over sequences or groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from ..chains import Edges, chain
from ..config import Config
from ..encoding import Dataset, Encoding
from ..errors import Interrupted
from ..model import Model, ScoreCalibration
from ..scoring import SMALLEST_PROBABILITY, choose_yardstick
from ..system import Workers, offsets_of, scipy_module
from .checkpoint import Checkpoint
from .held_out import HoldOut, whole_folds
from .near_copies import kept_together
from .restriction import divided
from .training import Report, train

FOLDS = 5


@dataclass(frozen=True, eq=False)
class Scored:
    """Potentials of some sequences under a model, and the labels that they have."""

    rows: np.ndarray  # [n] where the positions stand in the corpus
    labels: tuple[str, ...]  # of the model
    scores: np.ndarray  # [n, Y]
    edges: Edges
    offsets: np.ndarray
    gold: np.ndarray  # [n] numbers of labels, negative where the model does not know them


def scored_parts(model: Model, dataset: Dataset, rows: np.ndarray, workers: Workers) -> list[Scored]:
    """Return potentials of a labelled dataset, its positions at `rows` of the corpus, in runs of whole sequences."""
    chunks = model.chunks(dataset)

    def work(chunk: tuple[int, int]) -> Scored:
        part = dataset.span(*chunk)
        first = int(dataset.offsets[chunk[0]])
        scores, edges = model.potentials(part)
        return Scored(
            rows[first : first + part.positions], model.labels, scores, edges, part.offsets, part.known_labels
        )

    return list(workers.map(work, chunks))


@dataclass(frozen=True)
class CalibrationReport:
    """Figures of held-out data with and without calibration."""

    kept: bool
    log_loss_before: float  # of held-out labels
    log_loss: float
    standard_error: float  # of the difference
    sharpness: float
    positions: int

    def to_dict(self) -> dict:
        return asdict(self)


def fit_calibration(
    model: Model,
    report: Report,
    encoding: Encoding,
    dataset: Dataset,
    config: Config,
    workers: Workers,
    hold_out: HoldOut | None = None,
    interrupted: Callable[[], bool] | None = None,
    checkpoint: Checkpoint | None = None,
) -> tuple[Model, CalibrationReport]:
    """Return the model with a calibration, where held-out data shows it to be worth it, and the figures of both.

    `hold_out` says which sequences belong together, or which folds there are. `Interrupted` is raised once
    `interrupted` returns True. Fits of folds are kept in `checkpoint`, which that of the model has begun.
    """
    interrupted, hold_out = interrupted or (lambda: False), hold_out or HoldOut()
    hold_out = kept_together(hold_out, dataset.hashes, dataset.offsets, config.training.near_copies)
    sequences = np.arange(dataset.sequences)
    units, folds = whole_folds(dataset.offsets, sequences, hold_out, FOLDS, [config.training.seed, 7])
    if hold_out.folds is None:
        units.check(sequences, FOLDS, dataset.source, "folds to calibrate on")
    terms = tuple(replace(term, sigma2=report.sigma2.get(term.name, term.sigma2)) for term in config.terms)
    config = replace(config, terms=terms)
    parts: list[list[Scored]] = []
    for test in folds:
        rest, held_out = divided(encoding, dataset, np.setdiff1d(sequences, test), test, config.min_count)
        own, _ = train(encoding, rest, config, workers=workers, interrupted=interrupted, checkpoint=checkpoint)
        if interrupted():
            raise Interrupted("interrupted before the calibration was fitted")
        parts.append(scored_parts(own, held_out, np.arange(held_out.positions), workers))
    yardstick = choose_yardstick(model.encoding.span_labels, "log-loss")
    first, second = [], []
    for fold, held in enumerate(parts):
        others = [part for number, each in enumerate(parts) if number != fold for part in each]
        calibration = _fitted(others, workers)
        for part in held:
            first.append(yardstick.counts(part.gold, None, _logs(part, None), part.offsets))
            second.append(yardstick.counts(part.gold, None, _logs(part, calibration), part.offsets))
    unit = units.of_sequence[np.concatenate(folds)]  # counts stand fold by fold
    totals = []
    for counts in map(np.concatenate, (first, second)):
        totals.append(np.zeros((unit.max() + 1, counts.shape[1])))
        np.add.at(totals[-1], unit, counts)
    before, after = totals
    gain, error = yardstick.difference(after, before)
    calibration = _fitted([part for each in parts for part in each], workers)
    kept = bool(gain > error)
    found = CalibrationReport(
        kept, -yardstick.value(before), -yardstick.value(after), error, calibration.sharpness, dataset.positions
    )
    info = {**model.info, "calibration": found.to_dict()}
    return replace(model, info=info, calibration=calibration if kept else None), found


def _logs(part: Scored, calibration: ScoreCalibration | None) -> np.ndarray:
    """Return log p(y_t | x) of gold labels, [n]."""
    scores, edges = part.scores, part.edges
    if calibration is not None:
        scores, edges = calibration.scores(scores), edges.times(calibration.sharpness)
    node = chain.marginals(scores, edges, part.offsets).node
    return np.log(np.maximum(node[np.arange(len(part.gold)), np.maximum(part.gold, 0)], SMALLEST_PROBABILITY))


def _fitted(parts: Sequence[Scored], workers: Workers) -> ScoreCalibration:
    """Return the calibration of the largest likelihood, over sequences whose labels are all known."""
    minimize = scipy_module("optimize").minimize  # slow to import
    whole = [part for part in map(_complete, parts) if len(part.gold)]
    Y = len(parts[0].labels)

    def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
        calibration = ScoreCalibration(float(np.exp(at[0])), at[1:])
        total, gradient = 0.5 * float(at[1:] @ at[1:]), np.concatenate([[0.0], at[1:]])
        for value, slope in workers.map(lambda part: _likelihood(part, calibration), whole):
            total -= value
            gradient -= slope
        gradient[0] *= calibration.sharpness
        return total, gradient

    best = minimize(loss, np.zeros(1 + Y), jac=True, method="L-BFGS-B", bounds=[(-3, 3), *[(-10, 10)] * Y],
                    options={"maxiter": 50})  # fmt: skip
    return ScoreCalibration(float(np.exp(best.x[0])), best.x[1:] - best.x[1:].mean())


def _complete(part: Scored) -> Scored:
    """Return the sequences of a part without a label that is not known."""
    unknown = np.add.reduceat(part.gold < 0, part.offsets[:-1]) if len(part.gold) else np.zeros(0)
    if not unknown.any():
        return part
    rows = np.repeat(unknown == 0, np.diff(part.offsets))
    offsets = offsets_of(np.diff(part.offsets)[unknown == 0])
    return Scored(part.rows[rows], part.labels, part.scores[rows], part.edges.rows(rows), offsets, part.gold[rows])


def _likelihood(part: Scored, calibration: ScoreCalibration) -> tuple[float, np.ndarray]:
    """Return log p(y | x) of a part, and its slope in s and in each offset, [1 + Y]."""
    scores, edges = calibration.scores(part.scores), part.edges.times(calibration.sharpness)
    found = chain.marginals(scores, edges, part.offsets)
    own = chain.path_scores(part.scores, part.edges, part.offsets, part.gold).sum()
    value = chain.path_scores(scores, edges, part.offsets, part.gold).sum() - found.log_z.sum()
    counts = np.bincount(part.gold, minlength=len(part.labels)) - found.node.sum(axis=0)
    # The expected score of labellings before calibration; forbidden transitions have no probability.
    edges, first, last = part.edges, part.offsets[:-1], part.offsets[1:] - 1
    expected = np.sum(found.node * part.scores) + _product(found.edge, edges.transitions)
    expected += _product(found.node[first], edges.start) + _product(found.node[last], edges.end)
    if edges.triples is not None and found.triple is not None:
        expected += _product(found.triple, edges.triples)
    return float(value), np.concatenate([[own - float(expected)], counts])


def _product(probabilities: np.ndarray, scores: np.ndarray) -> float:
    return float(np.sum(probabilities * np.where(np.isfinite(scores), scores, 0.0)))
