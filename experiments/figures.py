"""Figures of README.md and docs/figures.md, which are those of the tables in experiments/*/README.md.

figures.py                     write them again, from the tables
figures.py --check             exit with 1 if they differ from the tables
figures.py --older [VERSION]   list tables that state a version before VERSION (default: the last release), or none;
                               exit with 1 if there are any
figures.py --take FOLDER       put tables, plots and results of another machine in their places, then write figures;
                               FOLDER/experiments has the folders of experiments
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
from readme import blocks, put, table

ROOT = Path(__file__).parents[1]
RELEASE = re.compile(r"^## (\d+\.\d+\.\d+)(?! \(unreleased\))", re.MULTILINE)
VERSION = re.compile(r"\bkcrf (\d+\.\d+\.\d+)")
LETTERS = "OCR, fold 0 → folds 1-9, 4,617 → 47,535 letters", "OCR, folds 1-9 → fold 0, 47,535 → 4,617 letters"
CHUNKS = "CoNLL-2000 chunking, 211,727 → 47,377 tokens"
PROSODY = "Helsinki prosody, dev → test, 99,200 → 90,063 words"


def table_rows(root: Path, place: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield header and cells of each row at EXPERIMENT or EXPERIMENT/BLOCK."""
    experiment, _, name = place.partition("/")
    text = blocks(root / f"experiments/{experiment}/README.md")[name or "table"]
    lines = [[each.strip() for each in line[1:-1].split("|")] for line in text.split("\n") if line.startswith("|")]
    header: list[str] = []
    for before, line in pairwise([[], *lines]):
        if all(re.fullmatch("-+:?", each) for each in line):
            header = before
        else:
            yield header, line


def cell(root: Path, place: str, row: str, column: str) -> str:
    """Return a cell; `row` is the first cells of its row, joined by a bar."""
    for header, line in table_rows(root, place):
        if line[: row.count("|") + 1] == row.split("|") and column in header:
            return line[header.index(column)]
    raise SystemExit(f"experiments/{place}: no row {row!r} with a column {column!r}")


def accuracy(root: Path) -> str:
    def chunks(row: str) -> str:
        return f"F1 {cell(root, 'chunking', row, 'F1, test')}"

    def letters(row: str, place: str = "ocr", column: str = "letter error %") -> str:
        return f"letter error {cell(root, place, row, column)} %"

    def mean(task: str, row: str) -> list[tuple[str, str, str]]:
        """A row if all ten folds were measured."""
        if f"| {row.replace('|', ' | ')} | 10 |" not in blocks(root / "experiments/ocr/README.md")["folds"]:
            return []
        found = [cell(root, "ocr/folds", row, column) for column in ("letter error %", "deviation")]
        return [(task, "the same", f"letter error {found[0]} ± {found[1]} % (mean and standard deviation of ten)")]

    def prosody(row: str, least: str) -> str:
        return f"accuracy {cell(root, 'prosody', row, 'accuracy %')} % (majority per word: {least} %)"

    def default(row: str) -> str:
        return cell(root, "defaults", row, "kcrf, no configuration")

    small, large = LETTERS
    pairs = "`pairs`: degree 2"
    triples = "`triples`: degree 3 of the same, conjunctions in at least two positions"
    rows = [
        (CHUNKS, "`train`", f"F1 {default('CoNLL-2000')}"),
        ("the same", "`train --plain`: words and tags in a window of five", chunks("linear")),
        ("the same", "`train -c experiments/chunking/pairs.yaml`: all pairs, exact", chunks(pairs)),
        ("the same, with suffixes and shapes of words", "`-c experiments/chunking/triples.yaml`", chunks(triples)),
        (small, "`train -c experiments/ocr/linear.yaml`", letters("small|linear|1")),
        ("the same", "`-c experiments/ocr/poly3.yaml --size 3000`", letters("small|poly3|1|3,000")),
        ("the same", "`-c experiments/ocr/image.yaml --size 3000`: pixels that know their neighbours",
         letters("small|image|1|3,000")),
        *mean("each fold → the other nine", "small|image|1|3,000"),
        (large, "`train -c experiments/ocr/poly3.yaml --size 4000`", letters("large|poly3|1|4,000")),
        ("the same", "`-c experiments/ocr/poly3.yaml --size 20000 --engine cuda`",
         letters("OCR large, poly-3, 20,000 pivots|cuda", "gpu/commands", "error %")),
        ("the same", "`-c experiments/ocr/image.yaml --size 4000`", letters("large|image|1|4,000")),
        *mean("nine folds → the tenth, each once", "large|image|1|4,000"),
        (f"{small}, second order", "`train --kernel rbf --gamma 0.03 --size 1000 --sigma2 10 --order 2`",
         f"{letters('small|rbf|2|1,000')} (55 words, all of them in the training data)"),
        (f"{large}, second order", "the same",
         f"{letters('large|rbf|2|1,000')} (likewise; for unseen words see `experiments/ocr`)"),
        (f"{PROSODY}, 2 classes", "`train`", f"accuracy {default('Helsinki prosody, 2 classes')} %"),
        ("the same", "`-c experiments/prosody/words.yaml`: parts of words, pairs of features",
         prosody("2|words", "80.2")),
        ("the same, 3 classes", "`-c experiments/prosody/words.yaml`", prosody("3|words", "60.4")),
        ("CRF++ example `chunking`, 77 → 823 sentences", "`train`", f"F1 {default('CRF++ chunking')}"),
    ]  # fmt: skip
    return table(("task (training → test)", "command", "result"), rows, 3)


