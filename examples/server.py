"""A web service that labels: `python examples/server.py model.kcrf 8000`, or `application` under a WSGI server.

A request is `POST /` with `{"rows": [["the", "DT"], ["cat", "NN"]]}`, positions and their columns; the answer is
`{"labels": ["B-NP", "I-NP"], "probabilities": [0.99, 0.98]}`.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import numpy as np

from kcrf_core.runtime import RuntimeModel, RuntimeTagger

parser = argparse.ArgumentParser(description="Serve a model that kcrf export wrote.")
parser.add_argument("model")
parser.add_argument("port", type=int)
given = parser.parse_args() if __name__ == "__main__" else argparse.Namespace(model=os.environ["KCRF_MODEL"])
MODEL = RuntimeModel(np.memmap(given.model, np.uint8, mode="r"))  # processes share the pages of the file
LABELS = MODEL.labels
idle: list[RuntimeTagger] = []  # taggers that no thread uses now


def answer(request: dict) -> dict:
    try:
        tagger = idle.pop()
    except IndexError:
        tagger = RuntimeTagger(MODEL)
    try:
        tagger.set_columns(request["rows"])
        labels, marginals = tagger.labels(), tagger.marginals()
    finally:
        idle.append(tagger)
    probabilities = marginals[np.arange(len(labels)), labels]
    return {"labels": [LABELS[label] for label in labels], "probabilities": probabilities.tolist()}


def application(environ: dict, start_response: Callable) -> Iterable[bytes]:
    status = "200 OK"
    try:
        found = answer(json.loads(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))))
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        status, found = "400 Bad Request", {"error": f"{type(error).__name__}: {error}"}
    body = json.dumps(found).encode()
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads, request_queue_size = True, 128
    allow_reuse_port = True  # several processes may have the same port, and share its requests (Linux, Python 3.11)


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    with make_server("127.0.0.1", given.port, application, Server, Quiet) as server:
        print(f"http://127.0.0.1:{server.server_port}/", flush=True)
        server.serve_forever()
