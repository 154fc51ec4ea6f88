"""Permutation importance of each column at each offset.

The values of one column at one offset are shuffled among all positions of labelled data, in all features that are made
of them: its importance is the drop in the mean log p(y_t | x) of gold labels, and in accuracy. Losses of sequences,
means over repetitions, are taken as independent for the standard error.

A word whose affixes stay, or the reverse, contradicts them, which no data does. So features of a column are shuffled
together; a conjunction gets the value of the other position in the place of its own, and stays unseen where training
did not see one of both tuples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ..encoding import ConjunctionFeature, Dataset
from ..errors import DataError
from ..scoring import SMALLEST_PROBABILITY
from ..system import Workers
from .input_groups import InputGroup, dataset_groups
from .model import Model


@dataclass(frozen=True)
class Importance:
    """Importance of a column at one offset."""

    column: str
    offset: int | None  # None for attributes, which have none
    loss: float  # of the mean log p of gold labels, in nats for each position
    error: float | None  # its standard error; None of one sequence
    accuracy: float  # of the accuracy, from 0 to 1

    @property
    def name(self) -> str:
        return self.column if self.offset is None else f"{self.column}[{self.offset}]"

    def to_dict(self) -> dict[str, Any]:
        return {"standard_error" if name == "error" else name: value for name, value in asdict(self).items()}


def importances(
    model: Model,
    dataset: Dataset,
    workers: Workers,
    repetitions: int = 3,
    seed: int = 0,
    done: Callable[[], None] | None = None,
) -> list[Importance]:
    """Return the importance of all columns at all offsets, the largest first."""
    if dataset.labels is None or not (dataset.labels >= 0).any():
        raise DataError("no labels that the model knows: importance needs labelled data", dataset.source)
    usual = _judged(model, dataset, workers)
    lengths, known = np.diff(dataset.offsets), (dataset.labels >= 0).astype(np.float64)
    sequence = np.repeat(np.arange(len(lengths)), lengths)
    counts, total = np.bincount(sequence, known, minlength=len(lengths)), known.sum()
    found = []
    # Columns at offsets that some term of the model looks at.
    seen = {
        (view.feature.config.name, place)
        for term in model.terms
        for view in model.encoding.views(term.features)
        for place in view.places
    }
    groups = dataset_groups(model.encoding)
    groups = [group for group in groups if group.columns.bag or (group.feature.config.name, group.place) in seen]
    # By column and offset: the groups made of it, and of conjunctions the parts that are.
    members: dict[tuple[str, int | None], list[tuple[InputGroup, list[bool]]]] = {}
    for group in groups:
        for cell in dict.fromkeys(group.cells):
            members.setdefault(cell, []).append((group, [one == cell for one in group.cells]))
    for number, ((name, offset), own) in enumerate(members.items()):
        losses, accuracies = [], []
        for repetition in range(repetitions):
            order = np.random.default_rng([seed, number, repetition]).permutation(dataset.positions)
            shuffled = dataset
            for group, parts in own:
                shuffled = _dealt(shuffled, group, parts, order)
            logs, right = _judged(model, shuffled, workers)
            losses.append(usual[0] - logs)
            accuracies.append(float((usual[1] - right).sum()))
        # The mean over positions with known labels, and its standard error over sequences.
        sums = np.bincount(sequence, np.mean(losses, axis=0) * known, minlength=len(lengths))
        loss, n = float(sums.sum() / total), int(np.count_nonzero(counts))
        effects = (sums - loss * counts)[counts > 0] / total
        error = float(np.sqrt(n / (n - 1) * (effects @ effects))) if n > 1 else None
        found.append(Importance(name, offset, loss, error, float(np.mean(accuracies) / total)))
        if done is not None:
            done()
    return sorted(found, key=lambda one: -one.loss)


def _dealt(dataset: Dataset, group: InputGroup, parts: list[bool], order: np.ndarray) -> Dataset:
    """Return the dataset with values of a group in another order, of a conjunction those of some parts."""
    columns, feature = group.columns, group.feature
    if group.attributes is not None:
        from scipy.sparse import diags_array

        own = diags_array(group.attributes.astype(np.float64))
        bag = (dataset.own_bag - dataset.own_bag @ own + dataset.own_bag[order] @ own).tocsr()
        bag.eliminate_zeros()
        return replace(dataset, bag=bag)
    if columns.bag:
        return replace(dataset, bag=dataset.own_bag[order], bag_unseen=dataset.bag_unseen[order])
    name, own_columns = ("codes", columns.codes) if columns.codes else ("real", columns.real)
    values = getattr(dataset, name).copy()
    dealt = values[order][:, own_columns]
    if isinstance(feature, ConjunctionFeature) and not all(parts):
        mine, other = values[:, own_columns[0]], dealt[:, 0]
        both = np.flatnonzero((mine >= 0) & (other >= 0))
        pairs = zip(*(feature.part_codes(group.place, codes[both]) for codes in (mine, other)), parts, strict=True)
        mixed = [(new if part else old).astype(np.int32) for old, new, part in pairs]
        dealt = np.minimum(mine, other)  # unseen if one of them is
        dealt[both] = feature.numbered(mixed, group.place)
        dealt = dealt[:, None]
    values[:, own_columns] = dealt
    return replace(dataset, **{name: values})


def _judged(model: Model, dataset: Dataset, workers: Workers) -> tuple[np.ndarray, np.ndarray]:
    """Return log p of gold labels, [N], 0 where the model does not know them, and 1 where it gives them."""

    def task(part: Dataset) -> tuple[np.ndarray, np.ndarray]:
        found, known = model.infer(part), part.known_labels >= 0
        p = found.marginals.node[np.arange(part.positions), np.maximum(part.known_labels, 0)]
        return np.where(known, np.log(np.maximum(p, SMALLEST_PROBABILITY)), 0.0), known & (found.labels == part.labels)

    logs, right = zip(*model.over_parts(dataset, task, workers), strict=True)
    return np.concatenate(logs), np.concatenate(right).astype(np.int64)
