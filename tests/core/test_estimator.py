"""KernelCRF without scikit-learn: what it takes, what it gives, and that it is the model of the commands."""

from __future__ import annotations

import json
import logging
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from kcrf_cli.main import main
from kcrf_core import ConfigError, FileFormatError, KernelCRF, Model, fit_encoding, metrics, parse_config, read_corpus
from kcrf_core.corpora import corpus_of
from kcrf_core.corpora.corpus import concatenate
from kcrf_core.estimator.estimator import distance_text


def number_data(rng, count=40, columns=2):
    """Sequences of numbers whose label says whether the first two have the same sign: no linear function does."""
    X = [rng.normal(size=(rng.integers(1, 8), columns)) for _ in range(count)]
    return X, [["same" if row[0] * row[1] > 0 else "other" for row in x] for x in X]


def word_data(rng, count=60):
    """Dictionaries; the label follows from the word, or from the label before it."""
    X, y = [], []
    for _ in range(count):
        words = [str(word) for word in rng.choice(["the", "cat", "dog", "saw", "a"], rng.integers(1, 7))]
        X.append([{"bias": 1.0, "word": word, "long": len(word) > 2, "size": len(word) / 3} for word in words])
        y.append([{"the": "D", "a": "D", "saw": "V"}.get(word, "N") for word in words])
    return X, y


def as_file(path, X, y):
    """The same attributes as CRFsuite's file has them."""
    lines = []
    for items, labels in zip(X, y, strict=True):
        for item, label in zip(items, labels, strict=True):
            fields = [f"{name}\\:{value}" if isinstance(value, str) else f"{name}:{float(value)!r}"
                      for name, value in item.items()]  # fmt: skip
            lines.append("\t".join([label, *fields]))
        lines.append("")
    path.write_text("\n".join(lines))
    return path


def flat(lists):
    return [label for labels in lists for label in labels]


def kcrf(*arguments):
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


# ----------------------------------------------------------------------------- the same as the commands


def test_dictionaries_train_the_model_of_the_same_attribute_file(rng, tmp_path):
    X, y = word_data(rng)
    data = as_file(tmp_path / "data.crfsuite", X, y)
    kcrf("train", data, "--c2", "0.1", "-o", tmp_path / "theirs.npz", "-q")
    crf = KernelCRF(algorithm="lbfgs", c1=0, c2=0.1).fit(X, y)
    crf.save(tmp_path / "ours.npz")
    assert (tmp_path / "ours.npz").read_bytes() == (tmp_path / "theirs.npz").read_bytes()
    assert crf.size_ == (tmp_path / "ours.npz").stat().st_size and crf.num_attributes_ == len(crf.attributes_)
    tagged = kcrf("tag", "-m", tmp_path / "ours.npz", data).split("\n")
    assert [line.split("\t")[1] for line in tagged if line] == flat(crf.predict(X))


def as_columns(path, X, y):
    """Two numbers and a label on each line."""
    rows = [
        [f"{a!r}\t{b!r}\t{label}" for (a, b), label in zip(numbers.tolist(), labels, strict=True)]
        for numbers, labels in zip(X, y, strict=True)
    ]
    path.write_text("\n\n".join("\n".join(block) for block in rows) + "\n")
    return path


def kernel_of(model):
    return parse_config(model.info["config"]).mapped_terms[0].kernel.type


def test_the_default_kernel_is_that_of_the_command(rng, tmp_path):
    """For numbers an rbf kernel, unless a setting is about weights of columns; for dictionaries a linear one."""
    X, y = number_data(rng)
    path = as_columns(tmp_path / "data.conll", X, y)
    kcrf("train", path, "--sigma2", 3, "-o", tmp_path / "theirs.npz", "-q")
    theirs, ours = Model.load(tmp_path / "theirs.npz"), KernelCRF(sigma2=3).fit(X, y)
    assert kernel_of(ours.model_) == kernel_of(theirs) == "rbf"
    dataset = theirs.encoding.encode(read_corpus(path))
    np.testing.assert_allclose(np.concatenate(ours.predict_proba(X)), theirs.marginals(dataset), rtol=1e-5, atol=1e-5)
    for more in ({"c1": 0.1}, {"all_possible_states": False}, {"map": "explicit"}):
        assert kernel_of(KernelCRF(sigma2=3, **more).fit(X, y).model_) == "linear"
    assert kernel_of(KernelCRF(config={"training": {"sigma2": 3.0}}).fit(X, y).model_) == "rbf"
    assert kernel_of(KernelCRF(sigma2=3).fit(*word_data(rng, 5)).model_) == "linear"


@pytest.mark.parametrize(
    ("parameters", "arguments", "what"),
    [
        ({}, {"groups": ["one", "two", "one", "three"] * 5}, "on 3 held-out groups in 3 folds"),
        ({}, {"folds": [0, 1] * 10}, "in 2 folds"),
        ({"block": 7}, {}, "held-out blocks with gaps of"),
    ],
)
def test_held_out_together(rng, caplog, parameters, arguments, what):
    X, y = number_data(rng, 19)
    X, y = [X[0][:0], *X], [[], *y]  # one without a position
    with caplog.at_level(logging.INFO, logger="kcrf_core"):
        KernelCRF(kernel="linear", tolerance=0.1, verbose=True, **parameters).fit(X, y, **arguments)
    assert what in caplog.text


