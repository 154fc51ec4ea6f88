"""Texts with labelled parts, in XML, JSON, .ttx and brat's files, become the columns of their tokens."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import numpy as np
import pytest

from kcrf_core.config import parse_config
from kcrf_core.corpora import PLAIN, Layout, lines, read_corpus, stream_parsers, tokens
from kcrf_core.encoding import fit_encoding, with_defaults
from kcrf_core.errors import ConfigError, DataError
from kcrf_core.system import PAUSE

ANYSTYLE = """<?xml version="1.0" encoding="UTF-8"?>
<dataset>
  <sequence>
    <author>Être, M. &amp; Søn</author>
    <date>1927.</date>
  </sequence>
  <sequence><title>On <i>x</i> 😀</title></sequence>
</dataset>
"""
PARSERATOR = """<AddressCollection>
  <AddressString><Number>12</Number> <Street>Lake</Street> <Type>St</Type>, <Zip>60201</Zip></AddressString>
  <AddressString>near <Street>Elm</Street></AddressString>
</AddressCollection>
"""


def rows(corpus) -> list[list[tuple[str, ...]]]:
    """Sequences of a corpus as rows of values."""
    table = list(zip(*(list(column) for column in corpus.columns), strict=True))
    return [table[a:b] for a, b in zip(corpus.offsets[:-1], corpus.offsets[1:], strict=True)]


def read(tmp_path: Path, content: str | bytes, name: str = "data", layout: Layout = PLAIN):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_corpus(path, layout=layout)


def tagged(text: str) -> list[list[tuple[str, ...]]]:
    """Sequences written as `word/label word/label`, with a line for each."""
    return [[tuple(item.rsplit("/", 1)) for item in line.split()] for line in text.splitlines()]


# ----------------------------------------------------------------------------- XML


def test_parts_of_anystyle_label_their_tokens(tmp_path):
    corpus = read(tmp_path, ANYSTYLE)
    found = tagged("Être,/author M./author &/author Søn/author 1927./date\nOn/title x/title 😀/title")
    assert rows(corpus) == found
    assert corpus.names == ("word", "label")
    assert corpus.format == "conll"
    assert corpus.remarks == (f"warning: {tmp_path}/data: 1 element inside a part is ignored",)


def test_text_beside_parts_joins_the_token_that_it_touches(tmp_path):
    corpus = read(tmp_path, PARSERATOR)
    assert rows(corpus) == tagged("12/Number Lake/Street St,/Type 60201/Zip\nnear/O Elm/Street")
    (remark,) = corpus.remarks
    assert "1 span reaches into a token and takes all of it; 1 token outside of all parts" in remark
    assert remark.settings == ("tokens words",)
    words = read(tmp_path, PARSERATOR, layout=Layout(tokens="words"))
    assert rows(words)[0] == tagged("12/Number Lake/Street St/Type ,/O 60201/Zip")[0]


def test_span_labels_can_be_chosen(tmp_path):
    iob = read(tmp_path, ANYSTYLE, layout=Layout(span_labels="iob2"))
    assert [label for _, label in rows(iob)[0]] == ["B-author", "I-author", "I-author", "I-author", "B-date"]
    names = read(tmp_path, '{"text": "a b", "label": [[0, 3, "X"]]}', layout=Layout(span_labels="names"))
    assert rows(names) == tagged("a/X b/X")


def test_tokens_between_two_parts_are_cut(tmp_path):
    corpus = read(tmp_path, "<a><s><x>ab</x><y>cd</y>-e</s></a>")
    assert rows(corpus) == tagged("ab/x cd-e/y")
    assert "1 token is cut between two spans" in corpus.remarks[0]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("size", [7, 1 << 20])
def test_marks_line_ends_compression_and_chunks_do_not_change_texts(tmp_path, monkeypatch, mark, end, packed, size):
    monkeypatch.setattr(lines, "READ_SIZE", size)
    for content in (
        ANYSTYLE,
        '[ {"text": "a"} ,\n{"text": "b"}\n]\n\n',
        '{"text": "a  b", "label": [[0, 1, "X"]]}\n\n{"text": "c", "label": []}\n',
    ):
        plain = read(tmp_path, content)
        data = mark + content.replace("\n", end).encode()
        found = read(tmp_path, gzip.compress(data) if packed else data, "data.gz" if packed else "data")
        assert rows(found) == rows(plain)
        np.testing.assert_array_equal(found.lines, plain.lines)


def test_a_file_in_another_encoding_is_read_by_its_declaration(tmp_path):
    content = '<?xml version="1.0" encoding="ISO-8859-1"?><a><s><x>é</x></s></a>'.encode("latin-1")
    assert rows(read(tmp_path, content)) == [[("é", "x")]]


@pytest.mark.parametrize(
    "content, message",
    [
        ("<a><s><x>b</x></s>\n<s><<x>b</x></s></a>", "data:2: no well-formed XML"),
        ("<a><s><x>b</x></s>", "data:1: no well-formed XML: no element found"),
        ("<a>\n<s><x>b<c>d<e>f</e></c></x></s></a>", "data:2: <e> is too deep"),
        ("<a>\n<s><x>b</x></s> text</a>", "data:2: text outside of all sequences"),
        ('<!DOCTYPE a [\n<!ENTITY e "x">]><a><s><x>&e;</x></s></a>', "data:1: a DOCTYPE with declarations"),
        ('<!DOCTYPE a SYSTEM "http://localhost/x.dtd"><a><s><x>b</x></s></a>', "data:1: a DOCTYPE with"),
        ('<?xml version="1.0" encoding="no-such"?><a><s/></a>', "data:1: XML in an encoding that is not read"),
        ('<?xml version="1.0" encoding="gbk"?><a><s/></a>', "data:1: XML in an encoding that is not read"),
        ("<a><s></s></a>", "no data"),
        ("<?xml version='1.0'?>\n<a></a>", "no data: the file is empty"),
    ],
)
def test_damaged_and_hostile_xml(tmp_path, content, message):
    with pytest.raises(DataError, match=message.replace("(", r"\(")):
        read(tmp_path, content)


def test_large_elements_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("kcrf_core.corpora.labelled_texts.xml_files.LARGEST_DOCUMENT", 1000)
    monkeypatch.setattr("kcrf_core.corpora.labelled_texts.json_files.LARGEST_ARRAY", 1 << 20)
    monkeypatch.setattr(lines, "READ_SIZE", 100)
    for content, message in [
        (f"<a>\n<s><x>{'b ' * 1000}</x></s></a>", "2: a sequence of more than"),
        (f'<a>\n<s y="{"b" * 2000}"><x>c</x></s></a>', "2: a tag of more than"),
        (f'[{{"text": "{"b" * (1 << 20)}"}}]', "an array of more than 1 MiB, which is read whole"),
    ]:
        with pytest.raises(DataError, match=message):
            read(tmp_path, content)


@pytest.mark.parametrize(
    "text", ["<s>\tO\n<s>\tB\n", "<s> O\n</s> O\n", "{ O\n[ O\n", "{\tO\n", "[ [ O\n", "title | O\n"]
)
def test_columns_that_begin_like_markup_stay_columns(tmp_path, text):
    assert rows(read(tmp_path, text)) == [[tuple(line.split()) for line in text.splitlines()]]


def test_a_separator_makes_any_file_one_of_columns(tmp_path):
    assert rows(read(tmp_path, "<a>\t<b>\n", layout=Layout(separator="\t"))) == [[("<a>", "<b>")]]


# ----------------------------------------------------------------------------- JSON

PARIS = "Ann saw Paris."
OBJECTS = {
    "doccano": {"id": 1, "text": PARIS, "label": [[0, 3, "PER"], [8, 13, "LOC"]], "Comments": []},
    "doccano, relations": {
        "text": PARIS,
        "entities": [
            {"id": 1, "label": "PER", "start_offset": 0, "end_offset": 3},
            {"id": 2, "label": "LOC", "start_offset": 8, "end_offset": 13},
        ],
        "relations": [],
    },
    "Prodigy": {
        "text": PARIS,
        "tokens": [{"start": a, "end": b} for a, b in ((0, 3), (3, 4), (4, 7), (8, 14))],
        "spans": [{"start": 0, "end": 3, "label": "PER"}, {"start": 8, "end": 13, "label": "LOC"}],
        "answer": "accept",
    },
    "Label Studio": {
        "id": 7,
        "data": {"text": PARIS},
        "annotations": [
            {"was_cancelled": True, "result": []},
            {
                "result": [
                    {"type": "labels", "value": {"start": 0, "end": 3, "text": "Ann", "labels": ["PER"]}},
                    {"type": "labels", "value": {"start": 8, "end": 13, "text": "Paris", "labels": ["LOC"]}},
                ]
            },
        ],
    },
    "Label Studio, short": {
        "text": PARIS,
        "label": [
            {"start": 0, "end": 3, "text": "Ann", "labels": ["PER"]},
            {"start": 8, "end": 13, "text": "Paris", "labels": ["LOC"]},
        ],
        "annotator": 1,
    },
    "tokens": {"tokens": ["Ann", "saw", "Paris."], "labels": ["B-PER", "O", "B-LOC"]},
    "tokens of a text": {"text": PARIS, "tokens": ["Ann", "saw", "Paris."], "labels": ["B-PER", "O", "B-LOC"]},
    "tags": {"tokens": ["Ann", "saw", "Paris."], "tags": ["B-PER", "O", "B-LOC"]},
}  # fmt: skip


@pytest.mark.parametrize("tool", OBJECTS)
@pytest.mark.parametrize("form", ["lines", "array", "indented array"])
def test_objects_of_labelling_tools(tmp_path, monkeypatch, tool, form):
    monkeypatch.setattr(lines, "READ_SIZE", 50)
    objects = [OBJECTS[tool]] * 3
    text = json.dumps(objects, indent=2 if form == "indented array" else None)
    text = "\n".join(map(json.dumps, objects)) if form == "lines" else text
    assert rows(read(tmp_path, text)) == tagged("Ann/B-PER saw/O Paris./B-LOC") * 3


@pytest.mark.parametrize(
    "keys",
    [
        {"label": [[0, 3, "PER"]], "spans": []},
        {"spans": None, "entities": [{"start_offset": 0, "end_offset": 3, "label": "PER"}]},
        {"spans": [], "label": ["news"], "entities": [[0, 3, "PER"]]},
        {"tokens": ["Ann", "saw", "Paris."], "labels": [], "tags": ["B-PER", "O", "O"]},
        {"tokens": ["Ann", "saw", "Paris."], "label": [], "spans": [{"start": 0, "end": 3, "label": "PER"}]},
    ],
)
def test_empty_keys_do_not_hide_labels_of_others(tmp_path, keys):
    assert rows(read(tmp_path, json.dumps({"text": PARIS, **keys}))) == tagged("Ann/B-PER saw/O Paris./O")


def test_another_rule_is_named_where_it_made_the_tokens(tmp_path):
    text = json.dumps({"text": "Ann saw Paris.", "label": [[8, 13, "LOC"]]})
    assert read(tmp_path, text).remarks[0].settings == ("tokens words",)
    (remark,) = read(tmp_path, text, layout=Layout(tokens="[A-z.]+")).remarks
    assert remark.settings == ("tokens",)
    assert not read(tmp_path, text, layout=Layout(tokens="words")).remarks
    text = json.dumps({"text": "Ann saw Paris.", "label": [[8, 13, "LOC"]], "tokens": ["Ann", "saw", "Paris."]})
    assert read(tmp_path, text).remarks[0].settings == ()


def test_words_beside_a_text_are_its_tokens(tmp_path):
    value = {"text": f" {PARIS}", "tokens": ["Ann", "saw ", " ", "Paris", "."], "spans": [[9, 14, "LOC"]]}
    assert rows(read(tmp_path, json.dumps(value))) == tagged("Ann/O saw/O Paris/B-LOC ./O")
    assert rows(read(tmp_path, json.dumps({**value, "spans": None}))) == [[("Ann",), ("saw",), ("Paris",), (".",)]]


def test_an_empty_key_alone_means_that_there_is_no_span(tmp_path):
    for keys in ({"spans": []}, {"label": [], "spans": None}, {"spans": [], "label": ["news"]}):
        assert rows(read(tmp_path, json.dumps({"text": "a b", **keys}))) == tagged("a/O b/O")


@pytest.mark.parametrize(
    "value, counted",
    [
        ({"text": "a b", "label": []}, True),  # doccano, of a text that nobody has looked at, too
        ({"text": "a b", "entities": [], "relations": []}, True),
        ({"text": "a b", "labels": []}, True),
        ({"text": "a b", "label": [], "answer": "accept"}, False),
        ({"text": "a b", "spans": []}, False),  # Prodigy and `kcrf tag --to json` write labelled texts alone
        ({"data": {"text": "a b"}, "annotations": [{"result": []}]}, False),
    ],
)
def test_an_empty_list_is_counted_unless_somebody_has_labelled_the_text(tmp_path, value, counted):
    text = json.dumps({"text": "x y", "label": [[0, 1, "P"]]}) + "\n" + json.dumps(value)
    corpus = read(tmp_path, text)
    assert rows(corpus) == tagged("x/B-P y/O\na/O b/O")
    remark = f"warning: {tmp_path}/data: 1 text with an empty list of labels is labelled, all O"
    assert list(corpus.remarks) == [remark] * counted
    assert not counted or corpus.remarks[0].settings == ("empty_labels",)
    corpus = read(tmp_path, text, layout=Layout(empty_labels="unlabelled"))
    assert rows(corpus) == tagged("x/B-P y/O") + ([] if counted else tagged("a/O b/O"))
    remark = f"warning: {tmp_path}/data: 1 text without labels is left out"
    assert list(corpus.remarks) == [remark] * counted


def test_texts_without_labels_have_words_alone(tmp_path):
    corpus = read(tmp_path, '{"text": "a b"}\n{"text": ""}\n{"tokens": ["c d", "e"]}\n')
    assert rows(corpus) == [[("a",), ("b",)], [("c d",), ("e",)]]


def test_characters_that_would_end_a_row_are_replaced(tmp_path):
    found = read(tmp_path, '{"tokens": ["a\\tb", "c\\n\\u0000d"]}\n{"text": "\\u0000 e"}', layout=Layout(tokens=r"\S"))
    assert rows(found) == [[("a\ufffdb",), ("c\ufffd\ufffdd",)], [("\ufffd",), ("e",)]]


def test_texts_that_are_left_out_are_counted(tmp_path):
    items = [
        {"text": "a", "spans": []},
        {"text": "b", "spans": [], "answer": "reject"},
        {"text": "c"},
        {"data": {"words": "d"}, "annotations": [{"was_cancelled": True}]},
        {"data": {"words": "e"}, "annotations": [{"result": [{"type": "relation"}]}, {"result": []}]},
    ]
    corpus = read(tmp_path, "\n".join(map(json.dumps, items)))
    assert rows(corpus) == tagged("a/O\ne/O")
    counts = "1 relation, attribute or note is ignored; 1 further annotation of a text is ignored; "
    counts += "2 texts that were rejected or skipped are left out"
    begin = f"warning: {tmp_path}/data:"
    assert corpus.remarks == (f"{begin} {counts}", f"{begin} 1 text without labels is left out")


def test_a_file_whose_texts_are_all_left_out_is_not_called_empty(tmp_path):
    text = json.dumps({"text": "a", "spans": [], "answer": "reject"}) + "\n"
    with pytest.raises(DataError, match="no data: 2 texts that were rejected or skipped are left out"):
        read(tmp_path, text * 2)


def test_regions_of_label_studio_have_labels_under_several_names(tmp_path):
    xpath = {"start": "/p[1]/text()[1]", "end": "/p[1]/text()[1]", "globalOffsets": {"start": 8, "end": 13}}
    regions = [
        {"value": {"start": 0, "end": 3, "text": "Ann", "hypertextlabels": ["PER"]}},
        {"value": {**xpath, "text": "Paris", "hypertextlabels": ["LOC"]}},
        {"value": {"start": 4, "end": 7, "text": "saw"}},
        {"value": {"start": 4, "end": 7, "labels": []}},
        {"value": {"choices": ["news"]}},
    ]
    corpus = read(tmp_path, json.dumps([{"data": {"text": PARIS}, "annotations": [{"result": regions}]}]))
    assert rows(corpus) == tagged("Ann/B-PER saw/O Paris./B-LOC")
    short = {"text": PARIS, "label": [{**one["value"]} for one in regions[:2]]}
    assert rows(read(tmp_path, json.dumps(short))) == rows(corpus)
    assert "2 regions without a label are left out; 1 relation, attribute or note is ignored" in corpus.remarks[0]


@pytest.mark.parametrize("order", [(0, 0, 1, 2), (1, 0, 2, 0), (1, 2, 0, 0)])
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_texts_without_labels_are_left_out_wherever_they_stand(tmp_path, monkeypatch, order, size):
    monkeypatch.setattr(lines, "READ_SIZE", size)
    items = [{"text": "no labels"}, {"text": "a b", "label": [[0, 1, "X"]]}, {"text": "c", "label": []}]
    corpus = read(tmp_path, json.dumps([items[n] for n in order]))
    assert rows(corpus) == tagged("a/B-X b/O\nc/O")
    assert corpus.remarks[-1] == f"warning: {tmp_path}/data: 2 texts without labels are left out"


@pytest.mark.parametrize(
    "spans, labels, remark",
    [
        ([[0, 7, "X"], [2, 3, "Y"]], "B-X I-X I-X I-X O", "1 span inside another one is left out"),
        ([[2, 3, "Y"], [0, 7, "X"]], "B-X I-X I-X I-X O", "1 span inside another one is left out"),
        ([[0, 3, "X"], [2, 7, "Y"]], "O B-Y I-Y I-Y O", "1 span that overlaps a longer one is left out"),
        ([[0, 3, "X"], [0, 3, "Y"]], "B-X I-X O O O", "1 span inside another one is left out"),
        ([[1, 2, "X"], [3, 4, "Y"]], "O O O O O", "2 spans without a token are left out"),
        ([[0, 1, "X"], [2, 3, "X"]], "B-X B-X O O O", ""),
        ([[8, 9, "X"]], "O O O O B-X", "1 span reaches into a token and takes all of it"),
        (
            [[0, 1, "B-X"], [2, 3, "I-X"]],
            "B-B-X B-I-X O O O",
            "2 spans have labels with B- or I-, before which another one is put",
        ),
        ([[8, 9, "X"], [9, 10, "Y"]], "O O O O B-X B-Y", "1 token is cut between two spans"),
    ],
)
def test_spans_that_overlap_nest_or_cut_tokens(tmp_path, spans, labels, remark):
    corpus = read(tmp_path, json.dumps({"text": "a b c d ee", "label": spans}))
    assert [label for _, label in rows(corpus)[0]] == labels.split()
    assert [str(one).partition("data: ")[2] for one in corpus.remarks] == [remark] * bool(remark)


def test_random_spans_against_a_slow_rule(tmp_path):
    rng = random.Random(5)
    for _ in range(50):
        text = "".join(rng.choice("ab 😀") for _ in range(30))
        spans = []
        for _ in range(6):
            begin, end = sorted(rng.sample(range(31), 2))
            spans.append((begin, end, rng.choice("XY")))
        if not text.strip():
            continue
        # Of any two that overlap the longer counts, of equal ones the first.
        kept: list[tuple[int, int, str]] = []
        for span in sorted(spans, key=lambda span: span[0] - span[1]):
            if all(span[1] <= other[0] or other[1] <= span[0] for other in kept):
                kept.append(span)
        owner = [next((n for n, s in enumerate(kept) if s[0] <= t < s[1]), -1) for t in range(30)]
        expected, before = [], -1
        for begin, end in tokens(text, None):
            here = [n for n in dict.fromkeys(owner[begin:end]) if n >= 0] or [-1]
            for n in here:
                mark = "I-" if n == before else "B-"
                expected.append("O" if n < 0 else mark + kept[n][2])
                before = n
        found = read(
            tmp_path, json.dumps({"text": text, "spans": [{"start": s[0], "end": s[1], "label": s[2]} for s in spans]})
        )
        assert [label for _, label in rows(found)[0]] == expected


def test_offsets_count_characters_and_units_of_utf_16_where_the_text_says_so(tmp_path):
    text = "😀😀 Ann 😀"
    by_characters = {"text": text, "spans": [{"start": 3, "end": 6, "label": "P"}]}
    by_units = {"text": text, "spans": [{"start": 5, "end": 8, "text": "Ann", "label": "P"}]}
    for value in (by_characters, by_units):
        assert rows(read(tmp_path, json.dumps(value))) == tagged("😀😀/O Ann/B-P 😀/O")


def utf_16_units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


@pytest.mark.parametrize("count", [200, pytest.param(3000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("length", [len, utf_16_units])
def test_spans_of_texts_with_characters_beyond_utf_16(tmp_path, count, length):
    rng, objects, expected = random.Random(4), [], []
    parts = ["Ann", "saw", "née", "東京", "ha", "ha", "😀", "🚀🚀", "👨\u200d👩\u200d👧", "🎉!"]
    for _ in range(count):
        # Numbers make the words of a text different: a repeated word may fit both ways of counting.
        words = [f"{rng.choice(parts)}{number}" for number in range(rng.randint(2, 9))]
        text = "".join(word + rng.choice([" ", "  ", "\n"]) for word in words)[: rng.choice([None, -1])]
        chosen = sorted(rng.sample(range(len(words)), rng.randint(1, 2)))
        begins = [text.index(words[number]) for number in chosen]
        values = [(begin, text[begin : begin + len(words[n])]) for begin, n in zip(begins, chosen, strict=True)]
        result = [
            {"value": {"start": length(text[:begin]), "end": length(text[:begin] + own), "text": own, "labels": ["E"]}}
            for begin, own in values
        ]
        objects.append({"data": {"text": text}, "annotations": [{"result": result}]})
        expected.append([(word, "B-E" if number in chosen else "O") for number, word in enumerate(words)])
    corpus = read(tmp_path, json.dumps(objects))
    assert rows(corpus) == expected
    assert corpus.remarks == ()


def test_one_way_of_counting_holds_for_all_spans_of_a_text(tmp_path):
    def labelled(*spans):
        result = [{"value": {"start": a, "end": b, "text": text, "labels": ["E"]}} for a, b, text in spans]
        return json.dumps([{"data": {"text": "😀 aa ab"}, "annotations": [{"result": result}]}])

    by_characters = {"tokens": "characters"}
    # Alone, the first span fits both ways; the other one tells.
    assert rows(read(tmp_path, labelled((3, 4, "a"), (6, 8, "ab")), layout=Layout(**by_characters))) == tagged(
        "😀/O a/B-E a/O a/B-E b/I-E"
    )
    assert rows(read(tmp_path, labelled((3, 4, "a"), (5, 7, "ab")), layout=Layout(**by_characters))) == tagged(
        "😀/O a/O a/B-E a/B-E b/I-E"
    )
    alone = read(tmp_path, labelled((3, 4, "a")), layout=Layout(**by_characters))
    assert rows(alone) == tagged("😀/O a/O a/B-E a/O b/O")
    assert "1 text whose spans fit offsets in characters and in UTF-16 is read in characters" in alone.remarks[0]
    with pytest.raises(DataError, match="a span has the text 'aa', and at 3 to 5 there is 'a '"):
        read(tmp_path, labelled((3, 5, "aa"), (5, 7, "ab"), (5, 6, "a")))
    # Tokens of `kcrf next` count characters, and spans of Label Studio beside them may not.
    task = json.loads(labelled((3, 5, "aa")))
    task[0]["data"]["tokens"] = [{"start": 0, "end": 1, "text": "😀"}, {"start": 2, "end": 4, "text": "aa"}]
    assert rows(read(tmp_path, json.dumps(task))) == tagged("😀/O aa/B-E")


@pytest.mark.parametrize(
    "content, message",
    [
        ('{"text": "a", "label": []}\n{"text": "a"', r"data:2: no JSON: .*expected an object on each line"),
        ('[{"text": "a"},\n {"text": "b"', "data:2: the array does not end"),
        ('[{"text": "a"},\n {"text": x}]', "data:2: no JSON"),
        ('[{"text": "a"}]\n{"text": "b"}', "data:2: text behind the array"),
        ('[{"text": "a"}]\n\njunk\n', "data:3: text behind the array"),
        ('[{"text": "a"}, "b"]', "data:1: expected objects in the array"),
        ('[{"text": "a"},\n null, 5, {"text": "b"}]', "data:2: expected objects in the array, with a comma"),
        ('[{"text": "a"},\n]', "data:2: expected objects in the array"),
        ('[{"text": "a"}\n {"text": "b"}]', "data:2: expected objects in the array"),
        ('[{"text": "a"},, {"text": "b"}]', "data:1: expected objects in the array"),
        ('[{"text": "a"}}', "data:1: expected objects in the array"),
        ('{"text": "a"}\n[1]\n', "data:2: expected an object with a text"),
        ('{"words": "a"}', "neither a text"),
        ('{"text": "abc", "label": [[0, 4, "X"]]}', "a span from 0 to 4 in a text of 3 characters"),
        ('{"text": "abc", "label": [[2, 2, "X"]]}', "a span from 2 to 2"),
        ('{"text": "abc", "label": [[-1, 2, "X"]]}', "a span from -1 to 2"),
        ('{"text": "abc", "label": [[0, true, "X"]]}', r"a span is \[begin, end, label\]"),
        ('{"text": "abc", "label": ["positive"]}', r"a span is \[begin, end, label\]"),
        ('{"text": "abc", "label": "positive"}', "not a list of spans"),
        ('{"text": "abc", "label": [[0, 1, null]]}', "a span without a label"),
        ('{"text": "abc", "label": [[0, 1, " "]]}', "data:1: a span with an empty label"),
        ('{"text": "abc", "label": [[0, 1, "a\\tb"]]}', "a label without a name, or with a TAB"),
        ('{"text": "abc", "spans": [{"start": 0, "end": 1, "text": "b", "label": "X"}]}', "a span has the text 'b'"),
        ('{"tokens": ["a", "b"], "labels": ["X"]}', "1 label for 2 tokens"),
        ('{"tokens": ["a", ""], "labels": ["X", "Y"]}', "a token without characters"),
        ('{"text": "a bc", "tokens": ["a", "c"], "spans": []}', "the token 'c' is not what follows in the text: 'bc'"),
        ('{"text": "a b", "tokens": ["b", "a"], "spans": []}', "the token 'b' is not what follows"),
        ('{"text": "a b", "tokens": ["a"], "spans": []}', "the text goes on behind its tokens: 'b'"),
        ('{"text": "ab", "tokens": [{"start": 1, "end": 2}, {"start": 0, "end": 1}]}', "tokens overlap, or are not in"),
        ('{"text": "ab", "tokens": [{"start": 0, "end": 2}, {"start": 1, "end": 2}]}', "tokens overlap, or are not in"),
        ('{"text": "\\ud800", "label": []}', "JSON that cannot be read"),
        ('{"text": "a", "x": ' + "[" * 100_000, "nested too deeply"),
        ('[{"text": "a", "x": ' + "[" * 100_000, "nested too deeply"),
        ('[{"text": "a"},', "data:1: the array does not end"),
        ('[{"text": "a"}\n', "data:2: the array does not end"),
        ('[\n{"text":\n "a', "data:3: the array does not end"),
        ('[{"text": "a"}]\n]', "data:2: text behind the array"),
        ('{"text": "a"} {"text": "b"}', "data:1: no JSON: text behind an object"),
        ('{"text": "a", "n": ' + "1" * 5000 + "}", "JSON that cannot be read"),
        (b'{"text": "\xff"}', "data:1: byte 0xff is not UTF-8"),
        (b'[{"text": "\xff"}]', "data:1: no UTF-8 text"),
        ("[]", "no data"),
    ],
)
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_damaged_json(tmp_path, monkeypatch, content, message, size):
    monkeypatch.setattr(lines, "READ_SIZE", size if len(content) < 100 else 1 << 20)
    with pytest.raises(DataError, match=message):
        read(tmp_path, content)


# ----------------------------------------------------------------------------- .ttx and brat

TTX = """title         |    How Does It
              | work? 1999
