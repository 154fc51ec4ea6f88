"""What must hold of encodings: rows have the inner products that their strings and numbers say.

The oracle describes a position by a dictionary, {what it looks at: how much}; two positions have the inner product of
their dictionaries.
"""

from __future__ import annotations

import io
import math
import random

import numpy as np
import pytest
import scipy.sparse

from kcrf_core.config import parse_config
from kcrf_core.corpora import FORMATS
from kcrf_core.corpora.corpus import concatenate
from kcrf_core.corpora.lines import blocks
from kcrf_core.encoding import Encoding, fit_encoding
from kcrf_core.errors import ConfigError, DataError
from kcrf_core.files import read_container, write_container
from kcrf_core.kernels import UNSEEN, Inputs


def corpus_of(data, format="conll", name="data"):
    """A corpus out of text, or out of sequences of rows of values."""
    if not isinstance(data, str):
        data = "\n\n".join("\n".join("\t".join(map(str, row)) for row in rows) for rows in data) + "\n"
    parsed = FORMATS[format].parse(blocks(io.BytesIO(data.encode()), name), name)
    return concatenate(part.corpus for part in parsed)


def fit(data, format="conll", **raw):
    return fit_encoding(parse_config(raw), corpus_of(data, format))


def error_of(kind, call, *args, **kwargs):
    with pytest.raises(kind) as caught:
        call(*args, **kwargs)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def products(a, b):
    """<x, x'> of all rows, straight from the definition of `Inputs`."""
    out = ((a.codes[:, None] == b.codes[None]) & (a.codes[:, None] >= 0)).sum(axis=2) + a.real @ b.real.T
    return out if a.bag is None else out + a.bag.toarray() @ b.bag.toarray().T


def all_inputs(encoding, dataset):
    return encoding.inputs(dataset, encoding.names)


def assert_like_oracle(encoding, training, training_rows, new, new_rows):
    """Inner products of training and new rows, and <x, x> of both, are those of the dictionaries."""

    def product(x, y):
        return sum(value * y.get(key, 0.0) for key, value in x.items())

    inputs, new_inputs = all_inputs(encoding, training), all_inputs(encoding, new)
    for left, left_rows in ((inputs, training_rows), (new_inputs, new_rows)):
        expected = [[product(x, y) for y in training_rows] for x in left_rows]
        np.testing.assert_allclose(products(left, inputs), expected, rtol=1e-9, atol=1e-9)
        norms = [product(x, x) for x in left_rows]
        np.testing.assert_allclose(left.squared_norms(), norms, rtol=1e-9, atol=1e-9)
    assert not inputs.unseen.any() and (inputs.codes != UNSEEN).all()


# Windows, against dictionaries

TRANSFORMS = {
    "lower": (lambda value: value.lower(), None),
    "prefix": (lambda value: value[:2], 2),
    "suffix": (lambda value: value[-1:], 1),
}


def look(sequence, t, column, transform=lambda value: value):
    if t < 0:
        return f"_B{t}"
    return f"_B+{t - len(sequence) + 1}" if t >= len(sequence) else transform(sequence[t][column])


def random_sequences(rng, count, values):
    def row():
        return [rng.choice(values), rng.choice("pq"), f"{rng.gauss(3, 2):.3f}", rng.choice("XY")]

    return [[row() for _ in range(rng.randint(1, 6))] for _ in range(count)]


def random_window(rng):
    return sorted(rng.sample(range(-7, 8), rng.randint(1, 5)))


def random_features(rng):
    """Raw features, and a function that gives the dictionary of a position."""
    windows = [random_window(rng) for _ in range(6)]
    transform = rng.choice(sorted(TRANSFORMS))
    function, length = TRANSFORMS[transform]
    offsets = [rng.randint(-3, 3) for _ in range(3)]
    raw = [
        {"name": "plain", "column": "word", "window": windows[0]},
        {"name": "made", "column": "word", "transform": transform, "window": windows[1]},
        {"name": "pair", "conjunction": [f"word[{offsets[0]}]", f"pos[{offsets[1]}]"], "window": windows[2]},
        {"name": "three", "conjunction": ["made", "plain[1]", f"pos[{offsets[2]}]"], "window": windows[3]},
        {"name": "number", "column": "f0", "window": windows[4]},
        {"name": "length", "column": "word", "transform": "length", "scale": "none", "window": windows[5]},
    ]
    if length is not None:
        raw[1]["length"] = length

    def describe(sequence, t, mean, deviation):
        out = {}
        for o in windows[0]:
            out["plain", o, look(sequence, t + o, 0)] = 1.0
        for o in windows[1]:
            out["made", o, look(sequence, t + o, 0, function)] = 1.0
        for o in windows[2]:
            parts = (look(sequence, t + o + offsets[0], 0), look(sequence, t + o + offsets[1], 1))
            out["pair", o, parts] = 1.0
        for o in windows[3]:
            parts = (look(sequence, t + o, 0, function), look(sequence, t + o + 1, 0))
            out["three", o, parts, look(sequence, t + o + offsets[2], 1)] = 1.0
        for o in windows[4]:
            inside = 0 <= t + o < len(sequence)
            out["number", o] = (float(sequence[t + o][2]) - mean) / deviation if inside else 0.0
        for o in windows[5]:
            out["length", o] = float(len(sequence[t + o][0])) if 0 <= t + o < len(sequence) else 0.0
        return out

    return raw, describe


