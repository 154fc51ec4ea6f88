"""The classes of python-crfsuite: their manners, and models that python-crfsuite reads."""

from __future__ import annotations

import re
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

from kcrf_core import KernelCRF, Model
from kcrf_core.config import RulesConfig
from kcrf_core.exchange import read_crfsuite
from kcrf_core.files import PlainContents, read_container, write_container
from kcrf_core.maps import SparseWeights
from kcrf_core.model import runtime_image
from kcrf_core.pycrfsuite import BaseTrainer, CRFSuiteError, ItemSequence, Tagger, Trainer
from kcrf_core.pycrfsuite.linear_models import is_plain, library_image

FOREIGN = Path(__file__).parents[1] / "data" / "foreign" / "words.crfsuite-model"

SEQUENCES = [
    ([{"word": "the", "first": True}, {"word": "cat", "length": 0.75}, {"word": "sat", "length": 0.75}], "DNV"),
    ([{"word": "a", "first": True}, {"word": "dog", "length": 0.75}], "DN"),
    ([{"word": "dogs", "first": True, "length": 1}, {"word": "run", "length": 0.75}], "NV"),
    ([{"word": "sie", "first": True}, {"word": "läuft", "length": 1.25}], "NV"),
]


def trained(path, sequences=SEQUENCES, **params):
    trainer = Trainer(params={"c2": 0.01} | params, verbose=False)
    for items, labels in sequences:
        trainer.append(items, list(labels))
    trainer.train(str(path))
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("models") / "model.crfsuite")


@pytest.mark.parametrize(
    ("item", "names"),
    [
        ({"a": 1}, {"a": 1.0}),
        ({"a": 0.5, "b": True, "c": False}, {"a": 0.5, "b": 1.0, "c": 0.0}),
        ({"a": "x", "b": b"y"}, {"a:x": 1.0, "b:y": 1.0}),
        ({"a": ["x", "y"], "b": {"z"}}, {"a:x": 1.0, "a:y": 1.0, "b:z": 1.0}),
        ({"a": {"b": {"c": "d"}, "e": 2}}, {"a:b:c:d": 1.0, "a:e": 2.0}),
        (["x", "y"], {"x": 1.0, "y": 1.0}),
        (("x",), {"x": 1.0}),
        ({"x": 1, "y": 1}.keys(), {"x": 1.0, "y": 1.0}),
        ({"солнце": "не светит"}, {"солнце:не светит": 1.0}),
        ({"a": np.float32(0.25)}, {"a": 0.25}),
        ({}, {}),
        ({"n" * 5000: "v" * 5000}, {"n" * 5000 + ":" + "v" * 5000: 1.0}),
    ],
)
def test_items_are_named_as_python_crfsuite_names_them(item, names):
    rows = ItemSequence([item])
    assert rows.items() == [names] and len(rows) == 1 and repr(rows) == "<ItemSequence of size 1>"


@pytest.mark.parametrize("item", [{"a": ("x",)}, {"a": None}, {1: 2.0}, [1], 3, {"a": "\ud800"}])
def test_items_that_are_none(item, path):
    with pytest.raises((TypeError, UnicodeEncodeError)):
        ItemSequence([item])
    with Tagger().open(path) as tagger, pytest.raises((TypeError, UnicodeEncodeError)):
        tagger.tag([item])


def test_values_must_be_finite(path):
    with Tagger().open(path) as tagger, pytest.raises(ValueError, match="'length' is not finite"):
        tagger.tag([{"length": float("nan")}])


def nested(depth):
    item = {"a": 1}
    for _ in range(depth):
        item = {"a": item}
    return item


def test_items_that_change_while_they_are_read(path):
    class Value:
        def __float__(self):
            item["more"] = 1
            return 1.0

    item = {"a": Value(), "b": 1}
    with Tagger().open(path) as tagger, pytest.raises(RuntimeError, match="changed size"):
        tagger.tag([item])


def test_attributes_of_value_zero_say_nothing(path):
    """A tagger does not write their names, but looks at them."""
    with Tagger().open(path) as tagger:
        tagger.set([{"word": "the", "first": True}])
        wanted = [tagger.marginal(label, 0) for label in tagger.labels()]
        zeros = {"length": False, "word:cat": 0, "next": {"word:sat": False, "first": 0.0}}
        tagger.set([{**zeros, "word": "the", "first": True}])
        assert [tagger.marginal(label, 0) for label in tagger.labels()] == wanted
        with pytest.raises(TypeError, match="must be a string"):
            tagger.set([{3: False}])


def test_items_within_items_have_an_end():
    assert len(ItemSequence([nested(40)]).items()) == 1
    with pytest.raises(ValueError, match="deep"):
        ItemSequence([nested(2000)])