def test_calibrated_probabilities(rng):
    X = [rng.normal(size=(6, 2)) for _ in range(24)]
    y = [["up" if a > 0 else "down" for a, _ in x] for x in X]
    crf = KernelCRF(kernel="linear", sigma2=0.1, calibrate=True).fit(X, y, groups=[number // 4 for number in range(24)])
    assert crf.calibration_.kept and crf.model_.calibration is not None
    assert crf.calibration_.log_loss < crf.calibration_.log_loss_before
    crf.set_params(calibrate=False).fit(X, y)
    assert crf.calibration_ is None and crf.model_.calibration is None


def test_labels_with_a_lag_are_those_of_tag(rng, tmp_path):
    X, y = number_data(rng, 20)
    crf = KernelCRF(sigma2=3, window=[-1, 0, 1]).fit(X, y)
    crf.save(tmp_path / "model.npz")
    path = as_columns(tmp_path / "data.conll", X, y)
    for lag in (0, 1, 3):
        crf.set_params(lag=lag)
        tagged = kcrf("tag", "-m", tmp_path / "model.npz", "--lag", lag, "-q", path)
        assert [line.split("\t")[-1] for line in tagged.split("\n") if line] == flat(crf.predict(X))
        assert [list(crf.predict_online(iter(x))) for x in X] == crf.predict(X)
        both = list(crf.predict_online(iter(X[0]), marginals=True))
        assert [label for label, _ in both] == crf.predict_single(X[0])
        rows = [[marginals[label] for label in crf.classes_] for _, marginals in both]
        np.testing.assert_allclose(rows, crf.predict_proba(X[:1])[0], rtol=1e-12)
    assert [len(labels) for labels in crf.predict([X[0][:0], X[0]])] == [0, len(X[0])] and crf.predict([]) == []
    late = crf.set_params(lag=9).predict_proba(X)  # no sequence is as long
    whole = crf.set_params(lag=None).predict_proba(X)
    np.testing.assert_allclose(np.concatenate(late), np.concatenate(whole), rtol=1e-9)
    readings = iter([[0.0, 1.0]] * 3)
    assert next(crf.predict_online(readings, lag=1)) in crf.classes_ and len(list(readings)) == 1
    with pytest.raises(ConfigError, match="label by label"):
        crf.set_params(lag=1, decode="viterbi").predict(X)


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ([[0.5, 1.0], {"c0": 0.5}], "position 1 has no value of the column 'c1'"),
        ([0.5], "position 0: a row of 2 values, or a dictionary of values by names of columns is needed, not 0.5"),
        ([[0.5, 1.0], [[0.5, 1.0]]], "position 1: a row of 2 values"),
        ([[0.5, 1.0], [0.5]], "position 1: X has 1 features, but KernelCRF is expecting 2"),
        ([[0.5, [1.0, 2.0]]], "position 0: a row of 2 values"),
        ([{"c0": 0.5, "c1": np.ones(2)}], "position 0: X.0.: its rows are of different lengths"),
        (enumerate([{"c0": 0.5, "c1": 1.0}]), "position 0 is a pair of a label and a row, as iterrows"),
    ],
)
def test_positions_that_cannot_be(rng, positions, message):
    crf = KernelCRF(kernel="linear", sigma2=3).fit(*number_data(rng, 5))
    assert list(crf.predict_online([{"c1": 1.0, "c0": 0.5}])) == list(crf.predict_online([[0.5, 1.0]]))
    with pytest.raises(ValueError, match=message):
        list(crf.predict_online(positions))
    words = KernelCRF(c2=1).fit(*word_data(rng, 5))
    with pytest.raises(TypeError, match="position 1: expected a dictionary of attributes"):
        list(words.predict_online([{"word": "the"}, 0.5]))


def test_options_of_train(rng, tmp_path):
    X, y = number_data(rng, 20)
    first = KernelCRF(sigma2=3).fit(X, y)
    first.save(tmp_path / "model.npz")
    for earlier in (first, first.model_, tmp_path / "model.npz"):
        again = KernelCRF().fit(X, y, init=earlier)  # with its sigma2, which is not searched for
        assert again.n_iter_ < first.n_iter_ and again.report_["sigma2"] == first.report_["sigma2"]
    hidden = [["?", *labels[1:]] for labels in y]
    partial = KernelCRF(sigma2=3, unobserved="?", cost={"same": 99}).fit(X, hidden)
    assert partial.classes_ == ["other", "same"]
    few = flat(partial.set_params(cost=None).predict(X)).count("same")
    assert flat(partial.set_params(cost={"same": 99}).predict(X)).count("same") > few
    scored = KernelCRF(sigma2=3).fit(X, y, X_dev=X[:3], y_dev=y[:3])
    assert scored.report_["dev"] and KernelCRF(sigma2=3, prune=1.0).fit(X, y).size_ < first.size_


@pytest.mark.parametrize(
    ("parameters", "arguments", "message"),
    [
        ({"certify": "first"}, {}, "certify='first': there are estimate and exact"),
        ({"prune": -1}, {}, "prune=-1: a number of at least 0"),
        ({"block": 0}, {}, "block must be a whole number of at least 1"),
        ({"memory": "1G"}, {}, "memory must be a whole number"),
        ({"cost": 0.1}, {}, "cost=0.1: a dictionary"),
        ({}, {"groups": ["a"]}, "groups must have a value for each of the 5 sequences, not 1"),
        ({"block": 3}, {"groups": range(5)}, "give one of them"),
    ],
)
def test_options_that_contradict(rng, parameters, arguments, message):
    with pytest.raises(ValueError, match=message):
        KernelCRF(sigma2=3, **parameters).fit(*number_data(rng, 5), **arguments)


def test_arrays_train_the_model_of_the_same_columns(rng, tmp_path):
    X, y = number_data(rng)
    path = as_columns(tmp_path / "data.conll", X, y)
    crf = KernelCRF(kernel="poly", sigma2=3, size=30, window=[-1, 0]).fit(X, y)
    crf.save(tmp_path / "model.npz")
    kcrf("train", path, "--kernel", "poly", "--sigma2", 3, "--size", 30, "--window", "-1..0", "-o",
         tmp_path / "other.npz", "-q")  # fmt: skip
    theirs = Model.load(tmp_path / "other.npz")
    dataset = theirs.encoding.encode(read_corpus(path))
    np.testing.assert_allclose(np.concatenate(crf.predict_proba(X)), theirs.marginals(dataset), rtol=1e-5, atol=1e-5)
    tagged = kcrf("tag", "-m", tmp_path / "model.npz", path)
    assert [line.split("\t")[-1] for line in tagged.split("\n") if line] == flat(crf.predict(X))


