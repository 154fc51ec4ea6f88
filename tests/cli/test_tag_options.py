"""`kcrf tag` asked for more than labels: forms of output, what goes together, errors."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pytest

SPANS = """the D B-NP
old A I-NP
dog N I-NP
barks V B-VP

# # B-NP
1 N I-NP
is V B-VP
new A O
"""


@pytest.fixture
def accent(sample_data):
    return sample_data / "pitch_accent.conll"


@pytest.fixture
def spans(kcrf, tmp_path):
    """A file with spans, separated by spaces, with `#` for a word, and a model of it."""
    data, model = tmp_path / "spans.conll", tmp_path / "spans.npz"
    data.write_text(SPANS)
    assert kcrf("train", data, "-o", model, "--sigma2", "1", "-q").code == 0
    return data, model


def columns(out: bytes) -> list[list[str]]:
    return [line.split("\t") for line in out.decode().split("\n") if line]


def plain(kcrf, model, data) -> bytes:
    return kcrf("tag", "-m", model, data).out


def test_marginals_stand_between_gold_and_predicted(kcrf, trained, accent):
    expected = columns(plain(kcrf, trained, accent))
    best = columns(kcrf("tag", "-m", trained, accent, "--marginals", "best").out)
    every = columns(kcrf("tag", "-m", trained, accent, "--marginals", "all").out)
    for row, with_best, with_all in zip(expected, best, every, strict=True):
        assert with_best[:6] + with_best[7:] == with_all[:6] + with_all[8:] == row
        assert re.fullmatch(rf"{row[-1]}:[01]\.\d{{6}}", with_best[6])
        (p0, p1) = (re.fullmatch(rf"{label}:([01]\.\d{{6}})", with_all[6 + int(label)])[1] for label in "01")
        assert abs(float(p0) + float(p1) - 1) < 3e-6
        assert with_best[6].partition(":")[2] == (p0, p1)[int(row[-1])]


@pytest.mark.parametrize("more", [[], ["--sequence-probability", "--decode", "posterior"]])
def test_evaluate_reads_what_tag_writes(kcrf, accent, tmp_path, more):
    model = tmp_path / "pivots.npz"
    assert kcrf("train", accent, "--kernel", "rbf", "--size", "30", "--sigma2", "1", "-q", "-o", model).code == 0
    direct = json.loads(kcrf("evaluate", "-m", model, accent, "--json").out)
    tagged = kcrf("tag", "-m", model, accent, "--marginals", "all", "--novelty", *more)
    assert tagged.code == 0 and tagged.out.count(b"\n") == accent.read_bytes().count(b"\n")
    read = json.loads(kcrf("evaluate", "-", "--json", stdin=tagged.out).out)
    if not more:
        assert read["accuracy"] == direct["accuracy"]
        assert abs(read["calibration"]["log_loss"] - direct["calibration"]["log_loss"]) < 1e-4
    tagged = kcrf("tag", "-m", model, accent, "--marginals", "best", "--novelty", *more)
    probabilities = json.loads(kcrf("evaluate", "-", "--json", stdin=tagged.out).out)["calibration"]
    assert probabilities["log_loss"] is None
    assert abs(probabilities["calibration_error"] - read["calibration"]["calibration_error"]) < 1e-4


def test_probability_of_a_labelling_is_that_of_the_first_of_nbest(kcrf, trained, accent):
    rows = columns(kcrf("tag", "-m", trained, accent, "--sequence-probability", "--decode", "viterbi").out)
    nbest = kcrf("tag", "-m", trained, accent, "--nbest", 3).text
    heads = re.findall(r"^# 1 (\S+)$", nbest, re.MULTILINE)
    told = [row[6] for row in rows]
    assert [value for k, value in enumerate(told) if k == 0 or value != told[k - 1]] == [
        f"probability={value}" for k, value in enumerate(heads) if k == 0 or value != heads[k - 1]
    ]


def test_nbest_blocks(kcrf, trained, accent):
    """The first labelling is that of Viterbi decoding, in its form; probabilities fall and sum to no more than one."""
    blocks = kcrf("tag", "-m", trained, accent, "--nbest", 4).text.removesuffix("\n\n").split("\n\n")
    first, sums = [], []
    for block in blocks:
        head, *lines = block.split("\n")
        rank, p = re.fullmatch(r"# (\d) (\S+)", head).groups()
        if rank == "1":
            first.append("\n".join(lines))
            sums.append([])
        assert int(rank) == len(sums[-1]) + 1 and len(lines) == first[-1].count("\n") + 1
        sums[-1].append(float(p))
    assert "\n\n".join(first) == kcrf("tag", "-m", trained, accent, "--decode", "viterbi").text.rstrip("\n")
    assert all(ps == sorted(ps, reverse=True) and sum(ps) <= 1 + 1e-5 for ps in sums)
    assert {len(ps) for ps in sums} <= {2, 4}  # a sequence of one position has two labellings


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_odd_layouts_with_more_columns(kcrf, trained, ending):
    rows = ["\ufeffthe\tD\t0.1\t120\t60", "cat\tN\t0.2\t130\t61", "", "", "a\tD\t0.1\t100\t55", "b\tN\t0\t90\t50"]
    text = ending.join(rows).encode()  # no newline at the end
    done = kcrf("tag", "-m", trained, "--marginals", "best", stdin=text)
    lines = done.text.split(ending)
    assert len(lines) == len(rows) and not done.out.endswith(b"\n")
    for before, after in zip(rows, lines, strict=True):
        assert re.fullmatch(re.escape(before) + (r"\t([01]):\d\.\d{6}\t\1" if before else ""), after)
    explained = kcrf("tag", "-m", trained, "--explain", 1, stdin=text).text.split(ending)
    kept = [line for line in explained if not line.startswith("#: ")]
    assert kept == kcrf("tag", "-m", trained, stdin=text).text.split(ending)
    nbest = kcrf("tag", "-m", trained, "--nbest", 1, stdin=text).text
    assert nbest.count(ending) == nbest.count("\n") == 8 and "\ufeff" not in nbest


def test_scheme_and_given_labels(kcrf, spans):
    _, model = spans
    given = re.sub(r"(?m) [BIO]\S*$", " ?", SPANS).replace("dog N ?", "dog N B-VP").encode()
    done = kcrf("tag", "-m", model, "--force", "--scheme", "iob2", "--marginals", "all", stdin=given)
    assert done.code == 0
    rows = [line.split(" ") for line in done.text.split("\n")]
    assert rows[2][-1] == "B-VP" and "B-VP:1.000000" in rows[2] and "O:0.000000" in rows[2]
    assert rows[3][-1] != "I-NP"
    other = kcrf("tag", "-m", model, "--force", "--free", "_", stdin=given.replace(b"?", b"_"))
    assert [line.split(" ")[-1] for line in other.text.split("\n")][2] == "B-VP"


def test_errors_of_given_labels(kcrf, spans):
    _, model = spans
    unknown = kcrf("tag", "-m", model, "--force", stdin=SPANS.replace("barks V B-VP", "barks V B-PP").encode())
    assert unknown.code == 3 and unknown.err.startswith("kcrf: <stdin>:4: the model has no label 'B-PP'")
    missing = kcrf("tag", "-m", model, "--force", stdin=b"the D\n")
    assert missing.code == 3 and missing.err.startswith("kcrf: <stdin>:1: no column of labels")
    impossible = kcrf("tag", "-m", model, "--force", "--scheme", "iob2", stdin=b"the D O\n\nold A I-NP\n")
    assert impossible.code == 3 and impossible.err.startswith("kcrf: <stdin>:3: no labelling of this sequence")
    for done in (unknown, missing, impossible):
        assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--free", "_"], "--force"),
        (["--force", "--free", "O"], "is a label of the model"),
        (["--nbest", "2", "--decode", "posterior"], "--decode posterior"),
        (["--nbest", "2", "--explain", "1"], "--explain"),
        (["--explain-errors"], "give --explain K"),
        (["--nbest", "2", "--sequence-probability"], "--sequence-probability"),
        (["--nbest", "0"], "--nbest"),
        (["--scheme", "iobes"], "are not those of the scheme"),
        (["--novelty"], "no pivots"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(kcrf, spans, tmp_path, options, message):
    data, model = spans
    done = kcrf("tag", "-m", model, data, "-o", tmp_path / "out", *options)
    assert done.code == 2 and message in done.err.strip().split("\n")[-1]
    assert not (tmp_path / "out").exists()


def test_explanations_add_up_as_printed(kcrf, spans):
    data, model = spans
    done = kcrf("tag", "-m", model, data, "--explain", 3)
    lines = done.text.split("\n")
    assert [line for line in lines if not line.startswith("#: ")] == plain(kcrf, model, data).decode().split("\n")
    texts = re.split(r"^(?!#: ).*\n", done.text, flags=re.MULTILINE)
    explained = [text for text in texts if text]
    assert len(explained) == 8
    for text in explained:
        head, *parts = text.rstrip("\n").split("\n")
        total = float(re.fullmatch(r"#: \S+ against \S+ (\S+)", head)[1])
        values = [
            float(re.fullmatch(r"#:   ([+-]\d+\.\d{4}) (?:node: \S+|edge: .+|all others)", part)[1]) for part in parts
        ]
        assert len(values) <= 7 and abs(sum(values) - total) < 5e-4


def test_json_lines_say_what_the_columns_say(kcrf, first_accents, tmp_path):
    model, accent = tmp_path / "pivots.npz", first_accents(100)
    options = ("--kernel", "rbf", "--plain", "--size", "30", "--sigma2", "1", "-q")
    assert kcrf("train", accent, *options, "-o", model).code == 0
    asked = ["--marginals", "all", "--sequence-probability", "--novelty", "--explain", "2"]
    objects = [json.loads(line) for line in kcrf("tag", "-m", model, accent, "--json-lines", *asked).text.splitlines()]
    rows = columns(kcrf("tag", "-m", model, accent, *asked[:-2]).out)
    text, at = accent.read_text().split("\n"), 0
    for found in objects:
        T = len(found["labels"])
        part = rows[at : at + T]
        assert found["tokens"] == [row[:5] for row in part] and found["gold"] == [row[5] for row in part]
        assert found["labels"] == [row[-1] for row in part]
        assert text[found["line"] - 1].split("\t") == part[0][:6]
        assert found["novelty"] == [float(row[6].removeprefix("novelty=")) for row in part]
        assert {f"probability={found['probability']:.6g}"} == {row[7] for row in part}
        np.testing.assert_allclose(np.exp(found["log_probability"]), found["probability"], rtol=1e-5)
        assert found["marginals"] == [{"0": float(row[8][2:]), "1": float(row[9][2:])} for row in part]
        for one, label in zip(found["explanation"], found["labels"], strict=True):
            assert one["label"] == label != one["against"] and len(one["contributions"]) <= 4
            total = sum(p["value"] for p in one["contributions"]) + one["others"]
            assert abs(total - one["difference"]) < 1e-4  # kernel values are of single precision
            for contribution in one["contributions"]:
                assert contribution["term"] == "edge" or contribution["what"].startswith(("c", "jointly"))
            assert abs(sum(one["terms"].values()) - one["difference"]) < 1e-4
            for pivot in one["similar"]:
                word = text[pivot["line"] - 1].split("\t")[0]
                assert 0 <= pivot["similarity"] <= 1.000001 and f"c0[0]={word}" in pivot["text"]
                assert pivot["label"] == text[pivot["line"] - 1].split("\t")[5]
        at += T
    assert at == len(rows)
    errors = kcrf("tag", "-m", model, accent, "--explain", "1", "--explain-errors").text.split("\n")
    heads = [(errors[t - 1].split("\t")[5:], line) for t, line in enumerate(errors) if " against " in line]
    assert len(heads) == sum(row[5] != row[-1] for row in rows) > 0
    assert all(line.startswith(f"#: {label} against {gold} ") for (gold, label), line in heads)
    assert any(
        re.match(r"#:   like line \d+ of the training data \(\d+ %, labelled [01]\): c0", line) for line in errors
    )
    written = kcrf("tag", "-m", model, accent, "--explain", "1", "--explain-errors", "--json-lines").text
    reasons = [one for line in written.splitlines() for one in json.loads(line)["explanation"]]
    assert [one is not None for one in reasons] == [row[5] != row[-1] for row in rows]


def test_json_lines_of_nbest_and_given_labels(kcrf, spans):
    _, model = spans
    given = SPANS.replace("B-VP", "?").encode()
    lines = kcrf("tag", "-m", model, "--force", "--nbest", 2, "--json-lines", stdin=b"\n\n" + given).text.splitlines()
    assert len(lines) == 2
    for found in map(json.loads, lines):
        assert found["nbest"][0]["labels"] == found["labels"] != found["nbest"][1]["labels"]
        assert None in found["given"]
        for one in found["nbest"]:
            assert all(g in (None, label) for g, label in zip(found["given"], one["labels"], strict=True))


def test_attribute_files(kcrf, tmp_path):
    data, model = tmp_path / "data.crfsuite", tmp_path / "model.npz"
    data.write_bytes(b"@weight:2\nA\tw=a\tlen:3\nB\tw=b\r\n\nA\tw=a\n")
    assert kcrf("train", data, "-o", model, "--sigma2", "1", "-q").code == 0
    assert kcrf("tag", "-m", model, data).out == b"\nA\tA\nB\tB\r\n\nA\tA\n"
    best = kcrf("tag", "-m", model, data, "--marginals", "best").text
    assert re.fullmatch(r"\nA\tA:0\.\d{6}\tA\nB\tB:0\.\d{6}\tB\r\n\nA\tA:0\.\d{6}\tA\n", best)
    nbest = kcrf("tag", "-m", model, data, "--nbest", 1).text
    assert re.fullmatch(r"# 1 \S+\nA\tA\nB\tB\n\n# 1 \S+\nA\tA\n\n", nbest)
    found = json.loads(kcrf("tag", "-m", model, data, "--json-lines", "--explain", 9).text.split("\n")[0])
    assert found["tokens"] == [["w=a", "len:3"], ["w=b"]] and found["line"] == 2
    assert "len:3" in {part["what"] for part in found["explanation"][0]["contributions"]}
    given = kcrf("tag", "-m", model, "--force", stdin=b"B\tw=a\tlen:3\n?\tw=b\n").text
    assert given.startswith("B\tB\n?\t")


def test_conjunctions_of_templates_are_told_by_their_values(kcrf, spans, tmp_path):
    data, _ = spans
    template, model = tmp_path / "template", tmp_path / "template.npz"
    template.write_text("U00:%x[0,0]/%x[-1,1]/%x[1,1]\nB\n")
    assert kcrf("train", data, "-c", template, "-o", model, "--sigma2", "1", "-q").code == 0
    assert "node: U00[0]=old/D/N\n" in kcrf("tag", "-m", model, data, "--explain", 9).text
    assert "U00[0]=the/_B-1/A\n" in kcrf("featurize", data, "-c", template, "--show", 1).text
    # Lines that share weights are attributes, beside features that are none.
    template.write_text("U00:%x[0,0]\nU:%x[-1,0]\nU:%x[1,0]\nU01:%x[0,1]\nB\n")
    assert kcrf("train", data, "-c", template, "-o", model, "--sigma2", "1", "-q").code == 0
    told = kcrf("tag", "-m", model, data, "--explain", 9).text
    assert all(name in told for name in ("node: U00[0]=old\n", "node: U:old\n", "node: U01[0]=A\n"))


@pytest.mark.parametrize("options", [["--marginals", "best", "--explain", "2"], ["--nbest", "3", "--json-lines"]])
@pytest.mark.parametrize("sequences", [150, pytest.param(400, marks=pytest.mark.slow)])
def test_threads_do_not_matter_and_scipy_stays_away(kcrf, trained, first_accents, tmp_path, options, sequences):
    long, accent = tmp_path / "long.conll", first_accents(sequences)
    long.write_bytes((accent.read_bytes() + b"\n") * 2)
    one, three = (kcrf("tag", "-m", trained, long, "--threads", count, *options) for count in (1, 3))
    assert one.code == 0 and three.out == one.out
    program = (
        "import sys\nfrom kcrf_cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "sys.exit(any(name.split('.')[0] == 'scipy' for name in sys.modules))"
    )
    command = [sys.executable, "-c", program, "tag", "-m", trained, accent, *options]
    assert subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0


def test_few_labels_wait_for_few_imports(trained, first_accents):
    """Modules for other output, for large files and for the network stay away: start-up matters."""
    away = {
        *("scipy", "yaml", "ssl", "http", "urllib.request", "xml.sax", "secrets", "kcrf_core.model.runtime_files"),
        *("kcrf_core.model.explanation", "kcrf_core.training", "kcrf_cli.render.labelled_text"),
    }
    program = (
        "import sys\nfrom kcrf_cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        f"found = {away} & set(sys.modules)\nassert not found, found"
    )
    command = [sys.executable, "-c", program, "tag", "-m", trained, first_accents(3)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_answers_in_a_pipe(trained):
    """More columns come as soon as plain labels do."""
    command = [sys.executable, "-m", "kcrf_cli", "tag", "-m", str(trained), "--nbest", "1", "--marginals", "best"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        for word in (b"the", b"cat"):
            running.stdin.write(word + b"\tN\t0.1\t120\t60\n\n")
            running.stdin.flush()
            assert running.stdout.readline().startswith(b"# 1 ")
            assert running.stdout.readline().startswith(word + b"\tN\t0.1\t120\t60\t")
            assert running.stdout.readline() == b"\n"
        running.stdin.close()
        assert running.wait() == 0