@pytest.mark.parametrize("seed", range(25))
def test_windows_are_what_strings_say(seed):
    rng = random.Random(seed)
    training = random_sequences(rng, rng.choice([1, 1, 2, 8]), ["Aa", "aa", "aab", "B"])
    if seed % 5 == 0:
        training = [training[0][:1]] * (1 + seed % 2) if len(training) == 1 else [rows[:2] for rows in training[:1]]
    new = random_sequences(rng, 4, ["Aa", "aab", "new", "Bab"])
    raw, describe = random_features(rng)
    numbers = [float(row[2]) for rows in training for row in rows]
    mean, deviation = np.mean(numbers), np.std(numbers)
    if deviation == 0:
        deviation = max(abs(mean), 1.0)
    encoding, dataset = fit(training, columns=["word", "pos", "f0", "label"], features=raw)
    rows, new_rows = (
        [describe(sequence, t, mean, deviation) for sequence in sequences for t in range(len(sequence))]
        for sequences in (training, new)
    )
    assert_like_oracle(encoding, dataset, rows, encoding.encode(corpus_of(new)), new_rows)


@pytest.mark.parametrize("lengths", [[1], [2], [3], [1, 1], [1, 2, 1], [4, 1]])
@pytest.mark.parametrize("offset", range(-9, 10))
def test_offsets_beyond_the_whole_corpus(lengths, offset):
    sequences = [[[f"w{s}{t}", f"{s}.{t}1", "X"] for t in range(T)] for s, T in enumerate(lengths)]
    features = [{"column": "c0", "window": [offset]}, {"column": "c1", "window": [offset], "scale": "none"}]
    encoding, dataset = fit(sequences, features=features)
    described = [encoding.describe(dataset, t) for t in range(dataset.positions)]
    assert described == [
        [
            f"c0[{offset}]={look(sequence, t + offset, 0)}",
            f"c1[{offset}]={sequence[t + offset][1] if 0 <= t + offset < len(sequence) else 0}",
        ]
        for sequence in sequences
        for t in range(len(sequence))
    ]


def test_default_windows():
    encoding, _ = fit([[["a", "1", "X"], ["b", "2", "Y"]]])
    assert encoding.columns == ("c0", "c1", "label") and encoding.labels == ("X", "Y")
    assert [feature.config.window for feature in encoding.features] == [(-2, -1, 0, 1, 2), (0,)]
    encoding, _ = fit([[["a", "1", "X"], ["b", "2", "Y"]]], window="0..1")
    assert [feature.config.window for feature in encoding.features] == [(0, 1), (0, 1)]


def test_inputs_of_some_features():
    rng = random.Random(0)
    raw, _ = random_features(rng)
    sequences = random_sequences(rng, 6, ["a", "b", "cc"])
    columns = ["word", "pos", "f0", "label"]
    encoding, dataset = fit(sequences, columns=columns, features=raw)
    for names in (["plain"], ["number"], ["pair", "length"], ["three", "number", "made"]):
        wanted = [feature for feature in raw if feature["name"] in names]
        helpers = [] if "three" not in names else [raw[0]]  # which conjunctions refer to
        alone, alone_dataset = fit(sequences, columns=columns, features=helpers + wanted)
        expected = alone.inputs(alone_dataset, names)
        got = encoding.inputs(dataset, names)
        np.testing.assert_array_equal(got.codes, expected.codes)
        np.testing.assert_array_equal(got.sizes, expected.sizes)
        np.testing.assert_array_equal(got.real, expected.real)
        assert got.bag is None and len(got) == dataset.positions
        assert got.codes.shape[1] == 0 or (got.codes < got.sizes).all()


def test_terms_name_features_by_globs():
    terms = [{"features": ["c0*"]}, {"name": "other", "features": ["c1"]}]
    raw = {"features": [{"column": "c0"}, {"column": "c0", "transform": "lower"}, {"column": "c1"}], "terms": terms}
    encoding, _ = fit([[["a", "b", "X"]]], **raw)
    config = parse_config(raw)
    assert [encoding.term_features(term) for term in config.mapped_terms] == [["c0", "c0.lower"], ["c1"]]
    terms[1]["features"] = ["c2"]
    assert "no feature is called 'c2'" in error_of(ConfigError, fit, [[["a", "b", "X"]]], **raw)


NEAR = {
    "features": [
        {"column": "c0", "window": "-1..1"},
        {"column": "c1"},
        {"column": "c2", "window": "0..1"},
        {"conjunction": ["c0[-1]", "c1"], "name": "pair"},
    ],
    "terms": [
        {"name": "all"},
        {"name": "near", "features": ["c0", "pair"], "window": [-3, 0]},
        {"name": "real", "features": ["c2"], "window": "-2..0"},
    ],
}


