"""The search for a configuration, from a corpus to the configuration that does best on its held-out parts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..chains import CLIQUES
from ..config import parse_config
from ..corpora import Corpus
from ..crossval import Journal
from ..encoding import CategoricalFeature, RealFeature, column_names, fit_encoding
from ..errors import ConfigError, DataError, Interrupted
from ..scoring import Yardstick, choose_yardstick
from ..system import Workers
from .arena import CorpusArena, make_rungs
from .search import Listener, Outcome, Search
from .space import AttributeBlock, Block, Candidate, GivenBlock, NumberBlock, Space, TextBlock

# Work of the efforts, in multiplications.
EFFORTS = {"small": 1e11, "normal": 1e12, "large": 1e13}


class WorkMeter:
    """Counts work, which is the same on every machine."""

    def __init__(self, total: float):
        self.total, self.spent = total, 0.0

    def add(self, outcome: Outcome) -> None:
        self.spent += outcome.work

    def cost(self, outcome: Outcome) -> float:
        return outcome.work


class ClockMeter:
    """Counts seconds."""

    def __init__(self, total: float):
        self.total, self._began = total, time.perf_counter()

    @property
    def spent(self) -> float:
        return time.perf_counter() - self._began

    def add(self, outcome: Outcome) -> None:
        """The clock has counted it."""

    def cost(self, outcome: Outcome) -> float:
        return outcome.seconds


@dataclass(frozen=True)
class Tuning:
    """What a search found."""

    space: Space
    yardstick: Yardstick
    chosen: Outcome
    best: Outcome  # which the chosen one cannot be told apart from
    outcomes: tuple[Outcome, ...]  # higher rungs first, the better first on each
    sizes: tuple[int, ...]  # positions of the rungs
    spent: float  # in work or seconds

    @property
    def raw(self) -> dict[str, Any]:
        return self.space.raw(self.chosen.candidate)


def make_space(
    corpus: Corpus, raw: Mapping[str, Any], source: str, shape: tuple[int, int] | None = None,
    left_out: Sequence[str] = (),
) -> Space:  # fmt: skip
    """The candidates for a corpus, under a configuration that may have made some choices already."""
    config = parse_config(raw, source)
    names = column_names(config, corpus)
    terms = raw.get("terms")
    label_terms = terms is None
    if raw.get("features") is not None or terms is not None:
        features = raw.get("features")
        mapped = None if terms is None else tuple(t for t in terms if CLIQUES[t.get("type", "node")].mapped)
        blocks: list[Block] = [GivenBlock(None if features is None else tuple(features), mapped)]
        return Space(blocks, raw, corpus.positions, label_terms)
    blocks = []
    if corpus.attributes is not None:
        blocks.append(AttributeBlock())
    else:
        inputs = [name for name in names[:-1] if name not in (config.weight, *left_out)]
        blocks += _column_blocks(corpus, raw, source, inputs, shape)
    for name, array in corpus.vectors.items():
        feature = {"vectors": name, "name": name}
        blocks.append(NumberBlock(name, (feature,), (), array.shape[1], reach=0))
    return Space(blocks, raw, corpus.positions, label_terms)


def _column_blocks(
    corpus: Corpus, raw: Mapping[str, Any], source: str, inputs: Sequence[str], shape: tuple[int, int] | None
) -> list[Block]:
    features = [{"column": name, "window": [0]} for name in inputs]
    features += [{"vectors": name} for name in corpus.vectors]
    encoding, _ = fit_encoding(parse_config({**raw, "features": features, "terms": [{}]}, source), corpus)
    words, tags, real = [], [], []
    for feature in encoding.features:
        name = feature.config.name
        if isinstance(feature, CategoricalFeature):
            (words if len(feature.vocabulary.values) > 100 else tags).append(name)
        elif isinstance(feature, RealFeature) and feature.config.vectors is None:
            real.append(name)
    if shape is not None and len(real) != shape[0] * shape[1]:
        raise ConfigError(
            f"pictures of {shape[0]}x{shape[1]} pixels need {shape[0] * shape[1]:,} columns of numbers, and there are "
            f"{len(real):,}",
            settings=["shape"],
        )
    blocks: list[Block] = []
    if words or tags:
        blocks.append(TextBlock(tuple(words), tuple(tags)))
    if real:
        feature = {"name": "numbers", "columns": real, "type": "real"}
        blocks.append(NumberBlock("numbers", (feature,), tuple(tags), len(real), shape))
    return blocks


def tune(
    corpus: Corpus,
    raw: Mapping[str, Any] | None = None,
    source: str = "configuration",
    *,
    shape: tuple[int, int] | None = None,
    metric: str | None = None,
    effort: str = "normal",
    budget: float | None = None,  # seconds, in the place of an effort
    left_out: Sequence[str] = (),
    workers: Workers,
    journal: Journal | None = None,
    listener: Listener | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Tuning:
    """Search for the configuration that does best on held-out parts of a corpus."""
    raw = dict(raw or {})
    listener = listener or Listener()
    config = parse_config(raw, source)
    space = make_space(corpus, raw, source, shape, left_out)
    labels = sorted(set(corpus.columns[-1]) - {config.unobserved})
    yardstick = choose_yardstick(labels, metric)
    rungs = make_rungs(corpus, config.training.seed)
    meter = WorkMeter(EFFORTS[effort]) if budget is None else ClockMeter(budget)

    def over() -> bool:
        return stopped() or (budget is not None and meter.spent > meter.total)

    arena = CorpusArena(space, rungs, yardstick, workers, journal, over, budget is not None, listener.note)
    search = Search(space.neighbours, arena, meter, listener, stopped)
    chosen = search.run(space.seeds)
    if chosen is None:
        if stopped():
            raise Interrupted("interrupted before any candidate was judged")
        raise DataError("no candidate could be judged", corpus.source)
    return Tuning(
        space, yardstick, chosen, search.leader, tuple(search.outcomes), tuple(arena.sizes), meter.spent
    )
