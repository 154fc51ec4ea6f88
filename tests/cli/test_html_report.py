"""The page of `evaluate --html`: whole, self-contained, escaped, the same every time."""

from __future__ import annotations

import re
import string
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

from kcrf_cli.render import evaluation_text as plain
from kcrf_cli.render.visible import shortened

ALONE = {"meta", "link", "br", "img", "input"}


class Page(HTMLParser):
    """Checks that elements are closed in order; collects text, tags and attributes."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.words, self.tags, self.attributes = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ALONE:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(self.words)


def tagged(rng, labels, sequences=30, words=("the", "cat")):
    lines = []
    for _ in range(sequences):
        for _ in range(rng.integers(1, 12)):
            gold = str(rng.choice(labels))
            predicted = gold if rng.random() < 0.8 else str(rng.choice(labels))
            lines.append(f"{rng.choice(words)}\t{gold}\t{predicted}:{rng.uniform(0.3, 1):.3f}\t{predicted}")
        lines.append("")
    return "\n".join(lines)


@pytest.fixture
def report(kcrf, tmp_path):
    """The page made of a tagged file's text."""

    def make(content, *options):
        data, out = tmp_path / "data.conll", tmp_path / "report.html"
        data.write_text(content, encoding="utf-8")
        done = kcrf("evaluate", data, "--html", out, *options)
        assert done.code == 0, done.err
        return out.read_text(encoding="utf-8")

    return make


def test_every_part_is_there(report, rng):
    text = report(tagged(rng, ["O", "B-x", "I-x", "B-y"], 80))
    page = Page(text)
    headings = re.findall(r"<h2>(.*?)</h2>", text)
    assert headings == [
        "Summary", "Spans", "Labels", "Reliability", "Errors of spans", "Words most often wrong", "Confusion",
        "Worst sequences",
    ]  # fmt: skip
    assert re.findall(r'<li><a href="#(.*?)">(.*?)</a></li>', text) == re.findall(
        r'<section id="(.*?)".*?>\n<h2>(.*?)</h2>', text
    ) == [(f"s{n}", name) for n, name in enumerate(headings, start=1)]  # fmt: skip
    assert "95 % interval" in page.text and "expected calibration error" in page.text
    assert "sequence " in page.text and text.count('class="sequence"') == 20
    assert text.count('class="t e"') > 20


def test_many_labels_take_the_width_of_the_page(report, rng):
    text = report(tagged(rng, list(string.ascii_lowercase), 60))
    assert re.findall(r"<section id=.*? class=whole>\n<h2>(.*?)<", text) == ["Confusion", "Worst sequences"]
    assert text.index("<h2>Reliability") < text.index("<h2>Confusion")


def test_it_needs_nothing_else(report, rng):
    text = report(tagged(rng, ["a", "b"]))
    page = Page(text)
    assert not {"link", "img", "iframe", "object", "script"} & set(page.tags)
    assert not {"src", "style"} & {name for name, _ in page.attributes}
    assert all(value.startswith("#") for name, value in page.attributes if name == "href")
    assert not re.search(r"url\(|@import|https?://", text)
    assert "prefers-color-scheme: dark" in text


def test_the_same_for_the_same_input(report, kcrf, rng, tmp_path):
    content = tagged(rng, ["a", "b"])
    text = report(content)
    assert report(content) == text
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "data.conll").write_text(content)
    assert kcrf("evaluate", folder / "data.conll", "--html", folder / "x.html").code == 0
    assert (folder / "x.html").read_text() == text
    assert str(tmp_path) not in text


def test_markup_in_words_and_labels_is_text(report, rng):
    words = ["<b>bold</b>", "a&amp;b", '"quoted"', "it's", "</style>", "<!--", "\x01\x1b\x85", "שלום"]
    labels = ["<script>alert(1)</script>", 'a&"b', "</svg>", "it's"]
    text = report(tagged(rng, labels, 60, words))
    page = Page(text)
    assert "script" not in page.tags and "b" not in page.tags
    for shown in [*words[:6], *labels]:
        assert shown in page.text or shortened(shown) in page.text
    assert "\x01" not in text and "\ufffd\ufffd\ufffd" in text
    assert "<th>it&#x27;s</th>" in text


@pytest.mark.parametrize("labels", [2, 26, 30, 31, 300])
def test_confusion_of_few_and_many_labels(report, labels):
    rng = np.random.default_rng(0)
    names = sorted([*string.ascii_lowercase, *(f"label-{k}" for k in range(300))][:labels])
    gold = np.concatenate([np.arange(labels), rng.integers(labels, size=600)])
    got = np.where(rng.random(len(gold)) < 0.8, gold, rng.integers(labels, size=len(gold)))
    counts = np.zeros((labels, labels), dtype=int)
    np.add.at(counts, (gold, got), 1)
    text = report("".join(f"w\t{names[a]}\t{names[b]}\n\n" for a, b in zip(gold, got, strict=True)))
    table = ElementTree.fromstring(re.search(r'<table class="matrix.*?</table>', text, re.DOTALL)[0])
    shown, small = plain.gathered(names, counts)
    assert small.sum() == counts.sum() and len(shown) == min(labels, plain.MOST_LABELS)
    rows = list(table.find("tbody"))
    assert [[int(cell.text or 0) for cell in row.iter("td")] for row in rows] == small.tolist()
    heads = [cell.text for cell in table.find("thead").iter("span")]
    assert heads == [row.find("th").text for row in rows] == shown
    for y, x in zip(*np.nonzero(small), strict=True):
        cell, share = rows[y].findall("td")[x], small[y, x] / small[y].sum()
        kind = "wrong" if x != y else "mixed" if shown[y] == plain.OTHERS else "right"
        assert cell.get("class") == f"{kind} d{int(np.ceil(8 * share**0.5))}"
        assert cell.get("title").endswith(f" {small[y, x]:,} ({100 * share:.1f} % of {shown[y]})")
    if labels > plain.MOST_LABELS:
        # The labels with most errors are the ones that keep their own row.
        wrong = counts.sum(axis=0) + counts.sum(axis=1) - 2 * np.diagonal(counts)
        kept = [names.index(name) for name in shown[:-1]]
        assert min(wrong[kept]) >= max(np.delete(wrong, kept)) and kept == sorted(kept)


