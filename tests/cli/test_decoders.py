"""The decoder that a model stores, and the figure that choices go by, from training to labels."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from kcrf_core import KernelCRF, Model
from kcrf_core.files import read_container, write_container


def write(path, rng, sequences, length=60, apart=0.5):
    """Long sequences of two labels that come in short runs, with a number that says little about them."""
    lines = []
    for _ in range(sequences):
        runs = rng.choice(["rest", "walk"], p=[0.6, 0.4], size=length)
        for label in np.repeat(runs, 2)[:length]:
            lines.append(f"{apart * (label == 'walk') + rng.normal():.3f}\t{label}")
        lines.append("")
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Training and test data with long sequences, and a few short ones that are easy."""
    folder = tmp_path_factory.mktemp("decoders")
    rng = np.random.default_rng(3)
    write(folder / "train.conll", rng, 80)
    write(folder / "test.conll", rng, 60)
    write(folder / "easy.conll", rng, 60, length=4, apart=9.0)
    return folder


@pytest.fixture
def model(kcrf, folder):
    """Trained once on long sequences, without a word about decoders; what was said is beside it."""
    path = folder / "model.npz"
    if not path.exists():
        done = kcrf("train", folder / "train.conll", "-o", path, "--json", "-v")
        assert done.code == 0
        (folder / "said.txt").write_text(done.err)
        (folder / "report.json").write_bytes(done.out)
    return path


def labels_of(done):
    return [line.split("\t")[-1] for line in done.text.splitlines() if line]


def test_training_stores_what_held_out_data_speaks_for(kcrf, folder, model):
    report = json.loads((folder / "report.json").read_text())
    found = report["decoder"]
    assert report["metric"] == "accuracy"
    assert (found["decode"], found["data"], found["metric"]) == ("posterior", "held-out", "accuracy")
    assert found["posterior"] - found["viterbi"] == pytest.approx(found["difference"], rel=1e-9)
    assert found["difference"] > found["standard_error"] > 0
    said = (folder / "said.txt").read_text()
    assert f"; posterior decoding; accuracy {100 * found['posterior']:.2f} on 80 held-out sequences in " in said
    whole = found["whole_sequences"]
    figures = f"{100 * whole['viterbi']:.2f} % by Viterbi and {100 * whole['posterior']:.2f} % by posterior decoding"
    assert f"\nwhole held-out sequences right {figures}\n" in said
    assert Model.load(model).decode == "posterior"
    shown = kcrf("inspect", model)
    assert f"decoder: posterior decoding (held-out accuracy {100 * found['viterbi']:.2f} by Viterbi" in shown.text
    assert json.loads(kcrf("inspect", model, "--json").out)["decode"] == "posterior"


def test_all_commands_follow_the_model(kcrf, folder, model, tmp_path):
    test = folder / "test.conll"
    plain = kcrf("tag", "-m", model, test)
    assert plain.err == ""
    by_label, by_path = (kcrf("tag", "-m", model, test, "--decode", name) for name in ("posterior", "viterbi"))
    assert plain.out == by_label.out and plain.out != by_path.out
    assert by_label.err == by_path.err == ""
    # With other columns asked for, the labels are the same.
    more = kcrf("tag", "-m", model, test, "--marginals", "all", "--sequence-probability", "-q")
    assert labels_of(more) == labels_of(plain) and more.err == ""

    (tmp_path / "tagged.conll").write_bytes(plain.out)
    read = json.loads(kcrf("evaluate", tmp_path / "tagged.conll", "--json").out)
    found = json.loads(kcrf("evaluate", "-m", model, test, "--json").out)
    assert (read["decode"], found["decode"]) == (None, "posterior")
    assert read["labels"] == found["labels"]
    other = json.loads(kcrf("evaluate", "-m", model, test, "--decode", "viterbi", "--json").out)
    assert other["decode"] == "viterbi" and other["accuracy"] < found["accuracy"] - 0.005
    assert "\ndecoder: posterior decoding\n" in kcrf("evaluate", "-m", model, test).text
    kcrf("evaluate", "-m", model, test, "--html", tmp_path / "page.html")
    assert "decoder: posterior" in (tmp_path / "page.html").read_text()

    crf = KernelCRF.load(model)
    columns = [block.split("\n") for block in test.read_text().strip().split("\n\n")]
    X = [[[float(line.split("\t")[0])] for line in block] for block in columns]
    y = [[line.split("\t")[1] for line in block] for block in columns]
    assert [label for labels in crf.predict(X) for label in labels] == labels_of(plain)
    assert crf.score(X, y) == pytest.approx(found["accuracy"], rel=1e-12)
    assert crf.set_params(decode="viterbi").score(X, y) == pytest.approx(other["accuracy"], rel=1e-12)


