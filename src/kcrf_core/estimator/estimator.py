"""`KernelCRF`: training and tagging with scikit-learn's interface, without its base class.

It can be cloned, searched over and put at the end of a pipeline where scikit-learn is installed.
"""

from __future__ import annotations

import inspect
import logging
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import pairwise
from typing import Any, Literal, NamedTuple, SupportsIndex, TypeAlias, overload

import numpy as np

from ..chains import Labellings
from ..cluster import ClusterEngine
from ..config import RulesConfig, parse_config
from ..corpora import (
    COLUMNS,
    ITEMS,
    LABEL_TYPES,
    ArrayLike,
    Classes,
    ColumnNames,
    Columns,
    Corpus,
    Frame,
    FrameRows,
    InputSequence,
    InputSequences,
    LabelNames,
    LabelSequences,
    LabelValue,
    NumberColumn,
    Position,
    SequenceResults,
    SequenceWeights,
    check_labels,
    check_sequences,
    check_weights,
    corpus_of,
    form_of,
    is_frame,
    is_missing,
    named_row,
)
from ..device import DeviceChoice
from ..encoding import Dataset, Encoding, RealFeature, configured, fit_encoding, plain_names, window_of_numbers
from ..errors import ConfigError, suggestion
from ..model import Decoded, Decoder, Explanation, LagDecoder, LibraryLabels, Model, Wishes, state_weights
from ..objective.solvers import (
    CERTIFIED,
    PRUNED,
    SHARE,
    STATIONARY,
    Event,
    Note,
    Observer,
    Progress,
    Trial,
    variances_text,
)
from ..scoring import (
    DECODINGS,
    SMALLEST_PROBABILITY,
    Decision,
    Yardstick,
    choose_yardstick,
    count_labels,
    detect_scheme,
    odd_remark,
)
from ..selection import (
    Candidate,
    Division,
    Listener,
    Outcome,
    Search,
    audit_by_folds,
    audit_by_model,
    make_plan,
    make_settings,
    tune as search,
)
from ..system import AUTO, Workers, counted
from ..training import HoldOut, WarmStart, fit_calibration, open_engine, train
from .auditing import LabelAudit
from .labelled import LabelledInput, as_table, has_frames, labelled
from .parameters import (
    PluginNames,
    decision_of,
    documented,
    load_plugins,
    ported,
    raw_config,
    search_config,
    seed_of,
    threads_of,
    train_options,
)

LOGGER = logging.getLogger("kcrf_core")
SEPARATOR = "\0"  # of labels that are allowed at a position
AllowedLabels: TypeAlias = Sequence[Sequence[Iterable[object] | None]]  # for each position of each sequence


class NotFittedError(ValueError, AttributeError):
    """Error of an estimator that is used before `fit`."""


def own_or(kind: type, name: str | None = None) -> type:
    """Return scikit-learn's class where it is imported, as callers without it cannot expect it."""
    return getattr(sys.modules.get("sklearn.exceptions"), name or kind.__name__, kind)


class LoggingObserver(Observer):
    """An observer that logs notes and trials, and with `passes` every pass."""

    def __init__(self, passes: bool):
        self._passes = passes

    def tell(self, event: Event) -> None:
        match event:
            case Note():
                LOGGER.info(event.text)
            case Trial():
                LOGGER.info("sigma2: %s: %s", variances_text(event.sigma2), event.text)
            case Progress() if self._passes:
                LOGGER.info("pass %d: P %.6f, gap %.2g", event.passes, event.value, event.gap)


class TuningLog(Listener):
    """A listener that reports the progress of a search to an observer."""

    def __init__(self, observer: Observer):
        self._observer = observer

    def begin(self, search: Search, title: Callable[[Candidate], str], yardstick: Yardstick) -> None:
        self._title, self._yardstick = title, yardstick

    def judged(self, outcome: Outcome) -> None:
        figure = self._yardstick.text(outcome.value)
        self._observer.note(f"{figure} on {outcome.positions:,} positions: {self._title(outcome.candidate)}")

    def note(self, text: str) -> None:
        self._observer.note(text)


class Certificate(NamedTuple):
    """Largest possible distance of training from the optimum."""

    objective: float  # P
    lower_bound: float  # no parameters have a smaller P
    gap: float  # (P - lower bound) / lower bound; infinite where there is none yet
    reason: str  # why training stopped: "certified", "passes" or "precision"


class LabelsAndProbability(NamedTuple):
    """One labelling of a sequence."""

    labels: list[LabelValue]
    probability: float


class LabelAndMarginals(NamedTuple):
    """The label of a position, and the probabilities of all labels by their names."""

    label: LabelValue
    marginals: dict[LabelValue, float]


