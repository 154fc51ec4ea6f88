"""`--scheme-violations` on the command line: train, crossval, encoded data, configurations."""

from __future__ import annotations

import json

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
    assert "2 labels in 2 sequences" in line and "drop" in line and "free" in line
    for handled, words in (("drop", "these 2 sequences are left out"), ("free", "2 labels are taken as not observed")):
        done = kcrf(
            "train", data, "--scheme", "iob2", "--scheme-violations", handled, "--sigma2", 1, "-o", model, "--json"
        )
        assert done.code == 0 and words in done.err
        found = json.loads(done.text)
        assert found["scheme_violations"]["handled"] == handled
        assert found["stop"] == ("certified" if handled == "drop" else "stationary")
        assert kcrf("tag", "-m", model, data).code == 0
        assert handled in kcrf("inspect", model).text


def test_what_is_dropped_changes_nothing(kcrf, data, tmp_path):
    clean, ways = tmp_path / "clean.conll", []
    clean.write_text(GOOD + GOOD)
    for number, (path, options) in enumerate([(data, ["--scheme-violations", "drop"]), (clean, [])]):
        model = tmp_path / f"{number}.npz"
        assert kcrf("train", path, "--scheme", "iob2", *options, "--sigma2", 1, "-q", "-o", model).code == 0
        ways.append(kcrf("inspect", model, "--dump").out)
    assert ways[0] == ways[1]


def test_encoded_data_configurations_and_folds(kcrf, data, tmp_path):
    encoded, config, model = tmp_path / "d.npz", tmp_path / "c.yaml", tmp_path / "m.npz"
    config.write_text("training: {scheme: iob2, scheme_violations: drop, sigma2: 1}\n")
    assert kcrf("featurize", data, "-o", encoded, "-q").code == 0
    done = kcrf("train", encoded, "-c", config, "-o", model)
    assert done.code == 0 and "these 2 sequences are left out" in done.err
    refused = kcrf("train", encoded, "--scheme", "iob2", "--sigma2", 1, "-o", model)
    assert refused.code == 3 and f"kcrf: {encoded}: the label 'I-x'" in refused.err
    assert "scheme_violations: drop" in kcrf("train", data, "-c", config, "--dump-config").text
    done = kcrf("crossval", data, "-c", config, "--folds", 3)
    assert done.code == 0
    options = ["--scheme", "iob2", "--sigma2", 1, "--folds", 3]
    done = kcrf("crossval", data, *options)
    assert done.code == 3 and f"kcrf: {data}: the label 'I-x' in line 50" in done.err and "fold" in done.err
    assert kcrf("crossval", data, *options, "--grid", "scheme-violations=drop,free").code == 0
    again = kcrf("train", data, "-c", config, "--init", model, "--scheme-violations", "free", "-o", model)
    assert again.code == 0 and "not observed" in again.err
    basis = tmp_path / "b.npz"
    assert kcrf("select-basis", data, "-c", config, "--kernel", "rbf", "--size", 3, "-o", basis).code == 0
    assert kcrf("train", data, "--basis", basis, "-o", model).code == 0


def test_it_goes_with_a_scheme(kcrf, data, tmp_path):
    done = kcrf("train", data, "--scheme-violations", "drop", "-o", tmp_path / "m.npz")
    assert done.code == 2 and "goes with a 'scheme'" in done.err
