"""Models of other programs say the same here as there, and ours the same in their formats."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from tests.models import library_labels

from kcrf_core import Model, Workers, fit_encoding, parse_config, read_corpus, train
from kcrf_core.config import load_template, matcher, pieces
from kcrf_core.errors import ConfigError, FileFormatError
from kcrf_core.exchange import (
    export_model,
    import_model,
    program_of,
    read_crfsuite,
    read_foreign,
    write_crfsuite,
)
from kcrf_core.exchange.crfpp_models import write_crfpp
from kcrf_core.files import PlainContents, read_container
from kcrf_core.model import runtime_image
from kcrf_core.pycrfsuite import Tagger, Trainer
from kcrf_core.pycrfsuite.linear_models import is_plain, library_image

FOREIGN = Path(__file__).parents[1] / "data" / "foreign"
CRFSUITE, CRFPP, WAPITI = (FOREIGN / name for name in ("words.crfsuite-model", "words.crfpp", "words.wapiti"))


def last_columns(path):
    """The last column of each line that is not blank, as another program wrote it."""
    return [line.split()[-1] for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


@pytest.fixture(scope="module")
def words():
    return read_corpus(FOREIGN / "words.conll")


@pytest.fixture(scope="module")
def by_crfsuite():
    return json.loads(CRFSUITE.with_suffix(".crfsuite-model.json").read_text(encoding="utf-8"))


# ----------------------------------------------------------------------------- reading


def test_crfsuite_says_the_same(by_crfsuite, tmp_path):
    """By the model of ours, and by the tagger on either file."""
    model, _ = import_model(CRFSUITE)
    model.save(tmp_path / "model.npz")
    for path in (CRFSUITE, tmp_path / "model.npz"):
        with Tagger().open(path) as tagger:
            assert tagger.labels() == by_crfsuite["labels"]
            for sequence in by_crfsuite["sequences"]:
                assert tagger.tag(sequence["items"]) == sequence["tagged"]
                marginals = [
                    [tagger.marginal(label, t) for label in tagger.labels()] for t in range(len(sequence["items"]))
                ]
                np.testing.assert_allclose(marginals, sequence["marginals"], rtol=0, atol=2e-9)
                assert tagger.probability(sequence["tagged"]) == pytest.approx(sequence["probability"], rel=1e-9)


def test_crfpp_says_the_same(words):
    model, found = import_model(CRFPP)
    assert found.program == "CRF++" and found.width == 2
    dataset = model.encoding.encode(words)
    marginals = model.marginals(dataset)
    lines = [line for line in (FOREIGN / "words.crfpp.tagged").read_text("utf-8").splitlines() if line[:2].strip("# ")]
    assert len(lines) == words.positions
    best = [model.labels[number] for number in model.tag(dataset)]
    for t, line in enumerate(lines):
        label, *all_labels = line.split("\t")[3:]
        assert best[t] == label.rpartition("/")[0]
        theirs = dict(pair.rsplit("/", 1) for pair in all_labels)
        ours = dict(zip(model.labels, marginals[t], strict=True))
        assert {name: pytest.approx(ours[name], abs=2e-6) for name in ours} == {
            name: float(value) for name, value in theirs.items()
        }


def test_wapiti_says_the_same(words):
    model, found = import_model(WAPITI)
    assert [term.type for term in model.terms] == ["node", "edge-x"]
    assert model.tag_corpus(words) == last_columns(FOREIGN / "words.wapiti.tagged")
    assert any("\\x" in string for string in found.strings), "no pattern cuts a character in half"


def test_wapiti_of_earlier_versions(words):
    """Heads without a kind of model, and without the number that says how strings stand in data."""
    text = WAPITI.read_bytes()
    for old in (re.sub(rb"^#mdl#\d#", b"#mdl#", text), re.sub(rb"(#rdr#\d+/\d+)/0\n", rb"\1\n", text)):
        assert old != text
        assert read_foreign(old, "old").to_model().tag_corpus(words) == last_columns(FOREIGN / "words.wapiti.tagged")


def test_decimal_weights_of_wapiti():
    data = WAPITI.read_bytes()
    decimal = re.sub(rb"(?m)(?<=\d=)-?0x\S+$", lambda found: b"%r" % float.fromhex(found[0].decode()), data)
    assert decimal != data and b"=0x" not in decimal
    one, two = (read_foreign(each, "model").to_model() for each in (data, decimal))
    assert export_model(one, "wapiti") == export_model(two, "wapiti")


@pytest.mark.parametrize("stars", [1, 2])
def test_lines_that_are_there_twice(stars, tmp_path):
    """Their strings count twice, here and in the file; weights of pairs of labels are stored once."""
    weights = b"0=0x1p-2\n1=-0x1p-1\n4=0x1.8p+0\n6=0x1p-3\n"
    patterns = [b"u:%x[0,0]", b"u:%x[0,0]", *[b"*"] * stars]
    head = b"#mdl#2#4\n#rdr#%d/0/0\n" % len(patterns) + b"".join(b"%d:%b,\n" % (len(one), one) for one in patterns)
    data = head + b"#qrk#2\n1:A,\n1:B,\n#qrk#2\n3:u:a,\n1:*,\n" + weights
    model = read_foreign(data, "model").to_model()
    written, _ = export_model(model, "wapiti")
    again = read_foreign(written, "written").to_model()
    np.testing.assert_array_equal(model.edges.transitions, again.edges.transitions)
    (tmp_path / "data.conll").write_text("a A\nb B\na A\n")
    corpus = read_corpus(tmp_path / "data.conll")
    for one in (model, again):
        dataset = one.encoding.encode(corpus)
        np.testing.assert_allclose(one.potentials(dataset)[0], model.potentials(dataset)[0], rtol=1e-15)
    assert written.count(b"u:%x[0,0],") == 2 and written.count(b"1:*,\n") == stars + 1


def test_wapiti_without_patterns(tmp_path):
    """Strings stand in the data; what begins with b and * looks at two labels."""
    head = b"#mdl#2#5\n#rdr#0/0/0\n#qrk#2\n1:A,\n1:B,\n#qrk#3\n3:u:a,\n3:b:b,\n3:*:c,\n"
    text = head + b"0=0x1p+0\n3=0x1p+1\n6=0x1p-1\n7=0x1.8p+0\n11=-0x1p+0\n"
    model = read_foreign(text, "model").to_model()
    data = tmp_path / "data.crfsuite"
    data.write_text("A\tu\\:a\nB\tb\\:b\t*\\:c\nA\t*\\:c\n")
    corpus = read_corpus(data)
    scores, edges = model.potentials(model.encoding.encode(corpus))
    np.testing.assert_allclose(scores[:, 0] - scores[:, 1], [1.0, -1.0, -1.0])
    expected = np.zeros((3, 2, 2))
    expected[1] += [[0, 2], [0, 0]]
    expected[1:] += [[0, 0], [0, -1]]
    np.testing.assert_allclose(edges.transitions[1:], expected[1:])


def test_numbers_of_a_string_are_where_wapiti_has_them():
    text = b"#mdl#2#1\n#rdr#1/0/0\n9:*:%x[0,0],\n#qrk#2\n1:A,\n1:B,\n#qrk#2\n3:*:x,\n3:*:y,\n@=0x1p+0\n"
    for number, label, pair in ((1, 1, None), (2, None, 0), (5, None, 3)):
        found = read_foreign(text.replace(b"@", b"%d" % number), "model")
        assert found.node.dense()[0].tolist() == [float(y == label) for y in range(2)]
        if pair is not None:
            assert found.pairs.dense()[0].tolist() == [float(p == pair) for p in range(4)]


def test_factors_multiply_weights():
    data = CRFPP.read_bytes()
    twice = read_foreign(data[:8] + struct.pack("<d", 2.5) + data[16:], "model")
    once = read_foreign(data, "model")
    np.testing.assert_allclose(twice.node.values, 2.5 * once.node.values, rtol=1e-15)
    np.testing.assert_allclose(twice.transitions, 2.5 * once.transitions, rtol=1e-15)


def test_other_encodings():
    data = write_crfpp(["A", "B"], ["U%x[0,0]"], ["Uä", "Uo"], [np.ones(2), np.ones(2)], 1)
    for encoding in ("utf-8", "latin-1"):
        assert "Uä".encode().decode(encoding) in read_foreign(data, "model", encoding).strings
    found = read_foreign(data, "model", "ascii")
    assert found.remarks and "1 strings are not ascii" in found.remarks[0]
    with pytest.raises(ConfigError, match="no encoding"):
        read_foreign(data, "model", "nothing")


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"\x80\x04\x95pickle", "pickle"),
        (b"\xac\xed\x00\x05sr", "Java"),
        (b"PK\x03\x04", "no import"),
        (b"version: 100\ncost-factor: 1\n", "crf_learn -C"),
        (b"hello", "not a model"),
        (b"", "not a model"),
        (re.sub(rb"^#mdl#2", b"#mdl#1", WAPITI.read_bytes()), "memm"),
        (CRFSUITE.read_bytes().replace(b"FOMC", b"XXXX", 1), "type 'XXXX'"),
    ],
)
def test_others_are_refused_by_name(data, what):
    with pytest.raises(FileFormatError, match=what):
        read_foreign(data, "model")


@pytest.mark.parametrize("path", [CRFSUITE, CRFPP, WAPITI], ids=lambda path: path.name)
def test_files_that_are_cut_off_are_refused(path):
    data = path.read_bytes()
    for length in {*range(4, len(data) - 1, 131), len(data) - 9}:
        with pytest.raises(FileFormatError):
            read_foreign(data[:length], "model").check("model")


def test_files_that_point_in_circles_stay_small():
    """All attributes list all features, or have one long name: what is read is no larger than the file."""
    data = bytearray(CRFSUITE.read_bytes())
    found = read_crfsuite(bytes(data), "model")
    place = int(np.frombuffer(data, "<u4", 1, 44)[0])
    first = np.frombuffer(data, "<u4", 1, place + 12)
    data[place + 12 : place + 12 + 4 * len(found.attributes)] = np.tile(first, len(found.attributes)).tobytes()
    count = int(first[0])
    data[count : count + 4] = np.array([40], "<u4").tobytes()
    with pytest.raises(FileFormatError, match="more features than it has"):
        read_foreign(bytes(data), "model")


def test_damaged_words_of_a_crfsuite_model_do_no_harm():
    """A file with another word is refused in one line, or read without looking outside of it."""
    data, rng = CRFSUITE.read_bytes(), np.random.default_rng(0)
    refused = 0
    for _ in range(2000):
        changed = bytearray(data)
        at = 4 * int(rng.integers(4, 12 if rng.random() < 0.2 else len(data) // 4))
        changed[at : at + 4] = (
            rng.choice([0, 1, len(data) - 2, 2**31, 2**32 - 1, int(rng.integers(256))]).astype("<u4").tobytes()
        )
        try:
            found = read_crfsuite(bytes(changed), "model")
        except FileFormatError as error:
            refused += "model: a " in str(error) and "\n" not in str(error)
        else:
            assert np.isfinite(found.values).all() and (found.columns < len(found.labels)).all()
    assert 200 < refused < 1900


# ----------------------------------------------------------------------------- writing


def test_damage_of_a_crfpp_model_is_told_with_its_name(recwarn):
    data = CRFPP.read_bytes()
    *_, size, _, units = struct.unpack_from("<IidIII", data)
    weights = len(data) - 4 * size
    root = weights - units
    far, signalling = struct.pack("<i", units // 8), struct.pack("<I", 0x7FA00000)
    infinite = struct.pack("<d", float("inf"))
    damaged = {
        "it has no strings": data[:root] + far + data[root + 4 :],
        "cannot read 'U01:%x[0'": data.replace(b"U01:%x[0,0]", b"U01:%x[0\0\0\0"),
        "weights that are not finite": data[:weights] + signalling + data[weights + 4 :],
        "it has weights that are not finite": data[:8] + infinite + data[16:],
    }
    for what, changed in damaged.items():
        assert len(changed) == len(data) and changed != data
        with pytest.raises(FileFormatError, match=f"^model: a damaged CRF\\+\\+ model: .*{re.escape(what)}"):
            read_foreign(changed, "model").check("model")
    assert not recwarn.list


def test_crfsuite_files_are_written_as_crfsuite_writes_them():
    data = CRFSUITE.read_bytes()
    assert write_crfsuite(read_crfsuite(data, "model")) == data


TEMPLATES = (FOREIGN / "template").read_text(), (FOREIGN / "patterns").read_text()


def fitted(corpus, raw, workers):
    config = parse_config(raw | {"training": {"sigma2": 1.0, "decode": "viterbi"}})
    encoding, dataset = fit_encoding(config, corpus)
    return train(encoding, dataset, config, workers=workers)[0]


@pytest.fixture(scope="module")
def models(words):
    """Models of ours by how they were described."""
    columns = {"columns": ["word", "class", "label"]}
    pair = {"conjunction": ["word", "class[1]"], "name": "both"}
    window = {"features": [{"column": "word", "window": [-1, 0, 1]}, {"column": "class", "window": [-2, 0]}, pair]}
    edges = {"terms": [{"features": ["word", "both"]}, {"type": "edge-x", "features": ["class"]}, {"type": "edge"}]}
    near = {"name": "near", "features": ["word", "class"], "window": [0]}
    own_windows = {"terms": [{"name": "all", "features": ["class", "both"]}, near, {"type": "edge"}]}
    pages = {
        "windows": columns | window,
        "edge-x": columns | window | edges,
        "template": load_template(TEMPLATES[0], "template"),
        "patterns": load_template(TEMPLATES[1], "patterns"),
        "transitions": columns | {"plain": True, "terms": [{}, {"type": "transitions"}]},
        "terms": columns | window | own_windows,
    }
    with Workers(1) as workers:
        return {name: fitted(words, raw, workers) for name, raw in pages.items()}


@pytest.mark.parametrize("program", ["crf++", "wapiti", "crfsuite"])
@pytest.mark.parametrize("name", ["windows", "edge-x", "template", "patterns", "transitions", "terms"])
def test_what_is_written_says_the_same_when_it_is_read(models, words, name, program, tmp_path):
    model = models[name]
    other = {("patterns", "crf++"): "Wapiti", ("template", "wapiti"): r"CRF\+\+"}.get((name, program))
    if other is not None:
        with pytest.raises(ConfigError, match=f"the template is one of {other}: write the model for {other}"):
            export_model(model, program)
        return
    if program == "crfsuite" and name in ("edge-x", "template", "patterns"):
        with pytest.raises(ConfigError, match="depend on the input, which CRFsuite cannot do"):
            export_model(model, program)
        return
    data, _ = export_model(model, program)
    again = read_foreign(data, "model").to_model()
    if program == "crfsuite":
        from kcrf_core.encoding import export

        file = tmp_path / "data.crfsuite"
        gold = list(words.columns[-1])
        file.write_text("".join(export(model.encoding, model.encoding.encode(words), gold)), encoding="utf-8")
        corpus = read_corpus(file)
    else:
        corpus = words
    own, theirs = model.marginals(model.encoding.encode(words)), again.marginals(again.encoding.encode(corpus))
    tolerance = 1e-5 if program == "crf++" else 1e-9  # CRF++ has weights in single precision
    np.testing.assert_allclose(theirs, own, rtol=0, atol=tolerance)
    assert again.tag_corpus(corpus) == model.tag_corpus(words)


def test_strings_of_a_double_array_come_back(rng):
    """All prefixes and bytes; a string that is the beginning of another one."""
    strings = {"U" + "".join(chr(c) for c in rng.integers(33, 600, n)) for n in rng.integers(0, 6, 500)}
    names = sorted(strings)
    weights = [rng.normal(size=2) for _ in names]
    data = write_crfpp(["A", "B"], ["U%x[0,0]"], names, weights, 1)
    found = read_foreign(data, "model")
    by_name = dict(zip(found.strings, found.node.dense(), strict=True))
    assert by_name.keys() == strings
    for name, own in zip(names, weights, strict=True):
        np.testing.assert_allclose(by_name[name], own.astype(np.float32), rtol=0)


def test_first_and_last_labels_without_a_place(words):
    """Attributes that mark the ends take the scores; without them there is no way to write them."""
    model, _ = import_model(CRFSUITE)
    Y = len(model.labels)
    from dataclasses import replace

    from kcrf_core.chains import Edges

    ends = Edges(model.edges.transitions, np.arange(Y) * 1.0, np.zeros(Y))
    started = replace(model, edges=ends)
    data, remarks = export_model(started, "crfsuite")
    assert "'BOS'" in remarks[0]
    before, after = (read_crfsuite(one, "model") for one in (CRFSUITE.read_bytes(), data))
    row, there = before.attributes.index(b"BOS"), after.attributes.index(b"BOS")
    dense = [np.zeros(Y), np.zeros(Y)]
    for out, found, number in zip(dense, (before, after), (row, there), strict=True):
        inside = slice(found.ends[number], found.ends[number + 1])
        out[found.columns[inside]] = found.values[inside]
    np.testing.assert_allclose(dense[1], dense[0] + np.arange(Y), rtol=1e-12)
    with pytest.raises(ConfigError, match="EOS, or train with a term of the type transitions"):
        export_model(replace(model, edges=Edges(ends.transitions, np.zeros(Y), ends.start)), "crfsuite")
    with pytest.raises(ConfigError, match="works on attributes"):
        export_model(model, "wapiti")


@pytest.mark.parametrize(
    ("raw", "what"),
    [
        ({"terms": [{"kernel": {"type": "poly", "degree": 2}}, {"type": "edge"}]}, "has a kernel"),
        ({"terms": [{}, {"type": "edge"}, {"type": "edge2"}]}, "second order"),
        ({"training": {"sigma2": 1.0, "observed_transitions": True}}, "cannot forbid"),
        ({"features": [{"column": "c0", "transform": "suffix", "length": 2}]}, "'suffix', which CRF"),
        ({"features": [{"column": "c0", "window": [-9]}]}, "9 positions away"),
        ({"features": [{"column": "c0", "transform": "length"}]}, "made of numbers"),
    ],
)
def test_what_cannot_be_said_is_refused_with_the_remedy(words, workers, raw, what):
    config = parse_config({"training": {"sigma2": 1.0}} | raw)
    encoding, dataset = fit_encoding(config, words)
    model, _ = train(encoding, dataset, config, workers=workers)
    with pytest.raises(ConfigError, match=what):
        export_model(model, "crf++")


@pytest.mark.parametrize("value, program", [("_B-1", "crf++"), ("_B+8", "crf++"), ("_x+1", "wapiti")])
@pytest.mark.parametrize("raw", [{"plain": True, "window": [0]}, {"features": [{"conjunction": ["c0", "c0[-1]"]}]}])
def test_words_that_are_marks_of_ends_are_refused(workers, tmp_path, value, program, raw):
    path = tmp_path / "data.conll"
    path.write_text(f"a X\n{value} Y\nb X\n\nb Y\na X\n")
    model = fitted(read_corpus(path), raw, workers)
    with pytest.raises(ConfigError, match=f"takes the value {re.escape(repr(value))} for the end of a sequence"):
        export_model(model, program)
    export_model(model, {"crf++": "wapiti", "wapiti": "crf++"}[program])


@pytest.mark.parametrize("labels", ["X", "XY", "XYZ"])
@pytest.mark.parametrize("attributes", [True, False], ids=["attributes", "transitions alone"])
def test_models_of_crfsuite_come_back_as_they_are(tmp_path, rng, labels, attributes):
    """Also with two labels, whose weights need not be opposite, and without any attribute."""
    trainer = Trainer(params={"c2": 0.1}, verbose=False)
    for _ in range(8):
        items = [{"w": str(rng.choice(list("abcdefgh"))), "n": float(rng.random())} for _ in range(5)]
        trainer.append(items if attributes else [[]] * 5, rng.choice(list(labels), 5).tolist())
    trainer.train(tmp_path / "m.crfsuite")
    data = (tmp_path / "m.crfsuite").read_bytes()
    model = read_foreign(data, "m.crfsuite").to_model()
    assert export_model(model, "crfsuite")[0] == data
    model.save(tmp_path / "m.npz")
    assert export_model(Model.load(tmp_path / "m.npz"), "crfsuite")[0] == data
    if attributes and len(labels) > 1:  # with one label no weight is left
        contents = read_container(tmp_path / "m.npz", "model", form=PlainContents)
        assert is_plain(contents) and library_image(contents) == runtime_image(Model.load(tmp_path / "m.npz"))
    with Tagger().open(tmp_path / "m.crfsuite") as old, Tagger().open(tmp_path / "m.npz") as new:
        items = [{"w": "a", "n": 0.5}, {"w": "c"}, {"n": -1.0}]
        assert old.tag(items) == new.tag(items) and old.info().state_features == new.info().state_features


def test_crfpp_parts_columns_at_tabs_and_spaces_alone(workers, tmp_path):
    """U+3000 is a character of Japanese text like others; other white space is a part of values, too."""
    path = tmp_path / "data.conll"
    words = ["東京", "\u3000", "a\u00a0b", "\u2028", "c\x0bd"]
    path.write_text("".join(f"{word}\t{'XY'[k % 2]}\n{words[k - 1]}\tY\n\n" for k, word in enumerate(words)), "utf-8")
    corpus = read_corpus(path)
    assert set(corpus.columns[0]) == set(words)
    model = fitted(corpus, {"features": [{"column": "c0", "window": [-1, 0]}]}, workers)
    again = read_foreign(export_model(model, "crf++")[0], "model").to_model()
    own, theirs = (one.marginals(one.encoding.encode(corpus)) for one in (model, again))
    np.testing.assert_allclose(theirs, own, rtol=0, atol=1e-5)
    path.write_text("New York\tX\nYork\tY\n")
    with pytest.raises(ConfigError, match=":New York' has a space, which CRF"):
        export_model(fitted(read_corpus(path), {"features": [{"column": "c0"}]}, workers), "crf++")


def test_programs_by_the_names_of_files():
    assert [program_of(f"a/model{end}") for end in (".crfsuite", ".wapiti", ".crfpp", ".npz")] == [
        "crfsuite",
        "wapiti",
        "crf++",
        None,
    ]


# ----------------------------------------------------------------------------- patterns


@pytest.mark.parametrize(
    ("expression", "value", "found"),
    [
        ("^..", "abc", "ab"),
        (".?.?$", "abc", "bc"),
        (".?.?$", "é", "é"),
        (".$", "é", "é".encode()[1:]),
        (r"\d*$", "ab12", "12"),
        (r"\l*", "abc", ""),
        (r"\u\l*\p", "xAbc-d", "Abc-"),
        (r"\A", "é", "é".encode()[:1]),
        (r"\*\.", "a*.b", "*."),
        ("a^", "xa^", "a^"),
        ("$a", "$a", "$a"),
        ("b$", "abc", None),
        ("", "abc", ""),
        ("a?ab", "ab", "ab\0"),  # what failed is counted into the length
        ("a?ab", "abX", "abX"),
    ],
)
def test_expressions_match_as_wapiti_matches(expression, value, found):
    """What Wapiti 1.5.0 puts into its strings for these."""
    value = value.encode()
    span = matcher(expression)(value)
    if found is None:
        assert span is None
    else:
        expected = found if isinstance(found, bytes) else found.encode()
        assert (value + b"\0")[span[0] : sum(span)] == expected


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("u:%y[0,0]", "cannot read"),
        ("u:%x[0]", "cannot read"),
        ("u:%t[0,0]", "needs a regular expression"),
        ('u:%m[0,0,"a', "needs a regular expression"),
        ('u:%m[0,0,"a"', "is missing"),
        ('u:%m[0,0,"a**"]', "nothing before it"),
        ('u:%m[0,0,"^*"]', "nothing before it"),
        ("u:%x[200,0]", "further than"),
    ],
)
def test_patterns_that_cannot_be_read(line, what):
    with pytest.raises(ConfigError, match=what):
        pieces(line)


def test_expressions_that_take_for_ever_are_refused():
    with pytest.raises(ConfigError, match="too long"):
        matcher("a*a*a*a*a*a*a*a*b")(b"a" * 60)


def test_training_with_patterns_gives_the_strings_of_wapiti(models):
    """Their vocabulary has every string of Wapiti's model that is not of the pairs of labels alone."""
    theirs = {string for string in import_model(WAPITI)[1].strings if not string.startswith("b")}
    own = set(models["patterns"].encoding.features[0].vocabulary.values)
    assert theirs <= own and len(theirs) > 50


