"""Models with random weights over random data, of every kind of term: what tagging must do right with any weights."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np

from kcrf_core.chains import Edges
from kcrf_core.chains.problem import score_columns
from kcrf_core.config import parse_config
from kcrf_core.corpora import Corpus
from kcrf_core.encoding import fit_encoding
from kcrf_core.features import ConjunctionTerm, ExplicitTerm, KernelTerm
from kcrf_core.kernels import PolynomialKernel
from kcrf_core.kernels.plain import RBFKernel
from kcrf_core.maps import ColumnOrder, ConjunctionCounter, feature_base
from kcrf_core.model import Model
from kcrf_core.runtime import RuntimeModel, RuntimeTagger
from kcrf_core.system import Workers

SPANS = ("B-X", "B-Y", "I-X", "I-Y", "O")
KINDS = ("explicit", "cosine", "kernel", "conjunctions", "edge-x", "edge-x kernel")


def find_conjunctions(inputs, kernel, cut_off=1, merge=True, by_degree=False, workers=None):
    """The conjunctions of training rows, and Phi [N, D]."""
    counter = ConjunctionCounter(kernel, feature_base(inputs), workers or Workers(1, memory=0))
    counter.add(inputs)
    found, rows = counter.conjunctions(cut_off, by_degree, merge, rows=True)
    return found, rows.matrix()


def library_labels(image, encoding, corpus):
    """Numbers of the labels [N] that the C library gives to a corpus, one sequence after another."""
    tagger, out = RuntimeTagger(RuntimeModel(image)), [np.zeros(0, np.int32)]
    for first, last in pairwise(corpus.offsets.tolist()):
        if corpus.attributes is None:
            places = encoding.places(corpus)[:-1]
            rows = [["" if c < 0 else corpus.columns[c][t] for c in places] for t in range(first, last)]
            tagger.set_columns(rows)
        else:
            rows = []
            for begin, end in pairwise(corpus.attributes.indptr[first : last + 1].tolist()):
                rows.append(Counter())  # a file may name an attribute twice
                for e in range(begin, end):
                    rows[-1][corpus.attributes.names[e]] += float(corpus.attributes.values[e])
            tagger.set_attributes(rows)
        out.append(tagger.labels())
    return np.concatenate(out)


def random_corpus(rng, labels, sequences=8, longest=5):
    lengths = rng.integers(1, longest + 1, sequences)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    N = int(offsets[-1])
    columns = (
        [f"w{value}" for value in rng.integers(0, 6, N)],
        [f"c{value}" for value in rng.integers(0, 3, N)],
        [f"{value:.3f}" for value in rng.normal(size=N)],
        [labels[t] if t < len(labels) else labels[rng.integers(len(labels))] for t in range(N)],  # each at least once
    )
    lines = np.arange(1, N + 1) + np.repeat(np.arange(sequences), lengths)
    return Corpus("random", columns, offsets, lines)


def random_model(rng, kinds=("explicit",), labels=("A", "B", "C"), order=1, scale=1.0, window=(-1, 0)):
    """A model with one term of each kind, and the corpus that its encoding is of."""
    corpus = random_corpus(rng, labels)
    config = parse_config({"columns": ["word", "class", "number", "label"], "window": list(window)}, "test")
    encoding, dataset = fit_encoding(config, corpus)
    Y = len(labels)
    terms = []
    for number, kind in enumerate(kinds):
        type_ = "edge-x" if kind.startswith("edge-x") else "node"
        C = score_columns(Y) if type_ == "node" else Y * Y
        # Conjunctions are of binary features; others see all.
        features = ("word", "class") if kind == "conjunctions" else tuple(encoding.names)
        inputs = encoding.inputs(dataset, features)
        name = f"term{number}"
        if kind.endswith("kernel"):
            rows = np.sort(rng.permutation(inputs.distinct()[0])[:5])
            kernel = RBFKernel(0.2) if kind == "kernel" else PolynomialKernel(2, 0.3, 1.0, 1.0)
            alpha = scale * rng.normal(size=(len(rows), C))
            terms.append(KernelTerm(name, type_, features, kernel, inputs.take(rows), corpus.lines[rows], alpha))
        elif kind == "conjunctions":
            found, _ = find_conjunctions(inputs, PolynomialKernel(3, 0.5, 1.0, 1.0))
            weights = scale * rng.normal(size=(found.size, C))
            terms.append(ConjunctionTerm(name, type_, features, found, weights, cosine=True))
        else:
            weights = scale * rng.normal(size=(ColumnOrder.of(inputs).size, C))
            terms.append(ExplicitTerm(name, type_, features, weights, cosine=kind == "cosine"))
    triples = scale * rng.normal(size=(Y, Y, Y)) if order == 2 else None
    edges = Edges(scale * rng.normal(size=(Y, Y)), rng.normal(size=Y), rng.normal(size=Y), triples)
    return Model(encoding, tuple(terms), edges), corpus
