"""The judge of candidates: rungs of a corpus, held-out parts of each, and the cost of a judgement.

Earlier judgements, of this run or of one that was stopped, come from a journal.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._version import __version__
from ..chains import Problem
from ..config import Config, parse_config
from ..corpora import CodedColumn, Corpus, concatenate
from ..encoding import Dataset, Encoding, fit_encoding
from ..errors import ConfigError, DataError, Interrupted, NumericError
from ..maps import why_not
from ..scoring import FEW_SEQUENCES, Yardstick
from ..system import AUTO, PLUGINS, Workers
from ..training import SEQUENCES, HoldOut, Pieces, Split, Splits, judge, make_splits
from .journal import Journal, corpus_digest, digest_of
from .space import PIVOTS, WIDEST_REACH, Candidate, Space

# Positions of the first rung at least, those of them that have not the most frequent label, and how many times as many
# the next rungs have at most.
FIRST_RUNG, FIRST_OTHERS, RUNG_FACTOR = 6_000, 1_500, 4.0
LEAST_RUNG = 300  # positions of a first rung where even fewer would be expensive
# Positions that the cost of a candidate is estimated on.
LOOKED_AT = 2_000
# Sequences that a rung has at least, where there are so many.
LEAST_SEQUENCES = 40
# Folds of a rung: two cost least. With little data, more of it should be fitted on, in the end at least.
FOLDS, SOME_FOLDS, FEW_FOLDS = 5, 3, 2
LITTLE, SOME, ENOUGH = 2_000, 4_000, 20_000
# Settings that a search for prior variances looks at: on the common path and upwards, and for each term.
PATH_SETTINGS, TERM_SETTINGS = 6, 2
# Passes that a fit takes in such a search.
SETTING_PASSES = 25
# Passes of a final fit and of a search for prior variances in training, in fits of such a search, and the work that
# such a search takes at least, as it looks at more folds of little data.
FINAL_FIT, FINAL_SEARCH, LEAST_SEARCH = 2.5, 2.5, 2e9
# Prior variances are those of a subset; if it is less than this share of the data, training searches for them again.
PRIOR_SHARE = 0.1
# Cost of a pass in nanoseconds of a core: by itself, also with an L1 penalty (in one thread: others wait, and count),
# at a position, for pairs and triples of labels, for a column of a dense row and for each score that it adds to, and
# the same for a feature that is present in a sparse row.
PASS_COST, SPARSE_PASS_COST, POSITION_COST, LABEL_COST, TRIPLE_COST = 2.5e6, 2e7, 500.0, 2.0, 1.5
DENSE_READ, DENSE_COST = 3.0, 0.25
SPARSE_READ, SPARSE_COST = 4.0, 1.5
# No judgement may cost more than this part of all that may be spent.
LARGEST_SHARE = 1 / 3


@dataclass(frozen=True)
class Outcome:
    """The judgement of a candidate on a rung."""

    candidate: Candidate
    rung: int
    positions: int  # of the rung
    value: float  # the larger the better
    error: float  # standard error of it
    training: float  # estimate of the work of training on all data, in nanoseconds of a core
    settings: int  # of prior variances that were tried
    work: float  # of the judgement, in nanoseconds of a core
    seconds: float  # of the judgement
    found: dict[str, Any] = field(repr=False)  # further results of the judgement
    repeated: bool = False  # another candidate has the same configuration on this rung and the same outcome
    kind: str = ""  # of the candidate; the estimates of work of one kind are wrong in the same way
    fit_seconds: float = 0.0  # those of `seconds` that are not spent on encoding


@dataclass(frozen=True)
class Rung:
    """A part of the corpus, of which folds are held out in turn."""

    corpus: Corpus
    wishes: HoldOut
    folds: int
    dev: int = 0  # sequences at the end that are held out and never fitted on
    sampled: int | None = None  # positions of the blocks that are looked at; None: all

    @property
    def positions(self) -> int:
        """Positions that are fitted on or held out in turn."""
        return self.sampled or self.corpus.positions

    @property
    def fitted(self) -> int:
        """Positions that its folds are fitted on, all together."""
        return self.positions * (1 if self.dev else self.folds - 1)

    def splits(self, dataset: Dataset, labels: int, seed: int) -> Splits | None:
        """Return the folds of this rung; they do not depend on the candidate."""
        weights = np.ones(dataset.sequences) if dataset.weights is None else dataset.weights
        offsets = dataset.offsets
        if not self.dev:
            problem = Problem(dataset.known_labels, offsets, weights, labels)
            return make_splits(problem, seed=seed, wishes=self.wishes, reach=WIDEST_REACH, folds=self.folds,
                               most_positions=self.sampled)  # fmt: skip
        there = np.flatnonzero((weights > 0) & (np.diff(offsets) > 0))
        every = Pieces(offsets[there], offsets[there + 1], there)
        held = there >= dataset.sequences - self.dev
        return Splits((Split(every.take(~held), every.take(held)),), SEQUENCES, every.positions)

    def to_dict(self) -> dict[str, Any]:
        """Return all that decides the folds, for keys of a journal."""
        wishes = [None if one is None else one.tolist() for one in (self.wishes.groups, self.wishes.folds)]
        return {"wishes": wishes, "block": self.wishes.block, "folds": self.folds, "dev": self.dev,
                "sampled": self.sampled}  # fmt: skip


def make_rungs(
    corpus: Corpus, wishes: HoldOut, seed: int, dev: Corpus | None = None, most: float = math.inf, cut: bool = False
) -> list[Rung]:
    """Make parts of a corpus, each some times larger than the one before and containing it, the last being all of it.

    The first has no more than `most` positions, unless it would have fewer than LEAST_SEQUENCES; then it has a part of
    each of these if sequences may be `cut`.
    """
    positions = corpus.positions
    # A small part with few positions of rarer labels tells nothing.
    others = positions - int(np.bincount(CodedColumn.of(corpus.columns[-1]).codes).max(initial=0))
    first = min(max(FIRST_RUNG, FIRST_OTHERS * positions / max(others, 1)), most)
    steps = max(math.ceil(math.log(positions / first, RUNG_FACTOR) - 0.25), 0) if positions > first else 0
    factor = (positions / first) ** (1 / steps) if steps else 1.0
    sizes = [round(positions / factor**step) for step in reversed(range(steps + 1))]
    if dev is None and (wishes.block is not None or (corpus.sequences < FEW_SEQUENCES and wishes.free)):
        blocks = [Rung(corpus, wishes, _folds(n), sampled=n if n < positions else None) for n in sizes]
        return _with_more_folds(blocks)
    rng = np.random.default_rng([seed, 7])
    order, ends = _shuffled(corpus, rng)
    beside = None if dev is None else _shuffled(dev, rng)
    rungs: list[Rung] = []
    for size in sizes:
        chosen = _first(order, ends, size)
        whole = bool(rungs) and rungs[-1].sampled is None
        if whole and len(chosen) <= 1.5 * (rungs[-1].corpus.sequences - rungs[-1].dev):
            rungs.pop()  # sequences are so long that it has nearly as many
        part = corpus.subset(chosen)
        if cut and dev is None and not rungs and part.positions > 1.5 * most:
            rungs.append(Rung(part, wishes.subset(chosen), _folds(size), sampled=size))
            continue
        held = 0
        if dev is not None and beside is not None:
            judges = dev.subset(_first(*beside, size))
            part, held = concatenate([part, judges]), judges.sequences
        rungs.append(Rung(part, wishes.subset(chosen) if dev is None else HoldOut(), _folds(part.positions), held))
    return _with_more_folds(rungs)


def affordable_rungs(
    make: Callable[[float], list[Rung]], cost: Callable[[Rung], float], total: float
) -> tuple[list[Rung], float]:
    """Return rungs whose first is small enough for a judgement to cost no more than its share, and the cost on it.

    `make` makes rungs whose first has no more than so many positions, and `cost` is that of one setting of prior
    variances on a rung. The first rung is as small as possible if even that is too expensive.
    """
    rungs = make(math.inf)
    while (first := cost(rungs[0])) * PATH_SETTINGS > LARGEST_SHARE * total:
        smaller = smaller_rungs(make, rungs)
        if smaller is None:
            break
        rungs = smaller
    return rungs, first


def smaller_rungs(make: Callable[[float], list[Rung]], rungs: Sequence[Rung]) -> list[Rung] | None:
    """Return rungs that begin with less data than these; None if there is too little of it."""
    smaller = make(max(rungs[0].positions / RUNG_FACTOR, LEAST_RUNG))
    if smaller[0].positions >= rungs[0].positions:
        return None
    return [replace(smaller[0], folds=min(smaller[0].folds, FEW_FOLDS)), *smaller[1:]]


def _folds(positions: int) -> int:
    return FOLDS if positions < LITTLE else SOME_FOLDS if positions < SOME else FEW_FOLDS


def _with_more_folds(rungs: list[Rung]) -> list[Rung]:
    """Add the last rung again with more folds if there is not much data."""
    last = rungs[-1]
    again = last.positions < ENOUGH and last.folds < FOLDS and not last.dev and last.wishes.folds is None
    return [*rungs, replace(last, folds=FOLDS)] if again else rungs


def _shuffled(corpus: Corpus, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return sequences in random order, and the number of positions up to the end of each."""
    order = rng.permutation(corpus.sequences)
    return order, np.cumsum(np.diff(corpus.offsets)[order])


