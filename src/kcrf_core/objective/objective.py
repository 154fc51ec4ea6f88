"""The negative log-posterior, its gradient, and what they prove about the optimum: a Gaussian prior plus an engine.

    P(theta) = sum_j |theta_j|^2 / (2 sigma_j^2) - sum_i w_i log p(y^i | x^i; theta)                 (15)
    gradient   Phi^T (p - e_y) + W / sigma^2                                                    (21), (28)
    min P >= P - sum_j (sigma_j^2 / 2) |gradient_j|^2                                             Lemma 9

theta is one vector, a block for each term (see `chains.cliques`): weights W [D, columns] of a term with a map, row by
row, or the parameters of a term over labels alone.

With an L1 penalty beside it, `bounds` has the bound.

A term may have parameters for some places of its W alone, all others being zero. P is then a function of those, as
convex as before, and Lemma 9 holds with their part of the gradient: it bounds the minimum over what they can express.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..chains import NODE, Clique
from ..maps import KeptWeights, Weights
from .bounds import Mixture, Slack, SparseDual
from .engine import Engine, EngineBlocks
from .terms import ObjectiveTerm
from .vectors import Vector

# Forward-backward and sums over positions, as a part of P.
VALUE_ROUNDING = 1e-13


@dataclass(frozen=True)
class Point:
    """P and its gradient at some parameters, with the lower bound that they prove."""

    value: float  # P
    log_likelihood: float  # weighted sum of log p(y | x)
    gradient: Vector  # like theta; of an L1 penalty it has no part
    lower: float  # min P is at least this, but for rounding
    dual: SparseDual | None = None  # with an L1 penalty


class Objective:
    """P over a problem, for given terms. Evaluations share nothing but the data."""

    def __init__(self, engine: Engine, sigma2: Sequence[float] | np.ndarray, thresholds: Vector | None = None):
        self.engine, self.thresholds = engine, thresholds  # of an L1 penalty, like theta; None: there is none
        self.sigma2 = np.array(sigma2, dtype=np.float64)  # [terms]
        self.vectors, self.terms, self.problem = engine.vectors, engine.terms, engine.problem
        self.blocks: list[slice] = self.vectors.blocks  # of theta, one for each term
        self.size, self.dtype = self.vectors.size, engine.dtype  # of scores
        self.convex = self.problem.convex
        self.mapped = list(engine.mapped)
        nodes = [self.terms[j].columns for j, clique in engine.mapped.items() if clique.axes == 1]
        self.columns = max(nodes, default=NODE.columns(self.problem.label_count))  # of node scores
        self.least_threshold = (
            0.0 if thresholds is None else float(self.vectors.to_array(thresholds).min(initial=np.inf))
        )
        self._seen = {
            j: seen
            for j, clique in engine.labelled.items()
            if clique.only_seen and not (seen := self.problem.seen_pairs()).all()
        }  # of terms over labels alone, which parameters may leave zero
        self._free: Vector | None = None  # 1 for each parameter, 0 for those that stay at zero; None: all may leave it
        if self._seen:
            mask = np.ones(self.size)
            for j, seen in self._seen.items():
                mask[self.blocks[j]] = seen
            self._free = self.vectors.from_array(mask)
        # Weights that a pass multiplies with, D C of every map.
        self.pass_size = max(sum(term.rows * term.columns for term in self.terms), 1)

    @classmethod
    def on(cls, engine: Engine, terms: Sequence[ObjectiveTerm]) -> Objective:
        """Return P of these terms on an engine that has them."""
        thresholds = None
        if any(np.any(term.threshold) for term in terms):
            thresholds = np.concatenate([term.for_labels(engine.problem.label_count).thresholds() for term in terms])
            thresholds = engine.vectors.from_array(thresholds)
        return cls(engine, [term.sigma2 for term in terms], thresholds)

    def evaluate(self, theta: Vector) -> Point:
        """Return P, gradient and lower bound; scores are in `dtype`, sums always in double precision."""
        return self._point(theta, *self.engine.evaluate(theta))

    def evaluate_all(self, thetas: Sequence[Vector]) -> Iterator[Point]:
        """Evaluate several points, going through the data once."""
        for theta, found in zip(thetas, self.engine.evaluate_all(thetas), strict=True):
            yield self._point(theta, *found)

    def _point(self, theta: Vector, log_likelihood: float, gradient: Vector) -> Point:
        if self._free is not None:
            gradient = self.vectors.product(gradient, self._free)
        if self.thresholds is not None:
            dual = self.sparse_dual(-log_likelihood - self.vectors.dot(gradient, theta), gradient)
            prior = self.vectors.add_sparse_prior(gradient, theta, self.sigma2, self.thresholds)
            return Point(prior - log_likelihood, log_likelihood, gradient, dual.bound(), dual)
        prior, lower_terms = self.vectors.add_prior(gradient, theta, self.sigma2)
        value = prior - log_likelihood
        return Point(value, log_likelihood, gradient, value - lower_terms)

    def sparse_dual(self, constant: float, slopes: Vector) -> SparseDual:
        """Return what bounds min P with an L1 penalty, for a distribution with this entropy H and gradient."""
        places = self.vectors.beyond(slopes, self.thresholds)
        sizes, thresholds = (self.vectors.values_at(own, places) for own in (slopes, self.thresholds))
        return SparseDual(constant, places, np.abs(sizes), thresholds, self.variances_at(places))

    def variances_at(self, places: np.ndarray) -> np.ndarray:
        """Return sigma^2 of some parameters."""
        return self.sigma2[np.searchsorted([own.stop for own in self.blocks], places, side="right")]

    def with_parameters(self, places: np.ndarray) -> tuple[Objective, np.ndarray]:
        """Return P of some parameters alone, the others being zero, and the places of all that it has.

        These are the given ones, which ascend, and all of terms over labels alone and of pivots. For threads.
        """
        ends = np.searchsorted(places, [[part.start, part.stop] for part in self.blocks])
        own = [places[first:last] for first, last in ends]
        numbers = {}
        for j, (part, term) in enumerate(zip(self.blocks, self.terms, strict=True)):
            if term.clique.mapped and not term.nested:
                numbers[j] = own[j] - part.start
            else:
                own[j] = np.arange(part.start, part.stop)
        places = np.concatenate(own)
        thresholds = None if self.thresholds is None else self.vectors.values_at(self.thresholds, places)
        return Objective(self.engine.with_parameters(numbers), self.sigma2, thresholds), places

    def in_double(self, held: bool = False) -> Objective:
        """Return P in double precision; itself where it is.

        What maps need for it is held where memory allows, for many passes, or computed every time.
        """
        engine = self.engine.in_double(held)
        return self if engine is self.engine else Objective(engine, self.sigma2, self.thresholds)

    def slack(self, theta: Vector, value: float) -> Slack:
        """Bound the rounding error of an evaluation at theta in double precision that found this P."""
        found = self.engine.rounding(theta)
        amount, lengths, factor, excess = VALUE_ROUNDING * abs(value), 0.0, 0.0, 0.0
        for j, (own, sigma2) in enumerate(zip(found, self.sigma2, strict=True)):
            amount += own.loss + own.prior / (2 * sigma2)
            if np.isfinite(sigma2):
                amount += sigma2 / 2 * own.outside
                lengths += sigma2 * (own.gradient + own.prior_gradient / sigma2) ** 2
            factor = max(factor, own.factor)
            if self.thresholds is not None:  # the loss is expanded around zero, not around theta
                amount += own.gradient * float(np.linalg.norm(self.block(theta, j)))
                excess = max(excess, own.gradient / self.least_threshold)
        return Slack(amount, float(np.sqrt(lengths)), factor, excess)

    def proven(self, theta: Vector) -> Point:
        """Evaluate P at theta in double precision, with a lower bound less its rounding error."""
        exact = self.in_double()
        found = exact.evaluate(theta)
        return replace(found, lower=exact.proven_bound(theta, found))

    def proven_bound(self, theta: Vector, found: Point) -> float:
        """Return the lower bound of an evaluation in double precision less its rounding error; P is never negative."""
        slack = self.slack(theta, found.value)
        if found.dual is not None:
            return max(found.dual.bound(slack, self.mixture([theta], [1.0])), 0.0)
        return max(slack.widen(found.value, 2 * (found.value - found.lower)), 0.0)

    def mixture(self, thetas: Sequence[Vector], shares: Sequence[float]) -> Mixture | None:
        """Return log p(y) of gold labellings at some points, for bounds with an L1 penalty: half a pass for each.

        None where no sigma^2 is infinite: bounds gain little by it there.
        """
        if np.isfinite(self.sigma2).all():
            return None
        logs = np.stack([self.engine.sequence_log_probabilities(theta) for theta in thetas])
        return Mixture(self.problem.weights, np.array(shares), logs.astype(np.float64))

    def gradient_length(self, theta: Vector, found: Point) -> float:
        """Return the length of P's gradient; with an L1 penalty that of its shortest subgradient."""
        if self.thresholds is None:
            return float(np.sqrt(self.vectors.dot(found.gradient, found.gradient)))
        return float(np.sqrt(self.vectors.steepest_square(theta, found.gradient, self.thresholds)))

    def hessian_product(self, theta: Vector, vector: Vector) -> Vector:
        """Multiply the exact Hessian of P at theta by a vector."""
        product = self.engine.product(theta, vector)
        if self._free is not None:
            product = self.vectors.product(product, self._free)
        self.vectors.add_curvature(product, vector, self.sigma2)
        return product

    def sampled_hessian(self, theta: Vector, places: np.ndarray, samples: int) -> np.ndarray | None:
        """Estimate the Hessian of P in some parameters from labellings drawn at random; None where that cannot be."""
        found = self.engine.sampled_hessian(theta, places, samples)
        if found is not None:
            found[np.diag_indices_from(found)] += 1 / self.variances_at(places)
        return found

    def hessian_blocks(self, theta: Vector, diagonals: bool = False, negligible: float = 0.0) -> HessianBlocks:
        return HessianBlocks(self, self.engine.blocks(theta, diagonals, negligible))

    def initial_curvature(self) -> np.ndarray:
        """Return the Hessian's diagonal at theta = 0, other terms ignored.

        Frequent features curve P far more than rare ones: scaled by this, L-BFGS needs about half the passes
        on text.
        """
        return np.concatenate([np.empty(0), *(self.initial_block(j).ravel() for j in range(len(self.terms)))])

    def initial_block(self, j: int, share: float = 1.0) -> np.ndarray:
        """Return a share of a term's block of `initial_curvature`; as W [D, columns] if it has all of its places."""
        term = self.terms[j]
        if not term.clique.mapped:
            return np.full(term.size, share * self.curvature_at_zero(j, self.problem.position_weights().sum()))
        values = share * np.asarray(self.curvature_at_zero(j, self.engine.column_squares(j)))
        return (
            np.broadcast_to(values[:, None], (term.rows, term.columns)) if term.places is None else term.spread(values)
        )

    def curvature_at_zero(self, j: int, squares: np.ndarray | float) -> np.ndarray | float:
        """Return the Hessian's diagonal at theta = 0 for columns of a term with these sums of squares."""
        states = self.problem.label_count ** self.terms[j].clique.axes  # as likely as each other
        return squares * ((1 - 1 / states) / states) + 1 / self.sigma2[j]

    def weights_of(self, theta: Vector, term: int) -> np.ndarray:
        """Return W [D, columns] of a term with a map."""
        return self.terms[term].weights(self.block(theta, term))

    def stored_weights(self, theta: Vector, term: int) -> Weights:
        """Return W as a model holds it: those that are not zero where only some places have parameters."""
        block, places = self.block(theta, term), self.terms[term].places
        return self.weights_of(theta, term) if places is None else KeptWeights(places, block).stored()

    def nonzero(self, theta: Vector) -> int:
        """Count the parameters that are not zero."""
        return int(np.count_nonzero(self.vectors.to_array(theta)))

    def block_of(self, weights: np.ndarray, term: int) -> np.ndarray:
        """Return the block of a vector like theta for W [D, columns] of a term with a map."""
        return self.terms[term].block(weights)

    def block(self, vector: Vector, term: int) -> np.ndarray:
        """Return the block of a term, as an array that is not to be changed."""
        return self.vectors.to_array(vector)[self.blocks[term]]

    def vector(self, blocks: Mapping[int, np.ndarray]) -> Vector:
        """Return a vector like theta with these blocks of terms, the others at zero."""
        out = np.zeros(self.size)
        for term, values in blocks.items():
            out[self.blocks[term]] = np.where(self._seen[term], values, 0.0) if term in self._seen else values
        return self.vectors.from_array(out)

    def errors(self, theta: Vector, clique: Clique = NODE) -> np.ndarray:
        """Return w (p - e_y) of the cliques of each position, which P's gradient is made of, [N, columns]."""
        return self.engine.errors(theta, clique)

    def log_likelihood(self, theta: Vector) -> float:
        """Return the weighted sum over sequences of log p(y | x), of what is observed of y."""
        return float(self.problem.weights @ self.engine.sequence_log_probabilities(theta))

    def prior(self, theta: Vector) -> float:
        """Return what the prior, and an L1 penalty, add to P."""
        squares = float((np.array(self.vectors.block_dots(theta, theta)) / (2 * self.sigma2)).sum())
        if self.thresholds is None:
            return squares
        thresholds, values = self.vectors.to_array(self.thresholds), self.vectors.to_array(theta)
        return squares + float((thresholds * np.abs(values)).sum())


