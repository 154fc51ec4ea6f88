"""The commands together: pipelines, files in place of text, the same result by every way."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from kcrf_cli.main import Terminated, exit_codes, no_lost_signals
from kcrf_core.model import Model


@pytest.fixture
def accent(sample_data):
    return sample_data / "pitch_accent.conll"


def without_last_column(data: bytes) -> bytes:
    return b"\n".join(line.rpartition(b"\t")[0] for line in data.split(b"\n"))


def test_tagging_repeats_every_line_and_appends_one_column(kcrf, trained, accent):
    done = kcrf("tag", "-m", trained, accent)
    assert done.code == 0 and done.err == ""
    given, tagged = accent.read_bytes().split(b"\n"), done.out.split(b"\n")
    assert len(given) == len(tagged)
    for before, after in zip(given, tagged, strict=True):
        if before:
            assert after.startswith(before + b"\t") and after[len(before) + 1 :] in (b"0", b"1")
        else:
            assert after == b""


def test_gold_labels_do_not_change_predictions(kcrf, trained, accent):
    with_gold = kcrf("tag", "-m", trained, accent)
    without = kcrf("tag", "-m", trained, stdin=without_last_column(accent.read_bytes()))
    last = [line.rpartition(b"\t")[2] for line in with_gold.out.split(b"\n")]
    assert [line.rpartition(b"\t")[2] for line in without.out.split(b"\n")] == last


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_odd_layouts_come_back_byte_for_byte(kcrf, trained, ending):
    rows = ["", "the\tD\t0.1\t120\t60", "cat\tN\t0.2\t130\t61", "", "", "a\tD\t0.1\t100\t55"]
    text = ending.join(rows).encode()  # no newline at the end
    done = kcrf("tag", "-m", trained, stdin=text)
    assert done.code == 0
    lines = done.out.split(ending.encode())
    assert len(lines) == len(rows)
    for before, after in zip(rows, lines, strict=True):
        assert after.decode().startswith(before)
    assert not done.out.endswith(b"\n")


def test_compressed_files_and_pipes(kcrf, trained, accent, tmp_path):
    packed, out = tmp_path / "data.conll.gz", tmp_path / "out.gz"
    packed.write_bytes(gzip.compress(accent.read_bytes()))
    plain = kcrf("tag", "-m", trained, accent)
    assert kcrf("tag", "-m", trained, packed).out == plain.out
    assert kcrf("tag", "-m", trained, "-", stdin=accent.read_bytes()).out == plain.out
    assert kcrf("tag", "-m", trained, accent, "-o", out).out == b""
    assert gzip.decompress(out.read_bytes()) == plain.out
    packed.write_bytes(packed.read_bytes()[:-20])
    broken = kcrf("tag", "-m", trained, packed, "-o", out)
    assert broken.code == 3 and "damaged" in broken.err and broken.err.count("\n") == 1
    assert gzip.decompress(out.read_bytes()) == plain.out  # an output stays as it was


def test_tag_says_the_same_with_any_number_of_threads(kcrf, trained, accent, tmp_path):
    long = tmp_path / "long.conll"
    long.write_bytes(accent.read_bytes() * 3)
    one, three = (kcrf("tag", "-m", trained, long, "--threads", count) for count in (1, 3))
    assert one.code == 0 and three.out == one.out
    assert one.out == kcrf("tag", "-m", trained, accent).out * 3


def test_tag_starts_without_scipy(trained, accent):
    """It takes longer to import than a page takes to tag."""
    program = (
        "import sys\nfrom kcrf_cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "sys.exit(any(name.split('.')[0] == 'scipy' for name in sys.modules))"
    )
    command = [sys.executable, "-c", program, "tag", "-m", trained, accent]
    assert subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0


def test_three_ways_to_evaluate_agree(kcrf, trained, accent, tmp_path):
    tagged = kcrf("tag", "-m", trained, accent).out
    piped = json.loads(kcrf("evaluate", "-", "--json", stdin=tagged).out)
    direct = json.loads(kcrf("evaluate", "-m", trained, accent, "--json").out)
    encoded = tmp_path / "data.npz"
    assert kcrf("featurize", accent, "--like", trained, "-o", encoded).code == 0
    stored = json.loads(kcrf("evaluate", "-m", trained, encoded, "--json").out)
    assert piped["accuracy"] == direct["accuracy"] == stored["accuracy"] > 0.7


def test_evaluate_skips_probability_columns(kcrf):
    text = b"a B-X B-X:0.9 O:0.1 B-X\nb O B-X:0.25 O:7.5e-1 O\n"
    figures = json.loads(kcrf("evaluate", "-", "--json", stdin=text).out)
    assert figures["accuracy"] == 1 and figures["spans"]["f1"] == 1
    best = b"a X X:0.9 X\nb Y Y:0.8 Y\n"
    assert json.loads(kcrf("evaluate", "-", "--json", stdin=best).out)["accuracy"] == 1
    labels_with_colons = b"X a:1 a:1\nX b:0 a:1\n"
    assert json.loads(kcrf("evaluate", "-", "--json", stdin=labels_with_colons).out)["accuracy"] == 0.5


def test_encoded_data_trains_the_same_model(kcrf, first_accents, tmp_path):
    accent = first_accents(150)
    options = ["--kernel", "poly", "--size", "60", "--sigma2", "1", "-q"]
    assert kcrf("train", accent, *options, "-o", tmp_path / "text.npz").code == 0
    assert kcrf("featurize", accent, "-o", tmp_path / "data.npz", "-q").code == 0
    assert kcrf("train", tmp_path / "data.npz", *options, "-o", tmp_path / "encoded.npz").code == 0
    assert (tmp_path / "text.npz").read_bytes() == (tmp_path / "encoded.npz").read_bytes()
    selecting = ["--kernel", "poly", "--size", "60", "-q"]
    assert kcrf("select-basis", tmp_path / "data.npz", *selecting, "-o", tmp_path / "basis.npz").code == 0
    for data in (accent, tmp_path / "data.npz"):
        done = kcrf("train", data, "--basis", tmp_path / "basis.npz", "--sigma2", "1", "-q", "-o", tmp_path / "m.npz")
        assert done.code == 0, done.err
        tagged = kcrf("tag", "-m", tmp_path / "m.npz", accent).out
        assert tagged == kcrf("tag", "-m", tmp_path / "text.npz", accent).out


@pytest.mark.parametrize("options", [(), ("--kernel", "rbf", "--size", "80")])
@pytest.mark.parametrize("sequences", [150, pytest.param(400, marks=pytest.mark.slow)])
def test_same_bytes_with_one_thread_or_two(kcrf, first_accents, tmp_path, options, sequences):
    data = first_accents(sequences)
    if sequences < 400:  # searches are compared in tests/core/test_training.py
        options = (*options, "--sigma2", "1")
    for threads in (1, 2):
        done = kcrf("train", data, *options, "--threads", threads, "-q", "-o", tmp_path / f"{threads}.npz")
        assert done.code == 0
    assert (tmp_path / "1.npz").read_bytes() == (tmp_path / "2.npz").read_bytes()


def test_binary_task_reports_one_score_column(kcrf, accent, tmp_path):
    done = kcrf("train", accent, "--sigma2", "1", "--json", "-o", tmp_path / "m.npz")
    figures = json.loads(done.out)
    assert figures["score_columns"] == 1 and "1 score column" in done.err
    assert figures["stop"] == "certified" and figures["certified_gap"] <= 1e-3
    assert figures["lower_bound"] <= figures["objective"]


def test_c2_is_another_name_for_sigma2(kcrf, accent, tmp_path):
    assert kcrf("train", accent, "--c2", "0.25", "-q", "-o", tmp_path / "a.npz").code == 0
    assert kcrf("train", accent, "--sigma2", "2", "-q", "-o", tmp_path / "b.npz").code == 0
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    both = kcrf("train", accent, "--c2", "1", "--sigma2", "2", "-o", tmp_path / "c.npz")
    assert both.code == 2 and "--c2" in both.err


def test_sample_configuration_with_two_kernels(kcrf, sample_data, accent, tmp_path):
    done = kcrf(
        "train", accent, "-c", sample_data / "accent.yaml", "--sigma2", "1", "--max-passes", "30", "-o",
        tmp_path / "m.npz",
    )  # fmt: skip
    assert done.code == 0
    assert re.search(r"^model: lexical \(poly kernel, .*, acoustic \(rbf kernel, ", done.err, re.MULTILINE)


@pytest.mark.slow
def test_terms_are_chosen_and_the_model_keeps_them(kcrf, sample_data, first_accents, tmp_path):
    model, data = tmp_path / "m.npz", first_accents(400)
    arguments = ("train", data, "-c", sample_data / "terms.yaml", "--select-terms", "--sigma2", "1", "-o", model)
    done = kcrf(*arguments, "--json", "--log", tmp_path / "log.jsonl")
    assert done.code == 0, done.err
    structure = json.loads(done.out)["structure"]
    found = {entry["term"]: entry for entry in structure["terms"]}
    assert structure["chosen"] == ["f0", "long and loud", "edge"]
    assert found["initial"]["decision"] == "like noise" and found["class"]["decision"] == "dropped"
    taken = [name for name, entry in found.items() if entry["decision"] in ("selected", "always kept")]
    assert structure["chosen"] == taken and 1 < len(taken) < len(found)
    lines = done.err.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("term  "))
    assert [line.split("  ")[0] for line in lines[first + 1 : first + 9]] == list(found)
    events = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    (logged,) = [event for event in events if event["event"] == "structure"]
    assert {key: logged[key] for key in structure} == structure
    stored = Model.load(model)
    assert stored.info["training"]["structure"] == structure
    assert [term["name"] for term in stored.info["config"]["terms"]] == structure["chosen"]
    assert kcrf("evaluate", "-m", model, data).code == 0
    assert kcrf("train", first_accents(20), *arguments[2:], "-q").err == ""


def test_a_weak_prior_is_certified_in_nats_per_position(kcrf, tmp_path):
    data, model = tmp_path / "easy.conll", tmp_path / "m.npz"
    data.write_text("\n".join("a A\nb B\nc C\n" for _ in range(30)), encoding="utf-8")
    command = "train", data, "--plain", "--sigma2", "1e6", "-o", model, "--strict"
    done, former = kcrf(*command, "-v"), kcrf(*command, "--tolerance", "0.001")
    assert done.code == former.code == 0
    found = re.search(
        r"within ([\d.]+) of the optimum, ([\d.e-]+) nats per 1,000 positions \(tolerance 0.001, or", done.err
    )
    assert float(found[1]) > 0.001 and float(found[2]) <= 0.003
    assert re.search(r"certified relative gap [\d.]+, [\d.e-]+ nats$", done.err, re.MULTILINE)
    assert re.search(r"within 0.000\d+ of the optimum \(tolerance 0.001\)", former.err)
    results = [json.loads(kcrf(*command, "-q", "--json", *more).out) for more in ((), ("--tolerance", "0.001"))]
    assert results[0]["passes"] < results[1]["passes"]
    assert results[1]["certified_gap"] <= 0.001 < results[0]["certified_gap"]
    for one in results:
        assert one["certified_nats"] == one["objective"] - one["lower_bound"]


def test_max_passes_is_a_warning_and_strict_an_error(kcrf, accent, tmp_path):
    options = [accent, "--sigma2", "1", "--max-passes", "3", "-o", tmp_path / "m.npz"]
    done = kcrf("train", *options)
    assert done.code == 0 and "--max-passes" in done.err
    bounds = [kcrf("train", *options, "--max-passes", passes).err for passes in (1, 40)]
    assert "at least" not in bounds[0] and "gap" not in bounds[0] and "norm of its gradient" in bounds[0]
    assert ", at least " in bounds[1] and "gap unknown" not in bounds[1]
    assert kcrf("train", *options, "--max-passes", "1", "-q").code == 0
    assert "no certificate: P " in kcrf("inspect", tmp_path / "m.npz").text
    done = kcrf("train", *options, "--strict")
    assert done.code == 5 and (tmp_path / "m.npz").exists()


def test_featurize_shows_windows(kcrf, accent):
    done = kcrf("featurize", accent, "--show", "2", "-q")
    first, second = done.text.strip().split("\n")
    assert "c0[-1]=_B-1" in first and "c0[0]=" in first and "c2[0]=" in first
    assert f"c0[-1]={first.split('c0[0]=')[1].split()[0]}" in second


def test_featurize_shows_no_more_positions_than_there_are(kcrf, tmp_path):
    (tmp_path / "few.conll").write_text("a\tX\nb\tY\n\nc\tX\n")
    done = kcrf("featurize", tmp_path / "few.conll", "--plain", "--show", "9", "-q")
    assert [line.split("\t")[0] for line in done.text.splitlines()] == ["X", "Y", "X"]


@pytest.fixture
def first_digits(sample_data, tmp_path):
    path = tmp_path / "digits.conll"
    path.write_text("\n\n".join((sample_data / "digits.conll").read_text().split("\n\n")[:40]) + "\n")
    return path


def test_select_basis_json(kcrf, sample_data, tmp_path):
    done = kcrf("select-basis", sample_data / "digits.conll", "--kernel", "poly", "--degree", "3", "--size", "40",
                "--select", "greedy", "--json", "-q", "-o", tmp_path / "b.npz")  # fmt: skip
    [term] = json.loads(done.out)["terms"]
    assert term["pivots"] == 40 and 0 < term["unexplained"] < 1


def test_numbers_alone_get_a_kernel_from_text_and_from_encoded_data(kcrf, first_digits, tmp_path):
    data, own, encoded = first_digits, tmp_path / "own.npz", tmp_path / "encoded.npz"
    options = ("--size", "30", "--sigma2", "1", "-o")
    done = kcrf("train", data, *options, own)
    assert "an rbf kernel over all numbers" in done.err and "model: node (rbf kernel, 30 pivots), edge; " in done.err
    kcrf("featurize", data, "-q", "-o", tmp_path / "d.npz")
    assert kcrf("train", tmp_path / "d.npz", *options, encoded).code == 0
    assert own.read_bytes() == encoded.read_bytes()
    done = kcrf("train", tmp_path / "d.npz", "--kernel", "linear", "--sigma2", "1", "-o", encoded)
    assert done.code == 0 and "rbf" not in done.err
    # What a configuration says stays, though it is what goes without saying elsewhere.
    (tmp_path / "c.yaml").write_text("terms: [{name: node}, {name: edge, type: edge}]\n")
    kcrf("featurize", data, "-q", "-c", tmp_path / "c.yaml", "-o", tmp_path / "d.npz")
    assert "rbf" not in kcrf("train", tmp_path / "d.npz", "--sigma2", "1", "-o", encoded).err


def test_pictures_by_options(kcrf, sample_data, tmp_path):
    """Nearly all digits right with few pivots; what does not go together is refused in one line."""
    data, model = sample_data / "digits.conll", tmp_path / "m.npz"
    options = ("--kernel", "image", "--shape", "8x8", "--reach", "1", "--blur", "1", "--size", "100", "--sigma2", "1")
    done = kcrf("train", data, *options, "-q", "-o", model)
    assert done.code == 0, done.err
    assert json.loads(kcrf("evaluate", "-m", model, data, "--json").out)["accuracy"] > 0.95
    for wrong, message in (
        (["--kernel", "image"], "needs the 'shape'"),
        (["--kernel", "image", "--shape", "8"], "must be rows and columns"),
        (["--kernel", "image", "--shape", "8x9"], "has 72 real columns, not 64"),
        (["--kernel", "rbf", "--blur", "1"], "'blur' does not belong to the kernel 'rbf'"),
    ):
        done = kcrf("train", data, *wrong, "-q", "-o", model)
        assert done.code == 2 and message in done.err, done.err


def test_cosine_is_an_option(kcrf, accent, tmp_path):
    model = tmp_path / "m.npz"
    done = kcrf("train", accent, "--kernel", "poly", "--cosine", "--size", "30", "--sigma2", "1", "-o", model)
    assert done.code == 0 and "(cosine poly kernel, 30 pivots)" in done.err
    assert kcrf("evaluate", "-m", model, accent).code == 0


@pytest.mark.slow
def test_crossval_by_jobs_and_grid(kcrf, first_accents, tmp_path):
    options = [first_accents(400), "--folds", "2", "--kernel", "poly", "--size", "30", "--tolerance", "0.1",
               "--plain", "--grid", "degree=1,2", "--grid", "training.sigma2=1,10"]  # fmt: skip
    results = []
    for jobs in (1, 2):
        done = kcrf("crossval", *options, "--jobs", jobs, "--threads", jobs, "-o", tmp_path / "r.json")
        assert done.code == 0, done.err
        assert "degree=2 training.sigma2=10" in done.text
        found = json.loads((tmp_path / "r.json").read_text())
        for setting in found["settings"]:
            for fold in setting["folds"]:
                fold.pop("seconds")
        results.append(found)
    assert results[0] == results[1]
    assert len(results[0]["settings"]) == 4
    assert sum(fold["positions"] for fold in results[0]["settings"][0]["folds"]) == results[0]["positions"]


def test_crossval_counts_labels_that_a_fold_lacks(kcrf, tmp_path):
    data = tmp_path / "d.conll"
    data.write_text("a X\nb Y\n\na X\nb Y\n\na X\nb RARE\n\na X\nb Y\n")
    done = kcrf("crossval", data, "--folds", "4", "--sigma2", "1", "--json")
    [setting] = json.loads(done.out)["settings"]
    assert sum(fold["unknown_gold"] for fold in setting["folds"]) == 1


def test_attribute_files_through_every_command(kcrf, tmp_path):
    data = tmp_path / "d.crfsuite"
    data.write_text("@weight:2\nX\tw=a\tn:0.5\nY\tw=b\\:c\n\nX\tw=a\nX\n\nY\tw=b\\:c\tn:2\n")
    assert kcrf("featurize", data, "-o", tmp_path / "d.npz").code == 0
    basis = kcrf("select-basis", data, "--kernel", "rbf", "--size", "3", "-o", tmp_path / "b.npz")
    assert basis.code == 0, basis.err
    assert kcrf("train", data, "--basis", tmp_path / "b.npz", "--sigma2", "1", "-o", tmp_path / "m.npz").code == 0
    tagged = kcrf("tag", "-m", tmp_path / "m.npz", data)
    assert tagged.code == 0 and tagged.out.count(b"\n") == data.read_bytes().count(b"\n")
    assert [line.split("\t")[0] for line in tagged.text.split("\n")] == ["", "X", "Y", "", "X", "X", "", "Y", ""]
    assert kcrf("evaluate", "-", stdin=tagged.out).code == 0
    assert kcrf("crossval", data, "--folds", "3", "--sigma2", "1").code == 0


def test_unknown_gold_labels_count_the_same_as_text_and_encoded(kcrf, tmp_path):
    data, new = tmp_path / "d.conll", tmp_path / "new.conll"
    data.write_text("a B-X\nb O\n\na B-X\nb I-X\n")
    new.write_text("a B-X\nb O\n\na B-NEW\nb O\n")
    assert kcrf("train", data, "--sigma2", "1", "-q", "-o", tmp_path / "m.npz").code == 0
    assert kcrf("featurize", new, "--like", tmp_path / "m.npz", "-q", "-o", tmp_path / "new.npz").code == 0
    text, encoded = (
        json.loads(kcrf("evaluate", "-m", tmp_path / "m.npz", path, "--json").out)
        for path in (new, tmp_path / "new.npz")
    )
    assert text["unknown_gold"] == encoded["unknown_gold"] == 1
    assert text["accuracy"] == encoded["accuracy"] and text["spans"]["f1"] == encoded["spans"]["f1"]


# ----------------------------------------------------------------------------- as processes


@pytest.mark.skipif(os.name == "nt", reason="named pipes")
def test_data_from_a_named_pipe_is_read_whole(kcrf, trained, accent, tmp_path):
    pipe = tmp_path / "pipe.conll"
    os.mkfifo(pipe)
    writer = subprocess.Popen(
        [sys.executable, "-c", f"open({str(pipe)!r}, 'wb').write(open({str(accent)!r}, 'rb').read())"]
    )
    piped = kcrf("evaluate", "-m", trained, pipe, "--json")
    writer.wait()
    assert piped.out == kcrf("evaluate", "-m", trained, accent, "--json").out


def heeding_interrupts():
    """A shell starts background jobs deaf to Ctrl-C, and their children inherit that: tests may be such a job."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def process(*arguments, **more):
    return subprocess.Popen(
        [sys.executable, "-m", "kcrf_cli", *map(str, arguments)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=heeding_interrupts, **more,
    )  # fmt: skip


def test_tag_answers_while_its_input_is_still_open(trained):
    """In a pipe, a sequence is labelled as soon as it is complete."""
    with process("tag", "-m", trained) as running:
        for word in (b"the", b"cat"):
            running.stdin.write(word + b"\tN\t0.1\t120\t60\n\n")
            running.stdin.flush()
            assert running.stdout.readline().startswith(word + b"\tN\t0.1\t120\t60\t")
            assert running.stdout.readline() == b"\n"
        running.stdin.close()
        assert running.wait() == 0


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_closed_pipe_is_141(trained, accent):
    with process("tag", "-m", trained, accent) as running:
        running.stdout.read(10)
        running.stdout.close()
        assert running.wait() == 141
        assert running.stderr.read() == b""


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_leave_no_half_files(trained, tmp_path, number, code):
    """A tagger that is stopped leaves neither its output nor a temporary file."""
    folder = tmp_path / "out"
    folder.mkdir()
    with process("tag", "-m", trained, "-o", folder / "tagged") as running:
        running.stdin.write(b"the\tN\t0.1\t120\t60\n\n")
        running.stdin.flush()
        while not list(folder.iterdir()):
            assert running.poll() is None
            time.sleep(0.05)
        running.send_signal(number)
        assert running.wait() == code
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("cause", "code"), [(Terminated(), 143), (KeyboardInterrupt(), 130)])
def test_a_signal_while_a_module_is_imported_is_no_bug(cause, code, capfd):
    """Python up to 3.11 wraps what is raised while a class is made."""
    with pytest.raises(SystemExit) as left, exit_codes():
        raise RuntimeError("Error calling __set_name__") from cause
    assert left.value.code == code and "Traceback" not in capfd.readouterr().err
    with pytest.raises(RuntimeError, match="a bug"), exit_codes():
        raise RuntimeError("a bug")