def _first(order: np.ndarray, ends: np.ndarray, size: int) -> np.ndarray:
    """Return the first sequences of an order that have so many positions, in ascending order."""
    return np.sort(order[: max(int(np.searchsorted(ends, size)) + 1, LEAST_SEQUENCES)])


def _start(config: Config, like: Outcome | None) -> dict[str, float]:
    """Return prior variances to begin a search with: those of a similar candidate, for terms with the same kernel."""
    if like is None:
        return {}
    sigma2, known = like.found["sigma2"], like.found["kernels"]
    out: dict[str, float] = {}
    left = [name for name in known if name in sigma2]
    for name, kernel in _kernels(config).items():
        same = [other for other in left if known[other] == kernel]
        if same:
            taken = name if name in same else same[0]
            out[name] = sigma2[taken]
            left.remove(taken)
    first = out.get(config.terms[0].name)
    return out if first is None else out | {term.name: first for term in config.terms if term.shared}


def _open_terms(config: Config) -> set[str]:
    """Return the names of terms whose prior variance is to be found."""
    return {term.name for term in config.terms if not (term.sigma2 or config.training.sigma2)}


def _once(config: Config) -> float:
    """Return the cost of a pass by itself."""
    return SPARSE_PASS_COST if config.training.c1 else PASS_COST


