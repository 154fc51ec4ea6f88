"""How much memory training will take, worked out before it begins by the plans that training carries out.

These are estimates: they leave out short-lived copies, and take every conjunction for one that is seen once. What
counts against the budget is held as far as it fits and computed again where it does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..config import Config
from ..encoding import Dataset, Encoding
from ..model import StoredBasis
from ..solvers import vectors_held
from ..system import Budget, size_text
from .term_plans import plan_term, stored_bases
from .terms import DTYPES, TermFootprint

# Interpreter and libraries.
PROGRAM = 100 << 20


@dataclass(frozen=True)
class Footprint:
    budget: int
    data: int
    terms: tuple[TermFootprint, ...]
    errors: int  # of every position and score column
    solver: int  # weights, gradients and the steps that are remembered

    @property
    def table(self) -> int:
        return sum(term.table for term in self.terms)

    @property
    def held(self) -> int:
        """What there is room for of the tables."""
        return min(self.table, max(self.budget - sum(term.fixed for term in self.terms), 0))

    @property
    def total(self) -> int:
        fixed = sum(term.fixed for term in self.terms)
        return PROGRAM + self.data + self.held + fixed + self.errors + self.solver

    def summary(self) -> str:
        """For people, in a line."""
        text = f"memory: about {size_text(self.total)}"
        if self.held < self.table:
            text += (
                f"; {size_text(self.held)} of {size_text(self.table)} kernel values fit into a budget of "
                f"{size_text(self.budget)}, the others are computed again in every pass"
            )
        return text

    def lines(self) -> list[str]:
        """For people: the whole, then what it is made of."""
        out = [self.summary(), f"  program {size_text(PROGRAM)}, data {size_text(self.data)}"]
        out += [f"  term {term.name}: {term.what}, {size_text(term.fixed + term.table)}" for term in self.terms]
        out.append(f"  errors {size_text(self.errors)}, weights and solver {size_text(self.solver)}")
        if any(term.parameters is None for term in self.terms):
            out[-1] += ", without the weights of conjunctions, whose number is known only once they are found"
        return out

    def to_dict(self) -> dict[str, Any]:
        return {
            "total": self.total,
            "budget": self.budget,
            "program": PROGRAM,
            "data": self.data,
            "terms": [term.to_dict() for term in self.terms],
            "table": self.table,
            "held": self.held,
            "errors": self.errors,
            "solver": self.solver,
        }


def footprint(
    encoding: Encoding, dataset: Dataset, config: Config, basis: StoredBasis | None, memory: Budget
) -> Footprint:
    """What training would take."""
    Y, itemsize = len(encoding.labels), DTYPES[config.training.precision].itemsize
    stored = stored_bases(basis)
    terms, data, columns = [], _nbytes(dataset.codes, dataset.real, dataset.labels, dataset.lines), 0
    for term in config.mapped_terms:
        plan = plan_term(term, encoding, dataset, stored.get(term.name))
        data += _nbytes(plan.inputs.codes, plan.inputs.real, plan.inputs.unseen)
        width = term.clique.columns(Y)
        columns += width
        # For pairs of labels all weights are taken for observed ones: it is an estimate.
        few = config.training.observed_features and term.clique.axes == 1
        terms.append(plan.footprint(width, itemsize, dataset.labels if few else None))
    parameters = sum(term.clique.size(Y) for term in config.label_terms) + sum(term.parameters or 0 for term in terms)
    errors = dataset.positions * columns * (itemsize + 8)  # and once in double precision, for the certificate
    return Footprint(memory.total, data, tuple(terms), errors, 8 * vectors_held(parameters) * parameters)


def _nbytes(*arrays: np.ndarray | None) -> int:
    return sum(array.nbytes for array in arrays if array is not None)