@pytest.mark.parametrize("seed", range(3))
def test_terms_have_windows_of_their_own(seed):
    """Each term sees what features with its window would have shown it, whatever others look at."""
    data = random_sequences(random.Random(seed), 8, ["Aa", "aa", "B"])
    encoding, dataset = fit(data, **NEAR)
    for term in parse_config(NEAR).mapped_terms:
        window = {} if term.window is None else {"window": list(term.window)}
        own = [feature | window for feature in NEAR["features"]]
        alone, other = fit(data, features=own)
        names = [parse_config({"features": [one]}).features[0].name for one in own]
        chosen = [name for name in names if term.features == ("*",) or name in term.features]
        expected = alone.inputs(other, chosen)
        seen = encoding.term_features(term)
        np.testing.assert_allclose(products(*[encoding.inputs(dataset, seen)] * 2), products(expected, expected))
        assert len(encoding.feature_names(seen)) == len(expected.real[0]) + encoding.inputs(dataset, seen).sizes.sum()
    assert encoding.term_features(parse_config(NEAR).terms[1]) == ["c0[-3,0]", "pair"]
    assert encoding.reach(["c0[-3,0]", "c2[-2..0]"]) == (3, 0)
    assert encoding.groups(["c2[-2..0]"])["c2"].real == (0, 1, 2)
    assert not encoding.has("c0[5]") and not encoding.has("c0[0..-3]") and not encoding.has("c0[x]")


def test_windows_of_terms_that_the_data_was_not_encoded_for():
    encoding, _ = fit([[["a", "b", "X"]]])
    far = parse_config({"terms": [{"name": "far", "window": "-3..0"}]}).terms[0]
    assert "'far' looks at 'c0' at -3" in error_of(ConfigError, encoding.term_features, far)
    attributes = {"terms": [{"name": "far", "window": "-1..1"}, {"type": "edge"}]}
    assert "cannot be shifted" in error_of(ConfigError, fit, "X\ta\n", "crfsuite", **attributes)


# Transforms


@pytest.mark.parametrize(
    "transform, length, values",
    [
        ("identity", None, {"Über": "Über", "a": "a"}),
        ("lower", None, {"Über": "über", "ABC": "abc", "1": "1"}),
        ("prefix", 2, {"Über": "Üb", "a": "a", "ab": "ab"}),
        ("suffix", 3, {"Über": "ber", "a": "a", "abc": "abc"}),
        (
            "shape",
            None,
            {
                "McDonald's-9": "XxXx'x-d",
                "USA": "X",
                "1999": "d",
                "...": ".",
                "Ünal": "Xx",
                "日本": "x",
                "a1B2": "xdXd",
            },
        ),
        ("edges", None, {"(Bern:": "(x:", "O'Hara,": "x,", "...": "...", "«9»": "«x»"}),
        (
            "kind",
            None,
            {
                "(1999a).": "year",
                "1399": "dddd",
                "7,": "d",
                "123456": "ddddd",
                "12–15;": "range",
                "3.1.4": "digits",
                "A4": "mixed",
                "B.": "letter",
                "J.-P.": "initials",
                "USA,": "capitals",
                "Bern:": "capital",
                "the": "word",
                "--": "",
            },
        ),
    ],
)
def test_string_transforms(transform, length, values):
    feature = {"column": "c0", "transform": transform, "window": [0], "name": "f"}
    if length is not None:
        feature["length"] = length
    encoding, dataset = fit([[[value, "X"] for value in values]], features=[feature])
    assert [encoding.describe(dataset, t) for t in range(len(values))] == [[f"f[0]={made}"] for made in values.values()]


def test_values_that_a_transform_makes_equal_are_counted_together():
    feature = {"column": "c0", "transform": "lower", "window": [0], "min_count": 2}
    encoding, _ = fit([[["A", "X"], ["a", "X"], ["b", "X"]]], features=[feature])
    assert encoding.features[0].vocabulary.values == ("a",)


def made_number(transform, training, new=None):
    encoding, dataset = fit(training, features=[{"column": "c0", "transform": transform, "scale": "none"}])
    return (dataset if new is None else encoding.encode(corpus_of(new))).real[:, 0].tolist()


def test_number_transforms():
    data = [[["a", "X"], ["bcd", "X"], ["a", "X"]], [["éé", "X"]], [["", "X"], ["a", "X"]]]
    assert made_number("length", data) == [1, 3, 1, 2, 0, 1]
    assert made_number("position", data) == [0, 0.5, 1, 0, 0, 1]
    np.testing.assert_allclose(made_number("frequency", data), np.log1p([3, 1, 3, 1, 1, 3]), rtol=1e-15)
    np.testing.assert_allclose(made_number("frequency", data, [[["a", "X"], ["z", "X"]]]), np.log1p([3, 0]), rtol=1e-15)


# Scaling


def numbers(values, **feature):
    data = [[[value, "X"] for value in values]]
    return fit(data, features=[{"column": "c0", "type": "real", "window": [0], **feature}])


def test_standard_columns():
    encoding, dataset = numbers(["1", "2", "6", "0.5"], scale="standard")
    np.testing.assert_allclose(dataset.real.mean(), 0, rtol=0, atol=1e-15)
    np.testing.assert_allclose(dataset.real.std(), 1, rtol=1e-14)
    values = np.array([1, 2, 6, 0.5])
    new = encoding.encode(corpus_of([[["7"], ["-1e2"]]]))
    np.testing.assert_allclose(new.real[:, 0], (np.array([7, -100]) - values.mean()) / values.std(), rtol=1e-14)


def test_scales_are_per_column():
    data = [[["1", "5", "0", "X"], ["2", "5", "1", "X"], ["3", "5", "1", "X"]]]
    _, dataset = fit(data, features=[{"columns": ["c0", "c1", "c2"], "type": "real"}])
    deviation = math.sqrt(1.5)
    np.testing.assert_allclose(dataset.real, [[-deviation, 0, 0], [0, 0, 1], [deviation, 0, 1]], rtol=1e-14)


