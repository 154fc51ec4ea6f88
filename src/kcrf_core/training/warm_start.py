"""Starting from an earlier model: its function, as far as the new terms can express it.

Terms are matched by name and type, labels by name, features by name and value; what is new starts at zero. For new
pivots B with L L^T = K_BB the old function f is taken over by its values there,

    W = L^-1 f(B),

which is f itself where it lies in the span of the pivots under the same kernel, and else its projection or, under
another kernel, the function of least norm that agrees with it at the pivots.

P has one optimum, so a start changes how soon it is reached and not where it lies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..chains import EDGE2, Edge, Edges, InnerEdge
from ..config import TermConfig, parse_config
from ..encoding import Encoding, translation
from ..errors import ConfigError, FileFormatError, NumericError
from ..features import FittedTerm, LabelMatch, MappedTerm
from ..model import Model
from ..objective import Objective, Vector
from ..objective.solvers import Observer
from ..system import listed


@dataclass(frozen=True)
class WarmStart:
    """An earlier model to begin with."""

    model: Model
    name: str = "the earlier model"  # to show in messages
    search_prior: bool = False  # whether to choose again a sigma2 that the earlier model has chosen

    def check_columns(self, encoding: Encoding) -> None:
        """An error where the model was trained on other columns: nothing of it could be matched with confidence."""
        old = self.model.encoding
        if (old.format, old.columns) == (encoding.format, encoding.columns):
            return
        if old.format != encoding.format:
            raise ConfigError(f"{self.name} was trained on {old.format} data, this is {encoding.format} data")
        raise ConfigError(
            f"{self.name} was trained on other columns: {listed(old.columns)} there, {listed(encoding.columns)} here"
        )

    def known_sigma2(
        self, fitted: Sequence[FittedTerm], given: Mapping[str, float | None], observer: Observer
    ) -> dict[str, float]:
        """The model's prior variances, of terms that it had with the same kernel and that have none given."""
        if self.search_prior:
            return {}
        stored = self._stored_sigma2()
        known = self._terms()
        found = {
            term.name: stored[term.name]
            for term in fitted
            if given[term.name] is None and term.name in stored
            if _matches(term.config, known) and known[term.name].kernel == term.config.kernel
        }
        if found:
            values = ", ".join(f"{name} {value:g}" for name, value in found.items())
            observer.note(f"sigma2 as in {self.name}: {values} (auto chooses it again)")
        return found

    def _stored_sigma2(self) -> dict[str, float]:
        """By term; what a file says that is no variance is left out."""
        training = self.model.info.get("training")
        stored = training.get("sigma2") if isinstance(training, Mapping) else None
        if not isinstance(stored, Mapping):
            return {}
        return {
            name: math.inf if value == "inf" else float(value)
            for name, value in stored.items()
            if value == "inf"
            or (isinstance(value, float | int) and not isinstance(value, bool) and 0 < value < math.inf)
        }

    def choose(
        self,
        encoding: Encoding,
        fitted: Sequence[FittedTerm],
        objective: Objective,
        other: Vector,
        observer: Observer,
    ) -> Vector:
        """Where to start: at the model's function, or at `other` parameters where P is smaller there."""
        theta, said = self.theta(encoding, fitted, objective)
        if _value(objective, other) < _value(objective, theta):
            said = f"{self.name} fits this data worse than a start without it, and is not used"
            theta = other
        observer.note(said)
        return theta

    def theta(self, encoding: Encoding, fitted: Sequence[FittedTerm], objective: Objective) -> tuple[Vector, str]:
        """Parameters of the new terms that say what the model said, and in words how much of it that is."""
        blocks: dict[int, np.ndarray] = {}
        labels = LabelMatch(self.model.labels, encoding.labels)
        known = self._terms()
        stored = {(term.name, term.clique.axes): term for term in self.model.terms}
        said = [labels.summary()]
        for j, term in enumerate(fitted):
            old = stored.get((term.name, term.config.clique.axes)) if j in objective.mapped else None
            if j not in objective.mapped and _matches(term.config, known):
                blocks[j] = self._edge_block(term, labels, objective)
                said.append(f"term {term.name}")
            elif isinstance(term, MappedTerm) and old is not None and old.kind in term.takes_over:
                between = translation(encoding, term.features, self.model.encoding, old.features)
                weights, how = term.taken_over(old, between, labels)
                blocks[j] = objective.block_of(weights, j)
                said.append(f"term {term.name} {how}")
            else:
                said.append(f"term {term.name} at zero")
        return objective.vector(blocks), f"starting from {self.name}: {', '.join(said)}; the rest at zero"

    def _terms(self) -> dict[str, TermConfig]:
        """Terms of the model, as they were configured."""
        try:
            config = parse_config(self.model.info.get("config", {}), self.name)
        except ConfigError as error:
            raise FileFormatError(f"{self.name}: its configuration cannot be read ({error})") from None
        return {term.name: term for term in config.terms}

    def _edge_block(self, term: FittedTerm, labels: LabelMatch, objective: Objective) -> np.ndarray:
        """T, s and e, or U; what either model forbids is zero."""
        old, forbidden = self.model.edges, objective.engine.forbidden
        if term.config.type == EDGE2.name:
            triples = np.zeros((len(labels.old),) * 3) if old.triples is None else old.triples
            return labels.chosen(triples, 3).ravel()
        parts = [labels.chosen(np.where(np.isfinite(part), part, 0.0), part.ndim) for part in _pair_parts(old)]
        if forbidden is not None:
            parts = [np.where(np.isfinite(f), part, 0.0) for part, f in zip(parts, _pair_parts(forbidden), strict=True)]
        if isinstance(term.config.clique, InnerEdge):
            return parts[0].ravel()
        return np.concatenate([part.ravel() for part in parts])


def _value(objective: Objective, theta: Vector) -> float:
    """P, without its gradient; infinite where scores are too large to compute with."""
    try:
        value = objective.prior(theta) - objective.log_likelihood(theta)
    except NumericError:
        return math.inf
    return math.inf if math.isnan(value) else value


def _pair_parts(edges: Edges) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return edges.transitions, edges.start, edges.end


def _matches(term: TermConfig, known: Mapping[str, TermConfig]) -> bool:
    if term.name not in known:
        return False
    return known[term.name].type == term.type or all(isinstance(one.clique, Edge) for one in (term, known[term.name]))
