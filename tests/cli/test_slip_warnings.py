"""What commands say of labels that look like slips, and what they score beside them."""

from __future__ import annotations

import json

import pytest

SENTENCE = ["mr B-PER", "smith I-PER", "sees O", "{} B-LOC"]


@pytest.fixture
def data(tmp_path):
    """A file with a slip in its third line, and one without."""
    rows = ["\n".join(SENTENCE).format(name) + "\n" for name in ("paris", "rome", "lyon") * 20]
    clean, slip = tmp_path / "clean.conll", tmp_path / "slip.conll"
    clean.write_text("\n".join(rows))
    slip.write_text("\n".join([rows[0].replace("sees O", "sees 0"), *rows[1:]]))
    return clean, slip


SAID = "warning: 1 of 240 labels is not of the scheme iob2, and it is counted as O for spans: '0' in line 3\n"


def test_train_tells_of_a_slip_and_chooses_by_spans(kcrf, data, tmp_path):
    model = tmp_path / "model.npz"
    done = kcrf("train", data[1], "-o", model, "--json")
    assert done.code == 0 and SAID in done.err and "5 labels (0, B-LOC, B-PER, I-PER, O)" in done.err
    assert json.loads(done.out)["metric"] == "f1"
    clean = kcrf("evaluate", "-m", model, data[0], "--json")
    assert clean.code == 0 and "counted as O" not in clean.err
    assert json.loads(clean.out)["spans"]["f1"] == 1.0


def test_evaluate_scores_spans_beside_a_slip(kcrf, data, tmp_path):
    model = tmp_path / "model.npz"
    assert kcrf("train", data[0], "-o", model, "--sigma2", "1", "-q").code == 0
    for options in ((), ("--scheme", "iob2")):
        done = kcrf("evaluate", "-m", model, data[1], "--json", *options)
        assert done.code == 0
        said = f"warning: {data[1]}: 1 of 240 gold labels is not of the scheme iob2, and it is counted as O for spans"
        assert f"{said}: '0' in line 3\n" in done.err
        found = json.loads(done.out)
        assert found["spans"]["f1"] == 1.0 and found["odd_labels"] == ["0"]
        assert found["correct"] == 239 and found["unknown_gold"] == 1


def test_evaluate_tells_of_predicted_slips_of_both_systems(kcrf, data, tmp_path):
    rows = data[0].read_text().split("\n")
    tagged = [f"{row} {row.split()[1]}" if row else "" for row in rows]
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("\n".join(tagged))
    tagged[2] = "sees O o"
    second.write_text("\n".join(tagged))
    for files in ((second, first), (first, second)):
        done = kcrf("evaluate", files[0], "--compare", files[1], "--json")
        assert done.code == 0
        assert done.err == (
            f"warning: {second}: 1 of 240 predicted labels is not of the scheme iob2, and it is counted as O for "
            "spans: 'o' in line 3\n"
        )
        found = json.loads(done.out)
        assert found["spans"]["f1"] == found["comparison"]["figures"]["f1"]["second"] == 1.0


def test_evaluate_tells_where_spans_are_lost(kcrf, data, tmp_path):
    model, lower = tmp_path / "model.npz", tmp_path / "lower.conll"
    assert kcrf("train", data[0], "-o", model, "--sigma2", "1", "-q").code == 0
    lower.write_text(data[0].read_text().replace(" I-PER", " i-PER"))
    done = kcrf("evaluate", "-m", model, lower)
    assert done.code == 0 and "F1 of labels" in done.text
    said = "gold labels such as 'B-PER' are those of spans, but 60 of 240 are not, so that no spans are scored: 'i-PER'"
    assert f"warning: {lower}: {said} (60, first in line 2)\n" in done.err
    assert "no spans" not in kcrf("evaluate", "-m", model, lower, "--scheme", "none").err


def test_crossval_and_tune_tell_of_a_slip_and_choose_by_spans(kcrf, data, tmp_path):
    done = kcrf(
        "crossval",
        data[1],
        "--folds",
        "3",
        "--sigma2",
        "1",
        "--json",
        "-o",
        tmp_path / "folds.json",
    )
    assert done.code == 0 and done.err.startswith(SAID)
    assert json.loads(done.out)["metric"] == "f1"
    done = kcrf("tune", data[1], "--effort", "small", "-o", tmp_path / "tuned.yaml", "--json")
    assert done.code == 0 and done.err.startswith(SAID)
    assert json.loads(done.out)["metric"] == "f1"


def test_labels_in_the_first_column_are_told(kcrf, data, tmp_path):
    turned = tmp_path / "turned.conll"
    turned.write_text("\n".join(" ".join(reversed(row.split())) for row in data[0].read_text().split("\n")))
    said = "warning: the last column is taken for the label, and the first one (c0) has labels of spans"
    done = kcrf("train", turned, "-o", tmp_path / "model.npz", "--sigma2", "1")
    assert done.code == 0 and said in done.err
    done = kcrf("crossval", turned, "--folds", "2", "--sigma2", "1", "-o", tmp_path / "folds.json")
    assert done.code == 0 and said in done.err


def test_guarantees_of_spans_count_a_slip_as_outside(kcrf, data, tmp_path):
    model = tmp_path / "model.npz"
    train = tmp_path / "train.conll"
    train.write_text(data[0].read_text().replace("lyon", "nice"))
    assert kcrf("train", train, "-o", model, "--sigma2", "1", "-q").code == 0
    reports = []
    for path in data:
        others = tmp_path / "others.conll"
        others.write_text(path.read_text().replace("paris", "oslo").replace("rome", "bonn"))
        done = kcrf(
            "guarantee",
            model,
            others,
            "--risk",
            "0.05",
            "--of",
            "span",
            "--json",
            "-o",
            tmp_path / "out.npz",
        )
        assert done.code == 0, done.err
        reports.append(json.loads(done.out)["guarantees"][0])
    assert "1 of 240 gold labels is not of the scheme iob2" in done.err
    assert reports[0] == reports[1]


def test_tags_of_spans_leave_out_odd_labels(kcrf, tmp_path):
    path, model = tmp_path / "data.conll", tmp_path / "model.npz"
    sentence = "\n".join(SENTENCE).format("paris")
    path.write_text("\n\n".join([sentence] * 120 + ["odd x\nit O"] * 3) + "\n")
    done = kcrf("train", path, "-o", model, "--sigma2", "100", "--span-bonus", "0.5")
    assert done.code == 0 and "3 of 486 labels are not of the scheme iob2" in done.err
    assert kcrf("tag", "-m", model, "--text", stdin=b"odd it\n").text == "odd\tx\nit\tO\n\n"
    done = kcrf("tag", "-m", model, "--text", "--to", "json", stdin=b"odd it\nmr smith sees paris\n")
    assert [[span["label"] for span in json.loads(line)["spans"]] for line in done.text.split("\n")[:2]] == [
        [],
        ["PER", "LOC"],
    ]
    assert kcrf("tag", "-m", model, path, "--scheme", "iob2").text.startswith("mr B-PER B-PER\n")
    ruled = kcrf("tag", "-m", model, path, "--at-most", "PER=0").text.split("\n")
    assert {row.split()[-1] for row in ruled if row} == {"B-LOC", "O", "x"}