@pytest.mark.parametrize("values", [["0", "1", "0.0", "1e0"], ["0", "0"], ["1", "1"]])
def test_zeros_and_ones_are_left_alone_unless_told(values):
    expected = [float(value) for value in values]
    assert numbers(values)[1].real[:, 0].tolist() == expected
    assert numbers(values, scale="none")[1].real[:, 0].tolist() == expected
    np.testing.assert_allclose(numbers(values, scale="standard")[1].real.mean(), 0, rtol=0, atol=1e-15)


@pytest.mark.parametrize("value", ["0.1", "-7", "1e17", "3e-5", "123456789012345678", "-9.9e15"])
@pytest.mark.parametrize("count", [1, 3, 1000])
def test_constant_columns_say_nothing(value, count):
    encoding, dataset = numbers([value] * count)
    np.testing.assert_allclose(dataset.real, 0, rtol=0, atol=1e-12)
    other = encoding.encode(corpus_of([[["0"]]])).real  # and a new value does not explode
    assert 0 < abs(other[0, 0]) <= 7


def test_scale_none_leaves_numbers_alone():
    assert numbers(["5", "-2.5", "1e6"], scale="none")[1].real[:, 0].tolist() == [5, -2.5, 1e6]


@pytest.mark.parametrize("scale", ["auto", "standard", "none"])
@pytest.mark.parametrize(
    "values, line", [(["1", "1e300", "2"], 2), (["0", "2", "-1e308", "1e307"], 3), (["3", "1e160"], 2)]
)
def test_numbers_too_large_to_compute_with(values, line, scale):
    message = error_of(DataError, numbers, values, scale=scale)
    assert message.startswith(f"data:{line}: ") and "too large" in message


@pytest.mark.parametrize("scale", ["standard", "none"])
@pytest.mark.parametrize("value", ["1e300", "-1e308", "1e160", "1e30"])
def test_numbers_too_large_in_new_data(scale, value):
    encoding, _ = numbers(["0.5", "-0.25"], scale=scale)
    message = error_of(DataError, encoding.encode, corpus_of([[["1"], ["2"], [value]]]))
    assert message.startswith("data:3: ") and "too large" in message


# Values that are rare or unseen


def test_rare_values_are_nothing():
    data = [[["a", "X"], ["a", "X"], ["b", "X"], ["c", "Y"]]]
    encoding, dataset = fit(data, min_count=2, window=[0])
    inputs = all_inputs(encoding, dataset)
    assert inputs.squared_norms().tolist() == [1, 1, 0, 0]
    assert products(inputs, inputs).tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0] * 4, [0] * 4]
    # A new value may be a rare one: it is treated as one.
    assert all_inputs(encoding, encoding.encode(corpus_of([[["b"], ["z"], ["a"]]]))).squared_norms().tolist() == [
        0,
        0,
        1,
    ]
    assert encoding.describe(dataset, 2) == ["c0[0]=<rare>"]


def test_rare_conjunctions_are_nothing():
    data = [[["a", "p", "X"], ["a", "p", "X"], ["a", "q", "X"]]]
    features = [{"conjunction": ["c0", "c1"], "min_count": 2}]
    encoding, dataset = fit(data, features=features)
    assert all_inputs(encoding, dataset).squared_norms().tolist() == [1, 1, 0]
    # A conjunction of a feature whose rare values are gone.
    features = [{"column": "c1", "min_count": 2, "window": [0]}, {"conjunction": ["c0", "c1"]}]
    encoding, dataset = fit(data, features=features)
    assert all_inputs(encoding, dataset).squared_norms().tolist() == [2, 2, 0]


def test_everything_rare():
    encoding, dataset = fit([[["a", "X"], ["b", "Y"]]], min_count=100, window=[-1, 0])
    assert all_inputs(encoding, dataset).squared_norms().tolist() == [1, 0]  # the boundary is never rare


def test_unseen_values_count_in_their_own_length_and_match_nothing():
    encoding, dataset = fit([[["a", "p", "X"], ["b", "q", "Y"]]], window=[0, 1])
    new = encoding.encode(corpus_of([[["z", "p"], ["z", "z"]]]))
    inputs, new_inputs = all_inputs(encoding, dataset), all_inputs(encoding, new)
    assert new_inputs.squared_norms().tolist() == [4, 4]
    assert (new_inputs.codes == UNSEEN).sum(axis=1).tolist() == [3, 2]
    assert products(new_inputs, new_inputs).tolist() == [[1, 0], [0, 2]]  # only p, and the boundary, are known
    assert products(new_inputs, inputs)[0].tolist() == [1, 0]
    assert encoding.describe(new, 0)[:2] == ["c0[0]=<unseen>", "c0[1]=<unseen>"]


# What a column holds


@pytest.mark.parametrize(
    "values, real",
    [
        (["1", "-2", "+3.5", ".5", "5.", "1e-3", "2E+4", "007"], True),
        (["a", "b"], False),
        (["1", "2", "three"], False),
        (["nan", "nan"], False),
        (["inf", "-inf"], False),
        (["Infinity"], False),
        (["1_000", "2_000"], False),
        (["٣", "٤"], False),
        (["1e999", "1e999"], False),
        (["1", " 2"], False),
        (["-", "."], False),
        (["0x10", "0x20"], False),
        (["1,5", "2,5"], False),
        (["", ""], False),
    ],
)
def test_types_are_inferred(values, real):
    encoding, dataset = fit([[[value, "X"] for value in values]])
    assert (encoding.features[0].config.type == "real") == real
    assert dataset.real.shape[1] == int(real)


