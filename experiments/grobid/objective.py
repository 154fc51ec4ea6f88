"""P of a stored model of kcrf, or of Wapiti, imported: objective.py MODEL DATA RHO1 RHO2.

P = -log p(labels | data) + rho1 |w|_1 + rho2 / 2 |w|^2, computed here from scores and weights as they are stored, by
one function for both programs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from kcrf_core import Model
from kcrf_core.chains import chain
from kcrf_core.corpora import read_corpus
from kcrf_core.exchange import import_model
from kcrf_core.maps import held_values


def objective(model: Model, data: str, rho1: float, rho2: float) -> dict[str, float]:
    dataset = model.encoding.encode(read_corpus(data))
    loss = 0.0
    for first, end in model.chunks(dataset):
        part = dataset.subset(np.arange(first, end))
        scores, edges = model.potentials(part)
        own = chain.path_scores(scores, edges, part.offsets, part.known_labels)
        loss += float((chain.marginals(scores, edges, part.offsets).log_z - own).sum())
    values = [held_values(term.weights).ravel() for term in model.terms]
    ends = [part.ravel() for part in (model.edges.transitions, model.edges.start, model.edges.end)]
    weights = np.concatenate([*values, *ends])
    penalty = rho1 * float(np.abs(weights).sum()) + rho2 / 2 * float(weights @ weights)
    return {"stored_objective": loss + penalty, "stored_loss": loss, "weights": int(np.count_nonzero(weights))}


def main() -> None:
    path, data, rho1, rho2 = sys.argv[1:]
    with open(data, encoding="utf-8") as stream:
        columns = len(stream.readline().split())
    names = [*(f"c{number}" for number in range(columns - 1)), "label"]
    model = Model.load(path) if Path(path).suffix == ".npz" else import_model(path, names)[0]
    print(json.dumps(objective(model, data, float(rho1), float(rho2))))


if __name__ == "__main__":
    main()