def test_models_of_the_command_can_be_loaded(sample_data, tmp_path):
    """Words and numbers in columns: positions are rows of values as the file has them."""
    path = tmp_path / "model.npz"
    kcrf("train", sample_data / "pitch_accent.conll", "--kernel", "rbf", "--size", 50, "--sigma2", 2, "-o", path, "-q")
    crf = KernelCRF.load(path)
    assert crf.config["training"]["sigma2"] == 2.0 and crf.config == Model.load(path).info["config"]
    text = (sample_data / "pitch_accent.conll").read_text().strip()
    X = [[line.split("\t")[:-1] for line in block.split("\n")] for block in text.split("\n\n")]
    assert flat(crf.predict(X)) == Model.load(path).tag_corpus(read_corpus(sample_data / "pitch_accent.conll"))


@pytest.mark.parametrize(
    "options", [{"c2": 0.5}, {"kernel": "rbf", "size": 20, "sigma2": 1}, {"order": 2, "sigma2": 1}]
)
@pytest.mark.parametrize("data", [number_data, word_data])
def test_saved_and_pickled_estimators_say_the_same(rng, tmp_path, options, data):
    X, y = data(rng)
    crf = KernelCRF(**options).fit(X, y)
    crf.save(tmp_path / "model.npz")
    for again in (KernelCRF.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(crf))):
        np.testing.assert_array_equal(np.concatenate(again.predict_proba(X)), np.concatenate(crf.predict_proba(X)))
        assert again.classes_ == crf.classes_
        assert again.certificate_ == crf.certificate_
        assert again.fit(X, y).certificate_ == crf.certificate_  # with the same parameters


def test_files_of_others_are_refused(tmp_path):
    (tmp_path / "model.npz").write_bytes(b"nothing")
    with pytest.raises(FileFormatError):
        KernelCRF.load(tmp_path / "model.npz")


# ----------------------------------------------------------------------------- predictions


def test_a_kernel_learns_what_is_not_linear(rng):
    X, y = number_data(rng, 150)
    test = number_data(rng, 50)
    assert KernelCRF(kernel="linear", sigma2=3).fit(X, y).score(*test) < 0.65
    assert KernelCRF(kernel="rbf", sigma2=3).fit(X, y).score(*test) > 0.85


def test_probabilities_of_all_kinds_agree(rng):
    X, y = word_data(rng)
    crf = KernelCRF(c2=1.0).fit(X, y)
    marginals, arrays = crf.predict_marginals(X), crf.predict_proba(X)
    for row, again in zip(marginals[3], crf.predict_marginals_single(X[3]), strict=True):
        assert again == pytest.approx(row, rel=1e-9)
    assert crf.predict_single(X[3]) == crf.predict(X)[3]
    for sequence, array in zip(marginals, arrays, strict=True):
        np.testing.assert_allclose(array.sum(axis=1), 1, rtol=1e-12)
        assert [list(row) for row in sequence] == [crf.classes_] * len(array)
        np.testing.assert_array_equal([list(row.values()) for row in sequence], array)


def test_empty_sequences_come_back_empty(rng):
    X, y = word_data(rng)
    crf = KernelCRF(c2=1.0).fit([[], *X, []], [[], *y, []])
    found = crf.predict([[], X[0], [], X[1]])
    assert found == [[], crf.predict_single(X[0]), [], crf.predict_single(X[1])]
    assert [len(part) for part in crf.predict_marginals([[], X[0], []])] == [0, len(X[0]), 0]
    assert crf.predict([]) == crf.predict_marginals([]) == []
    assert crf.fit(X, y).certificate_ == KernelCRF(c2=1.0).fit([[], *X, []], [[], *y, []]).certificate_


@pytest.mark.parametrize("labels", [[2, 10], [False, True], [np.int64(-1), np.int64(1)], [0.0, 1.0], ["x", "y"]])
def test_labels_come_back_as_they_were(rng, tmp_path, labels):
    X, y = number_data(rng)
    y = [[labels[label == "same"] for label in sequence] for sequence in y]
    crf = KernelCRF(kernel="rbf", sigma2=30, gamma=1.0).fit(X, y)
    crf.save(tmp_path / "model.npz")
    for estimator in (crf, KernelCRF.load(tmp_path / "model.npz")):
        assert estimator.classes_ == labels
        assert set(map(type, estimator.classes_)) == {type(getattr(labels[0], "item", lambda: labels[0])())}
        right = np.concatenate(estimator.predict_proba(X)).argmax(axis=1) == [labels.index(v) for s in y for v in s]
        assert estimator.score(X, y) > 0.9 and right.mean() > 0.9


def test_threads_change_nothing(rng):
    X, y = number_data(rng)
    one, two = (KernelCRF(kernel="rbf", sigma2=1, n_jobs=jobs).fit(X, y) for jobs in (1, -1))
    np.testing.assert_array_equal(np.concatenate(one.predict_proba(X)), np.concatenate(two.predict_proba(X)))
    assert one.predict(X) == two.predict(X)


def test_an_attribute_that_comes_twice_counts_with_the_sum(rng):
    crf = KernelCRF(c2=1.0).fit(*word_data(rng))
    once, twice = crf.predict_proba([[{"size": 1.0, "word:cat": 3.0}], [{"word": "cat", "word:cat": 2.0, "size": 1.0}]])
    np.testing.assert_allclose(once, twice, rtol=1e-12)


def test_positions_without_an_attribute(rng):
    crf = KernelCRF(c2=1.0).fit([[{}, {"a": 1.0}], [[], []]], [["x", "y"], ["x", "x"]])
    assert crf.predict([[{}], [{"unheard": "of"}]]) == [["x"], ["x"]]


def test_columns_of_numbers_can_be_cut_and_joined_like_those_of_a_file(rng):
    X, y = number_data(rng, 12)
    whole = corpus_of(X, "columns", y)
    config = parse_config({})
    encoding, dataset = fit_encoding(config, whole)
    again = concatenate([whole.subset(range(5)), whole.subset(range(5, 12))])
    np.testing.assert_array_equal(encoding.encode(again).real, dataset.real)
    assert [float(value) for value in whole.columns[0][:3]] == whole.columns[0].numbers[:3].tolist()


