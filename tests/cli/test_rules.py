"""Rules in decoding: options of `tag`, `evaluate` and `train`, rules that models store, and rules in Python."""

import itertools
import json
import pickle
import signal
import warnings

import numpy as np
import pytest

from kcrf_cli.main import main
from kcrf_core import KernelCRF, Model
from kcrf_core.config import configuration_text, load_yaml
from kcrf_core.pycrfsuite import Tagger

WORDS = ["794", "Salem", "PA", "Court", "Unit", "B", "Newton", "PA"]
ADDRESS = "".join(f"{word}\n" for word in WORDS).encode()
FREE = ["Number", "City", "State", "Suffix", "Unit", "Unit", "City", "State"]
ONCE = ["Number", "Street", "Street", "Suffix", "Unit", "Unit", "City", "State"]


@pytest.fixture(scope="module")
def stored(tmp_path_factory, sample_data):
    """A model of addresses, in a file."""
    path = tmp_path_factory.mktemp("rules") / "model.npz"
    handler = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as done:
        main(["train", str(sample_data / "addresses.conll"), "-o", str(path), "--sigma2", "1", "-q"], prog_name="kcrf")
    signal.signal(signal.SIGTERM, handler)
    assert not done.value.code
    return path


def last(done):
    assert done.code == 0, done.err
    return [line.split()[-1] for line in done.text.splitlines() if line]


def test_labels_obey(kcrf, stored):
    assert last(kcrf("tag", "-m", stored, stdin=ADDRESS)) == FREE
    assert last(kcrf("tag", "-m", stored, "--once", "all", stdin=ADDRESS)) == ONCE
    assert last(kcrf("tag", "-m", stored, "--once", "City", "--at-most", "State=2", stdin=ADDRESS)) != FREE
    both = kcrf("tag", "-m", stored, "--once", "all", "--sequence-probability", stdin=ADDRESS)
    assert last(both) == ONCE
    p = float(both.text.split()[1].removeprefix("probability="))
    done = kcrf("tag", "-m", stored, "--once", "all", "--json-lines", "--nbest", 3, stdin=ADDRESS)
    found = json.loads(done.out)
    assert found["labels"] == found["nbest"][0]["labels"] == ONCE
    assert found["nbest"][0]["probability"] == pytest.approx(p)
    plain = json.loads(kcrf("tag", "-m", stored, "--json-lines", "--nbest", 500, stdin=ADDRESS).out)["nbest"]
    alone = [one["labels"] for one in plain if all(_runs(one["labels"], label) <= 1 for label in set(FREE + ONCE))]
    assert alone[:3] == [one["labels"] for one in found["nbest"]]
    # Marginals are given transitions that are forbidden, and do not depend on numbers of runs.
    every = ("tag", "-m", stored, "--marginals", "all", "--json-lines")
    plain, once, forbidden = (
        json.loads(kcrf(*every, *rules, stdin=ADDRESS).out)["marginals"]
        for rules in ((), ("--once", "all"), ("--forbid", "State>$"))
    )
    assert once == plain
    assert forbidden[-1]["State"] < 1e-6 < plain[-1]["State"]
    assert sum(forbidden[1].values()) == pytest.approx(1, abs=1e-5)
    posterior = kcrf("tag", "-m", stored, "--once", "all", "--decode", "posterior", stdin=ADDRESS)
    assert _runs(last(posterior), "City") == 1


def _runs(labels, label):
    return sum(one == label and (t == 0 or labels[t - 1] != label) for t, one in enumerate(labels))


