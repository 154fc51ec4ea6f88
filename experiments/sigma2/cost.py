"""Compare processor times with and without the search: python cost.py DATA [SETS] [--jobs N] [--repeat R].

Each run is a process with one thread: from the file to the model, with sigma2 chosen and with the values chosen given.
The least of the repeated runs counts.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace

from sets import arguments, corpus_of, encoded, in_processes

from kcrf_core import Workers, train


def timed(name: str, data: str, sigma2: dict[str, float] | None) -> dict[str, object]:
    """Train in this process, and return the processor time of all of it."""
    encoding, dataset, config = encoded(corpus_of(name, data))
    if sigma2 is not None:
        config = replace(config, terms=tuple(replace(term, sigma2=sigma2[term.name]) for term in config.terms))
    with Workers(1) as workers:
        _, report = train(encoding, dataset, config, workers=workers)
    about = {"seconds": time.process_time(), "passes": report.result.passes, "sigma2": report.sigma2}
    return {"set": name, "searched": sigma2 is None, **about}


def least(given: argparse.Namespace, sigma2: dict[str, dict[str, float]]) -> dict[str, dict]:
    """Return the quickest run of each set."""
    runs = [(name, given.data, sigma2.get(name)) for name in given.names for _ in range(given.repeat)]
    found = sorted(in_processes(given.jobs, timed, runs), key=lambda run: -run["seconds"])
    return {run["set"]: run for run in found}


if __name__ == "__main__":
    given = arguments(__doc__, repeat=1)
    searched = least(given, {})
    plain = least(given, {name: run["sigma2"] for name, run in searched.items()})
    for name in given.names:
        ratio = searched[name]["seconds"] / plain[name]["seconds"]
        print(json.dumps({"ratio": round(ratio, 2), "search": searched[name], "given": plain[name]}))
