"""Folds: every sequence once, groups whole, labels spread, the same for the same seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kcrf_core.corpora import Corpus
from kcrf_core.encoding import fit_encoding
from kcrf_core.errors import ConfigError, DataError
from kcrf_core.selection import Division, base_seed, make_plan, make_settings
from kcrf_core.training import read_folds
from kcrf_core.training.held_out import deal


def corpus_of(sequences):
    """Sequences of rows of values."""
    rows = [row for sequence in sequences for row in sequence]
    offsets = np.cumsum([0, *map(len, sequences)])
    columns = tuple(list(column) for column in zip(*rows, strict=True))
    return Corpus("data", columns, offsets, np.arange(1, len(rows) + 1))


def random_corpus(sequences, groups=None, seed=0):
    rng = np.random.default_rng(seed)
    out = []
    for s in range(sequences):
        group = f"g{s if groups is None else rng.integers(groups)}"
        rare = ["R"] if s % 10 == 3 else []
        labels = [*rng.choice(["X", "Y"], rng.integers(1, 9), p=[0.8, 0.2]), *rare]
        out.append([[group, "w", str(label)] for label in labels])
    return corpus_of(out)


def plan_of(corpus, division, seed=0):
    return make_plan(corpus, {}, "test", make_settings({}, {}), replace(division, seed=seed))


def test_each_sequence_is_judged_once():
    corpus = random_corpus(53)
    for division in (Division(5), Division(5, stratify=True), Division(4, group="c0"), Division(53)):
        plan = plan_of(corpus, division)
        assert sorted(np.concatenate([fold.test for fold in plan.folds])) == list(range(53))
        assert all(len(fold.test) for fold in plan.folds)


def test_folds_depend_on_the_seed_alone():
    corpus = random_corpus(40, groups=15)
    for division in (Division(5), Division(5, stratify=True), Division(5, group="c0")):
        first, again, other = (plan_of(corpus, division, seed=seed) for seed in (1, 1, 2))
        assert all(np.array_equal(a.test, b.test) for a, b in zip(first.folds, again.folds, strict=True))
        assert any(not np.array_equal(a.test, b.test) for a, b in zip(first.folds, other.folds, strict=True))


@pytest.mark.parametrize("stratify", [False, True])
def test_groups_stay_together_and_folds_are_about_equal(stratify):
    corpus = random_corpus(200, groups=40)
    plan = plan_of(corpus, Division(5, group="c0", stratify=stratify))
    group = np.array(corpus.columns[0])[corpus.offsets[:-1]]
    held = [set(group[fold.test]) for fold in plan.folds]
    assert sum(map(len, held)) == len(set(group))
    positions = [np.diff(corpus.offsets)[fold.test].sum() for fold in plan.folds]
    assert max(positions) < 1.2 * min(positions)


def test_strata_spread_rare_labels():
    corpus = random_corpus(50)  # 5 of them have an R
    rare = np.array([s % 10 == 3 for s in range(50)])
    counts = [rare[fold.test].sum() for fold in plan_of(corpus, Division(5, stratify=True)).folds]
    assert counts == [1] * 5
    assert any(
        [rare[fold.test].sum() for fold in plan_of(corpus, Division(5), seed=s).folds] != [1] * 5 for s in (0, 1)
    )


def test_strata_are_more_even_than_chance():
    corpus = random_corpus(120, seed=3)
    y = np.array([label == "Y" for label in corpus.columns[-1]], dtype=float)
    per_sequence = np.add.reduceat(y, corpus.offsets[:-1])
    lengths = np.diff(corpus.offsets)

    def unevenness(division):
        shares = [per_sequence[f.test].sum() / lengths[f.test].sum() for f in plan_of(corpus, division).folds]
        return np.std(shares)

    assert unevenness(Division(6, stratify=True)) < 0.3 * unevenness(Division(6))


def test_dealing_fills_empty_folds_first():
    folds = deal(np.eye(4) + 1, 4, np.random.default_rng(0))
    assert sorted(folds) == [0, 1, 2, 3]


def test_folds_of_a_file_are_kept():
    corpus = random_corpus(60)
    numbers = np.arange(60) % 6 + 1
    plan = plan_of(corpus, Division(numbers=numbers))
    assert [fold.name for fold in plan.folds] == [1, 2, 3, 4, 5, 6]
    assert all(set(numbers[fold.test]) == {fold.name} for fold in plan.folds)


def test_the_group_is_no_feature_unless_it_is_asked_for():
    corpus = random_corpus(20, groups=9)
    plan = plan_of(corpus, Division(2, group="c0"))
    assert {column for f in plan.config(0, corpus).features for column in f.columns} == {"c1"}
    assert fit_encoding(plan.config(0), corpus)[0].names == ["c1"]
    raw = {"features": [{"column": "c0"}, {"column": "c1"}]}
    plan = make_plan(corpus, raw, "test", make_settings({}, {}), Division(2, group="c0"))
    assert [f.name for f in plan.config(0).features] == ["c0", "c1"]
    only = corpus_of([[["g", "X"]], [["h", "Y"]]])
    with pytest.raises(ConfigError, match="no feature is left"):
        plan_of(only, Division(2, group="c0"))


def test_groups_that_are_none():
    corpus = corpus_of([[["a", "w", "X"], ["b", "w", "X"]], [["b", "w", "Y"]]])
    with pytest.raises(DataError, match=r"data:2: the column 'c0' changes to 'b'.*one group"):
        plan_of(corpus, Division(2, group="c0"))
    with pytest.raises(ConfigError, match=r"no column 'c7' to group by.*columns: c0, c1"):
        plan_of(corpus, Division(2, group="c7"))
    with pytest.raises(ConfigError, match="is the label"):
        plan_of(corpus, Division(2, group="label"))
    with pytest.raises(DataError, match="1 group cannot make 2 folds"):
        plan_of(corpus_of([[["a", "w", "X"]], [["a", "w", "Y"]]]), Division(2, group="c0"))


def test_fold_files():
    corpus = random_corpus(4)
    assert read_folds("3\n1\r\n 1 \n3\n\n", "f", corpus).tolist() == [3, 1, 1, 3]
    with pytest.raises(DataError, match="f: 3 folds, but data has 4 sequences"):
        read_folds("1\n2\n3\n", "f", corpus)
    with pytest.raises(DataError, match="f:2: '1 2' is not the number"):
        read_folds("1\n1 2\n3\n4\n", "f", corpus)
    with pytest.raises(DataError, match="all sequences are in one fold"):
        read_folds("1\n1\n1\n1\n", "f", corpus)


def test_a_grid_over_seeds_keeps_the_folds():
    assert base_seed({"training": {"seed": 4}}, {}) == 4
    assert base_seed({"training": {"seed": 4}}, {"seed": 5}) == 5
    assert base_seed({}, {}) == 0
