"""Cross-validation as it is typed, stopped, started again, and typed wrongly."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import kcrf_core.selection.cross_validation
from kcrf_core.errors import NumericError

POSIX = pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
LINUX = pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="children are found in /proc")


@pytest.fixture
def small(sample_data, tmp_path):
    """Thirty sequences of the accent data, the first column saying who spoke."""
    sequences = (sample_data / "pitch_accent.conll").read_text().strip().split("\n\n")[:30]
    path = tmp_path / "small.conll"
    named = ["\n".join(f"speaker{s % 7}\t{line}" for line in text.split("\n")) for s, text in enumerate(sequences)]
    path.write_text("\n\n".join(named) + "\n")
    return path


QUICK = ("--folds", "3", "--kernel", "poly", "--size", "30", "--sigma2", "1", "--tolerance", "0.1")


def without_seconds(path):
    results = json.loads(Path(path).read_text())
    for entry in results["settings"]:
        for fold in entry["folds"]:
            fold.pop("seconds")
    return results


def seconds_of(path):
    return [fold["seconds"] for entry in json.loads(Path(path).read_text())["settings"] for fold in entry["folds"]]


@pytest.fixture
def failing(monkeypatch):
    """Lets the first n trainings pass and makes the next one fail."""

    def arrange(passing):
        real, calls = kcrf_core.selection.cross_validation.train, []

        def train(*arguments, **options):
            calls.append(1)
            if len(calls) > passing:
                raise NumericError("the arithmetic broke down")
            return real(*arguments, **options)

        monkeypatch.setattr(kcrf_core.selection.cross_validation, "train", train)
        return calls

    yield arrange


# ----------------------------------------------------------------------------- going on


def test_finished_folds_survive_a_failure_and_are_not_done_again(kcrf, small, tmp_path, failing, monkeypatch):
    out, journal = tmp_path / "r.json", tmp_path / "r.json.journal"
    options = ("crossval", small, *QUICK, "--grid", "degree=1,2", "-o", out)
    assert kcrf(*options).code == 0 and not journal.exists()
    undisturbed = without_seconds(out)
    out.unlink()
    failing(4)
    done = kcrf(*options)
    assert done.code == 5 and not out.exists() and journal.exists()
    note, error = done.err.strip().split("\n")
    assert error == "kcrf: fold 1, degree=2: the arithmetic broke down"
    assert note == f"4 of 6 trainings are kept in {journal}: the same command continues from there"
    monkeypatch.undo()
    kept = [json.loads(line)["result"]["seconds"] for line in journal.read_text().splitlines()[1:]]
    done = kcrf(*options)
    assert done.code == 0 and f"4 of 6 trainings are taken from {journal}" in done.err
    assert without_seconds(out) == undisturbed and not journal.exists()
    assert seconds_of(out)[:4] == kept


@pytest.mark.slow
def test_a_journal_of_something_else_is_not_used(kcrf, small, tmp_path, failing, monkeypatch):
    out, journal = tmp_path / "r.json", tmp_path / "kept"
    options = (*QUICK, "--grid", "degree=1,2", "-o", out, "--journal", journal)
    assert kcrf("crossval", small, *options).code == 0 and journal.exists()
    changed = tmp_path / "changed.conll"
    changed.write_text(small.read_text().replace("\tN\t", "\tV\t"))
    for data, other in ((changed, ()), (small, ("--coef0", "2")), (small, ("--seed", "1")), (small, ("--stratify",))):
        calls = failing(100)
        done = kcrf("crossval", data, *options, *other)
        assert done.code == 0 and len(calls) == 6 and "are taken from" not in done.err
        assert "of other data, other settings or another version: they are not used" in done.err
        monkeypatch.undo()
    calls = failing(0)  # a larger grid finds what it knows, wherever the data lies
    moved = small.rename(tmp_path / "moved.conll")
    done = kcrf("crossval", moved, *options)
    assert done.code == 0 and not calls and "6 of 6 trainings are taken from" in done.err


def test_a_journal_of_another_version_is_not_used(kcrf, small, tmp_path, monkeypatch, failing):
    options = ("crossval", small, *QUICK, "--journal", tmp_path / "kept")
    assert kcrf(*options).code == 0
    monkeypatch.setattr(kcrf_core.selection.cross_validation, "__version__", "9.9.9")
    assert len(failing(100)) == 0
    done = kcrf(*options)
    assert done.code == 0 and "another version" in done.err and "are taken from" not in done.err


def start(*arguments):
    # A shell starts what runs in its background with Ctrl-C ignored, and that is inherited: these are to hear it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "kcrf_cli", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    finally:
        signal.signal(signal.SIGINT, before)


def wait_for(running, condition):
    """Wait as long as a process runs."""
    while not condition():
        assert running.poll() is None
        time.sleep(0.01)


@pytest.mark.slow
@POSIX
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_that_was_killed_ends_like_an_undisturbed_one(kcrf, small, tmp_path, jobs):
    out, journal = tmp_path / "r.json", tmp_path / "r.json.journal"
    options = ["crossval", small, *QUICK, "--grid", "degree=1,2,3,4,5", "--jobs", jobs]
    assert kcrf(*options, "-o", tmp_path / "undisturbed.json").code == 0
    with start(*options, "-o", out) as running:
        wait_for(running, lambda: journal.exists() and journal.read_bytes().count(b"\n") >= 4)
        os.killpg(running.pid, signal.SIGKILL)
    assert running.returncode == -signal.SIGKILL and not out.exists()
    finished = [json.loads(line) for line in journal.read_bytes().split(b"\n")[1:-1]]
    assert 3 <= len(finished) < 15
    done = kcrf(*options, "-o", out)
    assert done.code == 0 and f"{len(finished)} of " in done.err
    assert without_seconds(out) == without_seconds(tmp_path / "undisturbed.json")
    times = {(entry["setting"]["degree"], fold["fold"]): fold["seconds"]
             for entry in json.loads(out.read_text())["settings"] for fold in entry["folds"]}  # fmt: skip
    for line in finished:
        assert times[line["setting"]["degree"], line["fold"]] == line["result"]["seconds"]


# ----------------------------------------------------------------------------- stopping


def workers_of(pid):
    """Processes that train, among the children of one."""
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            line = Path(f"/proc/{child}/cmdline").read_bytes()
        except OSError:
            continue
        if b"spawn_main" in line:
            found.append(int(child))
    return found


def processor_seconds_of(pid):
    """Return the processor time of a process; 0 where it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


