"""What must hold of configurations: what is written is meant, and what cannot be meant is said, with its line."""

from __future__ import annotations

import json
import random

import pytest
import yaml

from kcrf_core.config import (
    Config,
    FeatureConfig,
    TermConfig,
    feature_dict,
    load_yaml,
    option_paths,
    parse_config,
    with_options,
)
from kcrf_core.config.config import MapConfig
from kcrf_core.config.options import parse_settings, set_path
from kcrf_core.errors import ConfigError
from kcrf_core.kernels import KernelConfig, matching_features

FULL = """\
columns: [word, pos, f0, energy, label]
features:
  - {column: word}
  - {column: word, transform: suffix, length: 3, window: [0]}
  - {column: word, transform: shape, window: [-1, 0, 1]}
  - {name: acoustics, columns: [f0, energy], type: real, scale: standard, window: [-2, -1, 0, 1, 2]}
  - {conjunction: [word, pos], window: [0]}
terms:
  - {name: lexical,  features: [word*, pos], kernel: {type: poly, degree: 2}}
  - {name: acoustic, features: [acoustics], kernel: {type: rbf}, map: {type: reduced, size: 1000, select: random}}
  - {type: edge}
training: {sigma2: auto, solver: auto, tolerance: 1.0e-3}
"""


def parse(text):
    return parse_config(load_yaml(text, "conf.yaml"), "conf.yaml")


def error_of(text, **options):
    with pytest.raises(ConfigError) as caught:
        parse_config(with_options(load_yaml(text, "conf.yaml"), options), "conf.yaml")
    message = str(caught.value)
    assert "\n" not in message
    return message


# What is written is what is meant


@pytest.mark.parametrize(
    ("written", "number"),
    [("1e5", 1e5), ("1e-3", 1e-3), ("1E+2", 100), ("010", 10), ("1_000", 1000), ("1.50", 1.5), (".5", 0.5), ("5.", 5)],
)
def test_numbers_are_read_as_people_write_them(written, number):
    sigma2 = parse(f"training: {{sigma2: {written}}}").training.sigma2
    assert sigma2 == number and isinstance(sigma2, float)
    assert parse(f"terms:\n- {{sigma2: {written}}}").terms[0].sigma2 == number
    if number == int(number) and number < 100:
        assert parse(f"window: {written}").window == (number,)


@pytest.mark.parametrize("written", ["1:30", "1:30.5", "0x1F", "0o17", "0b11", "yes", "2001-01-01", "1__0", "0x", "1e"])
def test_what_only_yaml_takes_for_a_number_is_refused_with_its_line(written):
    message = error_of(f"columns: [a, b]\ntraining: {{sigma2: {written}}}")
    assert message == f"conf.yaml:2: training: 'sigma2' must be a number, not '{written}'"
    message = error_of(f"columns: [a, b]\nwindow: {written}")
    assert message.startswith("conf.yaml:2: the configuration: 'window' must be ") and f"'{written}'" in message
    for key in ("min_count", "max_passes"):
        place = f"{key}: {written}" if key == "min_count" else f"training:\n  {key}: {written}"
        assert f"'{key}' must be a number, not '{written}'" in error_of(place)


def test_a_range_of_offsets_is_no_time_of_day():
    assert "-2..2, not '1:2'" in error_of("window: 1:2")
    assert "'1:2'" in error_of("window: [0, 1:2]")


