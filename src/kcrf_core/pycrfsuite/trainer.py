"""Training as python-crfsuite's `Trainer` does it, on this library's solver; what is written is a model of CRFsuite.

The objective is CRFsuite's, sum_i -log p(y^i | x^i) + c2 |w|^2, without weights of first and last labels. It is
minimised until its value is proven to be within 1e-4 of the optimum, so that parameters of other ways to stop are taken
and have no effect.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..config import parse_config
from ..corpora import AttributeRows, CodedColumn, Corpus, ItemStore, StoredItems
from ..encoding import AttributeFeature, fit_encoding
from ..errors import KcrfError
from ..exchange import CrfsuiteModel, crfsuite_of, write_crfsuite
from ..model import packed_names
from ..objective.solvers import Event, Note, Observer, Progress
from ..scoring import Evaluation, metrics
from ..system import Workers, hand_back, offsets_of
from ..training import train as fit
from .tagger import ItemSequence, Tagger

if TYPE_CHECKING:
    from typing_extensions import Self

TOLERANCE = 1e-4
NO_LIMIT = 2147483647  # iterations, as CRFsuite writes it
MOST_PASSES = 100_000


_COMMON = {"feature.minfreq": 0.0, "feature.possible_states": False, "feature.possible_transitions": False}
# Parameters of the algorithms that minimise the objective, with their defaults, whose types are those of all values.
_PARAMETERS: dict[str, dict[str, Any]] = {
    "lbfgs": _COMMON
    | {"c1": 0.0, "c2": 1.0, "max_iterations": NO_LIMIT, "num_memories": 6, "epsilon": 1e-5, "period": 10}
    | {"delta": 1e-5, "linesearch": "MoreThuente", "max_linesearch": 20},
    "l2sgd": _COMMON
    | {"c2": 1.0, "max_iterations": 1000, "period": 10, "delta": 1e-6, "calibration.eta": 0.1, "calibration.rate": 2.0}
    | {"calibration.samples": 1000.0, "calibration.candidates": 10, "calibration.max_trials": 20},
}
_STOPPING = "No effect: training ends when the objective is proven to be close to its optimum."
_HELP = {  # other parameters have no effect
    "feature.minfreq": "Weights for pairs whose values in the data sum to at least this.",
    "feature.possible_states": "Weights for all pairs of attributes and labels, not those of the data alone.",
    "feature.possible_transitions": "Weights for all pairs of labels, not those of the data alone.",
    "c1": "Coefficient of the L1 norm of weights.",
    "c2": "Coefficient of the L2 norm of weights.",
    "max_iterations": "The most iterations.",
    **dict.fromkeys(("epsilon", "period", "delta"), _STOPPING),
}


_TITLES = {  # of the figures of an iteration
    "loss": "Loss",
    "feature_norm": "Feature norm",
    "error_norm": "Error norm",
    "active_features": "Active features",
    "linesearch_trials": "Line search trials",
}


class LabelScore(NamedTuple):
    """Counts and figures of a label on held-out sequences."""

    match: int  # labelled so, and rightly
    model: int  # labelled so
    ref: int  # with this label
    precision: float
    recall: float
    f1: float


class LabelledItems(NamedTuple):
    """A sequence for training, or for the scores of a group that is held out."""

    items: StoredItems
    labels: list[str]
    group: int


class CRFSuiteError(Exception):
    """Training failed."""


def _show(text: str) -> None:
    """Write to stdout at once, so that progress is seen through a pipe, too."""
    sys.stdout.write(text)
    sys.stdout.flush()


class BaseTrainer:
    """Data and parameters of training; `message` gets lines of text about it."""

    def __init__(self, algorithm: str | None = None, params: dict[str, Any] | None = None, verbose: bool = True):
        self.verbose = verbose
        self.select(algorithm or "lbfgs")
        self.set_params(params or {})

    _store: ItemStore
    _labels: dict[str, str]  # each label once, however many objects programs have for it
    _sequences: list[LabelledItems]

    def __new__(cls, *arguments: object, **more: object) -> Self:
        # Programs derive from it and do not always call __init__, which python-crfsuite allows.
        self = super().__new__(cls)
        self.verbose = True
        self.clear()
        self._algorithm, self._values = "lbfgs", dict(_PARAMETERS["lbfgs"])
        return self

    def message(self, message: str) -> None:
        """Print a message if `verbose`; override it to do something else."""
        if self.verbose:
            _show(message)

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
        labels = [self._labels.setdefault(label, label) for label in labels]
        self._sequences.append(LabelledItems(self._store.add(items), labels, int(group)))

    def clear(self) -> None:
        """Forget all sequences."""
        self._store, self._labels, self._sequences = ItemStore(), {}, []

    def select(self, algorithm: str, type: str = "crf1d") -> None:
        """Choose an algorithm, which sets its parameters to their defaults."""
        name = algorithm.lower()
        if name not in _PARAMETERS or type != "crf1d":
            known = " and ".join(_PARAMETERS)
            raise ValueError(f"Bad arguments: algorithm={algorithm!r}, type={type!r}: there are {known}, and crf1d")
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
        return _HELP.get(name, "No effect here.")

    def train(self, model: str | os.PathLike[str], holdout: int = -1) -> None:
        """Train on all sequences but those of the group `holdout`, and write a model; an empty name writes none.

        A name that ends in .npz gives a model of kcrf, any other one of CRFsuite.
        """
        c1, c2 = (self.get(name) if name in self._values else 0.0 for name in ("c1", "c2"))
        if min(c1, c2) < 0 or not c1 + c2:
            raise CRFSuiteError("c2 must be above 0: without a penalty weights may grow without end")
        path = os.fspath(model)
        began = time.perf_counter()
        filled = [sequence for sequence in self._sequences if sequence.labels]
        kept = [sequence for sequence in filled if holdout < 0 or sequence.group != holdout]
        held_out = [sequence for sequence in filled if 0 <= holdout == sequence.group]
        self.message("Feature generation\n")
        self._event("start")
        self.message("type: CRF1d\n")
        self._list_parameters(_COMMON)
        self._event("featgen_progress", featgen_percent=0)
        try:
            found, ending = self._fitted(kept, began)
            hand_back()  # the memory of training
            if found is None:
                whole, nothing, none = np.zeros(1, np.int64), np.zeros(0), np.zeros((0, 0))
                own = CrfsuiteModel((), *packed_names([]), whole, nothing, nothing, none, none.astype(bool))
            else:  # labels in the order in which the data has them
                own = crfsuite_of(found)[0]
                names = tuple(dict.fromkeys(chain.from_iterable(sequence.labels for sequence in kept)))
                order = np.array([own.labels.index(name) for name in names])
                columns, both = np.argsort(order)[own.columns], np.ix_(order, order)
                edges = {"transitions": own.transitions[both], "listed": own.listed[both]}
                rows = np.repeat(np.arange(len(own.ends) - 1), np.diff(own.ends))
                ascending = np.lexsort((columns, rows))
                states = {"columns": columns[ascending], "values": own.values[ascending]}
                own = replace(own, labels=names, **states, **edges)
            data = write_crfsuite(own)
        except KcrfError as error:
            self.message(f"Training terminated with error: {error}\n")
            self._event("prepare_error")
            raise CRFSuiteError(str(error)) from None
        if held_out and found is not None:
            with Tagger().open_inmemory(data) as tagger:
                items = (_items(self._store.rows([sequence.items])) for sequence in held_out)
                tagged = list(map(tagger.tag, items))
            gold = [sequence.labels for sequence in held_out]
            self._tell_performance(metrics.evaluate_sequences(gold, tagged, None))
        seconds = time.perf_counter() - began
        self.message(ending)
        self.message(f"Total seconds required for training: {seconds:.3f}\n\n")
        if found is not None:
            self._event("optimization_end", training_seconds=seconds)
        if path:
            self.message("Storing the model\n")
            if path.endswith(".npz") and found is not None:
                found.save(path)
            else:
                with open(path, "wb") as stream:
                    stream.write(data)
        self._event("end", training_seconds=seconds)

    def _list_parameters(self, names: Iterable[str]) -> None:
        for name in names:
            value = self._values[name]
            self.message(f"{name}: {value:f}\n" if isinstance(value, float) else f"{name}: {value:d}\n")

    def _tell_performance(self, found: Evaluation) -> None:
        """Print scores of held-out sequences as CRFsuite does, and add them to the last iteration."""
        self.message("Performance by label (#match, #model, #ref) (precision, recall, F1):\n")
        scores: dict[str, LabelScore] = {}
        for one in found.labels:
            scores[one.name] = LabelScore(
                one.correct, one.predicted, one.gold, precision=one.precision, recall=one.recall, f1=one.f1
            )
            self.message("    {}: ({}, {}, {}) ({:.4f}, {:.4f}, {:.4f})\n".format(one.name, *scores[one.name]))
        precision, recall, f1 = np.mean([score[3:] for score in scores.values()], axis=0).tolist()
        self.message(f"Macro-average precision, recall, F1: ({precision:f}, {recall:f}, {f1:f})\n")
        about: dict[str, Any] = {"avg_precision": precision, "avg_recall": recall, "avg_f1": f1}
        counts = {"item": (found.correct, found.positions), "instance": (found.correct_sequences, found.sequences)}
        for name, (right, total) in counts.items():
            about |= {f"{name}_accuracy": Fraction(right, total), f"{name}_accuracy_float": right / total}
            self.message(f"{name.capitalize()} accuracy: {right} / {total} ({right / total:.4f})\n")
        self._event("performance", scores=scores, **about)

    def _fitted(self, kept: Sequence[LabelledItems], began: float) -> tuple[Any, str]:
        """Return the trained model, None without data, and a message about the end of training."""
        if not kept:
            return None, "no sequences: an empty model\n"
        attributes = self._store.rows([sequence.items for sequence in kept])
        labels = [sequence.labels for sequence in kept]
        offsets = offsets_of(np.array(list(map(len, labels))))
        column = list(chain.from_iterable(labels))
        least = self.get("feature.minfreq")
        N = len(column)
        if not attributes.values.any():
            # Transitions alone have weights: an attribute with a sum below the least has none.
            names, values = CodedColumn([""], np.zeros(N, np.int32)), np.full(N, -1.0 - abs(least))
            attributes = AttributeRows(np.arange(N + 1), names, values)
        corpus = Corpus("the data", (column,), offsets, np.arange(1, N + 1), attributes=attributes)
        # A pair that the data does not have sums to zero.
        states, transitions = (
            least <= 0 and self.get(f"feature.possible_{kind}") for kind in ("states", "transitions")
        )
        edges = "transitions" if transitions else "seen-transitions"
        sums_matter = least > 0 or bool((attributes.values < 0).any())
        config = parse_config(
            {
                "terms": [{"name": "node", "type": "node"}, {"name": "edge", "type": edges}],
                "training": {
                    **({"c1": self.get("c1")} if "c1" in self._values else {}),
                    "sigma2": 1 / (2 * self.get("c2")) if self.get("c2") else "inf",
                    "tolerance": TOLERANCE,
                    # The starting point takes a pass, and is no iteration.
                    "max_passes": min(max(self.get("max_iterations"), 1), MOST_PASSES) + 1,
                    "observed_features": not states,
                    "decode": "viterbi",
                },
            }
        )
        encoding, dataset = fit_encoding(config, corpus)
        del attributes, corpus  # as large as what training needs
        (feature,) = encoding.features
        assert isinstance(feature, AttributeFeature)
        in_halves = states and not sums_matter and len(encoding.labels) == 2
        doubled = len(feature.vocabulary.values) if in_halves else 0
        pairs = Counter(pair for own in labels for pair in pairwise(own))
        unused = 0 if transitions else len(encoding.labels) ** 2 - sum(count >= least for count in pairs.values())
        observer = _Listener(self, began, doubled, unused)
        with Workers() as workers:
            frequency = least if sums_matter else None
            model, report = fit(encoding, dataset, config, workers=workers, observer=observer, min_frequency=frequency)
        result = report.result
        return model, f"{result.reason}: loss {result.value:f}, {result.passes} passes\n"


def _items(rows: AttributeRows) -> list[dict[str, float]]:
    """Return the attributes of each item by name, their values added up."""
    names, values = list(rows.names), rows.values.tolist()
    items: list[dict[str, float]] = []
    for first, last in pairwise(rows.indptr.tolist()):
        items.append({})
        for name, value in zip(names[first:last], values[first:last], strict=True):
            items[-1][name] = items[-1].get(name, 0.0) + value
    return items


class _Listener(Observer):
    """An observer that passes events of training on as messages.

    A pass that finds a smaller loss is an iteration; others are trials of the line search, or proofs.
    """

    def __init__(self, trainer: BaseTrainer, began: float, doubled: int, unused: int):
        self._trainer, self._before = trainer, began
        self._doubled = doubled  # parameters, the first of all, that stand for opposite weights of two labels
        self._unused = unused  # parameters of transitions that have no weight: they stay zero
        self._iterations = -1  # the starting point is none
        self._trials = 0

    def tell(self, event: Event) -> None:
        if isinstance(event, Note):
            self._trainer.message(f"{event.text}\n")
        elif isinstance(event, Progress):
            self._trials += 1
            if event.theta is not None:
                now = time.perf_counter()
                seconds, self._before = now - self._before, now
                self._iterations += 1
                if self._iterations:
                    self._tell_iteration(event, seconds)
                else:
                    self._tell_start(np.size(event.theta) + self._doubled - self._unused, seconds)
                self._trials = 0

    def _tell_start(self, weights: int, seconds: float) -> None:
        trainer = self._trainer
        trainer.message("0....1....2....3....4....5....6....7....8....9....10")
        trainer._event("featgen_progress", featgen_percent=100)
        trainer.message(f"\nNumber of features: {weights}\n")
        trainer.message(f"Seconds required: {seconds:.3f}\n\n")
        trainer._event("featgen_end", featgen_num_features=weights, featgen_seconds=seconds)
        other = "" if trainer._algorithm == "lbfgs" else f" of the objective of {trainer._algorithm}"
        trainer.message(f"L-BFGS optimization{other}\n")
        trainer._list_parameters(name for name in ("c1", "c2", "max_iterations") if name in trainer._values)
        trainer.message("\n")

    def _tell_iteration(self, event: Progress, seconds: float) -> None:
        trainer, theta = self._trainer, np.asarray(event.theta)
        if self._iterations == 1:
            trainer._event("prepared")
        about: dict[str, Any] = {"num": self._iterations, "scores": {}, "loss": event.value}
        about["feature_norm"] = float(np.linalg.norm(theta))
        if event.gradient is not None:
            about["error_norm"] = float(np.linalg.norm(np.asarray(event.gradient)))
        about["active_features"] = int(np.count_nonzero(theta) + np.count_nonzero(theta[: self._doubled]))
        about |= {"linesearch_trials": self._trials, "time": seconds}
        trainer.message(f"***** Iteration #{self._iterations} *****\n")
        for key, title in _TITLES.items():
            if key in about:
                trainer.message(
                    f"{title}: {about[key]}\n" if isinstance(about[key], int) else f"{title}: {about[key]:f}\n"
                )
        trainer.message(f"Seconds required for this iteration: {seconds:.3f}\n")
        trainer.message("\n")
        trainer._event("iteration", **about)


@dataclass
class IterationLog:
    """Messages so far, and figures of each iteration under the names that python-crfsuite gives them."""

    log: list[str] = field(default_factory=list)
    iterations: list[dict[str, Any]] = field(default_factory=list)
    featgen_percent: int | None = None
    featgen_num_features: int | None = None
    featgen_seconds: float | None = None
    training_seconds: float | None = None
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
        if name == "performance":
            if found.last_iteration is not None:
                found.last_iteration.update(about)
            return  # its messages belong to the event that follows
        found.last_log, found.reported = "".join(found.log[found.reported :]), len(found.log)
        if name == "iteration":
            found.iterations.append(about)
        else:
            for key, value in about.items():
                setattr(found, key, value)
        if self.verbose:
            figures = {"iteration": (about,), "featgen_progress": (found.featgen_percent,)}
            more = figures.get(name, ())
            getattr(self, f"on_{name}")(found.last_log, *more)

    def on_start(self, log: str) -> None:
        """Print the messages up to this event."""
        _show(log)

    on_featgen_end = on_prepared = on_prepare_error = on_optimization_end = on_end = on_start

    def on_featgen_progress(self, log: str, percent: int) -> None:
        """Print the messages up to the beginning of feature generation, 0 percent, or its end, 100."""
        _show(log)

    def on_iteration(self, log: str, info: dict[str, Any]) -> None:
        """Print the messages of an iteration."""
        _show(log)
