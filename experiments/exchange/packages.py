"""PyPI packages with models of CRFsuite: labels, marginals and time with python-crfsuite's tagger and with ours.

Each package labels the same lines twice; in the second run its tagger is replaced by one of ours on the same file.
Lines are those of the examples in the package's repository, where a clone of it is given, and others made from parts.
Times are those inside `Tagger.tag`, the smallest of several rounds that take turns, and with opening the file besides.
"""

from __future__ import annotations

import argparse
import html
import os
import random
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pycrfsuite
import results

from kcrf_core import pycrfsuite as ours

ROUNDS = 3
STREETS = ("Main", "Oak", "Wacker", "1st", "W. 42nd", "Martin Luther King", "Elm", "Peachtree", "Rue de l'Église")
TYPES, TOWNS = ("St", "Ave", "Blvd", "Dr", "Rd.", ""), ("Chicago", "New York", "Los Angeles", "Springfield")
NAMES = (
    "John",
    "Mary Ann",
    "O'Neill",
    "de la Cruz",
    "Dr. Smith",
    "Müller & Sons",
    "Acme Holdings LLC",
    "J. R. R.",
    "Wu",
)


def addresses(count: int) -> Iterator[str]:
    rng = random.Random(1)
    for _ in range(count):
        street = f"{rng.choice(('N ', 'S. ', 'West ', ''))}{rng.choice(STREETS)} {rng.choice(TYPES)}"
        room = f"{rng.choice(('Apt ', '#', 'Suite ', 'PO Box ', ''))}{rng.randint(1, 99)}"
        state = f"{rng.choice(('IL', 'NY'))} {rng.randint(10000, 99999)}"
        yield f"{rng.randint(1, 9999)} {street} {room}, {rng.choice(TOWNS)}, {state}"


def people(count: int) -> Iterator[str]:
    rng = random.Random(2)
    for _ in range(count):
        yield " ".join(rng.choice(NAMES) for _ in range(rng.randint(1, 4)))


def thai(count: int) -> Iterator[str]:
    rng = random.Random(3)
    letters = "กขคงจชซญดตถทนบปผพฟมยรลวสหอฮะาิีุูเแโไ่้ "
    for _ in range(count):
        yield "".join(rng.choice(letters) for _ in range(rng.randint(5, 40)))


def examples(clone: str | None, folders: Sequence[str]) -> list[str]:
    """The strings of a repository's labelled examples, each once; not all of these files are well-formed XML."""
    paths = [path for each in folders for path in sorted(Path(clone).glob(f"{each}/*.xml"))] if clone else []
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in paths)
    marked = (one for text in texts for _, one in re.findall(r"(?s)<(AddressString|Name)>(.*?)</\1>", text))
    strings = (" ".join(html.unescape(re.sub("<[^<>]*>", "", one)).split()) for one in marked)
    return list(dict.fromkeys(string for string in strings if string))


def folder(module: Any) -> str:
    return os.path.dirname(module.__file__)


def packages() -> Iterator[tuple[str, str, Callable[[str], Any], Callable[[int], Iterator[str]]]]:
    """Name, model file, features of a line, and lines."""
    import probablepeople
    import usaddress

    yield (
        "usaddress",
        os.path.join(folder(usaddress), usaddress.MODEL_FILE),
        lambda line: usaddress.tokens2features(usaddress.tokenize(line)),
        addresses,
    )
    for kind in ("generic", "person", "company"):
        path = os.path.join(folder(probablepeople), f"{kind}_learned_settings.crfsuite")
        yield f"probablepeople, {kind}", path, probablepeople_features, people
    try:
        import pythainlp
    except ImportError:
        return
    for name in ("sentenceseg_crfcut.model", "han_solo.crfsuite"):
        yield f"pythainlp, {name}", os.path.join(folder(pythainlp), "corpus", name), letters_features, thai


def probablepeople_features(line: str) -> Any:
    import probablepeople

    return probablepeople.tokens2features(probablepeople.tokenize(line))


def letters_features(line: str) -> list[list[str]]:
    """Letters around each position, in the manner of pythainlp's segmenters."""
    out = []
    for t in range(len(line)):
        near = [f"{k:+d}:{line[t + k]}" for k in range(-3, 4) if 0 <= t + k < len(line)]
        out.append(["bias", *near, *(f"char={one[-1]}" for one in near), f"word={line[t : t + 3]}"])
    return out


def timed(tagger_class: Any, path: str, sequences: list[Any]) -> tuple[float, float, list[list[str]]]:
    """Seconds inside `tag`, seconds of opening, and labels."""
    began = time.perf_counter()
    tagger = tagger_class()
    tagger.open(path)
    opened = time.perf_counter()
    found = [tagger.tag(items) for items in sequences]
    return time.perf_counter() - opened, opened - began, found


def marginals(path: str, sequences: list[Any]) -> tuple[int, float]:
    """How many marginals there are, of all labels at all positions, and by how much they differ at most."""
    taggers = [module.Tagger() for module in (pycrfsuite, ours)]
    for tagger in taggers:
        tagger.open(path)
    labels, count, largest = taggers[0].labels(), 0, 0.0
    for items in sequences:
        for tagger in taggers:
            tagger.set(items)
        one, other = ([tagger.marginal(label, t) for t in range(len(items)) for label in labels] for tagger in taggers)
        count += len(one)
        largest = max(largest, *(abs(a - b) for a, b in zip(one, other, strict=True)))
    return count, largest


