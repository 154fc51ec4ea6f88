"""Checkpoints: a run that is killed anywhere and begun again reaches the optimum of a run that was never stopped."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from kcrf_core.config import parse_config
from kcrf_core.corpora import read_corpus
from kcrf_core.encoding import UNOBSERVED, fit_encoding
from kcrf_core.errors import ConfigError, FileFormatError
from kcrf_core.files import pack_tree, unpack_tree
from kcrf_core.objective.solvers import Observer, Progress, Stage
from kcrf_core.system import Workers
from kcrf_core.training import Checkpoint, HoldOut, fit_calibration, train

LINEAR = {"terms": [{"features": ["c0", "c1"]}, {"type": "edge"}]}
SEVERAL = {
    "terms": [
        {"name": "words", "features": ["c0", "c1"], "kernel": "linear"},
        {"name": "sound", "features": ["c2", "c3"], "kernel": "rbf", "map": {"size": 30}},
        {"type": "edge"},
    ]
}


def pivots(**more):
    return {"terms": [{"kernel": "rbf", "map": more}, {"type": "edge"}]}


# Configurations, how they are trained, what is asked for beside that, and how many sequences there are.
RUNS = {
    "search": (LINEAR, {}, {}, 15),
    "lbfgs": (LINEAR, {"sigma2": 10.0, "tolerance": 1e-6}, {}, 30),
    "metric-renewed": ({}, {"sigma2": 100.0, "tolerance": 1e-5, "solver": "lbfgs"}, {"data": "digits"}, 40),
    "begins-on-part": (pivots(size=200), {"sigma2": 10.0, "tolerance": 1e-5}, {}, 60),
    "newton": (SEVERAL, {"sigma2": 10.0, "solver": "newton", "tolerance": 1e-6}, {}, 30),
    "block-jacobi": (SEVERAL, {"sigma2": 10.0, "solver": "block-jacobi", "tolerance": 1e-6}, {}, 30),
    "subspace": (SEVERAL, {"sigma2": 10.0, "solver": "subspace", "tolerance": 1e-4}, {}, 30),
    "sparse": (LINEAR, {"sigma2": 10.0, "c1": 0.3, "tolerance": 1e-4}, {}, 30),
    "sparse-alone": (LINEAR, {"sigma2": float("inf"), "c1": 0.5, "tolerance": 2e-2}, {}, 30),
    "double": (LINEAR, {"sigma2": 10.0, "precision": "double", "tolerance": 1e-8}, {}, 30),
    "rises-to-double": (pivots(size=40), {"sigma2": 1e4, "tolerance": 1e-5}, {}, 20),
    "growing": (pivots(size=100, select="gradient"), {"sigma2": 10.0}, {"dev": True}, 30),
    "dev": (LINEAR, {"sigma2": 10.0, "tolerance": 1e-5}, {"dev": True}, 30),
    "terms": (SEVERAL, {"sigma2": 1.0}, {"select_terms": True}, 40),
    "unobserved": (LINEAR, {"sigma2": 10.0}, {"unobserved": True}, 30),
}


class Killed(BaseException):
    pass


class Mortal(Checkpoint):
    """Kills the process at the moment of one file, which is the only one that is written."""

    def __init__(self, path, moment=None):
        super().__init__(path, every=0.0)
        self.moments, self._last = 0, moment
        self.partial = []  # True for files with a fit under way, in the order of files

    def write(self, partial):
        self.moments += 1
        self.partial.append(partial is not None)
        if self.moments == self._last:
            super().write(partial)
            raise Killed


@pytest.fixture(scope="module")
def workers():
    with Workers(1) as workers:
        yield workers


def runner(name, sample_data, workers, tmp_path, **changed):
    raw, training, more, count = RUNS[name]
    more = dict(more)
    config = parse_config({**raw, "training": {**training, **changed}})
    corpus = read_corpus(sample_data / f"{more.pop('data', 'pitch_accent')}.conll")
    encoding, dataset = fit_encoding(config, corpus.subset(range(count)))
    if more.pop("unobserved", False):
        labels = dataset.labels.copy()
        labels[::7] = UNOBSERVED
        labels[: dataset.offsets[count // 2]] = dataset.labels[: dataset.offsets[count // 2]]
        dataset = replace(dataset, labels=labels)
    if "dev" in more:
        more["dev"] = encoding.encode(corpus.subset(range(count, count + 30)))

    def run(checkpoint=None, **options):
        model, report = train(encoding, dataset, config, workers=workers, checkpoint=checkpoint, **{**more, **options})
        model.save(tmp_path / "m.npz")
        return (tmp_path / "m.npz").read_bytes(), report

    return run


EVERYDAY = ("lbfgs", "sparse")


@pytest.mark.parametrize(
    "name", [name if name in EVERYDAY else pytest.param(name, marks=pytest.mark.slow) for name in RUNS]
)
def test_a_run_that_is_killed_reaches_the_same_optimum(name, sample_data, workers, tmp_path):
    run = runner(name, sample_data, workers, tmp_path)
    path = tmp_path / "run.checkpoint"
    whole = Mortal(path)
    expected, report = run(whole)
    assert not path.exists()
    for moment in sorted({1, whole.moments * 2 // 3, whole.moments}):
        with pytest.raises(Killed):
            run(Mortal(path, moment))
        rest = Mortal(path)
        found, again = run(rest)
        assert again.result.reason == report.result.reason
        if name in ("unobserved", "growing"):  # P is not convex, or pivots that are added follow from a fit on the way
            np.testing.assert_allclose(again.result.value, report.result.value, rtol=0.03)
        else:
            assert max(report.result.lower, again.result.lower) <= min(report.result.value, again.result.value)
        if not whole.partial[moment - 1]:
            assert found == expected, f"moment {moment} of {whole.moments}"
        assert rest.moments < whole.moments or moment == 1
        path.unlink()
    assert run()[0] == expected  # keeping parameters changes nothing


@pytest.mark.slow
def test_a_run_may_be_killed_again_and_again(sample_data, workers, tmp_path):
    """Each time a little further on: in the search for sigma2, where bytes stay the same, and in the final fit."""
    run = runner("search", sample_data, workers, tmp_path)
    whole = Mortal(tmp_path / "run.checkpoint")
    _, report = run(whole)
    deaths = 0
    while deaths < whole.moments:
        try:
            _, again = run(Mortal(tmp_path / "run.checkpoint", max(whole.moments // 6, 2)))
            break
        except Killed:
            deaths += 1
    assert deaths >= 3 and again.sigma2 == report.sigma2
    assert max(report.result.lower, again.result.lower) <= min(report.result.value, again.result.value)


def test_folds_of_a_calibration_belong_to_the_run(sample_data, workers, tmp_path):
    config = parse_config({**LINEAR, "training": {"sigma2": 10.0}})
    encoding, dataset = fit_encoding(config, read_corpus(sample_data / "pitch_accent.conll").subset(range(20)))

    def run(kept):
        model, report = train(encoding, dataset, config, workers=workers, checkpoint=kept)
        model, _ = fit_calibration(model, report, encoding, dataset, config, workers, checkpoint=kept)
        model.save(tmp_path / "m.npz")
        return (tmp_path / "m.npz").read_bytes()

    path = tmp_path / "run.checkpoint"
    whole = Mortal(path)
    expected = run(whole)
    ends = np.flatnonzero(~np.array(whole.partial)) + 1  # files between fits
    with pytest.raises(Killed):
        run(Mortal(path, ends[-3]))
    again = Mortal(path)
    assert run(again) == expected and again.moments < whole.moments / 2


def test_an_interruption_leaves_a_checkpoint_of_its_moment(sample_data, workers, tmp_path):
    """A model of the best parameters so far, from which the next run goes on."""
    run = runner("lbfgs", sample_data, workers, tmp_path)
    _, whole = run()
    seen = []

    class Listening(Observer):
        def tell(self, event):
            if (isinstance(event, Stage) and event.final) or (seen and isinstance(event, Progress)):
                seen.append(event)

    path = tmp_path / "run.checkpoint"
    _, report = run(Checkpoint(path), observer=Listening(), interrupted=lambda: len(seen) > 10)
    assert report.result.reason == "interrupted" and report.result.passes < whole.result.passes
    seen.clear()
    _, again = run(Checkpoint(path), observer=Listening())
    assert again.result.reason == "certified" and again.result.lower <= whole.result.value
    assert seen[1].value == pytest.approx(report.result.value, rel=1e-5)  # the first pass is at the stored parameters
    assert seen[1].passes > 10


def test_a_checkpoint_of_another_run_is_refused_with_the_difference(sample_data, workers, tmp_path):
    path = tmp_path / "run.checkpoint"
    with pytest.raises(Killed):
        runner("lbfgs", sample_data, workers, tmp_path)(Mortal(path, 3))
    for changed, message in (
        ({"sigma2": 3.0}, "training.sigma2 is 3.0 here and 10.0 there"),
        ({"solver": "newton"}, "training.solver is newton here and auto there"),
    ):
        with pytest.raises(ConfigError, match=message):
            runner("lbfgs", sample_data, workers, tmp_path, **changed)(Checkpoint(path))
    run = runner("lbfgs", sample_data, workers, tmp_path)
    for options, message in (
        ({"certify": "exact"}, "certify is exact here and estimate there"),
        ({"hold_out": HoldOut(groups=np.arange(30))}, "group differs"),
    ):
        with pytest.raises(ConfigError, match=message):
            run(Checkpoint(path), **options)
    with pytest.raises(ConfigError, match="data differs"):
        runner("search", sample_data, workers, tmp_path, **RUNS["lbfgs"][1])(Checkpoint(path))  # fewer sequences


def test_a_damaged_checkpoint_is_refused(sample_data, workers, tmp_path):
    path = tmp_path / "run.checkpoint"
    run = runner("lbfgs", sample_data, workers, tmp_path)
    with pytest.raises(Killed):
        run(Mortal(path, 3))
    whole = path.read_bytes()
    for damaged in (whole[:-100], whole[:2000] + b"\x55" + whole[2001:], b"", b"PK\x03\x04" + whole[:50], b"no zip"):
        path.write_bytes(damaged)
        with pytest.raises(FileFormatError):
            run(Checkpoint(path))


def test_a_checkpoint_that_cannot_be_written_costs_no_model(sample_data, workers, tmp_path):
    notes = []

    class Listening(Observer):
        def report(self, text):
            notes.append(text)

    run = runner("lbfgs", sample_data, workers, tmp_path)
    assert run(Checkpoint(tmp_path / "missing" / "file", every=0.0), observer=Listening())[0] == run()[0]
    assert any("was not written" in text for text in notes)


@dataclass
class Pair:
    left: object
    right: object


def test_trees_come_back_as_they_were():
    shared = np.arange(3.0)
    tree = {"a": [shared, (shared, None)], 3: Pair(np.float64(-np.inf), float("nan")), (1, 2): np.ones((2, 2), "f4")}
    back = unpack_tree(*pack_tree(tree, None), [Pair], None)
    assert back["a"][0] is back["a"][1][0] and back["a"][1][1] is None
    np.testing.assert_array_equal(back["a"][0], shared)
    assert type(back[3].left) is np.float64 and back[3].left == -np.inf and np.isnan(back[3].right)
    assert back[1, 2].dtype == np.float32
    with pytest.raises(KeyError):
        unpack_tree(*pack_tree(tree, None), [], None)


def test_arrays_of_a_device_go_there_and_back_once():
    class Elsewhere:
        def __init__(self, values):
            self.values = values

    one = Elsewhere(np.arange(4.0))
    text, arrays = pack_tree([one, {"again": one}, np.zeros(2)], lambda array: array.values)
    assert len(arrays) == 2
    first, again, here = unpack_tree(text, arrays, [], Elsewhere)
    assert isinstance(first, Elsewhere) and again["again"] is first and isinstance(here, np.ndarray)
    np.testing.assert_array_equal(first.values, one.values)
