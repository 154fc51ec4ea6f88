"""`kcrf guarantee`, and the thresholds in `tag`, `inspect` and `export`."""

from __future__ import annotations

import json

import numpy as np
import pytest

from kcrf_core import Model

WORDS = {"B-NP": "the a this", "I-NP": "dog cat bird tree", "O": "runs sleeps of tree the"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of 60 sequences to train on and of 200 and 100 others, with spans and words of several labels."""
    out, rng = tmp_path_factory.mktemp("guarantee"), np.random.default_rng(1)
    for name, count in (("train", 60), ("given", 200), ("new", 100)):
        lines = []
        for _ in range(count):
            for _ in range(rng.integers(2, 5)):
                for label in ("B-NP", "I-NP", "O"):
                    if label != "I-NP" or rng.random() < 0.6:
                        own = WORDS[label if rng.random() < 0.4 else "O"].split()
                        lines.append(f"{rng.choice(own)} {rng.integers(1000)} {label}")
            lines.append("")
        (out / f"{name}.conll").write_text("\n".join(lines))
    return out


@pytest.fixture(scope="module")
def model_bytes():
    return {}


@pytest.fixture
def model(kcrf, folder, tmp_path, model_bytes):
    path = tmp_path / "model.npz"
    if not model_bytes:
        done = kcrf("train", folder / "train.conll", "--plain", "--sigma2", "1", "--threads", "1", "-o", path)
        assert done.code == 0, done.err
        model_bytes["model"] = path.read_bytes()
    path.write_bytes(model_bytes["model"])
    return path


def tagged(kcrf, model, data, *more):
    done = kcrf("tag", "-m", model, data, *more)
    assert done.code == 0, done.err
    return [line.split(" ") for line in done.text.split("\n") if line]


def test_thresholds_are_stored_and_used(kcrf, folder, model):
    done = kcrf("guarantee", model, folder / "given.conll", "--risk", "0.05", "--sets", "0.95", "--json")
    assert done.code == 0, done.err
    risk, sets = json.loads(done.text)["guarantees"]
    assert risk["kind"] == "risk" and risk["sequences"] == 200 and risk["risk"] <= 0.05 < risk["wrong"]
    stored = Model.load(model).guarantees
    assert stored["review"].threshold == risk["threshold"] and stored["sets"].threshold == sets["threshold"]
    # The marks of `tag` on the same data are those that were counted, and follow from what it prints.
    rows = tagged(kcrf, model, folder / "given.conll", "--review", "--sets", "--marginals", "all")
    marked = 0
    for *_, gold, review, label_set, first, second, third, label in rows:
        p = dict(one.rsplit(":", 1) for one in (first, second, third))
        assert review == ("review=yes" if float(p[label]) <= risk["threshold"] + 5e-7 else "review=no")
        names = label_set.removeprefix("set=").split("|")
        assert set(names) == {name for name in p if float(p[name]) >= sets["threshold"] - 5e-7} | {label}
        marked += review == "review=yes"
        assert gold in p
    assert marked == risk["marked"] and 0 < marked < len(rows) == risk["items"]
    sizes = [row[-5].count("|") + 1 for row in rows]
    assert np.mean(sizes) == pytest.approx(sets["mean_size"], rel=1e-12) and max(sizes) > 1
    # Other data, by the definition of the loss; 0.05 and some chance.
    losses = []
    for sequence in kcrf("tag", "-m", model, folder / "new.conll", "--review").text.strip().split("\n\n"):
        cells = [line.split(" ") for line in sequence.split("\n")]
        losses.append(np.mean([row[-1] != row[2] and row[-2] == "review=no" for row in cells]))
    assert len(losses) == 100 and 0 < np.mean(losses) < 0.08


def test_forms_of_the_output(kcrf, folder, model):
    assert kcrf("guarantee", model, folder / "given.conll", "--risk", "0.02", "--sets", "0.99", "-q").code == 0
    new, plain = folder / "new.conll", tagged(kcrf, model, folder / "new.conll")
    rows = tagged(kcrf, model, new, "--review", "--sets", "--max-set", "1", "--sequence-probability")
    assert [[*row[:3], row[-1]] for row in rows] == plain  # labels are the same
    assert {row[3][:12] for row in rows} == {"probability="} and {row[4] for row in rows} == {"review=yes", "review=no"}
    assert "set=*" in {row[5] for row in rows} and all(row[5] in ("set=*", f"set={row[-1]}") for row in rows)
    lines = [
        json.loads(line)
        for line in kcrf("tag", "-m", model, new, "--review", "--sets", "--json-lines").text.split("\n")
        if line
    ]
    assert [mark for line in lines for mark in line["review"]] == [row[4] == "review=yes" for row in rows]
    assert all(label in names for line in lines for label, names in zip(line["labels"], line["sets"], strict=True))
    scores = [
        kcrf("evaluate", "-", stdin=kcrf("tag", "-m", model, new, *more).out).text
        for more in ([], ["--review", "--sets"])
    ]
    assert scores[0] == scores[1] != ""
    assert (
        kcrf("tag", "-m", model, new, "--review", "--threads", "2").out == kcrf("tag", "-m", model, new, "--review").out
    )


def test_marks_of_texts(kcrf, sample_data, tmp_path):
    text = (sample_data / "addresses.conll").read_text().strip().split("\n\n")
    (tmp_path / "train.conll").write_text("\n\n".join(text[:60]) + "\n")
    wrong = [one.replace("\tCity", "\tStreet") if number % 4 == 0 else one for number, one in enumerate(text[60:])]
    (tmp_path / "rest.conll").write_text("\n\n".join(wrong) + "\n")
    model = tmp_path / "m.npz"
    assert kcrf("train", tmp_path / "train.conll", "--sigma2", "1", "-q", "-o", model).code == 0
    assert kcrf("guarantee", model, tmp_path / "rest.conll", "--risk", "0.02", "-q").code == 0
    asked = ("tag", "-m", model, "--text", "--review")
    found = json.loads(kcrf(*asked, "--to", "json", stdin=b"221 Baker Qwerty\n").text)
    columns = kcrf(*asked, stdin=b"221 Baker Qwerty\n").text.strip().split("\n")
    marked = [line.split("\t")[0] for line in columns if "\treview=yes\t" in line]
    assert marked and [found["text"][one["start"] : one["end"]] for one in found["review"]] == marked
    # Marks of an earlier labelling are replaced, or dropped where none are asked for; other keys stay.
    earlier = {**found, "review": [{"start": 0, "end": 3}, {"start": 4, "end": 9}], "id": 5}
    (tmp_path / "earlier.jsonl").write_text(json.dumps(earlier) + "\n" + json.dumps({**earlier, "review": "good"}))
    again = ("tag", "-m", model, tmp_path / "earlier.jsonl", "--to", "json")
    objects = [json.loads(line) for line in kcrf(*again, "--review").text.splitlines()]
    assert objects == [{**found, "id": 5}] * 2
    objects = [json.loads(line) for line in kcrf(*again).text.splitlines()]
    plain = {key: value for key, value in found.items() if key != "review"} | {"id": 5}
    assert objects == [plain, {**plain, "review": "good"}]
    done = kcrf(*asked, "--to", "xml", stdin=b"221 Baker\n")
    assert done.code == 2 and "--to xml writes labelled parts alone: it does not go with --review" in done.err


def test_marks_under_rules_are_those_that_were_counted(kcrf, folder, tmp_path):
    rules = ("--forbid", "unseen", "--at-most", "O=3", "--when-impossible", "keep")  # not of four groups
    done = kcrf("train", folder / "train.conll", "--plain", "--sigma2", "1", *rules, "-q", "-o", tmp_path / "m.npz")
    assert done.code == 0, done.err
    for of in ("position", "span"):
        asked = ("guarantee", tmp_path / "m.npz", folder / "given.conll", "--risk", "0.05", "--of", of, "--json", "-q")
        found = json.loads(kcrf(*asked).text)["guarantees"][0]
        rows = tagged(kcrf, tmp_path / "m.npz", folder / "given.conll", "--review", "-q")
        marked = [row[-1] for row in rows if row[-2] == "review=yes"]
        assert 0 < found["marked"] == (len(marked) if of == "position" else marked.count("B-NP"))


def test_spans(kcrf, folder, model):
    done = kcrf("guarantee", model, folder / "given.conll", "--risk", "0.05", "--of", "span", "--json")
    found = json.loads(done.text)["guarantees"][0]
    assert found["of"] == "span" and found["items"] > found["marked"] > 0
    marks = {}
    for row in tagged(kcrf, model, folder / "new.conll", "--review"):
        marks.setdefault(row[-1], set()).add(row[-2])
    assert marks["B-NP"] == {"review=yes", "review=no"} and marks["O"] == {"review=no"}


def test_among_unmarked(kcrf, folder, model):
    done = kcrf("guarantee", model, folder / "given.conll", "--risk", "0.1", "--among-unmarked", "--json")
    found = json.loads(done.text)["guarantees"][0]
    assert found["kind"] == "among-unmarked" and found["among_unmarked"] <= 0.1 < found["wrong"] + 0.05
    done = kcrf("guarantee", model, folder / "given.conll", "--risk", "0.001", "--among-unmarked")
    assert done.code == 3 and "200 sequences, and a level of 0.001 needs at least 3,197" in done.err


def test_data_that_cannot_give_a_threshold_is_refused(kcrf, folder, model, tmp_path):
    before = model.read_bytes()

    def refused(code, message, data, *more):
        done = kcrf("guarantee", model, data, *more)
        assert done.code == code and message in done.err, done.err
        assert model.read_bytes() == before

    given = folder / "given.conll"
    refused(3, "200 sequences, and a level of 0.001 needs at least 999", given, "--risk", "0.001")
    refused(3, "60 sequences were in the training data of the model", folder / "train.conll", "--risk", "0.05")
    mixed = tmp_path / "mixed.conll"
    training = folder.joinpath("train.conll").read_text().split("\n\n")
    mixed.write_text("\n\n".join([*training[:3], given.read_text()]))  # 3 of 203 sequences, fewer if short
    refused(3, "were in the training data", mixed, "--risk", "0.05")
    unknown = tmp_path / "unknown.conll"
    unknown.write_text(given.read_text().replace(" B-NP", " B-XP"))
    refused(3, "of the labels are unknown to the model", unknown, "--sets", "0.95")
    bare = tmp_path / "bare.conll"
    bare.write_text("\n".join(line.rpartition(" ")[0] for line in given.read_text().split("\n")))
    refused(3, "no gold labels that the model knows", bare, "--risk", "0.05")
    bare.write_text(given.read_text().replace("-NP", "-XP").replace(" O\n", " B-XP\n"))
    refused(3, "no gold labels that the model knows", bare, "--risk", "0.05")
    refused(2, "nothing to guarantee", given)
    refused(2, "--among-unmarked and --of need --risk", given, "--sets", "0.9", "--among-unmarked")
    # Labels that the model does not know are wrong, whatever it predicts.
    done = kcrf("guarantee", model, unknown, "--risk", "0.05", "--json", "-o", tmp_path / "other.npz")
    assert done.code == 0 and model.read_bytes() == before
    assert json.loads(done.text)["guarantees"][0]["wrong"] > 0.3 and Model.load(tmp_path / "other.npz").guarantees


def test_a_model_without_hashes_is_warned_of(kcrf, folder, tmp_path):
    options = ("--plain", "--sigma2", "1", "--omit-hashes", "-q", "-o", tmp_path / "m.npz")
    assert kcrf("train", folder / "train.conll", *options).code == 0
    done = kcrf("guarantee", tmp_path / "m.npz", folder / "train.conll", "--risk", "0.05")
    assert done.code == 0 and "the model has no hashes of its training data" in done.err


def test_tag_refuses_what_thresholds_do_not_hold_for(kcrf, folder, model):
    new = folder / "new.conll"
    done = kcrf("tag", "-m", model, new, "--review")
    remedy = "the model has no threshold: `kcrf guarantee` finds one with 'risk' (kcrf guarantee --risk)"
    assert done.code == 2 and remedy in done.err
    assert kcrf("tag", "-m", model, new, "--sets").code == 2
    assert kcrf("guarantee", model, folder / "given.conll", "--risk", "0.05", "-q").code == 0
    others = ["--decode", "posterior"], ["--lag", "0"], ["--force"], ["--cost", "O=2"], ["--at-most", "O=1"]
    for more in (*others, ["--tokens", "words"]):
        done = kcrf("tag", "-m", model, new, "--review", *more)
        assert done.code == 2 and f"leave out {more[0]}" in done.err, done.err


def test_inspect_and_export(kcrf, folder, model, tmp_path):
    assert kcrf("guarantee", model, folder / "given.conll", "--risk", "0.05", "--sets", "0.9", "-q").code == 0
    text = kcrf("inspect", model, "--top", "0").text
    assert "guarantee: at most 5 % of the positions are wrong and not marked, in expectation (threshold 0." in text
    assert "guarantee: at most 10 % of the labels lie outside their sets, in expectation" in text
    assert set(json.loads(kcrf("inspect", model, "--json").text)["guarantees"]) == {"review", "sets"}
    done = kcrf("export", model, "-o", tmp_path / "m.kcrf")
    assert done.code == 0 and "thresholds of `kcrf guarantee` are left out" in done.err
    # A new fit has none.
    again = tmp_path / "again.npz"
    assert kcrf("train", folder / "train.conll", "--init", model, "--sigma2", "1", "-q", "-o", again).code == 0
    assert not Model.load(again).guarantees
