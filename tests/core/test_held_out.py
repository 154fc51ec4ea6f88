"""What is held out: folds, blocks with gaps, chains that are cut, and the search for sigma2 on them."""

from __future__ import annotations

import gc
import re
import weakref
from dataclasses import replace

import numpy as np
import pytest

import oracle
from kcrf_core import fit_encoding, parse_config
from kcrf_core.chains import EDGE, EDGE2, EDGE_X, NODE, Edges, Problem
from kcrf_core.config import configuration_text, load_template, load_yaml
from kcrf_core.corpora import Corpus
from kcrf_core.errors import ConfigError
from kcrf_core.maps import ExplicitMap
from kcrf_core.objective import ObjectiveTerm
from kcrf_core.objective.solvers import Observer, Stage, Trial
from kcrf_core.scoring import choose_yardstick, median_run
from kcrf_core.system import Workers, piece_rows
from kcrf_core.training import HoldOut, blocks_of, judge, make_splits, problem_of, train
from kcrf_core.training.prior_search import preferred
from kcrf_core.training.task import Minimiser, TrainingTask
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
    for shard in objective.engine.handles[0].over_chunks(theta, lambda chunk: chunk):
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


def test_from_five_sequences_on_whole_ones_are_held_out(rng):
    assert make_splits(runs(rng, [400] * 4), seed=0).kind == "blocks"
    splits = make_splits(runs(rng, [400] * 5), seed=0, folds=5)
    assert (splits.kind, splits.units, splits.gap) == ("sequences", 5, 0)


def test_a_sample_of_long_sequences_has_a_part_of_each(rng):
    problem = runs(rng, [400, 300, 500, 200, 600, 1000])
    splits = make_splits(problem, seed=0, folds=3, most_positions=300)
    assert splits.units == 6 and splits.positions == 300
    for split in splits.splits:
        assert not set(split.fit.unit) & set(split.held.unit)
        for first, last, unit in zip(split.held.first, split.held.last, split.held.unit, strict=True):
            assert problem.offsets[unit] <= first < last <= problem.offsets[unit + 1]


def test_one_fold_fits_to_a_third(rng):
    splits = make_splits(runs(rng, rng.integers(8, 12, 60)), seed=0, folds=1)
    (split,) = splits.splits
    assert split.fit.positions == pytest.approx(splits.positions / 3, rel=0.05)
    assert split.fit.positions + split.held.positions == splits.positions
    assert not set(split.fit.unit) & set(split.held.unit) and splits.units == 40
    assert make_splits(runs(rng, [30]), seed=0, folds=1) is None


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
    assert abouts[0] == 6 and abouts.max() <= numbers[-1] + 2
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
            words.append(f"n{rng.integers(40)}" if name else f"w{rng.integers(300)}")
            labels.append("B-X" if name and rng.random() < 0.6 else "O")
    return Corpus("toy", (words, labels), np.arange(0, 3201, 8), np.arange(1, 3201))


def test_the_metric_may_want_more_than_log_p(workers):
    """Spans that are rare: log p is careful, F1 is not. The search goes up as long as that gains more than noise."""
    found = []
    for metric in ("log-loss", "f1"):
        config = parse_config({"window": [0], "training": {"metric": metric, "decode": "viterbi"}})
        encoding, dataset = fit_encoding(config, rare_spans())
        splits = make_splits(problem_of(encoding, dataset), seed=0, folds=1)
        start = {"node": 1.58, "edge": 1.58}
        found.append(judge(encoding, dataset, config, splits=splits, workers=workers, sigma2=start, together=True))
    by_log_p, by_f1 = found
    assert by_f1.sigma2["node"] > by_log_p.sigma2["node"]
    value = by_f1.judged.yardstick.value
    assert value(by_f1.judged.counts["viterbi"]) > value(by_log_p.judged.counts["viterbi"])
    assert by_f1.judged.log_probability < by_log_p.judged.log_probability


def test_folds_that_are_given_do_not_end_the_search_after_one_setting(workers, monkeypatch):
    monkeypatch.setattr("kcrf_core.training.prior_search.FREE_OPERATIONS", 0)
    config = parse_config({"window": [0]})
    encoding, dataset = fit_encoding(config, rare_spans())
    splits = make_splits(problem_of(encoding, dataset), seed=0, folds=5)
    assert len(judge(encoding, dataset, config, splits=splits, workers=workers).tried) > 1


def test_the_data_of_a_search_go_with_it(workers, monkeypatch):
    """The final fit, which comes next, needs the memory; nothing waits for the collector of cycles."""
    parts, in_double = [], TrainingTask.in_double

    def watched(task):
        part = in_double(task)
        parts.append(weakref.ref(part))
        return part

    monkeypatch.setattr(TrainingTask, "in_double", watched)
    config = parse_config({"window": [0]})
    encoding, dataset = fit_encoding(config, rare_spans())
    splits = make_splits(problem_of(encoding, dataset), seed=0, folds=2)
    gc.disable()
    try:
        judge(encoding, dataset, config, splits=splits, workers=workers, together=True)
        assert [part() for part in parts] == [None] * 4  # to fit to, and to hold out, of two folds
    finally:
        gc.enable()


