"""Labellings of sequences under constraints, with their probabilities, as `tag` prints them.

A label scheme makes transitions impossible, labels that are given make all others impossible: minus infinity among
the potentials. Marginals and probabilities are then those of the labellings that are left, p(y | x, constraints).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..chains import LIMITED, Labellings, best_labellings, chain
from ..config import RulesConfig
from ..corpora import Corpus
from ..encoding import Dataset
from ..errors import ConfigError, DataError, NumericError
from ..scoring import Transitions, allowed_transitions
from ..system import Workers, sequence_chunks, sequence_rows
from .library_labels import CorpusPart, LibraryLabels
from .model import MOST_ROWS, ROWS_AT_ONCE, VITERBI, Inference, Model, why_impossible

if TYPE_CHECKING:
    from .explanation import Explanation

REVIEW, SETS = "review", "sets"  # uses of thresholds
NO_THRESHOLD = "the model has no threshold: `kcrf guarantee` finds one"


@dataclass(frozen=True)
class Wishes:
    """Results that a decoder is asked for."""

    decode: str | None = None  # one of DECODINGS; None: as the model does
    scheme: str | None = None
    force: bool = False  # keep the labels of the data, -1 being free
    marginals: bool = False
    probability: bool = False
    entropy: bool = False
    nbest: int | None = None
    novelty: bool = False
    explain: int | None = None  # contributions of each sign to list for each position
    explain_errors: bool = False  # of positions whose label is not the gold label, and of no others
    costs: np.ndarray | None = None  # [Y] of missing each label, for posterior decoding
    rules: RulesConfig | None = None  # None: those of the model
    review: bool = False  # mark positions by the model's threshold
    sets: int | None = None  # sets of at most so many labels, by the model's threshold


@dataclass(frozen=True, eq=False)
class Decoded:
    """Results for consecutive sequences, None where they were not asked for."""

    offsets: np.ndarray  # [S+1] from 0 on
    labels: np.ndarray  # [n] int32
    marginals: np.ndarray | None = None  # [n, Y]
    log_probabilities: np.ndarray | None = None  # [S] of the labels
    nbest: list[Labellings] | None = None  # [S]; their scores are log probabilities
    novelty: np.ndarray | None = None  # [n]
    explanations: list[Explanation[int] | None] | None = None  # [n], None where they are not wanted
    remarks: tuple[str, ...] = ()  # warnings about single sequences
    impossible: int = 0  # sequences that no labelling obeys the rules of
    outside: int | None = None  # positions outside the range of the training data; None: not counted
    review: np.ndarray | None = None  # [n] bool, positions to review
    sets: np.ndarray | None = None  # [n, Y] bool, labels of the set at each position, none for one that is too large
    entropies: np.ndarray | None = None  # [S] of p(y | x), in nats


class Decoder:
    """A model, and the results that it is asked for.

    If labels of a file's blocks are all that is asked for, they come from the C library where that supports the model
    and is prepared (`LibraryLabels.ready`). All else comes from the model itself.
    """

    def __init__(self, model: Model, wishes: Wishes, note: Callable[[str], None] = warnings.warn):
        if wishes.rules is not None:
            model = replace(model, rules=wishes.rules)
        self.model, self.wishes, self.rules = model, wishes, model.label_rules
        if wishes.review and REVIEW not in model.guarantees:
            raise ConfigError(f"{NO_THRESHOLD} with 'risk'", settings=["risk"])
        if wishes.sets and SETS not in model.guarantees:
            raise ConfigError(f"{NO_THRESHOLD} with 'sets'")
        if wishes.nbest:  # the best of several labellings is the most probable one as a whole
            self.model = model = replace(model, span_bonus=0.0)
        self._decoder = wishes.decode or (VITERBI if wishes.nbest else model.decode)
        self._allowed = None if wishes.scheme is None else scheme_of(model, wishes.scheme)
        self._library = self._novelty = self._explainer = None
        labels_only = wishes.costs is None and wishes == Wishes(wishes.decode, rules=wishes.rules)
        # Marginals given allowed transitions may prefer other labels even where those without rules obey.
        if labels_only and (self.rules is None or self._decoder == VITERBI):
            without_rules = replace(model, decode=self._decoder, rules=None, permitted=None)
            self._library = LibraryLabels(without_rules, note)
        if wishes.novelty:
            from .novelty import Novelty  # brings scipy, which plain tagging need not wait for

            self._novelty = Novelty(model)
        if wishes.explain is not None:
            from .explanation import Explainer

            self._explainer = Explainer(model)

    def prepared(self, corpus: Corpus) -> Dataset | CorpusPart:
        """Return a block of a file, checked and, unless the library is to label it, encoded."""
        encoding = self.model.encoding
        if self._library is None or self._library.ready(corpus.positions) is None:
            return encoding.encode(corpus)
        encoding.check_vectors({name: array.shape[1] for name, array in corpus.vectors.items()}, corpus.source)
        encoding.with_labels(corpus)
        return CorpusPart(corpus, 0, corpus.sequences)

    def chunks(self, dataset: Dataset | CorpusPart) -> list[tuple[int, int]]:
        """Return runs of whole sequences (first, last) to be decoded at a time."""
        if isinstance(dataset, CorpusPart):
            return sequence_chunks(dataset.offsets, MOST_ROWS)
        # Where each position comes out many times, fewer at once take the same memory.
        return self.model.chunks(dataset, 10 * ROWS_AT_ONCE // (self.wishes.nbest or 1))

    def decode(
        self, dataset: Dataset, source: str, workers: Workers, listed: np.ndarray | None = None
    ) -> Iterator[Decoded]:
        """Yield results for runs of whole sequences, in order; see `decode_part`."""

        def part(chunk: tuple[int, int]) -> Decoded:
            rows = slice(*dataset.offsets[list(chunk)].tolist())
            return self.decode_part(dataset.span(*chunk), source, None if listed is None else listed[rows])

        return workers.map(part, self.chunks(dataset))

    def decode_part(self, part: Dataset | CorpusPart, source: str, listed: np.ndarray | None = None) -> Decoded:
        """Return the results for a few sequences; `listed` [n, Y] are the labels that rules allow at each position."""
        if isinstance(part, CorpusPart):
            return self._by_library(part, source, listed)
        wishes, offsets, rules = self.wishes, part.offsets, self.rules
        scores, edges = self.model.potentials(part)
        scores, edges = constrained(scores, edges, self._allowed, part.labels if wishes.force else None)
        try:
            found = Inference(scores, edges, offsets, rules, self._decoder, self.model.bonuses, wishes.costs, listed)
        except NumericError as error:
            settings = ["when_impossible"] if self._allowed is None and not wishes.force else []
            raise why_impossible(error, scores, edges, part, source, settings) from None
        labels, status = found.labels, found.status
        marginals = log_probabilities = nbest = explanations = None
        if wishes.probability:
            own = chain.path_scores(scores, edges, offsets, labels)
            log_probabilities = np.minimum(own - found.marginals.log_z, 0.0)
        if wishes.nbest:
            if rules is None:
                best = best_labellings(scores, edges, offsets, wishes.nbest)
            else:
                best, status = rules.nbest(scores, edges, offsets, listed, wishes.nbest)
            nbest = [
                Labellings(one.labels, np.minimum(one.scores - log_z, 0.0))
                for one, log_z in zip(best, found.marginals.log_z, strict=True)
            ]
        if self._explainer is not None and wishes.explain is not None:
            gold = None if wishes.force else part.labels  # labels that are kept are not compared with
            if gold is None and wishes.explain_errors:
                raise DataError("no gold labels to tell errors by", source, settings=["explain_errors"])
            asked = wishes.explain, gold, wishes.explain_errors
            explanations = self._explainer.explain(part, scores, edges, labels, *asked)
        if wishes.marginals or wishes.review or wishes.sets:
            marginals = found.marginals.node if rules is None else rules.marginals(scores, edges, offsets, listed)[0]
        remarks: tuple[str, ...] = ()
        impossible = np.zeros(0, dtype=bool)
        if rules is not None and status is not None:
            impossible = status > LIMITED
            remarks = rules.remarks(status, part.lines[offsets[:-1]], source)
        review = sets = None
        if marginals is not None and wishes.review:
            names = self.model.encoding.span_labels
            review = self.model.guarantees[REVIEW].marked(names, labels, offsets, marginals)
        if marginals is not None and wishes.sets:
            sets = self.model.guarantees[SETS].label_sets(labels, marginals)
            sets[sets.sum(axis=1) > wishes.sets] = False
        novelty = None if self._novelty is None else self._novelty.of(part)
        entropies = chain.entropies(scores, edges, offsets, found.marginals) if wishes.entropy else None
        more = novelty, explanations, remarks, int(impossible.sum()), self.model.encoding.outside(part), review, sets
        shown = marginals if wishes.marginals else None
        return Decoded(offsets, labels, shown, log_probabilities, nbest, *more, entropies)

    def _by_library(self, part: CorpusPart, source: str, listed: np.ndarray | None) -> Decoded:
        """Return labels by the library, and by the model itself where those break a rule or there are none."""
        assert self._library is not None
        labels, encoding = self._library.of_part(part), self.model.encoding
        if labels is None:
            return self.decode_part(encoding.encode(part.corpus.span(part.first, part.last)), source, listed)
        found, broken = Decoded(part.offsets, labels), np.zeros(0, np.int64)
        if self.rules is not None:
            broken = np.flatnonzero(self.rules.broken(labels, part.offsets, listed))
        if not len(broken):
            return found
        rows = sequence_rows(part.offsets, broken)
        listed = None if listed is None else listed[rows]
        own = self.decode_part(encoding.encode(part.corpus.subset(part.first + broken)), source, listed)
        labels[rows] = own.labels
        return replace(found, remarks=own.remarks, impossible=own.impossible)


def scheme_of(model: Model, scheme: str) -> Transitions:
    try:
        allowed = allowed_transitions(model.encoding.span_labels, scheme)
    except DataError as error:
        raise ConfigError(f"the labels of the model are not those of the scheme: {error}") from None
    # Where no span can be finished, as with iobes on labels of iob2, all would be O without a word.
    spans = [not label.startswith("O") for label in model.encoding.span_labels]
    if any(spans) and not allowed.usable[spans].any():
        raise ConfigError(f"the labels of the model are not those of the scheme {scheme}: is it another scheme?")
    return allowed


def given_labels(model: Model, corpus: Corpus, free: str) -> np.ndarray:
    """Return numbers of the labels that a corpus gives, [N] int32, -1 where they are free."""
    if not model.encoding.with_labels(corpus):
        line = int(corpus.lines[0]) if corpus.positions else None
        message = f"no column of labels to keep: give one, with '{free}' where the label is free"
        raise DataError(corpus.unlabelled or message, corpus.source, line)
    numbers = {label: number for number, label in enumerate(model.labels)} | {free: -1}
    given = np.empty(corpus.positions, dtype=np.int32)
    for t, label in enumerate(corpus.columns[-1]):
        number = numbers.get(label)
        if number is None:
            message = f"the model has no label '{label}' (a position whose label is free has '{free}')"
            raise DataError(message, corpus.source, int(corpus.lines[t]))
        given[t] = number
    return given


def constrained(
    scores: np.ndarray, edges: chain.Edges, allowed: Transitions | None, given: np.ndarray | None
) -> tuple[np.ndarray, chain.Edges]:
    """Return potentials that leave only labels that a scheme allows and that agree with the given ones."""
    if allowed is not None:
        edges = edges.permitted(allowed)
    if given is not None:
        kept = (given[:, None] < 0) | (given[:, None] == np.arange(scores.shape[1]))
        scores = np.where(kept, scores, -np.inf)
    return scores, edges