def test_reliability_is_a_table(report):
    labels = [("XY"[t < 3], 0.95 if t % 2 else 0.55) for t in range(10)]
    text = report("".join(f"w\tX\t{label}:{p}\t{label}\n\n" for label, p in labels))
    rows = re.findall(r"<tr><td>(\S+ to \S+ %)</td><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td></tr>", text)
    assert rows == [("50 to 60 %", "5", "55.00", "60.00"), ("90 to 100 %", "5", "95.00", "80.00")]


def test_readings_have_no_words(report):
    """A subject and an antenna beside readings are not words: no list of wrong ones, and gold labels in their place."""
    rng = np.random.default_rng(0)
    rows = [f"S{t // 100}\tA{rng.integers(4)}\t{rng.normal():.3f}\t{'ab'[t % 50 < 20]}" for t in range(400)]
    text = report("".join(f"{row}\t{'ab'[t % 50 < 25]}\n" + "\n" * (t % 200 == 199) for t, row in enumerate(rows)))
    assert "Words most often wrong" not in text and '<span class="t">a</span>' in text


def test_tables_can_be_scrolled(report, rng):
    """Every table stands in a box that scrolls."""
    text = report(tagged(rng, ["O", "B-x", "I-x", "B-y"], 20))
    tables = re.findall(r"(.{18})<table", text)
    assert len(tables) >= 6 and set(tables) == {'<div class="wide">'}
    assert re.search(r"\.wide, \.sequence { overflow-x: auto;", text)


def test_worst_sequences_come_first_and_long_ones_are_cut(report):
    def sequence(length, wrong):
        return "".join(f"w{t} X {'Y' if t in wrong else 'X'}\n" for t in range(length)) + "\n"

    content = sequence(3, {0, 1}) + sequence(2, {0, 1}) + sequence(300, {150, 299, 298}) + sequence(4, ())
    text = report(content.replace(" ", "\t"))
    heads = re.findall(r'<p class="head">(.*?)</p>', text)
    assert heads == [
        "sequence 3, line 8: 3 of 300 wrong",
        "sequence 2, line 5: 2 of 2 wrong",
        "sequence 1, line 1: 2 of 3 wrong",
    ]
    gaps = re.findall(r'class="t gap">(.*?)<', text)
    assert gaps == ["… 142 right …", "… 131 right …"]
    assert text.count('class="t e"') == 7
    huge = report((sequence(1000, range(1, 1000))).replace(" ", "\t"))
    assert huge.count('class="t e"') == 399 and "… 600 more, 600 of them wrong" in huge
    right = report(sequence(3, ()).replace(" ", "\t"))
    assert "every sequence is right" in right


def test_positions_without_words_show_their_labels(report):
    text = report("0.5\ta\ta\n1\tb\tc\n\n1\tc\tc\n")
    assert '<span class="t">a</span>' in text
    line = "<small><i>line 2</i></small>"
    assert f'<span class="t e"><small><i>gold</i> b</small><small><i>got</i> c</small>{line}</span>' in text


def test_totals_are_feet_of_tables(report, rng):
    text = report(tagged(rng, ["O", "B-x", "I-x", "B-y"], 20))
    tables = re.findall(r"<table>\n<thead>\n(.*?)\n</thead>\n<tbody>(.*?)</tbody>", text, re.DOTALL)
    assert len(tables) == 5 and all("<td>all</td>" not in body for _, body in tables)
    assert text.count("<tfoot>") == 2


def test_comparison_is_on_the_page(kcrf, tmp_path):
    (tmp_path / "a").write_text("u X X\nv Y X\n\nw X X\n")
    (tmp_path / "b").write_text("u X X\nv Y Y\n\nw X Y\n")
    assert kcrf("evaluate", tmp_path / "a", "--compare", tmp_path / "b", "--html", tmp_path / "c.html").code == 0
    page = Page((tmp_path / "c.html").read_text())
    assert (
        "Evaluation of a" in page.text
        and "this is a, the other is b" in page.text
        and "only in the other" in page.text
        and "two-sided" in page.text
    )


def test_how_the_page_came_about(kcrf, trained, sample_data, tmp_path):
    """Command, versions and digest in the footer, and probabilities of labels that are wrong."""
    import hashlib

    data, path = sample_data / "pitch_accent.conll", tmp_path / "page.html"
    assert kcrf("evaluate", "-m", trained, data, "--bootstrap", "10", "--html", path).code == 0
    text = path.read_text()
    footer = text.split("<footer>")[1]
    assert "<code>kcrf evaluate -m model.npz pitch_accent.conll --bootstrap 10</code>" in footer
    assert f"SHA-256 {hashlib.sha256(data.read_bytes()).hexdigest()}" in footer and "NumPy" in footer
    assert re.search(r"<i>gold</i> [01]</small><small><i>got</i> [01] 0\.\d\d</small>", text)
