"""The way out: exported text says what the dataset says."""

from __future__ import annotations

import io
import json
import re
import runpy
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from kcrf_core.config import load_template, load_yaml, parse_config
from kcrf_core.corpora import read_corpus
from kcrf_core.corpora.conll import CONLL
from kcrf_core.corpora.corpus import concatenate
from kcrf_core.corpora.lines import blocks
from kcrf_core.encoding import export, fit_encoding
from kcrf_core.encoding.exporting import exported_columns
from kcrf_core.errors import ConfigError

CONFIGS = {
    "defaults": "terms: [{name: node}, {type: edge}]\n",  # no kernel of numbers, which attributes cannot have
    "rare values dropped": "min_count: 3\nterms: [{name: node}, {type: edge}]\n",
    "everything": """
features:
  - {column: c0, window: [-3, 0, 2]}
  - {name: "odd: \\\\name", column: c0, transform: suffix, length: 2}
  - {conjunction: ["c0[-1]", "c1[1]", "c0"], window: [-1, 0]}
  - {name: bag, templates: ["U:%x[-1,0]", "U:%x[1,0]", bias]}
  - {name: sound, columns: [c2, c3, c4], type: real, window: [-1, 0, 1]}
  - {column: c1, transform: length}
""",
}

# Values that mean something in one format or the other.
ODD = r"""a/b c:d \ X
a b/c:d _B-1 Y
\_B-1 # = X

_B+1 \: \\ Y
: @weight:2 1:2 X
_B-1 / // Y
"""


def corpus_of(text):
    parsed = CONLL.parse(blocks(io.BytesIO(text.encode()), "data"), "data")
    return concatenate(part.corpus for part in parsed)


def optimum(kcrf, tmp_path, data, *options):
    model = tmp_path / "m.npz"
    limits = ("--sigma2", "0.7", "--tolerance", "1e-9", "--precision", "double")
    done = kcrf("train", data, *options, *limits, "--json", "-q", "-o", model)
    assert done.code == 0, done.err
    return json.loads(done.text)["objective"]


@pytest.mark.parametrize("name", CONFIGS)
def test_an_exported_file_trains_to_the_same_optimum(kcrf, tmp_path, sample_data, name):
    config, data, text = tmp_path / "c.yaml", tmp_path / "d.conll", tmp_path / "d.crfsuite.gz"
    config.write_text(CONFIGS[name])
    data.write_text("\n\n".join((sample_data / "pitch_accent.conll").read_text().split("\n\n")[:30]) + "\n")
    assert kcrf("featurize", data, "-c", config, "--export", "crfsuite", "-o", text, "-q").code == 0
    expected = optimum(kcrf, tmp_path, data, "-c", config)
    assert optimum(kcrf, tmp_path, text) == pytest.approx(expected, rel=1e-8)


def test_attribute_files_come_back_as_they_are(kcrf, tmp_path):
    data, text = tmp_path / "a.crfsuite", tmp_path / "b.crfsuite"
    data.write_text("@weight:2.5\nX\ta\\:b\tc:0.1\t\\\\:-3\nY\ta\\:b\tc:0\n\n@weight:1\nX\td:1e-300\nY Z\t\n\n")
    assert kcrf("featurize", data, "--export", "crfsuite", "-o", text, "-q").code == 0
    before, after = read_corpus(data), read_corpus(text)
    assert list(map(list, before.columns)) == list(map(list, after.columns))
    assert (before.weights == after.weights).all()
    for t in range(before.positions):
        rows = [
            dict(zip(rows.names[a:b], rows.values[a:b], strict=True))
            for rows in (before.attributes, after.attributes)
            for a, b in [rows.indptr[t : t + 2]]
        ]
        assert rows[0] == rows[1]


def test_values_that_look_like_others_are_told_apart():
    config = parse_config(
        {"features": [{"column": "c0", "window": [-1, 0, 1]}, {"conjunction": ["c0", "c1[-1]"]}, {"column": "c1"}]}
    )
    corpus = corpus_of(ODD)
    encoding, dataset = fit_encoding(config, corpus)
    text = "".join(export(encoding, dataset, corpus.columns[-1]))
    from kcrf_core.corpora import crfsuite

    parsed = crfsuite.CRFSUITE.parse(blocks(io.BytesIO(text.encode()), "data"), "data")
    again = concatenate(part.corpus for part in parsed)
    assert list(again.columns[0]) == list(corpus.columns[-1])
    assert again.offsets.tolist() == corpus.offsets.tolist()
    inputs = encoding.inputs(dataset, encoding.names)
    known, bag = fit_encoding(parse_config({}), again)
    # The same inner products between positions: no two values have become one, and none two.
    codes = inputs.codes
    expected = (codes[:, None, :] == codes[None, :, :]).sum(axis=2)
    assert (bag.bag @ bag.bag.T).toarray().tolist() == expected.tolist()
    assert len(known.features[0].vocabulary.values) == len(exported_columns(encoding, inputs))


