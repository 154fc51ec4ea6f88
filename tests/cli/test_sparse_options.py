"""--c1 on the command line: what training and inspection say, grids, and errors with their remedy."""

from __future__ import annotations

import json

import pytest


def test_training_counts_weights_that_are_not_zero(kcrf, tmp_path, first_accents):
    path, data = tmp_path / "model.npz", first_accents(30)
    done = kcrf("train", data, "--c1", "1", "--c2", "0", "--tolerance", "0.01", "--json", "-o", path)
    assert done.code == 0, done.err
    told = json.loads(done.text)
    assert told["c1"] == 1 and told["sigma2"] == {"node": "inf", "edge": "inf"}
    assert told["certified_gap"] <= 0.01 and told["nonzero_parameters"] < told["parameters"] / 2
    assert f"; {told['nonzero_parameters']:,} of {told['parameters']:,} parameters not zero" in done.err
    assert "sigma2: node inf, edge inf; c1 1; " in done.err
    shown = json.loads(kcrf("inspect", path, "--json").text)
    [node] = [term for term in shown["terms"] if term["name"] == "node"]
    assert node["weights"] <= told["nonzero_parameters"]


def test_a_grid_varies_c1(kcrf, tmp_path, first_accents):
    out, data = tmp_path / "grid.json", first_accents(30)
    options = ["--folds", "2", "--grid", "c1=0,1", "--c2", "0.1", "--tolerance", "0.1", "-o", out, "-q"]
    done = kcrf("crossval", data, *options)
    assert done.code == 0, done.err
    found = json.loads(out.read_text())
    assert [result["setting"] for result in found["settings"]] == [{"c1": 0}, {"c1": 1}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--c2", "0"], "give a 'c1' above 0"),
        (["--c1", "1", "--kernel", "rbf", "--sigma2", "1"], "this term has pivots"),
        (["--c1", "1", "--select-terms", "--sigma2", "1"], "terms cannot be selected with an L1 penalty"),
        (["--c1", "1", "--solver", "newton", "--sigma2", "1"], "with 'c1' there are 'auto' and 'proximal'"),
        (["--c1", "-1"], "--c1"),
    ],
)
def test_what_it_does_not_go_with_is_refused(kcrf, tmp_path, sample_data, options, message):
    done = kcrf("train", sample_data / "pitch_accent.conll", *options, "-o", tmp_path / "model.npz")
    assert done.code == 2 and message in done.err
    assert not (tmp_path / "model.npz").exists()
