"""Configurations beside the default one, compared on held-out data before training."""

from dataclasses import replace

import numpy as np
import pytest

from kcrf_core import Corpus, Workers, fit_encoding
from kcrf_core.encoding import alternatives, configured
from kcrf_core.scoring import choose_yardstick
from kcrf_core.training import HoldOut, choose_configuration
from kcrf_core.training.screening import choose

ALL_OF_WORDS = "pairs of shapes, kinds and edges"
WITH_TRANSITIONS = f"{ALL_OF_WORDS}, for transitions, too"


def of_columns(columns, length, name="toy"):
    N = len(columns[0])
    return Corpus(name, tuple(map(list, columns)), np.arange(0, N + 1, length), np.arange(1, N + 1))


def changing(rng, sequences=12, length=30):
    """Two coordinates; the label says whether they change fast or slowly."""
    columns = [[], [], []]
    for _ in range(sequences):
        y = (np.cumsum(rng.random(length) > 0.9) + rng.integers(2)) % 2
        path = 100 * rng.normal(size=2) + np.cumsum(rng.normal(size=(length, 2)) * (0.3 + y[:, None]), axis=0)
        for own, values in zip(columns, [*path.T, y], strict=True):
            own += [f"{value:.3f}" for value in values] if own is not columns[-1] else [f"y{value}" for value in values]
    return of_columns(columns, length)


def letters(rng, sequences=20, length=30):
    """Letters; the label says whether one of some 4-grams begins here."""
    x = rng.integers(0, 3, (sequences, length))
    chosen = rng.random(81) < 0.4
    padded = np.pad(x, ((0, 0), (0, 3)))
    codes = sum(padded[:, k : k + length] * 3**k for k in range(4))
    return of_columns([np.array(list("abc"))[x].ravel(), np.where(chosen[codes], "in", "out").ravel()], length)


def noise(rng, sequences=12, length=20):
    x, y = rng.integers(0, 4, (2, sequences * length))
    return of_columns([[f"s{value}" for value in x], [f"y{value % 2}" for value in y]], length)


def references(rng, sequences=60, length=20):
    """Words with punctuation; the label says whether a year stands four positions before."""
    words = ["".join(rng.choice(list("abcdefgh"), 4)) + rng.choice(["", ",", "."]) for _ in range(sequences * length)]
    years = rng.random((sequences, length)) < 0.4
    texts = [f"({rng.integers(1800, 2000)})" if year else word for word, year in zip(words, years.ravel(), strict=True)]
    labels = np.pad(years, ((0, 0), (4, 0)))[:, :length].ravel()
    return of_columns([texts, np.where(labels, "after", "other")], length)


@pytest.mark.parametrize(
    ("make", "taken"),
    [(changing, "linear with speed"), (letters, "n-grams"), (noise, "default"), (references, ALL_OF_WORDS)],
)
def test_what_the_labels_depend_on_is_taken_and_noise_keeps_the_default(rng, workers, make, taken):
    corpus = make(rng)
    config, said, compared = choose_configuration({}, {}, corpus, "test", workers)
    assert f"taken: {taken};" in compared and "default" in compared
    default, usual = configured({}, {}, corpus, "test")
    if taken == "default":
        assert config == default and said == usual
    else:
        assert config == alternatives({}, {}, corpus, "test")[taken]
        fit_encoding(config, corpus)
    # A given sigma2 is no choice of features, and a search without one is not needed.
    assert "taken: " in choose_configuration({}, {"sigma2": 1.0}, corpus, "test", workers)[2]


@pytest.mark.parametrize(
    "options", [{"window": [0]}, {"plain": True}, {"kernel": "linear"}, {"c1": 1.0}, {"features.c0.window": "0"},
                {"order": 2}, {"size": 20}, {"observed_features": True}, {"terms.edge.sigma2": 1.0}]
)  # fmt: skip
def test_choices_of_users_are_not_compared(rng, options):
    corpus = changing(rng, 4)
    assert alternatives({}, {}, corpus, "test")
    assert not alternatives({}, options, corpus, "test")
    assert not alternatives({"window": [0]}, {}, corpus, "test")


def test_without_workers_the_default_is_taken(rng):
    corpus = letters(rng, 6)
    assert choose_configuration({}, {}, corpus, "test") == (*configured({}, {}, corpus, "test"), None)


