"""From data to models: what training promises, and what a saved model keeps."""

from __future__ import annotations

import itertools
import pickle
import sys
from dataclasses import replace

import numpy as np
import pytest

from kcrf_core.chains import chain
from kcrf_core.config import parse_config, with_options
from kcrf_core.corpora import AttributeRows, Corpus, read_corpus
from kcrf_core.corpora.corpus import concatenate
from kcrf_core.encoding import fit_encoding
from kcrf_core.errors import DataError, FileFormatError, Interrupted
from kcrf_core.features import ExplicitTerm, KernelTerm, StoredBasis, load_basis, save_basis, select_bases
from kcrf_core.files import read_container, write_container
from kcrf_core.kernels import gram
from kcrf_core.maps import sparse_block
from kcrf_core.model import Model
from kcrf_core.objective.solvers import Observer, Stage
from kcrf_core.system import Workers
from kcrf_core.training import train
from listening import Recorder
from problems import random_inputs


def toy_corpus(rng, sequences=40, labels="abc", longest=7):
    """The label is a noisy function of the word, a number and the label before."""
    words, numbers, gold, lengths = [], [], [], []
    for _ in range(sequences):
        T = int(rng.integers(1, longest + 1))
        before = 0
        for _ in range(T):
            word, number = int(rng.integers(0, 6)), float(rng.normal())
            before = (word + before + (number > 0)) % len(labels) if rng.random() < 0.9 else 0
            words.append(f"w{word}")
            numbers.append(f"{number:.3f}")
            gold.append(labels[before])
        lengths.append(T)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    lines = np.arange(1, len(words) + 1) + np.repeat(np.arange(sequences), lengths)
    return Corpus("toy", (words, numbers, gold), offsets, lines)


def fit(corpus, options=None, raw=None, threads=2, **more):
    config = parse_config(with_options(raw or {}, options or {}))
    encoding, dataset = fit_encoding(config, corpus)
    with Workers(threads) as workers:
        return train(encoding, dataset, config, workers=workers, **more)


SETTINGS = [
    {},
    {"kernel": "poly"},
    {"kernel": "rbf", "size": 50, "select": "greedy"},
    {"kernel": "poly", "degree": 3, "map": "full"},
    {"order": 2},
    {"kernel": "poly", "order": 2, "observed_transitions": True},
    {"terms": [{"type": "node"}, {"type": "edge"}, {"type": "edge-x", "features": ["c0"]}]},
    {"terms": [{"type": "node"}, {"type": "edge-x", "kernel": "rbf", "map": {"size": 30}}, {"type": "edge2"}]},
]


@pytest.mark.each_choice
@pytest.mark.parametrize("options", SETTINGS)
@pytest.mark.parametrize("labels", ["ab", "abc"])
def test_models_are_certified_and_beat_the_majority(rng, options, labels):
    corpus = toy_corpus(rng, 80, labels)
    # Near the optimum: within 1e-3 of it, chance decides a label or two, and a setting is near the limit below.
    model, report = fit(corpus, {**options, "sigma2": 1.0, "tolerance": 1e-5})
    assert report.result.reason == "certified" and report.result.gap <= 1e-5
    assert report.score_columns == (1 if len(labels) == 2 else 3)
    right = np.mean([a == b for a, b in zip(model.tag_corpus(corpus), corpus.columns[-1], strict=True)])
    majority = max(map(corpus.columns[-1].count, labels)) / corpus.positions
    assert right > majority + 0.05


@pytest.mark.parametrize("options", SETTINGS)
def test_saved_models_are_the_same_models(rng, tmp_path, options):
    corpus = toy_corpus(rng)
    model, _ = fit(corpus, {**options, "sigma2": 1.0})
    model.save(tmp_path / "model.npz")
    again = Model.load(tmp_path / "model.npz")
    new = toy_corpus(rng)
    dataset = model.encoding.encode(new)
    np.testing.assert_array_equal(model.potentials(dataset)[0], again.potentials(dataset)[0])
    np.testing.assert_array_equal(model.marginals(dataset), again.marginals(dataset))
    assert again.tag_corpus(new) == model.tag_corpus(new)
    assert again.info == model.info
    again.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "model.npz").read_bytes()
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.potentials(dataset)[0], model.potentials(dataset)[0])


