"""`kcrf next`: sequences to label, in the form of the pool and of labelling tools, which comes back unchanged."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kcrf_core.corpora import Layout, read_corpus

NAMES = """Anna B-PER
Berg I-PER
lives O
in O
Oslo B-LOC

Oslo B-LOC
Bergen B-LOC
and O
Rome B-LOC

we O
met O
Anna B-PER
Lake I-PER
in O
Rome B-LOC
"""
ADDRESSES = "10 Number\nElm Street\nRd Street\nOslo City\n\n7 Number\nLake Street\nRome City\n"
# Tokens with a space in them, and a character that JavaScript counts twice.
POOL = ["Rome\nand\nNew York\nmet\n😀\nAnna\nBerg\n", "we\nlive\nin\nBergen\n", "Berg\nmet\nLake\n"]


@pytest.fixture
def model(kcrf, tmp_path):
    def train(content: str, *options: str) -> Path:
        (tmp_path / "train.conll").write_text("\n".join([content.replace(" ", "\t")] * 4))
        options = ("--plain", "--near-copies", "ignore", "--sigma2", 30, "-o", tmp_path / "m.npz", "-q", *options)
        assert kcrf("train", tmp_path / "train.conll", *options).code == 0
        return tmp_path / "m.npz"

    return train


def write(path: Path, sequences, end: str = "\t?") -> Path:
    path.write_text("\n".join("".join(f"{line}{end}\n" for line in own.split("\n") if line) for own in sequences))
    return path


def rows(path, **layout) -> list[list[tuple[str, ...]]]:
    corpus = read_corpus(path, layout=Layout(**layout))
    table = list(zip(*(list(column) for column in corpus.columns), strict=True))
    return [table[a:b] for a, b in zip(corpus.offsets[:-1], corpus.offsets[1:], strict=True)]


def accepted(path: Path) -> Path:
    """A file of Label Studio after a person has accepted all suggestions."""
    tasks = json.loads(path.read_text())
    for number, task in enumerate(tasks):
        result = [{**one, "origin": "prediction"} for one in task.pop("predictions")[0]["result"]]
        task |= {"id": number, "annotations": [{"id": number, "was_cancelled": False, "result": result}]}
    path.write_text(json.dumps(tasks))
    return path


@pytest.mark.parametrize("labels", [NAMES, ADDRESSES])
@pytest.mark.parametrize("tool", ["labelstudio", "doccano", "prodigy", "brat"])
def test_what_goes_out_comes_back(kcrf, model, tmp_path, tool, labels):
    trained, pool = model(labels), write(tmp_path / "pool.conll", POOL)
    columns = kcrf("next", pool, "-m", trained, "--to", "columns", "-o", tmp_path / "columns.conll")
    assert columns.code == 0
    out = tmp_path / ("out.ann" if tool == "brat" else "out.json")
    assert kcrf("next", pool, "-m", trained, "--to", tool, "-o", out, "-q").code == 0
    layout = {}
    if tool == "labelstudio":
        # Suggestions are no labels.
        assert [[len(row) for row in sequence] for sequence in rows(out)] == [[1] * 7, [1] * 4, [1] * 3]
        accepted(out)
    if tool == "doccano":  # keeps other keys in `meta`
        tasks = [json.loads(line) for line in out.read_text().splitlines()]
        tasks = [{"id": 1, "text": one.pop("text"), "label": one.pop("label"), "meta": one} for one in tasks]
        out.write_text("".join(f"{json.dumps(one)}\n" for one in tasks))
    if tool == "brat":  # has neither tokens nor kinds of labels
        layout = {"tokens": r"New York|\S+", "span_labels": "names" if labels == ADDRESSES else None}
    found, expected = rows(out, **layout), rows(tmp_path / "columns.conll")
    assert found == expected
    assert sorted(map(len, found)) == [3, 4, 7]
    assert len({row[-1] for sequence in found for row in sequence}) >= 3


@pytest.mark.parametrize("tool", ["labelstudio", "doccano", "prodigy"])
def test_texts_without_labels_come_back_without(kcrf, tmp_path, tool):
    (tmp_path / "pool.txt").write_text("Où est-il ?\n\n9 Elm St.\n")
    out = tmp_path / "out.json"
    found = kcrf("next", tmp_path / "pool.txt", "--text", "--tokens", "words", "--to", tool, "-o", out)
    assert found.code == 0, found.err
    words = sorted([word for (word,) in own] for own in rows(out))
    assert words == [["9", "Elm", "St", "."], ["Où", "est", "-", "il", "?"]]
    assert kcrf("next", out, "--to", "doccano", "-n", 1).text.count("\n") == 1  # a pool itself


def test_tokens_of_texts_come_back_with_their_labels(kcrf, model, tmp_path):
    trained = model(NAMES, "--tokens", "words")
    (tmp_path / "pool.txt").write_text("Anna Berg, Oslo.\n")
    out = tmp_path / "tasks.json"
    assert kcrf("next", tmp_path / "pool.txt", "--text", "-m", trained, "--to", "labelstudio", "-o", out).code == 0
    task = json.loads(out.read_text())[0]
    for region in task["predictions"][0]["result"]:
        value = region["value"]
        assert task["data"]["text"][value["start"] : value["end"]] == value["text"]
        assert 0 < region["score"] <= 1
    ((*found,),) = rows(accepted(out))
    assert [word for word, _ in found] == ["Anna", "Berg", ",", "Oslo", "."]
    assert [label for _, label in found][:2] == ["B-PER", "I-PER"]


def test_texts_that_a_person_has_labelled_are_left_out(kcrf, model, tmp_path):
    trained = model(NAMES)
    tasks = [{"data": {"text": text}} for text in ("Anna lives here", "Oslo and Rome", "in Berg")]
    tasks[1]["annotations"] = [{"result": []}]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    found = kcrf("next", tmp_path / "export.json", "-m", trained, "--to", "doccano")
    assert sorted(json.loads(line)["text"] for line in found.text.splitlines()) == ["Anna lives here", "in Berg"]
    assert "1 sequence is labelled" in found.err


def test_texts_of_doccano_with_empty_lists_are_labelled_unless_an_option_tells(kcrf, model, tmp_path):
    trained, pool = model(NAMES), tmp_path / "export.jsonl"
    pool.write_text('{"text": "Anna lives", "label": []}\n{"text": "in Berg", "label": []}\n')
    found = kcrf("next", pool, "-m", trained)
    assert found.code == 3
    assert "2 texts with empty lists of labels are labelled, all O (--empty-labels)" in found.err
    for options in (("-m", trained), ()):
        found = kcrf("next", pool, "--empty-labels", "unlabelled", *options)
        assert sorted(json.loads(line)["text"] for line in found.text.splitlines()) == ["Anna lives", "in Berg"]
        assert "warning" not in found.err
    pool.write_text('{"text": "Anna lives", "label": [[0, 4, "PER"]]}\n{"text": "in Berg", "label": []}\n')
    scored = [kcrf("evaluate", "-m", trained, pool, *options) for options in ((), ("--empty-labels", "unlabelled"))]
    assert ["of 4 positions" in one.text for one in scored] == [True, False]
    assert "1 text without labels is left out" in scored[1].err
    assert "--empty-labels" in kcrf("guarantee", trained, pool, "--sets", "0.5", "-o", tmp_path / "g.npz").err
    again = kcrf("train", pool, "--empty-labels", "unlabelled", "--sigma2", "1", "-o", tmp_path / "m.npz")
    assert "1 sequence, 2 positions" in again.err
    assert "of 2 positions" in kcrf("evaluate", "-m", tmp_path / "m.npz", pool).text  # models keep it


def test_labels_that_are_known_are_kept(kcrf, model, tmp_path):
    trained = model(NAMES)
    pool = tmp_path / "pool.conll"
    pool.write_text("Anna\tB-LOC\nlives\t?\n\nin\tO\nOslo\tB-LOC\n\nBerg\t?\n")
    found = kcrf("next", pool, "-m", trained)
    assert re.search("(?m)^Anna\tB-LOC\nlives\t(O|[BI]-...)\n\n", found.text)
    assert "Oslo" not in found.text
    pool.write_text("Anna\tB-PER\n")
    assert kcrf("next", pool, "-m", trained).code == 3


def test_labels_that_the_model_does_not_know_are_kept_and_not_missing(kcrf, model, tmp_path):
    trained, pool = model(NAMES), tmp_path / "pool.conll"
    pool.write_text("Anna\tB-LOC\nlives\tX\n\nBerg\t?\nlives\tX\nVolvo\tB-ORG\nV70\tI-ORG\n")
    found = kcrf("next", pool, "-m", trained)
    assert found.code == 0
    assert re.fullmatch("Berg\t(O|[BI]-...)\nlives\tX\nVolvo\tB-ORG\nV70\tI-ORG\n\n", found.text)
    assert f"{pool}: 4 labels are unknown to the model (B-ORG, I-ORG, X), and kept\n" in found.err
    assert f"{pool}: 1 sequence is labelled or known to the model, and left out\n" in found.err
    found = kcrf("next", pool, "-m", trained, "--to", "doccano")
    assert [11, 20, "ORG"] in json.loads(found.text)["label"]
    # All of them are labelled.
    pool.write_text("Anna\tX\nlives\tX\n")
    done = kcrf("next", pool, "-m", trained)
    assert done.code == 3 and "2 labels are unknown to the model (X)" in done.err and "no sequence to label" in done.err


def test_lines_keep_their_format(kcrf, model, tmp_path):
    trained = model(NAMES)
    (tmp_path / "plain.conll").write_bytes(b"\xef\xbb\xbfAnna\r\nmet\r\n\r\n \r\nRome\r\n")
    found = kcrf("next", tmp_path / "plain.conll", "-m", trained, "-n", 2)
    assert re.sub(rb"O|[BI]-...", b"*", found.out) in (
        b"Anna *\r\nmet *\r\n\nRome *\r\n\n",
        b"Rome *\r\n\nAnna *\r\nmet *\r\n\n",
    )
    frame = tmp_path / "train.csv"
    frame.write_text(
        "doc,word,label\n" + "".join(f"1,{a},{b}\n" for a, b in map(str.split, NAMES.split("\n\n")[0].splitlines()))
    )
    options = ("--sequence", "doc", "--sigma2", 1, "-o", tmp_path / "csv.npz", "-q")
    assert kcrf("train", frame, *options).code == 0
    (tmp_path / "pool.csv").write_text('doc,word\n1,"a ""b"""\n1,Oslo\n2,Berg\n')
    found = kcrf("next", tmp_path / "pool.csv", "-m", tmp_path / "csv.npz").text.splitlines()
    assert found[0] == "doc,word,predicted"
    assert sorted(line.rpartition(",")[0] for line in found[1:]) == ['1,"a ""b"""', "1,Oslo", "2,Berg"]