def test_models_with_patterns_are_stored(models, words, tmp_path):
    model = models["patterns"]
    model.save(tmp_path / "model.npz")
    loaded = Model.load(tmp_path / "model.npz")
    assert loaded.tag_corpus(words) == model.tag_corpus(words)
    assert loaded.encoding.features_of_whole_sequences(loaded.encoding.names) == ["templates"]


# ----------------------------------------------------------------------------- use as any model


@pytest.mark.parametrize("number", [0, 1], ids=["template", "patterns"])
def test_imported_models_start_training(words, workers, number):
    """The same template on the same data: nearly nothing is left to do."""
    from kcrf_core.training import WarmStart

    lines = [line for line in TEMPLATES[number].splitlines() if line[0] not in "bB*" or line in ("b", "B")]
    raw = load_template("\n".join(lines), "template") | {"training": {"sigma2": 1.0, "tolerance": 1e-4}}
    raw["terms"][-1]["type"] = "transitions"
    config = parse_config(raw)
    encoding, dataset = fit_encoding(config, words)
    model, cold = train(encoding, dataset, config, workers=workers)
    data, _ = export_model(model, "wapiti" if number else "crf++")
    earlier = read_foreign(data, "model").to_model()
    _, warm = train(encoding, dataset, config, workers=workers, start=WarmStart(earlier))
    assert warm.result.passes < cold.result.passes / 3


