"""Whole commands, file to model, on one engine: `measure.py GROUP ENGINE TRAIN TEST`; `threads` is no engine.

On a GPU each command runs twice, and the second run counts: the first one may compile and warm up. Figures are added
to build/measured.jsonl: seconds from start to end, those of import and start of the engine, those of the final fit, and
whether both runs left the same bytes. More arguments name the rows to measure, by the words that they end with.
"""

from __future__ import annotations

import filecmp
import json
import re
import subprocess
import sys
import time
from pathlib import Path

from readme import provenance

BUILD = Path("build")
GROUPS = {
    "letters": {
        **{
            f"OCR large, poly-3, {size:,} pivots": ["-c", "../ocr/poly3.yaml", "--size", str(size)]
            for size in (1000, 2000, 4000, 8000, 20000)
        },
        "OCR large, image, second order, 4,000 pivots": [
            *("-c", "../ocr/image.yaml", "--size", "4000", "--order", "2", "--sigma2", "10"),
        ],
    },
    "chunks": {
        "CoNLL-2000, all pairs": ["-c", "../chunking/pairs.yaml", "--sigma2", "100"],
        "CoNLL-2000, triples and suffixes": ["-c", "../chunking/triples.yaml", "--sigma2", "30"],
    },
}
# Rows of a GPU that threads are measured beside.
BESIDE = ("OCR large, poly-3, 1,000 pivots", "OCR large, poly-3, 4,000 pivots", "CoNLL-2000, all pairs")


def main(group: str, engine: str, train: str, test: str, *words: str) -> None:
    for name, options in GROUPS[group].items():
        if (words and not name.endswith(words)) or (engine == "threads" and name not in BESIDE):
            continue
        files = [BUILD / f"model{run}.npz" for run in range(1 if engine == "threads" else 2)]
        found = [trained(engine, train, options, file) for file in files][-1]
        figures = {"row": name, "engine": engine, **found, **judged(test, files[-1]), "taken_with": origin(engine)}
        if len(files) > 1:
            figures["same_bytes"] = filecmp.cmp(*files, shallow=False)
        with (BUILD / "measured.jsonl").open("a", encoding="utf-8") as stream:
            print(json.dumps(figures), file=stream)
        print(figures)


def origin(engine: str) -> str:
    """Return what a figure is taken with, the GPU included."""
    if not engine.startswith("cuda"):
        return provenance(0, ("torch",))
    import torch

    return f"{provenance(0, ('torch',))}; {torch.cuda.get_device_name()}"


def kcrf(*arguments: str) -> str:
    done = subprocess.run([sys.executable, "-m", "kcrf_cli", *arguments], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def trained(engine: str, train: str, options: list[str], model: Path) -> dict[str, float]:
    chosen = [] if engine == "threads" else ["--engine", engine]
    log, began = BUILD / "log.jsonl", time.perf_counter()
    kcrf("train", train, *options, *chosen, "-q", "-o", str(model), "--log", str(log))
    seconds = time.perf_counter() - began
    events = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    notes = " ".join(event.get("text", "") for event in events)
    ready = re.search(r"ready after ([\d.]+) s", notes)
    final = [event["seconds"] for event in events if event["event"] == "pass" and event.get("stage") == "training"]
    end = next(event for event in events if event["event"] == "end")
    return {
        "seconds": seconds,
        "start": float(ready[1]) if ready else 0.0,
        "solving": max(final) - min(final) if final else float("nan"),
        "passes": end["passes"],
        "gap": end["certified_gap"],
    }


def judged(test: str, model: Path) -> dict[str, float]:
    found = json.loads(kcrf("evaluate", "-m", str(model), test, "-q", "--json"))
    scores = {"accuracy": found["accuracy"]}
    if found.get("spans"):
        scores["f1"] = found["spans"]["f1"]
    return scores


if __name__ == "__main__":
    main(*sys.argv[1:])
