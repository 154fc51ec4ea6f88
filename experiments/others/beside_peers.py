"""No configuration and `kcrf tune` beside CRFsuite and support vectors. `beside_peers.py SETS HALF [NAME ...]`.

SETS is the folder that `gather.py` wrote, HALF is design or validation. The test part is labelled once by each system:
CRFsuite and, for numbers, a support vector machine (`peers.py`, in the environment of --peers), `kcrf train` without a
configuration, and `kcrf tune -m` with a budget that includes training. P-values are those of `kcrf evaluate --compare`,
paired by sequence; Holm's method corrects each column for the number of sets. Fewer than 20 test sequences are cut into
about 40 blocks for it: two recordings could never differ significantly. Blocks of a recording are not independent, so
these p-values are too small, if anything.
What is done is not done again (but see --again): OUT/HALF/NAME has the files of a set.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
sys.path += [str(FOLDER / "../tune"), str(FOLDER / "..")]

from compare import holm  # noqa: E402
from gather import SETS, half  # noqa: E402
from parts import SEED, call, sequences  # noqa: E402
from readme import blocks, fill, table  # noqa: E402

BY_F1 = ("japanese", "spanish", "ingredients")  # names and other spans
FEW, BLOCKS = 20, 40  # fewer test sequences are cut into about so many blocks
TITLES = {"crfsuite": "CRFsuite", "svc": "SVC", "none": "no configuration", "tune": "tune"}
TESTS = {
    "none and peer": ("none", None),  # with the better peer
    "tune and peer": ("tune", None),
    "tune and none": ("tune", "none"),
}


def systems(name: str) -> list[str]:
    """Return the systems of a set; a support vector machine labels numbers only."""
    return [system for system in TITLES if system != "svc" or SETS[name].kind == "numbers"]


def tagged(name: str, system: str, given: argparse.Namespace, folder: Path) -> Path:
    """Label the test part by a system, if that was not done; write the labels and what it took."""
    out, about = folder / f"{system}.tagged", folder / f"{system}.json"
    if out.exists() and about.exists() and not (given.again and system in ("none", "tune")):
        return out
    training, test = (given.sets / given.half / name / f"{part}.conll" for part in ("train", "test"))
    new, model = folder / f"{system}.new", folder / f"{system}.npz"
    own, kcrf = ("--threads", given.threads, "--seed", given.seed), given.kcrf.split()
    began, found = time.perf_counter(), {}
    if system in ("crfsuite", "svc"):
        call(
            [given.peers, FOLDER / "peers.py", system, SETS[name].kind, training, test, new, about, given.jobs], folder
        )
        found = json.loads(about.read_text())
        about.unlink()
    elif system == "none":
        call([*kcrf, "train", training, "-o", model, *own], folder)
    else:
        limit = ("--budget", given.budget, "-v", "--json")
        text = call([*kcrf, "tune", training, "-o", folder / "tune.yaml", "-m", model, *limit, *own], folder)
        found = {"chosen": json.loads(text)["chosen"]["title"]}
    seconds = time.perf_counter() - began
    if system in ("none", "tune"):
        whole = call([*kcrf, "tag", "-m", model, test, "--threads", given.threads], folder)
        lines = ["\t".join(line.split("\t")[-2:]) for line in whole.split("\n")]
        new.write_text("\n".join(lines), encoding="utf-8")
    about.write_text(json.dumps({"seconds": seconds} | found, indent=1) + "\n")
    new.rename(out)
    return out


def paired(path: Path, every: list[list[str]]) -> Path:
    """Return a tagged file whose sequences are what systems are paired by."""
    if len(every) >= FEW:
        return path
    size = max(1, round(sum(map(len, every)) / BLOCKS))
    cut = [lines[begin : begin + size] for lines in every for begin in range(0, len(lines), size)]
    out = path.with_suffix(".blocks")
    out.write_text("\n\n".join("\n".join(lines) for lines in cut) + "\n", encoding="utf-8")
    return out


def compared(name: str, given: argparse.Namespace) -> dict[str, Any]:
    """Return figures, p-values and choices of a set."""
    folder = given.out / given.half / name
    folder.mkdir(parents=True, exist_ok=True)
    kcrf = given.kcrf.split()
    files = {system: tagged(name, system, given, folder) for system in systems(name)}
    gold: list[list[str]] | None = None
    metric = "f1" if name in BY_F1 else "accuracy"
    units: dict[str, Path] = {}
    row: dict[str, Any] = {"metric": metric, "figures": {}, "p": {}, "about": {}}
    for system, path in files.items():
        every = [one.split("\n") for one in sequences(path)]
        known = [[line.split("\t")[0] for line in lines] for lines in every]
        gold = gold or known
        if known != gold:
            raise SystemExit(f"{path}: other gold labels than those of CRFsuite")
        units[system] = paired(path, every)
        scores = json.loads(call([*kcrf, "evaluate", path, "--json"], folder))
        row["figures"][system] = 100 * (scores["spans"]["f1"] if metric == "f1" else scores["accuracy"])
        row["about"][system] = json.loads((folder / f"{system}.json").read_text())
    peers = [system for system in files if system in ("crfsuite", "svc")]
    row["peer"] = peer = max(peers, key=row["figures"].__getitem__)
    for test, (first, second) in TESTS.items():
        both = [*kcrf, "evaluate", units[first], "--compare", units[second or peer], "--json"]
        row["p"][test] = json.loads(call(both, folder))["comparison"]["figures"][metric]["p_value"]
    return row


def chosen(about: dict[str, Any]) -> str:
    if "c2" in about:
        return f"{about['attributes']}, c2 {about['c2']:.2g}"
    return about.get("chosen", "") or f"window {about['window']}, C {about['C']:g}"


def rows(results: dict[str, dict[str, Any]]) -> list[list[str]]:
    corrected = {test: holm([one["p"][test] for one in results.values()]) for test in TESTS}
    return [
        [
            name,
            SETS[name].kind,
            "F1" if one["metric"] == "f1" else one["metric"],
            chosen(one["about"][one["peer"]]),
            chosen(one["about"]["tune"]),
            *(f"{one['figures'][system]:.2f}" if system in one["figures"] else "" for system in TITLES),
            *(f"{one['p'][test]:.3f} ({corrected[test][number]:.3f})" for test in TESTS),
        ]
        for number, (name, one) in enumerate(results.items())
    ]


HEADER = (
    "set", "kind", "figure", "better peer", "tune chose", *TITLES.values(), *(f"p (Holm), {test}" for test in TESTS)
)  # fmt: skip


def summary(results: dict[str, dict[str, Any]]) -> str:
    """Name the sets on which one system is behind another with a corrected p below 0.05."""
    lines = []
    for test, (first, second) in TESTS.items():
        corrected = holm([one["p"][test] for one in results.values()])
        behind = [
            name
            for (name, one), p in zip(results.items(), corrected, strict=True)
            if p < 0.05 and one["figures"][first] < one["figures"][second or one["peer"]]
        ]
        other = TITLES[second] if second else "the better peer"
        lines.append(f"{TITLES[first]} is behind {other} at p < 0.05 on: {', '.join(behind) or 'none'}.")
    return " ".join(lines)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("sets", type=Path, help="folder that gather.py wrote")
    options.add_argument("half", choices=("design", "validation"))
    options.add_argument("names", nargs="*", metavar="NAME", help="default: all of the half")
    options.add_argument("--out", type=Path, default=Path("build/beside"))
    options.add_argument("--kcrf", default="kcrf", help="the command, perhaps with words before it")
    options.add_argument("--peers", type=Path, required=True, help="Python with python-crfsuite and scikit-learn")
    options.add_argument("--budget", default="5m", help="of each search, training included")
    options.add_argument("--seed", default="0")
    options.add_argument("--threads", default="1")
    options.add_argument("--jobs", default="1", help="folds of CRFsuite at the same time")
    options.add_argument("--again", action="store_true", help="compute what kcrf does again, not what its peers do")
    options.add_argument("--report", action="store_true", help="of sets that have been computed; compute none")
    options.add_argument("--readme", type=Path, default=None, help="where to put the table, beside printing it")
    given = options.parse_args()
    given.peers = given.peers.absolute()  # not resolved: an environment is known by its link
    os.environ["OPENBLAS_NUM_THREADS"] = given.threads
    os.environ["PYTHONPATH"] = os.pathsep.join(str(FOLDER / other) for other in ("..", "../defaults"))
    names = given.names or [name for name in SETS if half(name) == given.half]
    if wrong := [name for name in names if name not in SETS or half(name) != given.half]:
        raise SystemExit(f"not in the {given.half} half: {', '.join(wrong)}")
    if given.report:
        files = {
            name: [given.out / given.half / name / f"{system}.tagged" for system in systems(name)] for name in names
        }
        names = [name for name in names if all(path.exists() for path in files[name])]
    results = {}
    for name in names:
        results[name] = compared(name, given)
        print(name, json.dumps(results[name]["figures"]), json.dumps(results[name]["p"]), flush=True)
    text = f"{table(HEADER, rows(results), 5)}\n\n{summary(results)} Budget {given.budget}, {given.threads} thread(s)."
    if given.readme is None:
        print(f"\n{text}")
    else:
        if given.half not in blocks(given.readme):
            with given.readme.open("a", encoding="utf-8") as stream:
                stream.write(f"\n<!-- {given.half} -->\n\n-\n\n<!-- end of {given.half} -->\n")
        fill(given.readme, text, SEED, name=given.half)


if __name__ == "__main__":
    main()