NAMES = [
    "no",
    "Yes",
    "on",
    "off",
    "010",
    "1e5",
    "1.50",
    "+1",
    "1:30",
    "0x1F",
    "1_000",
    ".inf",
    "2001-01-01",
    "=",
    "<<",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_stay_as_they_are_written(name):
    config = parse(f"columns: [{name}, b, label]\nunobserved: {name}\nfeatures: [{{column: {name}, name: {name}}}]")
    assert config.columns[0] == config.unobserved == config.features[0].name == name
    assert parse(yaml.safe_dump(config.to_dict(), allow_unicode=True)) == config


@pytest.mark.parametrize(("word", "truth"), [("true", True), ("False", False)])
def test_truth_values(word, truth):
    assert parse(f"training: {{observed_features: {word}}}").training.observed_features is truth
    message = error_of("training: {observed_features: yes}")
    assert message == "conf.yaml:1: training: 'observed_features' must be true or false, not 'yes'"


def test_example_with_several_terms():
    config = parse(FULL)
    assert config.columns == ("word", "pos", "f0", "energy", "label")
    assert [feature.name for feature in config.features] == [
        "word",
        "word.suffix3",
        "word.shape",
        "acoustics",
        "word/pos",
    ]
    word, suffix, shape, acoustics, both = config.features
    assert word == FeatureConfig("word", ("word",))
    assert suffix == FeatureConfig("word.suffix3", ("word",), "categorical", "suffix", 3, (0,))
    assert shape == FeatureConfig("word.shape", ("word",), "categorical", "shape", window=(-1, 0, 1))
    window = (-2, -1, 0, 1, 2)
    assert acoustics == FeatureConfig("acoustics", ("f0", "energy"), "real", window=window, scale="standard")
    assert both.parts == (("word", 0), ("pos", 0)) and both.type == "conjunction" and both.window == (0,)
    lexical, acoustic = config.mapped_terms
    assert lexical == TermConfig("lexical", "node", ("word*", "pos"), KernelConfig("poly", {"degree": 2}))
    assert acoustic.kernel == KernelConfig("rbf") and acoustic.map == MapConfig("reduced", 1000, "random")
    assert config.label_terms == (TermConfig("edge", "edge", ()),)
    assert config.training.sigma2 is None and config.training.tolerance == 1e-3


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "{}", "features:\nterms:\ntraining:\n"])
def test_everything_has_a_default(text):
    assert parse(text) == Config()


@pytest.mark.parametrize(
    "short, long",
    [
        ("window: -2..1", "window: [-2, -1, 0, 1]"),
        ("window: 3", "window: [3]"),
        ("window: [2, -1, 0]", "window: [-1, 0, 2]"),
        ("window: -100..100", f"window: {list(range(-100, 101))}"),
        ("columns: [1, 2]", "columns: ['1', '2']"),
        ("columns: [a, v9..v11, label]", "columns: [a, v9, v10, v11, label]"),
        ("columns: [x1y08..x1y10, 3..4]", "columns: [x1y08, x1y09, x1y10, '3', '4']"),
        (
            "features: [{columns: [v1..v3, w], type: real}]",
            "features: [{columns: [v1, v2, v3, w], type: real, name: v1..v3+w}]",
        ),
        ("terms: [{kernel: poly}]", "terms: [{name: node, type: node, kernel: {type: poly, degree: 2, coef0: 1}}]"),
        ("terms: [{kernel: {type: rbf, gamma: auto}}]", "terms: [{kernel: rbf}]"),
        ("terms: [{map: full}]", "terms: [{map: {type: full, select: random}}]"),
        (
            "features: [{conjunction: ['a[-1]', 'b[+2]', c]}]",
            "features: [{conjunction: ['a[-1]', 'b[2]', 'c[0]'], name: 'a[-1]/b[+2]/c'}]",
        ),
        ("features: [{type: attributes}]", "features: [{name: attributes, type: attributes, window: [0]}]"),
        (
            "features: [{column: a, transform: length}]",
            "features: [{name: a.length, columns: [a], type: real, transform: length}]",
        ),
        ("training: {tolerance: 1e-3}", "training: {tolerance: 0.001}"),  # YAML 1.1 takes the first for a string
        ("training: {sigma2: 1E5, max_passes: 2e2}", "training: {sigma2: 100000.0, max_passes: 200}"),
    ],
)
def test_two_ways_to_write_the_same(short, long):
    assert parse(short) == parse(long)