# ----------------------------------------------------------------------------- weights of sequences


def test_a_weight_is_as_good_as_repetition(rng):
    X, y = word_data(rng, 20)
    weights = rng.integers(0, 3, len(X))
    seen = [s for s, weight in enumerate(weights) for _ in range(weight)]
    weighted = KernelCRF(c2=1.0, tolerance=1e-8).fit(X, y, sample_weight=weights)
    repeated = KernelCRF(c2=1.0, tolerance=1e-8).fit([X[s] for s in seen], [y[s] for s in seen])
    assert weighted.certificate_.objective == pytest.approx(repeated.certificate_.objective, rel=1e-7)
    found, expected = (np.concatenate(crf.predict_proba(X)) for crf in (weighted, repeated))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)
    alike = KernelCRF(c2=1.0, tolerance=1e-8).fit(X, y)
    assert np.abs(np.concatenate(alike.predict_proba(X)) - found).max() > 1e-2


def test_weights_count_in_scores(rng):
    X, y = [[["a"]], [["a"], ["b"]]], [["x"], ["x", "y"]]
    crf = KernelCRF(c2=0.01).fit(X, y)
    wrong = [["y"], ["x", "y"]]
    assert crf.score(X, wrong) == pytest.approx(2 / 3)
    assert crf.score(X, wrong, sample_weight=[3, 1]) == pytest.approx(2 / 5)


@pytest.mark.parametrize("weights", [[1.0], [1, -1], [1, float("nan")], ["a", "b"], [0, 0], 3.0])
def test_bad_weights(weights):
    with pytest.raises(ValueError, match="sample_weight"):
        KernelCRF(c2=1).fit([[["a"]], [["b"]]], [["x"], ["y"]], sample_weight=weights)


# ----------------------------------------------------------------------------- what was learnt


def test_weights_by_name_give_the_scores(rng):
    X, y = word_data(rng)
    crf = KernelCRF(c2=0.5).fit(X, y)
    state, transitions = crf.state_features_, crf.transition_features_
    assert len(state) == len(crf.attributes_) * 3
    assert len(transitions) == 9
    assert set(crf.start_features_) == set(crf.end_features_) == set(crf.classes_)
    # Of two labellings, the one is more probable by the difference of their sums.
    names = {"bias": 1.0, "word:cat": 1.0, "long": 1.0, "size": 1.0}
    log = {
        label: sum(value * state[name, label] for name, value in names.items())
        + crf.start_features_[label]
        + crf.end_features_[label]
        for label in crf.classes_
    }
    p = crf.predict_marginals_single([{"bias": 1.0, "word": "cat", "long": True, "size": 1.0}])[0]
    total = sum(map(np.exp, log.values()))
    assert p == pytest.approx({label: np.exp(score) / total for label, score in log.items()}, rel=1e-9)


def test_weights_of_columns_and_of_two_labels(rng):
    X, y = number_data(rng)
    crf = KernelCRF(kernel="linear", sigma2=1, window="-1..1", scale="none").fit(X, y)
    assert crf.n_features_in_ == 2
    assert crf.attributes_ == ["c0[-1]", "c1[-1]", "c0[0]", "c1[0]", "c0[1]", "c1[1]"]
    one = crf.predict_proba([[[0.0, 0.0]]])[0], crf.predict_proba([[[2.0, -1.0]]])[0]
    change = np.diff(np.log(one), axis=2)[:, 0, 0]
    w = crf.state_features_
    gain = [2 * w["c0[0]", label] - w["c1[0]", label] for label in crf.classes_]
    assert change[1] - change[0] == pytest.approx(gain[1] - gain[0], rel=1e-6)


def test_only_linear_kernels_have_weights(rng):
    crf = KernelCRF(kernel="rbf", sigma2=1).fit(*number_data(rng))
    with pytest.raises(AttributeError, match="linear"):
        _ = crf.state_features_
    assert not hasattr(KernelCRF(c2=1).fit(*word_data(rng)), "n_features_in_")


def test_forbidden_transitions_have_no_score():
    X, y = [[["a"], ["b"], ["c"]], [["c"]]], [["B-X", "I-X", "O"], ["O"]]
    crf = KernelCRF(c2=1, scheme="iob2").fit(X, y)
    assert ("O", "I-X") not in crf.transition_features_
    assert "I-X" not in crf.start_features_


def test_certificate(rng):
    crf = KernelCRF(c2=1, tolerance=1e-4).fit(*word_data(rng))
    found = crf.certificate_
    assert found.reason == "certified" and 0 <= found.gap <= 1e-4
    assert found.gap == pytest.approx((found.objective - found.lower_bound) / found.lower_bound, rel=1e-6)
    with pytest.warns(UserWarning, match=r"stopped \(passes\) .* relative tolerance is 0.001; max_iterations") as told:
        early = KernelCRF(c2=1, max_iterations=2).fit(*word_data(rng))
    assert early.certificate_.gap > 1e-3 and early.n_iter_ <= 3  # the last in double precision
    assert told[0].filename == __file__


@pytest.mark.parametrize(
    ("gap", "said"),
    [
        (0.0123456, "within 0.0123 of the optimum, and the relative tolerance is 0.001"),
        (0.0010000421, "within 0.00100004 of the optimum, and the relative tolerance is 0.001"),
        (
            np.inf,
            "with no bound on the distance from the optimum, and the relative tolerance is 0.001",
        ),
    ],
)
def test_a_gap_has_the_digits_that_tell_it_from_the_tolerance(gap, said):
    assert distance_text(gap, 1e-3) == said


