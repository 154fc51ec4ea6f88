"""`--plugin`: commands, processes, workers of a cluster and estimators with a kernel of a file; models load no code."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from console import steps
from kcrf_core import KernelCRF, Model, load_plugin
from kcrf_core.errors import ConfigError, FileFormatError
from kcrf_core.files import read_container, write_container
from kcrf_core.kernels import KERNELS
from kcrf_core.objective.solvers import SOLVERS
from kcrf_core.system import PLUGINS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "architecture.md"
EXAMPLES = {name: text for kind, name, text in steps(PAGE) if kind == "file"}
KERNEL = ("--kernel", "cauchy", "--power", "0.5", "--size", "20", "--sigma2", "1", "--plain")


def unload_all():
    for plugin in [*PLUGINS.values()]:
        plugin.unload()
    assert "cauchy" not in KERNELS and "steepest" not in SOLVERS


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    unload_all()


@pytest.fixture
def run(kcrf):
    """`run("tag", ..., code=4)` is a command as in a process of its own: it has the plug-ins that it names alone."""

    def call(*arguments, code=0, stdin=b""):
        done = kcrf(*arguments, stdin=stdin)
        unload_all()
        assert done.code == code, done.err
        return done

    return call


@pytest.fixture
def cauchy(tmp_path):
    path = tmp_path / "plugins" / "cauchy.py"
    path.parent.mkdir()
    path.write_text(EXAMPLES["cauchy.py"])
    return path


@pytest.fixture
def data(first_accents):
    return first_accents(40)


@pytest.fixture
def model(run, cauchy, data, tmp_path):
    path = tmp_path / "model.npz"
    run("train", data, "--plugin", cauchy, *KERNEL, "-q", "-o", path)
    return path


# ----------------------------------------------------------------------------- commands


def test_commands_with_a_model(run, cauchy, data, model, first_accents, tmp_path):
    plugin = ("--plugin", cauchy)
    tagged = run("tag", "-m", model, data, *plugin).text
    assert tagged == run("tag", f"--plugin={cauchy}", "-m", model, stdin=data.read_bytes()).text
    labels = [line.split("\t")[-2:] for line in tagged.splitlines() if line]
    accuracy = sum(gold == found for gold, found in labels) / len(labels)
    found = json.loads(run("evaluate", "-m", model, data, *plugin, "--json").text)
    assert found["accuracy"] == pytest.approx(accuracy, rel=1e-12) and accuracy > 0.6
    shown = json.loads(run("inspect", model, *plugin, "--json").text)["terms"][0]["kernel"]
    digest = load_plugin(cauchy).digest
    assert shown["type"] == "cauchy" and shown["plugin"] == {"name": "cauchy.py", "digest": digest}
    assert "cauchy of the plug-in cauchy.py (gamma" in run("inspect", model, *plugin).text
    run("train", data, *plugin, *KERNEL, "--init", model, "-q", "-o", tmp_path / "again.npz")
    run("audit", data, "-m", model, *plugin, "-q", "-o", tmp_path / "audit.tsv")
    others, pool = tmp_path / "others.conll", tmp_path / "pool.conll"
    others.write_text("\n\n".join(first_accents(120).read_text().strip().split("\n\n")[40:]) + "\n")
    pool.write_text("".join(line.rpartition("\t")[0] + "\n" for line in others.read_text().split("\n")))
    assert run("next", pool, "-m", model, *plugin, "-n", "3", "-q").out
    run("guarantee", model, others, *plugin, "--risk", "0.3", "-q", "-o", tmp_path / "promised.npz")
    run("featurize", data, "--like", model, *plugin, "-q", "-o", tmp_path / "data.npz")
    assert json.loads(run("evaluate", "-m", model, tmp_path / "data.npz", *plugin, "--json").text)["accuracy"]


def test_commands_that_train(run, cauchy, data, first_accents, tmp_path):
    plugin, model, basis = ("--plugin", cauchy), tmp_path / "model.npz", tmp_path / "basis.npz"
    run("select-basis", data, *plugin, *KERNEL[:-3], "--plain", "-q", "-o", basis)
    assert "'cauchy.py'" in run("train", data, "--basis", basis, "--sigma2", "1", "-o", model, code=4).err
    run("train", data, *plugin, "--basis", basis, "--sigma2", "1", "-q", "-o", model)
    assert "'cauchy.py' (--plugin)" in run("inspect", basis, code=4).err
    run("audit", data, *plugin, *KERNEL, "--folds", "2", "-q", "-o", tmp_path / "audit.tsv")
    assert run("curve", first_accents(70), *plugin, *KERNEL, "--folds", "2", "-q").out


def test_settings_of_a_kernel_are_options(run, cauchy, data):
    assert "--power P" in run("train", "--plugin", cauchy, "--help-all").text
    assert "--power" not in run("train", "--help-all").text
    dumped = run("train", data, "--power", "3", "--kernel", "cauchy", "--plugin", cauchy, "--dump-config").text
    assert "power: 3" in dumped
    # What stands behind -- or is the value of another option is no option.
    assert "cauchy.py" not in run("tag", "-m", "none.npz", "--", "--plugin", code=1).err
    assert not PLUGINS and run("train", data, "-o", "--plugin", "--kernel", "cauchy", code=2)


@pytest.mark.slow
def test_a_solver_in_a_search(run, data, tmp_path):
    """A search takes its solver from the configuration; it has kernels of its own to try."""
    (tmp_path / "steepest.py").write_text(EXAMPLES["steepest.py"])
    (tmp_path / "config.yaml").write_text("training: {solver: steepest, tolerance: 0.05}\n")
    options = ("-c", tmp_path / "config.yaml", "--effort", "small", "-q", "-o", tmp_path / "found.yaml")
    assert "a plug-in can add one" in run("tune", data, *options, code=2).err
    run("tune", data, *options, "--plugin", tmp_path / "steepest.py")
    assert "steepest" in (tmp_path / "found.yaml").read_text()


def test_a_model_of_a_solver_is_free_of_it(run, data, tmp_path):
    """It labels, starts other trainings and is exported; `inspect` shows where its solver comes from."""
    (tmp_path / "steepest.py").write_text(EXAMPLES["steepest.py"])
    model, options = tmp_path / "model.npz", ("--plain", "--sigma2", "0.3", "--tolerance", "0.05", "-q")
    run("train", data, "--plugin", tmp_path / "steepest.py", "--solver", "steepest", *options, "-o", model)
    assert json.loads(run("inspect", model, "--json").text)["plugin"]["name"] == "steepest.py"
    run("tag", "-m", model, data)
    run("train", data, "--init", model, *options, "-o", tmp_path / "again.npz")
    run("export", model, "--to", "wapiti", "-q", "-o", tmp_path / "model.wapiti", code=2)  # it has numbers
    crf = KernelCRF.load(model)
    with pytest.raises(ConfigError, match="not 'steepest' \\(a plug-in can add one"):
        crf.fit([[["a", "b", "1", "2", "3"]]], [["0"]])


@pytest.mark.parametrize("option", ["--kernel", "--solver", "--format"])
def test_an_unknown_name_says_how_to_add_one(run, data, tmp_path, option):
    err = run("train", data, option, "cauchy", "-o", tmp_path / "model.npz", code=2).err
    assert "'cauchy' is not one of" in err and "--plugin mine.py adds one of your own" in err
    assert "--plugin" not in run("train", data, "--scheme", "cauchy", "-o", tmp_path / "model.npz", code=2).err


# ----------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = (\n", "SyntaxError: '(' was never closed (mine.py, line 1)"),
        ("\nx = 1\ny = nothing\n", "mine.py:3: NameError: name 'nothing' is not defined"),
        ("import sys\nsys.exit('no')\n", "mine.py:2: SystemExit: no"),
        ("x = 1\n", "mine.py: it registers nothing: a plug-in has lines such as KERNELS.register"),
        (
            "from kcrf_core.kernels import KERNELS\nKERNELS.register('mine', 1)\nKERNELS.register('rbf', 1)\n",
            "mine.py:3: there is a kernel 'rbf' already",
        ),
        ("from kcrf_core.kernels import KERNELS\nKERNELS.register('a/b', 1)\n", "cannot be the name of a kernel"),
    ],
)
def test_plug_ins_that_cannot_be_loaded(run, data, tmp_path, text, message):
    (tmp_path / "mine.py").write_text(text)
    err = run("train", data, "--plugin", tmp_path / "mine.py", "-o", tmp_path / "model.npz", code=2).err
    assert message in err and err.endswith("(--plugin)\n") and err.count("\n") == 1
    assert "mine" not in KERNELS and "kcrf_plugin_mine" not in sys.modules


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("power", "size", "a kernel declares 'size', which is another setting already"),
        ("power", "output", "a plug-in declares 'output', which the command has too"),
        ("power", "data", "a plug-in declares 'data', which the command has too"),
        ('register("cauchy"', 'register("mine"', "the kernel 'mine' is called 'cauchy' in its class: use one name"),
    ],
)
def test_names_that_are_taken(run, cauchy, data, tmp_path, old, new, message):
    """Else an option would silently mean two things, or no program could read the model."""
    cauchy.write_text(EXAMPLES["cauchy.py"].replace(old, new))
    kernel = "mine" if "mine" in new else "cauchy"
    done = run("train", data, "--plugin", cauchy, "--kernel", kernel, "--sigma2", "1", "-o", tmp_path / "m.npz", code=2)
    assert message in done.err and not (tmp_path / "m.npz").exists()


@pytest.mark.filterwarnings("always:mine")
def test_warnings_of_threads(run, cauchy, data, tmp_path):
    """They know nothing of the command."""
    cauchy.write_text(
        EXAMPLES["cauchy.py"]
        .replace("        block += 1\n", "        warnings.warn('mine')\n        block += 1\n")
        .replace("import numpy", "import warnings\nimport numpy")
    )
    done = run("train", data, "--plugin", cauchy, *KERNEL, "--threads", "2", "-o", tmp_path / "model.npz")
    assert "warning: mine\n" in done.err


def test_plug_ins_that_are_not_there(run, data, tmp_path):
    def refused(plugin):
        return run("train", data, "--plugin", plugin, "-o", tmp_path / "model.npz", code=2).err

    assert refused(tmp_path / "none.py") == f"kcrf: {tmp_path}/none.py: No such file or directory (--plugin)\n"
    assert (
        refused(f"{tmp_path}/")
        == f"kcrf: {tmp_path}/: the name of a plug-in has letters, digits and hyphens: rename the file (--plugin)\n"
    )
    assert "no plug-in 'nothing' is installed" in refused("nothing")
    assert "No module named 'nothing'" in refused("nothing.at.all")
    assert "json: it registers nothing" in refused("json") and "json" in sys.modules
    assert "requires an argument" in run("train", data, "--plugin", code=2).err


def test_two_files_of_one_name(cauchy, tmp_path):
    (tmp_path / "cauchy.py").write_text(EXAMPLES["cauchy.py"].replace('"cauchy"', '"other"'))
    first = load_plugin(cauchy)
    assert load_plugin(cauchy) is first
    with pytest.raises(ConfigError, match="another plug-in of this name is loaded"):
        load_plugin(tmp_path / "cauchy.py")
    cauchy.write_text(EXAMPLES["cauchy.py"].replace("Power of cauchy", "Its power"))
    assert load_plugin(cauchy).digest != first.digest  # it has changed, as in a notebook
    assert KERNELS["cauchy"].settings()["power"].help.startswith("Its power")


# ----------------------------------------------------------------------------- models


def test_a_plug_in_that_is_missing(run, data, model):
    line = f"kcrf: {model}: the kernel 'cauchy' is not registered here: load its plug-in, 'cauchy.py' (--plugin)\n"
    for command in (("tag", "-m", model, data), ("evaluate", "-m", model, data), ("inspect", model)):
        assert run(*command, code=4).err == line
    with pytest.raises(FileFormatError, match=r"load its plug-in, 'cauchy\.py'"):
        KernelCRF.load(model)


@pytest.mark.filterwarnings("default:the plug-in")
def test_a_plug_in_that_has_changed(run, cauchy, data, model):
    before = run("tag", "-m", model, data, "--plugin", cauchy)
    assert before.err == ""
    cauchy.write_text(cauchy.read_text() + "\n# more\n")
    after = run("tag", "-m", model, data, "--plugin", cauchy)
    assert after.out == before.out
    warning = "warning: the plug-in 'cauchy.py' is not as it was when the kernel 'cauchy' was stored\n"
    assert after.err == warning
    assert run("tag", "-m", model, data, "--plugin", cauchy, "-q").err == ""
    with pytest.warns(UserWarning, match="is not as it was"):
        KernelCRF.load(model, plugin=cauchy)


@pytest.mark.filterwarnings("ignore:the plug-in")
def test_a_plug_in_with_other_settings(run, cauchy, data, model):
    cauchy.write_text(EXAMPLES["cauchy.py"].replace("power", "strength"))
    err = run("tag", "-m", model, data, "--plugin", cauchy, "-q", code=4).err
    message = "the kernel 'cauchy' has other settings here: load 'cauchy.py' as it was then"
    assert err == f"kcrf: {model}: {message} (--plugin)\n"


@pytest.mark.parametrize("program", ["runtime", "crfsuite", "crf++", "wapiti"])
def test_export_refuses(run, cauchy, model, tmp_path, program):
    out = tmp_path / "out"
    err = run("export", model, "--plugin", cauchy, "--to", program, "-o", out, code=2).err
    assert ("of the plug-in 'cauchy.py'" if program == "runtime" else "has a kernel") in err
    assert not out.exists()


def test_export_refuses_kernels_with_conjunctions(run, first_accents, tmp_path):
    """A kernel that inherits the map of poly would be taken for poly."""
    (tmp_path / "mine.py").write_text(
        "from kcrf_core.kernels import KERNELS, PolynomialKernel\n"
        "class Mine(PolynomialKernel):\n    type = 'mine'\n"
        "KERNELS.register('mine', Mine)\n"
    )
    data, model = tmp_path / "words.conll", tmp_path / "model.npz"
    rows = [line.split("\t") for line in first_accents(40).read_text().split("\n")]
    data.write_text("\n".join("\t".join([*row[:2], row[-1]]) if len(row) > 1 else "" for row in rows))
    plugin = ("--plugin", tmp_path / "mine.py")
    run("train", data, *plugin, "--kernel", "mine", "--sigma2", "1", "--plain", "-q", "-o", model)
    assert json.loads(run("inspect", model, *plugin, "--json").text)["terms"][0]["map"] == "explicit"
    err = run("export", model, *plugin, "-o", tmp_path / "model.kcrf", code=2).err
    assert "term 'node' has a kernel of the plug-in 'mine.py'" in err


EVIL = "from pathlib import Path\nPath({!r}).write_text('it ran')\n"


@pytest.mark.parametrize(
    "name", ["{}/evil.py", "../evil.py", "evil.py", "evil", "os", "evil.py\n", "", None, 7, ["evil.py"]]
)
def test_a_model_never_loads_code(run, data, model, tmp_path, monkeypatch, name):
    """Whatever it names: a path, a file that is here, a module that can be imported, or nothing sensible."""
    ran = tmp_path / "ran"
    (tmp_path / "evil.py").write_text(EVIL.format(str(ran)))
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path / "folder" if isinstance(name, str) and name.startswith("..") else tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    name = name.format(tmp_path) if isinstance(name, str) else name
    load_plugin(tmp_path / "plugins" / "cauchy.py")
    contents = read_container(model, "model")
    for about in (contents.header["terms"][0]["kernel"], contents.header["info"], contents.header["encoding"]):
        about["plugin"] = {"name": name, "digest": "0" * 64}
    header = {key: value for key, value in contents.header.items() if key not in ("magic", "kind", "format", "version")}
    header["encoding"].pop("plugin") if name == "evil" else None
    write_container(tmp_path / "bad.npz", "model", header, contents.arrays)
    unload_all()
    for command in (("tag", "-m", "bad.npz", data), ("inspect", "bad.npz"), ("export", "bad.npz", "-o", "x.kcrf")):
        err = run(*(tmp_path / each if each == "bad.npz" else each for each in command), code=4).err
        assert err.count("\n") == 1
    with pytest.raises(FileFormatError):
        Model.load(tmp_path / "bad.npz")
    assert not ran.exists() and "evil" not in sys.modules and not PLUGINS


# ----------------------------------------------------------------------------- processes and workers


def test_processes(run, cauchy, data):
    grid = ("--grid", "power=0.5,1", "--kernel", "cauchy", "--size", "15", "--sigma2", "1", "--folds", "2", "--plain")
    found = [run("crossval", data, "--plugin", cauchy, *grid, "-q", "--jobs", jobs, "-o", "-").text for jobs in (1, 2)]
    results = [json.loads(text)["settings"] for text in found]
    assert [one["setting"] for one in results[0]] == [{"power": 0.5}, {"power": 1}]
    for each in (fold for found in results for one in found for fold in one["folds"]):
        del each["seconds"]
    assert results[0] == results[1]


def test_journals_know_plug_ins(run, cauchy, data, tmp_path):
    options = (*KERNEL, "--folds", "2", "--journal", tmp_path / "journal", "-o", tmp_path / "results.json")
    run("crossval", data, "--plugin", cauchy, *options, "-q")
    lines = (tmp_path / "journal").read_text().count("\n")
    run("crossval", data, "--plugin", cauchy, *options, "-q")
    assert (tmp_path / "journal").read_text().count("\n") == lines
    cauchy.write_text(cauchy.read_text() + "\n# more\n")
    run("crossval", data, "--plugin", cauchy, *options, "-q")
    assert (tmp_path / "journal").read_text().count("\n") > lines


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package with an entry point; not by `pip`, which would need a network."""
    folder = tmp_path / "site"
    (folder / "my_package").mkdir(parents=True)
    (folder / "my_package" / "__init__.py").write_text("")
    (folder / "my_package" / "kernels.py").write_text("from . import cauchy\n")
    (folder / "my_package" / "cauchy.py").write_text(EXAMPLES["cauchy.py"])
    about = folder / "my_package-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my_package\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[kcrf.plugins]\nours = my_package.kernels\n")
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "my_package"]:
        del sys.modules[name]


