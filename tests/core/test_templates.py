"""What must hold of CRF++ templates: rows share a value exactly where CRF++ would build the same string."""

from __future__ import annotations

import io
import itertools
import os
import random
import re
from pathlib import Path

import numpy as np
import pytest

from kcrf_core.config import load_template, load_yaml, looks_like_template, parse_config
from kcrf_core.corpora import read_corpus
from kcrf_core.corpora.conll import CONLL
from kcrf_core.corpora.corpus import concatenate
from kcrf_core.corpora.lines import blocks
from kcrf_core.encoding import fit_encoding
from kcrf_core.errors import ConfigError
from kcrf_core.model import Model
from kcrf_core.system import positions_within
from kcrf_core.training import train

CHUNKING = """\
# Unigram
U00:%x[-2,0]
U01:%x[-1,0]
U02:%x[0,0]
U03:%x[1,0]
U04:%x[2,0]
U05:%x[-1,0]/%x[0,0]
U06:%x[0,0]/%x[1,0]

U17:%x[0,1]/%x[1,1]
U18:%x[1,1]/%x[2,1]
U20:%x[-2,1]/%x[-1,1]/%x[0,1]
U22:%x[0,1]/%x[1,1]/%x[2,1]

# Bigram
B
"""

WIDE = """\
U1:%x[-5,0]
U2:%x[-3,0]/%x[4,1]/%x[0,0]/%x[-1,1]
U3:word=%x[7,1]/pos=%x[-7,0]
U4:%x[ 0 , 1 ]/%x[0,1]
U5:%x[1,0]/%x[1,0]/%x[1,1]
"""


def crfpp_strings(template, sequence, kind="U"):
    """The strings that CRF++ builds, for each position those of all lines of a kind."""

    def value(row, column):
        if row < 0:
            return f"_B{row}"
        return f"_B+{row - len(sequence) + 1}" if row >= len(sequence) else sequence[row][column]

    lines = [line for line in template.split("\n") if line.startswith(kind)]
    return [
        [
            re.sub(r"%x\[\s*(-?\d+)\s*,\s*(\d+)\s*\]", lambda m, t=t: value(t + int(m[1]), int(m[2])), line)
            for line in lines
        ]
        for t in range(len(sequence))
    ]


def random_sequences(rng, count, letters="ab", width=2):
    return [
        [[rng.choice(letters) for _ in range(width)] + [rng.choice("XY")] for _ in range(rng.randint(1, 6))]
        for _ in range(count)
    ]


def corpus_of(sequences):
    text = "\n\n".join("\n".join(" ".join(row) for row in rows) for rows in sequences) + "\n"
    return concatenate(part.corpus for part in CONLL.parse(blocks(io.BytesIO(text.encode()), "data"), "data"))


def configuration(template):
    return parse_config(load_template(template, "template"), "template")


def assert_like_crfpp(template, training, new):
    encoding, dataset = fit_encoding(configuration(template), corpus_of(training))
    strings = [row for sequence in training for row in crfpp_strings(template, sequence)]
    new_strings = [row for sequence in new for row in crfpp_strings(template, sequence)]
    assert encoding.names == [string.partition(":")[0] for string in strings[0]]
    codes = dataset.codes.T.tolist()
    new_codes = encoding.encode(corpus_of(new)).codes.T.tolist()
    fields = zip(zip(*strings, strict=True), zip(*new_strings, strict=True), codes, new_codes, strict=True)
    for seen, unknown, of_field, of_new in fields:
        code = dict(zip(seen, of_field, strict=True))
        assert len(set(of_field)) == len(code) and min(of_field) >= 0
        assert of_field == [code[string] for string in seen]
        # Strings that CRF++ would not have in its table match no row of the training data.
        assert [value if value in of_field else None for value in of_new] == [code.get(string) for string in unknown]


@pytest.mark.parametrize("template", [CHUNKING, WIDE])
@pytest.mark.parametrize("seed", range(8))
def test_rows_share_a_value_where_crfpp_builds_the_same_string(template, seed):
    rng = random.Random(seed)
    assert_like_crfpp(template, random_sequences(rng, rng.choice([1, 1, 2, 20])), random_sequences(rng, 10, "abc"))


