"""Calibrated models: what is fitted, what is kept, and that everything that uses scores follows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import models
from kcrf_core.chains import chain
from kcrf_core.corpora import read_corpus
from kcrf_core.encoding import configured, fit_encoding
from kcrf_core.errors import ConfigError, DataError, FileFormatError, Interrupted
from kcrf_core.exchange import export_model
from kcrf_core.model import Decoder, Model, ScoreCalibration, Wishes
from kcrf_core.system import Workers
from kcrf_core.training import HoldOut, fit_calibration, train


def calibrated(order=1, kinds=models.KINDS, labels=("A", "B", "C")):
    model, corpus = models.random_model(np.random.default_rng(6), kinds, labels, order)
    offsets = np.linspace(-0.5, 0.5, len(labels))
    return replace(model, calibration=ScoreCalibration(0.6, offsets)), model, model.encoding.encode(corpus)


@pytest.mark.parametrize("order", [1, 2])
def test_probabilities_are_those_of_calibrated_scores(order):
    model, plain, dataset = calibrated(order)
    scores, edges = plain.potentials(dataset)
    triples = None if edges.triples is None else 0.6 * edges.triples
    edges = chain.Edges(0.6 * edges.transitions, 0.6 * edges.start, 0.6 * edges.end, triples)
    expected = chain.marginals(0.6 * scores + model.calibration.offsets, edges, dataset.offsets).node
    np.testing.assert_allclose(model.marginals(dataset), expected, rtol=1e-10)


@pytest.mark.parametrize("order", [1, 2])
def test_explanations_add_up(order):
    model, _, dataset = calibrated(order)
    with Workers(1) as workers:
        (found,) = Decoder(model, Wishes(explain=99)).decode(dataset, "data", workers)
    for one in found.explanations:
        total = sum(part.value for part in one.contributions) + one.others
        np.testing.assert_allclose(total, one.difference, rtol=1e-8, atol=1e-9)
        assert dict(one.terms)["calibration"] == pytest.approx(
            model.calibration.offsets[one.label] - model.calibration.offsets[one.against], rel=1e-9
        )


def test_files(tmp_path):
    model, plain, dataset = calibrated()
    model.save(tmp_path / "m.npz")
    again = Model.load(tmp_path / "m.npz")
    assert again.calibration.sharpness == 0.6
    np.testing.assert_array_equal(again.marginals(dataset), model.marginals(dataset))
    for name in ("transitions", "start", "end"):  # weights stay as they were
        np.testing.assert_array_equal(getattr(again.edges, name), getattr(plain.edges, name))
    wrong = replace(model, calibration=ScoreCalibration(-1.0, np.zeros(3)))
    wrong.save(tmp_path / "wrong.npz")
    with pytest.raises(FileFormatError, match="calibration"):
        Model.load(tmp_path / "wrong.npz")


def test_a_model_that_is_too_sure_is_calibrated(tmp_path):
    """Labels of coins: a fit with next to no prior is far too sure of words it has seen once or twice."""
    generator = np.random.default_rng(0)
    lines = "".join(
        "".join(f"w{generator.integers(60)} {'AB'[generator.integers(2)]}\n" for _ in range(5)) + "\n"
        for _ in range(40)
    )
    (tmp_path / "coins.conll").write_text(lines)
    corpus = read_corpus(tmp_path / "coins.conll")
    config, _ = configured({}, {"sigma2": 30.0, "plain": True, "window": [0]}, corpus, "options")
    encoding, dataset = fit_encoding(config, corpus)
    with Workers(1) as workers:
        model, report = train(encoding, dataset, config, workers=workers)
        found, told = fit_calibration(model, report, encoding, dataset, config, workers)
        assert told.kept and told.log_loss < told.log_loss_before - told.standard_error and told.sharpness < 0.5
        assert told.log_loss < np.log(2) + 0.05  # coins are coins
        assert found.calibration.sharpness == told.sharpness and found.info["training"] == model.info["training"]
        with pytest.raises(DataError, match="3 sequences cannot make 5 folds"):
            fit_calibration(model, report, encoding, dataset.subset(range(3)), config, workers)
    with pytest.raises(ConfigError, match="calibration"):
        export_model(found, "crfsuite")


def recordings(path):
    """Ten subjects, each with a word and labels of its own: nothing that is known of one helps with another."""
    generator = np.random.default_rng(1)
    text, groups = "", []
    for subject in range(10):
        favourite = generator.random()
        for _ in range(6):
            groups.append(subject)
            text += "".join(f"w{subject} {'AB'[int(generator.random() < favourite)]}\n" for _ in range(4)) + "\n"
    path.write_text(text)
    return np.array(groups)


def test_folds_of_a_calibration_keep_groups_together(tmp_path):
    groups = recordings(tmp_path / "data.conll")
    corpus = read_corpus(tmp_path / "data.conll")
    config, _ = configured({}, {"sigma2": 3.0, "plain": True, "window": [0]}, corpus, "options")
    encoding, dataset = fit_encoding(config, corpus)
    with Workers(1) as workers:
        model, report = train(encoding, dataset, config, workers=workers)

        def figures(**held_out):
            return fit_calibration(model, report, encoding, dataset, config, workers, HoldOut(**held_out))[1]

        known, new = figures(), figures(groups=groups)
        assert new.log_loss_before > known.log_loss_before + 0.05  # of subjects that no model has seen
        assert figures(folds=groups % 5).log_loss_before > known.log_loss_before + 0.05
        with pytest.raises(DataError, match="4 groups cannot make 5 folds"):
            figures(groups=groups % 4)
        with pytest.raises(Interrupted):
            fit_calibration(model, report, encoding, dataset, config, workers, interrupted=lambda: True)
