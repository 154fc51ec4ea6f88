"""An engine of parts gives the bits of one on all data, for every question and every kind of term."""

from __future__ import annotations

import pickle
from functools import reduce
from operator import add

import numpy as np
import pytest

from kcrf_core import Workers, fit_encoding, parse_config, read_corpus, train
from kcrf_core.chains import EDGE, EDGE2, EDGE_X, NODE, TRANSITIONS, Problem, partition_borders
from kcrf_core.cluster import dealing
from kcrf_core.kernels import Inputs, PolynomialKernel, RBFKernel
from kcrf_core.maps import (
    ColumnSupports,
    ExplicitMap,
    KeptPlaces,
    Partitions,
    ReducedMap,
    RepeatedMap,
    explicit,
    native,
    partition_sums,
    sparse_block,
)
from kcrf_core.objective import Engine, LocalExecutor, Objective, ObjectiveTerm, partition
from kcrf_core.objective.solvers import SOLVERS, Run, proximal
from problems import on_threads

KERNEL = PolynomialKernel(2, 1.0, 1.0, 1.0)


class PicklingExecutor(LocalExecutor):
    """One to which everything comes, and from which everything goes, as bytes."""

    def load(self, sources):
        return super().load(pickle.loads(pickle.dumps(sources)))

    def derive(self, handles, method, arguments):
        return super().derive(handles, method, _sent(_laid_out(list(arguments))))

    def deal(self, rows, size):
        return dealing.dealt(rows, size, list)

    def ask(self, handles, method, arguments):
        return map(_sent, super().ask(handles, method, _sent(_laid_out(list(arguments)))))


def _laid_out(value):
    """Rows that were dealt out, as workers of a cluster lay them out."""
    if isinstance(value, dealing.DealtBlock):
        return value.laid_out()
    return type(value)(map(_laid_out, value)) if isinstance(value, list | tuple) else value


def _sent(value):
    held = []

    class Pickler(pickle.Pickler):
        def persistent_id(self, thing):
            if type(thing).__name__ == "LocalHandle":
                held.append(thing)
                return len(held) - 1
            return None

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, number):
            return held[number]

    import io

    room = io.BytesIO()
    Pickler(room).dump(value)
    room.seek(0)
    return Unpickler(room).load()


def problem_of(rng, Y, sequences=300, missing=False, cut=False, weights=True, partitions=9, empty=False):
    lengths = rng.integers(1, 14, sequences)
    if empty:
        lengths[:40] = lengths[60:110] = lengths[-50:] = 0
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    labels = rng.integers(0, Y, int(offsets[-1])).astype(np.int32)
    if missing:
        labels[rng.random(len(labels)) < 0.2] = -2
    borders = np.unique(np.linspace(0, sequences, partitions + 1).astype(np.int64))
    cuts = rng.random((sequences, 2)) < 0.3 if cut else None
    return Problem(labels, offsets, rng.random(sequences) + 0.5 if weights else np.ones(sequences), Y, cuts, borders)


def inputs_of(rng, N, real=2):
    codes = np.minimum(rng.geometric(0.05, (N, 2)) - 1, 89).astype(np.int32)
    return Inputs(codes, np.array([90, 90]), rng.normal(size=(N, real)).round(2), None, np.zeros(N))


