"""`kcrf audit`: what it prints and writes, corrections by a person, and mistakes."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

HEADER = ["line", "text", "gold", "suggested", "p_wrong", "p_given_label", "reason"]
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
    assert worst[0]["probability"] <= worst[1]["probability"] < 0.1 and worst[0]["text"] in ("cat", "dog")
    assert found["judged_by"] == "folds" and found["judged"] == len(found["positions"]) == 120
    assert 1 < found["expected_errors"] < 4
    assert found["sequences"][0]["line"] in (5, 153)


def test_worklist_page_picture_and_corrections(kcrf, data, tmp_path):
    pytest.importorskip("matplotlib")
    paths = {name: tmp_path / name for name in ("list.tsv", "page.html", "p.svg", "new.conll")}
    done = kcrf(
        "audit", data, *OPTIONS, "-o", paths["list.tsv"], "--html", paths["page.html"], "--plot", paths["p.svg"],
        "--apply", paths["new.conll"], "--top", "2",
    )  # fmt: skip
    before = data.read_text()
    assert done.code == 0 and "2 labels corrected" in done.err and "data.conll is unchanged" in done.err
    assert done.text.startswith("line  text  gold  suggested") and "about 2 are wrong" in done.text
    assert paths["new.conll"].read_text() == before.replace("cat V", "cat N").replace("dog D", "dog N")
    assert "-cat V\n+cat N\n" in (tmp_path / "new.conll.diff").read_text()
    page = paths["page.html"].read_text()
    assert '<div class="pairs">' in page and "<nav" not in page  # one list, in two columns
    assert "<i>gold</i> V" in page and "<i>better</i> N" in page and "line 6," in page
    rows = paths["list.tsv"].read_text().splitlines()
    assert rows[0].split("\t") == HEADER and len(rows) == 121
    wrong = [float(row.split("\t")[4]) for row in rows[1:]]
    assert wrong == sorted(wrong, reverse=True) and wrong[1] > 0.5 > wrong[10]
    # A person keeps one of the rows, and says better what stands there.
    kept = [row for row in rows if row.startswith("6\t")]
    (tmp_path / "kept.tsv").write_text("\n".join([rows[0], kept[0].replace("\tN\t", "\tNOUN\t")]) + "\n")
    accept = ("audit", data, "--accept", tmp_path / "kept.tsv", "--apply", tmp_path / "by_hand.conll")
    done = kcrf(*accept)
    assert done.code == 3 and "kept.tsv:2: the data has no label 'NOUN'" in done.err and "--new-labels" in done.err
    assert not (tmp_path / "by_hand.conll").exists()
    done = kcrf(*accept, "--new-labels")
    assert done.code == 0 and (tmp_path / "by_hand.conll").read_text() == before.replace("cat V", "cat NOUN")


def test_corrections_are_those_that_are_probably_wrong_unless_told(kcrf, data, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("kcrf_core.selection.changes_of", lambda positions, least: asked.append(least) or [])
    for options in ((), ("--least", "0.9")):
        assert kcrf("audit", data, *OPTIONS, "-q", "--apply", tmp_path / "new.conll", *options).code == 0
    assert asked == [0.5, 0.9]


def test_a_model_judges(kcrf, data, tmp_path):
    assert kcrf("train", data, "--sigma2", "1", "-q", "-o", tmp_path / "m.npz").code == 0
    done = kcrf("audit", data, "-m", tmp_path / "m.npz", "--top", "2")
    assert done.code == 0 and {line.split()[0] for line in done.text.splitlines()[1:3]} == {"6", "154"}
    assert "cannot be estimated from labels that were learnt" in done.text
    assert kcrf("audit", data, "-m", tmp_path / "m.npz", "--sigma2", "1").code == 2
    assert kcrf("audit", data, "-m", tmp_path / "m.npz", "--apply", tmp_path / "new").code == 2


@pytest.mark.parametrize(
    "arguments, code, said",
    [
        (("--least", "0.5"), 2, "--apply"),
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
    text = 'word,note,label\nthe,,D\ncat,"seen as N,V\nor so",V\n\nthe,,D\ndog,,N\n\n'
    data, worklist, new = (tmp_path / name for name in ("data.csv", "list.tsv", "new.csv"))
    data.write_text(text)
    worklist.write_text("\ufeffline\ttext\tgold\tsuggested\tprobability\treason\n3\tcat\tV\tN\t0.1\t\n")
    layout = ("--separator", ",", "--header")
    assert kcrf("train", data, *layout, "--sigma2", "1", "-q", "-o", tmp_path / "m.npz").code == 0
    for options in (layout, ("-m", tmp_path / "m.npz")):
        done = kcrf("audit", data, *options, "--accept", worklist, "--apply", new)
        assert done.code == 0 and "1 label corrected" in done.err
        assert new.read_text() == text.replace('so",V', 'so",N')
    worklist.write_bytes(b"\xff")
    done = kcrf("audit", data, *layout, "--accept", worklist, "--apply", new)
    assert done.code == 3 and done.err.endswith("list.tsv: not a worklist: not UTF-8 text\n")


def test_a_plot_shows_doubtful_labels_even_if_none_need_be_wrong(tmp_path, monkeypatch):
    """The curve of labels that models would change is inside of the axes where no error is estimated."""
    pytest.importorskip("matplotlib")
    import numpy as np

    from kcrf_cli.report import plots

    N = 200
    evidence = SimpleNamespace(wrong=np.full(N, 1e-4), context=np.where(np.arange(N) < 30, 0.2, 0.9))
    errors = SimpleNamespace(identified=False)
    found = SimpleNamespace(evidence=evidence, order=np.arange(N), expected=0.0, judged=N, errors=errors)
    drawn = []
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda self, *_, **__: drawn.append(self.axes[0]))
    plots.doubtful(str(tmp_path / "p.svg"), found)
    (axes,) = drawn
    assert max(line.get_ydata()[-1] for line in axes.lines if line.get_label().startswith("models prefer")) == 30
    assert axes.get_ylim()[1] > 30 and "not identified" in axes.get_legend().get_title().get_text()
