"""Importance and explanations of data in which it is known what matters, and how much a permutation costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kcrf_core import KernelCRF
from kcrf_core.config import load_template, parse_config
from kcrf_core.corpora import ITEMS, Corpus, corpus_of, read_corpus
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
        return train(encoding, dataset, config, workers=workers)[0], dataset, corpus


@pytest.mark.parametrize(("tasks", "least"), [(4, 4), pytest.param(20, 19, marks=pytest.mark.slow)])
def test_the_ranking_is_right(tmp_path, tasks, least):
    right = 0
    for seed in range(tasks):
        model, dataset, corpus = fitted(tmp_path, seed)
        with Workers(1) as workers:
            found = importances(model, corpus, workers, repetitions=1)
            (decoded,) = Decoder(model, Wishes(explain=9)).decode(dataset, "data", workers)
        by_data = [f"{one.column}[0]" for one in found]
        sizes = {}
        for one in decoded.explanations:
            for part in one.contributions:
                if part.term != "edge" and part.what != "jointly":
                    name = part.what.partition("=")[0]
                    sizes[name] = sizes.get(name, 0.0) + part.value
        by_reasons = sorted(sizes, key=lambda name: -sizes[name])
        right += by_data[:2] == by_reasons[:2] == ["c3[0]", "c1[0]"]
    assert right >= least


@pytest.mark.parametrize("also_an_input", [False, True])
def test_names_of_groups_have_no_importance(also_an_input):
    """Shuffling them breaks the scaling; a column that is an input, too, has its importance as an input."""
    generator = np.random.default_rng(0)
    level, rows, y = 20 * generator.normal(size=4), [], []
    for s in range(24):
        y.append([str(label) for label in generator.choice(["a", "b"], 6)])
        values = level[s % 4] + (np.array(y[-1]) == "b") + 0.2 * generator.normal(size=6)
        rows.append([[f"g{s % 4}", f"{value:.6f}"] for value in values])
    scaled = {"name": "x", "columns": ["c1"], "type": "real", "scale": "group", "group": "c0", "window": [0]}
    features = [scaled, {"column": "c0", "window": [0]}] if also_an_input else [scaled]
    config = parse_config({"features": features, "training": {"sigma2": 10.0}})
    corpus = corpus_of(rows, "columns", y)
    encoding, dataset = fit_encoding(config, corpus)
    with Workers(1) as workers:
        model = train(encoding, dataset, config, workers=workers)[0]
        found = importances(model, corpus, workers, repetitions=1)
    assert {one.column for one in found} == ({"c0", "c1"} if also_an_input else {"c1"})


def test_figures_of_importance(tmp_path):
    model, _, corpus = fitted(tmp_path, 0, "linear")
    with Workers(1) as workers:
        first, again = (importances(model, corpus, workers) for _ in range(2))
        assert first == again  # chance comes from the seed alone
        worst, best = first[-1], first[0]
        assert best.loss > 10 * best.error and best.accuracy > 0.1 and abs(worst.loss) < 0.1
        assert best.column == "c3"
        with pytest.raises(DataError, match="labelled data"):
            importances(model, replace(corpus, columns=corpus.columns[:-1]), workers)


def test_attributes_are_refused():
    X, y = [[{"w": "a"}, {"w": "b"}]] * 3, [["p", "q"]] * 3
    crf = KernelCRF(sigma2=3).fit(X, y)
    with Workers(1) as workers, pytest.raises(DataError, match="files of columns"):
        importances(crf.model_, corpus_of(X, ITEMS, y), workers)


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
        found = {one.column: one for one in importances(model, corpus, workers, 1)}
    assert list(found) == ["c0", "c1"]
    assert found["c0"].loss > 1 and abs(found["c1"].loss) < 0.1


def test_numbers_go_with_their_missing_values(tmp_path):
    (tmp_path / "data").write_text("1\t0\ta\n\t2\tb\n3\t1\ta\n\n2\t1\tb\n" * 3)
    corpus = read_corpus(tmp_path / "data")
    options = {"sigma2": 1.0, "plain": True, "missing_indicator": True, "kernel": "linear", "window": [0]}
    config, _ = configured({}, options, corpus, "test")
    encoding, dataset = fit_encoding(config, corpus)
    with Workers(1) as workers:
        model = train(encoding, dataset, config, workers=workers)[0]
        found = {one.column for one in importances(model, corpus, workers, 1)}
    assert found == {"c0", "c1"}


def test_lines_of_templates_go_by_the_columns_they_see(tmp_path):
    (tmp_path / "data").write_text("u\tv\ta\nw\tv\tb\n\nu\tz\ta\n\n" * 4)
    config = parse_config(load_template("U0:%x[0,0]\nU1:%x[0,0]/%x[-1,1]\nU2:%x[-1,1]\n", "t"), "t")
    corpus = read_corpus(tmp_path / "data")
    encoding, dataset = fit_encoding(config, corpus)
    with Workers(1) as workers:
        model = train(
            encoding, dataset, replace(config, training=replace(config.training, sigma2=1.0)), workers=workers
        )[0]
        found = {one.column for one in importances(model, corpus, workers, 1)}
    assert found == {"c0", "c1"}


def test_rows_of_vectors_are_shuffled_as_a_whole(rng):
    X = [[{"emb": rng.normal(size=3), "w": "u"} for _ in range(4)] for _ in range(30)]
    y = [["ab"[int(one["emb"].sum() > 0)] for one in x] for x in X]
    rows = np.array([one["emb"] for x in X for one in x])
    columns = [["u"] * 120, [label for labels in y for label in labels]]
    corpus = Corpus("toy", tuple(columns), np.arange(0, 121, 4), np.arange(1, 121), vectors={"emb": rows})
    config = parse_config({"training": {"sigma2": 3.0}})
    encoding, dataset = fit_encoding(config, corpus)
    with Workers(1) as workers:
        model = train(encoding, dataset, config, workers=workers)[0]
        found = importances(model, corpus, workers)
    assert [one.column for one in found] == ["emb", "c0"] and found[0].loss > 0.3 and found[1].loss == 0
