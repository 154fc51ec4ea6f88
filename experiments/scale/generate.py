"""Made-up sensor readings: generate.py POSITIONS > FILE.

Six states follow each other as a sticky chain; each has a ring of its own among eight real columns, so that no linear
function of the columns tells them apart. Sequences of 50 positions, seeded: the first ones are the same for every
length.
"""

from __future__ import annotations

import sys

import numpy as np

STATES, COLUMNS, LENGTH, BLOCK = 6, 8, 50, 10_000


def block(number: int) -> str:
    """Some sequences as text."""
    rng = np.random.default_rng([number, 7])
    states = np.empty(BLOCK, dtype=int)
    stay, drawn = rng.random(BLOCK) < 0.85, rng.integers(0, STATES, BLOCK)
    for t in range(BLOCK):
        states[t] = states[t - 1] if stay[t] and t % LENGTH else drawn[t]
    directions = rng.normal(size=(BLOCK, COLUMNS))
    radii = 1 + states + 0.6 * rng.normal(size=BLOCK)
    readings = directions * (radii / np.linalg.norm(directions, axis=1))[:, None]
    lines = []
    for t in range(BLOCK):
        lines.append("\t".join([f"{value:.3f}" for value in readings[t]] + [f"s{states[t]}"]))
        if t % LENGTH == LENGTH - 1:
            lines.append("")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    positions = int(sys.argv[1])
    for number in range(positions // BLOCK):
        sys.stdout.write(block(number))
