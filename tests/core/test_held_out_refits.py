"""Figures of held-out data are those of models that never saw it, whatever looks at labels or counts.

Each fold of a search is compared with a model that was trained on the training part alone, from its
text on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from test_shard_training import prepared

from kcrf_core import fit_encoding, parse_config
from kcrf_core.chains import chain, pieces_of
from kcrf_core.corpora import AttributeRows, CodedColumn, Corpus
from kcrf_core.maps import explicit
from kcrf_core.scoring import SMALLEST_PROBABILITY, choose_yardstick
from kcrf_core.selection.cross_validation import Division, cut_parts, make_plan, run_plan
from kcrf_core.selection.grid import Setting
from kcrf_core.training import (
    HoldOut,
    Pieces,
    Split,
    Splits,
    calibrating,
    fit_calibration,
    judge,
    make_splits,
    prior_search,
    problem_of,
    scored_parts,
    structure,
    train,
    train_shards,
)
from kcrf_core.training.training import TrainingRun, TrainOptions

FOLDS = 3
LABELS = ("B-A", "I-A", "B-C", "I-C", "O")
OBSERVED = {"observed_features": True}


def drawn_corpus(rng, sequences=30, words=14, rare=None, noise=0.3):
    """Spans that follow words loosely; words, pairs with labels, and transitions may be seen once."""
    columns, labels, lengths = ([], []), [], rng.integers(3, 9, sequences)
    for length in lengths.tolist():
        before = "O"
        for _ in range(length):
            word = min(int(rng.exponential(words / 4)), words - 1)
            kind = "AC"[rng.integers(2) if rng.random() < noise else word % 2]
            inside = word % 3 > 0 if rng.random() > 2 * noise else rng.random() < 0.5
            goes_on = before != "O" and rng.random() < 0.5
            before = f"I{before[1:]}" if goes_on else f"B-{kind}" if inside else "O"
            columns[0].append(f"w{word}")
            columns[1].append(f"t{(word + int(rng.integers(3))) % 4}")
            labels.append(before)
    if rare is not None:
        labels[int(lengths[0])] = rare  # in the second sequence alone
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Corpus("drawn", (*columns, labels), offsets, np.arange(1, len(labels) + 1))


@dataclass
class Figures:
    """Of each held-out sequence, one fold after another."""

    logs: np.ndarray  # [units] sums of log p(y_t | x)
    sequence_logs: np.ndarray  # [units] log p(y | x)
    counts: dict[str, np.ndarray]  # [units, k] of the yardstick, by decoder


def number_of_fold(corpus):
    """Sequences are dealt by turns."""
    return np.arange(corpus.sequences) % FOLDS


def splits_of(corpus):
    offsets, number = corpus.offsets, number_of_fold(corpus)
    every = Pieces(offsets[:-1], offsets[1:], np.arange(corpus.sequences))
    splits = [Split(every.take(number != fold), every.take(number == fold)) for fold in range(FOLDS)]
    return Splits(tuple(splits), "sequences", int(offsets[-1]))


def refits(config, corpus, splits, labels, workers, bonus=0.0, **options):
    """Figures of models that were trained on the training part of each fold, to the last digits."""
    yardstick = choose_yardstick(labels, config.training.metric).of_labels
    logs, sequence_logs, counts = [], [], {}
    floor = math.log(SMALLEST_PROBABILITY)
    for split in splits.splits:
        rest, test = corpus.subset(split.fit.unit), corpus.subset(split.held.unit)
        encoding, dataset = fit_encoding(config, rest)
        model, _ = TrainingRun(encoding, dataset, config, workers, TrainOptions(**options)).run()
        held_out = encoding.encode(test)
        node, known = model.infer(held_out).marginals.node, held_out.known_labels
        gold = np.where(known >= 0, node[np.arange(len(known)), np.maximum(known, 0)], 0.0)
        logs.append(np.add.reduceat(np.log(np.maximum(gold, SMALLEST_PROBABILITY)), held_out.offsets[:-1]))
        scores, edges = model.potentials(held_out)
        of_paths = chain.path_scores(scores, edges, held_out.offsets, np.maximum(known, 0))
        log_p = of_paths - chain.marginals(scores, edges, held_out.offsets).log_z
        impossible = np.isneginf(log_p) | (np.minimum.reduceat(known, held_out.offsets[:-1]) < 0)
        sequence_logs.append(np.where(impossible, floor * np.diff(held_out.offsets), log_p))
        numbers = np.array([labels.index(label) for label in test.columns[-1]])
        decoders = {"viterbi": ("viterbi", 0.0), "posterior": ("posterior", 0.0)}
        for name, (decode, span_bonus) in (decoders | ({"bonus": ("viterbi", bonus)} if bonus else {})).items():
            best = replace(model, decode=decode, span_bonus=span_bonus).tag(held_out, workers)
            best = np.array([labels.index(model.labels[y]) for y in best])
            counts.setdefault(name, []).append(yardstick.counts(numbers, best, None, held_out.offsets))
    counts = {name: np.concatenate(parts) for name, parts in counts.items()}
    return Figures(np.concatenate(logs), np.concatenate(sequence_logs), counts)


def assert_same(held_out, config, corpus, labels, workers, **options):
    """Compare log p, and labels by each decoder, of which two may be equally good in a sequence."""
    bonus = held_out.decoder.span_bonus
    expected = refits(config, corpus, held_out.splits, labels, workers, bonus, **options)
    np.testing.assert_allclose(held_out.log_counts[:, 0], expected.logs, rtol=1e-3, atol=1e-3)
    for name, counts in expected.counts.items():
        assert (held_out.counts[name] != counts).any(axis=1).sum() <= 1


def assert_judged_as_refits(config, corpus, workers, **options):
    encoding, dataset = fit_encoding(config, corpus)
    run = TrainingRun(encoding, dataset, config, workers, TrainOptions(**options))
    held_out = run.judge(splits_of(corpus)).judged
    assert_same(held_out, config, corpus, encoding.labels, workers, **options)
    return held_out


def config_of(training=None, terms=None, features=None, **more):
    words = {"column": "c0", "window": [-1, 0, 1]}
    tags = {"column": "c1", "window": [0], "min_count": 1}
    both = {"conjunction": ["c0", "c1"], "window": [0, 1]}
    training = {"sigma2": 2.0, "precision": "double", "tolerance": 1e-8, **(training or {})}
    terms = terms or [{"name": "node"}, {"type": "edge"}]
    return parse_config({"features": features or [words, tags, both], "terms": terms, "training": training, **more})


PAIRS = [
    {"name": "linear", "features": ["c1"]},
    {"name": "pairs", "features": ["c0", "c1"], "kernel": {"type": "poly", "degree": 2, "gamma": 0.5, "coef0": 1.0},
     "map": {"type": "explicit", "cut_off": 2}},
    {"type": "edge"},
]  # fmt: skip
SEEN = [{"name": "node"}, {"name": "edge", "type": "seen-transitions"}]
EDGE_X = [{"name": "node"}, {"name": "both", "type": "edge-x", "features": ["c1"]}, {"type": "edge"}]
SECOND = [{"name": "node"}, {"type": "edge"}, {"type": "edge2"}]
SETTINGS = {
    "all pairs": {},
    "observed features": {"training": OBSERVED},
    "observed features of transitions": {"training": OBSERVED, "terms": EDGE_X},
    "observed transitions": {"training": {"observed_transitions": True}},
    "transitions that were seen": {"rules": {"forbid": ["unseen"]}},
    "weights of transitions that were seen": {"terms": SEEN},
    "second order": {"training": {"observed_transitions": True}, "terms": SECOND},
    "least counts": {"min_count": 3},
    "least counts, observed features": {"min_count": 3, "training": OBSERVED},
    "cut-off of conjunctions": {"terms": PAIRS},
    "cut-off of conjunctions, observed features": {"terms": PAIRS, "training": OBSERVED},
    "L1": {"training": {"c1": 0.2}},
    "L1, observed features": {"training": {"c1": 0.2, **OBSERVED}},
    "accuracy": {"training": {"metric": "accuracy", **OBSERVED}},
}


@pytest.fixture(autouse=True)
def exact(monkeypatch):
    """Fits of choices go on to the last digits."""
    monkeypatch.setattr(prior_search, "PATH_TOLERANCE", 1e-9)
    monkeypatch.setattr(structure, "TOLERANCE", 1e-9)
    for module, name in ((prior_search, "PATH_PASSES"), (prior_search, "ROUNDED_AFTER"), (structure, "MAX_PASSES")):
        monkeypatch.setattr(module, name, 10_000)


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_search_judges_as_models_that_never_saw_the_fold(rng, workers, setting):
    assert_judged_as_refits(config_of(**SETTINGS[setting]), drawn_corpus(rng), workers)


@pytest.mark.parametrize("setting", ["all pairs", "observed features", "least counts", "L1, observed features"])
def test_the_final_fit_begins_at_the_parameters_of_a_fold(rng, workers, setting):
    """With a single fold, these are the optimum of its training part."""
    corpus, config = drawn_corpus(rng), config_of(**SETTINGS[setting])
    split = splits_of(corpus).splits[0]
    encoding, dataset = fit_encoding(config, corpus)
    run = TrainingRun(encoding, dataset, config, workers, TrainOptions())
    prior = run.judge(Splits((split,), "sequences", corpus.positions))
    sample = run.fit_terms().pieces(split.fit)
    encoding, dataset = fit_encoding(config, corpus.subset(split.fit.unit))
    _, report = train(encoding, dataset, config, workers=workers)
    point = sample.objective(prior.sigma2).evaluate(prior.theta)
    np.testing.assert_allclose(point.value, report.result.value, rtol=1e-6)


@pytest.mark.parametrize("setting", ["all pairs", "observed features", "L1", "second order", "cut-off of conjunctions"])
def test_a_label_of_one_fold_is_impossible_in_it(rng, workers, setting):
    corpus = drawn_corpus(rng, rare="B-D")
    held_out = assert_judged_as_refits(config_of(**SETTINGS[setting]), corpus, workers)
    # The second sequence is the first of the second fold.
    second = int((number_of_fold(corpus) == 0).sum())
    assert held_out.log_counts[second, 0] < math.log(SMALLEST_PROBABILITY) < held_out.log_counts[:second, 0].min()


def test_of_three_labels_a_fold_may_have_two(rng, workers):
    """Two labels have one column of weights."""
    corpus = drawn_corpus(rng)
    labels = [label[-1] if label != "O" else "A" for label in corpus.columns[-1]]
    labels[int(corpus.offsets[1])] = "X"
    corpus = replace(corpus, columns=(*corpus.columns[:-1], labels))
    for training in ({}, OBSERVED, {"c1": 0.2}):
        assert_judged_as_refits(config_of(training), corpus, workers)


@pytest.mark.parametrize("training", [OBSERVED, {"c1": 0.2}, {"c1": 0.2, **OBSERVED}], ids=str)
def test_columns_that_are_merged_are_judged_as_those_of_the_training_part(rng, workers, monkeypatch, training):
    """More features occur only together in a training part than in all data."""
    monkeypatch.setattr(explicit, "FEWEST_FEATURES", 10)
    assert_judged_as_refits(config_of(training), drawn_corpus(rng, words=40), workers)


def test_frequent_pairs_are_those_of_the_training_part(rng, workers):
    for training in ({}, OBSERVED):
        config = config_of(training, SEEN)
        assert_judged_as_refits(config, drawn_corpus(rng), workers, min_frequency=3.0)


@pytest.mark.parametrize("kind", ["templates", "attributes"])
def test_attributes_are_counted_in_the_training_part(rng, workers, kind):
    corpus = drawn_corpus(rng)
    if kind == "templates":
        # The first two lines give the same strings.
        lines = ("U:%x[0,0]", "U:%x[-1,0]", "U1:%x[0,0]/%x[0,1]")
        features = [{"name": "templates", "type": "templates", "templates": list(lines)}]
    else:
        names = [f"{word}|{tag}" for word, tag in zip(*corpus.columns[:2], strict=True)]
        every = [name for both in zip(corpus.columns[0], names, strict=True) for name in both]
        rows = AttributeRows(2 * np.arange(len(names) + 1), CodedColumn.of(every), np.ones(len(every)))
        corpus = replace(corpus, columns=corpus.columns[-1:], attributes=rows)
        features = [{"name": "attributes", "type": "attributes"}]
    for training in ({}, OBSERVED):
        assert_judged_as_refits(config_of(training, features=features, min_count=3), corpus, workers)


def test_values_that_are_looked_up_are_counted_in_the_training_part(rng, workers, tmp_path):
    # Other words have no path.
    paths = [f"{word % 7:03b}{word % 2}\tw{word}\t1" for word in range(10)]
    (tmp_path / "paths.txt").write_text("\n".join(paths) + "\n")
    features = [{"column": "c1", "window": [0]}, {"column": "c0", "lookup": "clusters", "length": 3, "window": [0, 1]}]
    where = {"clusters": str(tmp_path / "paths.txt"), "lexicons": {"few": ["w3", "w12"]}, "min_count": 20}
    features.append({"column": "c0", "lookup": "few", "window": [-1, 0]})
    for training in ({}, OBSERVED):
        assert_judged_as_refits(config_of(training, features=features, **where), drawn_corpus(rng), workers)


@pytest.mark.parametrize("training", [{}, OBSERVED, {"observed_transitions": True}], ids=str)
def test_terms_are_chosen_as_by_models_that_never_saw_the_fold(rng, workers, training):
    """The gain in log p of held-out sequences, some of which are impossible."""
    corpus = drawn_corpus(rng, rare="B-D", noise=0.1)
    features = [{"column": "c0", "window": [0]}, {"column": "c1", "window": [0]}]
    words, edge = {"name": "words", "features": ["c0"]}, {"name": "edge", "type": "edge"}
    config = config_of(training, [words, {"name": "tags", "features": ["c1"]}, edge], features)
    encoding, dataset = fit_encoding(config, corpus)
    hold_out = HoldOut(folds=number_of_fold(corpus))
    options = TrainOptions(select_terms=True, hold_out=hold_out)
    _, report = TrainingRun(encoding, dataset, config, workers, options).run()
    judged = {judgement.term: judgement for judgement in report.structure.judgements}
    with_words = config_of(training, [words, edge], features)
    # Transitions alone: words that always are the same say nothing.
    same = [{"column": "same", "window": [0]}]
    without = parse_config({**with_words.to_dict(), "columns": ["c0", "c1", "same", "label"], "features": same,
                            "terms": [{"name": "same", "sigma2": 1e-9}, edge]})  # fmt: skip
    columns = (*corpus.columns[:2], ["x"] * corpus.positions, corpus.columns[-1])
    splits = splits_of(corpus)
    before = refits(without, replace(corpus, columns=columns), splits, encoding.labels, workers).sequence_logs
    after = refits(with_words, corpus, splits, encoding.labels, workers).sequence_logs
    assert judged["words"].step == 0
    np.testing.assert_allclose(judged["words"].held_out, (after - before).sum(), rtol=1e-4)


@pytest.mark.parametrize("training", [OBSERVED, {"observed_transitions": True}], ids=str)
def test_shards_are_judged_as_one_file(rng, workers, tmp_path, training):
    """Of a folder of shards, too, sigma2 is chosen by models that never saw the fold."""
    corpus = drawn_corpus(rng)
    raw = config_of({**training, "sigma2": "auto"}, min_count=2)
    rows = ["\t".join(row) for row in zip(*corpus.columns, strict=True)]
    cut = np.split(np.array(rows), corpus.offsets[1:-1])
    text = "\n\n".join("\n".join(sequence) for sequence in cut) + "\n"
    folder, encoding, _ = prepared(tmp_path, text, raw)
    hold_out = HoldOut(folds=number_of_fold(corpus))
    _, report = train_shards(folder, raw, workers=workers, hold_out=hold_out)
    terms = [{"name": "node", "sigma2": report.sigma2["node"]}, {"type": "edge", "sigma2": report.sigma2["edge"]}]
    assert_same(report.held_out, config_of(training, terms, min_count=2), corpus, encoding.labels, workers)


def test_blocks_are_judged_by_the_other_blocks(rng, workers):
    """Beginning and end of the sequence are cut off from most blocks; windows look across cuts."""
    corpus = drawn_corpus(rng, sequences=40)
    corpus = replace(corpus, offsets=corpus.offsets[[0, -1]])
    config = config_of({**OBSERVED, "observed_transitions": True}, features=[{"column": "c0", "window": [-1, 0, 1]}])
    encoding, dataset = fit_encoding(config, corpus)
    splits = make_splits(problem_of(encoding, dataset), seed=0, folds=FOLDS)
    assert splits.kind == "blocks"
    held_out = judge(encoding, dataset, config, splits=splits, workers=workers).judged
    logs = []
    for split in splits.splits:
        parts = []
        for pieces in (split.fit, split.held):
            _, cut, sequences = pieces_of(dataset.offsets, pieces.first, pieces.last, None)
            parts.append(dataset.pieces(pieces.first, pieces.last, sequences, cut))
        rest, test = parts
        model, _ = train(encoding, rest, config, workers=workers)
        log_p = np.zeros(test.positions)
        for cut_model, part, rows in cut_parts(model, test):
            node = cut_model.infer(part).marginals.node
            log_p[rows] = np.log(np.maximum(node[np.arange(part.positions), part.labels], SMALLEST_PROBABILITY))
        logs.append(np.add.reduceat(log_p, test.offsets[:-1]))
    np.testing.assert_allclose(held_out.log_counts[:, 0], np.concatenate(logs), rtol=1e-3, atol=1e-3)


def test_transitions_at_ends_may_not_be_seen_in_a_training_part(rng, workers):
    """The first block alone has the beginning of the sequence, and the last one its end."""
    corpus = drawn_corpus(rng, sequences=40)
    corpus = replace(corpus, offsets=corpus.offsets[[0, -1]])
    config = config_of(features=[{"column": "c0", "window": [0]}], rules={"forbid": ["unseen"]})
    encoding, dataset = fit_encoding(config, corpus)
    splits = make_splits(problem_of(encoding, dataset), seed=0, folds=FOLDS)
    held_out = judge(encoding, dataset, config, splits=splits, workers=workers).judged
    assert np.isfinite(held_out.log_counts).all() and held_out.log_counts.min() > -1000


def test_a_held_out_sequence_may_be_impossible_as_a_whole(workers):
    """No sequence of three positions can be made of the transitions of the other folds."""
    lengths = [2] * 8 + [3]
    labels = ["a", "b"] * 8 + ["a", "b", "c"]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    corpus = Corpus("made", (["x", "y"] * 8 + ["x", "y", "z"], labels), offsets, np.arange(1, 20))
    config = config_of({"observed_transitions": True}, features=[{"column": "c0", "window": [0]}])
    encoding, dataset = fit_encoding(config, corpus)
    held_out = judge(encoding, dataset, config, splits=splits_of(corpus), workers=workers).judged
    assert np.isfinite(held_out.log_counts).all()
    assert held_out.log_counts[-1, 0] < math.log(SMALLEST_PROBABILITY)
    assert held_out.counts["viterbi"][-1].tolist()[0] < 3


def test_labels_that_are_not_observed_may_leave_nothing_to_a_fold(workers):
    """Only a second fold shows that c can follow b, which a hidden label of the first one needs."""
    rows = ["a b", "b c", "a ? c", "a b", "a b", "a b b", "a a", "b b", "b a"]
    labels = [label for row in rows for label in row.split()]
    offsets = np.concatenate([[0], np.cumsum([len(row.split()) for row in rows])])
    columns = ([f"w{number % 3}" for number in range(len(labels))], labels)
    corpus = Corpus("made", columns, offsets, np.arange(1, len(labels) + 1))
    features = [{"column": "c0", "window": [0]}]
    config = config_of({"observed_transitions": True}, features=features, unobserved="?")
    encoding, dataset = fit_encoding(config, corpus)
    held_out = judge(encoding, dataset, config, splits=splits_of(corpus), workers=workers).judged
    assert np.isfinite(held_out.log_counts).all()


def test_calibration_does_not_learn_from_labels_that_a_fold_lacks(rng, workers, monkeypatch):
    """They have no gold label there; values that are too rare in the other folds are unknown."""
    corpus, config = drawn_corpus(rng, rare="B-D"), config_of({"tolerance": 1e-3}, min_count=3)
    encoding, dataset = fit_encoding(config, corpus)
    model, report = train(encoding, dataset, config, workers=workers)
    judged = []

    def recorded(fitted, held_out, rows, workers):
        judged.append(held_out)
        return scored_parts(fitted, held_out, rows, workers)

    monkeypatch.setattr(calibrating, "scored_parts", recorded)
    hold_out = HoldOut(folds=number_of_fold(corpus))
    fit_calibration(model, report, encoding, dataset, config, workers, hold_out)
    assert len(judged) == FOLDS
    for fold, held_out in enumerate(judged):
        inside = number_of_fold(corpus) == fold
        rest, test = (corpus.subset(np.flatnonzero(part)) for part in (~inside, inside))
        refitted, _ = fit_encoding(config, rest)
        expected = refitted.encode(test)
        np.testing.assert_array_equal(held_out.known_labels < 0, expected.known_labels < 0)
        np.testing.assert_array_equal(held_out.codes < 0, expected.codes < 0)
    assert sum((held_out.known_labels < 0).sum() for held_out in judged) == 1


def test_cross_validation_counts_a_label_that_a_fold_lacks(rng, workers):
    """Its log p is the floor."""
    corpus, config = drawn_corpus(rng, rare="B-D"), config_of({"metric": "log-loss"})
    plan = make_plan(corpus, config.to_dict(), "test", (Setting({}, {}),), Division(numbers=number_of_fold(corpus)))
    results = {task.fold: result for task, result in run_plan(plan).items()}
    expected = refits(config, corpus, splits_of(corpus), plan.labels, workers).logs
    numbers = np.sort(number_of_fold(corpus))
    for fold in range(FOLDS):
        sums = expected[numbers == fold].sum()
        np.testing.assert_allclose(results[fold]["log_loss"], -sums / results[fold]["positions"], rtol=1e-4)
    assert expected.min() < math.log(SMALLEST_PROBABILITY)
