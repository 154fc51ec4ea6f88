"""Sequences of files with errors of annotators planted: `plant.py DATA[,DATA] COUNT KIND SHARE SEED OUTPUT`.

COUNT is a number of sequences, or `all`; `all:X,Y` keeps spans of these types alone. KIND says what happens to SHARE of
the spans (B-X, I-X):

    missed      a span becomes O
    spurious    as many new spans, of a type and length that others have, where there was O
    boundary    a span gains or loses a position at one of its ends
    type        a span gets another type, frequent ones more often

Labels without spans are treated as follows, SHARE of the positions:

    missed      a label becomes the most frequent one
    spurious    the most frequent label becomes another one
    boundary    a label is that of its neighbour, which is another one
    type        a label becomes another one, frequent ones more often

With either, `exchanged` replaces SHARE of all labels by others, one by one and all equally often.

OUTPUT gets the data, OUTPUT.wrong the lines whose label has changed.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np

Span = tuple[int, int, str]  # first position, the one behind the last, type


def spans_of(labels: list[str]) -> list[Span]:
    """Spans of one sequence, IOB2, where I may also begin one."""
    found: list[Span] = []
    for t, label in enumerate(labels):
        if label.startswith("I-") and found and found[-1][1:] == (t, label[2:]):
            found[-1] = (found[-1][0], t + 1, label[2:])
        elif label != "O":
            found.append((t, t + 1, label[2:]))
    return found


def write_span(labels: list[str], start: int, end: int, kind: str) -> None:
    """Put a span in its place; what is left of one behind it begins anew."""
    labels[start:end] = [f"B-{kind}"] + [f"I-{kind}"] * (end - start - 1)
    if end < len(labels) and labels[end].startswith("I-"):
        labels[end] = f"B-{labels[end][2:]}"


def moved(labels: list[str], span: Span, rng: np.random.Generator) -> bool:
    """Move one end of a span by one position; False where it cannot move."""
    start, end, kind = span
    ways = [(start, end + 1)] * (end < len(labels)) + [(start - 1, end)] * (start > 0)
    ways += [(start, end - 1), (start + 1, end)] * (end - start > 1)
    if not ways:
        return False
    first, last = ways[rng.integers(len(ways))]
    labels[start:end] = ["O"] * (end - start)
    write_span(labels, first, last, kind)
    return True


def plant_spans(sequences: list[list[str]], kind: str, share: float, rng: np.random.Generator) -> None:
    places = [(s, span) for s, labels in enumerate(sequences) for span in spans_of(labels)]
    types = [span[2] for _, span in places]
    wanted, touched = round(share * len(places)), set[int]()
    order = iter(rng.permutation(len(places)).tolist())
    while wanted:
        s, (start, end, own) = places[next(order)]
        if kind == "spurious":  # its type and length, somewhere else
            length, s = end - start, int(rng.integers(len(sequences)))
            free = [t for t in range(len(sequences[s]) - length + 1) if set(sequences[s][t : t + length]) == {"O"}]
            if not free:
                continue
            write_span(sequences[s], t := free[rng.integers(len(free))], t + length, own)
        elif kind == "missed":
            sequences[s][start:end] = ["O"] * (end - start)
        elif kind == "type":
            other = own
            while other == own:
                other = types[rng.integers(len(types))]
            write_span(sequences[s], start, end, other)
        elif s in touched or not moved(sequences[s], (start, end, own), rng):  # one in a sequence: ends may meet
            continue
        touched.add(s)
        wanted -= 1


def plant_labels(sequences: list[list[str]], kind: str, share: float, rng: np.random.Generator) -> None:
    places = [(s, t) for s, labels in enumerate(sequences) for t in range(len(labels))]
    labels = [sequences[s][t] for s, t in places]
    most = Counter(labels).most_common(1)[0][0]
    before = [list(own) for own in sequences]
    wanted, order = round(share * len(places)), iter(rng.permutation(len(places)).tolist())
    while wanted:
        s, t = places[next(order)]
        own = before[s][t]
        if kind == "boundary":
            beside = [before[s][i] for i in (t - 1, t + 1) if 0 <= i < len(before[s]) and before[s][i] != own]
            if not beside:
                continue
            new = beside[rng.integers(len(beside))]
        elif kind == "missed":
            new = most
        elif kind == "spurious" and own != most:
            continue
        else:
            new = labels[rng.integers(len(labels))]
            while new == own:
                new = labels[rng.integers(len(labels))]
        if new != own:
            sequences[s][t], wanted = new, wanted - 1


def exchange(sequences: list[list[str]], share: float, rng: np.random.Generator) -> None:
    places = [(s, t) for s, labels in enumerate(sequences) for t in range(len(labels))]
    names = sorted({label for labels in sequences for label in labels})
    for i in rng.permutation(len(places))[: round(share * len(places))].tolist():
        s, t = places[i]
        sequences[s][t] = str(rng.choice([name for name in names if name != sequences[s][t]]))


def main(data: str, count: str, kind: str, share: float, seed: int, output: Path) -> None:
    rng = np.random.default_rng(seed)
    count, _, types = count.partition(":")
    texts = [Path(each).read_text(encoding="utf-8").strip("\n").split("\n\n") for each in data.split(",")]
    blocks = [block.split("\n") for text in texts for block in text]
    if count != "all":
        blocks = [blocks[i] for i in sorted(rng.permutation(len(blocks))[: int(count)].tolist())]
    sequences = [[line.split()[-1] for line in block] for block in blocks]
    if types:
        kept = [[label if label[2:] in types.split(",") else "O" for label in labels] for labels in sequences]
        blocks = [
            [line[: len(line.rstrip()) - len(was)] + now for line, was, now in zip(block, old, new, strict=True)]
            for block, old, new in zip(blocks, sequences, kept, strict=True)
        ]
        sequences = kept
    before = [list(labels) for labels in sequences]
    spans = any(label.startswith("B-") for labels in sequences for label in labels)
    if kind == "exchanged":
        exchange(sequences, share, rng)
    elif kind != "none":
        (plant_spans if spans else plant_labels)(sequences, kind, share, rng)
    lines: list[str] = []
    wrong: list[int] = []
    for block, old, new in zip(blocks, before, sequences, strict=True):
        for line, was, now in zip(block, old, new, strict=True):
            lines.append(line[: len(line.rstrip()) - len(was)] + now)
            if was != now:
                wrong.append(len(lines))
        lines.append("")
    output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    Path(f"{output}.wrong").write_text("".join(f"{line}\n" for line in wrong))


if __name__ == "__main__":
    data, count, kind, share, seed, output = sys.argv[1:]
    main(data, count, kind, float(share), int(seed), Path(output))
