"""A trained model: what scores new positions and labels them, and its file.

A model is self-contained and immutable. Node terms keep either the weights of an explicit map or pivots with
the dual coefficients alpha = L^-T W, for which scores are k(x, B) alpha.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..chains import chain, score_columns, spread
from ..corpora import Corpus
from ..encoding import Dataset, Encoding
from ..errors import FileFormatError
from ..kernels import Inputs, Kernel, Pivots, PolynomialKernel, inverse_roots, kernel_from_dict, kernel_to_dict
from ..maps import Conjunctions, SparseWeights, Weights, _sparse, feature_base, why_not
from ..system import (
    Contents,
    NotRegistered,
    Workers,
    container_size,
    pack_sparse,
    read_container,
    sequence_chunks,
    write_container,
)

# Positions scored at a time: bounds the memory of tagging, whatever the length of the input.
ROWS_AT_ONCE = 2048


@dataclass(frozen=True)
class ExplicitTerm:
    """Weights of the linear kernel's own features."""

    name: str
    type: str  # node or edge-x
    features: tuple[str, ...]
    weights: Weights  # [D, C] float64, for edge-x [D, Y^2]; sparse features first, then real columns
    cosine: bool = False  # whether inputs count by their direction alone

    def add_scores(self, inputs: Inputs, out: np.ndarray) -> None:
        if not self.cosine:
            self._add(inputs, out)
            return
        scores = np.zeros_like(out)
        self._add(inputs, scores)
        out += scores * inverse_roots(inputs.squared_norms())[:, None]

    def _add(self, inputs: Inputs, out: np.ndarray) -> None:
        ends = np.concatenate([[0], np.cumsum(inputs.sizes)]).astype(np.int64)
        if isinstance(self.weights, SparseWeights):
            self._add_few(inputs, self.weights, ends, out)
            return
        _sparse.multiply_codes(np.ascontiguousarray(inputs.codes), ends[:-1], self.weights, out)
        D = int(ends[-1])
        if inputs.bag is not None:
            bag, A = inputs.bag, inputs.bag.shape[1]
            _sparse.multiply(
                bag.indptr.astype(np.int64),
                bag.indices.astype(np.int32),
                bag.data,
                self.weights[D : D + A],
                0,
                len(inputs),
                out,
            )
            D += A
        if inputs.real.shape[1]:
            out += inputs.real @ self.weights[D:]

    @staticmethod
    def _add_few(inputs: Inputs, weights: SparseWeights, ends: np.ndarray, out: np.ndarray) -> None:
        weights.add_codes(np.ascontiguousarray(inputs.codes), ends[:-1], out)
        D = int(ends[-1])
        if inputs.bag is not None:
            weights.add_rows(inputs.bag.indptr, inputs.bag.indices, inputs.bag.data, D, out)
            D += inputs.bag.shape[1]
        if inputs.real.shape[1]:
            weights.add_dense(inputs.real, D, out)


@dataclass(frozen=True)
class AffineTerm(ExplicitTerm):
    """The same and a constant, for the polynomial kernel of degree 1."""

    bias: np.ndarray = field(kw_only=True)  # [C] float64, for edge-x [Y^2]

    def add_scores(self, inputs: Inputs, out: np.ndarray) -> None:
        super().add_scores(inputs, out)
        out += self.bias


@dataclass(frozen=True)
class KernelTerm:
    """Pivots and their dual coefficients."""

    name: str
    type: str  # node or edge-x
    features: tuple[str, ...]
    kernel: Kernel
    pivots: Inputs  # [M]
    lines: np.ndarray  # [M] int64, where the pivots stand in the training data
    alpha: np.ndarray  # [M, C] float64, for edge-x [M, Y^2]
    precision: str = "double"  # of kernel values and their products with alpha: that of training

    @cached_property
    def _prepared(self) -> tuple[Pivots, np.ndarray]:
        dtype = np.float32 if self.precision == "single" else np.float64
        return Pivots(self.pivots, self.kernel, dtype), self.alpha.astype(dtype)

    def add_scores(self, inputs: Inputs, out: np.ndarray) -> None:
        pivots, alpha = self._prepared
        out += pivots.gram(inputs) @ alpha