def test_names_belong_to_the_encoding(kcrf, tmp_path, sample_data):
    """New data like old data: the same column has the same name, and what is new is left out."""
    model, new = tmp_path / "m.npz", tmp_path / "new.conll"
    options = ("--sigma2", "1", "-q", "-o", model)
    assert kcrf("train", sample_data / "pitch_accent.conll", *options).code == 0
    new.write_text("unheard-of\tN\t0.2\t120\t60\nbut\tC\t0.1\t110\t61\n")
    old = kcrf("featurize", sample_data / "pitch_accent.conll", "--export", "crfsuite", "-q").text
    text = kcrf("featurize", new, "--like", model, "--export", "crfsuite", "-q").text
    rows = [line.split("\t") for line in text.split("\n") if line]
    assert [row[0] for row in rows] == ["_", "_"] and "unheard-of" not in text
    names = {field for row in rows for field in row[1:] if ":" not in field}
    assert names and names <= {field for line in old.split("\n") for field in line.split("\t")}


@pytest.mark.parametrize(
    "features, message",
    [
        ("[{name: w, column: c0, window: [0]}, {name: 'w[0]=a', column: c1, window: [0]}]", "two features would be"),
        ('[{name: "a\\tb", column: c0}]', "cannot hold"),
    ],
)
def test_names_that_a_file_cannot_hold(features, message):
    config = parse_config(load_yaml(f"features: {features}", "y"))
    encoding, dataset = fit_encoding(config, corpus_of("a[0]=b b X\na b Y\n"))
    with pytest.raises(ConfigError, match=message):
        list(export(encoding, dataset, ["X", "Y"]))


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("--export", "crfsuite", "--json"), "give it a file with -o"),
        (("--export", "crfsuite", "--show", "1"), "give it a file with -o"),
        (("--export", "crfsuite", "-o", "x.npz"), "give another name"),
        ((), "nothing to do"),
        (("-o", "-"), "cannot go to stdout"),
    ],
)
def test_options_that_do_not_go_together(kcrf, sample_data, arguments, message):
    done = kcrf("featurize", sample_data / "digits.conll", *arguments)
    assert done.code == 2 and message in done.err and done.out == b""


def test_figures_as_json(kcrf, sample_data, tmp_path):
    template = tmp_path / "template"
    template.write_text("U:%x[-1,1]\nU:%x[1,1]\nB1:%x[0,1]\nB\n")
    done = kcrf("featurize", sample_data / "pitch_accent.conll", "-c", template, "--json", "-q")
    found = json.loads(done.text)
    assert found["attributes"] == 12  # ten classes and two ends
    assert (found["categorical_columns"], found["real_columns"], found["labels"]) == (1, 0, 2)


def test_values_with_tabs_are_refused_with_the_remedy(kcrf, tmp_path):
    (tmp_path / "data.csv").write_text('"two\twords",X\nb,Y\n')
    done = kcrf("featurize", tmp_path / "data.csv", "--separator", ",", "--plain", "--export", "crfsuite", "-q")
    assert done.code == 2 and done.out == b""
    assert "words' has a TAB or a line end, which the file cannot hold: replace it in the data" in done.err


def test_programs_that_tagging_is_compared_with_have_the_default_features(kcrf, tmp_path, monkeypatch):
    """experiments/speed builds attributes for CRFsuite, and has a template of CRF++ and patterns of Wapiti."""
    speed = Path(__file__).parents[2] / "experiments" / "speed"
    for folder in (speed, speed.parent):
        monkeypatch.syspath_prepend(folder)
    runtime, attributes = (SimpleNamespace(**runpy.run_path(speed / name)) for name in ("runtime.py", "attributes.py"))
    rng = np.random.default_rng(0)
    words = ["".join(letters) for letters in rng.choice([*"abcAB1"], (300, 6))]
    numbers = rng.permutation(300).reshape(10, 30).tolist()
    sentences = [[[words[n], f"T{n % 3}", f"L{n % 2}"] for n in some] for some in numbers]
    data = runtime.write_rows(tmp_path / "data.conll", sentences)
    text = kcrf("featurize", data, "--export", "crfsuite", "-q").text
    blocks = [[line.split("\t")[1:] for line in block.split("\n")] for block in text.strip().split("\n\n")]
    for rows, block in zip(sentences, blocks, strict=True):
        wide = runtime.widened([row[:2] for row in rows])

        def value(found, t, wide=wide):
            t += int(found[1])
            end = f"_B{t:+d}" if t < 0 else f"_B+{t - len(wide) + 1}"
            return wide[t][int(found[2])] if 0 <= t < len(wide) else end

        for t, (own, built) in enumerate(zip(block, attributes.default_attributes(rows), strict=True)):
            assert set(own) == set(built) and len(built) == 31
            lines = [re.sub(r"%x\[(-?\d),(\d+)\]", partial(value, t=t), line) for line in runtime.template()[:-1]]
            assert sorted(line[4:] for line in lines) == sorted(name.split("=", 1)[1] for name in built)
    assert len(parse_config(load_template("\n".join(runtime.patterns()), "patterns")).features[0].templates) == 31
