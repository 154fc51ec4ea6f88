"""Default features are compared with others, the choice is printed and dumped, and users may leave it out."""

from __future__ import annotations

import json

import numpy as np
import pytest


@pytest.fixture
def sums(tmp_path):
    """Two digits whose sum tells the label, which linear weights cannot."""
    digits, path = np.random.default_rng(0).integers(0, 2, (60, 20, 2)), tmp_path / "sums.conll"
    sequences = ("\n".join(f"a{a} b{b} y{(a + b) % 2}" for a, b in own) for own in digits.tolist())
    path.write_text("\n\n".join(sequences) + "\n")
    return path


def test_the_choice_is_said_and_dumped_and_plain_leaves_it_out(kcrf, sums, tmp_path):
    done = kcrf("train", sums, "--sigma2", "1", "-o", tmp_path / "m.npz")
    (line,) = (line for line in done.err.splitlines() if "taken: " in line)
    assert "held-out sequences in 3 folds" in line and "default -" in line and line.endswith("(--plain)")
    assert "taken: default" not in line
    dumped = kcrf("train", sums, "--sigma2", "1", "--dump-config")
    assert dumped.code == 0 and "near" in dumped.text
    config = tmp_path / "c.yaml"
    config.write_text(dumped.text)
    for options in (("-c", config), ("--plain",), ("--window", "0")):
        again = kcrf("train", sums, *options, "--sigma2", "1", "-o", tmp_path / "again.npz")
        assert again.code == 0 and "taken: " not in again.err
        if options[0] == "-c":
            first, second = (kcrf("inspect", tmp_path / f"{name}.npz").text for name in ("m", "again"))
            assert first.splitlines()[3:8] == second.splitlines()[3:8]


@pytest.mark.slow
def test_cross_validation_compares_in_each_fold(kcrf, sums):
    compared, plain = (
        json.loads(kcrf("crossval", sums, *more, "--sigma2", "1", "--folds", "2", "--json").text)["settings"][0]
        for more in ((), ("--plain",))
    )
    assert compared["accuracy"]["mean"] > plain["accuracy"]["mean"] + 0.1