def test_scores_are_those_of_the_weights(path):
    """Attributes in any of their forms, with their values; unknown ones count for nothing."""
    with Tagger().open(path) as tagger:
        info = tagger.info()
        items = [{"word": "cat", "length": 2, "strange": 5.0}, ["word:sat"]]
        tagger.set(items)
        names = [{"word:cat": 1, "length": 2}, {"word:sat": 1}]
        labels = tagger.labels()
        best, scores = None, {}
        for y in labels:
            for z in labels:
                score = info.transitions.get((y, z), 0.0)
                for label, own in ((y, names[0]), (z, names[1])):
                    score += sum(info.state_features.get((name, label), 0.0) * value for name, value in own.items())
                scores[y, z] = score
        best = max(scores, key=scores.get)
        total = np.logaddexp.reduce(list(scores.values()))
        assert tagger.tag() == list(best)
        assert tagger.probability(list(best)) == pytest.approx(np.exp(scores[best] - total), rel=1e-9)
        marginal = sum(np.exp(score - total) for (y, _), score in scores.items() if y == labels[0])
        assert tagger.marginal(labels[0], 0) == pytest.approx(marginal, rel=1e-9)


def test_a_closed_tagger_says_so(path):
    tagger = Tagger()
    for call in (tagger.labels, lambda: tagger.tag([]), lambda: tagger.set([]), lambda: tagger.marginal("D", 0)):
        with pytest.raises(ValueError, match="not opened"):
            call()
    for call in (tagger.info, tagger.dump):
        with pytest.raises(RuntimeError, match="not opened"):
            call()
    with tagger.open(path):
        assert tagger.labels() == ["D", "N", "V"]
    with pytest.raises(ValueError, match="not opened"):
        tagger.labels()


def test_sequences_without_items_and_wrong_questions(path):
    with Tagger().open(path) as tagger:
        assert tagger.tag([]) == [] and tagger.marginal("D", 0) == 0.0 and tagger.probability([]) == 0.0
        tagger.set([["a"], ["b"]])
        with pytest.raises(ValueError, match="2 items, but 1 label"):
            tagger.probability(["D"])
        with pytest.raises(ValueError, match="position 2"):
            tagger.marginal("D", 2)
        with pytest.raises(RuntimeError, match="no label 'X'"):
            tagger.marginal("X", 0)
        with pytest.raises(TypeError):
            tagger.tag([["a"], 5])
        assert tagger.tag() == []  # half a sequence is none


@pytest.fixture(params=["crfsuite", "npz"])
def tagger(request, path, tmp_path):
    """A tagger by a model of CRFsuite, and one by a model of kcrf."""
    target = path
    if request.param == "npz":
        target = tmp_path / "model.npz"
        X, y = [items for items, _ in SEQUENCES], [list(labels) for _, labels in SEQUENCES]
        KernelCRF(sigma2=10.0).fit(X, y).save(target)
    with Tagger().open(target) as opened:
        yield opened


def test_threads_that_share_a_tagger_get_their_own_labels(tagger):
    """A sequence is one of the thread that sets it: others come between any two steps, here between two items."""
    (long, labels), (short, _) = SEQUENCES[0], SEQUENCES[1]
    tagger.set(short)
    probability = tagger.probability(["D", "N"])

    def interrupted(other):
        yield long[0]
        with ThreadPoolExecutor(1) as pool:
            pool.submit(other).result()
        yield from long[1:]

    assert tagger.tag(interrupted(lambda: tagger.tag(short))) == list(labels)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(tagger.tag).result() == [] and pool.submit(tagger.marginal, "D", 0).result() == 0.0
        tagger.set(short)
        assert pool.submit(tagger.tag, long).result() == list(labels)
        assert tagger.probability(["D", "N"]) == probability and tagger.tag() == ["D", "N"]
        assert pool.submit(tagger.tag).result() == list(labels)


def test_items_may_be_made_by_code_that_asks_the_tagger(tagger):
    (long, labels), (short, others) = SEQUENCES[0], SEQUENCES[2]

    def asking():
        for item in long:
            assert tagger.tag(short) == list(others)
            tagger.set(short)
            yield item

    assert tagger.tag(asking()) == list(labels) and tagger.tag() == list(labels)
    tagger.set(asking())
    assert tagger.tag() == list(labels)


def test_items_may_be_named_once(path):
    with Tagger().open(path) as tagger:
        for items, _ in SEQUENCES:
            assert tagger.tag(ItemSequence(items)) == tagger.tag(items)