class HessianBlocks:
    """Blocks of P's Hessian at one point (30), the prior included: each term by itself."""

    def __init__(self, objective: Objective, loss: EngineBlocks):
        self.objective, self._loss = objective, loss
        self.operations, self.variance_share, self.share = loss.operations, loss.variance_share, loss.share

    def small(self, term: int) -> np.ndarray:
        """Return the block of a term over labels alone: a matrix, or a diagonal that stands in for it."""
        block, precision = self._loss.small[term], 1 / self.objective.sigma2[term]
        if block.ndim == 1:
            return block + precision
        block = block.copy()
        if term in self.objective._seen:
            block *= np.outer(self.objective._seen[term], self.objective._seen[term])
        block[np.diag_indices_from(block)] += precision
        return block

    def product(self, term: int, block: Vector) -> Vector:
        """Multiply the block of a term with a map by a block of a vector."""
        product = self._loss.product(term, block)
        self.objective.vectors.of_block(term).add_curvature(product, block, self.objective.sigma2[[term]])
        return product

    def diagonal(self, dtype: np.dtype | type = np.float64) -> np.ndarray:
        """Return the diagonal of all blocks; terms with maps have explicit ones.

        Where sum_t p_t stands in for that of labels alone, it counts by the share of their variance that is left: p_t
        (1 - p_t) of pairs would take the marginals of pairs at each position, ten times as long as a pass.
        """
        objective = self.objective
        out = np.empty(objective.size, dtype)
        for j, (part, term) in enumerate(zip(objective.blocks, objective.terms, strict=True)):
            if term.clique.mapped:
                out[part] = self._loss.diagonal(j)
            else:
                small = self._loss.small[j]
                out[part] = self.variance_share * small if small.ndim == 1 else small.diagonal()
            out[part] += 1 / objective.sigma2[j]
        return out