def test_dev_data_is_scored(rng):
    X, y = word_data(rng)
    crf = KernelCRF(c2=1).fit(X[10:], y[10:], X_dev=X[:10], y_dev=y[:10])
    assert "dev" in crf.report_
    assert crf.certificate_ == KernelCRF(c2=1).fit(X[10:], y[10:]).certificate_
    with pytest.raises(ValueError, match="go together"):
        crf.fit(X, y, X_dev=X)
    with pytest.raises(ValueError, match="X_dev has no position with a known label"):
        crf.fit(X, y, X_dev=X[:3], y_dev=[["Z"] * len(x) for x in X[:3]])


# ----------------------------------------------------------------------------- parameters


def test_parameters_are_kept_as_they_are():
    given = {"kernel": "poly", "degree": np.int64(3), "window": range(-1, 2), "c2": 0.5}
    crf = KernelCRF(**given)
    assert all(crf.get_params()[name] is value for name, value in given.items())
    assert KernelCRF(**crf.get_params()).get_params() == crf.get_params()
    assert crf.set_params(kernel="rbf", gamma=2.0) is crf and (crf.kernel, crf.gamma) == ("rbf", 2.0)
    assert repr(KernelCRF(c2=0.1, kernel="rbf")) == "KernelCRF(kernel='rbf', c2=0.1)"
    with pytest.raises(ValueError, match="did you mean 'kernel'"):
        crf.set_params(kernell="rbf")
    with pytest.raises(TypeError):
        KernelCRF("linear")


def test_c2_is_another_name_for_sigma2(rng):
    X, y = word_data(rng)
    assert KernelCRF(c2=0.25).fit(X, y).certificate_ == KernelCRF(sigma2=2.0).fit(X, y).certificate_


def test_numbers_of_numpy_are_numbers(rng):
    X, y = number_data(rng)
    crf = KernelCRF(kernel="poly", degree=np.int64(2), sigma2=np.float32(2), size=np.int64(10), window=np.int64(0))
    assert crf.fit(X, y).certificate_ == KernelCRF(kernel="poly", sigma2=2, size=10).fit(X, y).certificate_


def test_seeds(rng):
    X, y = number_data(rng, 60)

    def probabilities(state):
        crf = KernelCRF(kernel="rbf", size=5, sigma2=1, random_state=state).fit(X, y)
        return np.concatenate(crf.predict_proba(X))

    np.testing.assert_array_equal(probabilities(None), probabilities(0))
    np.testing.assert_array_equal(*(probabilities(np.random.RandomState(3)) for _ in range(2)))
    assert np.abs(probabilities(0) - probabilities(1)).max() > 1e-3
    assert np.abs(probabilities(0) - probabilities(np.random.default_rng(1))).max() > 1e-3


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"algorithm": "pa"}, "algorithm='pa'"),
        ({"c1": -0.1}, "'c1' must be at least 0"),
        ({"c2": 0.1, "sigma2": 1.0}, "set the same value"),
        ({"c2": 0}, "give a .c1. above 0"),
        ({"c2": -1.0}, "c2 must be"),
        ({"kernel": "sigmoid"}, "linear, poly, rbf"),
        ({"sigma2": -1}, "sigma2"),
        ({"solver": "adam"}, "solver"),
        ({"tolerance": 0}, "tolerance"),
        ({"order": 3}, "order"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"n_jobs": 1.5}, "n_jobs"),
        ({"random_state": "x"}, "seed"),
        ({"max_iterations": 0}, "max_passes"),
        ({"window": [0, 1]}, "window is for arrays"),
        ({"kernel": "poly", "degree": 0}, "degree"),
        ({"scheme": "bio"}, "scheme"),
    ],
)
def test_bad_parameters_are_told_when_fitting(parameters, message):
    crf = KernelCRF(**parameters)
    with pytest.raises(ConfigError, match=message):
        crf.fit([[["a"], ["b"]]], [["x", "y"]])


def test_what_has_no_effect_is_told():
    with pytest.warns(UserWarning, match="no effect") as told:
        KernelCRF(c2=1, all_possible_transitions=False).fit([[["a"], ["b"]]], [["x", "y"]])
    assert told[0].filename == __file__


def test_what_is_so_anyway_is_not_told():
    """Warnings are errors in these tests."""
    parameters = {"all_possible_transitions": True, "all_possible_states": True, "c1": 0.0}
    KernelCRF(algorithm="lbfgs", c2=1, max_iterations=100, **parameters).fit([[["a"]]], [["x"]])


PORTED = {
    "min_freq": "use 'min_count'",
    "epsilon": "training stops when .* 'tolerance'",
    "delta": "'tolerance'",
    "model_filename": r"save\(path\) after fit",
    "calibration_eta": "'lbfgs' is the only algorithm",
}


@pytest.mark.parametrize("name, message", PORTED.items())
def test_parameters_of_sklearn_crfsuite_say_what_to_use(name, message):
    with pytest.raises(TypeError, match=f"no parameter '{name}' of sklearn-crfsuite: .*{message}"):
        KernelCRF(c2=0.1, **{name: 1})
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        KernelCRF(nonsense=1)


def test_development_data_by_position_is_refused_with_the_way(rng):
    X, y = word_data(rng, 5)
    with pytest.raises(TypeError, match=r"X, y and sample_weight by position, and others by name: X_dev="):
        KernelCRF(c2=1).fit(X, y, X, y)
    for dev in (X, [[{"a": 1}]] * 5):  # of different and of equal lengths
        with pytest.raises(ValueError, match="X_dev and y_dev are given by name"):
            KernelCRF(c2=1).fit(X, y, dev)
    assert KernelCRF(c2=1).fit(X, y, X_dev=X, y_dev=y).report_["dev"]


def test_scorers_of_sklearn_crfsuite_say_what_to_use():
    with pytest.raises(ImportError, match="make_scorer"):
        from kcrf_core import scorers  # noqa: F401


