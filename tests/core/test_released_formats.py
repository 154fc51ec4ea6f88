"""Models that an earlier version wrote load, and label as they did."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kcrf_core.corpora import read_corpus
from kcrf_core.files.containers import FORMAT
from kcrf_core.model import Model

DATA = Path(__file__).parent.parent / "data"
MODELS = sorted(DATA.glob("format*.npz"))


def test_the_format_that_is_read_is_here():
    assert {int(path.name[len("format")]) for path in MODELS} == {FORMAT}


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_models_keep_their_predictions(path):
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    corpus = read_corpus(DATA / expected["data"])
    model = Model.load(path)
    assert model.tag_corpus(corpus) == expected["labels"]
    marginals = model.marginals(model.encoding.encode(corpus))
    # Kernel values in single precision differ between BLAS libraries by parts in a million.
    np.testing.assert_allclose(marginals, expected["marginals"], rtol=0, atol=1e-4)
