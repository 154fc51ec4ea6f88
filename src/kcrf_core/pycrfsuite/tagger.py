"""Labels and probabilities of one sequence after the other, as python-crfsuite's `Tagger` gives them."""

from __future__ import annotations

import contextlib
import math
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ..chains import LIMITED, Edges, RunRules, chain
from ..config import parse_config
from ..corpora import ITEMS, corpus_of
from ..errors import FileFormatError, KcrfError
from ..exchange import CrfsuiteModel, crfsuite_header, crfsuite_of, read_crfsuite
from ..files import read_container
from ..model import ItemRows, LabelRules, LabelScorer, Model, ScoredItems, combined, label_scorer

ARCHIVE = b"PK\x03\x04"


class ItemSequence(ItemRows):
    """The attributes of a sequence of items.

    >>> from kcrf_core.pycrfsuite import ItemSequence
    >>> ItemSequence([["foo"], {"bar": {"baz": 1}, "word": "cat", "upper": True}]).items()
    [{'foo': 1.0}, {'bar:baz': 1.0, 'word:cat': 1.0, 'upper': 1.0}]
    """

    def items(self) -> list[dict[str, float]]:
        """Return a dictionary from names to values for each item."""
        return [{name.decode("utf-8"): value for name, value in item} for item in self.attributes()]

    def __repr__(self) -> str:
        return f"<ItemSequence of size {len(self)}>"


def summed_items(rows: ItemRows) -> list[dict[str, float]]:
    """Return the attributes of each item by name, their values added up."""
    items: list[dict[str, float]] = []
    for own in rows.attributes():
        items.append({})
        for name, value in own:
            text = name.decode("utf-8", "backslashreplace")
            items[-1][text] = items[-1].get(text, 0.0) + value
    return items


@dataclass
class ParsedDump:
    """Contents of a model, by names."""

    header: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)  # numbers by name
    attributes: dict[str, str] = field(default_factory=dict)
    transitions: dict[tuple[str, str], float] = field(default_factory=dict)
    state_features: dict[tuple[str, str], float] = field(default_factory=dict)


class _ModelItems:
    """Potentials of one sequence after another by any model of attributes, with the methods of `ScoredItems`."""

    found: tuple[np.ndarray, float, np.ndarray, Edges] | None = None

    def __init__(self, model: Model):
        self._model = model
        self.scores, self.edges = np.zeros((0, len(model.labels))), model.used_edges

    def set(self, xseq: Any) -> None:
        self.scores, self.found = np.zeros((0, len(self._model.labels))), None
        items = summed_items(xseq if isinstance(xseq, ItemRows) else ItemRows(xseq))
        dataset = self._model.encoding.encode(corpus_of([items], ITEMS))
        self.scores, self.edges = self._model.potentials(dataset)

    def __len__(self) -> int:
        return len(self.scores)

    def tag(self, xseq: Any, rules: RunRules | None, otherwise: Callable[[_ModelItems], list[str]]) -> list[str]:
        if xseq is not None:
            self.set(xseq)
        offsets = np.array([0, len(self.scores)])
        path = chain.viterbi(self.scores, self.edges, offsets)[0]
        if rules is not None and not rules.obeyed(path, offsets)[0]:
            return otherwise(self)
        return [self._model.labels[number] for number in path.tolist()]