def _kernels(config: Config) -> dict[str, Any]:
    """Return types and kernels of terms by name; no kernel for those over labels alone."""
    return {term.name: [term.type, term.kernel.to_dict() if term.clique.mapped else None] for term in config.terms}


class CorpusArena:
    """A judge of candidates on rungs of one corpus."""

    def __init__(
        self,
        space: Space,
        yardstick: Yardstick,
        workers: Workers,
        rungs: Sequence[Rung],
        seed: int = 0,
        journal: Journal | None = None,
        stopped: Callable[[], bool] = lambda: False,
        timed: bool = False,  # limits of judgements are in seconds, else in work
        note: Callable[[str], None] = lambda text: None,
        odd: Collection[str] = (),  # labels that are not of the scheme of nearly all others
    ):
        self._odd = odd
        self._space, self._yardstick, self._workers, self._rungs = space, yardstick, workers, tuple(rungs)
        self._seed, self._journal, self._stopped, self._timed, self._note = seed, journal, stopped, timed, note
        self._digests = [
            str(number) if journal is None else digest_of(corpus_digest(rung.corpus), rung.to_dict())
            for number, rung in enumerate(rungs)
        ]
        self.sizes = [rung.positions for rung in rungs]  # positions of each rung, ascending
        self.ceiling = 0.0 if yardstick.by_probability else 1.0  # the best possible value
        # Work of a pass over the folds of each rung, in proportion: positions that are fitted on, by their labels.
        labels = [len(np.unique(CodedColumn.of(rung.corpus.columns[-1]).codes)) for rung in rungs]
        costs = [POSITION_COST + LABEL_COST * count**2 for count in labels]
        self.fitted = [rung.fitted * cost for rung, cost in zip(rungs, costs, strict=True)]
        # Positions that training on all data fits to.
        self._positions = int(rungs[-1].corpus.offsets[rungs[-1].corpus.sequences - rungs[-1].dev])
        self._known: dict[str, dict[str, Any]] = {}  # by configurations, which pivots of a small rung have in common
        self._splits: dict[int, Splits | None] = {}
        self._complexities: dict[tuple[Candidate, int], float] = {}

    def settings(self, candidate: Candidate, like: Outcome | None, thorough: bool) -> int:
        """Estimate the number of settings of prior variances that a judgement will try."""
        config = self.config(candidate, 0)
        free = len(_open_terms(config) - set(() if thorough else _start(config, like)))
        if not free:
            return 1
        return PATH_SETTINGS + (TERM_SETTINGS * free if thorough and free > 1 else 0)

    def kind(self, candidate: Candidate) -> str:
        """Return the kind of a candidate: with an L1 penalty, with pivots, or neither."""
        config = self.config(candidate, 0)
        return "c1" if config.training.c1 else "pivots" if any(term.map.size for term in config.mapped_terms) else ""

    def config(self, candidate: Candidate, rung: int) -> Config:
        config = _rung_config(self._space, candidate, self._rungs[rung])
        # A rung may lack some labels, so its yardstick numbers them by itself.
        return replace(config, training=replace(config.training, metric=self._yardstick.name))

    def judge(
        self, candidate: Candidate, rung: int, limit: float, like: Outcome | None, thorough: bool
    ) -> Outcome | None:
        """Judge a candidate at a cost of no more than the limit; None if that was not enough, or cannot be done.

        Prior variances of terms are those of `like`, if it has such terms; others are searched for. If `thorough`,
        all are searched for, starting there.
        """
        config = self.config(candidate, rung)
        start = _start(config, like)
        if not thorough:
            known = tuple(replace(term, sigma2=term.sigma2 or start.get(term.name)) for term in config.terms)
            config, start = replace(config, terms=known), {}
        versions = __version__, *(plugin.digest for plugin in PLUGINS.values())
        key = digest_of(*versions, self._digests[rung], config.to_dict(), start, thorough, self._yardstick.name)
        found = self._known.get(key)
        repeated = found is not None
        if found is None and self._journal is not None:
            found = self._journal.get(key)
        if found is None:
            found = self._judged(config, rung, limit, start, thorough)
            if found is None:
                return None
            if self._journal is not None and found["whole"]:
                about = {"candidate": dict(candidate.choices), "positions": self.sizes[rung]}
                self._journal.add(key, about, found)
        self._known[key] = found
        self._complexities[candidate, rung] = found["complexity"]
        counts = np.array(found["counts"])
        figures = {key: found[key] for key in ("settings", "work", "seconds", "fit_seconds")}
        figures |= {"training": self._training(candidate, rung, found["passes"]), "kind": self.kind(candidate)}
        value, error = self._yardstick.value(counts), self._yardstick.standard_error(counts)
        result = {**found, "counts": counts}
        return Outcome(candidate, rung, self.sizes[rung], value, error, found=result, repeated=repeated, **figures)

    def _judged(
        self, config: Config, number: int, limit: float, start: dict[str, float], thorough: bool
    ) -> dict[str, Any] | None:
        """Judge a configuration, with the result as a journal keeps it; None if it was interrupted or impossible."""
        began = time.perf_counter()
        rung = self._rungs[number]

        def longer(seconds: float) -> bool:
            return self._timed and time.perf_counter() - began > seconds

        # The first may take all of the total: there is nothing else to fall back on.
        longest = limit if self._known else limit / LARGEST_SHARE
        try:
            encoding, dataset = fit_encoding(config, rung.corpus, self._odd)
            if number not in self._splits:
                self._splits[number] = rung.splits(dataset, len(encoding.labels), self._seed)
            splits = self._splits[number]
            if splits is None:
                raise DataError("there is too little data to hold some out and choose by it", rung.corpus.source)
            cost = pass_cost(encoding, dataset, config)
            encoded = time.perf_counter()
            prior = judge(
                encoding,
                dataset,
                config,
                splits=splits,
                workers=self._workers,
                interrupted=lambda: self._stopped() or longer(longest),
                enough=lambda: longer(limit),
                sigma2=start,
                together=not thorough,
                positions=self._positions,
            )
        except Interrupted:
            return None
        except (ConfigError, NumericError, MemoryError) as error:
            self._note(f"a candidate cannot be judged: {error}")
            return None
        found, once = prior.judged, _once(config)
        by_label = found.counts[found.decoder.counted_as]
        decode = found.decoder.decode
        return {
            "sigma2": prior.sigma2,
            "decode": decode,
            "span_bonus": found.decoder.span_bonus,
            "kernels": _kernels(config),
            "counts": (found.log_counts if self._yardstick.by_probability else by_label).tolist(),
            "units": splits.units,
            "folds": len(splits.splits),
            "kind": splits.kind,
            "log_probability": found.log_probability,
            "whole": found.whole,
            "complexity": cost,
            "settings": max(len(prior.tried), 1),
            "passes": found.work / max(len(prior.tried), 1) / max(splits.fitted, 1),
            "work": found.work * (cost + once * len(splits.splits) / max(splits.fitted, 1)),
            "seconds": round(time.perf_counter() - began, 3),
            "fit_seconds": round(time.perf_counter() - encoded, 3),
        }

    def difference(self, first: Outcome, second: Outcome) -> tuple[float, float]:
        """Return by how much the first is better than the second, on the same rung, and its standard error."""
        return self._yardstick.difference(first.found["counts"], second.found["counts"])

    def _training(self, candidate: Candidate, rung: int, passes: float) -> float:
        """Estimate the work of training on all data, by the passes that a fit took on a rung."""
        config = self.config(candidate, rung)
        fit = FINAL_FIT * passes * (self.sizes[-1] * self.complexity(candidate) + _once(config))
        found = self.sizes[rung] >= PRIOR_SHARE * self.sizes[-1] and not self._space.is_default(candidate)
        if found or not _open_terms(config):
            return fit
        return fit + max(FINAL_SEARCH / FINAL_FIT * fit, LEAST_SEARCH)

    def complexity(self, candidate: Candidate, rung: int = -1) -> float:
        """Return the cost of a position in a pass over a rung, or over all data, with models of a candidate."""
        rung %= len(self._rungs)
        if (candidate, rung) not in self._complexities:
            config = self.config(candidate, rung)
            few = self._rungs[0].corpus
            few = few.subset(np.arange(min(max(int(np.searchsorted(few.offsets, LOOKED_AT)), 2), few.sequences)))
            try:
                self._complexities[candidate, rung] = pass_cost(*fit_encoding(config, few), config)
            except (ConfigError, DataError, NumericError):
                self._complexities[candidate, rung] = math.inf
        return self._complexities[candidate, rung]


