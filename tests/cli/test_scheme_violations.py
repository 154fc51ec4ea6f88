"""Training data that breaks a label scheme, on the command line: train, encoded data, crossval."""

from __future__ import annotations

import pytest

GOOD = "a B-x\nb I-x\nc O\n\na O\nb B-y\nc I-y\n\n" * 6
BAD = "a O\nb I-x\nc I-x\n\na I-y\n\n"


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.conll"
    path.write_text(GOOD + BAD + GOOD)
    return path


def test_the_error_has_a_remedy_that_works(kcrf, data, tmp_path):
    model = tmp_path / "m.npz"
    done = kcrf("train", data, "--scheme", "iob2", "--sigma2", 1, "-o", model)
    assert done.code == 3 and not model.exists()
    line = done.err.split("\n")[-2]
    assert line.startswith(f"kcrf: {data}: the label 'I-x' in line 50 is not allowed there by the scheme iob2 ")
    assert "2 labels in 2 sequences" in line and line.endswith("(--scheme)")
    assert kcrf("train", data, "--sigma2", 1, "-o", model).code == 0
    tagged = kcrf("tag", "-m", model, data, "--scheme", "iob2")
    before = "O"
    for row in tagged.text.split("\n"):
        label = row.split()[-1] if row else "O"
        assert not label.startswith("I-") or before[1:] == label[1:]
        before = label


def test_encoded_data_and_folds(kcrf, data, tmp_path):
    encoded, model = tmp_path / "d.npz", tmp_path / "m.npz"
    assert kcrf("featurize", data, "-o", encoded, "-q").code == 0
    refused = kcrf("train", encoded, "--scheme", "iob2", "--sigma2", 1, "-o", model)
    assert refused.code == 3 and f"kcrf: {encoded}: the label 'I-x'" in refused.err
    done = kcrf("crossval", data, "--scheme", "iob2", "--sigma2", 1, "--folds", 3)
    assert done.code == 3 and f"kcrf: {data}: the label 'I-x' in line 50" in done.err and "fold" in done.err
