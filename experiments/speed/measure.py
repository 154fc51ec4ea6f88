"""Run a job in a process of its own, several times: medians of time, peak memory, and what it said of itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from readme import provenance

HERE = Path(__file__).parent
BUILD = HERE / "build"


@dataclass(frozen=True)
class Outcome:
    """One run of a command."""

    seconds: float
    processor: float  # seconds, of all its threads
    peak_bytes: int
    said: str  # its stdout


def run(command: Sequence[str | os.PathLike[str]], stop: Callable[[str], bool] | None = None) -> Outcome:
    """Run a command to its end, or until `stop` says yes to a line of its stdout."""
    began = time.perf_counter()
    process = subprocess.Popen([os.fspath(part) for part in command], stdout=subprocess.PIPE, text=True)
    lines, stopped = [], False
    for line in process.stdout:
        lines.append(line)
        if stop is not None and stop(line):
            stopped = True
            process.kill()
            break
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode and not stopped:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit code {process.returncode}")
    kilobyte = 1 if sys.platform == "darwin" else 1024
    seconds, processor = time.perf_counter() - began, usage.ru_utime + usage.ru_stime
    return Outcome(seconds, processor, usage.ru_maxrss * kilobyte, "".join(lines))


def job(module: str, *arguments: object) -> list[str]:
    """The command of one of our own jobs, which prints one line of JSON in the end."""
    return [sys.executable, str(HERE / f"{module}.py"), *map(str, arguments)]


def kcrf(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "kcrf_cli", *map(str, arguments)]


def f1(tagged: Path) -> float:
    """Return the F1 of spans in a file with gold and predicted labels in its last columns."""
    return 100 * json.loads(run(kcrf("evaluate", tagged, "--json")).said)["spans"]["f1"]


def said(outcome: Outcome) -> dict[str, Any]:
    """The JSON that a job ended with."""
    return json.loads(outcome.said.strip().split("\n")[-1])


def kept(name: str, repeat: int, work: Callable[[], Any]) -> list[Any]:
    """Return the results of runs, which are made once: build/runs/NAME.json has them until `make clean`."""
    path = BUILD / "runs" / f"{name}.json"
    if not path.exists():
        results = [work() for _ in range(repeat)]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(results) + "\n", encoding="utf-8")
    return json.loads(path.read_text(encoding="utf-8"))


def repeated(times: int, work: Callable[[], float]) -> list[float]:
    return [work() for _ in range(times)]


@dataclass(frozen=True)
class Row:
    """A figure of ours beside one of a peer or a limit, and the bar that their ratio is held to."""

    what: str
    ours: float
    peer: float
    unit: str
    ratio: float
    bar: float
    most: bool  # the ratio must be at most the bar, else at least
    note: str = ""

    @property
    def met(self) -> bool:
        return self.ratio <= self.bar if self.most else self.ratio >= self.bar


def at_most(what: str, ours: Sequence[float], peer: Sequence[float], unit: str, bar: float, note: str = "") -> Row:
    """Ours must be no more than `bar` times the peer's; medians of both."""
    a, b = median(ours), median(peer)
    return Row(what, a, b, unit, a / b, bar, True, note)


def at_least(what: str, ours: Sequence[float], peer: Sequence[float], unit: str, bar: float, note: str = "") -> Row:
    """Ours must be at least `bar` times the peer's; medians of both."""
    a, b = median(ours), median(peer)
    return Row(what, a, b, unit, a / b, bar, False, note)


def limit(what: str, ours: Sequence[float], bar: float, unit: str, most: bool = True, note: str = "") -> Row:
    """Ours against a number."""
    return Row(what, median(ours), bar, unit, median(ours) / bar, 1.0, most, note)


def taken_with(repeat: int) -> str:
    runs = f"medians of {repeat} runs" if repeat > 1 else "one run"
    return f"{provenance(0, ('python-crfsuite', 'scikit-learn'))}; {runs}"


def save(group: str, rows: Sequence[Row], details: dict[str, Any], repeat: int) -> None:
    """Write what a group of measurements found."""
    BUILD.mkdir(exist_ok=True)
    found = {
        "taken_with": taken_with(repeat),
        "rows": [asdict(row) | {"met": row.met} for row in rows],
        "details": details,
    }
    (BUILD / f"{group}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for row in rows:
        print(f"{row.what}: {row.ours:.4g} against {row.peer:.4g} {row.unit}, ratio {row.ratio:.3g}, met: {row.met}")
