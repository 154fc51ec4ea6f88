"""What training can do it can do on a cluster: the same bytes with two workers."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import ClassVar

import pytest

from clusters import loopback_cluster
from console import steps
from kcrf_core import KernelCRF
from kcrf_core.cluster import engines, on_workers
from kcrf_core.system import PLUGINS

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals are others there")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "architecture.md"
OPTIONS = ("--sigma2", "1", "--max-passes", "8", "--seed", "1")
COLUMNS = "columns: [word, class, duration, f0, energy, label]"
EDGES_BY_INPUT = f"""
{COLUMNS}
features:
  - {{column: word, window: [0]}}
  - {{column: class, window: [-1, 0, 1]}}
  - {{column: f0, window: [0]}}
terms:
  - {{name: words, features: [word, class]}}
  - {{name: pairs of classes, type: edge-x, features: [class]}}
  - {{name: f0, features: [f0], kernel: {{type: rbf}}, map: {{size: 30}}}}
  - {{type: edge}}
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    from distributed import Client

    with loopback_cluster(tmp_path_factory.mktemp("cluster"), 2) as cluster:
        with Client(cluster.address) as client:
            client.wait_for_workers(2)
        yield cluster.engine


@pytest.fixture
def data(first_accents):
    """So much of it that there are three shards."""
    return first_accents(150)


@pytest.fixture
def spans(data, tmp_path):
    """The same with labels in a scheme."""
    lines, before = [], "0"
    for line in data.read_text().splitlines():
        cells = line.split("\t")
        if line:
            cells[-1], before = "O" if cells[-1] == "0" else f"{'I' if before == '1' else 'B'}-A", cells[-1]
        else:
            before = "0"
        lines.append("\t".join(cells))
    path = tmp_path / "spans.conll"
    path.write_text("\n".join(lines) + "\n")
    return path


def same_model(kcrf, engine, tmp_path, *arguments):
    """What is said on the way of the same bytes on the cluster as on a thread."""
    one, other = tmp_path / "one.npz", tmp_path / "other.npz"
    done = kcrf("train", *arguments, "--threads", "1", "-q", "-o", one)
    assert done.code == 0, done.err
    done = kcrf("train", *arguments, "--engine", engine, "-v", "-o", other)
    assert done.code == 0, done.err
    assert one.read_bytes() == other.read_bytes()
    assert "cluster: 2 workers with 2 threads" in done.err and "cluster: 3 shards" in done.err


@pytest.mark.parametrize(
    "text, options",
    [
        pytest.param(
            EDGES_BY_INPUT,
            ("--dev", "DATA"),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            COLUMNS,
            ("--kernel", "rbf", "--select", "gradient", "--size", "12", "--certify", "exact"),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            COLUMNS,
            ("--order", "2", "--init", "FIRST", "--prune", "0.01"),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["edge-x with dev", "growth and exact", "second order from a model, pruned"],
)
def test_what_training_has(text, options, kcrf, engine, data, tmp_path):
    config, first = tmp_path / "config.yaml", tmp_path / "first.npz"
    config.write_text(text)
    if "FIRST" in options:
        assert kcrf("train", data, "-c", config, *OPTIONS, "-q", "-o", first).code == 0
    options = [{"DATA": data, "FIRST": first}.get(each, each) for each in options]
    same_model(kcrf, engine, tmp_path, data, "-c", config, *OPTIONS, *options)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [("--scheme", "iob2"), ("--c1", "0.5"), ("--observed-transitions", "--decode", "auto")]
)
def test_labels_in_schemes(options, kcrf, engine, spans, tmp_path):
    same_model(kcrf, engine, tmp_path, spans, *OPTIONS[2:], "--c2", "0.5", *options)


@pytest.mark.slow
def test_folds_and_bases(kcrf, engine, data, tmp_path):
    """Folds have the same figures, and whoever chooses pivots says that the cluster is not asked."""
    arguments = ("crossval", data, "--folds", "2", "--json", "-q", *OPTIONS)
    found = [json.loads(kcrf(*arguments, *more).text) for more in (("--threads", "1"), ("--engine", engine))]
    without_time = [json.dumps(each, default=str) for each in map(_without_seconds, found)]
    assert without_time[0] == without_time[1] and "accuracy" in without_time[0]
    arguments = ("select-basis", data, "--kernel", "rbf", "--size", "20", "-o")
    assert kcrf(*arguments, tmp_path / "one.npz", "-q", "--threads", "1").code == 0
    done = kcrf(*arguments, tmp_path / "other.npz", "--engine", engine)
    assert f"pivots are chosen on this machine: {engine} is not used" in done.err
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "other.npz").read_bytes()


