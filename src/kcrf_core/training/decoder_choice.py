"""Which decoder a model stores: Viterbi, unless data that training has not seen speaks for posterior decoding.

Viterbi finds the most probable labelling as a whole, posterior decoding the labelling with the most labels right on
average. Where sequences are long and labels few, no labelling as a whole is probable, and the best one may be poor;
where labels make spans, a path keeps to what usually follows what. So both are tried, on the same predictions, which
take one forward-backward. Objective decoding is stored where it is better by more than one standard error of the
difference.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..scoring import DECODINGS, Yardstick

VITERBI, POSTERIOR = DECODINGS
NAMES = {VITERBI: "Viterbi", POSTERIOR: "posterior decoding"}


@dataclass(frozen=True)
class DecoderChoice:
    """The decoder of a model, and what speaks for it."""

    decode: str
    data: str | None = None  # what it was chosen on: "held-out" or "dev"; None where it was given, or nothing was there
    yardstick: Yardstick | None = None
    values: dict[str, float] | None = None  # of the yardstick, by decoder
    difference: float = 0.0  # posterior decoding minus Viterbi
    error: float = 0.0  # the standard error of that
    units: int = 0  # sequences or blocks that it was judged by

    @property
    def text(self) -> str:
        """The choice in words; empty where nothing was compared."""
        if self.values is None or self.yardstick is None:
            return ""
        other = POSTERIOR if self.decode == VITERBI else VITERBI
        own, beside = (self.yardstick.number(self.values[name]) for name in (self.decode, other))
        margin = self.yardstick.margin(self.error)
        if margin:
            margin = f", difference {100 * self.difference:.2f}{margin}"
        figures = f"{self.data} {self.yardstick.title} {own}, {beside} by {NAMES[other]}{margin}"
        return f"decoder: {NAMES[self.decode]}; {figures}"

    def to_dict(self) -> dict[str, Any]:
        if self.values is None or self.yardstick is None:
            return {"decode": self.decode}
        return {
            "decode": self.decode,
            "data": self.data,
            "metric": self.yardstick.name,
            **self.values,
            "difference": self.difference,
            "standard_error": self.error if math.isfinite(self.error) else None,
            "units": self.units,
        }


def choose_decoder(yardstick: Yardstick, counts: Mapping[str, np.ndarray], data: str) -> DecoderChoice:
    """The decoder by counts of a yardstick on the same units, one for each decoder.

    A yardstick that looks at probabilities cannot tell decoders apart: counts are those of `Yardstick.of_labels`.
    """
    difference, error = yardstick.difference(counts[POSTERIOR], counts[VITERBI])
    return DecoderChoice(
        POSTERIOR if difference > error else VITERBI,
        data,
        yardstick,
        {name: yardstick.value(counts[name]) for name in DECODINGS},
        difference,
        error,
        len(counts[VITERBI]),
    )
