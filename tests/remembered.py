"""`kcrf` for console sessions of the documentation: a command that was run before is not run again.

README, docs, manual pages and help texts show many of the same commands. This program stands on the path as `kcrf`. It
keeps what a command printed and wrote, under a digest of its arguments, its standard input and the files that it names,
in a folder that all processes of a test session share, and plays it back when the same command comes again. The name of
the output (`-o`) does not matter, only its suffix.

    python remembered.py FOLDER ARGUMENTS...
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

CLOSED_PIPE = 141
OUTPUT = ("-o", "--output")


def snapshot() -> dict[str, tuple[int, int, int]]:
    """The files of the working directory that commands may have written."""
    found = {}
    for path in Path().rglob("*"):
        if path.parts[0] not in ("sample_data", "bin") and path.is_file():
            about = path.stat()
            found[str(path)] = (about.st_ino, about.st_mtime_ns, about.st_size)
    return found


def place_of_output(arguments: list[str]) -> int | None:
    """Where the name of the output stands among the arguments."""
    return next((k for k in range(1, len(arguments)) if arguments[k - 1] in OUTPUT), None)


def digest(arguments: list[str], stdin: bytes, merged: bool) -> str:
    out, found = place_of_output(arguments), hashlib.sha256(repr((stdin, merged)).encode())
    for place, argument in enumerate(arguments):
        path = Path(argument.rpartition("=")[2])
        if place == out:
            found.update(repr(("output", path.suffixes)).encode())
            continue
        found.update(repr(argument).encode())
        if path.is_file():
            found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def reads_stdin(arguments: list[str]) -> bool:
    mode = os.fstat(0).st_mode
    return (stat.S_ISFIFO(mode) or stat.S_ISREG(mode)) and ("-" in arguments or arguments[0] == "tag")


def run(arguments: list[str], stdin: bytes, merged: bool, record: Path) -> None:
    """Run a command and keep what it printed, its exit code and the files that are new or others than before."""
    before = snapshot()
    errors = subprocess.STDOUT if merged else subprocess.PIPE
    done = subprocess.run(
        [sys.executable, "-m", "kcrf_cli", *arguments], input=stdin, stdout=subprocess.PIPE, stderr=errors, check=False
    )
    files = [name for name, about in snapshot().items() if before.get(name) != about]
    record.mkdir()
    (record / "out").write_bytes(done.stdout)
    (record / "err").write_bytes(done.stderr or b"")
    for number, name in enumerate(files):
        shutil.copyfile(name, record / str(number))
    out = place_of_output(arguments)
    about = {"code": done.returncode, "files": files, "output": None if out is None else arguments[out]}
    (record / "about.json").write_text(json.dumps(about), encoding="utf-8")


def play(arguments: list[str], record: Path) -> int:
    """Write and print what was kept; the files under the output's present name."""
    about = json.loads((record / "about.json").read_text(encoding="utf-8"))
    out = place_of_output(arguments)
    for number, name in enumerate(about["files"]):
        target = name
        if out is not None and name.startswith(os.path.normpath(about["output"])):
            target = os.path.normpath(arguments[out]) + name[len(os.path.normpath(about["output"])) :]
        Path(target).unlink(missing_ok=True)
        shutil.copyfile(record / str(number), target)
    try:
        os.write(2, (record / "err").read_bytes())
        sys.stdout.buffer.write((record / "out").read_bytes())
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return CLOSED_PIPE
    return about["code"]


def main(folder: Path, arguments: list[str]) -> int:
    if not arguments or arguments[0].startswith("-") or "_KCRF_COMPLETE" in os.environ:
        return subprocess.call([sys.executable, "-m", "kcrf_cli", *arguments])
    stdin = sys.stdin.buffer.read() if reads_stdin(arguments) else b""
    merged = os.path.sameopenfile(1, 2)
    record = folder / digest(arguments, stdin, merged)
    with open(record.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (record / "about.json").exists():
            shutil.rmtree(record, ignore_errors=True)  # of a run that was stopped
            run(arguments, stdin, merged, record)
    return play(arguments, record)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
