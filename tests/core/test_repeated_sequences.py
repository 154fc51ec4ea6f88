"""Sequences that come again count as often as they come, like a sequence with a weight."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from test_training import toy_corpus

from kcrf_core.config import parse_config, with_options
from kcrf_core.corpora.corpus import concatenate
from kcrf_core.encoding import fit_encoding
from kcrf_core.training import train


def test_training_on_repeated_data_finds_the_optimum_of_weighted_data(rng, workers):
    corpus = toy_corpus(rng, 30)
    config = parse_config(with_options({}, {"sigma2": 2.0, "kernel": "rbf", "map": "full", "tolerance": 1e-4}))
    values = []
    for data, weight in ((concatenate([corpus] * 4), None), (corpus, 4.0)):
        encoding, dataset = fit_encoding(config, data)
        if weight is not None:
            dataset = replace(dataset, weights=np.full(dataset.sequences, weight))
        values.append(train(encoding, dataset, config, workers=workers)[1].result.value)
    np.testing.assert_allclose(values[0], values[1], rtol=2e-4)