def test_n_best_lists_are_always_by_path(kcrf, folder, model):
    test = folder / "test.conll"
    best = kcrf("tag", "-m", model, test, "--nbest", 1)
    by_path = kcrf("tag", "-m", model, test, "--decode", "viterbi")
    assert [line.split("\t")[-1] for line in best.text.splitlines() if line and line[0] != "#"] == labels_of(by_path)


def test_labels_with_a_lag_are_always_by_position(kcrf, folder, model):
    test = folder / "test.conll"
    assert labels_of(kcrf("tag", "-m", model, test, "--lag", 100)) == labels_of(kcrf("tag", "-m", model, test))


def test_what_is_asked_for_is_stored(kcrf, folder, tmp_path):
    path = tmp_path / "model.npz"
    for name in ("posterior", "viterbi"):
        done = kcrf("train", folder / "easy.conll", "--sigma2", 1, "--decode", name, "-o", path, "--json")
        assert json.loads(done.out)["decoder"] == {"decode": name}
        assert Model.load(path).decode == name
    kcrf("train", folder / "easy.conll", "--sigma2", 1, "-o", path)
    assert Model.load(path).decode == "posterior"  # nothing was held out
    kcrf("train", folder / "easy.conll", "--sigma2", 1, "--metric", "macro-f1", "-o", path)
    assert Model.load(path).decode == "viterbi"
    dumped = kcrf("train", folder / "easy.conll", "--decode", "posterior", "--metric", "macro-f1", "--dump-config")
    assert "decode: posterior, metric: macro-f1" in " ".join(dumped.text.split())


def test_dev_decides_where_nothing_is_held_out(kcrf, folder, tmp_path):
    path, test = tmp_path / "model.npz", folder / "test.conll"
    done = kcrf("train", folder / "train.conll", "--sigma2", 1, "--dev", test, "-v", "-o", path, "--json")
    report = json.loads(done.out)
    assert report["decoder"]["data"] == "dev" and report["dev"]["decode"] == "posterior"
    assert re.search(r"^dev: accuracy [0-9.]+ %, .* by posterior decoding", done.err, re.MULTILINE)
    assert Model.load(path).decode == "posterior"
    found = json.loads(kcrf("evaluate", "-m", path, test, "--json").out)
    assert found["accuracy"] == report["dev"]["accuracy"] == pytest.approx(report["decoder"]["posterior"], rel=1e-12)
    by_path = kcrf("train", folder / "train.conll", "--sigma2", 1, "--dev", test, "--decode", "viterbi", "-o", path,
                   "--json")  # fmt: skip
    assert json.loads(by_path.out)["dev"]["accuracy"] == pytest.approx(report["decoder"]["viterbi"], rel=1e-12)


