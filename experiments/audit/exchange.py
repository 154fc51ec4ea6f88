"""Sentences of a file with some of their labels exchanged: `exchange.py DATA COUNT KIND SEED OUTPUT`.

COUNT is a number of sentences, or `all`. Of two labels in a hundred, chosen by chance, KIND makes

    uniform       any other label of the data
    frequency     that of another position, so that frequent labels come more often
    confusions    B for I or I for B, half of those of NP and PP the other one of these: what annotators confuse

OUTPUT gets the data, OUTPUT with .wrong at its end the lines that were changed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

SHARE = 0.02


def confused(label: str, rng: np.random.Generator) -> str:
    letter, kind = label.split("-")
    if kind in ("NP", "PP") and rng.random() < 0.5:
        return f"{letter}-{'PP' if kind == 'NP' else 'NP'}"
    return f"{'I' if letter == 'B' else 'B'}-{kind}"


def exchange(path: Path, count: str, kind: str, seed: int, output: Path) -> None:
    rng = np.random.default_rng(seed)
    sentences = path.read_text(encoding="utf-8").strip("\n").split("\n\n")
    lines = "\n\n".join(sentences if count == "all" else sentences[: int(count)]).split("\n")
    places = [number for number, line in enumerate(lines) if line]
    labels = [lines[number].split()[-1] for number in places]
    known = sorted(set(labels))
    possible = [t for t, label in enumerate(labels) if kind != "confusions" or label != "O"]
    chosen = sorted(rng.choice(possible, round(SHARE * len(places)), replace=False).tolist())
    for t in chosen:
        new = labels[t]
        while new == labels[t]:
            if kind == "confusions":
                new = confused(labels[t], rng)
            else:
                new = known[rng.integers(len(known))] if kind == "uniform" else labels[rng.integers(len(labels))]
        lines[places[t]] = lines[places[t]].rpartition(" ")[0] + " " + new
    output.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    Path(f"{output}.wrong").write_text("".join(f"{places[t] + 1}\n" for t in chosen))


if __name__ == "__main__":
    data, count, kind, seed, output = sys.argv[1:]
    exchange(Path(data), count, kind, int(seed), Path(output))
