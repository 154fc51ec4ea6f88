"""Tables on the command line, with models that were trained on data frames."""

from __future__ import annotations

import json

import numpy as np
import pytest

from kcrf_core import KernelCRF

TRIALS = {"sequence": "trial", "label": "act"}


@pytest.fixture
def frame(rng):
    """Trials that rest first and walk then, which their numbers do not tell: what counts is where trials begin."""
    pandas = pytest.importorskip("pandas")
    out = pandas.DataFrame({"trial": np.repeat(np.arange(8), 8), "x": rng.normal(size=64).round(6)})
    out["steps"] = rng.integers(0, 50, 64)
    out["act"] = np.where(out.index % 8 < 4, "rest", "walk")
    return out


def labels_of(tagged):
    rows = [line.split(",") for line in tagged.splitlines()]
    return [row[rows[0].index("predicted")] for row in rows[1:]]


def test_the_command_line_tells_sequences_apart_as_a_frame_does(kcrf, frame, tmp_path):
    """By the column of `sequence`, wherever it stands, with or without the label, and it says so."""
    crf = KernelCRF(kernel="linear", sigma2=30, **TRIALS).fit(frame)
    crf.save(tmp_path / "model.npz")
    expected = crf.predict(frame).tolist()
    assert expected != crf.predict_single(frame[["x", "steps"]])  # of one long sequence
    for columns in (["trial", "x", "steps", "act"], ["x", "trial", "steps", "act"], ["x", "steps", "trial"]):
        table = tmp_path / "table.csv"
        frame[columns].to_csv(table, index=False)
        done = kcrf("tag", "-m", tmp_path / "model.npz", table)
        assert labels_of(done.text) == expected
        assert "table.csv: rows with the same value of 'trial' are a sequence\n" in done.err
        lagging = kcrf("tag", "-m", tmp_path / "model.npz", table, "--lag", 8)
        assert labels_of(lagging.text) == crf.set_params(lag=8).predict(frame).tolist()
        assert "'trial' are a sequence\n" in lagging.err
        crf.set_params(lag=None)
    frame.to_csv(table, index=False)
    scores = kcrf("evaluate", "-m", tmp_path / "model.npz", table, "--json")
    assert json.loads(scores.text)["accuracy"] == pytest.approx(crf.score(frame), rel=1e-12, abs=0)
    assert "'trial' are a sequence" in scores.err
    again = KernelCRF.load(tmp_path / "model.npz")
    assert again.predict(frame).tolist() == expected and again.feature_names_in_ == ["x", "steps"]
    assert again.n_features_in_ == 2


def test_a_table_without_the_column_of_sequences_is_refused(kcrf, frame, tmp_path):
    KernelCRF(kernel="linear", sigma2=30, **TRIALS).fit(frame).save(tmp_path / "model.npz")
    table = tmp_path / "table.csv"
    for columns in (["x", "steps"], ["x", "steps", "act"]):
        frame[columns].to_csv(table, index=False)
        for more in (["tag"], ["tag", "--lag", 2], ["evaluate"], ["next", "-n", 2]):
            done = kcrf(*more, "-m", tmp_path / "model.npz", table)
            assert done.code == 3 and not done.out
            assert "there is no column 'trial', which tells sequences apart: write it beside" in done.err
    frame[["x", "steps", "act", "trial"]].to_csv(table, index=False)
    done = kcrf("evaluate", "-m", tmp_path / "model.npz", table)
    assert done.code == 3 and "the header of the training data (trial, x, steps, act)" in done.err


def test_several_columns_of_sequences_are_one_in_a_table(kcrf, frame, tmp_path):
    frame.insert(0, "day", frame.trial // 4)
    frame["trial"] %= 4
    crf = KernelCRF(kernel="linear", sigma2=30, sequence=["day", "trial"], label="act").fit(frame)
    crf.save(tmp_path / "model.npz")
    both = frame.assign(**{"day+trial": frame.day.astype(str) + "." + frame.trial.astype(str)})
    both[["day+trial", "x", "steps"]].to_csv(tmp_path / "table.csv", index=False)
    done = kcrf("tag", "-m", tmp_path / "model.npz", tmp_path / "table.csv")
    assert labels_of(done.text) == crf.predict(frame).tolist()
