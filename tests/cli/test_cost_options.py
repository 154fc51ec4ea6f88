"""`--cost` on tag, evaluate and crossval."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def accent(sample_data):
    return sample_data / "pitch_accent.conll"


def test_tag_and_evaluate_choose_the_same_labels(kcrf, trained, accent, tmp_path):
    tagged = tmp_path / "tagged.conll"
    choice = ["--decode", "posterior", "--cost", "1=4"]
    assert kcrf("tag", "-m", trained, accent, "-o", tagged, "--marginals", "all", *choice).code == 0
    by_file, by_model = (
        json.loads(kcrf("evaluate", *arguments, "--json").out)
        for arguments in ([tagged], ["-m", trained, accent, *choice])
    )
    assert by_file["labels"] == by_model["labels"]
    plain = json.loads(kcrf("evaluate", "-m", trained, accent, "--json").out)
    assert by_model["labels"][1]["recall"] > plain["labels"][1]["recall"] + 0.05
    # What is said of probabilities other than that of the chosen label stays as it is.
    assert by_model["calibration"]["log_loss"] == plain["calibration"]["log_loss"]


def test_costs_take_posterior_decoding(kcrf, trained, accent):
    asked, understood = (
        kcrf("tag", "-m", trained, accent, *more, "--cost", "1=4") for more in (["--decode", "posterior"], [])
    )
    assert asked.code == 0 and asked.out == understood.out
    done = kcrf("tag", "-m", trained, accent, "--nbest", 2, "--cost", "1=4")
    assert done.code == 2 and "--nbest ranks whole labellings: it does not go with --cost" in done.err


@pytest.mark.parametrize("command", ["tag", "evaluate", "crossval"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--decode", "viterbi", "--cost", "1=3"], "a cost weighs the marginal of each label"),
        (["--decode", "posterior", "--cost", "2=3"], "a cost for '2', which is no label; there are: 0, 1"),
        (["--decode", "posterior", "--cost", "1"], "'1' is not a label and a number, as event=20"),
        (["--decode", "posterior", "--cost", "1=-3"], "the cost of '1' is -3.0, not a finite number above 0"),
        (["--decode", "posterior", "--cost", "1=2", "--cost", "1=3"], "two costs for '1'"),
    ],
)
def test_errors(kcrf, trained, accent, command, options, message):
    model = [] if command == "crossval" else ["-m", trained]
    done = kcrf(command, *model, accent, *options)
    assert (done.code, done.out) == (2, b"")
    assert message in done.err
    assert len(done.err.splitlines()) <= 4


def test_decisions_are_for_models(kcrf, trained, accent, tmp_path):
    tagged = tmp_path / "tagged.conll"
    assert kcrf("tag", "-m", trained, accent, "-o", tagged).code == 0
    done = kcrf("evaluate", tagged, "--decode", "posterior")
    assert done.code == 2
    assert "give -m, too" in done.err


def test_crossval_tells_of_the_label(kcrf, accent, tmp_path):
    output = tmp_path / "results.json"
    options = ["--folds", 2, "--sigma2", 1, "--decode", "posterior", "--cost", "1=9", "-q", "-o", output]
    done = kcrf("crossval", accent, *options)
    assert done.code == 0
    results = json.loads(output.read_text())
    assert results["options"]["cost"] == {"1": 9.0}
    score = next(one for one in results["pooled"]["labels"] if one["label"] == "1")
    assert score["recall"] > 0.8 and f"{100 * score['recall']:.2f}" in done.text