@LINUX
@pytest.mark.slow
@pytest.mark.parametrize("moment", ["starting", "training", "later"])
def test_interrupting_several_jobs_shows_no_traceback(sample_data, small, tmp_path, moment):
    journal = tmp_path / "kept"
    # No training is to end before the first two moments; some are to end before the last, and most after it.
    data = small if moment == "later" else sample_data / "pitch_accent.conll"
    with start("crossval", data, "--kernel", "poly", "--map", "full", "--sigma2", "1", "--jobs", "2", "--grid",
               "degree=1,2,3,4,5,6,7,8", "--journal", journal) as running:  # fmt: skip
        wait_for(running, lambda: len(workers_of(running.pid)) >= 1)
        if moment == "training":  # two seconds of processor time are more than imports take
            wait_for(
                running,
                lambda: max(map(processor_seconds_of, workers_of(running.pid)), default=0.0) > 2.0,
            )
        if moment == "later":
            wait_for(running, lambda: journal.exists() and journal.read_bytes().count(b"\n") >= 3)
        os.killpg(running.pid, signal.SIGINT)
        _, err = running.communicate()
    assert running.returncode == 130 and "Traceback" not in err
    assert err.strip().split("\n")[-1] == "kcrf: interrupted"
    assert (moment == "later") == ("trainings are kept in" in err)


@pytest.mark.slow
@LINUX
def test_a_worker_that_is_killed_is_reported(small, tmp_path):
    journal = tmp_path / "kept"
    with start("crossval", small, "--kernel", "poly", "--map", "full", "--sigma2", "1", "--jobs", "2",
               "--grid", "degree=1,2,3,4,5,6,7,8", "--journal", journal) as running:  # fmt: skip
        wait_for(running, lambda: journal.exists() and len(workers_of(running.pid)) == 2)
        os.kill(workers_of(running.pid)[0], signal.SIGKILL)
        _, err = running.communicate()
    note, error = err.strip().split("\n")
    assert running.returncode == 1 and "trainings are kept in" in note
    assert error.startswith("kcrf: a process was killed, perhaps for lack of memory: try fewer jobs")


# ----------------------------------------------------------------------------- results


@pytest.mark.slow
def test_threads_and_jobs_do_not_change_results(kcrf, small, tmp_path):
    """Two jobs of two threads are compared with one of one in `test_crossval_by_jobs_and_grid`."""
    found = []
    for jobs, threads in ((1, 1), (1, 2), (2, 1), (3, 2)):
        options = (*QUICK, "--grid", "degree=1,2", "--jobs", jobs, "--threads", threads, "-o", tmp_path / "r.json")
        assert kcrf("crossval", small, *options).code == 0
        found.append(without_seconds(tmp_path / "r.json"))
    assert all(results == found[0] for results in found)