class _Open(threading.local):
    """An open model; each thread has its own sequence, for which `__init__` is called again."""

    def __init__(
        self,
        labels: tuple[str, ...],
        make: Callable[[], ScoredItems | _ModelItems],
        edges: Edges,
        source: CrfsuiteModel | Model,
        rules: LabelRules | None,
    ):
        self.labels, self._edges, self.source, self.items, self.rules = labels, edges, source, make(), rules
        self.numbers = {label: number for number, label in enumerate(labels)}

    def potentials(self, items: ScoredItems | _ModelItems) -> tuple[np.ndarray, Edges]:
        """Return scores and edges of a sequence."""
        if not isinstance(items, ScoredItems):
            return items.scores, items.edges
        scores = np.empty((len(items), len(self.labels)))
        items.copy_scores(scores)
        return scores, self._edges

    @property
    def probabilities(self) -> tuple[np.ndarray, float, np.ndarray, Edges]:
        """Marginals [T, Y], log Z, scores and edges of the sequence that this thread has set, worked out once."""
        items = self.items
        if items.found is None:
            scores, edges = self.potentials(items)
            found = chain.marginals(scores, edges, np.array([0, len(items)]))
            items.found = found.node, float(found.log_z[0]), scores, edges
        return items.found

    def tag(self, xseq: Any) -> list[str]:
        """Return the best labels that obey of a sequence, or of the one that this thread has set."""
        runs = None if self.rules is None else self.rules.runs
        if isinstance(self.items, ScoredItems):
            return self.items.tag(xseq, None if runs is None else runs.counters, self._obeying)
        return self.items.tag(xseq, runs, self._obeying)

    def _obeying(self, items: ScoredItems | _ModelItems) -> list[str]:
        assert self.rules is not None
        best, status = self.rules.best(*self.potentials(items), np.array([0, len(items)]), None)
        try:
            remarks = self.rules.remarks(status, np.ones(1, dtype=np.int64), "items")
        except KcrfError as error:
            raise ValueError(str(error)) from None
        for remark in remarks:
            warnings.warn(remark, UserWarning, stacklevel=4)
        if status[0] > LIMITED and self.rules.config.when_impossible == "blank":
            return ["_"] * len(best)
        return [self.labels[number] for number in best.tolist()]