def _without_seconds(value):
    if isinstance(value, dict):
        return {key: _without_seconds(each) for key, each in value.items() if key != "seconds"}
    return [_without_seconds(each) for each in value] if isinstance(value, list) else value


@pytest.mark.slow
def test_estimator(engine, data, tmp_path):
    sequences = [[line.split("\t") for line in block.split("\n")] for block in data.read_text().strip().split("\n\n")]
    X, y = [[row[:2] for row in rows] for rows in sequences], [[row[-1] for row in rows] for rows in sequences]
    models = []
    for where in (None, engine):
        estimator = KernelCRF(sigma2=1.0, tolerance=0.1, engine=where).fit(X, y)
        estimator.save(tmp_path / "model.npz")
        models.append((tmp_path / "model.npz").read_bytes())
    assert models[0] == models[1]


def test_processors_that_differ(kcrf, engine, data, tmp_path, monkeypatch):
    """Bytes may be others then, and a line says so; without that it is not there."""
    output = tmp_path / "model.npz"
    arguments = ("train", data, "--sigma2", "1", "--max-passes", "1", "--engine", engine, "-o", output)
    assert "processors differ" not in kcrf(*arguments).err
    monkeypatch.setattr(on_workers, "processor", lambda: "abacus of 1900")
    said = [line for line in kcrf(*arguments).err.splitlines() if "processors differ" in line]
    assert len(said) == 1 and said[0].startswith("warning: ") and "abacus of 1900" in said[0] and output.exists()


def test_other_hosts_without_certificates(kcrf, engine, data, tmp_path, monkeypatch):
    """What goes to another host in the clear gets a warning; what stays here does not."""
    for address, exposed in (
        ("dask", False),
        ("dask://127.0.0.1:8786", False),
        ("dask://[::1]:8786", False),
        ("dask://localhost:8786", False),
        ("dask://10.0.0.1:8786", True),
        ("dask://head.example:8786", True),
    ):
        assert engines.ClusterEngine(address).exposed is exposed, address
    arguments = ("train", data, "--sigma2", "1", "--max-passes", "1", "--engine", engine, "-o", tmp_path / "model.npz")
    assert "can be read on the way" not in kcrf(*arguments).err
    monkeypatch.setattr(engines.ClusterEngine, "exposed", True)
    said = kcrf(*arguments)
    assert said.code == 0 and f"warning: what goes to {engine} can be read on the way" in said.err
    assert "use tls:// where others are on the network" in said.err


def test_what_is_sent_elsewhere_is_made_there_by_whoever_needs_it():
    """Not where it is received: that is no task, and Dask's loop waits for it."""
    held = on_workers.HeldHere(["part"], 7, Making(), "spec")
    assert held.thing == "part" and held.__sizeof__() == 7
    sent = pickle.loads(pickle.dumps(held))
    assert Making.asked == [] and sent.__sizeof__() == 7
    assert sent.thing == sent.thing == "made of spec" and Making.asked == ["spec"]


class Making:
    asked: ClassVar[list[str]] = []

    def __call__(self, spec):
        self.asked.append(spec)
        return f"made of {spec}"


@pytest.mark.slow
def test_a_plug_in_on_workers(kcrf, engine, data, tmp_path):
    """They get its text: its folder has a name that they do not know. What has changed replaces it there."""
    path = tmp_path / "here" / "cauchy.py"
    path.parent.mkdir()
    text = next(text for _, name, text in steps(PAGE) if name == "cauchy.py")
    models = []
    for more in ("1", "1.5"):
        path.write_text(text.replace("block += 1\n", f"block += {more}\n"))
        options = ("--plugin", path, "--kernel", "cauchy", "--size", "30", *OPTIONS)
        same_model(kcrf, engine, tmp_path, data, *options)
        for plugin in [*PLUGINS.values()]:
            plugin.unload()
        models.append((tmp_path / "other.npz").read_bytes())
    assert models[0] != models[1]
    done = kcrf("train", data, *OPTIONS, "--engine", engine, "-q", "-o", tmp_path / "plain.npz")
    assert done.code == 0, done.err
