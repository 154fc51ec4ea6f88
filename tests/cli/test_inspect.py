"""`kcrf inspect` and what makes models small, as a shell sees them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from kcrf_core.files import read_container, write_container
from kcrf_core.model import Model

DATA = "the\tD\ncat\tN\nsat\tV\n\na\tD\ndog\tN\nran\tV\noff\tP\n\nthe\tD\ndog\tN\n"


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "words.conll"
    path.write_text(DATA * 3)
    return path


@pytest.fixture
def model(kcrf, data, tmp_path):
    path = tmp_path / "model.npz"
    assert kcrf("train", data, "--sigma2", "1", "-q", "-o", path).code == 0
    return path


def test_text_tells_what_the_model_is(kcrf, model):
    done = kcrf("inspect", model, "--top", "2")
    assert done.code == 0 and done.err == ""
    stored = Model.load(model)
    training = stored.info["training"]
    assert f"P {training['objective']:.6f}, at least {training['lower_bound']:.6f}" in done.text
    assert "labels (4): D, N, P, V" in done.text and f"SHA-256 {stored.info['digest']}" in done.text
    assert "term node: linear kernel on c0" in done.text and "sigma2: edge 1, node 1" in done.text
    table = [line.split() for line in done.text.split("\n") if line.startswith(("(start)", "D ", "N ", "P ", "V "))]
    assert [line[0] for line in table] == ["(start)", "D", "N", "P", "V"]
    np.testing.assert_allclose(np.array([line[1:5] for line in table[1:]], float), stored.edges.transitions, atol=6e-4)
    block = done.text.split("node, D\n")[1].split("\n\n")[0]
    assert len(block.strip().split("\n")) == 2 and "c0[0]=the" in block


def test_json_has_it_all(kcrf, model):
    found = json.loads(kcrf("inspect", model, "--json", "--top", "1").text)
    stored = Model.load(model)
    assert found["schema"] == 1 and found["kind"] == "model" and found["bytes"] == os.path.getsize(model)
    assert found["labels"] == list(stored.labels) and found["training"] == stored.info["training"]
    assert found["config"] == stored.info["config"] and found["digest"] == stored.info["digest"]
    np.testing.assert_array_equal(found["transitions"], stored.edges.transitions)
    (term,) = found["terms"]
    assert term["weights"] == stored.terms[0].weights.size
    assert [entry["labels"] for entry in term["top"]] == [[label] for label in stored.labels]
    assert "top" not in json.loads(kcrf("inspect", model, "--json", "--top", "0").text)["terms"][0]


def test_provenance(kcrf, model, data, tmp_path):
    """Data, options and version that made a model are shown, and the same ones give the same bytes."""
    found = json.loads(kcrf("inspect", model, "--json").text)
    assert found["data"] == {"sequences": 7, "positions": 27} and found["options"] == {}
    assert found["trained_by"] == found["version"]
    text = kcrf("inspect", model).text
    assert f"data: 7 sequences, 27 positions, SHA-256 {found['digest']}\n" in text
    assert "trained by" not in text and "options:" not in text
    assert kcrf("featurize", data, "--like", model, "-q", "-o", tmp_path / "again.npz").code == 0
    assert json.loads(kcrf("inspect", tmp_path / "again.npz", "--json").text)["digest"] == found["digest"]
    others = []
    for threads, folder in (1, "here"), (2, "there"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "w.conll").write_text(DATA * 3)
        others.append(tmp_path / folder / "m.npz")
        options = ("--init", model, "--prune", "0.01", "--dev", data, "--threads", threads, "-q")
        assert kcrf("train", tmp_path / folder / "w.conll", *options, "-o", others[-1]).code == 0
    assert others[0].read_bytes() == others[1].read_bytes()
    about = json.loads(kcrf("inspect", others[0], "--json").text)
    assert about["options"] == {"prune": 0.01, "init": Model.load(model).digest, "dev": found["digest"]}
    assert "prune 0.01" in kcrf("inspect", others[0]).text
    contents = read_container(model, "model")
    info = contents.header["info"] | {"version": "0.2.9"}
    header = contents.header | {"info": info}
    write_container(tmp_path / "older.npz", "model", header, contents.arrays)
    assert "\ntrained by kcrf 0.2.9\n" in kcrf("inspect", tmp_path / "older.npz").text


def test_dump_greps(kcrf, model):
    lines = [line.split("\t") for line in kcrf("inspect", model, "--dump").text.splitlines()]
    stored = Model.load(model)
    weights = {tuple(line[:-1]): float(line[-1]) for line in lines}
    assert len(weights) == len(lines)
    assert weights["node", "c0[0]=the", "D"] > 0 > weights["node", "c0[0]=the", "N"]
    assert weights["transition", "D", "N"] == pytest.approx(stored.edges.transitions[0, 1], rel=1e-5)
    count = sum(np.count_nonzero(part) for part in (stored.terms[0].weights, stored.edges.transitions))
    assert len(lines) == count + np.count_nonzero(stored.edges.start) + np.count_nonzero(stored.edges.end)


def test_forbidden_transitions(kcrf, data, tmp_path):
    path = tmp_path / "m.npz"
    assert kcrf("train", data, "--sigma2", "1", "--observed-transitions", "-q", "-o", path).code == 0
    assert "forbidden" in kcrf("inspect", path).text
    assert "transition\tD\tD\t-inf\n" in kcrf("inspect", path, "--dump").text
    assert json.loads(kcrf("inspect", path, "--json").text)["transitions"][0][0] is None


def test_many_labels_are_listed(kcrf, sample_data, tmp_path):
    text = "".join(f"w{i}\tL{i % 15}\n" for i in range(60))
    (tmp_path / "many.conll").write_text(text)
    assert kcrf("train", tmp_path / "many.conll", "--sigma2", "1", "-q", "-o", tmp_path / "m.npz").code == 0
    done = kcrf("inspect", tmp_path / "m.npz", "--top", "4")
    listed = done.text.split("strongest transitions")[1].split("\n\n")[0].strip().split("\n")[1:]
    assert len(listed) == 4 and " -> " in listed[0]


def test_a_closed_pipe_is_fine(model):
    line = f"{sys.executable} -m kcrf_cli inspect {model} --dump | head -n 2"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert len(done.stdout.splitlines()) == 2 and done.stderr == ""


def test_pictures_of_strange_labels(kcrf, tmp_path):
    """Names are text to matplotlib, not formulas."""
    pytest.importorskip("matplotlib")
    (tmp_path / "odd.conll").write_text("a\t$x_{$\nb\t$$\\frac\nc\t日本\n" * 3)
    assert kcrf("train", tmp_path / "odd.conll", "--sigma2", "1", "-q", "-o", tmp_path / "m.npz").code == 0
    assert kcrf("evaluate", "-m", tmp_path / "m.npz", tmp_path / "odd.conll", "--plot", tmp_path / "p.svg").code == 0


def test_bases_and_datasets(kcrf, data, tmp_path):
    dataset, basis = tmp_path / "d.npz", tmp_path / "b.npz"
    assert kcrf("featurize", data, "-o", dataset).code == 0
    assert kcrf("select-basis", dataset, "--kernel", "rbf", "--size", "4", "-q", "-o", basis).code == 0
    found = json.loads(kcrf("inspect", dataset, "--json").text)
    assert found["sequences"] == 7 and found["gold"] == {"D": 9, "N": 9, "P": 3, "V": 6}
    assert "positions" in kcrf("inspect", dataset).text
    new, words = tmp_path / "n.npz", tmp_path / "words.conll"
    words.write_text("\n".join(line.split("\t")[0] for line in data.read_text().split("\n")))
    assert kcrf("featurize", words, "--like", dataset, "-o", new).code == 0
    assert kcrf("inspect", new).text.endswith("no labels\n")
    found = json.loads(kcrf("inspect", basis, "--json", "--top", "2").text)
    assert found["terms"][0]["pivots"] == 4 and len(found["terms"][0]["first_pivots"]) == 2
    assert "first pivots" in kcrf("inspect", basis).text
    for path, option in ((dataset, "--dump"), (basis, "--dump")):
        done = kcrf("inspect", path, option)
        assert done.code == 2 and "Traceback" not in done.err


def test_labels_that_are_not_observed(kcrf, data, tmp_path):
    hidden, model, dataset = tmp_path / "hidden.conll", tmp_path / "m.npz", tmp_path / "d.npz"
    hidden.write_text(data.read_text().replace("off\tP", "off\t?", 1).replace("dog\tN", "dog\t?", 1))
    options = ("--unobserved", "?", "--sigma2", "1", "--observed-features", "--prune", "0.1", "--json")
    found = json.loads(kcrf("train", hidden, *options, "-o", model).text)
    assert found["stop"] in ("stationary", "pruned") and found["certified_gap"] is None
    assert found["pruned"]["weights_left"] <= found["pruned"]["weights"]
    assert "no certificate: P " in kcrf("inspect", model).text
    assert kcrf("featurize", hidden, "--unobserved", "?", "-o", dataset).code == 0
    found = json.loads(kcrf("inspect", dataset, "--json").text)
    assert (found["unobserved"], found["unknown_gold"], found["gold"]["P"]) == (2, 0, 2)
    assert "(not observed)" in kcrf("inspect", dataset).text


def test_mistakes(kcrf, model, data, tmp_path):
    assert kcrf("inspect", model, "--dump", "--json").code == 2
    assert kcrf("inspect", data).code == 4
    assert kcrf("inspect", tmp_path / "none.npz").code == 1


def test_names_cannot_write_to_the_terminal(kcrf, model):
    contents = read_container(model, "model")
    text = contents.arrays["labels.text"].tobytes().replace(b"D", b"\x1b")
    contents.arrays["labels.text"] = np.frombuffer(text, np.uint8)
    contents.header["version"] = "\x1b]0;"
    write_container(model, "model", contents.header, contents.arrays)
    for options in ((), ("--dump",)):
        done = kcrf("inspect", model, *options)
        assert done.code == 0 and b"\x1b" not in done.out and b"\\x1b" in done.out


def test_info_that_is_not_what_it_should_be(kcrf, model):
    contents = read_container(model, "model")
    for info in (
        {},
        {"training": 3, "config": []},
        {"training": {"objective": "x", "sigma2": {"a": None}}, "digest": 5},
    ):
        contents.header["info"] = info
        write_container(model, "model", contents.header, contents.arrays)
        for options in ((), ("--json",)):
            assert kcrf("inspect", model, *options).code == 0


# ----------------------------------------------------------------------------- small models


def test_observed_features(kcrf, data, model, tmp_path):
    small = tmp_path / "small.npz"
    done = kcrf("train", data, "--sigma2", "1", "--observed-features", "-o", small, "--json", "-v")
    found = json.loads(done.text)
    assert "those of pairs seen" in done.err and found["stop"] == "certified" and found["bytes"] == small.stat().st_size
    dumped = [line.split("\t") for line in kcrf("inspect", small, "--dump").text.splitlines()]
    assert {line[2] for line in dumped if line[:2] == ["node", "c0[0]=the"]} == {"D"}
    assert kcrf("tag", "-m", small, data).text == kcrf("tag", "-m", model, data).text
    done = kcrf("train", data, "--kernel", "rbf", "--observed-features", "-o", small)
    assert done.code == 2 and "explicit maps" in done.err


def test_pruning_is_told(kcrf, data, tmp_path):
    small = tmp_path / "small.npz"
    done = kcrf("train", data, "--sigma2", "1", "--prune", "0.5", "-o", small, "--json")
    found = json.loads(done.text)
    pruned = found["pruned"]
    assert f"pruned by 0.5: {pruned['weights_left']:,} of {pruned['weights']:,} weights left" in done.err
    assert found["stop"] == "pruned"
    assert json.loads(kcrf("inspect", small, "--json").text)["training"]["pruned"] == pruned
    done = kcrf("train", data, "--sigma2", "1", "--prune", "0.5", "--strict", "-o", small)
    assert done.code == 5 and small.exists()
    assert kcrf("train", data, "--prune", "-1", "-o", small).code == 2


@pytest.mark.parametrize("options", [(), ("--kernel", "poly", "--degree", "2")])
def test_small_models_tag_without_scipy(kcrf, data, tmp_path, options):
    small = tmp_path / "small.npz"
    done = kcrf("train", data, "--sigma2", "1", *options, "--observed-features", "--prune", "0.1", "-q", "-o", small)
    assert done.code == 0
    code = (
        f"import sys\nfrom kcrf_cli.main import main\n"
        f"try:\n    main(['tag', '-m', {str(small)!r}, {str(data)!r}])\nexcept SystemExit: pass\n"
        "sys.exit(any(name.split('.')[0] == 'scipy' for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == len(data.read_text().splitlines())


def test_three_labels_in_a_row(kcrf, sample_data, tmp_path):
    model = tmp_path / "m.npz"
    data = sample_data / "pitch_accent.conll"
    assert kcrf("train", data, "--order", 2, "--sigma2", 1, "-q", "-o", model).code == 0
    done = kcrf("inspect", model, "--top", 3)
    assert done.code == 0 and "order 2" in done.text
    found = json.loads(kcrf("inspect", model, "--json", "--top", 3).out)["triples"]["top"]
    triples = Model.load(model).edges.triples
    weights = [each["weight"] for each in found]
    assert weights == sorted(weights, reverse=True)
    assert sorted(map(abs, weights)) == sorted(np.abs(triples).ravel().tolist())[-3:]
    for each in found:
        assert each["weight"] == triples[tuple(int(label) for label in each["labels"])]


def test_importance(kcrf, model, data, tmp_path):
    options = ("--importance", data, "--repetitions", "1", "--threads", "1")
    found = json.loads(kcrf("inspect", model, *options, "--json").text)["importance"]
    assert found[0]["loss"] == max(one["loss"] for one in found) > 0 and found[0]["standard_error"] > 0
    done = kcrf("inspect", model, *options)
    assert done.code == 0 and f"\n{found[0]['column']} " in done.text
    assert kcrf("inspect", model, *options, "--dump").code == 2
    assert kcrf("inspect", model, "--importance", tmp_path / "none").code == 1


def test_importance_of_columns(kcrf, data, tmp_path):
    path = tmp_path / "m.npz"
    (tmp_path / "c.yaml").write_text("features:\n- column: c0\n- {column: c0, transform: prefix, length: 1}\n")
    assert kcrf("train", data, "--config", tmp_path / "c.yaml", "--sigma2", "1", "-q", "-o", path).code == 0
    options = ("--top", "0", "--importance", data, "--repetitions", "1", "--threads", "1")
    found = json.loads(kcrf("inspect", path, *options, "--json").text)["importance"]
    assert {one["column"] for one in found} == {"c0"}
    text = kcrf("inspect", path, *options).text
    assert "values of a column are shuffled" in text and "\nc0 " in text
    encoded = tmp_path / "d.npz"
    assert kcrf("featurize", data, "-q", "-o", encoded).code == 0
    done = kcrf("inspect", path, "--importance", encoded)
    assert done.code == 2 and "give the text" in done.err


def test_importance_on_one_sequence_and_steps_of_windows(kcrf, data, tmp_path):
    path, one = tmp_path / "m.npz", tmp_path / "one.conll"
    one.write_text(data.read_text().partition("\n\n")[0] + "\n")
    steps = ("--plain", "--window=-4..4/2", "--sigma2", "1", "--tolerance", "0.1")
    assert kcrf("train", data, *steps, "-q", "-o", path).code == 0
    options = ("--top", "0", "--importance", one, "--repetitions", "1")
    text = kcrf("inspect", path, *options, "--json").text
    found = json.loads(text, parse_constant=pytest.fail)["importance"]  # Infinity is no JSON
    assert {each["standard_error"] for each in found} == {None}
    shown = kcrf("inspect", path, *options).text
    assert "window -4..4/2" in shown and "inf" not in shown
    folder = tmp_path / "shards"
    assert kcrf("featurize", data, "--shards", "2", "-q", "-o", folder).code == 0
    done = kcrf("inspect", folder, "--importance", one)
    assert done.code == 2 and "does not go with --importance" in done.err


def test_two_labels_have_one_list(kcrf, tmp_path):
    (tmp_path / "two.conll").write_text("a X\nb Y\n\n" * 4)
    assert kcrf("train", tmp_path / "two.conll", "--sigma2", "1", "-q", "-o", tmp_path / "m.npz").code == 0
    text = kcrf("inspect", tmp_path / "m.npz", "--top", "2").text
    assert text.count("node, Y against X\n") == 1 and "node, X" not in text


def test_calibrated_models(kcrf, first_accents, tmp_path):
    path, data = tmp_path / "m.npz", first_accents(150)
    done = kcrf("train", data, "--sigma2", "30", "--calibrate", "--tolerance", "0.01", "-o", path)
    assert done.code == 0 and "calibrated: held-out log-loss" in done.err
    assert "calibrated: scores times 0." in kcrf("inspect", path, "--top", "0").text
    lines = kcrf("evaluate", "-m", path, data, "--details").text.splitlines()
    assert lines[-1].startswith("probabilities: log-loss ")
    done = kcrf("export", path, "--to", "crfsuite", "-o", tmp_path / "m.crfsuite")
    assert done.code == 2 and "calibration" in done.err
