"""The page of `evaluate --html`: whole, self-contained, escaped, the same every time."""

from __future__ import annotations

import re
import shutil
import string
import subprocess
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

from kcrf_cli.render.visible import shortened
from kcrf_cli.report import svg

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


def pictures(text):
    """The SVG parts, which must be XML by themselves."""
    return [ElementTree.fromstring(part) for part in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]


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
        "Summary", "Spans", "Errors of spans", "Labels", "Confusion", "Reliability", "Words most often wrong",
        "Worst sequences",
    ]  # fmt: skip
    assert re.findall(r'<li><a href="#(.*?)">(.*?)</a></li>', text) == re.findall(
        r'<section id="(.*?)".*?>\n<h2>(.*?)</h2>', text
    ) == [(f"s{n}", name) for n, name in enumerate(headings, start=1)]  # fmt: skip
    assert "95 % interval" in page.text and "expected calibration error" in page.text
    assert "sequence " in page.text and text.count('class="sequence"') == 20
    assert text.count('table class="spans"') > 20
    assert report(tagged(rng, ["a", "b"]), "--worst", "3").count('class="sequence"') == 3
    assert "Worst" not in report(tagged(rng, ["a", "b"]), "--worst", "0")


def test_many_labels_take_the_width_of_the_page(report, rng):
    text = report(tagged(rng, list(string.ascii_lowercase), 60))
    assert re.findall(r"<section id=.*? class=whole>\n<h2>(.*?)<", text) == ["Confusion", "Worst sequences"]
    assert text.index("<h2>Reliability") < text.index("<h2>Confusion")


def test_it_needs_nothing_else(report, rng):
    text = report(tagged(rng, ["a", "b"]))
    page = Page(text)
    assert not {"link", "img", "iframe", "object"} & set(page.tags) and page.tags.count("script") == 1
    assert not {"src", "style"} & {name for name, _ in page.attributes}
    assert all(value.startswith("#") for name, value in page.attributes if name == "href")
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", text)
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
    assert page.tags.count("script") == 1 and "b" not in page.tags
    for shown in [*words[:6], *labels]:
        assert shown in page.text or shortened(shown) in page.text
    assert "\x01" not in text and "\ufffd\ufffd\ufffd" in text
    assert "<th>it&#x27;s</th>" in text


@pytest.mark.parametrize("labels", [2, 26, 40, 41, 300])
def test_confusion_of_few_and_many_labels(report, labels):
    rng = np.random.default_rng(0)
    names = sorted([*string.ascii_lowercase, *(f"label-{k}" for k in range(300))][:labels])
    gold = np.concatenate([np.arange(labels), rng.integers(labels, size=600)])
    got = np.where(rng.random(len(gold)) < 0.8, gold, rng.integers(labels, size=len(gold)))
    counts = np.zeros((labels, labels), dtype=int)
    np.add.at(counts, (gold, got), 1)
    text = report("".join(f"w\t{names[a]}\t{names[b]}\n\n" for a, b in zip(gold, got, strict=True)), "--worst", "0")
    table = ElementTree.fromstring(re.search(r'<table class="matrix.*?</table>', text, re.DOTALL)[0])
    shown, small = svg.gathered(names, counts)
    assert small.sum() == counts.sum() and len(shown) == min(labels, svg.MOST_LABELS)
    rows = list(table.find("tbody"))
    assert [[int(cell.text or 0) for cell in row.iter("td")] for row in rows] == small.tolist()
    heads = [cell.text for cell in table.find("thead").iter("span")]
    assert heads == [row.find("th").text for row in rows] == shown
    for y, x in zip(*np.nonzero(small), strict=True):
        cell, share = rows[y].findall("td")[x], small[y, x] / small[y].sum()
        kind = "wrong" if x != y else "mixed" if shown[y] == svg.OTHERS else "right"
        assert cell.get("class") == f"{kind} d{int(np.ceil(8 * share**0.5))}"
        assert cell.get("title").endswith(f" {small[y, x]:,} ({100 * share:.1f} % of {shown[y]})")
    if labels > svg.MOST_LABELS:
        # The labels with most errors are the ones that keep their own row.
        wrong = counts.sum(axis=0) + counts.sum(axis=1) - 2 * np.diagonal(counts)
        kept = [names.index(name) for name in shown[:-1]]
        assert min(wrong[kept]) >= max(np.delete(wrong, kept)) and kept == sorted(kept)


def test_reliability_is_a_table_with_bars(report):
    labels = [("XY"[t < 3], 0.95 if t % 2 else 0.55) for t in range(10)]
    text = report("".join(f"w\tX\t{label}:{p}\t{label}\n\n" for label, p in labels))
    rows = re.findall(r"<tr><td>(\S+ to \S+ %)</td><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td></tr>", text)
    assert [row[:4] for row in rows] == [("50 to 60 %", "5", "55.00", "60.00"), ("90 to 100 %", "5", "95.00", "80.00")]
    assert [row[4] for row in rows] == [f'<meter max="1" value="{value}"></meter>' for value in ("0.6000", "0.8000")]