blank         |\x20
text          | Body (x)
"""


def test_lines_of_a_finder_file_are_positions(tmp_path):
    expected = [
        ("How", "Does", "It", "3", "3", "0.00", "0.27", "0.00", "title"),
        ("work?", "1999", "1999", "0", "2", "0.40", "0.00", "0.10", "title"),
        ("", "", "", "0", "0", "0.00", "0.00", "0.00", "blank"),
        ("Body", "(x)", "(x)", "0", "2", "0.00", "0.12", "0.25", "text"),
    ]
    assert rows(read(tmp_path, TTX)) == [expected]
    assert rows(read(tmp_path, TTX.replace("\n", "\r\n"))) == [expected]
    with pytest.raises(DataError, match="data:3: expected a label"):
        read(tmp_path, TTX.replace("blank         | ", "blank"))


@pytest.mark.parametrize("odd", [0, 1, 60])
def test_words_of_a_finder_file_are_words_also_where_they_look_like_numbers(tmp_path, odd):
    """Nobody wrote these columns, so that no word in them can be a mistake."""
    lines = [f"{'title' if n % 3 else 'text':14}| {n % 7} {n % 5} 19{n % 10}0\n" for n in range(60)]
    lines[:odd] = [f"text          | Page{n % 40} and {n % 3}th\n" for n in range(odd)]
    corpus = read(tmp_path, "".join(lines))
    encoding, _ = fit_encoding(parse_config(with_defaults({}, corpus).raw), corpus)
    kinds = {name: kind.type for kind in (f.config for f in encoding.features) for name in kind.columns}
    assert [kinds[f"c{number}"] for number in range(8)] == ["categorical"] * 3 + ["real"] * 5
    assert not [one for one in encoding.warnings if "numbers" in one]


BRAT = "Ann saw\r\nNorth and South 😀 Rome.\n\nend\n"
ANN = (
    "T1\tPER 0 3\tAnn\n"
    "T2\tLOC 9 14;25 31\tNorth 😀 Rome\n"
    "T3\tANY 4 14\tsaw  North\n"
    "R1\tAt Arg1:T1 Arg2:T2\n#1\tAnnotatorNotes T1\tsure\nA1\tSeen T1\n*\tEquiv T1 T2\n"
)


@pytest.mark.parametrize("given", ["a.ann", "a.txt", "folder"])
def test_brat_files(tmp_path, given):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_bytes(BRAT.encode())
    (folder / "a.ann").write_bytes(ANN.encode())
    if given == "folder":
        (folder / "b.txt").write_text("x Ann")
        (folder / "b.ann").write_text("T1\tPER 2 5\tAnn\n")
    corpus = read_corpus(folder if given == "folder" else folder / given)
    expected = tagged("Ann/B-PER saw/B-ANY\nNorth/B-LOC and/O South/O 😀/B-LOC Rome./I-LOC\nend/O")
    assert rows(corpus) == expected + (tagged("x/O Ann/B-PER") if given == "folder" else [])
    (remark,) = corpus.remarks
    assert "1 discontinuous span is cut into its pieces" in remark
    assert "1 span is cut at line ends" in remark
    assert "4 relations, attributes and notes are ignored" in remark
    assert "1 span inside another one is left out" in remark  # the second line of T3


@pytest.mark.parametrize(
    "annotation, message",
    [
        ("T1\tPER 4 7\tAnn\n", r"a.ann:1: the text is 'Ann', and at 4 7 of .*a.txt there is 'saw'"),
        ("\nT1\tPER 0 400\tAnn\n", "a.ann:2: offsets 0 400 in a text of 7 characters"),
        ("T1\tPER 3 0\tAnn\n", "a.ann:1: offsets 3 0"),
        ("T1 PER 0 3 Ann\n", "a.ann:1: expected an annotation"),
        (f"T1\tPER 0 {'9' * 5000}\tAnn\n", "a.ann:1: expected an annotation"),  # Python refuses to read the number
    ],
)
def test_damaged_brat_files(tmp_path, annotation, message):
    (tmp_path / "a.txt").write_text("Ann saw")
    (tmp_path / "a.ann").write_text(annotation)
    with pytest.raises(DataError, match=message):
        read_corpus(tmp_path / "a.ann")


def test_annotations_need_their_text(tmp_path):
    with pytest.raises(DataError, match=r"there is no .*a.txt"):
        read(tmp_path, ANN, "a.ann")
    with pytest.raises(DataError, match="annotations of brat without the text"):
        read(tmp_path, ANN, "data")


def test_a_byte_order_mark_counts_as_a_character_in_brat(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfAnn saw")
    (tmp_path / "a.ann").write_text("T1\tPER 1 4\tAnn\n")
    assert rows(read_corpus(tmp_path / "a.txt")) == tagged("Ann/B-PER saw/O")


def test_a_text_beside_another_file_stays_a_file_of_columns(tmp_path):
    (tmp_path / "a.ann").write_text("weights\n")
    assert rows(read(tmp_path, "a\tX\n", "a.txt")) == tagged("a/X")


@pytest.mark.parametrize("given", ["a.ann", "a.txt", ""])
@pytest.mark.parametrize("packed", [{".ann"}, {".txt"}, {".ann", ".txt"}])
def test_brat_files_may_be_compressed(tmp_path, packed, given):
    folder = tmp_path / "texts"
    folder.mkdir()
    for ending, text in ((".txt", "Ann saw"), (".ann", "T1\tPER 0 3\tAnn\n")):
        path = folder / f"a{ending}{'.gz' * (ending in packed)}"
        path.write_bytes(gzip.compress(text.encode()) if ending in packed else text.encode())
    name = given + ".gz" * (given[1:] in packed)
    assert rows(read_corpus(folder / name)) == tagged("Ann/B-PER saw/O")


# ----------------------------------------------------------------------------- folders


def folder_of(tmp_path: Path, **files: str) -> Path:
    """A folder of files, given as name_ending."""
    folder = tmp_path / "texts"
    folder.mkdir()
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder


def test_a_text_of_brat_without_annotations_has_no_labels(tmp_path):
    folder = folder_of(
        tmp_path, a_txt="new text\n", b_txt="Ann saw", b_ann="T1\tPER 0 3\tAnn\n", c_txt="it", c_ann="", d_conf="x"
    )
    corpus = read_corpus(folder)
    assert rows(corpus) == tagged("Ann/B-PER saw/O\nit/O")
    begin = f"warning: {folder}: 1 text"
    empty = f"{begin} with an empty list of labels is labelled, all O"
    assert corpus.remarks == (empty, f"{begin} without labels is left out")
    corpus = read_corpus(folder, layout=Layout(empty_labels="unlabelled"))
    assert rows(corpus) == tagged("Ann/B-PER saw/O")
    assert corpus.remarks == (f"warning: {folder}: 2 texts without labels are left out",)
    parsed = [parse() for parse in stream_parsers(folder) if parse is not PAUSE]
    assert [part.corpus.width for part in parsed] == [1, 2]
    assert parsed[0].block.data == b"new\ntext\n\n"


@pytest.mark.parametrize("ending", ["ann", "xml", "jsonl"])
def test_a_folder_has_one_kind_of_files(tmp_path, ending):
    folder = folder_of(tmp_path, a_ttx=TTX, **{f"b_{ending}": "", "b_txt": ""})
    with pytest.raises(DataError, match=rf"texts: files of several kinds \(.*\.{ending}.*\): give a folder for each"):
        read_corpus(folder)


def test_files_of_a_folder_are_read_in_the_order_of_their_names(tmp_path):
    one, other = (json.dumps({"text": letter, "label": [[0, 1, "X"]]}) for letter in "ab")
    folder = folder_of(tmp_path, c_jsonl=one + "\n", a_json=f"[{other}]", b_jsonl="", readme_txt="x", notes_md="y")
    (folder / "d.jsonl.gz").write_bytes(gzip.compress(one.encode()))
    corpus = read_corpus(folder)
    assert rows(corpus) == tagged("b/B-X\na/B-X\na/B-X")
    assert corpus.remarks == (f"warning: {folder}: 2 files of other kinds are not read",)
    (folder / "e.jsonl").write_text('{"text": 1}')
    with pytest.raises(DataError, match=r"texts/e.jsonl:1: "):
        read_corpus(folder)


def test_a_folder_of_xml(tmp_path):
    folder = folder_of(tmp_path, a_xml=ANYSTYLE, b_xml="<d><s><x>a</x></s></d>")
    assert [len(sequence) for sequence in rows(read_corpus(folder))] == [5, 3, 1]


# ----------------------------------------------------------------------------- tokens, streams


@pytest.mark.parametrize(
    "rule, expected",
    [
        (None, ["Don't", "stop,", "नमस्ते"]),
        ("words", ["Don", "'", "t", "stop", ",", "नमस्ते"]),
        ("characters", [*"Don'tstop,नमस्ते"]),
        (r"\w+'?\w+|\S", ["Don't", "stop", ",", *"नमस्ते"]),
    ],
)
def test_rules_for_tokens(rule, expected):
    text = "Don't stop,\u00a0 नमस्ते\u3000"
    found = [text[begin:end] for begin, end in tokens(text, rule)]
    assert "".join(found) == "".join(expected)
    if rule in (None, "words", "characters"):
        assert found == expected


def test_rules_for_tokens_are_checked():
    from kcrf_core.config import parse_config

    assert parse_config({"tokens": r"\w+"}).layout == Layout(tokens=r"\w+")
    for rule in ("(", "x*"):
        with pytest.raises(ConfigError, match="tokens"):
            parse_config({"tokens": rule})
    for rule, name in (("word", "words"), ("Words", "words"), ("character", "characters")):
        with pytest.raises(ConfigError, match=f"'{rule}' is none.*{name}"):
            parse_config({"tokens": rule})
    with pytest.raises(ConfigError, match="span_labels"):
        parse_config({"span_labels": "iob9"})


def test_texts_in_which_a_rule_finds_no_token_are_counted(tmp_path):
    corpus = read(tmp_path, '{"text": "a 1"}\n{"text": " "}\n{"text": "b"}', layout=Layout(tokens="[0-9]"))
    assert [str(one).partition("data: ")[2] for one in corpus.remarks] == ["1 text has no token by the rule for them"]
    assert corpus.remarks[0].settings == ("tokens",)


def test_documents_of_a_pipe_are_parsed_before_more_is_waited_for(tmp_path):
    import os

    path = tmp_path / "pipe"
    os.mkfifo(path)
    os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with open(path, "wb", buffering=0) as writer:
        writer.write(b'{"text": "a b"}\n')
        parsers = stream_parsers(path, "conll")
        assert next(parsers)().corpus.positions == 2
        assert next(parsers) is PAUSE
        writer.write(b'{"text": "c"}\n')
        assert next(parsers)().corpus.positions == 1


def test_remarks_come_after_the_last_block(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "READ_SIZE", 1)
    corpus = read(tmp_path, '{"text": "ab", "label": [[0, 1, "X"]]}\n' * 3)
    assert corpus.sequences == 3
    assert "3 spans reach into a token" in corpus.remarks[0]
