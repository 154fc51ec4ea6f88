"""A start from an earlier model: its function, projected on the new terms.

Terms are matched by name and type, labels by name, features by name and value; what is new starts at zero. For new
pivots B with L L^T = K_BB the old function f is taken over by its values there, W = L^-1 f(B).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..chains import EDGE2, Edge, InnerEdge
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
    search_prior: bool = False  # True: choose again a sigma2 that the earlier model has chosen

    def check_columns(self, encoding: Encoding) -> None:
        """Refuse a model that was trained on other columns: nothing of it could be matched with confidence."""
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
        """Return the model's prior variances of terms that it had with the same kernel and that have none given."""
        if self.search_prior:
            return {}
        training = self.model.info.get("training")
        stored = training.get("sigma2") if isinstance(training, Mapping) else None
        known, found = self._terms(), {}
        for config in (term.config for term in fitted):
            value: Any = stored.get(config.name) if isinstance(stored, Mapping) else None
            finite = isinstance(value, float | int) and not isinstance(value, bool) and 0 < value < math.inf
            if given[config.name] is not None or not (finite or value == "inf"):
                continue  # other values are no variances
            if _matches(config, known) and known[config.name].kernel == config.kernel:
                found[config.name] = float(value)
        if found:
            values = ", ".join(f"{name} {value:g}" for name, value in found.items())
            observer.report(f"sigma2 as in {self.name}: {values} (auto chooses it again)")
        return found

    def choose(
        self, encoding: Encoding, fitted: Sequence[FittedTerm], objective: Objective, other: Vector, observer: Observer
    ) -> Vector:
        """Return parameters to start at: those of the model's function, or `other` ones where P is smaller there."""
        blocks: dict[int, np.ndarray] = {}
        labels = LabelMatch(self.model.labels, encoding.labels, sparse=objective.thresholds is not None)
        known = self._terms()
        stored = {(term.name, term.clique.axes): term for term in self.model.terms}
        taken = [labels.summary()]
        for j, term in enumerate(fitted):
            name, mapped = term.config.name, j in objective.mapped
            old = stored.get((name, term.config.clique.axes)) if mapped else None
            if not mapped and _matches(term.config, known):
                blocks[j] = self._edge_block(term, labels, objective)
                taken.append(f"term {name}")
            elif isinstance(term, MappedTerm) and old is not None and old.kind in term.takes_over:
                between = translation(encoding, term.features, self.model.encoding, old.features)
                weights, how = term.taken_over(old, between, labels)
                blocks[j] = objective.block_of(weights, j)
                taken.append(f"term {name} {how}")
            else:
                taken.append(f"term {name} at zero")
        theta = objective.vector(blocks)
        if _value(objective, other) < _value(objective, theta):
            observer.report(f"{self.name} fits this data worse than a start without it, and is not used")
            return other
        observer.report(f"starting from {self.name}: {', '.join(taken)}; the rest at zero")
        return theta

    def _terms(self) -> dict[str, TermConfig]:
        """Return the terms of the model, as they were configured."""
        stored = self.model.info.get("config", {})
        if isinstance(stored, dict) and isinstance(stored.get("training"), dict):
            others = {key: value for key, value in stored["training"].items() if key != "solver"}
            stored = {**stored, "training": others}  # the solver may be one of a plug-in, which is not needed
        try:
            config = parse_config(stored, self.name)
        except ConfigError as error:
            raise FileFormatError(f"{self.name}: its configuration cannot be read ({error})") from None
        return {term.name: term for term in config.terms}

    def _edge_block(self, term: FittedTerm, labels: LabelMatch, objective: Objective) -> np.ndarray:
        """Return T, s and e, or U; transitions that either model forbids are zero."""
        old, forbidden = self.model.edges, objective.engine.forbidden
        if term.config.type == EDGE2.name:
            triples = np.zeros((len(labels.old),) * 3) if old.triples is None else old.triples
            return labels.chosen(triples, 3).ravel()
        blocks = []
        for name in ("transitions", "start", "end"):
            part = getattr(old, name)
            part = labels.chosen(np.where(np.isfinite(part), part, 0.0), part.ndim)
            if forbidden is not None:
                part = np.where(np.isfinite(getattr(forbidden, name)), part, 0.0)
            blocks.append(part.ravel())
        return blocks[0] if isinstance(term.config.clique, InnerEdge) else np.concatenate(blocks)


def _value(objective: Objective, theta: Vector) -> float:
    """Return P, without its gradient; infinite where scores are too large to compute with."""
    try:
        value = objective.prior(theta) - objective.log_likelihood(theta)
    except NumericError:
        return math.inf
    return math.inf if math.isnan(value) else value


def _matches(term: TermConfig, known: Mapping[str, TermConfig]) -> bool:
    if term.name not in known:
        return False
    return known[term.name].type == term.type or all(isinstance(one.clique, Edge) for one in (term, known[term.name]))
