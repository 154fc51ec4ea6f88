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
from scipy.linalg import solve_triangular

from ..chains import EDGE2, NODE, Edges, gathered, score_columns, spread
from ..config import TermConfig, parse_config
from ..encoding import Encoding, shared_conjunctions, translation
from ..errors import ConfigError, FileFormatError, NumericError
from ..maps import as_dense, has_nested_columns, matrix_of
from ..model import ConjunctionTerm, ExplicitTerm, Model, Term
from ..objective import Posterior
from .fitted_terms import FittedTerm
from .observer import Observer


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
            f"{self.name} was trained on other columns: {', '.join(old.columns)} there, "
            f"{', '.join(encoding.columns)} here"
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
            observer.note(f"sigma2 as in {self.name}: {values} (--sigma2 auto chooses it again)")
        return found

    def _stored_sigma2(self) -> dict[str, float]:
        """By term; what a file says that is no variance is left out."""
        training = self.model.info.get("training")
        stored = training.get("sigma2") if isinstance(training, Mapping) else None
        if not isinstance(stored, Mapping):
            return {}
        return {
            name: float(value)
            for name, value in stored.items()
            if isinstance(value, float | int) and not isinstance(value, bool) and 0 < value < math.inf
        }

    def choose(
        self,
        encoding: Encoding,
        fitted: Sequence[FittedTerm],
        posterior: Posterior,
        other: np.ndarray,
        observer: Observer,
    ) -> np.ndarray:
        """Where to start: at the model's function, or at `other` parameters where P is smaller there."""
        theta, told = self.theta(encoding, fitted, posterior)
        if _value(posterior, other) < _value(posterior, theta):
            told = f"{self.name} fits this data worse than a start without it, and is not used"
            theta = other
        observer.note(told)
        return theta

    def theta(self, encoding: Encoding, fitted: Sequence[FittedTerm], posterior: Posterior) -> tuple[np.ndarray, str]:
        """Parameters of the new terms that say what the model said, and in words how much of it that is."""
        out = np.zeros(posterior.size)
        labels = _Labels(self.model.labels, encoding.labels)
        known = self._terms()
        stored = {(term.name, term.type): term for term in self.model.terms}
        told = [labels.told()]
        for j, term in enumerate(fitted):
            old = stored.get((term.name, term.config.type))
            if term.map is None and _matches(term.config, known):
                out[posterior.blocks[j]] = self._edge_block(term, labels, posterior)
                told.append(f"term {term.name}")
            elif old is not None and has_nested_columns(term.map):
                out[posterior.blocks[j]] = posterior.block_of(self._projected(encoding, term, old, labels), j)
                told.append(f"term {term.name} at its {term.map.size:,} pivots")
            elif isinstance(old, ConjunctionTerm) and term.conjunctions is not None:
                weights, taken = self._conjunctions(encoding, term, old, labels)
                out[posterior.blocks[j]] = posterior.block_of(weights, j)
                told.append(f"term {term.name} with {taken:,} of {len(term.conjunctions.keys):,} conjunctions")
            elif isinstance(old, ExplicitTerm) and term.conjunctions is None and term.affine is None:
                weights, taken = self._explicit(encoding, term, old, labels)
                out[posterior.blocks[j]] = posterior.block_of(weights, j)
                features = len(weights) if term.merged is None else term.merged.spread(weights[:, :0]).shape[0]
                told.append(f"term {term.name} with {taken:,} of {features:,} features")
            else:
                told.append(f"term {term.name} at zero")
        return out, f"starting from {self.name}: {', '.join(told)}; the rest at zero"

    def _terms(self) -> dict[str, TermConfig]:
        """Terms of the model, as they were configured."""
        try:
            config = parse_config(self.model.info.get("config", {}), self.name)
        except ConfigError as error:
            raise FileFormatError(f"{self.name}: its configuration cannot be read ({error})") from None
        return {term.name: term for term in config.terms}

    def _edge_block(self, term: FittedTerm, labels: _Labels, posterior: Posterior) -> np.ndarray:
        """T, s and e, or U; what either model forbids is zero."""
        old, forbidden = self.model.edges, posterior.engine.forbidden
        if term.config.type == EDGE2.name:
            triples = np.zeros((len(labels.old),) * 3) if old.triples is None else old.triples
            return labels.chosen(triples, 3).ravel()
        parts = [labels.chosen(np.where(np.isfinite(part), part, 0.0), part.ndim) for part in _pair_parts(old)]
        if forbidden is not None:
            parts = [np.where(np.isfinite(f), part, 0.0) for part, f in zip(parts, _pair_parts(forbidden), strict=True)]
        return np.concatenate([part.ravel() for part in parts])

    def _projected(self, encoding: Encoding, term: FittedTerm, old: Term, labels: _Labels) -> np.ndarray:
        """W [M, columns] = L^-1 f(B)."""
        pivots = translation(encoding, term.features, self.model.encoding, old.features).inputs(term.basis.pivots)
        values = np.zeros((len(pivots), labels.columns(old.type)))
        old.add_scores(pivots, values)
        return solve_triangular(term.map.triangle, labels.weights(values, old.type), lower=True, check_finite=False)

    def _conjunctions(
        self, encoding: Encoding, term: FittedTerm, old: ConjunctionTerm, labels: _Labels
    ) -> tuple[np.ndarray, int]:
        """W [D, columns], and how many conjunctions the model knew."""
        between = translation(encoding, term.features, self.model.encoding, old.features)
        shares, taken = shared_conjunctions(term.conjunctions, old.conjunctions, between.explicit_columns()[0])
        weights = shares @ matrix_of(old.weights)
        return labels.weights(as_dense(weights), old.type, term.kept is None), taken

    def _explicit(
        self, encoding: Encoding, term: FittedTerm, old: ExplicitTerm, labels: _Labels
    ) -> tuple[np.ndarray, int]:
        """W [D, columns], and how many features the model knew."""
        between = translation(encoding, term.features, self.model.encoding, old.features)
        columns, units = between.explicit_columns()
        known = columns >= 0
        weights = np.zeros((len(columns), old.weights.shape[1]))
        weights[known] = as_dense(matrix_of(old.weights)[columns[known]]) * units[known, None]
        weights = labels.weights(weights, old.type, term.kept is None)
        return weights if term.merged is None else term.merged.gathered(weights), int(known.sum())