def test_forbidden_transitions_and_allowed_labels(kcrf, stored, tmp_path, sample_data):
    done = kcrf("tag", "-m", stored, "--forbid", "Number>City", "--forbid", "State>$", stdin=ADDRESS)
    labels = last(done)
    assert labels[1] != "City" and labels[-1] != "State"
    unseen = last(kcrf("tag", "-m", stored, "--forbid", "unseen", stdin=ADDRESS))
    rows = [block.splitlines() for block in (sample_data / "addresses.conll").read_text().split("\n\n")]
    seen = {(a.split("\t")[1], b.split("\t")[1]) for block in rows for a, b in itertools.pairwise(block)}
    assert set(itertools.pairwise(unseen)) <= seen
    assert not set(itertools.pairwise(FREE)) <= seen
    # A column of labels that may stand at a position.
    text = tmp_path / "listed.conll"
    cells = ["a", "b", "c"] * 8
    data = [f"{word}\t\t{label}\n" for word, label in zip(cells, ["x", "y", "z"] * 8, strict=True)]
    text.write_text("".join(line + "\n" * (number % 3 == 2) for number, line in enumerate(data)))
    model = tmp_path / "listed.npz"
    options = "--columns", "word,may,label", "--ignore", "may", "--sigma2", "1", "-q"
    assert kcrf("train", text, "-o", model, *options).code == 0
    tagged = kcrf("tag", "-m", model, "--allowed", "may", stdin=b"a\tz\nb\ty|x\nc\t\n")
    assert last(tagged)[0] == "z" and last(tagged)[1] in "xy" and tagged.code == 0
    split = kcrf("tag", "-m", model, "--allowed", "may", "--allowed-separator", ";", stdin=b"a\tz;y\nb\tx\n")
    assert last(split)[0] in "yz" and last(split)[1] == "x"
    wrong = kcrf("tag", "-m", model, "--allowed", "may", stdin=b"a\tz\nb\tu\n")
    assert wrong.code == 3 and "<stdin>:2: the column 'may' allows 'u'" in wrong.err
    column = kcrf("tag", "-m", model, "--allowed", "mayy", stdin=b"a\tz\n")
    assert column.code == 2 and "did you mean 'may'?" in column.err


def test_every_way_of_labelling_obeys_alike(kcrf, stored, sample_data, tmp_path):
    """Labels that are checked afterwards are those of the decoder for whole lists of results."""
    data = (ADDRESS + b"\n") * 3 + b"12\nOak\nStreet\n\n" + ADDRESS
    for rules in (["--once", "all"], ["--forbid", "Number>City"], ["--once", "City", "--decode", "posterior"]):
        quick = last(kcrf("tag", "-m", stored, *rules, stdin=data))
        lines = kcrf("tag", "-m", stored, *rules, "--json-lines", stdin=data).text.splitlines()
        assert quick == [label for line in lines for label in json.loads(line)["labels"]]
        assert quick[:8] == quick[8:16] == quick[-8:]
    # Labels of largest marginals that obey stay as they are.
    posterior = "tag", "-m", stored, "--decode", "posterior"
    free, given = (last(kcrf(*posterior, *own, stdin=b"B\n485\nME\n")) for own in ([], ["--require", "City"]))
    assert free == given == ["Number", "City", "State"]
    # Attributes have a way of their own.
    attributes, model = tmp_path / "data.crfsuite", tmp_path / "model.npz"
    attributes.write_text("A\tw=a\nB\tw=b\n\nB\tw=b\nC\tw=c\n\nA\tw=a\nB\tw=b\nA\tw=a\n\n" * 2)
    assert kcrf("train", attributes, "-o", model, "--format", "crfsuite", "--sigma2", 1, "-q").code == 0
    text = b"_\tw=a\n_\tw=b\n_\tw=a\n\n_\tw=c\n\n_\tw=a\n_\tw=b\n_\tw=a\n"
    free, once = (last(kcrf("tag", "-m", model, *own, stdin=text)) for own in ([], ["--once", "all"]))
    assert free == [*"ABA", "C", *"ABA"] and once[:3] == once[4:] and once[3] == "C"
    assert max(_runs(once[:3], label) for label in "ABC") == 1


@pytest.mark.parametrize(
    "option", [["--observed-transitions"], ["--forbid", "A>A", "--forbid", "B>B", "--forbid", "B>A"]]
)
def test_sequences_that_transitions_of_the_model_exclude(kcrf, tmp_path, option):
    data, model = tmp_path / "data.conll", tmp_path / "model.npz"
    data.write_text("a\tA\nb\tB\n\n" * 9)
    assert kcrf("train", data, *option, "--sigma2", 1, "-q", "-o", model).code == 0
    new = b"a\nb\n\n\nb\na\nb\n\na\nb\n"  # A>B is possible, and no sequence of three labels
    for more in ((), ("--decode", "posterior"), ("--nbest", 2), ("--json-lines",), ("--once", "B")):
        done = kcrf("tag", "-m", model, *more, stdin=new)
        assert done.code == 3 and "<stdin>:5: no labelling of this sequence is possible" in done.err, done.err
        assert "--when-impossible" in done.err
    lagging = kcrf("tag", "-m", model, "--lag", 1, "-q", stdin=new)
    assert lagging.code == 3 and "no labelling of this sequence is possible" in lagging.err
    for more in ([], ["--decode", "posterior"], ["--sequence-probability"]):
        done = kcrf("tag", "-m", model, *more, "--when-impossible", "keep", stdin=new)
        found = last(done)
        assert done.code == 0 and found[:2] == found[-2:] == ["A", "B"]
        assert "<stdin>:5: no labelling obeys the rules" in done.err and "for 1 sequence" in done.err
        # One of these transitions is enough.
        assert ["A", "B"] in (found[2:4], found[3:5])
    failed = kcrf("tag", "-m", model, "--when-impossible", "fail", stdin=new)
    assert failed.code == 3 and "<stdin>:5: no labelling obeys the rules" in failed.err
    gold = tmp_path / "gold.conll"
    gold.write_text("a\tA\nb\tB\n\nb\tB\na\tA\nb\tB\n")
    assert f"{gold}:4: no labelling" in kcrf("evaluate", "-m", model, gold).err
    assert kcrf("evaluate", "-m", model, gold, "--when-impossible", "keep").code == 0
    kcrf("train", data, "--sigma2", 1, "-q", "-o", model)
    done = kcrf("tag", "-m", model, "--when-impossible", "keep", stdin=new)
    assert done.code == 2 and "no rule is given that 'when_impossible' is about" in done.err