@pytest.mark.parametrize("name", ["ours", "my_package.kernels"])
def test_entry_points_and_modules(kcrf, installed, data, tmp_path, name):
    model = tmp_path / "model.npz"
    done = kcrf("train", data, "--plugin", "theirs", "-o", model)
    assert done.code == 2 and "(ours is)" in done.err
    done = kcrf("train", data, "--plugin", name, *KERNEL, "-q", "-o", model)
    assert done.code == 0, done.err
    if name == "ours":
        done = kcrf("crossval", data, "--plugin", name, *KERNEL, "--folds", "2", "--jobs", "2", "-q", "-o", "-")
        assert done.code == 0, done.err
    code = "import sys; from kcrf_cli.main import main; sys.path.insert(0, sys.argv.pop(1)); main()"
    call = [sys.executable, "-c", code, str(installed), "tag", "-m", str(model), str(data)]
    alone = subprocess.run(call, capture_output=True, text=True, check=False)
    assert alone.returncode == 4 and f"load its plug-in, '{name}' (--plugin)" in alone.stderr
    alone = subprocess.run([*call, "--plugin", name], capture_output=True, text=True, check=False)
    assert alone.returncode == 0 and alone.stdout == kcrf("tag", "-m", model, data).text


def test_a_module_that_was_imported_before(installed):
    from my_package.kernels import cauchy

    assert load_plugin("ours").name == "ours" and KERNELS["cauchy"] is cauchy.CauchyKernel
    assert KERNELS.origin("cauchy")["plugin"]["name"] == "ours"


