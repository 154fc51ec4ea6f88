"""Importance and explanations of data in which it is known what matters, and how much a permutation costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kcrf_core import KernelCRF
from kcrf_core.config import load_template, parse_config
from kcrf_core.corpora import ITEMS, corpus_of, read_corpus
from kcrf_core.encoding import configured, fit_encoding
from kcrf_core.errors import DataError
from kcrf_core.model import Decoder, Wishes, importances
from kcrf_core.system import Workers
from kcrf_core.training import train


def fitted(folder, seed, kernel="rbf"):
    """A model of five numbers of which the fourth matters most and the second less, and its data."""
    generator = np.random.default_rng(seed)
    X = [generator.normal(size=(6, 5)) for _ in range(50)]
    y = [["b" if 2 * row[3] + row[1] + 0.3 * generator.normal() > 0 else "a" for row in x] for x in X]
    rows = ("\t".join([*(f"{value:.6f}" for value in row), label]) for x, labels in zip(X, y, strict=True)
            for row, label in (*zip(x, labels, strict=True), ((), "")))  # fmt: skip
    path = folder / f"{seed}.conll"
    path.write_text("\n".join(rows) + "\n")
    corpus = read_corpus(path)
    options = {"kernel": kernel, "sigma2": 10.0, "plain": True, "window": [0], "seed": seed}
    config, _ = configured({}, options | ({} if kernel == "linear" else {"size": 60}), corpus, "options")
    encoding, dataset = fit_encoding(config, corpus)
    with Workers(1) as workers:
        return train(encoding, dataset, config, workers=workers)[0], dataset


@pytest.mark.parametrize(("tasks", "least"), [(4, 4), pytest.param(20, 19, marks=pytest.mark.slow)])
def test_the_ranking_is_right(tmp_path, tasks, least):
    right = 0
    for seed in range(tasks):
        model, dataset = fitted(tmp_path, seed)
        with Workers(1) as workers:
            found = importances(model, dataset, workers, repetitions=1)
            (decoded,) = Decoder(model, Wishes(explain=9)).decode(dataset, "data", workers)
        by_data = [one.name for one in found]
        sizes = {}
        for one in decoded.explanations:
            for part in one.contributions:
                if part.term != "edge" and part.what != "jointly":
                    name = part.what.partition("=")[0]
                    sizes[name] = sizes.get(name, 0.0) + part.value
        by_reasons = sorted(sizes, key=lambda name: -sizes[name])
        right += by_data[:2] == by_reasons[:2] == ["c3[0]", "c1[0]"]
    assert right >= least


def test_figures_of_importance(tmp_path):
    model, dataset = fitted(tmp_path, 0, "linear")
    with Workers(1) as workers:
        first, again = (importances(model, dataset, workers) for _ in range(2))
        assert first == again  # chance comes from the seed alone
        worst, best = first[-1], first[0]
        assert best.loss > 10 * best.error and best.accuracy > 0.1 and abs(worst.loss) < 0.1
        assert (best.column, best.offset) == ("c3", 0)
        with pytest.raises(DataError, match="labelled data"):
            importances(model, replace(dataset, labels=None), workers)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_attributes_go_by_how_their_names_begin(kernel):
    generator = np.random.default_rng(0)
    X = [[{"w": str(generator.integers(6)), "next": {"w": str(generator.integers(3))}, "n=x": 1.0} for _ in range(3)]
         for _ in range(60)]  # fmt: skip
    y = [["ab"[int(one["w"]) % 2] for one in x] for x in X]
    crf = KernelCRF(kernel=kernel, sigma2=3, **({} if kernel == "linear" else {"size": 20})).fit(X, y)
    dataset = crf.model_.encoding.encode(corpus_of(X, ITEMS, y))
    with Workers(1) as workers:
        found = importances(crf.model_, dataset, workers)
    assert found[0].name == "w" and {one.name for one in found} == {"w", "next:w", "n"}
    assert found[0].loss > 0.3 and all(abs(one.loss) < 0.1 for one in found[1:])
    assert found[-1].offset is None


def test_features_of_a_column_are_shuffled_together(tmp_path):
    """A word with its affixes and conjunctions, in the place of contradictions among them."""
    generator = np.random.default_rng(1)
    rows = ["".join(f"{'abcdef'[w]}x\t{generator.integers(9)}\t{'PQ'[w % 2]}\n" for w in generator.integers(6, size=5))
            for _ in range(40)]  # fmt: skip
    (tmp_path / "data").write_text("\n".join(rows))
    features = [
        {"column": "c0"}, {"column": "c0", "transform": "prefix", "length": 1}, {"column": "c1", "type": "categorical"},
        {"conjunction": ["c0", "c1[1]"]},
    ]  # fmt: skip
    corpus = read_corpus(tmp_path / "data")
    config, _ = configured({"features": [{**one, "window": 0} for one in features]}, {"sigma2": 1.0}, corpus, "test")
    encoding, dataset = fit_encoding(config, corpus)
    with Workers(1) as workers:
        model = train(encoding, dataset, config, workers=workers)[0]
        found = {one.name: one for one in importances(model, dataset, workers, 1)}
    assert next(iter(found)) == "c0[0]" and set(found) == {"c0[0]", "c1[0]", "c1[1]"}
    assert found["c0[0]"].loss > 1
    # Another word after this one, in the conjunction alone: the word that it is about stays in it.
    assert abs(found["c1[1]"].loss) < 0.1


def test_numbers_go_with_their_missing_values(tmp_path):
    (tmp_path / "data").write_text("1\t0\ta\n\t2\tb\n3\t1\ta\n\n2\t1\tb\n" * 3)
    corpus = read_corpus(tmp_path / "data")
    options = {"sigma2": 1.0, "plain": True, "missing_indicator": True, "kernel": "linear", "window": [0]}
    config, _ = configured({}, options, corpus, "test")
    encoding, dataset = fit_encoding(config, corpus)
    with Workers(1) as workers:
        model = train(encoding, dataset, config, workers=workers)[0]
        found = {one.name for one in importances(model, dataset, workers, 1)}
    assert found == {"c0[0]", "c1[0]"}


def test_lines_of_templates_go_by_the_columns_they_see(tmp_path):
    (tmp_path / "data").write_text("u\tv\ta\nw\tv\tb\n\nu\tz\ta\n\n" * 4)
    config = parse_config(load_template("U0:%x[0,0]\nU1:%x[0,0]/%x[-1,1]\nU2:%x[-1,1]\n", "t"), "t")
    encoding, dataset = fit_encoding(config, read_corpus(tmp_path / "data"))
    with Workers(1) as workers:
        model = train(
            encoding, dataset, replace(config, training=replace(config.training, sigma2=1.0)), workers=workers
        )[0]
        found = {one.name for one in importances(model, dataset, workers, 1)}
    assert found == {"c0[0]", "c1[-1]"}
