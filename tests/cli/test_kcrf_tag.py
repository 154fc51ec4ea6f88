"""The program kcrf-tag prints what `kcrf tag` prints, byte for byte, and refuses what that refuses."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

LIBRARY = Path(__file__).parents[2] / "src" / "kcrf_runtime"
SAMPLES = Path(__file__).parents[2] / "sample_data"
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")

COLUMNS = "the\tDT\tB\ncat\tNN\tI\n\nThe\tDT\tB\nÉlan\tNN\tO\nran\tVB\tO\n\na\tDT\tB\ndog\tNN\tI\n"
ATTRIBUTES = "B\tw=the\tbias\nI\tw=c\\:at:2\tbias\n\nO\tw=ran:0.5\n\n@weight:2\nB\tbias\tw=a\n"


def compiled(path, *options):
    flags = ["-std=c99", "-O0", "-ffp-contract=off", *options]
    subprocess.run(["cc", *flags, "-o", path, *sorted(LIBRARY.glob("*.c")), "-lm", "-lpthread"], check=True)
    return path


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("program") / "kcrf-tag")


def model_of(kcrf, tmp_path, data, *options, name="data.conll"):
    (tmp_path / name).write_text(data)
    for command in (
        ("train", tmp_path / name, "--sigma2", "1", "-q", *options, "-o", tmp_path / "m.npz"),
        ("export", tmp_path / "m.npz", "-q", "--quantize", "none", "-o", tmp_path / "m.kcrf"),
    ):
        done = kcrf(*command)
        assert done.code == 0, done.err
    return tmp_path / "m.npz", tmp_path / "m.kcrf"


def run(program, *arguments, data=b""):
    done = subprocess.run([program, *map(str, arguments)], input=data, capture_output=True)
    return done.returncode, done.stdout, done.stderr.decode()


SAME = {
    "with labels": COLUMNS,
    "without labels": COLUMNS.replace("\tB\n", "\n").replace("\tI\n", "\n").replace("\tO\n", "\n"),
    "carriage returns": COLUMNS.replace("\n", "\r\n"),
    "no line end": COLUMNS.rstrip("\n"),
    "mark, blank lines": "\ufeff\n \t\n" + COLUMNS + "\n\n" + COLUMNS,
    "spaces": COLUMNS.replace("\t", "  "),
    "empty": "",
    "long": COLUMNS.replace("dog", "d" * 70_000) * 9,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a dictionary for models that are made once."""
    return {}


@pytest.fixture
def models(kcrf, made, tmp_path_factory):
    """Return a model of columns, for `kcrf tag` and for kcrf-tag."""
    if not made:
        made["columns"] = model_of(kcrf, tmp_path_factory.mktemp("columns"), COLUMNS)
    return made["columns"]


@pytest.mark.parametrize("name", SAME)
def test_output_is_that_of_kcrf_tag(kcrf, program, models, name):
    model, exported = models
    data = SAME[name].encode()
    for options in ((), ("--marginals", "all")):
        wanted = kcrf("tag", "-m", model, "-q", *options, stdin=data)
        for threads in (1, 3):
            assert run(program, exported, *options, "--threads", threads, data=data) == (wanted.code, wanted.out, "")


def test_attributes_headers_and_comments(kcrf, program, tmp_path):
    model, exported = model_of(kcrf, tmp_path, ATTRIBUTES, name="data.crfsuite")
    for data in (ATTRIBUTES, ATTRIBUTES * 3, ATTRIBUTES.replace("\n", "\r\n")):
        wanted = kcrf("tag", "-m", model, "-q", stdin=data.encode())
        assert run(program, exported, data=data.encode()) == (0, wanted.out, "")
    headed = "word\ttag\tlabel\n" + COLUMNS
    model, exported = model_of(kcrf, tmp_path, headed, "--header", "--comment", "#")
    for data in (
        headed,
        headed.replace("cat", "# no row\ncat"),
        "# first\n" + headed,
        "word\ttag\na\tb\n",
        headed[:15],
    ):
        for given in (data, "\ufeff" + data):
            for more in ((), ("--marginals", "best"), ("--marginals", "all")):
                wanted = kcrf("tag", "-m", model, "-q", *more, stdin=given.encode())
                for threads in (1, 3):
                    assert run(program, exported, "-t", threads, *more, data=given.encode()) == (0, wanted.out, "")
    assert run(program, exported, data=b"tag\tword\na\tb\n")[0] == 3