# ----------------------------------------------------------------------------- estimators


@pytest.fixture
def table(rng):
    X = [rng.normal(size=(8, 2)) for _ in range(12)]
    return X, [["a" if u * v > 0 else "b" for u, v in x] for x in X]


def test_an_estimator(cauchy, table, tmp_path):
    X, y = table
    with pytest.raises(ConfigError, match="there are linear, poly, rbf and image; a plug-in can add one"):
        KernelCRF(kernel="cauchy").fit(X, y)
    crf = KernelCRF(kernel="cauchy", plugin=cauchy, sigma2=1.0, size=20)
    assert "cauchy" not in KERNELS  # parameters do nothing before `fit`
    expected = crf.fit(X, y).predict(X)
    assert crf.get_params()["plugin"] == cauchy
    crf.save(tmp_path / "model.npz")
    (tmp_path / "crf.pickle").write_bytes(pickle.dumps(crf))
    again = pickle.loads(pickle.dumps(crf))
    assert again.predict(X) == expected and again is not crf
    unload_all()
    with pytest.raises(FileFormatError, match=r"load its plug-in, 'cauchy\.py'"):
        KernelCRF.load(tmp_path / "model.npz")
    loaded = KernelCRF.load(tmp_path / "model.npz", plugin=[str(cauchy)])
    assert loaded.predict(X) == expected and loaded.plugin == [str(cauchy)]
    assert loaded.fit(X, y).predict(X) == expected  # by the configuration of the model
    np.save(tmp_path / "X.npy", np.array(X))
    code = "import pickle, sys, numpy as np; crf = pickle.load(open(sys.argv[1], 'rb')); "
    code += "print(crf.predict(list(np.load(sys.argv[2]))) == eval(sys.argv[3]))"
    call = [
        sys.executable,
        "-c",
        code,
        tmp_path / "crf.pickle",
        tmp_path / "X.npy",
        repr([list(one) for one in expected]),
    ]
    assert subprocess.run(list(map(str, call)), capture_output=True, text=True, check=True).stdout == "True\n"


@pytest.mark.slow
def test_an_estimator_in_processes_of_joblib(cauchy, table):
    joblib, search = pytest.importorskip("joblib"), pytest.importorskip("sklearn.model_selection")
    X, y = table
    crf = KernelCRF(kernel="cauchy", plugin=cauchy, sigma2=1.0, size=10)
    with joblib.parallel_backend("loky", n_jobs=2):
        found = search.GridSearchCV(crf, {"sigma2": [0.3, 3.0]}, cv=2).fit(X, y)
        labels = joblib.Parallel()(joblib.delayed(found.best_estimator_.predict)([x]) for x in X[:2])
    assert [one[0] for one in labels] == found.predict(X[:2])
