"""The search for a configuration on data: candidates can be trained, results are the same every time."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from tests.core.test_encoding import corpus_of as text_corpus

from kcrf_core import KernelCRF
from kcrf_core.config import configuration_text, load_template, load_yaml, parse_config
from kcrf_core.corpora import corpus_of, read_corpus
from kcrf_core.encoding import alternatives, configured, defaults, fit_encoding
from kcrf_core.errors import ConfigError, Interrupted
from kcrf_core.scoring import choose_yardstick
from kcrf_core.selection import Journal, Listener, arena as arena_module, tune, tuning as tuning_module
from kcrf_core.selection.arena import CorpusArena, Rung, affordable_rungs, make_rungs, setting_cost, smaller_rungs
from kcrf_core.selection.tuning import make_space
from kcrf_core.system import Workers
from kcrf_core.training import HoldOut, judge, make_splits, problem_of

TINY = 2e9
# The accent data without its numbers and without a search for sigma2: then searches take a second.
TEXT = {"ignore": ["c2", "c3", "c4"], "training": {"sigma2": 3.0}}


@pytest.fixture
def tiny(monkeypatch):
    """An effort that takes a second or two."""
    monkeypatch.setitem(tuning_module.EFFORTS, "small", TINY)
    return "small"


@pytest.fixture
def accents(sample_data):
    return read_corpus(sample_data / "pitch_accent.conll").subset(range(60))


def words(rng, sequences=60, labels=("B-X", "I-X", "O")):
    """Words whose last letter says the label, as a corpus of one column."""
    text = []
    for _ in range(sequences):
        codes = rng.integers(0, 3, 8)
        text.append("\n".join(f"{''.join(rng.choice(list('abcdefgh'), 4))}{'xyz'[c]}\t{labels[c]}" for c in codes))
    return "\n\n".join(text) + "\n"


def every_candidate(space):
    seeds = space.seeds
    return list(dict.fromkeys([*seeds, *(near for seed in (seeds[0], seeds[-1]) for near in space.neighbours(seed))]))


def attribute_corpus():
    X = [[{"w": "a", "n": "b"}, {"w": "c"}], [{"w": "a"}]] * 15
    return corpus_of(X, "items", [["A", "B"], ["B"]] * 15)


def vector_corpus():
    rng = np.random.default_rng(0)
    X = [[{"w": "a", "emb": rng.normal(size=3)} for _ in range(3)] for _ in range(20)]
    return corpus_of(X, "items", [["A", "B", "A"]] * 20)


@pytest.mark.parametrize("kind", ["accents", "digits", "attributes", "vectors"])
def test_every_candidate_is_a_configuration_that_can_be_encoded(kind, accents, sample_data):
    corpora = {
        "accents": lambda: accents,
        "digits": lambda: read_corpus(sample_data / "digits.conll").subset(range(20)),
        "attributes": attribute_corpus,
        "vectors": vector_corpus,
    }
    corpus = corpora[kind]()
    space = make_space(corpus, {}, "test", (8, 8) if kind == "digits" else None)
    candidates = every_candidate(space)
    assert len(candidates) > 8
    titles = {space.title(candidate) for candidate in candidates}
    assert len(titles) == len(candidates)
    assert space.title(space.start) == "default"
    for candidate in candidates:
        config = parse_config(space.raw(candidate))
        encoding, _ = fit_encoding(config, corpus)
        for term in config.mapped_terms:
            assert encoding.term_features(term)


def test_candidates_have_what_mostly_pays(accents, sample_data):
    def terms(corpus, shape=None):
        space = make_space(corpus, {}, "test", shape)
        return [space.raw(candidate)["terms"] for candidate in every_candidate(space)]

    text = terms(accents)
    assert any(len(each) == 3 and each[1].get("kernel") == {"type": "poly", "degree": 2} for each in text)
    assert any([t.get("window") for t in each if t["name"].startswith("numbers")] == ["-1..1", "-2..2", "-3..3"]
               for each in [[t for t in each if "name" in t] for each in text])  # fmt: skip
    assert any({t.get("type") for t in each} >= {"edge", "edge2"} for each in text)
    assert any(not {t.get("type") for t in each} & {"edge", "edge2"} for each in text)
    pictures = terms(read_corpus(sample_data / "digits.conll").subset(range(5)), (8, 8))
    assert any(t.get("kernel", {}).get("type") == "image" for each in pictures for t in each)


def test_a_wrong_shape_is_refused(sample_data):
    with pytest.raises(ConfigError, match="need 15 columns of numbers, and there are 64"):
        make_space(read_corpus(sample_data / "digits.conll").subset(range(5)), {}, "test", (5, 3))


def test_a_configuration_with_features_is_the_second_candidate(accents, sample_data):
    raw = load_yaml((sample_data / "accent.yaml").read_text(), "accent.yaml")
    raw["training"] = {"sigma2": 3.0, "tolerance": 0.01}
    space = make_space(accents, raw, "test")
    first, given, free = space.seeds[:3]
    default, _ = configured({"columns": raw["columns"], "training": {"tolerance": 0.01}}, {}, accents, "test")
    assert parse_config(space.raw(first)) == replace(default, suggested=False)
    assert parse_config(space.raw(given)) == parse_config(raw)
    assert (space.title(given), space.title(free)) == ("features given, sigma2 given", "features given")
    assert parse_config(space.raw(free)).training.sigma2 is None
    configs = {space.title(one): parse_config(space.raw(one)) for one in space.neighbours(free)}
    assert configs["features given, kernel rbf"].mapped_terms[0].kernel.type == "rbf"
    windows = [one.window for one in configs["features given, window 1"].features]
    assert windows == [(-1, 0, 1), (0,), (-1, 0, 1), (-1, 0, 1)]
    assert configs["labels second-order transitions, features given"].order == 2
    assert [term.name for term in configs["labels no transitions, features given"].terms] == ["lexical", "acoustic"]
    assert space.first == 2
    raw["training"] = {"sigma2": "auto"}
    assert "sigma2" not in make_space(accents, raw, "test").choices
    assert "sigma2" not in make_space(accents, {"features": [{"column": "c0"}]}, "test").choices


@pytest.mark.parametrize("template", ["U1:%x[0,0]\nU2:%x[-1,1]\n", "U1:%x[0,0]\nB1:%x[0,1]\nB\n", "B1:%x[0,0]\n"])
def test_a_template_is_tried_together_with_default_features(rng, template):
    text = text_corpus(words(rng, 150, "abc").replace("a", "A").replace("y\t", ",\t").replace("\t", "\tq\t"))
    space = make_space(text, load_template(template, "test"), "test")
    found = {space.title(one): parse_config(space.raw(one)) for one in space.seeds}
    both = {title: config for title, config in found.items() if title.startswith("features given and default")}
    assert len(both) == (0 if template.startswith("B") else 2)
    given = next(config for title, config in found.items() if title == "features given")
    for config in both.values():
        encoding, _ = fit_encoding(config, text)
        seen = {term.name: set(encoding.term_features(term)) for term in config.mapped_terms}
        assert {feature.name for feature in given.features} < {feature.name for feature in config.features}
        assert {"U1", "c0", "c0.shape"} <= seen["node"]
        assert {term.name for term in given.terms} <= {term.name for term in config.terms}


@pytest.mark.parametrize("thorough", [True, False])
def test_shared_terms_have_the_sigma2_of_the_first_whatever_a_similar_candidate_has(rng, thorough):
    corpus = text_corpus(words(rng))
    space = make_space(corpus, load_template("U1:%x[0,0]\nB1:%x[0,0]\nB\n", "test"), "test")
    given = next(one for one in space.seeds if space.title(one) == "features given")
    with Workers(1) as workers:
        arena = CorpusArena(space, choose_yardstick(["B-X", "I-X", "O"]), workers, [Rung(corpus, HoldOut(), 2)])
        like = arena.judge(given, 0, np.inf, None, False)
        like.found["sigma2"] |= {"edge-x": 100 * like.found["sigma2"]["node"]}
        found = arena.judge(given, 0, np.inf, like, thorough).found["sigma2"]
    assert found["edge-x"] == found["node"]


@pytest.mark.slow
def test_features_of_a_configuration_are_found_to_be_better(tiny):
    rng = np.random.default_rng(0)
    X = [[[str(rng.integers(4))] for _ in range(20)] for _ in range(40)]
    y = [[rows[max(t - 6, 0)][0] for t in range(20)] for rows in X]  # further away than default windows look
    raw = {"features": [{"column": "c0", "window": [-6]}], "training": {"tolerance": 0.01}}
    with Workers(1) as workers:
        found = tune(rows_corpus(X, y), raw, effort=tiny, workers=workers)
    assert found.chosen.candidate["features"] == "given" and found.raw["features"] == raw["features"]
    assert found.usual.value < found.chosen.value
    assert found.raw["training"]["tolerance"] == 0.01


def test_terms_of_a_configuration_without_features_are_kept(accents, tiny):
    given = {"terms": [{"name": "mine", "kernel": {"type": "rbf"}, "map": {"size": 20}}]}
    with Workers(1) as workers:
        found = tune(accents, given, effort=tiny, workers=workers)
    assert [term["name"] for term in found.raw["terms"]] == ["mine"]
    assert found.raw["terms"][0]["sigma2"] > 0


@pytest.mark.slow
def test_the_same_effort_gives_the_same_result_for_any_number_of_threads(accents, tiny):
    found = []
    for threads in (1, 2):
        with Workers(threads) as workers:
            found.append(tune(accents, TEXT, effort=tiny, workers=workers))
    first, second = found
    assert len(first.history) > 3
    assert first.raw == second.raw
    assert [(o.candidate, o.rung, o.value, o.work) for o in first.history] == [
        (o.candidate, o.rung, o.value, o.work) for o in second.history
    ]


class Stops(Listener):
    judged_so_far = 0

    def judged(self, outcome):
        self.judged_so_far += 1


@pytest.mark.slow
def test_a_stopped_search_goes_on_from_its_journal(accents, tiny, tmp_path):
    stops = Stops()
    path = str(tmp_path / "journal")
    with Workers(1) as workers:
        whole = tune(accents, TEXT, effort=tiny, workers=workers)
        journal = Journal(path, "tune")
        early = tune(accents, TEXT, effort=tiny, workers=workers, journal=journal, listener=stops,
                     stopped=lambda: stops.judged_so_far >= 3)  # fmt: skip
        assert early.interrupted
        assert 3 <= len(early.history) < len(whole.history)
        journal = Journal(path, "tune")
        known = len(journal)
        again = tune(accents, TEXT, effort=tiny, workers=workers, journal=journal)
    assert known == 3
    assert again.raw == whole.raw
    assert [o.value for o in again.history] == [o.value for o in whole.history]


def many_labels(labels, sequences=400):
    rng = np.random.default_rng(0)
    y = rng.integers(labels, size=(sequences, 8))
    return corpus_of([[{"w": f"w{k}"} for k in row] for row in y], "items", [[f"L{k}" for k in row] for row in y])


def test_a_judgement_with_many_labels_begins_on_a_part_that_it_can_pay_for():
    corpus = many_labels(600)
    space = make_space(corpus, {}, "test")

    def rungs(seconds):
        return affordable_rungs(
            lambda most: make_rungs(corpus, HoldOut(), 0, None, most),
            lambda rung: setting_cost(space, space.seeds[0], rung),
            seconds * 1e9,
        )

    plenty, _ = rungs(1e6)
    assert [rung.positions for rung in plenty[:1]] == [3200]
    few, cost = rungs(10)
    assert few[0].positions < 1000 and len(set(few[0].corpus.columns[-1])) < 600 and few[-1].positions == 3200
    assert cost < 10e9
    fewest, cost = rungs(0.01)
    assert fewest[0].corpus.sequences == 40 and cost > 0.01e9
    with (
        Workers(1) as workers,
        pytest.raises(ConfigError, match=r"0\.01 s are too little time .* labels: a trial"),
    ):
        tune(corpus, budget=0.01, workers=workers)


@pytest.mark.parametrize("groups", [None, np.arange(24) // 4])
def test_of_few_long_sequences_a_first_rung_has_parts(groups):
    """Recordings are cut where all of them are more than can be paid for; parts of 20 at least are held out."""
    X = [np.arange(500.0)[:, None] for _ in range(24)]
    corpus = corpus_of(X, "columns", [["a", "b", "c", "d", "e"] * 100] * 24)
    wishes = HoldOut(groups)
    make = partial(make_rungs, corpus, wishes, 0, None)
    rungs = smaller_rungs(partial(make, cut=True), make())
    assert rungs[0].positions == 3_000 and rungs[-1].positions == 12_000 == make()[0].positions
    _, dataset = fit_encoding(parse_config({"training": {"sigma2": 1.0}}), rungs[0].corpus)
    splits = rungs[0].splits(dataset, 5, 0)
    assert splits.units == (20 if groups is None else 6)
    assert sum(split.held.positions for split in splits.splits) == pytest.approx(rungs[0].positions, rel=0.05)
    assert smaller_rungs(make, make()) is None


def test_an_effort_that_can_compare_nothing_takes_less_data(rng, monkeypatch):
    """The work of a judgement was thought to be none: the default took all, and nothing was compared with it."""
    y = [[str(label) for label in rng.choice(list("abcdefgh"), 12)] for _ in range(150)]
    X = [[[f"{rng.choice(list('xyz'))}{label}", f"t{rng.integers(5)}"] for label in labels] for labels in y]
    monkeypatch.setattr(tuning_module, "setting_cost", lambda *about: 0.0)
    monkeypatch.setitem(tuning_module.EFFORTS, "small", 4e8)
    notes = []

    class Notes(Listener):
        def note(self, text):
            notes.append(text)

    with Workers(1) as workers:
        corpus, raw = corpus_of(X, "columns", y), {"training": {"sigma2": 1.0}}
        found = tune(corpus, raw, effort="small", workers=workers, listener=Notes())
    assert [note for note in notes if "beginning again on" in note]
    level = [one.candidate for one in found.outcomes if one.rung == found.chosen.rung]
    assert len(level) > 1 and found.space.start in level and found.usual is not None


def test_a_search_for_sigma2_makes_do_with_what_it_has_when_time_is_up(accents):
    config = parse_config({"terms": [{"features": ["c2"]}, {"type": "edge"}]})
    encoding, dataset = fit_encoding(config, accents)
    splits = make_splits(problem_of(encoding, dataset), seed=0, reach=2)
    began, ended = [], []

    def interrupted():
        began.append(None)
        return len(began) > 5

    def found(**more):
        return judge(encoding, dataset, config, splits=splits, workers=workers, **more)

    with Workers(1) as workers:
        whole, short = found(), found(enough=lambda: True)
        assert whole.judged.whole and not short.judged.whole and len(whole.tried) > 1 == len(short.tried)
        later = found(enough=lambda: bool(ended.append(None)) or len(ended) > 4)  # within a fit of the second setting
        assert not later.judged.whole and len(later.tried) == 1
        assert later.judged.log_probability == short.judged.log_probability
        with pytest.raises(Interrupted):
            found(interrupted=interrupted, enough=lambda: True)  # nothing was judged yet


def test_a_judgement_that_was_cut_short_is_not_kept(accents, tmp_path, monkeypatch):
    """A later search with more time judges again."""
    real = arena_module.judge

    def cut_short(*given, **more):
        found = real(*given, **more)
        return replace(found, held_out=replace(found.judged, whole=False))

    monkeypatch.setattr(arena_module, "judge", cut_short)
    journal, stops = Journal(tmp_path / "journal", "tune"), Stops()
    with Workers(1) as workers:
        found = tune(accents, TEXT, effort="small", workers=workers, journal=journal, listener=stops,
                     stopped=lambda: stops.judged_so_far >= 1)  # fmt: skip
    assert found.history and not len(journal)


def test_an_interruption_before_any_judgement_leaves_nothing(accents):
    with Workers(1) as workers, pytest.raises(Interrupted, match="nothing to write"):
        tune(accents, workers=workers, stopped=lambda: True)


def test_spans_are_judged_by_f1_and_suffixes_are_found(tmp_path, tiny):
    path = tmp_path / "words.conll"
    path.write_text(words(np.random.default_rng(0)))
    with Workers(1) as workers:
        found = tune(read_corpus(path), effort=tiny, workers=workers)
    assert found.yardstick.name == "f1"
    assert found.raw["training"]["metric"] == "f1"
    assert found.chosen.value > 0.9  # the last letter tells
    assert any(feature.get("transform") == "suffix" for feature in found.raw["features"])


def test_a_rung_that_lacks_labels_counts_spans_by_its_own(tmp_path):
    path = tmp_path / "words.conll"
    path.write_text(words(np.random.default_rng(0), labels=("B-X", "B-Y", "O")) + "\nrare\tB-A\n")
    corpus = read_corpus(path)
    few = corpus.subset(np.arange(corpus.sequences - 1))
    spans = sum(label != "O" for label in few.columns[-1])
    space, yardstick = make_space(corpus, {}, "test"), choose_yardstick(sorted(set(corpus.columns[-1])))
    with Workers(1) as workers:
        arena = CorpusArena(space, yardstick, workers, [Rung(few, HoldOut(), 2)])
        counts = arena.judge(space.seeds[0], 0, np.inf, None, False).found["counts"]
    assert counts[:, 1].sum() == pytest.approx(2 * spans, rel=0.05)  # gold and predicted: the last letter tells


def test_groups_are_held_out_together(accents):
    groups = np.arange(accents.sequences) % 7
    rungs = make_rungs(accents, HoldOut(groups=groups), 0)
    encoding, dataset = fit_encoding(parse_config({}), rungs[-1].corpus)
    splits = rungs[-1].splits(dataset, len(encoding.labels), 0)
    for split in splits.splits:
        assert not set(split.fit.unit) & set(split.held.unit)
    assert splits.units == 7


@pytest.mark.slow
def test_dev_data_judges_and_is_not_fitted_on(accents, tiny):
    data, dev = accents.subset(range(40)), accents.subset(range(40, 60))
    rung = make_rungs(data, HoldOut(), 0, dev)[-1]
    encoding, dataset = fit_encoding(parse_config({}), rung.corpus)
    (split,) = rung.splits(dataset, len(encoding.labels), 0).splits
    assert split.held.positions == dev.positions
    assert split.fit.positions == data.positions
    with Workers(1) as workers:
        found = tune(data, TEXT, effort=tiny, dev=dev, workers=workers)
    assert found.chosen.found["units"] == dev.sequences


def test_rungs_grow_and_contain_each_other():
    rng = np.random.default_rng(0)
    y = [list(rng.choice(["a", "b"], 20)) for _ in range(5000)]
    corpus = corpus_of([np.arange(20.0)[:, None] + s for s in range(5000)], "columns", y)
    rungs = make_rungs(corpus, HoldOut(), 0)
    assert len(rungs) >= 2
    sizes = [rung.positions for rung in rungs]
    assert sizes == sorted(sizes)
    assert sizes[-1] == corpus.positions
    firsts = [set(rung.corpus.columns[0].numbers[::20]) for rung in rungs]
    assert all(small < large for small, large in itertools.pairwise(firsts))


def test_unobserved_labels_have_no_say(accents, tiny):
    labels = list(accents.columns[-1])
    labels[::3] = ["?"] * len(labels[::3])
    from dataclasses import replace

    partial = replace(accents, columns=(*list(accents.columns)[:-1], labels))
    raw = {"unobserved": "?", "terms": [{"kernel": "linear"}, {"type": "edge"}]}
    with Workers(1) as workers:
        found = tune(partial, raw, effort=tiny, workers=workers)
    assert "?" not in found.yardstick.labels
    assert found.raw["unobserved"] == "?"


@pytest.mark.slow
def test_the_written_configuration_reads_as_the_same(accents, tiny):
    with Workers(1) as workers:
        found = tune(accents, TEXT, effort=tiny, workers=workers)
    text = configuration_text(found.raw, ["why: # and how", ""])
    assert text.startswith("# why: # and how\n#\n")
    assert parse_config(load_yaml(text, "text")) == parse_config(found.raw)


def test_shared_values_are_written_out():
    window = [-1, 0, 1]
    raw = {"features": [{"name": name, "column": "c0", "window": window} for name in ("a", "b")]}
    text = configuration_text(raw)
    assert text.count("window: [-1, 0, 1]") == 2
    assert parse_config(load_yaml(text, "text")) == parse_config(raw)


@pytest.mark.slow
def test_an_estimator_tunes_itself(tiny):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(6, 2)) for _ in range(40)]
    y = [["in" if row @ row < 1 else "out" for row in x] for x in X]  # a circle: no line parts it
    crf = KernelCRF(n_jobs=1).tune(X, y, effort=tiny)
    assert crf.tuning_.yardstick.name == "accuracy"
    assert crf.config["terms"]
    assert KernelCRF(**crf.get_params()).fit(X, y).predict(X) == crf.predict(X)
    assert crf.score(X, y) > KernelCRF(kernel="linear").fit(X, y).score(X, y) + 0.1
    with pytest.raises(ValueError, match="a value for each of the 40 sequences, not 3"):
        KernelCRF().tune(X, y, groups=[1, 2, 3])


def levels_by_subject(rng, trials=24, length=8):
    """Two numbers whose level is that of the subject, in a frame with columns for trials and subjects."""
    pandas = pytest.importorskip("pandas")
    rows = []
    for trial in range(trials):
        level = 20 * np.random.default_rng(trial // 3).normal(size=2)
        for moving in rng.permutation(length) % 2:
            rows.append((trial, f"s{trial // 3}", *(level + moving + 0.3 * rng.normal(size=2)), "rw"[moving]))
    return pandas.DataFrame(rows, columns=["trial", "subject", "x", "y", "act"])


BY_LEVEL = {"name": "xy", "columns": ["x", "y"], "type": "real", "window": [0]}
TRIALS = {"sequence": "trial", "label": "act", "groups": "subject"}


@pytest.mark.parametrize("scale", [{"scale": "sequence"}, {"scale": "group", "group": "subject"}], ids=str)
def test_the_search_of_an_estimator_begins_with_its_configuration(tiny, scale):
    """Scaled within subjects the numbers tell the label, and the candidates of the default cannot be scaled so."""
    frame = levels_by_subject(np.random.default_rng(0))
    config = {"features": [BY_LEVEL | scale], "terms": [{"kernel": "linear"}, {"type": "edge"}]}
    plain = {"terms": [{"kernel": "linear"}, {"type": "edge"}]}
    without = KernelCRF(config=plain).tune(frame, effort=tiny, **TRIALS)
    crf = KernelCRF(config=config).tune(frame, effort=tiny, **TRIALS)
    given = KernelCRF(config=config).fit(frame, **TRIALS).score(frame)
    assert without.score(frame) < given - 0.1 and crf.score(frame) > given - 0.02
    assert crf.config["features"][0]["scale"] == scale["scale"]
    assert KernelCRF(config=crf.config).fit(frame, **TRIALS).predict(frame).equals(crf.predict(frame))


def test_the_configuration_of_numbers_has_the_kernel_of_fit_in_a_search(tiny):
    frame = levels_by_subject(np.random.default_rng(0), trials=12)
    config = {"features": [BY_LEVEL], "training": {"sigma2": 1.0}}
    crf = KernelCRF(config=config).tune(frame, effort=tiny, **TRIALS)
    raw = next(crf.tuning_.space.raw(one) for one in crf.tuning_.space.seeds if one["features"] == "given")
    fitted = KernelCRF(config=config).fit(frame, **TRIALS).model_.info["config"]
    assert parse_config(raw).terms == parse_config(fitted).terms
    assert parse_config(raw).features == parse_config(fitted).features


def test_a_search_judges_by_data_with_the_columns_that_it_looks_at(tiny):
    """The column of subjects is no input, in X_dev neither, whatever the order of its columns."""
    frame = levels_by_subject(np.random.default_rng(0), trials=12)
    data, dev = frame[frame.trial < 9], frame[frame.trial >= 9][["act", "y", "subject", "x", "trial"]]
    crf = KernelCRF(config={"terms": [{"kernel": "linear"}, {"type": "edge"}]})
    assert crf.tune(data, effort=tiny, X_dev=dev, **TRIALS).tuning_.chosen.found["units"] == 3
    assert crf.feature_names_in_ == ["x", "y"]


def test_a_configuration_for_files_fits_a_frame(rng):
    """Its columns, and those that it ignores, may be columns of a table that are no inputs of the frame."""
    frame = levels_by_subject(rng, trials=6)
    named = {"columns": ["trial", "subject", "x", "y", "act"], "sequence": "trial", "ignore": ["subject"]}
    config = named | {"features": [BY_LEVEL], "terms": [{"kernel": "linear"}, {"type": "edge"}]}
    config |= {"training": {"sigma2": 1.0}, "separator": "\t", "header": False}
    crf = KernelCRF(config=config).fit(frame, label="act", groups="subject")
    alone = {name: config[name] for name in ("features", "terms", "training")}
    same = KernelCRF(config=alone).fit(frame, **TRIALS)
    assert crf.predict_proba(frame).equals(same.predict_proba(frame))
    again = KernelCRF(config=config).fit(frame, label="act")  # the subject is ignored, and may be there
    assert again.predict(frame.drop(columns="subject")).equals(again.predict(frame))
    with pytest.raises(ConfigError, match="'ignore' names no column: there is no 'subjekt'"):
        KernelCRF(config=config | {"ignore": ["subjekt"]}).fit(frame, label="act")


def test_labels_that_are_not_known_are_not_searched_for(tiny):
    frame = levels_by_subject(np.random.default_rng(0), trials=12)
    frame.loc[frame.index % 3 == 0, "act"] = None
    config = {"terms": [{"kernel": "linear"}, {"type": "edge"}], "training": {"sigma2": 1.0}}
    crf = KernelCRF(unobserved="?", rules={"require": ["r"]}, config=config).tune(frame, effort=tiny, **TRIALS)
    assert set(crf.tuning_.yardstick.labels) == {"r", "w"} and crf.config["unobserved"] == "?"
    assert crf.config["rules"] == {"require": ["r"]}


def test_sparse_weights_are_tried_where_there_are_no_pivots(tmp_path, sample_data):
    path = tmp_path / "words.conll"
    path.write_text(words(np.random.default_rng(0)))
    corpus = read_corpus(path)
    space = make_space(corpus, {}, "test")
    sparse = next(near for near in space.neighbours(space.start) if near["c1"] != "0")
    assert space.raw(sparse)["training"]["c1"] == 0.1
    with Workers(1) as workers:
        arena = CorpusArena(space, choose_yardstick(["B-X", "I-X", "O"]), workers, [Rung(corpus, HoldOut(), 2)])
        assert arena.judge(sparse, 0, np.inf, None, False).value > 0.8
    numbers = make_space(read_corpus(sample_data / "digits.conll"), {}, "test")
    pivots = numbers.start.changed(**{"numbers kernel": "rbf"})
    assert "training" not in numbers.raw(pivots.changed(c1="0.5"))
    assert "c1" not in make_space(corpus, {"training": {"c1": 0.3}}, "test").choices


def test_a_search_begins_with_what_training_would_do(sample_data, monkeypatch):
    corpus = read_corpus(sample_data / "digits.conll").subset(range(20))

    def kernels():
        space = make_space(corpus, {}, "test")
        return {term.kernel.type for term in parse_config(space.raw(space.seeds[0])).mapped_terms}

    assert "rbf" in kernels()
    monkeypatch.setattr(defaults, "MOST_KERNEL_POSITIONS", corpus.positions - 1)
    assert kernels() == {"linear"}


def sensor_corpus(rng, columns=4, sequences=8, letters=False):
    """Walks, of which the last column is far larger than the others; perhaps a letter beside them."""
    X, y = [], []
    for _ in range(sequences):
        rows = rng.normal(size=(40, columns)).cumsum(axis=0) * ([1.0] * (columns - 1) + [100.0])
        beside = [[f"{rng.choice(list('abc'))}"] for _ in rows] if letters else [[] for _ in rows]
        X.append([[*row, *own] for row, own in zip(rows, beside, strict=True)])
        y.append(["up" if row[0] > 0 else "down" for row in rows])
    return rows_corpus(X, y)


def rows_corpus(X, y):
    pairs = (zip(rows, labels, strict=True) for rows, labels in zip(X, y, strict=True))
    return text_corpus([[[*row, label] for row, label in each] for each in pairs])


@pytest.mark.parametrize("kind", ["numbers", "mixed", "words", "attributes"])
def test_the_first_candidate_is_exactly_the_default(kind, tmp_path):
    rng = np.random.default_rng(0)
    if kind == "words":
        (tmp_path / "words.conll").write_text(words(rng))
    corpus = {
        "numbers": lambda: sensor_corpus(rng),
        "mixed": lambda: sensor_corpus(rng, letters=True),
        "words": lambda: read_corpus(tmp_path / "words.conll"),
        "attributes": attribute_corpus,
    }[kind]()
    space = make_space(corpus, {}, "test")
    default, _ = configured({}, {}, corpus, "test")
    assert parse_config(space.raw(space.seeds[0])) == replace(default, suggested=False)
    assert any(term.kernel.type == "rbf" for term in default.mapped_terms) == (kind in ("numbers", "mixed"))


def test_transforms_of_numbers_and_wide_windows_are_tried(tmp_path):
    space = make_space(sensor_corpus(np.random.default_rng(0)), {}, "test")
    features = [feature for seed in space.seeds for feature in space.raw(seed)["features"]]
    tried = {(feature.get("transform"), feature.get("width")) for feature in features}
    assert tried >= {("speed", None), ("difference", None), ("log1p", None), ("mean", 15), ("std", 60)}
    assert "-20..20/2" in [feature["window"] for feature in features]
    speeds = [feature["columns"] for feature in features if feature.get("transform") == "speed"]
    assert speeds[0] == ["c0", "c1", "c2"]  # the fourth has another scale, and is no coordinate of the same quantity
    near = [feature for one in space.neighbours(space.start) for feature in space.raw(one)["features"]]
    assert {feature.get("transform") for feature in near} >= {"clip", "rank"}


def test_letters_get_wide_windows_and_n_grams(tmp_path):
    rng = np.random.default_rng(0)
    corpus = rows_corpus(
        [[[rng.choice(list("abcdef"))] for _ in range(9)] for _ in range(40)], [["X", "Y", "X"] * 3] * 40
    )
    space = make_space(corpus, {}, "test")
    features = [feature for seed in space.seeds for feature in space.raw(seed)["features"]]
    assert {"conjunction": ["c0", "c0[1]", "c0[2]", "c0[3]"], "window": "-3..0", "min_count": 2} in features
    assert {"-5..5", "-20..20/2"} <= {str(feature.get("window")) for feature in features}


def test_letters_know_their_place_in_a_word_that_a_column_repeats():
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(30):
        spelled = ["".join(rng.choice(list(letters), rng.integers(2, 6))) for letters in ("abc", "def", "xyz", "uvw")]
        X.append([[letter, word] for word in spelled for letter in word])
        y.append(["last" if place == len(word) - 1 else "no" for word in spelled for place in range(len(word))])
    corpus = rows_corpus(X, y)
    space = make_space(corpus, {}, "test")
    placed = next(seed for seed in space.seeds if "place c1" in space.title(seed))
    encoding, dataset = fit_encoding(parse_config(space.raw(placed)), corpus)
    names = [feature.config.name for feature in encoding.features]
    assert {"c1.start", "c1.end"} <= set(names)
    ends = dataset.real[:, -1]
    assert (ends[np.array(dataset.labels) == list(encoding.labels).index("last")] == ends.max()).all()


def test_transitions_that_depend_on_words_are_tried_as_training_does(rng):
    """Not if labels are spans."""
    for labels, tried in ((("a", "b", "c"), True), (("B-X", "I-X", "O"), False)):
        corpus = text_corpus(words(rng, 150, labels).replace("a", "A").replace("y\t", ",\t"))
        space = make_space(corpus, {}, "test")
        found = [space.raw(one) for one in space.seeds]
        paired = [one for one in found if "edge-x" in {term.get("type") for term in one["terms"]}]
        assert len(paired) == tried
        for one in paired:
            config = alternatives({}, {}, corpus, "test")["pairs of shapes, kinds and edges, for transitions, too"]
            assert [(term.type, term.features, term.window) for term in parse_config(one).terms] == [
                (term.type, term.features, term.window) for term in config.terms
            ]


def test_n_grams_of_tags_are_one_step_from_the_start(rng):
    """Without words, bigrams of all columns are those of tags, and must not stand in the way."""
    tags = ["".join(rng.choice([*"ACDEFGHIKL"], 12)) for _ in range(60)]
    text = "\n\n".join("\n".join(f"{tag} {'HE'[ord(tag) % 2]}" for tag in sequence) for sequence in tags)
    space = make_space(text_corpus(text), {}, "test")
    assert "n-grams" in {one["bigrams"] for one in space.neighbours(space.start)}