def test_large_seeds_are_exact():
    assert parse("training: {seed: 9007199254740993}").training.seed == 2**53 + 1


def random_feature(rng, number):
    window = rng.choice([None, [0], [-1, 0, 1], [-100, 100], [3]])
    kind = rng.randrange(5)
    if kind == 0:
        raw = {"column": rng.choice("abc"), "type": rng.choice(["auto", "categorical", "real"])}
    elif kind == 1:
        raw = {
            "columns": rng.sample("abc", rng.randint(1, 3)),
            "type": "real",
            "scale": rng.choice(["none", "standard"]),
        }
    elif kind == 2:
        transform = rng.choice(["lower", "prefix", "suffix", "shape", "length", "position", "frequency"])
        raw = {"column": "a", "transform": transform}
        if transform in ("prefix", "suffix"):
            raw["length"] = rng.randint(1, 9)
    elif kind == 3:
        raw = {
            "conjunction": [
                rng.choice(["a", "b[-1]", "c[100]", "d [x][2]", "e[1][0]"]) for _ in range(rng.randint(2, 4))
            ]
        }
    else:
        raw = {"column": "c", "min_count": rng.randint(1, 9)}
    if window is not None:
        raw["window"] = window
    return raw | {"name": f"f{number}"}


def random_kernel(rng):
    kind = rng.choice(["linear", "poly", "rbf"])
    raw = {"type": kind}
    if kind == "poly":
        raw |= {"degree": rng.randint(1, 10), "coef0": rng.choice([0, 1, 0.1])}
    if kind != "linear" and rng.random() < 0.5:
        raw["gamma"] = rng.choice(["auto", 0.1, 1e-9, 3])
    return raw


def random_config(rng):
    raw = {"min_count": rng.randint(1, 5)}
    if rng.random() < 0.5:
        raw["columns"] = ["a", "b", "c", "d", "größe", "label"]
    if rng.random() < 0.5:
        raw["window"] = rng.choice(["-2..2", [0, 5]])
    if rng.random() < 0.8:
        raw["features"] = [random_feature(rng, number) for number in range(rng.randint(1, 5))]
    if rng.random() < 0.8:
        raw["terms"] = []
        for number in range(rng.randint(1, 3)):
            term = {
                "name": f"t{number}",
                "kernel": random_kernel(rng),
                "features": ["f*", "größe"][: rng.randint(1, 2)],
            }
            term["map"] = rng.choice(["auto", "full", {"type": "reduced", "size": 7, "select": "greedy"}])
            if rng.random() < 0.5:
                term["sigma2"] = rng.choice([0.1, 7, 1e-12])
            raw["terms"].append(term)
        if rng.random() < 0.5:
            raw["terms"].append({"type": "edge", "sigma2": 0.3})
    if rng.random() < 0.8:
        raw["training"] = {
            "sigma2": rng.choice(["auto", 1 / 3]),
            "precision": "double",
            "tolerance": 1e-7,
            "seed": 2**70,
        }
    return raw


@pytest.mark.parametrize("seed", range(60))
def test_to_dict_comes_back(seed):
    config = parse_config(random_config(random.Random(seed)))
    layout = config.to_dict()
    assert parse_config(layout) == config
    assert parse_config(json.loads(json.dumps(layout))) == config
    assert parse(yaml.safe_dump(layout, allow_unicode=True)) == config


# What cannot be meant


