"""`kcrf` for console sessions of the documentation: it starts at once, and runs no command that was run before.

README, docs, manual pages and help texts show many of the same commands, and much of the time of a short one is that of
importing NumPy and SciPy. A server that has imported everything forks a process for each command. It keeps what a
command printed and wrote, under a digest of its arguments, its standard input and the files that it names, in a folder
that all processes of a test session share, and plays it back when the same command comes again. The contents of
the output (`-o`) do not matter.

    python remembered.py FOLDER SOCKET               the server
    python remembered.py SOCKET -- ARGUMENTS...      what stands on the path as `kcrf`
"""

import json
import os
import socket
import sys

CLOSED_PIPE = 141
OUTPUT = ("-o", "--output")
LONGEST = 1 << 20  # of a request


def ask(address, arguments):
    """Hand a command and this process's streams to the server; the exit code."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        request = json.dumps({"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}).encode()
        socket.send_fds(connection, [len(request).to_bytes(8, "big")], [0, 1, 2])
        connection.sendall(request)
        answer = connection.recv(8)
    return int.from_bytes(answer, "big") if answer else 1


def serve(folder, address):
    """Answer commands, each in a process of its own, until standard input is closed."""
    import select

    import kcrf_cli.main  # noqa: F401, so that every command finds it there
    import kcrf_core

    for name in kcrf_core.__all__:
        getattr(kcrf_core, name)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        print("ready", flush=True)
        children = 0
        while True:
            ready, _, _ = select.select([listener, 0], [], [])
            if 0 in ready:
                return
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _answer(connection, folder)
            connection.close()
            children += 1
            while children and os.waitpid(-1, os.WNOHANG)[0]:
                children -= 1


def _answer(connection, folder):
    """One command, in a process that has the asker's streams, directory and environment."""
    code = 1
    try:
        size, streams, _, _ = socket.recv_fds(connection, 8, 3)
        request = b""
        while len(request) < int.from_bytes(size, "big"):
            request += connection.recv(LONGEST)
        request = json.loads(request)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        code = _remembered(folder, request["arguments"])
        connection.sendall((code % 256).to_bytes(8, "big"))
    finally:
        os._exit(code)


def _remembered(folder, arguments):
    import fcntl
    import shutil

    if not arguments or arguments[0].startswith("-") or "_KCRF_COMPLETE" in os.environ:
        return _run(arguments, 0, 1, 2)
    stdin = _read_all(0) if _reads_stdin(arguments) else b""
    merged = os.path.sameopenfile(1, 2)
    record = os.path.join(folder, _digest(arguments, stdin, merged))
    with open(f"{record}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(f"{record}/about.json"):
            shutil.rmtree(record, ignore_errors=True)  # of a run that was stopped
            _run_and_keep(arguments, stdin, merged, record)
    return _play(arguments, record)


def _read_all(stream):
    with open(stream, "rb", closefd=False) as file:
        return file.read()


def _reads_stdin(arguments):
    import stat

    mode = os.fstat(0).st_mode
    return (stat.S_ISFIFO(mode) or stat.S_ISREG(mode)) and ("-" in arguments or arguments[0] == "tag")


def _place_of_output(arguments):
    """Where the name of the output stands among the arguments."""
    return next((place for place in range(1, len(arguments)) if arguments[place - 1] in OUTPUT), None)


def _digest(arguments, stdin, merged):
    import hashlib
    from pathlib import Path

    out, found = _place_of_output(arguments), hashlib.sha256(repr((stdin, merged)).encode())
    for place, argument in enumerate(arguments):
        path = Path(argument.rpartition("=")[2])
        found.update(repr(argument).encode())
        if place != out and path.is_file():
            found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def _snapshot():
    """The files of the working directory that commands may have written."""
    from pathlib import Path

    found = {}
    for path in Path().rglob("*"):
        if path.parts[0] not in ("sample_data", "bin") and path.is_file():
            about = path.stat()
            found[str(path)] = (about.st_ino, about.st_mtime_ns, about.st_size)
    return found


def _run(arguments, *streams):
    """Run a command in a process of its own, with these streams; its exit code."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
            sys.stdin, sys.stdout, sys.stderr = (os.fdopen(k, "r" if k == 0 else "w", closefd=False) for k in range(3))
            sys.argv = ["kcrf", *arguments]
            code = _main(arguments)
            sys.stdout.flush()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _main(arguments):
    import traceback

    from kcrf_cli.main import main

    try:
        main(arguments, prog_name="kcrf")
    except SystemExit as error:
        return error.code or 0
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _run_and_keep(arguments, stdin, merged, record):
    """Run a command; keep what it printed, its exit code, and the files that are new or others than before."""
    import shutil

    os.mkdir(record)
    with open(f"{record}/in", "wb") as file:
        file.write(stdin)
    before = _snapshot()
    with open(f"{record}/in", "rb") as given, open(f"{record}/out", "wb") as out, open(f"{record}/err", "wb") as err:
        code = _run(arguments, given.fileno(), out.fileno(), (out if merged else err).fileno())
    files = [name for name, about in _snapshot().items() if before.get(name) != about]
    for number, name in enumerate(files):
        shutil.copyfile(name, f"{record}/{number}")
    place = _place_of_output(arguments)
    about = {"code": code, "files": files, "output": None if place is None else arguments[place]}
    with open(f"{record}/about", "w") as file:
        json.dump(about, file)
    os.replace(f"{record}/about", f"{record}/about.json")


def _play(arguments, record):
    """Write and print what was kept; files that were named after the output are named after the present one."""
    import shutil

    with open(f"{record}/about.json") as file:
        about = json.load(file)
    place = _place_of_output(arguments)
    for number, name in enumerate(about["files"]):
        if place is not None and name.startswith(os.path.normpath(about["output"])):
            name = os.path.normpath(arguments[place]) + name[len(os.path.normpath(about["output"])) :]
        if os.path.exists(name):
            os.unlink(name)
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        shutil.copyfile(f"{record}/{number}", name)
    try:
        for stream, kept in ((2, "err"), (1, "out")):
            with open(f"{record}/{kept}", "rb") as file, open(stream, "wb", closefd=False) as to:
                to.write(file.read())
    except BrokenPipeError:
        return CLOSED_PIPE
    return about["code"]


if __name__ == "__main__":
    if sys.argv[2:3] == ["--"]:
        sys.exit(ask(sys.argv[1], sys.argv[3:]))
    serve(sys.argv[1], sys.argv[2])