def test_sequences_without_a_labelling(kcrf, stored, monkeypatch):
    data = ADDRESS + b"\n12\n"
    rules = "tag", "-m", stored, "--require", "City,Street"
    kept = kcrf(*rules, stdin=data)
    assert kept.code == 0 and last(kept)[-1] == "Number"
    assert "warning: <stdin>:10: no labelling obeys the rules: labels without rules are kept" in kept.err
    assert "no labelling that obeys the rules was found for 1 sequence" in kept.err
    failed = kcrf(*rules, "--when-impossible", "fail", stdin=data)
    assert failed.code == 3 and "<stdin>:10: no labelling obeys the rules" in failed.err
    # No sequence of the training data consists of a Number alone.
    for decode in ("viterbi", "posterior"):
        unseen = kcrf("tag", "-m", stored, "--forbid", "unseen", "--decode", decode, stdin=data)
        assert last(unseen)[-1] == "Number" and "<stdin>:10: no labelling obeys the rules" in unseen.err
    monkeypatch.setattr("kcrf_core.model.rules.SEARCH_LIMIT", 60)
    for more in ([], ["--json-lines"]):
        limited = kcrf("tag", "-m", stored, "--once", "all", *more, "--decode", "viterbi", stdin=ADDRESS)
        assert limited.code == 0 and "60 nodes of the search do not prove" in limited.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--once", "Citty"], "did you mean 'City'?"),
        (["--require", "Citty"], "(--require)"),
        (["--forbid", "City>Stat"], "did you mean 'State'?"),
        (["--forbid", "City"], "a forbidden transition is like"),
        (["--forbid", "^>$"], "a forbidden transition is like"),
        (["--at-most", "City"], "must be like LABEL=2"),
        (["--at-most", "City=2", "--at-most", "City=3"], "two limits"),
        (["--once", "City", "--at-most", "City=2"], "--once"),
        (["--require", "City", "--at-most", "City=0"], "required and forbidden"),
        (
            ["--require", "City", *(f"--forbid={a}>City" for a in ("^", *sorted({*FREE, *ONCE, "Zip"} - {"City"})))],
            "City",
        ),
        (["--lag", "1", "--once", "all"], "whole sequences"),
        (["--when-impossible", "fail", "--no-rules"], "no rule is given that 'when_impossible' is about"),
        (["--once", "all", "--allowed-separator", ";"], "(--allowed-separator)"),
    ],
)
def test_rules_that_cannot_be_meant(kcrf, stored, options, message):
    done = kcrf("tag", "-m", stored, *options, stdin=ADDRESS)
    assert done.code == 2 and message in done.err and "Traceback" not in done.err


