"""Latency, processor time and memory of examples/server.py: `python measure.py MODEL DATA` for processes and clients.

Clients are threads of this process. Each sends one sentence after another, with a new connection for each, as soon as
it has the answer to the last. Latency is from the connection to the last byte of the answer.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

from kcrf_core.runtime import RuntimeModel, RuntimeTagger

SERVER = Path(__file__).resolve().parents[2] / "examples" / "server.py"


def seconds_of(process: int) -> float:
    """Return the processor time of another process."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(process: int, kind: str) -> float:
    """Return MiB of memory: Rss, Pss (shared pages divided among processes), Private_Dirty."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(f"{kind}:")) / 1024


def free_port() -> int:
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        return own.getsockname()[1]


def measure(model: str, bodies: list[bytes], processes: int, clients: int, requests: int) -> str:
    port, latencies, failed = free_port(), [], []
    command = [sys.executable, str(SERVER), model, str(port)]
    servers = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(processes)]
    numbers = itertools.count()

    def client() -> None:
        while (number := next(numbers)) < requests:
            begin = time.perf_counter()
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.request("POST", "/", bodies[number % len(bodies)])
            answer = connection.getresponse()
            answer.read()
            latencies.append(time.perf_counter() - begin)
            if answer.status != 200:
                failed.append(answer.status)

    try:
        for server in servers:
            assert server.stdout is not None and server.stdout.readline()
        before, began = sum(seconds_of(server.pid) for server in servers), time.perf_counter()
        threads = [threading.Thread(target=client) for _ in range(clients)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        wall, used = time.perf_counter() - began, sum(seconds_of(server.pid) for server in servers) - before
        memory = " / ".join(f"{memory_of(servers[0].pid, kind):.0f}" for kind in ("Rss", "Pss", "Private_Dirty"))
    finally:
        for server in servers:
            server.kill()
            server.wait()
    assert not failed and len(latencies) == requests, failed
    p50, p99 = 1000 * np.quantile(latencies, [0.5, 0.99])
    figures = [
        processes,
        clients,
        f"{p50:.1f}",
        f"{p99:.1f}",
        f"{requests / wall:,.0f}",
        f"{1000 * used / requests:.2f}",
    ]
    return f"| {' | '.join(map(str, [*figures, memory]))} |"


def inside(model: str, sentences: list[list[list[str]]], repeat: int = 5) -> str:
    """Return the processor time of labelling alone, in this process."""
    tagger, positions = RuntimeTagger(RuntimeModel(np.memmap(model, np.uint8, mode="r"))), sum(map(len, sentences))
    begin = time.process_time()
    for rows in sentences * repeat:
        tagger.set_columns(rows)
        tagger.labels()
        tagger.marginals()
    used = (time.process_time() - begin) / (repeat * len(sentences))
    return f"labels and marginals of a sentence ({positions / len(sentences):.1f} words): {1e6 * used:.0f} microseconds"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--processes", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 4, 16])
    run = parser.parse_args()
    text = Path(run.data).read_text("utf-8").strip().split("\n\n")[:1000]
    split = [[line.split("\t" if "\t" in line else None)[:-1] for line in one.splitlines()] for one in text]
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {inside(run.model, split)}")
    print(
        "| processes | clients | latency p50 ms | p99 ms | requests/s | server ms/request | MiB rss / pss / private |"
    )
    print("|---|---|---|---|---|---|---|")
    for processes, clients in itertools.product(run.processes, run.clients):
        encoded = [json.dumps({"rows": rows}).encode() for rows in split]
        print(measure(run.model, encoded, processes, clients, run.requests), flush=True)
