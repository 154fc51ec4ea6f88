"""What is held out: folds, blocks with gaps, chains that are cut, and the search for sigma2 on them."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import oracle
from kcrf_core import fit_encoding, parse_config
from kcrf_core.chains import EDGE, EDGE2, EDGE_X, NODE, Edges, Problem
from kcrf_core.corpora import Corpus
from kcrf_core.errors import ConfigError
from kcrf_core.maps import ExplicitMap
from kcrf_core.objective import ObjectiveTerm
from kcrf_core.objective.solvers import Observer, Stage, Trial
from kcrf_core.scoring import median_run
from kcrf_core.system import Workers, piece_rows
from kcrf_core.training import HoldOut, blocks_of, judge, make_splits, problem_of, train
from listening import Recorder
from problems import on_threads, random_inputs

# Pieces of two sequences of 9 and 5 positions: whole, cut before, cut after, cut on both sides, a single position.
OFFSETS = np.array([0, 9, 14])
FIRST, LAST = np.array([0, 4, 8, 9, 12]), np.array([3, 7, 9, 14, 13])
CUTS = [[False, True], [True, True], [True, False], [False, False], [True, True]]


def cut_problem(rng, Y, hidden=False):
    labels = rng.integers(0, Y, 14).astype(np.int32)
    if hidden:
        labels[[1, 5, 10]] = -2
    return Problem(labels, OFFSETS, np.array([0.5, 2.0]), Y).pieces(FIRST, LAST)


def posterior_of(problem, inputs, kinds, workers, forbidden=None):
    terms = [ObjectiveTerm(kind, 2.0, ExplicitMap.of(inputs, np.float64) if kind.mapped else None) for kind in kinds]
    return on_threads(problem, terms, workers, np.float64, forbidden)


def likelihood_by_enumeration(objective, theta, problem):
    """sum_k w_k log p(observed labels of piece k), with no first and last potentials where a piece is cut."""
    total = 0.0
    for shard in objective.engine.over_chunks(theta, lambda chunk: chunk):
        plain = objective.engine.potentials(theta)
        for k, weight in enumerate(shard.weights):
            rows = slice(int(shard.offsets[k]), int(shard.offsets[k + 1]))
            place = np.flatnonzero(problem.offsets == shard.rows.start + rows.start)[0]
            cut = problem.cut[place]
            start, end = np.where(cut[0], 0.0, plain.start), np.where(cut[1], 0.0, plain.end)
            edges = shard.edges.transitions
            own = edges if edges.ndim == 2 else edges[rows]
            labels, scores = shard.labels[rows], shard.scores[rows]
            paths = list(oracle.labellings(len(labels), problem.label_count))
            totals = np.array([oracle.path_score(scores, own, start, end, path, plain.triples) for path in paths])
            fits = [all(y in (path[t], -2) for t, y in enumerate(labels)) for path in paths]
            total += weight * (np.logaddexp.reduce(totals[fits]) - np.logaddexp.reduce(totals))
    return total


def test_pieces_say_where_they_are_cut(rng):
    problem = cut_problem(rng, 3)
    assert problem.cut.tolist() == CUTS and problem.weights.tolist() == [0.5, 0.5, 0.5, 2.0, 2.0]
    assert problem.subset(np.array([3, 1])).cut.tolist() == [CUTS[3], CUTS[1]]
    again = problem.pieces(np.array([1, 7]), np.array([3, 12]))  # cut once more; the second is whole
    assert again.cut.tolist() == [[True, True], [False, False]]
    assert problem.pieces(np.array([7]), np.array([12])).cut is None


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("Y", [2, 3])
@pytest.mark.parametrize(
    "kinds", [(NODE, EDGE), (NODE,), (NODE, EDGE, EDGE2), (NODE, EDGE_X, EDGE), (NODE, EDGE_X, EDGE, EDGE2)], ids=str
)
def test_cut_chains_against_enumeration(rng, workers, kinds, Y, hidden):
    """P, its gradient and its Hessian, by finite differences of what was enumerated."""
    problem = cut_problem(rng, Y, hidden)
    objective = posterior_of(problem, random_inputs(rng, problem.positions, 1, 2, 3), kinds, workers)
    theta, direction = rng.normal(size=(2, objective.size))
    found, gradient = objective.engine.evaluate(theta)
    assert found == pytest.approx(likelihood_by_enumeration(objective, theta, problem), rel=1e-11)
    step = 1e-5
    slope = [likelihood_by_enumeration(objective, theta + way * step * direction, problem) for way in (1, -1)]
    assert -(gradient @ direction) == pytest.approx((slope[0] - slope[1]) / (2 * step), rel=1e-6, abs=1e-8)
    bend = [objective.engine.evaluate(theta + way * step * direction)[1] for way in (1, -1)]
    product = objective.engine.product(theta, direction)
    np.testing.assert_allclose(product, (bend[0] - bend[1]) / (2 * step), rtol=1e-5, atol=1e-7)


def test_forbidden_first_labels_may_follow_a_cut(rng, workers):
    """I of B, I, O must not begin a sequence, and begins two pieces: only the whole one obeys."""
    none, never = np.zeros(3), np.array([0.0, -np.inf, 0.0])
    forbidden = Edges(np.zeros((3, 3)), never, none)
    problem = cut_problem(rng, 3)
    labels = problem.labels.copy()
    labels[[3, 6]], labels[[0, 7]] = 1, 0
    problem = replace(problem, labels=labels)
    objective = posterior_of(problem, random_inputs(rng, problem.positions, 1, 2, 3), (NODE, EDGE), workers, forbidden)
    theta = rng.normal(size=objective.size)
    found, _ = objective.engine.evaluate(theta)
    assert np.isfinite(found)
    assert found == pytest.approx(likelihood_by_enumeration(objective, theta, problem), rel=1e-11)
    assert objective.engine.predictions(theta).labels["viterbi"][0] != 1


def test_many_cut_pieces_have_the_same_bits_on_any_number_of_threads():
    found = []
    for threads, memory in ((1, None), (1, 0), (2, None), (3, None)):
        rng = np.random.default_rng(2)
        whole = Problem(rng.integers(0, 3, 20_000).astype(np.int32), np.arange(0, 20_001, 100), np.ones(200), 3)
        splits = make_splits(whole, seed=0, wishes=HoldOut(block=30))
        fit = splits.splits[0].fit
        problem = whole.pieces(fit.first, fit.last)
        with Workers(threads, memory) as workers:
            inputs = random_inputs(rng, whole.positions, 1, 2, 3).take(piece_rows(fit.first, fit.last))
            objective = posterior_of(problem, inputs, (NODE, EDGE), workers)
            value, gradient = objective.engine.evaluate(rng.normal(size=objective.size))
            found.append(np.append(value, gradient).tobytes())
    assert problem.cut is not None and len(set(found)) == 1


def runs(rng, lengths, run=5, Y=3):
    """Sequences of runs of one label."""
    labels = [np.repeat(rng.permutation(np.arange(length) % Y), run)[:length] for length in lengths]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Problem(np.concatenate(labels).astype(np.int32), offsets, np.ones(len(lengths)), Y)


def test_few_long_sequences_are_held_out_in_blocks_with_gaps(rng):
    problem = runs(rng, [400, 300, 500])
    assert 5 <= median_run(problem.labels, problem.offsets) <= 10
    splits = make_splits(problem, seed=0, reach=2, folds=3)
    assert (splits.kind, splits.gap, len(splits.splits)) == ("blocks", median_run(problem.labels, problem.offsets), 3)
    held = np.concatenate([piece_rows(split.held.first, split.held.last) for split in splits.splits])
    assert np.array_equal(np.sort(held), np.arange(1200))
    sequence = np.repeat(np.arange(3), [400, 300, 500])
    for split in splits.splits:
        fitted, held = (piece_rows(each.first, each.last) for each in (split.fit, split.held))
        apart = np.abs(fitted[:, None] - held[None, :]) + 10_000 * (sequence[fitted][:, None] != sequence[held])
        assert apart.min() == splits.gap + 1  # nothing nearer, and no more lost than that
        assert (np.diff(split.fit.first) > 0).all() and len(np.unique(fitted)) == len(fitted)


def test_a_window_may_be_the_longer_gap(rng):
    assert make_splits(runs(rng, [400, 300]), seed=0, reach=30).gap == 30


def test_short_sequences_stay_whole_and_many_do(rng):
    assert blocks_of(runs(rng, [12] * 10), None, 2) is None
    assert blocks_of(runs(rng, [400] * 20), None, 2) is None
    assert make_splits(runs(rng, [12] * 10), seed=0, reach=2).kind == "sequences"
    asked = blocks_of(runs(rng, [400] * 20), 100, 2)
    assert len(asked.pieces.first) == 80


def test_groups_and_given_folds_stay_together(rng):
    problem = runs(rng, rng.integers(3, 9, 60))
    groups = rng.integers(0, 12, 60)
    splits = make_splits(problem, seed=1, wishes=HoldOut(groups=groups), folds=4)
    assert splits.kind == "groups" and splits.units == len(np.unique(groups))
    for split in splits.splits:
        assert not set(split.fit.unit) & set(split.held.unit)
    folds = np.arange(60) % 3
    given = make_splits(problem, seed=1, wishes=HoldOut(folds=folds), folds=5)
    found = {tuple(np.unique(folds[split.held.unit])) for split in given.splits}
    assert found == {(0,), (1,), (2,)}
    # More folds than the search can pay for are joined, never divided.
    few = make_splits(problem, seed=1, wishes=HoldOut(folds=folds), folds=2)
    assert sorted(len(np.unique(folds[split.held.unit])) for split in few.splits) == [1, 2]


def test_only_one_way_to_hold_out():
    with pytest.raises(ConfigError, match="give one of them"):
        HoldOut(np.zeros(3), None, 10)


def drawn(rng, sequences, length, words=30, noise=0.25):
    """Labels that words tell, mostly, and that follow each other in runs."""
    of_word = rng.integers(0, 3, words)
    columns, labels = [], []
    for _ in range(sequences * length):
        word = int(rng.integers(words))
        if not labels or rng.random() < 0.3:
            labels.append(int(of_word[word] if rng.random() > noise else rng.integers(3)))
        else:
            labels.append(labels[-1])
        columns.append(f"w{word}")
    N = sequences * length
    return Corpus("toy", (columns, [f"l{y}" for y in labels]), np.arange(0, N + 1, length), np.arange(1, N + 1))


class Trials(Observer):
    def __init__(self):
        self.trials, self.texts = [], []

    def tell(self, event):
        if isinstance(event, Trial):
            self.trials.append(event)
        if hasattr(event, "text") and not isinstance(event, Trial):
            self.texts.append(event.text)


def test_judge_gives_the_counts_of_every_unit_and_the_bytes_of_any_threads(rng):
    corpus, config = drawn(rng, 40, 12), parse_config({})
    encoding, dataset = fit_encoding(config, corpus)
    splits = make_splits(problem_of(encoding, dataset), seed=0, reach=2, folds=3)
    found = []
    for threads in (1, 2, 3):
        with Workers(threads) as workers:
            found.append(judge(encoding, dataset, config, splits=splits, workers=workers))
    first = found[0].judged
    assert first.counts["viterbi"].shape == (40, 2) and first.counts["viterbi"][:, 1].sum() == 480
    assert first.log_probability == pytest.approx(first.log_counts[:, 0].sum() / 480, rel=1e-12)
    assert first.work > 480 and first.decoder.decode in first.counts
    for other in found[1:]:
        assert other.sigma2 == found[0].sigma2
        assert other.judged.log_counts.tobytes() == first.log_counts.tobytes()


def test_a_search_says_about_how_many_settings_it_will_try(rng, workers):
    encoding, dataset = fit_encoding(parse_config({}), drawn(rng, 40, 12))
    recorder = Recorder()
    _, report = train(encoding, dataset, parse_config({}), workers=workers, observer=recorder)
    stages = [stage for stage in recorder.of(Stage) if stage.name == "sigma2 search"]
    found = [re.match(r"setting (\d+) of about (\d+): .*, fold (\d) of (\d)$", stage.step) for stage in stages]
    numbers, abouts, folds, of = (np.array([int(each[group]) for each in found]) for group in range(1, 5))
    assert numbers[-1] == len(report.path) > 3 and set(np.diff(numbers)) <= {0, 1}
    assert (numbers <= abouts).all() and abouts[-1] - numbers[-1] <= 2
    assert abouts[0] == 12 and abouts.max() <= numbers[-1] + 8
    shares = np.array([stage.share for stage in stages])
    np.testing.assert_allclose(shares, (numbers - 1 + (folds - 1) / of) / abouts, rtol=1e-12)


def test_judge_of_given_values_tries_nothing_else(rng, workers):
    corpus, config = drawn(rng, 40, 12), parse_config({"training": {"sigma2": 2.0}})
    encoding, dataset = fit_encoding(config, corpus)
    splits = make_splits(problem_of(encoding, dataset), seed=0, reach=2)
    found = judge(encoding, dataset, config, splits=splits, workers=workers)
    assert found.sigma2 == {"node": 2.0, "edge": 2.0} and len(found.tried) == 1


def test_groups_that_share_words_want_no_stiff_transitions(workers):
    """Sequences of a group are the same word over and over: folds that part groups believe in its transitions."""
    rng = np.random.default_rng(3)
    letters, templates = "abcdefgh", [rng.integers(0, 8, 7) for _ in range(14)]
    columns, labels, groups, N = [], [], [], 0
    for number in range(140):
        word = templates[number % 14]
        groups.append(number % 14)
        labels += [letters[y] for y in word]
        columns += [f"{letters[y if rng.random() > 0.45 else int(rng.integers(8))]}" for y in word]
        N += len(word)
    corpus = Corpus("toy", (columns, labels), np.arange(0, N + 1, 7), np.arange(1, N + 1))
    config = parse_config({"window": [0]})
    encoding, dataset = fit_encoding(config, corpus)
    edge = []
    for wishes in (None, HoldOut(groups=np.array(groups))):
        _, report = train(encoding, dataset, config, workers=workers, hold_out=wishes)
        edge.append(report.sigma2["edge"])
    assert edge[1] <= edge[0] / 10


def rare_spans():
    """Names that are spans, mostly."""
    rng = np.random.default_rng(0)
    words, labels = [], []
    for _ in range(400):
        for _ in range(8):
            name = rng.random() < 0.06
            words.append(f"n{rng.integers(60)}" if name else f"w{rng.integers(300)}")
            labels.append("B-X" if name and rng.random() < 0.75 else "O")
    return Corpus("toy", (words, labels), np.arange(0, 3201, 8), np.arange(1, 3201))


@pytest.mark.slow
def test_the_figure_may_want_more_than_log_p(workers):
    """Spans that are rare: log p is careful, F1 is not. The search goes up as long as that gains more than noise."""
    corpus = rare_spans()
    config = parse_config({"window": [0]})
    encoding, dataset = fit_encoding(config, corpus)
    trials = Trials()
    _, report = train(encoding, dataset, config, workers=workers, observer=trials)
    chosen = next(trial for trial in trials.trials if trial.sigma2 == report.sigma2)
    best = max(trials.trials, key=lambda trial: trial.log_probability)
    assert chosen.sigma2["node"] > best.sigma2["node"]
    assert chosen.figures["viterbi"] > best.figures["viterbi"]
    assert any(text.startswith("sigma2 by span F1") for text in trials.texts)
    # By log-loss it stays where log p is best.
    _, by_log = train(encoding, dataset, parse_config({"window": [0], "training": {"metric": "log-loss"}}),
                      workers=workers)  # fmt: skip
    assert by_log.sigma2["node"] < report.sigma2["node"]


def test_a_choice_that_rests_on_a_handful_says_so(rng, workers):
    corpus, config, trials = drawn(rng, 40, 12), parse_config({}), Trials()
    encoding, dataset = fit_encoding(config, corpus)
    train(encoding, dataset, config, workers=workers, observer=trials, hold_out=HoldOut(groups=np.arange(40) % 3))
    assert any("rests on 3 groups" in text for text in trials.texts)


def test_the_search_ends_where_it_has_cost_what_it_may(rng, workers, monkeypatch):
    import kcrf_core.training.prior_search as prior_search

    for name, value in (("MOST_WORK", 60), ("FREE_OPERATIONS", 1.0), ("PASSES_OF_PATH", 10), ("PASSES_PER_TERM", 10)):
        monkeypatch.setattr(prior_search, name, value)
    corpus, config, trials = drawn(rng, 100, 12), parse_config({}), Trials()
    encoding, dataset = fit_encoding(config, corpus)
    _, report = train(encoding, dataset, config, workers=workers, observer=trials)
    assert any("(budget reached)" in text for text in trials.texts)
    assert report.held_out.work < 2 * 60 * corpus.positions


def test_what_log_p_gives_up_may_still_be_good_by_the_figure(workers, monkeypatch):
    """A step up that log p gave up after one fold is looked at again when the figure asks for it."""
    import kcrf_core.training.prior_search as prior_search

    monkeypatch.setattr(prior_search, "HOPELESS", -1e9)  # whatever is tried second is given up
    monkeypatch.setattr(prior_search, "ENOUGH_UNITS", 1)
    corpus, config, trials = rare_spans(), parse_config({"window": [0]}), Trials()
    encoding, dataset = fit_encoding(config, corpus)
    train(encoding, dataset, config, workers=workers, observer=trials)
    up = [trial for trial in trials.trials if trial.term == "all" and trial.score_variance == 1.0]
    assert len(up) == 2 and all(trial.folds == 1 for trial in up)