class Tagger:
    """A tagger by a model of CRFsuite, or by one of kcrf that works on attributes; always by Viterbi.

    Threads may share a tagger. A sequence that is set, by `set` or by `tag(xseq)`, is that of the calling thread:
    `tag()`, `probability` and `marginal` are about the last one that the same thread has set.

    Labels obey rules: `once`, labels that form at most one run, or "all"; `require`, labels that occur; `at_most`, the
    most runs of labels; `forbid`, transitions such as "A>B". Those that a model of kcrf stores hold, too. Probabilities
    are those of the model. Where no labelling obeys, labels without rules are given, with a warning, or "_", or
    ValueError is raised (`when_impossible`: keep, blank or fail). `search_limit` is the most nodes of the search for
    the best labelling.
    """

    def __init__(
        self,
        once: str | Iterable[str] = (),
        require: str | Iterable[str] = (),
        at_most: Mapping[str, int] | None = None,
        forbid: str | Iterable[str] = (),
        when_impossible: str | None = None,
        search_limit: int | None = None,
    ) -> None:
        given = {"once": once, "require": require, "forbid": forbid}
        named: dict[str, Any] = {name: own if isinstance(own, str) else list(own) for name, own in given.items()}
        named |= {"at_most": dict(at_most or {}), "when_impossible": when_impossible, "search_limit": search_limit}
        named = {name: value for name, value in named.items() if value not in ("", [], {}, None)}
        try:
            self._rules = parse_config({"rules": named}, "Tagger").rules
        except KcrfError as error:
            raise ValueError(str(error)) from None
        self._open: _Open | None = None

    def open(self, name: str | os.PathLike[str]) -> contextlib.closing[Tagger]:
        """Open a model; the result closes it at the end of a `with` block."""
        with open(name, "rb") as stream:
            data = stream.read()
        return self._opened(data, os.fspath(name))

    def open_inmemory(self, value: bytes) -> contextlib.closing[Tagger]:
        """Open the model in these bytes, those of a file."""
        if not isinstance(value, bytes):
            raise TypeError(f"the bytes of a model, not {type(value).__name__}")
        return self._opened(value, "the model in memory")

    def _opened(self, data: bytes, source: str) -> contextlib.closing[Tagger]:
        self.close()
        try:
            if data.startswith(ARCHIVE):
                model = Model.unpack(read_container(source, "model", data=data))
                if not model.encoding.attributes or model.encoding.vectors:
                    raise FileFormatError(
                        f"{source}: the model needs columns or vectors, but items have only attributes"
                    )
                scorer = label_scorer(model)
                make = partial(_ModelItems, model) if scorer is None else partial(ScoredItems, scorer)
                rules = LabelRules.of(combined(model.rules, self._rules), model.labels, model.seen)
                self._open = _Open(model.labels, make, model.edges, model, rules)
            elif data.startswith(b"lCRF"):
                found = read_crfsuite(data, source)
                edges = Edges(found.transitions, np.zeros(len(found.labels)), np.zeros(len(found.labels)))
                names, weights = (found.text, found.starts, found.lengths), (found.ends, found.columns, found.values)
                scorer = LabelScorer(found.labels, *names, *weights, edges.transitions, edges.start, edges.end)
                rules = LabelRules.of(self._rules, found.labels)
                self._open = _Open(found.labels, partial(ScoredItems, scorer), edges, found, rules)
            else:
                raise FileFormatError(f"{source}: not a model of CRFsuite or kcrf (kcrf import reads other kinds)")
        except KcrfError as error:
            raise ValueError(str(error)) from None
        return contextlib.closing(self)

    def close(self) -> None:
        self._open = None

    def _model(self, error: type[Exception] = ValueError) -> _Open:
        if self._open is None:
            raise error("the tagger is not opened")
        return self._open

    def labels(self) -> list[str]:
        return list(self._model().labels)

    def set(self, xseq: Iterable[Any]) -> None:
        """Take a sequence for calls of `tag`, `probability` and `marginal` in this thread."""
        self._model().items.set(xseq)

    def tag(self, xseq: Iterable[Any] | ItemRows | None = None) -> list[str]:
        """Return the best labels of a sequence, or of the one that is set."""
        return self._model().tag(xseq)

    def probability(self, yseq: Sequence[str]) -> float:
        """Return p(y | x) of labels for the sequence that is set."""
        model = self._model()
        T = len(model.items)
        if not T:
            return 0.0
        if len(yseq) != T:
            raise ValueError(f"{T:,} items, but {len(yseq):,} labels")
        unknown = [label for label in yseq if label not in model.numbers]
        if unknown:
            raise RuntimeError(f"the model has no label {unknown[0]!r}")
        _, log_z, scores, edges = model.probabilities
        labels = np.array([model.numbers[label] for label in yseq], dtype=np.int32)
        return math.exp(float(chain.path_scores(scores, edges, np.array([0, T]), labels)[0]) - log_z)

    def marginal(self, y: str, pos: int) -> float:
        """Return p(y_pos = y | x) for the sequence that is set."""
        model = self._model()
        T = len(model.items)
        if not T:
            return 0.0
        if not 0 <= pos < T:
            raise ValueError(f"position {pos} of a sequence of {T:,}")
        if y not in model.numbers:
            raise RuntimeError(f"the model has no label {y!r}")
        return float(model.probabilities[0][pos, model.numbers[y]])

    def dump(self, filename: str | os.PathLike[str] | None = None) -> None:
        """Write the model as text, to stdout where no file is named."""
        found, lines = self.info(), ["FILEHEADER = {"]
        lines += [*(f"  {key}: {value}" for key, value in found.header.items()), "}", ""]
        for title, names in (("LABELS", found.labels), ("ATTRIBUTES", found.attributes)):
            lines += [f"{title} = {{", *(f"  {number:>5}: {name}" for name, number in names.items()), "}", ""]
        for kind, title, own in ((1, "TRANSITIONS", found.transitions), (0, "STATE_FEATURES", found.state_features)):
            rows = (f"  ({kind}) {one} --> {other}: {weight:f}" for (one, other), weight in own.items())
            lines += [f"{title} = {{", *rows, "}", ""]
        text = "".join(f"{line}\n" for line in lines)
        if filename is None:
            sys.stdout.write(text)
            return
        with open(filename, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)

    def info(self) -> ParsedDump:
        """Return the model's labels, attributes and weights by name."""
        try:
            source = self._model(RuntimeError).source
            model = source if isinstance(source, CrfsuiteModel) else crfsuite_of(source)[0]
        except KcrfError as error:
            raise RuntimeError(str(error)) from None
        labels, names = model.labels, [name.decode("utf-8", "backslashreplace") for name in model.attributes]
        rows = np.repeat(np.arange(len(names)), np.diff(model.ends)).tolist()
        pairs = zip(rows, model.columns.tolist(), model.values.tolist(), strict=True)
        return ParsedDump(
            crfsuite_header(model),
            {label: str(number) for number, label in enumerate(labels)},
            {name: str(number) for number, name in enumerate(names)},
            {(labels[i], labels[j]): float(model.transitions[i, j]) for i, j in np.argwhere(model.listed).tolist()},
            {(names[a], labels[y]): value for a, y, value in pairs},
        )
