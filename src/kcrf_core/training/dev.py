"""Figures of held-out data for a trained model, and the decoder that labels it best."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ..chains import Problem
from ..encoding import UNKNOWN, UNOBSERVED, Dataset
from ..model import Model
from ..scoring import DECODINGS, SMALLEST_PROBABILITY, Yardstick, choose_yardstick
from ..system import Workers, without_empty
from .held_out import VITERBI, DecoderChoice, blocks_of, choose_decoder, right_sequences, try_bonus


@dataclass(frozen=True)
class DevReport:
    """Figures of labels that a model gives to held-out data."""

    accuracy: float  # part of the positions labelled right, unknown labels counted wrong
    log_probability: float  # mean of log p(y_t | x) over positions whose label is known
    f1: float | None  # of spans, where labels follow a scheme
    macro_f1: float | None  # of types of spans, or of labels; where it is what counts
    metric: str  # what counts, one of METRICS
    decode: str  # the decoder that gave the labels
    positions: int
    unknown_gold: int  # positions whose label the training data lacks

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class DevSet:
    """Labelled held-out data that models are scored on."""

    def __init__(self, dataset: Dataset, yardstick: Yardstick, workers: Workers):
        self._dataset, self._yardstick, self._workers = dataset, yardstick, workers
        Y, labels = len(yardstick.labels), dataset.known_labels
        self._gold = np.where(labels <= UNOBSERVED, -1, np.where(labels == UNKNOWN, Y, labels.astype(np.int64)))  # [N]

    def decoder(self, model: Model) -> DecoderChoice:
        """Return the decoder by which the model labels the data best."""
        dataset, yardstick = self._dataset, self._yardstick.of_labels
        # Units whose spread tells how sure a comparison is: sequences, or blocks of a few long ones. What stands for an
        # unknown label is never looked at.
        labels = np.maximum(dataset.known_labels, 0)
        problem = Problem(labels, dataset.offsets, np.ones(dataset.sequences), len(yardstick.labels))
        blocks = blocks_of(problem, None, 0)
        units = without_empty(dataset.offsets) if blocks is None else np.append(blocks.pieces.first, len(labels))

        def tagged(decode: str, span_bonus: float = 0.0) -> np.ndarray:
            return replace(model, decode=decode, span_bonus=span_bonus).tag(dataset, self._workers)

        def counted(best: np.ndarray) -> np.ndarray:
            return yardstick.counts(self._gold, best, None, units)

        labels_by = {decode: tagged(decode) for decode in DECODINGS}
        counts = {decode: counted(best) for decode, best in labels_by.items()}
        bonus = try_bonus(yardstick, counts, lambda bonus: counted(tagged(VITERBI, bonus)))
        about = dataset.offsets, np.ones(dataset.sequences)
        whole = {decode: right_sequences(self._gold, best, *about) for decode, best in labels_by.items()}
        return choose_decoder(yardstick, counts, "dev", bonus, whole)

    def report(self, model: Model) -> DevReport:
        """Score the model exactly as it will label."""

        def of_gold(part: Dataset) -> tuple[np.ndarray, np.ndarray]:
            found = model.infer(part)
            return found.labels, found.marginals.node[np.arange(part.positions), np.maximum(part.known_labels, 0)]

        dataset, yardstick = self._dataset, self._yardstick
        parts = zip(*model.over_parts(dataset, of_gold, self._workers), strict=True)
        best, probability = (np.concatenate(part) for part in parts)
        logs = np.log(np.maximum(probability.astype(np.float64), SMALLEST_PROBABILITY))
        values = {}
        for name in ["accuracy", "log-loss", *(["f1"] if yardstick.spans else []), yardstick.name]:
            measure = choose_yardstick(yardstick.labels, name)
            values[name] = measure.value(measure.counts(self._gold, best, logs, dataset.offsets))
        return DevReport(
            values["accuracy"],
            values["log-loss"],
            values.get("f1"),
            values.get("macro-f1"),
            yardstick.name,
            model.decode,
            dataset.positions,
            int(np.count_nonzero(dataset.labels == UNKNOWN)),
        )
