"""How much memory training will take, worked out before it begins.

Estimates: they leave out short-lived copies, and take every conjunction for one that is seen once. What counts against
the budget is held as far as it fits and computed again where it does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..chains import score_columns
from ..config import Config, TermConfig
from ..encoding import Dataset, Encoding
from ..kernels import Inputs
from ..maps import conjunction_count, why_not
from ..model import StoredBasis
from ..solvers import vectors_held
from ..system import Budget, size_text
from .fitted_terms import DTYPES
from .term_choices import (
    BYTES_PER_CONJUNCTION,
    BYTES_PER_PAIR,
    FULL_BYTES_PER_PAIR,
    map_type,
    pivot_limits,
    worth_sharing,
)

# Interpreter and libraries.
PROGRAM = 100 << 20


@dataclass(frozen=True)
class TermFootprint:
    """Memory of one term's map."""

    name: str
    what: str  # in words
    table: int  # bytes that are held where they fit, else computed again
    fixed: int  # bytes that have to be there
    parameters: int | None  # D times the columns of weights; of conjunctions it is not known yet

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "map": self.what, "table": self.table, "fixed": self.fixed}


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
                f"; {size_text(self.held)} of {size_text(self.table)} kernel values fit into --memory "
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
    sizes = {} if basis is None else {term.name: len(term.pivots) for term in basis.terms}
    terms, data, columns = [], _nbytes(dataset.codes, dataset.real, dataset.labels, dataset.lines), 0
    for term in config.mapped_terms:
        inputs = encoding.inputs(dataset, tuple(encoding.term_features(term))).seen()
        data += _nbytes(inputs.codes, inputs.real, inputs.unseen)
        width = score_columns(Y) if term.type == "node" else Y * Y
        columns += width
        # For pairs of labels all weights are taken for observed ones: it is an estimate.
        labels = dataset.labels if config.training.observed_features and term.type == "node" else None
        terms.append(_term(term, inputs, sizes.get(term.name), width, itemsize, labels))
    labels_alone = Y * Y + 2 * Y + (Y**3 if config.edge2_term is not None else 0)
    parameters = labels_alone + sum(term.parameters or 0 for term in terms)
    errors = dataset.positions * columns * (itemsize + 8)  # and once in double precision, for the certificate
    return Footprint(memory.total, data, tuple(terms), errors, 8 * vectors_held(parameters) * parameters)


def _term(
    term: TermConfig, inputs: Inputs, given: int | None, width: int, itemsize: int, labels: np.ndarray | None
) -> TermFootprint:
    """Of a term; with labels [N] where only weights of pairs with them are fitted."""
    N = len(inputs)
    kind = "reduced" if given is not None else map_type(term, inputs)
    if kind == "explicit":
        return _explicit(term, inputs, width, itemsize, labels)
    distinct = len(inputs.distinct()[0])
    if kind == "full":
        size, what = distinct, f"every one of {distinct:,} distinct inputs as a pivot"
        pair = FULL_BYTES_PER_PAIR
    else:
        pair = BYTES_PER_PAIR
        size = given or pivot_limits(term, N)[0]
        what = f"{size:,} pivots"
    rows = distinct if worth_sharing(distinct, N) else N
    what = f"kernel values of {rows:,} {'distinct inputs' if rows < N else 'positions'} with {what}"
    return TermFootprint(term.name, what, rows * size * itemsize, pair * size**2, size * width)


def _explicit(term: TermConfig, inputs: Inputs, width: int, itemsize: int, labels: np.ndarray | None) -> TermFootprint:
    features = int(inputs.sizes.sum()) + (0 if inputs.bag is None else inputs.bag.shape[1])
    entries = int((inputs.codes >= 0).sum()) + (0 if inputs.bag is None else inputs.bag.nnz)
    affine = term.kernel.type == "poly" and term.kernel.degree == 1 and not term.kernel.cosine
    affine = affine and why_not(inputs, 1) is not None
    if term.kernel.type == "poly" and not affine:
        count = conjunction_count(inputs, term.kernel.degree)
        what = f"at most {count:,} conjunctions"
        return TermFootprint(term.name, what, 0, BYTES_PER_CONJUNCTION * count, None)
    real = inputs.real.shape[1] + affine
    # By rows and by columns, indices and values.
    fixed = entries * 20 + len(inputs) * real * itemsize
    size = features + real
    what, parameters = f"explicit map of {size:,} features", size * width
    if labels is not None:
        # All weights are laid out for a pass, in single and in double precision, but few are solved for.
        fixed += 12 * parameters
        parameters = min(_pairs(inputs, labels if width > 1 else np.minimum(labels, 0), width), parameters)
        what += f" with {parameters:,} weights"
    return TermFootprint(term.name, what, 0, fixed, parameters)


def _pairs(inputs: Inputs, columns: np.ndarray, width: int) -> int:
    """How many pairs of a feature and a column of weights are observed, attributes and real columns at most."""
    pairs = inputs.real.shape[1] * width + (0 if inputs.bag is None else inputs.bag.nnz)
    for codes in inputs.codes.T.astype(np.int64):
        pairs += len(np.unique((codes * width + columns)[(codes >= 0) & (columns >= 0)]))
    return pairs


def _nbytes(*arrays: np.ndarray | None) -> int:
    return sum(array.nbytes for array in arrays if array is not None)