@pytest.mark.parametrize(
    "text, line, parts",
    [
        ("window: 0\nfeaturs: []", 2, ["unknown key 'featurs'", "did you mean 'features'?"]),
        ("features:\n  - column: a\n    windw: [0]", 3, ["feature 0", "'windw'", "did you mean 'window'?"]),
        ("features:\n- {column: a}\n- {column: b,\n   qqq: 1}", 4, ["feature 1", "unknown key 'qqq'"]),
        ("terms:\n- {kernel: {type: poly,\n    degre: 2}}", 3, ["kernel of term 'node'", "did you mean 'degree'?"]),
        ("terms:\n- {kernel: {type: polly}}", 2, ["'polly'", "linear, poly, rbf", "did you mean 'poly'?"]),
        ("training:\n  tolerence: 1", 2, ["unknown key", "'tolerance'"]),
        ("window: 0\nwindow: 1", 2, ["'window' is given twice"]),
        ("terms:\n- {name: a, name: b}", 2, ["'name' is given twice"]),
        ("a: b: c", 1, ["not valid YAML"]),
        ("window: 1\nfeatures: [", 2, ["not valid YAML"]),
        ("1: 2", 1, ["a key must be a word, not 1"]),
        ("x: 1\n? [1, 2]\n: 3", 2, ["a key must be a word"]),
        ("window: 0\ncolumns: [a, b, a]", 2, ["'a' twice"]),
        ("columns: []", 1, ["'columns' must be a list of names, not an empty list"]),
        ("columns: {a: b}", 1, ["'columns'", "not a mapping"]),
        ("columns: [true]", 1, ["'columns'", "must be a word, not True"]),
        ("features: 3", 1, ["'features' must be a list, not 3"]),
        ("features: []", 1, ["'features' is empty"]),
        ("\nfeatures:\n- word", 2, ["feature 0 must be a mapping", "'word'"]),
        ("features:\n- {name: a}", 2, ["give one of 'column', 'columns', 'conjunction', 'templates' and 'vectors'"]),
        ("features:\n-\n  window: 0", 3, ["give one of"]),
        ("features:\n- {column: a, columns: [b]}", 2, ["give one of"]),
        ("features:\n- {column: a}\n- {column: a, window: 0}", 1, ["two features are called 'a'"]),
        ("features:\n- {column: a, transform: suffix}", 2, ["'suffix' needs a 'length'"]),
        ("features:\n- {column: a, length: 2}", 2, ["'length' is for"]),
        ("features:\n- {column: a, transform: suffix, length: 0}", 2, ["'length' must be at least 1"]),
        ("features:\n- {column: a, transform: length, type: categorical}", 2, ["its type is real"]),
        ("features:\n- {column: a, transform: lower, type: real}", 2, ["its type is categorical"]),
        ("features:\n- {columns: [a, b]}", 2, ["several columns", "'type: real'"]),
        ("features:\n- {columns: [a, b], transform: length}", 2, ["several columns"]),
        ("features:\n- {columns: [v1..v3]}", 2, ["several columns", "'type: real'"]),
        ("columns: [word, v1..w3, label]", 1, ["'columns' has the range 'v1..w3'", "the same word before the number"]),
        ("columns: [v9..v3, label]", 1, ["range 'v9..v3'", "from the smaller to the larger"]),
        ("columns: [v1..v99999999999, label]", 1, ["range 'v1..v99999999999'"]),
        ("columns: [v1..v3, v2, label]", 1, ["'v2' twice"]),
        ("features:\n- {column: a, type: conjunction}", 2, ["'conjunction'"]),
        ("features:\n- {column: a, type: categorical, scale: standard}", 2, ["takes no 'scale'"]),
        ("features:\n- {conjunction: [a, b], transform: lower}", 2, ["no 'transform'"]),
        ("features:\n- {conjunction: [a, b], length: 3}", 2, ["takes no 'length'"]),
        ("features:\n- {conjunction: [a, b], scale: none}", 2, ["takes no 'scale'"]),
        ("features:\n- {conjunction: [a, 'b[101]']}", 2, ["further than 100"]),
        ("features:\n- {type: attributes, column: a}", 2, ["no 'column'"]),
        ("features:\n- {type: attributes, transform: lower}", 2, ["no 'transform'"]),
        ("features:\n- {type: attributes, window: [-1]}", 2, ["no 'window'"]),
        ("features:\n- {type: attributes}\n- {type: attributes, name: b}", 1, ["more than one"]),
        ("features:\n- {column: a, min_count: 0}", 2, ["'min_count' must be at least 1"]),
        ("min_count: 1.5", 1, ["whole number"]),
        ("min_count: true", 1, ["must be a number, not True"]),
        ("window: []", 1, ["'window' must be a list of offsets"]),
        ("window: [0, 0]", 1, ["an offset twice"]),
        ("window: [0.5]", 1, ["whole number"]),
        ("window: [101]", 1, ["from -100 to 100"]),
        ("window: 2..-2", 1, ["from the smaller to the larger"]),
        ("window: a..b", 1, ["must be like -2..2"]),
        ("window: 1..", 1, ["must be like -2..2"]),
        ("window: -1000000000000..1000000000000", 1, ["from -100 to 100"]),  # and no list of them is made
        ("window: {a: 1}", 1, ["'window' must be a list of offsets"]),
        ("terms: []", 1, ["no node term"]),
        ("terms:\n- {type: edge}", 1, ["no node term"]),
        ("terms:\n- {}\n- {type: edge}\n- {type: edge, name: b}", 1, ["more than one edge"]),
        ("terms:\n- {}\n- {}", 1, ["two terms are called 'node'"]),
        ("terms:\n- {}\n- {type: edge, kernel: rbf}", 3, ["takes no 'kernel'"]),
        ("terms:\n- {type: nodes}", 2, ["did you mean 'node'?"]),
        ("terms:\n- {sigma2: 0}", 2, ["greater than 0"]),
        ("terms:\n- {kernel: {type: poly, degree: 0}}", 2, ["'degree' must be from 1 to 10, not 0"]),
        ("terms:\n- {kernel: {type: poly, degree: 11}}", 2, ["from 1 to 10, not 11"]),
        ("terms:\n- {kernel: {type: poly, degree: 2.5}}", 2, ["whole number"]),
        ("terms:\n- {kernel: {type: poly, coef0: -1}}", 2, ["at least 0"]),
        ("terms:\n- {kernel: {type: rbf, gamma: 0}}", 2, ["greater than 0"]),
        ("terms:\n- {kernel: {type: rbf, gamma: .nan}}", 2, ["finite"]),
        ("terms:\n- {kernel: {type: rbf, degree: 2}}", 2, ["'degree' does not belong to the kernel 'rbf'"]),
        ("terms:\n- {kernel: {gamma: 2}}", 2, ["does not belong to the kernel 'linear'"]),
        ("terms:\n- {kernel: [poly]}", 2, ["must be a mapping", "not a list"]),
        ("terms:\n- {map: {type: full, size: 3}}", 2, ["'size' does not belong"]),
        ("terms:\n- {map: explicit, kernel: rbf}", 2, ["explicit"]),
        ("training: fast", 1, ["training must be a mapping", "'fast'"]),
        ("training: {sigma2: x}", 1, ["must be a number, not 'x'"]),
        ("training: {sigma2: .inf}", 1, ["finite"]),
        ("training: {seed: -1}", 1, ["at least 0"]),
        (f"training: {{seed: 1{'0' * 400}}}", 1, ["too large"]),
        ("training: {solver: [lbfgs]}", 1, ["must be one of"]),
    ],
)
def test_mistakes_are_named_with_their_line(text, line, parts):
    message = error_of(text)
    assert message.startswith(f"conf.yaml:{line}: "), message
    for part in parts:
        assert part in message
    # An option elsewhere does not make the line forgotten.
    assert error_of(text, **{"training.precision": "single"} if "training" not in text else {"min_count": 1}) == message


