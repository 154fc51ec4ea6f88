"""The example of a web service: answers of `kcrf tag` under load, counts that add up, bad requests, a graceful end."""

from __future__ import annotations

import http.client
import io
import json
import re
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from kcrf_core.runtime import RuntimeTagger

SERVER = Path(__file__).resolve().parents[2] / "examples" / "server.py"
COLUMNS = 5
PATIENCE = 600  # seconds that a client waits for an answer
BAD = [
    {},
    [1],
    3,
    {"rows": 3},
    {"rows": [["but"]]},
    {"rows": [["but", "C", "high", "1", "1"]]},
    {"rows": [[1] * COLUMNS]},
    {"rows": [], "items": []},
    {"items": [{"w": 1.0}]},
    {"rows": [], "probabilities": 1},
    {"rows": [["half \ud800", "C", "1", "1", "1"]]},
]


class Client:
    """Requests to a service at a port of this machine, a connection for each."""

    def __init__(self, port: int):
        self.port = port

    def request(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def post(self, body: object) -> tuple[int, dict]:
        status, found = self.request("POST", "/", json.dumps(body).encode())
        return status, json.loads(found)

    def text(self, body: str, path: str = "/text") -> tuple[int, str]:
        status, found = self.request("POST", path, body.encode())
        return status, found.decode()

    def metrics(self) -> dict[str, float]:
        """Return values by name and labels; each line is of Prometheus's format."""
        lines = self.request("GET", "/metrics")[1].decode().splitlines()
        types = {line.split()[2]: line.split()[3] for line in lines if line.startswith("# TYPE ")}
        found = {}
        for line in lines:
            if not line.startswith("#"):
                name, labels, value = re.fullmatch(r'(\w+)(\{(?:\w+="[^"]*",?)+\})? (\S+)', line).groups()
                assert name in types or types[name.rsplit("_", 1)[0]] == "histogram"
                found[name + (labels or "")] = float(value)
        return found


@contextmanager
def serving(model: Path, *options: object):
    command = [sys.executable, SERVER, model, 0, *options]
    process = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert line.startswith("http://127.0.0.1:"), process.communicate()
        yield process, Client(int(line.rstrip("/\n").rpartition(":")[2]))
    finally:
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen) -> tuple[int, str]:
    _, err = process.communicate()
    return process.returncode, err


@pytest.fixture
def exported(kcrf, trained, tmp_path):
    assert kcrf("export", trained, "-o", tmp_path / "model.kcrf", "--quantize", "none").code == 0
    return tmp_path / "model.kcrf"


@pytest.fixture
def sequences(kcrf, trained, first_accents, tmp_path):
    """Rows of columns, the lines of them, and the same with labels by `kcrf tag`, without and with probabilities."""
    given = [block.splitlines() for block in first_accents(40).read_text("utf-8").strip().split("\n\n")]
    given[3][0] = "neverseen\t" + given[3][0].split("\t", 1)[1]
    plain = ["".join("\t".join(line.split("\t")[:COLUMNS]) + "\n" for line in block) for block in given]
    (tmp_path / "plain.conll").write_text("\n".join(plain), "utf-8")
    tagged = [
        [
            block + "\n"
            for block in kcrf("tag", "-m", trained, tmp_path / "plain.conll", *options).text[:-1].split("\n\n")
        ]
        for options in ((), ("--marginals", "best"))
    ]
    rows = [[line.split("\t") for line in block.splitlines()] for block in plain]
    return list(zip(rows, plain, *tagged, strict=True))