@pytest.mark.slow
def test_crossval_judges_by_the_metric_and_the_decoder_of_each_model(kcrf, folder, tmp_path):
    many = write(tmp_path / "many.conll", np.random.default_rng(3), 160, apart=0.4)
    results = json.loads(kcrf("crossval", many, "--folds", 2, "--kernel", "linear", "--json").out)
    common = ["crossval", folder / "train.conll", "--folds", 2, "--kernel", "linear"]
    assert [fold["decode"] for fold in results["settings"][0]["folds"]] == ["posterior", "posterior"]
    assert results["metric"] == results["judged_by"] == "accuracy"

    grid = ["--sigma2", 1, "--grid", "decode=viterbi,posterior"]
    done = kcrf(*common, *grid, "--metric", "macro-f1", "--json")
    results = json.loads(done.out)
    assert (results["metric"], results["judged_by"], results["best"]) == ("macro-f1", "macro_f1", 1)
    path, posterior = (entry["macro_f1"]["mean"] for entry in results["settings"])
    assert path < posterior
    table = kcrf(*common, *grid, "--metric", "macro-f1").text
    assert "macro F1" in table and "judged by macro F1" in table
    assert "viterbi" in table.splitlines()[1] and table.splitlines()[2].split()[-3] == "posterior"

    losses = ["--grid", "sigma2=1e-9,1", "--metric", "log-loss"]
    results = json.loads(kcrf(*common, *losses, "--json").out)
    poor, good = (entry["log_loss"]["mean"] for entry in results["settings"])
    assert results["best"] == 1 and 0 < good < poor
    mixed = kcrf(*common, "--sigma2", 1, "--grid", "metric=accuracy,log-loss")
    assert mixed.code == 2 and "settings can be compared by one metric only, not by accuracy, log-loss" in mixed.err


@pytest.mark.slow
def test_evaluate_prints_the_metric_with_its_standard_error(kcrf, folder, model, tmp_path):
    test = folder / "test.conll"
    found = json.loads(kcrf("evaluate", "-m", model, test, "--json").out)
    assert found["metric"]["name"] == "accuracy" and found["metric"]["value"] == found["accuracy"]
    macro = json.loads(kcrf("evaluate", "-m", model, test, "--metric", "macro-f1", "--json").out)["metric"]
    assert macro["value"] == pytest.approx(found["macro_f1"], rel=1e-12)
    last = kcrf("evaluate", "-m", model, test, "--metric", "macro-f1").text.splitlines()[-1]
    assert last == (
        f"macro F1 of labels {100 * macro['value']:.2f} +- {100 * macro['standard_error']:.2f} "
        "(+- standard error over sequences)"
    )
    loss = json.loads(kcrf("evaluate", "-m", model, test, "--metric", "log-loss", "--json").out)
    assert loss["metric"]["value"] == pytest.approx(loss["calibration"]["log_loss"], rel=1e-12)

    (tmp_path / "tagged.conll").write_bytes(kcrf("tag", "-m", model, test).out)
    (tmp_path / "unknown.conll").write_text(re.sub(r"\S+$", "NEW", test.read_text(), flags=re.MULTILINE))
    for options, message in (
        ([tmp_path / "tagged.conll", "--metric", "log-loss"], "no probabilities of gold labels for a log-loss"),
        (["-m", model, tmp_path / "unknown.conll", "--metric", "log-loss"], "no position has a known gold label"),
        (["-m", model, test, "--metric", "f1"], "these labels are not spans"),
    ):
        done = kcrf("evaluate", *options)
        assert done.code in (2, 3) and message in done.err and len(done.err.splitlines()) == 1

    other = tmp_path / "other.npz"
    kcrf("train", folder / "train.conll", "--decode", "viterbi", "--metric", "macro-f1", "-o", other)
    compared = kcrf("evaluate", "-m", model, test, "--compare", other, "--metric", "accuracy")
    assert "the other: Viterbi" in compared.text and re.search("by accuracy (this is better|the diff)", compared.text)
    # A model that was trained by a metric is judged by it.
    assert "macro F1 of labels" in kcrf("evaluate", "-m", other, test).text.splitlines()[-1]


def test_files_without_a_decoder_are_those_of_earlier_versions(model, tmp_path):
    contents = read_container(model, "model")
    assert contents.header["decode"] == "posterior"
    path = tmp_path / "old.npz"
    old = {key: value for key, value in contents.header.items() if key != "decode"}
    write_container(path, "model", old, contents.arrays)
    assert Model.load(path).decode == "viterbi"


