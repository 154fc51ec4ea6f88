"""The default configuration and a few others, compared on held-out data before training.

Each is fitted to the same folds of a sample, with a few values of sigma2, the same steps for all terms. Paired
differences of log p over held-out units decide: the default stays unless another one is better by more than a standard
error, and one with which training takes longer must be better than what is taken otherwise by as much. Linear weights
go on beyond the range of the training data, where a kernel has nothing to say: they replace a default with a kernel as
soon as they are better on whole sequences, by however little. Work is counted in operations, never in time, so that the
same data give the same choice on every machine.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..chains import NODE
from ..config import Config
from ..corpora import CodedColumn, Corpus
from ..encoding import alternatives, configured, fit_encoding
from ..kernels import KernelConfig
from ..objective.solvers import Event, Observer, Trial
from ..scoring import Yardstick, choose_yardstick
from ..system import Remark, Workers
from .held_out import BLOCKS, DIGITS, FEW_WHOLE, HoldOut, Pieces, Splits, make_splits
from .prior_search import EXPONENTIALS, SPARSE_ROW
from .problems import problem_of
from .training import judge

DEFAULT = "default"
# Operations: a part of those of a final fit, of about so many passes; some, a few seconds, are always granted.
SHARE, FINAL_PASSES, FREE_OPERATIONS = 0.2, 100, 5e9
# Passes of a candidate on each fold, and the positions of a sample.
PASSES, LEAST_SAMPLE, MOST_SAMPLE = 100, 1_000, 6_000
SETTINGS = 3  # of sigma2: where the search begins, and a step to either side, or two to one
FOLDS = 3  # so that two thirds are fitted on
# For each pair of labels, where pairs have scores of their own: half of what it takes, else samples would be too small.
PAIR_ROW = 5
REACH = 15  # of windows and transforms of all candidates, for gaps beside blocks


@dataclass(frozen=True)
class Screening:
    """The configurations that were compared, and the choice."""

    chosen: str
    values: dict[str, float]  # mean log p of held-out labels, by name
    splits: Splits

    @property
    def remark(self) -> Remark:
        """Line about what was compared and what was taken."""
        tried = ", ".join(f"{name} {value:.3f}" for name, value in self.values.items())
        said = f"taken: {self.chosen}; log p on {self.splits.describe()}: {tried}; not with 'plain'"
        return Remark(said, settings=["plain"])


def choose_configuration(
    raw: Mapping[str, Any], options: Mapping[str, Any], corpus: Corpus, source: str, workers: Workers | None = None,
    hold_out: HoldOut | None = None,
) -> tuple[Config, str | None, str | None]:  # fmt: skip
    """Return the configuration for a corpus, a line about default features, and one about those compared with them.

    The default one is compared with others if there are `workers`, and if neither the configuration nor options choose
    features or kernels.
    """
    default, suggested = configured(raw, options, corpus, source)
    others = {} if workers is None else alternatives(raw, options, corpus, source)
    if not others or workers is None:
        return default, suggested, None
    found = screen({DEFAULT: default, **others}, corpus, hold_out or HoldOut(), workers)
    if found is None or found.chosen == DEFAULT:
        return default, suggested, None if found is None else found.remark
    return others[found.chosen], None, found.remark


def screen(
    configs: Mapping[str, Config],  # by name, the default one first
    corpus: Corpus,
    hold_out: HoldOut,
    workers: Workers,
) -> Screening | None:
    """Compare configurations on held-out parts of a sample; None if there is too little data.

    They get a fifth of the operations of a final fit of the default, or a few seconds; the search for sigma2 has the
    rest, so that both take no more than one final fit.
    """
    default = next(iter(configs.values()))
    seed, labels = default.training.seed, len(CodedColumn.of(corpus.columns[-1]).values)
    granted = max(FREE_OPERATIONS, SHARE * FINAL_PASSES * corpus.positions * _operations(default, labels))
    passes = PASSES * (FOLDS - 1)
    most = granted / passes / sum(_operations(config, labels) for config in configs.values())
    every = Pieces(corpus.offsets[:-1], corpus.offsets[1:], np.arange(corpus.sequences))
    taken = every.sampled(int(min(max(most, LEAST_SAMPLE), MOST_SAMPLE)), np.random.default_rng([seed, 3]))
    sample, wishes = corpus.pieces(taken.first, taken.last, taken.unit), hold_out.subset(taken.unit)
    splits, logs = None, {}
    for name, config in configs.items():
        config = replace(config, training=replace(config.training, metric="log-loss"))
        encoding, dataset = fit_encoding(config, sample)
        if splits is None:
            splits = make_splits(problem_of(encoding, dataset), seed=seed, wishes=wishes, reach=REACH, folds=FOLDS)
            log_loss = choose_yardstick(encoding.span_labels, "log-loss")
        if splits is None or splits.units < 2:
            return None
        seen = _Settings()
        how: dict[str, Any] = {"splits": splits, "workers": workers, "observer": seen, "together": True}
        found = judge(encoding, dataset, config, **how, enough=seen.enough)
        logs[name] = found.judged.log_counts
    assert splits is not None
    linear = [name for name, config in configs.items() if _is_linear(config) and not _paired(config)]
    slow = [name for name, config in configs.items() if _paired(config)]
    chosen = choose(log_loss, logs, linear if splits.kind != BLOCKS and splits.units >= FEW_WHOLE else (), slow)
    return Screening(chosen, {name: log_loss.value(own) for name, own in logs.items()}, splits)


def choose(
    log_loss: Yardstick, logs: Mapping[str, np.ndarray], simpler: Collection[str] = (), slow: Collection[str] = ()
) -> str:
    """Return the best one if it is better than the first by more than a standard error; else the first.

    In its place comes the first of the `simpler` ones that are at least as good. A `slow` one must be better than what
    is chosen without it by as much.
    """

    def value(name: str) -> float:
        return round(log_loss.value(logs[name]), DIGITS)

    def beats(name: str, other: str) -> bool:
        difference, error = log_loss.difference(logs[name], logs[other])
        return round(difference - error, DIGITS) > 0

    fast = [name for name in logs if name not in slow]
    first, chosen = fast[0], max(fast, key=value)
    if not beats(chosen, first):
        chosen = first if first in simpler else next((name for name in simpler if value(name) >= value(first)), first)
    return next((name for name in slow if beats(name, chosen)), chosen)


class _Settings(Observer):
    """Counts settings of sigma2."""

    def __init__(self) -> None:
        self.count = 0

    def tell(self, event: Event) -> None:
        self.count += isinstance(event, Trial)

    def enough(self) -> bool:
        return self.count >= SETTINGS


def _is_linear(config: Config) -> bool:
    return all(term.kernel.type == KernelConfig.type for term in config.mapped_terms)


def _paired(config: Config) -> int:
    """Return the number of terms that give pairs of labels scores of their own at each position."""
    return sum(term.type != NODE.name for term in config.mapped_terms)


def _operations(config: Config, labels: int) -> float:
    """Return about how many multiplications a pass takes at one position, before there are maps."""
    rows = (term.map.size or SPARSE_ROW for term in config.mapped_terms if term.type == NODE.name)
    return EXPONENTIALS + labels**2 + sum(rows) * NODE.columns(labels) + _paired(config) * PAIR_ROW * labels**2
