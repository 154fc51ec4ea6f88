"""A web service that labels: `python examples/server.py model.kcrf 8000`, or `application` under a WSGI server.

POST /         `{"rows": [["the", "DT"], ["cat", "NN"]]}`, positions and their columns, or `{"items": [...]}` for a
               model of attributes. The answer is `{"labels": ["B-NP", "I-NP"], "probabilities": [0.99, 0.98]}`;
               `"probabilities": false` leaves these out.
POST /text     lines of columns, a blank line after each sequence, without labels. The answer has the label behind each
               line, as `kcrf tag` writes it, and with `/text?marginals=best` its probability before that.
GET /health    200 while requests are answered, 503 once the service is to end.
GET /metrics   counts, latencies, share of unseen values and mean confidence, in the text format of Prometheus.

The first SIGTERM or Ctrl-C ends the service when the requests that have come are answered; the second ends it at once.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import signal
import socket
import sys
import threading
import time
import traceback
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from itertools import accumulate
from socketserver import ThreadingMixIn
from urllib.parse import parse_qs
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import numpy as np

from kcrf_core.runtime import RuntimeModel, RuntimeTagger

MOST_BYTES = 1 << 20  # of a request
MOST_REQUESTS = 64  # at a time; other clients wait
MOST_SKIPPED = 1 << 26  # bytes of a request that is too large, so that its client reads the answer
PATIENCE = 10.0  # seconds that a client may send, or take, nothing
MOST_SECONDS = 30.0  # for all of a request to come, so that clients who send a byte now and then do not take all places
LONGEST_KEPT = 10_000  # positions: the memory of a tagger is that of its longest sequence
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)  # seconds
PATHS = {"/": "POST", "/text": "POST", "/health": "GET", "/metrics": "GET"}  # with the method of each
JSON = "application/json"
BYTE_ORDER_MARK = "\ufeff"


class RequestError(Exception):
    """A request that is not answered, with its status and the reason."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Labelled:
    """The result of one sequence."""

    labels: list[str]
    probabilities: np.ndarray  # [T] of these labels
    unseen: int  # values that training did not have
    values: int  # of so many


class Metrics:
    """Counts of a process since it began, and their text."""

    def __init__(self, about: Mapping[str, str]):
        self._lock, self._about, self._began, self._running = threading.Lock(), about, time.time(), 0
        self._requests: Counter[tuple[str, int]] = Counter()  # by path and status
        self._latencies, self._seconds = [0] * (len(BUCKETS) + 1), 0.0  # of requests to label that were answered
        self._labels: Counter[str] = Counter()
        self._sequences, self._unseen, self._values, self._confidence = 0, 0, 0, 0.0

    def begin(self) -> None:
        with self._lock:
            self._running += 1

    def end(self, path: str, status: int, seconds: float, labelled: Iterable[Labelled]) -> None:
        with self._lock:
            self._running -= 1
            self._requests[path if path in PATHS else "other", status] += 1
            if status != 200 or PATHS[path] != "POST":
                return
            self._latencies[bisect_left(BUCKETS, seconds)] += 1
            self._seconds += seconds
            for one in labelled:
                self._labels.update(one.labels)
                self._sequences += 1
                self._confidence += float(one.probabilities.sum())
                self._unseen, self._values = self._unseen + one.unseen, self._values + one.values

    def text(self) -> str:
        out: list[str] = []

        def put(name: str, kind: str, about: str, *values: tuple[str, object]) -> None:
            out.extend([f"# HELP kcrf_{name} {about}", f"# TYPE kcrf_{name} {kind}"])
            out.extend(f"kcrf_{name}{which} {value}" for which, value in values)

        with self._lock:
            positions = sum(self._labels.values())
            requests = [(_named(path=path, status=str(s)), n) for (path, s), n in sorted(self._requests.items())]
            below = zip([*map(str, BUCKETS), "+Inf"], accumulate(self._latencies), strict=True)
            buckets = [("_bucket" + _named(le=end), count) for end, count in below]
            totals = ("_sum", self._seconds), ("_count", sum(self._latencies))
            labels = [(_named(label=label), count) for label, count in sorted(self._labels.items())]
            put("model_info", "gauge", "The model in use.", (_named(**self._about), 1))
            put("start_time_seconds", "gauge", "Start of the process, Unix time.", ("", f"{self._began:.3f}"))
            put("requests_running", "gauge", "Requests under way, this one among them.", ("", self._running))
            put("requests_total", "counter", "Requests answered before this one.", *requests)
            put("request_seconds", "histogram", "Time to read and label a request.", *buckets, *totals)
            put("sequences_total", "counter", "Sequences labelled.", ("", self._sequences))
            put("positions_total", "counter", "Positions by their label.", *labels)
            put("values_total", "counter", "Values of columns, or attributes, looked up.", ("", self._values))
            put("unseen_values_total", "counter", "Values that training did not have.", ("", self._unseen))
            put("unseen_share", "gauge", "Unseen share since the start.", ("", _share(self._unseen, self._values)))
            put("confidence_total", "counter", "Sum of the probabilities of labels.", ("", self._confidence))
            mean = _share(self._confidence, positions)
            put("mean_confidence", "gauge", "Mean probability of labels since the start.", ("", mean))
        return "\n".join(out) + "\n"