@POSIX
def test_folds_one_by_one_with_journals_of_their_own(kcrf, small, tmp_path):
    journals = [tmp_path / f"fold{k}.journal" for k in range(3)]
    for k, journal in enumerate(journals):
        done = kcrf("crossval", small, *QUICK, "--only-fold", str(k), "--journal", journal)
        assert done.code == 0 and done.text == "" and done.err.endswith(f"1 training is in {journal}\n"), done.err
    joined = tmp_path / "all.journal"
    joined.write_bytes(b"".join(journal.read_bytes() for journal in journals))
    apart, at_once = tmp_path / "apart.json", tmp_path / "once.json"
    done = kcrf("crossval", small, *QUICK, "--journal", joined, "-o", apart)
    assert done.code == 0 and "3 of 3 trainings are taken from" in done.err and "cannot be read" not in done.err
    assert kcrf("crossval", small, *QUICK, "-o", at_once).code == 0
    assert without_seconds(apart) == without_seconds(at_once)
    for wrong, said in (
        (("--only-fold", "0"), "in a --journal: give a FILE"),
        (("--only-fold", "3", "--journal", joined), "there is no fold 3: there are 0 to 2"),
    ):
        done = kcrf("crossval", small, *QUICK, *wrong)
        assert done.code == 2 and said in done.err, done.err


def test_devices_have_no_journal_beside_them(kcrf, small, failing):
    failing(1)
    assert kcrf("crossval", small, *QUICK, "-o", os.devnull).code == 5
    assert not os.path.exists(f"{os.devnull}.journal")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_disk_leaves_the_table(kcrf, small):
    done = kcrf("crossval", small, *QUICK, "--predictions", "/dev/full", "-q")
    assert done.code == 1 and done.err == "kcrf: /dev/full: No space left on device\n"
    assert done.out == kcrf("crossval", small, *QUICK, "-q").out and b"accuracy" in done.out


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_data_from_a_pipe(kcrf, small, tmp_path, jobs):
    """Jobs of their own get it, too."""
    assert kcrf("crossval", small, *QUICK, "-o", tmp_path / "a.json").code == 0
    options = (*QUICK, "--jobs", jobs, "-o", tmp_path / "b.json")
    assert kcrf("crossval", "-", *options, stdin=small.read_bytes()).code == 0
    assert without_seconds(tmp_path / "a.json") == without_seconds(tmp_path / "b.json")


def test_what_was_typed_is_what_is_told(kcrf, small, tmp_path):
    options = (small, "--folds", "2", "--grid", "c2=0.5,0.05", "--grid", "min-count=1,2", "--order", "1")
    done = kcrf("crossval", *options, "-o", tmp_path / "r.json")
    assert done.code == 0 and "c2=0.05 min-count=2" in done.text and "sigma2" not in done.text
    results = without_seconds(tmp_path / "r.json")
    assert results["grid"] == {"c2": [0.5, 0.05], "min-count": [1, 2]} and results["options"] == {"order": 1}
    assert results["settings"][3]["setting"] == {"c2": 0.05, "min-count": 2}
    assert [entry["folds"][0]["training"]["sigma2"]["node"] for entry in results["settings"]] == [1.0, 1.0, 10.0, 10.0]
    done = kcrf("crossval", small, "--folds", "2", "--c2", "0.5", "--json")
    assert json.loads(done.out)["options"] == {"c2": 0.5}


def test_groups_and_files_of_folds(kcrf, small, tmp_path):
    done = kcrf("crossval", small, "--group", "c0", "--folds", "3", "--sigma2", "1", "--json")
    by_group = json.loads(done.out)
    assert by_group["divided_by"] == "group" and by_group["folds"] == 3
    folds = tmp_path / "folds.txt"
    folds.write_text("".join(f"{s % 3 + 10}\n" for s in range(30)))
    done = kcrf("crossval", small, "--folds-file", folds, "--sigma2", "1", "--json")
    results = json.loads(done.out)
    assert results["divided_by"] == "file"
    assert [fold["fold"] for fold in results["settings"][0]["folds"]] == [10, 11, 12]
    assert [fold["sequences"] for fold in results["settings"][0]["folds"]] == [10] * 3


@pytest.fixture
def subjects(tmp_path):
    """Seven subjects with two sequences each, as CSV with a header; the names of subjects have commas."""
    rng, lines = np.random.default_rng(0), ["subject,x,state"]
    for s in range(14):
        walks = rng.random(5) < 0.5
        values = walks + rng.normal(0, 0.6, 5)
        lines += [f'"S,{s // 2}",{x:.3f},{"walk" if on else "rest"}' for on, x in zip(walks, values, strict=True)]
        lines.append("")
    path = tmp_path / "subjects.csv"
    path.write_text("\n".join(lines))
    return path