def _rung_config(space: Space, candidate: Candidate, rung: Rung) -> Config:
    """Return the configuration of a candidate, with no more pivots than a rung needs."""
    return parse_config(space.raw(candidate, rung.positions), space.title(candidate))


def setting_cost(space: Space, candidate: Candidate, rung: Rung) -> float:
    """Estimate the cost of one setting of prior variances on a rung, in nanoseconds of a core."""
    config = _rung_config(space, candidate, rung)
    cost = pass_cost(*fit_encoding(config, rung.corpus), config)
    return SETTING_PASSES * (rung.fitted * cost + PASS_COST * (1 if rung.dev else rung.folds))


def pass_cost(encoding: Encoding, dataset: Dataset, config: Config) -> float:
    """Estimate the cost of a position in one pass, by the sizes of maps and chains, in nanoseconds of a core."""
    Y = len(encoding.labels)
    total = POSITION_COST + LABEL_COST * (Y**2 if config.label_terms else Y)
    if config.order == 2:
        total += TRIPLE_COST * Y**3
    for term in config.mapped_terms:
        inputs = encoding.inputs(dataset, encoding.term_features(term))
        dense, sparse = inputs.real.shape[1], float(inputs.codes.shape[1])
        if inputs.bag is not None:
            sparse += inputs.bag.nnz / max(dataset.positions, 1)
        poly = term.kernel.type == "poly"
        explicit = why_not(inputs, term.kernel.degree) is None if poly else term.kernel.kernel.explicit
        if term.map.type == "reduced" or (term.map.type == AUTO and not explicit):
            dense, sparse = term.map.size or PIVOTS[1], 0.0
        elif poly:
            sparse = float(sum(math.comb(round(sparse), k) for k in range(1, term.kernel.degree + 1)))
        width = term.clique.columns(Y)
        total += dense * (DENSE_READ + DENSE_COST * width) + sparse * (SPARSE_READ + SPARSE_COST * width)
    return total
