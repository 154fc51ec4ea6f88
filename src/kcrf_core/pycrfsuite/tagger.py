"""Labels and probabilities of one sequence after the other, as python-crfsuite's `Tagger` gives them."""

from __future__ import annotations

import contextlib
import math
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ..chains import LIMITED, Edges, chain
from ..config import parse_config
from ..corpora import ITEMS, corpus_of
from ..errors import ConfigError, FileFormatError, KcrfError
from ..exchange import CrfsuiteModel, crfsuite_header, crfsuite_of, read_crfsuite
from ..files import read_container
from ..model import VITERBI, Inference, LabelRules, Model, attribute_image, combined, runtime_image
from ..runtime import ItemRows, RuntimeModel, RuntimeTagger

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


class _LibraryItems(RuntimeTagger):
    """One sequence after another by the C library."""

    def __init__(self, made: RuntimeModel, edges: Edges):
        super().__init__(made)
        self._edges = edges

    set = RuntimeTagger.set_attributes

    def potentials(self) -> tuple[np.ndarray, Edges]:
        return self.scores(), self._edges


class _ModelItems:
    """One sequence after another by any model of attributes."""

    def __init__(self, model: Model):
        self._model = model
        self._scores, self._edges = np.zeros((0, len(model.labels))), model.used_edges

    def set(self, xseq: Any) -> None:
        self._scores = np.zeros((0, len(self._model.labels)))
        items = summed_items(xseq if isinstance(xseq, ItemRows) else ItemRows(xseq))
        dataset = self._model.encoding.encode(corpus_of([items], ITEMS))
        self._scores, self._edges = self._model.potentials(dataset)

    def __len__(self) -> int:
        return len(self._scores)

    def potentials(self) -> tuple[np.ndarray, Edges]:
        return self._scores, self._edges

    def labels(self) -> np.ndarray:
        model, offsets = self._model, np.array([0, len(self)])
        return Inference(*self.potentials(), offsets, None, model.decode, model.bonuses).labels

    def label_names(self) -> list[str]:
        return [self._model.labels[number] for number in self.labels().tolist()]

    def marginals(self) -> np.ndarray:
        return chain.marginals(*self.potentials(), np.array([0, len(self)])).node

    def log_probability(self, labels: np.ndarray) -> float:
        offsets = np.array([0, len(self)])
        score = chain.path_scores(*self.potentials(), offsets, labels)[0]
        return float(score - chain.marginals(*self.potentials(), offsets).log_z[0])


class _Open(threading.local):
    """An open model; each thread has its own sequence, for which `__init__` is called again."""

    def __init__(
        self,
        labels: tuple[str, ...],
        make: Callable[[], _LibraryItems | _ModelItems],
        source: CrfsuiteModel | Model,
        rules: LabelRules | None,
    ):
        self.labels, self.source, self.items, self.rules = labels, source, make(), rules
        self.decode, self.bonuses = (source.decode, source.bonuses) if isinstance(source, Model) else (VITERBI, None)
        self.numbers = {label: number for number, label in enumerate(labels)}
        self._marginals: np.ndarray | None = None

    def set(self, xseq: Any) -> None:
        self._marginals = None
        self.items.set(xseq)

    @property
    def marginals(self) -> np.ndarray:
        """Marginals [T, Y] of the sequence that this thread has set, computed once."""
        if self._marginals is None:
            self._marginals = self.items.marginals()
        return self._marginals

    def tag(self, xseq: Any) -> list[str]:
        """Return the best labels that obey of a sequence, or of the one that this thread has set."""
        items, rules = self.items, self.rules
        if xseq is not None:
            self._marginals = None
            items.set(xseq)
        if not len(items):
            return []
        if rules is None or (self.decode == VITERBI and rules.runs.counters.obeyed(items.labels())):
            return items.label_names()
        found = Inference(*items.potentials(), np.array([0, len(items)]), rules, self.decode, self.bonuses)
        assert found.status is not None
        try:
            remarks = rules.remarks(found.status, np.ones(1, dtype=np.int64), "items")
        except KcrfError as error:
            raise ValueError(str(error)) from None
        for remark in remarks:
            warnings.warn(remark, UserWarning, stacklevel=3)
        if found.status[0] > LIMITED and rules.config.when_impossible == "blank":
            return ["_"] * len(found.labels)
        return [self.labels[number] for number in found.labels.tolist()]


def _items_of(model: Model) -> Callable[[], _LibraryItems | _ModelItems]:
    """Return what labels items by a model: the library, if it has all potentials of the model."""
    try:
        if any(term.clique.axes != 1 for term in model.terms):
            raise ConfigError("potentials of transitions that depend on the input")
        made = RuntimeModel(runtime_image(replace(model, rules=None)))
    except (ConfigError, UnicodeEncodeError):
        return partial(_ModelItems, model)
    return partial(_LibraryItems, made, model.used_edges)


class Tagger:
    """A tagger by a model of CRFsuite, with Viterbi decoding, or by one of kcrf for attributes, with its own decoder.

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
                rules = LabelRules.of(combined(model.rules, self._rules), model.labels, model.seen)
                self._open = _Open(model.labels, _items_of(model), model, rules)
            elif data.startswith(b"lCRF"):
                found = read_crfsuite(data, source)
                Y = len(found.labels)
                edges = Edges(found.transitions, np.zeros(Y), np.zeros(Y))
                names, weights = (found.text, found.starts, found.lengths), (found.ends, found.columns, found.values)
                made = RuntimeModel(attribute_image(found.labels, names, *weights, edges))
                rules = LabelRules.of(self._rules, found.labels)
                self._open = _Open(found.labels, partial(_LibraryItems, made, edges), found, rules)
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
        self._model().set(xseq)

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
        labels = np.array([model.numbers[label] for label in yseq], dtype=np.int32)
        return math.exp(model.items.log_probability(labels))

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
        return float(model.marginals[pos, model.numbers[y]])

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