SHARED = """\
U:%x[-1,0]
U:%x[1,0]
U1:%x[0,0]/%x[0,1]
U1:%x[0,1]/%x[0,0]
U2:%x[-9,1]%x[0,1]
U2
U3
U33:%x[0,0]
U3%x[0,0]
U9:%x[0,0]
"""


@pytest.mark.parametrize("seed", range(8))
def test_lines_share_weights_where_crfpp_builds_the_same_string(seed):
    rng = random.Random(seed)
    letters = ["a", "b", "1", "3:a", "a/b"]  # what makes strings of different lines and values meet
    training, new = random_sequences(rng, 10, letters), random_sequences(rng, 5, [*letters, "c"])
    encoding, dataset = fit_encoding(configuration(SHARED), corpus_of(training))
    assert encoding.names == ["U9", "U+"]
    strings = [row[:-1] for sequence in training for row in crfpp_strings(SHARED, sequence)]
    assert set(encoding.features[1].vocabulary.values) == {string for row in strings for string in row}
    for sequences, encoded in ((training, dataset), (new, encoding.encode(corpus_of(new)))):
        rows = [row[:-1] for sequence in sequences for row in crfpp_strings(SHARED, sequence)]
        for t, row in enumerate(rows):
            seen = encoded.bag[[t]].tocoo()
            named = {encoding.features[1].vocabulary.values[i]: n for i, n in zip(seen.col, seen.data, strict=True)}
            known = [string for string in row if string in encoding.features[1].vocabulary.index]
            assert named == {string: known.count(string) for string in known}
            assert encoded.bag_unseen[t] == sum(row.count(one) ** 2 for one in set(row) - set(known))


def crfpp_count(template, sequences):
    """The number of features that CRF++ reports: strings times labels, and for B lines times labels squared."""
    labels = len({row[-1] for sequence in sequences for row in sequence})
    unigrams = {string for rows in sequences for row in crfpp_strings(template, rows) for string in row}
    # There is no pair of labels before the second position.
    bigrams = {string for rows in sequences for row in crfpp_strings(template, rows, "B")[1:] for string in row}
    return len(unigrams) * labels + len(bigrams) * labels**2


def kcrf_count(template, sequences):
    config = configuration(template)
    return weight_count(config, corpus_of(sequences))


def weight_count(config, corpus):
    encoding, dataset = fit_encoding(config, corpus)
    later, Y, out = positions_within(dataset.offsets) > 0, len(encoding.labels), 0
    for term in config.terms:
        count = 1  # of pairs of labels alone
        if term in config.mapped_terms:
            inputs = encoding.inputs(dataset, encoding.term_features(term))
            inputs = inputs if term.type == "node" else inputs.take(later)
            columns = [*inputs.codes.T, *([] if inputs.bag is None else [inputs.bag.indices])]
            count = sum(len(np.unique(column[column >= 0])) for column in columns)
        out += count * term.clique.states(Y)
    return out


@pytest.mark.parametrize(
    "template", [CHUNKING, WIDE, SHARED, "B0:%x[0,0]/%x[-1,1]\nB1:%x[3,0]", "B1:%x[0,0]\nU:%x[0,0]\nB"]
)
@pytest.mark.parametrize("seed", range(4))
def test_the_number_of_features_is_that_of_crfpp(template, seed):
    sequences = random_sequences(random.Random(seed), 12, "abcdefgh")
    assert kcrf_count(template, sequences) == crfpp_count(template, sequences)


# As CRF++'s own expansion counts them on its training files, by strings; docs/formats.md shows them.
CRFPP_COUNTS = {"basenp": 32_970, "chunking": 153_482, "JapaneseNE": 490_467, "seg": 11_090}