def _value(posterior: Posterior, theta: np.ndarray) -> float:
    """P, without its gradient; infinite where scores are too large to compute with."""
    try:
        value = posterior.prior(theta) - posterior.log_likelihood(theta)
    except NumericError:
        return math.inf
    return math.inf if math.isnan(value) else value


@dataclass(frozen=True)
class _Labels:
    """Which label is which."""

    old: tuple[str, ...]
    new: tuple[str, ...]

    @property
    def _places(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the labels that both have: among the new ones, and among the old ones."""
        number = {label: y for y, label in enumerate(self.old)}
        pairs = [(y, number[label]) for y, label in enumerate(self.new) if label in number]
        return tuple(np.array(pairs, dtype=np.int64).reshape(-1, 2).T)

    def told(self) -> str:
        return f"{len(self._places[0])} of {len(self.new)} labels"

    def columns(self, kind: str) -> int:
        """Columns of weights that a term of the old model has."""
        Y = len(self.old)
        return score_columns(Y) if kind == NODE.name else Y * Y

    def chosen(self, values: np.ndarray, axes: int) -> np.ndarray:
        """Values whose last `axes` axes are old labels, laid out by new ones; zero where one is new."""
        lead = values.shape[: values.ndim - axes]
        out = np.zeros(lead + (len(self.new),) * axes)
        to, at = self._places
        out[(..., *np.ix_(*[to] * axes))] = values[(..., *np.ix_(*[at] * axes))]
        return out

    def weights(self, weights: np.ndarray, kind: str, centred: bool = True) -> np.ndarray:
        """Weights [D, columns] of the old model in the columns of the new one."""
        if kind != NODE.name:
            pairs = weights.reshape(len(weights), len(self.old), len(self.old))
            return self.chosen(pairs, 2).reshape(len(weights), -1)
        by_label = self.chosen(spread(weights, len(self.old)), 1)
        # What all labels share changes no probability and only costs in the prior (Lemma 12): where all have weights.
        if centred:
            by_label -= by_label.mean(axis=1, keepdims=True)
        return gathered(by_label, len(self.new))


def _pair_parts(edges: Edges) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return edges.transitions, edges.start, edges.end


def _matches(term: TermConfig, known: Mapping[str, TermConfig]) -> bool:
    return term.name in known and known[term.name].type == term.type
