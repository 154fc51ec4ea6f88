"""Hashes of training sequences in models, and what evaluate and crossval say by them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from kcrf_core import KernelCRF, Model


@pytest.fixture
def parts(sample_data, tmp_path):
    """Files of 30 sequences to train on, of 10 others and a short one of those, and of these and 10 of those."""
    sequences = (sample_data / "pitch_accent.conll").read_text().strip().split("\n\n")[:40]
    sequences[0] = "\n".join(sequences[0].split("\n")[:4])
    rest = [*sequences[30:], sequences[0]]
    for name, own in {"train": sequences[:30], "rest": rest, "both": [*rest[:5], *sequences[1:11], *rest[5:]]}.items():
        (tmp_path / f"{name}.conll").write_text("\n\n".join(own) + "\n")
    return tmp_path


def trained(kcrf, folder, *more, data="train.conll"):
    done = kcrf("train", folder / data, "-o", folder / "m.npz", "--sigma2", "1", "--threads", "1", *more)
    assert done.code == 0, done.err
    return Model.load(folder / "m.npz").trained_on


def scored(kcrf, folder, data):
    done = kcrf("evaluate", "-m", folder / "m.npz", folder / data, "--json")
    assert done.code == 0, done.err
    return json.loads(done.text), done.err


def test_evaluate_says_how_many_sequences_were_trained_on(kcrf, parts):
    trained(kcrf, parts)
    rest, told = scored(kcrf, parts, "rest.conll")  # the short sequence counts as new
    assert "training data" not in told and "trained_on" not in rest
    found, told = scored(kcrf, parts, "both.conll")
    accuracy = f"{100 * rest['accuracy']:.2f}"
    assert f"10 of 21 sequences were in the training data (without them accuracy {accuracy} %)\n" in told
    assert found["trained_on"] == {"sequences": 10, "accuracy_without": rest["accuracy"], "f1_without": None}
    assert "29 of 30 sequences were in the training data (without" in scored(kcrf, parts, "train.conll")[1]
    # Encoded data, too; labels do not count.
    text = (parts / "both.conll").read_text()
    (parts / "other.conll").write_text(text.replace("\t1\n", "\t0\n").replace(" 1\n", " 0\n"))
    assert "10 of 21 sequences" in scored(kcrf, parts, "other.conll")[1]
    like = ("--like", parts / "m.npz")
    assert kcrf("featurize", parts / "both.conll", *like, "-o", parts / "both.npz").code == 0
    assert "10 of 21 sequences" in scored(kcrf, parts, "both.npz")[1]


def test_hashes_are_those_of_the_text_however_it_is_read(kcrf, parts):
    found = trained(kcrf, parts)
    assert found.dtype == np.uint64 and len(found) == 30 and (np.diff(found) > 0).all()
    assert np.array_equal(trained(kcrf, parts, "--threads", "2"), found)
    assert kcrf("featurize", parts / "train.conll", "-o", parts / "data.npz").code == 0
    assert np.array_equal(trained(kcrf, parts, data="data.npz"), found)
    assert kcrf("featurize", parts / "train.conll", "-o", parts / "shards/", "--shards", "3").code == 0
    assert np.array_equal(trained(kcrf, parts, data="shards"), found)
    assert trained(kcrf, parts, "--omit-hashes") is None
    assert "training data" not in scored(kcrf, parts, "both.conll")[1]


def test_sequences_without_weight_are_not_trained_on(tmp_path):
    X = [[{"w": f"{s}-{t}"} for t in range(6)] for s in range(4)]
    y = [["a", "b"] * 3] * 4
    crf = KernelCRF(c2=1.0).fit(X, y, sample_weight=[1, 0, 2, 1])
    crf.save(tmp_path / "m.npz")
    assert len(Model.load(tmp_path / "m.npz").trained_on) == 3
    assert KernelCRF(c2=1.0, omit_hashes=True).fit(X, y).model_.trained_on is None


def test_crossval_says_how_many_sequences_both_parts_have(kcrf, parts):
    text = (parts / "train.conll").read_text()
    (parts / "twice.conll").write_text(text + "\n" + "\n\n".join(text.strip().split("\n\n")[:10]) + "\n")
    arguments = ("crossval", parts / "twice.conll", "--sigma2", "1", "--threads", "1", "--json")
    done = kcrf(*arguments, "--folds", "2")
    assert done.code == 0 and "training data" not in done.err and "trained_on" not in json.loads(done.text)["pooled"]
    (parts / "folds.txt").write_text("0\n" * 20 + "1\n" * 20)
    done = kcrf(*arguments, "--folds-file", parts / "folds.txt")
    assert done.code == 0 and json.loads(done.text)["pooled"]["trained_on"]["sequences"] == 18
    assert "18 of 40 sequences were in the training data of their fold, too (without them accuracy" in done.err
