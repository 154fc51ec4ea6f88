"""Numbers outside the range of the training data are reported by `tag` and `evaluate`."""

from __future__ import annotations

import numpy as np
import pytest

WARNING = "numbers outside the range of the training data"


def written(path, shift):
    rng = np.random.default_rng(0)
    rows = [
        "\n".join(f"{value + shift:.3f} y{int(value > 0)}" for value in np.cumsum(rng.normal(size=30)).tolist())
        for _ in range(8)
    ]
    path.write_text("\n\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize("transform", ["identity", "rank"])
def test_new_numbers_are_reported_and_known_ones_are_not(kcrf, tmp_path, transform):
    config, model = tmp_path / "c.yaml", tmp_path / "m.npz"
    config.write_text(f"features: [{{column: c0, transform: {transform}, window: -1..1}}]\n")
    known, new = (written(tmp_path / f"{shift}.conll", shift) for shift in (0, 100))
    assert kcrf("train", known, "-c", config, "--sigma2", "1", "-q", "-o", model).code == 0
    for command in (("tag", "-m", model, "-o", tmp_path / "out"), ("evaluate", "-m", model)):
        assert WARNING not in kcrf(*command, known).err
        assert f"warning: 100 % of the positions have {WARNING}" in kcrf(*command, new).err