def test_states_that_are_seen(rng, tmp_path):
    """sklearn-crfsuite's all_possible_states=False is --observed-features; it goes through a file, too."""
    X, y = word_data(rng)
    every, seen = (KernelCRF(c2=1, all_possible_states=value).fit(X, y) for value in (None, False))
    told = seen.state_features_
    assert len(told) < len(every.state_features_)
    assert ("word:the", "D") in told and ("word:the", "N") not in told
    seen.save(tmp_path / "m.npz")
    again = KernelCRF.load(tmp_path / "m.npz")
    assert again.predict(X) == seen.predict(X)
    assert again.fit(X, y).state_features_ == seen.state_features_


def test_attributes_of_value_zero_are_seen():
    """A label has a weight for an attribute that it has only with the value 0, as in CRFsuite."""
    X, y = [[{"up": True, "b": 1}, {"up": False, "c": 1}]] * 5, [["X", "Y"]] * 5
    found = KernelCRF(c2=0.1, all_possible_states=False, tolerance=1e-6).fit(X, y)
    weights = found.state_features_
    assert weights.keys() == {("up", "X"), ("up", "Y"), ("b", "X"), ("c", "Y")}
    assert weights["up", "Y"] == pytest.approx(-weights["up", "X"], rel=1e-2)  # p(X) + p(Y) = 1
    without = [[{"up": True, "b": 1}, {"c": 1}]] * 5
    assert ("up", "Y") not in KernelCRF(c2=0.1, all_possible_states=False).fit(without, y).state_features_


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_attributes_of_value_zero_add_nothing_to_a_kernel(rng, kernel):
    """Inputs are the same vectors with them and without: scores, kernel values and maps do not change."""
    X, y = word_data(rng, 20)
    names = [[{"word": item["word"], "last": item["word"][-1]} for item in sequence] for sequence in X]
    zeros = [[item | {item["last"]: 0.0, "upper": False} for item in sequence] for sequence in names]
    models = [KernelCRF(kernel=kernel, gamma=0.5, sigma2=1, tolerance=1e-6).fit(items, y) for items in (names, zeros)]
    terms = [model.model_.terms[0] for model in models]
    assert terms[0].described() == terms[1].described()
    values = [model.predict_proba(items) for model, items in zip(models, (names, zeros), strict=True)]
    np.testing.assert_allclose(*map(np.concatenate, values), rtol=1e-2, atol=1e-3)


def test_verbose_goes_to_the_logger(rng, caplog, capsys):
    X, y = word_data(rng, 10)
    with caplog.at_level(logging.INFO, logger="kcrf_core"):
        KernelCRF(c2=1, verbose=2).fit(X, y)
    assert any("linear kernel" in text for text in caplog.messages)
    assert any(text.startswith("pass ") for text in caplog.messages)
    assert capsys.readouterr().out == ""


@pytest.mark.slow
def test_verbose_goes_to_stderr_where_nobody_listens():
    code = "from kcrf_core import KernelCRF; KernelCRF(c2=1, verbose=True).fit([[['a'], ['b']]], [['x', 'y']])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "linear kernel" in done.stderr and done.stdout == ""


# ----------------------------------------------------------------------------- data that cannot be meant


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((4, 2)), [0, 1, 0, 1], "X is one array of rows"),
        (list(np.zeros((4, 2))), [0, 1, 0, 1], "list of labels"),
        (list(np.zeros((4, 2))), [[0], [1], [0], [1]], "2 positions, but"),
        ([np.zeros(2)], [[0, 1]], "1 dimension, expected 2"),
        ([[{"a": 1.0}]], [["x", "y"]], "1 position, but"),
        ([[{"a": 1.0}]], [["x"], ["y"]], "1 sequence in X, but 2 in y"),
        ([{"a": 1.0}], [["x"]], r"one sequence alone is \[X\]"),
        ([[{"a": 1.0}]], None, "y"),
        ([[{"a": 1.0}]], [[1.5]], "Unknown label type"),
        ([[{"a": 1.0}, {"a": 1.0}]], [["x", 1]], "one type"),
        ([[{"a": 1.0}]], [[""]], "empty label"),
        ([np.array([[np.nan]])], [["x"]], "no numbers, only missing ones"),
        ([np.array([[np.inf]])], [["x"]], "infinity"),
        ([np.zeros((1, 2)), np.zeros((1, 3))], [["x"], ["y"]], "X has 3 features"),
        ([[[1.0, 2.0], [1.0]]], [["x", "y"]], "different lengths"),
        ([np.zeros((1, 0))], [["x"]], "0 feature"),
        ([np.full((1, 1), 1j)], [["x"]], "Complex"),
        ([], [], "no position"),
        ([[]], [[]], "no position"),
    ],
)  # fmt: skip
def test_bad_data(X, y, message):
    with pytest.raises(ValueError, match=message):
        KernelCRF(c2=1).fit(X, y)


@pytest.mark.parametrize("missing", ["mean", "indicator"])
def test_nan_is_a_missing_value(rng, tmp_path, missing):
    """It becomes the mean of what is there, and an indicator says where; models and clones keep that."""
    X = [rng.normal(size=(6, 2)) for _ in range(20)]
    y = [["ab"[int(row[0] > 0)] for row in x] for x in X]
    gaps = [np.where(rng.random(x.shape) < 0.2, np.nan, x) for x in X]
    mean = np.nanmean(np.concatenate(gaps), axis=0)
    filled = [np.where(np.isnan(x), mean, x) for x in gaps]
    flagged = [np.hstack([x, np.isnan(gap)]) for x, gap in zip(filled, gaps, strict=True)]
    crf = KernelCRF(sigma2=1.0, missing=missing, scale="none").fit(gaps, y)
    same = KernelCRF(sigma2=1.0, scale="none").fit(filled if missing == "mean" else flagged, y)
    expected = same.predict_marginals(filled if missing == "mean" else flagged)
    for one, other in zip(crf.predict_marginals(gaps), expected, strict=True):
        for found, wanted in zip(one, other, strict=True):
            assert found == pytest.approx(wanted, rel=1e-2, abs=1e-3)
    crf.save(tmp_path / "model.npz")
    assert KernelCRF.load(tmp_path / "model.npz").predict(gaps) == crf.predict(gaps)


