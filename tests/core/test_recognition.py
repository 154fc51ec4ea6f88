"""Which files are labelled texts, and which are columns."""

from __future__ import annotations

import pytest

from kcrf_core import DataError, read_corpus
from kcrf_core.corpora import Layout

PLACES = '{"text": "Ann saw Paris", "label": [[0, 3, "PER"]]}\n'


def rows(path, **options):
    return [list(column) for column in read_corpus(path, **options).columns]


@pytest.mark.parametrize("before", ["", "\n\n", "  ", "\ufeff"])
def test_white_space_and_marks_before_a_labelled_text_do_not_matter(tmp_path, before):
    for name, text in (("a.jsonl", PLACES), ("a.txt", PLACES), ("a.xml", "<d><s><PER>Ann</PER></s></d>")):
        (tmp_path / name).write_text(before + text, encoding="utf-8")
        assert rows(tmp_path / name)[0][0] == "Ann"


@pytest.mark.parametrize("first", ["[]", "[", "{", "<s>", "<", "{}"])
def test_columns_whose_first_value_begins_so_are_columns(tmp_path, first):
    path = tmp_path / "data.conll"
    path.write_text(f"{first}\tO\nb\tP\n")
    assert rows(path) == [[first, "b"], ["O", "P"]]


def test_columns_that_look_like_xml_need_their_separator(tmp_path):
    (tmp_path / "data.conll").write_text("<s> <t>\na B\n")
    with pytest.raises(DataError, match=r"conll:3: no well-formed XML.*has columns, give.* 'space'") as raised:
        read_corpus(tmp_path / "data.conll")
    assert raised.value.settings == ("separator",)
    assert rows(tmp_path / "data.conll", layout=Layout(separator=" ")) == [["<s>", "a"], ["<t>", "B"]]
    (tmp_path / "data.xml").write_text("<s> <t>\na B\n")
    with pytest.raises(DataError, match=r"no element found$"):
        read_corpus(tmp_path / "data.xml")


def test_a_name_tells_more_than_the_layout_of_other_data(tmp_path):
    (tmp_path / "a.jsonl").write_text(PLACES)
    assert rows(tmp_path / "a.jsonl", layout=Layout(separator=",", header=True))[0] == ["Ann", "saw", "Paris"]


@pytest.mark.parametrize(
    ("name", "text"), [("a.json", '[["Ann", {"entities": []}]]'), ("a.json", "{}"), ("a.xml", "Ann\tPER\n")]
)
def test_what_is_not_as_its_name_says_is_refused(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match="neither XML with sequences nor JSON with objects"):
        read_corpus(tmp_path / name)
