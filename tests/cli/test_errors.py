"""Mistakes people make: one clear line, the right exit code, nothing on stdout, nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

GOOD = "the D 1.5 X\ncat N 2.5 Y\n\na D 0.5 X\n"


def one_line(done, code, *words):
    assert done.code == code, done.err
    assert done.out == b""
    assert done.err.startswith("kcrf: ") and done.err.count("\n") == 1, done.err
    for word in words:
        assert word in done.err


@pytest.fixture
def write(tmp_path):
    def make(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return make


def train(kcrf, tmp_path, data, *options):
    return kcrf("train", data, "-o", tmp_path / "model.npz", "--sigma2", "1", *options)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("the D X\ncat N\n", ["data.conll:2:", "2 columns, expected 3"]),
        ("the\tD\tX\ncat\tN\n", ["data.conll:2:", "tab-separated"]),
        ("", ["data.conll:", "empty"]),
        ("\n\n  \n", ["data.conll:", "blank lines"]),
        ("the D X\n\ncat \xff X\n".encode("latin-1"), ["data.conll:3:", "UTF-8"]),
        ("only\none\n", ["data.conll:1:", "one column"]),
        ("w\tX\nv\t\n", ["data.conll:2:", "empty label"]),
    ],
)
def test_bad_data(kcrf, tmp_path, write, content, words):
    one_line(train(kcrf, tmp_path, write("data.conll", content)), 3, *words)
    assert not (tmp_path / "model.npz").exists()


def test_word_in_a_column_declared_real(kcrf, tmp_path, write):
    data = write("data.conll", "the 1.5 X\ncat n/a Y\n")
    config = write("config.yaml", "features:\n  - {column: c1, type: real}\n")
    one_line(train(kcrf, tmp_path, data, "-c", config), 3, "data.conll:2:", "n/a", "column 2", "categorical")


def test_one_word_in_a_column_of_numbers(kcrf, tmp_path, write):
    rows = [f"w {number} X" for number in range(60)]
    rows[41] = "w missing X"
    one_line(train(kcrf, tmp_path, write("data.conll", "\n".join(rows))), 3, "data.conll:42:", "missing")


def test_word_in_a_real_column_when_tagging(kcrf, tmp_path, write):
    assert train(kcrf, tmp_path, write("data.conll", GOOD)).code == 0
    one_line(kcrf("tag", "-m", tmp_path / "model.npz", stdin=b"the D 1.5\nthe D x\n"), 3, "<stdin>:2:", "'x'")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("featurs: []\n", ["config.yaml:1:", "unknown key 'featurs'", "did you mean 'features'"]),
        ("features:\n  - {column: c0}\n  - {column: c1, widow: [0]}\n", ["config.yaml:3:", "'widow'", "'window'"]),
        ("terms:\n  - {kernel: {type: ploy}}\n", ["config.yaml:2:", "'ploy'", "did you mean 'poly'"]),
        ("features:\n  - {column: nose}\n", ["no column 'nose'", "c0"]),
        ("columns: [a, b]\n", ["2 columns", "has 4"]),
        ("training: {tolerance: -1}\n", ["config.yaml:1:", "at least 1e-12"]),
        ("features: [unclosed\n", ["config.yaml:", "not valid YAML"]),
        ("terms:\n  - {features: [nose]}\n", ["no feature is called 'nose'"]),
    ],
)
def test_bad_configuration(kcrf, tmp_path, write, config, words):
    done = train(kcrf, tmp_path, write("data.conll", GOOD), "-c", write("config.yaml", config))
    one_line(done, 2, *words)


def test_bad_template(kcrf, tmp_path, write):
    template = write("template", "U00:%x[0,0]\nU01:%y[0,1]\n")
    one_line(train(kcrf, tmp_path, write("data.conll", GOOD), "-c", template), 2, "template:2:", "%x[-1,0]")


def test_missing_files(kcrf, tmp_path, write):
    one_line(train(kcrf, tmp_path, tmp_path / "nosuch.conll"), 1, "nosuch.conll", "No such file")
    one_line(kcrf("tag", "-m", tmp_path / "nosuch.npz"), 1, "nosuch.npz")
    data = write("data.conll", GOOD)
    one_line(train(kcrf, tmp_path, data, "-c", tmp_path / "nosuch.yaml"), 1, "nosuch.yaml")
    one_line(train(kcrf, tmp_path, data, "--basis", tmp_path / "nosuch.npz"), 1, "nosuch.npz")


def test_models_that_are_none(kcrf, tmp_path, write):
    junk = write("junk.npz", b"this is not a model")
    one_line(kcrf("tag", "-m", junk), 4, "junk.npz", "not a kcrf file")
    one_line(kcrf("tag", "-m", write("empty.npz", b"")), 4, "empty.npz")
    np.savez(tmp_path / "foreign.npz", weights=np.zeros(3))
    one_line(kcrf("tag", "-m", tmp_path / "foreign.npz"), 4, "foreign.npz", "not one of kcrf")
    data = write("data.conll", GOOD)
    assert train(kcrf, tmp_path, data).code == 0
    whole = (tmp_path / "model.npz").read_bytes()
    one_line(kcrf("tag", "-m", write("cut.npz", whole[: len(whole) // 2])), 4, "cut.npz")
    assert kcrf("featurize", data, "-o", tmp_path / "data.npz", "-q").code == 0
    one_line(kcrf("tag", "-m", tmp_path / "data.npz"), 4, "a kcrf dataset file, expected a model")
    one_line(kcrf("train", tmp_path / "model.npz", "-o", tmp_path / "x.npz"), 4, "expected a dataset")


def test_wrong_number_of_columns_when_tagging(kcrf, tmp_path, write):
    assert train(kcrf, tmp_path, write("data.conll", GOOD)).code == 0
    one_line(kcrf("tag", "-m", tmp_path / "model.npz", stdin=b"the D\n"), 3, "<stdin>:1:", "2 columns, expected 4")
    mixed = b"the D 1 X\ncat N 2\n"
    one_line(kcrf("tag", "-m", tmp_path / "model.npz", stdin=mixed), 3, "<stdin>:2:")


def test_evaluating_without_gold(kcrf, tmp_path, write):
    assert train(kcrf, tmp_path, write("data.conll", GOOD)).code == 0
    one_line(kcrf("evaluate", "-m", tmp_path / "model.npz", "-", stdin=b"the D 1\n"), 3, "gold")
    one_line(kcrf("evaluate", "-", stdin=b"X\n"), 3, "<stdin>:1:", "-m")


@pytest.mark.parametrize(
    "options",
    [("--degree", "2"), ("--size", "5"), ("--kernel", "poly"), ("--window", "-1..1"), ("--min-count", "2")],
)
def test_options_that_contradict_a_basis(kcrf, tmp_path, write, options):
    data = write("data.conll", GOOD)
    basis = tmp_path / "basis.npz"
    selected = kcrf("select-basis", data, "--kernel", "rbf", "--size", "2", "-o", basis, "-q")
    assert selected.code == 0, selected.err
    done = train(kcrf, tmp_path, data, "--basis", basis, *options)
    assert done.code == 2 and done.err.count("\n") == 1
    agreeing = train(kcrf, tmp_path, data, "--basis", basis, "--kernel", "rbf", "--size", "2", "-q")
    assert agreeing.code == 0, agreeing.err


def test_configuration_that_contradicts_a_dataset(kcrf, tmp_path, write):
    data = write("data.conll", GOOD)
    assert kcrf("featurize", data, "-o", tmp_path / "data.npz", "-q").code == 0
    config = write("config.yaml", "features: [{column: c0}]\n")
    one_line(train(kcrf, tmp_path, tmp_path / "data.npz", "-c", config), 2, "contradicts", "features")
    terms = write("terms.yaml", "terms: [{kernel: rbf, map: {size: 2}}, {type: edge}]\n")
    assert train(kcrf, tmp_path, tmp_path / "data.npz", "-c", terms, "-q").code == 0


def test_label_that_a_basis_does_not_know(kcrf, tmp_path, write):
    data = write("data.conll", GOOD)
    assert kcrf("select-basis", data, "--kernel", "rbf", "-o", tmp_path / "basis.npz", "-q").code == 0
    other = write("other.conll", "the D 1.5 X\ncat N 2.5 NEW\n")
    one_line(train(kcrf, tmp_path, other, "--basis", tmp_path / "basis.npz"), 3, "other.conll:2:", "basis.npz")


def test_crossval_refuses_encoded_data_and_too_few_sequences(kcrf, tmp_path, write):
    data = write("data.conll", GOOD)
    assert kcrf("featurize", data, "-o", tmp_path / "data.npz", "-q").code == 0
    done = kcrf("crossval", tmp_path / "data.npz")
    assert done.code == 2 and "give text" in done.err
    one_line(kcrf("crossval", data, "--folds", "5"), 3, "2 sequences cannot make 5 folds")


@pytest.mark.parametrize(
    "grid", ["degree", "degree=", "=1", "degre=1", "degree=1.5", "kernel=ploy", "terms.x.map=full"]
)
def test_bad_grids(kcrf, write, grid):
    done = kcrf("crossval", write("data.conll", GOOD), "--folds", "2", "--kernel", "poly", "--grid", grid)
    one_line(done, 2)


def test_outputs_that_cannot_be_written_are_refused_first(kcrf, tmp_path, write):
    data = write("data.conll", GOOD)
    one_line(kcrf("train", data, "-o", tmp_path / "no" / "such" / "m.npz"), 1, "no such directory")
    assert kcrf("train", data, "-o", tmp_path).code == 2
    assert kcrf("train", data, "-o", "-").code == 2


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_read_only_directory(kcrf, tmp_path, write):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    one_line(kcrf("train", write("data.conll", GOOD), "-o", folder / "m.npz"), 1, "permission")


def test_write_protected_files_are_kept(kcrf, tmp_path, write, monkeypatch):
    protected = write("model.npz", "precious\n")
    protected.chmod(0o444)
    # Root may write anywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK or os.stat(path).st_mode & 0o200 != 0)
    done = kcrf("train", write("data.conll", GOOD), "-o", protected)
    assert done.code == 2 and "model.npz' is not writable" in done.err
    assert protected.read_text() == "precious\n"


@pytest.fixture
def not_root(monkeypatch):
    """Let write protection count, which root does not obey."""
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK or os.stat(path).st_mode & 0o200 != 0)


@pytest.mark.parametrize("name", ["out.ann", "out.txt", "out.npz", "shards/shard-0001.npz", "shards"])
def test_write_protected_files_are_kept_where_a_command_chooses_the_name(kcrf, tmp_path, write, not_root, name):
    data, out = write("data.conll", GOOD * 20), tmp_path / "out.npz"
    assert kcrf("train", data, "--sigma2", "1", "-q", "-o", out).code == 0
    assert kcrf("featurize", data, "--shards", 2, "-q", "-o", tmp_path / "shards").code == 0
    protected = tmp_path / name
    if not protected.exists():
        protected.write_text("precious\n")
    before = None if protected.is_dir() else protected.read_bytes()
    protected.chmod(protected.stat().st_mode & 0o555)
    if name == "out.npz":
        done = kcrf("guarantee", out, data, "--sets", "0.5")
    elif name.startswith("out."):
        done = kcrf("next", data, "--to", "brat", "-o", tmp_path / "out.ann")
    else:
        done = kcrf("featurize", data, "--shards", 3, "-o", tmp_path / "shards")
    protected.chmod(0o755)
    assert done.code in (1, 2), done.err
    assert f"{protected}" in done.err and ("is write-protected" in done.err or "is not writable" in done.err)
    assert len(list((tmp_path / "shards").iterdir())) == 3
    assert before is None or protected.read_bytes() == before


def test_failure_keeps_the_old_output(kcrf, tmp_path, write):
    data = write("data.conll", GOOD)
    assert train(kcrf, tmp_path, data, "-q").code == 0
    out = write("tagged", "precious\n")
    done = kcrf("tag", "-m", tmp_path / "model.npz", "-o", out, stdin=b"the D 1\n\nragged\n")
    assert done.code == 3
    assert out.read_text() == "precious\n"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".kcrf")]


@pytest.mark.parametrize(
    "arguments", [("--kernel", "sigmoid"), ("--degree", "0"), ("--sigma2", "x"), ("--window", "a")]
)
def test_bad_options(kcrf, tmp_path, write, arguments):
    done = kcrf("train", write("data.conll", GOOD), "-o", tmp_path / "m.npz", *arguments)
    assert done.code == 2 and done.out == b"" and arguments[0] in done.err


def test_inputs_are_never_overwritten(kcrf, tmp_path, write):
    data, config = write("data.conll", GOOD), write("config.yaml", "min_count: 1\n")
    assert train(kcrf, tmp_path, data, "-q").code == 0
    model = tmp_path / "model.npz"
    before = {path: path.read_bytes() for path in (data, config, model)}
    for arguments in (
        ("train", data, "-o", data),
        ("train", data, "-o", f"{tmp_path}/./{data.name}"),  # the same file by another name
        ("train", data, "-c", config, "-o", config),
        ("featurize", data, "-o", data),
        ("featurize", data, "--like", model, "-o", model),
        ("select-basis", data, "--kernel", "poly", "-o", data),
        ("tag", "-m", model, data, "-o", model),
        ("tag", "-m", model, data, "-o", data),
        ("crossval", data, "-o", data),
    ):
        done = kcrf(*arguments)
        assert done.code == 2 and "also an input" in done.err
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("arguments", [("evaluate", "-"), ("tag", "-m", "none.npz")])
def test_a_terminal_is_told_that_it_is_read(kcrf, arguments, monkeypatch):
    said = "reading data from the terminal; Ctrl-D ends it"
    monkeypatch.setattr("kcrf_cli.options.sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    assert said in kcrf(*arguments).err
    assert said not in kcrf(arguments[0], "--help").err


def test_directories_are_no_data(kcrf, tmp_path, write):
    """Nobody who gives a directory of texts has encoded them."""
    assert train(kcrf, tmp_path, write("data.conll", GOOD), "-q").code == 0
    folder, model = tmp_path / "texts", tmp_path / "model.npz"
    folder.mkdir()
    (folder / "data.conll").write_text(GOOD)
    for command in ("evaluate", "crossval", "audit", "inspect", "tag -m", "evaluate -m", "train -o", "tune -o"):
        name, *option = command.split()
        done = kcrf(name, folder, *(option and [option[0], model if option == ["-m"] else tmp_path / "new"]))
        one_line(done, 4, "texts: a directory without index.npz", "give a file")


def test_devices_can_be_written_to(kcrf, tmp_path, write):
    assert train(kcrf, tmp_path, write("data.conll", GOOD), "-q").code == 0
    assert kcrf("tag", "-m", tmp_path / "model.npz", "-o", os.devnull, stdin=b"the D 1\n").code == 0


def test_evaluating_a_file_that_is_not_tagged(kcrf, sample_data):
    one_line(kcrf("evaluate", sample_data / "pitch_accent.conll"), 3, "no value in common", "-m")


def test_a_label_column_that_is_not_the_last(kcrf, tmp_path, write):
    config = write("config.yaml", "columns: [label, pos, number, word]\n")
    one_line(train(kcrf, tmp_path, write("data.conll", GOOD), "-c", config), 2, "label", "before the last column")


def test_training_tells_what_it_read_and_what_looks_like_a_slip(kcrf, tmp_path, write):
    rows = "\n".join(f"X\tword{number} here" for number in range(300))
    done = train(kcrf, tmp_path, write("data.conll", rows), "--max-passes", "2")
    assert done.code == 0
    assert "1 sequence, 300 positions, 300 labels" in done.err
    assert done.err.count("warning:") == 3


def in_a_shell(line, **more):
    command = line.replace("kcrf ", f"{sys.executable} -m kcrf_cli ")
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, **more)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
@pytest.mark.parametrize(
    ("unbuffered", "every"), [("", False), *(pytest.param(each, True, marks=pytest.mark.slow) for each in ("", "1"))]
)
def test_a_full_disk_is_never_success(kcrf, tmp_path, write, unbuffered, every):
    data = write("data.conll", GOOD)
    assert train(kcrf, tmp_path, data, "-q").code == 0
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    lines = [f"kcrf tag -m {tmp_path}/model.npz {data} > /dev/full", "kcrf --version > /dev/full",
             f"kcrf evaluate -m {tmp_path}/model.npz {data} --json > /dev/full", "kcrf --help > /dev/full",
             f"kcrf featurize {data} --show 2 > /dev/full", "kcrf train --help > /dev/full"]  # fmt: skip
    for line in lines if every else lines[:2]:
        done = in_a_shell(line, env=environment)
        assert done.returncode == 1 and "No space left" in done.stderr, (line, done)
        assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
    # A log that cannot be written must not cost the model.
    done = in_a_shell(f"kcrf train {data} --sigma2 1 -o {tmp_path}/again.npz 2> /dev/full", env=environment)
    assert done.returncode == 0 and (tmp_path / "again.npz").read_bytes() == (tmp_path / "model.npz").read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="POSIX shell")
def test_closed_streams(kcrf, tmp_path, write):
    data = write("data.conll", GOOD)
    assert train(kcrf, tmp_path, data, "-q").code == 0
    lines = [f"kcrf tag -m {tmp_path}/model.npz <&-", f"kcrf tag -m {tmp_path}/model.npz {data} >&-",
             f"kcrf evaluate -m {tmp_path}/model.npz {data} >&-"]  # fmt: skip
    for line in lines:
        done = in_a_shell(line)
        assert done.returncode == 1 and "closed" in done.stderr and "Traceback" not in done.stderr, (line, done)
    done = in_a_shell(f"kcrf train {data} --sigma2 1 -o {tmp_path}/again.npz 2>&-")
    assert done.returncode == 0 and (tmp_path / "again.npz").exists()


def test_terms_to_choose_from(kcrf, tmp_path, write):
    data = write("data.conll", GOOD)
    done = train(kcrf, tmp_path, data, "--plain", "--select-terms", "-q")
    one_line(done, 2, "no terms to select from", "'node'")
    terms = "terms:\n  - {name: a, features: [c0]}\n  - {name: b, features: [c1]}\n  - {type: edge}\n"
    done = train(kcrf, tmp_path, data, "-c", write("config.yaml", terms), "--select-terms", "-q")
    one_line(done, 3, "no term", "better than chance")
    assert not (tmp_path / "model.npz").exists()


def test_pictures_that_cannot_be_drawn(kcrf, write, tmp_path, monkeypatch):
    data = write("d.conll", GOOD)
    call = ("evaluate", data, "--html", tmp_path / "page.html", "--plot")
    done = kcrf(*call, tmp_path / "figure.gif")
    assert done.code == 2 and "must end in one of .png, .svg, .pdf" in done.err
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = kcrf(*call, tmp_path / "figure.png")
    assert done.code == 2 and "--plot needs matplotlib: pip install matplotlib\n" in done.err
    assert not (tmp_path / "page.html").exists()


def test_a_tolerance_that_nothing_can_prove(kcrf, first_accents, tmp_path):
    accent = first_accents(30)
    config, model = tmp_path / "config.yaml", tmp_path / "m.npz"
    config.write_text("training: {tolerance: 1e-320}\n")
    for options in (["--tolerance", "1e-320"], ["-c", config]):
        done = kcrf("train", accent, *options, "-o", model)
        assert done.code == 2 and "1e-12" in done.err and not model.exists()
    done = kcrf("train", accent, "--sigma2", "1", "--tolerance", "1e-12", "-o", model)
    assert done.code == 0 and "within 0 of" not in done.err and "gap 0" not in done.err


def test_an_option_of_another_command_is_named_with_it(kcrf, tmp_path, write):
    """What helps is typed somewhere else: a model that cannot be exported is trained in another way."""
    data = write("d.csv", "day,x,y,label\n" + "".join(f"{t},{t % 7}.5,{t % 5}.2,{'ab'[t % 2]}\n" for t in range(40)))
    model = tmp_path / "m.npz"
    rbf = "--kernel", "rbf", "--size", 9, "--sigma2", 1, "-q", "-o", model
    assert kcrf("train", data, *rbf, "--order", 2).code == 0
    one_line(kcrf("export", model, "-o", tmp_path / "m.crfsuite"), 2, "(kcrf train --order)")
    assert kcrf("train", data, *rbf).code == 0
    one_line(kcrf("export", model, "-o", tmp_path / "m.kcrf"), 2, "train with a linear kernel (kcrf train --kernel)")
    one_line(kcrf("tag", "-m", model, data, "--allowed", "z"), 2, "(--allowed)")
    done = kcrf("featurize", data, "-o", tmp_path / "d.npz")
    assert "column day only ever grows" in done.err and "(--ignore, --sequence, kcrf train --group)\n" in done.err


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (["--scheme", "iob2"], "(--scheme)"),
        (["--forbid", "X>Y"], "(--forbid)"),
        (["--map", "full", "--kernel", "rbf", "--memory", "1"], "(--memory, --map)"),
    ],
)
def test_brackets_have_the_option_that_matters(kcrf, tmp_path, write, options, remedy):
    done = train(kcrf, tmp_path, write("data.conll", GOOD), "-q", *options)
    assert done.code in (2, 3) and done.err.endswith(f"{remedy}\n"), done.err
