"""Transforms of numbers from a configuration, through the commands."""

from __future__ import annotations

import json

import numpy as np
import pytest

from kcrf_core import KernelCRF

CONFIG = """\
columns: [x, y, n, label]
features:
  - {columns: [x, y], transform: speed}
  - {column: n, transform: log1p, window: -1..1}
  - {columns: [x, y], transform: mean, width: 5}
  - {column: n, transform: rank}
terms: [{name: node}, {type: edge}]
training: {sigma2: 1}
"""


@pytest.fixture
def walk(rng, tmp_path):
    """Steps of two lengths, labelled by them; a configuration; and rows without labels."""
    data, config, new = tmp_path / "walk.conll", tmp_path / "walk.yaml", tmp_path / "new.conll"
    rows = []
    for _ in range(12):
        label, at = "slow", np.zeros(2)
        for t in range(25):
            label = label if t % 6 else "fast" if label == "slow" else "slow"
            angle = rng.uniform(0, 2 * np.pi)
            at = at + {"slow": 1, "fast": 3}[label] * np.array([np.cos(angle), np.sin(angle)])
            x = "NA" if rng.random() < 0.03 else f"{at[0]:.4f}"
            rows.append(f"{x} {at[1]:.4f} {rng.integers(100)} {label}")
        rows.append("")
    data.write_text("\n".join(rows) + "\n")
    new.write_text("\n".join(row.rpartition(" ")[0] for row in rows) + "\n")
    config.write_text(CONFIG)
    return data, config, new


def test_commands_know_transforms(kcrf, walk, tmp_path):
    data, config, new = walk
    model = tmp_path / "m.npz"
    done = kcrf("train", data, "-c", config, "-o", model)
    assert done.code == 0, done.text
    shown = json.loads(kcrf("evaluate", data, "-m", model, "--json").out)
    assert shown["accuracy"] > 0.85
    inspected = json.loads(kcrf("inspect", model, "--json").out)
    assert [one["name"] for one in inspected["features"]] == ["x+y.speed", "n.log1p", "x+y.mean5", "n.rank"]
    named = {item["name"] for one in inspected["terms"][0]["top"] for item in one["items"]}
    assert "x+y.speed[0]" in named and {name for name in named if name.startswith(("x.mean5", "y.mean5"))}
    assert b"x+y.speed[0]" in kcrf("tag", new, "-m", model, "--explain", "1").out
    important = json.loads(kcrf("inspect", model, "--importance", data, "--json").out)["importance"]
    assert {one["column"] for one in important} == {"x", "y", "n"}
    # Speeds look behind, means two positions ahead.
    assert "ahead" not in kcrf("tag", new, "-m", model, "--lag", "2").err
    assert "windows look 2 lines ahead" in kcrf("tag", new, "-m", model, "--lag", "1").err
    dumped = kcrf("train", data, "-c", config, "--dump-config").text
    assert "width: 5" in dumped and "transform: speed" in dumped


def test_shards_are_encoded_as_data_in_memory(kcrf, walk, tmp_path):
    data, config, new = walk
    folder, models = tmp_path / "shards", [tmp_path / "whole.npz", tmp_path / "sharded.npz"]
    assert kcrf("featurize", data, "-c", config, "--shards", "3", "-o", folder, "-q").code == 0
    assert kcrf("train", folder, "-o", models[1], "-q").code == 0
    assert kcrf("train", data, "-c", config, "-o", models[0], "-q").code == 0
    whole, sharded = (kcrf("tag", new, "-m", model, "-q").out for model in models)
    assert whole == sharded


def test_the_estimator_takes_them(walk):
    rng = np.random.default_rng(0)
    steps = [np.repeat(rng.integers(1, 3, size=6), 4) for _ in range(10)]
    X = [np.cumsum(rng.choice([-1.0, 1.0], size=len(own)) * own)[:, None] for own in steps]
    y = [[str(step) for step in own] for own in steps]
    features = [{"column": "c0", "transform": "speed"}]
    told = KernelCRF(config={"features": features, "training": {"sigma2": 1}}).fit(X, y)
    assert told.score(X, y) > 0.9