@pytest.mark.parametrize("requests", [400, pytest.param(4000, marks=pytest.mark.slow)])
def test_answers_under_load_are_those_of_kcrf_tag_and_counts_add_up(exported, sequences, requests):
    """Eight clients at a time; each tenth request is a bad one."""
    lock, expected, values = threading.Lock(), Counter(), Counter()

    with serving(exported) as (process, client):

        def one(number: int) -> None:
            rows, plain, tagged, with_marginals = sequences[number % len(sequences)]
            labels = [line.split("\t")[-1] for line in tagged.splitlines()]
            probabilities = [float(line.split("\t")[-2].rpartition(":")[2]) for line in with_marginals.splitlines()]
            kind = number % 10
            if kind == 9:
                status, found = client.post(BAD[number // 10 % len(BAD)])
                assert status == 400 and found["error"], found
            elif kind == 8:
                assert client.text(plain, "/text?marginals=best") == (200, with_marginals)
            elif kind == 7:
                assert client.text(plain) == (200, tagged)
            elif kind == 6:
                assert client.post({"rows": rows, "probabilities": False}) == (200, {"labels": labels})
            else:
                status, found = client.post({"rows": rows})
                assert status == 200 and found["labels"] == labels, found
                assert found["probabilities"] == pytest.approx(probabilities, abs=6e-7)
            with lock:
                expected["/text" if kind in (7, 8) else "/", "400" if kind == 9 else "200"] += 1
                if kind != 9:
                    values.update(labels)
                    values["confidence"] += sum(probabilities)
                    values["unseen"] += number % len(sequences) == 3

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(one, range(requests)))
        found = client.metrics()
        tenth = requests // 10
        assert expected == {("/", "200"): 7 * tenth, ("/text", "200"): 2 * tenth, ("/", "400"): tenth}
        for (path, status), count in expected.items():
            assert found[f'kcrf_requests_total{{path="{path}",status="{status}"}}'] == count
        assert sum(count for name, count in found.items() if name.startswith("kcrf_requests_total")) == requests
        assert found["kcrf_request_seconds_count"] == found["kcrf_sequences_total"] == 9 * tenth
        buckets = [count for name, count in found.items() if name.startswith("kcrf_request_seconds_bucket")]
        assert buckets == sorted(buckets) and buckets[-1] == 9 * tenth
        positions = {name: n for name, n in found.items() if name.startswith("kcrf_positions_total")}
        assert positions == {f'kcrf_positions_total{{label="{label}"}}': values[label] for label in ("0", "1")}
        total = values["0"] + values["1"]
        assert found["kcrf_unseen_values_total"] == values["unseen"] > 0
        assert found["kcrf_unseen_share"] == pytest.approx(values["unseen"] / found["kcrf_values_total"], rel=1e-9)
        assert found["kcrf_values_total"] == 2 * total  # words and classes; the other columns are numbers
        assert found["kcrf_mean_confidence"] == pytest.approx(values["confidence"] / total, rel=1e-6)
        assert found["kcrf_requests_running"] == 1
        process.send_signal(signal.SIGTERM)
        assert ended(process) == (0, "")


def test_bad_requests_are_refused_and_end_nothing(exported, sequences):
    rows, plain, tagged, _ = sequences[0]
    with serving(exported, "--max-bytes", 10_000) as (process, client):
        nothing = client.metrics()
        assert nothing["kcrf_sequences_total"] == 0 and nothing["kcrf_unseen_share"] != nothing["kcrf_unseen_share"]
        assert client.post({"rows": []}) == (200, {"labels": [], "probabilities": []})
        assert client.text("") == (200, "")
        assert client.text(f"\n{plain}\n\n{plain}")[1] == f"\n{tagged}\n\n{tagged}"
        for wrong in BAD:
            status, found = client.post(wrong)
            assert status == 400 and found["error"], wrong
        assert client.post({"rows": [["but"]]})[1]["error"] == "ValueError: 1 columns, expected 5"
        for body in (b"", b"{", b"\xff", b"[" * 9_000, b'{"rows": NaN}', b"9" * 9_000):
            assert client.request("POST", "/", body)[0] == 400, body[:9]
        status, found = client.text(f"{plain}\nbut\tC\n")
        line = len(plain.splitlines()) + 2
        assert status == 400 and f"lines {line} to {line}: 2 columns, expected 5" in found
        status, found = client.request("POST", "/", b" " * 10_001)
        assert status == 413 and b"at most 10000" in found
        assert client.request("POST", "/", b" " * 5_000_000)[0] == 413
        for method, path, status in (
            ("GET", "/", 405),
            ("POST", "/health", 405),
            ("PUT", "/", 405),
            ("GET", "/other", 404),
            ("POST", "/../../etc/passwd", 404),
        ):
            assert client.request(method, path)[0] == status, (method, path)
        for head, status in (
            ("Content-Length: -1\r\n", b"400"),
            ("Content-Length: 1e3\r\n", b"400"),
            ("Content-Length: " + "9" * 30 + "\r\n", b"400"),
            ("", b"411"),
            ("Content-Length: 50\r\n", b"400"),  # and then no more
        ):
            with socket.create_connection(("127.0.0.1", client.port), timeout=PATIENCE) as raw:
                raw.sendall(f"POST / HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode())
                raw.shutdown(socket.SHUT_WR)
                assert raw.makefile("rb").readline().split()[1] == status, head
        for rubbish in (b"\x00\xff\r\n\r\n", b"", b"GET " + b"/" * 70_000 + b" HTTP/1.1\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", client.port), timeout=PATIENCE) as raw:
                raw.sendall(rubbish)
        status, found = client.request("GET", "/health")
        assert status == 200 and json.loads(found)["file"] == "model.kcrf"
        assert client.post({"rows": rows})[0] == 200
        process.send_signal(signal.SIGTERM)
        assert ended(process) == (0, "")


def test_sigterm_answers_what_has_come(exported, sequences):
    # A second is enough for two requests, unless the machine is busy with other things.
    assert any(answered_after_sigterm(exported, sequences[0][0], seconds) for seconds in (1, 10, 100))


def answered_after_sigterm(exported, rows, drain: int) -> bool:
    """Return False if the service ended before it was asked."""
    body = json.dumps({"rows": rows}).encode()
    with serving(exported, "--drain", drain) as (process, client):
        with socket.create_connection(("127.0.0.1", client.port), timeout=PATIENCE) as slow:
            slow.sendall(f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body[:20])
            while client.metrics()["kcrf_requests_running"] < 2:
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            try:
                while client.request("GET", "/health")[0] == 200:
                    time.sleep(0.01)
                answers = client.request("GET", "/health")[0], client.post({"rows": rows})[0]
            except ConnectionError:
                return False
            assert answers == (503, 200)
            with pytest.raises(ConnectionError):
                while True:
                    client.request("GET", "/health")
                    time.sleep(0.05)
            assert process.poll() is None
            slow.sendall(body[20:])
            answer = slow.makefile("rb").read()
        assert answer.startswith(b"HTTP/1.0 200 OK\r\n") and b'"labels"' in answer
        assert ended(process) == (0, "")
    return True


@pytest.mark.parametrize("part", ["head", "body"])
def test_slow_clients_do_not_keep_their_places(exported, sequences, part):
    """More of them than places, each with a byte now and then, which no time-out between two bytes ends."""
    begin, more = (
        (b"POST / HTTP/1.0\r\n", b"A: b\r\n") if part == "head" else (b"POST / HTTP/1.0\nContent-Length: 999\n\n", b" ")
    )
    with serving(exported, "--seconds", 1) as (process, client):
        slow = [socket.create_connection(("127.0.0.1", client.port), timeout=PATIENCE) for _ in range(70)]
        stop = threading.Event()

        def trickle() -> None:
            for each in slow:
                each.sendall(begin)
            while not stop.wait(0.1):
                for each in slow:
                    with suppress(OSError):
                        each.sendall(more)

        thread = threading.Thread(target=trickle)
        thread.start()
        time.sleep(0.3)
        try:
            assert client.post({"rows": sequences[0][0]})[0] == 200  # while they still send
        finally:
            stop.set()
            thread.join()
        if part == "body":
            assert slow[0].makefile("rb").readline().split()[1] == b"408"
        for each in slow:
            each.close()
        process.send_signal(signal.SIGTERM)
        assert ended(process) == (0, "")


def test_taggers_of_long_sequences_are_not_kept(exported, sequences, monkeypatch):
    made = []

    def tagger(model):
        made.append(RuntimeTagger(model))
        return made[-1]

    monkeypatch.setenv("KCRF_MODEL", str(exported))
    monkeypatch.setattr("kcrf_core.runtime.RuntimeTagger", tagger)
    application = runpy.run_path(str(SERVER), run_name="server")["application"]
    rows, *_ = sequences[0]
    for count, taggers in ((1, 1), (1, 1), (10_000 // len(rows) + 1, 1), (1, 2)):
        body = json.dumps({"rows": rows * count}).encode()
        environ = {"REQUEST_METHOD": "POST", "wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
        assert application(environ, lambda status, headers: None)[0].startswith(b'{"labels"') and len(made) == taggers


def test_line_ends_and_byte_order_marks_stay(kcrf, exported, trained, sequences):
    lines = "\n".join(plain for _, plain, *_ in sequences[:3])
    with serving(exported) as (_, client):
        for text in (lines, lines.rstrip("\n"), lines + "\n \n\n"):
            for given in (text, "\ufeff" + text, "\ufeff" + text.replace("\n", "\r\n")):
                wanted = kcrf("tag", "-m", trained, stdin=given.encode())
                assert client.text(given) == (200, wanted.out.decode())


def test_spaces_separate_columns_of_lines_without_tabs(kcrf, exported, trained, sequences, tmp_path):
    spaced = "\n".join(plain.replace("\t", "  ") for _, plain, *_ in sequences[:5])
    (tmp_path / "spaced.conll").write_text(spaced, "utf-8")
    with serving(exported) as (_, client):
        for path, options in (("/text", ()), ("/text?marginals=best", ("--marginals", "best"))):
            wanted = kcrf("tag", "-m", trained, tmp_path / "spaced.conll", *options)
            assert wanted.code == 0 and client.text(spaced, path) == (200, wanted.text)


def test_files_that_are_no_models(tmp_path):
    (tmp_path / "text").write_text("no model")
    for name in ("missing", "text"):
        done = subprocess.run([sys.executable, SERVER, tmp_path / name, "0"], capture_output=True, text=True)
        assert done.returncode == 1 and done.stderr.startswith(str(tmp_path / name)) and "Traceback" not in done.stderr


def test_attributes_under_another_server(kcrf, tmp_path, monkeypatch):
    """A WSGI server imports the module; items of attributes are labelled, and unseen ones are counted."""
    (tmp_path / "data.crfsuite").write_text("A\tw=a\tbias\nB\tw=b\tbias\n\nB\tw=b\nA\tw=a\n")
    model = tmp_path / "model.npz"
    assert kcrf("train", tmp_path / "data.crfsuite", "--sigma2", "1", "-q", "-o", model).code == 0
    assert kcrf("export", model, "-o", tmp_path / "model.kcrf").code == 0
    monkeypatch.setenv("KCRF_MODEL", str(tmp_path / "model.kcrf"))
    application = runpy.run_path(str(SERVER), run_name="server")["application"]

    def call(method: str, path: str, body: bytes = b"") -> tuple[str, bytes]:
        begun: list[str] = []
        environ = {"REQUEST_METHOD": method, "PATH_INFO": path, "wsgi.input": io.BytesIO(body)}
        if body:
            environ["CONTENT_LENGTH"] = str(len(body))
        answer = b"".join(application(environ, lambda status, headers: begun.append(status)))
        return begun[0], answer

    status, found = call("POST", "/", b'{"items": [{"w": "a", "bias": 1}, ["w=b", "never"]]}')
    assert status == "200 OK" and len(json.loads(found)["labels"]) == 2
    text = call("GET", "/metrics")[1].decode()
    # An attribute that a dictionary names with a text is called w:a, which training did not have either.
    assert "\nkcrf_values_total 4\n" in text and "\nkcrf_unseen_values_total 2\n" in text