@pytest.mark.parametrize("value", ["n/a", "Nan", "inf", "1_000", "1e999", "-", "٣", "--"])
def test_a_word_in_a_numeric_column(value):
    data = [[["x", str(t), "X"] for t in range(40)], [["x", value, "X"]]]
    message = error_of(DataError, fit, data)
    assert (
        message.startswith(f"data:42: '{value}' in column 2 (c1) is not a finite number") and "categorical" in message
    )
    assert error_of(DataError, fit, data, features=[{"column": "c1", "type": "real"}]) == message
    encoding, _ = fit(data, features=[{"column": "c1", "type": "categorical"}])  # declared, it is fine
    new = corpus_of([[["x", "1"], ["x", value or "z"]]])
    encoding.encode(new)
    encoding, _ = fit(data[:1])
    assert error_of(DataError, encoding.encode, new).startswith("data:2: ")


def test_a_few_distinct_values_are_categories():
    """Ten digits and a word, as a parser of documents writes them; numbers with a slip are still an error."""
    data = [[[str(t % 10) if t % 40 else "no", "X"] for t in range(200)]]
    encoding, _ = fit(data, missing=["NA"])
    assert encoding.features[0].config.type == "categorical"
    assert encoding.warnings == (
        "warning: column c0 is taken for 11 categories: 195 of 200 values are numbers, but 'no' in line 1 is not; name "
        "it as 'missing' if it stands for a missing value, or declare 'type: categorical'",
    )
    assert fit(data, missing=["no"])[0].features[0].config.type == "real"
    for values, positions in ((21, 210), (11, 109)):  # too many values, too few positions
        rows = [[[str(t % (values - 1)) if t else "no", "X"] for t in range(positions)]]
        assert "'no' in column 1 (c0) is not a finite number" in error_of(DataError, fit, rows)


def test_declared_types_win():
    data = [[["1", "X"], ["2", "Y"]]]
    assert fit(data, features=[{"column": "c0", "type": "categorical"}])[1].codes.shape[1] == 5
    assert fit(data, features=[{"column": "c0", "transform": "prefix", "length": 1}])[1].codes.shape[1] == 5
    message = error_of(ConfigError, fit, [[["a", "X"]]], features=[{"column": "c0", "scale": "standard"}])
    assert "'c0'" in message and "scale" in message


# Labels and columns


def test_labels():
    encoding, dataset = fit([[["a", "Y"], ["b", "X"]], [["a", "Y"]]])
    assert encoding.labels == ("X", "Y") and dataset.labels.tolist() == [1, 0, 1]
    new = encoding.encode(corpus_of([[["a", "X"], ["a", "unknown"]]]))
    assert new.labels.tolist() == [0, -1]
    bare = encoding.encode(corpus_of([[["a"], ["a"]]]))
    assert bare.labels is None
    np.testing.assert_array_equal(bare.codes, new.codes)


@pytest.mark.parametrize("row", [["a"], ["a", "b", "c", "d"]])
def test_wrong_number_of_columns(row):
    encoding, _ = fit([[["a", "1", "X"]]])
    message = error_of(DataError, encoding.encode, corpus_of("\n\n" + "\t".join(row) + "\n"))
    count = "1 column" if len(row) == 1 else f"{len(row)} columns"
    assert message == f"data:3: {count}, expected 3 with labels or 2 without (c0, c1, label)"


def test_training_needs_input_and_labels():
    assert error_of(DataError, fit, [[["X"]]]).startswith("data:1: only one column")
    assert error_of(DataError, fit, [[["X"]]], columns=["label"]).startswith("data:1: only one column")
    assert error_of(DataError, fit, "a\tX\na\t\n") == "data:2: an empty label"
    message = error_of(ConfigError, fit, [[["a", "b", "X"]]], columns=["word", "label"])
    assert "names 2 columns (word, label), data has 3" in message


@pytest.mark.parametrize(
    "feature, part",
    [
        ({"column": "tag"}, "looks at 'tag', which is the label"),
        ({"column": "nose"}, "no column 'nose' in data (columns: word, pos)"),
        ({"conjunction": ["word", "tag"]}, "looks at 'tag', which is the label"),
        ({"conjunction": ["word"]}, "at least two parts"),
        ({"conjunction": ["word", "number"]}, "'number' is not categorical"),
        ({"type": "attributes"}, "needs attributes"),
    ],
)
def test_features_that_cannot_be_made(feature, part):
    number = {"name": "number", "column": "word", "transform": "length"}
    data = [[["a", "b", "X"]]]
    assert part in error_of(ConfigError, fit, data, columns=["word", "pos", "tag"], features=[number, feature])


def test_conjunctions_refer_to_features_before_columns():
    data = [[["A", "p", "X"], ["a", "p", "Y"]]]
    lowered = {"name": "c0", "column": "c0", "transform": "lower", "window": [0]}
    pair = {"conjunction": ["c0", "c1"], "name": "pair"}
    for features, equal in ([lowered, pair], True), ([pair, lowered], False):
        encoding, dataset = fit(data, features=features)
        codes = encoding.inputs(dataset, ["pair"]).codes[:, 0]
        assert (codes[0] == codes[1]) == equal


