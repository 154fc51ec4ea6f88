"""L1 beside CRFsuite: the same objective, c1 0.1 and c2 0.01, on CoNLL-2000 with 19 attributes.

    sparse.py theirs TRAIN MODEL LOG      CRFsuite's training, a line of JSON for each iteration
    sparse.py ours KCRF TRAIN MODEL LOG   kcrf's
    sparse.py report KCRF TEST            both in results.json; without a whole log of theirs, what there is of it

Seconds are those of processors: other work on the machine makes them a little longer, but does not count itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import results

sys.path.insert(0, str(Path(__file__).parent.parent / "speed"))

C1, C2 = 0.1, 0.01
BUILD = Path("build")


def theirs(data: str, model: str, log: str) -> None:
    from crfsuite_jobs import loaded

    trainer, _ = loaded(data)
    trainer.set_params({"c1": C1, "c2": C2, "feature.possible_states": False, "feature.possible_transitions": True})
    with open(log, "w", encoding="utf-8") as stream:

        def told(_: object, info: dict[str, Any]) -> None:
            found = {"iteration": info["num"], "loss": info["loss"], "processor": time.process_time() - began}
            stream.write(json.dumps(found) + "\n")
            stream.flush()

        trainer.on_iteration = told
        began = time.process_time()
        trainer.train(model)


def ours(kcrf: str, data: str, model: str, log: str) -> None:
    command = [kcrf, "train", "-c", "../speed/chunking.yaml", data, "--observed-features", "--threads", "1"]
    before = os.times().children_user
    subprocess.run([*command, "--c1", str(C1), "--c2", str(C2), "-o", model, "--log", log, "-q"], check=True)
    with open(log, "a", encoding="utf-8") as stream:
        stream.write(json.dumps({"event": "processor", "seconds": os.times().children_user - before}) + "\n")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def f1(kcrf: str, tagged: Path) -> float:
    """Of a file with gold labels and others behind them."""
    found = subprocess.run([kcrf, "evaluate", tagged, "--json", "-q"], check=True, capture_output=True)
    return json.loads(found.stdout)["spans"]["f1"]


def tagged_by_crfsuite(model: Path, data: Path) -> Path:
    import pycrfsuite
    from attributes import attributes, read_sentences

    tagger, out = pycrfsuite.Tagger(), BUILD / "sparse.theirs"
    tagger.open(str(model))
    with out.open("w", encoding="utf-8") as stream:
        for rows in read_sentences(str(data)):
            for row, label in zip(rows, tagger.tag(attributes(rows)), strict=True):
                stream.write(" ".join([*row, label]) + "\n")
            stream.write("\n")
    return out


def report(kcrf: str, data: str) -> None:
    import pycrfsuite

    def weights(model: Path) -> int:
        tagger = pycrfsuite.Tagger()
        tagger.open(str(model))
        return len(tagger.info().state_features) + len(tagger.info().transitions)

    iterations = lines(BUILD / "sparse.theirs.log")
    found = {
        "CRFsuite": {
            "P": iterations[-1]["loss"],
            "iterations": len(iterations),
            "CPU seconds": round(iterations[-1]["processor"], 1),
            "weights": weights(BUILD / "sparse.crfsuite"),
            "megabytes": round((BUILD / "sparse.crfsuite").stat().st_size / 1e6, 2),
            "F1": f1(kcrf, tagged_by_crfsuite(BUILD / "sparse.crfsuite", Path(data))),
        }
    }
    events = lines(BUILD / "sparse.log")
    passes = [event for event in events if event["event"] == "pass"]
    end = next(event for event in events if event["event"] == "end")
    seconds = next(event["seconds"] for event in events if event["event"] == "processor")
    enough = next(k for k, one in enumerate(passes, 1) if one["objective"] <= iterations[-1]["loss"])
    subprocess.run([kcrf, "tag", "-m", BUILD / "sparse.npz", data, "-o", BUILD / "sparse.ours", "-q"], check=True)
    subprocess.run([kcrf, "export", BUILD / "sparse.npz", "-o", BUILD / "sparse-ours.crfsuite", "-q"], check=True)
    found["kcrf"] = {
        "P": end["objective"],
        "certified gap": end["certified_gap"],
        "passes": end["passes"],
        "CPU seconds": round(seconds, 1),
        "passes to their P": enough,
        "share of their time to their P": round(seconds * enough / len(passes) / iterations[-1]["processor"], 3),
        "weights": weights(BUILD / "sparse-ours.crfsuite"),
        "megabytes": round((BUILD / "sparse.npz").stat().st_size / 1e6, 2),
        "megabytes as .crfsuite": round((BUILD / "sparse-ours.crfsuite").stat().st_size / 1e6, 2),
        "F1": f1(kcrf, BUILD / "sparse.ours"),
    }
    results.add("sparse", found)


if __name__ == "__main__":
    {"theirs": theirs, "ours": ours, "report": report}[sys.argv[1]](*sys.argv[2:])