@pytest.mark.parametrize("separator", ["\t", " "])
def test_new_columns_have_new_names(kcrf, program, tmp_path, separator):
    data = f"p(B)\tpredicted_2\tpredicted\n{COLUMNS}".replace("\t", separator)
    model, exported = model_of(kcrf, tmp_path, data, "--header")
    names = {"best": "marginal predicted_3", "all": "p(B)_2 p(I) p(O) predicted_3"}
    for kind, expected in names.items():
        wanted = kcrf("tag", "-m", model, "-q", "--marginals", kind, stdin=data.encode())
        assert wanted.text.splitlines()[0].split(separator)[3:] == expected.split()
        assert run(program, exported, "--marginals", kind, data=data.encode()) == (0, wanted.out, "")
    plain = kcrf("tag", "-m", model, "-q", stdin=data.encode())
    assert run(program, exported, data=data.encode()) == (0, plain.out, "")
    (tmp_path / "tagged").write_bytes(plain.out)
    assert "(7 of 7 positions)" in kcrf("evaluate", tmp_path / "tagged").text
    assert "(7 of 7 positions)" in kcrf("evaluate", tmp_path / "tagged", "--header").text


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a\tb\tB\na\tb\n", "<stdin>:2: 2 columns, expected 3"),
        (b"a\tb\tB\nx\n", "<stdin>:2: 1 column, expected 3"),
        (b"a\n", "<stdin>:1: 1 column, expected 3 with labels or 2 without"),
        (b"a\tb\tB\na b B\n", "<stdin>:2: 1 column, expected 3 (tab-separated, and the line has spaces and no TAB)"),
        (b"a\tb\n\xff\tb\n", "<stdin>:2: byte 0xff is not UTF-8"),
        (b"a\tb\n\xed\xa0\x80\tb\n", "<stdin>:2: byte 0xed is not UTF-8"),
        (b"a\tb\n\na\0\tb\n", "<stdin>:3: a NUL character"),
        (b"a\tb\ra\tb\n", "<stdin>:1: a carriage return inside a line"),
        (b"\xef\xbb\xbf\n\na\tb\tB\na\n", "<stdin>:4: 1 column, expected 3"),
        (b"\n" + b"a\tb\tB\n\n" * 30_000 + b"a\n", "<stdin>:60002: 1 column, expected 3"),  # of another block
        (b"\n" * 70_000 + b"a\tb\tB\n\xff\n", "<stdin>:70002: byte 0xff"),  # no row in the first block
    ],
)
def test_bad_data_is_refused_with_its_line(kcrf, program, models, data, message):
    for threads in (1, 2):
        code, _, err = run(program, models[1], "-t", threads, data=data)
        assert code == 3
        assert message in err
    assert kcrf("tag", "-m", models[0], stdin=data).code == 3


def test_messages_name_files_of_any_length(program, models, tmp_path):
    """A path of several hundred bytes wrote beyond the room for a message."""
    folder = tmp_path / ("d" * 200) / ("e" * 200) / ("f" * 200)
    folder.mkdir(parents=True)
    (folder / "data").write_bytes(b"a\tb\tB\na\tb\n")
    (folder / "text").write_text("no model\n")
    for threads in (1, 3):
        code, _, err = run(program, models[1], folder / "data", "-t", threads)
        assert (code, err) == (3, f"kcrf-tag: {folder}/data:2: 2 columns, expected 3 (is a value missing?)\n")
    assert run(program, folder / "text")[2].startswith(f"kcrf-tag: {folder}/text: not a model")
    assert run(program, folder / "missing")[2] == f"kcrf-tag: {folder}/missing: cannot be read, or is empty\n"
    code, _, err = run(program, models[1], folder / "missing")
    assert (code, err) == (2, f"kcrf-tag: {folder}/missing: No such file or directory\n")


def test_an_output_that_is_an_input_is_refused(program, models, tmp_path):
    shutil.copy(models[1], tmp_path / "model")
    (tmp_path / "in").write_text(COLUMNS)
    for name in ("in", "model"):
        before = (tmp_path / name).read_bytes()
        with open(tmp_path / name, "ab") as stdout:
            command = [program, tmp_path / "model", tmp_path / "in"]
            done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE)
        assert done.returncode == 2 and b"is also an input" in done.stderr
        assert (tmp_path / name).read_bytes() == before


@pytest.mark.parametrize("closed", [0, 1])
def test_closed_streams_are_named(program, models, tmp_path, closed):
    (tmp_path / "in").write_text(COLUMNS)
    inputs = [tmp_path / "in"] if closed else []
    script = f'exec "$@" {closed}>&-'
    done = subprocess.run(["sh", "-c", script, "sh", program, models[1], *inputs], capture_output=True)
    assert (done.returncode, done.stdout) == (1, b"")
    message = "standard output is closed" if closed else "input: Bad file descriptor"
    assert done.stderr.decode() == f"kcrf-tag: {message}\n"