def test_readings_have_no_words(report):
    """A subject and an antenna beside readings are not words: no list of wrong ones, and timelines for boxes."""
    rng = np.random.default_rng(0)
    rows = [f"S{t // 100}\tA{rng.integers(4)}\t{rng.normal():.3f}\t{'ab'[t % 50 < 20]}" for t in range(400)]
    text = report("".join(f"{row}\t{'ab'[t % 50 < 25]}\n" + "\n" * (t % 200 == 199) for t, row in enumerate(rows)))
    assert "Words most often wrong" not in text and text.count("Gold and predicted labels of lines") == 2
    assert 'span class="t' not in text


def test_tables_can_be_scrolled(report, rng):
    """Every table but those of spans stands in a box that scrolls."""
    text = report(tagged(rng, ["O", "B-x", "I-x", "B-y"], 20))
    tables = re.findall(r"(.{18})<table(?! class=.spans)", text)
    assert len(tables) >= 6 and set(tables) == {'<div class="wide">'}
    assert re.search(r"\.wide, \.sequence { overflow-x: auto;", text)


def test_worst_sequences_come_first_and_long_ones_are_cut(report):
    def sequence(length, wrong):
        return "".join(f"w{t} X {'Y' if t in wrong else 'X'}\n" for t in range(length)) + "\n"

    content = sequence(3, {0, 1}) + sequence(2, {0, 1}) + sequence(300, {150, 299, 298}) + sequence(4, ())
    text = report(content.replace(" ", "\t"), "--worst", "10")
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
    strip = report((sequence(1001, range(1, 1001))).replace(" ", "\t"))
    assert 'span class="t' not in strip and "Gold and predicted labels of lines 1 to 1001" in strip
    right = report(sequence(3, ()).replace(" ", "\t"))
    assert "every sequence is right" in right


LETTERS = string.ascii_lowercase[:10]  # more labels than colours


def test_positions_without_words_show_their_labels(report):
    text = report("0.5\ta\ta\n1\tb\tc\n\n" + "\n\n".join(f"1\t{label}\t{label}" for label in LETTERS))
    assert '<span class="t">a</span>' in text
    line = "<small><i>line 2</i></small>"
    assert f'<span class="t e"><small><i>gold</i> b</small><small><i>got</i> c</small>{line}</span>' in text


def test_spans_are_boxes_over_their_words(report):
    rows = [("New", "B-L", "B-L"), ("York", "I-L", "I-L"), ("is", "O", "O"), ("big", "O", "B-P"), ("Mr", "O", "B-P"),
            ("Smith", "B-P", "I-P"), ("Jr", "I-P", "O"), ("<IBM>", "B-O", "B-L")]  # fmt: skip
    text = report("".join(f"{word}\t{gold}\t{got}:0.5\t{got}\n" for word, gold, got in rows))
    Page(text)
    assert '<span class="s">New York&nbsp;<b>L</b></span>' in text and '<span class="t">is</span>' in text
    boundary = (
        '<tr><td>Mr</td><td>Smith</td><td>Jr</td></tr>'
        '<tr><td colspan="1"></td><td class="gold" colspan="2"><i>gold</i> P</td></tr>'
        '<tr><td class="got" colspan="2"><i>got</i> P 0.50</td></tr>'
        '<tr><td colspan="3"><small><i>line 5</i></small></td></tr>'
    )  # fmt: skip
    assert boundary in text
    assert '<tr><td>big</td></tr><tr><td class="got" colspan="1"><i>got</i> P 0.50</td></tr>' in text
    assert '<td>&lt;IBM&gt;</td></tr><tr><td class="gold" colspan="1"><i>gold</i> O</td></tr>' in text
    # The same span in other labels.
    text = report("a\tI-X\tB-X\nb\tI-X\tI-X\nc\tO\tO\n")
    assert "<i>gold</i> I-X I-X</td>" in text and "<i>got</i> B-X I-X</td>" in text


def test_spans_of_long_sequences_are_not_cut(report):
    rows = [f"w{t}\t{'B-X' if t == 20 else 'I-X' if 20 < t < 40 else 'O'}" for t in range(99)]
    text = report("".join(f"{row}\t{'B-X' if t == 44 else row.split()[1]}\n" for t, row in enumerate(rows)))
    assert f'<span class="s">{" ".join(f"w{t}" for t in range(20, 40))}&nbsp;<b>X</b></span>' in text
    assert re.findall(r'class="t gap">(.*?)<', text) == ["… 20 right …", "… 46 right …"]


