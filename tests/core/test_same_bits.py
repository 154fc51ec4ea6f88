"""What is found out about a sequence has the same bits in any company, for any number of threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from kcrf_core import KernelCRF
from kcrf_core.chains import Edges
from kcrf_core.chains.problem import score_columns
from kcrf_core.config import parse_config
from kcrf_core.corpora import Corpus
from kcrf_core.encoding import fit_encoding
from kcrf_core.features import ExplicitTerm, KernelTerm
from kcrf_core.kernels import Inputs, LinearKernel, PolynomialKernel, RBFKernel, gram
from kcrf_core.maps import ColumnOrder, SparseWeights
from kcrf_core.model import Decoder, Model, Wishes
from kcrf_core.system import Workers
from kcrf_core.training import train

REAL = 37  # columns
KINDS = ("explicit", "sparse", "cosine", "kernel", "single", "edge-x", "edge-x kernel")


def wide_corpus(rng, labels, sequences, longest=9):
    """Many real columns beside a word: their products are what BLAS rounds."""
    lengths = rng.integers(1, longest + 1, sequences)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    N = int(offsets[-1])
    numbers = [[repr(value) for value in rng.normal(size=N).tolist()] for _ in range(REAL)]
    words = [f"w{value}" for value in rng.integers(0, 6, N)]
    gold = [labels[t % len(labels)] for t in range(N)]
    return Corpus("wide", (words, *numbers, gold), offsets, np.arange(1, N + 1))


def wide_model(rng, kind, labels, order=1, pivots=130):
    """A model with a term of this kind, its weights so large that every bit of a score can be seen in a marginal."""
    corpus = wide_corpus(rng, labels, 60)
    columns = ["word", *(f"n{r}" for r in range(REAL)), "label"]
    encoding, dataset = fit_encoding(parse_config({"columns": columns}, "test"), corpus)
    type_, Y = "edge-x" if kind.startswith("edge-x") else "node", len(labels)
    C = score_columns(Y) if type_ == "node" else Y * Y
    features = tuple(encoding.names)
    inputs = encoding.inputs(dataset, features)
    about = ("term", type_, features)
    if kind.endswith(("kernel", "single")):
        rows = np.arange(pivots)
        kernel = PolynomialKernel(3, 0.02, 1.0, 1.0) if type_ == "edge-x" else RBFKernel(0.02)
        precision = "single" if kind == "single" else "double"
        alpha = rng.normal(size=(pivots, C))
        term = KernelTerm(*about, kernel, inputs.take(rows), corpus.lines[rows], alpha, precision)
    else:
        weights = rng.normal(size=(ColumnOrder.of(inputs).size, C))
        held = SparseWeights.of(weights) if kind == "sparse" else weights
        term = ExplicitTerm(*about, held, cosine=kind == "cosine")
    triples = rng.normal(size=(Y, Y, Y)) if order == 2 else None
    return Model(encoding, (term,), Edges(rng.normal(size=(Y, Y)), rng.normal(size=Y), rng.normal(size=Y), triples))


def runs(dataset, sizes):
    """The sequences of a dataset in runs of these many, over and over."""
    first, number = 0, 0
    while first < dataset.sequences:
        last = min(first + sizes[number % len(sizes)], dataset.sequences)
        yield dataset.span(first, last)
        first, number = last, number + 1


def equal(*found):
    for one in found[1:]:
        np.testing.assert_array_equal(one, found[0])


@pytest.mark.each_choice
@pytest.mark.parametrize("labels", ["ab", "abcde"])
@pytest.mark.parametrize("kind", KINDS)
def test_scores_of_a_sequence_do_not_depend_on_its_company(rng, kind, labels, workers):
    model = wide_model(rng, kind, labels)
    dataset = model.encoding.encode(wide_corpus(rng, labels, 90))
    whole, edges = model.potentials(dataset)
    for sizes in ([1], [2, 5, 1], [40], [1, 89]):
        found = [model.potentials(part) for part in runs(dataset, sizes)]
        equal(whole, np.concatenate([scores for scores, _ in found]))
        if kind.startswith("edge-x"):
            equal(edges.transitions, np.concatenate([pairs.transitions for _, pairs in found]))


@pytest.mark.parametrize(
    ("kind", "order"),
    [
        ("single", 1),
        ("edge-x kernel", 2),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in (("edge-x kernel", 1), ("kernel", 2))),
    ],
)
def test_everything_that_tag_writes_is_the_same_alone(rng, kind, order, workers):
    model = wide_model(rng, kind, "abc", order)
    decoder = Decoder(model, Wishes(marginals=True, probability=True, nbest=3, novelty=True, explain=2))
    dataset = model.encoding.encode(wide_corpus(rng, "abc", 50))
    (whole,) = decoder.decode(dataset, "whole", workers)
    parts = [one for part in runs(dataset, [1, 3]) for one in decoder.decode(part, "part", workers)]
    for name in ("labels", "marginals", "log_probabilities", "novelty"):
        equal(getattr(whole, name), np.concatenate([getattr(part, name) for part in parts]))
    assert whole.explanations == [one for part in parts for one in part.explanations]
    nbest = [one for part in parts for one in part.nbest]
    for one, other in zip(whole.nbest, nbest, strict=True):
        equal(one.labels, other.labels)
        equal(one.scores, other.scores)


def test_a_sequence_longer_than_what_is_scored_at_once(rng, workers):
    model = wide_model(rng, "single", "abcd")
    dataset = model.encoding.encode(wide_corpus(rng, "abcd", 3, longest=5000))
    alone = [model.marginals(dataset.span(s, s + 1)) for s in range(3)]
    equal(model.marginals(dataset, workers), np.concatenate(alone))


def test_norms_of_very_wide_inputs_are_the_same_in_any_company(rng):
    N, R = 30, 9001
    none = np.zeros((N, 0), np.int32)
    inputs = Inputs(none, np.zeros(0, np.int64), rng.normal(size=(N, R)), None, np.zeros(N))
    alone = [inputs.take(slice(t, t + 1)).squared_norms() for t in range(N)]
    equal(inputs.squared_norms(), np.concatenate(alone))
    with Workers(1):
        values = gram(LinearKernel(), inputs, inputs)
        equal(values[7:8], gram(LinearKernel(), inputs.take(slice(7, 8)), inputs))


# ----------------------------------------------------------------------------- the estimator


@pytest.fixture
def two_blas_threads():
    """BLAS with two threads, also on a machine with one core."""
    with threadpool_limits(2, user_api="blas"):
        assert blas_threads() == {2}
        yield


def blas_threads():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def estimator(rng, n_jobs=None):
    X = [rng.normal(size=(int(T), 30)) for T in rng.integers(2, 9, 60)]
    y = [["a" if row[0] > 0 else "b" if row[1] > 0 else "c" for row in x] for x in X]
    crf = KernelCRF(kernel="rbf", size=70, sigma2=100.0, max_iterations=30, tolerance=0.5, n_jobs=n_jobs)
    return crf.fit(X, y), X


def test_one_sequence_is_labelled_as_among_all(rng, two_blas_threads):
    crf, X = estimator(rng)
    every = crf.predict_proba(X)
    for x, found in zip(X, every, strict=True):
        equal(crf.predict_proba([x])[0], found)
        assert list(crf.predict_marginals_single(x)[0].values()) == found[0].tolist()
    assert [crf.predict_single(x) for x in X] == crf.predict(X)
    equal(np.concatenate(every), np.concatenate(crf.set_params(n_jobs=2).predict_proba(X)))


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_blas_has_one_thread_wherever_an_estimator_labels(rng, n_jobs, two_blas_threads, monkeypatch):
    crf, X = estimator(rng, n_jobs)
    seen = []
    plain = KernelTerm.add_scores
    monkeypatch.setattr(KernelTerm, "add_scores", lambda *args: (seen.append(blas_threads()), plain(*args)))
    gold = crf.predict(X)
    crf.predict_single(X[0])
    crf.predict_proba(X)
    crf.predict_marginals_single(X[0])
    crf.score(X, gold)
    assert len(seen) >= 5 and all(one == {1} for one in seen)
    assert blas_threads() == {2}  # as it was


def test_blas_stays_held_until_the_last_has_gone(two_blas_threads):
    """Two that overlap, the first to come being the first to go."""
    inside, gone, seen = Barrier(2), Event(), {}

    def first():
        with Workers(1):
            inside.wait()
            seen["both"] = blas_threads()
        gone.set()

    def second():
        with Workers(1):
            inside.wait()
            gone.wait()
            seen["the second"] = blas_threads()

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(first), pool.submit(second)]:
            future.result()
    assert seen == {"both": {1}, "the second": {1}}
    assert blas_threads() == {2}


def test_a_blas_that_is_imported_later_is_held_too(two_blas_threads, monkeypatch):
    """Libraries are searched for once, and again when modules have been imported."""
    from kcrf_core.system import threads

    searched = []
    search = threads.ThreadpoolController
    monkeypatch.setattr(threads, "ThreadpoolController", lambda: searched.append(1) or search())
    with Workers(1):
        pass
    searched.clear()
    for _ in range(3):
        with Workers(1):
            assert blas_threads() == {1}
    assert not searched
    monkeypatch.setitem(__import__("sys").modules, "another_blas", None)
    with Workers(1), Workers(1):
        assert blas_threads() == {1}
    assert len(searched) == 1
    assert blas_threads() == {2}


# ----------------------------------------------------------------------------- blocks


def test_models_are_scored_on_held_out_data_in_blocks(rng, monkeypatch):
    labels = [f"y{k}" for k in range(40)]
    corpus, dev = wide_corpus(rng, labels, 60), wide_corpus(rng, labels, 600)
    columns = ["word", *(f"n{r}" for r in range(REAL)), "label"]
    terms = [{"name": "pairs", "type": "edge-x", "features": ["word"], "sigma2": 1.0}]
    raw = {"columns": columns, "features": [{"column": "word"}], "terms": terms, "training": {"max_passes": 1}}
    config = parse_config(raw, "test")
    encoding, dataset = fit_encoding(config, corpus)
    sizes, plain, reports = [], Model.potentials, []
    monkeypatch.setattr(Model, "potentials", lambda self, part: (sizes.append(part.positions), plain(self, part))[1])
    for threads in (1, 2):
        with Workers(threads) as workers:
            _, report = train(encoding, dataset, config, workers=workers, dev=encoding.encode(dev))
        reports.append(report.dev.to_dict())
    assert max(sizes) * 40**2 <= 1 << 20 < dev.positions * 40**2
    assert reports[0] == reports[1]
