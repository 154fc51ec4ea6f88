"""Training as python-crfsuite's `Trainer` does it, on this library's solver; what is written is a model of CRFsuite.

The objective is CRFsuite's, sum_i -log p(y^i | x^i) + c2 |w|^2, without weights of first and last labels. It is
minimised until its value is proven to be within 1e-4 of the optimum, so that parameters of other ways to stop, and of
other algorithms, are taken and have no effect.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..config import parse_config
from ..corpora import ITEMS, corpus_of
from ..encoding import AttributeFeature, fit_encoding
from ..errors import KcrfError
from ..exchange import CrfsuiteModel, crfsuite_of, write_crfsuite
from ..model import packed_names
from ..objective.solvers import Note, Observer, Progress
from ..system import Workers
from ..training import train as fit
from .tagger import ItemSequence, Tagger, summed_items

if TYPE_CHECKING:
    from typing_extensions import Self

TOLERANCE = 1e-4
NO_LIMIT = 2147483647  # iterations, as CRFsuite writes it
MOST_PASSES = 100_000


_COMMON = {"feature.minfreq": 0.0, "feature.possible_states": False, "feature.possible_transitions": False}
_EVERY = {"max_iterations": 100, "epsilon": 0.0}
# Parameters of each algorithm with their defaults, whose types are those of all values.
_PARAMETERS: dict[str, dict[str, Any]] = {
    "lbfgs": _COMMON
    | {"c1": 0.0, "c2": 1.0, "max_iterations": NO_LIMIT, "num_memories": 6, "epsilon": 1e-5, "period": 10}
    | {"delta": 1e-5, "linesearch": "MoreThuente", "max_linesearch": 20},
    "l2sgd": _COMMON
    | {"c2": 1.0, "max_iterations": 1000, "period": 10, "delta": 1e-6, "calibration.eta": 0.1, "calibration.rate": 2.0}
    | {"calibration.samples": 1000.0, "calibration.candidates": 10, "calibration.max_trials": 20},
    "averaged-perceptron": _COMMON | _EVERY,
    "passive-aggressive": _COMMON | {"type": 1, "c": 1.0, "error_sensitive": True, "averaging": True} | _EVERY,
    "arow": _COMMON | {"variance": 1.0, "gamma": 1.0} | _EVERY,
}
_SHORT = {"ap": "averaged-perceptron", "pa": "passive-aggressive"}
_GRADUAL = ("lbfgs", "l2sgd")  # which minimise the objective that is minimised here
_STOPPING = "No effect: training ends when the objective is proven to be close to its optimum."
_HELP = {  # of the algorithms in _GRADUAL; other parameters have no effect
    "feature.minfreq": "Weights for pairs whose values in the data sum to at least this.",
    "feature.possible_states": "Weights for all pairs of attributes and labels, not those of the data alone.",
    "feature.possible_transitions": "Weights for all pairs of labels, not those of the data alone.",
    "c1": "Coefficient of the L1 norm of weights.",
    "c2": "Coefficient of the L2 norm of weights.",
    "max_iterations": "The most passes over the data.",
    **dict.fromkeys(("epsilon", "period", "delta"), _STOPPING),
}


class CRFSuiteError(Exception):
    """Training failed."""


class BaseTrainer:
    """Data and parameters of training; `message` gets lines of text about it."""

    def __init__(self, algorithm: str | None = None, params: dict[str, Any] | None = None, verbose: bool = True):
        self.verbose = verbose
        self.select(algorithm or "lbfgs")
        self.set_params(params or {})

    _sequences: list[tuple[ItemSequence, list[str], int]]

    def __new__(cls, *arguments: object, **more: object) -> Self:
        # Programs derive from it and do not always call __init__, which python-crfsuite allows.
        self = super().__new__(cls)
        self.verbose = True
        self._sequences = []
        self._algorithm, self._values = "lbfgs", dict(_PARAMETERS["lbfgs"])
        return self

    def message(self, message: str) -> None:
        """Print a message if `verbose`; override it to do something else."""
        if self.verbose:
            sys.stdout.write(message)

    def _event(self, name: str, **about: Any) -> None:
        """Note that the messages of an event are complete."""

    def append(self, xseq: Iterable[Any], yseq: Sequence[str], group: int = 0) -> None:
        """Add a sequence of items with its labels; `group` is a number that `train` may hold out."""
        items = xseq if isinstance(xseq, ItemSequence) else ItemSequence(xseq)
        labels = [label.decode() if isinstance(label, bytes) else label for label in yseq]
        if len(items) != len(labels):
            raise ValueError(f"{len(items):,} items, but {len(labels):,} labels")
        wrong = next((label for label in labels if not isinstance(label, str)), None)
        if wrong is not None:
            raise TypeError(f"labels are strings, not {type(wrong).__name__}")
        self._sequences.append((items, labels, int(group)))

    def clear(self) -> None:
        """Forget all sequences."""
        self._sequences = []

    def select(self, algorithm: str, type: str = "crf1d") -> None:
        """Choose an algorithm, which sets its parameters to their defaults."""
        name = _SHORT.get(algorithm.lower(), algorithm.lower())
        if name not in _PARAMETERS or type != "crf1d":
            raise ValueError(f"Bad arguments: algorithm={algorithm!r}, type={type!r}")
        self._algorithm, self._values = name, dict(_PARAMETERS[name])

    def params(self) -> list[str]:
        return list(self._values)

    def set_params(self, params: dict[str, Any]) -> None:
        for name, value in params.items():
            self.set(name, value)

    def get_params(self) -> dict[str, Any]:
        return dict(self._values)

    def set(self, name: str, value: Any) -> None:
        kind, text = type(self.get(name)), str(int(value)) if isinstance(value, bool) else str(value)
        try:
            self._values[name] = bool(int(text)) if kind is bool else kind(text)
        except ValueError:
            raise ValueError(f"the parameter {name} cannot be {text!r}") from None

    def get(self, name: str) -> Any:
        if name not in self._values:
            raise ValueError(f"Parameter not found: {name}")
        return self._values[name]

    def help(self, name: str) -> str:
        self.get(name)  # refuses what is no parameter
        known = _HELP if name in _COMMON or self._algorithm in _GRADUAL else {}
        return known.get(name, "No effect here.")

    def train(self, model: str | os.PathLike[str], holdout: int = -1) -> None:
        """Train on all sequences but those of the group `holdout`, and write a model; an empty name writes none.

        A name that ends in .npz gives a model of kcrf, any other one of CRFsuite.
        """
        if self._algorithm not in _GRADUAL:
            raise CRFSuiteError(
                f"{self._algorithm} is not there: lbfgs minimises the log-likelihood with an L2 penalty (c2) instead"
            )
        c1, c2 = (self.get(name) if name in self._values else 0.0 for name in ("c1", "c2"))
        if min(c1, c2) < 0 or not c1 + c2:
            raise CRFSuiteError("c2 must be above 0: without a penalty weights may grow without end")
        path = os.fspath(model)
        began = time.perf_counter()
        kept = [one for one in self._sequences if (holdout < 0 or one[2] != holdout) and len(one[0])]
        self.message("Feature generation\n")
        self._event("start")
        self.message("type: CRF1d\n")
        for name in _COMMON:
            self.message(f"{name}: {float(self._values[name]):f}\n")
        try:
            found = self._fitted(kept, began)
            if found is None:
                whole, nothing, none = np.zeros(1, np.int64), np.zeros(0), np.zeros((0, 0))
                own = CrfsuiteModel((), *packed_names([]), whole, nothing, nothing, none, none.astype(bool))
            else:  # labels in the order in which the data has them
                own = crfsuite_of(found)[0]
                names = tuple(dict.fromkeys(label for _, labels, _ in kept for label in labels))
                order = np.array([own.labels.index(name) for name in names])
                columns, both = np.argsort(order)[own.columns], np.ix_(order, order)
                edges = {"transitions": own.transitions[both], "listed": own.listed[both]}
                own = replace(own, labels=names, columns=columns, **edges)
            data = write_crfsuite(own)
        except KcrfError as error:
            raise CRFSuiteError(str(error)) from None
        if path:
            self.message("Storing the model\n")
            if path.endswith(".npz") and found is not None:
                found.save(path)
            else:
                with open(path, "wb") as stream:
                    stream.write(data)
        if holdout >= 0 and found is not None:
            with Tagger().open_inmemory(data) as tagger:
                pairs = [
                    pair
                    for items, labels, group in self._sequences
                    if group == holdout
                    for pair in zip(tagger.tag(items), labels, strict=True)
                ]
            right = sum(tagged == label for tagged, label in pairs)
            if pairs:
                self.message(f"Item accuracy: {right} / {len(pairs)} ({right / len(pairs):.4f})\n")
        self.message(f"Total seconds required for training: {time.perf_counter() - began:.3f}\n\n")
        self._event("end")

    def _fitted(self, kept: Sequence[tuple[ItemSequence, list[str], int]], began: float) -> Any:
        if not kept:
            self.message("no sequences: an empty model\n\n")
            return None
        labels = [own for _, own, _ in kept]
        corpus = replace(corpus_of([summed_items(items) for items, _, _ in kept], ITEMS, labels), source="the data")
        least = self.get("feature.minfreq")
        # A pair that the data does not have sums to zero.
        states, transitions = (
            least <= 0 and self.get(f"feature.possible_{kind}") for kind in ("states", "transitions")
        )
        edges = "transitions" if transitions else "seen-transitions"
        assert corpus.attributes is not None
        sums_matter = least > 0 or bool((corpus.attributes.values < 0).any())
        config = parse_config(
            {
                "terms": [{"name": "node", "type": "node"}, {"name": "edge", "type": edges}],
                "training": {
                    **({"c1": self.get("c1")} if "c1" in self._values else {}),
                    "sigma2": 1 / (2 * self.get("c2")) if self.get("c2") else "inf",
                    "tolerance": TOLERANCE,
                    "max_passes": min(max(self.get("max_iterations"), 1), MOST_PASSES),
                    "observed_features": not states,
                },
            }
        )
        encoding, dataset = fit_encoding(config, corpus)
        (feature,) = encoding.features
        assert isinstance(feature, AttributeFeature)
        self.message(f"Number of features: {len(feature.vocabulary.values)}\n")
        self.message(f"Seconds required: {time.perf_counter() - began:.3f}\n\n")
        self._event("featgen_end", features=len(feature.vocabulary.values))
        if self._algorithm != "lbfgs":
            self.message(f"{self._algorithm}: the same objective is minimised by another algorithm\n\n")
        with Workers() as workers:
            more: dict[str, Any] = {"observer": _Listener(self), "min_frequency": least if sums_matter else None}
            model, report = fit(encoding, dataset, config, workers=workers, **more)
        self._event("optimization_end")
        self.message(f"{report.result.reason}: loss {report.result.value:f}, {report.result.passes} passes\n\n")
        return model


class _Listener(Observer):
    """An observer that passes events of training on as messages."""

    def __init__(self, trainer: BaseTrainer):
        self._trainer, self._before, self._passes = trainer, time.perf_counter(), 0

    def tell(self, event: Any) -> None:
        if isinstance(event, Note):
            self._trainer.message(f"{event.text}\n")
        elif isinstance(event, Progress):
            if not self._passes:
                self._trainer._event("prepared")
            self._passes += 1
            now = time.perf_counter()
            seconds, self._before = now - self._before, now
            self._trainer.message(f"***** Iteration #{event.passes} *****\n")
            self._trainer.message(f"Loss: {event.value:f}\n")
            self._trainer.message(f"Seconds required for this iteration: {seconds:.3f}\n")
            self._trainer.message("\n")
            self._trainer._event("iteration", num=event.passes, scores={}, loss=event.value, time=seconds)


@dataclass
class IterationLog:
    """Messages so far, and the number, loss and time of each iteration."""

    log: list[str] = field(default_factory=list)
    iterations: list[dict[str, Any]] = field(default_factory=list)
    featgen_num_features: int | None = None
    last_log: str = ""  # messages of the last event
    reported: int = 0  # messages that belong to events so far

    @property
    def last_iteration(self) -> dict[str, Any] | None:
        return self.iterations[-1] if self.iterations else None


class Trainer(BaseTrainer):
    """A trainer with events: methods `on_start`, `on_iteration` and the like may be overridden."""

    logparser: IterationLog | None = None

    def train(self, model: str | os.PathLike[str], holdout: int = -1) -> None:
        self.logparser = IterationLog()
        super().train(model, holdout)

    def message(self, message: str) -> None:
        assert self.logparser is not None  # `train` makes one
        self.logparser.log.append(message)

    def _event(self, name: str, **about: Any) -> None:
        found = self.logparser
        assert found is not None
        found.last_log, found.reported = "".join(found.log[found.reported :]), len(found.log)
        if name == "iteration":
            found.iterations.append(about)
        elif name == "featgen_end":
            found.featgen_num_features = about["features"]
        if self.verbose:
            arguments = (found.last_log, about) if name == "iteration" else (found.last_log,)
            getattr(self, f"on_{name}")(*arguments)

    def on_start(self, log: str) -> None:
        """Print the messages up to this event."""
        sys.stdout.write(log)

    on_featgen_end = on_prepared = on_optimization_end = on_end = on_start

    def on_iteration(self, log: str, info: dict[str, Any]) -> None:
        """Print the messages of an iteration."""
        sys.stdout.write(log)
