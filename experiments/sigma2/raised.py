"""Compare the sigma2 that training chooses with the next one above: raised.py NAME TRAIN TEST [--template FILE] ...

Trains as `kcrf train` does, in one thread, and once more with all variances multiplied by sqrt(10) if the search fits
to less than two thirds of the data, and if accuracy on its held-out data does not fall by more than one standard error.
Prints a line of JSON: accuracy and whole sequences of TEST by both, with the decoder that was chosen and by Viterbi,
and the differences with their standard errors over sequences. `raised.py --table FILES` makes a table of such lines.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from kcrf_core import Workers, read_corpus, train
from kcrf_core.config.templates import load_template
from kcrf_core.encoding import UNKNOWN
from kcrf_core.objective.solvers import ALL_TERMS
from kcrf_core.scoring import choose_yardstick
from kcrf_core.training import prepare, prior_search


def figures(model, test, gold: np.ndarray, workers: Workers) -> dict[str, np.ndarray]:
    """Return positions right and all, and whole sequences right and all, of each sequence, by decoder."""
    out, accuracy = {}, choose_yardstick(model.labels, "accuracy")
    for name, decode in (("chosen", model.decode), ("viterbi", "viterbi")):
        counts = accuracy.counts(gold, replace(model, decode=decode).tag(test, workers), None, test.offsets)
        out[name] = counts
        out[f"{name}, whole"] = np.stack([counts[:, 0] == counts[:, 1], np.ones(len(counts))], axis=1).astype(float)
    return out


def raised(search: prior_search._Search) -> dict[str, float]:
    """Return the sigma2 of the setting above the choice, or of the choice where it stays."""
    best, above = search._choice(), None
    if search._metric.name == "accuracy" and not search._decisive:
        above = search._moved(best, range(len(best)), 1)
    if above is None:
        return search._values(best)
    if above not in search._found:
        search._found[above] = search._looked(above, ALL_TERMS)
    counts = {steps: search._found[steps].counts["posterior"] for steps in (best, above)}
    return search._values(prior_search._alike(search._metric, counts, 1)[-1])


def table(paths: list[str]) -> None:
    """Print a table of Markdown, means over the seeds of a set."""
    sets: dict[str, list[dict]] = {}
    for path in paths:
        for text in Path(path).read_text(encoding="utf-8").splitlines():
            sets.setdefault(json.loads(text)["name"], []).append(json.loads(text))
    print("| set | sigma2 chosen (first term) | accuracy | above | whole sequences | above | by Viterbi | above |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    gains = []
    for name, lines in sets.items():
        cells = [", ".join(f"{value:g}" for value in sorted({next(iter(line["sigma2"].values())) for line in lines}))]
        means = {key: np.mean([line[key] for line in lines], axis=0) for key in ("chosen", "chosen, whole", "viterbi")}
        for before, _, gain, error in means.values():
            moved = any(line["above"] != line["sigma2"] for line in lines)
            cells += [f"{before:.2f}", f"{gain:+.2f} ± {error:.2f}" if moved else "stays"]
        gains.append([own[2] for own in means.values()])
        print(f"| {name} | {' | '.join(cells)} |")
    print(f"| mean | | | {' | | '.join(f'{gain:+.2f}' for gain in np.mean(gains, axis=0))} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--template", help="of Wapiti")
    parser.add_argument("--lexicon", action="append", default=[], metavar="NAME=FILE")
    parser.add_argument("--metric")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    raw = asked.template and load_template(Path(asked.template).read_text(encoding="utf-8"), asked.template, True)
    options = {"seed": asked.seed} | ({"metric": asked.metric} if asked.metric else {})
    if asked.lexicon:
        options["lexicon"] = asked.lexicon
    searches: list[prior_search._Search] = []
    end = prior_search._Search._prior

    def kept(search: prior_search._Search) -> prior_search.Prior:
        searches.append(search)
        return end(search)

    with Workers(1) as workers:
        prepared = prepare(asked.train, raw, options, workers=workers)
        encoding, dataset, config = prepared.encoding, prepared.dataset, prepared.config
        prior_search._Search._prior = kept
        model, report = train(encoding, dataset, config, workers=workers)
        above = raised(searches[-1])
        test = encoding.encode(read_corpus(asked.test, None, config.columns, layout=config.layout))
        gold = np.where(test.labels == UNKNOWN, len(encoding.labels), test.labels)
        after = before = figures(model, test, gold, workers)
        if above != report.sigma2:
            terms = tuple(replace(term, sigma2=above[term.name]) for term in config.terms)
            training = replace(config.training, decode=model.decode)
            other, _ = train(encoding, dataset, replace(config, terms=terms, training=training), workers=workers)
            after = figures(other, test, gold, workers)
    accuracy = choose_yardstick(encoding.labels, "accuracy")
    line: dict[str, object] = {"name": asked.name, "seed": asked.seed, "metric": report.metric, "decode": model.decode}
    line |= {"sigma2": report.sigma2, "above": above}
    for key, own in after.items():
        gain, error = accuracy.difference(own, before[key])
        shown = [accuracy.value(before[key]), accuracy.value(own), gain, error]
        line[key] = [round(100 * value, 3) for value in shown]
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    table(sys.argv[2:]) if sys.argv[1:2] == ["--table"] else main()