@dataclass(frozen=True)
class ConjunctionTerm:
    """Conjunctions of features, for a polynomial kernel on binary ones."""

    name: str
    type: str  # node or edge-x
    features: tuple[str, ...]
    conjunctions: Conjunctions
    weights: Weights  # [D, C] float64, for edge-x [D, Y^2], divided by the columns' norms
    cosine: bool = False

    def add_scores(self, inputs: Inputs, out: np.ndarray) -> None:
        if not self.cosine:
            self.conjunctions.add_scores(inputs, self.weights, out)
            return
        scores = np.zeros_like(out)
        self.conjunctions.add_scores(inputs, self.weights, scores)
        out += scores * inverse_roots(self.conjunctions.kernel.diagonal(inputs))[:, None]


Term = ExplicitTerm | KernelTerm | ConjunctionTerm


@dataclass(frozen=True)
class Model:
    """Terms, edge potentials, and the encoding that feeds them.

    >>> from kcrf_core import KernelCRF, Model
    >>> KernelCRF(sigma2=1.0).fit([[[0.0], [1.0]]], [["a", "b"]]).save("model.npz")
    >>> model = Model.load("model.npz")
    >>> model.labels, model.order, model.info["training"]["stop"]
    (('a', 'b'), 1, 'certified')
    """

    encoding: Encoding
    terms: tuple[Term, ...]
    edges: chain.Edges
    info: dict[str, Any] = field(default_factory=dict)  # configuration, certificate, digest: for reports

    def __post_init__(self) -> None:
        _freeze(self.terms)
        _freeze(self.edges)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()  # arrays come out of a pickle writeable

    @property
    def labels(self) -> tuple[str, ...]:
        return self.encoding.labels

    @property
    def score_columns(self) -> int:
        return score_columns(len(self.labels))

    @property
    def order(self) -> int:
        """How many labels back a label looks."""
        return 1 if self.edges.triples is None else 2

    def potentials(self, dataset: Dataset) -> tuple[np.ndarray, chain.Edges]:
        """Node scores F, [N, Y] float64, and edges, for every position where there are edge-x terms."""
        N, Y = dataset.positions, len(self.labels)
        columns = np.zeros((N, self.score_columns))
        pairs = np.zeros((N, Y * Y)) if any(term.type == "edge-x" for term in self.terms) else None
        for term in self.terms:
            inputs = self.encoding.inputs(dataset, term.features)
            out = columns if term.type == "node" else pairs
            for first in range(0, N, ROWS_AT_ONCE):
                rows = slice(first, first + ROWS_AT_ONCE)
                term.add_scores(inputs.take(rows), out[rows])
        edges = self.edges if pairs is None else self.edges.plus_pairs(pairs.reshape(N, Y, Y))
        return spread(columns, Y), edges

    def tag(self, dataset: Dataset, workers: Workers | None = None) -> np.ndarray:
        """Numbers of the best labels, [N] int32."""

        def task(sequences: tuple[int, int]) -> np.ndarray:
            part = dataset.span(*sequences)
            return chain.viterbi(*self.potentials(part), part.offsets)[0]

        chunks = sequence_chunks(dataset.offsets, ROWS_AT_ONCE)
        found = (map if workers is None else workers.map)(task, chunks)
        return np.concatenate([np.empty(0, dtype=np.int32), *found])

    def tag_corpus(self, corpus: Corpus) -> list[str]:
        """The best labels of a corpus, with or without gold ones."""
        best = self.tag(self.encoding.encode(corpus))
        return [self.labels[number] for number in best.tolist()]

    def marginals(self, dataset: Dataset) -> np.ndarray:
        """p(y_t | x), [N, Y]."""
        return chain.marginals(*self.potentials(dataset), dataset.offsets).node

    # ------------------------------------------------------------------------- storage

    def save(self, path: str | os.PathLike[str]) -> None:
        write_container(path, "model", *self._pack())

    @property
    def file_size(self) -> int:
        """Bytes that `save` writes."""
        return container_size("model", *self._pack())

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        header, arrays = self.encoding.pack()
        header |= {"info": self.info, "terms": []}
        for number, term in enumerate(self.terms):
            at = f"term{number}"
            entry: dict[str, Any] = {"name": term.name, "type": term.type, "features": list(term.features)}
            if isinstance(term, ExplicitTerm):
                entry["map"] = "explicit"
                if isinstance(term, AffineTerm):
                    entry["map"] = "affine"
                    arrays[f"{at}.bias"] = term.bias
            elif isinstance(term, ConjunctionTerm):
                found = term.conjunctions
                entry |= {"map": "conjunctions", "kernel": kernel_to_dict(found.kernel)}
                arrays[f"{at}.keys"], arrays[f"{at}.columns"] = found.keys, found.columns
                arrays[f"{at}.norms"] = found.norms
            else:
                entry |= {"map": "reduced", "kernel": kernel_to_dict(term.kernel)}
                arrays[f"{at}.alpha"] = term.alpha
                arrays |= pack_pivots(term.pivots, term.lines, at)
            if not isinstance(term, KernelTerm):
                if term.cosine:
                    entry["cosine"] = True
                if isinstance(term.weights, SparseWeights):
                    entry["weights"] = "sparse"
                    arrays |= term.weights.pack(f"{at}.weights")
                else:
                    arrays[f"{at}.weights"] = term.weights
            header["terms"].append(entry)
        edges = {"transitions": self.edges.transitions, "start": self.edges.start, "end": self.edges.end}
        for name, values in edges.items():
            possible = np.isfinite(values)
            arrays[name] = np.where(possible, values, 0.0)
            if not possible.all():
                arrays[f"{name}.allowed"] = possible
        if self.edges.triples is not None:
            arrays["triples"] = self.edges.triples
        return header, arrays

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        return cls.unpack(read_container(path, "model"))

    @classmethod
    def unpack(cls, contents: Contents) -> Model:
        encoding = Encoding.unpack(contents)
        Y = len(encoding.labels)
        terms: list[Term] = []
        for number, entry in enumerate(contents.get("terms", list)):
            at = f"term{number}"
            name, features = term_entry(contents, encoding, entry, at)
            inputs = empty_inputs(encoding, features)
            kind = entry.get("type", "node")
            if kind not in ("node", "edge-x"):
                raise contents.error(f"'{at}' is a term of an unknown type")
            cosine = entry.get("cosine", False)
            if not isinstance(cosine, bool):
                raise contents.error(f"'{at}' has a 'cosine' that is neither true nor false")
            C = score_columns(Y) if kind == "node" else Y * Y
            if entry.get("map") in ("explicit", "affine"):
                weights = _stored_weights(contents, entry, at, C)
                if weights.shape != (explicit_size(inputs), C):
                    raise contents.error(f"'{at}.weights' does not fit its features")
                if entry["map"] == "explicit":
                    terms.append(ExplicitTerm(name, kind, features, weights, cosine))
                    continue
                bias = contents.array(f"{at}.bias", "float64", 1)
                if bias.shape != (C,) or cosine:
                    raise contents.error(f"'{at}.bias' does not fit its term")
                terms.append(AffineTerm(name, kind, features, weights, bias=bias))
            elif entry.get("map") == "reduced":
                kernel = unpack_kernel(contents, entry, inputs, at)
                pivots, lines = unpack_pivots(contents, inputs, at)
                alpha = contents.array(f"{at}.alpha", "float64", 2)
                if alpha.shape != (len(pivots), C):
                    raise contents.error(f"'{at}.alpha' does not fit its pivots")
                terms.append(KernelTerm(name, kind, features, kernel, pivots, lines, alpha, _precision(contents)))
            elif entry.get("map") == "conjunctions":
                kernel = unpack_kernel(contents, entry, inputs, at)
                found = _stored_conjunctions(contents, kernel, inputs, at)
                weights = _stored_weights(contents, entry, at, C)
                if weights.shape != (found.size, C):
                    raise contents.error(f"'{at}.weights' does not fit its conjunctions")
                terms.append(ConjunctionTerm(name, kind, features, found, weights, cosine))
            else:
                raise contents.error(f"'{at}' has an unknown map")
        edges = chain.Edges(
            *(_stored_edges(contents, name, ndim) for name, ndim in (("transitions", 2), ("start", 1), ("end", 1))),
            contents.array("triples", "float64", 3) if "triples" in contents.arrays else None,
        )
        if edges.transitions.shape != (Y, Y) or edges.start.shape != (Y,) or edges.end.shape != (Y,):
            raise contents.error("transitions do not fit the labels")
        if edges.triples is not None and edges.triples.shape != (Y, Y, Y):
            raise contents.error("'triples' do not fit the labels")
        return cls(encoding, tuple(terms), edges, contents.get("info", dict))