def test_attribute_files_and_conllu_keep_their_lines(kcrf, tmp_path, sample_data):
    text = (sample_data / "sentences.conllu").read_text().split("\n\n")
    (tmp_path / "train.conllu").write_text("\n\n".join(text[:20]) + "\n\n")
    unlabelled = [re.sub(r"(?m)^(\d+\t[^\t]*\t[^\t]*)\t[^\t]*", r"\1\t_", own) for own in text[20:25]]
    (tmp_path / "pool.conllu").write_text("\n\n".join(unlabelled) + "\n\n")
    assert kcrf("train", tmp_path / "train.conllu", "--sigma2", 1, "-o", tmp_path / "m.npz", "-q").code == 0
    found = kcrf("next", tmp_path / "pool.conllu", "-m", tmp_path / "m.npz", "-n", 2)
    (tmp_path / "back.conllu").write_bytes(found.out)
    back = read_corpus(tmp_path / "back.conllu")
    assert back.sequences == 2
    assert "_" not in set(back.columns[-1])
    assert found.text.startswith("#") == text[20].startswith("#")
    (tmp_path / "a.crfsuite").write_text("x\tw=a\ny\tw=b\n\ny\tw=b\nx\tw=a\n")
    (tmp_path / "b.crfsuite").write_text("?\tw=a\n?\tw=c\n")
    assert kcrf("train", tmp_path / "a.crfsuite", "--sigma2", 1, "-o", tmp_path / "a.npz", "-q").code == 0
    assert kcrf("next", tmp_path / "b.crfsuite", "-m", tmp_path / "a.npz").text in (
        "x\tw=a\ny\tw=c\n\n",
        "x\tw=a\nx\tw=c\n\n",
    )
    refused = kcrf("next", tmp_path / "b.crfsuite", "-m", tmp_path / "a.npz", "--to", "doccano")
    assert refused.code == 2
    assert "no column of" in refused.err


