"""KernelCRF on data frames: columns keep their names, and results the index of the rows."""

from __future__ import annotations

import datetime

import numpy as np
import pytest
from test_estimator import kcrf

from kcrf_core import KernelCRF, Model, read_corpus
from kcrf_core.corpora import Layout, NumberColumn

TRIALS = {"sequence": "trial", "label": "act"}


@pytest.fixture(scope="module", autouse=True)
def pandas():
    """Import the library at the first of these tests: it costs more than a second of each collection."""
    return pytest.importorskip("pandas")


def readings(rng, trials=12, length=8):
    """Sensors of trials, four for each subject; rows are numbered from 1000 on."""
    import pandas

    N = trials * length
    frame = pandas.DataFrame(
        {
            "trial": np.repeat(np.arange(trials), length),
            "subject": np.repeat(np.arange(trials) // 4, length),
            "x": rng.normal(size=N),
            "moving": rng.random(N) > 0.5,
            "steps": rng.integers(0, 50, N),
        },
        index=pandas.RangeIndex(1000, 1000 + N),
    )
    frame["act"] = np.where((frame.x > 0) == frame.moving, "walk", "rest")
    return frame


def arrays_of(frame):
    parts = [part for _, part in frame.groupby("trial")]
    return [part[["x", "moving", "steps"]].to_numpy(float) for part in parts], [part.act.tolist() for part in parts]


@pytest.mark.slow
def test_numbers_train_the_model_of_the_same_arrays(rng):
    frame = readings(rng)
    frame.loc[1003, "x"] = np.nan
    X, y = arrays_of(frame)
    crf, arrays = KernelCRF(sigma2=3).fit(frame, groups="subject", **TRIALS), KernelCRF(sigma2=3).fit(X, y)
    assert crf.feature_names_in_ == crf.attributes_ == ["x", "moving", "steps"]
    labels, probabilities = crf.predict(frame.drop(columns=["act", "subject"])), crf.predict_proba(frame)
    assert labels.name == "act" and labels.index.equals(frame.index)
    assert labels.tolist() == [label for own in arrays.predict(X) for label in own]
    assert list(probabilities.columns) == crf.classes_ and probabilities.index.equals(frame.index)
    np.testing.assert_array_equal(probabilities.to_numpy(), np.concatenate(arrays.predict_proba(X)))
    assert crf.predict_marginals(frame).equals(probabilities)
    assert crf.score(frame) == crf.score(frame.drop(columns="act"), frame.act) == arrays.score(X, y)
    assert len(crf.predict(frame.iloc[:0])) == 0
    assert "c0" not in str(crf.explain(frame[:8])[0][0]) and "x" in str(crf.explain(frame[:8])[0][0])


@pytest.mark.parametrize("names", [list(range(6)), [("sensor", number) for number in range(6)]])
def test_names_of_columns_that_are_no_text(rng, names, pandas):
    frame = readings(rng)
    text, other = frame.set_axis([str(name) for name in names], axis=1), frame.copy()
    other.columns = pandas.Index(names)
    sequence, label = names[:2], names[-1]
    crf = KernelCRF(sigma2=3).fit(other, sequence=sequence, label=label)
    same = KernelCRF(sigma2=3).fit(text, sequence=list(map(str, sequence)), label=str(label))
    assert crf.feature_names_in_ == [str(name) for name in names[2:-1]]
    assert crf.predict(other).tolist() == same.predict(text).tolist()


def test_lists_of_frames_and_labels_beside_them(rng, tmp_path):
    frame = readings(rng)
    crf = KernelCRF(sigma2=3).fit(frame.drop(columns="subject"), **TRIALS)
    parts = [part.drop(columns=["trial", "subject"]) for _, part in frame.groupby("trial")]
    listed = KernelCRF(sigma2=3).fit([*parts, parts[0][:0]], label="act")
    inputs = [part.drop(columns="act") for part in parts]
    beside = KernelCRF(sigma2=3).fit(inputs, [part.act for part in parts])
    expected = crf.predict(frame).tolist()
    for one in (listed, beside, crf):
        assert [label for own in one.predict(inputs) for label in own] == expected
    assert [
        label for own in listed.predict([part[["steps", "x", "moving"]] for part in inputs]) for label in own
    ] == expected
    crf.save(tmp_path / "model.npz")
    alone = frame[frame.trial == 0].drop(columns=["act", "subject"])
    alone.astype({"moving": int}).to_csv(tmp_path / "new.csv", index=False)
    tagged = kcrf("tag", "-m", tmp_path / "model.npz", tmp_path / "new.csv", "-q").split()
    assert [line.split(",")[-1] for line in tagged[1:]] == expected[: len(inputs[0])]
    again = KernelCRF.load(tmp_path / "model.npz")
    assert again.predict(frame).tolist() == expected and again.score(frame) == crf.score(frame)
    with pytest.raises(ValueError, match="sequence: there is no column 'trial'"):
        again.predict(inputs[0])


@pytest.mark.parametrize("chosen", [{"kernel": "linear"}, {}, {"size": 5, "gamma": 0.3}], ids=str)
def test_words_train_the_model_of_the_same_file(rng, tmp_path, pandas, chosen, monkeypatch):
    """Strings, categories and missing values, as `kcrf train` takes them from a file, with its default terms."""
    monkeypatch.setattr("kcrf_core.training.screening.alternatives", lambda *about: {})  # the estimator has no others
    frame = readings(rng).drop(columns=["subject", "moving"])
    N = len(frame)
    frame.insert(2, "word", rng.choice(["the", "cat", "Cat", "ran"], N))
    frame.insert(3, "room", pandas.Categorical(rng.choice(["hall", "yard"], N)))
    frame.insert(4, "floor", pandas.array(rng.integers(0, 3, N), dtype="Int64"))
    frame.loc[1004, "word"], frame.loc[1005, "floor"], frame.loc[1006, "x"] = None, pandas.NA, np.nan
    frame.to_csv(tmp_path / "data.csv", index=False)
    layout = ("--separator", ",", "--header", "--sequence", "trial")
    kcrf(
        "train",
        tmp_path / "data.csv",
        *layout,
        *(f"--{name}={value}" for name, value in chosen.items()),
        "--sigma2",
        3,
        "-o",
        tmp_path / "theirs.npz",
        "-q",
    )
    crf = KernelCRF(sigma2=3, **chosen).fit(frame, **TRIALS)
    theirs = Model.load(tmp_path / "theirs.npz")
    assert [one.name for one in crf.model_.terms] == (["node"] if "kernel" in chosen else ["linear", "node"])
    for mine, other in zip(crf.model_.terms, theirs.terms, strict=True):
        values = (each.alpha if each.has_pivots else each.weights for each in (mine, other))
        np.testing.assert_allclose(*values, rtol=1e-6, atol=1e-9)
    assert [one.config for one in crf.model_.encoding.features] == [one.config for one in theirs.encoding.features]
    corpus = read_corpus(tmp_path / "data.csv", layout=Layout(",", True, sequence="trial"))
    marginals = theirs.marginals(theirs.encoding.encode(corpus))
    np.testing.assert_allclose(crf.predict_proba(frame).to_numpy(), marginals, rtol=1e-4, atol=1e-5)
    assert KernelCRF.load(tmp_path / "theirs.npz").predict(frame).tolist() == crf.predict(frame).tolist()


def test_rows_that_arrive(rng):
    """Labels of a frame's rows, and of dictionaries of words, numbers, truth values and missing ones, are the same."""
    frame = readings(rng).drop(columns="subject")
    frame["word"] = rng.choice(["the", "cat", "Cat", "ran"], len(frame))
    frame.loc[1003, "word"], frame.loc[1005, "x"] = None, np.nan
    crf = KernelCRF(kernel="linear", sigma2=3, lag=1).fit(frame, **TRIALS)
    expected = crf.predict(frame[:8]).tolist()
    assert list(crf.predict_online(frame[:8])) == expected
    both = list(crf.predict_online(frame[:8].to_dict("records"), marginals=True))
    assert [label for label, _ in both] == expected
    assert list(crf.predict_online(frame[:8].convert_dtypes().to_dict("records"))) == expected  # has NA
    np.testing.assert_allclose([known["walk"] for _, known in both], crf.predict_proba(frame[:8]).walk, rtol=1e-9)


def test_whole_numbers_as_categories_have_one_name(rng):
    """A column of integers, of floats beside a missing one, truth values, and rows that arrive are the same values."""
    frame = readings(rng).drop(columns="subject")
    frame["room"] = rng.integers(1, 4, len(frame))
    frame["act"] = np.where((frame.room == 2) == frame.moving, "walk", "rest")
    features = [{"column": "room", "type": "categorical"}, {"column": "moving", "type": "categorical"}]
    pairs = {"conjunction": ["room", "moving"], "window": [0]}
    config = {"features": [*features, pairs], "training": {"sigma2": 10.0}}
    crf = KernelCRF(config=config).fit(frame[["trial", "room", "moving", "act"]], **TRIALS)
    assert crf.score(frame) == 1
    assert crf.predict(frame.astype({"room": float, "moving": int})).equals(crf.predict(frame))
    online = crf.predict_online(frame[:8][["room", "moving"]].to_dict("records"), lag=3)
    assert list(online) == crf.predict(frame)[:8].tolist()
    lacking = frame.assign(room=frame.room.astype(float).where(frame.index != 1003))
    changed = crf.predict_proba(lacking).walk != crf.predict_proba(frame).walk
    assert changed[1003] and not changed[frame.trial > 0].any()


def test_numbers_as_text():
    column = NumberColumn(np.array([1.0, -2.0, 0.5, np.nan, 2.0**53, 1e300]))
    assert list(column) == column[:] == ["1", "-2", "0.5", "", "9007199254740992", "1e+300"]
    assert [float(text or "nan") for text in column] == pytest.approx(column.numbers, rel=0, abs=0, nan_ok=True)


def test_rows_of_a_frame_one_by_one(rng):
    """A Series is taken by the names of its values, and the pairs of `iterrows` are refused with a remedy."""
    frame = readings(rng).drop(columns="subject")
    crf = KernelCRF(kernel="linear", sigma2=3, lag=0).fit(frame, **TRIALS)
    rows = frame[:8][["steps", "act", "moving", "trial", "x"]]  # another order, and columns that are no inputs
    assert list(crf.predict_online(row for _, row in rows.iterrows())) == crf.predict(frame[:8]).tolist()
    with pytest.raises(ValueError, match=r"position 0 is a pair .*iterrows.*give the DataFrame itself"):
        list(crf.predict_online(frame[:8].iterrows()))
    with pytest.raises(ValueError, match="position 0 has no value of the column 'steps'"):
        list(crf.predict_online(row for _, row in frame[["x", "moving", "act"]].iterrows()))


def test_columns_by_name_in_a_configuration(rng, pandas):
    frame = readings(rng)
    config = {"features": [{"column": "x", "window": [-1, 0]}, {"column": "moving"}], "training": {"sigma2": 3.0}}
    crf = KernelCRF(config=config).fit(frame, groups="subject", **TRIALS)
    assert crf.predict(frame[["trial", "x", "moving"]]).equals(crf.predict(frame))  # the others are not looked at
    numbered = frame.assign(room=pandas.Categorical(rng.choice([1, 2, 3], len(frame)))).drop(columns="subject")
    features = KernelCRF(sigma2=3).fit(numbered, **TRIALS).model_.encoding.features
    assert {one.config.name: one.config.type for one in features}["room"] == "categorical"


def test_labels_that_are_not_known_and_values_that_return(rng, pandas):
    frame = readings(rng).drop(columns="subject")
    frame["act"] = frame.act.where(frame.index % 7 != 0)
    with pytest.raises(ValueError, match="label: the column 'act' has no value in row 1001"):
        KernelCRF(sigma2=3).fit(frame, **TRIALS)
    crf = KernelCRF(sigma2=3, unobserved="?").fit(frame, **TRIALS)
    assert crf.classes_ == ["rest", "walk"] and crf.predict(frame).notna().all()
    again = pandas.concat([frame[:8], frame[8:16], frame[:8]]).dropna()
    with pytest.warns(UserWarning, match="1 value of trial came again after another one") as heard:
        KernelCRF(sigma2=3).fit(again, **TRIALS)
    assert heard[0].filename == __file__
    numbers = KernelCRF(sigma2=3).fit(frame.dropna(), sequence=["trial"], label="act", sample_weight="trial")
    assert numbers.score(frame.dropna(), sample_weight="trial") > 0.5
    found = KernelCRF(sigma2=3).audit(frame.dropna(), folds=2, **TRIALS)
    assert found.judged == len(frame.dropna())


@pytest.mark.parametrize("kind", ["category", "string[python]", "object", "index"])
@pytest.mark.parametrize("others", ["words", "numbers"])
def test_types_of_labels_sequences_and_words(rng, kind, others):
    """A frame trains the same model for every type of pandas, and as columns or levels of the index."""
    frame = readings(rng).drop(columns=["subject"])
    frame["trial"] = frame.trial.map("trial{}".format)
    if others == "words":
        frame["word"] = rng.choice(["the", "cat", "Cat", "ran"], len(frame))
    names = [name for name in ("trial", "word", "act") if name in frame]
    other = frame.set_index(["trial", "act"]) if kind == "index" else frame.astype(dict.fromkeys(names, kind))
    crf, same = (KernelCRF(sigma2=3).fit(one, **TRIALS) for one in (other, frame))
    assert crf.certificate_ == same.certificate_ and crf.classes_ == ["rest", "walk"]
    assert crf.predict(other).tolist() == same.predict(frame).tolist() and crf.score(other) == same.score(frame)


def test_categories_that_look_like_numbers(rng, pandas):
    """They are categories in every method, under any name, and with the same text beside missing values."""
    frame = readings(rng).drop(columns=["subject", "steps"])
    frame.insert(1, "room.no", pandas.Categorical(rng.choice([1, 2, 30], len(frame))))
    lacking = frame.copy()
    lacking.loc[1004, "room.no"] = np.nan
    for one in (frame, lacking):
        crf = KernelCRF(sigma2=3).fit(one, **TRIALS)
        room = crf.model_.encoding.features[0]
        assert (room.config.name, room.config.type) == ("room.no", "categorical")
        assert set(room.vocabulary.values) >= {"1", "2", "30"}
        assert crf.predict(frame).tolist() == crf.predict(frame.astype({"room.no": str})).tolist()
    shuffled = frame.assign(**{"room.no": frame["room.no"].cat.rename_categories({1: 2000, 2: 3, 30: 17})})
    first, second = (KernelCRF(sigma2=3).audit(one, folds=2, **TRIALS) for one in (frame, shuffled))
    np.testing.assert_array_equal(np.concatenate(first.doubts), np.concatenate(second.doubts))
    dated = frame.assign(day=pandas.Categorical(pandas.to_datetime(["2024-01-01"] * len(frame))))
    with pytest.raises(ValueError, match="the column 'day' holds times"):
        KernelCRF(sigma2=3).fit(dated, **TRIALS)


def test_columns_that_name_sequences_or_subjects_are_warned_of(rng):
    frame = readings(rng, trials=36).assign(row=range(288), x=0.5)
    with pytest.warns(UserWarning) as heard:
        KernelCRF(sigma2=3).fit(frame, label="act")
    assert {one.filename for one in heard} == {__file__}
    found = [str(one.message).split(" and is an input")[0] for one in heard]
    assert [text.split(",")[0] for text in found] == [
        "the column 'trial' only ever grows",
        "the column 'subject' has 9 values",
        "the column 'row' only ever grows",
    ]
    KernelCRF(sigma2=3).fit(frame.drop(columns="row"), groups="subject", **TRIALS)


def test_times_that_restart_in_each_sequence_are_warned_of(rng):
    frame = readings(rng).drop(columns="subject").assign(seconds=[0.5 * t for t in range(8)] * 12)
    frame["clock"] = [f"09:{trial % 3:02}:{t:02}" for trial in range(12) for t in range(8)]
    frame["started"] = [t > 3 for t in range(8)] * 12
    with pytest.warns(UserWarning) as heard:
        KernelCRF(kernel="linear", sigma2=3).fit(frame, **TRIALS)
    assert [str(one.message).split(",")[0] for one in heard] == [
        "the column 'seconds' only grows within sequences",
        "the column 'clock' holds times or dates",
    ]


def test_values_of_rows_for_groups_and_weights(rng):
    """As searches of scikit-learn slice them; a Series that has the name of a column stands for it."""
    frame = readings(rng)
    columns = KernelCRF(kernel="linear", **TRIALS).fit(frame, groups="subject", sample_weight="subject")
    rows = KernelCRF(kernel="linear", sequence="trial").fit(frame, frame.act, frame.subject, groups=frame.subject)
    assert rows.feature_names_in_ == columns.feature_names_in_ == ["x", "moving", "steps"]
    assert rows.certificate_ == columns.certificate_ and rows.predict(frame).name == "act"
    assert rows.score(frame, frame.act, frame.subject) == columns.score(frame, sample_weight="subject")
    with pytest.raises(ValueError, match="sample_weight: the value changes within a sequence, at row 1000"):
        rows.fit(frame, frame.act, np.arange(len(frame)))


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ({}, {"sequence": "trail"}, r"sequence: there is no column 'trail' \(did you mean 'trial'\?\)"),
        ({}, {"label": "activity"}, "label: there is no column 'activity'"),
        ({}, {"label": None}, "label: name the column of labels, or give y"),
        ({}, {"sequence": "subject", "groups": "trial"}, "groups: 'trial' changes within a sequence"),
        ({"at": ("Timestamp", "2024-01-01")}, {}, "the column 'at' holds times"),
        ({"at": datetime.date(2024, 1, 1)}, {}, "the column 'at' holds times"),
        ({"at": ("Timedelta", "1s")}, {}, "the column 'at' holds times"),
        ({"at": ("Period", "2024-01")}, {}, "the column 'at' holds times"),
        ({"at": 1j}, {}, "Complex data not supported: the column 'at'"),
        ({"x": np.inf}, {}, "the column 'x' contains infinity"),
        ({"trial": None}, {}, "sequence: the column 'trial' has no value in row 1000"),
    ],
)
def test_frames_that_cannot_be(rng, change, arguments, message, pandas):
    """A pair in place of a value is a type of pandas and what it is made from."""
    change = {name: getattr(pandas, of[0])(of[1]) if isinstance(of, tuple) else of for name, of in change.items()}
    with pytest.raises(ValueError, match=message):
        KernelCRF(sigma2=3).fit(readings(rng).assign(**change), **{**TRIALS, **arguments})


