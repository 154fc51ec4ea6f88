"""Outputs of all commands: names that are none, files that stay private, and disks that are full."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

import pytest

posix = pytest.mark.skipif(os.name == "nt", reason="POSIX")

# Every option that names an output, without the name; DATA and MODEL stand for files, HERE for a folder.
QUICK = ["crossval", "DATA", "--folds", "2", "--sigma2", "1", "-q"]
OUTPUTS = {
    "featurize": ["featurize", "DATA", "-q", "-o"],
    "export": ["featurize", "DATA", "-q", "--export", "crfsuite", "-o"],
    "select-basis": ["select-basis", "DATA", "--kernel", "rbf", "--size", "5", "-q", "-o"],
    "train": ["train", "DATA", "--sigma2", "1", "-q", "-o"],
    "log": ["train", "DATA", "--sigma2", "1", "-q", "-o", "HERE/n.npz", "--log"],
    "tag": ["tag", "-m", "MODEL", "DATA", "-o"],
    "figures": ["evaluate", "-m", "MODEL", "DATA", "--plot-kind", "f1", "--plot"],
    "page": ["evaluate", "-m", "MODEL", "DATA", "--html"],
    "crossval": [*QUICK, "-o"],
    "predictions": [*QUICK, "--predictions"],
    "journal": [*QUICK, "--journal"],
}
PLOTS = ("figures",)


@pytest.fixture
def small(sample_data, tmp_path):
    path = tmp_path / "small.conll"
    path.write_text("\n\n".join((sample_data / "pitch_accent.conll").read_text().split("\n\n")[:20]) + "\n\n")
    return path


@pytest.fixture
def command(small, trained, tmp_path):
    files = {"DATA": str(small), "MODEL": str(trained)}
    return lambda name: [files.get(word, word.replace("HERE", str(tmp_path))) for word in OUTPUTS[name]]


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_empty_name_is_a_usage_error(kcrf, command, name):
    done = kcrf(*command(name), "")
    assert done.code == 2 and "the name is empty" in done.err and ".tmp" not in done.err


def test_the_name_of_a_directory_is_a_usage_error(kcrf, command, tmp_path):
    done = kcrf(*command("tag"), f"{tmp_path}/later/")
    assert done.code == 2 and "is the name of a directory" in done.err and not (tmp_path / "later").exists()


def test_compression_that_is_not_written_is_a_usage_error(kcrf, command, tmp_path):
    done = kcrf(*command("tag"), f"{tmp_path}/tagged.conll.xz")
    assert done.code == 2 and "give a name that ends in .gz" in done.err and not (tmp_path / "tagged.conll.xz").exists()


@posix
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in PLOTS[:-1] else [])
        for name in OUTPUTS
        if name != "journal"
    ],
)
def test_what_was_private_stays_so(kcrf, command, tmp_path, name):
    """Models hold words of their training data."""
    folder = tmp_path / "out"
    folder.mkdir()
    private, link, new = (folder / f"{each}.png" if name in PLOTS else folder / each for each in ("a", "link", "new"))
    private.write_bytes(b"")
    private.chmod(0o600)
    link.symlink_to(private)
    before = os.umask(0o027)
    try:
        for path in (private, link, new):
            done = kcrf(*command(name), path)
            assert done.code == 0, done.err
    finally:
        os.umask(before)
    assert stat.S_IMODE(private.stat().st_mode) == 0o600 and private.stat().st_size
    assert stat.S_IMODE(new.stat().st_mode) == 0o640
    assert link.is_symlink() and sorted(folder.iterdir()) == sorted([private, link, new])


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
@pytest.mark.parametrize("name", ["export", "train", "log", "tag", "page", "crossval", "predictions"])
def test_a_full_disk_is_named(kcrf, command, name):
    done = kcrf(*command(name), "/dev/full")
    assert done.code == 1 and done.err.splitlines()[-1] == "kcrf: /dev/full: No space left on device"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
@pytest.mark.parametrize("arguments", [["tag", "-m", "MODEL", "DATA"], ["evaluate", "-m", "MODEL", "DATA", "--json"],
                                       ["inspect", "MODEL"], ["--help"], ["tag", "--help"], ["--version"]])  # fmt: skip
def test_a_full_disk_behind_standard_output_is_named(small, trained, arguments):
    files = {"DATA": str(small), "MODEL": str(trained)}
    line = [sys.executable, "-m", "kcrf_cli", *(files.get(word, word) for word in arguments)]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and done.stderr.splitlines()[-1] == "kcrf: standard output: No space left on device"


@posix
@pytest.mark.parametrize(
    "name", ["train", "tag", *(pytest.param(name, marks=pytest.mark.slow) for name in ("page", "journal"))]
)
def test_a_file_that_may_not_grow_is_named_and_an_older_one_stays(command, tmp_path, name):
    import resource

    path = tmp_path / "out" / "file"
    path.parent.mkdir()
    if name != "journal":
        path.write_bytes(b"older")
    done = subprocess.run(
        [sys.executable, "-m", "kcrf_cli", *command(name), str(path)], capture_output=True, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512)),
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},  # Python would write cut modules, which all tests then read
    )  # fmt: skip
    assert done.returncode == 1 and done.stderr.splitlines()[-1].startswith("kcrf: ")
    assert f"{path}: File too large" in done.stderr, done.stderr
    if name != "journal":
        assert path.read_bytes() == b"older" and list(path.parent.iterdir()) == [path]
