"""Commands on labelled texts, and `kcrf tag --text` with labelled parts as output."""

from __future__ import annotations

import json
import random
import re
from types import SimpleNamespace

import pytest

from kcrf_core.corpora import read_corpus
from kcrf_core.selection import tuning

ADDRESSES = [
    [("number", "10"), ("street", "Downing St"), ("city", "London")],
    [("number", "221B"), ("street", "Baker St"), ("city", "London")],
    [("street", "Elm Rd"), ("number", "7"), ("city", "New York")],
]


def as_xml(addresses) -> str:
    texts = (" ".join(f"<{name}>{text}</{name}>" for name, text in parts) for parts in addresses)
    return "<a>\n" + "".join(f"<s>{text}</s>\n" for text in texts) + "</a>\n"


def as_json(addresses) -> str:
    out = []
    for parts in addresses:
        text, spans = "", []
        for name, part in parts:
            spans.append([len(text), len(text) + len(part), name])
            text += f"{part} "
        out.append(json.dumps({"text": text.strip(), "label": spans}))
    return "\n".join(out) + "\n"


def labels(path) -> list[str]:
    return list(read_corpus(path).columns[-1])


@pytest.fixture
def run(kcrf, tmp_path, monkeypatch):
    """Call a command in a folder of its own; `stdout` and `stderr` are texts."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, input: str = "", code: int = 0) -> SimpleNamespace:
        done = kcrf(*arguments, stdin=input.encode())
        assert done.code == code, done.err
        return SimpleNamespace(stdout=done.text, stderr=done.err)

    return call


@pytest.fixture
def model(run, tmp_path):
    """A model that labels addresses, as the file of a kind that is given to it."""

    def make(content: str, *more: str) -> str:
        (tmp_path / "train").write_text(content)
        run("train", "train", "--sigma2", "10", "-q", "-o", "model.npz", *more)
        return "model.npz"

    return make


@pytest.mark.parametrize("write", [as_xml, as_json])
def test_commands_take_labelled_texts_without_options(run, tmp_path, write):
    (tmp_path / "data").write_text(write(ADDRESSES * 5))
    assert "15 sequences, 65 positions" in run("train", "data", "--sigma2", "10", "-o", "model.npz").stderr
    assert "accuracy 100.00 % (65 of 65 positions)" in run("evaluate", "-m", "model.npz", "data").stdout
    tagged = run("tag", "-m", "model.npz", "data").stdout
    assert tagged.splitlines()[0].split("\t")[0] == "10"
    assert "accuracy 100.00 %" in run("evaluate", "-", input=tagged).stdout
    run("featurize", "data", "-o", "dataset.npz")
    assert "all " in run("crossval", "data", "--folds", "3", "--sigma2", "10").stdout
    run("audit", "data", "--sigma2", "10", "--folds", "3", "-o", "list.tsv")
    assert "word" in run("inspect", "model.npz").stdout


@pytest.mark.parametrize("write", [as_xml, as_json])
@pytest.mark.parametrize("rule", ["whitespace", "words", "characters", r"\d+|[A-Z]|\S"])
@pytest.mark.parametrize("form", ["xml", "json"])
def test_labelled_parts_are_read_back_unchanged(run, tmp_path, model, write, rule, form):
    path = model(write(ADDRESSES), "--tokens", rule)
    rng = random.Random(3)
    words = ["10", "Baker", "St,", "😀", "a&b", "<x>", '"Q"', "\u00e9\u0301", "New", "York."]
    text = "".join(" ".join(rng.choices(words, k=rng.randint(0, 6))) + "\n" for _ in range(40))
    (tmp_path / "lines.txt").write_text("  \n" + text + "no newline at the end")
    # An I- that no span can begin with would come back as the B- that it stands for.
    call = ("tag", "-m", path, *(["--scheme", "iob2"] if write is as_json else []))
    columns = run(*call, "--text", "lines.txt", "--to", "columns").stdout
    parts = run(*call, "--text", "lines.txt", "--to", form).stdout
    (tmp_path / "parts").write_text(parts)
    lines = parts.splitlines()[2:-1] if form == "xml" else parts.splitlines()
    assert len(lines) == 42  # one for each line of the text
    # The rule is stored in the model, and the reader needs it for tokens of XML.
    again = run(*call, "parts", "--to", form).stdout
    assert again == parts.replace("<sequence>  </sequence>", "<sequence></sequence>")
    back = run(*call, "parts").stdout
    words_back = [line.split("\t") for line in back.splitlines() if line]
    assert [row[:2] for row in words_back] == [line.split("\t") for line in columns.splitlines() if line]


def test_json_has_offsets_of_characters(run, model):
    path = model(as_json(ADDRESSES))
    (found,) = map(
        json.loads, run("tag", "-m", path, "--text", "--to", "json", input="😀 10 Downing St\n").stdout.splitlines()
    )
    assert found["text"] == "😀 10 Downing St"
    assert {"start": 2, "end": 4, "label": "number"} in found["spans"]
    assert all(span["label"] in ("number", "street", "city") for span in found["spans"])


@pytest.mark.parametrize(
    "given, kept",
    [
        ({"id": 7, "text": "10 St", "label": [[0, 2, "x"]], "meta": {"a": [1]}}, {"id": 7, "meta": {"a": [1]}}),
        ({"text": "10 St", "spans": [], "answer": "accept", "_input_hash": -3}, {"_input_hash": -3}),
        ({"id": "a", "text": "  ", "Comments": ["é"]}, {"id": "a", "Comments": ["é"]}),
        ({"id": "b", "tokens": ["10", "St"], "tags": ["O", "O"], "doc": None}, {"id": "b", "doc": None}),
        (
            {"id": 1, "data": {"body": "10 St", "page": 5}, "annotations": [], "predictions": [], "project": 2},
            {"id": 1, "project": 2, "page": 5},
        ),
    ],
)
def test_json_keeps_keys_of_the_object_that_are_not_of_text_and_labels(run, tmp_path, model, given, kept):
    path = model(as_json(ADDRESSES))
    (tmp_path / "new.jsonl").write_text(json.dumps({"text": "7"}) + "\n" + json.dumps(given) + "\n")
    first, found = map(json.loads, run("tag", "-m", path, "new.jsonl", "--to", "json").stdout.splitlines())
    assert first.keys() == {"text", "spans"}
    assert {key: value for key, value in found.items() if key not in ("text", "tokens", "spans")} == kept
    assert found["text"].strip() in ("10 St", "")


def test_rules_of_an_earlier_labelling_do_not_stay_in_metadata(run, tmp_path, model):
    """doccano keeps `span_labels` and `tokens` of `kcrf next` in `meta`, where readers look for them."""
    path = model(as_json(ADDRESSES))
    meta = {"span_labels": "names", "tokens": [{"start": 0, "end": 2}, {"start": 3, "end": 5}], "page": 3}
    (tmp_path / "new.jsonl").write_text(json.dumps({"text": "10 St", "label": [[0, 2, "number"]], "meta": meta}))
    written = run("tag", "-m", path, "new.jsonl", "--to", "json").stdout
    (tmp_path / "back.jsonl").write_text(written)
    assert json.loads(written)["meta"] == {"page": 3}
    assert labels(tmp_path / "back.jsonl") == [f"B-{span['label']}" for span in json.loads(written)["spans"]]


def test_labels_that_are_no_names_of_elements(run, tmp_path, model):
    path = model('{"tokens": ["a", "b", "c"], "labels": ["1 <&> \\"x\\"", "xmlish", "part"]}\n' * 3)
    written = run("tag", "-m", path, "--text", "--to", "xml", input="a b c\n").stdout
    assert '<part label=\'1 &lt;&amp;&gt; "x"\'>a</part> <part label="xmlish">b</part>' in written
    (tmp_path / "back.xml").write_text(written)
    assert labels(tmp_path / "back.xml") == ['1 <&> "x"', "xmlish", "part"]


def test_a_text_arrives_line_by_line(run, model):
    path = model(as_xml(ADDRESSES))
    alone = [
        run("tag", "-m", path, "--text", "--to", "json", input=line).stdout for line in ("10 Elm Rd\n", "\n", "7 St")
    ]
    assert run("tag", "-m", path, "--text", "--to", "json", input="10 Elm Rd\n\n7 St").stdout == "".join(alone)


def test_tokens_of_training_are_used_unless_others_are_given(run, model):
    path = model(as_xml(ADDRESSES), "--tokens", "words")
    words = run("tag", "-m", path, "--text", input="St.,\n").stdout
    assert [line.split("\t")[0] for line in words.splitlines()] == ["St", ".", ",", ""]
    whole = run("tag", "-m", path, "--text", "--tokens", "whitespace", input="St.,\n").stdout
    assert whole.startswith("St.,\t")


def test_labelled_parts_are_written_for_texts_with_labels_and_without(run, tmp_path, model):
    path = model(as_json(ADDRESSES))
    (tmp_path / "some.jsonl").write_text(
        '{"text": "10 St", "label": [[0, 2, "x"], [1, 2, "y"]]}\n{"text": "7 London"}\n'
    )
    done = run("tag", "-m", path, "some.jsonl", "--to", "json")
    assert [json.loads(line)["text"] for line in done.stdout.splitlines()] == ["10 St", "7 London"]
    assert done.stderr == ""
    first, second = run("tag", "-m", path, "some.jsonl").stdout.split("\n\n")[:2]
    assert [len(line.split("\t")) for line in first.splitlines()] == [3, 3]
    assert [line.split("\t")[0] for line in second.splitlines()] == ["7", "London"]
    found = run("tag", "-m", path, "some.jsonl", "--json-lines")
    assert ["gold" in json.loads(line) for line in found.stdout.splitlines()] == [True, False]
    assert "left out" not in found.stderr.replace("inside another one is left out", "")
    text = (tmp_path / "some.jsonl").read_text().splitlines()
    (tmp_path / "turned.jsonl").write_text("\n".join(text[::-1]))
    assert run("tag", "-m", path, "turned.jsonl").stdout.count("\n\n") == 2
    assert "1 text without labels is left out" in run("evaluate", "-m", path, "turned.jsonl").stderr


@pytest.mark.parametrize("form", ["xml", "json"])
def test_labels_that_are_kept_become_parts(run, tmp_path, model, form):
    path = model(as_json(ADDRESSES))
    (tmp_path / "new.jsonl").write_text('{"text": "10 St London", "label": [[0, 12, "city"]]}\n')
    (tmp_path / "parts").write_text(run("tag", "-m", path, "new.jsonl", "--force", "--to", form).stdout)
    assert labels(tmp_path / "parts") == ["B-city", "I-city", "I-city"]
    (tmp_path / "free.jsonl").write_text('{"tokens": ["10", "St", "London"], "labels": ["B-city", "?", "B-number"]}\n')
    (tmp_path / "parts").write_text(run("tag", "-m", path, "free.jsonl", "--force", "--to", form).stdout)
    first, _, last = labels(tmp_path / "parts")
    assert (first, last) == ("B-city", "B-number")
    (tmp_path / "none.jsonl").write_text('{"text": "7 London"}\n')
    refused = run("tag", "-m", path, "none.jsonl", "--force", "--to", form, code=3).stderr
    assert "none.jsonl:1: no labels under the keys" in refused


def test_white_space_that_xml_cannot_hold_still_separates_tokens(run, model):
    path = model(as_xml(ADDRESSES))
    written = run("tag", "-m", path, "--text", "--to", "xml", input="7\x0cElm\x1fRd \x01\n").stdout
    assert re.sub("<.*?>", "", written).split() == ["7", "Elm", "Rd", "\ufffd"]


@pytest.mark.parametrize("form, other", [(as_json, as_xml), (as_xml, as_json)])
def test_data_to_score_has_the_kind_of_labels_of_the_model(run, tmp_path, model, form, other):
    (tmp_path / "other").write_text(other(ADDRESSES))
    (tmp_path / "same").write_text(form(ADDRESSES))
    path = model(form(ADDRESSES), "--dev", "other")
    assert run("evaluate", "-m", path, "other").stdout == run("evaluate", "-m", path, "same").stdout
    assert "leave out --span-labels" in run("evaluate", "-m", path, "other", "--span-labels", "iob2", code=2).stderr


@pytest.mark.parametrize("write", [as_xml, as_json])
@pytest.mark.parametrize("form", ["xml", "json"])
@pytest.mark.parametrize("without", [0, 1, 3])
def test_gold_labels_of_some_texts_are_compared_with_labels_of_all(run, tmp_path, model, write, form, without):
    path = model(write(ADDRESSES))
    texts = as_json(ADDRESSES).splitlines()
    texts.insert(without, '{"text": "7 London"}')
    (tmp_path / "gold.jsonl").write_text("\n".join(['{"text": ""}', *texts]))
    (tmp_path / "found").write_text(run("tag", "-m", path, "gold.jsonl", "--to", form).stdout)
    scores = run("evaluate", "--gold", "gold.jsonl", "found")
    assert "accuracy 100.00 % (13 of 13 positions)" in scores.stdout
    assert "gold.jsonl: 1 text without labels is left out" in scores.stderr
    (tmp_path / "gold.jsonl").write_text("\n".join(texts[:-1]))
    run("evaluate", "--gold", "gold.jsonl", "found", code=3)  # a text less is not the same data


def test_tune_reads_dev_data_with_the_kind_of_labels_of_the_data(run, tmp_path, monkeypatch):
    monkeypatch.setitem(tuning.EFFORTS, "small", 1e8)
    (tmp_path / "data.xml").write_text(as_xml(ADDRESSES * 5))
    (tmp_path / "dev.jsonl").write_text(as_json(ADDRESSES).replace('[0, 2, "number"], ', ""))
    found = run("tune", "data.xml", "--dev", "dev.jsonl", "--effort", "small", "-o", "found.yaml").stderr
    assert "dev.jsonl: 1 token outside of all parts gets O" in found  # labels are names


@pytest.mark.parametrize("call", ["train DATA -o x.npz", "evaluate -m MODEL DATA", "evaluate --gold DATA train"])
def test_json_without_known_labels_lists_the_keys(run, tmp_path, model, call):
    path = model(as_json(ADDRESSES))
    (tmp_path / "data.jsonl").write_text('{"text": "10 St", "annots": [[0, 2, "number"]], "id": 3}\n')
    found = run(*call.replace("DATA", "data.jsonl").replace("MODEL", path).split(), code=3).stderr
    keys = "spans, label, labels, entities, tags, ner_tags, annotations"
    assert f"data.jsonl: no labels under the keys {keys}; other keys of the first text: annots, id" in found
    assert run("tag", "-m", path, "data.jsonl").stderr == ""


def test_warnings_of_tag_count_what_was_resolved(run, tmp_path, model):
    path = model(as_xml(ADDRESSES))
    (tmp_path / "new.jsonl").write_text('{"text": "10 St", "label": [[0, 1, "number"], [0, 5, "street"]]}\n')
    assert "1 span inside another one is left out" in run("tag", "-m", path, "new.jsonl").stderr
    assert run("tag", "-m", path, "new.jsonl", "-q").stderr == ""


@pytest.mark.parametrize(
    "options, message",
    [
        (["--text", "--lag", "2"], "--lag is for files of columns"),
        (["--text", "--force"], "--force is for files of columns"),
        (["--to", "xml", "--marginals", "best"], "does not go with --marginals"),
        (["--to", "json", "--json-lines"], "does not go with --json-lines"),
        (["--to", "json"], "has columns: is it --text?"),
        (["--text", "--tokens", "("], "regular expression"),
    ],
)
def test_options_that_do_not_fit(run, model, options, message):
    path = model(as_xml(ADDRESSES))
    result = run("tag", "-m", path, *options, input="a\tnumber\n", code=2)
    assert message in result.stderr


@pytest.mark.parametrize("text", ["Ann saw Paris today\nBob went\n", "7 Elm Rd in York\n"])
def test_text_without_columns_needs_an_option(run, model, text):
    path = model(as_json(ADDRESSES))
    refused = run("tag", "-m", path, input=text, code=3).stderr
    assert "expected " in refused and refused.endswith("; give --text if it is text without columns\n")
    assert run("tag", "-m", path, "--text", input=text).stderr == ""
    several = model("a x y A\nb y x B\n")
    assert "--text" not in run("tag", "-m", several, input=text, code=3).stderr


@pytest.mark.parametrize(
    "text", [as_xml(ADDRESSES), as_json(ADDRESSES), "[\n{}]", '<?xml version="1.0"?>\n', "<a><s>x"]
)
def test_markup_taken_for_text_is_named(run, model, text):
    path = model(as_json(ADDRESSES))
    assert "its markup is labelled: leave out 'text' (--text)" in run("tag", "-m", path, "--text", input=text).stderr
    for plain in ("<3 you\n", "[1] Popper\n", f"first line\n{text}"):
        assert run("tag", "-m", path, "--text", input=plain).stderr == ""


def test_one_file_of_lines_is_one_sequence(run, tmp_path):
    (tmp_path / "new.ttx").write_text("title         | How\ntext          | Body\n" * 60)
    said = run("train", "new.ttx", "--sigma2", "1", "--plain", "-o", "model.npz").stderr
    assert "warning: all is one sequence" in said and "or is it one .ttx of many?" in said


def test_a_model_of_several_columns_refuses_text(run, tmp_path, model):
    path = model("a\tx\tA\nb\ty\tB\n")
    assert "column" in run("tag", "-m", path, "--text", input="a b\n", code=3).stderr


def test_models_of_other_formats_label_text_if_they_have_words_alone(run, tmp_path, sample_data, model):
    run("train", str(sample_data / "sentences.conllu"), "--sigma2", "10", "-q", "-o", "words.npz")
    (found,) = run("tag", "-m", "words.npz", "--text", "--to", "json", input="the dog").stdout.splitlines()
    assert [span["label"] for span in json.loads(found)["spans"]] == ["DET", "NOUN"]
    (tmp_path / "data.crfsuite").write_text("A\tw=a\n")
    run("train", "data.crfsuite", "--sigma2", "1", "-q", "-o", "attributes.npz")
    assert "crfsuite" in run("tag", "-m", "attributes.npz", "--text", input="a", code=3).stderr
    assert (
        '<part label="1">'
        in run("tag", "-m", model("a,0\nb,1\n", "--separator", ","), "--text", "--to", "xml", input="b").stdout
    )


def test_accepted_corrections_become_columns(run, tmp_path):
    (tmp_path / "data.xml").write_text(
        as_xml(ADDRESSES * 4).replace("<city>New York</city>", "<number>New York</number>", 1)
    )
    run("audit", "data.xml", "--sigma2", "10", "--folds", "3", "--top", "2", "-o", "list.tsv")
    text = (tmp_path / "list.tsv").read_text().splitlines()
    header, *found = [line.split("\t") for line in text]
    assert any(row[1] in ("New", "York") for row in found)
    for row in found:
        row[header.index("accept")] = "y"
    (tmp_path / "list.tsv").write_text("\n".join("\t".join(row) for row in [header, *found]) + "\n")
    for name in ("new.xml", "new.JSONL", "new.json.gz", "new.ttx"):
        refused = run("audit", "data.xml", "--accept", "list.tsv", "--apply", name, code=2).stderr
        assert f"--apply writes columns: {name} needs another name" in refused
    run("audit", "data.xml", "--accept", "list.tsv", "--apply", "new.conll")
    before, after = labels(tmp_path / "data.xml"), labels(tmp_path / "new.conll")
    assert sum(one != other for one, other in zip(before, after, strict=True)) == len(found)


def test_a_folder_of_brat_files(run, tmp_path):
    for number, (_, text) in enumerate([*ADDRESSES[0], *ADDRESSES[1]]):
        (tmp_path / "notes").mkdir(exist_ok=True)
        (tmp_path / "notes" / f"{number}.txt").write_text(f"see {text} now\n")
        (tmp_path / "notes" / f"{number}.ann").write_text(f"T1\tplace 4 {4 + len(text)}\t{text}\n")
    assert "6 sequences" in run("train", "notes", "--sigma2", "1", "-o", "model.npz").stderr
    assert "accuracy 100.00 %" in run("evaluate", "-m", "model.npz", "notes").stdout
    assert "<place>" in run("tag", "-m", "model.npz", "notes", "--to", "xml").stdout
    assert 'span-labels="iob2"' in run("tag", "-m", "model.npz", "notes", "--to", "xml").stdout


def test_a_folder_of_json(run, tmp_path):
    (tmp_path / "texts").mkdir()
    for number, address in enumerate(ADDRESSES):
        (tmp_path / "texts" / f"{number}.jsonl").write_text(as_json([address]))
    assert "3 sequences" in run("train", "texts", "--sigma2", "10", "-o", "model.npz").stderr
    found = run("tag", "-m", "model.npz", "texts", "--to", "json").stdout.splitlines()
    assert [json.loads(line)["text"].split()[0] for line in found] == ["10", "221B", "Elm"]


def test_lines_of_brat_files_become_texts_without_their_ends(run, tmp_path, model):
    path = model(as_json(ADDRESSES))
    (tmp_path / "a.txt").write_bytes(b"7 Elm Rd\r\n\r\nLondon\r\n")
    (tmp_path / "a.ann").write_text("T1\tcity 12 18\tLondon\n")
    found = run("tag", "-m", path, "a.ann", "--to", "json").stdout.splitlines()
    assert [json.loads(line)["text"] for line in found] == ["7 Elm Rd", "", "London"]


def test_labelled_parts_are_not_for_lines(run, tmp_path, model):
    (tmp_path / "new.ttx").write_text("title         | How\nblank         |\ntext          | Body\n")
    path = model("title         | How\nblank         |\ntext          | Body\n")
    assert len(run("tag", "-m", path, "new.ttx").stdout.splitlines()) == 4
    for form in ("xml", "json"):
        assert "positions of new.ttx are lines" in run("tag", "-m", path, "new.ttx", "--to", form, code=2).stderr