def pivots_map(inputs, workers, dtype, M=40, kernel=KERNEL):
    pivots = inputs.take(np.arange(0, len(inputs), len(inputs) // M)[:M])
    return ReducedMap.of(inputs, kernel, pivots, np.linspace(1, 0, M + 1), workers, dtype)


def repeated_map(rng, problem, workers, dtype):
    """Inputs that recur within partitions."""
    groups, first = [], 0
    for part in Partitions(problem.offsets[problem.borders]).slices:
        n = part.stop - part.start
        own = max(n // 3, 1)
        groups.append(first + np.concatenate([np.arange(own), rng.integers(0, own, n - own)]))
        first += own
    inputs = inputs_of(rng, first)
    return RepeatedMap(pivots_map(inputs, workers, dtype), np.concatenate(groups), workers)


def terms_of(kind, rng, problem, workers, dtype, monkeypatch):
    inputs, Y = inputs_of(rng, problem.positions, real=0 if kind == "categories" else 2), problem.label_count
    if kind == "linear":
        return [ObjectiveTerm(NODE, 2.0, ExplicitMap.of(inputs, dtype)), ObjectiveTerm(EDGE, 1.0)]
    if kind in ("sparse", "categories"):
        own = ExplicitMap.of(inputs, dtype)
        return [ObjectiveTerm(NODE, 2.0, own, threshold=0.5), ObjectiveTerm(EDGE, 1.0, threshold=0.5)]
    if kind == "merged":
        monkeypatch.setattr(explicit, "FEWEST_FEATURES", 10)
        codes = np.repeat(inputs.codes[:, :1], 2, axis=1)
        inputs = Inputs(codes, inputs.sizes, inputs.real, None, inputs.codes[:, 0] * 0.0)
        supports = ColumnSupports(inputs)
        supports.add(inputs)
        own = supports.merged().map_of(inputs, dtype)
        return [ObjectiveTerm(NODE, 2.0, own), ObjectiveTerm(TRANSITIONS, 1.0)]
    if kind == "kept":
        own = merged_columns_of(inputs, monkeypatch).map_of(inputs, dtype)
        kept = np.sort(rng.choice(own.size * len(set(range(Y))), own.size * Y // 3, replace=False)).astype(np.int64)
        return [ObjectiveTerm(NODE, 2.0, own, KeptPlaces(kept, own.size, NODE.columns(Y))), ObjectiveTerm(EDGE, 1.0)]
    if kind == "pivots":
        return [ObjectiveTerm(NODE, 2.0, pivots_map(inputs, workers, dtype)), ObjectiveTerm(EDGE, 1.0)]
    if kind == "distances":
        return [ObjectiveTerm(NODE, 2.0, pivots_map(inputs, workers, dtype, kernel=RBFKernel(0.3)))]
    if kind == "repeated":
        return [ObjectiveTerm(NODE, 2.0, repeated_map(rng, problem, workers, dtype)), ObjectiveTerm(EDGE, 1.0)]
    if kind == "edge-x":
        return [
            ObjectiveTerm(NODE, 2.0, pivots_map(inputs, workers, dtype)),
            ObjectiveTerm(EDGE_X, 0.5, ExplicitMap(sparse_block(inputs), inputs.real, dtype)),
            ObjectiveTerm(EDGE, 1.0),
        ]
    return [
        ObjectiveTerm(NODE, 2.0, ExplicitMap.of(inputs, dtype)),
        ObjectiveTerm(EDGE, 1.0),
        ObjectiveTerm(EDGE2, 0.3),
    ]


def merged_columns_of(inputs, monkeypatch):
    """Pairs of columns in one, at random: rows may have some of a column."""
    monkeypatch.setattr(explicit, "FEWEST_FEATURES", 10)
    return explicit.MergedColumns((np.arange(180) // 2).astype(np.int32), 90)


def both(kind, rng, workers, monkeypatch, dtype=np.float32, Y=3, **more):
    problem = problem_of(rng, Y, **more)
    terms = terms_of(kind, rng, problem, workers, dtype, monkeypatch)
    whole = on_threads(problem, terms, workers, dtype)
    composed = Objective.on(Engine.over(problem, terms, PicklingExecutor(workers), workers, dtype), terms)
    assert len(composed.engine.handles) == len(problem.borders) - 1 > 1
    return whole, composed


def same(a, b):
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    else:
        assert a == b, (a, b)


KINDS = ["linear", "merged", "kept", "pivots", "distances", "repeated", "edge-x", "edge2"]


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype, dealt", [(np.float32, False), (np.float32, True), (np.float64, False)])
@pytest.mark.parametrize("kind", KINDS)
def test_every_answer_has_the_same_bits(kind, dtype, dealt, rng, workers, monkeypatch):
    if dealt:  # rows that several parts have are sent once, as for large blocks
        monkeypatch.setattr(dealing, "WORTH_DEALING", 10)
    whole, composed = both(kind, rng, workers, monkeypatch, dtype)
    theta, vector = rng.normal(size=(2, whole.size))
    same(whole.engine.evaluate(theta), composed.engine.evaluate(theta))
    same(list(whole.engine.evaluate_all([theta, vector])), list(composed.engine.evaluate_all([theta, vector])))
    same(whole.engine.product(theta, vector), composed.engine.product(theta, vector))
    for clique in {term.clique for term in whole.terms if term.clique.mapped}:
        same(whole.engine.errors(theta, clique), composed.engine.errors(theta, clique))
    first, second = whole.engine.predictions(theta), composed.engine.predictions(theta)
    same((first.labels, first.gold), (second.labels, second.gold))
    for question in ("sequence_log_probabilities", "rounding"):
        same(getattr(whole.engine, question)(theta), getattr(composed.engine, question)(theta))
    same(whole.initial_curvature(), composed.initial_curvature())
    for held in (False, True):
        double, other = whole.engine.in_double(held), composed.engine.in_double(held)
        same(double.evaluate(theta), other.evaluate(theta))
    real = {j: 100 for j in whole.mapped if whole.terms[j].real}
    if real:
        same(whole.engine.real_grams(theta, real), composed.engine.real_grams(theta, real))


@pytest.mark.parametrize("negligible", [0.0, 0.02])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "distances"])  # none is nearly certain with these
def test_blocks_have_the_same_bits(kind, negligible, rng, workers, monkeypatch):
    whole, composed = both(kind, rng, workers, monkeypatch)
    theta, vector = 5 * rng.normal(size=(2, whole.size))
    one, other = whole.engine.blocks(theta, False, negligible), composed.engine.blocks(theta, False, negligible)
    same((one.operations, one.variance_share), (other.operations, other.variance_share))
    shares = []
    for j, term in enumerate(whole.terms):
        if not term.clique.mapped:
            same(one.small[j], other.small[j])
            continue
        shares.append(one.share(j))
        same(one.share(j), other.share(j))
        block = whole.vectors.take(vector, j)
        same(one.product(j, block), other.product(j, block))
        if not term.nested:
            same(one.diagonal(j), other.diagonal(j))
        else:
            same(whole.engine.leading_gram(j, 20, 80), composed.engine.leading_gram(j, 20, 80))
            narrow, narrow_too = whole.engine.narrowed({j: 11}), composed.engine.narrowed({j: 11})
            few = rng.normal(size=narrow.vectors.size)
            same(narrow.evaluate(few), narrow_too.evaluate(few))
    assert negligible == 0 or min(shares) < 1


@pytest.mark.each_choice
@pytest.mark.parametrize("more", [{"missing": True}, {"cut": True}, {"weights": False}, {"partitions": 40}, {"Y": 2}])
@pytest.mark.parametrize("kind", ["kept", "pivots"])
def test_problems_of_all_kinds_have_the_same_bits(kind, more, rng, workers, monkeypatch):
    if kind == "kept" and more.get("Y") == 2:
        kind = "merged"
    whole, composed = both(kind, rng, workers, monkeypatch, **more)
    theta, vector = rng.normal(size=(2, whole.size))
    same(whole.engine.evaluate(theta), composed.engine.evaluate(theta))
    same(whole.engine.product(theta, vector), composed.engine.product(theta, vector))
    same(whole.initial_curvature(), composed.initial_curvature())
    # Systems of pivots in double precision have other bits for one right side than for several.
    double, other = whole.engine.in_double(True), composed.engine.in_double(True)
    several = list(rng.normal(size=(6, whole.size)))
    same(list(double.evaluate_all(several)), list(other.evaluate_all(several)))


@pytest.mark.parametrize("kind", ["pivots", "edge-x", "edge2"])
def test_partitions_of_empty_sequences_belong_to_others(kind, rng, workers, monkeypatch):
    whole, composed = both(kind, rng, workers, monkeypatch, empty=True)
    assert 2 <= len(composed.engine.handles) < 8 and (np.diff(whole.problem.offsets[whole.problem.borders]) > 0).all()
    theta, vector = rng.normal(size=(2, whole.size))
    same(whole.engine.evaluate(theta), composed.engine.evaluate(theta))
    same(whole.engine.product(theta, vector), composed.engine.product(theta, vector))
    same(whole.engine.sequence_log_probabilities(theta), composed.engine.sequence_log_probabilities(theta))
    same(whole.initial_curvature(), composed.initial_curvature())


@pytest.mark.parametrize("name", list(SOLVERS))
def test_fits_end_at_the_same_bits(name, rng, workers, monkeypatch):
    whole, composed = both("sparse" if name == "proximal" else "pivots", rng, workers, monkeypatch)
    found = [SOLVERS[name](each, each.vectors.zeros(), Run(1e-3, 60)) for each in (whole, composed)]
    same(*[(each.theta, each.value, each.lower, each.passes) for each in found])


def test_steps_with_the_working_set_alone_end_at_the_same_bits(rng, workers, monkeypatch):
    monkeypatch.setattr(proximal, "FIRST_RENEWAL", 2)
    monkeypatch.setattr(proximal, "SMALL", 1.0)
    led, alone = [], proximal.steps_alone
    monkeypatch.setattr(proximal, "steps_alone", lambda *given: led.append(alone(*given)) or led[-1])
    whole, composed = both("sparse", rng, workers, monkeypatch)
    found = [SOLVERS["proximal"](each, each.vectors.zeros(), Run(1e-3, 60)) for each in (whole, composed)]
    same(*[(each.theta, each.value, each.lower, each.passes) for each in found])
    assert len(led) >= 2
    same(led[: len(led) // 2], led[len(led) // 2 :])


@pytest.mark.parametrize("more", [{}, {"cut": True}, {"Y": 2}, {"empty": True}])
def test_sampled_hessians_have_the_same_bits(more, rng, workers, monkeypatch):
    monkeypatch.setattr(partition, "SUMS_AT_ONCE", 5000)
    both_wholes = both("categories", rng, workers, monkeypatch, **more)
    chosen = np.flatnonzero(rng.random(both_wholes[0].size) < 0.5)
    parts = [each.with_parameters(chosen)[0] for each in both_wholes]
    theta, columns = rng.normal(size=parts[0].size), np.arange(0, parts[0].size, 2)
    found = [each.sampled_hessian(theta, columns, 3000) for each in parts]
    same(*found)
    with Workers(3, memory=300_000) as others:
        terms = both_wholes[0].terms
        engine = Engine.over(both_wholes[0].problem, terms, LocalExecutor(others), others, np.float32)
        same(found[0], Objective.on(engine, terms).with_parameters(chosen)[0].sampled_hessian(theta, columns, 3000))


def test_what_cannot_be_sampled_goes_on_as_before(rng, workers, monkeypatch):
    """With real columns there is no sample: the model, its pairs and the passes stay what they are."""
    monkeypatch.setattr(proximal, "FIRST_RENEWAL", 2)
    monkeypatch.setattr(proximal, "SMALL", 1.0)
    objective, _ = both("sparse", rng, workers, monkeypatch)
    found = []
    for answer in (False, True):
        asked = []
        monkeypatch.setattr(
            proximal, "affordable", lambda *given, asked=asked, answer=answer: asked.append(given) or answer
        )
        result = SOLVERS["proximal"](objective, objective.vectors.zeros(), Run(1e-4, 200))
        found.append((result.theta, result.value, result.lower))
        assert asked
    same(*found)


def test_steps_by_samples_end_at_the_same_bits(rng, workers, monkeypatch):
    monkeypatch.setattr(proximal, "FIRST_RENEWAL", 2)
    monkeypatch.setattr(proximal, "SMALL", 1.0)
    monkeypatch.setattr(proximal, "affordable", lambda *_: True)
    drawn, matrix = [], proximal.sampled_matrix
    monkeypatch.setattr(proximal, "sampled_matrix", lambda *given: drawn.append(matrix(*given)) or drawn[-1])
    whole, composed = both("categories", rng, workers, monkeypatch)
    found = [SOLVERS["proximal"](each, each.vectors.zeros(), Run(1e-4, 60)) for each in (whole, composed)]
    same(*[(each.theta, each.value, each.lower, each.passes) for each in found])
    assert found[0].reason == "certified" and len(drawn) >= 2
    same(drawn[: len(drawn) // 2], drawn[len(drawn) // 2 :])


@pytest.mark.parametrize("kind", ["sparse", "merged", "kept", "edge-x", "edge2"])
def test_p_of_some_parameters_is_that_of_all_with_zeros_elsewhere(kind, rng, workers, monkeypatch):
    whole, composed = both(kind, rng, workers, monkeypatch, np.float64)
    chosen, whole_theta = np.flatnonzero(rng.random(whole.size) < 0.2), np.zeros(whole.size)
    parts = [each.with_parameters(chosen) for each in (whole, composed)]
    for part, places in parts:
        assert np.isin(chosen, places).all() and part.size == len(places) < whole.size
        theta = np.random.default_rng(1).normal(size=part.size)
        whole_theta[places] = theta
        found, expected = part.evaluate(theta), whole.evaluate(whole_theta)
        np.testing.assert_allclose(found.value, expected.value, rtol=1e-12)
        np.testing.assert_allclose(found.gradient, expected.gradient[places], atol=1e-9)
    same(*[(part.evaluate(theta).value, part.evaluate(theta).gradient, places) for part, places in parts])


@pytest.mark.slow
def test_terms_are_chosen_alike(sample_data):
    """By passes on all data, and by those that parts go through, to the bits of P and its bounds."""
    features = [{"column": name, "window": [0]} for name in ("class", "duration", "f0")]
    terms = [{"name": each["column"], "features": [each["column"]]} for each in features]
    terms[-1] |= {"kernel": {"type": "rbf"}, "map": {"size": 12}}
    columns = ["word", "class", "duration", "f0", "energy", "label"]
    config = parse_config(
        {"columns": columns, "features": features, "terms": [*terms, {"type": "edge"}], "training": {"sigma2": 1.0}}
    )
    encoding, dataset = fit_encoding(config, read_corpus(sample_data / "pitch_accent.conll").subset(range(150)))
    found = []
    with Workers(2) as workers:
        for executor in (None, PicklingExecutor(workers)):
            with Workers(2) if executor is None else Workers(2, executor=executor) as asked:
                report = train(encoding, dataset, config, workers=asked, select_terms=True)[1]
                result = report.result
                found.append((result.theta.tobytes(), result.value, result.lower, report.structure.to_dict()))
    assert found[0] == found[1]


def test_a_sum_over_partitions_is_a_tree(rng):
    """Of sixteen partitions first, then of those; a sum in one go has other bits."""
    values = rng.normal(size=100) * 10.0 ** rng.integers(-8, 8, 100)
    numbers = values.tolist()
    groups = [reduce(add, numbers[first : first + native.TOGETHER]) for first in range(0, 100, native.TOGETHER)]
    assert partition_sums.tree_sum(numbers) == reduce(add, groups) != reduce(add, numbers)


def test_partitions_of_data_depend_on_positions_alone(rng):
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 30, 3000))])
    borders = partition_borders(offsets)
    assert len(borders) == 9 and borders[0] == 0 and borders[-1] == 3000
    sizes = np.diff(offsets[borders])
    assert sizes.max() - sizes.min() < 60
    problem = Problem(np.zeros(offsets[-1], np.int32), offsets, np.ones(3000), 2)
    some = np.flatnonzero(rng.random(3000) < 0.5)
    part = problem.subset(some)
    assert all(
        (some[first:last] >= begin).all() and (some[first:last] < end).all()
        for first, last, begin, end in zip(part.borders, part.borders[1:], borders, borders[1:], strict=False)
    )


def test_parts_that_do_not_fit_are_made_again(rng, monkeypatch):
    with Workers(1) as workers:
        problem = problem_of(rng, 3)
        terms = terms_of("linear", rng, problem, workers, np.float32, monkeypatch)
        expected = on_threads(problem, terms, workers, np.float32).engine
        theta = rng.normal(size=expected.vectors.size)
        with Workers(1, memory=60_000) as few:
            executor = LocalExecutor(few)
            composed = Engine.over(problem, terms, executor, few, np.float32)
            same(expected.evaluate(theta), composed.evaluate(theta))
            assert 0 < len(executor.made) < len(composed.handles)