def _freeze(value: Any) -> None:
    """No more writing to the arrays of a value: several threads may share them."""
    if isinstance(value, np.ndarray):
        value.setflags(write=False)
    elif isinstance(value, tuple):
        for part in value:
            _freeze(part)
    elif is_dataclass(value):
        for part in fields(value):
            _freeze(getattr(value, part.name))


def _precision(contents: Contents) -> str:
    """The precision of training, as its configuration tells it; double where it does not."""
    info: Any = contents.get("info", dict)
    for key in ("config", "training", "precision"):
        info = info.get(key) if isinstance(info, dict) else None
    return "single" if info == "single" else "double"


def _stored_weights(contents: Contents, entry: dict[str, Any], at: str, columns: int) -> Weights:
    kind = entry.get("weights", "dense")
    if kind == "sparse":
        return SparseWeights.unpack(contents, f"{at}.weights", columns)
    if kind != "dense":
        raise contents.error(f"'{at}' has weights of an unknown kind")
    return contents.array(f"{at}.weights", "float64", 2)


def _stored_conjunctions(contents: Contents, kernel: Kernel, inputs: Inputs, at: str) -> Conjunctions:
    if not isinstance(kernel, PolynomialKernel) or why_not(inputs, kernel.degree) is not None:
        raise contents.error(f"'{at}' has a kernel without conjunctions")
    found = Conjunctions(
        kernel,
        feature_base(inputs),
        contents.array(f"{at}.keys", "int64", 1),
        contents.array(f"{at}.columns", "int32", 1),
        contents.array(f"{at}.norms", "float64", 1),
    )
    try:
        found.check()
    except ValueError:
        raise contents.error(f"the conjunctions of '{at}' do not fit") from None
    return found


