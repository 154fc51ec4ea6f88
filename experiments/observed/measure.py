"""Weights of observed or of all pairs of a feature and a label, conjunctions, and the bonus for spans.

    python measure.py conll2000 200 0 DATA >> lines; python measure.py --table lines

A draw is so many random sequences of a training part. `kcrf train` chooses sigma2, decoder and bonus
on folds of them; the models then label other sequences of the same part, 2,000 of CoNLL-2000 and
1,200 of wnut17, else all that are left.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
from readme import table

from kcrf_core import Workers, fit_encoding, parse_config, read_corpus, train
from kcrf_core.corpora import CodedColumn
from kcrf_core.scoring import best_bonus, evaluate
from kcrf_core.selection.tuning import make_space

OTHERS = {"conll2000": 2000, "wnut17": 1200}  # sequences that models are tested on
PATHS = {
    "conll2000": "conll2000/train.conll",
    "wnut17": "wnut17/train.conll",
    "japanesene": "crfpp/JapaneseNE/train.conll",
    **{f"gpstruct_{name}": f"gpstruct/{name}" for name in ("basenp", "chunking", "japanesene", "segmentation")},
}
LINEAR = ("observed", "all")
PAIRS = ("observed, pairs", "all, pairs")


def configurations(corpus):
    """Return configurations by name: those of `kcrf tune`, or linear weights of attributes."""
    if corpus.attributes is not None:
        return {name: {"training": {"observed_features": name == "observed"}} for name in LINEAR}
    space, configs = make_space(corpus, {}, "experiment"), {}
    for names, conjunctions in ((LINEAR, "none"), (PAIRS, "pairs 1")):
        for name, weights in zip(names, LINEAR, strict=True):
            configs[name] = space.raw(space.start.changed(weights=weights, conjunctions=conjunctions))
    return configs


def read(name, draw, folder):
    path = Path(folder) / PATHS[name]
    return read_corpus(str(path / f"split{draw % 5 + 1}.train.crfsuite" if path.is_dir() else path))


def measured(name, size, draw, folder, only):
    corpus = read(name, draw, folder)
    order = np.random.default_rng([draw, 17]).permutation(corpus.sequences)
    last = size + OTHERS.get(name, corpus.sequences - size)
    fitted, others = corpus.subset(np.sort(order[:size])), corpus.subset(np.sort(order[size:last]))
    with Workers(1) as workers:
        for config_name, raw in configurations(fitted).items():
            if only and config_name != only:
                continue
            config = parse_config(raw)
            encoding, dataset = fit_encoding(config, fitted)
            model, report = train(encoding, dataset, config, workers=workers)
            held_out = report.held_out
            counts, yardstick = held_out.counts, held_out.yardstick
            f1, bonus = yardstick.name == "f1", 0.0
            if f1:
                bonus = best_bonus(max(yardstick.value(counts[key]) for key in ("viterbi", "bonus")))
            encoded = encoding.encode(others)

            def figure(tagger, encoded=encoded, f1=f1):
                labels = CodedColumn(list(tagger.labels), tagger.tag(encoded, workers))
                gold = others.columns[-1]
                scores = evaluate(gold, labels, others.offsets, known_labels=tagger.labels)
                return 100 * (scores.spans.total.f1 if f1 else scores.accuracy)

            known = np.flatnonzero(encoded.known_labels >= 0)
            gold = model.infer(encoded).marginals.node[known, encoded.known_labels[known]]
            plain = replace(model, decode="viterbi", span_bonus=0.0)
            row = {
                "set": name, "size": size, "draw": draw, "weights": config_name, "f1": f1,
                "parameters": report.parameters, "test": figure(model),
                "log_p": float(np.log(np.maximum(gold, 1e-30)).mean()), "held_out_log_p": held_out.log_probability,
                "held_out": 100 * yardstick.value(counts[held_out.decoder.counted_as]),
            }  # fmt: skip
            if f1:
                row["held_out_gain"] = 100 * (yardstick.value(counts["bonus"]) - yardstick.value(counts["viterbi"]))
                row["gain"] = figure(replace(plain, span_bonus=bonus)) - figure(plain)
            print(json.dumps(row), flush=True)


def with_error(values, digits=2):
    """Return a mean, and its standard error where there are several values."""
    values = np.array(values)
    error = f" ± {values.std(ddof=1) / np.sqrt(len(values)):.{digits}f}" if len(values) > 1 else ""
    return f"{values.mean():+.{digits}f}{error}"


def report(path):
    draws = defaultdict(dict)
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        draws[row["set"], row["size"], row["draw"]][row["weights"]] = row
    groups = defaultdict(list)
    for (name, size, _), rows in draws.items():
        if set(LINEAR) <= set(rows):
            groups[name, size].append(rows)
    lines = []
    for (name, size), group in sorted(groups.items()):
        cells = [f"{name} ({'F1' if group[0]['all']['f1'] else 'accuracy'})", f"{size:,}", str(len(group))]
        for first, second in (LINEAR, PAIRS, *zip(LINEAR, PAIRS, strict=True)):
            some = [rows for rows in group if first in rows and second in rows]
            cells.append(with_error([rows[second]["test"] - rows[first]["test"] for rows in some]) if some else "")
        for key, digits in (("held_out", 2), ("log_p", 3)):
            cells.append(with_error([rows["all"][key] - rows["observed"][key] for rows in group], digits))
        cells.append(f"{np.mean([rows['all']['parameters'] / rows['observed']['parameters'] for rows in group]):.1f}")
        lines.append(cells)
    header = ["set", "sequences", "draws", "all pairs for observed ones", "the same with conjunctions",
              "conjunctions, observed pairs", "conjunctions, all pairs", "all for observed, held out", "log p",
              "times the parameters"]  # fmt: skip
    print(table(header, lines))
    print()
    bonuses = defaultdict(list)
    for rows in draws.values():
        for row in rows.values():
            if "gain" in row:
                bonuses[row["set"]].append(row)
    lines = []
    for name, rows in sorted(bonuses.items()):
        against = [row["gain"] for row in rows if row["held_out_gain"] < 0]
        cells = [name, str(len(rows)), with_error([row["gain"] for row in rows]), str(len(against))]
        lines.append([*cells, with_error(against) if against else ""])
    header = ["set", "fits", "gain by the bonus", "held-out data against it", "gain there"]
    print(table(header, lines))


if __name__ == "__main__":
    if sys.argv[1] == "--table":
        report(sys.argv[2])
    else:
        measured(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], (*sys.argv[5:], "")[0])