@pytest.mark.parametrize("X", [5, "text", {"a": 1}, [[["a", 1.0]]], [np.array([["a", "b"]])]])
def test_data_of_a_wrong_type(X):
    with pytest.raises(TypeError, match="X"):
        KernelCRF(c2=1).fit(X, [["x"]])


def test_arrays_and_dictionaries_are_not_mixed(rng):
    (X, y), (words, labels) = number_data(rng), word_data(rng)
    with pytest.raises(ValueError, match="trained on arrays"):
        KernelCRF(sigma2=1).fit(X, y).predict(words)
    with pytest.raises(TypeError, match="dictionary of attributes"):
        KernelCRF(c2=1).fit(words, labels).predict(X)
    with pytest.raises(ValueError, match="expecting 2 features"):
        KernelCRF(sigma2=1).fit(X, y).predict([np.zeros((3, 5))])


def test_asking_before_fitting():
    for ask in (lambda crf: crf.predict([]), lambda crf: crf.classes_, lambda crf: crf.save("nowhere.npz")):
        with pytest.raises((ValueError, AttributeError), match="not fitted yet"):
            ask(KernelCRF())


def test_no_scikit_learn_is_imported():
    code = (
        "import sys; sys.modules['sklearn'] = None; from kcrf_core import KernelCRF; import pickle\n"
        "crf = KernelCRF(sigma2=1).fit([[[0.0], [1.0]]], [['a', 'b']])\n"
        "pickle.loads(pickle.dumps(crf)).predict_marginals([[[0.5]]])\n"
        "KernelCRF(**crf.get_params())"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent)


def test_labels_that_no_line_could_hold():
    with pytest.raises(ValueError, match="no TABs"):
        KernelCRF(sigma2=1.0).fit([[{"a": "b"}]], [["x\ty"]])


def test_held_out_data_without_positions():
    with pytest.raises(ValueError, match="no position with a known label"):
        KernelCRF(sigma2=1.0).fit([[{"a": "b"}]], [["x"]], X_dev=[], y_dev=[])


# ----------------------------------------------------------------------------- decoders and metrics


def test_scores_by_the_metric(rng):
    labels = ["B-X", "I-X", "O"]
    y = [rng.choice(labels, size=6).tolist() for _ in range(30)]
    X = [[[float(labels.index(label)) + rng.normal()] for label in sequence] for sequence in y]
    crf = KernelCRF(sigma2=1).fit(X, y)
    found = metrics.evaluate_sequences(y, crf.predict(X))
    assert crf.score(X, y) == pytest.approx(found.accuracy, rel=1e-12)
    assert crf.set_params(metric="accuracy").score(X, y) == pytest.approx(found.accuracy, rel=1e-12)
    assert crf.set_params(metric="f1").score(X, y) == pytest.approx(found.spans.total.f1, rel=1e-12)
    assert crf.set_params(metric="macro-f1").score(X, y) == pytest.approx(found.spans.macro_f1, rel=1e-12)
    loss = np.mean([np.log(p[label]) for x, labels in zip(X, y, strict=True) for p, label in
                    zip(crf.predict_marginals_single(x), labels, strict=True)])  # fmt: skip
    assert crf.set_params(metric="log-loss").score(X, y) == pytest.approx(loss, rel=1e-9)
    with pytest.raises(ValueError, match="f1, macro-f1, accuracy, log-loss"):
        crf.set_params(metric="f2").score(X, y)
    with pytest.raises(ValueError, match="not spans"):
        KernelCRF(sigma2=1, metric="f1").fit(X, [["x" if one == "O" else "y" for one in each] for each in y])


def test_labels_that_are_not_known_are_wrong(rng):
    crf = KernelCRF(c2=0.01).fit([[["a"], ["b"]]], [["x", "y"]])
    assert crf.score([[["a"], ["b"]]], [["x", "new"]]) == 0.5
    assert crf.set_params(metric="macro-f1").score([[["a"], ["b"]]], [["x", "new"]]) == pytest.approx(1 / 3, rel=1e-12)


def test_decoder_of_the_model_unless_a_parameter_says_otherwise(rng, tmp_path):
    gait = [np.repeat(rng.choice([0, 1], p=[0.6, 0.4], size=20), 2).tolist() for _ in range(30)]
    X = [[[0.6 * label + rng.normal()] for label in labels] for labels in gait]
    path, posterior = (KernelCRF(sigma2=1, decode=name).fit(X, gait) for name in ("viterbi", "posterior"))
    assert (path.model_.decode, posterior.model_.decode) == ("viterbi", "posterior")
    assert path.predict(X) != posterior.predict(X)
    assert path.set_params(decode="posterior").predict(X) == posterior.predict(X)  # without another fit
    posterior.save(tmp_path / "model.npz")
    loaded = KernelCRF.load(tmp_path / "model.npz")
    assert loaded.predict(X) == posterior.predict(X)
    assert loaded.set_params(decode="viterbi").predict(X) == path.set_params(decode="viterbi").predict(X)
    by_dev = KernelCRF(sigma2=1).fit(X, gait, X_dev=X, y_dev=gait)
    assert by_dev.model_.decode == "posterior" and by_dev.report_["decoder"]["data"] == "dev"
    assert KernelCRF(sigma2=1).fit(X, gait).model_.decode == "posterior"
    assert KernelCRF(sigma2=1, metric="macro-f1").fit(X, gait).model_.decode == "viterbi"
    with pytest.raises(ValueError, match="viterbi finds the most probable labelling as a whole"):
        KernelCRF(sigma2=1, decode="viterbi", cost={1: 3}).fit(X, gait)


# ----------------------------------------------------------------------------- what `tag` and `audit` tell


