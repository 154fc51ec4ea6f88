"""Files with sets of labels and soft labels, through all commands."""

from __future__ import annotations

import json

import pytest

ROWS = "a\tX\nb\tY|Z\nc\tY\n\na\tX\nb\tY\n\nc\tX|Z\nb\tZ\n\n"
SOFT = ROWS.replace("Y|Z", "Y:0.7|Z:0.3").replace("X|Z", "X:1|Z:3")


@pytest.fixture(params=[("--label-sets", ROWS, "sets"), ("--soft-labels", SOFT, "soft")], ids=["sets", "soft"])
def data(request, tmp_path):
    option, rows, kind = request.param
    path = tmp_path / "half.conll"
    path.write_text(rows * 10)
    return path, (option, "--sigma2", 1, "--tolerance", 1e-5, "--precision", "double"), kind


def test_they_train_and_are_left_out_of_scores(kcrf, data, tmp_path):
    path, options, kind = data
    model = tmp_path / "m.npz"
    done = kcrf("train", path, *options, "-o", model)
    assert done.code == 0 and f"20 labels are {kind}; 10 sequences have one label at every position" in done.err
    assert ("certified: within" if kind == "soft" else "stationary point, no certificate") in done.err
    done = kcrf("evaluate", "-m", model, path, "--json")
    assert done.code == 0 and "20 gold labels are not observed or half known" in done.err
    assert json.loads(done.out)["positions"] == 50
    done = kcrf("train", path, *options, "--dev", path, "--json", "-o", model)
    assert "counted wrong" not in done.err and json.loads(done.out)["dev"]["unknown_gold"] == 0


def test_datasets_and_shards_train_as_text_does(kcrf, data, tmp_path):
    path, options, _ = data
    dataset, shards, found = tmp_path / "d.npz", tmp_path / "shards", []
    assert kcrf("featurize", path, options[0], "--shards", 3, "-q", "-o", shards).code == 0
    assert kcrf("featurize", path, options[0], "-q", "-o", dataset).code == 0
    assert json.loads(kcrf("inspect", dataset, "--json").out)["unobserved"] == 20
    for given in (path, dataset, shards):
        more = options if given == path else options[1:]
        done = kcrf("train", given, *more, "--json", "-q", "-o", tmp_path / "m.npz")
        assert done.code == 0, done.err
        found.append(json.loads(done.out)["objective"])
    assert found[1:] == pytest.approx([found[0]] * 2, rel=1e-4)


def test_errors_name_file_and_line(kcrf, data, tmp_path):
    _, options, kind = data
    bad = tmp_path / "bad.conll"
    bad.write_text("a\tO\nb\tB-X\n\na\tO\nb\t" + ("I-X:1|I-Y:1" if kind == "soft" else "I-X|I-Y") + "\n")
    done = kcrf("train", bad, *options, "--scheme", "iob2", "-q", "-o", tmp_path / "m.npz")
    assert done.code == 3 and f"{bad}:5: " in done.err and "no label is left" in done.err
    bad.write_text("a\tX\nb\tX|\n")
    done = kcrf("train", bad, *options, "-q", "-o", tmp_path / "m.npz")
    assert done.code == 3 and f"{bad}:2: " in done.err and options[0] in done.err


def test_a_set_has_no_mark_of_labels_that_are_not_observed(kcrf, tmp_path):
    (tmp_path / "marked.conll").write_text(ROWS + "a\tX|?\nb\t?\n")
    options = ("--label-sets", "--unobserved", "?", "--sigma2", 1, "-o", tmp_path / "m.npz")
    done = kcrf("train", tmp_path / "marked.conll", *options)
    assert done.code == 3 and "marked.conll:11: the label 'X|?' cannot be read: '?' in it is the mark of" in done.err
    assert not (tmp_path / "m.npz").exists()


def test_folds_need_labels(kcrf, data, tmp_path):
    path, options, _ = data
    config = tmp_path / "c.yaml"
    config.write_text(f"{options[0][2:].replace('-', '_')}: true\n")
    for command in ("crossval", "audit"):
        done = kcrf(command, path, "-c", config, "--sigma2", 1)
        assert done.code == 2 and "labels that are observed" in done.err
