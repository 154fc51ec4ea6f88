"""What a user can add without touching the program: a kernel, a solver and a file format, each in a module of its own.

Each is written to a file and loaded, trained and tagged with by the command line and by the library, and taken away
again; then its models are refused with one clear line. `tests/cli/test_plugin_option.py` has the option and workers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from console import steps
from kcrf_cli.main import main
from kcrf_core import KernelCRF, Model, fit_encoding, load_plugin, parse_config, read_corpus, train
from kcrf_core.corpora import FORMATS
from kcrf_core.errors import ConfigError, FileFormatError
from kcrf_core.kernels import KERNELS, fit_kernel, gram, kernel_from_dict, kernel_settings
from kcrf_core.objective.solvers import CERTIFIED, SOLVERS
from kcrf_core.scoring import SCHEMES
from kcrf_core.system import PLUGINS, Registry, Workers
from problems import random_inputs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "architecture.md"
# Whole plug-ins: a kernel and a solver of the page, and a format.
EXAMPLES = {name: text for kind, name, text in steps(PAGE) if kind == "file"}
KERNEL = EXAMPLES["cauchy.py"]
# 0.5 - gamma |x - x'|^2, which is not positive semidefinite.
SIGNLESS = (
    KERNEL.replace("+= 1\n", "-= 0.5\n").replace("**= -self.power", "*= -1").replace("np.ones(", "0.5 * np.ones(")
)
FORMAT = '''
"""Text with tags: a sentence in each line, as `the/D cat/N`; words alone where there are no tags."""

import numpy as np

from kcrf_core.corpora import FORMATS, Corpus, Format, ParsedBlock, encode_lines
from kcrf_core.errors import DataError


def parse_block(block, name, columns, layout, known):
    words, tags, lines, offsets = [], [], [], [0]
    for number, line in enumerate(block.content(), start=block.first_line):
        for token in line.split():
            word, slash, tag = token.rpartition("/")
            words.append(word if slash else token)
            tags.append(tag if slash else None)
            lines.append(number)
        if len(words) > offsets[-1]:
            offsets.append(len(words))
    values = (words,) if set(tags) == {None} else (words, tags)
    if len(values) == 2 and None in tags:
        raise DataError("a word without a tag among others with tags", name, lines[tags.index(None)])
    return ParsedBlock(block, Corpus(name, values, np.array(offsets), np.array(lines)), " ")


def put_labels(parsed, labels, numbers):
    lines, words = list(parsed.block.lines), iter(zip(parsed.corpus.columns[0], numbers))
    for at, line in enumerate(lines):
        tokens = line.split()
        if tokens:
            lines[at] = " ".join(f"{word}/{labels[number]}" for _, (word, number) in zip(tokens, words))
    return encode_lines(lines, parsed.block.ends_with_newline)


FORMATS.register(
    "slashed",
    Format("slashed", "text with slashes", parse_block, (".slashed",), sequence_per_line=True, put_labels=put_labels),
)
'''


class LoadedPlugin:
    """A file that registers something, loaded, and the way to undo it."""

    def __init__(self, folder, file, text, registry, name):
        self.path, self.registry, self.name = folder / file, registry, name
        self.path.write_text(text)
        self.module = load_plugin(self.path).module

    def unload(self):
        for plugin in [*PLUGINS.values()]:
            plugin.unload()
        assert self.name not in self.registry and self.module not in sys.modules


@pytest.fixture
def plugin(request, tmp_path_factory):
    """The plug-in that a test asks for, loaded, and taken away at the end."""
    made = LoadedPlugin(tmp_path_factory.mktemp("plugins"), *request.param)
    yield made
    made.unload()


def using(text, registry, name):
    return pytest.mark.parametrize("plugin", [(f"{name}.py", text, registry, name)], indirect=True, ids=[name])


kernel_plugin = using(KERNEL, KERNELS, "cauchy")
solver_plugin = using(EXAMPLES["steepest.py"], SOLVERS, "steepest")
format_plugin = using(FORMAT, FORMATS, "slashed")


@pytest.fixture
def accent(sample_data, tmp_path):
    """A small file of columns."""
    path = tmp_path / "accent.conll"
    path.write_text("\n\n".join((sample_data / "pitch_accent.conll").read_text().split("\n\n")[:60]) + "\n")
    return path


def kcrf(*arguments, stdin=b"", code=0):
    """A command, in this process, where the plug-in is; its output."""
    done = CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)
    assert done.exit_code == code, (done.output, done.exception)
    return done


def elsewhere(plugin, *arguments):
    """The same in another process, which could find the plug-in but has not imported it."""
    paths = [str(plugin.path.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, "-m", "kcrf_cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )


def check_refused(plugin, model, data):
    """Without the plug-in: exit 4 and one line, in this process and in another one; and nothing is imported for it."""
    line = f"the {plugin.registry.what} '{plugin.name}' is not registered here: load its plug-in, '{plugin.path.name}'"
    line += " (--plugin)"
    plugin.unload()
    done = kcrf("tag", "-m", model, data, code=4)
    assert done.stderr == f"kcrf: {model}: {line}\n"
    done = elsewhere(plugin, "tag", "-m", model, data)
    assert (done.returncode, done.stderr) == (4, f"kcrf: {model}: {line}\n")
    with pytest.raises(FileFormatError, match="is not registered here"):
        Model.load(model)
    assert plugin.module not in sys.modules


# ----------------------------------------------------------------------------- a kernel


CAUCHY = {"type": "cauchy", "gamma": 0.5, "power": 2.0}


@pytest.mark.slow
@kernel_plugin
def test_a_kernel_by_the_command_line(plugin, accent, tmp_path):
    model = tmp_path / "model.npz"
    options = ("--kernel", "cauchy", "--power", "0.5", "--size", "60", "--sigma2", "1", "--plain", "-q")
    kcrf("train", accent, *options, "-o", model)
    tagged = kcrf("tag", "-m", model, accent).stdout.splitlines()
    rows = [line.split("\t") for line in tagged if line]
    gold = [row[-2] for row in rows]
    assert sum(row[-1] == row[-2] for row in rows) > 1.1 * max(map(gold.count, gold))
    shown = json.loads(kcrf("inspect", model, "--json").stdout)
    assert shown["terms"][0]["kernel"]["type"] == "cauchy" and shown["terms"][0]["kernel"]["power"] == 0.5

    basis = tmp_path / "basis.npz"
    kcrf("select-basis", accent, "--kernel", "cauchy", "--power", "0.5", "--size", "60", "--plain", "-q", "-o", basis)
    again = tmp_path / "again.npz"
    kcrf("train", accent, "--basis", basis, "--sigma2", "1", "-q", "-o", again)
    assert kcrf("tag", "-m", again, accent).stdout.splitlines() == tagged
    grid = ("--grid", "power=0.5,1", "--kernel", "cauchy", "--size", "20", "--sigma2", "1", "--folds", "2")
    found = json.loads(kcrf("crossval", accent, *grid, "-q", "-o", "-").stdout)
    assert [setting["setting"] for setting in found["settings"]] == [{"power": 0.5}, {"power": 1}]

    check_refused(plugin, model, accent)


@using(SIGNLESS, KERNELS, "cauchy")
@pytest.mark.parametrize("options", [("--size", "50"), ("--map", "full"), ("--size", "50", "--select", "gradient")])
def test_a_kernel_that_is_not_positive_semidefinite_is_told(plugin, accent, tmp_path, options):
    done = kcrf(
        "train",
        accent,
        "--kernel",
        "cauchy",
        *options,
        "--sigma2",
        "1",
        "--plain",
        "-o",
        tmp_path / "m.npz",
    )
    said = "warning: term node: the cauchy kernel is not positive semidefinite: its factorisation found a negative "
    assert said in done.stderr


@kernel_plugin
def test_settings_of_a_kernel_are_options_and_keys(plugin, accent, tmp_path):
    text = kcrf("train", "--help-all").stdout
    assert "image|cauchy]" in text and "Power of cauchy. Default: 1." in text and "[0<x<=10]" in text
    assert "--power" in kcrf("train", accent, "--kernel", "cauchy", "--power", "11", "--dump-config", code=2).stderr
    line = kcrf("train", accent, "--kernel", "rbf", "--power", "2", "--dump-config", code=2).stderr
    assert "'power' does not belong to the kernel 'rbf'" in line

    dumped = kcrf("train", accent, "--kernel", "cauchy", "--power", "3", "--dump-config").stdout
    assert yaml.safe_load(dumped)["terms"][0]["kernel"] == {"type": "cauchy", "power": 3.0}
    (tmp_path / "config.yaml").write_text(dumped)
    assert kcrf("train", accent, "-c", tmp_path / "config.yaml", "--dump-config").stdout == dumped

    for wrong, said in (
        ({"type": "cauchi"}, "did you mean 'cauchy'?"),
        ({"type": "cauchy", "power": 0}, "'power' must be greater than 0, not 0"),
        ({"type": "cauchy", "powr": 1}, "unknown key 'powr' (did you mean 'power'?)"),
        ({"type": "cauchy", "degree": 2}, "'degree' does not belong to the kernel 'cauchy'"),
    ):
        with pytest.raises(ConfigError) as error:
            parse_config({"terms": [{"kernel": wrong}]})
        assert said in str(error.value)
    plugin.unload()
    assert "power" not in kernel_settings() and "--power" not in kcrf("train", "--help-all").stdout


@kernel_plugin
def test_a_kernel_in_the_library(plugin, rng, accent, tmp_path):
    config = parse_config({"terms": [{"kernel": CAUCHY, "map": {"size": 40}}, {"type": "edge"}]})
    assert parse_config(config.to_dict()) == config and config.terms[0].kernel.power == 2.0
    encoding, dataset = fit_encoding(config, read_corpus(accent))
    with Workers(1) as workers:
        model, _ = train(encoding, dataset, config, workers=workers)
        before = model.tag(dataset, workers)
        model.save(tmp_path / "model.npz")
        np.testing.assert_array_equal(Model.load(tmp_path / "model.npz").tag(dataset, workers), before)

    inputs = random_inputs(rng, 30, 0, 3)
    kernel = fit_kernel(config.terms[0].kernel, inputs, 0)
    assert kernel_from_dict(json.loads(json.dumps(kernel.to_dict())), inputs) == kernel
    distances = ((inputs.real[:, None] - inputs.real[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(gram(kernel, inputs, inputs), (1 + 0.5 * distances) ** -2, rtol=1e-9)
    for values in ({**CAUCHY, "power": 11.0}, {**CAUCHY, "power": "2"}, {"type": "cauchy", "power": 1.0}):
        with pytest.raises(ValueError):
            kernel_from_dict(values, inputs)

    X = [inputs.real[:15], inputs.real[15:]]
    y = [["a", "b", "c"] * 5] * 2
    estimator = KernelCRF(kernel="cauchy", sigma2=1.0, size=20).fit(X, y)
    wide = KernelCRF(kernel={"type": "cauchy", "power": 3.0}, sigma2=1.0, size=20).fit(X, y)
    wide.save(tmp_path / "wide.npz")
    assert KernelCRF.load(tmp_path / "wide.npz").fit(X, y).model_.terms[0].kernel.power == 3.0
    with pytest.raises(ConfigError, match="unknown key 'powr'"):
        KernelCRF(kernel={"type": "cauchy", "powr": 3.0}).fit(X, y)
    assert estimator.predict(X)[0] and estimator.model_.terms[0].kernel.type == "cauchy"
    plugin.unload()
    with pytest.raises(ConfigError, match="there are linear, poly, rbf and image"):
        KernelCRF(kernel="cauchy").fit(X, y)


@kernel_plugin
def test_a_kernel_as_a_part_of_others(plugin, accent, tmp_path):
    part = {"type": "cauchy", "power": 0.5, "features": ["c2", "c3"]}
    kernel = {"type": "sum", "cosine": True, "parts": [part, {"type": "poly", "features": ["c0"]}]}
    (tmp_path / "config.yaml").write_text(
        yaml.safe_dump({"terms": [{"kernel": kernel, "map": {"size": 50}}, {"type": "edge"}]})
    )
    model = tmp_path / "model.npz"
    kcrf("train", accent, "-c", tmp_path / "config.yaml", "--sigma2", "1", "-q", "-o", model)
    kcrf("tag", "-m", model, accent)
    check_refused(plugin, model, accent)


@kernel_plugin
def test_a_kernel_on_a_device(plugin, accent, tmp_path):
    """Kernel values are computed there, and labels are those of threads."""
    options = ("--kernel", "cauchy", "--size", "60", "--sigma2", "1", "--tolerance", "1e-6", "--plain")
    tagged = []
    for engine in ((), ("--engine", "numpy")):
        model = tmp_path / f"{len(engine)}.npz"
        done = kcrf("train", accent, *options, *engine, "-o", model)
        assert "threads do" not in done.stderr
        tagged.append(kcrf("tag", "-m", model, accent, *engine).stdout)
    assert tagged[0] == tagged[1]


OLDER = KERNEL.replace("cauchy", "older").replace(
    KERNEL[KERNEL.index("    def coefficients") : KERNEL.index("    def diagonal")],
    """
    def apply(self, block, row_norms, pivot_norms):
        distances = row_norms[:, None] + pivot_norms - 2 * block
        block[:] = (1 + self.gamma * np.maximum(distances, 0)) ** -self.power

