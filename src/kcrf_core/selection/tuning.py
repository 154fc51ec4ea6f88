"""The search for a configuration, from a corpus to the configuration that does best on its held-out parts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..config import EMBEDDINGS, default_terms, parse_config
from ..corpora import Columns, Corpus, WordVectors
from ..encoding import (
    NUMBER_PIVOTS,
    Defaults,
    RealFeature,
    column_names,
    find_table,
    fit_encoding,
    input_hashes,
    kernel_is_open,
    label_counts,
    left_out_columns,
    lookups,
    slip_warnings,
    with_defaults,
    with_tables,
)
from ..errors import ConfigError, DataError, Interrupted
from ..model import Model
from ..scoring import Yardstick, choose_yardstick, labels_of_spans, odd_labels
from ..system import Workers, positions_within
from ..training import HoldOut, Report, kept_together, train
from . import EFFORTS
from .arena import (
    PRIOR_SHARE,
    CorpusArena,
    Outcome,
    Rung,
    affordable_rungs,
    make_rungs,
    setting_cost,
    smaller_rungs,
)
from .journal import Journal
from .search import Listener, Search
from .space import LINEAR, LINEAR_AND_RBF, PIVOTS, RBF, ColumnBlock, GivenBlock, NumberBlock, Space, TextBlock, by_input

NUMBERS = "numbers"  # what real columns are called together
FEW_COLUMNS = 12  # of numbers, which may have kernels of their own
RUNS, MOST_MARKS = 0.5, 2  # share of positions like the one before, and number of columns of such runs
ALIKE = 4.0  # largest ratio of the standard deviations of coordinates


@dataclass(frozen=True)
class Tuning:
    """The result of a search."""

    space: Space
    yardstick: Yardstick
    chosen: Outcome
    best: Outcome  # of the largest subset, regardless of training time
    usual: Outcome | None  # that of the default on the same subset
    outcomes: tuple[Outcome, ...]  # higher rungs first, the better first on each
    history: tuple[Outcome, ...]  # as they came
    sizes: tuple[int, ...]  # positions of the rungs
    positions: int  # of all data, that of `dev` included
    units: Mapping[str, float]  # seconds of a unit of work, by kind of candidate: of a core without a budget
    timed: bool = False  # True if there was a budget of seconds
    too_long: bool = False  # True if the rest of the budget is less than the training of the best one
    interrupted: bool = False

    def training_time(self, outcome: Outcome) -> float:
        """Estimate the seconds that training a candidate on all data takes."""
        return outcome.training * self.units[outcome.kind]

    @property
    def raw(self) -> dict[str, Any]:
        """Chosen configuration, with the prior variances and the decoder that were found for it.

        The default one is as training has it: training chooses them.
        """
        raw, found = self.space.raw(self.chosen.candidate), self.chosen.found
        if self.space.is_default(self.chosen.candidate):
            return {**raw, "training": {**raw.get("training", {}), "metric": self.yardstick.name}}
        config = parse_config(raw)
        known = self.chosen.positions >= PRIOR_SHARE * self.positions
        terms = [
            {**term, "sigma2": found["sigma2"][parsed.name]} if known and parsed.name in found["sigma2"] else term
            for term, parsed in zip(raw["terms"], config.terms, strict=True)
        ]
        training = {**raw.get("training", {}), "decode": found["decode"], "metric": self.yardstick.name}
        if found["span_bonus"]:
            training["span_bonus"] = found["span_bonus"]
        return {**raw, "terms": terms, "training": training}


def make_space(
    corpus: Corpus, raw: Mapping[str, Any], source: str, shape: tuple[int, int] | None = None,
    left_out: Sequence[str] = (), given: Mapping[str, Any] | None = None,
) -> Space:  # fmt: skip
    """Return the candidates for a corpus, under a configuration that may have made some choices already.

    A configuration with features is `given`: one of the candidates, beside those without its features and terms.
    """
    config = parse_config(raw, source)
    if raw.get("features") is not None:
        training = {key: value for key, value in (raw.get("training") or {}).items() if key != "sigma2"}
        plain = {key: value for key, value in raw.items() if key not in ("features", "terms", "training")}
        given = {**raw, "terms": raw.get("terms") or _usual_terms()}
        return make_space(
            corpus, {**plain, **({"training": training} if training else {})}, source, shape, left_out, given
        )
    names = column_names(config, corpus)
    terms = raw.get("terms")
    label_terms = terms is None
    raw = {**raw, "ignore": sorted({*config.ignore, *left_out})} if left_out else raw
    is_open = kernel_is_open(raw, {}, corpus.positions)
    found = with_defaults(raw, corpus, source, is_open=is_open)
    if terms is not None:
        return Space([GivenBlock((), by_input(terms)[0])], raw, corpus.positions, label_terms)
    blocks: list[ColumnBlock] = []
    if corpus.attributes is not None:
        looked_up = lookups(config, corpus.tables)
        blocks.append(GivenBlock(tuple(one for one in looked_up if one["lookup"] != EMBEDDINGS), attributes=True))
        for one in looked_up:
            if isinstance(table := find_table(config, one["lookup"], corpus.tables), WordVectors):
                blocks.append(_lookup_block(one["column"], table.width))
    else:
        inputs = [
            name for name in names[:-1] if name not in (config.weight, config.sequence, *config.ignore, *left_out)
        ]
        blocks += _column_blocks(corpus, raw, source, inputs, shape, found)
    for name, array in corpus.vectors.items():
        feature = {"vectors": name, "name": name}
        blocks.append(NumberBlock(name, (feature,), (), array.shape[1], reach=0))
    usual = {key: value for key, value in found.raw.items() if key != "suggested"}
    usual["terms"] = usual.get("terms") or _usual_terms()
    pivots = NUMBER_PIVOTS if is_open and found.numbers else PIVOTS[1]
    return Space(blocks, raw, corpus.positions, label_terms, usual, pivots, given)


def _usual_terms() -> list[dict[str, Any]]:
    return [{"name": one.name, "type": one.type} for one in default_terms()]


def _column_blocks(
    corpus: Corpus, raw: Mapping[str, Any], source: str, inputs: Sequence[str], shape: tuple[int, int] | None,
    found: Defaults,
) -> list[ColumnBlock]:  # fmt: skip
    """Return blocks of the columns, by the features that `train` would make of them."""
    usual = found.raw
    features = usual.get("features") or [{"column": name} for name in inputs]
    config = parse_config({**usual, "features": features}, source)
    encoding, _ = fit_encoding(config, corpus)
    columns = Columns(corpus, config.missing, fitting=True)
    text, reach = [], 0
    real: dict[str, dict[str, Any]] = {}  # windows and transforms of columns of numbers
    looked_up: list[ColumnBlock] = []
    for feature, fitted in zip(features, encoding.features, strict=True):
        if "vectors" in feature:
            continue
        if not isinstance(fitted, RealFeature):
            text.append(feature)
        elif fitted.table is not None:
            looked_up.append(_lookup_block(feature["column"], fitted.table.width))
        else:
            real[feature["column"]] = {key: feature[key] for key in ("window", "transform") if key in feature}
            reach = max(reach, *map(abs, fitted.config.seen))
    if shape is not None and len(real) != shape[0] * shape[1]:
        need = f"images of {shape[0]}x{shape[1]} pixels need {shape[0] * shape[1]:,} columns of numbers"
        raise ConfigError(f"{need}, and there are {len(real):,}", settings=["shape"])
    blocks: list[ColumnBlock] = []
    tags: tuple[str, ...] = ()
    if text:
        observed = bool((usual.get("training") or {}).get("observed_features"))
        marks = _columns_of_runs(inputs, encoding.columns, columns)
        words = TextBlock(tuple(text), observed, marks, encoding.span_labels)
        blocks.append(words)
        tags = words.tags
    if real:
        if shape is not None:
            real = {name: {} for name in real}
        features = [{"name": name, "columns": [name], "type": "real", **own} for name, own in real.items()]
        if shape is not None or len(real) > FEW_COLUMNS:
            kinds = [own for number, own in enumerate(real.values()) if own not in list(real.values())[:number]]
            groups = [[name for name, other in real.items() if other == own] for own in kinds]
            features = [{"name": f"{NUMBERS}{number or ''}", "columns": group, "type": "real", **own}
                        for number, (group, own) in enumerate(zip(groups, kinds, strict=True))]  # fmt: skip
        start = LINEAR if raw.get("terms") or not found.numbers else RBF if found.all_numbers else LINEAR_AND_RBF
        start = start if kernel_is_open(raw, {}, corpus.positions) else LINEAR
        vectors = _vectors(list(real), encoding.columns, columns)
        blocks.append(NumberBlock(NUMBERS, tuple(features), tags, len(real), shape, reach, start, vectors))
    return [*blocks, *looked_up]


def _columns_of_runs(names: Sequence[str], every: Sequence[str], columns: Columns) -> tuple[str, ...]:
    """Return columns whose value mostly is that of the position before, but changes within sequences."""
    later = np.flatnonzero(positions_within(columns.corpus.offsets))
    out = []
    for name in names:
        codes = columns.distinct(every.index(name))[1]
        same = codes[later] == codes[later - 1]
        if len(later) and RUNS <= same.mean() < 1:
            out.append(name)
    return tuple(out[:MOST_MARKS])


def _vectors(names: Sequence[str], every: Sequence[str], columns: Columns) -> tuple[tuple[str, ...], ...]:
    """Return groups of two or three neighbouring columns of similar spread: coordinates of one quantity, perhaps."""
    places = {name: place for place, name in enumerate(every)}
    spreads = {name: _spread(columns, places[name]) for name in names}
    runs: list[list[str]] = []
    for name in names:
        last = runs[-1] if runs else []
        beside = last and places[name] == places[last[-1]] + 1 and spreads[name] > 0
        if beside and 1 / ALIKE <= spreads[name] / max(spreads[last[0]], 1e-300) <= ALIKE:
            last.append(name)
        else:
            runs.append([name])
    out: list[tuple[str, ...]] = []
    for run in runs:
        size = next((size for size in (3, 2) if len(run) % size == 0), len(run))
        out += [tuple(run[first : first + size]) for first in range(0, len(run), size)]
    return tuple(group for group in out if len(group) > 1)


def _spread(columns: Columns, place: int) -> float:
    numbers = columns.numbers(place)
    return 0.0 if numbers is None else float(np.nan_to_num(np.nanstd(numbers)))


def _lookup_block(column: str, width: int) -> NumberBlock:
    name = f"{column}.{EMBEDDINGS}"
    feature = {"name": name, "column": column, "lookup": EMBEDDINGS}
    return NumberBlock(name, (feature,), (), width, reach=0, start=RBF)


def tune(
    corpus: Corpus,
    raw: Mapping[str, Any] | None = None,
    source: str = "configuration",
    *,
    shape: tuple[int, int] | None = None,
    metric: str | None = None,
    effort: str = "normal",
    budget: float | None = None,  # seconds, in the place of an effort
    hold_out: HoldOut | None = None,
    left_out: Sequence[str] = (),  # columns that are no features, as that of groups
    dev: Corpus | None = None,
    workers: Workers,
    journal: Journal | None = None,
    listener: Listener | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Tuning:
    """Search for the configuration that does best on held-out parts of a corpus.

    The first candidate is the default. If `raw` has features, it is the second one, which the search varies, too; terms
    without features stay as they are. The search is over the rest. Held-out parts are those that
    `train` would hold out (`hold_out`), or all of `dev`. Once `stopped` is true the best so far comes back.

    >>> from kcrf_core import Workers, read_corpus
    >>> from kcrf_core.selection import tune
    >>> some = read_corpus("sample_data/pitch_accent.conll").subset(range(60))
    >>> with Workers() as workers:
    ...     found = tune(some, {"terms": [{"kernel": "linear"}, {"type": "edge"}]}, effort="small", workers=workers)
    >>> found.yardstick.name, sorted(found.raw)
    ('accuracy', ['terms', 'training'])
    """
    raw, listener, hold_out = dict(raw or {}), listener or Listener(), hold_out or HoldOut()
    config = parse_config(raw, source)
    corpus = with_tables(corpus, config)
    total = EFFORTS[effort] if budget is None else budget
    space = make_space(corpus, raw, source, shape, left_out)
    columns, names = Columns(corpus, config.missing), column_names(config, corpus)
    counts = label_counts(columns, config)
    odd = odd_labels(counts)
    labels = labels_of_spans(tuple(counts), odd)
    if dev is not None and counts.keys().isdisjoint(dev.columns[-1]):
        raise DataError(
            "no position has a known label, one of the training data, to score by", dev.source, settings=["dev"]
        )
    yardstick = choose_yardstick(labels, metric or config.training.metric)
    idle = left_out_columns(config, names).union(left_out)
    for warning in slip_warnings(columns, config, names, idle):
        listener.note(warning)
    began = None if budget is None else time.perf_counter()
    if dev is None and hold_out.free:
        hashes, wanted = input_hashes(config, corpus), config.training.near_copies
        hold_out = kept_together(hold_out, hashes, corpus.offsets, wanted, tell=listener.note)
    work = total if began is None else total * 1e9  # a small rung keeps one core busy
    make = partial(make_rungs, corpus, hold_out, config.training.seed, dev)
    cost = partial(setting_cost, space, space.start)
    rungs, least = affordable_rungs(make, cost, work)
    few = f"{total:g} s are too little time for a search with {len(labels):,} labels"
    if budget is not None and least > work:
        takes = f"a trial on {rungs[0].positions:,} positions takes about {least / 1e9:.2g} s"
        raise ConfigError(f"{few}: {takes}; give more time", settings=["budget"])

    def searched(rungs: Sequence[Rung], setting: float) -> tuple[Search, Outcome | None]:
        """Search on these rungs, of which the first takes so many nanoseconds for a setting of prior variances."""
        seed, timed = config.training.seed, budget is not None
        arena = CorpusArena(space, yardstick, workers, rungs, seed, journal, stopped, timed, listener.note, odd)
        seconds = setting / 1e9 if timed else setting
        seeds, neighbours = space.seeds, space.neighbours
        search = Search(seeds, neighbours, arena, total, listener, stopped, began, seconds, first=space.first)
        listener.begin(search, space.title, yardstick)
        return search, search.run()

    search, chosen = searched(rungs, least)
    # An estimate may be wrong: a judgement that takes all there is tells nothing, and less data is begun with.
    while not (search.compared or stopped() or (budget is not None and search.spent >= total)):
        smaller = smaller_rungs(partial(make, cut=True), rungs)
        if smaller is None:
            break
        rungs = smaller
        left = f"nothing could be compared with the default on {search.sizes[0]:,} positions"
        listener.note(f"{left}: beginning again on {rungs[0].positions:,}")
        again, other = searched(rungs, cost(rungs[0]))
        if other is not None:
            search, chosen = again, other
    best = search.best
    if chosen is None or best is None:
        if stopped():
            raise Interrupted("interrupted before any candidate was scored: there is nothing to write")
        if budget is not None and search.spent >= total:
            raise ConfigError(f"{few}: no candidate was scored within it; give more time", settings=["budget"])
        raise DataError("no candidate could be scored", corpus.source)
    return Tuning(
        space=space,
        yardstick=yardstick,
        chosen=chosen,
        best=best,
        usual=search.usual,
        outcomes=tuple(search.outcomes),
        history=tuple(search.history),
        sizes=tuple(search.sizes),
        positions=corpus.positions + (0 if dev is None else dev.positions),
        units={one.kind: 1e-9 if began is None else search.unit(one.kind) for one in search.history},
        timed=budget is not None,
        too_long=search.training(best.candidate) > total - search.spent,
        interrupted=stopped(),
    )


def train_chosen(
    found: Tuning, corpus: Corpus, source: str = "configuration", *, workers: Workers, **options: Any
) -> tuple[Model, Report]:
    """Train with the configuration that was found, on all of a corpus; `options` are those of `train`."""
    config = parse_config(found.raw, source)
    return train(*fit_encoding(config, corpus), config, workers=workers, **options)