def test_reasons_and_groups(kcrf, model, tmp_path):
    trained = model("".join(f"d {line}\n" if line else "\n" for line in NAMES.splitlines()))
    pool = write(tmp_path / "pool.conll", ["a\tRome\na\tand", "a\tRome\na\twe", "b\tAnna\nb\tLake"])
    found = kcrf("next", pool, "-m", trained, "-n", 2, "--group", "c0")
    assert {line[0] for line in found.text.split("\n") if line} == {"a", "b"}
    start = kcrf("next", pool, "-n", 2, "--group", "c0", "-q")
    assert {line[0] for line in start.text.split("\n") if line} == {"a", "b"}
    reasons = found.err.splitlines()
    assert [line[:2] for line in reasons] == ["1.", "2."]
    assert all("2 positions, entropy" in line and "least certain: '" in line for line in reasons)
    assert "% unlike those above" in reasons[1]
    assert not kcrf("next", pool, "-m", trained, "-q").err
    assert kcrf("next", pool, "-m", trained, "--group", "c7").code == 2
    assert kcrf("next", pool, "-m", trained, "--to", "brat").code == 2


def test_threads_blocks_and_pipes_give_the_same_bytes(kcrf, model, tmp_path, monkeypatch):
    trained = model(NAMES)
    words = ("Anna", "met", "Berg", "in", "Rome")
    sequences = ["\n".join(f"{words[t]}{(3 * s + t) % 11}" for t in range(2 + s % 4)) for s in range(300)]
    pool = write(tmp_path / "pool.conll", sequences, "")
    found = [kcrf("next", pool, "-m", trained, "--threads", n, "-n", 20) for n in (1, 2)]
    monkeypatch.setattr("kcrf_core.corpora.lines.READ_SIZE", 200)
    found += [kcrf("next", "-", "-m", trained, "-n", 20, stdin=pool.read_bytes())]
    assert len({(one.out, one.err) for one in found}) == 1
    assert found[0].text.count("\n\n") == 20
    first = kcrf("next", pool, "-n", 20, "-q").text
    assert first.count("\n\n") == 20
    assert "\t" not in first
