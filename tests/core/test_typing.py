"""Types that clients see: stubs agree with what packages and Cython modules hold, and mypy finds errors by them."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from imports import Sources

ROOT = Path(__file__).resolve().parents[2]
SOURCES = Sources.under(ROOT / "src", "kcrf_core")
PACKAGES = [source for source in SOURCES.files if source.offered]
CYTHON = [source for source in SOURCES.files if source.path.suffix == ".pyx"]

# Lines with a wrong keyword, a wrong method and so on end with the code of mypy's finding.
CLIENT = """
from pathlib import Path

import numpy as np

import kcrf_core
from kcrf_core import CRF, ConfigError, Corpus, KernelCRF, Model, Workers, metrics, parse_config, read_corpus, train
from kcrf_core.kernels import KERNELS, RBFKernel
from kcrf_core.scoring import METRICS


def of_arrays(folder: Path) -> float:
    X = [np.zeros((3, 2)), np.ones((2, 2))]
    y = [["a", "b", "a"], ["b", "b"]]
    crf = KernelCRF(kernel="rbf", sigma2=1.0, window=[-1, 0, 1], random_state=0).fit(X, y, sample_weight=[1, 2])
    crf.save(folder / "model.npz")
    loaded = KernelCRF.load(folder / "model.npz")
    shapes: list[tuple[int, ...]] = [marginals.shape for marginals in loaded.predict_proba(X)]
    best = crf.predict_nbest(X, n=2)[0][0].probability
    return best + crf.certificate_.gap + crf.score(X, y) + len(shapes)


def item(word: str) -> dict[str, object]:
    return {"word": word, "upper": word.isupper(), "emb": np.zeros(3)}


def of_items() -> list[str]:
    X = [[item("the"), item("cat")], [item("cats")]]
    crf = CRF(algorithm="lbfgs", c2=0.1).fit(X, [[1, 2], [2]])
    print(metrics.flat_accuracy_score([[1, 2], [2]], crf.predict(X)), crf.explain(X)[0][0].contributions[0].value)
    return [f"{kcrf_core.__version__} {METRICS[0]} {KERNELS['rbf'] is RBFKernel}", *crf.attributes_]


def of_files(path: Path) -> tuple[Model, float]:
    corpus: Corpus = read_corpus(path)
    try:
        config = parse_config({"training": {"sigma2": 1.0}})
    except ConfigError as error:
        raise SystemExit(f"{error} {error.settings}") from error
    encoding, dataset = kcrf_core.fit_encoding(config, corpus)
    with Workers(2) as workers:
        model, report = train(encoding, dataset, config, workers=workers)
    print(KernelCRF(kernl="rbf"))  # call-arg
    print(KernelCRF().fitt(1))  # attr-defined
    print(KernelCRF(degree="two"))  # arg-type
    print(KernelCRF().fit(1, [["a"]]))  # arg-type
    print(corpus.position, kcrf_core.Modle)  # attr-defined
    return model, report.result.gap
"""


@pytest.mark.slow
def test_a_type_checker_sees_errors_of_clients_and_no_others(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed: pip install mypy")
    (tmp_path / "client.py").write_text(CLIENT)
    # Findings in kcrf itself are not those of its clients.
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent", "client.py"]
    environment = {"MYPYPATH": str(ROOT / "src"), "MYPY_CACHE_DIR": str(ROOT / "build" / "mypy"), "PATH": ""}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    found = {(int(line), code) for line, code in re.findall(r"^client.py:(\d+): error: .*\[(.+)\]$", done.stdout, re.M)}
    lines = enumerate(CLIENT.splitlines(), 1)
    assert found == {(number, line.split("  # ")[1]) for number, line in lines if "  # " in line}, done.stdout


def declared(tree: ast.Module) -> set[str]:
    names = {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    return names | {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


@pytest.mark.parametrize("source", PACKAGES, ids=lambda source: source.module)
def test_packages_offer_the_names_that_type_checkers_see(source):
    if source.stub is None:
        assert import_module(source.module).__all__ == sorted(source.offered)
        assert all(hasattr(import_module(source.module), name) for name in source.offered)
        return
    tree = source.stub
    own = [alias for node in tree.body if isinstance(node, ast.ImportFrom) and node.level == 1 for alias in node.names]
    listed = {alias.name for alias in own}
    assert listed == {alias.asname for alias in own}  # for type checkers, `X as X` in a stub is a public name
    offered = import_module(source.module).__all__
    assert sorted(listed | ({*offered} & declared(tree))) == offered
    constants = {name for name in source.defined if name.isupper()}
    assert constants <= declared(tree)
    assert all(hasattr(import_module(source.module), name) for name in {*listed, *declared(tree)})


def check_parameters(function: Callable[..., object], node: ast.FunctionDef) -> None:
    """Compare names, defaults and kinds of parameters with those of the stub."""
    expected = inspect.signature(eval(compile(ast.Expression(as_lambda(node)), "stub", "eval")))
    found = inspect.signature(function)
    shown = [
        [(each.name, each.kind, each.default is each.empty) for each in one.parameters.values()]
        for one in (expected, found)
    ]
    assert shown[0] == shown[1], f"{node.name}{found}"


def as_lambda(node: ast.FunctionDef) -> ast.expr:
    for each in ast.walk(node.args):
        if isinstance(each, ast.arg):
            each.annotation = None
    return ast.fix_missing_locations(ast.copy_location(ast.Lambda(node.args, ast.Constant(None)), node))


@pytest.mark.parametrize("source", CYTHON, ids=lambda source: source.module)
def test_stubs_of_cython_modules_have_their_names_and_parameters(source):
    module, tree = import_module(source.module), source.stub
    for node in tree.body:
        if isinstance(node, ast.AnnAssign):
            assert hasattr(module, node.target.id)
        elif isinstance(node, ast.FunctionDef):
            check_parameters(getattr(module, node.name), node)
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    member = getattr(getattr(module, node.name), inner.name)
                    if callable(member) and not inner.name.startswith("__"):  # others have no signature in C
                        check_parameters(member, inner)
    functions = {name for name, value in vars(module).items() if type(value).__name__ == "cython_function_or_method"}
    assert {name for name in functions if not name.startswith("_")} <= declared(tree)