def test_a_bonus_finds_spans_that_probabilities_are_careful_about(workers):
    """The bonus does what a weak prior did for F1, and log p chooses the prior."""
    config = parse_config({"window": [0], "training": {"sigma2": 0.5}})
    encoding, dataset = fit_encoding(config, rare_spans())
    splits = make_splits(problem_of(encoding, dataset), seed=0, folds=1)
    found = judge(encoding, dataset, config, splits=splits, workers=workers).judged
    value, decoder = found.yardstick.value, found.decoder
    plain = value(found.counts["viterbi"])
    assert (decoder.decode, decoder.span_bonus) == ("viterbi", round(np.log(2 / max(plain, 0.1) - 1), 2))
    assert value(found.counts[decoder.counted_as]) > plain + 0.05
    for setting in ({"decode": "viterbi"}, {"span_bonus": 0}, {"metric": "accuracy"}):
        other = parse_config({"window": [0], "training": {"sigma2": 0.5, **setting}})
        judged = judge(encoding, dataset, other, splits=splits, workers=workers).judged
        assert judged.decoder.span_bonus == 0 and "bonus" not in judged.counts
    given = parse_config({"window": [0], "training": {"sigma2": 0.5, "span_bonus": decoder.span_bonus}})
    judged = judge(encoding, dataset, given, splits=splits, workers=workers).judged
    assert np.array_equal(judged.counts["viterbi"], found.counts["bonus"])


def test_a_choice_that_rests_on_a_handful_says_so(rng, workers):
    corpus, config, trials = drawn(rng, 40, 12), parse_config({}), Trials()
    encoding, dataset = fit_encoding(config, corpus)
    train(encoding, dataset, config, workers=workers, observer=trials, hold_out=HoldOut(groups=np.arange(40) % 3))
    assert any("rests on 3 groups" in text for text in trials.texts)


def test_the_search_ends_where_it_has_cost_what_it_may(rng, workers, monkeypatch):
    import kcrf_core.training.prior_search as prior_search

    for name, value in (("WORK_SHARE", 0.4), ("FREE_OPERATIONS", 1.0)):
        monkeypatch.setattr(prior_search, name, value)
    corpus, config, trials = drawn(rng, 100, 12), parse_config({}), Trials()
    encoding, dataset = fit_encoding(config, corpus)
    _, report = train(encoding, dataset, config, workers=workers, observer=trials)
    assert any("(budget reached)" in text for text in trials.texts)
    assert len(report.path) < 5 and report.held_out.work < 40 * corpus.positions


def counts_of(*units):
    """Counts of positions that are right, of ten in each unit."""
    return np.array([[right, 10] for right in units], dtype=np.float64)


ACCURACY, SPANS = choose_yardstick(["a", "b"]), choose_yardstick(["B-a", "O"])


def test_log_p_decides_among_settings_within_one_standard_error():
    near, best, far = counts_of(8, 9, 8, 9), counts_of(9, 9, 9, 8), counts_of(5, 6, 5, 6)
    counts = {(0,): far, (1,): near, (2,): best}
    good, bad, worst = counts_of(-1, -2, -1, -2), counts_of(-3, -3, -2, -3), counts_of(-4, -4, -3, -4)
    assert preferred(SPANS, counts, {(0,): good, (1,): bad, (2,): worst}) == (1,)
    assert preferred(SPANS, counts, {(0,): good, (1,): worst, (2,): bad}) == (2,)
    # Accuracy counts what log p does, with more noise.
    assert preferred(ACCURACY, counts, {(0,): good, (1,): bad, (2,): worst}) == (0,)
    always_better = {(0,): counts_of(7, 8, 7, 8), (1,): counts_of(8, 9, 8, 9)}  # no error of the difference
    assert preferred(SPANS, always_better, {(0,): good, (1,): bad}) == (1,)


def test_the_search_leaves_its_beginning_for_a_gain_beyond_noise_only():
    counts, logs = counts_of(8, 9, 7, 9), counts_of(-1, -2, -1, -2)
    for order in ([(1, 1), (-1, -1), (0, 0)], [(-1, -1), (0, 0), (1, 1)], [(2, 1), (1, 1), (-1, -1), (-2, 1)]):
        # The last digits of log p are rounding errors, and a gain in two units of four may be by chance.
        own = {steps: logs + 1e-9 * number for number, steps in enumerate(order)} | {
            order[0]: counts_of(-1, -1, -1, -1)
        }
        for metric in (ACCURACY, choose_yardstick(["a", "b"], "log-loss")):
            chosen = preferred(metric, dict.fromkeys(order, counts), own)
            assert chosen == ((0, 0) if (0, 0) in order else (-1, -1))
        assert preferred(SPANS, dict.fromkeys(order, counts), own) == order[0]  # 1.7 standard errors


