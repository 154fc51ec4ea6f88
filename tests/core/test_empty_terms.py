"""Terms of whose features the data has none: training goes without them and says so, or says that nothing is left."""

import numpy as np
import pytest

from kcrf_core import DataError, KernelCRF, Workers, fit_encoding, parse_config, train
from kcrf_core.chains import Problem
from kcrf_core.corpora import AttributeRows, Corpus
from kcrf_core.model import Model
from kcrf_core.training import WarmStart, make_splits
from listening import Recorder

FEATURES = [{"column": "word", "window": [0]}, {"name": "rare", "column": "pos", "window": [0], "min_count": 1000}]
WORDS, EDGE = {"name": "words", "features": ["word"]}, {"type": "edge"}


def draw(sequences=30, seed=0):
    rng = np.random.default_rng(seed)
    offsets = np.arange(0, 5 * sequences + 1, 5)
    words = rng.integers(0, 4, offsets[-1])
    gold = np.where(rng.random(len(words)) < 0.8, words % 2, rng.integers(0, 2, len(words)))
    columns = ([f"w{w}" for w in words], ["p"] * len(words), [f"l{y}" for y in gold])
    return Corpus("toy", columns, offsets, np.arange(1, len(words) + 1))


def fit(terms, corpus=None, features=FEATURES, sigma2=1.0, columns=("word", "pos", "label"), **more):
    raw = {"columns": list(columns), "features": features, "terms": terms, "training": {"sigma2": sigma2}}
    config = parse_config({key: value for key, value in raw.items() if value is not None})
    recorder = Recorder()
    encoding, dataset = fit_encoding(config, corpus or draw())
    with Workers(1) as workers:
        model, report = train(encoding, dataset, config, workers=workers, observer=recorder, **more)
    return model, report, recorder.notes


EMPTY = [
    {},
    {"kernel": "rbf"},
    {"kernel": "poly"},
    {"kernel": "poly", "map": "full"},
    {"kernel": "rbf", "map": {"select": "gradient"}},
    {"type": "edge-x"},
    {"type": "edge-x", "kernel": "rbf"},
]


@pytest.mark.parametrize("term", EMPTY)
def test_a_term_without_features_is_left_out(tmp_path, term):
    model, _, notes = fit([WORDS, {"name": "none", "features": ["rare"], **term}, EDGE])
    assert (
        "warning: no feature of term none occurs in the data at least 1,000 times ('min_count'): "
        "the model is trained without it"
    ) in notes
    assert [each["name"] for each in model.info["config"]["terms"]] == ["words", "edge"]
    alone, _, _ = fit([WORDS, EDGE])
    model.save(tmp_path / "m.npz")
    loaded, dataset = Model.load(tmp_path / "m.npz"), model.encoding.encode(draw(seed=1))
    np.testing.assert_array_equal(loaded.marginals(dataset), alone.marginals(dataset))


def test_conjunctions_that_are_all_cut_off_leave_their_term_out():
    term = {"name": "pairs", "features": ["word"], "kernel": "poly", "map": {"cut_off": 1000}}
    model, _, notes = fit([WORDS, term, EDGE])
    assert [term.name for term in model.terms] == ["words"]
    assert any("no feature of term pairs occurs in the data at least" in note for note in notes)
    with pytest.raises(DataError, match=r"1,000 times \('cut_off'\): the model would ignore the input"):
        fit([term, EDGE], features=FEATURES[:1])


def test_terms_are_chosen_among_those_that_have_features():
    model, report, _ = fit([WORDS, {"name": "none", "features": ["rare"]}, EDGE], select_terms=True)
    assert [term.name for term in model.terms] == ["words"] and report.structure.chosen == ("words", "edge")


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_labels_alone_are_nothing_to_train_on(kernel):
    corpus = draw()
    attributes = AttributeRows(np.zeros(corpus.positions + 1, dtype=np.int64), [], np.zeros(0))
    bare = Corpus("toy.crfsuite", corpus.columns[-1:], corpus.offsets, corpus.lines, None, attributes)
    with pytest.raises(DataError, match="no feature of term node occurs in the data: the model would ignore the input"):
        fit([{"kernel": kernel}, EDGE], bare, features=None, columns=("label",))


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_empty_dictionaries_are_nothing_to_train_on(kernel):
    with pytest.raises(DataError, match="no feature of term node"):
        KernelCRF(kernel=kernel, sigma2=1.0).fit([[{}, {}], [{}]], [["a", "b"], ["a"]])
    some = KernelCRF(kernel=kernel, sigma2=1.0).fit([[{"x": 1.0}, {}], [{}]], [["a", "b"], ["a"]])
    assert len(some.predict([[{}, {"new": 1.0}]])[0]) == 2


def test_features_that_only_held_out_sequences_have():
    """The search for sigma2 fits on a sample, in which a term may have no column left."""
    corpus = draw(60)
    problem = Problem(np.zeros(corpus.positions, np.int32), corpus.offsets, np.ones(60), 2)
    held = make_splits(problem, seed=0).splits[0].held.unit
    seen = np.repeat(np.isin(np.arange(60), held), 5)
    attributes = AttributeRows(np.append(0, np.cumsum(seen)), ["held"] * int(seen.sum()), np.ones(int(seen.sum())))
    bag = Corpus("toy.crfsuite", corpus.columns[-1:], corpus.offsets, corpus.lines, None, attributes)
    model, _, _ = fit([{}, EDGE], bag, features=None, sigma2="auto", columns=("label",))
    assert len(model.terms) == 1


def test_a_start_from_a_model_with_a_feature_without_values():
    terms = [{"name": "words", "kernel": {"type": "sum", "parts": [
        {"type": "rbf", "features": ["word"]}, {"type": "linear", "features": ["rare"]}]}}, EDGE]  # fmt: skip
    model, _, _ = fit(terms)
    again, _, notes = fit(terms, start=WarmStart(model))
    assert any("term words at its 4 pivots" in note for note in notes)
    dataset = model.encoding.encode(draw(seed=1))
    np.testing.assert_allclose(again.marginals(dataset), model.marginals(dataset), rtol=1e-2)
