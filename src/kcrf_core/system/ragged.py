"""Ragged arrays: sequences end to end, with `offsets` [S+1] of their first positions and the end."""

from __future__ import annotations

import numpy as np


def sequence_rows(offsets: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Return positions of the sequences numbered `which`, in that order."""
    return piece_rows(offsets[:-1][which], offsets[1:][which])


def piece_rows(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Return positions first:last of all pieces, one piece after another."""
    ends = np.cumsum(last - first)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total, dtype=np.int64) + np.repeat(first - (ends - (last - first)), last - first)


def positions_within(offsets: np.ndarray) -> np.ndarray:
    """Return the distance of each position from the beginning of its sequence, [N]."""
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    """Return the offsets [S+1] of sequences with these lengths [S]."""
    out = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=out[1:])
    return out


def without_empty(offsets: np.ndarray) -> np.ndarray:
    """Return the offsets of sequences that are not empty."""
    return np.append(offsets[:-1][offsets[1:] > offsets[:-1]], offsets[-1:])


def complete_sequences(labels: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return a mask [S] of sequences that have all their labels."""
    hidden = offsets_of(labels < 0)
    return hidden[offsets[1:]] == hidden[offsets[:-1]]


def shifted_real(values: np.ndarray, offset: int, offsets: np.ndarray) -> np.ndarray:
    """Return rows [N, r] of the positions `offset` away; zero, the mean of a standardised column, beyond the ends."""
    if offset == 0:
        return values
    out, source = np.zeros_like(values), np.arange(len(values)) + offset
    first, last = (np.repeat(ends, np.diff(offsets)) for ends in (offsets[:-1], offsets[1:]))
    inside = (source >= first) & (source < last)
    out[inside] = values[source[inside]]
    return out
