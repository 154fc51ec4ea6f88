"""What `kcrf_core` promises: its names, an example for each that works, and the page that shows them."""

from __future__ import annotations

import doctest
import inspect
import json
import subprocess
import sys
import types
from importlib.util import find_spec
from pathlib import Path

import pytest

import kcrf_core

ROOT = Path(__file__).resolve().parents[2]
ERRORS = {"KcrfError", "ConfigError", "DataError", "FileFormatError", "Interrupted", "NumericError"}
WITH_EXAMPLES = sorted(set(kcrf_core.__all__) - ERRORS - {"__version__"})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A fresh one that has sample_data."""
    (tmp_path / "sample_data").symlink_to(ROOT / "sample_data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(text, name):
    test = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    assert test.examples, f"{name} has no example"
    said = []
    assert doctest.DocTestRunner().run(test, out=said.append).failed == 0, "".join(said)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples(folder, name):
    run(inspect.getdoc(getattr(kcrf_core, name)), name)


METHODS = ["fit", "predict", "predict_online", "predict_nbest", "explain", "novelty", "audit"]


@pytest.mark.parametrize("name", METHODS)
def test_examples_of_methods(folder, name):
    run(inspect.getdoc(getattr(kcrf_core.KernelCRF, name)), name)


def test_example_of_the_package(folder):
    run(kcrf_core.__doc__, "kcrf_core")


@pytest.mark.slow
def test_page(folder):
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    before, after = text.split("## With scikit-learn")
    within, after = after.split("## Files")
    first, frames = before.split("## From a DataFrame to labels")
    frames, rest = frames.split("## Coming from sklearn-crfsuite")
    frames = frames if find_spec("pandas") else ""
    within = within if find_spec("sklearn") and frames else ""  # it uses the table of the section on data frames
    run(first + frames + rest + within + after, "docs/python.md")


@pytest.mark.parametrize("name", ["vectors", "lookups"])
def test_pages_about_words(name, folder):
    run((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8"), f"docs/{name}.md")


def test_every_public_name_is_on_the_page():
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in kcrf_core.__all__ if name != "__version__")


def test_every_public_name_has_a_docstring():
    for name in kcrf_core.__all__:
        assert inspect.getdoc(getattr(kcrf_core, name)), name
    parameters = inspect.signature(kcrf_core.KernelCRF).parameters
    members = {key: value for key, value in vars(kcrf_core.KernelCRF).items() if key not in parameters}
    methods = [value for key, value in members.items() if key[0] != "_" and not key.isupper()]
    assert len(methods) > 20 and all(inspect.getdoc(method) for method in methods)


def test_names_are_listed_and_others_are_errors():
    assert set(kcrf_core.__all__) <= set(dir(kcrf_core))
    assert kcrf_core.CRF is kcrf_core.KernelCRF
    assert isinstance(kcrf_core.metrics, types.ModuleType)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = kcrf_core.nothing


def test_importing_the_package_costs_nothing():
    code = "import sys, kcrf_core; sys.exit(any(name in sys.modules for name in ('numpy', 'scipy', 'kcrf_core.model')))"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_the_script_of_the_experiment(folder):
    """As it was written for sklearn-crfsuite, but for its import lines."""
    script = ROOT / "experiments" / "sklearn" / "tutorial.py"
    if not script.exists():
        pytest.skip("no experiments here")
    blocks = (folder / "sample_data" / "pitch_accent.conll").read_text().strip().split("\n\n")
    for name, part in (("train", blocks[:100]), ("test", blocks[100:130])):
        (folder / f"{name}.conll").write_text("\n\n".join(part) + "\n")
    done = subprocess.run([sys.executable, script, "train.conll", "test.conll"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 0.5 < json.loads(done.stdout)["flat_f1"] < 1
    assert "weighted avg" in done.stderr
