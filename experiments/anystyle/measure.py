"""One way to label one fold: measure.py ROW FOLD DATA OUT [--wapiti PROGRAM] [--kcrf PROGRAM] [--search OPTIONS].

DATA is the folder of `corpus.py`. A model is trained on FOLD.train, everything is chosen there, and FOLD.test is
labelled: OUT/ROW-FOLD.tagged has gold and predicted labels, OUT/ROW-FOLD.viterbi those of Viterbi decoding, whatever
the model has by default, and OUT/ROW-FOLD.json the processor seconds of each command, and the last lines that it
printed. All programs run in one thread unless --threads says otherwise.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from readme import code, machine

LEXICONS = ("name", "place", "publisher", "journal")
SAID = 12  # lines of training that are kept

# Rows by name: title in the table, ending of the files, and options of `kcrf train`.
TEMPLATE = ["-c", "{data}/template", "--wapiti"]
ROWS = {
    "wapiti": ("Wapiti, AnyStyle's template and settings", "", None),
    "crfsuite": ("python-crfsuite, features of words by hand", ".words", None),
    "template": ("kcrf, the same template", "", TEMPLATE),
    "sigma2": ("kcrf, the same template, sigma2 1", "", [*TEMPLATE, "--sigma2", "1", "--decode", "viterbi"]),
    "penalty": ("kcrf, the same template and penalty", "",
                [*TEMPLATE, "--c1", "0.5", "--sigma2", "10000", "--decode", "viterbi"]),
    "words": ("kcrf, no configuration: words", ".words", []),
    "lexicon": ("kcrf, no configuration: words and dictionary", ".words",
                [option for name in LEXICONS for option in ("--lexicon", f"{name}={{data}}/{name}.txt")]),
    "columns": ("kcrf, no configuration: AnyStyle's columns", "", []),
    "tune": ("kcrf tune, begun with the template", "", TEMPLATE),
}  # fmt: skip


def run(command: list[str]) -> str:
    """Run a command, show what it prints, and return that."""
    found = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8")
    print(found.stdout, flush=True)
    if found.returncode:
        raise SystemExit(f"{' '.join(command)}: exit status {found.returncode}")
    return found.stdout


def commands(asked: argparse.Namespace, work: Path) -> list[list[str]]:
    """Return the commands of a row: training, and those that write tagged data to `work`."""
    _, ending, options = ROWS[asked.row]
    train, test = (str(asked.data / f"{asked.fold}.{part}{ending}") for part in ("train", "test"))
    tagged, model, threads = str(work / "tagged"), str(work / "model.npz"), ["--threads", str(asked.threads)]
    if asked.row == "crfsuite":
        return [[sys.executable, str(Path(__file__).with_name("crfsuite.py")), train, test, tagged]]
    if options is None:  # `compact` is set by AnyStyle, all else a default of Wapiti
        how = ["-c", "-t", str(asked.threads), "-p", str(asked.data / "template")]
        return [[asked.wapiti, "train", *how, train, model], [asked.wapiti, "label", "-m", model, test, tagged]]
    own = [option.format(data=asked.data) for option in options]
    learn = [asked.kcrf, "train", train, *own, "-o", model, *threads]
    if asked.row == "tune":
        search = asked.search.split()
        learn = [asked.kcrf, "tune", train, *own, *search, "-o", str(work / "config.yaml"), "-m", model, *threads]
    label = [asked.kcrf, "tag", "-m", model, test, *threads, "-o"]
    return [learn, [*label, tagged], [*label, str(work / "viterbi"), "--decode", "viterbi"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("row", choices=ROWS)
    parser.add_argument("fold", type=int)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--wapiti", default="wapiti")
    parser.add_argument("--kcrf", default="kcrf")
    parser.add_argument("--search", default="", help="options of `kcrf tune`, as '--budget 5m'")
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        seconds, said = [], []
        for command in commands(asked, Path(folder)):
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            said.append(run(command).splitlines()[-SAID:])
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            seconds.append([round(used, 1), round(time.perf_counter() - began, 1)])
        found = {name: Path(folder, name).read_text(encoding="utf-8").split("\n")
                 for name in ("viterbi", "tagged") if Path(folder, name).exists()}  # fmt: skip
        chosen = Path(folder, "config.yaml")
        config = chosen.read_text(encoding="utf-8") if chosen.exists() else ""
    about = {"row": asked.row, "fold": asked.fold, "seconds": seconds, "threads": asked.threads, "search": asked.search,
             "memory": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, "said": said, "config": config,
             "code": code(), "machine": machine()}  # fmt: skip
    (asked.out / f"{asked.row}-{asked.fold}.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    for name, rows in found.items():
        text = "\n".join("\t".join(row.split("\t")[-2:]) for row in rows)
        (asked.out / f"{asked.row}-{asked.fold}.{name}").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
