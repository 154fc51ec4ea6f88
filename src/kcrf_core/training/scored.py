"""Potentials of labelled sequences, kept to be looked at several times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..chains import Edges
from ..encoding import Dataset
from ..model import Model
from ..system import Workers


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
    """Potentials of a labelled dataset, whose positions stand at `rows` of the corpus, in runs of whole sequences."""
    chunks = model.chunks(dataset)

    def work(chunk: tuple[int, int]) -> Scored:
        part = dataset.span(*chunk)
        first = int(dataset.offsets[chunk[0]])
        scores, edges = model.potentials(part)
        return Scored(
            rows[first : first + part.positions], model.labels, scores, edges, part.offsets, part.known_labels
        )

    return list(workers.map(work, chunks))