CSV = ("--separator", ",", "--header")


def test_folds_are_named_by_their_groups(kcrf, subjects):
    options = ("crossval", subjects, *CSV, "--group", "subject", "--sigma2", "1", "-q")
    done = kcrf(*options, "--folds", "7")
    names = [line.split("  ")[0] for line in done.text.split("\n")[:9]]
    assert names == ["group", *(f"S,{s}" for s in range(7)), "all"]
    folds = json.loads(kcrf(*options, "--folds", "3", "--json").out)["settings"][0]["folds"]
    assert sorted(name for fold in folds for name in fold["groups"]) == [f"S,{s}" for s in range(7)]
    assert [fold["fold"] for fold in folds] == ["+".join(fold["groups"]) for fold in folds]
    assert all(fold["positions"] == 10 * len(fold["groups"]) for fold in folds)
    many = json.loads(kcrf(*options, "--folds", "2", "--json").out)["settings"][0]["folds"]
    assert {len(fold["groups"]) for fold in many} == {3, 4}
    long = next(fold for fold in many if len(fold["groups"]) == 4)
    assert long["fold"] == f"{long['groups'][0]}+3_more"


def test_predictions_are_read_by_evaluate(kcrf, subjects, tmp_path):
    """Every position has the label of the model that has not seen it, in the order and layout of the data."""
    written, out = tmp_path / "p.csv", tmp_path / "r.json"
    options = (*CSV, "--group", "subject", "--folds", "3", "--grid", "sigma2=0.001,1", "-q", "-o", out)
    assert kcrf("crossval", subjects, *options, "--predictions", written).code == 0
    rows = list(csv.reader(line for line in written.read_text().split("\n") if line))
    given = list(csv.reader(line for line in subjects.read_text().split("\n") if line))
    assert [row[:3] for row in rows] == given
    assert rows[0][3:] == ["fold", "marginal", "predicted"]
    results = json.loads(out.read_text())
    best = results["settings"][results["best"]]["folds"]
    assert len(results["settings"]) == 2 and "predictions" not in best[0]
    for fold in best:
        own = [row for row in rows if row[3] == f"fold={fold['fold']}"]
        assert {row[0] for row in own} == set(fold["groups"]) and len(own) == fold["positions"]
        assert np.isclose(np.mean([row[2] == row[-1] for row in own]), fold["accuracy"], rtol=1e-12)
    judged = json.loads(kcrf("evaluate", written, *CSV, "--json").out)
    pooled = results["pooled"]
    assert judged["confusion"] == pooled["confusion"] and judged["labels"] == pooled["labels"]
    error = "calibration_error"
    assert np.isclose(judged["calibration"][error], pooled["calibration"][error], rtol=1e-4)


def test_predictions_of_blocks_grids_and_attributes(kcrf, small, tmp_path):
    written = tmp_path / "p.tsv"
    plain = [line.split("\t") for line in small.read_text().split("\n") if line]
    grid = ("--grid", "min-count=1,3", "--journal", tmp_path / "kept")
    for more in (("--block", "20"), grid, grid):  # the last time from the journal
        text = written.read_text() if written.exists() else ""
        assert kcrf("crossval", small, "--folds", "2", "--sigma2", "1", *more, "--predictions", written).code == 0
        rows = [line.split("\t") for line in written.read_text().split("\n") if line]
        assert [row[:-3] for row in rows] == plain and {row[-3] for row in rows} == {"fold=0", "fold=1"}
        assert all(row[-2].startswith(f"{row[-1]}:0.") or row[-2] == f"{row[-1]}:1.000000" for row in rows)
    assert written.read_text() == text
    bags = tmp_path / "d.crfsuite"
    bags.write_text("X\ta:2\tb\n\nY\tb\nX\ta\n\nY\tb\nX\ta\n")
    assert kcrf("crossval", bags, "--folds", "3", "--sigma2", "1", "--predictions", written).code == 0
    rows = [line.split("\t") for line in written.read_text().split("\n")]
    assert [row[:2] for row in rows[:4]] == [["a:2 b", "X"], [""], ["b", "Y"], ["a", "X"]] and len(rows) == 8
    assert kcrf("evaluate", written).code == 0