def _named(**values: str) -> str:
    """Return labels of a metric, escaped."""
    escapes = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
    return "{" + ",".join(f'{key}="{value.translate(escapes)}"' for key, value in values.items()) + "}"


def _share(part: float, whole: float) -> object:
    return part / whole if whole else "NaN"


class Service:
    """A WSGI application that labels with one model."""

    def __init__(self, path: str, most_bytes: int = MOST_BYTES):
        data = np.memmap(path, np.uint8, mode="r")  # processes share the pages of the file
        self._model, self._most_bytes = RuntimeModel(data), most_bytes
        self._idle: list[RuntimeTagger] = []  # taggers that no thread uses now
        self._about = {"file": os.path.basename(path), "sha256": hashlib.sha256(data).hexdigest()}
        self.metrics, self.ending = Metrics(self._about), False

    def __call__(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        began, path, labelled = time.perf_counter(), environ.get("PATH_INFO") or "/", list[Labelled]()
        self.metrics.begin()
        try:
            status, kind, body = 200, *self._answer(path, environ, labelled)
        except RequestError as error:
            status, kind, body = error.status, JSON, _json({"error": str(error)})
        except Exception:
            traceback.print_exc()
            status, kind, body = 500, JSON, _json({"error": "the service failed; its log has the reason"})
        self.metrics.end(path, status, time.perf_counter() - began, labelled)
        headers = [("Content-Type", kind), ("Content-Length", str(len(body)))]
        if status == 405:
            headers.append(("Allow", PATHS[path]))
        start_response(f"{status} {HTTPStatus(status).phrase}", headers)
        return [body]

    def _answer(self, path: str, environ: dict, labelled: list[Labelled]) -> tuple[str, bytes]:
        """Return the type and the bytes of the answer; put results of sequences into a list."""
        body = self._body(environ)
        if path not in PATHS:
            raise RequestError(404, f"there is no {path}: POST / or /text, GET /health or /metrics")
        if environ["REQUEST_METHOD"] != PATHS[path]:
            raise RequestError(405, f"{path} takes {PATHS[path]}")
        if path == "/metrics":
            return "text/plain; version=0.0.4; charset=utf-8", self.metrics.text().encode()
        if path == "/health":
            if self.ending:
                raise RequestError(503, "ending")
            return JSON, _json({"status": "ok", "labels": len(self._model.labels), **self._about})
        if body is None:
            raise RequestError(411, "a request needs a Content-Length")
        try:
            if path == "/text":
                shown = parse_qs(environ.get("QUERY_STRING", "")).get("marginals", [""])[0]
                return "text/plain; charset=utf-8", self._lines(body.decode(), shown == "best", labelled).encode()
            return JSON, self._object(json.loads(body), labelled)
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise RequestError(400, f"{type(error).__name__}: {error}") from error

    def _body(self, environ: dict) -> bytes | None:
        """Return the bytes of a request, all of them or none. What is left unread would reset the connection."""
        length, stream = environ.get("CONTENT_LENGTH") or "", environ["wsgi.input"]
        if not length:
            return None
        if not (length.isascii() and length.isdecimal() and len(length) < 16):
            raise RequestError(400, "Content-Length is no number")
        wanted = int(length)
        try:
            if wanted > self._most_bytes:
                left = min(wanted, MOST_SKIPPED)
                while left > 0 and (part := stream.read(min(left, 1 << 16))):
                    left -= len(part)
                raise RequestError(413, f"{wanted} bytes, at most {self._most_bytes} are taken: send several requests")
            body = stream.read(wanted)
        except TimeoutError:
            raise RequestError(408, "the request did not come in time") from None
        if len(body) < wanted:
            raise RequestError(400, f"{len(body)} bytes came, and {wanted} were announced")
        return body

    def _object(self, request: object, labelled: list[Labelled]) -> bytes:
        """Answer a JSON request."""
        kinds = request.keys() & {"rows", "items"} if isinstance(request, dict) else set()
        if not isinstance(request, dict) or len(kinds) != 1:
            raise ValueError('an object with "rows" or "items" was expected')
        with_probabilities = request.get("probabilities", True)
        if not isinstance(with_probabilities, bool):
            raise ValueError('"probabilities" is true or false')
        labelled.append(self._label(request[next(iter(kinds))], "items" in kinds))
        found: dict[str, object] = {"labels": labelled[0].labels}
        if with_probabilities:
            found["probabilities"] = labelled[0].probabilities.tolist()
        return _json(found)

    def _lines(self, text: str, marginals: bool, labelled: list[Labelled]) -> str:
        """Return lines of columns with labels behind them; TABs separate columns if the first line has one.

        Line ends and a byte order mark stay as they are.
        """
        content = text.removeprefix(BYTE_ORDER_MARK)
        mark, raw = text[: len(text) - len(content)], content.split("\n")
        lines = [line.removesuffix("\r") for line in raw]
        ends = [line[len(kept) :] for line, kept in zip(raw, lines, strict=True)]
        first, tab = 0, "\t" if "\t" in next(filter(None, lines), "") else " "
        for last, line in enumerate([*lines, ""]):
            if line.strip(" \t"):
                continue
            if first < last:
                try:
                    own = lines[first:last]
                    found = self._label([[cell for cell in line.split(tab) if cell or tab != " "] for line in own])
                except (ValueError, TypeError, OverflowError) as error:
                    raise ValueError(f"lines {first + 1} to {last}: {error}") from error
                for number, label, p in zip(range(first, last), found.labels, found.probabilities, strict=True):
                    lines[number] += f"{tab}{label}:{p:.6f}{tab}{label}" if marginals else f"{tab}{label}"
                labelled.append(found)
            first = last + 1
        return mark + "\n".join(line + end for line, end in zip(lines, ends, strict=True))

    def _label(self, rows: object, attributes: bool = False) -> Labelled:
        if not isinstance(rows, list):
            raise TypeError(f"a list of positions was expected, not {type(rows).__name__}")
        try:
            tagger = self._idle.pop()
        except IndexError:
            tagger = RuntimeTagger(self._model)
        try:
            (tagger.set_attributes if attributes else tagger.set_columns)(rows)
            numbers, marginals = tagger.labels(), tagger.marginals()
        finally:
            if len(rows) <= LONGEST_KEPT:
                self._idle.append(tagger)
        labels = [self._model.labels[number] for number in numbers]
        return Labelled(labels, marginals[np.arange(len(numbers)), numbers], *self._model.unseen(rows))


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads, request_queue_size = False, 128
    allow_reuse_port = True  # several processes may have the same port, and share its requests (Linux, Python 3.11)
    waiting = True  # connections that have come and were not taken yet
    places = threading.BoundedSemaphore(MOST_REQUESTS)

    def process_request(self, request: object, client_address: object) -> None:
        self.places.acquire()
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread could be started
            self.places.release()
            raise

    def process_request_thread(self, request: object, client_address: object) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.places.release()

    def handle_timeout(self) -> None:
        self.waiting = False

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exc_info()[1], OSError):  # that of a client who has gone
            traceback.print_exc()