def test_tables_can_be_sorted(report, rng):
    """The script makes buttons of their heads; totals are no rows that are sorted."""
    text = report(tagged(rng, ["O", "B-x", "I-x", "B-y"], 20))
    tables = re.findall(r"<table class=\"sortable\">\n<thead>\n(.*?)\n</thead>\n<tbody>(.*?)</tbody>", text, re.DOTALL)
    assert len(tables) == 5 and all("<td>all</td>" not in body for _, body in tables)
    assert text.count("<tfoot>") == 2 and 'querySelectorAll("table.sortable")' in text and "aria-sort" in text


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
def test_sorting_in_a_browser(report, rng, tmp_path):
    text = report(tagged(rng, ["O", "B-x", "I-x", "B-y", "B-z"], 40))
    click = "<script>document.querySelectorAll('#s2 th button')[4].click();</script></body>"
    (tmp_path / "page.html").write_text(text.replace("</body>", click))
    options = ("--headless", "--no-sandbox", f"--user-data-dir={tmp_path}/profile", "--dump-dom")
    done = subprocess.run(["chromium", *options, (tmp_path / "page.html").as_uri()], capture_output=True, text=True)
    body = re.search(r'id="s2".*?<tbody>(.*?)</tbody>', done.stdout, re.DOTALL).group(1)
    counts = [int(row.split("</td><td>")[4]) for row in re.findall("<tr>(.*?)</tr>", body)]
    assert counts == sorted(counts, reverse=True) and len(counts) == 3
    assert 'aria-sort="descending"' in done.stdout


def test_comparison_is_on_the_page(kcrf, tmp_path):
    (tmp_path / "a").write_text("u X X\nv Y X\n\nw X X\n")
    (tmp_path / "b").write_text("u X X\nv Y Y\n\nw X Y\n")
    assert kcrf("evaluate", tmp_path / "a", "--compare", tmp_path / "b", "--html", tmp_path / "c.html").code == 0
    page = Page((tmp_path / "c.html").read_text())
    assert (
        "Evaluation of a" in page.text
        and "This is a, the other is b." in page.text
        and "only in the other" in page.text
        and "two-sided" in page.text
    )


# ----------------------------------------------------------------------------- strips


def drawn(page, number, kind):
    """Rectangles (x, y, width, height) of a class in one of the strips of a page."""
    strip = [picture for picture in pictures(page) if "Gold and predicted" in picture.get("aria-label", "")][number]
    name = "{http://www.w3.org/2000/svg}path"
    paths = [path.get("d") for path in strip.iter(name) if path.get("class") == kind]
    found = [re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)h-[\d.]+z", path) for path in paths]
    return [tuple(map(float, one)) for each in found for one in each]


def measured(labels, wrong=(), sure=0.75):
    """A tagged sequence without words."""
    rows = []
    for t, gold in enumerate(labels):
        predicted = "wrong" if t in wrong else gold
        rows.append(f"0.5\t{gold}\t{predicted}:{sure}\t{predicted}\n")
    return "".join(rows) + "\n"


def test_long_sequences_of_numbers_are_strips(report):
    labels = ["a"] * 60 + ["b"] * 30 + ["a"] * 10
    text = report(measured(labels, wrong={70}), "--worst", "5")
    assert 'span class="t' not in text
    Page(text)
    # 100 positions share 1,000 pixels from x = 84 on; gold stands above predicted.
    assert drawn(text, 0, "k1") == [(684, 4, 300, 20), (684, 29, 100, 20), (794, 29, 190, 20)]
    assert drawn(text, 0, "k2") == [(784, 29, 10, 20)]
    assert drawn(text, 0, "wrong") == [(784, 54, 10, 7)]
    assert re.search(r'class="area" d="M84 110V77H94', text)  # a probability of 0.75 of 44 pixels
    assert [name for name in ("a", "b", "wrong") if f"</svg>{name}</span>" in text] == ["a", "b", "wrong"]


def test_short_sequences_of_numbers_are_strips_if_labels_have_colours(report):
    text = report(measured(["a"] * 50, wrong={3}))
    assert "Gold and predicted labels of lines 1 to 50" in text and 'class="t e"' not in text
    assert re.search(r'<text class="run pale" .*?>a</text>', text)  # names stand in runs that are wide enough
    text = report(measured([*"aaaa", *LETTERS], wrong={3}))
    assert "Gold and predicted" not in text and text.count('class="t e"') == 1


def test_a_rare_label_among_very_many_positions_is_seen(report):
    labels = ["none"] * 30_000
    labels[12_345] = "event"
    text = report(measured(labels, wrong={20_000, 20_001, 20_003}))
    assert len(text) < 60_000
    # "wrong" occurs three times, "event" twice, once in each row: a pixel of its column.
    gold, predicted = drawn(text, 0, "k2")
    assert gold[0] == predicted[0] == 84 + 411
    assert gold[2:] == predicted[2:] == (1, 1)
    assert 4 <= gold[1] < 24 < 29 <= predicted[1] < 49
    # The close-up has the 250 positions with the most errors, four pixels each.
    assert drawn(text, 1, "wrong") == [(pytest.approx(84 + 4 * at), 54, 4 * n, 7) for at, n in ((123, 2), (126, 1))]
    assert "line 19,878" in text


def test_more_labels_than_colours(report):
    labels = [f"L{t % 30}" for t in range(300)]
    text = report(measured(labels, wrong={5}))
    assert "all others" in text
    assert drawn(text, 0, "others")


def test_strips_without_probabilities(report):
    text = report("".join(f"{t}\ta\t{'ab'[t == 7]}\n" for t in range(100)))
    assert "Gold and predicted" in text
    assert 'class="area"' not in text


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
