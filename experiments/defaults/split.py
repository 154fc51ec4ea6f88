"""Folds of whole trials as files: `split.py DATA SEED PREFIX` writes PREFIX0.train.conll, PREFIX0.test.conll and so on.

They are those of `kcrf crossval DATA --folds 5 --stratify --seed SEED`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from kcrf_core.corpora import read_corpus
from kcrf_core.selection import Division, Task, make_plan, make_settings


def main(data: str, seed: str, prefix: str) -> None:
    corpus = read_corpus(data)
    division = Division(5, stratify=True, seed=int(seed))
    plan = make_plan(corpus, {}, data, make_settings({}, {"seed": int(seed)}), division)
    for fold in range(len(plan.folds)):
        for name, part in zip(("train", "test"), plan.parts(Task(0, fold)), strict=True):
            chosen = corpus.subset(part)
            columns = [list(column) for column in chosen.columns]
            with Path(f"{prefix}{fold}.{name}.conll").open("w", encoding="utf-8") as stream:
                for first, last in zip(chosen.offsets[:-1], chosen.offsets[1:], strict=True):
                    stream.writelines(" ".join(column[t] for column in columns) + "\n" for t in range(first, last))
                    stream.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