def test_imported_models_are_inspected_and_pruned(words, workers, tmp_path):
    from kcrf_core.files import read_container
    from kcrf_core.model import dump, summarise

    for path in (CRFSUITE, CRFPP, WAPITI):
        model, _ = import_model(path)
        target = tmp_path / "model.npz"
        model.save(target)
        contents = read_container(target, "model")
        found = summarise(contents, Model.unpack(contents), 3)
        assert found["terms"][0]["top"]
        lines = list(dump(model))
        weights = sum(term.nonzero for term in model.terms) + np.count_nonzero(model.edges.transitions)
        assert len(lines) >= weights - 1


@pytest.mark.parametrize("labels", [1, 2, 5])
def test_labels_straight_from_bytes_are_those_of_the_model(rng, workers, tmp_path, labels):
    """Attributes with values, twice at a position, unknown, or none at all."""
    lines = []
    for _ in range(60):
        for _ in range(rng.integers(1, 6)):
            names = [f"a{k}" if k % 3 else f"a\\:{k}" for k in rng.integers(0, 40, rng.integers(0, 5))]
            values = ["" if k < 2 else f":{k / 2}" for k in rng.integers(0, 5, len(names))]
            lines.append("\t".join([f"y{rng.integers(labels)}", *map("".join, zip(names, values, strict=True))]))
        lines.append("")
    data = tmp_path / "data.crfsuite"
    data.write_text("\n".join(lines) + "\n")
    corpus = read_corpus(data)
    model = fitted(corpus.subset(range(30)), {}, workers)
    image = runtime_image(model)
    for given in (corpus, corpus.subset(range(20, 60)), corpus.span(10, 40)):
        found = library_labels(image, model.encoding, given)
        np.testing.assert_array_equal(found, model.tag(model.encoding.encode(given)))
