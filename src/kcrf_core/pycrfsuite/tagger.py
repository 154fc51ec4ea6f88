"""Labels and probabilities of one sequence after the other, as python-crfsuite's `Tagger` gives them."""

from __future__ import annotations

import contextlib
import math
import os
import sys
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import FileFormatError, KcrfError
from ..model import attribute_sections
from ..runtime import ItemRows, RuntimeModel, RuntimeTagger

if TYPE_CHECKING:
    import numpy as np

    from ..model import Model

ARCHIVE, EXPORTED = b"PK\x03\x04", b"KCRFTAG\0"


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


@dataclass
class ParsedDump:
    """Contents of a model, by names."""

    header: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)  # numbers by name
    attributes: dict[str, str] = field(default_factory=dict)
    transitions: dict[tuple[str, str], float] = field(default_factory=dict)
    state_features: dict[tuple[str, str], float] = field(default_factory=dict)


class _Open(threading.local):
    """An open model of kcrf, or one with its file; each thread has its own sequence, and calls `__init__`."""

    def __init__(self, model: RuntimeModel, source: bytes | Model):
        self.labels, self.source, self.items = model.labels, source, RuntimeTagger(model)
        self._rules = None if isinstance(source, bytes) else source.label_rules
        self.numbers = {label: number for number, label in enumerate(model.labels)}
        self._marginals: np.ndarray | None = None

    def set(self, xseq: Any) -> None:
        self._marginals = None
        self.items.set_attributes(xseq)

    @property
    def marginals(self) -> np.ndarray:
        """Marginals [T, Y] of the sequence that this thread has set, computed once."""
        if self._marginals is None:
            self._marginals = self.items.marginals()
        return self._marginals

    def tag(self, xseq: Any) -> list[str]:
        """Return the best labels of a sequence, or of the one that this thread has set."""
        items, rules = self.items, self._rules
        if xseq is not None:
            self.set(xseq)
        if not len(items):
            return []
        if rules is None or isinstance(self.source, bytes):  # which is of a model without rules
            return items.label_names()
        from .kcrf_models import obeying_labels

        return obeying_labels(items, self.source, rules)


def _open_crfsuite(data: bytes, source: str) -> _Open:
    from ..exchange import read_crfsuite_parts  # models of kcrf need neither it nor what it imports

    labels, places, parts = read_crfsuite_parts(data, source)
    starts, lengths, ends, columns, values, transitions, _ = parts
    names, weights = (data, starts, lengths), (len(labels), ends, columns, values)
    sections = attribute_sections(labels, places, names, weights, transitions)
    return _Open(RuntimeModel(sections), data)


def _open_kcrf(data: bytes, source: str) -> _Open:
    from .linear_models import linear_model

    model = linear_model(data, source)  # without NumPy
    if model is not None:
        return _Open(model, data)
    from .kcrf_models import open_model

    return _Open(*open_model(data, source))


class Tagger:
    """A tagger by a model of CRFsuite, with Viterbi decoding, or by a linear model of kcrf, with its decoder.

    A model of kcrf opens in the least time from the file that `kcrf export --to runtime` writes, which has no `info`.

    Threads may share a tagger. A sequence that is set, by `set` or by `tag(xseq)`, is that of the calling thread:
    `tag()`, `probability` and `marginal` are about the last one that the same thread has set.

    Labels obey the rules that a model of kcrf stores; probabilities are those without them. Where no labelling obeys,
    labels without rules are given, with a warning, or "_", or ValueError is raised, as the rules say.
    """

    def __init__(self) -> None:
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
                self._open = _open_kcrf(data, source)
            elif data.startswith(b"lCRF"):
                self._open = _open_crfsuite(data, source)
            elif data.startswith(EXPORTED):
                if not (model := RuntimeModel(data)).attributes:
                    raise FileFormatError(f"{source}: the model needs columns, but items have only attributes")
                self._open = _Open(model, data)
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
        return math.exp(model.items.log_probability([model.numbers[label] for label in yseq]))

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
        import numpy as np  # labels of models of CRFsuite need none

        from ..exchange import crfsuite_header, crfsuite_of, read_crfsuite
        from ..files import read_container
        from ..model import Model

        try:
            source = self._model(RuntimeError).source
            if isinstance(source, bytes) and source.startswith(EXPORTED):
                raise FileFormatError("an exported model has no names of weights: open the .npz file")
            if isinstance(source, bytes) and source.startswith(ARCHIVE):
                source = Model.unpack(read_container("", "model", data=source))
            model = read_crfsuite(source, "") if isinstance(source, bytes) else crfsuite_of(source)[0]
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