# Attribute files

ATTRIBUTES = "X\ta\tb:2\nY\ta\ta\tc:-0.5\nX\n\n@weight:2.5\nY\tb\ta:0\tc:1\tc:-1\n"


def attribute_rows(corpus):
    """Dictionaries of positions; what stands twice is added up."""
    rows = []
    for t in range(corpus.positions):
        row = {}
        for i in range(corpus.attributes.indptr[t], corpus.attributes.indptr[t + 1]):
            name = corpus.attributes.names[i]
            row[name] = row.get(name, 0.0) + corpus.attributes.values[i]
        rows.append(row)
    return rows


def test_attributes():
    corpus = corpus_of(ATTRIBUTES, "crfsuite")
    encoding, dataset = fit_encoding(parse_config({}), corpus)
    assert encoding.format == "crfsuite" and encoding.features[0].vocabulary.values == ("a", "b", "c")
    assert dataset.bag.toarray().tolist() == [[1, 2, 0], [2, 0, -0.5], [0, 0, 0], [0, 1, 0]]
    assert dataset.weights.tolist() == [1, 2.5] and dataset.labels.tolist() == [0, 1, 0, 1]
    assert encoding.describe(dataset, 0) == ["a", "b:2"]
    new = corpus_of("X\ta:3\tz:2\nX\tz:1\tz:2\ty\nX\tz:1\tz:-1\tb\nX\n", "crfsuite")
    encoded = encoding.encode(new)
    assert_like_oracle(encoding, dataset, attribute_rows(corpus), encoded, attribute_rows(new))
    assert encoded.bag_unseen.tolist() == [4, 10, 0, 0]


@pytest.mark.parametrize("seed", range(6))
def test_random_attributes(seed):
    rng = random.Random(seed)

    def text(names):
        sequences = []
        for _ in range(rng.randint(1, 4)):
            rows = []
            for _ in range(rng.randint(1, 5)):
                attributes = [f"{rng.choice(names)}:{rng.choice([0, 1, 2, -1, 0.5])}" for _ in range(rng.randint(0, 6))]
                rows.append("\t".join([rng.choice("XY"), *attributes]))
            sequences.append("\n".join(rows))
        return "\n\n".join(sequences) + "\n"

    training, new = corpus_of(text("abcd"), "crfsuite"), corpus_of(text("abyz"), "crfsuite")
    encoding, dataset = fit_encoding(parse_config({}), training)
    encoded = encoding.encode(new)
    assert_like_oracle(encoding, dataset, attribute_rows(training), encoded, attribute_rows(new))


def test_rare_attributes():
    features = [{"type": "attributes", "min_count": 2}]
    encoding, dataset = fit("X\ta\tb\nY\ta:5\n", "crfsuite", features=features)
    assert dataset.bag.toarray().tolist() == [[1], [5]] and not dataset.bag_unseen.any()
    assert not encoding.encode(corpus_of("X\tb\tz\n", "crfsuite")).bag_unseen.any()


@pytest.mark.parametrize("value", ["1e300", "1e160", "-1e308"])
def test_weights_of_attributes_too_large_to_compute_with(value):
    message = error_of(DataError, fit, f"X\ta\n\nY\tb\ta:{value}\ta:{value}\n", "crfsuite")
    assert message.startswith("data:3: ") and "too large" in message
    encoding, _ = fit("X\ta\n", "crfsuite")
    for name in "ab":
        new = corpus_of(f"X\ta\nX\t{name}:{value}\n", "crfsuite")
        assert error_of(DataError, encoding.encode, new).startswith("data:2: ")


def test_attributes_and_columns_are_not_mixed_up():
    encoding, _ = fit(ATTRIBUTES, "crfsuite")
    assert "not in the format of the training data, crfsuite" in error_of(DataError, encoding.encode, corpus_of("a\n"))
    encoding, _ = fit("a X\n")
    attributes = corpus_of(ATTRIBUTES, "crfsuite")
    assert "not in the format of the training data, conll" in error_of(DataError, encoding.encode, attributes)
    assert "'c0' needs columns" in error_of(ConfigError, fit, ATTRIBUTES, "crfsuite", features=[{"column": "c0"}])


# Encoded once, encoded again

KINDS = {
    "default": {},
    "rare": {"min_count": 3},
    "all rare": {"min_count": 1000},
    "transforms": {
        "features": [
            {"column": "c0", "transform": "lower"},
            {"column": "c0", "transform": "suffix", "length": 2, "window": [0], "min_count": 2},
            {"column": "c0", "transform": "shape", "window": "-7..3"},
        ]
    },
    "numbers": {
        "features": [
            {"columns": ["c2", "c2"], "type": "real", "scale": "standard", "name": "both", "window": [-1, 2]},
            {"column": "c2", "scale": "none"},
            {"column": "c0", "transform": "length"},
            {"column": "c0", "transform": "position", "window": [-1, 0]},
            {"column": "c0", "transform": "frequency"},
        ]
    },
    "conjunctions": {
        "features": [
            {"column": "c0", "transform": "prefix", "length": 1, "min_count": 2, "name": "p"},
            {"conjunction": ["c0[-1]", "c1"]},
            {"conjunction": ["p", "c1[2]", "c0", "p[-3]"], "window": [-1, 0, 4], "min_count": 2},
        ]
    },
    "mixed": {
        "columns": ["wörd", "pos", "f0", "tag"],
        "features": [{"column": "wörd"}, {"column": "f0", "window": "-1..1"}],
    },
    "windows of terms": {
        "features": [{"column": "c0"}, {"column": "c2", "window": "-1..1"}, {"conjunction": ["c0[-1]", "c1"]}],
        "terms": [{"name": "all"}, {"name": "near", "window": "-3..0", "kernel": "poly"}, {"type": "edge"}],
    },
    "attributes": {"features": [{"type": "attributes", "min_count": 2}]},
    "plain attributes": {},
    "no attributes": {},
}