@pytest.mark.parametrize(
    "options",
    [
        SETTINGS[0],
        *({**options, "sigma2": 1.0} for options in SETTINGS[1:3]),
        *(pytest.param(options, marks=pytest.mark.slow) for options in SETTINGS[1:3]),
    ],
)
def test_same_bytes_for_any_number_of_threads(rng, tmp_path, options):
    corpus = toy_corpus(rng, 900)
    for threads in (1, 2):
        model, _ = fit(corpus, options, threads=threads)
        model.save(tmp_path / f"{threads}.npz")
    assert (tmp_path / "1.npz").read_bytes() == (tmp_path / "2.npz").read_bytes()


def test_the_model_has_the_objective_that_training_reports(rng):
    """P worked out from nothing but the model: its scores, its edges and the norm of its function, map by map."""
    corpus = toy_corpus(rng)
    for options in SETTINGS:
        model, report = fit(corpus, {**options, "sigma2": 1.0, "precision": "double"})
        dataset = model.encoding.encode(corpus)
        scores, edges = model.potentials(dataset)
        gold = chain.path_scores(scores, edges, dataset.offsets, dataset.labels)
        likelihood = (gold - chain.marginals(scores, edges, dataset.offsets).log_z).sum()
        shared = model.edges
        norm = sum((part[np.isfinite(part)] ** 2).sum() for part in (shared.transitions, shared.start, shared.end))
        norm += 0 if shared.triples is None else (shared.triples**2).sum()
        for term in model.terms:
            if isinstance(term, KernelTerm):
                norm += np.sum(term.alpha * (gram(term.kernel, term.pivots, term.pivots) @ term.alpha))
            else:
                norm += np.sum(term.weights**2)
        np.testing.assert_allclose(norm / 2 - likelihood, report.result.value, rtol=1e-8)


def test_a_basis_file_gives_the_model_that_choosing_anew_gives(rng, tmp_path):
    corpus = toy_corpus(rng)
    raw = {"terms": [{"kernel": "rbf", "map": {"size": 25}}, {"type": "edge"}], "training": {"sigma2": 2.0}}
    config = parse_config(raw)
    encoding, dataset = fit_encoding(config, corpus)
    with Workers(2) as workers:
        chosen = select_bases(encoding, dataset, config, workers, Observer())
        save_basis(tmp_path / "basis.npz", chosen, "digest")
        stored = load_basis(tmp_path / "basis.npz")
        assert isinstance(stored, StoredBasis) and stored.config == config
        fresh, _ = train(encoding, dataset, config, workers=workers)
        reused, _ = train(stored.encoding, dataset, config, basis=stored, workers=workers)
    np.testing.assert_array_equal(reused.terms[0].alpha, fresh.terms[0].alpha)
    np.testing.assert_array_equal(reused.terms[0].lines, fresh.terms[0].lines)


def test_several_terms_with_their_own_kernels(rng):
    """By Lemma 5 two node terms are the sum of their kernels: both ways reach the same objective."""
    corpus = toy_corpus(rng)
    terms = [
        {"name": "words", "features": ["c0"], "kernel": {"type": "linear"}, "map": "full"},
        {"name": "numbers", "features": ["c1"], "kernel": {"type": "linear"}, "map": "full"},
        {"type": "edge"},
    ]
    training = {"sigma2": 1.5, "precision": "double", "tolerance": 1e-9}
    apart, report = fit(corpus, raw={"terms": terms, "training": training})
    together, whole = fit(corpus, raw={"training": training})
    assert [type(term) for term in apart.terms] == [KernelTerm, KernelTerm]
    np.testing.assert_allclose(report.result.value, whole.result.value, rtol=1e-7)
    new = toy_corpus(rng)
    dataset = apart.encoding.encode(new)
    np.testing.assert_allclose(apart.marginals(dataset), together.marginals(dataset), atol=1e-3)


def test_terms_keep_their_own_sigma2(rng):
    terms = [{"kernel": "rbf", "map": {"size": 20}, "sigma2": 3.0}, {"type": "edge", "sigma2": 0.5}]
    _, report = fit(toy_corpus(rng), raw={"terms": terms})
    assert report.sigma2 == {"node": 3.0, "edge": 0.5} and report.path == ()


