"""Files with labels that are not observed, through all commands."""

from __future__ import annotations

import json

import pytest

ROWS = "a\tX\nb\t?\nc\tY\n\na\tX\nb\tY\n\nc\t?\n\n" * 10
HIDDEN = ("--unobserved", "?", "--sigma2", 1)


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "part.conll"
    path.write_text(ROWS)
    return path


def test_positions_that_are_not_observed_are_left_out_of_scores(kcrf, data, tmp_path):
    model, encoded = tmp_path / "m.npz", tmp_path / "d.npz"
    done = kcrf("train", data, *HIDDEN, "-o", model)
    assert done.code == 0 and "stationary point, no certificate" in done.err and "norm of its gradient" in done.err
    assert "20 labels are not observed ('?'); 10 sequences have all of theirs" in done.err
    assert kcrf("featurize", data, "--like", model, "-q", "-o", encoded).code == 0
    for given in (data, encoded):
        done = kcrf("evaluate", "-m", model, given, "--json")
        found = json.loads(done.out)
        assert done.code == 0 and "20 gold labels are not observed" in done.err
        assert found["positions"] == 40 and found["accuracy"] == 1.0 and found["sequences"] == 20


def test_figures_say_that_nothing_is_proven(kcrf, data, tmp_path):
    done = kcrf("train", data, *HIDDEN, "--kernel", "rbf", "--size", 2, "--json", "-q", "-o", tmp_path / "m.npz")
    found = json.loads(done.out)
    assert found["stop"] == "stationary" and found["gradient_norm"] >= 0
    assert found["lower_bound"] is found["certified_gap"] is found["outside_estimate"] is None
    done = kcrf("train", data, *HIDDEN, "--strict", "-q", "-o", tmp_path / "m.npz")
    assert done.code == 5


def test_a_mark_that_never_occurs_is_heard_of(kcrf, data, tmp_path):
    done = kcrf("train", data, "--unobserved", "Q", "--sigma2", 1, "-o", tmp_path / "m.npz")
    assert done.code == 0 and "warning: no label is 'Q'" in done.err


def test_given_labels_have_the_mark_of_training(kcrf, data, tmp_path):
    model = tmp_path / "m.npz"
    underscores = tmp_path / "u.conll"
    underscores.write_text(ROWS.replace("?", "_"))
    assert kcrf("train", underscores, "--unobserved", "_", "--sigma2", 1, "-q", "-o", model).code == 0
    done = kcrf("tag", "-m", model, "--force", underscores)
    assert done.code == 0 and "\t_\t" in done.text
    assert kcrf("tag", "-m", model, "--force", "--free", "", underscores).code == 2


def test_labels_that_nothing_can_fill_in(kcrf, tmp_path):
    path = tmp_path / "d.conll"
    path.write_text("a\tO\nb\tO\n\na\tO\nb\t?\nc\tE-X\n\nd\tS-X\n")
    done = kcrf("train", path, *HIDDEN, "--scheme", "iobes", "-q", "-o", tmp_path / "m.npz")
    assert done.code == 3 and "sequence at line 4" in done.err
    path.write_text("b\tI-X\n\nd\t?\n")
    done = kcrf("train", path, *HIDDEN, "--scheme", "iob2", "-q", "-o", tmp_path / "m.npz")
    assert done.code == 3 and "Traceback" not in done.err


def test_crossval_needs_labels(kcrf, data, tmp_path):
    config = tmp_path / "c.yaml"
    config.write_text("unobserved: '?'\n")
    done = kcrf("crossval", data, "-c", config, "--sigma2", 1)
    assert done.code == 2 and "labels that are observed" in done.err


@pytest.mark.parametrize("value", ["nan", "inf", "-1"])
def test_limits_of_pruning(kcrf, data, tmp_path, value):
    done = kcrf("train", data, *HIDDEN, "--prune", value, "-q", "-o", tmp_path / "m.npz")
    assert done.code == 2 and "Traceback" not in done.err


def test_weights_of_nothing(kcrf, tmp_path):
    path = tmp_path / "w.crfsuite"
    path.write_text("@weight:0\nX\ta\n\n@weight:0\nY\tb\n")
    done = kcrf("train", path, "--sigma2", 1, "-q", "-o", tmp_path / "m.npz")
    assert done.code == 3 and "weight 0" in done.err
