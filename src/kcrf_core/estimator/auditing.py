"""Results of `KernelCRF.audit`: doubtful labels by their places in X and y."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..corpora import LabelValue
from ..selection import Audit


class DoubtfulLabel(NamedTuple):
    """The label y[sequence][position], and what speaks against it."""

    sequence: int
    position: int
    gold: LabelValue
    suggested: LabelValue
    marginal: float  # p(gold | x)
    context: float  # p(gold | x, the other labels)
    doubt: float  # log-odds that the label is wrong, if errors are as they are supposed
    reason: str


class UnlikelySpan(NamedTuple):
    """The span of labels y[sequence][start:end]."""

    sequence: int
    start: int
    end: int
    type: str
    probability: float  # p(span | x), of all its labels together
    doubt: float  # log-odds that another span should be there, or none


class UnlikelySequence(NamedTuple):
    """The labels y[sequence]."""

    sequence: int
    doubtful: int  # number of them with a small p(label | x)
    log_probability: float  # log p(y | x)


@dataclass(frozen=True, eq=False)
class LabelAudit:
    """Labels of y that are doubtful."""

    found: Audit
    lengths: np.ndarray  # [S] of the sequences of X
    values: Sequence[LabelValue]  # labels as y has them, in the order of `found.labels`

    @property
    def judged(self) -> int:
        """Labels that some model knows which has not seen them, or the fitted model."""
        return self.found.judged

    @property
    def doubtful(self) -> int:
        """Number of labels that models find improbable given the input, p(label | x) < 0.05."""
        return self.found.doubtful

    @property
    def places(self) -> int:
        """Number of runs of such labels: those of one span are one place."""
        return self.found.places

    @property
    def doubts(self) -> list[np.ndarray]:
        """Doubts of all labels, an array [T] for each sequence; NaN where it was not judged."""
        return np.split(self.found.evidence.doubt, np.cumsum(self.lengths)[:-1]) if len(self.lengths) else []

    def positions(self, most: int | None = None) -> list[DoubtfulLabel]:
        """List labels that were judged, the worst first."""
        names, out = dict(zip(self.found.labels, self.values, strict=True)), []
        for one in self.found.positions(most):
            labels, figures = (names[one.gold], names[one.suggested]), (one.marginal, one.context, one.doubt)
            out.append(DoubtfulLabel(*self._place(one.position), *labels, *figures, one.reason))
        return out

    def spans(self, most: int | None = None) -> list[UnlikelySpan]:
        """List spans, where labels are of a scheme (B-X, I-X, O), the worst first."""
        out = []
        for one in self.found.spans(most):
            sequence, start = self._place(one.start)
            end = start + one.end - one.start
            out.append(UnlikelySpan(sequence, start, end, one.type, one.probability, one.doubt))
        return out

    def sequences(self, most: int | None = None) -> list[UnlikelySequence]:
        """List sequences that have a position, those with the most improbable labels first."""
        there = np.flatnonzero(self.lengths)
        return [
            UnlikelySequence(int(there[one.sequence - 1]), one.doubtful, one.log_probability)
            for one in self.found.sequences(most)
        ]

    def corrected(self, least: float = 0.0) -> list[list[LabelValue]]:
        """Return y with suggested labels in the place of those that have at least this doubt."""
        if not self.found.held_out:
            raise ValueError("a model that has learnt from the labels cannot correct them: audit by folds")
        names = dict(zip(self.found.labels, self.values, strict=True))
        labels = [names[label] for label in self.found.corpus.columns[-1]]
        for t in np.flatnonzero(self.found.evidence.doubt >= least).tolist():
            labels[t] = self.values[int(self.found.evidence.suggested[t])]
        ends = np.cumsum(self.lengths).tolist()
        return [labels[end - length : end] for end, length in zip(ends, self.lengths.tolist(), strict=True)]

    def _place(self, t: int) -> tuple[int, int]:
        """Return the sequence of X, and the position in it, of a position among all."""
        ends = np.cumsum(self.lengths)
        sequence = int(np.searchsorted(ends, t, side="right"))
        return sequence, t - int(ends[sequence] - self.lengths[sequence])
