"""Where candidates are judged: rungs of a corpus, held-out parts of each, and the cost of a judgement.

What was judged before, by this run or by one that was stopped, comes from a journal.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._version import __version__
from ..config import Config, parse_config
from ..corpora import Corpus
from ..crossval import Journal, corpus_digest, digest_of
from ..encoding import Dataset, Encoding, fit_encoding
from ..errors import ConfigError, DataError, Interrupted, NumericError
from ..scoring import Yardstick
from ..system import Workers
from .interim import judge
from .search import Outcome
from .space import Candidate, Space

# Positions of the first rung, and how many times as many the next ones have at most.
FIRST_RUNG, RUNG_FACTOR = 6_000, 4.0
# Sequences that a rung has at least, where there are so many.
LEAST_SEQUENCES = 60
# Parts that each rung is held out in, in turn: few where they are large.
FOLDS, FEW_FOLDS, LARGE = 5, 2, 8_000


@dataclass(frozen=True)
class Rung:
    """A part of the corpus, and what of it is fitted on and held out in turn."""

    corpus: Corpus
    sequences: np.ndarray  # of the whole corpus
    parts: tuple[tuple[np.ndarray, np.ndarray], ...]


def rung_sizes(positions: int) -> list[int]:
    """Positions of each rung, the last being all: about equal factors from the first on."""
    steps = max(math.ceil(math.log(positions / FIRST_RUNG, RUNG_FACTOR) - 0.25), 0) if positions else 0
    factor = (positions / FIRST_RUNG) ** (1 / steps) if steps else 1.0
    return [round(positions / factor**step) for step in reversed(range(steps + 1))]


def make_rungs(corpus: Corpus, seed: int) -> list[Rung]:
    lengths = np.diff(corpus.offsets)
    order = np.random.default_rng([seed, 7]).permutation(corpus.sequences)
    ends = np.cumsum(lengths[order])
    rungs = []
    for size in rung_sizes(corpus.positions):
        count = min(max(int(np.searchsorted(ends, size)) + 1, LEAST_SEQUENCES), corpus.sequences)
        if rungs and count <= 1.5 * len(rungs[-1].sequences):
            rungs.pop()
        chosen = np.sort(order[:count])
        part = corpus.subset(chosen)
        folds = FEW_FOLDS if part.positions > LARGE else FOLDS
        dealt = np.random.default_rng([seed, 8]).permutation(count) % folds
        parts = tuple((np.flatnonzero(dealt != fold), np.flatnonzero(dealt == fold)) for fold in range(folds))
        rungs.append(Rung(part, chosen, parts))
    return rungs


class CorpusArena:
    """Judges candidates on rungs of one corpus."""

    def __init__(
        self,
        space: Space,
        rungs: Sequence[Rung],
        yardstick: Yardstick,
        workers: Workers,
        journal: Journal | None = None,
        stopped: Callable[[], bool] = lambda: False,
        timed: bool = False,  # whether limits of judgements are in seconds, else in work
        note: Callable[[str], None] = lambda text: None,
    ):
        self._space, self._rungs, self._yardstick, self._workers = space, tuple(rungs), yardstick, workers
        self._journal, self._stopped, self._timed, self._note = journal, stopped, timed, note
        self._digests = [corpus_digest(rung.corpus) for rung in rungs] if journal is not None else []
        self._complexities: dict[Candidate, float] = {}

    @property
    def sizes(self) -> list[int]:
        return [rung.corpus.positions for rung in self._rungs]

    def config(self, candidate: Candidate, rung: int) -> Config:
        raw = self._space.raw(candidate, self._rungs[rung].corpus.positions)
        return parse_config(raw, self._space.title(candidate))

    def judge(self, candidate: Candidate, rung: int, limit: float, like: Outcome | None) -> Outcome | None:
        place = self._rungs[rung]
        config = self.config(candidate, rung)
        known = None
        if self._journal is not None:
            key = self._key(config, rung)
            known = self._journal.get(key)
        if known is None:
            found = self._judged(config, place, limit)
            if found is None:
                return None
            if self._journal is not None:
                self._journal.add(key, {"candidate": dict(candidate.choices), "positions": place.corpus.positions}, found)
            known = found
        self._complexities[candidate] = known["complexity"]
        counts = np.array(known["counts"])
        return Outcome(
            candidate,
            rung,
            self._yardstick.value(counts),
            self._yardstick.standard_error(counts),
            known["complexity"],
            known["work"],
            known["seconds"],
            {**known, "counts": counts},
        )

    def _key(self, config: Config, rung: int) -> str:
        place = self._rungs[rung]
        parts = [[part.tolist() for part in pair] for pair in place.parts]
        return digest_of(__version__, self._digests[rung], config.to_dict(), self._yardstick.name, parts)

    def _judged(self, config: Config, rung: Rung, limit: float) -> dict[str, Any] | None:
        began = time.perf_counter()

        def over() -> bool:
            return self._stopped() or (self._timed and time.perf_counter() - began > limit)

        try:
            encoding, dataset = fit_encoding(config, rung.corpus)
            cost = pass_cost(encoding, dataset, config)
            found = judge(
                encoding,
                dataset,
                config,
                parts=rung.parts,
                yardstick=self._yardstick,
                workers=self._workers,
                interrupted=over,
            )
        except (Interrupted, MemoryError):
            return None
        except (ConfigError, DataError, NumericError) as error:
            self._note(str(error))
            return None
        return {
            "sigma2": found.sigma2,
            "decode": found.decode,
            "counts": found.counts.tolist(),
            "log_probability": found.log_probability,
            "complexity": cost,
            "work": found.work * cost,
            "seconds": round(time.perf_counter() - began, 3),
        }

    def difference(self, first: Outcome, second: Outcome) -> tuple[float, float]:
        return self._yardstick.difference(first.found["counts"], second.found["counts"])

    def complexity(self, candidate: Candidate) -> float:
        if candidate not in self._complexities:
            config = self.config(candidate, len(self._rungs) - 1)
            few = self._rungs[0].corpus
            few = few.subset(np.arange(min(few.sequences, LEAST_SEQUENCES)))
            try:
                self._complexities[candidate] = pass_cost(*fit_encoding(config, few), config)
            except (ConfigError, DataError, NumericError):
                self._complexities[candidate] = math.inf
        return self._complexities[candidate]


def pass_cost(encoding: Encoding, dataset: Dataset, config: Config) -> float:
    """Multiplications that a position takes in one pass over the data: products with maps, and those along chains."""
    Y = len(encoding.labels)
    total = float(Y**2 if config.label_terms else Y)
    if config.order == 2:
        total += float(Y**3)
    for term in config.mapped_terms:
        inputs = encoding.inputs(dataset, encoding.term_features(term))
        columns = inputs.codes.shape[1] + inputs.real.shape[1]
        if inputs.bag is not None:
            columns += inputs.bag.nnz / max(dataset.positions, 1)
        if term.map.type == "reduced":
            columns = term.map.size or 1000
        elif term.kernel.type == "poly":
            columns = sum(math.comb(round(columns), k) for k in range(1, term.kernel.degree + 1))
        total += 2 * columns * term.clique.columns(Y)
    return total
