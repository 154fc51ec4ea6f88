"""Templates of GROBID and AnyStyle, here and in Wapiti: templates.py WAPITI KCRF CLONE [CLONE ...].

For every template of the clones' newest commits: data with as many columns as it looks at is generated; Wapiti is
trained on it for one iteration, kcrf to the end; kcrf's model is exported for Wapiti. Patterns and strings of both
models have to be the same, and Wapiti has to give the exported model's labels as kcrf does.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from corpus import Clone

VALUES = ("a", "The", "naïve", "1999", "10-12", "(", ".", "Zürich", "_", "%", "µ", "NOCAPS", "x/y", "ab:c", "\\")
LABELS = ("<a>", "I-<a>", "<b>")
FOLDERS = ("grobid-trainer/resources/dataset", "lib/anystyle/support")
LENGTH = re.compile(rb"([0-9]+):")
PATTERN = re.compile(r"^[UuBb*].*%[xXmMtT]\[", re.M)


def templates(clone: Clone) -> dict[str, str]:
    """Return templates by path."""
    found = {}
    for path in clone.paths():
        if path.startswith(FOLDERS) and path.endswith((".template", ".txt")) and "/corpus/" not in path:
            folder, _, name = path.rpartition("/")
            text = clone.files(folder).get(name, b"").decode("utf-8", "replace")
            if path.endswith(".template") or PATTERN.search(text):
                found[path] = text
    return found


def generate(columns: int, path: Path) -> None:
    """Write sequences of one to twelve positions whose labels depend on the first column."""
    chance = random.Random(0)
    blocks = []
    for length in [*range(1, 13)] * 3:
        rows = [[chance.choice(VALUES) for _ in range(columns)] for _ in range(length)]
        blocks.append("".join(f"{' '.join(row)} {LABELS[VALUES.index(row[0]) % 3]}\n" for row in rows))
    path.write_text("\n".join(blocks), encoding="utf-8")


def parts(model: Path) -> tuple[list[bytes], list[bytes]]:
    """Return patterns and strings of a model of Wapiti."""
    data = model.read_bytes()
    found: list[list[bytes]] = []
    at = data.index(b"#rdr#")
    for _ in ("patterns", "labels", "strings"):
        at, own = data.index(b"\n", at) + 1, []
        while (matched := LENGTH.match(data, at)) is not None:
            end = matched.end() + int(matched[1])
            own.append(data[matched.end() : end])
            at = end + 2
        found.append(sorted(own))
    return found[0], found[2]


def check(wapiti: str, kcrf: str, text: str, work: Path) -> str:
    """Return what differs, or nothing."""
    template, data = work / "template", work / "data.conll"
    template.write_text(text, encoding="utf-8")
    columns = 1 + max(map(int, re.findall(r"%[xXmMtT]\[ *@?[-+]?[0-9]+ *, *([0-9]+)", text)), default=0)
    generate(columns, data)

    def run(*words: object) -> str | None:
        done = subprocess.run(list(map(str, words)), capture_output=True)
        told = done.stderr.decode("utf-8", "replace").strip().split("\n")
        return told[-1] if done.returncode else None

    theirs, ours, exported = work / "theirs.wapiti", work / "ours.npz", work / "ours.wapiti"
    failed = run(wapiti, "train", "-1", "0", "-i", "1", "-p", template, data, theirs)
    if failed:
        return f"Wapiti: {failed}"
    options = ("--sigma2", "1", "--decode", "viterbi", "--threads", "1", "-q")
    for command in (
        (kcrf, "train", "-c", template, "--wapiti", data, *options, "-o", ours),
        (kcrf, "export", ours, "-o", exported, "-q"),
        (kcrf, "tag", "-m", ours, data, "-q", "-o", work / "ours.tagged"),
        (wapiti, "label", "-c", "-m", exported, data, work / "theirs.tagged"),
    ):
        failed = run(*command)
        if failed:
            return f"{command[1]}: {failed}"
    for what, mine, wanted in zip(("patterns", "strings"), parts(exported), parts(theirs), strict=True):
        if mine != wanted:
            more, less = Counter(mine) - Counter(wanted), Counter(wanted) - Counter(mine)
            return f"{what}: {more.total()} more, {less.total()} less, as {[*more, *less][:6]}"
    labels = [
        [line.split()[-1:] for line in (work / name).read_text().split("\n")]
        for name in ("ours.tagged", "theirs.tagged")
    ]
    rows = [list(filter(None, one)) for one in labels]
    return "" if rows[0] == rows[1] else f"{sum(map(list.__ne__, *rows))} labels differ"


def main() -> None:
    wapiti, kcrf, *clones = sys.argv[1:]
    known: dict[str, str] = {}
    passed = total = 0
    with tempfile.TemporaryDirectory() as folder:
        for clone in clones:
            for path, text in templates(Clone(Path(clone))).items():
                if text not in known:
                    known[text] = check(wapiti, kcrf, text, Path(folder))
                total, passed = total + 1, passed + (not known[text])
                print(f"{path}: {known[text] or 'the same patterns, strings and labels'}", flush=True)
    print(f"{passed} of {total} templates, {sum(not one for one in known.values())} of {len(known)} different ones")


if __name__ == "__main__":
    main()