@pytest.mark.parametrize(
    "text",
    [
        "- a",
        "just words",
        "3",
        "a: !!python/object/apply:os.system [ls]",
        "a: &x {b: *x}",
        "a: *nowhere",
        "a: !!int ''",
        "a: !!bool maybe",
        "a: !!timestamp soon",
        "a: 2001-99-99",
        "a: \x01",
        "a: 1\n---\nb: 2",
        "[" * 1500,
        "a: {<<: {b: 1}}",
        "\ta: 1",
    ],
)
def test_what_is_no_configuration(text):
    assert error_of(text).startswith("conf.yaml:")


# Options laid over it


def over(text, **options):
    return parse_config(with_options(load_yaml(text, "conf.yaml"), options), "conf.yaml")


def test_options_without_a_file():
    config = over("", kernel="poly", degree=3, gamma=0.5, coef0=0.0, map="reduced", size=7, select="greedy")
    (term,) = config.mapped_terms
    assert term.kernel == KernelConfig("poly", {"degree": 3, "gamma": 0.5, "coef0": 0.0}) and term.map == MapConfig(
        "reduced", 7, "greedy"
    )
    assert [term.type for term in config.label_terms] == ["edge"]
    config = over("", sigma2=2, solver="lbfgs", tolerance=0.1, max_passes=5, seed=3, precision="double", window=[1])
    training = config.training
    assert (training.sigma2, training.solver, training.tolerance) == (2, "lbfgs", 0.1)
    assert (training.max_passes, training.seed, training.precision) == (5, 3, "double")
    assert config.window == (1,)