def _stored_edges(contents: Contents, name: str, ndim: int) -> np.ndarray:
    """Potentials between labels, minus infinity where they are forbidden."""
    values = contents.array(name, "float64", ndim)
    if f"{name}.allowed" not in contents.arrays:
        return values
    allowed = contents.array(f"{name}.allowed", "bool", ndim)
    if allowed.shape != values.shape:
        raise contents.error(f"'{name}.allowed' does not fit the labels")
    return np.where(allowed, values, -np.inf)


# ----------------------------------------------------------------------------- parts shared with basis files


def term_entry(contents: Contents, encoding: Encoding, entry: Any, at: str) -> tuple[str, tuple[str, ...]]:
    """Name and features of a stored term, checked against the encoding."""
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise contents.error(f"'{at}' is not a term")
    features = entry.get("features")
    if not isinstance(features, list) or not set(map(str, features)) <= set(encoding.names):
        raise contents.error(f"'{at}' names features that the encoding does not have")
    return entry["name"], tuple(map(str, features))


def empty_inputs(encoding: Encoding, features: Sequence[str]) -> Inputs:
    """Inputs of no position: the shape of the named features."""
    return encoding.inputs(encoding.empty_dataset(), features)


def explicit_size(inputs: Inputs) -> int:
    bag = 0 if inputs.bag is None else inputs.bag.shape[1]
    return int(inputs.sizes.sum()) + bag + inputs.real.shape[1]


def unpack_kernel(contents: Contents, entry: dict[str, Any], inputs: Inputs, at: str) -> Kernel:
    try:
        return kernel_from_dict(entry["kernel"], inputs)
    except NotRegistered as error:
        raise FileFormatError(f"{contents.path}: {error}") from None
    except (ValueError, TypeError, KeyError):
        raise contents.error(f"'{at}' has an unknown kernel") from None


def pack_pivots(pivots: Inputs, lines: np.ndarray, at: str) -> dict[str, np.ndarray]:
    arrays = {f"{at}.codes": pivots.codes, f"{at}.real": pivots.real, f"{at}.lines": lines}
    if pivots.bag is not None:
        arrays |= pack_sparse(pivots.bag, f"{at}.bag")
    return arrays


def unpack_pivots(contents: Contents, like: Inputs, at: str) -> tuple[Inputs, np.ndarray]:
    """Pivots and their lines; `like` has the shape of the term's features."""
    codes = contents.array(f"{at}.codes", "int32", 2)
    real = contents.array(f"{at}.real", "float64", 2)
    lines = contents.array(f"{at}.lines", "int64", 1)
    M = len(lines)
    if codes.shape != (M, like.codes.shape[1]) or real.shape != (M, like.real.shape[1]):
        raise contents.error(f"the pivots of '{at}' do not fit its features")
    if codes.size and (codes.min() < -1 or (codes >= like.sizes).any()):
        raise contents.error(f"the pivots of '{at}' hold codes out of range")
    bag = None
    if like.bag is not None:
        bag = contents.sparse(f"{at}.bag", M, like.bag.shape[1])
    return Inputs(codes, like.sizes, real, bag, np.zeros(M)), lines
