"""Dictionaries of attributes become the rows that an attribute file would give."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest

from kcrf_core import KernelCRF
from kcrf_core.corpora.sequences import attribute_rows

# What stands at a position, and the attributes it has.
RULES = [
    ({"bias": 1.0}, {"bias": 1.0}),
    ({"a": 2, "b": -0.5}, {"a": 2.0, "b": -0.5}),
    ({"a": True}, {"a": 1.0}),
    ({"a": False, "b": 0.0, "c": {"d": 0}}, {"a": 0.0, "b": 0.0, "c:d": 0.0}),
    ({"word": "cat"}, {"word:cat": 1.0}),
    ({"word": ""}, {"word:": 1.0}),
    ({"a:b": "c:d"}, {"a:b:c:d": 1.0}),
    ({"tags": ["x", "y"]}, {"tags:x": 1.0, "tags:y": 1.0}),
    ({"tags": {"x", "y"}}, {"tags:x": 1.0, "tags:y": 1.0}),
    ({"next": {"word": "sat", "n": 2.5, "up": True}}, {"next:word:sat": 1.0, "next:n": 2.5, "next:up": 1.0}),
    ({"a": {"b": {"c": ["d"]}}}, {"a:b:c:d": 1.0}),
    (["bias", "word=cat"], {"bias": 1.0, "word=cat": 1.0}),
    (("a", "b"), {"a": 1.0, "b": 1.0}),
    ({"a", "b"}, {"a": 1.0, "b": 1.0}),
    ({}, {}),
    ([], {}),
    (
        {"Straße": {"日本": "\U0001d11e"}, "b": {"c": 1, "d": 2}},
        {"Straße:日本:\U0001d11e": 1.0, "b:c": 1.0, "b:d": 2.0},
    ),
    ({"n": np.float32(0.5), "m": np.int64(3), "t": np.bool_(True)}, {"n": 0.5, "m": 3.0, "t": 1.0}),
    ({"n": np.float32(0), "t": np.bool_(False)}, {"n": 0.0, "t": 0.0}),
]


def expanded(item):
    rows = attribute_rows([[item]])
    assert rows.indptr.tolist() == [0, len(rows.names)]
    return dict(zip(rows.names, rows.values.tolist(), strict=True))


@pytest.mark.parametrize(("item", "attributes"), RULES)
def test_rules(item, attributes):
    assert expanded(item) == attributes


@pytest.mark.parametrize("item", [item for item, _ in RULES])
def test_the_rules_are_those_of_python_crfsuite(item):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    assert expanded(item) == pycrfsuite.ItemSequence([item]).items()[0]


def test_other_mappings_and_halves_of_surrogate_pairs():
    item = MappingProxyType({"a": MappingProxyType({"b": ("c", "d")}), "half": "\ud800"})
    assert expanded(item) == {"a:b:c": 1.0, "a:b:d": 1.0, "half:\ud800": 1.0}


def test_bytes_are_text_in_utf8():
    """As python-crfsuite takes them: names, values and names in lists and sets."""
    item = {"a": "ä".encode(), b"b": {b"c": b"d"}, "e": {b"g", "f"}, "h": [b"i"], b"j": 2.0}
    assert expanded(item) == {"a:ä": 1.0, "b:c:d": 1.0, "e:f": 1.0, "e:g": 1.0, "h:i": 1.0, "j": 2.0}
    X, y = [[{"word": "the"}, {"word": "cat"}], [["bias"], ["word=a"]]], [["D", "N"], ["N", "D"]]
    encoded = [[{b"word": b"the"}, {"word": b"cat"}], [[b"bias"], (b"word=a",)]]
    crf, same = KernelCRF(c2=1).fit(encoded, y), KernelCRF(c2=1).fit(X, y)
    assert crf.attributes_ == same.attributes_ and crf.certificate_ == same.certificate_
    for _ in range(2):  # the second call is the C library's
        assert same.predict(encoded) == same.predict(X)


def test_positions_follow_each_other():
    rows = attribute_rows([[{"a": 1.0, "b": "x"}], [], [{}, ["c"]]])
    assert rows.indptr.tolist() == [0, 2, 2, 3]
    assert list(rows.names) == ["a", "b:x", "c"]


def test_sets_come_in_one_order():
    names = [str(number) for number in range(50)]
    assert list(attribute_rows([[set(names)]]).names) == sorted(names)


@pytest.mark.parametrize(
    ("item", "error", "message"),
    [
        ({1: 2.0}, TypeError, "must be a string, not 1"),
        ({"n": {"ä": bytearray(b"x")}}, TypeError, "'n:ä' is of type bytearray"),
        ({"a": b"\xff"}, ValueError, r"b'\\xff' is not UTF-8"),
        ({b"\xff": 1.0}, ValueError, r"b'\\xff' is not UTF-8"),
        ({b"b", b"\xff"}, ValueError, r"b'\\xff' is not UTF-8"),
        ({"a": None}, TypeError, "'a' is of type NoneType"),
        ({"a": ["b", 2]}, TypeError, "list of their names"),
        ({"a": {"b": [1, 2]}}, TypeError, "list of their names"),
        ({"a": float("nan")}, ValueError, "'a' is not finite"),
        ({"": 1.0}, ValueError, "without a name"),
        ([""], ValueError, "without a name"),
        ("word", TypeError, "not 'word'"),
        (3, TypeError, "not 3"),
    ],
)
def test_errors_name_the_position(item, error, message):
    with pytest.raises(error, match=message) as caught:
        attribute_rows([[{"fine": 1.0}], [], [{"fine": 1.0}, item]])
    assert str(caught.value).startswith("X[2][1]: ")