@pytest.mark.parametrize("scale", [1.0, 1 + 1e-9])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_search_begins_on_the_grid(rng, workers, kernel, scale):
    """With c2 = 1, whatever rounding does to the scale of a term; transitions beside pivots with less."""
    many = kernel == "linear"
    if many:
        columns = [[str(rng.integers(5)) for _ in range(200)] for _ in range(20)]
    else:
        columns = [[f"{scale * value:.15g}" for value in rng.normal(size=200)]]
    labels = ["ab"[rng.integers(2)] for _ in range(200)]
    corpus = Corpus("toy", (*columns, labels), np.arange(0, 201, 5), np.arange(1, 201))
    config = parse_config({"window": [0], "terms": [{"kernel": kernel}, {"type": "edge"}]})
    encoding, dataset = fit_encoding(config, corpus)
    trials = Trials()
    splits = make_splits(problem_of(encoding, dataset), seed=0)
    judge(encoding, dataset, config, splits=splits, workers=workers, observer=trials)
    assert trials.trials[0].sigma2 == {"node": 0.5, "edge": 0.5 if many else 0.05}
    steps = [2 * np.log10(trial.sigma2[name] / 0.5) for trial in trials.trials for name in ("node", "edge")]
    np.testing.assert_allclose(steps, np.round(steps), atol=0.02)  # three digits are kept


@pytest.mark.parametrize("shared", [True, False])
def test_transitions_of_a_template_share_the_sigma2_of_other_weights(rng, workers, shared):
    """As in the programs that templates come from, whatever the variance of scores."""
    columns = [[str(rng.integers(5)) for _ in range(200)] for _ in range(20)]
    labels = ["ab"[int(columns[0][t]) % 2 ^ rng.integers(5) // 4] for t in range(200)]
    corpus = Corpus("toy", (*columns, labels), np.arange(0, 201, 5), np.arange(1, 201))
    lines = [f"U{number}:%x[0,{number}]" for number in range(20)]
    raw = load_template("\n".join([*lines, "B1:%x[0,0]", "B"]), "template")
    assert [term.get("shared") for term in raw["terms"]] == [None, True, None]
    raw["terms"][1]["shared"] = shared
    config = parse_config(raw)
    assert parse_config(load_yaml(configuration_text(config.to_dict()), "yaml")).terms == config.terms
    encoding, dataset = fit_encoding(config, corpus)
    trials, splits = Trials(), make_splits(problem_of(encoding, dataset), seed=0)
    judge(encoding, dataset, config, splits=splits, workers=workers, observer=trials)
    assert all(trial.sigma2["node"] == trial.sigma2["edge-x"] for trial in trials.trials) == shared
    assert any(trial.sigma2["node"] != trial.sigma2["edge"] for trial in trials.trials)
    raw["terms"][0]["sigma2"] = 3.0
    found = judge(encoding, dataset, parse_config(raw), splits=splits, workers=workers)
    assert (found.sigma2["edge-x"] == 3.0) == shared


def test_rounding_errors_of_fits_do_not_grow_along_the_path(rng, workers, monkeypatch):
    """Other machines and engines round otherwise: that must never come near a digit that decides."""
    config = parse_config({"window": [0], "terms": [{"kernel": "rbf", "map": {"size": 20}}, {"type": "edge"}]})
    numbers = rng.normal(size=(2, 480))
    labels = ["abc"[int(3 * (np.tanh(value) + 1) / 2)] for value in numbers[0] + rng.normal(size=480)]
    columns = [[f"{value:.4f}" for value in row] for row in numbers]
    corpus = Corpus("toy", (*columns, labels), np.arange(0, 481, 12), np.arange(1, 481))
    encoding, dataset = fit_encoding(config, corpus)
    splits = make_splits(problem_of(encoding, dataset), seed=0, folds=1)
    prepare, found, starts = Minimiser.prepare, [], []

    def rounded_otherwise(self, objective, theta, *about):
        starts[-1].append(None if theta is None else theta.tobytes())
        result = prepare(self, objective, theta, *about)
        error = 1e-12 * (len(starts) - 1)  # none in the first search
        return replace(result, theta=result.theta * (1 + error * rng.normal(size=result.theta.shape)))

    monkeypatch.setattr(Minimiser, "prepare", rounded_otherwise)
    for _ in range(2):
        starts.append([])
        found.append(judge(encoding, dataset, config, splits=splits, workers=workers))
    ours, theirs = (each.tried for each in found)
    assert found[0].sigma2 == found[1].sigma2 and len(ours) == len(theirs) >= 5
    difference = [abs(own.log_probability - each.log_probability) for own, each in zip(ours, theirs, strict=True)]
    assert 0 < max(difference) < 1e-9 and starts[0] == starts[1]
    assert [trial.figures for trial in ours] == [trial.figures for trial in theirs]