@pytest.mark.parametrize(("cause", "number"), [(Terminated, signal.SIGTERM), (KeyboardInterrupt, signal.SIGINT)])
def test_a_signal_in_a_callback_is_not_lost(cause, number, capfd):
    """Where nothing can be raised, as in callbacks of Python's importer, it would only be printed."""

    class Callback:
        def __del__(self):
            raise cause

    def handler(*_):
        raise cause("again")

    before, hook = signal.signal(number, handler), sys.unraisablehook
    try:
        with pytest.raises(cause, match="again"), no_lost_signals():
            Callback()
            time.sleep(10)
        assert sys.unraisablehook is hook and capfd.readouterr().err == ""
    finally:
        signal.signal(number, before)


# What is said on stderr when a stage is under way, and options that lead there.
EARLY_STAGES = {
    "search": ("held-out log p", ["--kernel", "rbf", "--size", "700"]),
    "pivots": ("features: categorical", ["--kernel", "rbf", "--size", "1500", "--select", "greedy", "--sigma2", "1"]),
    "terms": ("term b:", ["--select-terms", "-c", "terms.yaml"]),
}


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize(
    ("stage", "number", "older"),
    [
        ("search", signal.SIGINT, True),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                ("pivots", signal.SIGTERM, False),
                ("search", signal.SIGTERM, True),
                ("search", signal.SIGINT, False),
                ("pivots", signal.SIGINT, True),
                ("terms", signal.SIGINT, True),
                ("terms", signal.SIGINT, False),
                ("terms", signal.SIGTERM, True),
            )
        ),
    ],
)
def test_an_interrupt_before_the_final_fit_writes_nothing(sample_data, tmp_path, stage, number, older):
    wanted, options = EARLY_STAGES[stage]
    (tmp_path / "terms.yaml").write_text(
        "terms: [{name: a, kernel: rbf, map: {size: 300}}, {name: b, kernel: poly, map: {size: 300}}, {type: edge}]\n"
    )
    folder = tmp_path / "out"
    folder.mkdir()
    model = folder / "m.npz"
    if older:
        model.write_bytes(b"an older model")
    command = ("train", sample_data / "digits.conll", *options, "-v", "-o", model)
    with process(*command, cwd=tmp_path) as running:
        seen = ""
        for line in running.stderr:
            seen += line.decode()
            if wanted in seen:
                break
        running.send_signal(number)
        seen += running.stderr.read().decode()
        assert running.wait() == 128 + number, seen
    last = "interrupted before there was a model to write" if number == signal.SIGINT else "terminated"
    assert seen.endswith(f"kcrf: {last}\n"), seen
    assert list(folder.iterdir()) == ([model] if older else [])
    assert not older or model.read_bytes() == b"an older model"


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_an_interrupt_while_data_is_read_writes_nothing(tmp_path):
    model = tmp_path / "m.npz"
    model.write_bytes(b"an older model")
    with process("train", "-", "-o", model) as running:
        # More than a pipe holds: much of it has been read when all of it is written.
        running.stdin.write(b"the\tN\n\n" * 100_000)
        running.stdin.flush()
        running.send_signal(signal.SIGINT)
        assert running.wait() == 130
        assert b"Traceback" not in running.stderr.read()
    assert model.read_bytes() == b"an older model"


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_an_interrupt_of_the_final_fit_writes_a_usable_model(kcrf, first_digits, tmp_path, number):
    model, log = tmp_path / "m.npz", tmp_path / "log.jsonl"
    options = ["--kernel", "rbf", "--map", "full", "--sigma2", "1", "--tolerance", "1e-9", "-v"]
    with process("train", first_digits, *options, "--log", log, "-o", model) as running:
        for line in running.stderr:
            if line.startswith(b"  training: pass 5,"):
                break
        running.send_signal(number)
        running.stderr.read()
        assert running.wait() == 128 + number
    done = kcrf("evaluate", "-m", model, first_digits, "--json")
    assert done.code == 0 and json.loads(done.out)["accuracy"] > 0.5
    assert json.loads(log.read_text().splitlines()[-1])["stop"] == "interrupted"


def test_templates_that_share_weights(kcrf, first_accents, tmp_path):
    accent, template, model, again = (
        first_accents(100),
        *(tmp_path / name for name in ("template", "m.npz", "again.npz")),
    )
    template.write_text("U:%x[-1,0]\nU:%x[1,0]\nU1:%x[0,1]\nU2\nB\nB1:%x[0,1]\n")
    options = ("-c", template, "--sigma2", "1")
    assert kcrf("train", accent, *options, "-q", "-o", model).code == 0
    done = kcrf("train", accent, *options, "--init", model, "-o", again)
    found = re.search(r"term node with ([\d,]+) of ([\d,]+) features [^,]*, term edge-x with ([\d,]+) of", done.err)
    assert found and found[1] == found[2]
    scores = [kcrf("evaluate", "-m", path, accent, "--json").text for path in (model, again)]
    assert json.loads(scores[0])["accuracy"] == pytest.approx(json.loads(scores[1])["accuracy"], abs=0.005)
    assert kcrf("crossval", accent, *options, "--folds", "2", "--json").code == 0