def test_options_win_and_the_rest_stays():
    text = "window: -1..1\nterms: [{name: lexical, kernel: {type: poly, degree: 3}}]\ntraining: {sigma2: 5, seed: 3}"
    config = over(text, window=[0], degree=4, sigma2="auto")
    assert config.window == (0,)
    assert config.terms == (TermConfig("lexical", kernel=KernelConfig("poly", {"degree": 4})),)
    assert (config.training.sigma2, config.training.seed) == (None, 3)


def test_options_leave_their_base_alone():
    raw = load_yaml(FULL, "conf.yaml")
    before = json.dumps(raw)
    with_options(raw, {"terms.lexical.kernel.degree": 5, "columns": ["a", "label"], "seed": 9})
    assert json.dumps(raw) == before


@pytest.mark.parametrize(
    "text", ["terms: [{kernel: poly}]", "terms: [{kernel: }]", "terms: [{}]", "terms:", "training:"]
)
def test_sections_may_be_short_or_empty(text):
    config = over(text, kernel="poly", degree=3, sigma2=2, size=5)
    assert config.mapped_terms[0].kernel == KernelConfig("poly", {"degree": 3})
    assert config.mapped_terms[0].map.size == 5 and config.training.sigma2 == 2


def test_another_kernel_starts_from_its_own_defaults():
    poly = "terms: [{kernel: {type: poly, degree: 3, gamma: 0.1}}]"
    assert over(poly, kernel="rbf").mapped_terms[0].kernel == KernelConfig("rbf")
    assert over(poly, kernel="poly").mapped_terms[0].kernel == KernelConfig("poly", {"degree": 3, "gamma": 0.1})
    stored = parse_config({"terms": [{"kernel": "poly"}]}).to_dict()  # writes out a degree that nobody typed
    assert parse_config(with_options(stored, {"kernel": "linear"})).mapped_terms[0].kernel == KernelConfig()
    # Contradictory options stay an error, in whichever order they come.
    assert "'degree' does not belong" in error_of(poly, kernel="rbf", degree=2)
    assert "'degree' does not belong" in error_of(poly, degree=2, kernel="rbf")


@pytest.mark.parametrize("scale", ["standard", "sequence", "group", "none"])
def test_any_scale_takes_the_place_of_that_by_groups(scale):
    """A grid over scales begins with a file that names the column of groups, which one scale needs."""
    text = "features: [{column: x, type: real, scale: group, group: subject}]"
    (feature,) = over(text, **{"features.0.scale": scale}).features
    assert (feature.scale, feature.group) == (scale, "subject" if scale == "group" else None)


