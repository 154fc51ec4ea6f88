"""Labels of kcrf and of the other programs, line by line; marginals of python-crfsuite for an exported model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pycrfsuite
import results

BUILD = Path("build")
FIELD = re.compile(r"((?:\\.|[^:\\])*)(?::(.*))?$")


def last_columns(path: Path) -> list[str]:
    return [line.split()[-1] for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def attribute_sequences(path: Path) -> Iterator[list[dict[str, float]]]:
    """The items of an attribute file."""
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        items = []
        for line in block.splitlines():
            found = [FIELD.match(field).groups() for field in line.split("\t")[1:]]
            items.append({re.sub(r"\\([\\:])", r"\1", name): float(value or 1) for name, value in found})
        if items:
            yield items


def main() -> None:
    found = {}
    for name in ("wapiti", "crfpp", "ours-patterns", "ours-template"):
        own, theirs = last_columns(BUILD / f"{name}.tagged"), last_columns(BUILD / f"{name}.theirs")
        different = sum(map(str.__ne__, own, theirs))
        found[name] = {"labels": len(own), "different": different + abs(len(own) - len(theirs))}
    tagger = pycrfsuite.Tagger()
    tagger.open(str(BUILD / "ours.crfsuite"))
    labels, different, worst, count = tagger.labels(), 0, 0.0, 0
    lines = (line.split() for line in (BUILD / "ours-columns.tagged").read_text(encoding="utf-8").splitlines())
    rows = (line for line in lines if line)
    for items in attribute_sequences(BUILD / "test.crfsuite"):
        for t, label in enumerate(tagger.tag(items)):
            row = next(rows)
            marginals = dict(pair.rsplit(":", 1) for pair in row[-1 - len(labels) : -1])
            different += row[-1] != label
            worst = max([worst, *(abs(float(marginals[one]) - tagger.marginal(one, t)) for one in labels)])
            count += 1
    found["ours-columns"] = {"labels": count, "different": different, "largest difference of marginals": worst}
    results.add("programs", found)


if __name__ == "__main__":
    main()
