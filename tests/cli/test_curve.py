"""Learning curves as they are typed: table, JSON, plot, journal, mistakes."""

from __future__ import annotations

import json
import re

import pytest

import kcrf_core.selection.cross_validation
from kcrf_core.errors import NumericError

QUICK = ("--folds", "2", "--plain", "--sigma2", "1", "--tolerance", "0.1", "--decode", "viterbi")


@pytest.fixture
def small(sample_data, tmp_path):
    """Seventy addresses."""
    sequences = (sample_data / "addresses.conll").read_text().strip().split("\n\n")[:70]
    path = tmp_path / "small.conll"
    path.write_text("\n\n".join(sequences) + "\n")
    return path


def test_the_table_and_the_results_agree(kcrf, small, tmp_path):
    out = tmp_path / "r.json"
    done = kcrf("curve", small, *QUICK, "-q", "-o", out)
    assert done.code == 0 and not done.err
    header, *lines = done.text.strip().split("\n")
    results = json.loads(out.read_text())
    assert header.split() == ["part", "sequences", "positions", "accuracy", "%", "gain"]
    assert [line.split()[:2] for line in lines[:3]] == [["1/4", "8"], ["1/2", "17"], ["all", "35"]]
    assert [float(line.split()[3]) for line in lines[:3]] == [round(100 * s["mean"], 2) for s in results["sizes"]]
    found = re.fullmatch(r"twice the data: about ([+-][\d.]+) accuracy points \((\S+) to (\S+)\)", lines[3])
    first, second = results["forecasts"]
    expected = [100 * (first[key] - results["sizes"][-1]["mean"]) for key in ("mean", "low", "high")]
    assert list(map(float, found.groups())) == pytest.approx(expected, abs=0.051)
    assert lines[4].startswith("four times the data: about ") and (first["times"], second["times"]) == (2, 4)
    assert results["level"] == 0.8 and lines[5] == "in brackets: 80 % intervals, for the same test folds"


@pytest.mark.slow
def test_jobs_do_not_change_the_results(kcrf, small):
    done = [kcrf("curve", small, *QUICK, "-q", "--json", "--jobs", jobs, "--threads", jobs) for jobs in (1, 2)]
    assert [one.code for one in done] == [0, 0] and done[0].out == done[1].out
    assert json.loads(done[0].out)["unit"] == "sequences"


def test_a_log_loss_is_to_fall(kcrf, small):
    done = kcrf("curve", small, *QUICK, "-q", "--metric", "log-loss", "--json")
    results = json.loads(done.out)
    forecast = results["forecasts"][0]
    assert forecast["low"] < forecast["mean"] < forecast["high"] and forecast["mean"] < results["sizes"][-1]["mean"]


def test_a_failed_run_goes_on(kcrf, small, tmp_path, monkeypatch):
    out, journal = tmp_path / "r.json", tmp_path / "r.json.journal"
    real, calls = kcrf_core.selection.cross_validation.train, []

    def train(*arguments, **options):
        calls.append(1)
        if len(calls) == 5:
            raise NumericError("the arithmetic broke down")
        return real(*arguments, **options)

    monkeypatch.setattr(kcrf_core.selection.cross_validation, "train", train)
    done = kcrf("curve", small, *QUICK, "-o", out)
    assert done.code == 5 and "fold 0, trained on 35: the arithmetic broke down" in done.err and journal.exists()
    done = kcrf("curve", small, *QUICK, "-o", out)
    assert done.code == 0 and len(calls) == 7 and not journal.exists()
    assert "4 of 6 trainings are taken from" in done.err


def test_a_curve_and_cross_validation_share_a_journal(kcrf, small, tmp_path):
    journal = tmp_path / "j"
    assert kcrf("curve", small, *QUICK, "-q", "--journal", journal).code == 0
    done = kcrf("crossval", small, *QUICK, "--journal", journal)
    assert done.code == 0 and "2 of 2 trainings are taken from" in done.err


def test_the_plot_has_the_curve_and_what_is_to_be_expected(kcrf, small, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    from kcrf_cli.report import plots

    figures = []
    monkeypatch.setattr(plots, "save", lambda figure, path: figures.append(figure))
    done = kcrf("curve", small, *QUICK, "-q", "--json", "--plot", tmp_path / "p.png")
    results, (axes,) = json.loads(done.out), figures[0].axes
    lines = {line.get_label(): line.get_xydata() for line in axes.lines}
    assert lines["mean over folds"][:, 1].tolist() == [100 * size["mean"] for size in results["sizes"]]
    assert lines["to expect"][1:, 1].tolist() == [100 * one["mean"] for one in results["forecasts"]]
    assert lines["to expect"][:, 0].tolist() == [35, 70, 140]


def test_mistakes(kcrf, small, tmp_path):
    done = kcrf("curve", small, "--folds", "2", "-o", small)
    assert done.code == 2
    assert kcrf("curve", small, "--plot", tmp_path / "p.jpg").code == 2
    few = tmp_path / "few.conll"
    few.write_text("\n\n".join(small.read_text().split("\n\n")[:30]) + "\n")
    done = kcrf("curve", few)
    assert done.code == 3 and "24 sequences to train on are too few: a learning curve needs 32" in done.err