def test_predictions_are_separated_as_their_name_says(kcrf, subjects, tmp_path):
    for name, mark in (("p.csv", ","), ("p.tsv", "\t")):
        options = ("--group", "subject", "--folds", "2", "--sigma2", "1", "-q", "--predictions", tmp_path / name)
        assert kcrf("crossval", subjects, *options).code == 0
        assert (tmp_path / name).read_text().startswith(f"subject{mark}x{mark}state{mark}fold{mark}marginal{mark}pred")
        done = kcrf("evaluate", tmp_path / name, "--json", "-q")
        assert done.code == 0 and json.loads(done.out)["positions"] == 70


def test_scores_of_all_folds_together(kcrf, small):
    """Text has scores by label, with --details the confusion and the reliability curve."""
    brief, long = (kcrf("crossval", small, *QUICK, "-q", *more).text for more in ((), ("--details",)))
    assert "All folds together:" in brief and "expected calibration error" in brief
    assert brief.count("precision") == 1 and "gold \\ predicted" not in brief
    assert "gold \\ predicted" in long and "confidence   positions" in long


def test_labels_that_training_lacks_are_told_and_counted_wrong(kcrf, tmp_path):
    data = tmp_path / "d.conll"
    data.write_text("a B-X\nb O\n\na B-X\nb O\n\na B-NEW\nb I-NEW\n\na B-X\nb O\n")
    done = kcrf("crossval", data, "--folds", "4", "--sigma2", "1")
    assert done.code == 0
    assert "2 gold labels (B-NEW, I-NEW) were missing from their training folds and counted wrong" in done.text
    only = tmp_path / "only.conll"  # a training part with a single label
    only.write_text("a X\n\nb Y\n\nc X\n")
    done = kcrf("crossval", only, "--folds", "3", "--json")
    assert done.code == 0 and json.loads(done.out)["settings"][0]["unknown_gold"] == 1


# ----------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--folds", "31"), 3, "30 sequences cannot make 31 folds"),
        (("--folds", "1"), 2, "--folds"),
        (("--folds", "8", "--group", "c0"), 3, "7 groups cannot make 8 folds"),
        (("--group", "c00"), 2, "did you mean 'c0'"),
        (("--group", "c1"), 3, "small.conll:2: "),
        (("--grid", "degre=1,2"), 2, "did you mean 'degree'"),
        (("--grid", ""), 2, "KEY=VALUE"),
        (("--grid", "trainng.sigma2=1"), 2, "did you mean 'training'"),
        (("--sigma2", "1", "--grid", "c2=1"), 2, "give one of them"),
        (("--json", "-o", "-"), 2, "give one of them"),
    ],
)
def test_mistakes(kcrf, small, options, code, message):
    done = kcrf("crossval", small, *options)
    assert done.code == code and message in done.err and done.out == b""


def test_mistakes_with_files(kcrf, small, tmp_path):
    folds, out = tmp_path / "folds.txt", tmp_path / "r.json"
    folds.write_text("1\n2\n")
    for options, code, message in (
        (("--folds-file", folds), 3, "folds.txt: 2 folds, but"),
        (("--folds-file", tmp_path / "none"), 1, "No such file"),
        (("--folds-file", folds, "--folds", "3"), 2, "leave out"),
        (("--folds-file", folds, "--stratify"), 2, "leave out"),
        (("-o", small), 2, "also an input"),
        (("-o", tmp_path / "no" / "r.json"), 1, "no such directory"),
        (("-o", folds, "--folds-file", folds), 2, "also an input"),
        (("-o", out, "--predictions", out), 2, "same name"),
        (("--journal", small), 2, "also an input"),
    ):
        before = {path: path.read_bytes() for path in (small, folds)}
        done = kcrf("crossval", small, *options)
        assert done.code == code and message in done.err, (options, done.err)
        assert {path: path.read_bytes() for path in before} == before
    strange = tmp_path / "r.json.journal"
    strange.write_text("precious\n")
    done = kcrf("crossval", small, "-o", out)
    assert done.code == 4 and "not a journal" in done.err and strange.read_text() == "precious\n"


def test_encoded_data_is_refused(kcrf, small, tmp_path):
    kcrf("featurize", small, "-o", tmp_path / "data.npz", "-q")
    done = kcrf("crossval", tmp_path / "data.npz", "--sigma2", "1")
    assert done.code == 2 and "encoded already" in done.err


def test_attribute_files_have_no_groups(kcrf, tmp_path):
    data = tmp_path / "d.crfsuite"
    data.write_text("X\ta\n\nY\tb\n\nX\ta\n")
    done = kcrf("crossval", data, "--group", "c0", "--folds", "2")
    assert done.code == 2 and "give a file of folds" in done.err