def test_sigma2_is_chosen_by_the_held_out_sequences(rng):
    model, report = fit(toy_corpus(rng, 120))
    assert len(report.path) >= 3
    on_path = [trial for trial in report.path if trial.term == "all"]
    best = max(on_path, key=lambda trial: trial.log_probability)
    assert 0 < best.score_variance < 1e4
    assert model.info["training"]["sigma2"] == report.sigma2
    assert set(report.sigma2) == {"node", "edge"}


def test_one_sequence_has_nothing_to_hold_out(rng):
    recorder = Recorder()
    _, report = fit(toy_corpus(rng, 1, longest=7), observer=recorder)
    assert report.path == () and report.sigma2["edge"] == 1.0
    assert any("too little data" in note for note in recorder.notes)


def test_one_label(rng):
    corpus = toy_corpus(rng, 5, "a")
    model, report = fit(corpus)
    assert set(model.tag_corpus(corpus)) == {"a"}
    assert report.result.reason == "certified"


def test_sequence_weights(rng):
    """A weight of two is the sequence twice; a weight of zero is no sequence."""
    corpus = toy_corpus(rng, 12)
    options = {"sigma2": 1.0, "tolerance": 1e-9, "precision": "double"}
    twice = corpus.subset([0, 0, *range(1, 11)])
    weights = np.array([2.0] + [1.0] * 10 + [0.0])
    weighted = Corpus(corpus.source, corpus.columns, corpus.offsets, corpus.lines, weights)
    raw = {"features": [{"column": "c1", "type": "real", "scale": "none"}]}
    _, a = fit(twice, options, raw)
    _, b = fit(weighted, options, raw)
    np.testing.assert_allclose(a.result.value, b.result.value, rtol=1e-8)


def test_attribute_files_train(rng):
    corpus = toy_corpus(rng)
    names = [name for t in range(corpus.positions) for name in (f"w={corpus.columns[0][t]}", "bias")]
    attributes = AttributeRows(np.arange(0, len(names) + 1, 2), names, np.ones(len(names)))
    bagged = Corpus("toy.crfsuite", (corpus.columns[-1],), corpus.offsets, corpus.lines, None, attributes)
    linear, _ = fit(bagged, {"sigma2": 1.0})
    same, _ = fit(bagged, {"sigma2": 1.0, "map": "full", "precision": "double"})
    np.testing.assert_allclose(
        linear.marginals(linear.encoding.encode(bagged)), same.marginals(same.encoding.encode(bagged)), atol=2e-2
    )
    kernel, _ = fit(bagged, {"sigma2": 1.0, "kernel": "poly"})
    assert len(kernel.tag_corpus(bagged)) == corpus.positions


def test_interruption_gives_a_usable_model(rng):
    corpus = toy_corpus(rng, 60)
    recorder = Recorder()

    def interrupted():
        return any(stage.final for stage in recorder.of(Stage))

    model, report = fit(corpus, {"tolerance": 1e-7}, interrupted=interrupted, observer=recorder)
    assert report.result.reason == "interrupted"
    assert len(model.tag_corpus(corpus)) == corpus.positions


@pytest.mark.parametrize("asked", [1, 12])
def test_interrupted_in_the_search_for_sigma2_there_is_no_model(rng, asked):
    calls, recorder = [], Recorder()

    def interrupted():
        calls.append(1)
        return len(calls) > asked

    with pytest.raises(Interrupted, match="before the final fit"):
        fit(toy_corpus(rng, 60), interrupted=interrupted, observer=recorder)
    assert not any(stage.final for stage in recorder.of(Stage))


def test_unseen_words_do_not_stop_a_tagger(rng):
    corpus = toy_corpus(rng)
    for options in SETTINGS:
        model, _ = fit(corpus, {**options, "sigma2": 1.0})
        new = Corpus("new", (["never", "seen"], ["0.5", "100"]), np.array([0, 2]), np.array([1, 2]))
        assert set(model.tag_corpus(new)) <= set("abc")


@pytest.mark.parametrize("name", ["term0.alpha", "term0.codes", "transitions", "labels.ends", "term0.lines"])
def test_altered_models_are_refused(rng, tmp_path, name):
    model, _ = fit(toy_corpus(rng), {"kernel": "rbf", "size": 10, "sigma2": 1.0})
    model.save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as archive:
        arrays = {key: archive[key] for key in archive.files}
    for change in (lambda a: a[:-1], lambda a: a.astype(np.float32), lambda a: np.full_like(a, 10**6)):
        altered = change(arrays[name])
        same_kind = altered.shape == arrays[name].shape and altered.dtype == arrays[name].dtype
        if same_kind and name in ("term0.alpha", "transitions", "term0.lines"):
            continue  # other numbers make another model, not a damaged one
        np.savez(tmp_path / "altered.npz", **{**arrays, name: altered})
        with pytest.raises(FileFormatError, match="damaged or altered"):
            Model.load(tmp_path / "altered.npz")