def test_labellings_explanations_and_novelty_are_those_of_tag(rng, tmp_path):
    X, y = word_data(rng)
    data = as_file(tmp_path / "data.crfsuite", X, y)
    crf = KernelCRF(kernel="rbf", size=10, sigma2=3).fit(X, y)
    crf.save(tmp_path / "m.npz")
    for option, found in (("--nbest", crf.predict_nbest(X, n=3)), ("--explain", crf.explain(X, n=3))):
        lines = kcrf("tag", "-m", tmp_path / "m.npz", data, "--json-lines", option, 3).splitlines()
        assert len(lines) == len(found) == len(X)
        for line, ours in zip(map(json.loads, lines), found, strict=True):
            if option == "--nbest":
                assert [each["labels"] for each in line["nbest"]] == [each.labels for each in ours]
                theirs = [each["probability"] for each in line["nbest"]]
                np.testing.assert_allclose([each.probability for each in ours], theirs, rtol=1e-5)
            else:
                for theirs, one in zip(line["explanation"], ours, strict=True):
                    assert (theirs["label"], theirs["against"]) == (one.label, one.against)
                    parts = [(part["term"], part["what"]) for part in theirs["contributions"]]
                    assert parts == [(part.term, part.what) for part in one.contributions]
                    assert theirs["difference"] == pytest.approx(one.difference, abs=1e-6)
                    assert [like["line"] for like in theirs["similar"]] == [like.line for like in one.similar]
    lines = kcrf("tag", "-m", tmp_path / "m.npz", data, "--json-lines", "--novelty").splitlines()
    for line, ours in zip(lines, crf.novelty(X), strict=True):
        np.testing.assert_allclose(json.loads(line)["novelty"], ours, rtol=0, atol=1e-6)


def test_what_is_told_of_sequences_without_positions(rng):
    X, y = number_data(rng, 12)
    y = [[int(label == "same") for label in labels] for labels in y]
    crf = KernelCRF(kernel="rbf", size=10, sigma2=1).fit(X, y)
    there = crf.predict_nbest([[], X[0], []], n=2)
    assert [len(best) for best in there] == [1, 2, 1] and there[0][0] == ([], 1.0)
    assert there[1][0].labels == crf.set_params(decode="viterbi").predict([X[0]])[0]
    (nothing, reasons), (none, new) = crf.explain([[], X[0]]), crf.novelty([[], X[0]])
    assert nothing == [] and {one.label for one in reasons} <= {0, 1} and len(none) == 0 and len(new) == len(X[0])
    assert crf.novelty([]) == crf.explain([]) == crf.predict_nbest([]) == []
    for n in (0, 1.5, True):
        with pytest.raises(ValueError, match="n must be a whole number"):
            crf.explain(X, n=n)
    with pytest.raises(ConfigError, match="no pivots"):
        KernelCRF(kernel="linear", sigma2=1).fit(X, y).novelty(X)


def test_costs_count_where_labels_are_explained(rng):
    X, y = number_data(rng, 20)
    crf = KernelCRF(sigma2=1, cost={"same": 50}).fit(X, y)
    assert [[one.label for one in reasons] for reasons in crf.explain(X)] == crf.predict(X)


def exchanged(rng, X, y, count=6):
    """A few labels of other positions, and where they are."""
    y = [list(labels) for labels in y]
    places = [(s, t) for s, labels in enumerate(y) for t in range(len(labels))]
    chosen = [places[number] for number in rng.choice(len(places), count, replace=False)]
    for s, t in chosen:
        y[s][t] = {"D": "N", "N": "V", "V": "D"}[y[s][t]]
    return y, set(chosen)


def test_an_audit_is_that_of_the_command(rng, tmp_path):
    X, y = word_data(rng)
    y, wrong = exchanged(rng, X, y)
    data = as_file(tmp_path / "data.crfsuite", X, y)
    theirs = json.loads(kcrf("audit", data, "--c2", "0.1", "--folds", 3, "--json", "-q"))
    found = KernelCRF(c2=0.1).audit(X, y, folds=3)
    assert theirs["doubtful"] == found.doubtful and theirs["places"] == found.places
    worst = found.positions()
    first = worst[: len(theirs["positions"])]
    assert [one.doubt for one in first] == [one["doubt"] for one in theirs["positions"]]
    assert [(one.sequence + 1, one.gold, one.suggested) for one in first] == [
        (one["sequence"], one["gold"], one["suggested"]) for one in theirs["positions"]
    ]
    assert {(one.sequence, one.position) for one in worst[: len(wrong)]} == wrong
    assert all(y[one.sequence][one.position] == one.gold for one in worst)
    assert found.doubts[worst[0].sequence][worst[0].position] == worst[0].doubt
    crf = KernelCRF(c2=0.1).fit(X, y)
    kcrf("train", data, "--c2", "0.1", "-o", tmp_path / "m.npz", "-q")
    theirs = json.loads(kcrf("audit", data, "-m", tmp_path / "m.npz", "--json", "-q", "--most", 9))
    found = crf.audit(X, y, folds=None)
    assert [one.context for one in found.positions(9)] == [one["context"] for one in theirs["positions"]]


def test_an_audit_of_spans_and_of_sequences_without_positions(rng):
    """Folds that are given, labels of spans, arrays, and empty sequences among them."""
    X = [np.zeros((0, 1)) if s % 5 == 4 else np.array([[0.0], [3.0], [1.0]]) for s in range(40)]
    y = [["O", "B-X", "I-X"][: len(x)] for x in X]
    y[6] = ["O", "O", "B-X"]
    found = KernelCRF(sigma2=1, window=[0]).audit(X, y, folds=np.arange(40) % 2)
    assert {(one.sequence, one.position) for one in found.positions(2)} == {(6, 1), (6, 2)}
    assert len(found.doubts) == 40 and len(found.doubts[4]) == 0


@pytest.mark.parametrize(
    "more, message",
    [
        ({"folds": 1}, "at least 2 are needed"),
        ({"folds": [0, 1]}, "a value for each of the 60 sequences"),
        ({"folds": [3] * 60}, "all sequences are in one fold"),
        ({"folds": None}, "not fitted yet"),
    ],
)
def test_audits_that_cannot_be(rng, more, message):
    with pytest.raises(ValueError, match=message):
        KernelCRF(c2=0.1).audit(*word_data(rng), **more)
