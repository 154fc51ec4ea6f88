"""Judge the sigma2 that training chooses: python halves.py DATA [SETS] [--jobs N] [--halves H] [--seed S].

sigma2 and the decoder are chosen on each of some random halves of the sequences, as `kcrf train` does. The other half
judges them beside a path of settings, in which all terms move together from where the search begins, with fits to the
whole first half. What counts is whether the metric of the choice is within one standard error of the best on the path;
for text also its difference to `--c2 1`.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
from sets import TEXT, arguments, corpus_of, encoded, in_processes

from kcrf_core import Workers, train
from kcrf_core.training import Pieces, Split, Splits, judge
from kcrf_core.training.prior_search import GRID_FACTOR

PATH = range(-5, 5)  # grid steps from where the search begins


def judged(name: str, data: str, half: int, seed: int) -> dict[str, object]:
    """Choose on one random half, and judge by the other."""
    corpus = corpus_of(name, data)
    order = np.random.default_rng([seed, half]).permutation(corpus.sequences)
    first, second = (np.sort(part) for part in np.array_split(order, 2))
    with Workers(1) as workers:
        *about, config = encoded(corpus.subset(first), seed=half, max_passes=1)
        _, report = train(*about, config, workers=workers)
        decode, bonus = report.decoder.decode, report.decoder.span_bonus
        encoding, dataset, config = encoded(corpus)
        config = replace(config, training=replace(config.training, decode=decode, span_bonus=bonus or None))
        fit, held = (Pieces(corpus.offsets[part], corpus.offsets[part + 1], part) for part in (first, second))
        splits = Splits((Split(fit, held),), "sequences", corpus.positions)
        found = {}

        def counts(sigma2: dict[str, float]) -> np.ndarray:
            key = tuple(sigma2.values())
            if key not in found:
                terms = tuple(replace(term, sigma2=sigma2[term.name]) for term in config.terms)
                about = encoding, dataset, replace(config, terms=terms)
                found[key] = judge(*about, splits=splits, workers=workers).judged
            return found[key].counts[decode]

        begin = report.path[0].sigma2
        path = [{name: float(f"{value * GRID_FACTOR**step:.3g}") for name, value in begin.items()} for step in PATH]
        own, others = counts(report.sigma2), [counts(sigma2) for sigma2 in path]
        c2 = counts(dict.fromkeys(report.sigma2, 0.5)) if name in TEXT else own
    yardstick = next(iter(found.values())).yardstick
    values = [yardstick.value(each) for each in others]
    difference, error = yardstick.difference(own, c2)
    return {
        "set": name,
        "half": half,
        "metric": yardstick.name,
        "sigma2": report.sigma2,
        "decode": decode,
        "figure": round(100 * yardstick.value(own), 3),
        "error": round(100 * yardstick.standard_error(own), 3),
        "best": round(100 * max(values), 3),
        "best_sigma2": path[int(np.argmax(values))],
        "within": bool(yardstick.value(own) >= max(values) - yardstick.standard_error(own)),
        "path": [round(100 * value, 3) for value in values],
        "than_c2": [round(100 * difference, 3), round(100 * error, 3)],
    }


if __name__ == "__main__":
    given = arguments(__doc__, halves=10, seed=0)
    tasks = [(name, given.data, half, given.seed) for name in given.names for half in range(given.halves)]
    results: dict[str, list] = {name: [] for name in given.names}
    for found in in_processes(given.jobs, judged, tasks):
        print(json.dumps(found), flush=True)
        results[found["set"]].append(found)
    for name, halves in results.items():
        within = sum(each["within"] for each in halves)
        means = [round(float(np.mean([each[key] for each in halves])), 2) for key in ("figure", "best")]
        than_c2 = np.array([each["than_c2"][0] for each in halves])
        print(
            f"{name}: {within} of {len(halves)} within one standard error; mean {means[0]}, best on the path {means[1]}"
            + (f"; than c2 1 {than_c2.mean():+.2f}, at least {than_c2.min():+.2f}" if name in TEXT else "")
        )