def test_training_stores_rules_and_forbids_transitions(kcrf, sample_data, tmp_path):
    model, config = tmp_path / "model.npz", tmp_path / "rules.yaml"
    config.write_text("rules: {once: all, at_most: {City: 2}, forbid: ['Number>City', '^>Street']}\n")
    trained = kcrf("train", sample_data / "addresses.conll", "-o", model, "-c", config, "--sigma2", 1, "-q")
    assert trained.code == 0, trained.err
    found = Model.load(model)
    assert found.rules.once == ("all",) and found.rules.at_most == ("City=2",) and found.rules.forbid == ()
    numbers = {label: number for number, label in enumerate(found.labels)}
    assert np.isneginf(found.edges.transitions[numbers["Number"], numbers["City"]])
    assert np.isneginf(found.edges.start[numbers["Street"]])
    assert last(kcrf("tag", "-m", model, stdin=ADDRESS))[1] != "City"
    twice = b"451\nHollis\nSt\nPA\nNewton\nOH\n15129\n"
    assert _runs(last(kcrf("tag", "-m", model, stdin=twice)), "State") == 1
    assert _runs(last(kcrf("tag", "-m", model, "--no-rules", stdin=twice)), "State") == 2
    assert pickle.loads(pickle.dumps(found)).rules == found.rules
    # As tune writes it.
    raw = load_yaml(config.read_text(), "rules.yaml")
    assert load_yaml(configuration_text(raw), "tuned.yaml") == raw
    broken = kcrf("train", sample_data / "addresses.conll", "-o", model, "--forbid", "City>State", "--sigma2", 1)
    assert broken.code == 3 and "is not allowed there by 'forbid'" in broken.err and "line 6" in broken.err
    dev = tmp_path / "dev.conll"
    dev.write_text("9\tNumber\nOak\tCity\nOak\tStreet\n")
    given = "--forbid", "Number>City", "--dev", dev, "--sigma2", 1
    noted = kcrf("train", sample_data / "addresses.conll", "-o", model, *given)
    assert noted.code == 0 and "dev: 1 labels count as wrong, not allowed there by 'forbid'" in noted.err
    # Posterior decoding obeys rules on any number of labels.
    many = tmp_path / "many.conll"
    many.write_text("".join(f"{letter}\t{letter}\n" for letter in "abcdefghijklmnopq") + "\n" + "a\ta\nb\tb\n")
    options = "--once", "all", "--sigma2", 1, "--window", "0..0", "--decode", "posterior", "-q"
    assert kcrf("train", many, "-o", model, *options).code == 0 and Model.load(model).decode == "posterior"
    found = last(kcrf("tag", "-m", model, stdin=b"a\nb\na\n"))
    assert max(_runs(found, label) for label in found) == 1
    unknown = kcrf("train", sample_data / "addresses.conll", "-o", model, "--once", "Town", "--sigma2", 1)
    assert unknown.code == 2 and "a rule names 'Town'" in unknown.err


def test_evaluate_obeys_rules(kcrf, stored, tmp_path):
    gold = tmp_path / "gold.conll"
    rows = zip(WORDS, FREE, strict=True)
    gold.write_text("".join(f"{word}\t{label}\n" for word, label in rows) + "\n" + "12\tNumber\n")
    free, once = (
        json.loads(kcrf("evaluate", "-m", stored, gold, *options, "--json").out) for options in ([], ["--once", "all"])
    )
    assert once["correct"] < free["correct"] == len(FREE) + 1
    tagged = kcrf("tag", "-m", stored, gold).out
    alone = kcrf("evaluate", "-", "--once", "City", stdin=tagged)
    assert alone.code == 2 and "rules are for labels of a model: give -m, too" in alone.err
    gold.write_text("12\tNumber\n")
    required = kcrf("evaluate", "-m", stored, gold, "--require", "City,Street")
    assert required.code == 0 and f"{gold}:1: no labelling obeys the rules" in required.err


def test_evaluate_obeys_rules_of_columns_and_of_training(kcrf, tmp_path):
    data, model, shards = tmp_path / "data.conll", tmp_path / "model.npz", tmp_path / "shards"
    data.write_text("a\t_\tx\nb\t_\ty\nc\t_\tz\nb\t_\ty\n\n" * 8)
    options = "--columns", "word,may,label", "--ignore", "may", "--window", "0..0", "--sigma2", "1", "-q"
    assert kcrf("train", data, "-o", model, *options, "--once", "y").code == 0
    data.write_text("a\tz\tz\nb\t_\ty\n\nb\t\ty\nc\t\tz\nb\t\ty\n\n")
    given = {"stored": [], "free": ["--no-rules"], "column": ["--allowed", "may"]}
    found = {name: json.loads(kcrf("evaluate", "-m", model, data, *more, "--json").out) for name, more in given.items()}
    assert {name: one["correct"] for name, one in found.items()} == {"stored": 3, "free": 4, "column": 4}
    assert kcrf("featurize", data, "--like", model, "-o", shards, "--shards", 2, "-q").code == 0
    assert json.loads(kcrf("evaluate", "-m", model, shards, "--json").out)["correct"] == 3
    wrong = kcrf("evaluate", "-m", model, shards, "--allowed", "may")
    assert wrong.code == 2 and "no column of allowed labels" in wrong.err