""",
)


@using(OLDER, KERNELS, "older")
def test_a_kernel_for_the_cpu_alone(plugin, rng, accent, tmp_path):
    """One that turns inner products into values itself; beside a device, threads do that."""
    inputs = random_inputs(rng, 30, 0, 3)
    kernel = KERNELS["older"](0.5, 2.0)
    distances = ((inputs.real[:, None] - inputs.real[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(gram(kernel, inputs, inputs), (1 + 0.5 * distances) ** -2, rtol=1e-9)
    options = ("--kernel", "older", "--size", "20", "--sigma2", "1", "--engine", "numpy", "-o", tmp_path / "m.npz")
    assert "certified" in kcrf("train", accent, *options).stderr


# ----------------------------------------------------------------------------- a solver


@solver_plugin
def test_a_solver(plugin, accent, tmp_path):
    assert "|steepest]" in kcrf("train", "--help-all").stdout
    model, options = tmp_path / "model.npz", ("--sigma2", "0.3", "--tolerance", "0.02", "--plain", "-q")
    done = kcrf("train", accent, "--solver", "steepest", *options, "--json", "-o", model)
    found = json.loads(done.stdout)
    assert found["stop"] == CERTIFIED and found["certified_gap"] <= 0.02
    usual = json.loads(kcrf("train", accent, *options, "--json", "-o", tmp_path / "usual.npz").stdout)
    assert abs(found["objective"] - usual["objective"]) <= 0.04 * usual["objective"]

    config = parse_config({"training": {"solver": "steepest", "sigma2": 0.3, "tolerance": 0.02}})
    encoding, dataset = fit_encoding(config, read_corpus(accent))
    with Workers(1) as workers:
        _, report = train(encoding, dataset, config, workers=workers)
    np.testing.assert_allclose(report.result.value, found["objective"], rtol=1e-6)
    with pytest.raises(ConfigError, match="did you mean 'steepest'"):
        parse_config({"training": {"solver": "stepest"}})

    # Weights are weights: what found them is not needed to label with them.
    tagged = kcrf("tag", "-m", model, accent).stdout
    plugin.unload()
    assert kcrf("tag", "-m", model, accent).stdout == tagged
    done = elsewhere(plugin, "tag", "-m", model, accent)
    assert (done.returncode, done.stdout) == (0, tagged)
    assert "'steepest' is not one of" in kcrf("train", accent, "--solver", "steepest", "-o", model, code=2).stderr


# ----------------------------------------------------------------------------- a format


@pytest.fixture
def slashed(sample_data, tmp_path):
    """Sentences with tags, the same words without them, and the same in columns."""
    sequences = (sample_data / "pitch_accent.conll").read_text().split("\n\n")[:80]
    rows = [[line.split("\t") for line in sequence.split("\n") if line] for sequence in sequences]
    paths = [tmp_path / name for name in ("tagged.slashed", "plain.slashed", "columns.conll")]
    paths[0].write_text("".join(" ".join(f"{row[0]}/{row[-1]}" for row in part) + "\n" for part in rows))
    paths[1].write_text("".join(" ".join(row[0] for row in part) + "\n" for part in rows))
    paths[2].write_text("\n".join("".join(f"{row[0]}\t{row[-1]}\n" for row in part) for part in rows))
    return paths


@pytest.mark.slow
@format_plugin
def test_a_format_by_the_command_line(plugin, slashed, tmp_path):
    tagged, plain, columns = slashed
    model, other = tmp_path / "model.npz", tmp_path / "other.npz"
    kcrf("train", tagged, "--sigma2", "1", "-q", "-o", model)
    kcrf("train", columns, "--sigma2", "1", "-q", "-o", other)
    out = kcrf("tag", "-m", model, plain).stdout
    predicted = [token.rpartition("/")[2] for token in out.split()]
    assert predicted == [line.split("\t")[-1] for line in kcrf("tag", "-m", other, columns).stdout.split("\n") if line]
    assert [line.split() for line in plain.read_text().split("\n")] == [
        [token.rpartition("/")[0] for token in line.split()] for line in out.split("\n")
    ]
    assert kcrf("tag", "-m", model, tagged).stdout == out  # tags that are there give way
    assert kcrf("tag", "-m", model, stdin=plain.read_bytes()).stdout == out
    assert kcrf("tag", "-m", model, plain, "--decode", "posterior").stdout.count("/") == len(predicted)
    objects = kcrf("tag", "-m", model, plain, "--json-lines").stdout.splitlines()
    assert [label for line in objects for label in json.loads(line)["labels"]] == predicted
    line = kcrf("tag", "-m", model, plain, "--marginals", "best", code=2).stderr
    assert "text with slashes has no column for --marginals" in line

    (tmp_path / "found.slashed").write_text(out)
    scores = json.loads(kcrf("evaluate", "--gold", tagged, tmp_path / "found.slashed", "--json").stdout)
    assert scores["accuracy"] == json.loads(kcrf("evaluate", "-m", model, tagged, "--json").stdout)["accuracy"] > 0.7
    assert "text with slashes has one column" in kcrf("evaluate", tmp_path / "found.slashed", code=2).stderr

    check_refused(plugin, model, plain)


@format_plugin
def test_a_format_by_its_name(plugin, slashed, tmp_path):
    tagged = slashed[0].rename(tmp_path / "data.txt")
    assert "crfsuite|slashed]" in kcrf("train", "--help-all").stdout
    config = tmp_path / "config.yaml"
    config.write_text("columns: [word, accent]\nfeatures: [{column: word, transform: lower}]\n")
    options = ("--format", "slashed", "-c", config, "--sigma2", "1", "-q")
    kcrf("train", tagged, *options, "-o", tmp_path / "model.npz")
    assert Model.load(tmp_path / "model.npz").encoding.format == "slashed"
    out = kcrf("tag", "-m", tmp_path / "model.npz", tagged).stdout
    kcrf("featurize", tagged, "--format", "slashed", "-c", config, "-q", "-o", tmp_path / "data.npz")
    kcrf("train", tmp_path / "data.npz", "--sigma2", "1", "-q", "-o", tmp_path / "again.npz")
    assert kcrf("tag", "-m", tmp_path / "again.npz", tagged).stdout == out
    mixed = tmp_path / "mixed.slashed"
    mixed.write_text("the/0 cat/1\na dog/1\n")
    assert kcrf("train", mixed, "-o", tmp_path / "x.npz", code=3).stderr.startswith(f"kcrf: {mixed}:2: a word without")


@format_plugin
def test_a_format_in_the_library(plugin, slashed, tmp_path):
    tagged, plain, columns = slashed
    corpus, same = read_corpus(tagged), read_corpus(columns)
    assert corpus.format == "slashed" and corpus.sequences == same.sequences
    assert [list(column) for column in corpus.columns] == [list(column) for column in same.columns]
    assert corpus.subset([3, 1]).format == "slashed"
    config = parse_config({"training": {"sigma2": 1.0}})
    encoding, dataset = fit_encoding(config, corpus)
    with Workers(1) as workers:
        model, _ = train(encoding, dataset, config, workers=workers)
        model.save(tmp_path / "model.npz")
        again = Model.load(tmp_path / "model.npz")
        expected = model.tag(dataset, workers)
        np.testing.assert_array_equal(again.tag(again.encoding.encode(read_corpus(plain)), workers), expected)
    with pytest.raises(ConfigError, match="unknown format 'slash'"):
        read_corpus(tagged, "slash")


# ----------------------------------------------------------------------------- registries


@pytest.mark.parametrize("registry", [FORMATS, KERNELS, SCHEMES, SOLVERS], ids=lambda registry: registry.what)
def test_registries(registry):
    names = list(registry)
    assert len(registry) == len(names) and all(registry[name] is not None for name in names)
    registry.register("something-else", 1)
    try:
        assert list(registry) == [*names, "something-else"]
        with pytest.raises(ConfigError, match="already"):
            registry.register("something-else", None)
    finally:
        registry.unregister("something-else")
    assert list(registry) == names and registry.get("something-else") is None
    for name in (names[0], ""):
        with pytest.raises(ConfigError):
            registry.register(name, None)
    with pytest.raises(ConfigError, match="was registered"):
        registry.unregister(names[0])
    with pytest.raises(ConfigError, match=f"unknown {registry.what} '{names[0]}s' \\(did you mean '{names[0]}'"):
        _ = registry[f"{names[0]}s"]
    assert ["a list"] not in registry


def test_kernels_that_disagree_about_a_setting(monkeypatch):
    class Other(KERNELS["linear"]):
        type = "other"

        @classmethod
        def settings(cls):
            return {"degree": KERNELS["rbf"].settings()["gamma"]}

    registry = Registry("kernel")
    for name in ("linear", "poly"):
        registry.register(name, KERNELS[name])
    registry.register("other", Other)
    monkeypatch.setattr("kcrf_core.kernels.kernel.KERNELS", registry)
    with pytest.raises(ConfigError, match="the kernel 'other' declares 'degree', which means something else"):
        kernel_settings()
