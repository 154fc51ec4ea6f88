"""What must hold of CRF++ templates: rows share a value exactly where CRF++ would build the same string."""

from __future__ import annotations

import io
import itertools
import os
import random
import re
from pathlib import Path

import pytest

from kcrf_core.config_reader import parse_config
from kcrf_core.conll import parse_blocks
from kcrf_core.corpus import concatenate
from kcrf_core.encoding import fit_encoding
from kcrf_core.errors import ConfigError
from kcrf_core.lines import blocks
from kcrf_core.templates import load_template, looks_like_template
from kcrf_core.yaml_text import load_yaml

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


def crfpp_strings(template, sequence):
    """The strings that CRF++ builds, for each position those of all U lines."""

    def value(row, column):
        if row < 0:
            return f"_B{row}"
        return f"_B+{row - len(sequence) + 1}" if row >= len(sequence) else sequence[row][column]

    lines = [line for line in template.split("\n") if line.startswith("U")]
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
    return concatenate(part.corpus for part in parse_blocks(blocks(io.BytesIO(text.encode()), "data"), "data"))


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
        assert configuration(template).edge_term is not None


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
    assert (configuration(f"U0:%x[0,0]\n{ending}\n").edge_term is not None) == edge


@pytest.mark.parametrize(
    "template, message",
    [
        ("U0:%x[0,0]\nX1:%x[0,0]", "template:2: a template line starts with U or B, not 'X'"),
        ("U0:%x[0,0]\nU1:%x[0;0]", "template:2: cannot read 'U1:%x[0;0]'"),
        ("U0:%x[0,0]/%y[0,0]", "template:1: cannot read"),
        ("U0:%x[0,-1]", "template:1: cannot read"),
        ("U0:word", "template:1: 'U0:word' has no macro"),
        ("U", "template:1: 'U' has no macro"),
        ("B01:%x[0,0]", "template:1: bigram templates that look at the input"),
        ("#\n\nU0:%x[101,0]", "template:3: %x[101,...] looks further than 100"),
        ("U0:%x[0,0]\n\nU0:%x[1,0]", "template:3: 'U0' stands in line 1 too"),
        ("B", "template: the template has no U line"),
    ],
)
def test_mistakes_are_named_with_their_line(template, message):
    with pytest.raises(ConfigError) as caught:
        configuration(template)
    assert str(caught.value).startswith(message)


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