@pytest.mark.parametrize("task", CRFPP_COUNTS)
def test_features_of_the_examples_of_crfpp(task):
    folder = Path(os.environ.get("KCRF_DATA", "no data")) / "crfpp" / task
    if not folder.exists():
        pytest.skip(f"KCRF_DATA names no folder with crfpp/{task}")
    template, text = ((folder / name).read_text("utf-8") for name in ("template", "train.conll"))
    sequences = [[re.split("[ \t]+", line) for line in part.split("\n")] for part in text.strip().split("\n\n")]
    config = configuration(template)
    count = weight_count(config, read_corpus(folder / "train.conll"))
    assert count == crfpp_count(template, sequences) == CRFPP_COUNTS[task]


def test_templates_of_crfpp():
    """CRF++'s own example templates, where KCRF_DATA says that they are."""
    paths = sorted(Path(os.environ.get("KCRF_DATA", "no data")).glob("crfpp/*/template"))
    if not paths:
        pytest.skip("KCRF_DATA names no folder with crfpp/*/template")
    for path in paths:
        template = path.read_text("utf-8")
        assert looks_like_template(template)
        width = 1 + max(int(column) for column in re.findall(r"%x\[-?\d+,(\d+)\]", template))
        rng = random.Random(7)
        assert_like_crfpp(template, random_sequences(rng, 10, "abc", width), random_sequences(rng, 4, "abcd", width))
        assert configuration(template).label_terms


def test_bigram_lines_with_macros_look_at_the_pair(workers):
    """Labels that follow from the one before and the word: neither a U line nor a plain B line can tell."""
    rng = random.Random(3)
    sequences = []
    for _ in range(40):
        label, rows = "X", []
        for _ in range(8):
            word = rng.choice("ab")
            label = {"X": "Y", "Y": "X"}[label] if word == "b" else label
            rows.append([word, label])
        sequences.append(rows)
    right = {}
    for ending in ("B", "B1:%x[0,0]"):
        config = parse_config(load_template(f"U0:%x[0,0]\n{ending}", "t") | {"training": {"sigma2": 10.0}})
        encoding, dataset = fit_encoding(config, corpus_of(sequences))
        model, _ = train(encoding, dataset, config, workers=workers)
        predicted = model.tag(dataset, workers)
        right[ending] = (predicted == dataset.labels).mean()
    assert right["B"] < 0.9 < right["B1:%x[0,0]"] == 1.0


def test_shared_lines_are_stored_and_found_again(tmp_path, workers):
    sequences = random_sequences(random.Random(5), 20, "abc")
    config = parse_config(load_template(SHARED + "B\n", "t") | {"training": {"sigma2": 1.0}})
    encoding, dataset = fit_encoding(config, corpus_of(sequences))
    model, _ = train(encoding, dataset, config, workers=workers)
    model.save(tmp_path / "m.npz")
    again = Model.load(tmp_path / "m.npz")
    assert again.encoding.same_as(encoding)
    assert again.encoding.features[1].config.templates == tuple(SHARED.split("\n")[:-2])
    assert (again.tag(again.encoding.encode(corpus_of(sequences)), workers) == model.tag(dataset, workers)).all()


def test_boundaries_are_told_apart_by_distance():
    encoding, dataset = fit_encoding(configuration("U1:%x[-3,0]\nU2:%x[2,0]"), corpus_of([[["a", "X"], ["b", "Y"]]]))
    assert encoding.describe(dataset, 0) == ["U1[-3]=_B-3", "U2[2]=_B+1"]
    assert encoding.describe(dataset, 1) == ["U1[-3]=_B-2", "U2[2]=_B+2"]


def test_every_way_to_put_macros_at_boundaries():
    sequences = [[[*row, "X"] for row in rows] for T in range(1, 4) for rows in itertools.product("ab", repeat=T)]
    template = "\n".join(
        f"U{n}:%x[{a},0]/%x[{b},0]" for n, (a, b) in enumerate(itertools.product(range(-3, 4), repeat=2))
    )
    assert_like_crfpp(template, sequences[::2], sequences)


def test_numbers_are_compared_as_strings():
    rows = [["1", "1.0", "X"], ["1.0", "1", "Y"], ["01", "1", "X"]]
    assert_like_crfpp("U1:%x[0,0]\nU2:%x[0,0]/%x[0,1]", [rows], [[["1", "1", "X"]]])