def test_too_little_data_keeps_the_default(rng, workers):
    config, _, compared = choose_configuration({}, {}, letters(rng, 1, 12), "test", workers)
    assert compared is None and config.mapped_terms


@pytest.mark.slow
def test_the_choice_does_not_depend_on_threads(rng):
    corpus, found = letters(rng, 12), []
    for threads in (1, 2):
        with Workers(threads) as workers:
            found.append(choose_configuration({}, {}, corpus, "test", workers, HoldOut(np.arange(12) // 2)))
    assert found[0] == found[1] and "6 held-out groups" in found[0][2]


def test_a_choice_needs_a_standard_error_and_linear_weights_win_ties():
    log_loss = choose_yardstick(["a", "b"], "log-loss")
    units = {"default": [-5, -5, -5, -5], "rbf": [-4, -6, -2, -6], "linear": [-4, -6, -4, -6], "n": [-5, -6, -5, -5]}
    logs = {name: np.array([[value, 10.0] for value in own]) for name, own in units.items()}
    assert choose(log_loss, logs) == "default"
    assert choose(log_loss, logs, ["linear", "n"]) == "linear"
    assert choose(log_loss, logs, ["n"]) == "default"
    logs["rbf"][:, 0] = -3, -3, -4, -4
    assert choose(log_loss, logs, ["linear", "n"]) == "rbf"
    assert choose(log_loss, {"default": logs["n"], **logs}) == "rbf"
    # A slow one must beat the linear one, too.
    assert choose(log_loss, logs, ["linear", "n"], ["rbf"]) == "rbf"
    logs["linear"][:, 0] = -2, -4, -4, -4
    assert choose(log_loss, logs, ["linear", "n"]) == "rbf"
    assert choose(log_loss, logs, ["linear", "n"], ["rbf"]) == "linear"


def test_words_have_others_in_enough_data_and_beside_columns_of_their_names(rng):
    corpus = references(rng)
    assert list(alternatives({}, {}, corpus, "test")) == ["pairs of shapes", ALL_OF_WORDS, WITH_TRANSITIONS]
    assert not alternatives({}, {}, references(rng, 49), "test")
    many = of_columns([corpus.columns[0], [f"y{place % 31}" for place in range(corpus.positions)]], 20)
    assert list(alternatives({}, {}, many, "test")) == ["pairs of shapes", ALL_OF_WORDS]
    spans = of_columns([corpus.columns[0], ["B-X", "I-X", "O", "O"] * (corpus.positions // 4)], 20)
    assert list(alternatives({}, {}, spans, "test")) == ["pairs of shapes", ALL_OF_WORDS]
    # Words in small letters have one shape.
    small = of_columns([["".join(rng.choice(list("abcd"), 4)) for _ in range(1200)], ["x", "y"] * 600], 20)
    assert not alternatives({}, {}, small, "test")
    columns = [corpus.columns[0], ["s", "t"] * 600, corpus.columns[-1]]
    named = replace(of_columns(columns, 20), header=("word", "word.kind", "label"))
    made = alternatives({}, {}, named, "test")[ALL_OF_WORDS]
    assert [one.columns for one in made.features if one.name == "word.kind"] == [("word.kind",)]
    fit_encoding(made, named)
    paired = alternatives({}, {}, named, "test")[WITH_TRANSITIONS].terms
    assert [(term.type, term.features) for term in paired[1:]] == [("edge-x", ("word.edges",)), ("edge", ())]


def test_lexicons_are_added_to_all_candidates_of_words(rng, tmp_path, workers):
    corpus = references(rng)
    entries = tmp_path / "entries.txt"
    entries.write_text("\n".join(sorted(set(corpus.columns[0]))[:20]) + "\n", encoding="utf-8")
    options = {"lexicon": {"entry": str(entries)}}
    made = alternatives({}, options, corpus, "test")
    assert list(made) == ["pairs of shapes", ALL_OF_WORDS, WITH_TRANSITIONS]
    assert all([one.name for one in config.features if one.lookup] == ["c0.entry"] for config in made.values())
    fit_encoding(made[ALL_OF_WORDS], corpus)
    assert "taken: " in choose_configuration({}, options, corpus, "test", workers)[2]