def test_sample_data_degrees(sample_data):
    """Interactions of the sample task need a degree above one, as in the paper's Figure 1."""
    corpus = read_corpus(sample_data / "pitch_accent.conll")
    order = np.random.default_rng(0).permutation(corpus.sequences)
    training, test = corpus.subset(order[100:]), corpus.subset(order[:100])
    accuracy = {}
    for degree in (1, 2):
        model, _ = fit(training, {"kernel": "poly", "degree": degree, "size": 300, "sigma2": 1.0})
        tagged = model.tag_corpus(test)
        accuracy[degree] = np.mean([a == b for a, b in zip(tagged, test.columns[-1], strict=True)])
    assert accuracy[2] > accuracy[1] + 0.01


def test_data_with_unseen_values_can_choose_pivots(rng, tmp_path):
    """Encoded like other data, half of its words are unknown: selection ends, and saving loses nothing."""
    first, second = toy_corpus(rng), toy_corpus(rng)
    words = [word if t % 2 else f"new{t}" for t, word in enumerate(second.columns[0])]
    second = Corpus("second", (words, *second.columns[1:]), second.offsets, second.lines)
    config = parse_config({"terms": [{"kernel": "rbf", "map": {"size": 200}}, {"type": "edge"}]})
    encoding, _ = fit_encoding(config, first)
    dataset = encoding.encode(second)
    with Workers(1) as workers:
        model, _ = train(encoding, dataset, config, workers=workers)
    model.save(tmp_path / "m.npz")
    np.testing.assert_array_equal(Model.load(tmp_path / "m.npz").potentials(dataset)[0], model.potentials(dataset)[0])


def test_sigma2_search_with_awkward_sequences(rng):
    """Sequences without weight have no say; of one giant sequence among a few short ones blocks are held out."""
    corpus = toy_corpus(rng, 30)
    weights = np.zeros(30)
    weights[3] = 1.0
    weighted = Corpus(corpus.source, corpus.columns, corpus.offsets, corpus.lines, weights)
    _, report = fit(weighted)
    assert report.path == ()
    long = toy_corpus(rng, 1, longest=400)
    giant = concatenate([long, *(toy_corpus(rng, 1, longest=1) for _ in range(5))])
    _, report = fit(giant)
    splits = report.held_out.splits
    assert splits.kind == "blocks" and splits.units > 10
    assert max(split.held.positions for split in splits.splits) < giant.positions / 2


def test_tiny_tolerances_are_taken_in_double_precision(rng):
    model, report = fit(toy_corpus(rng), {"kernel": "rbf", "size": 30, "sigma2": 1.0, "tolerance": 1e-8})
    assert report.result.gap <= 1e-8
    assert model.info["config"]["training"]["precision"] == "double"


# ----------------------------------------------------------------------------- chains


def test_second_order_learns_what_first_order_cannot(rng):
    """Two words over the same letters: only the label before the last tells which one it is."""
    cycles = ["abcb", "abca"]
    gold = []
    for _ in range(60):
        gold.append(list((cycles[int(rng.integers(2))] * 4)[: int(rng.integers(6, 12))]))
    words = [["x"] * len(labels) for labels in gold]
    offsets = np.concatenate([[0], np.cumsum([len(labels) for labels in gold])]).astype(np.int64)
    columns = ([w for row in words for w in row], [y for row in gold for y in row])
    corpus = Corpus("toy", columns, offsets, np.arange(1, offsets[-1] + 1))
    values = [fit(corpus, {"sigma2": 10.0, "order": order})[1].result.value for order in (1, 2)]
    assert values[1] < 0.8 * values[0]


