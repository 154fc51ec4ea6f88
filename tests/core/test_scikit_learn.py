"""KernelCRF in scikit-learn's hands: clones, searches, pipelines, and its own checks of estimators."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from test_estimator import number_data, word_data

import kcrf_core


@pytest.fixture(scope="module", autouse=True)
def scikit_learn():
    """Import it at the first of these tests: that would be half of the cost of collecting all tests."""
    if not hasattr(pytest.importorskip("sklearn.utils"), "Tags"):
        pytest.skip("needs scikit-learn 1.6 or later")


def test_clones_have_parameters_and_nothing_learnt(rng):
    from sklearn.base import clone
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    crf = kcrf_core.KernelCRF(kernel="rbf", sigma2=1, window=[-1, 0]).fit(*number_data(rng))
    again = clone(crf)
    assert again.get_params() == crf.get_params()
    check_is_fitted(crf)
    with pytest.raises(NotFittedError):
        check_is_fitted(again)
    with pytest.raises(NotFittedError):
        again.predict([])


def test_grid_search_finds_the_kernel(rng):
    from sklearn.model_selection import GridSearchCV

    X, y = number_data(rng, 60)
    grid = [{"kernel": ["linear"]}, {"kernel": ["poly"], "degree": np.arange(2, 4)}]
    search = GridSearchCV(kcrf_core.KernelCRF(sigma2=3.0), grid, cv=3).fit(X, y)
    assert search.best_params_["kernel"] == "poly"
    assert search.score(X, y) > 0.8
    assert search.predict(X)[0] == search.best_estimator_.predict_single(X[0])


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [True, False])
def test_grid_search_in_processes(rng, weighted):
    """With weights of sequences, or with a score of ours."""
    from sklearn.metrics import make_scorer
    from sklearn.model_selection import GridSearchCV

    X, y = word_data(rng)
    scorer = make_scorer(kcrf_core.metrics.flat_f1_score, average="weighted", labels=["N", "V"])
    scoring, weights = (None, {"sample_weight": np.ones(len(X))}) if weighted else (scorer, {})
    search = GridSearchCV(kcrf_core.KernelCRF(), {"c2": [0.1, 1.0]}, scoring=scoring, cv=2, n_jobs=2)
    assert search.fit(X, y, **weights).best_score_ > 0.9


def test_pipeline(rng):
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import FunctionTransformer

    X, y = number_data(rng)

    def named(X):
        return [[{f"x{d}": value for d, value in enumerate(row)} for row in sequence.tolist()] for sequence in X]

    steps = [("features", FunctionTransformer(named)), ("crf", kcrf_core.KernelCRF(sigma2=1, kernel="poly"))]
    pipeline = Pipeline(steps).fit(X, y, crf__sample_weight=np.ones(len(X)))
    direct = kcrf_core.KernelCRF(sigma2=1, kernel="poly").fit(named(X), y, sample_weight=np.ones(len(X)))
    assert pipeline.predict(X) == direct.predict(named(X))
    assert pipeline.set_params(crf__c2=0.5, crf__sigma2=None).fit(X, y).score(X, y) > 0.5


def test_cross_validation_of_sequences(rng):
    from sklearn.model_selection import cross_val_predict, cross_val_score

    X, y = word_data(rng)
    found = cross_val_predict(kcrf_core.KernelCRF(c2=0.1), X, y, cv=3)
    assert [len(labels) for labels in found] == [len(labels) for labels in y]
    assert kcrf_core.metrics.flat_accuracy_score(y, found) > 0.95
    weights = np.ones(len(X))
    scores = cross_val_score(kcrf_core.KernelCRF(c2=0.1), X, y, cv=3, params={"sample_weight": weights})
    assert scores.shape == (3,) and (scores > 0.9).all()


def sensors(rng):
    """Readings of 12 trials of three subjects, with all columns that a table has."""
    from test_frames import readings

    pytest.importorskip("pandas")
    return readings(rng).assign(subject=lambda frame: frame.subject.map("S{}".format))


def trials_of(frame):
    """Return the trials of a table as a list of frames, a list of labels and a list of subjects."""
    parts = [part for _, part in frame.groupby("trial")]
    subjects = [part.subject.iloc[0] for part in parts]
    return [part[["x", "moving", "steps"]] for part in parts], [part.act for part in parts], subjects


NAMED = {"sequence": "trial", "label": "act", "groups": "subject"}


def test_frames_in_folds_of_subjects(rng):
    """Folds of rows by subject score as folds of whole sequences do; labels and subjects are no inputs."""
    from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict, cross_val_score

    frame, folds = sensors(rng), GroupKFold(3)
    X, y, groups = trials_of(frame)
    plain = {"kernel": "linear", "sigma2": 3}
    expected = cross_val_score(kcrf_core.KernelCRF(**plain), X, y, groups=groups, cv=folds)
    crf = kcrf_core.KernelCRF(**plain, **NAMED)
    by_name = kcrf_core.KernelCRF(**plain, sequence="trial", groups="subject")  # the name of y is that of a column
    for one, labels in ((crf, None), (by_name, frame.act)):
        found = cross_val_score(one, frame, labels, groups=frame.subject, cv=folds)
        np.testing.assert_array_equal(found, expected)
    search = GridSearchCV(crf, {"sigma2": [3]}, cv=folds).fit(frame, frame.act, groups=frame.subject)
    assert search.best_score_ == pytest.approx(expected.mean()) and search.predict(frame).index.equals(frame.index)
    labels = cross_val_predict(crf, frame, frame.act, groups=frame.subject, cv=folds)
    assert np.mean(labels == frame.act) == pytest.approx(np.average(expected))


def test_probabilities_in_folds(rng):
    """Of rows of a frame, where one fold lacks a label, too, and of sequences, whose labels `params` passes on."""
    from sklearn.model_selection import GroupKFold, cross_val_predict

    frame, folds = sensors(rng), {"cv": GroupKFold(3), "method": "predict_proba"}
    plain = {"kernel": "linear", "sigma2": 3}
    crf = kcrf_core.KernelCRF(**plain, **NAMED)
    expected = np.empty((len(frame), 2))
    for subject in frame.subject.unique():
        scored = (frame.subject == subject).to_numpy()
        expected[scored] = crf.fit(frame[~scored]).predict_proba(frame[scored])
    for labels in (frame.act, None):
        found = cross_val_predict(crf, frame, labels, groups=frame.subject, **folds)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    rare = frame.act.where((frame.subject != "S1") | (frame.moving), "jump")
    with pytest.warns(RuntimeWarning, match=r"classes in training fold \(2\)"):
        found = cross_val_predict(crf, frame, rare, groups=frame.subject, **folds)
    assert found.shape == (len(frame), 3) and not found[frame.subject == "S1", 0].any()
    X, y, groups = trials_of(frame)
    lists = cross_val_predict(kcrf_core.KernelCRF(**plain), X, groups=groups, params={"y": y}, **folds)
    np.testing.assert_array_equal(np.concatenate(lists), expected)
    X, y = word_data(rng, 9)
    lists = cross_val_predict(kcrf_core.KernelCRF(c2=1), X, params={"y": y}, cv=3, method="predict_proba")
    assert [len(rows) for rows in lists] == [len(labels) for labels in y]


@pytest.mark.parametrize("index", ["rows", "times"])
def test_folds_that_cut_sequences_are_warned_of(rng, index):
    import pandas
    from sklearn.model_selection import GroupKFold, KFold, cross_val_score

    frame, crf = sensors(rng), kcrf_core.KernelCRF(kernel="linear", sigma2=3, **NAMED)
    if index == "times":
        frame.index = pandas.date_range("2024-05-01", periods=len(frame), freq="s")
    for folds in (KFold(5), KFold(2, shuffle=True, random_state=0)):
        with pytest.warns(UserWarning, match=r"continues? .*groups=frame\['trial'\]"):
            cross_val_score(crf, frame, frame.act, cv=folds)
    cross_val_score(crf, frame, frame.act, groups=frame.trial, cv=GroupKFold(3))
    crf.fit(frame).score(frame)  # rows of training are no continuation
    crf.fit(frame[:64]).predict(frame[64:].reset_index(drop=True))


def test_scaled_frames_in_pipelines(rng):
    from sklearn.compose import make_column_transformer
    from sklearn.model_selection import GroupKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    frame, groups = sensors(rng), {"cv": GroupKFold(3)}
    crf, groups["groups"] = kcrf_core.KernelCRF(kernel="linear", sigma2=3, **NAMED), frame.subject
    some = (StandardScaler(), ["x", "steps"])
    scaling = make_column_transformer(some, remainder="passthrough", verbose_feature_names_out=False)
    pipeline = make_pipeline(scaling, crf).set_output(transform="pandas")
    found = cross_val_score(pipeline, frame, frame.act, **groups)
    np.testing.assert_allclose(found, cross_val_score(crf, frame, frame.act, **groups), atol=0.05)
    numbers = frame.drop(columns=["subject", "act"])
    scaled = make_pipeline(StandardScaler(), kcrf_core.KernelCRF(sigma2=3, sequence="trial"))
    with pytest.raises(ValueError, match=r"sequence='trial' is a column.*set_output\(transform='pandas'\)"):
        scaled.fit(numbers, frame.act)
    scaled.set_output(transform="pandas").fit(numbers, frame.act)
    assert scaled.predict(numbers).index.equals(frame.index) and scaled[-1].feature_names_in_ == [
        "x",
        "moving",
        "steps",
    ]
    scaled.set_output(transform="default")
    with pytest.raises(ValueError, match=r"X is one array of rows.*set_output\(transform='pandas'\)"):
        scaled.predict(numbers)


def test_sequences_of_one_length_may_be_arrays(rng):
    from sklearn.model_selection import GridSearchCV

    X = rng.normal(size=(60, 5, 2))
    y = (X[:, :, 0] * X[:, :, 1] > 0).astype(int)
    search = GridSearchCV(kcrf_core.KernelCRF(sigma2=3.0), {"kernel": ["linear", "rbf"]}, cv=3).fit(X, y)
    assert search.best_params_ == {"kernel": "rbf"} and search.best_score_ > 0.8
    assert np.array(search.predict(X).__array__().tolist()).shape == y.shape


def test_its_warning_where_a_search_ends_early(rng):
    from sklearn.exceptions import ConvergenceWarning

    with pytest.warns(ConvergenceWarning, match="passes"):
        kcrf_core.KernelCRF(c2=1, max_iterations=2).fit(*word_data(rng))


# ----------------------------------------------------------------------------- scikit-learn's own checks


class KernelCRF(kcrf_core.KernelCRF):
    """Rows of a table as sequences of one position: what scikit-learn's checks know how to make.

    It has the name of its parent, which messages are checked for.
    """

    def __sklearn_tags__(self):
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        tags.input_tags.two_d_array = True
        return tags

    def fit(self, X, y, sample_weight=None):
        return super().fit(
            _rows(X), None if y is None else [[v] for v in np.asarray(y).ravel().tolist()], sample_weight
        )

    def predict(self, X):
        return np.array([labels[0] for labels in super().predict(_rows(X))])

    def predict_proba(self, X):
        return np.concatenate(super().predict_proba(_rows(X)))

    def score(self, X, y):
        return float(np.mean(np.asarray(y) == self.predict(X)))


def _rows(X):
    if hasattr(X, "toarray") or np.asarray(X).ndim != 2:
        return X
    return [row[None] for row in np.asarray(X)]


# Checks that fail, and why; docs/python.md has the same table.
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": "pivots are chosen among rows, whatever their weights",
    "check_supervised_y_2d": "a column of labels is a sequence of labels here, so there is no warning",
}


def outcomes(estimator):
    from sklearn.utils.estimator_checks import check_estimator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(estimator, on_fail=None, on_skip=None)
    return {status: {check["check_name"] for check in found if check["status"] == status}
            for status in ("passed", "failed", "skipped")}  # fmt: skip


@pytest.mark.slow
def test_checks_of_rows():
    """Each check passes or is on the list, and nothing is on the list that passes by now."""
    found = outcomes(KernelCRF(sigma2=1.0, scale="none", tolerance=1e-12))
    assert found["failed"] == set(EXPECTED_FAILURES)
    assert len(found["passed"]) > 40


@pytest.mark.slow
def test_a_linear_kernel_of_rows_takes_weights_for_repetitions():
    found = outcomes(KernelCRF(kernel="linear", sigma2=1.0, tolerance=1e-12))
    assert found["failed"] == set(EXPECTED_FAILURES) - {"check_sample_weight_equivalence_on_dense_data"}


def test_checks_of_the_estimator_itself():
    """It says that it takes no tables, so few of the checks can be tried; those pass."""
    found = outcomes(kcrf_core.KernelCRF())
    assert not found["failed"] and "check_estimator_cloneable" in found["passed"]


def test_the_list_stands_in_the_documentation(sample_data):
    text = (sample_data.parent / "docs" / "python.md").read_text(encoding="utf-8")
    for check, reason in EXPECTED_FAILURES.items():
        assert f"| `{check}` | {reason} |" in text