def test_rules_on_types_of_spans(kcrf, tmp_path):
    data, model = tmp_path / "spans.conll", tmp_path / "spans.npz"
    data.write_text("a\tB-X\nb\tI-X\nc\tO\nd\tB-Y\n\n" * 6)
    assert kcrf("train", data, "-o", model, "--scheme", "iob2", "--sigma2", 1, "--window", "0..0", "-q").code == 0
    text = b"a\nb\na\nb\nc\nd\n"
    assert last(kcrf("tag", "-m", model, stdin=text)) == ["B-X", "I-X", "B-X", "I-X", "O", "B-Y"]
    once = last(kcrf("tag", "-m", model, "--once", "X", stdin=text))
    assert once.count("B-X") == 1
    assert last(kcrf("tag", "-m", model, "--once", "all", stdin=text)).count("B-X") == 1
    assert last(kcrf("tag", "-m", model, "--at-most", "X=2", stdin=text)).count("B-X") == 2
    assert "B-Y" not in last(kcrf("tag", "-m", model, "--at-most", "Y=0", stdin=text))
    apart = last(kcrf("tag", "-m", model, "--forbid", "X>X", stdin=text))
    assert not any(b == "B-X" and a.endswith("X") for a, b in itertools.pairwise(apart)) and "I-X" in apart


def test_rules_in_python(stored):
    X = [[[0.0], [1.0], [0.0]], [[1.0]]]
    crf = KernelCRF(sigma2=10, rules={"once": "all"}, window=[0]).fit(
        [[[0.0], [1.0]], [[1.0], [0.0]], [[0.0], [0.0]]], [["a", "b"], ["b", "a"], ["a", "a"]]
    )
    obeying = crf.predict(X)
    assert [_runs(obeying[0], label) <= 1 for label in "ab"] == [True, True]
    assert crf.predict_nbest(X, 1)[0][0].labels == obeying[0]
    free = crf.set_params(rules={}).predict(X)
    assert free[0] == ["a", "b", "a"]
    assert crf.set_params(rules=None).predict(X) == obeying  # those of the model
    p = crf.predict_proba(X)[0]
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-6)
    with pytest.warns(UserWarning, match="no labelling obeys the rules"):
        assert crf.set_params(rules={"require": ["a", "b"]}).predict(X)[1] == ["b"]
    crf.set_params(rules={})
    assert crf.predict(X, [[["b"], None, ["a", "b"]], [["a"]]]) == [["b", "b", "a"], ["a"]]
    with pytest.raises(ValueError, match="other lengths"):
        crf.predict(X, [[None]])
    with pytest.raises(ValueError, match="dictionary"):
        crf.set_params(rules="once").predict(X)


@pytest.mark.parametrize("order", [1, 2])
def test_the_tagger_of_pycrfsuite_obeys_the_rules_of_a_model(kcrf, tmp_path, order):
    data, model = tmp_path / "data.crfsuite", str(tmp_path / "model.npz")
    data.write_text("A\tw=a\nB\tw=b\n\nB\tw=b\nC\tw=c\n\nA\tw=a\nB\tw=b\nA\tw=a\n\n" * 2)
    options = "--format", "crfsuite", "--sigma2", 1, "--order", order, "-q", "-o", model
    items = [["w=a"], ["w=b"], ["w=a"]]
    assert kcrf("train", data, *options).code == 0
    plain, once = Tagger(), Tagger()
    plain.open(model)
    assert plain.tag(items) == ["A", "B", "A"]
    assert kcrf("train", data, *options, "--once", "all", "--at-most", "C=2").code == 0
    once.open(model)
    labels = once.tag(items)
    plain.set(items)
    found = {}
    for numbers in np.ndindex(3, 3, 3):
        path = ["ABC"[number] for number in numbers]
        if all(_runs(path, label) <= limit for label, limit in (("A", 1), ("B", 1), ("C", 2))):
            found[tuple(path)] = plain.probability(path)
    assert tuple(labels) == max(found, key=found.get)
    assert once.probability(labels) == pytest.approx(found[tuple(labels)])  # of the model
    assert once.marginal("A", 0) == pytest.approx(plain.marginal("A", 0))
    # Items that are made by code which asks for labels, too.
    nested = ([f"w={word}"] for word in "aba" if once.tag(items) == labels)
    assert once.tag(nested) == labels
    for choice, expected in (("keep", ["A"]), ("fail", None)):
        rules = "--require", "A", "--require", "B", "--when-impossible", choice
        assert kcrf("train", data, *options, *rules).code == 0
        impossible = Tagger()
        impossible.open(model)
        if expected is None:
            with pytest.raises(ValueError, match="no labelling obeys"):
                impossible.tag([["w=a"]])
        else:
            with pytest.warns(UserWarning, match="no labelling obeys"):
                assert impossible.tag([["w=a"]]) == expected
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert impossible.tag([["w=a"], ["w=b"]]) == ["A", "B"] and impossible.tag([]) == []
