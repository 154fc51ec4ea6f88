"""Tagging file to file beside other programs: kcrf-tag, kcrf tag, python-crfsuite, Wapiti and CRF++.

runtime.py DATA [REPEAT]         processor time on one thread; DATA/conll2000 has train.conll and test.conll
runtime.py DATA REPEAT clock     kcrf-tag with 1 to 16 threads and the time to its first line, by the clock

WAPITI, CRF_LEARN and CRF_TEST name programs of others, which are left out if they are missing. MODELS is a folder of
trained models, by default build, where those that are missing are trained. USADDRESS, a model of CRFsuite, and
ADDRESSES, a file of its attributes, are measured if they are given.
taggers.json has the results of each kind of processor.

All models have the default features of kcrf, 31 for each position. python-crfsuite uses kcrf's model, exported.
Patterns of Wapiti have no shapes: tests for capitals, digits and marks take their place. Templates of CRF++ have
columns alone: its files have lower case, affixes and shapes as further columns, made beforehand.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from attributes import AFFIXES, parts, read_sentences
from measure import BUILD, HERE, f1, job, kcrf, run, taken_with
from readme import fill, origins, table

ROOT = HERE.parents[1]
KCRF_TAG = ROOT / "build" / "kcrf-tag"
RESULTS = HERE / "taggers.json"
MACHINE = platform.machine()
COPIES, FEWER = 42, 6  # of the test part: two million tokens for kcrf, fewer for programs that take longer
THREADS = (1, 2, 4, 8, 16)
ITERATIONS = 25
WINDOW, NEAR = (-2, -1, 0, 1, 2), (-1, 0, 1)


def tag_lines() -> Iterator[str]:
    """Yield macros of tags in a window of five, their pairs and triples."""
    for length in (1, 2, 3):
        yield from ("/".join(f"%x[{w + k},1]" for k in range(length)) for w in range(-2, 4 - length))


def template() -> list[str]:
    """Return the lines of a template of CRF++; columns are word, tag, lower case, prefixes, suffixes and shape."""
    lines = [f"%x[{w},0]" for w in WINDOW] + [f"%x[{w},{column}]" for column, w in product((2, 11), NEAR)]
    lines += [*(f"%x[0,{column}]" for column in range(3, 11)), *tag_lines()]
    return [*(f"U{number:02}:{line}" for number, line in enumerate(lines)), "B"]


def patterns() -> list[str]:
    """Return the lines of patterns of Wapiti for words and tags."""
    tests = "^\\u", "\\u\\u", "\\l", "\\d", "\\p"
    lines = [f"%x[{w},0]" for w in WINDOW] + [f"%X[{w},0]" for w in NEAR]
    lines += ["/".join(f'%t[{w},0,"{test}"]' for test in tests) for w in NEAR]
    lines += [f'%m[0,0,"{affix}"]' for length in AFFIXES for affix in ("^" + ".?" * length, ".?" * length + "$")]
    return [*(f"u{number:02}:{line}" for number, line in enumerate([*lines, *tag_lines()])), "b"]


def written_by(*command: object) -> list[str]:
    """Return the command that has the shell write the output of all words but the last to the last."""
    return ["sh", "-c", 'exec "$@" > "$0"', str(command[-1]), *map(str, command[:-1])]


def write_rows(path: Path, sentences: Sequence[Sequence[Sequence[str]]], copies: int = 1) -> Path:
    text = "".join("".join(" ".join(row) + "\n" for row in rows) + "\n" for rows in sentences)
    path.write_text(text * copies, encoding="utf-8")
    return path


def widened(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[*row[:2], *parts(row[0]), *row[2:]] for row in rows]


@dataclass(frozen=True)
class Tagger:
    """A program with its model, which labels INPUT and writes OUTPUT."""

    name: str
    model: Path
    command: Sequence[object]
    copies: int = FEWER
    wide: bool = False

    @property
    def output(self) -> Path:
        return BUILD / f"{self.name}.tagged"

    def processor_time(self, copies: int) -> float:
        files = {"INPUT": input_file(copies, self.wide), "OUTPUT": self.output}
        return run([str(files.get(str(part), part)) for part in self.command]).processor

    def labels(self) -> list[str]:
        return [row[-1] for rows in read_sentences(self.output) for row in rows]


def input_file(copies: int, wide: bool = False) -> Path:
    return BUILD / f"test{copies}{'-wide' * wide}.txt"


def trained(name: str, command: Sequence[object]) -> Path:
    """Return a model of MODELS or build, which is trained if it is in neither."""
    path = Path(os.environ.get("MODELS", BUILD)) / name
    if not path.exists():
        path = BUILD / name
    if not path.exists():
        run([str(path if part == "MODEL" else part) for part in command])
    return path


def program(variable: str) -> str | None:
    given = os.environ.get(variable)
    found = shutil.which(given or variable.lower())
    if given and found is None:
        raise SystemExit(f"{variable}={given}: there is no such program")
    return found


def exported(model: Path, form: str) -> Path:
    path = BUILD / f"default.{form}"
    given = ("--to", "crfsuite") if form == "crfsuite" else ("--to", "runtime", "--quantize", form)
    run(kcrf("export", model, *given, "-q", "-o", path))
    return path


def default_model(train: Path) -> Path:
    return trained("default.npz", kcrf("train", train, "--sigma2", 3, "-q", "-o", "MODEL"))


def taggers(train: Path) -> Iterator[Tagger]:
    model = default_model(train)
    path = exported(model, "float32")
    yield Tagger("kcrf-tag, float32", path, written_by(KCRF_TAG, path, "INPUT", "OUTPUT"), COPIES)
    yield Tagger("kcrf tag", model, kcrf("tag", "-m", model, "--threads", 1, "-q", "INPUT", "-o", "OUTPUT"), COPIES)
    path = exported(model, "crfsuite")
    if find_spec("pycrfsuite") is not None:
        command = job("crfsuite_jobs", "tag", path, "INPUT", "OUTPUT", "default_attributes")
        yield Tagger(f"python-crfsuite {version('python-crfsuite')}", path, command)
    sentences = list(read_sentences(train))
    if wapiti := program("WAPITI"):
        lines, rows = BUILD / "patterns", write_rows(BUILD / "train.txt", sentences)
        lines.write_text("\n".join(patterns()) + "\n")
        path = trained("wapiti", [wapiti, "train", "-t", 1, "-i", ITERATIONS, "-c", "-p", lines, rows, "MODEL"])
        yield Tagger("Wapiti", path, [wapiti, "label", "-m", path, "INPUT", "OUTPUT"])
    if test := program("CRF_TEST"):
        lines, rows = BUILD / "template", write_rows(BUILD / "train-wide.txt", [*map(widened, sentences)])
        lines.write_text("\n".join(template()) + "\n")
        learn = program("CRF_LEARN") or "crf_learn"
        path = trained("crfpp", [learn, "-p", 1, "-a", "CRF-L1", "-m", ITERATIONS, lines, rows, "MODEL"])
        yield Tagger("CRF++", path, [test, "-m", path, "-o", "OUTPUT", "INPUT"], wide=True)


def sizes(tagger: Tagger) -> dict[str, int]:
    """Return the numbers of features and of weights that are not zero, without those of transitions."""
    from kcrf_core.exchange import read_foreign

    path = BUILD / "default.crfsuite" if tagger.name.startswith("kcrf") else tagger.model
    found = read_foreign(path.read_bytes(), str(path))
    return {"features": len(found.strings), "weights": int((found.node.values != 0).sum())}


def measured(folder: Path, repeat: int) -> list[dict[str, Any]]:
    sentences = list(read_sentences(folder / "test.conll"))
    tokens = sum(map(len, sentences))
    plain = [[row[:2] for row in rows] for rows in sentences]
    for copies in (1, FEWER, COPIES):
        write_rows(input_file(copies), plain, copies)
    for copies in (1, FEWER):
        write_rows(input_file(copies, wide=True), [*map(widened, plain)], copies)
    found = list(taggers(folder / "train.conll"))
    once: dict[str, list[float]] = {tagger.name: [] for tagger in found}
    often: dict[str, list[float]] = {tagger.name: [] for tagger in found}
    for _ in range(repeat):  # in turns, so that a slow minute of the machine slows all of them
        for tagger in found:
            often[tagger.name].append(tagger.processor_time(tagger.copies))
            once[tagger.name].append(tagger.processor_time(1))
    own = next(tagger for tagger in found if tagger.name == "kcrf tag").labels()
    rows = []
    for tagger in found:
        labels = tagger.labels()
        at = iter(labels)
        scored = write_rows(BUILD / "scored.conll", [[[*row, next(at)] for row in rows] for rows in sentences])
        few, many = median(once[tagger.name]), median(often[tagger.name])
        each = (many - few) / (tagger.copies - 1) / tokens
        rows.append(
            {
                "program": tagger.name,
                **sizes(tagger),
                "bytes": tagger.model.stat().st_size,
                "f1": f1(scored),
                "other_labels": sum(a != b for a, b in zip(labels, own, strict=True)),
                "rate": 1 / each,
                "start": few - tokens * each,
                "tokens": [tokens, tagger.copies * tokens],
                "seconds": [once[tagger.name], often[tagger.name]],
            }
        )
    return rows


def first_line(model: Path, lines: bytes) -> float:
    """Return the seconds from the start of kcrf-tag to its first line."""
    began = time.perf_counter()
    with subprocess.Popen([KCRF_TAG, model], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(lines)
        process.stdin.flush()
        process.stdout.readline()
        seconds = time.perf_counter() - began
        process.communicate()
    return seconds


def by_the_clock(folder: Path, repeat: int) -> dict[str, list[float]]:
    sentences = [[row[:2] for row in rows] for rows in read_sentences(folder / "test.conll")]
    source = write_rows(input_file(COPIES), sentences, COPIES)
    model = exported(default_model(folder / "train.conll"), "float32")
    cores = len(os.sched_getaffinity(0))
    out: dict[str, list[float]] = {"tokens": [COPIES * sum(map(len, sentences))]}
    for threads in (one for one in THREADS if one <= cores):
        command = written_by(KCRF_TAG, "-t", threads, model, source, BUILD / "threads.tagged")
        out[str(threads)] = [run(command).seconds for _ in range(repeat)]
    lines = write_rows(BUILD / "first.txt", sentences[:1]).read_bytes()
    out["first line"] = [first_line(model, lines) for _ in range(3 * repeat)]
    if "USADDRESS" in os.environ and "ADDRESSES" in os.environ:
        run(kcrf("import", os.environ["USADDRESS"], "-q", "-o", BUILD / "usaddress.npz"))
        run(kcrf("export", BUILD / "usaddress.npz", "-q", "-o", BUILD / "usaddress.kcrf"))
        command = written_by(KCRF_TAG, BUILD / "usaddress.kcrf", os.environ["ADDRESSES"], BUILD / "addresses")
        blocks = Path(os.environ["ADDRESSES"]).read_text(encoding="utf-8").count("\n\n")
        out["addresses"] = [blocks / run(command).processor for _ in range(repeat)]
    return out


def report(results: dict[str, Any]) -> None:
    """Write the table of programs, and below it that of times by the clock."""
    programs, clock, taken = [], [], []
    for machine, kinds in sorted(results.items(), reverse=True):
        taken += [(f"{machine}, {kind}", own["taken_with"]) for kind, own in kinds.items()]
        for row in kinds.get("programs", {"found": ()})["found"]:
            part, larger = (n / median(seconds) for n, seconds in zip(row["tokens"], row["seconds"], strict=True))
            cells = row["features"], row["weights"], row["other_labels"], row["rate"], larger, part, 1000 * row["start"]
            more = [f"{row['bytes'] / 1e6:.1f}", f"{row['f1']:.2f}"]
            programs.append([row["program"], machine, *more, *(f"{figure:,.0f}" for figure in cells)])
        found = {what: median(values) for what, values in kinds.get("clock", {"found": {}})["found"].items()}
        for threads in (one for one in map(str, THREADS) if one in found):
            rate = f"{found['tokens'] / found[threads]:,.0f} tokens/s"
            times = f"{found['1'] / found[threads]:.1f} times one thread"
            clock.append([f"kcrf-tag, threads: {threads}", machine, f"{found[threads]:.3f} s, {rate}, {times}"])
        if "first line" in found:
            clock.append(["kcrf-tag, first line", machine, f"{1000 * found['first line']:.1f} ms"])
        if "addresses" in found:
            clock.append(["kcrf-tag, model of usaddress", machine, f"{found['addresses']:,.0f} addresses/s"])
    header = (
        "program", "processor", "model MB", "F1", "features", "weights", "other labels", "tokens/s", "larger file",
        "test part", "start ms",
    )  # fmt: skip
    tables = [table(header, programs, 2)] + [table(("what", "processor", "by the clock"), clock, 3)] * bool(clock)
    fill(HERE / "README.md", "\n\n".join(tables), name="taggers", taken_with=origins(taken))


def main(data: str, repeat: int = 3, kind: str = "programs") -> None:
    BUILD.mkdir(exist_ok=True)
    subprocess.run(["make", "-s", "-C", ROOT, "kcrf-tag"], check=True)
    found = {"programs": measured, "clock": by_the_clock}[kind](Path(data) / "conll2000", repeat)
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    results.setdefault(MACHINE, {})[kind] = {"taken_with": taken_with(repeat), "found": found}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    report(results)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:3]), *sys.argv[3:])