@ported
@documented
@dataclass(kw_only=True, repr=False, eq=False)
class KernelCRF:
    """A conditional random field with a kernel, for sequences.

    X is a list of sequences, each an array [T, D] of numbers or a list of T dictionaries of attributes as
    sklearn-crfsuite takes them, in which arrays may stand, too: `{"word": "cat", "emb": array}`. y has a list of T
    labels for each, strings or whole numbers.

    >>> from kcrf_core import KernelCRF
    >>> X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}], [{"word": "cats"}]]
    >>> y = [["D", "N"], ["D", "N"], ["N"]]
    >>> crf = KernelCRF(kernel="linear", c2=0.1).fit(X, y)
    >>> crf.predict([[{"word": "a"}, {"word": "cat"}]])
    [['D', 'N']]
    >>> crf.certificate_.gap <= 1e-3
    True

    The kernel, the chain and training, where None stands for the default:

    {settings}

    A kernel may also be a dictionary, as a configuration has it: {"type": "sum", "parts": [...]}, or with settings of a
    kernel of your own.

    Arrays and dictionaries:

    window : arrays only: positions seen from each, such as [-1, 0, 1] or "-1..1". None: "-2..2" where numbers resemble
        those of the positions before and there are positions enough for as many columns, else [0].
    scale : columns of numbers only: "auto" standardises columns but those of zeros and ones, "standard" all, "none"
        none; "unit" gives rows the length 1. "sequence" uses mean and spread of each sequence, "group" those of all
        rows of a data frame with the same value in the column `groups`, which `predict` needs, too: see
        docs/recordings.md.
    missing : arrays only: what NaN becomes: "mean", that of the training data, or "indicator", with one more column for
        each that marks missing values.
    min_count : dictionaries only: attributes that training has less often are left out.
    embeddings : dictionaries only: file with a table of word vectors, as `kcrf train --embeddings` takes it.
    lexicons : dictionaries only: lists of entries of one or several words, or files with one on each line, by name:
        {"city": ["New York", "Paris"], "person": "people.txt"}. Their words get the features B-city and I-city.
    lexicon_case : "fold" compares words with them in lower case, "keep" as they are.
    clusters : dictionaries only: file with paths of words in a binary tree, as `kcrf train --clusters` takes it.
    lookup_column : the key of the words that are looked up. None: "word", or the first column of words of a data frame.

    kernel=None is "rbf" with 500 pivots for arrays of up to 200,000 positions, unless `c1`, `map`, `cut_off` or
    `all_possible_states` ask for weights of columns, and "linear" for the rest, as on the command line.

    Data frames, where arguments of `fit` do not name their columns, as searches and pipelines of scikit-learn do not:

    sequence : the column, or columns, whose value is the same throughout a sequence. None: a frame is one sequence.
    label : the column of labels. None: that of the name of y, if X has one.
    groups : the column of subjects, whose sequences are held out together where choices are made.

    Training beyond that:

    block : positions of the blocks that are held out where choices are made, with gaps beside them that are not learnt
        from. None: whole sequences, and blocks where there are fewer than 20.
    calibrate : True calibrates probabilities by scores of five folds that models of the others give, where that lowers
        their log-loss by more than a standard error; `calibration_` has the figures.
    unobserved : the label in y that stands for labels that are not known. None: all are known.
    label_sets : True takes a label such as "B-PER|B-ORG" for a set, each label of which is possible.
    soft_labels : True takes a label such as "B-PER:0.8|O:0.2" for weights of labels.
    select_terms : True keeps those terms of `config` alone that do better than chance on held-out sequences.
    prune : drop weights and pivots after training that change no score of a training position by more than this.
    certify : "exact" bounds what could be gained outside the pivots over all pairs of positions, "estimate" estimates.
    memory : bytes that training may take for kernel values. None: by the memory that is free.

    Decisions and running:

    lag : positions of look-ahead: `predict` and probabilities give each label by what is known when so many more
        positions have been read, as `predict_online` does for positions that arrive. None: by whole sequences.
    cost : what missing a label costs, as {"event": 20}; labels that are not named cost 1. `predict` takes the label of
        the largest cost times probability at each position (of possible labellings, the one with the largest sum), and
        probabilities stay as they are. Of span labels {"PER": 5} means B-PER and I-PER. None: by `decode`.
    rules : rules that labels obey, as a configuration has them: {"once": "all", "require": ["City"], "at_most":
        {"Word": 2}, "forbid": ["A>B"]}. The model stores them, and forbidden transitions have probability zero in
        training. They can be changed after training; {} ignores those of the model. Probabilities of labels are then
        given the transitions that are left. None: those of the model.
    max_iterations : the most passes over the data, with a warning when it is reached. None: 1,000.
    random_state : random seed of pivots and held-out data. None: 0, so that training can be repeated.
    n_jobs : threads of training and labelling, BLAS included. None: one; -1: all cores. The result is the same.
    engine : a GPU to train on, by PyTorch: "cuda" or "cuda:1", "torch:cpu" to try it without one; the result is within
        the same certificate. Or a Dask cluster: "tcp://host:8786", or "dask" for one on this machine with a worker for
        each of `n_jobs`; the result is the same. None: threads.
    plugin : a plug-in with kernels or solvers of your own, or a list of them: a file, as "mine.py", or the name of an
        entry point or a module. `fit`, `load` and unpickling load it.
    verbose : True logs decisions, 2 every pass, to the logger "kcrf_core", or on stderr without one.
    config : features, terms and training as in a configuration file, instead of the parameters of kernels, chains and
        training; `tune` finds one. None: by the other parameters.

    `score` gives the `metric` where it is set, accuracy else. The other parameters are there for scripts written for
    sklearn-crfsuite: docs/python.md explains each.
    """

    kernel: str | Mapping[str, object] | None = None
    degree: int = 2
    gamma: float | str | None = None
    coef0: float = 1.0
    shape: str | Sequence[int] | None = None
    reach: int = 2
    blur: float = 1.5
    cosine: bool = False
    map: str = "auto"
    size: int | None = None
    select: str = "random"
    residual: float = 0.0
    basis_tolerance: float | None = None
    cut_off: int = 1
    order: int = 1
    scheme: str | None = None
    observed_transitions: bool = False
    window: str | Sequence[int] | None = None
    scale: str = "auto"
    missing: str = "mean"
    min_count: int = 1
    embeddings: str | os.PathLike[str] | None = None
    lexicons: Mapping[str, str | os.PathLike[str] | Iterable[str]] | None = None
    lexicon_case: str = "fold"
    clusters: str | os.PathLike[str] | None = None
    lookup_column: str | None = None
    sequence: ColumnNames | None = None
    label: str | None = None
    groups: str | None = None
    decode: str | None = "auto"
    span_bonus: float | str | None = "auto"
    metric: str | None = "auto"
    near_copies: str = "together"
    omit_hashes: bool = False
    cost: Mapping[LabelValue, float] | None = None
    rules: Mapping[str, object] | None = None
    lag: int | None = None
    block: int | None = None
    calibrate: bool = False
    unobserved: LabelValue | None = None
    label_sets: bool = False
    soft_labels: bool = False
    select_terms: bool = False
    prune: float | None = None
    certify: str = "estimate"
    memory: int | None = None
    sigma2: float | str | None = "auto"
    solver: str = "auto"
    tolerance: float | None = None
    precision: str = "single"
    max_iterations: int | None = None
    random_state: int | np.random.RandomState | np.random.Generator | None = None
    n_jobs: int | None = None
    engine: str | ClusterEngine | DeviceChoice | None = None
    plugin: PluginNames = None
    verbose: bool | int = False
    config: Mapping[str, object] | None = None
    algorithm: str | None = None
    c1: float | None = None
    c2: float | None = None
    all_possible_states: bool | None = None
    all_possible_transitions: bool | None = None

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """Return all parameters by name. `KernelCRF(**crf.get_params())` is the same estimator before any fit."""
        return {name: getattr(self, name) for name in _names(type(self))}

    def set_params(self, **params: object) -> KernelCRF:
        """Change some parameters; they take effect with the next fit."""
        known = _names(type(self))
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"Invalid parameter {name!r} for estimator KernelCRF{suggestion(name, known)}")
            setattr(self, name, value)
        return self

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if self.plugin is None:
            return super().__reduce_ex__(protocol)
        return _restored, (type(self), self.plugin), vars(self)  # the state may have classes of plug-ins

    def __repr__(self) -> str:
        default = {item.name: item.default for item in fields(self)}
        changed = [f"{k}={v!r}" for k, v in self.get_params().items() if repr(v) != repr(default.get(k))]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags  # which alone calls this

        return Tags(
            estimator_type=None,  # not a classifier of rows: y is a list of lists
            target_tags=TargetTags(required=True, one_d_labels=False, two_d_labels=False),
            input_tags=InputTags(two_d_array=False, three_d_array=True, dict=True, allow_nan=True),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in vars(self)

    def fit(
        self,
        X: InputSequences | Frame,
        y: LabelSequences | ArrayLike | None = None,
        sample_weight: SequenceWeights | str | None = None,
        *more: object,
        sequence: ColumnNames | None = None,
        label: str | None = None,
        groups: Sequence[object] | ArrayLike | str | None = None,
        folds: Sequence[object] | ArrayLike | None = None,
        X_dev: InputSequences | Frame | None = None,
        y_dev: LabelSequences | None = None,
        init: KernelCRF | Model | str | os.PathLike[str] | None = None,
    ) -> KernelCRF:
        """Train on sequences X with labels y. `sample_weight` has a weight for each sequence.

        `groups` has a value for each sequence, such as a speaker: those with the same one are held out together where
        choices are made on held-out data, and for `calibrate`. `folds` has the fold of each sequence instead. `init` is
        an estimator, a model or the path of one to begin with, by the names of labels and features; its sigma2 is kept
        unless the parameter is a number.

        X may be a DataFrame of pandas, or a list of them, one for each sequence. Consecutive rows with the same value
        in the column `sequence`, or in several, form a sequence; the whole frame is one without it. `label` is the
        column of labels, unless y has them, one for each row or a list for each sequence. `groups` and `sample_weight`
        may be columns, too, or have a value for each row. All other columns are features under their names, with a
        warning about those that count rows or name sequences or subjects. `sequence`, `label` and `groups` are the
        parameters of these names where they are not given.

        `X_dev` and `y_dev` are scored at the end; nothing is learnt from them, and `report_["dev"]` has the figures.

        >>> from kcrf_core import KernelCRF
        >>> X, y = [[[0.0], [1.0]], [[1.0], [0.0]], [[1.0]]], [["a", "b"], ["b", "a"], ["b"]]
        >>> KernelCRF(sigma2=1).fit(X, y, sample_weight=[1, 1, 0.5]).classes_
        ['a', 'b']
        """
        if more:
            by_name = "and others by name: X_dev=..., y_dev=..."
            raise TypeError(f"fit takes X, y and sample_weight by position, {by_name}")
        if (X_dev is None) != (y_dev is None) and (X_dev is None or not (label or self.label)):
            raise ValueError("X_dev and y_dev go together")
        data = self._labelled(X, y, sample_weight, groups, sequence, label)
        X = data.X
        form, corpus = _training_corpus(data)
        names = LabelNames.of(data.y)
        block = None if self.block is None else _whole(self.block, "block")
        together, parts = (
            None if given is None else _numbers(given, name, X)
            for name, given in (("groups", data.groups), ("folds", folds))
        )
        hold_out = HoldOut(together, parts, block)
        raw, options, source = self._raw_config(form, corpus, data)
        if data.columns is not None and raw.get("features") is None:
            config, _ = configured(raw, options, corpus, source)  # words among the columns: as the command takes them
        else:
            config = parse_config(raw, source)
        encoding, dataset = fit_encoding(config, corpus)
        for name, found in _identifiers(data, corpus):
            if name in encoding.used:
                remedy = "name it as 'sequence' or 'groups', or drop it"
                warnings.warn(f"the column '{name}' {found}, and is an input: {remedy}", UserWarning, stacklevel=2)
        if isinstance(X, FrameRows) and X.sequence:
            # Tables have one such column: of several, one with a value for each combination of theirs.
            encoding = replace(encoding, layout=replace(encoding.layout, sequence="+".join(X.sequence)))
        if encoding.odd_labels:
            counts = count_labels(corpus.columns[-1])
            scheme = detect_scheme(encoding.span_labels) or ""
            remark = odd_remark(scheme, encoding.odd_labels, counts, lambda label: None)
            warnings.warn(remark, UserWarning, stacklevel=2)
        del corpus  # its texts are not needed any longer
        dev = None
        if X_dev is not None:
            group = data.scaled_by[0] if self.scale == "group" and data.scaled_by else None
            scored = self._labelled(X_dev, y_dev, None, group, sequence, label)
            dev = encoding.encode(_corpus_for(encoding, scored.X, check_labels(scored.y, scored.X)))
            if (dev.known_labels < 0).all():
                raise ValueError("X_dev has no position with a known label, one of y, to score by")
        # A cost of no label should be heard of before training.
        self._decision().costs(encoding.labels, encoding.odd_labels)
        options = train_options(self.get_params())
        if init is not None:
            model = (
                init._model() if isinstance(init, KernelCRF) else init if isinstance(init, Model) else Model.load(init)
            )
            options["start"] = WarmStart(model, "init")
            options["start"].check_columns(encoding)
        with self._computing() as (observer, workers):
            model, report = train(
                encoding, dataset, config, workers=workers, observer=observer, dev=dev, hold_out=hold_out, **options
            )
            calibration = None
            if self.calibrate:
                model, calibration = fit_calibration(model, report, encoding, dataset, config, workers, hold_out)
        stored: dict[str, Any] = {} if names.type == "text" else {"labels": names.type}
        if isinstance(X, FrameRows) and X.sequence:
            stored["sequence"] = X.sequence
        if stored:
            model = replace(model, info={**model.info, "estimator": stored})
        self.model_, self.calibration_, self._quick = model, calibration, LibraryLabels(model)
        self._places = X.places if isinstance(X, FrameRows) and X.sequence and X.alone else None
        if report.result.reason not in (CERTIFIED, STATIONARY, PRUNED):
            tolerance = config.training.tolerance or SHARE
            distance = distance_text(report.result.gap, tolerance)
            message = f"stopped ({report.result.reason}) {distance}"
            message += "; max_iterations or tolerance can be larger"
            warnings.warn(message, own_or(UserWarning, "ConvergenceWarning"), stacklevel=2)
        return self

    def tune(
        self,
        X: InputSequences | Frame,
        y: LabelSequences | ArrayLike | None = None,
        sample_weight: SequenceWeights | str | None = None,
        *,
        sequence: ColumnNames | None = None,
        label: str | None = None,
        effort: str = "normal",
        budget: float | None = None,
        groups: Sequence[object] | ArrayLike | str | None = None,
        shape: tuple[int, int] | None = None,
        X_dev: InputSequences | Frame | None = None,
        y_dev: LabelSequences | None = None,
    ) -> KernelCRF:
        """Search for the configuration that does best on held-out sequences, and train with it.

        `effort` ("small", "normal" or "large") counts work, so that the result is the same every time; `budget` counts
        seconds in its place. `groups` has a value for each sequence: those with the same one are held out together.
        `shape`, such as (16, 8), is that of rows which are images. `X_dev` and `y_dev` are what candidates are judged
        by, where given. Data frames are given as to `fit`.

        A `config` with features is the first candidate besides the default, and is varied; one without is kept to. The
        configuration that is found becomes the parameter `config`; `tuning_` has all that was tried. Of the other
        parameters `metric`, `decode`, `scheme`, `solver`, `tolerance`, `random_state`, `n_jobs` and those about labels
        and rules are kept to, where `config` does not set them.

        >>> from kcrf_core import KernelCRF
        >>> X = [[[0.0], [1.0]], [[1.0], [0.0]], [[1.0], [1.0]], [[0.0], [0.0]]] * 10
        >>> y = [["a", "b"], ["b", "a"], ["b", "b"], ["a", "a"]] * 10
        >>> crf = KernelCRF().tune(X, y, effort="small")
        >>> crf.predict([[[1.0], [0.0]]]), crf.tuning_.yardstick.name
        ([['b', 'a']], 'accuracy')
        """
        if self.scale == "group" and self.config is None:
            raise ConfigError("tune chooses features: leave scale='group' out, or give 'config' with features")
        data = self._labelled(X, y, sample_weight, groups, sequence, label)
        form, corpus = _training_corpus(data)
        dev = None
        if X_dev is not None:
            dev = _training_corpus(self._labelled(X_dev, y_dev, None, None, sequence, label), data.columns)[1]
        hold_out = HoldOut(None if data.groups is None else _numbers(data.groups, "groups", data.X))
        columns, _, mixed = _kinds_of_columns(form, corpus, data)
        with self._computing() as (observer, workers):
            found = search(
                corpus,
                search_config(self.get_params(), columns, corpus.positions, mixed, data.taken),
                "KernelCRF" if self.config is None else "config",
                shape=shape,
                metric=None if self.metric == AUTO else self.metric,
                effort=effort,
                budget=budget,
                hold_out=hold_out,
                left_out=data.scaled_by,  # the names of groups are no features
                dev=dev,
                workers=workers,
                listener=TuningLog(observer),
            )
        self.config, self.tuning_ = found.raw, found
        named: dict[str, Any] = {"sequence": sequence, "label": label}
        return self.fit(X, y, sample_weight, groups=groups, X_dev=X_dev, y_dev=y_dev, **named)

    def _labelled(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, sequence: ColumnNames | None, label: str | None
    ) -> LabelledInput:
        """Return input with its labels, from columns that arguments name, else the parameters; load plug-ins first."""
        load_plugins(self.plugin)
        config: Mapping[str, Any] = self.config if isinstance(self.config, Mapping) else {}
        groups = self.groups if groups is None else groups
        sequence = self.sequence if sequence is None else sequence
        if sequence is None and has_frames(X):
            sequence = config.get("sequence")
        label = self.label if label is None else label
        features: Any = config.get("features") or ()
        grouped = [one["group"] for one in features if isinstance(one, Mapping) and one.get("group") is not None]
        by_groups = self.config is None and self.scale == "group"
        return labelled(X, y, sample_weight, groups, sequence, label, self.unobserved, None if by_groups else grouped)

    @contextmanager
    def _computing(self) -> Iterator[tuple[Observer, Workers]]:
        """Open the engine to train with, and yield an observer, which logs if `verbose`, and threads."""
        threads, level = threads_of(self.n_jobs), LOGGER.level
        memory = None if self.memory is None else _whole(self.memory, "memory")
        observer = LoggingObserver(int(self.verbose) > 1) if self.verbose else Observer()
        own = logging.StreamHandler() if self.verbose and not LOGGER.hasHandlers() else None  # writes to stderr
        if own is not None:
            LOGGER.addHandler(own)
        if self.verbose and not LOGGER.isEnabledFor(logging.INFO):
            LOGGER.setLevel(logging.INFO)
        try:
            with open_engine(self.engine, threads=threads, memory=memory, tell=observer.note) as workers:
                yield observer, workers
        finally:
            LOGGER.setLevel(level)
            if own is not None:
                LOGGER.removeHandler(own)

    def _raw_config(self, form: str, corpus: Corpus, data: LabelledInput) -> tuple[dict[str, Any], dict[str, Any], str]:
        """Return the configuration for training data, options to lay over it, and its name."""
        params = self.get_params() | {"group": data.scaled_by[0] if data.scaled_by else None}
        columns, numbers, mixed = _kinds_of_columns(form, corpus, data)
        if form == COLUMNS and params["window"] is None and numbers and not mixed:
            params["window"] = window_of_numbers(np.stack(numbers, axis=1), corpus)
        return raw_config(params, columns, list(corpus.vectors), corpus.positions, mixed, data.taken)

    def _decision(self) -> Decision:
        return decision_of(self.cost, self.decode, self.span_bonus)

    @overload
    def predict(self, X: Frame, allowed: AllowedLabels | None = None) -> Any: ...
    @overload
    def predict(self, X: InputSequences, allowed: AllowedLabels | None = None) -> list[list[LabelValue]]: ...
    def predict(self, X: InputSequences | Frame, allowed: AllowedLabels | None = None) -> Any:
        """Return the best labels of each sequence, a list of lists, by the decoder of the model (see `decode`).

        Of a DataFrame it is a Series with the index of its rows. `allowed` lists for each position of each sequence the
        labels that it may have, None for all. Where no labelling obeys the `rules`, a warning says so.

        >>> from kcrf_core import KernelCRF
        >>> crf = KernelCRF(sigma2=1).fit([[[0.0], [1.0]], [[1.0], [0.0]]], [["a", "b"], ["b", "a"]])
        >>> X = [[[0.0], [1.0], [0.4]]]
        >>> crf.predict(X), crf.set_params(rules={"once": ["a"]}).predict(X), crf.predict(X, [[None, ["a"], None]])
        ([['a', 'b', 'a']], [['a', 'b', 'b']], [['a', 'a', 'b']])
        """
        X, best = self._best(X, allowed=allowed)
        values = self._label_values()
        if isinstance(X, FrameRows) and X.alone:
            return X.with_index(np.array(values)[best], self.model_.encoding.columns[-1])
        labels = iter(map(values.__getitem__, best.tolist()))
        return SequenceResults([[next(labels) for _ in range(len(sequence))] for sequence in X])

    def predict_single(self, xseq: InputSequence) -> list[LabelValue]:
        """Return the best labels of one sequence."""
        return self.predict([xseq])[0]

    @overload
    def predict_online(
        self, positions: Iterable[Position] | Frame, lag: int | None = None, *, marginals: Literal[False] = False
    ) -> Iterator[LabelValue]: ...
    @overload
    def predict_online(
        self, positions: Iterable[Position] | Frame, lag: int | None = None, *, marginals: Literal[True]
    ) -> Iterator[LabelAndMarginals]: ...
    def predict_online(
        self, positions: Iterable[Position] | Frame, lag: int | None = None, *, marginals: bool = False
    ) -> Iterator[Any]:
        """Yield the label of each position of one sequence as soon as `lag` more positions have come.

        Positions may come from a sensor that does not end; memory does not grow. `lag` is the parameter by default, and
        0 where that is None. Labels are those that `predict` gives for the whole sequence with this `lag`. `marginals`
        gives each label with a dictionary of the probabilities of all. A model of columns takes dictionaries of their
        values by name, too, and the rows of a DataFrame, as one sequence.

        >>> from kcrf_core import KernelCRF
        >>> crf = KernelCRF(sigma2=1).fit([[[0.0], [1.0]], [[1.0], [0.0]]], [["a", "b"], ["b", "a"]])
        >>> readings = iter([[0.0], [1.0], [0.9], [0.1]])
        >>> labels = crf.predict_online(readings, lag=1)
        >>> next(labels), next(readings)  # the first label needed two readings
        ('a', [0.9])
        >>> [[label, round(known["a"], 1)] for label, known in crf.predict_online([[0.0], [1.0]], marginals=True)]
        [['a', 0.7], ['b', 0.3]]
        """
        decoder, values = self._lagging(lag if lag is not None else self.lag or 0, marginals), self._label_values()

        def due(found: Decoded) -> Iterator[Any]:
            labels = map(values.__getitem__, found.labels.tolist())
            if found.marginals is None:
                return labels
            known = (dict(zip(values, row, strict=True)) for row in found.marginals.tolist())
            return map(LabelAndMarginals, labels, known)

        with Workers(1, memory=0):
            given: Any = positions
            rows = (given.iloc[t : t + 1] for t in range(len(given))) if is_frame(given) else given
            for number, position in enumerate(rows):
                yield from due(decoder.feed(_position_corpus(self.model_.encoding, position, number), False))
            if decoder.waiting:
                yield from due(decoder.end())

    def _lagging(self, lag: int, marginals: bool = False) -> LagDecoder:
        decision, model = self._decision(), self._model()
        if decision.decode == DECODINGS[0]:
            raise ConfigError("lag decides label by label, as they are due: it does not go with decode='viterbi'")
        costs, rules = decision.costs(model.labels, model.encoding.odd_labels), self._rules(None)
        wishes = Wishes(decode=DECODINGS[1], costs=costs, marginals=marginals, rules=rules)
        return LagDecoder(model, _whole(lag, "lag", least=0), wishes)

    @overload
    def predict_proba(self, X: Frame) -> Any: ...
    @overload
    def predict_proba(self, X: InputSequences) -> list[np.ndarray]: ...
    def predict_proba(self, X: InputSequences | Frame) -> Any:
        """Return probabilities of labels given the whole sequence: an array [T, Y] for each, columns as `classes_`.

        Of a DataFrame it is a DataFrame with the index of its rows.
        """
        X, every = self._best(X, marginals=True)
        values = self._label_values()
        every = every[:, sorted(range(len(values)), key=values.__getitem__)]  # as text 10 stands before 2
        if isinstance(X, FrameRows) and X.alone:
            return X.with_index(every, self.classes_)
        parts = np.split(every, np.cumsum([len(sequence) for sequence in X])[:-1]) if X else []
        return SequenceResults(parts)

    @overload
    def predict_marginals(self, X: Frame) -> Any: ...
    @overload
    def predict_marginals(self, X: InputSequences) -> list[list[dict[LabelValue, float]]]: ...
    def predict_marginals(self, X: InputSequences | Frame) -> Any:
        """Return a dictionary from labels to probabilities for each position, as sklearn-crfsuite gives it.

        Of a DataFrame it is what `predict_proba` returns.
        """
        if is_frame(X):
            return self.predict_proba(X)
        labels = self.classes_
        return [[dict(zip(labels, row, strict=True)) for row in rows.tolist()] for rows in self.predict_proba(X)]

    def predict_marginals_single(self, xseq: InputSequence) -> list[dict[LabelValue, float]]:
        """Return probabilities of the labels of one sequence."""
        return self.predict_marginals([xseq])[0]

    def predict_nbest(
        self, X: InputSequences | Frame, n: int = 5, allowed: AllowedLabels | None = None
    ) -> list[list[LabelsAndProbability]]:
        """Return the n best labellings of each sequence, the best first, each with its probability p(labels | x).

        There are fewer where a sequence has fewer. They obey the `rules`, have `allowed` labels (see `predict`), rank
        whole labellings and ignore `decode` and `cost`.

        >>> from kcrf_core import KernelCRF
        >>> X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}], [{"word": "cats"}]]
        >>> crf = KernelCRF(c2=0.1).fit(X, [["D", "N"], ["D", "N"], ["N"]])
        >>> [[(labels, round(p, 2)) for labels, p in best] for best in crf.predict_nbest([[{"word": "cats"}]], n=2)]
        [[(['N'], 0.9), (['D'], 0.1)]]
        """
        values = self._label_values()
        out = []
        for found in self._found(X, Wishes(decode=DECODINGS[0], nbest=_whole(n, "n")), allowed):
            labels = [[values[number] for number in path] for path in found.labels.tolist()]
            pairs = zip(labels, np.exp(found.scores).tolist(), strict=True)
            out.append([LabelsAndProbability(*pair) for pair in pairs])
        return out

    def explain(self, X: InputSequences | Frame, n: int = 5) -> list[list[Explanation[LabelValue]]]:
        """Explain why each position gets its label: an `Explanation` for each, as `kcrf tag --explain` prints it.

        Its `contributions`, at most n of each sign, are what single features, conjunctions and transitions add for the
        `label` against the label that would do second best in its place (`against`; None where no other is possible),
        those for it first, each kind in descending order of size; with `others`, all that they leave, they add up to
        the `difference` of the scores. `terms` has the sum of each term. With pivots a feature adds what is lost
        without it, and `similar` has the training positions that are most like this one, with their `label`; their
        `line` counts positions from 1 on.

        >>> from kcrf_core import KernelCRF
        >>> X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}], [{"word": "cats"}]]
        >>> crf = KernelCRF(c2=0.1).fit(X, [["D", "N"], ["D", "N"], ["N"]])
        >>> [[why, _]] = crf.explain([[{"word": "the"}, {"word": "dog"}]], n=2)
        >>> why.label, why.against, [part.what for part in why.contributions]
        ('D', 'N', ['before N', 'word:the'])
        >>> abs(sum(part.value for part in why.contributions) + why.others - why.difference) < 1e-9
        True
        """
        values, model, decision = self._label_values(), self._model(), self._decision()
        wishes = Wishes(
            decision.decoder(model.decode),
            costs=decision.costs(model.labels, model.encoding.odd_labels),
            explain=_whole(n, "n"),
        )
        return [[one.with_labels(values) for one in found if one is not None] for found in self._found(X, wishes)]

    def novelty(self, X: InputSequences | Frame) -> list[np.ndarray]:
        """Return the share of each position that the pivots leave unexplained, an array [T] for each sequence.

        It is 0 at a pivot, 1 where nothing is shared with any. For kernels with pivots, as `kcrf tag --novelty`.

        >>> from kcrf_core import KernelCRF
        >>> crf = KernelCRF(kernel="rbf", sigma2=1).fit([[[0.0], [1.0]], [[1.0], [0.0]]], [["a", "b"], ["b", "a"]])
        >>> [new] = crf.novelty([[[0.0], [9.0]]])
        >>> bool(new[0] < 0.01), bool(new[1] > 0.99)
        (True, True)
        """
        return self._found(X, Wishes(novelty=True))

    def audit(
        self,
        X: InputSequences | Frame,
        y: LabelSequences | ArrayLike | None = None,
        sample_weight: SequenceWeights | str | None = None,
        *,
        sequence: ColumnNames | None = None,
        label: str | None = None,
        folds: int | Sequence[object] | ArrayLike | None = 5,
    ) -> LabelAudit:
        """Find doubtful labels of y, as `kcrf audit` does.

        Sequences are dealt into `folds`, a number of them or a fold for each sequence, and each is judged by a model
        of the others with the parameters of this estimator, which is left as it is and need not be fitted. With
        folds=None the fitted model judges, which may have learnt from y. Labels are ordered by doubt, or by a small
        p(label | x, the other labels) if the fitted model judges.

        Data frames are given as to `fit`.

        The result has `positions()`, the worst first, the number of `doubtful` labels and of `places` that they are
        in, and the `doubts` of all labels.

        >>> from kcrf_core import KernelCRF
        >>> X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}], [{"word": "cat"}]] * 10
        >>> y = [["D", "N"], ["D", "N"], ["N"]] * 10
        >>> y[4] = ["D", "D"]
        >>> found = KernelCRF(c2=0.1).audit(X, y, folds=3)
        >>> [worst] = found.positions(1)
        >>> worst.sequence, worst.position, worst.gold, worst.suggested, worst.marginal < 0.1
        (4, 1, 'D', 'N', True)
        """
        data = self._labelled(X, y, sample_weight, None, sequence, label)
        X, names = data.X, LabelNames.of(data.y)
        if folds is None:
            corpus = _corpus_for(self._model().encoding, X, check_labels(data.y, X))
            found = audit_by_model(self.model_, corpus, threads_of(self.n_jobs))
        else:
            form, corpus = _training_corpus(data)
            raw, options, source = self._raw_config(form, corpus, data)
            if "features" not in raw and form == COLUMNS and data.columns is None:
                raw["plain"] = True  # as `fit` takes columns without a configuration
            division = _division(folds, X, seed_of(self.random_state))
            with self._computing() as (observer, workers):
                plan = make_plan(corpus, raw, source, make_settings({}, options), division, tell=observer.report)
                found = audit_by_folds(
                    plan, workers=workers, done=lambda task: observer.note(f"{plan.describe(task)} is judged")
                )
        lengths = np.array([len(sequence) for sequence in X], dtype=np.int64)
        return LabelAudit(**vars(found), lengths=lengths, values=names.values(found.labels))

    def score(
        self,
        X: InputSequences | Frame,
        y: LabelSequences | ArrayLike | None = None,
        sample_weight: SequenceWeights | str | None = None,
    ) -> float:
        """Return the part of positions with the right label, or the `metric`; `sample_weight` weighs sequences.

        A log-loss comes with a minus, so that larger is better, as searches over parameters want it. Labels of a
        DataFrame are those of the column that training had them in, unless y is given.
        """
        columns = self._model().encoding.columns
        data = labelled(X, y, sample_weight, None, self._sequence_columns(), None if y is not None else columns[-1])
        X, y, sample_weight = data.X, check_labels(data.y, data.X), data.sample_weight
        weights = np.ones(len(X)) if sample_weight is None else check_weights(sample_weight, X)
        asked = "accuracy" if self.metric in (None, AUTO) else self.metric
        labels = self._label_values()
        yardstick = choose_yardstick(self._model().encoding.span_labels, asked)
        lengths = [len(sequence) for sequence in X]
        if not float(weights @ lengths):
            return float("nan")
        number = {label: code for code, label in enumerate(labels)}
        gold = np.array([number.get(label, len(labels)) for sequence in y for label in sequence], dtype=np.int64)
        predicted = logs = None
        if yardstick.by_probability:
            # A label that the model does not know has no probability, and is not counted.
            of_gold = self._best(X, marginals=True)[1][np.arange(len(gold)), np.minimum(gold, len(labels) - 1)]
            logs = np.log(np.maximum(of_gold, SMALLEST_PROBABILITY))
        else:
            predicted = self._best(X)[1]
        return yardstick.value(yardstick.counts(gold, predicted, logs, np.cumsum([0, *lengths]), weights))

    def _rules(self, allowed: AllowedLabels | None) -> RulesConfig | None:
        """Return the rules of the parameters, else of the model."""
        found = self.model_.rules
        if self.rules is not None:
            if not isinstance(self.rules, Mapping):
                raise ConfigError(f"rules={self.rules!r}: a dictionary is needed, as {{'once': 'all'}}")
            found = parse_config({"rules": dict(self.rules)}, "rules").rules
        if allowed is None:
            return found
        return replace(found or RulesConfig(), allowed="allowed", allowed_separator=SEPARATOR)

    def _decoded(
        self, X: list[Any], dataset: Dataset, wishes: Wishes, allowed: AllowedLabels | None
    ) -> Iterator[Decoded]:
        """Yield results under the rules, with warnings about sequences that do not obey them."""
        wishes = replace(wishes, rules=self._rules(allowed) or RulesConfig())
        decoder = Decoder(self.model_.deciding(self._decision()), wishes)
        listed = None
        if allowed is not None and decoder.rules is not None:
            cells = [SEPARATOR.join(map(str, labels or ())) for sequence in allowed for labels in sequence]
            if [len(sequence) for sequence in allowed] != [len(sequence) for sequence in X]:
                raise ConfigError("'allowed' has other lengths than the sequences: it lists labels for each position")
            listed = decoder.rules.allowed_labels(cells, dataset.lines, "allowed")
        with Workers(threads_of(self.n_jobs), memory=0) as workers:
            for found in decoder.decode(dataset, "X", workers, listed):
                for remark in found.remarks:
                    warnings.warn(remark, UserWarning, stacklevel=4)
                yield found

    def _best(
        self, X: InputSequences | Frame, marginals: bool = False, allowed: AllowedLabels | None = None
    ) -> tuple[list[Any], np.ndarray]:
        """Return the sequences, and numbers of the best labels of all positions, [N], or the marginals, [N, Y]."""
        X, model, decision = self._checked(X), self._model(), self._decision()
        as_corpus = partial(_corpus_for, model.encoding, X)
        nothing = np.zeros((0, len(model.labels))) if marginals else np.zeros(0, dtype=np.int32)
        if self.lag is not None:
            if allowed is not None:
                raise ConfigError("lag gives labels before their sequence is complete: it does not go with 'allowed'")
            decoder, corpus = self._lagging(self.lag, marginals), as_corpus()
            if not corpus.positions:
                return X, nothing
            with Workers(1, memory=0):
                found = decoder.feed(corpus, True)
            return X, found.labels if found.marginals is None else found.marginals
        ruled, costs = (
            self._rules(allowed) is not None,
            decision.costs(model.labels, model.encoding.odd_labels),
        )
        if not (marginals or ruled) and costs is None and model.deciding(decision) is model:
            quick: LibraryLabels | None = self.__dict__.get("_quick")
            best = quick.of(X) if quick is not None and quick.model is model else None
            if best is not None:
                return X, best
        dataset = model.encoding.encode(as_corpus())
        if marginals and not ruled:
            with Workers(threads_of(self.n_jobs), memory=0) as workers:
                return X, model.marginals(dataset, workers)
        wishes = Wishes(decision.decoder(model.decode), marginals=marginals, costs=costs)
        parts = [
            found.labels if found.marginals is None else found.marginals
            for found in self._decoded(X, dataset, wishes, allowed)
        ]
        return X, np.concatenate([nothing, *parts])

    def _found(self, X: InputSequences | Frame, wishes: Wishes, allowed: AllowedLabels | None = None) -> list[Any]:
        """Find what was asked for of each sequence; nothing of those without a position."""
        X, encoding = self._checked(X), self._model().encoding
        parts: list[Any] = []
        for found in self._decoded(X, encoding.encode(_corpus_for(encoding, X)), wishes, allowed):
            if found.nbest is not None:
                parts += found.nbest
                continue
            every: Any = found.explanations if found.explanations is not None else found.novelty
            parts += [every[first:last] for first, last in pairwise(found.offsets.tolist())]
        nothing: Any = np.zeros(0) if wishes.novelty else []
        if wishes.nbest is not None:
            nothing = Labellings(np.zeros((1, 0), dtype=np.int32), np.zeros(1))  # nothing has one labelling
        known = iter(parts)
        return [next(known) if len(sequence) else nothing for sequence in X]

    def _checked(self, X: InputSequences | Frame) -> list[Any]:
        """Return X as sequences, with a warning if the first after `fit` continue those of training."""
        out = check_sequences(X if isinstance(X, FrameRows) else as_table(X, self._sequence_columns()))
        places, self._places = vars(self).get("_places"), None
        if places is not None and isinstance(out, FrameRows) and out.alone and (cut := out.continued(places)):
            message = f"{counted(len(cut), 'sequence continues one', 'sequences continue some')} of training: folds of "
            message += "rows cut sequences apart, and training knows the rows around those that are scored. Deal whole "
            message += f"sequences or subjects into folds: GroupKFold, with groups=frame[{out.sequence[0]!r}]"
            warnings.warn(message, UserWarning, stacklevel=4)
        return out

    def _sequence_columns(self) -> list[str] | None:
        """Return the columns of data frames that tell sequences apart."""
        stored = self._model().info.get("estimator", {})
        found = stored.get("sequence") if isinstance(stored, dict) else None
        if isinstance(found, list):
            return [str(name) for name in found]
        of_files = self.model_.encoding.layout.sequence
        return None if of_files is None else [of_files]

    @property
    def classes_(self) -> list[LabelValue]:
        """Labels, sorted."""
        return Classes(sorted(self._label_values()))

    @property
    def certificate_(self) -> Certificate:
        """The objective P, a lower bound of it, the relative gap between them and why training stopped."""
        found = self.report_
        nothing = {"objective": np.inf, "lower_bound": -np.inf, "certified_gap": np.inf}
        value, lower, gap = (none if found.get(key) is None else float(found[key]) for key, none in nothing.items())
        return Certificate(value, lower, gap, found.get("stop", ""))

    @property
    def report_(self) -> dict[str, Any]:
        """Results of training, as `kcrf train --json` prints them."""
        found = self._model().info.get("training")
        return found if isinstance(found, dict) else {}

    @property
    def n_iter_(self) -> int:
        """Passes over the data."""
        return self.report_.get("passes", 0)

    @property
    def n_features_in_(self) -> int:
        """Columns of the arrays; dictionaries have no such number."""
        encoding = self._model().encoding
        if encoding.attributes:
            raise AttributeError("n_features_in_ is for arrays; attributes_ lists the attributes")
        return encoding.width - 1

    @property
    def feature_names_in_(self) -> list[str]:
        """Names of the columns of data frames."""
        names = list(self._model().encoding.columns[:-1])
        if not names or names[0] == "c0":
            raise AttributeError("feature_names_in_ is for data frames")
        return names

    @property
    def attributes_(self) -> list[str]:
        """Attributes that training has seen, or columns."""
        return plain_names(self._model().encoding.features)

    @property
    def num_attributes_(self) -> int:
        """Number of attributes that training has seen, or of columns."""
        return len(self.attributes_)

    @property
    def size_(self) -> int:
        """Bytes that `save` writes."""
        return self._model().file_size

    @property
    def state_features_(self) -> dict[tuple[str, LabelValue], float]:
        """Weights, but zeros, by (attribute, label) of a linear kernel; columns, named c0, c1, ..., are scaled."""
        return state_weights(self._model(), self._label_values())

    @property
    def transition_features_(self) -> dict[tuple[LabelValue, LabelValue], float]:
        """Scores by (label, next label), without those that cannot be neighbours."""
        scores, labels = self._model().edges.transitions, self._label_values()
        return {(labels[i], labels[j]): float(scores[i, j]) for i, j in np.argwhere(np.isfinite(scores)).tolist()}

    @property
    def start_features_(self) -> dict[LabelValue, float]:
        """Scores of first labels, which CRFsuite does not have."""
        return self._finite(self._model().edges.start)

    @property
    def end_features_(self) -> dict[LabelValue, float]:
        """Scores of last labels, which CRFsuite does not have."""
        return self._finite(self._model().edges.end)

    def _finite(self, scores: np.ndarray) -> dict[LabelValue, float]:
        """Return scores by label, without those of labels that cannot stand there."""
        pairs = zip(self._label_values(), scores.tolist(), strict=True)
        return {label: score for label, score in pairs if np.isfinite(score)}

    def _model(self) -> Model:
        if not self.__sklearn_is_fitted__():
            raise own_or(NotFittedError)(f"this {type(self).__name__} is not fitted yet: call fit(X, y) first")
        return self.model_

    def _label_values(self) -> list[LabelValue]:
        """Return labels in the order of the model."""
        stored = self._model().info.get("estimator", {})
        kind = str(stored.get("labels")) if isinstance(stored, dict) else ""
        return LabelNames(kind if kind in LABEL_TYPES else "text").values(self.model_.labels)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that `kcrf tag` and `KernelCRF.load` read."""
        self._model().save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], plugin: PluginNames = None) -> KernelCRF:
        """Return an estimator with the model that `save` or `kcrf train` wrote, and its configuration as `config`."""
        load_plugins(plugin)
        model = Model.load(path)
        config, stored = (model.info.get(name) for name in ("config", "estimator"))
        out = cls(
            plugin=plugin,
            config=config if isinstance(config, dict) else None,
            sequence=stored.get("sequence") if isinstance(stored, dict) else None,
        )
        out.model_, out._quick = model, LibraryLabels(model)
        return out


CRF = KernelCRF  # as sklearn-crfsuite calls its estimator


def _restored(kind: type[KernelCRF], plugin: Any) -> KernelCRF:
    """Return an estimator without its state, which may need the plug-in."""
    load_plugins(plugin)
    return kind.__new__(kind)


def distance_text(gap: float, tolerance: float) -> str:
    """Return words about a relative gap, with the digits that tell it from the tolerance."""
    allowed = f"and the relative tolerance is {tolerance:g}"
    if math.isinf(gap):
        return f"with no bound on the distance from the optimum, {allowed}"
    texts = (f"{gap:.{digits}g}" for digits in range(3, 18))
    shown = next((text for text in texts if text != f"{tolerance:g}"), f"{gap:g}")
    return f"within {shown} of the optimum, {allowed}"


def _names(kind: type) -> tuple[str, ...]:
    """Return parameters in the order of the signature."""
    return tuple(inspect.signature(kind).parameters)


def _training_corpus(data: LabelledInput, columns: Sequence[str] | None = None) -> tuple[str, Corpus]:
    """Return the form of labelled sequences, COLUMNS or ITEMS, and their corpus.

    `columns` are those of a data frame to take in the place of its inputs, the label's last.
    """
    X = data.X
    y = check_labels(data.y, X)
    weights = None if data.sample_weight is None else check_weights(data.sample_weight, X)
    form = form_of(X)
    if isinstance(X, FrameRows):
        names = tuple(columns or data.columns or ())
        return form, replace(corpus_of(X, form, y, weights, columns=X.inputs(names[:-1])), header=names)
    corpus = corpus_of(X, form, y, weights)
    if not all(isinstance(column, NumberColumn) for column in corpus.columns[:-1]):
        raise TypeError("X: the argument must be arrays of numbers, or dictionaries of strings and numbers")
    return form, corpus


def _kinds_of_columns(
    form: str, corpus: Corpus, data: LabelledInput
) -> tuple[int | Sequence[str] | None, list[np.ndarray], bool]:
    """Return the number of columns or their names, None for attributes, those of numbers, and True if some have words.

    Columns with names of groups that numbers are scaled by are no words.
    """
    names = data.columns
    columns: int | Sequence[str] | None = names or (corpus.width - 1 if form == COLUMNS else None)
    inputs = [column for at, column in enumerate(corpus.columns[:-1]) if not names or names[at] not in data.scaled_by]
    numbers = [column.numbers for column in inputs if isinstance(column, NumberColumn)]
    return columns, numbers, columns is not None and len(numbers) < len(inputs)


def _identifiers(data: LabelledInput, corpus: Corpus) -> Iterator[tuple[str, str]]:
    """Yield inputs of data frames that count rows or name sequences or subjects, with a sentence about each."""
    columns = Columns(corpus)
    for place, name in enumerate((data.columns or ())[:-1]):
        found = None if name in data.scaled_by else columns.identifier(place)
        if found is not None:
            yield name, found


def _corpus_for(encoding: Encoding, X: list[Any], y: list[list[Any]] | None = None) -> Corpus:
    """Return sequences as a corpus for a model with this encoding."""
    form, width = _form_and_width(encoding)
    if isinstance(X, FrameRows):
        if form == ITEMS:
            raise ValueError("the model was trained on dictionaries or names, and X is a data frame")
        unused: list[str] = [""] * len(X.frame)  # columns that no feature looks at may be missing
        columns = [X.inputs([name])[0] if name in encoding.used else unused for name in encoding.columns[:-1]]
        return corpus_of(X, form, y, width=width, columns=tuple(columns))
    present = [sequence for sequence in X if len(sequence)]
    numeric = all(isinstance(feature, RealFeature) for feature in encoding.features)
    if form == COLUMNS and numeric and present and form_of(present) == ITEMS:
        raise ValueError("the model was trained on arrays of numbers, and X has dictionaries or names")
    corpus = corpus_of(X, form, y, width=width)
    if not present:
        corpus = replace(corpus, vectors={name: np.zeros((0, size)) for name, size in encoding.vectors.items()})
    return corpus


def _position_corpus(encoding: Encoding, position: Any, number: int) -> Corpus:
    """Return one position, the one of this number, as a corpus for a model with this encoding."""
    if is_frame(position):
        return _corpus_for(encoding, FrameRows(position))
    form, width = _form_and_width(encoding)
    position = named_row(position)
    if isinstance(position, tuple) and len(position) == 2 and isinstance(named_row(position[1]), Mapping):
        remedy = "give the DataFrame itself, or the second of each pair"
        raise ValueError(f"position {number:,} is a pair of a label and a row, as iterrows() yields them: {remedy}")
    if form == COLUMNS and isinstance(position, Mapping):
        lacking = [name for name in encoding.columns[:-1] if name not in position]
        if lacking:
            raise ValueError(f"position {number:,} has no value of the column {lacking[0]!r}")
        # Numbers beside words are read as text, where an empty one is missing.
        values = (position[name] for name in encoding.columns[:-1])
        values = (int(value) if isinstance(value, (bool, np.bool_)) else value for value in values)
        position = ["" if is_missing(value) else value for value in values]
    elif form == COLUMNS and not _is_row(position):
        shown = f"a row of {counted(width or 0, 'value')}, or a dictionary of values by names of columns"
        raise ValueError(f"position {number:,}: {shown} is needed, not {position!r}")
    try:
        return corpus_of([[position]], form, width=width)
    except (TypeError, ValueError) as error:
        message = str(error).removeprefix("X[0][0]: ").removesuffix(": X[0]")
        raise type(error)(f"position {number:,}: {message}") from None


def _is_row(position: Any) -> bool:
    """Return True for a row of values, each of which is one."""
    try:
        return np.ndim(position) == 1
    except ValueError:  # lists of different lengths inside
        return False


def _whole(number: Any, name: str, least: int = 1) -> int:
    """Return a whole number of at least `least`, checked."""
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, not {number!r}")
    return int(number)


def _numbers(values: Any, name: str, X: list[Any]) -> np.ndarray:
    """Return a number for each different one of the values, one for each sequence that has a position."""
    listed = list(values) if isinstance(values, Iterable) and not isinstance(values, str) else []
    if len(listed) != len(X):
        raise ValueError(f"{name} must have a value for each of the {len(X):,} sequences, not {len(listed):,}")
    codes = {value: code for code, value in enumerate(dict.fromkeys(listed))}
    return np.array([codes[value] for value, sequence in zip(listed, X, strict=True) if len(sequence)], dtype=np.int64)


def _division(folds: int | Sequence[object] | ArrayLike, X: list[Any], seed: int) -> Division:
    """Return folds by their number, or by one for each sequence; those without a position are in none."""
    if isinstance(folds, (int, np.integer)) and not isinstance(folds, bool):
        if folds < 2:
            raise ValueError(f"folds={folds}: each is judged by a model of the others, so at least 2 are needed")
        return Division(int(folds), seed=seed)
    there = _numbers(folds, "folds", X)
    if len(np.unique(there)) < 2:
        raise ValueError("folds: all sequences are in one fold, and each is judged by a model of the others")
    return Division(numbers=there, seed=seed)


def _form_and_width(encoding: Encoding) -> tuple[str, int | None]:
    """Return the form of sequences that a model takes, and the number of columns, None for items."""
    return (ITEMS, None) if encoding.attributes else (COLUMNS, encoding.width - 1)