def test_models_in_memory_and_other_files(path, tmp_path):
    with Tagger().open_inmemory(path.read_bytes()) as tagger:
        assert tagger.tag(SEQUENCES[0][0]) == list("DNV")
    with pytest.raises(ValueError, match="not a model"):
        Tagger().open_inmemory(b"nothing")
    with pytest.raises(ValueError, match="cut off"):
        Tagger().open_inmemory(b"lCRFabc")
    with pytest.raises(FileNotFoundError):
        Tagger().open(tmp_path / "none")
    with pytest.raises(TypeError):
        Tagger().open_inmemory("text")


@pytest.mark.parametrize("exported", [False, True])
def test_models_of_crfsuite_and_exported_ones_need_no_imports_of_training(path, tmp_path, exported):
    """A process that labels with one does not wait for NumPy, which takes three times as long as all the rest."""
    if exported:
        crf = KernelCRF(sigma2=10.0).fit([items for items, _ in SEQUENCES], [list(labels) for _, labels in SEQUENCES])
        path = tmp_path / "model.kcrf"
        path.write_bytes(runtime_image(crf.model_))
        with Tagger().open(path) as tagger:
            for items, _ in SEQUENCES:
                assert tagger.tag(items) == crf.predict([items])[0]
            with pytest.raises(RuntimeError, match="no names of weights"):
                tagger.info()
    assert not imported(path, "numpy", "zipfile", "difflib", "kcrf_core.chains", "kcrf_core.config")


