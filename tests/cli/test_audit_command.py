"""`kcrf audit`: what it prints and writes, corrections by a person, and mistakes."""

from __future__ import annotations

import csv
import json

import pytest

HEADER = ["line", "text", "gold", "suggested", "accept", "doubt", "p_label", "reason"]
OPTIONS = ("--sigma2", "1", "--folds", "2", "--threads", "1")


@pytest.fixture
def data(tmp_path):
    """Labels that follow from words, but for two lines."""
    sequence = "the D\ndog N\nbarks V\n\na D\ncat N\nsleeps V\n\n"
    text = (sequence * 20).replace("cat N", "cat V", 1)
    path = tmp_path / "data.conll"
    path.write_text(text[::-1].replace("N god", "D god", 1)[::-1])
    return path


def test_json_has_the_worst_first(kcrf, data):
    done = kcrf("audit", data, *OPTIONS, "--json", "-q")
    found = json.loads(done.out)
    assert done.code == 0 and done.err == ""
    worst = found["positions"][:2]
    assert {(one["line"], one["gold"], one["suggested"]) for one in worst} == {(6, "V", "N"), (154, "D", "N")}
    assert worst[0]["doubt"] >= worst[1]["doubt"] and worst[1]["marginal"] < 0.05 and worst[0]["text"] in ("cat", "dog")
    assert found["judged_by"] == "folds" and found["judged"] == 120
    assert found["doubtful"] == found["places"] == len(found["positions"]) == 2  # likely errors alone


def marked(path, rows):
    """Write rows of a worklist with y in `accept`."""
    head, *lines = (row.split("\t") for row in rows)
    for line in lines:
        line[head.index("accept")] = "y"
    path.write_text("".join("\t".join(cells) + "\n" for cells in [head, *lines]))


def test_worklist_page_and_corrections(kcrf, data, tmp_path):
    paths = {name: tmp_path / name for name in ("list.tsv", "page.html", "new.conll")}
    done = kcrf(
        "audit", data, *OPTIONS, "-o", paths["list.tsv"], "--html", paths["page.html"], "--top", "2", "--most", "9"
    )
    before = data.read_text()
    assert (
        done.code == 0
        and done.text.startswith("line  text  gold  suggested")
        and "2 labels below p(gold | input) = 0.05" in done.text
    )
    page = paths["page.html"].read_text()
    assert '<div class="pairs">' in page and "<nav" not in page  # one list, in two columns
    assert "<i>gold</i> V" in page and "<i>better</i> N" in page and "line 6," in page
    rows = paths["list.tsv"].read_text().splitlines()
    assert rows[0].split("\t") == HEADER and len(rows) == 10
    doubts = [float(row.split("\t")[5]) for row in rows[1:]]
    assert doubts == sorted(doubts, reverse=True) and doubts[1] > -3 > doubts[2]
    marked(tmp_path / "both.tsv", rows[:3])
    done = kcrf("audit", data, "--accept", tmp_path / "both.tsv", "--apply", paths["new.conll"])
    assert done.code == 0 and "2 labels corrected" in done.err and "data.conll is unchanged" in done.err
    assert paths["new.conll"].read_text() == before.replace("cat V", "cat N").replace("dog D", "dog N")
    # A person accepts one of the rows, and says better what stands there.
    kept = [row for row in rows if row.startswith("6\t")]
    marked(tmp_path / "kept.tsv", [rows[0], kept[0].replace("\tN\t", "\tNOUN\t")])
    accept = ("audit", data, "--accept", tmp_path / "kept.tsv", "--apply", tmp_path / "by_hand.conll")
    done = kcrf(*accept)
    assert done.code == 3 and "kept.tsv:2: the data has no label 'NOUN'" in done.err and "--new-labels" in done.err
    assert not (tmp_path / "by_hand.conll").exists()
    done = kcrf(*accept, "--new-labels")
    assert done.code == 0 and (tmp_path / "by_hand.conll").read_text() == before.replace("cat V", "cat NOUN")