# Rows of experiments/speed, what they are called here, and what stands beside the figure of the peer.
SPEED = {
    "encoding, CoNLL file to dataset": (
        "CoNLL-2000: file to encoded data", "attributes built and appended for CRFsuite"),
    "linear training until P is within 0.1 %, 2 threads": (
        "training until P is within 0.1 % of its optimum, two threads", "CRFsuite, same objective"),
    "linear training until P is within 0.1 %, 1 thread": ("the same, one thread", "CRFsuite"),
    "from file to model": ("file to model", "CRFsuite, observed features, 100 iterations"),
    "peak memory of linear training": ("peak memory of training", "CRFsuite, same objective"),
    "tagging, linear model": ("tagging, file to file", "python-crfsuite"),
    "kernel training, OCR poly-3, against SVC": ("OCR: training, poly-3, 1,000 pivots", "`SVC`, poly-3"),
    "kernel tagging, OCR, against SVC": ("OCR: tagging", "`SVC`"),
    "one pass against bare BLAS, Y = 26, M = 4,000": (
        "one pass, 26 labels, 4,000 pivots", "its two matrix products by bare BLAS"),
    "kcrf tag of ten lines, linear CoNLL-2000 model": (
        "`kcrf tag` of ten lines, linear CoNLL-2000 model", "start and loading included; the limit we set"),
}  # fmt: skip


def times(root: Path, what: str) -> float:
    """How many times as fast kcrf is as its peer, for seconds and for rates."""
    ratio = float(cell(root, "speed", what, "ratio"))
    return ratio if cell(root, "speed", what, "kcrf").endswith("/s") else 1 / ratio


def speed(root: Path) -> str:
    rows = []
    for what, (title, peer) in SPEED.items():
        own, other, ratio = (cell(root, "speed", what, column) for column in ("kcrf", "peer or limit", "ratio"))
        faster = times(root, what) >= 2 and "MB" not in own and "limit" not in peer
        compared = f"{times(root, what):.1f} times as fast" if faster else f"{ratio} of it"
        rows.append((title, own, f"{other}, {peer}", compared))
    return table(("what", "kcrf", "beside it", ""), rows, 4)


