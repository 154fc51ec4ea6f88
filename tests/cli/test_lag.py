"""`kcrf tag --lag`: lines come out while more come in, each after as many as were asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = [sys.executable, "-m", "kcrf_cli", "tag"]


@pytest.fixture
def accent(sample_data):
    return sample_data / "pitch_accent.conll"


@pytest.fixture
def spans(kcrf, tmp_path):
    data, model = tmp_path / "spans.conll", tmp_path / "spans.npz"
    data.write_text("the D B-NP\nold A I-NP\ndog N I-NP\nbarks V B-VP\n\n# # B-NP\n1 N I-NP\nis V B-VP\nnew A O\n")
    assert kcrf("train", data, "-o", model, "--sigma2", "1", "-q").code == 0
    return data, model


@pytest.mark.each_choice
@pytest.mark.parametrize("lag", [0, 1, 3])
@pytest.mark.parametrize("more", [[], ["--marginals", "all", "--scheme", "iob2"]])
def test_one_line_in_one_line_out(spans, lag, more):
    """Each line is answered when `lag` more have been written, before the pipe is closed and before a blank line."""
    data, model = spans
    lines = data.read_bytes().splitlines(keepends=True)
    with subprocess.Popen(
        [*PROGRAM, "-m", str(model), "--lag", str(lag), "-q", *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        waiting = []
        for line in lines:
            running.stdin.write(line)
            running.stdin.flush()
            due = [*waiting, line] if line == b"\n" else []
            waiting = [] if line == b"\n" else [*waiting, line]
            if len(waiting) > lag:
                due.append(waiting.pop(0))
            for expected in due:
                assert running.stdout.readline().startswith(expected.rstrip(b"\n"))
        running.stdin.close()
        rest = running.stdout.read().splitlines()
        assert [line.split(b" ")[0] for line in rest] == [line.split(b" ")[0] for line in waiting]
        assert running.wait() == 0


@pytest.mark.parametrize("options", [[], ["--marginals", "all"], ["--decode", "posterior", "--cost", "1=3"]])
def test_a_long_lag_is_posterior_decoding(kcrf, trained, accent, options):
    whole = kcrf("tag", "-m", trained, accent, "--decode", "posterior", *[o for o in options if o != "--decode"][-2:])
    assert whole.code == 0
    assert kcrf("tag", "-m", trained, accent, "--lag", 500, *options) == whole


@pytest.mark.parametrize("lag", [0, 2, 7])
def test_output_does_not_depend_on_how_lines_come(kcrf, trained, accent, lag):
    """A pipe that is cut anywhere gives the bytes of a file; lines are repeated as they are."""
    text = accent.read_bytes()[:20_000].rsplit(b"\n", 1)[0].replace(b"\n", b"\r\n")
    at_once = kcrf("tag", "-m", trained, "--lag", lag, "--marginals", "best", "-q", stdin=text)
    assert at_once.code == 0
    repeated = [line.rsplit(b"\t", 2)[0] if line.strip() else line.strip() for line in at_once.out.split(b"\n")]
    assert repeated == [line.rstrip(b"\r") for line in text.split(b"\n")]
    command = [*PROGRAM, "-m", str(trained), "--lag", str(lag), "--marginals", "best", "-q"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        for first in range(0, len(text), 777):
            running.stdin.write(text[first : first + 777])
            running.stdin.flush()
        running.stdin.close()
        assert running.stdout.read() == at_once.out


def test_windows_that_are_cut_are_spoken_of_once(kcrf, trained, accent):
    said = kcrf("tag", "-m", trained, accent, "--lag", 1)
    assert (said.code, said.err.count("\n")) == (0, 1)
    assert "windows look 2 lines ahead: with --lag 1 they are cut" in said.err
    assert kcrf("tag", "-m", trained, accent, "--lag", 1, "-q").err == ""
    assert kcrf("tag", "-m", trained, accent, "--lag", 2).err == ""


def test_attribute_files(kcrf, tmp_path, sample_data):
    data, model = tmp_path / "data.crfsuite", tmp_path / "model.npz"
    data.write_text("A\tw=a\tx:0.5\nB\tw=b\n\n@weight:2\nB\tw=b\nA\tw=c\n")
    assert kcrf("train", data, "-o", model, "--sigma2", 1, "-q").code == 0
    whole = kcrf("tag", "-m", model, data, "--decode", "posterior")
    assert kcrf("tag", "-m", model, data, "--lag", 9) == whole
    assert kcrf("tag", "-m", model, data, "--lag", 0).out.count(b"\n") == whole.out.count(b"\n")


def test_given_labels_stay(kcrf, spans, tmp_path):
    _, model = spans
    text = b"the D B-NP\nold A ?\ndog N B-VP\nbarks V ?\n"
    found = kcrf("tag", "-m", model, "--lag", 0, "--force", "-q", stdin=text)
    assert found.code == 0
    labels = [line.split()[-1] for line in found.text.splitlines()]
    assert (labels[0], labels[2]) == ("B-NP", "B-VP")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--nbest", "2"], "--nbest needs whole sequences: it does not go with --lag"),
        (["--explain", "2"], "--explain needs whole sequences"),
        (["--sequence-probability"], "--sequence-probability needs whole sequences"),
        (["--json-lines"], "--json-lines needs whole sequences"),
        (["--decode", "viterbi"], "it does not go with --decode viterbi"),
    ],
)
def test_what_needs_whole_sequences_refuses_it(kcrf, trained, accent, options, message):
    done = kcrf("tag", "-m", trained, accent, "--lag", 3, *options)
    assert (done.code, done.out) == (2, b"")
    assert message in done.err


def test_features_of_whole_sequences_refuse_it(kcrf, tmp_path, accent):
    config, model = tmp_path / "config.yaml", tmp_path / "model.npz"
    config.write_text("features:\n  - {column: c0}\n  - {name: place, column: c0, transform: position}\n")
    assert kcrf("train", accent, "-c", config, "-o", model, "--sigma2", 1, "-q").code == 0
    done = kcrf("tag", "-m", model, accent, "--lag", 3)
    assert (done.code, done.out) == (2, b"")
    assert "'place' (position)" in done.err
    assert "--lag" in done.err


def test_whole_sentences_refuse_it(kcrf, tmp_path, sample_data):
    model = tmp_path / "words.npz"
    sentences = sample_data / "sentences.conllu"
    assert kcrf("train", sentences, "-o", model, "--sigma2", 1, "-q").code == 0
    done = kcrf("tag", "-m", model, sentences, "--lag", 3)
    assert (done.code, done.out) == (2, b"")
    assert "CoNLL-U is read in whole sequences" in done.err


@pytest.mark.slow
def test_memory_does_not_grow_with_the_sequence(kcrf, tmp_path):
    """A sequence of many thousand lines takes no more than one of 20,000."""
    data, model = tmp_path / "data.conll", tmp_path / "model.npz"
    rows = "".join(f"{t % 7}.{'5' * 60}\t{'AB'[t // 5 % 2]}\n" for t in range(1000))
    data.write_text(rows)
    assert kcrf("train", data, "-o", model, "--sigma2", 1, "-q").code == 0
    script = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
    )
    peaks = []
    for times in (20, 200):
        data.write_text(rows * times)
        command = [sys.executable, "-c", script, *PROGRAM, "-m", model, "--lag", "3", data]
        peaks.append(int(subprocess.run(command, capture_output=True, check=True).stdout))
    assert peaks[1] < 1.25 * peaks[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("data.xml", "<a>\n<s><x>the dog</x></s>\n</a>\n"),
        ("-", "<a>\n<s><x>the dog</x></s>\n</a>\n"),
        ("-", '{"text": "the dog", "label": [[0, 3, "NP"]]}\n'),
        ("-", '[\n{"text": "the dog"}]\n'),
        ("data.ttx", "title         | How\n"),
        ("data.txt", "the dog\n"),
    ],
)
def test_markup_is_not_labelled(kcrf, tmp_path, name, text):
    (tmp_path / "words.jsonl").write_text('{"text": "the dog", "label": [[0, 3, "NP"]]}\n')
    model = tmp_path / "words.npz"
    assert kcrf("train", tmp_path / "words.jsonl", "--sigma2", "1", "-q", "-o", model).code == 0
    path = name if name == "-" else tmp_path / name
    if name != "-":
        path.write_text(text)
        (tmp_path / "data.ann").write_text("")
    done = kcrf("tag", "-m", model, path, "--lag", "1", "-q", stdin=text.encode())
    assert (done.code, done.out) == (2, b"")
    shown = "<stdin>" if name == "-" else path
    assert f"{shown} has texts, which are read whole, so it cannot be labelled line by line" in done.err
