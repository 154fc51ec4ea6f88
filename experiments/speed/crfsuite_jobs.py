"""What CRFsuite does, as its Python users have it do it. Each job ends with one line of JSON.

crfsuite_jobs.py encode TRAIN
crfsuite_jobs.py train TRAIN MODEL C2 ITERATIONS ALL_STATES(0|1)    a line of JSON for every iteration
crfsuite_jobs.py tag MODEL INPUT OUTPUT [attributes|default_attributes]
"""

from __future__ import annotations

import json
import sys
import time

import attributes as builders
import pycrfsuite
from attributes import attributes, read_sentences


def loaded(path: str, **parameters: float) -> tuple[Reporting, float]:
    """A trainer with the sentences of a file, and the seconds that building and appending attributes took."""
    trainer = Reporting("lbfgs", parameters, verbose=True)
    began = time.perf_counter()
    for rows in read_sentences(path):
        trainer.append(attributes(rows), [row[-1] for row in rows])
    return trainer, time.perf_counter() - began


class Reporting(pycrfsuite.Trainer):
    """Says the loss and the time of every iteration as it comes."""

    began = 0.0

    def on_iteration(self, log: object, info: dict) -> None:
        seconds = time.perf_counter() - self.began
        say({"iteration": info["num"], "loss": info["loss"], "seconds": seconds})

    def silent(self, *arguments: object) -> None:
        """Other events are not told."""

    on_start = on_featgen_progress = on_featgen_end = on_prepared = on_prepare_error = silent
    on_optimization_end = on_end = silent


def say(values: dict) -> None:
    print(json.dumps(values), flush=True)


def encode(path: str) -> None:
    _, seconds = loaded(path)
    say({"seconds": seconds})


def train(path: str, model: str, c2: str, iterations: str, all_states: str) -> None:
    trainer, appended = loaded(path)
    trainer.set_params(
        {
            "c2": float(c2),
            "max_iterations": int(iterations),
            "feature.possible_states": bool(int(all_states)),
            "feature.possible_transitions": True,
        }
    )
    trainer.began = time.perf_counter()
    trainer.train(model)
    trained = time.perf_counter() - trainer.began
    say({"append_seconds": appended, "train_seconds": trained})


def tag(model: str, source: str, target: str, builder: str = "attributes") -> None:
    build = getattr(builders, builder)
    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    count = 0
    began = time.perf_counter()
    with open(target, "w", encoding="utf-8") as stream:
        for rows in read_sentences(source):
            for row, label in zip(rows, tagger.tag(build(rows)), strict=True):
                stream.write(f"{' '.join(row)} {label}\n")
            stream.write("\n")
            count += len(rows)
    say({"positions": count, "seconds": time.perf_counter() - began})


if __name__ == "__main__":
    {"encode": encode, "train": train, "tag": tag}[sys.argv[1]](*sys.argv[2:])