def test_a_file_with_an_unknown_decoder_is_refused(kcrf, folder, model, tmp_path):
    contents = read_container(model, "model")
    path = tmp_path / "odd.npz"
    write_container(path, "model", contents.header | {"decode": "beam"}, contents.arrays)
    done = kcrf("tag", "-m", path, folder / "test.conll")
    assert done.code == 4 and "'decode' names no decoder" in done.err


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """Sentences with a few names, which are spans more often than not."""
    path, rng = tmp_path_factory.mktemp("names") / "names.conll", np.random.default_rng(0)
    lines = []
    for _ in range(300):
        for _ in range(8):
            name = rng.random() < 0.08
            word = f"n{rng.integers(40)}" if name else f"w{rng.integers(300)}"
            lines.append(f"{word}\t{'B-X' if name and rng.random() < 0.6 else 'O'}")
        lines.append("")
    path.write_text("\n".join(lines))
    return path


def test_a_bonus_for_spans_from_training_to_labels(kcrf, names, tmp_path):
    path = tmp_path / "model.npz"
    done = kcrf("train", names, "--plain", "--sigma2", 0.3, "--span-bonus", 1.5, "-o", path)
    assert done.code == 0 and "Viterbi with a bonus of 1.5 for each span" in done.err
    assert Model.load(path).span_bonus == 1.5
    assert "decoder: Viterbi with a bonus of 1.5 for each span" in kcrf("inspect", path).text
    plain, own = (kcrf("tag", "-m", path, names, *more) for more in (("--span-bonus", 0), ()))
    assert (plain.err, own.err) == ("", "decoder: Viterbi with a bonus of 1.5 for each span (stored in the model)\n")
    assert plain.out == kcrf("tag", "-m", path, names, "--decode", "viterbi").out
    assert labels_of(own).count("B-X") > labels_of(plain).count("B-X")
    assert labels_of(kcrf("tag", "-m", path, names, "--sequence-probability")) != []
    found = json.loads(kcrf("evaluate", "-m", path, names, "--json").out)
    assert (found["decode"], found["span_bonus"]) == ("viterbi", 1.5)
    assert "decoder: Viterbi with a bonus of 1.5 for each span" in kcrf("evaluate", "-m", path, names).text
    best = kcrf("tag", "-m", path, names, "--nbest", 1)  # the most probable labelling
    assert [line.split("\t")[-1] for line in best.text.splitlines() if line and line[0] != "#"] == labels_of(plain)
    crf = KernelCRF.load(path)
    blocks = names.read_text().strip().split("\n\n")
    X = [[[line.split("\t")[0]] for line in block.split("\n")] for block in blocks]
    assert [label for labels in crf.predict(X) for label in labels] == labels_of(own)
    assert [label for labels in crf.set_params(span_bonus=0).predict(X) for label in labels] == labels_of(plain)
    for more in (("--decode", "posterior"), ("--cost", "X=2"), ("--nbest", 2), ("--lag", 1)):
        refused = kcrf("tag", "-m", path, names, "--span-bonus", 1, *more)
        assert refused.code == 2 and "span" in refused.err


@pytest.mark.slow
def test_training_chooses_a_bonus_by_f1(kcrf, names, tmp_path):
    path = tmp_path / "model.npz"
    kcrf("train", names, "--plain", "-o", path)
    assert " by Viterbi with a bonus)" in kcrf("inspect", path).text
    assert Model.load(path).span_bonus > 0
    kcrf("train", names, "--plain", "--decode", "viterbi", "-o", path)
    assert Model.load(path).span_bonus == 0


def test_a_bonus_needs_labels_of_spans(kcrf, folder, tmp_path):
    done = kcrf("train", folder / "easy.conll", "--span-bonus", 1, "-o", tmp_path / "model.npz")
    assert done.code == 2 and "'span_bonus' is for labels of spans" in done.err
