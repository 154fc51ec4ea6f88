"""Letters: kernel training and tagging beside scikit-learn on OCR, and passes beside bare BLAS.

letters.py kernel|efficiency DATA REPEAT
letters.py svc|nystroem DATA REPEAT     runs of peers that `kernel` needs, so that they can be made apart
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median

from measure import BUILD, HERE, Row, at_least, at_most, job, kcrf, kept, limit, repeated, run, said, save

CONFIG = HERE.parent / "ocr" / "poly3.yaml"  # sigma2 80 / 3 (node / edge), chosen within training data
PIVOTS, TOLERANCE = 1000, 1e-2
PEERS = ("svc", "nystroem")
COPIES = 40  # of the test data, for tagging


def split(data: Path) -> tuple[Path, Path]:
    """Training data, folds 1-9, and test data, fold 0."""
    BUILD.mkdir(exist_ok=True)
    train, test = BUILD / "large.train.conll", BUILD / "large.test.conll"
    if not test.exists():
        script = HERE.parent / "ocr" / "split.py"
        run([sys.executable, script, data / "all.conll", data / "folds.txt", "large", train, test])
    return train, test


def peer(name: str, data: Path, repeat: int) -> list[dict]:
    """Return what a kernel machine of scikit-learn took, which is trained unless it has been."""
    return kept(name, repeat, lambda: said(run(job("sklearn_jobs", name, *split(data)))))


def kernel(data: Path, repeat: int) -> None:
    train, test = split(data)
    model, tagged, long = BUILD / "ocr.npz", BUILD / "ocr.tagged", BUILD / "large.long.conll"
    text = test.read_text(encoding="utf-8")
    long.write_text(text * COPIES, encoding="utf-8")
    letters = sum(1 for line in text.split("\n") if line)
    svc, nystroem = (peer(name, data, repeat) for name in PEERS)
    options = ["-c", CONFIG, "--size", PIVOTS, "--tolerance", TOLERANCE, "-q"]
    trained = repeated(repeat, lambda: run(kcrf("train", train, *options, "-o", model)).seconds)
    rates = repeated(repeat, lambda: COPIES * letters / run(kcrf("tag", "-m", model, long, "-o", tagged)).seconds)
    error = 100 * (1 - json.loads(run(kcrf("evaluate", "-m", model, test, "--json")).said)["accuracy"])
    fits = {name: [found["fit_seconds"] for found in runs] for name, runs in (("svc", svc), ("nystroem", nystroem))}
    predicts = [found["letters_per_second"] for found in svc]
    middle = [median(values) for values in (trained, fits["nystroem"])]
    errors = f"letter error {error:.2f} % against {svc[0]['error']:.2f} %"
    rows = [
        at_most(
            "kernel training, OCR poly-3, against SVC", trained, fits["svc"], "s", 1 / 5, f"file to model; {errors}"
        ),
        at_least(
            "kernel tagging, OCR, against SVC", rates, predicts, "letters/s", 100, "file to file; SVC predict alone"
        ),
        limit("letter error, OCR large, 1,000 pivots", [error], 6.2, "%"),
        Row(
            "kernel training, against Nystroem + LogisticRegression",
            *middle,
            "s",
            middle[0] / middle[1],
            1.0,
            True,
            f"no bar was set; its letter error {nystroem[0]['error']:.2f} %, without a chain",
        ),
    ]
    save("kernel", rows, {"kcrf": trained, "rates": rates, "error": error, "svc": svc, "nystroem": nystroem}, repeat)


def efficiency(data: Path, repeat: int) -> None:
    train, _ = split(data)
    rows, details = [], {}
    for M, labels, bar in ((1000, 26, 1.4), (4000, 26, 1.25), (1000, 2, 1.0)):
        found = [said(run(job("pass_jobs", "ocr", train, M, labels, 2))) for _ in range(repeat)]
        details[f"pass_{M}_{labels}"] = found
        seconds = [[one[key] for one in found] for key in ("seconds", "bare_seconds")]
        rows.append(at_most(f"one pass against bare BLAS, Y = {labels}, M = {M:,}", *seconds, "s", bar, "two threads"))
    for Y, bar in ((2, 10e6), (26, 1.0e6)):
        rates = repeated(repeat, lambda Y=Y: said(run(job("pass_jobs", "chain", Y)))["rate"])
        details[f"chain_{Y}"] = rates
        rows.append(limit(f"forward-backward on one core, Y = {Y}", rates, bar, "positions/s", most=False))
    save("efficiency", rows, details, repeat)


if __name__ == "__main__":
    group, folder, count = sys.argv[1:]
    if group in PEERS:
        print(peer(group, Path(folder) / "ocr", int(count)))
    else:
        globals()[group](Path(folder) / "ocr", int(count))
