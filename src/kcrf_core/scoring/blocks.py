"""Blocks of a few long sequences: units to resample, exchange and hold out if there are too few sequences.

Positions of a sequence resemble their neighbours. Blocks that are several times longer than a run of one label, and
than windows, are nearly independent of each other.
"""

from __future__ import annotations

import numpy as np

FEW_SEQUENCES = 20  # below that many, long ones are taken in blocks
GAPS_PER_BLOCK = 4  # least length of a block in gaps: runs or windows
FEWEST_BLOCKS, MOST_BLOCKS = 10, 40  # that all sequences together are divided into, about


def median_run(labels: np.ndarray, offsets: np.ndarray) -> int:
    """Return the median length of a run of one label, negative ones left out; 0 if there is none."""
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
    """Return the starts and ends of blocks of some sequences that are not empty: of about `block` positions, if given.

    Else there are about MOST_BLOCKS of them, each worth a gap on both sides; None if sequences are many, or too short
    for two blocks each.
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
    """Return offsets [U+1] of units of labels [N]: sequences that are not empty, or blocks of a few long ones."""
    offsets = np.unique(offsets)
    borders = block_borders(offsets, np.arange(len(offsets) - 1), block, median_run(labels, offsets))
    return offsets if borders is None else np.append(borders[0], offsets[-1])