def test_a_group_beside_another_scale_stays_an_error():
    text = "features: [{column: x, type: real}]"
    both = {"features.0.group": "subject", "features.0.scale": "standard"}
    assert "goes with a 'group'" in error_of(text, **both)
    assert "goes with a 'group'" in error_of(text, **dict(reversed(both.items())))


@pytest.mark.parametrize("first", ["terms.node.kernel", "terms.node.kernel.degree"])
def test_order_of_options_does_not_matter(first):
    values = {"terms.node.kernel": "poly", "terms.node.kernel.degree": 5}
    assert over("", **{first: values.pop(first)}, **values).mapped_terms[0].kernel == KernelConfig(
        "poly", {"degree": 5}
    )


TWO = "terms: [{name: lexical, features: a*}, {name: acoustic, features: b*}, {type: edge}]"


@pytest.mark.parametrize(
    "terms",
    [TWO, TWO.replace("lexical", "edge-like")],
)
@pytest.mark.parametrize("option", [name for name, path in option_paths().items() if path.startswith("terms.")])
def test_options_for_one_of_several_terms_are_refused(terms, option):
    message = error_of(terms, **{option: 1})
    assert "there are 2 node terms" in message and "acoustic" in message and "terms." in message


MIXED = """
terms:
- {name: all}
- {name: pairs, features: a*, window: -1..1, kernel: poly}
- {name: sound, features: b*, kernel: {type: image, shape: 4x4}, map: full}
- {type: edge}
"""


@pytest.mark.parametrize(
    "option, value, found",
    [
        ("size", 300, lambda term: term.map.size),
        ("select", "greedy", lambda term: term.map.select),
        ("residual", 0.1, lambda term: term.map.residual),
        ("cut_off", 2, lambda term: term.map.cut_off),
        ("degree", 3, lambda term: term.kernel.degree),
    ],
)
def test_options_go_to_the_term_called_node(option, value, found):
    mixed = MIXED.replace("pairs", "node")
    config = over(mixed, **{option: value})
    assert found(config.terms[1]) == value
    assert [other for n, other in enumerate(config.terms) if n != 1] == [
        other for n, other in enumerate(over(mixed).terms) if n != 1
    ]


def test_options_without_a_term_called_node_are_refused():
    message = error_of(MIXED, gamma=0.1)
    assert "there are 3 node terms" in message and "terms.sound.kernel..." in message


def test_settings_of_any_path():
    found = parse_settings(["terms.pairs.window=-3..0", "training.sigma2=1e-1", "terms.0.features=[a, b]"])
    config = over(MIXED, **found)
    assert config.terms[1].window == (-3, -2, -1, 0) and config.training.sigma2 == 0.1
    assert config.terms[0].features == ("a", "b")
    assert parse_config(config.to_dict()) == config


@pytest.mark.parametrize("entry", ["training.sigma2", "=3", "training..sigma2=3", " =3", ".=1"])
def test_settings_that_are_none(entry):
    with pytest.raises(ConfigError, match="a setting is PATH=VALUE"):
        parse_settings([entry])


def test_a_path_is_set_once():
    with pytest.raises(ConfigError, match="set twice"):
        parse_settings(["training.seed=1", "training.seed=2"])


def test_edge_terms_have_no_window():
    assert "takes no 'window'" in error_of("terms: [{}, {type: edge, window: -1..1}]")


def test_dotted_paths():
    config = over(TWO, **{"terms.acoustic.kernel.type": "poly", "terms.0.kernel": "rbf", "terms.edge.sigma2": 3})
    assert config.mapped_terms[0].kernel == KernelConfig("rbf")
    assert config.mapped_terms[1].kernel == KernelConfig("poly")
    assert config.label_terms[0].sigma2 == 3  # by its default name
    assert over(TWO, **{"training.sigma2": 3}).training.sigma2 == 3
    one = over("terms: [{name: lexical}]", **{"terms.node.sigma2": 3})
    assert one.mapped_terms[0].sigma2 == 3  # `node` is the only one, whatever its name