def taggers(root: Path) -> str:
    """Tokens per second of each program, without its start and with it, and below it times by the clock."""
    rates, clock = {"tokens/s": "", "test part": ", start included"}, "by the clock"
    programs: dict[str, dict[str, str]] = {}
    times = []
    for header, line in table_rows(root, "speed/taggers"):
        row = dict(zip(header, line, strict=False))
        if row.get(clock, clock) != clock:  # neither of the other table nor the header itself
            times.append(line)
        for rate, more in rates.items():
            if row.get(rate, rate) != rate:
                programs.setdefault(row["program"], {})[row["processor"] + more] = row[rate]
    columns = list(dict.fromkeys(column for found in programs.values() for column in found))
    rows = ([program, *(found.get(one, "") for one in columns)] for program, found in programs.items())
    tables = [table(("tokens/s", *columns), rows)] + [table(("what", "processor", clock), times, 3)] * bool(times)
    return "\n\n".join(tables)


GPU = (
    "OCR large, poly-3, 4,000 pivots", "OCR large, poly-3, 20,000 pivots",
    "OCR large, image, second order, 4,000 pivots", "CoNLL-2000, all pairs", "CoNLL-2000, triples and suffixes",
)  # fmt: skip


def gpu(root: Path) -> str:
    rows = []
    for what in GPU:
        seconds, solving, error, f1 = (
            cell(root, "gpu/commands", f"{what}|cuda", column) for column in ("seconds", "solving", "error %", "F1")
        )
        try:
            threads = f"{cell(root, 'gpu/commands', f'{what}|threads', 'seconds')} s"
        except SystemExit:
            threads = "not measured"
        figure = f"F1 {f1}" if f1 else f"letter error {error} %"
        rows.append((f"{what}, {figure}", f"{seconds} s, {solving} of it solving", threads))
    return table(("what", "`--engine cuda`", "16 threads"), rows, 3)


def sentences(root: Path) -> Iterator[tuple[str, list[str]]]:
    """Return patterns of README.md, each with the figures that its groups must be."""
    two, one = (times(root, f"linear training until P is within 0.1 %, {n}") for n in ("2 threads", "1 thread"))
    yield (
        r"an L2 penalty and all states, (\d+) times as fast to 0.1 % of the optimum \((\d+) times on one thread\)",
        [f"{two:.0f}", f"{one:.0f}"],
    )
    errors = (cell(root, "ocr", f"small|{row}", "letter error %") for row in ("linear|1", "image|1|3,000"))
    yield (
        r"OCR letter error ([\d.]+) % with a linear CRF, ([\d.]+) % with an image kernel",
        [f"{float(error):.1f}" for error in errors],
    )
    yield (
        r"(\d+) data sets that nothing was developed on\]\(experiments/others/README.md\), "
        r"at least as accurate as CRFsuite with a tuned penalty on (\d+); "
        r"significantly better than the better of CRFsuite and an SVM on (\d+), worse on (\d+) \|",
        list(map(str, beside_peers(root))),
    )
    seconds, passes, reached = (
        cell(root, "grobid/whole", "header|L2|kcrf", column) for column in ("seconds", "iterations or passes", "last P")
    )
    iterations, stopped = (
        cell(root, "grobid/whole", "header|L2|Wapiti, l-bfgs", column) for column in ("iterations or passes", "last P")
    )
    yield (
        r"L2 optimum after (\d+) s and (\d+) passes. Both programs were stopped then: Wapiti's l-bfgs had done (\d+) "
        r"iterations, and its objective was (\d+) times",
        [seconds, passes, iterations, f"{number(stopped) / number(reached):.0f}"],
    )


def number(text: str) -> float:
    return float(text.replace(",", ""))


