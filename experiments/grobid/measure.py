"""kcrf and Wapiti on the files of corpus.py: measure.py DATA RESULTS --wapiti PROGRAM [--threads 2] [--seconds 300].

Both programs read the same files and minimise the same objective,

    P = -log p(labels | data) + rho1 |w|_1 + rho2 / 2 |w|^2,

over the same weights: every string with every label, and pairs of labels; in kcrf, rho1 is --c1, and rho2 is
1 / sigma2. Wapiti prints P after every iteration and kcrf logs it after every pass. `objective.py` computes P of both
stored models by one function, and the results hold it beside the last P that the program printed.

Every run is stopped after SECONDS by an interrupt, at which both programs store what they have; LIMIT seconds end the
whole. Seconds count from the start of a program, loading included. Each run has a file in RESULTS, and a run that has
one is not repeated, so that the whole can be measured in parts.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))
from readme import provenance  # noqa: E402, the folder above is on the path only now

MODELS = ("header", "segmentation")
# Stopping criteria of GROBID (grobid-home/config/grobid.yaml): epsilon, window and iterations.
GROBID = {"header": ("-e", "0.000001", "-w", "30", "-i", "1500")}
GROBID["segmentation"] = ("-e", "0.0000001", "-w", "50", "-i", "2000")
PENALTIES = {"l1": (0.5, 0.0001), "l2": (0.0, 1.0)}  # rho1 and rho2; those of l1 are defaults of Wapiti, and GROBID's
ITERATION = re.compile(r"\[ *[0-9]+\] obj=([0-9.]+)")
LARGEST = 500_000_000  # bytes of a stored model of Wapiti whose P is computed again


def wapiti_options(run: str, model: str, data: Path, work: Path) -> list[str]:
    """Options of a run of Wapiti. Small jobs are for its threads, as a document is a long sequence.

    With L2, errors are counted on one document instead of on all training data, which is the faster for it; the
    other two count them as in GROBID, whose stopping criterion needs them.
    """
    options = ["-j", "4"]
    if run == "wapiti-l2":
        text = (data / f"{model}.train.conll").read_text(encoding="utf-8")
        (work / "one.conll").write_text(text[: text.index("\n\n") + 2], encoding="utf-8")
        return [*options, "-1", "0", "-2", "1", "-w", "0", "-e", "0.000001", "-d", str(work / "one.conll")]
    return [*options, *GROBID[model], *(["-a", "rprop"] if run == "wapiti-rprop" else [])]


class Run:
    """A command with what it printed, its seconds, processor seconds and largest memory."""

    def __init__(self, command: Sequence[object], seconds: float | None, line: Callable[[float, str], None]):
        began = time.perf_counter()
        words = list(map(str, command))
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.interrupted = False
        timer = threading.Timer(seconds or 1e6, self._interrupt)
        timer.daemon = True
        timer.start()
        assert self.process.stderr is not None
        tail: list[str] = []
        for raw in self.process.stderr:
            text = raw.decode("utf-8", "replace")
            line(time.perf_counter() - began, text)
            tail = [*tail[-20:], text]
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        timer.cancel()
        self.seconds = time.perf_counter() - began
        self.processor = usage.ru_utime + usage.ru_stime
        self.memory = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        if self.process.returncode and not self.interrupted:
            raise RuntimeError(f"{' '.join(words)}:\n{''.join(tail)}")

    def _interrupt(self) -> None:
        self.interrupted = True
        self.process.send_signal(signal.SIGINT)

    def figures(self) -> dict[str, Any]:
        names = ("seconds", "processor", "memory", "interrupted")
        return {name: getattr(self, name) for name in names}


def train_wapiti(
    program: str, options: Sequence[str], threads: int, data: Path, model: str, stored: Path, seconds: float
) -> tuple[dict[str, Any], list[list[float]]]:
    found: list[list[float]] = []

    def line(at: float, text: str) -> None:
        matched = ITERATION.search(text)
        if matched:
            found.append([at, float(matched[1])])

    patterns, train = data / f"{model}.patterns", data / f"{model}.train.conll"
    run = Run([program, "train", "-t", threads, *options, "-p", patterns, train, stored], seconds, line)
    return run.figures() | {"options": options}, found


def train_kcrf(
    kcrf: str, penalty: str, threads: int, data: Path, model: str, stored: Path, seconds: float
) -> tuple[dict[str, Any], list[list[float]]]:
    rho1, rho2 = PENALTIES[penalty]
    log = stored.with_suffix(".log")
    options = ["--sigma2", str(1 / rho2), *(["--c1", str(rho1)] if rho1 else [])]
    command = [kcrf, "train", "-c", data / f"{model}.patterns", data / f"{model}.train.conll", *options]
    command += ["--set", "terms.edge.type=transitions", "--decode", "viterbi", "--threads", threads]
    run = Run([*command, "--log", log, "-o", stored], seconds, lambda at, text: None)
    events = [json.loads(line) for line in log.read_text().splitlines()]
    passes = [one for one in events if one["event"] == "pass" and one.get("objective") is not None]
    end = next((one for one in events if one["event"] == "end"), {})
    told = {key: end.get(key) for key in ("stop", "objective", "lower_bound", "certified_gap", "passes", "parameters")}
    return run.figures() | {"options": options} | told, [[one["seconds"], one["objective"]] for one in passes]


def fields(labels: Sequence[str]) -> set[tuple[int, int, str]]:
    """Return fields: first position, position behind the last, and name; "" stands between documents."""
    found, start, name = set(), 0, ""
    for place, label in enumerate([*labels, ""]):
        if label != name:  # I-<title> differs from <title>
            if name:
                found.add((start, place, name))
            start, name = place, label.removeprefix("I-")
    return found


def label(command: Sequence[object], tagged: Path) -> dict[str, Any]:
    """Return seconds and memory of labelling, the share of labels that are right, and F1 of whole fields."""
    run = Run(command, None, lambda at, text: None)
    rows = [line.split()[-2:] or ["", ""] for line in tagged.read_text(encoding="utf-8").split("\n")]
    gold, own = ([row[which] for row in rows] for which in (0, 1))
    total = sum(map(bool, gold))
    whole = fields(gold), fields(own)
    return {
        "label_seconds": run.seconds,
        "label_memory": run.memory,
        "accuracy": sum(one == other != "" for one, other in zip(gold, own, strict=True)) / total,
        "f1": 2 * len(whole[0] & whole[1]) / (len(whole[0]) + len(whole[1])),
        "positions": total,
    }


def measure(run: argparse.Namespace, model: str, name: str, seconds: float) -> dict[str, Any]:
    """Train, label the test part, and compute P of the stored model."""
    program, kind = name.split("-")
    penalty = "l2" if kind == "l2" else "l1"
    run.work.mkdir(parents=True, exist_ok=True)
    stored = run.work / f"{model}-{name}{'.npz' if program == 'kcrf' else '.wapiti'}"
    tagged, test = run.work / f"{model}-{name}.tagged", run.data / f"{model}.test.conll"
    common = run.threads, run.data, model, stored, seconds
    if program == "kcrf":
        found, points = train_kcrf(run.kcrf, penalty, *common)
        labelling = [run.kcrf, "tag", "-m", stored, test, "--threads", run.threads, "-q", "-o", tagged]
    else:
        found, points = train_wapiti(run.wapiti, wapiti_options(name, model, run.data, run.work), *common)
        labelling = [run.wapiti, "label", "-c", "-m", stored, test, tagged]
    found |= {"model": model, "run": name, "penalty": penalty, "threads": run.threads, "points": points}
    if not stored.exists():
        raise RuntimeError(f"interrupted after {seconds:.0f} seconds, before there was a model to store")
    found |= {"bytes": stored.stat().st_size, "taken_with": provenance(0)}
    found |= label(labelling, tagged)
    if program == "kcrf" or stored.stat().st_size <= LARGEST:
        rho1, rho2 = PENALTIES[penalty]
        train = run.data / f"{model}.train.conll"
        command = [sys.executable, HERE / "objective.py", stored, train, str(rho1), str(rho2)]
        out = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, check=True).stdout
        found |= json.loads(out)
    if not run.keep:
        for path in run.work.glob(f"{model}-{name}.*"):
            path.unlink()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--wapiti", default="wapiti", help="the program")
    parser.add_argument("--kcrf", default="kcrf", help="the program")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=300, help="of training, for each run")
    parser.add_argument("--limit", type=float, default=1e6, help="no run begins that could end after these seconds")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--runs", default="kcrf-l1,wapiti-l1,wapiti-rprop,kcrf-l2,wapiti-l2")
    parser.add_argument("--keep", action="store_true", help="keep models and labelled files")
    parser.add_argument("--work", type=Path, help="folder for models; default: work within RESULTS")
    run = parser.parse_args()
    run.work = run.work or run.results / "work"
    run.results.mkdir(parents=True, exist_ok=True)
    corpus = (run.data / "corpus.json").read_text()
    (run.results / "corpus.json").write_text(corpus)
    began = time.perf_counter()
    for name in run.runs.split(","):
        for model in run.models.split(","):
            path = run.results / f"{model}-{name}.json"
            left = run.limit - (time.perf_counter() - began)
            seconds = min(run.seconds, left * 0.7)  # the rest for reading and storing, labels and P
            if path.exists() or seconds < min(run.seconds, 20):
                print(f"{path.name}: {'there already' if path.exists() else 'no time left'}", flush=True)
                continue
            try:
                found = measure(run, model, name, seconds)
            except (RuntimeError, subprocess.CalledProcessError) as error:
                print(f"{path.name}: failed, {error}", flush=True)
                continue
            path.write_text(json.dumps(found, indent=1) + "\n")
            shown = ("seconds", "processor", "memory", "interrupted", "accuracy", "f1", "bytes", "stored_objective")
            last = found["points"][-1] if found["points"] else None
            print(path.name, len(found["points"]), last, {key: found.get(key) for key in shown}, flush=True)


if __name__ == "__main__":
    main()
