"""Training data in files and a configuration become a dataset, with what users say of groups and folds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..config import Config, default_terms, parse_config, with_options
from ..corpora import CodedColumn, Corpus, Layout, open_vectors, read_corpus, with_vectors
from ..encoding import (
    UNKNOWN,
    Dataset,
    Encoding,
    RealFeature,
    column_names,
    described,
    fit_encoding,
    kernel_is_open,
    suggested_number_terms,
    with_terms,
)
from ..errors import ConfigError, DataError, FileFormatError, suggestion
from ..features import StoredBasis, load_basis
from ..files import is_encoded, refuse_vectors
from ..kernels import KernelConfig
from ..model import ShardFolder, load_dataset, load_folder
from ..objective.solvers import Observer
from ..system import Workers, counted, listed
from .held_out import HoldOut
from .screening import choose_configuration

VectorPaths = Sequence[tuple[str, str]]  # names of embeddings, and the files that hold them
# Reads a text file, given its path, format, columns and layout; None leaves format and columns to the file.
# What is held out of a corpus, whose sequences may have groups.
HeldOutOf = Callable[[Corpus, np.ndarray | None], HoldOut]
Reader = Callable[[str, str | None, Sequence[str] | None, Layout], Corpus]


@dataclass(frozen=True)
class Prepared:
    """Encoded training data and the configuration in force."""

    encoding: Encoding
    dataset: Dataset
    config: Config
    basis: StoredBasis | None = None
    groups: np.ndarray | None = None  # [S] numbers of groups that stay together, where a column gives them
    suggested: str | None = None  # remark on features that the data suggested
    compared: str | None = None  # remark on configurations that were compared with the default one
    folder: ShardFolder | None = None  # of shards, of which the dataset is the outline

    def describe(self, observer: Observer) -> None:
        """Report the data, its features and likely mistakes."""
        amount = self.dataset if self.folder is None else self.folder.amount
        for remark in self.encoding.remarks(amount, self.suggested):
            observer.report(remark)
        if self.compared is not None:
            observer.report(self.compared)
        if self.suggested is not None:
            observer.note(self.encoding.kinds())
        if (reason := self._python_only()) is not None:
            observer.report(f"{reason}: the model labels in Python only, without export to the runtime")

    def _python_only(self) -> str | None:
        """Return the reason why vectors keep a model from labelling by the C library; None if they do not."""
        if self.encoding.vectors:
            return f"vectors '{next(iter(self.encoding.vectors))}' are not in the text"
        for term in self.config.mapped_terms:
            features = (view.feature for view in self.encoding.views(self.encoding.term_features(term)))
            looked_up = any(isinstance(one, RealFeature) and one.table is not None for one in features)
            if looked_up and self.encoding.attributes:
                return "embeddings are of attributes"
            if looked_up and term.kernel.type != KernelConfig.type:
                return f"embeddings have a kernel in term '{term.name}', not a linear term"
        return None


def prepare(
    data: str,
    raw: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    source: str = "options",
    format_: str | None = None,
    vectors: VectorPaths = (),
    group: str | None = None,
    basis_path: str | None = None,
    otherwise: Mapping[str, Any] | None = None,
    read: Reader | None = None,
    workers: Workers | None = None,
    held_out: HeldOutOf = lambda corpus, groups: HoldOut(groups),
) -> Prepared:
    """Read and encode training data under a configuration with options laid over it, and perhaps a basis.

    `raw` is a configuration as YAML has it, and `source` its name in messages. If it is None, the configuration is
    `otherwise` for data that is text. A basis or an encoded dataset brings its own encoding: what contradicts it is an
    error. The column `group` says what belongs together, and is no feature unless the configuration says so. `read` is
    for callers that show progress, and takes `vectors` into account itself. With `workers`, the default
    configuration is compared with others, on the parts that `held_out` names, unless some are given.

    >>> from kcrf_core import Workers, train
    >>> from kcrf_core.training import prepare
    >>> prepared = prepare("sample_data/digits.conll", options={"sigma2": 1.0})
    >>> with Workers() as workers:
    ...     model, report = train(prepared.encoding, prepared.dataset, prepared.config, workers=workers)
    >>> report.result.reason
    'certified'
    """
    options, read = dict(options or {}), read or partial(_read, vectors)
    if basis_path is None and not is_encoded(data):
        given = raw is not None or bool(otherwise)
        raw = raw if raw is not None else otherwise or {}
        config, groups = described(raw, options, source), None  # mistakes of a configuration come before any reading
        corpus = read(data, format_, config.columns, config.layout)
        if group is not None:
            names = column_names(config, corpus)
            groups = groups_of(corpus, group, names)
            raw = without_column(raw, config, names, group, corpus.vectors)
        about = raw, options, corpus, source, None if given else workers, held_out(corpus, groups)
        config, suggested, compared = choose_configuration(*about)
        encoding, dataset = fit_encoding(config, corpus)
        return Prepared(encoding, dataset, config, groups=groups, suggested=suggested, compared=compared)
    basis = None if basis_path is None else load_basis(basis_path)
    raw, origin = raw or {}, basis_path or data
    groups = folder = None
    if is_encoded(data):
        if group is not None:
            raise ConfigError(
                f"{data} is encoded already, and has no column to group by: give a file of folds",
                settings=["folds_file"],
            )
        refuse_vectors(data, vectors)
        if os.path.isdir(data):
            folder = load_folder(data)
            encoding, dataset, base = folder.encoding, folder.outline(), folder.config
        else:
            stored = load_dataset(data)
            encoding, dataset, base = stored.encoding, stored.dataset, stored.config
        if basis is not None and not basis.encoding.same_as(encoding):
            raise FileFormatError(f"{data}: encoded unlike {origin}: featurize it like {origin}", settings=["like"])
    else:
        assert basis is not None
        encoding, base = basis.encoding, basis.config
        corpus = read(data, format_, encoding.columns, encoding.layout)
        dataset = encoding.encode(corpus, weighed=True)
        groups = None if group is None else groups_of(corpus, group, encoding.columns)
    if dataset.labels is None:
        raise DataError("no labels to train on", data)
    if (dataset.labels == UNKNOWN).any():
        line = int(dataset.lines[(dataset.labels == UNKNOWN).argmax()])
        raise DataError(f"a label that {origin} does not have", data, line)
    if basis is not None:
        config = _merge(basis.config, raw, options, (*ENCODING_PARTS, "mapped_terms"), origin, source)
    else:
        config = _merge(base, raw, options, ENCODING_PARTS, origin, source, encoding, dataset.positions)
    return Prepared(encoding, dataset, config, basis, groups, folder=folder)


def _read(
    vectors: VectorPaths, path: str, format_: str | None, columns: Sequence[str] | None, layout: Layout
) -> Corpus:
    """Read a text file with the vectors beside it."""
    opened = open_vectors(vectors)
    corpus = read_corpus(path, format_, columns, layout=layout)
    return with_vectors(corpus, opened) if opened else corpus


ENCODING_PARTS = (
    *("columns", "window", "min_count", "unobserved", "half_known", "weight", "ignore", "plain", "features"),
    *("separator", "header", "comment", "missing", "sequence", "tokens", "span_labels", "empty_labels"),
    *("embeddings", "lexicons", "lexicon_case", "clusters", "lookup_column"),
)


def _merge(
    base: Config,
    raw: Mapping[str, Any],
    options: dict[str, Any],
    fixed: tuple[str, ...],
    origin: str,
    source: str,
    suggested_by: Encoding | None = None,
    positions: int = 0,
) -> Config:
    """Return `base` with a configuration and options laid over it, which may not change its `fixed` parts.

    Features that the data suggested, in an encoding of so many positions, get terms that suit them.
    """
    stored = base.to_dict()
    if base.suggested and not base.training.observed_features:
        del stored["training"]["observed_features"]  # it is a default
    combined = {**stored, **raw}
    if isinstance(raw.get("training"), dict):
        combined["training"] = {**stored["training"], **raw["training"]}
    _refuse_changes(base, parse_config(combined, source), fixed, source, origin)
    numbers: set[str] = set()
    if suggested_by is not None:
        numbers = {one.config.name for one in suggested_by.features if isinstance(one, RealFeature)}
        unsaid = base.suggested and base.terms == default_terms()
        if unsaid and kernel_is_open(raw, options, positions):
            own = suggested_number_terms(suggested_by)
            combined |= {} if own is None else {"terms": own}
    laid_over = with_options(combined, options)
    _refuse_changes(base, parse_config(laid_over, source), fixed, "an option", origin)
    if suggested_by is not None:
        laid_over = with_terms(laid_over, len(suggested_by.labels), numbers, source)
    return parse_config(laid_over, source)


def _refuse_changes(base: Config, new: Config, fixed: tuple[str, ...], what: str, origin: str) -> None:
    for part in fixed:
        if getattr(new, part) != getattr(base, part):
            shown = {"mapped_terms": "terms"}.get(part, part).replace("_", "-")
            raise ConfigError(f"{what} contradicts {origin}, which was made with other {shown}")


def groups_of(corpus: Corpus, column: str, names: Sequence[str]) -> np.ndarray:
    """Return the group of each sequence, [S], by a column whose value is the same throughout."""
    if corpus.attributes is not None:
        raise ConfigError("attribute files have no columns to group by: give a file of folds")
    if column == names[-1]:
        raise ConfigError(f"'{column}' is the label, which cannot define groups")
    if column not in names:
        inputs = list(names[:-1])
        raise ConfigError(
            f"there is no column '{column}' to group by{suggestion(column, inputs)} (columns: {listed(inputs)})"
        )
    values = CodedColumn.of(corpus.columns[list(names).index(column)])
    codes = values.codes.astype(np.int64)
    first = codes[corpus.offsets[:-1]]
    strange = np.flatnonzero(codes != np.repeat(first, np.diff(corpus.offsets)))
    if len(strange):
        t = int(strange[0])
        raise DataError(
            f"the column '{column}' changes to '{values[t]}' within a sequence: a sequence must belong to one group",
            corpus.source,
            int(corpus.lines[t]),
        )
    return first


def without_column(
    raw: Mapping[str, Any], config: Config, names: Sequence[str], column: str, vectors: Iterable[str]
) -> Mapping[str, Any]:
    """Return the configuration without features of the group's column, unless it lists features."""
    if config.features is not None:
        return raw
    others = [name for name in names[:-1] if name != column]
    if not others and not vectors:
        raise ConfigError(f"'{column}' is the only column of input: if it is the group, no feature is left")
    return {**raw, "ignore": [*config.ignore, column]}


def read_folds(text: str, source: str, corpus: Corpus | Dataset) -> np.ndarray:
    """Parse the fold of each sequence, [S], from the text of a file with one on each line."""
    numbers = []
    for line, entry in enumerate(text.split("\n"), start=1):
        if not entry.strip():
            continue
        try:
            numbers.append(int(entry))
        except ValueError:
            raise DataError(f"'{entry.strip()}' is not the number of a fold (one on each line)", source, line) from None
    if len(numbers) != corpus.sequences:
        folds, sequences = counted(len(numbers), "fold"), counted(corpus.sequences, "sequence")
        raise DataError(f"{folds}, but {corpus.source} has {sequences}", source)
    if len(set(numbers)) < 2:
        raise DataError("all sequences are in one fold: there must be at least two", source)
    if max(map(abs, numbers)) > 2**62:
        raise DataError("a fold number is too large", source)
    return np.array(numbers, dtype=np.int64)
