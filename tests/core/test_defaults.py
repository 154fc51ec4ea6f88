"""Features that data gets where nobody names any: by what its columns look like."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from kcrf_core.config import parse_config
from kcrf_core.corpora import read_corpus
from kcrf_core.encoding import (
    Defaults,
    configured,
    defaults,
    described,
    fit_encoding,
    suggested_number_terms,
    window_of_numbers,
    with_defaults,
)
from kcrf_core.errors import ConfigError


@pytest.fixture
def corpus_of(tmp_path):
    """Sequences of ten positions; each column is a function of a random generator and the position."""

    def make(N, *columns, name="data.conll", length=10):
        rng = random.Random(0)
        lines = []
        for t in range(N):
            lines.append("\t".join(str(column(rng, t)) for column in columns))
            lines += [""] * (t % length == length - 1)
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return read_corpus(str(path))

    return make


def label(rng, t):
    return rng.choice("XY")


def word(rng, t):
    """One of many, capitalised here and there."""
    text = "".join(rng.choice("abcdefgh") for _ in range(rng.randint(2, 7)))
    return text.capitalize() if rng.random() < 0.2 else text


def features(corpus, **raw):
    return with_defaults(raw, corpus).raw.get("features")


def transforms(made, column):
    return [f"{f['transform']}{f.get('length', '')}" for f in made if f.get("column") == column and "transform" in f]


def test_words_have_parts_shapes_and_lower_case(corpus_of):
    made = features(corpus_of(1000, word, label))
    affixes = [f"{kind}{length}" for kind in ("prefix", "suffix") for length in (1, 2, 3, 4)]
    assert made[0] == {"column": "c0"} and transforms(made, "c0") == ["lower", *affixes, "shape"]
    assert {tuple(f["window"]) for f in made if f.get("transform") in ("prefix", "suffix")} == {(0,)}


@pytest.mark.parametrize(
    "change, missing",
    [
        (str.lower, ["lower"]),  # which is what they are
        (lambda text: text[:2], ["prefix2", "prefix3", "prefix4", "suffix2", "suffix3", "suffix4"]),
        (lambda text: "x" + text, ["prefix1"]),  # which all words have
    ],
)
def test_what_tells_nothing_new_is_left_out(corpus_of, change, missing):
    values = [f"{a}{b}{c}{d}" for a in "abcdefg" for b in "ABCDEFGH" for c in "ij" for d in "klm"]
    made = transforms(features(corpus_of(2000, lambda rng, t: change(rng.choice(values)), label)), "c0")
    for name in missing:
        assert name not in made


def test_characters_are_taken_with_their_neighbours(corpus_of):
    """Chinese: a text of characters has no parts of words, and pairs tell what words there are."""
    made = features(corpus_of(20_000, lambda rng, t: chr(0x4E00 + min(rng.randrange(400), rng.randrange(400))), label))
    assert transforms(made, "c0") == []
    assert not any("conjunction" in f for f in made)  # 100,000 pairs, hardly one of them twice
    made = features(corpus_of(20_000, lambda rng, t: chr(0x4E00 + int(rng.expovariate(0.1))), label))
    assert {"conjunction": ["c0", "c0[1]"], "window": [-2, -1, 0, 1]} in made


@pytest.mark.parametrize("values, tuples", [("ACGT", 3), ("abcdefghijklmnopqrstuvwxyz", 2), ("A", 0)])
def test_tags_are_taken_with_their_neighbours_where_tuples_recur(corpus_of, values, tuples):
    made = features(corpus_of(4000, lambda rng, t: rng.choice(values), label))
    assert made[0]["column"] == "c0" and transforms(made, "c0") == []
    assert [len(f["conjunction"]) for f in made[1:]] == list(range(2, tuples + 1))


def test_what_never_changes_in_a_sequence_is_looked_at_once(corpus_of):
    made = features(corpus_of(3000, lambda rng, t: f"speaker_{t // 10 % 250:03}", word, label))
    assert made[0] == {"column": "c0", "window": [0]} and made[1] == {"column": "c1"}


@pytest.mark.parametrize(
    "value",
    [
        lambda rng, t: f"{rng.randrange(10**6)}-{rng.randrange(10**6)}",  # ids without letters
        lambda rng, t: f"https://example.org/{rng.randrange(10**6)}?q={rng.randrange(99)}",
        lambda rng, t: rng.choice(["", "a", "B", "_"]),
        lambda rng, t: rng.choice(["Äpfel", "groß", "GROSS", "Straße", "ı", "İ", "ǆ", "１２", "½"]),
        lambda rng, t: "same",
        lambda rng, t: f"{rng.randrange(3)}",
        lambda rng, t: "_" if t % 7 else "1.5",
    ],
)
def test_any_column_makes_a_model_configuration(corpus_of, value):
    """Whatever stands there: the defaults are a configuration that encodes the data, and new data."""
    corpus = corpus_of(600, value, lambda rng, t: rng.choice("pq"), label)
    config = parse_config(with_defaults({}, corpus).raw)
    encoding, dataset = fit_encoding(config, corpus)
    assert dataset.positions == 600 and encoding.encode(corpus.subset([3])).positions == 10
    assert parse_config(config.to_dict()) == config


def smooth(rng, t):
    return f"{np.sin(t / 3) + 0.1 * rng.gauss(0, 1):.4f}"


def noise(rng, t):
    return f"{rng.gauss(0, 1):.4f}"


def test_numbers_that_resemble_their_neighbours_have_a_window(corpus_of):
    made = features(corpus_of(400, smooth, noise, label))
    assert made == [{"column": "c0", "window": [-2, -1, 0, 1, 2]}, {"column": "c1"}]


def test_windows_of_numbers_are_no_wider_than_the_data_allows(corpus_of):
    wide = corpus_of(400, *[smooth] * 12, label)  # 40 columns are what 400 positions are enough for
    assert {tuple(f["window"]) for f in features(wide)} == {(-1, 0, 1)}
    assert all("window" not in f for f in features(corpus_of(400, *[smooth] * 20, label)))
    assert all("window" not in f for f in features(corpus_of(400, smooth, label), window="0..0"))
    image = {"terms": [{"kernel": {"type": "image", "shape": "1x1"}}]}
    assert all("window" not in f for f in features(corpus_of(400, smooth, label), **image))


def test_vectors_have_windows_like_numbers(corpus_of):
    corpus = corpus_of(400, word, label)
    t = np.arange(400)
    vectors = np.stack([np.sin(t / 5), np.cos(t / 5)], axis=1)
    made = features(replace(corpus, vectors={"emb": vectors}))
    assert made[-1] == {"vectors": "emb", "window": [-2, -1, 0, 1, 2]}
    made = features(replace(corpus, vectors={"emb": np.random.default_rng(0).normal(size=(400, 3))}))
    assert made[-1] == {"vectors": "emb"}
    assert window_of_numbers(vectors, corpus) == (-2, -1, 0, 1, 2)


def test_a_few_whole_numbers_may_be_names(corpus_of):
    made = features(corpus_of(400, lambda rng, t: rng.randint(1, 4), label))
    assert made == [{"column": "c0"}, {"name": "c0.code", "column": "c0", "type": "categorical"}]
    for column in (
        lambda rng, t: rng.randint(0, 1),
        lambda rng, t: rng.randint(1, 20),
        lambda rng, t: rng.randint(1, 4) / 2,
    ):
        assert features(corpus_of(400, column, label)) == [{"column": "c0"}]
    pixels = corpus_of(400, *[lambda rng, t: rng.randint(0, 7)] * 20, label)
    assert features(pixels) == [{"column": f"c{number}"} for number in range(20)]


def test_gaps_do_not_count_as_resembling(corpus_of):
    made = features(corpus_of(400, lambda rng, t: "NA" if t % 3 else noise(rng, t), label))
    assert made == [{"column": "c0"}]


def test_plain_columns_and_named_features_stay_as_they_are(corpus_of):
    corpus = corpus_of(1000, word, smooth, label)
    assert with_defaults({"plain": True}, corpus).raw == {"plain": True}
    given = {"features": [{"column": "c0"}]}
    assert with_defaults(given, corpus) == Defaults(given)
    encoding, _ = fit_encoding(parse_config({"plain": True}), corpus)
    assert encoding.names == ["c0", "c1"]


def test_columns_can_be_ignored(corpus_of):
    corpus = corpus_of(1000, word, smooth, label)
    for plain in (False, True):
        raw = with_defaults({"ignore": ["c0"], "plain": plain}, corpus).raw
        assert fit_encoding(parse_config(raw), corpus)[0].names == ["c1"]
    with pytest.raises(ConfigError, match="'ignore' names no column: there is no 'c7'"):
        with_defaults({"ignore": ["c7"]}, corpus)


def test_columns_that_have_the_names_of_what_would_be_made(corpus_of):
    corpus = corpus_of(1000, word, word, label)
    made = features(corpus, columns=["word", "word.shape", "label"])
    assert "shape" not in transforms(made, "word") and "prefix1" in transforms(made, "word")
    raw = {"columns": ["word", "word.shape", "label"], "terms": [{"kernel": "poly"}]}
    fit_encoding(parse_config(with_defaults(raw, corpus).raw), corpus)


@pytest.mark.parametrize("brackets", [" [k]", "[1]", "[km/h]"])
def test_names_of_columns_may_have_brackets(corpus_of, brackets):
    corpus = corpus_of(1000, word, lambda rng, t: rng.choice("ACGT"), noise, smooth, label)
    names = [name + brackets for name in ("word", "class", "speed", "pitch")]
    config, _ = configured({}, {"columns": [*names, "label"]}, corpus, "options")
    encoding, _ = fit_encoding(config, corpus)
    parts = [name for feature in encoding.features for name, _ in feature.config.parts]
    assert set(parts) == {names[1]}
    assert parse_config(config.to_dict()) == config
    with pytest.raises(ConfigError, match=r"'class\[x\]'"):
        fit_encoding(parse_config({"features": [{"conjunction": ["c0", "class[x]"]}]}), corpus)


def test_what_was_made_is_said(corpus_of):
    said = with_defaults({}, corpus_of(2000, word, lambda rng, t: rng.choice("pqr"), smooth, label)).said
    assert "c0 as words, with lower case, prefixes, suffixes and shapes;" in said
    assert "c1 with its neighbours" in said and "c2 at -2..2" in said and "'plain'" in said
    assert with_defaults({}, corpus_of(400, noise, label)).said is None
    said = with_defaults({}, corpus_of(2000, lambda rng, t: word(rng, t).lower(), label)).said
    assert "c0 as words, with prefixes and suffixes; not with 'plain'" in said


def test_features_have_weights_for_labels_that_they_are_seen_with_where_there_are_several(corpus_of):
    several = corpus_of(1000, word, lambda rng, t: rng.choice("ABCDE"))
    assert with_defaults({}, several).raw["training"] == {"observed_features": True}
    asked = {"training": {"observed_features": False}}
    assert with_defaults(asked, several).raw["training"] == {"observed_features": False}
    assert "training" not in with_defaults({}, corpus_of(1000, word, label)).raw
    assert "training" not in with_defaults({"terms": [{"kernel": "poly"}]}, several).raw


def test_a_kernel_on_text_goes_over_near_plain_columns(corpus_of):
    corpus = corpus_of(1000, word, lambda rng, t: rng.choice("pqr"), label)
    config, _ = configured({}, {"kernel": "poly", "degree": 3, "sigma2": 2}, corpus, "options")
    linear, poly, edge = config.terms
    assert linear.features == ("*",) and linear.kernel.type == "linear" and edge.type == "edge"
    assert poly.name == "node" and poly.kernel.degree == 3 and poly.window == (-1, 0, 1)
    assert poly.features == ("c0.lower", "c0.shape", "c1")
    encoding, dataset = fit_encoding(config, corpus)
    assert encoding.inputs(dataset, encoding.term_features(poly)).codes.shape[1] == 9
    with_numbers = corpus_of(1000, word, smooth, label)
    config, _ = configured({}, {"kernel": "poly"}, with_numbers, "options")
    assert config.terms[1].window is None and config.terms[1].features == ("c0.lower", "c0.shape", "c1")
    own = {"terms": [{"kernel": "poly", "features": ["c0"]}, {"type": "edge"}]}
    assert with_defaults(own, corpus).raw["terms"] == own["terms"]


def test_paths_lead_into_features_that_the_data_tells(corpus_of):
    corpus = corpus_of(1000, word, label)
    options = {"features.c0.shape.window": "0..0", "training.sigma2": 3}
    assert described({}, options, "options").features is None
    config, _ = configured({}, options, corpus, "options")
    assert next(f for f in config.features if f.name == "c0.shape").window == (0,) and config.training.sigma2 == 3
    with pytest.raises(ConfigError, match="no entry is called 'c9'"):
        configured({}, {"features.c9.window": 1}, corpus, "options")


def smooth_number(rng, t):
    return round(t + rng.random(), 3)


def kernel_of(corpus, raw=None, **options):
    config, said = configured(raw or {}, options, corpus, "test")
    (term,) = config.mapped_terms
    return (term.kernel.type, term.map.size), said


def test_numbers_alone_get_a_kernel_where_nobody_says_which(corpus_of):
    numbers = corpus_of(1000, lambda rng, t: rng.random(), smooth_number, label)
    assert kernel_of(numbers)[0] == ("rbf", 500)
    assert "an rbf kernel over all numbers" in kernel_of(numbers)[1]
    assert kernel_of(numbers, size=50, order=2)[0] == ("rbf", 50)
    config, _ = configured({}, {"gamma": 0.3}, numbers, "test")
    assert config.mapped_terms[0].kernel.settings["gamma"] == 0.3
    assert described({}, {"gamma": 0.3}, "test").mapped_terms[0].kernel.type == "rbf"
    with pytest.raises(ConfigError, match="'gamma' does not belong to the kernel 'linear'"):
        configured({}, {"gamma": 0.3}, corpus_of(100, word, label, name="words.conll"), "test")
    for said in ({"kernel": "linear"}, {"terms.node.kernel.type": "linear"}, {"c1": 0.1}, {"observed_features": True}):
        assert kernel_of(numbers, **said)[0] == ("linear", None)
    for raw in ({"plain": True}, {"training": {"c1": 0.1}}, {"terms": [{"name": "node"}, {"type": "edge"}]}):
        assert kernel_of(numbers, raw)[0] == ("linear", None)
    beside_words = corpus_of(1000, word, smooth_number, label, name="both.conll")
    assert kernel_of(beside_words)[0] == ("linear", None)


def test_numbers_beside_categories_get_a_kernel_beside_linear_weights(corpus_of):
    """A few readings with a room and a code: all linearly, the numbers with a kernel; text has no kernel."""
    columns = (lambda rng, t: rng.choice("pqr"), smooth_number, lambda rng, t: rng.randint(1, 4), label)
    mixed = corpus_of(1000, *columns)
    config, said = configured({}, {}, mixed, "test")
    linear, kernel = config.mapped_terms
    assert (linear.name, linear.kernel.type, linear.features) == ("linear", "linear", ("*",))
    assert (kernel.name, kernel.kernel.type, kernel.map.size) == ("node", "rbf", 500)
    assert kernel.features == ("c1.rank", "c2", "c2.code")
    assert "c1 as ranks; an rbf kernel over numbers, beside linear weights of all features" in said
    # Encoded first, the same terms follow from the encoding.
    early, _ = configured({}, {}, mixed, "test", terms=False)
    encoding, _ = fit_encoding(early, mixed)
    assert suggested_number_terms(encoding)[1]["features"] == list(kernel.features)
    assert len(configured({}, {"size": 50}, mixed, "test")[0].mapped_terms) == 2
    assert len(configured({}, {"kernel": "linear"}, mixed, "test")[0].mapped_terms) == 1


def test_kernels_see_ranks_of_readings_and_of_heavy_tails(corpus_of):
    yes_or_no = lambda rng, t: int(t % 10 > 4)  # noqa: E731, smooth, too
    heavy = lambda rng, t: 1 / (rng.random() + 1e-6)  # noqa: E731
    numbers = corpus_of(1000, smooth_number, lambda rng, t: rng.random(), yes_or_no, heavy, label)
    names = [feature.name for feature in configured({}, {}, numbers, "test")[0].features]
    assert names == ["c0.rank", "c1", "c2", "c3.rank"]
    for raw, options in (({}, {"kernel": "linear"}), ({"plain": True}, {}), ({"window": [0]}, {})):
        features = configured(raw, options, numbers, "test")[0].features or ()
        assert all(feature.transform == "identity" for feature in features)


def test_very_many_numbers_stay_linear(corpus_of, monkeypatch):
    numbers = corpus_of(100, smooth_number, label)
    monkeypatch.setattr(defaults, "MOST_KERNEL_POSITIONS", 99)
    assert kernel_of(numbers)[0] == ("linear", None)