def compared(path: str, sequences: list[Any]) -> dict[str, Any]:
    times: dict[Any, list[tuple[float, float]]] = {pycrfsuite: [], ours: []}
    labels = {}
    for _ in range(ROUNDS):
        for module in times:
            spent, opening, labels[module] = timed(module.Tagger, path, sequences)
            times[module].append((spent, spent + opening))
    count, largest = marginals(path, sequences)
    tag, whole = (min(one[k] for one in times[ours]) / min(one[k] for one in times[pycrfsuite]) for k in (0, 1))
    return {
        "lines": len(sequences),
        "lines with other labels": sum(a != b for a, b in zip(labels[pycrfsuite], labels[ours], strict=True)),
        "marginals": count,
        "largest difference of marginals": largest,
        "seconds of python-crfsuite": round(min(one[0] for one in times[pycrfsuite]), 3),
        "time in tag, ours to theirs": round(tag, 3),
        "with opening": round(whole, 3),
    }


def through_the_package(lines: list[str]) -> dict[str, int]:
    """`usaddress.parse` itself, with its tagger replaced."""
    import usaddress

    before = [usaddress.parse(line) for line in lines]
    theirs, usaddress.TAGGER = usaddress.TAGGER, ours.Tagger()
    usaddress.TAGGER.open(os.path.join(folder(usaddress), usaddress.MODEL_FILE))
    after = [usaddress.parse(line) for line in lines]
    usaddress.TAGGER = theirs
    return {"lines": len(lines), "different": sum(a != b for a, b in zip(before, after, strict=True))}


def escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace(":", "\\:")


LOOP = r"""
import re, sys, pycrfsuite
field = re.compile(r"((?:\\.|[^:\\])*)(?::(.*))?$").match
tagger = pycrfsuite.Tagger()
tagger.open(sys.argv[1])
with open(sys.argv[2], encoding="utf-8") as stream, open(sys.argv[3], "w", encoding="utf-8") as out:
    items = []
    for line in stream:
        line = line.rstrip("\n")
        if line:
            item = {}
            for one in line.split("\t")[1:]:
                if "\\" not in one:
                    name, _, value = one.partition(":")
                else:
                    name, value = field(one).groups()
                    name = name.replace("\\:", ":").replace("\\\\", "\\")
                item[name] = float(value) if value else 1.0
            items.append(item)
        elif items:
            out.write("\n".join(tagger.tag(items)) + "\n\n")
            items = []
"""


def attribute_file(path: str, sequences: list[Any], kcrf: str) -> dict[str, Any]:
    """`kcrf tag` of an attribute file beside a loop in Python that reads it and tags with python-crfsuite."""
    data, loop = Path("build/packages.crfsuite"), Path("build/loop.py")
    loop.write_text(LOOP)
    label = pycrfsuite.Tagger()
    label.open(path)
    with data.open("w", encoding="utf-8") as stream:
        for items in sequences:
            for item in pycrfsuite.ItemSequence(items).items():
                fields = [escaped(name) + ("" if value == 1 else f":{value:g}") for name, value in item.items()]
                stream.write("\t".join([label.labels()[0], *fields]) + "\n")
            stream.write("\n")
    model = "build/packages.npz"
    subprocess.run([kcrf, "import", path, "-o", model, "-q"], check=True)
    commands = {
        "loop": [os.sys.executable, str(loop), path, str(data), "build/loop.labels"],
        "kcrf": [kcrf, "tag", "-m", model, str(data), "-o", "build/kcrf.labels", "-q"],
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            before = os.times()
            subprocess.run(command, check=True)
            after = os.times()
            seconds[name].append(after.children_user - before.children_user)
    own = re.sub(r"(?m)^[^\t\n]*\t", "", Path("build/kcrf.labels").read_text(encoding="utf-8"))
    return {
        "megabytes": round(data.stat().st_size / 1e6, 1),
        "same labels": own == Path("build/loop.labels").read_text(encoding="utf-8"),
        "CPU seconds of the loop": round(min(seconds["loop"]), 2),
        "CPU seconds of kcrf tag": round(min(seconds["kcrf"]), 2),
        "ours to theirs": round(min(seconds["kcrf"]) / min(seconds["loop"]), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--kcrf", default="kcrf")
    parser.add_argument("--usaddress", help="a clone of its repository, for the examples there")
    parser.add_argument("--probablepeople", help="likewise")
    options = parser.parse_args()
    known = {
        "usaddress": examples(options.usaddress, ["measure_performance/test_data", "training"]),
        "probablepeople": examples(options.probablepeople, ["name_data/labeled", "tests"]),
    }
    found: dict[str, Any] = {}
    for name, path, features, made in packages():
        own = known.get(name.partition(",")[0], [])
        own = own[:: -(-2 * len(own) // options.lines) or 1]  # half of all lines at most, from all files
        lines = list(islice(chain(own, made(options.lines)), options.lines))
        sequences = [items for items in map(features, lines) if items]
        found[name] = {"examples of its own": len(own)} | compared(path, sequences)
        if name == "usaddress":
            found["usaddress.parse"] = through_the_package(lines)
            found["usaddress, attribute file"] = attribute_file(path, sequences, options.kcrf)
    results.add("packages", found)


if __name__ == "__main__":
    main()