def test_a_list_that_no_person_has_marked_changes_nothing(kcrf, data, tmp_path):
    listed, new = tmp_path / "list.tsv", tmp_path / "new.conll"
    assert kcrf("audit", data, *OPTIONS, "-q", "-o", listed, "--most", "20", "--top", "0").code == 0
    accept = ("audit", data, "--accept", listed, "--apply", new)
    done = kcrf(*accept)
    assert done.code == 3 and "no row is accepted" in done.err and not new.exists()
    rows = listed.read_text().splitlines()
    marked(listed, [*rows[:3], *rows[1:3] * 3])  # a row that is repeated counts once
    done = kcrf(*accept)
    assert done.code == 0 and "2 labels corrected" in done.err


def test_a_word_of_quotes_merges_no_rows(kcrf, data, tmp_path):
    data.write_text(data.read_text().replace("cat V", '"""" V', 1))
    listed, new = tmp_path / "list.tsv", tmp_path / "new.conll"
    assert kcrf("audit", data, *OPTIONS, "-q", "-o", listed, "--most", "120", "--top", "0").code == 0
    with open(listed, newline="") as stream:
        rows = list(csv.reader(stream, delimiter="\t"))
    assert len(rows) == 121 and '""""' in [row[1] for row in rows]
    for row in rows[1:]:
        row[4] = "y" if row[1] == '""""' else ""
    with open(listed, "w", newline="") as stream:
        csv.writer(stream, delimiter="\t").writerows(rows)
    done = kcrf("audit", data, "--accept", listed, "--apply", new)
    assert done.code == 0 and new.read_text() != data.read_text() and '"""" V' not in new.read_text()


def test_a_model_judges(kcrf, data, tmp_path):
    assert kcrf("train", data, "--sigma2", "1", "-q", "-o", tmp_path / "m.npz").code == 0
    done = kcrf("audit", data, "-m", tmp_path / "m.npz", "--top", "2")
    assert done.code == 0 and {line.split()[0] for line in done.text.splitlines()[1:3]} == {"6", "154"}
    assert "by a model that may have learnt from them" in done.text
    assert kcrf("audit", data, "-m", tmp_path / "m.npz", "--sigma2", "1").code == 2
    assert kcrf("audit", data, "-m", tmp_path / "m.npz", "--apply", tmp_path / "new").code == 2


@pytest.mark.parametrize(
    "arguments, code, said",
    [
        (("--apply", "new"), 2, "--accept"),
        (("--accept", "no.tsv"), 2, "--apply"),
        (("--new-labels",), 2, "--accept"),
        (("--json", "-o", "-"), 2, "both write to stdout"),
        (("--folds", "200"), 3, "cannot make 200 folds"),
        (("--accept", "no.tsv", "--apply", "new"), 1, "no.tsv"),
    ],
)
def test_mistakes(kcrf, data, tmp_path, monkeypatch, arguments, code, said):
    monkeypatch.chdir(tmp_path)
    done = kcrf("audit", data, *arguments)
    assert done.code == code and said in done.err and "Traceback" not in done.err


def test_a_worklist_of_csv_with_the_layout_of_options_or_of_a_model(kcrf, tmp_path):
    text = 'word,note,label\nthe,,D\ncat,"seen as N,V or so",V\n\nthe,,D\ndog,,N\n\n'
    data, worklist, new = (tmp_path / name for name in ("data.csv", "list.tsv", "new.csv"))
    data.write_text(text)
    worklist.write_text("\ufeffline\ttext\tgold\tsuggested\taccept\n3\tcat\tV\tN\ty\n")
    layout = ("--separator", ",", "--header")
    assert kcrf("train", data, *layout, "--sigma2", "1", "-q", "-o", tmp_path / "m.npz").code == 0
    for options in (layout, ("-m", tmp_path / "m.npz")):
        done = kcrf("audit", data, *options, "--accept", worklist, "--apply", new)
        assert done.code == 0 and "1 label corrected" in done.err
        assert new.read_text() == text.replace('so",V', 'so",N')
    worklist.write_bytes(b"\xff")
    done = kcrf("audit", data, *layout, "--accept", worklist, "--apply", new)
    assert done.code == 3 and done.err.endswith("list.tsv: not a worklist: not UTF-8 text\n")