def test_dotted_paths_enter_features_by_name_and_number():
    paths = {"features.word.window": [7], "features.word.suffix3.length": 4, "features.3.scale": "none"}
    features = over(FULL, **paths).features
    assert features[0].window == (7,) and features[1].length == 4 and features[3].scale == "none"


@pytest.mark.parametrize(
    "path, parts",
    [
        ("terms.acustic.sigma2", ["no entry is called 'acustic'", "did you mean 'acoustic'?"]),
        ("terms.9.sigma2", ["only 3 entries"]),
        ("terms.².sigma2", ["no entry is called"]),
        ("terms.0", ["does not name a value"]),
        ("terms.node.sigma2", ["there are 2 node terms"]),
        ("terms.0.name.x", ["does not name a value"]),
        ("terms.0.name.x.y", ["nothing below 'terms.0.name'"]),
        ("nothing.like.it", ["unknown key 'nothing'"]),
        ("degre", ["unknown key 'degre'"]),
        ("", ["unknown key ''"]),
    ],
)
def test_paths_to_nowhere(path, parts):
    message = error_of(TWO, **{path: 1})
    for part in parts:
        assert part in message


def test_bad_values_of_options_are_not_blamed_on_the_line_they_replace():
    text = "terms:\n- kernel:\n    type: poly\n    degree: 2"
    message = error_of(text, degree=99)
    assert "from 1 to 10, not 99" in message and "conf.yaml:4" not in message


def test_shared_values_change_alone():
    kernel = {"type": "poly"}
    raw = {"terms": [{"name": "a", "kernel": kernel}, {"name": "b", "kernel": kernel}]}
    config = parse_config(with_options(raw, {"terms.b.kernel.degree": 3}))
    assert [term.kernel.degree for term in config.terms] == [2, 3]


def test_set_path_into_nothing():
    raw = {}
    set_path(raw, "training.seed", 5)
    assert raw == {"training": {"seed": 5}}


# Globs of terms


def test_globs_of_terms():
    names = ["word", "word.shape", "pos", "word[-1]/pos", "Word"]
    assert matching_features(("word*",), names, "t") == ["word", "word.shape", "word[-1]/pos"]
    assert matching_features(("pos", "word"), names, "t") == ["word", "pos"]
    assert matching_features(("*",), names, "t") == names
    assert matching_features(("word[-1]/pos",), names, "t") == ["word[-1]/pos"]  # a name comes before a glob
    with pytest.raises(ConfigError, match=r"term 't': no feature is called 'wrd' \(did you mean 'word'\?\)"):
        matching_features(("pos", "wrd"), names, "t")

    # As a glob, a name with brackets is the name of others.
    assert matching_features(("v[12]",), ["v1", "v2", "v[12]"], "t") == ["v[12]"]


@pytest.mark.parametrize(
    ("text", "part"),
    [("a", ("a", 0)), ("a[-1]", ("a", -1)), ("a [m/s]", ("a [m/s]", 0)), ("a [m/s][2]", ("a [m/s]", 2)),
     ("a[1][0]", ("a[1]", 0)), ("a[1][-1]", ("a[1]", -1))],
)  # fmt: skip
def test_parts_of_conjunctions_may_have_brackets_in_their_names(text, part):
    feature = parse_config({"features": [{"conjunction": ["word", text]}]}).features[0]
    assert feature.parts[1] == part
    assert feature_dict(feature)["conjunction"][1] == text


def test_an_indicator_is_no_mark_of_missing_values():
    with pytest.raises(ConfigError, match="missing_indicator"):
        parse_config({"missing": "indicator"}, "options")
