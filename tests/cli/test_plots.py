"""Plots as figures of matplotlib, taken where they would be written: counts, axes, styles and titles."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from kcrf_cli.report import plots

LABELS = ("B-PER", "I-PER", "B-LOC", "O")


@pytest.fixture
def drawn(kcrf, monkeypatch, tmp_path):
    """Return the figure that a command would write."""
    found = []
    monkeypatch.setattr(plots, "save", lambda figure, path: found.append(figure))

    def draw(*arguments):
        done = kcrf(*arguments, "--plot", tmp_path / "p.png")
        assert done.code == 0, done.err
        return found.pop()

    return draw


@pytest.fixture
def tagged(tmp_path):
    """Labels of a scheme with probabilities of all labels, a few of them wrong."""
    rng, lines = np.random.default_rng(0), []
    for _ in range(650):
        gold = ["B-PER", "I-PER", "O", "O", "B-LOC"]
        for t, label in enumerate(gold):
            p = rng.dirichlet([9.0 if name == label else 0.5 for name in LABELS])
            columns = [f"{name}:{value:.6f}" for name, value in zip(LABELS, p, strict=True)]
            lines.append("\t".join([f"w{t}", label, *columns, LABELS[int(p.argmax())]]))
        lines.append("")
    path = tmp_path / "tagged.tsv"
    path.write_text("\n".join(lines))
    return path


def panels(figure):
    return {axes.get_title(): axes for axes in figure.axes if axes.get_title()}


def test_a_sheet_for_a_paper(drawn, tagged):
    figure = drawn("evaluate", tagged, "--bootstrap", "0")
    found = panels(figure)
    assert list(found) == ["F1 by span type", "Confusion matrix", "Reliability diagram"]
    assert len(figure.axes) == len(found) + 1 and all(axes.get_visible() and axes.has_data() for axes in figure.axes)
    assert len({axes.title.get_fontsize() for axes in found.values()}) == 1
    counts = [text.get_text() for text in found["Confusion matrix"].texts]
    assert sum(int(text.replace(",", "")) for text in counts) == 3250 and "k" not in "".join(counts)
    assert any("," in text for text in counts)
    reliability = found["Reliability diagram"]
    assert reliability.get_xlim() == reliability.get_ylim() == (0, 1) and reliability.get_aspect() == 1
    assert "perfect calibration" in [text.get_text() for text in reliability.get_legend().get_texts()]


def test_fonts_in_pdf_are_not_type_3(kcrf, tagged, tmp_path):
    """Publishers refuse outlines of Type 3; names of labels in other scripts take the same font."""
    tagged.write_text(tagged.read_text().replace("PER", "Zürich").replace("LOC", "Ωρ"))
    path = tmp_path / "figure.pdf"
    done = kcrf("evaluate", tagged, "--bootstrap", "0", "--plot", path)
    assert done.code == 0, done.err
    written = path.read_bytes()
    assert b"/Type3" not in written and b"/FontFile2" in written


def test_two_systems_are_drawn(drawn, tagged, tmp_path):
    """F1 and reliability share a panel, others have one each; axes of per cent end at 100."""
    other = tmp_path / "other.tsv"
    other.write_text(tagged.read_text().replace("\tI-PER\n", "\tO\n"))
    both = ("evaluate", tagged, "--compare", other)
    found = panels(drawn(*both, "--bootstrap", "20"))
    assert {"Confusion matrix\ntagged.tsv", "Confusion matrix\nother.tsv"} < set(found) and len(found) == 4
    f1 = found["F1 by span type"]
    assert [text.get_text() for text in f1.get_legend().get_texts()] == ["tagged.tsv", "other.tsv"]
    widths = [bar.get_width() for bar in f1.patches]  # LOC and PER of the first, then of the second
    assert len(widths) == 4 and widths[1] > 50 > widths[3] and widths[0] == widths[2]
    legend = [text.get_text().partition(":")[0] for text in found["Reliability diagram"].get_legend().get_texts()]
    assert legend == ["perfect calibration", "tagged.tsv", "other.tsv"]
    assert f1.get_xlim() == (0, 100)
    (axes,) = drawn(*both, "--plot-kind", "f1", "--bootstrap", "0").axes
    assert len(axes.patches) == 4
    matrices = panels(drawn(*both, "--plot-kind", "confusion", "--bootstrap", "0")).values()
    one, two = ([text.get_text() for text in axes.texts] for axes in matrices)
    assert one != two


def test_rare_errors_have_a_colour(drawn, tmp_path):
    """One error in a hundred can be told from none, and the scale says what colours mean."""
    data = tmp_path / "d.conll"
    data.write_text("".join(f"w a {'b' if t % 100 == 0 else 'a'}\n\n" for t in range(1000)) + "w b b\n")
    figure = drawn("evaluate", data, "--plot-kind", "confusion", "--bootstrap", "0")
    errors = figure.axes[0].images[0]
    shade = errors.cmap(errors.norm(1.0))
    assert min(shade[:3]) < 0.9 and errors.get_array().mask.tolist() == [[True, False], [True, True]]
    assert figure.axes[1].get_ylabel().startswith("errors: share of gold label, %")
    assert [text.get_text() for text in figure.axes[0].texts] == ["990", "10", "1"]


def test_many_labels_make_a_wider_matrix(drawn, tmp_path):
    data = tmp_path / "d.conll"
    data.write_text("".join(f"w l{t % 44:02} l{(t * t) % 44:02}\n\n" for t in range(2000)))
    figure = drawn("evaluate", data, "--plot-kind", "confusion", "--bootstrap", "0")
    names = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert len(names) == plots.MOST_LABELS and names[-1] == "(all others)"
    assert figure.get_figwidth() > plots.COLUMN and min(text.get_fontsize() for text in figure.axes[0].texts) > 3
    figure = drawn("evaluate", data, "--bootstrap", "0")  # no probabilities: two panels and a scale
    assert list(panels(figure)) == ["F1 by label, the 30 most frequent of 44", "Confusion matrix"]
    assert len(figure.axes) == 3