def test_forbidden_transitions_are_kept_by_saved_models(rng, tmp_path):
    corpus = toy_corpus(rng, 60)
    for options in ({}, {"order": 2}):
        model, report = fit(corpus, {"sigma2": 1.0, "observed_transitions": True, **options})
        seen = set()
        for s in range(corpus.sequences):
            labels = corpus.columns[-1][corpus.offsets[s] : corpus.offsets[s + 1]]
            seen |= set(itertools.pairwise(labels))
        model.save(tmp_path / "m.npz")
        loaded = Model.load(tmp_path / "m.npz")
        for i, before in enumerate(model.labels):
            for j, after in enumerate(model.labels):
                assert np.isfinite(loaded.edges.transitions[i, j]) == ((before, after) in seen)
        assert report.result.reason == "certified"


def chunk_corpus(sequences):
    gold = [label for labels in sequences for label in labels]
    offsets = np.concatenate([[0], np.cumsum([len(labels) for labels in sequences])]).astype(np.int64)
    return Corpus("toy", (["w"] * len(gold), gold), offsets, np.arange(1, len(gold) + 1))


def test_a_scheme_is_never_broken(rng):
    corpus = chunk_corpus([["B-x", "I-x", "O"], ["O", "B-y", "I-y"], ["B-y", "B-x", "O", "O"]] * 5)
    for order in (1, 2):
        model, _ = fit(corpus, {"sigma2": 1.0, "scheme": "iob2", "order": order})
        dataset = model.encoding.encode(corpus)
        number = {label: y for y, label in enumerate(model.labels)}
        p = chain.marginals(*model.potentials(dataset), dataset.offsets)
        assert (p.node[dataset.offsets[:-1]][:, [number["I-x"], number["I-y"]]] == 0).all()
        assert p.edge[number["O"], number["I-x"]] == p.edge[number["B-x"], number["I-y"]] == 0


def test_data_that_breaks_its_scheme_is_refused():
    with pytest.raises(DataError, match="'I-x' in line 2 is not allowed there by the scheme iob2"):
        fit(chunk_corpus([["O", "I-x", "B-x"]]), {"sigma2": 1.0, "scheme": "iob2"})
    with pytest.raises(DataError, match="'B-x' in line 3"):
        fit(chunk_corpus([["O", "S-x", "B-x"], ["I-x"], ["E-x"]]), {"sigma2": 1.0, "scheme": "iobes"})
    with pytest.raises(DataError, match="label 'a' does not belong to the scheme iob2"):
        fit(chunk_corpus([["a", "b"]]), {"sigma2": 1.0, "scheme": "iob2"})


# ----------------------------------------------------------------------------- the paper's own solver, on the sample


@pytest.mark.slow
def test_degree_one_is_the_same_model_primal_and_dual(sample_data):
    """Figure 1 of the paper: explicit weights by L-BFGS, all inputs as pivots by block-Jacobi, one optimum."""
    corpus = read_corpus(str(sample_data / "pitch_accent.conll")).subset(range(150))
    shared = {"kernel": "linear", "sigma2": 0.1, "tolerance": 1e-5, "decode": "viterbi"}
    (primal, by_primal), (dual, by_dual) = (
        fit(corpus, {**shared, "map": kind, "solver": solver})
        for kind, solver in (("explicit", "lbfgs"), ("full", "block-jacobi"))
    )
    np.testing.assert_allclose(by_dual.result.value, by_primal.result.value, rtol=2e-5)
    assert dual.tag_corpus(corpus) == primal.tag_corpus(corpus)


@pytest.mark.parametrize("degree", [1, *(pytest.param(degree, marks=pytest.mark.slow) for degree in (2, 3))])
def test_block_jacobi_needs_few_newton_steps(sample_data, degree):
    corpus = read_corpus(str(sample_data / "pitch_accent.conll")).subset(range(200))
    options = {"kernel": "poly", "degree": degree, "map": "full", "sigma2": 1.0, "solver": "block-jacobi"}
    result = fit(corpus, options)[1].result
    assert result.reason == "certified" and result.gap <= 1e-3 and result.steps <= 15


def test_pairs_in_sequences_without_weight_are_observed_too(rng):
    corpus = toy_corpus(rng, 30)
    config = parse_config(with_options({}, {"sigma2": 1.0, "observed_transitions": True}))
    encoding, dataset = fit_encoding(config, corpus)
    with Workers(1) as workers:
        _, report = train(encoding, replace(dataset, weights=(np.arange(30) < 3) * 1.0), config, workers=workers)
    assert report.result.reason == "certified"


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({}, "automatic: more explain little"),
        ({"gamma": 50.0}, "every position"),
        ({"size": 20}, "20 pivots (random),"),
    ],
)
def test_the_number_of_pivots_is_told_with_its_reason(rng, options, word):
    """Smooth kernels need few pivots, and get no more of them than matter."""
    recorder = Recorder()
    fit(toy_corpus(rng, 40), {"kernel": "rbf", "sigma2": 1.0, **options}, observer=recorder)
    assert word in "\n".join(recorder.notes)