@pytest.mark.parametrize("ending, edge", [("B", True), ("B01", True), ("B:", True), ("", False), ("#B", False)])
def test_edge_term_where_there_is_a_bigram_line(ending, edge):
    assert [term.type for term in configuration(f"U0:%x[0,0]\n{ending}\n").label_terms] == ["edge"] * edge


@pytest.mark.parametrize(
    "template, message",
    [
        ("U0:%x[0,0]\nX1:%x[0,0]", "template:2: a line of a template starts with U or B, not 'X'"),
        ("U0:%x[0,0]\nU1:%x[0;0]", "template:2: cannot read 'U1:%x[0;0]'"),
        ("U0:%x[0,0]/%y[0,0]", "template:1: cannot read"),
        ("U0:%x[0,-1]", "template:1: cannot read"),
        ("U0:word", "template: no line has a macro"),
        ("U\nB", "template: no line has a macro"),
        ("B1:%x[0,0]\nU:%x[0,0]\nB1:%x[1,0]", "template:3: B lines that may become the same string (1, 3)"),
        ("B%x[0,0]\nB1%x[0,0]", "template:2: B lines that may become the same string (1, 2)"),
        ("U0:%m[0,0]", "template:1: '%m[...]' in 'u0:%m[0,0]' needs a regular expression"),
        ('U0:%x[0,0]\nU1:%t[0,0,"**"]', "template:2: the regular expression"),
        ("u0:%X[0,0]\nx:%x[0,0]", "template:2: a line of a template starts with u, b or *, not 'x'"),
        ("b\n*", "template: no line has a macro"),
        ("#\n\nU0:%x[101,0]", "template:3: %x[101,...] looks further than 100"),
        ("B", "template: no line has a macro"),
    ],
)
def test_mistakes_are_named_with_their_line(template, message):
    with pytest.raises(ConfigError) as caught:
        configuration(template)
    assert str(caught.value).startswith(message)


def test_long_templates_are_read():
    loaded = load_template("".join(f"U{n}:%x[0,0]\n" for n in range(20_000)), "t")
    assert len(loaded["features"]) == 20_000


def test_name_and_macro_need_no_colon():
    assert load_template("U0%x[0,0]/%x[1,0]", "t") == load_template("U0:%x[0,0]/%x[1,0]", "t")


def test_column_that_the_data_does_not_have():
    with pytest.raises(ConfigError, match=r"feature 'U0': there is no column 'c1' in data \(columns: c0\)"):
        fit_encoding(configuration("U0:%x[0,1]"), corpus_of([[["a", "X"]]]))  # %x[0,1] would be the label


@pytest.mark.parametrize(
    "text, expected",
    [
        (CHUNKING, True),
        ("\n# x\r\nU0:%x[0,0]\r\nB\r\n", True),
        ("B\nU0:%x[0,0]", True),
        ("U0:bias\nU1:%x[0,0]", True),
        ("*:%x[0,0]", True),  # a Wapiti pattern, to be told so
        ("", False),
        ("# only a comment", False),
        ("columns: [a, b]", False),
        ("features:\n- {column: U}", False),
        ("Banana: 1", True),  # no key begins with B or U: a template with a mistake
    ],
)
def test_templates_are_told_from_yaml(text, expected):
    assert looks_like_template(text) == expected


def test_carriage_returns():
    assert load_template(CHUNKING.replace("\n", "\r\n"), "t") == load_template(CHUNKING, "t")


def test_a_template_is_a_configuration():
    config = configuration(CHUNKING)
    assert parse_config(config.to_dict()) == config
    written = """
    features:
    - {name: U1, column: c0, type: categorical, window: [-1]}
    - {name: U2, conjunction: ['c0[-1]', 'c0'], window: [0]}
    terms: [{}]
    """
    assert configuration("U1:%x[-1,0]\nU2:%x[-1,0]/%x[0,0]") == parse_config(load_yaml(written, "y"))