def beside_peers(root: Path) -> tuple[int, int, int, int]:
    """Count validation sets, those where CRFsuite is no better, and those with a better or a worse peer (Holm)."""
    rows = [dict(zip(header, line, strict=True)) for header, line in table_rows(root, "others/validation") if header]
    level = sum(float(row["no configuration"]) >= float(row["CRFsuite"]) for row in rows)
    apart = []
    for row in rows:
        corrected = float(row["p (Holm), none and peer"].split("(")[1].rstrip(")"))
        if corrected < 0.05:
            peer = max(float(row[name]) for name in ("CRFsuite", "SVC") if row[name])
            apart.append(float(row["no configuration"]) - peer)
    better = sum(difference > 0 for difference in apart)
    return len(rows), level, better, len(apart) - better


def with_figures(text: str, root: Path) -> str:
    """Return the text of README.md with the figures of the tables."""
    for pattern, figures in sentences(root):
        found = re.search(pattern.replace(" ", r"\s+"), text)
        if found is None:
            raise SystemExit(f"README.md: no sentence {pattern!r}")
        for number, figure in reversed(list(enumerate(figures, 1))):
            text = text[: found.start(number)] + figure + text[found.end(number) :]
    return text


def write(root: Path, check: bool = False) -> list[str]:
    """Write all figures, unless `check`; return the names of pages that differed."""
    differed = []
    page = root / "docs/figures.md"
    for name, made in (("accuracy", accuracy), ("speed", speed), ("taggers", taggers), ("gpu", gpu)):
        body = made(root)
        if blocks(page)[name] != body:
            differed.append(f"docs/figures.md: {name}")
            if not check:
                put(page, name, body)
    readme = root / "README.md"
    text = readme.read_text(encoding="utf-8")
    if with_figures(text, root) != text:
        differed.append("README.md")
        if not check:
            readme.write_text(with_figures(text, root), encoding="utf-8")
    return differed


def last_release(changelog: str) -> str:
    """Return the first version of a changelog that is not marked as unreleased."""
    found = RELEASE.search(changelog)
    if found is None:
        raise SystemExit("CHANGELOG.md: no version is released yet; name one: --older VERSION")
    return found[1]


def older(root: Path, version: str) -> Iterator[str]:
    """List the tables whose line of origin has an earlier version, or none."""
    for readme in sorted(root.glob("experiments/*/README.md")):
        for name, body in blocks(readme).items():
            origin = body.rsplit("\n\n", 1)[-1]
            stated = VERSION.findall(origin) if origin.startswith("(") else []
            if not stated or any(_parts(each) < _parts(version) for each in stated):
                said = f"kcrf {', '.join(stated)}" if stated else "no version stated"
                yield f"{readme.relative_to(root)}: {name}: {said}"


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def take(root: Path, folder: Path) -> None:
    """Copy tables between markers, plots and results from the experiments of another checkout."""
    pages = sorted(folder.glob("experiments/*/README.md"))
    if not pages:
        raise SystemExit(f"{folder}: there is no experiments/*/README.md")
    for page in pages:
        own = root / page.relative_to(folder)
        for name, body in blocks(page).items():
            if blocks(own).get(name) != body:
                put(own, name, body)
                print(f"{page.relative_to(folder)}: {name}")
    for pattern in ("*.png", "*.json"):
        for path in sorted(folder.glob(f"experiments/*/{pattern}")):
            shutil.copyfile(path, root / path.relative_to(folder))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true")
    what.add_argument("--older", nargs="?", const="", metavar="VERSION")
    what.add_argument("--take", type=Path, metavar="FOLDER")
    given = parser.parse_args()
    if given.older is not None:
        version = given.older or last_release((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
        found = list(older(ROOT, version))
        print("\n".join(found) or f"no table is older than {version}")
        sys.exit(bool(found))
    if given.take:
        take(ROOT, given.take)
    differed = write(ROOT, given.check)
    print("\n".join(differed) or "figures agree with the tables")
    sys.exit(given.check and bool(differed))


if __name__ == "__main__":
    main()