# What a model computes with


@pytest.mark.parametrize("categorical, real, bag", [(3, 2, 4), (3, 0, 0), (0, 2, 0), (0, 0, 5), (2, 0, 3)])
def test_explicit_terms_score_every_kind_of_input(categorical, real, bag):
    rng = np.random.default_rng(categorical + 10 * real + 100 * bag)
    inputs = random_inputs(rng, 30, categorical, real, bag)
    rows = np.hstack([sparse_block(inputs).toarray(), inputs.real])
    weights = rng.normal(size=(rows.shape[1], 4))
    out = rng.normal(size=(30, 4))
    expected = out + rows @ weights
    ExplicitTerm("node", "node", (), weights).add_scores(inputs, out)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


def test_kernel_models_tag_in_the_precision_they_were_trained_in(tmp_path):
    corpus = toy_corpus(np.random.default_rng(3))
    scores = {}
    for precision in ("single", "double"):
        options = {"kernel": "rbf", "size": 20, "sigma2": 1.0, "precision": precision}
        model, _ = fit(corpus, options)
        model.save(tmp_path / precision)
        loaded = Model.load(tmp_path / precision)
        assert model.terms[0].precision == loaded.terms[0].precision == precision
        dataset = model.encoding.encode(corpus)
        scores[precision] = model.potentials(dataset)[0]
        np.testing.assert_array_equal(scores[precision], loaded.potentials(dataset)[0])
        in_double = replace(model, terms=(replace(model.terms[0], precision="double"),))
        np.testing.assert_allclose(scores[precision], in_double.potentials(dataset)[0], rtol=0, atol=1e-4)
        equal = np.array_equal(scores[precision], in_double.potentials(dataset)[0])
        assert equal == (precision == "double")


def altered(path, change):
    """A model file written again after `change(header)`."""
    contents = read_container(path, "model")
    change(contents.header)
    write_container(path, "model", contents.header, contents.arrays)
    return path


def test_precision_belongs_to_the_term(rng, tmp_path):
    model, _ = fit(toy_corpus(rng), {"kernel": "rbf", "size": 9, "sigma2": 1.0, "precision": "single"})
    path = tmp_path / "m.npz"

    def load(change):
        model.save(path)
        return Model.load(altered(path, change))

    def in_double(header):
        header["info"]["config"]["training"]["precision"] = "double"

    assert load(in_double).terms[0].precision == "single"
    assert load(lambda header: header.update(info={})).terms[0].precision == "single"
    for wrong in (None, "half", 1, ["single"]):
        with pytest.raises(FileFormatError, match="'precision'"):
            load(lambda header, wrong=wrong: header["terms"][0].update(precision=wrong))
    with pytest.raises(FileFormatError, match="'precision'"):
        load(lambda header: header["terms"][0].pop("precision"))


def test_a_kernel_that_nobody_registered_is_named_and_nothing_is_imported_for_it(rng, tmp_path):
    model, _ = fit(toy_corpus(rng), {"kernel": "rbf", "size": 9, "sigma2": 1.0})
    model.save(tmp_path / "m.npz")
    altered(tmp_path / "m.npz", lambda header: header["terms"][0].update(kernel={"type": "antigravity"}))
    with pytest.raises(FileFormatError, match="'antigravity'"):
        Model.load(tmp_path / "m.npz")
    assert "antigravity" not in sys.modules


def test_a_map_that_nobody_knows_is_an_error(rng, tmp_path):
    model, _ = fit(toy_corpus(rng), {"sigma2": 1.0})
    for wrong in ("wavelets", None, ["explicit"], {}):
        model.save(tmp_path / "m.npz")
        altered(tmp_path / "m.npz", lambda header, wrong=wrong: header["terms"][0].update(map=wrong))
        with pytest.raises(FileFormatError, match="unknown map"):
            Model.load(tmp_path / "m.npz")
