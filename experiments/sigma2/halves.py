"""How good is the sigma2 that training chooses? python halves.py NAME DATA HALVES SEED OUT JOBS.

Of each of some random halves of the sequences, sigma2 and the decoder are chosen as `kcrf train` does. The other half
judges them beside a path of one variance of scores for all terms, with fits to the whole first half. What counts is
whether the figure at the choice is within one standard error of the best on the path.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import repeat

import numpy as np
import yaml

from kcrf_core import Workers, fit_encoding, parse_config, read_corpus, train
from kcrf_core.training import Pieces, Split, Splits, judge

TERMS = [{"type": "node"}, {"type": "edge"}]  # where a configuration names none
PATH = [10 ** (power / 2) for power in range(-4, 6)]  # variances of scores


def corpus_of(name: str, data: str):
    """The sequences to halve, and their configuration."""
    with open(f"{name}.yaml", encoding="utf-8") as stream:
        raw = yaml.safe_load(stream)
    if name == "ocr":
        folds = np.loadtxt(f"{data}/ocr/folds.txt", dtype=int)
        return read_corpus(f"{data}/ocr/all.conll").subset(np.flatnonzero(folds == 0)), raw
    place = "wnut17/train.conll" if name == "wnut17" else "batteryless_adl/all.conll"
    return read_corpus(f"{data}/{place}"), raw


def chosen_on(corpus, raw, seed, workers):
    """What training chooses, without the final fit."""
    config = parse_config({**raw, "training": {"seed": seed, "max_passes": 1}})
    _, report = train(*fit_encoding(config, corpus), config, workers=workers)
    return report.sigma2, report.decoder.decode, report.held_out


def judged(name: str, data: str, half: int, seed: int) -> dict[str, object]:
    """One random half, judged by the other."""
    corpus, raw = corpus_of(name, data)
    offsets = corpus.offsets
    order = np.random.default_rng([seed, half]).permutation(corpus.sequences)
    first, second = (np.sort(part) for part in np.array_split(order, 2))
    with Workers(1) as workers:
        sigma2, decode, held_out = chosen_on(corpus.subset(first), raw, half, workers)
        encoding, dataset = fit_encoding(parse_config(raw), corpus)
        fit, held = (Pieces(offsets[part], offsets[part + 1], part) for part in (first, second))
        splits = Splits((Split(fit, held),), "sequences", corpus.positions)

        def figure(values: dict[str, float]) -> tuple[str, float, float]:
            terms = [{**term, "sigma2": values[term["type"]]} for term in raw.get("terms") or TERMS]
            found = judge(encoding, dataset, parse_config({**raw, "terms": terms}), splits=splits, workers=workers)
            counts = found.counts[decode]
            return found.yardstick.name, found.yardstick.value(counts), found.yardstick.standard_error(counts)

        scale = {"node": held_out.scales["node"], "edge": 1.0}
        path = [figure({term: variance / scale[term] for term in sigma2})[1] for variance in PATH]
        metric, own, error = figure(sigma2)
    return {
        "half": half,
        "metric": metric,
        "sigma2": sigma2,
        "decode": decode,
        "figure": own,
        "error": error,
        "path": path,
        "within": bool(own >= max(path) - error),
        "work": held_out.work / sum(np.diff(offsets)[first]),
    }


def main(name: str, data: str, halves: int, seed: int, out: str, jobs: int) -> None:
    results = []
    with ProcessPoolExecutor(jobs) as processes:
        for found in processes.map(partial(judged, name, data), range(halves), repeat(seed)):
            results.append(found)
            print(json.dumps(found), flush=True)
    with open(out, "w", encoding="utf-8") as stream:
        json.dump({"metric": results[0]["metric"], "variances": PATH, "halves": results}, stream, indent=1)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5], int(sys.argv[6]))