def data_of(kind):
    """Training and new data that suit one of KINDS."""
    rng = random.Random(3)
    if kind == "no attributes":
        return corpus_of("X\nY\n\nX\n", "crfsuite"), corpus_of("X\ta\n", "crfsuite")
    if "attributes" in kind:
        return corpus_of(ATTRIBUTES, "crfsuite"), corpus_of("X\tz:2\ta:3\tb\nY\n", "crfsuite")
    training = random_sequences(rng, 9, ["Aa", "aa", "日本", "B", "x y"])
    return corpus_of(training), corpus_of(random_sequences(rng, 4, ["aa", "neu", "日"]))


def assert_same_dataset(a, b):
    for name in ("offsets", "lines", "labels", "weights", "codes", "real", "bag_unseen"):
        x, y = getattr(a, name), getattr(b, name)
        assert (x is None) == (y is None)
        if x is not None:
            assert x.dtype == y.dtype, name
            np.testing.assert_array_equal(x, y, err_msg=name)
    assert (a.bag is None) == (b.bag is None)
    if a.bag is not None:
        assert a.bag.shape == b.bag.shape
        for name in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(a.bag, name), getattr(b.bag, name))


@pytest.mark.parametrize("kind", KINDS)
def test_encoding_the_training_data_again(kind):
    training, _ = data_of(kind)
    encoding, dataset = fit_encoding(parse_config(KINDS[kind]), training)
    assert_same_dataset(encoding.encode(training), dataset)
    assert dataset.codes.dtype == np.int32 and dataset.labels.dtype == np.int32 and dataset.real.dtype == np.float64
    empty = encoding.empty_dataset()
    assert empty.positions == 0 and empty.codes.shape[1] == dataset.codes.shape[1]
    assert empty.real.shape[1] == dataset.real.shape[1]
    sizes = all_inputs(encoding, dataset).sizes
    assert (dataset.codes < sizes).all() and dataset.codes.shape[1] == len(sizes)


@pytest.mark.parametrize("kind", KINDS)
def test_stored_encodings_encode_alike(kind, tmp_path):
    training, new = data_of(kind)
    encoding, dataset = fit_encoding(parse_config(KINDS[kind]), training)
    write_container(tmp_path / "e.npz", "dataset", *encoding.pack())
    again = Encoding.unpack(read_container(tmp_path / "e.npz", "dataset"))
    assert again.same_as(encoding) and encoding.same_as(again)
    assert (again.format, again.columns, again.labels) == (encoding.format, encoding.columns, encoding.labels)
    assert again.names == encoding.names
    assert_same_dataset(again.encode(training), dataset)
    assert_same_dataset(again.encode(new), encoding.encode(new))
    other, _ = fit_encoding(parse_config(KINDS[kind]), new)
    assert not other.same_as(encoding)


@pytest.mark.parametrize("kind", KINDS)
def test_a_subset_is_encoded_like_a_part_of_the_whole(kind):
    training, new = data_of(kind)
    encoding, _ = fit_encoding(parse_config(KINDS[kind]), training)
    whole = encoding.encode(new)
    for which in ([0], list(range(new.sequences))[::-1], [0, 0], []):
        assert_same_dataset(encoding.encode(new.subset(which)), whole.subset(which))


# Distinct rows


def naive_key(inputs, t):
    bag = () if inputs.bag is None else tuple(inputs.bag.toarray()[t].tolist())
    return (tuple(inputs.codes[t].tolist()), tuple(inputs.real[t].tolist()), bag)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("C, R, A", [(0, 0, 0), (2, 0, 0), (0, 2, 0), (0, 0, 3), (2, 1, 2)])
def test_distinct_rows(seed, C, R, A):
    rng = np.random.default_rng(seed)
    N = int(rng.integers(0, 30)) if seed else 0
    bag = scipy.sparse.csr_array(rng.integers(-1, 2, (N, A)).astype(float)) if A else None
    real = rng.choice([0.0, -0.0, 1.5, 1e-300], (N, R))
    inputs = Inputs(rng.integers(-1, 2, (N, C)).astype(np.int32), np.full(C, 2), real, bag, np.zeros(N))
    rows, group = inputs.distinct()
    keys = [naive_key(inputs, t) for t in range(N)]
    assert sorted(rows.tolist()) == sorted(keys.index(key) for key in set(keys))  # first of each group
    assert [keys[rows[g]] for g in group] == keys


def test_zeros_of_attribute_files_make_no_difference():
    encoding, dataset = fit("X\ta\nX\ta\tb:0\nY\ta\tb\tb:-1\nY\tb\n", "crfsuite")
    rows, group = all_inputs(encoding, dataset).distinct()
    assert len(rows) == 2 and group[0] == group[1] == group[2] != group[3]


