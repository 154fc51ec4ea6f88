"""Random fits whose certificates are held against parameters that a reference reaches, in extended precision.

A certificate says that no parameters in the span of a model's pivots (of map `full` and explicit maps: in the whole
space of the kernel) have a P below its bound. So the reference looks for small values of P there, from kernel values
that it works out by itself in `np.longdouble`: P of f = sum_b alpha_b k(x_b, .) is the loss of the scores K alpha plus
alpha^T K alpha / (2 sigma^2), whatever alpha is, and no factorisation enters that figure.

    python tests/certificates.py 500        # the whole range of settings, some minutes
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize

from kcrf_core.config import parse_config, with_options
from kcrf_core.corpora import Corpus
from kcrf_core.encoding import fit_encoding
from kcrf_core.errors import KcrfError
from kcrf_core.system import Workers
from kcrf_core.training import train

long = np.longdouble

MAPS = ("full", "reduced", "growing", "explicit", "conjunctions")


@dataclass(frozen=True)
class Fit:
    """The settings of a fit."""

    map: str
    sigma2: float
    gamma: float
    scale: float  # of columns
    tolerance: float
    precision: str
    labels: int
    seed: int
    stop_after: int | None = None  # passes

    @classmethod
    def draw(cls, seed: int) -> Fit:
        rng = np.random.default_rng([seed, 16])

        def between(low: float, high: float) -> float:
            return float(np.exp(rng.uniform(np.log(low), np.log(high))))

        return cls(
            map=str(rng.choice(MAPS)),
            sigma2=between(1e-3, 1e8),
            gamma=between(1e-3, 1e3),
            scale=between(1e-3, 1e3),
            tolerance=between(1e-6, 1e-2),
            precision=str(rng.choice(["single", "double"])),
            labels=int(rng.integers(2, 4)),
            seed=seed,
            stop_after=int(rng.integers(5, 60)) if rng.random() < 0.15 else None,
        )


@dataclass(frozen=True)
class Outcome:
    fit: Fit
    reason: str
    value: float
    lower: float
    own: float  # P of the model by the reference
    reached: float  # the smallest P that the reference found
    passes: int
    notes: list[str] = field(default_factory=list)

    @property
    def excess(self) -> float:
        """How far the bound is above a P that is reached; anything above zero is wrong."""
        return self.lower - self.reached


def corpus_of(fit: Fit) -> Corpus:
    """Sequences of five positions; labels depend on a smooth function of two columns and on the label before."""
    rng = np.random.default_rng(fit.seed)
    S, T, Y = int(rng.integers(4, 30)), 5, fit.labels
    x = rng.normal(size=(S * T, 3)) * (1, 0.3, 1e-2)
    if rng.random() < 0.3:
        x = np.round(x, 1)  # inputs recur
    wave = np.sin(3 * x[:, 0]) + x[:, 1] + 0.3 * rng.normal(size=S * T)
    labels = np.digitize(wave, np.quantile(wave, np.arange(1, Y) / Y))
    values = [[repr(float(v)) for v in column * fit.scale] for column in x.T]
    if fit.map == "conjunctions":
        values = [[f"v{v}" for v in np.digitize(column, np.quantile(column, [0.2, 0.4, 0.6, 0.8]))] for column in x.T]
    columns = (*values, [f"L{y}" for y in labels])
    offsets = np.arange(0, S * T + 1, T, dtype=np.int64)
    return Corpus("random", columns, offsets, np.arange(1, S * T + 1) + np.repeat(np.arange(S), T))


def configured(fit: Fit):
    real = [{"column": f"c{c}", "type": "real", "scale": "none"} for c in range(3)]
    categorical = [{"column": f"c{c}", "window": [0]} for c in range(3)]
    rbf = {"type": "rbf", "gamma": fit.gamma / fit.scale**2}
    node = {
        "full": {"kernel": rbf, "map": {"type": "full"}},
        "reduced": {"kernel": rbf, "map": {"type": "reduced", "size": 40}},
        "growing": {"kernel": rbf, "map": {"type": "reduced", "size": 60, "select": "gradient"}},
        "explicit": {"kernel": {"type": "linear"}},
        "conjunctions": {"kernel": {"type": "poly", "degree": 2}, "map": {"type": "explicit"}},
    }[fit.map]
    raw = {
        "features": categorical if fit.map == "conjunctions" else real,
        "terms": [{"type": "node", "name": "node", **node}, {"type": "edge", "sigma2": 1.0}],
        "training": {
            "sigma2": fit.sigma2,
            "tolerance": fit.tolerance,
            "precision": fit.precision,
            "max_passes": fit.stop_after or 3000,
        },
    }
    return parse_config(with_options(raw, {}))


class Reference:
    """P in the span of some inputs, by kernel values of its own."""

    def __init__(self, model, dataset, corpus: Corpus, fit: Fit, sigma2: float):
        encoding, [term] = model.encoding, model.terms
        inputs = encoding.inputs(dataset, term.features).seen()
        rows = self.rows(inputs)
        self.basis = self.rows(term.pivots) if fit.map in ("reduced", "growing") else np.unique(rows, axis=0)
        kernel = self._kernel(term, fit)
        self.N, self.Y = len(rows), fit.labels
        self.labels = np.array([model.labels.index(y) for y in corpus.columns[-1]]).reshape(-1, 5)
        self.cross, self.gram, self.sigma2 = kernel(rows, self.basis), kernel(self.basis, self.basis), long(sigma2)

    @staticmethod
    def rows(inputs) -> np.ndarray:
        return np.hstack([inputs.real, inputs.codes]).astype(long)

    @staticmethod
    def _kernel(term, fit: Fit):
        if fit.map == "explicit":
            return lambda a, b: a @ b.T
        if fit.map == "conjunctions":
            poly = term.conjunctions.kernel
            gamma, coef0, scale = long(poly.gamma), long(poly.coef0), long(poly.scale)
            return lambda a, b: scale * (gamma * (a[:, None] == b[None]).sum(axis=2) + coef0) ** poly.degree
        gamma = long(term.kernel.gamma)
        return lambda a, b: np.exp(-gamma * ((a[:, None] - b[None]) ** 2).sum(axis=2))

    def loss(self, scores: np.ndarray, edges: np.ndarray) -> np.ndarray:
        """-log p(y | x) summed, scores [N, Y], edges: T, s, e one after another."""
        Y = self.Y
        T, s, e = edges[: Y * Y].reshape(Y, Y), edges[Y * Y : Y * Y + Y], edges[Y * Y + Y :]
        F = scores.reshape(-1, 5, Y)
        a = F[:, 0] + s
        for t in range(1, 5):
            a = _logsumexp(a[:, :, None] + T[None], axis=1) + F[:, t]
        log_z = _logsumexp(a + e, axis=1)
        y, rows = self.labels, np.arange(len(F))
        path = s[y[:, 0]] + e[y[:, 4]] + sum(F[rows, t, y[:, t]] for t in range(5))
        path = path + sum(T[y[:, t - 1], y[:, t]] for t in range(1, 5))
        return (log_z - path).sum()

    def p(self, alpha: np.ndarray, edges: np.ndarray) -> np.ndarray:
        """P of f = sum_b alpha_b k(x_b, .), in extended precision."""
        alpha, edges = alpha.astype(long), edges.astype(long)
        norm = np.sum(alpha * (self.gram @ alpha))
        return self.loss(self.cross @ alpha, edges) + norm / (2 * self.sigma2) + edges @ edges / 2

    def smallest(self, alpha: np.ndarray, edges: np.ndarray, steps: int) -> np.ndarray:
        """P at these parameters, or at better ones, found in coordinates that whiten the kernel matrix."""
        values, vectors = eigh(self.gram.astype(np.float64))
        best = self.p(alpha, edges)
        for cut in (1e-9, 1e-13):
            keep = values > cut * values[-1]
            root = np.sqrt(values[keep])
            to_alpha = vectors[:, keep] / root  # alpha = to_alpha w, and alpha^T K alpha = |w|^2 but for rounding
            phi = np.asarray(self.cross @ to_alpha.astype(long), dtype=np.float64)
            w = (vectors[:, keep] * root).T @ np.asarray(alpha, dtype=np.float64)
            start = np.concatenate([np.sqrt(1 / float(self.sigma2)) * w.ravel(), edges])
            options = {"maxiter": steps, "maxfun": 2 * steps, "maxcor": 40, "ftol": 1e-15, "gtol": 1e-9}
            start = minimize(self._whitened, start, (phi,), "L-BFGS-B", jac=True, options=options).x
            D = phi.shape[1] * self.Y
            w = np.sqrt(float(self.sigma2)) * start[:D].reshape(-1, self.Y)
            best = min(best, self.p(to_alpha.astype(long) @ w.astype(long), start[D:]))
        return best

    def _whitened(self, v: np.ndarray, phi: np.ndarray):
        """P and its gradient in double precision: weights over sigma, then edges."""
        Y, D = self.Y, phi.shape[1] * self.Y
        sigma = np.sqrt(float(self.sigma2))
        F = (sigma * phi @ v[:D].reshape(-1, Y)).reshape(-1, 5, Y)
        edges = v[D:]
        T, s, e = edges[: Y * Y].reshape(Y, Y), edges[Y * Y : Y * Y + Y], edges[Y * Y + Y :]
        forward, backward = [F[:, 0] + s], [np.broadcast_to(e, F[:, 0].shape)]
        for t in range(1, 5):
            forward.append(_logsumexp(forward[-1][:, :, None] + T, axis=1) + F[:, t])
            backward.insert(0, _logsumexp(T + (F[:, 5 - t] + backward[0])[:, None, :], axis=2))
        log_z = _logsumexp(forward[-1] + e, axis=1)
        node = np.stack([np.exp(forward[t] + backward[t] - log_z[:, None]) for t in range(5)], axis=1)
        y, rows = self.labels, np.arange(len(F))
        pairs = np.zeros((Y, Y))
        for t in range(1, 5):
            joint = forward[t - 1][:, :, None] + T + (F[:, t] + backward[t])[:, None, :] - log_z[:, None, None]
            pairs += np.exp(joint).sum(axis=0)
            np.add.at(pairs, (y[:, t - 1], y[:, t]), -1)
            node[rows, t, y[:, t]] -= 1
        node[rows, 0, y[:, 0]] -= 1
        gradient = np.concatenate(
            [
                (sigma * phi.T @ node.reshape(-1, Y)).ravel(),
                pairs.ravel(),
                node[:, 0].sum(axis=0),
                node[:, -1].sum(axis=0),
            ]
        )
        return float(self.loss(F.reshape(-1, Y), edges)) + v @ v / 2, gradient + v


def _logsumexp(values: np.ndarray, axis: int) -> np.ndarray:
    top = values.max(axis=axis, keepdims=True)
    return np.squeeze(top, axis) + np.log(np.exp(values - top).sum(axis=axis))


def outcome(fit: Fit, steps: int = 2000) -> Outcome | None:
    """Train, and look for parameters below the bound; None where training refuses such data."""
    from listening import Recorder

    corpus, config, listener = corpus_of(fit), configured(fit), Recorder()
    encoding, dataset = fit_encoding(config, corpus)
    with Workers(1) as workers, warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            model, report = train(encoding, dataset, config, workers=workers, observer=listener)
        except KcrfError as error:
            print(f"{fit}: {error}", file=sys.stderr)
            return None
    reference = Reference(model, dataset, corpus, fit, report.sigma2["node"])
    edges = np.concatenate([model.edges.transitions.ravel(), model.edges.start, model.edges.end])
    alpha = _coefficients(model, reference)
    own = reference.p(alpha, edges) if alpha is not None else np.nan
    start = np.zeros((len(reference.gram), fit.labels)) if alpha is None else alpha
    result = report.result
    reached = float(reference.smallest(start, edges, steps))
    return Outcome(fit, result.reason, result.value, result.lower, float(own), reached, result.passes)


def _coefficients(model, reference: Reference) -> np.ndarray | None:
    """alpha [M, Y] of the reference's inputs, zero where an input is no pivot; None where the model has weights."""
    [term] = model.terms
    if getattr(term, "alpha", None) is None:
        return None
    place = {row.tobytes(): number for number, row in enumerate(reference.basis.astype(np.float64) + 0.0)}
    rows = [place[row.tobytes()] for row in Reference.rows(term.pivots).astype(np.float64) + 0.0]
    alpha = np.zeros((len(reference.basis), reference.Y))
    own = term.alpha
    alpha[rows] = np.hstack([own, -own]) / np.sqrt(2) if own.shape[1] == 1 else own
    return alpha


def main(count: int, first: int = 0) -> int:
    wrong = done = 0
    reasons: dict[str, int] = {}
    for seed in range(first, first + count):
        found = outcome(Fit.draw(seed))
        if found is None:
            continue
        done += 1
        reasons[found.reason] = reasons.get(found.reason, 0) + 1
        gap, true = (found.value - found.lower) / max(found.lower, 1e-300), found.value - found.reached
        bad = found.excess > 0
        wrong += bad
        if bad or "-v" in sys.argv:
            print(
                f"{'WRONG ' if bad else ''}{found.fit}\n   {found.reason}, {found.passes} passes: P {found.value:.9g} "
                f"(reference {found.own:.9g}), at least {found.lower:.9g}, reached {found.reached:.9g}; "
                f"gap {gap:.2g}, true distance {true:.3g}",
                flush=True,
            )
    print(f"{done} fits, {wrong} bounds above a P that is reached; {reasons}")
    return 1 if wrong else 0


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    sys.exit(main(*numbers))