def test_other_frames_that_cannot_be(rng):
    frame = readings(rng).drop(columns="subject")
    crf = KernelCRF(sigma2=3).fit(frame, **TRIALS)
    with pytest.raises(ValueError, match="X: there is no column 'x'"):
        crf.predict(frame.drop(columns="x"))
    with pytest.raises(ValueError, match="the column 'x' holds values of type list"):
        crf.predict(frame.assign(x=[[1.0]] * len(frame)))
    with pytest.raises(ValueError, match="'low' in column"):
        crf.predict(frame.assign(x="low"))
    with pytest.raises(ValueError, match=r"X\[1\] has other columns than X\[0\]"):
        crf.predict([frame, frame.drop(columns="x")])
    with pytest.raises(ValueError, match="two columns 'x'"):
        crf.predict(frame[["trial", "x", "x"]])
    with pytest.raises(ValueError, match="label: there is no column '7'"):
        KernelCRF(sigma2=3).fit(frame, label=7)
    with pytest.raises(ValueError, match="96 rows in X, but 2 in y"):
        KernelCRF(sigma2=3).fit(frame, ["rest", "walk"], sequence="trial")
    with pytest.raises(ValueError, match="sequence='trial' is a column of a DataFrame, and X is none"):
        KernelCRF(sigma2=3).fit([[[0.0]]], [["a"]], sequence="trial")
    with pytest.raises(ValueError, match="no column but those"):
        KernelCRF(sigma2=3).fit(frame[["trial", "act"]], **TRIALS)
    with pytest.raises(ValueError, match="trained on dictionaries"):
        KernelCRF(sigma2=3).fit([[{"a": 1.0}, {"b": 1.0}]], [["x", "y"]]).predict(frame)
