"""Tagging without Python beside its peers, file to file: kcrf-tag, kcrf tag, python-crfsuite, Wapiti and CRF++.

runtime.py DATA [REPEAT]    with DATA/conll2000; WAPITI, CRF_LEARN and CRF_TEST are programs of others, where they are

Every program gets a linear model of its own: the default features for kcrf, CRFsuite's template of chunking for
python-crfsuite, and the same words and tags in windows for Wapiti and CRF++. USADDRESS, a model of CRFsuite, and
ADDRESSES, a file of its attributes, are measured if they are given.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from measure import BUILD, HERE, Row, at_least, job, kcrf, limit, run, save

ROOT = HERE.parents[1]
TOKENS = 2_000_000
THREADS = (1, 2, 4, 8, 16)
TEMPLATE = [f"U{k}:%x[{k - 2},0]" for k in range(5)] + [f"U{k + 5}:%x[{k - 2},1]" for k in range(5)]
TEMPLATE += [f"U{k + 10}:%x[{k - 2},1]/%x[{k - 1},1]" for k in range(4)]


def program(variable: str, default: str) -> str | None:
    return shutil.which(os.environ.get(variable, default))


def peers(train: Path) -> dict[str, list[object]]:
    """Train models of other programs once; return the commands that label INPUT."""
    found: dict[str, list[object]] = {}
    text = BUILD / "runtime-train.txt"  # separated by spaces, as CRF++ has it
    text.write_text(train.read_text(encoding="utf-8").replace("\t", " "), encoding="utf-8")
    (BUILD / "template").write_text("\n".join([*TEMPLATE, "B"]) + "\n")
    (BUILD / "patterns").write_text("\n".join([line.replace("U", "u", 1) for line in TEMPLATE] + ["b"]) + "\n")
    if find_spec("pycrfsuite") is not None:
        model = BUILD / "runtime.crfsuite"
        if not model.exists():
            run(job("crfsuite_jobs", "train", train, model, 1.0, 50, 0))
        found["python-crfsuite"] = [*job("crfsuite_jobs", "tag", model), "INPUT", BUILD / "peer.tagged"]
    wapiti, learn, test = (
        program("WAPITI", "wapiti"),
        program("CRF_LEARN", "crf_learn"),
        program("CRF_TEST", "crf_test"),
    )
    if wapiti:
        model = BUILD / "runtime.wapiti"
        if not model.exists():
            subprocess.run([wapiti, "train", "-t", "1", "-i", "30", "-p", BUILD / "patterns", text, model], check=True)
        found["Wapiti"] = [wapiti, "label", "-m", model, "INPUT", BUILD / "peer.tagged"]
    if learn and test:
        model = BUILD / "runtime.crfpp"
        if not model.exists():
            subprocess.run([learn, "-m", "30", BUILD / "template", text, model], check=True)
        found["CRF++"] = [test, "-m", model, "-o", BUILD / "peer.tagged", "INPUT"]
    return found


def first_line(command: list[str], text: bytes) -> float:
    """Return the seconds from the start of a program to its first line."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdin.write(text)
    process.stdin.flush()
    process.stdout.readline()
    seconds = time.perf_counter() - began
    process.stdin.close()
    process.stdout.read()
    process.wait()
    return seconds


def main(data: str, repeat: int) -> None:
    folder = Path(data) / "conll2000"
    BUILD.mkdir(exist_ok=True)
    subprocess.run(["make", "-s", "-C", ROOT, "kcrf-tag"], check=True)
    tagger, model = ROOT / "build" / "kcrf-tag", BUILD / "runtime.npz"
    if not model.exists():
        run(kcrf("train", folder / "train.conll", "--sigma2", "3", "-q", "-o", model))
    forms = {form: BUILD / f"runtime-{form}.kcrf" for form in ("float32", "int8")}
    for form, path in forms.items():
        run(kcrf("export", model, "--quantize", form, "-q", "-o", path))
    text = (folder / "train.conll").read_text(encoding="utf-8").rstrip("\n") + "\n\n"
    text += (folder / "test.conll").read_text(encoding="utf-8").rstrip("\n") + "\n\n"
    copies = TOKENS // sum(1 for line in text.split("\n") if line) + 1
    long, spaced = BUILD / "runtime-long.conll", BUILD / "runtime-long.txt"
    long.write_text(text * copies, encoding="utf-8")
    spaced.write_text((text * copies).replace("\t", " "), encoding="utf-8")
    tokens = copies * sum(1 for line in text.split("\n") if line)

    def rates(command: list[object]) -> list[float]:
        return [tokens / run([str(part) for part in command]).seconds for _ in range(repeat)]

    found: dict[str, list[float]] = {}
    cores = len(os.sched_getaffinity(0))
    for threads in (one for one in THREADS if one <= cores):
        command = [tagger, "-t", threads, "-o", BUILD / "ours.tagged", forms["float32"], long]
        found[f"kcrf-tag, {threads}"] = rates(command)
    found["kcrf-tag, int8, 1"] = rates([tagger, "-o", BUILD / "int8.tagged", forms["int8"], long])
    found["kcrf tag, 1"] = rates(kcrf("tag", "-m", model, "--threads", 1, long, "-o", BUILD / "python.tagged"))
    same = (BUILD / "ours.tagged").read_bytes() == (BUILD / "python.tagged").read_bytes()
    for name, command in peers(folder / "train.conll").items():
        source = long if name == "python-crfsuite" else spaced
        found[name] = rates([source if part == "INPUT" else part for part in command])
    lines = text[: text.index("\n\n") + 2].encode()
    first = [first_line([str(tagger), str(forms["float32"])], lines) for _ in range(3 * repeat)]
    one = found["kcrf-tag, 1"]
    bar = 3e6 if os.uname().machine == "x86_64" else 2e6
    note = f"{tokens:,} tokens, file to file; {'the same bytes as kcrf tag' if same else 'labels DIFFER from kcrf tag'}"
    rows: list[Row] = [limit("kcrf-tag, one thread", one, bar, "tokens/s", most=False, note=note)]
    rows.append(limit("kcrf-tag, first line", first, 0.02, "s"))
    if "kcrf-tag, 16" in found:
        rows.append(at_least("kcrf-tag, 16 threads against one", found["kcrf-tag, 16"], one, "tokens/s", 8))
    rows += [at_least(f"kcrf-tag against {name}", one, found[name], "tokens/s", 1) for name in found if "," not in name]
    rows.append(at_least("kcrf-tag against kcrf tag", one, found["kcrf tag, 1"], "tokens/s", 1))
    if "USADDRESS" in os.environ and "ADDRESSES" in os.environ:
        run(kcrf("import", os.environ["USADDRESS"], "-q", "-o", BUILD / "usaddress.npz"))
        run(kcrf("export", BUILD / "usaddress.npz", "-q", "-o", BUILD / "usaddress.kcrf"))
        blocks = Path(os.environ["ADDRESSES"]).read_text(encoding="utf-8").count("\n\n")
        command = [str(tagger), "-o", str(BUILD / "addresses"), str(BUILD / "usaddress.kcrf"), os.environ["ADDRESSES"]]
        found["usaddress"] = [blocks / run(command).seconds for _ in range(repeat)]
        rows.append(limit("addresses", found["usaddress"], 60_000, "addresses/s", most=False))
    sizes = {form: path.stat().st_size for form, path in forms.items()}
    save("runtime", rows, {"rates": found, "first line": first, "bytes": sizes, "same labels": same}, repeat)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3)
