"""Progress of long work, by a clock that the test moves: plausible remaining time, and few lines in a log."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from kcrf_cli.io.events import ProgressMessages
from kcrf_cli.io.progress import PRINTED, ProgressLine, Remaining, fit_share
from kcrf_cli.io.search_messages import SearchMessages
from kcrf_core.objective.solvers import Note, Progress, Stage


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now

    def after(self, seconds):
        self.now += seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr("kcrf_cli.io.progress.on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")


def test_equal_steps_take_equal_time(clock):
    remaining = Remaining(clock)
    assert remaining.seconds(0.0) is None
    for step in range(1, 10):
        clock.after(10)
        assert remaining.seconds(step / 10) == pytest.approx(10 * (10 - step), rel=1e-9)
        clock.after(0)
    clock.after(4)
    assert remaining.seconds(0.9) == pytest.approx(6, rel=1e-9)  # it goes on within a step
    clock.after(60)
    assert remaining.seconds(0.9) > 10  # of a step that takes longer than others
    clock.after(1)
    assert remaining.seconds(1.0) is None


def test_the_rate_is_that_of_the_last_half(clock):
    remaining = Remaining(clock)
    for step in range(8):  # ten times as fast as the rest
        remaining.seconds(step / 40)
        clock.after(1)
    for step in range(8, 21):
        found = remaining.seconds(step / 40)
        clock.after(10)
    assert found == pytest.approx(200, rel=0.1)


def test_trainings_of_a_journal_took_no_time(clock):
    remaining = Remaining(clock)
    for done in range(9):
        remaining.seconds(done / 10)
        clock.after(0.001)
    clock.after(60)
    assert remaining.seconds(0.9) == pytest.approx(60, rel=0.01)


def test_work_that_begins_anew_has_its_own_rate(clock):
    remaining = Remaining(clock)
    for share in (0.0, 0.5, 0.9):
        remaining.seconds(share)
        clock.after(100)
    assert remaining.seconds(0.1) is None
    clock.after(3)
    assert remaining.seconds(0.2) == pytest.approx(24, rel=1e-9)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (44.6, "45 s"), (89, "89 s"), (91, "2 min"), (5000, "83 min"), (9000, "2.5 h"), (1e6, "277.8 h")],
)
def test_the_estimate_in_words(monkeypatch, seconds, text):
    monkeypatch.setattr(Remaining, "seconds", lambda self, share: seconds)
    assert Remaining().text(0.5) == f", about {text} left" and Remaining().text(None) == ""


def test_a_gap_that_falls_steadily_ends_when_it_was_said_to(clock):
    """Passes of a second each, and a factor of 0.9 in each: 66 of them from a gap of one to 0.001."""
    remaining, errors = Remaining(clock), []
    end = math.log(0.001) / math.log(0.9)
    for passes in range(60):
        share = fit_share(1.0, 0.9**passes, 0.001)
        left = remaining.seconds(share)
        if left is not None:
            errors.append(abs(left - (end - passes)))
        clock.after(1)
    assert len(errors) > 50 and max(errors) < 1e-6
    for first, gap in ((math.inf, math.inf), (1.0, 0.0005), (1.0, 2.0)):
        assert fit_share(first, gap, 0.001) is None
    assert fit_share(1.0, 0.5, 0.0) is None


def test_a_fit_that_slows_down_is_followed(clock):
    remaining = Remaining(clock)
    gaps = [0.7**passes for passes in range(10)] + [0.7**9 * 0.97**passes for passes in range(1, 60)]
    found = []
    for gap in gaps:
        found.append(remaining.seconds(fit_share(1.0, gap, 1e-3)))
        clock.after(1)
    left = math.log(gaps[30] / 1e-3) / -math.log(0.97)
    assert found[30] == pytest.approx(left, rel=0.1) and found[60] < found[30] - 20


def test_a_log_gets_a_line_every_thirty_seconds(clock, capsys):
    line = ProgressLine(quiet=False, clock=clock)
    for second in range(301):
        line.show("trainings", f"{second} of 400", second / 400)
        clock.after(1)
    line.close()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 300 // PRINTED and lines[0] == "trainings, about 6 min left: 30 of 400"
    assert lines[-1] == "trainings, about 2 min left: 300 of 400"


def test_short_work_and_quiet_work_print_nothing(clock, capsys):
    for quiet, seconds in ((False, 29), (True, 100)):
        line = ProgressLine(quiet, clock)
        for second in range(seconds):
            line.show("folds", f"{second} of 100", second / 100)
            clock.after(1)
        line.close()
    assert capsys.readouterr().err == ""


def test_a_terminal_has_one_line_that_goes_away(clock, terminal, capsys):
    line = ProgressLine(False, clock)
    for second in range(5):
        line.show("folds", f"{second} of 5", second / 5)
        clock.after(1)
    line.close()
    line.close()
    seen = capsys.readouterr().err
    assert "\n" not in seen and seen.endswith("\r")
    assert "\rfolds, about 2 s left: 3 of 5 |████" in seen


def passed(passes, gap):
    return Progress(passes, 100.0, gap, 90.0, 0, float(passes), tolerance=0.001)


def test_training_shows_settings_and_then_passes(clock, terminal, capsys):
    messages = ProgressMessages(False, clock=clock)
    for setting in range(3):
        for fold in range(2):
            step = f"setting {setting + 1} of about 12: sigma2 node 1, fold {fold + 1} of 2"
            messages.tell(Stage("sigma2 search", step, (setting + fold / 2) / 12))
            clock.after(5)
            messages.tell(passed(3, 0.1))
            clock.after(5)
        messages.note("  a trial")  # a detail
    messages.tell(Stage("training", final=True))
    for passes in range(1, 20):
        messages.tell(passed(passes, math.inf if passes < 3 else 0.8**passes))
        clock.after(2)
    messages.report("warning: slow")
    messages.close()
    seen = capsys.readouterr().err
    assert "\rsigma2 search, about 3 min left: setting 3 of about 12: sigma2 node 1, fold 1 of 2" in seen
    assert ", fold 2 of 2, pass 3 |" in seen and "a trial" not in seen
    left = 2 * (math.log(0.001) / math.log(0.8) - 19)
    assert f"\rtraining, about {left:.0f} s left: pass 19, P 100, gap {0.8**19:.2g}" in seen
    assert seen.endswith("\rwarning: slow\n")


def test_details_are_for_those_who_ask(capsys):
    said = {}
    for verbose in (False, True):
        messages = ProgressMessages(False, verbose)
        for event in (Note("a detail"), Note("a result", detail=False), Stage("training"), passed(4, 0.5)):
            messages.tell(event)
        said[verbose] = capsys.readouterr().err
    assert said == {
        False: "a result\n",
        True: "a detail\na result\n  training: pass 4, P 100, gap 0.5\n",
    }


@pytest.mark.parametrize(("budget", "left", "unit"), [(60.0, ", about 30 s left", "time"), (None, "", "work")])
def test_a_search_says_how_much_is_spent(terminal, capsys, clock, budget, left, unit):
    """Only the end of a time is known: a search may try all candidates with a part of its work."""
    messages, search = SearchMessages(True, False, budget), SimpleNamespace(sizes=(100, 200), leader=None)
    messages._line = ProgressLine(False, clock)
    messages.begin(search, lambda candidate: "linear", None)
    messages.rung(0, 100, 5)
    for search.share_spent in (0.0, 0.25, 0.5):
        messages.judging(None, 0)
        clock.after(15)
    messages.close()
    line = f"search{left}: 50 % of the {unit} spent, round 1 of 2, 100 positions; trying linear"
    assert line in capsys.readouterr().err