class Incoming(io.RawIOBase):
    """The bytes that a client sends, up to some seconds from now."""

    def __init__(self, connection: socket.socket, seconds: float):
        self._connection, self._end = connection, time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, room: memoryview) -> int:
        self._connection.settimeout(min(PATIENCE, max(self._end - time.monotonic(), 1e-3)))
        try:
            return self._connection.recv_into(room)
        finally:
            self._connection.settimeout(PATIENCE)  # for the answer


class Handler(WSGIRequestHandler):
    seconds = MOST_SECONDS

    def setup(self) -> None:
        super().setup()
        self.rfile = io.BufferedReader(Incoming(self.connection, self.seconds), 1 << 16)

    def log_message(self, *_: object) -> None:
        pass


def serve(service: Service, host: str, port: int, drain: float) -> None:
    """Answer requests until a signal; then answer those that have come."""
    with make_server(host, port, service, Server, Handler) as server:

        def stop() -> None:
            time.sleep(drain)
            server.shutdown()

        def asked(number: int, _: object) -> None:
            service.ending = True
            for each in (signal.SIGTERM, signal.SIGINT):
                signal.signal(each, signal.SIG_DFL)
            threading.Thread(target=stop).start()  # the main thread answers until then

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, asked)
        print(f"http://{host}:{server.server_port}/", flush=True)
        server.serve_forever(poll_interval=0.1)
        server.timeout = 0
        for _ in range(server.request_queue_size):
            if server.waiting:
                server.handle_request()
    # The end of `with` waits for all threads.


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Serve a model that kcrf export wrote.")
    parser.add_argument("model")
    parser.add_argument("port", type=int, help="0 for any that is free")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at; default: this machine alone")
    parser.add_argument("--max-bytes", type=int, default=MOST_BYTES, help="of a request; default: %(default)s")
    parser.add_argument(
        "--seconds", type=float, default=MOST_SECONDS, help="for a request to come; default: %(default)g"
    )
    parser.add_argument(
        "--drain", type=float, default=0.0, help="seconds from a signal to the end, while /health is 503; default: 0"
    )
    given = parser.parse_args()
    Handler.seconds = given.seconds
    try:
        serve(Service(given.model, given.max_bytes), given.host, given.port, given.drain)
    except (OSError, ValueError) as error:
        sys.exit(f"{given.model}, port {given.port}: {error}")
else:
    application = Service(os.environ["KCRF_MODEL"])