def test_mistakes_of_users(program, tmp_path):
    (tmp_path / "text").write_text("no model\n")
    for arguments, code, message in (
        ([], 2, "the model is missing"),
        (["--colour", "m"], 2, "no such option: --colour"),
        (["--threads", "0", "m"], 2, "a number from 1 to 256"),
        (["--marginals", "some", "m"], 2, "best or all"),
        (["-t"], 2, "a value is missing"),
        (["a", "b", "c"], 2, "one argument too many: c"),
        ([tmp_path / "missing"], 1, "cannot be read"),
        ([tmp_path / "text"], 3, "not a model for kcrf-tag"),
    ):
        found, _, err = run(program, *arguments)
        assert (found, message in err) == (code, True), (arguments, found, err)
    assert run(program, "--help")[1].startswith(b"Usage: kcrf-tag")


def test_export_refuses(kcrf, tmp_path):
    model, _ = model_of(kcrf, tmp_path, COLUMNS)
    done = kcrf("export", model, "-o", tmp_path / "m.crfsuite", "--quantize", "none")
    assert done.code == 2
    assert "--quantize is for --to runtime" in done.err
    done = kcrf("train", tmp_path / "data.conll", "--kernel", "rbf", "--sigma2", "1", "-q", "-o", tmp_path / "p.npz")
    assert done.code == 0, done.err
    done = kcrf("export", tmp_path / "p.npz", "-o", tmp_path / "p.kcrf")
    assert done.code == 2
    assert "has pivots" in done.err


FAR_PARTS = """
features:
  - {column: c0, window: -1..1}
  - {column: c1, window: -1..1}
  - {name: three, conjunction: [c1, "c1[1]", "c1[2]"], window: [-1]}
"""


def test_parts_of_conjunctions_may_be_further_away_than_any_feature(kcrf, program, tmp_path):
    (tmp_path / "far.yaml").write_text(FAR_PARTS)
    model, exported = model_of(kcrf, tmp_path, COLUMNS, "-c", tmp_path / "far.yaml")
    for data in (COLUMNS.encode(), (COLUMNS + "\n").encode() * 700):  # by the model, and by the library
        wanted = kcrf("tag", "-m", model, stdin=data)
        assert (wanted.code, wanted.err) == (0, "")
        assert run(program, exported, data=data) == (0, wanted.out, "")


def test_what_the_library_does_not_open_is_not_written_and_the_model_labels(kcrf, tmp_path, monkeypatch):
    model, _ = model_of(kcrf, tmp_path, COLUMNS)
    data = (COLUMNS + "\n").encode() * 700
    wanted = kcrf("tag", "-m", model, stdin=data)
    (tmp_path / "old.kcrf").write_bytes(b"of before")

    def refuse(_):
        raise ValueError("the model is damaged: a feature")

    monkeypatch.setattr("kcrf_core.model.runtime_files.RuntimeModel", refuse)
    for name in ("new.kcrf", "old.kcrf"):
        done = kcrf("export", model, "-o", tmp_path / name)
        assert done.code == 2
        assert "(the model is damaged: a feature): tag with kcrf itself" in done.err
    assert not (tmp_path / "new.kcrf").exists()
    assert (tmp_path / "old.kcrf").read_bytes() == b"of before"
    done = kcrf("tag", "-m", model, stdin=data)
    assert (done.code, done.out) == (0, wanted.out)
    assert done.err.count("\n") == 1 and "the model itself labels" in done.err
    assert kcrf("tag", "-m", model, "-q", stdin=data).err == ""


@pytest.mark.slow
def test_values_that_are_forgotten_change_no_label(kcrf, tmp_path):
    """A tagger has room for four values, so that most make room for others, or find none while others are in use."""
    small = compiled(tmp_path / "kcrf-tag", "-DMOST_KNOWN=4", "-DREAD_SIZE=512")
    data = (SAMPLES / "addresses.conll").read_text()
    npz, model = model_of(kcrf, tmp_path, data)
    kcrf("tag", "-m", npz, tmp_path / "data.conll", "-q", "-o", tmp_path / "wanted")
    for threads in (1, 4):
        code, found, said = run(small, model, "-t", threads, data=data.encode())
        assert (code, found) == (0, (tmp_path / "wanted").read_bytes()), said