def imported(path, *modules):
    """Return those of some modules that a process imports which labels with a model."""
    code = (
        "import sys; from kcrf_core.pycrfsuite import Tagger\n"
        f"tagger = Tagger().open({str(path)!r}).thing\n"
        "tagger.probability(tagger.tag([['word:the']]))\n"
        f"print(*{set(modules)} & set(sys.modules))"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("stored", ["dense", "sparse", "posterior"])
def test_linear_models_of_kcrf_need_no_imports_of_training(tmp_path, binary, stored):
    """Their form for the library has the bytes that the model itself gives, and `info` still reads the model."""
    X = [[{**items[0], "BOS": True}, *items[1:-1], {**items[-1], "EOS": True}] for items, _ in SEQUENCES]
    y = [["D" if one == "V" and binary else one for one in own] for _, own in SEQUENCES]
    crf = KernelCRF(sigma2=10.0, decode="viterbi", span_bonus=0.0).fit(X, y)
    model = replace(crf.model_, decode="posterior" if stored == "posterior" else "viterbi")
    if stored == "sparse":
        (term,) = model.terms
        weights = SparseWeights.of(np.where(np.abs(term.weights) > 0.1, term.weights, 0.0))
        edges = replace(model.edges, start=np.zeros(len(model.labels)))  # CRFsuite has no such weights
        model = replace(model, terms=(replace(term, weights=weights),), edges=edges)
    target = tmp_path / "model.npz"
    model.save(target)
    contents = read_container(target, "model", form=PlainContents)
    assert is_plain(contents) and library_image(contents) == runtime_image(Model.load(target))
    assert not imported(target, "numpy", "difflib", "kcrf_core.corpora", "kcrf_core.chains", "kcrf_core.config")
    with Tagger().open(target) as tagger:
        assert [tagger.tag(items) for items in X] == y
        assert "word:the" in tagger.info().attributes


@pytest.mark.parametrize("forbidden", [False, True])
def test_zeros_and_forbidden_transitions(tmp_path, forbidden):
    """Weights of zero need no other way of reading; forbidden transitions are no part of the plain kind."""
    X = [items for items, _ in SEQUENCES]
    model = KernelCRF(sigma2=10.0, decode="viterbi", span_bonus=0.0).fit(X, [list(own) for _, own in SEQUENCES]).model_
    (term,) = model.terms
    term = replace(term, weights=np.where(np.abs(term.weights) > 0.1, term.weights, 0.0))
    transitions = np.where(np.eye(3) if forbidden else np.zeros((3, 3)), -np.inf, model.edges.transitions)
    replace(model, terms=(term,), edges=replace(model.edges, transitions=transitions)).save(tmp_path / "model.npz")
    assert is_plain(read_container(tmp_path / "model.npz", "model", form=PlainContents)) != forbidden
    own, tested = KernelCRF.load(tmp_path / "model.npz"), [X[0][:1] * 4, X[2][:1] * 4, X[1][1:] * 3]
    with Tagger().open(tmp_path / "model.npz") as tagger:
        assert [tagger.tag(items) for items in tested] == own.predict(tested)


@pytest.mark.parametrize(
    ("changed", "header", "message"),
    [
        ({"term0.weights": lambda a: np.where(a == a.max(), np.nan, a)}, {}, "not finite"),
        ({"term0.weights": lambda a: a * 1e200}, {}, "beyond"),
        ({"term0.weights": lambda a: a[1:]}, {}, "does not fit"),
        ({"start": lambda a: a[1:]}, {}, "do not fit"),
        ({"transitions": lambda a: a.astype(np.float32)}, {}, "expected 2-dimensional float64"),
        ({"feature0.values.ends": lambda a: a[::-1]}, {}, "offsets"),
        ({"feature0.values.text": lambda a: a * 0 + 255}, {}, "UTF-8"),
        ({"feature0.values.text": lambda a: a * 0}, {}, "twice"),
        ({"labels.text": lambda a: a * 0 + 9}, {}, "TAB"),
        ({"labels.text": lambda a: a * 0 + 65}, {}, "twice"),
        ({}, {"decode": "guessing"}, "decoder"),
        ({}, {"terms": "none"}, "terms"),
        ({}, {"encoding": []}, "encoding"),
    ],
)
def test_altered_linear_models_are_refused_as_before(tmp_path, changed, header, message):
    crf = KernelCRF(sigma2=10.0).fit([items for items, _ in SEQUENCES], [list(labels) for _, labels in SEQUENCES])
    crf.save(tmp_path / "model.npz")
    contents = read_container(tmp_path / "model.npz", "model")
    arrays = {name: changed.get(name, np.asarray)(array) for name, array in contents.arrays.items()}
    own = {key: value for key, value in contents.header.items() if key not in ("magic", "kind", "format", "version")}
    write_container(tmp_path / "altered.npz", "model", own | header, arrays)
    with pytest.raises(ValueError, match=rf"altered\.npz: damaged or altered: [^\n]*{message}"):
        Tagger().open(tmp_path / "altered.npz")


def test_models_of_kcrf(tmp_path, monkeypatch):
    """By the library, if they are linear; columns are no items."""
    X, y = [items for items, _ in SEQUENCES], [list(labels) for _, labels in SEQUENCES]
    for order in (1, 2):
        crf = KernelCRF(order=order, sigma2=10.0)
        target = tmp_path / f"model{order}.npz"
        crf.fit(X, y).save(target)
        for opened in (Tagger().open(target), Tagger().open_inmemory(target.read_bytes())):
            with opened as tagger:
                best, own = crf.predict(X), crf.predict_marginals(X)
                monkeypatch.setattr(Model, "potentials", None)
                assert [tagger.tag(items) for items in X] == best
                for items, marginals in zip(X, own, strict=True):
                    tagger.set(items)
                    for t, expected in enumerate(marginals):
                        assert {label: pytest.approx(tagger.marginal(label, t)) for label in expected} == expected
                monkeypatch.undo()
    KernelCRF(kernel="linear", sigma2=1.0).fit([[[0.0], [1.0]]], [["a", "b"]]).save(tmp_path / "columns.npz")
    image = runtime_image(Model.load(tmp_path / "columns.npz"))
    (tmp_path / "columns.kcrf").write_bytes(image)
    for name in ("columns.npz", "columns.kcrf"):
        with pytest.raises(ValueError, match=f"{name}: the model needs columns"):
            Tagger().open(tmp_path / name)
    with pytest.raises(ValueError, match=r"damaged|cut off|truncated"):
        Tagger().open_inmemory(image[:40])
    KernelCRF(kernel="poly", sigma2=10.0).fit(X, y).save(tmp_path / "pivots.npz")
    with pytest.raises(ValueError, match=r"pivots\.npz: term 'node' has pivots.*KernelCRF\.load"):
        Tagger().open(tmp_path / "pivots.npz")


@pytest.mark.parametrize("stored", [{"decode": "posterior"}, {"span_bonus": 2.0}])
def test_labels_of_models_of_kcrf_are_those_of_their_decoder(tmp_path, stored):
    """As `kcrf tag` and `KernelCRF` give them; also under rules, where posterior decoding takes all labellings."""
    X = [[{"w": word} for word in text] for text in ("abc", "acb", "ab", "bca", "cab", "ccb")]
    y = [["O", "O", "B-X"], ["B-X", "O", "O"], ["O", "B-X"], ["B-X", "I-X", "O"], ["O", "I-X", "B-X"], ["O"] * 3]
    crf = KernelCRF(sigma2=0.5, decode="viterbi", span_bonus=0.0).fit(X, y)
    tested = [[{"w": word} for word in text] for text in ("abcab", "cabca", "bbcca", "accba", "bcbcb", "aabbc")]
    plain = crf.predict(tested)
    for rules in (None, RulesConfig(once=("X",))):
        replace(crf.model_, rules=rules, **stored).save(tmp_path / "model.npz")
        own = KernelCRF.load(tmp_path / "model.npz")
        with Tagger().open(tmp_path / "model.npz") as tagger:
            best = [tagger.tag(items) for items in tested]
        assert best == own.predict(tested) and (rules or best != plain)


def test_attributes_that_an_item_names_twice_add_up(tmp_path):
    X, y = [items for items, _ in SEQUENCES], [list(labels) for _, labels in SEQUENCES]
    KernelCRF(sigma2=10.0).fit(X, y).save(tmp_path / "model.npz")
    with Tagger().open(tmp_path / "model.npz") as tagger:
        found = []
        for item in (["length", "length"], {"length": 2.0}):
            tagger.set([item])
            found.append([tagger.marginal(label, 0) for label in tagger.labels()])
    np.testing.assert_allclose(*found, rtol=1e-12)


def test_a_dump_reads_like_that_of_crfsuite(path, tmp_path, capsys):
    with Tagger().open(FOREIGN) as tagger:
        tagger.dump(tmp_path / "dump.txt")
        text = (tmp_path / "dump.txt").read_text(encoding="utf-8")
        tagger.dump()
        assert capsys.readouterr().out == text
        info = tagger.info()
    assert (
        "  magic: lCRF\n" in text and f"  size: {FOREIGN.stat().st_size}\n" in text and "  off_features: 0x30\n" in text
    )
    assert "LABELS = {\n      0: 0\n" in text and "\n  (1) 0 --> " in text and "\n  (0) w:" in text
    assert info.header["num_labels"] == str(len(info.labels)) == "3"
    assert len(info.attributes) == int(info.header["num_attrs"])


# ----------------------------------------------------------------------------- training


@pytest.mark.parametrize("possible", [False, True])
def test_training_minimises_the_objective_of_crfsuite(tmp_path, possible):
    """At the optimum of sum -log p + c2 |w|^2 the gradient is zero: counts less expectations are 2 c2 w."""
    c2 = 0.3
    parameters = {"c2": c2, "feature.possible_states": True, "feature.possible_transitions": possible}
    path = trained(tmp_path / "model", **parameters)
    seen = {pair for _, gold in SEQUENCES for pair in pairwise(gold)}
    with Tagger().open(path) as tagger:
        info, labels = tagger.info(), tagger.labels()
        assert set(info.transitions) == (set(product(labels, repeat=2)) if possible else seen)
        assert len(seen) < len(labels) ** 2
        gradient = {key: -2 * c2 * weight for key, weight in info.transitions.items()}
        states = {key: -2 * c2 * weight for key, weight in info.state_features.items()}
        for items, gold in SEQUENCES:
            tagger.set(items)
            named = ItemSequence(items).items()
            for t, item in enumerate(named):
                for label in labels:
                    error = (gold[t] == label) - tagger.marginal(label, t)
                    for name, value in item.items():
                        states[name, label] = states.get((name, label), 0.0) + error * value
            for t in range(1, len(items)):
                for y, z in gradient:
                    gradient[y, z] += ((gold[t - 1], gold[t]) == (y, z)) - pair(tagger, labels, items, t, y, z)
    assert max(map(abs, states.values())) < 0.02 and max(map(abs, gradient.values())) < 0.02


@pytest.mark.parametrize("possible", [False, True])
@pytest.mark.parametrize("empty", [[], {}, {"a": False}], ids=["no names", "no attributes", "zeros"])
def test_without_attributes_there_are_weights_of_transitions(tmp_path, empty, possible):
    """CRFsuite's objective over transitions alone: counts less expectations are 2 c2 w."""
    c2, golds = 0.3, ["XYX", "YX", "X"]
    sequences = [([empty] * len(gold), gold) for gold in golds]
    parameters = {"c2": c2, "feature.possible_states": True, "feature.possible_transitions": possible}
    with Tagger().open(trained(tmp_path / "model", sequences, **parameters)) as tagger:
        info, labels = tagger.info(), tagger.labels()
        seen = {("X", "Y"), ("Y", "X")}
        assert not info.state_features and set(info.transitions) == (set(product("XY", repeat=2)) if possible else seen)
        gradient = {key: -2 * c2 * weight for key, weight in info.transitions.items()}
        for items, gold in sequences:
            tagger.set(items)
            for t in range(1, len(gold)):
                for y, z in gradient:
                    gradient[y, z] += ((gold[t - 1], gold[t]) == (y, z)) - pair(tagger, labels, items, t, y, z)
    assert max(map(abs, gradient.values())) < 0.02
    trained(tmp_path / "model.npz", sequences, **parameters)
    with Tagger().open(tmp_path / "model.npz") as tagger:
        assert len(tagger.tag([empty, {"b": 1}])) == 2


NEGATIVE = [
    ([{"a": 1.0, "b": -0.5}, {"a": -2.0, "c": 1.5}, {"b": 0.25, "d": 1.0}], "XYX"),
    ([{"a": 0.5, "c": -1.0}, {"b": 2.0, "d": -1.5}], "YX"),
    ([{"c": 1.0, "d": 0.5}, {"a": 1.0, "c": 1.0}, {"a": 0.75, "b": 1.0}], "YYX"),
]
ZEROS = [
    ([{"a": 1.0, "b": False}, {"a": 0.0, "c": True}, {"b": 0.25, "d": 1.0}], "XYX"),
    ([{"a": 0.5, "c": False}, {"b": 2.0, "d": 0}], "YX"),
    ([{"c": 1.0, "d": False}, {"a": False, "c": 1.0}], "YY"),
]
PARAMETERS = {
    "seen": {},
    "possible states": {"feature.possible_states": True},
    "possible transitions": {"feature.possible_transitions": True},
    "frequent": {"feature.minfreq": 1.5},
    "frequent of all": {"feature.minfreq": 2, "feature.possible_states": True, "feature.possible_transitions": True},
}


@pytest.mark.parametrize("parameters", PARAMETERS.values(), ids=PARAMETERS)
@pytest.mark.parametrize("last", ["XX", "ZZ"], ids=["two labels", "three labels"])
@pytest.mark.parametrize("sequences", [NEGATIVE, ZEROS], ids=["values below zero", "values of zero"])
def test_weights_are_those_of_crfsuite(tmp_path, sequences, parameters, last):
    """CRFsuite counts a pair by the sum of its values; over the weights that are left the gradient is zero."""
    sequences = [*sequences, ([{"e": 1.0}, {"e": 1.0, "d": 2.0}], last)]
    least = parameters.get("feature.minfreq", 0.0)
    labels = sorted({label for _, gold in sequences for label in gold})
    sums, pairs = {}, {}
    for items, gold in sequences:
        for item, label in zip(items, gold, strict=True):
            for name, value in item.items():
                sums[name, label] = sums.get((name, label), 0.0) + value
        for both in pairwise(gold):
            pairs[both] = pairs.get(both, 0) + 1
    if "feature.possible_states" in parameters:
        sums = dict.fromkeys(product("abcde", labels), 0.0) | sums
    if "feature.possible_transitions" in parameters:
        pairs = dict.fromkeys(product(labels, repeat=2), 0) | pairs
    c2 = 0.3
    with Tagger().open(trained(tmp_path / "model", sequences, **{"c2": c2, **parameters})) as tagger:
        info = tagger.info()
        assert set(info.state_features) == {key for key, value in sums.items() if value >= least}
        assert set(info.transitions) == {key for key, value in pairs.items() if value >= least}
        states = {key: -2 * c2 * weight for key, weight in info.state_features.items()}
        for items, gold in sequences:
            tagger.set(items)
            for t, item in enumerate(items):
                for name, label in [key for key in states if key[0] in item]:
                    states[name, label] += item[name] * ((gold[t] == label) - tagger.marginal(label, t))
    assert max(map(abs, states.values()), default=0.0) < 0.02


def pair(tagger, labels, items, t, y, z):
    """p(y_{t-1}, y_t | x) by enumeration."""
    return sum(
        tagger.probability(list(path))
        for path in product(labels, repeat=len(items))
        if path[t - 1] == y and path[t] == z
    )


def test_the_file_is_one_of_crfsuite(path):
    found = read_crfsuite(path.read_bytes(), "model")
    assert found.labels == ("D", "N", "V")  # in the order of the data
    assert np.diff(found.ends).min() > 0  # no attribute without a weight


def test_labels_come_in_the_order_of_the_data(tmp_path):
    turned = [(items, labels.replace("D", "Z")) for items, labels in SEQUENCES]
    with Tagger().open(trained(tmp_path / "model", turned)) as tagger:
        assert tagger.labels() == ["Z", "N", "V"]
        assert [tagger.tag(items) for items, _ in turned] == [list(labels) for _, labels in turned]


def test_observed_states_alone_have_weights(tmp_path):
    with Tagger().open(trained(tmp_path / "model")) as tagger:
        assert ("word:the", "V") not in tagger.info().state_features
    with Tagger().open(trained(tmp_path / "model", **{"feature.possible_states": True})) as tagger:
        assert tagger.info().state_features["word:the", "V"] < 0


def test_models_of_kcrf_may_be_written(tmp_path):
    model = Model.load(trained(tmp_path / "model.npz"))
    assert model.labels == ("D", "N", "V") and not model.edges.start.any()


def test_names_that_are_no_ascii_or_no_utf8(tmp_path):
    """Names are stored once; bytes that are not UTF-8 become escapes, and twice the same name is one attribute."""
    X = [[{"größe": 1.0, b"\xff": 2.0, "\\xff": 1.0}, ["größe", "größe"]], [[], {"größe": 0.5, "klein": True}]]
    path = trained(tmp_path / "m", [(items, ["X", "Y"]) for items in X])
    same = [[{"größe": 1.0, "\\xff": 3.0}, {"größe": 2.0}], X[1]]
    expected = trained(tmp_path / "expected", [(items, ["X", "Y"]) for items in same])
    assert path.read_bytes() == expected.read_bytes()
    with Tagger().open(path) as tagger:
        assert set(tagger.info().attributes) == {"größe", "\\xff", "klein"}


def test_training_keeps_no_copies_of_the_data(tmp_path):
    """Names of attributes are numbers of four bytes as soon as a sequence is added."""
    trainer, rng = Trainer(params={"max_iterations": 2}, verbose=False), np.random.default_rng(0)
    for _ in range(300):
        words = rng.integers(0, 100, 20)
        items = [[f"w[{k}]={word}" for k in range(10)] for word in words]
        trainer.append(items, ["ABCDEFGH"[word % 8] for word in words])
    trained(tmp_path / "m")  # imports what training needs
    tracemalloc.start()
    try:
        trainer.train("")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60 * 300 * 20 * 10


def test_groups_are_held_out(tmp_path, capsys):
    trainer = Trainer()
    for number, (items, labels) in enumerate(SEQUENCES):
        trainer.append(items, list(labels), group=number % 2)
    trainer.train(str(tmp_path / "model"), holdout=1)
    out = capsys.readouterr().out
    assert "Item accuracy: " in out and " / 4 " in out and "Macro-average precision, recall, F1: (" in out
    last = trainer.logparser.last_iteration
    assert last["item_accuracy"] == sum(score.match for score in last["scores"].values()) / Fraction(4)
    assert last["avg_f1"] == pytest.approx(np.mean([score.f1 for score in last["scores"].values()]), rel=1e-12)
    with Tagger().open(tmp_path / "model") as tagger:
        assert "word:läuft" not in tagger.info().attributes


def test_scores_of_held_out_sequences_come_before_the_end_of_the_optimisation(tmp_path):
    """sklearn-crfsuite prints its table of them at that event."""
    heard = []

    class Listening(Trainer):
        def __getattribute__(self, name):
            found = super().__getattribute__(name)
            if not name.startswith("on_"):
                return found

            def note(log, *info):
                last = self.logparser.last_iteration or {}
                heard.append((name, bool(last.get("scores")), "avg_f1" in last, log))

            return note

    trainer = Listening()
    for number, (items, labels) in enumerate(SEQUENCES):
        trainer.append(items, list(labels), group=number % 2)
    trainer.train(str(tmp_path / "model"), holdout=1)
    names = [name for name, *_ in heard]
    assert list(dict.fromkeys(names)) == [
        "on_start", "on_featgen_progress", "on_featgen_end", "on_prepared",
        "on_iteration", "on_optimization_end", "on_end",
    ]  # fmt: skip
    (optimised,), (ended,) = ([one for one in heard if one[0] == f"on_{name}"] for name in ("optimization_end", "end"))
    assert optimised[1:3] == (True, True)
    assert "Item accuracy: " in optimised[3] and "Total seconds required for training" in optimised[3]
    assert ended[3].startswith("Storing the model\n") and trainer.logparser.training_seconds > 0


class Eventful(Trainer):
    """What programs that override all events do: they call those of the base class."""

    def __init__(self):
        self.percents, self.errors = [], []

    def on_featgen_progress(self, log, percent):
        super().on_featgen_progress(log, percent)
        self.percents.append(percent)

    def on_prepare_error(self, log):
        super().on_prepare_error(log)
        self.errors.append(log)


def test_events_before_the_first_iteration(tmp_path, capsys):
    trainer = Eventful()
    trainer.append([{"a": 1.0}, {"b": 1.0}], ["x", "y"])
    trainer.train(str(tmp_path / "model"))
    assert (trainer.percents, trainer.errors) == ([0, 100], []) and trainer.logparser.featgen_percent == 100
    out = capsys.readouterr().out
    assert "\n0....1....2....3....4....5....6....7....8....9....10\nNumber of features: " in out
    trainer.append([{"a": 1e200}], ["x"])
    with pytest.raises(CRFSuiteError, match="too large"):
        trainer.train(str(tmp_path / "model"))
    (log,) = trainer.errors
    assert "terminated with error: the data:3: the weight of an attribute is too large" in log
    assert capsys.readouterr().out.endswith(log)


def test_what_is_said_can_be_heard(tmp_path, capsys):
    class Listening(BaseTrainer):
        def __init__(self):
            self.heard = []

        def message(self, message):
            self.heard.append(message)

    trainer = Listening()
    trainer.append([{"a": 1}], ["x"])
    trainer.train(str(tmp_path / "model"))
    assert "type: CRF1d\n" in trainer.heard and capsys.readouterr().out == ""

    class Counting(Trainer):
        losses = ()

        def on_iteration(self, log, info):
            self.losses = (*self.losses, info["loss"])
            assert info["time"] >= 0 and log.startswith(f"***** Iteration #{info['num']} *****\n")

    counting = Counting()
    for items, labels in SEQUENCES:
        counting.append(items, list(labels))
    counting.train(str(tmp_path / "model"))
    assert len(counting.logparser.iterations) > 2 and counting.logparser.last_iteration["loss"] > 0
    out = capsys.readouterr().out
    assert len(counting.losses) == len(counting.logparser.iterations) and "Iteration" not in out
    text = "".join(counting.logparser.log)
    before, after = text.index("***** Iteration #1 "), text.index("certified")
    assert out == text[:before] + text[after:]  # nothing else is lost


@pytest.mark.parametrize(("possible", "third"), [(False, "V"), (True, "V"), (True, "N")])
def test_figures_of_iterations(tmp_path, capsys, possible, third):
    """Iterations are as many as asked for, at most, and the last one describes the weights that are written."""
    trainer = Trainer(
        params={"c2": 0.01, "feature.possible_states": possible, "feature.possible_transitions": possible}
    )
    for items, labels in SEQUENCES:
        trainer.append(items, list(labels.replace("V", third)))
    trainer.train(str(tmp_path / "model"))
    log = trainer.logparser
    out = capsys.readouterr().out
    assert [int(number) for number in re.findall(r"Iteration #(\d+)", out)] == [one["num"] for one in log.iterations]
    with Tagger().open(tmp_path / "model") as tagger:
        info = tagger.info()
    weights = np.array([*info.state_features.values(), *info.transitions.values()])
    last = log.last_iteration
    assert log.featgen_num_features == last["active_features"] == len(weights)
    assert last["feature_norm"] == pytest.approx(np.linalg.norm(weights), rel=1e-5)
    assert last["error_norm"] < log.iterations[0]["error_norm"] and last["linesearch_trials"] >= 1
    assert log.training_seconds >= log.featgen_seconds >= 0
    for most in (1, 3):
        trainer.set("max_iterations", most)
        trainer.train(str(tmp_path / "model"))
        assert [one["num"] for one in trainer.logparser.iterations] == list(range(1, most + 1))


@pytest.mark.parametrize("algorithm", ["lbfgs", "l2sgd"])
def test_parameters_of_algorithms(algorithm, tmp_path):
    trainer = Trainer(algorithm, verbose=False)
    params = trainer.get_params()
    trainer.set_params(params)
    assert trainer.get_params() == params and set(params) == set(trainer.params())
    assert all(trainer.help(name) for name in params)
    trainer.set("feature.possible_states", True)
    assert trainer.get("feature.possible_states") is True
    for call in (lambda: trainer.set("foo", 1), lambda: trainer.get("foo"), lambda: trainer.help("foo")):
        with pytest.raises(ValueError, match="Parameter not found: foo"):
            call()
    trainer.append([["a"], ["b"]], ["x", "y"])
    trainer.train(str(tmp_path / "model"))


def test_what_training_refuses(tmp_path):
    for algorithm in ("foo", "ap", "arow"):
        with pytest.raises(ValueError, match=r"Bad arguments.*there are lbfgs and l2sgd"):
            Trainer(algorithm)
    with pytest.raises(ValueError, match="2 items, but 1 label"):
        Trainer().append([["a"], ["b"]], ["x"])
    with pytest.raises(TypeError, match="labels are strings"):
        Trainer().append([["a"]], [1])
    with pytest.raises(ValueError, match="position 1: the value of attribute 'länge' is not finite"):
        Trainer().append([["a"], {"b": 1, "länge": float("nan")}], ["x", "y"])
    with pytest.raises(ValueError, match="c2 cannot be 'much'"):
        Trainer().set("c2", "much")
    trainer = Trainer(params={"c2": 0}, verbose=False)
    trainer.append([["a"]], ["x"])
    with pytest.raises(CRFSuiteError, match="c2 must be above 0"):
        trainer.train(str(tmp_path / "model"))
    trainer.clear()
    trainer.set("c2", 1)
    trainer.train(str(tmp_path / "empty"))  # as python-crfsuite, which writes a model of nothing
    with pytest.raises(ValueError, match="0 labels"):
        Tagger().open(tmp_path / "empty")
