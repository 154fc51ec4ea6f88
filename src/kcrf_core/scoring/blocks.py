"""Blocks of a few long sequences: units to resample, exchange and hold out where whole sequences are too few for that.

Positions of a sequence resemble their neighbours. Blocks that are several times longer than a run of one label, and
than windows reach, are nearly independent of each other, and enough of them to tell how sure a figure is.
"""

from __future__ import annotations

import numpy as np

FEW_SEQUENCES = 20  # below that many, long ones are taken in blocks
GAPS_PER_BLOCK = 4  # how many times longer than a gap, a run or a window, a block is at least
FEWEST_BLOCKS, MOST_BLOCKS = 10, 40  # that all sequences together are divided into, about


def median_run(labels: np.ndarray, offsets: np.ndarray) -> int:
    """The median length of a run of one label, [N], negative ones left out; 0 where there is none."""
    if not len(labels):
        return 0
    begins = np.ones(len(labels), dtype=bool)
    begins[1:] = labels[1:] != labels[:-1]
    begins[offsets[:-1][np.diff(offsets) > 0]] = True
    starts = np.flatnonzero(begins)
    runs = np.diff(np.append(starts, len(labels)))[labels[starts] >= 0]
    return int(np.median(runs)) if len(runs) else 0


def block_borders(
    offsets: np.ndarray, sequences: np.ndarray, block: int | None, gap: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Where blocks of some sequences, none of them empty, begin and end: of about `block` positions, if that is given.

    Else there are about MOST_BLOCKS of them, each worth a gap on both sides; None where sequences are many, or so short
    that they would not have two blocks each.
    """
    lengths = np.diff(offsets)[sequences]
    total = int(lengths.sum())
    if block is None:
        if len(sequences) >= FEW_SEQUENCES or total < 2 * GAPS_PER_BLOCK * gap * len(sequences):
            return None
        block = max(-(-total // MOST_BLOCKS), min(GAPS_PER_BLOCK * gap, -(-total // FEWEST_BLOCKS)), 1)
    counts = np.maximum(np.rint(lengths / block).astype(np.int64), 1)
    borders = [
        begin + np.linspace(0, length, count + 1).astype(np.int64)
        for begin, length, count in zip(offsets[sequences], lengths, counts, strict=True)
    ]
    nothing = np.zeros(0, dtype=np.int64)
    first = np.concatenate([nothing, *(each[:-1] for each in borders)])
    return first, np.concatenate([nothing, *(each[1:] for each in borders)])


def unit_offsets(labels: np.ndarray, offsets: np.ndarray, block: int | None = None) -> np.ndarray:
    """Offsets [U+1] of units of labels [N]: those of sequences, none of them empty, or of blocks of a few long ones."""
    offsets = np.unique(offsets)
    borders = block_borders(offsets, np.arange(len(offsets) - 1), block, median_run(labels, offsets))
    return offsets if borders is None else np.append(borders[0], offsets[-1])