def test_missing_measurements_become_the_mean():
    """NA, ? and _ among numbers are missing; they neither move the scaling nor make the column categorical."""
    encoding, dataset = fit("1 a\nNA a\n3 a\n? a\n5 a\n_ a\n")
    _, plain = fit("1 a\n3 a\n5 a\n")
    np.testing.assert_allclose(dataset.real[[0, 2, 4]], plain.real, rtol=1e-12)
    assert (dataset.real[[1, 3, 5]] == 0).all()
    assert "3 missing values" in encoding.remarks(dataset)[-1]
    assert encoding.encode(corpus_of("NA\n3\n")).real.ravel().tolist() == [0.0, 0.0]


def test_what_stands_for_a_missing_value_can_be_said():
    """Marks are those of the configuration, numbers among them, and the encoding keeps them."""
    text = "1 a\n-999 a\n3 b\nundefined a\n5 a\n"
    encoding, dataset = fit(text, missing=["-999", "undefined"])
    assert dataset.missing == (("c0", 2),) and (dataset.real[[1, 3]] == 0).all()
    assert "2 missing values taken for the training mean: 2 of c0" in encoding.remarks(dataset)
    _, plain = fit("1 a\n3 b\n5 a\n")
    np.testing.assert_allclose(dataset.real[[0, 2, 4]], plain.real, rtol=1e-12)
    assert encoding.encode(corpus_of("undefined\n3\n")).missing == (("c0", 1),)
    assert error_of(DataError, encoding.encode, corpus_of("NA\n3\n")).startswith("data:1: 'NA' in column 1")


@pytest.mark.parametrize("value", ["NA", "?", "_", "nan", "NaN", "NAN", ""])
def test_marks_of_missing_values_that_go_without_saying(value):
    _, dataset = fit([[["1", "a"], [value, "a"], ["3", "b"]]])
    assert dataset.real.ravel().tolist() == [-1.0, 0.0, 1.0]


def test_missing_values_of_columns_that_are_not_scaled_are_their_mean_too():
    _, dataset = fit("0 a\n1 a\n1 b\nNA b\n")
    assert dataset.real.ravel().tolist() == [0, 1, 1, 2 / 3]
    config = [{"column": "c0", "type": "real", "scale": "none"}]
    encoding, _ = fit("4 a\n8 a\n", features=config)
    assert encoding.encode(corpus_of("NA\n5\n")).real.ravel().tolist() == [6, 5]


def test_an_indicator_says_where_values_are_missing():
    features = [{"name": "x", "columns": ["c0", "c1"], "type": "real", "missing": "indicator", "window": [-1, 0]}]
    text = "1 10 a\nNA 30 b\n\n3 NA a\n"
    encoding, dataset = fit(text, features=features)
    names = ["c0[-1]", "c1[-1]", "c0.missing[-1]", "c1.missing[-1]"]
    names += [name.replace("-1", "0") for name in names]
    found = encoding.feature_names(["x"])
    assert [found[column] for column in range(len(found))] == names
    plain = fit(text, features=[{**features[0], "missing": "mean"}])[1]
    np.testing.assert_array_equal(dataset.real[:, [0, 1, 4, 5]], plain.real)
    assert dataset.real[:, 6:].tolist() == [[0, 0], [1, 0], [0, 1]]
    assert dataset.real[:, 2:4].tolist() == [[0, 0], [0, 0], [0, 0]]
    _, everywhere = fit(text, missing_indicator=True, window=[-1, 0])
    assert everywhere.real.shape == (3, 8)
    for bad in ({"column": "c0", "type": "categorical"}, {"column": "c0", "transform": "length"}):
        assert "takes no 'missing'" in error_of(ConfigError, fit, text, features=[{**bad, "missing": "indicator"}])


def test_columns_are_told_apart_in_a_line():
    encoding, dataset = fit("a 1 x X\nb 2 x Y\n")
    assert encoding.remarks(dataset)[1] == "features: categorical: c0 (2 values), c2 (1 value); real: c1"


@pytest.mark.parametrize("odd, words", [("undef", "7 of 10 values are numbers, but 'undef' in line 3 is not")])
def test_numbers_that_become_categories_are_warned_of(odd, words):
    text = "".join(f"{odd if t in (2, 5, 8) else t / 4} X\n" for t in range(10))
    encoding, dataset = fit(text)
    assert dataset.real.shape[1] == 0
    assert any(words in remark and "'missing'" in remark for remark in encoding.remarks(dataset))
    declared, dataset = fit(text, features=[{"column": "c0", "type": "categorical"}])
    assert not any("numbers" in remark for remark in declared.remarks(dataset))


def test_decimal_commas_are_warned_of():
    encoding, dataset = fit("".join(f"{t},25 X\n" for t in range(10)))
    assert any("'0,25' in line 1 need a point" in remark for remark in encoding.remarks(dataset))
    words, dataset = fit("".join(f"w{t} X\n" for t in range(10)))
    assert not any("warning" in remark for remark in words.remarks(dataset))


def test_a_column_of_gaps_alone_is_no_column_of_numbers():
    _, dataset = fit("_ a\n_ b\n")
    assert dataset.real.shape[1] == 0 and dataset.codes.shape[1] == 5
    with pytest.raises(DataError, match="no numbers"):
        fit("_ a\n", features=[{"column": "c0", "type": "real"}])
